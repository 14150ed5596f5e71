/* place_exact.c - a search through all left-justified placements.
 *
 * After Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
 * Learning" (ASPLOS 2023). If a placement fits, so does one in which no body can be moved down
 * alone, because moving down never harms; only those are searched. In such a placement every body
 * rests on the ground or on another, so placing bodies by rising address, each as low as those
 * before it allow, reaches all of them. At each level, the lowest address that a body not placed
 * could have, one of these is placed or shut, that is, not placed until something below lifts it.
 * Five rules prune:
 *
 *  sections   In each section of time (a maximal set of bodies that live together) the bodies not
 *             yet placed must fit below the capacity, none below the lowest address that it can
 *             still have.
 *  support    A body that is shut can only come to rest on one that is not placed yet.
 *  dominance  No body is left shut with so much room below the level that it fits there.
 *  need       If a section would be too full unless one of its bodies is placed at this level, only
 *             those are tried; of several such sections, one with few choices and many failures.
 *  parts      Bodies left over that fall into groups without common steps are searched apart.
 *
 * Which of several bodies to try first is a guess from their shapes, from where the search failed
 * before, and from chance; many are tried in turn. Work is counted, not seconds.
 */
#include "plan/bodies.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_BODIES = 1024,
    UNIT = 4, /* nodes for each body: the shortest time to follow a guess */
};

/* sections in which a body occupies the same units */
typedef struct span {
    uint32_t first, last;
    uint64_t low, high;
} span;

typedef struct search {
    muc_bodies *bodies;
    uint64_t capacity;
    uint32_t section_count;
    span *spans;       /* of each piece, in the order of pieces */
    uint64_t *floor;   /* of each section: the lowest unit above what is placed */
    uint64_t *rest;    /* of each section: units of the bodies that are not placed */
    uint64_t *total;   /* of each section: units of all its bodies */
    uint64_t *least;   /* of each section: scratch */
    uint64_t *second;  /* of each section: scratch */
    uint32_t *holder;  /* of each section: scratch */
    uint64_t *fails;   /* of each section: how often it was too full of late */
    uint64_t *shut;    /* of each body: it is not placed below this address any more */
    uint64_t *low;     /* of each body not placed: the lowest address it could have now */
    uint32_t *queue;   /* scratch */
    uint64_t *lifted;  /* of each body not placed: the lowest it can still get */
    uint32_t *rank;    /* of each body: its turn among those with equal addresses */
    uint32_t *by_rank; /* the bodies in that order */
    bool *is_twin;     /* of each body: like the one ranked before it */
    bool *is_placed;   /* of each body */
    uint64_t *stack;   /* what the nodes on the way down remember */
    size_t stack_used;
    uint64_t nodes, node_limit;
    uint64_t work, work_limit; /* sections of bodies looked at */
    bool out_of_nodes;
    muc_chance chance;
} search;

/* ---- sections ---- */

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

/* Between two changes of who lives nothing happens; of those stretches, only the ones after a birth
 * and before a death are not part of another. Doubled times tell births (even) from deaths (odd).
 * Returns how many sections there are and puts their doubled times of death, rising, into ends. */
static uint32_t find_sections(const muc_bodies *bodies, uint64_t *ends)
{
    uint32_t count = 0, events = 0;

    for (uint32_t i = 0; i < bodies->piece_count; i++) {
        ends[events++] = 2 * (uint64_t)bodies->pieces[i].first;
        ends[events++] = 2 * (uint64_t)bodies->pieces[i].last + 1;
    }
    qsort(ends, events, sizeof(*ends), by_value);
    for (uint32_t i = 1; i < events; i++)
        if (ends[i] % 2 == 1 && ends[i - 1] % 2 == 0)
            ends[count++] = ends[i];
    return count;
}

