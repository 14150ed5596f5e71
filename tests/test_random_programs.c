/* Programs made at random, of whatever sizes of buffers and regions: what the verifier says of
 * them, what the simulator and the device's interpreter do with them, judged by
 * oracle/judge_uthinker.c, which was written from SPEC.md and shares no code with any of the three.
 *
 * test_random_programs [programs [seed]]: 60,000 of a fixed seed by default.
 */
#include "check.h"
#include "mur_code.h"
#include "mur_embed.h"
#include "oracle/clock_judge.h"
#include "clock_machine.h"
#include "targets/uthinker/clock/account_report.h"
#include "targets/uthinker/run/draw_program.h"
#include "targets/uthinker/sim/uthinker_sim.h"
#include "xorshift.h"

static uint64_t programs = 60000, seed = 1;

enum { MOST_WORDS = 1024, MOST_STEPS = 3000, TABLES = 2, TABLE_WORDS = 2 + TABLES + 8 + 5 };

static const char *const reasons[] = {
#define MUR_REASON(name, operand, sentence) #name,
#include "mur_reasons.def"
#undef MUR_REASON
};

/* ---- chance ---- */

static uint64_t chance;

static uint32_t draw(void)
{
    return random_next(&chance);
}

static uint32_t below(uint32_t n)
{
    return draw() % n;
}

static bool once_in(uint32_t n)
{
    return below(n) == 0;
}

/* A number of so many bits: small, or at an end, or anything. */
static uint32_t draw_number(uint32_t bits, uint32_t small)
{
    uint32_t most = UINT32_MAX >> (32 - bits);

    switch (below(16)) {
    case 0:
        return most - below(4);
    case 1:
        return draw() & most;
    case 2:
        return (1u << below(bits)) & most;
    case 3:
    case 4:
        return below(4) & most;
    default:
        return below(small) & most;
    }
}

/* ---- a program ---- */

typedef struct candidate {
    uint32_t code[MOST_WORDS], words;
    uint32_t tables[TABLE_WORDS];
    mur_mach mach;
    mur_meta meta;
    mur_entr entry;
    mur_program program;
    judge_program judged;
} candidate;

static candidate c;
static mur_verifier verifier;

/* what a generator may do */
typedef struct style {
    bool plain;    /* instructions of constants only, one after another */
    bool careful;  /* engines wait for each other, mostly */
    uint32_t wild; /* one field in so many holds anything */
    uint32_t items;
} style;

static uint32_t depth;
static uint32_t loops[MUR_MAX_NESTING + 1];
static uint8_t owner[MUR_SLOTS]; /* 1 + loops around the code that wrote it */

static uint32_t written_slot(void)
{
    for (uint32_t i = 0; i < 20; i++) {
        uint32_t slot = below(14);

        if (owner[slot] != 0)
            return slot;
    }
    return once_in(10) ? below(MUR_SLOTS) : below(MUR_INPUTS);
}

/* A slot that may be written here, mostly; if a pair is wanted, the next one too. */
static uint32_t free_slot(bool pair)
{
    for (uint32_t i = once_in(30) ? 20 : 0; i < 20; i++) {
        uint32_t slot = MUR_INPUTS + below(20);

        if (owner[slot] == 0 && (!pair || owner[slot + 1] == 0))
            return slot;
    }
    return below(once_in(2) ? 14 : MUR_SLOTS);
}

static void own(uint32_t slot)
{
    if (slot < MUR_SLOTS)
        owner[slot] = (uint8_t)(depth + 1);
}

