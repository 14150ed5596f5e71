/* BlockDialect: the device's codec against the specification put another way, in doubles. */
#include <math.h>

#include "check.h"
#include "mur_block.h"

static const uint8_t dialects[16][8] = {
#define MUR_DIALECT(id, ...) [id] = { __VA_ARGS__ },
#include "mur_dialect.def"
#undef MUR_DIALECT
};

/* xorshift64*, the tests' one source of chance */
static uint64_t random_state = 1;

static uint32_t random_u32(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (uint32_t)(random_state * 0x2545f4914f6cdd1du >> 32);
}

static double random_unit(void) /* in (0, 1) */
{
    return (random_u32() + 0.5) / 4294967296.0;
}

static double random_gaussian(void)
{
    return sqrt(-2 * log(random_unit())) * cos(2 * acos(-1.0) * random_unit());
}

/* ---- SPEC section 3 in doubles: nearest values and midpoints instead of integer thresholds ----
 */

static double oracle_half(double x)
{
    double magnitude = fabs(x);
    int exponent;

    if (magnitude < ldexp(1, -14))
        return 0;
    if (!(magnitude < 65504))
        return copysign(65504, x);
    frexp(magnitude, &exponent);
    return copysign(ldexp(nearbyint(ldexp(magnitude, 11 - exponent)), exponent - 11), x);
}

/* the value nearest to y >= 0, ties to the larger; returns its place */
static int oracle_nearest(const double *values, int count, double y)
{
    int best = 0;

    for (int i = 1; i < count; i++)
        if (fabs(values[i] - y) <= fabs(values[best] - y))
            best = i;
    return best;
}

/* how many elements are nearest to the value that only `own` of the two dialects has */
static int oracle_count(int own, int other, const double *y, int n)
{
    double both[16], only = -1;
    int count = 0, hits = 0;

    for (int m = 0; m < 16; m++) {
        const void *in_own = memchr(dialects[own], m, 8), *in_other = memchr(dialects[other], m, 8);

        if (in_own && !in_other)
            only = m;
        if (in_own || in_other)
            both[count++] = m;
    }
    for (int i = 0; i < n; i++)
        hits += both[oracle_nearest(both, count, y[i])] == only;
    return hits;
}

/* one term of x (binary16 values); x becomes the rest, nibbles[] and the header's fields come out
 */
static void oracle_term(double *x, int n, int *dialect, int *exponent, int *nibbles)
{
    double max = 0, y[32], values[8];
    int e = 0, pair;

    for (int i = 0; i < n; i++)
        max = fmax(max, fabs(x[i]));
    if (max > 0)
        e = ilogb(max) + 15 - 2;
    if (e < 0)
        e = 0;
    for (int i = 0; i < n; i++)
        y[i] = ldexp(fabs(x[i]), 16 - e);
    pair = 15 - (int)floor(ldexp(max, 16 - e));
    if (pair > 7)
        pair = 7;
    *dialect = 2 * pair;
    if (oracle_count(2 * pair + 1, 2 * pair, y, n) > oracle_count(2 * pair, 2 * pair + 1, y, n))
        *dialect += 1;
    *exponent = e;
    for (int i = 0; i < 8; i++)
        values[i] = dialects[*dialect][i];
    for (int i = 0; i < n; i++) {
        int index = oracle_nearest(values, 8, y[i]), negative = index != 0 && signbit(x[i]);
        double value = ldexp(values[index], e - 16);

        nibbles[i] = negative << 3 | index;
        x[i] = oracle_half(x[i] - (signbit(x[i]) ? -value : value));
    }
}

