/* test_feedback.c - rounding with error feedback, against sums over the inputs themselves and a
 * textbook GPTQ by matrix inversion. */
#include "chance.h"
#include "passes/weights/feedback.h"

#define CONTEXT_THREADS 3
#include "context_fixture.h"

enum { ROWS = 400 };

static float *gaussian(size_t count)
{
    float *values = malloc(count * sizeof(*values));

    for (size_t i = 0; i < count; i++)
        values[i] = (float)random_gaussian();
    return values;
}

/* inputs [ROWS][k] whose elements follow each other, as activations do */
static float *correlated(uint32_t k)
{
    float *x = gaussian((size_t)ROWS * k);

    for (size_t i = 0; i < (size_t)ROWS * k; i++)
        x[i] = i % k ? 0.3f * x[i] + 0.9f * x[i - 1] : x[i];
    return x;
}

static muc_feedback *feedback_of(muc_context *own, const float *x, const float *f, uint32_t k)
{
    muc_feedback *feedback;
    muc_moments moments;

    CHECK_OK(own, muc_moments_new(own, k, f != NULL, &moments));
    for (size_t at = 0; at < ROWS; at += 57) {
        size_t rows = ROWS - at < 57 ? ROWS - at : 57;

        CHECK_OK(own, muc_moments_add(own, &moments, x + at * k, f ? f + at * k : NULL, rows));
    }
    CHECK_OK(own, muc_feedback_new(own, &moments, &feedback));
    return feedback;
}

static float *decode(const muc_bd_sequence *s, uint32_t n, uint32_t k)
{
    muc_bytes bytes = { s->data, s->bytes, "sequence" };
    float *values = malloc((size_t)n * k * sizeof(*values));

    CHECK_OK(ctx, muc_bd_check(ctx, bytes, 0, n, k));
    for (uint32_t c = 0; c < n; c++)
        CHECK_OK(ctx, muc_bd_decode_column(ctx, bytes, n, k, c, values + (size_t)c * k));
    return values;
}

/* sum over inputs and columns of (f . w - x . q)^2 */
static double output_error(const float *f, const float *w, const float *x, const float *q,
                           uint32_t n, uint32_t k)
{
    double total = 0;

    for (size_t r = 0; r < ROWS; r++) {
        for (size_t c = 0; c < n; c++) {
            double miss = 0;

            for (size_t i = 0; i < k; i++)
                miss += (double)f[r * k + i] * (double)w[c * k + i] -
                        (double)x[r * k + i] * (double)q[c * k + i];
            total += miss * miss;
        }
    }
    return total;
}

typedef struct outcome {
    double plain, fed_back; /* errors of the outputs */
    uint32_t plain_bytes, bytes;
} outcome;

/* f NULL: x is as it was */
static outcome compare(const float *w, const float *f, const float *x, uint32_t n, uint32_t k,
                       const muc_bd_rule *rule)
{
    float *values;
    muc_bd_matrix matrix = muc_bd_matrix_of("w", w, n, k);
    muc_feedback *feedback = feedback_of(ctx, x, f, k);
    muc_bd_sequence s;
    outcome out;

    CHECK_OK(ctx, muc_bd_quantize(ctx, &matrix, rule, &s));
    values = decode(&s, n, k);
    out.plain = output_error(f ? f : x, w, x, values, n, k);
    out.plain_bytes = s.bytes;
    free(values);
    muc_bd_sequence_free(&s);
    CHECK_OK(ctx, muc_feedback_quantize(ctx, feedback, &matrix, rule, &s));
    values = decode(&s, n, k);
    out.fed_back = output_error(f ? f : x, w, x, values, n, k);
    out.bytes = s.bytes;
    free(values);
    muc_bd_sequence_free(&s);
    muc_feedback_free(feedback);
    return out;
}

