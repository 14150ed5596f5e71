/* ref.c - a session: values of all tensors as kernels read them, and the walk over the nodes. */
#include "ref/ref.h"

#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/large.h"
#include "base/system.h"
#include "base/threads.h"
#include "graph/bounds.h"
#include "ref/golden/chip_integers.h"
#include "ref/golden/golden.h"
#include "ref/kernels.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "elements are stored little-endian, and borrowed"
#endif

/* The session's memory: what it has taken, and may take. */
typedef struct budget {
    size_t used, most;
} budget;

/* Memory of activations that nothing reads any more, for those that come. */
typedef struct spare {
    void *data;
    size_t capacity;
} spare;

struct muc_ref_scratch {
    budget *budget;
    void *data[2];
    size_t capacity[2];
};

struct muc_ref {
    muc_context *ctx;
    muc_graph *graph;
    muc_ref_value *values; /* [tensor_count] */
    bool *is_narrow;       /* [tensor_count]: an f64 constant that is kept as f32 */
    bool *is_widened;      /* [tensor_count]: a constant that is read through muc_ref_widen alone */
    /* [inputs or outputs of the widest node], of the node at work */
    const muc_ref_value **inputs;
    const muc_tensor **input_tensors;
    muc_ref_value **outputs;
    budget budget;
    muc_ref_scratch scratch;
    uint32_t first_node, end_node; /* that runs compute */
    muc_golden *golden;            /* NULL: float32 */
    const bool *on_chip;           /* [node_count]: in the CNN chip's arithmetic; or NULL */
    muc_ref_probe *probe;
    void *probe_arg;
    bool tells_progress;
    uint32_t *last_reader; /* [tensor_count]: a node's index, or node_count; NULL: nothing shared */
    spare *spares;         /* [tensor_count] */
    uint32_t spare_count;
};

/* bytes in the place of `instead` */
static muc_status take_budget(muc_context *ctx, const char *name, budget *b, size_t bytes,
                              size_t instead)
{
    if (bytes > b->most - (b->used - instead))
        return muc_fail(ctx, MUC_NOMEM, name, MUC_NO_OFFSET,
                        "values take more than the %zu bytes that they may", b->most);
    b->used += bytes - instead;
    return MUC_OK;
}

/* makes room for bytes in *data, without keeping what it held; zero if it is new */
static muc_status reserve(muc_context *ctx, const char *name, budget *b, size_t bytes, void **data,
                          size_t *capacity)
{
    void *grown;

    if (bytes <= *capacity && *data)
        return MUC_OK;
    MUC_TRY(take_budget(ctx, name, b, bytes, *capacity));
    MUC_TRY(muc_new_aligned(ctx, name, bytes, &grown));
    muc_aligned_free(*data);
    *data = grown;
    *capacity = bytes;
    return MUC_OK;
}

/* A state: much of a long cache may never be written. */
static muc_status reserve_state(muc_ref *ref, muc_ref_value *value)
{
    size_t bytes = value->elements * muc_dtype_get(value->dtype)->block_bytes;

    MUC_TRY(take_budget(ref->ctx, ref->graph->name, &ref->budget, bytes, 0));
    MUC_TRY(muc_zeros_new(ref->ctx, ref->graph->name, bytes, &value->data));
    value->capacity = bytes;
    value->read = value->data;
    return MUC_OK;
}

static muc_status reserve_value(muc_ref *ref, muc_ref_value *value)
{
    size_t bytes = value->elements * muc_dtype_get(value->dtype)->block_bytes;

    MUC_TRY(
        reserve(ref->ctx, ref->graph->name, &ref->budget, bytes, &value->data, &value->capacity));
    value->read = value->data;
    return MUC_OK;
}

static muc_status reserve_scratch(const muc_ref_call *call, unsigned which, size_t bytes,
                                  void **out)
{
    muc_ref_scratch *scratch = call->scratch;

    MUC_TRY(reserve(call->ctx, call->graph->name, scratch->budget, bytes, &scratch->data[which],
                    &scratch->capacity[which]));
    *out = scratch->data[which];
    return MUC_OK;
}

