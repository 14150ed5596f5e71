/* rigid_bodies.c - groups buffers into rigid bodies, finds the bound, places by first fit. */
#include "plan/rigid_bodies.h"

#include <stdlib.h>
#include <string.h>

enum { OFFSET_BITS = 40 };

/* ---- groups ---- */

/* a buffer in its group: the group's first buffer stands for it */
typedef struct member {
    uint32_t root, index;
    int64_t offset; /* bytes from the root's address */
} member;

static muc_status check_buffer(muc_context *ctx, const muc_plan *plan, size_t i)
{
    const muc_plan_buffer *buffer = &plan->buffers[i];

    if (buffer->bytes > UINT64_MAX >> 24)
        return muc_fail(ctx, MUC_NOFIT, "plan", MUC_NO_OFFSET, "%s: '%s' of %llu bytes",
                        plan->arena, buffer->name, (unsigned long long)buffer->bytes);
    if (!buffer->persistent && buffer->first > buffer->last)
        return muc_fail(ctx, MUC_USAGE, "plan", MUC_NO_OFFSET, "%s: '%s' lives in steps %u..%u",
                        plan->arena, buffer->name, buffer->first, buffer->last);
    if (buffer->anchor > plan->count ||
        (buffer->anchor && (buffer->offset > (int64_t)1 << OFFSET_BITS ||
                            buffer->offset < -((int64_t)1 << OFFSET_BITS))))
        return muc_fail(ctx, MUC_USAGE, "plan", MUC_NO_OFFSET,
                        "%s: '%s' is anchored to buffer %u of %zu at %lld", plan->arena,
                        buffer->name, buffer->anchor, plan->count, (long long)buffer->offset);
    return MUC_OK;
}

/* follows the anchors of buffer i up to one that is resolved, then resolves those on the way */
static muc_status resolve(muc_context *ctx, const muc_plan *plan, member *members, uint32_t i)
{
    uint32_t at = i, length = 0, root;
    int64_t sum = 0;

    for (; members[at].root == UINT32_MAX && plan->buffers[at].anchor; length++) {
        if (length == plan->count)
            return muc_fail(ctx, MUC_USAGE, "plan", MUC_NO_OFFSET,
                            "%s: the anchors of '%s' form a circle", plan->arena,
                            plan->buffers[i].name);
        sum += plan->buffers[at].offset;
        at = plan->buffers[at].anchor - 1;
    }
    root = members[at].root == UINT32_MAX ? at : members[at].root;
    sum += members[at].root == UINT32_MAX ? 0 : members[at].offset;
    for (at = i; members[at].root == UINT32_MAX && plan->buffers[at].anchor;) {
        int64_t step = plan->buffers[at].offset;

        members[at].root = root;
        members[at].offset = sum;
        sum -= step;
        at = plan->buffers[at].anchor - 1;
    }
    if (members[at].root == UINT32_MAX)
        members[at].root = at;
    return MUC_OK;
}

static int by_root(const void *left, const void *right)
{
    const member *a = left, *b = right;

    if (a->root != b->root)
        return a->root < b->root ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

static uint64_t first_of(const muc_plan_buffer *buffer)
{
    return buffer->persistent ? 0 : buffer->first;
}

static uint64_t last_of(const muc_plan_buffer *buffer)
{
    return buffer->persistent ? UINT32_MAX : buffer->last;
}

/* the span of those members that live in a step; false if none does. `base` is the offset of the
 * body's lowest unit, a multiple of the alignment. */
static bool span_at(const muc_plan *plan, const member *members, size_t count, int64_t base,
                    uint64_t step, muc_piece *piece)
{
    uint64_t mask = plan->alignment - 1;
    bool lives = false;

    for (size_t i = 0; i < count; i++) {
        const muc_plan_buffer *buffer = &plan->buffers[members[i].index];
        uint64_t low = (uint64_t)(members[i].offset - base), high = low + buffer->bytes;

        if (buffer->bytes == 0 || step < first_of(buffer) || step > last_of(buffer))
            continue;
        low = low / plan->alignment;
        high = (high + mask) / plan->alignment;
        piece->low = lives && piece->low < low ? piece->low : low;
        piece->high = lives && piece->high > high ? piece->high : high;
        lives = true;
    }
    return lives;
}

/* appends a body made of the given members, if they take room; times has room for 2 * count */
static void add_body(const muc_plan *plan, const member *members, size_t count, uint64_t *times,
                     muc_bodies *out)
{
    int64_t base = INT64_MAX, unit = (int64_t)plan->alignment;
    muc_body body = { .pieces = out->piece_count };
    size_t time_count = 0;

    for (size_t i = 0; i < count; i++) {
        base = members[i].offset < base ? members[i].offset : base;
        times[time_count++] = first_of(&plan->buffers[members[i].index]);
        times[time_count++] = last_of(&plan->buffers[members[i].index]) + 1;
    }
    base -= (base % unit + unit) % unit;
    qsort(times, time_count, sizeof(*times), by_value);
    for (size_t i = 0; i + 1 < time_count; i++) {
        muc_piece piece = { .first = (uint32_t)times[i],
                            .last = (uint32_t)(times[i + 1] - 1),
                            .body = out->count };
        muc_piece *next = &out->pieces[out->piece_count];

        if (times[i] == times[i + 1] || !span_at(plan, members, count, base, times[i], &piece))
            continue;
        if (out->piece_count > body.pieces && next[-1].low == piece.low &&
            next[-1].high == piece.high && next[-1].last + 1 == piece.first) {
            next[-1].last = piece.last;
            continue;
        }
        *next = piece;
        out->piece_count++;
        body.height = piece.high > body.height ? piece.high : body.height;
        out->flat = out->flat && piece.low == 0;
    }
    body.piece_count = out->piece_count - body.pieces;
    for (size_t i = 0; i < count; i++) {
        out->body_of[members[i].index] = body.piece_count ? out->count : UINT32_MAX;
        out->offset_of[members[i].index] = (uint64_t)(members[i].offset - base);
    }
    if (body.piece_count)
        out->body[out->count++] = body;
}

static muc_status group(muc_context *ctx, const muc_plan *plan, member *members, uint64_t *times,
                        muc_bodies *out)
{
    size_t count = plan->count;

    for (uint32_t i = 0; i < count; i++)
        members[i] = (member){ .root = UINT32_MAX, .index = i };
    for (uint32_t i = 0; i < count; i++)
        MUC_TRY(check_buffer(ctx, plan, i));
    for (uint32_t i = 0; i < count; i++)
        MUC_TRY(resolve(ctx, plan, members, i));
    qsort(members, count, sizeof(*members), by_root);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && members[end].root == members[i].root;)
            end++;
        add_body(plan, members + i, end - i, times, out);
    }
    return MUC_OK;
}

