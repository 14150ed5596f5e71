/* The interpreter and the program file: what a program means, however its engines dawdle; and files
 * damaged in every byte. */
#include "program_fixture.h"
#include "program_machine.h"

static hand_program f;

/* ---- a board that writes down what it is given ---- */

enum { LOG_INSNS = 4096 };

typedef struct board {
    mur_hal hal;
    uint64_t random; /* 0: every instruction is done at once */
    uint32_t submitted[MUR_ENGINES], completed[MUR_ENGINES];
    uint32_t log[LOG_INSNS][MUR_MAX_WORDS], logged;
} board;

static mur_status submit(board *b, enum mur_engine engine, const uint32_t *words)
{
    static const uint8_t counts[256] = {
#define MUR_INSN(name, opcode, words, engine, meaning) [opcode] = words,
#include "mur_isa.def"
    };

    if (b->random && engine != MUR_CPU && random_next(&b->random) % 2)
        return MUR_YIELD;
    CHECK(b->logged < LOG_INSNS);
    memset(b->log[b->logged], 0, sizeof(b->log[0]));
    memcpy(b->log[b->logged++], words, 4 * counts[words[0] & 0xff]);
    b->submitted[engine]++;
    return MUR_OK;
}

static mur_status board_dma(void *arg, const uint32_t *words)
{
    return submit(arg, MUR_DMA, words);
}

static mur_status board_accel(void *arg, const uint32_t *words)
{
    return submit(arg, MUR_ACC, words);
}

static mur_status board_host(void *arg, const uint32_t *words)
{
    return submit(arg, MUR_CPU, words);
}

static uint32_t board_completed(void *arg, enum mur_engine engine)
{
    board *b = arg;

    if (!b->random || random_next(&b->random) % 3 == 0) {
        if (b->completed[engine] != b->submitted[engine])
            b->completed[engine] = b->random ? b->completed[engine] + 1 : b->submitted[engine];
    }
    return b->completed[engine];
}

/* counters begin anywhere: `first` */
static void board_init(board *b, uint64_t random, uint32_t first)
{
    memset(b, 0, sizeof(*b));
    b->hal = (mur_hal){ b, board_dma, board_accel, board_host, board_completed, NULL, NULL };
    b->random = random;
    for (uint32_t e = 0; e < MUR_ENGINES; e++)
        b->submitted[e] = b->completed[e] = first;
}

static void build(const char *text)
{
    mur_status status;

    f.entry_count = f.words = 0;
    fixture_entry(&f, 1, 8, text);
    CHECK_EQ(fixture_build(&f), MUR_OK);
    status = mur_verify(&f.program, &f.verifier);
    if (status != MUR_OK)
        fail_msg("refused at word %u for reason %d", f.verifier.verdict.word,
                 (int)f.verifier.verdict.reason);
}

static void run_on(board *b, uint32_t pos, uint32_t m)
{
    mur_run_state run;
    mur_status status;
    uint32_t calls = 0;

    CHECK_EQ(mur_start(&run, &f.program, &b->hal, 0, pos, m), MUR_OK);
    while ((status = mur_run(&run)) == MUR_YIELD) {
        CHECK(++calls < 1000000);
        for (uint32_t e = 0; b->hal.counts && e < MUR_CPU; e++)
            board_completed(b, (enum mur_engine)e); /* an interrupt */
    }
    CHECK_EQ(status, MUR_OK);
    CHECK(run.done);
    CHECK_EQ(mur_run(&run), MUR_OK); /* and stays so */
}

/* ---- meaning ---- */

