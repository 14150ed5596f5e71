/* test_int8.c - float networks become int8: structure, error bounds, agreement, determinism. */
#include "operators.h"

#include "run/network_int8.h"
#include "muc/compile.h"

enum { SAMPLES = 60, IN = 8, OUT = 4 };

static uint64_t seed;

/* -1 .. 1 */
static float random_real(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(seed >> 40) / 8388608 - 1);
}

static void add_values(muc_text *text, size_t count)
{
    for (size_t i = 0; i < count; i++)
        muc_text_add(text, "%s%.9g", i ? ", " : " values ", (double)random_real());
    muc_text_add(text, "\n");
}

/* calibrates on random samples of input x and makes the graph int8 */
static muc_graph *int8_of(muc_context *ctx, const char *text, const float *samples,
                          uint64_t elements)
{
    muc_graph *graph = graph_of(ctx, text);
    muc_tensor_view array = { .name = "x",
                              .file = "test",
                              .dtype = MUC_F32,
                              .rank = 2,
                              .dims = { SAMPLES, elements },
                              .elements = SAMPLES * elements,
                              .data = (const uint8_t *)samples,
                              .bytes = SAMPLES * elements * sizeof(float) };

    CHECK_OK(ctx, muc_network_to_int8(ctx, graph, &array, 1, NULL));
    CHECK_OK(ctx, muc_graph_verify(ctx, graph));
    return graph;
}

static const float *run(muc_context *ctx, muc_graph *graph, const float *x, size_t elements,
                        muc_ref **ref)
{
    const muc_ref_input input = { "x", x, elements * sizeof(float) };
    const uint32_t bindings[1] = { 0 };
    muc_ref_view view;

    CHECK_OK(ctx, muc_ref_open(ctx, graph, ref));
    CHECK_OK(ctx, muc_ref_run(*ref, bindings, &input, 1));
    CHECK(muc_ref_get(*ref, graph->outputs[0], &view));
    CHECK_EQ(view.dtype, MUC_F32);
    return view.data;
}

/* what rounding of inputs, weights and outputs may cost, all at their worst at once */
static void a_layer_is_within_what_its_scales_imply(void **state)
{
    muc_context *ctx = muc_context_new(1);
    float samples[SAMPLES][IN], *w, *b;
    muc_text text = { 0 };
    muc_graph *real, *integer;
    const muc_quantization *q, *wq, *xq;

    (void)state;
    seed = 5;
    muc_text_add(&text, "graph layer\ntensor x = input f32 [1, %d]\ntensor w = const f32 [%d, %d]",
                 IN, OUT, IN);
    add_values(&text, OUT * IN);
    muc_text_add(&text, "tensor b = const f32 [%d]", OUT);
    add_values(&text, OUT);
    muc_text_add(&text, "node y f32 [1, %d] = linear x, w, b\noutput y\n", OUT);
    for (size_t i = 0; i < SAMPLES * IN; i++)
        samples[i / IN][i % IN] = random_real();
    real = graph_of(ctx, text.data);
    integer = int8_of(ctx, text.data, samples[0], IN);
    w = (float *)(uintptr_t)real->tensors[muc_graph_find(real, "w")].data;
    b = (float *)(uintptr_t)real->tensors[muc_graph_find(real, "b")].data;
    q = integer->tensors[muc_graph_find(integer, "y.int8")].quantization;
    wq = integer->tensors[muc_graph_find(integer, "w.int8")].quantization;
    xq = integer->tensors[muc_graph_find(integer, "x.int8")].quantization;
    CHECK_EQ(wq->count, OUT);
    CHECK_EQ(q->count, 1);
    for (size_t s = 0; s < SAMPLES; s++) {
        muc_ref *ref;
        const float *y = run(ctx, integer, samples[s], IN, &ref);

        for (size_t o = 0; o < OUT; o++) {
            double exact = (double)b[o], bound = (double)q->scales[0];
            double low = (double)q->scales[0] * (-128 - q->zero_points[0]);
            double high = (double)q->scales[0] * (127 - q->zero_points[0]);
            double x_low = (double)xq->scales[0] * (-128 - xq->zero_points[0]);
            double x_high = (double)xq->scales[0] * (127 - xq->zero_points[0]);

            for (size_t i = 0; i < IN; i++) {
                double x = (double)samples[s][i], wi = (double)w[o * IN + i];

                exact += x * wi;
                /* beyond the bounds that calibration chose an input is clipped */
                bound += fabs(wi) * fmax(0, fmax(x_low - x, x - x_high));
                bound += ((double)xq->scales[0] * fabs(wi) + (double)wq->scales[o] * fabs(x)) / 2 +
                         (double)xq->scales[0] * (double)wq->scales[o] / 4;
            }
            exact = fmax(low, fmin(high, exact));
            if (!(fabs(exact - (double)y[o]) <= bound))
                fail_msg("sample %zu: %g, expected %g within %g", s, (double)y[o], exact, bound);
        }
        muc_ref_close(ref);
    }
    muc_graph_free(real);
    muc_graph_free(integer);
    muc_text_free(&text);
    muc_context_free(ctx);
}

