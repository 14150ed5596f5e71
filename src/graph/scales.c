/* scales.c - computes the multipliers and tables of quantized operators from the scales of their
 * tensors. */
#include "graph/scales.h"

#include <math.h>

#include "base/real.h"
#include "graph/formula.h"

enum { DIV_SHIFT = 20 }; /* of quotients of bytes, in elementwise.def */

/* how the factors of integers' formulas come from the scales, in MUC_INTEGERS of elementwise.def */
typedef enum factors {
    PRODUCT,  /* of both inputs over the output's */
    SUM,      /* both inputs in common units */
    EACH,     /* each input's over the output's */
    QUOTIENT, /* of both inputs, in units of 2^-DIV_SHIFT */
    SLOPED,   /* a product, and a ratio above 0 */
    LEAKY,    /* the same of a constant slope */
    RATIO,    /* of one input's scale to the output's, in binary64 */
} factors;

static factors factors_of(muc_op op)
{
    static const uint8_t table[MUC_OP_COUNT] = {
#define MUC_OP(...)
#define MUC_INTEGERS(op, factors, formula) [MUC_OP_##op] = factors,
#include "graph/ops.def"
    };

    return (factors)table[op];
}

bool muc_scale_is_quotient(muc_op op)
{
    return factors_of(op) == QUOTIENT;
}

