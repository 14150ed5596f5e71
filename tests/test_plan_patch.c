/* test_plan_patch.c - patches: random chains run whole and by patches, on numbers. */
#include "check.h"

#include <math.h>

#include "chance.h"

#include "plan/plan_patches.h"

enum { STAGES = 5, SIDE = 24 };

typedef struct grid {
    int64_t at[SIDE][SIDE];
} grid;

/* ---- random chains ---- */

static muc_patch_window random_window(uint32_t in)
{
    muc_patch_window w = { .kernel = 1 + random_u32() % 4,
                           .stride = 1 + random_u32() % 3,
                           .dilation = 1 + random_u32() % 2,
                           .in = in };
    uint32_t reach = (w.kernel - 1) * w.dilation, after;

    w.pad = random_u32() % (reach + 1);
    after = random_u32() % (reach + 1);
    while (in + w.pad + after <= reach)
        after++;
    w.out = (in + w.pad + after - reach - 1) / w.stride + 1;
    if (w.out > SIDE)
        w.out = SIDE;
    return w;
}

static void random_chain(muc_patch_stage *stages, uint32_t count)
{
    uint32_t rows = 6 + random_u32() % 16, columns = 6 + random_u32() % 16;
    uint64_t unit = 1 + random_u32() % 8;

    for (uint32_t i = 0; i < count; i++) {
        muc_patch_stage *s = &stages[i];

        *s = (muc_patch_stage){ .name = "s",
                                .rows = random_window(rows),
                                .columns = random_window(columns),
                                .in_unit_bytes = unit,
                                .out_unit_bytes = 1 + random_u32() % 8,
                                .unit_macs = 1 + random_u32() % 100,
                                .in_place = random_u32() % 2,
                                .scratch_bytes = random_u32() % 50 };
        if (random_u32() % 3 == 0) { /* one that keeps the size, so that short cuts can be */
            s->rows = (muc_patch_window){ 3, 1, 1, 1, rows, rows };
            s->columns = (muc_patch_window){ 3, 1, 1, 1, columns, columns };
        }
        for (uint32_t t = 0; t <= i; t++)
            if (stages[t].rows.in == s->rows.out && stages[t].columns.in == s->columns.out &&
                random_u32() % 2)
                s->also_reads = t + 1;
        rows = s->rows.out;
        columns = s->columns.out;
        unit = s->out_unit_bytes;
    }
}

/* ---- running them ---- */

/* of a tensor, which elements one may read */
typedef struct box {
    uint32_t top, bottom, left, right;
} box;

static const box everything = { 0, SIDE, 0, SIDE };

static bool lies_in(box b, uint32_t r, uint32_t c)
{
    return r >= b.top && r < b.bottom && c >= b.left && c < b.right;
}

static int64_t element(const muc_patch_stage *s, const grid *in, box readable, uint32_t r,
                       uint32_t c)
{
    int64_t sum = 7;

    for (uint32_t i = 0; i < s->rows.kernel; i++)
        for (uint32_t k = 0; k < s->columns.kernel; k++) {
            int64_t row = (int64_t)(r * s->rows.stride + i * s->rows.dilation) - s->rows.pad;
            int64_t column =
                (int64_t)(c * s->columns.stride + k * s->columns.dilation) - s->columns.pad;

            if (row < 0 || row >= s->rows.in || column < 0 || column >= s->columns.in)
                continue;
            CHECK(lies_in(readable, (uint32_t)row, (uint32_t)column));
            sum += (int64_t)(3 * i + 5 * k + 1) * in->at[row][column];
        }
    return sum % 1000003;
}

/* the elements of a stage's result that lie in `wanted`; returns how many */
static uint64_t run_stage(const muc_patch_stage *stages, uint32_t i, grid *tensors,
                          const box *readable, box wanted)
{
    const muc_patch_stage *s = &stages[i];
    uint64_t count = 0;

    for (uint32_t r = wanted.top; r < wanted.bottom; r++)
        for (uint32_t c = wanted.left; c < wanted.right; c++) {
            int64_t value = element(s, &tensors[i], readable[i], r, c);

            if (s->also_reads) {
                CHECK(lies_in(readable[s->also_reads - 1], r, c));
                value += tensors[s->also_reads - 1].at[r][c];
            }
            tensors[i + 1].at[r][c] = value;
            count++;
        }
    return count;
}

