/* kernels.c - the operators of ops.def in float32, straight from their definitions. */
#include "ref/kernels.h"

#include <math.h>
#include <string.h>

uint32_t muc_ref_position(const muc_ref_call *call)
{
    uint32_t position = 0;

    /* cannot fail: the same expression took part in the shapes of this run */
    (void)muc_expr_eval(call->ctx, call->graph->pool, muc_node_expr(call->node, MUC_KEY_POSITION),
                        call->bindings, &position);
    return position;
}

/* element i of an integer tensor of any width, as it is stored little-endian */
static int64_t integer_at(const muc_tensor *tensor, const void *data, size_t i)
{
    uint32_t width = muc_dtype_get(tensor->dtype)->block_bytes;
    const uint8_t *p = (const uint8_t *)data + i * width;
    bool is_signed = tensor->dtype == MUC_I64 || tensor->dtype == MUC_I32 ||
                     tensor->dtype == MUC_I16 || tensor->dtype == MUC_I8;
    uint64_t value = 0;

    for (uint32_t b = width; b-- > 0;)
        value = value << 8 | p[b];
    if (is_signed && width < 8 && value >> (8 * width - 1))
        value |= UINT64_MAX << (8 * width);
    return (int64_t)value;
}

muc_status muc_ref_token(const muc_ref_call *call, size_t i, size_t *row)
{
    int64_t token = integer_at(call->input_tensors[0], call->inputs[0]->integers, i);
    size_t rows = call->inputs[1]->rows;

    if (token < 0 || (uint64_t)token >= rows)
        return muc_fail(call->ctx, MUC_MALFORMED, call->graph->name, MUC_NO_OFFSET,
                        "node '%s': token %lld at %zu, expected one below %zu", call->node->name,
                        (long long)token, i, rows);
    *row = (size_t)token;
    return MUC_OK;
}

static muc_status run_embed(const muc_ref_call *call)
{
    const muc_ref_value *table = call->inputs[1];
    size_t width = table->columns, row;

    for (size_t i = 0; i < call->inputs[0]->columns; i++) {
        MUC_TRY(muc_ref_token(call, i, &row));
        memcpy(call->output->data + i * width, table->read + row * width, width * sizeof(float));
    }
    return MUC_OK;
}

static void linear_columns(void *arg, size_t part, size_t first, size_t end)
{
    const muc_ref_call *call = arg;
    const muc_ref_value *x = call->inputs[0], *w = call->inputs[1];
    float *out = call->output->data + first;
    size_t stride = call->output->columns;

    (void)part;
    muc_ref_matmul(x->read, x->rows, w->read + first * w->columns, end - first, w->columns, out,
                   stride);
    if (call->node->input_count < 3)
        return;
    for (size_t r = 0; r < x->rows; r++)
        for (size_t c = 0; c < end - first; c++)
            out[r * stride + c] += call->inputs[2]->read[first + c];
}

static muc_status run_linear(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *w = call->inputs[1];

    return muc_ref_split(call->ctx, w->rows, x->rows * w->rows * w->columns, linear_columns,
                         (void *)(uintptr_t)call);
}

static muc_status run_rmsnorm(const muc_ref_call *call)
{
    const muc_attribute *group = muc_node_attribute(call->node, MUC_KEY_GROUP);
    const muc_ref_value *x = call->inputs[0];
    const float *gain = call->inputs[1]->read;
    double epsilon = muc_node_real(call->node, MUC_KEY_EPSILON);
    size_t width = group ? (size_t)group->value.integer : x->columns;

    for (size_t at = 0; at < x->rows * x->columns; at += width) {
        const float *row = x->read + at;
        double mean = (double)muc_ref_dot(row, row, width) / (double)width;
        float factor = (float)(1 / sqrt(mean + epsilon));

        for (size_t i = 0; i < width; i++)
            call->output->data[at + i] = row[i] * factor * gain[i];
    }
    return MUC_OK;
}

static muc_status run_rope(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    size_t width = (size_t)muc_node_integer(call->node, MUC_KEY_HEAD_DIM), half = width / 2;
    uint32_t position = muc_ref_position(call);

    for (size_t r = 0; r < x->rows; r++) {
        const float *cosines = call->inputs[1]->read + (position + r) * half;
        const float *sines = call->inputs[2]->read + (position + r) * half;

        for (size_t at = r * x->columns; at < (r + 1) * x->columns; at += width) {
            const float *a = x->read + at, *b = a + half;
            float *out = call->output->data + at;

            for (size_t i = 0; i < half; i++) {
                out[i] = a[i] * cosines[i] - b[i] * sines[i];
                out[i + half] = b[i] * cosines[i] + a[i] * sines[i];
            }
        }
    }
    return MUC_OK;
}

