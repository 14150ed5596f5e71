/* formula.c - computes the formulas of elementwise.def in binary64, with base/real.h, since libm's
 * last bit is not the same everywhere. */
#include "graph/formula.h"

#include <math.h>

#include "base/real.h"

static const double half_pi = 1.57079632679489661923, two_pi = 6.28318530717958647692;
static const double ln_2 = 0.69314718055994530942;

/* by operator; 1 more than the formula, 0: none */
static const uint8_t plain[MUC_OP_COUNT] = {
#define MUC_OP(id, ...)
#define MUC_FORMULA_ROW(id) [MUC_OP_##id] = MUC_FORMULA_##id + 1,
#include "graph/ops.def"
};

muc_formula muc_formula_of(const muc_node *node)
{
    static const struct {
        muc_op op;
        muc_attribute_key key;
        int64_t value; /* a muc_word, too */
        muc_formula formula;
    } chosen[] = {
#define MUC_OP(id, ...)
#define MUC_FORMULA_IF(id, op, attribute, value) \
    { MUC_OP_##op, MUC_KEY_##attribute, value, MUC_FORMULA_##id },
#include "graph/ops.def"
    };

    for (size_t i = 0; i < MUC_COUNT(chosen); i++) {
        const muc_attribute *attribute =
            node->op == chosen[i].op ? muc_node_attribute(node, chosen[i].key) : NULL;

        if (attribute && attribute->value.integer == chosen[i].value)
            return chosen[i].formula;
    }
    return plain[node->op] ? (muc_formula)(plain[node->op] - 1) : MUC_FORMULA_COUNT;
}

muc_formula_values muc_formula_values_of(const muc_node *node)
{
#define VALUE(name, key, kind, fallback) \
    .name = (double)muc_node_##kind##_or(node, MUC_KEY_##key, fallback),
    return (muc_formula_values){ MUC_FORMULA_ATTRIBUTES(VALUE) };
#undef VALUE
}

/* ---- functions of any number ---- */

static double sin_of(double x)
{
    return isinf(x) || x != x ? NAN : muc_sin(fabs(x) < 1 << 30 ? x : fmod(x, two_pi));
}

static double cos_of(double x)
{
    return isinf(x) || x != x ? NAN : muc_cos(fabs(x) < 1 << 30 ? x : fmod(x, two_pi));
}

static double tan_of(double x)
{
    return sin_of(x) / cos_of(x);
}

static double sigmoid_of(double x)
{
    double e = muc_exp(-fabs(x));

    return x != x ? x : x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

static double silu_of(double x, double alpha)
{
    return x * sigmoid_of(alpha * x);
}

static double softplus_of(double x)
{
    return x != x ? x : (x > 0 ? x : 0) + muc_log1p(muc_exp(-fabs(x)));
}

static double hard_sigmoid_of(double x, double alpha, double beta)
{
    return x != x ? x : fmax(0, fmin(1, alpha * x + beta));
}

static double sinh_of(double x)
{
    return (muc_expm1(x) - muc_expm1(-x)) / 2;
}

static double cosh_of(double x)
{
    return (muc_exp(x) + muc_exp(-x)) / 2;
}

static double asinh_of(double x)
{
    double a = fabs(x), value;

    if (isinf(x) || x != x)
        return x;
    value = a > 1e8 ? muc_log(a) + ln_2 : muc_log1p(a + a * a / (1 + sqrt(a * a + 1)));
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
    return x > 1e8 ? muc_log_of_any(x) + ln_2 : muc_log1p((x - 1) + sqrt((x - 1) * (x + 1)));
}

/* the rest with y's sign */
static double mod_of(double x, double y)
{
    double rest = fmod(x, y);

    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

/* ---- formulas ---- */

#define OF(of_f32, of_f64) of_f64
#define R(number) number
#include "graph/primitives.h"

#define LOCAL(name, key, kind, fallback) const double name = v->name;
#define UNUSED(name, key, kind, fallback) (void)name;
#define MUC_OP(id, ...)
#define MUC_FORMULA_REAL(id, formula) \
    static double real_##id(double x, double y, const muc_formula_values *v) \
    { \
        MUC_FORMULA_ATTRIBUTES(LOCAL) \
        MUC_FORMULA_ATTRIBUTES(UNUSED)(void) y; \
        return formula; \
    }
#define MUC_FORMULA_NUMBER(id, formula, whole) MUC_FORMULA_REAL(id, formula)
#define MUC_FORMULA_TRUTH(id, formula) MUC_FORMULA_REAL(id, formula)
#define MUC_FORMULA_TEST(id, formula) MUC_FORMULA_REAL(id, formula)
#include "graph/ops.def"

muc_formula_real *muc_formula_real_of(muc_formula formula)
{
    static muc_formula_real *const reals[MUC_FORMULA_COUNT] = {
#define MUC_OP(id, ...)
#define MUC_FORMULA_REAL(id, formula) [MUC_FORMULA_##id] = real_##id,
#define MUC_FORMULA_NUMBER(id, formula, whole) [MUC_FORMULA_##id] = real_##id,
#define MUC_FORMULA_TRUTH(id, formula) [MUC_FORMULA_##id] = real_##id,
#define MUC_FORMULA_TEST(id, formula) [MUC_FORMULA_##id] = real_##id,
#include "graph/ops.def"
    };

    return reals[formula];
}
