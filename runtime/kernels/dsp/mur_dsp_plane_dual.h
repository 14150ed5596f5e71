/* mur_dsp_plane_dual.h - the steps of mur_dsp_plane.h in an order for cores that issue two
 * instructions at a time, searched for by a model of Cortex-M7: a pair of outputs of a kernel of 3
 * takes 25 cycles in place of 32. */
#ifndef MUR_DSP_PLANE_DUAL_H
#define MUR_DSP_PLANE_DUAL_H

#define MUR_DSP_PLANE_STORE(at) \
    "ldr r8, [sp, #24]\n" \
    "ldr r9, [sp, #28]\n" \
    "smmlar r6, r6, r8, r6\n" \
    "smmlar r7, r7, r8, r7\n" \
    "add r6, r6, r6, asr #31\n" \
    "ldr r8, [sp, #32]\n" \
    "asrs r6, r6, r9\n" \
    "add r7, r7, r7, asr #31\n" \
    "adc r6, r6, r8\n" \
    "asrs r7, r7, r9\n" \
    "ldr r9, [sp, #20]\n" \
    "ssat r6, #8, r6\n" \
    "adc r7, r7, r8\n" \
    "ldr r8, [sp, #16]\n" \
    "cmp " #at ", r8\n" \
    "strb r6, [lr]\n" \
    "ssat r7, #8, r7\n" \
    "it ls\n" \
    "strbls r7, [lr, r9]\n" \
    "add lr, lr, r9, lsl #1\n"

#define MUR_DSP_PLANE_PAIR_3_1 \
    "ldr r8, [r10]\n" \
    "ldr r6, [sp, #36]\n" \
    "smlatb r7, r8, r0, r6\n" \
    "ldr r9, [r10, #4]\n" \
    "smlad r6, r8, r0, r6\n" \
    "ldr r8, [r11]\n" \
    "smlad r7, r9, r1, r7\n" \
    "add r10, r10, #4\n" \
    "smlabt r6, r9, r1, r6\n" \
    "ldr r9, [r11, #4]\n" \
    "smlad r6, r8, r2, r6\n" \
    "smlabt r6, r9, r3, r6\n" \
    "smlatb r7, r8, r2, r7\n" \
    "ldr r8, [r12]\n" \
    "smlad r7, r9, r3, r7\n" \
    "ldr r9, [r12, #4]\n" \
    "smlad r6, r8, r4, r6\n" \
    "smlabt r6, r9, r5, r6\n" \
    "smlatb r7, r8, r4, r7\n" \
    "ldr r8, [sp, #24]\n" \
    "smlad r7, r9, r5, r7\n" \
    "ldr r9, [sp, #28]\n" \
    "smmlar r6, r6, r8, r6\n" \
    "smmlar r7, r7, r8, r7\n" \
    "add r6, r6, r6, asr #31\n" \
    "add r11, r11, #4\n" \
    "asrs r6, r6, r9\n" \
    "add r7, r7, r7, asr #31\n" \
    "ldr r8, [sp, #32]\n" \
    "adc r6, r6, r8\n" \
    "asrs r7, r7, r9\n" \
    "adc r7, r7, r8\n" \
    "ldr r8, [sp, #16]\n" \
    "ssat r6, #8, r6\n" \
    "cmp r10, r8\n" \
    "ldr r9, [sp, #20]\n" \
    "ssat r7, #8, r7\n" \
    "strb r6, [lr]\n" \
    "add r12, r12, #4\n" \
    "it ls\n" \
    "strbls r7, [lr, r9]\n" \
    "add lr, lr, r9, lsl #1\n"

#define MUR_DSP_PLANE_PAIR_3_2 \
    "ldr r9, [r10, #8]\n" \
    "ldr r8, [r10, #4]\n" \
    "ldr r6, [sp, #36]\n" \
    "smlad r7, r8, r0, r6\n" \
    "ldr r5, [r10]\n" \
    "smlabb r7, r9, r3, r7\n" \
    "ldr r9, [r11, #8]\n" \
    "smlad r6, r5, r0, r6\n" \
    "ldr r5, [r11]\n" \
    "smlabb r6, r8, r3, r6\n" \
    "ldr r8, [r11, #4]\n" \
    "smlad r6, r5, r1, r6\n" \
    "ldr r5, [r12]\n" \
    "smlabt r6, r8, r3, r6\n" \
    "smlad r7, r8, r1, r7\n" \
    "ldr r8, [r12, #4]\n" \
    "smlabt r7, r9, r3, r7\n" \
    "ldr r9, [r12, #8]\n" \
    "smlad r7, r8, r2, r7\n" \
    "smlad r6, r5, r2, r6\n" \
    "smlabb r6, r8, r4, r6\n" \
    "ldr r8, [sp, #24]\n" \
    "smlabb r7, r9, r4, r7\n" \
    "ldr r9, [sp, #28]\n" \
    "smmlar r6, r6, r8, r6\n" \
    "smmlar r7, r7, r8, r7\n" \
    "ldr r8, [sp, #32]\n" \
    "add r6, r6, r6, asr #31\n" \
    "add r11, r11, #8\n" \
    "add r10, r10, #8\n" \
    "asrs r6, r6, r9\n" \
    "add r7, r7, r7, asr #31\n" \
    "adc r6, r6, r8\n" \
    "ssat r6, #8, r6\n" \
    "asrs r7, r7, r9\n" \
    "ldr r9, [sp, #20]\n" \
    "adc r7, r7, r8\n" \
    "ldr r8, [sp, #16]\n" \
    "cmp r10, r8\n" \
    "ssat r7, #8, r7\n" \
    "strb r6, [lr]\n" \
    "add r12, r12, #8\n" \
    "it ls\n" \
    "strbls r7, [lr, r9]\n" \
    "add lr, lr, r9, lsl #1\n"

#endif
