/* run_checks.h - what a run refuses, as the reference does: lengths out of their range, lengths
 * with which the shapes do not fit one another, indices that a tensor does not have.
 *
 * NAME_run returns 0, or the number of the first check that failed: from 1 on, the arguments'
 * ranges, what the graph's expressions promise, then what steps want of their data, which the run
 * looks at just before the step.
 */
#ifndef MUC_MCU_CHECKS_H
#define MUC_MCU_CHECKS_H

#include "targets/mcu/steps/step_writer.h"

/* What a node wants of its data, for the steps from `first` on, which were written for it: a
 * function of C each, in the first one's text. Fails with MUC_MALFORMED where a constant has not
 * got it. */
muc_status muc_mcu_add_checks(muc_mcu_lowering *l, const muc_node *node, uint32_t first);

/* Whether NAME_run returns a status. */
bool muc_mcu_may_refuse(const muc_mcu_program *program);
/* "if (...)" before NUMBER after, for each check of the run's lengths. */
void muc_mcu_emit_first_checks(const muc_mcu_program *program, const char *before,
                               const char *after, muc_text *text);
/* The checks before the call of a step. */
void muc_mcu_emit_checks(const muc_mcu_program *program, const muc_mcu_step *step, muc_text *text);
/* The sentences of all checks, each as a string of C on a line of its own with a comma. */
void muc_mcu_emit_refusals(const muc_mcu_program *program, muc_text *text);

#endif
