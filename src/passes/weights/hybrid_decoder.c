/* hybrid_decoder.c - quantizes a decoder's matrices and caches to int8 with scales. */
#include "passes/weights/hybrid_decoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "quant/blockdialect.h"

enum { MOST = 127, PART_ROWS = 64 };

typedef struct matrix {
    muc_context *ctx;
    const muc_tensor *tensor;
    muc_hybrid_levels levels;
    uint32_t n, k;
    int8_t *q;
    float *scales;  /* [n] */
    double *errors; /* [parts][2]: squares of error and of weights */
} matrix;

/* Whether a row has no magnitudes but 0 and its largest. */
static bool is_ternary(const float *x, uint32_t k, float most)
{
    for (uint32_t i = 0; i < k; i++)
        if (fabsf(x[i]) > 0 && fabsf(x[i]) < most)
            return false;
    return most > 0;
}

/* the scale takes the largest element to 127, of a ternary row to 1 */
static void round_row(const float *x, uint32_t k, float most, int8_t *q, float *scale)
{
    if (is_ternary(x, k, most)) {
        *scale = most;
        for (uint32_t i = 0; i < k; i++)
            q[i] = (int8_t)((x[i] > 0) - (x[i] < 0));
        return;
    }
    *scale = most / MOST > 0 ? most / MOST : 1; /* a row of zeros, or next to them */
    for (uint32_t i = 0; i < k; i++) {
        double v = most / MOST > 0 ? nearbyint((double)x[i] / (double)*scale) : 0;

        q[i] = (int8_t)(v > MOST ? MOST : v < -MOST ? -MOST : v);
    }
}

static muc_status quantize_row(const matrix *m, uint32_t row, float *x, double *errors)
{
    int8_t *q = m->q + (size_t)row * m->k;
    float most = 0;

    if (!muc_dtype_to_f32(m->tensor->dtype, m->tensor->data, (uint64_t)row * m->k, m->k, x))
        return muc_fail(m->ctx, MUC_UNSUPPORTED, m->tensor->name, MUC_NO_OFFSET,
                        "elements of type %s, expected real numbers",
                        muc_dtype_get(m->tensor->dtype)->name);
    for (uint32_t i = 0; i < m->k; i++) {
        if (!isfinite(x[i]))
            return muc_fail(m->ctx, MUC_UNSUPPORTED, m->tensor->name, MUC_NO_OFFSET,
                            "element %u of row %u is not finite", i, row);
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    }
    if (m->levels == MUC_HYBRID_BLOCKS)
        muc_bd_row_levels(m->k, x, q, &m->scales[row]);
    else
        round_row(x, m->k, most, q, &m->scales[row]);
    for (uint32_t i = 0; i < m->k; i++) {
        double e = (double)x[i] - q[i] * (double)m->scales[row];

        errors[0] += e * e;
        errors[1] += (double)x[i] * (double)x[i];
    }
    return MUC_OK;
}

static muc_status quantize_part(void *arg, size_t part)
{
    const matrix *m = arg;
    muc_status status = MUC_OK;
    float *x;

    MUC_TRY(MUC_NEW_ARRAY(m->ctx, m->tensor->name, m->k, &x));
    for (uint32_t i = 0; i < PART_ROWS && status == MUC_OK; i++) {
        uint32_t row = (uint32_t)part * PART_ROWS + i;

        if (row < m->n)
            status = quantize_row(m, row, x, m->errors + 2 * part);
    }
    free(x);
    return status;
}

static muc_status quantize_rows(matrix *m, muc_hybrid_result *result)
{
    size_t parts = (m->n + PART_ROWS - 1) / PART_ROWS;
    muc_status status;

    MUC_TRY(MUC_NEW_ARRAY(m->ctx, m->tensor->name, 2 * parts, &m->errors));
    status = muc_parallel_for(m->ctx, parts, quantize_part, m);
    for (size_t i = 0; i < parts; i++) {
        result->error += m->errors[2 * i];
        result->energy += m->errors[2 * i + 1];
    }
    free(m->errors);
    return status;
}

