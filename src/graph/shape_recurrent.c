/* shape_recurrent.c - rules of layers that carry a state from step to step. */
#include "graph/shape.h"

/* of integers: input i is of a type and quantized, or of sums, i32 */
static muc_status expect_narrow(const muc_rule *r, uint32_t i, muc_dtype dtype, bool is_sum)
{
    const muc_tensor *t = muc_rule_input(r, i);

    if (is_sum ? t->dtype == MUC_I32 && !t->quantization : t->dtype == dtype && t->quantization)
        return MUC_OK;
    return muc_rule_unexpected(r, i, "%s", is_sum ? "i32" : muc_dtype_get(dtype)->name);
}

enum { STATE = 5, PEEPHOLES = 7 };

/* the type of input i of a quantized layer */
static muc_dtype narrow_type(const muc_rule *r, uint32_t i)
{
    return i == muc_op_gates(r->node->op)->wide || i == PEEPHOLES ? MUC_I16 : MUC_I8;
}

/* input i, if it is there, has the type of input 0, or the quantized layer's, and these dimensions
 */
static muc_status expect_dims(const muc_rule *r, uint32_t i, uint32_t rank, const muc_expr *dims)
{
    const muc_tensor *t = muc_rule_input(r, i);
    bool same = !t || t->rank == rank;

    if (!t)
        return MUC_OK;
    if (muc_rule_input(r, 0)->quantization)
        MUC_TRY(expect_narrow(r, i, narrow_type(r, i), i == 3));
    else
        MUC_TRY(muc_rule_expect_type(r, i));
    for (uint32_t d = 0; d < rank && same; d++)
        same = t->dims[d] == dims[d];
    return same ? MUC_OK
                : muc_rule_unexpected(r, i, "the layer's directions, gates and hidden elements");
}

/* the quantized layer has states */
static muc_status expect_states(const muc_rule *r)
{
    uint32_t wide = muc_op_gates(r->node->op)->wide;

    MUC_TRY(expect_narrow(r, 0, MUC_I8, false));
    for (uint32_t i = STATE; i <= (wide > STATE ? wide : STATE); i++)
        if (!muc_rule_input(r, i))
            return muc_rule_fail(r, "input %u is absent, expected a state", i);
    return MUC_OK;
}

/* y [steps, directions, batch, hidden], and a state [directions, batch, hidden] for each further
 * output; with batch_first the batch before all */
muc_status muc_shape_recurrent(const muc_rule *r)
{
    const uint32_t gates = muc_op_gates(r->node->op)->count;
    const muc_tensor *x = muc_rule_input(r, 0), *w = muc_rule_input(r, 1);
    const muc_tensor *again = muc_rule_input(r, 2), *lengths = muc_rule_input(r, 4);
    bool first = muc_node_integer_or(r->node, MUC_KEY_BATCH_FIRST, 0) == 1;
    bool both =
        muc_node_word_or(r->node, MUC_KEY_DIRECTION, MUC_WORD_FORWARD) == MUC_WORD_BIDIRECTIONAL;
    muc_expr directions = muc_rule_dim(r, both ? 2 : 1), batch, hidden, state[3];
    uint32_t size;

    if (muc_node_real_or(r->node, MUC_KEY_CELL_CLIP, 1) <= 0)
        return muc_rule_fail(r, "cell_clip is %g, expected a bound above 0",
                             muc_node_real(r->node, MUC_KEY_CELL_CLIP));
    if (x->quantization)
        MUC_TRY(expect_states(r));
    if (x->rank != 3 || w->rank != 3 || again->rank != 3)
        return muc_rule_unexpected(r, x->rank != 3 ? 0 : w->rank != 3 ? 1 : 2, "rank 3");
    batch = x->dims[first ? 0 : 1];
    hidden = again->dims[2];
    if (!muc_rule_const(r, hidden, &size) || size == 0 || size > 1 << 20)
        return muc_rule_unexpected(r, 2, "a fixed number of hidden elements");
    MUC_TRY(expect_dims(
        r, 1, 3, (const muc_expr[]){ directions, muc_rule_dim(r, gates * size), x->dims[2] }));
    MUC_TRY(expect_dims(r, 2, 3,
                        (const muc_expr[]){ directions, muc_rule_dim(r, gates * size), hidden }));
    MUC_TRY(
        expect_dims(r, 3, 2, (const muc_expr[]){ directions, muc_rule_dim(r, 2 * gates * size) }));
    if (lengths && (lengths->dtype != MUC_I32 || lengths->rank != 1 || lengths->dims[0] != batch))
        return muc_rule_unexpected(r, 4, "i32, one for each of the batch");
    state[0] = first ? batch : directions;
    state[1] = first ? directions : batch;
    state[2] = hidden;
    MUC_TRY(expect_dims(r, STATE, 3, state));
    MUC_TRY(expect_dims(r, STATE + 1, 3, state));
    MUC_TRY(
        expect_dims(r, PEEPHOLES, 2, (const muc_expr[]){ directions, muc_rule_dim(r, 3 * size) }));
    for (uint32_t o = 0; o < r->node->output_count; o++) {
        muc_tensor *out = &r->outputs[o];

        out->dtype = x->quantization && o > 0 && narrow_type(r, STATE + o - 1) == MUC_I16
                         ? MUC_I16
                         : x->dtype;
        out->rank = 0;
        if (o == 0 && !first)
            out->dims[out->rank++] = x->dims[0];
        for (uint32_t d = 0; d < 3; d++) {
            out->dims[out->rank++] = state[d];
            if (o == 0 && first && d == 0)
                out->dims[out->rank++] = x->dims[1];
        }
    }
    return MUC_OK;
}

