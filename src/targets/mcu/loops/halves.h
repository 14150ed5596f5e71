/* halves.h - operators on f16 by the runtime's kernels for Helium: element by element, and pools.
 */
#ifndef MUC_MCU_HALVES_H
#define MUC_MCU_HALVES_H

#include "targets/mcu/steps/step_writer.h"

/* Whether there are kernels for halves. */
bool muc_mcu_has_halves(const muc_mcu_lowering *l);
/* Whether one computes the operator from inputs of a fixed shape alike, whatever their type. */
bool muc_mcu_fits_halves(const muc_mcu_lowering *l, const muc_node *node);
/* Whether it is a pool, or a mean over all pixels, that one computes, whatever its type. */
bool muc_mcu_fits_pool_f16(const muc_mcu_lowering *l, const muc_node *node);
/* The same of a node of f16 element by element, or a cast between it and f32; and its step. */
bool muc_mcu_takes_halves(const muc_mcu_lowering *l, const muc_node *node);
muc_status muc_mcu_write_halves(muc_mcu_lowering *l, const muc_node *node);

#endif
