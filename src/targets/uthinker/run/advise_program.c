/* advise_program.c - advice that the clock has tried: each change is a run of the same call. */
#include "targets/uthinker/run/advise_program.h"

#include "report/answers.h"
#include "targets/uthinker/clock/clock_report.h"

/* seconds that a change must save, of all, to be advised */
static const double worth_saying = 0.02;

typedef enum change_id {
    CHANGE_DRAM,
    CHANGE_CPU,
    CHANGE_ARRAY,
    CHANGE_VECTOR,
    CHANGE_TOKENS,
    CHANGE_QUEUES,
    CHANGE_TRANSFERS,
    CHANGES
} change_id;

static const struct {
    const char *change, *keys;
} changes[CHANGES] = {
    [CHANGE_DRAM] = { "DRAM of twice the bandwidth", "dram_mbs, dma_bytes" },
    [CHANGE_CPU] = { "a CPU of twice the speed", "cpu_khz" },
    [CHANGE_ARRAY] = { "DMA and accelerator at twice the clock", "acc_khz" },
    [CHANGE_VECTOR] = { "a vector unit of twice the width", "vector_width" },
    [CHANGE_TOKENS] = { "hardware that waits for tokens", "hardware_tokens" },
    [CHANGE_QUEUES] = { "queues of four times the depth", "dma_queue, acc_queue" },
    [CHANGE_TRANSFERS] = { "transfers that begin and end at once", "dma_start, dma_latency" },
};

typedef struct advice {
    muc_context *ctx;
    const muc_advised_call *call;
    muc_report *report;
    uint64_t ps[CHANGES]; /* with the change */
} advice;

static uint32_t at_most(uint64_t value, uint32_t most)
{
    return value < most ? (uint32_t)value : most;
}

static void make_change(muc_uthinker_time *time, change_id change)
{
    switch (change) {
    case CHANGE_DRAM:
        time->dram_mbs = at_most(2 * (uint64_t)time->dram_mbs, 10000000);
        time->dma_bytes = at_most(2 * (uint64_t)time->dma_bytes, 65536);
        break;
    case CHANGE_CPU:
        time->cpu_khz = at_most(2 * (uint64_t)time->cpu_khz, 100000000);
        break;
    case CHANGE_ARRAY:
        time->acc_khz = at_most(2 * (uint64_t)time->acc_khz, 100000000);
        break;
    case CHANGE_VECTOR:
        time->vector_width = at_most(2 * (uint64_t)time->vector_width, 65536);
        break;
    case CHANGE_TOKENS:
        time->hardware_tokens = 1;
        break;
    case CHANGE_QUEUES:
        time->dma_queue = at_most(4 * (uint64_t)time->dma_queue, 64);
        time->acc_queue = at_most(4 * (uint64_t)time->acc_queue, 64);
        break;
    case CHANGE_TRANSFERS:
    case CHANGES:
    default:
        time->dma_start = time->dma_latency = 0;
        break;
    }
}

static muc_status try_change(advice *a, change_id change)
{
    const muc_advised_call *call = a->call;
    muc_uthinker_machine machine = *call->machine;
    muc_clock_sums sums = { 0 };

    make_change(&machine.costs.time, change);
    MUC_TRY(muc_clock_feed(a->ctx, call->program, &machine, call->position, call->tokens,
                           MUC_CLOCK_LIKELIEST, &sums));
    a->ps[change] = sums.ps;
    return MUC_OK;
}

/* the share of the time that a change saves; less than nothing if it costs some */
static double saved(const advice *a, change_id change)
{
    return 1 - (double)a->ps[change] / (double)a->call->sums->ps;
}

static muc_status add_what_if(advice *a)
{
    static const muc_report_column columns[] = {
        { "change", NULL, "one, all else as it is" },
        { "keys", NULL, "of the machine file" },
        { "seconds", "s", "that the same call would take" },
        { "tokens_per_second", NULL, NULL },
        { "saved", NULL, "share of the time" },
        { NULL, NULL, NULL },
    };

    muc_report_begin_columns(a->report, "what_if", columns);
    for (unsigned c = 0; c < CHANGES; c++) {
        MUC_TRY(try_change(a, (change_id)c));
        muc_report_begin_row(a->report);
        muc_report_add_text(a->report, "change", "%s", changes[c].change);
        muc_report_add_text(a->report, "keys", "%s", changes[c].keys);
        muc_report_add_real(a->report, "seconds", (double)a->ps[c] * 1e-12);
        muc_report_add_real(a->report, "tokens_per_second",
                            (double)a->call->sums->tokens / ((double)a->ps[c] * 1e-12));
        muc_report_add_real(a->report, "saved", saved(a, (change_id)c));
        muc_report_end(a->report);
    }
    muc_report_end(a->report);
    return MUC_OK;
}

/* ---- sentences ---- */

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* of all bytes that are read and written, those of the classes first..last */
static double class_percent(const muc_clock_account *account, muc_dram_class first,
                            muc_dram_class last)
{
    uint64_t whole = 0, part = 0;

    for (unsigned c = 0; c < MUC_DRAM_CLASSES; c++) {
        uint64_t bytes = account->read_bytes[c] + account->written_bytes[c];

        whole += bytes;
        part += c >= (unsigned)first && c <= (unsigned)last ? bytes : 0;
    }
    return percent(part, whole);
}

