/* mur_mve_conv_apart.c - depthwise convolutions of any window and dilation, eight channels of a
 * pixel at a time; taps outside the image are left out. */
#include "mur_mve.h"

/* The part of a window inside the image: rows and columns of taps in front of it and of it, and
 * bytes from one to the next. */
typedef struct window {
    int32_t top, left, rows, columns, pitch, step;
} window;

/* how many of `taps`, the first at `at` and each `step` further, lie in 0 .. size - 1; *before:
 * those in front of 0 */
static int32_t taps_inside(int32_t at, int32_t taps, int32_t step, int32_t size, int32_t *before)
{
    int32_t count;

    for (*before = 0; at < 0 && *before < taps; at += step)
        ++*before;
    count = taps - *before;
    while (count > 0 && at + (count - 1) * step >= size)
        count--;
    return count;
}

#if MUR_HAVE_MVE

/* what is added to the sums of even and of odd channels */
static inline void add_row(const window *w, const int8_t *x, const int8_t *weights, int32_t zero,
                           mve_pred16_t some, int32x4_t *even, int32x4_t *odd)
{
    __asm__ volatile("vmsr p0, %6\n"
                     "wls lr, %4, 2f\n"
                     "1: vpst\n"
                     "vldrbt.s16 q0, [%2]\n"
                     "vldrb.s16 q1, [%3], #8\n"
                     "vsub.i16 q0, q0, %7\n"
                     "add %2, %2, %5\n"
                     "vmullb.s16 q2, q0, q1\n"
                     "vmullt.s16 q0, q0, q1\n"
                     "vadd.i32 %q0, %q0, q2\n"
                     "vadd.i32 %q1, %q1, q0\n"
                     "le lr, 1b\n"
                     "2:"
                     : "+w"(*even), "+w"(*odd), "+l"(x), "+l"(weights)
                     : "r"(w->columns), "r"(w->step), "r"(some), "r"(zero)
                     : "lr", "q0", "q1", "q2", "p0", "memory");
}

/* eight channels, of which `left` are there, from the first on */
static inline void run_eight(const mur_conv_s8 *layer, const window *w, const int8_t *in,
                             const mur_mve_eight *eight, int32_t left, int8_t *out)
{
    const int32_t kernel_w = layer->shape.kernel_w;
    const int8_t *weights =
        (const int8_t *)(eight + 1) + (w->top * kernel_w + w->left) * MUR_MVE_EIGHT;
    const mve_pred16_t some = vctp16q((uint32_t)left);
    int32x4_t even = vldrwq_s32(eight->bias[0]), odd = vldrwq_s32(eight->bias[1]);
    int16x8_t y;

    for (int32_t i = w->rows; i > 0; i--, in += w->pitch, weights += kernel_w * MUR_MVE_EIGHT)
        add_row(w, in, weights, layer->in_zero, some, &even, &odd);
    even = mur_mve_scale(even, vldrwq_s32(eight->mul[0]), vldrbq_s32(eight->shift[0]));
    odd = mur_mve_scale(odd, vldrwq_s32(eight->mul[1]), vldrbq_s32(eight->shift[1]));
    y = vqmovnbq_s32(vdupq_n_s16(0), even);
    y = vqaddq_n_s16(vqmovntq_s32(y, odd), layer->output.zero);
    y = vminq_s16(vmaxq_s16(y, vdupq_n_s16(layer->output.min)), vdupq_n_s16(layer->output.max));
    vstrbq_p_s16(out, y, some);
}

#else

static void run_eight(const mur_conv_s8 *layer, const window *w, const int8_t *in,
                      const mur_mve_eight *eight, int32_t left, int8_t *out)
{
    const int8_t *weights = (const int8_t *)(eight + 1);

    for (int32_t c = 0; c < left && c < MUR_MVE_EIGHT; c++) {
        int32_t sum = eight->bias[c % 2][c / 2];

        for (int32_t i = 0; i < w->rows; i++)
            for (int32_t j = 0; j < w->columns; j++) {
                int32_t tap = (w->top + i) * layer->shape.kernel_w + w->left + j;

                sum += (in[i * w->pitch + j * w->step + c] - layer->in_zero) *
                       weights[tap * MUR_MVE_EIGHT + c];
            }
        out[c] =
            mur_requant(sum, eight->mul[c % 2][c / 2], eight->shift[c % 2][c / 2], &layer->output);
    }
}

#endif

void mur_mve_conv_apart_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    const mur_conv_shape *s = &layer->shape;
    const int32_t depth = s->in_c, bytes = mur_mve_eight_bytes(s);
    window w;

    (void)scratch;
    w.pitch = s->dilation_h * s->in_pitch;
    w.step = s->dilation_w * depth;
    for (int32_t y = 0; y < s->out_h; y++, out += s->out_pitch - s->out_w * depth) {
        int32_t row = y * s->stride_h - s->pad_top;

        w.rows = taps_inside(row, s->kernel_h, s->dilation_h, s->in_h, &w.top);
        for (int32_t x = 0; x < s->out_w; x++, out += depth) {
            int32_t column = x * s->stride_w - s->pad_left;
            const int8_t *packed = layer->packed, *from;

            w.columns = taps_inside(column, s->kernel_w, s->dilation_w, s->in_w, &w.left);
            from = in + (row + w.top * s->dilation_h) * s->in_pitch +
                   (column + w.left * s->dilation_w) * depth;
            for (int32_t c = 0; c < depth; c += MUR_MVE_EIGHT, packed += bytes)
                run_eight(layer, &w, from + c, (const void *)packed, depth - c, out + c);
        }
    }
}
