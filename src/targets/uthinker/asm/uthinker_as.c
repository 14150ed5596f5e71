/* uthinker_as.c - text to a program file; uthinker_asm.h describes the text. */
#include "targets/uthinker/asm/uthinker_asm.h"

#include <string.h>

#include "targets/uthinker/asm/asm_words.h"
#include "targets/uthinker/isa/utp_container.h"
#include "targets/uthinker/isa/debug_names.h"
#include "targets/uthinker/isa/code_item.h"

enum { MAX_NAME = 4096, MAX_ZEROS = 4096, HEX = 16 };

typedef struct open_for {
    size_t at; /* its body's words, in the bytes of CODE */
    size_t line, column;
} open_for;

typedef struct assembly {
    muc_context *ctx;
    muc_arena *arena;
    muc_bytes text;
    size_t at, line_start, line;
    muc_text bytes[MUR_SECTIONS];
    muc_container_place places[MUR_SECTIONS];
    bool seen[MUR_SECTIONS], raw[MUR_SECTIONS]; /* raw: given, at least in part, as bytes */
    size_t place_count;
    enum mur_section section; /* that statements go to, once place_count is not 0 */
    uint32_t row;             /* MACH, META: words written */
    muc_asm_labels labels;
    open_for *open;
    size_t open_count, open_capacity;
    uint32_t *table_starts; /* bytes of TABL's words at which tables begin */
    size_t table_count, table_capacity;
    muc_debug_name *names;
    size_t name_count, name_capacity;
    uint32_t minor; /* version */
} assembly;

/* ---- characters ---- */

static muc_status refuse_at(const assembly *a, size_t at, const char *message)
{
    return muc_fail(a->ctx, MUC_MALFORMED, a->text.name, at, "line %zu, column %zu: %s", a->line,
                    at - a->line_start + 1, message);
}

static muc_status refuse(const assembly *a, const char *message)
{
    return refuse_at(a, a->at, message);
}

/* 0 at the end of the line, and at a comment */
static char peek(const assembly *a)
{
    char c = a->at < a->text.size ? (char)a->text.data[a->at] : '\n';

    return c == '\n' || c == ';' ? '\0' : c;
}

static void skip_blanks(assembly *a)
{
    while (peek(a) == ' ' || peek(a) == '\t' || peek(a) == '\r')
        a->at++;
}

static bool take(assembly *a, char c)
{
    skip_blanks(a);
    if (peek(a) != c)
        return false;
    a->at++;
    return true;
}

static muc_status need(assembly *a, char c, const char *message)
{
    return take(a, c) ? MUC_OK : refuse(a, message);
}

static muc_status end_statement(assembly *a)
{
    skip_blanks(a);
    return peek(a) == '\0' ? MUC_OK : refuse(a, "the statement should end here");
}

/* a word of letters, digits and '_'; length 0 if there is none */
static const char *take_word(assembly *a, size_t *length)
{
    const char *word;

    skip_blanks(a);
    word = (const char *)a->text.data + a->at;
    *length = muc_asm_identifier(word, a->text.size - a->at);
    a->at += *length;
    return word;
}

static bool is(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(word, name, length) == 0;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return HEX;
}

static bool at_number(assembly *a)
{
    skip_blanks(a);
    return peek(a) >= '0' && peek(a) <= '9';
}

static muc_status take_number(assembly *a, uint32_t *out)
{
    uint64_t value = 0;
    int base = 10;
    size_t start;

    skip_blanks(a);
    start = a->at;
    if (peek(a) == '0' && a->at + 1 < a->text.size && a->text.data[a->at + 1] == 'x') {
        base = HEX;
        a->at += 2;
        if (digit_of(peek(a)) >= HEX)
            return refuse(a, "a hexadecimal digit is missing");
    } else if (!at_number(a)) {
        return refuse(a, "expected a number");
    }
    for (; digit_of(peek(a)) < base; a->at++) {
        value = value * (uint64_t)base + (uint64_t)digit_of(peek(a));
        if (value > UINT32_MAX)
            return refuse_at(a, start, "the number does not fit in 32 bits");
    }
    *out = (uint32_t)value;
    return MUC_OK;
}

