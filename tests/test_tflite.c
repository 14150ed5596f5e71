/* TFLite's files: what is read of them, and what is refused by name. */
#include <math.h>

#include "base/file.h"
#include "formats/network.h"
#include "formats/tflite/tflite_model.h"
#include "tflite_writer.h"

#include "context_fixture.h"

static muc_arena arena;
static muc_tflite_model model;
static flat_out file;

static int teardown(void **state)
{
    muc_arena_free(&arena);
    return free_context(state);
}

static muc_bytes written(void)
{
    return (muc_bytes){ file.data, file.size, "written" };
}

static const float scales[2] = { 0.5f, 0.25f };
static const int64_t zeros[2] = { 0, 0 }, minus_three = -3;
static const int8_t weights[6] = { 1, 2, 3, -4, -5, -6 };

/* y[1, 2] of x[1, 3]: fully connected with a scale for each row of its weights, no bias */
static tfl_model linear(void)
{
    static const tfl_tensor tensors[] = {
        { "x", TFL_I8, 2, { 1, 3 }, 1, scales, &minus_three, 0, NULL, 0 },
        { "w", TFL_I8, 2, { 2, 3 }, 2, scales, zeros, 0, weights, 6 },
        { "y", TFL_I8, 2, { 1, 2 }, 1, scales, zeros, 0, NULL, 0 },
    };
    static const tfl_operator operators[] = {
        { 9, 4, 3, 1, { 0, 1, -1 }, { 2 }, 8, { 1 }, "i" },
    };

    return (tfl_model){ .tensors = tensors,
                        .operators = operators,
                        .tensor_count = 3,
                        .operator_count = 1,
                        .input_count = 1,
                        .output_count = 1,
                        .inputs = { 0 },
                        .outputs = { 2 } };
}

static void what_was_written_is_read(void **state)
{
    tfl_model source = linear();
    const muc_tflite_operator *op;
    const muc_tflite_tensor *w;

    (void)state;
    tfl_write(&file, &source);
    CHECK_OK(ctx, muc_tflite_read(ctx, written(), &arena, &model));
    CHECK(model.tensor_count == 3 && model.operator_count == 1);
    CHECK(model.input_count == 1 && model.inputs[0] == 0 && model.outputs[0] == 2);
    CHECK(strcmp(model.tensors[0].name, "x") == 0 && model.tensors[0].dtype == MUC_I8);
    CHECK_EQ(model.tensors[0].quantization.zero_points[0], -3);
    w = &model.tensors[1];
    CHECK(w->rank == 2 && w->dims[0] == 2 && w->dims[1] == 3 && w->open == 0);
    CHECK(w->bytes == 6 && memcmp(w->data, weights, 6) == 0);
    CHECK(w->quantization.count == 2 && w->quantization.axis == 0);
    CHECK(w->quantization.scales[0] == 0.5f && w->quantization.scales[1] == 0.25f);
    op = &model.operators[0];
    CHECK(strcmp(muc_tflite_operator_name(op->code), "FULLY_CONNECTED") == 0);
    CHECK(op->version == 4 && op->input_count == 3 && op->inputs[2] == MUC_TFLITE_NONE);
    CHECK_EQ(muc_flat_option(op->table, MUC_FLAT_OPERATOR_options),
             muc_flat_option_of(MUC_FLAT_FULLY_CONNECTED_OPTIONS));
    CHECK_EQ(muc_flat_integer(muc_flat_union_at(op->table, MUC_FLAT_OPERATOR_options,
                                                MUC_FLAT_FULLY_CONNECTED_OPTIONS),
                              MUC_FLAT_FULLY_CONNECTED_OPTIONS_activation),
             1);
    CHECK(!muc_flat_union_at(op->table, MUC_FLAT_OPERATOR_options, MUC_FLAT_CONV_2D_OPTIONS).data);
}

/* the code of an operator is in a byte in old files, in an integer in new ones */
static void the_larger_of_two_codes_counts(void **state)
{
    tfl_model source = linear();

    (void)state;
    tfl_write(&file, &source);
    flat_put(&file, source.code_at[0], 0, 9);
    flat_put(&file, source.code_at[0], 3, 0);
    CHECK_OK(ctx, muc_tflite_read(ctx, written(), &arena, &model));
    CHECK_EQ(model.operators[0].code, 9);
    flat_put(&file, source.code_at[0], 0, 127);
    flat_put(&file, source.code_at[0], 3, 150);
    CHECK_OK(ctx, muc_tflite_read(ctx, written(), &arena, &model));
    CHECK(strcmp(muc_tflite_operator_name(model.operators[0].code), "GELU") == 0);
}

