/* Constant folding: graphs as text, before and after. */
#include "base/text.h"
#include "passes/simplify/fold.h"
#include "ref/ref.h"

#include "context_fixture.h"

static void check_folded(const char *before, const char *after)
{
    muc_graph *graph;
    muc_text text = { 0 };

    CHECK_OK(ctx, muc_graph_parse(ctx, (muc_bytes){ (const uint8_t *)before, strlen(before), "t" },
                                  &graph));
    CHECK_OK(ctx, muc_fold(ctx, graph));
    CHECK_OK(ctx, muc_graph_verify(ctx, graph));
    muc_graph_print(graph, &text);
    assert_string_equal(text.data, after);
    muc_text_free(&text);
    muc_graph_free(graph);
}

static void what_constants_alone_decide_becomes_a_constant(void **state)
{
    (void)state;
    check_folded("graph t\n"
                 "tensor x = input f32 [2]\n"
                 "tensor a = const f32 [2] values 1, 2\n"
                 "tensor b = const f32 [] values 10\n"
                 "node c f32 [2] = mul a, b\n"
                 "node d f32 [2] = add c, a\n"
                 "node y f32 [2] = add x, d\n"
                 "output y\n",
                 "graph t\n"
                 "tensor x = input f32 [2]\n"
                 "tensor d = const f32 [2] values 11, 22\n"
                 "node y f32 [2] = add x, d\n"
                 "output y\n");
}

static void an_output_may_be_a_constant_and_integers_and_halves_stay_what_they_are(void **state)
{
    (void)state;
    check_folded("graph t\n"
                 "tensor x = input f32 [1]\n"
                 "tensor a = const i64 [2] values 3, -4\n"
                 "tensor h = const f16 [2] values 0.5, 2\n"
                 "node y i64 [2] = mul a, a\n"
                 "node z f16 [2] = add h, h\n"
                 "output y\n"
                 "output z\n",
                 "graph t\n"
                 "tensor x = input f32 [1]\n"
                 "tensor y = const i64 [2] values 9, 16\n"
                 "tensor z = const f16 [2] values 1, 4\n"
                 "output y\n"
                 "output z\n");
}

static void idle_nodes_are_passed_by_and_dead_ones_go(void **state)
{
    (void)state;
    check_folded("graph t\n"
                 "input n 1..8\n"
                 "tensor x = input f32 [n, 2]\n"
                 "tensor unused = const f32 [1] values 1\n"
                 "node a f32 [n, 2] = identity x\n"
                 "node b f32 [n, 2] = reshape a shape=[n, 2]\n"
                 "node dead f32 [n, 2] = relu b\n"
                 "node y f32 [n, 2] = relu b\n"
                 "node z f32 [n, 2] = identity y\n"
                 "output z\n",
                 "graph t\n"
                 "input n 1..8\n"
                 "tensor x = input f32 [n, 2]\n"
                 "node y f32 [n, 2] = relu x\n"
                 "node z f32 [n, 2] = identity y\n"
                 "output z\n");
}

static void what_would_grow_out_of_proportion_stays(void **state)
{
    const char *text = "graph t\n"
                       "tensor a = const f32 [] values 1\n"
                       "node y f32 [1024, 1024] = expand a shape=[1024, 1024]\n"
                       "output y\n";

    (void)state;
    check_folded(text, text);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, new_context, free_context)
    const struct CMUnitTest tests[] = {
        T(what_constants_alone_decide_becomes_a_constant),
        T(an_output_may_be_a_constant_and_integers_and_halves_stay_what_they_are),
        T(idle_nodes_are_passed_by_and_dead_ones_go),
        T(what_would_grow_out_of_proportion_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
