/* The µThinker simulator against SPEC.md put another way: words packed by hand, blocks read bit by
 * bit, arithmetic in doubles rounded after each operation. */
#include <math.h>

#include "sim_bench.h"

/* ---- blocks, bit by bit ---- */

static const int magnitudes[16][8] = {
#define MUR_DIALECT(id, ...) [id] = { __VA_ARGS__ },
#include "mur_dialect.def"
#undef MUR_DIALECT
};

static uint32_t bits_at(const uint8_t *p, uint32_t at, uint32_t count)
{
    uint32_t value = 0;

    for (uint32_t i = 0; i < count; i++)
        value |= (uint32_t)(p[(at + i) / 8] >> ((at + i) % 8) & 1) << i;
    return value;
}

typedef struct oracle_block {
    int terms, e[2], m[2][32];
    uint32_t header; /* of its first term */
} oracle_block;

/* one term whose payload is p; returns the payload's bytes */
static uint32_t oracle_term(const uint8_t *p, uint32_t header, uint32_t n, int *m)
{
    const int *values = magnitudes[header >> 12];
    int b5 = (header >> 4 & 7) == 1;
    uint32_t plane = 8 * ((n + 7) / 8);

    for (uint32_t i = 0; i < n; i++) {
        uint32_t nibble = bits_at(p, 4 * i, 4);

        if (b5)
            m[i] = (bits_at(p, i, 1) ? -1 : 1) * (int)bits_at(p, plane + 4 * i, 4);
        else
            m[i] = (nibble & 8 ? -1 : 1) * values[nibble & 7];
    }
    return (b5 ? plane / 8 : 0) + (n + 1) / 2;
}

/* one block under `above` (NULL: it is the first of its column); returns its end */
static const uint8_t *oracle_read(const uint8_t *p, uint32_t n, const oracle_block *above,
                                  oracle_block *out)
{
    const uint8_t *next = p + 1 + (p[0] & 127);
    int shared = p[0] >> 7;

    memset(out, 0, sizeof(*out));
    for (p++; p < next; out->terms++) {
        uint32_t header = shared ? above->header : p[0] | (uint32_t)p[1] << 8;

        if (out->terms == 0)
            out->header = header;
        out->e[out->terms] = (int)(header >> 7 & 31) - 16;
        p += shared ? 0 : 2;
        p += oracle_term(p, header, n, out->m[out->terms]);
    }
    return next;
}

/* the one or two blocks of a column of a tile */
static const uint8_t *oracle_column(const uint8_t *p, uint32_t rows, oracle_block out[2])
{
    p = oracle_read(p, rows < 32 ? rows : 32, NULL, &out[0]);
    return rows > 32 ? oracle_read(p, rows - 32, &out[0], &out[1]) : p;
}

static uint8_t *random_nibbles(uint8_t *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        p[i / 2] |= (uint8_t)(random_below(16) << 4 * (i % 2));
    return p + (n + 1) / 2;
}

static uint8_t *random_header(uint8_t *p, uint32_t kind)
{
    uint32_t dialect = kind == 1 ? 0 : random_below(16), exponent = 10 + random_below(12);
    uint32_t header = dialect << 12 | exponent << 7 | kind << 4;

    *p++ = (uint8_t)header;
    *p++ = (uint8_t)(header >> 8);
    return p;
}

/* a random weight block of any kind, all its bits valid; returns its end */
static uint8_t *random_block(uint8_t *p, uint32_t n)
{
    uint32_t kind = random_below(4), plane = (n + 7) / 8;
    uint8_t *size = p++;

    if (kind == 3) { /* Z */
        *size = 0;
        return p;
    }
    memset(p, 0, 36);
    p = random_header(p, kind);
    if (kind == 1) {
        for (uint32_t i = 0; i < n; i++)
            p[i / 8] |= (uint8_t)(random_below(2) << i % 8);
        p += plane;
    }
    p = random_nibbles(p, n);
    if (kind == 2)
        p = random_nibbles(random_header(p, 0), n);
    *size = (uint8_t)(p - size - 1);
    return p;
}

