/* Operators written out in steps become one, compute the same, and only where they are that. */
#include "chance.h"
#include "operators.h"
#include "passes/simplify/patterns.h"

enum { ROWS = 3, WIDTH = 6, ELEMENTS = ROWS * WIDTH };

static const char head[] = "graph steps\n"
                           "tensor x = input f32 [1, 3, 6]\n"
                           "tensor two = const f32 [] values 2\n"
                           "tensor one = const f32 [] values 1\n"
                           "tensor half = const f32 [1] values 0.5\n"
                           "tensor minus_half = const f32 [] values -0.5\n"
                           "tensor three = const f32 [] values 3\n"
                           "tensor zero = const f32 [] values 0\n"
                           "tensor six = const f32 [] values 6\n"
                           "tensor eps = const f32 [] values 0.001\n"
                           "tensor root2 = const f32 [] values 1.41421354\n"
                           "tensor inverse_root2 = const f32 [] values 0.707106769\n"
                           "tensor pi = const f32 [] values 0.797884583\n"
                           "tensor cubic = const f32 [] values 0.044715\n"
                           "tensor quick = const f32 [] values 1.702\n"
                           "tensor odd = const f32 [] values 1.5\n"
                           "tensor g = const f32 [6] values 1, 2, -0.5, 0.25, 3, -1\n"
                           "tensor b = const f32 [1, 6] values 0.1, -0.2, 0.3, 0, 1, 2\n"
                           "tensor gains = const f32 [3] values 1, -2, 0.5\n"
                           "tensor biases = const f32 [3] values 0.5, 0, -1\n"
                           "tensor part = const f32 [1] values 2\n"
                           "tensor column = const f32 [3, 1] values 3, 0.25, -1\n";

static muc_graph *graph_of_steps(muc_context *ctx, const char *steps)
{
    muc_text text = { 0 };
    muc_graph *graph;

    muc_text_add(&text, "%s%soutput y\n", head, steps);
    graph = graph_of(ctx, text.data);
    muc_text_free(&text);
    return graph;
}

static void run(muc_context *ctx, muc_graph *graph, const float *x, float *y)
{
    const muc_ref_input input = { "x", x, ELEMENTS * sizeof(*x) };
    const uint32_t bindings[1] = { 0 };
    muc_ref_view view;
    muc_ref *ref;

    CHECK_OK(ctx, muc_ref_open(ctx, graph, &ref));
    CHECK_OK(ctx, muc_ref_run(ref, bindings, &input, 1));
    CHECK(muc_ref_get(ref, graph->outputs[0], &view));
    CHECK_EQ(view.elements, ELEMENTS);
    memcpy(y, view.data, ELEMENTS * sizeof(*y));
    muc_ref_close(ref);
}

/* what is left of the steps, "op op", computes what they did */
static void check_steps(int line, const char *steps, const char *expected)
{
    muc_context *ctx = muc_context_new(1);
    muc_graph *before = graph_of_steps(ctx, steps), *after = graph_of_steps(ctx, steps);
    float x[ELEMENTS], y[ELEMENTS], z[ELEMENTS];
    muc_text found = { 0 };

    CHECK_OK(ctx, muc_recognise(ctx, after));
    for (uint32_t n = 0; n < after->node_count; n++)
        muc_text_add(&found, "%s%s", n ? " " : "", muc_op_get(after->nodes[n].op)->name);
    if (strcmp(found.data, expected) != 0)
        fail_msg("line %d: '%s', expected '%s'", line, found.data, expected);
    for (unsigned i = 0; i < ELEMENTS; i++)
        x[i] = (float)(3 * random_gaussian());
    run(ctx, before, x, y);
    run(ctx, after, x, z);
    for (unsigned i = 0; i < ELEMENTS; i++)
        if (y[i] != z[i] && !(fabsf(y[i] - z[i]) <= 1e-5f * fmaxf(1, fabsf(y[i]))))
            fail_msg("line %d: element %u is %.9g, was %.9g", line, i, (double)z[i], (double)y[i]);
    muc_text_free(&found);
    muc_graph_free(before);
    muc_graph_free(after);
    muc_context_free(ctx);
}

