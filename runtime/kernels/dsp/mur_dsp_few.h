/* mur_dsp_few.h - convolutions and pointwise layers of few inputs for each output, in TensorFlow
 * Lite's arithmetic, for mur_dsp_conv_few_s8 and mur_dsp_conv_few_narrow_s8: two pixels by four
 * channels at a time. What costs here is not the products but what makes a sum an int8, so weights
 * are halfwords, which need no unpacking, and scales, shifts and rounding are packed for each
 * channel.
 *
 * Weights: for each four channels their biases; for each word of two inputs a word a channel; then
 * of each channel its multiplier, what is added ahead of the shift, the shift; at last by how many
 * channels the next four lie behind, 0 at the end. The last four end with the last channel, and may
 * have some of those before again. Sums are doubled, as SMMLAR's result is half of what is wanted,
 * and outputs are 128 more until two at a time are cut to bytes. */
#ifndef MUR_DSP_FEW_H
#define MUR_DSP_FEW_H

#include "mur_dsp_scale.h"
#include "mur_dsp_twos.h"
#include "mur_dsp_window.h"

/* what changes from group to group is set by mur_dsp_multiply_few */
typedef struct mur_dsp_few {
    mur_dsp_twos run;
    const uint32_t *w;
    int32_t channels, group_words;
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

/* The same where many words follow each other, and how many bytes that is. A core that issues two
 * instructions at a time does so with products and loads of one word. */
#if MUR_DUAL_ISSUE
#define MUR_DSP_FEW_LOOP_BYTES "48"
#define MUR_DSP_FEW_LOOP16 \
    "ldrd r8, r9, [r12], #16\n" \
    "ldrd r10, r11, [lr], #16\n" \
    MUR_DSP_FEW_MAC(r0, r1, r10, r1) \
    "ldr r10, [lr, #-8]\n" \
    MUR_DSP_FEW_MAC(r2, r3, r11, r3) \
    "ldr r11, [lr, #-4]\n" \
    MUR_DSP_FEW_MAC(r4, r5, r10, r5) \
    MUR_DSP_FEW_MAC(r6, r7, r11, r7)
#else
#define MUR_DSP_FEW_LOOP_BYTES "44"
#define MUR_DSP_FEW_LOOP16 MUR_DSP_FEW_NEXT16
#endif

/* Two sums of a channel to outputs plus 128, of any size, but for the shift, which comes to `shift`;
 * `before` is that of the channel before, by `other`. lr is before the channel's scale. */
#define MUR_DSP_FEW_SCALE(s0, s1, shift, other, before) \
    "ldm lr!, {r8, r9, " #shift "}\n" \
    "add r11, r9, " #s0 ", asr #31\n" \
    before \
    "smmlar " #s0 ", " #s0 ", r8, r11\n" \
    "add " #other ", r9, " #s1 ", asr #31\n" \
    "smmlar " #s1 ", " #s1 ", r8, " #other "\n"

#define MUR_DSP_FEW_SHIFT(s0, s1, shift) \
    "asr " #s0 ", " #s0 ", " #shift "\n" \
    "asr " #s1 ", " #s1 ", " #shift "\n"

/* Channels a and c of two pixels, as halves, with b and d to int8, a first: all are 128 more, and any
 * of 16 bits. b and d change. */
#define MUR_DSP_FEW_JOIN(ac0, b0, d0, ac1, b1, d1) \
    "usat16 " #ac0 ", #8, " #ac0 "\n" \
    "pkhbt " #b0 ", " #b0 ", " #d0 ", lsl #16\n" \
    "usat16 " #ac1 ", #8, " #ac1 "\n" \
    "pkhbt " #b1 ", " #b1 ", " #d1 ", lsl #16\n" \
    "usat16 " #b0 ", #8, " #b0 "\n" \
    "usat16 " #b1 ", #8, " #b1 "\n" \
    "orr " #ac0 ", " #ac0 ", " #b0 ", lsl #8\n" \
    "orr " #ac1 ", " #ac1 ", " #b1 ", lsl #8\n" \
    "eor " #ac0 ", " #ac0 ", #0x80808080\n" \
    "eor " #ac1 ", " #ac1 ", #0x80808080\n"

/* All channels. On the stack a copy of *run, in whose place of `words` stands where a run over the
 * inputs goes on behind the first word: in a chain of nine, or ahead of it in a loop of four, which
 * x_end ends, 9 words before the inputs do; at 36 the first output. */
__attribute__((naked, noinline)) static void
mur_dsp_run_twos(__attribute__((unused)) const mur_dsp_twos *run)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "ldm r0, {r1-r9}\n"
                     "sub r2, r2, #144\n"
                     "mov r10, r4\n"
                     "adr r12, 3f + 1\n"
                     "mov lr, #44\n" /* bytes of the instructions of a word */
                     "rsbs r7, r7, #10\n"
                     "ittt mi\n"
                     "andmi r7, r7, #3\n"
                     "submi r12, r12, #4 * " MUR_DSP_FEW_LOOP_BYTES " + 8\n"
                     "movmi lr, #" MUR_DSP_FEW_LOOP_BYTES "\n"
                     "mla r7, r7, lr, r12\n"
                     "cmp r8, #1\n"
                     "it eq\n"
                     "moveq r5, #0\n"
                     "mov lr, r9\n"
                     "push {r1-r10}\n"
                     "1: ldm lr!, {r0, r2, r4, r6}\n"
                     "ldr r12, [sp]\n"
                     MUR_DSP_FEW_MAC16(r0, r2, r4, r6)
                     "ldr pc, [sp, #24]\n"
                     "2:\n"
                     MUR_DSP_FEW_LOOP16
                     MUR_DSP_FEW_LOOP16
                     MUR_DSP_FEW_LOOP16
                     MUR_DSP_FEW_LOOP16
                     "ldr r8, [sp, #4]\n"
                     "cmp r12, r8\n"
                     "bne.n 2b\n"
                     ".if . - 2b - 4 * " MUR_DSP_FEW_LOOP_BYTES " - 8\n"
                     ".error \"the loop takes other bytes\"\n"
                     ".endif\n"
                     "3:\n"
                     MUR_DSP_FEW_NEXT16
                     ".if . - 3b - 44\n"
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
                     MUR_DSP_FEW_SCALE(r0, r1, r10, r12, "")
                     MUR_DSP_FEW_SCALE(r2, r3, r12, r10, MUR_DSP_FEW_SHIFT(r0, r1, r10))
                     MUR_DSP_FEW_SCALE(r4, r5, r10, r12, MUR_DSP_FEW_SHIFT(r2, r3, r12))
                     MUR_DSP_FEW_SCALE(r6, r7, r12, r10, MUR_DSP_FEW_SHIFT(r4, r5, r10))
                     "pkhbt r0, r0, r4, lsl #16\n"
                     "pkhbt r1, r1, r5, lsl #16\n"
                     MUR_DSP_FEW_SHIFT(r6, r7, r12)
                     "ldrd r8, r9, [sp, #12]\n"
                     "ldr r10, [lr], #4\n"
                     MUR_DSP_FEW_JOIN(r0, r2, r6, r1, r3, r7)
                     "str r1, [r8, r9]\n"
                     "str r0, [r8]\n"
                     "add r8, r8, r10\n"
                     "str r8, [sp, #12]\n"
                     "cmp r10, #0\n"
                     "bne 1b\n"
                     MUR_DSP_NEXT_TWO("1b", "4f", "136")
                     "4: add sp, sp, #40\n"
                     "pop {r4-r11, pc}\n");
}
/* clang-format on */

