/* place_merge.c - makes one body of several that lie side by side.
 *
 * Where two sections meet that have nothing to waste, the bodies that end there and those that
 * begin there cover the same addresses. So if one ends and one begins they have one address, and
 * are one body as well. If several do, two of one height probably are; and two that live in the
 * same sections are probably stacked if together they are as high as one that they meet. The fewer
 * bodies there are to mistake for another the surer that is, so the surest pairs are joined first,
 * each of which makes others surer, up to a risk that is a matter of chance. What was cut by
 * straight cuts, or by wheels, comes together again by this alone; of other lists a small one is
 * left to search.
 */
#include "plan/floors.h"

#include <stdlib.h>
#include <string.h>

#define RISK 256u /* the unit of risks */
#define NONE UINT32_MAX

typedef struct tile {
    uint32_t first, last; /* sections */
    uint32_t into;        /* the tile that it has become part of, or NONE */
    uint64_t height;
    uint64_t offset;                      /* of a part: from the other's lowest unit */
    bool is_fixed;                        /* has several pieces */
    uint32_t next_ending, next_beginning; /* in the same section */
} tile;

/* two tiles of which one is made */
typedef struct pair {
    uint32_t a, b;
    uint32_t risk; /* UINT32_MAX: there is no pair */
} pair;

typedef struct merger {
    const muc_floors *floors;
    muc_chance chance;
    uint32_t noise;
    uint64_t work;
    tile *tiles;
    uint32_t count;
    uint32_t *ending, *beginning; /* of each section: one of its tiles that end or begin there */
    pair *surest;                 /* of each border: between a section and the one before it */
} merger;

/* ---- what may be one ---- */

typedef struct border {
    uint32_t ending, beginning; /* lists */
    uint32_t ends, begins;      /* their lengths */
    bool is_plain;              /* what lives on both sides occupies the same units there */
} border;

static border border_at(const merger *m, uint32_t k)
{
    const muc_floors *f = m->floors;
    border b = { .ending = k > 0 ? m->ending[k - 1] : NONE,
                 .beginning = k < f->sections ? m->beginning[k] : NONE };

    for (uint32_t i = b.ending; i != NONE; i = m->tiles[i].next_ending)
        b.ends++;
    for (uint32_t i = b.beginning; i != NONE; i = m->tiles[i].next_beginning)
        b.begins++;
    b.is_plain = k > 0 && k < f->sections && f->is_plain[k - 1];
    return b;
}

static uint32_t next_of(const merger *m, uint32_t i, bool of_ending)
{
    return of_ending ? m->tiles[i].next_ending : m->tiles[i].next_beginning;
}

static bool is_there(const merger *m, uint32_t list, bool of_ending, uint64_t height)
{
    while (list != NONE && m->tiles[list].height != height)
        list = next_of(m, list, of_ending);
    return list != NONE;
}

static void consider(merger *m, uint32_t k, uint32_t a, uint32_t b, uint32_t risk)
{
    risk = risk * RISK + muc_chance_draw(&m->chance, risk * m->noise + 1);
    if (!m->tiles[a].is_fixed && !m->tiles[b].is_fixed && risk < m->surest[k].risk)
        m->surest[k] = (pair){ a, b, risk };
}

/* those of one side that live in the same sections */
static void consider_stacks(merger *m, uint32_t k, const border *at, bool of_ending)
{
    uint32_t side = of_ending ? at->ends : at->begins, beyond = of_ending ? at->begins : at->ends;
    uint32_t other = of_ending ? at->beginning : at->ending;

    for (uint32_t i = of_ending ? at->ending : at->beginning; i != NONE;
         i = next_of(m, i, of_ending))
        for (uint32_t j = next_of(m, i, of_ending); j != NONE; j = next_of(m, j, of_ending)) {
            const tile *a = &m->tiles[i], *b = &m->tiles[j];
            uint32_t risk = 2 + side * (beyond ? beyond : side);

            if (a->first != b->first || a->last != b->last)
                continue;
            if (at->is_plain && is_there(m, other, !of_ending, a->height + b->height))
                risk = (side - 2) * (beyond - 1);
            else if (at->is_plain && side == 2 && !is_there(m, other, !of_ending, a->height) &&
                     !is_there(m, other, !of_ending, b->height))
                risk = 0;
            consider(m, k, i, j, risk);
        }
}

