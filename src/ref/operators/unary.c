/* unary.c - operators of one input, element by element. Numbers of f32 are computed as generated
 * code does, by the runtime's mur_real.h; f64 by base/real.h, since libm's last bit is nobody's. */
#include <math.h>
#include <string.h>

#include "base/real.h"
#include "mur_real_wide.h"
#include "ref/walk.h"

static const double half_pi = 1.57079632679489661923, two_pi = 6.28318530717958647692;

double muc_ref_log(double x)
{
    if (x != x || x == INFINITY)
        return x;
    return x > 0 ? muc_log(x) : x == 0 ? -INFINITY : NAN;
}

static double product_power(double x, unsigned n)
{
    double result = 1;

    for (; n > 0; n >>= 1, x *= x)
        if (n & 1)
            result *= x;
    return result;
}

double muc_ref_pow(double x, double y)
{
    bool whole = y == floor(y), odd = whole && fabs(y) < 9e15 && fmod(y, 2) != 0;
    double size = fabs(x), result;

    if (y == 0 || x == 1)
        return 1;
    if (x != x || y != y)
        return NAN;
    if (whole && fabs(y) <= 64) {
        result = product_power(x, (unsigned)fabs(y));
        return y < 0 ? 1 / result : result;
    }
    if (isinf(y) && size == 1)
        return 1;
    if (x < 0 && !whole)
        return NAN;
    if (size == 0 || isinf(size) || isinf(y))
        result = (size > 1) == (y > 0) ? INFINITY : 0;
    else
        result = muc_pow(size, y);
    return x < 0 && odd ? -result : result;
}

double muc_ref_sin(double x)
{
    return isinf(x) || x != x ? NAN : muc_sin(fabs(x) < 1 << 30 ? x : fmod(x, two_pi));
}

double muc_ref_cos(double x)
{
    return isinf(x) || x != x ? NAN : muc_cos(fabs(x) < 1 << 30 ? x : fmod(x, two_pi));
}

/* f(x) with the node's parameters: ALPHA or BIAS, then BETA, GAMMA or LAMBDA */
typedef double real_function(double x, const double *p);

#define FUNCTION(name, value) \
    static double name(double x, const double *p) \
    { \
        (void)p; \
        return value; \
    }

