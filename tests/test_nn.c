/* test_nn.c - the kernels of mur_nn.def. */
#include "mur_nn.h"

#include <math.h>

#include "chance.h"
#include "check.h"
#include "nn_cases.h"
#include "nn_row_cases.h"

static void check_kernels(int overlapping)
{
    for (uint32_t i = 0; i < nn_kernels_count; i++) {
        nn_result r = nn_check(&nn_kernels[i], 1500, overlapping);
        const mur_conv_s8 *l = &r.first;

        if (r.run < 50) /* one for few layers */
            r = nn_check(&nn_kernels[i], 6000, overlapping);
        if (r.wrong != 0)
            fail_msg("%s: %u of %u layers wrong, first %dx%dx%d -> %dx%dx%d kernel %dx%d stride "
                     "%dx%d dilation %dx%d pads %d,%d groups %d pitches %d %d requant %d at %d",
                     nn_kernels[i].name, r.wrong, r.run, l->shape.in_h, l->shape.in_w,
                     l->shape.in_c, l->shape.out_h, l->shape.out_w, l->shape.out_c,
                     l->shape.kernel_h, l->shape.kernel_w, l->shape.stride_h, l->shape.stride_w,
                     l->shape.dilation_h, l->shape.dilation_w, l->shape.pad_top, l->shape.pad_left,
                     l->shape.groups, l->shape.in_pitch, l->shape.out_pitch, l->output.kind, r.at);
        CHECK(r.run >= 50);
        print_message("%s: %u layers\n", nn_kernels[i].name, r.run);
    }
}

static void layers_with_weights_equal_their_definition(void **unused)
{
    (void)unused;
    check_kernels(0);
}

static void they_overwrite_their_input_where_that_is_allowed(void **unused)
{
    (void)unused;
    check_kernels(1);
}

static void kernels_without_weights_equal_plain_c(void **unused)
{
    const char *name = "";
    uint32_t wrong = nn_check_others(3000, &name);

    (void)unused;
    if (wrong != 0)
        fail_msg("%u layers, the last of %s", wrong, name);
}

static void kernels_of_rows_equal_their_definition_or_plain_c(void **unused)
{
    const char *name = "";
    uint32_t wrong = nn_check_rows(3000, &name);

    (void)unused;
    if (wrong != 0)
        fail_msg("%u layers, the last of %s", wrong, name);
}

static void products_of_computed_matrices_equal_their_definition(void **unused)
{
    const char *name = "";
    uint32_t wrong = nn_check_products(1500, &name);

    (void)unused;
    if (wrong != 0)
        fail_msg("%u products, the last of %s", wrong, name);
}

/* 3x3 over 4 columns of one channel: when row 0 and the first pixel of row 1 are written, row 1's
 * second window still starts at row 0's first pixel */
static void lead_of_a_small_layer_is_as_counted_by_hand(void **unused)
{
    mur_conv_s8 l = {
        .shape = {
            .in_h = 4,
            .in_w = 4,
            .in_c = 1,
            .out_h = 4,
            .out_w = 4,
            .out_c = 1,
            .in_pitch = 4,
            .out_pitch = 4,
            .kernel_h = 3,
            .kernel_w = 3,
            .stride_h = 1,
            .stride_w = 1,
            .dilation_h = 1,
            .dilation_w = 1,
            .pad_top = 1,
            .pad_left = 1,
            .groups = 1,
        },
    };

    (void)unused;
    /* (1, 0) written: 5 bytes; (1, 1) reads from 0 */
    CHECK_EQ(mur_conv_s8_lead(&l.shape), 6 - 1 + 0);
    l.shape.kernel_h = l.shape.kernel_w = 1;
    l.shape.pad_top = l.shape.pad_left = 0;
    CHECK_EQ(mur_conv_s8_lead(&l.shape), 0); /* pointwise: pixel by pixel in place */
    l.shape.out_c = 2;
    l.shape.out_pitch = 8;
    /* 15 pixels of 2 written, the 16th still to be read */
    CHECK_EQ(mur_conv_s8_lead(&l.shape), 15);
}

/* a multiplier in the form of the descriptors */
static void quantize(double factor, int32_t *mul, int32_t *shift)
{
    int exponent;

    *mul = (int32_t)lround(ldexp(frexp(factor, &exponent), 31));
    *shift = exponent;
}

