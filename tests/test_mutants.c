/* Programs damaged at random: what the verifier accepts must run without leaving its buffers and
 * regions, without a race and to its end, on a board as lazy as the specification allows.
 *
 * test_mutants [mutants [seed]]: 120,000 of a fixed seed by default, one in six of a compiled
 * model.
 * test_mutants --seeds: writes the hand-made programs to fuzz/corpus/program, where they are seeds.
 */
#include "program_fixture.h"
#include "program_machine.h"
#include "uthinker_fixture.h"

static uint64_t mutants = 120000, seed = 1;

enum { HAND_MADE = 3, COUNT };

/* Programs with most of what a real one has: each kind of instruction, patches, nests, tables,
 * double buffering, all token rules. Each is nearly at its limits. */
static const char *const programs[HAND_MADE] = {
    /* one layer's worth of stages on tiny shapes */
    "EMBED seq=0 k=8 rows=r1 cols=100 dst=64\n"
    "r4 = MUL r1 #32\n"
    "LD addr=0 buf=4 region=3 off=64 len=r4 sig=8 wait=4,5,6,7,9\n"
    "r5 = MUL r0 #16\n"
    "r6 = MUL r1 #16\n"
    "LD addr=512 buf=4 region=1 off=r5 len=r6 sig=8 wait=4,5,6,7,9\n"
    "FOR r7 2\n"
    "  NORM saddr=0 rows=r1 spitch=8 gaddr=0 dst=0 daddr=0 terms=2 k=8 sig=9 wait=8,10\n"
    "  r8 = MUL r7 #2\n"
    "  r10 = TABLE r8 #0\n"
    "  LD addr=0 buf=2 region=0 off=r10 len=r11 sig=0 wait=4\n"
    "  r12 = ADD r8 #1\n"
    "  r14 = TABLE r12 #0\n"
    "  LD addr=1024 buf=2 region=0 off=r14 len=r15 sig=1 wait=5\n"
    "  MM src=0 saddr=0 spitch=13 rows=r1 k=8 terms=2 wsrc=2 waddr=0 wlen=r11 cols=8 daddr=192 "
    "dpitch=16 sig=4 wait=0,8,10\n"
    "  MM src=0 saddr=0 spitch=13 rows=r1 k=8 terms=2 wsrc=2 waddr=1024 wlen=r15 cols=8 "
    "daddr=200 dpitch=16 acc=1 sig=5 wait=1,8,10\n"
    "  ROPE saddr=192 rows=r1 taddr=128 heads=2 k=4 spitch=16 sig=9 wait=8,10\n"
    "  QUANT saddr=192 rows=r1 spitch=16 k=16 daddr=0 dst=1 dpitch=21 terms=2 sig=9 wait=8,10\n"
    "  r16 = MUL r1 #21\n"
    "  r17 = MUL r0 #21\n"
    "  ST addr=0 buf=1 region=2 off=r17 len=r16 sig=10 wait=4,5,6,7,9\n"
    "  GLU saddr=192 rows=r1 uaddr=320 k=16 dst=0 daddr=512 dpitch=21 terms=2 sig=9 wait=8,10\n"
    "NEXT\n",
    /* attention: chunks of the past, then of this call */
    "r4 = DIV r0 #64\n"
    "r5 = MOD r0 #64\n"
    "r6 = ADD r5 r1\n"
    "r7 = DIV r6 #64\n"
    "FOR r8 r7 1\n"
    "  QPACK saddr=0 rows=64 spitch=8 dst=2 daddr=1024 cols=8 terms=2 sig=5 wait=1,8,10\n"
    "  r9 = MUL r4 #592\n"
    "  ST addr=1024 buf=2 region=2 off=r9 len=592 sig=10 wait=5\n"
    "NEXT\n"
    "FOR r8 r4 3\n"
    "  r9 = MUL r8 #592\n"
    "  LD addr=0 buf=2 region=2 off=r9 len=592 sig=0 wait=4\n"
    "  MM src=0 saddr=0 spitch=13 rows=r1 k=8 terms=2 wsrc=2 waddr=0 wlen=592 cols=64 daddr=1024 "
    "dpitch=64 sig=4 wait=0,8,10\n"
    "  r10 = EQ r8 #0\n"
    "  LD addr=1024 buf=2 region=2 off=r9 len=592 sig=1 wait=5\n"
    "  SMAX saddr=1024 rows=r1 taddr=1536 group=1 oaddr=1600 daddr=0 dst=1 terms=2 first=r10 k=8 "
    "valid=64 dpitch=74 sig=9 wait=8,10\n"
    "  MM src=1 saddr=0 spitch=74 rows=r1 k=64 terms=2 wsrc=2 waddr=1024 wlen=592 cols=8 "
    "daddr=1600 dpitch=8 acc=1 sig=5 wait=1,8,10\n"
    "NEXT\n"
    "r20 = ADD r5 #1\n"
    "FOR r8 r1 8\n"
    "  r21 = ADD r20 r8\n"
    "  r22 = MIN r21 #64\n"
    "  QPACK saddr=0 rows=r22 spitch=8 dst=2 daddr=1024 cols=8 terms=2 sig=5 wait=1,8,10\n"
    "  r23 = MUL r8 #74\n"
    "  r24 = MUL r8 #8\n"
    "  r25 = ADD r24 #1600\n"
    "  MM src=1 saddr=r23 spitch=74 rows=1 k=r22 terms=2 wsrc=2 waddr=1024 wlen=592 cols=8 "
    "daddr=r25 dpitch=8 acc=1 sig=5 wait=1,8,10\n"
    "NEXT\n"
    "DIV saddr=1600 rows=r1 taddr=1536 group=1 daddr=512 k=8 dpitch=8 sig=9 wait=8,10\n",
    /* a stream of chunks through two halves, twice nested, with its tail */
    "FOR r4 3\n"
    "  r5 = MUL r4 #4\n"
    "  r6 = TABLE r5 #0\n"
    "  LD addr=0 buf=3 region=0 off=r6 len=r7 sig=2 wait=6\n"
    "  FOR r8 2\n"
    "    r9 = SHL r8 #1\n"
    "    r10 = ADD r9 r5\n"
    "    r11 = ADD r10 #1\n"
    "    r12 = TABLE r11 #0\n"
    "    LD addr=1024 buf=3 region=0 off=r12 len=r13 sig=3 wait=7\n"
    "    MM src=0 rows=r1 spitch=64 k=32 terms=1 wsrc=3 waddr=0 wlen=r7 cols=8 daddr=0 dpitch=32 "
    "sig=6 wait=2,8,10\n"
    "    r14 = ADD r10 #2\n"
    "    r15 = TABLE r14 #0\n"
    "    LD addr=0 buf=3 region=0 off=r15 len=r16 sig=2 wait=6\n"
    "    MM src=0 rows=r1 spitch=64 k=32 terms=1 wsrc=3 waddr=1024 wlen=r13 cols=8 daddr=8 "
    "dpitch=32 sig=7 wait=3,8,10\n"
    "  NEXT\n"
    "  MM src=0 rows=r1 spitch=64 k=32 terms=1 wsrc=3 waddr=0 wlen=r7 cols=8 daddr=16 dpitch=32 "
    "sig=6 wait=2,8,10\n"
    "  r17 = SEL r4 r0 r1\n"
    "  r18 = CDIV r17 #4\n"
    "  r19 = SUB r18 #3\n"
    "  r20 = MAX r19 r1\n"
    "  r21 = LT r20 #5\n"
    "  r22 = AND r20 #3\n"
    "  r23 = SHR r20 #1\n"
    "  FOR r24 r22 3\n"
    "    ST addr=0 buf=4 region=3 off=1024 len=128 sig=10 wait=4,5,6,7,9\n"
    "  NEXT\n"
    "NEXT\n",
};

