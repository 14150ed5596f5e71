/* test_integer.c - QuantLib's operators as nodes of a graph: types, broadcasting, rows, states;
 * numbers as worked out in test_quantlib.c. */
#include "operators.h"

static void requantization_broadcasts_and_clamps(void **state)
{
    (void)state;
    /* halves up: 3 * 1 / 2, -3 * 1 / 2; one factor for each channel */
    CHECK_GIVES("tensor x = const i32 [1, 2, 2] values 3, -3, 1000, -1000\n"
                "tensor mul = const i32 [2, 1] values 1, 3\n"
                "tensor add = const i32 [] values 0\n"
                "node y i8 [1, 2, 2] = requant_shift x, mul, add shift=1 clamp_min=-128 "
                "clamp_max=127 to=i8\n",
                2, -1, 127, -128);
    CHECK_GIVES("tensor x = const u8 [3] values 255, 1, 0\n"
                "tensor mul = const i32 [1] values 2\n"
                "tensor add = const i32 [3] values -1, -3, 7\n"
                "node y u8 [3] = requant_shift x, mul, add shift=0 clamp_min=0 clamp_max=255 "
                "to=u8\n",
                255, 0, 7);
    CHECK_GIVES("tensor x = const i16 [2] values -32768, 32767\n"
                "tensor mul = const i32 [] values 65536\n"
                "tensor add = const i32 [] values 0\n"
                "node y i32 [2] = requant_shift x, mul, add shift=0 clamp_min=-2147483648 "
                "clamp_max=2147483647 to=i32\n",
                -2147483648.0, 2147418112.0);
}

/* the numbers of requant_shift after conv_integer, matmul_integer, add, mul */
static void sums_are_requantized_where_they_are_made(void **state)
{
    (void)state;
    /* sums 9 and 6 with the zero point taken off; 9 * 3 + 1 and 6 * 5 - 2, / 4 */
    CHECK_GIVES("tensor x = const u8 [1, 1, 1, 3] values 11, 12, 13\n"
                "tensor w = const i8 [2, 1, 1, 3] values 1, 1, 2, 0, 0, 2\n"
                "tensor mul = const i32 [2] values 3, 5\n"
                "tensor add = const i32 [2] values 1, -2\n"
                "tensor zero = const u8 [] values 10\n"
                "node y i8 [1, 2, 1, 1] = requant_conv x, w, mul, add, zero shift=2 "
                "clamp_min=-128 clamp_max=127 to=i8\n",
                7, 7);
    CHECK_GIVES("tensor x = const i16 [2, 2] values 300, -1, 2, 3\n"
                "tensor w = const i8 [3, 2] values 1, 0, 0, 1, -1, -1\n"
                "tensor mul = const i32 [] values 1\n"
                "tensor add = const i32 [3] values 0, 10, 0\n"
                "node y u8 [2, 3] = requant_linear x, w, mul, add shift=0 clamp_min=0 "
                "clamp_max=255 to=u8\n",
                255, 9, 0, 2, 13, 0);
    CHECK_GIVES("tensor a = const i8 [1, 2] values 3, -4\n"
                "tensor b = const i8 [2, 2] values 5, 6, 7, 8\n"
                "tensor mul = const i32 [] values 1\n"
                "tensor add = const i32 [1] values 0\n"
                "node y i8 [1, 2] = requant_matmul a, b, mul, add shift=1 clamp_min=-7 "
                "clamp_max=127 to=i8\n",
                -6, -7);
    CHECK_GIVES("tensor a = const i8 [2, 1] values -128, 127\n"
                "tensor b = const u8 [2] values 0, 255\n"
                "tensor mul = const i32 [] values 3\n"
                "tensor add = const i32 [] values 2\n"
                "node y i16 [2, 2] = requant_add a, b, mul, add shift=1 clamp_min=-32768 "
                "clamp_max=32767 to=i16\n",
                -191, 192, 192, 574);
    CHECK_GIVES("tensor a = const i16 [2] values -32768, 5\n"
                "tensor b = const i16 [1] values -32768\n"
                "tensor mul = const i32 [] values 1\n"
                "tensor add = const i32 [] values 0\n"
                "node y i32 [2] = requant_mul a, b, mul, add shift=15 clamp_min=-2147483648 "
                "clamp_max=2147483647 to=i32\n",
                32768, -5);
}

