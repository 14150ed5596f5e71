/* hybrid_products.c - real numbers meet int8 weights and caches: what multiplies them is quantized
 * when it comes, one scale a row (or head), and sums are exact. runtime/include/mur_decoder.h has
 * the formulas; these are they, from the graph's side.
 */
#include <math.h>
#include <string.h>

#include "mur_real.h"
#include "ref/kernels.h"

static const float LEAST = 7.88860905e-31f; /* 2^-100: rows without larger elements are zero */

/* Adding 1.5 * 2^23 leaves no place for halves; taking it away again leaves the nearest integer. */
static float nearest(float x)
{
    return (x + 12582912.0f) - 12582912.0f;
}

/* q = nearest(x / scale); returns the scale */
static float quantize(const float *x, size_t count, int8_t *q)
{
    float most = 0, inverse;

    for (size_t i = 0; i < count; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    if (most < LEAST) {
        memset(q, 0, count);
        return 0;
    }
    inverse = 127 / most;
    for (size_t i = 0; i < count; i++)
        q[i] = (int8_t)nearest(x[i] * inverse);
    return most / 127;
}

static int32_t dot(const int8_t *a, const int8_t *b, size_t count)
{
    int32_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

static float scale_of(const muc_quantization *quantization, size_t row)
{
    return quantization->scales[quantization->count > 1 ? row : 0];
}

/* weights are int8 [rows][columns] around zero, at most a scale a row */
muc_status muc_check_hybrid_weights(const muc_ref_call *call)
{
    const muc_quantization *q = call->input_tensors[1]->quantization;

    if (call->input_tensors[1]->dtype != MUC_I8 || (q->count > 1 && q->axis != 0))
        return muc_fail_on(muc_node_subject(call->ctx, call->graph, call->node), MUC_UNSUPPORTED,
                           "'%s' beside real numbers, expected i8 with scales along "
                           "dimension 0",
                           call->input_tensors[1]->name);
    for (uint32_t i = 0; i < q->count; i++)
        if (q->zero_points[i] != 0)
            return muc_fail_on(muc_node_subject(call->ctx, call->graph, call->node),
                               MUC_UNSUPPORTED, "'%s' has zero point %d, expected 0",
                               call->input_tensors[1]->name, q->zero_points[i]);
    return MUC_OK;
}

muc_status muc_kernel_embed_hybrid(const muc_ref_call *call)
{
    const muc_ref_value *table = call->inputs[1];
    const int8_t *rows = table->read;
    size_t width = table->columns, row;

    for (size_t i = 0; i < call->inputs[0]->columns; i++) {
        float *out = muc_ref_floats_out(call->output) + i * width, scale;

        row = (size_t)muc_ref_integer(call->inputs[0], i);
        scale = scale_of(call->input_tensors[1]->quantization, row);
        for (size_t j = 0; j < width; j++)
            out[j] = (float)rows[row * width + j] * scale;
    }
    return MUC_OK;
}

/* ---- linear ---- */

typedef struct product {
    const muc_ref_call *call;
    const int8_t *q; /* [rows][k] */
    const float *scales;
} product;

static void product_columns(void *arg, size_t part, size_t first, size_t end)
{
    const product *p = arg;
    const muc_ref_value *weights = p->call->inputs[1], *bias = muc_ref_input_of(p->call, 2);
    const muc_quantization *quantization = p->call->input_tensors[1]->quantization;
    size_t k = weights->columns, rows = p->call->output->rows;

    (void)part;
    for (size_t c = first; c < end; c++) {
        const int8_t *w = (const int8_t *)weights->read + c * k;

        for (size_t r = 0; r < rows; r++) {
            float y = (float)dot(w, p->q + r * k, k) * (p->scales[r] * scale_of(quantization, c));

            if (bias)
                y += muc_ref_floats(bias)[c];
            muc_ref_floats_out(p->call->output)[r * weights->rows + c] = y;
        }
    }
}

muc_status muc_kernel_linear_hybrid(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *w = call->inputs[1];
    size_t rows = x->rows, k = w->columns;
    product p = { .call = call };
    float *scales;
    int8_t *q;
    void *room;

    MUC_TRY(muc_ref_reserve(call, rows * (sizeof(float) + k), &room));
    scales = room;
    q = (int8_t *)(scales + rows);
    for (size_t r = 0; r < rows; r++)
        scales[r] = quantize(muc_ref_floats(x) + r * k, k, q + r * k);
    p.q = q;
    p.scales = scales;
    return muc_ref_split(call->ctx, w->rows, rows * w->rows * k, product_columns, &p);
}

/* ---- attention ---- */

typedef struct attention {
    const muc_ref_call *call;
    const int8_t *caches[2]; /* keys and values, [context][kv_columns] */
    const float *scales[2];  /* [context][kv_heads] */
    size_t position, heads, kv_heads, width, longest, seen;
    float scale, cap; /* cap 0: none */
    float *weights;   /* [parts][longest] */
    int8_t *q;        /* [parts][width] */
} attention;

/* e^x for x up to 0: see mur_exp_fast */
static float power(float x)
{
    float n = nearest(x * 46.1662413f), r = x - n * 0.0216608494f, whole;
    float p = (r * 0.5f + 1) * r + 1;

    if (x < -80)
        return 0;
    whole = floorf(n / 32);
    return p * ldexpf((float)exp2((double)(n - 32 * whole) / 32), (int)whole);
}

/* one query at position `last`, an earlier token's or this call's */
static void attend(const attention *a, size_t part, const float *x, size_t head, size_t last,
                   float *out)
{
    size_t kv_head = head / (a->heads / a->kv_heads), columns = a->kv_heads * a->width;
    const int8_t *keys = a->caches[0] + kv_head * a->width;
    const int8_t *values = a->caches[1] + kv_head * a->width;
    float *w = a->weights + part * a->longest, most = -INFINITY, sum_p = 0, sum_w = 0, inverse;
    int8_t *q = a->q + part * a->width;
    float factor = quantize(x, a->width, q) * a->scale;
    size_t first = a->seen <= last ? last + 1 - a->seen : 0;

    for (size_t t = first; t <= last; t++) {
        w[t] = (float)dot(q, keys + t * columns, a->width) * factor *
               a->scales[0][t * a->kv_heads + kv_head];
        if (a->cap > 0)
            w[t] = a->cap * mur_real_tanh(w[t] / a->cap);
        most = w[t] > most ? w[t] : most;
    }
    for (size_t t = first; t <= last; t++) {
        float p = power(w[t] - most);

        w[t] = p * a->scales[1][t * a->kv_heads + kv_head];
        sum_p += p;
        sum_w += w[t];
    }
    inverse = sum_w < LEAST ? 0 : 32767 / sum_w;
    for (size_t t = first; t <= last; t++)
        w[t] = nearest(w[t] * inverse);
    for (size_t i = 0; i < a->width; i++) {
        int32_t sum = 0;

        for (size_t t = first; t <= last; t++)
            sum += (int32_t)w[t] * values[t * columns + i];
        out[i] = (float)sum * (sum_w / (32767 * sum_p));
    }
}

static void attend_rows(void *arg, size_t part, size_t first, size_t end)
{
    const attention *a = arg;

    for (size_t i = first; i < end; i++)
        attend(a, part, muc_ref_floats(a->call->inputs[0]) + i * a->width, i % a->heads,
               a->position + i / a->heads, muc_ref_floats_out(a->call->output) + i * a->width);
}

/* this call's keys (0) or values (1) go into their cache */
static void append(const attention *a, unsigned which)
{
    const float *x = muc_ref_floats(a->call->inputs[1 + which]);
    int8_t *cache = a->call->inputs[3 + which]->data;
    float *scales = a->call->inputs[5 + which]->data;
    size_t first = a->position * a->kv_heads;

    for (size_t i = 0; i < a->call->inputs[0]->rows * a->kv_heads; i++)
        scales[first + i] = quantize(x + i * a->width, a->width, cache + (first + i) * a->width);
}

muc_status muc_kernel_attention_hybrid(const muc_ref_call *call)
{
    attention a = {
        .call = call,
        .caches = { call->inputs[3]->read, call->inputs[4]->read },
        .scales = { call->inputs[5]->read, call->inputs[6]->read },
        .position = muc_ref_position(call),
        .heads = (size_t)muc_node_integer(call->node, MUC_KEY_HEADS),
        .kv_heads = (size_t)muc_node_integer(call->node, MUC_KEY_KV_HEADS),
        .width = (size_t)muc_node_integer(call->node, MUC_KEY_HEAD_DIM),
        .scale = (float)muc_node_real(call->node, MUC_KEY_SCALE),
        .seen = (size_t)muc_node_integer_or(call->node, MUC_KEY_SEEN, UINT32_MAX),
        .cap = (float)muc_node_real_or(call->node, MUC_KEY_CAP, 0),
    };
    size_t rows = call->inputs[0]->rows, parts = muc_ref_parts(call->ctx);
    void *room;

    a.longest = a.position + rows;
    MUC_TRY(muc_ref_reserve(call, parts * (a.longest * sizeof(float) + a.width), &room));
    a.weights = room;
    a.q = (int8_t *)(a.weights + parts * a.longest);
    append(&a, 0);
    append(&a, 1);
    return muc_ref_split(call->ctx, rows * a.heads, rows * a.heads * a.longest * a.width * 2,
                         attend_rows, &a);
}
