/* llm.c - the operators of transformers in float32, straight from their definitions. */
#include "ref/walk.h"

#include <math.h>
#include <string.h>

#include "base/real.h"

uint32_t muc_ref_position(const muc_ref_call *call)
{
    uint32_t position = 0;

    /* cannot fail: the same expression took part in the shapes of this run */
    (void)muc_expr_eval(call->ctx, call->graph->pool, muc_node_expr(call->node, MUC_KEY_POSITION),
                        call->bindings, &position);
    return position;
}

muc_status muc_kernel_embed(const muc_ref_call *call)
{
    const muc_ref_value *table = call->inputs[1];
    size_t width = table->columns, row;

    for (size_t i = 0; i < call->inputs[0]->columns; i++) {
        float *out = muc_ref_floats_out(call->output) + i * width;
        const float *from;

        row = (size_t)muc_ref_integer(call->inputs[0], i);
        from = muc_ref_widen(table, row, 1, out);
        if (from != out)
            memcpy(out, from, width * sizeof(float));
    }
    return MUC_OK;
}

typedef struct linear {
    const muc_ref_call *call;
    float *panels; /* [parts][muc_ref_panel] */
} linear;

static void linear_columns(void *arg, size_t part, size_t first, size_t end)
{
    const linear *l = arg;
    const muc_ref_call *call = l->call;
    const muc_ref_value *x = call->inputs[0], *w = call->inputs[1];
    float *out = muc_ref_floats_out(call->output);
    size_t stride = call->output->columns;

    muc_ref_linear(x->read, x->rows, w, first, end, l->panels + part * muc_ref_panel(w), out,
                   stride);
    if (call->node->input_count < 3)
        return;
    for (size_t r = 0; r < x->rows; r++)
        for (size_t c = first; c < end; c++)
            out[r * stride + c] += muc_ref_floats(call->inputs[2])[c];
}

muc_status muc_kernel_linear(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *w = call->inputs[1];
    linear l = { .call = call };
    void *panels;

    if (x->dtype != MUC_F32)
        return muc_ref_linear_others(call);
    MUC_TRY(muc_ref_reserve(call, muc_ref_parts(call->ctx) * muc_ref_panel(w) * sizeof(float),
                            &panels));
    l.panels = panels;
    return muc_ref_split(call->ctx, w->rows, x->rows * w->rows * w->columns, linear_columns, &l);
}

/* elements that are normalised together */
static size_t norm_width(const muc_ref_call *call)
{
    const muc_attribute *group = muc_node_attribute(call->node, MUC_KEY_GROUP);
    const muc_ref_value *x = call->inputs[0];
    size_t axis = (size_t)muc_node_integer_or(call->node, MUC_KEY_AXIS, (int64_t)x->rank - 1);
    size_t width = 1;

    if (group)
        return (size_t)group->value.integer;
    for (; axis < x->rank; axis++)
        width *= x->dims[axis];
    return width;
}

/* of other types than f32 */
static void rmsnorm_reals(const muc_ref_call *call, double epsilon, size_t width)
{
    const muc_ref_value *x = call->inputs[0];

    for (size_t at = 0; at < x->elements; at += width) {
        double squares = 0, value;

        for (size_t i = at; i < at + width; i++)
            squares += muc_ref_real(x, i) * muc_ref_real(x, i);
        for (size_t i = 0; i < width; i++) {
            value = muc_ref_real(x, at + i) / sqrt(squares / (double)width + epsilon) *
                    muc_ref_real(call->inputs[1], i);
            muc_ref_store_reals(call->output, at + i, 1, &value);
        }
    }
}

muc_status muc_kernel_rmsnorm(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    const float *in = x->read, *gain = call->inputs[1]->read;
    float epsilon = (float)muc_node_real(call->node, MUC_KEY_EPSILON);
    size_t width = norm_width(call);
    float *out = call->output->data;

    if (x->dtype != MUC_F32) {
        rmsnorm_reals(call, epsilon, width);
        return MUC_OK;
    }
    for (size_t at = 0; at < x->elements; at += width) {
        const float *row = in + at;
        float factor = 1 / sqrtf(muc_ref_dot(row, row, width) / (float)width + epsilon);

        for (size_t i = 0; i < width; i++)
            out[at + i] = row[i] * factor * gain[i];
    }
    return MUC_OK;
}

