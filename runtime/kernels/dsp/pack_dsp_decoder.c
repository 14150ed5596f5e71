/* pack_dsp_decoder.c - what the host does for mur_dsp_decoder.c and mur_dsp_attention.c. */
#include "mur_attend.h"
#include "mur_dsp_pair.h"

size_t mur_dsp_matrix_bytes(uint32_t n, uint32_t k)
{
    return (size_t)((n + 3) / 4 * 4) * ((k + 3) / 4 * 4);
}

void mur_dsp_matrix_pack(uint32_t n, uint32_t k, const int8_t *q, void *packed)
{
    int16_t *to = packed;

    for (uint32_t group = 0; group < n; group += 4) {
        for (uint32_t quad = 0; quad < k; quad += 4) {
            for (uint32_t i = 0; i < 8; i++) {
                uint32_t row = group + i / 4 * 2, column = quad + i % 4;
                const int8_t *at = q + (size_t)row * k + column;
                int inside = column < k;

                *to++ = mur_pair(inside && row < n ? at[0] : 0, inside && row + 1 < n ? at[k] : 0);
            }
        }
    }
}

size_t mur_dsp_attention_bytes(const mur_attention_q8 *op)
{
    return MUR_ATTEND_BYTES(op, 2);
}