static box box_of(const muc_patch_plan *plan, uint32_t row, uint32_t column, uint32_t tensor)
{
    muc_patch_range r = plan->rows[row * (plan->stages + 1) + tensor].range;
    muc_patch_range c = plan->columns[column * (plan->stages + 1) + tensor].range;

    return (box){ r.first, r.last, c.first, c.last };
}

/* Runs by patches in tensors that are poisoned before each, all but the input and the last, and
 * counts the multiply-accumulates. */
static uint64_t run_patches(const muc_patch_stage *stages, const muc_patch_plan *plan,
                            grid *tensors)
{
    uint64_t macs = 0;

    for (uint32_t r = 0; r < plan->grid_rows; r++)
        for (uint32_t c = 0; c < plan->grid_columns; c++) {
            box readable[STAGES + 1];

            for (uint32_t t = 0; t <= plan->stages; t++) {
                readable[t] = box_of(plan, r, c, t);
                if (t > 0 && t < plan->stages)
                    memset(&tensors[t], 0x5a, sizeof(tensors[t]));
            }
            for (uint32_t i = 0; i < plan->stages; i++)
                macs +=
                    run_stage(stages, i, tensors, readable, readable[i + 1]) * stages[i].unit_macs;
        }
    return macs;
}

/* ---- bytes by another road: a list of what lives ---- */

static uint64_t size_of(box b, uint64_t unit)
{
    return (uint64_t)(b.bottom - b.top) * (b.right - b.left) * unit;
}

static uint64_t unit_of(const muc_patch_stage *stages, uint32_t tensor)
{
    return tensor ? stages[tensor - 1].out_unit_bytes : stages[0].in_unit_bytes;
}

static bool is_read_from(const muc_patch_stage *stages, uint32_t count, uint32_t stage,
                         uint32_t tensor)
{
    for (uint32_t i = stage; i < count; i++)
        if (i == tensor || stages[i].also_reads == tensor + 1)
            return true;
    return false;
}

static uint64_t bytes_of_patch(const muc_patch_stage *stages, const muc_patch_plan *plan,
                               uint32_t r, uint32_t c)
{
    uint32_t n = plan->stages;
    uint64_t most = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t live = stages[i].scratch_bytes, in = 0, out = 0;

        for (uint32_t t = 1; t <= i && t < n; t++)
            if (is_read_from(stages, n, i, t))
                live += size_of(box_of(plan, r, c, t), unit_of(stages, t));
        if (i > 0)
            in = size_of(box_of(plan, r, c, i), unit_of(stages, i));
        if (i + 1 < n)
            out = size_of(box_of(plan, r, c, i + 1), unit_of(stages, i + 1));
        if (i > 0 && i + 1 < n && stages[i].in_place && !is_read_from(stages, n, i + 1, i))
            out = out > in ? out - in : 0;
        most = live + out > most ? live + out : most;
    }
    return most;
}

static uint64_t bytes_of_patches(const muc_patch_stage *stages, const muc_patch_plan *plan,
                                 uint64_t input_bytes)
{
    const muc_patch_stage *last = &stages[plan->stages - 1];
    uint64_t most = 0;

    for (uint32_t r = 0; r < plan->grid_rows; r++)
        for (uint32_t c = 0; c < plan->grid_columns; c++) {
            uint64_t bytes = bytes_of_patch(stages, plan, r, c);

            most = bytes > most ? bytes : most;
        }
    return input_bytes + most + (uint64_t)last->rows.out * last->columns.out * last->out_unit_bytes;
}

