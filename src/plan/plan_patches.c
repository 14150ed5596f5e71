/* plan_patches.c - ranges, bytes and multiply-accumulates of running a chain's first stages by
 * patches. */
#include "plan/plan_patches.h"

#include <string.h>

enum {
    MOST_SIDE = 1 << 16,
    MOST_UNIT = 1 << 24,
    MOST_MACS = 1 << 24,
    MOST_PERCENT = 1000,
    MOST_TRADE = 16,
};

/* the ranges of one direction for one grid: of each patch and tensor */
typedef struct side {
    muc_patch_part part[MUC_PATCH_GRID][MUC_PATCH_STAGES + 1];
    uint32_t patches;
} side;

typedef struct chain {
    const muc_patch_stage *stages;
    uint32_t count;
    const muc_patch_limits *limits;
    uint32_t last_reader[MUC_PATCH_STAGES + 1]; /* of each tensor: a stage */
    uint64_t plain_macs, plain_work;
} chain;

/* ---- what is asked ---- */

static muc_status bad(muc_context *ctx, const muc_patch_stage *stage, const char *what)
{
    return muc_fail(ctx, MUC_USAGE, "plan", MUC_NO_OFFSET, "patches: stage '%s': %s", stage->name,
                    what);
}

static bool is_window(const muc_patch_window *w)
{
    return w->kernel && w->stride && w->dilation && w->in && w->out && w->kernel <= MOST_SIDE &&
           w->stride <= MOST_SIDE && w->dilation <= MOST_SIDE && w->pad <= MOST_SIDE &&
           w->in <= MOST_SIDE && w->out <= MOST_SIDE;
}

static muc_status check_stage(muc_context *ctx, const muc_patch_stage *stages, uint32_t i)
{
    const muc_patch_stage *stage = &stages[i], *before = i ? &stages[i - 1] : NULL;
    const muc_patch_stage *other;

    if (!is_window(&stage->rows) || !is_window(&stage->columns) ||
        stage->in_unit_bytes > MOST_UNIT || stage->out_unit_bytes > MOST_UNIT ||
        stage->unit_macs > MOST_MACS || stage->row_work > MOST_MACS ||
        stage->call_work > MOST_MACS || stage->scratch_bytes >> 40)
        return bad(ctx, stage, "a size is out of range");
    if (before && (before->rows.out != stage->rows.in || before->columns.out != stage->columns.in ||
                   before->out_unit_bytes != stage->in_unit_bytes))
        return bad(ctx, stage, "does not take what the stage before it makes");
    if (stage->also_reads > i + 1)
        return bad(ctx, stage, "also reads a tensor that comes later");
    if (stage->also_reads == 0)
        return MUC_OK;
    other = &stages[stage->also_reads - 1];
    if (other->rows.in != stage->rows.out || other->columns.in != stage->columns.out)
        return bad(ctx, stage, "also reads a tensor of another size than its result");
    return MUC_OK;
}

static uint64_t tensor_unit(const chain *c, uint32_t tensor)
{
    return tensor ? c->stages[tensor - 1].out_unit_bytes : c->stages[0].in_unit_bytes;
}

/* bytes of a whole tensor; those of the input are given */
static uint64_t tensor_bytes(const chain *c, uint32_t tensor)
{
    const muc_patch_stage *stage = &c->stages[tensor - 1];

    if (tensor == 0)
        return c->limits->input_bytes;
    return (uint64_t)stage->rows.out * stage->columns.out * stage->out_unit_bytes;
}

static muc_status open_chain(muc_context *ctx, const muc_patch_stage *stages, uint32_t count,
                             const muc_patch_limits *limits, chain *out)
{
    *out = (chain){ .stages = stages, .count = count, .limits = limits };
    if (count == 0 || count > MUC_PATCH_STAGES || limits->grid > MUC_PATCH_GRID ||
        limits->overhead_percent > MOST_PERCENT || limits->trade > MOST_TRADE ||
        limits->rest_macs >> 56)
        return muc_fail(ctx, MUC_USAGE, "plan", MUC_NO_OFFSET,
                        "patches: %u stages (1 to %u), a grid of %u (at most %u), %u%% more work "
                        "(at most %u%%), for %u%% of memory a percent (at most %u%%)",
                        count, (unsigned)MUC_PATCH_STAGES, limits->grid, (unsigned)MUC_PATCH_GRID,
                        limits->overhead_percent, (unsigned)MOST_PERCENT, limits->trade,
                        (unsigned)MOST_TRADE);
    out->plain_work = limits->rest_macs;
    for (uint32_t i = 0; i < count; i++) {
        MUC_TRY(check_stage(ctx, stages, i));
        out->last_reader[i] = i;
        if (stages[i].also_reads)
            out->last_reader[stages[i].also_reads - 1] = i;
        out->plain_macs +=
            (uint64_t)stages[i].rows.out * stages[i].columns.out * stages[i].unit_macs;
        out->plain_work += stages[i].rows.out * stages[i].row_work + stages[i].call_work;
    }
    out->plain_work += out->plain_macs;
    return MUC_OK;
}

