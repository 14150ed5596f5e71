/* place.c - greedy placement under several orders.
 *
 * Each buffer in turn goes to the lowest address where nothing placed before it lives at the same
 * time. Which order is best depends on the shapes, so a few are tried: by size, by lifetime, by the
 * product of both, by birth.
 */
#include "plan/place.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BUFFERS = 65536 };

typedef struct candidate {
    uint64_t keys[2]; /* larger first */
    size_t index;
} candidate;

typedef void order_fn(const muc_plan_buffer *buffer, uint64_t keys[2]);

static uint64_t steps_of(const muc_plan_buffer *buffer)
{
    return (uint64_t)buffer->last - buffer->first + 1;
}

static void by_size(const muc_plan_buffer *buffer, uint64_t keys[2])
{
    keys[0] = buffer->bytes;
    keys[1] = steps_of(buffer);
}

static void by_lifetime(const muc_plan_buffer *buffer, uint64_t keys[2])
{
    keys[0] = steps_of(buffer);
    keys[1] = buffer->bytes;
}

static void by_area(const muc_plan_buffer *buffer, uint64_t keys[2])
{
    /* saturates where it has no meaning any more */
    if (!muc_mul_u64(buffer->bytes, steps_of(buffer), &keys[0]))
        keys[0] = UINT64_MAX;
    keys[1] = buffer->bytes;
}

static void by_birth(const muc_plan_buffer *buffer, uint64_t keys[2])
{
    keys[0] = UINT32_MAX - (uint64_t)buffer->first;
    keys[1] = buffer->bytes;
}

static order_fn *const orders[] = { by_size, by_lifetime, by_area, by_birth };

