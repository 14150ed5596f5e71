/* test_unify.c - exports of one network at several lengths become one graph: what is fitted, what
 * is refused, and that it computes what each export does. */
#include "operators.h"
#include "passes/unify/unify.h"

enum { EXPORTS = 3 };

/* A network of one layer: new rows go to a cache, behind which they are requantized by 1, and
 * multiplied by x; a mask of one row for each token is added. pos tokens are in the cache, m new.
 */
static void print_export(char *text, size_t size, unsigned pos, unsigned m, int mul, int weight)
{
    unsigned end = pos + m;
    char mask[32];

    snprintf(mask, sizeof(mask), m == 1 ? "%u" : "1, %u, %u", m == 1 ? end : m, end);
    snprintf(text, size,
             "graph export\n"
             "tensor x = input i8 [1, %u, 2]\n"
             "tensor mask = input i8 [%s]\n"
             "tensor cache = input i8 [1, %u, 2]\n"
             "tensor w = const i8 [2, 2] values 1, %d, 3, 4\n"
             "tensor mul = const i32 [] values %d\n"
             "tensor one = const i32 [] values 65536\n"
             "tensor none = const i32 [] values 0\n"
             "node p i32 [1, %u, 2] = matmul_integer x, w\n"
             "node k i8 [1, %u, 2] = requant_shift p, mul, none shift=16 clamp_min=-128 "
             "clamp_max=127 to=i8\n"
             "node all i8 [1, %u, 2] = concat cache, k axis=1\n"
             "node same i8 [1, %u, 2] = requant_shift all, one, none shift=16 clamp_min=-128 "
             "clamp_max=127 to=i8\n"
             "node t i8 [1, 2, %u] = transpose same perm=[0, 2, 1]\n"
             "node scores i32 [1, %u, %u] = matmul_integer x, t\n"
             "node wide i32 [%s] = cast mask to=i32\n"
             "node masked i32 [1, %u, %u] = add scores, wide\n"
             "node rows i32 [%u, %u] = reshape masked shape=[%u, %u]\n"
             "output rows\n"
             "output same\n",
             m, mask, pos, weight, mul, m, m, end, end, end, m, end, mask, m, end, m, end, m, end);
}

typedef struct exports {
    muc_context *ctx;
    muc_graph *graphs[EXPORTS];
    const char *paths[EXPORTS];
    uint32_t count;
} exports;

static const char *const names[EXPORTS] = { "a.onnx", "b.onnx", "c.onnx" };

static void add_text(exports *e, const char *text)
{
    e->paths[e->count] = names[e->count];
    e->graphs[e->count++] = graph_of(e->ctx, text);
}

static void add_export(exports *e, unsigned pos, unsigned m, int mul, int weight)
{
    char text[4096];

    print_export(text, sizeof(text), pos, m, mul, weight);
    add_text(e, text);
}

static int start(void **state)
{
    static exports e;

    memset(&e, 0, sizeof(e));
    e.ctx = muc_context_new(1);
    *state = &e;
    return 0;
}

static int finish(void **state)
{
    exports *e = *state;

    for (uint32_t i = 0; i < e->count; i++)
        muc_graph_free(e->graphs[i]);
    muc_context_free(e->ctx);
    return 0;
}

static muc_status unify(exports *e, muc_unified *out)
{
    const muc_unify_options options = { 0 };

    return muc_unify(e->ctx, e->graphs, e->paths, e->count, &options, out);
}

static void lengths_become_pos_and_m(void **state)
{
    static const char expected[] =
        "graph export\n"
        "input m 1..3\n"
        "input pos 0..4\n"
        "assume pos + m at most 5\n"
        "tensor cache = state i8 [1, 5, 2]\n"
        "tensor x = input i8 [1, m, 2]\n"
        "tensor mask = input i8 [1, m, pos + m]\n"
        "tensor record = input i32 [1]\n"
        "tensor w = const i8 [2, 2] values 1, 2, 3, 4\n"
        "tensor none = const i32 [] values 0\n"
        "node p i32 [1, m, 2] = matmul_integer x, w\n"
        "node mul i32 [1] = slice record axes=[0] starts=[0] sizes=[1]\n"
        "node k i8 [1, m, 2] = requant_shift p, mul, none shift=16 clamp_min=-128 clamp_max=127 "
        "to=i8\n"
        "node all i8 [1, pos + m, 2] = append cache, k axis=1 position=pos\n"
        "node t i8 [1, 2, pos + m] = transpose all perm=[0, 2, 1]\n"
        "node scores i32 [1, m, pos + m] = matmul_integer x, t\n"
        "node wide i32 [1, m, pos + m] = cast mask to=i32\n"
        "node masked i32 [1, m, pos + m] = add scores, wide\n"
        "node rows i32 [m, pos + m] = reshape masked shape=[m, pos + m]\n"
        "output rows\n"
        "output all\n";
    exports *e = *state;
    muc_unified unified;
    muc_text text = { 0 };

    add_export(e, 2, 1, 100, 2);
    add_export(e, 4, 1, 200, 2);
    add_export(e, 0, 3, 65536, 2);
    CHECK_OK(e->ctx, unify(e, &unified));
    muc_graph_print(unified.graph, &text);
    assert_string_equal(text.data, expected);
    muc_text_free(&text);
    CHECK_EQ(unified.context, 5);
    CHECK_EQ(unified.record_words, 1);
    CHECK_EQ(unified.exports[1].record[0], 200);
    CHECK_EQ(unified.exports[2].record[0], 65536);
    CHECK_EQ(unified.exports[2].m, 3);
    CHECK_EQ(unified.exports[1].pos, 4);
    CHECK_EQ(unified.cache_count, 1);
    assert_string_equal(unified.caches[0].name, "cache");
    muc_unified_free(&unified);
}

