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

/* ---- attention: runtime/include/mur_attend.h ---- */

enum { KEY_BITS = 13, VALUE_BITS = 15, LONGEST_SUM = 512, SCORE_LIMIT = 16128 };

typedef struct attention {
    const muc_ref_call *call;
    const int8_t *caches[2]; /* keys and values, [context][kv_columns] */
    const float *scales[2];  /* [context][kv_heads] */
    size_t position, heads, kv_heads, width, longest, seen;
    float scale, cap; /* cap 0: none */
    int32_t *scores;  /* [parts][longest] */
    int8_t *q;        /* [parts][width] */
} attention;

/* 65535 of a power of two, 64 steps an octave; nothing from 15 octaves on */
static int64_t weight_of(int64_t steps_below)
{
    return steps_below >= 960 ? 0 : lrint(65535 * exp2((double)-steps_below / 64));
}

/* the exponent at position `last`: where a scale has a greater one, it is its own and one more */
static int exponent_of(const attention *a, int which, size_t kv_head, size_t last)
{
    int most = -120, exponent;

    for (size_t t = 0; t <= last; t++) {
        float scale = a->scales[which][t * a->kv_heads + kv_head];

        if (scale > 0) {
            exponent = frexpf(scale, &exponent) > 0.5f ? exponent : exponent - 1;
            most = exponent > most ? exponent + 1 : most;
        }
    }
    return most;
}

/* 2^exponent, the nearest that a float can be */
static float power(int exponent)
{
    return ldexpf(1, exponent < -126 ? -126 : exponent > 127 ? 127 : exponent);
}

/* the scale of a position as an integer, in units of 2^(exponent - bits) */
static int64_t mantissa(const attention *a, int which, size_t kv_head, size_t t, int exponent)
{
    float scale = a->scales[which][t * a->kv_heads + kv_head];

    return (int64_t)ldexp((double)scale, (which ? VALUE_BITS : KEY_BITS) - exponent);
}

/* the score under a cap, whose units are so large */
static int32_t cap_score(const attention *a, int32_t score, float unit)
{
    float capped;

    if (!(a->cap > 0) || !(unit > 0))
        return score;
    capped = a->cap * mur_real_tanh((float)score * unit / a->cap) / unit;
    if (!(capped < SCORE_LIMIT))
        return SCORE_LIMIT;
    return capped > -SCORE_LIMIT ? (int32_t)nearest(capped) : -SCORE_LIMIT;
}

/* Scores of positions first .. last, of a query of scale `scale`, whose attention's own is in it;
 * returns the steps of weight_of, times 2^16, of one of their units. */
static int64_t score(const attention *a, const int8_t *q, float scale, size_t kv_head, size_t first,
                     size_t last, int32_t *scores)
{
    size_t columns = a->kv_heads * a->width;
    const int8_t *keys = a->caches[0] + kv_head * a->width;
    int exponent = exponent_of(a, 0, kv_head, last), extra = 0;
    float steps;
    int64_t whole, highest = 1;

    while ((size_t)8 << extra < a->width)
        extra++;
    for (size_t t = first; t <= last; t++) {
        int32_t sum = dot(q, keys + t * columns, a->width) >> extra;

        scores[t] = (int32_t)(sum * mantissa(a, 0, kv_head, t, exponent) >> 16);
        scores[t] = cap_score(a, scores[t], scale * power(exponent - KEY_BITS + extra + 16));
    }
    steps = scale * 92.3324826f * power(exponent - KEY_BITS + extra + 32);
    whole = !(steps > 0) ? 0 : steps < 4194304 ? (int64_t)steps : 4194304;
    while (whole >= highest << 16)
        highest *= 2;
    return whole / highest * highest;
}

