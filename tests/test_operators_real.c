/* test_operators_real.c - functions, norms and reductions of real numbers, against libm and sums
 * worked out by hand. */
#include "operators.h"

#include "base/real.h"

typedef double function(double x);

/* ours and libm's agree to `most` units in the last place of a double on from..to */
static void check_function(const char *name, function *ours, function *theirs, double from,
                           double to, double most)
{
    for (int i = 0; i <= 4000; i++) {
        double x = from + (to - from) * i / 4000, found = ours(x), expected = theirs(x);
        double unit = fmax(fabs(expected), 1e-300) * 0x1p-52;

        if (!(fabs(found - expected) <= most * unit))
            fail_msg("%s(%.17g) = %.17g, libm %.17g", name, x, found, expected);
    }
}

static void functions_agree_with_libm(void **state)
{
    (void)state;
    check_function("expm1", muc_expm1, expm1, -3, 3, 6);
    check_function("log1p", muc_log1p, log1p, -0.9, 3, 6);
    check_function("tanh", muc_tanh, tanh, -25, 25, 6);
    check_function("tanh", muc_tanh, tanh, -1e-3, 1e-3, 6);
    check_function("erf", muc_erf, erf, -7, 7, 12);
    check_function("atan", muc_atan, atan, -3, 3, 4);
    check_function("atan", muc_atan, atan, -1e6, 1e6, 4);
    CHECK(isnan(muc_tanh(NAN)) && isnan(muc_erf(NAN)) && isnan(muc_atan(NAN)));
    CHECK(muc_tanh(INFINITY) == 1 && muc_erf(-INFINITY) == -1);
    CHECK(fabs(muc_atan(INFINITY) - 1.57079632679489661923) < 1e-15);
}

#define X "tensor x = const f32 [5] values -3, -0.5, 0, 1, 4\n"

static void activations_follow_their_formulas(void **state)
{
    (void)state;
    CHECK_GIVES(X "node y f32 [5] = relu x\n", 0, 0, 0, 1, 4);
    CHECK_GIVES(X "node y f32 [5] = leaky_relu x alpha=0.5\n", -1.5, -0.25, 0, 1, 4);
    CHECK_GIVES(X "node y f32 [5] = hard_sigmoid x alpha=0.25 beta=0.5\n", 0, 0.375, 0.5, 0.75, 1);
    CHECK_NEAR(X "node y f32 [5] = hard_swish x\n", 1e-7, 0, -0.5 * (0.5 - 0.5 / 6), 0,
               0.5 + 1 / 6.0, 4);
    CHECK_NEAR(X "node y f32 [5] = sigmoid x\n", 1e-7, 1 / (1 + exp(3)), 1 / (1 + exp(0.5)), 0.5,
               1 / (1 + exp(-1)), 1 / (1 + exp(-4)));
    CHECK_NEAR(X "node y f32 [5] = silu x\n", 1e-6, -3 / (1 + exp(3)), -0.5 / (1 + exp(0.5)), 0,
               1 / (1 + exp(-1)), 4 / (1 + exp(-4)));
    CHECK_NEAR(X "node y f32 [5] = elu x alpha=2\n", 1e-7, 2 * expm1(-3), 2 * expm1(-0.5), 0, 1, 4);
    CHECK_NEAR(X "node y f32 [5] = celu x alpha=2\n", 1e-7, 2 * expm1(-1.5), 2 * expm1(-0.25), 0, 1,
               4);
    CHECK_NEAR(X "node y f32 [5] = selu x alpha=2 gamma=3\n", 1e-6, 6 * expm1(-3), 6 * expm1(-0.5),
               0, 3, 12);
    CHECK_NEAR(X "node y f32 [5] = gelu x\n", 1e-7, -1.5 * (1 + erf(-3 / sqrt(2))),
               -0.25 * (1 + erf(-0.5 / sqrt(2))), 0, 0.5 * (1 + erf(1 / sqrt(2))),
               2 * (1 + erf(4 / sqrt(2))));
    CHECK_NEAR(X "node y f32 [5] = softplus x\n", 1e-7, log1p(exp(-3)), log1p(exp(-0.5)), log(2),
               log1p(exp(1)), log1p(exp(4)));
    CHECK_GIVES(X "node y f32 [5] = softsign x\n", -0.75, (float)(-1 / 3.0), 0, 0.5, (float)0.8);
    CHECK_GIVES(X "node y f32 [5] = thresholded_relu x alpha=1\n", 0, 0, 0, 0, 4);
    CHECK_GIVES(X "node y f32 [5] = shrink x bias=0.5 lambda=1\n", -2.5, 0, 0, 0, 3.5);
    CHECK_GIVES(X "tensor low = const f32 [] values -1\n"
                  "node y f32 [5] = clip x, low\n",
                -1, -0.5, 0, 1, 4);
    CHECK_GIVES(X "tensor high = const f32 [] values 0.25\n"
                  "node y f32 [5] = clip x, *, high\n",
                -3, -0.5, 0, 0.25, 0.25);
}

