/* test_decoder.c - the runtime's decoder operators against their formulas, written once more here,
 * for every instruction set: bit for bit. */
#include <math.h>
#include <stdbool.h>

#include "chance.h"
#include "check.h"
#include "mur_attend.h"
#include "mur_real.h"

/* one instruction set's functions */
typedef struct kernels {
    const char *name;
    uint32_t element_bytes; /* of a vector */
    void (*quantize)(uint32_t, uint32_t, const float *, void *, float *);
    void (*linear)(const mur_matrix_q8 *, uint32_t, const void *, const float *, float *);
    void (*embed)(const mur_matrix_q8 *, uint32_t, const int32_t *, float *);
    void (*attention)(const mur_attention_q8 *, uint32_t, uint32_t, const float *, const float *,
                      const float *, void *, void *, void *, void *, float *, void *);
    size_t (*matrix_bytes)(uint32_t, uint32_t);
    void (*matrix_pack)(uint32_t, uint32_t, const int8_t *, void *);
    size_t (*attention_bytes)(const mur_attention_q8 *);
} kernels;

#define KERNELS(isa, element, matrix, scratch) \
    { \
#isa, element, mur_##isa##_quantize, mur_##isa##_linear, mur_##matrix##_embed, \
            mur_##isa##_attention, mur_##matrix##_matrix_bytes, mur_##matrix##_matrix_pack, \
            mur_##scratch##_attention_bytes \
    }
static const kernels all[] = { KERNELS(ref, 1, ref, ref), KERNELS(dsp, 2, dsp, dsp),
                               KERNELS(mve, 1, ref, dsp) };

static void *take(size_t bytes)
{
    void *taken = malloc(bytes ? bytes : 1);

    CHECK(taken != NULL);
    memset(taken, 0x5a, bytes);
    return taken;
}

static uint32_t below(uint32_t n)
{
    return random_u32() % n;
}

static void random_floats(float *x, size_t count, float size)
{
    for (size_t i = 0; i < count; i++)
        x[i] = ((float)below(2001) / 1000 - 1) * size;
}

static void check_floats(const char *what, const float *found, const float *expected, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(&found[i], &expected[i], sizeof(*found)) != 0)
            fail_msg("%s: element %zu is %.9g, expected %.9g", what, i, (double)found[i],
                     (double)expected[i]);
}

/* ---- the formulas ---- */

/* nearbyintf rounds halves to even */
static float formula_quantize(const float *x, uint32_t count, int32_t *q)
{
    float most = 0;

    for (uint32_t i = 0; i < count; i++)
        most = fmaxf(most, fabsf(x[i]));
    for (uint32_t i = 0; i < count; i++)
        q[i] = most < ldexpf(1, -100) ? 0 : (int32_t)nearbyintf(x[i] * (127 / most));
    return most < ldexpf(1, -100) ? 0 : most / 127;
}

/* a power of two as the softmax has it, `below` steps of 1/64 octave below one */
static int64_t formula_power(int64_t below)
{
    return below >= 960 ? 0 : llrint(65535 * exp2(-(double)below / 64));
}

/* of keys or of values, as integers: a scale is mantissa * 2^(exponent - bits) */
typedef struct formula_cache {
    int32_t *q;                   /* [kv_heads][context][width] */
    int32_t *mantissa, *exponent; /* [kv_heads][context] */
} formula_cache;

static void formula_append(const mur_attention_q8 *op, formula_cache *cache, int bits, uint32_t pos,
                           const float *x)
{
    for (uint32_t h = 0; h < op->kv_heads; h++, x += op->width) {
        size_t at = (size_t)h * op->context + pos;
        int32_t *q = cache->q + at * op->width;
        int exponent = pos ? cache->exponent[at - 1] : -120, own;
        float most = 0;

        for (uint32_t i = 0; i < op->width; i++)
            most = fmaxf(most, fabsf(x[i]));
        cache->exponent[at] = exponent;
        cache->mantissa[at] = 0;
        memset(q, 0, op->width * sizeof(*q));
        if (most < ldexpf(1, -100))
            continue;
        most = fminf(most, ldexpf(1, 120)) / 127;
        (void)frexp((double)most, &own);
        cache->exponent[at] = own > exponent ? own + 1 : exponent;
        cache->mantissa[at] =
            (int32_t)fmin(floor(ldexp((double)most, bits - cache->exponent[at])) + 1, 32767);
        for (uint32_t i = 0; i < op->width; i++)
            q[i] = (int32_t)nearbyintf(
                x[i] * (1 / ldexpf((float)cache->mantissa[at], cache->exponent[at] - bits)));
    }
}

