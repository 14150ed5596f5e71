/* maker_states.c - writers of layers with states, of caches and of decoders' operators. */
#include <stdio.h>
#include <string.h>

#include "maker.h"

static uint32_t new_state(fuzz_maker *m, const fuzz_shape *shape, const muc_quantization *q)
{
    muc_tensor t = {
        .kind = MUC_TENSOR_STATE, .dtype = shape->dtype, .rank = shape->rank, .quantization = q
    };
    char name[24];
    uint32_t id;

    t.producer = MUC_NO_ID;
    for (uint32_t i = 0; i < shape->rank; i++)
        t.dims[i] = fuzz_number(m, shape->dims[i]);
    snprintf(name, sizeof(name), "s%u", m->graph->tensor_count);
    t.name = name;
    if (m->graph->tensor_count >= FUZZ_MOST_TENSORS ||
        muc_graph_add_tensor(m->ctx, m->graph, &t, &id) != MUC_OK) {
        muc_error_clear(m->ctx);
        return MUC_NO_ID;
    }
    m->ranges[id] = (fuzz_range){ -2, 2 };
    return id;
}

/* an operand of i8 or i16 around zero in this scale */
static uint32_t narrow(fuzz_maker *m, fuzz_shape shape, float scale)
{
    return fuzz_constant(m, &shape, -100, 100, fuzz_scale(m, scale, 0));
}

/* TFLite's layer of integers: x i8 [steps, batch, K], h i8, c i16, both states */
static void write_lstm_s8(fuzz_maker *m, uint32_t x)
{
    uint32_t hidden = fuzz_between(m, 1, 5), first = fuzz_one_in(m, 2), inputs[7], batch;
    const muc_quantization *h = fuzz_quantization(m, MUC_I8, 1, 1, 0);

    x = fuzz_tensor(m, x)->dtype == MUC_I8 ? x : MUC_NO_ID;
    if (x == MUC_NO_ID || fuzz_tensor(m, x)->rank != 3 || !fuzz_is_fixed(m, x))
        return;
    batch = fuzz_dim(m, x, first ? 0 : 1);
    inputs[0] = x;
    inputs[1] = narrow(m, FUZZ_SHAPE(MUC_I8, 1, 4 * hidden, fuzz_dim(m, x, 2)), 0.01f);
    inputs[2] = narrow(m, FUZZ_SHAPE(MUC_I8, 1, 4 * hidden, hidden), 0.02f);
    inputs[3] = fuzz_one_in(m, 3)
                    ? MUC_NO_ID
                    : fuzz_constant(m, &FUZZ_SHAPE(MUC_I32, 1, 8 * hidden), -9000, 9000, NULL);
    inputs[4] = MUC_NO_ID;
    inputs[5] = new_state(
        m, first ? &FUZZ_SHAPE(MUC_I8, batch, 1, hidden) : &FUZZ_SHAPE(MUC_I8, 1, batch, hidden),
        h);
    inputs[6] = new_state(
        m, first ? &FUZZ_SHAPE(MUC_I16, batch, 1, hidden) : &FUZZ_SHAPE(MUC_I16, 1, batch, hidden),
        fuzz_scale(m, fuzz_one_in(m, 2) ? 1.0f / 2048 : 1.0f / 4096, 0));
    fuzz_set_integer(m, MUC_KEY_BATCH_FIRST, first);
    if (fuzz_one_in(m, 3))
        fuzz_set_real(m, MUC_KEY_CELL_CLIP, 4);
    fuzz_add_as(m, MUC_OP_LSTM, inputs, 7, 1, (fuzz_range){ -1, 1 }, h);
}

