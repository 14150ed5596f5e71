/* order.c - searches for the order of nodes with the least peak, through sets of executed nodes.
 *
 * What lives after a set of nodes has run does not depend on the order in which they did, so the
 * sets are the points of a graph in which a way from the empty set to the full one is an order, and
 * its peak the largest of the bytes that live on the way. The search goes on from the set with the
 * least peak so far, and of these from the largest, which is Dijkstra's algorithm with the maximum
 * for the sum. Two rules keep the sets few: a node that can run without raising the peak, and
 * after which no more lives than before, runs at once; and a way whose peak is not below the best
 * order's known is given up. If the sets become too many all the same, a beam search follows, which
 * keeps some sets of each size only.
 */
#include "plan/order.h"

#include <stdlib.h>
#include <string.h>

#include "plan/order_model.h"

enum {
    MOST_NODES = 4096,     /* of a network that is searched */
    MOST_STATES = 100000,  /* of the exact search ... */
    STATE_BYTES = 1 << 26, /* ... and their sets' bytes */
    EXACT_WORK = 20000000, /* nodes looked at in the exact search */
    BEAM_WORK = 10000000,  /* the same for the beam */
    WIDEST_BEAM = 64,
};

typedef struct state {
    uint64_t peak, live; /* bytes: the most on the way here, and now */
    uint32_t parent;     /* a state; its own index: none */
    uint32_t node;       /* run last */
    uint32_t size;       /* nodes run */
} state;

typedef struct searcher {
    const muc_order_model *model;
    state *states;
    muc_node_set *sets; /* of each state */
    uint32_t count, limit;
    uint32_t *table; /* 1 + state by hash of its set */
    uint32_t table_size;
    uint32_t *heap; /* states to go on from, the best first */
    uint32_t heap_count;
    muc_node_set *set; /* scratch */
    uint32_t *kept;    /* scratch: WIDEST_BEAM states */
    uint64_t bound;    /* only peaks below are of interest */
    uint64_t work;     /* nodes looked at */
    uint32_t last;     /* result: the full set */
} searcher;

/* ---- a given order ---- */

/* the peak; muc_net_check knows that every node is ready in its turn */
static muc_status walk(muc_context *ctx, const muc_order_model *model, uint64_t *peak)
{
    muc_node_set *done = NULL;
    uint64_t live;

    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", model->words, &done));
    live = *peak = muc_order_start_bytes(model, done);
    for (uint32_t node = 0; node < model->net->node_count; node++) {
        uint64_t meanwhile;

        live = muc_order_run(model, done, live, node, &meanwhile);
        *peak = meanwhile > *peak ? meanwhile : *peak;
        done[node / 64] |= (uint64_t)1 << node % 64;
    }
    free(done);
    return MUC_OK;
}

/* ---- sets ---- */

static muc_node_set *set_of(const searcher *s, uint32_t index)
{
    return s->sets + (size_t)index * s->model->words;
}

static uint32_t hash(const searcher *s, const muc_node_set *set)
{
    uint64_t h = 0;

    for (uint32_t i = 0; i < s->model->words; i++)
        h = (h ^ set[i]) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return (uint32_t)(h >> 16) & (s->table_size - 1);
}

/* the place in the table of a set, or the empty one where it belongs */
static uint32_t *find(const searcher *s, const muc_node_set *set)
{
    uint32_t at = hash(s, set);

    while (s->table[at] &&
           memcmp(set_of(s, s->table[at] - 1), set, s->model->words * sizeof(*set)) != 0)
        at = (at + 1) & (s->table_size - 1);
    return &s->table[at];
}

static bool is_better(const state *a, const state *b)
{
    if (a->peak != b->peak)
        return a->peak < b->peak;
    if (a->size != b->size)
        return a->size > b->size;
    return a->live < b->live;
}

