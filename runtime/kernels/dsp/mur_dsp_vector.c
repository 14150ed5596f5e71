/* mur_dsp_vector.c - vectors of a decoder on cores with SMLAD: int16 [k], padded with zeros to a
 * multiple of 4.
 */
#include "mur_decoder.h"
#include "mur_decoder_arith.h"
#include "mur_dsp_pair.h"

#include <string.h>

/* quantizes x[0..count-1]; returns its scale */
static float quantize(const float *x, uint32_t count, int16_t *q)
{
    float most = mur_most(x, count), inverse;

    if (most < MUR_LEAST) {
        memset(q, 0, count * sizeof(*q));
        return 0;
    }
    inverse = 127.0f / most;
    for (; count >= 4; count -= 4, x += 4, q += 4) {
        q[0] = mur_round(x[0] * inverse);
        q[1] = mur_round(x[1] * inverse);
        q[2] = mur_round(x[2] * inverse);
        q[3] = mur_round(x[3] * inverse);
    }
    for (; count != 0; count--)
        *q++ = mur_round(*x++ * inverse);
    return most / 127.0f;
}

void mur_dsp_quantize(uint32_t rows, uint32_t k, const float *x, void *vectors, float *scales)
{
    uint32_t padded = MUR_DSP_VECTOR_BYTES(k) / sizeof(int16_t);
    int16_t *q = vectors;

    for (uint32_t r = 0; r < rows; r++, x += k, q += padded) {
        scales[r] = quantize(x, k, q);
        for (uint32_t i = k; i < padded; i++)
            q[i] = 0;
    }
}
