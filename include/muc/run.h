/* muc/run.h - a model continues a text; a network computes arrays from arrays. */
#ifndef MUC_RUN_H
#define MUC_RUN_H

#include "muc/model.h"

/* How the next token is drawn from the logits, in this order; all-zero takes the likeliest token.
 * The same seed gives the same text on every machine. */
typedef struct muc_sampling {
    double repeat_penalty; /* divides positive logits of the last 64 tokens; 0 or 1: none; at most
                              100 */
    uint32_t top_k;        /* keep the k likeliest; 0: all */
    double top_p;          /* keep the likeliest that together reach this share; 0 or 1: all */
    double min_p;          /* keep those at least this times as likely as the likeliest; 0: all */
    double temperature;    /* divides the logits; 0: the likeliest token; at most 100 */
    uint64_t seed;
} muc_sampling;

/* Called with each piece of text as it comes; pieces may end within a character. False ends the
 * run. */
typedef bool muc_text_fn(void *arg, const char *text, size_t size);

typedef struct muc_run_options {
    const char *prompt;   /* UTF-8, NUL-terminated; "" starts from the begin-of-text token */
    bool raw;             /* take the prompt as it is, without the model's prompt template */
    uint32_t most_tokens; /* to generate; 0: until the model ends or its context is full */
    muc_sampling sampling;
    muc_text_fn *text; /* or NULL */
    void *arg;
} muc_run_options;

/* Continues a prompt; the text begins with the prompt unless a template was filled. Keys of the
 * report: prompt, text, prompt_tokens, tokens, prompt_seconds, seconds, end ("end of text",
 * "length", "context" or "caller"), and the sampling. Works on checkpoints (float32) and programs
 * (simulated machine, SPEC.md's arithmetic). */
muc_status muc_run(muc_context *ctx, const muc_model *model, const muc_run_options *options,
                   muc_report **out);

/* Runs a network on the arrays of the file that it was opened with, in float32 and exact integers.
 * They are its inputs by name if every input finds one of its name, else by position. Writes the
 * results to a .npz file, unless output is NULL. The report is the table "outputs": name, dtype,
 * shape, min, max, values (the first eight), top (the indices of the greatest five). */
muc_status muc_run_network(muc_context *ctx, const muc_model *model, const char *output,
                           muc_report **out);

#endif