/* each line: an instruction's words, as SPEC section 4 lays them out */
static void a_program_resolves_to_the_words_its_inputs_ask_for(void **state)
{
    static board b;
    uint32_t pos = 37, m = 5, at = 0;

    (void)state;
    fixture_init(&f);
    build("r4 = MUL r0 #16\n"
          "LD addr=64 buf=2 region=2 off=r4 len=24 sig=3\n"
          "FOR r5 r1 8\n"
          "  r6 = MUL r5 #32\n"
          "  r7 = ADD r6 #100\n"
          "  r8 = EQ r5 #0\n"
          "  FOR r9 2\n"
          "    r10 = MUL r9 #8\n"
          "    MM saddr=r6 rows=1 waddr=r10 cols=8 wlen=20 src=1 acc=r8 wsrc=2 terms=2 daddr=r7 "
          "spitch=2 dpitch=3 k=4 wait=3\n"
          "  NEXT\n"
          "NEXT\n"
          "r5 = SUB r1 #5\n"
          "FOR r6 r5 3\n"
          "  ROPE rows=1\n"
          "NEXT\n");
    board_init(&b, 0, 0);
    run_on(&b, pos, m);
    CHECK_EQ(b.log[at][0], 0x01 | 4u << 8);
    CHECK_EQ(b.log[at][1], 64 | MUR_W0 << 20 | MUR_KV << 23);
    CHECK_EQ(b.log[at][2], pos * 16);
    CHECK_EQ(b.log[at++][3], 24);
    for (uint32_t i = 0; i < m; i++)
        for (uint32_t j = 0; j < 2; j++, at++) {
            CHECK_EQ(b.log[at][0], 0x10 | 1u << 19);
            CHECK_EQ(b.log[at][1], 32 * i | 1u << 20);
            CHECK_EQ(b.log[at][2], 8 * j | 8u << 20);
            CHECK_EQ(b.log[at][3], 20 | 1u << 20 | 2u << 23 | (i == 0 ? 1u << 26 : 0) | 2u << 27);
            CHECK_EQ(b.log[at][4], 100 + 32 * i);
            CHECK_EQ(b.log[at][5], 2 | 3u << 16);
            CHECK_EQ(b.log[at][6], 4);
        }
    CHECK_EQ(b.logged, at); /* m - 5 is 0: no ROPE */
}

static uint32_t value_of(const char *expression, uint32_t pos, uint32_t m)
{
    static board b;
    char text[256];

    snprintf(text, sizeof(text),
             "r4 = ADD r0 #1000\nr5 = MUL r0 #0\nr9 = %s\nr9 = MIN r9 #4000\n"
             "LD addr=0 buf=4 region=0 off=0 len=r9",
             expression);
    build(text);
    board_init(&b, 0, 0);
    run_on(&b, pos, m);
    return b.log[0][3];
}

static void operators_do_what_their_table_says(void **state)
{
    static const uint32_t values[] = { 3, 3, 10, 110 };

    (void)state;
    fixture_init(&f);
    fixture_table(&f, 4, values);
    CHECK_EQ(value_of("ADD r0 r1", 30, 7), 37);
    CHECK_EQ(value_of("SUB r0 #7", 30, 7), 23);
    CHECK_EQ(value_of("SUB r1 r0", 30, 7), 0);
    CHECK_EQ(value_of("MUL r0 r1", 30, 7), 210);
    CHECK_EQ(value_of("CDIV r0 #7", 30, 7), 5);
    CHECK_EQ(value_of("CDIV r0 #6", 30, 7), 5);
    CHECK_EQ(value_of("CDIV r0 #6", 0, 7), 0);
    CHECK_EQ(value_of("CDIV r4 #3", 23, 1), 341);
    CHECK_EQ(value_of("DIV r0 #7", 30, 7), 4);
    CHECK_EQ(value_of("MOD r0 #7", 30, 7), 2);
    CHECK_EQ(value_of("MIN r0 r1", 30, 7), 7);
    CHECK_EQ(value_of("MIN r0 r1", 3, 7), 3);
    CHECK_EQ(value_of("MAX r0 r1", 30, 7), 30);
    CHECK_EQ(value_of("AND r0 #21", 30, 7), 20);
    CHECK_EQ(value_of("EQ r0 #30", 30, 7), 1);
    CHECK_EQ(value_of("EQ r0 #31", 30, 7), 0);
    CHECK_EQ(value_of("LT r0 #31", 30, 7), 1);
    CHECK_EQ(value_of("LT r0 #30", 30, 7), 0);
    CHECK_EQ(value_of("SHL r0 #3", 30, 7), 240);
    CHECK_EQ(value_of("SHR r0 #2", 30, 7), 7);
    CHECK_EQ(value_of("SEL r0 r4 r1", 30, 7), 1030);
    CHECK_EQ(value_of("SEL r5 r4 r1", 30, 7), 7);
    /* LDT2 writes its slot and the next */
    CHECK_EQ(value_of("TABLE r5 #0", 30, 7), 3);
    CHECK_EQ(value_of("MUL r5 #1\nr11 = ADD r5 #1\nr9 = TABLE r11 #0\nr9 = ADD r10 #0", 30, 7), 7);
    CHECK_EQ(value_of("MUL r5 #1\nr11 = ADD r5 #2\nr9 = TABLE r11 #0\nr9 = ADD r10 #0", 30, 7),
             100);
}

