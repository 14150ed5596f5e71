/* xorshift.h - numbers that look random and are the same in every run, on boards too. */
#ifndef XORSHIFT_H
#define XORSHIFT_H

#include <stdint.h>

/* Marsaglia's xorshift64* and xorshift32: the next number of a state, which is not 0. */
static inline uint32_t random_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)(*state * 0x2545f4914f6cdd1du >> 32);
}

static inline uint32_t random_next32(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

#endif
