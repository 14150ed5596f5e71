/* mur_dsp.h - Armv7E-M's instructions on pairs of 16 bits; elsewhere the same results in C, so that
 * the kernels are tested where they are built. A word's low half is the element that comes first.
 */
#ifndef MUR_DSP_H
#define MUR_DSP_H

#include <stdint.h>

#if defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP
#define MUR_HAVE_DSP 1
#else
#define MUR_HAVE_DSP 0
#endif

/* Does the core issue two instructions at a time? Of Armv7E-M, Cortex-M7 does, which alone has a
 * floating-point unit of version 5, or of double precision. Either order gives the same bits. */
#ifndef MUR_DUAL_ISSUE
#if MUR_HAVE_DSP && defined(__ARM_ARCH_7EM__) && \
    (defined(__ARM_FPV5__) || (defined(__ARM_FP) && __ARM_FP & 8))
#define MUR_DUAL_ISSUE 1
#else
#define MUR_DUAL_ISSUE 0
#endif
#endif

/* Two int16 at an address that is a multiple of 4. */
typedef uint32_t mur_word __attribute__((may_alias));

static inline uint32_t mur_two(const int16_t *p)
{
    return *(const mur_word *)(const void *)p;
}

/* four int8 of any alignment */
static inline uint32_t mur_four(const int8_t *p)
{
    uint32_t word;

    __builtin_memcpy(&word, p, sizeof(word));
    return word;
}

/* sum + both products of signed halves, modulo 2^32 */
static inline int32_t mur_smlad(uint32_t a, uint32_t b, int32_t sum)
{
#if MUR_HAVE_DSP
    int32_t out;

    __asm__("smlad %0, %1, %2, %3" : "=r"(out) : "r"(a), "r"(b), "r"(sum));
    return out;
#else
    int32_t low = (int16_t)a * (int16_t)b, high = (int16_t)(a >> 16) * (int16_t)(b >> 16);

    return (int32_t)((uint32_t)sum + (uint32_t)low + (uint32_t)high);
#endif
}

/* the low halves of two, the second's above the first's */
static inline uint32_t mur_halves(uint32_t first, uint32_t second)
{
#if MUR_HAVE_DSP
    uint32_t out;

    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(out) : "r"(first), "r"(second));
    return out;
#else
    return (first & 0xffff) | second << 16;
#endif
}

/* the high halves of two, the second's above the first's */
static inline uint32_t mur_upper_halves(uint32_t first, uint32_t second)
{
#if MUR_HAVE_DSP
    uint32_t out;

    __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(out) : "r"(second), "r"(first));
    return out;
#else
    return first >> 16 | (second & 0xffff0000u);
#endif
}

/* bytes 0 and 2, sign-extended to halves */
static inline uint32_t mur_sxtb16(uint32_t a)
{
#if MUR_HAVE_DSP
    uint32_t out;

    __asm__("sxtb16 %0, %1" : "=r"(out) : "r"(a));
    return out;
#else
    int32_t low = (int8_t)a, high = (int8_t)(a >> 16);

    return ((uint32_t)low & 0xffffu) | (uint32_t)high << 16;
#endif
}

/* bytes 1 and 3 */
static inline uint32_t mur_sxtb16_odd(uint32_t a)
{
#if MUR_HAVE_DSP
    uint32_t out;

    __asm__("sxtb16 %0, %1, ror #8" : "=r"(out) : "r"(a));
    return out;
#else
    return mur_sxtb16(a >> 8);
#endif
}

/* bytes 0 and 2, added to the halves of a sum */
static inline uint32_t mur_sxtab16(uint32_t sum, uint32_t a)
{
#if MUR_HAVE_DSP
    uint32_t out;

    __asm__("sxtab16 %0, %1, %2" : "=r"(out) : "r"(sum), "r"(a));
    return out;
#else
    uint32_t wide = mur_sxtb16(a);

    return ((sum + wide) & 0xffffu) | (((sum >> 16) + (wide >> 16)) << 16);
#endif
}

/* bytes 1 and 3 */
static inline uint32_t mur_sxtab16_odd(uint32_t sum, uint32_t a)
{
#if MUR_HAVE_DSP
    uint32_t out;

    __asm__("sxtab16 %0, %1, %2, ror #8" : "=r"(out) : "r"(sum), "r"(a));
    return out;
#else
    return mur_sxtab16(sum, a >> 8);
#endif
}

#endif