/* x [steps, batch, K] */
void fuzz_write_recurrent(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t gates = op == MUC_OP_RNN ? 1 : op == MUC_OP_GRU ? 3 : 4;
    uint32_t hidden = fuzz_between(m, 1, 5), first = fuzz_one_in(m, 3), both = fuzz_one_in(m, 3);
    uint32_t inputs[8], batch, steps, d = both + 1;
    fuzz_shape state;

    if (op == MUC_OP_LSTM && fuzz_tensor(m, x)->quantization)
        write_lstm_s8(m, x);
    if (fuzz_tensor(m, x)->rank != 3 || fuzz_tensor(m, x)->dtype != MUC_F32 || !fuzz_is_fixed(m, x))
        return;
    x = fuzz_tame(m, x, -8, 8);
    if (x == MUC_NO_ID)
        return;
    batch = fuzz_dim(m, x, first ? 0 : 1);
    steps = fuzz_dim(m, x, first ? 1 : 0);
    memset(inputs, 0xff, sizeof(inputs));
    inputs[0] = x;
    inputs[1] =
        fuzz_operand(m, &FUZZ_SHAPE(MUC_F32, d, gates * hidden, fuzz_dim(m, x, 2)), -1, 1, NULL);
    inputs[2] = fuzz_operand(m, &FUZZ_SHAPE(MUC_F32, d, gates * hidden, hidden), -1, 1, NULL);
    if (fuzz_pick(m, 3))
        inputs[3] = fuzz_operand(m, &FUZZ_SHAPE(MUC_F32, d, 2 * gates * hidden), -1, 1, NULL);
    if (fuzz_one_in(m, 3))
        inputs[4] = fuzz_operand(m, &FUZZ_SHAPE(MUC_I32, batch), 0, steps, NULL);
    state = first ? FUZZ_SHAPE(MUC_F32, batch, d, hidden) : FUZZ_SHAPE(MUC_F32, d, batch, hidden);
    if (fuzz_one_in(m, 3))
        inputs[5] = fuzz_operand(m, &state, -1, 1, NULL);
    if (op == MUC_OP_LSTM && fuzz_one_in(m, 3))
        inputs[6] = fuzz_operand(m, &state, -1, 1, NULL);
    if (op == MUC_OP_LSTM && fuzz_one_in(m, 4))
        inputs[7] = fuzz_operand(m, &FUZZ_SHAPE(MUC_F32, d, 3 * hidden), -1, 1, NULL);
    if (both || fuzz_one_in(m, 3))
        fuzz_set_integer(m, MUC_KEY_DIRECTION, both ? MUC_WORD_BIDIRECTIONAL : MUC_WORD_REVERSE);
    fuzz_set_integer(m, MUC_KEY_BATCH_FIRST, first);
    if (op == MUC_OP_GRU && fuzz_one_in(m, 2))
        fuzz_set_integer(m, MUC_KEY_LINEAR_BEFORE_RESET, 1);
    if (op == MUC_OP_RNN && fuzz_one_in(m, 2))
        fuzz_set_integer(m, MUC_KEY_MODE, MUC_WORD_RELU);
    fuzz_add(m, op, inputs, op == MUC_OP_LSTM ? 8 : 6,
             fuzz_between(m, 1, op == MUC_OP_LSTM ? 3 : 2), (fuzz_range){ -4, 4 });
}

