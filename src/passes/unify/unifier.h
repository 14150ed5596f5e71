/* unifier.h - what comparing exports (unify_compare.c) and building the one graph (unify.c) share.
 *
 * Exports are counted from 0; "the first" is export 0, whose names and ids the messages use.
 * Private to this room.
 */
#ifndef MUC_UNIFIER_H
#define MUC_UNIFIER_H

#include "passes/unify/lengths.h"
#include "passes/unify/unify.h"

/* A constant of every export that is the same operand of the same node. */
typedef struct muc_unifier_constant {
    const uint32_t *ids;               /* [count], tensors of each export */
    struct muc_unifier_constant *next; /* with the same tensor of the first export */
    bool differs;
    uint32_t first_word, words; /* in the record, if it differs */
    uint32_t tensor;            /* of the unified graph */
} muc_unifier_constant;

typedef struct muc_unifier {
    muc_context *ctx;
    muc_graph *const *graphs;
    const char *const *paths;
    uint32_t count;
    const muc_unify_options *options;
    muc_unified *out;
    muc_arena scratch;
    muc_lengths lengths;
    uint32_t **ordinals;              /* [count][tensor]: number of an INPUT among inputs */
    muc_unifier_constant **constants; /* [tensor of the first export] */
    bool *appends;                    /* [node]: concatenates new rows to a cache */
    uint32_t *map;    /* tensor of the first export to tensor of the unified graph */
    uint32_t record;  /* the input tensor */
    uint32_t *vector; /* [count], a number of each export */
} muc_unifier;

static inline const muc_graph *muc_unifier_first(const muc_unifier *u)
{
    return u->graphs[0];
}

static inline const muc_tensor *muc_unifier_tensor(const muc_unifier *u, uint32_t export,
                                                   uint32_t node, uint32_t input)
{
    const muc_graph *graph = u->graphs[export];

    return &graph->tensors[graph->nodes[node].inputs[input]];
}

/* Fails: "no export of the same network as A: node 'x' (op) SENTENCE", the node being one of the
 * first export's. Always MUC_UNSUPPORTED. */
muc_status muc_unifier_differ(const muc_unifier *u, uint32_t export, uint32_t node,
                              const char *sentence);
/* The number that dimension i is; false where it is none. */
bool muc_unifier_dim(const muc_graph *graph, const muc_tensor *tensor, uint32_t i, uint32_t *out);
/* The constant that is this operand, entered if it is new; lives as long as the scratch arena. */
muc_status muc_unifier_constant_at(muc_unifier *u, uint32_t node, uint32_t input,
                                   muc_unifier_constant **out);

/* Holds all exports against the first, node by node. Fills ordinals and constants, and in the
 * result record_words. MUC_UNSUPPORTED, with the first difference, for another network. */
muc_status muc_unifier_compare(muc_unifier *u);

#endif
