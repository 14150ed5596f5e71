/* net.h - what planning needs to know of a network in one memory level: who makes and reads what.
 *
 * A target fills it from its graph, with the bytes that each tensor takes at the largest values of
 * its symbols. order.h works on it. All pointers are borrowed.
 */
#ifndef MUC_PLAN_NET_H
#define MUC_PLAN_NET_H

#include "base/base.h"

typedef struct muc_net_tensor {
    const char *name;
    uint64_t bytes;  /* in this level. 0: takes no room here (a constant in flash, a tensor of
                      * another level, a mere dependency between two nodes) */
    bool input;      /* filled before the first node runs */
    bool output;     /* still read after the last node */
    bool persistent; /* state that outlives a run: lives always, and is neither made by a node nor
                      * computed over. A node that updates it lists it as an input; order among the
                      * readers is expressed by tensors of 0 bytes */
} muc_net_tensor;

/* A permission to compute an output over an input; whether it is used is the planner's choice. The
 * node has, for each byte of the output, read whatever it needs of the input before that byte is
 * written. Only used if nobody needs the input's bytes afterwards. */
typedef struct muc_net_share {
    uint32_t input, output; /* positions in the node's lists */
    /* the output's address less the input's, if the permission is used: 0 for elementwise work,
     * -N if the output must begin N bytes before the input because it is written while the input
     * is consumed front to back */
    int64_t offset;
} muc_net_share;

typedef struct muc_net_node {
    const char *name;
    const uint32_t *inputs, *outputs; /* tensors; an input may be listed twice */
    uint32_t input_count, output_count;
    const muc_net_share *shares; /* the best first; one is used for an output */
    uint32_t share_count;
    uint64_t scratch_bytes; /* needed only while the node runs */
} muc_net_node;

typedef struct muc_net {
    const muc_net_tensor *tensors;
    uint32_t tensor_count;
    const muc_net_node *nodes; /* in an order in which they can run */
    uint32_t node_count;
} muc_net;

/* Checks what order.h relies on: indices in range, every tensor made once, before it
 * is read, inputs and persistent tensors by no node; shares in range. MUC_USAGE naming the node. */
muc_status muc_net_check(muc_context *ctx, const muc_net *net);

#endif