/* the integer a of a position, seen from the last one */
static int64_t formula_aligned(const formula_cache *cache, size_t at, size_t last)
{
    return (int64_t)floor(ldexp(cache->mantissa[at], cache->exponent[at] - cache->exponent[last]));
}

/* scores of positions from .. length - 1, relative to MUR_ATTEND_ZERO; returns F */
static int64_t formula_scores(const mur_attention_q8 *op, const formula_cache *keys, size_t first,
                              uint32_t from, uint32_t length, const float *x, int64_t *scores)
{
    int32_t *q = take(op->width * sizeof(*q));
    float scale = formula_quantize(x, op->width, q) * op->scale, f;
    int extra = (int)ceil(log2(op->width)) - 3, power;
    int64_t unit = 1;

    extra = extra < 0 ? 0 : extra;
    power = keys->exponent[first + length - 1] - 13 + extra;
    for (uint32_t t = from; t < length; t++) {
        int64_t sum = 0;

        for (uint32_t i = 0; i < op->width; i++)
            sum += q[i] * keys->q[(first + t) * op->width + i];
        sum = (int64_t)floor(ldexp((double)sum, -extra));
        sum *= formula_aligned(keys, first + t, first + length - 1);
        scores[t] = (int64_t)floor((double)sum / 65536);
        if (op->cap > 0 && scale * ldexpf(1, power + 16) > 0) {
            float one = scale * ldexpf(1, power + 16);
            float capped = op->cap * mur_real_tanh((float)scores[t] * one / op->cap) / one;

            scores[t] = (int64_t)nearbyintf(fmaxf(fminf(capped, 16128), -16128));
        }
    }
    f = floorf(fminf(scale * 92.3324826f * ldexpf(1, power + 32), 4194304));
    while ((double)f / (double)unit >= 65536)
        unit *= 2;
    free(q);
    return (int64_t)f / unit * unit;
}

static void formula_head(const mur_attention_q8 *op, const formula_cache *keys,
                         const formula_cache *values, uint32_t kv_head, uint32_t length,
                         const float *x, float *out)
{
    size_t first = (size_t)kv_head * op->context, last = first + length - 1;
    uint32_t from = op->seen && op->seen < length ? length - op->seen : 0;
    int64_t *w = take(length * sizeof(*w)), most = INT64_MIN, sum_p = 0;
    int64_t factor = formula_scores(op, keys, first, from, length, x, w);
    int64_t reach = factor ? (1023 << 16) / factor : 32767;

    reach = reach < 32767 ? reach : 32767;
    for (uint32_t t = from; t < length; t++)
        most = w[t] > most ? w[t] : most;
    for (uint32_t t = from; t < length; t++) {
        int64_t above = w[t] - most + reach > 0 ? w[t] - most + reach : 0;
        int64_t p = formula_power((factor * reach >> 16) - (factor * above >> 16));

        sum_p += p;
        w[t] = p * formula_aligned(values, first + t, last) >> 16;
    }
    for (uint32_t i = 0; i < op->width; i++) {
        out[i] = 0;
        for (uint32_t t = from; t < length;) {
            int64_t sum = 0;

            do
                sum += w[t] * values->q[(first + t) * op->width + i];
            while (++t < length && t % 512 != 0);
            out[i] += (float)sum;
        }
        out[i] *= ldexpf(1, values->exponent[last] + 1) / (float)sum_p;
    }
    free(w);
}

static void formula_attention(const mur_attention_q8 *op, formula_cache *keys,
                              formula_cache *values, uint32_t pos, const float *q, const float *k,
                              const float *v, float *out)
{
    formula_append(op, keys, 13, pos, k);
    formula_append(op, values, 15, pos, v);
    for (uint32_t h = 0; h < op->heads; h++)
        formula_head(op, keys, values, h / (op->heads / op->kv_heads), pos + 1, q + h * op->width,
                     out + h * op->width);
}

/* ---- vectors and matrices ---- */

