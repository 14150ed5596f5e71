/* place_exact.c - searches through all left-justified placements.
 *
 * If a placement fits, so does one in which no body can be moved down alone, because moving down
 * never harms; only those are searched. That, and the bound for each section of time, are after
 * Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning"
 * (ASPLOS 2023); how the search branches is our own.
 *
 * A section is a maximal set of bodies that live together. Its floor is the lowest address that is
 * left there. A valley is a run of sections with one floor between higher ones: what comes to lie
 * on its floor is inside it. So some section of a valley is chosen, and each body that may lie
 * there on the floor is tried; in the end none of them does, and the floor rises to the next
 * address at which one could. The section with the fewest ways, and the most failures of late, is
 * chosen, wherever it is. What prunes:
 *
 *  sections   The bodies not placed yet, one above the other, none below the lowest address that it
 *             can still have, must end below the capacity in each section.
 *  borders    Where two sections meet that have nothing to waste, the bodies that end there and
 *             those that begin there cover the same addresses (floors_meet.c).
 *  support    A body lies on the ground or on another one, not above room that nothing will use.
 *  parts      Bodies left over that fall into groups without common steps are searched apart.
 *  memory     What is left (bodies, floors) has failed before, in whatever order it was reached.
 *
 * Of the bodies that may lie on the floor, one that leaves little room unused goes first; the rest
 * is a guess from shapes, from where the search failed before, and from chance. Many guesses are
 * tried in turn. Work is counted, not seconds.
 */
#include "plan/floors.h"

#include <stdlib.h>
#include <string.h>

enum {
    UNIT = 64,        /* failures: the shortest time to follow a guess */
    MEMORY = 1 << 20, /* failures remembered at most; a new one takes an old one's place */
    STATE_WORK = 64,  /* a failure costs more */
};
#define NO_WAY UINT32_MAX /* of a section: the search cannot branch there */

/* What is thought of bodies: a score from shapes by weight, and of places: the less is unused, and
 * the more neighbours are level, the better. */
enum key { CONTENTION, DURATION, AREA, HEIGHT, FAILS, KEYS };

typedef struct guess {
    uint32_t weights[KEYS], noise, level, unused;
} guess;

typedef struct choice {
    int64_t score;
    uint32_t body;
} choice;

/* bodies left that hang together by common steps, and their sections */
typedef struct part {
    const uint32_t *list;
    uint32_t count, first, last;
} part;

typedef struct search {
    const muc_bodies *bodies;
    muc_floors floors;
    uint32_t *valley;   /* of each section: 1 + the first of its valley; 0: it is in none */
    uint32_t *end;      /* of each section: the last with the same floor beside it */
    uint32_t *ways;     /* of each section: bodies that may lie on its floor, or NO_WAY */
    uint64_t *next;     /* of a valley's first section: its floor's next address is not lower */
    uint32_t *starts;   /* bodies, by their first section */
    size_t *start_at;   /* of each section: its first in starts; and the end */
    int32_t *crossings; /* scratch: bodies that reach from a section into the next */
    bool *is_there;     /* of each body: scratch */
    int64_t *score;     /* of each body: how early it is tried */
    uint32_t *rank;     /* of each body: its place in by_rank */
    uint32_t *by_rank;
    bool *is_twin;    /* of each body: like the one ranked before it */
    uint64_t *mark;   /* of each body: a number drawn for it */
    uint64_t *memory; /* states that failed */
    size_t memory_size;
    uint64_t *stack; /* what the nodes on the way down remember */
    size_t stack_used;
    guess by;
    uint64_t nodes, failures, most_failures, work_limit;
    bool out_of_nodes;
    muc_chance chance;
} search;

static const muc_cell *cells_of(const search *s, uint32_t body, const muc_cell **end)
{
    return muc_cells(s->floors.of_body, s->floors.body_at, body, end);
}

/* ---- where to branch ---- */

static void find_valleys(search *s, const part *p)
{
    const uint64_t *floor = s->floors.floor;

    for (uint32_t k = p->first, end; k <= p->last; k = end + 1) {
        uint64_t left = k > p->first ? floor[k - 1] : UINT64_MAX, right;
        bool is_valley;

        for (end = k; end < p->last && floor[end + 1] == floor[k];)
            end++;
        right = end < p->last ? floor[end + 1] : UINT64_MAX;
        is_valley = left > floor[k] && right > floor[k];
        /* what reaches out of the valley lies above one of its sides */
        s->next[k] = left < right ? left : right;
        for (uint32_t i = k; i <= end; i++) {
            s->valley[i] = is_valley ? k + 1 : 0;
            s->end[i] = end;
            s->ways[i] = is_valley ? 0 : NO_WAY;
        }
    }
}