static void bounds_of(muc_dtype dtype, int32_t *least, int32_t *most)
{
    uint32_t bits = 8 * muc_dtype_get(dtype)->block_bytes;
    bool is_signed = muc_dtype_is_signed(dtype);

    *least = is_signed ? (int32_t)(-(INT64_C(1) << (bits - 1))) : 0;
    *most = (int32_t)((INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1);
}

void muc_scale_clamp(const muc_node *node, const muc_tensor *out, int32_t *least, int32_t *most)
{
    int64_t low, high;
    int32_t least_of_type;

    bounds_of(out->dtype, least, most);
    least_of_type = *least;
    low = muc_node_integer_or(node, MUC_KEY_CLAMP_MIN, *least);
    high = muc_node_integer_or(node, MUC_KEY_CLAMP_MAX, *most);
    *least = low > *least ? (int32_t)(low < *most ? low : *most) : *least;
    *most = high < *most ? (int32_t)(high > least_of_type ? high : least_of_type) : *most;
    *least = *least < *most ? *least : *most;
}

int32_t muc_scale_quantize(const muc_tensor *tensor, float value)
{
    int32_t least, most;
    float q = roundf(value / muc_scale_of(tensor));

    bounds_of(tensor->dtype, &least, &most);
    if (q != q) /* no number is nothing */
        return muc_zero_of(tensor);
    if (!(q > -2e9f && q < 2e9f))
        return q > 0 ? most : least;
    if ((int64_t)q + muc_zero_of(tensor) > most)
        return most;
    return (int64_t)q + muc_zero_of(tensor) < least ? least : (int32_t)q + muc_zero_of(tensor);
}

static int32_t bound_of(const muc_tensor *out, const muc_tensor *bound)
{
    int64_t q = muc_dtype_integer(bound->dtype, bound->data) - muc_zero_of(bound);

    return muc_scale_quantize(out, muc_scale_of(bound) * (float)q);
}

void muc_scale_bounds(muc_op op, const muc_tensor *out, const muc_tensor *low,
                      const muc_tensor *high, int32_t *least, int32_t *most)
{
    int32_t from, to = high ? bound_of(out, high) : *most;
    bool at_zero;

    (void)muc_op_bounds(op, &at_zero);
    from = at_zero ? muc_zero_of(out) : low ? bound_of(out, low) : *least;
    *least = from > *least ? from : *least;
    *most = to < *most ? to : *most;
}

void muc_scale_element_bounds(const muc_node *node, const muc_tensor *out, const muc_tensor *low,
                              const muc_tensor *high, int32_t *least, int32_t *most)
{
    bool at_zero;

    muc_scale_clamp(node, out, least, most);
    if (muc_op_bounds(node->op, &at_zero))
        muc_scale_bounds(node->op, out, low, high, least, most);
    *least = *least < *most ? *least : *most;
}

bool muc_scale_is_same(const muc_quantization *a, const muc_quantization *b)
{
    return a && b && a->count == 1 && b->count == 1 && a->scales[0] == b->scales[0] &&
           a->zero_points[0] == b->zero_points[0];
}

/* TFLite's kernels for uint8 and its fully connected ones round the product of scales to float
 * where one scale serves all channels */
muc_multiplier muc_scale_product(const muc_node *node, const muc_tensor *x,
                                 const muc_tensor *weights, const muc_tensor *out, uint32_t channel)
{
    const muc_quantization *w = weights->quantization;
    float scale = w->scales[w->count > 1 ? channel : 0];
    double product = (double)muc_scale_of(x) * (double)scale;
    muc_product_kind kind = muc_op_product(node->op)->kind;
    bool single = x->dtype == MUC_U8 || kind == MUC_PRODUCT_ROWS || kind == MUC_PRODUCT_COLUMNS ||
                  muc_node_integer_or(node, MUC_KEY_SINGLE, 0);

    if (w->count == 1 && single)
        product = (double)(muc_scale_of(x) * scale);
    return muc_multiplier_of(product / (double)muc_scale_of(out));
}

static muc_multiplier exact_ratio(const muc_tensor *x, const muc_tensor *out)
{
    return muc_multiplier_of((double)muc_scale_of(x) / (double)muc_scale_of(out));
}

muc_multiplier muc_scale_reduction(muc_op op, const muc_tensor *x, const muc_tensor *out,
                                   uint64_t count)
{
    muc_multiplier change = exact_ratio(x, out);
    int shift = 0;

    if (!muc_op_has(op, MUC_OP_AVERAGES))
        return change;
    while (count >> shift > 1 && shift < 32)
        shift++;
    shift = shift < 31 + change.shift ? shift : 31 + change.shift;
    change.mantissa = (int32_t)(((int64_t)change.mantissa << shift) / (int64_t)count);
    change.shift -= shift;
    return change;
}

/* TFLite's additions: both inputs in units of twice the greater scale over 2^left_shift */
static muc_integer_scales scale_sum(float a, float b, const muc_tensor *out)
{
    double twice = 2 * (double)(a > b ? a : b);
    muc_integer_scales s = { .has_operands = true };

    s.left_shift = out->dtype == MUC_I16 ? 15 : 20;
    s.operands[0] = muc_multiplier_of((double)a / twice);
    s.operands[1] = muc_multiplier_of((double)b / twice);
    s.factor = muc_multiplier_of(
        twice / ((double)(INT64_C(1) << s.left_shift) * (double)muc_scale_of(out)));
    return s;
}

muc_integer_scales muc_scale_integers(const muc_node *node, const muc_tensor *a,
                                      const muc_tensor *b, const muc_tensor *out)
{
    float of_a = muc_scale_of(a), of_b = b ? muc_scale_of(b) : 1, of_out = muc_scale_of(out);
    double ratio = (double)(of_a / of_out), factor = (double)(of_a * of_b / of_out);
    muc_integer_scales s = { 0 };

    switch (factors_of(node->op)) {
    case SUM:
        return scale_sum(of_a, of_b, out);
    case EACH:
        s.has_operands = true;
        s.operands[0] = muc_multiplier_of(ratio);
        s.operands[1] = muc_multiplier_of((double)(of_b / of_out));
        return s;
    case QUOTIENT:
        factor = (double)of_a / ((double)of_b * (double)of_out);
        factor = fmin(ldexp(factor, -DIV_SHIFT), 1 << 30);
        break;
    case SLOPED:
        s.above = muc_multiplier_of(ratio);
        break;
    case LEAKY:
        s.above = muc_multiplier_of(ratio);
        factor = (double)(of_a * (float)muc_node_real(node, MUC_KEY_ALPHA) / of_out);
        break;
    case RATIO:
        factor = (double)of_a / (double)of_out;
        break;
    case PRODUCT: /* of one input a ratio, too */
        break;
    }
    s.factor = muc_multiplier_of(factor);
    return s;
}

static int32_t operand(const muc_integer_scales *s, unsigned i, int32_t q)
{
    if (!s->has_operands)
        return q;
    return muc_multiply((int32_t)((uint32_t)q << s->left_shift), s->operands[i]);
}

#define MUC_OP(...)
#define SCALE(x, by) muc_multiply(x, s->by)
#define MUC_INTEGERS(op, factors, formula) \
    static int32_t of_##op(const muc_integer_scales *s, int32_t p, int32_t q) \
    { \
        (void)s, (void)q; \
        return formula; \
    }
#include "graph/ops.def"

typedef int32_t integer_formula(const muc_integer_scales *s, int32_t p, int32_t q);

static integer_formula *integer_formula_of(muc_op op)
{
    static integer_formula *const table[MUC_OP_COUNT] = {
#define MUC_OP(...)
#define MUC_INTEGERS(op, factors, formula) [MUC_OP_##op] = of_##op,
#include "graph/ops.def"
    };

    return table[op];
}

bool muc_scale_has_formula(muc_op op)
{
    return integer_formula_of(op) != NULL;
}

int32_t muc_scale_elements(muc_op op, const muc_integer_scales *s, int32_t p, int32_t q)
{
    return integer_formula_of(op)(s, operand(s, 0, p), operand(s, 1, q));
}

muc_softmax_scales muc_scale_softmax(const muc_tensor *x, double beta)
{
    const int integer_bits = 5, fraction_bits = 31 - integer_bits;
    double factor = beta * (double)muc_scale_of(x) * (1 << fraction_bits);
    muc_softmax_scales scales;
    double radius;

    scales.difference = muc_multiplier_of(fmin(fmax(factor, 0.5), 2147483647.0)); /* shift 0..31 */
    radius = floor(ldexp((1 << integer_bits) - 1, fraction_bits - scales.difference.shift));
    scales.least = radius < 2147483647.0 ? -(int32_t)radius : -INT32_MAX;
    return scales;
}

/* ---- hard_swish ---- */

/* In 16 bits: mantissas of Q15 and powers of two. */
typedef struct hard_swish_scales {
    int16_t out, relu;
    int32_t out_shift, relu_shift;
} hard_swish_scales;

/* a multiplier's mantissa in 16 bits */
static int16_t short_mantissa(muc_multiplier m)
{
    return m.mantissa >= INT32_MAX - (1 << 15) ? INT16_MAX
                                               : (int16_t)((m.mantissa + (1 << 15)) >> 16);
}

/* false where 16 bits do not hold what is shifted */
static bool scale_hard_swish(const muc_tensor *x, const muc_tensor *out, hard_swish_scales *s)
{
    float fine = 1.0f / 128.0f * muc_scale_of(x), relu = 3.0f / 32768.0f;
    muc_multiplier to_out = muc_multiplier_of((double)(fine / muc_scale_of(out)));
    muc_multiplier to_relu = muc_multiplier_of((double)(fine / relu));

    *s = (hard_swish_scales){ short_mantissa(to_out), short_mantissa(to_relu), to_out.shift,
                              to_relu.shift };
    return s->out_shift <= 0 && s->out_shift >= -31 && s->relu_shift <= 31 && s->relu_shift >= -31;
}

static int16_t saturate16(int64_t x)
{
    return x > INT16_MAX ? INT16_MAX : x < INT16_MIN ? INT16_MIN : (int16_t)x;
}

/* a * b / 2^15, halves away from zero */
static int16_t high_mul16(int16_t a, int16_t b)
{
    int32_t product = a * b, nudge = product >= 0 ? 1 << 14 : 1 - (1 << 14);

    return saturate16((product + nudge) / (1 << 15));
}

/* of an input without its zero point: the output without its own */
static int32_t hard_swish(int32_t q, const hard_swish_scales *s)
{
    int16_t fine = (int16_t)(q * (1 << 7)), scaled = high_mul16(fine, s->out), relu = fine, out;

    if (s->relu_shift > 0)
        relu = saturate16(relu * (INT64_C(1) << (s->relu_shift - 1)));
    relu = high_mul16(relu, s->relu);
    if (s->relu_shift > 0)
        relu = saturate16((int64_t)relu * 2);
    if (s->relu_shift < 0)
        relu = (int16_t)muc_fixed_divide_pot(relu, -s->relu_shift);
    relu = (int16_t)((relu + (1 << 15)) >> 1); /* -1..1 to 0..1 */
    out = saturate16(relu * scaled / (1 << 15));
    return muc_fixed_divide_pot(out, -s->out_shift);
}

/* ---- logarithms ---- */

bool muc_scale_log_softmax(const muc_tensor *x, uint64_t columns, const muc_tensor *out,
                           muc_log_softmax_scales *scales)
{
    const double ln_2 = 0.6931471805599453, one = 1 << 16;
    double step = one * (double)muc_scale_of(x) / (double)muc_scale_of(out);
    double log_step = one * ln_2 / (double)muc_scale_of(out);

    if (columns == 0 || columns > MUC_LOG_SOFTMAX_COLUMNS ||
        !(step < one * MUC_LOG_SOFTMAX_STEPS) || !(log_step < 1 << 25))
        return false;
    for (int k = 0; k < 256; k++) {
        double below = -k * (double)muc_scale_of(x);

        scales->exps[k] =
            below < -30 ? 0 : (uint32_t)round(ldexp(muc_exp(below), MUC_LOG_SOFTMAX_ONE));
    }
    scales->step = (int32_t)round(step);
    scales->log_step = (int32_t)round(log_step);
    return true;
}

/* ---- norms ---- */

static double element(const muc_tensor *tensor, uint64_t i)
{
    float value;

    muc_dtype_to_f32(tensor->dtype, tensor->data,
                     tensor->bytes == muc_dtype_get(tensor->dtype)->block_bytes ? 0 : i, 1, &value);
    return (double)value;
}

/* real numbers, n elements or one */
static bool is_row(const muc_tensor *tensor, uint64_t n)
{
    const muc_dtype_info *info = muc_dtype_get(tensor->dtype);

    return info->kind == MUC_DTYPE_FLOAT && info->block_elements == 1 && tensor->data &&
           (tensor->bytes == info->block_bytes || tensor->bytes == n * info->block_bytes);
}

static uint64_t product_of(const uint64_t *dims, uint32_t first, uint32_t end)
{
    uint64_t product = 1;

    for (uint32_t i = first; i < end; i++)
        if (!muc_mul_u64(product, dims[i], &product) || product > UINT32_MAX)
            product = UINT32_MAX;
    return product;
}

static bool is_of_rows(const muc_node *norm)
{
    bool required;

    return muc_op_takes(norm->op, MUC_KEY_AXIS, &required);
}

uint32_t muc_norm_axis(const muc_node *node, uint32_t rank)
{
    return is_of_rows(node) ? (uint32_t)muc_node_integer_or(node, MUC_KEY_AXIS, (int64_t)rank - 1)
                            : 1;
}

muc_norm_rows muc_norm_rows_of(const muc_node *node, uint32_t rank, const uint64_t *dims)
{
    uint64_t channels, groups, places, width;

    if (is_of_rows(node)) {
        width = product_of(dims, muc_norm_axis(node, rank), rank);
        return (muc_norm_rows){ 1, 1, width, width, width, false };
    }
    if (muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) == 1) {
        channels = dims[rank - 1];
        places = product_of(dims, 1, rank - 1);
        groups = (uint64_t)muc_node_integer_or(node, MUC_KEY_GROUPS, (int64_t)channels);
        width = groups ? channels / groups : 0;
        return (muc_norm_rows){ groups, places, width, channels, width, false };
    }
    channels = dims[1];
    places = product_of(dims, 2, rank);
    groups = (uint64_t)muc_node_integer_or(node, MUC_KEY_GROUPS, (int64_t)channels);
    width = groups ? channels / groups : 0;
    return (muc_norm_rows){ groups, width, places, places, width * places, true };
}

