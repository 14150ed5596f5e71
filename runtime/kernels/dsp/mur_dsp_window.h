/* mur_dsp_window.h - the inputs of windows, for mur_dsp_conv_s8 and mur_dsp_conv_wide_s8.
 *
 * The inputs of four neighbouring pixels (of one, where a row ends) are widened to int16 in
 * scratch, in the order of the weights, of windows of one short run those of some fours one behind
 * another; then one run over the group's output channels. A kernel row is one run of bytes unless
 * it is dilated or grouped. */
#ifndef MUR_DSP_WINDOW_H
#define MUR_DSP_WINDOW_H

#include "mur_dsp.h"
#include "mur_dsp_conv.h"
#include "mur_nn_arith.h"

#include <string.h>

/* what is needed for each pixel */
typedef struct mur_dsp_window {
    const mur_conv_s8 *layer;
    mur_dsp_runs runs;
    uint32_t *x; /* inputs of one or four pixels, of a group, or of `fours` fours */
    int32_t fours;
    int8_t *border;         /* a run with bytes outside the image, or the padded rows */
    const int8_t *in, *end; /* the group's first channel; behind the image */
    void *kernel;           /* what mur_dsp_multiply keeps from group to group */
} mur_dsp_window;

/* one pixel of `pixels` that share x by turns */
static void mur_dsp_widen1(uint32_t *x, int32_t pixels, const int8_t *from, int32_t words)
{
    for (; words > 0; words--, from += 4, x += 2 * pixels) {
        uint32_t four = mur_four(from);

        x[0] = mur_sxtb16(four);
        x[pixels] = mur_sxtb16_odd(four);
    }
}

/* Four words to r0, which moves on. A core that issues one instruction at a time takes a cycle for
 * each, and one more if they are one instruction. */
#if MUR_DUAL_ISSUE
#define MUR_DSP_WINDOW_PUT(a, b, c, d) "stm r0!, {" #a ", " #b ", " #c ", " #d "}\n"
#else
#define MUR_DSP_WINDOW_PUT(a, b, c, d) \
    "str " #a ", [r0], #16\n" \
    "str " #b ", [r0, #-12]\n" \
    "str " #c ", [r0, #-8]\n" \
    "str " #d ", [r0, #-4]\n"
#endif

