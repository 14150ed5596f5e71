/* network_run.c - runs a network with the reference: arrays to inputs, results to arrays. */
#include "run/network_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/text.h"
#include "run/arrays.h"
#include "run/image_input.h"
#include "run/repeated_runs.h"
#include "ref/golden/chip_integers.h"

/* ---- dimensions ---- */

typedef struct binding {
    uint32_t value;
    const char *input; /* that decided it, or NULL */
} binding;

/* a tensor that an array fills: an input, or of exports a cache */
typedef struct port {
    uint32_t tensor;
    const muc_tensor_view *array;
} port;

typedef struct runner {
    muc_context *ctx;
    muc_graph *graph;
    const muc_unified *unified; /* or NULL */
    muc_arena *arena;
    binding bindings[MUC_EXPR_MAX_INPUTS];
    port *ports;
    size_t port_count;
    uint32_t end;        /* node that runs end before; 0: they run all */
    const bool *on_chip; /* or NULL */
    muc_ref_probe *probe;
    void *probe_arg;
} runner;

static muc_status fail_shape(const runner *r, const muc_tensor *tensor,
                             const muc_tensor_view *array)
{
    muc_text text = { 0 };
    muc_status status;

    muc_tensor_print_shape(r->graph, tensor, &text);
    muc_text_add(&text, ", the array '%s' is %s ", array->name, muc_dtype_get(array->dtype)->name);
    muc_array_add_shape(array, &text);
    status = muc_fail(r->ctx, MUC_USAGE, r->graph->name, MUC_NO_OFFSET, "input '%s' is %s",
                      tensor->name, text.data ? text.data : "?");
    muc_text_free(&text);
    return status;
}

/* an open dimension that stands alone is what the array has there */
static muc_status bind_dim(runner *r, uint32_t input, uint64_t value, const muc_tensor *tensor,
                           const muc_tensor_view *array)
{
    binding *bound = &r->bindings[input];

    if (value > UINT32_MAX || (bound->input && bound->value != value))
        return fail_shape(r, tensor, array);
    *bound = (binding){ (uint32_t)value, tensor->name };
    return MUC_OK;
}

static bool is_fixed(const runner *r, const muc_tensor *tensor)
{
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (!muc_expr_is_const(r->graph->pool, tensor->dims[i]))
            return false;
    return true;
}

static muc_status bind_dims(runner *r, const muc_tensor *tensor, const muc_tensor_view *array)
{
    if (array->rank != tensor->rank)
        return r->unified || is_fixed(r, tensor) ? MUC_OK : fail_shape(r, tensor, array);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        const muc_expr_node *node = muc_expr_get(r->graph->pool, tensor->dims[i]);

        if (node->op == MUC_EXPR_INPUT)
            MUC_TRY(bind_dim(r, node->immediate, array->dims[i], tensor, array));
    }
    return MUC_OK;
}

/* All lengths are known: does the array fit? A fixed shape needs the number of elements alone, in
 * no other order of dimensions, and so does an array of an export of another rank. */
static muc_status check_shape(runner *r, const muc_tensor *tensor, const muc_tensor_view *array)
{
    uint32_t bindings[MUC_EXPR_MAX_INPUTS], dim;
    bool same = array->rank == tensor->rank;
    uint64_t elements = 1, dims[MUC_GRAPH_MAX_RANK];

    for (uint32_t i = 0; i < MUC_EXPR_MAX_INPUTS; i++)
        bindings[i] = r->bindings[i].value;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        MUC_TRY(muc_expr_eval(r->ctx, r->graph->pool, tensor->dims[i], bindings, &dim));
        same = same && array->dims[i] == dim;
        dims[i] = dim;
        if (!muc_mul_u64(elements, dim, &elements))
            return fail_shape(r, tensor, array);
    }
    if (elements != array->elements || muc_is_reordered(array, tensor->rank, dims) ||
        (array->rank == tensor->rank && !same && !is_fixed(r, tensor)))
        return fail_shape(r, tensor, array);
    return MUC_OK;
}

/* ---- elements ---- */

/* An element as a double and, if it is an integer, exactly. */
typedef struct element {
    double real;
    int64_t integer;
    bool is_integer;
} element;