/* no range is wider than what is read: its ends are */
static void check_tight(const muc_patch_stage *stages, const muc_patch_plan *plan, bool rows)
{
    uint32_t n = plan->stages, patches = rows ? plan->grid_rows : plan->grid_columns;

    for (uint32_t p = 0; p < patches; p++) {
        const muc_patch_part *part = (rows ? plan->rows : plan->columns) + p * (n + 1);
        bool needed[STAGES + 1][SIDE] = { { false } };

        for (uint32_t e = part[n].range.first; e < part[n].range.last; e++)
            needed[n][e] = true;
        for (uint32_t t = n; t-- > 0;) {
            const muc_patch_window *w = rows ? &stages[t].rows : &stages[t].columns;
            uint32_t first = SIDE, last = 0, before = 0, after = 0;

            /* a stage makes the whole range of its output, gaps included */
            for (uint32_t e = part[t + 1].range.first; e < part[t + 1].range.last; e++)
                for (uint32_t k = 0; k < w->kernel; k++) {
                    int64_t at = (int64_t)(e * w->stride + k * w->dilation) - w->pad;

                    if (at >= 0 && at < w->in)
                        needed[t][at] = true;
                    before = at < 0 && (uint32_t)-at > before ? (uint32_t)-at : before;
                    if (at >= w->in && (uint32_t)(at - w->in + 1) > after)
                        after = (uint32_t)(at - w->in + 1);
                }
            for (uint32_t i = t; i < n; i++)
                for (uint32_t e = part[i + 1].range.first;
                     stages[i].also_reads == t + 1 && e < part[i + 1].range.last; e++)
                    needed[t][e] = true;
            for (uint32_t e = 0; e < SIDE; e++)
                if (needed[t][e]) {
                    first = first < e ? first : e;
                    last = e + 1;
                }
            CHECK_EQ(part[t].range.last - part[t].range.first, last ? last - first : 0);
            if (last)
                CHECK_EQ(part[t].range.first, first);
            CHECK_EQ(part[t].before, before);
            CHECK_EQ(part[t].after, after);
        }
    }
}

static void patches_compute_what_the_whole_does(void **state)
{
    static grid whole[STAGES + 1], parts[STAGES + 1];
    muc_context *ctx = muc_context_new(1);
    uint32_t split = 0, shortcuts = 0;

    (void)state;
    for (uint32_t round = 0; round < 400; round++) {
        muc_patch_stage stages[STAGES];
        box readable[STAGES + 1];
        uint32_t count = 1 + random_u32() % STAGES, patched = 1 + random_u32() % count, last;
        uint32_t rows = 1 + random_u32() % 4, columns = 1 + random_u32() % 4;
        const muc_patch_limits limits = { .input_bytes = random_u32() % 100, .grid = 4 };
        muc_patch_plan plan;
        muc_arena arena = { 0 };

        random_chain(stages, count);
        if (muc_patch_try(ctx, &arena, stages, count, &limits, patched, rows, columns, &plan) ==
            MUC_USAGE) { /* too many patches, or a short cut over the split */
            muc_error_clear(ctx);
            continue;
        }
        split++;
        for (uint32_t i = 0; i < patched; i++)
            shortcuts += stages[i].also_reads != 0;
        for (uint32_t r = 0; r < SIDE; r++)
            for (uint32_t c = 0; c < SIDE; c++)
                whole[0].at[r][c] = parts[0].at[r][c] = random_u32() % 100;
        for (uint32_t t = 0; t <= count; t++)
            readable[t] = everything;
        for (uint32_t i = 0; i < count; i++)
            run_stage(stages, i, whole, readable,
                      (box){ 0, stages[i].rows.out, 0, stages[i].columns.out });
        plan.macs -= run_patches(stages, &plan, parts);
        for (uint32_t i = patched; i < count; i++)
            plan.macs -= (uint64_t)stages[i].rows.out * stages[i].columns.out * stages[i].unit_macs;
        CHECK_EQ(plan.macs, 0);
        last = patched;
        for (uint32_t r = 0; r < stages[last - 1].rows.out; r++)
            for (uint32_t c = 0; c < stages[last - 1].columns.out; c++)
                CHECK_EQ(parts[last].at[r][c], whole[last].at[r][c]);
        CHECK_EQ(plan.patch_bytes, bytes_of_patches(stages, &plan, limits.input_bytes));
        CHECK(plan.peak_bytes >= plan.patch_bytes);
        check_tight(stages, &plan, true);
        check_tight(stages, &plan, false);
        muc_arena_free(&arena);
    }
    CHECK(split > 200);
    CHECK(shortcuts > 50);
    muc_context_free(ctx);
}