muc_status muc_ref_reserve(const muc_ref_call *call, size_t bytes, void **out)
{
    return reserve_scratch(call, 0, bytes, out);
}

muc_status muc_ref_reserve_inner(const muc_ref_call *call, size_t bytes, void **out)
{
    return reserve_scratch(call, 1, bytes, out);
}

/* the type that a tensor's elements are kept in */
static muc_dtype kept_type(const muc_ref *ref, uint32_t id)
{
    muc_dtype dtype = ref->graph->tensors[id].dtype;

    if ((dtype == MUC_F64 && !ref->is_narrow[id]) || ref->is_widened[id])
        return dtype;
    return muc_dtype_get(dtype)->kind == MUC_DTYPE_FLOAT ? MUC_F32 : dtype;
}

/* type and shape of a tensor in this run */
static muc_status set_shape(muc_ref *ref, uint32_t id, const uint32_t *bindings)
{
    const muc_tensor *tensor = &ref->graph->tensors[id];
    muc_ref_value *value = &ref->values[id];
    uint64_t dims[MUC_GRAPH_MAX_RANK], elements, bytes;

    for (uint32_t i = 0; i < tensor->rank; i++) {
        uint32_t dim;

        MUC_TRY(muc_expr_eval(ref->ctx, ref->graph->pool, tensor->dims[i], bindings, &dim));
        value->dims[i] = dim;
        dims[i] = dim;
    }
    value->dtype = kept_type(ref, id);
    value->rank = tensor->rank;
    if (!muc_dtype_measure(value->dtype, tensor->rank, dims, &elements, &bytes))
        return muc_fail_nomem(ref->ctx, ref->graph->name, SIZE_MAX);
    value->elements = (size_t)elements;
    value->columns = tensor->rank ? value->dims[tensor->rank - 1] : 1;
    value->rows = value->columns ? value->elements / value->columns : 0;
    return MUC_OK;
}

/* elements of a tensor's own type to the type they are kept in; to has room for them */
static void convert(const muc_tensor *tensor, const void *from, const muc_ref_value *value)
{
    if (value->dtype == tensor->dtype)
        memcpy(value->data, from, value->elements * muc_dtype_get(value->dtype)->block_bytes);
    else
        muc_dtype_to_f32(tensor->dtype, from, 0, value->elements, value->data);
}

static muc_status take_constant(muc_ref *ref, uint32_t id)
{
    const muc_tensor *tensor = &ref->graph->tensors[id];
    muc_ref_value *value = &ref->values[id];

    if (value->elements == 0)
        return reserve_value(ref, value);
    if (!tensor->data)
        return muc_fail(ref->ctx, MUC_UNSUPPORTED, ref->graph->name, MUC_NO_OFFSET,
                        "constant '%s' has no data", tensor->name);
    if (value->dtype == tensor->dtype &&
        ((ref->is_widened[id] && value->dtype != MUC_F32) || /* which reads bytes */
         (uintptr_t)tensor->data % muc_dtype_get(value->dtype)->block_bytes == 0)) {
        value->read = tensor->data;
        return MUC_OK;
    }
    MUC_TRY(reserve_value(ref, value));
    convert(tensor, tensor->data, value);
    return MUC_OK;
}

static bool is_quantized(const muc_graph *graph, uint32_t tensor)
{
    return tensor != MUC_NO_ID && graph->tensors[tensor].quantization != NULL;
}

typedef struct checked_row {
    muc_ref_kernel *kernel;
    muc_ref_check *check;
} checked_row;

/* what ops.def says of each operator's kernels */
static const struct {
    muc_op op;
    muc_ref_kernel *plain;
    checked_row quantized, hybrid;
    muc_ref_kernel *on_chip; /* in place of quantized, in the CNN chip's arithmetic */
} kernels[] = {
#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    { .op = MUC_OP_##id, MUC_FACTS facts },
#define REF(kernel) .plain = muc_kernel_##kernel,
#define QUANTIZED(kernel, check) .quantized = { muc_kernel_##kernel, muc_check_##check },
#define HYBRID(kernel, check) .hybrid = { muc_kernel_##kernel, muc_check_##check },
#define CHIP_INTEGERS(kernel) .on_chip = muc_kernel_chip_##kernel,
#include "graph/ops.def"
};

