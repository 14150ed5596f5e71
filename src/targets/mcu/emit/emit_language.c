/* emit_language.c - text in, text out: the generated code around a decoder, from the templates of
 * lm/. */
#include "targets/mcu/emit/emit_language.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "targets/mcu/emit/emit_template.h"
#include "mur_tokenizer.h"

static void print_vocabulary(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "%" PRIu32, program->lm->vocabulary);
}

static void print_context(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "%" PRIu32, program->lm->context);
}

static void print_most_tokens(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "%" PRIu32, program->lm->most_tokens);
}

static void print_tokenizer_bytes(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "%zu", program->lm->tokenizer_bytes);
}

static void print_tokenizer(const muc_mcu_program *program, muc_text *text)
{
    enum { A_LINE = 8 };
    const muc_mcu_lm *lm = program->lm;

    for (size_t i = 0; i < lm->tokenizer_bytes / 4; i++)
        muc_text_add(text, "%s0x%08" PRIx32 "u,%s", i % A_LINE ? " " : "    ",
                     muc_load_u32(lm->tokenizer + 4 * i),
                     i % A_LINE == A_LINE - 1 || i + 1 == lm->tokenizer_bytes / 4 ? "\n" : "");
}

static bool has_flag(const muc_mcu_lm *lm, uint32_t flag)
{
    mur_tokenizer_header header;

    memcpy(&header, lm->tokenizer, sizeof(header));
    return (header.flags & flag) != 0;
}

/* the source that encodes the tokenizer's kind */
static const char *tokenizer_kind(const muc_mcu_lm *lm)
{
    return has_flag(lm, MUR_TOKENIZER_UNIGRAM)     ? "mur_unigram"
           : has_flag(lm, MUR_TOKENIZER_WORDPIECE) ? "mur_wordpiece"
                                                   : "mur_tokenizer";
}

static void print_kind(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "%s", tokenizer_kind(program->lm));
}

static void print_normalize(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, has_flag(program->lm, MUR_TOKENIZER_NFC) ? "mur_nfc" : "NULL");
}

/* as a string of C, whatever its bytes are */
static void print_prompt(const muc_mcu_program *program, muc_text *text)
{
    const char *at = program->lm->prompt ? program->lm->prompt : "";

    muc_text_add(text, "\"");
    for (; *at; at++) {
        if (*at >= ' ' && *at < 0x7f && !strchr("\"\\?", *at))
            muc_text_add(text, "%c", *at);
        else
            muc_text_add(text, "\\%03o", (unsigned char)*at);
    }
    muc_text_add(text, "\"");
}

static void print_ends(const muc_mcu_program *program, muc_text *text)
{
    const char *before = "";

    for (unsigned i = 0; i < MUC_MCU_LM_ENDS; i++) {
        if (program->lm->ends[i] == UINT32_MAX)
            continue;
        muc_text_add(text, "%stoken == %" PRIu32 "u", before, program->lm->ends[i]);
        before = " || ";
    }
    if (!*before)
        muc_text_add(text, "token != token");
}

static const muc_mcu_variable lm_variables[] = {
    { "vocabulary", print_vocabulary },
    { "context", print_context },
    { "most_tokens", print_most_tokens },
    { "tokenizer_bytes", print_tokenizer_bytes },
    { "tokenizer", print_tokenizer },
    { "normalize", print_normalize },
    { "tokenizer_kind", print_kind },
    { "prompt", print_prompt },
    { "ends", print_ends },
    { NULL, NULL },
};

void muc_mcu_lm_header(const muc_mcu_program *program, muc_text *text)
{
    muc_mcu_print_template(program, "lm/NAME_lm.h.in", lm_variables, text);
}

void muc_mcu_lm_source(const muc_mcu_program *program, muc_text *text)
{
    muc_mcu_print_template(program, "lm/NAME_lm.c.in", lm_variables, text);
}

void muc_mcu_lm_main(const muc_mcu_program *program, muc_text *text)
{
    muc_mcu_print_template(program, "lm/main.c.in", lm_variables, text);
}

void muc_mcu_lm_json(const muc_mcu_program *program, muc_text *text)
{
    const muc_mcu_lm *lm = program->lm;
    const char *before = "";

    muc_text_add(text,
                 "  \"language_model\": { \"vocabulary\": %" PRIu32 ", \"context\": %" PRIu32
                 ", \"tokens_per_run\": %" PRIu32 ", \"tokenizer_bytes\": %zu, \"ends\": [",
                 lm->vocabulary, lm->context, lm->most_tokens, lm->tokenizer_bytes);
    for (unsigned i = 0; i < MUC_MCU_LM_ENDS; i++) {
        if (lm->ends[i] == UINT32_MAX)
            continue;
        muc_text_add(text, "%s%" PRIu32, before, lm->ends[i]);
        before = ", ";
    }
    muc_text_add(text, "], \"weights\": %" PRIu64 ", \"weight_bytes\": %" PRIu64 "%s },\n",
                 program->weights, program->weight_bytes, lm->blocks ? ", \"blocks\": true" : "");
}

muc_status muc_mcu_lm_sources(muc_context *ctx, muc_mcu_program *program)
{
    const char *own, *kind;

    MUC_TRY(muc_arena_format(ctx, &program->arena, &own, "%s_lm.c", program->name));
    MUC_TRY(muc_mcu_add_source(ctx, program, own));
    MUC_TRY(muc_mcu_add_source(ctx, program, "src/mur_sampler.c"));
    MUC_TRY(muc_mcu_add_source(ctx, program, "src/mur_tokenizer.c"));
    MUC_TRY(muc_mcu_add_source(ctx, program, "src/mur_split.c"));
    if (has_flag(program->lm, MUR_TOKENIZER_NFC))
        MUC_TRY(muc_mcu_add_source(ctx, program, "src/mur_normalize.c"));
    if (!has_flag(program->lm, MUR_TOKENIZER_KINDS))
        return MUC_OK;
    MUC_TRY(muc_arena_format(ctx, &program->arena, &kind, "src/%s.c", tokenizer_kind(program->lm)));
    return muc_mcu_add_source(ctx, program, kind);
}
