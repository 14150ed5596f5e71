/* place.c - runs the searches for a placement, one after the other, and says what is known of the
 * result.
 *
 * Greedy: each body in turn goes to the lowest address where nothing placed before it lives at the
 * same time. Which order is best depends on the shapes, so a few are tried: by size, by lifetime,
 * by the product of both, by birth.
 */
#include "plan/place.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "plan/floors.h"

enum {
    MAX_BUFFERS = 65536,
    /* of exact searches, in cells (floors.h) looked at, which take some nanoseconds each: to save
     * bytes a second at most, to fit at all more */
    SAVING_WORK = 100000000,
    FITTING_WORK = 1200000000,
    TURN_WORK = 1000000, /* of FITTING_WORK, and for each pair of bodies: */
    PAIR_WORK = 20,
    SHOWN = 3, /* buffers of the fullest step, in messages */
};

typedef struct candidate {
    uint64_t keys[2]; /* larger first */
    uint32_t body;
} candidate;

typedef struct placer {
    muc_plan *plan;
    muc_bodies bodies;
    uint64_t best;   /* peak of the best placement, in units */
    uint64_t least;  /* no placement needs fewer units */
    uint64_t target; /* a peak to be content with */
    uint64_t work;   /* left for exact searches */
    muc_chance chance;
    uint64_t *at;    /* the best placement */
    uint32_t *order; /* the best order of first fit */
    uint32_t *scratch;
    candidate *candidates;
} placer;

static void keep(placer *p, uint64_t peak, muc_plan_stage stage)
{
    p->best = peak;
    p->plan->stage = stage;
    for (uint32_t i = 0; i < p->bodies.count; i++)
        p->at[i] = p->bodies.body[i].at;
}

/* ---- greedy ---- */

typedef void order_fn(const muc_bodies *bodies, const muc_body *body, uint64_t keys[2]);

static uint64_t birth(const muc_bodies *bodies, const muc_body *body)
{
    return bodies->pieces[body->pieces].first;
}

static uint64_t steps_of(const muc_bodies *bodies, const muc_body *body)
{
    return bodies->pieces[body->pieces + body->piece_count - 1].last - birth(bodies, body) + 1;
}

static void by_size(const muc_bodies *bodies, const muc_body *body, uint64_t keys[2])
{
    keys[0] = body->height;
    keys[1] = steps_of(bodies, body);
}

static void by_lifetime(const muc_bodies *bodies, const muc_body *body, uint64_t keys[2])
{
    keys[0] = steps_of(bodies, body);
    keys[1] = body->height;
}

static void by_area(const muc_bodies *bodies, const muc_body *body, uint64_t keys[2])
{
    /* saturates where it has no meaning any more */
    if (!muc_mul_u64(body->height, steps_of(bodies, body), &keys[0]))
        keys[0] = UINT64_MAX;
    keys[1] = body->height;
}

static void by_birth(const muc_bodies *bodies, const muc_body *body, uint64_t keys[2])
{
    keys[0] = UINT32_MAX - birth(bodies, body);
    keys[1] = body->height;
}

static order_fn *const orders[] = { by_size, by_lifetime, by_area, by_birth };

static int compare(const void *left, const void *right)
{
    const candidate *a = left, *b = right;

    for (int i = 0; i < 2; i++)
        if (a->keys[i] != b->keys[i])
            return a->keys[i] > b->keys[i] ? -1 : 1;
    return a->body < b->body ? -1 : 1;
}

static void place_greedily(placer *p, uint32_t *order)
{
    p->best = UINT64_MAX;
    for (size_t k = 0; k < MUC_COUNT(orders) && p->best > p->least; k++) {
        uint64_t peak;

        for (uint32_t i = 0; i < p->bodies.count; i++) {
            orders[k](&p->bodies, &p->bodies.body[i], p->candidates[i].keys);
            p->candidates[i].body = i;
        }
        qsort(p->candidates, p->bodies.count, sizeof(*p->candidates), compare);
        for (uint32_t i = 0; i < p->bodies.count; i++)
            order[i] = p->candidates[i].body;
        peak = muc_bodies_first_fit(&p->bodies, order, UINT64_MAX, p->scratch);
        if (peak < p->best) {
            keep(p, peak, MUC_PLAN_GREEDY);
            memcpy(p->order, order, p->bodies.count * sizeof(*order));
        }
    }
}

