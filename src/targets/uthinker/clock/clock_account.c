/* clock_account.c - sums over what a clock tells its watch. */
#include "targets/uthinker/clock/clock_account.h"

#include <string.h>

#include "targets/uthinker/clock/clock_work.h"
#include "targets/uthinker/isa/code_item.h"
#include "targets/uthinker/isa/debug_names.h"

enum { MOST_STAGES = 64, MOST_LAYERS = 1024 };

static const struct {
    const char *words;
    bool waits;
} reasons[MUC_CLOCK_REASONS] = {
#define MUC_CLOCK_REASON(name, waits, words) { words, waits },
#include "targets/uthinker/clock/clock_reasons.def"
};

const char *muc_clock_reason_words(muc_clock_reason reason)
{
    return reasons[reason].words;
}

bool muc_clock_reason_waits(muc_clock_reason reason)
{
    return reasons[reason].waits;
}

/* ---- stages and layers of the code ---- */

/* its index; new names beyond MOST_STAGES count as the last */
static uint16_t stage_index(muc_clock_account *a, const char *name)
{
    uint32_t i = 0;

    while (i < a->stage_count && strcmp(a->stages[i], name) != 0)
        i++;
    if (i == a->stage_count && i < MOST_STAGES)
        a->stages[a->stage_count++] = name;
    return (uint16_t)(i < MOST_STAGES ? i : MOST_STAGES - 1);
}

/* Names are in the order of their words: *row moves on to the item's. */
static const char *name_of(const muc_debug_name *names, size_t count, size_t *row, uint32_t at,
                           const muc_item *item)
{
    while (*row < count && names[*row].word < at)
        ++*row;
    return *row < count && names[*row].word == at ? names[*row].name : muc_insn_get(item->op)->name;
}

/* The loop at `at`, if it is not noted yet. */
static muc_status add_loop(muc_context *ctx, muc_arena *arena, muc_clock_account *a,
                           const muc_clock_loop *loop)
{
    if (a->loop_count && a->loops[a->loop_count - 1].begin == loop->begin)
        return MUC_OK;
    MUC_TRY(muc_arena_grow(ctx, arena, a->loop_count + 1, sizeof(*a->loops), &a->loop_capacity,
                           (void **)&a->loops));
    a->loops[a->loop_count++] = *loop;
    return MUC_OK;
}

/* the loop of one round that hands the loops in it to a sequencer */
static bool is_stretch(const muc_item *item)
{
    return item->streamed && item->most == 1;
}

/* An item is for the stage of the next INST; after the last, for that of the last. */
static muc_status read_entry(muc_context *ctx, muc_arena *arena, muc_clock_account *a,
                             const mur_entr *entry, const muc_debug_name *names, size_t count)
{
    uint32_t at = entry->start, end = entry->start + entry->words, from = at, words, most = 0;
    muc_clock_loop loop = { at, at, 0 };
    uint64_t layers = 0;
    uint16_t stage = 0;
    size_t row = 0;
    muc_item item;

    for (; at < end && (words = muc_item_decode(a->program->code + at, end - at, &item)) != 0;
         at += words) {
        if (item.kind == MUR_FOR && at >= loop.next && !is_stretch(&item)) {
            loop = (muc_clock_loop){ at, at + words + item.body, (uint32_t)layers };
            most = item.most;
        }
        if (item.kind != MUR_INST)
            continue;
        stage = stage_index(a, name_of(names, count, &row, at, &item));
        for (; from < at + words; from++)
            a->stage_of[from] = stage;
        if (item.op != MUC_INSN_DIV || at >= loop.next || layers != loop.before)
            continue;
        MUC_TRY(add_loop(ctx, arena, a, &loop));
        layers = layers + most < MOST_LAYERS ? layers + most : MOST_LAYERS;
    }
    for (; from < end; from++)
        a->stage_of[from] = stage;
    if (layers > a->layers)
        a->layers = (uint32_t)layers;
    return MUC_OK;
}

muc_status muc_clock_account_begin(muc_context *ctx, muc_arena *arena, const mur_program *program,
                                   const muc_uthinker_machine *machine, muc_clock_account *out)
{
    const muc_bytes section = { program->section[MUR_SECTION_DEBG],
                                program->section_bytes[MUR_SECTION_DEBG], "DEBG" };
    muc_clock_account *a = out;
    muc_debug_name *names = NULL;
    size_t count = 0;
    bool whole;

    *a = (muc_clock_account){ .program = program, .places = muc_dram_places_of(program, machine) };
    if (section.data)
        MUC_TRY(muc_debug_read(ctx, arena, section, &names, &count, &whole));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, MOST_STAGES + 1, &a->stages));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, program->section_bytes[MUR_SECTION_CODE] / 4, &a->stage_of));
    for (uint32_t i = 0; i < program->entry_count; i++)
        MUC_TRY(read_entry(ctx, arena, a, &program->entries[i], names, count));
    a->stages[a->stage_count++] = "next token";
    return MUC_ARENA_NEW(ctx, arena, (size_t)a->stage_count * (a->layers + 1), &a->cells);
}

