/* mur_split.c - cuts text by the tables of mur_split.h. */
#include "mur_split.h"

enum { FAILED, START, STATE_MASK = MUR_SPLIT_MATCH - 1, STRAY_BYTE = 0xfffd };

static int runs_ok(const mur_splitter *s)
{
    for (uint32_t i = 0; i < s->run_count; i++)
        if ((s->runs[i] & 0xff) >= s->columns - 1 ||
            (i == 0 ? s->runs[0] >> 8 != 0 : s->runs[i - 1] >> 8 >= s->runs[i] >> 8))
            return 0;
    return 1;
}

/* Failure and the end of the text end every match, so the states need no other check. */
static int stage_ok(const mur_splitter *s, const uint16_t *table, uint32_t states)
{
    for (uint32_t i = 0; i < states * s->columns; i++) {
        const uint32_t next = table[i] & STATE_MASK, column = i % s->columns;

        if (next >= states || ((i < s->columns || column == s->columns - 1) && next != FAILED))
            return 0;
    }
    return 1;
}

int mur_split_open(mur_splitter *s, const uint32_t *words, size_t count)
{
    size_t at = 3;

    s->stage_count = 0;
    if (count == 0)
        return 1;
    if (count < 3 || words[0] > MUR_SPLIT_STAGES || words[1] == 0 || words[1] > count - 3 ||
        words[2] == 0 || words[2] > 255)
        return 0;
    s->stage_count = words[0];
    s->run_count = words[1];
    s->columns = words[2] + 1;
    s->runs = words + at;
    at += s->run_count;
    for (uint32_t i = 0; i < s->stage_count; i++) {
        const uint32_t states = at < count ? words[at++] : 0;
        size_t size;

        if (states <= START || states > STATE_MASK)
            return 0;
        size = ((size_t)states * s->columns + 1) / 2;
        if (size > count - at)
            return 0;
        s->stages[i] = (const uint16_t *)(const void *)(words + at);
        if (!stage_ok(s, s->stages[i], states))
            return 0;
        at += size;
    }
    return at == count && runs_ok(s);
}

/* The class of the character at `at`, and its bytes; a byte that starts no whole character is one
 * of its own. */
static uint32_t class_at(const mur_splitter *s, const uint8_t *text, size_t size, size_t at,
                         size_t *length)
{
    uint32_t low = 0, high = s->run_count, code, wanted;

    *length = 0;
    if (at >= size)
        return s->columns - 1;
    code = text[at];
    wanted = code < 0x80 ? 1 : code < 0xc0 ? 0 : code < 0xe0 ? 2 : code < 0xf0 ? 3 : 4;
    *length = wanted;
    if (wanted > 1)
        code &= 0x7fu >> wanted;
    for (size_t i = 1; i < *length; i++) {
        if (i >= size - at || (text[at + i] & 0xc0) != 0x80)
            wanted = 0;
        else
            code = code << 6 | (text[at + i] & 0x3fu);
    }
    if (wanted == 0 || code > 0x10ffff) {
        *length = 1;
        code = STRAY_BYTE;
    }
    /* the last run that starts at or before the character */
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;

        if (s->runs[middle] >> 8 <= code)
            low = middle;
        else
            high = middle;
    }
    return s->runs[low] & 0xff;
}

/* Where the match at `at` ends; `at` if there is none. */
static size_t match_end(const mur_splitter *s, const uint16_t *table, const uint8_t *text,
                        size_t size, size_t at)
{
    size_t end = at, length;

    for (uint32_t state = START; state != FAILED; at += length) {
        const uint32_t entry = table[state * s->columns + class_at(s, text, size, at, &length)];

        if (entry & MUR_SPLIT_MATCH)
            end = at;
        state = entry & STATE_MASK;
    }
    return end;
}

static uint32_t state_after(const mur_splitter *s, const uint16_t *table, uint32_t state,
                            uint32_t class)
{
    return table[state * s->columns + class] & STATE_MASK;
}

/* The match at `at`, or all that lies before the next one. */
static size_t piece_end(const mur_splitter *s, const uint16_t *table, const uint8_t *text,
                        size_t size, size_t at)
{
    size_t end = match_end(s, table, text, size, at), length;

    if (end > at)
        return end;
    while (at < size) {
        const uint32_t here = class_at(s, text, size, at, &length);
        const uint32_t next = class_at(s, text, size, at += length, &length);

        /* what led to a failure from here leads to it from there too */
        if (state_after(s, table, state_after(s, table, START, here), next) !=
                state_after(s, table, START, next) &&
            match_end(s, table, text, size, at) > at)
            break;
    }
    return at;
}

size_t mur_split_next(const mur_splitter *s, mur_cuts *cuts, const uint8_t *text, size_t size,
                      size_t at)
{
    for (uint32_t i = 0; i < s->stage_count; i++) {
        if (cuts->ends[i] == at)
            cuts->ends[i] = piece_end(s, s->stages[i], text, size, at);
        size = cuts->ends[i];
    }
    return size;
}
