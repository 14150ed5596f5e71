/* place_exact.c - a search through all left-justified placements.
 *
 * After Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
 * Learning" (ASPLOS 2023). If a placement fits, so does one in which no body can be moved down
 * alone, because moving down never harms; only those are searched. In such a placement every body
 * rests on the ground or on another, so placing bodies by rising address, each as low as those
 * before it allow, reaches all of them. Four rules prune:
 *
 *  sections   In each section of time (a maximal set of bodies that live together) the bodies not
 *             yet placed must fit below the capacity, none below the lowest address that it can
 *             still have.
 *  support    A body below the address that the search has reached can only come to rest on a body
 *             that is not placed yet.
 *  dominance  A body is not placed above the place that another one, not placed yet, could fill.
 *  parts      Bodies left over that fall into groups without common steps are searched apart.
 *
 * Which of several bodies to try first is a guess; several are tried in turn, each for a number of
 * nodes that doubles from round to round. Nodes, not seconds, bound the search.
 */
#include "plan/bodies.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_BODIES = 1024,
    FIRST_ROUND = 2000, /* nodes for each guess, in the first round */
};

/* sections in which a body occupies the same units */
typedef struct span {
    uint32_t first, last;
    uint64_t low, high;
} span;

/* a body and an address for it */
typedef struct choice {
    uint64_t at;
    uint32_t rank, body;
} choice;

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
    uint64_t *low;     /* of each body not placed: the lowest address it could have now */
    choice *queue;     /* scratch */
    uint64_t *lifted;  /* of each body not placed: the lowest it can still get */
    uint32_t *rank;    /* of each body: its turn among those with equal addresses */
    uint32_t *by_rank; /* the bodies in that order */
    bool *is_twin;     /* of each body: like the one ranked before it */
    bool *is_placed;   /* of each body */
    uint64_t *stack;   /* what the nodes on the way down remember */
    size_t stack_used;
    uint64_t nodes, node_limit;
    bool out_of_nodes;
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

static int by_address(const void *left, const void *right)
{
    const choice *a = left, *b = right;

    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->rank < b->rank ? -1 : 1;
}

