/* test_lowbit.c - weights in few bits against decoding, rounding and k-means written once more
 * here. */
#include <math.h>

#include "base/half.h"
#include "chance.h"
#include "check.h"
#include "passes/weights/feedback.h"
#include "quant/lowbit.h"

enum { MOST = 172 };
static const size_t lengths[] = { 1, 3, 32, 33, 64, 96, MOST };

/* bit by bit */
static unsigned code_of(const uint8_t *codes, unsigned bits, size_t i)
{
    unsigned code = 0;

    for (unsigned b = 0; b < bits; b++) {
        size_t at = i * bits + b;

        code |= (unsigned)(codes[at / 8] >> at % 8 & 1) << b;
    }
    return code;
}

/* the documented meaning of an index */
static float value_of(muc_lowbit format, const uint8_t *codes, const uint16_t *numbers, size_t i)
{
    const unsigned bits = muc_lowbit_get(format)->bits;
    unsigned code = code_of(codes, bits, i);

    if (format == MUC_LOWBIT_CODEBOOK)
        return muc_f32_of_f16(numbers[i / 32 * 4 + code]);
    if (format == MUC_LOWBIT_INT8)
        return muc_f32_of_f16(*numbers) * (float)(code < 128 ? (int)code : (int)code - 256);
    return muc_f32_of_f16(*numbers) * (float)(2 * (int)code - ((1 << bits) - 1));
}

static void fill(float *w, size_t k)
{
    for (size_t i = 0; i < k; i++)
        w[i] = (float)(0.05 * random_gaussian());
}

static double error_of(const float *w, const float *v, size_t k)
{
    double sum = 0;

    for (size_t i = 0; i < k; i++)
        sum += pow((double)w[i] - (double)v[i], 2);
    return sum;
}

static void indices_decode_to_what_is_documented(void **state)
{
    (void)state;
    for (unsigned f = 0; f < MUC_LOWBIT_COUNT; f++) {
        for (size_t l = 0; l < sizeof(lengths) / sizeof(*lengths); l++) {
            uint16_t numbers[4 * (MOST / 32 + 1)];
            float w[MOST], v[MOST];
            uint8_t codes[MOST];

            fill(w, lengths[l]);
            muc_lowbit_encode((muc_lowbit)f, lengths[l], w, codes, numbers);
            muc_lowbit_decode((muc_lowbit)f, lengths[l], codes, numbers, v);
            for (size_t i = 0; i < lengths[l]; i++)
                assert_true(v[i] == value_of((muc_lowbit)f, codes, numbers, i));
        }
    }
}

/* every scale of 16 bits that could be meant, each element at its nearest level */
static double least_error(const float *w, size_t k, int most)
{
    double best = INFINITY;

    for (uint16_t h = 0x0400; h < 0x3c00; h++) {
        double scale = (double)muc_f32_of_f16(h), error = 0;

        for (size_t i = 0; i < k; i++) {
            double nearest = INFINITY;

            for (int level = -most; level <= most; level += 2)
                nearest = fmin(nearest, fabs((double)w[i] - scale * level));
            error += nearest * nearest;
        }
        best = fmin(best, error);
    }
    return best;
}

static void scales_are_next_to_the_best_of_all(void **state)
{
    static const muc_lowbit formats[] = { MUC_LOWBIT_INT2, MUC_LOWBIT_INT4 };

    (void)state;
    for (unsigned f = 0; f < 2; f++) {
        double found = 0, best = 0;

        for (unsigned row = 0; row < 6; row++) {
            float w[64], v[64];
            uint8_t codes[64];
            uint16_t scale;

            fill(w, 64);
            w[row] *= 4; /* one weight that stands out */
            muc_lowbit_encode(formats[f], 64, w, codes, &scale);
            muc_lowbit_decode(formats[f], 64, codes, &scale, v);
            found += error_of(w, v, 64);
            best += least_error(w, 64, f ? 15 : 3);
        }
        CHECK(found >= best * 0.999999);
        CHECK(found <= best * 1.01);
    }
}

/* 5, 35, 65 and 95 percent, then twenty times the means of what is nearest */
static void a_codebook_is_k_means_from_the_percentiles(void **state)
{
    enum { K = 32 };
    float w[K], v[K], sorted[K], book[4];
    uint8_t codes[K];
    uint16_t numbers[4];

    (void)state;
    fill(w, K);
    memcpy(sorted, w, sizeof(w));
    for (unsigned i = 0; i < K; i++)
        for (unsigned j = i + 1; j < K; j++)
            if (sorted[j] < sorted[i]) {
                float swap = sorted[i];

                sorted[i] = sorted[j];
                sorted[j] = swap;
            }
    book[0] = sorted[2]; /* 0.05 * 31 = 1.55 */
    book[1] = sorted[11];
    book[2] = sorted[20];
    book[3] = sorted[29];
    for (unsigned step = 0; step < 20; step++) {
        double sum[4] = { 0 }, count[4] = { 0 };

        for (unsigned i = 0; i < K; i++) {
            unsigned c = 0;

            for (unsigned o = 1; o < 4; o++)
                c = fabsf(sorted[i] - book[o]) < fabsf(sorted[i] - book[c]) ? o : c;
            sum[c] += (double)sorted[i];
            count[c]++;
        }
        for (unsigned c = 0; c < 4; c++)
            book[c] = count[c] > 0 ? (float)(sum[c] / count[c]) : book[c];
    }
    muc_lowbit_encode(MUC_LOWBIT_CODEBOOK, K, w, codes, numbers);
    for (unsigned c = 0; c < 4; c++)
        CHECK_EQ(numbers[c], muc_f16_of_f32(book[c]));
    muc_lowbit_decode(MUC_LOWBIT_CODEBOOK, K, codes, numbers, v);
    for (unsigned i = 0; i < K; i++)
        for (unsigned c = 0; c < 4; c++)
            CHECK(fabsf(w[i] - v[i]) <= fabsf(w[i] - muc_f32_of_f16(numbers[c])));
}

