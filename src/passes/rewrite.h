/* rewrite.h - a graph built anew in place: nodes kept, changed or left out, one after the other.
 *
 * A pass begins, goes over the old nodes in order, and for each one keeps it, adds others in its
 * place, or says which new tensors stand for its outputs. What no output depends on is left out,
 * and constants that nobody reads any more are dropped. Shapes are derived anew, names stay.
 * Expressions stay valid, for the pool is the graph's own. When a pass fails, the graph is good for
 * muc_graph_free alone.
 */
#ifndef MUC_REWRITE_H
#define MUC_REWRITE_H

#include "graph/graph.h"

typedef struct muc_rewrite {
    muc_context *ctx;
    muc_graph *graph;   /* the new one */
    muc_graph old;      /* what it was: tensors, nodes, outputs; its arena and pool are graph's */
    uint32_t *map;      /* old tensor to new one; MUC_NO_ID: none yet */
    uint32_t *readers;  /* of old tensors: inputs of needed nodes, and graph outputs */
    uint32_t *consumer; /* of old tensors: a needed node that reads it */
    bool *is_output;    /* of old tensors */
    bool *needed;       /* of old nodes */
    bool changed;       /* a rule did something */
} muc_rewrite;

/* The attributes of a node to be. */
typedef struct muc_attribute_list {
    muc_attribute items[16];
    uint32_t count;
} muc_attribute_list;

/* The node's own. False if there is no room for two more. */
bool muc_attribute_list_of(muc_attribute_list *a, const muc_node *node);
/* Adds one, or puts it in place of the one that has its key. */
void muc_attribute_list_set(muc_attribute_list *a, muc_attribute attribute);

/* Inputs and states are there, all else is to come. */
muc_status muc_rewrite_begin(muc_context *ctx, muc_graph *graph, muc_rewrite *r);
/* The new tensor of an old one, whose producer was dealt with; a constant is added now. MUC_NO_ID
 * stays what it is. */
muc_status muc_rewrite_tensor(muc_rewrite *r, uint32_t old, uint32_t *out);
/* Adds the old node as it was. */
muc_status muc_rewrite_keep(muc_rewrite *r, const muc_node *node);
/* The same with other new inputs and attributes; an attribute list may be the node's own. */
muc_status muc_rewrite_change(muc_rewrite *r, const muc_node *node, muc_op op,
                              const uint32_t *inputs, uint32_t input_count,
                              const muc_attribute *attributes, uint32_t attribute_count);
/* A tensor's name that neither graph has: the wanted one, or with "#2", ..., in the arena. */
muc_status muc_rewrite_free_name(muc_rewrite *r, const char *wanted, const char **out);
/* Adds a node of one output whose name is free: the wanted one, or with "#2", ... */
muc_status muc_rewrite_add(muc_rewrite *r, muc_op op, const char *name, const uint32_t *inputs,
                           uint32_t input_count, const muc_attribute *attributes,
                           uint32_t attribute_count, const muc_quantization *quantization,
                           uint32_t *out);
/* The same under this very name, which is free. */
muc_status muc_rewrite_add_named(muc_rewrite *r, muc_op op, const char *name,
                                 const uint32_t *inputs, uint32_t input_count,
                                 const muc_attribute *attributes, uint32_t attribute_count,
                                 const muc_quantization *quantization, uint32_t *out);
/* A slice to be: along each of the axes `sizes` elements from `starts` on; steps NULL: one after
 * another. It points to what it is made of. */
typedef struct muc_cut {
    muc_op op;
    muc_attribute attributes[4];
    uint32_t attribute_count;
} muc_cut;
muc_cut muc_cut_of(const int64_t *axes, const muc_expr *starts, const muc_expr *sizes,
                   const int64_t *steps, uint32_t count);
/* Adds a view of a new tensor in a shape, which may be that of an old tensor. */
muc_status muc_rewrite_add_view(muc_rewrite *r, const char *name, uint32_t x, const muc_expr *dims,
                                uint32_t rank, uint32_t *out);
/* The node becomes a view of a new tensor in the shape of its output. */
muc_status muc_rewrite_change_to_view(muc_rewrite *r, const muc_node *node, uint32_t x);
/* Adds a constant; data is copied into the graph's arena, but for the zeros of a graph of shapes.
 */
muc_status muc_rewrite_constant(muc_rewrite *r, const char *name, const muc_tensor *like,
                                const void *data, uint64_t bytes, uint32_t *out);
/* Adds a constant matrix [k, n] of elements of one byte as [n, k]; its quantization, if it carries
 * one, has one scale for all or one per column, which is a row then. */
muc_status muc_rewrite_transpose_bytes(muc_rewrite *r, const muc_tensor *w, uint32_t *out);
/* Outputs, and the proof that all is well. */
muc_status muc_rewrite_end(muc_rewrite *r);
void muc_rewrite_free(muc_rewrite *r);

/* Deals with the node and sets *done, or leaves it to the next rule. */
typedef muc_status muc_rewrite_rule(muc_rewrite *r, const muc_node *node, bool *done);
/* Goes over the graph with the rules, the first of which that deals with a node counts, until none
 * does anything. *changed (which may be NULL) is set if one did. */
muc_status muc_rewrite_with(muc_context *ctx, muc_graph *graph, muc_rewrite_rule *const *rules,
                            size_t count, bool *changed);
/* Output 0 of the node is the old tensor from now on, but for a graph's output, which keeps its
 * name: false then. */
bool muc_rewrite_alias(muc_rewrite *r, const muc_node *node, uint32_t old, muc_status *status);

/* ---- of old nodes ---- */

static inline const muc_tensor *muc_rewrite_old(const muc_rewrite *r, uint32_t tensor)
{
    return &r->old.tensors[tensor];
}
/* The node that alone reads the tensor, which is not an output of the graph; else NULL. */
const muc_node *muc_rewrite_only_reader(const muc_rewrite *r, uint32_t tensor);
/* The node that computes the tensor; NULL for inputs, constants, states. */
const muc_node *muc_rewrite_producer(const muc_rewrite *r, uint32_t tensor);
/* A constant with data. */
bool muc_rewrite_is_constant(const muc_rewrite *r, uint32_t tensor);
/* A constant of which only the shape is known, and of as many bytes as the new one that is to be
 * made of it: that is then made of the same data. */
bool muc_rewrite_is_shape(const muc_rewrite *r, const muc_tensor *constant, uint64_t bytes);
/* Dimension i's value; false if it is not a constant. */
bool muc_rewrite_dim(const muc_graph *graph, const muc_tensor *tensor, uint32_t i, uint32_t *out);

#endif
