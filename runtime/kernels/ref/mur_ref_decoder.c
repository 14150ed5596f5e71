/* mur_ref_decoder.c - a decoder's operators on int8 in plain C: what faster versions must equal.
 *
 * A vector is int8 [k], padded; a matrix int8 [n][k]; keys and values int8 [kv_heads][context]
 * [width].
 */
#include "mur_decoder.h"
#include "mur_decoder_arith.h"

/* the scale of x[0..count-1]; *inverse is what its elements are multiplied by */
static float scale_of(const float *x, uint32_t count, float *inverse)
{
    float most = mur_most(x, count);

    *inverse = 0;
    if (most < MUR_LEAST)
        return 0;
    *inverse = 127.0f / most;
    return most / 127.0f;
}

static float quantize(const float *x, uint32_t count, int8_t *q)
{
    float inverse, scale = scale_of(x, count, &inverse);

    for (uint32_t i = 0; i < count; i++)
        q[i] = (int8_t)mur_round(x[i] * inverse);
    return scale;
}

void mur_ref_quantize(uint32_t rows, uint32_t k, const float *x, void *vectors, float *scales)
{
    int8_t *q = vectors;

    for (uint32_t r = 0; r < rows; r++, x += k, q += MUR_REF_VECTOR_BYTES(k)) {
        scales[r] = quantize(x, k, q);
        for (uint32_t i = k; i < MUR_REF_VECTOR_BYTES(k); i++)
            q[i] = 0;
    }
}

static int32_t dot(const int8_t *a, const int8_t *b, uint32_t count)
{
    int32_t sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

void mur_ref_linear(const mur_matrix_q8 *matrix, uint32_t rows, const void *vectors,
                    const float *scales, float *out)
{
    const int8_t *w = matrix->packed;

    for (uint32_t n = 0; n < matrix->n; n++, w += matrix->k) {
        const int8_t *x = vectors;

        for (uint32_t r = 0; r < rows; r++, x += MUR_REF_VECTOR_BYTES(matrix->k)) {
            float y = (float)dot(w, x, matrix->k) * (scales[r] * matrix->scales[n]);

            out[r * matrix->n + n] = matrix->bias ? y + matrix->bias[n] : y;
        }
    }
}

void mur_ref_embed(const mur_matrix_q8 *matrix, uint32_t rows, const int32_t *tokens, float *out)
{
    for (; rows != 0; rows--, tokens++, out += matrix->k) {
        const int8_t *q = (const int8_t *)matrix->packed + (uint32_t)*tokens * matrix->k;
        float scale = matrix->scales[*tokens];

        for (uint32_t i = 0; i < matrix->k; i++)
            out[i] = (float)q[i] * scale;
    }
}

/* one row's keys or values, [kv_heads][width], into their cache */
static void append(const mur_attention_q8 *op, uint32_t pos, const float *x, int8_t *cache,
                   float *scales)
{
    for (uint32_t h = 0; h < op->kv_heads; h++, x += op->width) {
        size_t at = (size_t)h * op->context + pos;

        scales[at] = quantize(x, op->width, cache + at * op->width);
    }
}

/* scratch of one head */
typedef struct head_scratch {
    float *weights; /* [context] */
    int16_t *u;     /* [context] */
    int8_t *q;      /* [width] */
    int32_t *sums;  /* [width] */
} head_scratch;

static void score(const mur_attention_q8 *op, const int8_t *keys, const float *scales,
                  uint32_t length, float factor, const head_scratch *s)
{
    for (uint32_t t = 0; t < length; t++, keys += op->width)
        s->weights[t] = (float)dot(s->q, keys, op->width) * factor * scales[t];
}

/* scores become integers of 15 bits; returns the factor that makes their sums real */
static float soften(const float *scales, uint32_t length, const head_scratch *s)
{
    float most = s->weights[0], sum_p = 0, sum_w = 0, inverse = 0;

    for (uint32_t t = 1; t < length; t++)
        most = s->weights[t] > most ? s->weights[t] : most;
    for (uint32_t t = 0; t < length; t++) {
        float p = mur_exp_fast(s->weights[t] - most);

        s->weights[t] = p * scales[t];
        sum_p += p;
        sum_w += s->weights[t];
    }
    if (!(sum_w < MUR_LEAST))
        inverse = 32767.0f / sum_w;
    for (uint32_t t = 0; t < length; t++)
        s->u[t] = mur_round(s->weights[t] * inverse);
    return sum_w / (32767.0f * sum_p);
}

static void mix(const mur_attention_q8 *op, const int8_t *values, uint32_t length, float factor,
                const head_scratch *s, float *out)
{
    for (uint32_t i = 0; i < op->width; i++)
        s->sums[i] = 0;
    for (uint32_t t = 0; t < length; t++, values += op->width)
        for (uint32_t i = 0; i < op->width; i++)
            s->sums[i] += s->u[t] * values[i];
    for (uint32_t i = 0; i < op->width; i++)
        out[i] = (float)s->sums[i] * factor;
}

void mur_ref_attention(const mur_attention_q8 *op, uint32_t pos, uint32_t rows, const float *q,
                       const float *k, const float *v, void *keys, void *values, float *key_scales,
                       float *value_scales, float *out, void *scratch)
{
    head_scratch s = { scratch, NULL, NULL, NULL };
    uint32_t kv_columns = op->kv_heads * op->width, group = op->heads / op->kv_heads;

    s.sums = (int32_t *)(void *)(s.weights + op->context);
    s.u = (int16_t *)(void *)(s.sums + op->width);
    s.q = (int8_t *)(void *)(s.u + op->context);
    for (; rows != 0; rows--, pos++, k += kv_columns, v += kv_columns) {
        uint32_t first = mur_first_seen(op->seen, pos), length = pos + 1 - first;

        append(op, pos, k, keys, key_scales);
        append(op, pos, v, values, value_scales);
        for (uint32_t h = 0; h < op->heads; h++, q += op->width, out += op->width) {
            size_t at = (size_t)(h / group) * op->context + first;
            float scale = quantize(q, op->width, s.q);

            score(op, (const int8_t *)keys + at * op->width, key_scales + at, length,
                  scale * op->scale, &s);
            if (op->cap_scores)
                op->cap_scores(op->cap, length, s.weights);
            mix(op, (const int8_t *)values + at * op->width, length,
                soften(value_scales + at, length, &s), &s, out);
        }
    }
}
