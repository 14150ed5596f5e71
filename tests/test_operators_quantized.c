/* test_operators_quantized.c - operators of tensors that carry quantization, against numbers worked
 * out by hand; and what no run could compute, which is refused when a session is opened. */
#include "operators.h"

static void the_greater_and_the_lesser_of_two_scales(void **state)
{
    (void)state;
    /* 1, 2.5, -3 and 1.5, 0.5, -2.5 */
#define PAIR \
    "tensor a = const i8 [3] scale 0.5 zero 0 values 2, 5, -6\n" \
    "tensor b = const i8 [3] scale 0.25 zero 1 values 7, 3, -9\n"
    CHECK_GIVES(PAIR "node y i8 [3] scale 0.25 zero -2 = max a, b\noutput y\n", 4, 8, -12);
    CHECK_GIVES(PAIR "node y i8 [3] scale 0.25 zero -2 = min a, b\noutput y\n", 2, 0, -14);
    CHECK_GIVES(PAIR "node y i8 [3] scale 1 zero 0 = max a, b\noutput y\n", 2, 3, -3);
#undef PAIR
}

static void padding_counts_in_a_mean_as_zero(void **state)
{
    (void)state;
    /* 2, 4, 1, 0 in halves above 10; sums of windows over 4 */
#define POOL(more) \
    "tensor x = const i8 [1, 1, 2, 2] scale 0.5 zero 10 values 14, 18, 12, 10\n" \
    "node y i8 [1, 1, 3, 3] scale 0.5 zero 10 = average_pool x kernel=[2, 2] pads=[1, 1, 1, " \
    "1]" more
    CHECK_GIVES(POOL(" count_include_pad=1\noutput y\n"), 11, 13, 12, 12, 14, 12, 11, 11, 10);
    CHECK_GIVES(POOL("\noutput y\n"), 14, 16, 18, 13, 14, 14, 12, 11, 10);
#undef POOL
    /* the second window reaches one beyond the padding */
    CHECK_GIVES("tensor x = const i8 [1, 1, 4] scale 1 zero -8 values -4, -2, 0, 2\n"
                "node y i8 [1, 1, 2] scale 1 zero -8 = average_pool x kernel=[3] strides=[3] "
                "pads=[0, 1] ceil_mode=1 count_include_pad=1\noutput y\n",
                -2, -3);
}

static void transposed_convolutions_take_channels_in_either_order(void **state)
{
    (void)state;
    CHECK_GIVES("tensor x = const i8 [1, 1, 1, 2] scale 1 zero 1 values 2, 3\n"
                "tensor w = const i8 [1, 2, 1, 2] scale 1 zero 0 values 1, 3, 2, 4\n"
                "tensor b = const i32 [2] values 0, 10\n"
                "node y i8 [1, 2, 1, 4] scale 1 zero -1 = conv_transpose x, w, b strides=[1, 2]\n"
                "output y\n",
                0, 2, 1, 5, 11, 13, 13, 17);
    CHECK_GIVES("tensor x = const i8 [1, 1, 2, 1] scale 1 zero 1 values 2, 3\n"
                "tensor w = const i8 [2, 1, 2, 1] scale 1 zero 0 values 1, 3, 2, 4\n"
                "tensor b = const i32 [2] values 0, 10\n"
                "node y i8 [1, 1, 4, 2] scale 1 zero -1 = conv_transpose x, w, b strides=[1, 2] "
                "channels_last=1\noutput y\n",
                0, 11, 2, 13, 1, 13, 5, 17);
    CHECK_GIVES("tensor x = const i8 [1, 2, 1] scale 1 zero 0 values 2, 3\n"
                "tensor w = const i8 [2, 2, 1] scale 0.5, 2 zero 0, 0 axis 1 values 1, 3, 2, 4\n"
                "node y i8 [1, 2, 1] scale 1 zero 0 = conv_transpose x, w\noutput y\n",
                4, 36);
}

static void gains_of_other_floats_are_numbers_too(void **state)
{
    (void)state;
    /* rms 8: 1, 1, -1 times 1, 0.5, 1.5 in 64ths */
#define NORM(type) \
    "tensor x = const i8 [1, 3] scale 1 zero 0 values 8, 8, -8\n" \
    "tensor g = const " type " [3] values 1, 0.5, 1.5\n" \
    "node y i8 [1, 3] scale 0.015625 zero 0 = rmsnorm x, g epsilon=0.00001\noutput y\n"
    CHECK_NEAR(NORM("f32"), 0.02, 64, 32, -96);
    CHECK_NEAR(NORM("f16"), 0.02, 64, 32, -96);
    CHECK_NEAR(NORM("bf16"), 0.02, 64, 32, -96);
    CHECK_NEAR(NORM("f64"), 0.02, 64, 32, -96);
#undef NORM
    CHECK_NEAR("tensor x = const i8 [1, 3] scale 1 zero 0 values 8, 8, -8\n"
               "tensor c = const f32 [3] values 0.5, 0.25, 0.75\n"
               "node g f32 [3] = add c, c\n"
               "node y i8 [1, 3] scale 0.015625 zero 0 = rmsnorm x, g epsilon=0.00001\noutput y\n",
               0.02, 64, 32, -96);
    CHECK_GIVES("tensor x = const f64 [4] values 0.25, -0.74, 100, -1\n"
                "node y i8 [4] scale 0.5 zero 1 = quantize x to=i8\noutput y\n",
                2, 0, 127, -1);
}

