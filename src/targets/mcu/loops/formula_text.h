/* formula_text.h - the formulas of graph/elementwise.def and reductions.def as C for the device. */
#ifndef MUC_TARGETS_MCU_FORMULA_TEXT_H
#define MUC_TARGETS_MCU_FORMULA_TEXT_H

#include "graph/formula.h"
#include "targets/mcu/loops/loop_nest.h"

/* For f32, or for integers. Functions are those of mur_real.h and mur_real_wide.h; what is left to
 * be put in: x and y, the types T, S and U, and the attributes' names. NULL where there is none. */
const char *muc_mcu_formula_text(muc_formula formula, bool is_real);

/* A reduction's formulas: sum before the first element, with element x, and the result. Words left:
 * sum, x, n and most. NULL where there is none. */
typedef struct muc_mcu_fold {
    const char *start, *step, *end;
} muc_mcu_fold;
const muc_mcu_fold *muc_mcu_fold_text(muc_op op, bool is_real);

/* The steps of a row of operators/rows.def. NULL where there is none. */
const muc_mcu_row_line *muc_mcu_row_text(muc_op op);

#endif
