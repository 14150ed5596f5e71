/* Passes that change a graph and not what it computes: before and after, by ref. */
#include <math.h>

#include "chance.h"
#include "formats/network.h"
#include "passes/simplify/canonical.h"
#include "passes/integer/fold_qdq.h"
#include "passes/integer/shift_unsigned.h"
#include "ref/ref.h"

#define CONTEXT_THREADS 0
#include "context_fixture.h"

typedef muc_status pass(muc_context *ctx, muc_graph *graph);

/* ---- running ---- */

enum { MOST_INPUTS = 8, MOST_OUTPUTS = 8 };

typedef struct result {
    uint32_t count;
    struct {
        muc_dtype dtype;
        size_t elements;
        uint8_t *data;
    } outputs[MOST_OUTPUTS];
} result;

/* numbers of one sign and some spread, the same for every graph with these inputs */
static void fill(const muc_tensor *tensor, size_t elements, uint8_t *data)
{
    for (size_t i = 0; i < elements; i++) {
        uint32_t bits = (uint32_t)(i * 2654435761u) ^ (uint32_t)(i >> 3);

        if (tensor->dtype == MUC_F32) {
            float value = (float)(bits % 2001) / 1000 - 1;

            memcpy(data + i * 4, &value, 4);
        } else {
            data[i] = (uint8_t)(bits >> 8);
        }
    }
}

static void run(muc_graph *graph, result *out)
{
    const uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    muc_ref_input inputs[MOST_INPUTS];
    uint8_t *data[MOST_INPUTS];
    size_t count = 0;
    muc_ref *ref;

    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        uint64_t elements, bytes;

        if (graph->tensors[i].kind != MUC_TENSOR_INPUT)
            continue;
        CHECK(count < MOST_INPUTS);
        CHECK_OK(ctx, muc_tensor_measure_bound(ctx, graph, &graph->tensors[i], bindings, &elements,
                                               &bytes));
        data[count] = calloc(1, (size_t)bytes);
        assert_non_null(data[count]);
        fill(&graph->tensors[i], (size_t)(graph->tensors[i].dtype == MUC_F32 ? elements : bytes),
             data[count]);
        inputs[count] = (muc_ref_input){ graph->tensors[i].name, data[count], (size_t)bytes };
        count++;
    }
    CHECK_OK(ctx, muc_ref_open(ctx, graph, &ref));
    CHECK_OK(ctx, muc_ref_run(ref, bindings, inputs, count));
    out->count = graph->output_count;
    CHECK(out->count <= MOST_OUTPUTS);
    for (uint32_t i = 0; i < out->count; i++) {
        size_t bytes;
        muc_ref_view view;

        CHECK(muc_ref_get(ref, graph->outputs[i], &view));
        bytes = view.elements * muc_dtype_get(view.dtype)->block_bytes;
        out->outputs[i].dtype = view.dtype;
        out->outputs[i].elements = view.elements;
        out->outputs[i].data = malloc(bytes + 1);
        assert_non_null(out->outputs[i].data);
        memcpy(out->outputs[i].data, view.data, bytes);
    }
    muc_ref_close(ref);
    for (size_t i = 0; i < count; i++)
        free(data[i]);
}

/* integers are the same; real numbers differ by less than tolerance of the largest */
static void compare(const char *what, result *before, result *after, double tolerance)
{
    CHECK_EQ(before->count, after->count);
    for (uint32_t o = 0; o < before->count; o++) {
        double worst = 0, largest = 0;

        CHECK(before->outputs[o].dtype == after->outputs[o].dtype);
        CHECK_EQ(before->outputs[o].elements, after->outputs[o].elements);
        for (size_t i = 0; i < before->outputs[o].elements; i++) {
            float a, b;

            if (before->outputs[o].dtype != MUC_F32) {
                if (before->outputs[o].data[i] != after->outputs[o].data[i])
                    fail_msg("%s: output %u differs at byte %zu", what, o, i);
                continue;
            }
            memcpy(&a, before->outputs[o].data + i * 4, 4);
            memcpy(&b, after->outputs[o].data + i * 4, 4);
            worst = fmax(worst, fabs((double)a - (double)b));
            largest = fmax(largest, fabs((double)a));
        }
        if (!(worst <= tolerance * largest))
            fail_msg("%s: output %u is off by %g of %g", what, o, worst, largest);
    }
    for (uint32_t o = 0; o < before->count; o++) {
        free(before->outputs[o].data);
        free(after->outputs[o].data);
    }
}

