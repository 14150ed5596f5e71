/* ref.c - a session: values of all tensors, constants as floats, and the walk over the nodes. */
#include "ref/ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ref/golden.h"
#include "ref/kernels.h"

struct muc_ref {
    muc_context *ctx;
    muc_graph *graph;
    muc_ref_value *values; /* [tensor_count] */
    float *scratch;
    size_t scratch_floats;
    uint32_t first_node, end_node; /* that runs compute */
    muc_golden *golden;            /* NULL: float32 */
    muc_ref_probe *probe;
    void *probe_arg;
};

/* makes room for floats in *data, without keeping what it held */
static muc_status reserve(muc_ref *ref, size_t floats, float **data, size_t *capacity)
{
    float *grown;

    if (floats <= *capacity && *data)
        return MUC_OK;
    MUC_TRY(MUC_NEW_ARRAY(ref->ctx, ref->graph->name, floats, &grown));
    free(*data);
    *data = grown;
    *capacity = floats;
    return MUC_OK;
}

/* rows and columns of a tensor in this run */
static muc_status set_shape(muc_ref *ref, const muc_tensor *tensor, const uint32_t *bindings,
                            muc_ref_value *value)
{
    uint64_t elements, bytes;
    uint32_t columns = 1;

    MUC_TRY(muc_tensor_measure_bound(ref->ctx, ref->graph, tensor, bindings, &elements, &bytes));
    if (tensor->rank > 0)
        MUC_TRY(muc_expr_eval(ref->ctx, ref->graph->pool, tensor->dims[tensor->rank - 1], bindings,
                              &columns));
    if (elements > SIZE_MAX / sizeof(float))
        return muc_fail_nomem(ref->ctx, ref->graph->name, SIZE_MAX);
    value->columns = columns;
    value->rows = columns ? (size_t)elements / columns : 0;
    return MUC_OK;
}

static muc_status convert(muc_ref *ref, const muc_tensor *tensor, muc_ref_value *value)
{
    size_t count = value->rows * value->columns;
    muc_ref_value *v = value;

    if (!tensor->data)
        return muc_fail(ref->ctx, MUC_UNSUPPORTED, ref->graph->name, MUC_NO_OFFSET,
                        "constant '%s' has no data", tensor->name);
    if (tensor->dtype == MUC_F32 && (uintptr_t)tensor->data % sizeof(float) == 0) {
        v->read = (const float *)(const void *)tensor->data;
    } else {
        MUC_TRY(reserve(ref, count, &v->data, &v->capacity));
        v->read = v->data;
        if (!muc_dtype_to_f32(tensor->dtype, tensor->data, 0, count, v->data))
            return muc_fail(ref->ctx, MUC_UNSUPPORTED, ref->graph->name, MUC_NO_OFFSET,
                            "constant '%s' is of type %s, expected a type of real numbers",
                            tensor->name, muc_dtype_get(tensor->dtype)->name);
    }
    for (size_t i = 0; i < count; i++)
        if (!isfinite(v->read[i]))
            return muc_fail(ref->ctx, MUC_MALFORMED, ref->graph->name, MUC_NO_OFFSET,
                            "constant '%s': element %zu is not finite", tensor->name, i);
    return MUC_OK;
}

static muc_ref_kernel kernel_of(const muc_ref *ref, muc_op op)
{
    return ref->golden ? muc_golden_kernel_of(op) : muc_ref_kernel_of(op);
}

/* constants and states, whose shapes depend on nothing */
static muc_status prepare(muc_ref *ref)
{
    const muc_graph *graph = ref->graph;

    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        const muc_tensor *tensor = &graph->tensors[i];
        muc_ref_value *value = &ref->values[i];

        if (tensor->kind != MUC_TENSOR_CONST && tensor->kind != MUC_TENSOR_STATE)
            continue;
        MUC_TRY(set_shape(ref, tensor, NULL, value));
        if (tensor->kind == MUC_TENSOR_CONST && ref->golden && ref->golden->weights[i])
            continue; /* the machine reads the sequence */
        if (tensor->kind == MUC_TENSOR_CONST) {
            MUC_TRY(convert(ref, tensor, value));
        } else {
            MUC_TRY(reserve(ref, value->rows * value->columns, &value->data, &value->capacity));
            value->read = value->data;
        }
    }
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (!kernel_of(ref, graph->nodes[i].op).run)
            return muc_fail(ref->ctx, MUC_UNSUPPORTED, graph->name, MUC_NO_OFFSET,
                            "node '%s': no kernel runs %s", graph->nodes[i].name,
                            muc_op_get(graph->nodes[i].op)->name);
    return MUC_OK;
}