/* A program to be damaged. */
typedef struct base {
    const uint8_t *image;
    uint32_t bytes, head; /* head: what comes before the weights */
} base;

static hand_program hand_made[HAND_MADE];
static base bases[COUNT];

/* the copy at hand */
static uint8_t *image;
static mur_program program;
static mur_verifier verifier;
static machine board;
static uint64_t chance;

static uint32_t below(uint32_t n)
{
    return random_next(&chance) % n;
}

static void make_base(base *out, const char *name, const uint8_t *bytes, size_t size)
{
    *out = (base){ bytes, (uint32_t)size, 0 };
    CHECK_EQ(mur_open(&program, bytes, size), MUR_OK);
    if (mur_verify(&program, &verifier) != MUR_OK)
        fail_msg("%s is refused itself, at word %u for reason %d", name, verifier.verdict.word,
                 (int)verifier.verdict.reason);
    out->head = (uint32_t)(program.section[MUR_SECTION_WGTS] - bytes);
}

static const uint32_t chunks[] = { 0,    300,  620,  1000, 1700, 2000, 2500,
                                   2600, 2900, 3100, 3500, 3600, 3700, 4000 };

static void make_hand_made(uint32_t which)
{
    hand_program *f = &hand_made[which];

    fixture_init(f);
    f->meta.context = which == 1 ? 200 : 56;
    f->wgts_bytes = 4800; /* the largest offset and the largest length, each taken alone */
    fixture_table(f, sizeof(chunks) / sizeof(chunks[0]), chunks);
    fixture_entry(f, 1, which == 2 ? 8 : 7, programs[which]);
    fixture_entry(f, 1, 1, programs[which]);
    CHECK_EQ(fixture_build(f), MUR_OK);
    make_base(&bases[which], "a hand-made program", f->image, f->image_bytes);
}

