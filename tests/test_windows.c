/* Operators over pixels in other forms compute the same: real numbers within rounding, int8 bit for
 * bit. */
#include "chance.h"
#include "operators.h"
#include "passes/simplify/canonical.h"
#include "passes/layout/idle_channels.h"
#include "passes/layout/pixel_windows.h"
#include "passes/rewrite.h"

enum { MOST = 4096 };

static unsigned between(unsigned least, unsigned most)
{
    return least + random_u32() % (most - least + 1);
}

static void add_numbers(muc_text *text, const char *head, size_t count, bool integers)
{
    muc_text_add(text, "%s values ", head);
    for (size_t i = 0; i < count; i++)
        muc_text_add(text, "%s%g", i ? ", " : "",
                     integers ? (double)between(0, 254) - 127 : round(64 * random_gaussian()) / 64);
    muc_text_add(text, "\n");
}

/* the graph's output for numbers that are always the same */
static size_t run(muc_context *ctx, muc_graph *graph, uint8_t *out)
{
    const uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    const muc_tensor *x = &graph->tensors[muc_graph_find(graph, "x")];
    static float reals[MOST];
    static int8_t bytes[MOST];
    muc_ref_input input = { "x", x->dtype == MUC_F32 ? (void *)reals : (void *)bytes, 0 };
    uint64_t elements, size;
    muc_ref_view view;
    muc_ref *ref;

    CHECK_OK(ctx, muc_tensor_measure_bound(ctx, graph, x, bindings, &elements, &size));
    CHECK(elements <= MOST);
    input.bytes = (size_t)size;
    for (size_t i = 0; i < elements; i++) {
        uint32_t bits = (uint32_t)i * 2654435761u;

        reals[i] = (float)(bits >> 12) / 524288 - 1;
        bytes[i] = (int8_t)(bits >> 24);
    }
    CHECK_OK(ctx, muc_ref_open(ctx, graph, &ref));
    CHECK_OK(ctx, muc_ref_run(ref, bindings, &input, 1));
    CHECK(muc_ref_get(ref, graph->outputs[0], &view));
    size = view.elements * (view.dtype == MUC_F32 ? sizeof(float) : 1);
    CHECK(size <= MOST * sizeof(float));
    memcpy(out, view.data, (size_t)size);
    muc_ref_close(ref);
    return view.elements;
}

static uint32_t count_of(const muc_graph *graph, muc_op op)
{
    uint32_t count = 0;

    for (uint32_t n = 0; n < graph->node_count; n++)
        count += graph->nodes[n].op == op;
    return count;
}

static muc_status lay(muc_context *ctx, muc_graph *graph)
{
    MUC_TRY(muc_lay_channels_last(ctx, graph));
    MUC_TRY(muc_lay_windows(ctx, graph));
    MUC_TRY(muc_drop_idle_channels(ctx, graph));
    return muc_canonicalise(ctx, graph);
}

/* the same before and after, and no node of this kind left */
static void check_same(const char *text, muc_op gone)
{
    static float before[MOST], after[MOST];
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph = graph_of(ctx, text);
    bool real = graph->tensors[graph->outputs[0]].dtype == MUC_F32;
    size_t elements = run(ctx, graph, (uint8_t *)before);

    CHECK_OK(ctx, muc_fuse(ctx, graph));
    CHECK_OK(ctx, lay(ctx, graph));
    CHECK_OK(ctx, muc_graph_verify(ctx, graph));
    CHECK_EQ(count_of(graph, gone), 0);
    CHECK_EQ(run(ctx, graph, (uint8_t *)after), elements);
    for (size_t i = 0; real && i < elements; i++)
        if (!(fabsf(before[i] - after[i]) <= 1e-5f * fmaxf(1, fabsf(before[i]))))
            fail_msg("element %zu is %g, was %g, of\n%s", i, (double)after[i], (double)before[i],
                     text);
    if (!real && memcmp(before, after, elements) != 0)
        fail_msg("other bits, of\n%s", text);
    muc_graph_free(graph);
    muc_context_free(ctx);
}

