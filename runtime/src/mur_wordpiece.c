/* mur_wordpiece.c - the longest pieces of each word, over a map of characters.
 *
 * A word is gathered at the scratch's start: of a byte of text come 3 at most. Pieces are found in
 * the index, one byte after the other, so the time is in proportion to the longest piece.
 */
#include "mur_wordpiece.h"
#include "mur_encoder.h"
#include "mur_utf8.h"

enum {
    CODE_BITS = 21,
    CODE_MASK = (1 << CODE_BITS) - 1,
    KIND_MASK = 7,
    SECOND_SHIFT = 25, /* of its high bits, which come after 11 low ones */
    SECOND_LOW_BITS = 11,
    STRAY_BYTE = 0xfffd,
    HANGUL = 0xac00, /* syllables, of which the standard gives arithmetic */
    LEADS = 0x1100,
    VOWELS = 0x1161,
    TAILS = 0x11a7,
    TAIL_COUNT = 28,
    LEAD_SYLLABLES = 21 * TAIL_COUNT
};

typedef struct word {
    uint8_t *text; /* after a space */
    size_t size;
    uint32_t characters;
} word;

static uint32_t run_count(const mur_tokenizer *t)
{
    return t->header->merges - 1;
}

static const uint32_t *find_run(const mur_tokenizer *t, uint32_t code)
{
    uint32_t low = 0, high = run_count(t);

    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;

        if ((t->merges[2 * middle] & CODE_MASK) <= code)
            low = middle;
        else
            high = middle;
    }
    return t->merges + 2 * (size_t)low;
}

static void add_character(word *w, uint32_t code)
{
    w->size += mur_utf8_write(code, w->text + w->size);
    w->characters++;
}

static void add_syllable(word *w, uint32_t code)
{
    const uint32_t place = code - HANGUL, tail = place % TAIL_COUNT;

    add_character(w, LEADS + place / LEAD_SYLLABLES);
    add_character(w, VOWELS + place % LEAD_SYLLABLES / TAIL_COUNT);
    if (tail)
        add_character(w, TAILS + tail);
}

/* The longest piece that the text begins with, or MUR_NO_TOKEN; its bytes go to *length. */
static uint32_t longest_piece(const mur_tokenizer *t, const uint8_t *text, size_t size,
                              size_t *length)
{
    uint32_t low = 0, high = t->header->indexed, longest = MUR_NO_TOKEN;

    for (size_t at = 0; at < size && low < high; at++) {
        const uint32_t id = mur_index_narrow(t, &low, &high, text, at);

        if (id != MUR_NO_TOKEN) {
            longest = id;
            *length = at + 1;
        }
    }
    return longest;
}

/* Emits the word's pieces and begins another. */
static mur_status end_word(mur_encoder *e, word *w)
{
    const mur_tokenizer *t = e->t;
    const size_t first = e->count, size = w->size;
    const int is_long = w->characters > t->merges[2 * (size_t)run_count(t)];
    mur_status status = MUR_OK;
    size_t length = 0;

    w->size = 1;
    w->characters = 0;
    for (size_t at = 0; size > 1 && at < size && status == MUR_OK; at += length) {
        const uint32_t id =
            is_long ? MUR_NO_TOKEN : longest_piece(t, w->text + at, size - at, &length);

        if (id == MUR_NO_TOKEN) {
            e->count = first;
            return mur_encoder_emit(e, t->header->unknown);
        }
        status = mur_encoder_emit(e, id);
    }
    return status;
}

/* What the character becomes; `run`: the one that it is in. */
static void add_mapped(word *w, uint32_t code, const uint32_t *run)
{
    const uint32_t kind = run[0] >> CODE_BITS & KIND_MASK;

    if (kind == MUR_MAP_ADD) {
        add_character(w, (code + run[1]) & CODE_MASK);
    } else if (kind == MUR_MAP_PARTS) {
        add_character(w, run[1] & CODE_MASK);
        add_character(w, run[0] >> SECOND_SHIFT << SECOND_LOW_BITS | run[1] >> CODE_BITS);
    } else if (kind == MUR_MAP_HANGUL) {
        add_syllable(w, code);
    }
}

static mur_status encode_segment(mur_encoder *e, const uint8_t *text, size_t size, uint32_t prefix)
{
    word w = { (uint8_t *)e->id, 1, 0 };
    mur_status status = MUR_OK;
    size_t length;

    (void)prefix; /* every word has one */
    w.text[0] = ' ';
    for (size_t at = 0; at < size && status == MUR_OK; at += length) {
        uint32_t code = mur_utf8_read(text + at, size - at, &length), alone;
        const uint32_t *run;

        code = code < MUR_RAW_BYTE ? code : STRAY_BYTE;
        run = find_run(e->t, code);
        alone = run[0] & MUR_MAP_ALONE;
        if (alone || (run[0] >> CODE_BITS & KIND_MASK) == MUR_MAP_SPACE)
            status = end_word(e, &w);
        add_mapped(&w, code, run);
        if (alone && status == MUR_OK)
            status = end_word(e, &w);
    }
    return status == MUR_OK ? end_word(e, &w) : status;
}

mur_status mur_wordpiece_open(mur_tokenizer *tokenizer, const void *form, size_t bytes,
                              mur_normalize *normalize)
{
    const mur_status status = mur_tokenizer_open_with(tokenizer, form, bytes, normalize,
                                                      encode_segment, MUR_TOKENIZER_WORDPIECE);

    if (status == MUR_OK && tokenizer->segment && tokenizer->header->merges < 2)
        return MUR_E_MALFORMED;
    return status;
}
