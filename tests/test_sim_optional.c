/* What of µThinker's instructions only some models ask for (SCALE, RMS, CAP, hide of SMAX, gelu of
 * GLU), on the simulator against SPEC.md put another way, and where they fault. */
#include <math.h>

#include "sim_bench.h"

static float expected[GB_WORDS];

/* GB with random values of this size, and a copy of it */
static void begin_with(float size)
{
    fill_gb(size);
    memcpy(expected, b.gb, sizeof(expected));
}

static void ends_as_expected(words x)
{
    run(x);
    same_floats(b.gb, expected, GB_WORDS);
}

/* ---- SCALE ---- */

static void scale_multiplies_rows_and_adds_if_told(void **state)
{
    (void)state;
    for (uint32_t acc = 0; acc < 2; acc++) {
        scale x = { .saddr = 17,
                    .spitch = 50,
                    .rows = 4,
                    .k = 33,
                    .daddr = 3000,
                    .dpitch = 70,
                    .acc = acc,
                    .factor = 0.3f };

        begin_with(5);
        for (uint32_t r = 0; r < x.rows; r++)
            for (uint32_t i = 0; i < x.k; i++) {
                float y = mul(b.gb[17 + 50 * r + i], 0.3f), *z = &expected[3000 + 70 * r + i];

                *z = acc ? add(*z, y) : y;
            }
        ends_as_expected(scale_words(x));
    }
}

static void scale_of_pitch_0_brings_one_row_to_all(void **state)
{
    scale x = { .saddr = 8, .rows = 5, .k = 12, .daddr = 100, .dpitch = 12, .factor = 1 };

    (void)state;
    begin_with(3);
    for (uint32_t i = 0; i < x.rows * x.k; i++)
        expected[100 + i] = b.gb[8 + i % x.k];
    ends_as_expected(scale_words(x));
}

/* each element is written before the next one is read */
static void scale_goes_upward_where_rows_overlap(void **state)
{
    scale x = { .saddr = 40, .rows = 1, .k = 20, .daddr = 41, .factor = 0.5f };

    (void)state;
    begin_with(3);
    for (uint32_t i = 0; i < x.k; i++)
        expected[41 + i] = mul(expected[40 + i], 0.5f);
    ends_as_expected(scale_words(x));
}

/* ---- RMS ---- */

static void expect_rms(const rms *x)
{
    for (uint32_t r = 0; r < x->rows; r++) {
        const float *row = expected + x->saddr + r * x->spitch;
        float *out = expected + x->daddr + r * x->dpitch, sum = 0, u;

        for (uint32_t i = 0; i < x->k; i++)
            sum = add(sum, mul(row[i], row[i]));
        u = quotient(1, sqrtf(add(quotient(sum, (float)x->k), x->epsilon)));
        for (uint32_t i = 0; i < x->k; i++) {
            float y = mul(mul(row[i], u), expected[x->gaddr + i]);

            out[i] = x->acc ? add(out[i], y) : y;
        }
    }
}

static void rms_normalises_rows_and_adds_if_told(void **state)
{
    (void)state;
    for (uint32_t k = 1; k <= 172; k += k < 64 ? 21 : 36) {
        rms x = { .saddr = 10,
                  .spitch = k + 3,
                  .rows = 3,
                  .k = k,
                  .gaddr = 4000,
                  .daddr = 2000,
                  .dpitch = k + 7,
                  .acc = k % 2,
                  .epsilon = 1e-5f };

        begin_with(k % 3 ? 4.0f : 1e-20f); /* tiny: epsilon rules */
        expect_rms(&x);
        ends_as_expected(rms_words(x));
    }
}

static void rms_normalises_heads_in_place(void **state)
{
    rms x = { .saddr = 64,
              .spitch = 16,
              .rows = 12,
              .k = 16,
              .gaddr = 5,
              .daddr = 64,
              .dpitch = 16,
              .epsilon = 1e-6f };

    (void)state;
    begin_with(2);
    expect_rms(&x);
    ends_as_expected(rms_words(x));
}

/* ---- CAP ---- */

static float capped(float x, float factor, float most)
{
    float t = mul(x, factor), e = mur_sim_exp(mul(-2, fabsf(t)));
    float h = quotient(add(1, -e), add(1, e));

    return mul(t >= 0 ? h : -h, most);
}

