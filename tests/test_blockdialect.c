/* BlockDialect blocks: the device's encoder against the specification put another way, in doubles,
 * the offline choice against trying everything, and the two decoders against each other. */
#include <math.h>

#include "../bench/mxfp4.h"
#include "chance.h"
#include "check.h"
#include "mur_block.h"
#include "quant/blockdialect.h"

static const uint8_t dialects[16][8] = {
#define MUR_DIALECT(id, ...) [id] = { __VA_ARGS__ },
#include "mur_dialect.def"
#undef MUR_DIALECT
};

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
            header = dialect << 12 | exponent << 7 | (terms == 2 && t == 0 ? 2 << 4 : 0);
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
    static const uint8_t expected[MUR_BLOCK_MAX_BYTES] = { 36, 0x20, 0xe0, [20] = 0xe0 };
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
    CHECK_EQ(mur_block_parse(empty, 1, 32, 0x3a00, &block), 0);
}

/* ---- every block there is ---- */

static unsigned codes_of(muc_bd_kind kind)
{
    return kind == MUC_BD_B5 ? 32 : 16;
}

/* some code of the kind for element i, every code at every place as salt goes on; zeros unsigned */
static uint8_t code_at(muc_bd_kind kind, unsigned i, unsigned salt)
{
    unsigned code = (i * 5 + salt) % codes_of(kind);

    return (uint8_t)(code == codes_of(kind) / 2 ? 0 : code);
}

static double value_of(const muc_bd_term *term, bool b5, unsigned i)
{
    unsigned code = term->code[i], half = b5 ? 16 : 8;
    double m = b5 ? code % 16 : dialects[term->dialect][code % 8];

    return ldexp(code >= half ? -m : m, term->exponent - 16);
}

static uint32_t header_of(const muc_bd_block *block)
{
    return block ? (uint32_t)(block->term[0].dialect << 12 | block->term[0].exponent << 7 |
                              (int)block->kind << 4)
                 : MUR_BLOCK_NO_HEADER;
}

/* mur_block_decode finds the same as the parser: values bit for bit, and nothing beyond them */
static void check_decoded(const uint8_t *bytes, size_t size, unsigned n, uint32_t above,
                          const mur_block *parsed)
{
    float values[MUR_BLOCK_ELEMS + 1], decoded[MUR_BLOCK_ELEMS + 1];
    mur_block again;
    uint32_t header = above;

    memset(values, 0xa5, sizeof(values));
    memset(decoded, 0xa5, sizeof(decoded));
    mur_block_values(parsed, n, values);
    CHECK_EQ(mur_block_decode(bytes, size, n, &header, decoded),
             mur_block_parse(bytes, size, n, above, &again));
    CHECK_EQ(header, parsed->header);
    assert_memory_equal(values, decoded, sizeof(values));
}

static void check_round_trip(const muc_bd_block *block, unsigned n, const muc_bd_block *above)
{
    uint8_t bytes[MUC_BD_MAX_BYTES], again[MUC_BD_MAX_BYTES];
    unsigned size = muc_bd_write(block, n, bytes);
    float values[MUR_BLOCK_ELEMS], ours[2][MUR_BLOCK_ELEMS];
    const char *reason;
    muc_bd_block back;
    mur_block device;

    CHECK_EQ(muc_bd_read(bytes, size, n, above, &back, &reason), size);
    CHECK_EQ(muc_bd_write(&back, n, again), size);
    assert_memory_equal(bytes, again, size);
    CHECK_EQ(mur_block_parse(bytes, size, n, header_of(above), &device), size);
    CHECK_EQ(device.header, header_of(block));
    mur_block_values(&device, n, values);
    check_decoded(bytes, size, n, header_of(above), &device);
    muc_bd_values(block, n, ours[0]);
    muc_bd_values(&back, n, ours[1]);
    for (unsigned i = 0; i < n; i++) {
        double value = value_of(block->term, block->kind == MUC_BD_B5, i);

        if (block->kind == MUC_BD_R)
            value = (float)(value + value_of(block->term + 1, false, i));
        CHECK((double)ours[0][i] == value);
        CHECK((double)ours[1][i] == value);
        CHECK((double)values[i] == value);
    }
}

