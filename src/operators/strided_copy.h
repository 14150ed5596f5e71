/* strided_copy.h - operators that only copy elements, as loops with a step through x and one
 * through y for each: ref runs them, mcu prints them.
 */
#ifndef MUC_STRIDED_COPY_H
#define MUC_STRIDED_COPY_H

#include "graph/graph.h"

enum { MUC_COPY_MOST_LOOPS = 2 * MUC_GRAPH_MAX_RANK };

/* A tensor as it lies in memory: elements from one index of a dimension to the next. */
typedef struct muc_copy_side {
    uint32_t rank;
    size_t dims[MUC_GRAPH_MAX_RANK], steps[MUC_GRAPH_MAX_RANK];
} muc_copy_side;

/* Loops, outermost first; from and to: elements of x and of y from turn to turn. */
typedef struct muc_strided_copy {
    uint32_t count;
    struct {
        size_t extent;
        ptrdiff_t from, to;
    } loops[MUC_COPY_MOST_LOOPS];
} muc_strided_copy;

/* The copy that a node of known shapes is. Its operator has the fact COPY of ops.def. */
muc_strided_copy muc_copy_of(const muc_node *node, const muc_copy_side *x, const muc_copy_side *y);

#endif
