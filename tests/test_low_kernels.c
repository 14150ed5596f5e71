/* test_low_kernels.c - a decoder's matrices and vectors, for every instruction set: bit for bit. */
#include "check.h"

#include "base/base.h"
#include "low_cases.h"

MUR_QUANTIZE(plain)
MUR_QUANTIZE(avx2)
MUR_LINEAR_Q8(plain)
MUR_LINEAR_Q8(avx2)
MUR_LINEAR_LOW(plain)
MUR_LINEAR_LOW(avx2)
MUR_LINEAR_BD(plain)
MUR_LINEAR_BD(avx2)
MUR_ATTENTION_Q8(plain)
MUR_ATTENTION_Q8(avx2)

/* of the machine that runs the compiler, with ref's matrices: as far as the processor goes, and as
 * if it had less */
#define HOST_KERNEL(name) \
    { \
#name, 1, mur_##name##_quantize, mur_##name##_linear, mur_ref_embed, mur_ref_matrix_bytes, \
            mur_ref_matrix_pack, \
            { mur_##name##_linear_q2, mur_##name##_linear_q4 }, \
              { mur_ref_embed_q2, mur_ref_embed_q4 }, mur_ref_low_bytes, mur_ref_low_pack, \
                mur_##name##_linear_bd \
    }

static const low_kernel host_kernels[] = { HOST_KERNEL(host), HOST_KERNEL(avx2),
                                           HOST_KERNEL(plain) };

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

/* ---- attention of the host, beside ref's ---- */

typedef void attention(const mur_attention_q8 *op, uint32_t pos, uint32_t rows, const float *q,
                       const float *k, const float *v, void *keys, void *values, float *key_scales,
                       float *value_scales, float *out, void *scratch);

enum { HEADS = 4, KV_HEADS = 2, WIDEST = 70, POSITIONS = 40 };

typedef struct attended {
    int8_t keys[KV_HEADS * POSITIONS * WIDEST], values[KV_HEADS * POSITIONS * WIDEST];
    float key_scales[KV_HEADS * POSITIONS], value_scales[KV_HEADS * POSITIONS];
    float out[POSITIONS * HEADS * WIDEST];
} attended;

/* all positions, in calls of 1, 2, .. tokens */
static void attend(attention *kernel, const mur_attention_q8 *op, const float *x, attended *a)
{
    static float scratch[POSITIONS * 2 + WIDEST * 2];
    uint32_t q_columns = op->heads * op->width, kv_columns = op->kv_heads * op->width;

    CHECK(mur_ref_attention_bytes(op) <= sizeof(scratch));
    memset(a, 0, sizeof(*a));
    for (uint32_t pos = 0, rows = 1; pos < POSITIONS; pos += rows, rows++) {
        if (rows > POSITIONS - pos)
            rows = POSITIONS - pos;
        kernel(op, pos, rows, x + pos * q_columns, x + 7 + pos * kv_columns,
               x + 77 + pos * kv_columns, a->keys, a->values, a->key_scales, a->value_scales,
               a->out + pos * q_columns, scratch);
    }
}

static void attention_on_the_host_is_refs(void **state)
{
    static attention *const kernels[] = { mur_host_attention, mur_avx2_attention,
                                          mur_plain_attention };
    static const struct {
        uint32_t width, seen;
        float cap, spread;
    } cases[] = { { 64, 0, 0, 1 }, { 70, 9, 0, 8 }, { 6, 0, 3, 30 }, { 48, 5, 0, 1e-20f } };
    static float x[POSITIONS * HEADS * WIDEST + 100];
    static attended expected, found;
    uint32_t seed = 1;

    (void)state;
    for (size_t c = 0; c < MUC_COUNT(cases); c++) {
        mur_attention_q8 op = { HEADS, KV_HEADS,      cases[c].width, POSITIONS,
                                0.25f, cases[c].seen, cases[c].cap,   NULL };

        op.cap_scores = op.cap > 0 ? mur_cap_scores : NULL;
        for (size_t i = 0; i < MUC_COUNT(x); i++) {
            seed = seed * 1664525u + 1013904223u;
            x[i] = (float)(int32_t)seed * 0x1p-31f * cases[c].spread;
        }
        attend(mur_ref_attention, &op, x, &expected);
        for (size_t i = 0; i < MUC_COUNT(kernels); i++) {
            attend(kernels[i], &op, x, &found);
            assert_memory_equal(&found, &expected, sizeof(found));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_of_few_bits_multiply_as_their_levels_do),
        cmocka_unit_test(attention_on_the_host_is_refs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
