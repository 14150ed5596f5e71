/* muc/run.h - a model continues a text; a network computes arrays from arrays. */
#ifndef MUC_RUN_H
#define MUC_RUN_H

#include "muc/model.h"

MUC_API_BEGIN

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
    bool no_special;      /* special tokens written in the prompt, "</s>", stay text, as they do in
                             texts that are evaluated, calibrated or trained on */
    uint32_t most_tokens; /* to generate; 0: until the model ends or its context is full */
    /* The prompt is a message, and the model answers: the name of a chat template (run/chat.def),
     * or "auto", the one that the model carries; NULL: the text is continued */
    const char *chat;
    const char
        *system; /* with chat: how the model is to behave, before the first message; or NULL */
    const char *const *stops; /* [stop_count] texts, none empty, that end what is generated, and */
    size_t stop_count;        /* that are left out of it */
    muc_sampling sampling;
    /* a file that keeps the state after the prompt: made if it is not there, else what it has of
     * the prompt's beginning is not computed again; or NULL. MUC_MISMATCH if another model, program
     * or context made it */
    const char *prompt_cache;
    const char *board; /* of a folder of code: the emulated board to run it on, where the likeliest
                          token is taken and sampling must be all-zero; or NULL */
    const char *machine; /* of a program: as of muc_report_options, which folder.h has */
    muc_text_fn *text;   /* or NULL */
    void *arg;
} muc_run_options;

/* Continues a prompt; the text begins with the prompt unless a template was filled. Keys of the
 * report: prompt, text, prompt_tokens, tokens, prompt_seconds, seconds, end ("end of text",
 * "length", "context", "stop" or "caller"), cached_tokens (with prompt_cache), chat (the template's
 * name, if there is one), and the sampling; of a board, whose seconds mean nothing and are left
 * out, also board, prompt_instructions and instructions (of the tokens after the first); of a
 * program whose machine is known, machine and the groups machine_prompt and machine_steps (the
 * tokens after the first), with what muc_report_folder tells of a call's time and energy.
 * Works on checkpoints (float32) and programs (simulated machine, SPEC.md's arithmetic). */
muc_status muc_run(muc_context *ctx, const muc_model *model, const muc_run_options *options,
                   muc_report **out);

/* A conversation, or a text that grows: each prompt comes behind all that was said. */
typedef struct muc_session muc_session;

/* model and what options point to must outlive the session; their prompt and board do not matter.
 * Fails with MUC_UNSUPPORTED if chat is "auto" and muc does not know the model's template. */
muc_status muc_session_new(muc_context *ctx, const muc_model *model, const muc_run_options *options,
                           muc_session **out);
/* As muc_run, without the keys about a machine. MUC_USAGE once the context is full. */
muc_status muc_session_say(muc_session *session, const char *prompt, muc_report **out);
void muc_session_free(muc_session *session); /* NULL is fine */

/* What a run on arrays takes and gives; every string may be NULL. */
typedef struct muc_array_run {
    const char *input; /* a .npz or .npy file, whose arrays are inputs by name if any input finds
                          one of its name, else by position; of a network that keeps a state,
                          arrays with one dimension before those of the inputs are for several runs
                          in a row, and so are the results */
    /* A picture for the first input instead: PNG, PGM, PPM, a .npy array of u8, or the input's
     * samples, raw. By default it is sized and its channels made as the input's shape asks, and
     * samples 0..255 become the range of the input's quantization, or 0..1. preprocess says
     * otherwise: "scale=X, mean=X or X:Y:Z, std=X or X:Y:Z" for (sample * scale - mean) / std,
     * "size=stretch|crop|exact", "layout=nhwc|nchw", "order=rgb|bgr", parted by commas. */
    const char *image, *preprocess;
    const char *dims;   /* of a folder of code: "NAME=N" of lengths that the arrays do not tell */
    const char *labels; /* a file with the name of a class in each line */
    const char *output; /* a .npz file to write the results to */
    const char *dump; /* of a folder of the CNN chip: a folder to write its memories to, after each
                         instruction; or NULL */
} muc_array_run;

/* Runs a network on the arrays, or the picture, that it was opened with, in float32 and exact
 * integers; of how, only labels and output matter. The report is the table "outputs": name, dtype,
 * shape, min, max, values (the first eight), top (the indices of the greatest five); with a picture
 * also image (what was done to it), and with it or with labels the table "classes" (class, label,
 * score) of the first result's greatest five. */
muc_status muc_run_network(muc_context *ctx, const muc_model *model, const muc_array_run *how,
                           muc_report **out);

MUC_API_END

#endif