/* the one or two blocks of a column of a tile; the lower one shares its header where it may */
static uint8_t *random_column(uint8_t *p, uint32_t rows)
{
    uint8_t *lower = random_block(p, rows < 32 ? rows : 32), *end;
    uint32_t kind;

    if (rows <= 32)
        return lower;
    end = random_block(lower, rows - 32);
    kind = p[1] >> 4 & 7;
    if (p[0] != 0 && kind < 2 && lower[0] != 0 && (lower[1] >> 4 & 7) == kind) {
        memmove(lower + 1, lower + 3, (size_t)(end - lower - 3));
        lower[0] = (uint8_t)((lower[0] - 2) | 0x80);
        end -= 2;
    }
    return end;
}

/* ---- arithmetic ---- */

static void the_root_is_correctly_rounded_at_every_exponent(void **state)
{
    (void)state;
    for (uint32_t exponent = 0; exponent < 255; exponent++)
        for (uint32_t i = 0; i < 4000; i++) {
            uint32_t bits = exponent << 23 | (i < 16   ? i
                                              : i < 32 ? 0x7fffffu - (i - 16)
                                                       : random_u32() & 0x7fffffu);
            float x;

            memcpy(&x, &bits, sizeof(x));
            CHECK_EQ(bits_of(mur_sim_sqrt(x)), bits_of(sqrtf(x)));
        }
    CHECK_EQ(bits_of(mur_sim_sqrt(-0.0f)), 0x80000000u);
    CHECK_EQ(bits_of(mur_sim_sqrt(INFINITY)), 0x7f800000u);
    CHECK(isnan(mur_sim_sqrt(-1.0f)));
    CHECK(isnan(mur_sim_sqrt(NAN)));
}

/* 3e-7, and what the one rounding of x log2(e) costs: half a unit of it, and of the constant */
static void the_exponential_is_as_near_to_libm_as_its_formula_allows(void **state)
{
    (void)state;
    for (int i = 0; i <= 8000000; i++) {
        float x = -(float)i / 100000.0f;
        double error = fabs((double)mur_sim_exp(x) / exp((double)x) - 1);

        if (error > 3e-7 + 9e-8 * fabs((double)x))
            fail_msg("exp(%g): relative error %g", (double)x, error);
    }
    CHECK_EQ(bits_of(mur_sim_exp(0.0f)), 0x3f800000u);
    CHECK_EQ(bits_of(mur_sim_exp(-0.0f)), 0x3f800000u);
    CHECK(mur_sim_exp(-80.0f) > 0);
    CHECK_EQ(bits_of(mur_sim_exp(nextafterf(-80.0f, -100.0f))), 0);
    CHECK_EQ(bits_of(mur_sim_exp(-INFINITY)), 0);
}

/* ---- DMA and CPU ---- */

static void ld_and_st_copy_bytes(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < REGION_BYTES; i++)
        b.wgts[i] = (uint8_t)random_u32();
    run(ld(W1, 100, WGTS, 7, 1000));
    CHECK_EQ(memcmp(b.w1 + 100, b.wgts + 7, 1000), 0);
    CHECK_EQ(b.w1[99] | b.w1[1100], 0);
    run(ld(GB, 4 * GB_WORDS - 8, WGTS, REGION_BYTES - 8, 8));
    CHECK_EQ(memcmp(&b.gb[GB_WORDS - 2], b.wgts + REGION_BYTES - 8, 8), 0);
    run(st(W1, 100, KV, 3, 500));
    CHECK_EQ(memcmp(b.kv + 3, b.wgts + 7, 500), 0);
    CHECK_EQ(b.kv[2] | b.kv[503], 0);
    run(st(W1, 100, IO, 0, 0));
    CHECK_EQ(b.io[0], 0);
    CHECK_EQ(b.sim.loaded_bytes[WGTS], 1008);
    CHECK_EQ(b.sim.stored_bytes[KV], 500);
    CHECK_EQ(b.sim.executed[0x01], 2);
}

