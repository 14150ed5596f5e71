/* Norms of int8 rows: ref beside real numbers, the runtime's kernel beside ref, bit for bit. */
#include "chance.h"
#include "graph/scales.h"
#include "mur_nn.h"
#include "operators.h"

enum { MOST_ROWS = 4, MOST_COLUMNS = 800, MOST = 4 * MOST_COLUMNS };

typedef enum kind { LAYER, ROOT_MEAN_SQUARE, CHANNELS_LAST, CHANNELS_FIRST } kind;

/* One norm: images of groups of channels at places, of which x has rows with scales, and what the
 * rows' numbers are like. Layer norms have images of one group and one place. */
typedef struct norm {
    kind kind;
    int images, groups, channels, places, in_zero, zero; /* channels of a group */
    double in_scale, scale, epsilon;
    float gains[MOST_COLUMNS], biases[MOST_COLUMNS]; /* [groups][channels] */
    int8_t x[MOST];
} norm;

static int size_of(const norm *n)
{
    return n->images * n->groups * n->channels * n->places;
}

/* where an element lies */
static int place_of(const norm *n, int image, int group, int channel, int place)
{
    int c = group * n->channels + channel, all = n->groups * n->channels;

    return image * all * n->places +
           (n->kind == CHANNELS_FIRST ? c * n->places + place : place * all + c);
}

static int between(int least, int most)
{
    return least + (int)(random_u32() % (unsigned)(most - least + 1));
}

static void draw(norm *n)
{
    int spread = between(0, 3), centre = between(-100, 100);

    n->kind = (kind)between(LAYER, CHANNELS_FIRST);
    n->images = between(1, MOST_ROWS);
    n->groups = n->places = 1;
    n->channels = between(0, 3) ? between(1, 40) : between(1, MOST_COLUMNS);
    if (n->kind >= CHANNELS_LAST) {
        n->images = between(1, 2);
        n->groups = between(1, 5);
        n->channels = between(1, 4);
        n->places = between(1, MOST / 40);
    }
    n->in_zero = between(-128, 127);
    n->zero = between(-60, 60);
    n->in_scale = exp(2 * random_gaussian() - 3);
    n->epsilon = between(0, 3) ? 1e-5 : 1;
    n->scale = 0.01 + 0.03 * random_unit();
    for (int c = 0; c < n->groups * n->channels; c++) {
        n->gains[c] = (float)random_gaussian();
        n->biases[c] = (float)random_gaussian();
    }
    for (int i = 0; i < size_of(n); i++) {
        /* any byte, a few steps, all the same but some, all the same */
        double q = spread == 3   ? random_gaussian() * 40
                   : spread == 2 ? centre + 1.5 * random_gaussian()
                   : spread == 1 ? centre + (between(0, 30) == 0)
                                 : centre;

        n->x[i] = (int8_t)fmax(-128, fmin(127, round(q)));
    }
}

static muc_graph *norm_graph(muc_context *ctx, const norm *n)
{
    static const char *const operators[] = { "layer_norm x, g, b axis=1", "rmsnorm x, g axis=1",
                                             "group_norm x, g, b channels_last=1",
                                             "group_norm x, g, b" };
    bool instances = n->kind >= CHANNELS_LAST && n->channels == 1;
    muc_text text = { 0 }, shape = { 0 };
    muc_graph *graph;

    muc_text_add(&shape, "%d, %d", n->images,
                 n->kind == CHANNELS_LAST ? n->places : n->groups * n->channels);
    if (n->kind >= CHANNELS_LAST)
        muc_text_add(&shape, ", %d",
                     n->kind == CHANNELS_LAST ? n->groups * n->channels : n->places);
    muc_text_add(&text, "graph norm\ntensor x = input i8 [%s] scale %.9g zero %d\n", shape.data,
                 n->in_scale, n->in_zero);
    for (int b = 0; b < 2; b++) {
        muc_text_add(&text, "tensor %s = const f32 [%d] values ", b ? "b" : "g",
                     n->groups * n->channels);
        for (int c = 0; c < n->groups * n->channels; c++)
            muc_text_add(&text, "%s%.9g", c ? ", " : "", (double)(b ? n->biases : n->gains)[c]);
        muc_text_add(&text, "\n");
    }
    muc_text_add(&text, "node y i8 [%s] scale %.9g zero %d = ", shape.data, n->scale, n->zero);
    if (instances)
        muc_text_add(&text, "instance_norm%s", operators[n->kind] + strlen("group_norm"));
    else
        muc_text_add(&text, "%s", operators[n->kind]);
    if (n->kind >= CHANNELS_LAST && !instances)
        muc_text_add(&text, " groups=%d", n->groups);
    muc_text_add(&text, " epsilon=%.17g\noutput y\n", n->epsilon);
    graph = graph_of(ctx, text.data);
    muc_text_free(&shape);
    muc_text_free(&text);
    return graph;
}