static void constants_may_lie_behind_the_flatbuffer(void **state)
{
    tfl_model source = linear();

    (void)state;
    tfl_write(&file, &source);
    flat_put(&file, source.buffer_at[2], 1, (int64_t)file.size);
    flat_put(&file, source.buffer_at[2], 2, 6);
    memcpy(file.data + flat_reserve(&file, 6), "abcdef", 6);
    CHECK_OK(ctx, muc_tflite_read(ctx, written(), &arena, &model));
    CHECK(memcmp(model.tensors[1].data, "abcdef", 6) == 0);
    file.size--;
    CHECK_FAILS(ctx, MUC_MALFORMED, "tensor 'w': 6 bytes at",
                muc_tflite_read(ctx, written(), &arena, &model));
}

static void an_open_dimension_is_told(void **state)
{
    static const int32_t signature[2] = { -1, 3 };
    tfl_model source = linear();

    (void)state;
    tfl_write(&file, &source);
    flat_vector(&file, source.tensor_at[0], 7, signature, 2, 4);
    CHECK_OK(ctx, muc_tflite_read(ctx, written(), &arena, &model));
    CHECK(model.tensors[0].open == 1 && model.tensors[0].dims[0] == 1);
    flat_vector(&file, source.tensor_at[0], 7, signature, 1, 4);
    CHECK_FAILS(ctx, MUC_MALFORMED, "its shape_signature 1",
                muc_tflite_read(ctx, written(), &arena, &model));
}

/* table, slot, value: one spoiled field, and what is said about it */
static void check_spoiled(size_t table, unsigned slot, int64_t value, muc_status status,
                          const char *fragment)
{
    flat_put(&file, table, slot, value);
    CHECK_FAILS(ctx, status, fragment, muc_tflite_read(ctx, written(), &arena, &model));
}

#define SPOILED(place, slot, value, status, fragment) \
    do { \
        tfl_model spoiled = linear(); \
        tfl_write(&file, &spoiled); \
        check_spoiled(spoiled.place, slot, value, status, fragment); \
    } while (0)

static void what_is_not_understood_is_named(void **state)
{
    tfl_model source = linear();
    size_t signature, custom;
    muc_network network;

    (void)state;
    SPOILED(root, 0, 2, MUC_UNSUPPORTED, "schema version 2, not 3");
    SPOILED(tensor_at[0], 1, 17, MUC_UNSUPPORTED, "tensor 'x' is of type 17 (INT4)");
    SPOILED(tensor_at[0], 1, 99, MUC_UNSUPPORTED, "type 99 (unknown)");
    SPOILED(tensor_at[2], 5, 1, MUC_MALFORMED, "computes tensor 'y' again");
    SPOILED(tensor_at[0], 5, 1, MUC_UNSUPPORTED, "the input 'x' is a variable");
    SPOILED(tensor_at[1], 5, 1, MUC_MALFORMED, "tensor 'w' is a variable with data");
    SPOILED(tensor_at[0], 1, 13, MUC_UNSUPPORTED, "the input 'x' is a resource");

    tfl_write(&file, &source);
    flat_put(&file, source.code_at[0], 0, 32);
    flat_put(&file, source.code_at[0], 3, 32);
    custom = source.code_at[0];
    flat_text(&file, custom, 1, "NoSuchOperator");
    CHECK_FAILS(ctx, MUC_UNSUPPORTED, "an operator of the network: NoSuchOperator (1 node, 'y')",
                muc_network_open_bytes(ctx, written(), NULL, &network));

    tfl_write(&file, &source);
    flat_put(&file, source.code_at[0], 3, 199);
    CHECK_FAILS(ctx, MUC_UNSUPPORTED, "an operator of the network: operator 199 (1 node, 'y')",
                muc_network_open_bytes(ctx, written(), NULL, &network));

    tfl_write(&file, &source);
    flat_link(&file, source.tensor_at[1], 6, flat_new_table(&file, 3));
    CHECK_FAILS(ctx, MUC_UNSUPPORTED, "tensor 'w' is sparse",
                muc_tflite_read(ctx, written(), &arena, &model));

    tfl_write(&file, &source);
    flat_tables(&file, source.root, 7, 1, 5, &signature);
    flat_text(&file, signature, 2, "train");
    CHECK_OK(ctx, muc_tflite_read(ctx, written(), &arena, &model));
    flat_put(&file, signature, 4, 1);
    CHECK_FAILS(ctx, MUC_UNSUPPORTED, "signature 'train' runs another subgraph",
                muc_tflite_read(ctx, written(), &arena, &model));
}

