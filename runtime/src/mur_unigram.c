/* mur_unigram.c - the likeliest pieces of a segment, from its begin to its end.
 *
 * For each position where a character ends, the least cost of a way there and the last piece on it;
 * costs are scores without their signs. Pieces that begin at a position are found in the index, one
 * byte after the other. 13 bytes of scratch for each byte of text.
 */
#include "mur_unigram.h"
#include "mur_encoder.h"

#include <string.h>

enum {
    WORDS = 3, /* of a position: its cost, low word first, and how the way there ends */
    UNREACHED = 0,
    PIECE = 1 << 29, /* and its id */
    BYTES = 1 << 30  /* and how many, of a character without a piece */
};

enum { FRACTION_BITS = 52, GUARD_BITS = 3 };

/* The sum of two numbers of binary64 that are not below 0, by their bits, rounded to even. */
static uint64_t add(uint64_t a, uint64_t b)
{
    const uint64_t one = (uint64_t)1 << FRACTION_BITS;
    const uint64_t large = a > b ? a : b, small = a > b ? b : a;
    uint32_t exponent = (uint32_t)(large >> FRACTION_BITS);
    const uint32_t other = (uint32_t)(small >> FRACTION_BITS);
    const uint32_t shift = (exponent != 0 ? exponent : 1) - (other != 0 ? other : 1);
    uint64_t sum = ((large & (one - 1)) | (exponent != 0 ? one : 0)) << GUARD_BITS;
    uint64_t rest = ((small & (one - 1)) | (other != 0 ? one : 0)) << GUARD_BITS;

    if (shift > FRACTION_BITS + GUARD_BITS)
        rest = rest != 0;
    else if (shift != 0)
        rest = rest >> shift | ((rest & (((uint64_t)1 << shift) - 1)) != 0);
    sum += rest;
    exponent = exponent != 0 ? exponent : 1;
    if (sum >> (FRACTION_BITS + GUARD_BITS + 1) != 0) {
        sum = sum >> 1 | (sum & 1);
        exponent++;
    }
    /* above half of the last place, or at half and odd */
    sum += (((uint64_t)1 << (GUARD_BITS - 1)) - 1) + (sum >> GUARD_BITS & 1);
    sum >>= GUARD_BITS;
    return ((uint64_t)(exponent - 1) << FRACTION_BITS) + sum; /* a carry goes into the exponent */
}

static uint64_t number_at(const uint32_t *words)
{
    return words[0] | (uint64_t)words[1] << 32;
}

/* A way to `end` that ends so, if it costs less than what is known. */
static void reach(uint32_t *end, uint64_t cost, uint32_t last)
{
    if (end[2] != UNREACHED && cost >= number_at(end))
        return;
    end[0] = (uint32_t)cost;
    end[1] = (uint32_t)(cost >> 32);
    end[2] = last;
}

/* Ways on from position `at` of the text, `left` bytes before its end, which `here` stands for. */
static void go_on(const mur_tokenizer *t, const uint8_t *text, size_t left, uint32_t *here,
                  uint64_t cost)
{
    const size_t character = mur_character_size(text, left);
    uint32_t low = 0, high = t->header->indexed, is_known = 0;

    for (size_t size = 1; size <= left && low < high; size++) {
        const uint32_t id = mur_index_narrow(t, &low, &high, text, size - 1);

        if (id == MUR_NO_TOKEN)
            continue;
        reach(here + WORDS * size, add(cost, number_at(t->merges + 2 * (size_t)id)), PIECE | id);
        is_known |= size == character;
    }
    if (!is_known)
        reach(here + WORDS * character,
              add(cost, number_at(t->merges + 2 * (size_t)t->header->pieces)),
              BYTES | (uint32_t)character);
}

/* Spaces as they are in pieces; returns the bytes. */
static size_t write_plain(const uint8_t *text, size_t size, uint32_t prefix, uint8_t *out)
{
    size_t count = 0;

    if (prefix)
        out[count++] = ' ';
    for (size_t at = 0; at < size; at++) {
        const int mark = mur_begins_with_mark(text + at, size - at);

        out[count++] = mark ? ' ' : text[at];
        at += mark ? 2 : 0;
    }
    return count;
}

/* Where the piece or character begins that a way to position `end` ends with. */
static size_t begin_of(const mur_tokenizer *t, const uint32_t *nodes, size_t end)
{
    const uint32_t last = nodes[WORDS * end + 2];
    const uint8_t *text;

    if (last & BYTES)
        return end - (last & ~(uint32_t)BYTES);
    return end - mur_tokenizer_piece(t, last & ~(uint32_t)PIECE, &text);
}

/* A character without a piece; *run: whether it follows one that became the unknown piece. */
static mur_status emit_character(mur_encoder *e, const uint8_t *text, size_t size, int *run)
{
    const mur_tokenizer *t = e->t;
    mur_status status = MUR_OK;
    int has_bytes = 1;

    for (size_t i = 0; i < size; i++)
        has_bytes = has_bytes && t->byte_ids[text[i]] != MUR_NO_TOKEN;
    for (size_t i = 0; i < size && has_bytes && status == MUR_OK; i++)
        status = mur_encoder_emit(e, t->byte_ids[text[i]]);
    if (!has_bytes && !*run)
        status = mur_encoder_emit(e, t->header->unknown);
    *run = !has_bytes;
    return status;
}

static mur_status encode_segment(mur_encoder *e, const uint8_t *text, size_t size, uint32_t prefix)
{
    uint32_t *nodes = e->id;
    uint8_t *plain = (uint8_t *)(nodes + WORDS * (size + 2));
    mur_status status = MUR_OK;
    size_t count;
    int run = 0;

    if (WORDS * 4 * (size + 2) + size + 1 > MUR_SYMBOL_BYTES * e->room)
        return MUR_E_NOFIT;
    count = write_plain(text, size, prefix, plain);
    for (size_t i = 0; i <= count; i++)
        nodes[WORDS * i + 2] = UNREACHED;
    for (size_t at = 0; at < count; at++) {
        uint32_t *here = nodes + WORDS * at;

        if (at == 0 || here[2] != UNREACHED)
            go_on(e->t, plain + at, count - at, here, at == 0 ? 0 : number_at(here));
    }
    /* turned around: each position's first word becomes where the piece from there on ends */
    for (size_t end = count; end > 0;) {
        const size_t begin = begin_of(e->t, nodes, end);

        nodes[WORDS * begin] = (uint32_t)end;
        end = begin;
    }
    for (size_t at = 0; at < count && status == MUR_OK;) {
        const size_t end = nodes[WORDS * at];
        const uint32_t last = nodes[WORDS * end + 2];

        if (last & BYTES) {
            status = emit_character(e, plain + at, end - at, &run);
        } else {
            status = mur_encoder_emit(e, last & ~(uint32_t)PIECE);
            run = 0;
        }
        at = end;
    }
    return status;
}

mur_status mur_unigram_open(mur_tokenizer *tokenizer, const void *form, size_t bytes,
                            mur_normalize *normalize)
{
    const mur_status status = mur_tokenizer_open_with(tokenizer, form, bytes, normalize,
                                                      encode_segment, MUR_TOKENIZER_UNIGRAM);

    if (status == MUR_OK && tokenizer->segment &&
        tokenizer->header->merges != tokenizer->header->pieces + 1)
        return MUR_E_MALFORMED;
    return status;
}