/* however far apart their weights: a byte says which of eight mantissas and which exponent */
static void scales_of_linears_channels_have_eight_mantissas(void **state)
{
    enum { CHANNELS = 60, ZEROS = 7 }; /* the second: a channel of zeros */
    muc_context *ctx = muc_context_new(1);
    float samples[SAMPLES][IN], most[CHANNELS] = { 0 }, mantissas[CHANNELS], greatest = 0;
    muc_text text = { 0 };
    const muc_quantization *q;
    muc_graph *graph;
    size_t count = 0;

    (void)state;
    seed = 6;
    muc_text_add(&text, "graph layer\ntensor x = input f32 [1, %d]\ntensor w = const f32 [%d, %d]",
                 IN, CHANNELS, IN);
    for (size_t c = 0; c < CHANNELS; c++)
        for (size_t i = 0; i < IN; i++) {
            float w = c == ZEROS ? 0 : random_real() * expf((float)(c % 9) - 4);

            most[c] = fmaxf(most[c], fabsf(w));
            muc_text_add(&text, "%s%.9g", c + i ? ", " : " values ", (double)w);
        }
    muc_text_add(&text, "\nnode y f32 [1, %d] = linear x, w\noutput y\n", CHANNELS);
    for (size_t i = 0; i < SAMPLES * IN; i++)
        samples[i / IN][i % IN] = random_real();
    graph = int8_of(ctx, text.data, samples[0], IN);
    q = graph->tensors[muc_graph_find(graph, "w.int8")].quantization;
    CHECK_EQ(q->count, CHANNELS);
    for (size_t c = 0; c < CHANNELS; c++) {
        double wide = (double)q->scales[c] * 127 / (double)most[c];
        int exponent;
        float mantissa = frexpf(q->scales[c], &exponent);
        size_t i = 0;

        if (c != ZEROS && !(wide > 1 - 1e-6 && wide < 1.0906)) /* 2^(1/8) */
            fail_msg("channel %zu: %g of what its weights need", c, wide);
        while (i < count && mantissas[i] != mantissa)
            i++;
        if (i == count)
            mantissas[count++] = mantissa;
        greatest = fmaxf(greatest, q->scales[c]);
    }
    CHECK_EQ(count, 8);
    assert_true(q->scales[ZEROS] == greatest);
    muc_graph_free(graph);
    muc_text_free(&text);
    muc_context_free(ctx);
}

