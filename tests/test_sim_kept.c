/* test_sim_kept.c - random programs come to the same bytes whether the simulator multiplies itself,
 * by a fast form at once, or by one that keeps products and leaves loaded bytes where they are. */
#include "sim_bench.h"

enum {
    ROUNDS = 60,
    STEPS = 60,
    PASSES = 3 /* operands are met again in */,
    COLUMNS = 24,
    DEPTH = 192,
    OPERANDS = 8,
    KEYS = 12000, /* in KV, and */
    KEYS_AT = 8000,
    GROWTH = 7 /* steps */
};

/* ---- right operands: DEPTH x COLUMNS in WGTS and in KV ---- */

static uint32_t operand_at[2][OPERANDS + 1]; /* where each begins, and where the last one ends */

static uint8_t *put_header(uint8_t *p, uint32_t kind)
{
    uint32_t header = (kind == MUR_BLOCK_B5 ? 0 : random_below(16)) << 12 |
                      (10 + random_below(8)) << 7 | kind << 4;

    p[0] = (uint8_t)header;
    p[1] = (uint8_t)(header >> 8);
    return p + 2;
}

static uint8_t *put_payload(uint8_t *p, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        *p++ = (uint8_t)random_u32();
    return p;
}

/* A block of 32, below one of kind `above` (-1: none that lends its header); kinds: 0 B4 and B5, 1
 * R, 2 all. Returns its end. */
static uint8_t *put_block(uint8_t *p, uint32_t kinds, int *above)
{
    uint8_t *size = p++;
    int kind = kinds == 1 ? MUR_BLOCK_R : (int)random_below(kinds == 0 ? 2 : 4);
    bool shared = kinds != 1 && *above >= 0 && random_below(3) == 0;

    if (shared)
        kind = *above;
    *above = kind == MUR_BLOCK_B4 || kind == MUR_BLOCK_B5 ? kind : -1;
    if (kind == 3) { /* all-zero */
        *size = 0;
        return p;
    }
    p = shared ? p : put_header(p, (uint32_t)kind);
    p = put_payload(p, kind == MUR_BLOCK_B5 ? 20 : 16);
    if (kind == MUR_BLOCK_R)
        p = put_payload(put_header(p, MUR_BLOCK_B4), 16);
    *size = (uint8_t)((p - size - 1) | (shared ? MUR_BLOCK_SHARED : 0));
    return p;
}

static void fill_region(uint8_t *region, uint32_t *at)
{
    uint8_t *p = region;

    memset(at, 0, (OPERANDS + 1) * sizeof(*at));
    for (uint32_t i = 0; i < OPERANDS && p - region < 12000 - 5400; i++) {
        at[i] = (uint32_t)(p - region);
        for (uint32_t column = 0; column < COLUMNS * DEPTH / 64; column++) {
            int above = -1;

            p = put_block(p, i % 3, &above);
            p = put_block(p, i % 3, &above);
        }
        at[i + 1] = (uint32_t)(p - region);
    }
}

/* ---- programs ---- */

static words program[STEPS];

static uint32_t count_operands(const uint32_t *at)
{
    uint32_t count = 0;

    while (count < OPERANDS && at[count + 1] > at[count])
        count++;
    return count;
}

/* Loads an operand to where products look for it, or part of one over part of another. */
static words random_load(uint32_t w)
{
    uint32_t region = random_below(2) ? KV : WGTS;
    const uint32_t *at = operand_at[region == KV];
    uint32_t i = random_below(count_operands(at)), bytes = at[i + 1] - at[i];

    if (random_below(4) == 0)
        return ld(w, (random_below(20) ? 6000 : 0) + random_below(4000), region, at[i],
                  random_below(bytes));
    return ld(w, 0, region, at[i], bytes);
}

static mm random_mm(void)
{
    uint32_t terms = 1 + random_below(2);

    return (mm){ .src = (terms == 2) != (random_below(300) == 0) ? I0 : I1,
                 .spitch = slots_size(DEPTH, terms),
                 .rows = 1 + random_below(4),
                 .k = DEPTH,
                 .terms = terms,
                 .wsrc = W0 + random_below(2),
                 .wlen = 6000, /* more than was loaded */
                 .cols = random_below(3) ? COLUMNS : 1 + random_below(COLUMNS),
                 .daddr = 64 * random_below(40),
                 .dpitch = 24 + 8 * random_below(20),
                 .acc = random_below(2) };
}

