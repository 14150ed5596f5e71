/* test_plan.c - placement of buffers: against the definition, and against every order there is. */
#include "check.h"
#include "chance.h"

#include "plan/place.h"

enum { MOST = 40, ALIGNMENT = 16 };

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static bool overlap(const muc_plan_buffer *a, const muc_plan_buffer *b)
{
    bool together = a->first <= b->last && b->first <= a->last;

    return together && a->bytes && b->bytes && a->address < b->address + b->bytes &&
           b->address < a->address + a->bytes;
}

static uint64_t bytes_at(const muc_plan *plan, uint32_t step)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < plan->count; i++)
        if (plan->buffers[i].first <= step && step <= plan->buffers[i].last)
            bytes += rounded(plan->buffers[i].bytes);
    return bytes;
}

static void check_plan(const muc_plan *plan, uint32_t steps)
{
    uint64_t peak = 0, bound = 0;

    for (size_t i = 0; i < plan->count; i++) {
        const muc_plan_buffer *a = &plan->buffers[i];

        CHECK_EQ(a->address % ALIGNMENT, 0);
        if (a->bytes && a->address + rounded(a->bytes) > peak)
            peak = a->address + rounded(a->bytes);
        for (size_t k = 0; k < i; k++)
            CHECK(!overlap(a, &plan->buffers[k]));
    }
    for (uint32_t step = 0; step < steps; step++)
        if (bytes_at(plan, step) > bound)
            bound = bytes_at(plan, step);
    CHECK_EQ(plan->peak, peak);
    CHECK_EQ(plan->live_bound, bound);
    CHECK_EQ(bytes_at(plan, plan->full_step), bound);
    CHECK(plan->peak >= plan->live_bound);
}

static void random_buffers(muc_plan_buffer *buffers, size_t count, uint32_t steps)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t a = random_u32() % steps, b = random_u32() % steps;

        buffers[i] = (muc_plan_buffer){ "b", random_u32() % 1000, a < b ? a : b, a < b ? b : a, 0 };
    }
}

static void no_two_buffers_that_live_together_overlap(void **state)
{
    muc_context *ctx = muc_context_new(1);
    double excess = 0;

    (void)state;
    for (uint32_t round = 0; round < 500; round++) {
        muc_plan_buffer buffers[MOST], again[MOST];
        uint32_t steps = 1 + random_u32() % 20;
        muc_plan plan = { .arena = "A", .capacity = 1 << 20, .alignment = ALIGNMENT };

        plan.count = 1 + random_u32() % MOST;
        plan.buffers = buffers;
        random_buffers(buffers, plan.count, steps);
        CHECK_OK(ctx, muc_plan_place(ctx, &plan));
        check_plan(&plan, steps);
        excess += (double)plan.peak / (double)(plan.live_bound ? plan.live_bound : 1) - 1;
        memcpy(again, buffers, sizeof(buffers));
        plan.buffers = again;
        CHECK_OK(ctx, muc_plan_place(ctx, &plan));
        assert_memory_equal(again, buffers, plan.count * sizeof(*buffers));
    }
    CHECK(excess / 500 < 0.03); /* of the bound, on the average */
    muc_context_free(ctx);
}

/* the least peak of first fit under any order, by trying them all */
static uint64_t least_peak(const muc_plan_buffer *buffers, size_t count, uint32_t placed,
                           uint64_t *addresses, uint64_t peak)
{
    uint64_t least = UINT64_MAX;

    if (placed + 1 == 1u << count)
        return peak;
    for (size_t i = 0; i < count; i++) {
        uint64_t address = 0, end, found;

        if (placed >> i & 1)
            continue;
        for (size_t k = 0; k < count; k++)
            if ((placed >> k & 1) && buffers[i].first <= buffers[k].last &&
                buffers[k].first <= buffers[i].last &&
                addresses[k] < address + rounded(buffers[i].bytes) &&
                address < addresses[k] + rounded(buffers[k].bytes)) {
                address = addresses[k] + rounded(buffers[k].bytes);
                k = (size_t)-1; /* look at all of them again */
            }
        addresses[i] = address;
        end = address + rounded(buffers[i].bytes);
        found = least_peak(buffers, count, placed | 1u << i, addresses, end > peak ? end : peak);
        least = found < least ? found : least;
    }
    return least;
}

static void it_is_close_to_the_best_of_all_orders(void **state)
{
    muc_context *ctx = muc_context_new(1);
    uint32_t best = 0;

    (void)state;
    for (uint32_t round = 0; round < 100; round++) {
        muc_plan_buffer buffers[6];
        uint64_t addresses[6], least;
        muc_plan plan = { "A", 1 << 20, ALIGNMENT, buffers, 6, 0, 0, 0 };

        random_buffers(buffers, 6, 6);
        least = least_peak(buffers, 6, 0, addresses, 0);
        CHECK_OK(ctx, muc_plan_place(ctx, &plan));
        CHECK(plan.peak >= least);
        best += plan.peak == least;
    }
    CHECK(best >= 90);
    muc_context_free(ctx);
}

static void what_does_not_fit_is_named(void **state)
{
    muc_context *ctx = muc_context_new(1);
    muc_plan_buffer buffers[] = { { "small", 100, 0, 3, 0 },
                                  { "large", 500, 2, 3, 0 },
                                  { "elsewhere", 600, 0, 1, 0 } };
    muc_plan plan = { "GB", 640, ALIGNMENT, buffers, 3, 0, 0, 0 };
    muc_text text = { 0 };

    (void)state;
    CHECK_OK(ctx, muc_plan_place(ctx, &plan));
    CHECK_EQ(plan.peak, 112 + 608);
    CHECK_FAILS(
        ctx, MUC_NOFIT,
        "GB needs 720 bytes, 80 more than it has; the largest that lives when it is fullest "
        "is 'elsewhere' with 600",
        muc_plan_check(ctx, &plan));
    muc_plan_print(&plan, &text);
    assert_non_null(strstr(text.data, "peak 720 of 640 bytes; no placement needs fewer than 720"));
    plan.capacity = 720;
    CHECK_OK(ctx, muc_plan_check(ctx, &plan));
    plan.count = 1 << 20;
    CHECK_FAILS(ctx, MUC_NOFIT, "1048576 buffers", muc_plan_place(ctx, &plan));
    muc_text_free(&text);
    muc_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_two_buffers_that_live_together_overlap),
        cmocka_unit_test(it_is_close_to_the_best_of_all_orders),
        cmocka_unit_test(what_does_not_fit_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