/* a sequence of random blocks at wgts + 16; its columns' values */
static uint32_t random_sequence(uint32_t k, uint32_t cols, float *values)
{
    uint32_t tiles = (cols + 7) / 8 * ((k + 63) / 64), tile = 0;
    uint8_t *sequence = b.wgts + 16, *p = sequence + 4 * (tiles + 1);

    for (uint32_t c = 0; c < cols; c += 8)
        for (uint32_t at = 0; at < k; at += 64, tile++) {
            uint32_t offset = (uint32_t)(p - sequence);

            memcpy(sequence + 4 * tile, &offset, 4);
            for (uint32_t col = c; col < cols && col < c + 8; col++) {
                uint32_t rows = k - at < 64 ? k - at : 64;
                oracle_block blocks[2];
                uint8_t *end = random_column(p, rows);

                CHECK(oracle_column(p, rows, blocks) == end);
                p = end;
                for (uint32_t j = 0; j < rows; j++) {
                    const oracle_block *block = &blocks[j / 32];
                    double first = ldexp(block->m[0][j % 32], block->e[0]);

                    values[col * k + at + j] =
                        (float)(first + ldexp(block->m[1][j % 32], block->e[1]));
                }
            }
        }
    memcpy(sequence + 4 * tile, &(uint32_t){ (uint32_t)(p - sequence) }, 4);
    CHECK(p <= b.wgts + REGION_BYTES);
    return (uint32_t)(p - b.wgts);
}

static void embed_decodes_the_columns_of_its_tokens(void **state)
{
    static const uint32_t tokens[3] = { 20, 0, 13 };
    static float values[21 * 100];

    (void)state;
    random_sequence(100, 21, values);
    memcpy(b.io, tokens, sizeof(tokens));
    run(embed(16, 100, 3, 21, 64));
    for (uint32_t i = 0; i < 3; i++)
        same_floats((const float *)(const void *)(b.io + 64 + 400 * i), values + 100 * tokens[i],
                    100);
    CHECK_EQ(b.sim.completed[MUR_CPU], 1);
}

/* ---- MM ---- */

/* 1 * 3 + -2 * 4 = -5, times 2^(17 - 16) * 2^(15 - 16), upon 0.5 */
static void mm_computes_a_product_worked_out_by_hand(void **state)
{
    static const uint8_t left[4] = { 3, 0x80, 0xe8, 0xa1 };  /* dialect 14, E 17, B4: 1, -2 */
    static const uint8_t right[4] = { 3, 0x80, 0xe7, 0x43 }; /* dialect 14, E 15, B4: 3, 4 */
    static const uint32_t by_hand[7] = { 0x00000010, 0x00100008, 0x00100010, 0x0d100004,
                                         0x00000005, 0x00010004, 0x00000002 };

    (void)state;
    memcpy(b.i1 + 8, left, 4);
    memcpy(b.w0 + 16, right, 4);
    b.gb[5] = 0.5f;
    CHECK_EQ(b.hal.accel(b.hal.arg, by_hand), MUR_OK);
    assert_true(b.gb[5] == -4.5f);
    assert_true(b.gb[4] == 0 && b.gb[6] == 0);
    CHECK_EQ(b.sim.macs, 2);
}

/* random operands for x in I0 and W1; returns wlen */
static uint32_t random_operands(mm x)
{
    uint8_t *p = b.w1 + x.waddr;

    for (uint32_t r = 0; r < x.rows; r++) {
        float values[256];

        for (uint32_t i = 0; i < x.k; i++)
            values[i] = random_float(random_below(8) ? 2.0f : 0.01f);
        slots(values, x.k, x.terms, b.i0 + x.saddr + r * x.spitch);
    }
    for (uint32_t c = 0; c < x.cols; c += 8)
        for (uint32_t at = 0; at < x.k; at += 64)
            for (uint32_t col = c; col < x.cols && col < c + 8; col++)
                p = random_column(p, x.k - at < 64 ? x.k - at : 64);
    CHECK(p <= b.w1 + W_BYTES);
    return (uint32_t)(p - b.w1) - x.waddr;
}

