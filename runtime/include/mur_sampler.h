/* mur_sampler.h - from a row of logits to the next token.
 *
 * The same token on every machine: IEEE binary32 + - * / in a fixed order (compile with
 * -ffp-contract=off), an exponential of our own, and sorting by (logit, id), which leaves no ties.
 */
#ifndef MUR_SAMPLER_H
#define MUR_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

/* Applied in this order, as llama.cpp does; top_k, top_p and min_p look at the probabilities
 * before temperature. At least one token always remains. */
typedef struct mur_sampler {
    uint32_t top_k;    /* keep this many of the likeliest tokens; 0: all */
    float top_p;       /* keep the fewest whose probability is at least this; 1 or more: all */
    float min_p;       /* keep those at least this times as likely as the likeliest; 0: all */
    float temperature; /* divides the logits of those kept; 0 or less: the likeliest, always */
    uint64_t state;    /* of the generator; mur_sampler_seed sets it */
} mur_sampler;

/* Starts PCG32 (XSH-RR 64/32, stream 54) at a seed; any value is a good one. */
void mur_sampler_seed(mur_sampler *sampler, uint64_t seed);

/* Makes tokens seen lately less likely: of each, once, a positive logit is divided by penalty and
 * another one multiplied by it. penalty: above 0, 1 for no effect. recent: count ids, those
 * outside 0..n-1 are ignored; time is count squared. */
void mur_sampler_penalize(float *logits, uint32_t n, const uint32_t *recent, size_t count,
                          float penalty);

/* Scratch for a row of n logits; none is needed while top_k is 0 and top_p at least 1, nor for a
 * temperature of 0. */
size_t mur_sampler_scratch_bytes(uint32_t n);

/* The next token's id, 0..n-1; n is at least 1. A NaN counts as the lowest logit. Of equals the
 * lower id is the likelier.
 *   scratch   4-byte-aligned, see mur_sampler_scratch_bytes; may be NULL where none is needed
 * Draws one number from the generator, or none if the temperature is 0 or less. */
uint32_t mur_sampler_next(mur_sampler *sampler, const float *logits, uint32_t n, void *scratch);

/* The same where the likeliest is known already: the first of the greatest logits. */
uint32_t mur_sampler_next_to(mur_sampler *sampler, const float *logits, uint32_t n,
                             uint32_t likeliest, void *scratch);

#define MUR_LOWEST_LOGIT 0xff7fffffu /* -FLT_MAX's bits, which NaN and -infinity count as too */

/* Looks for a logit above the one whose bits are *bits: the first of the greatest of them, which
 * *bits becomes, or n if there is none. So a row may be searched in pieces. */
uint32_t mur_sampler_greater(const float *logits, uint32_t n, uint32_t *bits);

#endif
