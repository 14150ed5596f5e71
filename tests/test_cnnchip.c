/* The CNN chip's compiler: small networks of every operator that the chip has, run on the
 * simulator, which knows nothing of the compiler, beside ref on the graph as it was written. */
#include "check.h"
#include "cnnchip_check.h"

#include <math.h>

#include "base/text.h"
#include "targets/cnnchip/run/chip_folder.h"
#include "targets/target.h"
#include "run/network_run.h"
#include "passes/simplify/batch.h"
#include "targets/cnnchip/compile/build_cnnchip.h"

static const uint32_t pes[] = { 0, 64, 9, 4 };

/* ---- networks ---- */

static muc_graph *graph_of(muc_context *ctx, const char *text)
{
    const muc_bytes bytes = { (const uint8_t *)text, strlen(text), "test" };
    muc_graph *graph;

    CHECK_OK(ctx, muc_graph_parse(ctx, bytes, &graph));
    return graph;
}

/* the same numbers for the same graph */
static void fill_constants(muc_context *ctx, muc_graph *graph)
{
    uint32_t seed = 1;

    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        muc_tensor *t = &graph->tensors[i];
        const uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
        uint64_t elements, bytes;
        float *data;

        if (t->kind != MUC_TENSOR_CONST || t->data)
            continue;
        CHECK_OK(ctx, muc_tensor_measure_bound(ctx, graph, t, bindings, &elements, &bytes));
        CHECK_OK(ctx, MUC_ARENA_NEW(ctx, &graph->arena, (size_t)elements, &data));
        for (uint64_t k = 0; k < elements; k++) {
            seed = seed * 1664525u + 1013904223u;
            data[k] = ((float)(seed >> 8 & 2047) - 1023) / 1024;
        }
        t->data = (const uint8_t *)data;
        t->bytes = bytes;
    }
}

static muc_cnnchip_machine machine_of(uint32_t element, uint32_t count)
{
    return (muc_cnnchip_machine){
        .name = "test", .element = element, .pes = count, .bus_bytes = 16, .clock_mhz = 1
    };
}

/* the greatest difference, of the expected's greatest element */
static double difference(const muc_tensor_view *expected, const muc_tensor_view *found)
{
    double error = 0, greatest = 0;

    CHECK_EQ(expected->elements, found->elements);
    for (uint64_t i = 0; i < expected->elements; i++) {
        double e = muc_array_element(expected, i), f = muc_array_element(found, i);

        CHECK(!isnan(f));
        error = fmax(error, fabs(e - f));
        greatest = fmax(greatest, fabs(e));
    }
    return error / fmax(greatest, 1e-30);
}

static uint64_t last_compute_cycles; /* of check_network's run */

/* compiles the text for a machine, runs the folder, and holds the outputs against ref */
static void check_network(const char *text, uint32_t element, uint32_t count, double tolerance,
                          uint32_t host_steps)
{
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph = graph_of(ctx, text), *plain = graph_of(ctx, text);
    char path[] = "/tmp/muc_chip_XXXXXX";
    muc_tensor_view arrays[4], *expected, *found;
    muc_cnnchip_machine machine = machine_of(element, count);
    muc_cnnchip_build *build;
    muc_arena arena = { 0 };
    size_t inputs = 0;
    muc_chip chip;

    CHECK(mkdtemp(path) != NULL);
    remove_folder(path);
    fill_constants(ctx, graph);
    fill_constants(ctx, plain);
    for (uint32_t i = 0; i < plain->tensor_count; i++)
        if (plain->tensors[i].kind == MUC_TENSOR_INPUT)
            arrays[inputs++] = random_input(&arena, plain, i);
    CHECK_OK(ctx, muc_network_run(ctx, plain, arrays, inputs, &arena, &expected));
    CHECK_OK(ctx, muc_prepare_cnnchip(ctx, graph));
    CHECK_OK(ctx, muc_cnnchip_compile(ctx, graph, "test", &machine, &build));
    CHECK_EQ(build->lowering.host_count, host_steps);
    CHECK(build->lowering.plan.peak >= build->lowering.plan.least);
    CHECK_OK(ctx, muc_cnnchip_write_folder(ctx, build, path, NULL, NULL));
    CHECK_OK(ctx, muc_chip_open(ctx, path, &chip));
    CHECK_OK(ctx, muc_chip_run(ctx, &chip, arrays, inputs, &found));
    last_compute_cycles = chip.sim.counts.compute_cycles;
    CHECK_EQ(chip.sim.counts.cycles, build->lowering.cycles);
    CHECK(build->lowering.cycles >= build->lowering.least_cycles);
    CHECK_EQ(chip.output_count, plain->output_count);
    for (size_t i = 0; i < chip.output_count; i++) {
        double error = difference(&expected[i], &found[i]);

        if (!(error <= tolerance))
            fail_msg("%u PEs, output %zu is off by %g of its greatest:\n%s", count, i, error, text);
    }
    muc_chip_close(&chip);
    muc_cnnchip_build_free(build);
    remove_folder(path);
    muc_arena_free(&arena);
    muc_graph_free(graph);
    muc_graph_free(plain);
    muc_context_free(ctx);
}

