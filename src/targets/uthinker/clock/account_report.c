/* account_report.c - time by stage, layer and engine, reasons to wait, and DRAM bytes by what they
 * are. */
#include "targets/uthinker/clock/account_report.h"

typedef struct account_tables {
    muc_report *report;
    const muc_uthinker_machine *machine;
    const muc_clock_sums *sums;
    const muc_clock_account *account;
} account_tables;

static const char *const part_names[MUC_CLOCK_PARTS] = { "DMA", "array", "vector unit", "CPU" };

uint64_t muc_clock_cycles(const muc_uthinker_machine *machine, uint64_t ps)
{
    return (uint64_t)((double)ps * machine->costs.time.acc_khz / 1e9 + 0.5);
}

static void add_cycles(const account_tables *t, const char *key, uint64_t ps)
{
    muc_report_add_count(t->report, key, muc_clock_cycles(t->machine, ps));
}

static void add_share(const account_tables *t, uint64_t part, uint64_t whole)
{
    muc_report_add_real(t->report, "share", whole ? (double)part / (double)whole : 0);
}

/* ---- cells ---- */

#define CELL_COLUMNS \
    { "cycles", NULL, \
      "of the accelerator's clock, that the CPU spends on it, waiting included; they add up to " \
      "the " \
      "call's" }, \
        { "share", NULL, "of the call's time" }, { "dma", "cycles", "at work for it" }, \
        { "array", "cycles", "at work for it" }, { "vector_unit", "cycles", "at work for it" }, \
        { "cpu", "cycles", "of the accelerator's clock, executing" }, \
        { "longest", NULL, "the engine that works longest for it" }, \
        { "dram_bytes", "bytes", "whole bursts" }, { "macs", NULL, "multiply-accumulates" }, \
    { \
        "instructions", NULL, "issued to DMA and accelerator" \
    }

static void add_cell(const account_tables *t, const muc_clock_cell *cell)
{
    unsigned longest = 0;

    for (unsigned p = 1; p < MUC_CLOCK_PARTS; p++)
        if (cell->work_ps[p] > cell->work_ps[longest])
            longest = p;
    add_cycles(t, "cycles", cell->ps);
    add_share(t, cell->ps, t->sums->ps);
    add_cycles(t, "dma", cell->work_ps[MUC_PART_DMA]);
    add_cycles(t, "array", cell->work_ps[MUC_PART_ARRAY]);
    add_cycles(t, "vector_unit", cell->work_ps[MUC_PART_VECTOR]);
    add_cycles(t, "cpu", cell->work_ps[MUC_PART_CPU]);
    muc_report_add_text(t->report, "longest", "%s", part_names[longest]);
    muc_report_add_count(t->report, "dram_bytes", cell->dram_bytes);
    muc_report_add_count(t->report, "macs", cell->macs);
    muc_report_add_count(t->report, "instructions", cell->instructions);
}

static bool is_empty(const muc_clock_cell *cell)
{
    return cell->ps == 0 && cell->instructions == 0;
}

static void add_stages(const account_tables *t)
{
    static const muc_report_column columns[] = {
        { "stage", NULL, "as the program's debug map calls it" },
        CELL_COLUMNS,
        { NULL, NULL, NULL },
    };

    muc_report_begin_columns(t->report, "stages", columns);
    for (uint32_t stage = 0; stage < t->account->stage_count; stage++) {
        const muc_clock_cell cell = muc_clock_stage_sum(t->account, stage);

        if (is_empty(&cell))
            continue;
        muc_report_begin_row(t->report);
        muc_report_add_text(t->report, "stage", "%s", t->account->stages[stage]);
        add_cell(t, &cell);
        muc_report_end(t->report);
    }
    muc_report_end(t->report);
}

/* layer: 0 is what belongs to none, and has no number */
static void add_layer(const account_tables *t, uint32_t layer)
{
    if (layer)
        muc_report_add_count(t->report, "layer", layer - 1);
}

