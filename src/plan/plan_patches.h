/* plan_patches.h - running the first stages of a convolutional network patch by patch.
 *
 * After Lin et al., "MCUNetV2: Memory-Efficient Patch-based Inference for Tiny Deep Learning"
 * (NeurIPS 2021). The first stages of such a network have the largest tensors. If the output of
 * stage s-1 is cut into a grid of patches, each can be computed on its own from the part of the
 * input that it sees, and only small parts of the tensors between live at once; neighbouring
 * patches compute their common halo twice.
 *
 * Tensor 0 is the input, tensor i+1 the output of stage i. Rows and columns are treated alike and
 * apart from one another.
 */
#ifndef MUC_PLAN_PATCH_H
#define MUC_PLAN_PATCH_H

#include "base/arena.h"
#include "base/base.h"

enum { MUC_PATCH_STAGES = 64, MUC_PATCH_GRID = 8 };

/* one direction, rows or columns, of a stage's window */
typedef struct muc_patch_window {
    uint32_t kernel, stride, dilation; /* at least 1 */
    uint32_t pad;                      /* before the first; what is needed after the last follows */
    uint32_t in, out;                  /* elements of the stage's input and output */
} muc_patch_window;

typedef struct muc_patch_stage {
    const char *name; /* borrowed */
    muc_patch_window rows, columns;
    uint64_t in_unit_bytes, out_unit_bytes; /* of one row and column: channels times element */
    uint64_t unit_macs; /* multiply-accumulates of one row and column of output */
    /* work beside these, in as many multiply-accumulates: of a row of output, of a call */
    uint64_t row_work, call_work;
    /* 0, or 1 + the tensor (at most this stage's own input) that is read too, at the output's own
     * rows and columns: the short cut of a residual block */
    uint32_t also_reads;
    bool in_place;          /* the output can take the place of the input (or of its patch) */
    uint64_t scratch_bytes; /* needed only while the stage runs */
} muc_patch_stage;

/* first .. last-1 */
typedef struct muc_patch_range {
    uint32_t first, last;
} muc_patch_range;

/* What one patch needs of a tensor along one direction, and what a stage pads around it. The window
 * of the stage that reads it, for the first element that the stage makes, begins at out.first *
 * stride - pad, which is in the range or `before` elements ahead of the tensor's first. */
typedef struct muc_patch_part {
    muc_patch_range range;  /* of the tensor's elements, without padding */
    uint32_t before, after; /* padding that the stage which reads the tensor sees there; 0 for the
                             * last tensor */
} muc_patch_part;

typedef struct muc_patch_limits {
    uint64_t input_bytes; /* of tensor 0, whole, while patches run; 0 if it does not lie in this
                           * level. Patches read it where it is. */
    uint64_t rest_bytes;  /* peak of the network after the chain */
    uint64_t rest_macs;   /* of the network's other layers */
    uint32_t grid;        /* most patches along a direction, at most MUC_PATCH_GRID */
    uint32_t overhead_percent; /* most multiply-accumulates more than the chain has, to 1000 */
    /* 0: the least peak is the best plan. Else a percent more work of the network must save so many
     * percent of the peak: the least peak * (work / plain_work)^trade. At most 16. */
    uint32_t trade;
} muc_patch_limits;

typedef struct muc_patch_plan {
    uint32_t stages; /* run patch by patch: the first so many; 0: patches do not help */
    uint32_t grid_rows, grid_columns;
    uint64_t peak_bytes;  /* with patches: of the patches, of the stages after them, of the rest */
    uint64_t patch_bytes; /* of the part that runs by patches */
    uint64_t plain_bytes; /* without patches */
    uint64_t macs, plain_macs; /* of the whole chain */
    uint64_t work, plain_work; /* of the whole network: macs, and what rows and calls cost */
    /* of each direction, patch and tensor 0..stages: parts[patch * (stages + 1) + tensor];
     * arena-owned */
    muc_patch_part *rows, *columns;
} muc_patch_plan;

/* The best plan over every number of stages and every grid whose overhead is allowed; of equal
 * ones the one with the least work. The peak without patches is that of running stage by
 * stage. MUC_USAGE for stages that do not fit one another. */
muc_status muc_patch_find(muc_context *ctx, muc_arena *arena, const muc_patch_stage *stages,
                          uint32_t count, const muc_patch_limits *limits, muc_patch_plan *plan);

/* What muc_patch_find minimises, of a plan that needs `peak` bytes. */
double muc_patch_cost(const muc_patch_plan *plan, uint64_t peak, uint32_t trade);

/* The plan for a given number of stages and grid, whether it helps or not. */
muc_status muc_patch_try(muc_context *ctx, muc_arena *arena, const muc_patch_stage *stages,
                         uint32_t count, const muc_patch_limits *limits, uint32_t patched,
                         uint32_t grid_rows, uint32_t grid_columns, muc_patch_plan *plan);

#endif
