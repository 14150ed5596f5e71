/* Pictures as inputs of networks. MUC_IMAGES=10000 in the environment measures all MNIST images. */
#include "check.h"

#include <math.h>

#include "run/image_input.h"
#include "run/opened_model.h"
#include "run/network_run.h"

static muc_context *ctx;

static muc_port port_of(muc_dtype dtype, uint32_t rank, const uint64_t *dims)
{
    muc_port port = { .name = "input", .field = "input", .dtype = dtype, .rank = rank };
    uint64_t elements;

    memcpy(port.dims, dims, rank * sizeof(*dims));
    CHECK(muc_dtype_measure(dtype, rank, dims, &elements, &port.bytes));
    return port;
}

static muc_port quantized(muc_port port, double scale, int32_t zero)
{
    port.quantized = true;
    port.scale = scale;
    port.zero = zero;
    return port;
}

static muc_image_plan plan_of(const muc_port *port, const char *says)
{
    muc_image_plan plan;

    CHECK_OK(ctx, muc_image_plan_for(ctx, port, says, &plan));
    return plan;
}

static void fill(const muc_image *image, const muc_port *port, const char *says, void *out)
{
    muc_image_plan plan = plan_of(port, says);

    CHECK_OK(ctx, muc_image_fill(ctx, image, &plan, port, out));
}

/* ---- files ---- */

static muc_image read_text(muc_arena *arena, const char *text, size_t size)
{
    muc_image image;

    CHECK_OK(ctx, muc_image_read(ctx, arena, (muc_bytes){ (const uint8_t *)text, size, "picture" },
                                 &image));
    return image;
}
#define READ(arena, literal) read_text(arena, literal, sizeof(literal) - 1)

static void grey_and_coloured_netpbm_files_are_read(void **state)
{
    static const uint8_t grey[] = { 0, 128, 255, 1, 2, 3 }, text[] = { 0, 119, 255 };
    static const uint8_t wide[] = { 128, 255, 0 };
    muc_arena arena = { 0 };
    muc_image image = READ(&arena, "P5 # a comment\n3 2\n255\n\0\x80\xff\1\2\3");

    (void)state;
    CHECK(image.width == 3 && image.height == 2 && image.channels == 1);
    assert_memory_equal(image.data, grey, sizeof(grey));
    image = READ(&arena, "P3\n1 1\n15\n0 7\t15\n"); /* 7 of 15 are 119 of 255 */
    CHECK_EQ(image.channels, 3);
    assert_memory_equal(image.data, text, sizeof(text));
    image = READ(&arena, "P6 1 1 65535\n\x80\0\xff\xff\0\0");
    assert_memory_equal(image.data, wide, sizeof(wide));
    muc_arena_free(&arena);
}

#ifdef MUC_WITH_PNG
static void seeds_of_png_have_their_samples(void **state)
{
    static const struct {
        const char *file;
        uint32_t width, height, channels;
        uint8_t samples[12];
    } seeds[] = {
        { "grey", 3, 2, 1, { 0, 0x80, 0xff, 1, 2, 3 } },
        { "colour", 2, 2, 3, { 0xff, 0, 0, 0, 0xff, 0, 0, 0, 0xff, 0x40, 0x50, 0x60 } },
        { "alpha", 1, 2, 3, { 0x11, 0x22, 0x33, 0x11, 0x22, 0x33 } },
        { "palette", 2, 1, 3, { 0x10, 0x20, 0x30, 0x40, 0x50, 0x60 } },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(seeds); i++) {
        muc_arena arena = { 0 };
        char path[64];
        muc_image image;
        muc_file file;

        snprintf(path, sizeof(path), "fuzz/corpus/image/%s.png", seeds[i].file);
        CHECK_OK(ctx, muc_file_open(ctx, path, &file));
        CHECK_OK(ctx, muc_image_read(ctx, &arena, file.bytes, &image));
        CHECK(image.width == seeds[i].width && image.height == seeds[i].height &&
              image.channels == seeds[i].channels);
        if (i == 3) /* a palette of bit 1: the second colour, then the first */
            CHECK(image.data[0] == 0x10 && image.data[3] == 0x40);
        else
            assert_memory_equal(image.data, seeds[i].samples,
                                (size_t)image.width * image.height * image.channels);
        muc_file_close(&file);
        muc_arena_free(&arena);
    }
}
#endif