#else

/* all channels of a pixel */
static void mur_dsp_run_one(const mur_dsp_twos *run, const uint32_t *x, int8_t *out)
{
    const uint32_t *w = run->w;
    int32_t next;

    do {
        const mur_dsp_tap_scale *scale = (const void *)(w + 4 + 4 * run->words);

        for (int32_t c = 0; c < 4; c++, scale++) {
            int32_t sum = (int32_t)w[c];

            for (int32_t k = 0; k < run->words; k++)
                sum = mur_smlad(x[4 * k], w[4 + 4 * k + c], sum);
            out[c] = mur_dsp_scale_few(sum, scale);
        }
        w = (const void *)scale;
        next = (int32_t)*w++;
        out += next;
    } while (next != 0);
}

static void mur_dsp_run_twos(const mur_dsp_twos *run)
{
    for (int32_t i = 0; i < run->pixels; i++)
        mur_dsp_run_one(run, run->x + (i >> 2) * (run->x_end - run->x) + (i & 3),
                        run->out + i * run->out_step);
}

#endif

/* a group of up to four pixels, or of fours */
static void mur_dsp_multiply_few(const mur_dsp_window *window, int32_t group, int32_t pixels,
                                 int8_t *out)
{
    mur_dsp_few *all = window->kernel;

    out += group * all->channels;
    all->run.w = all->w + group * all->group_words;
    all->run.out = out;
    all->run.pixels = pixels;
    mur_dsp_run_twos(&all->run);
    mur_dsp_clamp_pixels(window->layer, pixels, all->channels, out);
}

/* the whole layer; narrow: see mur_dsp_run_rows */
static inline __attribute__((always_inline)) void
mur_dsp_run_few(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch, int narrow)
{
    mur_dsp_runs runs = mur_dsp_runs_of(layer);
    mur_dsp_few all;

    all.run.x = scratch;
    all.run.x_end = all.run.x + runs.words * 8;
    all.run.out_step = layer->shape.out_c;
    all.run.words = mur_dsp_few_pairs(layer, &runs);
    all.w = layer->packed;
    all.channels = layer->shape.out_c / layer->shape.groups;
    all.group_words = ((all.channels + 3) >> 2) * mur_dsp_few_words(all.run.words);
    mur_dsp_run_rows(layer, in, out, scratch, 3, narrow, mur_dsp_multiply_few, &all);
}

#endif
