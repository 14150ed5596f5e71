/* nn_f32_cases.h - random layers for the kernels of mur_nn_f32.h, every bit of the order that it
 * writes. Freestanding: the same cases run on the host and on emulated boards. */
#ifndef NN_F32_CASES_H
#define NN_F32_CASES_H

#include "mur_nn_f32.h"

/* The next random layer, convolution or depthwise; its `packed` is the caller's. */
mur_conv_f32 nn_f32_draw(int depthwise);

typedef struct nn_f32_result {
    uint32_t wrong;     /* layers with a wrong output or a write out of bounds */
    mur_conv_f32 first; /* the first of them */
} nn_f32_result;

/* `rounds` random layers, each also with its output over its input as far as that is allowed. */
nn_f32_result nn_f32_check(uint32_t rounds, int depthwise);

/* `rounds` random products of two computed matrices: how many are wrong. */
uint32_t nn_f32_check_products(uint32_t rounds);

#endif
