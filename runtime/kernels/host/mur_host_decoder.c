/* mur_host_decoder.c - a decoder's vectors, int8 matrices and attention on the machine that runs
 * the compiler. All lie as mur_ref_decoder.c has them.
 */
#include "mur_attend.h"
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

static void score(const mur_attended *a)
{
    mur_host_product *product = mur_host_find_product();
    uint32_t width = a->op->width;
    const int8_t *keys = (const int8_t *)a->keys + (size_t)a->begin * width;
    int8_t *q = (int8_t *)a->sums; /* which are not there yet */

    for (uint32_t i = 0; i < width; i++)
        q[i] = (int8_t)a->q[i];
    for (uint32_t t = 0; t < a->length; t += MUR_HOST_ROWS) {
        uint32_t there = a->length - t < MUR_HOST_ROWS ? a->length - t : MUR_HOST_ROWS;
        const int8_t *rows[MUR_HOST_ROWS];
        int32_t sums[1][MUR_HOST_ROWS] = { { 0 } };

        for (uint32_t i = 0; i < MUR_HOST_ROWS; i++)
            rows[i] = keys + (size_t)(t + (i < there ? i : 0)) * width;
        product(rows, q, width, 1, width, sums);
        for (uint32_t i = 0; i < there; i++)
            a->scores[t + i] = mur_attend_score(a, sums[0][i], a->scales[t + i]);
    }
}

#if MUR_HAVE_X86

/* sums of 16 columns: pairs of positions at once, an odd one with zeros */
MUR_AVX2 static void mix_256(const int8_t *values, uint32_t width, const uint16_t *u,
                             uint32_t count, int32_t *sums)
{
    __m256i low = _mm256_setzero_si256(), high = low;

    for (uint32_t t = 0; t < count; t += 2, values += 2 * width) {
        int more = t + 1 < count;
        __m128i a = _mm_loadu_si128((const void *)values);
        __m128i b = more ? _mm_loadu_si128((const void *)(values + width)) : a;
        __m256i pair = _mm256_set1_epi32((int32_t)(u[t] | (more ? (uint32_t)u[t + 1] << 16 : 0)));

        low = _mm256_add_epi32(
            low, _mm256_madd_epi16(_mm256_cvtepi8_epi16(_mm_unpacklo_epi8(a, b)), pair));
        high = _mm256_add_epi32(
            high, _mm256_madd_epi16(_mm256_cvtepi8_epi16(_mm_unpackhi_epi8(a, b)), pair));
    }
    _mm256_storeu_si256((void *)sums, low);
    _mm256_storeu_si256((void *)(sums + 8), high);
}

#else

static void mix_256(const int8_t *values, uint32_t width, const uint16_t *u, uint32_t count,
                    int32_t *sums)
{
    (void)values, (void)width, (void)u, (void)count, (void)sums;
}

#endif

static void mix(const mur_attended *a)
{
    uint32_t width = a->op->width, i = 0;
    const int8_t *values = (const int8_t *)a->values + (size_t)a->begin * width;

    for (; mur_host_level() > 0 && i + 16 <= width; i += 16)
        mix_256(values + i, width, a->scores, a->length, a->sums + i);
    for (; i < width; i++) {
        a->sums[i] = 0;
        for (uint32_t t = 0; t < a->length; t++)
            a->sums[i] += a->scores[t] * values[(size_t)t * width + i];
    }
}

void mur_host_attention(const mur_attention_q8 *op, uint32_t pos, uint32_t rows, const float *q,
                        const float *k, const float *v, void *keys, void *values, void *key_scales,
                        void *value_scales, float *out, void *scratch)
{
    static const mur_attend_kernels kernels = {
        1, 1, mur_attend_put, mur_attend_put, score, mur_attend_most, mur_attend_weigh, mix
    };

    mur_attend(op, &kernels, pos, rows, q, k, v, keys, values, key_scales, value_scales, out,
               scratch);
}
