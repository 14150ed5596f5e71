/* test_compress.c - muc compress: folders that open as what was asked for, and damaged ones that do
 * not. */
#include <math.h>

#include "base/file.h"
#include "run/opened_model.h"
#include "muc/muc.h"
#include "quant/lowbit.h"
#include "tiny_model.h"

static muc_context *ctx;
static char base[] = "/tmp/muc_test_XXXXXX";
static char source[64], out[64];

/* the tiny model as a folder: no format that another test does not read */
static void write_source(void)
{
    muc_text header = { 0 }, data = { 0 }, file = { 0 };
    char path[128];
    FILE *f;

    muc_text_add(&header, "{");
    for (unsigned t = 0; t < TINY_TENSORS; t++)
        for (unsigned layer = 0; layer < (tiny_tensors[t].per_layer ? TINY_LAYERS : 1); layer++) {
            size_t first = data.size;

            for (unsigned i = 0; i < tiny_elements(t); i++)
                put_f32(&data, tiny_value(t, layer, i));
            muc_text_add(&header, "%s\"", header.size > 1 ? "," : "");
            snprintf(path, sizeof(path), tiny_tensors[t].hf, layer);
            muc_text_add(&header, "%s\":{\"dtype\":\"F32\",\"shape\":[%u", path,
                         tiny_tensors[t].rows);
            if (tiny_tensors[t].columns)
                muc_text_add(&header, ",%u", tiny_tensors[t].columns);
            muc_text_add(&header, "],\"data_offsets\":[%zu,%zu]}", first, data.size);
        }
    muc_text_add(&header, "}");
    put_u64(&file, header.size);
    muc_text_add_bytes(&file, header.data, header.size);
    muc_text_add_bytes(&file, data.data, data.size);
    CHECK_OK(ctx, muc_make_dir(ctx, source));
    snprintf(path, sizeof(path), "%s/model.safetensors", source);
    CHECK_OK(ctx, muc_file_write(ctx, path, file.data, file.size));
    snprintf(path, sizeof(path), "%s/config.json", source);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs("{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"hidden_size\":8,"
          "\"intermediate_size\":12,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
          "\"num_key_value_heads\":1,\"vocab_size\":6,\"max_position_embeddings\":10}",
          f);
    fclose(f);
    muc_text_free(&header);
    muc_text_free(&data);
    muc_text_free(&file);
}

static int setup(void **state)
{
    (void)state;
    ctx = muc_context_new(2);
    memset(base + sizeof(base) - 7, 'X', 6);
    if (!ctx || !mkdtemp(base))
        return -1;
    snprintf(source, sizeof(source), "%s/tiny", base);
    snprintf(out, sizeof(out), "%s/out", base);
    write_source();
    return 0;
}

static int teardown(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", base);
    muc_context_free(ctx);
    return system(command) == 0 ? 0 : -1;
}

static muc_status compress(const char *weights, const char *embedding, muc_report **report)
{
    const muc_compress_options options = { .weights = weights,
                                           .embedding = embedding,
                                           .calibration = "none" };
    muc_model *model;
    muc_status status;

    CHECK_OK(ctx, muc_model_open(ctx, source, NULL, &model));
    status = muc_compress(ctx, model, &options, out, report);
    muc_model_close(model);
    return status;
}

/* every matrix of the written folder holds what the codec makes of the source's rows */
static void check_matrices(const muc_checkpoint *a, const muc_checkpoint *b, muc_lowbit weights,
                           muc_lowbit embedding)
{
    for (size_t i = 0; i < a->tensor_count; i++) {
        const muc_tensor_view *from = &a->tensors[i], *to = &b->tensors[i];
        bool outer = strstr(from->name, "embed") || strstr(from->name, "lm_head");
        muc_lowbit format = muc_lowbit_for_row(outer ? embedding : weights, from->dims[1]);

        assert_string_equal(from->name, to->name);
        CHECK_EQ(from->elements, to->elements);
        for (uint64_t row = 0; from->rank == 2 && row < from->dims[0]; row++) {
            uint64_t k = from->dims[1];
            uint16_t numbers[4];
            float w[12], v[12], found[12];
            uint8_t codes[12];

            CHECK_OK(ctx, muc_tensor_to_f32(ctx, from, row * k, k, w));
            CHECK_OK(ctx, muc_tensor_to_f32(ctx, to, row * k, k, found));
            muc_lowbit_encode(format, k, w, codes, numbers);
            muc_lowbit_decode(format, k, codes, numbers, v);
            assert_memory_equal(found, v, k * sizeof(*v));
        }
    }
}

