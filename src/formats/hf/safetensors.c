/* safetensors.c - reads safetensors: u64 header size, JSON header, then the tensors' bytes back to
 * back. */
#include "formats/hf/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "formats/format.h"
#include "formats/mistaken.h"

enum { PREFIX_BYTES = 8, MAX_HEADER_BYTES = 100 * 1000 * 1000, TENSOR_KEYS = 3, MAX_RANK = 4 };

typedef struct file {
    muc_context *ctx;
    muc_bytes bytes;
    uint64_t data_offset; /* of the first tensor's bytes */
    muc_checkpoint *checkpoint;
    size_t first; /* of this file's tensors in the checkpoint */
} file;

static bool find_dtype(const char *name, muc_dtype *out)
{
    static const struct {
        const char *name;
        muc_dtype dtype;
    } table[] = {
        { "F64", MUC_F64 },   { "F32", MUC_F32 }, { "F16", MUC_F16 }, { "BF16", MUC_BF16 },
        { "I64", MUC_I64 },   { "I32", MUC_I32 }, { "I16", MUC_I16 }, { "I8", MUC_I8 },
        { "U64", MUC_U64 },   { "U32", MUC_U32 }, { "U16", MUC_U16 }, { "U8", MUC_U8 },
        { "BOOL", MUC_BOOL },
    };

    for (size_t i = 0; i < MUC_COUNT(table); i++) {
        if (strcmp(table[i].name, name) == 0) {
            *out = table[i].dtype;
            return true;
        }
    }
    return false;
}

/* The array of at most max sizes under key; *count entries go to out. */
static muc_status read_sizes(const file *f, const char *tensor, const json_t *object,
                             const char *key, size_t max, uint64_t *out, size_t *count)
{
    const json_t *array = json_object_get(object, key);

    if (!json_is_array(array))
        return muc_fail(f->ctx, MUC_MALFORMED, f->bytes.name, PREFIX_BYTES,
                        "tensor '%s': \"%s\" is not an array", tensor, key);
    *count = json_array_size(array);
    if (*count > max)
        return muc_fail(f->ctx, MUC_UNSUPPORTED, f->bytes.name, PREFIX_BYTES,
                        "tensor '%s': \"%s\" has %zu entries, at most %zu", tensor, key, *count,
                        max);
    for (size_t i = 0; i < *count; i++) {
        const json_t *item = json_array_get(array, i);

        if (!json_is_integer(item) || json_integer_value(item) < 0)
            return muc_fail(f->ctx, MUC_MALFORMED, f->bytes.name, PREFIX_BYTES,
                            "tensor '%s': entry %zu of \"%s\" is not a size", tensor, i, key);
        out[i] = (uint64_t)json_integer_value(item);
    }
    return MUC_OK;
}

static muc_status check_range(const file *f, const muc_tensor_view *view, uint64_t begin,
                              uint64_t end)
{
    uint64_t size = f->bytes.size - f->data_offset;

    if (begin > end || end > size)
        return muc_fail(f->ctx, MUC_MALFORMED, f->bytes.name, PREFIX_BYTES,
                        "tensor '%s' lies at %llu..%llu of %llu bytes of data", view->name,
                        (unsigned long long)begin, (unsigned long long)end,
                        (unsigned long long)size);
    if (end - begin != view->bytes)
        return muc_fail(f->ctx, MUC_MALFORMED, f->bytes.name, f->data_offset + begin,
                        "tensor '%s' has %llu bytes, its shape and type ask for %llu", view->name,
                        (unsigned long long)(end - begin), (unsigned long long)view->bytes);
    return MUC_OK;
}

static muc_status read_tensor(const file *f, const char *name, const json_t *object)
{
    muc_tensor_view view = { .file = f->bytes.name, .offset = PREFIX_BYTES };
    uint64_t range[2] = { 0 };
    const char *dtype;
    size_t rank, ends;

    MUC_TRY(muc_arena_string(f->ctx, &f->checkpoint->arena, name, strlen(name), &view.name));
    if (!json_is_object(object) || json_object_size(object) != TENSOR_KEYS)
        return muc_fail(f->ctx, MUC_MALFORMED, f->bytes.name, PREFIX_BYTES,
                        "tensor '%s' is not an object of dtype, shape and data_offsets", name);
    MUC_TRY(muc_json_string_or_null(f->ctx, f->bytes.name, object, "dtype", &dtype));
    if (!dtype || !find_dtype(dtype, &view.dtype))
        return muc_fail(f->ctx, MUC_UNSUPPORTED, f->bytes.name, PREFIX_BYTES,
                        "tensor '%s' has unknown dtype '%s'", name, dtype ? dtype : "null");
    MUC_TRY(read_sizes(f, name, object, "shape", MAX_RANK, view.dims, &rank));
    view.rank = (uint32_t)rank;
    MUC_TRY(muc_tensor_measure(f->ctx, &view));
    MUC_TRY(read_sizes(f, name, object, "data_offsets", 2, range, &ends));
    if (ends != 2)
        return muc_fail(f->ctx, MUC_MALFORMED, f->bytes.name, PREFIX_BYTES,
                        "tensor '%s': \"data_offsets\" has %zu entries, expected 2", name, ends);
    MUC_TRY(check_range(f, &view, range[0], range[1]));
    view.offset = f->data_offset + range[0];
    view.data = f->bytes.data + view.offset;
    return muc_checkpoint_add(f->ctx, f->checkpoint, &view);
}

