/* ONNX models as graphs: small ones, encoded by hand (fuzz/onnx_seeds.py), against their text. */
#include "base/text.h"
#include "base/file.h"
#include "run/network_run.h"
#include "formats/onnx/onnx_tensor.h"

#define CONTEXT_THREADS 0
#include "context_fixture.h"

static muc_network network;

static int teardown(void **state)
{
    muc_network_close(&network);
    return free_context(state);
}

#define SEEDS "fuzz/corpus/onnx/"

static void check_text(const char *path, const muc_network_options *options, const char *expected)
{
    muc_text text = { 0 };
    const char *body;

    CHECK_OK(ctx, muc_network_open(ctx, path, options, &network));
    muc_graph_print(network.graph, &text);
    body = strchr(text.data, '\n') + 1;
    assert_string_equal(body, expected);
    muc_text_free(&text);
    muc_network_close(&network);
}

static void padding_is_written_out_and_nodes_put_in_order(void **state)
{
    (void)state;
    check_text(SEEDS "conv", NULL,
               "tensor x = input f32 [1, 1, 4, 4]\n"
               "tensor w = const f32 [2, 1, 3, 3] values 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
               "1, 1, 1, 1\n"
               "node c f32 [1, 2, 2, 2] = conv x, w groups=1 strides=[2, 2] dilations=[1, 1] "
               "pads=[0, 0, 1, 1]\n"
               "node y f32 [1, 2, 2, 2] = relu c\n"
               "output y\n");
}

static void computed_shapes_are_expressions_of_dimensions(void **state)
{
    static const muc_network_dim three = { "batch", 3, 3, NULL };
    static const muc_network_dim range = { "batch", 1, 64, NULL };
    const muc_network_options fixed = { .dims = &three, .dim_count = 1 };
    const muc_network_options open = { .dims = &range, .dim_count = 1 };

    (void)state;
    check_text(SEEDS "shapes", &open,
               "input batch 1..64\n"
               "tensor x = input f32 [batch, 4, 6]\n"
               "node y f32 [batch*2, 4, 3] = reshape x shape=[batch*2, 4, 3]\n"
               "output y\n");
    check_text(SEEDS "shapes", &fixed,
               "tensor x = input f32 [3, 4, 6]\n"
               "node y f32 [6, 4, 3] = reshape x shape=[6, 4, 3]\n"
               "output y\n");
}

static void pads_computed_by_moving_numbers_are_known(void **state)
{
    (void)state;
    check_text(SEEDS "pads", NULL,
               "tensor x = input f32 [4, 6]\n"
               "node y f32 [4, 9] = pad x pads=[0, 1, 0, 2] mode=constant\n"
               "output y\n");
}

static void old_versions_get_the_newest_meaning(void **state)
{
    (void)state;
    check_text(SEEDS "old", NULL,
               "tensor x = input f32 [2, 3, 4]\n"
               "tensor c/1 = const f32 [] values 0\n"
               "tensor c/2 = const f32 [] values 6\n"
               "node c f32 [2, 3, 4] = clip x, c/1, c/2\n"
               "node s/1 f32 [2, 12] = reshape c shape=[2, 12]\n"
               "node s/2 f32 [2, 12] = softmax s/1 axis=1\n"
               "node s f32 [2, 3, 4] = reshape s/2 shape=[2, 3, 4]\n"
               "node r f32 [2, 3] = reduce_sum s axes=[2] keep_dims=0\n"
               "node y f32 [2, 1] = slice r axes=[1] starts=[2] sizes=[1] steps=[1]\n"
               "output y\n");
}

static void functions_are_written_out_with_their_callers_attributes(void **state)
{
    (void)state;
    check_text(SEEDS "function", NULL,
               "tensor x = input f32 [2]\n"
               "node t f32 [2] = leaky_relu x alpha=0.5\n"
               "node b f32 [2] = add t, t\n"
               "node \"t~2\" f32 [2] = leaky_relu b alpha=0.25\n"
               "node \"b~2\" f32 [2] = add \"t~2\", \"t~2\"\n"
               "node y f32 [2] = identity \"b~2\"\n"
               "output y\n");
}

static void a_known_condition_chooses_its_branch(void **state)
{
    (void)state;
    check_text(SEEDS "branch", NULL,
               "tensor x = input f32 [2]\n"
               "node b f32 [2] = abs x\n"
               "node y f32 [2] = identity b\n"
               "output y\n");
}