static void say_dram(const advice *a)
{
    const muc_clock_account *account = a->call->account;
    const mur_meta *meta = a->call->program->meta;

    muc_report_advise(
        a->report,
        "The DRAM is the bottleneck: the DMA works %.0f %% of the time. Twice the bandwidth "
        "(dram_mbs) would save %.0f %% of the time. Half the bytes would save about as much: %.0f "
        "%% are weights "
        "(compile with fewer --bits), %.0f %% keys and values%s.",
        percent(a->call->sums->dma_ps, a->call->sums->ps), 100 * saved(a, CHANGE_DRAM),
        class_percent(account, MUC_DRAM_EMBEDDING, MUC_DRAM_V),
        class_percent(account, MUC_DRAM_K_CACHE, MUC_DRAM_X_CACHE),
        meta->terms_k + meta->terms_v > 2 ? " (one term: --act-terms 2,k=1,v=1)" : "");
}

static void say_cpu(const advice *a)
{
    const muc_clock_sums *sums = a->call->sums;

    muc_report_advise(
        a->report,
        "The CPU is the bottleneck: it executes %.0f %% of the time, %.0f %% to interpret the "
        "program, %.0f %% to decode the embedding, %.0f %% to choose the next token, and the other "
        "engines wait for it. Twice the speed (cpu_khz) would save %.0f %% of the time.",
        percent(sums->cpu_ps, sums->ps),
        percent(sums->cpu_ps - sums->embed_ps - sums->choice_ps, sums->ps),
        percent(sums->embed_ps, sums->ps), percent(sums->choice_ps, sums->ps),
        100 * saved(a, CHANGE_CPU));
}

static void say_accelerator(const advice *a)
{
    const muc_clock_sums *sums = a->call->sums;

    muc_report_advise(
        a->report,
        "The accelerator is the bottleneck: the array works %.0f %% of the time and the vector "
        "unit "
        "%.0f %%. Twice the clock (acc_khz) would save %.0f %% of the time; a larger array "
        "(tile_k, "
        "tile_n, for which the model is compiled anew)%s helps where the array is what works.",
        percent(sums->array_ps, sums->ps), percent(sums->vector_ps, sums->ps),
        100 * saved(a, CHANGE_ARRAY),
        saved(a, CHANGE_VECTOR) >= worth_saying ? " or a wider vector unit" : "");
}

/* the most that one of DRAM, CPU and clock saves is what binds */
static change_id say_bottleneck(const advice *a)
{
    change_id most = CHANGE_DRAM;

    for (unsigned c = CHANGE_CPU; c <= CHANGE_ARRAY; c++)
        if (saved(a, (change_id)c) > saved(a, most))
            most = (change_id)c;
    if (saved(a, most) < worth_saying)
        muc_report_advise(
            a->report,
            "No engine is the bottleneck alone: twice the speed of one saves less than 2 %%.");
    else if (most == CHANGE_DRAM)
        say_dram(a);
    else if (most == CHANGE_CPU)
        say_cpu(a);
    else
        say_accelerator(a);
    return most;
}

static void say_others(const advice *a, change_id said)
{
    for (unsigned c = 0; c < CHANGES; c++)
        if (c != (unsigned)said && saved(a, (change_id)c) >= worth_saying)
            muc_report_advise(a->report, "With %s (%s) the call would take %.0f %% less time.",
                              changes[c].change, changes[c].keys, 100 * saved(a, (change_id)c));
}

static void say_bytes(const advice *a)
{
    const muc_clock_sums *sums = a->call->sums;
    double more = percent(sums->dram_bytes, sums->least_bytes) - 100;

    if (more >= 1)
        muc_report_advise(
            a->report,
            "The program moves %.1f %% more bytes than the model needs: larger buffers, of which "
            "more fits at once, or longer calls would lower that.",
            more);
}

static void say_calls(const advice *a)
{
    const muc_advised_call *call = a->call;
    uint64_t calls = call->sums->calls;

    if (calls > 1)
        muc_report_advise(
            a->report,
            "The tokens are fed in %llu calls of at most %u, and each reads all weights: a larger "
            "GB (gb, rows) would need fewer calls.",
            (unsigned long long)calls, call->program->meta->rows);
}

static void say_energy(const advice *a)
{
    const muc_clock_energy energy = muc_clock_energy_of(a->call->machine, a->call->sums);
    const struct {
        const char *part, *remedy;
        double fj;
    } parts[] = {
        { "DRAM takes", "fewer bytes moved save most", energy.dram },
        { "The buffers take", "they are read and written by the instructions", energy.sram },
        { "The array takes", "fewer terms (--act-terms) save most", energy.array },
        { "The vector unit takes", "it works on every element of the activations", energy.vector },
        { "The CPU takes", "fewer instructions save most", energy.cpu },
        { "Standing by takes", "what makes the call shorter saves it", energy.idle },
    };
    double whole = muc_clock_energy_sum(&energy);
    size_t most = 0;

    for (size_t i = 1; i < MUC_COUNT(parts); i++)
        if (parts[i].fj > parts[most].fj)
            most = i;
    if (whole > 0)
        muc_report_advise(a->report, "%s %.0f %% of the energy: %s.", parts[most].part,
                          100 * parts[most].fj / whole, parts[most].remedy);
}

muc_status muc_program_advise(muc_context *ctx, const muc_advised_call *call, muc_report *report)
{
    advice a = { .ctx = ctx, .call = call, .report = report };
    change_id said;

    MUC_TRY(add_what_if(&a));
    muc_report_begin_advice(report);
    said = say_bottleneck(&a);
    say_others(&a, said);
    say_bytes(&a);
    say_calls(&a);
    if (call->machine->costs.has_energy)
        say_energy(&a);
    muc_report_end(report);
    return MUC_OK;
}
