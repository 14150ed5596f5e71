/* quantized_products.c - products of integers less their zero points, in whichever dialect they
 * come, and how their sums become the output's integers. */
#include <string.h>

#include "mur_quantlib.h"
#include "ref/integer/quantized.h"
#include "ref/window.h"

/* ---- the description ---- */

/* What the sums of an output channel meet. */
typedef struct channel {
    int64_t bias;
    muc_multiplier factor; /* TFLite's */
    float chip;            /* the CNN chip's */
    int32_t mul, add;      /* QuantLib's */
    double scale;          /* ONNX's, of b */
} channel;

typedef struct sums sums;
/* the output's integer for sum i, its bias added */
typedef int32_t rounding(const sums *s, const channel *c, size_t i, int64_t sum);

struct sums {
    const muc_ref_call *call;
    const muc_product *at;   /* tensors that carry quantization have their zero points themselves */
    muc_ref_value a, b, out; /* less zero points, as i32 or i64; out: the sums */
    size_t channels, inner;  /* sums of a channel lie inner together */
    channel *channel;        /* [channels] */
    rounding *round;         /* NULL: the sums are the output */
    int32_t zero, least, most;
    unsigned shift; /* QuantLib's */
};

/* activations of 16 bits in TFLite's arithmetic are summed in 64 */
static bool is_wide(const muc_ref_call *call)
{
    return call->input_tensors[0]->quantization && call->inputs[0]->dtype == MUC_I16;
}

/* element i of a scale, zero point or factor, or its only one */
static size_t pick(const muc_ref_value *value, size_t i)
{
    return value->elements > 1 ? i % value->elements : 0;
}

/* ---- from sums to integers ---- */

static int32_t round_as_tflite(const sums *s, const channel *c, size_t i, int64_t sum)
{
    (void)i;
    return muc_q_clamp(muc_multiply((int32_t)(uint32_t)sum, c->factor), s->zero, s->least, s->most);
}

static int32_t round_wide_as_tflite(const sums *s, const channel *c, size_t i, int64_t sum)
{
    (void)i;
    return muc_q_clamp(muc_multiply_wide(sum, c->factor), s->zero, s->least, s->most);
}

static int32_t round_as_chip(const sums *s, const channel *c, size_t i, int64_t sum)
{
    (void)i;
    return muc_q_clamp(muc_q_chip(c->chip * (float)(int32_t)(uint32_t)sum), s->zero, s->least,
                       s->most);
}

static int32_t round_as_quantlib(const sums *s, const channel *c, size_t i, int64_t sum)
{
    (void)i;
    return mur_quantlib_requant((int32_t)(uint32_t)sum, c->mul, c->add, s->shift, s->least,
                                s->most);
}

/* sums times a scale * b scale / y scale */
static int32_t round_as_onnx(const sums *s, const channel *c, size_t i, int64_t sum)
{
    const muc_ref_value *scale = s->call->inputs[1];
    double a = muc_ref_real(scale, pick(scale, i / s->channels));
    double factor = a * c->scale / muc_ref_real(s->call->inputs[6], 0);

    return (int32_t)muc_q_round_to(s->call->output->dtype, (double)(int32_t)(uint32_t)sum * factor,
                                   s->zero);
}

/* one rounding to binary32, behind all that is exact in doubles */
static float chip_factor(const muc_tensor *x, const muc_tensor *w, const muc_tensor *out, size_t c)
{
    float scale = w->quantization->scales[w->quantization->count > 1 ? c : 0];

    return (float)((double)muc_scale_of(x) * (double)scale / (double)muc_scale_of(out));
}

static void describe_channel(const sums *s, size_t c, channel *out)
{
    const muc_ref_call *call = s->call;
    const muc_ref_value *bias = s->at->bias ? muc_ref_input_of(call, s->at->bias) : NULL;
    const muc_ref_value *const *in = call->inputs;
    const muc_tensor *x = call->input_tensors[0], *w = call->input_tensors[1];

    out->bias = bias ? muc_ref_integer(bias, c) : 0;
    if (s->round == round_as_onnx) {
        out->scale = muc_ref_real(in[4], pick(in[4], c));
    } else if (s->round == round_as_quantlib) {
        out->mul = (int32_t)muc_ref_integer(in[2], pick(in[2], c));
        out->add = (int32_t)muc_ref_integer(in[3], pick(in[3], c));
    } else {
        out->factor = muc_scale_product(call->node, x, w, muc_q_out(call), (uint32_t)c);
        out->chip = chip_factor(x, w, muc_q_out(call), c);
    }
}