typedef enum place_now {
    NEVER, /* not at the address that it would have now */
    NOW,
    LATER, /* there perhaps, but something could come below it first */
} place_now;

static place_now can_place(const search *s, uint32_t body)
{
    const muc_floors *f = &s->floors;
    const muc_cell *end, *cell = cells_of(s, body, &end);
    bool is_supported = f->low[body] == 0;

    if (s->is_twin[body] && !f->is_placed[s->by_rank[s->rank[body] - 1]])
        return NEVER;
    for (; cell < end; cell++) {
        if (s->bodies->flat && (!s->valley[cell->other] || f->floor[cell->other] != f->low[body]))
            return LATER;
        is_supported = is_supported || f->top[cell->other] == f->low[body] + cell->low;
    }
    return is_supported ? NOW : NEVER;
}

/* counts a body among the ways of the sections on whose floors it would lie */
static void add_way(search *s, uint32_t body, place_now when)
{
    const muc_floors *f = &s->floors;
    const muc_cell *end, *cell = cells_of(s, body, &end);

    for (; cell < end; cell++) {
        uint32_t k = cell->other, valley = s->valley[k];
        uint64_t top = s->bodies->flat ? f->low[body] + cell->high : 0;

        if (valley && top < s->next[valley - 1])
            s->next[valley - 1] = top;
        if (s->ways[k] != NO_WAY && f->floor[k] == f->low[body] + cell->low)
            s->ways[k] = when == NOW ? s->ways[k] + 1 : NO_WAY;
    }
}

/* The section with the fewest ways to go on, the floor's own rise included, and the most failures.
 */
static uint32_t find_best(const search *s, const part *p)
{
    const muc_floors *f = &s->floors;
    uint32_t best = NO_WAY;
    uint64_t best_ways = 0;

    for (uint32_t k = p->first; k <= p->last; k++) {
        uint64_t ways = s->ways[k];

        if (ways == NO_WAY)
            continue;
        ways += f->floor[k] + f->rest[k] < f->capacity &&
                s->next[s->valley[k] - 1] <= f->capacity - f->rest[k];
        ways *= ways;
        if (best == NO_WAY || ways * (1 + f->fails[best]) < best_ways * (1 + f->fails[k])) {
            best = k;
            best_ways = ways;
        }
    }
    return best;
}

/* Puts the bodies that may be placed now into found. Returns the section in which to branch. */
static uint32_t choose(search *s, const part *p, uint32_t *found, uint32_t *found_count)
{
    const muc_floors *f = &s->floors;
    bool has_pieces = s->bodies->piece_count > s->bodies->count;

    *found_count = 0;
    find_valleys(s, p);
    s->floors.work += p->last - p->first;
    for (uint32_t k = p->first; k <= p->last; k++) {
        /* what has one piece and must wait reaches out of the valley: it is above the floor */
        if (!has_pieces && !s->valley[k])
            continue;
        for (size_t n = s->start_at[k]; n < s->start_at[k + 1]; n++) {
            uint32_t body = s->starts[n];
            place_now when;

            if (f->is_placed[body] || (!has_pieces && f->low[body] != f->floor[k]))
                continue;
            when = can_place(s, body);
            if (when == NOW)
                found[(*found_count)++] = body;
            if (when == NOW || (when == LATER && s->bodies->body[body].piece_count > 1))
                add_way(s, body, when);
            s->floors.work += f->body_at[body + 1] - f->body_at[body];
        }
    }
    return find_best(s, p);
}

/* the lowest end of a body that is not there but may come to lie below this one, which is */
static uint64_t lowest_support(search *s, uint32_t body)
{
    muc_floors *f = &s->floors;
    const muc_cell *end, *cell = cells_of(s, body, &end);
    uint64_t lowest = UINT64_MAX;

    for (; cell < end; cell++) {
        const muc_cell *beyond, *other;

        other = muc_cells(f->of_section, f->section_at, cell->other, &beyond);
        f->work += (uint64_t)(beyond - other);
        for (; other < beyond; other++) {
            uint64_t top = f->low[other->other] + other->high - cell->low;

            if (!f->is_placed[other->other] && !s->is_there[other->other] && top < lowest &&
                top > f->low[body])
                lowest = top;
        }
    }
    return lowest;
}

