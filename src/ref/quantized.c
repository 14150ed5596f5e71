/* quantized.c - quantized operators element by element. */
#include <math.h>
#include <string.h>

#include "ref/quantized.h"

static bool is_narrow(muc_dtype dtype)
{
    return dtype == MUC_I8 || dtype == MUC_U8 || dtype == MUC_I16;
}

muc_status muc_q_check(const muc_ref_call *call, bool has_weights)
{
    const muc_tensor *out = muc_q_out(call);

    for (uint32_t i = 0; i < call->node->input_count; i++) {
        const muc_tensor *t = call->input_tensors[i];

        if (!t || (has_weights && i > 1)) /* a bias has the scale of its sums */
            continue;
        if (!t->quantization || !is_narrow(t->dtype))
            return muc_ref_fail(call, "input %u is no quantized i8, u8 or i16", i);
        if (t->quantization->count > 1 && !(has_weights && i == 1))
            return muc_ref_fail(call, "input %u has several scales", i);
    }
    if (!is_narrow(out->dtype) || !out->quantization || out->quantization->count > 1)
        return muc_ref_fail(call, "the output is no i8, u8 or i16 of one scale");
    return MUC_OK;
}

/* ---- two inputs ---- */

typedef struct work work;
/* the output's integer without its zero point, of the inputs' stored integers */
typedef int32_t combine(const work *w, int32_t a, int32_t b);

struct work {
    const muc_ref_call *call;
    combine *f;
    int32_t zero_a, zero_b, zero, least, most;
    muc_add_scales add;
    muc_multiplier product, change;
    size_t done;
};

static int32_t aligned(const work *w, int32_t q, muc_multiplier m)
{
    return muc_multiply((int32_t)((uint32_t)q << w->add.left_shift), m);
}

static int32_t add(const work *w, int32_t a, int32_t b)
{
    return muc_multiply(aligned(w, a - w->zero_a, w->add.a) + aligned(w, b - w->zero_b, w->add.b),
                        w->add.out);
}

static int32_t sub(const work *w, int32_t a, int32_t b)
{
    return muc_multiply(aligned(w, a - w->zero_a, w->add.a) - aligned(w, b - w->zero_b, w->add.b),
                        w->add.out);
}

static int32_t mul(const work *w, int32_t a, int32_t b)
{
    return muc_multiply((a - w->zero_a) * (b - w->zero_b), w->product);
}

static int32_t quotient(const work *w, int32_t a, int32_t b)
{
    int32_t divisor = b == w->zero_b ? 1 : b - w->zero_b;

    return muc_multiply((a - w->zero_a) * (1 << MUC_DIV_SHIFT) / divisor, w->product);
}

static int32_t prelu(const work *w, int32_t a, int32_t b)
{
    if (a >= w->zero_a)
        return muc_multiply(a - w->zero_a, w->change);
    return muc_multiply((a - w->zero_a) * (b - w->zero_b), w->product);
}

static int32_t greater(const work *w, int32_t a, int32_t b)
{
    return (a > b ? a : b) - w->zero;
}

static int32_t lesser(const work *w, int32_t a, int32_t b)
{
    return (a < b ? a : b) - w->zero;
}

static combine *combine_of(muc_op op)
{
    static combine *const table[MUC_OP_COUNT] = {
        [MUC_OP_ADD] = add,      [MUC_OP_SUB] = sub,     [MUC_OP_MUL] = mul,
        [MUC_OP_PRELU] = prelu,  [MUC_OP_MAX] = greater, [MUC_OP_MIN] = lesser,
        [MUC_OP_DIV] = quotient,
    };

    return table[op];
}

static void run_binary(void *arg, size_t n, const size_t *at, const size_t *step)
{
    work *w = arg;
    const muc_ref_call *call = w->call;

    for (size_t i = 0; i < n; i++) {
        int32_t a = muc_q_get(call->inputs[0], at[0] + i * step[0]);
        int32_t b = muc_q_get(call->inputs[1], at[1] + i * step[1]);

        muc_q_put(call->output, w->done++, muc_q_clamp(w->f(w, a, b), w->zero, w->least, w->most));
    }
}

