/* generate.h - continues a prompt on an engine, token by token. */
#ifndef MUC_GENERATE_H
#define MUC_GENERATE_H

#include "run/engine.h"
#include "base/arena.h"
#include "muc/run.h"

typedef struct muc_generate_options {
    muc_sampling sampling;
    uint32_t most_tokens; /* 0: until the end of the text or of the context */
    muc_text_fn *text;    /* or NULL */
    void *arg;
    bool special;      /* unknown and control pieces written in the prompt become themselves */
    const char *cache; /* file of run/prompt_cache.h for the first prompt, or NULL */
    const uint32_t *turn_end; /* one more token that ends a text, or NULL */
} muc_generate_options;

typedef struct muc_generation {
    uint32_t prompt_tokens, tokens;
    uint32_t cached_tokens; /* of the prompt, that were not computed */
    double prompt_seconds, seconds;
    const char *end; /* "end of text", "length", "context" or "caller" */
} muc_generation;

/* A text to which prompts are added in turn: what was drawn last is not forgotten. */
typedef struct muc_generator muc_generator;

/* engine, at position 0, and options must outlive it. */
muc_status muc_generator_new(muc_engine *engine, const muc_generate_options *options,
                             muc_generator **out);
/* Feeds the prompt, as it is, behind all that was fed and generated, and passes on what follows.
 * The first prompt begins with the begin-of-text token if the model does so. */
muc_status muc_generator_continue(muc_generator *generator, const char *prompt,
                                  muc_generation *out);
void muc_generator_free(muc_generator *generator); /* NULL is fine */

/* One prompt alone. */
muc_status muc_generate(muc_engine *engine, const char *prompt, const muc_generate_options *options,
                        muc_generation *out);

/* What a language model said on a board. */
typedef struct muc_speech {
    muc_bytes text; /* in arena */
    uint32_t prompt_tokens, tokens;
    const char *end; /* as of muc_generation */
    /* of the prompt and the choice of the first token, of all runs after it */
    uint64_t prompt_instructions, instructions;
} muc_speech;

#endif