static double sigmoid_of(double x)
{
    double e = muc_exp(-fabs(x));

    return x != x ? x : x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

static double softplus_of(double x)
{
    return x != x ? x : (x > 0 ? x : 0) + muc_log1p(muc_exp(-fabs(x)));
}

static double asinh_of(double x)
{
    double a = fabs(x), value;

    if (isinf(x) || x != x)
        return x;
    value = a > 1e8 ? muc_log(a) + 0.69314718055994530942
                    : muc_log1p(a + a * a / (1 + sqrt(a * a + 1)));
    return x < 0 ? -value : value;
}

static double asin_of(double x)
{
    double rest = (1 - x) * (1 + x);

    return rest < 0 || x != x ? NAN
           : rest == 0        ? (x > 0 ? half_pi : -half_pi)
                              : muc_atan(x / sqrt(rest));
}

static double acos_of(double x)
{
    /* 2 atan of the half angle's tangent keeps its digits near 1 */
    return fabs(x) > 1 || x != x ? NAN
           : x == -1             ? 2 * half_pi
                                 : 2 * muc_atan(sqrt((1 - x) / (1 + x)));
}

static double atanh_of(double x)
{
    if (fabs(x) >= 1 || x != x)
        return fabs(x) == 1 ? x * INFINITY : NAN;
    return 0.5 * (muc_log1p(x) - muc_log1p(-x));
}

static double acosh_of(double x)
{
    if (x < 1 || x != x)
        return NAN;
    return x > 1e8 ? muc_ref_log(x) + 0.69314718055994530942
                   : muc_log1p((x - 1) + sqrt((x - 1) * (x + 1)));
}

static double gelu_tanh_of(double x)
{
    return 0.5 * x * (1 + muc_tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

FUNCTION(silu, x *sigmoid_of(p[0] * x))
FUNCTION(leaky_relu, x < 0 ? p[0] * x : x)
FUNCTION(thresholded_relu, x > p[0] ? x : 0)
FUNCTION(elu, x < 0 ? p[0] * muc_expm1(x) : x)
FUNCTION(selu, p[1] * (x > 0 || x != x ? x : p[0] * muc_expm1(x)))
FUNCTION(celu, x > 0 || x != x ? x : p[0] * muc_expm1(x / p[0]))
FUNCTION(sigmoid, sigmoid_of(x))
FUNCTION(hard_sigmoid, x != x ? x : fmax(0, fmin(1, p[0] * x + p[1])))
FUNCTION(hard_swish, x *fmax(0, fmin(1, x / 6 + 0.5)))
FUNCTION(hyperbolic_tangent, muc_tanh(x))
FUNCTION(softplus, softplus_of(x))
FUNCTION(softsign, x / (1 + fabs(x)))
FUNCTION(gelu, 0.5 * x * (1 + muc_erf(x * 0.70710678118654752440)))
FUNCTION(gelu_tanh, gelu_tanh_of(x))
FUNCTION(mish, x *muc_tanh(softplus_of(x)))
FUNCTION(shrink, x<-p[1] ? x + p[0] : x> p[1] ? x - p[0] : 0)
FUNCTION(absolute, fabs(x))
FUNCTION(negative, -x)
FUNCTION(sign, x > 0 ? 1 : x < 0 ? -1 : x)
FUNCTION(square_root, sqrt(x))
FUNCTION(reciprocal, 1 / x)
FUNCTION(exponential, muc_exp(x))
FUNCTION(logarithm, muc_ref_log(x))
FUNCTION(error_function, muc_erf(x))
FUNCTION(round_down, floor(x))
FUNCTION(round_up, ceil(x))
FUNCTION(round_even, nearbyint(x))
FUNCTION(sine, muc_ref_sin(x))
FUNCTION(cosine, muc_ref_cos(x))
FUNCTION(tangent, muc_ref_sin(x) / muc_ref_cos(x))
FUNCTION(arc_sine, asin_of(x))
FUNCTION(arc_cosine, acos_of(x))
FUNCTION(arc_tangent, muc_atan(x))
FUNCTION(hyperbolic_sine, (muc_expm1(x) - muc_expm1(-x)) / 2)
FUNCTION(hyperbolic_cosine, (muc_exp(x) + muc_exp(-x)) / 2)
FUNCTION(area_sine, asinh_of(x))
FUNCTION(area_cosine, acosh_of(x))
FUNCTION(area_tangent, atanh_of(x))

static real_function *function_of(const muc_node *node)
{
    static real_function *const functions[MUC_OP_COUNT] = {
        [MUC_OP_SILU] = silu,
        [MUC_OP_LEAKY_RELU] = leaky_relu,
        [MUC_OP_THRESHOLDED_RELU] = thresholded_relu,
        [MUC_OP_ELU] = elu,
        [MUC_OP_SELU] = selu,
        [MUC_OP_CELU] = celu,
        [MUC_OP_SIGMOID] = sigmoid,
        [MUC_OP_HARD_SIGMOID] = hard_sigmoid,
        [MUC_OP_HARD_SWISH] = hard_swish,
        [MUC_OP_TANH] = hyperbolic_tangent,
        [MUC_OP_SOFTPLUS] = softplus,
        [MUC_OP_SOFTSIGN] = softsign,
        [MUC_OP_GELU] = gelu,
        [MUC_OP_MISH] = mish,
        [MUC_OP_SHRINK] = shrink,
        [MUC_OP_ABS] = absolute,
        [MUC_OP_NEG] = negative,
        [MUC_OP_SIGN] = sign,
        [MUC_OP_SQRT] = square_root,
        [MUC_OP_RECIPROCAL] = reciprocal,
        [MUC_OP_EXP] = exponential,
        [MUC_OP_LOG] = logarithm,
        [MUC_OP_ERF] = error_function,
        [MUC_OP_FLOOR] = round_down,
        [MUC_OP_CEIL] = round_up,
        [MUC_OP_ROUND] = round_even,
        [MUC_OP_SIN] = sine,
        [MUC_OP_COS] = cosine,
        [MUC_OP_TAN] = tangent,
        [MUC_OP_ASIN] = arc_sine,
        [MUC_OP_ACOS] = arc_cosine,
        [MUC_OP_ATAN] = arc_tangent,
        [MUC_OP_SINH] = hyperbolic_sine,
        [MUC_OP_COSH] = hyperbolic_cosine,
        [MUC_OP_ASINH] = area_sine,
        [MUC_OP_ACOSH] = area_cosine,
        [MUC_OP_ATANH] = area_tangent,
    };

    if (node->op == MUC_OP_GELU &&
        muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_NONE) == MUC_WORD_TANH)
        return gelu_tanh;
    return functions[node->op];
}

typedef float single_function(float x, const float *p);

/* for f32: SINGLE(operator, value of x and the parameters p) */
#define SINGLES(SINGLE) \
    SINGLE(LEAKY_RELU, x < 0 ? p[0] * x : x) \
    SINGLE(THRESHOLDED_RELU, x > p[0] ? x : 0) \
    SINGLE(ELU, mur_real_elu(x, p[0])) \
    SINGLE(SELU, mur_real_selu(x, p[0], p[1])) \
    SINGLE(CELU, mur_real_celu(x, p[0])) \
    SINGLE(SIGMOID, mur_real_sigmoid(x)) \
    SINGLE(HARD_SIGMOID, mur_real_hard_sigmoid(x, p[0], p[1])) \
    SINGLE(HARD_SWISH, mur_real_hard_swish(x)) \
    SINGLE(TANH, mur_real_tanh(x)) \
    SINGLE(SOFTPLUS, mur_real_softplus(x)) \
    SINGLE(SOFTSIGN, mur_real_softsign(x)) \
    SINGLE(GELU, mur_real_gelu(x)) \
    SINGLE(MISH, mur_real_mish(x)) \
    SINGLE(SHRINK, mur_real_shrink(x, p[0], p[1])) \
    SINGLE(ABS, mur_abs(x)) \
    SINGLE(NEG, -x) \
    SINGLE(SIGN, mur_real_sign(x)) \
    SINGLE(SQRT, mur_sqrt(x)) \
    SINGLE(RECIPROCAL, 1 / x) \
    SINGLE(EXP, mur_real_exp_nearest(x)) \
    SINGLE(LOG, mur_real_log(x)) \
    SINGLE(ERF, mur_real_erf(x)) \
    SINGLE(FLOOR, mur_floor(x)) \
    SINGLE(CEIL, mur_ceil(x)) \
    SINGLE(ROUND, mur_round_even(x)) \
    SINGLE(SIN, mur_real_sin(x)) \
    SINGLE(COS, mur_real_cos(x)) \
    SINGLE(TAN, mur_real_tan(x)) \
    SINGLE(ASIN, mur_real_asin(x)) \
    SINGLE(ACOS, mur_real_acos(x)) \
    SINGLE(ATAN, mur_real_atan(x)) \
    SINGLE(SINH, mur_real_sinh(x)) \
    SINGLE(COSH, mur_real_cosh(x)) \
    SINGLE(ASINH, mur_real_asinh(x)) \
    SINGLE(ACOSH, mur_real_acosh(x)) \
    SINGLE(ATANH, mur_real_atanh(x))

#define SINGLE(op, value) \
    static float single_##op(float x, const float *p) \
    { \
        (void)p; \
        return value; \
    }
SINGLES(SINGLE)
#undef SINGLE

static float single_gelu_tanh(float x, const float *p)
{
    (void)p;
    return mur_real_gelu_tanh(x);
}

#define SINGLE(op, value) [MUC_OP_##op] = single_##op,
static single_function *single_of(const muc_node *node)
{
    static single_function *const functions[MUC_OP_COUNT] = { SINGLES(SINGLE) };

    if (node->op == MUC_OP_GELU &&
        muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_NONE) == MUC_WORD_TANH)
        return single_gelu_tanh;
    return functions[node->op];
}
#undef SINGLE

/* A node at work on a range of its elements. */
typedef struct unary {
    const muc_ref_call *call;
    real_function *function;
    single_function *single;
    double parameters[2];
} unary;

static double first_of(const muc_node *node, const muc_attribute_key *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (muc_node_attribute(node, keys[i]))
            return muc_node_real(node, keys[i]);
    return 1;
}

static void real_range(void *arg, size_t part, size_t first, size_t end)
{
    const unary *u = arg;
    const muc_ref_value *x = u->call->inputs[0];

    (void)part;
    if (x->dtype == MUC_F32) {
        const float p[2] = { (float)u->parameters[0], (float)u->parameters[1] };
        const float *from = x->read;
        float *to = u->call->output->data;

        for (size_t i = first; i < end; i++)
            to[i] = u->single(from[i], p);
    } else {
        const double *from = x->read;
        double *to = u->call->output->data;

        for (size_t i = first; i < end; i++)
            to[i] = u->function(from[i], u->parameters);
    }
}

/* as transformers have it: the series of muc_ref_exp */
static void silu_f32(const muc_ref_call *call)
{
    const float *x = call->inputs[0]->read;
    float *y = call->output->data, alpha = (float)muc_node_real_or(call->node, MUC_KEY_ALPHA, 1);
    size_t count = call->output->elements;

    for (size_t i = 0; i < count; i++)
        y[i] = -(alpha * x[i]);
    muc_ref_exp(y, count);
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] / (1 + y[i]);
}

