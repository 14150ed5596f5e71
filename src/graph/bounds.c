/* bounds.c - reads the bounds of inputs from ops.def. */
#include "graph/bounds.h"

/* A row's fact; behind the last one elements are 0 apart. */
typedef struct bound_fact {
    muc_bound bound;
    muc_attribute_key axis; /* of the dimension that counts; MUC_KEY_COUNT: 0 */
} bound_fact;

static const struct {
    muc_op op;
    bound_fact facts[4];
} table[] = {
#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    { MUC_OP_##id, { MUC_FACTS facts{ .axis = MUC_KEY_COUNT } } },
#define LENGTHS(input, key) { { input, 0, 1, 0, 0, { 0, 1 }, { 0, 0 } }, MUC_KEY_##key },
#define ROWS_OF(input, of) { { input, 0, 1, of, 0, { 0, 1 }, { 0, -1 } }, MUC_KEY_COUNT },
#define WITHIN(input, element, low, high) \
    { { input, element, UINT32_MAX, 0, 0, { 0, 0 }, { low, high } }, MUC_KEY_COUNT },
#include "graph/ops.def"
};

/* input 1's indices, negative ones from the end */
static uint32_t indices(const muc_node *node, uint32_t tuple, muc_bound *out)
{
    const muc_attribute *along = muc_node_attribute(node, MUC_KEY_AXIS);
    uint32_t first = along ? (uint32_t)along->value.integer
                           : (uint32_t)muc_node_integer_or(node, MUC_KEY_BATCH_DIMS, 0);
    uint32_t count = along ? 1 : tuple;

    for (uint32_t i = 0; i < count; i++)
        out[i] = (muc_bound){ 1, i, count, 0, first + i, { -1, 1 }, { 0, -1 } };
    return count;
}

uint32_t muc_bounds_of(const muc_node *node, uint32_t tuple, muc_bound out[MUC_MOST_BOUNDS])
{
    const bound_fact *facts = table[node->op].facts;
    uint32_t count = 0;

    if (muc_op_has(node->op, MUC_OP_INDEXES))
        return indices(node, tuple, out);
    for (uint32_t i = 0; facts[i].bound.apart; i++) {
        if (muc_node_input(node, facts[i].bound.input) == MUC_NO_ID)
            continue;
        out[count] = facts[i].bound;
        if (facts[i].axis != MUC_KEY_COUNT)
            out[count].dim = (uint32_t)muc_node_integer_or(node, facts[i].axis, 0);
        count++;
    }
    return count;
}
