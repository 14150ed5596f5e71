/* mur_mve_depthwise.c - depthwise convolutions, a channel's outputs four at a time.
 *
 * Eight channels at a time, the rows that an output row touches lie in scratch as one plane a
 * channel, column by column, borders and all: a window is one run of bytes, and outputs may
 * overwrite inputs. Byte n of a column is row n: the next row of windows begins one byte further,
 * so row n + kernel_h of a column takes the place of row n of the next. */
#include "mur_mve.h"

/* eight channels of a layer */
typedef struct depthwise_job {
    const mur_conv_s8 *layer;
    mur_mve_line line;
    int8_t *planes;
    int32_t first;    /* row that is byte 0 of the first column */
    int32_t inputs;   /* channels of the input, up to eight */
    int32_t channels; /* of the output */
    const mur_mve_channel *channel;
    const int8_t *w;
} depthwise_job;

#if MUR_HAVE_MVE

/* a row of pixels, `step` apart, to byte `at` of the columns from x on; or in_zero, if from is NULL
 */
static void put_pixels(const depthwise_job *job, int8_t *x, const int8_t *from, int32_t step,
                       int32_t count)
{
    uint16x8_t at = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)job->line.plane);
    mve_pred16_t some = vctp16q((uint32_t)job->inputs);
    int16x8_t zeros = vdupq_n_s16(job->layer->in_zero);

    if (!from)
        for (; count > 0; count--, x += job->line.kernel_h)
            vstrbq_scatter_offset_p_s16(x, at, zeros, some);
    else if (count > 0)
        __asm__ volatile("vmsr p0, %4\n"
                         "dls lr, %5\n"
                         "1: vpstt\n"
                         "vldrbt.u16 q0, [%1]\n"
                         "vstrbt.16 q0, [%0, %q6]\n"
                         "add %1, %1, %2\n"
                         "add %0, %0, %3\n"
                         "le lr, 1b\n"
                         : "+r"(x), "+r"(from)
                         : "r"(step), "r"(job->line.kernel_h), "r"(some), "r"(count), "w"(at)
                         : "lr", "q0", "memory");
}

/* a row of one channel */
typedef struct depthwise_row {
    const int8_t *x; /* the first window */
    const int8_t *w;
    mur_mve_channel channel;
    const mur_output_s8 *to;
    uint32x4_t at; /* of four outputs */
    mve_pred16_t some;
    int32_t steps, rest;      /* vectors of a window; inputs of the last one */
    int32_t fours;            /* of outputs */
    int32_t next, next_out;   /* from the first four to the second */
    int32_t after, after_out; /* and from there on */
} depthwise_row;

static inline __attribute__((always_inline)) void
store_four(const depthwise_row *row, int32_t a, int32_t b, int32_t c, int32_t d, int8_t *out)
{
    int32x4_t sums;

    __asm__("vmov %q0[2], %q0[0], %1, %3\n"
            "vmov %q0[3], %q0[1], %2, %4\n"
            : "=w"(sums)
            : "r"(a), "r"(b), "r"(c), "r"(d));
    sums = vaddq_n_s32(mur_mve_scale_channel(sums, &row->channel), row->to->zero);
    sums = vminq_s32(vmaxq_s32(sums, vdupq_n_s32(row->to->min)), vdupq_n_s32(row->to->max));
    vstrbq_scatter_offset_p_s32(out, row->at, sums, row->some);
}

/* windows of one, two or four vectors, weights in registers; inlined for constant steps */
static inline __attribute__((always_inline)) void run_short(const depthwise_row *r, int8_t *out,
                                                            int32_t vectors, int32_t step)
{
    const depthwise_row row = *r;
    const int8_t *x = row.x;
    mve_pred16_t some = vctp8q((uint32_t)row.rest);
    int8x16_t w[4];

    for (int32_t v = 0; v < vectors; v++)
        w[v] = v + 1 < vectors ? vldrbq_s8(row.w + 16 * v) : vldrbq_z_s8(row.w + 16 * v, some);
    for (int32_t left = row.fours, next = row.next, next_out = row.next_out; left > 0; left--) {
        int32_t a = vmladavq_s8(vldrbq_s8(x), w[0]);
        int32_t b = vmladavq_s8(vldrbq_s8(x + step), w[0]);
        int32_t c = vmladavq_s8(vldrbq_s8(x + 2 * step), w[0]);
        int32_t d = vmladavq_s8(vldrbq_s8(x + 3 * step), w[0]);

        for (int32_t v = 1; v < vectors; v++) {
            a = vmladavaq_s8(a, vldrbq_s8(x + 16 * v), w[v]);
            b = vmladavaq_s8(b, vldrbq_s8(x + step + 16 * v), w[v]);
            c = vmladavaq_s8(c, vldrbq_s8(x + 2 * step + 16 * v), w[v]);
            d = vmladavaq_s8(d, vldrbq_s8(x + 3 * step + 16 * v), w[v]);
        }
        store_four(&row, a, b, c, d, out);
        x += next, out += next_out;
        next = row.after, next_out = row.after_out;
    }
}

/* windows of any size */
static void run_long(const depthwise_row *row, int8_t *out, int32_t step)
{
    const int8_t *x = row->x;
    int32_t next = row->next, next_out = row->next_out;

    for (int32_t left = row->fours; left > 0; left--) {
        const int8_t *x0 = x, *x1 = x + step, *x2 = x1 + step, *x3 = x2 + step, *w = row->w;
        int32_t a = 0, b = 0, c = 0, d = 0;

        for (int32_t v = row->steps; v > 0; v--, x0 += 16, x1 += 16, x2 += 16, x3 += 16, w += 16) {
            int8x16_t y = v > 1 ? vldrbq_s8(w) : vldrbq_z_s8(w, vctp8q((uint32_t)row->rest));

            a = vmladavaq_s8(a, vldrbq_s8(x0), y);
            b = vmladavaq_s8(b, vldrbq_s8(x1), y);
            c = vmladavaq_s8(c, vldrbq_s8(x2), y);
            d = vmladavaq_s8(d, vldrbq_s8(x3), y);
        }
        store_four(row, a, b, c, d, out);
        x += next, out += next_out;
        next = row->after, next_out = row->after_out;
    }
}