/* ---- hill climbing, exact search ---- */

static muc_status climb(muc_context *ctx, placer *p)
{
    uint64_t peak = p->best;

    MUC_TRY(muc_bodies_climb(ctx, &p->bodies, p->target, p->order, &peak));
    if (peak < p->best)
        keep(p, muc_bodies_first_fit(&p->bodies, p->order, UINT64_MAX, p->scratch), MUC_PLAN_CLIMB);
    return MUC_OK;
}

static void keep_exact(placer *p)
{
    uint64_t peak = 0;

    for (uint32_t i = 0; i < p->bodies.count; i++) {
        const muc_body *body = &p->bodies.body[i];

        peak = body->at + body->height > peak ? body->at + body->height : peak;
    }
    keep(p, peak, MUC_PLAN_EXACT);
}

/* what a turn (numbered from 0) may spend on so many bodies */
static uint64_t turn_work(const placer *p, uint64_t count, uint32_t turn)
{
    uint64_t work = (TURN_WORK + PAIR_WORK * count * count) * muc_luby((uint64_t)turn + 1);

    return work < p->work ? work : p->work;
}

/* A placement of at most `capacity` units; lowers best or raises least, if it can tell. Spends at
 * most `budget` of the work that is left. */
static muc_status search(muc_context *ctx, placer *p, uint64_t capacity, uint64_t budget)
{
    uint64_t left = p->work - budget;
    muc_exact_result result;

    MUC_TRY(muc_bodies_exact(ctx, &p->bodies, capacity, &budget, &p->plan->nodes, &result));
    p->work = left + budget;
    if (result == MUC_EXACT_FOUND)
        keep_exact(p);
    if (result == MUC_EXACT_NONE)
        p->least = capacity + 1;
    return MUC_OK;
}

/* the same with a guess, which proves nothing */
static muc_status search_guess(muc_context *ctx, placer *p, const muc_floors *floors,
                               uint32_t guess)
{
    muc_exact_result result = MUC_EXACT_UNKNOWN;
    muc_bodies merged;
    muc_status status = muc_floors_guess(ctx, floors, guess, &p->chance, &p->work, &merged);

    if (status == MUC_OK) {
        uint64_t budget = turn_work(p, merged.count, guess), left = p->work - budget;

        status =
            muc_bodies_exact(ctx, &merged, floors->capacity, &budget, &p->plan->nodes, &result);
        p->work = left + budget;
    }
    for (uint32_t i = 0; i < p->bodies.count && result == MUC_EXACT_FOUND; i++)
        p->bodies.body[i].at = merged.body[merged.body_of[i]].at + merged.offset_of[i];
    if (result == MUC_EXACT_FOUND)
        keep_exact(p);
    muc_bodies_free(&merged);
    return status;
}

/* The bound first, for it can mostly be had; then between what is had and what may be possible,
 * where a failure to decide counts as a no that proves nothing. */
static muc_status search_least(muc_context *ctx, placer *p)
{
    uint64_t bound = p->least;

    p->work = SAVING_WORK;
    MUC_TRY(search(ctx, p, bound, p->work / 2));
    for (uint64_t low = bound + 1; low < p->best && p->least < p->best;) {
        uint64_t middle = low + (p->best - 1 - low) / 2;

        MUC_TRY(search(ctx, p, middle, p->work / 4));
        low = p->best <= middle ? low : middle + 1;
    }
    return MUC_OK;
}