/* negation of the least integer wraps */
#define NEGATIVE(type, x) ((type)(0 - (uint64_t)(x)))

#define INTEGERS(argument, id, type) \
    case MUC_##id: { \
        const type *x = from; \
        type *y = to; \
        for (size_t i = 0; i < n; i++) { \
            if (op == MUC_OP_NEG || (op == MUC_OP_ABS && !(x[i] > 0))) \
                y[i] = NEGATIVE(type, x[i]); \
            else if (op == MUC_OP_SIGN) \
                y[i] = (type)(x[i] > 0 ? 1 : x[i] == 0 ? 0 : -1); \
            else if (op == MUC_OP_SHRINK) \
                y[i] = (type)shrink((double)x[i], p); \
            else if (op == MUC_OP_BITWISE_NOT) \
                y[i] = (type)~x[i]; \
            else \
                y[i] = x[i]; \
        } \
        break; \
    }

static void integers(muc_op op, muc_dtype dtype, const double *p, const void *from, void *to,
                     size_t n)
{
    switch ((unsigned)dtype) {
        MUC_REF_INTEGERS(INTEGERS, )
    }
}

muc_status muc_kernel_unary(const muc_ref_call *call)
{
    static const muc_attribute_key first[] = { MUC_KEY_ALPHA, MUC_KEY_BIAS };
    static const muc_attribute_key second[] = { MUC_KEY_BETA, MUC_KEY_GAMMA, MUC_KEY_LAMBDA };
    const muc_ref_value *x = call->inputs[0];
    unary u = { call,
                function_of(call->node),
                single_of(call->node),
                { first_of(call->node, first, MUC_COUNT(first)),
                  first_of(call->node, second, MUC_COUNT(second)) } };

    if (muc_dtype_get(x->dtype)->kind == MUC_DTYPE_INTEGER) {
        integers(call->node->op, x->dtype, u.parameters, x->read, call->output->data, x->elements);
        return MUC_OK;
    }
    if (call->node->op == MUC_OP_SILU && x->dtype == MUC_F32) {
        silu_f32(call);
        return MUC_OK;
    }
    return muc_ref_split(call->ctx, x->elements, x->elements * 64, real_range, &u);
}