/* the first section whose end is at or after the doubled time */
static uint32_t section_at(const uint64_t *ends, uint32_t count, uint64_t time)
{
    uint32_t low = 0;

    while (count > 0) {
        uint32_t half = count / 2;

        if (ends[low + half] < time) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

static void find_spans(search *s, const uint64_t *ends)
{
    for (uint32_t i = 0; i < s->bodies->piece_count; i++) {
        const muc_piece *piece = &s->bodies->pieces[i];
        /* a section ends before the piece does, or with it */
        span found = { section_at(ends, s->section_count, 2 * (uint64_t)piece->first),
                       section_at(ends, s->section_count, 2 * (uint64_t)piece->last + 2) - 1,
                       piece->low, piece->high };

        s->spans[i] = found;
        for (uint32_t k = found.first; k <= found.last; k++)
            s->total[k] += found.high - found.low;
    }
}

/* ---- one node ---- */

/* The list by rising low, ties by rank. It is nearly in that order already. */
static void sort_list(const search *s, uint32_t *list, uint32_t count)
{
    for (uint32_t n = 1; n < count; n++) {
        uint32_t body = list[n], to = n;

        for (; to > 0 &&
               (s->low[list[to - 1]] > s->low[body] ||
                (s->low[list[to - 1]] == s->low[body] && s->rank[list[to - 1]] > s->rank[body]));
             to--)
            list[to] = list[to - 1];
        list[to] = body;
    }
}

/* It may be placed where it would lie now. */
static bool is_open(const search *s, uint32_t body)
{
    return s->low[body] >= s->shut[body];
}

static void find_low(search *s, uint32_t index)
{
    const muc_body *body = &s->bodies->body[index];
    uint64_t low = 0;

    for (uint32_t i = body->pieces; i < body->pieces + body->piece_count; i++) {
        const span *run = &s->spans[i];

        for (uint32_t k = run->first; k <= run->last; k++)
            if (s->floor[k] > low + run->low)
                low = s->floor[k] - run->low;
        s->work += run->last - run->first + 1;
    }
    s->low[index] = low;
}

/* the lowest end that another body of the list can have where this one lives; s->least, second
 * and holder tell the lowest two of each section */
static uint64_t lowest_support(const search *s, uint32_t index)
{
    const muc_body *body = &s->bodies->body[index];
    uint64_t lowest = UINT64_MAX;

    for (uint32_t i = body->pieces; i < body->pieces + body->piece_count; i++)
        for (uint32_t k = s->spans[i].first; k <= s->spans[i].last; k++) {
            uint64_t end = s->holder[k] == index ? s->second[k] : s->least[k];

            lowest = end < lowest ? end : lowest;
        }
    return lowest;
}

static void find_supports(search *s, const uint32_t *list, uint32_t count, uint64_t level)
{
    for (uint32_t k = 0; k < s->section_count; k++)
        s->least[k] = s->second[k] = UINT64_MAX;
    for (uint32_t n = 0; n < count; n++) {
        const muc_body *body = &s->bodies->body[list[n]];
        uint64_t at = s->low[list[n]] > level ? s->low[list[n]] : level;

        for (uint32_t i = body->pieces; i < body->pieces + body->piece_count; i++)
            for (uint32_t k = s->spans[i].first; k <= s->spans[i].last; k++) {
                uint64_t end = at + s->spans[i].high;

                if (end < s->least[k]) {
                    s->second[k] = s->least[k];
                    s->least[k] = end;
                    s->holder[k] = list[n];
                } else if (end < s->second[k]) {
                    s->second[k] = end;
                }
            }
    }
}

/* Every section has room for its bodies, one above the other by the lowest they can get. */
static bool sections_suffice(search *s, const uint32_t *list, uint32_t count)
{
    for (uint32_t n = 0; n < count; n++) {
        uint32_t to = n;

        for (; to > 0 && s->lifted[s->queue[to - 1]] > s->lifted[list[n]]; to--)
            s->queue[to] = s->queue[to - 1];
        s->queue[to] = list[n];
    }
    memset(s->least, 0, s->section_count * sizeof(*s->least));
    for (uint32_t n = 0; n < count; n++) {
        const muc_body *body = &s->bodies->body[s->queue[n]];

        for (uint32_t i = body->pieces; i < body->pieces + body->piece_count; i++)
            for (uint32_t k = s->spans[i].first; k <= s->spans[i].last; k++) {
                uint64_t at = s->lifted[s->queue[n]] + s->spans[i].low;

                at = at > s->least[k] ? at : s->least[k];
                s->least[k] = at + s->spans[i].high - s->spans[i].low;
                if (s->least[k] > s->capacity) {
                    s->fails[k]++;
                    return false;
                }
            }
    }
    return true;
}

/* Computes low and lifted of the bodies in the list, sorts it by low, and finds the level. False if
 * they cannot all be placed. */
static bool infer(search *s, uint32_t *list, uint32_t count, uint64_t *level)
{
    bool closed = false;

    *level = UINT64_MAX;
    for (uint32_t n = 0; n < count; n++) {
        find_low(s, list[n]);
        s->lifted[list[n]] = s->low[list[n]];
        if (!is_open(s, list[n]))
            closed = true;
        else if (s->low[list[n]] < *level)
            *level = s->low[list[n]];
    }
    if (*level == UINT64_MAX)
        return false;
    for (uint32_t n = 0; n < count; n++)
        if (s->low[list[n]] + s->bodies->body[list[n]].height <= *level)
            return false;
    sort_list(s, list, count);
    if (closed && s->bodies->flat) {
        find_supports(s, list, count, *level);
        for (uint32_t n = 0; n < count; n++)
            if (!is_open(s, list[n])) {
                s->lifted[list[n]] = lowest_support(s, list[n]);
                if (s->lifted[list[n]] == UINT64_MAX)
                    return false;
            }
    }
    return sections_suffice(s, list, count);
}

static void place(search *s, uint32_t index, uint64_t at)
{
    muc_body *body = &s->bodies->body[index];

    body->at = at;
    s->is_placed[index] = true;
    for (uint32_t i = body->pieces; i < body->pieces + body->piece_count; i++)
        for (uint32_t k = s->spans[i].first; k <= s->spans[i].last; k++) {
            s->floor[k] = at + s->spans[i].high;
            s->rest[k] -= s->spans[i].high - s->spans[i].low;
        }
}

/* all but the floors */
static void unplace(search *s, uint32_t index)
{
    const muc_body *body = &s->bodies->body[index];

    s->is_placed[index] = false;
    for (uint32_t i = body->pieces; i < body->pieces + body->piece_count; i++)
        for (uint32_t k = s->spans[i].first; k <= s->spans[i].last; k++)
            s->rest[k] += s->spans[i].high - s->spans[i].low;
}

/* ---- the tree ---- */

static void *push(search *s, size_t count, size_t size)
{
    void *top = s->stack + s->stack_used;

    s->stack_used += (count * size + sizeof(*s->stack) - 1) / sizeof(*s->stack);
    return top;
}

static bool is_choice(const search *s, uint32_t body, uint64_t level)
{
    return s->low[body] == level && is_open(s, body) &&
           !(s->is_twin[body] && !s->is_placed[s->by_rank[s->rank[body] - 1]]);
}

/* A section that is too full unless a choice that lives there is placed at this level, of those the
 * one with few choices that was often too full; UINT32_MAX: there is none. */
static uint32_t find_needy(search *s, const uint32_t *list, uint32_t count, uint64_t level)
{
    uint32_t best = UINT32_MAX;

    find_supports(s, list, count, level);
    for (uint32_t n = 0; n < count; n++)
        if (is_choice(s, list[n], level))
            s->lifted[list[n]] = lowest_support(s, list[n]);
    memset(s->holder, 0, s->section_count * sizeof(*s->holder));
    for (uint32_t k = 0; k < s->section_count; k++)
        s->least[k] = UINT64_MAX;
    for (uint32_t n = 0; n < count; n++) {
        const muc_body *body = &s->bodies->body[list[n]];
        bool may_come = is_choice(s, list[n], level);

        for (uint32_t i = body->pieces; i < body->pieces + body->piece_count; i++)
            for (uint32_t k = s->spans[i].first; k <= s->spans[i].last; k++) {
                s->holder[k] += may_come;
                if (s->lifted[list[n]] < s->least[k])
                    s->least[k] = s->lifted[list[n]];
            }
    }
    for (uint32_t k = 0; k < s->section_count; k++)
        if (s->holder[k] > 0 &&
            (s->least[k] == UINT64_MAX || s->least[k] + s->rest[k] > s->capacity) &&
            (best == UINT32_MAX ||
             s->holder[k] * (1 + s->fails[best]) < s->holder[best] * (1 + s->fails[k])))
            best = k;
    return best;
}

static bool lives_in(const search *s, uint32_t index, uint32_t section)
{
    const muc_body *body = &s->bodies->body[index];

    for (uint32_t i = body->pieces; i < body->pieces + body->piece_count; i++)
        if (s->spans[i].first <= section && section <= s->spans[i].last)
            return true;
    return false;
}

static bool descend(search *s, uint32_t *list, uint32_t count);

/* Places one body after another of those that may come at this level, until the rest can be placed;
 * leaves those that could not be shut. */
static bool try_choices(search *s, const uint32_t *list, uint32_t count, uint64_t level,
                        uint32_t needy)
{
    size_t mark = s->stack_used;
    uint32_t *choices = push(s, count, sizeof(*choices));
    uint32_t *others = push(s, count, sizeof(*others));
    uint64_t *floors = push(s, s->section_count, sizeof(*floors));
    uint32_t found = 0;
    bool done = false;

    for (uint32_t n = 0; n < count; n++)
        if (is_choice(s, list[n], level) && (needy == UINT32_MAX || lives_in(s, list[n], needy)))
            choices[found++] = list[n];
    memcpy(floors, s->floor, s->section_count * sizeof(*floors));
    for (uint32_t i = 0; i < found && !done && !s->out_of_nodes; i++) {
        uint32_t left = 0;

        for (uint32_t n = 0; n < count; n++)
            if (list[n] != choices[i])
                others[left++] = list[n];
        place(s, choices[i], level);
        done = descend(s, others, left);
        if (!done) {
            unplace(s, choices[i]);
            memcpy(s->floor, floors, s->section_count * sizeof(*floors));
            s->shut[choices[i]] = level + 1;
        }
    }
    s->stack_used = mark;
    return done;
}

/* Numbers the groups of bodies without common steps; part: of each section, its group. */
static uint32_t find_parts(search *s, const uint32_t *list, uint32_t count, uint32_t *part)
{
    uint32_t parts = 0;

    /* least: whether a body begins there; second: how many reach from there into the next section,
     * at first as differences */
    memset(s->least, 0, s->section_count * sizeof(*s->least));
    memset(s->second, 0, s->section_count * sizeof(*s->second));
    for (uint32_t n = 0; n < count; n++) {
        const muc_body *body = &s->bodies->body[list[n]];

        s->least[s->spans[body->pieces].first] = 1;
        s->second[s->spans[body->pieces].first]++;
        s->second[s->spans[body->pieces + body->piece_count - 1].last]--;
    }
    for (uint32_t k = 0; k < s->section_count; k++) {
        bool inside = k > 0 && s->second[k - 1] > 0;

        parts += !inside && s->least[k];
        part[k] = parts - 1;
        s->second[k] += k > 0 ? s->second[k - 1] : 0;
    }
    return parts;
}

/* each part on its own; what was placed is undone if one of them fails */
static bool descend_parts(search *s, const uint32_t *list, uint32_t count, const uint32_t *part,
                          uint32_t parts)
{
    uint32_t *members = push(s, count, sizeof(*members));
    uint64_t *floors = push(s, s->section_count, sizeof(*floors));
    uint64_t *rests = push(s, s->section_count, sizeof(*rests));
    bool found = true;

    memcpy(floors, s->floor, s->section_count * sizeof(*floors));
    memcpy(rests, s->rest, s->section_count * sizeof(*rests));
    for (uint32_t p = 0; p < parts && found; p++) {
        uint32_t size = 0;

        for (uint32_t n = 0; n < count; n++)
            if (part[s->spans[s->bodies->body[list[n]].pieces].first] == p)
                members[size++] = list[n];
        found = descend(s, members, size);
    }
    if (!found) {
        memcpy(s->floor, floors, s->section_count * sizeof(*floors));
        memcpy(s->rest, rests, s->section_count * sizeof(*rests));
        for (uint32_t n = 0; n < count; n++)
            s->is_placed[list[n]] = false;
    }
    return found;
}

/* Places all bodies of the list. False: there is no way, or no nodes left. */
static bool descend(search *s, uint32_t *list, uint32_t count)
{
    size_t mark = s->stack_used;
    uint64_t *shut = push(s, count, sizeof(*shut)), level;
    uint32_t *part = push(s, s->section_count, sizeof(*part)),
             *members = push(s, count, sizeof(*members));
    bool done = count == 0;

    memcpy(members, list, count * sizeof(*members));
    for (uint32_t n = 0; n < count; n++)
        shut[n] = s->shut[list[n]];
    while (!done && !s->out_of_nodes) {
        uint32_t parts, needy;

        if (s->nodes == s->node_limit || s->work > s->work_limit) {
            s->out_of_nodes = true;
            break;
        }
        s->nodes++;
        if (!infer(s, list, count, &level))
            break;
        parts = find_parts(s, list, count, part);
        if (parts > 1) {
            done = descend_parts(s, list, count, part, parts);
            break;
        }
        needy = s->bodies->flat ? find_needy(s, list, count, level) : UINT32_MAX;
        done = try_choices(s, list, count, level, needy);
        if (needy != UINT32_MAX)
            break;
    }
    for (uint32_t n = 0; n < count; n++)
        s->shut[members[n]] = shut[n];
    s->stack_used = mark;
    return done;
}

/* ---- guesses ---- */

enum key { CONTENTION, DURATION, AREA, HEIGHT, FAILS, KEYS };

/* a body's score is the sum of the logarithms of its keys by weight, and of some noise */
typedef struct guess {
    uint32_t weights[KEYS], noise;
} guess;

typedef struct ranked {
    uint64_t score;
    uint32_t body;
} ranked;

static int by_score(const void *left, const void *right)
{
    const ranked *a = left, *b = right;

    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return a->body < b->body ? -1 : 1;
}

/* the binary logarithm in 1/256, straight between powers of two */
static uint64_t logarithm(uint64_t value)
{
    uint32_t power = 63;

    if (value == 0)
        return 0;
    while (!(value >> power & 1))
        power--;
    return 256 * power + (power > 8 ? value >> (power - 8) & 255 : value << (8 - power) & 255);
}

/* The first guess is by duration; the others are drawn. The contention of bodies differs little
 * where it matters, and where it failed before matters most, so these two weigh more. */
static guess draw(muc_chance *chance, uint32_t turn)
{
    guess next = { .weights = { [DURATION] = 1024, [AREA] = 1 } };

    if (turn == 0)
        return next;
    for (uint32_t i = 0; i < KEYS; i++)
        next.weights[i] = muc_choose(chance, 1024);
    next.weights[CONTENTION] *= 10;
    next.weights[FAILS] *= 16;
    next.noise = muc_choose(chance, 1024);
    return next;
}

static void find_keys(const search *s, uint32_t index, uint64_t keys[KEYS])
{
    const muc_body *body = &s->bodies->body[index];

    memset(keys, 0, KEYS * sizeof(*keys));
    keys[HEIGHT] = body->height;
    for (uint32_t i = body->pieces; i < body->pieces + body->piece_count; i++) {
        const span *run = &s->spans[i];

        keys[DURATION] += run->last - run->first + 1;
        keys[AREA] += (run->last - run->first + 1) * (run->high - run->low);
        for (uint32_t k = run->first; k <= run->last; k++) {
            keys[CONTENTION] = s->total[k] > keys[CONTENTION] ? s->total[k] : keys[CONTENTION];
            keys[FAILS] = s->fails[k] > keys[FAILS] ? s->fails[k] : keys[FAILS];
        }
    }
}

static bool are_twins(const search *s, uint32_t a, uint32_t b)
{
    const muc_body *first = &s->bodies->body[a], *second = &s->bodies->body[b];

    if (first->piece_count != second->piece_count)
        return false;
    for (uint32_t i = 0; i < first->piece_count; i++) {
        const span *p = &s->spans[first->pieces + i], *q = &s->spans[second->pieces + i];

        if (p->first != q->first || p->last != q->last || p->low != q->low || p->high != q->high)
            return false;
    }
    return true;
}

static void rank_by(search *s, const guess *by, ranked *ranking)
{
    uint32_t count = s->bodies->count;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t keys[KEYS];

        find_keys(s, i, keys);
        ranking[i] = (ranked){ .body = i };
        for (uint32_t k = 0; k < KEYS; k++)
            ranking[i].score += by->weights[k] * logarithm(keys[k]);
        if (by->noise)
            ranking[i].score += 256 * (uint64_t)muc_choose(&s->chance, by->noise);
    }
    qsort(ranking, count, sizeof(*ranking), by_score);
    for (uint32_t i = 0; i < count; i++) {
        s->by_rank[i] = ranking[i].body;
        s->rank[ranking[i].body] = i;
        s->is_twin[ranking[i].body] = i > 0 && are_twins(s, s->by_rank[i - 1], s->by_rank[i]);
    }
}

/* one guess, at most `limit` nodes */
static bool search_once(search *s, const guess *by, uint64_t limit, ranked *ranking, uint32_t *list)
{
    uint32_t count = s->bodies->count;

    rank_by(s, by, ranking);
    memset(s->floor, 0, s->section_count * sizeof(*s->floor));
    memcpy(s->rest, s->total, s->section_count * sizeof(*s->rest));
    memset(s->is_placed, 0, count * sizeof(*s->is_placed));
    memset(s->shut, 0, count * sizeof(*s->shut));
    memcpy(list, s->by_rank, count * sizeof(*list));
    s->out_of_nodes = false;
    s->node_limit = s->nodes + limit;
    return descend(s, list, count);
}

/* Luby's sequence 1 1 2 1 1 2 4 ...: its k-th element, from 1 on, is 2^(p-1) if k is 2^p - 1, else
 * the one of k less the largest 2^p - 1 below it */
static uint64_t luby(uint64_t k)
{
    for (;;) {
        uint64_t whole = 1;

        while (2 * whole + 1 <= k)
            whole = 2 * whole + 1;
        if (k == whole)
            return (whole + 1) / 2;
        k -= whole;
    }
}

/* Guess after guess. How long each is followed is Luby's sequence, which wastes little whatever the
 * right length is, and in the end is long enough for a proof. */
static muc_exact_result search_all(search *s, ranked *ranking, uint32_t *list)
{
    for (uint32_t turn = 0;; turn++) {
        guess next = draw(&s->chance, turn);
        uint64_t limit = UNIT * s->bodies->count * luby((uint64_t)turn + 1);

        if (search_once(s, &next, limit, ranking, list))
            return MUC_EXACT_FOUND;
        if (!s->out_of_nodes)
            return s->bodies->flat ? MUC_EXACT_NONE : MUC_EXACT_UNKNOWN;
        if (s->work > s->work_limit)
            return MUC_EXACT_UNKNOWN;
        for (uint32_t k = 0; k < s->section_count; k++)
            s->fails[k] -= s->fails[k] / 8;
    }
}

/* what all levels of the tree, and as many splits into parts, can remember at once */
static size_t stack_words(size_t count, size_t sections)
{
    size_t level = count + sections + 2 * count + count + 6; /* descend, try_choices */
    size_t split = count + 2 * sections + 3;

    return count * (level + sections + split);
}

static muc_status allocate(muc_context *ctx, search *s, ranked **ranking, uint32_t **list)
{
    size_t count = s->bodies->count, sections = s->section_count, pieces = s->bodies->piece_count;

    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", pieces, &s->spans));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", sections, &s->floor));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", sections, &s->rest));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", sections, &s->total));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", sections, &s->least));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", sections, &s->second));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", sections, &s->holder));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", sections, &s->fails));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, &s->shut));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, &s->low));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, &s->lifted));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, &s->queue));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, &s->rank));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, &s->by_rank));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, &s->is_twin));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, &s->is_placed));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", stack_words(count, sections), &s->stack));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, list));
    return MUC_NEW_ARRAY(ctx, "plan", count, ranking);
}