/* encodes by both, in one term and in two, and compares every byte */
static void check_online(const float *x, int n)
{
    for (uint32_t terms = 1; terms <= 2; terms++) {
        uint8_t slot[MUR_BLOCK_MAX_BYTES + 1], expected[MUR_BLOCK_MAX_BYTES] = { 0 };
        uint32_t size = mur_block_slot_bytes((uint32_t)n, terms);
        double rest[32];

        for (int i = 0; i < n; i++)
            rest[i] = oracle_half(x[i]);
        expected[0] = (uint8_t)(size - 1);
        for (uint32_t t = 0; t < terms; t++) {
            uint8_t *out = expected + 1 + t * (2 + (uint32_t)(n + 1) / 2);
            int dialect, exponent, nibbles[32], header;

            oracle_term(rest, n, &dialect, &exponent, nibbles);
            header = dialect << 12 | exponent << 7 | (terms == 2 && t == 0 ? 4 << 4 : 0);
            out[0] = (uint8_t)(header & 255);
            out[1] = (uint8_t)(header >> 8);
            for (int i = 0; i < n; i++)
                out[2 + i / 2] |= (uint8_t)(nibbles[i] << 4 * (i % 2));
        }
        slot[size] = 0xa5;
        CHECK_EQ(mur_block_encode(x, (uint32_t)n, terms, slot), size);
        CHECK_EQ(slot[size], 0xa5);
        assert_memory_equal(slot, expected, size);
    }
}

static float half_of(uint32_t mantissa, int e16)
{
    return (float)ldexp(mantissa, e16 - 25);
}

static void table_has_the_form_of_the_published_hardware(void **state)
{
    static const uint8_t sixth[16] = { 11, 9, 11, 9, 10, 8, 10, 8, 9, 7, 9, 7, 8, 7, 7, 6 };

    (void)state;
    for (int id = 0; id < 16; id++) {
        for (int i = 0; i < 5; i++)
            CHECK_EQ(dialects[id][i], i);
        CHECK_EQ(dialects[id][5], id == 15 ? 5 : 6);
        CHECK_EQ(dialects[id][6], sixth[id]);
        CHECK_EQ(dialects[id][7], 15 - id / 2);
    }
}

/* Every binary16 magnitude beside every possible top of the block: each decision boundary of each
 * dialect is crossed by one unit in the last place. */
static void online_encoder_agrees_at_every_boundary(void **state)
{
    (void)state;
    for (uint32_t top = 1024; top < 2048; top += 32) {
        for (int drop = 0; drop <= 8; drop++) {
            for (uint32_t mantissa = 1024; mantissa < 2048; mantissa += 31) {
                float x[32];

                for (uint32_t i = 0; i < 31; i++)
                    x[i] = half_of(mantissa + i < 2048 ? mantissa + i : 2047, 16 - drop) *
                           (random_u32() & 1 ? 1 : -1);
                x[31] = half_of(top, 16);
                check_online(x, 32);
            }
        }
    }
}

/* votes between the two dialects of a pair: counts that differ by -1, 0 and 1 */
static void online_encoder_counts_votes_as_specified(void **state)
{
    (void)state;
    for (int round = 0; round < 20000; round++) {
        int n = 2 + (int)(random_u32() % 31);
        float x[32];

        for (int i = 0; i < n; i++)
            x[i] = (float)(ldexp(4 + random_u32() % 24, -1) * (random_u32() & 1 ? 1 : -1));
        check_online(x, n);
    }
}

static void online_encoder_agrees_on_any_numbers(void **state)
{
    (void)state;
    for (int round = 0; round < 100000; round++) {
        int n = 1 + (int)(random_u32() % 32), centre = (int)(random_u32() % 60) - 35;
        float x[32];

        for (int i = 0; i < n; i++) {
            int spread = (int)(random_u32() % 12);

            x[i] = random_u32() % 8 == 0 ? 0.0f * (random_u32() & 1 ? 1 : -1)
                                         : (float)ldexp(random_gaussian(), centre - spread);
        }
        check_online(x, n);
    }
}

static void online_encoder_saturates_what_binary16_cannot_hold(void **state)
{
    static const float odd[] = { 65504,     65519.996f, 65520, 1e30f, -1e30f, INFINITY,
                                 -INFINITY, 6.1035e-5f, 0,     -0.0f, 1e-40f, 6.103515e-5f };

    (void)state;
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        for (size_t j = 0; j < sizeof(odd) / sizeof(odd[0]); j++) {
            float x[3] = { odd[i], odd[j], 3 };

            check_online(x, 3);
        }
    }
    {
        float x[2] = { NAN, 1 }, top[2] = { 65504, 1 };
        uint8_t slot[2][MUR_BLOCK_MAX_BYTES];

        x[0] = fabsf(x[0]);
        CHECK_EQ(mur_block_encode(x, 2, 2, slot[0]), mur_block_encode(top, 2, 2, slot[1]));
        assert_memory_equal(slot[0], slot[1], mur_block_slot_bytes(2, 2));
    }
}

