/* TFLite networks run by ref: bit for bit the outputs of TFLite's integer arithmetic. */
#include "network_fixture.h"

#ifdef MUC_WITH_NPZ
static const muc_tensor_view *find(const muc_tensor_view *views, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(views[i].name, name) == 0)
            return &views[i];
    fail_msg("no array '%s'", name);
    return NULL;
}

static const muc_tensor *only_input(void)
{
    for (uint32_t i = 0; i < network.graph->tensor_count; i++)
        if (network.graph->tensors[i].kind == MUC_TENSOR_INPUT)
            return &network.graph->tensors[i];
    fail_msg("no input");
    return NULL;
}

/* the real numbers that integers stand for, where the network takes or gives real ones */
static const void *as_floats(const muc_tensor *like, const int8_t *x, size_t count, float *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = like->quantization->scales[0] * (float)(x[i] - like->quantization->zero_points[0]);
    return out;
}

static void check_golden(const char *model, const char *golden)
{
    static float floats[1 << 16];
    const uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    const muc_tensor_view *in, *out;
    const muc_tensor *input;
    muc_tensor_view *views;
    size_t count;

    CHECK_OK(ctx, muc_network_open(ctx, shared_data(model), NULL, &network));
    CHECK_OK(ctx, muc_file_open(ctx, shared_data(golden), &file));
    CHECK_OK(ctx, muc_npz_read(ctx, &arena, file.bytes, &views, &count));
    in = find(views, count, "input");
    out = find(views, count, "output");
    CHECK_EQ(in->dims[0], 16);
    input = only_input();
    CHECK_OK(ctx, muc_ref_open(ctx, network.graph, &ref));
    for (size_t i = 0; i < 16; i++) {
        size_t elements = in->elements / 16, results = out->elements / 16;
        const int8_t *x = (const int8_t *)in->data + i * elements;
        const int8_t *expected = (const int8_t *)out->data + i * results;
        bool real = input->dtype == MUC_F32;
        muc_ref_input given = { input->name, x, elements };
        uint32_t last = network.graph->outputs[0];
        muc_ref_view view;

        if (real) { /* quantize is the first node, dequantize the last */
            const muc_node *first = &network.graph->nodes[0];

            given.data = as_floats(&network.graph->tensors[first->outputs[0]], x, elements, floats);
            given.bytes = elements * sizeof(float);
            last = network.graph->nodes[network.graph->tensors[last].producer].inputs[0];
        }
        CHECK_OK(ctx, muc_ref_run(ref, bindings, &given, 1));
        CHECK(muc_ref_get(ref, last, &view));
        CHECK(view.dtype == MUC_I8 && view.elements == results);
        for (size_t k = 0; k < results; k++)
            if (((const int8_t *)view.data)[k] != expected[k])
                fail_msg("input %zu, output %zu: %d, expected %d", i, k,
                         ((const int8_t *)view.data)[k], expected[k]);
    }
}
#else
static void check_golden(const char *model, const char *golden)
{
    (void)model;
    (void)golden;
    print_message("skipped: no libzip\n");
    skip();
}
#endif

static void keyword_spotting_is_exact(void **state)
{
    (void)state;
    check_golden("tflite/kws_ref_model.tflite", "tflite/golden/kws_ref_model.npz");
}

static void visual_wake_words_is_exact(void **state)
{
    (void)state;
    check_golden("tflite/vww_96_int8.tflite", "tflite/golden/vww_96_int8.npz");
}

static void image_classification_is_exact(void **state)
{
    (void)state;
    check_golden("tflite/pretrainedResnet_quant.tflite",
                 "tflite/golden/pretrainedResnet_quant.npz");
}

static void mcunet_is_exact(void **state)
{
    (void)state;
    check_golden("tflite/vww.tflite", "tflite/golden/vww.npz");
}

/* the same network as Keras has it, run by another implementation */
static void the_real_network_agrees_with_keras(void **state)
{
#ifdef MUC_WITH_NPZ
    const uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    const muc_tensor_view *in, *out;
    muc_tensor_view *views;
    muc_ref_input given;
    muc_ref_view view;
    size_t count;

    (void)state;
    CHECK_OK(ctx,
             muc_network_open(ctx, shared_data("tflite/pretrainedResnet.tflite"), NULL, &network));
    CHECK_OK(ctx, muc_file_open(ctx, shared_data("keras/golden/pretrainedResnet.npz"), &file));
    CHECK_OK(ctx, muc_npz_read(ctx, &arena, file.bytes, &views, &count));
    in = find(views, count, "__input_nhwc__");
    out = find(views, count, "dense");
    CHECK_OK(ctx, muc_ref_open(ctx, network.graph, &ref));
    given = (muc_ref_input){ only_input()->name, in->data, (size_t)in->bytes };
    CHECK_OK(ctx, muc_ref_run(ref, bindings, &given, 1));
    CHECK(muc_ref_get(ref, network.graph->outputs[0], &view));
    CHECK_EQ(view.elements, out->elements);
    for (size_t i = 0; i < view.elements; i++) {
        float expected, found = ((const float *)view.data)[i];

        memcpy(&expected, out->data + 4 * i, 4);
        if (!(found - expected <= 1e-4f && expected - found <= 1e-4f))
            fail_msg("output %zu is %g, expected %g", i, (double)found, (double)expected);
    }
#else
    (void)state;
    skip();
#endif
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, new_context, free_network)
    const struct CMUnitTest tests[] = {
        T(keyword_spotting_is_exact),          T(visual_wake_words_is_exact),
        T(image_classification_is_exact),      T(mcunet_is_exact),
        T(the_real_network_agrees_with_keras),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