/* the lowest that the section's floor can be when no body lies where it is now */
static uint64_t next_floor(search *s, uint32_t section)
{
    const muc_floors *f = &s->floors;
    const muc_cell *end, *first = muc_cells(f->of_section, f->section_at, section, &end);
    uint64_t next = UINT64_MAX;

    for (const muc_cell *cell = first; cell < end; cell++)
        s->is_there[cell->other] = true;
    for (const muc_cell *cell = first; cell < end; cell++) {
        uint64_t bottom = f->low[cell->other] + cell->low;

        if (f->is_placed[cell->other])
            continue;
        if (bottom == f->floor[section]) {
            bottom = lowest_support(s, cell->other);
            bottom = bottom == UINT64_MAX ? bottom : bottom + cell->low;
        }
        next = bottom < next ? bottom : next;
    }
    for (const muc_cell *cell = first; cell < end; cell++)
        s->is_there[cell->other] = false;
    return next;
}

/* No body lies on the section's floor. False: then the rest has no room. */
static bool leave_floor(search *s, uint32_t section)
{
    muc_floors *f = &s->floors;
    uint64_t next = f->capacity;

    if (f->floor[section] + f->rest[section] < f->capacity)
        next = next_floor(s, section);
    if (next > f->capacity - f->rest[section]) {
        f->fails[section]++;
        return false;
    }
    return muc_floors_raise(f, section, next);
}

/* ---- in which order ---- */

/* the binary logarithm in 1/256, straight between powers of two */
static int64_t logarithm(uint64_t value)
{
    uint32_t power = 63;

    if (value == 0)
        return 0;
    while (!(value >> power & 1))
        power--;
    return (int64_t)(256 * power +
                     (power > 8 ? value >> (power - 8) & 255 : value << (8 - power) & 255));
}

/* how often the body's ends and those of its valley, or its top and what is beside it, agree */
static int64_t count_level(const search *s, uint32_t body, const part *p)
{
    const uint64_t *floor = s->floors.floor;
    uint32_t first = muc_first_section(&s->floors, body);
    uint32_t last = muc_last_section(&s->floors, body);
    uint64_t top = s->floors.low[body] + s->bodies->body[body].height;
    bool left = s->valley[first] == first + 1, right = s->end[last] == last;

    return left + right + (left && first > p->first && floor[first - 1] == top) +
           (right && last < p->last && floor[last + 1] == top);
}

/* units that are taken or wanted; all, where no body is left */
static uint64_t count_units(const muc_floors *f, const part *p)
{
    uint64_t units = 0;

    for (uint32_t k = p->first; k <= p->last; k++)
        units += f->rest[k] ? f->floor[k] + f->rest[k] : f->capacity;
    return units;
}

static bool lies_on(const search *s, uint32_t body, uint32_t section)
{
    const muc_cell *end, *cell = cells_of(s, body, &end);

    while (cell < end && cell->other < section)
        cell++;
    return cell < end && cell->other == section &&
           s->floors.low[body] + cell->low == s->floors.floor[section];
}

static uint32_t insert(choice *choices, uint32_t count, choice added)
{
    uint32_t to = count;

    for (; to > 0 && choices[to - 1].score < added.score; to--)
        choices[to] = choices[to - 1];
    choices[to] = added;
    return count + 1;
}

/* Of the bodies found, those that may lie on the section's floor, the best first. If there are
 * several, each is placed, to see what would be unused. */
static uint32_t order(search *s, const part *p, const muc_floors_copy *before, uint32_t section,
                      const uint32_t *found, uint32_t found_count, choice *choices)
{
    uint64_t units = count_units(&s->floors, p);
    bool only = s->ways[section] == 1;
    uint32_t chosen = 0;

    for (uint32_t n = 0; n < found_count; n++) {
        choice next = { s->score[found[n]], found[n] };
        bool good = true;

        if (!lies_on(s, found[n], section))
            continue;
        if (!only) {
            next.score += count_level(s, found[n], p) * s->by.level;
            s->floors.work += p->count + (p->last - p->first);
            good = muc_floors_place(&s->floors, found[n]);
            if (good)
                next.score -= logarithm(count_units(&s->floors, p) - units + 1) * s->by.unused;
            muc_floors_return(&s->floors, p->list, p->count, before);
        }
        if (good)
            chosen = insert(choices, chosen, next);
    }
    return chosen;
}