#define CLAMP(argument, id, type) \
    case MUC_##id: { \
        const type *from = x->read, *least = low ? low->read : NULL; \
        const type *greatest = high ? high->read : NULL; \
        type *to = call->output->data; \
        for (size_t i = 0; i < x->elements; i++) { \
            type value = least && from[i] < *least ? *least : from[i]; \
            to[i] = greatest && value > *greatest ? *greatest : value; \
        } \
        break; \
    }

static void clamp(const muc_ref_call *call, const muc_ref_value *low, const muc_ref_value *high)
{
    const muc_ref_value *x = call->inputs[0];

    switch ((unsigned)x->dtype) {
        MUC_REF_NUMBERS(CLAMP, )
    }
}

muc_status muc_kernel_clip(const muc_ref_call *call)
{
    clamp(call, muc_ref_input_of(call, 1), muc_ref_input_of(call, 2));
    return MUC_OK;
}

#define RELU(argument, id, type) \
    case MUC_##id: { \
        const type *x = from; \
        type *y = to; \
        for (size_t i = 0; i < n; i++) \
            y[i] = x[i] > 0 || x[i] != x[i] ? x[i] : 0; \
        break; \
    }

static void relu(muc_dtype dtype, const void *from, void *to, size_t n)
{
    switch ((unsigned)dtype) {
        MUC_REF_NUMBERS(RELU, )
    }
}

muc_status muc_kernel_relu(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];

    relu(x->dtype, x->read, call->output->data, x->elements);
    return MUC_OK;
}

muc_status muc_kernel_not(const muc_ref_call *call)
{
    const uint8_t *x = call->inputs[0]->read;
    uint8_t *y = call->output->data;

    for (size_t i = 0; i < call->output->elements; i++)
        y[i] = !x[i];
    return MUC_OK;
}

muc_status muc_kernel_test(const muc_ref_call *call)
{
    bool negative = muc_node_integer_or(call->node, MUC_KEY_DETECT_NEGATIVE, 1) == 1;
    bool positive = muc_node_integer_or(call->node, MUC_KEY_DETECT_POSITIVE, 1) == 1;
    uint8_t *y = call->output->data;

    for (size_t i = 0; i < call->output->elements; i++) {
        double x = muc_ref_real(call->inputs[0], i);

        y[i] = call->node->op == MUC_OP_IS_NAN
                   ? x != x
                   : (positive && x == INFINITY) || (negative && x == -INFINITY);
    }
    return MUC_OK;
}