static void add_eval(const style *s)
{
    uint32_t op = 1 + below(MUR_OP_TABLE), dst = free_slot(op == MUR_OP_TABLE), b = 0, second = 0;
    bool constant = op < MUR_OP_SEL && !once_in(3);

    if (op >= MUR_OP_CDIV && op <= MUR_OP_MOD)
        constant = true;
    if (op == MUR_OP_SHL || op == MUR_OP_SHR)
        constant = true;
    if (once_in(8 * s->wild))
        constant = !constant;
    if (constant)
        second = op == MUR_OP_SHL || op == MUR_OP_SHR ? draw_number(6, 6) : draw_number(32, 70);
    else if (op != MUR_OP_TABLE)
        b = written_slot();
    if (op == MUR_OP_SEL)
        second = written_slot();
    if (op == MUR_OP_TABLE)
        second =
            once_in(s->wild) ? draw_number(8, TABLE_WORDS) : c.tables[1 + below(TABLES)] + below(2);
    if (once_in(16 * s->wild))
        *(once_in(2) ? &b : &second) = below(MUR_SLOTS);
    c.code[c.words++] =
        MUR_EVAL | op << 4 | dst << 10 | written_slot() << 16 | b << 22 | (uint32_t)constant << 28;
    c.code[c.words++] = second;
    own(dst);
    if (op == MUR_OP_TABLE)
        own(dst + 1);
}

static void add_for(const style *s)
{
    bool constant = once_in(2);
    uint32_t variable = free_slot(false), count = constant ? 0 : written_slot();

    c.code[c.words++] = MUR_FOR | variable << 4 | count << 10 | (uint32_t)constant << 16 |
                        (uint32_t)once_in(6) << 17;
    c.code[c.words++] = once_in(s->wild) ? draw() : once_in(8) ? draw_number(32, 9) : below(5);
    if (!constant && !once_in(4))
        c.code[c.words - 1] = 16;
    loops[depth++] = c.words++;
    own(variable);
}

static void add_next(const style *s)
{
    for (uint32_t i = 0; i < MUR_SLOTS; i++)
        if (owner[i] > depth)
            owner[i] = 0;
    depth--;
    c.code[loops[depth]] = c.words - loops[depth] - 1 + once_in(20 * s->wild);
    c.code[c.words++] = MUR_NEXT;
}

/* What fields of these names hold, mostly: a choice within lo..hi. */
static const struct {
    const char *name;
    uint32_t lo, hi;
} choices[] = {
    { "buf", 0, 4 },   { "region", 2, 3 }, { "src", 0, 1 },   { "wsrc", 2, 3 }, { "terms", 1, 2 },
    { "group", 1, 4 }, { "valid", 1, 64 }, { "rows", 0, 5 },  { "k", 0, 40 },   { "heads", 0, 4 },
    { "cols", 0, 12 }, { "skip", 0, 3 },   { "first", 0, 1 },
};

static uint32_t field_value(const style *s, const judge_insn *insn, const judge_field *field)
{
    if (strcmp(field->name, "dst") == 0 && field->width == 3 && !once_in(s->wild))
        return below(4);
    if (insn->opcode == 0x08 && strcmp(field->name, "dst") == 0 && !once_in(8))
        return 4 * below(200);
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
        if (strcmp(field->name, choices[i].name) == 0 && !once_in(s->wild))
            return choices[i].lo + below(choices[i].hi - choices[i].lo + 1);
    if (once_in(s->wild))
        return draw_number(field->width, 300);
    return below(300) & UINT32_MAX >> (32 - field->width);
}

/* Tokens 0 and 1 are DMA's, 2 and 3 the accelerator's, unless the program is careless. */
static uint32_t word0(const style *s, const judge_insn *insn)
{
    uint32_t dma = insn->engine == 'd', token = below(2) + (dma ? 0 : 2), wait = dma ? 0xc : 0x3;

    if (insn->engine == 'c')
        wait = 0xf;
    if (!s->careful || once_in(20)) {
        token = below(4);
        wait = below(16);
    }
    if (once_in(8 * s->wild))
        token = below(31);
    return insn->opcode | (once_in(s->careful ? 40 : 3) ? 0 : token + 1) << 8 | wait << 16;
}

