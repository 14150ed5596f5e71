/* How long a real program takes: two clocks, the roofs, and the CPU's instructions as QEMU counts
 * them (bench/clock_cpu.csv, made by bench/clock/count). */
#include <math.h>

#include "check.h"

#include "clock_machine.h"
#include "targets/target.h"
#include "targets/uthinker/clock/clock_account.h"
#include "targets/uthinker/isa/code_item.h"
#include "uthinker_fixture.h"

static fixture f;
static mur_program program;
static mur_verifier verifier;

static void open_program(void)
{
    CHECK_EQ(mur_open(&program, f.build->program.data, f.build->program.size), MUR_OK);
    CHECK_EQ(mur_verify(&program, &verifier), MUR_OK);
}

/* the built-in model, of 256 positions */
static int set_up(void **state)
{
    (void)state;
    fixture_open(&f, "models/rescue", &muc_uthinker_defaults);
    open_program();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fixture_free(&f);
    return 0;
}

static const struct call {
    uint32_t pos, m;
} calls[] = { { 0, 1 }, { 63, 1 }, { 130, 1 }, { 255, 1 }, { 0, 64 }, { 40, 30 }, { 192, 64 } };

static muc_clock_sums time_call(const muc_uthinker_machine *machine, struct call call)
{
    muc_clock_sums sums = { 0 };

    CHECK_OK(f.ctx, muc_clock_call(f.ctx, &program, machine, call.pos, call.m, MUC_CLOCK_LIKELIEST,
                                   &sums));
    return sums;
}

static judge_program judged_entry(uint32_t m)
{
    uint32_t entry = mur_find_entry(&program, m == 1 ? MUR_ENTRY_DECODE : MUR_ENTRY_PREFILL, m);
    judge_program judged = { .code = program.code + program.entries[entry].start,
                             .words = program.entries[entry].words,
                             .tables = program.tables };

    for (uint32_t i = 0; i < MUR_BUFFERS; i++)
        judged.bytes[i] = (&program.mach->i0)[i];
    for (uint32_t i = 0; i < MUR_REGIONS; i++)
        judged.bytes[MUR_BUFFERS + i] = program.region_bytes[i];
    return judged;
}

static void check_call(const muc_uthinker_machine *machine, struct call call)
{
    clock_machine keys = clock_machine_of(machine);
    const judge_program judged = judged_entry(call.m);
    const muc_clock_sums sums = time_call(machine, call);
    const muc_clock_roofs roofs = muc_clock_roofs_of(machine, &sums);
    muc_clock_sums drawn = { 0 };
    clock_verdict verdict;

    CHECK(clock_judge(&judged, &keys, call.pos, call.m, 1u << 20, program.meta->vocabulary, false,
                      &verdict));
    CHECK_EQ(sums.ps, verdict.ps);
    CHECK_EQ(sums.cpu_instructions, verdict.cpu_instructions);
    CHECK_EQ(sums.dram_bytes, verdict.burst_bytes);
    CHECK(roofs.least_ps <= roofs.dram_ps && roofs.dram_ps <= sums.ps);
    CHECK(roofs.array_ps <= sums.ps && roofs.cpu_ps <= sums.ps);

    CHECK(clock_judge(&judged, &keys, call.pos, call.m, 1u << 20, program.meta->vocabulary, true,
                      &verdict));
    CHECK_OK(f.ctx,
             muc_clock_call(f.ctx, &program, machine, call.pos, call.m, MUC_CLOCK_DRAWN, &drawn));
    CHECK_EQ(drawn.ps, verdict.ps);
    CHECK_EQ(drawn.cpu_instructions, verdict.cpu_instructions);
}

/* of a call that others follow: no head, no choice */
static void check_inner_call(const muc_uthinker_machine *machine, struct call call)
{
    clock_machine keys = clock_machine_of(machine);
    judge_program judged = judged_entry(call.m);
    const muc_clock_sums whole = time_call(machine, call);
    uint64_t head = machine->costs.time.cpu_logit * (uint64_t)program.meta->vocabulary;
    muc_clock_sums sums = { 0 };
    clock_verdict verdict;

    CHECK_OK(f.ctx,
             muc_clock_call(f.ctx, &program, machine, call.pos, call.m, MUC_CLOCK_NOTHING, &sums));
    judged.mute = true;
    CHECK(clock_judge(&judged, &keys, call.pos, call.m, 1u << 20, 0, false, &verdict));
    CHECK_EQ(sums.ps, verdict.ps);
    CHECK_EQ(sums.cpu_instructions, verdict.cpu_instructions);
    CHECK_EQ(sums.dram_bytes, verdict.burst_bytes);
    CHECK(sums.cpu_instructions + head < whole.cpu_instructions && sums.ps < whole.ps);
    CHECK_EQ(sums.written_bytes[MUR_IO], 0);
    CHECK(sums.least_bytes + 4 * (uint64_t)program.meta->vocabulary < whole.least_bytes);
}

