/* calibrate.c - two models side by side, as made and as quantized so far, from cut to cut.
 *
 * A cut lies before the first matrix that reads some activation. The activations that are still
 * needed there are kept for all texts and both models; to reach the next cut only the nodes in
 * between run. So the work grows with the number of layers, not with its square.
 */
#include "passes/weights/calibrate.h"

#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "ref/ref.h"

static const char room[] = "calibrate";

/* Tokens that run in one call. */
typedef struct chunk {
    const int32_t *tokens;
    uint32_t position, count;
} chunk;

/* An activation at a cut, of one chunk; owned. */
typedef struct snapshot {
    float *data;
    size_t rows, columns;
} snapshot;

typedef struct cut {
    uint32_t node;  /* the first one behind it */
    uint32_t *live; /* [live_count] activations computed before and needed behind; owned */
    size_t live_count;
} cut;

typedef struct calibrating calibrating;

typedef struct model {
    calibrating *of;
    muc_ref *ref;
    snapshot *kept; /* [chunk_count][live_count of the cut] */
    size_t kept_count;
} model;

enum { AS_MADE, AS_QUANTIZED, MODELS };

struct calibrating {
    muc_context *ctx;
    muc_graph *graph;
    chunk *chunks;
    size_t chunk_count;
    uint32_t *last_reader; /* [tensor_count] */
    float **values;        /* [tensor_count], of quantized matrices; owned */
    bool *done;            /* [tensor_count] */
    cut from, to;          /* the models are at from; on the way, at to */
    model models[MODELS];
    muc_calibrate_matrix *quantize;
    void *arg;
};

/* ---- texts in chunks ---- */

static muc_status input_most(muc_context *ctx, const muc_graph *graph, const char *name,
                             uint32_t *out)
{
    uint32_t input = muc_expr_find_input(graph->pool, name);

    if (input == UINT32_MAX)
        return muc_fail(ctx, MUC_UNSUPPORTED, graph->name, MUC_NO_OFFSET,
                        "the graph has no input '%s' to calibrate by", name);
    *out = muc_expr_get_input(graph->pool, input)->hi;
    return MUC_OK;
}

static muc_status split_texts(calibrating *c, const muc_calibration *texts)
{
    const int32_t *tokens = texts->tokens;
    uint32_t most, last;
    size_t total = 0;

    MUC_TRY(input_most(c->ctx, c->graph, "m", &most));
    MUC_TRY(input_most(c->ctx, c->graph, "pos", &last));
    for (uint32_t i = 0; i < texts->count; i++) {
        if (texts->lengths[i] == 0 || texts->lengths[i] - 1 > last)
            return muc_fail(c->ctx, MUC_USAGE, c->graph->name, MUC_NO_OFFSET,
                            "calibration text %u has %u tokens, expected 1 to %u", i,
                            texts->lengths[i], last + 1);
        total += (texts->lengths[i] + most - 1) / most;
    }
    MUC_TRY(MUC_NEW_ARRAY(c->ctx, room, total, &c->chunks));
    for (uint32_t i = 0; i < texts->count; tokens += texts->lengths[i++]) {
        for (uint32_t at = 0; at < texts->lengths[i]; at += most) {
            uint32_t left = texts->lengths[i] - at;

            c->chunks[c->chunk_count++] = (chunk){ tokens + at, at, left < most ? left : most };
        }
    }
    return MUC_OK;
}

/* ---- from cut to cut ---- */

/* which node reads a tensor last; 0 where none does, as the first node reads no activation */
static muc_status find_last_readers(calibrating *c)
{
    MUC_TRY(MUC_NEW_ARRAY(c->ctx, room, c->graph->tensor_count, &c->last_reader));
    for (uint32_t i = 0; i < c->graph->node_count; i++)
        for (uint32_t j = 0; j < c->graph->nodes[i].input_count; j++)
            c->last_reader[c->graph->nodes[i].inputs[j]] = i;
    return MUC_OK;
}

static muc_status make_cut(calibrating *c, uint32_t node, cut *out)
{
    *out = (cut){ .node = node };
    MUC_TRY(MUC_NEW_ARRAY(c->ctx, room, c->graph->tensor_count, &out->live));
    for (uint32_t i = 0; i < c->graph->tensor_count; i++) {
        const muc_tensor *tensor = &c->graph->tensors[i];

        if (tensor->kind == MUC_TENSOR_ACTIVATION && tensor->producer < node &&
            c->last_reader[i] >= node)
            out->live[out->live_count++] = i;
    }
    return MUC_OK;
}

static muc_status restore(const model *m, size_t index)
{
    const cut *from = &m->of->from;

    for (size_t i = 0; i < from->live_count; i++) {
        const snapshot *kept = &m->kept[index * from->live_count + i];

        MUC_TRY(muc_ref_put(m->ref, from->live[i], kept->data, kept->rows, kept->columns));
    }
    return MUC_OK;
}

