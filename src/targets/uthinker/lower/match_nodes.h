/* match_nodes.h - which node of a graph computes which stage of the schedule. Private to the match.
 */
#ifndef MUC_UTHINKER_MATCH_NODES_H
#define MUC_UTHINKER_MATCH_NODES_H

#include "base/arena.h"
#include "graph/graph.h"

/* attention_norm and ffn_norm are NULL where Q, K, V, gate and up take the residual itself. */
typedef struct layer_nodes {
    const muc_node *attention_norm, *q, *k, *v, *q_rope, *k_rope, *attention, *o, *o_residual;
    const muc_node *ffn_norm, *gate, *up, *silu, *gated, *down, *residual;
    const muc_node *q_norm, *k_norm; /* of heads, or of all of them together; NULL: none */
    /* what O and down give, normalised and scaled before it is added; NULL: it is not */
    const muc_node *o_norm, *o_scaled, *down_norm, *down_scaled;
} layer_nodes;

typedef struct matching {
    muc_context *ctx;
    muc_arena *arena;
    const muc_graph *graph;
    bool shapes; /* look at no value */
    bool *seen;  /* [nodes] */
    const muc_node *embed, *final_norm, *head;
    const muc_node *embed_scaled, *head_scaled, *head_uncapped, *head_capped; /* NULL: none */
    layer_nodes *layers; /* the last one first */
    size_t layer_count, capacity;
} matching;

/* MUC_UNSUPPORTED, naming the node */
muc_status muc_match_refuse(const matching *m, const muc_node *node, const char *why);
/* Finds every stage, from the logits back to the tokens: m->ctx, arena and graph are given. Fails
 * with MUC_UNSUPPORTED naming the first node that is something else. */
muc_status muc_match_nodes(matching *m);

#endif