static void the_plan_found_is_the_best_of_all(void **state)
{
    muc_context *ctx = muc_context_new(1);
    uint32_t helped = 0;

    (void)state;
    for (uint32_t round = 0; round < 200; round++) {
        muc_patch_stage stages[STAGES];
        uint32_t count = 1 + random_u32() % STAGES;
        const muc_patch_limits limits = { .input_bytes = random_u32() % 2 * 300,
                                          .rest_bytes = random_u32() % 200,
                                          .grid = 3,
                                          .overhead_percent = random_u32() % 60 };
        muc_patch_plan plan, other;
        muc_arena arena = { 0 };
        uint64_t least;

        random_chain(stages, count);
        CHECK_OK(ctx, muc_patch_find(ctx, &arena, stages, count, &limits, &plan));
        least = plan.plain_bytes;
        for (uint32_t i = 0; i < count * 9; i++) {
            if (muc_patch_try(ctx, &arena, stages, count, &limits, i / 9 + 1, i / 3 % 3 + 1,
                              i % 3 + 1, &other) != MUC_OK) {
                muc_error_clear(ctx);
                continue;
            }
            if (100 * other.macs <= (100 + limits.overhead_percent) * other.plain_macs &&
                other.peak_bytes < least)
                least = other.peak_bytes;
        }
        CHECK_EQ(plan.peak_bytes, least);
        CHECK_EQ(plan.stages > 0, least < plan.plain_bytes);
        CHECK(100 * plan.macs <= (100 + limits.overhead_percent) * plan.plain_macs);
        helped += plan.stages > 0;
        muc_arena_free(&arena);
    }
    CHECK(helped > 50);
    muc_context_free(ctx);
}

/* the plan's work, counted patch by patch */
static uint64_t work_of(const muc_patch_stage *stages, uint32_t count, const muc_patch_plan *plan,
                        uint64_t rest)
{
    uint64_t work = rest + plan->macs;

    for (uint32_t i = 0; i < count; i++) {
        if (i >= plan->stages) {
            work += stages[i].rows.out * stages[i].row_work + stages[i].call_work;
            continue;
        }
        for (uint32_t p = 0; p < plan->grid_rows * plan->grid_columns; p++) {
            const muc_patch_range rows =
                plan->rows[p / plan->grid_columns * (plan->stages + 1) + i + 1].range;

            work += (rows.last - rows.first) * stages[i].row_work + stages[i].call_work;
        }
    }
    return work;
}

static double cost_of(uint64_t peak, uint64_t work, uint64_t plain, uint32_t trade)
{
    return (double)peak * pow((double)work / (double)plain, trade);
}

static void work_is_weighed_against_memory(void **state)
{
    muc_context *ctx = muc_context_new(1);
    uint32_t helped = 0, refused = 0;

    (void)state;
    for (uint32_t round = 0; round < 200; round++) {
        muc_patch_stage stages[STAGES];
        uint32_t count = 1 + random_u32() % STAGES;
        const muc_patch_limits limits = { .rest_macs = random_u32() % 20000,
                                          .grid = 3,
                                          .overhead_percent = 40,
                                          .trade = 1 + random_u32() % 6 };
        const muc_patch_limits by_peak = { .grid = 3, .overhead_percent = 40 };
        muc_patch_plan plan, other, lowest;
        muc_arena arena = { 0 };
        uint64_t plain;
        double least;

        random_chain(stages, count);
        for (uint32_t i = 0; i < count; i++) {
            stages[i].row_work = random_u32() % 200;
            stages[i].call_work = random_u32() % 500;
        }
        CHECK_OK(ctx, muc_patch_find(ctx, &arena, stages, count, &by_peak, &lowest));
        CHECK_OK(ctx, muc_patch_find(ctx, &arena, stages, count, &limits, &plan));
        plain =
            work_of(stages, count, &(muc_patch_plan){ .macs = plan.plain_macs }, limits.rest_macs);
        CHECK_EQ(plan.plain_work, plain);
        CHECK_EQ(plan.work, work_of(stages, count, &plan, limits.rest_macs));
        least = (double)plan.plain_bytes;
        for (uint32_t i = 0; i < count * 9; i++) {
            double cost;

            if (muc_patch_try(ctx, &arena, stages, count, &limits, i / 9 + 1, i / 3 % 3 + 1,
                              i % 3 + 1, &other) != MUC_OK) {
                muc_error_clear(ctx);
                continue;
            }
            cost = cost_of(other.peak_bytes, work_of(stages, count, &other, limits.rest_macs),
                           plain, limits.trade);
            if (10 * other.macs <= 14 * other.plain_macs && cost < least)
                least = cost;
        }
        CHECK(cost_of(plan.peak_bytes, plan.work, plain, limits.trade) <= least * (1 + 1e-9));
        helped += plan.stages > 0;
        refused += plan.peak_bytes > lowest.peak_bytes;
        muc_arena_free(&arena);
    }
    CHECK(helped > 20 && refused > 20);
    muc_context_free(ctx);
}

