/* tile_cost.c - walks a plan's iterations by classes.
 *
 * What iteration i costs depends on its own tiles, on those of the next iteration (what must be
 * transferred in) and of the one before (what is transferred out). Along one dimension all tiles
 * but a few at the ends are alike in this, so a loop over runs of like tiles, each counted as often
 * as it has members, gives the exact sum over all iterations.
 */
#include "plan/tile_cost.h"

#include <stdlib.h>

/* ---- along one dimension ---- */

static uint32_t size_at(const muc_tile_node *node, uint32_t dim, uint32_t tile, uint32_t index)
{
    uint32_t left = node->dims[dim].extent - index * tile;

    return left < tile ? left : tile;
}

/* elements of an axis that a tile needs */
static uint64_t elements_at(const muc_tile_node *node, const muc_tile_axis *axis, uint32_t tile,
                            uint32_t index)
{
    uint64_t limit = axis->limit ? axis->limit : node->dims[axis->dim].extent;
    uint64_t first = (uint64_t)index * tile * axis->stride;
    uint64_t end =
        first + (uint64_t)(size_at(node, axis->dim, tile, index) - 1) * axis->stride + axis->window;

    first = first > axis->pad ? first - axis->pad : 0;
    end = end > axis->pad ? end - axis->pad : 0;
    end = end < limit ? end : limit;
    return end > first ? end - first : 0;
}

static const muc_tile_axis *axis_of(const muc_tile_operand *operand, uint32_t dim)
{
    for (uint32_t i = 0; i < operand->axis_count; i++)
        if (operand->axes[i].dim == dim)
            return &operand->axes[i];
    return NULL;
}

bool muc_tile_depends(const muc_tile_operand *operand, uint32_t dim)
{
    return axis_of(operand, dim) != NULL;
}

static bool are_alike(const muc_tile_node *node, uint32_t dim, uint32_t tile, uint32_t a,
                      uint32_t b)
{
    if (size_at(node, dim, tile, a) != size_at(node, dim, tile, b))
        return false;
    for (uint32_t i = 0; i < node->operand_count; i++) {
        const muc_tile_axis *axis = axis_of(&node->operands[i], dim);

        if (axis && elements_at(node, axis, tile, a) != elements_at(node, axis, tile, b))
            return false;
    }
    return true;
}

/* tiles a and a+1 belong to one run */
static bool run_on(const muc_tile_node *node, uint32_t dim, uint32_t tile, uint32_t tiles,
                   uint32_t a)
{
    return a > 0 && a + 2 < tiles && are_alike(node, dim, tile, a - 1, a) &&
           are_alike(node, dim, tile, a, a + 1) && are_alike(node, dim, tile, a + 1, a + 2);
}

static uint64_t units_of(const muc_tile_dim *dim, uint32_t size)
{
    uint64_t lanes = dim->lanes ? dim->lanes : 1;

    return (size + lanes - 1) / lanes * lanes;
}

muc_status muc_tile_make_cut(muc_context *ctx, const muc_tile_node *node, uint32_t dim,
                             uint32_t tile, muc_tile_cut *out)
{
    uint32_t tiles = (node->dims[dim].extent + tile - 1) / tile, runs = 1;

    *out = (muc_tile_cut){ .tile = tile, .tiles = tiles };
    for (uint32_t i = 0; i + 1 < tiles; i++)
        runs += !run_on(node, dim, tile, tiles, i);
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", runs, &out->runs));
    for (uint32_t i = 0; i < tiles; i++) {
        if (i == 0 || !run_on(node, dim, tile, tiles, i - 1))
            out->runs[out->run_count++].index = i;
        out->runs[out->run_count - 1].count++;
    }
    for (uint32_t k = 0; k < node->operand_count; k++) {
        const muc_tile_axis *axis = axis_of(&node->operands[k], dim);

        out->widest[k] = out->sum[k] = axis ? 0 : 1;
        for (uint32_t i = 0; i < out->run_count && axis; i++) {
            uint64_t elements = elements_at(node, axis, tile, out->runs[i].index);

            out->widest[k] = elements > out->widest[k] ? elements : out->widest[k];
            out->sum[k] += elements * out->runs[i].count;
        }
    }
    for (uint32_t i = 0; i < out->run_count; i++)
        out->units += out->runs[i].count *
                      units_of(&node->dims[dim], size_at(node, dim, tile, out->runs[i].index));
    return MUC_OK;
}

/* ---- bytes ---- */

static bool is_moved(const muc_tile_operand *operand)
{
    return operand->role == MUC_TILE_INPUT || operand->role == MUC_TILE_OUTPUT;
}

