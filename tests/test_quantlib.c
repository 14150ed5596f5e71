/* test_quantlib.c - QuantLib's integer operators: values computed by hand, and the same formulas
 * written another way (128 bits, floor and truncation by comparison instead of by shift). */
#include "base/text.h"
#include "chance.h"
#include "mur_quantlib.h"
#include "operators.h"

__extension__ typedef __int128 wide;

/* floor(a / b), b > 0 */
static wide floor_div(wide a, wide b)
{
    wide q = a / b;

    return q * b > a ? q - 1 : q;
}

static wide clip(wide x, wide lo, wide hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/* floor(sqrt(x)) by counting down from above */
static wide root_of(wide x)
{
    wide low = 0, high = (wide)1 << 33;

    while (high - low > 1) {
        wide middle = (low + high) / 2;

        if (middle * middle <= x)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void add_tensor(muc_text *text, const char *name, const char *type, const int32_t *items,
                       size_t count)
{
    muc_text_add(text, "tensor %s = const %s [%zu] values", name, type, count);
    for (size_t i = 0; i < count; i++)
        muc_text_add(text, "%s %d", i ? "," : "", items[i]);
    muc_text_add(text, "\n");
}

/* a row of n through ref: node is "integer_rmsnorm x, b shift=1" and of that type */
static void run_row(const char *type, const char *node, const int32_t *x, size_t n,
                    const int32_t *b, size_t b_count, const int32_t *c, int32_t *out)
{
    const uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    muc_context *ctx = muc_context_new(1);
    muc_text text = { 0 };
    muc_graph *graph;
    muc_ref_view view;
    muc_ref *ref;

    muc_text_add(&text, "graph test\n");
    add_tensor(&text, "x", "i16", x, n);
    if (b_count)
        add_tensor(&text, "b", "i32", b, b_count);
    if (c)
        add_tensor(&text, "c", "i32", c, n);
    muc_text_add(&text, "node y %s [%zu] = %s\n", type, n, node);
    graph = graph_of(ctx, text.data);
    CHECK_OK(ctx, muc_ref_open(ctx, graph, &ref));
    CHECK_OK(ctx, muc_ref_run(ref, bindings, NULL, 0));
    CHECK(muc_ref_get(ref, muc_graph_find(graph, "y"), &view));
    for (size_t i = 0; i < n; i++)
        out[i] = (int32_t)element_of(&view, i);
    muc_ref_close(ref);
    muc_graph_free(graph);
    muc_text_free(&text);
    muc_context_free(ctx);
}

/* the same with one number after the node: an attribute */
static void run_norm(const char *node, const int32_t *x, const int32_t *weight, const int32_t *bias,
                     size_t n, unsigned shift, int32_t *out)
{
    char with_shift[64];

    snprintf(with_shift, sizeof(with_shift), "%s shift=%u", node, shift);
    run_row("i8", with_shift, x, n, weight, n, bias, out);
}

static void halves_go_up_on_both_sides_of_zero(void **state)
{
    (void)state;
    /* 1.5 -> 2, -1.5 -> -1, 2.5 -> 3, -2.5 -> -2 */
    CHECK_EQ(mur_quantlib_requant(3, 1, 0, 1, -128, 127), 2);
    CHECK_EQ(mur_quantlib_requant(-3, 1, 0, 1, -128, 127), -1);
    CHECK_EQ(mur_quantlib_requant(5, 1, 0, 1, -128, 127), 3);
    CHECK_EQ(mur_quantlib_requant(-5, 1, 0, 1, -128, 127), -2);
    CHECK_EQ(mur_quantlib_requant(-5, 1, 0, 0, -128, 127), -5);
    CHECK_EQ(mur_quantlib_requant(-128, 4170000, 0, 16, -128, 127), -128);
    CHECK_EQ(mur_quantlib_requant(-1, 65536, 0, 16, 0, 255), 0);
    CHECK_EQ(mur_quantlib_requant(300, 65536, 0, 16, 0, 255), 255);
}

static void requantization_is_exact_beyond_32_bits(void **state)
{
    (void)state;
    for (int i = 0; i < 200000; i++) {
        int32_t x = (int32_t)random_u32(), mul = (int32_t)random_u32() >> random_u32() % 31;
        int32_t add = (int32_t)random_u32();
        unsigned shift = random_u32() % 32;
        wide div = (wide)1 << shift;
        wide expected = floor_div((wide)x * mul + add + div / 2, div);

        CHECK_EQ(mur_quantlib_requant(x, mul, add, shift, INT32_MIN, INT32_MAX),
                 clip(expected, INT32_MIN, INT32_MAX));
        CHECK_EQ(mur_quantlib_requant(x, mul, add, shift, -128, 127), clip(expected, -128, 127));
    }
}

static void roots_are_floors(void **state)
{
    (void)state;
    CHECK_EQ(mur_quantlib_root(0), 0);
    CHECK_EQ(mur_quantlib_root(3), 1);
    CHECK_EQ(mur_quantlib_root(4), 2);
    CHECK_EQ(mur_quantlib_root((UINT64_C(1) << 62) - 1), INT32_MAX);
    for (uint64_t i = 1; i < 70000; i += 13) {
        CHECK_EQ(mur_quantlib_root(i * i), i);
        CHECK_EQ(mur_quantlib_root(i * i - 1), i - 1);
    }
}

/* squares 9 + 16 = 25, / 2 = 12, + 1 = 13, s = 3; 3 * 10 / 3 = 10 -> 10 >> 1 = 5;
 * -4 * 10 / 3 = -13 (toward zero), >> 1 = -7 (down) */
static void rmsnorm_truncates_then_floors(void **state)
{
    const int32_t x[2] = { 3, -4 }, weight[2] = { 10, 10 };
    int32_t out[2];

    (void)state;
    run_norm("integer_rmsnorm x, b", x, weight, NULL, 2, 1, out);
    CHECK_EQ(out[0], 5);
    CHECK_EQ(out[1], -7);
    run_norm("integer_rmsnorm x, b", x, (const int32_t[]){ 10000, 10000 }, NULL, 2, 1, out);
    CHECK_EQ(out[0], 127);
    CHECK_EQ(out[1], -128);
}

/* sum -5, / 2 = -2 (toward zero), t = { 0 + 2, -5 + 2 } = { 2, -3 }; squares 13 / 2 + 1 = 7, s = 2;
 * 2 * 100 / 2 + 1 = 101, >> 2 = 25; -3 * 100 / 2 + 1 = -149, >> 2 = -38 (-37.25 down) */
static void layernorm_truncates_its_mean_and_wraps(void **state)
{
    const int32_t x[2] = { 0, -5 }, weight[2] = { 100, 100 }, bias[2] = { 1, 1 };
    int32_t out[2];

    (void)state;
    run_norm("integer_layer_norm x, b, c", x, weight, bias, 2, 2, out);
    CHECK_EQ(out[0], 25);
    CHECK_EQ(out[1], -38);
    /* 2 * 1000 / 2 + 1 = 1001 >> 2 = 250 = -6 in 8 bits; -1499 >> 2 = -375 = -119 - 256 */
    run_norm("integer_layer_norm x, b, c", x, (const int32_t[]){ 1000, 1000 }, bias, 2, 2, out);
    CHECK_EQ(out[0], -6);
    CHECK_EQ(out[1], -119);
}

static void norms_equal_the_same_formulas_in_128_bits(void **state)
{
    enum { N = 13 };

    (void)state;
    for (int round = 0; round < 3000; round++) {
        int32_t x[N], weight[N], bias[N], rms[N], layer[N];
        unsigned shift = random_u32() % 20;
        wide squares = 0, sum = 0, centred = 0, s, mean;

        for (int i = 0; i < N; i++) {
            x[i] = (int32_t)(random_u32() % 65536) - 32768;
            if (round % 2)
                x[i] >>= 8;
            weight[i] = (int32_t)random_u32() >> random_u32() % 31;
            bias[i] = (int32_t)random_u32() >> random_u32() % 31;
            squares += (wide)x[i] * x[i];
            sum += x[i];
        }
        mean = sum < 0 ? -(-sum / N) : sum / N;
        for (int i = 0; i < N; i++)
            centred += (x[i] - mean) * (x[i] - mean);
        run_norm("integer_rmsnorm x, b", x, weight, NULL, N, shift, rms);
        run_norm("integer_layer_norm x, b, c", x, weight, bias, N, shift, layer);
        s = root_of(squares / N + 1);
        for (int i = 0; i < N; i++)
            CHECK_EQ(rms[i],
                     clip(floor_div((wide)x[i] * weight[i] / s, (wide)1 << shift), -128, 127));
        s = root_of(centred / N + 1);
        for (int i = 0; i < N; i++) {
            wide y = floor_div((x[i] - mean) * weight[i] / s + bias[i], (wide)1 << shift);

            CHECK_EQ(layer[i], y - floor_div(y + 128, 256) * 256);
        }
    }
}

/* b 3, c 7, log2 4: x 0 -> z 0, p 0, (3^2 + 7) >> 0 = 16; x -5 -> z 1, p -1, (2^2 + 7) >> 1 = 5;
 * sum 21: 16 * 255 / 21 = 194, 5 * 255 / 21 = 60 */
static void softmax_is_a_shifted_parabola(void **state)
{
    const int32_t x[2] = { 10, 5 }, coefficients[3] = { 3, 7, 4 };
    int32_t out[2];

    (void)state;
    run_row("u8", "integer_softmax x, b levels=256", x, 2, coefficients, 3, NULL, out);
    CHECK_EQ(out[0], 194);
    CHECK_EQ(out[1], 60);
    /* all terms zero: no division by it */
    run_row("u8", "integer_softmax x, b levels=256", x, 2, (const int32_t[]){ 0, 0, 5 }, 3, NULL,
            out);
    CHECK_EQ(out[0], 0);
    CHECK_EQ(out[1], 0);
}

static void softmax_equals_its_definition_in_128_bits(void **state)
{
    enum { N = 9 };

    (void)state;
    for (int round = 0; round < 5000; round++) {
        const int32_t coefficients[3] = { (int32_t)(random_u32() % 400),
                                          (int32_t)(random_u32() % 70000),
                                          1 + (int32_t)(random_u32() % 256) };
        int32_t x[N], out[N];
        wide max = -128, sum = 0, terms[N];

        for (int i = 0; i < N; i++) {
            x[i] = (int32_t)(random_u32() % 256) - 128;
            max = x[i] > max ? x[i] : max;
        }
        for (int i = 0; i < N; i++) {
            wide t = x[i] - max, z = clip(-t / coefficients[2], 0, 31);
            wide root = t + z * coefficients[2] + coefficients[0];

            terms[i] = floor_div(root * root + coefficients[1], (wide)1 << z);
            sum += terms[i];
        }
        run_row("u8", "integer_softmax x, b levels=256", x, N, coefficients, 3, NULL, out);
        for (int i = 0; i < N; i++)
            CHECK_EQ(out[i], sum ? terms[i] * 255 / sum : 0);
    }
}

/* below the maximum by 0, 15, 16, 48, 300: shifts 0, 0, 1, 2, 9; 256 + 256 + 128 + 64 + 0 = 704;
 * 255 * 256 / 704 = 92, then 92, 46, 23, 0 */
static void itamax_halves_every_32_steps(void **state)
{
    const int32_t x[5] = { 100, 85, 84, 52, -200 };
    const int32_t expected[5] = { 92, 92, 46, 23, 0 };
    int32_t out[5];

    (void)state;
    run_row("u8", "ita_max x levels=256", x, 5, NULL, 0, NULL, out);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(out[i], expected[i]);
}

/* groups of 2: { 0, 0 } gives 512; { 64, 0 } shifts it by (64 + 16) >> 5 = 2 to 128 and adds
 * 256 + 64 = 320: 448; 127 * 256 / 448 = 72, shifts 2, 2, 0, 2 */
static void itapartialmax_shifts_the_sum_as_the_maximum_grows(void **state)
{
    const int32_t x[4] = { 0, 0, 64, 0 };
    const int32_t expected[4] = { 18, 18, 72, 18 };
    int32_t out[4];

    (void)state;
    run_row("u8", "ita_max x levels=256 group=2", x, 4, NULL, 0, NULL, out);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(out[i], expected[i]);
    /* a lone group is itamax with 127 in place of 255 */
    run_row("u8", "ita_max x levels=256 group=4", x, 4, NULL, 0, NULL, out);
    CHECK_EQ(out[2], 127 * 256 / (256 + 3 * 64));
}

static void hardswish_clips_its_gate(void **state)
{
    const int32_t coefficients[3] = { 42, 122, 245 };

    (void)state;
    CHECK_EQ(mur_quantlib_hard_swish(0, coefficients), 0);
    CHECK_EQ(mur_quantlib_hard_swish(-123, coefficients), 0);
    CHECK_EQ(mur_quantlib_hard_swish(-100, coefficients), -100 * 22 * 42);
    CHECK_EQ(mur_quantlib_hard_swish(127, coefficients), 127 * 245 * 42);
    /* beyond 32 bits the low ones remain */
    CHECK_EQ(mur_quantlib_hard_swish(1 << 20, (const int32_t[]){ 1 << 12, 0, INT32_MAX }), 0);
    CHECK_EQ(mur_quantlib_hard_swish(3, (const int32_t[]){ 1 << 30, 0, 2 }), INT32_MIN);
    CHECK_EQ(mur_quantlib_hard_swish(5, (const int32_t[]){ 7, 1, -4 }), 0);
}

/* b -40, one 1743. x 10: q 10, l = 1743 - 900 = 843, (1743 + 843) >> 1 = 1293, 12930.
 * x -10: l = -843, 900 >> 1 = 450, -4500. x 50: q 40, l = 1743: 50 * 1743. x -50: 0. */
static void gelu_follows_the_sign(void **state)
{
    const int32_t coefficients[2] = { -40, 1743 };

    (void)state;
    CHECK_EQ(mur_quantlib_gelu(0, coefficients), 0);
    CHECK_EQ(mur_quantlib_gelu(10, coefficients), 12930);
    CHECK_EQ(mur_quantlib_gelu(-10, coefficients), -4500);
    CHECK_EQ(mur_quantlib_gelu(50, coefficients), 50 * 1743);
    CHECK_EQ(mur_quantlib_gelu(-50, coefficients), 0);
    /* one + l odd and negative: one -5, x -1, q 1, l = -(-5 - 9) = 14 -> 9 >> 1 = 4;
     * x 1: l = -14, -19 >> 1 = -10 */
    CHECK_EQ(mur_quantlib_gelu(-1, (const int32_t[]){ -4, -5 }), -4);
    CHECK_EQ(mur_quantlib_gelu(1, (const int32_t[]){ -4, -5 }), -10);
}

/* delta 7, eta 3: 21 a / (3 b + 1), half away from zero */
static void division_rounds_away_from_zero(void **state)
{
    (void)state;
    CHECK_EQ(mur_quantlib_div(1, 1, 7 * 3, 3, 1), (21 + 2) / 4);
    CHECK_EQ(mur_quantlib_div(-1, 1, 7 * 3, 3, 1), -((21 + 2) / 4));
    CHECK_EQ(mur_quantlib_div(2, 1, 7 * 3, 3, 1), 11); /* 10.5 */
    CHECK_EQ(mur_quantlib_div(-2, 1, 7 * 3, 3, 1), -11);
    CHECK_EQ(mur_quantlib_div(5, 0, 7 * 3, 3, 0), 0);
    CHECK_EQ(mur_quantlib_div(1, -1, 7 * 3, 3, 0), -6); /* (21 - 2) / -3 = -6.33 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_go_up_on_both_sides_of_zero),
        cmocka_unit_test(requantization_is_exact_beyond_32_bits),
        cmocka_unit_test(roots_are_floors),
        cmocka_unit_test(rmsnorm_truncates_then_floors),
        cmocka_unit_test(layernorm_truncates_its_mean_and_wraps),
        cmocka_unit_test(norms_equal_the_same_formulas_in_128_bits),
        cmocka_unit_test(softmax_is_a_shifted_parabola),
        cmocka_unit_test(softmax_equals_its_definition_in_128_bits),
        cmocka_unit_test(itamax_halves_every_32_steps),
        cmocka_unit_test(itapartialmax_shifts_the_sum_as_the_maximum_grows),
        cmocka_unit_test(hardswish_clips_its_gate),
        cmocka_unit_test(gelu_follows_the_sign),
        cmocka_unit_test(division_rounds_away_from_zero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