static element load(const muc_tensor_view *array, uint64_t i)
{
    uint32_t size = muc_dtype_get(array->dtype)->block_bytes;
    const uint8_t *p = array->data + i * size;
    element e = { 0 };
    float single;

    if (muc_dtype_get(array->dtype)->kind == MUC_DTYPE_INTEGER) {
        e.integer = muc_dtype_integer(array->dtype, p);
        e.real = array->dtype == MUC_U64 ? (double)(uint64_t)e.integer : (double)e.integer;
        e.is_integer = array->dtype != MUC_U64 || e.integer >= 0;
        return e;
    }
    if (array->dtype == MUC_F64) {
        memcpy(&e.real, p, sizeof(e.real));
    } else {
        muc_dtype_to_f32(array->dtype, p, 0, 1, &single);
        e.real = (double)single;
    }
    e.is_integer = e.real == floor(e.real) && fabs(e.real) < 0x1p63;
    e.integer = e.is_integer ? (int64_t)e.real : 0;
    return e;
}

double muc_array_element(const muc_tensor_view *view, uint64_t i)
{
    return load(view, i).real;
}

size_t muc_array_top(const muc_tensor_view *view, uint64_t first, uint64_t count,
                     uint64_t top[MUC_ARRAY_TOP])
{
    size_t found = 0;

    for (uint64_t i = 0; i < count; i++) {
        double value = muc_array_element(view, first + i);
        size_t at = found;

        while (at > 0 && value > muc_array_element(view, first + top[at - 1]))
            at--;
        if (at == MUC_ARRAY_TOP)
            continue;
        found += found < MUC_ARRAY_TOP;
        for (size_t j = found - 1; j > at; j--)
            top[j] = top[j - 1];
        top[at] = i;
    }
    return found;
}

bool muc_array_store(const muc_tensor_view *array, uint64_t i, muc_dtype dtype, uint8_t *out)
{
    uint32_t size = muc_dtype_get(dtype)->block_bytes;
    const element e = load(array, i);
    uint64_t bits = (uint64_t)e.integer;
    double back = e.real;

    if (dtype == MUC_F64) {
        memcpy(&bits, &e.real, sizeof(bits));
    } else if (dtype == MUC_F32) {
        bits = muc_f32_bits((float)e.real);
        back = (double)(float)e.real;
    } else if (dtype == MUC_F16) {
        bits = muc_f16_of_f32((float)e.real);
        back = (double)muc_f32_of_f16((uint16_t)bits);
    } else if (dtype == MUC_BF16) {
        bits = muc_bf16_of_f32((float)e.real);
        back = (double)muc_f32_of_bf16((uint16_t)bits);
    }
    for (uint32_t j = 0; j < size; j++)
        out[j] = (uint8_t)(bits >> 8 * j);
    if (muc_dtype_get(dtype)->kind == MUC_DTYPE_FLOAT)
        return muc_dtype_get(array->dtype)->kind != MUC_DTYPE_INTEGER || back == e.real;
    if (dtype == MUC_BOOL)
        return e.is_integer && e.integer >= 0 && e.integer <= 1;
    return e.is_integer && muc_dtype_integer(dtype, out) == e.integer &&
           (dtype != MUC_U64 || e.integer >= 0);
}

muc_status muc_array_convert(muc_context *ctx, const muc_tensor_view *array, muc_dtype dtype,
                             muc_arena *arena, uint8_t **out)
{
    uint32_t size = muc_dtype_get(dtype)->block_bytes;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, (size_t)array->elements * size + 1, out));
    if (array->dtype == dtype) {
        memcpy(*out, array->data, (size_t)array->bytes);
        return MUC_OK;
    }
    for (uint64_t i = 0; i < array->elements; i++)
        if (!muc_array_store(array, i, dtype, *out + i * size))
            return muc_fail(ctx, MUC_USAGE, array->file, MUC_NO_OFFSET,
                            "array '%s': element %" PRIu64 ", %g, is not a number of type %s",
                            array->name, i, muc_array_element(array, i),
                            muc_dtype_get(dtype)->name);
    return MUC_OK;
}

/* ---- the run ---- */