/* ---- bytes of sections ---- */

static void put_word(assembly *a, uint32_t word)
{
    uint8_t bytes[4];

    muc_store_u32(bytes, word);
    muc_text_add_bytes(&a->bytes[a->section], bytes, sizeof(bytes));
}

static muc_status assemble_hex(assembly *a)
{
    skip_blanks(a);
    while (digit_of(peek(a)) < HEX) {
        int high = digit_of(peek(a)), low;
        uint8_t byte;

        a->at++;
        low = digit_of(peek(a));
        if (low >= HEX)
            return refuse(a, "a byte has two digits");
        a->at++;
        byte = (uint8_t)(high * HEX + low);
        muc_text_add_bytes(&a->bytes[a->section], &byte, 1);
    }
    return MUC_OK;
}

static muc_status assemble_zeros(assembly *a)
{
    static const uint8_t zeros[MAX_ZEROS];
    uint32_t count;

    MUC_TRY(take_number(a, &count));
    if (count > MAX_ZEROS)
        return refuse(a, "at most 4096 zero bytes in one statement");
    muc_text_add_bytes(&a->bytes[a->section], zeros, count);
    return MUC_OK;
}

/* "name = 12", or "name=12 .." for all of a row */
static muc_status assemble_word_of_row(assembly *a, const muc_asm_row *row, uint32_t i)
{
    size_t length, start;
    const char *word;
    uint32_t value;

    skip_blanks(a);
    start = a->at;
    word = take_word(a, &length);
    if (!is(word, length, row->names[i]))
        return muc_fail(a->ctx, MUC_MALFORMED, a->text.name, start,
                        "line %zu, column %zu: expected '%s'", a->line, start - a->line_start + 1,
                        row->names[i]);
    MUC_TRY(need(a, '=', "expected '='"));
    MUC_TRY(take_number(a, &value));
    put_word(a, value);
    return MUC_OK;
}

static muc_status assemble_table(assembly *a, bool begins)
{
    if (begins) {
        MUC_TRY(muc_arena_grow(a->ctx, a->arena, a->table_count + 1, sizeof(*a->table_starts),
                               &a->table_capacity, (void **)&a->table_starts));
        a->table_starts[a->table_count++] = (uint32_t)a->bytes[MUR_SECTION_TABL].size;
    }
    while (at_number(a)) {
        uint32_t value;

        MUC_TRY(take_number(a, &value));
        put_word(a, value);
    }
    return MUC_OK;
}

/* "..." with \" \\ and \x41 */
static muc_status take_quoted(assembly *a, const char **out)
{
    char name[MAX_NAME];
    size_t length = 0;

    MUC_TRY(need(a, '"', "expected a name in quotes"));
    /* a ';' in quotes is not a comment, so the text is looked at directly */
    while (a->at < a->text.size && a->text.data[a->at] != '"' && a->text.data[a->at] != '\n') {
        uint8_t c = a->text.data[a->at++];

        if (c == '\\' && a->at + 2 < a->text.size && a->text.data[a->at] == 'x') {
            int high = digit_of((char)a->text.data[a->at + 1]);
            int low = digit_of((char)a->text.data[a->at + 2]);

            if (high >= HEX || low >= HEX || (high == 0 && low == 0))
                return refuse(a, "not the number of a character");
            c = (uint8_t)(high * HEX + low);
            a->at += 3;
        } else if (c == '\\' && a->at < a->text.size) {
            c = a->text.data[a->at++];
        }
        if (length + 1 == sizeof(name) || c == '\0')
            return refuse(a, "a name has up to 4095 characters, none of them zero");
        name[length++] = (char)c;
    }
    if (a->at == a->text.size || a->text.data[a->at] != '"')
        return refuse(a, "the name does not end on its line");
    a->at++;
    return muc_arena_string(a->ctx, a->arena, name, length, out);
}