static void run_ref(muc_context *ctx, const norm *n, int8_t *y)
{
    const muc_ref_input input = { "x", n->x, (size_t)size_of(n) };
    const uint32_t bindings[1] = { 0 };
    muc_graph *graph = norm_graph(ctx, n);
    muc_ref_view view;
    muc_ref *ref;

    CHECK_OK(ctx, muc_ref_open(ctx, graph, &ref));
    CHECK_OK(ctx, muc_ref_run(ref, bindings, &input, 1));
    CHECK(muc_ref_get(ref, graph->outputs[0], &view));
    memcpy(y, view.data, (size_t)size_of(n));
    muc_ref_close(ref);
    muc_graph_free(graph);
}

static void run_kernel(const norm *n, int8_t *y)
{
    const int all = n->groups * n->channels;
    const bool first = n->kind == CHANNELS_FIRST;
    float in_scale = (float)n->in_scale, scale = (float)n->scale;
    int32_t in_zero = n->in_zero, zero = n->zero;
    const muc_quantization xq = { 1, 0, &in_scale, &in_zero }, yq = { 1, 0, &scale, &zero };
    const muc_tensor x = { .dtype = MUC_I8, .quantization = &xq };
    const muc_tensor out = { .dtype = MUC_I8, .quantization = &yq };
    const muc_tensor g = { .dtype = MUC_F32,
                           .data = (const uint8_t *)n->gains,
                           .bytes = (uint64_t)all * sizeof(float) };
    muc_tensor b = g;
    int32_t gains[MOST_COLUMNS], biases[MOST_COLUMNS];
    mur_norm_s8 layer = { .rows = n->images * n->groups,
                          .columns = n->channels * n->places,
                          .groups = n->groups,
                          .runs = first ? n->channels : n->places,
                          .width = first ? n->places : n->channels,
                          .step = first ? n->places : all,
                          .next = first ? n->channels * n->places : n->channels,
                          .of_runs = first,
                          .gains = gains,
                          .biases = biases,
                          .is_centred = n->kind != ROOT_MEAN_SQUARE,
                          .in_zero = (int8_t)n->in_zero,
                          .min = -128,
                          .max = 127 };
    const muc_norm_rows rows = { (uint64_t)layer.groups, (uint64_t)layer.runs,
                                 (uint64_t)layer.width,  (uint64_t)layer.step,
                                 (uint64_t)layer.next,   first };
    muc_norm_scales scales;

    b.data = (const uint8_t *)n->biases;
    CHECK(muc_scale_norm(&x, &g, n->kind != ROOT_MEAN_SQUARE ? &b : NULL, n->epsilon, &rows, &out,
                         gains, biases, &scales));
    layer.head = scales.head;
    layer.shift = scales.shift;
    layer.epsilon = scales.epsilon;
    memcpy(y, n->x, (size_t)size_of(n));
    mur_ref_norm_s8(&layer, y, y); /* in place */
}

