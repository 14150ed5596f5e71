/* recurrent_quantized.c - layers of integers that carry a state, by the runtime's plain kernels,
 * which tests hold against NumPy. */
#include "ref/integer/recurrent_quantized.h"

#include <math.h>

#include "mur_dot.h"
#include "ref/integer/quantized.h"
#define dot mur_dot_s8
#include "mur_recurrent_int.h"

/* gates are in Q3.12, what is open of them in Q0.15; before relu, in parts of h's levels */
enum { FRACTION = 12, RELU_UNITS = 128 };
static const double Q15 = 1.0 / 32768;

static const muc_tensor *input_of(const muc_graph *graph, const muc_node *node, uint32_t i)
{
    uint32_t id = muc_node_input(node, i);

    return id == MUC_NO_ID ? NULL : &graph->tensors[id];
}

static uint32_t size_of(const muc_graph *graph, const muc_tensor *tensor, uint32_t i)
{
    return muc_expr_get(graph->pool, tensor->dims[i])->immediate;
}

/* false if it shifts by more than an int32 has */
static bool take_factor(double factor, int32_t *mul, int32_t *shift)
{
    muc_multiplier m;

    if (!(factor < 1 << 30))
        return false;
    m = muc_multiplier_of(factor);
    *mul = m.mantissa;
    *shift = m.shift;
    return true;
}

void muc_recurrent_offsets(const int8_t *weights, size_t count, size_t columns, int32_t zero,
                           const uint8_t *bias, size_t rows, uint32_t input, int32_t *offsets)
{
    for (size_t row = 0; row < count; row++) {
        size_t at = row + (row / rows + input - 1) * rows;
        uint32_t sum = bias ? muc_load_u32(bias + 4 * at) : 0;

        for (size_t i = 0; i < columns; i++)
            sum -= (uint32_t)weights[row * columns + i] * (uint32_t)zero;
        offsets[row] = (int32_t)sum;
    }
}

/* ---- svdf ---- */

bool muc_svdf_layer(const muc_graph *graph, const muc_node *node, const size_t *x_dims,
                    mur_svdf *layer)
{
    const muc_tensor *x = input_of(graph, node, 0), *feature = input_of(graph, node, 1);
    const muc_tensor *time = input_of(graph, node, 2), *state = input_of(graph, node, 3);
    const muc_tensor *y = &graph->tensors[node->outputs[0]];
    uint32_t rank = (uint32_t)muc_node_integer(node, MUC_KEY_RANK);

    *layer = (mur_svdf){ .batch = x_dims ? (uint32_t)x_dims[0] : 0,
                         .inputs = size_of(graph, feature, 1),
                         .units = size_of(graph, time, 0) / rank,
                         .rank = rank,
                         .memory = size_of(graph, time, 1) };
    if (!x->quantization)
        return true;
    for (uint32_t i = 0; i < 4; i++)
        if (input_of(graph, node, i)->quantization->count != 1)
            return false;
    layer->state_zero = muc_zero_of(state);
    layer->zero = muc_zero_of(y);
    return !muc_zero_of(feature) && !muc_zero_of(time) &&
           !(state->dtype == MUC_I16 && layer->state_zero) &&
           take_factor((double)(muc_scale_of(x) * muc_scale_of(feature) / muc_scale_of(state)),
                       &layer->value_mul, &layer->value_shift) &&
           take_factor((double)(muc_scale_of(state) * muc_scale_of(time) / muc_scale_of(y)),
                       &layer->unit_mul, &layer->unit_shift);
}

muc_status muc_check_q_svdf(const muc_ref_call *call)
{
    mur_svdf layer;

    if (!muc_svdf_layer(call->graph, call->node, NULL, &layer))
        return muc_ref_fail(call, "weights with zero points or several scales, or scales too far "
                                  "apart");
    return MUC_OK;
}

muc_status muc_kernel_q_svdf(const muc_ref_call *call)
{
    const muc_ref_value *const *in = call->inputs, *bias = muc_ref_input_of(call, 4);
    const int32_t *biases = bias ? bias->read : NULL;
    size_t filters = in[1]->rows, columns = in[1]->columns;
    mur_svdf layer;
    void *room;

    (void)muc_svdf_layer(call->graph, call->node, in[0]->dims, &layer);
    MUC_TRY(muc_ref_reserve(call, filters * sizeof(int32_t), &room));
    muc_recurrent_offsets(in[1]->read, filters, columns, muc_zero_of(call->input_tensors[0]), NULL,
                          filters, 1, room);
    layer.offsets = room;
    if (in[3]->dtype == MUC_I8)
        mur_svdf_s8_run(&layer, in[0]->read, in[1]->read, in[2]->read, biases, in[3]->data,
                        call->output->data);
    else
        mur_svdf_s16_run(&layer, in[0]->read, in[1]->read, in[2]->read, biases, in[3]->data,
                         call->output->data);
    return MUC_OK;
}

