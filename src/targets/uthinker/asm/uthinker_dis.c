/* uthinker_dis.c - a program file as text.
 *
 * Every statement is printed only if assembling it gives the same bytes: items go through
 * muc_item_decode, which answers for that; what it does not answer for shows as `word` or `hex`.
 */
#include "targets/uthinker/asm/uthinker_asm.h"

#include <stdlib.h>
#include <string.h>

#include "targets/uthinker/asm/asm_words.h"
#include "targets/uthinker/isa/utp_container.h"
#include "targets/uthinker/isa/debug_names.h"
#include "targets/uthinker/isa/code_item.h"

enum { HEX_BYTES = 32, ZERO_BYTES = 4096, VALUES = 10, COMMENT_COLUMN = 64, INDENT = 2 };

typedef struct disassembly {
    muc_context *ctx;
    muc_arena arena;
    mur_program program;
    muc_text *out;
    muc_debug_name *names; /* words ascend */
    size_t name_count;
    bool names_whole;
    const uint32_t *code;
    size_t code_words;
    bool *paired; /* [words of CODE] a FOR or NEXT that has its other end where it should */
    muc_asm_labels labels;
    size_t line; /* where the statement at hand begins in out */
} disassembly;

/* ---- statements ---- */

static void begin_line(disassembly *d, size_t indent)
{
    d->line = d->out->size;
    muc_text_add(d->out, "%*s", (int)(INDENT * indent), "");
}

static void end_line(disassembly *d, const char *comment)
{
    size_t column = d->out->size - d->line;

    if (comment)
        muc_text_add(d->out, "%*s; %s",
                     column < COMMENT_COLUMN ? (int)(COMMENT_COLUMN - column) : 1, "", comment);
    muc_text_add(d->out, "\n");
}

static size_t run_of_zeros(muc_bytes bytes, size_t at)
{
    size_t run = 0;

    while (run < ZERO_BYTES && at + run < bytes.size && bytes.data[at + run] == 0)
        run++;
    return run;
}

static void print_hex(disassembly *d, muc_bytes bytes)
{
    if (bytes.size == 0)
        muc_text_add(d->out, "hex\n");
    for (size_t at = 0; at < bytes.size;) {
        size_t zeros = run_of_zeros(bytes, at);
        size_t count = bytes.size - at < HEX_BYTES ? bytes.size - at : HEX_BYTES;

        if (zeros >= HEX_BYTES) {
            muc_text_add(d->out, "zero %zu\n", zeros);
            at += zeros;
            continue;
        }
        muc_text_add(d->out, "hex ");
        for (size_t i = 0; i < count; i++)
            muc_text_add(d->out, "%02x", bytes.data[at + i]);
        muc_text_add(d->out, "\n");
        at += count;
    }
}

static void print_rows(disassembly *d, const muc_asm_row *row, muc_bytes bytes)
{
    for (size_t at = 0; at < bytes.size; at += 4 * (size_t)row->count) {
        if (row->statement)
            muc_text_add(d->out, "%s", row->statement);
        for (uint32_t i = 0; i < row->count; i++)
            muc_text_add(d->out, row->statement ? " %s=%u" : "%s = %u\n", row->names[i],
                         muc_load_u32(bytes.data + at + 4 * (size_t)i));
        if (row->statement)
            muc_text_add(d->out, "\n");
    }
}

/* mur_open has checked the starts */
static void print_tables(disassembly *d)
{
    const uint32_t *t = d->program.tables;

    for (uint32_t i = 0; i < t[0]; i++)
        for (uint32_t v = t[1 + i]; v < t[2 + i]; v++) {
            bool begins = v == t[1 + i];

            if (begins || (v - t[1 + i]) % VALUES == 0)
                muc_text_add(d->out, "%s%s", v == t[1] ? "" : "\n", begins ? "table" : "values");
            muc_text_add(d->out, " %u", t[v]);
        }
    muc_text_add(d->out, t[0] ? "\n" : "");
}

static void print_quoted(muc_text *out, const char *string)
{
    muc_text_add(out, "\"");
    for (const unsigned char *p = (const unsigned char *)string; *p; p++) {
        if (*p == '"' || *p == '\\')
            muc_text_add(out, "\\%c", *p);
        else if (*p < 0x20 || *p > 0x7e)
            muc_text_add(out, "\\x%02x", *p);
        else
            muc_text_add_bytes(out, p, 1);
    }
    muc_text_add(out, "\"");
}

static void print_names(disassembly *d)
{
    for (size_t i = 0; i < d->name_count; i++) {
        muc_text_add(d->out, "name %u ", d->names[i].word);
        print_quoted(d->out, d->names[i].name);
        muc_text_add(d->out, "\n");
    }
}

