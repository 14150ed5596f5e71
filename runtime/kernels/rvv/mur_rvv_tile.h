/* mur_rvv_tile.h - up to three pixels times as many channels as vectors hold: sums of 32 bits in
 * v8, v16 and v24, eight registers each, and the way from them to bytes. */
#ifndef MUR_RVV_TILE_H
#define MUR_RVV_TILE_H

#include "mur_fc.h"
#include "mur_rvv.h"

/* What a tile of channels has, from its first on. */
typedef struct mur_rvv_channels {
    const int32_t *bias;
    const int32_t *mul;   /* of each; if coded, [MUR_FC_MULS] of all */
    const uint8_t *right; /* of each; if coded, codes (mur_fc.h) */
    int32_t code_step;    /* 1, or 0: one code for all */
    int32_t count;
} mur_rvv_channels;

#if MUR_HAVE_RVV

/* Pieces of assembly, whose %[pixels] and %[coded] are constants. */

/* sums begin as biases; then elements of 16 bits */
#define MUR_RVV_BEGIN \
    "vsetvli zero, %[count], e32, m8, ta, mu\n" \
    "vle32.v v8, (%[bias])\n" \
    ".if %[pixels] > 1\n" \
    "vmv.v.v v16, v8\n" \
    ".endif\n" \
    ".if %[pixels] > 2\n" \
    "vmv.v.v v24, v8\n" \
    ".endif\n" \
    "vsetvli zero, %[count], e16, m4, ta, mu\n"

/* csrwi vxrm, 0, which assemblers refuse where no Zicsr is named */
#define MUR_RVV_HALVES_UP ".insn i 0x73, 5, zero, zero, 10\n"

/* MUR_REQUANT_Q31: vsmul is gemmlowp's SaturatingRoundingDoublingHighMul, rounded halves up; x - 1
 * of negative x, rounded halves up, is x rounded halves away from zero, if it is shifted at all.
 * Bytes are read into the upper end of where they are widened to. The first instruction is csrwi
 * vxrm, 0, which assemblers refuse where no Zicsr is named. */
#define MUR_RVV_SCALE \
    MUR_RVV_HALVES_UP \
    ".if %[coded]\n" \
    "vsetvli zero, %[count], e8, m2, ta, mu\n" \
    "vlse8.v v6, (%[right]), %[code_step]\n" \
    "vand.vi v6, v6, 7\n" \
    "vsll.vi v6, v6, 2\n" \
    "vsetvli zero, %[count], e32, m8, ta, mu\n" \
    "vluxei8.v v0, (%[mul]), v6\n" \
    ".else\n" \
    "vsetvli zero, %[count], e32, m8, ta, mu\n" \
    "vle32.v v0, (%[mul])\n" \
    ".endif\n" \
    ".irp v, 8, 16, 24\n" \
    ".if \\v <= 8 * %[pixels]\n" \
    "vsmul.vv v\\v, v\\v, v0\n" \
    ".endif\n" \
    ".endr\n" \
    "vsetvli zero, %[count], e8, m2, ta, mu\n" \
    ".if %[coded]\n" \
    "vlse8.v v6, (%[right]), %[code_step]\n" \
    "vsrl.vi v6, v6, 3\n" \
    ".else\n" \
    "vle8.v v6, (%[right])\n" \
    ".endif\n" \
    "vmsne.vi v1, v6, 0\n" \
    "vsetvli zero, %[count], e32, m8, ta, mu\n" \
    ".irp v, 8, 16, 24\n" \
    ".if \\v <= 8 * %[pixels]\n" \
    "vmslt.vx v0, v\\v, zero\n" \
    "vmand.mm v0, v0, v1\n" \
    "vadd.vi v\\v, v\\v, -1, v0.t\n" \
    ".endif\n" \
    ".endr\n" \
    "vzext.vf4 v0, v6\n" \
    ".irp v, 8, 16, 24\n" \
    ".if \\v <= 8 * %[pixels]\n" \
    "vssra.vv v\\v, v\\v, v0\n" \
    ".endif\n" \
    ".endr\n"

/* 32 bits to 16, plus the zero point, to 8, each of them saturated */
#define MUR_RVV_BYTES \
    "vsetvli zero, %[count], e16, m4, ta, mu\n" \
    ".irp v, 8, 16, 24\n" \
    ".if \\v <= 8 * %[pixels]\n" \
    "vnclip.wi v\\v, v\\v, 0\n" \
    "vsadd.vx v\\v, v\\v, %[zero]\n" \
    ".endif\n" \
    ".endr\n" \
    "vsetvli zero, %[count], e8, m2, ta, mu\n" \
    ".irp v, 8, 16, 24\n" \
    ".if \\v <= 8 * %[pixels]\n" \
    "vnclip.wi v\\v, v\\v, 0\n" \
    "vmax.vx v\\v, v\\v, %[min]\n" \
    "vmin.vx v\\v, v\\v, %[max]\n" \
    ".endif\n" \
    ".endr\n"

