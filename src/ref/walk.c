/* walk.c - row-major walks over broadcasting operands, whole runs at a time. */
#include "ref/walk.h"

/* the step of an operand along dimension d of a shape of this rank */
static size_t step_of(const muc_ref_value *operand, uint32_t rank, uint32_t d)
{
    uint32_t missing = rank - operand->rank;
    size_t step = 1;

    if (d < missing || operand->dims[d - missing] == 1)
        return 0;
    for (uint32_t i = d - missing + 1; i < operand->rank; i++)
        step *= operand->dims[i];
    return step;
}

/* whether the dimension, inside the walk's last one, only continues it */
static bool continues(const muc_ref_walk *walk, size_t extent, const size_t *steps)
{
    for (uint32_t o = 0; o < walk->operands; o++)
        if (walk->steps[o][walk->rank - 1] != steps[o] * extent)
            return false;
    return true;
}

void muc_ref_walk_of(const muc_ref_value *shape, const muc_ref_value *const *operands,
                     uint32_t count, muc_ref_walk *walk)
{
    walk->rank = 0;
    walk->operands = count;
    for (uint32_t d = 0; d < shape->rank; d++) {
        size_t steps[MUC_REF_MAX_OPERANDS], extent = shape->dims[d];

        if (extent == 1)
            continue;
        for (uint32_t o = 0; o < count; o++)
            steps[o] = step_of(operands[o], shape->rank, d);
        if (walk->rank > 0 && continues(walk, extent, steps))
            extent *= walk->dims[--walk->rank];
        walk->dims[walk->rank] = extent;
        for (uint32_t o = 0; o < count; o++)
            walk->steps[o][walk->rank] = steps[o];
        walk->rank++;
    }
    if (walk->rank == 0) {
        walk->dims[walk->rank] = 1;
        for (uint32_t o = 0; o < count; o++)
            walk->steps[o][0] = 0;
        walk->rank++;
    }
}

void muc_ref_walk_each(const muc_ref_walk *walk, muc_ref_run_body *body, void *arg)
{
    size_t index[MUC_GRAPH_MAX_RANK] = { 0 }, at[MUC_REF_MAX_OPERANDS] = { 0 };
    size_t step[MUC_REF_MAX_OPERANDS];
    uint32_t last = walk->rank - 1, d;

    for (d = 0; d < walk->rank; d++)
        if (walk->dims[d] == 0)
            return;
    for (uint32_t o = 0; o < walk->operands; o++)
        step[o] = walk->steps[o][last];
    for (;;) {
        body(arg, walk->dims[last], at, step);
        for (d = last; d-- > 0;) {
            for (uint32_t o = 0; o < walk->operands; o++)
                at[o] += walk->steps[o][d];
            if (++index[d] < walk->dims[d])
                break;
            for (uint32_t o = 0; o < walk->operands; o++)
                at[o] -= walk->steps[o][d] * walk->dims[d];
            index[d] = 0;
        }
        if (d == UINT32_MAX)
            return;
    }
}

muc_ref_along muc_ref_along_of(const muc_ref_value *value, size_t axis)
{
    muc_ref_along along = { 1, value->dims[axis], 1 };

    for (size_t i = 0; i < axis; i++)
        along.outer *= value->dims[i];
    for (size_t i = axis + 1; i < value->rank; i++)
        along.inner *= value->dims[i];
    return along;
}
