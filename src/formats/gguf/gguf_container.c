/* gguf_container.c - reads the container of GGUF versions 2 and 3, little-endian.
 *
 *   "GGUF", u32 version, u64 tensors, u64 values
 *   values:  string key, u32 type, value; an array is u32 element type, u64 count, elements
 *   tensors: string name, u32 rank, u64 dimensions innermost first, u32 type, u64 offset
 *   zeros to a multiple of general.alignment (32), then the tensors' bytes, each so padded
 *
 * A string is a u64 length and that many bytes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "formats/format.h"
#include "formats/gguf/gguf.h"

enum {
    MAX_VALUES = 65536,
    MIN_VALUE_BYTES = 8 + 4 + 1,
    MIN_TENSOR_BYTES = 8 + 4 + 4 + 8,
    MAX_TEMPLATE = 1 << 20,
    DEFAULT_ALIGNMENT = 32,
    MAX_RANK = 4,
};

static const char template_prefix[] = "tokenizer.chat_template";

static bool value_type(uint32_t number, muc_gguf_type *type, uint32_t *bytes)
{
    switch (number) {
#define MUC_GGUF_VALUE(id, number, size) \
    case number: \
        *type = MUC_GGUF_##id; \
        *bytes = size; \
        return true;
#include "formats/gguf/gguf_types.def"
#undef MUC_GGUF_VALUE
    default:
        return false;
    }
}

static muc_status read_string(muc_reader *in, const char *what, uint64_t max, muc_string_view *out)
{
    const uint8_t *span;
    uint64_t size;

    MUC_TRY(muc_read_u64(in, what, &size));
    if (size > max)
        return muc_read_fail(in, "%s is a string of %llu bytes, at most %llu", what,
                             (unsigned long long)size, (unsigned long long)max);
    MUC_TRY(muc_read_span(in, size, what, &span));
    *out = (muc_string_view){ (const char *)span, (size_t)size };
    return MUC_OK;
}

/* A name: not empty, no NUL inside, NUL-terminated in the arena. */
static muc_status read_name(muc_reader *in, const muc_gguf *gguf, const char *what,
                            const char **out)
{
    muc_string_view text;

    MUC_TRY(read_string(in, what, MUC_MAX_STRING - 1, &text));
    if (text.size == 0 || memchr(text.data, 0, text.size))
        return muc_read_fail(in, "%s is empty or holds a NUL", what);
    return muc_arena_string(gguf->ctx, gguf->arena, text.data, text.size, out);
}

static muc_status read_elements(muc_reader *in, muc_gguf_value *value, muc_gguf_type type,
                                uint32_t bytes)
{
    bool is_template = strncmp(value->key, template_prefix, sizeof(template_prefix) - 1) == 0;
    uint64_t size;
    muc_string_view text;

    value->offset = in->at;
    value->data = in->bytes.data + in->at;
    if (type == MUC_GGUF_STRING) {
        for (uint64_t i = 0; i < value->count; i++)
            MUC_TRY(
                read_string(in, value->key, is_template ? MAX_TEMPLATE : MUC_MAX_STRING, &text));
        return MUC_OK;
    }
    if (!muc_mul_u64(value->count, bytes, &size))
        size = UINT64_MAX;
    MUC_TRY(muc_read_span(in, size, value->key, &value->data));
    for (uint64_t i = 0; type == MUC_GGUF_BOOL && i < value->count; i++)
        if (value->data[i] > 1)
            return muc_read_fail(in, "'%s': a bool is %u", value->key, value->data[i]);
    return MUC_OK;
}

static muc_status read_value(muc_reader *in, const muc_gguf *gguf, muc_gguf_value *value)
{
    uint32_t number, bytes;

    MUC_TRY(read_name(in, gguf, "a key", &value->key));
    MUC_TRY(muc_read_u32(in, value->key, &number));
    if (!value_type(number, &value->type, &bytes))
        return muc_read_fail(in, "'%s' has unknown value type %u", value->key, number);
    value->element = value->type;
    value->count = 1;
    if (value->type == MUC_GGUF_ARRAY) {
        MUC_TRY(muc_read_u32(in, value->key, &number));
        MUC_TRY(muc_read_u64(in, value->key, &value->count));
        if (!value_type(number, &value->element, &bytes) || value->element == MUC_GGUF_ARRAY)
            return muc_read_fail(in, "'%s' is an array of type %u", value->key, number);
    }
    return read_elements(in, value, value->element, bytes);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const muc_gguf_value *)a)->key, ((const muc_gguf_value *)b)->key);
}