static void the_nearest_element_is_what_the_rounding_says(void **state)
{
    (void)state;
#define RESIZE(rounding, size) \
    "tensor x = const i8 [1, 1, 4, 1] scale 1 zero 0 values 1, 2, 3, 4\n" \
    "node y i8 [1, 1, " size ", 1] scale 1 zero 0 = resize x sizes=[1, 1, " size ", 1] " \
    "mode=nearest " rounding "\noutput y\n"
    CHECK_GIVES(RESIZE("coordinates=half_pixel rounding=round_prefer_ceil", "2"), 2, 4);
    CHECK_GIVES(RESIZE("coordinates=half_pixel rounding=round_prefer_floor", "2"), 1, 3);
    CHECK_GIVES(RESIZE("coordinates=asymmetric rounding=floor", "6"), 1, 1, 2, 3, 3, 4);
    CHECK_GIVES(RESIZE("coordinates=asymmetric rounding=ceil", "6"), 1, 2, 3, 3, 4, 4);
#undef RESIZE
    CHECK_GIVES("tensor x = const i16 [2, 1] scale 1 zero 0 values 300, -300\n"
                "node y i16 [4, 1] scale 1 zero 0 = resize x sizes=[4, 1] mode=nearest "
                "coordinates=asymmetric rounding=floor\noutput y\n",
                300, 300, -300, -300);
}

static void expect_refused(const char *text, const char *message)
{
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph = graph_of(ctx, text);
    muc_ref *ref;

    CHECK(muc_ref_open(ctx, graph, &ref) != MUC_OK);
    if (!strstr(muc_error_message(ctx), message))
        fail_msg("'%s', expected '%s'", muc_error_message(ctx), message);
    muc_graph_free(graph);
    muc_context_free(ctx);
}

static void what_no_run_could_compute_is_refused_when_a_session_opens(void **state)
{
    (void)state;
    expect_refused("graph test\ntensor x = input i8 [1, 5000] scale 1 zero 0\n"
                   "node y i8 [1, 5000] scale 0.00390625 zero -128 = softmax x axis=1\noutput y\n",
                   "a quantized softmax of 5000 elements of i8");
    expect_refused("graph test\ninput m 1..5000\ntensor x = input i8 [1, m] scale 1 zero 0\n"
                   "node y i8 [1, m] scale 0.00390625 zero -128 = softmax x axis=1\noutput y\n",
                   "a quantized softmax of 5000 elements of i8");
    expect_refused("graph test\ntensor x = input i16 [2] scale 1 zero 0\n"
                   "tensor z = input i16 [2] scale 1 zero 0\n"
                   "node y i16 [2] scale 1 zero 0 = div x, z\noutput y\n",
                   "a quantized quotient of 16 bits");
    expect_refused("graph test\ntensor x = input i16 [2] scale 1 zero 0\n"
                   "node y i16 [2] scale 1 zero 0 = tanh x\noutput y\n",
                   "a table of int16 is for sigmoid and tanh");
    expect_refused("graph test\ntensor x = input i8 [1, 3] scale 1 zero 0\n"
                   "tensor g = const f32 [3] values 1, 2, 3\n"
                   "node y i8 [1, 3] scale 1 zero 0 = rmsnorm x, g epsilon=1e30\noutput y\n",
                   "whose numbers 32 bits do not hold");
    expect_refused("graph test\ntensor x = input i8 [1, 1, 4, 1] scale 1 zero 0\n"
                   "node y i8 [1, 1, 6, 1] scale 1 zero 0 = resize x sizes=[1, 1, 6, 1] "
                   "mode=cubic\noutput y\n",
                   "a quantized resize that TFLite does not know");
    expect_refused("graph test\ntensor x = input f32 [3, 2]\n"
                   "tensor w = const u8 [1, 2] scale 0.1 zero 0 values 1, 2\n"
                   "node y f32 [3, 1] = linear x, w\noutput y\n",
                   "'w' beside real numbers, expected i8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_greater_and_the_lesser_of_two_scales),
        cmocka_unit_test(padding_counts_in_a_mean_as_zero),
        cmocka_unit_test(transposed_convolutions_take_channels_in_either_order),
        cmocka_unit_test(gains_of_other_floats_are_numbers_too),
        cmocka_unit_test(the_nearest_element_is_what_the_rounding_says),
        cmocka_unit_test(what_no_run_could_compute_is_refused_when_a_session_opens),
    };

    return cmocka_run_group_tests_name("operators_quantized", tests, NULL, NULL);
}
