/* The verifier: every reason to refuse, provoked alone; bounds on both sides; hazards. */
#include "program_fixture.h"

static const char *const reasons[] = {
#define MUR_REASON(name, operand, sentence) #name,
#include "mur_reasons.def"
#undef MUR_REASON
};

static int seen[MUR_REASONS];
static hand_program f;

static enum mur_reason judge(void)
{
    mur_status status;

    CHECK_EQ(fixture_build(&f), MUR_OK);
    status = mur_verify(&f.program, &f.verifier);
    CHECK_EQ(status, f.verifier.verdict.reason == MUR_REASON_NONE ? MUR_OK : MUR_E_VERIFY);
    CHECK_EQ(f.program.steps != 0, status == MUR_OK);
    seen[f.verifier.verdict.reason] = 1;
    return f.verifier.verdict.reason;
}

/* one entry, m in 1..8, pos in 0..63 */
static enum mur_reason judge_text(const char *text)
{
    f.entry_count = f.words = 0;
    fixture_entry(&f, 1, 8, text);
    return judge();
}

#define ACCEPTED(text) \
    do { \
        enum mur_reason got_ = judge_text(text); \
        if (got_ != MUR_REASON_NONE) \
            fail_msg("refused at word %u: %s\n%s", f.verifier.verdict.word, reasons[got_], text); \
    } while (0)

