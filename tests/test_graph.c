/* test_graph.c - building, verifying, and the text form of graphs. */
#include "check.h"

#include "graph/graph.h"

/* One layer's attention and a gate, as text: what the builders must agree with. */
static const char small[] =
    "graph small\n"
    "input pos 0..31\n"
    "input m 1..4\n"
    "input step 0..64 by 8\n"
    "table offsets 20, 39, 80\n"
    "assume pos + m at most 32\n"
    "tensor tokens = input i32 [m]\n"
    "tensor \"the table\" = const bf16 [10, 8] bytes 160\n"
    "tensor gain = const f32 [8] bytes 32\n"
    "tensor w.q = const f16 [8, 8] bytes 128 sequence 99\n"
    "tensor b.q = const f32 [8] bytes 32\n"
    "tensor w.k = const f32 [4, 8] bytes 128\n"
    "tensor cos = const f32 [32, 2] bytes 256\n"
    "tensor sin = const f32 [32, 2] bytes 256\n"
    "tensor k_cache = state f32 [32, 4]\n"
    "tensor v_cache = state f32 [32, 4]\n"
    "node embed f32 [m, 8] = embed tokens, \"the table\"\n"
    "node norm f32 [m, 8] = rmsnorm embed, gain epsilon=1.0000000000000001e-05\n"
    "node q f32 [m, 8] = linear norm, w.q, b.q\n"
    "node k f32 [m, 4] = linear norm, w.k\n"
    "node q_rope f32 [m, 8] = rope q, cos, sin heads=2 head_dim=4 position=pos\n"
    "node attention f32 [m, 8] = attention q_rope, k, k, k_cache, v_cache heads=2 kv_heads=1 "
    "head_dim=4 scale=0.5 position=pos\n"
    "node silu f32 [m, 8] = silu attention\n"
    "node mul f32 [m, 8] = mul silu, q\n"
    "node out f32 [m, 8] = add embed, mul\n"
    "output out\n";

static muc_bytes bytes_of(const char *text)
{
    muc_bytes bytes = { (const uint8_t *)text, strlen(text), "test" };

    return bytes;
}

static muc_graph *parsed(muc_context *ctx, const char *text)
{
    muc_graph *graph;

    CHECK_OK(ctx, muc_graph_parse(ctx, bytes_of(text), &graph));
    return graph;
}

static void text_is_read_and_printed_exactly(void **state)
{
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph = parsed(ctx, small);
    muc_text text = { 0 };

    (void)state;
    CHECK_OK(ctx, muc_graph_verify(ctx, graph));
    muc_graph_print(graph, &text);
    assert_string_equal(text.data, small);
    CHECK_EQ(graph->node_count, 9);
    CHECK_EQ(graph->tensors[muc_graph_find(graph, "w.q")].sequence_bytes, 99);
    CHECK_EQ(muc_graph_find(graph, "nobody"), MUC_NO_ID);
    muc_text_free(&text);
    muc_graph_free(graph);
    muc_context_free(ctx);
}

/* the text with one word replaced by another must be refused with these words */
static void blocks_are_printed_as_their_bytes(void **state)
{
    const char written[] = "graph n\n"
                           "tensor w = const q4_0 [1, 32] values 0, 48, 1, 2, 3, 4, 5, 6, 7, 8, 9, "
                           "10, 11, 12, 13, 14, 255, 16\n"
                           "tensor x = input f32 [32]\n"
                           "node y f32 [1] = linear x, w\n"
                           "output y\n";
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph = parsed(ctx, written);
    muc_text text = { 0 };
    float last;

    (void)state;
    muc_graph_print_whole(graph, &text);
    assert_string_equal(text.data, written);
    assert_true(muc_dtype_to_f32(MUC_Q4_0, graph->tensors[0].data, 31, 1, &last));
    assert_true(last == 0.125f * (1 - 8)); /* the upper half of the last byte, less 8 */
    muc_text_free(&text);
    muc_graph_free(graph);
    muc_context_free(ctx);
}

static void check_refused(const char *found, const char *replacement, const char *message)
{
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph;
    muc_text text = { 0 };
    const char *at = strstr(small, found);

    assert_non_null(at);
    muc_text_add_bytes(&text, small, (size_t)(at - small));
    muc_text_add(&text, "%s%s", replacement, at + strlen(found));
    CHECK_FAILS(ctx, MUC_MALFORMED, message, muc_graph_parse(ctx, bytes_of(text.data), &graph));
    muc_text_free(&text);
    muc_context_free(ctx);
}

