/* join_norms.h - norms that exporters write as several operators. */
#ifndef MUC_JOIN_NORMS_H
#define MUC_JOIN_NORMS_H

#include "passes/rewrite.h"

/* What a norm's gains and biases have an element for: each of x's dimensions first..end-1. */
typedef struct muc_gain_span {
    const muc_tensor *x;
    uint32_t first, end;
    size_t count; /* the elements; 0: not known */
} muc_gain_span;

muc_gain_span muc_gain_span_of(const muc_rewrite *r, const muc_tensor *x, uint32_t first,
                               uint32_t end);
/* Whether a constant has one element for each of the span, in this order, or one for all. */
bool muc_gains_span(const muc_rewrite *r, uint32_t id, const muc_gain_span *s);
/* A new constant of the span: each element that of a, of which one serves `each`, times b's or,
 * with `sum`, plus it. A MUC_NO_ID leaves the other alone, two give ones. */
muc_status muc_gains_add(muc_rewrite *r, const char *name, const muc_gain_span *s, size_t each,
                         uint32_t a, uint32_t b, bool sum, uint32_t *out);

/* A reshape to [images, groups, ..], an instance_norm and a reshape back are a group_norm, as
 * PyTorch writes it. */
muc_status muc_join_group_norm(muc_rewrite *r, const muc_node *node, bool *done);
/* Products and sums with constants behind a norm become its gains and biases. */
muc_status muc_join_gains(muc_rewrite *r, const muc_node *node, bool *done);

/* What a batch norm of constants makes of x in each channel, factor x + offset: the factors, then
 * the offsets, to be freed. NULL: it is none, or memory is out. */
double *muc_norm_numbers(const muc_rewrite *r, const muc_node *norm, size_t *channels);

#endif