static void decoding_alone_has_one_new_token(void **state)
{
    exports *e = *state;
    muc_unified unified;

    add_export(e, 2, 1, 100, 2);
    add_export(e, 4, 1, 100, 2);
    CHECK_OK(e->ctx, unify(e, &unified));
    CHECK_EQ(unified.record_words, 0);
    CHECK_EQ(muc_expr_find_input(unified.graph->pool, "m"), UINT32_MAX);
    CHECK_EQ(muc_graph_find(unified.graph, MUC_UNIFY_RECORD), MUC_NO_ID);
    muc_unified_free(&unified);
}

static void room_for_more_is_an_option(void **state)
{
    const muc_unify_options more = { .context = 64, .tokens = 16 }, less = { .context = 4 };
    exports *e = *state;
    muc_unified unified;
    uint32_t m;

    add_export(e, 2, 1, 100, 2);
    add_export(e, 0, 3, 100, 2);
    add_export(e, 4, 1, 100, 2);
    CHECK_OK(e->ctx, muc_unify(e->ctx, e->graphs, e->paths, e->count, &more, &unified));
    CHECK_EQ(unified.context, 64);
    m = muc_expr_find_input(unified.graph->pool, "m");
    CHECK_EQ(muc_expr_get_input(unified.graph->pool, m)->hi, 16);
    muc_unified_free(&unified);
    CHECK_FAILS(e->ctx, MUC_USAGE, "less than the exports' own",
                muc_unify(e->ctx, e->graphs, e->paths, e->count, &less, &unified));
}

static void a_single_export_is_refused(void **state)
{
    exports *e = *state;
    muc_unified unified;

    add_export(e, 2, 1, 100, 2);
    CHECK_FAILS(e->ctx, MUC_USAGE, "2..256 exports", unify(e, &unified));
    add_export(e, 2, 1, 100, 2);
    CHECK_FAILS(e->ctx, MUC_USAGE, "of one length", unify(e, &unified));
}

static void lengths_that_cannot_be_told_apart_are_refused(void **state)
{
    exports *e = *state;
    muc_unified unified;

    add_export(e, 2, 1, 100, 2);
    add_export(e, 0, 3, 100, 2);
    CHECK_FAILS(e->ctx, MUC_USAGE, "as many together", unify(e, &unified));
    muc_graph_free(e->graphs[--e->count]);
    muc_graph_free(e->graphs[--e->count]);
    add_export(e, 1, 1, 100, 2);
    add_export(e, 3, 3, 100, 2);
    CHECK_FAILS(e->ctx, MUC_USAGE, "as are new", unify(e, &unified));
}

static void other_networks_are_refused_by_name(void **state)
{
    exports *e = *state;
    muc_unified unified;

    add_export(e, 2, 1, 100, 2);
    add_export(e, 4, 1, 100, 7);
    CHECK_FAILS(e->ctx, MUC_UNSUPPORTED,
                "b.onnx: no export of the same network as 'a.onnx': node 'p' (matmul_integer) has "
                "other weights",
                unify(e, &unified));
    muc_graph_free(e->graphs[--e->count]);
    add_text(e, "graph export\ntensor x = input i8 [1]\nnode y i8 [1] = relu x\noutput y\n");
    CHECK_FAILS(e->ctx, MUC_UNSUPPORTED, "1 nodes, expected 9", unify(e, &unified));
}

static void dimensions_that_nothing_explains_are_refused(void **state)
{
    static const char *const texts[] = {
        "graph e\ntensor x = input i8 [2]\ntensor z = input i8 [5]\nnode y i8 [2] = relu x\n"
        "node w i8 [5] = relu z\noutput y\noutput w\n",
        "graph e\ntensor x = input i8 [3]\ntensor z = input i8 [9]\nnode y i8 [3] = relu x\n"
        "node w i8 [9] = relu z\noutput y\noutput w\n",
        "graph e\ntensor x = input i8 [4]\ntensor z = input i8 [1]\nnode y i8 [4] = relu x\n"
        "node w i8 [1] = relu z\noutput y\noutput w\n",
    };
    exports *e = *state;
    muc_unified unified;

    for (unsigned i = 0; i < EXPORTS; i++)
        add_text(e, texts[i]);
    CHECK_FAILS(e->ctx, MUC_UNSUPPORTED, "input 'z': 9 here and 5 in 'a.onnx'", unify(e, &unified));
}

static void no_memory_leaks_nothing(void **state)
{
    exports *e = *state;
    muc_unified unified;
    long k = 0;

    add_export(e, 2, 1, 100, 2);
    add_export(e, 0, 4, 300, 2);
    for (muc_status status = MUC_NOMEM; status != MUC_OK; k++) {
        muc_alloc_fail_after(k);
        status = unify(e, &unified);
        muc_alloc_fail_after(-1);
        if (status != MUC_OK && status != MUC_NOMEM)
            fail_msg("allocation %ld: %s", k, muc_error_message(e->ctx));
        muc_error_clear(e->ctx);
    }
    muc_unified_free(&unified);
    CHECK(k > 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lengths_become_pos_and_m),
        TEST(decoding_alone_has_one_new_token),
        TEST(room_for_more_is_an_option),
        TEST(a_single_export_is_refused),
        TEST(lengths_that_cannot_be_told_apart_are_refused),
        TEST(other_networks_are_refused_by_name),
        TEST(dimensions_that_nothing_explains_are_refused),
        TEST(no_memory_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
