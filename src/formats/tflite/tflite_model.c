/* tflite_model.c - reads the tables of a TFLite file into plain structures. muc_flat_verify has
 * proven the bytes before. */
#include "formats/tflite/tflite_model.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { RESOURCE = 13 };
enum { MODEL_VERSION = 3, MAX_ITEMS = 65536, MAX_NAME = 1024, PLACEHOLDER = 127, CUSTOM = 32 };

typedef struct reader {
    muc_context *ctx;
    muc_bytes file;
    muc_arena *arena;
    muc_flat model, graph;
    uint32_t tensor_count;
} reader;

#define REFUSE(r, status, at, ...) muc_fail((r)->ctx, status, (r)->file.name, (at), __VA_ARGS__)

static const char *const operator_names[] = {
#define TFLITE_NAME(number, name) [number] = #name,
#include "formats/tflite/tflite_ops.def"
};

const char *muc_tflite_operator_name(uint32_t code)
{
    return code < MUC_COUNT(operator_names) ? operator_names[code] : NULL;
}

/* TFLite's TensorType to ours; the rest have a name only */
static const struct type_row {
    const char *name;
    bool known;
    muc_dtype dtype;
} types[] = {
    { "FLOAT32", true, MUC_F32 }, { "FLOAT16", true, MUC_F16 },  { "INT32", true, MUC_I32 },
    { "UINT8", true, MUC_U8 },    { "INT64", true, MUC_I64 },    { "STRING", false, MUC_F32 },
    { "BOOL", true, MUC_BOOL },   { "INT16", true, MUC_I16 },    { "COMPLEX64", false, MUC_F32 },
    { "INT8", true, MUC_I8 },     { "FLOAT64", true, MUC_F64 },  { "COMPLEX128", false, MUC_F32 },
    { "UINT64", true, MUC_U64 },  { "RESOURCE", true, MUC_I32 }, { "VARIANT", false, MUC_F32 },
    { "UINT32", true, MUC_U32 },  { "UINT16", true, MUC_U16 },   { "INT4", false, MUC_F32 },
};

/* at most MAX_ITEMS of a vector, which is what graphs hold */
static muc_status count_of(const reader *r, muc_flat table, muc_flat_field field, const char *what,
                           uint32_t *out)
{
    *out = muc_flat_count(table, field);
    return *out <= MAX_ITEMS ? MUC_OK
                             : REFUSE(r, MUC_UNSUPPORTED, table.at, "%" PRIu32 " %s, at most %d",
                                      *out, what, MAX_ITEMS);
}

static muc_status read_string(const reader *r, muc_flat table, muc_flat_field field,
                              const char **out)
{
    uint32_t length = muc_flat_count(table, field);
    const uint8_t *text = muc_flat_data(table, field);

    if (length > MAX_NAME)
        return REFUSE(r, MUC_UNSUPPORTED, table.at, "a name of %" PRIu32 " bytes, at most %d",
                      length, MAX_NAME);
    if (length && memchr(text, 0, length))
        return REFUSE(r, MUC_MALFORMED, table.at, "a name with a NUL inside");
    return muc_arena_string(r->ctx, r->arena, length ? (const char *)text : "", length, out);
}

/* ---- tensors ---- */

static muc_status read_shape(const reader *r, muc_flat table, muc_tflite_tensor *tensor)
{
    uint32_t signature = muc_flat_count(table, MUC_FLAT_TENSOR_shape_signature);

    tensor->rank = muc_flat_count(table, MUC_FLAT_TENSOR_shape);
    if (tensor->rank > MUC_GRAPH_MAX_RANK)
        return REFUSE(r, MUC_UNSUPPORTED, table.at,
                      "tensor '%s' has %" PRIu32 " dimensions, at most %d", tensor->name,
                      tensor->rank, MUC_GRAPH_MAX_RANK);
    if (signature && signature != tensor->rank)
        return REFUSE(r, MUC_MALFORMED, table.at,
                      "tensor '%s' has %" PRIu32 " dimensions, its shape_signature %" PRIu32,
                      tensor->name, tensor->rank, signature);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        int64_t dim = muc_flat_integer_of(table, MUC_FLAT_TENSOR_shape, i);

        if (dim < 0)
            return REFUSE(r, MUC_MALFORMED, table.at,
                          "tensor '%s': dimension %" PRIu32 " is %" PRId64, tensor->name, i, dim);
        tensor->dims[i] = (uint32_t)dim;
        if (signature && muc_flat_integer_of(table, MUC_FLAT_TENSOR_shape_signature, i) < 0)
            tensor->open |= 1u << i;
    }
    return MUC_OK;
}