/* a transposed convolution over one or two dimensions, channels first or, of int8, last */
static void write_transposed(muc_text *text, bool is_int8)
{
    unsigned spatial = is_int8 ? 2 : between(1, 2), in = between(1, 4), out = between(1, 4);
    unsigned size[2], kernel[2], stride[2], begin[2], end[2], more[2], made[2], taps = 1;
    unsigned equal = between(0, 2);
    char dims[2][32] = { "", "" }, window[32] = "";

    for (unsigned d = 0; d < spatial; d++) {
        do {
            size[d] = between(1, 6);
            kernel[d] = between(1, 5);
            stride[d] = equal && d ? stride[0] : between(1, 3);
            begin[d] = between(0, kernel[d] - 1);
            end[d] = between(0, kernel[d] - 1);
            more[d] = between(0, stride[d] - 1);
        } while ((size[d] - 1) * stride[d] + kernel[d] + more[d] <= begin[d] + end[d]);
        made[d] = (size[d] - 1) * stride[d] + kernel[d] + more[d] - begin[d] - end[d];
        taps *= kernel[d];
        snprintf(dims[0] + strlen(dims[0]), 16, ", %u", size[d]);
        snprintf(dims[1] + strlen(dims[1]), 16, ", %u", made[d]);
        snprintf(window + strlen(window), 16, ", %u", kernel[d]);
    }
    muc_text_add(text, "graph transposed\n");
    if (is_int8) {
        muc_text_add(text, "tensor x = input i8 [2%s, %u] scale 0.05 zero 3\n", dims[0], in);
        muc_text_add(text, "tensor w = const i8 [%u%s, %u] scale", out, window, in);
        for (unsigned c = 0; c < out; c++)
            muc_text_add(text, "%s 0.%u", c ? "," : "", c + 1);
        muc_text_add(text, " zero");
        for (unsigned c = 0; c < out; c++)
            muc_text_add(text, "%s 0", c ? "," : "");
        if (out > 1)
            muc_text_add(text, " axis 0");
        add_numbers(text, "", (size_t)out * taps * in, true);
        muc_text_add(text, "tensor b = const i32 [%u]", out);
        add_numbers(text, "", out, true);
        muc_text_add(text,
                     "node y i8 [2%s, %u] scale 0.5 zero -9 = conv_transpose x, w, b "
                     "channels_last=1 clamp_min=-100",
                     dims[1], out);
    } else {
        muc_text_add(text, "tensor x = input f32 [2, %u%s]\ntensor w = const f32 [%u, %u%s]", in,
                     dims[0], in, out, window);
        add_numbers(text, "", (size_t)out * taps * in, false);
        muc_text_add(text, "tensor b = const f32 [%u]", out);
        add_numbers(text, "", out, false);
        for (unsigned i = 0; i < 3; i++) {
            muc_text_add(text, "tensor n%u = const f32 [%u]", i, out);
            add_numbers(text, "", out, false);
        }
        muc_text_add(text, "tensor v = const f32 [%u] values ", out);
        for (unsigned c = 0; c < out; c++)
            muc_text_add(text, "%s%u", c ? ", " : "", c + 1);
        muc_text_add(text, "\nnode c f32 [2, %u%s] = conv_transpose x, w, b", out, dims[1]);
    }
    for (unsigned kind = 0; kind < 4; kind++) {
        static const char *const names[] = { "strides", "pads", "output_padding", "dilations" };
        const unsigned *const items[] = { stride, begin, more };

        muc_text_add(text, " %s=[", names[kind]);
        for (unsigned d = 0; d < spatial; d++)
            muc_text_add(text, "%s%u", d ? ", " : "", kind < 3 ? items[kind][d] : 1);
        for (unsigned d = 0; kind == 1 && d < spatial; d++)
            muc_text_add(text, ", %u", end[d]);
        muc_text_add(text, "]");
    }
    muc_text_add(text, "\n");
    if (!is_int8)
        muc_text_add(text,
                     "node d f32 [2, %u%s] = batch_norm c, n0, n1, n2, v epsilon=0.01\n"
                     "node y f32 [2, %u%s] = relu d\n",
                     out, dims[1], out, dims[1]);
    muc_text_add(text, "output y\n");
}

static void transposed_convolutions_make_blocks(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 120; round++) {
        muc_text text = { 0 };

        write_transposed(&text, round % 2);
        check_same(text.data, MUC_OP_CONV_TRANSPOSE);
        muc_text_free(&text);
    }
}

/* an int8 convolution of small images, with more padding than a window needs */
static void write_padded(muc_text *text)
{
    unsigned size[2], kernel[2], stride[2], begin[2], end[2], dilation[2], made[2];

    for (unsigned d = 0; d < 2; d++)
        do {
            size[d] = between(1, 3);
            kernel[d] = between(1, 6);
            stride[d] = between(1, 2);
            dilation[d] = between(1, 2);
            begin[d] = between(0, 7);
            end[d] = between(0, 7);
            made[d] = (size[d] + begin[d] + end[d] - (kernel[d] - 1) * dilation[d] - 1) / stride[d];
        } while (size[d] + begin[d] + end[d] < (kernel[d] - 1) * dilation[d] + 1 || made[d] > 8);
    muc_text_add(text,
                 "graph padded\ntensor x = input i8 [1, %u, %u, 2] scale 0.05 zero 3\n"
                 "tensor w = const i8 [3, %u, %u, 2] scale 0.1 zero 0",
                 size[0], size[1], kernel[0], kernel[1]);
    add_numbers(text, "", (size_t)6 * kernel[0] * kernel[1], true);
    muc_text_add(text,
                 "node y i8 [1, %u, %u, 3] scale 0.5 zero -9 = conv x, w channels_last=1 "
                 "strides=[%u, %u] dilations=[%u, %u] pads=[%u, %u, %u, %u]\noutput y\n",
                 made[0] + 1, made[1] + 1, stride[0], stride[1], dilation[0], dilation[1], begin[0],
                 begin[1], end[0], end[1]);
}

