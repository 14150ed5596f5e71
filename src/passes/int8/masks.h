/* masks.h - numbers that are so far below others in a softmax that how far does not matter. */
#ifndef MUC_MASKS_H
#define MUC_MASKS_H

#include "graph/graph.h"
#include "ref/ref.h"

/* Of a tensor: what may be raised. */
typedef enum muc_mask {
    MUC_NO_MASK,
    MUC_MASKED, /* scores that softmax alone reads, along the last dimension: a row's least */
    MUC_MASK,   /* what alone such scores are the sum of with others: its least of all */
} muc_mask;

/* What e^-x is for a byte: nothing, even of many elements. */
#define MUC_MASK_DEPTH 10.0f
/* What only masks are apart: scores themselves differ from row to row. */
#define MUC_MASK_DEEP 1000.0f

/* Fills masks [graph's tensors]. */
void muc_masks_find(const muc_graph *graph, muc_mask *masks);
/* The number that stands for all below it, of numbers that are `most` at the greatest and are added
 * to others of such a spread. */
static inline float muc_mask_floor(float most, float spread)
{
    return most - spread - MUC_MASK_DEPTH;
}
/* Copies the numbers of a tensor after a run, raised where that loses nothing. */
void muc_mask_raise(const muc_graph *graph, const muc_ref *ref, uint32_t tensor, muc_mask mask,
                    const muc_ref_view *view, float *out);

#endif