static muc_status assemble_name(assembly *a)
{
    muc_debug_name name;

    MUC_TRY(take_number(a, &name.word));
    MUC_TRY(take_quoted(a, &name.name));
    MUC_TRY(muc_arena_grow(a->ctx, a->arena, a->name_count + 1, sizeof(*a->names),
                           &a->name_capacity, (void **)&a->names));
    a->names[a->name_count++] = name;
    return MUC_OK;
}

/* ---- CODE ---- */

static muc_status put_item(assembly *a, const muc_item *item, size_t start)
{
    uint32_t words[MUC_ITEM_MAX_WORDS], count = muc_item_encode(item, words);

    if (count == 0)
        return refuse_at(a, start, "a value does not fit its field");
    for (uint32_t i = 0; i < count; i++)
        put_word(a, words[i]);
    return MUC_OK;
}

static muc_status take_slot(assembly *a, uint32_t *out)
{
    size_t length, start;
    const char *word;

    skip_blanks(a);
    start = a->at;
    word = take_word(a, &length);
    *out = muc_asm_label_find(&a->labels, word, length);
    return *out < MUR_SLOTS ? MUC_OK : refuse_at(a, start, "no slot has this label here");
}

/* "P17:s5" or "s5": what a statement writes */
typedef struct definition {
    const char *label;
    size_t length; /* 0: none */
    uint32_t slot;
} definition;

static muc_status take_definition(assembly *a, definition *out)
{
    size_t length, start;
    const char *word;

    skip_blanks(a);
    start = a->at;
    word = take_word(a, &length);
    out->length = 0;
    if (take(a, ':')) {
        out->label = word;
        out->length = length;
        start = a->at;
        word = take_word(a, &length);
    }
    out->slot = length && word[0] == 's' ? muc_asm_label_find(&a->labels, word, length) : MUR_SLOTS;
    return out->slot < MUR_SLOTS ? MUC_OK : refuse_at(a, start, "expected a slot, s0 to s63");
}

static muc_status define(assembly *a, const definition *d, size_t start)
{
    if (muc_asm_label_set(&a->labels, d->slot, d->length ? d->label : "", d->length) ||
        d->length == 0)
        return MUC_OK;
    return refuse_at(a, start,
                     "a label is an identifier of up to 31 characters, not that of an "
                     "input or a slot");
}

static muc_status take_tokens(assembly *a, uint32_t *wait)
{
    do {
        uint32_t token;

        MUC_TRY(take_number(a, &token));
        if (token >= MUR_TOKENS)
            return refuse(a, "tokens are 0 to 15");
        *wait |= 1u << token;
    } while (take(a, ','));
    return MUC_OK;
}

static muc_status take_field_value(assembly *a, uint32_t field, muc_item_field *out)
{
    uint32_t count;
    const char *const *names = muc_asm_field_names(field, &count);
    size_t length, start = a->at;
    const char *word;

    if (at_number(a))
        return take_number(a, &out->value);
    word = take_word(a, &length);
    for (out->value = 0; out->value < count; out->value++)
        if (is(word, length, names[out->value]))
            return MUC_OK;
    a->at = start;
    out->is_slot = true;
    MUC_TRY(take_slot(a, &out->value));
    return take(a, '+') ? take_number(a, &out->more) : MUC_OK;
}

static muc_status take_field(assembly *a, muc_item *item, bool *seen)
{
    uint32_t first = muc_insn_get(item->op)->first_field, fields = muc_insn_fields(item->op), i = 0;
    size_t length, start;
    const char *word;

    skip_blanks(a);
    start = a->at;
    word = take_word(a, &length);
    MUC_TRY(need(a, '=', "expected field=value"));
    if (is(word, length, "wait"))
        return take_tokens(a, &item->wait);
    if (is(word, length, "sig")) {
        MUC_TRY(take_number(a, &item->sig));
        if (item->sig++ >= MUR_TOKENS)
            return refuse(a, "tokens are 0 to 15");
        return MUC_OK;
    }
    while (i < fields && !is(word, length, muc_field_get(first + i)->name))
        i++;
    if (i == fields)
        return refuse_at(a, start, "the instruction has no such field");
    if (seen[i])
        return refuse_at(a, start, "this field is there twice");
    seen[i] = true;
    return take_field_value(a, first + i, &item->fields[i]);
}