/* left rows, of two terms in I0 and of one in I1 */
static words random_left(uint32_t terms)
{
    return quant_words((quant){ .saddr = 4000 + random_below(100),
                                .spitch = 300,
                                .rows = 4,
                                .k = DEPTH,
                                .dst = terms == 2 ? I0 : I1,
                                .dpitch = slots_size(DEPTH, terms),
                                .terms = terms });
}

static words random_slots(uint32_t w, uint32_t at, uint32_t rows)
{
    return quant_words((quant){ .saddr = 4000 + random_below(100),
                                .spitch = 64,
                                .rows = rows,
                                .k = 64,
                                .dst = w,
                                .daddr = at,
                                .dpitch = slots_size(64, 2),
                                .terms = 2 });
}

static words keys_product(uint32_t w, uint32_t keys)
{
    return mm_words((mm){ .src = I0,
                          .spitch = slots_size(DEPTH, 2),
                          .rows = 1 + random_below(4),
                          .k = 64,
                          .terms = 2,
                          .wsrc = w,
                          .waddr = KEYS_AT,
                          .wlen = 2000,
                          .cols = keys,
                          .daddr = 64 * random_below(40),
                          .dpitch = 24 });
}

/* Keys are loaded, and others come beside them, which mostly are stored where those go on. */
static void random_growth(words out[GROWTH])
{
    uint32_t w = W0 + random_below(2), count = 1 + random_below(6), more = 1 + random_below(2);
    uint32_t slots = slots_size(64, 2), end = KEYS_AT + count * slots, next = random_below(2);

    out[0] = random_slots(w, KEYS_AT, count + more + 1);
    out[1] = st(w, KEYS_AT, KV, KEYS, (count + more + 1) * slots);
    out[2] = ld(w, KEYS_AT, KV, KEYS, count * slots);
    out[3] = random_slots(w, random_below(4) ? end : end - slots, more);
    out[4] = random_slots(w, next ? end + more * slots : KEYS_AT + 20 * slots, 1);
    out[5] = st(w, end, KV, KEYS + (count + (random_below(4) == 0)) * slots, more * slots);
    out[6] = keys_product(w, 1 + random_below(count + more + next));
}

/* What may come between products of one left operand, and even write over it; one in hundreds
 * stops the machine. */
static words random_between(void)
{
    uint32_t at = random_below(300) ? 64 * random_below(40) : GB_WORDS - 30, dst = random_below(2);
    uint32_t far = 7000 + 50 * random_below(4);

    switch (random_below(9)) {
    case 0:
        return rope_words((rope){ at, 48, 2, 1 + random_below(2), 24, far });
    case 1:
        return scale_words((scale){ at, 40, 3, 33, far, 40, random_below(2), 0.5f });
    case 2:
        return rms_words((rms){ at, 40, 2, 33, far, 64 * random_below(40), 40, 1, 0.1f });
    case 3:
        return norm_words((norm){ at, 64, 2, 64, far, dst, 0, 2 - dst, 0.1f });
    case 4:
        return glu_words((glu){ at, far, 2, 64, dst, 0, slots_size(64, 2 - dst), 2 - dst, dst });
    case 5:
        return ld(GB, 4 * at, random_below(4), 4 * random_below(1000), 4 * random_below(300));
    case 6: /* AMAX */
        return (words){ { 0x09, 3000 + random_below(900), 99, at } };
    case 7:
        return div_words((divide){ at, 6, 3, 20, far, 64 * random_below(40), 70 });
    default:
        return st(GB, 4 * at, IO, 12000 + 4 * random_below(900), 4 * random_below(64));
    }
}

