/* chance.h - random numbers of several distributions: the same ones in every run. */
#ifndef CHANCE_H
#define CHANCE_H

#include <math.h>

#include "xorshift.h"

static inline uint32_t random_u32(void)
{
    static uint64_t state = 1;

    return random_next(&state);
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