static void check_all(const char *text, uint32_t host_steps)
{
    for (size_t i = 0; i < MUC_COUNT(pes); i++)
        check_network(text, MUC_CNNCHIP_fp32, pes[i], 1e-5, host_steps);
    check_network(text, MUC_CNNCHIP_fp16, 16, 2e-2, host_steps);
}

/* ---- operators ---- */

static void convolutions_have_any_padding_stride_dilation_and_groups(void **state)
{
    (void)state;
    check_all("graph g\n"
              "tensor x = input f32 [1, 3, 9, 11]\n"
              "tensor w = const f32 [8, 3, 3, 3] bytes 864\n"
              "tensor b = const f32 [8] bytes 32\n"
              "node y f32 [1, 8, 5, 6] = conv x, w, b strides=[2, 2] pads=[0, 1, 2, 1]\n"
              "output y\n",
              0);
    check_all("graph g\n"
              "tensor x = input f32 [1, 4, 9, 9]\n"
              "tensor w = const f32 [6, 2, 3, 2] bytes 288\n"
              "tensor b = const f32 [6] bytes 24\n" /* split by group, each has a DSP table */
              "node y f32 [1, 6, 7, 8] = conv x, w, b groups=2 dilations=[2, 3] pads=[1, 1, 1, 1]\n"
              "output y\n",
              0);
    check_all("graph g\n"
              "tensor x = input f32 [1, 5, 12]\n"
              "tensor w = const f32 [4, 5, 5] bytes 400\n"
              "tensor d = const f32 [4, 1, 3] bytes 48\n"
              "node c f32 [1, 4, 12] = conv x, w pads=[2, 2]\n"
              "node y f32 [1, 4, 12] = conv c, d groups=4 pads=[0, 2]\n"
              "output y\n",
              0);
}

static void one_producer_serves_readers_with_other_borders(void **state)
{
    (void)state;
    check_all(
        "graph g\n"
        "tensor x = input f32 [1, 2, 8, 8]\n"
        "tensor w = const f32 [4, 2, 3, 3] bytes 288\n"
        "tensor v = const f32 [4, 4, 3, 3] bytes 576\n"
        "tensor u = const f32 [4, 4, 1, 1] bytes 64\n"
        "node c f32 [1, 4, 8, 8] = conv x, w pads=[1, 1, 1, 1]\n"
        "node d f32 [1, 4, 4, 4] = conv c, v strides=[2, 2] pads=[0, 0, 1, 1]\n"
        "node e f32 [1, 4, 4, 4] = conv c, u strides=[2, 2]\n"
        "node p f32 [1, 4, 4, 4] = max_pool c kernel=[3, 3] strides=[2, 2] pads=[1, 1, 0, 0]\n"
        "node s f32 [1, 4, 4, 4] = add d, e\n"
        "node r f32 [1, 4, 4, 4] = relu s\n"
        "node y f32 [1, 4, 4, 4] = add r, p\n"
        "output y\n"
        "output d\n",
        0);
}