/* with its own header, and where it may be without */
static void check_both_forms(muc_bd_block *block, unsigned n)
{
    muc_bd_block above = *block;

    check_round_trip(block, n, NULL);
    if (block->kind == MUC_BD_B4 || block->kind == MUC_BD_B5) {
        block->shared = true;
        check_round_trip(block, n, &above);
        block->shared = false;
    }
}

static void every_block_survives_writing_and_both_readings(void **state)
{
    static const muc_bd_kind kinds[] = { MUC_BD_B4, MUC_BD_B5, MUC_BD_R };

    (void)state;
    for (unsigned kind = 0; kind < 3; kind++) {
        for (unsigned at = 0; at < 16 * 32 * 32; at++) {
            muc_bd_block block = { .kind = kinds[kind] };
            unsigned n = at % 32 + 1, dialect = at / 1024, exponent = at / 32 % 32;

            if (block.kind == MUC_BD_B5 && dialect > 0)
                break;
            block.term[0].dialect = (uint8_t)dialect;
            block.term[0].exponent = (uint8_t)exponent;
            block.term[1].dialect = (uint8_t)(15 - dialect);
            block.term[1].exponent = (uint8_t)(at % 32);
            for (unsigned salt = 0; salt < codes_of(block.kind); salt++) {
                for (unsigned i = 0; i < n; i++) {
                    block.term[0].code[i] = code_at(block.kind, i, salt);
                    block.term[1].code[i] = code_at(MUC_BD_R, n - i, salt);
                }
                check_both_forms(&block, n);
            }
        }
    }
}

/* reads with both; they must agree on what is a block and on its values */
static unsigned read_below(const uint8_t *bytes, size_t size, unsigned n, const muc_bd_block *above)
{
    const char *reason;
    float values[MUR_BLOCK_ELEMS], ours[MUR_BLOCK_ELEMS];
    muc_bd_block block;
    mur_block device;
    unsigned used = muc_bd_read(bytes, size, n, above, &block, &reason);

    CHECK_EQ(mur_block_parse(bytes, size, n, header_of(above), &device), used);
    CHECK((used == 0) == (reason != NULL));
    if (used == 0) {
        uint32_t header = header_of(above);

        CHECK_EQ(mur_block_decode(bytes, size, n, &header, values), 0);
        return 0;
    }
    mur_block_values(&device, n, values);
    check_decoded(bytes, size, n, header_of(above), &device);
    muc_bd_values(&block, n, ours);
    assert_memory_equal(ours, values, n * sizeof(*values));
    return used;
}

static unsigned read_both(const uint8_t *bytes, size_t size, unsigned n)
{
    return read_below(bytes, size, n, NULL);
}

static void both_readers_agree_on_any_bytes(void **state)
{
    unsigned accepted = 0;

    (void)state;
    for (int round = 0; round < 1000000; round++) {
        static const uint8_t sizes[] = { 0, 18, 22, 36, 0x80 | 16, 0x80 | 20 };
        unsigned n = round % 2 ? 32 : 1 + random_u32() % 32;
        muc_bd_block above = { .kind = (muc_bd_kind)(random_u32() % MUC_BD_Z),
                               .term[0] = { .exponent = (uint8_t)(random_u32() % 32) } };
        uint8_t bytes[40];

        for (unsigned i = 0; i < sizeof(bytes); i++)
            bytes[i] = (uint8_t)random_u32();
        bytes[0] = round % 4 ? sizes[random_u32() % 6] : bytes[0] % 40;
        bytes[1] &= round % 8 ? 0xf0 : 0xff;
        accepted += read_below(bytes, random_u32() % 41, n, round % 3 ? &above : NULL) != 0;
    }
    CHECK(accepted > 50000 && accepted < 950000);
}