/* ---- ranges ---- */

static uint32_t length(muc_patch_range range)
{
    return range.last - range.first;
}

/* The first element that is read for outputs out.first .. out.last-1, in counts with the padding.
 * With dilation, a later output can read an element before those of an earlier one. */
static uint64_t first_read(const muc_patch_window *w, muc_patch_range out)
{
    uint64_t least = UINT64_MAX;

    for (uint64_t e = out.first; e < out.last; e++) {
        uint64_t at = e * w->stride, tap = 0;

        if (at < w->pad)
            tap = (w->pad - at + w->dilation - 1) / w->dilation;
        if (tap < w->kernel && at + tap * w->dilation < least)
            least = at + tap * w->dilation;
        if (at >= w->pad)
            break;
    }
    return least;
}

/* likewise one past the last */
static uint64_t end_read(const muc_patch_window *w, muc_patch_range out)
{
    uint64_t limit = (uint64_t)w->pad + w->in, most = 0;

    for (uint64_t e = out.last; e-- > out.first;) {
        uint64_t at = e * w->stride, tap = w->kernel - 1;

        if (at >= limit)
            continue;
        if (at + tap * w->dilation >= limit)
            tap = (limit - 1 - at) / w->dilation;
        if (at + tap * w->dilation + 1 > most)
            most = at + tap * w->dilation + 1;
        if (tap == w->kernel - 1)
            break;
    }
    return most;
}

/* what a window reads for a range of its output */
static muc_patch_part seen_through(const muc_patch_window *w, muc_patch_range out)
{
    muc_patch_part part = { 0 };
    uint64_t first = (uint64_t)out.first * w->stride, end;

    if (length(out) == 0)
        return part;
    end = (uint64_t)(out.last - 1) * w->stride + (uint64_t)(w->kernel - 1) * w->dilation + 1;
    part.before = first < w->pad ? (uint32_t)(w->pad - first) : 0;
    part.after = end > (uint64_t)w->pad + w->in ? (uint32_t)(end - w->pad - w->in) : 0;
    first = first_read(w, out);
    end = end_read(w, out);
    if (first < end && end > w->pad)
        part.range = (muc_patch_range){ (uint32_t)(first - w->pad), (uint32_t)(end - w->pad) };
    return part;
}

static muc_patch_range hull(muc_patch_range a, muc_patch_range b)
{
    if (length(a) == 0)
        return b;
    if (length(b) == 0)
        return a;
    return (muc_patch_range){ a.first < b.first ? a.first : b.first,
                              a.last > b.last ? a.last : b.last };
}

static const muc_patch_window *window_of(const chain *c, uint32_t stage, bool rows)
{
    return rows ? &c->stages[stage].rows : &c->stages[stage].columns;
}

/* from the last tensor's patch back to the input */
static void find_parts(const chain *c, uint32_t patched, bool rows, uint32_t patches, side *out)
{
    uint64_t size = window_of(c, patched - 1, rows)->out;

    out->patches = patches;
    for (uint32_t p = 0; p < patches; p++) {
        muc_patch_part *part = out->part[p];

        part[patched] = (muc_patch_part){ .range = { (uint32_t)(p * size / patches),
                                                     (uint32_t)((p + 1) * size / patches) } };
        for (uint32_t t = patched; t-- > 0;) {
            part[t] = seen_through(window_of(c, t, rows), part[t + 1].range);
            for (uint32_t i = t; i < patched; i++)
                if (c->stages[i].also_reads == t + 1)
                    part[t].range = hull(part[t].range, part[i + 1].range);
        }
    }
}

/* ---- bytes ---- */

