/* quantized.c - operators on integers element by element: TFLite's, and QuantLib's of two inputs.
 */
#include "mur_quantlib.h"
#include "mur_sigmoid.h"
#include "ref/integer/quantized.h"

static bool is_narrow(muc_dtype dtype)
{
    return dtype == MUC_I8 || dtype == MUC_U8 || dtype == MUC_I16;
}

/* a bias, behind weights, has the scale of its sums */
static muc_status check_tensors(const muc_ref_call *call, bool has_weights)
{
    const muc_tensor *out = muc_q_out(call);

    for (uint32_t i = 0; i < call->node->input_count; i++) {
        const muc_tensor *t = call->input_tensors[i];

        if (!t || (has_weights && i > 1))
            continue;
        if (!t->quantization || !is_narrow(t->dtype))
            return muc_ref_fail(call, "input %u is not a quantized i8, u8 or i16", i);
        if (t->quantization->count > 1 && !(has_weights && i == 1))
            return muc_ref_fail(call, "input %u has several scales", i);
    }
    if (!is_narrow(out->dtype) || !out->quantization || out->quantization->count > 1)
        return muc_ref_fail(call, "the output is not an i8, u8 or i16 of one scale");
    return MUC_OK;
}

muc_status muc_check_q_nothing(const muc_ref_call *call)
{
    (void)call;
    return MUC_OK;
}

muc_status muc_check_q_operands(const muc_ref_call *call)
{
    return check_tensors(call, false);
}

muc_status muc_q_check_weights(const muc_ref_call *call, uint32_t axis)
{
    const muc_quantization *q = call->input_tensors[1]->quantization;

    MUC_TRY(check_tensors(call, true));
    if (q->count > 1 && q->axis != axis)
        return muc_ref_fail(call, "weights of a scale each along dimension %u, not %u", q->axis,
                            axis);
    return MUC_OK;
}

/* ---- two inputs ---- */

typedef struct work work;
/* the output's integer without its zero point, of the inputs' stored integers */
typedef int32_t combine(const work *w, int32_t a, int32_t b);

struct work {
    const muc_ref_call *call;
    const muc_ref_value *a, *b;
    combine *f;
    int32_t zero_a, zero_b, zero, least, most;
    muc_add_scales add;
    muc_multiplier product, change, change_b;
    int32_t mul, bias; /* QuantLib's, of a requantization */
    unsigned shift;
    uint32_t scale; /* and of a quotient */
    int32_t eta, eps;
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
    int32_t p = muc_multiply(a - w->zero_a, w->change);
    int32_t q = muc_multiply(b - w->zero_b, w->change_b);

    return p > q ? p : q;
}

static int32_t lesser(const work *w, int32_t a, int32_t b)
{
    int32_t p = muc_multiply(a - w->zero_a, w->change);
    int32_t q = muc_multiply(b - w->zero_b, w->change_b);

    return p < q ? p : q;
}

static int32_t requantized_sum(const work *w, int32_t a, int32_t b)
{
    return mur_quantlib_requant(a + b, w->mul, w->bias, w->shift, w->least, w->most);
}

static int32_t requantized_product(const work *w, int32_t a, int32_t b)
{
    return mur_quantlib_requant(a * b, w->mul, w->bias, w->shift, w->least, w->most);
}

/* of the input that does not broadcast, by two that do */
static int32_t requantized(const work *w, int32_t mul, int32_t bias)
{
    return mur_quantlib_requant(muc_q_get(w->call->inputs[0], w->done), mul, bias, w->shift,
                                w->least, w->most);
}

static int32_t quotient_of_quantlib(const work *w, int32_t a, int32_t b)
{
    return mur_quantlib_div(a, b, w->scale, w->eta, w->eps);
}

static combine *combine_of(muc_op op)
{
    static combine *const table[MUC_OP_COUNT] = {
        [MUC_OP_ADD] = add,
        [MUC_OP_SUB] = sub,
        [MUC_OP_MUL] = mul,
        [MUC_OP_PRELU] = prelu,
        [MUC_OP_MAX] = greater,
        [MUC_OP_MIN] = lesser,
        [MUC_OP_DIV] = quotient,
        [MUC_OP_REQUANT_ADD] = requantized_sum,
        [MUC_OP_REQUANT_MUL] = requantized_product,
        [MUC_OP_REQUANT_SHIFT] = requantized,
        [MUC_OP_INTEGER_DIV] = quotient_of_quantlib,
    };

    return table[op];
}