static void find_surest(merger *m, uint32_t k)
{
    border at = border_at(m, k);

    m->work += at.ends * (at.ends + at.begins) + at.begins * at.begins + 1;
    m->surest[k].risk = UINT32_MAX;
    for (uint32_t i = at.is_plain ? at.ending : NONE; i != NONE; i = m->tiles[i].next_ending)
        for (uint32_t j = at.beginning; j != NONE; j = m->tiles[j].next_beginning)
            if (m->tiles[i].height == m->tiles[j].height)
                consider(m, k, i, j, (at.ends - 1) * (at.begins - 1));
    consider_stacks(m, k, &at, true);
    consider_stacks(m, k, &at, false);
}

/* ---- what is made one ---- */

static void add_tile(merger *m, uint32_t i)
{
    tile *t = &m->tiles[i];

    t->next_ending = m->ending[t->last];
    m->ending[t->last] = i;
    t->next_beginning = m->beginning[t->first];
    m->beginning[t->first] = i;
}

static void remove_tile(merger *m, uint32_t i)
{
    uint32_t *at = &m->ending[m->tiles[i].last];

    while (*at != i)
        at = &m->tiles[*at].next_ending;
    *at = m->tiles[i].next_ending;
    at = &m->beginning[m->tiles[i].first];
    while (*at != i)
        at = &m->tiles[*at].next_beginning;
    *at = m->tiles[i].next_beginning;
}

/* b becomes part of a: above it, or after it */
static void make_one(merger *m, pair p)
{
    tile *a = &m->tiles[p.a], *b = &m->tiles[p.b];
    uint32_t middle = b->first;

    remove_tile(m, p.a);
    remove_tile(m, p.b);
    b->into = p.a;
    if (a->first == b->first) {
        b->offset = a->height;
        a->height += b->height;
    }
    a->last = b->last;
    add_tile(m, p.a);
    find_surest(m, a->first);
    find_surest(m, a->last + 1);
    if (middle != a->first)
        find_surest(m, middle);
}

static void make_pairs(merger *m, uint32_t most_risk)
{
    uint32_t borders = m->floors->sections + 1;

    for (;;) {
        uint32_t surest = 0;

        m->work += borders / 4 + 1;
        for (uint32_t k = 1; k < borders; k++)
            surest = m->surest[k].risk < m->surest[surest].risk ? k : surest;
        if (m->surest[surest].risk > most_risk)
            return;
        make_one(m, m->surest[surest]);
    }
}

/* ---- wheels ---- */

/* Four tiles around a hub. One ends where the hub begins, as high as the hub and the one that
 * begins there together; one begins where the hub ends, as high as the hub and the one that ends
 * there. */
typedef struct wheel {
    uint32_t hub, before, beside, under, after;
} wheel;

static bool is_free(const merger *m, const wheel *w)
{
    const tile *t = m->tiles;

    return w->beside != w->hub && w->under != w->hub && !t[w->hub].is_fixed &&
           !t[w->before].is_fixed && !t[w->beside].is_fixed && !t[w->under].is_fixed &&
           !t[w->after].is_fixed;
}

/* looks for the two that meet where the hub ends */
static bool find_other_half(merger *m, wheel *w)
{
    const tile *t = m->tiles, *hub = &t[w->hub];

    for (w->under = m->ending[hub->last]; w->under != NONE; w->under = t[w->under].next_ending)
        for (w->after = m->beginning[hub->last + 1];
             t[w->under].first == t[w->before].first && w->after != NONE;
             w->after = t[w->after].next_beginning)
            if (t[w->after].last == t[w->beside].last &&
                t[w->after].height == hub->height + t[w->under].height && is_free(m, w))
                return true;
    return false;
}

static bool find_wheel(merger *m, wheel *w)
{
    const muc_floors *f = m->floors;
    const tile *t = m->tiles;

    for (w->hub = 0; w->hub < m->count; w->hub++) {
        const tile *hub = &t[w->hub];

        m->work++;
        if (hub->into != NONE || hub->first == 0 || hub->last + 1 == f->sections ||
            !f->is_plain[hub->first - 1] || !f->is_plain[hub->last])
            continue;
        for (w->before = m->ending[hub->first - 1]; w->before != NONE;
             w->before = t[w->before].next_ending)
            for (w->beside = m->beginning[hub->first]; w->beside != NONE;
                 w->beside = t[w->beside].next_beginning)
                if (t[w->before].height == hub->height + t[w->beside].height &&
                    find_other_half(m, w))
                    return true;
    }
    return false;
}

static void become(merger *m, uint32_t part, uint32_t whole, uint64_t offset)
{
    remove_tile(m, part);
    m->tiles[part].into = whole;
    m->tiles[part].offset = offset;
}

