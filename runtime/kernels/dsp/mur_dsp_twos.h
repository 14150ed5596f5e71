/* mur_dsp_twos.h - pixels by twos, one two after the other: what mur_dsp_quad.h and mur_dsp_few.h
 * share. */
#ifndef MUR_DSP_TWOS_H
#define MUR_DSP_TWOS_H

#include "mur_dsp.h"

/* The order of members is the assembly's. */
typedef struct mur_dsp_twos {
    const uint32_t *x, *x_end; /* pairs of inputs of four pixels by turns, four behind four */
    const uint32_t *w_end;     /* of quads */
    int8_t *out;
    int32_t out_step; /* from pixel to pixel */
    int32_t zero;     /* of quads: twice the output's zero point, plus 1 */
    int32_t words;    /* of inputs: of quads by fours, otherwise by twos; at least 1 */
    int32_t pixels;   /* 1 to 4, or fours */
    const uint32_t *w;
} mur_dsp_twos;

/* The next two pixels, for which it goes to `again`, or from the last ones to `end`. On the stack a
 * copy of a mur_dsp_twos, in which x_end lies `ahead` bytes before the end of the inputs and 8
 * more; at 36 the first output. lr becomes w. A last pixel alone has no step. */
/* clang-format off */
#define MUR_DSP_NEXT_TWO(again, end, ahead) \
    "ldr r8, [sp, #28]\n" \
    "ldr lr, [sp, #32]\n" \
    "ldr r9, [sp, #36]\n" \
    "ldr r10, [sp, #16]\n" \
    "ldrd r11, r12, [sp]\n" \
    "subs r8, r8, #2\n" \
    "ble " end "\n" \
    "add r9, r9, r10, lsl #1\n" \
    "sub r7, r12, r11\n" \
    "lsls r6, r8, #30\n" /* of these four, the other two are left, or none is */ \
    "ite ne\n" \
    "addne r11, r11, #8\n" \
    "addeq r11, r12, #" ahead "\n" \
    "add r12, r11, r7\n" \
    "cmp r8, #1\n" \
    "it eq\n" \
    "moveq r10, #0\n" \
    "str r8, [sp, #28]\n" \
    "str r9, [sp, #36]\n" \
    "strd r9, r10, [sp, #12]\n" \
    "strd r11, r12, [sp]\n" \
    "b " again "\n"
/* clang-format on */

#endif
