/* mur_decoder_f32.c - a decoder's operators on binary32, in the one order that mur_decoder.h says.
 */
#include "mur_decoder.h"
#include "mur_decoder_arith.h"

enum { LANES = 8 };

static float sum_of_squares(const float *x, uint32_t count)
{
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0, sum;
    uint32_t i = 0;

    for (; i + LANES <= count; i += LANES) {
        s0 += x[i] * x[i];
        s1 += x[i + 1] * x[i + 1];
        s2 += x[i + 2] * x[i + 2];
        s3 += x[i + 3] * x[i + 3];
        s4 += x[i + 4] * x[i + 4];
        s5 += x[i + 5] * x[i + 5];
        s6 += x[i + 6] * x[i + 6];
        s7 += x[i + 7] * x[i + 7];
    }
    sum = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7));
    for (; i < count; i++)
        sum += x[i] * x[i];
    return sum;
}

void mur_rms_norm_f32(const float *gain, float epsilon, uint32_t count, uint32_t width,
                      const float *x, float *y)
{
    for (; count != 0; count--, x += width, y += width) {
        float mean = sum_of_squares(x, width) / (float)width;
        float factor = 1.0f / mur_sqrt(mean + epsilon);

        for (uint32_t i = 0; i < width; i++)
            y[i] = x[i] * factor * gain[i];
    }
}

static float sum_of(const float *x, uint32_t count)
{
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0, sum;
    uint32_t i = 0;

    for (; i + LANES <= count; i += LANES) {
        s0 += x[i];
        s1 += x[i + 1];
        s2 += x[i + 2];
        s3 += x[i + 3];
        s4 += x[i + 4];
        s5 += x[i + 5];
        s6 += x[i + 6];
        s7 += x[i + 7];
    }
    sum = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7));
    for (; i < count; i++)
        sum += x[i];
    return sum;
}

void mur_layer_norm_f32(const float *gain, const float *bias, float epsilon, uint32_t count,
                        uint32_t width, const float *x, float *y)
{
    for (; count != 0; count--, x += width, y += width) {
        float mean = sum_of(x, width) / (float)width, factor;

        for (uint32_t i = 0; i < width; i++)
            y[i] = x[i] - mean;
        factor = 1.0f / mur_sqrt(sum_of_squares(y, width) / (float)width + epsilon);
        for (uint32_t i = 0; i < width; i++)
            y[i] = y[i] * factor * gain[i] + bias[i];
    }
}

void mur_rope_f32(const float *cosines, const float *sines, uint32_t pos, uint32_t rows,
                  uint32_t heads, uint32_t width, uint32_t turned, const float *x, float *y)
{
    uint32_t half = turned / 2;

    cosines += pos * half;
    sines += pos * half;
    for (; rows != 0; rows--, cosines += half, sines += half) {
        for (uint32_t h = 0; h < heads; h++, x += width, y += width) {
            for (uint32_t i = 0; i < half; i++) {
                float a = x[i], b = x[half + i];

                y[i] = a * cosines[i] - b * sines[i];
                y[half + i] = b * cosines[i] + a * sines[i];
            }
            for (uint32_t i = turned; i < width; i++)
                y[i] = x[i];
        }
    }
}

void mur_silu_f32(uint32_t count, const float *x, float *y)
{
    for (uint32_t i = 0; i < count; i++)
        y[i] = x[i] / (1.0f + mur_exp(-x[i]));
}

void mur_mul_f32(uint32_t count, const float *a, const float *b, float *y)
{
    for (uint32_t i = 0; i < count; i++)
        y[i] = a[i] * b[i];
}

void mur_add_f32(uint32_t count, const float *a, const float *b, float *y)
{
    for (uint32_t i = 0; i < count; i++)
        y[i] = a[i] + b[i];
}