/* ties go to the one found first, so that the result is the same everywhere */
static bool comes_before(const searcher *s, uint32_t a, uint32_t b)
{
    if (is_better(&s->states[a], &s->states[b]))
        return true;
    return !is_better(&s->states[b], &s->states[a]) && a < b;
}

static void push(searcher *s, uint32_t index)
{
    uint32_t at = s->heap_count++;

    for (; at > 0 && comes_before(s, index, s->heap[(at - 1) / 2]); at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = index;
}

static uint32_t pop(searcher *s)
{
    uint32_t top = s->heap[0], last = s->heap[--s->heap_count], at = 0;

    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child + 1 < s->heap_count && comes_before(s, s->heap[child + 1], s->heap[child]))
            child++;
        if (child >= s->heap_count || !comes_before(s, s->heap[child], last))
            break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = last;
    return top;
}

/* Enters the set s->set, reached from `from` by running `node`; a worse way to it is forgotten. */
static void enter(searcher *s, uint32_t from, uint32_t node, uint64_t peak, uint64_t live)
{
    uint32_t *place = find(s, s->set);

    if (*place && s->states[*place - 1].peak <= peak)
        return;
    memcpy(set_of(s, s->count), s->set, s->model->words * sizeof(*s->set));
    s->states[s->count] = (state){
        .peak = peak, .live = live, .parent = from, .node = node, .size = s->states[from].size + 1
    };
    *place = ++s->count;
    push(s, s->count - 1);
}

/* ---- the exact search ---- */

typedef enum outcome {
    FOUND,   /* the full set, as the last state */
    NOTHING, /* no order is below the bound */
    TOO_MANY,
} outcome;

/* Runs, from a state, the first node that should run at once, else each that is ready. */
static void expand(searcher *s, uint32_t index)
{
    const muc_order_model *model = s->model;
    state from = s->states[index];

    s->work += model->net->node_count;
    memcpy(s->set, set_of(s, index), model->words * sizeof(*s->set));
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t node = 0; node < model->net->node_count; node++) {
            uint64_t peak, live;

            if (muc_set_has(s->set, node) || !muc_order_is_ready(model, s->set, node))
                continue;
            live = muc_order_run(model, s->set, from.live, node, &peak);
            if (pass == 0 && (peak > from.peak || live > from.live))
                continue;
            peak = peak > from.peak ? peak : from.peak;
            if (peak >= s->bound)
                continue;
            s->set[node / 64] |= (uint64_t)1 << node % 64;
            enter(s, index, node, peak, live);
            s->set[node / 64] &= ~((uint64_t)1 << node % 64);
            if (pass == 0)
                return;
        }
}

static outcome search(searcher *s, uint64_t start)
{
    s->states[0] = (state){ .peak = start, .live = start };
    s->count = 1;
    *find(s, set_of(s, 0)) = 1;
    push(s, 0);
    while (s->heap_count > 0) {
        uint32_t index = pop(s);

        if (*find(s, set_of(s, index)) != index + 1)
            continue; /* a better way to the set was found since */
        if (s->states[index].size == s->model->net->node_count) {
            s->last = index;
            return FOUND;
        }
        if (s->count + s->model->net->node_count > s->limit || s->work > EXACT_WORK)
            return TOO_MANY;
        expand(s, index);
    }
    return NOTHING;
}

/* ---- the beam ---- */

static int by_index(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

    return a < b ? -1 : a > b;
}

/* of the states from `first` on, moves the best to the front and forgets the others */
static void keep_best(searcher *s, uint32_t first, uint32_t width)
{
    uint32_t count = 0;

    while (s->heap_count > 0 && count < width) {
        uint32_t index = pop(s);

        if (*find(s, set_of(s, index)) == index + 1)
            s->kept[count++] = index;
    }
    qsort(s->kept, count, sizeof(*s->kept), by_index);
    for (uint32_t i = 0; i < count; i++) {
        s->states[first + i] = s->states[s->kept[i]];
        memmove(set_of(s, first + i), set_of(s, s->kept[i]), s->model->words * sizeof(*s->sets));
    }
    s->count = first + count;
}

