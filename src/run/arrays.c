/* arrays.c - reads and writes the arrays of a user's files, by what the files begin with. */
#include "run/arrays.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/choice.h"
#include "formats/npy/npy.h"
#include "run/network_run.h"
#ifdef MUC_WITH_NPZ
#include "formats/npy/npz.h"
#endif

#ifndef MUC_WITH_NPZ
/* what stands in for the reader and the writer where there is no libzip */
static muc_status fail_npz(muc_context *ctx, const char *path)
{
    return muc_fail(ctx, MUC_UNSUPPORTED, path, MUC_NO_OFFSET,
                    "this muc was built without libzip, which .npz files need");
}
#define muc_npz_read(ctx, arena, bytes, out, count) fail_npz(ctx, (bytes).name)
#define muc_npz_write(ctx, path, arrays, count) fail_npz(ctx, path)
#endif

/* a copy, for the file goes */
static muc_status read_npy(muc_context *ctx, muc_arena *arena, muc_bytes bytes,
                           muc_tensor_view **out, size_t *count)
{
    muc_tensor_view *view;
    uint8_t *data;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, 1, &view));
    MUC_TRY(muc_npy_read(ctx, bytes, view));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, (size_t)view->bytes + 1, &data));
    memcpy(data, view->data, (size_t)view->bytes);
    view->data = data;
    MUC_TRY(muc_arena_string(ctx, arena, bytes.name, strlen(bytes.name), &view->name));
    view->file = view->name;
    *out = view;
    *count = 1;
    return MUC_OK;
}

static bool is_zip(muc_bytes bytes)
{
    return bytes.size >= 2 && memcmp(bytes.data, "PK", 2) == 0;
}

bool muc_is_arrays(const char *path)
{
    static const char npy[] = "\x93NUMPY";
    muc_context *quiet = muc_context_new(1);
    muc_file file;
    bool is = false;

    if (quiet && muc_file_open(quiet, path, &file) == MUC_OK) {
        is = is_zip(file.bytes) || (file.bytes.size >= sizeof(npy) - 1 &&
                                    memcmp(file.bytes.data, npy, sizeof(npy) - 1) == 0);
        muc_file_close(&file);
    }
    muc_context_free(quiet);
    return is;
}

muc_status muc_arrays_read(muc_context *ctx, muc_arena *arena, const char *path,
                           muc_tensor_view **out, size_t *count)
{
    muc_status status;
    muc_file file;

    MUC_TRY(muc_file_open(ctx, path, &file));
    if (is_zip(file.bytes))
        status = muc_npz_read(ctx, arena, file.bytes, out, count);
    else
        status = read_npy(ctx, arena, file.bytes, out, count);
    muc_file_close(&file);
    return status;
}

muc_status muc_arrays_write(muc_context *ctx, const char *path, const muc_tensor_view *arrays,
                            size_t count)
{
    (void)arrays, (void)count; /* without libzip */
    return muc_npz_write(ctx, path, arrays, count);
}

/* ---- shapes ---- */

/* the dimensions that are not 1 */
static uint32_t squeeze(uint32_t rank, const uint64_t *dims, uint64_t *out)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] != 1)
            out[count++] = dims[i];
    return count;
}

bool muc_is_reordered(const muc_tensor_view *array, uint32_t rank, const uint64_t *dims)
{
    uint64_t a[MUC_MAX_RANK], b[MUC_MAX_RANK];
    uint32_t count = squeeze(array->rank, array->dims, a), left = squeeze(rank, dims, b);

    if (count != left || memcmp(a, b, count * sizeof(*a)) == 0)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = 0;

        while (at < left && b[at] != a[i])
            at++;
        if (at == left)
            return false;
        b[at] = b[--left];
    }
    return true;
}

/* ---- dimensions ---- */

static bool take_number(const char **at, uint32_t *out)
{
    char *end;
    unsigned long value;

    if (**at < '0' || **at > '9')
        return false;
    value = strtoul(*at, &end, 10);
    *at = end;
    *out = (uint32_t)value;
    return value <= INT32_MAX;
}

/* "N" or "LO..HI", up to a comma or the end */
static bool take_range(const char **at, muc_network_dim *out)
{
    if (!take_number(at, &out->lo))
        return false;
    out->hi = out->lo;
    if (strncmp(*at, "..", 2) == 0) {
        *at += 2;
        if (!take_number(at, &out->hi))
            return false;
    }
    return out->lo <= out->hi && (**at == ',' || **at == '\0');
}

/* "NAME=" and a range, or a formula of other dimensions, which has letters */
static bool take_dim(muc_context *ctx, muc_arena *arena, const char **at, muc_network_dim *out,
                     muc_status *status)
{
    size_t length = strcspn(*at, "=,");
    const char *name = *at, *value = *at + length + 1;

    if (length == 0 || name[length] != '=')
        return false;
    *status = muc_arena_string(ctx, arena, name, length, &out->name);
    *at = value;
    if (*status != MUC_OK || take_range(at, out))
        return true;
    *at = value;
    length = strcspn(value, ",");
    if (length == 0 || memchr(value, '.', length) || memchr(value, '=', length))
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!isalpha((unsigned char)value[i]))
            continue;
        *at += length;
        *status = muc_arena_string(ctx, arena, value, length, &out->formula);
        return true;
    }
    return false;
}

