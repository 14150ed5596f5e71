/* mur_attend.h - a decoder's attention in integers: what every instruction set computes, and what
 * each does in its own way.
 *
 * Scales of a cache, of a head: 16-bit mantissas m [context], then 8-bit exponents e [context]. The
 * scale of position t is m[t] * 2^(e[t] - B) with B bits for keys or values. With `need` the
 * greatest magnitude (at most 2^120) / 127 and 2^(x - 1) <= need < 2^x,
 *     e[t] = e[t - 1], or x + 1 if x is greater;  m[t] = min(floor(need * 2^(B - e[t])) + 1, 32767)
 * or e[t] = e[t - 1] and m[t] = 0 where that magnitude is below 2^-100; before position 0 the
 * exponent is MUR_ATTEND_EXPONENT. Exponents never fall, so a query at pos aligns mantissas by
 * shifts: a[t] = m[t] >> (e[pos] - e[t]).
 *
 * A query q (int8, scale s) of a head of `width` columns scores the positions t that it sees:
 *     score[t] = MUR_ATTEND_ZERO + (((sum of q * key[t]) >> extra) * a[t] >> 16)
 * with extra = max(0, ceil(log2(width)) - 3), so that a score is within 16130 of MUR_ATTEND_ZERO.
 * One of its units are F / 2^16 steps of MUR_ATTEND_OCTAVE to an octave of the softmax:
 *     f = s * scale * (MUR_ATTEND_OCTAVE * log2(e)) * 2^(32 + extra + e[pos] - B)
 *     F = min(floor(f), 2^22), the bits below its 16 highest cleared
 *     reach = min(floor(1023 * 2^16 / F), 32767), 32767 for F = 0
 *     offset = 1023 - floor(F * reach / 2^16);  base = max score - reach
 *     p[t] = mur_attend_powers[offset + floor(F * max(score[t] - base, 0) / 2^16)]
 *     u[t] = floor(p[t] * b[t] / 2^16), b: aligned mantissas of the values
 *     out = (float)(sum of u[t] * value[t]) * (2^(1 + e[pos]) / (float)(sum of p))
 * The values' sum is that of parts, floats added in order, which end before multiples of
 * MUR_ATTEND_MOST. Shifts round down. With a cap, and unit = s * scale * 2^(16 + extra + e[pos] -
 * B) above 0, c = score - MUR_ATTEND_ZERO is replaced by rne(mur_cap_scores(c * unit) / unit), at
 * most 16128 either way.
 */
#ifndef MUR_ATTEND_H
#define MUR_ATTEND_H

#include "mur_decoder.h"

enum {
    MUR_ATTEND_KEY_BITS = 13,
    MUR_ATTEND_VALUE_BITS = 15,
    MUR_ATTEND_EXPONENT = -120,
    MUR_ATTEND_ZERO = 49152,
    MUR_ATTEND_OCTAVE = 64, /* powers of two of an octave in the table */
    MUR_ATTEND_TOP = 1023,  /* of the table: one */
    MUR_ATTEND_MOST = 512   /* 127 * 32766 * 512 < 2^31 */
};

/* 65535 * 2^((i - 1023) / 64), rounded; 0 below 64 */
extern const uint16_t mur_attend_powers[MUR_ATTEND_TOP + 1];

/* how scores become powers of two: see above */
typedef struct mur_softmax {
    uint32_t factor, base, offset;
} mur_softmax;

/* Heads of one token that share keys and values, over `length` positions from `begin` on, both
 * multiples of the instruction set's step. */
typedef struct mur_attended {
    const mur_attention_q8 *op;
    uint32_t begin, length, heads; /* 1 or 2 heads */
    uint32_t extra;
    const void *keys, *values; /* of this head of theirs, position 0 */
    const uint16_t *scales;    /* aligned mantissas, of keys or of values, position begin */
    const int16_t *q;          /* [heads][width] */
    uint16_t *scores;          /* [length / step][heads][step]; then u */
    int32_t *sums;             /* [heads][width] */
} mur_attended;

