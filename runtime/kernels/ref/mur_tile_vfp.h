/* mur_tile_vfp.h - the functions of mur_tile_f32.h for Arm's floating-point unit of single
 * precision.
 *
 * With four pixels the registers hold 16 sums, four channels of each pixel (s0-s15), the weights of
 * four channels (s16-s19), inputs (s20-s27) and products (s28-s31); r4, r5, r6 and r8 point to the
 * pixels' inputs. */
#ifndef MUR_TILE_VFP_H
#define MUR_TILE_VFP_H

#define MUR_VFP_TAKEN \
    "r4", "r5", "r6", "r8", "ip", "lr", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", \
        "s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16", "s17", "s18", "s19", "s20", "s21", \
        "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29", "s30", "s31", "cc", "memory"

/* clang-format off */

/* one element of four pixels */
#define MUR_ADD_FOUR(x0, x1, x2, x3) \
    "vldmia %[w]!, {s16-s19}\n" \
    MUR_VFP_SCALED(s0, s1, s2, s3, s16, s17, s18, s19, x0) \
    MUR_VFP_SCALED(s4, s5, s6, s7, s16, s17, s18, s19, x1) \
    MUR_VFP_SCALED(s8, s9, s10, s11, s16, s17, s18, s19, x2) \
    MUR_VFP_SCALED(s12, s13, s14, s15, s16, s17, s18, s19, x3)

/* s0-s15, or s0-s3, to the address in ip, pixels lr bytes apart; r4 tells whether negative ones are
 * 0 */
#define MUR_VFP_STORE_PIXELS \
    "cbnz r4, 8f\n" \
    "vstm ip, {s0-s3}\n" \
    "add ip, ip, lr\n" \
    "vstm ip, {s4-s7}\n" \
    "add ip, ip, lr\n" \
    "vstm ip, {s8-s11}\n" \
    "add ip, ip, lr\n" \
    "vstm ip, {s12-s15}\n" \
    "b 9f\n" \
    "8:\n" \
    MUR_VFP_STORE_RELU(s0, s1, s2, s3) \
    "add ip, ip, lr\n" \
    MUR_VFP_STORE_RELU(s4, s5, s6, s7) \
    "add ip, ip, lr\n" \
    MUR_VFP_STORE_RELU(s8, s9, s10, s11) \
    "add ip, ip, lr\n" \
    MUR_VFP_STORE_RELU(s12, s13, s14, s15) \
    "9:\n"
#define MUR_VFP_STORE_PIXEL \
    "cbnz r4, 8f\n" \
    "vstm ip, {s0-s3}\n" \
    "b 9f\n" \
    "8:\n" \
    MUR_VFP_STORE_RELU(s0, s1, s2, s3) \
    "9:\n"

/* two elements of four pixels */
#define MUR_ADD_EIGHT \
    "vldmia r4!, {s20-s21}\n" \
    "vldmia r5!, {s22-s23}\n" \
    "vldmia r6!, {s24-s25}\n" \
    "vldmia r8!, {s26-s27}\n" \
    MUR_ADD_FOUR(s20, s22, s24, s26) \
    MUR_ADD_FOUR(s21, s23, s25, s27)

/* ---- the walk over blocks, rows and taps that all four functions share ----
 *
 * _PIXELS are for four pixels, _PIXEL is for the first alone. */

/* biases, the pixels' first inputs and the rows of the kernel; w behind what is skipped */
#define MUR_VFP_BEGIN_PIXELS \
    "vldm %[w], {s0-s3}\n" \
    "vldm %[w], {s4-s7}\n" \
    "vldm %[w], {s8-s11}\n" \
    "vldmia %[w]!, {s12-s15}\n" \
    "ldr ip, [%[t], #36]\n" \
    "ldm %[t], {r4-r6, r8}\n" \
    "ldr %[rows], [%[t], #28]\n" \
    "add %[w], %[w], ip\n"
#define MUR_VFP_BEGIN_PIXEL \
    "ldr ip, [%[t], #36]\n" \
    "vldmia %[w]!, {s0-s3}\n" \
    "ldr r4, [%[t]]\n" \
    "ldr %[rows], [%[t], #28]\n" \
    "add %[w], %[w], ip\n"

/* inputs move on by ip bytes */
#define MUR_VFP_MOVE_PIXELS \
    "add r4, r4, ip\n" \
    "add r5, r5, ip\n" \
    "add r6, r6, ip\n" \
    "add r8, r8, ip\n"
#define MUR_VFP_MOVE_PIXEL "add r4, r4, ip\n"

/* the taps of a row: of inputs by the size of `many`, whose bytes less one are `mask`, then singly */
#define MUR_VFP_TAPS(mask, many, one, move) \
    "3: ldr ip, [%[t], #16]\n" \
    "add lr, r4, ip\n" \
    "bic ip, ip, #" #mask "\n" \
    "add ip, ip, r4\n" \
    "cmp r4, ip\n" \
    "beq 5f\n" \
    "4:\n" \
    many \
    "cmp r4, ip\n" \
    "bne 4b\n" \
    "5: cmp r4, lr\n" \
    "beq 6f\n" \
    one \
    "b 5b\n" \
    "6: ldr ip, [%[t], #24]\n" \
    "subs %[taps], %[taps], #1\n" \
    move \
    "bne 3b\n"

/* the same of a depthwise layer, `tap` for all pixels */
#define MUR_VFP_DEPTH_TAPS(tap) \
    "ldr ip, [%[t], #56]\n" \
    "3: vldmia %[w]!, {s16-s19}\n" \
    tap \
    "subs %[taps], %[taps], #1\n" \
    "bne 3b\n"

