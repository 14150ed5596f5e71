/* mur_host_decoder.c - a decoder's vectors, int8 matrices and attention on the machine that runs
 * the compiler. All lie as mur_ref_decoder.c has them.
 */
#include "mur_decoder.h"
#include "mur_decoder_arith.h"
#include "mur_host_dot.h"

/* ---- vectors ---- */

#if MUR_HAVE_X86

MUR_AVX2 static float most_256(const float *x, uint32_t count)
{
    __m256i most = _mm256_setzero_si256();
    uint32_t all[8], i = 0;

    for (; i + 8 <= count; i += 8)
        most =
            _mm256_max_epu32(most, _mm256_slli_epi32(_mm256_loadu_si256((const void *)(x + i)), 1));
    _mm256_storeu_si256((void *)all, most);
    for (uint32_t j = 1; j < 8; j++)
        all[0] = all[j] > all[0] ? all[j] : all[0];
    for (; i < count; i++)
        all[0] = mur_greater(all[0], x[i]);
    return mur_float_of(all[0] >> 1);
}

MUR_AVX2 static void round_256(const float *x, uint32_t count, float inverse, int8_t *q)
{
    const __m256 factor = _mm256_set1_ps(inverse), snap = _mm256_set1_ps(MUR_SNAP);
    const __m256i low = _mm256_set1_epi32(0x0c080400);
    uint32_t i = 0;

    for (; i + 8 <= count; i += 8) {
        __m256 y = _mm256_add_ps(_mm256_mul_ps(_mm256_loadu_ps(x + i), factor), snap);
        __m256i bytes = _mm256_shuffle_epi8(_mm256_castps_si256(y), low);

        _mm_storeu_si64(q + i, _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes),
                                                  _mm256_extracti128_si256(bytes, 1)));
    }
    for (; i < count; i++)
        q[i] = (int8_t)mur_round(x[i] * inverse);
}

#endif

static float most_of(const float *x, uint32_t count)
{
#if MUR_HAVE_X86
    if (mur_host_level() > 0)
        return most_256(x, count);
#endif
    return mur_most(x, count);
}

static float quantize(const float *x, uint32_t count, int8_t *q)
{
    float most = most_of(x, count), inverse = most < MUR_LEAST ? 0.0f : 127.0f / most;

#if MUR_HAVE_X86
    if (mur_host_level() > 0)
        round_256(x, count, inverse, q);
    else
#endif
        for (uint32_t i = 0; i < count; i++)
            q[i] = (int8_t)mur_round(x[i] * inverse);
    return most < MUR_LEAST ? 0.0f : most / 127.0f;
}

void mur_host_quantize(uint32_t rows, uint32_t k, const float *x, void *vectors, float *scales)
{
    int8_t *q = vectors;

    for (uint32_t r = 0; r < rows; r++, x += k, q += MUR_REF_VECTOR_BYTES(k)) {
        scales[r] = quantize(x, k, q);
        for (uint32_t i = k; i < MUR_REF_VECTOR_BYTES(k); i++)
            q[i] = 0;
    }
}

/* ---- matrices ---- */

void mur_host_linear(const mur_matrix_q8 *matrix, uint32_t rows, const void *vectors,
                     const float *scales, float *out)
{
    const uint32_t bytes = MUR_REF_VECTOR_BYTES(matrix->k);
    mur_host_product *product = mur_host_find_product();

    for (uint32_t n = 0; n < matrix->n; n += MUR_HOST_ROWS) {
        uint32_t there = matrix->n - n < MUR_HOST_ROWS ? matrix->n - n : MUR_HOST_ROWS;
        const int8_t *w[MUR_HOST_ROWS];

        for (uint32_t i = 0; i < MUR_HOST_ROWS;
             i++) /* rows that are not there are the first again */
            w[i] = (const int8_t *)matrix->packed + (size_t)(n + (i < there ? i : 0)) * matrix->k;
        for (uint32_t r = 0, count; r < rows; r += count) {
            int32_t sums[MUR_HOST_VECTORS][MUR_HOST_ROWS] = { { 0 } };

            count = rows - r < MUR_HOST_VECTORS ? rows - r : MUR_HOST_VECTORS;
            product(w, (const int8_t *)vectors + (size_t)r * bytes, bytes, count, matrix->k, sums);
            for (uint32_t v = 0; v < count; v++)
                for (uint32_t i = 0; i < there; i++) {
                    float y = (float)sums[v][i] * (scales[r + v] * matrix->scales[n + i]);

                    out[(size_t)(r + v) * matrix->n + n + i] =
                        matrix->bias ? y + matrix->bias[n + i] : y;
                }
        }
    }
}

