/* ranges.h - what values the tensors of a float32 network take, seen over runs of the reference. */
#ifndef MUC_RANGES_H
#define MUC_RANGES_H

#include "passes/int8/masks.h"

enum { MUC_RANGE_BINS = 2048 }; /* of a histogram around zero */

/* Of one tensor. least > most: nothing was seen. */
typedef struct muc_range {
    float least, most;
    float reach;      /* the histogram covers -reach .. reach, a power of two */
    uint64_t *counts; /* [MUC_RANGE_BINS], or NULL; exact zeros are not in it */
} muc_range;

typedef struct muc_ranges {
    const muc_graph *graph;
    muc_range *tensors; /* [count] */
    muc_mask *masks;    /* [count] */
    uint32_t count;     /* of the graph's tensors, before a pass changes it */
    uint64_t runs;
    bool assumed; /* by muc_ranges_assume: how numbers are spread is not known */
} muc_ranges;

muc_status muc_ranges_new(muc_context *ctx, const muc_graph *graph, muc_ranges *out);
void muc_ranges_free(muc_ranges *ranges);
/* Adds the f32 inputs and activations of a run of the graph. MUC_MALFORMED naming a tensor that is
 * not finite. */
muc_status muc_ranges_add(muc_context *ctx, muc_ranges *ranges, const muc_ref *ref);
/* A run on which every f32 tensor went from 0 to 1 (unlike: from some number to another), in place
 * of one that was not made: for plans, which need shapes and types alone. */
muc_status muc_ranges_assume(muc_context *ctx, muc_ranges *ranges, bool unlike);
/* Adds numbers, of a tensor of this name. */
muc_status muc_range_add(muc_context *ctx, muc_range *range, const char *name, const float *x,
                         size_t count);
/* Adds what another range of another tensor saw: that both may share one. */
muc_status muc_range_join(muc_context *ctx, muc_range *into, const muc_range *other);

/* The bounds, zero within, between which `levels` equally far numbers give the least mean squared
 * error over all that was seen: whatever lies beyond them is clipped. */
void muc_range_choose(const muc_range *range, unsigned levels, float *least, float *most);

#endif