static void rounding_and_signs(void **state)
{
    (void)state;
#define R "tensor x = const f32 [6] values -2.5, -1.5, 0.5, 1.5, 2.3, -0.7\n"
    CHECK_GIVES(R "node y f32 [6] = round x\n", -2, -2, 0, 2, 2, -1);
    CHECK_GIVES(R "node y f32 [6] = floor x\n", -3, -2, 0, 1, 2, -1);
    CHECK_GIVES(R "node y f32 [6] = ceil x\n", -2, -1, 1, 2, 3, 0);
    CHECK_GIVES(R "node y f32 [6] = sign x\n", -1, -1, 1, 1, 1, -1);
    CHECK_GIVES("tensor x = const i8 [3] values -128, -5, 7\n"
                "node y i8 [3] = abs x\n",
                -128, 5, 7);
    CHECK_GIVES("tensor x = const f32 [4] values nan, inf, -inf, 0\n"
                "node y bool [4] = is_inf x detect_negative=0\n",
                0, 1, 0, 0);
    CHECK_GIVES("tensor x = const f32 [4] values nan, inf, -inf, 0\n"
                "node y bool [4] = is_nan x\n",
                1, 0, 0, 0);
}

static void casts_truncate_saturate_and_wrap(void **state)
{
    (void)state;
    CHECK_GIVES("tensor x = const f32 [6] values -1.9, 1.9, 300, -300, nan, inf\n"
                "node y i8 [6] = cast x to=i8\n",
                -1, 1, 127, -128, 0, 127);
    CHECK_GIVES("tensor x = const i32 [3] values 300, -1, 127\n"
                "node y i8 [3] = cast x to=i8\n",
                44, -1, 127);
    CHECK_GIVES("tensor x = const f64 [2] values 18446744073709551615, 9.3e18\n"
                "node z u64 [2] = cast x to=u64\n"
                "node y f64 [2] = cast z to=f64\n",
                18446744073709551616.0, 9.3e18);
    CHECK_GIVES("tensor x = const f32 [3] values 0, 0.25, -3\n"
                "node y bool [3] = cast x to=bool\n",
                0, 1, 1);
    CHECK_GIVES("tensor x = const f32 [2] values 2049, 65520\n"
                "node y f16 [2] = cast x to=f16\n",
                2048, INFINITY);
}

static void powers_and_rests(void **state)
{
    (void)state;
    CHECK_NEAR("tensor a = const f32 [6] values 2, -2, 9, 0, -8, 10\n"
               "tensor b = const f32 [6] values 3, 3, 0.5, -1, 0.5, -2\n"
               "node y f32 [6] = pow a, b\n",
               1e-7, 8, -8, 3, INFINITY, NAN, 0.01);
    CHECK_GIVES("tensor a = const i32 [4] values 2, -3, -1, 7\n"
                "tensor b = const f32 [4] values 10, 3, -3, -1\n"
                "node y i32 [4] = pow a, b\n",
                1024, -27, -1, 0);
    CHECK_GIVES("tensor a = const i32 [4] values -7, 7, -7, 7\n"
                "tensor b = const i32 [4] values 3, -3, -3, 0\n"
                "node y i32 [4] = mod a, b\n",
                2, -2, -1, 0);
    CHECK_GIVES("tensor a = const f32 [2] values -7, 7\n"
                "tensor b = const f32 [2] values 3, -3\n"
                "node y f32 [2] = mod a, b fmod=1\n",
                -1, 1);
    CHECK_GIVES("tensor a = const u8 [3] values 129, 255, 1\n"
                "tensor b = const u8 [3] values 1, 4, 9\n"
                "node y u8 [3] = bit_shift a, b direction=left\n",
                2, 240, 0);
}

