/* mxfp4.c - encodes and decodes blocks of MXFP4. */
#include "quant/mxfp4.h"

#include <math.h>
#include <string.h>

#include "base/half.h"

enum { E2M1_TOP_EXPONENT = 2 };
static const float e2m1[8] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };

/* 2^(exponent - 127); 2^-127 is subnormal in binary32, 2^128 never arises */
static float power_of(unsigned exponent)
{
    return muc_f32_of_bits(exponent > 0 ? exponent << 23 : 0x400000);
}

static unsigned nearest(float y)
{
    unsigned i = 0;

    /* past a midpoint, or on it with an odd code below, the next code is taken */
    while (i < 7 && (2 * y > e2m1[i] + e2m1[i + 1] || (2 * y == e2m1[i] + e2m1[i + 1] && i % 2)))
        i++;
    return i;
}

void muc_mxfp4_encode(const float *values, unsigned n, uint8_t out[MUC_MXFP4_BYTES])
{
    float max = 0;
    unsigned biased, scale;

    for (unsigned i = 0; i < n; i++)
        max = fabsf(values[i]) > max ? fabsf(values[i]) : max;
    biased = muc_f32_bits(max) >> 23;
    scale = biased > E2M1_TOP_EXPONENT ? biased - E2M1_TOP_EXPONENT : 0;
    out[0] = (uint8_t)scale;
    memset(out + 1, 0, (n + 1) / 2);
    for (unsigned i = 0; i < n; i++) {
        unsigned code = nearest(fabsf(values[i]) / power_of(scale));

        out[1 + i / 2] |= (uint8_t)((code | (values[i] < 0 ? 8u : 0u)) << 4 * (i % 2));
    }
}

void muc_mxfp4_decode(const uint8_t *block, unsigned n, float *values)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned code = (unsigned)block[1 + i / 2] >> 4 * (i % 2) & 15;
        float magnitude = e2m1[code & 7] * power_of(block[0]);

        values[i] = code & 8 ? -magnitude : magnitude;
    }
}

void muc_mxfp4_round(float *values, uint64_t count)
{
    uint8_t block[MUC_MXFP4_BYTES];

    for (uint64_t at = 0; at < count; at += MUC_MXFP4_ELEMS) {
        unsigned n = count - at < MUC_MXFP4_ELEMS ? (unsigned)(count - at) : MUC_MXFP4_ELEMS;

        muc_mxfp4_encode(values + at, n, block);
        muc_mxfp4_decode(block, n, values + at);
    }
}
