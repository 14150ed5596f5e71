/* mur_mve_narrow.h - outputs of pixels of up to a vector of inputs each, four pixels at a time, and
 * where outputs of four pixels go. */
#ifndef MUR_MVE_NARROW_H
#define MUR_MVE_NARROW_H

#include "mur_mve.h"

enum { MUR_MVE_PIXELS = 4 }; /* at a time */

#if MUR_HAVE_MVE

/* clang-format off */
/* Of a channel whose weights are in %q3, and whose sum with the first pixel in r0: its sums with the
 * four pixels, scaled as by mur_mve_run_four, to vector a. shift: where it lies; next: loads the next
 * channel's weights; first: its sum with the first pixel. */
#define MUR_MVE_NARROW(a, shift, next, first) \
    "vmladav.s8 r6, %q13, %q3\n" \
    "ldrsb r8, [%4" shift "\n" \
    "vmladav.s8 r4, %q12, %q3\n" \
    "add %5, %5, %6\n" \
    "vmladav.s8 r2, %q11, %q3\n" \
    "vmov " a "[2], " a "[0], r0, r4\n" \
    next \
    "vmov " a "[3], " a "[1], r2, r6\n" \
    first \
    "ldm %4!, {r2, r4}\n" \
    "vadd.i32 " a ", " a ", r2\n" \
    "vqrdmulh.s32 " a ", " a ", r4\n" \
    "lsr r10, r8, #31\n" \
    "vqdmlah.s32 " a ", " a ", r10\n" \
    "vrshl.s32 " a ", r8\n"
#define MUR_MVE_NARROW_WEIGHTS "vldrb.8 %q3, [%5]\n"
#define MUR_MVE_NARROW_FIRST "vmladav.s8 r0, %q10, %q3\n"

/* Outputs [4 pixels][4 channels] of the next four channels, of pixels of one vector each. */
static inline __attribute__((always_inline)) int8x16_t
mur_mve_narrow_four(const int8x16_t *x, const mur_mve_four **four, const int8_t **w,
                    int32_t inputs, int32_t zero, int32_t min, int32_t max)
{
    int8x16_t y, b, c, weights;

    __asm__ volatile(
        MUR_MVE_NARROW_WEIGHTS
        MUR_MVE_NARROW_FIRST
        MUR_MVE_NARROW("%q0", "], #4", MUR_MVE_NARROW_WEIGHTS, MUR_MVE_NARROW_FIRST)
        MUR_MVE_NARROW("%q1", ", #-11]", MUR_MVE_NARROW_WEIGHTS, MUR_MVE_NARROW_FIRST)
        MUR_MVE_NARROW("%q2", ", #-18]", MUR_MVE_NARROW_WEIGHTS, MUR_MVE_NARROW_FIRST)
        "vqmovnb.s32 %q0, %q0\n"
        "vqmovnt.s32 %q0, %q2\n"
        MUR_MVE_NARROW("%q2", ", #-25]", "", "vqmovnb.s32 %q1, %q1\n")
        "vqadd.s16 %q0, %q0, %7\n"
        "vqmovnt.s32 %q1, %q2\n"
        "vqmovnb.s16 %q0, %q0\n"
        "vqadd.s16 %q1, %q1, %7\n"
        "vdup.8 %q2, %8\n"
        "vqmovnt.s16 %q0, %q1\n"
        "vdup.8 %q1, %9\n"
        "vmax.s8 %q0, %q0, %q2\n"
        "vmin.s8 %q0, %q0, %q1\n"
        : "=&w"(y), "=&w"(b), "=&w"(c), "=&w"(weights), "+r"(*four), "+r"(*w)
        : "r"(inputs), "r"(zero), "r"(min), "r"(max), "w"(x[0]), "w"(x[1]), "w"(x[2]), "w"(x[3])
        : "r0", "r2", "r4", "r6", "r8", "r10", "memory");
    return y;
}

#undef MUR_MVE_NARROW
#undef MUR_MVE_NARROW_WEIGHTS
#undef MUR_MVE_NARROW_FIRST
/* clang-format on */

/* loads x[0..3], each of the first `inputs` of a vector, zeros behind, by `load` from %4 to %7 */
#define MUR_MVE_LOAD_PIXELS(load, where, ...) \
    __asm__ volatile("vctp.8 %8\n" \
                     "vpstttt\n" load " %q0, [%4" where "]\n" load " %q1, [%5" where "]\n" load \
                     " %q2, [%6" where "]\n" load " %q3, [%7" where "]\n" \
                     : "=&w"(x[0]), "=&w"(x[1]), "=&w"(x[2]), "=&w"(x[3]) \
                     : "r"(from), "r"(b), "r"(c), "r"(c + (pixels > 3 ? step : 0)), \
                       "r"(inputs)__VA_ARGS__ \
                     : "p0", "memory")

static inline __attribute__((always_inline)) void
mur_mve_load_pixels(const int8_t *from, int32_t step, int32_t pixels, int32_t inputs,
                    const uint8_t *at, int8x16_t *x)
{
    const int8_t *b = from + (pixels > 1 ? step : 0), *c = b + (pixels > 2 ? step : 0);

    if (at)
        MUR_MVE_LOAD_PIXELS("vldrbt.u8", ", %q9", , "w"(vldrbq_u8(at)));
    else
        MUR_MVE_LOAD_PIXELS("vldrbt.8", "", );
}

#undef MUR_MVE_LOAD_PIXELS

