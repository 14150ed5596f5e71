/* mur_dsp_four.h - sums of products of four pixels, or of one, and two channels of any bytes: the
 * inner loops of mur_dsp_conv_wide_s8 and mur_dsp_matmul_s8. */
#ifndef MUR_DSP_FOUR_H
#define MUR_DSP_FOUR_H

#include "mur_dsp.h"

/* Two channels' sums of four pixels. The order of members is the assembly's. */
typedef struct mur_dsp_four {
    const uint32_t *x, *x_end; /* pairs of inputs of four pixels by turns; a multiple of 4 inputs */
    const uint32_t *w;         /* a word for two inputs: their weights of a in bytes 0 and 2 */
    int32_t *sums;             /* [2][4] */
} mur_dsp_four;

#if MUR_HAVE_DSP

/* two inputs of four pixels and two channels */
#define MUR_DSP_FOUR_MAC8 \
    "ldr r10, [lr], #4\n" \
    "ldrd r8, r9, [r12], #8\n" \
    "sxtb16 r11, r10\n" \
    "sxtb16 r10, r10, ror #8\n" \
    "smlad r0, r8, r11, r0\n" \
    "smlad r4, r8, r10, r4\n" \
    "smlad r1, r9, r11, r1\n" \
    "smlad r5, r9, r10, r5\n" \
    "ldrd r8, r9, [r12], #8\n" \
    "smlad r2, r8, r11, r2\n" \
    "smlad r6, r8, r10, r6\n" \
    "smlad r3, r9, r11, r3\n" \
    "smlad r7, r9, r10, r7\n"

/* clang-format off */
__attribute__((naked, noinline)) static void
mur_dsp_sum4(__attribute__((unused)) const mur_dsp_four *run)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "ldm r0, {r1-r4}\n"
                     "mov r12, r1\n"
                     "mov lr, r3\n"
                     "push {r2, r4}\n"
                     "mov r0, #0\n"
                     "mov r1, #0\n"
                     "mov r2, #0\n"
                     "mov r3, #0\n"
                     "mov r4, #0\n"
                     "mov r5, #0\n"
                     "mov r6, #0\n"
                     "mov r7, #0\n"
                     "1:\n"
                     MUR_DSP_FOUR_MAC8
                     MUR_DSP_FOUR_MAC8
                     "ldr r8, [sp]\n"
                     "cmp r12, r8\n"
                     "bne 1b\n"
                     "pop {r8, r9}\n"
                     "stm r9, {r0-r7}\n"
                     "pop {r4-r11, pc}\n" ::
                         : "memory");
}
/* clang-format on */

#else

static inline void mur_dsp_sum4(const mur_dsp_four *run)
{
    for (int32_t i = 0; i < 4; i++) {
        const uint32_t *w = run->w;
        int32_t a = 0, b = 0;

        for (const uint32_t *x = run->x + i; x < run->x_end; x += 4, w++) {
            a = mur_smlad(*x, mur_sxtb16(*w), a);
            b = mur_smlad(*x, mur_sxtb16_odd(*w), b);
        }
        run->sums[i] = a;
        run->sums[4 + i] = b;
    }
}

#endif

static inline void mur_dsp_sum1(const uint32_t *x, const uint32_t *x_end, const uint32_t *w,
                                int32_t *sums)
{
    int32_t a = 0, b = 0;

    for (; x != x_end; x++, w++) {
        a = mur_smlad(*x, mur_sxtb16(*w), a);
        b = mur_smlad(*x, mur_sxtb16_odd(*w), b);
    }
    sums[0] = a;
    sums[4] = b;
}

#endif