/* logits and results of TensorFlow Lite for two networks */
static void softmax_equals_tensorflow_lite(void **unused)
{
    static const struct {
        int32_t columns, mul;
        int8_t in[12], out[12];
    } cases[] = {
        { 12,
          1242899200,
          { -43, -13, -34, 10, -35, -32, -56, -69, -61, 59, -128, 47 },
          { -128, -128, -128, -128, -128, -128, -128, -128, -128, 89, -128, -90 } },
        { 12,
          1242899200,
          { -89, -10, -8, -28, -32, 36, -12, -114, -71, 19, -106, 65 },
          { -128, -128, -128, -128, -128, -124, -128, -128, -128, -128, -128, 124 } },
        { 10,
          1476210432,
          { -3, -9, -6, -14, -58, -16, -5, -42, 7, -13 },
          { -99, -117, -110, -124, -128, -125, -107, -128, 37, -123 } },
        { 10,
          1476210432,
          { 25, -3, 37, 38, 18, 14, 24, 1, 7, -15 },
          { -115, -128, -25, -6, -124, -126, -117, -128, -127, -128 } },
    };

    (void)unused;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        mur_softmax_s8 layer = { 1, cases[i].columns, cases[i].mul, 24, -124, NULL };
        int8_t out[12];

        mur_ref_softmax_s8(&layer, cases[i].in, out);
        assert_memory_equal(out, cases[i].out, (size_t)cases[i].columns);
    }
}

/* within one and a half steps of the real function, in place, for many columns too */
static void softmax_is_near_the_real_one(void **unused)
{
    enum { COLUMNS = 600 };
    const double scale = 0.05; /* of the input */
    mur_softmax_s8 layer = { 1, COLUMNS, 0, 0, -256, NULL };
    int8_t x[COLUMNS], y[COLUMNS];

    (void)unused;
    quantize(scale * (1 << 26), &layer.mul, &layer.shift);
    for (int round = 0; round < 40; round++) {
        double total = 0;

        layer.columns = 1 + (int32_t)(random_u32() % COLUMNS);
        for (int32_t i = 0; i < layer.columns; i++)
            y[i] = x[i] = (int8_t)(round < 2 ? 5 : (int32_t)random_u32());
        for (int32_t i = 0; i < layer.columns; i++)
            total += exp(scale * x[i]);
        mur_ref_softmax_s8(&layer, y, y);
        for (int32_t i = 0; i < layer.columns; i++)
            CHECK(fabs(fmin(exp(scale * x[i]) / total * 256, 255) - (y[i] + 128)) < 1.5);
    }
}

static void pools_equal_their_definition(void **unused)
{
    (void)unused;
    for (int times = 0; times < 200; times++) {
        mur_pool_s8 l = { .in_h = 1 + (int32_t)(random_u32() % 9),
                          .in_w = 1 + (int32_t)(random_u32() % 9),
                          .c = 1 + (int32_t)(random_u32() % 9),
                          .stride_h = (uint16_t)(1 + random_u32() % 3),
                          .stride_w = (uint16_t)(1 + random_u32() % 3),
                          .min = -100,
                          .max = 120 };
        int8_t in[9 * 9 * 9], out[2][9 * 9 * 9];
        int32_t i = 0;

        l.kernel_h = (uint16_t)(1 + random_u32() % (uint32_t)l.in_h);
        l.kernel_w = (uint16_t)(1 + random_u32() % (uint32_t)l.in_w);
        l.pad_top = (uint16_t)(random_u32() % l.kernel_h);
        l.pad_left = (uint16_t)(random_u32() % l.kernel_w);
        l.out_h = (l.in_h + l.pad_top - l.kernel_h) / l.stride_h + 1;
        l.out_w = (l.in_w + l.pad_left - l.kernel_w) / l.stride_w + 1;
        l.in_pitch = l.in_w * l.c;
        l.out_pitch = l.out_w * l.c;
        for (size_t k = 0; k < sizeof(in); k++)
            in[k] = (int8_t)random_u32();
        mur_ref_max_pool_s8(&l, in, out[0]);
        mur_ref_average_pool_s8(&l, in, out[1]);
        for (int32_t y = 0; y < l.out_h; y++)
            for (int32_t x = 0; x < l.out_w; x++)
                for (int32_t c = 0; c < l.c; c++, i++) {
                    double sum = 0, count = 0, most = -128;

                    for (int32_t k = 0; k < l.in_h * l.in_w; k++) {
                        int32_t row = k / l.in_w - y * l.stride_h + l.pad_top;
                        int32_t column = k % l.in_w - x * l.stride_w + l.pad_left;

                        if (row < 0 || row >= l.kernel_h || column < 0 || column >= l.kernel_w)
                            continue;
                        sum += in[k * l.c + c];
                        most = fmax(most, in[k * l.c + c]);
                        count++;
                    }
                    CHECK_EQ(out[0][i], (int)fmax(-100, fmin(120, most)));
                    CHECK_EQ(out[1][i], (int)fmax(-100, fmin(120, round(sum / count))));
                }
    }
}