static void damaged_and_foreign_files_are_refused(void **state)
{
    static const struct {
        const char *text;
        size_t size;
        muc_status status;
        const char *word;
    } files[] = {
        { "GIF89a", 6, MUC_UNSUPPORTED, "is not a picture" },
        { "", 0, MUC_UNSUPPORTED, "is not a picture" },
        { "P5 60000 60000 255\n\0", 20, MUC_MALFORMED, "60000 x 60000" },
        { "P5 0 7 255\n", 11, MUC_MALFORMED, "the picture has no pixels" },
        { "P2 1 1 99999 3", 14, MUC_MALFORMED, "greatest sample" },
        { "P2 1 1 0 3", 10, MUC_MALFORMED, "greatest sample" },
        { "P2 2 1 9 3", 10, MUC_MALFORMED, "2 x 1" },
        { "P2 1 1 9 x", 10, MUC_MALFORMED, "sample" },
        { "\x89PNG\r\n\x1a\n", 8, MUC_MALFORMED, "picture" },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(files); i++) {
        muc_bytes bytes = { (const uint8_t *)files[i].text, files[i].size, "picture" };
        muc_arena arena = { 0 };
        muc_image image;
        muc_status status = muc_image_read(ctx, &arena, bytes, &image);

#ifndef MUC_WITH_PNG
        if (files[i].text[0] == '\x89')
            status = MUC_MALFORMED;
#endif
        CHECK_EQ(status, files[i].status);
        if (!strstr(muc_error_message(ctx), files[i].word))
            fail_msg("%zu: %s", i, muc_error_message(ctx));
        muc_error_clear(ctx);
        muc_arena_free(&arena);
    }
}

/* ---- what an input asks for ---- */

static void the_shape_says_size_channels_and_layout(void **state)
{
    static const struct {
        uint32_t rank;
        uint64_t dims[4];
        uint32_t height, width, channels;
        bool last;
    } shapes[] = {
        { 4, { 1, 96, 64, 3 }, 96, 64, 3, true }, { 4, { 1, 3, 96, 64 }, 96, 64, 3, false },
        { 4, { 1, 28, 28, 1 }, 28, 28, 1, true }, { 4, { 1, 1, 28, 20 }, 28, 20, 1, false },
        { 3, { 32, 40, 3 }, 32, 40, 3, true },    { 3, { 3, 32, 40 }, 32, 40, 3, false },
        { 3, { 1, 28, 20 }, 28, 20, 1, true },    { 2, { 28, 20 }, 28, 20, 1, true },
        { 2, { 1, 784 }, 28, 28, 1, true },       { 2, { 1, 3072 }, 32, 32, 3, true },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(shapes); i++) {
        muc_port port = port_of(MUC_F32, shapes[i].rank, shapes[i].dims);
        muc_image_plan plan = plan_of(&port, NULL);

        CHECK_EQ(plan.height, shapes[i].height);
        CHECK_EQ(plan.width, shapes[i].width);
        CHECK_EQ(plan.channels, shapes[i].channels);
        CHECK(plan.channels == 1 || plan.channels_last == shapes[i].last);
    }
}

static void an_input_without_a_shape_of_pictures_is_refused(void **state)
{
    const muc_port ports[] = {
        port_of(MUC_F32, 4, (uint64_t[]){ 1, 5, 8, 8 }),
        port_of(MUC_F32, 2, (uint64_t[]){ 1, 7 }),
        port_of(MUC_F32, 0, NULL),
    };
    muc_image_plan plan;

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(ports); i++) {
        CHECK_EQ(muc_image_plan_for(ctx, &ports[i], NULL, &plan), MUC_USAGE);
        muc_error_clear(ctx);
    }
}

static void the_quantization_says_what_samples_mean(void **state)
{
    const uint64_t dims[] = { 1, 1, 3, 1 };
    const muc_image image = { 3, 1, 1, (const uint8_t[]){ 0, 128, 255 } };
    const muc_port plain = port_of(MUC_I8, 4, dims);
    static const int8_t whole[] = { -128, 0, 127 };
    const struct {
        muc_port port;
    } cases[] = {
        { plain },                             /* nothing is known: minus 128 */
        { quantized(plain, 1.0 / 255, -128) }, /* 0..1 */
        { quantized(plain, 1.0 / 127.5, 0) },  /* about -1..1 */
        { quantized(plain, 1, -128) },         /* 0..255 */
        { quantized(plain, 1, 0) },            /* -128..127 */
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(cases); i++) {
        int8_t out[3];

        fill(&image, &cases[i].port, NULL, out);
        for (size_t j = 0; j < 3; j++)
            if (abs(out[j] - whole[j]) > 1)
                fail_msg("case %zu: sample %zu is %d", i, j, out[j]);
    }
}

