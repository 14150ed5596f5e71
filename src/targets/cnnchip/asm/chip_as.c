/* chip_as.c - text to programs of the CNN chip: a line is a directive or an instruction. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "targets/cnnchip/isa/chip_program.h"

enum { MOST_WORD = 64 };

typedef struct assembler {
    muc_context *ctx;
    muc_arena *arena;
    muc_bytes text;
    size_t at, end; /* of the line */
    uint32_t line;
    unsigned seen; /* directives that come once, bit by bit */
    muc_cnnchip_program program;
    uint8_t *code;
    size_t code_capacity, port_capacity;
    char word[MOST_WORD]; /* the last that was read, NUL-terminated */
} assembler;

static muc_status fail(const assembler *a, const char *what)
{
    return muc_fail(a->ctx, MUC_MALFORMED, a->text.name, a->at, "line %u: '%s': %s", a->line,
                    a->word, what);
}

/* false at the end of the line */
static bool next_word(assembler *a)
{
    size_t size = 0;

    a->word[0] = '\0';
    while (a->at < a->end && isspace(a->text.data[a->at]))
        a->at++;
    if (a->at == a->end || a->text.data[a->at] == ';')
        return false;
    while (a->at < a->end && !isspace(a->text.data[a->at]) && a->text.data[a->at] != ';') {
        if (size + 1 < MOST_WORD)
            a->word[size++] = (char)a->text.data[a->at];
        a->at++;
    }
    a->word[size] = '\0';
    return true;
}

/* ---- numbers ---- */

static muc_status parse_count(const assembler *a, const char *text, uint32_t *out)
{
    char *end;
    unsigned long long value;

    if (!isdigit((unsigned char)text[0]))
        return fail(a, "expected a number");
    value = strtoull(text, &end, text[0] == '0' && text[1] == 'x' ? 16 : 10);
    if (*end || value > UINT32_MAX)
        return fail(a, "expected a number of at most 32 bits");
    *out = (uint32_t)value;
    return MUC_OK;
}

static muc_status parse_signed(const assembler *a, const char *text, uint32_t *out)
{
    MUC_TRY(parse_count(a, text + (text[0] == '-'), out));
    if (text[0] == '-')
        *out = 0u - *out;
    return MUC_OK;
}

static muc_status parse_real(const assembler *a, const char *text, uint32_t *out)
{
    float value;
    char *end;

    if (text[0] == '0' && text[1] == 'x')
        return parse_count(a, text, out);
    if (!isdigit((unsigned char)text[text[0] == '-']))
        return fail(a, "expected a real number");
    value = strtof(text, &end);
    *out = muc_f32_bits(value);
    return *end ? fail(a, "expected a real number") : MUC_OK;
}

static muc_status next_count(assembler *a, uint32_t *out)
{
    next_word(a);
    return parse_count(a, a->word, out);
}

/* ---- directives ---- */

static muc_status read_element(assembler *a)
{
    next_word(a);
    for (uint32_t i = 0; muc_cnnchip_element_name(i); i++)
        if (strcmp(a->word, muc_cnnchip_element_name(i)) == 0) {
            a->program.element = i;
            return MUC_OK;
        }
    return fail(a, "expected fp32, fp16 or int8");
}

static muc_status read_port(assembler *a)
{
    muc_cnnchip_program *p = &a->program;
    muc_cnnchip_port port = { 0 };
    uint32_t *const counts[] = {
        &port.address, &port.c, &port.h, &port.w, &port.rows, &port.pitch
    };
    uint32_t bits;

    next_word(a);
    while (muc_cnnchip_port_name(port.kind) &&
           strcmp(a->word, muc_cnnchip_port_name(port.kind)) != 0)
        port.kind++;
    if (!muc_cnnchip_port_name(port.kind))
        return fail(a, "expected input, output, read or written");
    for (size_t i = 0; i < MUC_COUNT(counts); i++)
        MUC_TRY(next_count(a, counts[i]));
    next_word(a);
    MUC_TRY(parse_real(a, a->word, &bits));
    port.scale = muc_f32_of_bits(bits);
    next_word(a);
    MUC_TRY(parse_signed(a, a->word, &bits));
    port.zero = (int32_t)bits;
    MUC_TRY(next_count(a, &port.step));
    MUC_TRY(next_count(a, &port.last));
    MUC_TRY(muc_arena_grow(a->ctx, a->arena, p->port_count + (size_t)1, sizeof(port),
                           &a->port_capacity, (void **)&p->ports));
    p->ports[p->port_count++] = port;
    return MUC_OK;
}

static muc_status read_directive(assembler *a)
{
    static const char *const once[] = { ".element", ".pes", ".frame", ".filter" };
    muc_cnnchip_program *p = &a->program;
    unsigned which = 0;

    if (strcmp(a->word, ".port") == 0)
        return read_port(a);
    while (which < MUC_COUNT(once) && strcmp(a->word, once[which]) != 0)
        which++;
    if (which == MUC_COUNT(once) || a->seen >> which & 1)
        return fail(a, "no such directive, or it was given before");
    a->seen |= 1u << which;
    if (which == 0)
        return read_element(a);
    if (which == 1)
        return next_count(a, &p->pes);
    MUC_TRY(next_count(a, which == 2 ? &p->frame_bytes : &p->filter_bytes));
    MUC_TRY(next_count(a, which == 2 ? &p->frame_image_bytes : &p->filter_image_bytes));
    return next_count(a, which == 2 ? &p->frame_crc : &p->filter_crc);
}