/* acc plus the product of two blocks of n elements */
static float oracle_product(float acc, const oracle_block *weight, const oracle_block *left,
                            uint32_t n)
{
    for (int t = 0; t < weight->terms; t++)
        for (int u = 0; u < left->terms; u++) {
            int sum = 0;

            for (uint32_t j = 0; j < n; j++)
                sum += weight->m[t][j] * left->m[u][j];
            acc = add(acc, (float)ldexp(sum, weight->e[t] + left->e[u]));
        }
    return acc;
}

/* out[r][c], from its old value in GB */
static void oracle_mm(mm x, float *out)
{
    const uint8_t *p = b.w1 + x.waddr;
    oracle_block weight[2], left;

    for (uint32_t r = 0; r < x.rows; r++)
        for (uint32_t c = 0; c < x.cols; c++)
            out[r * x.cols + c] = x.acc ? b.gb[x.daddr + r * x.dpitch + c] : 0;
    for (uint32_t c = 0; c < x.cols; c += 8)
        for (uint32_t at = 0; at < x.k; at += 64)
            for (uint32_t col = c; col < x.cols && col < c + 8; col++) {
                p = oracle_column(p, x.k - at < 64 ? x.k - at : 64, weight);
                for (uint32_t r = 0; r < x.rows; r++)
                    for (uint32_t i = at; i < x.k && i < at + 64; i += 32) {
                        uint32_t n = x.k - i < 32 ? x.k - i : 32;
                        float *acc = &out[r * x.cols + col];

                        oracle_read(b.i0 + x.saddr + r * x.spitch + slots_size(i, x.terms), n, NULL,
                                    &left);
                        *acc = oracle_product(*acc, &weight[(i - at) / 32], &left, n);
                    }
            }
}

static void mm_equals_the_specification_on_all_shapes(void **state)
{
    static const uint32_t depths[] = { 1, 7, 8, 31, 32, 33, 63, 64, 65, 100, 128, 172 };
    static float expected[70 * 20];
    uint32_t products = 0;

    (void)state;
    for (uint32_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++)
        for (uint32_t cols = 1; cols <= 20; cols += 1 + random_below(4)) {
            mm x = { .src = I0, .wsrc = W1, .k = depths[i], .cols = cols };

            x.terms = 1 + random_below(2);
            x.rows = cols == 1 ? 70 : 1 + random_below(35);
            x.spitch = slots_size(x.k, x.terms) + random_below(3);
            while (x.rows * x.spitch + 5 > I_BYTES)
                x.rows /= 2;
            x.saddr = random_below(5);
            x.waddr = random_below(100);
            x.daddr = random_below(100);
            x.dpitch = cols + random_below(5);
            x.acc = random_below(2);
            x.wlen = random_operands(x);
            fill_gb(1);
            oracle_mm(x, expected);
            run(mm_words(x));
            for (uint32_t r = 0; r < x.rows; r++)
                same_floats(b.gb + x.daddr + r * x.dpitch, expected + r * cols, cols);
            products++;
        }
    CHECK(products > 60);
}

/* out, and why it stopped, with `product` or without */
static const char *bent_mm(mm x, muc_fast_product *product, float *out)
{
    start(MUR_SIM_EAGER, 1);
    muc_fast_product_use(product, &b.sim);
    submit(mm_words(x));
    memcpy(out, b.gb + x.daddr, 4 * x.rows * x.dpitch);
    return b.sim.fault.reason;
}

