/* uthinker_attention.c - attention as the machine's schedule has it (SPEC.md section 8): keys and
 * whole chunks of values (64 tokens, or the machine's step) kept in blocks, each query packing the
 * rows of its own unfinished chunk; softmax chunk by chunk with a running maximum (SMAX, DIV). */
#include "ref/golden/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STEP = 64 };

typedef struct attention {
    const muc_ref_call *call;
    muc_golden_node *kept;
    muc_ref_terms terms;
    const muc_golden_block *queries; /* [rows][heads][pieces] */
    muc_golden_block *packed;        /* [parts][width][2], an unfinished chunk of values */
    const float *value_rows;         /* [context][kv_heads * width] */
    struct running *states;          /* [parts][group] */
    float *scores, *weights;         /* [rows * heads][longest], or NULL if nobody looks */
    size_t step;                     /* tokens of a chunk */
    size_t seen;                     /* positions that a query sees, its own the last */
    size_t position, rows, heads, kv_heads, group, width, pieces, context, longest;
    float scale;       /* in the softmax */
    float factor, cap; /* before it: CAP; cap 0: none */
} attention;

/* QPACK: count rows of a chunk, column by column */
static void pack(const attention *a, size_t kv_head, size_t chunk, size_t count,
                 muc_golden_block *out)
{
    size_t stride = a->kv_heads * a->width;

    for (size_t c = 0; c < a->width; c++, out += 2) {
        const float *values = a->value_rows + chunk * a->step * stride + kv_head * a->width + c;
        float column[MOST_STEP];

        for (size_t r = 0; r < count; r++)
            column[r] = values[r * stride];
        muc_golden_encode(column, count, a->terms.v, out);
    }
}

static muc_golden_block *whole_chunk(const attention *a, size_t kv_head, size_t chunk)
{
    return a->kept->values + (kv_head * (a->context / a->step) + chunk) * a->width * 2;
}

/* A query's softmax so far: SMAX's state. */
typedef struct running {
    float most, sum;
} running;

/* SMAX: scores to probabilities of one chunk, and what was summed so far to their scale; those of
 * hidden tokens are 0 already */
static void soften(const attention *a, float *s, size_t hidden, size_t count, bool first,
                   running *state, float *out)
{
    float most, sum = 0, factor;

    for (size_t j = hidden; j < count; j++)
        s[j] = s[j] * a->scale;
    most = first ? s[hidden] : state->most;
    for (size_t j = hidden; j < count; j++)
        if (s[j] > most)
            most = s[j];
    for (size_t j = hidden; j < count; j++) {
        s[j] = muc_ref_machine_exp(s[j] - most);
        sum = sum + s[j];
    }
    if (first) {
        state->sum = sum;
        memset(out, 0, a->width * sizeof(float));
    } else {
        factor = muc_ref_machine_exp(state->most - most);
        state->sum = state->sum * factor;
        state->sum = state->sum + sum;
        for (size_t i = 0; i < a->width; i++)
            out[i] = out[i] * factor;
    }
    state->most = most;
}

/* one query head and one chunk of count tokens, of which it does not see some: QK, SMAX, PV */
static void attend_chunk(const attention *a, size_t query, size_t chunk, size_t hidden,
                         size_t count, bool first, const muc_golden_block *values, running *state)
{
    size_t kv_head = query % a->heads / a->group, at = query * a->longest + chunk * a->step;
    const muc_golden_block *key =
        a->kept->keys + (kv_head * a->context + chunk * a->step) * a->pieces;
    float *out = muc_ref_floats_out(a->call->output) + query * a->width, s[MOST_STEP] = { 0 };
    muc_golden_block p[2];

    for (size_t j = hidden; j < count; j++) {
        s[j] = muc_golden_dot(key + j * a->pieces, a->queries + query * a->pieces, a->pieces, 0);
        if (a->cap > 0)
            s[j] = muc_golden_tanh(s[j] * a->factor) * a->cap;
    }
    if (a->scores)
        memcpy(a->scores + at, s, count * sizeof(float));
    soften(a, s, hidden, count, first, state, out);
    if (a->weights)
        memcpy(a->weights + at, s, count * sizeof(float));
    muc_golden_encode(s, count, a->terms.p, p);
    for (size_t i = 0; i < a->width; i++)
        out[i] = muc_golden_dot(values + 2 * i, p, muc_golden_blocks(count), out[i]);
}

/* all query heads of one row that share a kv head */
static void attend_group(const attention *a, size_t row, size_t kv_head, muc_golden_block *packed,
                         running *states)
{
    size_t last = a->position + row, first_query = row * a->heads + kv_head * a->group;
    size_t begin = last + 1 > a->seen ? last + 1 - a->seen : 0, first = begin / a->step;

    for (size_t chunk = first; chunk <= last / a->step; chunk++) {
        size_t hidden = chunk == first ? begin % a->step : 0;
        size_t count = last + 1 - chunk * a->step < a->step ? last + 1 - chunk * a->step : a->step;
        const muc_golden_block *values = packed;

        if (count == a->step)
            values = whole_chunk(a, kv_head, chunk);
        else
            pack(a, kv_head, chunk, count, packed);
        for (size_t g = 0; g < a->group; g++)
            attend_chunk(a, first_query + g, chunk, hidden, count, chunk == first, values,
                         &states[g]);
    }
    for (size_t g = 0; g < a->group; g++) {
        float *out = muc_ref_floats_out(a->call->output) + (first_query + g) * a->width;

        for (size_t i = 0; i < a->width; i++)
            out[i] = out[i] / states[g].sum;
    }
}