/* a valid block of n elements of random codes, for spoiling */
static unsigned some_block(muc_bd_kind kind, unsigned n, uint8_t *bytes)
{
    muc_bd_block block = { .kind = kind };

    for (unsigned t = 0; t < 2; t++) {
        block.term[t].dialect = (uint8_t)(kind == MUC_BD_B5 ? 0 : random_u32() % 16);
        block.term[t].exponent = (uint8_t)(random_u32() % 32);
        for (unsigned i = 0; i < n; i++)
            block.term[t].code[i] = code_at(kind, i, random_u32());
    }
    return muc_bd_write(&block, n, bytes);
}

static void a_block_of_any_other_size_is_refused(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 3; kind++) {
        for (unsigned n = 1; n <= 32; n++) {
            uint8_t bytes[256] = { 0 };
            unsigned size = some_block((muc_bd_kind)kind, n, bytes);

            CHECK_EQ(read_both(bytes, size, n), size);
            CHECK_EQ(read_both(bytes, sizeof(bytes), n), size);
            for (unsigned cut = 0; cut < size; cut++)
                CHECK_EQ(read_both(bytes, cut, n), 0);
            for (unsigned wrong = 1; wrong < 256; wrong++) {
                bytes[0] = (uint8_t)wrong;
                CHECK_EQ(read_both(bytes, sizeof(bytes), n), wrong == size - 1 ? size : 0);
            }
        }
    }
}

static void reserved_and_unused_bits_are_refused(void **state)
{
    (void)state;
    for (unsigned n = 1; n < 32; n++) {
        uint8_t bytes[MUC_BD_MAX_BYTES];
        unsigned size;

        for (unsigned kind = 0; kind < 3; kind++) {
            for (unsigned bit = 0; bit < 4; bit++) {
                size = some_block((muc_bd_kind)kind, n, bytes);
                bytes[1] |= (uint8_t)(1 << bit);
                CHECK_EQ(read_both(bytes, size, n), 0);
            }
        }
        for (unsigned kind = 3; kind < 8; kind++) {
            size = some_block(MUC_BD_B4, n, bytes);
            bytes[1] = (uint8_t)((bytes[1] & 0x80) | kind << 4);
            CHECK_EQ(read_both(bytes, size, n), 0);
        }
        size = some_block(MUC_BD_B5, n, bytes);
        bytes[2] |= 0x10; /* a dialect */
        CHECK_EQ(read_both(bytes, size, n), 0);
        size = some_block(MUC_BD_R, n, bytes);
        bytes[3 + (n + 1) / 2] |= 0x40; /* the second term is not a B4 */
        CHECK_EQ(read_both(bytes, size, n), 0);
        if (n % 8 != 0) { /* the bit after the plane's last */
            size = some_block(MUC_BD_B5, n, bytes);
            bytes[3 + n / 8] |= (uint8_t)(1 << n % 8);
            CHECK_EQ(read_both(bytes, size, n), 0);
        }
        if (n % 2 != 0) {
            size = some_block(MUC_BD_B4, n, bytes);
            bytes[size - 1] |= 0x10;
            CHECK_EQ(read_both(bytes, size, n), 0);
        }
    }
}

static void a_signed_zero_reads_as_zero(void **state)
{
    uint8_t b4[] = { 3, 0, 8, 0x98 }, b5[] = { 4, 0x90, 7, 3, 0x20 };
    mur_block block;

    (void)state;
    CHECK_EQ(read_both(b4, 4, 2), 4);
    CHECK_EQ(mur_block_parse(b4, 4, 2, MUR_BLOCK_NO_HEADER, &block), 4);
    CHECK_EQ(block.term[0].m[0], 0);
    CHECK_EQ(block.term[0].m[1], -1);
    CHECK_EQ(read_both(b5, 5, 2), 5);
    CHECK_EQ(mur_block_parse(b5, 5, 2, MUR_BLOCK_NO_HEADER, &block), 5);
    CHECK_EQ(block.term[0].m[0], 0);
    CHECK_EQ(block.term[0].m[1], -2);
}