/* total, so that of two equal keys the later is blamed everywhere */
static int by_key_and_place(const void *a, const void *b)
{
    const muc_gguf_value *x = a, *y = b;
    int order = by_key(a, b);

    return order ? order : (x->offset > y->offset) - (x->offset < y->offset);
}

static muc_status read_values(muc_reader *in, muc_gguf *gguf, uint64_t count)
{
    if (count > MAX_VALUES || count > muc_reader_left(in) / MIN_VALUE_BYTES)
        return muc_read_fail(in, "%llu metadata values in a file of %zu bytes",
                             (unsigned long long)count, in->bytes.size);
    MUC_TRY(MUC_ARENA_NEW(gguf->ctx, gguf->arena, (size_t)count, &gguf->values));
    gguf->value_count = (size_t)count;
    for (size_t i = 0; i < gguf->value_count; i++)
        MUC_TRY(read_value(in, gguf, &gguf->values[i]));
    qsort(gguf->values, gguf->value_count, sizeof(*gguf->values), by_key_and_place);
    for (size_t i = 1; i < gguf->value_count; i++)
        if (by_key(&gguf->values[i - 1], &gguf->values[i]) == 0)
            return muc_fail(gguf->ctx, MUC_MALFORMED, gguf->bytes.name, gguf->values[i].offset,
                            "the key '%s' appears twice", gguf->values[i].key);
    return MUC_OK;
}

static muc_status tensor_type(const muc_reader *in, const char *name, uint32_t number,
                              muc_dtype *out)
{
    const char *other = NULL;

    switch (number) {
#define MUC_GGUF_TENSOR(number, dtype) \
    case number: \
        *out = MUC_##dtype; \
        return MUC_OK;
#define MUC_GGUF_OTHER(number, name) \
    case number: \
        other = name; \
        break;
#include "formats/gguf/gguf_types.def"
#undef MUC_GGUF_TENSOR
#undef MUC_GGUF_OTHER
    default:
        return muc_read_fail(in, "tensor '%s' has unknown type %u", name, number);
    }
    return muc_fail(in->ctx, MUC_UNSUPPORTED, in->bytes.name, in->at,
                    "tensor '%s' has type %s, which is not implemented", name, other);
}

/* The offset stays relative to the data's start until place_tensors. */
static muc_status read_tensor(muc_reader *in, const muc_gguf *gguf, muc_tensor_view *view)
{
    uint32_t number;

    view->file = in->bytes.name;
    MUC_TRY(read_name(in, gguf, "a tensor's name", &view->name));
    MUC_TRY(muc_read_u32(in, view->name, &view->rank));
    if (view->rank < 1 || view->rank > MAX_RANK)
        return muc_read_fail(in, "tensor '%s' has %u dimensions, expected 1 to %d", view->name,
                             view->rank, MAX_RANK);
    for (uint32_t i = view->rank; i-- > 0;)
        MUC_TRY(muc_read_u64(in, view->name, &view->dims[i]));
    MUC_TRY(muc_read_u32(in, view->name, &number));
    MUC_TRY(tensor_type(in, view->name, number, &view->dtype));
    MUC_TRY(muc_read_u64(in, view->name, &view->offset));
    return muc_tensor_measure(gguf->ctx, view);
}

static muc_status read_tensors(muc_reader *in, muc_gguf *gguf, uint64_t count)
{
    if (count > MUC_MAX_TENSORS || count > muc_reader_left(in) / MIN_TENSOR_BYTES)
        return muc_read_fail(in, "%llu tensors in a file of %zu bytes", (unsigned long long)count,
                             in->bytes.size);
    MUC_TRY(MUC_ARENA_NEW(gguf->ctx, gguf->arena, (size_t)count, &gguf->tensors));
    gguf->tensor_count = (size_t)count;
    for (size_t i = 0; i < gguf->tensor_count; i++)
        MUC_TRY(read_tensor(in, gguf, &gguf->tensors[i]));
    return MUC_OK;
}