static void both_clocks_tell_the_same_on_every_machine_that_is_built_in(void **state)
{
    const muc_target_machine *row;
    uint32_t machines = 0;

    (void)state;
    for (size_t i = 0; (row = muc_machine_at_uthinker(i)); i++, machines++) {
        muc_uthinker_machine machine;

        CHECK_OK(f.ctx, muc_uthinker_find_machine(f.ctx, &f.arena, row->name, &machine));
        CHECK(machine.costs.has_time && machine.costs.has_energy);
        assert_string_equal(machine.name, row->name);
        for (uint32_t c = 0; c < MUC_COUNT(calls); c++)
            for (uint32_t tokens = 0; tokens < 2; tokens++) {
                machine.costs.time.hardware_tokens = tokens;
                check_call(&machine, calls[c]);
                check_inner_call(&machine, calls[c]);
            }
    }
    CHECK_EQ(machines, 5);
}

static void more_of_anything_never_takes_longer(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < MUC_COUNT(calls); c++) {
        muc_uthinker_machine machine = f.machine;
        muc_uthinker_time *time = &machine.costs.time;
        uint64_t before = time_call(&machine, calls[c]).ps, after;

#define FASTER(change) \
    change; \
    after = time_call(&machine, calls[c]).ps; \
    CHECK(after <= before); \
    before = after;

        FASTER(time->dram_mbs *= 4)
        FASTER(time->dma_latency = 0)
        FASTER(time->dma_queue = time->acc_queue = 64)
        FASTER(time->vector_width *= 2)
        FASTER(time->cpu_khz *= 2)
        FASTER(time->hardware_tokens = 1)
        FASTER(time->acc_khz *= 2)
#undef FASTER
    }
}

/* a call's parts add up to nothing less than the parts of its tokens fed in two calls */
static void feeding_goes_in_calls_as_the_runtime_makes_them(void **state)
{
    muc_clock_sums all = { 0 }, parts = { 0 };

    (void)state;
    CHECK_OK(f.ctx, muc_clock_feed(f.ctx, &program, &f.machine, 0, 150, MUC_CLOCK_NOTHING, &all));
    CHECK_EQ(all.calls, 3);
    CHECK_EQ(all.tokens, 150);
    for (uint32_t pos = 0; pos < 150; pos += 50)
        CHECK_OK(f.ctx,
                 muc_clock_call(f.ctx, &program, &f.machine, pos, 50, MUC_CLOCK_NOTHING, &parts));
    CHECK_EQ(all.ps, parts.ps);
    CHECK_FAILS(f.ctx, MUC_USAGE, "no call takes 65 tokens",
                muc_clock_call(f.ctx, &program, &f.machine, 0, 65, MUC_CLOCK_NOTHING, &parts));
    CHECK_FAILS(f.ctx, MUC_USAGE, "at position 256",
                muc_clock_call(f.ctx, &program, &f.machine, 256, 1, MUC_CLOCK_NOTHING, &parts));
}

static void what_takes_too_long_to_be_told_is_refused(void **state)
{
    muc_uthinker_machine slow = f.machine;
    muc_uthinker_build *build;
    muc_clock_sums sums;
    double joules;

    (void)state;
    slow.costs.time.cpu_khz = 1; /* 100 ms an instruction */
    slow.costs.time.cpu_cpk = 100000;
    slow.costs.energy.idle_uw = 10000000; /* 10 W: more femtojoules than 64 bits count */
    sums = time_call(&slow, calls[0]);
    CHECK_EQ(sums.cpu_ps, sums.cpu_instructions * 100000000000u);
    joules = muc_clock_energy_of(&slow, &sums).idle * 1e-15;
    CHECK(joules > 1e4 && fabs(joules / ((double)sums.ps * 1e-12 * 10) - 1) < 1e-12);

    slow.costs.time.cpu_inst = 1000000;
    CHECK_FAILS(f.ctx, MUC_UNSUPPORTED, "tokens at position 255 take 213 days",
                muc_clock_call(f.ctx, &program, &slow, 255, 1, MUC_CLOCK_LIKELIEST, &sums));
    CHECK_FAILS(
        f.ctx, MUC_UNSUPPORTED, "higher clocks (acc_khz, cpu_khz)",
        muc_uthinker_compile(f.ctx, f.graph, &slow, &muc_uthinker_defaults, &no_tokens, &build));
}

