/* mur_dsp_taps.h - pairs of outputs of four channels of a depthwise layer, whatever its window: the
 * inner loop of mur_dsp_depthwise_taps_s8. */
#ifndef MUR_DSP_TAPS_H
#define MUR_DSP_TAPS_H

#include "mur_dsp.h"
#include "mur_dsp_depthwise.h"

/* Outputs two by two; the order of members is the assembly's. All but the constants are what comes
 * behind the last pair, afterwards. */
typedef struct mur_dsp_taps {
    const mur_dsp_tap *taps;
    const uint8_t *x[2]; /* the first two windows: pixels of four int8, at a multiple of 4 bytes */
    const mur_dsp_quad_head *head;
    int8_t *out[2]; /* [4] */
    int32_t zero;
    int32_t pairs;            /* at least 1 */
    int32_t x_step, out_step; /* bytes from pair to pair */
} mur_dsp_taps;

#if MUR_HAVE_DSP

/* an output's products of channels `low` and `high` */
#define MUR_DSP_TAP(x, turn, low, high) \
    "ldr lr, [" #x ", r11]\n" \
    "sxtb16 lr, lr" turn "\n" \
    "smlabb " #low ", lr, r12, " #low "\n" \
    "smlatt " #high ", lr, r12, " #high "\n"

/* both outputs of a channel; two shifts and sums at a time hide what each waits for */
#define MUR_DSP_TAPS_STORE(channel, a, b) \
    "ldrd r9, r10, [r12, #16 + 8 * " #channel "]\n" \
    "smmlar " #a ", " #a ", r9, " #a "\n" \
    "smmlar " #b ", " #b ", r9, " #b "\n" \
    "add " #a ", " #a ", " #a ", asr #31\n" \
    "add " #b ", " #b ", " #b ", asr #31\n" \
    "asrs " #a ", " #a ", r10\n" \
    "adc " #a ", " #a ", r11\n" \
    "asrs " #b ", " #b ", r10\n" \
    "adc " #b ", " #b ", r11\n" \
    "ssat " #a ", #8, " #a "\n" \
    "ssat " #b ", #8, " #b "\n" \
    "strb " #a ", [r8, #" #channel "]\n" \
    "strb " #b ", [lr, #" #channel "]\n"

/* clang-format off */
__attribute__((naked, noinline)) static void
mur_dsp_taps_pairs(__attribute__((unused)) mur_dsp_taps *run)
{
    __asm__ volatile("push {r0, r4-r11, lr}\n"
                     "2: ldm r0, {r8, r9, r10, r12}\n"
                     "ldm r12, {r0-r3}\n"
                     "ldr r11, [r8], #12\n"
                     "mov r4, r0\n"
                     "mov r5, r1\n"
                     "mov r6, r2\n"
                     "mov r7, r3\n"
                     "1: ldr r12, [r8, #-8]\n"
                     MUR_DSP_TAP(r9, "", r0, r2)
                     MUR_DSP_TAP(r10, "", r4, r6)
                     "ldr r12, [r8, #-4]\n"
                     MUR_DSP_TAP(r9, ", ror #8", r1, r3)
                     MUR_DSP_TAP(r10, ", ror #8", r5, r7)
                     "ldr r11, [r8], #12\n"
                     "cmp r11, #0\n"
                     "bge 1b\n"
                     "ldr r10, [sp]\n"
                     "ldr r12, [r10, #12]\n"
                     "ldrd r8, lr, [r10, #16]\n"
                     "ldr r11, [r10, #24]\n"
                     MUR_DSP_TAPS_STORE(0, r0, r4)
                     MUR_DSP_TAPS_STORE(1, r1, r5)
                     MUR_DSP_TAPS_STORE(2, r2, r6)
                     MUR_DSP_TAPS_STORE(3, r3, r7)
                     "ldr r0, [sp]\n"
                     "ldrd r1, r2, [r0, #4]\n"
                     "ldrd r3, r4, [r0, #28]\n"
                     "ldr r5, [r0, #36]\n"
                     "add r1, r1, r4\n"
                     "add r2, r2, r4\n"
                     "add r8, r8, r5\n"
                     "add lr, lr, r5\n"
                     "strd r1, r2, [r0, #4]\n"
                     "strd r8, lr, [r0, #16]\n"
                     "subs r3, r3, #1\n"
                     "str r3, [r0, #28]\n"
                     "bne 2b\n"
                     "pop {r0, r4-r11, pc}\n" ::
                         : "memory");
}
/* clang-format on */

#else

#include "mur_nn_arith.h"

static inline void mur_dsp_taps_pairs(mur_dsp_taps *run)
{
    for (; run->pairs > 0; run->pairs--)
        for (int32_t i = 0; i < 2; i++) {
            for (int32_t c = 0; c < 4; c++) {
                int32_t sum = run->head->bias[c];

                for (const mur_dsp_tap *tap = run->taps; tap->offset >= 0; tap++) {
                    const uint8_t *x = run->x[i] + tap->offset;

                    sum += (int8_t)x[c] *
                           (int16_t)((c & 1 ? tap->odd : tap->even) >> (c & 2 ? 16 : 0));
                }
                sum = mur_scale_q31(sum, (int32_t)(run->head->scale[c].mul >> 1),
                                    -run->head->scale[c].shift);
                run->out[i][c] = (int8_t)mur_clamp(sum + run->zero, INT8_MIN, INT8_MAX);
            }
            run->x[i] += run->x_step;
            run->out[i] += run->out_step;
        }
}

#endif

#endif
