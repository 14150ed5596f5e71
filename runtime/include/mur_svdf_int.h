/* mur_svdf_int.h - the SVDF of integers, see mur_recurrent.h, of a state of type VALUE, which holds
 * LEAST to MOST. Its includer says which, and defines dot(filter, x, count, sum) of int8 and
 * dot_time(weights, state, count, zero, sum): the sum and the products, modulo 2^32; and, unless
 * memmove is fast, move_down(to, from, bytes), where to lies below from. */
#include "mur_recurrent.h"

#include <string.h>

#include "mur_nn_arith.h"

#ifndef move_down
#define move_down memmove
#endif

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
            int32_t sum = bias ? bias[u] : 0, unit;

            for (uint32_t k = 0; k < layer->rank; k++) {
                const int32_t value =
                    mur_scale_q31(dot(filter, x, layer->inputs, offset ? *offset++ : 0),
                                  layer->value_mul, layer->value_shift);

                move_down(state, state + 1, (memory - 1) * sizeof(*state));
                state[memory - 1] = (VALUE)(mur_clamp(value, LEAST - zero, MOST - zero) + zero);
                sum = dot_time(weights, state, memory, zero, sum);
                filter += layer->inputs;
                weights += memory;
                state += memory;
            }
            unit = mur_scale_q31(sum, layer->unit_mul, layer->unit_shift);
            *y++ = (int8_t)(mur_clamp(unit, INT8_MIN - layer->zero, INT8_MAX - layer->zero) +
                            layer->zero);
        }
    }
}