static uint32_t count_nodes(const muc_graph *graph, muc_op op)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < graph->node_count; i++)
        count += graph->nodes[i].op == op;
    return count;
}

static muc_status all_passes(muc_context *context, muc_graph *graph)
{
    MUC_TRY(muc_canonicalise(context, graph));
    MUC_TRY(muc_fuse(context, graph));
    return muc_lay_channels_last(context, graph);
}

/* a graph's text, whose constants have their values: the pass changes it and not its results */
static muc_graph *check_text(const char *text, pass *change, double tolerance)
{
    const muc_bytes bytes = { (const uint8_t *)text, strlen(text), "test" };
    result before, after;
    muc_graph *graph;

    CHECK_OK(ctx, muc_graph_parse(ctx, bytes, &graph));
    run(graph, &before);
    CHECK_OK(ctx, change(ctx, graph));
    run(graph, &after);
    compare("text", &before, &after, tolerance);
    return graph;
}

/* ---- canonical ---- */

static void what_does_nothing_goes(void **state)
{
    muc_graph *graph = check_text("graph test\n"
                                  "tensor x = input f32 [2, 3, 4]\n"
                                  "node a f32 [2, 3, 4] = identity x\n"
                                  "node b f32 [6, 4] = reshape a shape=[6, 4]\n"
                                  "node c f32 [4, 6] = reshape b shape=[4, 6]\n"
                                  "node d f32 [6, 4] = transpose c perm=[1, 0]\n"
                                  "node e f32 [4, 6] = transpose d perm=[1, 0]\n"
                                  "node dead f32 [4, 6] = exp e\n"
                                  "node f f32 [4, 6] = pad e pads=[0, 0, 0, 0]\n"
                                  "node y f32 [4, 6] = relu f\n"
                                  "output y\n",
                                  muc_canonicalise, 0);

    (void)state;
    CHECK_EQ(graph->node_count, 2); /* reshape, relu */
    CHECK(graph->nodes[0].op == MUC_OP_RESHAPE && graph->nodes[1].op == MUC_OP_RELU);
    muc_graph_free(graph);
}

/* nodes whose output has the input's shape: a to e give it, of f, h and j elements move */
static void what_moves_within_a_shape_stays(void **state)
{
    muc_graph *graph = check_text("graph test\n"
                                  "tensor x = input f32 [1, 4, 4, 4]\n"
                                  "node a f32 [1, 4, 4, 4] = tile x repeats=[1, 1, 1, 1]\n"
                                  "node b f32 [1, 4, 4, 4] = depth_to_space a block=1\n"
                                  "node c f32 [1, 4, 4, 4] = concat b axis=1\n"
                                  "node d f32 [1, 4, 4, 4] = expand c shape=[1, 4, 4, 4]\n"
                                  "node e f32 [1, 4, 4, 4] = slice d axes=[1] starts=[0] sizes=[4] "
                                  "steps=[1]\n"
                                  "node f f32 [1, 4, 4, 4] = slice e axes=[1] starts=[3] sizes=[4] "
                                  "steps=[-1]\n"
                                  "node g f32 [1, 4, 4, 4] = exp f\n"
                                  "node h f32 [1, 4, 4, 4] = pad g pads=[0, 1, 0, 0, 0, -1, 0, 0]\n"
                                  "node i f32 [1, 4, 4, 4] = exp h\n"
                                  "node j f32 [1, 4, 4, 4] = transpose i perm=[0, 2, 1, 3]\n"
                                  "node y f32 [1, 4, 4, 4] = relu j\n"
                                  "output y\n",
                                  muc_canonicalise, 0);

    (void)state;
    CHECK_EQ(graph->node_count, 6);
    CHECK(graph->nodes[0].op == MUC_OP_SLICE && graph->nodes[2].op == MUC_OP_PAD);
    CHECK(graph->nodes[4].op == MUC_OP_TRANSPOSE);
    muc_graph_free(graph);
}