/* networks drawn by chance, none of which has a transposed convolution */
static void check_drawn(unsigned rounds, void (*write)(muc_text *text))
{
    for (unsigned round = 0; round < rounds; round++) {
        muc_text text = { 0 };

        write(&text);
        check_same(text.data, MUC_OP_CONV_TRANSPOSE);
        muc_text_free(&text);
    }
}

static void taps_that_meet_padding_alone_are_left_out(void **state)
{
    static const char one[] = "graph one\ntensor x = input f32 [1, 1, 2, 1]\n"
                              "tensor w = const f32 [1, 3, 3, 1] values 1, 2, 3, 4, 5, 6, 7, 8, 9\n"
                              "node y f32 [1, 1, 2, 1] = conv x, w channels_last=1 "
                              "pads=[1, 1, 1, 1]\noutput y\n";
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph = graph_of(ctx, one);
    uint32_t rows, columns;

    (void)state;
    check_drawn(200, write_padded);
    check_same(one, MUC_OP_CONV_TRANSPOSE);
    CHECK_OK(ctx, lay(ctx, graph));
    for (uint32_t n = 0; n < graph->node_count; n++)
        if (graph->nodes[n].op == MUC_OP_CONV) {
            const muc_tensor *w = &graph->tensors[graph->nodes[n].inputs[1]];

            CHECK(muc_rewrite_dim(graph, w, 1, &rows) && rows == 1);
            CHECK(muc_rewrite_dim(graph, w, 2, &columns) && columns == 3);
        }
    muc_graph_free(graph);
    muc_context_free(ctx);
}

/* int8 weights [out, window.., in] and a bias: some outputs are the same whatever they see, some
 * inputs are not read */
static void write_idle_weights(muc_text *text, unsigned number, unsigned out, const char *window,
                               unsigned taps, unsigned in)
{
    unsigned still = between(0, 10), unread = between(0, 20);

    muc_text_add(text, "tensor w%u = const i8 [%u%s, %u] scale", number, out, window, in);
    for (unsigned o = 0; o < out; o++)
        muc_text_add(text, "%s 0.0%u", o ? "," : "", o % 9 + 1);
    muc_text_add(text, " zero");
    for (unsigned o = 0; o < out; o++)
        muc_text_add(text, "%s 0", o ? "," : "");
    muc_text_add(text, out > 1 ? " axis 0 values" : " values");
    for (unsigned i = 0; i < out * taps * in; i++) {
        bool is_zero = i / in / taps % 10 < still || (in > 1 && i % in % 10 == unread);

        muc_text_add(text, "%s %d", i ? "," : "", is_zero ? 0 : (int)between(0, 60) - 30);
    }
    muc_text_add(text, "\ntensor b%u = const i32 [%u] values", number, out);
    for (unsigned o = 0; o < out; o++)
        muc_text_add(text, "%s %d", o ? "," : "",
                     between(0, 4) ? (int)between(0, 4000) - 2000 : -1000000);
    muc_text_add(text, "\n");
}

/* a convolution, a depthwise one, and either another one or a pool and a linear layer */
static void write_idle(muc_text *text)
{
    unsigned size = between(3, 6), depth = between(1, 40), pad = between(0, 1);
    unsigned made = size + 2 * pad - 2;
    int zero = between(0, 1) ? -20 : 5;
    bool is_linear = between(0, 1);

    muc_text_add(text, "graph idle\ntensor x = input i8 [2, %u, %u, 3] scale 0.05 zero 3\n", size,
                 size);
    write_idle_weights(text, 0, depth, ", 1, 1", 1, 3);
    write_idle_weights(text, 1, depth, ", 3, 3", 9, 1);
    write_idle_weights(text, 2, 5, is_linear ? "" : ", 3, 3", is_linear ? 1 : 9, depth);
    muc_text_add(text,
                 "node p i8 [2, %u, %u, %u] scale 0.1 zero %d = conv x, w0, b0 channels_last=1 "
                 "clamp_min=-9 clamp_max=99\n"
                 "node d i8 [2, %u, %u, %u] scale 0.2 zero %d = conv p, w1, b1 channels_last=1 "
                 "groups=%u pads=[%u, %u, %u, %u] clamp_min=-20\n",
                 size, size, depth, between(0, 1) ? -9 : 99, made, made, depth, zero, depth, pad,
                 pad, pad, pad);
    if (is_linear)
        muc_text_add(text,
                     "node q i8 [2, 1, 1, %u] scale 0.2 zero %d = %s d channels_last=1 "
                     "kernel=[%u, %u]\n"
                     "node r i8 [2, %u] scale 0.2 zero %d = reshape q shape=[2, %u]\n"
                     "node y i8 [2, 5] scale 0.4 zero 1 = linear r, w2, b2\noutput y\n",
                     depth, zero, between(0, 1) ? "max_pool" : "average_pool", made, made, depth,
                     zero, depth);
    else
        muc_text_add(text,
                     "node y i8 [2, %u, %u, 5] scale 0.4 zero 1 = conv d, w2, b2 channels_last=1 "
                     "pads=[1, 1, 1, 1]\noutput y\n",
                     made, made);
}

