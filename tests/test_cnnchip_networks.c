/* The CNN chip with networks as people publish them: every layer beside ref, beside arrays that
 * others recorded, and beside TFLite's integers. */
#include "check.h"
#include "cnnchip_check.h"

#include <math.h>

#include "targets/cnnchip/run/chip_folder.h"
#include "targets/target.h"
#include "run/opened_model.h"
#include "run/network_run.h"
#include "formats/npy/npz.h"

/* compiles a file as the command does and has every layer compared; the worst error */
static double verify_file(const char *file, const char *arch, const char *count,
                          const char *element)
{
    const muc_model_options opening = { .arch = arch };
    const muc_compile_options options = { .target = "cnnchip", .pes = count, .element = element };
    char path[] = "/tmp/muc_chip_XXXXXX";
    muc_context *ctx = muc_context_new(1);
    muc_model *compiled, *model;
    muc_report *report = NULL;
    muc_tensor_view input;
    muc_arena arena = { 0 };
    double worst = -1;

    CHECK(mkdtemp(path) != NULL);
    remove_folder(path);
    CHECK_OK(ctx, muc_model_open(ctx, file, &opening, &compiled));
    CHECK_OK(ctx, muc_compile(ctx, compiled, &options, path, &report));
    muc_report_free(report);
    CHECK_OK(ctx, muc_model_open(ctx, file, &opening, &model));
    for (uint32_t i = 0; i < model->network.graph->tensor_count; i++)
        if (model->network.graph->tensors[i].kind == MUC_TENSOR_INPUT)
            input = random_input(&arena, model->network.graph, i);
    model->arrays = &input;
    model->array_count = 1;
    CHECK_OK(ctx, muc_verify_cnnchip(ctx, path, model, NULL, &report));
    CHECK(muc_report_number(report, "worst_relative_error", &worst));
    muc_report_free(report);
    muc_model_close(compiled);
    muc_model_close(model);
    muc_arena_free(&arena);
    remove_folder(path);
    muc_context_free(ctx);
    return worst;
}

static void published_networks_agree_layer_by_layer_at_any_number_of_pes(void **state)
{
    const char *const files[] = {
        shared_data("keras/mnist_dw.h5"),   shared_data("keras/mnist_same.h5"),
        shared_data("keras/ad01.h5"),       shared_data("onnx/Convnet_maxpool.onnx"),
        shared_data("onnx/resnet_2b.onnx"), shared_data("onnx/lenet5.onnx")
    };
    static const char *const counts[] = { "unlimited", "256", "64", "16", "9", "4" };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(files); i++)
        for (size_t k = i % 2; k < MUC_COUNT(counts); k += 2)
            CHECK(verify_file(files[i], NULL, counts[k], NULL) <= 1e-5);
}

static void a_residual_network_of_torch_agrees_layer_by_layer(void **state)
{
    (void)state;
    CHECK(verify_file(shared_data("torch/resnet20-12fca82f.th"), "examples/resnet20.arch", "64",
                      NULL) <= 1e-5);
}

/* cycles that it took when blocks were cut along channels, then rows, then columns, were 2,371,833
 * at 16 PEs and 7,220,364 at 4; at 9 nothing is idle */
static void splitting_leaves_few_elements_of_a_residual_network_idle(void **state)
{
    static const struct {
        const char *pes;
        double most;
    } cases[] = { { "16", 2371833 / 1.7 }, { "9", 2400915 }, { "4", 7220364 / 1.3 } };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(cases); i++) {
        const muc_compile_options options = { .target = "cnnchip", .pes = cases[i].pes };
        char path[] = "/tmp/muc_chip_XXXXXX";
        muc_context *ctx = muc_context_new(1);
        muc_report *report = NULL;
        double cycles, bound;
        muc_model *network;

        CHECK(mkdtemp(path) != NULL);
        remove_folder(path);
        CHECK_OK(ctx,
                 muc_model_open(ctx, shared_data("keras/pretrainedResnet.h5"), NULL, &network));
        CHECK_OK(ctx, muc_compile(ctx, network, &options, path, &report));
        CHECK(muc_report_number(report, "cycles", &cycles));
        CHECK(muc_report_number(report, "cycles_bound", &bound));
        CHECK(bound <= cycles && cycles <= cases[i].most);
        muc_report_free(report);
        muc_model_close(network);
        remove_folder(path);
        muc_context_free(ctx);
    }
}

/* What others recorded of a network, beside the chip's layers while it runs. */
typedef struct recording {
    muc_chip chip;
    muc_tensor_view *views;
    size_t count, compared;
    uint64_t instruction;
} recording;

