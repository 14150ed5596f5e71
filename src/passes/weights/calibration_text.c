/* calibration_text.c - lets a model write texts to calibrate it on, by plain sampling from its
 * float32 reference. */
#include "passes/weights/calibrate.h"

#include "base/real.h"
#include "ref/ref.h"

/* splitmix64 (Steele, Lea, Flood 2014); in [0, 1) */
static double next_unit(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* a token with probability proportional to exp(logit); weights: scratch [count] */
static int32_t draw(const float *logits, size_t count, uint64_t *state, double *weights)
{
    double largest = (double)logits[0], sum = 0, left;
    size_t i = 0;

    for (size_t t = 1; t < count; t++)
        largest = (double)logits[t] > largest ? (double)logits[t] : largest;
    for (size_t t = 0; t < count; t++)
        sum += weights[t] = muc_exp((double)logits[t] - largest);
    left = next_unit(state) * sum;
    while (i + 1 < count && left >= weights[i])
        left -= weights[i++];
    return (int32_t)i;
}

static bool is_end(const muc_calibration_marks *marks, int32_t token)
{
    for (uint32_t i = 0; i < marks->end_count; i++)
        if (marks->ends[i] == token)
            return true;
    return false;
}

typedef struct writing {
    muc_context *ctx;
    muc_graph *graph;
    muc_ref *ref;
    const muc_calibration_marks *marks;
    double *weights; /* [vocabulary] */
    uint64_t state;
} writing;

/* Writes one text of at most `most` tokens. */
static muc_status write_text(writing *w, uint32_t most, int32_t *tokens, uint32_t *length)
{
    const char *name = w->graph->tensors[w->graph->outputs[0]].name;

    tokens[0] = w->marks->first;
    for (*length = 1; *length < most; ++*length) {
        uint32_t position = *length - 1;
        size_t rows, columns;
        const float *logits;

        MUC_TRY(muc_ref_run_tokens(w->ref, position, &tokens[position], 1));
        logits = muc_ref_read(w->ref, name, &rows, &columns);
        tokens[position + 1] = draw(logits, columns, &w->state, w->weights);
        if (is_end(w->marks, tokens[position + 1]))
            return MUC_OK;
    }
    return MUC_OK;
}

static muc_status write_texts(writing *w, uint32_t all, uint32_t longest, int32_t *tokens,
                              uint32_t *lengths, muc_calibration *out)
{
    uint32_t total = 0;

    *out = (muc_calibration){ .lengths = lengths, .tokens = tokens };
    while (total < all) {
        uint32_t left = all - total;

        MUC_TRY(
            write_text(w, left < longest ? left : longest, tokens + total, &lengths[out->count]));
        total += lengths[out->count++];
        muc_progress(w->ctx, "writing texts", total, all);
    }
    return MUC_OK;
}

muc_status muc_calibration_generate(muc_context *ctx, muc_graph *graph,
                                    const muc_calibration_marks *marks, muc_arena *arena,
                                    muc_calibration *out)
{
    const muc_tensor *logits = &graph->tensors[graph->outputs[0]];
    size_t vocabulary = muc_expr_get(graph->pool, logits->dims[1])->lo;
    uint32_t all = marks->tokens ? marks->tokens : MUC_CALIBRATION_TOKENS;
    uint32_t longest = marks->longest ? marks->longest : MUC_CALIBRATION_LENGTH;
    uint32_t pos = muc_expr_find_input(graph->pool, "pos");
    writing w = { .ctx = ctx, .graph = graph, .marks = marks };
    uint32_t *lengths;
    int32_t *tokens;
    muc_status status;

    if (pos == UINT32_MAX)
        return muc_fail(ctx, MUC_UNSUPPORTED, graph->name, MUC_NO_OFFSET,
                        "the graph has no input 'pos' to generate text by");
    if (muc_expr_get_input(graph->pool, pos)->hi + 1 < longest)
        longest = muc_expr_get_input(graph->pool, pos)->hi + 1;
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, all, &tokens));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, all, &lengths));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, vocabulary, &w.weights));
    MUC_TRY(muc_ref_open(ctx, graph, &w.ref));
    status = write_texts(&w, all, longest, tokens, lengths, out);
    muc_ref_close(w.ref);
    return status;
}