static void cap_bends_rows_in_place(void **state)
{
    cap x = { .saddr = 9, .spitch = 40, .rows = 5, .k = 37, .factor = 0.02f, .most = 50 };

    (void)state;
    begin_with(4000); /* also where the exponential becomes 0 */
    b.gb[9] = expected[9] = 0;
    b.gb[10] = expected[10] = -0.0f;
    for (uint32_t r = 0; r < x.rows; r++)
        for (uint32_t i = 0; i < x.k; i++)
            expected[9 + 40 * r + i] = capped(expected[9 + 40 * r + i], x.factor, x.most);
    ends_as_expected(cap_words(x));
    for (uint32_t i = 0; i < x.k; i++)
        CHECK(fabsf(b.gb[9 + i]) <= 50);
}

static void cap_is_as_near_to_libm_as_its_exponential_allows(void **state)
{
    cap x = { .rows = 1, .k = GB_WORDS, .factor = 0.25f, .most = 4 };

    (void)state;
    begin_with(60);
    run(cap_words(x));
    for (uint32_t i = 0; i < GB_WORDS; i++)
        if (fabs((double)b.gb[i] - 4 * tanh((double)expected[i] / 4)) > 4e-6)
            fail_msg("cap of %g is %g", (double)expected[i], (double)b.gb[i]);
}

/* ---- hide of SMAX ---- */

/* scores s[w..v-1] alone, in doubles rounded after each operation; O and state in `expected` */
static void expect_seen(smax x, uint32_t row, uint8_t *out)
{
    uint32_t i = row / x.group, v = x.valid + i > 64 ? 64 : x.valid + i, w = x.hide + i;
    float *top = expected + x.taddr + 2 * row, *o = expected + x.oaddr + x.k * row;
    float p[64] = { 0 }, max = x.first ? -INFINITY : top[0], sum = 0, a;

    w = w < 64 ? 0 : w - 64;
    w = w < v ? w : v;
    for (uint32_t j = w; j < v; j++)
        max = fmaxf(max, mul(expected[x.saddr + 64 * row + j], x.scale));
    for (uint32_t j = w; j < v; j++)
        p[j] = mur_sim_exp(add(mul(expected[x.saddr + 64 * row + j], x.scale), -max));
    for (uint32_t j = 0; j < v; j++)
        sum = add(sum, p[j]);
    a = x.first ? 0 : mur_sim_exp(add(top[0], -max));
    for (uint32_t j = 0; j < x.k; j++)
        o[j] = x.first ? 0 : mul(o[j], a);
    top[1] = x.first ? sum : add(mul(top[1], a), sum);
    top[0] = max;
    slots(p, v, x.terms, out + x.daddr + row * x.dpitch);
}

static void smax_hides_scores_before_the_window(void **state)
{
    static uint8_t written[I_BYTES];
    uint32_t all = 0, none = 0;

    (void)state;
    for (uint32_t round = 0; round < 60; round++) {
        smax x = { .rows = 20,
                   .group = 1 + random_below(5),
                   .valid = 1 + random_below(64),
                   .hide = round < 20 ? random_below(65) : 60 + random_below(69),
                   .first = round % 2,
                   .taddr = 2000,
                   .oaddr = 3000,
                   .k = 8 + random_below(40),
                   .dst = I1,
                   .daddr = 11,
                   .dpitch = 80,
                   .terms = 2,
                   .scale = 0.353553f };

        begin_with(9);
        memset(b.i1, 0, I_BYTES);
        memset(written, 0, I_BYTES);
        for (uint32_t r = 0; r < x.rows; r++) {
            uint32_t i = r / x.group;

            all += x.hide + i >= 64 + x.valid + i;
            none += x.hide + i <= 64;
            expect_seen(x, r, written);
        }
        ends_as_expected(smax_words(x));
        assert_memory_equal(b.i1, written, I_BYTES);
    }
    CHECK(all > 50 && none > 50);
}

/* ---- gelu of GLU ---- */

