/* mur_mve_bd.c - BlockDialect matrices in vectors of 16 bytes: levels are gathered from the 16 of a
 * block's dialect, first those of even columns and then those of odd ones.
 */
#include "mur_bd_arith.h"
#include "mur_decoder.h"
#include "mur_mve.h"

#include <string.h>

/* the products of a whole block */
static inline int32_t block(const uint8_t *codes, const int8_t *levels, const int8_t *x)
{
#if MUR_HAVE_MVE
    int8x16x2_t two = vld2q_s8(x);
    uint8x16_t pairs = vldrbq_u8(codes);
    int32_t sum =
        vmladavq_s8(vldrbq_gather_offset_s8(levels, vandq_u8(pairs, vdupq_n_u8(15))), two.val[0]);

    return vmladavaq_s8(sum, vldrbq_gather_offset_s8(levels, vshrq_n_u8(pairs, 4)), two.val[1]);
#else
    int32_t sum = 0;

    for (uint32_t i = 0; i < MUR_BD_ELEMS; i += 2, codes++)
        sum += levels[*codes & 15] * x[i] + levels[*codes >> 4] * x[i + 1];
    return sum;
#endif
}

static void multiply(const mur_matrix_low *matrix, const int8_t *x, float scale, float *out)
{
    uint32_t k = matrix->k, headers = mur_bd_headers(k), whole = k / MUR_BD_ELEMS;
    const uint16_t *row_scales = matrix->packed;
    const uint8_t *w = mur_bd_row(matrix, 0);
    int8_t last[MUR_BD_ELEMS] = { 0 }; /* of x, filled up with zeros */

    memcpy(last, x + whole * MUR_BD_ELEMS, k % MUR_BD_ELEMS);
    for (uint32_t n = 0; n < matrix->n; n++, w += mur_bd_row_bytes(k)) {
        const uint8_t *codes = w + headers;
        const int8_t *from = x;
        int32_t sum = 0;
        float y;

        for (uint32_t b = 0; b < headers; b++, codes += MUR_BD_ELEMS / 2, from += MUR_BD_ELEMS)
            sum += block(codes, mur_bd_levels[w[b] >> 4], b < whole ? from : last) *
                   (1 << (w[b] & 15));
        y = (float)sum * (scale * mur_half(row_scales[n]));
        out[n] = matrix->bias ? y + matrix->bias[n] : y;
    }
}

void mur_mve_linear_bd(const mur_matrix_low *matrix, uint32_t rows, const void *vectors,
                       const float *scales, float *out)
{
    const int8_t *x = vectors;

    for (; rows != 0; rows--, x += MUR_REF_VECTOR_BYTES(matrix->k), out += matrix->n)
        multiply(matrix, x, *scales++, out);
}