/* `runs` runs of four pixels, `step` bytes from pixel to pixel and `next` from run to run */
/* clang-format off */
static void mur_dsp_widen4(uint32_t *x, const int8_t *from, int32_t step, int32_t words,
                           int32_t runs, int32_t next)
{
#if MUR_HAVE_DSP
    register uint32_t *to __asm__("r0") = x;
    register const int8_t *a __asm__("r1") = from;
    register int32_t by __asm__("r2") = step;
    register int32_t bytes __asm__("r3") = 32 * words;
    register int32_t left __asm__("r4") = runs;
    register int32_t skip __asm__("r5") = next - 4 * words;

    if (words <= 0)
        return;
    __asm__ volatile("push {r3, r4, r5}\n"
                     "add r12, r2, r2, lsl #1\n"
                     "0: add r3, r0, r3\n"
                     "1: ldr r4, [r1]\n"
                     "ldr r5, [r1, r2]\n"
                     "ldr r6, [r1, r2, lsl #1]\n"
                     "ldr r8, [r1, r12]\n"
                     "sxtb16 r9, r4\n"
                     "sxtb16 r10, r5\n"
                     "sxtb16 r11, r6\n"
                     "sxtb16 lr, r8\n"
                     MUR_DSP_WINDOW_PUT(r9, r10, r11, lr)
                     "sxtb16 r4, r4, ror #8\n"
                     "sxtb16 r5, r5, ror #8\n"
                     "sxtb16 r6, r6, ror #8\n"
                     "sxtb16 r8, r8, ror #8\n"
                     MUR_DSP_WINDOW_PUT(r4, r5, r6, r8)
                     "add r1, #4\n"
                     "cmp r0, r3\n"
                     "bne 1b\n"
                     "ldm sp, {r3, r4, r5}\n"
                     "subs r4, r4, #1\n"
                     "str r4, [sp, #4]\n"
                     "add r1, r1, r5\n"
                     "bne 0b\n"
                     "add sp, sp, #12\n"
                     : "+r"(to), "+r"(a), "+r"(bytes), "+r"(left), "+r"(skip)
                     : "r"(by)
                     : "r6", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");
#else
    for (; runs > 0; runs--, from += next, x += 8 * words)
        for (int32_t i = 0; i < 4; i++)
            mur_dsp_widen1(x + i, 4, from + i * step, words);
#endif
}
/* clang-format on */

/* the place of byte `at` of the bytes behind the words; the next pixel's is two behind it */
static int16_t *mur_dsp_rest_at(uint32_t *behind, int32_t pixels, int32_t at)
{
    return (int16_t *)(void *)(behind + (at >> 1) * pixels) + (at & 1);
}

static void mur_dsp_put_rest(int16_t *to, int16_t wide)
{
    __builtin_memcpy(to, &wide, sizeof(wide)); /* no call */
}

/* a byte of four pixels, `by` apart, at `half` and so on */
static inline void mur_dsp_put_rests(int16_t *half, const int8_t *byte, int32_t by)
{
#if MUR_HAVE_DSP
    int32_t wide;

    __asm__ volatile("ldrsb %0, [%2]\n"
                     "strh %0, [%1]\n"
                     "ldrsb %0, [%2, %3]\n"
                     "strh %0, [%1, #4]\n"
                     "ldrsb %0, [%2, %3, lsl #1]\n"
                     "strh %0, [%1, #8]\n"
                     "ldrsb %0, [%2, %4]\n"
                     "strh %0, [%1, #12]\n"
                     : "=&r"(wide)
                     : "r"(half), "r"(byte), "r"(by), "r"(3 * by)
                     : "memory");
#else
    for (int32_t i = 0; i < 4; i++)
        mur_dsp_put_rest(half + 2 * i, byte[i * by]);
#endif
}

/* row `i` of a window whose left edge is `column`: run j begins at the result, which may be a copy
 */
static __attribute__((hot)) const int8_t *mur_dsp_find_run(const mur_dsp_window *window,
                                                           int32_t row, int32_t column, int32_t j)
{
    const mur_conv_s8 *layer = window->layer;
    int32_t bytes = window->runs.bytes, before = 0, inside = bytes;
    const int8_t *from;

    if (row < 0 || row >= layer->shape.in_h) {
        inside = 0;
    } else if (window->runs.a_row == 1) { /* a run of whole pixels */
        int32_t after = (column + layer->shape.kernel_w - layer->shape.in_w) * layer->shape.in_c;

        before = column < 0 ? -column * layer->shape.in_c : 0;
        before = before > bytes ? bytes : before;
        inside = bytes - before - (after > 0 ? after : 0);
    } else {
        column += j * layer->shape.dilation_w;
        if (column < 0 || column >= layer->shape.in_w)
            inside = 0;
    }
    from = window->in + row * layer->shape.in_pitch + (column < 0 ? 0 : column) * layer->shape.in_c;
    if (inside == bytes && window->end - from >= 4 * window->runs.run_words)
        return from;
    memset(window->border, layer->in_zero, (size_t)bytes);
    if (inside > 0)
        memcpy(window->border + before, from, (size_t)inside);
    return window->border;
}

/* the last column at which a window does not reach over the right edge */
static inline int32_t mur_dsp_last_column(const mur_conv_shape *s)
{
    return s->in_w - 1 - (s->kernel_w - 1) * s->dilation_w;
}

/* Is there memory for all that the windows of four pixels from `column` on touch, and their runs'
 * last words, in rows that are not outside? */
static __attribute__((cold)) int mur_dsp_is_memory(const mur_dsp_window *window, int32_t top,
                                                   int32_t column)
{
    const mur_conv_shape *s = &window->layer->shape;
    int32_t first = top < 0 ? 0 : top, last = top + (s->kernel_h - 1) * s->dilation_h;
    int32_t right = column + 3 * s->stride_w + (window->runs.a_row - 1) * s->dilation_w;
    int32_t words = 4 * window->runs.run_words, bytes = window->runs.bytes;

    last = last < s->in_h ? last : s->in_h - 1;
    return first * s->in_pitch + column * s->in_c >= 0 &&
           last * s->in_pitch + right * s->in_c + (words > bytes ? words : bytes) <=
               window->end - window->in;
}

/* one of `pixels` pixels */
static __attribute__((noinline, hot)) void mur_dsp_gather1(const mur_dsp_window *window,
                                                           uint32_t *x, int32_t pixels, int32_t top,
                                                           int32_t column)
{
    const mur_conv_shape *s = &window->layer->shape;
    int32_t words = window->runs.run_words, rest = window->runs.rest, at = 0;
    uint32_t *behind = x + window->runs.whole_words * 2 * pixels;

    for (int32_t i = 0; i < s->kernel_h; i++, top += s->dilation_h)
        for (int32_t j = 0; j < window->runs.a_row; j++, x += words * 2 * pixels) {
            const int8_t *from = mur_dsp_find_run(window, top, column, j);

            mur_dsp_widen1(x, pixels, from, words);
            for (int32_t k = 0; k < rest; k++)
                mur_dsp_put_rest(mur_dsp_rest_at(behind, pixels, at++), from[words * 4 + k]);
        }
}

/* `count` runs of four pixels, from the window's run `first` on */
static __attribute__((noinline, hot)) void mur_dsp_gather_runs(const mur_dsp_window *window,
                                                               int32_t first, int32_t count,
                                                               const int8_t *from, int32_t by,
                                                               int32_t next)
{
    int32_t words = window->runs.run_words, rest = window->runs.rest;

    mur_dsp_widen4(window->x + first * words * 8, from, by, words, count, next);
    if (rest > 0) {
        int32_t at = first * rest;
        int16_t *half = mur_dsp_rest_at(window->x + window->runs.whole_words * 8, 4, at);
        int32_t step = at & 1 ? 14 : 2; /* bytes from place to place, by turns */

        for (from += words * 4; count > 0; count--, from += next)
            for (int32_t k = 0; k < rest; k++) {
                mur_dsp_put_rests(half, from + k, by);
                half = (int16_t *)(void *)((int8_t *)half + step);
                step = 16 - step;
            }
    }
}

/* Four pixels whose windows lie between the left and the right edge, row by row. */
static inline void mur_dsp_gather4(const mur_dsp_window *window, int32_t top, int32_t column)
{
    const mur_conv_shape *s = &window->layer->shape;
    int32_t runs = window->runs.a_row;

    for (int32_t i = 0; i < s->kernel_h; i++, top += s->dilation_h) {
        const int8_t *from = window->in + top * s->in_pitch + column * s->in_c;
        int32_t is_inside = top >= 0 && top < s->in_h;

        if (!is_inside)
            from = mur_dsp_find_run(window, top, column, 0);
        mur_dsp_gather_runs(window, i * runs, runs, from, is_inside * s->stride_w * s->in_c,
                            is_inside * s->dilation_w * s->in_c);
    }
}

/* up to four pixels by turns with those of four: those at an edge replace what four together read
 * there */
static __attribute__((noinline)) void
mur_dsp_gather_pixels(const mur_dsp_window *window, int32_t pixels, int32_t top, int32_t column)
{
    const mur_conv_shape *s = &window->layer->shape;
    int32_t last = mur_dsp_last_column(s), is_read = mur_dsp_is_memory(window, top, column);

    if (is_read)
        mur_dsp_gather4(window, top, column);
    for (int32_t i = 0; i < pixels; i++, column += s->stride_w)
        if (!is_read || column < 0 || column > last)
            mur_dsp_gather1(window, window->x + i, 4, top, column);
}

/* a group of up to four pixels, or of fours of them, whose inputs lie in window->x */
typedef void mur_dsp_multiply(const mur_dsp_window *window, int32_t group, int32_t pixels,
                              int8_t *out);

/* left_over: of a row's last pixels, fewer than four, how many at a time: 1, alone, or 3, by turns
 * with those of four */
static inline void mur_dsp_run_row(mur_dsp_window *window, const int8_t *in, int32_t top,
                                   int8_t *out, int32_t left_over, mur_dsp_multiply *multiply)
{
    const mur_conv_shape *s = &window->layer->shape;
    int32_t column = -s->pad_left, groups = s->groups, depth = s->in_c, pixels;
    int32_t step = s->stride_w * s->in_c, last = -1;
    int32_t next = left_over != 1 && s->kernel_h == 1 ? 4 * step : s->dilation_h * s->in_pitch;

    if (groups > 1)
        depth /= groups;
    /* rows of one run that lie between the upper and the lower edge take no question a group */
    if (window->runs.a_row == 1 && groups == 1 && top >= 0 &&
        top + (s->kernel_h - 1) * s->dilation_h < s->in_h)
        last = mur_dsp_last_column(s) - 3 * s->stride_w;
    window->in = in;
    while (last >= 0 && !mur_dsp_is_memory(window, top, last))
        last--;
    for (int32_t left = s->out_w; left > 0; left -= pixels) {
        pixels = left >= 4 ? 4 : left_over == 1 ? 1 : left;
        window->in = in;
        if (pixels == 4 && column >= 0 && column <= last) {
            int32_t fours = left_over == 1 ? 1 : window->fours;

            if (4 * fours > left || column + 4 * (fours - 1) * s->stride_w > last)
                fours = 1;
            pixels = 4 * fours;
            mur_dsp_gather_runs(window, 0, fours * s->kernel_h,
                                in + top * s->in_pitch + column * s->in_c, step, next);
            multiply(window, 0, pixels, out);
        } else {
            for (int32_t group = 0; group < groups; group++, window->in += depth) {
                if (left_over == 1 && pixels == 1)
                    mur_dsp_gather1(window, window->x, 1, top, column);
                else
                    mur_dsp_gather_pixels(window, pixels, top, column);
                multiply(window, group, pixels, out);
            }
        }
        column += pixels * s->stride_w;
        out += pixels * s->out_c;
    }
}

/* `channels` of each of the pixels to the layer's range */
static inline void mur_dsp_clamp_pixels(const mur_conv_s8 *layer, int32_t pixels, int32_t channels,
                                        int8_t *out)
{
    const mur_output_s8 to = layer->output;

    for (; pixels > 0 && (to.min != INT8_MIN || to.max != INT8_MAX); pixels--) {
        mur_dsp_clamp_bytes(&to, channels, out);
        out += layer->shape.out_c;
    }
}

/* the rows that a row of outputs reads, the first of them `top`, to padded ones */
static inline void mur_dsp_pad_rows(const mur_conv_s8 *layer, const mur_conv_shape *padded,
                                    const int8_t *in, int32_t top, int8_t *out)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t columns = padded->in_w - s->pad_left;

    columns = columns < s->in_w ? columns : s->in_w;
    for (int32_t i = 0; i < s->kernel_h && columns > 0; i++, top += s->dilation_h) {
        int8_t *to = out + i * padded->in_pitch + s->pad_left * s->in_c;

        if (top < 0 || top >= s->in_h)
            memset(to, layer->in_zero, (size_t)(columns * s->in_c));
        else
            memcpy(to, in + top * s->in_pitch, (size_t)(columns * s->in_c));
    }
}

