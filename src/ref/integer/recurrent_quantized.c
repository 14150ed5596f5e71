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
    const int32_t zero_x = muc_q_zero(call->input_tensors[0]);
    const int32_t zero = muc_q_zero(call->input_tensors[3]);
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
                      muc_q_clamp(muc_multiply(sum, scales.time), muc_q_zero(muc_q_out(call)),
                                  INT8_MIN, INT8_MAX));
        }
    return MUC_OK;
}

/* ---- lstm ---- */

enum { IN, OUT, FORGET, CELL, GATES };

/* One sequence at work; its states are where the results will be. */
typedef struct cell {
    const muc_ref_call *call;
    muc_lstm_scales scales;
    uint16_t table[256];
    size_t hidden, inputs;
    int32_t *gates[GATES]; /* [hidden] each */
    int32_t *h, *c;        /* [hidden] */
    int32_t zero_x, zero_h;
} cell;

/* a gate's element before its function, in Q3.12 */
static int32_t sum_gate(const cell *s, size_t gate, size_t j, size_t x)
{
    const muc_ref_call *call = s->call;
    const muc_ref_value *bias = muc_ref_input_of(call, 3), *r = call->inputs[2];
    size_t row = gate * s->hidden + j;
    uint32_t again = (uint32_t)bias_at(bias, (GATES + gate) * s->hidden + j);
    int32_t sum =
        dot(call->inputs[0], x, s->zero_x, call->inputs[1], row * s->inputs, 0, s->inputs);

    for (size_t k = 0; k < s->hidden; k++)
        again += (uint32_t)(s->h[k] - s->zero_h) * (uint32_t)muc_q_get(r, row * s->hidden + k);
    sum = to_i16(muc_multiply(add(sum, bias_at(bias, row)), s->scales.in[gate]));
    return to_i16(sum + to_i16(muc_multiply((int32_t)again, s->scales.again[gate])));
}

/* c in units of 2^(shift - 12) to a third of 2^-12 */
static int32_t widen(int32_t c, int32_t shift)
{
    return shift < 0 ? (3 * c + (1 << (-shift - 1))) >> -shift : 3 * c * (1 << shift);
}

static void step(const cell *s, size_t x)
{
    for (size_t gate = 0; gate < GATES; gate++)
        for (size_t j = 0; j < s->hidden; j++) {
            int32_t sum = sum_gate(s, gate, j, x);

            s->gates[gate][j] = gate == CELL ? muc_scale_tanh(s->table, 3 * sum)
                                             : muc_scale_sigmoid(s->table, 3 * sum);
        }
    for (size_t j = 0; j < s->hidden; j++) {
        int32_t kept = to_i16(muc_multiply(s->gates[FORGET][j] * s->c[j], s->scales.forget));
        int32_t added = to_i16(muc_multiply(s->gates[IN][j] * s->gates[CELL][j], s->scales.input));
        int32_t c = to_i16(kept + added), out;

        s->c[j] =
            s->scales.clip == INT32_MAX ? c : muc_q_clamp(c, 0, -s->scales.clip, s->scales.clip);
        out = s->gates[OUT][j] * muc_scale_tanh(s->table, widen(s->c[j], s->scales.cell_shift));
        s->h[j] = muc_q_clamp(muc_multiply(out, s->scales.output), s->zero_h, INT8_MIN, INT8_MAX);
    }
}

/* a state's row into an output that is there */
static void put(const muc_ref_call *call, uint32_t output, size_t row, size_t hidden,
                const int32_t *from)
{
    for (size_t j = 0; output < call->node->output_count && j < hidden; j++)
        muc_q_put(call->outputs[output], row * hidden + j, from[j]);
}

muc_status muc_check_q_lstm(const muc_ref_call *call)
{
    muc_lstm_scales scales;

    if (!muc_scale_lstm(call->graph, call->node, &scales))
        return muc_ref_fail(call,
                            "a scale of c that is not a power of two from 2^-24 to 1, weights "
                            "with zero points, or scales too far apart");
    return MUC_OK;
}

muc_status muc_kernel_q_lstm(const muc_ref_call *call)
{
    bool first = muc_node_integer_or(call->node, MUC_KEY_BATCH_FIRST, 0) == 1;
    const muc_ref_value *x = call->inputs[0];
    size_t steps = x->dims[first ? 1 : 0], batch = x->dims[first ? 0 : 1];
    cell s = { .call = call, .hidden = call->inputs[2]->dims[2], .inputs = x->dims[2] };
    void *room;

    (void)muc_scale_lstm(call->graph, call->node, &s.scales);
    MUC_TRY(muc_ref_reserve(call, (GATES + 2) * s.hidden * sizeof(int32_t), &room));
    for (size_t i = 0; i < GATES; i++)
        s.gates[i] = (int32_t *)room + i * s.hidden;
    s.h = (int32_t *)room + GATES * s.hidden;
    s.c = s.h + s.hidden;
    s.zero_x = muc_q_zero(call->input_tensors[0]);
    s.zero_h = muc_q_zero(call->input_tensors[5]);
    muc_scale_sigmoid_table(s.table);
    for (size_t n = 0; n < batch; n++) {
        for (size_t j = 0; j < s.hidden; j++) {
            s.h[j] = muc_q_get(call->inputs[5], n * s.hidden + j);
            s.c[j] = muc_q_get(call->inputs[6], n * s.hidden + j);
        }
        for (size_t t = 0; t < steps; t++) {
            size_t row = first ? n * steps + t : t * batch + n;

            step(&s, row * s.inputs);
            put(call, 0, row, s.hidden, s.h);
        }
        put(call, 1, n, s.hidden, s.h);
        put(call, 2, n, s.hidden, s.c);
    }
    return MUC_OK;
}
