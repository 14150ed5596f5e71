/* test_rv_float.c - binary32 of RV32 without floating point, against this machine's. */
#include <stdbool.h>

#include "base/base.h"
#include "chance.h"
#include "check.h"
#include "mur_real.h"

#include "../runtime/kernels/rv/mur_rv_float.h"

static bool same(uint32_t found, float expected)
{
    return found == mur_float_bits(expected) || (expected != expected && found == 0x7fc00000);
}

static int sign_of(int32_t x)
{
    return (x > 0) - (x < 0);
}

/* what a compiler makes of the functions' results */
static void check_order(uint32_t a, uint32_t b)
{
    float x = mur_float_of(a), y = mur_float_of(b);

    if ((mur_rv_float_lt(a, b) < 0) != (x < y) || (mur_rv_float_le(a, b) <= 0) != (x <= y) ||
        (mur_rv_float_gt(a, b) > 0) != (x > y) || (mur_rv_float_ge(a, b) >= 0) != (x >= y) ||
        (mur_rv_float_eq(a, b) == 0) != (x == y) || (mur_rv_float_ne(a, b) != 0) != (x != y))
        fail_msg("%08x and %08x compare as %d", a, b, sign_of(mur_rv_float_lt(a, b)));
}

static void check_pair(uint32_t a, uint32_t b)
{
    volatile float x = mur_float_of(a), y = mur_float_of(b);

    if (!same(mur_rv_float_add(a, b), x + y) || !same(mur_rv_float_sub(a, b), x - y))
        fail_msg("%08x +- %08x: %08x and %08x", a, b, mur_rv_float_add(a, b),
                 mur_rv_float_sub(a, b));
    if (!same(mur_rv_float_mul(a, b), x * y))
        fail_msg("%08x * %08x: %08x", a, b, mur_rv_float_mul(a, b));
    if (!same(mur_rv_float_div(a, b), x / y))
        fail_msg("%08x / %08x: %08x", a, b, mur_rv_float_div(a, b));
    check_order(a, b);
}

/* around every boundary of exponents and of rounding */
static void special_numbers_compute_as_everywhere(void **state)
{
    static const uint32_t digits[] = { 0, 1, 2, 0x400000, 0x3fffff, 0x7ffffe, 0x7fffff };
    static const uint32_t exponents[] = { 0,   1,   2,   24,  63,  64,  102, 103, 126, 127,
                                          128, 150, 151, 190, 191, 230, 252, 253, 254, 255 };
    uint32_t numbers[MUC_COUNT(digits) * MUC_COUNT(exponents) * 2], count = 0;

    (void)state;
    for (size_t e = 0; e < MUC_COUNT(exponents); e++)
        for (size_t d = 0; d < MUC_COUNT(digits); d++)
            for (uint32_t sign = 0; sign < 2; sign++)
                numbers[count++] = sign << 31 | exponents[e] << 23 | digits[d];
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < count; j++)
            check_pair(numbers[i], numbers[j]);
}

/* all bits by chance, and exponents that are near to each other */
static void random_numbers_compute_as_everywhere(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 400000; i++) {
        uint32_t a = random_u32(), b = random_u32();
        uint32_t near = (b & 0x807fffff) | ((a >> 23 & 255) + random_u32() % 64 - 32) % 256 << 23;

        check_pair(a, i % 4 ? near : b);
        check_pair(a, a ^ (random_u32() & 7)); /* cancellation */
    }
}

static void whole_numbers_become_the_nearest(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 400000; i++) {
        int32_t x = (int32_t)(random_u32() >> i % 32);

        x = i & 32 ? -x : x;
        if (!same(mur_rv_float_of(x), (float)x))
            fail_msg("%d is %08x", x, mur_rv_float_of(x));
    }
    CHECK(same(mur_rv_float_of(INT32_MIN), (float)INT32_MIN));
    CHECK(same(mur_rv_float_of(INT32_MAX), (float)INT32_MAX));
    CHECK_EQ(mur_rv_float_of(0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(special_numbers_compute_as_everywhere),
        cmocka_unit_test(random_numbers_compute_as_everywhere),
        cmocka_unit_test(whole_numbers_become_the_nearest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