/* the real norms in steps of the output, as far as a byte reaches */
static void real_values(const norm *n, double *y)
{
    const int count = n->channels * n->places;

    for (int row = 0; row < n->images * n->groups; row++) {
        double mean = 0, square = 0;

        for (int pass = 0; pass < 3; pass++)
            for (int i = 0; i < count; i++) {
                int group = row % n->groups, c = i % n->channels;
                int at = place_of(n, row / n->groups, group, c, i / n->channels);
                int gain = group * n->channels + c;
                double x = (n->x[at] - n->in_zero) * n->in_scale, v;

                if (pass == 0 && n->kind != ROOT_MEAN_SQUARE)
                    mean += x / count;
                if (pass == 1)
                    square += pow(x - mean, 2) / count;
                v = (x - mean) / sqrt(square + n->epsilon) * (double)n->gains[gain];
                v += n->kind != ROOT_MEAN_SQUARE ? (double)n->biases[gain] : 0;
                y[at] = fmax(-128, fmin(127, v / n->scale + n->zero));
            }
    }
}

static void they_are_near_the_real_ones_and_equal_ref(void **state)
{
    muc_context *ctx = muc_context_new(1);
    static int8_t expected[MOST], y[MOST];
    static double exact[MOST];
    static norm n;

    (void)state;
    for (int round = 0; round < 600; round++) {
        draw(&n);
        run_ref(ctx, &n, expected);
        run_kernel(&n, y);
        real_values(&n, exact);
        for (int i = 0; i < size_of(&n); i++) {
            if (expected[i] != y[i])
                fail_msg("round %d, element %d: the kernel gives %d, ref %d", round, i, y[i],
                         expected[i]);
            /* half a step, and what 15 bits of the inverse leave */
            if (!(fabs(exact[i] - expected[i]) <= 0.53))
                fail_msg("round %d, kind %d, element %d of %d: %d, exactly %g", round, (int)n.kind,
                         i, size_of(&n), expected[i], exact[i]);
        }
    }
    muc_context_free(ctx);
}

static void numbers_beyond_32_bits_are_refused(void **state)
{
    float gain = 1, in_scale = 1, tiny = 1e-7f, huge = 1e30f;
    int32_t zero = 0, numbers[2];
    const muc_quantization xq = { 1, 0, &in_scale, &zero }, yq = { 1, 0, &tiny, &zero };
    muc_tensor x = { .dtype = MUC_I8, .quantization = &xq };
    muc_tensor g = { .dtype = MUC_F32, .data = (const uint8_t *)&gain, .bytes = sizeof(gain) };
    muc_tensor b = { .dtype = MUC_F32, .data = (const uint8_t *)&huge, .bytes = sizeof(huge) };
    muc_tensor y = x;
    const muc_norm_rows one = { 1, 1, 1, 1, 1, false };
    const muc_norm_rows long_one = { 1, 1, MUC_NORM_COLUMNS + 1, 1, 1, false };
    muc_norm_scales scales;

    (void)state;
    CHECK(muc_scale_norm(&x, &g, NULL, 1e-5, &one, &y, numbers, numbers + 1, &scales));
    CHECK(!muc_scale_norm(&x, &g, &b, 1e-5, &one, &y, numbers, numbers + 1, &scales));
    CHECK(!muc_scale_norm(&x, &g, NULL, 1e30, &one, &y, numbers, numbers + 1, &scales));
    CHECK(!muc_scale_norm(&x, &g, NULL, 1e-5, &long_one, &y, numbers, numbers, &scales));
    y.quantization = &yq;
    CHECK(!muc_scale_norm(&x, &g, NULL, 1e-5, &one, &y, numbers, numbers + 1, &scales));
}

/* ---- log_softmax ---- */

