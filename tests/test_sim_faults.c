/* What stops the µThinker simulator, and the order in which its queues get on. */
#include "sim_bench.h"

static void a_transfer_outside_buffer_or_region_faults(void **state)
{
    (void)state;
    run(ld(I0, I_BYTES - 1, WGTS, REGION_BYTES - 1, 1));
    faults(outside_buffer, ld(I0, I_BYTES - 1, WGTS, 0, 2));
    faults(outside_buffer, ld(I0, 0xfffff, WGTS, 0, 1));
    faults(outside_buffer, ld(GB, 4 * GB_WORDS - 4, WGTS, 0, 5));
    faults(outside_region, ld(I0, 0, WGTS, REGION_BYTES - 1, 2));
    faults(outside_region, ld(I0, 0, PARM, 0xffffffff, 2));
    faults(outside_buffer, ld(I0, 0, KV, 0, 0xffffff));
    faults(bad_operand, ld(5, 0, WGTS, 0, 1));
    faults(bad_operand, ld(I0, 0, 4, 0, 1));
    faults(outside_buffer, st(W0, W_BYTES, KV, 0, 1));
    faults(outside_region, st(W0, 0, KV, REGION_BYTES - 3, 4));
    faults(outside_region, st(W0, 0, IO, 0xfffffffe, 4));
    faults("store to a read-only region", st(W0, 0, WGTS, 0, 1));
    faults("store to a read-only region", st(W0, 0, PARM, 0, 1));
    faults(bad_operand, st(7, 0, KV, 0, 1));
    faults(bad_operand, st(W0, 0, 7, 0, 1));
}

/* the slots of k random values */
static uint8_t *random_slots(uint32_t k, uint32_t terms, uint8_t *out)
{
    float x[128];

    for (uint32_t i = 0; i < k; i++)
        x[i] = random_float(1);
    return slots(x, k, terms, out);
}

/* a sequence of 21 columns of 100 values at wgts + 16; returns its end */
static uint8_t *random_sequence(void)
{
    uint8_t *sequence = b.wgts + 16, *p = sequence + 4 * 7;

    for (uint32_t tile = 0; tile < 6; tile++) {
        uint32_t offset = (uint32_t)(p - sequence);

        memcpy(sequence + 4 * tile, &offset, 4);
        for (uint32_t c = 0; c < (tile < 4 ? 8 : 5); c++)
            p = random_slots(tile % 2 ? 36 : 64, 1, p);
    }
    memcpy(sequence + 4 * 6, &(uint32_t){ (uint32_t)(p - sequence) }, 4);
    return p;
}

static void set_token(uint32_t token)
{
    memcpy(b.io, &token, 4);
}

static void embed_faults_on_a_bad_token_range_or_sequence(void **state)
{
    uint8_t *end = random_sequence();

    (void)state;
    run(embed(16, 100, 1, 21, REGION_BYTES - 400));
    faults(outside_region, embed(16, 100, 1, 21, REGION_BYTES - 396));
    faults(outside_region, embed(16, 100, 1, 21, 0xfffffff0));
    faults(outside_region, embed(REGION_BYTES + 1, 100, 1, 21, 64));
    faults(outside_region, embed(0xffffffff, 100, 1, 21, 64));
    faults(outside_region, embed(REGION_BYTES - 4, 100, 1, 21, 64));
    faults(outside_region, embed(16, 100, 4095, 21, 64));
    set_token(21);
    faults("token not below the vocabulary's size", embed(16, 100, 1, 21, 64));
    set_token(0xfffffff);
    faults(outside_region, embed(16, 65535, 1, 0xffffff, 64));
    set_token(0xfffffe);
    faults(outside_region, embed(16, 64, 1, 0xffffff, 64));
    set_token(20);
    run(embed(16, 100, 1, 21, 64));
    end[-5] = 4; /* the size of the last block, which has 4 elements */
    run(embed(16, 100, 1, 21, 64));
    end[-5] = 5;
    faults(malformed_block, embed(16, 100, 1, 21, 64));
    end[-5] = 3;
    faults(malformed_block, embed(16, 100, 1, 21, 64));
    end[-5] = 4;
    end[-5 - 24] = 200; /* of the block above the one above: it is passed over */
    faults(malformed_block, embed(16, 100, 1, 21, 64));
    memset(b.wgts + 16 + 4 * 6, 0xff, 4); /* an offset */
    faults(outside_region, embed(16, 100, 1, 21, 64));
}