static void choices_and_comparisons(void **state)
{
    (void)state;
    CHECK_GIVES("tensor c = const bool [2, 1] values 1, 0\n"
                "tensor a = const i16 [2] values 1, 2\n"
                "tensor b = const i16 [] values -9\n"
                "node y i16 [2, 2] = where c, a, b\n",
                1, 2, -9, -9);
    CHECK_GIVES("tensor a = const u64 [2] values 18446744073709551615, 1\n"
                "tensor b = const u64 [] values 2\n"
                "node y bool [2] = greater a, b\n",
                1, 0);
    CHECK_GIVES("tensor a = const bool [4] values 0, 0, 1, 1\n"
                "tensor b = const bool [4] values 0, 1, 0, 1\n"
                "node y bool [4] = xor a, b\n",
                0, 1, 1, 0);
}

#define M "tensor x = const f32 [2, 3] values 1, -2, 3, 4, 5, -6\n"

static void reductions_over_any_axes(void **state)
{
    (void)state;
    CHECK_GIVES(M "node y f32 [2, 1] = reduce_sum x axes=[1]\n", 2, 3);
    CHECK_GIVES(M "node y f32 [3] = reduce_max x axes=[0] keep_dims=0\n", 4, 5, 3);
    CHECK_GIVES(M "node y f32 [] = reduce_min x axes=[0, 1] keep_dims=0\n", -6);
    CHECK_GIVES(M "node y f32 [1, 3] = reduce_mean x axes=[0]\n", 2.5, 1.5, -1.5);
    CHECK_GIVES(M "node y f32 [2, 3] = reduce_sum x axes=[]\n", 1, -2, 3, 4, 5, -6);
    CHECK_GIVES(M "node y f32 [2, 1] = reduce_prod x axes=[1]\n", -6, -120);
    CHECK_GIVES(M "node y f32 [2, 1] = reduce_l1 x axes=[1]\n", 6, 15);
    CHECK_NEAR(M "node y f32 [2, 1] = reduce_l2 x axes=[1]\n", 1e-7, sqrt(14), sqrt(77));
    CHECK_GIVES(M "node y f32 [2, 1] = reduce_sum_square x axes=[1]\n", 14, 77);
    CHECK_NEAR(M "node y f32 [2, 1] = reduce_log_sum_exp x axes=[1]\n", 1e-7,
               log(exp(1) + exp(-2) + exp(3)), log(exp(4) + exp(5) + exp(-6)));
    CHECK_GIVES("tensor x = const i8 [1, 3] values 100, 100, 3\n"
                "node y i8 [1, 1] = reduce_mean x axes=[1]\n",
                67);
    CHECK_GIVES("tensor x = const u64 [2] values 18446744073709551615, 1\n"
                "node z u64 [] = reduce_min x axes=[0] keep_dims=0\n"
                "node y i32 [] = cast z to=i32\n",
                1);
    CHECK_GIVES("tensor x = const f32 [2, 0] bytes 0\n"
                "node y f32 [2] = reduce_max x axes=[1] keep_dims=0\n",
                -INFINITY, -INFINITY);
}