static void constants_of_every_form_and_outputs_of_every_kind(void **state)
{
    (void)state;
    check_text(SEEDS "constants", NULL,
               "input n 1..1024\n"
               "tensor x = input f32 [4, n]\n"
               "tensor f = const f32 [] values 1.5\n"
               "tensor z = const f32 [3] values 2, 2, 2\n"
               "node r f32 [4, n] = slice x axes=[0] starts=[3] sizes=[4] steps=[-1]\n"
               "node y f32 [4, n] = mul r, f\n"
               "output y\n"
               "output z\n"
               "output x\n");
}

/* what PyTorch writes of open dimensions: views, masks, the last token */
static void attention_of_any_length_is_read(void **state)
{
    (void)state;
    check_text(
        SEEDS "attention", NULL,
        "input batch 1..1024\n"
        "input seq 1..1024\n"
        "tensor x = input f32 [batch, seq, 16]\n"
        "tensor w = const f32 [16, 16] bytes 1024\n"
        "tensor i0 = const i64 [] values 0\n"
        "tensor i1 = const i64 [] values 1\n"
        "tensor low = const f32 [] values -10000\n"
        "node q0 f32 [batch, seq, 16] = matmul x, w\n"
        "node q1 f32 [batch, seq, 2, 8] = reshape q0 shape=[batch, seq, 2, 8]\n"
        "node q f32 [batch, 2, seq, 8] = transpose q1 perm=[0, 2, 1, 3]\n"
        "node k f32 [batch, 2, 8, seq] = transpose q1 perm=[0, 2, 3, 1]\n"
        "node scores f32 [batch, 2, seq, seq] = matmul q, k\n"
        "node at i64 [seq] = range i0, i1 size=seq\n"
        "node row i64 [1, seq] = reshape at shape=[1, seq]\n"
        "node column i64 [seq, 1] = reshape at shape=[seq, 1]\n"
        "node m bool [seq, seq] = less_or_equal row, column\n"
        "node mask bool [batch, 1, seq, seq] = expand m shape=[batch, 1, seq, seq]\n"
        "node masked f32 [batch, 2, seq, seq] = where mask, scores, low\n"
        "node p f32 [batch, 2, seq, seq] = softmax masked axis=3\n"
        "node o f32 [batch, 2, seq, 8] = matmul p, q\n"
        "node ot f32 [batch, seq, 2, 8] = transpose o perm=[0, 2, 1, 3]\n"
        "node all f32 [batch, seq, 16] = reshape ot shape=[batch, seq, 16]\n"
        "node last f32 [batch, 1, 16] = slice all axes=[1] starts=[seq - 1] sizes=[1] steps=[1]\n"
        "node y f32 [batch, 16] = reshape last shape=[batch, 16]\n"
        "node rest f32 [batch, seq - 1, 16] = slice all axes=[1] starts=[0] sizes=[seq - 1] "
        "steps=[1]\n"
        "output y\n"
        "output rest\n");
}

/* the dimension "past + new" of the file, or one that the options call a sum */
static void lengths_behind_a_cache_are_sums_of_dimensions(void **state)
{
    static const muc_network_dim dims[] = {
        { "past", 0, 9, NULL },
        { "new", 2, 2, NULL },
        { "past + new", 0, 0, "2*past - 1 + new" },
    };
    const muc_network_options some = { .dims = dims, .dim_count = 2 };
    const muc_network_options all = { .dims = dims, .dim_count = 3 };

    (void)state;
    check_text(SEEDS "cache", &some,
               "input past 0..9\n"
               "tensor mask = input f32 [past + 2]\n"
               "tensor p = input f32 [past, 4]\n"
               "tensor x = input f32 [2, 4]\n"
               "tensor i1 = const i64 [] values 1\n"
               "tensor full/1 = const f32 [] values -8\n"
               "tensor upper/3 = const i64 [] values 1\n"
               "tensor upper/8 = const i64 [] values 1\n"
               "tensor upper/11 = const f32 [] values 0\n"
               "tensor row = const f32 [1, 4] values 0.5, 0.5, 0.5, 0.5\n"
               "node past/vector i64 [1] = expressions values=[past] to=i64\n"
               "node past i64 [] = reshape past/vector shape=[]\n"
               "node at i64 [2] = range past, i1 size=2\n"
               "node full f32 [2, past + 2] = expand full/1 shape=[2, past + 2]\n"
               "node upper/1 i64 [1] = expressions values=[past + 1] to=i64\n"
               "node upper/2 i64 [] = reshape upper/1 shape=[]\n"
               "node upper/4 i64 [2] = range upper/2, upper/3 size=2\n"
               "node upper/5 i64 [2, 1] = reshape upper/4 shape=[2, 1]\n"
               "node upper/6 i64 [1] = expressions values=[0] to=i64\n"
               "node upper/7 i64 [] = reshape upper/6 shape=[]\n"
               "node upper/9 i64 [past + 2] = range upper/7, upper/8 size=past + 2\n"
               "node upper/10 bool [2, past + 2] = less_or_equal upper/5, upper/9\n"
               "node upper f32 [2, past + 2] = where upper/10, full, upper/11\n"
               "node y f32 [2, past + 2] = add upper, mask\n"
               "node rows f32 [2, 4] = expand row shape=[2, 4]\n"
               "node z f32 [2, 4] = add rows, x\n"
               "output at\n"
               "output y\n"
               "output z\n");
    CHECK_FAILS(ctx, MUC_MALFORMED, "'mask') is f32 [past*2 - 1 + 2], expected a shape",
                muc_network_open(ctx, SEEDS "cache", &all, &network));
}