static muc_status read_zero_points(const reader *r, muc_flat q, const muc_tflite_tensor *tensor,
                                   uint32_t count, const int32_t **out)
{
    int32_t *zero_points;

    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, count, &zero_points));
    for (uint32_t i = 0; i < count; i++) {
        int64_t value = muc_flat_count(q, MUC_FLAT_QUANTIZATION_zero_point)
                            ? muc_flat_integer_of(q, MUC_FLAT_QUANTIZATION_zero_point, i)
                            : 0;

        if (value < INT16_MIN || value > INT16_MAX)
            return REFUSE(r, MUC_MALFORMED, q.at, "tensor '%s': zero point %" PRId64, tensor->name,
                          value);
        zero_points[i] = (int32_t)value;
    }
    *out = zero_points;
    return MUC_OK;
}

static muc_status read_scales(const reader *r, muc_flat q, const muc_tflite_tensor *tensor,
                              uint32_t count, const float **out)
{
    float *scales;

    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, count, &scales));
    for (uint32_t i = 0; i < count; i++) {
        scales[i] = muc_flat_real_of(q, MUC_FLAT_QUANTIZATION_scale, i);
        if (!(isfinite(scales[i]) && scales[i] >= 0))
            return REFUSE(r, MUC_MALFORMED, q.at, "tensor '%s': scale %g", tensor->name,
                          (double)scales[i]);
    }
    *out = scales;
    return MUC_OK;
}

static muc_status read_quantization(const reader *r, muc_flat table, muc_tflite_tensor *tensor)
{
    muc_flat q = muc_flat_table_at(table, MUC_FLAT_TENSOR_quantization);
    uint32_t count = muc_flat_count(q, MUC_FLAT_QUANTIZATION_scale);
    uint32_t zeros = muc_flat_count(q, MUC_FLAT_QUANTIZATION_zero_point);
    int64_t axis = muc_flat_integer(q, MUC_FLAT_QUANTIZATION_dimension);

    if (muc_flat_integer(q, MUC_FLAT_QUANTIZATION_details_type) != 0)
        return REFUSE(r, MUC_UNSUPPORTED, q.at, "tensor '%s': a custom quantization", tensor->name);
    if (count == 0 || tensor->dtype == MUC_F32)
        return MUC_OK;
    if (tensor->rank == 1) /* converters gave biases the dimension of their weights */
        axis = 0;
    if (zeros != 0 && zeros != count)
        return REFUSE(r, MUC_MALFORMED, q.at,
                      "tensor '%s': %" PRIu32 " scales, %" PRIu32 " zero points", tensor->name,
                      count, zeros);
    if (count > 1 && (axis < 0 || axis >= tensor->rank || tensor->dims[axis] != count))
        return REFUSE(r, MUC_MALFORMED, q.at,
                      "tensor '%s': %" PRIu32 " scales along dimension %" PRId64
                      ", which has not as many elements",
                      tensor->name, count, axis);
    tensor->quantization.count = count;
    tensor->quantization.axis = count > 1 ? (uint32_t)axis : 0;
    MUC_TRY(read_scales(r, q, tensor, count, &tensor->quantization.scales));
    return read_zero_points(r, q, tensor, count, &tensor->quantization.zero_points);
}

/* inside the flatbuffer, or beside it in the file */
static muc_status buffer_bytes(const reader *r, muc_flat buffer, const char *name,
                               const uint8_t **data, uint64_t *bytes)
{
    uint64_t offset = muc_flat_unsigned(buffer, MUC_FLAT_BUFFER_offset);

    *bytes = muc_flat_count(buffer, MUC_FLAT_BUFFER_data);
    *data = *bytes ? muc_flat_data(buffer, MUC_FLAT_BUFFER_data) : NULL;
    if (offset <= 1)
        return MUC_OK;
    *bytes = muc_flat_unsigned(buffer, MUC_FLAT_BUFFER_size);
    if (offset > r->file.size || *bytes > r->file.size - offset)
        return REFUSE(r, MUC_MALFORMED, buffer.at,
                      "tensor '%s': %" PRIu64 " bytes at %" PRIu64 " are not in the file", name,
                      *bytes, offset);
    *data = *bytes ? r->file.data + offset : NULL;
    return MUC_OK;
}

