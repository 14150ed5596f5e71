/* attributes.h - a node's attributes in the making; items are stored here until the node copies
 * them. */
#ifndef MUC_ATTRIBUTES_H
#define MUC_ATTRIBUTES_H

#include "graph/graph.h"

typedef struct muc_attributes {
    muc_attribute items[8];
    uint32_t count;
    int64_t integers[64];
    muc_expr exprs[MUC_GRAPH_MAX_RANK];
    uint32_t integer_count;
} muc_attributes;

void muc_attributes_set(muc_attributes *a, muc_attribute_key key, int64_t value);
void muc_attributes_set_real(muc_attributes *a, muc_attribute_key key, double value);
void muc_attributes_set_integers(muc_attributes *a, muc_attribute_key key, const int64_t *items,
                                 uint32_t count);
/* Constants of 0 .. 2^32 - 1; at most MUC_GRAPH_MAX_RANK, once a node. */
void muc_attributes_set_exprs(muc_attributes *a, muc_graph *graph, muc_attribute_key key,
                              const int64_t *items, uint32_t count);

#endif
