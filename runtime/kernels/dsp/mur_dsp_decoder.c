/* mur_dsp_decoder.c - matrices and vectors of a decoder on cores with SMLAD; see mur_dsp_pair.h.
 *
 * A vector is int16 [k], padded with zeros to a multiple of 4. A matrix: groups of four rows; of
 * each group, for every four columns, the words of pairs (rows 0 1, columns 0 1), (0 1, 2 3),
 * (2 3, 0 1), (2 3, 2 3).
 */
#include "mur_decoder.h"
#include "mur_decoder_arith.h"
#include "mur_dsp_pair.h"

enum { GROUP = 4, QUAD = 4 }; /* rows, columns */

float mur_dsp_quantize_one(const float *x, uint32_t count, int16_t *q)
{
    float most = mur_most(x, count), inverse;

    if (most < MUR_LEAST) {
        memset(q, 0, count * sizeof(*q));
        return 0;
    }
    inverse = 127.0f / most;
    for (uint32_t i = 0; i < count; i++)
        q[i] = mur_round(x[i] * inverse);
    return most / 127.0f;
}

void mur_dsp_quantize(uint32_t rows, uint32_t k, const float *x, void *vectors, float *scales)
{
    uint32_t padded = MUR_DSP_VECTOR_BYTES(k) / sizeof(int16_t);
    int16_t *q = vectors;

    for (uint32_t r = 0; r < rows; r++, x += k, q += padded) {
        scales[r] = mur_dsp_quantize_one(x, k, q);
        for (uint32_t i = k; i < padded; i++)
            q[i] = 0;
    }
}

/* sums of four rows, over columns of a multiple of QUAD, at most MUR_PAIR_MOST */
typedef struct four_sums {
    mur_pair_sum pair[2];
} four_sums;

#if MUR_HAVE_DSP

/* 14 instructions for 16 weights; the loads of w and x are shared */
#define QUAD_STEP \
    "ldmia %[w]!, {r4, r5, r6, r8}\n\t" \
    "ldrd r10, r12, [%[x]], #8\n\t" \
    "smlad %[both0], r4, r10, %[both0]\n\t" \
    "sxtb16 r4, r4\n\t" \
    "smlad %[both1], r6, r10, %[both1]\n\t" \
    "sxtb16 r6, r6\n\t" \
    "smlad %[low0], r4, r10, %[low0]\n\t" \
    "smlad %[low1], r6, r10, %[low1]\n\t" \
    "smlad %[both0], r5, r12, %[both0]\n\t" \
    "sxtb16 r5, r5\n\t" \
    "smlad %[both1], r8, r12, %[both1]\n\t" \
    "sxtb16 r8, r8\n\t" \
    "smlad %[low0], r5, r12, %[low0]\n\t" \
    "smlad %[low1], r8, r12, %[low1]\n\t"
#define QUAD_LOOP(steps, count) \
    __asm__ volatile("1:\n\t" steps "subs %[n], #1\n\t" \
                     "bne 1b\n\t" \
                     : [w] "+r"(w), [x] "+r"(x), [n] "+r"(count), [both0] "+r"(both0), \
                       [low0] "+r"(low0), [both1] "+r"(both1), [low1] "+r"(low1) \
                     : \
                     : "r4", "r5", "r6", "r8", "r10", "r12", "cc", "memory")

static inline four_sums four_rows(const uint32_t *w, const int16_t *x, uint32_t quads)
{
    int32_t both0 = 0, low0 = 0, both1 = 0, low1 = 0;
    uint32_t rounds = quads / 4, rest = quads % 4;

    if (rounds != 0)
        QUAD_LOOP(QUAD_STEP QUAD_STEP QUAD_STEP QUAD_STEP, rounds);
    if (rest != 0)
        QUAD_LOOP(QUAD_STEP, rest);
    return (four_sums){ { { both0, low0 }, { both1, low1 } } };
}

#else

static inline four_sums four_rows(const uint32_t *w, const int16_t *x, uint32_t quads)
{
    four_sums s = { { { 0, 0 }, { 0, 0 } } };

    for (; quads != 0; quads--, w += QUAD, x += QUAD) {
        mur_pair_step(&s.pair[0], w[0], mur_word(x));
        mur_pair_step(&s.pair[0], w[1], mur_word(x + 2));
        mur_pair_step(&s.pair[1], w[2], mur_word(x));
        mur_pair_step(&s.pair[1], w[3], mur_word(x + 2));
    }
    return s;
}

#endif

/* four rows by one vector of any length */
static inline void multiply(const uint32_t *w, const int16_t *x, uint32_t quads, int32_t *sums)
{
    for (;;) {
        uint32_t piece = quads < MUR_PAIR_MOST / QUAD ? quads : MUR_PAIR_MOST / QUAD;
        four_sums s = four_rows(w, x, piece);

        sums[0] += mur_pair_first(s.pair[0]);
        sums[1] += mur_pair_second(s.pair[0]);
        sums[2] += mur_pair_first(s.pair[1]);
        sums[3] += mur_pair_second(s.pair[1]);
        quads -= piece;
        if (quads == 0)
            return;
        w += QUAD * piece;
        x += QUAD * piece;
    }
}

/* the last rows, fewer than a group, of a result */
static void put_rest(const mur_matrix_q8 *matrix, const int32_t *sums, float scale, float *y)
{
    uint32_t n = matrix->n / GROUP * GROUP;

    for (uint32_t i = 0; n + i < matrix->n; i++) {
        float value = (float)sums[i] * (scale * matrix->scales[n + i]);

        y[n + i] = matrix->bias ? value + matrix->bias[n + i] : value;
    }
}

void mur_dsp_linear(const mur_matrix_q8 *matrix, uint32_t rows, const void *vectors,
                    const float *scales, float *out)
{
    uint32_t quads = (matrix->k + QUAD - 1) / QUAD, whole = matrix->n / GROUP * GROUP;
    const uint32_t *w = matrix->packed;

    for (uint32_t n = 0; n < matrix->n; n += GROUP, w += GROUP * quads) {
        const int16_t *x = vectors;

        for (uint32_t r = 0; r < rows; r++, x += QUAD * quads) {
            float *y = out + r * matrix->n, scale = scales[r];
            int32_t sums[GROUP] = { 0 };

            multiply(w, x, quads, sums);
            if (n == whole) {
                put_rest(matrix, sums, scale, y);
                continue;
            }
            for (uint32_t i = 0; i < GROUP; i++)
                y[n + i] = (float)sums[i] * (scale * matrix->scales[n + i]);
            if (matrix->bias)
                for (uint32_t i = 0; i < GROUP; i++)
                    y[n + i] += matrix->bias[n + i];
        }
    }
}

void mur_dsp_embed(const mur_matrix_q8 *matrix, uint32_t row, float *out)
{
    uint32_t quads = (matrix->k + QUAD - 1) / QUAD;
    const int16_t *w = (const int16_t *)matrix->packed + (size_t)(row / GROUP) * quads * 8;

    w += row % GROUP / 2 * 4;
    for (uint32_t i = 0; i < matrix->k; i++) {
        int16_t pair = w[i / QUAD * 8 + i % QUAD];
        int32_t q = row % 2 ? mur_pair_of_second(pair) : mur_pair_of_first(pair);

        out[i] = (float)q * matrix->scales[row];
    }
}