static muc_status assemble_instruction(assembly *a, uint32_t op, size_t start)
{
    muc_item item = { .kind = MUR_INST, .op = op };
    bool seen[MUC_INSN_MAX_FIELDS] = { false };

    for (skip_blanks(a); peek(a); skip_blanks(a))
        MUC_TRY(take_field(a, &item, seen));
    for (uint32_t i = 0; i < muc_insn_fields(op); i++)
        if (!seen[i])
            return muc_fail(a->ctx, MUC_MALFORMED, a->text.name, a->at,
                            "line %zu, column %zu: the field '%s' is missing", a->line,
                            a->at - a->line_start + 1,
                            muc_field_get(muc_insn_get(op)->first_field + i)->name);
    return put_item(a, &item, start);
}

static muc_status take_operator(assembly *a, uint32_t *op)
{
    size_t length, start;
    const char *word;

    skip_blanks(a);
    start = a->at;
    word = take_word(a, &length);
    for (*op = 0; *op < MUR_OPS; ++*op)
        if (muc_eval_name(*op) && *op != MUR_OP_SPAN && is(word, length, muc_eval_name(*op)))
            return MUC_OK;
    return refuse_at(a, start, "no such operator");
}

static muc_status take_operands(assembly *a, muc_item *item)
{
    if (item->eval == MUR_OP_TABLE) {
        MUC_TRY(take_number(a, &item->second));
        MUC_TRY(need(a, ',', "expected ','"));
        return take_slot(a, &item->a);
    }
    MUC_TRY(take_slot(a, &item->a));
    MUC_TRY(need(a, ',', "expected ','"));
    if (item->eval != MUR_OP_SEL && at_number(a)) {
        item->immediate = true;
        return take_number(a, &item->second);
    }
    MUC_TRY(take_slot(a, &item->b));
    if (item->eval != MUR_OP_SEL)
        return MUC_OK;
    MUC_TRY(need(a, ',', "expected ','"));
    return take_slot(a, &item->second);
}

/* "P17:s5 = ADD pos, 64", "P18:s6, P19:s7 = TABLE 3, P17" */
static muc_status assemble_eval(assembly *a, size_t start)
{
    muc_item item = { .kind = MUR_EVAL };
    definition first, second = { 0 };
    bool two;

    MUC_TRY(take_definition(a, &first));
    two = take(a, ',');
    if (two)
        MUC_TRY(take_definition(a, &second));
    MUC_TRY(need(a, '=', "expected '='"));
    MUC_TRY(take_operator(a, &item.eval));
    item.dst = first.slot;
    if (two != (item.eval == MUR_OP_TABLE && first.slot + 1 < MUR_SLOTS) ||
        (two && second.slot != first.slot + 1))
        return refuse_at(a, start, "TABLE writes a slot and the one after it, others one slot");
    MUC_TRY(take_operands(a, &item));
    MUC_TRY(define(a, &first, start));
    if (two)
        MUC_TRY(define(a, &second, start));
    return put_item(a, &item, start);
}

/* "for c:s9 < P20 most 8", "stream l:s3 < 5" */
static muc_status assemble_for(assembly *a, bool streamed, size_t start)
{
    muc_item item = { .kind = MUR_FOR, .streamed = streamed };
    definition variable;
    size_t length;

    MUC_TRY(take_definition(a, &variable));
    MUC_TRY(need(a, '<', "expected '<'"));
    if (at_number(a)) {
        MUC_TRY(take_number(a, &item.most));
        item.count.value = item.most;
    } else {
        const char *word;

        item.count.is_slot = true;
        MUC_TRY(take_slot(a, &item.count.value));
        word = take_word(a, &length);
        if (!is(word, length, "most"))
            return refuse(a, "expected 'most' and the largest count");
        MUC_TRY(take_number(a, &item.most));
    }
    item.variable = variable.slot;
    MUC_TRY(define(a, &variable, start));
    MUC_TRY(put_item(a, &item, start));
    MUC_TRY(muc_arena_grow(a->ctx, a->arena, a->open_count + 1, sizeof(*a->open), &a->open_capacity,
                           (void **)&a->open));
    a->open[a->open_count++] =
        (open_for){ a->bytes[MUR_SECTION_CODE].size, a->line, start - a->line_start + 1 };
    return MUC_OK;
}