#define CHECK_STEPS(steps, expected) check_steps(__LINE__, steps, expected)
#define NODE(name, op) "node " name " f32 [1, 3, 6] = " op "\n"
#define ROW(name, op) "node " name " f32 [1, 3, 1] = " op "\n"
#define VARIANCE \
    ROW("m", "reduce_mean x axes=[2]") \
    NODE("d", "sub x, m") \
    NODE("p", "pow d, two") ROW("v", "reduce_mean p axes=[2]") ROW("e", "add v, eps")

static void norms_of_exporters_are_found(void **state)
{
    (void)state;
    /* torch, with gain and bias */
    CHECK_STEPS(VARIANCE ROW("s", "sqrt e") NODE("n", "div d, s") NODE("k", "mul n, g")
                    NODE("y", "add k, b"),
                "layer_norm");
    /* a product with the inverse, the square as a product, nothing behind it */
    CHECK_STEPS(ROW("m", "reduce_mean x axes=[2]") NODE("d", "sub x, m") NODE("p", "mul d, d")
                    ROW("v", "reduce_mean p axes=[2]") ROW("e", "add eps, v") ROW("s", "sqrt e")
                        ROW("r", "reciprocal s") NODE("y", "mul d, r"),
                "layer_norm");
    CHECK_STEPS(VARIANCE ROW("r", "pow e, minus_half") NODE("y", "mul r, d"), "layer_norm");
    /* keras: the gain in the inverse, the mean in the bias */
    CHECK_STEPS(VARIANCE ROW("s", "sqrt e") ROW("r", "reciprocal s") NODE("k", "mul r, g")
                    NODE("a", "mul x, k") NODE("mk", "mul m, k") NODE("c", "sub b, mk")
                        NODE("y", "add a, c"),
                "layer_norm");
    /* of the root mean square */
    CHECK_STEPS(NODE("p", "pow x, two") ROW("v", "reduce_mean p axes=[2]") ROW("e", "add v, eps")
                    ROW("s", "sqrt e") ROW("r", "div one, s") NODE("n", "mul x, r")
                        NODE("y", "mul g, n"),
                "rmsnorm");
    /* the bias first, then a gain over both */
    CHECK_STEPS(VARIANCE ROW("s", "sqrt e") NODE("n", "div d, s") NODE("k", "add n, b")
                    NODE("y", "mul k, g"),
                "layer_norm");
}

#define INSTANCES(gain) NODE("n", "instance_norm x, " gain ", biases epsilon=1e-3")
#define FLAT(name, op) "node " name " f32 [1, 1, 18] = " op "\n"

static void gains_of_channels_join_their_norm(void **state)
{
    (void)state;
    CHECK_STEPS(INSTANCES("gains") NODE("y", "mul n, column"), "instance_norm");
    CHECK_STEPS(INSTANCES("gains") NODE("y", "add column, n"), "instance_norm");
    CHECK_STEPS(INSTANCES("gains") NODE("k", "add n, column") NODE("y", "mul k, two"),
                "instance_norm");
    CHECK_STEPS(FLAT("f", "reshape x shape=[1, 1, 18]")
                    FLAT("n", "instance_norm f, part, half epsilon=1e-3")
                        NODE("u", "reshape n shape=[1, 3, 6]") NODE("k", "mul u, column")
                            NODE("y", "add k, column"),
                "group_norm");
    /* a constant of columns, another reader */
    CHECK_STEPS(INSTANCES("gains") NODE("y", "mul n, b"), "instance_norm mul");
    CHECK_STEPS(INSTANCES("gains") NODE("k", "mul n, column") NODE("y", "add k, n"),
                "instance_norm mul add");
}

