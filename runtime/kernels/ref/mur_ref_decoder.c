/* mur_ref_decoder.c - a decoder's operators on int8 in plain C: what faster versions must equal.
 *
 * A vector is int8 [k], padded; a matrix int8 [n][k]; keys and values int8 [kv_heads][context]
 * [width].
 */
#include "mur_attend.h"
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
        q[i] = (int8_t)mur_round_product(x[i], inverse);
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

/* ---- attention ---- */

static void score(const mur_attended *a)
{
    uint32_t width = a->op->width;
    const int8_t *keys = (const int8_t *)a->keys + (size_t)a->begin * width;

    for (uint32_t t = 0; t < a->length; t++, keys += width) {
        int32_t sum = 0;

        for (uint32_t i = 0; i < width; i++)
            sum += a->q[i] * keys[i];
        a->scores[t] = mur_attend_score(a, sum, a->scales[t]);
    }
}

static void mix(const mur_attended *a)
{
    uint32_t width = a->op->width;
    const int8_t *values = (const int8_t *)a->values + (size_t)a->begin * width;

    for (uint32_t i = 0; i < width; i++)
        a->sums[i] = 0;
    for (uint32_t t = 0; t < a->length; t++, values += width)
        for (uint32_t i = 0; i < width; i++)
            a->sums[i] += a->scores[t] * values[i];
}

void mur_ref_attention(const mur_attention_q8 *op, uint32_t pos, uint32_t rows, const float *q,
                       const float *k, const float *v, void *keys, void *values, void *key_scales,
                       void *value_scales, float *out, void *scratch)
{
    static const mur_attend_kernels kernels = {
        1, 1, mur_attend_put, mur_attend_put, score, mur_attend_most, mur_attend_weigh, mix
    };

    mur_attend(op, &kernels, pos, rows, q, k, v, keys, values, key_scales, value_scales, out,
               scratch);
}