static void pools_do_not_see_their_padding(void **state)
{
    (void)state;
    check_all(
        "graph g\n"
        "tensor x = input f32 [1, 3, 7, 7]\n"
        "node m f32 [1, 3, 4, 4] = max_pool x kernel=[3, 3] strides=[2, 2] pads=[1, 1, 1, 1]\n"
        "node a f32 [1, 3, 4, 4] = average_pool x kernel=[3, 3] strides=[2, 2] "
        "pads=[1, 1, 1, 1]\n"
        "node i f32 [1, 3, 4, 4] = average_pool x kernel=[3, 3] strides=[2, 2] "
        "pads=[1, 1, 1, 1] count_include_pad=1\n"
        "node g f32 [1, 3, 1, 1] = reduce_mean x axes=[2, 3]\n"
        "node h f32 [1, 3, 1, 1] = reduce_max x axes=[2, 3]\n"
        "node w f32 [1, 3, 1, 3] = max_pool x kernel=[7, 5]\n"
        "output m\noutput a\noutput i\noutput g\noutput h\noutput w\n",
        0);
}

static void a_linear_layer_behind_a_flattened_image_finds_its_weights(void **state)
{
    (void)state;
    check_all("graph g\n"
              "tensor x = input f32 [1, 2, 5, 5]\n"
              "tensor w = const f32 [6, 2, 3, 3] bytes 432\n"
              "tensor k = const f32 [10, 150] bytes 6000\n"
              "tensor b = const f32 [10] bytes 40\n"
              "tensor q = const f32 [7, 10] bytes 280\n"
              "node c f32 [1, 6, 5, 5] = conv x, w pads=[1, 1, 1, 1]\n"
              "node f f32 [1, 150] = reshape c shape=[1, 150]\n"
              "node d f32 [1, 10] = linear f, k, b\n"
              "node r f32 [1, 10] = leaky_relu d alpha=0.3\n"
              "node y f32 [1, 7] = linear r, q\n"
              "output y\n",
              0);
    /* channels last, as Keras flattens, and the image read by another layer with a border */
    check_all("graph g\n"
              "tensor x = input f32 [1, 5, 4, 3]\n"
              "tensor w = const f32 [6, 3, 3, 3] bytes 648\n"
              "tensor k = const f32 [4, 120] bytes 1920\n"
              "tensor v = const f32 [2, 3, 3, 6] bytes 432\n"
              "node c f32 [1, 5, 4, 6] = conv x, w pads=[1, 1, 1, 1] channels_last=1\n"
              "node f f32 [1, 120] = reshape c shape=[1, 120]\n"
              "node y f32 [1, 4] = linear f, k\n"
              "node z f32 [1, 5, 4, 2] = conv c, v pads=[1, 1, 1, 1] channels_last=1\n"
              "output y\noutput z\n",
              0);
}

static void batch_norms_and_activations_join_the_stage_before(void **state)
{
    (void)state;
    check_all("graph g\n"
              "tensor x = input f32 [1, 3, 6, 6]\n"
              "tensor w = const f32 [4, 3, 3, 3] bytes 432\n"
              "tensor b = const f32 [4] bytes 16\n"
              "tensor s = const f32 [4] values 0.5, 1.5, -1, 2\n"
              "tensor t = const f32 [4] values 0.25, -0.5, 1, 0\n"
              "tensor m = const f32 [4] values 0.1, 0.2, -0.3, 0\n"
              "tensor v = const f32 [4] values 1, 0.5, 2, 0.25\n"
              "tensor k = const f32 [3] values 2, -1, 0.5\n"
              "tensor lo = const f32 [] values 0\n"
              "tensor hi = const f32 [] values 0.75\n"
              "tensor lp = const f32 [] values -0.25\n"
              "node n f32 [1, 4, 4, 4] = conv x, w, b\n"
              "node o f32 [1, 4, 4, 4] = batch_norm n, s, t, m, v epsilon=0.001\n"
              "node p f32 [1, 4, 4, 4] = relu o\n"
              "node q f32 [1, 4, 4, 4] = batch_norm p, s, t, m, v epsilon=0.001\n"
              "node r f32 [1, 4, 4, 4] = clip q, lo, hi\n"
              "node u f32 [1, 4, 4, 4] = clip p, lp, hi\n"
              "node y f32 [1, 4, 4, 4] = sub r, u\n"
              "output y\n",
              0);
}

