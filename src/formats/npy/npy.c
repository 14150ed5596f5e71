/* npy.c - reads and writes .npy files: "\x93NUMPY", version, header size, a Python dictionary, the
 * elements.
 *
 * The dictionary holds exactly descr, fortran_order and shape, in any order:
 * {'descr': '<f4', 'fortran_order': False, 'shape': (60, 512), }
 */
#include "formats/npy/npy.h"

#include <inttypes.h>
#include <string.h>

#include "base/choice.h"
#include "base/file.h"
#include "base/text.h"
#include "formats/format.h"

enum { MAGIC_BYTES = 6, MAX_HEADER_BYTES = 4096, ALIGNMENT = 64, MAX_DIGITS = 19 };
enum { DESCR = 1, ORDER = 2, SHAPE = 4, ALL_KEYS = 7 };

static const char magic[] = "\x93NUMPY";

static const struct {
    const char *descr; /* with its quotes */
    muc_dtype dtype;
} types[] = {
    { "'<f8'", MUC_F64 }, { "'<f4'", MUC_F32 }, { "'<f2'", MUC_F16 }, { "'<i8'", MUC_I64 },
    { "'<i4'", MUC_I32 }, { "'<i2'", MUC_I16 }, { "'|i1'", MUC_I8 },  { "'<u8'", MUC_U64 },
    { "'<u4'", MUC_U32 }, { "'<u2'", MUC_U16 }, { "'|u1'", MUC_U8 },  { "'|b1'", MUC_BOOL },
};

typedef struct scanner {
    muc_context *ctx;
    muc_bytes file;
    size_t at, end; /* of the dictionary in the file */
    muc_tensor_view *view;
    unsigned seen; /* keys */
    bool fortran;  /* the first dimension is the innermost */
} scanner;

static muc_status fail(const scanner *s, muc_status status, const char *what)
{
    return muc_fail(s->ctx, status, s->file.name, s->at, "%s", what);
}

static void skip_spaces(scanner *s)
{
    while (s->at < s->end && (s->file.data[s->at] == ' ' || s->file.data[s->at] == '\n'))
        s->at++;
}

/* Moves over spaces, then over text if it comes next. */
static bool take(scanner *s, const char *text)
{
    size_t size = strlen(text);

    skip_spaces(s);
    if (size > s->end - s->at || memcmp(s->file.data + s->at, text, size) != 0)
        return false;
    s->at += size;
    return true;
}

static muc_status scan_type(scanner *s)
{
    muc_choice choice;
    size_t end;

    for (size_t i = 0; i < MUC_COUNT(types); i++) {
        if (take(s, types[i].descr)) {
            s->view->dtype = types[i].dtype;
            return MUC_OK;
        }
    }
    take(s, "'");
    for (end = s->at; end < s->end && s->file.data[end] != '\'' && s->file.data[end] != ',' &&
                      s->file.data[end] != '}';)
        end++;
    muc_choice_begin(&choice, (const char *)s->file.data + s->at, end - s->at);
    for (size_t i = 0; i < MUC_COUNT(types); i++)
        muc_choice_add(&choice, types[i].descr);
    return muc_choice_refuse(s->ctx, &choice, MUC_UNSUPPORTED, s->file.name,
                             "little-endian number type");
}

static muc_status scan_order(scanner *s)
{
    if (take(s, "False"))
        return MUC_OK;
    s->fortran = take(s, "True");
    return s->fortran ? MUC_OK
                      : fail(s, MUC_MALFORMED, "'fortran_order' is neither True nor False");
}

static muc_status scan_size(scanner *s, uint64_t *out)
{
    size_t digits = 0;

    for (*out = 0; s->at < s->end && digits < MAX_DIGITS; s->at++, digits++) {
        uint8_t c = s->file.data[s->at];

        if (c < '0' || c > '9')
            break;
        *out = *out * 10 + (uint64_t)(c - '0');
    }
    return digits > 0 && digits < MAX_DIGITS ? MUC_OK : fail(s, MUC_MALFORMED, "no size");
}

