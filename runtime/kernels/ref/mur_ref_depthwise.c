/* mur_ref_depthwise.c - depthwise convolutions in plain C, a channel at a time.
 *
 * All that a channel's windows touch is copied to scratch as one plane, borders and all; so outputs
 * may overwrite inputs, and no tap is tested. Four neighbouring outputs share their loads. */
#include "mur_ref.h"

#include <string.h>

/* How a channel is copied to the plane, whose border is there. */
typedef struct plane_copy {
    int8_t *to;
    int32_t step, columns, rows;  /* step: bytes from pixel to pixel; of what is copied */
    int32_t to_pitch, from_pitch; /* bytes from row to row */
} plane_copy;

/* Some columns of rows. Stores are volatile as gcc joins them to words, by more instructions. */
static inline __attribute__((always_inline)) void
copy_columns(const int8_t *from, int32_t step, int32_t from_pitch, volatile int8_t *to,
             int32_t to_pitch, int32_t rows, int32_t columns)
{
    for (; rows > 0; rows--, to += to_pitch, from += from_pitch)
#pragma GCC unroll 4
        for (int32_t i = 0; i < columns; i++)
            to[i] = from[i * step];
}

static __attribute__((noinline)) void copy_plane(const plane_copy *copy, const int8_t *from)
{
    int32_t step = copy->step, from_pitch = copy->from_pitch, to_pitch = copy->to_pitch;
    int32_t rows = copy->rows, columns = copy->columns;
    int8_t *to = copy->to;

    if (rows == 1) { /* four of its columns are a row */
        copy_columns(from, step, 4 * step, to, 4, columns >> 2, 4);
        from += (columns & ~3) * step, to += columns & ~3;
        columns &= 3;
    }
    for (; columns >= 4; columns -= 4, from += 4 * step, to += 4)
        copy_columns(from, step, from_pitch, to, to_pitch, rows, 4);
    if (columns >= 2) {
        copy_columns(from, step, from_pitch, to, to_pitch, rows, 2);
        from += 2 * step, to += 2;
    }
    if (columns & 1)
        copy_columns(from, step, from_pitch, to, to_pitch, rows, 1);
}

/* Neighbouring outputs of some lines: sums of windows from x on, line by line. They are made in
 * blocks of four columns, the last block first: what it has too much comes behind its line, where
 * the next line's first block overwrites it; room for three more. */
typedef struct stretch {
    const int8_t *w, *x;
    int32_t *sums, lines, line_step, count, bias;
    int32_t pitch, rows, columns, stride, dilation; /* pitch: from a kernel's row to the next */
} stretch;

/* Some columns of all lines, from column `at` on: windows of up to four outputs share their loads.
 * Inlined for constants. */
static inline __attribute__((always_inline)) void
sum_columns(const stretch *s, int32_t at, int32_t outputs, int32_t columns, int32_t stride)
{
    const int8_t *end = s->w + s->rows * columns, *x = s->x + at * stride;
    int32_t pitch = s->pitch, bias = s->bias, line_step = s->line_step, count = s->count;
    int32_t *sums = s->sums + at;

    for (int32_t lines = s->lines; lines > 0; lines--, sums += count, x += line_step) {
        int32_t a = bias, b = a, c = a, d = a;
        const int8_t *w = s->w, *row = x;

        do {
#pragma GCC unroll 7
            for (int32_t j = 0; j < columns; j++) {
                a += row[j] * w[j];
                if (outputs >= 3) {
                    b += row[j + stride] * w[j];
                    c += row[j + 2 * stride] * w[j];
                }
                if (outputs == 4)
                    d += row[j + 3 * stride] * w[j];
            }
            w += columns, row += pitch;
        } while (w != end);
        sums[0] = a;
        if (outputs >= 3)
            sums[1] = b, sums[2] = c;
        if (outputs == 4)
            sums[3] = d;
    }
}