/* w behind its block; r4: relu? lr: out_step */
#define MUR_VFP_END_PIXELS \
    "ldrd ip, lr, [%[t], #44]\n" \
    "add %[w], %[w], ip\n" \
    "ldr r4, [%[t], #52]\n"

/* end: from the last row to the address in ip of what is stored */
#define MUR_VFP_WALK(begin, taps_of_a_row, move, end, store) \
    int32_t blocks = t->blocks, taps, rows; \
\
    __asm__ volatile( \
        "1:\n" \
        begin \
        "cmp %[rows], #0\n" \
        "beq 7f\n" \
        "2: ldr %[taps], [%[t], #20]\n" \
        taps_of_a_row \
        "ldr ip, [%[t], #32]\n" \
        "ldr lr, [%[t], #40]\n" \
        move \
        "add %[w], %[w], lr\n" \
        "subs %[rows], %[rows], #1\n" \
        "bne 2b\n" \
        "7:\n" \
        end \
        "mov ip, %[out]\n" \
        store \
        "add %[out], %[out], #16\n" \
        "subs %[blocks], %[blocks], #1\n" \
        "bne 1b\n" \
        : [w] "+r"(w), [out] "+r"(out), [blocks] "+r"(blocks), [rows] "=&r"(rows), \
          [taps] "=&r"(taps) \
        : [t] "r"(t) \
        : MUR_VFP_TAKEN); \
    return w

/* returns the weights of the next block */
MUR_APART const float *mur_tile4_f32(const mur_tile_f32 *t, const float *w, float *out)
{
    MUR_VFP_WALK(MUR_VFP_BEGIN_PIXELS,
                 MUR_VFP_TAPS(7, MUR_ADD_EIGHT,
                              "vldmia r4!, {s20}\n"
                              "vldmia r5!, {s22}\n"
                              "vldmia r6!, {s24}\n"
                              "vldmia r8!, {s26}\n"
                              MUR_ADD_FOUR(s20, s22, s24, s26),
                              MUR_VFP_MOVE_PIXELS),
                 MUR_VFP_MOVE_PIXELS, MUR_VFP_END_PIXELS, MUR_VFP_STORE_PIXELS);
}

/* the same for the first pixel alone: inputs in s4-s7, weights of four elements in s8-s23 */
MUR_APART const float *mur_tile1_f32(const mur_tile_f32 *t, const float *w, float *out)
{
    MUR_VFP_WALK(MUR_VFP_BEGIN_PIXEL,
                 MUR_VFP_TAPS(15,
                              "vldmia r4!, {s4-s7}\n"
                              "vldmia %[w]!, {s8-s23}\n"
                              MUR_VFP_SCALED(s0, s1, s2, s3, s8, s9, s10, s11, s4)
                              MUR_VFP_SCALED(s0, s1, s2, s3, s12, s13, s14, s15, s5)
                              MUR_VFP_SCALED(s0, s1, s2, s3, s16, s17, s18, s19, s6)
                              MUR_VFP_SCALED(s0, s1, s2, s3, s20, s21, s22, s23, s7),
                              "vldmia r4!, {s4}\n"
                              "vldmia %[w]!, {s8-s11}\n"
                              MUR_VFP_SCALED(s0, s1, s2, s3, s8, s9, s10, s11, s4),
                              MUR_VFP_MOVE_PIXEL),
                 MUR_VFP_MOVE_PIXEL,
                 "ldr ip, [%[t], #44]\n"
                 "ldr r4, [%[t], #52]\n"
                 "add %[w], %[w], ip\n",
                 MUR_VFP_STORE_PIXEL);
}

/* one tap of a depthwise layer for one pixel: its inputs at x */
#define MUR_ADD_TAP(a, b, c, d, x) \
    "vldm " #x ", {s20-s23}\n" \
    "add " #x ", " #x ", ip\n" \
    MUR_VFP_ADD_FOUR(a, b, c, d, s16, s17, s18, s19, s20, s21, s22, s23)

MUR_APART const float *mur_depthwise4_f32(mur_tile_f32 *t, const float *w, float *out)
{
    MUR_VFP_WALK(MUR_VFP_BEGIN_PIXELS,
                 MUR_VFP_DEPTH_TAPS(MUR_ADD_TAP(s0, s1, s2, s3, r4)
                                    MUR_ADD_TAP(s4, s5, s6, s7, r5)
                                    MUR_ADD_TAP(s8, s9, s10, s11, r6)
                                    MUR_ADD_TAP(s12, s13, s14, s15, r8)),
                 MUR_VFP_MOVE_PIXELS,
                 "ldm %[t], {r4-r6, r8}\n"
                 "add r4, r4, #16\n"
                 "add r5, r5, #16\n"
                 "add r6, r6, #16\n"
                 "add r8, r8, #16\n"
                 "stm %[t], {r4-r6, r8}\n"
                 MUR_VFP_END_PIXELS,
                 MUR_VFP_STORE_PIXELS);
}

MUR_APART const float *mur_depthwise1_f32(mur_tile_f32 *t, const float *w, float *out)
{
    MUR_VFP_WALK(MUR_VFP_BEGIN_PIXEL,
                 MUR_VFP_DEPTH_TAPS(MUR_ADD_TAP(s0, s1, s2, s3, r4)),
                 MUR_VFP_MOVE_PIXEL,
                 "ldr r4, [%[t]]\n"
                 "ldr ip, [%[t], #44]\n"
                 "add r4, r4, #16\n"
                 "str r4, [%[t]]\n"
                 "add %[w], %[w], ip\n"
                 "ldr r4, [%[t], #52]\n",
                 MUR_VFP_STORE_PIXEL);
}

/* clang-format on */

#endif