/* (), (3,) or (60, 512) */
static muc_status scan_shape(scanner *s)
{
    muc_tensor_view *view = s->view;

    if (!take(s, "("))
        return fail(s, MUC_MALFORMED, "'shape' is not a tuple");
    while (!take(s, ")")) {
        if (view->rank == MUC_MAX_RANK)
            return fail(s, MUC_UNSUPPORTED, "the array has more than 8 dimensions");
        MUC_TRY(scan_size(s, &view->dims[view->rank++]));
        if (take(s, ","))
            continue;
        if (view->rank == 1 || !take(s, ")"))
            return fail(s, MUC_MALFORMED, "'shape' is not a tuple");
        break;
    }
    return MUC_OK;
}

static muc_status scan_item(scanner *s)
{
    static const struct {
        const char *key;
        unsigned bit;
        muc_status (*scan)(scanner *);
    } items[] = {
        { "'descr':", DESCR, scan_type },
        { "'fortran_order':", ORDER, scan_order },
        { "'shape':", SHAPE, scan_shape },
    };

    for (size_t i = 0; i < MUC_COUNT(items); i++) {
        if (!take(s, items[i].key))
            continue;
        if (s->seen & items[i].bit)
            return fail(s, MUC_MALFORMED, "the header has a key twice");
        s->seen |= items[i].bit;
        skip_spaces(s);
        return items[i].scan(s);
    }
    return fail(s, MUC_MALFORMED, "the header has an unknown key");
}

static muc_status scan_header(scanner *s)
{
    if (!take(s, "{"))
        return fail(s, MUC_MALFORMED, "the header is not a dictionary");
    while (!take(s, "}")) {
        MUC_TRY(scan_item(s));
        if (take(s, ","))
            continue;
        if (!take(s, "}"))
            return fail(s, MUC_MALFORMED, "the header is not a dictionary");
        break;
    }
    skip_spaces(s);
    if (s->at != s->end || s->seen != ALL_KEYS)
        return fail(s, MUC_MALFORMED, "the header lacks a key, or goes on after its end");
    return MUC_OK;
}

static muc_status read_header_size(muc_reader *in, uint32_t *out)
{
    const uint8_t *start;
    uint16_t version, size;

    MUC_TRY(muc_read_span(in, MAGIC_BYTES, "the magic", &start));
    if (memcmp(start, magic, MAGIC_BYTES) != 0)
        return muc_fail(in->ctx, MUC_MALFORMED, in->bytes.name, 0, "no .npy file");
    MUC_TRY(muc_read_u16(in, "the version", &version));
    if (version < 1 || version > 3)
        return muc_fail(in->ctx, MUC_UNSUPPORTED, in->bytes.name, MAGIC_BYTES,
                        ".npy version %u.%u, expected 1.0 to 3.0", version & 255, version >> 8);
    if (version > 1)
        return muc_read_u32(in, "the header's size", out);
    MUC_TRY(muc_read_u16(in, "the header's size", &size));
    *out = size;
    return MUC_OK;
}

static muc_status read_array(scanner *s)
{
    muc_reader in = muc_reader_of(s->ctx, s->file);
    muc_tensor_view *out = s->view;
    const uint8_t *header;
    uint32_t size;

    *out = (muc_tensor_view){ .name = s->file.name, .file = s->file.name };
    MUC_TRY(read_header_size(&in, &size));
    if (size > MAX_HEADER_BYTES)
        return muc_read_fail(&in, "a header of %u bytes, at most %d", size, MAX_HEADER_BYTES);
    s->at = in.at;
    MUC_TRY(muc_read_span(&in, size, "the header", &header));
    s->end = in.at;
    MUC_TRY(scan_header(s));
    out->offset = in.at;
    out->data = s->file.data + in.at;
    MUC_TRY(muc_tensor_measure(s->ctx, out));
    if (out->bytes != muc_reader_left(&in))
        return muc_read_fail(&in, "the shape asks for %" PRIu64 " bytes, the file has %zu",
                             out->bytes, muc_reader_left(&in));
    return MUC_OK;
}