static void mean_and_std_are_taken_channel_by_channel(void **state)
{
    const muc_image image = { 1, 1, 3, (const uint8_t[]){ 255, 0, 51 } };
    const muc_port port = port_of(MUC_F32, 4, (uint64_t[]){ 1, 3, 1, 1 });
    float out[3];

    (void)state;
    fill(&image, &port, "layout=nchw,mean=0.5:0.25:0.1,std=0.5:0.5:0.2", out);
    CHECK(fabsf(out[0] - 1) < 1e-6f && fabsf(out[1] + 0.5f) < 1e-6f &&
          fabsf(out[2] - 0.5f) < 1e-6f);
    fill(&image, &port, "layout=nchw,order=bgr,scale=1/51", out);
    CHECK(fabsf(out[0] - 1) < 1e-6f && out[1] == 0 && fabsf(out[2] - 5) < 1e-6f);
}

static void words_that_are_not_understood_are_told(void **state)
{
    static const char *const wrong[] = { "scale",     "scale=x",     "mean=1:2", "std=0",
                                         "size=huge", "layout=hwcn", "order=",   "mean=1:2:3:4",
                                         "scale=nan", "colour=1",    "scale=1/0" };
    const muc_port port = port_of(MUC_F32, 4, (uint64_t[]){ 1, 8, 8, 3 });
    muc_image_plan plan;

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(wrong); i++) {
        CHECK_EQ(muc_image_plan_for(ctx, &port, wrong[i], &plan), MUC_USAGE);
        CHECK(strstr(muc_error_message(ctx), "not understood"));
        muc_error_clear(ctx);
    }
}

/* ---- sizes and channels ---- */

static void a_picture_of_one_colour_keeps_it_at_every_size(void **state)
{
    uint8_t data[7 * 5 * 3];
    const muc_image image = { 7, 5, 3, data };
    static const uint64_t sides[] = { 1, 2, 3, 5, 11, 32 };

    (void)state;
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t[]){ 10, 200, 33 }[i % 3];
    for (size_t i = 0; i < MUC_COUNT(sides); i++) {
        const muc_port port = port_of(MUC_U8, 4, (uint64_t[]){ 1, sides[i], 9, 3 });
        uint8_t out[32 * 9 * 3];

        fill(&image, &port, i % 2 ? "size=crop" : NULL, out);
        for (size_t j = 0; j < sides[i] * 9 * 3; j++)
            CHECK_EQ(out[j], data[j % 3]);
    }
}

static void halving_takes_means_and_doubling_steps_between(void **state)
{
    const muc_image wide = { 4, 1, 1, (const uint8_t[]){ 0, 0, 200, 200 } };
    const muc_image narrow = { 2, 1, 1, (const uint8_t[]){ 0, 100 } };
    const muc_port two = port_of(MUC_F64, 4, (uint64_t[]){ 1, 1, 2, 1 });
    const muc_port four = port_of(MUC_F64, 4, (uint64_t[]){ 1, 1, 4, 1 });
    double out[4];

    (void)state;
    /* triangle of reach 2 around 1: weights 1/4 3/4 3/4 1/4 of samples 0 0 200 200, cut off at the
     * picture's edge */
    fill(&wide, &two, "scale=1", out);
    CHECK(fabs(out[0] - 200 * 0.25 / 1.75) < 1e-9 && fabs(out[0] + out[1] - 200) < 1e-9);
    fill(&narrow, &four, "scale=1", out);
    CHECK(fabs(out[0]) < 1e-9 && fabs(out[1] - 25) < 1e-9 && fabs(out[2] - 75) < 1e-9 &&
          fabs(out[3] - 100) < 1e-9);
}

static void cropping_takes_the_middle_and_exact_no_other_size(void **state)
{
    const muc_image image = { 4, 2, 1, (const uint8_t[]){ 9, 1, 2, 9, 9, 3, 4, 9 } };
    const muc_port port = port_of(MUC_U8, 4, (uint64_t[]){ 1, 2, 2, 1 });
    static const uint8_t middle[] = { 1, 2, 3, 4 };
    muc_image_plan plan = plan_of(&port, "size=exact");
    uint8_t out[4];

    (void)state;
    CHECK_EQ(muc_image_fill(ctx, &image, &plan, &port, out), MUC_USAGE);
    CHECK(strstr(muc_error_message(ctx), "4 x 2"));
    muc_error_clear(ctx);
    fill(&image, &port, "size=crop", out);
    assert_memory_equal(out, middle, 4);
}