/* NULL for a node that computes on no quantized tensor; what it gives may hold no kernel */
static const checked_row *checked_row_of(const muc_graph *graph, const muc_node *node)
{
    unsigned flags = muc_op_get(node->op)->flags;

    if ((is_quantized(graph, muc_node_input(node, 0)) || is_quantized(graph, node->outputs[0])) &&
        (kernels[node->op].quantized.kernel || !(flags & MUC_OP_MOVES)))
        return &kernels[node->op].quantized;
    if ((flags & MUC_OP_MIXED && is_quantized(graph, muc_node_input(node, 1))) ||
        (node->op == MUC_OP_ATTENTION && node->input_count > 5))
        return &kernels[node->op].hybrid;
    return NULL;
}

muc_ref_kernel *muc_ref_kernel_of(const muc_graph *graph, const muc_node *node)
{
    const checked_row *row = checked_row_of(graph, node);

    return row ? row->kernel : kernels[node->op].plain;
}

bool muc_ref_runs(muc_op op)
{
    return kernels[op].plain != NULL;
}

static muc_ref_kernel *kernel_of(const muc_ref *ref, const muc_node *node)
{
    if (ref->on_chip && ref->on_chip[node - ref->graph->nodes] && kernels[node->op].on_chip)
        return kernels[node->op].on_chip;
    return ref->golden ? muc_golden_kernel_of(node) : muc_ref_kernel_of(ref->graph, node);
}

/* whether a node takes this input as float32 whatever its type */
static bool is_mixed(const muc_graph *graph, const muc_node *node, uint32_t input)
{
    return input > 0 && muc_op_has(node->op, MUC_OP_MIXED) &&
           graph->tensors[node->outputs[0]].dtype == MUC_F32;
}

/* whether a kernel runs the node, and takes its types, scales and shapes */
static muc_status check_kernel(const muc_ref *ref, const muc_node *node)
{
    const muc_graph *graph = ref->graph;
    const checked_row *row = checked_row_of(graph, node);
    muc_ref_call call = {
        .ctx = ref->ctx, .graph = graph, .node = node, .input_tensors = ref->input_tensors
    };

    if (!kernel_of(ref, node))
        return muc_fail_on(muc_node_subject(ref->ctx, graph, node), MUC_UNSUPPORTED,
                           "no kernel runs %s%s", muc_op_get(node->op)->name,
                           graph->tensors[node->outputs[0]].quantization ? ", quantized" : "");
    if (!row || row->kernel != kernel_of(ref, node))
        return MUC_OK;
    for (uint32_t i = 0; i < node->input_count; i++)
        ref->input_tensors[i] =
            node->inputs[i] == MUC_NO_ID ? NULL : &graph->tensors[node->inputs[i]];
    return row->check(&call);
}

/* Weights of matrix products and tables of embeddings stay as the checkpoint has them: widened,
 * they would take two to sixteen times the memory. */
static void find_widened(muc_ref *ref)
{
    const muc_graph *graph = ref->graph;

    for (uint32_t i = 0; !ref->golden && i < graph->tensor_count; i++)
        ref->is_widened[i] = graph->tensors[i].kind == MUC_TENSOR_CONST && graph->tensors[i].data &&
                             graph->tensors[i].rank == 2 &&
                             muc_dtype_get(graph->tensors[i].dtype)->kind == MUC_DTYPE_FLOAT &&
                             graph->tensors[i].dtype != MUC_F64;
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t j = 0; j < graph->nodes[i].input_count; j++) {
            const muc_node *node = &graph->nodes[i];
            bool widens = muc_op_has_matrix(node->op) && j == 1 && is_mixed(graph, node, j);

            if (!widens && node->inputs[j] != MUC_NO_ID)
                ref->is_widened[node->inputs[j]] = false;
        }
    for (uint32_t i = 0; i < graph->output_count; i++)
        ref->is_widened[graph->outputs[i]] = false;
}

