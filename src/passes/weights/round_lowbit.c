/* round_lowbit.c - which matrix takes which format, and its rows, by least squares or for their
 * inputs.
 */
#include "passes/weights/round_lowbit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/threads.h"

static const char room[] = "compress";

typedef struct quantizing {
    muc_context *ctx;
    muc_graph *graph;
    const muc_lowbit_options *options;
    muc_arena *arena;
    muc_lowbit_result *result;
} quantizing;

/* the last product gives the logits */
static muc_lowbit format_of(const quantizing *q, uint32_t node, uint32_t k)
{
    const muc_graph *graph = q->graph;
    muc_lowbit format = q->options->weights;
    bool is_last = true;

    for (uint32_t i = node + 1; i < graph->node_count; i++)
        is_last = is_last && !muc_op_has_matrix(graph->nodes[i].op);
    if (graph->nodes[node].op == MUC_OP_EMBED || is_last)
        format = q->options->embedding;
    for (size_t i = 0; i < q->options->finer_count; i++)
        if (strcmp(graph->tensors[graph->nodes[node].inputs[1]].name, q->options->finer[i]) == 0)
            format = MUC_LOWBIT_INT4;
    return muc_lowbit_for_row(format, k);
}

static muc_status collect(quantizing *q)
{
    const muc_graph *graph = q->graph;
    bool *seen;

    MUC_TRY(MUC_ARENA_NEW(q->ctx, q->arena, graph->tensor_count, &seen));
    MUC_TRY(MUC_ARENA_NEW(q->ctx, q->arena, graph->node_count, &q->result->matrices));
    for (uint32_t i = 0; i < graph->node_count; i++) {
        uint32_t id = muc_op_has_matrix(graph->nodes[i].op) ? graph->nodes[i].inputs[1] : MUC_NO_ID;
        muc_lowbit_matrix *m = &q->result->matrices[q->result->count];
        const muc_tensor *tensor;

        if (id == MUC_NO_ID || seen[id] || graph->tensors[id].kind != MUC_TENSOR_CONST)
            continue;
        seen[id] = true;
        tensor = &graph->tensors[id];
        m->tensor = id;
        m->n = muc_expr_get(graph->pool, tensor->dims[0])->lo;
        m->k = muc_expr_get(graph->pool, tensor->dims[1])->lo;
        m->format = format_of(q, i, m->k);
        MUC_TRY(MUC_ARENA_NEW(q->ctx, q->arena, m->n * muc_lowbit_code_bytes(m->format, m->k),
                              &m->codes));
        MUC_TRY(MUC_ARENA_NEW(q->ctx, q->arena, m->n * muc_lowbit_numbers(m->format, m->k),
                              &m->numbers));
        q->result->count++;
    }
    return MUC_OK;
}

/* ---- one matrix ---- */

typedef struct rows {
    muc_context *ctx;
    const muc_tensor *tensor;
    const muc_lowbit_matrix *matrix;
    const muc_feedback *feedback; /* NULL: least squares */
    float *values;                /* [n][k], what they stand for */
    double *sums;                 /* [n][2] */
} rows;

/* the values that an element of a row may take */
typedef struct grid {
    const muc_lowbit_matrix *matrix;
    double scale;
    const uint16_t *numbers; /* of the row */
} grid;

static double on_levels(void *arg, size_t j, double value)
{
    const grid *g = arg;

    (void)j;
    return g->scale * muc_lowbit_nearest(g->matrix->format, value / g->scale);
}

static double on_entries(void *arg, size_t j, double value)
{
    const grid *g = arg;
    const uint16_t *book =
        g->numbers + j / muc_lowbit_get(g->matrix->format)->group * MUC_LOWBIT_ENTRIES;
    double best = INFINITY;

    for (unsigned c = 0; c < MUC_LOWBIT_ENTRIES; c++) {
        double entry = (double)muc_f32_of_f16(book[c]);

        best = fabs(entry - value) < fabs(best - value) ? entry : best;
    }
    return best;
}

/* Scales around that of least squares, the one with the least objective; its values to out. */
static muc_status round_on_scales(const rows *r, const float *w, uint16_t *numbers, double *values,
                                  double *out)
{
    static const double factors[] = { 1, 0.7, 0.8, 0.9, 1.1, 1.2, 1.35 };
    double first = (double)muc_lowbit_scale(r->matrix->format, r->matrix->k, w), best = INFINITY;

    for (size_t i = 0; i < MUC_COUNT(factors); i++) {
        float scale = muc_lowbit_round_scale(first * factors[i]);
        grid g = { .matrix = r->matrix, .scale = (double)scale };
        double error;

        MUC_TRY(muc_feedback_round(r->ctx, r->feedback, w, on_levels, &g, values, &error));
        if (!(error < best))
            continue;
        best = error;
        numbers[0] = muc_f16_of_f32(scale);
        memcpy(out, values, r->matrix->k * sizeof(*out));
    }
    return MUC_OK;
}

/* what is on the grid already is encoded as it is */
static void put_row(const rows *r, const double *values, uint8_t *codes, const uint16_t *numbers,
                    int8_t *levels)
{
    const muc_lowbit_matrix *m = r->matrix;

    for (uint32_t j = 0; j < m->k; j++)
        levels[j] = (int8_t)nearbyint(values[j] / (double)muc_f32_of_f16(numbers[0]));
    muc_lowbit_pack(m->format, m->k, levels, codes);
}