/* What an instruction set does. */
typedef struct mur_attend_kernels {
    uint32_t heads; /* that it computes at once, at most: 1 or 2 */
    uint32_t step;  /* positions that it computes at once; divides 8 */
    /* puts quantized keys, or values, [width], at position pos into a cache of one head */
    void (*put_key)(const mur_attention_q8 *op, uint32_t pos, const int16_t *q, void *keys);
    void (*put_value)(const mur_attention_q8 *op, uint32_t pos, const int16_t *q, void *values);
    /* Scores of all heads and positions. Caches may hold anything at positions that are not seen,
     * whose scores are not looked at. */
    void (*score)(const mur_attended *a);
    /* the greatest score of each head */
    void (*most)(const mur_attended *a, uint32_t *most);
    /* Scores of a head become u; returns the sum of p. */
    uint32_t (*weigh)(const mur_attended *a, uint32_t head, const mur_softmax *s);
    /* sums = the values' sums over at most MUR_ATTEND_MOST positions */
    void (*mix)(const mur_attended *a);
} mur_attend_kernels;

/* Bytes of scratch for so many heads at once. */
#define MUR_ATTEND_BYTES(op, heads) \
    ((size_t)(op)->context * (2 * (heads) + 4) + (size_t)(op)->width * (heads)*6)

/* mur_ISA_attention of mur_decoder.h by these kernels */
void mur_attend(const mur_attention_q8 *op, const mur_attend_kernels *kernels, uint32_t pos,
                uint32_t rows, const float *q, const float *k, const float *v, void *keys,
                void *values, void *key_scales, void *value_scales, float *out, void *scratch);

/* Plain C's, for heads and positions one by one; caches int8 [context][width]. */
void mur_attend_put(const mur_attention_q8 *op, uint32_t pos, const int16_t *q, void *cache);
void mur_attend_most(const mur_attended *a, uint32_t *most);
uint32_t mur_attend_weigh(const mur_attended *a, uint32_t head, const mur_softmax *s);

/* A score becomes u; returns p. */
static inline uint32_t mur_attend_weight(const mur_softmax *s, uint16_t *score, uint16_t mantissa)
{
    uint32_t above = *score > s->base ? *score - s->base : 0;
    uint32_t p = mur_attend_powers[s->offset + (s->factor * above >> 16)];

    *score = (uint16_t)(p * mantissa >> 16);
    return p;
}

/* where a head's score, or u, of a position from begin on is; step: the kernels' */
static inline uint16_t *mur_attend_at(const mur_attended *a, uint32_t step, uint32_t head,
                                      uint32_t t)
{
    return a->scores + t / step * a->heads * step + head * step + t % step;
}

/* Plain C's for an instruction set that takes several heads and positions at once, where it is not
 * there */
static inline void mur_attend_most_of(const mur_attended *a, uint32_t step, uint32_t *most)
{
    for (uint32_t h = 0; h < a->heads; h++) {
        most[h] = 0;
        for (uint32_t t = 0; t < a->length; t++) {
            uint32_t score = *mur_attend_at(a, step, h, t);

            most[h] = score > most[h] ? score : most[h];
        }
    }
}

static inline uint32_t mur_attend_weigh_of(const mur_attended *a, uint32_t step, uint32_t head,
                                           const mur_softmax *s)
{
    uint32_t sum = 0;

    for (uint32_t t = 0; t < a->length; t++)
        sum += mur_attend_weight(s, mur_attend_at(a, step, head, t), a->scales[t]);
    return sum;
}

/* the score of a sum of products with a key's aligned mantissa */
static inline uint16_t mur_attend_score(const mur_attended *a, int32_t sum, uint16_t mantissa)
{
    uint32_t product = (uint32_t)(sum >> a->extra) * mantissa; /* of what was not seen: anything */

    return (uint16_t)(MUR_ATTEND_ZERO + ((int32_t)product >> 16));
}

#endif
