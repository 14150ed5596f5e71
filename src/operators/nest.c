/* nest.c - which operator has which loops. */
#include "operators/nest.h"

#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    MUC_FACTS facts
#define NEST(name) extern const muc_nest muc_nest_##name;
#include "graph/ops.def"

const muc_nest *muc_nest_of(muc_op op)
{
    static const struct {
        muc_op op;
        const muc_nest *nest;
    } nests[] = {
#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    { .op = MUC_OP_##id, MUC_FACTS facts },
#define NEST(name) .nest = &muc_nest_##name
#include "graph/ops.def"
    };

    return nests[op].nest;
}

size_t muc_nest_elements(const muc_nest_shape *shape, uint32_t first, uint32_t end)
{
    size_t elements = 1;

    for (uint32_t i = first; i < end; i++)
        elements *= shape->dims[i];
    return elements;
}

muc_nest_along muc_nest_along_of(const muc_nest_shape *shape, uint32_t axis)
{
    return (muc_nest_along){ muc_nest_elements(shape, 0, axis), shape->dims[axis],
                             muc_nest_elements(shape, axis + 1, shape->rank) };
}
