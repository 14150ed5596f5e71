/* import.c - the calls of a Keras model to a graph, one after the other. An open batch is 1. */
#include "formats/keras/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE = 320, MOST = 1 << 20 };

typedef struct row {
    const char *name;
    uint32_t least, most, least_inputs, most_inputs, spatial;
    muc_op to;
    muc_keras_importer *import;
} row;

static const row rows[] = {
#define KERAS_LAYER(name, least, most, least_in, most_in, spatial, to, import) \
    { #name, least, most, least_in, most_in, spatial, MUC_OP_##to, muc_keras_import_##import },
#include "formats/keras/layers.def"
#undef KERAS_LAYER
};

muc_status muc_keras_refuse(const muc_keras_import *im, muc_status status, const char *format, ...)
{
    char message[MESSAGE];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    return muc_fail(im->ctx, status, im->model->file, MUC_NO_OFFSET, "layer '%.200s' (%.100s): %s",
                    im->layer->name, im->layer->class_name, message);
}

/* ---- configuration ---- */

const json_t *muc_keras_option(const muc_keras_import *im, const char *keys)
{
    for (;;) {
        size_t length = strcspn(keys, "|");
        char key[64];
        const json_t *value;

        snprintf(key, sizeof(key), "%.*s", (int)length, keys);
        value = json_object_get(im->layer->config, key);
        if (value && !json_is_null(value))
            return value;
        if (!keys[length])
            return NULL;
        keys += length + 1;
    }
}

static muc_status unexpected(const muc_keras_import *im, const char *keys, const char *expected)
{
    return muc_keras_refuse(im, MUC_MALFORMED, "\"%s\" is not %s", keys, expected);
}

muc_status muc_keras_bool(const muc_keras_import *im, const char *keys, bool fallback, bool *out)
{
    const json_t *value = muc_keras_option(im, keys);

    *out = value ? json_is_true(value) || json_integer_value(value) == 1 : fallback;
    if (!value || json_is_boolean(value) ||
        (json_is_integer(value) && (uint64_t)json_integer_value(value) <= 1))
        return MUC_OK;
    return unexpected(im, keys, "true or false");
}

muc_status muc_keras_real(const muc_keras_import *im, const char *keys, double fallback,
                          double *out)
{
    const json_t *value = muc_keras_option(im, keys);

    *out = value ? json_number_value(value) : fallback;
    return !value || json_is_number(value) ? MUC_OK : unexpected(im, keys, "a number");
}

muc_status muc_keras_integers(const muc_keras_import *im, const char *keys, uint32_t count,
                              int64_t least, const int64_t *fallback, int64_t *out)
{
    const json_t *value = muc_keras_option(im, keys);

    if (!value && fallback) {
        memcpy(out, fallback, count * sizeof(*out));
        return MUC_OK;
    }
    if (!json_is_integer(value) && json_array_size(value) != count)
        return unexpected(im, keys, "an integer or one for each spatial dimension");
    for (uint32_t i = 0; i < count; i++) {
        const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;

        out[i] = json_integer_value(item);
        if (!json_is_integer(item) || out[i] < least || out[i] > MOST)
            return unexpected(im, keys, "of integers in range");
    }
    return MUC_OK;
}

muc_status muc_keras_word(const muc_keras_import *im, const char *keys, const char *fallback,
                          const char **out)
{
    const json_t *value = muc_keras_option(im, keys);

    *out = value ? json_string_value(value) : fallback;
    return *out ? MUC_OK : unexpected(im, keys, "a string");
}

muc_status muc_keras_channels_last(const muc_keras_import *im)
{
    const char *order;

    MUC_TRY(muc_keras_word(im, "data_format|dim_ordering", "channels_last", &order));
    return strcmp(order, "channels_last") == 0 || strcmp(order, "tf") == 0
               ? MUC_OK
               : muc_keras_refuse(im, MUC_UNSUPPORTED,
                                  "data_format '%.40s', expected channels_last", order);
}

/* ---- tensors ---- */

uint32_t muc_keras_input(const muc_keras_import *im, uint32_t i)
{
    return im->ids[im->call->inputs[i]];
}

uint32_t muc_keras_rank(const muc_keras_import *im, uint32_t id)
{
    return im->graph->tensors[id].rank;
}

int64_t muc_keras_dim(const muc_keras_import *im, uint32_t id, uint32_t i)
{
    return muc_expr_get(im->graph->pool, im->graph->tensors[id].dims[i])->hi;
}

muc_status muc_keras_expect(const muc_keras_import *im, uint32_t i, const char *what, uint32_t rank,
                            const int64_t *dims)
{
    const muc_hdf5_array *array = &im->arrays[i];

    if (array->rank != rank)
        return muc_keras_refuse(im, MUC_MALFORMED,
                                "%s has %" PRIu32 " dimensions, expected %" PRIu32, what,
                                array->rank, rank);
    for (uint32_t d = 0; d < rank; d++)
        if (array->dims[d] != (uint64_t)dims[d])
            return muc_keras_refuse(im, MUC_MALFORMED,
                                    "dimension %" PRIu32 " of %s is %" PRIu64 ", expected %" PRId64,
                                    d, what, array->dims[d], dims[d]);
    return MUC_OK;
}

/* a name that the graph does not have yet */
static muc_status free_name(muc_keras_import *im, const char *wanted, const char **out)
{
    *out = wanted;
    for (uint32_t i = 2; muc_graph_find(im->graph, *out) != MUC_NO_ID; i++)
        MUC_TRY(muc_arena_format(im->ctx, im->arena, out, "%s#%" PRIu32, wanted, i));
    return MUC_OK;
}

muc_status muc_keras_constant(muc_keras_import *im, const char *suffix, uint32_t rank,
                              const int64_t *dims, const float *data, uint32_t *id)
{
    muc_tensor tensor = { .kind = MUC_TENSOR_CONST, .dtype = MUC_F32, .rank = rank };
    const char *name;

    MUC_TRY(muc_arena_format(im->ctx, im->arena, &name, "%s/%s", im->layer->name, suffix));
    *id = im->call->node > 0 ? muc_graph_find(im->graph, name) : MUC_NO_ID;
    if (*id != MUC_NO_ID && im->graph->tensors[*id].kind == MUC_TENSOR_CONST)
        return MUC_OK;
    MUC_TRY(free_name(im, name, &tensor.name));
    tensor.bytes = sizeof(float);
    for (uint32_t i = 0; i < rank; i++) {
        tensor.dims[i] = muc_expr_const(im->graph->pool, (uint32_t)dims[i]);
        tensor.bytes *= (uint64_t)dims[i];
    }
    MUC_TRY(muc_expr_status(im->graph->pool));
    tensor.data = (const uint8_t *)data;
    return muc_graph_add_tensor(im->ctx, im->graph, &tensor, id);
}

muc_status muc_keras_transposed(muc_keras_import *im, const char *suffix, uint32_t i,
                                int64_t columns, uint32_t rank, const int64_t *dims, uint32_t *id)
{
    const muc_hdf5_array *array = &im->arrays[i];
    size_t n = (size_t)columns, rows_of = n ? (size_t)array->elements / n : 0;
    float *data;

    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, (size_t)array->elements + 1, &data));
    for (size_t r = 0; r < rows_of; r++)
        for (size_t c = 0; c < n; c++)
            data[c * rows_of + r] = array->data[r * n + c];
    return muc_keras_constant(im, suffix, rank, dims, data, id);
}