static void a_transpose_that_moves_nothing_is_a_view(void **state)
{
    muc_graph *graph = check_text("graph test\n"
                                  "tensor x = input f32 [1, 3, 1, 4]\n"
                                  "node y f32 [3, 1, 4, 1] = transpose x perm=[1, 0, 3, 2]\n"
                                  "output y\n",
                                  muc_canonicalise, 0);

    (void)state;
    CHECK(graph->node_count == 1 && graph->nodes[0].op == MUC_OP_RESHAPE);
    muc_graph_free(graph);
}

static void an_output_keeps_its_name(void **state)
{
    muc_graph *graph = check_text("graph test\n"
                                  "tensor x = input f32 [4]\n"
                                  "node a f32 [4] = exp x\n"
                                  "node y f32 [4] = identity a\n"
                                  "output y\n",
                                  muc_canonicalise, 0);

    (void)state;
    CHECK(strcmp(graph->tensors[graph->outputs[0]].name, "y") == 0);
    muc_graph_free(graph);
}

static void a_vector_in_a_product_is_a_matrix(void **state)
{
    muc_graph *graph = check_text("graph test\n"
                                  "tensor x = input i8 [4] scale 0.5 zero 3\n"
                                  "tensor m = input i8 [2, 4, 3] scale 0.25 zero -1\n"
                                  "tensor k = const f32 [4] values 1, -2, 3, 4\n"
                                  "tensor f = input f32 [2, 4]\n"
                                  "node a i8 [2, 3] scale 2 zero 5 = matmul x, m\n"
                                  "node b i8 [] scale 2 zero 5 = matmul x, x\n"
                                  "node c f32 [2] = matmul f, k\n"
                                  "output a\n"
                                  "output b\n"
                                  "output c\n",
                                  muc_canonicalise, 1e-6);

    (void)state;
    CHECK_EQ(count_nodes(graph, MUC_OP_MATMUL), 3);
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t j = 0; graph->nodes[i].op == MUC_OP_MATMUL && j < 2; j++)
            CHECK(graph->tensors[graph->nodes[i].inputs[j]].rank >= 2);
    muc_graph_free(graph);
}

/* what moves 16-bit floats alone keeps them as they are */
static void states_that_are_computed_with_are_f32(void **state)
{
    muc_graph *graph = check_text("graph test\n"
                                  "tensor x = input f16 [1, 3]\n"
                                  "tensor s = state f16 [1, 4]\n"
                                  "tensor o = state f64 [1, 3]\n"
                                  "tensor k = state f16 [4, 3]\n"
                                  "tensor f = const f16 [2, 3] values 1, -1, 0.5, 0.25, 1, 2\n"
                                  "tensor t = const f16 [2, 2] values 1, -1, 0.5, 0.25\n"
                                  "node r f16 [1, 2] = svdf x, f, t, s rank=1\n"
                                  "node v f16 [1, 4] = read s\n"
                                  "node u f64 [1, 3] = read o\n"
                                  "node w f64 [1, 3] = cast x to=f64\n"
                                  "node g f64 [1, 3] = add u, w\n"
                                  "node h f64 [1, 3] = assign o, g\n"
                                  "node i f32 [1, 3] = cast h to=f32\n"
                                  "node a f16 [4, 3] = append k, x axis=0 position=3\n"
                                  "output r\n"
                                  "output v\n"
                                  "output i\n"
                                  "output a\n",
                                  muc_compute_in_f32, 1e-6);

    (void)state;
    CHECK(graph->tensors[muc_graph_find(graph, "s")].dtype == MUC_F32);
    CHECK(graph->tensors[muc_graph_find(graph, "o")].dtype == MUC_F32);
    CHECK(graph->tensors[muc_graph_find(graph, "k")].dtype == MUC_F16);
    assert_string_equal(graph->tensors[graph->outputs[0]].name, "r"); /* cast back to f16 */
    muc_graph_free(graph);
}

/* ---- fuse ---- */