/* Products of one left operand, and others between them. Returns how many instructions. */
static uint32_t random_chain(words *out, uint32_t most)
{
    mm product = random_mm();
    uint32_t count = 0;

    for (uint32_t n = 2 + random_below(8); n > 0 && count + 3 <= most; n--) {
        product.daddr = 64 * random_below(40);
        product.cols = 1 + random_below(COLUMNS);
        product.acc = random_below(8) == 0;
        out[count++] = mm_words(product);
        for (uint32_t i = random_below(3); i > 0; i--)
            out[count++] = random_between();
    }
    return count;
}

static void random_program(void)
{
    program[0] = random_left(1);
    program[1] = random_left(2);
    program[2] = ld(W0, 0, WGTS, operand_at[0][0], operand_at[0][1] - operand_at[0][0]);
    program[3] = ld(W1, 0, KV, operand_at[1][0], operand_at[1][1] - operand_at[1][0]);
    for (uint32_t i = 4; i < STEPS; i++) {
        uint32_t what = random_below(15);

        if (what == 14 && i + 3 <= STEPS)
            i += random_chain(program + i, STEPS - i) - 1;
        else if (what == 13)
            program[i] = random_between();
        else if (what == 12 && i + GROWTH <= STEPS) {
            random_growth(program + i);
            i += GROWTH - 1;
        } else if (what == 0)
            program[i] = random_left(1 + random_below(2));
        else if (what < 4)
            program[i] = random_load(W0 + random_below(2));
        else if (what == 4) /* beyond the operands of KV, but for a few */
            program[i] = st(GB, 0, random_below(2) ? IO : KV,
                            random_below(10) ? 12000 : 4 * random_below(3000), 4000);
        else
            program[i] = mm_words(random_mm());
    }
}

/* ---- attention ---- */

enum {
    ATTENTION_STEPS = 100,
    HEAD = 64,
    TOKENS = 64,
    SCORES = 0, /* in GB, */
    STATE = 1600,
    SUMS = 1700,
    VALUES = 3000,
    OWN_SUMS = 5000,
    WEIGHTS = 2000, /* in I1, and */
    OWN_WEIGHTS = 4000,
    PACKED = 6000 /* in W1 */
};

static words steps[ATTENTION_STEPS];
static uint32_t step_count;

static void add_step(words x)
{
    if (step_count < ATTENTION_STEPS)
        steps[step_count++] = x;
}

/* Keys and values of two steps, to KV and then to W0 and W1; in one case of ten other bytes lie
 * over the end of them. */
static void load_keys_and_values(uint32_t width)
{
    uint32_t slots = slots_size(64, 2), keys = 2 * TOKENS * slots, values = 2 * width * slots;
    uint32_t at = random_below(2);

    add_step(quant_words((quant){ .saddr = 4000,
                                  .spitch = 24,
                                  .rows = 2 * TOKENS,
                                  .k = HEAD,
                                  .dst = W0,
                                  .dpitch = slots,
                                  .terms = 2 }));
    add_step(st(W0, 0, KV, 0, keys));
    for (uint32_t i = 0; i < 2; i++)
        add_step(qpack_words((qpack){ .saddr = VALUES + 100 * i,
                                      .spitch = 30,
                                      .rows = TOKENS,
                                      .cols = width,
                                      .dst = W1,
                                      .daddr = i * width * slots,
                                      .terms = 2 }));
    add_step(st(W1, 0, KV, keys, values));
    add_step(ld(W0, 0, KV, 0, keys));
    add_step(ld(W1, 0, KV, keys, values));
    if (random_below(10) == 0)
        add_step(ld(W0 + at, random_below(at ? values : keys), WGTS, random_below(100), 40));
}

/* What steps have in common. */
typedef struct attention {
    uint32_t rows, width, slots;
} attention;