/* every operator but the first and the last is one that was float once */
static void more_operators_have_int8_forms(void **state)
{
    static const char text[] =
        "graph more\n"
        "tensor x = input f32 [1, 4, 4, 2]\n"
        "tensor w = const f32 [4, 1, 1, 2] values 0.5, -1, 2, 0.25, -0.75, 1, 1, 1\n"
        "tensor s = const f32 [4] values 0.1, 0.25, -0.5, 1\n"
        "node c f32 [1, 4, 4, 4] = conv x, w channels_last=1\n"
        "node h f32 [1, 4, 4, 4] = hard_swish c\n"
        "node l f32 [1, 4, 4, 4] = leaky_relu h alpha=0.1\n"
        "node i f32 [1, 4, 4, 4] = silu l\n"
        "node p f32 [1, 4, 4, 4] = prelu i, s\n"
        "node g f32 [1, 4, 4, 4] = hard_sigmoid p alpha=0.2 beta=0.5\n"
        "node m f32 [1, 4, 4, 4] = matmul g, p\n"
        "node r f32 [1, 8, 6, 4] = resize m sizes=[1, 8, 6, 4] mode=linear "
        "coordinates=half_pixel\n"
        "node y f32 [1, 1, 1, 4] = reduce_max r axes=[1, 2]\n"
        "output y\n";
    muc_context *ctx = muc_context_new(1);
    float samples[SAMPLES][32];
    muc_graph *real = graph_of(ctx, text), *integer;

    (void)state;
    seed = 7;
    for (size_t i = 0; i < SAMPLES * 32; i++)
        samples[i / 32][i % 32] = random_real();
    integer = int8_of(ctx, text, samples[0], 32);
    for (uint32_t i = 0; i < integer->node_count; i++)
        if (integer->nodes[i].op != MUC_OP_QUANTIZE && integer->nodes[i].op != MUC_OP_DEQUANTIZE)
            CHECK(integer->tensors[integer->nodes[i].outputs[0]].dtype == MUC_I8);
    for (size_t s = 0; s < SAMPLES; s++) {
        muc_ref *ref, *other;
        const float *y = run(ctx, integer, samples[s], 32, &ref);
        const float *exact = run(ctx, real, samples[s], 32, &other);

        /* eight roundings of results up to 10, each of 1/256 of its range at most */
        for (size_t i = 0; i < 4; i++)
            if (!(fabsf(y[i] - exact[i]) <= 0.25f))
                fail_msg("sample %zu: %g, expected %g", s, (double)y[i], (double)exact[i]);
        muc_ref_close(ref);
        muc_ref_close(other);
    }
    muc_graph_free(real);
    muc_graph_free(integer);
    muc_context_free(ctx);
}

/* the operators of a graph that is int8 but at its ends, "op op" */
static void check_operators(const muc_graph *graph, const char *expected)
{
    muc_text found = { 0 };

    for (uint32_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].op != MUC_OP_QUANTIZE && graph->nodes[i].op != MUC_OP_DEQUANTIZE)
            muc_text_add(&found, "%s%s%s", found.size ? " " : "",
                         muc_op_get(graph->nodes[i].op)->name,
                         graph->tensors[graph->nodes[i].outputs[0]].dtype == MUC_I8 ? "" : "!");
    assert_string_equal(found.data, expected);
    muc_text_free(&found);
}

/* the int8 network beside the one of real numbers, in steps of the output's scale */
static void check_close(muc_context *ctx, const char *text, const float *samples, size_t elements,
                        const char *operators, double steps)
{
    muc_graph *integer = int8_of(ctx, text, samples, elements), *real = graph_of(ctx, text);
    const muc_tensor *y = &integer->tensors[integer->outputs[0]];
    double bound =
        steps *
        (double)integer->tensors[integer->nodes[y->producer].inputs[0]].quantization->scales[0];
    double worst = 0;

    check_operators(integer, operators);
    for (size_t s = 0; s < SAMPLES; s++) {
        muc_ref *ref, *other;
        const float *found = run(ctx, integer, samples + s * elements, elements, &ref);
        const float *exact = run(ctx, real, samples + s * elements, elements, &other);

        for (size_t i = 0; i < OUT; i++)
            worst = fmax(worst, fabs((double)found[i] - (double)exact[i]));
        muc_ref_close(ref);
        muc_ref_close(other);
    }
    if (!(worst <= bound))
        fail_msg("%s: %g, expected %g", operators, worst, bound);
    muc_graph_free(integer);
    muc_graph_free(real);
}

/* steps between two int8 tensors are one table; times a constant nothing at all */
static void functions_of_one_tensor_are_tables(void **state)
{
    static const char text[] =
        "graph functions\n"
        "tensor x = input f32 [1, 4]\n"
        "tensor w = const f32 [4, 4] values 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1\n"
        "tensor k = const f32 [] values 0.35\n"
        "tensor two = const f32 [1, 1] values 2\n"
        "node c f32 [1, 4] = linear x, w\n"
        "node e f32 [1, 4] = exp c\n"
        "node a f32 [1, 4] = add e, two\n"
        "node l f32 [1, 4] = log a\n"
        "node s f32 [1, 4] = sin c\n"
        "node p f32 [1, 4] = mul l, s\n"
        "node n f32 [1, 4] = linear p, w\n"
        "node m f32 [1, 4] = mul n, k\n"
        "node y f32 [1, 4] = add m, x\n"
        "output y\n";
    muc_context *ctx = muc_context_new(1);
    float samples[SAMPLES][4];

    (void)state;
    seed = 13;
    for (size_t i = 0; i < SAMPLES * 4; i++)
        samples[i / 4][i % 4] = 2 * random_real();
    check_close(ctx, text, samples[0], 4, "linear lookup linear identity add", 5);
    muc_context_free(ctx);
}