/* ---- accounts ---- */

static uint64_t idle_sum(const muc_clock_account *a, muc_clock_engine engine)
{
    uint64_t sum = 0;

    for (uint32_t r = 0; r < MUC_CLOCK_REASONS; r++)
        sum += a->idle_ps[engine][r];
    return sum;
}

static muc_clock_cell cell_sum(const muc_clock_account *a)
{
    muc_clock_cell sum = { 0 };

    for (uint32_t stage = 0; stage < a->stage_count; stage++) {
        const muc_clock_cell cell = muc_clock_stage_sum(a, stage);

        sum.ps += cell.ps;
        for (uint32_t p = 0; p < MUC_CLOCK_PARTS; p++)
            sum.work_ps[p] += cell.work_ps[p];
        sum.dram_bytes += cell.dram_bytes;
        sum.macs += cell.macs;
    }
    return sum;
}

static uint64_t class_sum(const uint64_t *bytes, muc_dram_class first, muc_dram_class end)
{
    uint64_t sum = 0;

    for (unsigned c = first; c < (unsigned)end; c++)
        sum += bytes[c];
    return sum;
}

/* What is watched is what passes: no picosecond and no byte is lost or counted twice. */
static void check_account(const muc_uthinker_machine *machine, uint32_t pos, uint32_t count)
{
    muc_clock_sums plain = { 0 }, sums = { 0 };
    muc_clock_account a;
    muc_clock_watch watch;
    muc_clock_cell all;

    CHECK_OK(f.ctx, muc_clock_account_begin(f.ctx, &f.arena, &program, machine, &a));
    watch = muc_clock_account_watch(&a);
    CHECK_OK(f.ctx, muc_clock_watched(f.ctx, &program, machine, pos, count, MUC_CLOCK_LIKELIEST,
                                      &watch, &sums));
    CHECK_OK(f.ctx,
             muc_clock_feed(f.ctx, &program, machine, pos, count, MUC_CLOCK_LIKELIEST, &plain));
    CHECK(memcmp(&plain, &sums, sizeof(sums)) == 0);
    all = cell_sum(&a);
    CHECK_EQ(all.ps, sums.ps);
    CHECK_EQ(all.work_ps[MUC_PART_DMA], sums.dma_ps);
    CHECK_EQ(all.work_ps[MUC_PART_ARRAY], sums.array_ps);
    CHECK_EQ(all.work_ps[MUC_PART_VECTOR], sums.vector_ps);
    CHECK_EQ(all.work_ps[MUC_PART_CPU], sums.cpu_ps);
    CHECK_EQ(all.dram_bytes, sums.dram_bytes);
    CHECK_EQ(all.macs, sums.macs);
    CHECK_EQ(idle_sum(&a, MUC_ENGINE_DMA) + sums.dma_ps, sums.ps);
    CHECK_EQ(idle_sum(&a, MUC_ENGINE_ACCELERATOR) + sums.array_ps + sums.vector_ps, sums.ps);
    CHECK_EQ(idle_sum(&a, MUC_ENGINE_CPU) + sums.cpu_ps, sums.ps);
    CHECK_EQ(class_sum(a.read_bytes, MUC_DRAM_EMBEDDING, MUC_DRAM_ROPE), sums.read_bytes[MUR_WGTS]);
    CHECK_EQ(class_sum(a.read_bytes, MUC_DRAM_K_CACHE, MUC_DRAM_TOKENS), sums.read_bytes[MUR_KV]);
    CHECK_EQ(class_sum(a.written_bytes, MUC_DRAM_K_CACHE, MUC_DRAM_TOKENS),
             sums.written_bytes[MUR_KV]);
    CHECK_EQ(a.layers, program.meta->layers);
    for (uint32_t layer = 0; layer <= a.layers; layer++)
        CHECK(muc_clock_layer_sum(&a, layer).macs > 0);
}

static void an_account_loses_no_time_and_no_byte(void **state)
{
    const muc_target_machine *row;

    (void)state;
    for (size_t i = 0; (row = muc_machine_at_uthinker(i)); i++) {
        muc_uthinker_machine machine;

        CHECK_OK(f.ctx, muc_uthinker_find_machine(f.ctx, &f.arena, row->name, &machine));
        for (uint32_t tokens = 0; tokens < 2; tokens++) {
            machine.costs.time.hardware_tokens = tokens;
            for (uint32_t c = 0; c < MUC_COUNT(calls); c++)
                check_account(&machine, calls[c].pos, calls[c].m);
            check_account(&machine, 0, 150);
        }
    }
}