/* ---- CODE ---- */

/* the DEBG name of a word of CODE, or NULL */
static const char *name_of(const disassembly *d, size_t word)
{
    size_t from = 0, to = d->name_count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (d->names[middle].word < word)
            from = middle + 1;
        else
            to = middle;
    }
    return from < d->name_count && d->names[from].word == word ? d->names[from].name : NULL;
}

/* a name that can stand in a comment */
static const char *comment_of(const disassembly *d, size_t word)
{
    const char *name = name_of(d, word);

    for (const char *p = name; p && *p; p++)
        if (*p < ' ' || *p > '~')
            return NULL;
    return name;
}

static void print_slot(disassembly *d, uint32_t slot)
{
    if (d->labels.of[slot][0])
        muc_text_add(d->out, "%s", d->labels.of[slot]);
    else
        muc_text_add(d->out, "s%u", slot);
}

/* the definition of a slot: "P17:s5", or "s5"; returns what follows the label in the name */
static const char *print_definition(disassembly *d, uint32_t slot, const char *name)
{
    size_t length = name ? muc_asm_identifier(name, strlen(name)) : 0;

    if (muc_asm_label_set(&d->labels, slot, name, length))
        muc_text_add(d->out, "%s:", d->labels.of[slot]);
    muc_text_add(d->out, "s%u", slot);
    return name ? name + length : NULL;
}

static void print_tokens(muc_text *out, uint32_t wait, uint32_t sig)
{
    const char *separator = " wait=";

    for (uint32_t token = 0; token < MUR_TOKENS; token++)
        if (wait >> token & 1) {
            muc_text_add(out, "%s%u", separator, token);
            separator = ",";
        }
    if (sig)
        muc_text_add(out, " sig=%u", sig - 1);
}

static void print_number(muc_text *out, uint32_t field, uint32_t value)
{
    uint32_t count;
    const char *const *names = muc_asm_field_names(field, &count);

    if (value < count)
        muc_text_add(out, "%s", names[value]);
    else
        muc_text_add(out, strcmp(muc_field_get(field)->unit, "bits") ? "%u" : "0x%08x", value);
}

static void print_instruction(disassembly *d, const muc_item *item)
{
    const muc_insn_info *info = muc_insn_get(item->op);

    muc_text_add(d->out, "%s", info->name);
    print_tokens(d->out, item->wait, item->sig);
    for (uint32_t i = 0; i < muc_insn_fields(item->op); i++) {
        muc_text_add(d->out, " %s=", muc_field_get(info->first_field + i)->name);
        if (!item->fields[i].is_slot) {
            print_number(d->out, info->first_field + i, item->fields[i].value);
            continue;
        }
        print_slot(d, item->fields[i].value);
        if (item->fields[i].more)
            muc_text_add(d->out, "+%u", item->fields[i].more);
    }
}

/* bits that the operator does not use are zero, and its name says how to read the rest */
static bool is_plain_eval(const muc_item *item)
{
    if (!muc_eval_name(item->eval) || item->eval == MUR_OP_SPAN)
        return false;
    if (item->eval == MUR_OP_TABLE)
        return !item->immediate && item->b == 0;
    if (item->eval == MUR_OP_SEL)
        return !item->immediate && item->second < MUR_SLOTS;
    return item->immediate ? item->b == 0 : item->second == 0;
}

static void print_eval(disassembly *d, const muc_item *item, const char *name)
{
    muc_asm_labels before = d->labels;
    const char *rest = print_definition(d, item->dst, name);
    muc_asm_labels after;

    if (item->eval == MUR_OP_TABLE && item->dst + 1 < MUR_SLOTS) {
        muc_text_add(d->out, ", ");
        print_definition(d, item->dst + 1, rest && strncmp(rest, ", ", 2) == 0 ? rest + 2 : NULL);
    }
    after = d->labels;
    d->labels = before; /* operands are read first */
    muc_text_add(d->out, " = %s ", muc_eval_name(item->eval));
    if (item->eval == MUR_OP_TABLE)
        muc_text_add(d->out, "%u, ", item->second);
    print_slot(d, item->a);
    if (item->eval != MUR_OP_TABLE) {
        muc_text_add(d->out, ", ");
        if (item->immediate)
            muc_text_add(d->out, "%u", item->second);
        else
            print_slot(d, item->b);
    }
    if (item->eval == MUR_OP_SEL) {
        muc_text_add(d->out, ", ");
        print_slot(d, item->second);
    }
    d->labels = after;
}

