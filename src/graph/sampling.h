/* sampling.h - resize along one dimension: which elements of x, with which weights, an element of
 * the result is made of. What the reference and the generators share.
 */
#ifndef MUC_GRAPH_SAMPLING_H
#define MUC_GRAPH_SAMPLING_H

#include <stddef.h>

#include "graph/graph.h"

/* How one dimension is sampled. */
typedef struct muc_sampling {
    muc_word mode, coordinates, rounding;
    size_t in, out;
    double scale, start, end; /* start, end: of roi */
    double cubic;             /* the coefficient of cubic interpolation */
    bool exclude_outside, antialias;
} muc_sampling;

/* Dimension d of a resize of rank dimensions, from in to out elements. */
muc_sampling muc_sampling_of(const muc_node *node, uint32_t rank, uint32_t d, size_t in,
                             size_t out);
/* Whether the dimension stays as it is. */
bool muc_sampling_is_kept(const muc_sampling *s);
/* The place in x of element i, within what integers can tell, whatever the scales are. */
double muc_sampling_coordinate(const muc_sampling *s, size_t i);
/* A factor of distances: below 1 the interpolating function is wider than elements are apart. */
double muc_sampling_widening(const muc_sampling *s);
/* How many neighbours an element has; *first is where they begin for muc_sampling_weigh. */
size_t muc_sampling_neighbours(const muc_sampling *s, ptrdiff_t *first);
/* Weights [count] of the neighbours of element i, which begin at *first, maybe outside of x. */
void muc_sampling_weigh(const muc_sampling *s, size_t i, size_t count, double *weights,
                        ptrdiff_t *first);

/* Whether the scales of a resize are not those of its sizes. */
bool muc_resize_has_own_scales(const muc_graph *graph, const muc_node *node);
/* Whether TensorFlow Lite has this resize for quantized tensors: of two neighbouring dimensions,
 * the first of which is given, of [N, H, W, C] or [N, C, H, W]. */
bool muc_resize_as_tflite(const muc_graph *graph, const muc_node *node, uint32_t *first);
/* As TensorFlow Lite has it for quantized tensors: the nearest, in single precision; the two
 * neighbours, and the weight of the upper one in 1024ths. */
size_t muc_sampling_nearest_q(const muc_sampling *s, size_t i);
void muc_sampling_neighbours_q(const muc_sampling *s, size_t i, size_t *lower, size_t *upper,
                               int64_t *weight);

#endif