/* layers are alike but for their weights' bytes, and each class is as long as its tensors */
static void an_account_tells_layers_and_classes_apart(void **state)
{
    const muc_uthinker_layout *layout = &f.build->layout;
    const muc_dram_places places = muc_dram_places_of(&program, &f.machine);
    uint64_t least = 0;

    (void)state;
    CHECK_EQ(places.start[MUC_DRAM_K_CACHE], layout->k_cache);
    CHECK_EQ(places.start[MUC_DRAM_V_CACHE], layout->v_cache);
    CHECK_EQ(places.start[MUC_DRAM_V_TAIL], layout->v_tail);
    CHECK_EQ(places.start[MUC_DRAM_X_CACHE], layout->x_cache);
    CHECK_EQ(places.start[MUC_DRAM_GAINS], layout->gain_attention);
    CHECK_EQ(places.start[MUC_DRAM_ROWS], layout->embedded);
    CHECK_EQ(places.start[MUC_DRAM_LOGITS], layout->logits);
    for (unsigned i = 0; i < MUC_MATRIX_COUNT; i++)
        if (layout->matrix[i].bytes)
            least += layout->matrix[i].bytes - 4 * ((uint64_t)layout->matrix[i].tiles + 1);
    CHECK_EQ(class_sum(places.block_bytes, MUC_DRAM_EMBEDDING, MUC_DRAM_ROPE), least);
    for (unsigned c = 0; c < MUC_DRAM_MATRICES; c++)
        if (places.block_bytes[c])
            CHECK_EQ(muc_dram_class_at(&places, MUR_WGTS, places.start[c] + 4), c);
    CHECK_EQ(muc_dram_class_at(&places, MUR_PARM, layout->gain_final), MUC_DRAM_GAINS);
    CHECK_EQ(muc_dram_class_at(&places, MUR_IO, layout->embedded - 1), MUC_DRAM_TOKENS);
}

/* ---- the sequencer ---- */

/* the fixture's model for this machine */
static void compile_for(const muc_uthinker_machine *machine)
{
    muc_uthinker_build_free(f.build);
    f.build = NULL;
    CHECK_OK(f.ctx, muc_uthinker_compile(f.ctx, f.graph, machine, &muc_uthinker_defaults,
                                         &no_tokens, &f.build));
    open_program();
}

static uint32_t streamed_loops(void)
{
    uint32_t count = 0, words;

    for (uint32_t i = 0; i < program.entry_count; i++)
        for (uint32_t at = 0; at < program.entries[i].words; at += words) {
            muc_item item;

            words = muc_item_decode(program.code + program.entries[i].start + at,
                                    program.entries[i].words - at, &item);
            CHECK(words > 0);
            count += item.streamed;
        }
    return count;
}

static void loops_are_streamed_where_that_takes_less_time(void **state)
{
    muc_uthinker_machine machine, without, slow;
    fixture_words plain[MUC_COUNT(calls)] = { { 0 } }, streamed = { 0 };
    uint64_t plain_ps[MUC_COUNT(calls)], loop_ps;

    (void)state;
    CHECK_OK(f.ctx, muc_uthinker_find_machine(f.ctx, &f.arena, "uthinker-sequencer", &machine));
    without = slow = machine;
    without.costs.time.sequencer_word = 0;
    slow.costs.time.sequencer_word = 1000;
    loop_ps = ((uint64_t)machine.costs.time.cpu_for + machine.costs.time.cpu_next) *
                  machine.costs.time.cpu_cpk * 1000000 / machine.costs.time.cpu_khz +
              2;
    compile_for(&slow);
    CHECK_EQ(streamed_loops(), 0);
    compile_for(&without);
    CHECK_EQ(streamed_loops(), 0);
    for (uint32_t c = 0; c < MUC_COUNT(calls); c++) {
        fixture_interpret(&program, calls[c].m > 1, calls[c].pos, calls[c].m, &plain[c]);
        plain_ps[c] = time_call(&machine, calls[c]).ps;
    }
    compile_for(&machine);
    CHECK_EQ(streamed_loops(), 2); /* what has the layers of an entry */
    for (uint32_t c = 0; c < MUC_COUNT(calls); c++) {
        fixture_interpret(&program, calls[c].m > 1, calls[c].pos, calls[c].m, &streamed);
        CHECK_EQ(streamed.count, plain[c].count);
        CHECK(memcmp(streamed.words, plain[c].words, 4 * streamed.count) == 0);
        free(plain[c].words);
        CHECK(time_call(&machine, calls[c]).ps < plain_ps[c]);
        /* what is streamed is a loop of one round, which a CPU executes too */
        CHECK(time_call(&without, calls[c]).ps >= plain_ps[c]);
        CHECK(time_call(&without, calls[c]).ps <= plain_ps[c] + loop_ps);
        for (uint32_t tokens = 0; tokens < 2; tokens++) {
            machine.costs.time.hardware_tokens = tokens;
            check_call(&machine, calls[c]);
            check_inner_call(&machine, calls[c]);
            check_account(&machine, calls[c].pos, calls[c].m);
        }
    }
    free(streamed.words);
}

