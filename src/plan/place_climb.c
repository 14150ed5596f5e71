/* place_climb.c - improves a placement by hill climbing over the order of first fit.
 *
 * The peak is the end of some body, and that body lies where it does because others were placed
 * before it. So a change that can help swaps the turns of two bodies of which at least one is such
 * a bottleneck, or one that it rests on. An order no worse is kept; when nothing better comes for a
 * while, a few turns are swapped at random and the climb goes on from there.
 */
#include "plan/rigid_bodies.h"

#include <stdlib.h>
#include <string.h>

enum {
    WORK = 40000000, /* pairs of pieces looked at: a fraction of a second */
    MOST_ROUNDS = 4000,
    STUCK = 50, /* rounds without gain before a jump */
    JUMP = 4,   /* random swaps of a jump */
};

typedef struct climb {
    muc_bodies *bodies;
    muc_chance chance;
    uint32_t *order;   /* where we are */
    uint32_t *best;    /* the best order so far */
    uint32_t *turn;    /* of each body: its place in order */
    uint32_t *reasons; /* bodies that decide the peak */
    uint32_t *scratch;
    bool *is_reason;
    uint32_t reason_count;
} climb;

/* Does a rest on b, or does b's end touch a's bottom, in some step? */
static bool rests_on(const muc_bodies *bodies, uint32_t a, uint32_t b)
{
    const muc_body *upper = &bodies->body[a], *lower = &bodies->body[b];

    for (uint32_t i = 0; i < upper->piece_count; i++)
        for (uint32_t k = 0; k < lower->piece_count; k++) {
            const muc_piece *p = &bodies->pieces[upper->pieces + i];
            const muc_piece *q = &bodies->pieces[lower->pieces + k];

            if (muc_pieces_meet(p, q) && upper->at + p->low == lower->at + q->high)
                return true;
        }
    return false;
}

/* the bodies that end at the peak, and all that these rest on */
static void find_reasons(climb *c, uint64_t peak)
{
    muc_bodies *bodies = c->bodies;

    c->reason_count = 0;
    for (uint32_t i = 0; i < bodies->count; i++) {
        c->is_reason[i] = bodies->body[i].at + bodies->body[i].height == peak;
        if (c->is_reason[i])
            c->reasons[c->reason_count++] = i;
    }
    for (uint32_t i = 0; i < c->reason_count; i++)
        for (uint32_t k = 0; k < bodies->count; k++)
            if (!c->is_reason[k] && rests_on(bodies, c->reasons[i], k)) {
                c->is_reason[k] = true;
                c->reasons[c->reason_count++] = k;
            }
}

static void swap(climb *c, uint32_t a, uint32_t b)
{
    uint32_t turn = c->turn[a];

    c->turn[a] = c->turn[b];
    c->turn[b] = turn;
    c->order[c->turn[a]] = a;
    c->order[c->turn[b]] = b;
}

static void set_order(climb *c, const uint32_t *order)
{
    memmove(c->order, order, c->bodies->count * sizeof(*order));
    for (uint32_t i = 0; i < c->bodies->count; i++)
        c->turn[order[i]] = i;
}

static void climb_on(climb *c, uint64_t target, uint32_t rounds, uint64_t *peak)
{
    uint32_t count = c->bodies->count, stuck = 0;
    uint64_t here = *peak;

    find_reasons(c, muc_bodies_first_fit(c->bodies, c->order, UINT64_MAX, c->scratch));
    for (uint32_t round = 0; round<rounds && * peak> target; round++) {
        uint32_t a = c->reasons[muc_chance_draw(&c->chance, c->reason_count)];
        uint32_t b = muc_chance_draw(&c->chance, 2)
                         ? muc_chance_draw(&c->chance, count)
                         : c->reasons[muc_chance_draw(&c->chance, c->reason_count)];
        uint64_t next;

        if (a == b)
            continue;
        swap(c, a, b);
        next = muc_bodies_first_fit(c->bodies, c->order, here, c->scratch);
        if (next == UINT64_MAX) {
            swap(c, a, b);
        } else {
            stuck = next < here ? 0 : stuck;
            here = next;
            find_reasons(c, here);
        }
        if (here < *peak) {
            *peak = here;
            memcpy(c->best, c->order, count * sizeof(*c->best));
        }
        if (++stuck > STUCK) {
            stuck = 0;
            set_order(c, c->best);
            for (uint32_t i = 0; i < JUMP; i++)
                swap(c, muc_chance_draw(&c->chance, count), muc_chance_draw(&c->chance, count));
            here = muc_bodies_first_fit(c->bodies, c->order, UINT64_MAX, c->scratch);
            find_reasons(c, here);
        }
    }
}

muc_status muc_bodies_climb(muc_context *ctx, muc_bodies *bodies, uint64_t target, uint32_t *order,
                            uint64_t *peak)
{
    uint64_t work = (uint64_t)bodies->piece_count * bodies->piece_count + 1;
    uint32_t rounds = WORK / work < MOST_ROUNDS ? (uint32_t)(WORK / work) : MOST_ROUNDS;
    climb c = { .bodies = bodies, .chance = { 1 }, .order = order };
    muc_status status = MUC_NEW_ARRAY(ctx, "plan", bodies->count, &c.best);

    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(ctx, "plan", bodies->count, &c.turn);
    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(ctx, "plan", bodies->count, &c.reasons);
    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(ctx, "plan", bodies->count, &c.is_reason);
    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(ctx, "plan", bodies->piece_count, &c.scratch);
    if (status == MUC_OK) {
        set_order(&c, order);
        memcpy(c.best, order, bodies->count * sizeof(*order));
        climb_on(&c, target, rounds, peak);
        memcpy(order, c.best, bodies->count * sizeof(*order));
    }
    free(c.best);
    free(c.turn);
    free(c.reasons);
    free(c.is_reason);
    free(c.scratch);
    return status;
}
