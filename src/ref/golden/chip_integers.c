/* chip_integers.c - int8 operators as the CNN chip computes them, where sums are not all of it. */
#include <math.h>
#include <string.h>

#include "ref/integer/quantized.h"
#include "ref/window.h"

int32_t muc_q_chip(float y)
{
    const float most = 65536;
    float limited = y < -most ? -most : y > most ? most : y, base = floorf(limited);
    float part = limited - base;

    if (part > 0.5f || (part == 0.5f && (int32_t)base % 2 != 0))
        base += 1;
    return (int32_t)base;
}

static float ratio(const muc_tensor *from, const muc_tensor *to)
{
    return (float)((double)muc_scale_of(from) / (double)muc_scale_of(to));
}

/* a result's integers, and the bounds that the node keeps */
typedef struct target {
    const muc_ref_value *value;
    int32_t zero, least, most;
} target;

static target target_of(const muc_ref_call *call)
{
    const muc_tensor *out = muc_q_out(call);
    target t = { .value = call->output, .zero = muc_zero_of(out) };

    muc_scale_clamp(call->node, out, &t.least, &t.most);
    return t;
}

static void put(const target *t, size_t i, float y)
{
    muc_q_put(t->value, i, muc_q_clamp(muc_q_chip(y), t->zero, t->least, t->most));
}

/* ---- two operands, of which one may be a constant ---- */

typedef struct operands {
    const muc_ref_call *call;
    target to;
    const muc_ref_value *x, *k;
    const muc_tensor *x_tensor, *k_tensor;
    float factor_x, factor_k; /* of a sum */
    float sign;               /* of the constant's numbers */
    size_t done;
} operands;

static bool is_constant(const muc_tensor *tensor)
{
    return tensor->kind == MUC_TENSOR_CONST;
}

/* a constant's element as a real number */
static float real_of(const operands *o, size_t i)
{
    if (o->k->dtype == MUC_F32)
        return ((const float *)o->k->read)[i];
    return muc_scale_of(o->k_tensor) * (float)(muc_q_get(o->k, i) - muc_zero_of(o->k_tensor));
}

static float without_zero(const muc_ref_value *value, const muc_tensor *tensor, size_t i)
{
    return (float)(muc_q_get(value, i) - muc_zero_of(tensor));
}

static void add_elements(void *arg, size_t n, const size_t *at, const size_t *step)
{
    operands *o = arg;

    for (size_t i = 0; i < n; i++) {
        float a = o->factor_x * without_zero(o->x, o->x_tensor, at[0] + i * step[0]);
        float b = o->factor_k * without_zero(o->k, o->k_tensor, at[1] + i * step[1]);

        put(&o->to, o->done++, a + b);
    }
}

/* one number, or one per channel: the DSP stage's v2 and v1 */
static void add_numbers(void *arg, size_t n, const size_t *at, const size_t *step)
{
    operands *o = arg;
    float out = muc_scale_of(muc_q_out(o->call)), v1 = o->factor_x / out;

    for (size_t i = 0; i < n; i++) {
        float x = muc_scale_of(o->x_tensor) * without_zero(o->x, o->x_tensor, at[0] + i * step[0]);
        float v2 = o->sign * real_of(o, at[1] + i * step[1]) / out;

        put(&o->to, o->done++, v2 + v1 * x);
    }
}

static void scale_numbers(void *arg, size_t n, const size_t *at, const size_t *step)
{
    operands *o = arg;
    float out = muc_scale_of(muc_q_out(o->call));

    for (size_t i = 0; i < n; i++) {
        float x = muc_scale_of(o->x_tensor) * without_zero(o->x, o->x_tensor, at[0] + i * step[0]);
        float number = o->k ? real_of(o, at[1] + i * step[1]) : -1;

        put(&o->to, o->done++, (o->call->node->op == MUC_OP_DIV ? 1 / number : number) / out * x);
    }
}

static void take_operand(operands *o, const muc_ref_call *call, uint32_t x)
{
    *o = (operands){ .call = call, .to = target_of(call), .sign = 1, .factor_x = 1 };
    o->x = call->inputs[x];
    o->x_tensor = call->input_tensors[x];
    if (call->node->input_count > 1) {
        o->k = call->inputs[1 - x];
        o->k_tensor = call->input_tensors[1 - x];
    }
}

static void walk_operands(operands *o, muc_ref_run_body *body)
{
    const muc_ref_value *const values[] = { o->x, o->k ? o->k : o->x };
    muc_ref_walk walk;

    muc_ref_walk_of(o->call->output, values, 2, &walk);
    muc_ref_walk_each(&walk, body, o);
}

