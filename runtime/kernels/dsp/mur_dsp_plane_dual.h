/* mur_dsp_plane_dual.h - the last steps of mur_dsp_plane.h in an order for cores that issue two
 * instructions at a time, searched for by a model of Cortex-M7. */
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

#endif