bool muc_scale_norm(const muc_tensor *x, const muc_tensor *scale, const muc_tensor *bias,
                    double epsilon, const muc_norm_rows *rows, const muc_tensor *out,
                    int32_t *gains, int32_t *biases, muc_norm_scales *scales)
{
    const double most_epsilon = 0x1p56, most_bias = 0x1p28;
    const uint64_t n = muc_norm_columns(rows), count = muc_norm_gains(rows);
    double fine = epsilon / ((double)muc_scale_of(x) * (double)muc_scale_of(x)), most = 0;
    int exponent;

    if (n == 0 || n > MUC_NORM_COLUMNS || !is_row(scale, count) || (bias && !is_row(bias, count)))
        return false;
    fine = 256 * fine * (double)n * (double)n;
    for (uint64_t i = 0; i < count; i++)
        most = fmax(most, fabs(element(scale, i)) / (double)muc_scale_of(out));
    if (!(most < 0x1p20 && fine < most_epsilon))
        return false;
    (void)frexp(most > 0x1p-20 ? most : 0x1p-20, &exponent); /* below 2^exponent */
    *scales = (muc_norm_scales){ .columns = (int32_t)n, .epsilon = (int64_t)round(fine) };
    while (255 * n << (scales->head + 1) < UINT64_C(1) << 31)
        scales->head++;
    scales->shift = 30 - exponent + scales->head - 30;
    for (uint64_t i = 0; i < count; i++) {
        double b = bias ? element(bias, i) / (double)muc_scale_of(out) : 0;

        b = round(256 * (b + muc_zero_of(out))) + 128;
        if (!(fabs(b) < most_bias))
            return false;
        if (!gains)
            continue;
        gains[i] =
            (int32_t)round(ldexp(element(scale, i) / (double)muc_scale_of(out), 30 - exponent));
        biases[i] = (int32_t)b;
    }
    return true;
}

