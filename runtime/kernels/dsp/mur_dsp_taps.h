/* mur_dsp_taps.h - outputs of four channels of a depthwise layer, whatever its window: the inner
 * loop of mur_dsp_depthwise_taps_s8. */
#ifndef MUR_DSP_TAPS_H
#define MUR_DSP_TAPS_H

#include "mur_dsp_depthwise.h"

/* Outputs of fours of channels that lie side by side, in lines, the ends of which are slower. The
 * order of members is the assembly's. */
typedef struct mur_dsp_taps {
    int32_t out_step, x_step; /* bytes from output to output of a line */
    const int8_t *x_end;      /* behind a line's windows */
    uint32_t begin;           /* the assembly's own */
    int32_t second;           /* bytes from the first tap to the second */
    const uint32_t *list;     /* weights of four channels */
    uint32_t next;            /* the assembly's own */
    int32_t x_next, out_next; /* bytes from a line's end to the next line's beginning */
    int32_t x_pitch;          /* from line to line */
    int32_t left;             /* as `lines`, to begin with */
    int32_t x_four, out_four; /* bytes from behind the last line to the next four */
    int32_t lines, list_four; /* at least 1; bytes to the next four's weights */
    int32_t fours;            /* at least 1 */
    int32_t last;             /* how many channels are written, of the last ones; 0: all */
    const int8_t *x;          /* the first window's first tap */
    int8_t *out;
    int32_t taps;
    const int32_t *far, *far_end;    /* bytes from the first tap to others, */
    int32_t near[MUR_DSP_TAPS_NEAR]; /* and to the last, at the end: of pairs, in order */
} mur_dsp_taps;

#if MUR_HAVE_DSP

/* products of four channels by the taps in r8 and r9, with weights in r4 to r7 */
#define MUR_DSP_TAPS_PRODUCTS \
    "pkhbt r10, r8, r9, lsl #16\n" \
    "pkhtb r9, r9, r8, asr #16\n" \
    "sxtb16 r8, r10\n" \
    "sxtb16 r10, r10, ror #8\n" \
    "smlad r0, r8, r4, r0\n" \
    "sxtb16 r8, r9\n" \
    "smlad r1, r10, r5, r1\n" \
    "sxtb16 r9, r9, ror #8\n" \
    "smlad r2, r8, r6, r2\n" \
    "smlad r3, r9, r7, r3\n"

#define MUR_DSP_TAPS_PAIR(places) \
    "ldm r12!, {r4-r7}\n" \
    "ldrd r8, r9, " places "\n" \
    "ldr r8, [lr, r8]\n" \
    "ldr r9, [lr, r9]\n" MUR_DSP_TAPS_PRODUCTS

#define MUR_DSP_TAPS_NEAR_PAIR(at) MUR_DSP_TAPS_PAIR("[sp, #" #at "]")
#define MUR_DSP_TAPS_FAR_PAIR MUR_DSP_TAPS_PAIR("[r11], #8")

#define MUR_DSP_TAPS_SCALE(sum, mul, plus, shift) \
    "add " #plus ", " #plus ", " #sum ", asr #31\n" \
    "smmlar " #sum ", " #sum ", " #mul ", " #plus "\n" \
    "asr " #sum ", " #sum ", " #shift "\n" \
    "ssat " #sum ", #8, " #sum ", asr #1\n"