static void norms_and_biases_go_into_weights(void **state)
{
    muc_graph *graph = check_text(
        "graph test\n"
        "tensor x = input f32 [1, 2, 3, 3]\n"
        "tensor w = const f32 [2, 2, 2, 2] values 1, -2, 0.5, 3, 0.25, 1, 2, -1, -1, 0, 2, 1, "
        "0.5, 0.5, -3, 1\n"
        "tensor b = const f32 [2] values 0.5, -0.25\n"
        "tensor g = const f32 [2] values 2, 0.5\n"
        "tensor beta = const f32 [2] values 1, -1\n"
        "tensor mean = const f32 [2] values 0.25, 0.75\n"
        "tensor var = const f32 [2] values 4, 0.0625\n"
        "tensor m = const f32 [8, 3] values 1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -2, -3, -4, -5, -6, "
        "-7, -8, -9, 0, 1, 0, 1, 0, 1\n"
        "tensor add = const f32 [3] values 10, 20, 30\n"
        "node c f32 [1, 2, 2, 2] = conv x, w, b\n"
        "node n f32 [1, 2, 2, 2] = batch_norm c, g, beta, mean, var epsilon=1e-05\n"
        "node f f32 [1, 8] = reshape n shape=[1, 8]\n"
        "node p f32 [1, 3] = matmul f, m\n"
        "node y f32 [1, 3] = add p, add\n"
        "output y\n",
        muc_fuse, 1e-6);

    (void)state;
    CHECK_EQ(graph->node_count, 3);
    CHECK_EQ(count_nodes(graph, MUC_OP_LINEAR), 1);
    muc_graph_free(graph);
}

/* some exporters give matrices and biases as many dimensions as the data have */
static void a_stack_of_one_matrix_is_a_matrix(void **state)
{
    muc_graph *graph = check_text("graph test\n"
                                  "tensor x = input f32 [1, 2, 3]\n"
                                  "tensor m = const f32 [1, 3, 2] values 1, 2, 3, 4, 5, 6\n"
                                  "tensor b = const f32 [1, 1, 2] values 10, 20\n"
                                  "node p f32 [1, 2, 2] = matmul x, m\n"
                                  "node y f32 [1, 2, 2] = add p, b\n"
                                  "output y\n",
                                  muc_fuse, 1e-6);

    (void)state;
    CHECK_EQ(graph->node_count, 1);
    CHECK_EQ(count_nodes(graph, MUC_OP_LINEAR), 1);
    muc_graph_free(graph);
}

/* a matrix of higher rank than the data lifts the result's */
static void a_matrix_of_more_dimensions_stays(void **state)
{
    muc_graph *graph = check_text("graph test\n"
                                  "tensor x = input f32 [2, 3]\n"
                                  "tensor m = const f32 [1, 3, 2] values 1, 2, 3, 4, 5, 6\n"
                                  "node y f32 [1, 2, 2] = matmul x, m\n"
                                  "output y\n",
                                  muc_fuse, 1e-6);

    (void)state;
    CHECK_EQ(count_nodes(graph, MUC_OP_MATMUL), 1);
    muc_graph_free(graph);
}

static void padding_goes_into_a_convolution(void **state)
{
    muc_graph *graph = check_text(
        "graph test\n"
        "tensor x = input i8 [1, 3, 3, 1] scale 0.5 zero -3\n"
        "tensor w = const i8 [1, 2, 2, 1] scale 0.25 zero 0 values 1, -2, 3, 4\n"
        "node p i8 [1, 5, 4, 1] scale 0.5 zero -3 = pad x pads=[0, 1, 0, 0, 0, 1, 1, 0]\n"
        "node c i8 [1, 4, 3, 1] scale 0.75 zero 2 = conv p, w channels_last=1\n"
        "node y i8 [1, 4, 3, 1] scale 0.75 zero 2 = relu c\n"
        "output y\n",
        muc_fuse, 0);
    const int64_t *pads = muc_node_integers(&graph->nodes[0], MUC_KEY_PADS);

    (void)state;
    CHECK_EQ(graph->node_count, 1);
    CHECK(pads[0] == 1 && pads[1] == 0 && pads[2] == 1 && pads[3] == 1);
    CHECK_EQ(muc_node_integer(&graph->nodes[0], MUC_KEY_CLAMP_MIN), 2);
    muc_graph_free(graph);
}