static void add_inst(const style *s)
{
    const judge_insn *insn = &judge_insns[below(JUDGE_INSNS)];
    uint32_t *words = c.code + c.words + 1, patches = 0;

    memset(words, 0, 4u * insn->words);
    words[0] = word0(s, insn);
    for (const judge_field *x = insn->fields; x->name; x++) {
        bool patched = !s->plain && patches < 15 && once_in(6);

        if (!patched || once_in(3))
            words[x->word] |= field_value(s, insn, x) << x->shift;
        if (patched)
            words[insn->words + patches++] = written_slot() << 2 | (uint32_t)x->word << 8 |
                                             (uint32_t)x->shift << 12 | (uint32_t)x->width << 17;
    }
    words[-1] = MUR_INST | patches << 4 | (uint32_t)insn->words << 8;
    c.words += 1 + insn->words + patches;
}

static void add_items(const style *s)
{
    depth = c.words = 0;
    memset(owner, 0, sizeof(owner));
    memset(owner, 1, MUR_INPUTS);
    for (uint32_t i = 0; i < s->items; i++) {
        uint32_t kind = s->plain ? 0 : below(20);

        if (kind < 9)
            add_inst(s);
        else if (kind < 13)
            add_eval(s);
        else if (kind < 17 && (depth < MUR_MAX_NESTING || (depth == MUR_MAX_NESTING && once_in(9))))
            add_for(s);
        else if (depth != 0)
            add_next(s);
    }
    while (depth != 0 && !once_in(8 * s->wild))
        add_next(s);
    c.code[c.words++] = MUR_END;
    if (once_in(4 * s->wild)) /* and damage */
        c.code[below(c.words)] ^= 1u << below(32);
}

static void set_bytes(uint32_t place, uint64_t bytes)
{
    if (place < JUDGE_BUFFERS) {
        bytes = bytes < 128 ? 128 : bytes > 1u << 20 ? 1u << 20 : bytes;
        (&c.mach.i0)[place] = (uint32_t)bytes;
    } else {
        bytes = bytes > UINT32_MAX ? UINT32_MAX : bytes;
        c.program.region_bytes[place - JUDGE_BUFFERS] = (uint32_t)bytes;
    }
    c.judged.bytes[place] = bytes;
}

static void make(const style *s)
{
    /* the second begins as if it went on with the first, so that an index too far meets no fall */
    static const uint32_t falling[] = { 5, 64, 60, 190, 300 };
    static const uint32_t rising[] = { 301, 302, 302, 340, 400, 401, 420, 600 };

    memset(&c.meta, 0, sizeof(c.meta));
    c.tables[0] = TABLES;
    c.tables[1] = 2 + TABLES;
    c.tables[2] = c.tables[1] + 5;
    c.tables[3] = TABLE_WORDS;
    memcpy(c.tables + c.tables[1], falling, sizeof(falling));
    memcpy(c.tables + c.tables[2], rising, sizeof(rising));
    add_items(s);
    c.entry = (mur_entr){ MUR_ENTRY_PREFILL, 0, c.words, 1 + below(2), 0 };
    c.entry.max_m = c.entry.min_m + below(3);
    c.meta.context = c.entry.max_m + (once_in(10) ? draw() % (1u << 24) : below(6));
    c.program = (mur_program){ .mach = &c.mach,
                               .meta = &c.meta,
                               .entries = &c.entry,
                               .entry_count = 1,
                               .code = c.code,
                               .section_bytes[MUR_SECTION_TABL] = sizeof(c.tables),
                               .tables = c.tables };
    c.judged = (judge_program){ .code = c.code, .words = c.words, .tables = c.tables };
    for (uint32_t place = 0; place < JUDGE_PLACES; place++)
        set_bytes(place, UINT64_MAX);
}

/* ---- judging ---- */

typedef struct judgement {
    const char *wrong; /* for some input; NULL: for none of those tried */
    bool whole;        /* every input was tried to its end */
    uint64_t steps;
    uint64_t ends[JUDGE_PLACES];
} judgement;

static void judge_input(judgement *j, uint32_t pos, uint32_t m)
{
    judge_run run = { 0 };
    const char *wrong = judge_execute(&c.judged, pos, m, MOST_STEPS, &run);

    if (wrong && !j->wrong)
        j->wrong = wrong;
    if (run.cut)
        j->whole = false;
    if (run.steps > j->steps)
        j->steps = run.steps;
    for (uint32_t i = 0; i < JUDGE_PLACES; i++)
        if (run.ends[i] > j->ends[i])
            j->ends[i] = run.ends[i];
}