static muc_status check_metadata(const file *f, const json_t *metadata)
{
    const char *key;
    json_t *value;

    if (!json_is_object(metadata))
        return muc_fail(f->ctx, MUC_MALFORMED, f->bytes.name, PREFIX_BYTES,
                        "\"__metadata__\" is not an object");
    json_object_foreach((json_t *)(uintptr_t)metadata, key, value) if (
        !json_is_string(value)) return muc_fail(f->ctx, MUC_MALFORMED, f->bytes.name, PREFIX_BYTES,
                                                "\"__metadata__\": \"%s\" is not a string", key);
    return MUC_OK;
}

static muc_status read_header(const file *f, json_t *header)
{
    const char *name;
    json_t *value;

    if (!json_is_object(header))
        return muc_fail(f->ctx, MUC_MALFORMED, f->bytes.name, PREFIX_BYTES,
                        "the header is not a JSON object");
    json_object_foreach(header, name, value)
    {
        if (strcmp(name, "__metadata__") == 0)
            MUC_TRY(check_metadata(f, value));
        else
            MUC_TRY(read_tensor(f, name, value));
    }
    return MUC_OK;
}

/* an empty tensor sorts before the one that begins where it does */
static int by_place(const void *a, const void *b)
{
    const muc_tensor_view *x = a, *y = b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static muc_status check_places(const file *f)
{
    size_t count = f->checkpoint->tensor_count - f->first;
    muc_tensor_view *views = count ? f->checkpoint->tensors + f->first : NULL;
    uint64_t end = f->data_offset;

    if (count > 0)
        qsort(views, count, sizeof(*views), by_place);
    for (size_t i = 0; i < count; i++) {
        if (views[i].offset != end)
            return muc_fail(f->ctx, MUC_MALFORMED, f->bytes.name, views[i].offset, "tensor '%s' %s",
                            views[i].name,
                            views[i].offset < end ? "overlaps another" : "follows a hole");
        end += views[i].bytes;
    }
    if (end != f->bytes.size)
        return muc_fail(f->ctx, MUC_MALFORMED, f->bytes.name, end,
                        "the tensors end here, the file at %zu", f->bytes.size);
    return MUC_OK;
}

bool muc_safetensors_probe(muc_bytes bytes)
{
    return bytes.size > PREFIX_BYTES && bytes.data[PREFIX_BYTES] == '{' &&
           muc_load_u64(bytes.data) <= MAX_HEADER_BYTES;
}

muc_status muc_safetensors_read(muc_context *ctx, muc_bytes bytes, muc_checkpoint *checkpoint)
{
    muc_reader reader = muc_reader_of(ctx, bytes);
    file f = { ctx, bytes, 0, checkpoint, checkpoint->tensor_count };
    const uint8_t *text;
    uint64_t size;
    muc_status status;
    json_t *header;

    MUC_TRY(muc_refuse_mistaken(ctx, bytes));
    MUC_TRY(muc_read_u64(&reader, "the header's size", &size));
    if (size > MAX_HEADER_BYTES)
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, 0, "a header of %llu bytes, at most %d",
                        (unsigned long long)size, MAX_HEADER_BYTES);
    MUC_TRY(muc_read_span(&reader, size, "the header", &text));
    if (size == 0 || text[0] != '{')
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, PREFIX_BYTES,
                        "the header does not begin with '{'");
    f.data_offset = PREFIX_BYTES + size;
    MUC_TRY(
        muc_json_parse(ctx, (muc_bytes){ text, (size_t)size, bytes.name }, PREFIX_BYTES, &header));
    status = read_header(&f, header);
    json_decref(header);
    return status == MUC_OK ? check_places(&f) : status;
}
