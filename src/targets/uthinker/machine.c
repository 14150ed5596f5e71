/* machine.c - reads machine descriptions. */
#include "targets/uthinker/machine.h"

#include <string.h>

#include <machine_text.h> /* made by the build from machines/uthinker.ini */

enum { NAME_CHARACTERS = 64, BUFFER_MULTIPLE = 64 };

/* What a description says: the words of MACH in their order, then what bounds a program without
 * changing it, so that no fingerprint depends on it. */
static const char *const keys[] = { "isa", "ibuf0", "ibuf1", "wbuf0", "wbuf1",
                                    "gb",  "rows",  "flash", "dram" };

static const struct {
    uint32_t min, max;
} limits[MUC_COUNT(keys)] = {
#define MUR_MACH(name, min, max, meaning) { min, max },
#include "mur_sections.def"
    { 0, UINT32_MAX },
    { 0, UINT32_MAX },
};

enum {
    KEY_ISA,
    KEY_FIRST_BUFFER,
    KEY_ROWS = KEY_FIRST_BUFFER + MUR_BUFFERS,
    KEY_FLASH,
    KEY_DRAM,
    KEYS
};
_Static_assert(KEYS == MUC_COUNT(keys), "a key for every word of MACH and every bound");

typedef struct parser {
    muc_context *ctx;
    muc_arena *arena;
    muc_bytes text;
    size_t at; /* start of the line at hand */
    uint32_t line;
    bool in_section, seen[KEYS];
    uint32_t values[KEYS];
    const char *name;
} parser;

muc_bytes muc_uthinker_default_machine(void)
{
    muc_bytes text = { (const uint8_t *)machine_text, sizeof(machine_text) - 1, "uthinker.ini" };

    return text;
}

/* at: the byte that the message is about */
static muc_status refuse(const parser *p, size_t at, const char *message)
{
    return muc_fail(p->ctx, MUC_MALFORMED, p->text.name, at, "line %u, column %zu: %s", p->line,
                    at - p->at + 1, message);
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* cuts blanks at both ends of from..to */
static void trim(const parser *p, size_t *from, size_t *to)
{
    while (*from < *to && is_blank(p->text.data[*from]))
        ++*from;
    while (*to > *from && is_blank(p->text.data[*to - 1]))
        --*to;
}

static bool equals(const parser *p, size_t from, size_t to, const char *word)
{
    return to - from == strlen(word) && memcmp(p->text.data + from, word, to - from) == 0;
}

static muc_status read_number(parser *p, uint32_t key, size_t from, size_t to)
{
    bool is_buffer = key >= KEY_FIRST_BUFFER && key < KEY_ROWS;
    uint64_t value = 0;

    if (from == to)
        return refuse(p, from, "a number is missing");
    for (size_t i = from; i < to; i++) {
        uint8_t c = p->text.data[i];

        if (c < '0' || c > '9')
            return refuse(p, i, "not a digit");
        value = 10 * value + c - '0';
        if (value > UINT32_MAX)
            return refuse(p, from, "the number is too large");
    }
    if (key == KEY_ISA && value != limits[key].max)
        return muc_fail(p->ctx, MUC_UNSUPPORTED, p->text.name, from,
                        "line %u: isa %u, this compiler knows %u", p->line, (uint32_t)value,
                        limits[key].max);
    if (value < limits[key].min || value > limits[key].max)
        return muc_fail(p->ctx, MUC_MALFORMED, p->text.name, from,
                        "line %u: '%s' is %u, expected %u..%u", p->line, keys[key], (uint32_t)value,
                        limits[key].min, limits[key].max);
    if (is_buffer && value % BUFFER_MULTIPLE)
        return refuse(p, from, "not a multiple of 64 bytes");
    p->values[key] = (uint32_t)value;
    return MUC_OK;
}

static muc_status read_name(parser *p, size_t from, size_t to)
{
    if (p->name)
        return refuse(p, from, "'name' is there twice");
    if (from == to || to - from > NAME_CHARACTERS)
        return refuse(p, from, "a name has 1 to 64 characters");
    for (size_t i = from; i < to; i++)
        if (p->text.data[i] < ' ' || p->text.data[i] > '~')
            return refuse(p, i, "not a character of a name");
    return muc_arena_string(p->ctx, p->arena, (const char *)p->text.data + from, to - from,
                            &p->name);
}

static muc_status read_pair(parser *p, size_t from, size_t to)
{
    const uint8_t *equal = memchr(p->text.data + from, '=', to - from);
    size_t key_end, value, key = 0;

    if (!equal)
        return refuse(p, from, "expected key = value");
    if (!p->in_section)
        return refuse(p, from, "expected [machine] before the first key");
    key_end = (size_t)(equal - p->text.data);
    value = key_end + 1;
    trim(p, &from, &key_end);
    trim(p, &value, &to);
    if (equals(p, from, key_end, "name"))
        return read_name(p, value, to);
    while (key < KEYS && !equals(p, from, key_end, keys[key]))
        key++;
    if (key == KEYS)
        return refuse(p, from, "no such key");
    if (p->seen[key])
        return refuse(p, from, "this key is there twice");
    p->seen[key] = true;
    return read_number(p, (uint32_t)key, value, to);
}

static muc_status read_line(parser *p, size_t end)
{
    size_t from = p->at, to = end;

    for (size_t i = from; i < to; i++)
        if (p->text.data[i] == ';' || p->text.data[i] == '#')
            to = i;
    trim(p, &from, &to);
    if (from == to)
        return MUC_OK;
    if (p->text.data[from] != '[')
        return read_pair(p, from, to);
    if (!equals(p, from, to, "[machine]") || p->in_section)
        return refuse(p, from, "expected one section, [machine]");
    p->in_section = true;
    return MUC_OK;
}

muc_status muc_uthinker_read_machine(muc_context *ctx, muc_arena *arena, muc_bytes text,
                                     muc_uthinker_machine *out)
{
    parser p = { .ctx = ctx, .arena = arena, .text = text };

    while (p.at < text.size) {
        const uint8_t *newline = memchr(text.data + p.at, '\n', text.size - p.at);
        size_t end = newline ? (size_t)(newline - text.data) : text.size;

        p.line++;
        MUC_TRY(read_line(&p, end));
        p.at = end + 1;
    }
    for (uint32_t i = 0; i < KEYS; i++)
        if (!p.seen[i])
            return muc_fail(ctx, MUC_MALFORMED, text.name, text.size, "the key '%s' is missing",
                            keys[i]);
    if (!p.name)
        return muc_fail(ctx, MUC_MALFORMED, text.name, text.size, "the key 'name' is missing");
    out->name = p.name;
    memcpy(out->buffer_bytes, &p.values[KEY_FIRST_BUFFER], sizeof(out->buffer_bytes));
    out->rows = p.values[KEY_ROWS];
    out->flash_bytes = p.values[KEY_FLASH];
    out->dram_bytes = p.values[KEY_DRAM];
    return MUC_OK;
}