/* the dialect: of tensors that carry quantization, of shifts, of scales, or none */
static void choose_rounding(sums *s)
{
    const muc_ref_call *call = s->call;

    if (muc_q_out(call)->quantization) {
        s->round = call->on_chip   ? round_as_chip
                   : is_wide(call) ? round_wide_as_tflite
                                   : round_as_tflite;
        s->zero = muc_zero_of(muc_q_out(call));
        muc_scale_clamp(call->node, muc_q_out(call), &s->least, &s->most);
    } else if (muc_node_attribute(call->node, MUC_KEY_SHIFT)) {
        s->round = round_as_quantlib;
        s->shift = (unsigned)muc_node_integer(call->node, MUC_KEY_SHIFT);
        s->least = (int32_t)muc_node_integer(call->node, MUC_KEY_CLAMP_MIN);
        s->most = (int32_t)muc_node_integer(call->node, MUC_KEY_CLAMP_MAX);
    } else if (s->at->weights != 1) {
        s->round = round_as_onnx;
        s->zero = (int32_t)muc_ref_integer(call->inputs[7], 0);
    }
}

static void round_range(void *arg, size_t part, size_t first, size_t end)
{
    const sums *s = arg;
    size_t c = first / s->inner % s->channels, left = s->inner - first % s->inner;

    (void)part;
    for (size_t i = first; i < end; i++) {
        const channel *of = &s->channel[c];
        int64_t sum = s->out.dtype == MUC_I32 ? ((const int32_t *)s->out.data)[i]
                                              : ((const int64_t *)s->out.data)[i];

        muc_q_put(s->call->output, i, s->round(s, of, i, sum + of->bias));
        if (--left > 0)
            continue;
        left = s->inner;
        c = c + 1 < s->channels ? c + 1 : 0;
    }
}

static muc_status round_sums(sums *s)
{
    size_t count = s->call->output->elements;

    if (!s->round || count == 0)
        return MUC_OK;
    for (size_t c = 0; c < s->channels; c++)
        describe_channel(s, c, &s->channel[c]);
    return muc_ref_split(s->call->ctx, count, count * 16, round_range, s);
}

/* ---- operands ---- */

/* Operand `input` less its zero points, of which each counts for inner elements, those of constants
 * in input `zero`; to room. */
static muc_ref_value widen(const sums *s, uint32_t input, uint32_t zero, size_t inner, void *room)
{
    enum { SOME = 256 };
    const muc_ref_value *value = s->call->inputs[input];
    const muc_ref_value *zeros = zero ? muc_ref_input_of(s->call, zero) : NULL;
    const muc_quantization *q = s->call->input_tensors[input]->quantization;
    size_t count = q ? q->count : zeros ? zeros->elements : 1;
    muc_ref_value wide = *value;
    int64_t items[SOME];

    wide.dtype = s->out.dtype;
    wide.read = wide.data = room;
    inner = count > 1 ? inner : value->elements;
    for (size_t first = 0, n; first < value->elements; first += n) {
        size_t at = first / inner % count, rest = inner - first % inner;
        int64_t less = q ? q->zero_points[at] : zeros ? muc_ref_integer(zeros, at) : 0;

        n = value->elements - first < rest ? value->elements - first : rest;
        n = n < SOME ? n : SOME;
        muc_ref_load_integers(value, first, n, items);
        for (size_t i = 0; i < n; i++)
            items[i] -= less;
        muc_ref_store_integers(&wide, first, n, items);
    }
    return wide;
}

/* Operands less their zero points, of which each counts for so many elements, and room for sums. */
static muc_status begin_sums(const muc_ref_call *call, size_t a_inner, size_t b_inner,
                             size_t channels, bool in_64_bits, sums *s)
{
    size_t width = in_64_bits ? sizeof(int64_t) : sizeof(int32_t), channel_bytes;
    const muc_ref_value *a = call->inputs[0], *b;
    uint8_t *at;
    void *room;

    *s = (sums){
        .call = call, .at = muc_op_product(call->node->op), .channels = channels, .inner = 1
    };
    b = call->inputs[s->at->weights];
    s->out = *call->output;
    s->out.dtype = in_64_bits ? MUC_I64 : MUC_I32;
    choose_rounding(s);
    channel_bytes = channels * sizeof(channel);
    MUC_TRY(muc_ref_reserve(
        call, channel_bytes + (a->elements + b->elements + s->out.elements) * width, &room));
    s->channel = room;
    at = (uint8_t *)room + channel_bytes;
    s->a = widen(s, 0, s->at->zero, a_inner, at);
    s->b = widen(s, s->at->weights, s->at->weights_zero, b_inner, at + a->elements * width);
    if (s->round)
        s->out.data = at + (a->elements + b->elements) * width;
    return MUC_OK;
}

/* elements of a filter, or of a row of a matrix: what shares a zero point */
static size_t row_size(const muc_ref_value *weights)
{
    return weights->dims[0] ? weights->elements / weights->dims[0] : 1;
}

static muc_status convolve(sums *s, const muc_ref_window *w, size_t groups)
{
    MUC_TRY(muc_ref_convolve(s->call, w, s->out.dtype, groups, s->a.read, s->b.read, NULL,
                             s->out.data));
    return round_sums(s);
}

