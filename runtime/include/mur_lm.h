/* mur_lm.h - a language model on the device: tokens in, logits or text out.
 *
 *     mur_lm_open -> mur_lm_feed, mur_lm_run -> mur_lm_logits          one's own loop
 *     mur_lm_open -> mur_lm_begin, mur_lm_step until finished          text through a callback
 *
 * Nothing blocks: when an engine is busy, or after as many items as the caller allows, run and step
 * return MUR_YIELD and go on where they were when they are called again, from a main loop or an
 * interrupt's bottom half.
 */
#ifndef MUR_LM_H
#define MUR_LM_H

#include "mur.h"
#include "mur_sampler.h"
#include "mur_stages.h"
#include "mur_tokenizer.h"

/* A model in use. Callers may read pos, and set budget and all_logits. */
typedef struct mur_lm {
    const mur_program *program;
    const mur_hal *hal;
    uint8_t *io;
    uint32_t budget;     /* items of the program that a call executes at most, at least 1; as opened
                            there is no bound */
    uint32_t all_logits; /* 1: every call computes logits, not only the one that ends a feed; as
                            opened 0 */
    uint32_t pos;        /* the next token's position; as many tokens are in the KV region */
    const uint32_t *tokens; /* to be fed */
    uint32_t left, fed;     /* how many; how many of them the call under way feeds, 0: none is */
    mur_run_state run;
} mur_lm;

/* Takes a verified program into use at position 0. All pointers are borrowed while lm is in use.
 *   io   region IO, 4-byte-aligned, as the HAL's engines see it
 * Returns MUR_E_VERIFY for a program not verified, MUR_E_UNSUPPORTED for one that cannot DECODE. */
mur_status mur_lm_open(mur_lm *lm, const mur_program *program, const mur_hal *hal, void *io);

/* Back to position 0, whatever happened before; nothing may be in an engine's queue. */
void mur_lm_reset(mur_lm *lm);

/* Has count tokens, at least 1, fed by the calls of mur_lm_run that follow; they are borrowed until
 * it returns MUR_OK. Returns MUR_E_INPUT, and changes nothing, if they would go beyond the context,
 * if one is not below the vocabulary, or while others are still to be fed. */
mur_status mur_lm_feed(mur_lm *lm, const uint32_t *tokens, uint32_t count);

/* Feeds on, in as few calls as the program allows, of about as many tokens. MUR_OK: all are fed,
 * the logits are those after the last; MUR_YIELD: an engine is busy or the budget is spent, call
 * again; MUR_E_FAULT: reset. */
mur_status mur_lm_run(mur_lm *lm);

/* The logits after the token last fed, [vocabulary], until the next is fed; the caller may change
 * them. */
float *mur_lm_logits(const mur_lm *lm);

/* The likeliest token after the one last fed, the first of equals: the program has looked at the
 * logits chunk by chunk while the next one's were computed, if it has AMAX. Only while the logits
 * are as they were made. */
uint32_t mur_lm_likeliest(const mur_lm *lm);

/* Is the token one that ends a text? */
int mur_lm_ends(const mur_lm *lm, uint32_t token);

/* Where a self test saw the first difference. */
typedef struct mur_lm_difference {
    uint32_t position;    /* golden vector; how many there are if none differs */
    enum mur_stage stage; /* MUR_STAGES: none, an engine reported a fault */
    uint32_t layer;
} mur_lm_difference;

/* Feeds the golden vectors, each alone and then all in as few calls as possible, and compares the
 * stages of those that have checksums of them (section STAG), and the logits, with the program's
 * own: in the end the board computes what the compiler promised, or MUR_E_FAULT. Waits for engines
 * by asking again. Leaves lm reset.
 * *first (NULL if not wanted): the first that differs; stage LOGITS where no stage before them
 * does, or none has a checksum. Returns MUR_E_UNSUPPORTED if the program has no golden vectors. */
mur_status mur_lm_self_test(mur_lm *lm, mur_lm_difference *first);

/* ---- text ---- */

/* Bytes as they are made; a character may come in pieces. */
typedef void mur_lm_write(void *arg, const uint8_t *bytes, size_t count);

enum mur_lm_end {
    MUR_LM_GOING,
    MUR_LM_EOS,    /* the model ended its text */
    MUR_LM_LENGTH, /* as many tokens as were asked for */
    MUR_LM_FULL    /* the context has no room for another token */
};

/* A text being made. All members but the last four are the caller's, set before mur_lm_begin. */
typedef struct mur_lm_text {
    mur_lm *lm;
    const mur_tokenizer *tokenizer;
    mur_sampler *sampler;
    void *sampler_scratch; /* see mur_sampler_next */
    mur_lm_write *write;
    void *write_arg;

    enum mur_lm_end end;
    uint32_t made, most; /* tokens */
    uint32_t token;      /* the latest */
} mur_lm_text;

/* Begins a text of at most `most` tokens after a prompt of count tokens, at least 1, which are fed
 * at lm's position and borrowed until the first token is made. As mur_lm_feed. */
mur_status mur_lm_begin(mur_lm_text *text, const uint32_t *prompt, uint32_t count, uint32_t most);

/* Goes on until a token is made and written, an engine is busy or lm's budget is spent. MUR_OK:
 * text->end tells whether there is more to come; MUR_YIELD: call again; MUR_E_FAULT: reset lm. */
mur_status mur_lm_step(mur_lm_text *text);

#endif