/* ---- the offline choice ---- */

static double nearest_error(const double *values, int count, double w, double unit)
{
    double miss = fabs(w) - values[oracle_nearest(values, count, fabs(w) / unit)] * unit;

    return miss * miss;
}

static int oracle_exponent(const float *w, unsigned n)
{
    double max = 0;

    for (unsigned i = 0; i < n; i++)
        max = fmax(max, fabs(oracle_half((double)w[i])));
    return max > 0 && ilogb(max) + 13 > 0 ? ilogb(max) + 13 : 0;
}

/* the least error over every dialect and the three exponents, found by trying */
static double least_error(muc_bd_kind kind, const float *w, const float *importance, unsigned n)
{
    int rule = oracle_exponent(w, n);
    double best = INFINITY;

    for (int e = rule > 0 ? rule - 1 : 0; e <= rule + 1; e++) {
        for (int d = 0; d < (kind == MUC_BD_B5 ? 1 : 16); d++) {
            int count = kind == MUC_BD_B5 ? 16 : 8;
            double values[16], error = 0;

            for (int i = 0; i < count; i++)
                values[i] = kind == MUC_BD_B5 ? i : dialects[d][i];
            for (unsigned i = 0; i < n; i++)
                error += (double)importance[i] *
                         nearest_error(values, count, (double)w[i], ldexp(1, e - 16));
            best = fmin(best, error);
        }
    }
    return best;
}

static void offline_choice_has_the_least_error_of_all(void **state)
{
    static const muc_bd_kind kinds[] = { MUC_BD_B4, MUC_BD_B5 };

    (void)state;
    for (int round = 0; round < 3000; round++) {
        unsigned n = 1 + random_u32() % 32;
        int centre = (int)(random_u32() % 30) - 18;
        float w[32], importance[32];

        for (unsigned i = 0; i < n; i++) {
            w[i] = (float)ldexp(round % 3 ? random_gaussian() : random_student4(), centre);
            if (!(fabsf(w[i]) <= MUC_BD_MAX_WEIGHT))
                w[i] = MUC_BD_MAX_WEIGHT;
            if (round % 5 == 0)
                w[i] = (float)ldexp(nearbyint(ldexp((double)w[i], 3 - centre)), centre - 3);
            importance[i] = round % 2 ? 1 : (float)random_unit();
        }
        for (unsigned k = 0; k < 2; k++) {
            muc_bd_rule rule = { 1u << kinds[k], 0 };
            double best = least_error(kinds[k], w, importance, n), error;
            muc_bd_column column;

            muc_bd_choose(&rule, w, round % 2 ? NULL : importance, n, &column);
            CHECK(column.block[0].kind == kinds[k] || column.block[0].kind == MUC_BD_Z);
            error = muc_bd_error(&column.block[0], w, importance, n, NULL);
            CHECK(fabs(error - best) <= 1e-9 * best);
        }
    }
}

/* exact ties: which grid is taken when several are as good is fixed */
static void equal_errors_go_to_the_lowest(void **state)
{
    const float steps[4] = { 4, 3, 2, 1 };
    const muc_bd_rule b4 = { 1 << MUC_BD_B4, 0 };
    muc_bd_column column;
    muc_bd_block block = { .kind = MUC_BD_B4, .term[0] = { .dialect = 10, .exponent = 16 } };

    (void)state;
    /* 8 6 4 2 in units of exponent 15, 4 3 2 1 in those of 16; dialect 5 is the first with an 8 */
    muc_bd_choose(&b4, steps, NULL, 4, &column);
    CHECK_EQ(column.block[0].term[0].exponent, 15);
    CHECK_EQ(column.block[0].term[0].dialect, 5);
    CHECK(muc_bd_round(&block, 0, 9.5f) == 10); /* between 9 and 10: up */
    CHECK(muc_bd_round(&block, 0, -9.5f) == -10);
    CHECK(muc_bd_round(&block, 0, -0.4f) == 0);
    CHECK_EQ(block.term[0].code[0], 0);
}