static void attend_range(void *arg, size_t part, size_t first, size_t end)
{
    const attention *a = arg;
    running *states = a->states + part * a->group;

    for (size_t i = first; i < end; i++)
        attend_group(a, i / a->kv_heads, i % a->kv_heads, a->packed + part * a->width * 2, states);
}

/* this call's keys and values, and the chunks of values that they complete */
static void store(const attention *a)
{
    const float *k = a->call->inputs[1]->read, *v = a->call->inputs[2]->read;
    size_t columns = a->kv_heads * a->width, end = a->position + a->rows;

    memcpy(muc_ref_floats_out(a->call->inputs[3]) + a->position * columns, k,
           a->rows * columns * sizeof(float));
    memcpy(muc_ref_floats_out(a->call->inputs[4]) + a->position * columns, v,
           a->rows * columns * sizeof(float));
    for (size_t r = 0; r < a->rows; r++)
        for (size_t h = 0; h < a->kv_heads; h++)
            muc_golden_encode(k + r * columns + h * a->width, a->width, a->terms.k,
                              a->kept->keys + (h * a->context + a->position + r) * a->pieces);
    for (size_t chunk = a->position / a->step; (chunk + 1) * a->step <= end; chunk++)
        for (size_t h = 0; h < a->kv_heads; h++)
            pack(a, h, chunk, a->step, whole_chunk(a, h, chunk));
}

static void show(const attention *a, const char *what, const float *data)
{
    char name[256];

    snprintf(name, sizeof(name), "%.200s.%s", a->call->node->name, what);
    a->call->probe(a->call->probe_arg, a->call->node, name, data, a->rows * a->heads, a->longest);
}

static muc_status make_seen(attention *a)
{
    muc_golden *golden = a->call->golden;
    size_t count = a->rows * a->heads * a->longest;

    free(golden->seen);
    golden->seen = NULL;
    if (!a->call->probe)
        return MUC_OK;
    MUC_TRY(MUC_NEW_ARRAY(a->call->ctx, a->call->graph->name, 2 * count, &golden->seen));
    a->scores = golden->seen;
    a->weights = golden->seen + count;
    return MUC_OK;
}

muc_status muc_kernel_golden_attention(const muc_ref_call *call)
{
    muc_golden *golden = call->golden;
    attention a = {
        .call = call,
        .kept = &golden->nodes[call->node - call->graph->nodes],
        .terms = *golden->nodes[call->node - call->graph->nodes].of_layer,
        .value_rows = call->inputs[4]->data,
        .step = golden->terms.step,
        .position = muc_ref_position(call),
        .rows = call->inputs[0]->rows,
        .heads = (size_t)muc_node_integer(call->node, MUC_KEY_HEADS),
        .kv_heads = (size_t)muc_node_integer(call->node, MUC_KEY_KV_HEADS),
        .width = (size_t)muc_node_integer(call->node, MUC_KEY_HEAD_DIM),
        .context = call->inputs[3]->rows,
        .scale = (float)muc_node_real(call->node, MUC_KEY_SCALE),
        .seen = SIZE_MAX,
    };
    size_t queries, parts = muc_ref_parts(call->ctx);
    void *states;

    if (muc_node_attribute(call->node, MUC_KEY_SEEN))
        a.seen = (size_t)muc_node_integer(call->node, MUC_KEY_SEEN);
    if (muc_node_attribute(call->node, MUC_KEY_CAP)) {
        double cap = muc_node_real(call->node, MUC_KEY_CAP);

        a.factor = (float)(muc_node_real(call->node, MUC_KEY_SCALE) / cap);
        a.cap = (float)cap;
        a.scale = 1;
    }
    a.group = a.heads / a.kv_heads;
    a.pieces = muc_golden_blocks(a.width);
    a.longest = a.position + a.rows;
    queries = a.rows * a.heads * a.pieces;
    MUC_TRY(make_seen(&a));
    MUC_TRY(muc_ref_reserve(call, parts * a.group * sizeof(running), &states));
    a.states = states;
    MUC_TRY(muc_golden_reserve(call->ctx, golden, queries + parts * a.width * 2));
    MUC_TRY(muc_golden_quantize(call, call->inputs[0]->read, a.rows * a.heads, a.width, a.terms.q,
                                golden->blocks));
    a.queries = golden->blocks;
    a.packed = golden->blocks + queries;
    store(&a);
    MUC_TRY(muc_ref_split(call->ctx, a.rows * a.kv_heads,
                          a.rows * a.heads * a.longest * a.width * 2, attend_range, &a));
    if (a.scores) {
        show(&a, "scores", a.scores);
        show(&a, "weights", a.weights);
    }
    return MUC_OK;
}
