/* order_steps.h - the order of a program's steps, for the least memory. */
#ifndef MUC_MCU_ORDER_H
#define MUC_MCU_ORDER_H

#include "targets/mcu/program/mcu_program.h"

/* Sorts the steps into an order whose bound on the arena is lower, if plan/order.h finds one; the
 * graph's order stays where none is. Steps keep their names. Runs after lowering, when scratch,
 * views and what may be overwritten are known, and before loops are made. A program in which a step
 * rewrites what another has made (other than state) keeps its order. */
muc_status muc_mcu_order_steps(muc_context *ctx, muc_mcu_program *program);

#endif