/* recorded [1, channels, rows, columns], found in the order that the chip's graph has; within 1e-5
 * of the layer's largest */
static void compare_recorded(recording *r, const muc_chip_place *place, const float *found)
{
    const muc_tensor_view *view = NULL;
    double error = 0, largest = 0;
    uint64_t pixels, channels;

    for (size_t i = 1; i < r->count; i++)
        view = strcmp(r->views[i].name, place->tensor) == 0 ? &r->views[i] : view;
    if (!view)
        return;
    CHECK_EQ(view->elements, place->elements);
    channels = view->dims[1];
    pixels = view->elements / channels;
    for (uint64_t i = 0; i < view->elements; i++) {
        double expected = muc_array_element(view, i);
        double value = (double)found[place->last ? i % pixels * channels + i / pixels : i];

        CHECK(!isnan(value));
        error = fmax(error, fabs(value - expected));
        largest = fmax(largest, fabs(expected));
    }
    if (!(error <= 1e-5 * largest))
        fail_msg("'%s' is off by %g of its largest", place->tensor, error / largest);
    r->compared++;
}

/* layers whose last instruction this was */
static void watch(void *arg, const muc_cnnchip_sim *sim, uint32_t pc, const uint32_t *words,
                  const muc_cnnchip_counts *counts)
{
    recording *r = arg;
    const json_t *layers = json_object_get(r->chip.map, "layers"), *layer;
    size_t i;

    (void)sim, (void)pc, (void)words, (void)counts;
    r->instruction++;
    json_array_foreach(layers, i, layer)
    {
        const json_t *steps = json_object_get(layer, "steps");
        const json_t *last = json_array_get(steps, json_array_size(steps) - 1);
        muc_chip_place place;
        float *found;

        if (json_integer_value(json_array_get(json_object_get(last, "instructions"), 1)) !=
            (json_int_t)r->instruction)
            continue;
        CHECK_EQ(muc_chip_read_place(NULL, &r->chip, layer, &place), MUC_OK);
        found = malloc(place.bytes);
        muc_chip_load(&r->chip, &place, (uint8_t *)found);
        compare_recorded(r, &place, found);
        free(found);
    }
}

/* of the archive: the image, then every layer's output; the chip has those that nothing is fused
 * into, and gives the network's output */
static void check_recorded(const char *model, const char *golden, const char *count, size_t layers)
{
    const muc_compile_options options = { .target = "cnnchip", .pes = count };
    muc_context *ctx = muc_context_new(1);
    char path[] = "/tmp/muc_chip_XXXXXX";
    recording r = { .compared = 0 };
    muc_report *report = NULL;
    muc_tensor_view *outputs;
    muc_arena arena = { 0 };
    muc_chip_place output;
    muc_model *network;
    muc_file file;

    CHECK(mkdtemp(path) != NULL);
    remove_folder(path);
    CHECK_OK(ctx, muc_model_open(ctx, model, NULL, &network));
    CHECK_OK(ctx, muc_compile(ctx, network, &options, path, &report));
    muc_report_free(report);
    CHECK_OK(ctx, muc_file_open(ctx, golden, &file));
    CHECK_OK(ctx, muc_npz_read(ctx, &arena, file.bytes, &r.views, &r.count));
    CHECK_OK(ctx, muc_chip_open(ctx, path, &r.chip));
    r.chip.sim.trace = watch;
    r.chip.sim.trace_arg = &r;
    r.views[0].name = r.chip.inputs[0].name;
    CHECK_OK(ctx, muc_chip_run(ctx, &r.chip, r.views, 1, &outputs));
    CHECK_EQ(r.compared, layers);
    output = r.chip.outputs[0];
    output.tensor = r.views[r.count - 1].name;
    output.last = false; /* it has no pixels */
    compare_recorded(&r, &output, (const float *)outputs[0].data);
    CHECK_EQ(r.compared, layers + 1);
    muc_chip_close(&r.chip);
    muc_file_close(&file);
    muc_model_close(network);
    muc_arena_free(&arena);
    remove_folder(path);
    muc_context_free(ctx);
}