/* zeros, what is too small for any grid, and what does not count */
static void a_block_without_a_better_grid_is_zero(void **state)
{
    const float nothing[4] = { 0, -0.0f, 0x1p-18f, -0x1p-17f }, some[4] = { 0, 0, 0, 0x1.1p-17f };
    const float weights[4] = { 1, 2, 3, 4 }, importance[4] = { 0 };
    const muc_bd_rule rules[] = { { 1 << MUC_BD_B4, 0 }, { MUC_BD_ALL_KINDS, 0 } };
    muc_bd_column column;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        muc_bd_choose(&rules[i], nothing, NULL, 4, &column);
        CHECK_EQ(column.block[0].kind, MUC_BD_Z);
        muc_bd_choose(&rules[i], weights, importance, 4, &column);
        CHECK_EQ(column.block[0].kind, MUC_BD_Z);
        muc_bd_choose(&rules[i], some, NULL, 4, &column);
        CHECK(column.block[0].kind != MUC_BD_Z);
    }
}

static unsigned bytes_of(const muc_bd_column *column)
{
    uint8_t bytes[MUC_BD_MAX_BYTES];
    unsigned total = 0;

    for (unsigned b = 0; b < muc_bd_block_count(column->rows); b++)
        total += muc_bd_write(&column->block[b], muc_bd_block_elements(column->rows, b), bytes);
    return total;
}

static double error_of(const muc_bd_column *column, const float *w)
{
    double total = 0;

    for (unsigned b = 0; b < muc_bd_block_count(column->rows); b++)
        total += muc_bd_error(&column->block[b], w + 32 * b, NULL,
                              muc_bd_block_elements(column->rows, b), NULL);
    return total;
}

static void some_column(float *w, unsigned rows)
{
    bool empty[2] = { random_u32() % 16 == 0, random_u32() % 16 == 0 };

    for (unsigned i = 0; i < rows; i++) {
        w[i] = random_u32() % 4 ? (float)ldexp(random_student4(), i < 32 ? 0 : -1) : 0;
        w[i] = empty[i / 32] ? 0 : w[i];
    }
}

static unsigned offers_of(uint32_t kinds, const float *w, unsigned rows,
                          muc_bd_offer offers[MUC_BD_MAX_OFFERS])
{
    muc_bd_offers found;

    muc_bd_offer_columns(kinds, &w, 1, NULL, rows, &found);
    memcpy(offers, found.offer, found.count * sizeof(*offers));
    return found.count;
}

static void prices_say_what_will_be_chosen(void **state)
{
    (void)state;
    for (int round = 0; round < 20000; round++) {
        uint32_t kinds =
            (random_u32() & MUC_BD_ALL_KINDS) | 1u << random_u32() % 3; /* one is there */
        unsigned rows = round % 2 ? 64 : 1 + random_u32() % 64, count;
        muc_bd_offer offers[MUC_BD_MAX_OFFERS];
        float w[64];

        some_column(w, rows);
        count = offers_of(kinds, w, rows, offers);
        CHECK(count >= 1 && offers[0].price == MUC_BD_PRICES);
        for (unsigned i = 0; i < count; i++) {
            muc_bd_rule rule = { kinds, offers[i].price };
            muc_bd_column column;

            CHECK(i == 0 || (offers[i].bytes > offers[i - 1].bytes &&
                             offers[i].price <= offers[i - 1].price));
            if (i + 1 < count && offers[i + 1].price == offers[i].price)
                continue;
            muc_bd_choose(&rule, w, NULL, rows, &column);
            CHECK_EQ(bytes_of(&column), offers[i].bytes);
        }
    }
}