static void run_pairs(void *arg, size_t n, const size_t *at, const size_t *step)
{
    work *w = arg;

    for (size_t i = 0; i < n; i++, w->done++) {
        int32_t a = muc_q_get(w->a, at[0] + i * step[0]);
        int32_t b = muc_q_get(w->b, at[1] + i * step[1]);

        muc_q_put(w->call->output, w->done, muc_q_clamp(w->f(w, a, b), w->zero, w->least, w->most));
    }
}

/* two inputs that broadcast, from input `first` on */
static muc_status run_binary(work *w, const muc_ref_call *call, uint32_t first)
{
    muc_ref_walk walk;

    w->call = call;
    w->f = combine_of(call->node->op);
    w->a = call->inputs[first];
    w->b = call->inputs[first + 1];
    muc_ref_walk_of(call->output, call->inputs + first, 2, &walk);
    muc_ref_walk_each(&walk, run_pairs, w);
    return MUC_OK;
}

muc_status muc_check_q_pair(const muc_ref_call *call)
{
    MUC_TRY(muc_check_q_operands(call));
    if (call->node->input_count != 2)
        return muc_ref_fail(call, "%u quantized inputs, expected 2", call->node->input_count);
    if (call->node->op == MUC_OP_DIV &&
        (call->input_tensors[0]->dtype == MUC_I16 || call->input_tensors[1]->dtype == MUC_I16))
        return muc_ref_fail(call, "a quantized quotient of 16 bits");
    return MUC_OK;
}

muc_status muc_kernel_q_binary(const muc_ref_call *call)
{
    const muc_tensor *a = call->input_tensors[0], *out = muc_q_out(call);
    const muc_tensor *b = call->input_tensors[1];
    work w = { .zero_a = muc_zero_of(a), .zero_b = muc_zero_of(b), .zero = muc_zero_of(out) };

    w.add = muc_scale_add(a, b, out);
    w.product = call->node->op == MUC_OP_DIV ? muc_scale_div(a, b, out) : muc_scale_mul(a, b, out);
    w.change = muc_scale_ratio(a, out);
    w.change_b = muc_scale_ratio(b, out);
    muc_scale_clamp(call->node, out, &w.least, &w.most);
    return run_binary(&w, call, 0);
}

muc_status muc_kernel_requant(const muc_ref_call *call)
{
    bool one = call->node->op == MUC_OP_REQUANT_SHIFT;
    work w = { .shift = (unsigned)muc_node_integer(call->node, MUC_KEY_SHIFT),
               .least = (int32_t)muc_node_integer(call->node, MUC_KEY_CLAMP_MIN),
               .most = (int32_t)muc_node_integer(call->node, MUC_KEY_CLAMP_MAX),
               .mul = one ? 0 : muc_q_get(call->inputs[2], 0),
               .bias = one ? 0 : muc_q_get(call->inputs[3], 0) };

    return run_binary(&w, call, one);
}

muc_status muc_kernel_integer_div(const muc_ref_call *call)
{
    const int64_t eta = muc_node_integer(call->node, MUC_KEY_ETA);
    work w = { .least = INT32_MIN,
               .most = INT32_MAX,
               .scale = (uint32_t)(muc_node_integer(call->node, MUC_KEY_DELTA) * eta),
               .eta = (int32_t)eta,
               .eps = (int32_t)muc_node_integer(call->node, MUC_KEY_EPS) };

    return run_binary(&w, call, 0);
}

/* ---- one input ---- */

/* input i with its element in this run, or NULL */
static const muc_tensor *bound_at(const muc_ref_call *call, uint32_t i, muc_tensor *bound)
{
    if (!muc_ref_input_of(call, i))
        return NULL;
    *bound = *call->input_tensors[i];
    bound->data = call->inputs[i]->read;
    return bound;
}