static void an_instruction_waits_for_its_tokens_and_the_end_for_all(void **state)
{
    static board b;
    mur_run_state run;

    (void)state;
    fixture_init(&f);
    build("LD addr=0 buf=2 region=0 off=0 len=8 sig=2\n"
          "LD addr=0 buf=3 region=0 off=0 len=8\n"
          "MM src=0 wsrc=2 wlen=8 terms=1 wait=2,7\n");
    board_init(&b, 0, 0);
    b.random = 1;
    CHECK_EQ(mur_start(&run, &f.program, &b.hal, 0, 0, 1), MUR_OK);
    b.hal.completed = machine_completed; /* counts only what the test completes */
    machine stopped;
    machine_init(&stopped, &f.program);
    b.hal.arg = &stopped;
    b.hal.dma = machine_dma;
    b.hal.accel = machine_accel;
    CHECK_EQ(mur_run(&run), MUR_YIELD);
    CHECK_EQ(stopped.submitted[MUR_DMA], 2);
    CHECK_EQ(stopped.submitted[MUR_ACC], 0);
    stopped.completed[MUR_DMA] = 1; /* token 2; token 7 stands for nothing and is complete */
    CHECK_EQ(mur_run(&run), MUR_YIELD);
    CHECK_EQ(stopped.submitted[MUR_ACC], 1);
    CHECK(!run.done);
    stopped.completed[MUR_DMA] = 2;
    CHECK_EQ(mur_run(&run), MUR_YIELD);
    stopped.completed[MUR_ACC] = 1;
    CHECK_EQ(mur_run(&run), MUR_OK);
    CHECK(run.done);
    CHECK(!stopped.violation);
}

static const char busy_program[] =
    "EMBED seq=0 k=8 rows=r1 cols=9 dst=64 sig=11\n"
    "LD addr=0 buf=4 region=3 off=64 len=32 sig=8 wait=11\n"
    "FOR r4 r1 8\n"
    "  r5 = MUL r4 #16\n"
    "  LD addr=0 buf=2 region=0 off=r5 len=16 sig=0 wait=4\n"
    "  LD addr=1024 buf=2 region=0 off=r5 len=16 sig=1 wait=5\n"
    "  MM saddr=0 rows=r1 wsrc=2 waddr=0 wlen=16 cols=8 daddr=128 dpitch=8 terms=1 k=4 sig=4 "
    "wait=0,8,10\n"
    "  MM saddr=0 rows=r1 wsrc=2 waddr=1024 wlen=16 cols=8 daddr=128 dpitch=8 terms=1 k=4 acc=1 "
    "sig=5 wait=1,8,10\n"
    "  QUANT saddr=128 rows=r1 spitch=8 k=8 dst=1 daddr=0 dpitch=9 terms=2 sig=9\n"
    "  ST addr=0 buf=1 region=2 off=r5 len=16 sig=10 wait=9\n"
    "NEXT\n";

