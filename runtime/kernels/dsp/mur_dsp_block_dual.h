/* mur_dsp_block_dual.h - the steps of mur_dsp_block.h in an order for cores that issue two
 * instructions at a time, searched for by a model of Cortex-M7: loads between products, and none
 * that changes its address. Four outputs take 45 cycles in place of 58. */
#ifndef MUR_DSP_BLOCK_DUAL_H
#define MUR_DSP_BLOCK_DUAL_H

#define MUR_DSP_BLOCK_SUMS_1 \
    "ldr r10, [lr]\n" \
    "ldr r12, [sp, #4]\n" \
    "ldr r0, [sp, #48]\n" \
    "add r12, r12, lr\n" \
    "mov r2, r0\n" \
    "smlatb r1, r10, r4, r0\n" \
    "ldr r11, [r12]\n" \
    "smlad r0, r10, r4, r0\n" \
    "ldr r10, [lr, #4]\n" \
    "smlad r1, r11, r5, r1\n" \
    "smlatb r1, r10, r6, r1\n" \
    "smlabt r0, r11, r5, r0\n" \
    "ldr r11, [r12, #4]\n" \
    "smlad r0, r10, r6, r0\n" \
    "smlatb r3, r10, r4, r2\n" \
    "smlad r2, r10, r4, r2\n" \
    "ldr r10, [lr, #8]\n" \
    "smlad r1, r11, r7, r1\n" \
    "smlad r3, r11, r5, r3\n" \
    "smlabt r2, r11, r5, r2\n" \
    "smlabt r0, r11, r7, r0\n" \
    "ldr r11, [r12, #8]\n" \
    "smlad r0, r10, r8, r0\n" \
    "smlad r2, r10, r6, r2\n" \
    "smlabt r2, r11, r7, r2\n" \
    "smlatb r3, r10, r6, r3\n" \
    "smlatb r1, r10, r8, r1\n" \
    "ldr r10, [lr, #12]\n" \
    "smlabt r0, r11, r9, r0\n" \
    "smlad r3, r11, r7, r3\n" \
    "smlad r1, r11, r9, r1\n" \
    "ldr r11, [r12, #12]\n" \
    "smlatb r3, r10, r8, r3\n" \
    "smlad r3, r11, r9, r3\n" \
    "ldr r12, [sp, #44]\n" \
    "smlad r2, r10, r8, r2\n" \
    "ldr r10, [sp, #36]\n" \
    "smlabt r2, r11, r9, r2\n" \
    "ldr r11, [sp, #40]\n" \
    "cmp r11, #0\n" \
    "add lr, lr, #8\n"

#define MUR_DSP_BLOCK_SUMS_2 \
    "ldr r12, [sp, #4]\n" \
    "ldr r0, [sp, #48]\n" \
    "ldr r10, [lr, r12]\n" \
    "ldr r11, [lr, r12, lsl #1]\n" \
    "smlad r1, r10, r4, r0\n" \
    "mov r2, r0\n" \
    "smlabt r0, r10, r5, r0\n" \
    "ldr r10, [lr]\n" \
    "add lr, lr, #4\n" \
    "smlad r0, r10, r4, r0\n" \
    "ldr r10, [lr, r12]\n" \
    "smlabt r1, r11, r5, r1\n" \
    "smlad r1, r10, r6, r1\n" \
    "ldr r11, [lr, r12, lsl #1]\n" \
    "smlabt r0, r10, r7, r0\n" \
    "ldr r10, [lr]\n" \
    "add lr, lr, #4\n" \
    "smlad r0, r10, r6, r0\n" \
    "ldr r10, [lr, r12]\n" \
    "smlabt r1, r11, r7, r1\n" \
    "smlad r3, r10, r4, r2\n" \
    "ldr r11, [lr, r12, lsl #1]\n" \
    "smlad r1, r10, r8, r1\n" \
    "smlabt r0, r10, r9, r0\n" \
    "smlabt r2, r10, r5, r2\n" \
    "ldr r10, [lr]\n" \
    "smlabt r3, r11, r5, r3\n" \
    "add lr, lr, #4\n" \
    "smlad r2, r10, r4, r2\n" \
    "smlad r0, r10, r8, r0\n" \
    "ldr r10, [lr, r12]\n" \
    "smlabt r1, r11, r9, r1\n" \
    "ldr r11, [lr, r12, lsl #1]\n" \
    "smlabt r2, r10, r7, r2\n" \
    "smlad r3, r10, r6, r3\n" \
    "ldr r10, [lr]\n" \
    "add lr, lr, #4\n" \
    "smlad r2, r10, r6, r2\n" \
    "ldr r10, [lr, r12]\n" \
    "smlabt r3, r11, r7, r3\n" \
    "ldr r11, [lr, r12, lsl #1]\n" \
    "smlabt r2, r10, r9, r2\n" \
    "ldr r12, [sp, #44]\n" \
    "smlad r3, r10, r8, r3\n" \
    "ldr r10, [lr]\n" \
    "smlabt r3, r11, r9, r3\n" \
    "ldr r11, [sp, #40]\n" \
    "smlad r2, r10, r8, r2\n" \
    "ldr r10, [sp, #36]\n" \
    "cmp r11, #0\n"

#define MUR_DSP_BLOCK_SCALE \
    "smmlar r0, r0, r10, r12\n" \
    "smmlar r1, r1, r10, r12\n" \
    "smmlar r3, r3, r10, r12\n" \
    "smmlar r2, r2, r10, r12\n"

#define MUR_DSP_BLOCK_STORE \
    "ldr r12, [sp, #84]\n" \
    "asr r0, r0, r11\n" \
    "asr r2, r2, r11\n" \
    "ldr r10, [sp, #72]\n" \
    "add r12, r10, r12\n" \
    "asr r1, r1, r11\n" \
    "asr r3, r3, r11\n" \
    "ldr r11, [sp, #80]\n" \
    "ssat r3, #8, r3, asr #1\n" \
    "ssat r2, #8, r2, asr #1\n" \
    "strb r3, [r12, r11]\n" \
    "ssat r1, #8, r1, asr #1\n" \
    "strb r2, [r12]\n" \
    "ssat r0, #8, r0, asr #1\n" \
    "strb r1, [r10, r11]\n" \
    "ldr r11, [sp, #76]\n" \
    "strb r0, [r10]\n" \
    "sub r10, r12, r10\n" \
    "add r12, r12, r10\n" \
    "cmp lr, r11\n" \
    "str r12, [sp, #72]\n"

#endif