static void greatest_elements_and_running_sums(void **state)
{
    (void)state;
#define G "tensor x = const f32 [2, 3] values 3, 1, 3, 2, 5, 4\n"
    CHECK_GIVES(G "node y i64 [2] = arg_max x axis=1 keep_dims=0\n", 0, 1);
    CHECK_GIVES(G "node y i64 [2] = arg_max x axis=1 keep_dims=0 select_last=1\n", 2, 1);
    CHECK_GIVES(G "node y i64 [1, 3] = arg_min x axis=0\n", 1, 0, 0);
    CHECK_GIVES(G "node y f32 [2, 2], i i64 [2, 2] = top_k x axis=1 k=2\n", 3, 3, 5, 4);
    CHECK_GIVES(G "node v f32 [2, 2], y i64 [2, 2] = top_k x axis=1 k=2\n", 0, 2, 1, 2);
    CHECK_GIVES(G "node v f32 [1, 3], y i64 [1, 3] = top_k x axis=0 k=1 largest=0\n", 1, 0, 0);
    CHECK_GIVES(G "node y f32 [2, 3] = cum_sum x axis=1\n", 3, 4, 7, 2, 7, 11);
    CHECK_GIVES(G "node y f32 [2, 3] = cum_sum x axis=1 exclusive=1 reverse=1\n", 4, 3, 0, 9, 4, 0);
    CHECK_GIVES(G "node y f32 [2, 3] = hardmax x axis=1\n", 1, 0, 0, 0, 1, 0);
    CHECK_NEAR(G "node y f32 [2, 3] = log_softmax x axis=0\n", 1e-7, -log1p(exp(-1)),
               -4 - log1p(exp(-4)), -1 - log1p(exp(-1)), -1 - log1p(exp(-1)), -log1p(exp(-4)),
               -log1p(exp(-1)));
    CHECK_NEAR(G "node y f32 [2, 3] = lp_norm x axis=0 p=1\n", 1e-7, 0.6, 1 / 6.0, 3 / 7.0, 0.4,
               5 / 6.0, 4 / 7.0);
}

static void norms_centre_and_scale(void **state)
{
    (void)state;
    CHECK_GIVES("tensor x = const f32 [1, 2, 2] values 1, 2, 3, 4\n"
                "tensor s = const f32 [2] values 2, 1\n"
                "tensor b = const f32 [2] values 0, 10\n"
                "tensor m = const f32 [2] values 1, 3\n"
                "tensor v = const f32 [2] values 4, 0.25\n"
                "node y f32 [1, 2, 2] = batch_norm x, s, b, m, v epsilon=0\n",
                0, 1, 10, 12);
    CHECK_GIVES("tensor x = const f32 [1, 2, 2] values 1, 3, 2, 4\n"
                "tensor s = const f32 [2] values 2, 1\n"
                "tensor b = const f32 [2] values 0, 10\n"
                "tensor m = const f32 [2] values 1, 3\n"
                "tensor v = const f32 [2] values 4, 0.25\n"
                "node y f32 [1, 2, 2] = batch_norm x, s, b, m, v epsilon=0 channels_last=1\n",
                0, 10, 1, 12);
    CHECK_GIVES("tensor x = const f32 [1, 2, 2] values 1, 3, 10, 20\n"
                "tensor s = const f32 [2] values 1, 2\n"
                "tensor b = const f32 [2] values 0, 1\n"
                "node y f32 [1, 2, 2] = instance_norm x, s, b epsilon=0\n",
                -1, 1, -1, 3);
    CHECK_NEAR("tensor x = const f32 [1, 2, 2, 1] values 1, 3, 5, 7\n"
               "tensor s = const f32 [2] values 1, 2\n"
               "tensor b = const f32 [2] values 0, 1\n"
               "node y f32 [1, 2, 2, 1] = group_norm x, s, b groups=1 epsilon=0\n",
               1e-6, -3 / sqrt(5), -1 / sqrt(5), 1 + 2 / sqrt(5), 1 + 6 / sqrt(5));
    CHECK_NEAR("tensor x = const f32 [1, 1, 2, 2] values 1, 3, 5, 7\n"
               "tensor s = const f32 [2] values 1, 2\n"
               "tensor b = const f32 [2] values 0, 1\n"
               "node y f32 [1, 1, 2, 2] = group_norm x, s, b groups=1 epsilon=0 channels_last=1\n",
               1e-6, -3 / sqrt(5), 1 - 2 / sqrt(5), 1 / sqrt(5), 1 + 6 / sqrt(5));
    CHECK_GIVES("tensor x = const f32 [2, 2] values 1, 3, 10, 20\n"
                "tensor s = const f32 [2] values 1, 2\n"
                "tensor b = const f32 [2] values 0, 1\n"
                "node y f32 [2, 2], m f32 [2, 1], d f32 [2, 1] = layer_norm x, s, b axis=1 "
                "epsilon=0\n",
                -1, 3, -1, 3);
    CHECK_GIVES("tensor x = const f32 [2, 2] values 1, 3, 10, 20\n"
                "tensor s = const f32 [2] values 1, 2\n"
                "node n f32 [2, 2], m f32 [2, 1], y f32 [2, 1] = layer_norm x, s axis=1 "
                "epsilon=0\n",
                1, (float)0.2);
    CHECK_NEAR("tensor x = const f32 [1, 3, 1] values 1, 2, 3\n"
               "node y f32 [1, 3, 1] = lrn x alpha=3 beta=0.5 bias=1 window=3\n",
               1e-7, 1 / sqrt(6), 2 / sqrt(15), 3 / sqrt(14));
    CHECK_NEAR("tensor x = const f64 [1, 2] values 3, 4\n"
               "tensor g = const f64 [2] values 1, 2\n"
               "node y f64 [1, 2] = rmsnorm x, g epsilon=0\n",
               1e-15, 3 / sqrt(12.5), 8 / sqrt(12.5));
}