/* On the stack a copy of *run. */
/* clang-format off */
__attribute__((naked, noinline)) static void
mur_dsp_taps_run(__attribute__((unused)) const mur_dsp_taps *run)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "sub sp, sp, #128\n"
                     "mov r1, sp\n"
                     "add r2, sp, #128\n"
                     "1: ldm r0!, {r4-r11}\n"
                     "stm r1!, {r4-r11}\n"
                     "cmp r1, r2\n"
                     "bne 1b\n"
                     "add r0, sp, #76\n"
                     "ldm r0, {r0, r2, r3}\n"
                     "sub r1, r0, #1\n"
                     "lsr r1, r1, #1\n"
                     "subs r3, r3, r2\n"
                     "sub r1, r1, r3, lsr #3\n" /* near pairs */
                     "adr r2, 6f + 1\n"
                     "mov r4, #56\n" /* bytes of the instructions of a pair */
                     "mls r2, r1, r4, r2\n"
                     "str r2, [sp, #76]\n"
                     "it ne\n"
                     "adrne r2, 4f + 1\n"
                     "str r2, [sp, #24]\n"
                     "tst r0, #1\n"
                     "ite ne\n"
                     "adrne r7, 2f + 1\n"
                     "adreq r7, 3f + 1\n"
                     "str r7, [sp, #12]\n"
                     "ldrd lr, r11, [sp, #68]\n"
                     "ldm sp, {r4-r8, r12}\n"
                     "bx r7\n"
                     /* the first tap of an odd number */
                     ".balign 4\n"
                     "2: ldm r12!, {r0-r5}\n"
                     "ldr r9, [lr]\n"
                     "sxtb16 r8, r9\n"
                     "sxtb16 r9, r9, ror #8\n"
                     "smlabb r0, r8, r4, r0\n"
                     "smlabb r1, r9, r5, r1\n"
                     "smlatt r2, r8, r4, r2\n"
                     "smlatt r3, r9, r5, r3\n"
                     "ldr pc, [sp, #24]\n"
                     /* the first pair of an even one */
                     ".balign 4\n"
                     "3: ldm r12!, {r0-r7}\n"
                     "ldr r9, [lr, r8]\n"
                     "ldr r8, [lr]\n"
                     MUR_DSP_TAPS_PRODUCTS
                     "ldr pc, [sp, #24]\n"
                     /* far taps, three pairs at a time */
                     ".balign 4\n"
                     "4: str r11, [sp, #72]\n"
                     "ldr r11, [sp, #80]\n"
                     "5:\n"
                     MUR_DSP_TAPS_FAR_PAIR MUR_DSP_TAPS_FAR_PAIR MUR_DSP_TAPS_FAR_PAIR
                     "ldr r10, [sp, #84]\n"
                     "cmp r11, r10\n"
                     "bne 5b\n"
                     "ldr r11, [sp, #72]\n"
                     "ldr pc, [sp, #76]\n"
                     ".balign 4\n"
                     MUR_DSP_TAPS_NEAR_PAIR(88) MUR_DSP_TAPS_NEAR_PAIR(96)
                     MUR_DSP_TAPS_NEAR_PAIR(104) MUR_DSP_TAPS_NEAR_PAIR(112)
                     "5:\n"
                     MUR_DSP_TAPS_NEAR_PAIR(120)
                     "6:\n"
                     ".if . - 5b - 56\n"
                     ".error \"a pair takes other than 56 bytes\"\n"
                     ".endif\n"
                     "ldm r12!, {r4-r9}\n"
                     MUR_DSP_TAPS_SCALE(r0, r4, r5, r6)
                     MUR_DSP_TAPS_SCALE(r1, r7, r8, r9)
                     "ldm r12!, {r4-r9}\n"
                     MUR_DSP_TAPS_SCALE(r2, r4, r5, r6)
                     MUR_DSP_TAPS_SCALE(r3, r7, r8, r9)
                     "bfi r0, r1, #8, #8\n"
                     "bfi r2, r3, #8, #8\n"
                     "pkhbt r0, r0, r2, lsl #16\n"
                     "ldm sp, {r4-r8, r12}\n"
                     "add lr, lr, r5\n"
                     "cmp lr, r6\n"
                     "beq 7f\n"
                     "str r0, [r11]\n"
                     "add r11, r11, r4\n"
                     "bx r7\n"
                     /* the end of a line */
                     "7: ldr r1, [sp, #64]\n"
                     "cbnz r1, 8f\n"
                     "str r0, [r11]\n"
                     "add r10, sp, #28\n"
                     "ldm r10, {r0-r3}\n"
                     "add r11, r11, r4\n"
                     "add lr, lr, r0\n"
                     "add r11, r11, r1\n"
                     "add r6, r6, r2\n"
                     "subs r3, r3, #1\n"
                     "str r6, [sp, #8]\n"
                     "str r3, [sp, #40]\n"
                     "it ne\n"
                     "bxne r7\n"
                     /* the end of four channels */
                     "1: add r10, sp, #44\n"
                     "ldm r10, {r0-r4}\n"
                     "add lr, lr, r0\n"
                     "add r11, r11, r1\n"
                     "add r6, r6, r0\n"
                     "add r12, r12, r3\n"
                     "subs r4, r4, #1\n"
                     "str r6, [sp, #8]\n"
                     "str r12, [sp, #20]\n"
                     "str r2, [sp, #40]\n"
                     "str r4, [sp, #60]\n"
                     "it ne\n"
                     "bxne r7\n"
                     "add sp, sp, #128\n"
                     "pop {r4-r11, pc}\n"
                     /* the last channels, fewer than four: a line of one output */
                     "8: lsr r2, r0, #16\n"
                     "cmp r1, #2\n"
                     "blt 9f\n"
                     "strh r2, [r11, #2]\n"
                     "beq 2f\n"
                     "lsr r2, r0, #8\n"
                     "strb r2, [r11, #1]\n"
                     "2: ldr r3, [sp, #40]\n"
                     "add r11, r11, r4\n"
                     "add r6, r6, r5\n"
                     "subs r3, r3, #1\n"
                     "str r6, [sp, #8]\n"
                     "str r3, [sp, #40]\n"
                     "beq 1b\n"
                     "bx r7\n"
                     "9: lsr r2, r2, #8\n"
                     "strb r2, [r11, #3]\n"
                     "b 2b\n" ::
                         : "memory");
}
/* clang-format on */

