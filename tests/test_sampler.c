/* test_sampler.c - sampling, against probabilities computed in double by another program text. */
#include "mur_sampler.h"

#include <float.h>
#include <math.h>

#include "check.h"

enum { VOCABULARY = 64, DRAWS = 40000 };

static float logits[VOCABULARY];
static uint32_t scratch[VOCABULARY];

/* a generator of the test's own, so that a flaw of the sampler's cannot hide */
static uint32_t lehmer(void)
{
    static uint64_t state = 12345;

    state = state * 48271 % 2147483647;
    return (uint32_t)state;
}

static void random_logits(float scale)
{
    for (int i = 0; i < VOCABULARY; i++)
        logits[i] = ((float)lehmer() / 1073741824.0f - 1.0f) * scale;
}

/* ---- the second implementation: sorts everything, sums in double ---- */

typedef struct ranked {
    uint32_t id;
    double logit, mass;
} ranked;

static int by_logit(const void *a, const void *b)
{
    const ranked *x = a, *y = b;

    if (x->logit != y->logit)
        return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

/* Probability of each id. */
static void reference(const mur_sampler *s, double probability[VOCABULARY])
{
    ranked r[VOCABULARY];
    uint32_t count = s->top_k > 0 && s->top_k < VOCABULARY ? s->top_k : VOCABULARY, kept = 0;
    double total = 0, sum = 0;

    for (uint32_t i = 0; i < VOCABULARY; i++)
        r[i] = (ranked){ i, (double)logits[i], 0 };
    qsort(r, VOCABULARY, sizeof(*r), by_logit);
    for (uint32_t i = 0; i < count; i++)
        total += exp(r[i].logit - r[0].logit);
    while (kept < count && (kept == 0 || sum < (double)s->top_p * total))
        sum += exp(r[kept++].logit - r[0].logit);
    while (kept > 1 && exp(r[kept - 1].logit - r[0].logit) < (double)s->min_p)
        kept--;
    total = 0;
    for (uint32_t i = 0; i < kept; i++)
        total += r[i].mass = exp((r[i].logit - r[0].logit) / (double)s->temperature);
    for (uint32_t i = 0; i < VOCABULARY; i++)
        probability[r[i].id] = r[i].mass / total;
}

/* Draws, and compares how often each id came with its probability: within 5 deviations. */
static void check_distribution(mur_sampler *s)
{
    double probability[VOCABULARY];
    unsigned times[VOCABULARY] = { 0 };

    reference(s, probability);
    for (int i = 0; i < DRAWS; i++)
        times[mur_sampler_next(s, logits, VOCABULARY, scratch)]++;
    for (int i = 0; i < VOCABULARY; i++) {
        double mean = probability[i] * DRAWS;
        double deviation = sqrt(mean * (1 - probability[i])) + 1e-9;

        if (fabs(times[i] - mean) > 5 * deviation + (mean > 0 ? 1 : 0))
            fail_msg("top_k %u top_p %g min_p %g temperature %g: id %d came %u times, not %.1f",
                     s->top_k, (double)s->top_p, (double)s->min_p, (double)s->temperature, i,
                     times[i], mean);
    }
}

static void frequencies_follow_the_probabilities(void **state)
{
    static const mur_sampler settings[] = {
        { .top_p = 1, .temperature = 1 },
        { .top_p = 1, .temperature = 0.5f },
        { .top_p = 1, .temperature = 2 },
        { .top_k = 5, .top_p = 1, .temperature = 1 },
        { .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .temperature = 0.8f },
        { .top_p = 0.9f, .temperature = 1 },
        { .top_p = 0.3f, .temperature = 1.5f },
        { .top_p = 1, .min_p = 0.1f, .temperature = 1 },
        { .top_k = VOCABULARY + 9, .top_p = 0.5f, .min_p = 0.01f, .temperature = 3 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        mur_sampler s = settings[i];

        mur_sampler_seed(&s, i);
        random_logits(4);
        check_distribution(&s);
        random_logits(1);
        check_distribution(&s);
    }
}

/* the generator's published demonstration: seed 42, stream 54 */
static void numbers_are_those_of_pcg32(void **state)
{
    static const uint32_t published[6] = { 0xa15c02b7, 0x7b47f409, 0xba1d3330,
                                           0x83d2f293, 0xbfa4784b, 0xcbed606e };
    static float equal[65536];
    mur_sampler s = { .top_p = 1, .temperature = 1 };

    (void)state;
    mur_sampler_seed(&s, 42);
    for (int i = 0; i < 6; i++)
        CHECK_EQ(mur_sampler_next(&s, equal, 65536, NULL), published[i] >> 16);
}

static void one_candidate_is_the_greedy_choice(void **state)
{
    mur_sampler greedy = { .top_p = 1 };
    mur_sampler one[3] = { { .top_k = 1, .top_p = 1, .temperature = 1 },
                           { .top_p = 0, .temperature = 1 },
                           { .top_p = 1, .min_p = 2, .temperature = 1 } };

    (void)state;
    for (int i = 0; i < 200; i++) {
        uint32_t best = 0;

        random_logits(3);
        for (uint32_t j = 0; j < VOCABULARY; j++)
            best = logits[j] > logits[best] ? j : best;
        CHECK_EQ(mur_sampler_next(&greedy, logits, VOCABULARY, NULL), best);
        for (int j = 0; j < 3; j++)
            CHECK_EQ(mur_sampler_next(&one[j], logits, VOCABULARY, scratch), best);
    }
}

static void of_equals_the_lower_id_is_kept(void **state)
{
    mur_sampler greedy = { .top_p = 1 }, two = { .top_k = 2, .top_p = 1, .temperature = 1 };

    (void)state;
    for (int i = 0; i < VOCABULARY; i++)
        logits[i] = i % 8 == 5 ? 1.0f : i % 8 == 6 ? -0.0f : 0.0f;
    CHECK_EQ(mur_sampler_next(&greedy, logits, VOCABULARY, NULL), 5);
    mur_sampler_seed(&two, 1);
    for (int i = 0; i < 100; i++) {
        uint32_t id = mur_sampler_next(&two, logits, VOCABULARY, scratch);

        CHECK(id == 5 || id == 13);
    }
}

static void nan_and_infinity_do_no_harm(void **state)
{
    mur_sampler s = { .top_k = 3, .top_p = 0.9f, .temperature = 1 }, greedy = { .top_p = 1 };

    (void)state;
    for (int i = 0; i < VOCABULARY; i++)
        logits[i] = i % 2 ? NAN : -INFINITY;
    logits[40] = -3e38f;
    CHECK_EQ(mur_sampler_next(&greedy, logits, VOCABULARY, NULL), 40);
    CHECK_EQ(mur_sampler_next(&s, logits, VOCABULARY, scratch), 40);
    logits[17] = INFINITY;
    CHECK_EQ(mur_sampler_next(&greedy, logits, VOCABULARY, NULL), 17);
    CHECK_EQ(mur_sampler_next(&s, logits, VOCABULARY, scratch), 17);
    for (int i = 0; i < VOCABULARY; i++)
        logits[i] = NAN;
    CHECK_EQ(mur_sampler_next(&greedy, logits, VOCABULARY, NULL), 0);
    CHECK(mur_sampler_next(&s, logits, VOCABULARY, scratch) < VOCABULARY);
}

/* ---- the greedy choice, against a loop that compares numbers ---- */

static float number_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint32_t plainly_likeliest(const float *row, uint32_t n)
{
    uint32_t best = 0;
    double highest = 0;

    for (uint32_t i = 0; i < n; i++) {
        double x = isnan(row[i]) ? -(double)FLT_MAX : (double)row[i];

        x = x > (double)FLT_MAX ? (double)FLT_MAX : x < -(double)FLT_MAX ? -(double)FLT_MAX : x;
        if (i == 0 || x > highest) {
            highest = x;
            best = i;
        }
    }
    return best;
}

/* all pairs of numbers at whose bits an order could go wrong, then rows of them */
static void the_likeliest_is_that_of_a_plain_loop(void **state)
{
    static const uint32_t ends[] = { 0,          1,          2,          0x007fffff, 0x00800000,
                                     0x00800001, 0x33800000, 0x3f7fffff, 0x3f800000, 0x3f800001,
                                     0x7f7ffffe, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fbfffff,
                                     0x7fc00000, 0x7fc00001, 0x7fffffff };
    enum { ENDS = sizeof(ends) / sizeof(ends[0]) };
    mur_sampler greedy = { .top_p = 1 }, sorted = { .top_k = 1, .top_p = 1, .temperature = 1 };
    float row[13];

    (void)state;
    for (uint32_t i = 0; i < 4 * ENDS * ENDS; i++) {
        row[0] = number_of(ends[i / 4 % ENDS] | (i & 1) << 31);
        row[1] = number_of(ends[i / 4 / ENDS] | (i >> 1 & 1) << 31);
        CHECK_EQ(mur_sampler_next(&greedy, row, 2, NULL), plainly_likeliest(row, 2));
        CHECK_EQ(mur_sampler_next(&sorted, row, 2, scratch), plainly_likeliest(row, 2));
    }
    for (int round = 0; round < 100000; round++) {
        uint32_t n = 1 + lehmer() % 13;

        for (uint32_t i = 0; i < n; i++)
            row[i] = number_of(round % 2 ? ends[lehmer() % ENDS] | lehmer() << 31
                                         : lehmer() << 16 ^ lehmer());
        CHECK_EQ(mur_sampler_next(&greedy, row, n, NULL), plainly_likeliest(row, n));
        CHECK_EQ(mur_sampler_next(&sorted, row, n, scratch), plainly_likeliest(row, n));
    }
}

static void recent_tokens_are_penalized_once(void **state)
{
    static const uint32_t recent[] = { 3, 1, 3, 99, 0 };
    float row[4] = { 2, -2, 6, 6 };

    (void)state;
    mur_sampler_penalize(row, 4, recent, 5, 2);
    CHECK(row[0] == 1 && row[1] == -4 && row[2] == 6 && row[3] == 3);
}

/* Draws `draws` times from rows of noise that spans `range`; a number for all tokens. */
static uint32_t hash_of_draws(mur_sampler s, float range, int draws)
{
    uint32_t hash = 2166136261u, noise = 1;

    mur_sampler_seed(&s, 7);
    for (int draw = 0; draw < draws; draw++) {
        for (int i = 0; i < VOCABULARY; i++) {
            noise = noise * 1664525u + 1013904223u;
            logits[i] = (float)(int32_t)noise * (range / 4294967296.0f);
        }
        hash = (hash ^ mur_sampler_next(&s, logits, VOCABULARY, scratch)) * 16777619u;
    }
    return hash;
}

/* gcc and clang on x86-64 found the number, and so did a Cortex-M0 and a Cortex-M4, with and
 * without its FPU, under QEMU */
static void draws_are_the_same_everywhere(void **state)
{
    mur_sampler s = { .top_k = 40, .top_p = 0.95f, .min_p = 0.02f, .temperature = 0.8f };

    (void)state;
    CHECK_EQ(hash_of_draws(s, 16, 2000), 0xc2dad75b);
}

/* What the sampler drew when it took the exponential of every logit, twice. */
static void logits_that_cannot_matter_change_no_draw(void **state)
{
    static const struct {
        mur_sampler sampler;
        float range;
        uint32_t hash;
    } known[] = {
        { { .top_p = 1, .temperature = 0.8f }, 4, 0xa1394274 },
        { { .top_p = 1, .temperature = 0.8f }, 40, 0x0ae829a7 },
        { { .top_p = 1, .temperature = 0.8f }, 400, 0x61aa3e14 },
        { { .top_p = 1, .temperature = 0.8f }, 4000000, 0xa066215a },
        { { .top_p = 1, .temperature = 5 }, 4, 0xe5a7a009 },
        { { .top_p = 1, .temperature = 5 }, 40, 0x7bf3bc4c },
        { { .top_p = 1, .temperature = 5 }, 400, 0x592dd38d },
        { { .top_p = 1, .temperature = 5 }, 4000, 0x29310280 },
        { { .top_p = 1, .temperature = 1e-3f }, 0.01f, 0x7c9f3523 },
        { { .top_p = 1, .temperature = 1e-3f }, 1, 0x16082210 },
        { { .top_p = 1, .temperature = 1e-3f }, 1e+38f, 0x4b93d101 },
        { { .top_p = 1, .min_p = 0.05f, .temperature = 1.5f }, 4, 0x717ea073 },
        { { .top_p = 1, .min_p = 0.05f, .temperature = 1.5f }, 40, 0x5ae56cf4 },
        { { .top_p = 1, .min_p = 1e-7f, .temperature = 1 }, 40, 0x011e9eb1 },
        { { .top_p = 1, .min_p = 1e-7f, .temperature = 1 }, 400, 0x2da3c093 },
        { { .top_p = 1, .min_p = 1e-40f, .temperature = 2 }, 400, 0xe2ff6ee5 },
        { { .top_p = 1, .min_p = 1, .temperature = 2 }, 1e-06f, 0xc5d567e8 },
        { { .top_p = 0.9f, .temperature = 1 }, 4, 0x405baf81 },
        { { .top_p = 0.9f, .temperature = 1 }, 40, 0x22ebf36d },
        { { .top_p = 0.9f, .temperature = 1 }, 400, 0x9842d727 },
        { { .top_p = 0.999999f, .temperature = 3 }, 40, 0xf2e3269f },
        { { .top_p = 0.999999f, .temperature = 3 }, 400, 0xc81758f2 },
        { { .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .temperature = 0.8f }, 40, 0x1e855697 },
        { { .top_k = 30, .top_p = 1, .temperature = 1e30f }, 40, 0xe3b76819 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        CHECK_EQ(hash_of_draws(known[i].sampler, known[i].range, 20000), known[i].hash);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequencies_follow_the_probabilities),
        cmocka_unit_test(numbers_are_those_of_pcg32),
        cmocka_unit_test(one_candidate_is_the_greedy_choice),
        cmocka_unit_test(of_equals_the_lower_id_is_kept),
        cmocka_unit_test(nan_and_infinity_do_no_harm),
        cmocka_unit_test(the_likeliest_is_that_of_a_plain_loop),
        cmocka_unit_test(recent_tokens_are_penalized_once),
        cmocka_unit_test(draws_are_the_same_everywhere),
        cmocka_unit_test(logits_that_cannot_matter_change_no_draw),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