/* what a column costs at a price */
static double cost_of(const muc_bd_column *column, const float *w, double price)
{
    return error_of(column, w) + price * bytes_of(column);
}

/* the least cost over all pairs of kinds, each on its own best grid */
static double least_cost_apart(const float *w, double price)
{
    double least = INFINITY;

    for (unsigned pair = 0; pair < 9; pair++) {
        muc_bd_column both = { .rows = 64 }, half;

        for (unsigned b = 0; b < 2; b++) {
            muc_bd_rule alone = { 1u << (b ? pair / 3 : pair % 3), 0 };

            muc_bd_choose(&alone, w + 32 * b, NULL, 32, &half);
            both.block[b] = half.block[0];
        }
        least = fmin(least, cost_of(&both, w, price));
    }
    return least;
}

/* the least cost over all headers that both blocks may have */
static double least_cost_shared(const float *w, double price)
{
    int rule[2] = { oracle_exponent(w, 32), oracle_exponent(w + 32, 32) };
    double least = INFINITY;

    for (int exponent = rule[0] - 1; exponent <= rule[0] + 1; exponent++) {
        for (int grid = 0; grid < 17 && abs(exponent - rule[1]) <= 1; grid++) {
            muc_bd_column both = { .rows = 64 };

            for (unsigned i = 0; i < 64; i++) {
                muc_bd_block *block = &both.block[i / 32];

                block->kind = grid < 16 ? MUC_BD_B4 : MUC_BD_B5;
                block->term[0].dialect = (uint8_t)(grid % 16);
                block->term[0].exponent = (uint8_t)exponent;
                muc_bd_round(block, i % 32, w[i]);
            }
            muc_bd_pack(&both, MUC_BD_SHARING);
            least = fmin(least, cost_of(&both, w, price));
        }
    }
    return least;
}

/* prices are steps of 1 in 2048, hence the tolerance */
static void the_choice_is_the_cheapest_at_its_price(void **state)
{
    (void)state;
    for (int round = 0; round < 3000; round++) {
        muc_bd_offer offers[MUC_BD_MAX_OFFERS];
        muc_bd_rule rule = { MUC_BD_ALL_KINDS, 0 };
        muc_bd_column chosen;
        float w[64], price;
        uint32_t bits;

        some_column(w, 64);
        bits = random_u32() % offers_of(rule.kinds, w, 64, offers);
        rule.price = offers[bits].price;
        if (rule.price == MUC_BD_PRICES)
            continue;
        bits = rule.price << 12;
        memcpy(&price, &bits, sizeof(price));
        muc_bd_choose(&rule, w, NULL, 64, &chosen);
        CHECK(cost_of(&chosen, w, (double)price) <=
              1.0005 *
                  fmin(least_cost_apart(w, (double)price), least_cost_shared(w, (double)price)));
    }
}

static void equal_headers_are_written_once(void **state)
{
    muc_bd_column column = { .rows = 64 };

    (void)state;
    for (unsigned i = 0; i < 64; i++)
        column.block[i / 32].term[0].code[i % 32] = (uint8_t)(1 + i % 7);
    muc_bd_pack(&column, MUC_BD_ALL_KINDS);
    CHECK(!column.block[0].shared && column.block[1].shared);
    CHECK_EQ(bytes_of(&column), 19 + 17);
    muc_bd_pack(&column, MUC_BD_ALL_KINDS & ~(uint32_t)MUC_BD_SHARING);
    CHECK_EQ(bytes_of(&column), 19 + 19);
    column.block[1].term[0].exponent = 1;
    muc_bd_pack(&column, MUC_BD_ALL_KINDS);
    CHECK_EQ(bytes_of(&column), 19 + 19);
    column.block[1].term[0].exponent = 0;
    for (unsigned i = 0; i < 32; i++)
        column.block[1].term[0].code[i] = 0;
    muc_bd_pack(&column, MUC_BD_ALL_KINDS);
    CHECK_EQ(bytes_of(&column), 19 + 1);
}

