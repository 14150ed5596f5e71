/* keras_import.c - the calls of a Keras model to a graph, one after the other. An open batch is 1.
 */
#include "formats/keras/keras_import.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "import/free_name.h"

enum { MOST = 1 << 20, MOST_CALLS = 1 << 14 };

typedef struct row {
    const char *name;
    uint32_t least, most, least_inputs, most_inputs, spatial;
    muc_op to;
    muc_keras_importer *import;
    const char *recipe; /* NULL: its importer is one of its own */
} row;

static const row rows[] = {
#define KERAS_LAYER(name, least, most, least_in, most_in, spatial, to, import) \
    { \
        #name, least, most, least_in, most_in, spatial, MUC_OP_##to, muc_keras_import_##import, NULL \
    },
#define KERAS_RECIPE(name, least, most, least_in, most_in, spatial, to, recipe) \
    { \
        #name, least, most, least_in, most_in, spatial, MUC_OP_##to, muc_keras_import_recipe, recipe \
    },
#include "formats/keras/keras_layers.def"
#undef KERAS_LAYER
};

muc_subject muc_keras_subject(const muc_keras_import *im)
{
    return muc_subject_of(im->ctx, im->model->file, MUC_NO_OFFSET, "layer '%.100s%.200s' (%.100s)",
                          im->prefix, im->layer->name, im->layer->class_name);
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

muc_status muc_keras_channels(const muc_keras_import *im, bool *first)
{
    const char *order;

    MUC_TRY(muc_keras_word(im, "data_format|dim_ordering", "channels_last", &order));
    *first = strcmp(order, "channels_first") == 0 || strcmp(order, "th") == 0;
    return *first || strcmp(order, "channels_last") == 0 || strcmp(order, "tf") == 0
               ? MUC_OK
               : muc_keras_refuse(im, MUC_UNSUPPORTED,
                                  "data_format '%.40s', expected channels_last or channels_first",
                                  order);
}

/* ---- tensors ---- */

uint32_t muc_keras_input(const muc_keras_import *im, uint32_t i)
{
    muc_keras_source source = im->call->inputs[i];

    return im->results[source.call].ids[source.output];
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

/* the layer's constant of this suffix, if a call made it */
static uint32_t find_constant(const muc_keras_import *im, const char *suffix)
{
    for (uint32_t i = 0; i < im->layer->constant_count; i++)
        if (strcmp(im->layer->constants[i].suffix, suffix) == 0)
            return im->layer->constants[i].id;
    return MUC_NO_ID;
}

muc_status muc_keras_constant(muc_keras_import *im, const char *suffix, uint32_t rank,
                              const int64_t *dims, const float *data, uint32_t *id)
{
    muc_tensor tensor = { .kind = MUC_TENSOR_CONST, .dtype = MUC_F32, .rank = rank };
    muc_keras_layer *layer = &im->model->layers[im->call->layer];
    const char *name;

    *id = find_constant(im, suffix);
    if (*id != MUC_NO_ID)
        return MUC_OK;
    MUC_TRY(
        muc_arena_format(im->ctx, im->arena, &name, "%s%s/%s", im->prefix, layer->name, suffix));
    MUC_TRY(muc_free_name(im->ctx, im->graph, im->arena, name, '#', &tensor.name));
    tensor.bytes = sizeof(float);
    for (uint32_t i = 0; i < rank; i++) {
        tensor.dims[i] = muc_expr_const(im->graph->pool, (uint32_t)dims[i]);
        tensor.bytes *= (uint64_t)dims[i];
    }
    MUC_TRY(muc_expr_status(im->graph->pool));
    tensor.data = (const uint8_t *)data;
    MUC_TRY(muc_graph_add_tensor(im->ctx, im->graph, &tensor, id));
    if (layer->constant_count == MUC_KERAS_MAX_CONSTANTS)
        return muc_keras_refuse(im, MUC_BUG, "more constants than a layer has");
    layer->constants[layer->constant_count].suffix = suffix;
    layer->constants[layer->constant_count++].id = *id;
    return MUC_OK;
}

muc_status muc_keras_number(muc_keras_import *im, const char *suffix, double value, uint32_t *id)
{
    float *data;

    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, 1, &data));
    data[0] = (float)value;
    return muc_keras_constant(im, suffix, 0, NULL, data, id);
}

/* ---- nodes ---- */

muc_status muc_keras_step(muc_keras_import *im, muc_op op, const char *suffix,
                          const uint32_t *inputs, uint32_t count, const muc_attributes *a,
                          uint32_t *id)
{
    const char *name;

    MUC_TRY(muc_arena_format(im->ctx, im->arena, &name, "%s%s%s%s", im->prefix, im->layer->name,
                             suffix[0] ? "/" : "", suffix));
    MUC_TRY(muc_free_name(im->ctx, im->graph, im->arena, name, '#', &name));
    return muc_graph_add_node(im->ctx, im->graph, op, name, inputs, count, a ? a->items : NULL,
                              a ? a->count : 0, id);
}

/* the one tensor of the call at work */
static uint32_t *own_result(const muc_keras_import *im)
{
    return im->results[im->call - im->model->calls].ids;
}

