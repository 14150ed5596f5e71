/* mur_dsp_tile.h - sums of products of one and of four pixels with all output channels,
 * requantized: the inner loops of mur_dsp_conv_s8. Four pixels by two channels take 14 instructions
 * for 16 products.
 *
 * Inputs come by fours as SXTB16 leaves them: bytes 0 and 2, then 1 and 3. */
#ifndef MUR_DSP_TILE_H
#define MUR_DSP_TILE_H

#include "mur_dsp_sums.h"
#include "mur_nn.h"

/* A run over pairs of channels for one or four pixels.
 * w: for each pair: bias a, 256 * bias b + bias a, the weights (a word for two inputs), then twice
 * a's multiplier, the right shifts (a's in byte 0, b's in byte 1), twice b's multiplier. ASRS takes
 * its count from byte 0. The order of members is the assembly's. */
typedef struct mur_dsp_tile {
    const uint32_t *x, *x_end; /* pairs of inputs; of four pixels by turns */
    const uint32_t *w, *w_end;
    int8_t *out;
    int32_t out_step; /* from pixel to pixel */
    int32_t zero;     /* of the output */
    int32_t odd;      /* is the number of inputs an odd multiple of 4? */
} mur_dsp_tile;

#if MUR_HAVE_DSP

/* MUR_DSP_TILE_LOOP: the sums of a pair of channels; [sp, #4] is where the last turn of the loop
 * begins, [sp, #28] whether the number of inputs is an odd multiple of 4. MUR_DSP_TILE_OUT: the
 * sums to outputs, from the multipliers at lr; leaves flags for the branch to the next pair. In the
 * order that the core wants: one that issues two instructions at a time loads between products,
 * another has loads side by side, where they cost less. */
#if MUR_DUAL_ISSUE

#include "mur_dsp_tile_dual.h"

#else

/* two inputs of four pixels and two channels, weights at lr + w, inputs at r12 + a to d; `load` and
 * `then` stand before and behind the first loads */
/* clang-format off */
#define MUR_DSP_MAC8(load, then, w, a, b, c, d) \
    load \
    "ldr r10, [lr, #" #w "]\n" \
    "ldr r8, [r12, #" #a "]\n" \
    "ldr r9, [r12, #" #b "]\n" \
    then \
    "sxtb16 r11, r10\n" \
    "smlad r0, r8, r11, r0\n" \
    "smlad r4, r8, r10, r4\n" \
    "smlad r1, r9, r11, r1\n" \
    "smlad r5, r9, r10, r5\n" \
    "ldr r8, [r12, #" #c "]\n" \
    "ldr r9, [r12, #" #d "]\n" \
    "smlad r2, r8, r11, r2\n" \
    "smlad r6, r8, r10, r6\n" \
    "smlad r3, r9, r11, r3\n" \
    "smlad r7, r9, r10, r7\n"

#define MUR_DSP_TILE_LOOP \
    "ldr r8, [sp, #28]\n" \
    "cmp r8, #0\n" \
    "itt ne\n" \
    "subne r12, r12, #32\n" \
    "subne lr, lr, #8\n" \
    "bne 3f\n" \
    "2:\n" \
    MUR_DSP_MAC8("", "", 0, 0, 4, 8, 12) \
    MUR_DSP_MAC8("", "", 4, 16, 20, 24, 28) \
    "3:\n" \
    MUR_DSP_MAC8("ldr r11, [sp, #4]\n", "cmp r12, r11\n", 8, 32, 36, 40, 44) \
    MUR_DSP_MAC8("", "", 12, 48, 52, 56, 60) \
    "add lr, lr, #16\n" \
    "add r12, r12, #64\n" \
    "bne 2b\n"
/* clang-format on */

#define MUR_DSP_TILE_OUT \
    "ldm lr!, {r8-r10}\n" \
    "sub r4, r4, r0\n" \
    "sub r5, r5, r1\n" \
    "sub r6, r6, r2\n" \
    "sub r7, r7, r3\n" \
    "asr r4, r4, #8\n" \
    "asr r5, r5, #8\n" \
    "asr r6, r6, #8\n" \
    "asr r7, r7, #8\n" \
    "ldr r11, [sp, #24]\n" MUR_DSP_REQUANT(r0, r8, r9, r11) MUR_DSP_REQUANT(r1, r8, r9, r11) \
        MUR_DSP_REQUANT(r2, r8, r9, r11) \
            MUR_DSP_REQUANT(r3, r8, r9, r11) "lsr r9, r9, #8\n" MUR_DSP_REQUANT(r4, r10, r9, r11) \
                MUR_DSP_REQUANT(r5, r10, r9, r11) MUR_DSP_REQUANT(r6, r10, r9, r11) \
                    MUR_DSP_REQUANT(r7, r10, r9, r11) "bfi r0, r4, #8, #8\n" \
                                                      "bfi r1, r5, #8, #8\n" \
                                                      "bfi r2, r6, #8, #8\n" \
                                                      "bfi r3, r7, #8, #8\n" \
                                                      "ldr r12, [sp, #16]\n" \
                                                      "ldr r10, [sp, #20]\n" \
                                                      "ldr r9, [sp, #12]\n" \
                                                      "add r8, r12, r10\n" \
                                                      "strh r0, [r12]\n" \
                                                      "strh r1, [r12, r10]\n" \
                                                      "strh r2, [r12, r10, lsl #1]\n" \
                                                      "strh r3, [r8, r10, lsl #1]\n" \
                                                      "add r12, r12, #2\n" \
                                                      "str r12, [sp, #16]\n" \
                                                      "cmp lr, r9\n"