muc_status muc_network_dims(muc_context *ctx, muc_arena *arena, const char *text,
                            muc_network_dim **out, size_t *count)
{
    muc_status status = MUC_OK;
    size_t most = 1;

    for (const char *p = text; *p; p++)
        most += *p == ',';
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, most, out));
    *count = 0;
    for (const char *at = text;; at++) {
        muc_network_dim *dim = &(*out)[*count];

        *dim = (muc_network_dim){ .name = NULL };
        if (!take_dim(ctx, arena, &at, dim, &status))
            return muc_fail(ctx, MUC_USAGE, "dimensions", (uint64_t)(at - text),
                            "'%s' is not a list of NAME=N, NAME=LO..HI or NAME=FORMULA", text);
        MUC_TRY(status);
        ++*count;
        if (*at == '\0')
            return MUC_OK;
    }
}

enum { MOST_TYPE = 16 };

/* NAME=TYPE at *at; its name is *length bytes */
static bool take_type(const char **at, const char **name, size_t *length, char type[MOST_TYPE])
{
    size_t size;

    *name = *at;
    *length = strcspn(*at, "=,");
    *at += *length;
    if (*length == 0 || **at != '=')
        return false;
    size = strcspn(++*at, ",");
    if (size >= MOST_TYPE)
        return false;
    memcpy(type, *at, size);
    type[size] = '\0';
    *at += size;
    return true;
}

static muc_status find_type(muc_context *ctx, const char *word, muc_dtype *out)
{
    muc_choice choice;

    if (muc_dtype_find(word, out))
        return MUC_OK;
    muc_choice_begin(&choice, word, strlen(word));
    for (unsigned i = 0; i < MUC_DTYPE_COUNT; i++)
        if (muc_dtype_get((muc_dtype)i)->block_elements == 1)
            muc_choice_add(&choice, muc_dtype_get((muc_dtype)i)->name);
    return muc_choice_refuse(ctx, &choice, MUC_USAGE, "--type", "type");
}

muc_status muc_network_types(muc_context *ctx, muc_arena *arena, const char *text,
                             muc_network_type **out, size_t *count)
{
    size_t most = 1, length;
    char word[MOST_TYPE];
    const char *name;

    for (const char *p = text; *p; p++)
        most += *p == ',';
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, most, out));
    *count = 0;
    for (const char *at = text;; at++) {
        muc_network_type *type = &(*out)[*count];

        if (!take_type(&at, &name, &length, word))
            return muc_fail(ctx, MUC_USAGE, "types", (uint64_t)(at - text),
                            "'%s' is not a list of NAME=TYPE, as input=u8", text);
        MUC_TRY(find_type(ctx, word, &type->dtype));
        MUC_TRY(muc_arena_string(ctx, arena, name, length, &type->name));
        ++*count;
        if (*at == '\0')
            return MUC_OK;
    }
}

/* ---- arrays as files and as rows ---- */

muc_status muc_array_as_npy(muc_context *ctx, const char *name, const muc_tensor_view *array,
                            muc_text *out)
{
    MUC_TRY(muc_npy_add_header(ctx, name, array, out));
    muc_text_add_bytes(out, array->data, (size_t)array->bytes);
    return muc_text_status(ctx, out);
}

enum { FIRST = 8 };

void muc_array_add_shape(const muc_tensor_view *array, muc_text *out)
{
    muc_text_add(out, "[");
    for (uint32_t i = 0; i < array->rank; i++)
        muc_text_add(out, "%s%" PRIu64, i ? ", " : "", array->dims[i]);
    muc_text_add(out, "]");
}

static void add_shape(muc_report *report, const muc_tensor_view *view)
{
    muc_text text = { 0 };

    muc_array_add_shape(view, &text);
    muc_report_add_text(report, "shape", "%s", text.data ? text.data : "");
    muc_text_free(&text);
}

static void add_top(muc_report *report, const muc_tensor_view *view)
{
    uint64_t top[MUC_ARRAY_TOP];
    size_t count = muc_array_top(view, 0, view->elements, top);
    muc_text text = { 0 };

    for (size_t i = 0; i < count; i++)
        muc_text_add(&text, "%s%" PRIu64, i ? " " : "", top[i]);
    muc_report_add_text(report, "top", "%s", text.data ? text.data : "");
    muc_text_free(&text);
}

void muc_report_add_array(muc_report *report, const muc_tensor_view *view, const muc_port *port)
{
    const bool quantized = port && port->quantized;
    double least = INFINITY, most = -INFINITY;
    muc_text first = { 0 };

    for (uint64_t i = 0; i < view->elements; i++) {
        double value = muc_array_element(view, i);

        value = quantized ? muc_port_real(port, value) : value;
        least = value < least ? value : least;
        most = value > most ? value : most;
        if (i < FIRST)
            muc_text_add(&first, "%s%g", i ? " " : "", value);
    }
    muc_report_begin_row(report);
    muc_report_add_text(report, "name", "%s", view->name);
    muc_report_add_text(report, "dtype", "%s", muc_dtype_get(view->dtype)->name);
    add_shape(report, view);
    if (view->elements) {
        muc_report_add_real(report, "min", least);
        muc_report_add_real(report, "max", most);
    }
    muc_report_add_text(report, "values", "%s%s", first.data ? first.data : "",
                        view->elements > FIRST ? " ..." : "");
    add_top(report, view);
    if (quantized) {
        muc_report_add_real(report, "scale", port->scale);
        muc_report_add_real(report, "zero point", port->zero);
    }
    muc_report_end(report);
    muc_text_free(&first);
}