static void run_row(const depthwise_row *row, int8_t *out, int32_t step)
{
    if (row->steps == 1 && step == 3)
        run_short(row, out, 1, 3);
    else if (row->steps == 1)
        run_short(row, out, 1, step);
    else if (row->steps == 2)
        run_short(row, out, 2, step);
    else if (row->steps == 4)
        run_short(row, out, 4, step);
    else
        run_long(row, out, step);
}

/* the row of windows that begins with row `top`, of all channels */
static void run_channels(const depthwise_job *job, int32_t top, int8_t *out)
{
    const mur_mve_line *line = &job->line;
    int32_t taps = line->kernel_h * line->kernel_w, step = line->stride * line->kernel_h;
    int32_t odd = line->out_w > 4 && line->out_w % 4 > 0 ? line->out_w % 4 : 4;
    depthwise_row row;

    row.to = &job->layer->output;
    row.at = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)line->out_step);
    row.some = vctp32q((uint32_t)line->out_w);
    row.steps = (taps + MUR_MVE_BYTES - 1) / MUR_MVE_BYTES;
    row.rest = taps - (row.steps - 1) * MUR_MVE_BYTES;
    row.fours = (line->out_w + 3) / 4;
    row.next = odd * step, row.next_out = odd * line->out_step;
    row.after = 4 * step, row.after_out = 4 * line->out_step;
    for (int32_t c = 0; c < job->channels; c++) {
        row.x = job->planes + c / line->multiplier * line->plane + top - job->first;
        row.w = job->w + c * taps;
        row.channel = job->channel[c];
        run_row(&row, out + c, step);
    }
}

#else

static void put_pixels(const depthwise_job *job, int8_t *x, const int8_t *from, int32_t step,
                       int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        for (int32_t c = 0; c < job->inputs; c++)
            x[c * job->line.plane + i * job->line.kernel_h] =
                from ? from[i * step + c] : job->layer->in_zero;
}

static void run_channels(const depthwise_job *job, int32_t top, int8_t *out)
{
    const mur_mve_line *line = &job->line;
    int32_t taps = line->kernel_h * line->kernel_w;

    for (int32_t c = 0; c < job->channels; c++)
        for (int32_t i = 0; i < line->out_w; i++) {
            const int8_t *x = job->planes + c / line->multiplier * line->plane + top - job->first +
                              i * line->stride * line->kernel_h;
            int32_t sum = job->channel[c].bias;

            for (int32_t k = 0; k < taps; k++)
                sum += x[k] * job->w[c * taps + k];
            out[i * line->out_step + c] =
                mur_requant(sum, job->channel[c].mul, job->channel[c].shift, &job->layer->output);
        }
}

#endif

/* row n of the input, with its borders */
static void put_row(const depthwise_job *job, const int8_t *in, int32_t n)
{
    const mur_mve_line *line = &job->line;
    int32_t inside = mur_clamp(line->in_w, 0, line->width - line->pad_left);
    int8_t *x = job->planes + n - job->first;

    if (n < 0 || n >= line->in_h) {
        put_pixels(job, x, NULL, 0, line->width);
        return;
    }
    put_pixels(job, x, NULL, 0, line->pad_left);
    x += line->pad_left * line->kernel_h;
    put_pixels(job, x, in + n * line->in_row, line->in_step, inside);
    put_pixels(job, x + inside * line->kernel_h, NULL, 0, line->width - line->pad_left - inside);
}

/* rows from `top` on come first in the planes */
static void move_planes(depthwise_job *job, int32_t top)
{
    for (int32_t c = 0; c < job->inputs; c++) {
        int8_t *plane = job->planes + c * job->line.plane;

        mur_mve_copy(plane, plane + top - job->first, job->line.width * job->line.kernel_h);
    }
    job->first = top;
}

static void run_rows(depthwise_job *job, const int8_t *in, int8_t *out)
{
    const mur_mve_line *line = &job->line;
    int32_t copied = -line->pad_top; /* rows before */

    job->first = copied;
    for (int32_t y = 0; y < line->out_h; y++, out += line->out_row) {
        int32_t top = y * line->stride_h - line->pad_top;

        if (top - job->first > MUR_MVE_SLACK)
            move_planes(job, top);
        for (copied = copied < top ? top : copied; copied < top + line->kernel_h; copied++)
            put_row(job, in, copied);
        run_channels(job, top, out);
    }
}

void mur_mve_depthwise_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    int32_t channels = layer->shape.in_c, taps = layer->shape.kernel_h * layer->shape.kernel_w;
    depthwise_job job;

    job.layer = layer;
    job.line = mur_mve_line_of(&layer->shape);
    job.planes = scratch;
    job.channel = layer->packed;
    job.w = (const int8_t *)(job.channel + layer->shape.out_c);
    for (; channels > 0; channels -= job.inputs, in += job.inputs, out += job.channels) {
        job.inputs = channels < MUR_MVE_PLANES ? channels : MUR_MVE_PLANES;
        job.channels = job.inputs * job.line.multiplier;
        run_rows(&job, in, out);
        job.channel += job.channels;
        job.w += job.channels * taps;
    }
}
