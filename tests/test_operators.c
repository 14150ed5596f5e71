/* test_operators.c - operators of ref on numbers small enough to be worked out by hand. */
#include "operators.h"

#include "base/base.h"

static void sums_and_products_broadcast(void **state)
{
    (void)state;
    CHECK_GIVES("tensor a = const f32 [2, 3] values 1, 2, 3, 4, 5, 6\n"
                "tensor b = const f32 [3] values 10, 20, 30\n"
                "node y f32 [2, 3] = add a, b\n",
                11, 22, 33, 14, 25, 36);
    CHECK_GIVES("tensor a = const f32 [2, 1] values 1, 2\n"
                "tensor b = const f32 [1, 3] values 10, 20, 30\n"
                "node y f32 [2, 3] = mul a, b\n",
                10, 20, 30, 20, 40, 60);
    CHECK_GIVES("tensor a = const i8 [3] values 127, -128, 5\n"
                "tensor b = const i8 [] values 1\n"
                "node y i8 [3] = add a, b\n",
                -128, -127, 6);
    CHECK_GIVES("tensor a = const i32 [4] values -7, 7, -2147483648, 3\n"
                "tensor b = const i32 [4] values 2, -2, -1, 0\n"
                "node y i32 [4] = div a, b\n",
                -3, -3, -2147483648.0, 0);
    CHECK_GIVES("tensor a = const f32 [2] values 1, nan\n"
                "tensor b = const f32 [2] values -3, 4\n"
                "tensor c = const f32 [1] values 0\n"
                "node y f32 [2] = max a, b, c\n",
                1, NAN);
}

static void half_floats_are_rounded_after_each_node(void **state)
{
    (void)state;
    /* 2048 + 1 has no f16: ties to even; 256 + 1 no bf16 */
    CHECK_GIVES("tensor a = const f16 [2] values 2048, 2048\n"
                "tensor b = const f16 [2] values 1, 3\n"
                "node y f16 [2] = add a, b\n",
                2048, 2052);
    CHECK_GIVES("tensor a = const bf16 [2] values 256, 256\n"
                "tensor b = const bf16 [2] values 1, 3\n"
                "node y bf16 [2] = add a, b\n",
                256, 260);
}

static void matrices_multiply_in_stacks(void **state)
{
    (void)state;
    CHECK_GIVES("tensor a = const f32 [2, 2] values 1, 2, 3, 4\n"
                "tensor b = const f32 [2, 2, 1] values 1, 10, 5, 7\n"
                "node y f32 [2, 2, 1] = matmul a, b\n",
                21, 43, 19, 43);
    CHECK_GIVES("tensor a = const i32 [2] values 3, -4\n"
                "tensor b = const i32 [2, 3] values 1, 2, 3, 4, 5, 6\n"
                "node y i32 [3] = matmul a, b\n",
                -13, -14, -15);
}

static void convolutions_slide_over_padded_images(void **state)
{
    (void)state;
    CHECK_GIVES("tensor x = const f32 [1, 1, 3, 3] values 1, 2, 3, 4, 5, 6, 7, 8, 9\n"
                "tensor w = const f32 [1, 1, 2, 2] values 1, 0, 0, -1\n"
                "tensor b = const f32 [1] values 0.5\n"
                "node y f32 [1, 1, 2, 2] = conv x, w, b\n",
                -3.5, -3.5, -3.5, -3.5);
    /* two groups, stride and padding to the left alone; the same with the channels last */
    CHECK_GIVES("tensor x = const f32 [1, 2, 4] values 1, 2, 3, 4, 10, 20, 30, 40\n"
                "tensor w = const f32 [2, 1, 2] values 1, 2, 3, 4\n"
                "node y f32 [1, 2, 2] = conv x, w groups=2 strides=[2] pads=[1, 0]\n",
                2, 8, 40, 180);
    CHECK_GIVES("tensor x = const f32 [1, 4, 2] values 1, 10, 2, 20, 3, 30, 4, 40\n"
                "tensor w = const f32 [2, 2, 1] values 1, 2, 3, 4\n"
                "node y f32 [1, 2, 2] = conv x, w groups=2 strides=[2] pads=[1, 0] "
                "channels_last=1\n",
                2, 40, 8, 180);
}

static void pools_take_the_greatest_and_tell_where(void **state)
{
    (void)state;
    CHECK_GIVES("tensor x = const f32 [1, 1, 3, 3] values 1, 9, 3, 4, 5, 6, 7, 8, -1\n"
                "node y f32 [1, 1, 2, 2], i i64 [1, 1, 2, 2] = max_pool x kernel=[2, 2]\n",
                9, 9, 8, 8);
    CHECK_GIVES("tensor x = const i8 [1, 1, 3] values -9, -8, -7\n"
                "node m i8 [1, 1, 2], y i64 [1, 1, 2] = max_pool x kernel=[2] strides=[2] "
                "ceil_mode=1\n",
                1, 2);
}

static void softmax_sums_to_one_along_its_axis(void **state)
{
    (void)state;
    CHECK_NEAR("tensor x = const f32 [2, 2] values 0, 1000, 0.69314718, 1000\n"
               "node y f32 [2, 2] = softmax x axis=0\n",
               1e-7, 1 / 3.0, 0.5, 2 / 3.0, 0.5);
}

static void reshapes_keep_the_elements(void **state)
{
    (void)state;
    CHECK_GIVES("tensor x = const u8 [2, 3] values 1, 2, 3, 4, 5, 6\n"
                "node y u8 [3, 2] = reshape x shape=[3, 2]\n",
                1, 2, 3, 4, 5, 6);
}