static void wrong_graphs_are_refused_by_name(void **state)
{
    (void)state;
    check_refused("linear norm, w.q", "linear norm, w.k", "node 'q': input 2 ('b.q') is f32 [8]");
    check_refused("linear norm, w.k", "linear norm, cos", "expected a float matrix [N, 8]");
    check_refused("add embed, mul", "add embed, k",
                  "expected a shape that broadcasts with the inputs before");
    check_refused("mul silu, q", "mul silu", "mul with 1 inputs and 1 outputs, expected 2..2");
    check_refused(" epsilon=1.0000000000000001e-05", "", "rmsnorm lacks attribute 'epsilon'");
    check_refused("epsilon=1.0", "epsilon=1.0 epsilon=1.0", "attribute 'epsilon' is there twice");
    check_refused("epsilon=1.0", "epsilon=nan epsilon=1.0", "attribute 'epsilon'");
    check_refused("silu attention", "silu attention heads=2", "silu has no attribute 'heads'");
    check_refused("silu attention", "silu k_cache", "silu cannot use the state 'k_cache'");
    check_refused("k, k, k_cache", "k, k, cos", "expected a state, f32 [context, 4]");
    check_refused("assume pos + m at most 32", "assume pos + m at most 33",
                  "expected a row for each position");
    check_refused("heads=2 head_dim=4 position", "heads=4 head_dim=2 position",
                  "up to half of head_dim");
    check_refused("kv_heads=1", "kv_heads=0", "1..65536 heads");
    check_refused("tensor gain", "tensor tokens", "two tensors are named 'tokens'");
    check_refused("[8, 8] bytes 128", "[8, 8] bytes 127", "'w.q' has 127 bytes, expected 128");
    check_refused("[8, 8] bytes 128", "[8, m] bytes 128", "dimension 1 of a const depends");
    check_refused("f32 [m, 8] = silu", "f32 [m, 9] = silu", "'silu' is not what the node gives");
    check_refused("node silu", "node silu f32 [m, 8], two", "silu with 1 inputs and 2 outputs");
    check_refused("embed tokens", "embde tokens", "the name of an operator");
    check_refused("= add embed", "= add embed, nobody", "the name of a tensor");
    check_refused("position=pos", "position=poss", "the name of an input");
    check_refused("by 8", "by 7", "multiples of 7 in 0..64");
}

/* what networks have beside transformers: quantization, absent inputs, several outputs, lists */
static const char network[] =
    "graph network\n"
    "input n 1..8\n"
    "tensor x = input f32 [n, 3, 9, 9]\n"
    "tensor q = input i8 [1, 4, 4, 2] scale 0.5 zero -3\n"
    "tensor w = const f32 [8, 3, 3, 3] bytes 864\n"
    "tensor wq = const i8 [2, 1, 1, 2] scale 0.25, 0.125 zero 0, 0 axis 0 values 1, -2, 127, -128\n"
    "tensor high = const f32 [] values 6\n"
    "tensor odd = const f64 [3] values nan, -inf, 0.10000000000000001\n"
    "tensor big = const u64 [2] values 18446744073709551615, 0\n"
    "tensor small = const i64 [1] values -9223372036854775808\n"
    "tensor \"a=b *\" = const bool [2] values 1, 0\n"
    "node c f32 [n, 8, 5, 5] = conv x, w strides=[2, 2] pads=[1, 1, 1, 1]\n"
    "node r f32 [n, 8, 5, 5] = clip c, *, high\n"
    "node p f32 [n, 8, 2, 2], where i64 [n, 8, 2, 2] = max_pool r kernel=[2, 2] strides=[2, 2]\n"
    "node f f32 [n, 32] = reshape p shape=[n, 32]\n"
    "node left f32 [n, 8], right f32 [n, 24] = split f axis=1 sizes=[8, 24]\n"
    "node g f32 [n, 8] = gelu left mode=tanh\n"
    "node d f32 [n, 4, 4, 6] = expand high shape=[n, 4, 4, 6]\n"
    "node e i64 [2] = expressions values=[n*2, 7] to=i64\n"
    "node cq i8 [1, 4, 4, 2] scale 0.100000001 zero 5 = conv q, wq channels_last=1 clamp_min=5\n"
    "node s i8 [1, 4, 4, 1] scale 0.100000001 zero 5 = slice cq axes=[3] starts=[1] sizes=[1] "
    "steps=[-1]\n"
    "node dq f32 [1, 4, 4, 1] = dequantize s\n"
    "node no bool [2] = not \"a=b *\"\n"
    "node h f32 [n, 16, 5, 5] = resize r sizes=[n, 16, 5, 5] mode=linear scales=[1, 2, 1, 1]\n"
    "output g\n"
    "output right\n";