/* ---- layout ---- */

static void channels_first_becomes_channels_last(void **state)
{
    muc_graph *graph = check_text(
        "graph test\n"
        "tensor x = input f32 [1, 2, 4, 4]\n"
        "tensor w = const f32 [3, 2, 2, 2] values 1, -2, 0.5, 3, 0.25, 1, 2, -1, -1, 0, 2, 1, "
        "0.5, 0.5, -3, 1, 2, 1, 0, -1, 0.125, 2, 3, 1\n"
        "tensor s = const f32 [3, 1, 1] values 2, 3, 4\n"
        "tensor m = const f32 [1, 12] values 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12\n"
        "node c f32 [1, 3, 5, 5] = conv x, w pads=[1, 1, 1, 1]\n"
        "node t f32 [1, 3, 5, 5] = mul c, s\n"
        "node r f32 [1, 3, 5, 5] = relu t\n"
        "node p f32 [1, 3, 2, 2] = max_pool r kernel=[3, 3] strides=[2, 2]\n"
        "node a f32 [1, 6, 2, 2] = concat p, p axis=1\n"
        "node h f32 [1, 3, 2, 2] = slice a axes=[1] starts=[2] sizes=[3]\n"
        "node f f32 [1, 12] = reshape h shape=[1, 12]\n"
        "node y f32 [1, 1] = linear f, m\n"
        "node mean f32 [1, 6] = reduce_mean a axes=[2, 3] keep_dims=0\n"
        "output y\n"
        "output mean\n"
        "output p\n",
        muc_lay_channels_last, 1e-6);

    (void)state;
    CHECK_EQ(count_nodes(graph, MUC_OP_TRANSPOSE), 2); /* of x and of the output p */
    muc_graph_free(graph);
}

/* what exporters of TensorFlow write: transposes around every convolution */
static void transposes_of_the_network_cancel(void **state)
{
    muc_graph *graph =
        check_text("graph test\n"
                   "tensor x = input f32 [1, 4, 4, 2]\n"
                   "tensor w = const f32 [1, 2, 2, 2] values 1, -2, 0.5, 3, 0.25, 1, 2, -1\n"
                   "node a f32 [1, 2, 4, 4] = transpose x perm=[0, 3, 1, 2]\n"
                   "node c f32 [1, 1, 3, 3] = conv a, w\n"
                   "node d f32 [1, 3, 3, 1] = transpose c perm=[0, 2, 3, 1]\n"
                   "node y f32 [1, 3, 3, 1] = relu d\n"
                   "output y\n",
                   muc_lay_channels_last, 1e-6);

    (void)state;
    CHECK_EQ(graph->node_count, 2);
    CHECK(graph->nodes[0].op == MUC_OP_CONV && graph->nodes[1].op == MUC_OP_RELU);
    muc_graph_free(graph);
}

/* ---- pairs of steps ---- */

static muc_status split_and_fold(muc_context *to, muc_graph *graph)
{
    MUC_TRY(muc_split_qlinear(to, graph));
    return muc_fold_quantization(to, graph);
}

/* every product of scales is a power of two, so that real and integer arithmetic agree */
/* what onnxruntime writes: bytes without a sign, operators on bytes, clips, products with [in, out]
 */