/* ---- MM ---- */

static mm good_mm(void)
{
    mm x = { .src = I0, .rows = 3, .k = 70, .terms = 2, .wsrc = W1, .cols = 9, .dpitch = 9 };
    uint8_t *p = b.i0, *w = b.w1;

    x.spitch = slots_size(x.k, x.terms);
    for (uint32_t row = 0; row < x.rows; row++)
        p = random_slots(x.k, x.terms, p);
    /* two columns of tiles, two tiles each: 8 columns, then the one that is left */
    for (uint32_t column = 0; column < 9; column += 8)
        for (uint32_t at = 0; at < x.k; at += 64)
            for (uint32_t i = 0; i < (column == 0 ? 8 : 1); i++)
                w = random_slots(at == 0 ? 64 : 6, 1, w);
    x.wlen = (uint32_t)(w - b.w1);
    return x;
}

static void mm_faults_outside_its_buffers(void **state)
{
    mm good = good_mm(), x;

    (void)state;
    run(mm_words(good));
#define MM_FAULTS(reason, change) (x = good, change, faults(reason, mm_words(x)))
    MM_FAULTS(outside_buffer, x.saddr = I_BYTES - 3 * good.spitch + 1);
    MM_FAULTS(outside_buffer, x.spitch = 0xffff);
    MM_FAULTS(outside_buffer, x.rows = 4095);
    MM_FAULTS(outside_buffer, x.waddr = W_BYTES - good.wlen + 1);
    MM_FAULTS(outside_buffer, x.wlen = 0xfffff);
    MM_FAULTS(outside_buffer, x.daddr = GB_WORDS - 26);
    MM_FAULTS(outside_buffer, x.dpitch = 0xffff);
    MM_FAULTS(outside_buffer, (x.cols = 4095, x.daddr = 5000));
    MM_FAULTS(malformed_block, x.cols = 4095);
    MM_FAULTS(outside_buffer, x.k = 0xffff);
    MM_FAULTS(bad_operand, x.src = W0);
    MM_FAULTS(bad_operand, x.src = 7);
    MM_FAULTS(bad_operand, x.wsrc = I1);
    MM_FAULTS(bad_operand, x.wsrc = GB);
    MM_FAULTS(bad_operand, x.terms = 0);
    MM_FAULTS(bad_operand, x.terms = 3);
    MM_FAULTS(malformed_block, x.wlen = good.wlen - 1);
    MM_FAULTS(malformed_block, x.wlen = 0);
    MM_FAULTS(malformed_block, x.terms = 1);
    x = good;
    x.rows = 0;
    x.wlen = 0;
    run(mm_words(x));
}

/* a weight takes every kind, a left slot only its own */
static void mm_faults_on_malformed_blocks(void **state)
{
    mm x = { .src = I0,
             .spitch = 19,
             .rows = 1,
             .k = 32,
             .terms = 1,
             .wsrc = W1,
             .wlen = 19,
             .cols = 1,
             .dpitch = 1 };
    static const uint8_t b4[3] = { 18, 0x00, 0xe8 };

    (void)state;
    memcpy(b.i0, b4, 3);
    memcpy(b.w1, b4, 3);
    run(mm_words(x));
    b.w1[0] = 17;
    faults(malformed_block, mm_words(x));
    b.w1[0] = 19;
    faults(malformed_block, mm_words(x));
    b.w1[0] = 0; /* a zero block: nothing is added */
    run(mm_words(x));
    b.i0[0] = 0; /* a slot is never that */
    faults(malformed_block, mm_words(x));
    b.i0[0] = 18;
    b.i0[1] = 0x10; /* nor of kind B5 */
    b.i0[2] = 0x08;
    faults(malformed_block, mm_words(x));
    memcpy(b.w1, b.i0, 3); /* as a weight it is fine */
    b.w1[0] = 22;
    memcpy(b.i0, b4, 3);
    x.wlen = 23;
    run(mm_words(x));
    memcpy(b.w1, b4, 3);
    x.wlen = 19;
    run(mm_words(x));
    b.i0[1] = 0x01; /* a reserved bit */
    faults(malformed_block, mm_words(x));
    b.i0[1] = 0x20; /* R, cut short */
    faults(malformed_block, mm_words(x));
}

