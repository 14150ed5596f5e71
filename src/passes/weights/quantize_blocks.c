/* quantize_blocks.c - finds a model's matrices, and quantizes them to blocks in the plain way. */
#include "passes/weights/quantize_blocks.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/large.h"
#include "quant/bd_sequence.h"

static const char room[] = "quantize";

typedef struct quantizing {
    muc_context *ctx;
    muc_graph *graph;
    muc_bd_matrix *matrices; /* [count] */
    uint32_t *tensors;       /* [count] which tensor each is */
    size_t count;
    uint64_t weights;
    muc_bd_rule rule;
    uint32_t shard, shards;
    muc_quantize_result *result; /* or NULL */
} quantizing;

static muc_status read_column(muc_context *ctx, const muc_bd_matrix *matrix, uint32_t column,
                              float *out)
{
    const muc_tensor *tensor = matrix->data;

    if (!tensor->data || !muc_dtype_to_f32(tensor->dtype, tensor->data,
                                           (uint64_t)column * matrix->k, matrix->k, out))
        return muc_fail(ctx, MUC_UNSUPPORTED, tensor->name, MUC_NO_OFFSET,
                        "%s of type %s, expected real numbers",
                        tensor->data ? "elements" : "no data", muc_dtype_get(tensor->dtype)->name);
    return MUC_OK;
}

bool muc_becomes_blocks(const muc_graph *graph, uint32_t tensor)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (muc_op_has_matrix(graph->nodes[i].op) && graph->nodes[i].inputs[1] == tensor)
            return graph->tensors[tensor].kind == MUC_TENSOR_CONST;
    return false;
}

/* the constant matrices in the order of the nodes that use them first */
static muc_status collect(quantizing *q)
{
    const muc_graph *graph = q->graph;
    bool *seen;

    MUC_TRY(MUC_NEW_ARRAY(q->ctx, room, graph->tensor_count, &seen));
    for (uint32_t i = 0; i < graph->node_count; i++) {
        uint32_t id = muc_op_has_matrix(graph->nodes[i].op) ? graph->nodes[i].inputs[1] : MUC_NO_ID;
        const muc_tensor *tensor = &graph->tensors[id == MUC_NO_ID ? 0 : id];
        muc_bd_matrix *matrix = &q->matrices[q->count];

        if (id == MUC_NO_ID || seen[id] || tensor->kind != MUC_TENSOR_CONST)
            continue;
        seen[id] = true;
        *matrix = (muc_bd_matrix){ .name = tensor->name,
                                   .n = muc_expr_get(graph->pool, tensor->dims[0])->lo,
                                   .k = muc_expr_get(graph->pool, tensor->dims[1])->lo,
                                   .read = read_column,
                                   .data = tensor,
                                   .unmeasured = !q->result };
        q->weights += (uint64_t)matrix->n * matrix->k;
        q->tensors[q->count++] = id;
    }
    free(seen);
    return MUC_OK;
}

/* ---- the budget ---- */

/* bits per weight if every block is of kind B4 with a header of its own, and the last digits that a
 * quotient may lose */
static double bits_of_b4(const quantizing *q)
{
    uint64_t total = 0;

    for (size_t i = 0; i < q->count; i++) {
        const muc_bd_matrix *m = &q->matrices[i];
        uint32_t rest = m->k % MUC_BD_ELEMS;
        uint64_t column =
            (uint64_t)(m->k / MUC_BD_ELEMS) * muc_bd_kind_bytes(MUC_BD_B4, MUC_BD_ELEMS);

        column += rest ? muc_bd_kind_bytes(MUC_BD_B4, rest) : 0;
        total += column * m->n + muc_bd_index_bytes(m->n, m->k);
    }
    return 8 * (double)total / (double)q->weights * (1 + 4 * DBL_EPSILON);
}

/* Matrices of many short blocks do not come down to the default that suits others. */
static muc_status choose_rule(const quantizing *q, double bits, muc_bd_rule *out)
{
    muc_status status;

    if (bits > 0)
        return muc_bd_afford(q->ctx, q->matrices, q->count, bits, out);
    status = muc_bd_afford(q->ctx, q->matrices, q->count, MUC_QUANTIZE_BITS, out);
    if (status != MUC_NOFIT)
        return status;
    muc_error_clear(q->ctx);
    return muc_bd_afford(q->ctx, q->matrices, q->count, bits_of_b4(q), out);
}

static bool is_mine(const quantizing *q, size_t i)
{
    return q->shards == 0 || i % q->shards == q->shard - 1;
}

