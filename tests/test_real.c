/* The runtime's elementary functions beside those of libm in double: errors over all of binary32,
 * in units of the last place of the true result. */
#include <math.h>

#include "base/base.h"
#include "check.h"
#include "mur_real_wide.h"

enum { STEP = 60013 }; /* of the bits: 70,000 numbers of every size and sign */

typedef struct function {
    const char *name;
    float (*ours)(float x);
    double (*true_value)(double x);
    double units;       /* the most that mur_real.h promises */
    double least, most; /* of x, as far as it promises */
} function;

static double true_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double true_softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static double units_between(float found, double expected)
{
    int exponent;

    frexp(expected, &exponent);
    return fabs((double)found - expected) / ldexp(1, exponent < -125 ? -149 : exponent - 24);
}

/* NaN for NaN, infinity for what rounds to it, zeros of the same sign */
static bool is_as_near(float found, double expected, double units)
{
    float rounded = (float)expected;

    if (expected != expected)
        return found != found;
    if (isinf(rounded) || isinf(found))
        return rounded == found || fabs(expected) > 3.4028e38;
    if (rounded == 0 && found == 0)
        return !signbit(rounded) == !signbit(found);
    return units_between(found, expected) <= units;
}

static void check_function(const function *f)
{
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += STEP) {
        float x = mur_float_of((uint32_t)bits), y;

        if ((double)x < f->least || (double)x > f->most)
            continue;
        y = f->ours(x);
        if (!is_as_near(y, f->true_value((double)x), f->units))
            fail_msg("%s(%.9g) is %.9g, expected %.9g", f->name, (double)x, (double)y,
                     f->true_value((double)x));
    }
}

static void functions_are_as_near_as_promised(void **state)
{
    static const function functions[] = {
        { "sqrt", mur_sqrt, sqrt, 0.5, -INFINITY, INFINITY },
        { "floor", mur_floor, floor, 0, -INFINITY, INFINITY },
        { "ceil", mur_ceil, ceil, 0, -INFINITY, INFINITY },
        { "round_even", mur_round_even, nearbyint, 0, -INFINITY, INFINITY },
        { "exp", mur_real_exp, exp, 1, -INFINITY, INFINITY },
        { "exp_nearest", mur_real_exp_nearest, exp, 0.51, -INFINITY, INFINITY },
        { "expm1", mur_real_expm1, expm1, 2, -INFINITY, INFINITY },
        { "log", mur_real_log, log, 1, -INFINITY, INFINITY },
        { "log1p", mur_real_log1p, log1p, 2, -INFINITY, INFINITY },
        { "tanh", mur_real_tanh, tanh, 1.5, -INFINITY, INFINITY },
        { "erf", mur_real_erf, erf, 1.5, -INFINITY, INFINITY },
        { "sigmoid", mur_real_sigmoid, true_sigmoid, 2.5, -88, INFINITY },
        { "softplus", mur_real_softplus, true_softplus, 2, -INFINITY, INFINITY },
        { "sin", mur_real_sin, sin, 0.51, -0x1p30, 0x1p30 },
        { "cos", mur_real_cos, cos, 0.51, -0x1p30, 0x1p30 },
        { "tan", mur_real_tan, tan, 0.51, -0x1p30, 0x1p30 },
        { "asin", mur_real_asin, asin, 0.51, -INFINITY, INFINITY },
        { "acos", mur_real_acos, acos, 0.51, -INFINITY, INFINITY },
        { "atan", mur_real_atan, atan, 0.51, -INFINITY, INFINITY },
        { "sinh", mur_real_sinh, sinh, 0.51, -INFINITY, INFINITY },
        { "cosh", mur_real_cosh, cosh, 0.51, -INFINITY, INFINITY },
        { "asinh", mur_real_asinh, asinh, 0.51, -INFINITY, INFINITY },
        { "acosh", mur_real_acosh, acosh, 0.51, -INFINITY, INFINITY },
        { "atanh", mur_real_atanh, atanh, 0.51, -INFINITY, INFINITY },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(functions); i++)
        check_function(&functions[i]);
}