muc_status muc_kernel_rope(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    size_t width = (size_t)muc_node_integer(call->node, MUC_KEY_HEAD_DIM);
    size_t half = call->inputs[1]->columns;
    uint32_t position = muc_ref_position(call);

    for (size_t r = 0; r < x->rows; r++) {
        const float *cosines = muc_ref_floats(call->inputs[1]) + (position + r) * half;
        const float *sines = muc_ref_floats(call->inputs[2]) + (position + r) * half;

        for (size_t at = r * x->columns; at < (r + 1) * x->columns; at += width) {
            const float *a = muc_ref_floats(x) + at, *b = a + half;
            float *out = muc_ref_floats_out(call->output) + at;

            for (size_t i = 0; i < half; i++) {
                out[i] = a[i] * cosines[i] - b[i] * sines[i];
                out[i + half] = b[i] * cosines[i] + a[i] * sines[i];
            }
            memcpy(out + 2 * half, a + 2 * half, (width - 2 * half) * sizeof(*out));
        }
    }
    return MUC_OK;
}

typedef struct attention {
    const muc_ref_call *call;
    const float *keys, *values; /* the caches [context][kv_columns] */
    float *scores;              /* [parts][group][longest] */
    size_t position, heads, group, width, kv_columns, longest, seen;
    float scale, cap; /* cap 0: none */
} attention;

/* softmax of scaled scores, not yet divided by what it returns, their sum */
static float weigh(const attention *a, float *scores, size_t length)
{
    float most = -INFINITY, sum = 0;

    for (size_t t = 0; t < length; t++) {
        scores[t] *= a->scale;
        if (a->cap > 0)
            scores[t] = a->cap * (float)muc_tanh((double)(scores[t] / a->cap));
        most = scores[t] > most ? scores[t] : most;
    }
    for (size_t t = 0; t < length; t++)
        scores[t] -= most;
    muc_ref_exp(scores, length);
    for (size_t t = 0; t < length; t++)
        sum += scores[t];
    return sum;
}

/* softmax(q k^T * scale) v for one row and the heads that share keys, over length positions from
 * first on; scores: scratch of [group][longest] */
static void attend(const attention *a, const float *q, size_t kv_head, size_t first, size_t length,
                   float *scores, float *out)
{
    size_t start = first * a->kv_columns + kv_head * a->width;

    muc_ref_matmul(q, a->group, a->keys + start, a->kv_columns, length, a->width, scores,
                   a->longest);
    for (size_t h = 0; h < a->group; h++, scores += a->longest, out += a->width) {
        float sum = weigh(a, scores, length);

        muc_ref_weighted_sum(scores, a->values + start, a->kv_columns, length, a->width, out);
        for (size_t i = 0; i < a->width; i++)
            out[i] /= sum;
    }
}

static void attention_rows(void *arg, size_t part, size_t first, size_t end)
{
    const attention *a = arg;
    size_t kv_heads = a->heads / a->group;

    for (size_t i = first; i < end; i++) {
        size_t end_position = a->position + i / kv_heads + 1, at = i * a->group * a->width;
        size_t seen = a->seen < end_position ? a->seen : end_position;

        attend(a, muc_ref_floats(a->call->inputs[0]) + at, i % kv_heads, end_position - seen, seen,
               a->scores + part * a->group * a->longest, muc_ref_floats_out(a->call->output) + at);
    }
}

static attention attention_of(const muc_ref_call *call)
{
    attention a = {
        .call = call,
        .keys = call->inputs[3]->read,
        .values = call->inputs[4]->read,
        .position = muc_ref_position(call),
        .heads = (size_t)muc_node_integer(call->node, MUC_KEY_HEADS),
        .width = (size_t)muc_node_integer(call->node, MUC_KEY_HEAD_DIM),
        .kv_columns = call->inputs[1]->columns,
        .scale = (float)muc_node_real(call->node, MUC_KEY_SCALE),
        .cap = (float)muc_node_real_or(call->node, MUC_KEY_CAP, 0),
        .seen = (size_t)muc_node_integer_or(call->node, MUC_KEY_SEEN, UINT32_MAX),
    };

    a.group = a.heads / (size_t)muc_node_integer(call->node, MUC_KEY_KV_HEADS);
    a.longest = a.position + call->inputs[0]->rows;
    return a;
}

muc_status muc_kernel_attention(const muc_ref_call *call)
{
    attention a = attention_of(call);
    size_t rows = call->inputs[0]->rows, columns = a.kv_columns;
    void *scores;

    MUC_TRY(muc_ref_reserve(call, muc_ref_parts(call->ctx) * a.group * a.longest * sizeof(float),
                            &scores));
    a.scores = scores;
    for (unsigned i = 0; i < 2; i++)
        memcpy(muc_ref_floats_out(call->inputs[3 + i]) + a.position * columns,
               call->inputs[1 + i]->read, rows * columns * sizeof(float));
    return muc_ref_split(call->ctx, rows * a.heads / a.group,
                         rows * a.heads * a.longest * a.width * 2, attention_rows, &a);
}