/* max and min compare stored integers, which therefore must stand for the same numbers */
static muc_status check_same_scale(const muc_ref_call *call)
{
    const muc_quantization *q = muc_q_out(call)->quantization;

    for (uint32_t i = 0; i < call->node->input_count; i++) {
        const muc_quantization *p = call->input_tensors[i]->quantization;

        if (fabsf(p->scales[0] - q->scales[0]) > 1e-6f || p->zero_points[0] != q->zero_points[0])
            return muc_ref_fail(call, "input %u has another scale than the output", i);
    }
    return MUC_OK;
}

muc_status muc_kernel_q_binary(const muc_ref_call *call)
{
    const muc_tensor *a = call->input_tensors[0], *out = muc_q_out(call);
    const muc_tensor *b = call->node->input_count > 1 ? call->input_tensors[1] : a;
    work w = { .call = call, .f = combine_of(call->node->op) };
    muc_ref_walk walk;

    MUC_TRY(muc_q_check(call, false));
    if (call->node->input_count != 2)
        return muc_ref_fail(call, "%u quantized inputs, expected 2", call->node->input_count);
    if (w.f == greater || w.f == lesser)
        MUC_TRY(check_same_scale(call));
    if (w.f == quotient && (a->dtype == MUC_I16 || b->dtype == MUC_I16))
        return muc_ref_fail(call, "a quantized quotient of 16 bits");
    w.zero_a = muc_q_zero(a);
    w.zero_b = muc_q_zero(b);
    w.zero = muc_q_zero(out);
    w.add = muc_scale_add(a, b, out);
    w.product = w.f == quotient ? muc_scale_div(a, b, out) : muc_scale_mul(a, b, out);
    w.change = muc_scale_change(MUC_OP_RELU, a, out);
    muc_scale_clamp(call->node, out, &w.least, &w.most);
    muc_ref_walk_of(call->output, call->inputs, 2, &walk);
    muc_ref_walk_each(&walk, run_binary, &w);
    return MUC_OK;
}

/* ---- one input ---- */

/* Bounds of relu and clip as integers of the output. */
static void real_bounds(const muc_ref_call *call, int32_t *least, int32_t *most)
{
    const muc_tensor *out = muc_q_out(call);

    if (call->node->op == MUC_OP_RELU)
        *least = muc_q_zero(out) > *least ? muc_q_zero(out) : *least;
    for (uint32_t i = 1; i < call->node->input_count; i++) {
        const muc_tensor *bound = call->input_tensors[i];
        int32_t q;

        if (!bound)
            continue;
        q = muc_scale_quantize(out, bound->quantization->scales[0] *
                                        (float)(muc_q_get(call->inputs[i], 0) - muc_q_zero(bound)));
        if (i == 1 && q > *least)
            *least = q;
        if (i == 2 && q < *most)
            *most = q;
    }
    muc_scale_uncross(least, *most);
}

/* relu, clip, and quantize from another quantization, of i32 too */
muc_status muc_kernel_q_change(const muc_ref_call *call)
{
    const muc_tensor *x = call->input_tensors[0], *out = muc_q_out(call);
    int32_t zero_x, zero = muc_q_zero(out), least, most;
    muc_multiplier m;

    if (!x->quantization || x->quantization->count > 1)
        return muc_ref_fail(call, "an input of not one scale");
    if (call->node->op != MUC_OP_QUANTIZE)
        MUC_TRY(muc_q_check(call, false));
    zero_x = muc_q_zero(x);
    m = muc_scale_change(call->node->op, x, out);
    muc_scale_clamp(call->node, out, &least, &most);
    real_bounds(call, &least, &most);
    for (size_t i = 0; i < call->output->elements; i++)
        muc_q_put(call->output, i,
                  muc_q_clamp(muc_multiply(muc_q_get(call->inputs[0], i) - zero_x, m), zero, least,
                              most));
    return MUC_OK;
}

muc_status muc_kernel_q_quantize(const muc_ref_call *call)
{
    const muc_tensor *out = muc_q_out(call);
    const float *x = call->inputs[0]->read;

    if (call->input_tensors[0]->quantization)
        return muc_kernel_q_change(call);
    if (call->inputs[0]->dtype != MUC_F32 || !out->quantization || out->quantization->count > 1)
        return muc_ref_fail(call, "not f32 to one scale");
    for (size_t i = 0; i < call->output->elements; i++)
        muc_q_put(call->output, i, muc_scale_quantize(out, x[i]));
    return MUC_OK;
}

