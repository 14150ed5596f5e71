/* mur_dsp_window.h - the inputs of windows, for mur_dsp_conv_s8 and mur_dsp_conv_wide_s8.
 *
 * The inputs of four neighbouring pixels (of one, where a row ends) are widened to int16 in
 * scratch, in the order of the weights; then one run over all output channels. A kernel row is one
 * run of bytes unless it is dilated or grouped; bytes of a run beyond the last multiple of four are
 * gathered behind the words of all runs. */
#ifndef MUR_DSP_WINDOW_H
#define MUR_DSP_WINDOW_H

#include "mur_dsp.h"
#include "mur_dsp_conv.h"

#include <string.h>

/* what is needed for each pixel */
typedef struct mur_dsp_window {
    const mur_conv_s8 *layer;
    mur_dsp_runs runs;
    uint32_t *x;    /* inputs of one or four pixels, of all groups */
    int8_t *border; /* a run with bytes outside the image */
    const int8_t *in;
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

/* four pixels, `step` bytes from one to the next */
static void mur_dsp_widen4(uint32_t *x, const int8_t *from, int32_t step, int32_t words)
{
#if MUR_HAVE_DSP
    register uint32_t *to __asm__("r0") = x;
    register const int8_t *a __asm__("r1") = from;
    register int32_t by __asm__("r2") = step;
    register uint32_t *end __asm__("r3") = x + 8 * words;

    if (words <= 0)
        return;
    __asm__ volatile("add r12, r2, r2, lsl #1\n"
                     "1: ldr r4, [r1]\n"
                     "ldr r5, [r1, r2]\n"
                     "ldr r6, [r1, r2, lsl #1]\n"
                     "ldr r8, [r1, r12]\n"
                     "sxtb16 r9, r4\n"
                     "sxtb16 r10, r5\n"
                     "sxtb16 r11, r6\n"
                     "sxtb16 lr, r8\n"
                     "stm r0!, {r9, r10, r11, lr}\n"
                     "sxtb16 r4, r4, ror #8\n"
                     "sxtb16 r5, r5, ror #8\n"
                     "sxtb16 r6, r6, ror #8\n"
                     "sxtb16 r8, r8, ror #8\n"
                     "stm r0!, {r4, r5, r6, r8}\n"
                     "add r1, #4\n"
                     "cmp r0, r3\n"
                     "bne 1b\n"
                     : "+r"(to), "+r"(a)
                     : "r"(by), "r"(end)
                     : "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");
#else
    for (int32_t i = 0; i < 4; i++)
        mur_dsp_widen1(x + i, 4, from + i * step, words);
#endif
}

/* byte `at` of the bytes behind the words */
static void mur_dsp_put_rest(uint32_t *x, int32_t pixels, int32_t at, int8_t byte)
{
    int16_t wide = byte;
    uint32_t *word = x + ((at >> 2) * 2 + (at & 1)) * pixels;

    __builtin_memcpy((uint8_t *)word + (at & 2), &wide, sizeof(wide)); /* no call */
}

/* row `i` of a window whose left edge is `column`: run j begins at the result, which may be a copy
 */
static const int8_t *mur_dsp_find_run(const mur_dsp_window *window, int32_t row, int32_t column,
                                      int32_t group, int32_t j)
{
    const mur_conv_s8 *layer = window->layer;
    int32_t bytes = window->runs.bytes, before = 0, inside = bytes;

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
    if (inside == bytes)
        return window->in + row * layer->shape.in_pitch + column * layer->shape.in_c +
               group * bytes;
    memset(window->border, layer->in_zero, (size_t)bytes);
    if (inside > 0)
        memcpy(window->border + before,
               window->in + row * layer->shape.in_pitch +
                   (column < 0 ? 0 : column) * layer->shape.in_c,
               (size_t)inside);
    return window->border;
}

/* one of `pixels` pixels */
static void mur_dsp_gather1(const mur_dsp_window *window, uint32_t *x, int32_t pixels, int32_t top,
                            int32_t column)
{
    const mur_conv_s8 *layer = window->layer;
    int32_t words = window->runs.bytes >> 2, rest = window->runs.bytes & 3;

    for (int32_t group = 0; group < layer->shape.groups;
         group++, x += window->runs.words * 2 * pixels) {
        uint32_t *to = x, *behind = x + window->runs.whole_words * 2 * pixels;
        int32_t at = 0;

        for (int32_t i = 0; i < layer->shape.kernel_h; i++)
            for (int32_t j = 0; j < window->runs.a_row; j++) {
                const int8_t *from =
                    mur_dsp_find_run(window, top + i * layer->shape.dilation_h, column, group, j);

                mur_dsp_widen1(to, pixels, from, words);
                to += words * 2 * pixels;
                for (int32_t k = 0; k < rest; k++)
                    mur_dsp_put_rest(behind, pixels, at++, from[words * 4 + k]);
            }
    }
}

/* Four pixels whose windows lie between the left and the right edge, each kernel row one run. */
static void mur_dsp_gather4(const mur_dsp_window *window, int32_t top, int32_t column)
{
    const mur_conv_s8 *layer = window->layer;
    int32_t words = window->runs.bytes >> 2, rest = window->runs.bytes & 3, at = 0;
    int32_t step = layer->shape.stride_w * layer->shape.in_c;
    uint32_t *to = window->x, *behind = to + window->runs.whole_words * 8;

    for (int32_t i = 0; i < layer->shape.kernel_h; i++, to += words * 8) {
        int32_t row = top + i * layer->shape.dilation_h;
        const int8_t *from = window->in + row * layer->shape.in_pitch + column * layer->shape.in_c;
        int32_t by = step;

        if (row < 0 || row >= layer->shape.in_h) {
            from = mur_dsp_find_run(window, row, column, 0, 0);
            by = 0;
        }
        mur_dsp_widen4(to, from, by, words);
        from += words * 4;
        for (int32_t k = 0; k < rest; k++, at++)
            for (int32_t pixel = 0; pixel < 4; pixel++)
                mur_dsp_put_rest(behind + pixel, 4, at, from[pixel * by + k]);
    }
}

/* up to four pixels whose inputs lie in window->x */
typedef void mur_dsp_multiply(const mur_dsp_window *window, int32_t pixels, int8_t *out);

/* does a row of four pixels at `column`s stay between the edges, each row one run? */
static int mur_dsp_is_inside(const mur_dsp_window *window, int32_t column)
{
    const mur_conv_s8 *layer = window->layer;

    return window->runs.a_row == 1 && layer->shape.groups == 1 && column >= 0 &&
           column + 3 * layer->shape.stride_w + layer->shape.kernel_w <= layer->shape.in_w;
}

/* left_over: of a row's last pixels, fewer than four, how many at a time: 1, alone, or 3, by turns
 * with those of four */
static inline void mur_dsp_run_row(const mur_dsp_window *window, int32_t top, int8_t *out,
                                   int32_t left_over, mur_dsp_multiply *multiply)
{
    const mur_conv_s8 *layer = window->layer;
    int32_t column = -layer->shape.pad_left, x = 0;

    for (; x + 4 <= layer->shape.out_w; x += 4, column += 4 * layer->shape.stride_w) {
        if (mur_dsp_is_inside(window, column))
            mur_dsp_gather4(window, top, column);
        else
            for (int32_t i = 0; i < 4; i++)
                mur_dsp_gather1(window, window->x + i, 4, top, column + i * layer->shape.stride_w);
        multiply(window, 4, out);
        out += 4 * layer->shape.out_c;
    }
    for (int32_t i = 0; x + i < layer->shape.out_w; column += layer->shape.stride_w) {
        mur_dsp_gather1(window, window->x + i, left_over == 1 ? 1 : 4, top, column);
        i++;
        if (i < left_over && x + i < layer->shape.out_w)
            continue;
        multiply(window, i, out);
        out += i * layer->shape.out_c;
        x += i;
        i = 0;
    }
}

/* the whole layer */
static void mur_dsp_run_rows(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch,
                             int32_t left_over, mur_dsp_multiply *multiply)
{
    mur_dsp_window window;
    size_t x_bytes;

    window.layer = layer;
    window.in = in;
    window.runs = mur_dsp_runs_of(layer);
    window.x = scratch;
    x_bytes = mur_dsp_widened_bytes(layer, &window.runs, left_over == 1);
    window.border = (int8_t *)scratch + x_bytes;
    if (window.runs.words != window.runs.whole_words) /* their last word is not filled */
        memset(scratch, 0, x_bytes);
    for (int32_t y = 0; y < layer->shape.out_h; y++)
        mur_dsp_run_row(&window, y * layer->shape.stride_h - layer->shape.pad_top,
                        out + y * layer->shape.out_pitch, left_over, multiply);
}

#endif