static void print_for(disassembly *d, const muc_item *item, const char *name)
{
    muc_asm_labels before = d->labels;

    muc_text_add(d->out, item->streamed ? "stream " : "for ");
    print_definition(d, item->variable, name);
    muc_text_add(d->out, " < ");
    if (item->count.is_slot) {
        muc_asm_labels after = d->labels;

        d->labels = before;
        print_slot(d, item->count.value);
        d->labels = after;
        muc_text_add(d->out, " most %u", item->most);
    } else {
        muc_text_add(d->out, "%u", item->most);
    }
}

static bool is_printable(const disassembly *d, const muc_item *item, size_t at)
{
    if (item->kind == MUR_EVAL)
        return is_plain_eval(item);
    if (item->kind == MUR_FOR || item->kind == MUR_NEXT)
        return d->paired[at];
    return true;
}

/* finds the FORs whose body ends, as they say, at the NEXT that closes it */
static muc_status pair_loops(disassembly *d)
{
    size_t *open, depth = 0;

    MUC_TRY(MUC_ARENA_NEW(d->ctx, &d->arena, d->code_words, &d->paired));
    MUC_TRY(MUC_ARENA_NEW(d->ctx, &d->arena, d->code_words, &open));
    for (size_t at = 0, count; at < d->code_words; at += count ? count : 1) {
        muc_item item;

        count = muc_item_decode(d->code + at, d->code_words - at, &item);
        if (count && item.kind == MUR_FOR)
            open[depth++] = at;
        if (count && item.kind == MUR_NEXT && depth > 0) {
            size_t start = open[--depth];

            d->paired[start] = d->paired[at] = d->code[start + 2] == at - start - MUR_WORDS_FOR;
        }
    }
    return MUC_OK;
}

static void print_item(disassembly *d, const muc_item *item, size_t at)
{
    switch (item->kind) {
    case MUR_INST:
        print_instruction(d, item);
        break;
    case MUR_EVAL:
        print_eval(d, item, name_of(d, at));
        break;
    case MUR_FOR:
        print_for(d, item, name_of(d, at));
        break;
    default:
        muc_text_add(d->out, item->kind == MUR_NEXT ? "next" : "end");
        break;
    }
}

static void print_entry(disassembly *d, size_t at)
{
    for (uint32_t i = 0; i < d->program.entry_count; i++)
        if (d->program.entries[i].start == at) {
            muc_text_add(d->out, "\n; %s, m %u..%u\n",
                         muc_entry_name((muc_entry_kind)d->program.entries[i].kind),
                         d->program.entries[i].min_m, d->program.entries[i].max_m);
            muc_asm_labels_begin(&d->labels);
        }
}

static muc_status print_code(disassembly *d)
{
    size_t depth = 0;

    MUC_TRY(pair_loops(d));
    muc_asm_labels_begin(&d->labels);
    for (size_t at = 0, count; at < d->code_words; at += count) {
        muc_item item;

        count = muc_item_decode(d->code + at, d->code_words - at, &item);
        print_entry(d, at);
        if (count && is_printable(d, &item, at)) {
            depth -= item.kind == MUR_NEXT;
            begin_line(d, depth);
            print_item(d, &item, at);
            end_line(d, comment_of(d, at));
            depth += item.kind == MUR_FOR;
            continue;
        }
        for (size_t i = 0; i == 0 || i < count; i++) {
            begin_line(d, depth);
            muc_text_add(d->out, "word 0x%08x", d->code[at + i]);
            end_line(d, NULL);
        }
        count = count ? count : 1;
    }
    return MUC_OK;
}

/* ---- the file ---- */

static muc_status print_section(disassembly *d, enum mur_section section, muc_bytes bytes)
{
    muc_asm_row row = muc_asm_row_of(section);

    if (row.count)
        print_rows(d, &row, bytes);
    else if (section == MUR_SECTION_CODE)
        return print_code(d);
    else if (section == MUR_SECTION_TABL)
        print_tables(d);
    else if (section == MUR_SECTION_DEBG && d->names_whole)
        print_names(d);
    else
        print_hex(d, bytes);
    return MUC_OK;
}

/* words may ascend in any way; a search needs that they do */
static bool ascend(const muc_debug_name *names, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (names[i - 1].word >= names[i].word)
            return false;
    return true;
}

static muc_status read_names(disassembly *d)
{
    muc_bytes section = { d->program.section[MUR_SECTION_DEBG],
                          d->program.section_bytes[MUR_SECTION_DEBG], "DEBG" };

    if (!section.data)
        return MUC_OK;
    MUC_TRY(muc_debug_read(d->ctx, &d->arena, section, &d->names, &d->name_count, &d->names_whole));
    if (!ascend(d->names, d->name_count)) {
        d->names_whole = false;
        d->name_count = 0;
    }
    return MUC_OK;
}

