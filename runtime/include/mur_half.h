/* mur_half.h - IEEE binary16 and bfloat16 to and from binary32, in integer arithmetic. */
#ifndef MUR_HALF_H
#define MUR_HALF_H

#include <stdint.h>
#include <string.h>

/* Exact; a NaN keeps its fraction. */
static inline float mur_float_of_half(uint16_t half)
{
    uint32_t magnitude = half & 0x7fffu, sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t bits = magnitude << 13;
    float value;

    if (magnitude >= 0x7c00u) {
        bits += 0x70000000u; /* the exponent of infinities and NaNs */
    } else if (magnitude >= 0x0400u) {
        bits += 0x38000000u; /* 127 - 15 */
    } else {
        value = (float)magnitude * 0x1p-24f; /* a subnormal is a normal binary32 */
        memcpy(&bits, &value, sizeof(bits));
    }
    bits |= sign;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Nearest, ties to even; from 65520 on infinity; a NaN becomes the quiet NaN. */
static inline uint16_t mur_half_of_float(float value)
{
    uint32_t bits, magnitude, sign, shift, half, rest, middle;

    memcpy(&bits, &value, sizeof(bits));
    sign = bits >> 16 & 0x8000u;
    magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x33000000u) /* below 2^-25 */
        return (uint16_t)sign;
    if (magnitude < 0x38800000u) { /* a subnormal half */
        shift = 126 - (magnitude >> 23);
        magnitude = (magnitude & 0x7fffffu) | 0x800000u;
    } else {
        shift = 13;
        magnitude -= 0x38000000u;
    }
    half = magnitude >> shift;
    rest = magnitude & ((1u << shift) - 1);
    middle = 1u << (shift - 1);
    if (rest > middle || (rest == middle && (half & 1u)))
        half++;
    return (uint16_t)(sign | half);
}

static inline float mur_float_of_bfloat(uint16_t bfloat)
{
    uint32_t bits = (uint32_t)bfloat << 16;
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Nearest, ties to even; a NaN stays one. */
static inline uint16_t mur_bfloat_of_float(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#endif