static void glu_gates_by_gelu(void **state)
{
    static const uint32_t bits[2] = { 0x3fcc422a, 0x3d922279 };
    glu x = { .saddr = 10,
              .uaddr = 2000,
              .rows = 4,
              .k = 44,
              .dst = I0,
              .daddr = 5,
              .dpitch = 60,
              .terms = 2,
              .gelu = 1 };
    uint8_t row[128];
    float c[2];

    (void)state;
    memcpy(c, bits, sizeof(c));
    CHECK(fabs((double)c[0] - 2 * sqrt(2 / acos(-1))) < 6e-8);
    CHECK(fabs((double)c[1] - 0.044715 * 2 * sqrt(2 / acos(-1))) < 4e-9);
    fill_gb(8);
    b.gb[10] = 0;
    run(glu_words(x));
    for (uint32_t r = 0; r < x.rows; r++) {
        float y[44];

        for (uint32_t i = 0; i < x.k; i++) {
            float g = b.gb[10 + 44 * r + i];
            float z = mul(g, add(c[0], mul(c[1], mul(g, g)))), e = mur_sim_exp(-fabsf(z));

            y[i] = mul(mul(g, quotient(z >= 0 ? 1 : e, add(1, e))), b.gb[2000 + 44 * r + i]);
        }
        CHECK_EQ(slots(y, 44, 2, row) - row, slots_size(44, 2));
        assert_memory_equal(b.i0 + 5 + 60 * r, row, slots_size(44, 2));
    }
}

/* ---- faults ---- */

/* `good` runs; changed in one field it faults */
#define FAULTS(kind, change) (x = good, change, faults(outside_buffer, kind##_words(x)))

static void scale_faults_outside_gb(void **state)
{
    scale good = { .saddr = GB_WORDS - 110,
                   .spitch = 60,
                   .rows = 2,
                   .k = 50,
                   .daddr = GB_WORDS - 300,
                   .dpitch = 250,
                   .factor = 1 };
    scale x;

    (void)state;
    run(scale_words(good));
    FAULTS(scale, x.saddr++);
    FAULTS(scale, x.spitch++);
    FAULTS(scale, x.rows++);
    FAULTS(scale, x.k++);
    FAULTS(scale, x.daddr++);
    FAULTS(scale, x.dpitch++);
    good.rows = 0; /* asks for nothing */
    good.saddr = good.daddr = 0x3ffff;
    run(scale_words(good));
}

static void rms_and_cap_fault_outside_gb(void **state)
{
    (void)state;
    {
        rms good = { .saddr = GB_WORDS - 110,
                     .spitch = 60,
                     .rows = 2,
                     .k = 50,
                     .gaddr = GB_WORDS - 50,
                     .daddr = GB_WORDS - 300,
                     .dpitch = 250,
                     .epsilon = 1 };
        rms x;

        run(rms_words(good));
        FAULTS(rms, x.saddr++);
        FAULTS(rms, x.spitch++);
        FAULTS(rms, x.rows++);
        FAULTS(rms, x.k++);
        FAULTS(rms, x.gaddr++);
        FAULTS(rms, x.daddr++);
        FAULTS(rms, x.dpitch++);
    }
    {
        cap good = {
            .saddr = GB_WORDS - 110, .spitch = 60, .rows = 2, .k = 50, .factor = 1, .most = 1
        };
        cap x;

        run(cap_words(good));
        FAULTS(cap, x.saddr++);
        FAULTS(cap, x.spitch++);
        FAULTS(cap, x.rows++);
        FAULTS(cap, x.k++);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(scale_multiplies_rows_and_adds_if_told),
        SIM_TEST(scale_of_pitch_0_brings_one_row_to_all),
        SIM_TEST(scale_goes_upward_where_rows_overlap),
        SIM_TEST(rms_normalises_rows_and_adds_if_told),
        SIM_TEST(rms_normalises_heads_in_place),
        SIM_TEST(cap_bends_rows_in_place),
        SIM_TEST(cap_is_as_near_to_libm_as_its_exponential_allows),
        SIM_TEST(smax_hides_scores_before_the_window),
        FAST_TEST(smax_hides_scores_before_the_window),
        SIM_TEST(glu_gates_by_gelu),
        FAST_TEST(glu_gates_by_gelu),
        SIM_TEST(scale_faults_outside_gb),
        SIM_TEST(rms_and_cap_fault_outside_gb),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
