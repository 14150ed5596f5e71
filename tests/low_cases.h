/* low_cases.h - a decoder's matrices of 8, 4 and 2 bits, and BlockDialect's, judged by sums of
 * their levels written out. Freestanding: the same cases run on the host and on emulated boards.
 */
#ifndef LOW_CASES_H
#define LOW_CASES_H

#include "mur_decoder.h"
#include "mur_low.h"

/* the kernels of an instruction set */
typedef struct low_kernel {
    const char *name;
    uint32_t element_bytes; /* of a vector */
    void (*quantize)(uint32_t, uint32_t, const float *, void *, float *);
    void (*multiply_q8)(const mur_matrix_q8 *, uint32_t, const void *, const float *, float *);
    void (*look_up_q8)(const mur_matrix_q8 *, uint32_t, const int32_t *, float *);
    size_t (*bytes_q8)(uint32_t, uint32_t);
    void (*pack_q8)(uint32_t, uint32_t, const int8_t *, void *);
    /* of 2 and of 4 bits */
    void (*multiply[2])(const mur_matrix_low *, uint32_t, const void *, const float *, float *);
    void (*look_up[2])(const mur_matrix_low *, uint32_t, const int32_t *, float *);
    size_t (*bytes)(uint32_t, uint32_t, uint32_t);
    void (*pack)(uint32_t, uint32_t, uint32_t, const int8_t *, const uint16_t *, void *);
    /* of BlockDialect */
    void (*multiply_bd)(const mur_matrix_low *, uint32_t, const void *, const float *, float *);
    void (*silu)(uint32_t, const float *, float *);
} low_kernel;

extern const low_kernel low_kernels[];
extern const uint32_t low_kernels_count;

typedef struct low_result {
    uint32_t run, wrong;     /* matrices; wrong ones have a wrong number or a write out of bounds */
    uint32_t bits, n, k, at; /* the first wrong one's (5 bits: BlockDialect), and where in it */
} low_result;

low_result low_check(const low_kernel *kernel);

#endif
