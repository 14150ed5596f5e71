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

/* ---- one or two inputs ---- */

typedef struct work work;
/* the output's integer without its zero point, of the inputs' stored integers */
typedef int32_t combine(const work *w, int32_t a, int32_t b);

struct work {
    const muc_ref_call *call;
    combine *f;
    int32_t zero_a, zero_b, zero, least, most;
    muc_integer_scales scales;
    int32_t mul, bias; /* QuantLib's, of a requantization */
    unsigned shift;
    uint32_t scale; /* and of a quotient */
    int32_t eta, eps;
    size_t done;
};

/* TFLite's */
static int32_t of_formula(const work *w, int32_t a, int32_t b)
{
    return muc_scale_elements(w->call->node->op, &w->scales, a - w->zero_a, b - w->zero_b);
}

static int32_t of_REQUANT_ADD(const work *w, int32_t a, int32_t b)
{
    return mur_quantlib_requant(a + b, w->mul, w->bias, w->shift, w->least, w->most);
}

static int32_t of_REQUANT_MUL(const work *w, int32_t a, int32_t b)
{
    return mur_quantlib_requant(a * b, w->mul, w->bias, w->shift, w->least, w->most);
}

/* of the input that does not broadcast, by two that do */
static int32_t of_REQUANT_SHIFT(const work *w, int32_t mul, int32_t bias)
{
    return mur_quantlib_requant(muc_q_get(w->call->inputs[0], w->done), mul, bias, w->shift,
                                w->least, w->most);
}

static int32_t of_INTEGER_DIV(const work *w, int32_t a, int32_t b)
{
    return mur_quantlib_div(a, b, w->scale, w->eta, w->eps);
}

static combine *combine_of(muc_op op)
{
    static combine *const table[MUC_OP_COUNT] = {
        [MUC_OP_REQUANT_ADD] = of_REQUANT_ADD,
        [MUC_OP_REQUANT_MUL] = of_REQUANT_MUL,
        [MUC_OP_REQUANT_SHIFT] = of_REQUANT_SHIFT,
        [MUC_OP_INTEGER_DIV] = of_INTEGER_DIV,
    };

    return table[op] ? table[op] : of_formula;
}

typedef struct operands {
    work *w;
    const muc_ref_value *values[2];
} operands;

static void run_elements(void *arg, size_t n, const size_t *at, const size_t *step)
{
    const operands *o = arg;
    work *w = o->w;

    for (size_t i = 0; i < n; i++, w->done++) {
        int32_t a = muc_q_get(o->values[0], at[0] + i * step[0]);
        int32_t b = muc_q_get(o->values[1], at[1] + i * step[1]);

        muc_q_put(w->call->output, w->done, muc_q_clamp(w->f(w, a, b), w->zero, w->least, w->most));
    }
}

/* input `first` and the one `after` it, which broadcast, and may be one */
static muc_status run_operands(work *w, const muc_ref_call *call, uint32_t first, uint32_t after)
{
    operands o = { w, { call->inputs[first], call->inputs[first + after] } };
    muc_ref_walk walk;

    w->call = call;
    w->f = combine_of(call->node->op);
    muc_ref_walk_of(call->output, o.values, 2, &walk);
    muc_ref_walk_each(&walk, run_elements, &o);
    return MUC_OK;
}

muc_status muc_check_q_elements(const muc_ref_call *call)
{
    uint32_t count = muc_integer_operands(call->node);

    MUC_TRY(muc_check_q_operands(call));
    if (count > 2)
        return muc_ref_fail(call, "%u quantized inputs, expected 2", count);
    if (muc_scale_is_quotient(call->node->op) &&
        (call->input_tensors[0]->dtype == MUC_I16 || call->input_tensors[1]->dtype == MUC_I16))
        return muc_ref_fail(call, "a quantized quotient of 16 bits");
    return MUC_OK;
}

/* input i, a bound, with its element in this run, or NULL */
static const muc_tensor *bound_at(const muc_ref_call *call, uint32_t i, muc_tensor *bound)
{
    if (!muc_ref_input_of(call, i) || i < muc_integer_operands(call->node))
        return NULL;
    *bound = *call->input_tensors[i];
    bound->data = call->inputs[i]->read;
    return bound;
}

muc_status muc_kernel_q_elements(const muc_ref_call *call)
{
    const bool pair = muc_integer_operands(call->node) > 1;
    const muc_tensor *a = call->input_tensors[0], *b = call->input_tensors[pair];
    const muc_tensor *out = muc_q_out(call);
    work w = { .zero_a = muc_zero_of(a), .zero_b = muc_zero_of(b), .zero = muc_zero_of(out) };
    muc_tensor bounds[2];

    w.scales = muc_scale_integers(call->node, a, pair ? b : NULL, out);
    muc_scale_element_bounds(call->node, out, bound_at(call, 1, &bounds[0]),
                             bound_at(call, 2, &bounds[1]), &w.least, &w.most);
    return run_operands(&w, call, 0, pair);
}

muc_status muc_kernel_requant(const muc_ref_call *call)
{
    bool one = call->node->op == MUC_OP_REQUANT_SHIFT;
    work w = { .shift = (unsigned)muc_node_integer(call->node, MUC_KEY_SHIFT),
               .least = (int32_t)muc_node_integer(call->node, MUC_KEY_CLAMP_MIN),
               .most = (int32_t)muc_node_integer(call->node, MUC_KEY_CLAMP_MAX),
               .mul = one ? 0 : muc_q_get(call->inputs[2], 0),
               .bias = one ? 0 : muc_q_get(call->inputs[3], 0) };

    return run_operands(&w, call, one, 1);
}

muc_status muc_kernel_integer_div(const muc_ref_call *call)
{
    const int64_t eta = muc_node_integer(call->node, MUC_KEY_ETA);
    work w = { .least = INT32_MIN,
               .most = INT32_MAX,
               .scale = (uint32_t)(muc_node_integer(call->node, MUC_KEY_DELTA) * eta),
               .eta = (int32_t)eta,
               .eps = (int32_t)muc_node_integer(call->node, MUC_KEY_EPS) };

    return run_operands(&w, call, 0, 1);
}

/* ---- to and from real numbers ---- */

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
        return muc_kernel_q_elements(call);
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
    bool is_signed = muc_op_has(call->node->op, MUC_OP_SIGNED);
    muc_table_scale scale;
    uint16_t table[256];

    (void)muc_scale_of_i16(call->graph, call->node, &scale);
    muc_scale_sigmoid_table(table);
    for (size_t i = 0; i < call->output->elements; i++) {
        int32_t wide = (muc_q_get(call->inputs[0], i) * scale.mul + scale.round) >> scale.shift;

        muc_q_put(call->output, i,
                  is_signed ? mur_tanh_q15(table, wide) : mur_sigmoid_q15(table, wide));
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
