/* half_cases.c - a half's value by its definition; a number's half by the middles around it. */
#include "half_cases.h"

#include <string.h>

#include "mur_half.h"

enum { INFINITE = 0x7c00, SIGN = 0x8000 };

static float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* of 0 to infinity, which counts as 2^16: what would follow the largest half */
static float value_of(uint32_t half)
{
    uint32_t exponent = half >> 10, fraction = half & 0x3ff;
    float value = (float)(exponent ? fraction + 0x400 : fraction) / (1 << 24);

    return exponent ? value * (float)(1u << (exponent - 1)) : value;
}

static float middle(uint32_t half)
{
    return (value_of(half) + value_of(half + 1)) / 2;
}

uint32_t half_check_widening(void)
{
    uint32_t wrong = 0;

    for (uint32_t half = 0; half < SIGN; half++) {
        uint32_t bits = half < INFINITE    ? bits_of(value_of(half))
                        : half == INFINITE ? 0x7f800000
                                           : 0x7fc00000 | half << 13;

        wrong += bits_of(mur_float_of_half((uint16_t)half)) != bits;
        wrong += bits_of(mur_float_of_half((uint16_t)(half | SIGN))) != (bits | 0x80000000);
    }
    return wrong;
}

/* whether the number of these bits is a half, or lies between the middles on its sides, or at one
 * and the half is even */
static int narrows(uint32_t bits)
{
    uint32_t magnitude = bits & 0x7fffffff, sign = bits >> 16 & SIGN;
    uint32_t half = mur_half_of_float(float_of(bits)) ^ sign;
    float value = float_of(magnitude);
    int even = half % 2 == 0;

    if (magnitude > 0x7f800000)
        return half == (0x7e00 | (magnitude >> 13 & 0x3ff));
    if (half > INFINITE ||
        (half < INFINITE && (value > middle(half) || (value == middle(half) && !even))))
        return 0;
    return half == 0 || value > middle(half - 1) || (value == middle(half - 1) && even);
}

uint32_t half_check_narrowing(uint32_t rounds)
{
    uint32_t wrong = 0, state = 1;

    for (uint32_t half = 0; half < INFINITE; half++)
        for (uint32_t i = 0; i < 6; i++) {
            float value = i % 2 ? middle(half) : value_of(half);

            wrong += !narrows((bits_of(value) - (value > 0) + i / 2) ^ half << 31);
        }
    for (uint32_t i = 0; i < rounds; i++) {
        state = state * 1664525 + 1013904223;
        wrong += !narrows(state ^ state >> 16);
        wrong += !narrows(state | 0x7f800000); /* a NaN */
    }
    return wrong;
}