static void networks_are_read_and_printed_exactly(void **state)
{
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph = parsed(ctx, network);
    const muc_tensor *s;
    muc_text text = { 0 };

    (void)state;
    CHECK_OK(ctx, muc_graph_verify(ctx, graph));
    muc_graph_print(graph, &text);
    assert_string_equal(text.data, network);
    s = &graph->tensors[muc_graph_find(graph, "s")];
    CHECK_EQ(s->quantization->zero_points[0], 5);
    CHECK(s->quantization->scales[0] == 0.1f);
    CHECK_EQ(graph->nodes[1].inputs[1], MUC_NO_ID);
    CHECK_EQ(muc_node_input(&graph->nodes[0], 2), MUC_NO_ID);
    muc_text_free(&text);
    muc_graph_free(graph);
    muc_context_free(ctx);
}

/* the network with one word replaced by another must be refused with these words */
static void check_network_refused(const char *found, const char *replacement, const char *message)
{
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph;
    muc_text text = { 0 };
    const char *at = strstr(network, found);

    assert_non_null(at);
    muc_text_add_bytes(&text, network, (size_t)(at - network));
    muc_text_add(&text, "%s%s", replacement, at + strlen(found));
    CHECK_FAILS(ctx, MUC_MALFORMED, message, muc_graph_parse(ctx, bytes_of(text.data), &graph));
    muc_text_free(&text);
    muc_context_free(ctx);
}

static void wrong_networks_are_refused_by_name(void **state)
{
    (void)state;
    check_network_refused("scale 0.5 zero -3", "scale 0.5 zero -129", "zero point -129, expected");
    check_network_refused("scale 0.5 zero -3", "scale 0 zero 0", "scale 0 and zero point 0");
    check_network_refused("i8 [1, 4, 4, 2] scale 0.5 zero -3", "i8 [1, 4, 4, 2]",
                          "node 'cq': input 0 ('q') is i8 [1, 4, 4, 2], expected real numbers");
    check_network_refused("f32 [n, 3, 9, 9]", "f32 [n, 3, 9, 9] scale 1 zero 0",
                          "quantization of f32, expected integers");
    check_network_refused("zero 0, 0 axis 0", "zero 0, 0 axis 1", "2 scales along dimension 1");
    check_network_refused("zero 0, 0 axis", "zero 0 axis", "as many zero points as scales");
    check_network_refused("scale 0.100000001 zero 5 = conv", "= conv",
                          "node 'cq': conv gives 'cq' no quantization, expected one");
    check_network_refused("= dequantize s", "scale 1 zero 0 = dequantize s", "expected integers");
    check_network_refused("values 1, -2, 127, -128", "values 1, -2, 127", "'wq' has 3 bytes");
    check_network_refused("pads=[1, 1, 1, 1]", "pads=[1, 1, 1]", "pads has 3 items, expected 4");
    check_network_refused("[8, 3, 3, 3] bytes 864", "[8, 4, 3, 3] bytes 1152",
                          "expected 1 groups of 4 channels");
    check_network_refused("strides=[2, 2] pads", "dilations=[9, 9] pads",
                          "the kernel spans 19 of 11");
    check_network_refused("c, *, high", "*, c, high", "node 'r': input 0 is tensor");
    check_network_refused("shape=[n, 32]", "shape=[n, 31]", "as many elements as shape has");
    check_network_refused("sizes=[8, 24]", "sizes=[8, 23]",
                          "the axis and the sum of sizes: 32, expected 31");
    check_network_refused("starts=[1] sizes=[1] ", "starts=[1] sizes=[3] ",
                          "way back of the slice of dimension 3: 2, expected at most 1");
    check_network_refused("steps=[-1]", "steps=[0]", "a step of 0");
    check_network_refused("mode=tanh", "mode=reflect", "mode is reflect, which gelu does not know");
    check_network_refused("mode=tanh", "mode=elsewhere", "a word that attributes know");
    check_network_refused("to=i64", "to=f32", "to is f32, expected i64 or i32");
    check_network_refused("axis=1 sizes=[8", "axis=2 sizes=[8", "axis is 2, expected 0..1");
    check_network_refused("expand high shape=[n, 4, 4, 6]", "expand r shape=[n, 4, 4, 6]",
                          "a shape that broadcasts");
    check_network_refused("scales=[1, 2, 1, 1]", "scales=[1, 0, 1, 1]", "a scale of 0");
    check_network_refused("kernel=[2, 2] strides", "kernel=[2, 2] pads=[2, 0, 0, 0] strides",
                          "hold a window of 2");
}

static void damaged_text_never_crashes(void **state)
{
    muc_context *ctx = muc_context_new(1);
    char copy[sizeof(small)];

    (void)state;
    for (size_t i = 0; i < sizeof(small) - 1; i++) {
        muc_bytes bytes = { (const uint8_t *)small, i, "test" };
        muc_graph *graph = NULL;

        if (muc_graph_parse(ctx, bytes, &graph) == MUC_OK)
            muc_graph_free(graph);
        muc_error_clear(ctx);
        for (unsigned flip = 1; flip < 256; flip += 18) {
            memcpy(copy, small, sizeof(small));
            copy[i] = (char)(copy[i] ^ (char)flip);
            bytes.data = (const uint8_t *)copy;
            bytes.size = sizeof(small) - 1;
            if (muc_graph_parse(ctx, bytes, &graph) == MUC_OK) {
                CHECK_OK(ctx, muc_graph_verify(ctx, graph));
                muc_graph_free(graph);
            }
            muc_error_clear(ctx);
        }
    }
    muc_context_free(ctx);
}