/* `good` runs; changed in one field it faults for `reason` */
#define FAULTS(kind, reason, change) (x = good, change, faults(reason, kind##_words(x)))

static void norm_rope_and_quant_fault_outside_their_buffers(void **state)
{
    (void)state;
    {
        norm good = { .saddr = GB_WORDS - 110,
                      .spitch = 60,
                      .rows = 2,
                      .k = 50,
                      .gaddr = GB_WORDS - 50,
                      .dst = I0,
                      .daddr = I_BYTES - 60,
                      .terms = 1,
                      .epsilon = 1 };
        norm x;

        good.daddr = I_BYTES - 2 * slots_size(50, 1);
        run(norm_words(good));
        FAULTS(norm, outside_buffer, x.saddr++);
        FAULTS(norm, outside_buffer, x.spitch++);
        FAULTS(norm, outside_buffer, x.rows++);
        FAULTS(norm, outside_buffer, x.k++);
        FAULTS(norm, outside_buffer, x.gaddr++);
        FAULTS(norm, outside_buffer, x.daddr++);
        FAULTS(norm, outside_buffer, x.terms++);
        FAULTS(norm, bad_operand, x.terms = 3);
        FAULTS(norm, bad_operand, x.terms = 0);
        FAULTS(norm, bad_operand, x.dst = GB);
    }
    {
        rope good = { .saddr = GB_WORDS - 100,
                      .spitch = 60,
                      .rows = 2,
                      .heads = 5,
                      .k = 8,
                      .taddr = GB_WORDS - 16 };
        rope x;

        run(rope_words(good));
        FAULTS(rope, outside_buffer, x.saddr++);
        FAULTS(rope, outside_buffer, x.spitch++);
        FAULTS(rope, outside_buffer, x.rows++);
        FAULTS(rope, outside_buffer, x.heads++);
        FAULTS(rope, outside_buffer, x.k++);
        FAULTS(rope, outside_buffer, x.taddr++);
    }
    {
        quant good = { .saddr = GB_WORDS - 110,
                       .spitch = 60,
                       .rows = 2,
                       .k = 50,
                       .dst = W1,
                       .dpitch = 99,
                       .terms = 1 };
        quant x;

        good.daddr = W_BYTES - 99 - slots_size(50, 1);
        run(quant_words(good));
        FAULTS(quant, outside_buffer, x.saddr++);
        FAULTS(quant, outside_buffer, x.spitch++);
        FAULTS(quant, outside_buffer, x.rows++);
        FAULTS(quant, outside_buffer, x.k++);
        FAULTS(quant, outside_buffer, x.daddr++);
        FAULTS(quant, outside_buffer, x.dpitch++);
        FAULTS(quant, outside_buffer, x.terms++);
        FAULTS(quant, bad_operand, x.dst = GB);
        FAULTS(quant, bad_operand, x.dst = 7);
        FAULTS(quant, bad_operand, x.terms = 0);
    }
}

