/* mur_half.h - IEEE binary16 and bfloat16 to and from binary32, in integer arithmetic but where an
 * FPU of Arm converts. */
#ifndef MUR_HALF_H
#define MUR_HALF_H

#include "mur_real.h"

/* To binary32 exact, to binary16 nearest, ties to even, and from 65520 on infinity; a NaN becomes
 * quiet and keeps what fits of its fraction. An FPU with fused multiply-adds has both as
 * instructions, too; gcc's __ARM_FP does not tell it of FPUs of single precision. */
#if defined(__arm__) && defined(__ARM_FEATURE_FMA)

static inline float mur_float_of_half(uint16_t half)
{
    float value = mur_float_of(half);

    __asm__("vcvtb.f32.f16 %0, %0" : "+t"(value));
    return value;
}

static inline uint16_t mur_half_of_float(float value)
{
    __asm__("vcvtb.f16.f32 %0, %0" : "+t"(value));
    return (uint16_t)mur_float_bits(value);
}

#else

static inline float mur_float_of_half(uint16_t half)
{
    uint32_t magnitude = half & 0x7fffu, sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t bits = magnitude << 13;

    if (magnitude >= 0x7c00u) {
        bits += 0x70000000u; /* the exponent of infinities and NaNs */
        bits |= magnitude > 0x7c00u ? 0x400000u : 0;
    } else if (magnitude >= 0x0400u) {
        bits += 0x38000000u; /* 127 - 15 */
    } else {
        bits = mur_float_bits((float)magnitude * 0x1p-24f); /* a subnormal is a normal binary32 */
    }
    return mur_float_of(bits | sign);
}

static inline uint16_t mur_half_of_float(float value)
{
    uint32_t bits = mur_float_bits(value), sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu, shift, half, rest, middle;

    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
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

#endif

static inline float mur_float_of_bfloat(uint16_t bfloat)
{
    return mur_float_of((uint32_t)bfloat << 16);
}

/* Nearest, ties to even; a NaN stays one. */
static inline uint16_t mur_bfloat_of_float(float value)
{
    uint32_t bits = mur_float_bits(value);

    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#endif