/* Every input if they are few, else those at the ends of their ranges. */
static judgement judge(bool wide)
{
    judgement j = { .whole = true };

    c.judged.wide = wide;
    for (uint32_t m = c.entry.min_m; m <= c.entry.max_m; m++) {
        uint32_t last = c.meta.context - m;

        for (uint32_t pos = 0; pos <= last; pos++) {
            if (pos == 6 && last > 12) {
                pos = last - 3;
                j.whole = false;
            }
            judge_input(&j, pos, m);
        }
    }
    return j;
}

/* Places as large as the program reaches, about; or of the largest sizes there are. */
static void fit_places(const judgement *reached)
{
    for (uint32_t place = 0; place < JUDGE_PLACES; place++) {
        uint64_t end = reached->ends[place];

        switch (below(8)) {
        case 0:
            set_bytes(place, UINT32_MAX);
            break;
        case 1:
            set_bytes(place, UINT32_MAX - below(8));
            break;
        case 2:
            set_bytes(place, end > 4 ? end - 1 - below(4) : 0);
            break;
        case 3:
            set_bytes(place, 2 * end + below(3)); /* the banks' border where the end was */
            break;
        case 4:
            set_bytes(place, end + below(4));
            break;
        default:
            set_bytes(place, end + below(2000));
            break;
        }
    }
}

static enum mur_reason verify(void)
{
    mur_verify(&c.program, &verifier);
    return verifier.verdict.reason;
}

static void complain(const char *what, const char *wrong)
{
    enum mur_reason reason = verifier.verdict.reason;

    for (uint32_t i = 0; i < c.words; i++)
        print_message("%08x%s", c.code[i], i % 8 == 7 ? "\n" : " ");
    print_message("\ncontext %u, m %u..%u, places", c.meta.context, c.entry.min_m, c.entry.max_m);
    for (uint32_t i = 0; i < JUDGE_PLACES; i++)
        print_message(" %llu", (unsigned long long)c.judged.bytes[i]);
    fail_msg("\n%s: the judge says '%s', the verifier %s at word %u (seed %llu)", what,
             wrong ? wrong : "fine", reasons[reason], verifier.verdict.word,
             (unsigned long long)seed);
}

/* ---- the verifier ---- */

/* Nothing is unknown of constants, so that nothing is refused for caution. */
static void programs_of_constants_are_judged_exactly(void **state)
{
    uint64_t accepted = 0;

    (void)state;
    for (uint64_t i = 0; i < programs; i++) {
        style s = { .plain = true, .careful = once_in(2), .wild = 2 + below(40) };
        judgement j;
        const char *wrong;

        s.items = once_in(3) ? 2 + below(6) : 1;
        make(&s);
        j = (judgement){ 0 };
        wrong = judge_form(&c.judged);
        if (!wrong) {
            j = judge(true);
            fit_places(&j);
            wrong = judge(true).wrong;
        }
        if ((verify() == MUR_REASON_NONE) != !wrong)
            complain("a program of constants", wrong);
        accepted += !wrong;
    }
    CHECK(accepted > programs / 5);
    print_message("%llu programs of constants, %llu of them right: the verifier says the same\n",
                  (unsigned long long)programs, (unsigned long long)accepted);
}

/* The reasons that may refuse what would run well, for SPEC section 6 names why; RIGHT only in code
 * that no input reaches. */
static bool may_be_cautious(enum mur_reason reason)
{
    static const enum mur_reason cautious[] = {
        MUR_REASON_RIGHT, MUR_REASON_OVERFLOW, MUR_REASON_INDEX,     MUR_REASON_FALLS,
        MUR_REASON_FIT,   MUR_REASON_HIGH,     MUR_REASON_LOW,       MUR_REASON_BOUNDS,
        MUR_REASON_COUNT, MUR_REASON_STEPS,    MUR_REASON_ALIGNMENT, MUR_REASON_RACE,
    };

    for (size_t i = 0; i < sizeof(cautious) / sizeof(cautious[0]); i++)
        if (reason == cautious[i])
            return true;
    return false;
}

