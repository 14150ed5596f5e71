/* prompt_cache.h - what an engine holds of a prompt, in a file, so that the next run need not
 * compute it. */
#ifndef MUC_RUN_PROMPT_CACHE_H
#define MUC_RUN_PROMPT_CACHE_H

#include "run/engine.h"

/* If the file exists, the engine, at position 0, takes over its state for as many of the tokens as
 * the file begins with, but fewer than count: *taken of them. Fails with MUC_MISMATCH if the file
 * is of another model, program or context, MUC_MALFORMED if it is none; the engine is then of no
 * use. */
muc_status muc_prompt_cache_load(muc_engine *engine, const char *path, const uint32_t *tokens,
                                 size_t count, uint32_t *taken);
/* Writes the engine's state after these tokens, all that it was fed. */
muc_status muc_prompt_cache_save(muc_engine *engine, const char *path, const uint32_t *tokens,
                                 size_t count);

#endif