/* Makes one of all five, if there are such: they are hardly so by chance. */
static bool make_wheel(merger *m)
{
    wheel w;
    tile *hub;

    if (!find_wheel(m, &w))
        return false;
    hub = &m->tiles[w.hub];
    become(m, w.before, w.under, m->tiles[w.under].height);
    become(m, w.beside, w.under, m->tiles[w.under].height + hub->height);
    become(m, w.hub, w.under, m->tiles[w.under].height);
    become(m, w.after, w.under, 0);
    remove_tile(m, w.under);
    m->tiles[w.under].last = m->tiles[w.after].last;
    m->tiles[w.under].height += m->tiles[w.before].height;
    add_tile(m, w.under);
    find_surest(m, hub->first);
    find_surest(m, hub->last + 1);
    find_surest(m, m->tiles[w.under].first);
    find_surest(m, m->tiles[w.under].last + 1);
    return true;
}

static void make_all(merger *m, uint32_t risk)
{
    for (uint32_t k = 0; k <= m->floors->sections; k++)
        find_surest(m, k);
    for (uint32_t i = 0; i <= risk; i++)
        do
            make_pairs(m, (RISK << i) - 1);
        while (make_wheel(m));
}

/* ---- the bodies ---- */

/* the pieces of a tile that is part of no other */
static void write_body(const merger *m, uint32_t i, muc_bodies *out)
{
    const muc_floors *f = m->floors;
    const tile *t = &m->tiles[i];
    muc_body *to = &out->body[out->count];

    *to = (muc_body){ .pieces = out->piece_count, .piece_count = 1, .height = t->height };
    if (t->is_fixed) {
        const muc_body *from = &f->bodies->body[i];

        to->piece_count = from->piece_count;
        memcpy(&out->pieces[to->pieces], &f->bodies->pieces[from->pieces],
               to->piece_count * sizeof(*out->pieces));
    } else {
        out->pieces[to->pieces] =
            (muc_piece){ .first = f->step[t->first], .last = f->step[t->last], .high = t->height };
    }
    for (; out->piece_count < to->pieces + to->piece_count; out->piece_count++)
        out->pieces[out->piece_count].body = out->count;
    out->body_of[i] = out->count++;
}

static muc_status write_bodies(muc_context *ctx, const merger *m, muc_bodies *out)
{
    const muc_bodies *bodies = m->floors->bodies;

    *out = (muc_bodies){ .bound = m->floors->capacity, .flat = bodies->flat };
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", m->count, &out->body));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", (size_t)bodies->piece_count + m->count, &out->pieces));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", m->count, &out->body_of));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", m->count, &out->offset_of));
    for (uint32_t i = 0; i < m->count; i++)
        if (m->tiles[i].into == NONE)
            write_body(m, i, out);
    for (uint32_t i = 0; i < m->count; i++) {
        uint32_t whole = i;

        for (; m->tiles[whole].into != NONE; whole = m->tiles[whole].into)
            out->offset_of[i] += m->tiles[whole].offset;
        out->body_of[i] = out->body_of[whole];
    }
    return MUC_OK;
}

static muc_status prepare(muc_context *ctx, const muc_hole *holes, merger *m)
{
    const muc_bodies *bodies = m->floors->bodies;
    uint32_t sections = m->floors->sections;

    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", m->count, &m->tiles));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", sections, &m->ending));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", sections, &m->beginning));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", (size_t)sections + 1, &m->surest));
    for (uint32_t k = 0; k < sections; k++)
        m->ending[k] = m->beginning[k] = NONE;
    for (uint32_t i = 0; i < m->count; i++) {
        tile *t = &m->tiles[i];

        if (i < bodies->count)
            *t = (tile){ .first = muc_first_section(m->floors, i),
                         .last = muc_last_section(m->floors, i),
                         .height = bodies->body[i].height,
                         .is_fixed = bodies->body[i].piece_count > 1 };
        else
            *t = (tile){ .first = holes[i - bodies->count].first,
                         .last = holes[i - bodies->count].last,
                         .height = holes[i - bodies->count].height };
        t->into = NONE;
        add_tile(m, i);
    }
    return MUC_OK;
}

muc_status muc_floors_merge(muc_context *ctx, const muc_floors *floors, const muc_hole *holes,
                            uint32_t hole_count, uint32_t risk, muc_chance chance, uint64_t *budget,
                            muc_bodies *out)
{
    merger m = { .floors = floors, .chance = chance, .count = floors->bodies->count + hole_count };
    muc_status status = prepare(ctx, holes, &m);

    *out = (muc_bodies){ 0 };
    if (status == MUC_OK) {
        m.noise = muc_chance_draw(&m.chance, 4 * RISK);
        make_all(&m, risk);
        status = write_bodies(ctx, &m, out);
    }
    muc_spend(budget, m.work);
    free(m.tiles);
    free(m.ending);
    free(m.beginning);
    free(m.surest);
    return status;
}