/* The operand's tile changes between iterations, so that there is something to overlap. */
static bool is_streamed(const muc_tile_operand *operand, const muc_tile_plan *plan)
{
    for (uint32_t i = 0; i < operand->axis_count; i++)
        if (plan->tiles[operand->axes[i].dim] > 1)
            return is_moved(operand);
    return false;
}

void muc_tile_size(const muc_tile_node *node, const muc_tile_machine *machine,
                   const muc_tile_cut *const cuts[MUC_TILE_DIMS], muc_tile_plan *plan)
{
    uint64_t mask = machine->alignment ? machine->alignment - 1 : 0;

    plan->bytes = 0;
    for (uint32_t k = 0; k < node->operand_count; k++) {
        uint64_t bytes = node->operands[k].unit_bytes;

        for (uint32_t d = 0; d < node->dim_count; d++)
            bytes = muc_tile_mul(bytes, cuts[d]->widest[k]);
        bytes = muc_tile_add(bytes, mask);
        bytes = bytes == UINT64_MAX ? bytes : bytes & ~mask;
        plan->copies[k] = plan->double_buffered && is_streamed(&node->operands[k], plan) ? 2 : 1;
        plan->buffer_bytes[k] = muc_tile_mul(bytes, plan->copies[k]);
        plan->bytes = muc_tile_add(plan->bytes, plan->buffer_bytes[k]);
    }
}

/* ---- cycles ---- */

static uint64_t compute_cycles(const muc_tile_machine *machine, uint64_t units)
{
    uint64_t work = muc_tile_mul(units, machine->cycles), per = machine->units_per_cycles;

    if (work == UINT64_MAX)
        return work;
    return muc_tile_add(work / per + (work % per != 0), machine->call_cycles);
}

static uint64_t transfer_cycles(const muc_tile_machine *machine, uint64_t bytes)
{
    uint64_t per = machine->dma_bytes_per_cycle;

    if (bytes == 0)
        return 0;
    return muc_tile_add(bytes / per + (bytes % per != 0), machine->dma_setup_cycles);
}

uint64_t muc_tile_bound(const muc_tile_node *node, const muc_tile_machine *machine,
                        const muc_tile_cut *const cuts[MUC_TILE_DIMS], const muc_tile_plan *plan)
{
    uint64_t units = 1, calls = 1, compute, dma = 0;

    for (uint32_t d = 0; d < node->dim_count; d++) {
        units = muc_tile_mul(units, cuts[d]->units);
        calls = muc_tile_mul(calls, cuts[d]->tiles);
    }
    compute = muc_tile_mul(units, machine->cycles);
    if (compute == UINT64_MAX)
        return compute;
    compute = muc_tile_add(compute / machine->units_per_cycles,
                           muc_tile_mul(calls, machine->call_cycles));
    for (uint32_t k = 0; k < node->operand_count; k++) {
        const muc_tile_operand *operand = &node->operands[k];
        uint64_t bytes = operand->unit_bytes;
        uint32_t innermost = 0;

        if (!is_moved(operand))
            continue;
        for (uint32_t p = 0; p < node->dim_count; p++)
            if (plan->tiles[plan->loops[p]] > 1 && muc_tile_depends(operand, plan->loops[p]))
                innermost = p + 1;
        for (uint32_t p = 0; p < node->dim_count; p++) {
            uint32_t d = plan->loops[p];

            if (muc_tile_depends(operand, d))
                bytes = muc_tile_mul(bytes, cuts[d]->sum[k]);
            else if (p < innermost)
                bytes = muc_tile_mul(bytes, cuts[d]->tiles);
        }
        dma = muc_tile_add(dma, bytes / machine->dma_bytes_per_cycle);
    }
    if (plan->double_buffered)
        return compute > dma ? compute : dma;
    return muc_tile_add(compute, dma);
}

/* one class of iterations: of each dimension a tile, and where it stands */
typedef struct walker {
    const muc_tile_node *node;
    const muc_tile_machine *machine;
    muc_tile_plan *plan;
    uint32_t index[MUC_TILE_DIMS];
} walker;

static uint64_t bytes_at(const walker *w, uint32_t operand, const uint32_t index[MUC_TILE_DIMS])
{
    const muc_tile_operand *o = &w->node->operands[operand];
    uint64_t bytes = o->unit_bytes;

    for (uint32_t i = 0; i < o->axis_count; i++)
        bytes = muc_tile_mul(bytes, elements_at(w->node, &o->axes[i], w->plan->tile[o->axes[i].dim],
                                                index[o->axes[i].dim]));
    return bytes;
}

/* The iteration after (step 1) or before (step -1) the class's: its indices, and which changed.
 * False if there is none. */
