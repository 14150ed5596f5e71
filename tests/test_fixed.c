/* The integer arithmetic of quantized networks, against rational numbers and libm. */
#include <math.h>

#include "base/fixed.h"
#include "chance.h"
#include "check.h"

__extension__ typedef __int128 wide;

/* the integer nearest to a / b, b > 0; halves up */
static wide nearest_up(wide a, wide b)
{
    wide twice = 2 * a + b, quotient = twice / (2 * b);

    return twice % (2 * b) < 0 ? quotient - 1 : quotient;
}

/* halves away from zero */
static wide nearest_away(wide a, wide b)
{
    return a < 0 ? -nearest_up(-a, b) : nearest_up(a, b);
}

static uint64_t random_u64(void)
{
    uint64_t high = random_u32();

    return high << 32 | random_u32();
}

static int32_t draw(void)
{
    uint64_t bits = random_u64();
    int32_t edge[] = { INT32_MIN, INT32_MIN + 1, -1, 0, 1, INT32_MAX };

    if (bits % 8 == 0)
        return edge[bits / 8 % 6];
    return (int32_t)(uint32_t)(bits >> 32) >> (bits % 32);
}

static void halves_of_a_product_go_up(void **state)
{
    (void)state;
    CHECK_EQ(muc_fixed_high_mul(3, 1 << 30), 2);   /* 1.5 */
    CHECK_EQ(muc_fixed_high_mul(-3, 1 << 30), -1); /* -1.5 */
    CHECK_EQ(muc_fixed_high_mul(INT32_MIN, INT32_MIN), INT32_MAX);
    for (int i = 0; i < 300000; i++) {
        int32_t a = draw(), b = draw();

        if (a != INT32_MIN || b != INT32_MIN)
            CHECK(muc_fixed_high_mul(a, b) == nearest_up((wide)a * b, (wide)1 << 31));
    }
}

static void halves_of_a_shift_go_away_from_zero(void **state)
{
    (void)state;
    CHECK_EQ(muc_fixed_divide_pot(3, 1), 2);
    CHECK_EQ(muc_fixed_divide_pot(-3, 1), -2);
    CHECK_EQ(muc_fixed_divide_pot(INT32_MIN, 31), -1);
    for (int i = 0; i < 300000; i++) {
        int32_t x = draw(), n = (int32_t)(random_u64() % 32);

        CHECK(muc_fixed_divide_pot(x, n) == nearest_away(x, (wide)1 << n));
    }
}

/* mantissa * 2^(shift - 31) is within half a unit of the mantissa of the factor */
static void a_factor_becomes_the_nearest_multiplier(void **state)
{
    (void)state;
    CHECK(muc_multiplier_of(0.5).mantissa == 1 << 30 && muc_multiplier_of(0.5).shift == 0);
    CHECK(muc_multiplier_of(1).mantissa == 1 << 30 && muc_multiplier_of(1).shift == 1);
    CHECK(muc_multiplier_of(0).mantissa == 0 && muc_multiplier_of(1e-12).mantissa == 0);
    /* rounds up to the next power of two */
    CHECK(muc_multiplier_of(1 - 0x1p-40).mantissa == 1 << 30);
    CHECK_EQ(muc_multiplier_of(1 - 0x1p-40).shift, 1);
    for (int i = 0; i < 100000; i++) {
        double factor =
            ldexp(1 + (double)(random_u64() >> 12) * 0x1p-52, (int)(random_u64() % 60) - 31);
        muc_multiplier m = muc_multiplier_of(factor);

        CHECK(m.mantissa >= 1 << 30);
        CHECK(fabs(ldexp(m.mantissa, m.shift - 31) - factor) <= ldexp(0.5, m.shift - 31));
    }
}

static void a_multiplier_rounds_twice(void **state)
{
    (void)state;
    for (int i = 0; i < 300000; i++) {
        muc_multiplier m = { (1 << 30) | (int32_t)(random_u64() >> 34),
                             (int32_t)(random_u64() % 40) - 31 };
        int32_t x = draw();
        int left = m.shift > 0 ? m.shift : 0, right = m.shift > 0 ? 0 : -m.shift;
        wide shifted = (wide)x * ((wide)1 << left);

        if (shifted < INT32_MIN || shifted > INT32_MAX)
            continue;
        CHECK(muc_multiply(x, m) ==
              nearest_away(nearest_up(shifted * m.mantissa, (wide)1 << 31), (wide)1 << right));
    }
}

static void a_wide_sum_rounds_once_with_a_short_mantissa(void **state)
{
    (void)state;
    for (int i = 0; i < 300000; i++) {
        muc_multiplier m = { (1 << 30) | (int32_t)(random_u64() >> 34),
                             (int32_t)(random_u64() % 39) - 31 };
        int64_t x = (int64_t)random_u64() >> (17 + random_u64() % 40);
        wide mantissa = nearest_up(m.mantissa, 1 << 16);
        wide expected =
            nearest_up(x * (mantissa > 0x7FFF ? 0x7FFF : mantissa), (wide)1 << (15 - m.shift));

        if (expected >= INT32_MIN && expected <= INT32_MAX)
            CHECK(muc_multiply_wide(x, m) == expected);
    }
}

/* the polynomial and the products of factors are good to 2^-22 */
static void the_exponential_is_the_exponential(void **state)
{
    double worst = 0;

    (void)state;
    CHECK_EQ(muc_fixed_exp(0), INT32_MAX);
    for (int64_t x = 0; x > -((int64_t)1 << 31); x -= 20011) {
        double expected = exp((double)x * 0x1p-26), found = muc_fixed_exp((int32_t)x) * 0x1p-31;

        worst = fmax(worst, fabs(found - expected));
    }
    print_message("e^x: error at most %.3g\n", worst);
    CHECK(worst < 0x1p-22);
}

static void the_reciprocal_is_the_reciprocal(void **state)
{
    double worst = 0;

    (void)state;
    for (int i = 0; i < 300000; i++) {
        int32_t x = 1 + (int32_t)(random_u64() >> 33 >> (random_u64() % 31));
        int shift;
        double value = x * 0x1p-19; /* Q12.19 */
        double found = muc_fixed_reciprocal(x, 12, &shift) * 0x1p-31;

        worst = fmax(worst, fabs(ldexp(found, -shift) * value - 1));
    }
    print_message("1/x: relative error at most %.3g\n", worst);
    CHECK(worst < 0x1p-25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_of_a_product_go_up),
        cmocka_unit_test(halves_of_a_shift_go_away_from_zero),
        cmocka_unit_test(a_factor_becomes_the_nearest_multiplier),
        cmocka_unit_test(a_multiplier_rounds_twice),
        cmocka_unit_test(a_wide_sum_rounds_once_with_a_short_mantissa),
        cmocka_unit_test(the_exponential_is_the_exponential),
        cmocka_unit_test(the_reciprocal_is_the_reciprocal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
