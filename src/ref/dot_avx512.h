/* dot_avx512.h - a float32 product that only some processors can run. */
#ifndef MUC_DOT_AVX512_H
#define MUC_DOT_AVX512_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MUC_DOT_PANEL = 8, /* rows of weights that are multiplied together */
    /* Elements of a row of weights from which on one row of x waits for memory alone, which is
     * fastest in one stream or two; shorter rows are mostly those of models that a cache holds. */
    MUC_DOT_STREAMED = 256
};

/* Whether this processor runs the two functions below, which do nothing elsewhere. */
bool muc_dot_has_avx512(void);
/* How the rows of weights lie: packed, or each after the other as float32 or bf16. */
typedef enum muc_dot_weights { MUC_DOT_PACKED, MUC_DOT_F32, MUC_DOT_BF16 } muc_dot_weights;
/* MUC_DOT_PANEL rows of k elements of another kind, k a multiple of 8, to float32
 * [k / 8][MUC_DOT_PANEL][8]. */
void muc_dot_pack(muc_dot_weights kind, const void *w, size_t k, float *packed);
/* out[r * out_stride + c] = dot(x row r, w row c) for MUC_DOT_PANEL rows of w, in the order of
 * muc_ref_dot. */
void muc_dot_multiply(muc_dot_weights kind, const float *x, size_t rows, const void *w, size_t k,
                      float *out, size_t out_stride);

#endif