static void concatenations_and_upsampling_make_their_parts_in_place(void **state)
{
    (void)state;
    check_all("graph g\n"
              "tensor x = input f32 [1, 2, 4, 4]\n"
              "tensor w = const f32 [4, 2, 3, 3] bytes 288\n"
              "tensor v = const f32 [3, 2, 1, 1] bytes 24\n"
              "tensor u = const f32 [4, 2, 3, 3] bytes 288\n"
              "tensor z = const f32 [2, 9, 3, 3] bytes 648\n"
              "node a f32 [1, 4, 4, 4] = conv x, w pads=[1, 1, 1, 1]\n"
              "node b f32 [1, 3, 4, 4] = conv x, v\n"
              "node c f32 [1, 9, 4, 4] = concat a, x, b axis=1\n"
              "node d f32 [1, 2, 4, 4] = conv c, z pads=[1, 1, 1, 1]\n"
              "node e f32 [1, 2, 8, 12] = resize d mode=nearest sizes=[1, 2, 8, 12] "
              "coordinates=asymmetric rounding=floor\n"
              "node f f32 [1, 4, 6, 10] = conv e, u\n"
              "output f\noutput a\n",
              0);
}

static void transposed_convolutions_come_apart_into_phases(void **state)
{
    (void)state;
    check_all("graph g\n"
              "tensor x = input f32 [1, 3, 4, 5]\n"
              "tensor w = const f32 [3, 2, 3, 4] bytes 288\n"
              "tensor b = const f32 [2] bytes 8\n"
              "node y f32 [1, 2, 7, 10] = conv_transpose x, w, b strides=[2, 2] pads=[1, 1, 1, 1]\n"
              "node z f32 [1, 2, 7, 10] = relu y\n"
              "output z\n",
              0);
}

static void slices_splits_and_pads_are_views(void **state)
{
    (void)state;
    check_all("graph g\n"
              "tensor x = input f32 [1, 4, 6, 6]\n"
              "tensor w = const f32 [3, 2, 3, 3] bytes 216\n"
              "node a f32 [1, 2, 6, 6], b f32 [1, 2, 6, 6] = split x axis=1 sizes=[2, 2]\n"
              "node c f32 [1, 3, 6, 6] = conv b, w pads=[1, 1, 1, 1]\n"
              "node s f32 [1, 2, 4, 6] = slice a axes=[2] starts=[1] sizes=[4]\n"
              "node d f32 [1, 3, 4, 6] = conv s, w pads=[1, 1, 1, 1]\n"
              "output c\noutput d\n",
              0);
}

static void what_the_chip_cannot_do_the_master_does(void **state)
{
    (void)state;
    check_all("graph g\n"
              "tensor x = input f32 [1, 2, 4, 4]\n"
              "tensor w = const f32 [4, 2, 3, 3] bytes 288\n"
              "tensor v = const f32 [70, 64] bytes 17920\n"
              "tensor u = const f32 [2, 4, 3, 3] bytes 288\n"
              "node a f32 [1, 4, 4, 4] = conv x, w pads=[1, 1, 1, 1]\n"
              "node t f32 [1, 4, 4, 4] = tanh a\n"
              "node b f32 [1, 2, 4, 4] = conv t, u pads=[1, 1, 1, 1]\n"
              "node f f32 [1, 64] = reshape t shape=[1, 64]\n"
              "node l f32 [1, 70] = linear f, v\n"
              "node y f32 [1, 70] = softmax l axis=1\n"
              "output y\noutput b\n",
              2);
}

static void only_batches_whose_images_stay_apart_become_one_image(void **state)
{
    static const struct {
        const char *lines;
        uint32_t images;
    } cases[] = {
        { "node y f32 [2, 3] = relu x\n", 2 },
        { "node f f32 [2, 1, 3] = reshape x shape=[2, 1, 3]\nnode y f32 [2, 1, 3] = neg f\n", 2 },
        { "tensor k = const f32 [3] values 1, 2, 3\nnode y f32 [2, 3] = add x, k\n", 2 },
        { "node y f32 [2, 3] = softmax x axis=0\n", 1 },
        { "node y f32 [3, 2] = transpose x perm=[1, 0]\n", 1 },
        { "node y f32 [1, 3] = reduce_mean x axes=[0]\n", 1 },
        { "tensor k = const f32 [2, 3] values 1, 2, 3, 4, 5, 6\nnode y f32 [2, 3] = add x, k\n",
          1 },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(cases); i++) {
        muc_context *ctx = muc_context_new(1);
        muc_text text = { 0 };
        muc_graph *graph;
        uint32_t images;

        muc_text_add(&text, "graph g\ntensor x = input f32 [2, 3]\n%soutput y\n", cases[i].lines);
        graph = graph_of(ctx, text.data);
        CHECK_OK(ctx, muc_take_one_image(ctx, graph, &images));
        if (images != cases[i].images)
            fail_msg("case %zu: %u images, expected %u", i, images, cases[i].images);
        muc_text_free(&text);
        muc_graph_free(graph);
        muc_context_free(ctx);
    }
}