/* Room for what planning finds, where encoding takes it from there. */
static muc_status new_kept(quantizing *q)
{
    for (size_t i = 0; i < q->count; i++) {
        muc_bd_matrix *m = &q->matrices[i];

        if (!is_mine(q, i))
            continue;
        MUC_TRY(MUC_NEW_ARRAY(q->ctx, room, muc_bd_kept_count(m->n, m->k), &m->kept));
    }
    return MUC_OK;
}

static void free_kept(muc_bd_matrix *matrix)
{
    free(matrix->kept);
    matrix->kept = NULL;
}

/* ---- attaching ---- */

/* gives a matrix's sequence to the graph, which owns it then, and counts it */
static muc_status attach(quantizing *q, size_t i, const muc_bd_sequence *sequence)
{
    muc_tensor *tensor = &q->graph->tensors[q->tensors[i]];
    muc_quantize_result *result = q->result;

    MUC_TRY(muc_arena_adopt_large(q->ctx, &q->graph->arena, sequence->data, sequence->bytes));
    muc_large_rest(sequence->data, sequence->bytes);
    tensor->sequence = sequence->data;
    tensor->sequence_bytes = sequence->bytes;
    tensor->sequence_rests = true;
    if (!result)
        return MUC_OK;
    result->weights += (uint64_t)q->matrices[i].n * q->matrices[i].k;
    result->bytes += sequence->bytes;
    for (unsigned kind = 0; kind < MUC_BD_KIND_COUNT; kind++)
        result->blocks[kind] += sequence->blocks[kind];
    result->shared += sequence->shared;
    result->error += sequence->error;
    result->energy += sequence->energy;
    return MUC_OK;
}

/* feedback NULL: least squares */
static muc_status quantize_matrix(quantizing *q, size_t i, const muc_feedback *feedback)
{
    muc_bd_sequence sequence;

    if (feedback)
        MUC_TRY(muc_feedback_quantize(q->ctx, feedback, &q->matrices[i], &q->rule, &sequence));
    else
        MUC_TRY(muc_bd_quantize(q->ctx, &q->matrices[i], &q->rule, &sequence));
    return attach(q, i, &sequence);
}

static muc_status quantize_plain(quantizing *q)
{
    for (size_t i = 0; i < q->count; i++) {
        if (is_mine(q, i))
            MUC_TRY(quantize_matrix(q, i, NULL));
        free_kept(&q->matrices[i]);
        muc_progress(q->ctx, "quantizing", i + 1, q->count);
    }
    return MUC_OK;
}

static muc_status quantize_calibrated(void *arg, uint32_t tensor, const muc_feedback *feedback,
                                      float *values)
{
    quantizing *q = arg;
    const muc_tensor *t = &q->graph->tensors[tensor];
    const muc_bd_matrix *matrix;
    size_t i = 0;

    while (q->tensors[i] != tensor)
        i++;
    matrix = &q->matrices[i];
    MUC_TRY(quantize_matrix(q, i, feedback));
    for (uint32_t column = 0; column < matrix->n; column++) {
        muc_bytes bytes = { t->sequence, t->sequence_bytes, t->name };

        MUC_TRY(muc_bd_decode_column(q->ctx, bytes, matrix->n, matrix->k, column,
                                     values + (size_t)column * matrix->k));
    }
    return MUC_OK;
}

static muc_status quantize(quantizing *q, const muc_quantize_options *options)
{
    MUC_TRY(collect(q));
    if (!options->calibration)
        MUC_TRY(new_kept(q));
    MUC_TRY(choose_rule(q, options->bits_per_weight, &q->rule));
    if (q->result)
        q->result->rule = q->rule;
    if (options->calibration)
        return muc_calibrate(q->ctx, q->graph, options->calibration, quantize_calibrated, q);
    return quantize_plain(q);
}

muc_status muc_quantize_weights(muc_context *ctx, muc_graph *graph,
                                const muc_quantize_options *options, muc_quantize_result *out)
{
    quantizing q = { .ctx = ctx,
                     .graph = graph,
                     .shard = options->shard,
                     .shards = options->shards,
                     .result = out };
    muc_status status;

    if (out)
        memset(out, 0, sizeof(*out));
    MUC_TRY(muc_graph_verify(ctx, graph));
    status = MUC_NEW_ARRAY(ctx, room, graph->node_count, &q.matrices);
    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(ctx, room, graph->node_count, &q.tensors);
    if (status == MUC_OK)
        status = quantize(&q, options);
    for (size_t i = 0; i < q.count; i++)
        free_kept(&q.matrices[i]);
    free(q.matrices);
    free(q.tensors);
    return status;
}