static muc_status quantize_matrix(muc_context *ctx, muc_graph *graph, muc_tensor *tensor,
                                  muc_hybrid_levels levels, muc_hybrid_result *result)
{
    matrix m = { .ctx = ctx, .tensor = tensor, .levels = levels };
    muc_quantization *quantization;
    int32_t *zeros;
    size_t count;

    if (!tensor->data && levels != MUC_HYBRID_SHAPES)
        return muc_fail(ctx, MUC_UNSUPPORTED, tensor->name, MUC_NO_OFFSET, "no data");
    m.n = muc_expr_get(graph->pool, tensor->dims[0])->lo;
    m.k = muc_expr_get(graph->pool, tensor->dims[1])->lo;
    count = (size_t)m.n * m.k;
    MUC_TRY(MUC_ARENA_NEW(ctx, &graph->arena, m.n, &m.scales));
    MUC_TRY(MUC_ARENA_NEW(ctx, &graph->arena, m.n, &zeros));
    MUC_TRY(MUC_ARENA_NEW(ctx, &graph->arena, 1, &quantization));
    if (levels == MUC_HYBRID_SHAPES) {
        for (uint32_t i = 0; i < m.n; i++)
            m.scales[i] = 1;
    } else {
        MUC_TRY(MUC_ARENA_NEW(ctx, &graph->arena, count, &m.q));
        MUC_TRY(quantize_rows(&m, result));
    }
    *quantization = (muc_quantization){ .count = m.n, .scales = m.scales, .zero_points = zeros };
    tensor->dtype = MUC_I8;
    tensor->data = (const uint8_t *)m.q;
    tensor->bytes = count;
    tensor->quantization = quantization;
    return MUC_OK;
}

/* the state of scales beside a cache */
static muc_status add_scales(muc_context *ctx, muc_graph *graph, const muc_node *node, uint32_t id,
                             uint32_t *out)
{
    muc_tensor scales = { .kind = MUC_TENSOR_STATE, .dtype = MUC_F32, .rank = 2 };

    MUC_TRY(
        muc_arena_format(ctx, &graph->arena, &scales.name, "%s.scales", graph->tensors[id].name));
    graph->tensors[id].dtype = MUC_I8;
    scales.dims[0] = graph->tensors[id].dims[0];
    scales.dims[1] =
        muc_expr_const(graph->pool, (uint32_t)muc_node_integer(node, MUC_KEY_KV_HEADS));
    return muc_graph_add_tensor(ctx, graph, &scales, out);
}

static muc_status quantize_caches(muc_context *ctx, muc_graph *graph, muc_node *node)
{
    uint32_t *inputs;

    if (node->input_count != 5)
        return muc_fail_on(muc_node_subject(ctx, graph, node), MUC_USAGE,
                           "its caches are quantized already");
    MUC_TRY(MUC_ARENA_NEW(ctx, &graph->arena, 7, &inputs));
    memcpy(inputs, node->inputs, 5 * sizeof(*inputs));
    for (unsigned i = 0; i < 2; i++)
        MUC_TRY(add_scales(ctx, graph, node, inputs[3 + i], &inputs[5 + i]));
    node->inputs = inputs;
    node->input_count = 7;
    return MUC_OK;
}

/* gains, biases and tables of any type of real numbers become f32 */
static muc_status widen(muc_context *ctx, muc_graph *graph, muc_tensor *tensor,
                        muc_hybrid_levels levels)
{
    const muc_dtype_info *info = muc_dtype_get(tensor->dtype);
    uint64_t count = tensor->bytes / info->block_bytes * info->block_elements;
    float *values;

    if (tensor->kind != MUC_TENSOR_CONST || info->kind != MUC_DTYPE_FLOAT ||
        tensor->dtype == MUC_F32 || (!tensor->data && levels != MUC_HYBRID_SHAPES))
        return MUC_OK;
    if (tensor->data) {
        MUC_TRY(MUC_ARENA_NEW(ctx, &graph->arena, count, &values));
        muc_dtype_to_f32(tensor->dtype, tensor->data, 0, count, values);
        tensor->data = (const uint8_t *)values;
    }
    tensor->dtype = MUC_F32;
    tensor->bytes = count * sizeof(*values);
    return MUC_OK;
}

muc_status muc_hybrid_quantize(muc_context *ctx, muc_graph *graph, muc_hybrid_levels levels,
                               muc_hybrid_result *out)
{
    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < graph->node_count; i++) {
        muc_node *node = &graph->nodes[i];
        muc_tensor *weight = muc_op_has_matrix(node->op) ? &graph->tensors[node->inputs[1]] : NULL;

        if (levels != MUC_HYBRID_SHAPES)
            muc_progress(ctx, "quantizing", i, graph->node_count);
        if (weight && weight->kind == MUC_TENSOR_CONST && !weight->quantization)
            MUC_TRY(quantize_matrix(ctx, graph, weight, levels, out));
        if (node->op == MUC_OP_ATTENTION)
            MUC_TRY(quantize_caches(ctx, graph, node));
    }
    if (levels != MUC_HYBRID_SHAPES)
        muc_progress(ctx, "quantizing", graph->node_count, graph->node_count);
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        MUC_TRY(widen(ctx, graph, &graph->tensors[i], levels));
    return muc_graph_verify(ctx, graph);
}
