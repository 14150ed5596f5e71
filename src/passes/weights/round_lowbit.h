/* round_lowbit.h - the matrices of a graph become rows of few bits (quant/lowbit.h). */
#ifndef MUC_PASS_LOWBIT_H
#define MUC_PASS_LOWBIT_H

#include "passes/weights/calibrate.h"
#include "quant/lowbit.h"

typedef struct muc_lowbit_matrix {
    uint32_t tensor; /* of the graph */
    muc_lowbit format;
    uint32_t n, k;
    uint8_t *codes;    /* [n][muc_lowbit_code_bytes] */
    uint16_t *numbers; /* [n][muc_lowbit_numbers] */
} muc_lowbit_matrix;

typedef struct muc_lowbit_options {
    muc_lowbit weights, embedding; /* embedding: of what is looked up, and of the last LINEAR */
    const char *const *finer;      /* names of matrices that take int4 instead of weights */
    size_t finer_count;
    const muc_calibration *calibration; /* texts for error feedback, or NULL: least squares */
} muc_lowbit_options;

/* In the arena. */
typedef struct muc_lowbit_result {
    muc_lowbit_matrix *matrices;
    size_t count;
    double error, energy; /* sums of (w - v)^2 and w^2 */
} muc_lowbit_result;

/* Quantizes every constant matrix of real numbers that a LINEAR multiplies by or an EMBED looks up;
 * the graph stays as it is. A matrix whose rows would not be a whole number of bytes takes int8.
 * Fails with MUC_UNSUPPORTED on a weight that is not finite, or a matrix without data. The same
 * bytes at any thread count. */
muc_status muc_lowbit_quantize(muc_context *ctx, muc_graph *graph,
                               const muc_lowbit_options *options, muc_arena *arena,
                               muc_lowbit_result *out);

#endif