static void averages_count_what_they_should(void **state)
{
    (void)state;
#define A "tensor x = const f32 [1, 1, 3] values 3, 5, 9\n"
    CHECK_GIVES(A "node y f32 [1, 1, 2] = average_pool x kernel=[2]\n", 4, 7);
    CHECK_GIVES(A "node y f32 [1, 1, 2] = average_pool x kernel=[2] strides=[2] pads=[1, 0]\n", 3,
                7);
    CHECK_GIVES(A "node y f32 [1, 1, 2] = average_pool x kernel=[2] strides=[2] pads=[1, 0] "
                  "count_include_pad=1\n",
                1.5, 7);
    CHECK_GIVES(A "node y f32 [1, 1, 2] = average_pool x kernel=[2] strides=[2] ceil_mode=1 "
                  "count_include_pad=1\n",
                4, 9);
    CHECK_GIVES("tensor x = const f32 [1, 1, 2] values 3, -4\n"
                "node y f32 [1, 1, 1] = lp_pool x kernel=[2] p=2\n",
                5);
}

static void products_with_factors(void **state)
{
    (void)state;
#define AB \
    "tensor a = const f32 [2, 2] values 1, 2, 3, 4\ntensor b = const f32 [2, 2] values 5, 6, 7, " \
    "8\n"
    CHECK_GIVES(AB "node y f32 [2, 2] = gemm a, b\n", 19, 22, 43, 50);
    CHECK_GIVES(AB "tensor c = const f32 [2] values 1, -1\n"
                   "node y f32 [2, 2] = gemm a, b, c alpha=2 beta=10 transpose_a=1\n",
                62, 50, 86, 78);
    CHECK_GIVES(AB "tensor c = const f32 [2, 1] values 1, -1\n"
                   "node y f32 [2, 2] = gemm a, b, c transpose_b=1\n",
                18, 24, 38, 52);
    CHECK_GIVES("tensor a = const f64 [1, 1, 2] values 1, 2\n"
                "tensor w = const f64 [3, 2] values 1, 2, 3, 4, 5, 6\n"
                "tensor b = const f64 [3] values 0, 0, 1\n"
                "node y f64 [1, 1, 3] = linear a, w, b\n",
                5, 11, 18);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_agree_with_libm),
        cmocka_unit_test(activations_follow_their_formulas),
        cmocka_unit_test(rounding_and_signs),
        cmocka_unit_test(casts_truncate_saturate_and_wrap),
        cmocka_unit_test(powers_and_rests),
        cmocka_unit_test(choices_and_comparisons),
        cmocka_unit_test(reductions_over_any_axes),
        cmocka_unit_test(greatest_elements_and_running_sums),
        cmocka_unit_test(norms_centre_and_scale),
        cmocka_unit_test(averages_count_what_they_should),
        cmocka_unit_test(products_with_factors),
    };

    return cmocka_run_group_tests_name("operators_real", tests, NULL, NULL);
}