muc_status muc_keras_last(muc_keras_import *im, muc_op op, const uint32_t *inputs, uint32_t count,
                          const muc_attributes *a)
{
    return muc_keras_step(im, op, "", inputs, count, a, own_result(im));
}

void muc_keras_same(muc_keras_import *im, uint32_t x)
{
    *own_result(im) = x;
}

/* ---- the graph ---- */

/* a first layer that is not an InputLayer says what it takes */
static muc_status add_input(muc_keras_import *im, const char *name, const json_t *shape)
{
    muc_tensor tensor = { .name = name, .kind = MUC_TENSOR_INPUT, .dtype = MUC_F32 };
    size_t rank = json_array_size(shape);

    if (rank < 2 || rank > MUC_GRAPH_MAX_RANK)
        return muc_keras_refuse(im, MUC_UNSUPPORTED,
                                "the shape of the input is not a list of 2 to 8 numbers");
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
    MUC_TRY(muc_free_name(im->ctx, im->graph, im->arena, name, '#', &tensor.name));
    return muc_graph_add_tensor(im->ctx, im->graph, &tensor, own_result(im));
}

/* an inner model's input is what the model was called with */
static bool take_given(muc_keras_import *im)
{
    uint32_t index = (uint32_t)(im->call - im->model->calls);

    for (uint32_t i = 0; im->given && i < im->model->input_count; i++)
        if (im->model->inputs[i].call == index) {
            muc_keras_same(im, im->given[i]);
            return true;
        }
    return false;
}

/* what the layer says of its input, or of a Sequential the model */
static const json_t *input_shape(const muc_keras_import *im)
{
    const json_t *shape = muc_keras_option(im, "batch_shape|batch_input_shape");

    return shape ? shape : im->model->built_shape;
}

muc_status muc_keras_import_input(muc_keras_import *im)
{
    const char *dtype;

    if (take_given(im))
        return MUC_OK;
    MUC_TRY(muc_keras_word(im, "dtype|input_dtype", "float32", &dtype));
    if (strcmp(dtype, "float32") != 0)
        return muc_keras_refuse(im, MUC_UNSUPPORTED, "dtype '%.40s', expected float32", dtype);
    return add_input(im, im->layer->name, input_shape(im));
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

muc_status muc_keras_import_recipe(muc_keras_import *im)
{
    return muc_keras_cook(im, "%s", im->recipe);
}

/* the import that the row names */
static muc_status import_by(muc_keras_import *im, const row *r)
{
    im->to = r->to;
    im->recipe = r->recipe;
    return r->import(im);
}

muc_status muc_keras_import_as(muc_keras_import *im, const char *class_name)
{
    return import_by(im, find_row(class_name));
}

/* the first layer of a Sequential: its input is added, which is then the call's */
static muc_status import_first(muc_keras_import *im, const row *r)
{
    muc_keras_call *call = &im->model->calls[im->call - im->model->calls];
    muc_status status;

    if (!take_given(im))
        MUC_TRY(add_input(im, "input", input_shape(im)));
    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, 1, &call->inputs));
    /* its own place holds its input till then */
    call->inputs[0] = (muc_keras_source){ (uint32_t)(call - im->model->calls), 0 };
    call->input_count = 1;
    status = import_by(im, r);
    call->input_count = 0; /* for the model's next call */
    return status;
}

static muc_status import_calls(muc_keras_import *im);

/* a layer that is a model: its calls are written out, below its name */
static muc_status import_inner(muc_keras_import *im)
{
    muc_keras_layer *layer = &im->model->layers[im->call->layer];
    uint32_t count = im->call->input_count, *given;
    muc_keras_import inner = *im;
    muc_keras_weights weights;
    muc_keras_result *result = &im->results[im->call - im->model->calls];

    MUC_TRY(muc_keras_weights_inner(im->weights, layer, &weights));
    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, count, &given));
    for (uint32_t i = 0; i < count; i++)
        given[i] = muc_keras_input(im, i);
    inner.given = count > 0 ? given : im->given;
    inner.model = layer->inner;
    inner.weights = &weights;
    if (inner.given && (count > 0 ? count : im->model->input_count) != inner.model->input_count)
        return muc_keras_refuse(im, MUC_MALFORMED, "%" PRIu32 " inputs, expected %" PRIu32, count,
                                inner.model->input_count);
    MUC_TRY(muc_arena_format(im->ctx, im->arena, &inner.prefix, "%s%s/", im->prefix, layer->name));
    MUC_TRY(import_calls(&inner));
    result->count = inner.model->output_count;
    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, result->count, &result->ids));
    for (uint32_t i = 0; i < result->count; i++) {
        muc_keras_source source = inner.model->outputs[i];

        result->ids[i] = inner.results[source.call].ids[source.output];
    }
    return MUC_OK;
}

/* what the call takes are outputs that its layers have */
static muc_status check_inputs(const muc_keras_import *im)
{
    for (uint32_t i = 0; i < im->call->input_count; i++)
        if (im->call->inputs[i].output >= im->results[im->call->inputs[i].call].count)
            return muc_keras_refuse(
                im, MUC_MALFORMED, "an input is output %" PRIu32 " of a layer that has %" PRIu32,
                im->call->inputs[i].output, im->results[im->call->inputs[i].call].count);
    return MUC_OK;
}

