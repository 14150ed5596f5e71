/* attributes.h - a node's attributes in the making; lists are stored here until the node copies
 * them. */
#ifndef MUC_ATTRIBUTES_H
#define MUC_ATTRIBUTES_H

#include "graph/graph.h"

typedef struct muc_attributes {
    muc_attribute items[16];
    uint32_t count;
    int64_t integers[64];
    muc_expr exprs[64];
    uint32_t integer_count, expr_count;
} muc_attributes;

/* An integer, a word or a type. */
void muc_attributes_set(muc_attributes *a, muc_attribute_key key, int64_t value);
void muc_attributes_set_real(muc_attributes *a, muc_attribute_key key, double value);
void muc_attributes_set_expr(muc_attributes *a, muc_attribute_key key, muc_expr value);
/* Lists of one node: at most 64 integers and 64 expressions in all. */
void muc_attributes_set_integers(muc_attributes *a, muc_attribute_key key, const int64_t *items,
                                 uint32_t count);
void muc_attributes_set_exprs(muc_attributes *a, muc_attribute_key key, const muc_expr *items,
                              uint32_t count);
/* Constants of 0 .. 2^32 - 1 as expressions. */
void muc_attributes_set_sizes(muc_attributes *a, muc_graph *graph, muc_attribute_key key,
                              const int64_t *items, uint32_t count);
/* Borrows items until the node is made. */
void muc_attributes_set_reals(muc_attributes *a, muc_attribute_key key, const double *items,
                              uint32_t count);

/* The dimension that an axis names, which may count from the end. Fails with MUC_MALFORMED, naming
 * the subject, if there is none. */
muc_status muc_import_axis(muc_subject subject, int64_t given, uint32_t rank, int64_t *axis);

#endif
