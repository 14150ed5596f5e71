/* pointwise.h - functions of one number that a graph computes in one step or several. */
#ifndef MUC_POINTWISE_H
#define MUC_POINTWISE_H

#include "passes/rewrite.h"

/* Whether a node's output is a function of one tensor, element by element: functions[t] is that
 * tensor for each of the node's inputs, and what it is for the output comes out; the output itself
 * if there is none. Other inputs are constants of one element. */
uint32_t muc_pointwise_function(const muc_rewrite *r, const muc_node *node,
                                const uint32_t *functions);

/* What a tensor is for count numbers of the tensor that it is a function of, by the reference. Both
 * are packed, each of its tensor's type. */
muc_status muc_pointwise_evaluate(const muc_rewrite *r, uint32_t of, uint32_t tensor,
                                  const void *numbers, uint32_t count, void *out);

#endif