/* Columns by fours, but the last one or two one by one, and three of small windows at a time. */
static inline __attribute__((always_inline)) void sum_fixed(const stretch *s, int32_t columns,
                                                            int32_t stride)
{
    int32_t at = s->count, most = (at + (columns > 3)) & ~3;

    if (columns == 3 && at - most == 3)
        sum_columns(s, most, 3, columns, stride);
    else
        while (at > most)
            sum_columns(s, --at, 1, columns, stride);
    for (at = most - 4; at >= 0; at -= 4)
        sum_columns(s, at, 4, columns, stride);
}

/* of any window with neighbouring taps and stride 1: four taps at a time */
static void sum_row_four(const stretch *s, int32_t at)
{
    int32_t *sums = s->sums + at, count = s->count, bias = s->bias, line_step = s->line_step;
    int32_t rows = s->rows, pitch = s->pitch, columns = s->columns;
    const int8_t *x = s->x + at;

    for (int32_t lines = s->lines; lines > 0; lines--, sums += count, x += line_step) {
        int32_t a = bias, b = a, c = a, d = a;
        const int8_t *w = s->w, *row = x;

        for (int32_t i = rows; i > 0; i--, row += pitch) {
            const int8_t *p = row;
            int32_t x0 = p[0], x1 = p[1], x2 = p[2], j = columns;

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
}

/* one output a line */
static void sum_row_one(const stretch *s)
{
    int32_t *sums = s->sums, pitch = s->pitch, columns = s->columns;
    const int8_t *x = s->x;

    for (int32_t lines = s->lines; lines > 0; lines--, x += s->line_step) {
        int32_t a = s->bias;
        const int8_t *w = s->w, *row = x;

        for (int32_t i = s->rows; i > 0; i--, row += pitch) {
            const int8_t *p = row;
            int32_t j = columns;

            for (; j >= 4; j -= 4, p += 4, w += 4)
                a += p[0] * w[0] + p[1] * w[1] + p[2] * w[2] + p[3] * w[3];
            for (; j > 0; j--)
                a += *p++ * *w++;
        }
        *sums++ = a;
    }
}

static __attribute__((noinline)) void sum_row(const stretch *s)
{
    if (s->count == 1) {
        sum_row_one(s);
        return;
    }
    for (int32_t at = (s->count - 1) & ~3; at >= 0; at -= 4)
        sum_row_four(s, at);
}

/* of any window whatever */
static void sum_apart_four(const stretch *s, int32_t at)
{
    int32_t *sums = s->sums + at, count = s->count, stride = s->stride, dilation = s->dilation;
    const int8_t *x = s->x + at * stride;

    for (int32_t lines = s->lines; lines > 0; lines--, sums += count, x += s->line_step) {
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
}

static __attribute__((noinline)) void sum_apart(const stretch *s)
{
    for (int32_t at = (s->count - 1) & ~3; at >= 0; at -= 4)
        sum_apart_four(s, at);
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
typedef sum_stretch *find_sum(const mur_ref_view *);

/* of windows of three neighbouring columns */
static sum_stretch *find_sum_of_three(const mur_ref_view *v)
{
    return v->stride_w == 1 ? sum_3_1 : sum_3_2;
}

static sum_stretch *find_sum_of_any(const mur_ref_view *v)
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

/* What all channels of a layer share. */
typedef struct layer_job {
    const mur_conv_s8 *layer;
    mur_ref_view view;
    mur_ref_output output;
    sum_stretch *sum;
    stretch s;
    int32_t line_step; /* of the plane, from an output's line to the next */
    int32_t most;      /* lines of a stretch, which is a part of one line if they are longer */
    int32_t dense;     /* a stretch's lines lie one behind another in the output */
} layer_job;

static void set_up(layer_job *job, const mur_conv_s8 *layer)
{
    const mur_ref_view *v = &job->view;
    stretch *s = &job->s;

    job->layer = layer;
    job->view = mur_ref_view_of(&layer->shape);
    job->output = mur_ref_output_of(&layer->output, ((const mur_ref_head *)layer->packed)->simple);
    job->most = v->out_w < SUMS ? SUMS / v->out_w : 1;
    job->dense = v->out_pitch == v->out_w * v->out_step;
    job->line_step = v->stride_h * v->columns;
    s->pitch = v->columns * v->dilation_h;
    s->rows = v->kernel_h;
    s->columns = v->kernel_w;
    s->stride = v->stride_w;
    s->dilation = v->dilation_w;
}

static plane_copy copy_of(const mur_ref_view *v, int8_t *plane)
{
    plane_copy copy;

    copy.to = plane + v->top * v->columns + v->left;
    copy.step = v->in_step;
    copy.columns = mur_clamp(v->columns - v->left, 0, v->in_w);
    copy.rows = mur_clamp(v->rows - v->top, 0, v->in_h);
    copy.to_pitch = v->columns;
    copy.from_pitch = v->in_pitch;
    return copy;
}

/* sums to lines of outputs */
static __attribute__((noinline)) void finish(const layer_job *job, const mur_ref_channel *channel,
                                             int32_t lines, int32_t count, int8_t *out)
{
    const int32_t *sums = job->s.sums;

    for (; lines > 0; lines--, sums += count, out += job->view.out_pitch)
        mur_ref_finish(&job->output, channel, sums, count, out, job->view.out_step);
}

/* a stretch: some lines or, if `count` is not all of it, a part of one */
static void run_stretch(layer_job *job, const mur_ref_channel *channel, int32_t lines,
                        int32_t count, int8_t *out)
{
    stretch *s = &job->s;

    s->lines = lines;
    s->count = count;
    s->line_step = job->line_step;
    if (lines == 1 && count >= 4) { /* as lines of four */
        s->lines = (count + 3) >> 2;
        s->count = 4;
        s->line_step = 4 * s->stride;
    }
    job->sum(s);
    if (job->layer->weight_zero != 0)
        correct(s, job->layer->weight_zero);
    if (job->dense)
        finish(job, channel, 1, lines * count, out);
    else
        finish(job, channel, lines, count, out);
}

/* a channel, by stretches: of as many lines as fit, or of a part of one */
static void run_channel(layer_job *job, const mur_ref_channel *channel, const int8_t *x,
                        int8_t *out)
{
    const mur_ref_view *v = &job->view;
    int32_t lines, count = v->out_w < SUMS ? v->out_w : SUMS;

    job->s.w = (const int8_t *)(channel + 1);
    job->s.bias = channel->bias;
    for (int32_t y = v->out_h; y > 0; y -= lines) {
        int32_t left = v->out_w;

        lines = y < job->most ? y : job->most;
        job->s.x = x;
        run_stretch(job, channel, lines, count, out);
        while ((left -= SUMS) > 0) {
            job->s.x += SUMS * v->stride_w;
            run_stretch(job, channel, 1, left < SUMS ? left : SUMS,
                        out + (v->out_w - left) * v->out_step);
        }
        x += lines * job->line_step;
        out += lines * v->out_pitch;
    }
}

static __attribute__((noinline)) void run(const mur_conv_s8 *layer, const int8_t *in, int8_t *out,
                                          int8_t *plane, find_sum *find)
{
    int32_t multiplier = layer->shape.out_c / layer->shape.in_c, at = 0;
    const uint8_t *channel = (const uint8_t *)layer->packed + sizeof(mur_ref_head);
    int32_t bytes, sums[SUMS + 3];
    plane_copy copy;
    layer_job job;

    set_up(&job, layer);
    job.sum = find(&job.view);
    job.s.sums = sums;
    copy = copy_of(&job.view, plane);
    bytes = (int32_t)sizeof(mur_ref_channel) + ((job.s.rows * job.s.columns + 3) & ~3);
    memset(plane, layer->in_zero, (size_t)job.view.rows * (size_t)job.view.columns);
    for (int32_t c = 0; c < layer->shape.out_c; c++, channel += bytes) {
        if (at == 0)
            copy_plane(&copy, in++);
        at = at + 1 == multiplier ? 0 : at + 1;
        run_channel(&job, (const void *)channel, plane, out + c);
    }
}

/* a row of its own for most layers, so that the other sums are linked only where they are needed */
void mur_ref_depthwise_3_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    run(layer, in, out, scratch, find_sum_of_three);
}

void mur_ref_depthwise_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    run(layer, in, out, scratch, find_sum_of_any);
}
