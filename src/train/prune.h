/* prune.h - structured pruning: attention heads and neurons that matter least are masked while a
 * model trains, then removed.
 *
 * A unit's importance in a step is the sum over tokens of |activation . gradient by it|: of a
 * head's output before o, of a gated neuron before down. It is averaged over steps (0.95) and
 * divided by the L2 norm of its layer's. Every 50 steps the least important units of all layers are
 * masked, until their share is p(t) = target + (0.1 - target) (1 - t / N)^3, heads among heads and
 * neurons among neurons; a layer keeps one head and eight neurons. (MicroLLM, section B, from
 * gradients of the loss; the average, the norm and the cubic are ours.) At step N layers get
 * multiples of four neurons: some have neurons back for what others lose.
 *
 * Where a layer has several heads of keys, the unit is such a head with all its heads of queries;
 * where it has one, a head of queries. So groups stay whole.
 */
#ifndef MUC_TRAIN_PRUNE_H
#define MUC_TRAIN_PRUNE_H

#include "train/trainer.h"

/* The units of a layer in the arrays below. */
typedef struct muc_train_units {
    size_t heads, neurons; /* first unit */
    uint32_t head_units;   /* as many as neurons are in the shape's ffn_dim */
    uint32_t heads_each;   /* heads of queries in a unit */
} muc_train_units;

typedef struct muc_train_pruner {
    muc_context *ctx;
    const muc_train_shape *shape; /* borrowed */
    double target;
    uint64_t steps;
    muc_arena arena;
    muc_train_hooks hooks;   /* for the trainer's pass */
    muc_train_method method; /* for the trainer */
    muc_train_units *layers;
    size_t units;
    double *scores; /* [units] averages; negative: masked, as it was then. All that a run's state
                       needs */
    double *now;    /* [units] of this step */
} muc_train_pruner;

/* target: the share of units that go, below 1; steps: N, at least 1. The pruner must stay where it
 * is while its hooks are used. */
muc_status muc_train_pruner_make(muc_context *ctx, const muc_train_shape *shape, double target,
                                 uint64_t steps, muc_train_pruner *out);
void muc_train_pruner_free(muc_train_pruner *pruner);

/* The share of units that are masked, of all heads or of all neurons. */
double muc_train_pruned_share(const muc_train_pruner *pruner, bool neurons);

/* The model without what is masked: its shape, and its weights in it, malloc'ed. It computes what
 * the masked one computes. */
muc_status muc_train_remove_masked(const muc_train_pruner *pruner, const muc_scalar *weights,
                                   muc_train_shape *shape, muc_scalar **out);

#endif
