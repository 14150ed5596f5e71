/* test_low_kernels.c - a decoder's matrices, vectors and attention, for every instruction set: bit
 * for bit. */
#include "check.h"

#include "attention_cases.h"
#include "base/base.h"
#include "low_cases.h"

MUR_QUANTIZE(scalar)
MUR_QUANTIZE(avx2)
MUR_LINEAR_Q8(scalar)
MUR_LINEAR_Q8(avx2)
MUR_LINEAR_LOW(scalar)
MUR_LINEAR_LOW(avx2)
MUR_LINEAR_BD(scalar)
MUR_LINEAR_BD(avx2)
MUR_ATTENTION_Q8(scalar)
MUR_ATTENTION_Q8(avx2)

/* of the machine that runs the compiler, with ref's matrices: as far as the processor goes, and as
 * if it had less */
#define HOST_KERNEL(name) \
    { \
#name, 1, mur_##name##_quantize, mur_##name##_linear, mur_ref_embed, mur_ref_matrix_bytes, \
            mur_ref_matrix_pack, \
            { mur_##name##_linear_q2, mur_##name##_linear_q4 }, \
              { mur_ref_embed_q2, mur_ref_embed_q4 }, mur_ref_low_bytes, mur_ref_low_pack, \
                mur_##name##_linear_bd, mur_silu_f32 \
    }

static const low_kernel host_kernels[] = { HOST_KERNEL(host), HOST_KERNEL(avx2),
                                           HOST_KERNEL(scalar) };

static void check_kernel(const low_kernel *kernel)
{
    low_result r = low_check(kernel);

    CHECK(r.run > 100);
    if (r.wrong != 0)
        fail_msg("%s: %u of %u wrong, first with %u bits, %u x %u, at %u", kernel->name, r.wrong,
                 r.run, r.bits, r.n, r.k, r.at);
}

static void matrices_of_few_bits_multiply_as_their_levels_do(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < low_kernels_count; i++)
        check_kernel(&low_kernels[i]);
    for (size_t i = 0; i < MUC_COUNT(host_kernels); i++)
        check_kernel(&host_kernels[i]);
}

static void check_attention(const attention_kernel *kernel)
{
    mur_attention_q8 op = { 0 };
    uint32_t wrong = attention_check(kernel->run, 80, &op);

    if (wrong != 0)
        fail_msg(
            "%s: %u wrong, first with %u heads (%u of keys) of %u, context %u, %u seen, cap %g",
            kernel->name, wrong, op.heads, op.kv_heads, op.width, op.context, op.seen,
            (double)op.cap);
}

static void attention_is_plain_cs(void **state)
{
    static const attention_kernel of_host[] = { { "host", mur_host_attention },
                                                { "avx2", mur_avx2_attention },
                                                { "scalar", mur_scalar_attention } };

    (void)state;
    for (uint32_t i = 0; i < attention_kernels_count; i++)
        check_attention(&attention_kernels[i]);
    for (size_t i = 0; i < MUC_COUNT(of_host); i++)
        check_attention(&of_host[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_of_few_bits_multiply_as_their_levels_do),
        cmocka_unit_test(attention_is_plain_cs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