/* From the sets of one size to those of the next, of which the best `width` stay. */
static outcome search_beam(searcher *s, uint64_t start, uint32_t width)
{
    s->states[0] = (state){ .peak = start, .live = start };
    memset(set_of(s, 0), 0, s->model->words * sizeof(*s->sets));
    s->count = 1;
    s->last = 0;
    for (uint32_t size = 0; size < s->model->net->node_count; size++) {
        uint32_t end = s->count;

        memset(s->table, 0, s->table_size * sizeof(*s->table));
        s->heap_count = 0;
        for (uint32_t i = s->last; i < end; i++)
            expand(s, i);
        if (s->heap_count == 0)
            return NOTHING;
        keep_best(s, end, width);
        s->last = end;
    }
    return FOUND;
}

/* ---- both ---- */

static muc_status allocate(muc_context *ctx, searcher *s)
{
    size_t words = s->model->words;

    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", s->limit, &s->states));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", s->limit * words, &s->sets));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", s->limit, &s->heap));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", s->table_size, &s->table));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", WIDEST_BEAM, &s->kept));
    return MUC_NEW_ARRAY(ctx, "plan", words, &s->set);
}

/* order: the given one if none better is found */
static void run(searcher *s, uint64_t start, uint32_t *order, muc_order *result)
{
    uint32_t count = s->model->net->node_count;
    uint32_t width = (uint32_t)(BEAM_WORK / ((uint64_t)count * count));
    outcome found = search(s, start);

    result->states = s->count;
    result->optimal = found != TOO_MANY;
    if (found == TOO_MANY) {
        width = width < 1 ? 1 : width > WIDEST_BEAM ? WIDEST_BEAM : width;
        found = search_beam(s, start, width);
    }
    if (found != FOUND)
        return;
    result->peak_bytes = s->states[s->last].peak;
    for (uint32_t at = s->last; s->states[at].size > 0; at = s->states[at].parent)
        order[s->states[at].size - 1] = s->states[at].node;
}

static muc_status find_order(muc_context *ctx, const muc_order_model *model, uint32_t *order,
                             muc_order *result)
{
    /* a beam's states, and a generation's children */
    uint64_t least = 2 * (uint64_t)model->net->node_count * WIDEST_BEAM + 1;
    uint64_t most = STATE_BYTES / (model->words * sizeof(muc_node_set));
    searcher s = { .model = model, .bound = result->given_bytes, .table_size = 1 };
    muc_status status;

    most = most < MOST_STATES ? most : MOST_STATES;
    s.limit = (uint32_t)(most > least ? most : least);
    while (s.table_size < 2 * s.limit)
        s.table_size *= 2;
    status = allocate(ctx, &s);
    if (status == MUC_OK)
        run(&s, muc_order_start_bytes(model, s.set), order, result);
    free(s.states);
    free(s.sets);
    free(s.heap);
    free(s.table);
    free(s.kept);
    free(s.set);
    return status;
}

muc_status muc_order_find(muc_context *ctx, const muc_net *net, uint32_t *order, muc_order *result)
{
    muc_order_model model = { 0 };
    muc_status status = muc_net_check(ctx, net);

    *result = (muc_order){ 0 };
    if (status == MUC_OK)
        status = muc_order_model_build(ctx, net, &model);
    if (status == MUC_OK)
        status = walk(ctx, &model, &result->given_bytes);
    for (uint32_t i = 0; i < net->node_count && status == MUC_OK; i++)
        order[i] = i;
    result->peak_bytes = result->given_bytes;
    result->optimal = net->node_count < 2;
    if (status == MUC_OK && net->node_count >= 2 && net->node_count <= MOST_NODES)
        status = find_order(ctx, &model, order, result);
    muc_order_model_free(&model);
    return status;
}