static void bytes_without_a_sign_become_signed_ones(void **state)
{
    muc_graph *graph = check_text(
        "graph test\n"
        "tensor x = input f32 [1, 1, 4, 4]\n"
        "tensor sx = const f32 [] values 0.015625\n"
        "tensor zx = const u8 [] values 131\n"
        "tensor w = const i8 [2, 1, 2, 2] values 1, -2, 3, 4, -5, 6, 7, 8\n"
        "tensor sw = const f32 [2] values 0.5, 0.25\n"
        "tensor zw = const i8 [2] values 0, 0\n"
        "tensor b = const i32 [2] values 64, -32\n"
        "tensor sy = const f32 [] values 0.0625\n"
        "tensor zy = const u8 [] values 128\n"
        "tensor high = const f32 [] values 1.5\n"
        "tensor low = const f32 [] values -1.5\n"
        "tensor m = const i8 [8, 2] values 1, 2, 3, 4, -4, -3, -2, -1, 5, 5, 5, 5, 1, 1, 1, 1\n"
        "tensor sm = const f32 [2] values 0.0625, 0.03125\n"
        "node q u8 [1, 1, 4, 4] = quantize_linear x, sx, zx\n"
        "node c u8 [1, 2, 3, 3] = qlinear_conv q, sx, zx, w, sw, zw, sy, zy, b\n"
        "node p u8 [1, 2, 2, 2] = max_pool c kernel=[2, 2]\n"
        "node f u8 [1, 8] = reshape p shape=[1, 8]\n"
        "node fd f32 [1, 8] = dequantize_linear f, sy, zy\n"
        "node md f32 [8, 2] = dequantize_linear m, sm, zw axis=1\n"
        "node g f32 [1, 2] = matmul fd, md\n"
        "node k f32 [1, 2] = clip g, low, high\n"
        "node kq u8 [1, 2] = quantize_linear k, sy, zy\n"
        "node y f32 [1, 2] = dequantize_linear kq, sy, zy\n"
        "output y\n",
        split_and_fold, 0.07);

    (void)state;
    CHECK_OK(ctx, muc_fuse(ctx, graph));
    CHECK_EQ(graph->node_count, 6); /* quantize, conv, max_pool, reshape, linear, dequantize */
    for (uint32_t i = 0; i < graph->node_count; i++)
        CHECK(i + 1 == graph->node_count ||
              graph->tensors[graph->nodes[i].outputs[0]].dtype == MUC_I8);
    CHECK_EQ(graph->nodes[4].op, MUC_OP_LINEAR);
    CHECK_EQ(muc_node_integer_or(graph->nodes + 4, MUC_KEY_CLAMP_MAX, 0), 24);
    muc_graph_free(graph);
}

/* the output y keeps its name, and so does the tensor that is called as its form of i8 would be */
static void names_of_signed_forms_are_free(void **state)
{
    muc_graph *graph = check_text("graph test\n"
                                  "tensor x = input u8 [4] scale 0.5 zero 128\n"
                                  "tensor z = const u8 [4] scale 0.5 zero 3 values 3, 4, 5, 6\n"
                                  "node y#i8 u8 [4] scale 0.5 zero 10 = add x, x\n"
                                  "node y u8 [4] scale 0.5 zero 7 = add y#i8, z\n"
                                  "output y\n",
                                  muc_shift_quantized, 0);

    (void)state;
    CHECK(muc_graph_find(graph, "y") == graph->outputs[0]);
    CHECK_EQ(graph->tensors[graph->outputs[0]].dtype, MUC_U8);
    CHECK(muc_graph_find(graph, "y#i8#2") != MUC_NO_ID);
    muc_graph_free(graph);
}