/* magnitudes over six decades: 256 equal steps would leave nothing of most */
static void a_logarithm_of_an_input_stays_real(void **state)
{
    static const char text[] = "graph magnitudes\n"
                               "tensor x = input f32 [1, 4]\n"
                               "tensor e = const f32 [] values 1e-6\n"
                               "tensor w = const f32 [4, 4] values 1, 2, 0, 0, 0, 1, 0, 0, 0, 0, "
                               "1, 3, 0, 0, 0, 1\n"
                               "node a f32 [1, 4] = add x, e\n"
                               "node l f32 [1, 4] = log a\n"
                               "node y f32 [1, 4] = linear l, w\n"
                               "output y\n";
    muc_context *ctx = muc_context_new(1);
    float samples[SAMPLES][4];

    (void)state;
    seed = 17;
    for (size_t i = 0; i < SAMPLES * 4; i++)
        samples[i / 4][i % 4] = expf(7 * random_real());
    check_close(ctx, text, samples[0], 4, "add! log! linear", 5);
    muc_context_free(ctx);
}

static void norms_and_joined_constants_are_integers(void **state)
{
    static const char text[] = "graph norms\n"
                               "tensor x = input f32 [1, 4, 8]\n"
                               "tensor k = const f32 [1, 1, 8] values 5, 1, -1, 0.5, 1, 2, -4, 0\n"
                               "tensor g = const f32 [8] values 1, 0.5, 2, -1, 1, 1, 0.1, 1.5\n"
                               "tensor b = const f32 [8] values 0, 1, -1, 0.5, 0, 0, 2, 0\n"
                               "node c f32 [1, 5, 8] = concat k, x axis=1\n"
                               "node n f32 [1, 5, 8] = layer_norm c, g, b axis=2 epsilon=0.00001\n"
                               "node y f32 [1, 5, 8] = rmsnorm n, g axis=2 epsilon=0.001\n"
                               "output y\n";
    muc_context *ctx = muc_context_new(1);
    float samples[SAMPLES][32];

    (void)state;
    seed = 19;
    for (size_t i = 0; i < SAMPLES * 32; i++)
        samples[i / 32][i % 32] = 2 * random_real();
    check_close(ctx, text, samples[0], 32, "concat layer_norm rmsnorm", 8);
    muc_context_free(ctx);
}

/* two branches joined, an operator without an int8 form, a softmax at the end */
static const char branches[] =
    "graph branches\n"
    "tensor x = input f32 [1, 4, 4, 2]\n"
    "tensor w = const f32 [3, 1, 1, 2] values 0.5, -1, 2, 0.25, -0.75, 1\n"
    "tensor b = const f32 [3] values 0.1, -0.2, 0.3\n"
    "tensor six = const f32 [] values 6\n"
    "tensor zero = const f32 [] values 0\n"
    "node c f32 [1, 4, 4, 3] = conv x, w, b channels_last=1\n"
    "node r f32 [1, 4, 4, 3] = clip c, zero, six\n"
    "node t f32 [1, 4, 4, 3] = tanh r\n"
    "node j f32 [1, 4, 4, 6] = concat r, t axis=3\n"
    "node m f32 [1, 2, 2, 6] = max_pool j kernel=[2, 2] strides=[2, 2] channels_last=1\n"
    "node e f32 [1, 2, 2, 6] = hardmax m axis=3\n"
    "node g f32 [1, 1, 1, 6] = reduce_mean m axes=[1, 2]\n"
    "node f f32 [1, 6] = reshape g shape=[1, 6]\n"
    "node y f32 [1, 6] = softmax f axis=1\n"
    "output y\n"
    "output e\n";

static const muc_tensor *tensor(const muc_graph *graph, const char *name)
{
    uint32_t id = muc_graph_find(graph, name);

    if (id == MUC_NO_ID)
        fail_msg("no tensor '%s'", name);
    return &graph->tensors[id];
}