static muc_status check_readers(muc_ref *ref)
{
    const muc_graph *graph = ref->graph;

    find_widened(ref);
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t j = 0; j < graph->nodes[i].input_count; j++) {
            uint32_t id = graph->nodes[i].inputs[j];

            if (id != MUC_NO_ID && graph->tensors[id].dtype == MUC_F64 &&
                is_mixed(graph, &graph->nodes[i], j))
                ref->is_narrow[id] = graph->tensors[id].kind == MUC_TENSOR_CONST;
        }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const muc_node *node = &graph->nodes[i];

        MUC_TRY(check_kernel(ref, node));
        for (uint32_t j = 0; j < node->input_count; j++) {
            uint32_t id = node->inputs[j];
            bool mixed = is_mixed(graph, node, j);

            if (id != MUC_NO_ID && (mixed ? kept_type(ref, id) == MUC_F64 : ref->is_narrow[id]))
                return muc_fail_on(muc_node_subject(ref->ctx, graph, node), MUC_UNSUPPORTED,
                                   "f64 '%s' beside f32", graph->tensors[id].name);
        }
    }
    return MUC_OK;
}

static muc_status check_weights(void *arg, size_t i)
{
    const muc_ref *ref = arg;
    const muc_node *node = &ref->graph->nodes[i];

    for (uint32_t j = 1; j < node->input_count; j++) {
        uint32_t id = node->inputs[j];

        if (id != MUC_NO_ID && muc_op_has(node->op, MUC_OP_MIXED) &&
            ref->graph->tensors[id].kind == MUC_TENSOR_CONST && ref->values[id].read)
            MUC_TRY(muc_ref_check_finite(ref->ctx, ref->graph, id, &ref->values[id]));
    }
    return MUC_OK;
}

static bool is_state(const muc_ref *ref, uint32_t id)
{
    return ref->graph->tensors[id].kind == MUC_TENSOR_STATE;
}

static void reset_states(muc_ref *ref)
{
    for (uint32_t i = 0; i < ref->graph->tensor_count; i++) {
        const muc_ref_value *value = &ref->values[i];

        if (!is_state(ref, i) || value->capacity == 0)
            continue;
        muc_zeros_clear(value->data, value->capacity);
        if (muc_tensor_first_byte(&ref->graph->tensors[i]) != 0)
            memset(value->data, muc_tensor_first_byte(&ref->graph->tensors[i]), value->capacity);
    }
}

/* constants and states, whose shapes depend on nothing */
static muc_status prepare(muc_ref *ref)
{
    const muc_graph *graph = ref->graph;

    MUC_TRY(check_readers(ref));
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        muc_tensor_kind kind = graph->tensors[i].kind;

        if (kind != MUC_TENSOR_CONST && kind != MUC_TENSOR_STATE)
            continue;
        MUC_TRY(set_shape(ref, i, NULL));
        if (kind == MUC_TENSOR_CONST && ref->golden && ref->golden->weights[i].sequence)
            continue; /* the machine reads the sequence */
        if (kind == MUC_TENSOR_CONST)
            MUC_TRY(take_constant(ref, i));
        else
            MUC_TRY(reserve_state(ref, &ref->values[i]));
    }
    reset_states(ref);
    return muc_parallel_for(ref->ctx, graph->node_count, check_weights, ref);
}

static muc_status make_tables(muc_ref *ref)
{
    const muc_graph *graph = ref->graph;
    size_t inputs = 0, outputs = 0;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        const muc_node *node = &graph->nodes[i];

        inputs = node->input_count > inputs ? node->input_count : inputs;
        outputs = node->output_count > outputs ? node->output_count : outputs;
    }
    MUC_TRY(MUC_NEW_ARRAY(ref->ctx, graph->name, graph->tensor_count, &ref->values));
    MUC_TRY(MUC_NEW_ARRAY(ref->ctx, graph->name, graph->tensor_count, &ref->is_narrow));
    MUC_TRY(MUC_NEW_ARRAY(ref->ctx, graph->name, graph->tensor_count, &ref->is_widened));
    MUC_TRY(MUC_NEW_ARRAY(ref->ctx, graph->name, inputs, &ref->inputs));
    MUC_TRY(MUC_NEW_ARRAY(ref->ctx, graph->name, inputs, &ref->input_tensors));
    return MUC_NEW_ARRAY(ref->ctx, graph->name, outputs, &ref->outputs);
}

