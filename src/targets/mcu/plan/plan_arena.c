/* plan_arena.c - lifetimes, shared bytes, placement.
 *
 * A view lives in its root, so only roots are placed. Where a step may write over an input that
 * dies with it, the output is anchored to the input: the planner then moves both as one body that
 * takes, at each step, only the span of those that live.
 */
#include "targets/mcu/plan/plan_arena.h"

#include <string.h>

#include "targets/mcu/tiles/chains.h"

enum {
    OVERLAP_STEP = 4,     /* outputs that share bytes still begin at whole words */
    VARY_TURNS = 4000,    /* changes of the choice who shares, and their cost in */
    VARY_WORK = 20000000, /* pairs of buffers: a fraction of a second */
};

/* ---- lifetimes ---- */

static void live_at(muc_mcu_program *program, uint32_t value, uint32_t step)
{
    uint64_t offset;
    muc_mcu_value *root = &program->values[muc_mcu_root(program, value, &offset)];

    if (step < root->first)
        root->first = step;
    if (step > root->last)
        root->last = step;
}

/* what enters or leaves the loop is there in every turn */
static void live_in_loop(const muc_mcu_loop *loop, muc_mcu_value *value)
{
    if (loop->turns == 0 || value->first >= loop->end || value->last < loop->first)
        return;
    if (value->first < loop->first || value->kind == MUC_MCU_INPUT) /* an input is there before */
        value->last = value->last < loop->end ? loop->end - 1 : value->last;
    if (value->last >= loop->end)
        value->first = value->first > loop->first ? loop->first : value->first;
}

static void find_lifetimes(muc_mcu_program *program)
{
    uint32_t end = program->step_count; /* a step after the last, when outputs are read */

    for (uint32_t i = 0; i < program->value_count; i++) {
        program->values[i].first = program->values[i].kind == MUC_MCU_INPUT ? 0 : end;
        program->values[i].last = 0;
    }
    for (uint32_t s = 0; s < program->step_count; s++) {
        const muc_mcu_step *step = &program->steps[s];

        for (uint32_t i = 0; i < step->argument_count; i++)
            if (step->arguments[i].kind != MUC_MCU_TEXT)
                live_at(program, step->arguments[i].value, s);
    }
    for (uint32_t i = 0; i < program->value_count; i++)
        if (program->values[i].is_output)
            live_at(program, i, end);
    for (uint32_t i = 0; i < program->value_count; i++) {
        live_in_loop(&program->loop, &program->values[i]);
        for (uint32_t c = 0; c < program->chain_count; c++) {
            const muc_mcu_chain *chain = &program->chains[c];

            if (chain->turns > 1)
                live_in_loop(&(muc_mcu_loop){ chain->first, chain->end, chain->turns, 0, 0, 0, 0 },
                             &program->values[i]);
        }
    }
}

/* ---- shared bytes ---- */

static bool in_arena(const muc_mcu_value *value)
{
    return value->kind != MUC_MCU_CONST && value->view_of == MUC_NO_ID && !value->is_small &&
           (value->used || value->is_output || value->kind == MUC_MCU_INPUT);
}

/* what this overlap ties, if the input dies here and the output is born here */
static bool is_usable(const muc_mcu_program *program, uint32_t step, const muc_mcu_overlap *overlap)
{
    uint64_t offset;
    const muc_mcu_value *in = &program->values[muc_mcu_root(program, overlap->in, &offset)];
    const muc_mcu_value *out = &program->values[overlap->out];

    return (in->kind == MUC_MCU_ACTIVATION || in->kind == MUC_MCU_INPUT) && in->last == step &&
           out->view_of == MUC_NO_ID && out->first == step && overlap->in != overlap->out;
}

static void anchor(const muc_mcu_program *program, const muc_mcu_overlap *overlap,
                   const uint32_t *buffer_of, muc_plan_buffer *buffers)
{
    uint64_t offset;
    uint32_t root = muc_mcu_root(program, overlap->in, &offset);
    int64_t lead = overlap->lead > 0 ? overlap->lead : 0;

    lead = (lead + OVERLAP_STEP - 1) / OVERLAP_STEP * OVERLAP_STEP;
    buffers[buffer_of[overlap->out]].anchor = 1 + buffer_of[root];
    buffers[buffer_of[overlap->out]].offset = (int64_t)offset - lead;
}

/* of a step's usable overlaps the one that saves most: 1 + its index, 0 if there is none */
static uint8_t best_overlap(const muc_mcu_program *program, uint32_t s)
{
    const muc_mcu_step *step = &program->steps[s];
    uint64_t most = 0;
    uint8_t best = 0;

    for (uint32_t i = 0; i < step->overlap_count; i++) {
        uint64_t bytes = program->values[step->overlaps[i].in].bytes;

        if (is_usable(program, s, &step->overlaps[i]) && (!best || bytes > most)) {
            most = bytes;
            best = (uint8_t)(i + 1);
        }
    }
    return best;
}