typedef struct attention {
    const muc_ref_call *call;
    const float *keys, *values; /* the caches [context][kv_columns] */
    size_t position, heads, group, width, kv_columns, longest;
    float scale;
} attention;

/* softmax(q k^T * scale) v for one row and head over length positions; scores: scratch of length */
static void attend(const attention *a, const float *q, size_t kv_head, size_t length, float *scores,
                   float *out)
{
    const float *keys = a->keys + kv_head * a->width, *values = a->values + kv_head * a->width;
    float most = -INFINITY, sum = 0;

    muc_ref_dots(keys, a->kv_columns, length, q, a->width, scores, 1);
    for (size_t t = 0; t < length; t++) {
        scores[t] *= a->scale;
        most = scores[t] > most ? scores[t] : most;
    }
    for (size_t t = 0; t < length; t++)
        scores[t] -= most;
    muc_ref_exp(scores, length);
    memset(out, 0, a->width * sizeof(float));
    for (size_t t = 0; t < length; t++) {
        sum += scores[t];
        muc_ref_axpy(out, scores[t], values + t * a->kv_columns, a->width);
    }
    for (size_t i = 0; i < a->width; i++)
        out[i] /= sum;
}

static void attention_rows(void *arg, size_t part, size_t first, size_t end)
{
    const attention *a = arg;

    for (size_t i = first; i < end; i++) {
        size_t row = i / a->heads, head = i % a->heads;

        attend(a, a->call->inputs[0]->read + i * a->width, head / a->group, a->position + row + 1,
               a->call->scratch + part * a->longest, a->call->output->data + i * a->width);
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
    };

    a.group = a.heads / (size_t)muc_node_integer(call->node, MUC_KEY_KV_HEADS);
    a.longest = a.position + call->inputs[0]->rows;
    return a;
}

static size_t attention_scratch(const muc_ref_call *call)
{
    return muc_ref_parts(call->ctx) * attention_of(call).longest;
}

static muc_status run_attention(const muc_ref_call *call)
{
    attention a = attention_of(call);
    size_t rows = call->inputs[0]->rows, columns = a.kv_columns;

    for (unsigned i = 0; i < 2; i++)
        memcpy(call->inputs[3 + i]->data + a.position * columns, call->inputs[1 + i]->read,
               rows * columns * sizeof(float));
    return muc_ref_split(call->ctx, rows * a.heads, rows * a.heads * a.longest * a.width * 2,
                         attention_rows, &a);
}

static muc_status run_silu(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    float *y = call->output->data;
    size_t count = x->rows * x->columns;

    for (size_t i = 0; i < count; i++)
        y[i] = -x->read[i];
    muc_ref_exp(y, count);
    for (size_t i = 0; i < count; i++)
        y[i] = x->read[i] / (1 + y[i]);
    return MUC_OK;
}

static muc_status run_mul(const muc_ref_call *call)
{
    const muc_ref_value *a = call->inputs[0], *b = call->inputs[1];

    for (size_t i = 0; i < a->rows * a->columns; i++)
        call->output->data[i] = a->read[i] * b->read[i];
    return MUC_OK;
}

static muc_status run_add(const muc_ref_call *call)
{
    const muc_ref_value *a = call->inputs[0], *b = call->inputs[1];

    for (size_t i = 0; i < a->rows * a->columns; i++)
        call->output->data[i] = a->read[i] + b->read[i];
    return MUC_OK;
}

muc_ref_kernel muc_ref_kernel_of(muc_op op)
{
    static const muc_ref_kernel kernels[MUC_OP_COUNT] = {
        [MUC_OP_EMBED] = { run_embed, NULL },
        [MUC_OP_LINEAR] = { run_linear, NULL },
        [MUC_OP_RMSNORM] = { run_rmsnorm, NULL },
        [MUC_OP_ROPE] = { run_rope, NULL },
        [MUC_OP_SILU] = { run_silu, NULL },
        [MUC_OP_MUL] = { run_mul, NULL },
        [MUC_OP_ADD] = { run_add, NULL },
        [MUC_OP_ATTENTION] = { run_attention, attention_scratch },
    };

    return kernels[op];
}