static void norms_run_row_by_row(void **state)
{
    (void)state;
    CHECK_GIVES("tensor x = const i8 [2, 2] values 3, -4, 0, 0\n"
                "tensor w = const i32 [1] values 10\n"
                "node y i8 [2, 2] = integer_rmsnorm x, w shift=1\n",
                5, -7, 0, 0);
    CHECK_GIVES("tensor x = const i8 [2] values 0, -5\n"
                "tensor w = const i32 [2] values 100, 1000\n"
                "tensor b = const i32 [1] values 1\n"
                "node y i8 [2] = integer_layer_norm x, w, b shift=2\n",
                25, -119);
}

static void softmaxes_and_gates(void **state)
{
    (void)state;
    CHECK_GIVES("tensor x = const i8 [2, 2] values 10, 5, 5, 10\n"
                "tensor c = const i32 [3] values 3, 7, 4\n"
                "node y u8 [2, 2] = integer_softmax x, c levels=256\n",
                194, 60, 60, 194);
    CHECK_GIVES("tensor x = const i16 [5] values 100, 85, 84, 52, -200\n"
                "node y u8 [5] = ita_max x levels=256\n",
                92, 92, 46, 23, 0);
    CHECK_GIVES("tensor x = const i8 [4] values 0, 0, 64, 0\n"
                "node y u8 [4] = ita_max x levels=256 group=2\n",
                18, 18, 72, 18);
    CHECK_GIVES("tensor x = const i8 [2] values -100, 127\n"
                "tensor c = const i32 [3] values 42, 122, 245\n"
                "node y i32 [2] = integer_hard_swish x, c\n",
                -100.0 * 22 * 42, 127.0 * 245 * 42);
    CHECK_GIVES("tensor x = const i8 [3] values 10, -10, 50\n"
                "tensor c = const i32 [2] values -40, 1743\n"
                "node y i32 [3] = integer_gelu x, c\n",
                12930, -4500, 87150);
    CHECK_GIVES("tensor a = const i32 [2, 1] values 2, -2\n"
                "tensor b = const i8 [2] values 1, 5\n"
                "node y i32 [2, 2] = integer_div a, b delta=7 eta=3 eps=1\n",
                11, 3, -11, -3);
}

static void appended_rows_stay(void **state)
{
    static const char text[] = "graph test\n"
                               "input pos 0..3\n"
                               "input m 1..2\n"
                               "assume pos + m at most 4\n"
                               "tensor new = input i8 [2, m, 1]\n"
                               "tensor cache = state i8 [2, 4, 1]\n"
                               "node y i8 [2, pos + m, 1] = append cache, new axis=1 "
                               "position=pos\n"
                               "output y\n";
    const int8_t first[] = { 1, 2, 11, 12 }, second[] = { 3, 13 };
    const int8_t expected[] = { 1, 2, 3, 11, 12, 13 };
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph = graph_of(ctx, text);
    uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0, 2 };
    muc_ref_input input = { "new", first, sizeof(first) };
    muc_ref_view view;
    muc_ref *ref;

    (void)state;
    CHECK_OK(ctx, muc_ref_open(ctx, graph, &ref));
    CHECK_OK(ctx, muc_ref_run(ref, bindings, &input, 1));
    input = (muc_ref_input){ "new", second, sizeof(second) };
    bindings[0] = 2;
    bindings[1] = 1;
    CHECK_OK(ctx, muc_ref_run(ref, bindings, &input, 1));
    CHECK(muc_ref_get(ref, graph->outputs[0], &view));
    CHECK_EQ(view.elements, 6);
    assert_memory_equal(view.data, expected, sizeof(expected));
    /* a row over is refused, not written */
    bindings[0] = 3;
    bindings[1] = 2;
    input = (muc_ref_input){ "new", first, sizeof(first) };
    CHECK_FAILS(ctx, MUC_USAGE, "at most 4", muc_ref_run(ref, bindings, &input, 1));
    muc_ref_close(ref);
    muc_graph_free(graph);
    muc_context_free(ctx);
}

static void expect_refused(const char *fragment, const char *text)
{
    const muc_bytes bytes = { (const uint8_t *)text, strlen(text), "test" };
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph;

    CHECK_FAILS(ctx, MUC_MALFORMED, fragment, muc_graph_parse(ctx, bytes, &graph));
    muc_context_free(ctx);
}

