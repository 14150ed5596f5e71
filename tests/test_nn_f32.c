/* test_nn_f32.c - convolutions on binary32, every bit of the order that mur_nn_f32.h writes. */
#include "nn_f32_cases.h"

#include <math.h>

#include "check.h"

static void convolutions_add_in_the_written_order(void **unused)
{
    (void)unused;
    CHECK_EQ(nn_f32_check(600, 0).wrong, 0);
}

static void depthwise_ones_too(void **unused)
{
    (void)unused;
    CHECK_EQ(nn_f32_check(600, 1).wrong, 0);
}

static void products_of_computed_matrices_add_in_order(void **unused)
{
    (void)unused;
    CHECK_EQ(nn_f32_check_products(300), 0);
}

static void no_bias_is_zero_and_nan_stays(void **unused)
{
    static const float limits[2] = { 0, 6 };
    float packed[16];
    mur_conv_f32 l = {
        .shape = {
            .in_h = 1,
            .in_w = 1,
            .in_c = 2,
            .out_h = 1,
            .out_w = 1,
            .out_c = 2,
            .in_pitch = 2,
            .out_pitch = 2,
            .kernel_h = 1,
            .kernel_w = 1,
            .stride_h = 1,
            .stride_w = 1,
            .dilation_h = 1,
            .dilation_w = 1,
            .groups = 1,
        },
        .limits = limits,
        .packed = packed,
    };
    const float w[4] = { 1, 2, NAN, 0 }, x[2] = { 0.5f, 1 };
    float out[2];

    (void)unused;
    mur_conv_f32_pack(&l.shape, w, NULL, packed);
    mur_conv_f32_run(&l, x, out);
    CHECK(out[0] == 2.5f);
    CHECK(isnan(out[1]));
}

/* the sizes asked for are the sizes written */
static void packing_stays_in_its_bounds(void **unused)
{
    (void)unused;
    for (int times = 0; times < 200; times++) {
        static float weights[1 << 13], bias[20], packed[1 << 14];
        mur_conv_f32 l = nn_f32_draw(times & 1);
        size_t elems = times & 1 ? mur_depthwise_f32_packed_elems(&l.shape)
                                 : mur_conv_f32_packed_elems(&l.shape);

        CHECK(elems < sizeof(packed) / sizeof(*packed));
        packed[elems] = 777;
        packed[elems - 1] = 777;
        (times & 1 ? mur_depthwise_f32_pack : mur_conv_f32_pack)(&l.shape, weights, bias, packed);
        CHECK(packed[elems] == 777);
        CHECK(packed[elems - 1] != 777);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_add_in_the_written_order),
        cmocka_unit_test(depthwise_ones_too),
        cmocka_unit_test(products_of_computed_matrices_add_in_order),
        cmocka_unit_test(no_bias_is_zero_and_nan_stays),
        cmocka_unit_test(packing_stays_in_its_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