static muc_status feed_back(const rows *r, const float *w, uint8_t *codes, uint16_t *numbers)
{
    const muc_lowbit_matrix *m = r->matrix;
    grid g = { .matrix = m, .numbers = numbers };
    muc_status status;
    double *values, error;
    int8_t *levels;
    float *rounded;

    MUC_TRY(MUC_NEW_ARRAY(r->ctx, room, 3 * (size_t)m->k, &values));
    rounded = (float *)(values + 2 * (size_t)m->k);
    levels = (int8_t *)(values + 2 * (size_t)m->k);
    if (muc_lowbit_get(m->format)->group) {
        muc_lowbit_encode(m->format, m->k, w, codes, numbers);
        status = muc_feedback_round(r->ctx, r->feedback, w, on_entries, &g, values, &error);
        for (uint32_t j = 0; j < m->k; j++)
            rounded[j] = (float)values[j];
        if (status == MUC_OK)
            muc_lowbit_encode_entries(m->format, m->k, rounded, numbers, codes);
    } else {
        status = round_on_scales(r, w, numbers, values, values + m->k);
        if (status == MUC_OK)
            put_row(r, values + m->k, codes, numbers, levels);
    }
    free(values);
    return status;
}

static muc_status quantize_row(void *arg, size_t row)
{
    const rows *r = arg;
    const muc_lowbit_matrix *m = r->matrix;
    uint8_t *codes = m->codes + row * muc_lowbit_code_bytes(m->format, m->k);
    uint16_t *numbers = m->numbers + row * muc_lowbit_numbers(m->format, m->k);
    float *values = r->values + row * m->k;
    muc_status status = MUC_OK;
    float *w;

    MUC_TRY(MUC_NEW_ARRAY(r->ctx, room, m->k, &w));
    if (!muc_dtype_to_f32(r->tensor->dtype, r->tensor->data, (uint64_t)row * m->k, m->k, w))
        status = muc_fail(r->ctx, MUC_UNSUPPORTED, r->tensor->name, MUC_NO_OFFSET,
                          "elements of type %s, expected real numbers",
                          muc_dtype_get(r->tensor->dtype)->name);
    for (uint32_t j = 0; status == MUC_OK && j < m->k; j++)
        if (!isfinite(w[j]))
            status = muc_fail(r->ctx, MUC_UNSUPPORTED, r->tensor->name, MUC_NO_OFFSET,
                              "element %u of row %zu is not finite", j, row);
    if (status == MUC_OK && r->feedback && m->format != MUC_LOWBIT_INT8)
        status = feed_back(r, w, codes, numbers);
    else if (status == MUC_OK)
        muc_lowbit_encode(m->format, m->k, w, codes, numbers);
    muc_lowbit_decode(m->format, m->k, codes, numbers, values);
    for (uint32_t j = 0; j < m->k; j++) {
        double e = (double)w[j] - (double)values[j];

        r->sums[2 * row] += e * e;
        r->sums[2 * row + 1] += (double)w[j] * (double)w[j];
    }
    free(w);
    return status;
}

static muc_status quantize_matrix(void *arg, uint32_t tensor, const muc_feedback *feedback,
                                  float *values)
{
    quantizing *q = arg;
    const muc_lowbit_matrix *m = q->result->matrices;
    rows r = { q->ctx, &q->graph->tensors[tensor], NULL, feedback, values, NULL };
    muc_status status;

    while (m->tensor != tensor)
        m++;
    r.matrix = m;
    if (!r.tensor->data)
        return muc_fail(q->ctx, MUC_UNSUPPORTED, r.tensor->name, MUC_NO_OFFSET, "no data");
    MUC_TRY(MUC_NEW_ARRAY(q->ctx, room, 2 * (size_t)m->n, &r.sums));
    status = muc_parallel_for(q->ctx, m->n, quantize_row, &r);
    for (uint32_t row = 0; row < m->n; row++) {
        q->result->error += r.sums[2 * row];
        q->result->energy += r.sums[2 * row + 1];
    }
    free(r.sums);
    return status;
}

static muc_status quantize_plain(quantizing *q)
{
    muc_status status = MUC_OK;

    for (size_t i = 0; i < q->result->count && status == MUC_OK; i++) {
        const muc_lowbit_matrix *m = &q->result->matrices[i];
        float *values;

        MUC_TRY(MUC_NEW_ARRAY(q->ctx, room, (size_t)m->n * m->k, &values));
        status = quantize_matrix(q, m->tensor, NULL, values);
        free(values);
        muc_progress(q->ctx, "quantizing", i + 1, q->result->count);
    }
    return status;
}

muc_status muc_lowbit_quantize(muc_context *ctx, muc_graph *graph,
                               const muc_lowbit_options *options, muc_arena *arena,
                               muc_lowbit_result *out)
{
    quantizing q = { ctx, graph, options, arena, out };

    memset(out, 0, sizeof(*out));
    MUC_TRY(muc_graph_verify(ctx, graph));
    MUC_TRY(collect(&q));
    if (options->calibration)
        return muc_calibrate(ctx, graph, options->calibration, quantize_matrix, &q);
    return quantize_plain(&q);
}