static void colours_become_grey_by_their_luminance_and_grey_is_repeated(void **state)
{
    const muc_image colour = { 3, 1, 3, (const uint8_t[]){ 255, 0, 0, 0, 255, 0, 0, 0, 255 } };
    const muc_image grey = { 1, 1, 1, (const uint8_t[]){ 77 } };
    const muc_port one = port_of(MUC_U8, 4, (uint64_t[]){ 1, 1, 3, 1 });
    const muc_port three = port_of(MUC_U8, 4, (uint64_t[]){ 1, 1, 1, 3 });
    uint8_t out[3];

    (void)state;
    fill(&colour, &one, NULL, out);
    CHECK(out[0] == 76 && out[1] == 150 && out[2] == 29);
    fill(&grey, &three, NULL, out);
    CHECK(out[0] == 77 && out[1] == 77 && out[2] == 77);
}

/* ---- MNIST ---- */

static uint8_t *unpack(const char *path, size_t skip_bytes, size_t bytes)
{
    char command[600];
    uint8_t *data = malloc(skip_bytes + bytes);
    FILE *pipe;

    snprintf(command, sizeof(command), "gzip -dc '%s' 2>/dev/null", path);
    pipe = popen(command, "r");
    CHECK(pipe && data);
    CHECK_EQ(fread(data, 1, skip_bytes + bytes, pipe), skip_bytes + bytes);
    pclose(pipe);
    memmove(data, data + skip_bytes, bytes);
    return data;
}

static uint32_t answer(muc_graph *graph, const muc_image *image)
{
    muc_tensor_view *results, view = { .name = "x", .file = "picture" };
    muc_arena arena = { 0 };
    muc_image_plan plan;
    muc_port port;
    uint32_t best = 0;
    uint8_t *data;

    CHECK_OK(ctx, muc_network_input_port(ctx, graph, &port));
    plan = plan_of(&port, NULL);
    CHECK_OK(ctx, muc_arena_new(ctx, &arena, (size_t)port.bytes, 1, (void **)&data));
    CHECK_OK(ctx, muc_image_fill(ctx, image, &plan, &port, data));
    view.dtype = port.dtype;
    view.rank = port.rank;
    view.data = data;
    memcpy(view.dims, port.dims, sizeof(view.dims));
    CHECK_OK(ctx, muc_tensor_measure(ctx, &view));
    CHECK_OK(ctx, muc_network_run(ctx, graph, &view, 1, &arena, &results));
    for (uint32_t i = 1; i < results[0].elements; i++)
        if (muc_array_element(&results[0], i) > muc_array_element(&results[0], best))
            best = i;
    muc_arena_free(&arena);
    return best;
}

static void mnist_networks_know_the_digits(void **state)
{
    const char *wish = getenv("MUC_IMAGES");
    size_t count = wish ? strtoul(wish, NULL, 10) : 200, right = 0;
    const char *network = shared_data("tflite/mnist_valid_q.tflite");
    uint8_t *images = unpack(shared_data("mnist/t10k-images-idx3-ubyte.gz"), 16, count * 784);
    uint8_t *labels = unpack(shared_data("mnist/t10k-labels-idx1-ubyte.gz"), 8, count);
    muc_model *model;

    (void)state;
    CHECK_OK(ctx, muc_model_open(ctx, network, NULL, &model));
    for (size_t i = 0; i < count; i++)
        right +=
            answer(model->network.graph, &(muc_image){ 28, 28, 1, images + i * 784 }) == labels[i];
    print_message("%zu of %zu digits are right\n", right, count);
    CHECK(right * 100 >= count * 96); /* 9646 of all 10,000 */
    muc_model_close(model);
    free(images);
    free(labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grey_and_coloured_netpbm_files_are_read),
#ifdef MUC_WITH_PNG
        cmocka_unit_test(seeds_of_png_have_their_samples),
#endif
        cmocka_unit_test(damaged_and_foreign_files_are_refused),
        cmocka_unit_test(the_shape_says_size_channels_and_layout),
        cmocka_unit_test(an_input_without_a_shape_of_pictures_is_refused),
        cmocka_unit_test(the_quantization_says_what_samples_mean),
        cmocka_unit_test(mean_and_std_are_taken_channel_by_channel),
        cmocka_unit_test(words_that_are_not_understood_are_told),
        cmocka_unit_test(a_picture_of_one_colour_keeps_it_at_every_size),
        cmocka_unit_test(halving_takes_means_and_doubling_steps_between),
        cmocka_unit_test(cropping_takes_the_middle_and_exact_no_other_size),
        cmocka_unit_test(colours_become_grey_by_their_luminance_and_grey_is_repeated),
        cmocka_unit_test(mnist_networks_know_the_digits),
    };
    int failed;

    ctx = muc_context_new(1);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    muc_context_free(ctx);
    return failed;
}