static void a_slow_board_gets_the_same_program(void **state)
{
    static board eager, slow;

    (void)state;
    fixture_init(&f);
    f.meta.io_bytes = 4096;
    build(busy_program);
    board_init(&eager, 0, 0);
    run_on(&eager, 3, 7);
    CHECK_EQ(eager.logged, 2 + 7 * 6);
    for (uint64_t seed = 1; seed < 200; seed++) {
        /* near the wrap of the counters, too */
        board_init(&slow, seed, seed % 2 ? UINT32_MAX - 20 : 0x7ffffff0);
        if (seed % 3 == 0) { /* not asked: the counts are in memory */
            slow.hal.counts = slow.completed;
            slow.hal.completed = NULL;
        }
        run_on(&slow, 3, 7);
        CHECK_EQ(slow.logged, eager.logged);
        CHECK_EQ(memcmp(slow.log, eager.log, sizeof(eager.log)), 0);
    }
}

static void inputs_out_of_range_are_refused(void **state)
{
    static board b;
    mur_run_state run;

    (void)state;
    fixture_init(&f);
    build("END");
    board_init(&b, 0, 0);
    CHECK_EQ(mur_start(&run, &f.program, &b.hal, 0, 0, 0), MUR_E_INPUT);
    CHECK_EQ(mur_start(&run, &f.program, &b.hal, 0, 0, 9), MUR_E_INPUT);
    CHECK_EQ(mur_start(&run, &f.program, &b.hal, 0, 56, 8), MUR_OK);
    CHECK_EQ(mur_start(&run, &f.program, &b.hal, 0, 57, 8), MUR_E_INPUT);
    CHECK_EQ(mur_start(&run, &f.program, &b.hal, 0, UINT32_MAX, 8), MUR_E_INPUT);
    CHECK_EQ(mur_start(&run, &f.program, &b.hal, 1, 0, 1), MUR_E_INPUT);
    f.program.steps = 0;
    CHECK_EQ(mur_start(&run, &f.program, &b.hal, 0, 0, 1), MUR_E_VERIFY);
}

/* a program in memory that changes after it was verified */
static void a_changed_program_still_ends_and_stays_in_its_regions(void **state)
{
    static board b;
    mur_run_state run;
    uint32_t *code;

    (void)state;
    fixture_init(&f);
    build("FOR r4 3\nNEXT\nLD addr=0 buf=2 region=1 off=0 len=8");
    code = (uint32_t *)(uintptr_t)f.program.code;
    board_init(&b, 0, 0);
    code[1] = 1000000;
    CHECK_EQ(mur_start(&run, &f.program, &b.hal, 0, 0, 1), MUR_OK);
    CHECK_EQ(mur_run(&run), MUR_E_FAULT);
    code[1] = 3;
    code[7] = f.parm_bytes - 7; /* off */
    CHECK_EQ(mur_start(&run, &f.program, &b.hal, 0, 0, 1), MUR_OK);
    CHECK_EQ(mur_run(&run), MUR_E_FAULT);
    CHECK_EQ(b.logged, 0);
    code[7]--;
    CHECK_EQ(mur_start(&run, &f.program, &b.hal, 0, 0, 1), MUR_OK);
    CHECK_EQ(mur_run(&run), MUR_OK);
}

/* ---- the file ---- */

static void checksums_are_those_of_the_world(void **state)
{
    (void)state;
    CHECK_EQ(mur_crc32(0, "123456789", 9), 0xcbf43926);
    CHECK_EQ(mur_crc32(mur_crc32(0, "1234", 4), "56789", 5), 0xcbf43926);
}