/* terms is NULL for float32 */
static muc_status open_session(muc_context *ctx, muc_graph *graph, const muc_ref_terms *terms,
                               muc_ref **out)
{
    muc_ref *ref;
    muc_status status;

    MUC_TRY(muc_graph_verify(ctx, graph));
    MUC_TRY(MUC_NEW_ARRAY(ctx, graph->name, 1, &ref));
    ref->ctx = ctx;
    ref->graph = graph;
    ref->end_node = graph->node_count;
    status = MUC_NEW_ARRAY(ctx, graph->name, graph->tensor_count, &ref->values);
    if (status == MUC_OK && terms)
        status = muc_golden_new(ctx, graph, terms, &ref->golden);
    if (status == MUC_OK)
        status = prepare(ref);
    if (status != MUC_OK) {
        muc_ref_close(ref);
        return status;
    }
    *out = ref;
    return MUC_OK;
}

muc_status muc_ref_open(muc_context *ctx, muc_graph *graph, muc_ref **out)
{
    return open_session(ctx, graph, NULL, out);
}

muc_status muc_ref_open_machine(muc_context *ctx, muc_graph *graph, const muc_ref_terms *terms,
                                muc_ref **out)
{
    return open_session(ctx, graph, terms, out);
}

void muc_ref_close(muc_ref *ref)
{
    if (!ref)
        return;
    for (uint32_t i = 0; ref->values && i < ref->graph->tensor_count; i++)
        free(ref->values[i].data);
    muc_golden_free(ref->golden);
    free(ref->values);
    free(ref->scratch);
    free(ref);
}

void muc_ref_reset(muc_ref *ref)
{
    for (uint32_t i = 0; i < ref->graph->tensor_count; i++)
        if (ref->graph->tensors[i].kind == MUC_TENSOR_STATE)
            memset(ref->values[i].data, 0, ref->values[i].capacity * sizeof(float));
    if (ref->golden)
        muc_golden_reset(ref->golden);
}

void muc_ref_set_probe(muc_ref *ref, muc_ref_probe *probe, void *arg)
{
    ref->probe = probe;
    ref->probe_arg = arg;
}

void muc_ref_set_slots_probe(muc_ref *ref, muc_ref_slots_probe *probe, void *arg)
{
    ref->golden->probe = probe;
    ref->golden->probe_arg = arg;
}

static muc_status take_input(muc_ref *ref, uint32_t id, const uint32_t *bindings,
                             const muc_ref_input *inputs, size_t count)
{
    const muc_tensor *tensor = &ref->graph->tensors[id];
    muc_ref_value *value = &ref->values[id];
    uint64_t elements, bytes;

    MUC_TRY(muc_tensor_measure_bound(ref->ctx, ref->graph, tensor, bindings, &elements, &bytes));
    MUC_TRY(set_shape(ref, tensor, bindings, value));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(inputs[i].name, tensor->name) != 0)
            continue;
        if (inputs[i].bytes != bytes)
            return muc_fail(ref->ctx, MUC_USAGE, ref->graph->name, MUC_NO_OFFSET,
                            "input '%s' has %zu bytes, expected %llu", tensor->name,
                            inputs[i].bytes, (unsigned long long)bytes);
        value->integers = inputs[i].data;
        if (muc_dtype_get(tensor->dtype)->kind != MUC_DTYPE_FLOAT)
            return MUC_OK;
        MUC_TRY(reserve(ref, (size_t)elements, &value->data, &value->capacity));
        value->read = value->data;
        muc_dtype_to_f32(tensor->dtype, inputs[i].data, 0, elements, value->data);
        return MUC_OK;
    }
    return muc_fail(ref->ctx, MUC_USAGE, ref->graph->name, MUC_NO_OFFSET, "input '%s' is missing",
                    tensor->name);
}