/* a byte of either operand is another one, or the last ones are missing */
static void a_bent_operand_is_refused_by_both_products_or_by_none(void **state)
{
    static float expected[8 * 24], found[8 * 24];
    uint32_t refused = 0;

    (void)state;
    for (uint32_t i = 0; i < 4000; i++) {
        mm x = { .src = I0, .wsrc = W1, .rows = 1 + random_below(3), .cols = 1 + random_below(20) };
        const char *reason;

        x.k = 32 + random_below(100);
        x.terms = 1 + random_below(2);
        x.spitch = slots_size(x.k, x.terms);
        x.dpitch = x.cols;
        x.wlen = random_operands(x);
        if (i % 4 == 0)
            b.i0[random_below(x.rows * x.spitch)] ^= (uint8_t)(1u << random_below(8));
        else if (i % 4 == 1)
            x.wlen -= 1 + random_below(40);
        else
            b.w1[random_below(x.wlen)] ^= (uint8_t)(1u << random_below(8));
        reason = bent_mm(x, NULL, expected);
        CHECK(bent_mm(x, fast, found) == reason);
        refused += reason != NULL;
        if (!reason)
            same_floats(found, expected, x.rows * x.cols);
    }
    CHECK(refused > 1000 && refused < 3500);
}

/* 32 floats of any bits, or of about the same size */
static void random_floats(float *x)
{
    uint32_t way = random_below(4), exponent = random_below(256);

    for (uint32_t i = 0; i < 32; i++) {
        uint32_t bits = random_u32() ^ random_u32() << 7;

        if (way > 0)
            bits = (bits & 0x807fffffu) | ((exponent + random_below(way * 3)) & 255u) << 23;
        if (random_below(16) == 0)
            bits &= 0x80000000u | (random_below(2) ? 0xffffe000u : 0);
        memcpy(x + i, &bits, sizeof(bits));
    }
}

static void the_fast_encoder_gives_the_runtimes_slots(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 200000; i++) {
        uint8_t expected[40] = { 0 }, found[40] = { 0 };
        uint32_t n = i % 2 ? 32 : 1 + random_below(32), terms = 1 + random_below(2);
        float x[32];

        random_floats(x);
        CHECK_EQ(b.sim.encode(x, n, terms, found), mur_block_encode(x, n, terms, expected));
        CHECK(memcmp(found, expected, sizeof(found)) == 0);
    }
}

static void the_fast_exponentials_are_the_simulators(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t n = 1 + random_below(32);
        float found[32], expected[32];

        random_floats(found);
        for (uint32_t j = 0; j < n; j++)
            found[j] = i % 2 ? -fabsf(found[j]) : random_float(100) - 100;
        memcpy(expected, found, sizeof(found));
        b.sim.exps(found, n);
        mur_sim_exps(expected, n);
        CHECK(memcmp(found, expected, 4 * n) == 0);
    }
}

/* ---- vector instructions ---- */

static void norm_normalizes_and_quantizes_rows(void **state)
{
    (void)state;
    for (uint32_t k = 1; k <= 172; k += k < 64 ? 21 : 36) {
        norm x = { .saddr = 10,
                   .spitch = k + 3,
                   .rows = 3,
                   .k = k,
                   .gaddr = 4000,
                   .dst = I1,
                   .daddr = 7,
                   .terms = 1 + k % 2,
                   .epsilon = 1e-5f };
        uint8_t expected[1024], *end = expected;

        fill_gb(k % 3 ? 4.0f : 1e-20f); /* tiny: squares are subnormal or zero, epsilon rules */
        for (uint32_t r = 0; r < x.rows; r++) {
            const float *row = b.gb + x.saddr + r * x.spitch;
            float y[172], sum = 0, u;

            for (uint32_t i = 0; i < k; i++)
                sum = add(sum, mul(row[i], row[i]));
            u = quotient(1, sqrtf(add(quotient(sum, (float)k), x.epsilon)));
            for (uint32_t i = 0; i < k; i++)
                y[i] = mul(mul(row[i], u), b.gb[x.gaddr + i]);
            end = slots(y, k, x.terms, end);
        }
        run(norm_words(x));
        assert_memory_equal(b.i1 + x.daddr, expected, (size_t)(end - expected));
    }
}