/* damage that text cannot express, done to the structures */
static void the_verifier_finds_what_a_pass_broke(void **state)
{
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph = parsed(ctx, small);
    uint32_t q = muc_graph_find(graph, "q"), mul = muc_graph_find(graph, "mul");
    muc_node swapped = graph->nodes[2], *nodes = graph->nodes;

    (void)state;
    graph->tensors[q].dims[1] = graph->tensors[q].dims[0];
    CHECK_FAILS(ctx, MUC_BUG, "node 'q': 'q' is f32 [m, m], expected f32 [m, 8]",
                muc_graph_verify(ctx, graph));
    graph->tensors[q].dims[1] = graph->tensors[mul].dims[1];
    nodes[2] = nodes[3];
    nodes[3] = swapped;
    CHECK_FAILS(ctx, MUC_BUG, "is not its output 0", muc_graph_verify(ctx, graph));
    nodes[3] = nodes[2];
    nodes[2] = swapped;
    CHECK_OK(ctx, muc_graph_verify(ctx, graph));
    ((uint32_t *)(uintptr_t)nodes[2].inputs)[0] = mul;
    CHECK_FAILS(ctx, MUC_BUG, "node 'q' reads 'mul' before it is computed",
                muc_graph_verify(ctx, graph));
    ((uint32_t *)(uintptr_t)nodes[2].inputs)[0] = 1 << 20;
    CHECK_FAILS(ctx, MUC_BUG, "input 0 is tensor 1048576", muc_graph_verify(ctx, graph));
    ((uint32_t *)(uintptr_t)nodes[2].inputs)[0] = muc_graph_find(graph, "norm");
    graph->tensors[q].name = graph->tensors[mul].name;
    CHECK_FAILS(ctx, MUC_BUG, "'mul' is not found by its name", muc_graph_verify(ctx, graph));
    muc_graph_free(graph);
    muc_context_free(ctx);
}

static void sizes_follow_the_bindings(void **state)
{
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph = parsed(ctx, small);
    const muc_tensor *q = &graph->tensors[muc_graph_find(graph, "q")];
    const uint32_t bindings[] = { 5, 3, 0 };
    uint64_t elements, bytes;

    (void)state;
    CHECK_OK(ctx, muc_tensor_measure_bound(ctx, graph, q, bindings, &elements, &bytes));
    CHECK_EQ(elements, 24);
    CHECK_EQ(bytes, 96);
    muc_graph_free(graph);
    muc_context_free(ctx);
}

static void every_failed_allocation_is_told(void **state)
{
    (void)state;
    for (long k = 0;; k++) {
        muc_context *ctx = muc_context_new(1);
        muc_graph *graph = NULL;
        muc_status status;

        muc_alloc_fail_after(k);
        status = muc_graph_parse(ctx, bytes_of(small), &graph);
        muc_alloc_fail_after(-1);
        if (status == MUC_OK)
            muc_graph_free(graph);
        CHECK(status == MUC_OK || *muc_error_message(ctx) != '\0');
        muc_context_free(ctx);
        if (status == MUC_OK)
            break;
        CHECK_EQ(status, MUC_NOMEM);
    }
}

/* WORDS of ops.def: each of them is in attribute_words.def */
static void words_of_operators_are_words(void **state)
{
    static const char *const lists[] = {
#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    MUC_FACTS facts
#define WORDS(attribute, words) words,
#include "graph/ops.def"
    };
    char text[256];
    muc_word word;

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(lists); i++) {
        snprintf(text, sizeof(text), "%s", lists[i]);
        for (char *at = strtok(text, " "); at; at = strtok(NULL, " "))
            CHECK(muc_word_find(at, &word));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_operators_are_words),
        cmocka_unit_test(text_is_read_and_printed_exactly),
        cmocka_unit_test(blocks_are_printed_as_their_bytes),
        cmocka_unit_test(wrong_graphs_are_refused_by_name),
        cmocka_unit_test(networks_are_read_and_printed_exactly),
        cmocka_unit_test(wrong_networks_are_refused_by_name),
        cmocka_unit_test(damaged_text_never_crashes),
        cmocka_unit_test(the_verifier_finds_what_a_pass_broke),
        cmocka_unit_test(sizes_follow_the_bindings),
        cmocka_unit_test(every_failed_allocation_is_told),
    };

    return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