/* two rows of any bytes, or all the same, by ref and by the kernel */
static void check_log_softmax(muc_context *ctx, int columns, int zero, float in_scale, float scale,
                              bool flat)
{
    static int8_t x[2 * MOST_COLUMNS], y[2 * MOST_COLUMNS];
    int32_t zeros[] = { 0, zero };
    const muc_quantization xq = { 1, 0, &in_scale, &zeros[0] }, yq = { 1, 0, &scale, &zeros[1] };
    const muc_tensor in = { .dtype = MUC_I8, .quantization = &xq };
    const muc_tensor out = { .dtype = MUC_I8, .quantization = &yq };
    const muc_ref_input input = { "x", x, (size_t)(2 * columns) };
    const uint32_t bindings[1] = { 0 };
    muc_log_softmax_scales s;
    mur_log_softmax_s8 layer = { 2, columns, s.exps, 0, 0, (int8_t)zero, -128, 127 };
    muc_text text = { 0 };
    muc_ref_view view;
    muc_graph *graph;
    muc_ref *ref;

    for (int i = 0; i < 2 * columns; i++)
        x[i] = (int8_t)(flat ? 5 : between(-128, 127));
    muc_text_add(&text,
                 "graph log\ntensor x = input i8 [2, %d] scale %.9g zero 0\n"
                 "node y i8 [2, %d] scale %.9g zero %d = log_softmax x axis=1\noutput y\n",
                 columns, (double)in_scale, columns, (double)scale, zero);
    graph = graph_of(ctx, text.data);
    CHECK_OK(ctx, muc_ref_open(ctx, graph, &ref));
    CHECK_OK(ctx, muc_ref_run(ref, bindings, &input, 1));
    CHECK(muc_ref_get(ref, graph->outputs[0], &view));
    CHECK(muc_scale_log_softmax(&in, (uint64_t)columns, &out, &s));
    layer.step = s.step;
    layer.log_step = s.log_step;
    mur_ref_log_softmax_s8(&layer, x, y);
    assert_memory_equal(view.data, y, (size_t)(2 * columns));
    for (int i = 0; i < 2 * columns; i++) {
        double sum = 0, exact;

        for (int c = 0; c < columns; c++)
            sum += exp((double)in_scale * x[i / columns * columns + c]);
        exact = ((double)in_scale * x[i] - log(sum)) / (double)scale + zero;
        if (!(fabs(fmax(-128, exact) - y[i]) <= 0.52))
            fail_msg("element %d of %d columns: %d, exactly %g", i, columns, y[i], exact);
    }
    muc_ref_close(ref);
    muc_graph_free(graph);
    muc_text_free(&text);
}

static void logarithms_of_softmax_are_near_the_real_ones_and_equal_ref(void **state)
{
    muc_context *ctx = muc_context_new(1);

    (void)state;
    for (int round = 0; round < 200; round++)
        check_log_softmax(ctx, between(1, between(0, 3) ? 12 : MOST_COLUMNS), between(60, 127),
                          (float)exp(random_gaussian() - 3), (float)(0.01 + 0.1 * random_unit()),
                          round % 7 == 0);
    muc_context_free(ctx);
}

static void quotients_are_near_the_real_ones(void **state)
{
    static const char text[] =
        "graph quotient\n"
        "tensor a = const i8 [7] scale 0.1 zero 3 values -128, 127, 3, 4, -50, 60, 9\n"
        "tensor b = const i8 [7] scale 0.05 zero -5 values 10, -128, 44, 127, -4, -6, 30\n"
        "node y i8 [7] scale 0.25 zero 1 = div a, b\noutput y\n";
    /* round((a - 3) * 0.1 / ((b + 5) * 0.05) / 0.25) + 1, within a byte */
    const double expected[] = { -69, -7, 1, 1, -128, -128, 2 };

    (void)state;
    check_values_at(__LINE__, text, "y", expected, 7, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logarithms_of_softmax_are_near_the_real_ones_and_equal_ref),
        cmocka_unit_test(quotients_are_near_the_real_ones),
        cmocka_unit_test(they_are_near_the_real_ones_and_equal_ref),
        cmocka_unit_test(numbers_beyond_32_bits_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