static void layers_of_keras_networks_are_those_that_were_recorded(void **state)
{
    static const struct {
        const char *model, *golden, *count;
        size_t layers;
    } cases[] = {
        { "keras/pretrainedResnet.h5", "keras/golden/pretrainedResnet.npz", "64", 13 },
        { "keras/pretrainedResnet.h5", "keras/golden/pretrainedResnet.npz", "unlimited", 13 },
        { "keras/ad01.h5", "keras/golden/ad01.npz", "9", 10 },
        { "keras/cifar10.h5", "keras/golden/cifar10.npz", "256", 4 },
        { "keras/lenet5_cifar10.h5", "keras/golden/lenet5_cifar10.npz", "16", 6 },
        { "keras/mnist_dw.h5", "keras/golden/mnist_dw.npz", "4", 6 },
        { "keras/mnist_same.h5", "keras/golden/mnist_same.npz", "9", 5 },
        { "keras/mnist_valid.h5", "keras/golden/mnist_valid.npz", "unlimited", 5 },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(cases); i++)
        check_recorded(shared_data(cases[i].model), shared_data(cases[i].golden), cases[i].count,
                       cases[i].layers);
}

/* the DSP stage rounds once, TFLite's multipliers twice: steps of a tensor apart, not more */
static void integer_networks_stay_within_steps_of_their_scales(void **state)
{
    const char *const files[] = { shared_data("tflite/mnist_dw_q.tflite"),
                                  shared_data("tflite/mnist_valid_q.tflite") };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(files); i++)
        for (size_t k = 0; k < 2; k++)
            CHECK(verify_file(files[i], NULL, k ? "9" : "64", "int8") <= 4.0 / 127);
}

/* TFLite's results for real pictures; the last layer's numbers are steps of its scale */
static void results_of_an_integer_network_are_within_a_step_of_tflite(void **state)
{
    enum { PICTURES = 4, PIXELS = 80 * 80 * 3 };
    const muc_compile_options options = { .target = "cnnchip", .element = "int8", .pes = "64" };
    char path[] = "/tmp/muc_chip_XXXXXX";
    muc_context *ctx = muc_context_new(1);
    muc_tensor_view *recorded, *found, image;
    const int8_t *input, *expected;
    float *pixels = malloc(PIXELS * sizeof(*pixels));
    muc_report *report = NULL;
    muc_arena arena = { 0 };
    muc_model *network;
    muc_chip chip;
    muc_file file;
    size_t count;

    (void)state;
    CHECK(mkdtemp(path) != NULL);
    remove_folder(path);
    CHECK_OK(ctx, muc_model_open(ctx, shared_data("tflite/vww.tflite"), NULL, &network));
    CHECK_OK(ctx, muc_compile(ctx, network, &options, path, &report));
    muc_report_free(report);
    CHECK_OK(ctx, muc_file_open(ctx, shared_data("tflite/golden/vww.npz"), &file));
    CHECK_OK(ctx, muc_npz_read(ctx, &arena, file.bytes, &recorded, &count));
    CHECK(count == 2 && strcmp(recorded[0].name, "input") == 0 &&
          recorded[0].elements >= PICTURES * PIXELS);
    input = (const int8_t *)recorded[0].data;
    expected = (const int8_t *)recorded[1].data;
    CHECK_OK(ctx, muc_chip_open(ctx, path, &chip));
    image = (muc_tensor_view){ .name = chip.inputs[0].name,
                               .dtype = MUC_F32,
                               .elements = PIXELS,
                               .bytes = PIXELS * sizeof(*pixels),
                               .data = (const uint8_t *)pixels,
                               .file = "test" };
    for (size_t i = 0; i < PICTURES; i++) {
        const muc_chip_place *out = &chip.outputs[0];

        for (size_t k = 0; k < PIXELS; k++)
            pixels[k] = chip.inputs[0].scale * (float)(input[i * PIXELS + k] - chip.inputs[0].zero);
        CHECK_OK(ctx, muc_chip_run(ctx, &chip, &image, 1, &found));
        CHECK_EQ(found[0].elements, 2);
        for (size_t k = 0; k < 2; k++) {
            double steps = muc_array_element(&found[0], k) / out->scale + out->zero;

            CHECK(fabs(steps - expected[2 * i + k]) <= 1.001);
        }
    }
    free(pixels);
    muc_chip_close(&chip);
    muc_file_close(&file);
    muc_model_close(network);
    muc_arena_free(&arena);
    remove_folder(path);
    muc_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_networks_agree_layer_by_layer_at_any_number_of_pes),
        cmocka_unit_test(splitting_leaves_few_elements_of_a_residual_network_idle),
        cmocka_unit_test(a_residual_network_of_torch_agrees_layer_by_layer),
        cmocka_unit_test(layers_of_keras_networks_are_those_that_were_recorded),
        cmocka_unit_test(integer_networks_stay_within_steps_of_their_scales),
        cmocka_unit_test(results_of_an_integer_network_are_within_a_step_of_tflite),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