/* Nothing fits that was found: what nearly does, in steps that double. */
static muc_status search_near(muc_context *ctx, placer *p, uint64_t capacity)
{
    uint64_t excess = capacity / 64 + 1;

    p->work = SAVING_WORK;
    for (; p->best > capacity + excess && p->work > 0; excess *= 2)
        MUC_TRY(search(ctx, p, capacity + excess, p->work / 2));
    return MUC_OK;
}

/* By turns the bodies as they are, for a quarter of the work, and guesses. */
static muc_status search_by_turns(muc_context *ctx, placer *p, const muc_floors *floors)
{
    uint64_t capacity = floors->capacity, plain = 0;

    for (uint32_t turns = 0, guesses = 0;
         p->best > capacity && p->least <= capacity && p->work > 0;) {
        uint64_t before = p->work;

        if (4 * plain <= FITTING_WORK - before) {
            MUC_TRY(search(ctx, p, capacity, turn_work(p, p->bodies.count, turns++)));
            plain += before - p->work;
        } else {
            MUC_TRY(search_guess(ctx, p, floors, guesses++));
        }
    }
    return MUC_OK;
}

static muc_status search_fit(muc_context *ctx, placer *p, uint64_t capacity)
{
    muc_floors floors;
    muc_status status;

    if (p->best <= capacity || p->least > capacity || p->bodies.count > MUC_MOST_EXACT)
        return MUC_OK;
    p->work = FITTING_WORK;
    p->chance = (muc_chance){ 3 };
    status = muc_floors_build(ctx, &p->bodies, capacity, &floors);
    if (status == MUC_OK)
        status = search_by_turns(ctx, p, &floors);
    if (status == MUC_OK && p->best > capacity && p->least <= capacity)
        status = search_near(ctx, p, capacity);
    muc_floors_free(&floors);
    return status;
}

/* ---- the plan ---- */

static muc_status allocate(muc_context *ctx, placer *p)
{
    MUC_TRY(muc_bodies_build(ctx, p->plan, &p->bodies));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", p->bodies.count, &p->at));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", p->bodies.count, &p->order));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", p->bodies.count, &p->candidates));
    return MUC_NEW_ARRAY(ctx, "plan", (size_t)p->bodies.count + p->bodies.piece_count, &p->scratch);
}

/* the most units that live in one step, and each body needs its height */
static uint64_t least_units(const muc_bodies *bodies)
{
    uint64_t least = bodies->bound;

    for (uint32_t i = 0; i < bodies->count; i++)
        if (bodies->body[i].height > least)
            least = bodies->body[i].height;
    return least;
}

static muc_status run(muc_context *ctx, placer *p, bool to_fit)
{
    uint64_t capacity = p->plan->capacity / p->plan->alignment;
    uint64_t *reached = p->plan->reached; /* in units, until report */

    MUC_TRY(allocate(ctx, p));
    p->least = least_units(&p->bodies);
    p->target = to_fit && capacity > p->least ? capacity : p->least;
    place_greedily(p, p->scratch + p->bodies.piece_count);
    reached[MUC_PLAN_GREEDY] = reached[MUC_PLAN_CLIMB] = reached[MUC_PLAN_EXACT] = p->best;
    /* what cannot fit need not be made to nearly fit */
    if (p->best <= p->target || (to_fit && p->least > capacity))
        return MUC_OK;
    MUC_TRY(climb(ctx, p));
    reached[MUC_PLAN_CLIMB] = reached[MUC_PLAN_EXACT] = p->best;
    if (p->best <= p->target)
        return MUC_OK;
    if (!to_fit)
        MUC_TRY(search_least(ctx, p));
    MUC_TRY(search_fit(ctx, p, capacity));
    reached[MUC_PLAN_EXACT] = p->best;
    return MUC_OK;
}