/* ---- lstm, gru and rnn ---- */

bool muc_recurrent_has_relu(const muc_node *node)
{
    return muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_TANH) == MUC_WORD_RELU;
}

/* the one scale of a gate's rows, below 0 if there is none, or their zero points are not 0 */
static float gate_scale(const muc_tensor *weights, uint32_t gate, uint32_t gates, uint32_t hidden)
{
    const muc_quantization *q = weights->quantization;

    for (uint32_t i = 0; i < q->count; i++)
        if (q->zero_points[i])
            return -1;
    if (q->count == 1)
        return q->scales[0];
    for (uint32_t i = 0; i < hidden; i++)
        if (q->axis != 1 || q->count != gates * hidden ||
            q->scales[gate * hidden + i] != q->scales[gate * hidden])
            return -1;
    return q->scales[gate * hidden];
}

/* an lstm's cell, c, and what depends on its scale */
static bool scale_cell(const muc_node *node, const muc_tensor *c, mur_recurrent_s8 *layer)
{
    enum { LEAST = -24 };
    const double clip = muc_node_real_or(node, MUC_KEY_CELL_CLIP, 0);
    double most = clip / (double)muc_scale_of(c);
    int power;

    if (frexpf(muc_scale_of(c), &power) != 0.5f || power - 1 < LEAST || power > 1)
        return false;
    layer->cell_shift = FRACTION + power - 1;
    layer->clip = !(clip > 0) ? INT16_MAX + 1 : most >= INT16_MAX ? INT16_MAX : (int32_t)most;
    return take_factor(Q15 * Q15 / (double)muc_scale_of(c), &layer->in_mul, &layer->in_shift);
}

/* the state of 16 bits, and the peepholes beside it */
static bool scale_state(const muc_graph *graph, const muc_node *node, mur_recurrent_s8 *layer,
                        mur_peepholes_s8 *peepholes)
{
    const muc_tensor *c = input_of(graph, node, muc_op_gates(node->op)->wide);
    const muc_tensor *p = input_of(graph, node, MUC_INPUT_PEEPHOLES);

    if (muc_zero_of(c))
        return false;
    if (node->op == MUC_OP_GRU)
        return (double)muc_scale_of(c) == Q15;
    if (p && (p->quantization->count != 1 || muc_zero_of(p) ||
              !take_factor((double)(muc_scale_of(p) * muc_scale_of(c)) * (1 << FRACTION),
                           &peepholes->mul, &peepholes->shift)))
        return false;
    return scale_cell(node, c, layer);
}

static mur_recurrent_s8 dimensions_of(const muc_graph *graph, const muc_node *node,
                                      const size_t *x_dims)
{
    bool first = muc_node_integer_or(node, MUC_KEY_BATCH_FIRST, 0) == 1;
    muc_word direction = muc_node_word_or(node, MUC_KEY_DIRECTION, MUC_WORD_FORWARD);
    mur_recurrent_s8 layer = {
        .hidden = size_of(graph, input_of(graph, node, 2), 2),
        .directions = direction == MUC_WORD_BIDIRECTIONAL ? 2 : 1,
        .backwards = direction == MUC_WORD_REVERSE,
        .batch_first = first,
        .linear_before_reset = (uint8_t)muc_node_integer_or(node, MUC_KEY_LINEAR_BEFORE_RESET, 0),
    };

    if (x_dims) {
        layer.steps = (uint32_t)x_dims[first ? 1 : 0];
        layer.batch = (uint32_t)x_dims[first ? 0 : 1];
        layer.inputs = (uint32_t)x_dims[2];
    }
    return layer;
}