muc_status muc_kernel_chip_add(const muc_ref_call *call)
{
    float sign = muc_op_has(call->node->op, MUC_OP_SUBTRACTS) ? -1 : 1;
    bool swapped = call->node->input_count == 2 && is_constant(call->input_tensors[0]);
    const muc_tensor *out = muc_q_out(call);
    operands o;

    if (call->node->input_count != 2)
        return muc_ref_fail(call, "%u operands on the chip", call->node->input_count);
    take_operand(&o, call, swapped);
    if (is_constant(o.k_tensor) &&
        (o.k->elements < o.x->elements || o.x->columns == o.x->elements)) {
        o.factor_x = swapped ? sign : 1;
        o.sign = swapped ? 1 : sign;
        walk_operands(&o, add_numbers);
        return MUC_OK;
    }
    o.factor_x = (swapped ? sign : 1) * ratio(o.x_tensor, out);
    o.factor_k = (swapped ? 1 : sign) * ratio(o.k_tensor, out);
    walk_operands(&o, add_elements);
    return MUC_OK;
}

muc_status muc_kernel_chip_scale(const muc_ref_call *call)
{
    operands o;

    take_operand(&o, call, call->node->op == MUC_OP_MUL && is_constant(call->input_tensors[0]));
    walk_operands(&o, scale_numbers);
    return MUC_OK;
}

/* ---- one operand ---- */

muc_status muc_kernel_chip_change(const muc_ref_call *call)
{
    const muc_tensor *x = call->input_tensors[0];
    target to = target_of(call);
    float factor, slope;
    bool at_zero;

    if (!x->quantization)
        return muc_kernel_q_quantize(call); /* the master quantizes what it puts there */
    factor = ratio(x, muc_q_out(call));
    slope = muc_op_bounds(call->node->op, &at_zero)
                ? 0
                : (float)muc_node_real_or(call->node, MUC_KEY_ALPHA, 1);
    for (size_t i = 0; i < call->output->elements; i++) {
        float y = factor * without_zero(call->inputs[0], x, i);

        put(&to, i, y < 0 ? slope * y : y);
    }
    return MUC_OK;
}

muc_status muc_kernel_chip_concat(const muc_ref_call *call)
{
    size_t axis = (size_t)muc_node_integer(call->node, MUC_KEY_AXIS), first = 0;
    muc_ref_along to = muc_ref_along_of(call->output, axis);
    const muc_tensor *out = muc_q_out(call);
    target t = target_of(call);

    for (uint32_t k = 0; k < call->node->input_count; k++) {
        const muc_tensor *x = call->input_tensors[k];
        muc_ref_along from = muc_ref_along_of(call->inputs[k], axis);
        size_t run = from.extent * from.inner;
        bool same = muc_scale_of(x) == muc_scale_of(out) && muc_zero_of(x) == muc_zero_of(out);
        float factor = same ? 1 : ratio(x, out);

        for (size_t i = 0; i < call->inputs[k]->elements; i++)
            put(&t, i / run * to.extent * to.inner + first * to.inner + i % run,
                factor * without_zero(call->inputs[k], x, i));
        first += from.extent;
    }
    return MUC_OK;
}

/* ---- means of windows ---- */

/* along one direction: taps of the window at `at` that count in the divisor, padding included */
static size_t divisor_along(const muc_ref_window *w, uint32_t d, size_t at)
{
    size_t count = 0;

    for (size_t k = 0; k < w->kernel[d]; k++)
        count += at * w->stride[d] + k * w->dilation[d] < w->begin[d] + w->in[d] + w->end[d];
    return count;
}

static size_t divisor_of(const muc_ref_window *w, size_t position)
{
    size_t divisor = 1;

    for (uint32_t d = MUC_REF_SPATIAL; d-- > 0; position /= w->out[d])
        divisor *= divisor_along(w, d, position % w->out[d]);
    return divisor;
}

muc_status muc_kernel_chip_mean(const muc_ref_call *call)
{
    bool padded = muc_node_integer_or(call->node, MUC_KEY_COUNT_INCLUDE_PAD, 0) == 1;
    const muc_tensor *x = call->input_tensors[0], *out = muc_q_out(call);
    target to = target_of(call);
    muc_ref_window w;
    ptrdiff_t *taps;
    void *memory;

    MUC_TRY(muc_ref_window_of(call, call->inputs[0], NULL, call->output, &w));
    MUC_TRY(muc_ref_reserve(call, w.taps * sizeof(*taps), &memory));
    taps = memory;
    for (size_t i = 0; i < w.batch * w.out_positions * w.channels; i++) {
        size_t c = w.channels_last ? i % w.channels : i / w.out_positions % w.channels;
        size_t position = w.channels_last ? i / w.channels % w.out_positions : i % w.out_positions;
        size_t image = i / w.channels / w.out_positions, divisor = 0;
        int32_t sum = 0;

        muc_ref_window_taps(&w, position, taps);
        for (size_t t = 0; t < w.taps; t++) {
            size_t at = w.channels_last ? (image * w.positions + (size_t)taps[t]) * w.channels + c
                                        : (image * w.channels + c) * w.positions + (size_t)taps[t];

            if (taps[t] < 0)
                continue;
            sum += muc_q_get(call->inputs[0], at) - muc_zero_of(x);
            divisor++;
        }
        divisor = padded ? divisor_of(&w, position) : divisor;
        put(&to, i,
            (float)(1.0 / (double)divisor * (double)muc_scale_of(x) / (double)muc_scale_of(out)) *
                (float)sum);
    }
    return MUC_OK;
}
