/* order.h - in which order the nodes of a network run, so that the least memory is needed.
 *
 * What is minimised is the most bytes that live while any node runs: its scratch, its outputs, and
 * every tensor that it or a later node reads; bytes that shares let inputs and outputs have in
 * common count once. (That is the bound that placement starts from.)
 */
#ifndef MUC_PLAN_ORDER_H
#define MUC_PLAN_ORDER_H

#include "plan/net.h"

typedef struct muc_order {
    uint64_t given_bytes; /* result: the peak in the order given */
    uint64_t peak_bytes;  /* result: the peak in the order found, at most given_bytes */
    bool optimal;         /* result: no order needs fewer */
    uint32_t states;      /* result: sets of executed nodes that were looked at */
} muc_order;

/* Writes into order[0..node_count-1] the nodes in the order to run them; the given order if no
 * better one is found. Exact for up to a fixed number of states (chains and networks of a few
 * branches take a few states a node), a beam search beyond. At most 65536 nodes; deterministic.
 * MUC_USAGE as muc_net_check. */
muc_status muc_order_find(muc_context *ctx, const muc_net *net, uint32_t *order, muc_order *result);

#endif
