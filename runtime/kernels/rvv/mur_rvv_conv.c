/* mur_rvv_conv.c - convolutions, pointwise and fully connected layers: up to three pixels at a
 * time, gathered to scratch, times the channels of a vector. */
#include "mur_rvv_tile.h"

typedef struct conv_job {
    const mur_conv_s8 *layer;
    const int8_t *in;
    mur_rvv_parts parts;
    int32_t inputs, channels;             /* of a group */
    int32_t runs, run_taps, run_bytes;    /* of a kernel row: neighbouring taps, or tap by tap */
    int32_t span_h, span_w, is_pointwise; /* is_pointwise: pixels side by side are their inputs */
} conv_job;

static conv_job job_of(const mur_conv_s8 *layer, const int8_t *in)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t whole = s->groups == 1 && s->dilation_w == 1;
    conv_job job;

    job.layer = layer;
    job.in = in;
    job.parts = mur_rvv_parts_of(layer);
    job.inputs = mur_rvv_inputs(s);
    job.channels = s->out_c / s->groups;
    job.runs = whole ? 1 : s->kernel_w;
    job.run_taps = whole ? s->kernel_w : 1;
    job.run_bytes = job.run_taps * (s->in_c / s->groups);
    job.span_h = mur_rvv_rows(s);
    job.span_w = (s->kernel_w - 1) * s->dilation_w + 1;
    job.is_pointwise = s->kernel_h * s->kernel_w * s->groups * s->stride_w == 1;
    return job;
}

/* a run of taps that begins in a row at a column */
static void gather_border(const conv_job *job, int32_t row, int32_t column, int32_t first,
                          int8_t *x)
{
    const mur_conv_shape *s = &job->layer->shape;
    int32_t depth = s->in_c / s->groups, after = column + job->run_taps - s->in_w;
    int32_t before = column < 0 ? -column : 0;

    mur_rvv_fill(x, job->layer->in_zero, job->run_bytes);
    if (row >= 0 && row < s->in_h)
        mur_rvv_copy(x + before * depth,
                     job->in + row * s->in_pitch + (column + before) * s->in_c + first,
                     (job->run_taps - before - (after > 0 ? after : 0)) * depth);
}

/* the window of a pixel, channels from `first` on */
static int8_t *gather_window(const conv_job *job, int32_t top, int32_t left, int32_t first,
                             int8_t *x)
{
    const mur_conv_shape *s = &job->layer->shape;
    int32_t inside =
        top >= 0 && top + job->span_h <= s->in_h && left >= 0 && left + job->span_w <= s->in_w;
    const int8_t *row = job->in + top * s->in_pitch + left * s->in_c + first;
    int32_t row_step = s->dilation_h * s->in_pitch, tap_step = s->dilation_w * s->in_c;

    for (int32_t i = 0; i < s->kernel_h; i++, row += row_step)
        for (int32_t j = 0; j < job->runs; j++, x += job->run_bytes)
            if (inside)
                mur_rvv_copy(x, row + j * tap_step, job->run_bytes);
            else
                gather_border(job, top + i * s->dilation_h, left + j * s->dilation_w, first, x);
    return x;
}

/* pixels a stride apart, of each group the inputs of all of them */
static void gather(const conv_job *job, int32_t pixels, int32_t top, int32_t left, int8_t *x)
{
    const mur_conv_shape *s = &job->layer->shape;

    if (job->is_pointwise && top >= 0 && top < s->in_h && left >= 0 && left + pixels <= s->in_w) {
        mur_rvv_copy(x, job->in + top * s->in_pitch + left * s->in_c, pixels * s->in_c);
        return;
    }
    for (int32_t first = 0; first < s->in_c; first += s->in_c / s->groups)
        for (int32_t p = 0; p < pixels; p++)
            x = gather_window(job, top, left + p * s->stride_w, first, x);
}

MUR_RVV_MULTIPLY(multiply1, 1, 0)
MUR_RVV_MULTIPLY(multiply2, 2, 0)
MUR_RVV_MULTIPLY(multiply3, 3, 0)

/* pixels, gathered, to all output channels */
static void multiply(const conv_job *job, const int8_t *x, int32_t pixels, int8_t *out)
{
    const mur_output_s8 *output = &job->layer->output;
    int32_t inputs = job->inputs, channels = job->channels, out_c = job->layer->shape.out_c;
    mur_rvv_channels some = { job->parts.bias, job->parts.mul, job->parts.right, 0, 0 };
    const int8_t *w = job->parts.weights;

    for (int32_t group = job->layer->shape.groups; group > 0; group--, x += pixels * inputs) {
        for (int32_t done = 0; done < channels; done += some.count) {
            some.count = mur_rvv_count(channels - done);
            if (pixels == 3)
                multiply3(output, &some, x, inputs, inputs, w + done, channels, out, out_c);
            else if (pixels == 2)
                multiply2(output, &some, x, inputs, inputs, w + done, channels, out, out_c);
            else
                multiply1(output, &some, x, inputs, inputs, w + done, channels, out, out_c);
            some.bias += some.count, some.mul += some.count, some.right += some.count;
            out += some.count;
        }
        w += inputs * channels;
    }
}

void mur_rvv_conv_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    const mur_conv_shape *s = &layer->shape;
    const conv_job job = job_of(layer, in);

    for (int32_t y = 0; y < s->out_h; y++) {
        int32_t top = y * s->stride_h - s->pad_top, left = -s->pad_left;
        int8_t *to = out + y * s->out_pitch;

        for (int32_t x = s->out_w, pixels; x > 0; x -= pixels) {
            pixels = x < MUR_RVV_PIXELS ? x : MUR_RVV_PIXELS;
            gather(&job, pixels, top, left, scratch);
            multiply(&job, scratch, pixels, to);
            left += pixels * s->stride_w;
            to += pixels * s->out_c;
        }
    }
}