/* ---- attention ---- */

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
    mur_host_product *product = mur_host_find_product();

    for (uint32_t t = 0; t < length; t += MUR_HOST_ROWS) {
        uint32_t there = length - t < MUR_HOST_ROWS ? length - t : MUR_HOST_ROWS;
        const int8_t *rows[MUR_HOST_ROWS];
        int32_t sums[1][MUR_HOST_ROWS] = { { 0 } };

        for (uint32_t i = 0; i < MUR_HOST_ROWS; i++)
            rows[i] = keys + (size_t)(t + (i < there ? i : 0)) * op->width;
        product(rows, s->q, op->width, 1, op->width, sums);
        for (uint32_t i = 0; i < there; i++)
            s->weights[t + i] = (float)sums[0][i] * factor * scales[t + i];
    }
}

#if MUR_HAVE_X86

/* x[t] = e^(x[t] - most): mur_exp_fast; gives how many are done, a multiple of 8 */
MUR_AVX2 static uint32_t exp_256(float *x, uint32_t count, float most)
{
    const __m256 snap = _mm256_set1_ps(MUR_SNAP), one = _mm256_set1_ps(1);
    uint32_t t = 0;

    for (; t + 8 <= count; t += 8) {
        __m256 d = _mm256_sub_ps(_mm256_loadu_ps(x + t), _mm256_set1_ps(most)), r, p, power;
        __m256 shifted = _mm256_add_ps(_mm256_mul_ps(d, _mm256_set1_ps(46.1662413f)), snap);
        __m256i n = _mm256_castps_si256(shifted), fraction = _mm256_set1_epi32(31);
        __m256i bits =
            _mm256_i32gather_epi32((const void *)mur_exp_table, _mm256_and_si256(n, fraction), 4);

        r = _mm256_sub_ps(
            d, _mm256_mul_ps(_mm256_sub_ps(shifted, snap), _mm256_set1_ps(0.0216608494f)));
        p = _mm256_add_ps(_mm256_mul_ps(r, _mm256_set1_ps(0.5f)), one);
        p = _mm256_add_ps(_mm256_mul_ps(p, r), one);
        bits = _mm256_add_epi32(bits, _mm256_slli_epi32(_mm256_andnot_si256(fraction, n), 18));
        power = _mm256_mul_ps(p, _mm256_castsi256_ps(bits));
        d = _mm256_cmp_ps(d, _mm256_set1_ps(-80.0f), _CMP_LT_OQ);
        _mm256_storeu_ps(x + t, _mm256_andnot_ps(d, power));
    }
    return t;
}

/* u[t] = rne(weights[t] * inverse); gives how many are done */
MUR_AVX2 static uint32_t fix_256(const float *weights, uint32_t count, float inverse, int16_t *u)
{
    const __m256 factor = _mm256_set1_ps(inverse), snap = _mm256_set1_ps(MUR_SNAP);
    const __m256i low = _mm256_set1_epi64x(0x0d0c090805040100);
    uint32_t t = 0;

    for (; t + 8 <= count; t += 8) {
        __m256 y = _mm256_add_ps(_mm256_mul_ps(_mm256_loadu_ps(weights + t), factor), snap);
        __m256i halves = _mm256_shuffle_epi8(_mm256_castps_si256(y), low);

        _mm_storeu_si128((void *)(u + t), _mm_unpacklo_epi64(_mm256_castsi256_si128(halves),
                                                             _mm256_extracti128_si256(halves, 1)));
    }
    return t;
}