static muc_status keep(const model *m, snapshot *out)
{
    const cut *to = &m->of->to;

    for (size_t i = 0; i < to->live_count; i++) {
        const char *name = m->of->graph->tensors[to->live[i]].name;
        const float *data = muc_ref_read(m->ref, name, &out[i].rows, &out[i].columns);
        size_t count = out[i].rows * out[i].columns;

        MUC_TRY(MUC_NEW_ARRAY(m->of->ctx, room, count, &out[i].data));
        memcpy(out[i].data, data, count * sizeof(float));
    }
    return MUC_OK;
}

static void free_kept(snapshot *kept, size_t count)
{
    for (size_t i = 0; kept && i < count; i++)
        free(kept[i].data);
    free(kept);
}

static muc_status advance_chunk(const model *m, size_t i, snapshot *after)
{
    const calibrating *c = m->of;
    const chunk *part = &c->chunks[i];

    MUC_TRY(restore(m, i));
    MUC_TRY(muc_ref_run_tokens(m->ref, part->position, part->tokens, part->count));
    return keep(m, after + i * c->to.live_count);
}

/* Chunks of a text follow each other, so that a cache holds what a chunk looks back on. */
static muc_status advance_model(void *arg, size_t index)
{
    calibrating *c = arg;
    model *m = &c->models[index];
    muc_status status = MUC_OK;
    snapshot *after;

    MUC_TRY(MUC_NEW_ARRAY(c->ctx, room, c->chunk_count * c->to.live_count, &after));
    muc_ref_set_range(m->ref, c->from.node, c->to.node);
    for (size_t i = 0; i < c->chunk_count && status == MUC_OK; i++)
        status = advance_chunk(m, i, after);
    if (status != MUC_OK) {
        free_kept(after, c->chunk_count * c->to.live_count);
        return status;
    }
    free_kept(m->kept, m->kept_count);
    m->kept = after;
    m->kept_count = c->chunk_count * c->to.live_count;
    return MUC_OK;
}

static muc_status advance(calibrating *c, uint32_t node)
{
    muc_status status = make_cut(c, node, &c->to);

    if (status == MUC_OK)
        status = muc_parallel_for(c->ctx, MODELS, advance_model, c);
    if (status != MUC_OK) {
        free(c->to.live);
        return status;
    }
    free(c->from.live);
    c->from = c->to;
    return MUC_OK;
}

/* ---- matrices ---- */

static muc_status quantize_matrix(calibrating *c, uint32_t tensor, const muc_feedback *feedback)
{
    const muc_tensor *t = &c->graph->tensors[tensor];
    size_t n = muc_expr_get(c->graph->pool, t->dims[0])->lo;
    size_t k = muc_expr_get(c->graph->pool, t->dims[1])->lo;

    MUC_TRY(MUC_NEW_ARRAY(c->ctx, room, n * k, &c->values[tensor]));
    c->done[tensor] = true;
    MUC_TRY(c->quantize(c->arg, tensor, feedback, c->values[tensor]));
    muc_ref_replace(c->models[AS_QUANTIZED].ref, tensor, c->values[tensor]);
    return MUC_OK;
}

static bool is_weighted(const muc_node *node)
{
    return muc_op_has(node->op, MUC_OP_WEIGHTED);
}

static bool is_waiting(const calibrating *c, const muc_node *node)
{
    uint32_t tensor = node->inputs[1];

    return c->graph->tensors[tensor].kind == MUC_TENSOR_CONST && !c->done[tensor];
}

/* all matrices that the same input is multiplied by */
static muc_status quantize_readers(calibrating *c, uint32_t input, uint32_t node,
                                   const muc_feedback *feedback)
{
    for (uint32_t i = node; i < c->graph->node_count; i++) {
        const muc_node *reader = &c->graph->nodes[i];

        if (is_weighted(reader) && reader->inputs[0] == input && is_waiting(c, reader))
            MUC_TRY(quantize_matrix(c, reader->inputs[1], feedback));
    }
    return MUC_OK;
}

static muc_status moments_at_cut(calibrating *c, uint32_t input, muc_moments *out)
{
    size_t live = 0, count = c->from.live_count;

    while (c->from.live[live] != input)
        live++;
    for (size_t i = 0; i < c->chunk_count; i++) {
        const snapshot *x = &c->models[AS_QUANTIZED].kept[i * count + live];
        const snapshot *f = &c->models[AS_MADE].kept[i * count + live];

        MUC_TRY(muc_moments_add(c->ctx, out, x->data, f->data, x->rows));
    }
    return MUC_OK;
}

