/* tile_cost.h - what a plan of tiles needs and costs, exactly. Private to this room. */
#ifndef MUC_PLAN_TILE_COST_H
#define MUC_PLAN_TILE_COST_H

#include "plan/tile.h"

/* tiles of a dimension, one after the other, that cost the same and whose neighbours do */
typedef struct muc_tile_run {
    uint32_t index; /* of the first */
    uint32_t count;
} muc_tile_run;

/* a tile size of one dimension */
typedef struct muc_tile_cut {
    uint32_t tile, tiles;
    muc_tile_run *runs; /* owned */
    uint32_t run_count;
    uint64_t
        widest[MUC_TILE_OPERANDS];   /* elements of each operand's axis: the most of a tile ... */
    uint64_t sum[MUC_TILE_OPERANDS]; /* ... and of all tiles; 1 and 1 where there is no axis */
    uint64_t units;                  /* of compute, of all tiles */
} muc_tile_cut;

/* Saturating: UINT64_MAX is too much. */
static inline uint64_t muc_tile_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t muc_tile_mul(uint64_t a, uint64_t b)
{
    return b && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* Fills a cut for a tile size; the caller frees runs. */
muc_status muc_tile_make_cut(muc_context *ctx, const muc_tile_node *node, uint32_t dim,
                             uint32_t tile, muc_tile_cut *out);

/* Is the operand's tile another one when the dimension's index changes? */
bool muc_tile_depends(const muc_tile_operand *operand, uint32_t dim);

/* Sets the bytes of each operand's buffers, with one or two copies as given, and their sum. */
void muc_tile_size(const muc_tile_node *node, const muc_tile_machine *machine,
                   const muc_tile_cut *const cuts[MUC_TILE_DIMS], muc_tile_plan *plan);

/* At most the cycles that the plan (tile, tiles, loops, double_buffered set) can take. */
uint64_t muc_tile_bound(const muc_tile_node *node, const muc_tile_machine *machine,
                        const muc_tile_cut *const cuts[MUC_TILE_DIMS], const muc_tile_plan *plan);

/* Sets moved_bytes, transfers and all cycles. */
void muc_tile_count(const muc_tile_node *node, const muc_tile_machine *machine,
                    const muc_tile_cut *const cuts[MUC_TILE_DIMS], muc_tile_plan *plan);

#endif
