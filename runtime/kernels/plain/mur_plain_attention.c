/* mur_plain_attention.c - a decoder's attention in plain C: four positions at once, and two heads
 * that share keys and values, so that what is loaded serves several products. Caches lie as
 * mur_ref_decoder.c has them.
 *
 * Scores: [length / 4][heads][4].
 */
#include "mur_attend.h"

enum { FOUR = 4 }; /* positions at once, and columns of values */

/* the products of one query with the keys of four positions */
static void meet_four(const int16_t *q, const int8_t *keys, uint32_t width, int32_t sums[FOUR])
{
    const int8_t *k0 = keys, *k1 = k0 + width, *k2 = k1 + width, *k3 = k2 + width;
    const int16_t *end = q + width;
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;

#pragma GCC unroll 2
    for (; q != end; q += 2, k0 += 2, k1 += 2, k2 += 2, k3 += 2) {
        s0 += q[0] * k0[0] + q[1] * k0[1];
        s1 += q[0] * k1[0] + q[1] * k1[1];
        s2 += q[0] * k2[0] + q[1] * k2[1];
        s3 += q[0] * k3[0] + q[1] * k3[1];
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* those of two queries with the keys of two positions */
static void meet_two(const int16_t *q, const int8_t *keys, uint32_t width, int32_t first[2],
                     int32_t second[2])
{
    const int8_t *k0 = keys, *k1 = k0 + width;
    const int16_t *other = q + width, *end = other;
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;

#pragma GCC unroll 2
    for (; q != end; q += 2, other += 2, k0 += 2, k1 += 2) {
        s0 += q[0] * k0[0] + q[1] * k0[1];
        s1 += q[0] * k1[0] + q[1] * k1[1];
        s2 += other[0] * k0[0] + other[1] * k0[1];
        s3 += other[0] * k1[0] + other[1] * k1[1];
    }
    first[0] = s0;
    first[1] = s1;
    second[0] = s2;
    second[1] = s3;
}

/* the products' sums of a head at four positions become its scores */
static inline void put_scores(const mur_attended *a, const int32_t *sums, const uint16_t *scales,
                              uint16_t *scores)
{
    scores[0] = mur_attend_score(a, sums[0], scales[0]);
    scores[1] = mur_attend_score(a, sums[1], scales[1]);
    scores[2] = mur_attend_score(a, sums[2], scales[2]);
    scores[3] = mur_attend_score(a, sums[3], scales[3]);
}

static void score(const mur_attended *a)
{
    uint32_t width = a->op->width;
    const int8_t *keys = (const int8_t *)a->keys + (size_t)a->begin * width;
    const uint16_t *scales = a->scales, *end = scales + a->length;
    uint16_t *scores = a->scores;

    for (; scales != end; scales += FOUR, keys += FOUR * width, scores += FOUR) {
        int32_t sums[2][FOUR];

        if (a->heads == 1) {
            meet_four(a->q, keys, width, sums[0]);
        } else {
            meet_two(a->q, keys, width, sums[0], sums[1]);
            meet_two(a->q, keys + 2 * width, width, sums[0] + 2, sums[1] + 2);
        }
        put_scores(a, sums[0], scales, scores);
        if (a->heads == 2)
            put_scores(a, sums[1], scales, scores += FOUR);
    }
}

static inline uint32_t greater(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void most(const mur_attended *a, uint32_t *found)
{
    for (uint32_t h = 0; h < a->heads; h++) {
        const uint16_t *scores = a->scores + FOUR * h;
        uint32_t step = FOUR * a->heads, greatest = 0;

        for (uint32_t left = a->length; left != 0; left -= FOUR, scores += step) {
            greatest = greater(greater(scores[0], scores[1]), greatest);
            greatest = greater(greater(scores[2], scores[3]), greatest);
        }
        found[h] = greatest;
    }
}

static uint32_t weigh(const mur_attended *a, uint32_t head, const mur_softmax *s)
{
    const uint16_t *scales = a->scales, *end = scales + a->length;
    uint16_t *scores = a->scores + FOUR * head;
    uint32_t sum = 0, step = FOUR * a->heads;
    const mur_softmax softmax = *s;

    for (; scales != end; scales += FOUR, scores += step) {
        sum += mur_attend_weight(&softmax, scores, scales[0]);
        sum += mur_attend_weight(&softmax, scores + 1, scales[1]);
        sum += mur_attend_weight(&softmax, scores + 2, scales[2]);
        sum += mur_attend_weight(&softmax, scores + 3, scales[3]);
    }
    return sum;
}

/* the sums of `columns` values, FOUR or 2, of each head */
static inline __attribute__((always_inline)) void mix_columns(const mur_attended *a, uint32_t heads,
                                                              uint32_t columns,
                                                              const int8_t *values, int32_t *out)
{
    uint32_t width = a->op->width;
    const uint16_t *u = a->scores, *end = u + a->length * heads;
    int32_t sums[2][FOUR] = { { 0 } };

    for (; u != end; u += FOUR * (heads - 1))
        for (const uint16_t *four_end = u + FOUR; u != four_end; u++, values += width)
#pragma GCC unroll 4
            for (uint32_t i = 0; i < columns; i++)
#pragma GCC unroll 2
                for (uint32_t h = 0; h < heads; h++)
                    sums[h][i] += u[h * FOUR] * values[i];
#pragma GCC unroll 2
    for (uint32_t h = 0; h < heads; h++)
#pragma GCC unroll 4
        for (uint32_t i = 0; i < columns; i++)
            out[h * width + i] = sums[h][i];
}

static inline __attribute__((always_inline)) void mix_heads(const mur_attended *a, uint32_t heads)
{
    uint32_t width = a->op->width, i = 0;
    const int8_t *values = (const int8_t *)a->values + (size_t)a->begin * width;

    for (; i + FOUR <= width; i += FOUR)
        mix_columns(a, heads, FOUR, values + i, a->sums + i);
    if (i < width)
        mix_columns(a, heads, 2, values + i, a->sums + i);
}

static void mix(const mur_attended *a)
{
    if (a->heads == 1)
        mix_heads(a, 1);
    else
        mix_heads(a, 2);
}

void mur_plain_attention(const mur_attention_q8 *op, uint32_t pos, uint32_t rows, const float *q,
                         const float *k, const float *v, void *keys, void *values, void *key_scales,
                         void *value_scales, float *out, void *scratch)
{
    static const mur_attend_kernels kernels = { 2,     FOUR, mur_attend_put, mur_attend_put,
                                                score, most, weigh,          mix };

    mur_attend(op, &kernels, pos, rows, q, k, v, keys, values, key_scales, value_scales, out,
               scratch);
}
