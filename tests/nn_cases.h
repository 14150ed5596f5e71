/* nn_cases.h - random layers for every kernel of mur_nn.def, each judged by its definition,
 * computed another way. Freestanding: the same cases run on the host and on emulated boards. */
#ifndef NN_CASES_H
#define NN_CASES_H

#include "mur_nn.h"

/* a kernel with weights */
typedef struct nn_kernel {
    const char *name; /* "ref_conv_s8" */
    void (*run)(const mur_conv_s8 *, const int8_t *, int8_t *, void *);
    int (*fits)(const mur_conv_s8 *, const mur_conv_plain *);
    size_t (*packed_bytes)(const mur_conv_s8 *);
    void (*pack)(const mur_conv_s8 *, const mur_conv_plain *, void *);
    size_t (*scratch_bytes)(const mur_conv_s8 *);
} nn_kernel;

extern const nn_kernel nn_kernels[];
extern const uint32_t nn_kernels_count;

typedef struct nn_result {
    uint32_t run;      /* layers that the kernel fits */
    uint32_t wrong;    /* of them, with a wrong output or a write out of bounds */
    mur_conv_s8 first; /* the first wrong one */
    int32_t at;        /* where, in out; -1: outside of it */
} nn_result;

/* `rounds` random layers of all kinds. overlapping: in and out share memory as far as allowed. */
nn_result nn_check(const nn_kernel *kernel, uint32_t rounds, int overlapping);

/* Kernels without weights but for those of rows, in `rounds` random layers: how many layers are
 * wrong, the last such kernel's name in *last. */
uint32_t nn_check_others(uint32_t rounds, const char **last);

/* 36 KiB that cases of other files may use between calls of these */
void *nn_spare(void);

/* Kernels of two computed matrices, in `rounds` random products: how many are wrong, the last such
 * kernel's name in *name. */
uint32_t nn_check_products(uint32_t rounds, const char **name);

#endif
