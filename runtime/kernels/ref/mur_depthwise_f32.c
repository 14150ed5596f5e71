/* mur_depthwise_f32.c - depthwise convolutions on binary32, four channels at a time. Weights: for
 * each four channels their biases, then the taps in order; a last block is filled up with zeros. */
#include "mur_f32.h"
#include "mur_nn_f32.h"

/* the taps of a window inside the image, for four channels */
typedef struct window {
    const float *w, *x;
    int32_t rows, taps;                 /* both at least 1 */
    int32_t step, row_step, w_row_step; /* elements: from tap to tap and from row to row */
} window;

static void sum_window(mur_four_f32 *sum, const window *at)
{
#if MUR_HAVE_VFP
    const float *w = at->w, *x = at->x;
    int32_t rows = at->rows, all_taps = at->taps, step = at->step * 4, taps;
    int32_t x_rest = (at->row_step - at->taps * at->step) * 4;
    int32_t w_rest = (at->w_row_step - at->taps * 4) * 4;

    __asm__ volatile("vldm %[sum], {s0-s3}\n"
                     "1: ldr %[taps], %[all_taps]\n"
                     "2: vldm %[x], {s8-s11}\n"
                     "vldmia %[w]!, {s4-s7}\n"
                     "add %[x], %[x], %[step]\n"
                     "vmul.f32 s4, s4, s8\n"
                     "vmul.f32 s5, s5, s9\n"
                     "vmul.f32 s6, s6, s10\n"
                     "vmul.f32 s7, s7, s11\n"
                     "vadd.f32 s0, s0, s4\n"
                     "vadd.f32 s1, s1, s5\n"
                     "vadd.f32 s2, s2, s6\n"
                     "vadd.f32 s3, s3, s7\n"
                     "subs %[taps], %[taps], #1\n"
                     "bne 2b\n"
                     "add %[x], %[x], %[x_rest]\n"
                     "add %[w], %[w], %[w_rest]\n"
                     "subs %[rows], %[rows], #1\n"
                     "bne 1b\n"
                     "vstm %[sum], {s0-s3}\n"
                     : [w] "+r"(w), [x] "+r"(x), [rows] "+r"(rows), [taps] "=&r"(taps)
                     : [sum] "r"(sum), [step] "r"(step), [x_rest] "r"(x_rest), [w_rest] "r"(w_rest),
                       [all_taps] "m"(all_taps)
                     : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11",
                       "cc", "memory");
#else
    for (int32_t i = 0; i < at->rows; i++) {
        const float *w = at->w + i * at->w_row_step, *x = at->x + i * at->row_step;

        for (int32_t j = 0; j < at->taps; j++, w += 4, x += at->step)
            for (int32_t c = 0; c < 4; c++)
                sum->c[c] += w[c] * x[c];
    }
#endif
}

/* the same for the last channels, fewer than four */
static void sum_some(mur_four_f32 *sum, const window *at, int32_t count)
{
    for (int32_t i = 0; i < at->rows; i++)
        for (int32_t j = 0; j < at->taps; j++)
            for (int32_t c = 0; c < count; c++)
                sum->c[c] += at->w[i * at->w_row_step + j * 4 + c] *
                             at->x[i * at->row_step + j * at->step + c];
}

/* the taps whose place lies inside `size` */
static void inside(int32_t at, int32_t dilation, int32_t kernel, int32_t size, int32_t *first,
                   int32_t *last)
{
    *first = 0;
    *last = kernel;
    while (*first < kernel && at + *first * dilation < 0)
        ++*first;
    while (*last > *first && at + (*last - 1) * dilation >= size)
        --*last;
}

/* all channels of the pixel whose window begins at row `top` and column `left` */
static void run_pixel(const mur_conv_f32 *l, const float *in, int32_t top, int32_t left, float *out)
{
    int32_t row, row_end, column, column_end;
    int32_t block = 4 + l->shape.kernel_h * l->shape.kernel_w * 4;
    const float *w = l->packed;
    window at;

    inside(top, l->shape.dilation_h, l->shape.kernel_h, l->shape.in_h, &row, &row_end);
    inside(left, l->shape.dilation_w, l->shape.kernel_w, l->shape.in_w, &column, &column_end);
    at.rows = row_end - row;
    at.taps = column_end - column;
    at.step = l->shape.dilation_w * l->shape.in_c;
    at.row_step = l->shape.dilation_h * l->shape.in_pitch;
    at.w_row_step = l->shape.kernel_w * 4;
    at.w = w + 4 + row * at.w_row_step + column * 4;
    at.x = in + (top + row * l->shape.dilation_h) * l->shape.in_pitch +
           (left + column * l->shape.dilation_w) * l->shape.in_c;
    for (int32_t c = 0; c < l->shape.in_c; c += 4, w += block, at.w += block, at.x += 4) {
        int32_t count = l->shape.in_c - c < 4 ? l->shape.in_c - c : 4;
        mur_four_f32 sum = mur_load_f32(w);

        if (at.rows > 0 && at.taps > 0) {
            if (count == 4)
                sum_window(&sum, &at);
            else
                sum_some(&sum, &at, count);
        }
        mur_store_f32(&sum, l->min, l->max, count, out + c);
    }
}

void mur_depthwise_f32_run(const mur_conv_f32 *l, const float *in, float *out)
{
    for (int32_t y = 0; y < l->shape.out_h; y++)
        for (int32_t x = 0; x < l->shape.out_w; x++)
            run_pixel(l, in, y * l->shape.stride_h - l->shape.pad_top,
                      x * l->shape.stride_w - l->shape.pad_left,
                      out + y * l->shape.out_pitch + x * l->shape.out_c);
}