/* How many bytes a stage needs at once: what it reads, what it makes, what is kept for later.
 * bytes: of each tensor; tensors first..end-1 lie in memory as far as they live. */
static uint64_t stage_bytes(const chain *c, uint32_t stage, const uint64_t *bytes, uint32_t first,
                            uint32_t end)
{
    const muc_patch_stage *s = &c->stages[stage];
    uint64_t sum = s->scratch_bytes;

    for (uint32_t t = first; t <= stage && t < end; t++)
        if (c->last_reader[t] >= stage)
            sum += bytes[t];
    if (stage + 1 >= end)
        return sum;
    /* over the input, if nothing reads that later */
    if (s->in_place && stage >= first && c->last_reader[stage] == stage)
        return sum + (bytes[stage + 1] > bytes[stage] ? bytes[stage + 1] - bytes[stage] : 0);
    return sum + bytes[stage + 1];
}

/* the peak of running whole stages from `first` on */
static uint64_t whole_bytes(const chain *c, uint32_t first)
{
    uint64_t bytes[MUC_PATCH_STAGES + 1], peak = c->limits->rest_bytes;

    for (uint32_t t = 0; t <= c->count; t++)
        bytes[t] = tensor_bytes(c, t);
    for (uint32_t i = first; i < c->count; i++) {
        uint64_t needs = stage_bytes(c, i, bytes, first, c->count + 1);

        peak = needs > peak ? needs : peak;
    }
    return peak;
}

/* The peak of all patches. The input and the last tensor lie in memory whole; of those between
 * there is one patch each. */
static uint64_t patch_bytes(const chain *c, uint32_t patched, const side *rows, const side *columns)
{
    uint64_t kept = c->limits->input_bytes + tensor_bytes(c, patched), peak = 0;

    for (uint32_t r = 0; r < rows->patches; r++)
        for (uint32_t k = 0; k < columns->patches; k++) {
            uint64_t bytes[MUC_PATCH_STAGES + 1];

            for (uint32_t t = 0; t <= patched; t++)
                bytes[t] = (uint64_t)length(rows->part[r][t].range) *
                           length(columns->part[k][t].range) * tensor_unit(c, t);
            for (uint32_t i = 0; i < patched; i++) {
                uint64_t needs = stage_bytes(c, i, bytes, 1, patched);

                peak = needs > peak ? needs : peak;
            }
        }
    return kept + peak;
}

static void count_work(const chain *c, uint32_t patched, const side *rows, const side *columns,
                       muc_patch_plan *plan)
{
    plan->macs = 0;
    plan->work = c->limits->rest_macs;

    for (uint32_t i = 0; i < c->count; i++) {
        uint64_t height = 0, width = 0, across = 1, calls = 1;

        for (uint32_t r = 0; r < rows->patches && i < patched; r++)
            height += length(rows->part[r][i + 1].range);
        for (uint32_t k = 0; k < columns->patches && i < patched; k++)
            width += length(columns->part[k][i + 1].range);
        if (i < patched) {
            across = columns->patches;
            calls = across * rows->patches;
        } else {
            height = c->stages[i].rows.out;
            width = c->stages[i].columns.out;
        }
        plan->macs += height * width * c->stages[i].unit_macs;
        plan->work += height * across * c->stages[i].row_work + calls * c->stages[i].call_work;
    }
    plan->work += plan->macs;
}

/* Nothing after the split reads a tensor of which there were only patches. */
static bool can_split(const chain *c, uint32_t patched)
{
    for (uint32_t i = patched; i < c->count; i++)
        if (c->stages[i].also_reads && c->stages[i].also_reads - 1 < patched)
            return false;
    return true;
}

/* ---- plans ---- */

static void evaluate(const chain *c, uint32_t patched, const side *rows, const side *columns,
                     muc_patch_plan *plan)
{
    uint64_t after = whole_bytes(c, patched);

    *plan = (muc_patch_plan){ .stages = patched,
                              .grid_rows = rows->patches,
                              .grid_columns = columns->patches,
                              .patch_bytes = patch_bytes(c, patched, rows, columns),
                              .plain_bytes = whole_bytes(c, 0),
                              .plain_macs = c->plain_macs,
                              .plain_work = c->plain_work };
    count_work(c, patched, rows, columns, plan);
    plan->peak_bytes = plan->patch_bytes > after ? plan->patch_bytes : after;
}