/* ---- nodes ---- */

muc_status muc_keras_step(muc_keras_import *im, muc_op op, const char *suffix,
                          const uint32_t *inputs, uint32_t count, const muc_attributes *a,
                          uint32_t *id)
{
    const char *name;

    MUC_TRY(muc_arena_format(im->ctx, im->arena, &name, "%s%s%s", im->layer->name,
                             suffix[0] ? "/" : "", suffix));
    MUC_TRY(free_name(im, name, &name));
    return muc_graph_add_node(im->ctx, im->graph, op, name, inputs, count, a ? a->items : NULL,
                              a ? a->count : 0, id);
}

muc_status muc_keras_last(muc_keras_import *im, muc_op op, const uint32_t *inputs, uint32_t count,
                          const muc_attributes *a)
{
    return muc_keras_step(im, op, "", inputs, count, a, &im->ids[im->call - im->model->calls]);
}

void muc_keras_same(muc_keras_import *im, uint32_t x)
{
    im->ids[im->call - im->model->calls] = x;
}

/* ---- the graph ---- */

/* a first layer that is no InputLayer says what it takes */
static muc_status add_input(muc_keras_import *im, const char *name, const json_t *shape)
{
    muc_tensor tensor = { .name = name, .kind = MUC_TENSOR_INPUT, .dtype = MUC_F32 };
    size_t rank = json_array_size(shape);
    uint32_t *id = &im->ids[im->call - im->model->calls];

    if (rank < 2 || rank > MUC_GRAPH_MAX_RANK)
        return muc_keras_refuse(im, MUC_UNSUPPORTED, "an input shape of no list of 2 to 8 numbers");
    for (size_t i = 0; i < rank; i++) {
        const json_t *item = json_array_get(shape, i);
        json_int_t value = i == 0 && json_is_null(item) ? 1 : json_integer_value(item);

        if (value < 1 || value > MOST)
            return muc_keras_refuse(im, MUC_UNSUPPORTED,
                                    "dimension %zu of the input is open or out of range", i);
        tensor.dims[i] = muc_expr_const(im->graph->pool, (uint32_t)value);
    }
    tensor.rank = (uint32_t)rank;
    MUC_TRY(muc_expr_status(im->graph->pool));
    MUC_TRY(free_name(im, tensor.name, &tensor.name));
    return muc_graph_add_tensor(im->ctx, im->graph, &tensor, id);
}