muc_status muc_npy_read(muc_context *ctx, muc_bytes bytes, muc_tensor_view *out)
{
    scanner s = { .ctx = ctx, .file = bytes, .view = out };

    MUC_TRY(read_array(&s));
    return s.fortran ? fail(&s, MUC_UNSUPPORTED, "the array is in Fortran order") : MUC_OK;
}

/* from the first dimension innermost to the last */
static void reorder(const muc_tensor_view *view, uint8_t *out)
{
    size_t size = muc_dtype_get(view->dtype)->block_bytes;

    for (uint64_t i = 0; i < view->elements; i++) {
        uint64_t rest = i, from = 0, stride = view->elements;

        for (uint32_t d = view->rank; d-- > 0;) {
            stride /= view->dims[d];
            from += rest % view->dims[d] * stride;
            rest /= view->dims[d];
        }
        memcpy(out + i * size, view->data + from * size, size);
    }
}

muc_status muc_npy_read_copy(muc_context *ctx, muc_arena *arena, muc_bytes bytes,
                             muc_tensor_view *out)
{
    scanner s = { .ctx = ctx, .file = bytes, .view = out };
    uint8_t *copy;

    MUC_TRY(read_array(&s));
    if (!s.fortran)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, (size_t)out->bytes + 1, &copy));
    reorder(out, copy);
    out->data = copy;
    return MUC_OK;
}

muc_status muc_npy_add_header(muc_context *ctx, const char *path, const muc_tensor_view *view,
                              muc_text *out)
{
    const char *descr = NULL;
    size_t size;

    for (size_t i = 0; i < MUC_COUNT(types); i++)
        if (types[i].dtype == view->dtype)
            descr = types[i].descr;
    if (!descr)
        return muc_fail(ctx, MUC_UNSUPPORTED, path, MUC_NO_OFFSET, "NumPy has no type %s",
                        muc_dtype_get(view->dtype)->name);
    muc_text_add_bytes(out, magic, MAGIC_BYTES);
    muc_text_add_bytes(out, "\1\0\0\0", 4); /* version 1.0, then the size that is set below */
    muc_text_add(out, "{'descr': %s, 'fortran_order': False, 'shape': (", descr);
    for (uint32_t i = 0; i < view->rank; i++)
        muc_text_add(out, "%s%" PRIu64, i ? ", " : "", view->dims[i]);
    muc_text_add(out, "%s), }", view->rank == 1 ? "," : "");
    while (!out->failed && (out->size + 1) % ALIGNMENT != 0)
        muc_text_add(out, " ");
    muc_text_add(out, "\n");
    MUC_TRY(muc_text_status(ctx, out));
    size = out->size - MAGIC_BYTES - 4;
    muc_store_u16((uint8_t *)out->data + MAGIC_BYTES + 2, (uint16_t)size);
    return MUC_OK;
}

static muc_status write_output(muc_output *output, const muc_text *header,
                               const muc_tensor_view *view)
{
    MUC_TRY(muc_output_write(output, header->data, header->size));
    return muc_output_write(output, view->data, (size_t)view->bytes);
}

muc_status muc_npy_write(muc_context *ctx, const char *path, const muc_tensor_view *view)
{
    muc_output *output;
    muc_text header = { 0 };
    muc_status status = muc_npy_add_header(ctx, path, view, &header);

    if (status == MUC_OK)
        status = muc_output_begin(ctx, path, &output);
    if (status == MUC_OK) {
        status = write_output(output, &header, view);
        if (status == MUC_OK)
            status = muc_output_commit(output);
        else
            muc_output_discard(output);
    }
    muc_text_free(&header);
    return status;
}