#else

/* channel c of a window's output */
static inline int8_t mur_dsp_taps_output(const mur_dsp_taps *run, const uint32_t *list,
                                         const int8_t *x, int32_t c)
{
    const int32_t *far = run->far;
    const int32_t *near =
        run->near + MUR_DSP_TAPS_NEAR - (run->taps - 1) / 2 * 2 + (run->far_end - run->far);
    const mur_dsp_tap_scale *scale;
    int32_t sum = (int32_t)list[c];

    list += 4;
    if (run->taps & 1) {
        sum += x[c] * (int16_t)(list[c & 1] >> (c & 2 ? 16 : 0));
        list += 2;
    } else {
        sum = mur_smlad(list[c], mur_halves((uint32_t)x[c], (uint32_t)x[run->second + c]), sum);
        list += 4;
    }
    for (; far < run->far_end; far += 2, list += 4)
        sum = mur_smlad(list[c], mur_halves((uint32_t)x[far[0] + c], (uint32_t)x[far[1] + c]), sum);
    for (; near < run->near + MUR_DSP_TAPS_NEAR; near += 2, list += 4)
        sum =
            mur_smlad(list[c], mur_halves((uint32_t)x[near[0] + c], (uint32_t)x[near[1] + c]), sum);
    scale = (const mur_dsp_tap_scale *)(const void *)list + c;
    return mur_dsp_scale_sum(sum, scale);
}

static inline void mur_dsp_taps_run(const mur_dsp_taps *run)
{
    const int8_t *x = run->x, *x_end = run->x_end;
    const uint32_t *list = run->list;
    int8_t *out = run->out, four[4];

    for (int32_t i = 0; i < run->fours * run->lines; i++) {
        for (; x != x_end; x += run->x_step, out += run->out_step) {
            for (int32_t c = 0; c < 4; c++)
                four[c] = mur_dsp_taps_output(run, list, x, c);
            for (int32_t c = run->last ? 4 - run->last : 0; c < 4; c++)
                out[c] = four[c];
        }
        x += run->x_next;
        out += run->out_next;
        x_end += run->x_pitch;
        if ((i + 1) % run->lines == 0) {
            x += run->x_four;
            out += run->out_four;
            x_end += run->x_four;
            list += run->list_four / 4;
        }
    }
}

#endif

#endif