static muc_status disassemble(disassembly *d, muc_bytes program)
{
    const mur_place *places = (const mur_place *)(const void *)(d->program.header + 1);
    size_t end = sizeof(mur_header) + d->program.header->sections * sizeof(mur_place);

    MUC_TRY(read_names(d));
    d->code = d->program.code;
    d->code_words = d->program.section_bytes[MUR_SECTION_CODE] / 4;
    muc_text_add(d->out, "utp %u.%u ; %s, %zu bytes\n", (unsigned)MUR_VERSION_MAJOR,
                 d->program.header->version >> 16, program.name, program.size);
    for (uint32_t i = 0; i < d->program.header->sections; i++) {
        enum mur_section section = 0;
        muc_bytes bytes = { program.data + places[i].offset, places[i].bytes, NULL };

        while (d->program.section[section] != bytes.data ||
               memcmp(&places[i].type, muc_section_name(section), 4) != 0)
            section++;
        end = (end + MUR_ALIGNMENT - 1) / MUR_ALIGNMENT * MUR_ALIGNMENT;
        muc_text_add(d->out, "\nsection %s", muc_section_name(section));
        if (places[i].offset != end)
            muc_text_add(d->out, " at %u", places[i].offset);
        muc_text_add(d->out, " ; %u bytes\n", places[i].bytes);
        MUC_TRY(print_section(d, section, bytes));
        end = places[i].offset + places[i].bytes;
    }
    return muc_text_status(d->ctx, d->out);
}

muc_status muc_uthinker_disassemble(muc_context *ctx, muc_bytes program, muc_text *out)
{
    disassembly d = { .ctx = ctx, .out = out };
    muc_container sections;
    muc_status status = muc_container_open(ctx, program, &sections, &d.program);

    if (status == MUC_OK)
        status = disassemble(&d, program);
    muc_arena_free(&d.arena);
    return status;
}

/* ---- resolved ---- */

/* A board that prints what it is given. */
typedef struct listing {
    muc_text *out;
    uint32_t issued[MUR_ENGINES];
} listing;

static mur_status list(listing *l, enum mur_engine engine, const uint32_t *words)
{
    const muc_insn_info *info;
    uint32_t op;

    if (!muc_insn_find_opcode(words[0] & MUC_WORD0_OPCODE, &op))
        return MUR_E_FAULT;
    info = muc_insn_get(op);
    muc_text_add(l->out, "%s", info->name);
    print_tokens(l->out, words[0] >> MUC_WORD0_WAIT_SHIFT,
                 words[0] >> MUC_WORD0_SIG_SHIFT & MUC_WORD0_SIG_MASK);
    for (uint32_t i = 0; i < muc_insn_fields(op); i++) {
        const muc_field_info *field = muc_field_get(info->first_field + i);

        muc_text_add(l->out, " %s=", field->name);
        print_number(l->out, info->first_field + i,
                     words[field->word] >> field->shift & muc_field_max(info->first_field + i));
    }
    muc_text_add(l->out, "\n");
    l->issued[engine]++;
    return l->out->failed ? MUR_E_FAULT : MUR_OK;
}

static mur_status list_dma(void *arg, const uint32_t *words)
{
    return list(arg, MUR_DMA, words);
}

static mur_status list_acc(void *arg, const uint32_t *words)
{
    return list(arg, MUR_ACC, words);
}

static mur_status list_cpu(void *arg, const uint32_t *words)
{
    return list(arg, MUR_CPU, words);
}

static uint32_t list_completed(void *arg, enum mur_engine engine)
{
    return ((const listing *)arg)->issued[engine];
}

muc_status muc_uthinker_list_resolved(muc_context *ctx, muc_bytes program, muc_entry_kind kind,
                                      uint32_t pos, uint32_t m, muc_text *out)
{
    listing l = { .out = out };
    const mur_hal hal = { &l, list_dma, list_acc, list_cpu, list_completed, NULL, NULL };
    mur_verifier verifier;
    muc_container sections;
    mur_program opened;
    mur_run_state run;

    MUC_TRY(muc_container_open(ctx, program, &sections, &opened));
    if (mur_verify(&opened, &verifier) != MUR_OK)
        return muc_fail(ctx, MUC_BUG, program.name, MUC_NO_OFFSET,
                        "the verifier refuses the program at word %u of CODE",
                        verifier.verdict.word);
    if (mur_start(&run, &opened, &hal, mur_find_entry(&opened, (enum mur_entry_kind)kind, m), pos,
                  m) != MUR_OK)
        return muc_fail(ctx, MUC_USAGE, program.name, MUC_NO_OFFSET,
                        "no %s of %u tokens from position %u: the context has %u positions",
                        muc_entry_name(kind), m, pos, opened.meta->context);
    if (mur_run(&run) != MUR_OK)
        return muc_text_status(ctx, out);
    return MUC_OK;
}