/* a section of the image at hand, to be changed */
static uint32_t *words_of(enum mur_section section)
{
    return (uint32_t *)(void *)(image + (program.section[section] - image));
}

static uint32_t *any_word(void)
{
    uint32_t *tables = words_of(MUR_SECTION_TABL), first = tables[0] + 2;

    if (below(12) == 0)
        return &tables[first + below(program.section_bytes[MUR_SECTION_TABL] / 4 - first)];
    /* not the last, so that there is a next one */
    return &words_of(MUR_SECTION_CODE)[below(program.section_bytes[MUR_SECTION_CODE] / 4 - 1)];
}

/* what damage does, and what a compiler's mistakes look like */
static void mutate(void)
{
    mur_entr *entry = (mur_entr *)(void *)words_of(MUR_SECTION_ENTR) + below(program.entry_count);
    mur_meta *meta = (mur_meta *)(void *)words_of(MUR_SECTION_META);
    uint32_t *word = any_word(), *other = any_word();

    switch (below(12)) {
    case 0:
    case 1:
    case 2:
        *word ^= 1u << below(32);
        break;
    case 3:
    case 4:
        *word += below(2) ? 1u : UINT32_MAX;
        break;
    case 5:
        *word += (below(2) ? 1u : UINT32_MAX) << below(28);
        break;
    case 6:
        *word = *other;
        break;
    case 7:
        *word = below(4) ? below(128) : random_next(&chance);
        break;
    case 8: /* waits or signals forgotten */
        if ((word[0] & 0xf) == MUR_INST)
            word[1] &= below(2) ? 0xffffu : 0xffff00ffu;
        break;
    case 9:
        if ((word[0] & 0xf) == MUR_INST)
            word[1] &= ~(0x10000u << below(16));
        break;
    case 10:
        *(below(2) ? &meta->kv_bytes : &meta->io_bytes) -= 4 * below(64);
        meta->context += below(3) - 1;
        break;
    default:
        entry->max_m = 1 + below(8);
        entry->min_m = 1 + below(entry->max_m);
        break;
    }
}

/* Mutants of one program; how many were accepted. */
static uint64_t try_mutants(const base *from, uint64_t count, uint32_t most_steps)
{
    uint64_t accepted = 0;

    image = aligned_alloc(MUR_ALIGNMENT, (from->bytes + 15u) & ~15u);
    assert_non_null(image);
    memcpy(image, from->image, from->bytes);
    for (uint64_t i = 0; i < count; i++) {
        const char *violation;

        memcpy(image, from->image, from->head);
        CHECK_EQ(mur_open(&program, image, from->bytes), MUR_OK);
        for (uint32_t n = 1 + below(2); n > 0; n--)
            mutate();
        /* some are no longer files, or refused; the rest must behave */
        if (mur_open(&program, image, from->bytes) != MUR_OK ||
            mur_verify(&program, &verifier) != MUR_OK)
            continue;
        accepted++;
        violation = machine_try(&board, &program, &chance, most_steps);
        if (violation)
            fail_msg("mutant %llu of program %u (seed %llu): %s", (unsigned long long)i,
                     (unsigned)(from - bases), (unsigned long long)seed, violation);
    }
    free(image);
    CHECK(accepted > count / 50);
    return accepted;
}

static void no_accepted_mutant_misbehaves(void **state)
{
    uint64_t accepted = 0, share = (mutants - mutants / 6) / HAND_MADE;

    (void)state;
    chance = seed * 0x9e3779b97f4a7c15u | 1;
    for (uint32_t which = 0; which < HAND_MADE; which++) {
        make_hand_made(which);
        accepted += try_mutants(&bases[which], share, 500);
    }
    print_message("%llu mutants of hand-made programs: %llu were accepted and ran\n",
                  (unsigned long long)share * HAND_MADE, (unsigned long long)accepted);
}