/* ---- tables ---- */

/* an operand that is a constant of one element, less its zero point; 0 if there is none */
static int32_t constant_operand(const muc_graph *graph, const muc_node *node)
{
    const muc_tensor *b;

    if (muc_integer_operands(node) < 2)
        return 0;
    b = &graph->tensors[node->inputs[1]];
    return (int32_t)muc_dtype_integer(b->dtype, b->data) - muc_zero_of(b);
}

/* the integer without the output's zero point, where integers of their own decide it */
static bool fixed_function(const muc_graph *graph, const muc_node *node, const muc_tensor *x,
                           const muc_tensor *out, int32_t q, int32_t *y)
{
    const bool pair = muc_integer_operands(node) > 1;
    hard_swish_scales s;

    if (muc_scale_has_formula(node->op)) {
        muc_integer_scales scales =
            muc_scale_integers(node, x, pair ? &graph->tensors[node->inputs[1]] : NULL, out);

        *y = muc_scale_elements(node->op, &scales, q, constant_operand(graph, node));
        return true;
    }
    if (node->op != MUC_OP_HARD_SWISH || !scale_hard_swish(x, out, &s))
        return false;
    *y = hard_swish(q, &s);
    return true;
}

static const muc_tensor *input_at(const muc_graph *graph, const muc_node *node, uint32_t i)
{
    return i < node->input_count && node->inputs[i] != MUC_NO_ID ? &graph->tensors[node->inputs[i]]
                                                                 : NULL;
}