/* a network wide enough that its nodes are worth threads */
static const char wide[] =
    "graph wide\n"
    "tensor x = input f32 [4, 16, 40, 40]\n"
    "tensor w = input f32 [48, 16, 3, 3]\n"
    "tensor m = input f32 [1600, 96]\n"
    "tensor v = input f64 [16, 8, 3, 3]\n"
    "node c f32 [4, 48, 38, 38] = conv x, w\n"
    "node t f32 [4, 48, 38, 38] = tanh c\n"
    "node p f32 [4, 48, 18, 18] = average_pool t kernel=[3, 3] strides=[2, 2]\n"
    "node r f32 [4, 16, 1600] = reshape x shape=[4, 16, 1600]\n"
    "node mm f32 [4, 16, 96] = matmul r, m\n"
    "node d f64 [4, 16, 40, 40] = cast x to=f64\n"
    "node y f64 [4, 8, 42, 42] = conv_transpose d, v\n";

static void every_thread_count_gives_the_same_bytes(void **state)
{
    static const char *const names[] = { "p", "mm", "y" };
    static const struct {
        const char *name;
        size_t count, width;
    } given[] = { { "x", 4 * 16 * 40 * 40, 4 },
                  { "w", 48 * 16 * 9, 4 },
                  { "m", 1600 * 96, 4 },
                  { "v", 16 * 8 * 9, 8 } };
    const uint32_t bindings[1] = { 0 };
    uint8_t *first[MUC_COUNT(names)];

    (void)state;
    for (unsigned threads = 1; threads <= 5; threads += 2) {
        muc_context *ctx = muc_context_new(threads);
        muc_graph *graph = graph_of(ctx, wide);
        muc_ref_input inputs[MUC_COUNT(given)];
        muc_ref *ref;

        for (size_t i = 0; i < MUC_COUNT(given); i++) {
            void *data = calloc(given[i].count, given[i].width);

            for (size_t j = 0; j < given[i].count; j++) {
                double value = sin((double)(j * (i + 7)));

                if (given[i].width == 4)
                    ((float *)data)[j] = (float)value;
                else
                    ((double *)data)[j] = value;
            }
            inputs[i] = (muc_ref_input){ given[i].name, data, given[i].count * given[i].width };
        }
        CHECK_OK(ctx, muc_ref_open(ctx, graph, &ref));
        CHECK_OK(ctx, muc_ref_run(ref, bindings, inputs, MUC_COUNT(given)));
        for (size_t i = 0; i < MUC_COUNT(names); i++) {
            muc_ref_view view;
            size_t bytes;

            CHECK(muc_ref_get(ref, muc_graph_find(graph, names[i]), &view));
            bytes = view.elements * muc_dtype_get(view.dtype)->block_bytes;
            if (threads == 1) {
                first[i] = malloc(bytes);
                memcpy(first[i], view.data, bytes);
            }
            assert_memory_equal(first[i], view.data, bytes);
        }
        for (size_t i = 0; i < MUC_COUNT(given); i++)
            free((void *)(uintptr_t)inputs[i].data);
        muc_ref_close(ref);
        muc_graph_free(graph);
        muc_context_free(ctx);
    }
    for (size_t i = 0; i < MUC_COUNT(names); i++)
        free(first[i]);
}

static void a_limit_on_memory_is_kept(void **state)
{
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph = graph_of(ctx, "graph test\n"
                                     "tensor a = const f32 [4096, 1] bytes 16384\n"
                                     "tensor s = const f32 [1, 1] values 1\n"
                                     "tensor b = const f32 [1, 4] values 1, 2, 3, 4\n"
                                     "node y f32 [1, 4] = mul s, b\n");
    const uint32_t bindings[1] = { 0 };
    muc_ref *ref;

    (void)state;
    CHECK_FAILS(ctx, MUC_UNSUPPORTED, "'a' has no data",
                muc_ref_open_limited(ctx, graph, 1 << 20, &ref));
    muc_graph_free(graph);
    graph = graph_of(ctx, "graph test\n"
                          "tensor a = const f32 [8, 1, 1] values 1, 2, 3, 4, 5, 6, 7, 8\n"
                          "tensor b = const f32 [8, 1] values 1, 2, 3, 4, 5, 6, 7, 8\n"
                          "tensor c = const f32 [8] values 1, 2, 3, 4, 5, 6, 7, 8\n"
                          "node ab f32 [8, 8, 1] = mul a, b\n"
                          "node y f32 [8, 8, 8] = mul ab, c\n");
    CHECK_OK(ctx, muc_ref_open_limited(ctx, graph, 1024, &ref));
    CHECK_FAILS(ctx, MUC_NOMEM, "values take more than the 1024 bytes",
                muc_ref_run(ref, bindings, NULL, 0));
    muc_ref_close(ref);
    muc_graph_free(graph);
    muc_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_products_broadcast),
        cmocka_unit_test(half_floats_are_rounded_after_each_node),
        cmocka_unit_test(matrices_multiply_in_stacks),
        cmocka_unit_test(convolutions_slide_over_padded_images),
        cmocka_unit_test(pools_take_the_greatest_and_tell_where),
        cmocka_unit_test(softmax_sums_to_one_along_its_axis),
        cmocka_unit_test(reshapes_keep_the_elements),
        cmocka_unit_test(every_thread_count_gives_the_same_bytes),
        cmocka_unit_test(a_limit_on_memory_is_kept),
    };

    return cmocka_run_group_tests_name("operators", tests, NULL, NULL);
}
