/* mur_conv_f32.c - convolutions on binary32, four output channels and up to four pixels at a time.
 *
 * Blocks never change the order in which one output's products are added. Weights of a group: for
 * each four channels their biases, then the taps in order, four channels side by side; a last block
 * is filled up with zeros. */
#include "mur_nn_f32.h"
#include "mur_f32.h"

/* four channels of one pixel */
static inline void add_products(mur_four_f32 *sum, const float *w, float x)
{
    sum->c[0] += w[0] * x;
    sum->c[1] += w[1] * x;
    sum->c[2] += w[2] * x;
    sum->c[3] += w[3] * x;
}

/* count inputs of four pixels, `step` elements apart */
static void run4(mur_four_f32 sums[4], const float *w, const float *x, int32_t step, int32_t count)
{
    mur_four_f32 a = sums[0], b = sums[1], c = sums[2], d = sums[3];
    const float *x1 = x + step, *x2 = x1 + step, *x3 = x2 + step;

    for (const float *end = x + count; x != end; w += 4) {
        add_products(&a, w, *x++);
        add_products(&b, w, *x1++);
        add_products(&c, w, *x2++);
        add_products(&d, w, *x3++);
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

/* where a kernel row's taps begin */
typedef struct place {
    const float *in; /* the group's first channel at the image's first pixel */
    int32_t top, left, pixels;
} place;

/* The taps of one block, from w on, for 1 or 4 pixels; with 4, no window leaves the image to the
 * left or to the right. */
static void sum_taps(const mur_conv_f32 *l, const place *at, const float *w, mur_four_f32 sums[4])
{
    int32_t depth = l->shape.in_c / l->shape.groups, step = l->shape.stride_w * l->shape.in_c;
    int32_t joined = l->shape.groups == 1 && l->shape.dilation_w == 1; /* a kernel row is one run */

    for (int32_t i = 0; i < l->shape.kernel_h; i++) {
        int32_t row = at->top + i * l->shape.dilation_h, first = 0, last = l->shape.kernel_w;
        const float *x = at->in + row * l->shape.in_pitch + at->left * l->shape.in_c;

        if (row < 0 || row >= l->shape.in_h) {
            w += l->shape.kernel_w * depth * 4;
            continue;
        }
        if (joined) {
            first = at->left < 0 ? -at->left : 0;
            last = at->left + last > l->shape.in_w ? l->shape.in_w - at->left : last;
            if (at->pixels == 4)
                run4(sums, w, x, step, l->shape.kernel_w * depth);
            else if (first < last)
                mur_sum_f32(sums, w + first * depth * 4, x + first * depth, (last - first) * depth);
            w += l->shape.kernel_w * depth * 4;
            continue;
        }
        for (int32_t j = 0; j < l->shape.kernel_w; j++, w += depth * 4) {
            int32_t column = at->left + j * l->shape.dilation_w;

            if (at->pixels == 4)
                run4(sums, w, x + j * l->shape.dilation_w * l->shape.in_c, step, depth);
            else if (column >= 0 && column < l->shape.in_w)
                mur_sum_f32(sums, w, x + j * l->shape.dilation_w * l->shape.in_c, depth);
        }
    }
}

/* all channels of 1 or 4 pixels at out */
static void run_pixels(const mur_conv_f32 *l, const float *in, int32_t top, int32_t left,
                       int32_t pixels, float *out)
{
    int32_t channels = l->shape.out_c / l->shape.groups, depth = l->shape.in_c / l->shape.groups;
    int32_t block = 4 + l->shape.kernel_h * l->shape.kernel_w * depth * 4;
    const float *w = l->packed;
    place at;

    at.top = top;
    at.left = left;
    at.pixels = pixels;
    for (int32_t group = 0; group < l->shape.groups; group++, out += channels) {
        at.in = in + group * depth;
        for (int32_t c = 0; c < channels; c += 4, w += block) {
            int32_t count = channels - c < 4 ? channels - c : 4;
            mur_four_f32 sums[4];

            for (int32_t i = 0; i < pixels; i++)
                sums[i] = mur_load_f32(w);
            sum_taps(l, &at, w + 4, sums);
            for (int32_t i = 0; i < pixels; i++)
                mur_store_f32(&sums[i], l->min, l->max, count, out + i * l->shape.out_c + c);
        }
    }
}

void mur_conv_f32_run(const mur_conv_f32 *l, const float *in, float *out)
{
    int32_t reach =
        3 * l->shape.stride_w + (l->shape.kernel_w - 1) * l->shape.dilation_w; /* of four pixels */

    for (int32_t y = 0; y < l->shape.out_h; y++) {
        int32_t top = y * l->shape.stride_h - l->shape.pad_top, left = -l->shape.pad_left, x = 0;
        float *to = out + y * l->shape.out_pitch;

        while (x < l->shape.out_w) {
            int32_t pixels =
                x + 4 <= l->shape.out_w && left >= 0 && left + reach < l->shape.in_w ? 4 : 1;

            run_pixels(l, in, top, left, pixels, to);
            x += pixels;
            left += pixels * l->shape.stride_w;
            to += pixels * l->shape.out_c;
        }
    }
}
