/* muc/sweep.h - many programs on many machines, compared. */
#ifndef MUC_SWEEP_H
#define MUC_SWEEP_H

#include "muc/report.h"

MUC_API_BEGIN

/* All-zero is a whole sweep. */
typedef struct muc_sweep_options {
    uint32_t shard, shards; /* only part `shard`, from 1, of so many; 0: all of it */
} muc_sweep_options;

/* Every combination of the lists in a file (docs/REPORTS.md): its program is made, its calls are
 * timed, and the perplexity of a text is measured, on all threads of the context. What is made is
 * kept in the folder out_path, which may be there: a sweep that was cut off goes on where it was.
 * At its end it has sweep.csv and sweep.html, whose bytes do not depend on how often that was, nor
 * on the number of threads. Each shard makes its points, on a machine of its own if the folder is
 * shared; the last to end writes both files. A point whose model does not fit its machine is a row
 * that says why.
 *
 * Keys: name, combinations, missing, refused, on_front, and the tables "points" (the lists' keys,
 * seconds, tokens_per_second, first_token_seconds, millijoules_per_token, buffer_bytes,
 * program_bytes, perplexity, binding_roof, binding_share, array_share, dram_share, cpu_share,
 * pareto, refused) and "front": those that no other point beats in speed, energy, buffers and
 * perplexity. */
muc_status muc_sweep(muc_context *ctx, const char *path, const muc_sweep_options *options,
                     const char *out_path, muc_report **out);

MUC_API_END

#endif
