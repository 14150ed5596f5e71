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

/* One line of what is done with a row of input 0: `each` stands in a loop over its elements. @n is
 * the number of them, @e, @k, @p, @s, @l the attributes epsilon, beta, p, shift, levels; @a, @y, @b
 * and @i are the elements of x, the result, inputs 1 and 2; @c is "+ c[..]", or nothing where there
 * is no input 2. */
typedef struct muc_mcu_row_line {
    bool each;
    const char *text; /* NULL: behind the last line */
} muc_mcu_row_line;
/* The steps of a row of operators/rows.def. NULL where there is none. */
const muc_mcu_row_line *muc_mcu_row_text(muc_op op);

#endif