static void report(const placer *p)
{
    muc_plan *plan = p->plan;

    for (size_t i = 0; i < plan->count; i++) {
        uint32_t body = p->bodies.body_of[i];

        plan->buffers[i].address =
            p->bodies.offset_of[i] + (body == UINT32_MAX ? 0 : p->at[body] * plan->alignment);
    }
    for (int i = 0; i < MUC_PLAN_STAGES; i++)
        plan->reached[i] *= plan->alignment;
    plan->peak = p->best * plan->alignment;
    plan->least = p->least * plan->alignment;
    plan->live_bound = p->bodies.bound * plan->alignment;
    plan->full_step = p->bodies.full_step;
}

static muc_status place(muc_context *ctx, muc_plan *plan, bool to_fit)
{
    placer p = { .plan = plan };
    muc_status status;

    plan->nodes = 0;
    if (plan->count > MAX_BUFFERS)
        return muc_fail(ctx, MUC_NOFIT, "plan", MUC_NO_OFFSET, "%s: %zu buffers, at most %u",
                        plan->arena, plan->count, (unsigned)MAX_BUFFERS);
    status = run(ctx, &p, to_fit);
    if (status == MUC_OK)
        report(&p);
    muc_bodies_free(&p.bodies);
    free(p.at);
    free(p.order);
    free(p.scratch);
    free(p.candidates);
    return status;
}

muc_status muc_plan_place(muc_context *ctx, muc_plan *plan)
{
    return place(ctx, plan, false);
}

muc_status muc_plan_fit(muc_context *ctx, muc_plan *plan)
{
    return place(ctx, plan, true);
}

/* ---- what is said ---- */

static bool lives_at(const muc_plan_buffer *buffer, uint32_t step)
{
    return buffer->persistent || (buffer->first <= step && step <= buffer->last);
}

/* the names and bytes of the largest buffers of the fullest step, largest first */
static void add_largest(const muc_plan *plan, muc_text *text)
{
    const muc_plan_buffer *shown[SHOWN];
    size_t count = 0;

    for (size_t i = 0; i < plan->count; i++) {
        const muc_plan_buffer *buffer = &plan->buffers[i];
        size_t at = count;

        if (buffer->bytes == 0 || !lives_at(buffer, plan->full_step))
            continue;
        for (; at > 0 && shown[at - 1]->bytes < buffer->bytes; at--)
            if (at < SHOWN)
                shown[at] = shown[at - 1];
        if (at < SHOWN)
            shown[at] = buffer;
        count += count < SHOWN;
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = shown[i]->tensor ? shown[i]->tensor : shown[i]->name;

        muc_text_add(text, "%s'%.*s' with %llu", i ? ", " : "", (int)strcspn(name, ";"), name,
                     (unsigned long long)shown[i]->bytes);
    }
}

muc_status muc_plan_check(muc_context *ctx, const muc_plan *plan)
{
    const char *step = plan->steps ? plan->steps[plan->full_step] : NULL;
    muc_text largest = { 0 };
    const char *help;
    muc_status status;

    if (plan->peak <= plan->capacity)
        return MUC_OK;
    if (plan->live_bound > plan->capacity)
        help = "fewer bytes must live in that step: smaller tiles, patches, results in place or "
               "another level for some of them";
    else if (plan->least > plan->capacity)
        help = "they would fit in number, but no placement exists: split one of them, or put one "
               "into another level";
    else
        help = "a placement may exist but was not found: split one of them, or put one into "
               "another level";
    add_largest(plan, &largest);
    status = muc_text_status(ctx, &largest);
    if (status == MUC_OK)
        status =
            muc_fail(ctx, MUC_NOFIT, plan->source ? plan->source : "plan", MUC_NO_OFFSET,
                     "%s needs %llu bytes, %llu more than it has; it is fullest in step %u%s%s%s, "
                     "with %llu bytes, the largest of them %s; %s",
                     plan->arena, (unsigned long long)plan->peak,
                     (unsigned long long)(plan->peak - plan->capacity), plan->full_step,
                     step ? " (" : "", step ? step : "", step ? ")" : "",
                     (unsigned long long)plan->live_bound, largest.data, help);
    muc_text_free(&largest);
    return status;
}