static void rope_rotates_each_head_by_its_rows_angles(void **state)
{
    rope x = { .saddr = 5, .spitch = 100, .rows = 4, .heads = 3, .k = 32, .taddr = 1000 };
    static float expected[GB_WORDS];

    (void)state;
    fill_gb(3);
    memcpy(expected, b.gb, sizeof(expected));
    for (uint32_t r = 0; r < x.rows; r++)
        for (uint32_t h = 0; h < x.heads; h++)
            for (uint32_t i = 0; i < 16; i++) {
                uint32_t low = x.saddr + r * x.spitch + h * x.k + i, high = low + 16;
                float c = b.gb[x.taddr + r * x.k + i], s = b.gb[x.taddr + r * x.k + 16 + i];

                expected[low] = add(mul(b.gb[low], c), -mul(b.gb[high], s));
                expected[high] = add(mul(b.gb[high], c), mul(b.gb[low], s));
            }
    run(rope_words(x));
    same_floats(b.gb, expected, GB_WORDS);
}

static void quant_and_qpack_write_the_slots_of_rows_and_of_columns(void **state)
{
    quant q = { .saddr = 9,
                .spitch = 130,
                .rows = 5,
                .k = 100,
                .dst = W1,
                .daddr = 3,
                .dpitch = 240,
                .terms = 2 };
    uint8_t expected[40 * 64], *end = expected;

    (void)state;
    fill_gb(5);
    run(quant_words(q));
    for (uint32_t r = 0; r < q.rows; r++) {
        uint32_t size = (uint32_t)(slots(b.gb + 9 + r * q.spitch, 100, 2, expected) - expected);

        assert_memory_equal(b.w1 + 3 + r * q.dpitch, expected, size);
    }
    for (uint32_t rows = 1; rows <= 64; rows += 9) {
        qpack p = { .saddr = 2,
                    .spitch = 50,
                    .rows = rows,
                    .cols = 11,
                    .dst = W0,
                    .daddr = 1,
                    .terms = 1 + rows % 2 };

        end = expected;
        for (uint32_t c = 0; c < p.cols; c++) {
            float column[64];

            for (uint32_t r = 0; r < rows; r++)
                column[r] = b.gb[p.saddr + r * p.spitch + c];
            end = slots(column, rows, p.terms, end);
        }
        run(qpack_words(p));
        assert_memory_equal(b.w0 + 1, expected, (size_t)(end - expected));
    }
}

static void oracle_smax_row(smax x, uint32_t r, float *gb, uint8_t *out)
{
    uint32_t i = r / x.group, v = x.valid + i - x.skip;
    float *state = gb + x.taddr + 2 * r, *o = gb + x.oaddr + x.k * r, s[64], max, sum = 0, a;

    if (i < x.skip)
        return;
    v = v > 64 ? 64 : v;
    max = x.first ? -INFINITY : state[0];
    for (uint32_t j = 0; j < v; j++)
        max = fmaxf(max, s[j] = mul(gb[x.saddr + 64 * r + j], x.scale));
    for (uint32_t j = 0; j < v; j++)
        sum = add(sum, s[j] = mur_sim_exp(add(s[j], -max)));
    a = x.first ? 0 : mur_sim_exp(add(state[0], -max));
    for (uint32_t j = 0; j < x.k; j++)
        o[j] = x.first ? 0 : mul(o[j], a);
    state[1] = x.first ? sum : add(mul(state[1], a), sum);
    state[0] = max;
    slots(s, v, x.terms, out + x.daddr + r * x.dpitch);
}