static void folders_hold_what_the_codec_makes(void **state)
{
    (void)state;
    for (unsigned f = 0; f < MUC_LOWBIT_COUNT; f++)
        for (unsigned e = 0; e < 2; e++) {
            muc_lowbit embedding = e ? MUC_LOWBIT_INT4 : MUC_LOWBIT_INT8;
            muc_report *report = NULL;
            muc_model *before, *after;
            double bits = 0;

            CHECK_OK(ctx, compress(muc_lowbit_get((muc_lowbit)f)->name,
                                   muc_lowbit_get(embedding)->name, &report));
            CHECK(muc_report_number(report, "matrix_bits_per_weight", &bits) && bits > 2);
            CHECK_OK(ctx, muc_model_open(ctx, source, NULL, &before));
            CHECK_OK(ctx, muc_model_open(ctx, out, NULL, &after));
            check_matrices(&before->checkpoint, &after->checkpoint, (muc_lowbit)f, embedding);
            CHECK_EQ(before->checkpoint.config.context, after->checkpoint.config.context);
            muc_report_free(report);
            muc_model_close(before);
            muc_model_close(after);
        }
}

/* changes bytes of a file of the written folder; where is what is searched for */
static void damage(const char *name, const char *where, size_t offset, const char *with)
{
    char path[128];
    muc_file file;
    uint8_t *copy, *at;

    snprintf(path, sizeof(path), "%s/%s", out, name);
    CHECK_OK(ctx, muc_file_open(ctx, path, &file));
    copy = malloc(file.bytes.size);
    memcpy(copy, file.bytes.data, file.bytes.size);
    at = memmem(copy, file.bytes.size, where, strlen(where));
    assert_non_null(at);
    memcpy(at + offset, with, strlen(with));
    CHECK_OK(ctx, muc_file_write(ctx, path, copy, file.bytes.size));
    free(copy);
    muc_file_close(&file);
}

static void damaged_folders_are_refused(void **state)
{
    static const struct {
        const char *file, *where, *with, *message;
        muc_status status;
    } cases[] = {
        { "config.json", "int2", "intx", "does not know", MUC_UNSUPPORTED },
        { "config.json", "\"muc\"", "\"gpt\"", "quantized by 'gpt'", MUC_UNSUPPORTED },
        { "config.json", "int2", "int4", "expected rank 2", MUC_MALFORMED },
        { "model.safetensors", "down_proj.weight_scale", "down_proj.weight_skale",
          "dimensions 8, 3", MUC_MALFORMED },
        { "model.safetensors", "\"F16\",\"shape\":[6]", "\"I16\",\"shape\":[6]",
          "expected 6 of f16", MUC_MALFORMED },
    };

    (void)state;
    muc_context_set_force(ctx, true); /* what is damaged was edited */
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        muc_report *report = NULL;
        muc_model *model = NULL;

        CHECK_OK(ctx, compress("int2", "int8", &report));
        muc_report_free(report);
        damage(cases[i].file, cases[i].where, 0, cases[i].with);
        CHECK_FAILS(ctx, cases[i].status, cases[i].message, muc_model_open(ctx, out, NULL, &model));
    }
}

static void what_is_compressed_is_not_compressed_again(void **state)
{
    const muc_compress_options options = { .weights = "int4", .calibration = "none" };
    muc_report *report = NULL;
    muc_model *model;
    char other[96];

    (void)state;
    snprintf(other, sizeof(other), "%s_2", out);
    CHECK_OK(ctx, compress("int2", NULL, &report));
    muc_report_free(report);
    CHECK_OK(ctx, muc_model_open(ctx, out, NULL, &model));
    report = NULL;
    CHECK_FAILS(ctx, MUC_USAGE, "int2 already", muc_compress(ctx, model, &options, other, &report));
    muc_model_close(model);
    CHECK_FAILS(ctx, MUC_USAGE, "there is no 'int3'", compress("int3", NULL, &report));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_hold_what_the_codec_makes),
        cmocka_unit_test(damaged_folders_are_refused),
        cmocka_unit_test(what_is_compressed_is_not_compressed_again),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
