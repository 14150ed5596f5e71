/* Keras networks run by ref: every layer's output as it was recorded. */
#include <math.h>

#include "network_fixture.h"

/* recorded [1, channels, rows, columns], found [1, rows, columns, channels]; other ranks alike */
static size_t place_of(const muc_tensor_view *recorded, size_t i)
{
    size_t pixels = (size_t)(recorded->dims[2] * recorded->dims[3]);

    return recorded->rank == 4 ? i % pixels * (size_t)recorded->dims[1] + i / pixels : i;
}

/* within 1e-5 of the layer's largest */
static void check_layer(const muc_tensor_view *recorded, const muc_ref_view *found)
{
    const float *expected = (const float *)recorded->data, *got = found->data;
    float largest = 0;

    CHECK_EQ(found->elements, recorded->elements);
    for (size_t i = 0; i < recorded->elements; i++)
        largest = fmaxf(largest, fabsf(expected[i]));
    for (size_t i = 0; i < recorded->elements; i++) {
        float value = got[place_of(recorded, i)];

        if (!(fabsf(value - expected[i]) <= 1e-5f * largest))
            fail_msg("%s: element %zu is %g, expected %g", recorded->name, i, (double)value,
                     (double)expected[i]);
    }
}

/* The archive: the input, then every layer's output. Layers that do nothing have no tensor. */
static void check_golden(const char *model, const char *golden, size_t layers)
{
    const uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    muc_tensor_view *views;
    muc_ref_input given;
    size_t count, checked = 0;

    CHECK_OK(ctx, muc_network_open(ctx, shared_data(model), NULL, &network));
    CHECK_OK(ctx, muc_file_open(ctx, shared_data(golden), &file));
    CHECK_OK(ctx, muc_npz_read(ctx, &arena, file.bytes, &views, &count));
    assert_string_equal(views[0].name, "__input_nhwc__");
    given = (muc_ref_input){ views[1].name, views[0].data, (size_t)views[0].bytes };
    CHECK_OK(ctx, muc_ref_open(ctx, network.graph, &ref));
    CHECK_OK(ctx, muc_ref_run(ref, bindings, &given, 1));
    for (size_t i = 2; i < count; i++) {
        uint32_t id = muc_graph_find(network.graph, views[i].name);
        muc_ref_view view;

        if (id == MUC_NO_ID)
            continue;
        CHECK(muc_ref_get(ref, id, &view));
        check_layer(&views[i], &view);
        checked++;
    }
    CHECK_EQ(checked, layers);
}

static void a_residual_network_gives_what_was_recorded_layer_by_layer(void **state)
{
    (void)state;
    check_golden("keras/pretrainedResnet.h5", "keras/golden/pretrainedResnet.npz", 29);
}

static void an_autoencoder_gives_what_was_recorded_layer_by_layer(void **state)
{
    (void)state;
    check_golden("keras/ad01.h5", "keras/golden/ad01.npz", 28);
}

/* all but its dropout, which is none */
static void a_network_with_strides_gives_what_was_recorded_layer_by_layer(void **state)
{
    (void)state;
    check_golden("keras/cifar10.h5", "keras/golden/cifar10.npz", 12);
}

static void a_network_of_keras_3_gives_what_was_recorded_layer_by_layer(void **state)
{
    (void)state;
    check_golden("keras/lenet5_cifar10.h5", "keras/golden/lenet5_cifar10.npz", 8);
}

static void depthwise_convolutions_give_what_was_recorded_layer_by_layer(void **state)
{
    (void)state;
    check_golden("keras/mnist_dw.h5", "keras/golden/mnist_dw.npz", 15);
}

static void padded_convolutions_give_what_was_recorded_layer_by_layer(void **state)
{
    (void)state;
    check_golden("keras/mnist_same.h5", "keras/golden/mnist_same.npz", 12);
}

static void convolutions_without_padding_give_what_was_recorded_layer_by_layer(void **state)
{
    (void)state;
    check_golden("keras/mnist_valid.h5", "keras/golden/mnist_valid.npz", 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, new_context, free_network)
        TEST(a_residual_network_gives_what_was_recorded_layer_by_layer),
        TEST(an_autoencoder_gives_what_was_recorded_layer_by_layer),
        TEST(a_network_with_strides_gives_what_was_recorded_layer_by_layer),
        TEST(a_network_of_keras_3_gives_what_was_recorded_layer_by_layer),
        TEST(depthwise_convolutions_give_what_was_recorded_layer_by_layer),
        TEST(padded_convolutions_give_what_was_recorded_layer_by_layer),
        TEST(convolutions_without_padding_give_what_was_recorded_layer_by_layer),
    };

    return cmocka_run_group_tests_name("keras", tests, NULL, NULL);
}