/* real numbers for integers with a scale */
static bool is_to_quantize(const muc_tensor *t, const muc_tensor_view *array)
{
    return t->quantization && t->quantization->count == 1 &&
           muc_dtype_get(t->dtype)->kind == MUC_DTYPE_INTEGER &&
           muc_dtype_get(array->dtype)->kind == MUC_DTYPE_FLOAT;
}

static muc_status quantize(runner *r, const muc_tensor *t, const muc_tensor_view *array,
                           uint8_t **out)
{
    muc_port input = muc_network_number_port(t);

    input.rank = array->rank;
    memcpy(input.dims, array->dims, sizeof(input.dims));
    input.bytes = array->elements * muc_dtype_get(t->dtype)->block_bytes;
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, input.bytes + 1, out));
    return muc_port_convert(r->ctx, &input, array, *out);
}

static muc_status take_input(runner *r, const muc_tensor *t, const muc_tensor_view *array,
                             muc_ref_input *out)
{
    uint8_t *data;

    MUC_TRY(check_shape(r, t, array));
    if (is_to_quantize(t, array))
        MUC_TRY(quantize(r, t, array, &data));
    else
        MUC_TRY(muc_array_convert(r->ctx, array, t->dtype, r->arena, &data));
    *out = (muc_ref_input){ t->name, data,
                            (size_t)array->elements * muc_dtype_get(t->dtype)->block_bytes };
    return MUC_OK;
}

/* the axis along which a cache of exports grows; MUC_MAX_RANK of what is none */
static uint32_t cache_axis(const runner *r, const char *name)
{
    for (uint32_t i = 0; r->unified && i < r->unified->cache_count; i++)
        if (strcmp(r->unified->caches[i].name, name) == 0)
            return r->unified->caches[i].axis;
    return MUC_MAX_RANK;
}

/* what a cache holds: as many rows as there are positions */
static muc_status bind_cache(runner *r, const muc_tensor *state, const muc_tensor_view *array)
{
    uint32_t pos = muc_expr_find_input(r->graph->pool, "pos");
    uint32_t axis = cache_axis(r, state->name);

    if (array->rank != state->rank || axis >= array->rank || pos == UINT32_MAX)
        return fail_shape(r, state, array);
    return bind_dim(r, pos, array->dims[axis], state, array);
}

/* the rows as the first of the state, which has room for more */
static muc_status fill_cache(const runner *r, muc_ref *ref, uint32_t id,
                             const muc_tensor_view *array)
{
    const muc_tensor *state = &r->graph->tensors[id];
    uint32_t axis = cache_axis(r, state->name), room;
    size_t blocks = 1, row = muc_dtype_get(state->dtype)->block_bytes;
    uint8_t *rows, *all;

    for (uint32_t i = 0; i < state->rank; i++) {
        uint32_t dim = muc_expr_get(r->graph->pool, state->dims[i])->immediate;

        if (i != axis && dim != array->dims[i])
            return fail_shape(r, state, array);
        blocks *= i < axis ? dim : 1;
        row *= i > axis ? dim : 1;
    }
    room = muc_expr_get(r->graph->pool, state->dims[axis])->immediate;
    if (array->dims[axis] > room)
        return fail_shape(r, state, array);
    MUC_TRY(muc_array_convert(r->ctx, array, state->dtype, r->arena, &rows));
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, blocks * room * row + 1, &all));
    for (size_t i = 0; i < blocks; i++)
        memcpy(all + i * room * row, rows + i * (size_t)array->dims[axis] * row,
               (size_t)array->dims[axis] * row);
    return muc_ref_set_state(ref, id, all, blocks * room * row);
}

/* the record of the export of these lengths */
static muc_status find_record(const runner *r, muc_ref_input *out)
{
    const muc_unified *u = r->unified;
    uint32_t pos = muc_expr_find_input(r->graph->pool, "pos");
    uint32_t m = muc_expr_find_input(r->graph->pool, "m");

    for (uint32_t i = 0; i < u->export_count; i++)
        if ((pos == UINT32_MAX || u->exports[i].pos == r->bindings[pos].value) &&
            (m == UINT32_MAX || u->exports[i].m == r->bindings[m].value)) {
            *out = (muc_ref_input){ MUC_UNIFY_RECORD, u->exports[i].record,
                                    u->record_words * sizeof(*u->exports[i].record) };
            return MUC_OK;
        }
    return muc_fail(r->ctx, MUC_USAGE, r->graph->name, MUC_NO_OFFSET,
                    "none of the %" PRIu32 " exports has the arrays' lengths: the calibration "
                    "record is to be given as the array '" MUC_UNIFY_RECORD "'",
                    u->export_count);
}

