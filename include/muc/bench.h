/* muc/bench.h - how fast language models take a prompt and generate, on this machine. */
#ifndef MUC_BENCH_H
#define MUC_BENCH_H

#include "muc/model.h"

MUC_API_BEGIN

/* Lists are whole numbers separated by commas. What is 0 or NULL means what stands in brackets. */
typedef struct muc_bench_options {
    const char *prompts;  /* tokens fed at once, a test each; "0": none [512, or the context] */
    const char *tokens;   /* tokens fed one after the other [128, or the context] */
    uint32_t depth;       /* tokens fed before the clock starts [0] */
    uint32_t repetitions; /* after one that is not counted [5] */
} muc_bench_options;

/* Times models as llama-bench does: random tokens, each test from an empty context. Keys: threads,
 * and the table "tests": model, weights, weight_bytes, arithmetic, test ("pp512", "tg128", with
 * "@ d64" behind a depth), repetitions, tokens_per_second (mean), deviation (its standard
 * deviation over the repetitions) and processor_ms (of a token, all threads together, the least of
 * the repetitions: what neighbours on the machine disturb least). MUC_USAGE for a test that exceeds
 * a model's context. */
muc_status muc_bench(muc_context *ctx, const muc_model *const *models, size_t count,
                     const muc_bench_options *options, muc_report **out);

MUC_API_END

#endif