static void a_vector_is_quantized_by_the_formula(void **state)
{
    static const float odd_ones[][5] = {
        { 0, 0, 0, 0, 0 },
        { 1e-31f, -1e-32f, 0, 0, 0 },          /* below 2^-100 */
        { 127, 0.5f, 1.5f, -0.5f, -2.5f },     /* halves go to the even side */
        { -3e38f, 3e38f, 1e38f, 1, -1.5e38f }, /* the largest is exactly 127 */
    };

    (void)state;
    for (size_t s = 0; s < sizeof(all) / sizeof(*all); s++) {
        for (size_t i = 0; i < 4; i++) {
            int32_t expected[5];
            int16_t q[8];
            float scale, formula = formula_quantize(odd_ones[i], 5, expected);

            all[s].quantize(1, 5, odd_ones[i], q, &scale);
            check_floats("scale", &scale, &formula, 1);
            for (size_t j = 0; j < 8; j++)
                CHECK_EQ(all[s].element_bytes == 1 ? ((int8_t *)q)[j] : q[j],
                         j < 5 ? expected[j] : 0);
        }
    }
}

static void check_matrix(const kernels *k, uint32_t n, uint32_t columns, uint32_t rows,
                         bool extreme)
{
    size_t count = (size_t)n * columns;
    int8_t *weights = take(count);
    float *scales = take(n * sizeof(float)), *bias = take(n * sizeof(float));
    float *x = take(rows * columns * sizeof(float)), *x_scales = take(rows * sizeof(float));
    float *found = take(rows * n * sizeof(float)), *expected = take(rows * n * sizeof(float));
    float *row = take(columns * sizeof(float)), *row_expected = take(columns * sizeof(float));
    int32_t *q = take(columns * sizeof(*q));
    uint8_t *vectors = take(rows * MUR_DSP_VECTOR_BYTES(columns));
    void *packed = take(k->matrix_bytes(n, columns));
    mur_matrix_q8 matrix = { n, columns, packed, scales, below(2) ? bias : NULL };
    int32_t one = (int32_t)below(n);

    for (size_t i = 0; i < count; i++)
        weights[i] = (int8_t)(extreme ? -127 : (int)below(255) - 127);
    random_floats(scales, n, 0.01f);
    random_floats(bias, n, 1);
    random_floats(x, (size_t)rows * columns, 3);
    for (size_t i = 0; extreme && i < (size_t)rows * columns; i++)
        x[i] = -1;
    k->matrix_pack(n, columns, weights, packed);
    k->quantize(rows, columns, x, vectors, x_scales);
    k->linear(&matrix, rows, vectors, x_scales, found);
    for (uint32_t r = 0; r < rows; r++) {
        float scale = formula_quantize(x + r * columns, columns, q);

        for (uint32_t i = 0; i < n; i++) {
            int64_t sum = 0;

            for (uint32_t j = 0; j < columns; j++)
                sum += q[j] * weights[(size_t)i * columns + j];
            expected[r * n + i] = (float)sum * (scale * scales[i]);
            if (matrix.bias)
                expected[r * n + i] += bias[i];
        }
    }
    check_floats("product", found, expected, (size_t)rows * n);
    k->embed(&matrix, 1, &one, row);
    for (uint32_t j = 0; j < columns; j++)
        row_expected[j] = (float)weights[(size_t)one * columns + j] * scales[one];
    check_floats("row", row, row_expected, columns);
    free(weights), free(scales), free(bias), free(x), free(x_scales), free(found), free(expected);
    free(row), free(row_expected), free(q), free(vectors), free(packed);
}

static void a_matrix_multiplies_by_the_formula(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof(all) / sizeof(*all); s++) {
        for (unsigned i = 0; i < 60; i++)
            check_matrix(&all[s], 1 + below(30), 1 + below(90), 1 + below(4), false);
        /* sums that are as large as they can be, in one piece and in several */
        check_matrix(&all[s], 5, 512, 1, true);
        check_matrix(&all[s], 6, 2051, 2, true);
        check_matrix(&all[s], 3, 1300, 2, false);
    }
}

/* ---- attention ---- */

