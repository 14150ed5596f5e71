/* nn_f16_cases.h - random layers for the kernels of mur_nn_f16.h, every bit, against those of
 * mur_nn_f32.h on the same numbers. Freestanding: the same cases run on the host and on emulated
 * boards. */
#ifndef NN_F16_CASES_H
#define NN_F16_CASES_H

#include "mur_nn_f16.h"

typedef struct nn_f16_result {
    uint32_t wrong;     /* layers with a wrong output or a write out of bounds */
    mur_conv_f16 first; /* the first of them */
} nn_f16_result;

/* `rounds` random layers, each also with its output over its input as far as that is allowed. */
nn_f16_result nn_f16_check(uint32_t rounds, int depthwise);

/* Pools of halves, the same number of each kind: how many are wrong. */
uint32_t nn_f16_check_pools(uint32_t rounds);

/* Kernels of elements, of `rounds` lengths, and conversions of every half: how many are wrong. */
uint32_t nn_f16_check_elements(uint32_t rounds);

#endif
