/* mur_svdf_int.h - the SVDF of integers, see mur_recurrent.h, of a state of type VALUE, which holds
 * LEAST to MOST: its includer says which. */
#include "mur_recurrent.h"

#include <string.h>

#include "mur_nn_arith.h"

static inline uint32_t mur_svdf_value(const mur_svdf *layer, const int8_t *filter, const int8_t *x,
                                      uint32_t sum)
{
    for (uint32_t i = 0; i < layer->inputs; i++)
        sum += (uint32_t)(filter[i] * x[i]);
    return (uint32_t)mur_scale_q31((int32_t)sum, layer->value_mul, layer->value_shift);
}

static inline void mur_svdf_int_run(const mur_svdf *layer, const int8_t *x, const int8_t *feature,
                                    const VALUE *time, const int32_t *bias, VALUE *state, int8_t *y)
{
    const uint32_t memory = layer->memory;
    const int32_t zero = layer->state_zero;

    for (uint32_t n = 0; n < layer->batch; n++, x += layer->inputs) {
        const int32_t *offset = layer->offsets;
        const int8_t *filter = feature;
        const VALUE *weights = time;

        for (uint32_t u = 0; u < layer->units; u++) {
            uint32_t sum = bias ? (uint32_t)bias[u] : 0;
            int32_t unit;

            for (uint32_t k = 0; k < layer->rank; k++) {
                const uint32_t value =
                    mur_svdf_value(layer, filter, x, offset ? (uint32_t)*offset++ : 0);

                memmove(state, state + 1, (memory - 1) * sizeof(*state));
                state[memory - 1] =
                    (VALUE)(mur_clamp((int32_t)value, LEAST - zero, MOST - zero) + zero);
                for (uint32_t i = 0; i < memory; i++)
                    sum += (uint32_t)weights[i] * (uint32_t)(state[i] - zero);
                filter += layer->inputs;
                weights += memory;
                state += memory;
            }
            unit = mur_scale_q31((int32_t)sum, layer->unit_mul, layer->unit_shift);
            *y++ = (int8_t)(mur_clamp(unit, INT8_MIN - layer->zero, INT8_MAX - layer->zero) +
                            layer->zero);
        }
    }
}
