/* recurrent_quantized.c - layers of integers that carry a state, as TensorFlow Lite for
 * Microcontrollers computes them. */
#include <string.h>

#include "ref/integer/quantized.h"

/* n products from a[i] and b[j] on, without their zero points; sums wrap */
static int32_t dot(const muc_ref_value *a, size_t i, int32_t zero_a, const muc_ref_value *b,
                   size_t j, int32_t zero_b, size_t n)
{
    uint32_t sum = 0;

    for (size_t k = 0; k < n; k++)
        sum += (uint32_t)(muc_q_get(a, i + k) - zero_a) * (uint32_t)(muc_q_get(b, j + k) - zero_b);
    return (int32_t)sum;
}

static int32_t to_i16(int64_t x)
{
    return muc_q_clamp(x, 0, INT16_MIN, INT16_MAX);
}

static int32_t bias_at(const muc_ref_value *bias, size_t i)
{
    return bias ? ((const int32_t *)bias->read)[i] : 0;
}

static int32_t add(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

/* ---- svdf ---- */

muc_status muc_check_q_svdf(const muc_ref_call *call)
{
    muc_svdf_scales scales;

    if (!muc_scale_svdf(call->graph, call->node, &scales))
        return muc_ref_fail(call, "weights with zero points or several scales, or scales too far "
                                  "apart");
    return MUC_OK;
}

muc_status muc_kernel_q_svdf(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *feature = call->inputs[1], *time = call->inputs[2];
    const muc_ref_value *bias = muc_ref_input_of(call, 4);
    muc_ref_value state = *call->inputs[3];
    const int32_t zero_x = muc_zero_of(call->input_tensors[0]);
    const int32_t zero = muc_zero_of(call->input_tensors[3]);
    size_t filters = feature->rows, memory = time->columns, units = call->output->columns;
    size_t rank = filters / units, width = muc_ref_width(&state);
    muc_svdf_scales scales;

    state.read = state.data;
    (void)muc_scale_svdf(call->graph, call->node, &scales);
    for (size_t n = 0; n < x->rows; n++)
        for (size_t u = 0; u < units; u++) {
            int32_t sum = bias_at(bias, u);

            for (size_t f = u * rank; f < (u + 1) * rank; f++) {
                size_t row = (n * filters + f) * memory;
                uint8_t *at = (uint8_t *)state.data + row * width;
                int32_t value =
                    dot(x, n * x->columns, zero_x, feature, f * x->columns, 0, x->columns);

                memmove(at, at + width, (memory - 1) * width);
                value = muc_multiply(value, scales.feature);
                muc_q_put(&state, row + memory - 1,
                          muc_q_clamp(value, zero, state.dtype == MUC_I8 ? INT8_MIN : INT16_MIN,
                                      state.dtype == MUC_I8 ? INT8_MAX : INT16_MAX));
                sum = add(sum, dot(&state, row, zero, time, f * memory, 0, memory));
            }
            muc_q_put(call->output, n * units + u,
                      muc_q_clamp(muc_multiply(sum, scales.time), muc_zero_of(muc_q_out(call)),
                                  INT8_MIN, INT8_MAX));
        }
    return MUC_OK;
}

/* ---- lstm, gru and rnn ---- */

enum { IN, OUT, FORGET, CELL, LSTM_GATES };
enum { UPDATE, RESET, NEW };

/* One direction of one sequence at work. */
typedef struct cell {
    const muc_ref_call *call;
    muc_recurrent_scales scales;
    uint16_t table[256];
    size_t hidden, inputs, gate_count, direction;
    int32_t *gates[LSTM_GATES]; /* [hidden] each */
    int32_t *h, *c, *left;      /* [hidden]: bytes, the state of 16 bits, a gru's reset bytes */
    int32_t zero_x, zero_h;
} cell;

static size_t row_of(const cell *s, size_t gate, size_t j)
{
    return (s->direction * s->gate_count + gate) * s->hidden + j;
}

/* biases of both kinds follow each other in a direction */
static int32_t bias_of(const cell *s, size_t gate, size_t j, size_t kind)
{
    return bias_at(muc_ref_input_of(s->call, 3),
                   ((2 * s->direction + kind) * s->gate_count + gate) * s->hidden + j);
}

/* a gate's element in Q3.12: what x, or the bytes h, add to it */
static int32_t part_of_x(const cell *s, size_t gate, size_t j, size_t x)
{
    int32_t sum = dot(s->call->inputs[0], x, s->zero_x, s->call->inputs[1],
                      row_of(s, gate, j) * s->inputs, 0, s->inputs);

    return to_i16(muc_multiply(add(sum, bias_of(s, gate, j, 0)), s->scales.in[gate]));
}

static int32_t part_of_h(const cell *s, size_t gate, size_t j, const int32_t *h)
{
    const muc_ref_value *r = s->call->inputs[2];
    uint32_t sum = (uint32_t)bias_of(s, gate, j, 1);

    for (size_t k = 0; k < s->hidden; k++)
        sum += (uint32_t)(h[k] - s->zero_h) *
               (uint32_t)muc_q_get(r, row_of(s, gate, j) * s->hidden + k);
    return to_i16(muc_multiply((int32_t)sum, s->scales.again[gate]));
}

static int32_t sum_gate(const cell *s, size_t gate, size_t j, size_t x)
{
    return to_i16(part_of_x(s, gate, j, x) + part_of_h(s, gate, j, s->h));
}

static int32_t to_byte(const cell *s, int32_t value)
{
    return muc_q_clamp(muc_multiply(value, s->scales.output), s->zero_h, INT8_MIN, INT8_MAX);
}

/* c in units of 2^(shift - 12) to a third of 2^-12 */
static int32_t widen(int32_t c, int32_t shift)
{
    return shift < 0 ? (3 * c + (1 << (-shift - 1))) >> -shift : 3 * c * (1 << shift);
}

/* a gate's sum with what its peephole, of those of i, o and f, lets in of the cell, if it has one
 */
static int32_t peep(const cell *s, size_t gate, size_t j, int32_t sum)
{
    const muc_ref_value *p = muc_ref_input_of(s->call, 7);
    int32_t seen;

    if (!p || gate == CELL)
        return sum;
    seen = muc_q_get(p, (3 * s->direction + gate) * s->hidden + j) * s->c[j];
    return to_i16(sum + to_i16(muc_multiply(seen, s->scales.peephole)));
}

static void step_lstm(const cell *s, size_t x)
{
    for (size_t gate = 0; gate < LSTM_GATES; gate++)
        for (size_t j = 0; j < s->hidden; j++) {
            int32_t sum = sum_gate(s, gate, j, x);

            if (gate != OUT)
                sum = 3 * peep(s, gate, j, sum);
            s->gates[gate][j] = gate == OUT    ? sum
                                : gate == CELL ? muc_scale_tanh(s->table, sum)
                                               : muc_scale_sigmoid(s->table, sum);
        }
    for (size_t j = 0; j < s->hidden; j++) {
        int32_t kept = to_i16(muc_multiply(s->gates[FORGET][j] * s->c[j], s->scales.forget));
        int32_t added = to_i16(muc_multiply(s->gates[IN][j] * s->gates[CELL][j], s->scales.input));
        int32_t c = to_i16(kept + added);

        s->c[j] =
            s->scales.clip == INT32_MAX ? c : muc_q_clamp(c, 0, -s->scales.clip, s->scales.clip);
        s->h[j] = to_byte(s, muc_scale_sigmoid(s->table, 3 * peep(s, OUT, j, s->gates[OUT][j])) *
                                 muc_scale_tanh(s->table, widen(s->c[j], s->scales.cell_shift)));
    }
}

/* x y / 2^15, halves up */
static int32_t times_q15(int64_t x, int64_t y)
{
    return (int32_t)((x * y + (1 << 14)) >> 15);
}

static void step_gru(const cell *s, size_t x)
{
    bool before = muc_node_integer_or(s->call->node, MUC_KEY_LINEAR_BEFORE_RESET, 0) == 1;

    for (size_t j = 0; j < s->hidden; j++) {
        s->gates[UPDATE][j] = muc_scale_sigmoid(s->table, 3 * sum_gate(s, UPDATE, j, x));
        s->gates[RESET][j] = muc_scale_sigmoid(s->table, 3 * sum_gate(s, RESET, j, x));
        s->left[j] = to_byte(s, times_q15(s->gates[RESET][j], s->c[j]));
    }
    for (size_t j = 0; j < s->hidden; j++)
        s->gates[NEW][j] = before ? times_q15(s->gates[RESET][j], part_of_h(s, NEW, j, s->h))
                                  : part_of_h(s, NEW, j, s->left);
    for (size_t j = 0; j < s->hidden; j++) {
        int32_t sum = to_i16(part_of_x(s, NEW, j, x) + s->gates[NEW][j]);
        int32_t fresh = muc_scale_tanh(s->table, 3 * sum);

        s->c[j] = fresh + times_q15(s->gates[UPDATE][j], s->c[j] - fresh);
        s->h[j] = to_byte(s, s->c[j]);
    }
}

static void step_rnn(const cell *s, size_t x)
{
    bool relu = muc_node_word_or(s->call->node, MUC_KEY_MODE, MUC_WORD_TANH) == MUC_WORD_RELU;

    for (size_t j = 0; j < s->hidden; j++)
        s->gates[0][j] = sum_gate(s, 0, j, x);
    for (size_t j = 0; j < s->hidden; j++)
        s->h[j] = to_byte(s, !relu                ? muc_scale_tanh(s->table, 3 * s->gates[0][j])
                             : s->gates[0][j] < 0 ? 0
                                                  : s->gates[0][j]);
}

static void step(const cell *s, size_t x)
{
    if (s->call->node->op == MUC_OP_LSTM)
        step_lstm(s, x);
    else if (s->call->node->op == MUC_OP_GRU)
        step_gru(s, x);
    else
        step_rnn(s, x);
}

/* a state's row into an output that is there; NULL: what stands for 0 */
static void put(const cell *s, uint32_t output, size_t row, const int32_t *from)
{
    for (size_t j = 0; output < s->call->node->output_count && j < s->hidden; j++)
        muc_q_put(s->call->outputs[output], row * s->hidden + j, from ? from[j] : s->zero_h);
}

muc_status muc_check_q_recurrent(const muc_ref_call *call)
{
    muc_recurrent_scales scales;

    if (!muc_scale_recurrent(call->graph, call->node, &scales))
        return muc_ref_fail(call,
                            "a scale of c that is not a power of two from 2^-24 to 1, weights or "
                            "peepholes with zero points, or scales too far apart");
    return MUC_OK;
}

/* sequence n in one direction; backwards from its own end */
static void run_sequence(const cell *s, size_t n, size_t batch, size_t directions, bool backwards)
{
    bool first = muc_node_integer_or(s->call->node, MUC_KEY_BATCH_FIRST, 0) == 1;
    bool is_gru = s->call->node->op == MUC_OP_GRU; /* whose one state has 16 bits */
    uint32_t wide = muc_op_gates(s->call->node->op)->wide;
    const muc_ref_value *lengths = muc_ref_input_of(s->call, 4), *x = s->call->inputs[0];
    size_t steps = x->dims[first ? 1 : 0], length = steps;
    size_t state = first ? n * directions + s->direction : s->direction * batch + n;

    if (lengths)
        length = (size_t)muc_ref_integer(lengths, n);
    for (size_t j = 0; j < s->hidden; j++) {
        s->c[j] = wide ? muc_q_get(s->call->inputs[wide], state * s->hidden + j) : 0;
        s->h[j] =
            is_gru ? to_byte(s, s->c[j]) : muc_q_get(s->call->inputs[5], state * s->hidden + j);
    }
    for (size_t i = 0; i < steps; i++) {
        size_t t = i < length && backwards ? length - 1 - i : i;
        size_t row = (first ? n * steps + t : t * batch + n) * s->inputs;

        if (i < length)
            step(s, row);
        put(s, 0,
            first ? (n * steps + t) * directions + s->direction
                  : (t * directions + s->direction) * batch + n,
            i < length ? s->h : NULL);
    }
    put(s, 1, state, is_gru ? s->c : s->h);
    put(s, 2, state, s->c);
}

muc_status muc_kernel_q_recurrent(const muc_ref_call *call)
{
    const muc_node *node = call->node;
    bool first = muc_node_integer_or(node, MUC_KEY_BATCH_FIRST, 0) == 1;
    muc_word direction = muc_node_word_or(node, MUC_KEY_DIRECTION, MUC_WORD_FORWARD);
    size_t batch = call->inputs[0]->dims[first ? 0 : 1];
    size_t directions = direction == MUC_WORD_BIDIRECTIONAL ? 2 : 1;
    cell s = { .call = call,
               .hidden = call->inputs[2]->dims[2],
               .inputs = call->inputs[0]->dims[2],
               .gate_count = muc_op_gates(node->op)->count,
               .zero_x = muc_zero_of(call->input_tensors[0]),
               .zero_h = muc_zero_of(muc_q_out(call)) };
    void *room;

    (void)muc_scale_recurrent(call->graph, node, &s.scales);
    MUC_TRY(muc_ref_reserve(call, (LSTM_GATES + 3) * s.hidden * sizeof(int32_t), &room));
    for (size_t i = 0; i < LSTM_GATES; i++)
        s.gates[i] = (int32_t *)room + i * s.hidden;
    s.h = (int32_t *)room + LSTM_GATES * s.hidden;
    s.c = s.h + s.hidden;
    s.left = s.c + s.hidden;
    muc_scale_sigmoid_table(s.table);
    for (; s.direction < directions; s.direction++)
        for (size_t n = 0; n < batch; n++)
            run_sequence(&s, n, batch, directions,
                         s.direction == 1 || direction == MUC_WORD_REVERSE);
    return MUC_OK;
}
