/* bind_code.c - a run of a folder's code: the lengths that its network leaves open, and the arrays
 * as it reads them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/choice.h"
#include "run/arrays.h"
#include "targets/mcu/emit/code_folder.h"
#include "run/network_run.h"
#include "run/repeated_runs.h"
#include "expr/expr.h"
#include "passes/unify/unify.h"

typedef struct binder {
    muc_context *ctx;
    muc_code_folder *folder;
    muc_expr_pool *pool;
    uint32_t values[MUC_EXPR_MAX_INPUTS];
    const char *from[MUC_EXPR_MAX_INPUTS]; /* what decided each, or NULL */
} binder;

static muc_status declare(binder *b, const json_t *arguments)
{
    for (size_t i = 0; i < json_array_size(arguments); i++) {
        const json_t *item = json_array_get(arguments, i);
        const char *name = json_string_value(json_object_get(item, "name"));
        json_int_t least = json_integer_value(json_object_get(item, "least"));
        json_int_t most = json_integer_value(json_object_get(item, "most"));
        json_int_t multiple = json_integer_value(json_object_get(item, "multiple"));

        if (!name || least < 0 || most < least || most > INT32_MAX || multiple < 1 ||
            multiple > INT32_MAX)
            return muc_fail(b->ctx, MUC_MALFORMED, b->folder->path, MUC_NO_OFFSET,
                            "an argument of its description is damaged");
        muc_expr_new_input(b->pool, name, (uint32_t)least, (uint32_t)most, (uint32_t)multiple);
    }
    return muc_expr_status(b->pool);
}

static muc_status bind(binder *b, uint32_t input, uint64_t value, const char *from)
{
    const muc_expr_input *known = muc_expr_get_input(b->pool, input);

    if (value < known->lo || value > known->hi || (known->multiple && value % known->multiple))
        return muc_fail(b->ctx, MUC_USAGE, b->folder->path, MUC_NO_OFFSET,
                        "%s is %" PRIu64 " by %s, expected %" PRIu32 " to %" PRIu32, known->name,
                        value, from, known->lo, known->hi);
    if (b->from[input] && b->values[input] != value)
        return muc_fail(b->ctx, MUC_USAGE, b->folder->path, MUC_NO_OFFSET,
                        "%s is %" PRIu32 " by %s and %" PRIu64 " by %s", known->name,
                        b->values[input], b->from[input], value, from);
    b->values[input] = (uint32_t)value;
    b->from[input] = from;
    return MUC_OK;
}

/* the extents of a port; text of a description, parsed */
static muc_status read_extent(binder *b, const muc_port *port, uint32_t dim, muc_expr *out)
{
    const char *text = json_string_value(json_array_get(port->extents, dim));

    if (!text)
        return muc_fail(b->ctx, MUC_MALFORMED, b->folder->path, MUC_NO_OFFSET,
                        "'%s' has damaged extents", port->name);
    return muc_expr_parse(b->ctx, b->pool, b->folder->path, 0, &text, out);
}

static muc_status bind_array(binder *b, const muc_port *port, const muc_tensor_view *array)
{
    if (!port->extents || !array || array->rank != port->rank)
        return MUC_OK;
    for (uint32_t i = 0; i < port->rank; i++) {
        const muc_expr_node *node;
        muc_expr e;

        MUC_TRY(read_extent(b, port, i, &e));
        node = muc_expr_get(b->pool, e);
        if (node->op == MUC_EXPR_INPUT)
            MUC_TRY(bind(b, node->immediate, array->dims[i], array->name));
    }
    return MUC_OK;
}

static muc_status unknown_dim(const binder *b, const char *name)
{
    muc_choice choice;

    muc_choice_begin(&choice, name, strlen(name));
    for (uint32_t i = 0; i < muc_expr_input_count(b->pool); i++)
        muc_choice_add(&choice, muc_expr_get_input(b->pool, i)->name);
    return muc_choice_refuse(b->ctx, &choice, MUC_USAGE, b->folder->path, "open dimension");
}

