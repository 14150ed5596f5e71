/* generate.h - continues a prompt on an engine, token by token. */
#ifndef MUC_GENERATE_H
#define MUC_GENERATE_H

#include "driver/engine.h"
#include "muc/run.h"

typedef struct muc_generate_options {
    muc_sampling sampling;
    uint32_t most_tokens; /* 0: until the end of the text or of the context */
    muc_text_fn *text;    /* or NULL */
    void *arg;
    bool special; /* unknown and control pieces written in the prompt become themselves */
} muc_generate_options;

typedef struct muc_generation {
    uint32_t prompt_tokens, tokens;
    double prompt_seconds, seconds;
    const char *end; /* "end of text", "length" or "context" */
} muc_generation;

/* Feeds the prompt, as it is, to an engine at position 0 and passes on what follows. */
muc_status muc_generate(muc_engine *engine, const char *prompt, const muc_generate_options *options,
                        muc_generation *out);

#endif
