/* mur_dsp_quad.h - sums of products of pixels with all output channels, two pixels by four channels
 * at a time, requantized: the inner loop of mur_single_conv_s8. Two inputs take 14
 * instructions for 16 products, with all loads side by side, where a core that issues one
 * instruction at a time reads fastest.
 *
 * A group of four channels is two pairs as mur_dsp_sums.h has them, word by word in turns: biases
 * a and c, 256 * bias b + bias a and the same of d and c, the weights, multipliers of a, c, b, d;
 * then a word with the right shifts less 1, a's in byte 0. Sums are doubled, as SMMLAR's result is
 * half of what is wanted. If the output's zero point is -128, as a ReLU leaves it, negative sums
 * end there whatever their rounding, and a sum needs no look at its sign. */
#ifndef MUR_DSP_QUAD_H
#define MUR_DSP_QUAD_H

#include "mur_dsp_twos.h"

#if MUR_HAVE_DSP

/* two inputs of two pixels and four channels, inputs at r12, weights 8 bytes behind lr; the second
 * pixel's sums begin with those of their arguments */
/* clang-format off */
#define MUR_DSP_QUAD_MAC16(a1, c1, b1, d1) \
    "ldr r8, [r12], #16\n" \
    "ldr r10, [lr, #8]!\n" \
    "ldr r9, [r12, #-12]\n" \
    "ldr r11, [lr, #4]\n" \
    "smlad r5, r9, r10, " #b1 "\n" \
    "smlad r4, r8, r10, r4\n" \
    "sxtb16 r10, r10\n" \
    "smlad r7, r9, r11, " #d1 "\n" \
    "smlad r6, r8, r11, r6\n" \
    "sxtb16 r11, r11\n" \
    "smlad r1, r9, r10, " #a1 "\n" \
    "smlad r0, r8, r10, r0\n" \
    "smlad r3, r9, r11, " #c1 "\n" \
    "smlad r2, r8, r11, r2\n"

#define MUR_DSP_QUAD_NEXT16 MUR_DSP_QUAD_MAC16(r1, r3, r5, r7)

/* a pair's sums to outputs: multipliers in r8 and r9, shifts from byte 0 of r10, twice the zero
 * point plus 1 in r11; `add` adds what is ahead of the shift, in r12 */
#define MUR_DSP_QUAD_OUT(a0, a1, b0, b1, add, again) \
    "subs " #b0 ", " #b0 ", " #a0 "\n" \
    "subs " #b1 ", " #b1 ", " #a1 "\n" \
    "asrs " #b0 ", " #b0 ", #7\n" \
    "asrs " #b1 ", " #b1 ", #7\n" \
    "lsls " #a0 ", " #a0 ", #1\n" \
    "lsls " #a1 ", " #a1 ", #1\n" \
    "lsl r12, r11, r10\n" \
    add(a0, r8) \
    add(a1, r8) \
    "asr " #a0 ", " #a0 ", r10\n" \
    "asr " #a1 ", " #a1 ", r10\n" \
    again \
    "lsr r10, r10, #8\n" \
    "ssat " #a0 ", #8, " #a0 ", asr #1\n" \
    "ssat " #a1 ", #8, " #a1 ", asr #1\n" \
    "lsl r12, r11, r10\n" \
    add(b0, r9) \
    add(b1, r9) \
    "asr " #b0 ", " #b0 ", r10\n" \
    "asr " #b1 ", " #b1 ", r10\n" \
    "ssat " #b0 ", #8, " #b0 ", asr #1\n" \
    "ssat " #b1 ", #8, " #b1 ", asr #1\n" \
    "bfi " #a0 ", " #b0 ", #8, #8\n" \
    "bfi " #a1 ", " #b1 ", #8, #8\n"

#define MUR_DSP_QUAD_SCALE(r, mul) \
    "smmlar " #r ", " #r ", " #mul ", r12\n"

/* halves away from zero */
#define MUR_DSP_QUAD_SCALE_SIGNED(r, mul) \
    "add r11, r12, " #r ", asr #31\n" \
    "smmlar " #r ", " #r ", " #mul ", r11\n"

#define MUR_DSP_QUAD_ZERO "ldr r11, [sp, #20]\n"

/* On the stack a copy of *quad, in whose place of `words` stands where the loop at 2 begins: behind
 * as many of its four words of inputs as make their number a multiple of 4; at 36 the first output. lr
 * is 28 bytes ahead of a group of channels, as behind the loop over the one before. A last pixel
 * alone has no step, and its outputs replace those of what would be the next. */