static void qpack_smax_div_and_glu_fault_outside_their_buffers(void **state)
{
    (void)state;
    {
        qpack good = {
            .saddr = GB_WORDS - 110, .spitch = 60, .rows = 2, .cols = 50, .dst = W1, .terms = 1
        };
        qpack x;

        good.daddr = W_BYTES - 50 * slots_size(2, 1);
        run(qpack_words(good));
        FAULTS(qpack, outside_buffer, x.saddr++);
        FAULTS(qpack, outside_buffer, x.spitch++);
        FAULTS(qpack, outside_buffer, x.rows++);
        FAULTS(qpack, outside_buffer, x.cols++);
        FAULTS(qpack, outside_buffer, x.daddr++);
        FAULTS(qpack, outside_buffer, x.terms++);
        FAULTS(qpack, bad_operand, x.rows = 65);
        FAULTS(qpack, bad_operand, x.dst = GB);
    }
    {
        smax good = { .saddr = GB_WORDS - 64 - 40,
                      .rows = 2,
                      .group = 1,
                      .valid = 39,
                      .taddr = GB_WORDS - 4,
                      .oaddr = GB_WORDS - 20,
                      .k = 10,
                      .dst = I1,
                      .dpitch = 99,
                      .terms = 1,
                      .scale = 1 };
        smax x;

        good.daddr = I_BYTES - 99 - slots_size(40, 1);
        run(smax_words(good));
        FAULTS(smax, outside_buffer, x.saddr++);
        FAULTS(smax, outside_buffer, x.rows++);
        FAULTS(smax, outside_buffer, x.valid++);
        FAULTS(smax, outside_buffer, x.taddr++);
        FAULTS(smax, outside_buffer, x.oaddr++);
        FAULTS(smax, outside_buffer, x.k++);
        FAULTS(smax, outside_buffer, x.daddr++);
        FAULTS(smax, outside_buffer, x.dpitch++);
        FAULTS(smax, outside_buffer, x.terms++);
        FAULTS(smax, bad_operand, x.group = 0);
        FAULTS(smax, bad_operand, x.valid = 0);
        FAULTS(smax, bad_operand, x.valid = 65);
        FAULTS(smax, bad_operand, x.dst = GB);
    }
    {
        divide good = { .saddr = GB_WORDS - 30,
                        .rows = 3,
                        .group = 2,
                        .k = 10,
                        .taddr = GB_WORDS - 6,
                        .daddr = GB_WORDS - 110,
                        .dpitch = 100 };
        divide x;

        run(div_words(good));
        FAULTS(div, outside_buffer, x.saddr++);
        FAULTS(div, outside_buffer, x.rows++);
        FAULTS(div, outside_buffer, x.taddr++);
        FAULTS(div, outside_buffer, x.k++);
        FAULTS(div, outside_buffer, x.daddr++);
        FAULTS(div, outside_buffer, x.dpitch++);
        FAULTS(div, bad_operand, x.group = 0);
    }
    {
        glu good = { .saddr = GB_WORDS - 100,
                     .uaddr = GB_WORDS - 100,
                     .rows = 2,
                     .k = 50,
                     .dst = I0,
                     .dpitch = 99,
                     .terms = 1 };
        glu x;

        good.daddr = I_BYTES - 99 - slots_size(50, 1);
        run(glu_words(good));
        FAULTS(glu, outside_buffer, x.saddr++);
        FAULTS(glu, outside_buffer, x.uaddr++);
        FAULTS(glu, outside_buffer, x.rows++);
        FAULTS(glu, outside_buffer, x.k++);
        FAULTS(glu, outside_buffer, x.daddr++);
        FAULTS(glu, outside_buffer, x.dpitch++);
        FAULTS(glu, outside_buffer, x.terms++);
        FAULTS(glu, bad_operand, x.dst = GB);
        FAULTS(glu, bad_operand, x.terms = 3);
    }
}

static void an_instruction_of_another_engine_or_of_none_faults(void **state)
{
    static const char reason[] = "no instruction of this engine";
    words load = ld(I0, 0, WGTS, 0, 1);

    (void)state;
    for (uint32_t opcode = 0; opcode < 256; opcode++) {
        int known = opcode == 1 || opcode == 2 || opcode == 8 || opcode == 9 || opcode == 0x10 ||
                    (opcode >= 0x20 && opcode <= 0x29);

        if (!known)
            faults(reason, (words){ { opcode } });
    }
    CHECK_EQ(b.hal.accel(b.hal.arg, load.w), MUR_E_FAULT);
    assert_string_equal(b.sim.fault.reason, reason);
    CHECK_EQ(b.sim.fault.engine, MUR_ACC);
}