static void smax_takes_one_chunk_of_an_online_softmax(void **state)
{
    static float expected[GB_WORDS];
    static uint8_t expected_slots[I_BYTES];

    (void)state;
    for (uint32_t round = 0; round < 40; round++) {
        smax x = { .saddr = 0,
                   .rows = 20,
                   .group = 1 + random_below(5),
                   .skip = random_below(4),
                   .valid = 1 + random_below(64),
                   .first = round % 2,
                   .taddr = 2000,
                   .oaddr = 3000,
                   .k = 8 + random_below(40),
                   .dst = I1,
                   .daddr = 11,
                   .dpitch = 80,
                   .terms = 2,
                   .scale = 0.353553f };

        fill_gb(9);
        memset(b.i1, 0, I_BYTES);
        memset(expected_slots, 0, I_BYTES);
        memcpy(expected, b.gb, sizeof(expected));
        for (uint32_t r = 0; r < x.rows; r++)
            oracle_smax_row(x, r, expected, expected_slots);
        run(smax_words(x));
        same_floats(b.gb, expected, GB_WORDS);
        assert_memory_equal(b.i1, expected_slots, I_BYTES);
    }
}

static void div_puts_a_tokens_heads_side_by_side(void **state)
{
    divide x = {
        .saddr = 100, .rows = 9, .group = 3, .k = 8, .taddr = 50, .daddr = 4000, .dpitch = 64
    };
    static float expected[GB_WORDS];

    (void)state;
    fill_gb(3);
    memcpy(expected, b.gb, sizeof(expected));
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t g = 0; g < 3; g++)
            for (uint32_t j = 0; j < 8; j++)
                expected[4000 + 64 * i + 8 * g + j] =
                    quotient(b.gb[100 + 8 * (3 * i + g) + j], b.gb[50 + 2 * (3 * i + g) + 1]);
    run(div_words(x));
    same_floats(b.gb, expected, GB_WORDS);
}

static void glu_gates_and_quantizes_rows(void **state)
{
    glu x = { .saddr = 10,
              .uaddr = 2000,
              .rows = 4,
              .k = 44,
              .dst = I0,
              .daddr = 5,
              .dpitch = 60,
              .terms = 2 };
    uint8_t expected[128];

    (void)state;
    fill_gb(100); /* both signs, beyond where the exponential becomes 0 */
    b.gb[10] = 0;
    run(glu_words(x));
    for (uint32_t r = 0; r < x.rows; r++) {
        float y[44];

        for (uint32_t i = 0; i < x.k; i++) {
            float g = b.gb[10 + 44 * r + i], e = mur_sim_exp(-fabsf(g));
            float s = quotient(g >= 0 ? 1 : e, add(1, e));

            y[i] = mul(mul(g, s), b.gb[2000 + 44 * r + i]);
        }
        CHECK_EQ(slots(y, 44, 2, expected) - expected, slots_size(44, 2));
        assert_memory_equal(b.i0 + 5 + 60 * r, expected, slots_size(44, 2));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(the_root_is_correctly_rounded_at_every_exponent),
        SIM_TEST(the_exponential_is_as_near_to_libm_as_its_formula_allows),
        SIM_TEST(ld_and_st_copy_bytes),
        SIM_TEST(embed_decodes_the_columns_of_its_tokens),
        SIM_TEST(mm_computes_a_product_worked_out_by_hand),
        FAST_TEST(mm_computes_a_product_worked_out_by_hand),
        SIM_TEST(mm_equals_the_specification_on_all_shapes),
        FAST_TEST(mm_equals_the_specification_on_all_shapes),
        FAST_TEST(a_bent_operand_is_refused_by_both_products_or_by_none),
        FAST_TEST(the_fast_encoder_gives_the_runtimes_slots),
        FAST_TEST(the_fast_exponentials_are_the_simulators),
        SIM_TEST(norm_normalizes_and_quantizes_rows),
        SIM_TEST(rope_rotates_each_head_by_its_rows_angles),
        SIM_TEST(quant_and_qpack_write_the_slots_of_rows_and_of_columns),
        SIM_TEST(smax_takes_one_chunk_of_an_online_softmax),
        SIM_TEST(div_puts_a_tokens_heads_side_by_side),
        SIM_TEST(glu_gates_and_quantizes_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
