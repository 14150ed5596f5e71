/* open_program.c - what the device does at load, with sentences for people. */
#include "targets/uthinker/run/open_program.h"

#include <inttypes.h>
#include <string.h>

#include "base/half.h"
#include "base/text.h"
#include "report/report_builder.h"
#include "mur_code.h"
#include "targets/uthinker/clock/dram_classes.h"
#include "targets/uthinker/isa/utp_container.h"
#include "targets/target.h"
#include "targets/uthinker/isa/uthinker_isa.h"
#include "targets/uthinker/run/engine_machine.h"
#include "text/tokenizer.h"

typedef enum muc_verdict_operand {
    OPERAND_none,
    OPERAND_slot,
    OPERAND_operand,
    OPERAND_table,
    OPERAND_banks
} muc_verdict_operand;

static const struct {
    muc_verdict_operand operand;
    const char *sentence;
} reasons[MUR_REASONS] = {
#define MUR_REASON(name, operand, sentence) [MUR_REASON_##name] = { OPERAND_##operand, sentence },
#include "mur_reasons.def"
#undef MUR_REASON
};

static const char *const entry_names[MUR_ENTRY_KINDS] = {
#define MUR_ENTRY(name, kind, meaning) [kind] = #name,
#include "mur_sections.def"
};

static const char *const operand_names[MUR_OPERANDS] = {
#define MUR_CONSTANT(name, value) [MUR_OPERAND_##name] = #name,
#define MUR_DERIVED(name, meaning) [MUR_OPERAND_##name] = #name,
#define MUR_OPERAND(name) [MUR_OPERAND_##name] = #name,
#include "mur_isa.def"
};

static const char *const place_names[MUR_PLACES] = { "I0",   "I1",   "W0", "W1", "GB",
                                                     "WGTS", "PARM", "KV", "IO" };

/* What section DEBG calls the item at a word of CODE, or NULL. */
static const char *debug_name(const mur_program *program, uint32_t word)
{
    const uint8_t *section = program->section[MUR_SECTION_DEBG];
    uint32_t bytes = program->section_bytes[MUR_SECTION_DEBG], count, names, name;

    if (!section || bytes < 4 || muc_load_u32(section) > (bytes - 4) / 8)
        return NULL;
    count = muc_load_u32(section);
    names = 4 + 8 * count;
    for (uint32_t i = 0; i < count; i++) {
        if (muc_load_u32(section + 4 + 8 * i) != word)
            continue;
        name = muc_load_u32(section + 8 + 8 * i);
        if (name >= bytes - names || !memchr(section + names + name, 0, bytes - names - name))
            return NULL;
        return (const char *)section + names + name;
    }
    return NULL;
}

/* "DECODE, word 40 of CODE (MM of PV)" */
static void add_item(muc_text *text, const mur_program *program, const mur_verdict *verdict)
{
    const uint32_t *item = program->code + verdict->word;
    const char *name = debug_name(program, verdict->word);
    uint32_t words = program->section_bytes[MUR_SECTION_CODE] / 4, op;

    muc_text_add(text, "%s, word %u of CODE", entry_names[program->entries[verdict->entry].kind],
                 verdict->word);
    if (words - verdict->word >= 2 && (item[0] & 15) == MUR_INST &&
        muc_insn_find_opcode(item[1] & MUC_WORD0_OPCODE, &op))
        muc_text_add(text, " (%s%s%s)", muc_insn_get(op)->name, name ? " of " : "",
                     name ? name : "");
    else if (name)
        muc_text_add(text, " (%s)", name);
}

/* the lowest of some banks */
static void add_bank(muc_text *text, uint32_t banks)
{
    uint32_t bank = 0;

    while ((banks >> bank & 1) == 0)
        bank++;
    if (bank < 2 * MUR_BUFFERS)
        muc_text_add(text, "%s, %s half: ", place_names[bank / 2], bank % 2 ? "upper" : "lower");
    else
        muc_text_add(text, "%s: ", place_names[MUR_BUFFERS + MUR_IO]);
}

/* what the reason is about, then its sentence with %v and %l filled in */
static void add_reason(muc_text *text, const mur_verdict *verdict)
{
    const char *at = reasons[verdict->reason].sentence;
    uint32_t operand = verdict->operand;

    switch (reasons[verdict->reason].operand) {
    case OPERAND_slot:
        muc_text_add(text, "slot %u: ", operand);
        break;
    case OPERAND_operand:
        muc_text_add(text, "%s: ", operand_names[operand]);
        break;
    case OPERAND_table:
        muc_text_add(text, "table %u: ", operand);
        break;
    case OPERAND_banks:
        add_bank(text, operand | operand >> 16);
        break;
    case OPERAND_none:
    default:
        break;
    }
    for (; *at; at++) {
        if (at[0] == '%' && (at[1] == 'v' || at[1] == 'l'))
            muc_text_add(text, "%" PRIu64, *++at == 'v' ? verdict->value : verdict->limit);
        else
            muc_text_add_bytes(text, at, 1);
    }
}

