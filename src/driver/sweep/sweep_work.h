/* sweep_work.h - makes a sweep's programs and measures its points, each result in a file of its
 * own.
 *
 * In the folder of results lie programs/KEY.utp and KEY.json (its perplexity, or why it was
 * refused), points/KEY.json (a row of the table) and machines/KEY.ini. A key is a hash of all that
 * decides the content, so that what is there is right, whoever made it.
 */
#ifndef MUC_SWEEP_WORK_H
#define MUC_SWEEP_WORK_H

#include <jansson.h>
#include <stdatomic.h>

#include "driver/sweep/sweep_file.h"

typedef struct muc_sweep_work {
    muc_context *ctx;
    const muc_sweep_file *file;
    const char *folder;
    muc_arena *arena;
    muc_bytes *bases;     /* [machines]: their files */
    uint64_t *models;     /* [models]: hashes of their content */
    uint64_t text;        /* of the text's */
    uint32_t per_program; /* points that have one program, one after the other */
    uint32_t *programs;   /* whose points are wanted: their first point */
    uint32_t program_count;
    uint32_t first, end; /* points that are wanted */
    atomic_uint done;    /* programs, then points, of those that are wanted */
    json_t **rows;       /* [points]: NULL where there is no result */
} muc_sweep_work;

/* Makes folders, reads machines and the results that are there. */
muc_status muc_sweep_begin(muc_context *ctx, muc_arena *arena, const muc_sweep_file *file,
                           const char *folder, muc_sweep_work *out);
/* Makes what is missing of points first..end - 1, on the context's threads. */
muc_status muc_sweep_go_on(muc_sweep_work *work, uint32_t first, uint32_t end);
/* Reads the results that are there and were not. */
muc_status muc_sweep_load(muc_sweep_work *work);
void muc_sweep_end(muc_sweep_work *work);

#endif