static void no_accepted_mutant_of_a_compiled_model_misbehaves(void **state)
{
    uint64_t accepted;
    fixture f = { .ctx = muc_context_new(0) };

    (void)state;
    CHECK_OK(f.ctx, muc_checkpoint_open(f.ctx, "models/rescue", &f.checkpoint));
    fixture_compile(&f, &muc_uthinker_defaults);
    make_base(&bases[HAND_MADE], "models/rescue", f.build->program.data, f.build->program.size);
    accepted = try_mutants(&bases[HAND_MADE], mutants / 6, 2000);
    print_message("%llu mutants of models/rescue: %llu were accepted and ran\n",
                  (unsigned long long)mutants / 6, (unsigned long long)accepted);
    fixture_free(&f);
}

/* the board sees what it is there to see: without it the test above could not fail */
static void the_board_reports_what_an_unverified_program_does(void **state)
{
    static const char *const wrong[] = {
        "LD addr=1020 buf=0 region=0 off=0 len=8",
        "LD addr=0 buf=0 region=1 off=1020 len=8",
        "ST addr=0 buf=0 region=1 off=0 len=8",
        "LD addr=0 buf=2 region=0 off=0 len=8\nMM src=0 wsrc=2 terms=1 wlen=8",
        "LD addr=0 buf=4 region=3 off=0 len=8\nEMBED rows=1 k=1 cols=9 dst=64",
        "QUANT rows=1 k=8 terms=0",
        "SMAX rows=1 group=0 terms=1 valid=1",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        hand_program *f = &hand_made[0];

        fixture_init(f);
        fixture_entry(f, 1, 8, wrong[i]);
        CHECK_EQ(fixture_build(f), MUR_OK);
        CHECK_EQ(mur_verify(&f->program, &f->verifier), MUR_E_VERIFY);
        f->program.steps = 1000;
        CHECK(machine_try(&board, &f->program, &chance, 1000) != NULL);
    }
}

/* ---- seeds of fuzz_program ---- */

static const char *const seed_files[HAND_MADE] = { "fuzz/corpus/program/layer.code",
                                                   "fuzz/corpus/program/attention.code",
                                                   "fuzz/corpus/program/stream.code" };

/* Bytes as fuzz/fuzz_program.c takes them: the first entry of a hand-made program. */
static size_t seed_of(uint32_t which, uint8_t *out)
{
    const hand_program *f = &hand_made[which];
    const mur_entr *entry = &f->entries[0];

    out[0] = (uint8_t)entry->min_m;
    out[1] = (uint8_t)entry->max_m;
    out[2] = (uint8_t)f->meta.context;
    out[3] = sizeof(chunks) / sizeof(chunks[0]);
    memcpy(out + 4, chunks, sizeof(chunks));
    memcpy(out + 4 + sizeof(chunks), f->code + entry->start, 4 * (size_t)entry->words);
    return 4 + sizeof(chunks) + 4 * (size_t)entry->words;
}

static int write_seeds(void)
{
    static uint8_t bytes[4 * FIXTURE_WORDS];

    for (uint32_t which = 0; which < HAND_MADE; which++) {
        size_t size;
        FILE *file;

        make_hand_made(which);
        size = seed_of(which, bytes);
        file = fopen(seed_files[which], "wb");
        if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
            return 1;
    }
    return 0;
}

/* else the fuzzer starts from programs that are refused at once */
static void seeds_are_these_programs(void **state)
{
    static uint8_t bytes[4 * FIXTURE_WORDS], found[4 * FIXTURE_WORDS];

    (void)state;
    for (uint32_t which = 0; which < HAND_MADE; which++) {
        size_t size = seed_of(which, bytes);
        FILE *file = fopen(seed_files[which], "rb");

        assert_non_null(file);
        CHECK_EQ(fread(found, 1, sizeof(found), file), size);
        fclose(file);
        if (memcmp(found, bytes, size) != 0)
            fail_msg("%s is another program: build/tests/test_mutants --seeds", seed_files[which]);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_accepted_mutant_misbehaves),
        cmocka_unit_test(seeds_are_these_programs),
        cmocka_unit_test(no_accepted_mutant_of_a_compiled_model_misbehaves),
        cmocka_unit_test(the_board_reports_what_an_unverified_program_does),
    };

    if (argc == 2 && strcmp(argv[1], "--seeds") == 0)
        return write_seeds();
    if (brief())
        mutants /= 2;
    if (argc > 1)
        mutants = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        seed = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