static void bits_per_weight_count_scales_and_codebooks(void **state)
{
    (void)state;
    assert_true(muc_lowbit_bits_per_weight(MUC_LOWBIT_INT2, 96) == 2 + 16.0 / 96);
    assert_true(muc_lowbit_bits_per_weight(MUC_LOWBIT_INT4, 64) == 4.25);
    assert_true(muc_lowbit_bits_per_weight(MUC_LOWBIT_CODEBOOK, 64) == 4);
    assert_true(muc_lowbit_bits_per_weight(MUC_LOWBIT_INT8, 128) == 8.125);
}

static void rows_of_zeros_and_of_tiny_weights_keep_a_scale_above_zero(void **state)
{
    const float sizes[] = { 0, 1e-9f, 1e-5f, 1e6f };

    (void)state;
    for (unsigned s = 0; s < 4; s++) {
        float w[8], v[8];
        uint8_t codes[8];
        uint16_t scale;

        for (unsigned i = 0; i < 8; i++)
            w[i] = i % 2 ? sizes[s] : -sizes[s];
        muc_lowbit_encode(MUC_LOWBIT_INT2, 8, w, codes, &scale);
        CHECK(muc_f32_of_f16(scale) > 0 && isfinite(muc_f32_of_f16(scale)));
        muc_lowbit_decode(MUC_LOWBIT_INT2, 8, codes, &scale, v);
        for (unsigned i = 0; i < 8; i++)
            CHECK(fabsf(v[i] - w[i]) <= 0.01f * sizes[s] + 2e-7f || sizes[s] > 1e5f);
    }
}

/* ---- error feedback ---- */

typedef struct level_grid {
    double scale;
} level_grid;

static double on_levels(void *arg, size_t j, double value)
{
    const level_grid *g = arg;

    (void)j;
    return g->scale * muc_lowbit_nearest(MUC_LOWBIT_INT2, value / g->scale);
}

static void feedback_makes_outputs_change_less(void **state)
{
    enum { K = 48, ROWS = 300 };
    muc_context *ctx = muc_context_new(1);
    float w[K], *x = malloc(ROWS * K * sizeof(*x));
    double values[K], error, plain = 0, fed_back = 0;
    muc_feedback *feedback;
    muc_moments moments;
    level_grid grid;

    (void)state;
    fill(w, K);
    for (size_t i = 0; i < ROWS * K; i++)
        x[i] = (float)random_gaussian() * 0.4f + (i % K ? 0.9f * x[i - 1] : 0);
    grid.scale = (double)muc_lowbit_scale(MUC_LOWBIT_INT2, K, w);
    CHECK_OK(ctx, muc_moments_new(ctx, K, false, &moments));
    CHECK_OK(ctx, muc_moments_add(ctx, &moments, x, NULL, ROWS));
    CHECK_OK(ctx, muc_feedback_new(ctx, &moments, &feedback));
    CHECK_OK(ctx, muc_feedback_round(ctx, feedback, w, on_levels, &grid, values, &error));
    for (size_t r = 0; r < ROWS; r++) {
        double a = 0, b = 0;

        for (size_t i = 0; i < K; i++) {
            double at = (double)x[r * K + i], target = (double)w[i];

            a += at * (on_levels(&grid, i, target) - target);
            b += at * (values[i] - target);
        }
        plain += a * a;
        fed_back += b * b;
    }
    for (size_t i = 0; i < K; i++) {
        double level = values[i] / grid.scale;

        CHECK(level == -3 || level == -1 || level == 1 || level == 3);
    }
    CHECK(fed_back < 0.6 * plain);
    CHECK(error >= fed_back * 0.999); /* damping adds to it */
    muc_feedback_free(feedback);
    free(x);
    muc_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indices_decode_to_what_is_documented),
        cmocka_unit_test(scales_are_next_to_the_best_of_all),
        cmocka_unit_test(a_codebook_is_k_means_from_the_percentiles),
        cmocka_unit_test(bits_per_weight_count_scales_and_codebooks),
        cmocka_unit_test(rows_of_zeros_and_of_tiny_weights_keep_a_scale_above_zero),
        cmocka_unit_test(feedback_makes_outputs_change_less),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