/* ---- placement ---- */

/* Addresses are of whole units of the alignment, but what ends the arena need not fill its last. */
static void end_arena(muc_plan *plan)
{
    plan->peak = 0;
    for (size_t i = 0; i < plan->count; i++) {
        uint64_t end = plan->buffers[i].address + plan->buffers[i].bytes;

        plan->peak = end > plan->peak ? end : plan->peak;
    }
    plan->least = plan->peak < plan->least ? plan->peak : plan->least;
}

static void list_buffers(const muc_mcu_program *program, uint32_t *buffer_of,
                         muc_plan_buffer *buffers, size_t *count)
{
    for (uint32_t i = 0; i < program->value_count; i++) {
        const muc_mcu_value *value = &program->values[i];

        buffer_of[i] = (uint32_t)*count;
        if (in_arena(value))
            buffers[(*count)++] = (muc_plan_buffer){
                .name = value->name,
                .tensor = value->tensor ? value->tensor->name : NULL,
                .bytes = value->bytes,
                .first = value->first,
                .last = value->last,
                .persistent = value->kind == MUC_MCU_STATE_DATA,
            };
    }
}

/* A plan in the making: which steps share bytes, and the best placement so far. */
typedef struct search {
    muc_context *ctx;
    muc_mcu_program *program;
    const uint32_t *buffer_of;
    uint8_t *shares;      /* [step_count]: 1 + which of the step's overlaps is used, or 0 */
    uint8_t *best_shares; /* those of the best placement */
    uint64_t *best;       /* its addresses, [plan->count] */
    uint64_t best_peak;   /* and what they need */
    uint64_t least;       /* no choice of shares needs fewer */
    uint32_t full_step;   /* the fullest step where all share that must */
} search;

/* quickly: by greedy orders alone */
static muc_status place_once(search *s, bool quickly)
{
    muc_mcu_program *program = s->program;
    muc_plan *plan = &program->plan;
    uint64_t capacity = plan->capacity;
    muc_status status;

    for (size_t i = 0; i < plan->count; i++)
        plan->buffers[i].anchor = 0;
    for (uint32_t i = 0; i < program->step_count; i++)
        if (s->shares[i])
            anchor(program, &program->steps[i].overlaps[s->shares[i] - 1], s->buffer_of,
                   plan->buffers);
    if (quickly)
        plan->capacity = UINT64_MAX; /* content with what comes first */
    status = quickly ? muc_plan_fit(s->ctx, plan) : muc_plan_place(s->ctx, plan);
    plan->capacity = capacity;
    MUC_TRY(status);
    if (plan->peak >= s->best_peak)
        return MUC_OK;
    s->best_peak = plan->peak;
    memcpy(s->best_shares, s->shares, program->step_count);
    for (size_t i = 0; i < plan->count; i++)
        s->best[i] = plan->buffers[i].address;
    return MUC_OK;
}

static uint32_t count_usable(const muc_mcu_program *program, uint32_t s)
{
    const muc_mcu_step *step = &program->steps[s];
    uint32_t count = 0;

    for (uint32_t i = 0; i < step->overlap_count; i++)
        count += is_usable(program, s, &step->overlaps[i]);
    return count;
}

/* Buffers that share bytes are tied to each other, and a long chain of ties wanders through the
 * arena; so only steps that are the fullest share, one after another, as long as they are.
 *
 * That gives the bound, too. At a step live the same buffers whatever the others share, so without
 * sharing there it needs what it needed when it was the fullest. A plan with fewer bytes than any
 * of these steps needed shares at all of them; if each has one way to, such a plan needs what the
 * bodies so tied need. */
static muc_status share_where_full(search *s)
{
    const muc_plan *plan = &s->program->plan;
    uint64_t unshared = UINT64_MAX, shared;
    bool has_choice = false;

    MUC_TRY(place_once(s, true));
    for (uint32_t turns = s->program->step_count; turns > 0; turns--) {
        uint32_t full = plan->full_step;

        if (full >= s->program->step_count || s->shares[full] || !best_overlap(s->program, full))
            break;
        unshared = plan->live_bound < unshared ? plan->live_bound : unshared;
        has_choice = has_choice || count_usable(s->program, full) > 1;
        s->shares[full] = best_overlap(s->program, full);
        MUC_TRY(place_once(s, true));
    }
    shared = has_choice ? plan->live_bound : plan->least;
    s->least = shared < unshared ? shared : unshared;
    s->full_step = plan->full_step;
    return MUC_OK;
}