static muc_status refuse(muc_context *ctx, const char *name, const mur_program *program,
                         const mur_verdict *verdict)
{
    muc_text text = { 0 };
    muc_status status;

    add_item(&text, program, verdict);
    muc_text_add(&text, ": ");
    add_reason(&text, verdict);
    status = muc_fail(ctx, MUC_MALFORMED, name, MUC_NO_OFFSET, "the verifier refuses entry %s",
                      text.data ? text.data : "");
    muc_text_free(&text);
    return status;
}

muc_status muc_program_open(muc_context *ctx, muc_bytes bytes, mur_program *out)
{
    muc_container sections;
    mur_verifier verifier;

    MUC_TRY(muc_container_open(ctx, bytes, &sections, out));
    MUC_TRY(muc_layer_facts_check(ctx, bytes.name, out));
    if (mur_verify(out, &verifier) != MUR_OK)
        return refuse(ctx, bytes.name, out, &verifier.verdict);
    return MUC_OK;
}

static double bits_per_weight_of(const mur_program *program)
{
    const mur_meta *meta = program->meta;
    double d = meta->width, q = (double)meta->heads * meta->head_width;
    double kv = (double)meta->kv_heads * meta->head_width, f = meta->ffn_width;
    double layer = 2 * d * q + 2 * d * kv + 3 * d * f;
    double vocabulary = d * meta->vocabulary * (meta->tied ? 1 : 2);

    return 8.0 * program->region_bytes[MUR_WGTS] /
           (vocabulary + muc_dram_own_layers(program) * layer);
}

void muc_model_set_program(muc_model *model, mur_program *program)
{
    model->kind = MUC_MODEL_COMPILED;
    model->compiled = program;
    model->engine = &muc_engine_machine;
    model->bits_per_weight = bits_per_weight_of(program);
}

muc_status muc_open_uthinker(muc_context *ctx, muc_model *model, const muc_model_options *options)
{
    mur_program *program;
    const mur_meta *meta;

    MUC_TRY(MUC_ARENA_NEW(ctx, &model->arena, 1, &program));
    MUC_TRY(muc_program_open(ctx, model->file.bytes, program));
    muc_model_set_program(model, program);
    meta = program->meta;
    MUC_TRY(muc_model_set_context(ctx, model, options->context, meta->context));
    model->tokens = (muc_model_tokens){ meta->bos, { meta->eos, meta->eos2, meta->eos3 } };
    model->tokenizer_form = program->section[MUR_SECTION_TOKN];
    model->tokenizer_bytes = program->section_bytes[MUR_SECTION_TOKN];
    MUC_TRY(muc_model_open_carried(ctx, model, options->tokenizer, meta->vocabulary));
    if (model->tokenizer_bytes && model->tokenizer.header->pieces > meta->vocabulary)
        return muc_fail(ctx, MUC_MALFORMED, model->path, MUC_NO_OFFSET,
                        "the tokenizer has %u pieces, the model only %u",
                        model->tokenizer.header->pieces, meta->vocabulary);
    if (program->section_bytes[MUR_SECTION_PRMT])
        return muc_model_set_template(ctx, model, model->path,
                                      (const char *)program->section[MUR_SECTION_PRMT],
                                      program->section_bytes[MUR_SECTION_PRMT]);
    return MUC_OK;
}

/* ---- for people ---- */

