/* ops.h - the operators of the Llama family and of GPT-2, forward and backward.
 *
 * Matrices are row-major, a row a token. How work is cut into pieces depends on shapes alone and
 * every sum has one order, so results are the same bits at any thread count. Gradients of
 * parameters are added to what is there; gradients of activations are written, unless said
 * otherwise.
 */
#ifndef MUC_TRAIN_OPS_H
#define MUC_TRAIN_OPS_H

#include "base/base.h"
#include "train/train_real.h"

/* Loads OpenBLAS; before any other of these, as often as one likes. Products stay on the thread
 * that asks for them. An x86-64 with AVX2 and FMA gets the kernels of the first that had them,
 * unless OPENBLAS_CORETYPE is set, so that all of them give the same bits; others get what the
 * library finds best. The environment is changed meanwhile: no other thread may read it. Fails
 * with MUC_UNSUPPORTED if there is no OpenBLAS. */
muc_status muc_train_open_blas(muc_context *ctx);

/* y [rows][out] = x [rows][in] w^T + bias; w [out][in]; bias [out] or NULL */
muc_status muc_train_linear(muc_context *ctx, size_t rows, size_t in, size_t out,
                            const muc_scalar *x, const muc_scalar *w, const muc_scalar *bias,
                            muc_scalar *y);
/* dx [rows][in] = dy w (+ dx if add), dw += dy^T x, dbias += column sums of dy. dbias NULL: no
 * bias. */
muc_status muc_train_linear_back(muc_context *ctx, size_t rows, size_t in, size_t out,
                                 const muc_scalar *x, const muc_scalar *w, const muc_scalar *dy,
                                 bool add, muc_scalar *dx, muc_scalar *dw, muc_scalar *dbias);

/* bias NULL, RMSNorm: y = x * factor * gain, factor = 1 / sqrt(mean of squares + epsilon) of each
 * row, kept in factors [rows] for the way back. Else LayerNorm: y = (x - mean) * factor * gain +
 * bias, and the means lie after the factors. y may be x. */
muc_status muc_train_norm(muc_context *ctx, size_t rows, size_t width, double epsilon,
                          const muc_scalar *x, const muc_scalar *gain, const muc_scalar *bias,
                          muc_scalar *factors, muc_scalar *y);
/* dx = gradient (+ dx if add), dgain += ..., dbias += ... (NULL: RMSNorm); dx may be dy if not add.
 */
muc_status muc_train_norm_back(muc_context *ctx, size_t rows, size_t width, const muc_scalar *x,
                               const muc_scalar *gain, const muc_scalar *factors,
                               const muc_scalar *dy, bool add, muc_scalar *dx, muc_scalar *dgain,
                               muc_scalar *dbias);

/* Rotates pairs (i, i + half) of every head in place; row r is at positions[r]. cosines and sines
 * [context][half]. back: by the opposite angle, which is the gradient. */
muc_status muc_train_rope(muc_context *ctx, size_t rows, size_t heads, size_t half,
                          const uint32_t *positions, const float *cosines, const float *sines,
                          bool back, muc_scalar *x);

/* gated = silu(gate) * up */
muc_status muc_train_gate(muc_context *ctx, size_t elements, const muc_scalar *gate,
                          const muc_scalar *up, muc_scalar *gated);
/* gate and up become their gradients */
muc_status muc_train_gate_back(muc_context *ctx, size_t elements, const muc_scalar *dgated,
                               muc_scalar *gate, muc_scalar *up);

/* y = x times the normal distribution at x, or by_tanh its approximation */
muc_status muc_train_gelu(muc_context *ctx, size_t elements, bool by_tanh, const muc_scalar *x,
                          muc_scalar *y);
/* x becomes its gradient */
muc_status muc_train_gelu_back(muc_context *ctx, size_t elements, bool by_tanh,
                               const muc_scalar *dy, muc_scalar *x);

/* Documents one after the other: document d is rows starts[d]..starts[d+1]-1, and no row sees
 * another document. */
typedef struct muc_train_spans {
    size_t count;
    const size_t *starts; /* [count + 1] */
} muc_train_spans;

typedef struct muc_train_heads {
    size_t heads, kv_heads, width;
} muc_train_heads;

/* out [rows][heads * width] = causal softmax(q k^T / sqrt(width)) v; lse [rows][heads]: logarithm
 * of each row's sum, kept for the way back */
muc_status muc_train_attend(muc_context *ctx, const muc_train_heads *h,
                            const muc_train_spans *spans, const muc_scalar *q, const muc_scalar *k,
                            const muc_scalar *v, muc_scalar *lse, muc_scalar *out);
muc_status muc_train_attend_back(muc_context *ctx, const muc_train_heads *h,
                                 const muc_train_spans *spans, const muc_scalar *q,
                                 const muc_scalar *k, const muc_scalar *v, const muc_scalar *lse,
                                 const muc_scalar *dout, muc_scalar *dq, muc_scalar *dk,
                                 muc_scalar *dv);

/* Cross entropy of rows of logits [rows][columns] with targets; a negative target is ignored.
 * losses [rows]: -ln p, 0 where ignored. logits become weight * gradient. */
muc_status muc_train_entropy(muc_context *ctx, size_t rows, size_t columns, const int32_t *targets,
                             double weight, muc_scalar *logits, double *losses);

#endif
