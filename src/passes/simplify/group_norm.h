/* group_norm.h - group norms that PyTorch writes as instance norms of another shape. */
#ifndef MUC_GROUP_NORM_H
#define MUC_GROUP_NORM_H

#include "passes/rewrite.h"

/* A reshape to [images, groups, ..], an instance_norm and a reshape back are a group_norm. */
muc_status muc_join_group_norm(muc_rewrite *r, const muc_node *node, bool *done);
/* Products and sums with a constant a channel behind norms of channels become their gains. */
muc_status muc_join_channel_gains(muc_rewrite *r, const muc_node *node, bool *done);

#endif
