/* mur_dsp_block_dual.h - the steps of mur_dsp_block.h in an order for cores that issue two
 * instructions at a time, searched for by a model of Cortex-M7: loads between products, and none
 * that changes its address. Four outputs take 38 cycles in place of 44. */
#ifndef MUR_DSP_BLOCK_DUAL_H
#define MUR_DSP_BLOCK_DUAL_H

#define MUR_DSP_BLOCK_SUMS_1 \
    "ldr r10, [lr]\n" \
    "ldr r12, [sp, #28]\n" \
    "ldr r0, [sp, #52]\n" \
    "add r12, r12, lr\n" \
    "lsls r2, r0, #1\n" \
    "smlatb r1, r10, r4, r2\n" \
    "ldr r11, [r12]\n" \
    "smlad r0, r10, r4, r2\n" \
    "ldr r10, [lr, #4]\n" \
    "smlabt r0, r11, r5, r0\n" \
    "smlatb r3, r10, r4, r2\n" \
    "smlad r1, r11, r5, r1\n" \
    "ldr r11, [r12, #4]\n" \
    "smlatb r1, r10, r6, r1\n" \
    "smlad r2, r10, r4, r2\n" \
    "smlad r0, r10, r6, r0\n" \
    "ldr r10, [lr, #8]\n" \
    "smlad r1, r11, r7, r1\n" \
    "smlatb r1, r10, r8, r1\n" \
    "smlabt r2, r11, r5, r2\n" \
    "smlad r2, r10, r6, r2\n" \
    "smlabt r0, r11, r7, r0\n" \
    "smlad r3, r11, r5, r3\n" \
    "smlatb r3, r10, r6, r3\n" \
    "ldr r11, [r12, #8]\n" \
    "smlad r0, r10, r8, r0\n" \
    "smlabt r0, r11, r9, r0\n" \
    "ldr r10, [lr, #12]\n" \
    "smlad r1, r11, r9, r1\n" \
    "smlad r3, r11, r7, r3\n" \
    "smlabt r2, r11, r7, r2\n" \
    "ldr r11, [r12, #12]\n" \
    "smlatb r3, r10, r8, r3\n" \
    "add lr, lr, #8\n" \
    "smlad r3, r11, r9, r3\n" \
    "ldr r12, [sp, #48]\n" \
    "smlad r2, r10, r8, r2\n" \
    "ldr r10, [sp, #40]\n" \
    "smlabt r2, r11, r9, r2\n"

#define MUR_DSP_BLOCK_SUMS_2 \
    "ldr r12, [sp, #28]\n" \
    "ldr r0, [sp, #52]\n" \
    "ldr r10, [lr, r12]\n" \
    "ldr r11, [lr, r12, lsl #1]\n" \
    "lsls r2, r0, #1\n" \
    "smlad r1, r10, r4, r2\n" \
    "smlabt r0, r10, r5, r2\n" \
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
    "ldr r12, [sp, #48]\n" \
    "smlad r3, r10, r8, r3\n" \
    "ldr r10, [lr]\n" \
    "smlabt r3, r11, r9, r3\n" \
    "smlad r2, r10, r8, r2\n" \
    "ldr r10, [sp, #40]\n"

/* clang-format off */
#define MUR_DSP_BLOCK_SCALE \
    "smmla r0, r0, r10, r12\n" \
    "ldr r11, [sp, #64]\n" \
    "smmla r1, r1, r10, r12\n" \
    MUR_DSP_BLOCK_SSAT(r0, MUR_DSP_BLOCK_SHIFT) \
    "smmla r3, r3, r10, r12\n" \
    MUR_DSP_BLOCK_SSAT(r1, MUR_DSP_BLOCK_SHIFT) \
    "smmla r2, r2, r10, r12\n" \
    "ldr r10, [sp, #56]\n" \
    "ldr r12, [sp, #68]\n" \
    MUR_DSP_BLOCK_SSAT(r3, MUR_DSP_BLOCK_SHIFT) \
    MUR_DSP_BLOCK_SSAT(r2, MUR_DSP_BLOCK_SHIFT)
/* clang-format on */

#define MUR_DSP_BLOCK_STORE \
    "strb r3, [r10, r11]\n" \
    "ldr r3, [sp, #32]\n" \
    "strb r2, [r10]\n" \
    "ldr r2, [sp, #60]\n" \
    "strb r1, [r10, r12]\n" \
    "strb r0, [r10, r3]\n" \
    "sub r10, r10, r3, lsl #1\n" \
    "cmp lr, r2\n" \
    "str r10, [sp, #56]\n"

#define MUR_DSP_BLOCK_GATHER_FOURS \
    "lsrs r12, r3, #2\n" \
    "beq 13f\n" \
    "12: ldrsb r9, [r1, r2, lsl #1]\n" \
    "ldrsb r10, [r1, r11]\n" \
    "ldrsb r8, [r1, r2]\n" \
    "ldrsb lr, [r1]\n" \
    "add r1, r1, r2, lsl #2\n" \
    "strh r8, [r0, #4]\n" \
    "subs r12, r12, #1\n" \
    "strh r9, [r0, #8]\n" \
    "strh r10, [r0, #12]\n" \
    "strh lr, [r0], #16\n" \
    "bne 12b\n"

#endif
