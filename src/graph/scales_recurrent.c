/* scales_recurrent.c - computes the factors of layers that carry a state: see scales.h. */
#include <math.h>

#include "base/real.h"
#include "graph/scales.h"

/* gates are in Q3.12, what is open of them in Q0.15; before relu, in parts of h's levels */
enum { FRACTION = 12, RELU_UNITS = 128 };
static const double Q15 = 1.0 / 32768;

void muc_scale_sigmoid_table(uint16_t table[256])
{
    const double most = 65536, step = 1.0 / 24;

    for (int i = 0; i < 255; i++) {
        double s = 1 / (1 + muc_exp(-i * step));
        double curvature = s * (1 - s) * (1 - 2 * s) * step * step;

        table[i] = (uint16_t)(most * (s - curvature / 16) + 0.5);
    }
    table[255] = 65535;
}

int32_t muc_scale_sigmoid(const uint16_t table[256], int32_t x)
{
    uint32_t size = (uint32_t)(x < 0 ? -x : x), i = size >> 9;
    int32_t y = 0x7fff << 10;

    if (i < 255)
        y = (table[i] << 9) + (int32_t)(size & 0x1ff) * (table[i + 1] - table[i]);
    return (x < 0 ? (1 << 25) - y + 511 : y + 512) >> 10;
}

int32_t muc_scale_tanh(const uint16_t table[256], int32_t x)
{
    uint32_t size = (uint32_t)(x < 0 ? -x : x), i = size >> 8;
    int32_t y = 0xffff << 8;

    if (i < 255)
        y = (table[i] << 8) + (int32_t)(size & 0xff) * (table[i + 1] - table[i]);
    return (x < 0 ? (1 << 23) - y + 127 : y - (1 << 23) + 128) >> 8;
}

/* whether a scale is about a power of two, as TFLite sees it */
static bool is_power(float scale, int *power)
{
    double log2 = muc_log((double)scale) / muc_log(2), nearest = floor(log2 + 0.5);

    *power = (int)nearest;
    return fabs(log2 - nearest) < 1e-3;
}

bool muc_scale_of_table(muc_op op, float x, float y, muc_table_scale *out)
{
    enum { MOST_SHIFT = 30 };
    const double most = 32767;
    double factor = (double)x * (1 << FRACTION) * 3;
    int power;

    if ((op != MUC_OP_SIGMOID && op != MUC_OP_TANH) || !is_power(y, &power) || power != -15)
        return false;
    *out = (muc_table_scale){ 0 };
    if (is_power(x, &power) && power + FRACTION >= 0 && power + FRACTION <= (op == MUC_OP_TANH)) {
        out->mul = 3 << (power + FRACTION);
        return true;
    }
    for (; factor <= most / 2 && out->shift <= MOST_SHIFT; out->shift++)
        factor *= 2;
    if (factor > most)
        return false;
    out->mul = (int32_t)factor;
    out->round = out->shift ? (int32_t)(UINT32_C(1) << (out->shift - 1)) : 0;
    return true;
}

static bool is_plain_i16(const muc_tensor *tensor)
{
    return tensor->dtype == MUC_I16 && tensor->quantization && tensor->quantization->count == 1 &&
           !muc_zero_of(tensor);
}

bool muc_scale_of_i16(const muc_graph *graph, const muc_node *node, muc_table_scale *out)
{
    const muc_tensor *x = &graph->tensors[node->inputs[0]], *y = &graph->tensors[node->outputs[0]];

    return is_plain_i16(x) && is_plain_i16(y) &&
           muc_scale_of_table(node->op, muc_scale_of(x), muc_scale_of(y), out);
}

/* false if it shifts by more than an int32 has */
static bool take_factor(double factor, muc_multiplier *out)
{
    if (!(factor < 1 << 30))
        return false;
    *out = muc_multiplier_of(factor);
    return true;
}