#endif

/* r0-r3: sums of a; r4-r7: of 256 b + a; r12: x; lr: w. On the stack a copy of *tile. */
/* clang-format off */
__attribute__((naked, noinline)) static void
mur_dsp_tile4(__attribute__((unused)) const mur_dsp_tile *tile)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "ldm r0, {r1-r8}\n"
                     "subs r2, #64\n"
                     "push {r1-r8}\n"
                     "mov lr, r3\n"
                     "1: ldrd r0, r4, [lr], #8\n"
                     "ldr r12, [sp]\n"
                     "mov r1, r0\n"
                     "mov r2, r0\n"
                     "mov r3, r0\n"
                     "mov r5, r4\n"
                     "mov r6, r4\n"
                     "mov r7, r4\n"
                     MUR_DSP_TILE_LOOP
                     MUR_DSP_TILE_OUT
                     "bne 1b\n"
                     "add sp, sp, #32\n"
                     "pop {r4-r11, pc}\n");
}
/* clang-format on */

/* r0: sum of a; r1: of 256 b + a; r12: x, r11: its end; lr: w. On the stack a copy of *tile. */
/* clang-format off */
__attribute__((naked, noinline)) static void
mur_dsp_tile1(__attribute__((unused)) const mur_dsp_tile *tile)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "ldm r0, {r1-r8}\n"
                     "push {r1-r8}\n"
                     "mov lr, r3\n"
                     "mov r11, r2\n"
                     "1: ldrd r0, r1, [lr], #8\n"
                     "ldr r2, [sp, #28]\n"
                     "ldr r12, [sp]\n"
                     "cbz r2, 2f\n"
                     "ldm r12!, {r2, r3}\n"
                     "ldm lr!, {r6, r7}\n"
                     MUR_DSP_MAC2(r2, r6)
                     MUR_DSP_MAC2(r3, r7)
                     "cmp r12, r11\n"
                     "beq 3f\n"
                     "2: ldm r12!, {r2-r5}\n"
                     "ldm lr!, {r6-r9}\n"
                     MUR_DSP_MAC2(r2, r6)
                     MUR_DSP_MAC2(r3, r7)
                     MUR_DSP_MAC2(r4, r8)
                     MUR_DSP_MAC2(r5, r9)
                     "cmp r12, r11\n"
                     "bne 2b\n"
                     "3: ldm lr!, {r2-r4}\n"
                     "lsr r5, r3, #8\n"
                     "ldr r12, [sp, #16]\n"
                     "ldr r8, [sp, #24]\n"
                     "sub r1, r1, r0\n"
                     "asr r1, r1, #8\n"
                     MUR_DSP_REQUANT(r0, r2, r3, r8)
                     MUR_DSP_REQUANT(r1, r4, r5, r8)
                     "ldr r6, [sp, #12]\n"
                     "bfi r0, r1, #8, #8\n"
                     "strh r0, [r12], #2\n"
                     "str r12, [sp, #16]\n"
                     "cmp lr, r6\n"
                     "bne 1b\n"
                     "add sp, sp, #32\n"
                     "pop {r4-r11, pc}\n");
}
/* clang-format on */

#else

/* the same for any number of pixels by turns */
static inline void mur_dsp_tiles(const mur_dsp_tile *tile, int32_t pixels)
{
    int8_t *out = tile->out;

    for (const uint32_t *w = tile->w; w != tile->w_end; out += 2) {
        const uint32_t *last = w + 2 + (tile->x_end - tile->x) / pixels;

        for (int32_t i = 0; i < pixels; i++) {
            const uint32_t *x = tile->x + i, *h = w + 2;
            int32_t a = (int32_t)w[0], b = (int32_t)w[1];

            for (; h != last; h++, x += pixels) {
                a = mur_smlad(*x, mur_sxtb16(*h), a);
                b = mur_smlad(*x, *h, b);
            }
            b = (int32_t)((uint32_t)b - (uint32_t)a);
            out[i * tile->out_step] = mur_dsp_output(a, h[0], h[1] & 255, tile->zero);
            out[i * tile->out_step + 1] =
                mur_dsp_output(mur_asr(b, 8), h[2], h[1] >> 8, tile->zero);
        }
        w = last + 3;
    }
}

static inline void mur_dsp_tile4(const mur_dsp_tile *tile)
{
    mur_dsp_tiles(tile, 4);
}

static inline void mur_dsp_tile1(const mur_dsp_tile *tile)
{
    mur_dsp_tiles(tile, 1);
}

#endif

#endif
