/* mur_dsp_attention.c - attention on cores with SMLAD; see mur_dsp_pair.h.
 *
 * Keys: int16 [kv_heads][context / 2][width], a pair is two positions. Values: int16
 * [kv_heads][width / 2][context], a pair is two columns.
 */
#include "mur_decoder.h"
#include "mur_decoder_arith.h"
#include "mur_dsp_pair.h"

#include <float.h>

enum { STEP = 4 }; /* positions that are mixed at once */

/* of one head */
typedef struct head_scratch {
    float *weights; /* [context] */
    int16_t *u;     /* [context] */
    int16_t *q;     /* [width] */
} head_scratch;

static void append_keys(const mur_attention_q8 *op, uint32_t pos, const float *k, int16_t *keys,
                        float *scales, int16_t *q)
{
    keys += (size_t)(pos / 2) * op->width;
    scales += pos;
    for (uint32_t h = 0; h < op->kv_heads; h++, k += op->width, scales += op->context) {
        *scales = mur_dsp_quantize_one(k, op->width, q);
        for (uint32_t i = 0; i < op->width; i++)
            keys[i] = pos % 2 ? mur_pair(mur_pair_of_first(keys[i]), q[i]) : q[i];
        keys += (size_t)(op->context / 2) * op->width;
    }
}

static void append_values(const mur_attention_q8 *op, uint32_t pos, const float *v, int16_t *values,
                          float *scales, int16_t *q)
{
    values += pos;
    scales += pos;
    for (uint32_t h = 0; h < op->kv_heads; h++, v += op->width, scales += op->context) {
        *scales = mur_dsp_quantize_one(v, op->width, q);
        for (uint32_t i = 0; i < op->width; i += 2, values += op->context)
            *values = mur_pair(q[i], q[i + 1]);
    }
}

/* the products of one query with the keys of two positions */
static inline mur_pair_sum meet(const int16_t *keys, const int16_t *q, uint32_t width)
{
    mur_pair_sum sum = { 0, 0 };

    for (; width >= 8; width -= 8, keys += 8, q += 8) {
        mur_pair_step(&sum, mur_two(keys), mur_two(q));
        mur_pair_step(&sum, mur_two(keys + 2), mur_two(q + 2));
        mur_pair_step(&sum, mur_two(keys + 4), mur_two(q + 4));
        mur_pair_step(&sum, mur_two(keys + 6), mur_two(q + 6));
    }
    for (; width != 0; width -= 2, keys += 2, q += 2)
        mur_pair_step(&sum, mur_two(keys), mur_two(q));
    return sum;
}

/* the scores of positions 0..length-1; returns the greatest */
static float score(const mur_attention_q8 *op, const int16_t *keys, const float *scales,
                   uint32_t length, float factor, const head_scratch *s)
{
    float *weights = s->weights, *end = weights + length / 2 * 2;
    float most = -FLT_MAX;

    for (; weights < end; weights += 2, scales += 2, keys += op->width) {
        mur_pair_sum sum = meet(keys, s->q, op->width);
        float first = (float)mur_pair_first(sum) * factor * scales[0];
        float second = (float)mur_pair_second(sum) * factor * scales[1];

        weights[0] = first;
        weights[1] = second;
        most = first > most ? first : most;
        most = second > most ? second : most;
    }
    if (length % 2 != 0) {
        *weights = (float)mur_pair_first(meet(keys, s->q, op->width)) * factor * *scales;
        most = *weights > most ? *weights : most;
    }
    return most;
}

/* Caps scores, and makes those before the first that is seen weigh nothing; returns the greatest
 * of the others. */
static float limit(const mur_attention_q8 *op, uint32_t hidden, uint32_t length, float *weights)
{
    float most = -FLT_MAX;

    if (op->cap_scores)
        op->cap_scores(op->cap, length, weights);
    for (uint32_t t = 0; t < hidden; t++)
        weights[t] = -FLT_MAX;
    for (uint32_t t = hidden; t < length; t++)
        most = weights[t] > most ? weights[t] : most;
    return most;
}

/* scores become integers of 15 bits, followed by zeros up to a multiple of STEP; returns the factor
 * that makes their sums real */
static float soften(const float *scales, uint32_t length, float most, const head_scratch *s)
{
    float sum_p = 0, sum_w = 0, inverse = 0, *weights = s->weights;
    int16_t *u = s->u;

    for (uint32_t t = 0; t < length; t++) {
        float p = mur_exp_fast(weights[t] - most), w = p * scales[t];

        weights[t] = w;
        sum_p += p;
        sum_w += w;
    }
    for (uint32_t t = length; t % STEP != 0; t++)
        weights[t] = 0;
    if (!(sum_w < MUR_LEAST))
        inverse = 32767.0f / sum_w;
    for (uint32_t t = 0; t < length; t += 4, u += 4, weights += 4) {
        u[0] = mur_round(weights[0] * inverse);
        u[1] = mur_round(weights[1] * inverse);
        u[2] = mur_round(weights[2] * inverse);
        u[3] = mur_round(weights[3] * inverse);
    }
    return sum_w / (32767.0f * sum_p);
}

/* the sums of u stay below 66000, so that a pair's are exact over any context */
static void mix(const mur_attention_q8 *op, const int16_t *values, uint32_t length, float factor,
                const int16_t *u, float *out)
{
    for (uint32_t i = 0; i < op->width; i += 2, values += op->context, out += 2) {
        mur_pair_sum sum = { 0, 0 };

        for (uint32_t t = 0; t < length; t += STEP) {
            mur_pair_step(&sum, mur_two(values + t), mur_two(u + t));
            mur_pair_step(&sum, mur_two(values + t + 2), mur_two(u + t + 2));
        }
        out[0] = (float)mur_pair_first(sum) * factor;
        out[1] = (float)mur_pair_second(sum) * factor;
    }
}

void mur_dsp_attention(const mur_attention_q8 *op, uint32_t pos, uint32_t rows, const float *q,
                       const float *k, const float *v, void *keys, void *values, float *key_scales,
                       float *value_scales, float *out, void *scratch)
{
    uint32_t kv_columns = op->kv_heads * op->width, group = op->heads / op->kv_heads;
    head_scratch s = { scratch, NULL, NULL };

    s.u = (int16_t *)(void *)(s.weights + op->context);
    s.q = s.u + op->context;
    for (; rows != 0; rows--, pos++, k += kv_columns, v += kv_columns) {
        uint32_t first = mur_first_seen(op->seen, pos), begin = first / STEP * STEP;
        uint32_t length = pos + 1 - begin;

        append_keys(op, pos, k, keys, key_scales, s.q);
        append_values(op, pos, v, values, value_scales, s.q);
        for (uint32_t h = 0; h < op->heads; h++, q += op->width, out += op->width) {
            size_t at = (size_t)(h / group) * op->context;
            float scale = mur_dsp_quantize_one(q, op->width, s.q), most, factor;

            most = score(op, (const int16_t *)keys + (at + begin) / 2 * op->width,
                         key_scales + at + begin, length, scale * op->scale, &s);
            if (first != begin || op->cap_scores)
                most = limit(op, first - begin, length, s.weights);
            factor = soften(value_scales + at + begin, length, most, &s);
            mix(op, (const int16_t *)values + at / 2 * op->width + begin, length, factor, s.u, out);
        }
    }
}