static muc_status bind_named(binder *b, const char *dims, muc_arena *arena)
{
    muc_network_dim *list;
    size_t count;

    if (!dims)
        return MUC_OK;
    MUC_TRY(muc_network_dims(b->ctx, arena, dims, &list, &count));
    for (size_t i = 0; i < count; i++) {
        uint32_t input = muc_expr_find_input(b->pool, list[i].name);

        if (input == UINT32_MAX)
            return unknown_dim(b, list[i].name);
        if (list[i].formula || list[i].lo != list[i].hi)
            return muc_fail(b->ctx, MUC_USAGE, b->folder->path, MUC_NO_OFFSET,
                            "--dim %s: the code has its range already; expected a number, as %s=%u",
                            list[i].name, list[i].name, muc_expr_get_input(b->pool, input)->lo);
        MUC_TRY(bind(b, input, list[i].lo, "--dim"));
    }
    return MUC_OK;
}

/* a port's dimensions and bytes in this run */
static muc_status measure(binder *b, muc_port *port)
{
    uint64_t elements;

    for (uint32_t i = 0; port->extents && i < port->rank; i++) {
        uint32_t value;
        muc_expr e;

        MUC_TRY(read_extent(b, port, i, &e));
        MUC_TRY(muc_expr_eval(b->ctx, b->pool, e, b->values, &value));
        port->dims[i] = value;
    }
    if (!muc_dtype_measure(port->dtype, port->rank, port->dims, &elements, &port->bytes))
        return muc_fail(b->ctx, MUC_MALFORMED, b->folder->path, MUC_NO_OFFSET, "'%s' has no size",
                        port->name);
    return MUC_OK;
}

/* the array of an input or a cache, or NULL */
static const muc_tensor_view *find_array(const muc_code_folder *folder,
                                         const muc_tensor_view *arrays, size_t array_count,
                                         const muc_port *port)
{
    for (size_t i = 0; i < folder->array_count; i++)
        if (strcmp(folder->arrays[i], port->name) == 0)
            return muc_network_match(arrays, array_count, folder->arrays, folder->array_count, i);
    for (size_t i = 0; i < array_count; i++)
        if (strcmp(arrays[i].name, port->name) == 0)
            return &arrays[i];
    return NULL;
}

/* inputs first, then caches, as main.c reads them */
static muc_port *port_at(const muc_code_folder *folder, size_t i)
{
    return i < folder->input_count ? &folder->inputs[i] : &folder->caches[i - folder->input_count];
}

static size_t port_count(const muc_code_folder *folder)
{
    return folder->input_count + folder->cache_count;
}

static bool is_record(const muc_code_folder *folder, const muc_port *port)
{
    return json_object_get(folder->json, "records") && strcmp(port->name, MUC_UNIFY_RECORD) == 0;
}

static json_int_t length_of(const json_t *record, const char *name)
{
    return json_integer_value(json_object_get(record, name));
}

/* the record of the export that has the lengths of this run */
static muc_status choose_record(binder *b)
{
    const json_t *records = json_object_get(b->folder->json, "records");
    uint32_t pos = muc_expr_find_input(b->pool, "pos"), m = muc_expr_find_input(b->pool, "m");

    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *record = json_array_get(records, i);
        const char *file = json_string_value(json_object_get(record, "file"));

        if (file && muc_is_plain_name(file) &&
            (pos == UINT32_MAX || b->values[pos] == length_of(record, "pos")) &&
            (m == UINT32_MAX || b->values[m] == length_of(record, "m")))
            return muc_arena_format(b->ctx, &b->folder->arena, &b->folder->record, "%s/%s",
                                    b->folder->path, file);
    }
    return MUC_OK;
}

static muc_status bind_ports(binder *b, const muc_tensor_view *arrays, size_t array_count,
                             const char *dims, muc_arena *arena)
{
    const muc_code_folder *folder = b->folder;

    for (size_t i = 0; i < port_count(folder); i++)
        MUC_TRY(bind_array(b, port_at(folder, i),
                           find_array(folder, arrays, array_count, port_at(folder, i))));
    MUC_TRY(bind_named(b, dims, arena));
    for (uint32_t i = 0; i < muc_expr_input_count(b->pool); i++)
        if (!b->from[i])
            return muc_fail(b->ctx, MUC_USAGE, folder->path, MUC_NO_OFFSET,
                            "no array says what %s is: give --dim %s=N",
                            muc_expr_get_input(b->pool, i)->name,
                            muc_expr_get_input(b->pool, i)->name);
    return MUC_OK;
}