/* ---- splitting ---- */

/* A convolution on a bus of 16 bytes, as SPEC.md section 7 counts it. */
typedef struct block {
    uint32_t channels, rows, columns, filters, side, pes; /* side: rows, columns of the result */
} block;

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t up(uint64_t whole, uint64_t by)
{
    return (whole + by - 1) / by;
}

/* One part's CONV, and the ADD behind it. */
static uint64_t part_cycles(const block *b, uint32_t i, uint32_t u, uint32_t v)
{
    uint64_t results = (uint64_t)b->filters * b->side * b->side;
    uint64_t view = (uint64_t)i * (b->side + u - 1) * (b->side + v - 1);
    uint64_t weights = (uint64_t)b->filters * i * u * v;

    return larger(results, up(4 * (view + weights + results + 19), 16)) +
           larger(up(results, b->pes), up(4 * (3 * results + 18), 16));
}

/* the fewest cycles of all ways to cut (i, u, v) across, again and again */
static uint64_t fewest_cycles(const block *b, uint32_t i, uint32_t u, uint32_t v)
{
    uint64_t best = UINT64_MAX;

    if (i * u * v <= b->pes)
        return part_cycles(b, i, u, v);
    for (uint32_t k = 1; k < i; k++) {
        uint64_t cycles = fewest_cycles(b, k, u, v) + fewest_cycles(b, i - k, u, v);

        best = cycles < best ? cycles : best;
    }
    for (uint32_t k = 1; k < u; k++) {
        uint64_t cycles = fewest_cycles(b, i, k, v) + fewest_cycles(b, i, u - k, v);

        best = cycles < best ? cycles : best;
    }
    for (uint32_t k = 1; k < v; k++) {
        uint64_t cycles = fewest_cycles(b, i, u, k) + fewest_cycles(b, i, u, v - k);

        best = cycles < best ? cycles : best;
    }
    return best;
}

/* compiled alone, without a border; split into parts whose last sum has no stage */
static void compile_block(const block *b, uint64_t *cycles, uint64_t *least)
{
    muc_cnnchip_machine machine = machine_of(MUC_CNNCHIP_fp32, b->pes);
    muc_context *ctx = muc_context_new(1);
    muc_cnnchip_build *build;
    muc_text text = { 0 };
    muc_graph *graph;

    muc_text_add(&text,
                 "graph g\ntensor x = input f32 [1, %u, %u, %u]\n"
                 "tensor w = const f32 [%u, %u, %u, %u] bytes %u\n"
                 "node y f32 [1, %u, %u, %u] = conv x, w\noutput y\n",
                 b->channels, b->side + b->rows - 1, b->side + b->columns - 1, b->filters,
                 b->channels, b->rows, b->columns,
                 4 * b->filters * b->channels * b->rows * b->columns, b->filters, b->side, b->side);
    graph = graph_of(ctx, text.data);
    fill_constants(ctx, graph);
    CHECK_OK(ctx, muc_prepare_cnnchip(ctx, graph));
    CHECK_OK(ctx, muc_cnnchip_compile(ctx, graph, "block", &machine, &build));
    *cycles = build->lowering.steps[0].cycles;
    *least = build->lowering.steps[0].least_cycles;
    muc_cnnchip_build_free(build);
    muc_graph_free(graph);
    muc_text_free(&text);
    muc_context_free(ctx);
}

static void blocks_are_cut_into_boxes_of_the_fewest_cycles(void **state)
{
    static const block blocks[] = {
        { 3, 3, 3, 4, 6, 4 },  /* 8 parts: no grid of boxes has fewer than 9 */
        { 4, 3, 3, 4, 6, 16 }, /* 3 of rows, where whole channels were 4 */
        { 4, 3, 3, 1, 6, 7 },  /* one filter: the view costs more than the results */
        { 2, 1, 7, 3, 5, 5 },  { 2, 4, 4, 5, 5, 6 }, { 5, 2, 3, 2, 9, 4 },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(blocks); i++) {
        const block *b = &blocks[i];
        uint64_t results = (uint64_t)b->filters * b->side * b->side, cycles, least, sum;

        compile_block(b, &cycles, &least);
        sum = larger(up(results, b->pes), up(4 * (3 * results + 18), 16));
        CHECK_EQ(cycles, fewest_cycles(b, b->channels, b->rows, b->columns) - sum);
        CHECK(least <= cycles);
    }
}