static void functions_of_exporters_are_found(void **state)
{
    (void)state;
    CHECK_STEPS(NODE("d", "div x, root2") NODE("e", "erf d") NODE("o", "add e, one")
                    NODE("k", "mul x, o") NODE("y", "mul k, half"),
                "gelu");
    CHECK_STEPS(NODE("d", "mul x, inverse_root2") NODE("e", "erf d") NODE("o", "add one, e")
                    NODE("k", "mul half, x") NODE("y", "mul k, o"),
                "gelu");
    CHECK_STEPS(NODE("d", "pow x, three") NODE("c", "mul cubic, d") NODE("s", "add x, c")
                    NODE("p", "mul s, pi") NODE("t", "tanh p") NODE("o", "add t, one")
                        NODE("h", "mul x, half") NODE("y", "mul h, o"),
                "gelu");
    CHECK_STEPS(NODE("d", "mul x, x") NODE("q", "mul d, x") NODE("c", "mul cubic, q")
                    NODE("s", "add x, c") NODE("p", "mul s, pi") NODE("t", "tanh p")
                        NODE("o", "add t, one") NODE("h", "mul x, half") NODE("y", "mul h, o"),
                "gelu");
    CHECK_STEPS(NODE("s", "sigmoid x") NODE("y", "mul s, x"), "silu");
    CHECK_STEPS(NODE("a", "mul x, quick") NODE("s", "sigmoid a") NODE("y", "mul x, s"), "silu");
    CHECK_STEPS(NODE("n", "neg x") NODE("e", "exp n") NODE("a", "add e, one") NODE("y", "div x, a"),
                "silu");
    CHECK_STEPS(NODE("n", "neg x") NODE("e", "exp n") NODE("a", "add e, one")
                    NODE("y", "div one, a"),
                "sigmoid");
    CHECK_STEPS(NODE("a", "add x, three") NODE("c", "clip a, zero, six") NODE("k", "mul x, c")
                    NODE("y", "div k, six"),
                "hard_swish");
    CHECK_STEPS(NODE("a", "add x, three") NODE("c", "clip a, zero, six") NODE("k", "div c, six")
                    NODE("y", "mul x, k"),
                "hard_swish");
    CHECK_STEPS(NODE("a", "add x, three") NODE("c", "relu a") NODE("k", "min c, six")
                    NODE("y", "div k, six"),
                "hard_sigmoid");
    CHECK_STEPS(NODE("e", "exp x") NODE("a", "add e, one") NODE("l", "log a") NODE("t", "tanh l")
                    NODE("y", "mul x, t"),
                "mish");
    CHECK_STEPS(NODE("s", "softmax x axis=2") NODE("y", "log s"), "log_softmax");
    CHECK_STEPS(ROW("m", "reduce_max x axes=[2]") NODE("d", "sub x, m") NODE("e", "exp d")
                    ROW("s", "reduce_sum e axes=[2]") NODE("y", "div e, s"),
                "softmax");
    CHECK_STEPS(NODE("y", "div x, g"), "mul");
    CHECK_STEPS(NODE("r", "relu x") NODE("y", "clip r, zero, six"), "clip");
    CHECK_STEPS(NODE("r", "relu x") NODE("y", "clip r, half"), "clip");
}

/* constants that are others, steps that are read elsewhere, dimensions that are not the last */
static void what_is_almost_an_operator_stays(void **state)
{
    (void)state;
    CHECK_STEPS(NODE("d", "div x, odd") NODE("e", "erf d") NODE("o", "add e, one")
                    NODE("k", "mul x, o") NODE("y", "mul k, half"),
                "mul erf add mul mul");
    CHECK_STEPS(NODE("a", "add x, two") NODE("c", "clip a, zero, six") NODE("k", "mul x, c")
                    NODE("y", "div k, six"),
                "add clip mul mul");
    CHECK_STEPS(NODE("s", "sigmoid x") NODE("k", "mul s, x") NODE("y", "add k, s"),
                "sigmoid mul add");
    CHECK_STEPS(NODE("r", "relu x") NODE("y", "clip r, minus_half, six"), "relu clip");
    CHECK_STEPS(NODE("r", "relu x") NODE("y", "clip r, *, six"), "relu clip");
    CHECK_STEPS("node m f32 [1, 1, 6] = reduce_mean x axes=[1]\n" NODE("d", "sub x, m")
                    NODE("p", "pow d, two") "node v f32 [1, 1, 6] = reduce_mean p axes=[1]\n"
                                            "node e f32 [1, 1, 6] = add v, eps\n"
                                            "node s f32 [1, 1, 6] = sqrt e\n" NODE("y", "div d, s"),
                "reduce_mean sub pow reduce_mean add sqrt div");
    CHECK_STEPS(VARIANCE ROW("s", "sqrt e") NODE("n", "div d, s") NODE("y", "add n, s"),
                "reduce_mean sub pow reduce_mean add sqrt div add");
    CHECK_STEPS(VARIANCE ROW("s", "sqrt e") NODE("y", "div x, s"),
                "reduce_mean sub pow reduce_mean add sqrt div");
    CHECK_STEPS(NODE("y", "div x, zero"), "div");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_of_exporters_are_found),
        cmocka_unit_test(gains_of_channels_join_their_norm),
        cmocka_unit_test(functions_of_exporters_are_found),
        cmocka_unit_test(what_is_almost_an_operator_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
