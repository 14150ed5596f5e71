/* mur_svdf_f32.c - the SVDF layer of mur_recurrent.h in binary32. */
#include "mur_recurrent.h"

#include <string.h>

static float dot(const float *a, const float *b, uint32_t count)
{
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    uint32_t i = 0;

    for (; i + 4 <= count; i += 4) {
        s0 += a[i] * b[i];
        s1 += a[i + 1] * b[i + 1];
        s2 += a[i + 2] * b[i + 2];
        s3 += a[i + 3] * b[i + 3];
    }
    for (; i < count; i++)
        s0 += a[i] * b[i];
    return (s0 + s1) + (s2 + s3);
}

void mur_svdf_f32_run(const mur_svdf *layer, const float *x, const float *feature,
                      const float *time, const float *bias, float *state, float *y)
{
    const uint32_t memory = layer->memory;

    for (uint32_t n = 0; n < layer->batch; n++, x += layer->inputs) {
        const float *filter = feature, *weights = time;

        for (uint32_t u = 0; u < layer->units; u++) {
            float sum = bias ? bias[u] : 0.0f;

            for (uint32_t k = 0; k < layer->rank; k++) {
                memmove(state, state + 1, (memory - 1) * sizeof(*state));
                state[memory - 1] = dot(filter, x, layer->inputs);
                sum += dot(weights, state, memory);
                filter += layer->inputs;
                weights += memory;
                state += memory;
            }
            *y++ = sum;
        }
    }
}