/* ---- queues ---- */

enum { PROGRAM = 400 };

/* Issues a program as SPEC.md section 2 says; waits are left out if `racy`. */
static void issue(const words *program, uint32_t count, int racy)
{
    uint32_t token_count[MUR_TOKENS] = { 0 }, issued[MUR_ENGINES] = { 0 };
    enum mur_engine token_engine[MUR_TOKENS] = { MUR_DMA };

    for (uint32_t i = 0; i < count; i++) {
        uint32_t wait = racy ? 0 : program[i].w[0] >> 16, signal = program[i].w[0] >> 8 & 31;
        enum mur_engine engine = (program[i].w[0] & 255) < 8 ? MUR_DMA : MUR_ACC;

        for (uint32_t t = 0; t < MUR_TOKENS; t++)
            while (wait >> t & 1 &&
                   (int32_t)(b.hal.completed(b.hal.arg, token_engine[t]) - token_count[t]) < 0)
                ;
        while (submit(program[i]) == MUR_YIELD)
            ;
        issued[engine]++;
        if (signal) {
            token_engine[signal - 1] = engine;
            token_count[signal - 1] = issued[engine];
        }
    }
    for (int engine = 0; engine < MUR_CPU; engine++)
        while (b.hal.completed(b.hal.arg, (enum mur_engine)engine) != issued[engine])
            ;
    assert_null(b.sim.fault.reason);
}

static words with(words x, uint32_t signal, uint32_t wait)
{
    x.w[0] |= signal << 8 | wait << 16;
    return x;
}

/* Slots go to and fro: QUANT from GB to a W half, ST, LD into the other half and into GB. FULL and
 * EMPTY tokens as in SPEC.md section 8. */
static uint32_t two_engine_program(words *program)
{
    uint32_t count = 0;

    while (count + 8 <= PROGRAM) {
        uint32_t half = random_below(2), at = half * W_BYTES / 2, off = 37 * random_below(40);
        uint32_t words_at = random_below(GB_WORDS - 64);
        quant x = { .saddr = random_below(GB_WORDS - 32),
                    .rows = 1,
                    .k = 32,
                    .dst = W0,
                    .daddr = at,
                    .dpitch = 37,
                    .terms = 2 };
        glu y = { .saddr = random_below(GB_WORDS - 32),
                  .uaddr = words_at,
                  .rows = 1,
                  .k = 32,
                  .dst = W0,
                  .daddr = at,
                  .dpitch = 37,
                  .terms = 1 };
        divide z = { .saddr = words_at,
                     .rows = 2,
                     .group = 2,
                     .k = 16,
                     .taddr = 3,
                     .daddr = random_below(GB_WORDS - 32),
                     .dpitch = 32 };

        program[count++] = with(quant_words(x), 5 + half, 1u << half | 1u << 8);
        program[count++] = with(st(W0, at, KV, off, 37), 1 + half, 1u << (4 + half));
        program[count++] = with(glu_words(y), 5 + half, 1u << half | 1u << 8);
        program[count++] = with(st(W0, at, KV, off + 37, 19), 1 + half, 1u << (4 + half));
        program[count++] = with(div_words(z), 10, 1u << 8);
        program[count++] = with(ld(GB, 4 * words_at, KV, off, 128), 9, 1u << 9 | 1u << 4 | 1u << 5);
    }
    return count;
}

