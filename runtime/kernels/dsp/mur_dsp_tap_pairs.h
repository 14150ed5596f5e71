/* mur_dsp_tap_pairs.h - pairs of outputs of four channels of a depthwise layer by pairs of taps:
 * the inner loops of mur_dsp_depthwise_pairs_s8. */
#ifndef MUR_DSP_TAP_PAIRS_H
#define MUR_DSP_TAP_PAIRS_H

#include "mur_dsp_depthwise.h"

/* Lines of pairs of outputs; the order of members is the assembly's. */
typedef struct mur_dsp_pair_run {
    const int32_t *list;   /* four biases, doubled, and mur_dsp_tap_pair, at least one */
    const uint32_t *x;     /* the first window; those of a line's outputs are 16 bytes apart */
    const uint32_t *x_end; /* behind the last window of the line, at least two */
    const mur_dsp_tap_scale *scales_end;
    int8_t *out;      /* [4]; no more bytes are written than the last `channels` */
    int32_t out_step; /* to the pair's other output; 0 if there is none */
    int32_t channels; /* 1 to 4 */
    int32_t lines;    /* at least 1 */
    int32_t x_next;   /* bytes from a line's end to the next line's beginning */
    int32_t x_pitch;  /* from line to line */
    int32_t out_next; /* as x_next */
} mur_dsp_pair_run;

/* Elements of a plane. The order of members is the assembly's. */
typedef struct mur_dsp_pair_copy {
    uint32_t *to;
    const int8_t *a, *b;    /* the first tap's and the second's */
    int32_t a_step, b_step; /* bytes from element to element */
    int32_t count, lines;   /* at least 1 */
    int32_t to_next, next;  /* bytes from a line's end to the next line's beginning */
} mur_dsp_pair_copy;

#if MUR_HAVE_DSP

/* products of channels `low` and `high` of an output, whose sums begin with others */
#define MUR_DSP_PAIR_PRODUCTS(at, low, high, low_from, high_from) \
    "ldrd r12, lr, [r9, #" #at "]\n" \
    "smlad " #low ", r12, r10, " #low_from "\n" \
    "smlad " #high ", lr, r11, " #high_from "\n"

/* a pair of taps of both outputs, whose second one's sums begin with others; flags: the last? */
#define MUR_DSP_PAIR_STEP(a, b, c, d) \
    "ldrd r10, r11, [r8], #20\n" MUR_DSP_PAIR_PRODUCTS(16, r4, r5, a, b) MUR_DSP_PAIR_PRODUCTS( \
        0, r0, r1, r0, r1) "ldrd r10, r11, [r8, #-12]\n" MUR_DSP_PAIR_PRODUCTS(24, r6, r7, c, d) \
        MUR_DSP_PAIR_PRODUCTS(8, r2, r3, r2, r3) "ldr r10, [r8, #-4]\n" \
                                                 "cmp r10, #1\n" \
                                                 "add r9, r9, r10\n"

/* On the stack a copy of *run; behind it, where outputs are stored. */
/* clang-format off */
__attribute__((naked, noinline)) static void
mur_dsp_pairs_run(__attribute__((unused)) const mur_dsp_pair_run *run)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "ldm r0, {r0-r10}\n"
                     "adr r11, 6f + 1\n"
                     "cmp r6, #4\n"
                     "it eq\n"
                     "adreq r11, 5f + 1\n"
                     "push {r0-r11}\n"
                     "1: ldrd r8, r9, [sp]\n"
                     "ldm r8!, {r0-r3}\n"
                     MUR_DSP_PAIR_STEP(r0, r1, r2, r3)
                     "beq 3f\n"
                     "2:\n"
                     MUR_DSP_PAIR_STEP(r4, r5, r6, r7)
                     "bne 2b\n"
                     "3: ldrd r8, r9, [sp, #4]\n"
                     "ldr r12, [sp, #12]\n"
                     "add r8, r8, #32\n"
                     "str r8, [sp, #4]\n"
                     "cmp r8, r9\n"
                     MUR_DSP_TAPS_OUT(r3, r7)
                     MUR_DSP_TAPS_OUT(r2, r6)
                     MUR_DSP_TAPS_OUT(r1, r5)
                     MUR_DSP_TAPS_OUT(r0, r4)
                     "ldrd r8, r9, [sp, #16]\n"
                     "ldr pc, [sp, #44]\n"
                     ".balign 4\n"
                     "5:\n"
                     MUR_DSP_TAPS_JOIN
                     "str r4, [r8, r9]\n"
                     "str r0, [r8]\n"
                     "7: add r8, r8, r9, lsl #1\n"
                     "str r8, [sp, #16]\n"
                     "bne 1b\n"
                     "ldrd r0, r1, [sp, #28]\n"
                     "ldrd r2, r3, [sp, #36]\n"
                     "ldrd r4, r5, [sp, #4]\n"
                     "add r8, r8, r3\n"
                     "add r4, r4, r1\n"
                     "add r5, r5, r2\n"
                     "subs r0, r0, #1\n"
                     "str r8, [sp, #16]\n"
                     "strd r4, r5, [sp, #4]\n"
                     "str r0, [sp, #28]\n"
                     "bne 1b\n"
                     "add sp, sp, #48\n"
                     "pop {r4-r11, pc}\n"
                     ".balign 4\n"
                     "6:\n"
                     MUR_DSP_TAPS_JOIN
                     "add r10, r8, r9\n" /* the second output first: it may be the first's place */
                     "ldr r11, [sp, #24]\n"
                     "lsr r5, r4, #16\n"
                     "lsr r1, r0, #16\n"
                     "cmp r11, #2\n"
                     "blt 9f\n"
                     "strh r5, [r10, #2]\n"
                     "strh r1, [r8, #2]\n"
                     "beq 8f\n"
                     "lsr r5, r4, #8\n"
                     "lsr r1, r0, #8\n"
                     "strb r5, [r10, #1]\n"
                     "strb r1, [r8, #1]\n"
                     "8: ldrd r10, r11, [sp, #4]\n"
                     "cmp r10, r11\n"
                     "b 7b\n"
                     "9: lsr r5, r5, #8\n"
                     "lsr r1, r1, #8\n"
                     "strb r5, [r10, #3]\n"
                     "strb r1, [r8, #3]\n"
                     "b 8b\n" ::
                         : "memory");
}