__attribute__((naked, noinline)) static void
mur_dsp_run_quads(__attribute__((unused)) const mur_dsp_twos *quad)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "ldm r0, {r1-r9}\n"
                     "sub r3, r3, #28\n"
                     "sub r9, r9, #28\n"
                     "mov r10, r4\n"
                     "rsb r7, r7, #0\n"
                     "and r7, r7, #3\n"
                     "adr r12, 2f + 57\n" /* the first half of a word is ahead of the loop */
                     "mov lr, #112\n" /* bytes of the instructions of a word */
                     "mla r7, r7, lr, r12\n"
                     "cmp r8, #1\n"
                     "it eq\n"
                     "moveq r5, #0\n"
                     "mov lr, r9\n"
                     "push {r1-r10}\n"
                     "b 1f\n"
                     "2:\n"
                     MUR_DSP_QUAD_NEXT16
                     MUR_DSP_QUAD_NEXT16
                     ".if . - 2b - 112\n"
                     ".error \"a word of inputs takes other than 112 bytes\"\n"
                     ".endif\n"
                     MUR_DSP_QUAD_NEXT16
                     MUR_DSP_QUAD_NEXT16
                     MUR_DSP_QUAD_NEXT16
                     MUR_DSP_QUAD_NEXT16
                     MUR_DSP_QUAD_NEXT16
                     MUR_DSP_QUAD_NEXT16
                     "ldr r8, [sp, #4]\n"
                     "cmp r12, r8\n"
                     "bne 2b\n"
                     "ldr r8, [lr, #8]\n"
                     "ldr r9, [lr, #16]\n"
                     "ldr r10, [lr, #24]\n"
                     MUR_DSP_QUAD_ZERO
                     "cmn r11, #255\n"
                     "bne 4f\n"
                     MUR_DSP_QUAD_OUT(r0, r1, r4, r5, MUR_DSP_QUAD_SCALE, "")
                     "ldr r8, [lr, #12]\n"
                     "ldr r9, [lr, #20]\n"
                     "lsr r10, r10, #8\n"
                     MUR_DSP_QUAD_OUT(r2, r3, r6, r7, MUR_DSP_QUAD_SCALE, "")
                     "3: pkhbt r0, r0, r2, lsl #16\n"
                     "pkhbt r1, r1, r3, lsl #16\n"
                     "ldr r12, [sp, #12]\n"
                     "ldr r9, [sp, #8]\n"
                     "ldr r8, [sp, #16]\n"
                     "str r1, [r12, r8]\n"
                     "str r0, [r12], #4\n"
                     "str r12, [sp, #12]\n"
                     "cmp lr, r9\n"
                     "beq 5f\n"
                     "1: ldr r4, [lr, #36]!\n"
                     "ldr r12, [sp]\n"
                     "ldr r0, [lr, #-8]\n"
                     "ldr r2, [lr, #-4]\n"
                     "ldr r6, [lr, #4]\n"
                     MUR_DSP_QUAD_MAC16(r0, r2, r4, r6)
                     "ldr pc, [sp, #24]\n"
                     "4:\n"
                     MUR_DSP_QUAD_OUT(r0, r1, r4, r5, MUR_DSP_QUAD_SCALE_SIGNED, MUR_DSP_QUAD_ZERO)
                     "ldr r8, [lr, #12]\n"
                     "ldr r9, [lr, #20]\n"
                     MUR_DSP_QUAD_ZERO
                     "lsr r10, r10, #8\n"
                     MUR_DSP_QUAD_OUT(r2, r3, r6, r7, MUR_DSP_QUAD_SCALE_SIGNED, MUR_DSP_QUAD_ZERO)
                     "b 3b\n"
                     "5:\n" MUR_DSP_NEXT_TWO("1b", "6f", "-8")
                     "6: add sp, sp, #40\n"
                     "pop {r4-r11, pc}\n");
}
/* clang-format on */

#else

#include "mur_nn_arith.h"

static inline int8_t mur_dsp_quad_output(int32_t sum, uint32_t mul, uint32_t shift, int32_t zero)
{
    int32_t scaled = mur_scale_q31(sum, (int32_t)mul, -(int32_t)(shift & 255) - 1);

    return (int8_t)mur_clamp(scaled + (zero - 1) / 2, INT8_MIN, INT8_MAX);
}

static inline void mur_dsp_run_quads(const mur_dsp_twos *quad)
{
    int8_t *out = quad->out;

    for (const uint32_t *w = quad->w; w != quad->w_end; out += 4) {
        const uint32_t *last = w + 4 + 4 * quad->words;

        for (int32_t i = 0; i < 2 * quad->pixels; i++) { /* pairs of outputs */
            int32_t pair = i & 1, a = (int32_t)w[pair], b = (int32_t)w[2 + pair];
            const uint32_t *x = quad->x + (i >> 3) * 8 * quad->words + (i >> 1 & 3);
            const uint32_t *h = w + 4 + pair;
            int8_t *to = out + (i >> 1) * quad->out_step + 2 * pair;
            uint32_t shifts = last[4] >> 16 * pair;

            for (; h < last; h += 2, x += 4) {
                a = mur_smlad(*x, mur_sxtb16(*h), a);
                b = mur_smlad(*x, *h, b);
            }
            b = mur_asr((int32_t)((uint32_t)b - (uint32_t)a), 8);
            to[0] = mur_dsp_quad_output(a, last[pair], shifts, quad->zero);
            to[1] = mur_dsp_quad_output(b, last[2 + pair], shifts >> 8, quad->zero);
        }
        w = last + 5;
    }
}

#endif

#endif