/* relu, leaky_relu, clip, and quantize from another quantization, of i32 too */
muc_status muc_kernel_q_change(const muc_ref_call *call)
{
    const muc_tensor *x = call->input_tensors[0], *out = muc_q_out(call);
    const bool leaks = call->node->op == MUC_OP_LEAKY_RELU;
    const muc_multiplier above =
        leaks ? muc_scale_ratio(x, out) : muc_scale_change(call->node->op, x, out);
    const muc_multiplier below =
        leaks ? muc_scale_leak(x, muc_node_real(call->node, MUC_KEY_ALPHA), out) : above;
    const int32_t zero_x = muc_zero_of(x), zero = muc_zero_of(out);
    muc_tensor bounds[2];
    int32_t least, most;

    muc_scale_clamp(call->node, out, &least, &most);
    muc_scale_bounds(call->node->op, out, bound_at(call, 1, &bounds[0]),
                     bound_at(call, 2, &bounds[1]), &least, &most);
    muc_scale_uncross(&least, most);
    for (size_t i = 0; i < call->output->elements; i++) {
        int32_t q = muc_q_get(call->inputs[0], i) - zero_x;

        muc_q_put(call->output, i,
                  muc_q_clamp(muc_multiply(q, q < 0 ? below : above), zero, least, most));
    }
    return MUC_OK;
}

muc_status muc_check_q_quantize(const muc_ref_call *call)
{
    const muc_tensor *x = call->input_tensors[0], *out = muc_q_out(call);

    if (x->quantization && x->quantization->count > 1)
        return muc_ref_fail(call, "an input of not one scale");
    if (!x->quantization && muc_dtype_get(x->dtype)->kind != MUC_DTYPE_FLOAT)
        return muc_ref_fail(call, "%s without a scale", muc_dtype_get(x->dtype)->name);
    if (!out->quantization || out->quantization->count > 1)
        return muc_ref_fail(call, "an output of not one scale");
    return MUC_OK;
}

/* of f64, too, in float32 */
muc_status muc_kernel_q_quantize(const muc_ref_call *call)
{
    const muc_tensor *out = muc_q_out(call);

    if (call->input_tensors[0]->quantization)
        return muc_kernel_q_change(call);
    for (size_t i = 0; i < call->output->elements; i++)
        muc_q_put(call->output, i,
                  muc_scale_quantize(out, (float)muc_ref_real(call->inputs[0], i)));
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

muc_status muc_check_q_table(const muc_ref_call *call)
{
    muc_table_scale scale;
    int8_t table[256];

    MUC_TRY(muc_check_q_operands(call));
    if (call->input_tensors[0]->dtype != MUC_I16)
        return muc_scale_table(call->ctx, call->graph, call->node, table);
    if (!muc_scale_of_i16(call->graph, call->node, &scale))
        return muc_ref_fail(call, "a table of int16 is for sigmoid and tanh to int16 of scale "
                                  "2^-15, without zero points");
    return MUC_OK;
}

static void table_of_i16(const muc_ref_call *call)
{
    muc_op op = call->node->op;
    muc_table_scale scale;
    uint16_t table[256];

    (void)muc_scale_of_i16(call->graph, call->node, &scale);
    muc_scale_sigmoid_table(table);
    for (size_t i = 0; i < call->output->elements; i++) {
        int32_t wide = (muc_q_get(call->inputs[0], i) * scale.mul + scale.round) >> scale.shift;

        muc_q_put(call->output, i,
                  op == MUC_OP_TANH ? mur_tanh_q15(table, wide) : mur_sigmoid_q15(table, wide));
    }
}

/* sigmoid, tanh, ..: every result is known beforehand */
muc_status muc_kernel_q_table(const muc_ref_call *call)
{
    const uint8_t *x = call->inputs[0]->read;
    uint8_t *y = call->output->data, flip = call->inputs[0]->dtype == MUC_I8 ? 128 : 0;
    int8_t table[256];

    if (call->inputs[0]->dtype == MUC_I16) {
        table_of_i16(call);
        return MUC_OK;
    }
    MUC_TRY(muc_scale_table(call->ctx, call->graph, call->node, table));
    for (size_t i = 0; i < call->output->elements; i++)
        y[i] = (uint8_t)table[x[i] ^ flip];
    return MUC_OK;
}
