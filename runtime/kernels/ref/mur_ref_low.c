/* mur_ref_low.c - matrices of 2 and 4 bits in plain C: what faster versions must equal.
 *
 * A packed matrix is the scales [n], to a multiple of 4 bytes, and rows of indices from the low
 * bits of a byte on, each a whole number of bytes.
 */
#include "mur_decoder.h"
#include "mur_low.h"
#include "mur_low_arith.h"

static const uint8_t *codes_of(const mur_matrix_low *matrix)
{
    return (const uint8_t *)matrix->packed + (matrix->n + 1) / 2 * 4;
}

/* sum of c x over a row, c the indices */
static int32_t dot_2(const uint8_t *codes, const int8_t *x, uint32_t k)
{
    int32_t sum = 0;

    for (; k >= 4; k -= 4, x += 4) {
        uint32_t byte = *codes++;

        sum += (int32_t)(byte & 3) * x[0] + (int32_t)(byte >> 2 & 3) * x[1] +
               (int32_t)(byte >> 4 & 3) * x[2] + (int32_t)(byte >> 6) * x[3];
    }
    for (uint32_t i = 0; i < k; i++)
        sum += (*codes >> 2 * i & 3) * x[i];
    return sum;
}

static int32_t dot_4(const uint8_t *codes, const int8_t *x, uint32_t k)
{
    int32_t sum = 0;

    for (; k >= 2; k -= 2, x += 2) {
        uint32_t byte = *codes++;

        sum += (int32_t)(byte & 15) * x[0] + (int32_t)(byte >> 4) * x[1];
    }
    return k ? sum + (*codes & 15) * x[0] : sum;
}

static void multiply(uint32_t bits, const mur_matrix_low *matrix, uint32_t rows,
                     const void *vectors, const float *scales, float *out)
{
    const uint16_t *row_scales = matrix->packed;
    uint32_t bytes = (matrix->k * bits + 7) / 8;
    const int8_t *x = vectors;

    for (; rows != 0; rows--, x += MUR_REF_VECTOR_BYTES(matrix->k), scales++, out += matrix->n) {
        const uint8_t *codes = codes_of(matrix);
        int32_t total = 0;

        for (uint32_t i = 0; i < matrix->k; i++)
            total += x[i];
        for (uint32_t n = 0; n < matrix->n; n++, codes += bytes) {
            int32_t sum = bits == 2 ? dot_2(codes, x, matrix->k) : dot_4(codes, x, matrix->k);
            float y =
                (float)(2 * sum - mur_low_most(bits) * total) * (*scales * mur_half(row_scales[n]));

            out[n] = matrix->bias ? y + matrix->bias[n] : y;
        }
    }
}

void mur_ref_linear_q2(const mur_matrix_low *matrix, uint32_t rows, const void *vectors,
                       const float *scales, float *out)
{
    multiply(2, matrix, rows, vectors, scales, out);
}

void mur_ref_linear_q4(const mur_matrix_low *matrix, uint32_t rows, const void *vectors,
                       const float *scales, float *out)
{
    multiply(4, matrix, rows, vectors, scales, out);
}

static void embed(uint32_t bits, const mur_matrix_low *matrix, uint32_t rows, const int32_t *tokens,
                  float *out)
{
    uint32_t bytes = (matrix->k * bits + 7) / 8;

    for (; rows != 0; rows--, tokens++, out += matrix->k) {
        const uint8_t *codes = codes_of(matrix) + (uint32_t)*tokens * bytes;
        float scale = mur_half(((const uint16_t *)matrix->packed)[*tokens]);

        for (uint32_t i = 0; i < matrix->k; i++) {
            int32_t code = codes[i * bits / 8] >> i * bits % 8 & mur_low_most(bits);

            out[i] = (float)(2 * code - mur_low_most(bits)) * scale;
        }
    }
}

void mur_ref_embed_q2(const mur_matrix_low *matrix, uint32_t rows, const int32_t *tokens,
                      float *out)
{
    embed(2, matrix, rows, tokens, out);
}

void mur_ref_embed_q4(const mur_matrix_low *matrix, uint32_t rows, const int32_t *tokens,
                      float *out)
{
    embed(4, matrix, rows, tokens, out);
}