static void no_accepted_program_is_wrong(void **state)
{
    uint64_t accepted = 0, cautious[MUR_REASONS] = { 0 };

    (void)state;
    for (uint64_t i = 0; i < programs; i++) {
        style s = { .careful = once_in(2), .items = 2 + below(14) };
        judgement j = { 0 };
        const char *form;
        enum mur_reason reason;

        s.wild = 4 + below(once_in(2) ? 60 : 2000);
        make(&s);
        form = judge_form(&c.judged);
        if (!form) {
            j = judge(false);
            fit_places(&j);
            j = judge(false);
        }
        reason = verify();
        if (reason == MUR_REASON_NONE) {
            if (form || j.wrong)
                complain("an accepted program", form ? form : j.wrong);
            if (j.steps > c.program.steps)
                complain("an accepted program takes more steps than were proven", NULL);
            accepted++;
        } else if (!form && !j.wrong && j.whole) {
            if (!may_be_cautious(reason))
                complain("a program that is fine", NULL);
            cautious[reason]++;
        }
    }
    print_message("%llu programs: %llu accepted, none of them wrong\n",
                  (unsigned long long)programs, (unsigned long long)accepted);
    for (uint32_t i = 0; i < MUR_REASONS; i++)
        if (cautious[i] != 0)
            print_message("%llu fine and refused out of caution: %s\n",
                          (unsigned long long)cautious[i], reasons[i]);
    CHECK(accepted > programs / 20);
}

/* ---- the simulator, and the device's interpreter with its EMBED ---- */

enum { ROOM = 8192 };

static uint8_t memory[JUDGE_PLACES][ROOM];
static mur_sim sim;

static mur_status device_embed(void *arg, const uint32_t *words)
{
    (void)arg;
    return mur_embed(&c.program, memory[JUDGE_BUFFERS + MUR_IO], words);
}

/* Runs the program at hand; false if it faults for an operand or a place. `device`: EMBED is the
 * device's. Blocks that mean nothing do not matter to bounds. */
static bool runs(bool device)
{
    mur_sim_memory places = { { memory[0], memory[1], memory[2], memory[3] },
                              (float *)(void *)memory[MUR_GB],
                              { 0 },
                              memory[JUDGE_BUFFERS + MUR_WGTS],
                              memory[JUDGE_BUFFERS + MUR_PARM],
                              memory[JUDGE_BUFFERS + MUR_KV],
                              memory[JUDGE_BUFFERS + MUR_IO],
                              { 0 },
                              0 };
    mur_run_state run;
    mur_hal hal;

    memcpy(places.buffer_bytes, &c.mach.i0, sizeof(places.buffer_bytes));
    memcpy(places.region_bytes, c.program.region_bytes, sizeof(places.region_bytes));
    memset(memory, 0, sizeof(memory));
    c.program.section[MUR_SECTION_WGTS] = memory[JUDGE_BUFFERS + MUR_WGTS];
    c.program.steps = MOST_STEPS; /* as if it had been accepted */
    mur_sim_init(&sim, &places, MUR_SIM_EAGER, 1);
    hal = mur_sim_hal(&sim);
    if (device)
        hal.host = device_embed;
    CHECK_EQ(mur_start(&run, &c.program, &hal, 0, 0, c.entry.min_m), MUR_OK);
    return mur_run(&run) == MUR_OK ||
           (sim.fault.reason && strcmp(sim.fault.reason, "malformed block") == 0);
}

/* One instruction on a small machine, its places just large enough or a little too small. EMBED has
 * rows of no elements, so that what its sequence holds does not matter. */
