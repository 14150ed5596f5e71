/* mur_split.c - the pre-tokenizer patterns of byte-level BPE, without a regular expression engine.
 *
 * The published patterns share one shape; a row of mur_pattern.def says how each differs. Their
 * alternatives, in order, for the GPT-2 and the Llama 3 family:
 *
 *   contraction   's|'t|'re|'ve|'m|'ll|'d       (?i:'s|'t|'re|'ve|'m|'ll|'d)
 *   word          ` ?\p{L}+`                    [^\r\n\p{L}\p{N}]?\p{L}+
 *   number        ` ?\p{N}+`                    \p{N}{1,3} or \p{N}
 *   punctuation   ` ?[^\s\p{L}\p{N}]+`          ` ?[^\s\p{L}\p{N}]+[\r\n]*`
 *   white space   \s+(?!\S)|\s+                 \s*[\r\n]+|\s+(?!\S)|\s+
 */
#include "mur_tokenizer.h"

#include "gen/mur_unicode.h"

enum { OTHER, LETTER, NUMBER, SPACE };

typedef struct traits {
    uint8_t contractions, any_prefix, max_digits, digit_prefix, breaks_at_digits, newline_tail;
} traits;

static const traits pattern_traits[] = {
#define MUR_PATTERN(name, value, contractions, any_prefix, max_digits, digit_prefix, \
                    breaks_at_digits, newline_tail, meaning) \
    { contractions, any_prefix, max_digits, digit_prefix, breaks_at_digits, newline_tail },
#include "mur_pattern.def"
#undef MUR_PATTERN
};

/* A character of the text; size 0 at its end. */
typedef struct character {
    uint32_t code, class;
    size_t size;
} character;

static uint32_t class_of(uint32_t code)
{
    uint32_t low = 0, high = sizeof(unicode_runs) / sizeof(unicode_runs[0]);

    /* the last run that starts at or before code */
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;

        if (unicode_runs[middle] >> 2 <= code)
            low = middle;
        else
            high = middle;
    }
    return unicode_runs[low] & 3;
}

/* A byte that starts no whole character is one of class OTHER. */
static character character_at(const uint8_t *text, size_t size, size_t at)
{
    static const uint8_t lead_mask[5] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    character c = { 0, OTHER, 0 };
    uint32_t wanted;

    if (at >= size)
        return c;
    c.code = text[at];
    c.size = 1;
    wanted = c.code < 0x80 ? 1 : c.code < 0xc0 ? 0 : c.code < 0xe0 ? 2 : c.code < 0xf0 ? 3 : 4;
    if (wanted == 0 || wanted > size - at || c.code >= 0xf8)
        return c;
    c.code &= lead_mask[wanted];
    for (uint32_t i = 1; i < wanted; i++) {
        if ((text[at + i] & 0xc0) != 0x80)
            return c;
        c.code = c.code << 6 | (text[at + i] & 0x3fu);
    }
    c.size = wanted;
    c.class = class_of(c.code);
    return c;
}

static int is_newline(character c)
{
    return c.size > 0 && (c.code == '\r' || c.code == '\n');
}

/* Where the run of at most `limit` characters (0: any number) of a class that starts at `at` ends.
 */
static size_t run_end(const uint8_t *text, size_t size, size_t at, uint32_t class, uint32_t limit)
{
    character c = character_at(text, size, at);

    for (uint32_t n = 1; c.size > 0 && c.class == class; n++) {
        at += c.size;
        if (n == limit)
            break;
        c = character_at(text, size, at);
    }
    return at;
}

/* Lower case of a letter that a contraction can have. */
static uint32_t folded(character c)
{
    if (c.code >= 'A' && c.code <= 'Z')
        return c.code + ('a' - 'A');
    return c.code == 0x17f ? 's' : c.code; /* the long s */
}

/* Where a contraction at the head of the text ends, or 0. */
static size_t contraction_end(const uint8_t *text, size_t size, int either_case)
{
    const character a = character_at(text, size, 1), b = character_at(text, size, 1 + a.size);
    const uint32_t first = either_case ? folded(a) : a.code;
    const uint32_t second = either_case ? folded(b) : b.code;

    if (text[0] != '\'' || a.size == 0)
        return 0;
    if (first == 's' || first == 't' || first == 'm' || first == 'd')
        return 1 + a.size;
    if (b.size > 0 &&
        ((second == 'e' && (first == 'r' || first == 'v')) || (second == 'l' && first == 'l')))
        return 1 + a.size + b.size;
    return 0;
}

static size_t white_space_end(const traits *p, const uint8_t *text, size_t size)
{
    size_t at = 0, last = 0, newline = 0;
    character c = character_at(text, size, 0);

    for (; c.size > 0 && c.class == SPACE; c = character_at(text, size, at)) {
        last = at;
        at += c.size;
        if (is_newline(c))
            newline = at;
    }
    if (p->newline_tail && newline > 0)
        return newline;
    /* the last space is left to the word that follows, if anything precedes it */
    if (c.size == 0 || (p->breaks_at_digits && c.class == NUMBER) || last == 0)
        return at;
    return last;
}

static size_t punctuation_end(const traits *p, const uint8_t *text, size_t size, size_t at)
{
    at = run_end(text, size, at, OTHER, 0);
    while (p->newline_tail && at < size && is_newline(character_at(text, size, at)))
        at++;
    return at;
}

size_t mur_split_unicode(mur_pattern pattern, const uint8_t *text, size_t size)
{
    const traits *p = &pattern_traits[pattern];
    const character first = character_at(text, size, 0);
    const character second = character_at(text, size, first.size);
    const int is_space = first.code == ' ';
    size_t end = p->contractions ? contraction_end(text, size, p->contractions == 2) : 0;

    if (end > 0)
        return end;
    if (first.class == LETTER)
        return run_end(text, size, 0, LETTER, 0);
    if (second.size > 0 && second.class == LETTER &&
        (is_space || (p->any_prefix && first.class != NUMBER && !is_newline(first))))
        return run_end(text, size, first.size, LETTER, 0);
    if (first.class == NUMBER)
        return run_end(text, size, 0, NUMBER, p->max_digits);
    if (is_space && p->digit_prefix && second.size > 0 && second.class == NUMBER)
        return run_end(text, size, 1, NUMBER, p->max_digits);
    if (first.class == OTHER)
        return punctuation_end(p, text, size, 0);
    if (is_space && second.size > 0 && second.class == OTHER)
        return punctuation_end(p, text, size, 1);
    return white_space_end(p, text, size);
}