/* the names that arrays have or would have, in order, and their tensors */
static muc_status list_ports(runner *r, const char ***names, port **ports, size_t *count)
{
    const muc_graph *graph = r->graph;
    const muc_unified *u = r->unified;

    *count = 0;
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, graph->tensor_count + (size_t)1, names));
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, graph->tensor_count + (size_t)1, ports));
    for (uint32_t i = 0; u && i < u->input_count; i++) {
        uint32_t id = muc_graph_find(graph, u->inputs[i]);

        if (id == MUC_NO_ID || (graph->tensors[id].kind != MUC_TENSOR_INPUT &&
                                graph->tensors[id].kind != MUC_TENSOR_STATE))
            return muc_fail(r->ctx, MUC_BUG, graph->name, MUC_NO_OFFSET,
                            "'%s' of the exports is not an input of their graph", u->inputs[i]);
        (*names)[*count] = u->inputs[i];
        (*ports)[(*count)++].tensor = id;
    }
    for (uint32_t i = 0; !u && i < graph->tensor_count; i++)
        if (graph->tensors[i].kind == MUC_TENSOR_INPUT) {
            (*names)[*count] = graph->tensors[i].name;
            (*ports)[(*count)++].tensor = i;
        }
    return MUC_OK;
}

static muc_status match_ports(runner *r, const muc_tensor_view *arrays, size_t array_count)
{
    const char **names;

    MUC_TRY(list_ports(r, &names, &r->ports, &r->port_count));
    for (size_t i = 0; i < r->port_count; i++) {
        const muc_tensor *t = &r->graph->tensors[r->ports[i].tensor];
        const muc_tensor_view *array =
            muc_network_match(arrays, array_count, names, r->port_count, i);

        if (!array)
            return muc_network_refuse_input(r->ctx, r->graph->name, arrays, array_count, names[i]);
        r->ports[i].array = array;
        MUC_TRY(t->kind == MUC_TENSOR_STATE ? bind_cache(r, t, array) : bind_dims(r, t, array));
    }
    return MUC_OK;
}

static muc_status take_record(runner *r, const muc_tensor_view *arrays, size_t array_count,
                              muc_ref_input *out)
{
    uint32_t id = muc_graph_find(r->graph, MUC_UNIFY_RECORD);

    for (size_t i = 0; i < array_count; i++)
        if (strcmp(arrays[i].name, MUC_UNIFY_RECORD) == 0 && id != MUC_NO_ID)
            return take_input(r, &r->graph->tensors[id], &arrays[i], out);
    return find_record(r, out);
}

static muc_status take_inputs(runner *r, const muc_tensor_view *arrays, size_t array_count,
                              muc_ref_input **out, size_t *count)
{
    *count = 0;
    MUC_TRY(match_ports(r, arrays, array_count));
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, r->port_count + 1, out));
    for (size_t i = 0; i < r->port_count; i++) {
        const muc_tensor *t = &r->graph->tensors[r->ports[i].tensor];

        if (t->kind == MUC_TENSOR_INPUT)
            MUC_TRY(take_input(r, t, r->ports[i].array, &(*out)[(*count)++]));
    }
    if (r->unified && r->unified->record_words)
        MUC_TRY(take_record(r, arrays, array_count, &(*out)[(*count)++]));
    return MUC_OK;
}

static muc_status fill_caches(const runner *r, muc_ref *ref)
{
    for (size_t i = 0; i < r->port_count; i++)
        if (r->graph->tensors[r->ports[i].tensor].kind == MUC_TENSOR_STATE)
            MUC_TRY(fill_cache(r, ref, r->ports[i].tensor, r->ports[i].array));
    return MUC_OK;
}

