/* attention_cases.h - a decoder's attention of an instruction set beside plain C's, which
 * tests/test_decoder.c judges: every bit. Freestanding: the same cases run on the host and on
 * emulated boards.
 */
#ifndef ATTENTION_CASES_H
#define ATTENTION_CASES_H

#include "mur_attend.h"

typedef void attention(const mur_attention_q8 *op, uint32_t pos, uint32_t rows, const float *q,
                       const float *k, const float *v, void *keys, void *values, void *key_scales,
                       void *value_scales, float *out, void *scratch);

typedef struct attention_kernel {
    const char *name;
    attention *run;
} attention_kernel;

extern const attention_kernel attention_kernels[];
extern const uint32_t attention_kernels_count;

/* How many of so many texts, of all shapes, have a wrong number; *first is the shape of the first
 * of them. */
uint32_t attention_check(attention *run, uint32_t texts, mur_attention_q8 *first);

#endif
