/* mur_dsp_taps.h - pairs of outputs of four channels of a depthwise layer, whatever its window: the
 * inner loop of mur_dsp_depthwise_taps_s8. */
#ifndef MUR_DSP_TAPS_H
#define MUR_DSP_TAPS_H

#include "mur_dsp_depthwise.h"

/* Lines of outputs, two by two; the order of members is the assembly's. */
typedef struct mur_dsp_taps {
    const mur_dsp_tap *taps; /* at least 1; weights are doubled */
    const uint8_t *x[2];     /* the first two windows: pixels of four int8, at multiples of 4 */
    const int32_t *bias;     /* [4], doubled */
    int8_t *out[2];          /* [channels]; no more bytes are written */
    const mur_dsp_tap_scale *scales_end;
    int32_t channels;         /* 1 to 4 */
    int32_t left;             /* as `pairs`, to begin with */
    int32_t x_step, out_step; /* bytes from pair to pair */
    int32_t pairs, lines;     /* of a line, and of such; at least 1 */
    int32_t x_next, out_next; /* bytes from a line's end to the next line's beginning */
} mur_dsp_taps;

#if MUR_HAVE_DSP

/* products of channels `low` and `high` of an output, whose sums begin with others */
#define MUR_DSP_TAP(x, turn, low, high, low_from, high_from) \
    "ldr lr, [" #x ", r11]\n" \
    "sxtb16 lr, lr" turn "\n" \
    "smlabb " #low ", lr, r12, " #low_from "\n" \
    "smlatt " #high ", lr, r12, " #high_from "\n"

/* a tap of both outputs, whose second one's sums begin with others; flags: is there a next one? */
#define MUR_DSP_TAP_PAIR(a, b, c, d) \
    "ldr r12, [r8, #-8]\n" MUR_DSP_TAP(r10, "", r4, r6, a, c) MUR_DSP_TAP( \
        r9, "", r0, r2, r0, r2) "ldr r12, [r8, #-4]\n" MUR_DSP_TAP(r10, ", ror #8", r5, r7, b, d) \
        MUR_DSP_TAP(r9, ", ror #8", r1, r3, r1, r3) "ldr r11, [r8], #12\n" \
                                                    "cmp r11, #0\n"

/* On the stack a copy of *run; behind it, where the channels that are there begin, from the last.
 */
/* clang-format off */
__attribute__((naked, noinline)) static void
mur_dsp_taps_run(__attribute__((unused)) const mur_dsp_taps *run)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "ldr r1, [r0, #28]\n"
                     "adr r2, 4f + 1\n"
                     "mov r3, #36\n" /* bytes of the instructions of a channel */
                     "mls r8, r1, r3, r2\n"
                     "add r9, r0, #32\n"
                     "ldm r9, {r1-r7}\n"
                     "push {r1-r8}\n"
                     "ldm r0, {r1-r8}\n"
                     "push {r1-r8}\n"
                     "1: ldm sp, {r8, r9, r10, r12}\n"
                     "ldm r12, {r0-r3}\n"
                     "ldr r11, [r8], #12\n"
                     MUR_DSP_TAP_PAIR(r0, r1, r2, r3)
                     "blt 3f\n"
                     "2:\n"
                     MUR_DSP_TAP_PAIR(r4, r5, r6, r7)
                     "bge 2b\n"
                     "3: ldr r11, [sp, #36]\n"
                     "ldr r12, [sp, #24]\n"
                     "add r9, r9, r11\n"
                     "add r10, r10, r11\n"
                     "strd r9, r10, [sp, #4]\n"
                     "ldr pc, [sp, #60]\n"
                     ".balign 4\n"
                     MUR_DSP_TAPS_OUT(r3, r7)
                     MUR_DSP_TAPS_OUT(r2, r6)
                     MUR_DSP_TAPS_OUT(r1, r5)
                     "5:\n"
                     MUR_DSP_TAPS_OUT(r0, r4)
                     "4:\n"
                     ".if . - 5b - 36\n"
                     ".error \"a channel takes other than 36 bytes\"\n"
                     ".endif\n"
                     "ldr r10, [sp, #28]\n"
                     "ldrd r8, lr, [sp, #16]\n"
                     "ldr r9, [sp, #40]\n"
                     "cmp r10, #4\n"
                     "bne 7f\n"
                     MUR_DSP_TAPS_JOIN
                     "str r0, [r8]\n"
                     "str r4, [lr]\n"
                     "6: ldr r0, [sp, #32]\n"
                     "add r8, r8, r9\n"
                     "add lr, lr, r9\n"
                     "subs r0, r0, #1\n"
                     "strd r8, lr, [sp, #16]\n"
                     "str r0, [sp, #32]\n"
                     "bne 1b\n"
                     "ldrd r0, r1, [sp, #44]\n"
                     "ldrd r2, r3, [sp, #52]\n"
                     "ldrd r9, r10, [sp, #4]\n"
                     "subs r1, r1, #1\n"
                     "add r8, r8, r3\n"
                     "add lr, lr, r3\n"
                     "add r9, r9, r2\n"
                     "add r10, r10, r2\n"
                     "str r0, [sp, #32]\n"
                     "str r1, [sp, #48]\n"
                     "strd r8, lr, [sp, #16]\n"
                     "strd r9, r10, [sp, #4]\n"
                     "bne 1b\n"
                     "add sp, sp, #64\n"
                     "pop {r4-r11, pc}\n"
                     "7: strb r0, [r8]\n"
                     "strb r4, [lr]\n"
                     "cmp r10, #2\n"
                     "blt 6b\n"
                     "strb r1, [r8, #1]\n"
                     "strb r5, [lr, #1]\n"
                     "beq 6b\n"
                     "strb r2, [r8, #2]\n"
                     "strb r6, [lr, #2]\n"
                     "b 6b\n" ::
                         : "memory");
}
/* clang-format on */

#else

static inline int8_t mur_dsp_taps_output(const mur_dsp_taps *run, const uint8_t *x, int32_t c)
{
    const mur_dsp_tap_scale *scale = run->scales_end - run->channels + c;
    int32_t sum = run->bias[c];

    for (const mur_dsp_tap *tap = run->taps; tap->offset >= 0; tap++)
        sum += (int8_t)x[tap->offset + c] *
               (int16_t)((c & 1 ? tap->odd : tap->even) >> (c & 2 ? 16 : 0));
    return mur_dsp_scale_sum(sum, scale);
}

static inline void mur_dsp_taps_run(const mur_dsp_taps *run)
{
    for (int32_t i = 0; i < run->lines * run->pairs; i++) {
        int32_t line = i / run->pairs, at = i * run->x_step + line * run->x_next;
        int32_t to = i * run->out_step + line * run->out_next;

        for (int32_t j = 0; j < 2; j++)
            for (int32_t c = 0; c < run->channels; c++)
                run->out[j][to + c] = mur_dsp_taps_output(run, run->x[j] + at, c);
    }
}

#endif

#endif