static muc_status assemble_next(assembly *a, size_t start)
{
    muc_text *code = &a->bytes[MUR_SECTION_CODE];
    size_t body;

    if (a->open_count == 0)
        return refuse_at(a, start, "no 'for' is open");
    body = a->open[--a->open_count].at;
    if (!code->failed)
        muc_store_u32((uint8_t *)code->data + body - 4, (uint32_t)(code->size - body) / 4);
    return put_item(a, &(muc_item){ .kind = MUR_NEXT }, start);
}

static muc_status assemble_code(assembly *a, const char *word, size_t length, size_t start)
{
    uint32_t op, value;

    if (muc_insn_find_name(word, (uint32_t)length, &op))
        return assemble_instruction(a, op, start);
    if (is(word, length, "for") || is(word, length, "stream"))
        return assemble_for(a, is(word, length, "stream"), start);
    if (is(word, length, "next"))
        return assemble_next(a, start);
    if (is(word, length, "end"))
        return put_item(a, &(muc_item){ .kind = MUR_END }, start);
    if (is(word, length, "word")) {
        MUC_TRY(take_number(a, &value));
        put_word(a, value);
        return MUC_OK;
    }
    a->at = start;
    return assemble_eval(a, start);
}

/* ---- statements ---- */

static muc_status begin_section(assembly *a)
{
    size_t length, start;
    uint32_t section = 0;
    const char *word;

    skip_blanks(a);
    start = a->at;
    word = take_word(a, &length);
    while (section < MUR_SECTIONS && !is(word, length, muc_section_name(section)))
        section++;
    if (section == MUR_SECTIONS)
        return refuse_at(a, start, "no such section");
    if (a->seen[section])
        return refuse_at(a, start, "this section is there twice");
    if (a->open_count)
        return refuse_at(a, start, "a 'for' of section CODE has no 'next'");
    a->seen[section] = true;
    a->section = section;
    a->row = 0;
    a->places[a->place_count] = (muc_container_place){ .section = section };
    word = take_word(a, &length);
    if (is(word, length, "at"))
        MUC_TRY(take_number(a, &a->places[a->place_count].offset));
    else if (length)
        return refuse(a, "expected 'at' and an offset");
    a->place_count++;
    return MUC_OK;
}

static muc_status assemble_in_section(assembly *a, const char *word, size_t length, size_t start)
{
    muc_asm_row row = muc_asm_row_of(a->section);

    if (is(word, length, "hex") || is(word, length, "zero")) {
        a->raw[a->section] = true;
        return is(word, length, "hex") ? assemble_hex(a) : assemble_zeros(a);
    }
    if (row.count && !row.statement && a->row < row.count) {
        a->at = start;
        return assemble_word_of_row(a, &row, a->row++);
    }
    if (row.statement && is(word, length, row.statement)) {
        for (uint32_t i = 0; i < row.count; i++)
            MUC_TRY(assemble_word_of_row(a, &row, i));
        return MUC_OK;
    }
    if (a->section == MUR_SECTION_CODE)
        return assemble_code(a, word, length, start);
    if (a->section == MUR_SECTION_TABL && is(word, length, "table"))
        return assemble_table(a, true);
    if (a->section == MUR_SECTION_TABL && is(word, length, "values") && a->table_count)
        return assemble_table(a, false);
    if (a->section == MUR_SECTION_DEBG && is(word, length, "name"))
        return assemble_name(a);
    return refuse_at(a, start, "no such statement in this section");
}