/* ---- the tree ---- */

static void *push(search *s, size_t count, size_t size)
{
    void *top = s->stack + s->stack_used;

    s->stack_used += (count * size + sizeof(*s->stack) - 1) / sizeof(*s->stack);
    return top;
}

/* The part's first and last section, and the last of those whose bodies hang together with the
 * earliest. */
static uint32_t find_part(search *s, part *p)
{
    int32_t reach = 0;

    memset(s->crossings, 0, s->floors.sections * sizeof(*s->crossings));
    p->first = UINT32_MAX;
    p->last = 0;
    for (uint32_t n = 0; n < p->count; n++) {
        uint32_t first = muc_first_section(&s->floors, p->list[n]);
        uint32_t last = muc_last_section(&s->floors, p->list[n]);

        p->first = first < p->first ? first : p->first;
        p->last = last > p->last ? last : p->last;
        s->crossings[first]++;
        s->crossings[last]--;
    }
    for (uint32_t k = p->first; k < p->last; k++) {
        reach += s->crossings[k];
        if (reach == 0)
            return k;
    }
    return p->last;
}

static bool descend(search *s, const uint32_t *list, uint32_t count);

/* the bodies up to a section, then the others */
static bool descend_parts(search *s, const part *p, uint32_t end)
{
    uint32_t *list = push(s, p->count, sizeof(*list));
    uint32_t near = 0, far = p->count;

    for (uint32_t n = 0; n < p->count; n++)
        if (muc_last_section(&s->floors, p->list[n]) <= end)
            list[near++] = p->list[n];
        else
            list[--far] = p->list[n];
    return descend(s, list, near) && descend(s, list + far, p->count - far);
}

/* a number for what is left: bodies, floors, and what can support them. Not 0. */
static uint64_t state_of(const search *s, const part *p)
{
    const muc_floors *f = &s->floors;
    uint64_t state = 0;

    for (uint32_t n = 0; n < p->count; n++)
        state ^= s->mark[p->list[n]];
    for (uint32_t k = p->first; k <= p->last; k++) {
        uint64_t here = f->rest[k] ? 2 * f->floor[k] + (f->top[k] == f->floor[k]) : UINT64_MAX;

        state = (state ^ here) * 0x9e3779b97f4a7c15u;
        state ^= state >> 32;
    }
    return state | 1;
}

/* Places one after the other of the bodies that may lie on the section's floor, until the rest can
 * be placed. */
static bool try_choices(search *s, const part *p, const muc_floors_copy *before,
                        const choice *choices, uint32_t chosen)
{
    size_t mark = s->stack_used;
    uint32_t *others = push(s, p->count, sizeof(*others));
    bool done = false;

    for (uint32_t i = 0; i < chosen && !done && !s->out_of_nodes; i++) {
        uint32_t left = 0;

        for (uint32_t n = 0; n < p->count; n++)
            if (p->list[n] != choices[i].body)
                others[left++] = p->list[n];
        done = muc_floors_place(&s->floors, choices[i].body) && descend(s, others, left);
        s->failures += !done;
        if (!done)
            muc_floors_return(&s->floors, p->list, p->count, before);
    }
    s->stack_used = mark;
    return done;
}

/* places the part's bodies from the floors as they are; false as for descend */
static bool branch(search *s, const part *p)
{
    size_t size = s->floors.sections;
    muc_floors_copy before = { .floor = push(s, size, sizeof(uint64_t)),
                               .top = push(s, size, sizeof(uint64_t)),
                               .rest = push(s, size, sizeof(uint64_t)),
                               .low = push(s, p->count, sizeof(uint64_t)) };
    uint32_t *found = push(s, p->count, sizeof(*found));
    choice *choices = push(s, p->count, sizeof(*choices));

    while (s->failures < s->most_failures && s->floors.work <= s->work_limit) {
        uint32_t found_count, chosen, section = choose(s, p, found, &found_count);

        s->nodes++;
        if (section == NO_WAY)
            return false;
        muc_floors_keep(&s->floors, p->list, p->count, &before);
        chosen = order(s, p, &before, section, found, found_count, choices);
        if (try_choices(s, p, &before, choices, chosen))
            return true;
        if (s->out_of_nodes || !leave_floor(s, section))
            return false;
    }
    s->out_of_nodes = true;
    return false;
}