/* scores become weights of the values; returns the sum of the probabilities, of 65535 each */
static int64_t soften(const attention *a, int64_t steps, size_t kv_head, size_t first, size_t last,
                      int32_t *scores)
{
    int exponent = exponent_of(a, 1, kv_head, last);
    int64_t reach = steps && 1023 * 65536 / steps < 32767 ? 1023 * 65536 / steps : 32767, sum = 0;
    int32_t most = scores[first];

    for (size_t t = first; t <= last; t++)
        most = scores[t] > most ? scores[t] : most;
    for (size_t t = first; t <= last; t++) {
        int64_t below = most - scores[t] < reach ? most - scores[t] : reach;
        int64_t p = weight_of((steps * reach >> 16) - (steps * (reach - below) >> 16));

        sum += p;
        scores[t] = (int32_t)(p * mantissa(a, 1, kv_head, t, exponent) >> 16);
    }
    return sum;
}

/* one query at position `last`, an earlier token's or this call's */
static void attend(const attention *a, size_t part, const float *x, size_t head, size_t last,
                   float *out)
{
    size_t kv_head = head / (a->heads / a->kv_heads), columns = a->kv_heads * a->width;
    const int8_t *values = a->caches[1] + kv_head * a->width;
    int32_t *weights = a->scores + part * a->longest;
    int8_t *q = a->q + part * a->width;
    size_t first = a->seen <= last ? last + 1 - a->seen : 0;
    float scale = quantize(x, a->width, q) * a->scale;
    int64_t steps = score(a, q, scale, kv_head, first, last, weights);
    int64_t sum_p = soften(a, steps, kv_head, first, last, weights);
    float factor = power(exponent_of(a, 1, kv_head, last) + 1) / (float)sum_p;

    for (size_t i = 0; i < a->width; i++) {
        float total = 0;
        int32_t sum = 0;

        for (size_t t = first; t <= last; t++) {
            sum += weights[t] * values[t * columns + i];
            if (t % LONGEST_SUM == LONGEST_SUM - 1 || t == last) {
                total += (float)sum;
                sum = 0;
            }
        }
        out[i] = total * factor;
    }
}

static void attend_rows(void *arg, size_t part, size_t first, size_t end)
{
    const attention *a = arg;

    for (size_t i = first; i < end; i++)
        attend(a, part, muc_ref_floats(a->call->inputs[0]) + i * a->width, i % a->heads,
               a->position + i / a->heads, muc_ref_floats_out(a->call->output) + i * a->width);
}

/* Quantizes one head of a token by a scale of so many bits in units of 2^(exponent - bits). The
 * exponent is all earlier scales', or a greater one that this needs. */
static float quantize_with(const float *x, size_t width, int bits, int exponent, int8_t *q)
{
    float most = 0, whole, scale;
    int needed;

    for (size_t i = 0; i < width; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    if (most < LEAST) {
        memset(q, 0, width);
        return 0;
    }
    most = fminf(most, 0x1p120f) / 127;
    (void)frexpf(most, &needed);
    if (needed > exponent)
        exponent = needed + 1;
    whole = floorf(ldexpf(most, bits - exponent)) + 1;
    scale = ldexpf(fminf(whole, 32767), exponent - bits);
    for (size_t i = 0; i < width; i++)
        q[i] = (int8_t)nearest(x[i] * (1 / scale));
    return scale;
}

/* this call's keys (0) or values (1) go into their cache */
static void append(const attention *a, int which)
{
    const float *x = muc_ref_floats(a->call->inputs[1 + which]);
    int8_t *cache = a->call->inputs[3 + which]->data;
    float *scales = a->call->inputs[5 + which]->data;

    for (size_t i = 0; i < a->call->inputs[0]->rows * a->kv_heads; i++) {
        size_t t = a->position + i / a->kv_heads, head = i % a->kv_heads;
        size_t at = t * a->kv_heads + head;
        int exponent = t == 0 ? -120 : exponent_of(a, which, head, t - 1);

        scales[at] = quantize_with(x + i * a->width, a->width, which ? VALUE_BITS : KEY_BITS,
                                   exponent, cache + at * a->width);
    }
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
    MUC_TRY(muc_ref_reserve(call, parts * (a.longest * sizeof(*a.scores) + a.width), &room));
    a.scores = room;
    a.q = (int8_t *)(a.scores + parts * a.longest);
    append(&a, 0);
    append(&a, 1);
    return muc_ref_split(call->ctx, rows * a.heads, rows * a.heads * a.longest * a.width * 2,
                         attend_rows, &a);
}