static void add_attention_step(const attention *of, uint32_t i)
{
    bool odd = random_below(12) == 0; /* not all tokens are seen */
    uint32_t hide = odd ? random_below(100) : 0, other = random_below(30);

    add_step(mm_words((mm){ .src = I1,
                            .spitch = of->slots,
                            .rows = of->rows,
                            .k = HEAD,
                            .terms = 2,
                            .wsrc = W0,
                            .waddr = i % 2 * TOKENS * of->slots,
                            .wlen = TOKENS * of->slots,
                            .cols = TOKENS,
                            .daddr = SCORES,
                            .dpitch = TOKENS }));
    if (other == 0)
        add_step(random_left(1));
    if (other > 3 && other < 8)
        add_step(scale_words((scale){ SCORES, TOKENS, of->rows, TOKENS, SCORES, TOKENS, 0, 2 }));
    add_step(smax_words((smax){ .saddr = SCORES,
                                .rows = of->rows,
                                .group = 3,
                                .valid = odd ? 1 + random_below(TOKENS) : TOKENS,
                                .first = i == 0,
                                .taddr = STATE,
                                .oaddr = SUMS,
                                .k = of->width,
                                .dst = I1,
                                .daddr = WEIGHTS,
                                .dpitch = of->slots,
                                .terms = 2,
                                .hide = hide,
                                .scale = 0.01f * (float)(1 + random_below(9)) }));
    if (other == 1)
        add_step(random_left(2));
    add_step(mm_words((mm){ .src = I1,
                            .saddr = WEIGHTS,
                            .spitch = of->slots,
                            .rows = of->rows,
                            .k = TOKENS,
                            .terms = 2,
                            .wsrc = W1,
                            .waddr = i % 2 * of->width * of->slots,
                            .wlen = of->width * of->slots,
                            .cols = of->width,
                            .daddr = SUMS + (other == 2 ? 8 : 0),
                            .dpitch = of->width,
                            .acc = 1 }));
    if (other == 3)
        add_step(st(GB, 4 * SUMS, IO, 0, 400));
}

/* Tokens that pack the values of their own block, each one more. */
static void add_own_tokens(uint32_t rows, uint32_t width)
{
    uint32_t count = 1 + random_below(8), before = random_below(40);
    uint32_t values = random_below(10) ? VALUES : OWN_SUMS - 30 * before;

    for (uint32_t i = 0; i < count; i++)
        add_step(quant_words((quant){ .saddr = 4000 + 50 * i,
                                      .spitch = 64,
                                      .rows = rows,
                                      .k = before + i + (random_below(60) != 0),
                                      .dst = I1,
                                      .daddr = OWN_WEIGHTS + i * rows * slots_size(64, 2),
                                      .dpitch = slots_size(64, 2),
                                      .terms = 2 }));
    for (uint32_t i = 0; i < count; i++) {
        add_step(qpack_words((qpack){ .saddr = values,
                                      .spitch = 30,
                                      .rows = before + i + 1,
                                      .cols = width,
                                      .dst = W1,
                                      .daddr = PACKED,
                                      .terms = 2 }));
        if (random_below(40) == 0)
            add_step(ld(W1, PACKED + random_below(100), KV, 0, 200));
        add_step(mm_words((mm){ .src = I1,
                                .saddr = OWN_WEIGHTS + i * rows * slots_size(64, 2),
                                .spitch = slots_size(64, 2),
                                .rows = rows,
                                .k = before + i + 1,
                                .terms = 2,
                                .wsrc = W1,
                                .waddr = PACKED,
                                .wlen = 4000,
                                .cols = width,
                                .daddr = OWN_SUMS + i * rows * width,
                                .dpitch = width,
                                .acc = random_below(10) != 0 }));
    }
}

static void attention_program(void)
{
    attention of = { 1 + random_below(24), 4 + random_below(21), slots_size(64, 2) };
    uint32_t count = 1 + random_below(7);

    step_count = 0;
    load_keys_and_values(of.width);
    add_step(quant_words((quant){ .saddr = 4000 + random_below(100),
                                  .spitch = 64,
                                  .rows = of.rows,
                                  .k = HEAD,
                                  .dst = I1,
                                  .dpitch = of.slots,
                                  .terms = 2 }));
    for (uint32_t i = 0; i < count; i++)
        add_attention_step(&of, i);
    add_own_tokens(1 + random_below(6), of.width);
    add_step(div_words((divide){ .saddr = SUMS,
                                 .rows = of.rows,
                                 .group = 1,
                                 .k = of.width,
                                 .taddr = STATE,
                                 .daddr = SUMS,
                                 .dpitch = of.width }));
}