/* Places all bodies of the list. False: there is no way, or no nodes are left; some bodies may then
 * be placed all the same. */
static bool descend(search *s, const uint32_t *list, uint32_t count)
{
    part p = { .list = list, .count = count };
    size_t mark = s->stack_used;
    uint32_t end;
    bool done;

    if (count == 0)
        return true;
    s->floors.work += count;
    end = find_part(s, &p);
    if (end < p.last) {
        done = descend_parts(s, &p, end);
    } else {
        uint64_t state = state_of(s, &p);

        if (s->memory[state % s->memory_size] == state)
            return false;
        done = branch(s, &p);
        if (!done && !s->out_of_nodes)
            s->memory[state % s->memory_size] = state;
    }
    s->stack_used = mark;
    return done;
}

/* ---- guesses ---- */

/* The first guess is by duration; the others are drawn. The contention of bodies differs little
 * where it matters, and where it failed before matters most, so these two weigh more. */
static guess draw(muc_chance *chance, uint32_t turn)
{
    guess next = { .weights = { [DURATION] = 1024, [AREA] = 1 } };

    next.level = 256 * muc_chance_draw(chance, 1024);
    next.unused = 1024 * muc_chance_draw(chance, 64);
    if (turn == 0)
        return next;
    for (uint32_t i = 0; i < KEYS; i++)
        next.weights[i] = muc_chance_draw(chance, 1024);
    next.weights[CONTENTION] *= 10;
    next.weights[FAILS] *= 16;
    next.noise = muc_chance_draw(chance, 1024);
    return next;
}

static void find_keys(const search *s, uint32_t body, uint64_t keys[KEYS])
{
    const muc_floors *f = &s->floors;
    const muc_cell *end, *cell = cells_of(s, body, &end);

    memset(keys, 0, KEYS * sizeof(*keys));
    keys[HEIGHT] = s->bodies->body[body].height;
    keys[DURATION] = (uint64_t)(end - cell);
    for (; cell < end; cell++) {
        uint64_t total = f->total[cell->other], fails = f->fails[cell->other];

        keys[AREA] += cell->high - cell->low;
        keys[CONTENTION] = total > keys[CONTENTION] ? total : keys[CONTENTION];
        keys[FAILS] = fails > keys[FAILS] ? fails : keys[FAILS];
    }
}

static bool are_twins(const search *s, uint32_t a, uint32_t b)
{
    const muc_cell *a_end, *b_end, *p = cells_of(s, a, &a_end), *q = cells_of(s, b, &b_end);

    if (a_end - p != b_end - q)
        return false;
    for (; p < a_end; p++, q++)
        if (p->other != q->other || p->low != q->low || p->high != q->high)
            return false;
    return true;
}

static int by_score(const void *left, const void *right)
{
    const choice *a = left, *b = right;

    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return a->body < b->body ? -1 : 1;
}

static void rank(search *s, choice *ranking)
{
    uint32_t count = s->bodies->count;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t keys[KEYS];

        find_keys(s, i, keys);
        ranking[i] = (choice){ .body = i };
        for (uint32_t k = 0; k < KEYS; k++)
            ranking[i].score += s->by.weights[k] * logarithm(keys[k]);
        if (s->by.noise)
            ranking[i].score += 256 * (int64_t)muc_chance_draw(&s->chance, s->by.noise);
        s->score[i] = ranking[i].score;
    }
    qsort(ranking, count, sizeof(*ranking), by_score);
    for (uint32_t i = 0; i < count; i++) {
        s->by_rank[i] = ranking[i].body;
        s->rank[ranking[i].body] = i;
        s->is_twin[ranking[i].body] = i > 0 && are_twins(s, s->by_rank[i - 1], s->by_rank[i]);
    }
}