/* refused for this reason, at the item that begins at this word */
#define REFUSED(why, at, text) \
    do { \
        enum mur_reason got_ = judge_text(text); \
        if (got_ != MUR_REASON_##why || f.verifier.verdict.word != (at)) \
            fail_msg("wanted %s at %u, got %s at %u\n%s", #why, (unsigned)(at), reasons[got_], \
                     f.verifier.verdict.word, text); \
    } while (0)

static void start(void)
{
    fixture_init(&f);
}

/* ---- items ---- */

static void the_empty_program_is_accepted(void **state)
{
    (void)state;
    start();
    ACCEPTED("END");
    CHECK_EQ(f.verifier.verdict.steps, 1);
}

static void code_that_does_not_end_is_refused(void **state)
{
    (void)state;
    start();
    REFUSED(CUT, 2, "r4 = ADD r0 #1\nWORD 1"); /* INST alone */
    f.entry_count = f.words = 0;
    fixture_entry(&f, 1, 8, "r4 = ADD r0 #1\nEND");
    f.entries[0].words = 2; /* END is left out */
    CHECK_EQ(judge(), MUR_REASON_CUT);
    f.entries[0].words = 1; /* in the middle of EVAL */
    CHECK_EQ(judge(), MUR_REASON_CUT);
    REFUSED(CUT, 0, "END\nEND");
    REFUSED(CUT, 0, "WORD 0x401\nWORD 1\nWORD 0\nWORD 0"); /* LD without its last word */
    REFUSED(CUT, 0, "WORD 0x10003\nWORD 1");               /* FOR without its last word */
}

static void unknown_items_are_refused(void **state)
{
    (void)state;
    start();
    REFUSED(ITEM, 0, "WORD 0");
    REFUSED(ITEM, 0, "WORD 6");
    REFUSED(ITEM, 0, "WORD 0x1401\nWORD 1\nWORD 0\nWORD 0\nWORD 0\nWORD 5"); /* bit 12 of INST */
    REFUSED(ITEM, 0, "WORD 0x20000003\nWORD 1\nWORD 0\nWORD 4\nWORD 5");
    REFUSED(ITEM, 0, "WORD 0x14\nWORD 5");
    REFUSED(ITEM, 0, "WORD 0x15");
    REFUSED(ITEM, 0, "WORD 0x20001012\nWORD 0\nWORD 5"); /* bit 29 of EVAL */
    REFUSED(ITEM, 0, "WORD 0x1002\nWORD 0\nWORD 5");     /* op 0 */
    REFUSED(ITEM, 0, "WORD 0x1102\nWORD 0\nWORD 5");     /* op 16, SPAN */
}

static void unknown_instructions_are_refused(void **state)
{
    (void)state;
    start();
    REFUSED(OPCODE, 0, "WORD 0x401\nWORD 3\nWORD 0\nWORD 0\nWORD 0\nWORD 5");
    REFUSED(LENGTH, 0, "WORD 0x301\nWORD 1\nWORD 0\nWORD 0\nWORD 5");
    REFUSED(LENGTH, 0, "WORD 0x501\nWORD 1\nWORD 0\nWORD 0\nWORD 0\nWORD 0\nWORD 5");
    REFUSED(LENGTH, 0, "WORD 0x001\nWORD 1\nWORD 5");
}

static void bits_that_no_field_names_are_refused(void **state)
{
    (void)state;
    start();
    REFUSED(BITS, 0, "WORD 0x401\nWORD 0x2001\nWORD 0\nWORD 0\nWORD 0\nWORD 5");
    REFUSED(BITS, 0, "WORD 0x401\nWORD 1\nWORD 0x04000000\nWORD 0\nWORD 0\nWORD 5");
    REFUSED(BITS, 0, "WORD 0x401\nWORD 1\nWORD 0\nWORD 0\nWORD 0x01000000\nWORD 5");
    REFUSED(BITS, 0, "LD addr=0 buf=0 region=0 off=0 len=0 sig=16"); /* there are 16 tokens */
}

static void a_patch_is_exactly_one_field(void **state)
{
    (void)state;
    start();
    ACCEPTED("WORD 0x411\nWORD 1\nWORD 0\nWORD 0\nWORD 0\nWORD 0x300304\nWORD 5");
    REFUSED(PATCH, 0, "WORD 0x411\nWORD 1\nWORD 0\nWORD 0\nWORD 0\nWORD 0x2e0304\nWORD 5");
    REFUSED(PATCH, 0, "WORD 0x411\nWORD 1\nWORD 0\nWORD 0\nWORD 0\nWORD 0x301304\nWORD 5");
    REFUSED(PATCH, 0, "WORD 0x411\nWORD 1\nWORD 0\nWORD 0\nWORD 0\nWORD 0x300404\nWORD 5");
    REFUSED(PATCH, 0, "WORD 0x411\nWORD 1\nWORD 0\nWORD 0\nWORD 0\nWORD 0xb00304\nWORD 5");
    REFUSED(PATCH, 0, "WORD 0x411\nWORD 1\nWORD 0\nWORD 0\nWORD 0\nWORD 0x100004\nWORD 5");
    REFUSED(PATCH, 0, "WORD 0x411\nWORD 1\nWORD 0\nWORD 0\nWORD 0\nWORD 0x300305\nWORD 5");
    /* the same field twice, and an earlier one behind a later one */
    REFUSED(PATCH, 0, "LD addr=0 buf=0 region=0 off=0 len=r1 len=r1");
    ACCEPTED("WORD 0x421\nWORD 1\nWORD 0\nWORD 0\nWORD 0\nWORD 0x280104\nWORD 0x300304\nWORD 5");
    REFUSED(PATCH, 0,
            "WORD 0x421\nWORD 1\nWORD 0\nWORD 0\nWORD 0\nWORD 0x300304\nWORD 0x280104\nWORD 5");
}

/* ---- slots ---- */

static void slots_are_written_before_they_are_read(void **state)
{
    (void)state;
    start();
    ACCEPTED("r4 = ADD r0 r1\nr5 = ADD r4 r2");
    ACCEPTED("r4 = ADD r3 #1");
    REFUSED(UNWRITTEN, 0, "r5 = ADD r4 #1");
    CHECK_EQ(f.verifier.verdict.operand, 4);
    REFUSED(UNWRITTEN, 0, "r4 = ADD r0 r5");
    REFUSED(UNWRITTEN, 0, "r4 = SEL r0 r1 r7");
    REFUSED(UNWRITTEN, 0, "r4 = SEL r0 r1 r64");
    REFUSED(UNWRITTEN, 0, "FOR r4 r9 3\nNEXT");
    REFUSED(UNWRITTEN, 0, "LD addr=0 buf=0 region=0 off=0 len=r9");
}

static void a_loop_keeps_its_slots_to_itself(void **state)
{
    (void)state;
    start();
    ACCEPTED("FOR r4 3\nr5 = ADD r4 r0\nr5 = ADD r5 #1\nNEXT\nFOR r4 2\nr5 = ADD r4 #1\nNEXT");
    REFUSED(UNWRITTEN, 6, "FOR r4 3\nr5 = ADD r4 r0\nNEXT\nr6 = ADD r5 #1");
    REFUSED(UNWRITTEN, 4, "FOR r4 3\nNEXT\nr6 = ADD r4 #1");
    /* from the round before */
    REFUSED(UNWRITTEN, 3, "FOR r4 3\nr6 = ADD r5 #1\nr5 = ADD r4 #1\nNEXT");
    REFUSED(SCOPE, 5, "r5 = ADD r0 #1\nFOR r4 3\nr5 = ADD r5 #1\nNEXT");
    CHECK_EQ(f.verifier.verdict.operand, 5);
    REFUSED(SCOPE, 3, "FOR r4 3\nr4 = ADD r4 #1\nNEXT");
    REFUSED(SCOPE, 0, "r0 = ADD r1 #1");
    REFUSED(SCOPE, 2, "r4 = ADD r0 #1\nFOR r4 3\nNEXT");
    REFUSED(SCOPE, 3, "FOR r4 3\nFOR r4 3\nNEXT\nNEXT");
}

static void values_stay_within_32_bits(void **state)
{
    (void)state;
    start();
    ACCEPTED("r4 = ADD r2 #0xffffffbf\n");
    REFUSED(OVERFLOW, 0, "r4 = ADD r2 #0xffffffc0");
    ACCEPTED("r4 = MUL r0 #0x4104104");
    REFUSED(OVERFLOW, 0, "r4 = MUL r0 #0x4104105");
    ACCEPTED("r4 = SHL r0 #26");
    REFUSED(OVERFLOW, 0, "r4 = SHL r0 #27");
    CHECK_EQ(f.verifier.verdict.operand, 4);
    ACCEPTED("r4 = SUB r0 #100"); /* saturates */
}

static void right_operands_are_those_that_have_a_result(void **state)
{
    (void)state;
    start();
    REFUSED(RIGHT, 0, "r4 = DIV r0 #0");
    REFUSED(RIGHT, 0, "r4 = CDIV r0 #0");
    REFUSED(RIGHT, 0, "r4 = MOD r0 #0");
    REFUSED(RIGHT, 0, "r4 = SHL r0 #32");
    REFUSED(RIGHT, 0, "r4 = SHR r0 #32");
    ACCEPTED("r4 = SHR r0 #31");
}

/* SPEC section 5: where the right operand may be, and that what is not used is 0 */
static void evaluations_have_the_form_of_their_operator(void **state)
{
    static const char *const wrong[] = {
        "r4 = DIV r0 r1",
        "r4 = CDIV r0 r1",
        "r4 = MOD r0 r1",
        "r4 = SHL r0 r1",
        "r4 = SHR r0 r1",
        "r4 = SEL r0 #1",
        "WORD 0x10401012\nWORD 1\nWORD 5", /* r4 = ADD r0 #1, and b is 1 */
        "WORD 0x401012\nWORD 1\nWORD 5",   /* r4 = ADD r0 r1, and w1 is 1 */
        "WORD 0x4010f2\nWORD 0\nWORD 5",   /* r4 = TABLE r0 #0, and b is 1 */
        "WORD 0x100010f2\nWORD 0\nWORD 5", /* and bit 28 */
    };

    (void)state;
    start();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        REFUSED(ITEM, 0, wrong[i]);
    REFUSED(ITEM, 0, "WORD 0x10443\nWORD 1\nWORD 0\nWORD 4\nWORD 5"); /* FOR r4 1, slot 1 */
}

/* ---- intervals ---- */

/* The lines write r9 in lo..hi: so says the verifier's slot, and a transfer of r9 bytes that just
 * fits its region. */
static void range_is(const char *lines, uint32_t lo, uint32_t hi)
{
    int loop = strncmp(lines, "FOR", 3) == 0;
    char text[512];

    snprintf(text, sizeof(text), "%s\nLD addr=0 buf=4 region=2 off=0 len=r9\n%s", lines,
             loop ? "NEXT" : "");
    f.meta.kv_bytes = hi;
    ACCEPTED(text);
    CHECK_EQ(f.verifier.slot[9].lo, lo);
    CHECK_EQ(f.verifier.slot[9].hi, hi);
    f.meta.kv_bytes = hi - 1;
    CHECK_EQ(judge_text(text), MUR_REASON_BOUNDS);
    CHECK_EQ(f.verifier.verdict.value, hi);
}

static void ranges_are_those_of_the_specification(void **state)
{
    (void)state;
    start(); /* r0 0..63, r1 1..8, r2 1..64 */
    range_is("r9 = ADD r0 r1", 1, 71);
    range_is("r9 = SUB r2 r1", 0, 63);
    range_is("r9 = SUB r2 #60", 0, 4);
    range_is("r4 = ADD r1 #10\nr9 = SUB r4 r1", 3, 17);
    range_is("r9 = MUL r1 r2", 1, 512);
    range_is("r9 = CDIV r0 #10", 0, 7);
    range_is("r9 = DIV r0 #10", 0, 6);
    range_is("r9 = MOD r0 #10", 0, 9);
    range_is("r9 = MOD r1 #10", 0, 8);
    range_is("r9 = MIN r0 r1", 0, 8);
    range_is("r9 = MAX r0 r1", 1, 63);
    range_is("r9 = AND r0 #5", 0, 5);
    range_is("r9 = EQ r0 r1", 0, 1);
    range_is("r9 = LT r0 r1", 0, 1);
    range_is("r9 = SHL r1 #3", 8, 64);
    range_is("r9 = SHR r0 #2", 0, 15);
    range_is("r9 = SEL r0 r1 r2", 1, 64);
    range_is("r4 = ADD r1 #100\nr9 = SEL r0 r1 r4", 1, 108);
    range_is("FOR r4 5\nr9 = MUL r4 #7", 0, 28);
    range_is("FOR r4 r1 8\nr9 = ADD r4 #0", 0, 7);
}

/* ---- tables ---- */

static void tables_are_read_within_their_ends(void **state)
{
    static const uint32_t values[] = { 0, 100, 250, 300, 1000 };

    (void)state;
    start();
    fixture_table(&f, 5, values);
    fixture_table(&f, 3, values);
    ACCEPTED("FOR r4 4\nr5 = TABLE r4 #0\nLD addr=0 buf=4 region=0 off=r5 len=r6\nNEXT");
    ACCEPTED("FOR r4 2\nr5 = TABLE r4 #1\nNEXT");
    REFUSED(FALLS, 3, "FOR r4 5\nr5 = TABLE r4 #0\nNEXT"); /* the second begins lower */
    REFUSED(INDEX, 3, "FOR r4 3\nr5 = TABLE r4 #1\nNEXT");
    CHECK_EQ(f.verifier.verdict.value, 11); /* n, three starts, 5 words, 3 words: words 0..11 */
    CHECK_EQ(f.verifier.verdict.limit, 10);
    REFUSED(INDEX, 0, "r5 = TABLE r0 #0");
    REFUSED(INDEX, 0, "WORD 0x110f2\nWORD 0xffffffff\nWORD 5"); /* r4 = TABLE r1; no wrap */
    REFUSED(SCOPE, 3, "FOR r4 3\nr63 = TABLE r4 #0\nNEXT");     /* dst + 1 is not a slot */
    /* start 0..300 and span 50..700 */
    f.wgts_bytes = 1000;
    ACCEPTED("FOR r4 4\nr5 = TABLE r4 #0\nLD addr=0 buf=4 region=0 off=r5 len=64\nNEXT");
    f.wgts_bytes = 363;
    REFUSED(BOUNDS, 5, "FOR r4 4\nr5 = TABLE r4 #0\nLD addr=0 buf=4 region=0 off=r5 len=64\nNEXT");
    f.wgts_bytes = 700;
    ACCEPTED("FOR r4 4\nr5 = TABLE r4 #0\nLD addr=0 buf=4 region=0 off=0 len=r6\nNEXT");
    f.wgts_bytes = 699;
    REFUSED(BOUNDS, 5, "FOR r4 4\nr5 = TABLE r4 #0\nLD addr=0 buf=4 region=0 off=0 len=r6\nNEXT");
}

static void tables_that_fall_are_refused_where_they_are_read(void **state)
{
    static const uint32_t values[] = { 0, 100, 90, 300 };

    (void)state;
    start();
    fixture_table(&f, 4, values);
    ACCEPTED("FOR r4 1\nr5 = TABLE r4 #0\nNEXT");
    REFUSED(FALLS, 3, "FOR r4 3\nr5 = TABLE r4 #0\nNEXT");
}

/* ---- fields ---- */

static void patched_values_fit_their_fields(void **state)
{
    (void)state;
    start();
    f.meta.io_bytes = 1u << 26;
    ACCEPTED("r4 = MUL r0 #1000\nr5 = MIN r4 #4095\nQUANT saddr=0 rows=0 daddr=0 dst=0 terms=1 "
             "k=8 spitch=r4 dpitch=0");
    /* a slot is added to the field's own number */
    ACCEPTED("LD addr=r1+1000 buf=0 region=0 off=0 len=0");
    REFUSED(FIT, 0, "LD addr=r1+0xffff8 buf=0 region=0 off=0 len=0");
    CHECK_EQ(f.verifier.verdict.value, 0x100000);
    REFUSED(FIT, 0, "LD addr=0 buf=0 region=0 off=r1+0xffffffff len=0");
    REFUSED(HIGH, 0,
            "SMAX saddr=0 rows=1 taddr=0 group=1 oaddr=0 skip=0 daddr=0 dst=0 terms=1 "
            "valid=r1+57");
    REFUSED(FIT, 2, "r4 = MUL r0 #1041\nQUANT saddr=0 rows=0 daddr=0 dst=0 terms=1 k=8 spitch=r4");
    CHECK_EQ(f.verifier.verdict.operand, MUR_OPERAND_spitch);
    CHECK_EQ(f.verifier.verdict.value, 65583);
    CHECK_EQ(f.verifier.verdict.limit, 65535);
}

static void fields_are_what_their_instruction_takes(void **state)
{
    (void)state;
    start();
    REFUSED(HIGH, 0, "LD addr=0 buf=5 region=0 off=0 len=0");
    REFUSED(HIGH, 0, "LD addr=0 buf=0 region=4 off=0 len=0");
    CHECK_EQ(f.verifier.verdict.operand, MUR_OPERAND_region);
    REFUSED(LOW, 0, "ST addr=0 buf=0 region=0 off=0 len=0"); /* read-only */
    REFUSED(LOW, 0, "ST addr=0 buf=0 region=1 off=0 len=0");
    ACCEPTED("ST addr=0 buf=0 region=2 off=0 len=0");
    ACCEPTED("MM src=1 wsrc=3 terms=2");
    REFUSED(HIGH, 0, "MM src=2 wsrc=3 terms=2");
    REFUSED(LOW, 0, "MM src=1 wsrc=1 terms=2");
    REFUSED(HIGH, 0, "MM src=1 wsrc=4 terms=2");
    REFUSED(LOW, 0, "MM src=1 wsrc=3 terms=0");
    REFUSED(HIGH, 0, "MM src=1 wsrc=3 terms=3");
    REFUSED(LOW, 0, "SMAX group=0 dst=0 terms=1 valid=1");
    REFUSED(LOW, 0, "SMAX group=1 dst=0 terms=1 valid=0");
    REFUSED(HIGH, 0, "SMAX group=1 dst=0 terms=1 valid=65");
    REFUSED(HIGH, 0, "SMAX group=1 dst=4 terms=1 valid=64");
    REFUSED(HIGH, 0, "QPACK rows=65 dst=2 terms=1");
    REFUSED(LOW, 0, "DIV group=0");
}

/* ---- bounds: each access exactly fits, and is refused one further ---- */

static void regions_hold_every_transfer(void **state)
{
    (void)state;
    start(); /* WGTS and IO have 4096, PARM 1024 */
    ACCEPTED("LD addr=0 buf=4 region=0 off=3072 len=1024");
    REFUSED(BOUNDS, 0, "LD addr=0 buf=4 region=0 off=3073 len=1024");
    CHECK_EQ(f.verifier.verdict.operand, MUR_OPERAND_off);
    CHECK_EQ(f.verifier.verdict.value, 4097);
    CHECK_EQ(f.verifier.verdict.limit, 4096);
    REFUSED(BOUNDS, 0, "LD addr=0 buf=4 region=1 off=1 len=1024");
    REFUSED(BOUNDS, 0, "LD addr=0 buf=4 region=0 off=0xffffffff len=16"); /* sum wraps */
    REFUSED(BOUNDS, 0, "LD addr=0 buf=4 region=0 off=4097 len=0");
    ACCEPTED("r4 = MUL r0 #48\nLD addr=0 buf=4 region=0 off=r4 len=1072");
    REFUSED(BOUNDS, 2, "r4 = MUL r0 #48\nLD addr=0 buf=4 region=0 off=r4 len=1073");
    ACCEPTED("r4 = MUL r1 #128\nST addr=0 buf=0 region=3 off=3072 len=r4");
    REFUSED(BOUNDS, 2, "r4 = MUL r1 #128\nST addr=0 buf=0 region=3 off=3073 len=r4");
}

/* An access that ends beyond 2^32 - 1 is outside of every region, the largest too. */
static void the_largest_region_holds_no_more_than_it_has(void **state)
{
    (void)state;
    start();
    f.meta.kv_bytes = UINT32_MAX;
    ACCEPTED("LD addr=0 buf=4 region=2 off=0xffffffef len=16");
    REFUSED(BOUNDS, 0, "LD addr=0 buf=4 region=2 off=0xfffffff0 len=16");
    CHECK_EQ(f.verifier.verdict.value, UINT64_C(1) << 32);
    CHECK_EQ(f.verifier.verdict.limit, UINT32_MAX);
    REFUSED(BOUNDS, 0, "ST addr=0 buf=4 region=2 off=0xffffffff len=1");
    ACCEPTED("ST addr=0 buf=4 region=2 off=0xffffffff len=0");
    f.meta.io_bytes = UINT32_MAX;
    ACCEPTED("EMBED seq=0 k=1 rows=2 cols=9 dst=0xfffffff4");
    REFUSED(BOUNDS, 0, "EMBED seq=0 k=1 rows=2 cols=9 dst=0xfffffff8");
    REFUSED(BOUNDS, 0, "EMBED seq=0xfffffffc k=1 rows=1 cols=9 dst=0");
}

static void embed_stays_within_io_and_the_weights(void **state)
{
    (void)state;
    start();
    ACCEPTED("EMBED seq=4092 k=8 rows=r1 cols=100 dst=3840");
    REFUSED(BOUNDS, 0, "EMBED seq=4093 k=8 rows=r1 cols=100 dst=3840");
    REFUSED(BOUNDS, 0, "EMBED seq=0 k=8 rows=r1 cols=100 dst=3844");
    REFUSED(ALIGNMENT, 0, "EMBED seq=0 k=8 rows=r1 cols=100 dst=66");
    REFUSED(ALIGNMENT, 0, "EMBED seq=0 k=8 rows=0 cols=100 dst=1");
    REFUSED(ALIGNMENT, 2, "r4 = MUL r1 #4\nEMBED seq=0 k=8 rows=1 cols=100 dst=r4");
    ACCEPTED("EMBED seq=0 k=8 rows=0 cols=100 dst=0x7ffffffc"); /* of no rows nothing is asked */
    f.meta = (mur_meta){ 0 };
    fixture_init(&f);
    f.meta.io_bytes = 2048;
    f.meta.logits = 64;
    ACCEPTED("EMBED seq=0 k=0 rows=512 cols=100 dst=0");
    REFUSED(BOUNDS, 0, "EMBED seq=0 k=0 rows=513 cols=100 dst=0");
}

static void buffers_hold_every_access(void **state)
{
    (void)state;
    start(); /* I0, I1 1024; W0, W1 2048; GB 8192 bytes, 2048 words */
    ACCEPTED("LD addr=1000 buf=0 region=0 off=0 len=24");
    REFUSED(BOUNDS, 0, "LD addr=1000 buf=0 region=0 off=0 len=25");
    ACCEPTED("LD addr=8000 buf=4 region=0 off=0 len=192"); /* bytes, in GB too */
    REFUSED(BOUNDS, 0, "LD addr=8000 buf=4 region=0 off=0 len=193");

    /* MM: rows of slots(40, 2) = 37 + 13 = 50 bytes; 3 rows, 100 apart: 250 */
    ACCEPTED("MM src=0 saddr=774 spitch=100 rows=3 k=40 terms=2 wsrc=2 waddr=2000 wlen=48 "
             "daddr=2032 dpitch=4 cols=8");
    REFUSED(BOUNDS, 0, "MM src=0 saddr=775 spitch=100 rows=3 k=40 terms=2 wsrc=2 wlen=48 cols=8");
    CHECK_EQ(f.verifier.verdict.operand, MUR_OPERAND_saddr);
    CHECK_EQ(f.verifier.verdict.value, 1025);
    REFUSED(BOUNDS, 0, "MM src=0 rows=3 k=40 terms=2 wsrc=2 waddr=2001 wlen=48 cols=8");
    REFUSED(BOUNDS, 0, "MM src=0 rows=3 k=40 terms=2 wsrc=2 daddr=2033 dpitch=4 cols=8");
    ACCEPTED("MM src=0 saddr=99999 rows=0 k=40 terms=2 wsrc=2 daddr=99999"); /* does nothing */

    /* NORM: slots(33, 1) = 19 + 4 = 23 bytes */
    ACCEPTED("NORM saddr=1915 rows=2 spitch=100 gaddr=2015 dst=1 daddr=978 terms=1 k=33");
    REFUSED(BOUNDS, 0, "NORM saddr=1916 rows=2 spitch=100 gaddr=0 dst=1 daddr=0 terms=1 k=33");
    REFUSED(BOUNDS, 0, "NORM saddr=0 rows=2 spitch=100 gaddr=2016 dst=1 daddr=0 terms=1 k=33");
    REFUSED(BOUNDS, 0, "NORM saddr=0 rows=2 spitch=100 gaddr=0 dst=1 daddr=979 terms=1 k=33");

    ACCEPTED("ROPE saddr=1916 rows=2 taddr=2032 heads=4 k=8 spitch=100");
    REFUSED(BOUNDS, 0, "ROPE saddr=1917 rows=2 taddr=0 heads=4 k=8 spitch=100");
    REFUSED(BOUNDS, 0, "ROPE saddr=0 rows=2 taddr=2033 heads=4 k=8 spitch=100");

    ACCEPTED("QUANT saddr=1915 rows=2 spitch=100 dst=3 daddr=1995 dpitch=30 terms=1 k=33");
    REFUSED(BOUNDS, 0, "QUANT saddr=1916 rows=2 spitch=100 dst=3 terms=1 k=33");
    REFUSED(BOUNDS, 0, "QUANT rows=2 spitch=100 dst=3 daddr=1996 dpitch=30 terms=1 k=33");

    /* QPACK: 5 columns of slots(40, 2) = 50 bytes */
    ACCEPTED("QPACK saddr=1653 rows=40 spitch=10 dst=2 daddr=1798 cols=5 terms=2");
    REFUSED(BOUNDS, 0, "QPACK saddr=1654 rows=40 spitch=10 dst=2 cols=5 terms=2");
    REFUSED(BOUNDS, 0, "QPACK rows=40 spitch=10 dst=2 daddr=1799 cols=5 terms=2");

    /* SMAX: scores 64 a row; slots(64, 2) = 74 */
    ACCEPTED("SMAX saddr=1920 rows=2 taddr=2044 group=1 oaddr=2032 dst=1 daddr=850 dpitch=100 "
             "terms=2 k=8 valid=3");
    REFUSED(BOUNDS, 0, "SMAX saddr=1921 rows=2 group=1 dst=1 terms=2 k=8 valid=3");
    REFUSED(BOUNDS, 0, "SMAX rows=2 taddr=2045 group=1 dst=1 terms=2 k=8 valid=3");
    REFUSED(BOUNDS, 0, "SMAX rows=2 group=1 oaddr=2033 dst=1 terms=2 k=8 valid=3");
    REFUSED(BOUNDS, 0, "SMAX rows=2 group=1 dst=1 daddr=851 dpitch=100 terms=2 k=8 valid=3");

    /* DIV: 5 rows in groups of 2: 3 rows of 16 words */
    ACCEPTED("DIV saddr=2008 rows=5 taddr=2038 group=2 daddr=1992 k=8 dpitch=20");
    REFUSED(BOUNDS, 0, "DIV saddr=2009 rows=5 taddr=0 group=2 daddr=0 k=8 dpitch=20");
    REFUSED(BOUNDS, 0, "DIV saddr=0 rows=5 taddr=2039 group=2 daddr=0 k=8 dpitch=20");
    REFUSED(BOUNDS, 0, "DIV saddr=0 rows=5 taddr=0 group=2 daddr=1993 k=8 dpitch=20");

    ACCEPTED("GLU saddr=1982 rows=2 uaddr=1982 dst=0 daddr=971 dpitch=30 terms=1 k=33");
    REFUSED(BOUNDS, 0, "GLU saddr=1983 rows=2 uaddr=0 dst=0 dpitch=30 terms=1 k=33");
    REFUSED(BOUNDS, 0, "GLU saddr=0 rows=2 uaddr=1983 dst=0 dpitch=30 terms=1 k=33");
    REFUSED(BOUNDS, 0, "GLU saddr=0 rows=2 uaddr=0 dst=0 daddr=972 dpitch=30 terms=1 k=33");
}

static void the_largest_operands_do_not_wrap(void **state)
{
    (void)state;
    start();
    REFUSED(BOUNDS, 0,
            "MM src=0 saddr=0xfffff spitch=0xffff rows=4095 k=0xffff terms=2 wsrc=2 "
            "waddr=0xfffff wlen=0xfffff daddr=0x3ffff dpitch=0xffff cols=4095");
    REFUSED(BOUNDS, 0, "MM wsrc=2 terms=1 rows=4095 daddr=0x3ffff dpitch=0xffff cols=4095");
    REFUSED(BOUNDS, 0, "ROPE rows=4095 heads=4095 k=0xffff spitch=0xffff");
    REFUSED(BOUNDS, 0, "ROPE rows=4095 taddr=0x3ffff k=0xffff");
    REFUSED(BOUNDS, 0, "DIV rows=4095 group=255 k=0xffff dpitch=0xffff");
    REFUSED(BOUNDS, 0, "GLU dst=0 terms=2 rows=4095 k=0xffff dpitch=0xffff");
    REFUSED(BOUNDS, 0, "EMBED seq=0 k=0xffff rows=1 cols=1 dst=0xfffffffc");
    REFUSED(BOUNDS, 0, "EMBED seq=0xffffffff k=8 rows=1 cols=1 dst=0");
}

/* ---- loops ---- */

static void loops_are_counted(void **state)
{
    (void)state;
    start();
    ACCEPTED("FOR r4 3\nFOR r5 r1 8\nr6 = ADD r4 r5\nNEXT\nNEXT");
    /* FOR + 3 * (FOR + 8 * (EVAL + NEXT) + NEXT) + END */
    CHECK_EQ(f.verifier.verdict.steps, 1 + 3 * (1 + 8 * 2 + 1) + 1);
    ACCEPTED("FOR r4 0\nr6 = ADD r4 #1\nNEXT");
    CHECK_EQ(f.verifier.verdict.steps, 2);
    REFUSED(COUNT, 0, "FOR r5 r1 7\nNEXT");
    CHECK_EQ(f.verifier.verdict.value, 8);
    CHECK_EQ(f.verifier.verdict.limit, 7);
    ACCEPTED("FOR r4 32767\nFOR r5 32766\nNEXT\nNEXT"); /* just below 2^31 */
    REFUSED(STEPS, 7, "FOR r4 0x7fffffff\nFOR r5 1\nNEXT\nNEXT");
    REFUSED(STEPS, 3, "FOR r4 0xffffffff\nNEXT");
}

/* a For with bit 17 set */
static void the_sequencer_has_no_instructions_of_the_cpu(void **state)
{
    (void)state;
    start();
    ACCEPTED("STREAM r4 3\nROPE rows=0\nr6 = ADD r4 #1\nFOR r5 r1 8\nROPE rows=0\nNEXT\nNEXT\n"
             "EMBED rows=0");
    CHECK_EQ(f.verifier.verdict.steps, 1 + 3 * (2 + 1 + 8 * 2 + 1) + 2);
    ACCEPTED("STREAM r4 r1 8\nSTREAM r5 2\nROPE rows=0\nNEXT\nNEXT");
    REFUSED(STREAM, 3, "STREAM r4 3\nEMBED rows=0\nNEXT");
    REFUSED(STREAM, 6, "STREAM r4 r1 8\nFOR r5 2\nAMAX saddr=0 k=0 dst=0\nNEXT\nNEXT");
    REFUSED(STREAM, 6, "FOR r4 3\nSTREAM r5 2\nAMAX saddr=0 k=0 dst=0\nNEXT\nNEXT");
    ACCEPTED("FOR r4 3\nSTREAM r5 2\nNEXT\nAMAX saddr=0 k=0 dst=0\nNEXT");
    REFUSED(ITEM, 0, "WORD 0x50043\nWORD 3\nWORD 0\nWORD 4\nWORD 5"); /* bit 18 */
}

static void loops_are_nested(void **state)
{
    (void)state;
    start();
    ACCEPTED("FOR r4 1\nFOR r5 1\nFOR r6 1\nFOR r7 1\nFOR r8 1\nFOR r9 1\n"
             "NEXT\nNEXT\nNEXT\nNEXT\nNEXT\nNEXT");
    REFUSED(NESTING, 18,
            "FOR r4 1\nFOR r5 1\nFOR r6 1\nFOR r7 1\nFOR r8 1\nFOR r9 1\nFOR r10 1\n"
            "NEXT\nNEXT\nNEXT\nNEXT\nNEXT\nNEXT\nNEXT");
    REFUSED(NESTING, 0, "NEXT");
    REFUSED(NESTING, 3, "FOR r4 3\nEND");
    REFUSED(NESTING, 3, "WORD 0x10043\nWORD 2\nWORD 1\nWORD 4\nWORD 5"); /* body of 1, not 0 */
}

/* more instructions, of 5 words, than the verifier keeps facts of */
enum { MANY = MUR_FACTS + 10 };

static size_t add_many(char *text)
{
    size_t used = 0;

    for (uint32_t i = 0; i < MANY; i++)
        used += (size_t)sprintf(text + used, "ROPE rows=0\n");
    return used;
}

/* Each level of a nest is visited twice where a body leaves something in flight, and what is too
 * long to be kept is taken apart each time; with a table of 8000 values read in whole 450 times a
 * visit, that is too much. */
static void effort_is_bounded(void **state)
{
    static uint32_t values[8193];
    static char text[32768];
    size_t used = 0;

    (void)state;
    start();
    f.meta.context = 8192;
    for (uint32_t i = 0; i < 8193; i++)
        values[i] = i;
    fixture_table(&f, 8193, values);
    used += (size_t)sprintf(text, "FOR r10 3\nFOR r11 3\nFOR r12 3\nFOR r13 3\nFOR r14 3\n");
    used += add_many(text + used);
    for (uint32_t i = 0; i < 450; i++)
        used += (size_t)sprintf(text + used, "r20 = TABLE r0 #0\n");
    sprintf(text + used, "LD addr=0 buf=2 region=0 off=0 len=1\nNEXT\nNEXT\nNEXT\nNEXT\nNEXT");
    CHECK_EQ(judge_text(text), MUR_REASON_EFFORT);
}

/* r5 = r4 (4 - r4) is 0 in the first and the last round and 4 in the middle one. */
static void rounds_in_the_middle_are_bounded_too(void **state)
{
    const char *program = "r7 = MUL r0 #0\nr7 = ADD r7 #4\nFOR r4 5\nr5 = SUB r7 r4\n"
                          "r6 = MUL r5 r4\nLD addr=0 buf=4 region=2 off=r6 len=4\nNEXT";

    (void)state;
    start();
    f.meta.kv_bytes = 20; /* an interval tells 4 * 4 */
    ACCEPTED(program);
    f.meta.kv_bytes = 7; /* the middle round reaches 8 */
    REFUSED(BOUNDS, 11, program);
}

/* ---- hazards ---- */

/* a load into the lower half of W0, and an MM that reads it */
#define LOAD "LD addr=0 buf=2 region=0 off=0 len=100 "
#define LOAD_UPPER "LD addr=1024 buf=2 region=0 off=0 len=100 "
#define USE "MM src=0 rows=1 k=8 terms=1 wsrc=2 waddr=0 wlen=100 cols=8 "
#define USE_UPPER "MM src=0 rows=1 k=8 terms=1 wsrc=2 waddr=1024 wlen=100 cols=8 "

static void a_load_is_awaited_before_its_use(void **state)
{
    (void)state;
    start();
    ACCEPTED(LOAD "sig=0\n" USE "wait=0");
    REFUSED(RACE, 5, LOAD "sig=0\n" USE);
    CHECK_EQ(f.verifier.verdict.operand, 1u << (16 + 2 * MUR_W0)); /* which is written */
    REFUSED(RACE, 5, LOAD "sig=0\n" USE "wait=1");
    REFUSED(RACE, 5, LOAD "\n" USE "wait=0");
    REFUSED(RACE, 5, LOAD "\n" USE "wait=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15");
    /* a later load of the same engine covers it, an earlier one does not */
    ACCEPTED(LOAD "\n" LOAD_UPPER "sig=3\n" USE "wait=3");
    REFUSED(RACE, 10, LOAD_UPPER "sig=3\n" LOAD "\n" USE "wait=3");
    /* an instruction before, of the same engine, has already waited */
    ACCEPTED(LOAD "sig=0\nROPE rows=0 wait=0\n" USE);
    /* the other half is another bank */
    ACCEPTED(LOAD "sig=0\n" USE_UPPER);
    /* an access across both */
    REFUSED(RACE, 5,
            LOAD_UPPER "sig=0\nMM src=0 rows=1 k=8 terms=1 wsrc=2 waddr=1000 wlen=25 cols=8");
    ACCEPTED(LOAD_UPPER "sig=0\nMM src=0 rows=1 k=8 terms=1 wsrc=2 waddr=1000 wlen=24 cols=8");
}

/* An engine's queue may be what waits, and another queue then knows nothing of it; the CPU issues
 * nothing before it is done waiting. */
static void waits_count_for_the_engine_that_waits(void **state)
{
    (void)state;
    start();
    REFUSED(RACE, 10, LOAD "sig=0\n" LOAD_UPPER "wait=0\n" USE);
    REFUSED(RACE, 13, USE "sig=4\nROPE rows=0 wait=4\n" LOAD);
    ACCEPTED(USE "sig=4\n" LOAD_UPPER "wait=4\n" LOAD);
    ACCEPTED(LOAD "sig=0\nAMAX saddr=0 k=0 dst=0 wait=0\n" USE);
    ACCEPTED(USE "sig=4\nEMBED rows=0 wait=4\n" LOAD);
    /* IO: the accelerator's wait is not a wait of the CPU */
    REFUSED(RACE, 10,
            "ST addr=0 buf=4 region=3 off=64 len=32 sig=0\nROPE rows=0 wait=0\n"
            "AMAX saddr=16 k=8 dst=40");
    ACCEPTED("ST addr=0 buf=4 region=3 off=64 len=32 sig=0\nAMAX saddr=0 k=0 dst=900 wait=0\n"
             "AMAX saddr=16 k=8 dst=40");
}

static void a_buffer_is_not_overwritten_while_it_is_read(void **state)
{
    (void)state;
    start();
    ACCEPTED(LOAD "sig=0\n" USE "wait=0 sig=4\n" LOAD "wait=4");
    REFUSED(RACE, 13, LOAD "sig=0\n" USE "wait=0 sig=4\n" LOAD "wait=0");
    /* two engines may read one bank */
    ACCEPTED(
        "ST addr=0 buf=0 region=2 off=0 len=9\nMM src=0 rows=1 k=8 terms=1 wsrc=2 wlen=0 cols=0");
    /* a store must be done before its source changes */
    REFUSED(RACE, 5,
            "ST addr=0 buf=0 region=2 off=0 len=9\n"
            "QUANT rows=1 dst=0 daddr=0 terms=1 k=8");
    ACCEPTED("ST addr=0 buf=0 region=2 off=0 len=9 sig=9\n"
             "QUANT rows=1 dst=0 daddr=0 terms=1 k=8 wait=9");
}

static void a_token_taken_over_proves_nothing_of_the_past(void **state)
{
    (void)state;
    start();
    /* token 0 is signalled again, by the accelerator */
    REFUSED(RACE, 10, LOAD "sig=0\nROPE rows=0 sig=0\n" USE "wait=0");
    /* by the CPU, whose instructions are complete at once */
    REFUSED(RACE, 11, LOAD "sig=0\nEMBED rows=0 sig=0\n" USE "wait=0");
    /* by the same engine: it covers what came before */
    ACCEPTED(LOAD "sig=0\n" LOAD_UPPER "sig=0\n" USE "wait=0");
}

static void region_io_is_shared_with_the_cpu(void **state)
{
    (void)state;
    start();
    ACCEPTED("EMBED rows=1 k=8 cols=9 dst=64\nLD addr=0 buf=4 region=3 off=64 len=32");
    REFUSED(RACE, 5,
            "LD addr=0 buf=4 region=3 off=64 len=32 sig=0\nEMBED rows=1 k=8 cols=9 dst=64");
    CHECK_EQ(f.verifier.verdict.operand, 1u << 2 * MUR_BUFFERS); /* region IO, which is read */
    ACCEPTED("LD addr=0 buf=4 region=3 off=64 len=32 sig=0\nEMBED rows=1 k=8 cols=9 dst=64 wait=0");
    REFUSED(RACE, 5,
            "ST addr=0 buf=4 region=3 off=64 len=32 sig=0\nEMBED rows=1 k=0 cols=9 dst=64");
    ACCEPTED("LD addr=0 buf=4 region=2 off=64 len=32 sig=0\nEMBED rows=1 k=8 cols=9 dst=64");
    REFUSED(RACE, 5, "ST addr=0 buf=4 region=3 off=64 len=32 sig=0\nAMAX saddr=16 k=8 dst=40");
    ACCEPTED("ST addr=0 buf=4 region=3 off=64 len=32 sig=0\nAMAX saddr=16 k=8 dst=40 wait=0");
    REFUSED(RACE, 5, "LD addr=0 buf=4 region=3 off=64 len=32 sig=0\nAMAX saddr=16 k=0 dst=40");
    CHECK_EQ(f.verifier.verdict.operand, 1u << 2 * MUR_BUFFERS); /* region IO, which is read */
}

static void addresses_of_amax_are_words_of_io(void **state)
{
    (void)state;
    start();
    ACCEPTED("AMAX saddr=1014 k=10 dst=1022");
    REFUSED(BOUNDS, 0, "AMAX saddr=1014 k=11 dst=0");
    REFUSED(BOUNDS, 0, "AMAX saddr=0 k=10 dst=1023");
    REFUSED(BOUNDS, 0, "AMAX saddr=0x3fffffff k=0 dst=0");
    REFUSED(BOUNDS, 0, "AMAX saddr=0 k=0 dst=0x3fffffff");
    ACCEPTED("AMAX saddr=r1 k=1016 dst=0"); /* r1 is m, up to 8; any word is aligned */
    REFUSED(BOUNDS, 0, "AMAX saddr=r1 k=1017 dst=0");
}

static void loops_are_checked_against_their_own_next_round(void **state)
{
    (void)state;
    start();
    ACCEPTED("FOR r4 3\n" LOAD "sig=0 wait=4\n" USE "wait=0 sig=4\nNEXT");
    REFUSED(RACE, 3, "FOR r4 3\n" LOAD "sig=0\n" USE "wait=0 sig=4\nNEXT");
    ACCEPTED("FOR r4 1\n" LOAD "sig=0\n" USE "wait=0 sig=4\nNEXT"); /* there is no next round */
    /* double buffering, two rounds deep */
    ACCEPTED(LOAD "sig=0 wait=4\nFOR r4 5\n" LOAD_UPPER "sig=1 wait=5\n" USE "wait=0 sig=4\n" LOAD
                  "sig=0 wait=4\n" USE_UPPER "wait=1 sig=5\nNEXT\n" USE "wait=0 sig=4");
    REFUSED(RACE, 8,
            LOAD "sig=0 wait=4\nFOR r4 5\n" LOAD_UPPER "sig=1\n" USE "wait=0 sig=4\n" LOAD
                 "sig=0 wait=4\n" USE_UPPER "wait=1 sig=5\nNEXT\n" USE "wait=0 sig=4");
}

/* The inner loop is fine by itself and so is the outer one's first round. */
static void an_inner_loop_meets_what_an_outer_round_leaves(void **state)
{
    static char text[16384];
    size_t used;

    (void)state;
    start();
    ACCEPTED("FOR r4 3\nFOR r5 2\n" USE "wait=0 sig=4\nNEXT\n" LOAD "wait=4 sig=0\nNEXT");
    REFUSED(RACE, 6, "FOR r4 3\nFOR r5 2\n" USE "sig=4\nNEXT\n" LOAD "wait=4 sig=0\nNEXT");
    /* in a round in the middle alone: the load is that of round 1 */
    REFUSED(RACE, 5,
            "FOR r4 4\nr6 = EQ r4 #1\n" USE "sig=4\nFOR r5 r6 1\n" LOAD
            "wait=4 sig=0\nNEXT\nROPE rows=0\nNEXT");
    /* as far inside as loops nest */
    REFUSED(RACE, 18,
            "FOR r4 3\nFOR r5 2\nFOR r6 2\nFOR r7 2\nFOR r8 2\nFOR r9 2\n" USE
            "sig=4\nNEXT\nNEXT\nNEXT\nNEXT\nNEXT\n" LOAD "wait=4 sig=0\nNEXT");
    /* and in bodies that are taken apart at each visit */
    used = (size_t)sprintf(text, "FOR r4 3\n");
    used += add_many(text + used);
    sprintf(text + used, "FOR r5 2\nr6 = ADD r5 r4\n%swait=0 sig=4\nNEXT\n%swait=4 sig=0\nNEXT",
            USE, LOAD);
    ACCEPTED(text);
    sprintf(text + used, "FOR r5 2\nr6 = ADD r5 r4\n%ssig=4\nNEXT\n%swait=4 sig=0\nNEXT", USE,
            LOAD);
    REFUSED(RACE, 3 + 5 * MANY + 5, text);
    CHECK_EQ(f.verifier.verdict.operand, 1u << (16 + 2 * MUR_W0));
}

static void loops_that_may_not_run_leave_what_was_before(void **state)
{
    (void)state;
    start();
    /* the loop waits for the load, but it may run 0 times */
    REFUSED(RACE, 16, "r5 = SUB r1 #1\n" LOAD "sig=0\nFOR r4 r5 7\nROPE rows=0 wait=0\nNEXT\n" USE);
    ACCEPTED("r5 = SUB r1 #1\n" LOAD "sig=0\nFOR r4 r1 8\nROPE rows=0 wait=0\nNEXT\n" USE);
    /* what it may have begun is in flight after it */
    REFUSED(RACE, 11, "r5 = SUB r1 #1\nFOR r4 r5 7\n" LOAD "sig=0\nNEXT\n" USE);
    ACCEPTED("r5 = SUB r1 #1\nFOR r4 r5 7\n" LOAD "sig=0\nNEXT\n" USE "wait=0");
}

/* whichever way the program came, all of an engine's latest signals are waited for */
static void all_latest_signals_together_cover_an_engine(void **state)
{
    const char *program = "r5 = SUB r1 #1\n" USE "sig=4\nFOR r4 r5 7\n" USE_UPPER
                          "sig=5\nNEXT\nLD addr=0 buf=4 region=0 off=0 len=4 ";
    char text[512];

    (void)state;
    start();
    snprintf(text, sizeof(text), "%swait=4,5", program);
    ACCEPTED(text);
    snprintf(text, sizeof(text), "%swait=5", program);
    REFUSED(RACE, 22, text);
    snprintf(text, sizeof(text), "%swait=4", program);
    REFUSED(RACE, 22, text);
}

static void every_reason_was_seen(void **state)
{
    (void)state;
    for (int i = 0; i < MUR_REASONS; i++)
        if (!seen[i])
            fail_msg("no test provokes %s", reasons[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_empty_program_is_accepted),
        cmocka_unit_test(code_that_does_not_end_is_refused),
        cmocka_unit_test(unknown_items_are_refused),
        cmocka_unit_test(unknown_instructions_are_refused),
        cmocka_unit_test(bits_that_no_field_names_are_refused),
        cmocka_unit_test(a_patch_is_exactly_one_field),
        cmocka_unit_test(slots_are_written_before_they_are_read),
        cmocka_unit_test(a_loop_keeps_its_slots_to_itself),
        cmocka_unit_test(values_stay_within_32_bits),
        cmocka_unit_test(right_operands_are_those_that_have_a_result),
        cmocka_unit_test(evaluations_have_the_form_of_their_operator),
        cmocka_unit_test(ranges_are_those_of_the_specification),
        cmocka_unit_test(tables_are_read_within_their_ends),
        cmocka_unit_test(tables_that_fall_are_refused_where_they_are_read),
        cmocka_unit_test(patched_values_fit_their_fields),
        cmocka_unit_test(fields_are_what_their_instruction_takes),
        cmocka_unit_test(regions_hold_every_transfer),
        cmocka_unit_test(the_largest_region_holds_no_more_than_it_has),
        cmocka_unit_test(embed_stays_within_io_and_the_weights),
        cmocka_unit_test(buffers_hold_every_access),
        cmocka_unit_test(the_largest_operands_do_not_wrap),
        cmocka_unit_test(loops_are_counted),
        cmocka_unit_test(the_sequencer_has_no_instructions_of_the_cpu),
        cmocka_unit_test(loops_are_nested),
        cmocka_unit_test(effort_is_bounded),
        cmocka_unit_test(rounds_in_the_middle_are_bounded_too),
        cmocka_unit_test(a_load_is_awaited_before_its_use),
        cmocka_unit_test(waits_count_for_the_engine_that_waits),
        cmocka_unit_test(a_buffer_is_not_overwritten_while_it_is_read),
        cmocka_unit_test(a_token_taken_over_proves_nothing_of_the_past),
        cmocka_unit_test(region_io_is_shared_with_the_cpu),
        cmocka_unit_test(addresses_of_amax_are_words_of_io),
        cmocka_unit_test(loops_are_checked_against_their_own_next_round),
        cmocka_unit_test(an_inner_loop_meets_what_an_outer_round_leaves),
        cmocka_unit_test(loops_that_may_not_run_leave_what_was_before),
        cmocka_unit_test(all_latest_signals_together_cover_an_engine),
        cmocka_unit_test(every_reason_was_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
