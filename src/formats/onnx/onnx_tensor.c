/* onnx_tensor.c - reads a TensorProto: raw bytes, lists of numbers, or a range of another file. */
#include "formats/onnx/onnx_tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/onnx/decode.h"

typedef enum onnx_field { FLOATS, DOUBLES, INT32S, INT64S, UINT64S } onnx_field;

static const struct row {
    int32_t number;
    const char *name;
    muc_dtype dtype;
    onnx_field field;
} types[] = {
#define ONNX_TYPE(number, dtype, field) \
    { ONNX__TENSOR_PROTO__DATA_TYPE__##number, #number, MUC_##dtype, field },
#include "formats/onnx/onnx_types.def"
#undef ONNX_TYPE
};

static const struct row *find_type(int32_t number)
{
    for (size_t i = 0; i < MUC_COUNT(types); i++)
        if (types[i].number == number)
            return &types[i];
    return NULL;
}

const char *muc_onnx_type_name(int32_t number)
{
    const struct row *row = find_type(number);
    const ProtobufCEnumValue *named =
        protobuf_c_enum_descriptor_get_value(&onnx__tensor_proto__data_type__descriptor, number);

    return row ? muc_dtype_get(row->dtype)->name : named ? named->name : "unknown";
}

muc_status muc_onnx_dtype(muc_context *ctx, const char *path, const char *what, int32_t number,
                          muc_dtype *out)
{
    const struct row *row = find_type(number);

    if (row) {
        *out = row->dtype;
        return MUC_OK;
    }
    return muc_fail(ctx, MUC_UNSUPPORTED, path, MUC_NO_OFFSET,
                    "'%s' is of type %s (%d), which muc's graphs do not have", what,
                    muc_onnx_type_name(number), number);
}

typedef struct reading {
    muc_context *ctx;
    const muc_onnx_store *store;
    const Onnx__TensorProto *tensor;
    const struct row *type;
    muc_tensor_view *view;
} reading;

#define FAIL(r, status, format, ...) \
    muc_fail((r)->ctx, status, (r)->store->path, MUC_NO_OFFSET, "tensor '%s': " format, \
             (r)->view->name, __VA_ARGS__)

static muc_status set_shape(const reading *r)
{
    muc_tensor_view *view = r->view;

    if (r->tensor->n_dims > MUC_MAX_RANK)
        return FAIL(r, MUC_UNSUPPORTED, "%zu dimensions, at most %d", r->tensor->n_dims,
                    MUC_MAX_RANK);
    view->rank = (uint32_t)r->tensor->n_dims;
    for (uint32_t i = 0; i < view->rank; i++) {
        if (r->tensor->dims[i] < 0)
            return FAIL(r, MUC_MALFORMED, "dimension %u is %" PRId64, i, r->tensor->dims[i]);
        view->dims[i] = (uint64_t)r->tensor->dims[i];
    }
    return muc_tensor_measure(r->ctx, view);
}

/* ---- lists of numbers ---- */

static size_t list_length(const reading *r)
{
    const Onnx__TensorProto *t = r->tensor;

    switch (r->type->field) {
    case FLOATS:
        return t->n_float_data;
    case DOUBLES:
        return t->n_double_data;
    case INT32S:
        return t->n_int32_data;
    case INT64S:
        return t->n_int64_data;
    case UINT64S:
        return t->n_uint64_data;
    }
    return 0;
}

/* the bits of number i; those beyond the element's size are a sign's, or an error */
static uint64_t list_bits(const reading *r, size_t i)
{
    const Onnx__TensorProto *t = r->tensor;
    uint64_t bits = 0;
    uint32_t half;

    switch (r->type->field) {
    case FLOATS:
        memcpy(&half, &t->float_data[i], sizeof(half));
        return half;
    case DOUBLES:
        memcpy(&bits, &t->double_data[i], sizeof(bits));
        return bits;
    case INT32S:
        return (uint64_t)(int64_t)t->int32_data[i];
    case INT64S:
        return (uint64_t)t->int64_data[i];
    case UINT64S:
        return t->uint64_data[i];
    }
    return 0;
}

/* true if the number is one of the element's type; f16 and bf16 are bit patterns */
static bool bits_fit(muc_dtype dtype, uint64_t bits)
{
    unsigned size = muc_dtype_get(dtype)->block_bytes * 8;
    uint64_t high;

    if (dtype == MUC_BOOL)
        return bits <= 1;
    if (size == 64 || dtype == MUC_F32)
        return true;
    if (dtype == MUC_I8 || dtype == MUC_I16 || dtype == MUC_I32) {
        high = bits >> (size - 1);
        return high == 0 || high == UINT64_MAX >> (size - 1);
    }
    return bits >> size == 0;
}

static muc_status take_list(const reading *r)
{
    uint32_t size = muc_dtype_get(r->view->dtype)->block_bytes;
    uint8_t *out;

    if (list_length(r) != r->view->elements)
        return FAIL(r, MUC_MALFORMED, "%zu numbers of type %s, the shape asks for %" PRIu64,
                    list_length(r), r->type->name, r->view->elements);
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->store->arena, (size_t)r->view->bytes, &out));
    r->view->data = out;
    for (size_t i = 0; i < r->view->elements; i++, out += size) {
        uint64_t bits = list_bits(r, i);

        if (!bits_fit(r->view->dtype, bits))
            return FAIL(r, MUC_MALFORMED, "element %zu, %" PRId64 ", is not a number of type %s", i,
                        (int64_t)bits, r->type->name);
        for (uint32_t byte = 0; byte < size; byte++)
            out[byte] = (uint8_t)(bits >> 8 * byte);
    }
    return MUC_OK;
}