/* of 8 channels two that a relu closes, and two that are not read: of one multiple of four to
 * another */
static void channels_that_nothing_depends_on_are_left_out(void **state)
{
    static const char eight[] =
        "graph eight\ntensor x = input i8 [1, 2, 2, 1] scale 0.05 zero 3\n"
        "tensor w0 = const i8 [8, 1, 1, 1] scale 0.1 zero 0 values 1, 2, 0, 4, 5, 6, 7, 8\n"
        "tensor b0 = const i32 [8] values 1, 2, 90, -99999, 5, 6, 7, 8\n"
        "tensor w1 = const i8 [1, 1, 1, 8] scale 0.1 zero 0 values 0, 2, 3, 4, 5, 6, 7, 0\n"
        "tensor b1 = const i32 [1] values 1\n"
        "node p i8 [1, 2, 2, 8] scale 0.1 zero -9 = conv x, w0, b0 channels_last=1 clamp_min=-9\n"
        "node y i8 [1, 2, 2, 1] scale 0.4 zero 1 = conv p, w1, b1 channels_last=1\noutput y\n";
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph = graph_of(ctx, eight);
    const muc_tensor *bias;
    uint32_t channels;

    (void)state;
    check_drawn(400, write_idle);
    check_same(eight, MUC_OP_CONV_TRANSPOSE);
    CHECK_OK(ctx, lay(ctx, graph));
    CHECK(muc_rewrite_dim(graph, &graph->tensors[graph->nodes[1].inputs[0]], 3, &channels));
    CHECK_EQ(channels, 4);
    /* 90 times 0.05 0.1 / 0.1 is 4.5, rounded up and times 3 */
    bias = &graph->tensors[graph->nodes[1].inputs[2]];
    CHECK_EQ((int32_t)muc_load_u32(bias->data), 1 + 5 * 3);
    muc_graph_free(graph);
    muc_context_free(ctx);
}

static void lines_and_norms_become_convolutions_over_pixels(void **state)
{
    static const char line[] = "graph line\n"
                               "tensor x = input f32 [2, 3, 9]\n"
                               "tensor s = const f32 [3] values 1, 2, -1\n"
                               "tensor v = const f32 [3] values 1, 2, 0.5\n"
                               "tensor w = const f32 [2, 3, 2] values 1, 2, 3, 4, 5, 6, -1, 0, 1, "
                               "2, -2, 0.5\n"
                               "node n f32 [2, 3, 9] = batch_norm x, s, v, s, v epsilon=0.001\n"
                               "node r f32 [2, 3, 9] = relu n\n"
                               "node c f32 [2, 2, 10] = conv r, w dilations=[2] pads=[2, 1]\n"
                               "node t f32 [2, 2, 10] = tanh c\n"
                               "node m f32 [2, 2, 5] = max_pool t kernel=[2] strides=[2]\n"
                               "node y f32 [2, 2, 4] = average_pool m kernel=[2]\n"
                               "output y\n";
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph = graph_of(ctx, line);

    (void)state;
    check_same(line, MUC_OP_BATCH_NORM);
    CHECK_OK(ctx, lay(ctx, graph));
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const muc_node *node = &graph->nodes[n];

        if (node->op == MUC_OP_CONV || node->op == MUC_OP_MAX_POOL || node->op == MUC_OP_TANH)
            CHECK_EQ(graph->tensors[node->inputs[0]].rank, 4);
        if (node->op == MUC_OP_RELU)
            CHECK_EQ(graph->nodes[graph->tensors[node->inputs[0]].producer].op, MUC_OP_CONV);
    }
    CHECK_EQ(count_of(graph, MUC_OP_CONV), 2);
    muc_graph_free(graph);
    muc_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transposed_convolutions_make_blocks),
        cmocka_unit_test(taps_that_meet_padding_alone_are_left_out),
        cmocka_unit_test(channels_that_nothing_depends_on_are_left_out),
        cmocka_unit_test(lines_and_norms_become_convolutions_over_pixels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