/* the window's rows and columns apart took 9 elements an element of the result; 4 x 4 of 4 x 4
 * take 5 */
static void pools_are_split_into_pools_of_the_fewest_cycles(void **state)
{
    static const struct {
        uint32_t channels, side, kernel, stride, dilation, pes;
        uint64_t results; /* of all stages; 0: not known */
    } cases[] = {
        { 2, 32, 8, 8, 1, 16, 2 * (8 * 8 + 4 * 4) },
        { 2, 9, 3, 2, 1, 4, 2 * (9 * 4 + 4 * 4) },
        { 1, 20, 13, 1, 1, 16, 0 },
        { 3, 21, 5, 3, 2, 4, 0 },
        { 1, 19, 7, 2, 3, 5, 0 },
        { 2, 15, 15, 1, 1, 9, 0 },
        { 1, 70, 64, 6, 1, 4, 0 },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(cases); i++) {
        uint32_t span = (cases[i].kernel - 1) * cases[i].dilation + 1;
        uint32_t out = (cases[i].side - span) / cases[i].stride + 1;
        muc_text text = { 0 };

        muc_text_add(&text,
                     "graph g\ntensor x = input f32 [1, %u, %u, %u]\n"
                     "node y f32 [1, %u, %u, %u] = max_pool x kernel=[%u, %u] strides=[%u, %u] "
                     "dilations=[%u, %u]\noutput y\n",
                     cases[i].channels, cases[i].side, cases[i].side, cases[i].channels, out, out,
                     cases[i].kernel, cases[i].kernel, cases[i].stride, cases[i].stride,
                     cases[i].dilation, cases[i].dilation);
        last_compute_cycles = 0;
        check_network(text.data, MUC_CNNCHIP_fp32, cases[i].pes, 0, 0);
        if (cases[i].results)
            CHECK_EQ(last_compute_cycles, cases[i].results);
        muc_text_free(&text);
    }
}

/* ---- programs ---- */

/* layers of every instruction, split and not, with borders and an activation */
static const char mixed[] =
    "graph g\n"
    "tensor x = input f32 [1, 2, 6, 6]\n"
    "tensor w = const f32 [4, 2, 3, 3] bytes 288\n"
    "tensor b = const f32 [4] values 1, 0, -1, 0.5\n"
    "tensor k = const f32 [5, 36] bytes 720\n"
    "node c f32 [1, 4, 6, 6] = conv x, w, b pads=[1, 1, 1, 1]\n"
    "node r f32 [1, 4, 6, 6] = leaky_relu c alpha=0.3\n"
    "node a f32 [1, 4, 6, 6] = add r, c\n"
    "node m f32 [1, 4, 3, 3] = max_pool a kernel=[3, 3] strides=[2, 2] pads=[1, 1, 0, 0]\n"
    "node f f32 [1, 36] = reshape m shape=[1, 36]\n"
    "node y f32 [1, 5] = linear f, k\n"
    "output y\n";

static muc_cnnchip_build *build_mixed(muc_context *ctx, muc_graph **graph, uint32_t element,
                                      uint32_t count)
{
    muc_cnnchip_machine machine = machine_of(element, count);
    muc_cnnchip_build *build;

    *graph = graph_of(ctx, mixed);
    fill_constants(ctx, *graph);
    CHECK_OK(ctx, muc_prepare_cnnchip(ctx, *graph));
    CHECK_OK(ctx, muc_cnnchip_compile(ctx, *graph, "mixed", &machine, &build));
    return build;
}