/* ---- external data ---- */

static muc_status parse_number(const reading *r, const char *key, const char *text, uint64_t *out)
{
    char *end;

    if (text[0] >= '0' && text[0] <= '9' && strlen(text) < 19) {
        *out = strtoull(text, &end, 10);
        if (*end == '\0')
            return MUC_OK;
    }
    return FAIL(r, MUC_MALFORMED, "the %s of its external data is '%.40s'", key, text);
}

typedef struct place {
    const char *location;
    uint64_t offset, length;
    bool has_length;
} place;

static muc_status find_place(const reading *r, place *out)
{
    unsigned seen = 0;

    for (size_t i = 0; i < r->tensor->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = r->tensor->external_data[i];
        const char *key = entry->key ? entry->key : "", *value = entry->value ? entry->value : "";
        unsigned bit = 0;

        if (strcmp(key, "location") == 0) {
            bit = 1;
            out->location = value;
        } else if (strcmp(key, "offset") == 0) {
            bit = 2;
            MUC_TRY(parse_number(r, key, value, &out->offset));
        } else if (strcmp(key, "length") == 0) {
            bit = 4;
            out->has_length = true;
            MUC_TRY(parse_number(r, key, value, &out->length));
        }
        if (seen & bit)
            return FAIL(r, MUC_MALFORMED, "the %s of its external data is there twice", key);
        seen |= bit;
    }
    return out->location ? MUC_OK
                         : FAIL(r, MUC_MALFORMED, "its external data has no %s", "location");
}

static muc_status take_external(const reading *r)
{
    place p = { 0 };
    muc_bytes file;

    MUC_TRY(find_place(r, &p));
    if (!r->store->folder)
        return FAIL(r, MUC_UNSUPPORTED, "its data is in '%s', and this model has no folder",
                    p.location);
    if (p.has_length && p.length != r->view->bytes)
        return FAIL(r, MUC_MALFORMED,
                    "its external data has %" PRIu64 " bytes, the shape asks for %" PRIu64,
                    p.length, r->view->bytes);
    MUC_TRY(muc_mapped_open_beneath(r->ctx, r->store->arena, r->store->files, r->store->folder,
                                    p.location, r->store->path, &file));
    if (p.offset > file.size || r->view->bytes > file.size - p.offset)
        return FAIL(r, MUC_MALFORMED,
                    "its data, %" PRIu64 " bytes at %" PRIu64 ", is beyond the %zu bytes of '%s'",
                    r->view->bytes, p.offset, file.size, file.name);
    r->view->data = file.data + p.offset;
    r->view->file = file.name;
    r->view->offset = p.offset;
    return MUC_OK;
}

static muc_status check_bools(const reading *r)
{
    for (uint64_t i = 0; r->view->dtype == MUC_BOOL && i < r->view->bytes; i++)
        if (r->view->data[i] > 1)
            return FAIL(r, MUC_MALFORMED, "element %" PRIu64 " is %u, expected 0 or 1", i,
                        r->view->data[i]);
    return MUC_OK;
}

static muc_status take_data(const reading *r)
{
    const Onnx__TensorProto *tensor = r->tensor;

    if (tensor->segment)
        return FAIL(r, MUC_UNSUPPORTED, "it is a %s of a larger tensor", "segment");
    if (tensor->has_data_location &&
        tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return take_external(r);
    if (!tensor->has_raw_data)
        return take_list(r);
    if (tensor->raw_data.len != r->view->bytes)
        return FAIL(r, MUC_MALFORMED, "%zu bytes, the shape asks for %" PRIu64,
                    tensor->raw_data.len, r->view->bytes);
    /* protobuf-c leaves NULL where there are no bytes */
    r->view->data = tensor->raw_data.data ? tensor->raw_data.data : (const uint8_t *)"";
    return MUC_OK;
}

muc_status muc_onnx_tensor(muc_context *ctx, const muc_onnx_store *store,
                           const Onnx__TensorProto *tensor, muc_tensor_view *out)
{
    reading r = { ctx, store, tensor, find_type(tensor->data_type), out };

    *out = (muc_tensor_view){ .name = tensor->name ? tensor->name : "",
                              .file = store->path,
                              .offset = MUC_NO_OFFSET };
    MUC_TRY(muc_onnx_dtype(ctx, store->path, out->name, tensor->data_type, &out->dtype));
    MUC_TRY(set_shape(&r));
    MUC_TRY(take_data(&r));
    return check_bools(&r);
}

muc_status muc_onnx_read_tensor(muc_context *ctx, muc_arena *arena, muc_bytes file,
                                muc_tensor_view *out)
{
    const muc_onnx_store store = { .path = file.name, .arena = arena };
    ProtobufCMessage *message;

    MUC_TRY(muc_onnx_decode(ctx, arena, file, &onnx__tensor_proto__descriptor, &message));
    return muc_onnx_tensor(ctx, &store, (const Onnx__TensorProto *)message, out);
}
