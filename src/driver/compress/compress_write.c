/* compress_write.c - writes a compressed model's folder: config.json, model.safetensors, the
 * tokenizer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/output_folder.h"
#include "base/half.h"
#include "base/json.h"
#include "driver/compress/compress_stages.h"
#include "formats/hf/hf_lowbit.h"
#include "formats/hf/hf_tensors.h"
#include "formats/hf/save_checkpoint.h"

typedef struct writer {
    muc_context *ctx;
    const muc_model *model;
    const muc_tensor_view *tensors;
    size_t tensor_count;
    const muc_graph *graph;
    const muc_lowbit_options *formats;
    const muc_lowbit_result *quantized;
    muc_folder *folder;
    muc_arena arena;
    muc_tensor_view *views;
    size_t count;
} writer;

static const muc_lowbit_matrix *find(const writer *w, const char *name)
{
    for (size_t i = 0; i < w->quantized->count; i++)
        if (strcmp(w->graph->tensors[w->quantized->matrices[i].tensor].name, name) == 0)
            return &w->quantized->matrices[i];
    return NULL;
}

static muc_status add_view(writer *w, const char *name, muc_dtype dtype, uint32_t rank,
                           const uint64_t *dims, const void *data)
{
    muc_tensor_view *view = &w->views[w->count++];

    *view = (muc_tensor_view){ .name = name, .dtype = dtype, .rank = rank, .data = data };
    memcpy(view->dims, dims, rank * sizeof(*dims));
    return muc_tensor_measure(w->ctx, view);
}

/* as the folder calls it */
static muc_status written_name(writer *w, const char *name, const char **out, bool *less_one)
{
    return muc_hf_written_name(w->ctx, &w->arena, &w->model->checkpoint.config, name, out,
                               less_one);
}

static muc_status add_matrix(writer *w, const char *name, const muc_lowbit_matrix *m)
{
    bool entries = muc_lowbit_get(m->format)->group != 0;
    size_t numbers = muc_lowbit_numbers(m->format, m->k);
    const uint64_t dims[] = { m->n, muc_lowbit_code_bytes(m->format, m->k) };
    const uint64_t number_dims[] = { m->n, numbers / MUC_LOWBIT_ENTRIES, MUC_LOWBIT_ENTRIES };
    const char *beside;
    uint8_t *stored;
    bool less_one;

    MUC_TRY(written_name(w, name, &name, &less_one));
    MUC_TRY(muc_arena_format(w->ctx, &w->arena, &beside, "%s%s", name,
                             entries ? MUC_HF_CODEBOOK : MUC_HF_SCALE));
    MUC_TRY(muc_arena_new(w->ctx, &w->arena, m->n * numbers, 2, (void **)&stored));
    for (size_t i = 0; i < m->n * numbers; i++)
        muc_store_u16(stored + 2 * i, m->numbers[i]);
    MUC_TRY(add_view(w, name, m->format == MUC_LOWBIT_INT8 ? MUC_I8 : MUC_U8, 2, dims, m->codes));
    return add_view(w, beside, MUC_F16, entries ? 3 : 1, number_dims, stored);
}

/* gains and biases: f16 if all of them are within its range */
static muc_status add_vector(writer *w, const muc_tensor_view *from)
{
    muc_dtype dtype = MUC_F16;
    const char *name;
    float *values;
    uint8_t *stored;
    bool less_one;

    MUC_TRY(written_name(w, from->name, &name, &less_one));
    MUC_TRY(MUC_ARENA_NEW(w->ctx, &w->arena, from->elements, &values));
    MUC_TRY(muc_tensor_to_f32(w->ctx, from, 0, from->elements, values));
    for (uint64_t i = 0; less_one && i < from->elements; i++)
        values[i] -= 1;
    for (uint64_t i = 0; i < from->elements; i++)
        if (!isfinite(muc_f32_of_f16(muc_f16_of_f32(values[i]))))
            dtype = MUC_F32;
    MUC_TRY(muc_arena_new(w->ctx, &w->arena, from->elements, 4, (void **)&stored));
    for (uint64_t i = 0; i < from->elements; i++)
        if (dtype == MUC_F16)
            muc_store_u16(stored + 2 * i, muc_f16_of_f32(values[i]));
        else
            muc_store_u32(stored + 4 * i, muc_f32_bits(values[i]));
    return add_view(w, name, dtype, from->rank, from->dims, stored);
}