/* cores without an instruction take this way */
static void digits_find_the_same_root(void **state)
{
    (void)state;
    for (uint32_t bits = 1; bits < MUR_INFINITY_BITS; bits += 10007) {
        float x = mur_float_of(bits);

        if (mur_sqrt_by_digits(x) != sqrtf(x))
            fail_msg("the root of %.9g is %.9g", (double)x, (double)mur_sqrt_by_digits(x));
    }
}

/* cores without floats take this way */
static void exponentials_in_whole_numbers_have_the_same_bits(void **state)
{
    (void)state;
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += 499) {
        float y = mur_exp(mur_float_of((uint32_t)bits));
        uint32_t found = mur_soft_exp((uint32_t)bits);

        if (found != mur_float_bits(y) && !(y != y && mur_float_of(found) != mur_float_of(found)))
            fail_msg("e^(the number of bits %08x) is %08x, expected %08x", (uint32_t)bits, found,
                     mur_float_bits(y));
    }
}

static uint32_t next_bits(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 32);
}

/* of scales and sums as matrices have them, and of any */
static void products_in_whole_numbers_have_the_same_bits(void **state)
{
    uint64_t seed = 1;

    (void)state;
    for (uint32_t i = 0; i < 2000000; i++) {
        uint32_t a = next_bits(&seed) >> 1, b = next_bits(&seed) >> 1;
        int32_t sum = (int32_t)next_bits(&seed) >> next_bits(&seed) % 32;
        float x, by;

        if (i % 2) {
            a = (a & 0xffffff) + (100u << 23);
            b = (b & 0xffffff) + (110u << 23);
        }
        if (mur_soft_can_scale(sum, a, b)) {
            x = (float)sum * (mur_float_of(a) * mur_float_of(b));
            CHECK_EQ(mur_soft_scaled(sum, a, b), mur_float_bits(x));
        }
        x = mur_float_of(a | (next_bits(&seed) & MUR_SIGN_BIT));
        by = i % 3 ? 127.0f / mur_abs(x) : mur_float_of(b);
        if (mur_abs(x * by) <= 32768.0f && by > 1.2e-38f && by < 4e37f)
            CHECK_EQ(mur_soft_quantized(mur_float_bits(x), mur_float_bits(by)),
                     (int32_t)mur_round_even(x * by));
    }
}

static void powers_and_rests_are_those_of_libm(void **state)
{
    uint64_t seed = 1;

    (void)state;
    for (unsigned i = 0; i < 100000; i++) {
        float x = mur_float_of(next_bits(&seed)), y = mur_float_of(next_bits(&seed)), rest;

        rest = mur_fmod(x, y);
        if (rest != fmodf(x, y) && !(rest != rest && fmodf(x, y) != fmodf(x, y)))
            fail_msg("fmod(%.9g, %.9g) is %.9g", (double)x, (double)y, (double)rest);
        if (i % 2) { /* powers that are whole or halves, of moderate numbers */
            x = (float)(int32_t)next_bits(&seed) * 1e-8f;
            y = (float)((int32_t)next_bits(&seed) % 160) / 2;
        }
        if (!is_as_near(mur_real_pow(x, y), pow((double)x, (double)y), 0.51))
            fail_msg("%.9g to the power %.9g is %.9g", (double)x, (double)y,
                     (double)mur_real_pow(x, y));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_as_near_as_promised),
        cmocka_unit_test(digits_find_the_same_root),
        cmocka_unit_test(exponentials_in_whole_numbers_have_the_same_bits),
        cmocka_unit_test(products_in_whole_numbers_have_the_same_bits),
        cmocka_unit_test(powers_and_rests_are_those_of_libm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
