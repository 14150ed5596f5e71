/* shape_recurrent.c - rules of layers that carry a state from step to step. */
#include "graph/shape.h"

/* input i, if it is there, has the type of input 0 and these dimensions */
static muc_status expect_dims(const muc_rule *r, uint32_t i, uint32_t rank, const muc_expr *dims)
{
    const muc_tensor *t = muc_rule_input(r, i);
    bool same = !t || t->rank == rank;

    if (!t)
        return MUC_OK;
    MUC_TRY(muc_rule_expect_type(r, i));
    for (uint32_t d = 0; d < rank && same; d++)
        same = t->dims[d] == dims[d];
    return same ? MUC_OK
                : muc_rule_unexpected(r, i, "the layer's directions, gates and hidden elements");
}

/* gates: of a step; y [steps, directions, batch, hidden], and a state [directions, batch, hidden]
 * for each further output; with batch_first the batch before all */
static muc_status recur(const muc_rule *r, uint32_t gates)
{
    const muc_tensor *x = muc_rule_input(r, 0), *w = muc_rule_input(r, 1);
    const muc_tensor *again = muc_rule_input(r, 2), *lengths = muc_rule_input(r, 4);
    bool first = muc_node_integer_or(r->node, MUC_KEY_BATCH_FIRST, 0) == 1;
    bool both =
        muc_node_word_or(r->node, MUC_KEY_DIRECTION, MUC_WORD_FORWARD) == MUC_WORD_BIDIRECTIONAL;
    muc_expr directions = muc_rule_dim(r, both ? 2 : 1), batch, hidden, state[3];
    uint32_t size;

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
    MUC_TRY(expect_dims(r, 5, 3, state));
    MUC_TRY(expect_dims(r, 6, 3, state));
    MUC_TRY(expect_dims(r, 7, 2, (const muc_expr[]){ directions, muc_rule_dim(r, 3 * size) }));
    for (uint32_t o = 0; o < r->node->output_count; o++) {
        muc_tensor *out = &r->outputs[o];

        out->dtype = x->dtype;
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

static muc_status expect_attributes(const muc_rule *r)
{
    static const muc_word directions[] = { MUC_WORD_FORWARD, MUC_WORD_REVERSE,
                                           MUC_WORD_BIDIRECTIONAL };
    static const muc_word modes[] = { MUC_WORD_TANH, MUC_WORD_RELU };

    MUC_TRY(muc_rule_word(r, MUC_KEY_DIRECTION, directions, MUC_COUNT(directions)));
    MUC_TRY(muc_rule_word(r, MUC_KEY_MODE, modes, MUC_COUNT(modes)));
    MUC_TRY(muc_rule_integer(r, MUC_KEY_BATCH_FIRST, 0, 1));
    return muc_rule_integer(r, MUC_KEY_LINEAR_BEFORE_RESET, 0, 1);
}

muc_status muc_shape_rnn(const muc_rule *r)
{
    MUC_TRY(expect_attributes(r));
    return recur(r, 1);
}

muc_status muc_shape_gru(const muc_rule *r)
{
    MUC_TRY(expect_attributes(r));
    return recur(r, 3);
}

muc_status muc_shape_lstm(const muc_rule *r)
{
    MUC_TRY(expect_attributes(r));
    return recur(r, 4);
}