static void wrong_operands_are_refused_by_name(void **state)
{
    (void)state;
    expect_refused("broadcast", "graph test\n"
                                "tensor x = const i8 [1, 2] values 1, 2\n"
                                "tensor mul = const i32 [2, 1] values 1, 1\n"
                                "tensor add = const i32 [] values 0\n"
                                "node y i8 [1, 2] = requant_shift x, mul, add shift=1 "
                                "clamp_min=-128 clamp_max=127 to=i8\n");
    expect_refused("clamp_min", "graph test\n"
                                "tensor x = const i8 [1] values 1\n"
                                "tensor mul = const i32 [] values 1\n"
                                "node y i8 [1] = requant_shift x, mul, mul shift=1 "
                                "clamp_min=0 clamp_max=255 to=i8\n");
    expect_refused("shift", "graph test\n"
                            "tensor x = const i8 [1] values 1\n"
                            "tensor mul = const i32 [] values 1\n"
                            "node y u8 [1] = requant_shift x, mul, mul shift=32 "
                            "clamp_min=0 clamp_max=255 to=u8\n");
    expect_refused("one element", "graph test\n"
                                  "tensor x = const i8 [1, 2] values 1, 2\n"
                                  "tensor w = const i8 [3, 2] values 1, 0, 0, 1, -1, -1\n"
                                  "tensor mul = const i32 [2] values 1, 1\n"
                                  "node y i8 [1, 3] = requant_linear x, w, mul, mul shift=0 "
                                  "clamp_min=0 clamp_max=127 to=i8\n");
    expect_refused("16 bits", "graph test\n"
                              "tensor x = const i32 [1] values 1\n"
                              "tensor w = const i32 [1] values 1\n"
                              "node y i8 [1] = integer_rmsnorm x, w shift=1\n");
    expect_refused("b, c, log2", "graph test\n"
                                 "tensor x = const i8 [1] values 1\n"
                                 "tensor c = const i32 [2] values 1, 1\n"
                                 "node y u8 [1] = integer_softmax x, c levels=256\n");
    expect_refused("32 bits", "graph test\n"
                              "tensor a = const i32 [1] values 1\n"
                              "node y i32 [1] = integer_div a, a delta=65536 eta=65536 eps=0\n");
    expect_refused("room for position", "graph test\n"
                                        "input pos 0..3\n"
                                        "tensor new = input i8 [2]\n"
                                        "tensor cache = state i8 [4]\n"
                                        "node y i8 [pos + 2] = append cache, new axis=0 "
                                        "position=pos\n");
    expect_refused("a state", "graph test\n"
                              "tensor new = input i8 [2]\n"
                              "tensor cache = input i8 [4]\n"
                              "node y i8 [2] = append cache, new axis=0 position=0\n");
}

/* a record may hold anything: what the arithmetic does not know is refused when it runs */
static void coefficients_out_of_range_are_refused(void **state)
{
    static const char text[] = "graph test\n"
                               "tensor c = input i32 [3]\n"
                               "tensor x = const i8 [2] values 1, 2\n"
                               "node y u8 [2] = integer_softmax x, c levels=256\n"
                               "output y\n";
    const int32_t none[] = { 1, 1, 0 };
    const muc_ref_input input = { "c", none, sizeof(none) };
    const uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph = graph_of(ctx, text);
    muc_ref *ref;

    (void)state;
    CHECK_OK(ctx, muc_ref_open(ctx, graph, &ref));
    CHECK_FAILS(ctx, MUC_MALFORMED, "'c' holds 0 at 2, expected 1..32768",
                muc_ref_run(ref, bindings, &input, 1));
    muc_ref_close(ref);
    muc_graph_free(graph);
    muc_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requantization_broadcasts_and_clamps),
        cmocka_unit_test(sums_are_requantized_where_they_are_made),
        cmocka_unit_test(norms_run_row_by_row),
        cmocka_unit_test(softmaxes_and_gates),
        cmocka_unit_test(appended_rows_stay),
        cmocka_unit_test(wrong_operands_are_refused_by_name),
        cmocka_unit_test(coefficients_out_of_range_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