static void a_zero_block_has_dialect_14(void **state)
{
    static const uint8_t expected[MUR_BLOCK_MAX_BYTES] = { 36, 0x40, 0xe0, [20] = 0xe0 };
    float x[32] = { 0 };
    uint8_t slot[MUR_BLOCK_MAX_BYTES];

    (void)state;
    CHECK_EQ(mur_block_encode(x, 32, 2, slot), 37);
    assert_memory_equal(slot, expected, 37);
}

/* the parser gives back what the oracle's fields mean */
static void an_encoded_slot_parses_to_its_values(void **state)
{
    (void)state;
    for (int round = 0; round < 10000; round++) {
        uint32_t n = 1 + random_u32() % 32, terms = 1 + random_u32() % 2;
        float x[32], values[32];
        uint8_t slot[MUR_BLOCK_MAX_BYTES];
        uint32_t size;
        mur_block block;
        double rest[32];

        for (uint32_t i = 0; i < n; i++)
            rest[i] = oracle_half(x[i] = (float)random_gaussian());
        size = mur_block_encode(x, n, terms, slot);
        CHECK_EQ(mur_block_parse(slot, size, n, MUR_BLOCK_NO_HEADER, &block), size);
        CHECK_EQ(block.terms, terms);
        mur_block_values(&block, n, values);
        for (uint32_t t = 0; t < terms; t++) {
            int dialect, exponent, nibbles[32];

            oracle_term(rest, (int)n, &dialect, &exponent, nibbles);
            CHECK_EQ(block.term[t].exponent, exponent);
            for (uint32_t i = 0; i < n; i++) {
                int m = dialects[dialect][nibbles[i] & 7];

                CHECK_EQ(block.term[t].m[i], nibbles[i] & 8 ? -m : m);
                values[i] -= (float)ldexp(block.term[t].m[i], exponent - 16);
            }
            for (uint32_t i = n; i < 32; i++)
                CHECK_EQ(block.term[t].m[i], 0);
        }
        for (uint32_t i = 0; i < n; i++)
            CHECK(values[i] == 0);
    }
}

/* SPEC section 4: the lower block may lack H if the upper one is of kind B4 or B5 */
static void a_shared_header_is_that_of_the_block_above(void **state)
{
    static const uint8_t shared[17] = { 0x80 | 16, 0x7f };
    static const uint8_t empty[1] = { 0x80 };
    mur_block block;

    (void)state;
    CHECK_EQ(mur_block_parse(shared, 17, 32, 0x3a00 | MUR_BLOCK_B4 << 4, &block), 17);
    CHECK_EQ(block.terms, 1);
    CHECK_EQ(block.header, 0x3a00);
    CHECK_EQ(block.term[0].exponent, 0x3a00 >> 7 & 31);
    CHECK_EQ(block.term[0].m[0], -14);
    CHECK_EQ(block.term[0].m[1], 14);
    CHECK_EQ(mur_block_parse(shared, 16, 32, 0x3a00, &block), 0);
    CHECK_EQ(mur_block_parse(shared, 17, 31, 0x3a00, &block), 17);
    CHECK_EQ(mur_block_parse(shared, 17, 30, 0x3a00, &block), 0);
    CHECK_EQ(mur_block_parse(shared, 17, 32, MUR_BLOCK_NO_HEADER, &block), 0);
    CHECK_EQ(mur_block_parse(shared, 17, 32, 0x3a00 | MUR_BLOCK_R << 4, &block), 0);
    CHECK_EQ(mur_block_parse(shared, 17, 32, 0x3a00 | MUR_BLOCK_BM << 4, &block), 0);
    CHECK_EQ(mur_block_parse(empty, 1, 32, 0x3a00, &block), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_has_the_form_of_the_published_hardware),
        cmocka_unit_test(online_encoder_agrees_at_every_boundary),
        cmocka_unit_test(online_encoder_counts_votes_as_specified),
        cmocka_unit_test(online_encoder_agrees_on_any_numbers),
        cmocka_unit_test(online_encoder_saturates_what_binary16_cannot_hold),
        cmocka_unit_test(a_zero_block_has_dialect_14),
        cmocka_unit_test(an_encoded_slot_parses_to_its_values),
        cmocka_unit_test(a_shared_header_is_that_of_the_block_above),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