static void assembly_gives_the_same_bytes_again(void **state)
{
    (void)state;
    for (uint32_t element = 0; element < 2; element++)
        for (size_t i = 0; i < MUC_COUNT(pes); i++) {
            muc_context *ctx = muc_context_new(1);
            muc_text text = { 0 };
            muc_arena arena = { 0 };
            muc_cnnchip_build *build;
            muc_graph *graph;
            muc_bytes again;

            build = build_mixed(ctx, &graph, element, pes[i]);
            CHECK_OK(ctx, muc_cnnchip_disassemble(ctx, build->program_file, &text));
            again = (muc_bytes){ (const uint8_t *)text.data, text.size, "text" };
            CHECK(muc_cnnchip_is_assembly(again));
            CHECK_OK(ctx, muc_cnnchip_assemble(ctx, &arena, again, &again));
            CHECK_EQ(again.size, build->program_file.size);
            assert_memory_equal(again.data, build->program_file.data, again.size);
            muc_text_free(&text);
            muc_arena_free(&arena);
            muc_cnnchip_build_free(build);
            muc_graph_free(graph);
            muc_context_free(ctx);
        }
}

/* what the simulator says of the code's first instruction: 0, or its fault */
static unsigned simulated(const muc_cnnchip_program *p, const uint8_t *code, uint32_t bytes)
{
    static uint8_t frame[1 << 16], filter[1 << 16];
    muc_cnnchip_sim sim = { .frame = frame,
                            .frame_bytes = p->frame_bytes,
                            .filter = filter,
                            .filter_bytes = p->filter_bytes,
                            .filter_image_bytes = p->filter_image_bytes,
                            .program = code,
                            .program_bytes = bytes,
                            .element = (muc_cnnchip_element)p->element,
                            .pes = p->pes };

    CHECK(p->frame_bytes <= sizeof(frame) && p->filter_bytes <= sizeof(filter));
    return muc_cnnchip_sim_start(&sim) == MUC_CNNCHIP_FAULTED && sim.pc == 0 ? sim.code : 0;
}

/* the compiler's verifier and the simulator were written apart, from the specification */
static void verifier_and_simulator_find_the_same_faults(void **state)
{
    uint32_t found[16] = { 0 };

    (void)state;
    for (uint32_t element = 0; element < 2; element++) {
        muc_context *ctx = muc_context_new(1);
        muc_graph *graph;
        muc_cnnchip_build *build = build_mixed(ctx, &graph, element, element ? 9 : 0);
        const muc_cnnchip_program *p = &build->program;

        for (unsigned turn = 0; turn < 6000; turn++) {
            uint32_t op = random_u32() % p->insn_count, at = 0, bytes;
            uint8_t code[4 * MUC_CNNCHIP_MOST_WORDS];
            muc_cnnchip_insn insn;
            unsigned fault;

            for (uint32_t i = 0; i < op; i++)
                at += 4 * muc_cnnchip_op_get(build->lowering.insns[i].op).words;
            bytes = 4 * muc_cnnchip_op_get(build->lowering.insns[op].op).words;
            memcpy(code, p->code + at, bytes);
            for (uint32_t i = random_u32() % 3; i < 3; i++) {
                uint32_t bit = random_u32() % (8 * bytes);

                code[bit / 8] ^= (uint8_t)(1 << bit % 8);
            }
            if (muc_cnnchip_read_insn(code, bytes, &insn, &fault))
                fault = muc_cnnchip_check(p, &insn);
            if (simulated(p, code, bytes) != fault)
                fail_msg("turn %u: the verifier says %u, the simulator %u", turn, fault,
                         simulated(p, code, bytes));
            found[fault]++;
        }
        muc_cnnchip_build_free(build);
        muc_graph_free(graph);
        muc_context_free(ctx);
    }
    for (unsigned fault = 0; fault <= 9; fault++) /* all were met */
        CHECK(found[fault] > 0);
}

static void damaged_programs_are_refused(void **state)
{
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph;
    muc_cnnchip_build *build = build_mixed(ctx, &graph, 0, 9);
    muc_bytes file = build->program_file;
    uint8_t *copy = malloc(file.size);

    (void)state;
    for (unsigned turn = 0; turn < 400; turn++) {
        muc_arena arena = { 0 };
        muc_cnnchip_program program;
        uint32_t bit = random_u32() % (8 * (uint32_t)file.size);
        size_t size = turn % 4 ? file.size : random_u32() % file.size;

        memcpy(copy, file.data, file.size);
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK_EQ(muc_cnnchip_read_program(ctx, &arena, (muc_bytes){ copy, size, "copy" }, &program),
                 MUC_MALFORMED);
        muc_error_clear(ctx);
        muc_arena_free(&arena);
    }
    free(copy);
    muc_cnnchip_build_free(build);
    muc_graph_free(graph);
    muc_context_free(ctx);
}