/* 32x32x4 -> 3x3 -> 32x32x16 -> 3x3, stride 2 -> 16x16x16: 2x2 patches need a quarter and a halo */
static void a_large_middle_is_cut(void **state)
{
    muc_context *ctx = muc_context_new(1);
    const muc_patch_window same = { 3, 1, 1, 1, 32, 32 }, half = { 3, 2, 1, 1, 32, 16 };
    const muc_patch_stage stages[] = {
        { .name = "a",
          .rows = same,
          .columns = same,
          .in_unit_bytes = 4,
          .out_unit_bytes = 16,
          .unit_macs = 9 * 4 * 16 },
        { .name = "b",
          .rows = half,
          .columns = half,
          .in_unit_bytes = 16,
          .out_unit_bytes = 16,
          .unit_macs = 9 * 16 * 16 },
    };
    muc_patch_limits limits = { .input_bytes = 4096, .grid = 2, .overhead_percent = 20 };
    muc_patch_plan plan;
    muc_arena arena = { 0 };

    (void)state;
    CHECK_OK(ctx, muc_patch_find(ctx, &arena, stages, 2, &limits, &plan));
    CHECK_EQ(plan.plain_bytes, 16384 + 4096 + 4096 - 4096);
    CHECK_EQ(plan.stages, 2);
    CHECK_EQ(plan.grid_rows * 10 + plan.grid_columns, 22);
    /* rows 0..16 and 15..31 of the middle */
    CHECK_EQ(plan.rows[1].range.last, 16);
    CHECK_EQ(plan.rows[3 + 1].range.first, 15);
    CHECK_EQ(plan.rows[3 + 1].range.last, 32);
    CHECK_EQ(plan.patch_bytes, 4096 + 4096 + 17 * 17 * 16);
    limits.overhead_percent = 0;
    CHECK_OK(ctx, muc_patch_find(ctx, &arena, stages, 2, &limits, &plan));
    CHECK_EQ(plan.stages, 0);
    CHECK_EQ(plan.peak_bytes, plan.plain_bytes);
    muc_arena_free(&arena);
    muc_context_free(ctx);
}

static void stages_that_do_not_fit_are_refused(void **state)
{
    muc_context *ctx = muc_context_new(1);
    const muc_patch_window same = { 3, 1, 1, 1, 8, 8 }, other = { 3, 1, 1, 1, 9, 9 };
    muc_patch_stage stages[] = {
        { .name = "a", .rows = same, .columns = same, .in_unit_bytes = 4, .out_unit_bytes = 4 },
        { .name = "b", .rows = other, .columns = same, .in_unit_bytes = 4, .out_unit_bytes = 4 },
    };
    const muc_patch_limits limits = { .grid = 2 };
    muc_patch_plan plan;
    muc_arena arena = { 0 };

    (void)state;
    CHECK_FAILS(ctx, MUC_USAGE, "stage 'b': does not take what the stage before it makes",
                muc_patch_find(ctx, &arena, stages, 2, &limits, &plan));
    stages[1].rows = same;
    stages[1].also_reads = 3;
    CHECK_FAILS(ctx, MUC_USAGE, "stage 'b': also reads a tensor that comes later",
                muc_patch_find(ctx, &arena, stages, 2, &limits, &plan));
    stages[1].also_reads = 1;
    CHECK_FAILS(ctx, MUC_USAGE, "1 of 2 stages cannot run by patches",
                muc_patch_try(ctx, &arena, stages, 2, &limits, 1, 2, 2, &plan));
    stages[1].rows.stride = 0;
    CHECK_FAILS(ctx, MUC_USAGE, "stage 'b': a size is out of range",
                muc_patch_find(ctx, &arena, stages, 2, &limits, &plan));
    CHECK_FAILS(ctx, MUC_USAGE, "patches: 65 stages",
                muc_patch_find(ctx, &arena, stages, 65, &limits, &plan));
    muc_arena_free(&arena);
    muc_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patches_compute_what_the_whole_does),
        cmocka_unit_test(the_plan_found_is_the_best_of_all),
        cmocka_unit_test(work_is_weighed_against_memory),
        cmocka_unit_test(a_large_middle_is_cut),
        cmocka_unit_test(stages_that_do_not_fit_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