static int compare(const void *left, const void *right)
{
    const candidate *a = left, *b = right;

    for (int i = 0; i < 2; i++)
        if (a->keys[i] != b->keys[i])
            return a->keys[i] > b->keys[i] ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

static bool meet(const muc_plan_buffer *a, const muc_plan_buffer *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static uint64_t rounded(const muc_plan *plan, uint64_t bytes)
{
    return (bytes + plan->alignment - 1) & ~(plan->alignment - 1);
}

/* the lowest address for a buffer beside those placed before it, which are sorted by address */
static uint64_t lowest(const muc_plan *plan, const muc_plan_buffer *buffer, const size_t *placed,
                       size_t count)
{
    uint64_t address = 0;

    for (size_t i = 0; i < count; i++) {
        const muc_plan_buffer *other = &plan->buffers[placed[i]];

        if (!meet(buffer, other))
            continue;
        if (address + rounded(plan, buffer->bytes) <= other->address)
            break;
        if (other->address + rounded(plan, other->bytes) > address)
            address = other->address + rounded(plan, other->bytes);
    }
    return address;
}

/* places in the given order; returns the peak */
static uint64_t place_in_order(muc_plan *plan, const candidate *order, size_t *placed)
{
    uint64_t peak = 0;

    for (size_t i = 0; i < plan->count; i++) {
        muc_plan_buffer *buffer = &plan->buffers[order[i].index];
        size_t at = i;

        buffer->address = lowest(plan, buffer, placed, i);
        for (; at > 0 && plan->buffers[placed[at - 1]].address > buffer->address; at--)
            placed[at] = placed[at - 1];
        placed[at] = order[i].index;
        if (buffer->bytes && buffer->address + rounded(plan, buffer->bytes) > peak)
            peak = buffer->address + rounded(plan, buffer->bytes);
    }
    return peak;
}

static uint64_t live_at(const muc_plan *plan, uint32_t step)
{
    uint64_t live = 0;

    for (size_t i = 0; i < plan->count; i++)
        if (plan->buffers[i].first <= step && step <= plan->buffers[i].last)
            live += rounded(plan, plan->buffers[i].bytes);
    return live;
}

/* the fullest step is one in which some buffer is born */
static void find_bound(muc_plan *plan)
{
    plan->live_bound = 0;
    plan->full_step = 0;
    for (size_t i = 0; i < plan->count; i++) {
        uint32_t step = plan->buffers[i].first;
        uint64_t live = live_at(plan, step);

        if (live > plan->live_bound || (live == plan->live_bound && step < plan->full_step)) {
            plan->live_bound = live;
            plan->full_step = step;
        }
    }
}

static void sort_by(const muc_plan *plan, order_fn *keys, candidate *order)
{
    for (size_t i = 0; i < plan->count; i++) {
        keys(&plan->buffers[i], order[i].keys);
        order[i].index = i;
    }
    qsort(order, plan->count, sizeof(*order), compare);
}

muc_status muc_plan_place(muc_context *ctx, muc_plan *plan)
{
    candidate *order = NULL;
    size_t *placed = NULL, best = 0;
    muc_status status;

    if (plan->count > MAX_BUFFERS)
        return muc_fail(ctx, MUC_NOFIT, "plan", MUC_NO_OFFSET, "%s: %zu buffers, at most %u",
                        plan->arena, plan->count, (unsigned)MAX_BUFFERS);
    for (size_t i = 0; i < plan->count; i++)
        if (plan->buffers[i].bytes > UINT64_MAX >> 24)
            return muc_fail(ctx, MUC_NOFIT, "plan", MUC_NO_OFFSET, "%s: '%s' of %llu bytes",
                            plan->arena, plan->buffers[i].name,
                            (unsigned long long)plan->buffers[i].bytes);
    find_bound(plan);
    status = MUC_NEW_ARRAY(ctx, "plan", plan->count, &order);
    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(ctx, "plan", plan->count, &placed);
    if (status == MUC_OK) {
        plan->peak = UINT64_MAX;
        for (size_t i = 0; i < MUC_COUNT(orders); i++) {
            uint64_t peak;

            sort_by(plan, orders[i], order);
            peak = place_in_order(plan, order, placed);
            if (peak < plan->peak) {
                plan->peak = peak;
                best = i;
            }
        }
        sort_by(plan, orders[best], order);
        place_in_order(plan, order, placed);
    }
    free(order);
    free(placed);
    return status;
}

muc_status muc_plan_check(muc_context *ctx, const muc_plan *plan)
{
    const muc_plan_buffer *largest = NULL;

    if (plan->peak <= plan->capacity)
        return MUC_OK;
    for (size_t i = 0; i < plan->count; i++) {
        const muc_plan_buffer *buffer = &plan->buffers[i];

        if (buffer->first <= plan->full_step && plan->full_step <= buffer->last &&
            (!largest || buffer->bytes > largest->bytes))
            largest = buffer;
    }
    return muc_fail(ctx, MUC_NOFIT, "plan", MUC_NO_OFFSET,
                    "%s needs %llu bytes, %llu more than it has; the largest that lives when it is "
                    "fullest is '%s' with %llu",
                    plan->arena, (unsigned long long)plan->peak,
                    (unsigned long long)(plan->peak - plan->capacity),
                    largest ? largest->name : "-",
                    (unsigned long long)(largest ? largest->bytes : 0));
}

void muc_plan_print(const muc_plan *plan, muc_text *text)
{
    for (size_t i = 0; i < plan->count; i++) {
        const muc_plan_buffer *buffer = &plan->buffers[i];

        muc_text_add(text, "%-8s %-8s %8llu bytes at %8llu, steps %u..%u\n", plan->arena,
                     buffer->name, (unsigned long long)buffer->bytes,
                     (unsigned long long)buffer->address, buffer->first, buffer->last);
    }
    muc_text_add(text, "%-8s peak %llu of %llu bytes; no placement needs fewer than %llu\n",
                 plan->arena, (unsigned long long)plan->peak, (unsigned long long)plan->capacity,
                 (unsigned long long)plan->live_bound);
}