static muc_status read_alignment(const muc_gguf *gguf, uint32_t *out)
{
    const muc_gguf_value *value = muc_gguf_find(gguf, "general.alignment");

    *out = DEFAULT_ALIGNMENT;
    if (!value)
        return MUC_OK;
    if (value->type == MUC_GGUF_U32)
        *out = muc_load_u32(value->data);
    if (value->type != MUC_GGUF_U32 || *out == 0 || (*out & (*out - 1)) != 0)
        return muc_fail(gguf->ctx, MUC_MALFORMED, gguf->bytes.name, value->offset,
                        "'%s' is not a u32 power of two", value->key);
    return MUC_OK;
}

/* Tensors lie in the order of their descriptions, padded to the alignment, and fill the file; the
 * padding of the last may be left off. */
static muc_status place_tensors(muc_gguf *gguf, uint64_t header_end)
{
    uint64_t size = gguf->bytes.size, start, end = header_end, padded = header_end;
    uint32_t alignment;

    MUC_TRY(read_alignment(gguf, &alignment));
    if (!muc_align_u64(header_end, alignment, &start))
        start = UINT64_MAX;
    for (size_t i = 0; i < gguf->tensor_count; i++) {
        muc_tensor_view *view = &gguf->tensors[i];
        uint64_t at = i == 0 ? start : padded;

        if (at > size || view->bytes > size - at)
            return muc_fail(gguf->ctx, MUC_MALFORMED, gguf->bytes.name, at,
                            "tensor '%s' of %llu bytes ends beyond the file's %llu", view->name,
                            (unsigned long long)view->bytes, (unsigned long long)size);
        if (view->offset != at - start)
            return muc_fail(gguf->ctx, MUC_MALFORMED, gguf->bytes.name, at,
                            "tensor '%s' has offset %llu, expected %llu", view->name,
                            (unsigned long long)view->offset, (unsigned long long)(at - start));
        view->offset = at;
        view->data = gguf->bytes.data + at;
        end = at + view->bytes;
        if (!muc_align_u64(end, alignment, &padded))
            padded = UINT64_MAX;
    }
    if (gguf->tensor_count == 0)
        padded = start;
    if (size != end && size != padded)
        return muc_fail(gguf->ctx, MUC_MALFORMED, gguf->bytes.name, end,
                        "the data ends here, the file at %llu", (unsigned long long)size);
    return MUC_OK;
}

muc_status muc_gguf_parse(muc_context *ctx, muc_bytes bytes, muc_arena *arena, muc_gguf *out)
{
    muc_reader in = muc_reader_of(ctx, bytes);
    uint64_t tensors, values;
    const uint8_t *magic;
    uint32_t version;

    *out = (muc_gguf){ .ctx = ctx, .bytes = bytes, .arena = arena };
    MUC_TRY(muc_read_span(&in, 4, "the magic", &magic));
    if (memcmp(magic, "GGUF", 4) != 0)
        return muc_read_fail(&in, "no GGUF file");
    MUC_TRY(muc_read_u32(&in, "the version", &version));
    if (version != 2 && version != 3)
        return muc_fail(ctx, MUC_UNSUPPORTED, bytes.name, 4, "GGUF version %u%s, expected 2 or 3",
                        version, version & 0xffff ? "" : " (big-endian)");
    MUC_TRY(muc_read_u64(&in, "the number of tensors", &tensors));
    MUC_TRY(muc_read_u64(&in, "the number of values", &values));
    MUC_TRY(read_values(&in, out, values));
    MUC_TRY(read_tensors(&in, out, tensors));
    return place_tensors(out, in.at);
}

const muc_gguf_value *muc_gguf_find(const muc_gguf *gguf, const char *key)
{
    muc_gguf_value wanted = { .key = key };

    if (gguf->value_count == 0)
        return NULL;
    return bsearch(&wanted, gguf->values, gguf->value_count, sizeof(wanted), by_key);
}

