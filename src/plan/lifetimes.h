/* lifetimes.h - from a network and an order of its nodes to buffers with lives, ready to place.
 *
 * Step i is when the i-th node of the order runs. A tensor lives from the step that makes it (0 if
 * it is an input) to the last step that reads it (the last step if it is an output); one that
 * nobody reads lives in its own step.
 *
 * Shares are settled here. Views are taken first, a permission to overwrite if it is safe: no
 * tensor that holds some of those bytes is read later, or read by this node other than with the
 * same permission, or is an output or persistent; views of views count. An input is overwritten by
 * one output at most.
 */
#ifndef MUC_PLAN_LIFETIMES_H
#define MUC_PLAN_LIFETIMES_H

#include "base/arena.h"
#include "plan/net.h"
#include "plan/place.h"

typedef struct muc_lifetimes {
    /* buffers 0..tensor_count-1 are the tensors, then come tensor_count + n, the scratch of node
     * n. Those of 0 bytes take no room. Arena-owned; borrow their names from the network. */
    muc_plan_buffer *buffers;
    uint32_t count;
    /* used[n][s]: share s of node n is used, so that the two tensors lie at its offset from one
     * another. Arena-owned. */
    bool **used;
    uint32_t views, overwrites; /* how many of each kind are used */
} muc_lifetimes;

/* MUC_USAGE as muc_net_check, or if order is not one in which the nodes can run. A view whose
 * bytes cannot be shared (it would put two live values into one place, say a concatenation that
 * takes the same tensor twice) is not used; its node must copy. */
muc_status muc_lifetimes_find(muc_context *ctx, muc_arena *arena, const muc_net *net,
                              const uint32_t *order, muc_lifetimes *result);

#endif