/* where four pixels' outputs go */
typedef struct mur_mve_places {
    uint32_t at[MUR_MVE_PIXELS]; /* bytes behind the first */
    int32_t depth, pixels;       /* bytes from one to the next; up to four */
    int32_t words;               /* whether all are words of four channels */
    int32_t whole;               /* and all four pixels are there */
} mur_mve_places;

static inline void mur_mve_set_places(mur_mve_places *to, const int8_t *out, int32_t depth,
                                      int32_t channels)
{
    to->depth = depth;
    vstrwq_u32(to->at, vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)depth));
    to->words = (((uintptr_t)out | (uintptr_t)depth | (uintptr_t)channels) & 3) == 0;
}

static inline void mur_mve_set_pixels(mur_mve_places *to, int32_t pixels)
{
    to->pixels = pixels;
    to->whole = to->words && pixels == MUR_MVE_PIXELS;
}

/* bytes [4 pixels][4 channels], of which those of the channels before `end` are there, anywhere */
static __attribute__((noinline)) void mur_mve_store_some(const mur_mve_places *to, int8_t *out,
                                                         int8x16_t y, const int8_t *end)
{
    int32_t left = (int32_t)(end - out);
    int32x4_t bytes = vreinterpretq_s32_s8(y);

    if (left >= MUR_MVE_FOUR && to->pixels == MUR_MVE_PIXELS) {
        mur_mve_store_words(out, to->at, y);
        return;
    }
    left = left < MUR_MVE_FOUR ? left : MUR_MVE_FOUR;
    __asm__ volatile("vctp.32 %3\n"
                     "1: vpst\n"
                     "vstrbt.32 %q0, [%1, %q4]\n"
                     "vshr.u32 %q0, %q0, #8\n"
                     "add %1, %1, #1\n"
                     "subs %2, %2, #1\n"
                     "bne 1b\n"
                     : "+w"(bytes), "+l"(out), "+l"(left)
                     : "r"(to->pixels), "w"(vldrwq_u32(to->at))
                     : "p0", "cc", "memory");
}

/* the same. in_line: with code of its own for words that are not aligned, where little else is done
 */
static inline __attribute__((always_inline)) void
mur_mve_store(const mur_mve_places *to, int8_t *out, int8x16_t y, const int8_t *end, int in_line)
{
    if (to->whole)
        vstrwq_scatter_offset_s32((int32_t *)(void *)out, vldrwq_u32(to->at),
                                  vreinterpretq_s32_s8(y));
    else if (in_line && to->pixels == MUR_MVE_PIXELS && end - out >= MUR_MVE_FOUR)
        mur_mve_store_words(out, to->at, y);
    else
        mur_mve_store_some(to, out, y, end);
}

/* Outputs, with weights of `inputs` each, at most a vector, from w on, of `count` pixels whose
 * inputs lie `step` apart from `from` on: side by side, or each at its place of `at`. */
static inline __attribute__((always_inline)) void
mur_mve_run_few(const mur_conv_s8 *layer, const int8_t *from, int32_t step, int32_t inputs,
                const uint8_t *at, const mur_mve_four *fours, const int8_t *w, int32_t outputs,
                int8_t *out, int32_t count)
{
    int32_t zero = layer->output.zero, min = layer->output.min, max = layer->output.max;
    int32_t depth = layer->shape.out_c;
    mur_mve_places to;

    mur_mve_set_places(&to, out, depth, outputs);
    for (; count > 0; count -= MUR_MVE_PIXELS, from += MUR_MVE_PIXELS * step) {
        const mur_mve_four *four = fours;
        const int8_t *next = w;
        int8x16_t x[MUR_MVE_PIXELS];
        int8_t *y = out;

        mur_mve_set_pixels(&to, count < MUR_MVE_PIXELS ? count : MUR_MVE_PIXELS);
        mur_mve_load_pixels(from, step, to.pixels, inputs, at, x);
        for (const int8_t *end = out + outputs; y < end; y += 4)
            mur_mve_store(&to, y, mur_mve_narrow_four(x, &four, &next, inputs, zero, min, max), end,
                          1);
        out += MUR_MVE_PIXELS * depth;
    }
}

#else

static inline int8_t mur_mve_scaled(const mur_mve_four *fours, int32_t c, int32_t sum,
                                    const mur_output_s8 *to)
{
    const mur_mve_four *four = fours + c / MUR_MVE_FOUR;
    const mur_mve_channel *channel = four->channel + c % MUR_MVE_FOUR;

    return mur_requant(channel->bias + sum, channel->mul, four->shift[c % MUR_MVE_FOUR], to);
}

static inline void mur_mve_run_few(const mur_conv_s8 *layer, const int8_t *from, int32_t step,
                                   int32_t inputs, const uint8_t *at, const mur_mve_four *fours,
                                   const int8_t *w, int32_t outputs, int8_t *out, int32_t count)
{
    for (; count > 0; count--, from += step, out += layer->shape.out_c) {
        int8_t x[MUR_MVE_BYTES]; /* which outputs may overwrite */

        for (int32_t k = 0; k < inputs; k++)
            x[k] = from[at ? at[k] : k];
        for (int32_t c = 0; c < outputs; c++) {
            int32_t sum = 0;

            for (int32_t k = 0; k < inputs; k++)
                sum += x[k] * w[c * inputs + k];
            out[c] = mur_mve_scaled(fours, c, sum, &layer->output);
        }
    }
}

#endif

#endif