static void release(search *s)
{
    free(s->spans);
    free(s->floor);
    free(s->rest);
    free(s->total);
    free(s->least);
    free(s->second);
    free(s->holder);
    free(s->fails);
    free(s->shut);
    free(s->low);
    free(s->lifted);
    free(s->queue);
    free(s->rank);
    free(s->by_rank);
    free(s->is_twin);
    free(s->is_placed);
    free(s->stack);
}

muc_status muc_bodies_exact(muc_context *ctx, muc_bodies *bodies, uint64_t capacity,
                            uint64_t *budget, uint64_t *nodes, muc_exact_result *result)
{
    search s = { .bodies = bodies, .capacity = capacity, .chance = { 7 }, .work_limit = *budget };
    ranked *ranking = NULL;
    uint32_t *list = NULL;
    uint64_t *ends = NULL;
    muc_status status;

    *result = MUC_EXACT_UNKNOWN;
    if (bodies->count > MOST_BODIES || bodies->piece_count > 2 * MOST_BODIES)
        return MUC_OK;
    status = MUC_NEW_ARRAY(ctx, "plan", 2 * (size_t)bodies->piece_count, &ends);
    if (status == MUC_OK) {
        s.section_count = find_sections(bodies, ends);
        status = allocate(ctx, &s, &ranking, &list);
    }
    if (status == MUC_OK) {
        find_spans(&s, ends);
        *result = search_all(&s, ranking, list);
        *nodes += s.nodes;
        *budget -= s.work < *budget ? s.work : *budget;
    }
    free(ends);
    free(list);
    free(ranking);
    release(&s);
    return status;
}
