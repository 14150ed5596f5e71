/* mur_mve_conv_tiny.c - convolutions whose windows have up to a vector of inputs, near one another:
 * those of windows inside the image are gathered from where they lie. */
#include "mur_mve_narrow.h"

/* what all pixels of a layer share */
typedef struct tiny_job {
    const mur_conv_s8 *layer;
    const mur_mve_four *fours;
    int32_t inputs;
    uint8_t at[MUR_MVE_BYTES], dense[MUR_MVE_BYTES]; /* places of inputs in the image, in a tile */
} tiny_job;

static tiny_job job_of(const mur_conv_s8 *layer)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t pitch = s->dilation_h * s->in_pitch - s->kernel_w * s->dilation_w * s->in_c;
    int32_t next = (s->dilation_w - 1) * s->in_c, place = 0, k = 0;
    tiny_job job;

    job.layer = layer;
    job.inputs = s->kernel_h * s->kernel_w * s->in_c;
    job.fours = (const void *)((const int8_t *)layer->packed +
                               MUR_MVE_FOUR * mur_mve_count(s->out_c) * job.inputs);
    for (int32_t i = 0; i < MUR_MVE_BYTES; i++)
        job.at[i] = 0, job.dense[i] = (uint8_t)i;
    for (int32_t i = 0; i < s->kernel_h; i++, place += pitch)
        for (int32_t j = 0; j < s->kernel_w; j++, place += next)
            for (int32_t c = 0; c < s->in_c; c++)
                job.at[k++] = (uint8_t)place++;
    return job;
}

static __attribute__((noinline)) void run(const tiny_job *job, const int8_t *from, int32_t step,
                                          const uint8_t *at, int8_t *out, int32_t count)
{
    mur_mve_run_few(job->layer, from, step, job->inputs, at, job->fours, job->layer->packed,
                    job->layer->shape.out_c, out, count);
}

/* of the taps of a line, the first at `at`, those in 0 .. size - 1, a bit each */
static uint32_t taps_inside(int32_t at, int32_t taps, int32_t step, int32_t size)
{
    uint32_t inside = 0;

    for (int32_t i = 0; i < taps; i++, at += step)
        inside |= (uint32_t)(at >= 0 && at < size) << i;
    return inside;
}

/* of the inputs of the pixel whose window begins in column `left`, those inside the image, of whose
 * rows `rows` are */
static uint32_t inputs_inside(const mur_conv_shape *s, uint32_t rows, int32_t left)
{
    uint32_t columns = taps_inside(left, s->kernel_w, s->dilation_w, s->in_w);
    uint32_t pixel = (1u << s->in_c) - 1, row = 0, all = 0;

    for (int32_t j = s->kernel_w - 1; j >= 0; j--)
        row = row << s->in_c | (columns >> j & 1 ? pixel : 0);
    for (int32_t i = s->kernel_h - 1; i >= 0; i--)
        all = all << s->kernel_w * s->in_c | (rows >> i & 1 ? row : 0);
    return all;
}

/* inputs of a pixel side by side, those that are not inside of value `zero` */
static inline void gather(const int8_t *from, const uint8_t *at, uint32_t inside, int8_t zero,
                          int8_t *x)
{
#if MUR_HAVE_MVE
    mve_pred16_t some = (mve_pred16_t)inside;

    vstrbq_s8(
        x, vpselq_s8(vldrbq_gather_offset_z_s8(from, vldrbq_u8(at), some), vdupq_n_s8(zero), some));
#else
    for (int32_t k = 0; k < MUR_MVE_BYTES; k++)
        x[k] = inside >> k & 1 ? from[at[k]] : zero;
#endif
}

void mur_mve_conv_tiny_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    const mur_conv_shape *s = &layer->shape;
    const tiny_job job = job_of(layer);
    int32_t rightmost = s->in_w - (s->kernel_w - 1) * s->dilation_w - 1; /* window that is inside */
    int32_t step = s->stride_w * s->in_c;
    int8_t tile[MUR_MVE_PIXELS * MUR_MVE_BYTES];

    (void)scratch;
    for (int32_t y = s->out_h, top = -s->pad_top; y > 0; y--, top += s->stride_h) {
        uint32_t rows = taps_inside(top, s->kernel_h, s->dilation_h, s->in_h);
        int32_t last = rows + 1 == 1u << s->kernel_h ? rightmost : -1, left = -s->pad_left, count;
        const int8_t *from = in + top * s->in_pitch + left * s->in_c;
        int8_t *to = out;

        for (int32_t x = s->out_w; x > 0; x -= count) {
            count = left >= 0 && left <= last ? (last - left) / s->stride_w + 1 : 0;
            count = count >= x ? x : count & ~(MUR_MVE_PIXELS - 1);
            if (count > 0) {
                run(&job, from, step, job.at, to, count);
            } else {
                count = x < MUR_MVE_PIXELS ? x : MUR_MVE_PIXELS;
                for (int32_t p = 0, at = left; p < count; p++, at += s->stride_w)
                    gather(from + p * step, job.at,
                           at >= 0 && at <= last ? UINT16_MAX : inputs_inside(s, rows, at),
                           layer->in_zero, tile + p * MUR_MVE_BYTES);
                run(&job, tile, MUR_MVE_BYTES, job.dense, to, count);
            }
            from += count * step, left += count * s->stride_w, to += count * s->out_c;
        }
        out += s->out_pitch;
    }
}
