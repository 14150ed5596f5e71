/* tile.c - tries every cut of every dimension in every order of loops.
 *
 * Of the tile sizes that give one number of tiles only the smallest is of interest: it needs the
 * least memory and spreads the work most evenly (and, if compute works in lanes, the smallest that
 * is a multiple of those). What cannot be better than a plan already found in both bytes and
 * cycles, by a bound that is cheap to compute, is not counted exactly.
 */
#include "plan/tile.h"

#include <stdlib.h>
#include <string.h>

#include "plan/tile_cost.h"

enum {
    MOST = 1 << 24,      /* extents, strides and the like */
    MOST_POINTS = 20000, /* combinations of tile sizes */
    MOST_KEPT = 512,     /* plans of the front while it grows */
};

typedef struct searcher {
    muc_context *ctx;
    const muc_tile_node *node;
    const muc_tile_machine *machine;
    muc_tile_cut *cuts[MUC_TILE_DIMS]; /* of each dimension, large tiles first */
    uint32_t cut_count[MUC_TILE_DIMS];
    bool has_accumulator;
    muc_tile_plan *front; /* by rising bytes and falling cycles */
    uint32_t front_count;
    uint64_t tried;
} searcher;

/* ---- what is asked ---- */

static muc_status bad(muc_context *ctx, const muc_tile_node *node, const char *what)
{
    return muc_fail(ctx, MUC_USAGE, "plan", MUC_NO_OFFSET, "tiles of '%s': %s", node->name, what);
}

static muc_status check_operand(muc_context *ctx, const muc_tile_node *node,
                                const muc_tile_operand *operand)
{
    bool seen[MUC_TILE_DIMS] = { false };

    if (operand->axis_count > MUC_TILE_DIMS)
        return bad(ctx, node, "an operand has more than four axes");
    for (uint32_t i = 0; i < operand->axis_count; i++) {
        const muc_tile_axis *axis = &operand->axes[i];

        if (axis->dim >= node->dim_count || seen[axis->dim])
            return bad(ctx, node, "an operand's axes are not of different dimensions");
        seen[axis->dim] = true;
        if (axis->stride > MOST || axis->window > MOST || axis->pad > MOST || axis->limit > MOST ||
            axis->window == 0)
            return bad(ctx, node, "an axis is out of range");
        if (node->dims[axis->dim].reduction &&
            (operand->role == MUC_TILE_OUTPUT || operand->role == MUC_TILE_ACCUMULATOR))
            return bad(ctx, node, "a result depends on a dimension that is summed over");
    }
    return MUC_OK;
}

static muc_status check(muc_context *ctx, const muc_tile_node *node,
                        const muc_tile_machine *machine)
{
    if (node->dim_count > MUC_TILE_DIMS || node->operand_count > MUC_TILE_OPERANDS)
        return bad(ctx, node, "too many dimensions or operands");
    if (machine->dma_bytes_per_cycle == 0 || machine->units_per_cycles == 0 ||
        (machine->alignment & (machine->alignment - 1)))
        return bad(ctx, node, "the machine moves nothing, computes nothing or is misaligned");
    for (uint32_t d = 0; d < node->dim_count; d++)
        if (node->dims[d].extent == 0 || node->dims[d].extent > MOST || node->dims[d].lanes > MOST)
            return bad(ctx, node, "a dimension is out of range");
    for (uint32_t k = 0; k < node->operand_count; k++)
        MUC_TRY(check_operand(ctx, node, &node->operands[k]));
    return MUC_OK;
}

/* ---- tile sizes ---- */

static uint32_t rounded(uint32_t size, uint32_t multiple, uint32_t extent)
{
    uint64_t up = multiple ? ((uint64_t)size + multiple - 1) / multiple * multiple : size;

    return up < extent ? (uint32_t)up : extent;
}

static int falling(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

    return a > b ? -1 : a < b;
}

/* Writes the sizes worth trying, the largest first, if sizes is not NULL; returns at most how many
 * there are. */