static muc_status keep_parts(muc_context *ctx, muc_arena *arena, const side *from, uint32_t patched,
                             muc_patch_part **out)
{
    size_t count = patched + 1;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, from->patches * count, out));
    for (uint32_t p = 0; p < from->patches; p++)
        memcpy(*out + p * count, from->part[p], count * sizeof(**out));
    return MUC_OK;
}

static muc_status make_plan(muc_context *ctx, muc_arena *arena, const chain *c, uint32_t patched,
                            uint32_t grid_rows, uint32_t grid_columns, muc_patch_plan *plan)
{
    side rows, columns;

    find_parts(c, patched, true, grid_rows, &rows);
    find_parts(c, patched, false, grid_columns, &columns);
    evaluate(c, patched, &rows, &columns, plan);
    MUC_TRY(keep_parts(ctx, arena, &rows, patched, &plan->rows));
    return keep_parts(ctx, arena, &columns, patched, &plan->columns);
}

muc_status muc_patch_try(muc_context *ctx, muc_arena *arena, const muc_patch_stage *stages,
                         uint32_t count, const muc_patch_limits *limits, uint32_t patched,
                         uint32_t grid_rows, uint32_t grid_columns, muc_patch_plan *plan)
{
    chain c;

    MUC_TRY(open_chain(ctx, stages, count, limits, &c));
    if (patched == 0 || patched > count || !can_split(&c, patched))
        return muc_fail(ctx, MUC_USAGE, "plan", MUC_NO_OFFSET,
                        "patches: %u of %u stages cannot run by patches", patched, count);
    if (grid_rows == 0 || grid_rows > MUC_PATCH_GRID || grid_columns == 0 ||
        grid_columns > MUC_PATCH_GRID || grid_rows > stages[patched - 1].rows.out ||
        grid_columns > stages[patched - 1].columns.out)
        return bad(ctx, &stages[patched - 1], "cannot be cut into so many patches");
    return make_plan(ctx, arena, &c, patched, grid_rows, grid_columns, plan);
}

double muc_patch_cost(const muc_patch_plan *plan, uint64_t peak, uint32_t trade)
{
    double cost = (double)peak;

    for (uint32_t i = 0; i < trade && plan->plain_work; i++)
        cost *= (double)plan->work / (double)plan->plain_work;
    return cost;
}

/* of equal ones, whole stages are better than patches */
static bool is_better(const muc_patch_plan *a, const muc_patch_plan *b, uint32_t trade)
{
    double cost_a = muc_patch_cost(a, a->peak_bytes, trade);
    double cost_b = muc_patch_cost(b, b->peak_bytes, trade);

    if (cost_a < cost_b || cost_a > cost_b)
        return cost_a < cost_b;
    return b->stages > 0 && a->work < b->work;
}

muc_status muc_patch_find(muc_context *ctx, muc_arena *arena, const muc_patch_stage *stages,
                          uint32_t count, const muc_patch_limits *limits, muc_patch_plan *plan)
{
    side rows, columns;
    muc_patch_plan next;
    uint64_t most_macs;
    chain c;

    MUC_TRY(open_chain(ctx, stages, count, limits, &c));
    most_macs = c.plain_macs + c.plain_macs / 100 * limits->overhead_percent +
                c.plain_macs % 100 * limits->overhead_percent / 100;
    *plan = (muc_patch_plan){ .plain_bytes = whole_bytes(&c, 0),
                              .plain_macs = c.plain_macs,
                              .macs = c.plain_macs,
                              .plain_work = c.plain_work,
                              .work = c.plain_work };
    plan->peak_bytes = plan->plain_bytes;
    for (uint32_t patched = 1; patched <= count; patched++) {
        const muc_patch_stage *last = &stages[patched - 1];

        for (uint32_t r = 1; r <= limits->grid && r <= last->rows.out; r++) {
            if (!can_split(&c, patched))
                break;
            find_parts(&c, patched, true, r, &rows);
            for (uint32_t k = 1; k <= limits->grid && k <= last->columns.out; k++) {
                find_parts(&c, patched, false, k, &columns);
                evaluate(&c, patched, &rows, &columns, &next);
                if (next.macs <= most_macs && is_better(&next, plan, limits->trade))
                    *plan = next;
            }
        }
    }
    if (plan->stages == 0)
        return MUC_OK;
    return make_plan(ctx, arena, &c, plan->stages, plan->grid_rows, plan->grid_columns, plan);
}
