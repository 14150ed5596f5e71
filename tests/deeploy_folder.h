/* deeploy_folder.h - a network of data/deeploy with its inputs and expected outputs, by the
 * contract of Deeploy's own test bench: arrays bind by position to the graph's inputs and outputs
 * (further ones are weights), their stored types mean nothing. An array of whole numbers is of the
 * smallest integer type that holds it, any other of real numbers. */
#ifndef DEEPLOY_FOLDER_H
#define DEEPLOY_FOLDER_H

#include <math.h>

#include "base/file.h"
#include "check.h"
#include "formats/network.h"
#include "formats/npy/npz.h"
#include "ref/ref.h"

enum { FOLDER_MAX_INPUTS = 64 };

typedef struct folder {
    char path[512];
    muc_arena arena;
    muc_file files[2];
    muc_tensor_view *inputs, *outputs;
    size_t input_count, output_count;
    muc_network network;
    uint32_t graph_inputs[FOLDER_MAX_INPUTS]; /* tensors, in order */
    uint32_t graph_input_count;
} folder;

/* element i of an array of any type */
static inline double folder_number(const muc_tensor_view *view, uint64_t i)
{
    uint32_t size = muc_dtype_get(view->dtype)->block_bytes;
    float single;
    double wide;

    if (muc_dtype_get(view->dtype)->kind == MUC_DTYPE_INTEGER)
        return (double)muc_dtype_integer(view->dtype, view->data + i * size);
    if (view->dtype == MUC_F64) {
        memcpy(&wide, view->data + i * size, sizeof(wide));
        return wide;
    }
    CHECK(muc_dtype_to_f32(view->dtype, view->data, i, 1, &single));
    return (double)single;
}

/* the smallest integer type, or f32 */
static inline muc_dtype folder_type(const muc_tensor_view *view)
{
    double low = 0, high = 0;

    for (uint64_t i = 0; i < view->elements; i++) {
        double x = folder_number(view, i);

        if (!(fabs(x - trunc(x)) <= 1e-3))
            return MUC_F32;
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    if (view->elements == 0)
        return MUC_F32;
    if (low >= -128 && high <= 127)
        return MUC_I8;
    if (low >= 0 && high <= 255)
        return MUC_U8;
    return low >= -32768 && high <= 32767 ? MUC_I16 : MUC_I32;
}

static inline void folder_read_arrays(muc_context *ctx, folder *f, unsigned which, const char *name,
                                      muc_tensor_view **out, size_t *count)
{
    char path[600];

    snprintf(path, sizeof(path), "%s/%s", f->path, name);
    CHECK_OK(ctx, muc_file_open(ctx, path, &f->files[which]));
    CHECK_OK(ctx, muc_npz_read(ctx, &f->arena, f->files[which].bytes, out, count));
}

/* the graph's inputs, in order */
static inline void folder_find_inputs(folder *f)
{
    const muc_graph *graph = f->network.graph;

    f->graph_input_count = 0;
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].kind == MUC_TENSOR_INPUT) {
            CHECK(f->graph_input_count < FOLDER_MAX_INPUTS);
            f->graph_inputs[f->graph_input_count++] = i;
        }
}

/* Reads arrays and network; by_value: inputs are typed by their values. */
static inline void folder_open(muc_context *ctx, const char *path, bool by_value, folder *f)
{
    muc_network_type types[FOLDER_MAX_INPUTS];
    muc_network_options options = { .types = types };
    char name[600];

    memset(f, 0, sizeof(*f));
    snprintf(f->path, sizeof(f->path), "%s", path);
    folder_read_arrays(ctx, f, 0, "inputs.npz", &f->inputs, &f->input_count);
    folder_read_arrays(ctx, f, 1, "outputs.npz", &f->outputs, &f->output_count);
    snprintf(name, sizeof(name), "%s/network.onnx", path);
    CHECK_OK(ctx, muc_network_open(ctx, name, NULL, &f->network));
    folder_find_inputs(f);
    if (!by_value)
        return;
    for (uint32_t i = 0; i < f->graph_input_count && i < f->input_count; i++) {
        const char *input = f->network.graph->tensors[f->graph_inputs[i]].name;
        muc_dtype dtype = folder_type(&f->inputs[i]);

        if (dtype == MUC_F32)
            continue;
        CHECK_OK(ctx, muc_arena_string(ctx, &f->arena, input, strlen(input),
                                       &types[options.type_count].name));
        types[options.type_count++].dtype = dtype;
    }
    muc_network_close(&f->network);
    CHECK_OK(ctx, muc_network_open(ctx, name, &options, &f->network));
    folder_find_inputs(f);
}

static inline void folder_close(folder *f)
{
    muc_network_close(&f->network);
    muc_arena_free(&f->arena);
    muc_file_close(&f->files[0]);
    muc_file_close(&f->files[1]);
}

/* An array as elements of a type, malloc'd; the type holds every value. */
static inline void *folder_convert(const muc_tensor_view *view, muc_dtype dtype, size_t *bytes)
{
    uint32_t size = muc_dtype_get(dtype)->block_bytes;
    uint8_t *out = malloc((size_t)view->elements * size + 1);

    *bytes = (size_t)view->elements * size;
    for (uint64_t i = 0; i < view->elements; i++) {
        double x = folder_number(view, i);
        float single = (float)x;
        int64_t whole = (int64_t)x;
        uint32_t bits;

        memcpy(&bits, &single, sizeof(bits));
        if (dtype == MUC_BF16) /* nearest, ties to even */
            bits = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        memcpy(out + i * size,
               muc_dtype_get(dtype)->kind == MUC_DTYPE_INTEGER ? (const void *)&whole
                                                               : (const void *)&bits,
               size);
        if (muc_dtype_get(dtype)->kind == MUC_DTYPE_INTEGER &&
            muc_dtype_integer(dtype, out + i * size) != whole)
            fail_msg("%s holds %g, which is not a %s", view->name, x, muc_dtype_get(dtype)->name);
    }
    return out;
}

/* element i of a value of a session */
static inline double folder_value(const muc_ref_view *value, size_t i)
{
    if (muc_dtype_get(value->dtype)->kind == MUC_DTYPE_INTEGER)
        return (double)muc_dtype_integer(value->dtype,
                                         (const uint8_t *)value->data +
                                             i * muc_dtype_get(value->dtype)->block_bytes);
    return value->dtype == MUC_F64 ? ((const double *)value->data)[i]
                                   : (double)((const float *)value->data)[i];
}

#endif