/* terms is NULL for float32 */
static muc_status open_session(muc_context *ctx, muc_graph *graph, const muc_ref_terms *terms,
                               const bool *on_chip, size_t max_bytes, muc_ref **out)
{
    muc_ref *ref;
    muc_status status;

    MUC_TRY(muc_graph_verify(ctx, graph));
    MUC_TRY(MUC_NEW_ARRAY(ctx, graph->name, 1, &ref));
    ref->ctx = ctx;
    ref->graph = graph;
    ref->on_chip = on_chip;
    ref->end_node = graph->node_count;
    ref->budget.most = max_bytes;
    ref->scratch.budget = &ref->budget;
    status = make_tables(ref);
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
    return open_session(ctx, graph, NULL, NULL, SIZE_MAX, out);
}

muc_status muc_ref_open_chip(muc_context *ctx, muc_graph *graph, const bool *on_chip, muc_ref **out)
{
    return open_session(ctx, graph, NULL, on_chip, SIZE_MAX, out);
}

muc_status muc_ref_open_limited(muc_context *ctx, muc_graph *graph, size_t max_bytes, muc_ref **out)
{
    return open_session(ctx, graph, NULL, NULL, max_bytes, out);
}

muc_status muc_ref_open_machine(muc_context *ctx, muc_graph *graph, const muc_ref_terms *terms,
                                muc_ref **out)
{
    return open_session(ctx, graph, terms, NULL, SIZE_MAX, out);
}

void muc_ref_close(muc_ref *ref)
{
    if (!ref)
        return;
    for (uint32_t i = 0; ref->values && i < ref->graph->tensor_count; i++) {
        if (is_state(ref, i))
            muc_large_free(ref->values[i].data, ref->values[i].capacity);
        else
            muc_aligned_free(ref->values[i].data);
    }
    muc_golden_free(ref->golden);
    free(ref->values);
    free(ref->is_narrow);
    free(ref->is_widened);
    free(ref->inputs);
    free(ref->input_tensors);
    free(ref->outputs);
    muc_aligned_free(ref->scratch.data[0]);
    muc_aligned_free(ref->scratch.data[1]);
    for (uint32_t i = 0; i < ref->spare_count; i++)
        muc_aligned_free(ref->spares[i].data);
    free(ref->last_reader);
    free(ref->spares);
    free(ref);
}

void muc_ref_reset(muc_ref *ref)
{
    reset_states(ref);
    if (ref->golden)
        muc_golden_reset(ref->golden);
}

muc_status muc_ref_set_state(muc_ref *ref, uint32_t state, const void *data, size_t bytes)
{
    muc_ref_value *value = &ref->values[state];
    size_t expected = value->elements * muc_dtype_get(value->dtype)->block_bytes;

    if (bytes != expected)
        return muc_fail(ref->ctx, MUC_USAGE, ref->graph->name, MUC_NO_OFFSET,
                        "state '%s' is given %zu bytes, expected %zu",
                        ref->graph->tensors[state].name, bytes, expected);
    memcpy(value->data, data, bytes);
    return MUC_OK;
}

void *muc_ref_state(muc_ref *ref, uint32_t state, size_t *bytes)
{
    muc_ref_value *value = &ref->values[state];

    *bytes = value->elements * muc_dtype_get(value->dtype)->block_bytes;
    return value->data;
}

muc_status muc_ref_share(muc_ref *ref)
{
    const muc_graph *graph = ref->graph;

    MUC_TRY(MUC_NEW_ARRAY(ref->ctx, graph->name, graph->tensor_count, &ref->spares));
    MUC_TRY(MUC_NEW_ARRAY(ref->ctx, graph->name, graph->tensor_count, &ref->last_reader));
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t j = 0; j < graph->nodes[i].input_count; j++)
            if (graph->nodes[i].inputs[j] != MUC_NO_ID)
                ref->last_reader[graph->nodes[i].inputs[j]] = i;
    for (uint32_t i = 0; i < graph->output_count; i++)
        ref->last_reader[graph->outputs[i]] = graph->node_count;
    return MUC_OK;
}

void muc_ref_tell_progress(muc_ref *ref)
{
    ref->tells_progress = true;
}