static void add_layers(const account_tables *t)
{
    static const muc_report_column columns[] = {
        { "layer", NULL, "from 0; none: before the first and after the last" },
        CELL_COLUMNS,
        { NULL, NULL, NULL },
    };

    muc_report_begin_columns(t->report, "layers", columns);
    for (uint32_t layer = 0; layer <= t->account->layers; layer++) {
        const muc_clock_cell cell = muc_clock_layer_sum(t->account, layer);

        if (is_empty(&cell))
            continue;
        muc_report_begin_row(t->report);
        add_layer(t, layer);
        add_cell(t, &cell);
        muc_report_end(t->report);
    }
    muc_report_end(t->report);
}

static void add_stage_layers(const account_tables *t)
{
    static const muc_report_column columns[] = {
        { "stage", NULL, "as the program's debug map calls it" },
        { "layer", NULL, "from 0" },
        CELL_COLUMNS,
        { NULL, NULL, NULL },
    };
    const muc_clock_account *a = t->account;

    muc_report_begin_columns(t->report, "stage_layers", columns);
    muc_report_mark_detail(t->report, "stage_layers");
    for (uint32_t layer = 0; layer <= a->layers; layer++)
        for (uint32_t stage = 0; stage < a->stage_count; stage++) {
            const muc_clock_cell *cell = &a->cells[(size_t)stage * (a->layers + 1) + layer];

            if (is_empty(cell))
                continue;
            muc_report_begin_row(t->report);
            muc_report_add_text(t->report, "stage", "%s", a->stages[stage]);
            add_layer(t, layer);
            add_cell(t, cell);
            muc_report_end(t->report);
        }
    muc_report_end(t->report);
}

/* ---- waits ---- */

static void add_waits(const account_tables *t)
{
    static const char *const engines[MUC_CLOCK_ENGINES] = { "DMA", "accelerator", "CPU" };
    static const muc_report_column columns[] = {
        { "engine", NULL, "that stands idle" },
        { "waits_for", NULL, "what keeps it waiting" },
        { "cycles", NULL, "of the accelerator's clock" },
        { "share", NULL, "of the call's time" },
        { NULL, NULL, NULL },
    };

    muc_report_begin_columns(t->report, "waits", columns);
    for (unsigned e = 0; e < MUC_CLOCK_ENGINES; e++)
        for (unsigned r = 0; r < MUC_CLOCK_REASONS; r++) {
            uint64_t ps = t->account->idle_ps[e][r];

            if (ps == 0)
                continue;
            muc_report_begin_row(t->report);
            muc_report_add_text(t->report, "engine", "%s", engines[e]);
            muc_report_add_text(t->report, "waits_for", "%s",
                                muc_clock_reason_words((muc_clock_reason)r));
            add_cycles(t, "cycles", ps);
            add_share(t, ps, t->sums->ps);
            muc_report_end(t->report);
        }
    muc_report_end(t->report);
}

/* ---- DRAM ---- */

static void add_dram(const account_tables *t)
{
    static const muc_report_column columns[] = {
        { "class", NULL, "what the bytes are" },
        { "read", "bytes", "as LD asks for them; EMBED's are the CPU's" },
        { "written", "bytes", "by ST" },
        { "share", NULL, "of all that is read and written" },
        { NULL, NULL, NULL },
    };
    const muc_clock_account *a = t->account;
    uint64_t whole = 0;

    for (unsigned c = 0; c < MUC_DRAM_CLASSES; c++)
        whole += a->read_bytes[c] + a->written_bytes[c];
    muc_report_begin_columns(t->report, "dram", columns);
    for (unsigned c = 0; c < MUC_DRAM_CLASSES; c++) {
        if (a->read_bytes[c] == 0 && a->written_bytes[c] == 0)
            continue;
        muc_report_begin_row(t->report);
        muc_report_add_text(t->report, "class", "%s", muc_dram_class_words((muc_dram_class)c));
        muc_report_add_count(t->report, "read", a->read_bytes[c]);
        muc_report_add_count(t->report, "written", a->written_bytes[c]);
        add_share(t, a->read_bytes[c] + a->written_bytes[c], whole);
        muc_report_end(t->report);
    }
    muc_report_end(t->report);
}

void muc_clock_add_account(muc_report *report, const muc_uthinker_machine *machine,
                           const muc_clock_sums *sums, const muc_clock_account *account)
{
    const account_tables t = { report, machine, sums, account };

    add_waits(&t);
    add_stages(&t);
    add_layers(&t);
    add_stage_layers(&t);
    add_dram(&t);
}