/* all that follows from the lengths */
static muc_status settle(binder *b)
{
    muc_code_folder *folder = b->folder;
    uint32_t count = muc_expr_input_count(b->pool);

    for (size_t i = 0; i < port_count(folder); i++)
        MUC_TRY(measure(b, port_at(folder, i)));
    for (size_t i = 0; i < folder->output_count; i++)
        MUC_TRY(measure(b, &folder->outputs[i]));
    MUC_TRY(choose_record(b));
    MUC_TRY(MUC_ARENA_NEW(b->ctx, &folder->arena, count + (size_t)1, &folder->arguments));
    for (uint32_t i = 0; i < count; i++)
        MUC_TRY(muc_arena_format(b->ctx, &folder->arena, &folder->arguments[i], "%" PRIu32,
                                 b->values[i]));
    folder->argument_count = count;
    return MUC_OK;
}

static muc_status begin(muc_context *ctx, muc_code_folder *folder, binder *b)
{
    const json_t *arguments = json_object_get(folder->json, "arguments");

    *b = (binder){ .ctx = ctx, .folder = folder };
    if (json_array_size(arguments) > MUC_EXPR_MAX_INPUTS)
        return muc_fail(ctx, MUC_MALFORMED, folder->path, MUC_NO_OFFSET, "too many arguments");
    MUC_TRY(muc_expr_pool_new(ctx, &folder->arena, &b->pool));
    return declare(b, arguments);
}

muc_status muc_code_bind(muc_context *ctx, muc_code_folder *folder, const muc_tensor_view *arrays,
                         size_t array_count, const char *dims, muc_arena *arena)
{
    binder b;

    MUC_TRY(begin(ctx, folder, &b));
    MUC_TRY(bind_ports(&b, arrays, array_count, dims, arena));
    return settle(&b);
}

/* the export with most tokens; NULL where there is none */
static const json_t *longest_export(const muc_code_folder *folder)
{
    const json_t *records = json_object_get(folder->json, "records"), *longest = NULL;
    json_int_t most = -1;

    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *record = json_array_get(records, i);
        json_int_t tokens = length_of(record, "pos") + length_of(record, "m");

        longest = tokens > most ? record : longest;
        most = tokens > most ? tokens : most;
    }
    return longest;
}

muc_status muc_code_bind_most(muc_context *ctx, muc_code_folder *folder)
{
    const json_t *export = longest_export(folder);
    binder b;

    MUC_TRY(begin(ctx, folder, &b));
    for (uint32_t i = 0; i < muc_expr_input_count(b.pool); i++) {
        const muc_expr_input *input = muc_expr_get_input(b.pool, i);
        const json_t *length = json_object_get(export, input->name);
        uint32_t most = input->multiple ? input->hi - input->hi % input->multiple : input->hi;

        MUC_TRY(bind(&b, i, length ? (uint64_t)json_integer_value(length) : most, "its range"));
    }
    return settle(&b);
}

/* ---- what the code reads ---- */

static muc_status read_record(muc_context *ctx, const muc_code_folder *folder, const muc_port *port,
                              uint8_t *out)
{
    muc_status status = MUC_OK;
    muc_file file;

    if (!folder->record)
        return muc_fail(ctx, MUC_USAGE, folder->path, MUC_NO_OFFSET,
                        "none of its exports has the lengths of this run: the calibration record "
                        "is to be given as the array '%s'",
                        port->name);
    MUC_TRY(muc_file_open(ctx, folder->record, &file));
    if (file.bytes.size == port->bytes)
        memcpy(out, file.bytes.data, file.bytes.size);
    else
        status = muc_fail(ctx, MUC_MALFORMED, folder->record, MUC_NO_OFFSET,
                          "%zu bytes, expected %" PRIu64, file.bytes.size, port->bytes);
    muc_file_close(&file);
    return status;
}