void muc_ref_set_probe(muc_ref *ref, muc_ref_probe *probe, void *arg)
{
    ref->probe = probe;
    ref->probe_arg = arg;
}

float *muc_ref_numbers(muc_ref *ref, uint32_t activation)
{
    return ref->values[activation].data;
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
    MUC_TRY(set_shape(ref, id, bindings));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(inputs[i].name, tensor->name) != 0)
            continue;
        if (inputs[i].bytes != bytes)
            return muc_fail(ref->ctx, MUC_USAGE, ref->graph->name, MUC_NO_OFFSET,
                            "input '%s' has %zu bytes, expected %llu", tensor->name,
                            inputs[i].bytes, (unsigned long long)bytes);
        MUC_TRY(reserve_value(ref, value));
        if (bytes)
            convert(tensor, inputs[i].data, value);
        return MUC_OK;
    }
    return muc_fail(ref->ctx, MUC_USAGE, ref->graph->name, MUC_NO_OFFSET, "input '%s' is missing",
                    tensor->name);
}

/* float32 of a tensor of 16-bit floats: to values that it has */
static void round_halves(muc_dtype dtype, const muc_ref_value *value)
{
    float *data = value->data;

    if (dtype == MUC_F16)
        for (size_t i = 0; i < value->elements; i++)
            data[i] = muc_f32_of_f16(muc_f16_of_f32(data[i]));
    if (dtype == MUC_BF16)
        for (size_t i = 0; i < value->elements; i++)
            data[i] = muc_f32_of_bf16(muc_bf16_of_f32(data[i]));
}

/* A value without memory takes the smallest that suffices, or else the largest, which grows. */
static void take_spare(muc_ref *ref, muc_ref_value *value)
{
    size_t bytes = value->elements * muc_dtype_get(value->dtype)->block_bytes;
    spare *best = NULL;

    for (uint32_t i = 0; i < ref->spare_count; i++) {
        spare *s = &ref->spares[i];

        if (!best ||
            (best->capacity < bytes ? s->capacity > best->capacity
                                    : s->capacity >= bytes && s->capacity < best->capacity))
            best = s;
    }
    if (value->data || !best)
        return;
    value->data = best->data;
    value->capacity = best->capacity;
    *best = ref->spares[--ref->spare_count];
}

/* The node has run: what it was the last to read is no longer there. */
static void leave_spares(muc_ref *ref, const muc_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t id = node->inputs[i];
        muc_ref_value *value = &ref->values[id == MUC_NO_ID ? 0 : id];

        if (id == MUC_NO_ID || ref->graph->tensors[id].kind != MUC_TENSOR_ACTIVATION ||
            ref->graph->nodes + ref->last_reader[id] != node || !value->data)
            continue;
        ref->spares[ref->spare_count++] = (spare){ value->data, value->capacity };
        value->data = NULL;
        value->read = NULL;
        value->capacity = 0;
    }
}

/* the call's view of its inputs and outputs, whose shapes are set */
static muc_status bind(muc_ref *ref, const muc_node *node, const uint32_t *bindings)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t id = node->inputs[i];

        ref->inputs[i] = id == MUC_NO_ID ? NULL : &ref->values[id];
        ref->input_tensors[i] = id == MUC_NO_ID ? NULL : &ref->graph->tensors[id];
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        ref->outputs[i] = &ref->values[node->outputs[i]];
        MUC_TRY(set_shape(ref, node->outputs[i], bindings));
        if (ref->last_reader)
            take_spare(ref, ref->outputs[i]);
        MUC_TRY(reserve_value(ref, ref->outputs[i]));
    }
    return MUC_OK;
}