static void outputs_change_less_with_feedback_at_no_more_bytes(void **state)
{
    enum { N = 24 };
    static const uint32_t depths[] = { 31, 33, 64, 100, 172 };
    static const muc_bd_rule rules[] = {
        { 1 << MUC_BD_B4, 0 },
        { 1 << MUC_BD_B4 | MUC_BD_SHARING, MUC_BD_PRICES }, /* all that can share do */
        { 1 << MUC_BD_B4 | 1 << MUC_BD_B5 | MUC_BD_SHARING, 0x3c800000 >> 12 },
        { 1 << MUC_BD_B5 | 1 << MUC_BD_R, 0x3a000000 >> 12 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
        float *x = correlated(depths[i]), *w = gaussian((size_t)N * depths[i]);

        for (size_t r = 0; r < sizeof(rules) / sizeof(rules[0]); r++) {
            outcome o = compare(w, NULL, x, N, depths[i], &rules[r]);

            CHECK(o.fed_back < 0.4 * o.plain);
            CHECK(o.bytes <= o.plain_bytes);
        }
        free(w);
        free(x);
    }
}

/* The last block's inputs are a tenth of those of the first one, whose weights are large: what
 * corrects the first one's errors there is far beyond the grid that it was to share. */
static void blocks_that_grow_apart_still_share_their_header(void **state)
{
    enum { N = 40, K = 128 };
    const muc_bd_rule rule = { 1 << MUC_BD_B4 | MUC_BD_SHARING, MUC_BD_PRICES };
    float *x = gaussian((size_t)ROWS * K), *w = gaussian(N * K);
    outcome o;

    (void)state;
    for (size_t i = 0; i < (size_t)ROWS * K; i++)
        x[i] = i % K < 96 ? x[i] : 0.1f * x[i - 96];
    for (size_t i = 0; i < N * K; i++)
        w[i] *= i % K < 32 ? 64 : 1;
    o = compare(w, NULL, x, N, K, &rule);
    CHECK(o.bytes <= o.plain_bytes);
    CHECK(o.fed_back < 0.4 * o.plain);
    free(w);
    free(x);
}

/* f is what inputs were before some error that depends on them */
static void a_matrix_makes_up_for_what_its_inputs_lost(void **state)
{
    enum { N = 16, K = 64 };
    float *f = correlated(K), *x = malloc(ROWS * K * sizeof(*x)), *w = gaussian(N * K);
    const muc_bd_rule rule = { 1 << MUC_BD_B4, 0 };
    outcome with, without;

    (void)state;
    for (size_t i = 0; i < ROWS * K; i++)
        x[i] = 0.9f * f[i];
    with = compare(w, f, x, N, K, &rule);
    CHECK(with.fed_back < 0.4 * with.plain);
    for (size_t i = 0; i < ROWS * K; i++)
        x[i] = f[i];
    without = compare(w, f, x, N, K, &rule);
    CHECK(without.fed_back < with.fed_back);
    free(w);
    free(f);
    free(x);
}

/* ---- a textbook GPTQ ---- */

enum { BLOCK = 32 };

static void invert(double a[BLOCK][BLOCK], double out[BLOCK][BLOCK], int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            out[i][j] = i == j;
    for (int p = 0; p < n; p++) {
        double pivot = a[p][p];

        for (int j = 0; j < n; j++) {
            a[p][j] /= pivot;
            out[p][j] /= pivot;
        }
        for (int i = 0; i < n; i++) {
            double factor = a[i][p];

            for (int j = 0; j < n && i != p; j++) {
                a[i][j] -= factor * a[p][j];
                out[i][j] -= factor * out[p][j];
            }
        }
    }
}

/* the damped second moments of x, by the definition */
static void second_moments(const float *x, int k, double h[BLOCK][BLOCK])
{
    double trace = 0;

    for (int i = 0; i < k; i++) {
        for (int j = 0; j < k; j++) {
            h[i][j] = 0;
            for (int r = 0; r < ROWS; r++)
                h[i][j] += (double)x[r * k + i] * (double)x[r * k + j];
        }
        trace += h[i][i];
    }
    for (int i = 0; i < k; i++)
        h[i][i] += 0.01 * trace / k;
}

/* Rounds one block on a given grid: each error goes to the elements that are left by the inverse
 * of their moments, from which the element is then taken out. */
static void textbook(const float *x, const float *w, int k, muc_bd_block *block, float *out)
{
    double h[BLOCK][BLOCK], inverse[BLOCK][BLOCK], rest[BLOCK];

    second_moments(x, k, h);
    invert(h, inverse, k);
    for (int i = 0; i < k; i++)
        rest[i] = (double)w[i];
    for (int j = 0; j < k; j++) {
        double error, pivot = inverse[j][j];

        out[j] = muc_bd_round(block, (unsigned)j, (float)rest[j]);
        error = (rest[j] - (double)out[j]) / pivot;
        for (int i = j; i < k; i++)
            rest[i] -= error * inverse[j][i];
        for (int a = k; a-- > j;)
            for (int b = k; b-- > j;)
                inverse[a][b] -= inverse[a][j] / pivot * inverse[j][b];
    }
}

static double objective(const muc_feedback *feedback, const float *w, const float *q, int k)
{
    double e[BLOCK];

    for (int i = 0; i < k; i++)
        e[i] = (double)w[i] - (double)q[i];
    return muc_feedback_error(feedback, e);
}

/* What comes after the first rounding only ever lowers the objective: on the grid that was chosen
 * the textbook's result is never better, and often worse. */
static void no_block_is_worse_than_by_the_textbook(void **state)
{
    int better = 0;

    (void)state;
    for (int trial = 0; trial < 200; trial++) {
        uint32_t k = 2 + random_u32() % (BLOCK - 1);
        float *x = correlated(k), *w = gaussian(k), *found, by_textbook[BLOCK];
        muc_bd_matrix matrix = muc_bd_matrix_of("w", w, 1, k);
        muc_feedback *feedback = feedback_of(ctx, x, NULL, k);
        muc_bd_rule rule = { 1 << MUC_BD_B4, 0 };
        muc_bd_block block;
        muc_bd_sequence s;
        const char *reason;
        double mine, other;

        CHECK_OK(ctx, muc_feedback_quantize(ctx, feedback, &matrix, &rule, &s));
        CHECK(muc_bd_read(s.data + 8, s.bytes - 8, k, NULL, &block, &reason) > 0);
        CHECK_EQ(block.kind, MUC_BD_B4);
        found = decode(&s, 1, k);
        textbook(x, w, (int)k, &block, by_textbook);
        mine = objective(feedback, w, found, (int)k);
        other = objective(feedback, w, by_textbook, (int)k);
        CHECK(mine <= other * (1 + 1e-9));
        better += mine < other * (1 - 1e-9);
        muc_bd_sequence_free(&s);
        muc_feedback_free(feedback);
        free(found);
        free(w);
        free(x);
    }
    print_message("better than the textbook in %d of 200\n", better);
    CHECK(better > 20);
}

/* ---- edges ---- */

static void bytes_are_the_same_at_any_thread_count(void **state)
{
    enum { N = 40, K = 200 };
    float *f = correlated(K), *x = correlated(K), *w = gaussian(N * K);
    muc_bd_matrix matrix = muc_bd_matrix_of("w", w, N, K);
    muc_bd_rule rule = { 1 << MUC_BD_B4 | 1 << MUC_BD_B5 | MUC_BD_SHARING, 1 << 17 };
    muc_bd_sequence first = { 0 };

    (void)state;
    for (unsigned threads = 1; threads < 5; threads++) {
        muc_context *own = muc_context_new(threads);
        muc_feedback *feedback = feedback_of(own, x, f, K);
        muc_bd_sequence s;

        CHECK_OK(own, muc_feedback_quantize(own, feedback, &matrix, &rule, &s));
        if (threads == 1) {
            first = s;
        } else {
            CHECK_EQ(s.bytes, first.bytes);
            assert_memory_equal(s.data, first.data, s.bytes);
            muc_bd_sequence_free(&s);
        }
        muc_feedback_free(feedback);
        muc_context_free(own);
    }
    muc_bd_sequence_free(&first);
    free(w);
    free(x);
    free(f);
}

/* inputs that are always zero, here all or every other one, leave no singular system behind */
static void dead_inputs_do_no_harm(void **state)
{
    enum { N = 10, K = 96 };
    float *x = correlated(K), *w = gaussian(N * K), *values;
    muc_bd_matrix matrix = muc_bd_matrix_of("w", w, N, K);
    muc_bd_rule rule = { 1 << MUC_BD_B4 | 1 << MUC_BD_B5 | MUC_BD_SHARING, 1 << 17 };
    muc_bd_sequence plain, s;
    muc_feedback *feedback;

    (void)state;
    CHECK_OK(ctx, muc_bd_quantize(ctx, &matrix, &rule, &plain));
    for (size_t i = 0; i < ROWS * K; i += 2)
        x[i] = 0;
    feedback = feedback_of(ctx, x, NULL, K);
    CHECK_OK(ctx, muc_feedback_quantize(ctx, feedback, &matrix, &rule, &s));
    values = decode(&s, N, K);
    for (size_t i = 0; i < N * K; i++)
        CHECK(isfinite(values[i]) && fabsf(values[i] - w[i]) < 4);
    free(values);
    muc_bd_sequence_free(&s);
    muc_feedback_free(feedback);

    memset(x, 0, ROWS * K * sizeof(*x));
    feedback = feedback_of(ctx, x, x, K);
    CHECK_OK(ctx, muc_feedback_quantize(ctx, feedback, &matrix, &rule, &s));
    CHECK_EQ(s.bytes, plain.bytes);
    assert_memory_equal(s.data, plain.data, s.bytes);
    muc_bd_sequence_free(&s);
    muc_bd_sequence_free(&plain);
    muc_feedback_free(feedback);
    free(w);
    free(x);
}

static void inputs_that_are_not_finite_are_refused(void **state)
{
    const float x[2] = { 1, INFINITY };
    muc_feedback *feedback;
    muc_moments moments;

    (void)state;
    CHECK_OK(ctx, muc_moments_new(ctx, 2, false, &moments));
    CHECK_OK(ctx, muc_moments_add(ctx, &moments, x, NULL, 1));
    CHECK_FAILS(ctx, MUC_MALFORMED, "not finite", muc_feedback_new(ctx, &moments, &feedback));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_change_less_with_feedback_at_no_more_bytes),
        cmocka_unit_test(blocks_that_grow_apart_still_share_their_header),
        cmocka_unit_test(a_matrix_makes_up_for_what_its_inputs_lost),
        cmocka_unit_test(no_block_is_worse_than_by_the_textbook),
        cmocka_unit_test(bytes_are_the_same_at_any_thread_count),
        cmocka_unit_test(dead_inputs_do_no_harm),
        cmocka_unit_test(inputs_that_are_not_finite_are_refused),
    };

    return cmocka_run_group_tests_name("feedback", tests, new_context, free_context);
}