muc_status muc_code_runs(muc_context *ctx, const muc_code_folder *folder,
                         const muc_tensor_view *arrays, size_t array_count, uint64_t *runs)
{
    *runs = 0;
    for (size_t i = 0; folder->streams && i < folder->input_count; i++) {
        const muc_port *port = &folder->inputs[i];
        const muc_tensor_view *array = find_array(folder, arrays, array_count, port);

        if (array)
            MUC_TRY(muc_runs_add(ctx, port->name, port->rank, port->dims, array, runs));
    }
    return MUC_OK;
}

/* run `run` of those that the arrays are for */
static muc_status gather(muc_context *ctx, const muc_code_folder *folder,
                         const muc_tensor_view *arrays, size_t array_count, uint64_t runs,
                         uint64_t run, uint8_t *data)
{
    size_t at = 0;

    for (size_t i = 0; i < port_count(folder); i++) {
        const muc_port *port = port_at(folder, i);
        const muc_tensor_view *array = find_array(folder, arrays, array_count, port);
        const muc_tensor_view slice = array && runs
                                          ? muc_runs_slice(array, port->rank, port->dims, run)
                                          : (muc_tensor_view){ 0 };

        if (array)
            MUC_TRY(muc_port_convert(ctx, port, runs ? &slice : array, data + at));
        else if (is_record(folder, port))
            MUC_TRY(read_record(ctx, folder, port, data + at));
        else
            return muc_network_refuse_input(ctx, folder->path, arrays, array_count, port->name);
        at += (size_t)port->bytes;
    }
    return MUC_OK;
}

/* of integers that stand for real numbers */
static muc_status real_array(muc_context *ctx, const muc_port *port, const muc_tensor_view *array,
                             muc_arena *arena, muc_tensor_view *out)
{
    float *values;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, (size_t)array->elements + 1, &values));
    for (uint64_t i = 0; i < array->elements; i++)
        values[i] = (float)muc_port_real(port, muc_array_element(array, i));
    out->dtype = MUC_F32;
    out->data = (const uint8_t *)values;
    out->bytes = array->elements * sizeof(*values);
    return MUC_OK;
}

muc_status muc_code_reals(muc_context *ctx, const muc_code_folder *folder,
                          const muc_tensor_view *arrays, size_t array_count, muc_arena *arena,
                          muc_tensor_view **out)
{
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, array_count + 1, out));
    if (array_count > 0)
        memcpy(*out, arrays, array_count * sizeof(**out));
    for (size_t i = 0; i < folder->input_count; i++) {
        const muc_port *port = &folder->inputs[i];
        const muc_tensor_view *array = find_array(folder, arrays, array_count, port);

        if (array && port->quantized && array->dtype == port->dtype)
            MUC_TRY(real_array(ctx, port, array, arena, &(*out)[array - arrays]));
    }
    return MUC_OK;
}

muc_status muc_code_gather(muc_context *ctx, const muc_code_folder *folder,
                           const muc_tensor_view *arrays, size_t array_count, muc_arena *arena,
                           muc_bytes *out)
{
    uint64_t runs, each = 0, bytes;
    uint8_t *data;

    MUC_TRY(muc_code_runs(ctx, folder, arrays, array_count, &runs));
    for (size_t i = 0; i < port_count(folder); i++)
        each += port_at(folder, i)->bytes;
    if (!muc_mul_u64(each, runs ? runs : 1, &bytes) || bytes >= SIZE_MAX)
        return muc_fail(ctx, MUC_UNSUPPORTED, folder->path, MUC_NO_OFFSET,
                        "%" PRIu64 " runs in a row are too many", runs);
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, (size_t)bytes + 1, &data));
    for (uint64_t run = 0; run < (runs ? runs : 1); run++)
        MUC_TRY(gather(ctx, folder, arrays, array_count, runs, run, data + run * each));
    *out = (muc_bytes){ data, (size_t)bytes, "inputs" };
    return MUC_OK;
}