static muc_status run_node(muc_ref *ref, const muc_node *node, const uint32_t *bindings)
{
    muc_ref_call call = { .ctx = ref->ctx,
                          .graph = ref->graph,
                          .node = node,
                          .bindings = bindings,
                          .values = ref->values,
                          .golden = ref->golden,
                          .probe = ref->probe,
                          .probe_arg = ref->probe_arg };
    muc_ref_kernel kernel = kernel_of(ref, node->op);
    uint32_t output = node->outputs[0];

    if (ref->golden && ref->golden->nodes[node - ref->graph->nodes].absorbed)
        return MUC_OK;
    call.output = &ref->values[output];
    for (uint32_t i = 0; i < node->input_count; i++) {
        call.inputs[i] = &ref->values[node->inputs[i]];
        call.input_tensors[i] = &ref->graph->tensors[node->inputs[i]];
    }
    MUC_TRY(set_shape(ref, &ref->graph->tensors[output], bindings, call.output));
    MUC_TRY(reserve(ref, call.output->rows * call.output->columns, &call.output->data,
                    &call.output->capacity));
    call.output->read = call.output->data;
    if (kernel.scratch_floats)
        MUC_TRY(reserve(ref, kernel.scratch_floats(&call), &ref->scratch, &ref->scratch_floats));
    call.scratch = ref->scratch;
    MUC_TRY(kernel.run(&call));
    if (ref->probe)
        ref->probe(ref->probe_arg, node, node->name, call.output->read, call.output->rows,
                   call.output->columns);
    return MUC_OK;
}

muc_status muc_ref_run(muc_ref *ref, const uint32_t *bindings, const muc_ref_input *inputs,
                       size_t input_count)
{
    const muc_graph *graph = ref->graph;

    MUC_TRY(muc_expr_check_bindings(ref->ctx, graph->pool, bindings));
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].kind == MUC_TENSOR_INPUT)
            MUC_TRY(take_input(ref, i, bindings, inputs, input_count));
    for (uint32_t i = ref->first_node; i < ref->end_node; i++)
        MUC_TRY(run_node(ref, &graph->nodes[i], bindings));
    return MUC_OK;
}

muc_status muc_ref_run_tokens(muc_ref *ref, uint32_t pos, const int32_t *tokens, uint32_t count)
{
    const muc_ref_input input = { "tokens", tokens, count * sizeof(*tokens) };
    uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    uint32_t pos_input = muc_expr_find_input(ref->graph->pool, "pos");
    uint32_t m_input = muc_expr_find_input(ref->graph->pool, "m");

    if (pos_input == UINT32_MAX || m_input == UINT32_MAX)
        return muc_fail(ref->ctx, MUC_USAGE, ref->graph->name, MUC_NO_OFFSET,
                        "the graph has no inputs 'pos' and 'm'");
    bindings[pos_input] = pos;
    bindings[m_input] = count;
    return muc_ref_run(ref, bindings, &input, 1);
}

void muc_ref_set_range(muc_ref *ref, uint32_t first, uint32_t end)
{
    ref->first_node = first;
    ref->end_node = end;
}

muc_status muc_ref_put(muc_ref *ref, uint32_t activation, const float *data, size_t rows,
                       size_t columns)
{
    muc_ref_value *value = &ref->values[activation];

    MUC_TRY(reserve(ref, rows * columns, &value->data, &value->capacity));
    memcpy(value->data, data, rows * columns * sizeof(float));
    value->read = value->data;
    value->rows = rows;
    value->columns = columns;
    return MUC_OK;
}

void muc_ref_replace(muc_ref *ref, uint32_t constant, const float *values)
{
    ref->values[constant].read = values;
}

const float *muc_ref_read(const muc_ref *ref, const char *name, size_t *rows, size_t *columns)
{
    uint32_t id = muc_graph_find(ref->graph, name);

    if (id == MUC_NO_ID || !ref->values[id].data)
        return NULL;
    *rows = ref->values[id].rows;
    *columns = ref->values[id].columns;
    return ref->values[id].data;
}