static muc_status read_data(const reader *r, muc_flat table, muc_tflite_tensor *tensor)
{
    uint32_t buffers = muc_flat_count(r->model, MUC_FLAT_MODEL_buffers);
    int64_t index = muc_flat_integer(table, MUC_FLAT_TENSOR_buffer);
    uint64_t dims[MUC_GRAPH_MAX_RANK], elements, bytes;

    for (uint32_t i = 0; i < tensor->rank; i++)
        dims[i] = tensor->dims[i];
    if (!muc_dtype_measure(tensor->dtype, tensor->rank, dims, &elements, &bytes))
        return REFUSE(r, MUC_MALFORMED, table.at, "tensor '%s' has no size in bytes", tensor->name);
    if (index == 0)
        return MUC_OK;
    if (index >= buffers)
        return REFUSE(r, MUC_MALFORMED, table.at, "tensor '%s': buffer %" PRId64 " of %" PRIu32,
                      tensor->name, index, buffers);
    MUC_TRY(buffer_bytes(r, muc_flat_table_of(r->model, MUC_FLAT_MODEL_buffers, (uint32_t)index),
                         tensor->name, &tensor->data, &tensor->bytes));
    if (tensor->data && tensor->bytes != bytes)
        return REFUSE(r, MUC_MALFORMED, table.at,
                      "tensor '%s': its shape asks for %" PRIu64 " bytes, its buffer has %" PRIu64,
                      tensor->name, bytes, tensor->bytes);
    return MUC_OK;
}

static muc_status read_tensor(const reader *r, muc_flat table, muc_tflite_tensor *tensor)
{
    int64_t type = muc_flat_integer(table, MUC_FLAT_TENSOR_type);

    MUC_TRY(read_string(r, table, MUC_FLAT_TENSOR_name, &tensor->name));
    if (type < 0 || (size_t)type >= MUC_COUNT(types) || !types[type].known)
        return REFUSE(r, MUC_UNSUPPORTED, table.at, "tensor '%s' is of type %" PRId64 " (%s)",
                      tensor->name, type,
                      type >= 0 && (size_t)type < MUC_COUNT(types) ? types[type].name : "unknown");
    tensor->dtype = types[type].dtype;
    if (muc_flat_table_at(table, MUC_FLAT_TENSOR_sparsity).data)
        return REFUSE(r, MUC_UNSUPPORTED, table.at, "tensor '%s' is sparse", tensor->name);
    tensor->is_resource = type == RESOURCE;
    tensor->is_variable = muc_flat_integer(table, MUC_FLAT_TENSOR_is_variable) != 0;
    MUC_TRY(read_shape(r, table, tensor));
    MUC_TRY(read_quantization(r, table, tensor));
    MUC_TRY(read_data(r, table, tensor));
    if ((tensor->is_variable || tensor->is_resource) && tensor->data)
        return REFUSE(r, MUC_MALFORMED, table.at, "tensor '%s' is a %s with data", tensor->name,
                      tensor->is_variable ? "variable" : "resource");
    return MUC_OK;
}

static muc_status read_tensors(reader *r, muc_tflite_model *model)
{
    muc_tflite_tensor *tensors;

    MUC_TRY(count_of(r, r->graph, MUC_FLAT_SUBGRAPH_tensors, "tensors", &model->tensor_count));
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, model->tensor_count, &tensors));
    for (uint32_t i = 0; i < model->tensor_count; i++)
        MUC_TRY(
            read_tensor(r, muc_flat_table_of(r->graph, MUC_FLAT_SUBGRAPH_tensors, i), &tensors[i]));
    model->tensors = tensors;
    r->tensor_count = model->tensor_count;
    return MUC_OK;
}

/* ---- operators ---- */

/* a vector of tensors, copied; least is MUC_TFLITE_NONE where one may be missing */
static muc_status read_indices(const reader *r, muc_flat table, muc_flat_field field, int64_t least,
                               const int32_t **out, uint32_t *count)
{
    int32_t *indices;

    MUC_TRY(count_of(r, table, field, "tensors in a list", count));
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, *count, &indices));
    for (uint32_t i = 0; i < *count; i++) {
        int64_t index = muc_flat_integer_of(table, field, i);

        if (index < least || index >= r->tensor_count)
            return REFUSE(r, MUC_MALFORMED, table.at, "tensor %" PRId64 " of %" PRIu32, index,
                          r->tensor_count);
        indices[i] = (int32_t)index;
    }
    *out = indices;
    return MUC_OK;
}

