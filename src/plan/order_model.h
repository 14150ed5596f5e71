/* order_model.h - the bytes that live when some nodes of a network have run and one more does.
 * Private to this room. */
#ifndef MUC_PLAN_ORDER_MODEL_H
#define MUC_PLAN_ORDER_MODEL_H

#include "plan/net.h"

/* a set of executed nodes: one bit a node */
typedef uint64_t muc_node_set;

static inline bool muc_set_has(const muc_node_set *set, uint32_t node)
{
    return set[node / 64] >> node % 64 & 1;
}

typedef struct muc_order_model {
    const muc_net *net;
    uint32_t words;         /* of a set */
    uint32_t *maker;        /* of each tensor: the node that makes it, or UINT32_MAX */
    uint32_t *readers;      /* of each tensor, one after the other: nodes, each once */
    uint32_t *first_reader; /* of each tensor: its first in readers; one more entry at the end */
} muc_order_model;

/* Borrows the network, which has been checked. *out owns its arrays even after a failure. */
muc_status muc_order_model_build(muc_context *ctx, const muc_net *net, muc_order_model *out);
void muc_order_model_free(muc_order_model *model);

/* what lives before any node runs */
uint64_t muc_order_start_bytes(const muc_order_model *model, const muc_node_set *nothing);

bool muc_order_is_ready(const muc_order_model *model, const muc_node_set *done, uint32_t node);

/* Runs a node that is ready when those in `done` have run and live_bytes live: sets how much lives
 * meanwhile, returns how much does afterwards. `done` is changed and restored. */
uint64_t muc_order_run(const muc_order_model *model, muc_node_set *done, uint64_t live_bytes,
                       uint32_t node, uint64_t *meanwhile);

#endif