void fuzz_write_svdf(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t rank = fuzz_between(m, 1, 2), units = fuzz_between(m, 1, 4), memory, inputs[5];
    bool is_i8 = fuzz_tensor(m, x)->dtype == MUC_I8 && fuzz_tensor(m, x)->quantization;
    fuzz_shape feature, time, state;

    if (fuzz_tensor(m, x)->rank != 2 || (fuzz_tensor(m, x)->dtype != MUC_F32 && !is_i8) ||
        !fuzz_is_fixed(m, x))
        return;
    x = fuzz_tame(m, x, -8, 8);
    if (x == MUC_NO_ID)
        return;
    memory = fuzz_between(m, 1, 5);
    feature = FUZZ_SHAPE(MUC_F32, rank * units, fuzz_dim(m, x, 1));
    time = FUZZ_SHAPE(MUC_F32, rank * units, memory);
    state = FUZZ_SHAPE(MUC_F32, fuzz_dim(m, x, 0), rank * units * memory);
    inputs[0] = x;
    if (is_i8) {
        feature.dtype = MUC_I8;
        state.dtype = time.dtype = fuzz_one_in(m, 2) ? MUC_I8 : MUC_I16;
        inputs[1] = narrow(m, feature, 0.01f);
        inputs[2] = narrow(m, time, 0.02f);
        inputs[3] = new_state(m, &state, fuzz_scale(m, state.dtype == MUC_I8 ? 0.05f : 0.001f, 0));
    } else {
        inputs[1] = fuzz_operand(m, &feature, -1, 1, NULL);
        inputs[2] = fuzz_operand(m, &time, -1, 1, NULL);
        inputs[3] = new_state(m, &state, NULL);
    }
    inputs[4] = MUC_NO_ID;
    if (fuzz_pick(m, 3))
        inputs[4] = is_i8 ? fuzz_constant(m, &FUZZ_SHAPE(MUC_I32, units), -900, 900, NULL)
                          : fuzz_operand(m, &FUZZ_SHAPE(MUC_F32, units), -1, 1, NULL);
    fuzz_set_integer(m, MUC_KEY_RANK, rank);
    fuzz_add(m, op, inputs, 5, 1, (fuzz_range){ -16, 16 });
}

/* what an earlier run left of x: a state is read, and x is put into it */
void fuzz_write_state(fuzz_maker *m, muc_op op, uint32_t x)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    fuzz_shape shape = { t->dtype, t->rank, { 0 } };
    uint32_t inputs[2], state;

    (void)op;
    if (!fuzz_is_fixed(m, x))
        return;
    for (uint32_t i = 0; i < t->rank; i++)
        shape.dims[i] = fuzz_dim(m, x, i);
    state = new_state(m, &shape, t->quantization);
    if (state == MUC_NO_ID)
        return;
    inputs[0] = state;
    inputs[1] = x;
    if (fuzz_pick(m, 4))
        fuzz_add(m, MUC_OP_READ, inputs, 1, 1, m->ranges[x]);
    fuzz_add_as(m, MUC_OP_ASSIGN, inputs, 2, 1, m->ranges[x], NULL);
}

/* ---- decoders: rows of m tokens at pos ---- */

enum { CONTEXT = 8 };

static muc_expr position(const fuzz_maker *m)
{
    return muc_expr_get_input(m->graph->pool, muc_expr_find_input(m->graph->pool, "pos"))->expr;
}

/* the columns of f32 [m, columns], else 0 */
static uint32_t columns_of(const fuzz_maker *m, uint32_t x)
{
    const muc_tensor *t = fuzz_tensor(m, x);

    if (m->style != FUZZ_IN_DECODER || t->rank != 2 || t->dtype != MUC_F32 ||
        muc_expr_is_const(m->graph->pool, t->dims[0]))
        return 0;
    return fuzz_dim(m, x, 1);
}

void fuzz_write_embed(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t inputs[2] = { x }, columns = 8 * (m->plain_rows ? fuzz_between(m, 1, 4) : 4);

    if (m->ranges[x].lo < 0 || m->ranges[x].hi > 15)
        return;
    inputs[1] = fuzz_rows(m, 16, columns);
    fuzz_add(m, op, inputs, 2, 1, (fuzz_range){ -2, 2 });
}

void fuzz_write_rope(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t columns = columns_of(m, x), heads = fuzz_one_in(m, 2) ? 2 : 1, inputs[3] = { x };

    if (columns == 0 || columns % (2 * heads) || fuzz_most(m, x) > 64)
        return;
    for (uint32_t i = 1; i < 3; i++)
        inputs[i] =
            fuzz_constant(m, &FUZZ_SHAPE(MUC_F32, CONTEXT, columns / heads / 2), -1, 1, NULL);
    fuzz_set_integer(m, MUC_KEY_HEADS, heads);
    fuzz_set_integer(m, MUC_KEY_HEAD_DIM, columns / heads);
    fuzz_set_expr(m, MUC_KEY_POSITION, position(m));
    fuzz_add(m, op, inputs, 3, 1, m->ranges[x]);
}