bool muc_scale_svdf(const muc_graph *graph, const muc_node *node, muc_svdf_scales *out)
{
    const muc_tensor *x = &graph->tensors[node->inputs[0]];
    const muc_tensor *feature = &graph->tensors[node->inputs[1]];
    const muc_tensor *time = &graph->tensors[node->inputs[2]];
    const muc_tensor *state = &graph->tensors[node->inputs[3]];
    const muc_tensor *y = &graph->tensors[node->outputs[0]];

    for (uint32_t i = 0; i < 4; i++)
        if (graph->tensors[node->inputs[i]].quantization->count != 1)
            return false;
    if (muc_zero_of(feature) || muc_zero_of(time))
        return false;
    return take_factor((double)(muc_scale_of(x) * muc_scale_of(feature) / muc_scale_of(state)),
                       &out->feature) &&
           take_factor((double)(muc_scale_of(state) * muc_scale_of(time) / muc_scale_of(y)),
                       &out->time);
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
static bool scale_cell(const muc_node *node, const muc_tensor *c, muc_recurrent_scales *out)
{
    enum { LEAST = -24 };
    const double clip = muc_node_real_or(node, MUC_KEY_CELL_CLIP, 0);
    int power;

    if (frexpf(muc_scale_of(c), &power) != 0.5f || power - 1 < LEAST || power > 1)
        return false;
    out->cell_shift = FRACTION + power - 1;
    out->forget = muc_multiplier_of(Q15);
    out->clip = !(clip > 0) ? INT32_MAX
                : clip / (double)muc_scale_of(c) >= INT16_MAX
                    ? INT16_MAX
                    : (int32_t)(clip / (double)muc_scale_of(c));
    return take_factor(Q15 * Q15 / (double)muc_scale_of(c), &out->input);
}

/* the state of 16 bits, and the peepholes beside it */
static bool scale_state(const muc_graph *graph, const muc_node *node, muc_recurrent_scales *out)
{
    const muc_tensor *c = &graph->tensors[node->inputs[muc_op_gates(node->op)->wide]];
    uint32_t peepholes = muc_node_input(node, 7);
    const muc_tensor *p = peepholes == MUC_NO_ID ? NULL : &graph->tensors[peepholes];

    if (muc_zero_of(c))
        return false;
    if (node->op == MUC_OP_GRU)
        return (double)muc_scale_of(c) == Q15;
    if (p && (p->quantization->count != 1 || muc_zero_of(p) ||
              !take_factor((double)(muc_scale_of(p) * muc_scale_of(c)) * (1 << FRACTION),
                           &out->peephole)))
        return false;
    return scale_cell(node, c, out);
}

bool muc_scale_recurrent(const muc_graph *graph, const muc_node *node, muc_recurrent_scales *out)
{
    const muc_tensor *x = &graph->tensors[node->inputs[0]], *w = &graph->tensors[node->inputs[1]];
    const muc_tensor *r = &graph->tensors[node->inputs[2]];
    const muc_tensor *h =
        &graph->tensors[node->op == MUC_OP_GRU ? node->outputs[0] : node->inputs[5]];
    const muc_gates *kind = muc_op_gates(node->op);
    uint32_t hidden = muc_expr_get(graph->pool, r->dims[2])->immediate, gates = kind->count;
    bool relu = muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_TANH) == MUC_WORD_RELU;
    double unit = relu ? (double)muc_scale_of(h) / RELU_UNITS : 1.0 / (1 << FRACTION);
    double made = relu ? unit : Q15; /* what h is requantized from */

    *out = (muc_recurrent_scales){ .clip = INT32_MAX };
    if (kind->wide && !scale_state(graph, node, out))
        return false;
    if (node->op == MUC_OP_LSTM)
        made *= Q15;
    for (uint32_t gate = 0; gate < gates; gate++) {
        float by[2] = { gate_scale(w, gate, gates, hidden), gate_scale(r, gate, gates, hidden) };

        if (by[0] < 0 || by[1] < 0 ||
            !take_factor((double)(muc_scale_of(x) * by[0]) / unit, &out->in[gate]) ||
            !take_factor((double)(muc_scale_of(h) * by[1]) / unit, &out->again[gate]))
            return false;
    }
    return take_factor(made / (double)muc_scale_of(h), &out->output);
}
