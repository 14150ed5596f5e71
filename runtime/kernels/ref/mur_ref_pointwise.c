/* mur_ref_pointwise.c - element by element. */
#include "mur_nn_arith.h"

void mur_ref_mul_s8(const mur_mul_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    mur_mul_plain(*layer, a, b, out);
}

void mur_ref_table_s8(const int8_t table[256], size_t count, const int8_t *in, int8_t *out)
{
    const int8_t *of = table + 128;

    for (; count >= 4; count -= 4, in += 4, out += 4) {
        out[0] = of[in[0]];
        out[1] = of[in[1]];
        out[2] = of[in[2]];
        out[3] = of[in[3]];
    }
    while (count--)
        *out++ = of[*in++];
}

void mur_ref_quantize_f32(float scale, int8_t zero, size_t count, const float *in, int8_t *out)
{
    for (size_t i = 0; i < count; i++) {
        float x = in[i] / scale;
        int32_t whole;

        /* beyond this range the result is the range's end anyhow */
        x = x > 512.0f ? 512.0f : x < -512.0f ? -512.0f : x == x ? x : 0.0f;
        whole = (int32_t)x;
        x -= (float)whole; /* exact */
        whole += x >= 0.5f ? 1 : x <= -0.5f ? -1 : 0;
        out[i] = (int8_t)mur_clamp(whole + zero, INT8_MIN, INT8_MAX);
    }
}

void mur_ref_dequantize_s8(float scale, int8_t zero, size_t count, const int8_t *in, float *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = scale * (float)(in[i] - zero);
}