void fuzz_write_attention(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t columns = columns_of(m, x), heads, kv, width, inputs[7], small = m->plain_rows;
    fuzz_shape shape = { small ? MUC_I8 : MUC_F32, 2, { CONTEXT, 0 } };

    if (columns == 0 || columns % 4 || fuzz_most(m, x) > 64)
        return;
    heads = fuzz_one_in(m, 2) ? 4 : 2;
    kv = fuzz_one_in(m, 2) ? heads : heads / 2;
    width = columns / heads;
    inputs[0] = x;
    for (uint32_t i = 1; i < 3; i++) {
        uint32_t w[2] = { x, fuzz_constant(m, &FUZZ_SHAPE(MUC_F32, kv * width, columns), -1, 1,
                                           NULL) };

        inputs[i] = fuzz_add(m, MUC_OP_LINEAR, w, 2, 1, (fuzz_range){ -16, 16 });
    }
    shape.dims[1] = kv * width;
    inputs[3] = new_state(m, &shape, NULL);
    inputs[4] = new_state(m, &shape, NULL);
    shape = FUZZ_SHAPE(MUC_F32, CONTEXT, kv);
    inputs[5] = small ? new_state(m, &shape, NULL) : MUC_NO_ID;
    inputs[6] = small ? new_state(m, &shape, NULL) : MUC_NO_ID;
    m->attribute_count = 0;
    fuzz_set_integer(m, MUC_KEY_HEADS, heads);
    fuzz_set_integer(m, MUC_KEY_KV_HEADS, kv);
    fuzz_set_integer(m, MUC_KEY_HEAD_DIM, width);
    fuzz_set_real(m, MUC_KEY_SCALE, 0.25);
    fuzz_set_expr(m, MUC_KEY_POSITION, position(m));
    fuzz_add(m, op, inputs, small ? 7 : 5, 1, (fuzz_range){ -16, 16 });
}

/* a requantization by 1, which exports have behind their caches */
static void add_identity(fuzz_maker *m, uint32_t x)
{
    const uint32_t inputs[] = { x, fuzz_constant(m, &FUZZ_SCALAR(MUC_I32), 65536, 65536, NULL),
                                fuzz_constant(m, &FUZZ_SCALAR(MUC_I32), 0, 0, NULL) };

    fuzz_set_integer(m, MUC_KEY_SHIFT, 16);
    fuzz_set_integer(m, MUC_KEY_CLAMP_MIN, -128);
    fuzz_set_integer(m, MUC_KEY_CLAMP_MAX, 127);
    fuzz_set_integer(m, MUC_KEY_TO, MUC_I8);
    fuzz_add(m, MUC_OP_REQUANT_SHIFT, inputs, 3, 1, m->ranges[x]);
}

/* rows of x behind those of earlier runs */
void fuzz_write_append(fuzz_maker *m, muc_op op, uint32_t x)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    muc_dtype dtype = t->dtype;
    uint32_t columns = columns_of(m, x), inputs[2], grown;

    if (m->style == FUZZ_IN_EXPORT && t->rank == 2 && !fuzz_dim(m, x, 0) && !t->quantization)
        columns = fuzz_dim(m, x, 1);
    if (columns == 0)
        return;
    inputs[0] = new_state(m, &FUZZ_SHAPE(dtype, CONTEXT, columns), NULL);
    inputs[1] = x;
    fuzz_set_integer(m, MUC_KEY_AXIS, 0);
    fuzz_set_expr(m, MUC_KEY_POSITION, position(m));
    grown = fuzz_add(m, op, inputs, 2, 1, m->ranges[x]);
    if (m->style == FUZZ_IN_EXPORT && grown != MUC_NO_ID && dtype == MUC_I8 && fuzz_pick(m, 2))
        add_identity(m, grown);
}
