/* muc/guess.h - what a misspelt word was perhaps meant to be. */
#ifndef MUC_GUESS_H
#define MUC_GUESS_H

#include "muc/status.h"

MUC_API_BEGIN

/* Begins as { .word = WORD }; best stays NULL while no candidate is near. Both are borrowed. */
typedef struct muc_guess {
    const char *word, *best;
    unsigned distance; /* of best */
} muc_guess;

/* best becomes the candidate if it is near, and nearer: few letters inserted, left out or replaced,
 * or one word the beginning of the other. */
void muc_guess_try(muc_guess *guess, const char *candidate);

MUC_API_END

#endif
