/* network.c - arrays to inputs, the reference's run, results to arrays. */
#include "driver/network.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/text.h"
#include "ref/ref.h"

/* ---- dimensions ---- */

typedef struct binding {
    uint32_t value;
    const char *input; /* that decided it, or NULL */
} binding;

typedef struct runner {
    muc_context *ctx;
    muc_graph *graph;
    muc_arena *arena;
    binding bindings[MUC_EXPR_MAX_INPUTS];
} runner;

static muc_status fail_shape(const runner *r, const muc_tensor *tensor,
                             const muc_tensor_view *array)
{
    muc_text text = { 0 };
    muc_status status;

    muc_tensor_print_shape(r->graph, tensor, &text);
    muc_text_add(&text, ", the array '%s' is %s [", array->name, muc_dtype_get(array->dtype)->name);
    for (uint32_t i = 0; i < array->rank; i++)
        muc_text_add(&text, "%s%" PRIu64, i ? ", " : "", array->dims[i]);
    muc_text_add(&text, "]");
    status = muc_fail(r->ctx, MUC_USAGE, r->graph->name, MUC_NO_OFFSET, "input '%s' is %s",
                      tensor->name, text.data ? text.data : "?");
    muc_text_free(&text);
    return status;
}

/* true if no dimension is open, and the array has as many elements */
static bool same_elements(const runner *r, const muc_tensor *tensor, const muc_tensor_view *array)
{
    uint64_t elements = 1;

    for (uint32_t i = 0; i < tensor->rank; i++)
        if (!muc_expr_is_const(r->graph->pool, tensor->dims[i]) ||
            !muc_mul_u64(elements, muc_expr_get(r->graph->pool, tensor->dims[i])->immediate,
                         &elements))
            return false;
    return elements == array->elements;
}

static muc_status bind_dims(runner *r, const muc_tensor *tensor, const muc_tensor_view *array)
{
    if (same_elements(r, tensor, array))
        return MUC_OK;
    if (array->rank != tensor->rank)
        return fail_shape(r, tensor, array);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        const muc_expr_node *node = muc_expr_get(r->graph->pool, tensor->dims[i]);
        binding *bound = &r->bindings[node->immediate % MUC_EXPR_MAX_INPUTS];

        if (array->dims[i] > UINT32_MAX ||
            (node->op == MUC_EXPR_CONST && node->immediate != array->dims[i]) ||
            (node->op == MUC_EXPR_INPUT && bound->input && bound->value != array->dims[i]))
            return fail_shape(r, tensor, array);
        if (node->op == MUC_EXPR_INPUT)
            *bound = (binding){ (uint32_t)array->dims[i], tensor->name };
    }
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

/* false if the type does not hold it */
static bool store(muc_dtype dtype, const element *e, bool from_integer, uint8_t *p)
{
    uint32_t size = muc_dtype_get(dtype)->block_bytes;
    uint64_t bits = (uint64_t)e->integer;
    double back = e->real;

    if (dtype == MUC_F64) {
        memcpy(&bits, &e->real, sizeof(bits));
    } else if (dtype == MUC_F32) {
        bits = muc_f32_bits((float)e->real);
        back = (double)(float)e->real;
    } else if (dtype == MUC_F16) {
        bits = muc_f16_of_f32((float)e->real);
        back = (double)muc_f32_of_f16((uint16_t)bits);
    } else if (dtype == MUC_BF16) {
        bits = muc_bf16_of_f32((float)e->real);
        back = (double)muc_f32_of_bf16((uint16_t)bits);
    }
    for (uint32_t i = 0; i < size; i++)
        p[i] = (uint8_t)(bits >> 8 * i);
    if (muc_dtype_get(dtype)->kind == MUC_DTYPE_FLOAT)
        return !from_integer || back == e->real;
    if (dtype == MUC_BOOL)
        return e->is_integer && e->integer >= 0 && e->integer <= 1;
    return e->is_integer && muc_dtype_integer(dtype, p) == e->integer &&
           (dtype != MUC_U64 || e->integer >= 0);
}

