/* half.h - 16-bit floats to and from float32, in integer arithmetic. */
#ifndef MUC_HALF_H
#define MUC_HALF_H

#include <stdint.h>
#include <string.h>

static inline float muc_f32_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint32_t muc_f32_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float muc_f32_of_bf16(uint16_t half)
{
    return muc_f32_of_bits((uint32_t)half << 16);
}

/* Exact, subnormals and infinities included; a NaN becomes quiet, as by a processor's instruction.
 */
float muc_f32_of_f16(uint16_t half);
/* Nearest, ties to even; overflow gives infinity; a NaN becomes quiet and keeps what fits of its
 * fraction. */
uint16_t muc_f16_of_f32(float value);
uint16_t muc_bf16_of_f32(float value); /* the same */

#endif