static void steps_around_operators_become_integer_operators(void **state)
{
    muc_graph *graph =
        check_text("graph test\n"
                   "tensor x = input f32 [1, 1, 3, 3]\n"
                   "tensor sx = const f32 [] values 0.015625\n"
                   "tensor sw = const f32 [2] values 0.5, 0.25\n"
                   "tensor sy = const f32 [] values 0.03125\n"
                   "tensor sz = const f32 [] values 0.0625\n"
                   "tensor zx = const i8 [] values 3\n"
                   "tensor zw = const i8 [2] values 0, 0\n"
                   "tensor zy = const i8 [] values -128\n"
                   "tensor w = const i8 [2, 1, 2, 2] values 1, -2, 3, 4, -5, 6, 7, 8\n"
                   "tensor b = const f32 [2] values 0.5, -0.25\n"
                   "tensor m = const i8 [1, 8] values 1, 2, 3, 4, -4, -3, -2, -1\n"
                   "node q i8 [1, 1, 3, 3] = quantize_linear x, sx, zx\n"
                   "node d f32 [1, 1, 3, 3] = dequantize_linear q, sx, zx\n"
                   "node wd f32 [2, 1, 2, 2] = dequantize_linear w, sw, zw axis=0\n"
                   "node c f32 [1, 2, 2, 2] = conv d, wd, b\n"
                   "node r f32 [1, 2, 2, 2] = relu c\n"
                   "node cq i8 [1, 2, 2, 2] = quantize_linear r, sy, zy\n"
                   "node cd f32 [1, 2, 2, 2] = dequantize_linear cq, sy, zy\n"
                   "node f f32 [1, 8] = reshape cd shape=[1, 8]\n"
                   "node fq i8 [1, 8] = quantize_linear f, sy, zy\n"
                   "node fd f32 [1, 8] = dequantize_linear fq, sy, zy\n"
                   "node md f32 [1, 8] = dequantize_linear m, sz, zx\n"
                   "node g f32 [1, 1] = gemm fd, md transpose_b=1\n"
                   "node gq i8 [1, 1] = quantize_linear g, sz, zx\n"
                   "node y f32 [1, 1] = dequantize_linear gq, sz, zx\n"
                   "output y\n",
                   muc_fold_quantization, 0.02);

    (void)state;
    CHECK_OK(ctx, muc_fuse(ctx, graph));
    CHECK_EQ(graph->node_count, 5); /* quantize, conv, reshape, linear, dequantize */
    CHECK_EQ(count_nodes(graph, MUC_OP_CONV) + count_nodes(graph, MUC_OP_LINEAR), 2);
    CHECK_EQ(count_nodes(graph, MUC_OP_RELU), 0);
    muc_graph_free(graph);
}

/* ---- whole networks ---- */

static uint32_t check_network(const char *path, double tolerance)
{
    result before, after;
    muc_network network;
    uint32_t transposes;
    char what[256];

    snprintf(what, sizeof(what), "%s", path);
    CHECK_OK(ctx, muc_network_open(ctx, shared_data(path), NULL, &network));
    run(network.graph, &before);
    CHECK_OK(ctx, all_passes(ctx, network.graph));
    run(network.graph, &after);
    transposes = count_nodes(network.graph, MUC_OP_TRANSPOSE);
    print_message("%s: %u nodes, %u transposes\n", what, network.graph->node_count, transposes);
    compare(what, &before, &after, tolerance);
    muc_network_close(&network);
    return transposes;
}

static void integer_networks_compute_the_same_bits(void **state)
{
    static const char *const paths[] = {
        "tflite/vww.tflite",           "tflite/kws_ref_model.tflite",
        "tflite/mnist_dw_q.tflite",    "tflite/mnist_valid_q.tflite",
        "tflite/cifar10_q.tflite",     "tflite/hello_world_int8.tflite",
        "tflite/person_detect.tflite",
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(paths); i++)
        CHECK_EQ(check_network(paths[i], 0), 0);
}

static void real_networks_compute_the_same_within_rounding(void **state)
{
    static const char *const paths[] = {
        "tflite/pretrainedResnet.tflite",
        "tflite/kws_ref_model_float32.tflite",
#ifdef MUC_WITH_ONNX
        "onnx/lenet5.onnx",
        "onnx/Convnet_maxpool.onnx",
        "onnx/resnet_2b.onnx",
#endif
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(paths); i++)
        CHECK(check_network(paths[i], 1e-4) <= 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, new_context, free_context)
    const struct CMUnitTest tests[] = {
        T(what_does_nothing_goes),
        T(what_moves_within_a_shape_stays),
        T(a_transpose_that_moves_nothing_is_a_view),
        T(an_output_keeps_its_name),
        T(a_vector_in_a_product_is_a_matrix),
        T(states_that_are_computed_with_are_f32),
        T(norms_and_biases_go_into_weights),
        T(a_stack_of_one_matrix_is_a_matrix),
        T(a_matrix_of_more_dimensions_stays),
        T(padding_goes_into_a_convolution),
        T(channels_first_becomes_channels_last),
        T(transposes_of_the_network_cancel),
        T(names_of_signed_forms_are_free),
        T(bytes_without_a_sign_become_signed_ones),
        T(steps_around_operators_become_integer_operators),
        T(integer_networks_compute_the_same_bits),
        T(real_networks_compute_the_same_within_rounding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