/* one guess, at most `limit` nodes */
static bool search_once(search *s, uint64_t limit, choice *ranking)
{
    rank(s, ranking);
    s->out_of_nodes = false;
    s->failures = 0;
    s->most_failures = limit;
    return muc_floors_reset(&s->floors) && descend(s, s->by_rank, s->bodies->count);
}

/* Guess after guess. How long each is followed is Luby's sequence, which wastes little whatever the
 * right length is, and in the end is long enough for a proof. */
static muc_exact_result search_all(search *s, choice *ranking)
{
    for (uint32_t turn = 0;; turn++) {
        s->by = draw(&s->chance, turn);
        if (search_once(s, UNIT * muc_luby((uint64_t)turn + 1), ranking))
            return MUC_EXACT_FOUND;
        if (!s->out_of_nodes)
            return s->bodies->flat ? MUC_EXACT_NONE : MUC_EXACT_UNKNOWN;
        if (s->floors.work > s->work_limit)
            return MUC_EXACT_UNKNOWN;
        for (uint32_t k = 0; k < s->floors.sections; k++)
            s->floors.fails[k] -= s->floors.fails[k] / 8;
    }
}

/* what all levels of the tree can remember at once: a list is shorter than the one above it */
static size_t stack_words(size_t count, size_t sections)
{
    return (count + 1) * (3 * sections + 5 * count + 8);
}

static void find_starts(search *s)
{
    size_t *at = s->start_at;
    uint32_t sections = s->floors.sections;

    for (uint32_t i = 0; i < s->bodies->count; i++)
        at[muc_first_section(&s->floors, i)]++;
    for (uint32_t k = 1; k <= sections; k++)
        at[k] += at[k - 1];
    for (uint32_t i = s->bodies->count; i-- > 0;)
        s->starts[--at[muc_first_section(&s->floors, i)]] = i;
}

static muc_status prepare(muc_context *ctx, search *s, choice **ranking)
{
    size_t count = s->bodies->count, sections = s->floors.sections;

    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", sections, &s->valley));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", sections, &s->end));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", sections, &s->ways));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", sections, &s->next));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", sections, &s->crossings));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, &s->starts));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", sections + 1, &s->start_at));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, &s->is_there));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, &s->score));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, &s->rank));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, &s->by_rank));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, &s->is_twin));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, &s->mark));
    for (s->memory_size = 1;
         s->memory_size < MEMORY && s->memory_size * STATE_WORK < s->work_limit;)
        s->memory_size *= 2;
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", s->memory_size, &s->memory));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", stack_words(count, sections), &s->stack));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, ranking));
    find_starts(s);
    for (size_t i = 0; i < count; i++)
        s->mark[i] = (uint64_t)muc_chance_draw(&s->chance, UINT32_MAX) << 32 |
                     muc_chance_draw(&s->chance, UINT32_MAX);
    return MUC_OK;
}

static void release(search *s)
{
    void *arrays[] = { s->valley,   s->end,      s->ways, s->next,    s->crossings,
                       s->is_there, s->score,    s->rank, s->by_rank, s->is_twin,
                       s->starts,   s->start_at, s->mark, s->memory,  s->stack };

    for (size_t i = 0; i < MUC_COUNT(arrays); i++)
        free(arrays[i]);
    muc_floors_free(&s->floors);
}

muc_status muc_bodies_exact(muc_context *ctx, muc_bodies *bodies, uint64_t capacity,
                            uint64_t *budget, uint64_t *nodes, muc_exact_result *result)
{
    search s = { .bodies = bodies, .chance = { 2 * *nodes + 7 }, .work_limit = *budget };
    choice *ranking = NULL;
    muc_status status;

    *result = MUC_EXACT_UNKNOWN;
    if (bodies->count > MUC_MOST_EXACT || bodies->piece_count > 2 * MUC_MOST_EXACT) {
        *budget = 0;
        return MUC_OK;
    }
    status = muc_floors_build(ctx, bodies, capacity, &s.floors);
    if (status == MUC_OK)
        status = prepare(ctx, &s, &ranking);
    if (status == MUC_OK) {
        *result = search_all(&s, ranking);
        for (uint32_t i = 0; i < bodies->count && *result == MUC_EXACT_FOUND; i++)
            bodies->body[i].at = s.floors.low[i];
        *nodes += s.nodes;
        *budget -= s.floors.work < *budget ? s.floors.work : *budget;
    }
    free(ranking);
    release(&s);
    return status;
}
