/* code_bind.c - lengths that a folder's network leaves open: what they are in a run. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "driver/arrays.h"
#include "driver/codefolder.h"
#include "driver/network.h"
#include "expr/expr.h"

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
static muc_status read_extent(binder *b, const muc_code_port *port, uint32_t dim, muc_expr *out)
{
    const char *text = json_string_value(json_array_get(port->extents, dim));

    if (!text)
        return muc_fail(b->ctx, MUC_MALFORMED, b->folder->path, MUC_NO_OFFSET,
                        "'%s' has damaged extents", port->name);
    return muc_expr_parse(b->ctx, b->pool, b->folder->path, 0, &text, out);
}

static muc_status bind_array(binder *b, const muc_code_port *port, const muc_tensor_view *array)
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

static muc_status bind_named(binder *b, const char *dims, muc_arena *arena)
{
    muc_network_dim *list;
    size_t count;

    if (!dims)
        return MUC_OK;
    MUC_TRY(muc_network_dims(b->ctx, arena, dims, &list, &count));
    for (size_t i = 0; i < count; i++) {
        uint32_t input = muc_expr_find_input(b->pool, list[i].name);

        if (input == UINT32_MAX || list[i].lo != list[i].hi)
            return muc_fail(b->ctx, MUC_USAGE, b->folder->path, MUC_NO_OFFSET,
                            "--dim %s: expected NAME=N of a dimension that the code leaves open",
                            list[i].name);
        MUC_TRY(bind(b, input, list[i].lo, "--dim"));
    }
    return MUC_OK;
}

/* a port's dimensions and bytes in this run */
static muc_status measure(binder *b, muc_code_port *port)
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

static muc_status resolve(binder *b, const muc_tensor_view *arrays, size_t array_count,
                          const char *dims, muc_arena *arena)
{
    muc_code_folder *folder = b->folder;
    const char **names;

    MUC_TRY(MUC_ARENA_NEW(b->ctx, arena, folder->input_count + 1, &names));
    for (size_t i = 0; i < folder->input_count; i++)
        names[i] = folder->inputs[i].name;
    for (size_t i = 0; i < folder->input_count; i++)
        MUC_TRY(bind_array(b, &folder->inputs[i],
                           muc_network_match(arrays, array_count, names, folder->input_count, i)));
    MUC_TRY(bind_named(b, dims, arena));
    for (uint32_t i = 0; i < muc_expr_input_count(b->pool); i++)
        if (!b->from[i])
            return muc_fail(b->ctx, MUC_USAGE, folder->path, MUC_NO_OFFSET,
                            "no array says what %s is: give --dim %s=N",
                            muc_expr_get_input(b->pool, i)->name,
                            muc_expr_get_input(b->pool, i)->name);
    for (size_t i = 0; i < folder->input_count; i++)
        MUC_TRY(measure(b, &folder->inputs[i]));
    for (size_t i = 0; i < folder->output_count; i++)
        MUC_TRY(measure(b, &folder->outputs[i]));
    return MUC_OK;
}

muc_status muc_code_bind(muc_context *ctx, muc_code_folder *folder, const muc_tensor_view *arrays,
                         size_t array_count, const char *dims, muc_arena *arena)
{
    const json_t *arguments = json_object_get(folder->json, "arguments");
    binder b = { .ctx = ctx, .folder = folder };
    size_t count = json_array_size(arguments);

    if (count == 0 && !dims)
        return MUC_OK;
    if (count > MUC_EXPR_MAX_INPUTS)
        return muc_fail(ctx, MUC_MALFORMED, folder->path, MUC_NO_OFFSET, "too many arguments");
    MUC_TRY(muc_expr_pool_new(ctx, &folder->arena, &b.pool));
    MUC_TRY(declare(&b, arguments));
    MUC_TRY(resolve(&b, arrays, array_count, dims, arena));
    MUC_TRY(MUC_ARENA_NEW(ctx, &folder->arena, count + 1, &folder->arguments));
    for (uint32_t i = 0; i < muc_expr_input_count(b.pool); i++)
        MUC_TRY(
            muc_arena_format(ctx, &folder->arena, &folder->arguments[i], "%" PRIu32, b.values[i]));
    folder->argument_count = count;
    return MUC_OK;
}
