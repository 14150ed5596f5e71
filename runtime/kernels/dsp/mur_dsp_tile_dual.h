/* mur_dsp_tile_dual.h - the steps of mur_dsp_tile.h in an order for cores that issue two
 * instructions at a time: loads between products, and the outputs' chains of instructions side by
 * side. The order of MUR_DSP_TILE_OUT was searched for by a model of Cortex-M7: 41 cycles in place
 * of 69. */
#ifndef MUR_DSP_TILE_DUAL_H
#define MUR_DSP_TILE_DUAL_H

/* Two inputs of four pixels and two channels. Weights in r10 and the first pixel's inputs in r8 are
 * there, the second's come to r9 in `second` or `later`; the next ones are read, behind the last in
 * vain. */
/* clang-format off */
#define MUR_DSP_MAC8(second, later, c, d, next_a, next_w, then0, then1) \
    "sxtb16 r11, r10\n" \
    "smlad r4, r8, r10, r4\n" \
    second \
    "smlad r0, r8, r11, r0\n" \
    later \
    "ldr r8, [r12, #" #c "]\n" \
    "smlad r5, r9, r10, r5\n" \
    "smlad r1, r9, r11, r1\n" \
    "ldr r9, [r12, #" #d "]\n" \
    "smlad r6, r8, r10, r6\n" \
    "smlad r2, r8, r11, r2\n" \
    "ldr r8, [r12, #" #next_a "]\n" \
    "smlad r7, r9, r10, r7\n" \
    "ldr r10, [lr, #" #next_w "]\n" \
    then0 \
    "smlad r3, r9, r11, r3\n" \
    then1

#define MUR_DSP_TILE_LOOP \
    "ldr r9, [sp, #28]\n" \
    "ldr r8, [r12]\n" \
    "ldr r10, [lr]\n" \
    "cmp r9, #0\n" \
    "itt ne\n" \
    "subne r12, r12, #32\n" \
    "subne lr, lr, #8\n" \
    "bne 3f\n" \
    "2:\n" \
    MUR_DSP_MAC8("ldr r9, [r12, #4]\n", "", 8, 12, 16, 4, "", "") \
    MUR_DSP_MAC8("ldr r9, [r12, #20]\n", "", 24, 28, 32, 8, "", "") \
    "3:\n" \
    MUR_DSP_MAC8("ldr r9, [sp, #4]\n", \
                 "cmp r12, r9\n" \
                 "ldr r9, [r12, #36]\n", 40, 44, 48, 12, "", "") \
    MUR_DSP_MAC8("ldr r9, [r12, #52]\n", "", 56, 60, 64, 16, \
                 "add r12, r12, #64\n", "add lr, lr, #16\n") \
    "bne 2b\n"
/* clang-format on */

#define MUR_DSP_TILE_OUT \
    "sub r7, r7, r3\n" \
    "ldr r8, [lr]\n" \
    "sub r4, r4, r0\n" \
    "asr r7, r7, #8\n" \
    "asr r4, r4, #8\n" \
    "smmlar r0, r0, r8, r0\n" \
    "sub r6, r6, r2\n" \
    "smmlar r2, r2, r8, r2\n" \
    "sub r5, r5, r1\n" \
    "smmlar r1, r1, r8, r1\n" \
    "ldr r9, [lr, #4]\n" \
    "add r0, r0, r0, asr #31\n" \
    "asr r5, r5, #8\n" \
    "ldr r10, [lr, #8]\n" \
    "add r1, r1, r1, asr #31\n" \
    "smmlar r4, r4, r10, r4\n" \
    "add r2, r2, r2, asr #31\n" \
    "ldr r11, [sp, #24]\n" \
    "asrs r0, r0, r9\n" \
    "smmlar r3, r3, r8, r3\n" \
    "add r4, r4, r4, asr #31\n" \
    "adc r0, r0, r11\n" \
    "asrs r1, r1, r9\n" \
    "smmlar r5, r5, r10, r5\n" \
    "adc r1, r1, r11\n" \
    "add r3, r3, r3, asr #31\n" \
    "ssat r0, #8, r0\n" \
    "asrs r2, r2, r9\n" \
    "adc r2, r2, r11\n" \
    "asrs r3, r3, r9\n" \
    "lsr r12, r9, #8\n" \
    "smmlar r7, r7, r10, r7\n" \
    "adc r3, r3, r11\n" \
    "asrs r4, r4, r12\n" \
    "adc r4, r4, r11\n" \
    "asr r6, r6, #8\n" \
    "add r5, r5, r5, asr #31\n" \
    "asrs r5, r5, r12\n" \
    "smmlar r6, r6, r10, r6\n" \
    "ssat r4, #8, r4\n" \
    "ssat r1, #8, r1\n" \
    "adc r5, r5, r11\n" \
    "add r6, r6, r6, asr #31\n" \
    "asrs r6, r6, r12\n" \
    "ldr r10, [sp, #20]\n" \
    "ssat r5, #8, r5\n" \
    "add r7, r7, r7, asr #31\n" \
    "ssat r2, #8, r2\n" \
    "bfi r1, r5, #8, #8\n" \
    "add lr, lr, #12\n" \
    "bfi r0, r4, #8, #8\n" \
    "adc r6, r6, r11\n" \
    "asrs r7, r7, r12\n" \
    "ldr r12, [sp, #16]\n" \
    "add r8, r12, r10\n" \
    "adc r7, r7, r11\n" \
    "ssat r7, #8, r7\n" \
    "ssat r6, #8, r6\n" \
    "strh r0, [r12]\n" \
    "ssat r3, #8, r3\n" \
    "strh r1, [r12, r10]\n" \
    "bfi r2, r6, #8, #8\n" \
    "strh r2, [r12, r10, lsl #1]\n" \
    "bfi r3, r7, #8, #8\n" \
    "strh r3, [r8, r10, lsl #1]\n" \
    "ldr r8, [sp, #12]\n" \
    "add r12, r12, #2\n" \
    "cmp lr, r8\n" \
    "str r12, [sp, #16]\n"

#endif