static uint32_t find_sizes(const searcher *s, uint32_t d, uint32_t *sizes)
{
    const muc_tile_dim *dim = &s->node->dims[d];
    uint32_t count = 0, unique = 0;

    for (uint32_t size = dim->extent;;) {
        uint32_t tiles = (dim->extent + size - 1) / size;
        uint32_t smallest = (dim->extent + tiles - 1) / tiles, in_lanes;

        if (sizes)
            sizes[count] = rounded(smallest, dim->multiple, dim->extent);
        count++;
        in_lanes = rounded(smallest, dim->lanes, dim->extent);
        if (dim->lanes > 1 &&
            (dim->multiple < 2 || in_lanes % dim->multiple == 0 || in_lanes == dim->extent)) {
            if (sizes)
                sizes[count] = in_lanes;
            count++;
        }
        if (smallest == 1 || smallest <= dim->multiple || (dim->reduction && !s->has_accumulator))
            break;
        size = smallest - 1;
    }
    if (!sizes)
        return count;
    qsort(sizes, count, sizeof(*sizes), falling);
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || sizes[i] != sizes[unique - 1])
            sizes[unique++] = sizes[i];
    return unique;
}

/* every other one goes, but neither the first nor the last */
static uint32_t thin_out(uint32_t *sizes, uint32_t count)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++)
        if (i % 2 == 0 || i + 1 == count)
            sizes[kept++] = sizes[i];
    return kept;
}

/* halves the longest list until the combinations are few */
static void thin_all(searcher *s, uint32_t *sizes[MUC_TILE_DIMS])
{
    for (;;) {
        uint64_t points = 1;
        uint32_t longest = 0;

        for (uint32_t d = 0; d < s->node->dim_count; d++) {
            points = muc_tile_mul(points, s->cut_count[d]);
            longest = s->cut_count[d] > s->cut_count[longest] ? d : longest;
        }
        if (points <= MOST_POINTS || s->cut_count[longest] <= 2)
            return;
        s->cut_count[longest] = thin_out(sizes[longest], s->cut_count[longest]);
    }
}

static muc_status make_cuts(searcher *s, uint32_t *sizes[MUC_TILE_DIMS])
{
    for (uint32_t d = 0; d < s->node->dim_count; d++) {
        MUC_TRY(MUC_NEW_ARRAY(s->ctx, "plan", find_sizes(s, d, NULL), &sizes[d]));
        s->cut_count[d] = find_sizes(s, d, sizes[d]);
    }
    thin_all(s, sizes);
    for (uint32_t d = 0; d < s->node->dim_count; d++) {
        MUC_TRY(MUC_NEW_ARRAY(s->ctx, "plan", s->cut_count[d], &s->cuts[d]));
        for (uint32_t i = 0; i < s->cut_count[d]; i++)
            MUC_TRY(muc_tile_make_cut(s->ctx, s->node, d, sizes[d][i], &s->cuts[d][i]));
    }
    return MUC_OK;
}

/* ---- orders of loops ---- */

/* Dimensions of one tile come first, as they are; the others in any order. */
static bool is_canonical(const muc_tile_node *node, const muc_tile_plan *plan)
{
    for (uint32_t p = 1; p < node->dim_count; p++) {
        uint32_t d = plan->loops[p], before = plan->loops[p - 1];

        if (plan->tiles[d] == 1 && (plan->tiles[before] > 1 || before > d))
            return false;
    }
    return true;
}

/* A result is complete before its tile changes: no loop that sums lies outside one that the result
 * depends on. */
static bool sums_inside(const muc_tile_node *node, const muc_tile_plan *plan)
{
    for (uint32_t k = 0; k < node->operand_count; k++) {
        const muc_tile_operand *operand = &node->operands[k];
        bool is_summing = false;

        if (operand->role != MUC_TILE_OUTPUT && operand->role != MUC_TILE_ACCUMULATOR)
            continue;
        for (uint32_t p = 0; p < node->dim_count; p++) {
            uint32_t d = plan->loops[p];

            if (plan->tiles[d] == 1)
                continue;
            if (is_summing && muc_tile_depends(operand, d))
                return false;
            is_summing = is_summing || node->dims[d].reduction;
        }
    }
    return true;
}

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t t = *a;

    *a = *b;
    *b = t;
}

