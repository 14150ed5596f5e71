/* write_steps.h - adds the operators that steps, as ops.def explains them, stand for. */
#ifndef MUC_PASSES_WRITE_STEPS_H
#define MUC_PASSES_WRITE_STEPS_H

#include "passes/rewrite.h"

/* What steps read. An operand that is absent is left out, and so is the step if only one other
 * operand remains: that stands for it. */
typedef struct muc_steps {
    uint32_t tensors[3]; /* x, y and z, new tensors; MUC_NO_ID: absent */
    float numbers[3];    /* ?a, ?b and ?c; NAN: absent */
    /* each step has those that its operator takes */
    const muc_attribute *attributes;
    uint32_t attribute_count;
} muc_steps;

const char *muc_steps_skip_blanks(const char *at);
/* Behind an item of steps, a name, a number or a step, and the blanks after it. */
const char *muc_steps_skip(const char *at);
/* The operator of the step at the beginning of `at`; * is mul. */
muc_op muc_steps_operator(const char *at);
/* Adds the steps of the item at the beginning of `at`, under names like the node's. */
muc_status muc_steps_add(muc_rewrite *r, const muc_node *node, const char *at,
                         const muc_steps *steps, uint32_t *out);
/* The same, but the last step takes the node's place; there must be a step. */
muc_status muc_steps_change(muc_rewrite *r, const muc_node *node, const char *at,
                            const muc_steps *steps);

#endif