static muc_status copy_output(const runner *r, const muc_ref *ref, uint32_t tensor,
                              muc_tensor_view *out)
{
    const muc_tensor *t = &r->graph->tensors[tensor];
    muc_tensor_view kept = { .name = t->name, .file = r->graph->name };
    muc_ref_view view;
    uint8_t *data;

    if (!muc_ref_get(ref, tensor, &view))
        return muc_fail(r->ctx, MUC_BUG, r->graph->name, MUC_NO_OFFSET, "'%s' was not computed",
                        t->name);
    kept.dtype = view.dtype;
    kept.rank = view.rank;
    for (uint32_t i = 0; i < view.rank; i++)
        kept.dims[i] = view.dims[i];
    kept.data = view.data;
    MUC_TRY(muc_tensor_measure(r->ctx, &kept));
    *out = kept;
    out->dtype = t->dtype == MUC_BF16 ? MUC_F32 : t->dtype;
    MUC_TRY(muc_array_convert(r->ctx, &kept, out->dtype, r->arena, &data));
    out->data = data;
    return muc_tensor_measure(r->ctx, out);
}

/* the session after its run */
static muc_status evaluate(runner *r, const muc_tensor_view *arrays, size_t array_count,
                           muc_ref **ref)
{
    uint32_t bindings[MUC_EXPR_MAX_INPUTS];
    muc_ref_input *inputs;
    muc_status status;
    size_t count;

    *ref = NULL;
    MUC_TRY(take_inputs(r, arrays, array_count, &inputs, &count));
    for (uint32_t i = 0; i < MUC_EXPR_MAX_INPUTS; i++)
        bindings[i] = r->bindings[i].value;
    MUC_TRY(muc_ref_open_chip(r->ctx, r->graph, r->on_chip, ref));
    muc_ref_tell_progress(*ref);
    muc_ref_set_probe(*ref, r->probe, r->probe_arg);
    if (r->end)
        muc_ref_set_range(*ref, 0, r->end);
    status = fill_caches(r, *ref);
    if (status == MUC_OK)
        status = muc_ref_run(*ref, bindings, inputs, count);
    if (status != MUC_OK) {
        muc_ref_close(*ref);
        *ref = NULL;
    }
    return status;
}

/* ---- runs in a row ---- */

/* what arrays an input has, as its shape, which is fixed; false if it is not */
static bool fixed_dims(const runner *r, const muc_tensor *tensor, uint64_t dims[MUC_MAX_RANK])
{
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (!muc_expr_is_const(r->graph->pool, tensor->dims[i]))
            return false;
        dims[i] = muc_expr_get(r->graph->pool, tensor->dims[i])->immediate;
    }
    return true;
}

static bool keeps_state(const runner *r)
{
    for (uint32_t i = 0; i < r->graph->tensor_count; i++)
        if (r->graph->tensors[i].kind == MUC_TENSOR_STATE)
            return true;
    return false;
}

/* how many runs the arrays are for, 0: one */
static muc_status count_runs(runner *r, const muc_tensor_view *arrays, size_t count, uint64_t *runs)
{
    uint64_t dims[MUC_MAX_RANK];
    const char **names;
    port *ports;
    size_t most;

    *runs = 0;
    if (r->unified || !keeps_state(r))
        return MUC_OK;
    MUC_TRY(list_ports(r, &names, &ports, &most));
    for (size_t i = 0; i < most; i++) {
        const muc_tensor *t = &r->graph->tensors[ports[i].tensor];
        const muc_tensor_view *array = muc_network_match(arrays, count, names, most, i);

        if (array && fixed_dims(r, t, dims))
            MUC_TRY(muc_runs_add(r->ctx, t->name, t->rank, dims, array, runs));
    }
    return MUC_OK;
}

/* run i of the session, whose inputs are in ports */
static muc_status run_one(runner *r, muc_ref *ref, uint64_t i)
{
    const uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    muc_ref_input *inputs;

    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, r->port_count + 1, &inputs));
    for (size_t p = 0; p < r->port_count; p++) {
        const muc_tensor *t = &r->graph->tensors[r->ports[p].tensor];
        uint64_t dims[MUC_MAX_RANK];
        const muc_tensor_view slice = fixed_dims(r, t, dims)
                                          ? muc_runs_slice(r->ports[p].array, t->rank, dims, i)
                                          : *r->ports[p].array;

        MUC_TRY(take_input(r, t, &slice, &inputs[p]));
    }
    return muc_ref_run(ref, bindings, inputs, r->port_count);
}

