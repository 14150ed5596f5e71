/* repeated_runs.h - several runs of a network with a state: an array with one more dimension than
 * its input, in front, has one element of that dimension for each run. */
#ifndef MUC_RUN_RUNS_H
#define MUC_RUN_RUNS_H

#include "base/arena.h"
#include "formats/checkpoint.h"

/* Adds an input of fixed dimensions and its array: *runs, 0 before the first array that is for
 * several, becomes their number. MUC_USAGE naming an array that is for another number. */
muc_status muc_runs_add(muc_context *ctx, const char *input, uint32_t rank, const uint64_t *dims,
                        const muc_tensor_view *array, uint64_t *runs);
/* What an array that was added has for run i; one that is the same in all runs stays as it is.
 * Borrows its data. */
muc_tensor_view muc_runs_slice(const muc_tensor_view *array, uint32_t rank, const uint64_t *dims,
                               uint64_t i);
/* Results of all runs as one array, [runs, dimensions of one..], in arena: the memory for it, which
 * is filled with one result after another. */
muc_status muc_runs_stack(muc_context *ctx, muc_arena *arena, uint64_t runs,
                          const muc_tensor_view *one, muc_tensor_view *out, uint8_t **data);

#endif