/* a map's digits are those of a float, and another number as a double; element 2 is int8 */
static void bytes_stand_for_the_floats_that_they_are_to_the_reference(void **state)
{
    const char *text =
        "{\"tensor\": \"y\", \"type\": \"f32\", \"at\": \"frame\", \"dims\": [1], \"address\": 0, "
        "\"c\": 1, \"h\": 1, \"w\": 1, \"rows\": 1, \"pitch\": 1, \"scale\": 0.076613687, "
        "\"zero\": 0}";
    const muc_chip chip = { .program = { .element = 2, .frame_bytes = 1 } };
    muc_context *ctx = muc_context_new(1);
    json_t *item = json_loads(text, 0, NULL);
    muc_chip_place place;

    (void)state;
    assert_non_null(item);
    CHECK_OK(ctx, muc_chip_read_place(ctx, &chip, item, &place));
    for (int i = -128; i < 128; i++) {
        float real = 0.076613687f * (float)i;

        CHECK(muc_chip_round(&place, real) == real);
    }
    json_decref(item);
    muc_context_free(ctx);
}

static void outputs_may_be_constant_of_half_floats_or_padded_inputs(void **state)
{
    (void)state;
    check_all("graph g\n"
              "tensor start = const i64 [] values -3\n"
              "tensor step = const i64 [] values 2\n"
              "tensor low = const f32 [] values 0\n"
              "tensor high = const f32 [] values 6\n"
              "tensor x = input f32 [1, 2, 4, 4]\n"
              "node y f32 [1, 2, 4, 4] = clip x, low, high\n"
              "node r i64 [5] = range start, step size=5\n"
              "output y\n"
              "output r\n",
              0);
    check_all("graph g\n"
              "tensor x = input f32 [1, 2, 4, 4]\n"
              "tensor low = const f32 [] values 0\n"
              "tensor high = const f32 [] values 6\n"
              "node c f32 [1, 2, 4, 4] = clip x, low, high\n"
              "node b bf16 [1, 2, 4, 4] = cast c to=bf16\n"
              "node h f16 [1, 2, 4, 4] = cast b to=f16\n"
              "output c\n"
              "output b\n"
              "output h\n",
              1);
    check_all("graph g\n"
              "tensor x = input f32 [1, 1, 8, 3]\n"
              "tensor a = input f32 [1, 1, 4, 4]\n"
              "tensor low = const f32 [] values 0\n"
              "tensor high = const f32 [] values 6\n"
              "node c f32 [1, 1, 4, 4] = clip a, low, high\n"
              "node p f32 [1, 1, 10, 3] = pad x pads=[0, 0, 0, 0, 0, 0, 2, 0] mode=constant\n"
              "output c\n"
              "output p\n",
              0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_have_any_padding_stride_dilation_and_groups),
        cmocka_unit_test(one_producer_serves_readers_with_other_borders),
        cmocka_unit_test(pools_do_not_see_their_padding),
        cmocka_unit_test(a_linear_layer_behind_a_flattened_image_finds_its_weights),
        cmocka_unit_test(batch_norms_and_activations_join_the_stage_before),
        cmocka_unit_test(concatenations_and_upsampling_make_their_parts_in_place),
        cmocka_unit_test(transposed_convolutions_come_apart_into_phases),
        cmocka_unit_test(slices_splits_and_pads_are_views),
        cmocka_unit_test(what_the_chip_cannot_do_the_master_does),
        cmocka_unit_test(only_batches_whose_images_stay_apart_become_one_image),
        cmocka_unit_test(blocks_are_cut_into_boxes_of_the_fewest_cycles),
        cmocka_unit_test(pools_are_split_into_pools_of_the_fewest_cycles),
        cmocka_unit_test(assembly_gives_the_same_bytes_again),
        cmocka_unit_test(verifier_and_simulator_find_the_same_faults),
        cmocka_unit_test(damaged_programs_are_refused),
        cmocka_unit_test(bytes_stand_for_the_floats_that_they_are_to_the_reference),
        cmocka_unit_test(outputs_may_be_constant_of_half_floats_or_padded_inputs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
