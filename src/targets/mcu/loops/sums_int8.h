/* sums_int8.h - additions and subtractions of int8: what the runtime's kernels of them need. */
#ifndef MUC_MCU_SUMS_INT8_H
#define MUC_MCU_SUMS_INT8_H

#include "mur_nn.h"
#include "targets/mcu/steps/step_writer.h"

/* in TFLite's arithmetic */
mur_add_s8 muc_mcu_add_of(const muc_mcu_lowering *l, const muc_node *node);
/* The numbers of a line_s8 of the same bits for every pair; false if none are found. */
bool muc_mcu_find_line(const mur_add_s8 *add, mur_add_s8 *sum);
/* Whether an addition of int8 that is no line is one but for few sums, and has enough elements to
 * be worth it: those x of mur_line with x & mask = 0 may be wrong. */
bool muc_mcu_find_near_line(const muc_mcu_lowering *l, const muc_node *node, mur_add_s8 *sum,
                            int32_t *mask);

#endif