static bool neighbour(const walker *w, int step, uint32_t index[MUC_TILE_DIMS],
                      bool changed[MUC_TILE_DIMS])
{
    bool moved = false;

    for (uint32_t p = w->node->dim_count; p-- > 0;) {
        uint32_t d = w->plan->loops[p], end = step > 0 ? w->plan->tiles[d] - 1 : 0;
        uint32_t start = step > 0 ? 0 : w->plan->tiles[d] - 1;

        changed[d] = !moved && w->plan->tiles[d] > 1;
        index[d] = w->index[d];
        if (moved)
            continue;
        index[d] = w->index[d] == end ? start : step > 0 ? w->index[d] + 1 : w->index[d] - 1;
        moved = w->index[d] != end;
    }
    return moved;
}

/* cycles to transfer the tiles, at the given indices, of a role's operands that depend on what
 * changed (NULL: of all), `times` times; counts them */
static uint64_t transfer(const walker *w, muc_tile_role role, const uint32_t index[MUC_TILE_DIMS],
                         const bool *changed, uint64_t times)
{
    uint64_t cycles = 0;

    for (uint32_t k = 0; k < w->node->operand_count; k++) {
        const muc_tile_operand *operand = &w->node->operands[k];
        bool is_new = changed == NULL;
        uint64_t bytes;

        if (operand->role != role)
            continue;
        for (uint32_t i = 0; i < operand->axis_count && changed; i++)
            is_new = is_new || changed[operand->axes[i].dim];
        if (!is_new)
            continue;
        bytes = bytes_at(w, k, index);
        w->plan->moved_bytes[k] = muc_tile_add(w->plan->moved_bytes[k], muc_tile_mul(bytes, times));
        w->plan->transfers = muc_tile_add(w->plan->transfers, bytes ? times : 0);
        cycles = muc_tile_add(cycles, transfer_cycles(w->machine, bytes));
    }
    w->plan->dma_cycles = muc_tile_add(w->plan->dma_cycles, muc_tile_mul(cycles, times));
    return cycles;
}

/* `times` iterations of one class */
static void count_class(walker *w, uint64_t times)
{
    uint32_t index[MUC_TILE_DIMS] = { 0 };
    bool changed[MUC_TILE_DIMS] = { false };
    uint64_t units = 1, compute, moved = 0, cycles;

    for (uint32_t d = 0; d < w->node->dim_count; d++)
        units = muc_tile_mul(
            units, units_of(&w->node->dims[d], size_at(w->node, d, w->plan->tile[d], w->index[d])));
    compute = compute_cycles(w->machine, units);
    if (neighbour(w, 1, index, changed))
        moved = transfer(w, MUC_TILE_INPUT, index, changed, times);
    if (neighbour(w, -1, index, changed))
        moved = muc_tile_add(moved, transfer(w, MUC_TILE_OUTPUT, index, changed, times));
    if (w->plan->double_buffered)
        cycles = compute > moved ? compute : moved;
    else
        cycles = muc_tile_add(compute, moved);
    w->plan->compute_cycles = muc_tile_add(w->plan->compute_cycles, muc_tile_mul(compute, times));
    w->plan->cycles = muc_tile_add(w->plan->cycles, muc_tile_mul(cycles, times));
}

static void count_classes(walker *w, const muc_tile_cut *const cuts[MUC_TILE_DIMS], uint32_t dim,
                          uint64_t times)
{
    if (dim == w->node->dim_count) {
        count_class(w, times);
        return;
    }
    for (uint32_t i = 0; i < cuts[dim]->run_count; i++) {
        w->index[dim] = cuts[dim]->runs[i].index;
        count_classes(w, cuts, dim + 1, muc_tile_mul(times, cuts[dim]->runs[i].count));
    }
}

void muc_tile_count(const muc_tile_node *node, const muc_tile_machine *machine,
                    const muc_tile_cut *const cuts[MUC_TILE_DIMS], muc_tile_plan *plan)
{
    walker w = { .node = node, .machine = machine, .plan = plan };
    uint32_t first[MUC_TILE_DIMS] = { 0 }, last[MUC_TILE_DIMS] = { 0 };

    for (uint32_t k = 0; k < node->operand_count; k++)
        plan->moved_bytes[k] = 0;
    plan->transfers = plan->compute_cycles = plan->dma_cycles = 0;
    for (uint32_t d = 0; d < node->dim_count; d++)
        last[d] = plan->tiles[d] - 1;
    plan->cycles = transfer(&w, MUC_TILE_INPUT, first, NULL, 1);
    plan->cycles = muc_tile_add(plan->cycles, transfer(&w, MUC_TILE_OUTPUT, last, NULL, 1));
    count_classes(&w, cuts, 0, 1);
}