bool muc_recurrent_layer(const muc_graph *graph, const muc_node *node, const size_t *x_dims,
                         mur_recurrent_s8 *layer, mur_peepholes_s8 *peepholes)
{
    const muc_tensor *x = input_of(graph, node, 0), *w = input_of(graph, node, 1);
    const muc_tensor *r = input_of(graph, node, 2);
    const muc_tensor *h =
        node->op == MUC_OP_GRU ? &graph->tensors[node->outputs[0]] : input_of(graph, node, 5);
    const muc_gates *kind = muc_op_gates(node->op);
    bool relu = muc_recurrent_has_relu(node);
    double unit = relu ? (double)muc_scale_of(h) / RELU_UNITS : 1.0 / (1 << FRACTION);
    double made = relu ? unit : Q15; /* what h is requantized from */

    *layer = dimensions_of(graph, node, x_dims);
    *peepholes = (mur_peepholes_s8){ 0 };
    layer->zero = muc_zero_of(&graph->tensors[node->outputs[0]]);
    layer->clip = INT16_MAX + 1;
    if (kind->wide && !scale_state(graph, node, layer, peepholes))
        return false;
    if (kind->wide == MUC_INPUT_CELL)
        made *= Q15;
    for (uint32_t gate = 0; gate < kind->count; gate++) {
        float of_x = gate_scale(w, gate, kind->count, layer->hidden);
        float of_h = gate_scale(r, gate, kind->count, layer->hidden);

        if (of_x < 0 || of_h < 0 ||
            !take_factor((double)(muc_scale_of(x) * of_x) / unit, &layer->x_mul[gate],
                         &layer->x_shift[gate]) ||
            !take_factor((double)(muc_scale_of(h) * of_h) / unit, &layer->h_mul[gate],
                         &layer->h_shift[gate]))
            return false;
    }
    return take_factor(made / (double)muc_scale_of(h), &layer->out_mul, &layer->out_shift);
}

muc_status muc_check_q_recurrent(const muc_ref_call *call)
{
    mur_recurrent_s8 layer;
    mur_peepholes_s8 peepholes;

    if (!muc_recurrent_layer(call->graph, call->node, NULL, &layer, &peepholes))
        return muc_ref_fail(call,
                            "a scale of c that is not a power of two from 2^-24 to 1, weights or "
                            "peepholes with zero points, or scales too far apart");
    return MUC_OK;
}

/* the data of an output, or of room for it where nobody wants it */
static void *output_or(const muc_ref_call *call, uint32_t i, void *room)
{
    return i < call->node->output_count ? call->outputs[i]->data : room;
}

muc_status muc_kernel_q_recurrent(const muc_ref_call *call)
{
    const muc_gates *kind = muc_op_gates(call->node->op);
    const muc_ref_value *const *in = call->inputs;
    const muc_ref_value *bias = muc_ref_input_of(call, 3), *lengths = muc_ref_input_of(call, 4);
    const muc_ref_value *p = muc_ref_input_of(call, MUC_INPUT_PEEPHOLES);
    bool is_gru = call->node->op == MUC_OP_GRU; /* whose one state has 16 bits */
    mur_recurrent_s8_operands operands = { .x = in[0]->read, .w = in[1]->read, .r = in[2]->read };
    mur_peepholes_s8 peepholes;
    mur_recurrent_s8 layer;
    uint16_t table[256];
    size_t rows, count, states;
    int32_t *offsets;
    int16_t *wide;
    void *room;

    (void)muc_recurrent_layer(call->graph, call->node, in[0]->dims, &layer, &peepholes);
    rows = (size_t)kind->count * layer.hidden;
    count = layer.directions * rows;
    states = (size_t)layer.directions * layer.batch * layer.hidden;
    MUC_TRY(muc_ref_reserve(call, 8 * (count + layer.hidden) + 3 * states, &room));
    offsets = room;
    wide = (int16_t *)(offsets + 2 * count) + 4 * layer.hidden; /* behind the kernel's scratch */
    for (uint32_t i = 1; i < 3; i++)
        muc_recurrent_offsets(in[i]->read, count, in[i]->columns,
                              i == 1 ? muc_zero_of(call->input_tensors[0]) : layer.zero,
                              bias ? bias->read : NULL, rows, i, offsets + (i - 1) * count);
    layer.x_bias = offsets;
    layer.h_bias = offsets + count;
    muc_scale_sigmoid_table(table);
    layer.sigmoid = muc_recurrent_has_relu(call->node) ? NULL : table;
    peepholes.weights = p ? p->read : NULL;
    operands.lengths = lengths ? lengths->read : NULL;
    operands.h = is_gru ? NULL : in[5]->read;
    operands.c = kind->wide ? in[kind->wide]->read : NULL;
    operands.y = call->output->data;
    operands.last_h = is_gru ? NULL : output_or(call, 1, wide + states);
    operands.last_c = output_or(call, is_gru ? 1 : 2, wide);
    mur_recurrent_int_run(&layer, p ? &peepholes : NULL, &operands, kind->count,
                          offsets + 2 * count);
    return MUC_OK;
}
