/* test_low_kernels.c - a decoder's matrices and vectors, for every instruction set: bit for bit. */
#include "check.h"
#include "low_cases.h"

static void matrices_of_few_bits_multiply_as_their_levels_do(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < low_kernels_count; i++) {
        low_result r = low_check(&low_kernels[i]);

        CHECK(r.run > 100);
        if (r.wrong != 0)
            fail_msg("%s: %u of %u wrong, first with %u bits, %u x %u, at %u", low_kernels[i].name,
                     r.wrong, r.run, r.bits, r.n, r.k, r.at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_of_few_bits_multiply_as_their_levels_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
