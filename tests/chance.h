/* chance.h - the tests' one source of chance: the same numbers in every run. */
#ifndef CHANCE_H
#define CHANCE_H

#include <math.h>
#include <stdint.h>

/* xorshift64* */
static inline uint32_t random_u32(void)
{
    static uint64_t state = 1;

    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)(state * 0x2545f4914f6cdd1du >> 32);
}

static inline double random_unit(void) /* in (0, 1) */
{
    return (random_u32() + 0.5) / 4294967296.0;
}

static inline double random_gaussian(void)
{
    return sqrt(-2 * log(random_unit())) * cos(2 * acos(-1.0) * random_unit());
}

static inline double random_laplace(void)
{
    return log(random_unit()) * (random_u32() & 1 ? 1 : -1);
}

static inline double random_student4(void) /* 4 degrees of freedom */
{
    double squares = 0;

    for (int i = 0; i < 4; i++) {
        double g = random_gaussian();

        squares += g * g;
    }
    return random_gaussian() / sqrt(squares / 4);
}

#endif