/* inputs of each pixel times the channels' weights, by fours up to `stop`, then one by one */
#define MUR_RVV_INPUTS \
    ".irp by, 4, 1\n" \
    "beq %[x], %[stop], 2f\n" \
    "1:\n" \
    ".irp k, 0, 1, 2, 3\n" \
    ".if \\k < \\by\n" \
    "vle8.v v0, (%[w])\n" \
    "add %[w], %[w], %[w_step]\n" \
    "vsext.vf2 v4, v0\n" \
    "lb %[a], \\k(%[x])\n" \
    "vwmacc.vx v8, %[a], v4\n" \
    ".if %[pixels] > 1\n" \
    "lb %[b], \\k(%[x1])\n" \
    "vwmacc.vx v16, %[b], v4\n" \
    ".endif\n" \
    ".if %[pixels] > 2\n" \
    "lb %[a], \\k(%[x2])\n" \
    "vwmacc.vx v24, %[a], v4\n" \
    ".endif\n" \
    ".endif\n" \
    ".endr\n" \
    "addi %[x], %[x], \\by\n" \
    ".if %[pixels] > 1\n" \
    "addi %[x1], %[x1], \\by\n" \
    ".endif\n" \
    ".if %[pixels] > 2\n" \
    "addi %[x2], %[x2], \\by\n" \
    ".endif\n" \
    "bne %[x], %[stop], 1b\n" \
    "2: mv %[stop], %[end]\n" \
    ".endr\n"

#define MUR_RVV_STORE \
    "vse8.v v8, (%[out])\n" \
    ".if %[pixels] > 1\n" \
    "add %[out], %[out], %[out_pitch]\n" \
    "vse8.v v16, (%[out])\n" \
    ".endif\n" \
    ".if %[pixels] > 2\n" \
    "add %[out], %[out], %[out_pitch]\n" \
    "vse8.v v24, (%[out])\n" \
    ".endif\n"

/* void name(output, channels, x, x_pitch, inputs, w, w_step, out, out_pitch): so many pixels, whose
 * inputs lie x_pitch bytes apart, outputs out_pitch, an input's weights w_step. A function each, as
 * assembly takes no argument for a constant where nothing is optimized. */
#define MUR_RVV_MULTIPLY(name, pixel_count, is_coded) \
    static void name(const mur_output_s8 *output, const mur_rvv_channels *channels, \
                     const int8_t *x, int32_t x_pitch, int32_t inputs, const int8_t *w, \
                     int32_t w_step, int8_t *out, int32_t out_pitch) \
    { \
        const int8_t *x1 = x + x_pitch, *x2 = x1 + x_pitch; \
        const int8_t *stop = x + (inputs & ~3), *end = x + inputs; \
        int32_t a, b; \
\
        __asm__ volatile( \
            MUR_RVV_BEGIN MUR_RVV_INPUTS MUR_RVV_SCALE MUR_RVV_BYTES MUR_RVV_STORE \
            : [x] "+&r"(x), [x1] "+&r"(x1), [x2] "+&r"(x2), [w] "+&r"(w), [out] "+&r"(out), \
              [stop] "+&r"(stop), [a] "=&r"(a), [b] "=&r"(b) \
            : [pixels] "i"(pixel_count), [coded] "i"(is_coded), [end] "r"(end), \
              [w_step] "r"((intptr_t)w_step), [out_pitch] "r"((intptr_t)out_pitch), \
              [count] "r"((intptr_t)channels->count), [bias] "r"(channels->bias), \
              [mul] "r"(channels->mul), [right] "r"(channels->right), \
              [code_step] "r"((intptr_t)channels->code_step), [zero] "r"((intptr_t)output->zero), \
              [min] "r"((intptr_t)output->min), [max] "r"((intptr_t)output->max) \
            : MUR_RVV_CHANGES); \
    }

#else

/* a sum of the i-th channel to its byte */
static inline int8_t mur_rvv_byte(const mur_output_s8 *output, const mur_rvv_channels *channels,
                                  int32_t i, int coded, int32_t sum)
{
    int32_t right = channels->right[coded ? i * channels->code_step : i];

    if (coded)
        return mur_requant(sum, channels->mul[right % MUR_FC_MULS], -(right / MUR_FC_MULS), output);
    return mur_requant(sum, channels->mul[i], -right, output);
}

#define MUR_RVV_MULTIPLY(name, pixel_count, is_coded) \
    static void name(const mur_output_s8 *output, const mur_rvv_channels *channels, \
                     const int8_t *x, int32_t x_pitch, int32_t inputs, const int8_t *w, \
                     int32_t w_step, int8_t *out, int32_t out_pitch) \
    { \
        for (int32_t p = pixel_count; p > 0; p--, x += x_pitch, out += out_pitch) \
            for (int32_t i = 0; i < channels->count; i++) { \
                int32_t sum = channels->bias[i]; \
\
                for (int32_t k = 0; k < inputs; k++) \
                    sum += x[k] * w[k * w_step + i]; \
                out[i] = mur_rvv_byte(output, channels, i, is_coded, sum); \
            } \
    }

#endif

#endif