static void check_attention(const kernels *k, const mur_attention_q8 *op, uint32_t tokens,
                            bool spread)
{
    size_t columns = (size_t)op->heads * op->width, kv_columns = (size_t)op->kv_heads * op->width;
    size_t positions = (size_t)op->kv_heads * op->context;
    float *q = take(tokens * columns * sizeof(float)),
          *out = take(tokens * columns * sizeof(float));
    float *keys = take(tokens * kv_columns * sizeof(float));
    float *values = take(tokens * kv_columns * sizeof(float));
    float *expected = take(tokens * columns * sizeof(float));
    void *cache[] = { take(MUR_CACHE_BYTES(op)), take(MUR_CACHE_BYTES(op)) };
    void *cache_scales[] = { take(op->kv_heads * MUR_SCALES_BYTES(op)),
                             take(op->kv_heads * MUR_SCALES_BYTES(op)) };
    formula_cache formula[2];
    void *scratch = take(k->attention_bytes(op));

    for (unsigned i = 0; i < 2; i++)
        formula[i] = (formula_cache){ take(positions * op->width * 4), take(positions * 4),
                                      take(positions * 4) };
    random_floats(q, tokens * columns, 4);
    random_floats(keys, tokens * kv_columns, 4);
    random_floats(values, tokens * kv_columns, 2);
    if (tokens > 2) /* a token of no value, and one that outweighs all others */
        memset(values + kv_columns, 0, kv_columns * sizeof(float));
    for (size_t i = 0; tokens > 2 && i < kv_columns; i++)
        keys[2 * kv_columns + i] *= 1000;
    for (uint32_t t = 0; t < tokens; t++) /* exponents that rise, and tokens far below them */
        for (size_t i = 0; i < kv_columns; i++) {
            keys[t * kv_columns + i] *= spread ? ldexpf(1, (int)(t * 5 % 41) - 20) : 1;
            values[t * kv_columns + i] *= spread ? ldexpf(1, (int)(t * 7 % 23) - 11) : 1;
        }
    for (uint32_t t = 0; t < tokens; t++)
        formula_attention(op, &formula[0], &formula[1], t, q + t * columns, keys + t * kv_columns,
                          values + t * kv_columns, expected + t * columns);
    for (uint32_t t = 0, m; t < tokens; t += m) {
        m = 1 + below(3);
        m = m < tokens - t ? m : tokens - t;
        k->attention(op, t, m, q + t * columns, keys + t * kv_columns, values + t * kv_columns,
                     cache[0], cache[1], cache_scales[0], cache_scales[1], out + t * columns,
                     scratch);
    }
    check_floats("attention", out, expected, tokens * columns);
    free(q), free(out), free(keys), free(values), free(expected), free(scratch);
    free(cache[0]), free(cache[1]), free(cache_scales[0]), free(cache_scales[1]);
    for (unsigned i = 0; i < 2; i++)
        free(formula[i].q), free(formula[i].mantissa), free(formula[i].exponent);
}

static void attention_is_the_formula_however_tokens_are_grouped(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof(all) / sizeof(*all); s++) {
        for (unsigned i = 0; i < 30; i++) {
            uint32_t kv_heads = 1 + below(3);
            mur_attention_q8 op = {
                kv_heads * (1 + below(3)), kv_heads, 2 + 2 * below(12),
                8 + 8 * below(6),          0.25f,    below(3) ? 0 : 1 + below(12),
                below(3) ? 0 : 1.5f,       NULL
            };

            if (op.cap > 0)
                op.cap_scores = mur_cap_scores;

            check_attention(&all[s], &op, 1 + below(op.context), i % 2);
        }
    }
}

/* more positions than one sum takes, wide heads, and scores that are small or very large */
static void attention_is_the_formula_in_long_texts(void **state)
{
    static const float scales[] = { 0.5f, 1e-6f, 3e4f };

    (void)state;
    for (size_t s = 0; s < sizeof(all) / sizeof(*all); s++)
        for (uint32_t i = 0; i < 3; i++) {
            const mur_attention_q8 op = { 5, 1,   i ? 6 : 8, 1040, scales[i], i == 1 ? 700 : 0,
                                          0, NULL };
            const mur_attention_q8 wide = { 1, 1, 512, 16, scales[i], i ? 9 : 0, 0, NULL };

            check_attention(&all[s], &op, 1033, false);
            check_attention(&all[s], &wide, 15, i == 1);
        }
}