static void einsum_is_products_of_matrices(void **state)
{
    (void)state;
    check_text(SEEDS "einsum", NULL,
               "input t 1..1024\n"
               "tensor x = input f32 [1, t, 4]\n"
               "tensor v = input f32 [2, t]\n"
               "tensor w = const f32 [2, 4, 3] values 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, "
               "0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5\n"
               "node q/1 f32 [t, 4] = reshape x shape=[t, 4]\n"
               "node q/2 f32 [4, 2, 3] = transpose w perm=[1, 0, 2]\n"
               "node q/3 f32 [4, 6] = reshape q/2 shape=[4, 6]\n"
               "node q/4 f32 [t, 6] = matmul q/1, q/3\n"
               "node q/5 f32 [1, t, 2, 3] = reshape q/4 shape=[1, t, 2, 3]\n"
               "node q/6 f32 [1, 2, t, 3] = transpose q/5 perm=[0, 2, 1, 3]\n"
               "node q f32 [1, 2, t, 3] = identity q/6\n"
               "node scores/1 f32 [1, 2, 3, t] = transpose q perm=[0, 1, 3, 2]\n"
               "node scores/2 f32 [1, 2, t, t] = matmul q, scores/1\n"
               "node scores f32 [1, 2, t, t] = identity scores/2\n"
               "node y/1 f32 [1, 2, t, 3] = matmul scores, q\n"
               "node y/2 f32 [1, 3, 2, t] = transpose y/1 perm=[0, 3, 1, 2]\n"
               "node y/3 f32 [3, t*2] = reshape y/2 shape=[3, t*2]\n"
               "node y/4 f32 [t*2, 1] = reshape v shape=[t*2, 1]\n"
               "node y/5 f32 [3, 1] = matmul y/3, y/4\n"
               "node y/6 f32 [1, 3] = reshape y/5 shape=[1, 3]\n"
               "node y f32 [1, 3] = identity y/6\n"
               "node z/1 f32 [t, 2] = transpose v perm=[1, 0]\n"
               "node z f32 [t, 2] = identity z/1\n"
               "output y\n"
               "output z\n");
}

static void an_input_that_decides_a_shape_must_be_known(void **state)
{
    static const int64_t sizes[] = { 1, 2 };
    static const float x[] = { 0, 0 };
    const muc_tensor_view known[] = {
        { .name = "s",
          .dtype = MUC_I64,
          .rank = 1,
          .dims = { 2 },
          .elements = 2,
          .bytes = 16,
          .data = (const uint8_t *)sizes },
        { .name = "x",
          .dtype = MUC_F32,
          .rank = 1,
          .dims = { 2 },
          .elements = 2,
          .bytes = 8,
          .data = (const uint8_t *)x },
    };
    const muc_network_options options = { .known = known, .known_count = 2 };

    (void)state;
    check_text(SEEDS "bad_shape", &options,
               "tensor x = input f32 [2]\n"
               "tensor s = input i64 [1]\n"
               "node y f32 [1, 2] = reshape x shape=[1, 2]\n"
               "output y\n");
    CHECK_FAILS(ctx, MUC_UNSUPPORTED, "node 'y' (Reshape): input 1, 's', decides shapes",
                muc_network_open(ctx, SEEDS "bad_shape", NULL, &network));
}

