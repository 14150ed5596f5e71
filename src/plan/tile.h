/* tile.h - how to cut one node's work into tiles that fit a small memory, at the least cost.
 *
 * A node is a box of work with up to four dimensions that may be cut (rows, columns, channels out,
 * channels in, ...). A plan gives each a tile size and the loops over the tiles an order. Operands
 * say which dimensions they depend on; one whose tile does not change from one iteration to the
 * next is not transferred again. All arithmetic is exact, in integers; what overflows 64 bits is
 * no plan.
 *
 * Cycles of a plan, with c(i) the compute cycles of iteration i, f(i) those of the transfers into
 * the memory that iteration i needs new, s(i) of those out of it that it completes:
 *   single buffers    sum of f(i) + c(i) + s(i)
 *   double buffers    f(0) + sum over i of max(c(i), f(i+1) + s(i-1)) + s(last): while iteration i
 *                     computes, the next one's tiles come and the last one's results go; operands
 *                     of which more than one tile is transferred take twice their bytes
 * The better of the two that fits is kept.
 */
#ifndef MUC_PLAN_TILE_H
#define MUC_PLAN_TILE_H

#include "base/base.h"

enum { MUC_TILE_DIMS = 4, MUC_TILE_OPERANDS = 8 };

typedef struct muc_tile_dim {
    const char *name; /* borrowed */
    uint32_t extent;  /* at least 1 */
    /* a tile is a multiple of this, or the whole extent; 0 as 1. A dimension that must not be cut
     * has its extent here. */
    uint32_t multiple;
    /* compute works on multiples of this, in vectors or rows of an array; 0 as 1 */
    uint32_t lanes;
    /* Summed over: results are complete after its last tile. Cut only if an operand is an
     * accumulator, and then all its tiles are visited before an output's tile changes. */
    bool reduction;
} muc_tile_dim;

/* How many elements of one axis of an operand a tile of a dimension needs: with tile o..o+t-1,
 * those of o*stride - pad .. (o+t-1)*stride - pad + window - 1 that lie within 0..limit-1. */
typedef struct muc_tile_axis {
    uint32_t dim;
    uint32_t stride; /* 1 for an axis that simply follows the dimension */
    uint32_t window; /* 1 likewise; (kernel-1)*dilation + 1 */
    uint32_t pad;
    uint32_t limit; /* elements that exist along the axis; 0: the dimension's extent */
} muc_tile_axis;

typedef enum muc_tile_role {
    MUC_TILE_INPUT,       /* transferred in */
    MUC_TILE_OUTPUT,      /* transferred out */
    MUC_TILE_ACCUMULATOR, /* partial sums: takes room, is not transferred */
    MUC_TILE_SCRATCH,     /* takes room, is not transferred, nothing in it outlives a tile */
} muc_tile_role;

typedef struct muc_tile_operand {
    const char *name; /* borrowed */
    muc_tile_role role;
    uint64_t unit_bytes; /* bytes of one element, times the axes that no dimension cuts */
    uint32_t axis_count; /* bytes of a tile: unit_bytes times the elements along each axis */
    muc_tile_axis axes[MUC_TILE_DIMS]; /* of different dimensions */
} muc_tile_operand;

typedef struct muc_tile_machine {
    uint64_t capacity_bytes;
    uint32_t alignment;           /* of each buffer; a power of two; 0 as 1 */
    uint32_t dma_bytes_per_cycle; /* at least 1 */
    uint32_t dma_setup_cycles;    /* for each transfer */
    bool double_buffers;          /* transfers can run beside compute */
    uint32_t call_cycles;         /* for each tile computed */
    /* compute cycles: units * cycles / units_per_cycles, rounded up for each tile; the units of a
     * tile are the product of its sizes, each rounded up to its dimension's lanes */
    uint32_t cycles, units_per_cycles;
} muc_tile_machine;

typedef struct muc_tile_node {
    const char *name; /* borrowed, for messages */
    uint32_t dim_count, operand_count;
    muc_tile_dim dims[MUC_TILE_DIMS];
    muc_tile_operand operands[MUC_TILE_OPERANDS];
} muc_tile_node;

typedef struct muc_tile_plan {
    uint32_t tile[MUC_TILE_DIMS];  /* size along each dimension; the last tile may be smaller */
    uint32_t tiles[MUC_TILE_DIMS]; /* how many */
    uint32_t loops[MUC_TILE_DIMS]; /* dimensions, outermost loop first */
    bool double_buffered;
    uint64_t buffer_bytes[MUC_TILE_OPERANDS]; /* of each operand, both halves if it has two */
    uint64_t moved_bytes[MUC_TILE_OPERANDS];  /* in or out, in all */
    uint32_t copies[MUC_TILE_OPERANDS];       /* 1 or 2 buffers */
    uint64_t bytes;                           /* of all buffers */
    uint64_t transfers, compute_cycles, dma_cycles;
    uint64_t cycles;
} muc_tile_plan;

enum { MUC_TILE_FRONT = 32 };

typedef struct muc_tile_result {
    muc_tile_plan best; /* the fewest cycles; of equal ones the fewest bytes */
    /* Plans such that none needs at most the bytes and at most the cycles of another, by rising
     * bytes; those within capacity. If there are more than fit, the ends and an even selection. */
    muc_tile_plan front[MUC_TILE_FRONT];
    uint32_t front_count;
    uint64_t least_bytes; /* what the smallest tiles need: a machine with less runs nothing */
    uint64_t tried;       /* plans whose cycles were computed or bounded */
} muc_tile_result;

/* Bytes that the smallest tiles need. MUC_USAGE as muc_tile_search. */
muc_status muc_tile_least(muc_context *ctx, const muc_tile_node *node,
                          const muc_tile_machine *machine, uint64_t *bytes);
/* Tries every number of tiles along every dimension (thinned out evenly if that is more than some
 * 10^5 combinations) in every order of loops. Deterministic. MUC_NOFIT if not even the smallest
 * tiles fit, naming the node, the bytes that lack and the largest operand; MUC_USAGE for a node
 * that contradicts itself. */
muc_status muc_tile_search(muc_context *ctx, const muc_tile_node *node,
                           const muc_tile_machine *machine, muc_tile_result *result);

#endif
