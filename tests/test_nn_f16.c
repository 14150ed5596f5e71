/* test_nn_f16.c - layers on binary16, every bit, against those on binary32; the C that the kernels
 * are without Helium. */
#include "nn_f16_cases.h"

#include "check.h"
#include "half_cases.h"

static void halves_convert_as_their_bits_say(void **unused)
{
    (void)unused;
    CHECK_EQ(half_check_widening(), 0);
    CHECK_EQ(half_check_narrowing(10000000), 0);
}

static void convolutions_are_those_of_floats_rounded(void **unused)
{
    (void)unused;
    CHECK_EQ(nn_f16_check(600, 0).wrong, 0);
}

static void depthwise_ones_too(void **unused)
{
    (void)unused;
    CHECK_EQ(nn_f16_check(600, 1).wrong, 0);
}

static void pools_too(void **unused)
{
    (void)unused;
    CHECK_EQ(nn_f16_check_pools(600), 0);
}

static void elements_too(void **unused)
{
    (void)unused;
    CHECK_EQ(nn_f16_check_elements(200), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_convert_as_their_bits_say),
        cmocka_unit_test(convolutions_are_those_of_floats_rounded),
        cmocka_unit_test(depthwise_ones_too),
        cmocka_unit_test(pools_too),
        cmocka_unit_test(elements_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
