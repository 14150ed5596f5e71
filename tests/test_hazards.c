/* Nests of loops made at random, whose instructions are right but for the tokens that they wait for
 * and signal: no program is accepted in which oracle/judge_uthinker.c, executing it, sees a race.
 *
 * test_hazards [programs [seed]]: 12,000 of a fixed seed by default. One in twenty is longer than
 * what the verifier keeps facts of.
 */
#include "oracle/judge_uthinker.h"
#include "program_fixture.h"
#include "xorshift.h"

static uint64_t programs = 12000, seed = 1, chance;

enum { MOST_STEPS = 20000, MOST_TEXT = 1 << 17, MOST_M = 8, CONTEXT = 64 };

static uint32_t below(uint32_t n)
{
    return random_next(&chance) % n;
}

static char text[MOST_TEXT];
static size_t used;

static void add(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void add(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    used += (size_t)vsnprintf(text + used, sizeof(text) - used, format, list);
    va_end(list);
    assert_true(used < sizeof(text));
}

/* Waits for each of nine tokens `care` times in 16. */
static void add_tokens(uint32_t care)
{
    uint32_t waits = 0;

    if (below(5) != 0)
        add("sig=%u ", below(9));
    for (uint32_t t = 0; t < 9; t++)
        if (below(16) < care)
            add("%s%u", waits++ ? "," : "wait=", t);
    add("\n");
}

/* Each half of each buffer, and region IO. */
static void add_instruction(uint32_t care)
{
    uint32_t buffer = below(5), half = below(2), other = below(2);
    uint32_t address = half * (buffer < 2 ? 512 : buffer < 4 ? 1024 : 4096);

    switch (below(12)) {
    case 0:
    case 1:
    case 2:
    case 3:
        add("LD addr=%u buf=%u region=%u off=0 len=64 ", address, buffer, below(4) ? 0 : 3);
        break;
    case 4:
        add("ST addr=%u buf=%u region=%u off=0 len=64 ", address, buffer, 2 + below(2));
        break;
    case 5:
        add("QUANT saddr=%u rows=1 daddr=%u dst=%u terms=1 k=8 ", 1024 * half, 512 * other,
            below(4));
        break;
    case 6:
        add("AMAX saddr=0 k=8 dst=64 ");
        break;
    case 7:
        add("ROPE saddr=0 rows=0 taddr=0 heads=1 k=8 ");
        break;
    default:
        add("MM src=%u saddr=%u rows=1 k=8 terms=1 wsrc=%u waddr=%u wlen=64 cols=8 daddr=%u ",
            below(2), 512 * below(2), 2 + below(2), 1024 * half, 1024 * other);
        break;
    }
    add_tokens(care);
}

static void add_items(uint32_t depth, uint32_t care, uint32_t *left)
{
    /* r4 is 0..7, r5 0 or 1 */
    static const char *const counts[] = { "0", "1", "2", "3", "r4 7", "r5 1", "r1 8" };

    for (uint32_t i = 1 + below(6); i > 0 && *left > 0; i--) {
        --*left;
        if (depth == MUR_MAX_NESTING || below(4) != 0) {
            add_instruction(care);
            continue;
        }
        add("FOR r%u %s\n", 10 + depth, counts[below(sizeof(counts) / sizeof(counts[0]))]);
        if (below(3) == 0)
            add("r%u = ADD r%u #5\n", 20 + depth, 10 + depth);
        add_items(depth + 1, care, left);
        add("NEXT\n");
    }
}

static void make(hand_program *f)
{
    uint32_t care = below(4) == 0 ? 16 : 6 + below(10);
    uint32_t left = below(20) == 0 ? 2 * MUR_FACTS : 4 + below(50);

    used = 0;
    add("r4 = SUB r1 #1\nr5 = LT r0 #5\n");
    while (left > 0)
        add_items(0, care, &left);
    fixture_init(f);
    f->meta.context = CONTEXT;
    fixture_entry(f, 1, MOST_M, text);
    CHECK_EQ(fixture_build(f), MUR_OK);
}

/* what the judge sees for any of some inputs, or NULL */
static const char *judge(const hand_program *f, uint64_t *steps)
{
    judge_program judged = { .code = f->code, .words = f->words, .tables = f->program.tables };
    const char *wrong = judge_form(&judged);

    for (uint32_t i = 0; i < JUDGE_BUFFERS; i++)
        judged.bytes[i] = (&f->program.mach->i0)[i];
    for (uint32_t i = 0; i < MUR_REGIONS; i++)
        judged.bytes[JUDGE_BUFFERS + i] = f->program.region_bytes[i];
    for (uint32_t i = 0; i < 2 * MOST_M && !wrong; i++) {
        judge_run run = { 0 };

        wrong = judge_execute(&judged, i % 2 * (CONTEXT - MOST_M), 1 + i / 2, MOST_STEPS, &run);
        *steps = run.steps > *steps ? run.steps : *steps;
    }
    return wrong;
}

static void no_accepted_nest_has_a_race(void **state)
{
    static hand_program f;
    uint64_t accepted = 0, races = 0, caution = 0;

    (void)state;
    chance = seed * 0x9e3779b97f4a7c15u | 1;
    for (uint64_t i = 0; i < programs; i++) {
        uint64_t steps = 0;
        const char *wrong;
        mur_status status;

        make(&f);
        wrong = judge(&f, &steps);
        status = mur_verify(&f.program, &f.verifier);
        if (status == MUR_OK && (wrong || steps > f.program.steps))
            fail_msg("program %llu of seed %llu is accepted, but %s\n%s", (unsigned long long)i,
                     (unsigned long long)seed, wrong ? wrong : "takes more steps", text);
        accepted += status == MUR_OK;
        if (f.verifier.verdict.reason == MUR_REASON_RACE)
            ++*(wrong ? &races : &caution);
    }
    CHECK(accepted > programs / 20);
    CHECK(races > programs / 20);
    print_message(
        "%llu programs: %llu accepted, none of them wrong; %llu races, %llu out of caution\n",
        (unsigned long long)programs, (unsigned long long)accepted, (unsigned long long)races,
        (unsigned long long)caution);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(no_accepted_nest_has_a_race) };

    if (brief())
        programs /= 2;
    if (argc > 1)
        programs = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        seed = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