static muc_status fail_value(const muc_gguf *gguf, const muc_gguf_value *value,
                             const char *expected)
{
    return muc_fail(gguf->ctx, MUC_MALFORMED, gguf->bytes.name, value->offset, "'%s' is not %s",
                    value->key, expected);
}

/* Any integer type; a negative number becomes more than INT64_MAX. */
static bool load_integer(const muc_gguf_value *value, uint64_t *out)
{
    switch (value->type) {
    case MUC_GGUF_U8:
        *out = value->data[0];
        return true;
    case MUC_GGUF_I8:
        *out = (uint64_t)(int8_t)value->data[0];
        return true;
    case MUC_GGUF_U16:
        *out = muc_load_u16(value->data);
        return true;
    case MUC_GGUF_I16:
        *out = (uint64_t)(int16_t)muc_load_u16(value->data);
        return true;
    case MUC_GGUF_U32:
        *out = muc_load_u32(value->data);
        return true;
    case MUC_GGUF_I32:
        *out = (uint64_t)(int32_t)muc_load_u32(value->data);
        return true;
    case MUC_GGUF_U64:
    case MUC_GGUF_I64:
        *out = muc_load_u64(value->data);
        return true;
    case MUC_GGUF_F32:
    case MUC_GGUF_F64:
    case MUC_GGUF_BOOL:
    case MUC_GGUF_STRING:
    case MUC_GGUF_ARRAY:
        break;
    }
    return false;
}

muc_status muc_gguf_u32_or(const muc_gguf *gguf, const char *key, uint32_t fallback, uint32_t *out)
{
    const muc_gguf_value *value = muc_gguf_find(gguf, key);
    uint64_t number = 0;

    *out = fallback;
    if (!value)
        return MUC_OK;
    if (!load_integer(value, &number) || number > UINT32_MAX)
        return fail_value(gguf, value, "an integer of 0 to 4294967295");
    *out = (uint32_t)number;
    return MUC_OK;
}

muc_status muc_gguf_double_or(const muc_gguf *gguf, const char *key, double fallback, double *out)
{
    const muc_gguf_value *value = muc_gguf_find(gguf, key);

    *out = fallback;
    if (!value)
        return MUC_OK;
    if (value->type == MUC_GGUF_F32) {
        *out = (double)muc_f32_of_bits(muc_load_u32(value->data));
    } else if (value->type == MUC_GGUF_F64) {
        uint64_t bits = muc_load_u64(value->data);

        memcpy(out, &bits, sizeof(bits));
    } else {
        return fail_value(gguf, value, "a float");
    }
    return isfinite(*out) ? MUC_OK : fail_value(gguf, value, "finite");
}

muc_status muc_gguf_bool_or(const muc_gguf *gguf, const char *key, bool fallback, bool *out)
{
    const muc_gguf_value *value = muc_gguf_find(gguf, key);

    *out = fallback;
    if (!value)
        return MUC_OK;
    if (value->type != MUC_GGUF_BOOL)
        return fail_value(gguf, value, "a bool");
    *out = value->data[0];
    return MUC_OK;
}

muc_status muc_gguf_string_or_null(const muc_gguf *gguf, const char *key, const char **out)
{
    const muc_gguf_value *value = muc_gguf_find(gguf, key);
    size_t size;

    *out = NULL;
    if (!value)
        return MUC_OK;
    if (value->type != MUC_GGUF_STRING)
        return fail_value(gguf, value, "a string");
    size = (size_t)muc_load_u64(value->data);
    if (memchr(value->data + 8, 0, size))
        return fail_value(gguf, value, "free of NULs");
    return muc_arena_string(gguf->ctx, gguf->arena, (const char *)value->data + 8, size, out);
}

muc_status muc_gguf_array_or_null(const muc_gguf *gguf, const char *key, muc_gguf_type element,
                                  const muc_gguf_value **out)
{
    const muc_gguf_value *value = muc_gguf_find(gguf, key);

    *out = value;
    if (value && (value->type != MUC_GGUF_ARRAY || value->element != element))
        return fail_value(gguf, value, "an array of the expected type");
    return MUC_OK;
}