static muc_status write_weights(writer *w)
{
    muc_text text = { 0 };
    muc_status status;

    MUC_TRY(MUC_ARENA_NEW(w->ctx, &w->arena, 2 * w->tensor_count, &w->views));
    for (size_t i = 0; i < w->tensor_count; i++) {
        const muc_tensor_view *view = &w->tensors[i];
        const muc_lowbit_matrix *matrix = find(w, view->name);

        MUC_TRY(matrix ? add_matrix(w, view->name, matrix) : add_vector(w, view));
    }
    status = muc_safetensors_print(w->ctx, w->views, w->count, &text);
    return muc_folder_write_text(w->folder, "model.safetensors", status, &text);
}

static muc_status add_formats(writer *w, muc_text *text)
{
    const muc_lowbit_options *f = w->formats;

    muc_text_add(text,
                 "  \"quantization_config\": {\"quant_method\": \"" MUC_HF_LOWBIT_METHOD
                 "\", \"weights\": \"%s\", \"embedding\": \"%s\"",
                 muc_lowbit_get(f->weights)->name, muc_lowbit_get(f->embedding)->name);
    for (size_t i = 0; i < f->finer_count; i++) {
        const char *name;
        bool less_one;

        MUC_TRY(written_name(w, f->finer[i], &name, &less_one));
        muc_text_add(text, "%s\"%s\"", i ? ", " : ",\n    \"" MUC_HF_FINER "\": [", name);
    }
    muc_text_add(text, "%s}", f->finer_count ? "]" : "");
    return muc_text_status(w->ctx, text);
}

/* config.json as it was given, with the formats in it: what no other family has stays as it is */
static muc_status change_config(const writer *w, const char *members, muc_text *text)
{
    muc_text object = { 0 };
    json_t *root = NULL, *more = NULL;
    char *printed = NULL;
    const muc_bytes bytes = w->model->checkpoint.config_file;
    muc_status status = muc_json_parse(w->ctx, bytes, 0, &root);

    muc_text_add(&object, "{%s}", members);
    if (status == MUC_OK)
        status = muc_json_parse(
            w->ctx, (muc_bytes){ (const uint8_t *)object.data, object.size, "formats" }, 0, &more);
    if (status == MUC_OK && json_object_update(root, more) == 0)
        printed = json_dumps(root, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    if (status == MUC_OK && !printed)
        status = muc_fail_nomem(w->ctx, w->model->path, bytes.size);
    muc_text_add(text, "%s\n", printed ? printed : "");
    free(printed);
    json_decref(root);
    json_decref(more);
    muc_text_free(&object);
    return status;
}

static muc_status write_config(writer *w)
{
    muc_text text = { 0 }, members = { 0 };
    muc_status status;

    status = add_formats(w, &members);
    if (status == MUC_OK && muc_config_particular(&w->model->checkpoint.config)) {
        status = change_config(w, members.data, &text);
    } else if (status == MUC_OK) {
        muc_text_add(&members, ",\n");
        muc_hf_add_config(&w->model->checkpoint.config, members.data, &text);
    }
    status = muc_folder_write_text(w->folder, "config.json", status, &text);
    muc_text_free(&members);
    return status;
}

static muc_status copy_tokenizer(writer *w)
{
    const char *path = w->model->checkpoint.tokenizer_path;
    muc_status status = MUC_OK;
    muc_tokenizer_files files = { 0 };
    muc_file file;

    if (path)
        MUC_TRY(muc_tokenizer_files_of(w->ctx, path, &w->arena, &files));
    for (size_t i = 0; i < files.count && status == MUC_OK; i++) {
        MUC_TRY(muc_file_open(w->ctx, files.files[i].path, &file));
        status = muc_folder_write(w->folder, files.files[i].name, file.bytes.data, file.bytes.size);
        muc_file_close(&file);
    }
    return status;
}

static muc_status write_all(writer *w)
{
    const char *prompt = w->model->prompt_template;

    MUC_TRY(write_weights(w));
    MUC_TRY(write_config(w));
    MUC_TRY(copy_tokenizer(w));
    return prompt ? muc_folder_write(w->folder, "prompt.txt", prompt, strlen(prompt)) : MUC_OK;
}

muc_status muc_compress_write(muc_context *ctx, const muc_model *model,
                              const muc_tensor_view *tensors, size_t tensor_count,
                              const muc_graph *graph, const muc_lowbit_options *formats,
                              const muc_lowbit_result *quantized, const char *out_path,
                              muc_folder_check *check, void *arg)
{
    writer w = { .ctx = ctx,
                 .model = model,
                 .tensors = tensors,
                 .tensor_count = tensor_count,
                 .graph = graph,
                 .formats = formats,
                 .quantized = quantized };
    muc_status status;

    MUC_TRY(muc_folder_begin(ctx, out_path, &w.folder));
    status = muc_folder_end(w.folder, write_all(&w), check, arg);
    muc_arena_free(&w.arena);
    return status;
}