/* ---- the bound ---- */

typedef struct event {
    uint64_t time; /* a piece's first step, or the one after its last */
    uint64_t up, down;
} event;

static int by_time(const void *left, const void *right)
{
    const event *a = left, *b = right;

    return a->time < b->time ? -1 : a->time > b->time;
}

static void find_bound(const muc_bodies *bodies, event *events, uint64_t *bound, uint32_t *step)
{
    size_t count = 2 * (size_t)bodies->piece_count;
    uint64_t live = 0;

    for (uint32_t i = 0; i < bodies->piece_count; i++) {
        const muc_piece *piece = &bodies->pieces[i];

        events[2 * i] = (event){ .time = piece->first, .up = piece->high - piece->low };
        events[2 * i + 1] =
            (event){ .time = (uint64_t)piece->last + 1, .down = piece->high - piece->low };
    }
    qsort(events, count, sizeof(*events), by_time);
    *bound = 0;
    *step = 0;
    for (size_t i = 0; i < count; i++) {
        live = live + events[i].up - events[i].down;
        if ((i + 1 == count || events[i + 1].time != events[i].time) && live > *bound) {
            *bound = live;
            *step = (uint32_t)events[i].time;
        }
    }
}

muc_status muc_bodies_build(muc_context *ctx, const muc_plan *plan, muc_bodies *out)
{
    member *members = NULL;
    uint64_t *times = NULL;
    event *events = NULL;
    muc_status status;

    *out = (muc_bodies){ .flat = true };
    status = MUC_NEW_ARRAY(ctx, "plan", plan->count, &out->body);
    if (status == MUC_OK) /* n lives have at most 2n ends, and one piece fewer between them */
        status = MUC_NEW_ARRAY(ctx, "plan", 2 * plan->count, &out->pieces);
    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(ctx, "plan", plan->count, &out->body_of);
    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(ctx, "plan", plan->count, &out->offset_of);
    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(ctx, "plan", plan->count, &members);
    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(ctx, "plan", 2 * plan->count, &times);
    if (status == MUC_OK)
        status = group(ctx, plan, members, times, out);
    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(ctx, "plan", 2 * (size_t)out->piece_count, &events);
    if (status == MUC_OK)
        find_bound(out, events, &out->bound, &out->full_step);
    free(members);
    free(times);
    free(events);
    return status;
}

void muc_bodies_free(muc_bodies *bodies)
{
    free(bodies->body);
    free(bodies->pieces);
    free(bodies->body_of);
    free(bodies->offset_of);
    *bodies = (muc_bodies){ 0 };
}

/* ---- first fit ---- */

static uint64_t bottom(const muc_bodies *bodies, uint32_t piece)
{
    return bodies->body[bodies->pieces[piece].body].at + bodies->pieces[piece].low;
}

/* The lowest place for a piece's body at or above `at`, as far as this piece is concerned. The
 * pieces placed before are sorted by their bottoms. */
static uint64_t lift(const muc_bodies *bodies, const muc_piece *piece, uint64_t at,
                     const uint32_t *placed, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const muc_piece *other = &bodies->pieces[placed[i]];
        uint64_t base = bodies->body[other->body].at;

        if (!muc_pieces_meet(piece, other))
            continue;
        if (at + piece->high <= base + other->low)
            break;
        if (at + piece->low < base + other->high)
            at = base + other->high - piece->low;
    }
    return at;
}

uint64_t muc_bodies_first_fit(muc_bodies *bodies, const uint32_t *order, uint64_t limit,
                              uint32_t *scratch)
{
    uint32_t placed = 0;
    uint64_t peak = 0;

    for (uint32_t i = 0; i < bodies->count; i++) {
        muc_body *body = &bodies->body[order[i]];
        uint64_t at = 0;

        for (uint32_t k = 0, settled = 0; settled < body->piece_count; k++) {
            const muc_piece *piece = &bodies->pieces[body->pieces + k % body->piece_count];
            uint64_t lifted = lift(bodies, piece, at, scratch, placed);

            settled = lifted == at ? settled + 1 : 1;
            at = lifted;
        }
        body->at = at;
        peak = at + body->height > peak ? at + body->height : peak;
        if (peak > limit)
            return UINT64_MAX;
        for (uint32_t k = 0; k < body->piece_count; k++) {
            uint32_t piece = body->pieces + k, to = placed++;
            uint64_t low = bottom(bodies, piece);

            for (; to > 0 && bottom(bodies, scratch[to - 1]) > low; to--)
                scratch[to] = scratch[to - 1];
            scratch[to] = piece;
        }
    }
    return peak;
}