/* the last that begins at `at` or before, or NULL */
static const muc_clock_loop *loop_of(const muc_clock_account *a, uint32_t at)
{
    size_t i = a->loop_count;

    while (i && at < a->loops[i - 1].begin)
        i--;
    return i ? &a->loops[i - 1] : NULL;
}

uint32_t muc_clock_layer(const muc_clock_account *a, uint32_t at)
{
    const muc_clock_loop *loop = loop_of(a, at);

    if (!loop || at == loop->begin || at > loop->next)
        return 0;
    return a->round < a->layers ? a->round + 1 : a->layers;
}

/* ---- the watch ---- */

static muc_clock_cell *cell_of(const muc_clock_account *a, uint32_t stage, uint32_t at)
{
    return &a->cells[(size_t)stage * (a->layers + 1) + muc_clock_layer(a, at)];
}

static void note_first_layer(muc_clock_account *a, uint64_t from, uint64_t to, uint32_t at)
{
    uint64_t *first = a->first_layer;

    if (muc_clock_layer(a, at) != 1 || (first[1] != 0 && first[1] != from))
        return;
    if (first[1] == 0)
        first[0] = from;
    first[1] = to;
}

static void watch_cpu(void *arg, uint64_t from, uint64_t to, muc_clock_reason reason, uint32_t at)
{
    muc_clock_account *a = arg;
    const muc_clock_loop *loop = loop_of(a, at);
    uint32_t stage = reason == MUC_CLOCK_CHOICE ? a->stage_count - 1 : a->stage_of[at];
    muc_clock_cell *cell = cell_of(a, stage, at);

    cell->ps += to - from;
    note_first_layer(a, from, to, at);
    if (reasons[reason].waits)
        a->idle_ps[MUC_ENGINE_CPU][reason] += to - from;
    else
        cell->work_ps[MUC_PART_CPU] += to - from;
    for (uint32_t e = 0; e < MUC_ENGINE_CPU; e++)
        if (to > a->free_at[e])
            a->idle_ps[e][reason] += to - (from > a->free_at[e] ? from : a->free_at[e]);
    if (!loop || (reasons[reason].waits && reason != MUC_CLOCK_SEQUENCER))
        return;
    if (at == loop->begin)
        a->round = loop->before;
    else if (at == loop->next)
        a->round++;
}

static void watch_instruction(void *arg, const muc_clock_event *event)
{
    muc_clock_account *a = arg;
    const muc_clock_work *work = event->work;
    muc_clock_engine engine = event->part == MUC_PART_DMA ? MUC_ENGINE_DMA : MUC_ENGINE_ACCELERATOR;
    muc_clock_cell *cell = cell_of(a, a->stage_of[event->at], event->at);

    cell->work_ps[event->part] += event->end - event->begin;
    cell->dram_bytes += work->burst_bytes;
    cell->macs += work->macs;
    cell->instructions++;
    a->idle_ps[engine][event->waited_for] += event->begin - event->ready;
    a->free_at[engine] = event->end;
    if (event->part == MUC_PART_DMA) {
        muc_dram_class class =
            muc_dram_class_at(&a->places, (enum mur_region)work->region, work->offset);

        (work->op == MUC_INSN_ST ? a->written_bytes : a->read_bytes)[class] += work->bytes;
    }
}

muc_clock_watch muc_clock_account_watch(muc_clock_account *account)
{
    return (muc_clock_watch){ account, watch_cpu, watch_instruction };
}

/* ---- sums ---- */

static void add_cell(muc_clock_cell *sum, const muc_clock_cell *cell)
{
    sum->ps += cell->ps;
    for (uint32_t p = 0; p < MUC_CLOCK_PARTS; p++)
        sum->work_ps[p] += cell->work_ps[p];
    sum->dram_bytes += cell->dram_bytes;
    sum->macs += cell->macs;
    sum->instructions += cell->instructions;
}

muc_clock_cell muc_clock_stage_sum(const muc_clock_account *a, uint32_t stage)
{
    muc_clock_cell sum = { 0 };

    for (uint32_t layer = 0; layer <= a->layers; layer++)
        add_cell(&sum, &a->cells[(size_t)stage * (a->layers + 1) + layer]);
    return sum;
}

muc_clock_cell muc_clock_layer_sum(const muc_clock_account *a, uint32_t layer)
{
    muc_clock_cell sum = { 0 };

    for (uint32_t stage = 0; stage < a->stage_count; stage++)
        add_cell(&sum, &a->cells[(size_t)stage * (a->layers + 1) + layer]);
    return sum;
}