static muc_status assemble_line(assembly *a, bool *begun)
{
    size_t length, start;
    const char *word;

    skip_blanks(a);
    if (peek(a) == '\0')
        return MUC_OK;
    start = a->at;
    word = take_word(a, &length);
    if (!*begun) {
        uint32_t major;

        if (!is(word, length, "utp"))
            return refuse_at(a, start, "expected 'utp 3.0' first");
        MUC_TRY(take_number(a, &major));
        MUC_TRY(need(a, '.', "expected '.'"));
        MUC_TRY(take_number(a, &a->minor));
        if (major != MUR_VERSION_MAJOR || a->minor > MUR_VERSION_MINOR)
            return refuse_at(a, start, "this assembler writes version 3.0");
        *begun = true;
    } else if (is(word, length, "section")) {
        MUC_TRY(begin_section(a));
    } else if (a->place_count == 0) {
        return refuse_at(a, start, "expected a section first");
    } else {
        MUC_TRY(assemble_in_section(a, word, length, start));
    }
    return end_statement(a);
}

/* TABL's count and starts go in front of the tables' words */
static muc_status finish_tables(assembly *a)
{
    muc_text words = a->bytes[MUR_SECTION_TABL], *out = &a->bytes[MUR_SECTION_TABL];
    uint32_t first = (uint32_t)a->table_count + 2;

    if (!a->seen[MUR_SECTION_TABL] || a->raw[MUR_SECTION_TABL])
        return MUC_OK;
    *out = (muc_text){ 0 };
    a->section = MUR_SECTION_TABL;
    put_word(a, (uint32_t)a->table_count);
    for (size_t i = 0; i < a->table_count; i++)
        put_word(a, first + a->table_starts[i] / 4);
    put_word(a, first + (uint32_t)(words.size / 4));
    muc_text_add_bytes(out, words.data, words.size);
    out->failed = out->failed || words.failed;
    muc_text_free(&words);
    return MUC_OK;
}

static muc_status finish_names(assembly *a)
{
    muc_bytes section;

    if (!a->seen[MUR_SECTION_DEBG] || a->raw[MUR_SECTION_DEBG])
        return MUC_OK;
    MUC_TRY(muc_debug_write(a->ctx, a->arena, a->names, a->name_count, &section));
    muc_text_add_bytes(&a->bytes[MUR_SECTION_DEBG], section.data, section.size);
    return MUC_OK;
}

static muc_status assemble(assembly *a, muc_bytes *out)
{
    bool begun = false;
    mur_program program;
    muc_container sections;

    while (a->at < a->text.size) {
        const uint8_t *newline;

        a->line++;
        a->line_start = a->at;
        MUC_TRY(assemble_line(a, &begun));
        newline = memchr(a->text.data + a->at, '\n', a->text.size - a->at);
        a->at = newline ? (size_t)(newline - a->text.data) + 1 : a->text.size;
    }
    if (a->open_count)
        return muc_fail(a->ctx, MUC_MALFORMED, a->text.name, a->at,
                        "line %zu, column %zu: this 'for' has no 'next'",
                        a->open[a->open_count - 1].line, a->open[a->open_count - 1].column);
    MUC_TRY(finish_tables(a));
    MUC_TRY(finish_names(a));
    for (size_t i = 0; i < a->place_count; i++) {
        muc_text *bytes = &a->bytes[a->places[i].section];

        MUC_TRY(muc_text_status(a->ctx, bytes));
        a->places[i].data = (const uint8_t *)bytes->data;
        a->places[i].size = bytes->size;
    }
    MUC_TRY(muc_container_write_places(a->ctx, a->arena, a->places, a->place_count, a->minor, out));
    out->name = a->text.name;
    return muc_container_open(a->ctx, *out, &sections, &program);
}

muc_status muc_uthinker_assemble(muc_context *ctx, muc_arena *arena, muc_bytes text, muc_bytes *out)
{
    assembly a = { .ctx = ctx, .arena = arena, .text = text };
    muc_status status;

    muc_asm_labels_begin(&a.labels);
    status = assemble(&a, out);
    for (uint32_t i = 0; i < MUR_SECTIONS; i++)
        muc_text_free(&a.bytes[i]);
    return status;
}