/* every instruction set appends to a cache that another text has left behind */
static void a_text_that_begins_anew_finds_nothing_of_the_last(void **state)
{
    const mur_attention_q8 op = { 2, 1, 4, 8, 0.5f, 0, 0, NULL };
    float q[2][8], k[2][4], v[2][4], first[8], again[8];
    uint32_t keys[8], values[8], scales[2][6], scratch[64];

    (void)state;
    for (size_t s = 0; s < sizeof(all) / sizeof(*all); s++) {
        CHECK(all[s].attention_bytes(&op) <= sizeof(scratch));
        random_floats(q[0], 16, 1);
        random_floats(k[0], 8, 1);
        random_floats(v[0], 8, 1);
        for (unsigned round = 0; round < 2; round++) {
            for (uint32_t t = 0; t < 5; t++)
                all[s].attention(&op, t, 1, q[t % 2], k[t % 2], v[t % 2], keys, values, scales[0],
                                 scales[1], round ? again : first, scratch);
            check_floats("round", round ? again : first, first, 8);
            memset(keys, 0x80, sizeof(keys));
            memset(values, 0x7f, sizeof(values));
            memset(scales, 0x7f, sizeof(scales));
        }
    }
}

/* ---- binary32 ---- */

static void the_norm_and_silu_are_near_their_real_values(void **state)
{
    float x[77], gain[77], y[77];

    (void)state;
    random_floats(x, 77, 20);
    random_floats(gain, 77, 2);
    mur_rms_norm_f32(gain, 1e-5f, 1, 77, x, y);
    for (unsigned i = 0; i < 77; i++) {
        double sum = 0;

        for (unsigned j = 0; j < 77; j++)
            sum += (double)x[j] * x[j];
        assert_true(fabs(y[i] - x[i] * gain[i] / sqrt(sum / 77 + 1e-5)) < 1e-5);
    }
    mur_silu_f32(77, x, y);
    for (unsigned i = 0; i < 77; i++)
        assert_true(fabs(y[i] - x[i] / (1 + exp(-(double)x[i]))) < 1e-5);
}

/* widths with and without a rest; in place */
static void the_layer_norm_is_near_its_real_value(void **state)
{
    float x[77], gain[77], bias[77], y[77];

    (void)state;
    random_floats(gain, 77, 2);
    random_floats(bias, 77, 2);
    for (unsigned width = 1; width <= 77; width += 19) {
        random_floats(x, 77, 20);
        memcpy(y, x, sizeof(y));
        mur_layer_norm_f32(gain, bias, 1e-5f, 1, width, y, y);
        for (unsigned i = 0; i < width; i++) {
            double mean = 0, square = 0;

            for (unsigned j = 0; j < width; j++)
                mean += (double)x[j] / width;
            for (unsigned j = 0; j < width; j++)
                square += (x[j] - mean) * (x[j] - mean);
            assert_true(fabs(y[i] - (x[i] - mean) / sqrt(square / width + 1e-5) * gain[i] -
                             bias[i]) < 2e-5);
        }
    }
}

static void a_rotation_of_two_halves(void **state)
{
    float x[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, part[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    const float cosines[] = { 9, 9, 0, 1 }, sines[] = { 9, 9, 1, 0 };
    const float expected[] = { -3, 2, 1, 4, -7, 6, 5, 8 };
    const float of_two[] = { -2, 1, 3, 4, -6, 5, 7, 8 };

    (void)state;
    mur_rope_f32(cosines, sines, 1, 1, 2, 4, 4, x, x);
    check_floats("rope", x, expected, 8);
    mur_rope_f32(cosines + 1, sines + 1, 1, 1, 2, 4, 2, part, part);
    check_floats("rope of two columns", part, of_two, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_vector_is_quantized_by_the_formula),
        cmocka_unit_test(a_matrix_multiplies_by_the_formula),
        cmocka_unit_test(attention_is_the_formula_however_tokens_are_grouped),
        cmocka_unit_test(attention_is_the_formula_in_long_texts),
        cmocka_unit_test(a_text_that_begins_anew_finds_nothing_of_the_last),
        cmocka_unit_test(the_norm_and_silu_are_near_their_real_values),
        cmocka_unit_test(the_layer_norm_is_near_its_real_value),
        cmocka_unit_test(a_rotation_of_two_halves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
