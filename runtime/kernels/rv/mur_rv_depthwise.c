/* mur_rv_depthwise.c - depthwise convolutions, a channel at a time.
 *
 * All that a channel's windows touch is copied to scratch as one plane, borders and all; so outputs
 * may overwrite inputs. Four neighbouring outputs share their loads. */
#include "mur_rv.h"

#include <string.h>

static void copy_plane(const mur_conv_s8 *layer, const int8_t *in, int8_t *to)
{
    int32_t columns = mur_rv_plane_columns(layer), rows = mur_rv_plane_rows(layer),
            step = layer->in_c;
    int32_t left = mur_clamp(layer->pad_left, 0, columns);
    int32_t inside = mur_clamp(columns - left, 0, layer->in_w);

    for (int32_t y = -layer->pad_top; rows > 0; rows--, y++, to += columns) {
        const int8_t *from = in + y * layer->in_pitch;
        int8_t *x = to + left, *end = x + inside;

        if (y < 0 || y >= layer->in_h) {
            memset(to, layer->in_zero, (size_t)columns);
            continue;
        }
        if (inside < columns)
            memset(to, layer->in_zero, (size_t)columns);
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

/* Sums of four neighbouring windows, for any kernel. */
static void sum_any(const mur_conv_s8 *layer, const int8_t *w, int32_t bias, const int8_t *x,
                    int32_t *sums)
{
    int32_t pitch = mur_rv_plane_columns(layer) * layer->dilation_h;

    for (int32_t p = 0; p < 4; p++, x += layer->stride_w) {
        const int8_t *tap = w, *row = x;

        sums[p] = bias;
        for (int32_t i = 0; i < layer->kernel_h; i++, row += pitch)
            for (int32_t j = 0; j < layer->kernel_w; j++)
                sums[p] += row[j * layer->dilation_w] * *tap++;
    }
}

/* The same for a square kernel whose size and stride are constants. */
static inline __attribute__((always_inline)) void sum_square(const int8_t *w, int32_t bias,
                                                             const int8_t *x, int32_t pitch,
                                                             int32_t size, int32_t stride,
                                                             int32_t *sums)
{
    int32_t a = bias, b = bias, c = bias, d = bias;

    for (const int8_t *end = w + size * size; w != end; w += size, x += pitch)
#pragma GCC unroll 7
        for (int32_t j = 0; j < size; j++) {
            a += x[j] * w[j];
            b += x[j + stride] * w[j];
            c += x[j + 2 * stride] * w[j];
            d += x[j + 3 * stride] * w[j];
        }
    sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
}

enum { ANY = 0 };

static inline int32_t kernel_of(const mur_conv_s8 *layer)
{
    return layer->kernel_h == layer->kernel_w && layer->dilation_h == 1 && layer->dilation_w == 1
               ? layer->kernel_h * 10 + layer->stride_w
               : ANY;
}

static void run_channel(const mur_conv_s8 *layer, const mur_rv_output *output,
                        const mur_rv_channel *channel, const int8_t *x, int8_t *out)
{
    const int8_t *w = (const int8_t *)(channel + 1);
    int32_t pitch = mur_rv_plane_columns(layer), bias = channel->bias, kernel = kernel_of(layer);
    int32_t sums[4];

    for (int32_t y = 0; y < layer->out_h; y++, x += layer->stride_h * pitch) {
        const int8_t *from = x;
        int8_t *to = out + y * layer->out_pitch;

        for (int32_t left = layer->out_w; left > 0; left -= 4, from += 4 * layer->stride_w) {
            switch (kernel) {
            case 31:
                sum_square(w, bias, from, pitch, 3, 1, sums);
                break;
            case 32:
                sum_square(w, bias, from, pitch, 3, 2, sums);
                break;
            case 51:
                sum_square(w, bias, from, pitch, 5, 1, sums);
                break;
            case 52:
                sum_square(w, bias, from, pitch, 5, 2, sums);
                break;
            case 71:
                sum_square(w, bias, from, pitch, 7, 1, sums);
                break;
            case 72:
                sum_square(w, bias, from, pitch, 7, 2, sums);
                break;
            default:
                sum_any(layer, w, bias, from, sums);
                break;
            }
            mur_rv_finish(output, channel, sums, left < 4 ? left : 4, to, layer->out_c);
            to += 4 * layer->out_c;
        }
    }
}

void mur_rv_depthwise_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    const mur_rv_head *head = layer->packed;
    mur_rv_output output = { &layer->output, (int32_t)head->simple };
    const uint8_t *channel = (const uint8_t *)(head + 1);
    int32_t multiplier = layer->out_c / layer->in_c;

    for (int32_t c = 0; c < layer->out_c; c++, channel += mur_rv_depthwise_bytes(layer)) {
        if (c % multiplier == 0)
            copy_plane(layer, in + c / multiplier, scratch);
        run_channel(layer, &output, (const void *)channel, scratch, out + c);
    }
}