static bool make_small(void)
{
    const style s = { .plain = true, .careful = true, .wild = 30, .items = 1 };
    judgement j;

    make(&s);
    if ((c.code[1] & 255) == 0x08) {
        c.code[3] &= 0xffff0000u; /* k */
        c.code[4] = 1;            /* cols */
    }
    if (judge_form(&c.judged))
        return false;
    for (uint32_t place = 0; place < JUDGE_PLACES; place++)
        set_bytes(place, ROOM);
    j = judge(false);
    for (uint32_t place = 0; place < JUDGE_PLACES; place++)
        set_bytes(place, j.ends[place] + below(4) > 2 ? j.ends[place] + below(4) - 2 : 0);
    for (uint32_t place = 0; place < JUDGE_PLACES; place++)
        if (c.judged.bytes[place] > ROOM)
            set_bytes(place, ROOM);
    return true;
}

static void machine_and_device_fault_where_the_specification_says(void **state)
{
    uint64_t tried = 0, fine = 0;

    (void)state;
    for (uint64_t i = 0; i < programs / 4; i++) {
        const char *wrong;

        if (!make_small())
            continue;
        wrong = judge(false).wrong;
        if (verify() == MUR_REASON_NONE && wrong)
            complain("an instruction", wrong);
        if (runs(false) != !wrong)
            complain(sim.fault.reason ? sim.fault.reason : "the simulator runs it", wrong);
        if ((c.code[1] & 254) == 0x08 && runs(true) != !wrong)
            complain("the device", wrong);
        tried++;
        fine += !wrong;
    }
    print_message("%llu instructions, %llu of them right: simulator and device say the same\n",
                  (unsigned long long)tried, (unsigned long long)fine);
    CHECK(fine > tried / 10);
    CHECK(fine < tried - tried / 10);
}

/* ---- the clock ---- */

static muc_uthinker_machine draw_machine(void)
{
    muc_uthinker_machine machine = { .tile_k = 32u << below(3),
                                     .tile_n = 1u << below(7),
                                     .tokens = 32u << below(2),
                                     .costs.has_time = true };
    uint32_t *key = &machine.costs.time.acc_khz;

#define MUC_MACHINE_TIME(name, min, max, meaning) *key++ = (min) + below(once_in(3) ? 2 : 400);
#include "targets/uthinker/machines/machine_keys.def"
    machine.costs.time.acc_khz = 1000 + below(2000000);
    machine.costs.time.cpu_khz = 1000 + below(2000000);
    machine.costs.time.dram_mbs = 1 + below(once_in(2) ? 100 : 20000);
    machine.costs.time.dram_burst = 1u << below(8);
    machine.costs.time.dma_queue = 1 + below(once_in(2) ? 3 : 64);
    machine.costs.time.acc_queue = 1 + below(once_in(2) ? 3 : 64);
    machine.costs.time.hardware_tokens = below(2);
    machine.costs.time.cpu_cpk = 1 + below(3000);
    return machine;
}

static uint64_t idle_of(const muc_clock_account *account, muc_clock_engine engine)
{
    uint64_t sum = 0;

    for (unsigned reason = 0; reason < MUC_CLOCK_REASONS; reason++)
        sum += account->idle_ps[engine][reason];
    return sum;
}