static void what_is_not_read_is_named(void **state)
{
    static const struct {
        const char *path;
        muc_status status;
        const char *fragment;
    } cases[] = {
        { SEEDS "bad_cycle", MUC_MALFORMED, "'a' is computed from itself" },
        { SEEDS "bad_operator", MUC_UNSUPPORTED,
          "muc does not have an operator of the network: Frobnicate (1 node, 'y'); muc ops lists" },
        { SEEDS "bad_version", MUC_UNSUPPORTED,
          "node 'y' (Add): version 6 of the operator set of domain ''; muc reads the operator in "
          "versions 7 to" },
        { SEEDS "bad_attribute", MUC_UNSUPPORTED,
          "node 'y' (Relu): muc reads no attribute 'alpha' in version 13" },
        { SEEDS "bad_name", MUC_MALFORMED, "two values are named 'y'" },
        { SEEDS "bad_domain", MUC_MALFORMED,
          "node 'y' (Abs): the model imports no operator set of domain 'elsewhere'" },
        { SEEDS "bad_type", MUC_UNSUPPORTED, "'x' is of type STRING (8)" },
        { SEEDS "bad_depth", MUC_UNSUPPORTED, "functions and branches are deeper than 16" },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(cases); i++)
        CHECK_FAILS(ctx, cases[i].status, cases[i].fragment,
                    muc_network_open(ctx, cases[i].path, NULL, &network));
}

static void published_networks_are_read(void **state)
{
    static const char *const paths[] = {
        "onnx/Convnet_maxpool.onnx", "onnx/lenet5.onnx",           "onnx/light_bvlc_alexnet.onnx",
        "onnx/light_resnet50.onnx",  "onnx/light_squeezenet.onnx", "onnx/resnet_2b.onnx",
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(paths); i++) {
        CHECK_OK(ctx, muc_network_open(ctx, shared_data(paths[i]), NULL, &network));
        CHECK_EQ(network.graph->output_count, 1);
        muc_network_close(&network);
    }
}

/* The input that ONNX's runner makes up: i / n. Every weight of these networks is the same number,
 * so every class is as likely; what is tested is sizes, padding and all that a network is made of.
 */
static void check_light(const char *name)
{
    char path[128];
    muc_tensor_view x = { .name = "x", .dtype = MUC_F32, .rank = 4, .dims = { 1, 3, 224, 224 } };
    muc_tensor_view expected, *found;
    muc_arena arena = { 0 };
    muc_file file;
    float *values;

    snprintf(path, sizeof(path), "onnx/%s_output_0.pb", name);
    CHECK_OK(ctx, muc_file_open(ctx, shared_data(path), &file));
    CHECK_OK(ctx, muc_onnx_read_tensor(ctx, &arena, file.bytes, &expected));
    CHECK_OK(ctx, muc_tensor_measure(ctx, &x));
    CHECK_OK(ctx, MUC_ARENA_NEW(ctx, &arena, (size_t)x.elements, &values));
    for (uint64_t i = 0; i < x.elements; i++)
        values[i] = (float)((double)i / (double)x.elements);
    x.data = (const uint8_t *)values;
    snprintf(path, sizeof(path), "onnx/%s.onnx", name);
    CHECK_OK(ctx, muc_network_open(ctx, shared_data(path), NULL, &network));
    CHECK_OK(ctx, muc_network_run(ctx, network.graph, &x, 1, &arena, &found));
    CHECK_EQ(found[0].elements, expected.elements);
    for (uint64_t i = 0; i < expected.elements; i++)
        assert_float_equal(muc_array_element(&found[0], i), muc_array_element(&expected, i), 1e-6);
    muc_network_close(&network);
    muc_file_close(&file);
    muc_arena_free(&arena);
}

static void published_networks_give_their_published_outputs(void **state)
{
    (void)state;
    check_light("light_squeezenet");
#ifndef __SANITIZE_ADDRESS__ /* under which 5 billion products take minutes */
    check_light("light_bvlc_alexnet");
    check_light("light_resnet50");
#endif
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, new_context, teardown)
    const struct CMUnitTest tests[] = {
        T(padding_is_written_out_and_nodes_put_in_order),
        T(computed_shapes_are_expressions_of_dimensions),
        T(pads_computed_by_moving_numbers_are_known),
        T(old_versions_get_the_newest_meaning),
        T(functions_are_written_out_with_their_callers_attributes),
        T(a_known_condition_chooses_its_branch),
        T(constants_of_every_form_and_outputs_of_every_kind),
        T(attention_of_any_length_is_read),
        T(lengths_behind_a_cache_are_sums_of_dimensions),
        T(einsum_is_products_of_matrices),
        T(an_input_that_decides_a_shape_must_be_known),
        T(what_is_not_read_is_named),
        T(published_networks_are_read),
        T(published_networks_give_their_published_outputs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