static muc_status convert(const runner *r, const muc_tensor_view *array, muc_dtype dtype,
                          uint8_t **out)
{
    uint32_t size = muc_dtype_get(dtype)->block_bytes;
    bool from_integer = muc_dtype_get(array->dtype)->kind == MUC_DTYPE_INTEGER;

    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, (size_t)array->elements * size + 1, out));
    if (array->dtype == dtype) {
        memcpy(*out, array->data, (size_t)array->bytes);
        return MUC_OK;
    }
    for (uint64_t i = 0; i < array->elements; i++) {
        element e = load(array, i);

        if (!store(dtype, &e, from_integer, *out + i * size))
            return muc_fail(r->ctx, MUC_USAGE, array->file, MUC_NO_OFFSET,
                            "array '%s': element %" PRIu64 ", %g, is no number of type %s",
                            array->name, i, e.real, muc_dtype_get(dtype)->name);
    }
    return MUC_OK;
}

/* ---- the run ---- */

static muc_status take_input(runner *r, const muc_tensor *t, const muc_tensor_view *array,
                             muc_ref_input *out)
{
    uint8_t *data;

    MUC_TRY(bind_dims(r, t, array));
    MUC_TRY(convert(r, array, t->dtype, &data));
    *out = (muc_ref_input){ t->name, data,
                            (size_t)array->elements * muc_dtype_get(t->dtype)->block_bytes };
    return MUC_OK;
}

static muc_status take_inputs(runner *r, const muc_tensor_view *arrays, size_t array_count,
                              muc_ref_input **out, size_t *count)
{
    const muc_graph *graph = r->graph;
    const char **names;
    uint32_t *inputs;

    *count = 0;
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, graph->tensor_count + (size_t)1, &names));
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, graph->tensor_count + (size_t)1, &inputs));
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].kind == MUC_TENSOR_INPUT) {
            names[*count] = graph->tensors[i].name;
            inputs[(*count)++] = i;
        }
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, *count + 1, out));
    for (size_t i = 0; i < *count; i++) {
        const muc_tensor_view *array = muc_network_match(arrays, array_count, names, *count, i);

        if (!array)
            return muc_fail(r->ctx, MUC_USAGE, graph->name, MUC_NO_OFFSET,
                            "input %zu, '%s', has no array: %zu are given", i, names[i],
                            array_count);
        MUC_TRY(take_input(r, &graph->tensors[inputs[i]], array, &(*out)[i]));
    }
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
    MUC_TRY(convert(r, &kept, out->dtype, &data));
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

    MUC_TRY(take_inputs(r, arrays, array_count, &inputs, &count));
    for (uint32_t i = 0; i < MUC_EXPR_MAX_INPUTS; i++)
        bindings[i] = r->bindings[i].value;
    MUC_TRY(muc_ref_open(r->ctx, r->graph, ref));
    muc_ref_tell_progress(*ref);
    status = muc_ref_run(*ref, bindings, inputs, count);
    if (status != MUC_OK)
        muc_ref_close(*ref);
    return status;
}

muc_status muc_network_evaluate(muc_context *ctx, muc_graph *graph, const muc_tensor_view *arrays,
                                size_t array_count, muc_arena *arena, muc_ref **ref)
{
    runner r = { .ctx = ctx, .graph = graph, .arena = arena };

    return evaluate(&r, arrays, array_count, ref);
}

static muc_status copy_outputs(runner *r, const muc_ref *ref, muc_tensor_view **outputs)
{
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, r->graph->output_count, outputs));
    for (uint32_t i = 0; i < r->graph->output_count; i++)
        MUC_TRY(copy_output(r, ref, r->graph->outputs[i], &(*outputs)[i]));
    return MUC_OK;
}

muc_status muc_network_run(muc_context *ctx, muc_graph *graph, const muc_tensor_view *arrays,
                           size_t array_count, muc_arena *arena, muc_tensor_view **outputs)
{
    runner r = { .ctx = ctx, .graph = graph, .arena = arena };
    muc_status status;
    muc_ref *ref;

    MUC_TRY(evaluate(&r, arrays, array_count, &ref));
    status = copy_outputs(&r, ref, outputs);
    muc_ref_close(ref);
    return status;
}
