/* lower_nodes.h - a graph becomes a program, node by node: the first row of kernels.def that takes
 * a node writes its step.
 */
#ifndef MUC_MCU_LOWER_H
#define MUC_MCU_LOWER_H

#include "targets/mcu/program/mcu_program.h"

/* Fills program's values, steps and sources. Fails with MUC_UNSUPPORTED naming the node that no row
 * takes and what those for its operator need. */
muc_status muc_mcu_lower(muc_context *ctx, muc_graph *graph, muc_mcu_program *program);

/* Whether a row of kernels.def is for the operator. */
bool muc_mcu_runs(muc_op op);

#endif