/* A report of any program that is accepted is whole, and no time of it is lost. */
static void check_report(muc_context *ctx, const muc_uthinker_machine *machine, uint32_t pos,
                         uint32_t m, const muc_clock_sums *plain)
{
    muc_clock_sums sums = { 0 };
    muc_arena arena = { 0 };
    muc_clock_account account;
    muc_clock_watch watch;
    muc_report *report;
    const muc_advised_call call = { &c.program, machine, pos, m, &sums, &account };

    c.meta.rows = m;
    c.program.section_bytes[MUR_SECTION_CODE] = 4 * (c.entry.start + c.entry.words);
    CHECK_OK(ctx, muc_clock_account_begin(ctx, &arena, &c.program, machine, &account));
    watch = muc_clock_account_watch(&account);
    CHECK_OK(ctx, muc_clock_watched(ctx, &c.program, machine, pos, m, MUC_CLOCK_LIKELIEST, &watch,
                                    &sums));
    CHECK(memcmp(&sums, plain, sizeof(sums)) == 0);
    CHECK_EQ(idle_of(&account, MUC_ENGINE_DMA) + sums.dma_ps, sums.ps);
    CHECK_EQ(idle_of(&account, MUC_ENGINE_ACCELERATOR) + sums.array_ps + sums.vector_ps, sums.ps);
    CHECK_EQ(idle_of(&account, MUC_ENGINE_CPU) + sums.cpu_ps, sums.ps);
    CHECK_OK(ctx, muc_report_new(ctx, &report));
    muc_clock_add_account(report, machine, &sums, &account);
    CHECK_OK(ctx, muc_program_draw(ctx, &arena, &call, report));
    CHECK_OK(ctx, muc_program_advise(ctx, &call, report));
    CHECK_OK(ctx, muc_report_status(ctx, report));
    muc_report_free(report);
    muc_arena_free(&arena);
}

/* no time beats a roof, nor falls when the bandwidth does */
static void check_times(muc_context *ctx, muc_uthinker_machine *machine, uint32_t pos, uint32_t m,
                        const clock_verdict *judged)
{
    muc_clock_sums sums = { 0 }, slower = { 0 };
    muc_clock_roofs roofs;

    CHECK_OK(ctx, muc_clock_call(ctx, &c.program, machine, pos, m, MUC_CLOCK_LIKELIEST, &sums));
    roofs = muc_clock_roofs_of(machine, &sums);
    CHECK(sums.ps >= roofs.array_ps && sums.ps >= roofs.dram_ps && sums.ps >= roofs.cpu_ps);
    if (sums.ps != judged->ps || sums.array_cycles != judged->passes ||
        sums.dram_bytes != judged->burst_bytes || sums.cpu_instructions != judged->cpu_instructions)
        complain("its time", "another");
    check_report(ctx, machine, pos, m, &sums);
    machine->costs.time.dram_mbs = 1 + machine->costs.time.dram_mbs / 3;
    CHECK_OK(ctx, muc_clock_call(ctx, &c.program, machine, pos, m, MUC_CLOCK_LIKELIEST, &slower));
    CHECK(slower.ps >= sums.ps || machine->costs.time.dram_mbs == 1);
}

static void two_clocks_agree_to_the_picosecond(void **state)
{
    muc_context *ctx = muc_context_new(1);
    uint64_t timed = 0;

    (void)state;
    for (uint64_t i = 0; i < programs; i++) {
        const style s = {
            .plain = once_in(4), .careful = !once_in(8), .wild = 300, .items = 4 + below(40)
        };
        muc_uthinker_machine machine = draw_machine();
        clock_machine keys = clock_machine_of(&machine);
        clock_verdict verdict;
        judgement j;
        uint32_t m, pos;

        make(&s);
        if (judge_form(&c.judged))
            continue;
        j = judge(false);
        fit_places(&j);
        if (verify() != MUR_REASON_NONE)
            continue;
        m = c.entry.max_m;
        pos = below(c.meta.context - m + 1);
        c.meta.vocabulary = below(100);
        if (m < 2 ||
            !clock_judge(&c.judged, &keys, pos, m, MOST_STEPS, c.meta.vocabulary, false, &verdict))
            continue;
        check_times(ctx, &machine, pos, m, &verdict);
        timed++;
    }
    print_message("%llu programs on as many machines: two clocks tell the same time\n",
                  (unsigned long long)timed);
    CHECK(timed > programs / 50);
    muc_context_free(ctx);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_of_constants_are_judged_exactly),
        cmocka_unit_test(no_accepted_program_is_wrong),
        cmocka_unit_test(machine_and_device_fault_where_the_specification_says),
        cmocka_unit_test(two_clocks_agree_to_the_picosecond),
    };

    if (brief())
        programs /= 4;
    if (argc > 1)
        programs = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        seed = strtoull(argv[2], NULL, 10);
    chance = seed * 0x9e3779b97f4a7c15u | 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