muc_status muc_check_q_weights(const muc_ref_call *call)
{
    return muc_q_check_weights(call, 0);
}

muc_status muc_kernel_integer_conv(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *y = call->output;
    const muc_ref_value *weights = call->inputs[muc_op_product(call->node->op)->weights];
    muc_ref_window w;
    sums s;

    MUC_TRY(muc_ref_window_of(call, x, weights, y, &w));
    MUC_TRY(begin_sums(call, x->elements, row_size(weights), w.out_channels, is_wide(call), &s));
    s.inner = w.channels_last ? 1 : w.out_positions;
    return convolve(&s, &w, (size_t)muc_node_integer_or(call->node, MUC_KEY_GROUPS, 1));
}

/* x [rows, k] times the transpose of w [n, k]: a convolution of one tap */
muc_status muc_kernel_integer_linear(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *weights = call->inputs[1];
    const muc_ref_window w = { .channels_last = true,
                               .batch = 1,
                               .channels = weights->columns,
                               .out_channels = weights->rows,
                               .in = { 1, 1, x->rows },
                               .out = { 1, 1, x->rows },
                               .kernel = { 1, 1, 1 },
                               .stride = { 1, 1, 1 },
                               .dilation = { 1, 1, 1 },
                               .positions = x->rows,
                               .out_positions = x->rows,
                               .taps = 1 };
    sums s;

    MUC_TRY(begin_sums(call, x->elements, row_size(weights), weights->rows, is_wide(call), &s));
    return convolve(&s, &w, 1);
}

muc_status muc_kernel_integer_matmul(const muc_ref_call *call)
{
    const muc_ref_value *a = call->inputs[0],
                        *b = call->inputs[muc_op_product(call->node->op)->weights];
    sums s;

    MUC_TRY(begin_sums(call, a->rank > 1 ? a->columns : a->elements, 1,
                       b->rank > 1 ? b->columns : 1, is_wide(call), &s));
    MUC_TRY(muc_ref_product(call, &s.a, &s.b, &s.out));
    return round_sums(&s);
}

/* ---- transposed convolution ---- */

/* channel c at a position of an image */
static size_t place_of(const muc_ref_window *w, size_t image, size_t channels, size_t positions,
                       size_t c, size_t position)
{
    return w->channels_last ? (image * positions + position) * channels + c
                            : (image * channels + c) * positions + position;
}

/* Each element of an image times the weights that it meets, [out, taps, in] or [in, out, taps]. w:
 * of the output as the convolution's input. */
static void scatter(const sums *s, const muc_ref_window *w, size_t image, ptrdiff_t *taps)
{
    size_t in = w->channels, channels = w->out_channels;
    size_t step = w->channels_last ? 1 : w->positions;
    size_t weight_step = w->channels_last ? 1 : channels * w->taps;
    int64_t *out = s->out.data;

    for (size_t at = 0; at < w->positions; at++) {
        const int64_t *x = (const int64_t *)s->a.read + place_of(w, image, in, w->positions, 0, at);

        muc_ref_window_taps(w, at, taps);
        for (size_t t = 0; t < w->taps; t++)
            for (size_t c = 0; taps[t] >= 0 && c < channels; c++) {
                const int64_t *weights =
                    (const int64_t *)s->b.read + (c * w->taps + t) * (w->channels_last ? in : 1);
                int64_t sum = 0;

                for (size_t i = 0; i < in; i++)
                    sum += weights[i * weight_step] * x[i * step];
                out[place_of(w, image, channels, w->out_positions, c, (size_t)taps[t])] += sum;
            }
    }
}

muc_status muc_check_q_conv_transpose(const muc_ref_call *call)
{
    bool channels_last = muc_node_integer_or(call->node, MUC_KEY_CHANNELS_LAST, 0) == 1;

    MUC_TRY(muc_q_check_weights(call, channels_last ? 0 : 1));
    if (muc_node_integer_or(call->node, MUC_KEY_GROUPS, 1) != 1)
        return muc_ref_fail(call, "quantized in groups");
    return MUC_OK;
}

muc_status muc_kernel_q_conv_transpose(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *weights = call->inputs[1];
    muc_ref_window w, forward;
    void *taps;
    sums s;

    MUC_TRY(muc_ref_window_of(call, x, weights, call->output, &forward));
    w = forward;
    memcpy(w.in, forward.out, sizeof(w.in));
    memcpy(w.out, forward.in, sizeof(w.out));
    MUC_TRY(begin_sums(call, x->elements, w.channels_last ? row_size(weights) : w.taps,
                       w.out_channels, true, &s));
    s.inner = w.channels_last ? 1 : w.out_positions;
    MUC_TRY(muc_ref_reserve_inner(call, w.taps * sizeof(ptrdiff_t), &taps));
    memset(s.out.data, 0, s.out.elements * sizeof(int64_t));
    for (size_t image = 0; image < w.batch; image++)
        scatter(&s, &w, image, taps);
    return round_sums(&s);
}