static muc_status expect_state(const muc_rule *r, uint32_t i)
{
    return muc_rule_input(r, i)->kind == MUC_TENSOR_STATE ? MUC_OK
                                                          : muc_rule_unexpected(r, i, "a state");
}

muc_status muc_shape_read(const muc_rule *r)
{
    MUC_TRY(expect_state(r, 0));
    muc_rule_like(r, 0, muc_rule_input(r, 0));
    return MUC_OK;
}

muc_status muc_shape_assign(const muc_rule *r)
{
    const muc_tensor *state = muc_rule_input(r, 0), *x = muc_rule_input(r, 1);
    bool same = x->rank == state->rank;

    MUC_TRY(expect_state(r, 0));
    MUC_TRY(muc_rule_expect_type(r, 1));
    for (uint32_t d = 0; d < state->rank && same; d++)
        same = x->dims[d] == state->dims[d];
    if (!same || x->kind == MUC_TENSOR_STATE)
        return muc_rule_unexpected(r, 1, "what has the state's shape");
    muc_rule_like(r, 0, state);
    return MUC_OK;
}

/* feature, time and state are of types that go together */
static muc_status expect_svdf_types(const muc_rule *r)
{
    const muc_tensor *time = muc_rule_input(r, 2);

    for (uint32_t i = 1; i < 4 && !muc_rule_input(r, 0)->quantization; i++)
        MUC_TRY(muc_rule_expect_type(r, i));
    if (!muc_rule_input(r, 0)->quantization)
        return MUC_OK;
    MUC_TRY(expect_narrow(r, 0, MUC_I8, false));
    MUC_TRY(expect_narrow(r, 1, MUC_I8, false));
    if (time->dtype != MUC_I8)
        MUC_TRY(expect_narrow(r, 2, MUC_I16, false));
    return expect_narrow(r, 3, time->dtype, false);
}

muc_status muc_shape_svdf(const muc_rule *r)
{
    enum { MOST = 1 << 20 };
    const muc_tensor *x = muc_rule_input(r, 0), *feature = muc_rule_input(r, 1);
    const muc_tensor *time = muc_rule_input(r, 2), *state = muc_rule_input(r, 3);
    uint32_t filters, memory, columns;
    int64_t rank = muc_node_integer(r->node, MUC_KEY_RANK);

    MUC_TRY(expect_state(r, 3));
    MUC_TRY(expect_svdf_types(r));
    if (x->rank != 2 || !muc_rule_const(r, x->dims[1], &columns))
        return muc_rule_unexpected(r, 0, "rows of a fixed number of elements");
    if (feature->rank != 2 || feature->dims[1] != x->dims[1] ||
        !muc_rule_const(r, feature->dims[0], &filters) || filters == 0 || filters > MOST)
        return muc_rule_unexpected(r, 1, "filters of input 0's columns");
    if (time->rank != 2 || time->dims[0] != feature->dims[0] ||
        !muc_rule_const(r, time->dims[1], &memory) || memory == 0 || memory > MOST)
        return muc_rule_unexpected(r, 2, "values for each of %u filters", filters);
    if (state->rank != 2 || state->dims[0] != x->dims[0] ||
        state->dims[1] != muc_rule_dim(r, (uint64_t)filters * memory))
        return muc_rule_unexpected(r, 3, "rows of filters * memory");
    if (rank < 1 || rank > filters || filters % rank)
        return muc_rule_fail(r, "rank is %lld, expected a divisor of %u filters", (long long)rank,
                             filters);
    if (muc_rule_input(r, 4))
        MUC_TRY(muc_rule_expect_vector(r, 4, muc_rule_dim(r, filters / (uint32_t)rank)));
    muc_rule_like(r, 0, x);
    r->outputs[0].dims[1] = muc_rule_dim(r, filters / (uint32_t)rank);
    return MUC_OK;
}