muc_status muc_kernel_q_dequantize(const muc_ref_call *call)
{
    const muc_quantization *q = call->input_tensors[0]->quantization;
    muc_ref_along along = { 1, 1, call->output->elements };
    float *y = call->output->data;

    if (q->count > 1)
        along = muc_ref_along_of(call->inputs[0], q->axis);
    for (size_t i = 0; i < call->output->elements; i++) {
        size_t c = q->count > 1 ? i / along.inner % along.extent : 0;
        int64_t value = (int64_t)muc_q_get(call->inputs[0], i) - q->zero_points[c];

        y[i] = (float)((double)q->scales[c] * (double)value);
    }
    return MUC_OK;
}

muc_status muc_kernel_q_leaky_relu(const muc_ref_call *call)
{
    const muc_tensor *x = call->input_tensors[0], *out = muc_q_out(call);
    muc_multiplier above, below;
    int32_t least, most;

    MUC_TRY(muc_q_check(call, false));
    above = muc_scale_change(MUC_OP_RELU, x, out);
    below = muc_scale_leak(x, muc_node_real(call->node, MUC_KEY_ALPHA), out);
    muc_scale_clamp(call->node, out, &least, &most);
    for (size_t i = 0; i < call->output->elements; i++) {
        int32_t q = muc_q_get(call->inputs[0], i) - muc_q_zero(x);

        muc_q_put(
            call->output, i,
            muc_q_clamp(muc_multiply(q, q >= 0 ? above : below), muc_q_zero(out), least, most));
    }
    return MUC_OK;
}

/* sigmoid and tanh of int16 */
static muc_status table_of_i16(const muc_ref_call *call)
{
    const muc_tensor *x = call->input_tensors[0], *y = muc_q_out(call);
    muc_op op = call->node->op;
    muc_table_scale scale;
    uint16_t table[256];

    if ((op != MUC_OP_SIGMOID && op != MUC_OP_TANH) || y->dtype != MUC_I16 || muc_q_zero(x) ||
        muc_q_zero(y) ||
        !muc_scale_of_table(op, x->quantization->scales[0], y->quantization->scales[0], &scale))
        return muc_ref_fail(call, "a table of int16 is for sigmoid and tanh to int16 of scale "
                                  "2^-15, without zero points");
    muc_scale_sigmoid_table(table);
    for (size_t i = 0; i < call->output->elements; i++) {
        int32_t wide = (muc_q_get(call->inputs[0], i) * scale.mul + scale.round) >> scale.shift;

        muc_q_put(call->output, i,
                  op == MUC_OP_TANH ? muc_scale_tanh(table, wide) : muc_scale_sigmoid(table, wide));
    }
    return MUC_OK;
}

/* sigmoid, tanh, ..: every result is known beforehand */
muc_status muc_kernel_q_table(const muc_ref_call *call)
{
    const uint8_t *x = call->inputs[0]->read;
    uint8_t *y = call->output->data, flip = call->inputs[0]->dtype == MUC_I8 ? 128 : 0;
    int8_t table[256];

    MUC_TRY(muc_q_check(call, false));
    if (call->inputs[0]->dtype == MUC_I16)
        return table_of_i16(call);
    MUC_TRY(muc_scale_table(call->ctx, call->graph, call->node, table));
    for (size_t i = 0; i < call->output->elements; i++)
        y[i] = (uint8_t)table[x[i] ^ flip];
    return MUC_OK;
}

/* ---- hard_swish ---- */

muc_status muc_kernel_q_hard_swish(const muc_ref_call *call)
{
    const muc_tensor *x = call->input_tensors[0], *out = muc_q_out(call);
    muc_hard_swish_scales scales;
    int32_t least, most;

    MUC_TRY(muc_q_check(call, false));
    scales = muc_scale_hard_swish(x, out);
    if (x->dtype == MUC_I16 || !muc_hard_swish_is_known(&scales))
        return muc_ref_fail(call, "scales beyond hard_swish's 16 bits");
    muc_scale_clamp(call->node, out, &least, &most);
    for (size_t i = 0; i < call->output->elements; i++) {
        int32_t q = muc_q_get(call->inputs[0], i) - muc_q_zero(x);

        muc_q_put(call->output, i,
                  muc_q_clamp(muc_hard_swish(q, &scales), muc_q_zero(out), least, most));
    }
    return MUC_OK;
}