/* the larger of the code's old field of a byte and its new one */
static muc_status read_code(const reader *r, muc_flat table, muc_tflite_operator *op)
{
    int64_t old = muc_flat_integer(table, MUC_FLAT_OPERATOR_CODE_old_code);
    int64_t code = muc_flat_integer(table, MUC_FLAT_OPERATOR_CODE_code);
    const char *custom;

    code = old > code ? old : code;
    MUC_TRY(read_string(r, table, MUC_FLAT_OPERATOR_CODE_custom, &custom));
    if (code == CUSTOM) {
        op->name = custom;
    } else if (code < 0 || code > UINT16_MAX || !muc_tflite_operator_name((uint32_t)code)) {
        MUC_TRY(muc_arena_format(r->ctx, r->arena, &op->name, "operator %" PRId64, code));
        code = CUSTOM;
    } else {
        op->name = muc_tflite_operator_name((uint32_t)code);
    }
    op->code = (uint32_t)code;
    op->version = (int32_t)muc_flat_integer(table, MUC_FLAT_OPERATOR_CODE_version);
    return MUC_OK;
}

static muc_status read_operator(const reader *r, muc_flat table, muc_tflite_operator *op)
{
    uint32_t codes = muc_flat_count(r->model, MUC_FLAT_MODEL_operator_codes);
    int64_t index = muc_flat_integer(table, MUC_FLAT_OPERATOR_opcode_index);

    if (index >= codes)
        return REFUSE(r, MUC_MALFORMED, table.at, "operator code %" PRId64 " of %" PRIu32, index,
                      codes);
    op->table = table;
    MUC_TRY(read_code(
        r, muc_flat_table_of(r->model, MUC_FLAT_MODEL_operator_codes, (uint32_t)index), op));
    MUC_TRY(read_indices(r, table, MUC_FLAT_OPERATOR_inputs, MUC_TFLITE_NONE, &op->inputs,
                         &op->input_count));
    return read_indices(r, table, MUC_FLAT_OPERATOR_outputs, 0, &op->outputs, &op->output_count);
}

static muc_status read_operators(const reader *r, muc_tflite_model *model)
{
    muc_tflite_operator *operators;

    MUC_TRY(
        count_of(r, r->graph, MUC_FLAT_SUBGRAPH_operators, "operators", &model->operator_count));
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, model->operator_count, &operators));
    for (uint32_t i = 0; i < model->operator_count; i++)
        MUC_TRY(read_operator(r, muc_flat_table_of(r->graph, MUC_FLAT_SUBGRAPH_operators, i),
                              &operators[i]));
    model->operators = operators;
    return MUC_OK;
}

/* what the network's user gives or takes is not a variable of its own */
static muc_status check_port(const reader *r, const muc_tflite_model *model, int32_t tensor,
                             const char *what)
{
    const muc_tflite_tensor *t = &model->tensors[tensor];

    if (t->is_variable || t->is_resource)
        return REFUSE(r, MUC_UNSUPPORTED, r->graph.at, "the %s '%s' is a %s", what, t->name,
                      t->is_variable ? "variable" : "resource");
    return MUC_OK;
}

/* every tensor that is read was given, is a constant, or was computed before, by one operator */
static muc_status check_order(const reader *r, const muc_tflite_model *model)
{
    bool *known;

    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, model->tensor_count, &known));
    for (uint32_t i = 0; i < model->tensor_count; i++)
        known[i] = model->tensors[i].data != NULL || model->tensors[i].is_variable;
    for (uint32_t i = 0; i < model->input_count; i++) {
        MUC_TRY(check_port(r, model, model->inputs[i], "input"));
        known[model->inputs[i]] = true;
    }
    for (uint32_t n = 0; n < model->operator_count; n++) {
        const muc_tflite_operator *op = &model->operators[n];

        for (uint32_t i = 0; i < op->input_count; i++)
            if (op->inputs[i] != MUC_TFLITE_NONE && !known[op->inputs[i]])
                return REFUSE(r, MUC_MALFORMED, op->table.at,
                              "operator %" PRIu32 " (%s) reads tensor '%s' before it is computed",
                              n, op->name, model->tensors[op->inputs[i]].name);
        for (uint32_t i = 0; i < op->output_count; i++) {
            if (known[op->outputs[i]])
                return REFUSE(r, MUC_MALFORMED, op->table.at,
                              "operator %" PRIu32 " (%s) computes tensor '%s' again", n, op->name,
                              model->tensors[op->outputs[i]].name);
            known[op->outputs[i]] = true;
        }
    }
    for (uint32_t i = 0; i < model->output_count; i++) {
        MUC_TRY(check_port(r, model, model->outputs[i], "output"));
        if (!known[model->outputs[i]])
            return REFUSE(r, MUC_MALFORMED, r->graph.at, "the output '%s' is never computed",
                          model->tensors[model->outputs[i]].name);
    }
    return MUC_OK;
}