static muc_status run_row(runner *r, muc_ref *ref, uint64_t runs, muc_tensor_view **outputs)
{
    const muc_graph *graph = r->graph;
    uint8_t **data;

    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, graph->output_count, outputs));
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, graph->output_count, &data));
    for (uint64_t run = 0; run < runs; run++) {
        MUC_TRY(run_one(r, ref, run));
        for (uint32_t i = 0; i < graph->output_count; i++) {
            muc_tensor_view one;

            MUC_TRY(copy_output(r, ref, graph->outputs[i], &one));
            if (run == 0)
                MUC_TRY(muc_runs_stack(r->ctx, r->arena, runs, &one, &(*outputs)[i], &data[i]));
            memcpy(data[i] + run * one.bytes, one.data, (size_t)one.bytes);
        }
    }
    return MUC_OK;
}

muc_status muc_network_run_row(muc_context *ctx, muc_graph *graph, const muc_unified *unified,
                               const muc_tensor_view *arrays, size_t array_count, muc_arena *arena,
                               muc_tensor_view **outputs)
{
    runner r = { .ctx = ctx, .graph = graph, .unified = unified, .arena = arena };
    muc_status status;
    uint64_t runs;
    muc_ref *ref;

    MUC_TRY(count_runs(&r, arrays, array_count, &runs));
    if (runs) {
        MUC_TRY(match_ports(&r, arrays, array_count));
        MUC_TRY(muc_ref_open(ctx, graph, &ref));
        status = run_row(&r, ref, runs, outputs);
    } else {
        MUC_TRY(evaluate(&r, arrays, array_count, &ref));
        status = muc_network_results(ctx, graph, ref, arena, outputs);
    }
    muc_ref_close(ref);
    return status;
}

muc_status muc_network_evaluate_first(muc_context *ctx, muc_graph *graph,
                                      const muc_tensor_view *arrays, size_t array_count,
                                      uint32_t end, const bool *on_chip, muc_arena *arena,
                                      muc_ref **ref)
{
    runner r = { .ctx = ctx, .graph = graph, .arena = arena, .end = end, .on_chip = on_chip };

    return evaluate(&r, arrays, array_count, ref);
}

muc_status muc_network_evaluate(muc_context *ctx, muc_graph *graph, const muc_tensor_view *arrays,
                                size_t array_count, muc_arena *arena, muc_ref **ref)
{
    return muc_exports_evaluate(ctx, graph, NULL, arrays, array_count, NULL, NULL, arena, ref);
}

muc_status muc_exports_evaluate(muc_context *ctx, muc_graph *graph, const muc_unified *unified,
                                const muc_tensor_view *arrays, size_t array_count,
                                muc_ref_probe *probe, void *probe_arg, muc_arena *arena,
                                muc_ref **ref)
{
    runner r = { .ctx = ctx,
                 .graph = graph,
                 .unified = unified,
                 .arena = arena,
                 .probe = probe,
                 .probe_arg = probe_arg };

    return evaluate(&r, arrays, array_count, ref);
}

muc_status muc_network_results(muc_context *ctx, muc_graph *graph, const muc_ref *ref,
                               muc_arena *arena, muc_tensor_view **outputs)
{
    const runner r = { .ctx = ctx, .graph = graph, .arena = arena };

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, graph->output_count, outputs));
    for (uint32_t i = 0; i < graph->output_count; i++)
        MUC_TRY(copy_output(&r, ref, graph->outputs[i], &(*outputs)[i]));
    return MUC_OK;
}

muc_status muc_network_run(muc_context *ctx, muc_graph *graph, const muc_tensor_view *arrays,
                           size_t array_count, muc_arena *arena, muc_tensor_view **outputs)
{
    muc_status status;
    muc_ref *ref;

    MUC_TRY(muc_network_evaluate(ctx, graph, arrays, array_count, arena, &ref));
    status = muc_network_results(ctx, graph, ref, arena, outputs);
    muc_ref_close(ref);
    return status;
}