static void sums_and_products_are_near_the_real_ones(void **unused)
{
    enum { COUNT = 240, PERIOD = 16 };
    const double scale_a = 0.02, scale_b = 0.031, scale = 0.05;
    mur_add_s8 add = { .count = COUNT,
                       .b_count = PERIOD,
                       .left_shift = 20,
                       .a_zero = 3,
                       .b_zero = -7,
                       .zero = 10,
                       .min = -128,
                       .max = 127 };
    mur_mul_s8 mul = { .count = COUNT,
                       .b_count = PERIOD,
                       .a_zero = 3,
                       .b_zero = -7,
                       .output = { MUR_REQUANT_Q31, 0, 10, -128, 127 } };
    int8_t a[COUNT], b[PERIOD], sum[COUNT], difference[COUNT], product[COUNT];

    (void)unused;
    for (int i = 0; i < COUNT; i++)
        a[i] = (int8_t)random_u32();
    for (int i = 0; i < PERIOD; i++)
        b[i] = (int8_t)random_u32();
    quantize(scale_a / (2 * scale_b), &add.a_mul, &add.a_shift);
    quantize(0.5, &add.b_mul, &add.b_shift);
    quantize(2 * scale_b / (scale * (1 << 20)), &add.mul, &add.shift);
    quantize(scale_a * scale_b / scale, &mul.mul, &mul.shift);
    mur_ref_add_s8(&add, a, b, sum);
    add.subtract = 1;
    mur_ref_add_s8(&add, a, b, difference);
    mur_ref_mul_s8(&mul, a, b, product);
    for (int i = 0; i < COUNT; i++) {
        double x = scale_a * (a[i] - 3), y = scale_b * (b[i % PERIOD] + 7);

        CHECK(fabs(fmax(-128, fmin(127, (x + y) / scale + 10)) - sum[i]) <= 0.51);
        CHECK(fabs(fmax(-128, fmin(127, (x - y) / scale + 10)) - difference[i]) <= 0.51);
        CHECK(fabs(fmax(-128, fmin(127, x * y / scale + 10)) - product[i]) <= 0.51);
    }
}

static void numbers_cross_between_real_and_int8(void **unused)
{
    const float in[8] = { 0.25f, -0.25f, 0.75f, 1e30f, -1e30f, 63.2f, -0.7f, 0.2f };
    const int8_t expected[8] = { 4, 2, 5, 127, -128, 127, 2, 3 };
    int8_t table[256], q[8];
    float real[8];

    (void)unused;
    mur_ref_quantize_f32(0.5f, 3, 8, in, q); /* halves away from zero: 0.5 is 1, -0.5 is -1 */
    assert_memory_equal(q, expected, 8);
    mur_ref_dequantize_s8(0.5f, 3, 8, q, real);
    CHECK(real[0] == 0.5f && real[4] == -65.5f);
    for (int i = 0; i < 256; i++)
        table[i] = (int8_t)(127 - i);
    mur_ref_table_s8(table, 8, q, q);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(q[i], -1 - expected[i]);
}

/* whether a square depthwise layer of 21x21 taps goes by pairs of them */
static int goes_by_pairs(uint16_t size)
{
    enum { CHANNELS = 64, SIDE = 21, TAPS = SIDE * SIDE };
    static const int8_t weights[CHANNELS * TAPS];
    int32_t mul[CHANNELS], shift[CHANNELS];
    const mur_conv_plain plain = { weights, NULL, mul, shift };
    const mur_conv_s8 layer = {
        .shape = { .in_h = size,
                   .in_w = size,
                   .in_c = CHANNELS,
                   .out_h = size,
                   .out_w = size,
                   .out_c = CHANNELS,
                   .in_pitch = size * CHANNELS,
                   .out_pitch = size * CHANNELS,
                   .kernel_h = SIDE,
                   .kernel_w = SIDE,
                   .stride_h = 1,
                   .stride_w = 1,
                   .dilation_h = 1,
                   .dilation_w = 1,
                   .pad_top = SIDE / 2,
                   .pad_left = SIDE / 2,
                   .groups = CHANNELS },
        .output = { .kind = MUR_REQUANT_Q31, .min = INT8_MIN, .max = INT8_MAX },
    };

    for (int i = 0; i < CHANNELS; i++) {
        mul[i] = 1 << 30;
        shift[i] = -8;
    }
    return mur_dsp_depthwise_pairs_s8_fits(&layer, &plain);
}

static void more_instructions_than_32_bits_count_are_weighed(void **unused)
{
    (void)unused;
    CHECK(goes_by_pairs(48));
    CHECK(goes_by_pairs(800));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_with_weights_equal_their_definition),
        cmocka_unit_test(they_overwrite_their_input_where_that_is_allowed),
        cmocka_unit_test(kernels_without_weights_equal_plain_c),
        cmocka_unit_test(kernels_of_rows_equal_their_definition_or_plain_c),
        cmocka_unit_test(products_of_computed_matrices_equal_their_definition),
        cmocka_unit_test(lead_of_a_small_layer_is_as_counted_by_hand),
        cmocka_unit_test(softmax_equals_tensorflow_lite),
        cmocka_unit_test(softmax_is_near_the_real_one),
        cmocka_unit_test(pools_equal_their_definition),
        cmocka_unit_test(sums_and_products_are_near_the_real_ones),
        cmocka_unit_test(numbers_cross_between_real_and_int8),
        cmocka_unit_test(more_instructions_than_32_bits_count_are_weighed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