static void what_cannot_be_is_refused(void **state)
{
    static const int32_t none = -1, beyond = 3, last = 2;
    static const float endless[2] = { 1, (float)INFINITY };
    tfl_model source = linear();
    size_t quantization;

    (void)state;
    SPOILED(tensor_at[1], 2, 9, MUC_MALFORMED, "tensor 'w': buffer 9 of 4");
    SPOILED(tensor_at[1], 1, TFL_I16, MUC_MALFORMED, "asks for 12 bytes, its buffer has 6");
    SPOILED(operator_at[0], 0, 1, MUC_MALFORMED, "operator code 1 of 1");

    tfl_write(&file, &source);
    flat_vector(&file, source.operator_at[0], 1, &beyond, 1, 4);
    CHECK_FAILS(ctx, MUC_MALFORMED, "tensor 3 of 3",
                muc_tflite_read(ctx, written(), &arena, &model));
    flat_vector(&file, source.operator_at[0], 1, &last, 1, 4);
    CHECK_FAILS(ctx, MUC_MALFORMED, "(FULLY_CONNECTED) reads tensor 'y' before it is computed",
                muc_tflite_read(ctx, written(), &arena, &model));
    tfl_write(&file, &source);
    flat_vector(&file, source.operator_at[0], 2, &none, 1, 4);
    CHECK_FAILS(ctx, MUC_MALFORMED, "tensor -1 of 3",
                muc_tflite_read(ctx, written(), &arena, &model));
    flat_vector(&file, source.operator_at[0], 2, zeros, 1, 4);
    CHECK_FAILS(ctx, MUC_MALFORMED, "computes tensor 'x' again",
                muc_tflite_read(ctx, written(), &arena, &model));
    flat_vector(&file, source.operator_at[0], 2, NULL, 0, 4);
    CHECK_FAILS(ctx, MUC_MALFORMED, "the output 'y' is never computed",
                muc_tflite_read(ctx, written(), &arena, &model));

    tfl_write(&file, &source);
    flat_link(&file, source.tensor_at[1], 4, quantization = flat_new_table(&file, 7));
    flat_vector(&file, quantization, 2, endless, 2, 4);
    CHECK_FAILS(ctx, MUC_MALFORMED, "tensor 'w': scale inf",
                muc_tflite_read(ctx, written(), &arena, &model));
    flat_vector(&file, quantization, 3, zeros, 1, 8);
    CHECK_FAILS(ctx, MUC_MALFORMED, "2 scales, 1 zero points",
                muc_tflite_read(ctx, written(), &arena, &model));
    flat_put(&file, quantization, 6, 1);
    flat_vector(&file, quantization, 3, zeros, 2, 8);
    CHECK_FAILS(ctx, MUC_MALFORMED, "2 scales along dimension 1",
                muc_tflite_read(ctx, written(), &arena, &model));
}

enum { REPEATED = 2000 };

/* a vector of REPEATED offsets to one and the same table */
static size_t repeat(size_t table, unsigned slot, unsigned slots)
{
    size_t vector = flat_new_vector(&file, NULL, REPEATED, 4), target;

    flat_link(&file, table, slot, vector);
    target = flat_new_table(&file, slots);
    for (size_t cell = vector + 4; cell < vector + 4 + 4 * REPEATED; cell += 4)
        muc_store_u32(file.data + cell, (uint32_t)(target - cell));
    return target;
}

static void shared_tables_cannot_make_a_small_file_expensive(void **state)
{
    tfl_model source = linear();

    (void)state;
    tfl_write(&file, &source);
    repeat(repeat(source.root, 2, 5), 0, 8); /* 4 million tensors in 21 KB */
    CHECK_FAILS(ctx, MUC_MALFORMED, "is one of more than the file has room for",
                muc_tflite_read(ctx, written(), &arena, &model));
}

static void published_files_are_read(void **state)
{
    static const struct {
        const char *name;
        uint32_t tensors, operators, open;
    } files[] = {
        { "cifar10_q", 16, 6, 1 },
        { "hello_world_int8", 10, 3, 1 },
        { "kws_ref_model", 35, 13, 1 },
        { "kws_ref_model_float32", 35, 13, 1 },
        { "mnist_dw_q", 19, 7, 1 },
        { "mnist_valid_q", 16, 6, 1 },
        { "person_detect", 89, 31, 0 },
        { "pretrainedResnet", 38, 16, 1 },
        { "pretrainedResnet_quant", 38, 16, 1 },
        { "vww", 163, 63, 0 },
        { "vww_96_int8", 89, 31, 1 },
    };

    (void)state;
    for (size_t i = 0; i < MUC_COUNT(files); i++) {
        char path[64];
        muc_file source;

        snprintf(path, sizeof(path), "tflite/%s.tflite", files[i].name);
        CHECK_OK(ctx, muc_file_open(ctx, shared_data(path), &source));
        CHECK_OK(ctx, muc_tflite_read(ctx, source.bytes, &arena, &model));
        CHECK_EQ(model.tensor_count, files[i].tensors);
        CHECK_EQ(model.operator_count, files[i].operators);
        CHECK_EQ(model.tensors[model.inputs[0]].open, files[i].open);
        muc_file_close(&source);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, new_context, teardown)
    const struct CMUnitTest tests[] = {
        T(what_was_written_is_read),
        T(the_larger_of_two_codes_counts),
        T(constants_may_lie_behind_the_flatbuffer),
        T(an_open_dimension_is_told),
        T(what_is_not_understood_is_named),
        T(what_cannot_be_is_refused),
        T(shared_tables_cannot_make_a_small_file_expensive),
        T(published_files_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