/* ---- the CPU ---- */

/* the figure of a row of bench/clock_cpu.csv */
static uint64_t counted(const char *board, const char *what)
{
    FILE *table = fopen("bench/clock_cpu.csv", "r");
    char line[128], key[64];
    uint64_t found = UINT64_MAX;

    assert_non_null(table);
    snprintf(key, sizeof(key), "%s,%s,", board, what);
    while (fgets(line, sizeof(line), table))
        if (strncmp(line, key, strlen(key)) == 0)
            found = strtoull(line + strlen(key), NULL, 10);
    fclose(table);
    if (found == UINT64_MAX)
        fail_msg("bench/clock_cpu.csv has no row %s", key);
    return found;
}

/* instructions of a call without what EMBED decodes and AMAX looks at, which the bench counts apart
 */
static void check_cpu(const muc_uthinker_machine *machine, const char *board, const char *what,
                      struct call call)
{
    muc_uthinker_machine quiet = *machine;
    muc_clock_sums sums = { 0 };
    double most = 0.05, real = (double)counted(board, what);

    quiet.costs.time.cpu_embed = quiet.costs.time.cpu_logit = 0;
    CHECK_OK(f.ctx,
             muc_clock_call(f.ctx, &program, &quiet, call.pos, call.m, MUC_CLOCK_LIKELIEST, &sums));
    print_message("%s %s: %llu, counted %.0f\n", board, what,
                  (unsigned long long)sums.cpu_instructions, real);
    CHECK((double)sums.cpu_instructions <= (1 + most) * real);
    CHECK((double)sums.cpu_instructions >= (1 - most) * real);
}

static void the_cpus_part_is_what_qemu_counts_within_five_percent(void **state)
{
    static const struct {
        const char *machine, *board;
    } cores[] = { { "uthinker", "rv32" }, { "uthinker-robot", "m4" }, { "uthinker-1b", "rv32f" } };

    (void)state;
    shared_data("llama/stories260K.bin"); /* which the counts are of */
    fixture_free(&f);
    fixture_stories(&f, &muc_uthinker_defaults);
    open_program();
    for (uint32_t i = 0; i < MUC_COUNT(cores); i++) {
        const char *board = cores[i].board;
        muc_uthinker_machine machine;

        CHECK_OK(f.ctx, muc_uthinker_find_machine(f.ctx, &f.arena, cores[i].machine, &machine));
#define IS_COUNTED(name) CHECK_EQ(machine.costs.time.name, counted(board, #name));
        IS_COUNTED(cpu_start)
        IS_COUNTED(cpu_inst)
        IS_COUNTED(cpu_wait)
        IS_COUNTED(cpu_patched)
        IS_COUNTED(cpu_word)
        IS_COUNTED(cpu_patch)
        IS_COUNTED(cpu_eval)
        IS_COUNTED(cpu_for)
        IS_COUNTED(cpu_next)
        IS_COUNTED(cpu_end)
        IS_COUNTED(cpu_embed)
        IS_COUNTED(cpu_logit)
        IS_COUNTED(cpu_sample)
#undef IS_COUNTED
        check_cpu(&machine, board, "decode_first", (struct call){ 0, 1 });
        check_cpu(&machine, board, "decode_middle", (struct call){ 255, 1 });
        check_cpu(&machine, board, "decode_last", (struct call){ 511, 1 });
        check_cpu(&machine, board, "prefill", (struct call){ 0, 64 });
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_clocks_tell_the_same_on_every_machine_that_is_built_in),
        cmocka_unit_test(more_of_anything_never_takes_longer),
        cmocka_unit_test(feeding_goes_in_calls_as_the_runtime_makes_them),
        cmocka_unit_test(what_takes_too_long_to_be_told_is_refused),
        cmocka_unit_test(an_account_loses_no_time_and_no_byte),
        cmocka_unit_test(an_account_tells_layers_and_classes_apart),
        cmocka_unit_test(loops_are_streamed_where_that_takes_less_time),
        cmocka_unit_test(the_cpus_part_is_what_qemu_counts_within_five_percent),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
