/* views.h - which tensors of a network hold the same bytes, whatever the order of its nodes.
 * Private to this room. */
#ifndef MUC_PLAN_VIEWS_H
#define MUC_PLAN_VIEWS_H

#include "plan/net.h"

typedef struct muc_views {
    /* Tensors of one root lie at fixed distances from it, and where they overlap they hold the
     * same bytes. A tensor without views is its own root. */
    uint32_t *root;
    int64_t *offset;       /* bytes from the root's address */
    uint32_t *next;        /* the tensors of a root as a circle */
    bool *used;            /* of each share of each node, in order: a view that was taken */
    uint32_t *first_share; /* of each node: its first in `used`; one more entry at the end */
} muc_views;

/* Takes every view that can be taken, in the order of the nodes. A view of a part is always
 * possible; the input of a concatenation becomes a part of the output unless something else lies
 * around it already. *out owns its arrays even after a failure. */
muc_status muc_views_find(muc_context *ctx, const muc_net *net, muc_views *out);
void muc_views_free(muc_views *views);

#endif
