/* mur_dsp_few.h - convolutions and pointwise layers of few inputs for each output, in TensorFlow
 * Lite's arithmetic, for mur_dsp_conv_few_s8 and mur_dsp_conv_few_narrow_s8: two pixels by four
 * channels at a time. What costs here is not the products but what makes a sum an int8, so weights
 * are halfwords, which need no unpacking, and scales, shifts and rounding are packed for each
 * channel.
 *
 * Weights: for each four channels their biases; for each word of two inputs a word a channel; then
 * of each channel its multiplier, what is added ahead of the shift, the shift less 1; at last by
 * how many channels the next four lie behind, 0 at the end. The last four end with the last
 * channel, and may have some of those before again. Sums are doubled, as SMMLAR's result is half of
 * what is wanted. */
#ifndef MUR_DSP_FEW_H
#define MUR_DSP_FEW_H

#include "mur_dsp_scale.h"
#include "mur_dsp_window.h"

/* what changes from group to group is set by mur_dsp_multiply_few */
typedef struct mur_dsp_few {
    const uint32_t *w;
    int32_t channels, pairs, group_words;
} mur_dsp_few;

#if MUR_HAVE_DSP

/* two inputs of a channel and two pixels, whose sums are s0 and s1, which begins with b */
/* clang-format off */
#define MUR_DSP_FEW_MAC(s0, s1, w, b) \
    "smlad " #s1 ", r9, " #w ", " #b "\n" \
    "smlad " #s0 ", r8, " #w ", " #s0 "\n"

/* the same of four channels */
#define MUR_DSP_FEW_MAC16(a1, b1, c1, d1) \
    "ldrd r8, r9, [r12], #16\n" \
    "ldrd r10, r11, [lr], #8\n" \
    MUR_DSP_FEW_MAC(r0, r1, r10, a1) \
    MUR_DSP_FEW_MAC(r2, r3, r11, b1) \
    "ldrd r10, r11, [lr], #8\n" \
    MUR_DSP_FEW_MAC(r4, r5, r10, c1) \
    MUR_DSP_FEW_MAC(r6, r7, r11, d1)

#define MUR_DSP_FEW_NEXT16 MUR_DSP_FEW_MAC16(r1, r3, r5, r7)

/* two sums of a channel to int8; lr is before the channel's scale */
#define MUR_DSP_FEW_OUT(s0, s1) \
    "ldm lr!, {r8, r9, r10}\n" MUR_DSP_SCALE_TWO(s0, s1, r8, r9, r10, r11, r12)

/* All channels of two pixels, the second `step` behind the first. Of the most words of inputs
 * `left_out` are not there. On the stack: x, out, step, where the second word begins. */
__attribute__((naked, noinline)) static void
mur_dsp_run_two(__attribute__((unused)) const uint32_t *x, __attribute__((unused)) const uint32_t *w,
        __attribute__((unused)) int8_t *out, __attribute__((unused)) int32_t step,
        __attribute__((unused)) int32_t left_out)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "ldr r4, [sp, #36]\n"
                     "adr r5, 2f + 1\n"
                     "mov r6, #44\n" /* bytes of the instructions of a word */
                     "mla r4, r4, r6, r5\n"
                     "mov lr, r1\n"
                     "push {r0, r2, r3, r4}\n"
                     "1: ldm lr!, {r0, r2, r4, r6}\n"
                     "ldr r12, [sp]\n"
                     MUR_DSP_FEW_MAC16(r0, r2, r4, r6)
                     "ldr pc, [sp, #12]\n"
                     "2:\n"
                     MUR_DSP_FEW_NEXT16
                     ".if . - 2b - 44\n"
                     ".error \"a word of inputs takes other than 44 bytes\"\n"
                     ".endif\n"
                     MUR_DSP_FEW_NEXT16
                     MUR_DSP_FEW_NEXT16
                     MUR_DSP_FEW_NEXT16
                     MUR_DSP_FEW_NEXT16
                     MUR_DSP_FEW_NEXT16
                     MUR_DSP_FEW_NEXT16
                     MUR_DSP_FEW_NEXT16
                     MUR_DSP_FEW_NEXT16
                     MUR_DSP_FEW_OUT(r0, r1)
                     MUR_DSP_FEW_OUT(r2, r3)
                     MUR_DSP_FEW_OUT(r4, r5)
                     MUR_DSP_FEW_OUT(r6, r7)
                     "bfi r0, r2, #8, #8\n"
                     "bfi r1, r3, #8, #8\n"
                     "bfi r4, r6, #8, #8\n"
                     "bfi r5, r7, #8, #8\n"
                     "ldrd r8, r9, [sp, #4]\n"
                     "ldr r10, [lr], #4\n"
                     "pkhbt r0, r0, r4, lsl #16\n"
                     "pkhbt r1, r1, r5, lsl #16\n"
                     "str r1, [r8, r9]\n"
                     "str r0, [r8]\n"
                     "add r8, r8, r10\n"
                     "str r8, [sp, #4]\n"
                     "cmp r10, #0\n"
                     "bne 1b\n"
                     "add sp, sp, #16\n"
                     "pop {r4-r11, pc}\n");
}
/* clang-format on */

#else

static void mur_dsp_run_two(const uint32_t *x, const uint32_t *w, int8_t *out, int32_t step,
                            int32_t left_out)
{
    int32_t pairs = MUR_DSP_FEW_PAIRS - left_out, next;

    do {
        const mur_dsp_tap_scale *scale = (const void *)(w + 4 + 4 * pairs);

        for (int32_t c = 0; c < 4; c++, scale++)
            for (int32_t i = 1; i >= 0; i--) { /* without a step the first stays */
                int32_t sum = (int32_t)w[c];

                for (int32_t k = 0; k < pairs; k++)
                    sum = mur_smlad(x[4 * k + i], w[4 + 4 * k + c], sum);
                out[i * step + c] = mur_dsp_scale_sum(sum, scale);
            }
        w = (const void *)scale;
        next = (int32_t)*w++;
        out += next;
    } while (next != 0);
}

#endif

/* a group of up to four pixels, or of fours */
static void mur_dsp_multiply_few(const mur_dsp_window *window, int32_t group, int32_t pixels,
                                 int8_t *out)
{
    const mur_dsp_few *all = window->kernel;
    const uint32_t *w = all->w + group * all->group_words;
    int32_t step = window->layer->shape.out_c, left_out = MUR_DSP_FEW_PAIRS - all->pairs;

    out += group * all->channels;
    for (int32_t i = 0; i < pixels; i += 2)
        mur_dsp_run_two(window->x + (i >> 2) * window->runs.words * 8 + (i & 3), w, out + i * step,
                        i + 1 < pixels ? step : 0, left_out);
    mur_dsp_clamp_pixels(window->layer, pixels, all->channels, out);
}

/* the whole layer; narrow: see mur_dsp_run_rows */
static inline __attribute__((always_inline)) void
mur_dsp_run_few(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch, int narrow)
{
    mur_dsp_runs runs = mur_dsp_runs_of(layer);
    mur_dsp_few all;

    all.w = layer->packed;
    all.channels = layer->shape.out_c / layer->shape.groups;
    all.pairs = mur_dsp_few_pairs(layer, &runs);
    all.group_words = ((all.channels + 3) >> 2) * mur_dsp_few_words(all.pairs);
    mur_dsp_run_rows(layer, in, out, scratch, 3, narrow, mur_dsp_multiply_few, &all);
}

#endif
