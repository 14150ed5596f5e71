/* pass.h - a pass over a batch, forward and back.
 *
 * Weights are given with each pass: the trainer gives its parameters, quantization-aware training
 * gives a buffer of fake-quantized ones and takes their gradients as those of the parameters
 * (straight through). What happens to activations on their way into a product (int8, masks of
 * pruned heads and neurons) and what is measured there (importance) is a hook.
 */
#ifndef MUC_TRAIN_MODEL_H
#define MUC_TRAIN_MODEL_H

#include "train/ops.h"
#include "train/params.h"

/* Documents one after the other, without padding. The next three are [rows]. */
typedef struct muc_train_batch {
    size_t rows;
    const uint32_t *tokens;
    const uint32_t *positions; /* in its document; below the context */
    const int32_t *targets;    /* the token to predict; negative: not counted */
    muc_train_spans documents; /* the last start is rows */
    double weight;             /* of each counted row's gradient: 1 / counted rows of the step */
} muc_train_batch;

/* The inputs of products: normed rows into q, k, v; heads into o; normed rows into gate and up;
 * gated neurons into down; normed rows into the head (layer: their number). */
typedef enum muc_train_site {
    MUC_TRAIN_SITE_ATTENTION,
    MUC_TRAIN_SITE_HEADS,
    MUC_TRAIN_SITE_FFN,
    MUC_TRAIN_SITE_NEURONS,
    MUC_TRAIN_SITE_OUTPUT,
} muc_train_site;

/* Either may be NULL. Called by one thread, in the order of the pass. */
typedef struct muc_train_hooks {
    void *arg;
    /* changes x [rows][columns] in place; products and back see what it leaves */
    muc_status (*forward)(void *arg, muc_train_site site, uint32_t layer, size_t rows,
                          size_t columns, muc_scalar *x);
    /* x as forward left it, and the gradient dx by it, which becomes that by what forward got */
    muc_status (*back)(void *arg, muc_train_site site, uint32_t layer, size_t rows, size_t columns,
                       const muc_scalar *x, muc_scalar *dx);
} muc_train_hooks;

/* What the way back needs of a layer; [rows][...] */
typedef struct muc_train_kept {
    muc_scalar *in, *in_factors, *normed;      /* dim, 1 (of a LayerNorm 2), dim */
    muc_scalar *q, *k, *v;                     /* heads' widths, rotated */
    muc_scalar *q_raw, *k_raw;                 /* before their norm; NULL without one */
    muc_scalar *q_factors, *k_factors;         /* heads, kv_heads */
    muc_scalar *lse, *heads;                   /* heads, heads * width */
    muc_scalar *middle, *middle_factors, *ffn; /* as these */
    muc_scalar *gate, *up, *gated;             /* ffn_dim; gate: of a gated FFN */
} muc_train_kept;

/* A teacher: the gradients of a pass become those of (1 - share) times the cross entropy with the
 * targets plus share times that with what the teacher predicts. The loss stays the first. */
typedef struct muc_train_guide {
    struct muc_train_pass *pass; /* of a model of the same vocabulary; its activations are used */
    const muc_scalar *weights;   /* of that model */
    double share;                /* 0..1 */
} muc_train_guide;

typedef struct muc_train_pass {
    muc_context *ctx;
    const muc_train_shape *shape; /* borrowed */
    const muc_train_hooks *hooks; /* borrowed; NULL: none */
    const muc_train_guide *guide; /* borrowed; NULL: none */
    muc_arena arena;
    size_t capacity; /* most rows of a batch */
    float *cosines, *sines;
    muc_train_kept *kept;
    muc_scalar *last, *last_factors, *normed;        /* into the final norm, out of it */
    muc_scalar *dx, *dnormed, *dq, *dk, *dv, *dwide; /* dwide: the widest of heads and neurons */
    muc_scalar *logits;                              /* a piece of rows at a time */
    double *losses;
} muc_train_pass;

/* Allocates for batches of up to capacity rows; shape must outlive it. */
muc_status muc_train_pass_make(muc_context *ctx, const muc_train_shape *shape, size_t capacity,
                               muc_train_pass *out);
void muc_train_pass_free(muc_train_pass *pass);

/* Sum of -ln p over the counted rows. weights has the shape's layout. gradients NULL: the loss
 * alone; else they are added to. */
muc_status muc_train_run(muc_train_pass *pass, const muc_train_batch *batch,
                         const muc_scalar *weights, muc_scalar *gradients, double *loss);

/* The two halves, for muc_train_run: forward leaves the last layer's rows in pass->last; backward
 * takes the gradient by the final norm's result in pass->dnormed. */
muc_status muc_train_forward(muc_train_pass *pass, const muc_train_batch *batch,
                             const muc_scalar *weights);
muc_status muc_train_backward(muc_train_pass *pass, const muc_train_batch *batch,
                              const muc_scalar *weights, muc_scalar *gradients);

static inline muc_status muc_train_hook_forward(const muc_train_pass *pass, muc_train_site site,
                                                uint32_t layer, size_t rows, size_t columns,
                                                muc_scalar *x)
{
    const muc_train_hooks *h = pass->hooks;

    return h && h->forward ? h->forward(h->arg, site, layer, rows, columns, x) : MUC_OK;
}

static inline muc_status muc_train_hook_back(const muc_train_pass *pass, muc_train_site site,
                                             uint32_t layer, size_t rows, size_t columns,
                                             const muc_scalar *x, muc_scalar *dx)
{
    const muc_train_hooks *h = pass->hooks;

    return h && h->back ? h->back(h->arg, site, layer, rows, columns, x, dx) : MUC_OK;
}

#endif
