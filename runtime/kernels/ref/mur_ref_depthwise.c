/* mur_ref_depthwise.c - depthwise convolutions in plain C, a channel at a time.
 *
 * All that a channel's windows touch is copied to scratch as one plane, borders and all; so outputs
 * may overwrite inputs, and no tap is tested. Four neighbouring outputs share their loads. */
#include "mur_ref.h"

#include <string.h>

/* A channel into the plane, whose border is there. */
static void copy_plane(const mur_ref_view *v, const int8_t *in, int8_t *plane)
{
    int32_t step = v->in_step, inside = mur_clamp(v->columns - v->left, 0, v->in_w);
    int32_t rows = mur_clamp(v->rows - v->top, 0, v->in_h);

    plane += v->top * v->columns + v->left;
    for (; rows > 0; rows--, plane += v->columns, in += v->in_pitch) {
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

/* Neighbouring outputs of some lines: sums of windows from x on, line by line, by fours, of which
 * those beyond a line's end are overwritten by the next; room for three more. */
typedef struct stretch {
    const int8_t *w, *x;
    int32_t *sums, lines, line_step, count, bias;
    int32_t pitch, rows, columns, stride, dilation; /* pitch: from a kernel's row to the next */
} stretch;

/* Inlined for constant columns and strides: windows of four outputs share their loads. */
static inline __attribute__((always_inline)) void sum_fixed(const stretch *s, int32_t columns,
                                                            int32_t stride)
{
    const int8_t *line = s->x;
    int32_t *sums = s->sums;

    for (int32_t lines = s->lines; lines > 0; lines--, line += s->line_step) {
        const int8_t *x = line;
        int32_t left = s->count;

        for (; left > 2; left -= 4, sums += 4, x += 4 * stride) {
            int32_t a = s->bias, b = a, c = a, d = a;
            const int8_t *w = s->w, *row = x;

            for (const int8_t *last = w + s->rows * columns; w != last;
                 w += columns, row += s->pitch)
#pragma GCC unroll 7
                for (int32_t j = 0; j < columns; j++) {
                    a += row[j] * w[j];
                    b += row[j + stride] * w[j];
                    c += row[j + 2 * stride] * w[j];
                    d += row[j + 3 * stride] * w[j];
                }
            sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
        }
        if (left < 0)
            sums += left;
        for (; left > 0; left--, x += stride) {
            int32_t a = s->bias;
            const int8_t *w = s->w, *row = x;

            for (const int8_t *last = w + s->rows * columns; w != last;
                 w += columns, row += s->pitch)
#pragma GCC unroll 7
                for (int32_t j = 0; j < columns; j++)
                    a += row[j] * w[j];
            *sums++ = a;
        }
    }
}

/* of any window with neighbouring taps and stride 1: four taps at a time */
static __attribute__((noinline)) void sum_row(const stretch *s)
{
    const int8_t *line = s->x;
    int32_t *sums = s->sums;

    for (int32_t lines = s->lines; lines > 0; lines--, line += s->line_step) {
        const int8_t *x = line;
        int32_t left = s->count;

        for (; left > 0; left -= 4, sums += 4, x += 4) {
            int32_t a = s->bias, b = a, c = a, d = a;
            const int8_t *w = s->w, *row = x;

            for (int32_t i = s->rows; i > 0; i--, row += s->pitch) {
                const int8_t *p = row;
                int32_t x0 = p[0], x1 = p[1], x2 = p[2], j = s->columns;

                for (; j >= 4; j -= 4, p += 4, w += 4) {
                    int32_t x3 = p[3], w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];

                    a += x0 * w0, b += x1 * w0, c += x2 * w0, d += x3 * w0;
                    x0 = p[4];
                    a += x1 * w1, b += x2 * w1, c += x3 * w1, d += x0 * w1;
                    x1 = p[5];
                    a += x2 * w2, b += x3 * w2, c += x0 * w2, d += x1 * w2;
                    x2 = p[6];
                    a += x3 * w3, b += x0 * w3, c += x1 * w3, d += x2 * w3;
                }
                for (; j > 0; j--, p++, w++) {
                    int32_t w0 = *w, x3 = p[3];

                    a += x0 * w0, b += x1 * w0, c += x2 * w0, d += x3 * w0;
                    x0 = x1, x1 = x2, x2 = x3;
                }
            }
            sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
        }
        sums += left;
    }
}

/* of any window whatever */
static __attribute__((noinline)) void sum_apart(const stretch *s)
{
    const int8_t *line = s->x;
    int32_t *sums = s->sums, stride = s->stride, dilation = s->dilation;

    for (int32_t lines = s->lines; lines > 0; lines--, line += s->line_step) {
        const int8_t *x = line;
        int32_t left = s->count;

        for (; left > 0; left -= 4, sums += 4, x += 4 * stride) {
            int32_t a = s->bias, b = a, c = a, d = a;
            const int8_t *w = s->w, *row = x;

            for (int32_t i = s->rows; i > 0; i--, row += s->pitch) {
                const int8_t *p = row;

                for (const int8_t *last = w + s->columns; w != last; w++, p += dilation) {
                    int32_t w0 = *w;

                    a += p[0] * w0;
                    b += p[stride] * w0;
                    c += p[2 * stride] * w0;
                    d += p[3 * stride] * w0;
                }
            }
            sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
        }
        sums += left;
    }
}

#define MUR_REF_SUM(columns, stride) \
    static __attribute__((noinline)) void sum_##columns##_##stride(const stretch *s) \
    { \
        sum_fixed(s, columns, stride); \
    }

MUR_REF_SUM(3, 1)
MUR_REF_SUM(3, 2)
MUR_REF_SUM(5, 1)
MUR_REF_SUM(5, 2)
MUR_REF_SUM(7, 1)
MUR_REF_SUM(7, 2)

typedef void sum_stretch(const stretch *);

static sum_stretch *find_sum(const mur_ref_view *v)
{
    static sum_stretch *const fixed[3][2] = { { sum_3_1, sum_3_2 },
                                              { sum_5_1, sum_5_2 },
                                              { sum_7_1, sum_7_2 } };

    if (v->dilation_w == 1 && v->stride_w <= 2 && v->kernel_w >= 3 && v->kernel_w <= 7 &&
        v->kernel_w % 2 == 1)
        return fixed[v->kernel_w / 2 - 1][v->stride_w - 1];
    return v->dilation_w == 1 && v->stride_w == 1 && v->kernel_w >= 3 ? sum_row : sum_apart;
}

/* takes the weights' zero point times the inputs of each window from its sum */
static __attribute__((noinline)) void correct(const stretch *s, int32_t weight_zero)
{
    for (int32_t i = 0; i < s->lines * s->count; i++) {
        const int8_t *row = s->x + i / s->count * s->line_step + i % s->count * s->stride;
        int32_t inputs = 0;

        for (int32_t k = 0; k < s->rows; k++, row += s->pitch)
            for (int32_t j = 0; j < s->columns; j++)
                inputs += row[j * s->dilation];
        s->sums[i] -= weight_zero * inputs;
    }
}

enum { SUMS = 48 }; /* of a stretch, at most */

/* a channel, by stretches: of as many lines as fit, or of a part of one */
static void run_channel(const mur_conv_s8 *layer, const mur_ref_view *v,
                        const mur_ref_output *output, const mur_ref_channel *channel,
                        const int8_t *x, int8_t *out)
{
    int32_t sums[SUMS + 3], most = v->out_w < SUMS ? SUMS / v->out_w : 1;
    int32_t dense = v->out_pitch == v->out_w * v->out_step;
    sum_stretch *sum = find_sum(v);
    stretch s;

    s.w = (const int8_t *)(channel + 1);
    s.sums = sums;
    s.line_step = v->stride_h * v->columns;
    s.bias = channel->bias;
    s.pitch = v->columns * v->dilation_h;
    s.rows = v->kernel_h;
    s.columns = v->kernel_w;
    s.stride = v->stride_w;
    s.dilation = v->dilation_w;
    for (int32_t y = v->out_h; y > 0; y -= s.lines) {
        int8_t *to = out;

        s.x = x;
        s.lines = y < most ? y : most;
        for (int32_t left = v->out_w; left > 0; left -= SUMS) {
            int32_t runs = dense ? 1 : s.lines, done = 0;

            s.count = left < SUMS ? left : SUMS;
            sum(&s);
            if (layer->weight_zero != 0)
                correct(&s, layer->weight_zero);
            for (int32_t i = 0; i < runs; i++, done += s.count)
                mur_ref_finish(output, channel, sums + done, dense ? s.lines * s.count : s.count,
                               to + i * v->out_pitch, v->out_step);
            s.x += SUMS * v->stride_w;
            to += SUMS * v->out_step;
        }
        x += s.lines * s.line_step;
        out += s.lines * v->out_pitch;
    }
}

void mur_ref_depthwise_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    const mur_ref_view view = mur_ref_view_of(&layer->shape);
    const mur_ref_head *head = layer->packed;
    const mur_ref_output output = mur_ref_output_of(&layer->output, head->simple);
    const uint8_t *channel = (const uint8_t *)(head + 1);
    int32_t multiplier = layer->shape.out_c / layer->shape.in_c, at = 0;
    int32_t bytes = (int32_t)sizeof(mur_ref_channel) + ((view.kernel_h * view.kernel_w + 3) & ~3);

    memset(scratch, layer->in_zero, (size_t)view.rows * (size_t)view.columns);
    for (int32_t c = 0; c < layer->shape.out_c; c++, channel += bytes) {
        if (at == 0)
            copy_plane(&view, in++, scratch);
        at = at + 1 == multiplier ? 0 : at + 1;
        run_channel(layer, &view, &output, (const void *)channel, scratch, out + c);
    }
}
