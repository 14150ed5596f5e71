/* half.c - converts 16-bit floats to float32 and back, with the rounding of IEEE 754. */
#include "base/half.h"

float muc_f32_of_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31;
    uint32_t mantissa = half & 0x3ff;

    if (exponent == 31)
        return muc_f32_of_bits(sign | 0x7f800000 | mantissa << 13 | (mantissa ? 0x400000 : 0));
    if (exponent == 0) {
        if (mantissa == 0)
            return muc_f32_of_bits(sign);
        for (exponent = 1; !(mantissa & 0x400); exponent--)
            mantissa <<= 1;
        mantissa &= 0x3ff;
    }
    return muc_f32_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t muc_f16_of_f32(float value)
{
    uint32_t bits = muc_f32_bits(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    uint32_t mantissa, shift, half, rest, middle;

    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x33000000) /* below 2^-25 */
        return (uint16_t)sign;
    if (magnitude < 0x38800000) { /* subnormal result */
        shift = 126 - (magnitude >> 23);
        mantissa = (magnitude & 0x7fffff) | 0x800000;
        half = mantissa >> shift;
    } else {
        shift = 13;
        mantissa = magnitude - 0x38000000;
        half = mantissa >> shift;
    }
    rest = mantissa & ((1u << shift) - 1);
    middle = 1u << (shift - 1);
    if (rest > middle || (rest == middle && (half & 1)))
        half++;
    return (uint16_t)(sign | half);
}

uint16_t muc_bf16_of_f32(float value)
{
    uint32_t bits = muc_f32_bits(value);

    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
