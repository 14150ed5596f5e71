/* write_steps.c - adds the operators that steps of a pattern stand for. */
#include "passes/simplify/write_steps.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OPERANDS = 3, MOST_ATTRIBUTES = 16 };

const char *muc_steps_skip_blanks(const char *at)
{
    while (*at == ' ')
        at++;
    return at;
}

const char *muc_steps_skip(const char *at)
{
    unsigned depth = 0;

    do {
        if (*at == '(' || *at == '{')
            depth++;
        if (*at == ')' || *at == '}')
            depth--;
        at++;
    } while (depth || (*at && !strchr(" (){}", *at)));
    return muc_steps_skip_blanks(at);
}

static const char *first_operand(const char *step)
{
    return muc_steps_skip_blanks(step + strcspn(step, " "));
}

static bool is_tensor(const char *at)
{
    return islower((unsigned char)*at) != 0;
}

static float number_of(const muc_steps *steps, const char *at)
{
    return *at == '?' ? steps->numbers[at[1] - 'a'] : strtof(at, NULL);
}

static bool is_absent(const muc_steps *steps, const char *at)
{
    while (*at == '(')
        at = first_operand(at);
    return is_tensor(at) ? steps->tensors[*at - 'x'] == MUC_NO_ID : isnan(number_of(steps, at));
}

/* the item that remains of one whose absent operands are left out */
static const char *present(const muc_steps *steps, const char *at)
{
    while (*at == '(') {
        const char *second = muc_steps_skip(first_operand(at));

        if (*second == ')' || !is_absent(steps, second))
            return at;
        at = first_operand(at);
    }
    return at;
}

muc_op muc_steps_operator(const char *at)
{
    const size_t length = strcspn(at + 1, " ");

    for (unsigned op = 0; at[1] != '*' && op < MUC_OP_COUNT; op++) {
        const char *name = muc_op_get((muc_op)op)->name;

        if (strncmp(name, at + 1, length) == 0 && name[length] == '\0')
            return (muc_op)op;
    }
    return MUC_OP_MUL;
}

/* "(op a b ..)"; out NULL: in the node's place */
static muc_status add_step(muc_rewrite *r, const muc_node *node, const char *at,
                           const muc_steps *steps, uint32_t *out)
{
    const muc_op op = muc_steps_operator(at);
    uint32_t inputs[MOST_OPERANDS], count = 0, attribute_count = 0;
    muc_attribute attributes[MOST_ATTRIBUTES];

    for (at = first_operand(at); *at != ')' && count < MOST_OPERANDS; at = muc_steps_skip(at))
        MUC_TRY(muc_steps_add(r, node, at, steps, &inputs[count++]));
    for (uint32_t i = 0; i < steps->attribute_count && attribute_count < MOST_ATTRIBUTES; i++) {
        bool required;

        if (muc_op_takes(op, steps->attributes[i].key, &required))
            attributes[attribute_count++] = steps->attributes[i];
    }
    if (!out)
        return muc_rewrite_change(r, node, op, inputs, count, attributes, attribute_count);
    return muc_rewrite_add(r, op, node->name, inputs, count, attributes, attribute_count, NULL,
                           out);
}

muc_status muc_steps_add(muc_rewrite *r, const muc_node *node, const char *at,
                         const muc_steps *steps, uint32_t *out)
{
    const muc_tensor like = { .dtype = MUC_F32 };
    float number;

    at = present(steps, at);
    if (*at == '(')
        return add_step(r, node, at, steps, out);
    if (is_tensor(at)) {
        *out = steps->tensors[*at - 'x'];
        return MUC_OK;
    }
    number = number_of(steps, at);
    return muc_rewrite_constant(r, node->name, &like, &number, sizeof(number), out);
}

muc_status muc_steps_change(muc_rewrite *r, const muc_node *node, const char *at,
                            const muc_steps *steps)
{
    return add_step(r, node, present(steps, at), steps, NULL);
}