static void a_file_gives_its_sections(void **state)
{
    mur_mach mach;

    (void)state;
    fixture_init(&f);
    build(busy_program);
    CHECK_EQ(f.program.meta->vocabulary, 100);
    CHECK_EQ(f.program.region_bytes[MUR_WGTS], 4096);
    CHECK_EQ(f.program.region_bytes[MUR_PARM], 1024);
    CHECK_EQ(f.program.section[MUR_SECTION_TOKN] == NULL, 1);
    CHECK_EQ(mur_check(&f.program, NULL), MUR_OK);
    CHECK_EQ(mur_find_entry(&f.program, MUR_ENTRY_PREFILL, 8), 0);
    CHECK_EQ(mur_find_entry(&f.program, MUR_ENTRY_PREFILL, 9), 1);
    CHECK_EQ(mur_find_entry(&f.program, MUR_ENTRY_DECODE, 1), 1);
    mach = f.mach;
    CHECK_EQ(mur_fits(&f.program, &mach), MUR_OK);
    mach.gb /= 2;
    CHECK_EQ(mur_fits(&f.program, &mach), MUR_E_MACHINE);
}

/* Every byte changed, every length: refused by one of the checks, or the change is of no section's
 * concern; never accepted in silence. */
static void damage_is_found(void **state)
{
    mur_program program;

    (void)state;
    fixture_init(&f);
    f.wgts_bytes = f.parm_bytes = 64;
    build("LD addr=0 buf=2 region=1 off=0 len=8");
    for (uint32_t i = 0; i < f.image_bytes; i++) {
        f.image[i] ^= 0x10;
        if (mur_open(&program, f.image, f.image_bytes) == MUR_OK)
            CHECK_EQ(mur_check(&program, NULL), MUR_E_MALFORMED);
        f.image[i] ^= 0x10;
        CHECK_EQ(mur_open(&program, f.image, i), MUR_E_MALFORMED);
    }
    CHECK_EQ(mur_open(&program, f.image, f.image_bytes), MUR_OK);
    CHECK_EQ(mur_open(&program, f.image, sizeof(f.image)), MUR_OK); /* a larger flash */
    CHECK_EQ(mur_open(&program, f.image + 4, f.image_bytes), MUR_E_MALFORMED);
}

static void damage_is_named(void **state)
{
    enum mur_section section = MUR_SECTION_GOLD;

    (void)state;
    fixture_init(&f);
    build("END");
    f.image[f.program.section[MUR_SECTION_WGTS] - f.image + 7] ^= 1;
    CHECK_EQ(mur_check(&f.program, &section), MUR_E_MALFORMED);
    CHECK_EQ(section, MUR_SECTION_WGTS);
}

static mur_header *header(void)
{
    return (mur_header *)(void *)f.image;
}

static mur_place *place(int i)
{
    return (mur_place *)(void *)(f.image + sizeof(mur_header)) + i;
}

static mur_status reopened(void)
{
    fixture_seal(&f);
    return mur_open(&f.program, f.image, f.image_bytes);
}