__attribute__((naked, noinline)) static void
mur_dsp_pairs_copy(__attribute__((unused)) const mur_dsp_pair_copy *copy)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "ldrd r12, lr, [r0, #28]\n"
                     "ldr r11, [r0, #24]\n"
                     "push {r11, r12}\n"
                     "ldm r0, {r0-r5}\n"
                     "1: mov r6, r5\n"
                     "2: ldr r10, [r1]\n"
                     "ldr r11, [r2]\n"
                     "add r1, r1, r3\n"
                     "add r2, r2, r4\n"
                     "pkhbt r8, r10, r11, lsl #16\n"
                     "pkhtb r10, r11, r10, asr #16\n"
                     "sxtb16 r7, r8\n"
                     "sxtb16 r8, r8, ror #8\n"
                     "sxtb16 r9, r10\n"
                     "sxtb16 r10, r10, ror #8\n"
                     "subs r6, r6, #1\n"
                     "stm r0!, {r7-r10}\n"
                     "bne 2b\n"
                     "ldr r6, [sp]\n"
                     "add r0, r0, r12\n"
                     "add r1, r1, lr\n"
                     "add r2, r2, lr\n"
                     "subs r6, r6, #1\n"
                     "str r6, [sp]\n"
                     "bne 1b\n"
                     "pop {r0, r1, r4-r11, pc}\n" ::
                         : "memory");
}
/* clang-format on */

#else

static inline int8_t mur_dsp_pairs_output(const mur_dsp_pair_run *run, const uint32_t *x, int32_t c)
{
    const mur_dsp_tap_pair *tap = (const void *)(run->list + 4);
    int32_t sum = mur_smlad(tap->w[c], x[c], run->list[c]);

    for (; tap->step != 1; tap++) {
        x += tap->step / 4;
        sum = mur_smlad(tap[1].w[c], x[c], sum);
    }
    return mur_dsp_scale_sum(sum, run->scales_end - 4 + c);
}

static inline void mur_dsp_pairs_run(const mur_dsp_pair_run *run)
{
    int32_t pairs = (int32_t)(run->x_end - run->x) / 8;

    for (int32_t i = 0; i < pairs * run->lines; i++) {
        const uint32_t *x = run->x + 8 * i + i / pairs * (run->x_next / 4);
        int8_t *out = run->out + 2 * i * run->out_step + i / pairs * run->out_next;

        for (int32_t c = 4 - run->channels; c < 4; c++) {
            int8_t first = mur_dsp_pairs_output(run, x, c);

            out[run->out_step + c] = mur_dsp_pairs_output(run, x + 4, c);
            out[c] = first;
        }
    }
}

static inline void mur_dsp_pairs_copy(const mur_dsp_pair_copy *copy)
{
    const int8_t *a = copy->a, *b = copy->b;
    uint32_t *to = copy->to;

    for (int32_t y = copy->lines; y > 0; y--, a += copy->next, b += copy->next) {
        for (int32_t x = copy->count; x > 0; x--, a += copy->a_step, b += copy->b_step)
            for (int32_t c = 0; c < 4; c++)
                *to++ = mur_halves((uint32_t)a[c], (uint32_t)b[c]);
        to += copy->to_next / 4;
    }
}

#endif

#endif