/* ---- instructions ---- */

static bool find_op(const char *word, muc_cnnchip_op *op)
{
    for (uint32_t i = 0; i < MUC_CNNCHIP_OPS; i++) {
        const char *name = muc_cnnchip_op_get((muc_cnnchip_op)i).name;
        size_t k = 0;

        while (name[k] && tolower((unsigned char)name[k]) == word[k])
            k++;
        if (!name[k] && !word[k]) {
            *op = (muc_cnnchip_op)i;
            return true;
        }
    }
    return false;
}

static bool find_flag(const char *word, uint32_t *flag)
{
    for (unsigned bit = 0; bit < 8; bit++)
        if (muc_cnnchip_flag_name(bit) && strcmp(word, muc_cnnchip_flag_name(bit)) == 0) {
            *flag = 1u << bit;
            return true;
        }
    return false;
}

static muc_status read_field(const assembler *a, muc_cnnchip_insn *insn, const char *value)
{
    muc_cnnchip_op_info info = muc_cnnchip_op_get(insn->op);
    size_t length = (size_t)(value - a->word) - 1;

    if (length == 5 && memcmp(a->word, "layer", length) == 0) {
        MUC_TRY(parse_count(a, value, &insn->layer));
        return insn->layer <= UINT16_MAX ? MUC_OK : fail(a, "a layer is at most 65535");
    }
    for (uint32_t i = 0; i < info.field_count; i++) {
        const muc_cnnchip_field *field = &info.fields[i];
        uint32_t *out = muc_cnnchip_at(insn, field);

        if (strlen(field->name) != length || memcmp(field->name, a->word, length) != 0)
            continue;
        if (field->kind == MUC_CNNCHIP_KIND_real)
            MUC_TRY(parse_real(a, value, out));
        else if (field->kind == MUC_CNNCHIP_KIND_signed)
            MUC_TRY(parse_signed(a, value, out));
        else
            MUC_TRY(parse_count(a, value, out));
        return muc_cnnchip_fits(field, *out) ? MUC_OK : fail(a, "too large for its field");
    }
    return fail(a, "the instruction has no such field");
}

static muc_status read_insn(assembler *a)
{
    muc_cnnchip_program *p = &a->program;
    muc_cnnchip_insn insn = { 0 };
    uint32_t bytes;

    if (!find_op(a->word, &insn.op))
        return fail(a, "no such instruction");
    while (next_word(a)) {
        const char *equals = strchr(a->word, '=');
        uint32_t flag;

        if (equals)
            MUC_TRY(read_field(a, &insn, equals + 1));
        else if (find_flag(a->word, &flag))
            insn.flags |= flag;
        else
            return fail(a, "expected a flag, or field=value");
    }
    bytes = 4 * muc_cnnchip_op_get(insn.op).words;
    MUC_TRY(muc_arena_grow(a->ctx, a->arena, p->code_bytes + (size_t)bytes, 1, &a->code_capacity,
                           (void **)&a->code));
    muc_cnnchip_write_insn(&insn, a->code + p->code_bytes);
    p->code_bytes += bytes;
    p->insn_count++;
    return MUC_OK;
}

static muc_status read_line(assembler *a)
{
    bool is_directive;

    if (!next_word(a))
        return MUC_OK;
    is_directive = a->word[0] == '.';
    MUC_TRY(is_directive ? read_directive(a) : read_insn(a));
    return next_word(a) ? fail(a, "nothing more is expected on this line") : MUC_OK;
}

bool muc_cnnchip_is_assembly(muc_bytes text)
{
    assembler a = { .text = text };

    while (a.at < text.size) {
        const uint8_t *newline = memchr(text.data + a.at, '\n', text.size - a.at);

        a.end = newline ? (size_t)(newline - text.data) : text.size;
        if (next_word(&a))
            return strcmp(a.word, ".element") == 0;
        a.at = a.end + 1;
    }
    return false;
}

muc_status muc_cnnchip_assemble(muc_context *ctx, muc_arena *arena, muc_bytes text, muc_bytes *out)
{
    assembler a = { .ctx = ctx, .arena = arena, .text = text };
    muc_cnnchip_program check;

    while (a.at < text.size) {
        const uint8_t *newline = memchr(text.data + a.at, '\n', text.size - a.at);

        a.end = newline ? (size_t)(newline - text.data) : text.size;
        a.line++;
        MUC_TRY(read_line(&a));
        a.at = a.end + 1;
    }
    if (a.seen != 15)
        return muc_fail(ctx, MUC_MALFORMED, text.name, text.size,
                        "one of .element, .pes, .frame, .filter is missing");
    a.program.code = a.code;
    MUC_TRY(muc_cnnchip_write_program(ctx, arena, &a.program, out));
    out->name = text.name;
    return muc_cnnchip_read_program(ctx, arena, *out, &check);
}