/* ---- machines ---- */

static muc_fast_product *products;
static muc_context *threads;

static void run_all(int form, uint64_t seed, bool attends, const char **reason, uint32_t *stopped)
{
    random_state = (uint32_t)seed;
    memset(&b, 0, sizeof(b));
    fill_region(b.wgts, operand_at[0]);
    fill_region(b.kv, operand_at[1]);
    fill_gb(1);
    start(MUR_SIM_EAGER, 1);
    if (form == 1)
        muc_fast_product_use(products, &b.sim);
    if (form == 2)
        muc_fast_product_keep(threads, products, &b.sim);
    if (attends)
        attention_program();
    else
        random_program();
    for (uint32_t i = 0; i < PASSES * STEPS && !b.sim.fault.reason; i++)
        submit(attends ? steps[i % step_count] : program[i % STEPS]);
    mur_sim_settle(&b.sim);
    *reason = b.sim.fault.reason;
    memcpy(stopped, b.sim.fault.words, sizeof(b.sim.fault.words));
}

enum how { NARROW = 1, SHARED = 2, PACKS = 4, ATTENDS = 8 };

static void check_form(int form, unsigned how)
{
    static bench expected;
    uint32_t stopped = 0;

    threads = muc_context_new(2);
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        const char *reason[2];
        uint32_t at[2][MUR_MAX_WORDS];

        run_all(0, round, how & ATTENDS, &reason[0], at[0]);
        expected = b;
        CHECK_EQ(muc_fast_product_open(threads, &products), MUC_OK);
        if (how & PACKS)
            muc_fast_product_pack(products, SIZE_MAX);
        if (how & NARROW)
            muc_fast_product_narrow(products);
        if (how & SHARED)
            muc_fast_product_share_all(products);
        run_all(form, round, how & ATTENDS, &reason[1], at[1]);
        muc_fast_product_close(products);
        CHECK(reason[0] == reason[1]);
        stopped += reason[0] != NULL;
        if (reason[0]) {
            assert_memory_equal(at[0], at[1], sizeof(uint32_t) * 7);
            continue;
        }
        assert_memory_equal(b.gb, expected.gb, sizeof(b.gb));
        assert_memory_equal(b.io, expected.io, sizeof(b.io));
        assert_memory_equal(b.kv, expected.kv, sizeof(b.kv));
        assert_memory_equal(b.i0, expected.i0, sizeof(b.i0));
        assert_memory_equal(b.i1, expected.i1, sizeof(b.i1));
        assert_memory_equal(b.w0, expected.w0, sizeof(b.w0));
        assert_memory_equal(b.w1, expected.w1, sizeof(b.w1));
        CHECK_EQ(b.sim.macs, expected.sim.macs);
        assert_memory_equal(b.sim.executed, expected.sim.executed, sizeof(b.sim.executed));
    }
    CHECK(stopped > 0 && stopped < ROUNDS);
    muc_context_free(threads);
}

static void products_at_once_are_the_simulators_own(void **state)
{
    (void)state;
    check_form(1, 0);
    check_form(1, NARROW);
}

static void products_that_are_kept_are_too(void **state)
{
    (void)state;
    check_form(2, 0);
    check_form(2, PACKS);
    check_form(2, NARROW);
}

static void threads_make_no_difference(void **state)
{
    (void)state;
    check_form(2, SHARED);
    check_form(2, SHARED | PACKS);
    check_form(2, SHARED | NARROW);
}

static void steps_of_attention_at_once_are_the_same_as_in_turn(void **state)
{
    (void)state;
    check_form(2, ATTENDS);
    check_form(2, ATTENDS | NARROW);
    check_form(2, ATTENDS | SHARED);
    check_form(2, ATTENDS | SHARED | NARROW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_at_once_are_the_simulators_own),
        cmocka_unit_test(products_that_are_kept_are_too),
        cmocka_unit_test(threads_make_no_difference),
        cmocka_unit_test(steps_of_attention_at_once_are_the_same_as_in_turn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
