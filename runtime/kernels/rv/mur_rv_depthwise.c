/* mur_rv_depthwise.c - depthwise convolutions, a channel at a time.
 *
 * All that a channel's windows touch is copied to scratch as one plane, borders and all; so outputs
 * may overwrite inputs. Four neighbouring outputs share their loads. */
#include "mur_rv.h"

#include <string.h>

/* A channel into the plane, whose border is there. */
static void copy_plane(const mur_conv_s8 *layer, const int8_t *in, int8_t *plane)
{
    int32_t columns = mur_rv_plane_columns(layer), step = layer->shape.in_c;
    int32_t inside = mur_clamp(columns - layer->shape.pad_left, 0, layer->shape.in_w);
    int32_t rows = mur_clamp(mur_rv_plane_rows(layer) - layer->shape.pad_top, 0, layer->shape.in_h);

    plane += layer->shape.pad_top * columns + layer->shape.pad_left;
    for (; rows > 0; rows--, plane += columns, in += layer->shape.in_pitch) {
        const int8_t *from = in;
        int8_t *x = plane, *end = x + inside;

        for (; end - x >= 4; x += 4, from += 4 * step) {
            x[0] = from[0];
            x[1] = from[step];
            x[2] = from[2 * step];
            x[3] = from[3 * step];
        }
        for (; x != end; from += step)
            *x++ = *from;
    }
}

/* A stretch of an output row: sums of windows from x on. */
typedef struct stretch {
    const int8_t *w, *x;
    int32_t *sums, count, bias, pitch;
} stretch;

/* for any kernel */
static void sum_any(const mur_conv_s8 *layer, const stretch *s)
{
    const int8_t *x = s->x;

    for (int32_t p = 0; p < s->count; p++, x += layer->shape.stride_w) {
        const int8_t *w = s->w, *row = x;

        s->sums[p] = s->bias;
        for (int32_t i = 0; i < layer->shape.kernel_h;
             i++, row += s->pitch * layer->shape.dilation_h)
            for (int32_t j = 0; j < layer->shape.kernel_w; j++)
                s->sums[p] += row[j * layer->shape.dilation_w] * *w++;
    }
}

/* for a square kernel whose size and stride are constants: four windows, or three, share their
 * loads */
static inline __attribute__((always_inline)) void sum_square(const stretch *s, int32_t size,
                                                             int32_t stride)
{
    const int8_t *x = s->x;
    int32_t *sums = s->sums;

    int32_t left = s->count;

    for (; left > 2; left -= 4, sums += 4, x += 4 * stride) {
        int32_t a = s->bias, b = a, c = a, d = a;
        const int8_t *w = s->w, *row = x;

        for (const int8_t *last = w + size * size; w != last; w += size, row += s->pitch)
#pragma GCC unroll 7
            for (int32_t j = 0; j < size; j++) {
                a += row[j] * w[j];
                b += row[j + stride] * w[j];
                c += row[j + 2 * stride] * w[j];
                d += row[j + 3 * stride] * w[j];
            }
        sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
    }
    for (; left > 0; left--, x += stride) {
        const int8_t *w = s->w, *row = x;

        *sums = s->bias;
        for (const int8_t *last = w + size * size; w != last; w += size, row += s->pitch)
#pragma GCC unroll 7
            for (int32_t j = 0; j < size; j++)
                *sums += row[j] * w[j];
        sums++;
    }
}

static void sum(const mur_conv_s8 *layer, const stretch *s)
{
    int32_t square = layer->shape.kernel_h == layer->shape.kernel_w &&
                     layer->shape.dilation_h == 1 && layer->shape.dilation_w == 1;

    switch (square ? layer->shape.kernel_h * 10 + layer->shape.stride_w : 0) {
    case 31:
        sum_square(s, 3, 1);
        break;
    case 32:
        sum_square(s, 3, 2);
        break;
    case 51:
        sum_square(s, 5, 1);
        break;
    case 52:
        sum_square(s, 5, 2);
        break;
    case 71:
        sum_square(s, 7, 1);
        break;
    case 72:
        sum_square(s, 7, 2);
        break;
    default:
        sum_any(layer, s);
        break;
    }
}

enum { SUMS = 48 }; /* of a stretch */

/* takes the weights' zero point times the inputs of each window from its sum */
static __attribute__((noinline)) void correct(const mur_conv_s8 *layer, const stretch *s)
{
    int8_t ones[MUR_RV_ONES];
    int32_t inputs[SUMS];
    stretch t = *s;

    memset(ones, 1, sizeof(ones));
    t.w = ones;
    t.bias = 0;
    t.sums = inputs;
    sum(layer, &t);
    for (int32_t i = 0; i < s->count; i++)
        s->sums[i] -= layer->weight_zero * inputs[i];
}

static void run_channel(const mur_conv_s8 *layer, const mur_rv_output *output,
                        const mur_rv_channel *channel, const int8_t *x, int8_t *out)
{
    int32_t sums[SUMS];
    stretch s = { .w = (const int8_t *)(channel + 1), .sums = sums, .bias = channel->bias };

    s.pitch = mur_rv_plane_columns(layer);
    for (int32_t y = 0; y < layer->shape.out_h; y++, x += layer->shape.stride_h * s.pitch) {
        int8_t *to = out + y * layer->shape.out_pitch;

        s.x = x;
        for (int32_t left = layer->shape.out_w; left > 0; left -= SUMS) {
            int32_t some = left < SUMS ? left : SUMS;

            s.count = some;
            sum(layer, &s);
            if (layer->weight_zero != 0)
                correct(layer, &s);
            mur_rv_finish(output, channel, sums, some, to, layer->shape.out_c);
            s.x += SUMS * layer->shape.stride_w;
            to += SUMS * layer->shape.out_c;
        }
    }
}

void mur_rv_depthwise_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    const mur_rv_head *head = layer->packed;
    mur_rv_output output = { &layer->output, (int32_t)head->simple };
    const uint8_t *channel = (const uint8_t *)(head + 1);
    int32_t multiplier = layer->shape.out_c / layer->shape.in_c;

    memset(scratch, layer->in_zero,
           (size_t)mur_rv_plane_rows(layer) * (size_t)mur_rv_plane_columns(layer));
    for (int32_t c = 0; c < layer->shape.out_c; c++, channel += mur_rv_depthwise_bytes(layer)) {
        if (c % multiplier == 0)
            copy_plane(layer, in + c / multiplier, scratch);
        run_channel(layer, &output, (const void *)channel, scratch, out + c);
    }
}