static muc_status import_call(muc_keras_import *im, uint32_t index)
{
    const row *r;

    im->call = &im->model->calls[index];
    im->layer = &im->model->layers[im->call->layer];
    MUC_TRY(check_inputs(im));
    if (muc_keras_is_model(im->layer->class_name))
        return import_inner(im);
    r = find_row(im->layer->class_name);
    im->results[index].count = 1;
    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, 1, &im->results[index].ids));
    im->spatial = r->spatial;
    MUC_TRY(read_arrays(im, r));
    if (im->call->input_count == 0 && r->least_inputs == 1)
        return import_first(im, r);
    if (im->call->input_count < r->least_inputs || im->call->input_count > r->most_inputs)
        return muc_keras_refuse(im, MUC_MALFORMED,
                                "%" PRIu32 " inputs, expected %" PRIu32 " to %" PRIu32,
                                im->call->input_count, r->least_inputs, r->most_inputs);
    return import_by(im, r);
}

/* Lists what each call of the model makes; an inner model's nodes are listed, and read, once. */
static muc_status list_calls(const muc_keras_import *im, muc_keras_model *model,
                             muc_listing *listing)
{
    for (uint32_t i = 0; i < model->order_count; i++) {
        muc_keras_layer *layer = &model->layers[model->calls[model->order[i]].layer];

        if (!muc_keras_is_model(layer->class_name)) {
            MUC_TRY(muc_listing_add(im->ctx, im->arena, listing, layer->class_name, layer->name,
                                    find_row(layer->class_name) != NULL));
            continue;
        }
        if (layer->inner)
            continue;
        MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, 1, &layer->inner));
        MUC_TRY(
            muc_keras_model_read(im->ctx, im->arena, model->file, layer->document, layer->inner));
        MUC_TRY(list_calls(im, layer->inner, listing));
    }
    return MUC_OK;
}

static muc_status list_ports(const muc_keras_import *im, muc_listing *listing,
                             const muc_keras_source *ports, uint32_t count, bool are_outputs)
{
    for (uint32_t i = 0; i < count; i++) {
        const muc_keras_layer *layer = &im->model->layers[im->model->calls[ports[i].call].layer];
        muc_keras_import port = *im;
        const json_t *shape, *item;
        muc_text text = { 0 };
        size_t k;

        port.layer = layer;
        shape = are_outputs ? NULL : input_shape(&port); /* outputs: what only the graph tells */
        json_array_foreach(shape, k, item)
        {
            muc_text_add(&text, "%s", k ? ", " : "f32 [");
            if (json_is_integer(item))
                muc_text_add(&text, "%lld", (long long)json_integer_value(item));
            else
                muc_text_add(&text, "?");
        }
        muc_text_add(&text, "%s", text.size ? "]" : "");
        MUC_TRY(muc_listing_add_port(im->ctx, im->arena, listing, layer->name, &text, are_outputs));
    }
    return MUC_OK;
}

muc_status muc_keras_list_model(const muc_keras_import *im, bool may_list, muc_listing *listing)
{
    const muc_keras_model *model = im->model;

    MUC_TRY(list_calls(im, im->model, listing));
    if (!listing->lacks)
        return MUC_OK;
    if (!may_list)
        return muc_listing_refuse(im->ctx, model->file, listing);
    MUC_TRY(list_ports(im, listing, model->inputs, model->input_count, false));
    return list_ports(im, listing, model->outputs, model->output_count, true);
}

/* every call of the model, and that its outputs are there */
static muc_status import_calls(muc_keras_import *im)
{
    const muc_keras_model *model = im->model;

    if (model->call_count > *im->calls_left)
        return muc_fail(im->ctx, MUC_UNSUPPORTED, model->file, MUC_NO_OFFSET,
                        "configuration: more than %d calls of layers", MOST_CALLS);
    *im->calls_left -= model->call_count;
    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, model->call_count, &im->results));
    for (uint32_t i = 0; i < model->order_count; i++)
        MUC_TRY(import_call(im, model->order[i]));
    for (uint32_t i = 0; i < model->output_count; i++)
        if (model->outputs[i].output >= im->results[model->outputs[i].call].count)
            return muc_fail(im->ctx, MUC_MALFORMED, model->file, MUC_NO_OFFSET,
                            "configuration: output %" PRIu32 " of the model is none", i);
    return MUC_OK;
}

muc_status muc_keras_import_model(muc_keras_import *im)
{
    const muc_keras_model *model = im->model;
    uint32_t calls_left = MOST_CALLS;

    im->prefix = "";
    im->calls_left = &calls_left;
    MUC_TRY(import_calls(im));
    for (uint32_t i = 0; i < model->output_count; i++) {
        muc_keras_source source = model->outputs[i];

        MUC_TRY(
            muc_graph_add_output(im->ctx, im->graph, im->results[source.call].ids[source.output]));
    }
    return MUC_OK;
}
