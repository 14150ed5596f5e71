/* lower_nodes.h - a graph becomes a program, node by node: the first writer of its operator
 * (CODE in ops.def) that takes a node writes its step.
 */
#ifndef MUC_MCU_LOWER_H
#define MUC_MCU_LOWER_H

#include "targets/mcu/program/mcu_program.h"

/* Fills program's values, steps and sources. Fails with MUC_UNSUPPORTED naming the node that no
 * writer takes and what those of its operator need. */
muc_status muc_mcu_lower(muc_context *ctx, muc_graph *graph, muc_mcu_program *program);

/* Before that: muc_prepare_mcu, and on a core without tiles muc_mcu_keep_halves. */
muc_status muc_mcu_prepare(muc_context *ctx, muc_graph *graph, muc_mcu_core core, bool has_tiles);
/* Operators between casts from and to f16 that the core has kernels of f16 for are operators on f16
 * again. */
muc_status muc_mcu_keep_halves(muc_context *ctx, muc_graph *graph, muc_mcu_core core);

/* Whether the operator has a writer. */
bool muc_mcu_runs(muc_op op);

#endif
