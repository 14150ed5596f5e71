/* mur_ref_bd.c - BlockDialect matrices in plain C; mur_bd_arith.h has their form. */
#include "mur_bd_arith.h"
#include "mur_decoder.h"
#include "mur_low.h"

const int8_t mur_bd_levels[MUR_BD_DIALECTS][16] = {
#define MUR_DIALECT(id, a, b, c, d, e, f, g, h) \
    [id] = { a, b, c, d, e, f, g, h, -a, -b, -c, -d, -e, -f, -g, -h },
#include "mur_dialect.def"
#undef MUR_DIALECT
};

static int32_t dot(const uint8_t *block, const int8_t *x, uint32_t count)
{
    const int8_t *levels = mur_bd_levels[*block >> 4];
    const uint8_t *codes = block + 1;
    int32_t sum = 0;

    for (; count >= 2; count -= 2, codes++, x += 2)
        sum += levels[*codes & 15] * x[0] + levels[*codes >> 4] * x[1];
    if (count != 0)
        sum += levels[*codes & 15] * x[0];
    return sum * (*block & MUR_BD_FACTOR);
}

void mur_ref_linear_bd(const mur_matrix_low *matrix, uint32_t rows, const void *vectors,
                       const float *scales, float *out)
{
    const uint16_t *row_scales = matrix->packed;
    uint32_t k = matrix->k;
    const int8_t *x = vectors;

    for (; rows != 0; rows--, x += MUR_REF_VECTOR_BYTES(k), scales++, out += matrix->n) {
        const uint8_t *w = mur_bd_row(matrix, 0);

        for (uint32_t n = 0; n < matrix->n; n++, w += mur_bd_row_bytes(k)) {
            int32_t sum = 0;
            float y;

            for (uint32_t b = 0, i = 0; i < k; b++, i += MUR_BD_ELEMS)
                sum += dot(w + b * MUR_BD_BYTES, x + i, mur_bd_count(k, i));
            y = (float)sum * (*scales * mur_half(row_scales[n]));
            out[n] = matrix->bias ? y + matrix->bias[n] : y;
        }
    }
}

void mur_ref_embed_bd(const mur_matrix_low *matrix, uint32_t rows, const int32_t *tokens,
                      float *out)
{
    uint32_t k = matrix->k;

    for (; rows != 0; rows--, tokens++, out += k) {
        const uint8_t *w = mur_bd_row(matrix, (uint32_t)*tokens);
        float scale = mur_half(((const uint16_t *)matrix->packed)[*tokens]);

        for (uint32_t i = 0; i < k; i++)
            out[i] =
                (float)mur_bd_level(w + i / MUR_BD_ELEMS * MUR_BD_BYTES, i % MUR_BD_ELEMS) * scale;
    }
}