/* integers that no run may hold */
static muc_status check_bounds(const muc_ref_call *call)
{
    const muc_ref_value *index = muc_ref_input_of(call, 1);
    muc_bound bounds[MUC_MOST_BOUNDS];
    uint32_t count = muc_bounds_of(call->node, index ? (uint32_t)index->columns : 0, bounds);

    for (uint32_t b = 0; b < count; b++) {
        const muc_bound *bound = &bounds[b];
        const muc_ref_value *value = call->inputs[bound->input];
        int64_t extent = bound->extents[1] ? (int64_t)call->inputs[bound->of]->dims[bound->dim] : 0;
        int64_t low = bound->extents[0] * extent + bound->ends[0];
        int64_t high = bound->extents[1] * extent + bound->ends[1];

        for (size_t i = bound->first; i < value->elements; i += bound->apart) {
            int64_t found = muc_ref_integer(value, i);

            if (found < low || found > high)
                return muc_ref_fail(call, "'%s' holds %lld at %zu, expected %lld..%lld",
                                    call->input_tensors[bound->input]->name, (long long)found, i,
                                    (long long)low, (long long)high);
        }
    }
    return MUC_OK;
}

/* whether there is nothing to compute */
static bool is_empty(const muc_ref_call *call)
{
    for (uint32_t i = 0; i < call->node->output_count; i++)
        if (call->outputs[i]->elements > 0)
            return false;
    return true;
}

static muc_status run_node(muc_ref *ref, const muc_node *node, const uint32_t *bindings)
{
    muc_ref_call call = { .ctx = ref->ctx,
                          .graph = ref->graph,
                          .node = node,
                          .bindings = bindings,
                          .values = ref->values,
                          .inputs = ref->inputs,
                          .input_tensors = ref->input_tensors,
                          .outputs = ref->outputs,
                          .scratch = &ref->scratch,
                          .golden = ref->golden,
                          .on_chip = ref->on_chip && ref->on_chip[node - ref->graph->nodes],
                          .probe = ref->probe,
                          .probe_arg = ref->probe_arg };

    if (ref->golden && ref->golden->nodes[node - ref->graph->nodes].absorbed)
        return MUC_OK;
    MUC_TRY(bind(ref, node, bindings));
    call.output = ref->outputs[0];
    /* dimensions beside one of 0 may be too many to loop over */
    if (!is_empty(&call)) {
        MUC_TRY(check_bounds(&call));
        MUC_TRY(kernel_of(ref, node)(&call));
    }
    for (uint32_t i = 0; i < node->output_count; i++)
        round_halves(ref->graph->tensors[node->outputs[i]].dtype, ref->outputs[i]);
    if (ref->probe && call.output->dtype == MUC_F32)
        ref->probe(ref->probe_arg, node, node->name, call.output->read, call.output->rows,
                   call.output->columns);
    if (ref->last_reader)
        leave_spares(ref, node);
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
    for (uint32_t i = ref->first_node; i < ref->end_node; i++) {
        if (ref->tells_progress)
            muc_progress(ref->ctx, "layers", i, graph->node_count);
        MUC_TRY(run_node(ref, &graph->nodes[i], bindings));
    }
    if (ref->tells_progress)
        muc_progress(ref->ctx, "layers", graph->node_count, graph->node_count);
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

    value->dtype = MUC_F32;
    value->rank = 2;
    value->dims[0] = value->rows = rows;
    value->dims[1] = value->columns = columns;
    value->elements = rows * columns;
    MUC_TRY(reserve_value(ref, value));
    memcpy(value->data, data, value->elements * sizeof(float));
    return MUC_OK;
}

void muc_ref_replace(muc_ref *ref, uint32_t constant, const float *values)
{
    ref->values[constant].dtype = MUC_F32;
    ref->values[constant].read = values;
}

bool muc_ref_get(const muc_ref *ref, uint32_t tensor, muc_ref_view *out)
{
    const muc_ref_value *value;

    if (tensor >= ref->graph->tensor_count || !ref->values[tensor].read)
        return false;
    value = &ref->values[tensor];
    out->dtype = value->dtype;
    out->rank = value->rank;
    memcpy(out->dims, value->dims, sizeof(out->dims));
    out->elements = value->elements;
    out->data = value->read;
    return true;
}

const float *muc_ref_read(const muc_ref *ref, const char *name, size_t *rows, size_t *columns)
{
    uint32_t id = muc_graph_find(ref->graph, name);

    if (id == MUC_NO_ID || !ref->values[id].data || ref->values[id].dtype != MUC_F32)
        return NULL;
    *rows = ref->values[id].rows;
    *columns = ref->values[id].columns;
    return ref->values[id].data;
}