static uint32_t depth_of(const calibrating *c, const muc_node *node)
{
    return muc_expr_get(c->graph->pool, c->graph->tensors[node->inputs[1]].dims[1])->lo;
}

static muc_status quantize_group(calibrating *c, uint32_t node)
{
    const muc_node *first = &c->graph->nodes[node];
    muc_feedback *feedback = NULL;
    muc_moments moments;
    muc_status status;

    MUC_TRY(advance(c, node));
    status = muc_moments_new(c->ctx, depth_of(c, first), true, &moments);
    if (status == MUC_OK)
        status = moments_at_cut(c, first->inputs[0], &moments);
    if (status == MUC_OK)
        status = muc_feedback_new(c->ctx, &moments, &feedback);
    if (status == MUC_OK)
        status = quantize_readers(c, first->inputs[0], node, feedback);
    muc_moments_free(&moments);
    muc_feedback_free(feedback);
    return status;
}

/* ---- tables that are looked up first ---- */

/* the first node that multiplies by a matrix, or NULL */
static const muc_node *multiplier_of(const calibrating *c, uint32_t tensor)
{
    for (uint32_t i = 0; i < c->graph->node_count; i++) {
        const muc_node *node = &c->graph->nodes[i];

        if (is_weighted(node) && node->inputs[1] == tensor)
            return node;
    }
    return NULL;
}

static muc_status moments_as_made(calibrating *c, const muc_node *node, muc_moments *out)
{
    muc_ref *ref = c->models[AS_MADE].ref;
    const char *name = c->graph->tensors[node->inputs[0]].name;

    muc_ref_set_range(ref, 0, c->graph->node_count);
    for (size_t i = 0; i < c->chunk_count; i++) {
        const chunk *part = &c->chunks[i];
        size_t rows, columns;
        const float *x;

        MUC_TRY(muc_ref_run_tokens(ref, part->position, part->tokens, part->count));
        x = muc_ref_read(ref, name, &rows, &columns);
        MUC_TRY(muc_moments_add(c->ctx, out, x, NULL, rows));
    }
    return MUC_OK;
}

static muc_status quantize_table(calibrating *c, uint32_t tensor)
{
    const muc_node *node = multiplier_of(c, tensor);
    muc_feedback *feedback = NULL;
    muc_moments moments;
    muc_status status;

    if (!node)
        return quantize_matrix(c, tensor, NULL);
    status = muc_moments_new(c->ctx, depth_of(c, node), false, &moments);
    if (status == MUC_OK)
        status = moments_as_made(c, node, &moments);
    if (status == MUC_OK)
        status = muc_feedback_new(c->ctx, &moments, &feedback);
    if (status == MUC_OK)
        status = quantize_matrix(c, tensor, feedback);
    muc_moments_free(&moments);
    muc_feedback_free(feedback);
    return status;
}

/* ---- all of it ---- */

static muc_status walk(calibrating *c)
{
    for (uint32_t i = 0; i < c->graph->node_count; i++) {
        const muc_node *node = &c->graph->nodes[i];

        if (node->op == MUC_OP_EMBED && is_waiting(c, node))
            MUC_TRY(quantize_table(c, node->inputs[1]));
        else if (is_weighted(node) && is_waiting(c, node))
            MUC_TRY(quantize_group(c, i));
        muc_progress(c->ctx, "calibrating", i + 1, c->graph->node_count);
    }
    return MUC_OK;
}

static muc_status start(calibrating *c, const muc_calibration *texts)
{
    MUC_TRY(split_texts(c, texts));
    MUC_TRY(find_last_readers(c));
    MUC_TRY(MUC_NEW_ARRAY(c->ctx, room, c->graph->tensor_count, &c->values));
    MUC_TRY(MUC_NEW_ARRAY(c->ctx, room, c->graph->tensor_count, &c->done));
    for (int i = 0; i < MODELS; i++) {
        c->models[i].of = c;
        MUC_TRY(muc_ref_open(c->ctx, c->graph, &c->models[i].ref));
    }
    return MUC_OK;
}

muc_status muc_calibrate(muc_context *ctx, muc_graph *graph, const muc_calibration *texts,
                         muc_calibrate_matrix *quantize, void *arg)
{
    calibrating c = { .ctx = ctx, .graph = graph, .quantize = quantize, .arg = arg };
    muc_status status = start(&c, texts);

    if (status == MUC_OK)
        status = walk(&c);
    for (int i = 0; i < MODELS; i++) {
        muc_ref_close(c.models[i].ref);
        free_kept(c.models[i].kept, c.models[i].kept_count);
    }
    for (uint32_t i = 0; c.values && i < graph->tensor_count; i++)
        free(c.values[i]);
    free(c.values);
    free(c.done);
    free(c.last_reader);
    free(c.from.live);
    free(c.chunks);
    return status;
}