/* sums of 16 columns: pairs of positions at once, an odd one with zeros */
MUR_AVX2 static void mix_256(const int8_t *values, uint32_t width, const int16_t *u, uint32_t count,
                             int32_t *sums)
{
    __m256i low = _mm256_setzero_si256(), high = low;

    for (uint32_t t = 0; t < count; t += 2, values += 2 * width) {
        int more = t + 1 < count;
        __m128i a = _mm_loadu_si128((const void *)values);
        __m128i b = more ? _mm_loadu_si128((const void *)(values + width)) : a;
        __m256i pair = _mm256_set1_epi32(
            (int32_t)((uint32_t)(uint16_t)u[t] | (more ? (uint32_t)(uint16_t)u[t + 1] << 16 : 0)));

        low = _mm256_add_epi32(
            low, _mm256_madd_epi16(_mm256_cvtepi8_epi16(_mm_unpacklo_epi8(a, b)), pair));
        high = _mm256_add_epi32(
            high, _mm256_madd_epi16(_mm256_cvtepi8_epi16(_mm_unpackhi_epi8(a, b)), pair));
    }
    _mm256_storeu_si256((void *)sums, low);
    _mm256_storeu_si256((void *)(sums + 8), high);
}

#else

static uint32_t exp_256(float *x, uint32_t count, float most)
{
    (void)x, (void)count, (void)most;
    return 0;
}

static uint32_t fix_256(const float *weights, uint32_t count, float inverse, int16_t *u)
{
    (void)weights, (void)count, (void)inverse, (void)u;
    return 0;
}

static void mix_256(const int8_t *values, uint32_t width, const int16_t *u, uint32_t count,
                    int32_t *sums)
{
    (void)values, (void)width, (void)u, (void)count, (void)sums;
}

#endif

/* scores become integers of 15 bits; returns the factor that makes their sums real */
static float soften(const float *scales, uint32_t length, const head_scratch *s)
{
    float most = s->weights[0], sum_p = 0, sum_w = 0, inverse = 0;
    int wide = mur_host_level() > 0;
    uint32_t t;

    for (t = 1; t < length; t++)
        most = s->weights[t] > most ? s->weights[t] : most;
    for (t = wide ? exp_256(s->weights, length, most) : 0; t < length; t++)
        s->weights[t] = mur_exp_fast(s->weights[t] - most);
    for (t = 0; t < length; t++) {
        float w = s->weights[t] * scales[t];

        sum_p += s->weights[t];
        sum_w += w;
        s->weights[t] = w;
    }
    if (!(sum_w < MUR_LEAST))
        inverse = 32767.0f / sum_w;
    for (t = wide ? fix_256(s->weights, length, inverse, s->u) : 0; t < length; t++)
        s->u[t] = mur_round(s->weights[t] * inverse);
    return sum_w / (32767.0f * sum_p);
}

static void mix(const mur_attention_q8 *op, const int8_t *values, uint32_t length, float factor,
                const head_scratch *s, float *out)
{
    uint32_t i = 0;

    for (; mur_host_level() > 0 && i + 16 <= op->width; i += 16)
        mix_256(values + i, op->width, s->u, length, s->sums + i);
    for (; i < op->width; i++) {
        s->sums[i] = 0;
        for (uint32_t t = 0; t < length; t++)
            s->sums[i] += s->u[t] * values[(size_t)t * op->width + i];
    }
    for (i = 0; i < op->width; i++)
        out[i] = (float)s->sums[i] * factor;
}

void mur_host_attention(const mur_attention_q8 *op, uint32_t pos, uint32_t rows, const float *q,
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