static void bounds_merge_and_joined_tensors_share_a_scale(void **state)
{
    muc_context *ctx = muc_context_new(1);
    float samples[SAMPLES][32];
    const muc_tensor *r, *y;
    const muc_node *conv;
    muc_graph *graph;

    (void)state;
    seed = 9;
    for (size_t i = 0; i < SAMPLES * 32; i++)
        samples[i / 32][i % 32] = 2 * random_real();
    graph = int8_of(ctx, branches, samples[0], 32);
    r = tensor(graph, "r");
    conv = &graph->nodes[r->producer];
    CHECK_EQ(conv->op, MUC_OP_CONV);
    CHECK_EQ(muc_graph_find(graph, "c"), MUC_NO_ID);
    CHECK_EQ(r->dtype, MUC_I8);
    CHECK_EQ(r->quantization->zero_points[0], -128);
    CHECK(tensor(graph, "j")->quantization->scales[0] == r->quantization->scales[0]);
    CHECK(tensor(graph, "m")->quantization->scales[0] == r->quantization->scales[0]);
    CHECK(tensor(graph, "t")->quantization->scales[0] == 1 / 128.0f);
    CHECK_EQ(tensor(graph, "e")->dtype, MUC_F32);
    CHECK_EQ(tensor(graph, "g")->dtype, MUC_I8);
    CHECK_EQ(graph->nodes[tensor(graph, "m.f32")->producer].op, MUC_OP_DEQUANTIZE);
    CHECK(tensor(graph, "y.int8")->quantization->scales[0] == 1 / 256.0f);
    y = &graph->tensors[graph->outputs[0]];
    assert_string_equal(y->name, "y");
    CHECK_EQ(y->dtype, MUC_F32);
    CHECK_EQ(tensor(graph, "w.int8")->quantization->count, 3);
    CHECK_EQ(tensor(graph, "b.int32")->dtype, MUC_I32);
    muc_graph_free(graph);
    muc_context_free(ctx);
}

static void any_number_of_threads_gives_the_same_network(void **state)
{
    float samples[SAMPLES][32];
    muc_text first = { 0 };

    (void)state;
    seed = 11;
    for (size_t i = 0; i < SAMPLES * 32; i++)
        samples[i / 32][i % 32] = 2 * random_real();
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        muc_context *ctx = muc_context_new(threads);
        muc_graph *graph = int8_of(ctx, branches, samples[0], 32);
        muc_text text = { 0 };

        muc_graph_print(graph, &text); /* small constants with their values */
        if (threads == 1)
            first = text;
        else
            assert_string_equal(first.data, text.data);
        if (threads > 1)
            muc_text_free(&text);
        muc_graph_free(graph);
        muc_context_free(ctx);
    }
    muc_text_free(&first);
}

static void what_calibrates_must_be_there_and_finite(void **state)
{
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph = graph_of(ctx, branches);
    float x[33] = { 0 };
    muc_tensor_view array = { .name = "x", .file = "test", .dtype = MUC_F32, .rank = 1 };
    muc_model *model;
    muc_model_options options = { .quant = "int8" };

    (void)state;
    CHECK_FAILS(ctx, MUC_USAGE, "no arrays are given",
                muc_network_to_int8(ctx, graph, NULL, 0, NULL));
    muc_graph_free(graph);
    graph = graph_of(ctx, branches);
    array.dims[0] = array.elements = 33;
    array.data = (const uint8_t *)x;
    array.bytes = sizeof(x);
    CHECK_FAILS(ctx, MUC_USAGE, "no whole number of its 32 elements",
                muc_network_to_int8(ctx, graph, &array, 1, NULL));
    muc_graph_free(graph);
    graph = graph_of(ctx, branches);
    array.dims[0] = array.elements = 32;
    array.bytes = 32 * sizeof(float);
    x[7] = NAN;
    CHECK_FAILS(ctx, MUC_MALFORMED, "is not finite on what calibrates it",
                muc_network_to_int8(ctx, graph, &array, 1, NULL));
    muc_graph_free(graph);
    CHECK_FAILS(
        ctx, MUC_USAGE, "needs --calib",
        muc_model_open(ctx, shared_data("tflite/kws_ref_model_float32.tflite"), &options, &model));
    muc_context_free(ctx);
}