/* with all checksums right */
static void headers_that_contradict_themselves_are_refused(void **state)
{
    (void)state;
#define REFUSED_WITH(status, change) \
    do { \
        fixture_init(&f); \
        f.gold_count = 1; \
        build("END"); \
        change; \
        CHECK_EQ(reopened(), status); \
    } while (0)
    REFUSED_WITH(MUR_OK, (void)0);
    REFUSED_WITH(MUR_E_MALFORMED, header()->magic ^= 1);
    REFUSED_WITH(MUR_E_UNSUPPORTED, header()->version = MUR_VERSION_MAJOR + 1);
    REFUSED_WITH(MUR_E_UNSUPPORTED, header()->version |= (MUR_VERSION_MINOR + 1u) << 16);
    REFUSED_WITH(MUR_OK, header()->version |= (uint32_t)MUR_VERSION_MINOR << 16);
    REFUSED_WITH(MUR_E_MALFORMED, header()->zero9 = 1);
    REFUSED_WITH(MUR_E_MALFORMED, header()->bytes--);
    REFUSED_WITH(MUR_E_MALFORMED, header()->bytes++);
    REFUSED_WITH(MUR_E_MALFORMED, header()->fingerprint_high ^= 1);
    REFUSED_WITH(MUR_E_MALFORMED, header()->sections = 7);
    REFUSED_WITH(MUR_E_MALFORMED, place(3)->type = place(4)->type);
    REFUSED_WITH(MUR_E_MALFORMED, place(3)->type ^= 1);
    REFUSED_WITH(MUR_E_MALFORMED, place(3)->offset += 4);
    REFUSED_WITH(MUR_E_MALFORMED, place(3)->offset = place(2)->offset);
    REFUSED_WITH(MUR_E_MALFORMED, place(3)->bytes = 0xfffffff0);
    REFUSED_WITH(MUR_E_MALFORMED, place(0)->bytes += 4);
    REFUSED_WITH(MUR_E_MALFORMED, place(4)->bytes -= 4);
    REFUSED_WITH(MUR_E_MALFORMED, place(7)->offset = 0xfffffff0);
#undef REFUSED_WITH
}

static void words_out_of_their_ranges_are_refused(void **state)
{
    (void)state;
#define REFUSED_WITH(change) \
    do { \
        fixture_init(&f); \
        f.entry_count = f.words = 0; \
        fixture_entry(&f, 1, 1, "END"); \
        fixture_entry(&f, 1, 8, "END"); \
        CHECK_EQ(fixture_build(&f), MUR_OK); \
        change; \
        CHECK_EQ(fixture_build(&f), MUR_E_MALFORMED); \
    } while (0)
    REFUSED_WITH(f.mach.isa = 2);
    REFUSED_WITH(f.mach.gb = (1 << 20) + 1);
    REFUSED_WITH(f.mach.rows = 7); /* below the model's */
    REFUSED_WITH(f.meta.context = 0);
    REFUSED_WITH(f.meta.context = 7); /* below rows */
    REFUSED_WITH(f.meta.vocabulary = 0);
    REFUSED_WITH(f.meta.terms_q = 3);
    REFUSED_WITH(f.meta.logits = 2);
    REFUSED_WITH(f.meta.logits = 4096 - 396);
    REFUSED_WITH(f.meta.embedded = 4096 - 252);
    REFUSED_WITH(f.meta.io_bytes = 28);
    REFUSED_WITH(f.entries[0].kind = 0);
    REFUSED_WITH(f.entries[0].min_m = 0);
    REFUSED_WITH(f.entries[1].min_m = 9);
    REFUSED_WITH(f.entries[1].max_m = 9);
    REFUSED_WITH(f.entries[1].words = 2);
    REFUSED_WITH(f.entries[1].words = 0);
    REFUSED_WITH(f.entries[1].start = 0);
    REFUSED_WITH(f.entries[0].start = 0xffffffff);
    REFUSED_WITH(f.entry_count = 0);
    REFUSED_WITH(f.table_words = 1);
    REFUSED_WITH(f.tables[0] = 1);
    REFUSED_WITH(f.tables[0] = 0xffffffff);
    REFUSED_WITH(f.tables[1] = 1);
#undef REFUSED_WITH
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_resolves_to_the_words_its_inputs_ask_for),
        cmocka_unit_test(operators_do_what_their_table_says),
        cmocka_unit_test(an_instruction_waits_for_its_tokens_and_the_end_for_all),
        cmocka_unit_test(a_slow_board_gets_the_same_program),
        cmocka_unit_test(inputs_out_of_range_are_refused),
        cmocka_unit_test(a_changed_program_still_ends_and_stays_in_its_regions),
        cmocka_unit_test(checksums_are_those_of_the_world),
        cmocka_unit_test(a_file_gives_its_sections),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(damage_is_named),
        cmocka_unit_test(headers_that_contradict_themselves_are_refused),
        cmocka_unit_test(words_out_of_their_ranges_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