static void policies_agree_unless_the_program_races(void **state)
{
    static words program[PROGRAM];
    static bench eager;
    uint32_t count, differing = 0;

    (void)state;
    for (int racy = 0; racy < 2; racy++)
        for (uint32_t seed = 0; seed < 20; seed++) {
            int same;

            random_state = 1 + seed / 5;
            count = two_engine_program(program);
            memset(&b, 0, sizeof(b));
            fill_gb(2);
            start(seed % 5 == 0   ? MUR_SIM_EAGER
                  : seed % 5 == 1 ? MUR_SIM_LAZY
                                  : MUR_SIM_RANDOM,
                  seed);
            issue(program, count, racy);
            CHECK_EQ(b.sim.completed[MUR_DMA] + b.sim.completed[MUR_ACC], count);
            if (seed % 5 == 0)
                eager = b;
            same = memcmp(b.gb, eager.gb, sizeof(b.gb)) == 0 &&
                   memcmp(b.kv, eager.kv, sizeof(b.kv)) == 0 &&
                   memcmp(b.w0, eager.w0, sizeof(b.w0)) == 0;
            if (!racy)
                CHECK(same);
            differing += !same;
        }
    CHECK(differing >= 8); /* without its waits the same program shows it */
}

static void lazy_runs_only_when_asked_or_full(void **state)
{
    (void)state;
    b.wgts[0] = 77;
    start(MUR_SIM_LAZY, 1);
    for (uint32_t i = 0; i < MUR_SIM_QUEUE; i++)
        run(ld(I0, i, WGTS, 0, 1));
    CHECK_EQ(b.i0[0], 0);
    run(ld(I0, MUR_SIM_QUEUE, WGTS, 0, 1));
    CHECK_EQ(b.i0[0], 77);
    CHECK_EQ(b.i0[1], 0);
    CHECK_EQ(b.hal.completed(b.hal.arg, MUR_DMA), 2);
    CHECK_EQ(b.i0[1], 77);
    CHECK_EQ(b.i0[2], 0);
}

static void a_fault_in_a_queue_stops_all_and_leaves_nobody_waiting(void **state)
{
    glu wrong = { .k = 32, .rows = 1, .dst = GB, .terms = 1 };

    (void)state;
    start(MUR_SIM_LAZY, 1);
    b.wgts[0] = 77;
    run(glu_words(wrong));
    run(ld(I0, 0, WGTS, 0, 1));
    CHECK_EQ(b.hal.completed(b.hal.arg, MUR_ACC), 1);
    assert_string_equal(b.sim.fault.reason, bad_operand);
    CHECK_EQ(b.hal.completed(b.hal.arg, MUR_DMA), 1);
    CHECK_EQ(b.i0[0], 0);
    CHECK_EQ(submit(ld(I0, 0, WGTS, 0, 1)), MUR_E_FAULT);
}

static void count_probe(void *arg, mur_sim *sim, enum mur_engine engine,
                        const uint32_t *instruction)
{
    uint32_t *seen = arg;

    CHECK_EQ(engine, MUR_DMA);
    CHECK_EQ(sim->memory.buffer[I0][instruction[1] & 0xfffff], 77); /* it has been executed */
    (*seen)++;
}

static void the_probe_sees_every_instruction_after_it(void **state)
{
    uint32_t seen = 0;

    (void)state;
    b.wgts[0] = 77;
    b.sim.probe = count_probe;
    b.sim.probe_arg = &seen;
    for (uint32_t i = 0; i < 5; i++)
        run(ld(I0, i, WGTS, 0, 1));
    CHECK_EQ(seen, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(a_transfer_outside_buffer_or_region_faults),
        SIM_TEST(embed_faults_on_a_bad_token_range_or_sequence),
        SIM_TEST(mm_faults_outside_its_buffers),
        FAST_TEST(mm_faults_outside_its_buffers),
        SIM_TEST(mm_faults_on_malformed_blocks),
        FAST_TEST(mm_faults_on_malformed_blocks),
        SIM_TEST(norm_rope_and_quant_fault_outside_their_buffers),
        SIM_TEST(qpack_smax_div_and_glu_fault_outside_their_buffers),
        SIM_TEST(an_instruction_of_another_engine_or_of_none_faults),
        SIM_TEST(policies_agree_unless_the_program_races),
        SIM_TEST(lazy_runs_only_when_asked_or_full),
        SIM_TEST(a_fault_in_a_queue_stops_all_and_leaves_nobody_waiting),
        SIM_TEST(the_probe_sees_every_instruction_after_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