muc_status muc_keras_import_input(muc_keras_import *im)
{
    const char *dtype;

    MUC_TRY(muc_keras_word(im, "dtype|input_dtype", "float32", &dtype));
    if (strcmp(dtype, "float32") != 0)
        return muc_keras_refuse(im, MUC_UNSUPPORTED, "dtype '%.40s', expected float32", dtype);
    return add_input(im, im->layer->name, muc_keras_option(im, "batch_shape|batch_input_shape"));
}

static const row *find_row(const char *name)
{
    for (size_t i = 0; i < MUC_COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static muc_status read_arrays(muc_keras_import *im, const row *r)
{
    const char *const *paths;
    size_t count;

    im->array_count = 0;
    if (r->most == 0)
        return MUC_OK;
    MUC_TRY(muc_keras_weights_of(im->weights, im->layer, &paths, &count));
    if (count < r->least || count > r->most)
        return muc_keras_refuse(im, MUC_MALFORMED,
                                "%zu arrays of weights, expected %" PRIu32 " to %" PRIu32, count,
                                r->least, r->most);
    for (size_t i = 0; i < count; i++)
        MUC_TRY(muc_hdf5_array_at(im->weights->file, paths[i], &im->arrays[i]));
    im->array_count = (uint32_t)count;
    return MUC_OK;
}

/* the first layer of a Sequential: its input is added, which is then the call's */
static muc_status import_first(muc_keras_import *im, const row *r)
{
    muc_keras_call *call = &im->model->calls[im->call - im->model->calls];

    MUC_TRY(add_input(im, "input", muc_keras_option(im, "batch_shape|batch_input_shape")));
    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, 1, &call->inputs));
    call->inputs[0] = (uint32_t)(call - im->model->calls); /* its place holds its input till then */
    call->input_count = 1;
    return r->import(im);
}

static muc_status import_call(muc_keras_import *im, uint32_t index)
{
    const row *r;

    im->call = &im->model->calls[index];
    im->layer = &im->model->layers[im->call->layer];
    r = find_row(im->layer->class_name);
    if (!r)
        return muc_keras_refuse(im, MUC_UNSUPPORTED, "no row implements this class");
    im->to = r->to;
    im->spatial = r->spatial;
    MUC_TRY(read_arrays(im, r));
    if (im->call->input_count == 0 && r->least_inputs == 1)
        return import_first(im, r);
    if (im->call->input_count < r->least_inputs || im->call->input_count > r->most_inputs)
        return muc_keras_refuse(im, MUC_MALFORMED,
                                "%" PRIu32 " inputs, expected %" PRIu32 " to %" PRIu32,
                                im->call->input_count, r->least_inputs, r->most_inputs);
    return r->import(im);
}

muc_status muc_keras_import_model(muc_keras_import *im)
{
    const muc_keras_model *model = im->model;

    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, model->call_count, &im->ids));
    for (uint32_t i = 0; i < model->order_count; i++)
        MUC_TRY(import_call(im, model->order[i]));
    for (uint32_t i = 0; i < model->output_count; i++)
        MUC_TRY(muc_graph_add_output(im->ctx, im->graph, im->ids[model->outputs[i]]));
    return MUC_OK;
}