muc_status muc_scale_table(muc_context *ctx, const muc_graph *graph, const muc_node *node,
                           int8_t table[256])
{
    const muc_tensor *x = &graph->tensors[node->inputs[0]];
    const muc_tensor *out = &graph->tensors[node->outputs[0]];
    bool is_byte = muc_dtype_get(x->dtype)->block_bytes == 1 && out->dtype == x->dtype;
    float inverse = 1.0f / muc_scale_of(out);
    bool is_real = muc_op_has(node->op, MUC_OP_BY_TABLE) && node->op != MUC_OP_HARD_SWISH;
    muc_formula_real *function = is_real ? muc_formula_real_of(muc_formula_of(node)) : NULL;
    const muc_formula_values values = muc_formula_values_of(node);

    for (int i = 0; i < 256; i++) {
        int32_t q = (x->dtype == MUC_I8 ? i - 128 : i) - muc_zero_of(x), least, most, whole;
        float value = muc_scale_of(x) * (float)q, scaled;

        muc_scale_element_bounds(node, out, input_at(graph, node, 1), input_at(graph, node, 2),
                                 &least, &most);
        if (is_byte && fixed_function(graph, node, x, out, q, &whole))
            scaled =
                (float)whole + (float)muc_zero_of(out); /* exact below 2^24, and clamped beyond */
        else if (is_byte && function)
            scaled = roundf((float)function((double)value, 0, &values) * inverse) +
                     (float)muc_zero_of(out);
        else
            return muc_fail_on(muc_node_subject(ctx, graph, node), MUC_UNSUPPORTED,
                               "no table of %s for %s of these scales", muc_op_get(node->op)->name,
                               muc_dtype_get(x->dtype)->name);
        table[i] = (int8_t)(uint8_t)(int32_t)(scaled < (float)least  ? (float)least
                                              : scaled > (float)most ? (float)most
                                                                     : scaled);
    }
    return MUC_OK;
}