static void add_meta(const mur_meta *meta, muc_report *report)
{
    muc_report_begin_group(report, "model");
#define MUR_META(name, min, max, meaning) \
    if (meta->name != UINT32_MAX) \
        muc_report_add_count(report, #name, meta->name);
#include "mur_sections.def"
    muc_report_end(report);
}

static void add_machine(const mur_mach *mach, muc_report *report)
{
    muc_report_begin_group(report, "machine");
#define MUR_MACH(name, min, max, meaning) muc_report_add_count(report, #name, mach->name);
#include "mur_sections.def"
    muc_report_end(report);
}

static void add_sections(const mur_program *program, muc_report *report)
{
    static const struct {
        const char *name, *meaning;
    } rows[] = {
#define MUR_SECTION(name, need, meaning) { #name, meaning },
#include "mur_sections.def"
    };
    const uint8_t *image = (const uint8_t *)program->header;

    muc_report_begin_table(report, "sections");
    for (unsigned i = 0; i < MUR_SECTIONS; i++) {
        if (!program->section[i])
            continue;
        muc_report_begin_row(report);
        muc_report_add_text(report, "name", "%s", rows[i].name);
        muc_report_add_count(report, "offset", (uint64_t)(program->section[i] - image));
        muc_report_add_count(report, "bytes", program->section_bytes[i]);
        muc_report_add_text(report, "meaning", "%s", rows[i].meaning);
        muc_report_end(report);
    }
    muc_report_end(report);
}

static void add_entries(const mur_program *program, muc_report *report)
{
    muc_report_begin_table(report, "entries");
    for (uint32_t i = 0; i < program->entry_count; i++) {
        const mur_entr *entry = &program->entries[i];

        muc_report_begin_row(report);
        muc_report_add_text(report, "name", "%s", entry_names[entry->kind]);
        muc_report_add_count(report, "start", entry->start);
        muc_report_add_count(report, "words", entry->words);
        muc_report_add_text(report, "tokens", "%u..%u", entry->min_m, entry->max_m);
        muc_report_end(report);
    }
    muc_report_end(report);
}

static uint32_t entry_of(const mur_program *program, uint32_t word)
{
    uint32_t i = 0;

    while (i + 1 < program->entry_count && word >= program->entries[i + 1].start)
        i++;
    return i;
}

/* What the program evaluates while it runs, by the labels of its debug map. The map is the only
 * section that the verifier does not look at: everything in it is checked here. */
static void add_placeholders(const mur_program *program, muc_report *report)
{
    const uint8_t *debug = program->section[MUR_SECTION_DEBG];
    uint32_t size = program->section_bytes[MUR_SECTION_DEBG];
    uint32_t code_words = program->section_bytes[MUR_SECTION_CODE] / 4;
    uint32_t count = size >= 4 ? muc_load_u32(debug) : 0;
    uint64_t names = 4 + (uint64_t)count * 8;

    if (!debug || names > size || debug[size - 1] != 0)
        return;
    muc_report_begin_table(report, "placeholders");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t word = muc_load_u32(debug + 4 + i * 8), name = muc_load_u32(debug + 8 + i * 8);

        if (word >= code_words || name >= size - names ||
            mur_bits(program->code[word], 0, MUR_KIND_WIDTH) != MUR_EVAL)
            continue;
        muc_report_begin_row(report);
        muc_report_add_text(report, "entry", "%s",
                            entry_names[program->entries[entry_of(program, word)].kind]);
        muc_report_add_count(report, "word", word);
        muc_report_add_count(report, "slot", MUR_CODE_GET(program->code[word], EVAL, dst));
        muc_report_add_text(report, "label", "%s", (const char *)debug + names + name);
        muc_report_end(report);
    }
    muc_report_end(report);
}

void muc_inspect_uthinker(const muc_model *model, muc_report *report)
{
    const mur_program *program = muc_model_program(model);

    muc_model_add_tokenizer(report, model);
    muc_report_add_count(report, "bytes", program->header->bytes);
    muc_report_add_text(report, "fingerprint", "%08x%08x", program->header->fingerprint_high,
                        program->header->fingerprint_low);
    muc_report_add_real(report, "bits_per_weight", model->bits_per_weight);
    muc_report_add_count(report, "worst_case_steps", program->steps);
    add_machine(program->mach, report);
    add_meta(program->meta, report);
    add_sections(program, report);
    add_entries(program, report);
    add_placeholders(program, report);
}

/* ---- what it is verified on ---- */

muc_status muc_program_tokens(muc_context *ctx, const muc_model *program, const char *prompt,
                              uint32_t **out, size_t *count)
{
    const mur_program *p = muc_model_program(program);
    const uint8_t *gold = p->section[MUR_SECTION_GOLD];

    *out = NULL;
    *count = p->section_bytes[MUR_SECTION_GOLD] / sizeof(mur_gold);
    if (prompt) {
        MUC_TRY(muc_model_need_tokenizer(ctx, program));
        MUC_TRY(muc_tokenizer_encode(ctx, &program->tokenizer, prompt, strlen(prompt),
                                     MUR_ENCODE_BOS | MUR_ENCODE_SPECIAL, out, count));
    } else {
        MUC_TRY(MUC_NEW_ARRAY(ctx, "verify", *count, out));
        for (size_t i = 0; i < *count; i++)
            (*out)[i] = muc_load_u32(gold + i * sizeof(mur_gold));
    }
    if (*count == 0 || *count > program->context)
        return muc_fail(ctx, MUC_USAGE, program->path, MUC_NO_OFFSET,
                        "%zu tokens to run, expected 1 to %u; give others with --prompt", *count,
                        program->context);
    return MUC_OK;
}

uint32_t muc_program_call_tokens(const muc_model *program, size_t at, size_t count)
{
    size_t half = (count + 1) / 2, left = at < half ? half - at : 1;
    uint32_t most = muc_model_program(program)->meta->rows;

    return (uint32_t)(left < most ? left : most);
}