static bool is_open(const search *s, uint32_t body, uint64_t reached, uint32_t rank)
{
    return s->low[body] > reached || (s->low[body] == reached && s->rank[body] >= rank);
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

static void find_supports(search *s, const uint32_t *list, uint32_t count, uint64_t reached)
{
    for (uint32_t k = 0; k < s->section_count; k++)
        s->least[k] = s->second[k] = UINT64_MAX;
    for (uint32_t n = 0; n < count; n++) {
        const muc_body *body = &s->bodies->body[list[n]];
        uint64_t at = s->low[list[n]] > reached ? s->low[list[n]] : reached;

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
    for (uint32_t n = 0; n < count; n++)
        s->queue[n] = (choice){ s->lifted[list[n]], s->rank[list[n]], list[n] };
    qsort(s->queue, count, sizeof(*s->queue), by_address);
    memset(s->least, 0, s->section_count * sizeof(*s->least));
    for (uint32_t n = 0; n < count; n++) {
        const muc_body *body = &s->bodies->body[s->queue[n].body];

        for (uint32_t i = body->pieces; i < body->pieces + body->piece_count; i++)
            for (uint32_t k = s->spans[i].first; k <= s->spans[i].last; k++) {
                uint64_t at = s->queue[n].at + s->spans[i].low;

                at = at > s->least[k] ? at : s->least[k];
                s->least[k] = at + s->spans[i].high - s->spans[i].low;
                if (s->least[k] > s->capacity)
                    return false;
            }
    }
    return true;
}

/* Computes low and lifted of the bodies in the list. False if they cannot all be placed. */
static bool infer(search *s, const uint32_t *list, uint32_t count, uint64_t reached, uint32_t rank)
{
    bool closed = false;

    for (uint32_t n = 0; n < count; n++) {
        find_low(s, list[n]);
        s->lifted[list[n]] = s->low[list[n]];
        closed = closed || !is_open(s, list[n], reached, rank);
    }
    if (closed) {
        find_supports(s, list, count, reached);
        for (uint32_t n = 0; n < count; n++)
            if (!is_open(s, list[n], reached, rank)) {
                uint64_t lifted = s->bodies->flat ? lowest_support(s, list[n]) : reached;

                if (lifted == UINT64_MAX)
                    return false;
                s->lifted[list[n]] = lifted;
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

/* Bodies that may come next, lowest first: open, and not above a hole that another would fill. */
static uint32_t find_choices(const search *s, const uint32_t *list, uint32_t count,
                             uint64_t reached, uint32_t rank, choice *choices)
{
    uint64_t ceiling = UINT64_MAX;
    uint32_t found = 0;

    for (uint32_t n = 0; n < count; n++) {
        uint64_t end = s->low[list[n]] + s->bodies->body[list[n]].height;

        ceiling = end < ceiling ? end : ceiling;
    }
    for (uint32_t n = 0; n < count; n++) {
        uint32_t body = list[n], turn = s->rank[body];

        if (s->low[body] >= ceiling || !is_open(s, body, reached, rank) ||
            (s->is_twin[body] && !s->is_placed[s->by_rank[turn - 1]]))
            continue;
        choices[found++] = (choice){ s->low[body], turn, body };
    }
    qsort(choices, found, sizeof(*choices), by_address);
    return found;
}

static bool descend(search *s, const uint32_t *list, uint32_t count, uint64_t reached,
                    uint32_t rank);

/* tries every body that may come next; a list without parts */
static bool branch(search *s, const uint32_t *list, uint32_t count, uint64_t reached, uint32_t rank)
{
    size_t mark = s->stack_used;
    choice *choices = push(s, count, sizeof(*choices));
    uint32_t *others = push(s, count, sizeof(*others));
    uint64_t *floors = push(s, s->section_count, sizeof(*floors));
    uint32_t choice_count = find_choices(s, list, count, reached, rank, choices);
    bool found = false;

    for (uint32_t i = 0; i < choice_count && !found && !s->out_of_nodes; i++) {
        const choice *next = &choices[i];
        uint32_t left = 0;

        for (uint32_t n = 0; n < count; n++)
            if (list[n] != next->body)
                others[left++] = list[n];
        memcpy(floors, s->floor, s->section_count * sizeof(*floors));
        place(s, next->body, next->at);
        found = descend(s, others, left, next->at, next->rank + 1);
        if (!found) {
            unplace(s, next->body);
            memcpy(s->floor, floors, s->section_count * sizeof(*floors));
        }
    }
    s->stack_used = mark;
    return found;
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
static bool descend_parts(search *s, const uint32_t *list, uint32_t count, uint64_t reached,
                          uint32_t rank, const uint32_t *part, uint32_t parts)
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
        found = descend(s, members, size, reached, rank);
    }
    if (!found) {
        memcpy(s->floor, floors, s->section_count * sizeof(*floors));
        memcpy(s->rest, rests, s->section_count * sizeof(*rests));
        for (uint32_t n = 0; n < count; n++)
            s->is_placed[list[n]] = false;
    }
    return found;
}

/* Places all bodies of the list at or above `reached`. False: there is no way, or no nodes left. */
static bool descend(search *s, const uint32_t *list, uint32_t count, uint64_t reached,
                    uint32_t rank)
{
    size_t mark = s->stack_used;
    uint32_t *part, parts;
    bool found;

    if (count == 0)
        return true;
    if (s->nodes == s->node_limit) {
        s->out_of_nodes = true;
        return false;
    }
    s->nodes++;
    if (!infer(s, list, count, reached, rank))
        return false;
    part = push(s, s->section_count, sizeof(*part));
    parts = find_parts(s, list, count, part);
    if (parts > 1) {
        found = descend_parts(s, list, count, reached, rank, part, parts);
    } else {
        s->stack_used = mark;
        found = branch(s, list, count, reached, rank);
    }
    s->stack_used = mark;
    return found;
}

/* ---- guesses ---- */

enum key { CONTENTION, DURATION, AREA, HEIGHT, KEYS };

/* what to put first among bodies of equal address: larger of the first key, then of the next */
static const enum key guesses[][3] = {
    { DURATION, CONTENTION, AREA },   { CONTENTION, DURATION, AREA },
    { AREA, CONTENTION, DURATION },   { CONTENTION, AREA, DURATION },
    { HEIGHT, DURATION, CONTENTION },
};

typedef struct ranked {
    uint64_t keys[KEYS];
    const enum key *guess;
    uint32_t body;
} ranked;

static int by_keys(const void *left, const void *right)
{
    const ranked *a = left, *b = right;

    for (int i = 0; i < 3; i++) {
        enum key key = a->guess[i];

        if (a->keys[key] != b->keys[key])
            return a->keys[key] > b->keys[key] ? -1 : 1;
    }
    return a->body < b->body ? -1 : 1;
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
        for (uint32_t k = run->first; k <= run->last; k++)
            keys[CONTENTION] = s->total[k] > keys[CONTENTION] ? s->total[k] : keys[CONTENTION];
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

static void rank_by(search *s, const enum key *guess, ranked *ranking)
{
    uint32_t count = s->bodies->count;

    for (uint32_t i = 0; i < count; i++) {
        ranking[i].guess = guess;
        ranking[i].body = i;
        find_keys(s, i, ranking[i].keys);
    }
    qsort(ranking, count, sizeof(*ranking), by_keys);
    for (uint32_t i = 0; i < count; i++) {
        s->by_rank[i] = ranking[i].body;
        s->rank[ranking[i].body] = i;
        s->is_twin[ranking[i].body] = i > 0 && are_twins(s, s->by_rank[i - 1], s->by_rank[i]);
    }
}

/* one guess, at most `round` nodes */
static bool search_once(search *s, const enum key *guess, uint64_t round, ranked *ranking,
                        uint32_t *list)
{
    uint32_t count = s->bodies->count;

    rank_by(s, guess, ranking);
    memset(s->floor, 0, s->section_count * sizeof(*s->floor));
    memcpy(s->rest, s->total, s->section_count * sizeof(*s->rest));
    memset(s->is_placed, 0, count * sizeof(*s->is_placed));
    memcpy(list, s->by_rank, count * sizeof(*list));
    s->out_of_nodes = false;
    s->node_limit = s->nodes + round;
    return descend(s, list, count, 0, 0);
}

/* rounds over the guesses, each with twice the nodes of the one before, until one ends */
static muc_exact_result search_all(search *s, uint64_t budget, ranked *ranking, uint32_t *list)
{
    for (uint64_t round = FIRST_ROUND;; round *= 2)
        for (size_t g = 0; g < MUC_COUNT(guesses); g++) {
            uint64_t left = budget - s->nodes;

            if (search_once(s, guesses[g], left < round ? left : round, ranking, list))
                return MUC_EXACT_FOUND;
            if (!s->out_of_nodes)
                return s->bodies->flat ? MUC_EXACT_NONE : MUC_EXACT_UNKNOWN;
            if (s->nodes >= budget)
                return MUC_EXACT_UNKNOWN;
        }
}

/* what all levels of the tree, and as many splits into parts, can remember at once */
static size_t stack_words(size_t count, size_t sections)
{
    size_t branches = count * (3 * (count + 1) / 2 + 1) + count * (sections + 3);
    size_t splits = count * (count / 2 + 2) + count * (5 * sections / 2 + 4);

    return branches + splits;
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
                            uint64_t budget, uint64_t *nodes, muc_exact_result *result)
{
    search s = { .bodies = bodies, .capacity = capacity };
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
        *result = search_all(&s, budget, ranking, list);
        *nodes += s.nodes;
    }
    free(ends);
    free(list);
    free(ranking);
    release(&s);
    return status;
}