/* the whole layer; narrow: by padded rows, for which there is scratch */
static __attribute__((noinline, cold)) void
mur_dsp_run_rows(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch,
                 int32_t left_over, int narrow, mur_dsp_multiply *multiply, void *kernel)
{
    mur_conv_s8 padded;
    mur_dsp_window window;
    size_t x_bytes;

    window.layer = layer;
    window.kernel = kernel;
    window.end = in + (layer->shape.in_h - 1) * layer->shape.in_pitch +
                 layer->shape.in_w * layer->shape.in_c;
    window.runs = mur_dsp_runs_of(layer);
    window.x = scratch;
    window.fours = mur_dsp_fours(layer, &window.runs, left_over == 1);
    x_bytes = mur_dsp_widened_bytes(layer, &window.runs, left_over == 1, window.fours);
    window.border = (int8_t *)scratch + x_bytes;
    if (window.runs.rest > 0) /* their last word is not filled */
        memset(scratch, 0, x_bytes);
    if (narrow) {
        padded = *layer;
        padded.shape = mur_dsp_padded(&layer->shape);
        memset(window.border, layer->in_zero, mur_dsp_padded_bytes(&layer->shape));
        window.layer = &padded;
        window.end = window.border + mur_dsp_padded_bytes(&layer->shape);
    }
    for (int32_t y = 0; y < layer->shape.out_h; y++, out += layer->shape.out_pitch) {
        int32_t top = y * layer->shape.stride_h - layer->shape.pad_top;

        if (narrow) {
            mur_dsp_pad_rows(layer, &padded.shape, in, top, window.border);
            mur_dsp_run_row(&window, window.border, 0, out, left_over, multiply);
        } else {
            mur_dsp_run_row(&window, in, top, out, left_over, multiply);
        }
    }
}

#endif