static muc_status share_everywhere(search *s)
{
    for (uint32_t i = 0; i < s->program->step_count; i++)
        s->shares[i] = best_overlap(s->program, i);
    return place_once(s, true);
}

/* Sharing at a step that is not full can be worth it for what comes after, and an addition may
 * choose between two sides: from the best choice on, changes at random steps that do no harm. */
static muc_status vary_shares(search *s)
{
    muc_mcu_program *program = s->program;
    uint64_t work = (uint64_t)program->plan.count * program->plan.count + 1;
    uint64_t turns = VARY_WORK / work < VARY_TURNS ? VARY_WORK / work : VARY_TURNS;
    uint64_t chance = 1, here = s->best_peak;

    memcpy(s->shares, s->best_shares, program->step_count);
    for (uint64_t turn = 0; turn < turns && s->best_peak > s->least; turn++) {
        uint32_t at, choice;
        uint8_t before;

        chance = chance * 6364136223846793005u + 1442695040888963407u;
        at = (uint32_t)((chance >> 32) % program->step_count);
        choice = (uint32_t)(chance >> 16) % (program->steps[at].overlap_count + 1);
        before = s->shares[at];
        if (choice == before ||
            (choice && !is_usable(program, at, &program->steps[at].overlaps[choice - 1])))
            continue;
        s->shares[at] = (uint8_t)choice;
        MUC_TRY(place_once(s, true));
        if (program->plan.peak <= here)
            here = program->plan.peak;
        else
            s->shares[at] = before;
    }
    return MUC_OK;
}

static muc_status find_placement(muc_context *ctx, muc_mcu_program *program,
                                 const uint32_t *buffer_of)
{
    muc_plan *plan = &program->plan;
    search s = { .ctx = ctx, .program = program, .buffer_of = buffer_of, .best_peak = UINT64_MAX };

    MUC_TRY(MUC_ARENA_NEW(ctx, &program->arena, program->step_count, &s.shares));
    MUC_TRY(MUC_ARENA_NEW(ctx, &program->arena, program->step_count, &s.best_shares));
    MUC_TRY(MUC_ARENA_NEW(ctx, &program->arena, plan->count, &s.best));
    MUC_TRY(share_where_full(&s));
    if (s.best_peak > s.least)
        MUC_TRY(place_once(&s, false));
    if (s.best_peak > s.least)
        MUC_TRY(share_everywhere(&s));
    if (s.best_peak > s.least)
        MUC_TRY(vary_shares(&s));
    if (s.best_peak > s.least) {
        memcpy(s.shares, s.best_shares, program->step_count);
        MUC_TRY(place_once(&s, false));
    }
    for (size_t i = 0; i < plan->count; i++)
        plan->buffers[i].address = s.best[i];
    plan->least = s.least;
    plan->full_step = s.full_step;
    end_arena(plan);
    return MUC_OK;
}

muc_status muc_mcu_plan_memory(muc_context *ctx, muc_mcu_program *program)
{
    const muc_mcu_memory *memory = muc_mcu_memory_for(program->machine, MUC_MCU_ARENA);
    muc_plan *plan = &program->plan;
    bool with_constants = memory == muc_mcu_memory_for(program->machine, MUC_MCU_WEIGHTS);
    uint64_t constants = with_constants ? muc_mcu_constant_bytes(program) : 0;
    const char **steps;
    uint32_t *buffer_of;

    find_lifetimes(program);
    MUC_TRY(MUC_ARENA_NEW(ctx, &program->arena, program->value_count, &buffer_of));
    *plan = (muc_plan){
        .arena = memory->name,
        .source = program->graph->name,
        .capacity = memory->bytes ? memory->bytes - constants : UINT32_MAX,
        .alignment = MUC_MCU_ALIGNMENT,
    };
    MUC_TRY(MUC_ARENA_NEW(ctx, &program->arena, program->step_count + (size_t)1, &steps));
    for (uint32_t i = 0; i < program->step_count; i++)
        steps[i] = program->steps[i].name;
    plan->steps = steps;
    MUC_TRY(MUC_ARENA_NEW(ctx, &program->arena, program->value_count, &plan->buffers));
    list_buffers(program, buffer_of, plan->buffers, &plan->count);
    MUC_TRY(find_placement(ctx, program, buffer_of));
    for (uint32_t i = 0; i < program->value_count; i++)
        if (in_arena(&program->values[i]))
            program->values[i].address = plan->buffers[buffer_of[i]].address;
    return MUC_OK;
}

uint64_t muc_mcu_constant_bytes(const muc_mcu_program *program)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < program->value_count; i++) {
        const muc_mcu_value *value = &program->values[i];

        if (value->kind == MUC_MCU_CONST && value->view_of == MUC_NO_ID && value->used)
            bytes += value->bytes;
    }
    return bytes;
}