/* ---- the model ---- */

/* subgraph 0 is the network; another one may be there, but not be asked for by name */
static muc_status find_graph(reader *r)
{
    uint32_t subgraphs = muc_flat_count(r->model, MUC_FLAT_MODEL_subgraphs);
    int64_t version = muc_flat_integer(r->model, MUC_FLAT_MODEL_version);

    if (version != MODEL_VERSION)
        return REFUSE(r, MUC_UNSUPPORTED, r->model.at, "schema version %" PRId64 ", not %d",
                      version, MODEL_VERSION);
    if (subgraphs == 0)
        return REFUSE(r, MUC_MALFORMED, r->model.at, "a model without a subgraph");
    for (uint32_t i = 0; i < muc_flat_count(r->model, MUC_FLAT_MODEL_signatures); i++) {
        muc_flat signature = muc_flat_table_of(r->model, MUC_FLAT_MODEL_signatures, i);
        const char *key;

        MUC_TRY(read_string(r, signature, MUC_FLAT_SIGNATURE_key, &key));
        if (muc_flat_integer(signature, MUC_FLAT_SIGNATURE_subgraph) != 0)
            return REFUSE(r, MUC_UNSUPPORTED, signature.at,
                          "signature '%s' runs another subgraph than the first", key);
    }
    r->graph = muc_flat_table_of(r->model, MUC_FLAT_MODEL_subgraphs, 0);
    return MUC_OK;
}

/* the subgraph that r->graph is */
static muc_status read_graph(reader *r, muc_tflite_model *out)
{
    out->file = r->file;
    out->root = r->model;
    MUC_TRY(read_tensors(r, out));
    MUC_TRY(
        read_indices(r, r->graph, MUC_FLAT_SUBGRAPH_inputs, 0, &out->inputs, &out->input_count));
    MUC_TRY(
        read_indices(r, r->graph, MUC_FLAT_SUBGRAPH_outputs, 0, &out->outputs, &out->output_count));
    MUC_TRY(read_operators(r, out));
    return check_order(r, out);
}

muc_status muc_tflite_read(muc_context *ctx, muc_bytes file, muc_arena *arena,
                           muc_tflite_model *out)
{
    reader r = { .ctx = ctx, .file = file, .arena = arena };

    memset(out, 0, sizeof(*out));
    MUC_TRY(muc_flat_verify(ctx, file, &r.model));
    MUC_TRY(find_graph(&r));
    return read_graph(&r, out);
}

muc_status muc_tflite_read_subgraph(muc_context *ctx, const muc_tflite_model *of, int64_t index,
                                    muc_arena *arena, muc_tflite_model *out)
{
    reader r = { .ctx = ctx, .file = of->file, .arena = arena, .model = of->root };

    memset(out, 0, sizeof(*out));
    if (index < 0 || index >= muc_flat_count(r.model, MUC_FLAT_MODEL_subgraphs))
        return REFUSE(&r, MUC_MALFORMED, r.model.at, "there is no subgraph %" PRId64, index);
    r.graph = muc_flat_table_of(r.model, MUC_FLAT_MODEL_subgraphs, (uint32_t)index);
    return read_graph(&r, out);
}

muc_status muc_tflite_text(muc_context *ctx, const muc_tflite_model *model, muc_flat table,
                           muc_flat_field field, muc_arena *arena, const char **out)
{
    const reader r = { .ctx = ctx, .file = model->file, .arena = arena, .model = model->root };

    return read_string(&r, table, field, out);
}