/* ---- signal to noise ---- */

enum { CODECS = 5, SNR_BLOCKS = 20000 };
static const char *const codec_names[CODECS] = { "least squares", "two-stage", "two terms",
                                                 "two terms, least squares", "MXFP4" };

static void decode_by(int codec, const float *x, float *y)
{
    const muc_bd_rule rule = { codec == 3 ? 1 << MUC_BD_R : 1 << MUC_BD_B4, 0 };
    uint8_t bytes[MUR_BLOCK_MAX_BYTES];
    muc_bd_column column;
    mur_block device;

    switch (codec) {
    case 0:
    case 3:
        muc_bd_choose(&rule, x, NULL, 32, &column);
        muc_bd_values(&column.block[0], 32, y);
        break;
    case 1:
    case 2:
        mur_block_encode(x, 32, (uint32_t)codec, bytes);
        mur_block_parse(bytes, sizeof(bytes), 32, MUR_BLOCK_NO_HEADER, &device);
        mur_block_values(&device, 32, y);
        break;
    default:
        memcpy(y, x, 32 * sizeof(*y));
        mxfp4_round(y, 32);
    }
}

static void check_snr(const char *what, double (*draw)(void), const double floors[CODECS])
{
    double signal = 0, noise[CODECS] = { 0 };

    for (int b = 0; b < SNR_BLOCKS; b++) {
        float x[32], y[32];

        for (int i = 0; i < 32; i++) {
            x[i] = (float)(0.02 * draw());
            signal += (double)x[i] * (double)x[i];
        }
        for (int codec = 0; codec < CODECS; codec++) {
            decode_by(codec, x, y);
            for (int i = 0; i < 32; i++)
                noise[codec] += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        }
    }
    for (int codec = 0; codec < CODECS; codec++) {
        double db = 10 * log10(signal / noise[codec]);

        print_message("# %s, %s: %.2f dB\n", what, codec_names[codec], db);
        CHECK(db >= floors[codec]);
    }
    CHECK(noise[4] > 1.2 * noise[1]); /* the yardstick is behind even the online rule */
}

static void signal_to_noise_is_as_published(void **state)
{
    (void)state;
    check_snr("Gaussian", random_gaussian, (double[CODECS]){ 20.5, 20.1, 39, 41, 18.5 });
    check_snr("Laplace", random_laplace, (double[CODECS]){ 20.0, 19.5, 39, 40.5, 17.5 });
    check_snr("Student's t(4)", random_student4, (double[CODECS]){ 19.5, 19.0, 38.5, 40, 17 });
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
        cmocka_unit_test(every_block_survives_writing_and_both_readings),
        cmocka_unit_test(both_readers_agree_on_any_bytes),
        cmocka_unit_test(a_block_of_any_other_size_is_refused),
        cmocka_unit_test(reserved_and_unused_bits_are_refused),
        cmocka_unit_test(a_signed_zero_reads_as_zero),
        cmocka_unit_test(offline_choice_has_the_least_error_of_all),
        cmocka_unit_test(equal_errors_go_to_the_lowest),
        cmocka_unit_test(a_block_without_a_better_grid_is_zero),
        cmocka_unit_test(prices_say_what_will_be_chosen),
        cmocka_unit_test(the_choice_is_the_cheapest_at_its_price),
        cmocka_unit_test(equal_headers_are_written_once),
        cmocka_unit_test(signal_to_noise_is_as_published),
        cmocka_unit_test(a_shared_header_is_that_of_the_block_above),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