/* the images of MNIST's test set, from `first` on, as .npy */
static void write_images(const char *path, size_t first, size_t count)
{
    char command[1024], header[128];
    uint8_t pixels[784];
    FILE *in, *out = fopen(path, "wb");
    int length;

    assert_non_null(out);
    snprintf(command, sizeof(command), "gzip -dc %s",
             shared_data("mnist/t10k-images-idx3-ubyte.gz"));
    in = popen(command, "r");
    assert_non_null(in);
    length =
        snprintf(header, sizeof(header),
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, 1, 28, 28), }", count);
    memset(header + length, ' ', sizeof(header) - (size_t)length);
    header[117] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, out);
    fwrite(header, 1, 118, out);
    CHECK_EQ(fread(pixels, 1, 16, in), 16);
    for (size_t i = 0; i < first + count; i++) {
        CHECK_EQ(fread(pixels, 1, sizeof(pixels), in), sizeof(pixels));
        for (size_t p = 0; i >= first && p < sizeof(pixels); p++) {
            float value = (float)pixels[p] / 255;

            fwrite(&value, 1, sizeof(value), out);
        }
    }
    pclose(in);
    fclose(out);
}

/* rows of equal elements, far apart from row to row: their log_softmax is -log(4) everywhere */
static void a_logarithm_is_no_finer_than_its_kernel_can(void **state)
{
    muc_context *ctx = muc_context_new(1);
    float samples[SAMPLES][4];
    muc_graph *integer;
    muc_ref *ref;
    const float *y;

    (void)state;
    for (size_t i = 0; i < SAMPLES * 4; i++)
        samples[i / 4][i % 4] = 1000 * (float)(i / 4) / SAMPLES;
    integer = int8_of(ctx,
                      "graph far\ntensor x = input f32 [1, 4]\n"
                      "node y f32 [1, 4] = log_softmax x axis=1\noutput y\n",
                      samples[0], 4);
    CHECK_EQ(integer->nodes[tensor(integer, "y")->producer].op, MUC_OP_DEQUANTIZE);
    y = run(ctx, integer, samples[SAMPLES / 2], 4, &ref);
    for (int i = 0; i < 4; i++)
        CHECK(fabsf(y[i] + logf(4)) <= 1000.0f / 255 / 63);
    muc_ref_close(ref);
    muc_graph_free(integer);
    muc_context_free(ctx);
}

/* Measured on 1000 images: 99.9 % of the digits stay, the least layer has 31 dB. */
static void digits_stay_what_they_were(void **state)
{
    muc_context *ctx = muc_context_new(2);
    const char *path = shared_data("onnx/Convnet_maxpool.onnx");
    char calibration[] = "/tmp/muc_int8_c_XXXXXX", images[] = "/tmp/muc_int8_t_XXXXXX";
    muc_model_options options = { .quant = "int8", .calibration = calibration, .inputs = images };
    muc_model *integer, *real;
    muc_report *report;
    double agreement = 0;

    (void)state;
#ifndef MUC_WITH_ONNX
    skip();
#endif
    close(mkstemp(calibration));
    close(mkstemp(images));
    write_images(calibration, 0, 60);
    write_images(images, 1000, 200);
    CHECK_OK(ctx, muc_model_open(ctx, path, &options, &integer));
    options.quant = options.calibration = NULL;
    CHECK_OK(ctx, muc_model_open(ctx, path, &options, &real));
    CHECK_OK(ctx, muc_verify_int8(ctx, integer, real, &report));
    CHECK(muc_report_number(report, "top1_agreement", &agreement));
    if (!(agreement >= 0.99))
        fail_msg("%g of the digits stay", agreement);
    muc_report_free(report);
    muc_model_close(integer);
    muc_model_close(real);
    unlink(calibration);
    unlink(images);
    muc_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_is_within_what_its_scales_imply),
        cmocka_unit_test(scales_of_linears_channels_have_eight_mantissas),
        cmocka_unit_test(more_operators_have_int8_forms),
        cmocka_unit_test(functions_of_one_tensor_are_tables),
        cmocka_unit_test(a_logarithm_of_an_input_stays_real),
        cmocka_unit_test(norms_and_joined_constants_are_integers),
        cmocka_unit_test(bounds_merge_and_joined_tensors_share_a_scale),
        cmocka_unit_test(a_logarithm_is_no_finer_than_its_kernel_can),
        cmocka_unit_test(any_number_of_threads_gives_the_same_network),
        cmocka_unit_test(what_calibrates_must_be_there_and_finite),
        cmocka_unit_test(digits_stay_what_they_were),
    };

    return cmocka_run_group_tests_name("int8", tests, NULL, NULL);
}