/* the next permutation in the order of the dictionary; false after the last */
static bool next_order(uint32_t *loops, uint32_t count)
{
    uint32_t i = count, k = count;

    while (i > 1 && loops[i - 2] > loops[i - 1])
        i--;
    if (i < 2)
        return false;
    while (loops[k - 1] < loops[i - 2])
        k--;
    swap(&loops[i - 2], &loops[k - 1]);
    for (uint32_t a = i - 1, b = count - 1; a < b; a++, b--)
        swap(&loops[a], &loops[b]);
    return true;
}

/* ---- the front ---- */

static bool is_beaten(const searcher *s, uint64_t bytes, uint64_t cycles)
{
    uint32_t low = 0, count = s->front_count;

    /* the last plan of at most so many bytes has the fewest cycles of those */
    while (count > 0) {
        uint32_t half = count / 2;

        if (s->front[low + half].bytes <= bytes) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low > 0 && s->front[low - 1].cycles <= cycles;
}

static void add(searcher *s, const muc_tile_plan *plan)
{
    uint32_t kept = 0, at = 0;

    for (uint32_t i = 0; i < s->front_count; i++)
        if (s->front[i].bytes < plan->bytes || s->front[i].cycles < plan->cycles)
            s->front[kept++] = s->front[i];
    if (kept == MOST_KEPT) { /* every other one goes, but neither the first nor the last */
        for (uint32_t i = kept = 0; i < MOST_KEPT; i++)
            if (i % 2 == 0 || i + 1 == MOST_KEPT)
                s->front[kept++] = s->front[i];
    }
    while (at < kept && s->front[at].bytes < plan->bytes)
        at++;
    memmove(s->front + at + 1, s->front + at, (kept - at) * sizeof(*plan));
    s->front[at] = *plan;
    s->front_count = kept + 1;
}

static void try_orders(searcher *s, const muc_tile_cut *const cuts[MUC_TILE_DIMS],
                       muc_tile_plan *plan)
{
    for (uint32_t d = 0; d < MUC_TILE_DIMS; d++)
        plan->loops[d] = d;
    do {
        if (!is_canonical(s->node, plan) || !sums_inside(s->node, plan))
            continue;
        s->tried++;
        if (is_beaten(s, plan->bytes, muc_tile_bound(s->node, s->machine, cuts, plan)))
            continue;
        muc_tile_count(s->node, s->machine, cuts, plan);
        if (plan->cycles != UINT64_MAX && !is_beaten(s, plan->bytes, plan->cycles))
            add(s, plan);
    } while (next_order(plan->loops, s->node->dim_count));
}

static void try_sizes(searcher *s, const muc_tile_cut *const cuts[MUC_TILE_DIMS])
{
    muc_tile_plan plan = { 0 };
    bool has_two = false;

    for (uint32_t d = 0; d < s->node->dim_count; d++) {
        plan.tile[d] = cuts[d]->tile;
        plan.tiles[d] = cuts[d]->tiles;
    }
    muc_tile_size(s->node, s->machine, cuts, &plan);
    if (plan.bytes > s->machine->capacity_bytes)
        return;
    try_orders(s, cuts, &plan);
    if (!s->machine->double_buffers)
        return;
    plan.double_buffered = true;
    muc_tile_size(s->node, s->machine, cuts, &plan);
    for (uint32_t k = 0; k < s->node->operand_count; k++)
        has_two = has_two || plan.copies[k] == 2;
    if (has_two && plan.bytes <= s->machine->capacity_bytes)
        try_orders(s, cuts, &plan);
}

static void try_all(searcher *s, const muc_tile_cut *cuts[MUC_TILE_DIMS], uint32_t dim)
{
    if (dim == s->node->dim_count) {
        try_sizes(s, cuts);
        return;
    }
    for (uint32_t i = 0; i < s->cut_count[dim]; i++) {
        cuts[dim] = &s->cuts[dim][i];
        try_all(s, cuts, dim + 1);
    }
}

/* ---- */

/* what the smallest tiles need */
static muc_tile_plan smallest(const searcher *s)
{
    const muc_tile_cut *cuts[MUC_TILE_DIMS] = { 0 };
    muc_tile_plan plan = { 0 };

    for (uint32_t d = 0; d < s->node->dim_count; d++) {
        cuts[d] = &s->cuts[d][s->cut_count[d] - 1];
        plan.tiles[d] = cuts[d]->tiles;
    }
    muc_tile_size(s->node, s->machine, cuts, &plan);
    return plan;
}

static muc_status check_least(searcher *s, muc_tile_result *result)
{
    const muc_tile_node *node = s->node;
    const muc_tile_plan plan = smallest(s);
    uint32_t largest = 0;

    result->least_bytes = plan.bytes;
    if (plan.bytes <= s->machine->capacity_bytes)
        return MUC_OK;
    for (uint32_t k = 1; k < node->operand_count; k++)
        largest = plan.buffer_bytes[k] > plan.buffer_bytes[largest] ? k : largest;
    return muc_fail(s->ctx, MUC_NOFIT, "plan", MUC_NO_OFFSET,
                    "the smallest tiles of '%s' need %llu bytes, %llu more than there are; the "
                    "largest is '%s' with %llu",
                    node->name, (unsigned long long)plan.bytes,
                    (unsigned long long)(plan.bytes - s->machine->capacity_bytes),
                    node->operands[largest].name, (unsigned long long)plan.buffer_bytes[largest]);
}

static muc_status run(searcher *s, uint32_t *sizes[MUC_TILE_DIMS], muc_tile_result *result)
{
    const muc_tile_cut *cuts[MUC_TILE_DIMS] = { 0 };

    MUC_TRY(make_cuts(s, sizes));
    MUC_TRY(check_least(s, result));
    MUC_TRY(MUC_NEW_ARRAY(s->ctx, "plan", MOST_KEPT + 1, &s->front));
    try_all(s, cuts, 0);
    result->tried = s->tried;
    if (s->front_count == 0)
        return muc_fail(s->ctx, MUC_NOFIT, "plan", MUC_NO_OFFSET,
                        "no plan of '%s' takes fewer than 2^64 cycles", s->node->name);
    result->best = s->front[s->front_count - 1];
    result->front_count = s->front_count < MUC_TILE_FRONT ? s->front_count : MUC_TILE_FRONT;
    for (uint32_t i = 0; i < result->front_count; i++) {
        uint32_t from = i;

        if (s->front_count > MUC_TILE_FRONT)
            from = i * (s->front_count - 1) / (MUC_TILE_FRONT - 1);
        result->front[i] = s->front[from];
    }
    return MUC_OK;
}

static searcher begin(muc_context *ctx, const muc_tile_node *node, const muc_tile_machine *machine)
{
    searcher s = { .ctx = ctx, .node = node, .machine = machine };

    for (uint32_t k = 0; k < node->operand_count; k++)
        s.has_accumulator = s.has_accumulator || node->operands[k].role == MUC_TILE_ACCUMULATOR;
    return s;
}

static void end(searcher *s, uint32_t *sizes[MUC_TILE_DIMS])
{
    for (uint32_t d = 0; d < MUC_TILE_DIMS; d++) {
        for (uint32_t i = 0; s->cuts[d] && i < s->cut_count[d]; i++)
            free(s->cuts[d][i].runs);
        free(s->cuts[d]);
        free(sizes[d]);
    }
    free(s->front);
}

muc_status muc_tile_least(muc_context *ctx, const muc_tile_node *node,
                          const muc_tile_machine *machine, uint64_t *bytes)
{
    uint32_t *sizes[MUC_TILE_DIMS] = { 0 };
    muc_status status;
    searcher s;

    MUC_TRY(check(ctx, node, machine));
    s = begin(ctx, node, machine);
    status = make_cuts(&s, sizes);
    if (status == MUC_OK)
        *bytes = smallest(&s).bytes;
    end(&s, sizes);
    return status;
}

muc_status muc_tile_search(muc_context *ctx, const muc_tile_node *node,
                           const muc_tile_machine *machine, muc_tile_result *result)
{
    uint32_t *sizes[MUC_TILE_DIMS] = { 0 };
    muc_status status;
    searcher s;

    *result = (muc_tile_result){ 0 };
    MUC_TRY(check(ctx, node, machine));
    s = begin(ctx, node, machine);
    status = run(&s, sizes, result);
    end(&s, sizes);
    return status;
}
