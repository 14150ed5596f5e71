/* mur_plain_low.c - matrices of 2 and 4 bits in plain C, several rows of a word at once;
 * mur_plain_low.h has their form.
 *
 * A mask leaves two indices of a word 16 places apart, V = a + 2^16 b: one product does two rows.
 * Modulo 2^32 the sum of V x is (sum of a x) + 2^16 (sum of b x); both have 16 bits over so many
 * columns as CHUNK_ says, then they are taken apart.
 */
#include "mur_decoder.h"
#include "mur_low.h"
#include "mur_low_arith.h"
#include "mur_plain_low.h"

enum { CHUNK_2 = 64, CHUNK_4 = 16 }; /* 3 * 127 * 64 and 15 * 127 * 16 are below 2^15 */
enum { MOST_ROWS = 16 };             /* of a group */

static inline int32_t low_of(uint32_t sum)
{
    return (int16_t)sum;
}

static inline int32_t high_of(uint32_t sum)
{
    return (int32_t)(sum - (uint32_t)low_of(sum)) >> 16;
}

#define MASK_2 0x00030003u
#define COLUMN_2(i) \
    do { \
        uint32_t v = w[i], e = (uint32_t)(int32_t)x[i]; \
        s0 += (v & MASK_2) * e; \
        s1 += (v >> 2 & MASK_2) * e; \
        s2 += (v >> 4 & MASK_2) * e; \
        s3 += (v >> 6 & MASK_2) * e; \
        s4 += (v >> 8 & MASK_2) * e; \
        s5 += (v >> 10 & MASK_2) * e; \
        s6 += (v >> 12 & MASK_2) * e; \
        s7 += (v >> 14 & MASK_2) * e; \
    } while (0)

/* adds the products of at most CHUNK_2 columns with the indices of 16 rows */
static void add_chunk_2(const uint32_t *w, const int8_t *x, uint32_t columns, int32_t *sums)
{
    uint32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
    const int8_t *end = x + columns;

    for (; end - x >= 2; x += 2, w += 2) {
        COLUMN_2(0);
        COLUMN_2(1);
    }
    if (x != end)
        COLUMN_2(0);
    sums[0] += low_of(s0), sums[8] += high_of(s0);
    sums[1] += low_of(s1), sums[9] += high_of(s1);
    sums[2] += low_of(s2), sums[10] += high_of(s2);
    sums[3] += low_of(s3), sums[11] += high_of(s3);
    sums[4] += low_of(s4), sums[12] += high_of(s4);
    sums[5] += low_of(s5), sums[13] += high_of(s5);
    sums[6] += low_of(s6), sums[14] += high_of(s6);
    sums[7] += low_of(s7), sums[15] += high_of(s7);
}

static void sum_2(const uint32_t *w, const int8_t *x, uint32_t k, int32_t *sums)
{
    for (uint32_t i = 0; i < MOST_ROWS; i++)
        sums[i] = 0;
    for (; k > CHUNK_2; k -= CHUNK_2, w += CHUNK_2, x += CHUNK_2)
        add_chunk_2(w, x, CHUNK_2, sums);
    add_chunk_2(w, x, k, sums);
}

#define MASK_4 0x000f000fu
#define COLUMN_4(i) \
    do { \
        uint32_t v = w[i], e = (uint32_t)(int32_t)x[i]; \
        s0 += (v & MASK_4) * e; \
        s1 += (v >> 4 & MASK_4) * e; \
        s2 += (v >> 8 & MASK_4) * e; \
        s3 += (v >> 12 & MASK_4) * e; \
    } while (0)

static void sum_4(const uint32_t *w, const int8_t *x, uint32_t k, int32_t *sums)
{
    int32_t t0 = 0, t1 = 0, t2 = 0, t3 = 0, t4 = 0, t5 = 0, t6 = 0, t7 = 0;

    while (k != 0) {
        uint32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0, columns = k < CHUNK_4 ? k : CHUNK_4;
        const int8_t *end = x + columns;

        k -= columns;
        for (; end - x >= 4; x += 4, w += 4) {
            COLUMN_4(0);
            COLUMN_4(1);
            COLUMN_4(2);
            COLUMN_4(3);
        }
        for (; x != end; x++, w++)
            COLUMN_4(0);
        t0 += low_of(s0), t4 += high_of(s0);
        t1 += low_of(s1), t5 += high_of(s1);
        t2 += low_of(s2), t6 += high_of(s2);
        t3 += low_of(s3), t7 += high_of(s3);
    }
    sums[0] = t0, sums[1] = t1, sums[2] = t2, sums[3] = t3;
    sums[4] = t4, sums[5] = t5, sums[6] = t6, sums[7] = t7;
}

static void multiply(uint32_t bits, const mur_matrix_low *matrix, uint32_t rows,
                     const void *vectors, const float *scales, float *out)
{
    uint32_t group = mur_plain_low_group(bits), k = matrix->k;
    const uint16_t *row_scales = matrix->packed;
    const int8_t *x = vectors;

    for (; rows != 0; rows--, x += MUR_REF_VECTOR_BYTES(k), scales++, out += matrix->n) {
        const uint32_t *w = (const uint32_t *)matrix->packed + mur_plain_low_words(matrix->n);
        int32_t sums[MOST_ROWS], total = 0;

        for (uint32_t i = 0; i < k; i++)
            total += x[i];
        total *= mur_low_most(bits);
        for (uint32_t n = 0; n < matrix->n; w += k) {
            uint32_t end = matrix->n - n < group ? matrix->n : n + group;

            if (bits == 2)
                sum_2(w, x, k, sums);
            else
                sum_4(w, x, k, sums);
            for (const int32_t *sum = sums; n < end; n++, sum++) {
                float y = mur_scaled(2 * *sum - total, *scales, mur_half(row_scales[n]));

                out[n] = matrix->bias ? y + matrix->bias[n] : y;
            }
        }
    }
}

void mur_plain_linear_q2(const mur_matrix_low *matrix, uint32_t rows, const void *vectors,
                         const float *scales, float *out)
{
    multiply(2, matrix, rows, vectors, scales, out);
}

void mur_plain_linear_q4(const mur_matrix_low *matrix, uint32_t rows, const void *vectors,
                         const float *scales, float *out)
{
    multiply(4, matrix, rows, vectors, scales, out);
}

static void embed(uint32_t bits, const mur_matrix_low *matrix, uint32_t rows, const int32_t *tokens,
                  float *out)
{
    uint32_t group = mur_plain_low_group(bits), most = (uint32_t)mur_low_most(bits), k = matrix->k;

    for (; rows != 0; rows--, tokens++, out += k) {
        uint32_t row = (uint32_t)*tokens, shift = row % group * bits;
        const uint32_t *w = (const uint32_t *)matrix->packed + mur_plain_low_words(matrix->n) +
                            (size_t)(row / group) * k;
        float scale = mur_half(((const uint16_t *)matrix->packed)[row]);

        for (uint32_t i = 0; i < k; i++)
            out[i] = (float)((int32_t)(2 * (w[i] >> shift & most)) - (int32_t)most) * scale;
    }
}

void mur_plain_embed_q2(const mur_matrix_low *matrix, uint32_t rows, const int32_t *tokens,
                        float *out)
{
    embed(2, matrix, rows, tokens, out);
}

void mur_plain_embed_q4(const mur_matrix_low *matrix, uint32_t rows, const int32_t *tokens,
                        float *out)
{
    embed(4, matrix, rows, tokens, out);
}
