/* trilu.c - a triangle of a matrix, zeros beside it. */
#include "graph/shape.h"
#include "operators/nest.h"

muc_status muc_shape_trilu(const muc_rule *r)
{
    if (muc_rule_input(r, 0)->rank < 2)
        return muc_rule_unexpected(r, 0, "at least a matrix");
    muc_rule_like(r, 0, muc_rule_input(r, 0));
    return MUC_OK;
}

/* elements of row r are on the diagonal in column r + first - rows */
#define NUMBERS(X) X(elements) X(rows) X(columns) X(upper) X(first)

typedef struct trilu_numbers {
    NUMBERS(MUC_NEST_FIELD)
} trilu_numbers;

static void measure(const muc_nest_node *n, void *out)
{
    const muc_nest_shape *x = &n->inputs[0];
    int64_t rows = (int64_t)x->dims[x->rank - 2], columns = (int64_t)x->dims[x->rank - 1];
    int64_t diagonal = muc_node_integer_or(n->node, MUC_KEY_DIAGONAL, 0);

    diagonal = diagonal < -rows ? -rows : diagonal > columns ? columns : diagonal;
    *(trilu_numbers *)out = (trilu_numbers){
        muc_nest_elements(x, 0, x->rank),
        (size_t)rows,
        (size_t)columns,
        muc_node_integer(n->node, MUC_KEY_UPPER) == 1,
        (size_t)(rows + diagonal),
    };
}

MUC_NEST_MOVE(trilu, NUMBERS, measure, MUC_NEST_IN_PLACE, T, {
    for (INDEX i = 0; i < elements; i++) {
        const INDEX row = i / columns % rows;
        const INDEX column = i % columns + rows;

        y[i] = (upper ? column >= row + first : column <= row + first) ? a[i] : 0;
    }
})
