/* mur_mve_conv.c - convolutions, pointwise and fully connected layers.
 *
 * A pixel's inputs are one run of bytes: where they lie, if they fill whole vectors there, else
 * gathered in scratch and filled up with zeros. Four output channels at a time. */
#include "mur_mve_sums.h"

typedef struct conv_job {
    const mur_conv_s8 *layer;
    const int8_t *in;
    int8_t *x;        /* a pixel's inputs, gathered */
    int32_t inputs;   /* of an output */
    int32_t in_place; /* a pixel's inputs are whole vectors, and all inside */
} conv_job;

#if MUR_HAVE_MVE

/* a pixel whose inputs lie at x */
static void run_channels(const conv_job *job, const int8_t *x, int8_t *out)
{
    mur_mve_clamp clamp = mur_mve_clamp_of(&job->layer->output);
    uint32_t vectors = (uint32_t)job->inputs / MUR_MVE_BYTES;
    uint32_t rest = (uint32_t)job->inputs % MUR_MVE_BYTES;
    size_t step = sizeof(mur_mve_four) + 4 * (size_t)job->inputs;
    const uint8_t *packed = job->layer->packed;
    int8x16_t last = vdupq_n_s8(0); /* gathered, with zeros behind */
    int32_t left = job->layer->shape.out_c;

    if (rest > 0)
        last = vldrbq_s8(x + vectors * MUR_MVE_BYTES);
    for (;; left -= 4, out += 4, packed += step) {
        const mur_mve_four *four = (const void *)packed;
        int32x4_t sums =
            mur_mve_sums(x, vectors, last, rest, four->bias, (const int8_t *)(four + 1));
        int32x4_t y = mur_mve_output(sums, four, &clamp);

        if (left <= 4) {
            vstrbq_p_s32(out, y, vctp32q((uint32_t)left));
            return;
        }
        vstrbq_s32(out, y);
    }
}

#else

static void run_channels(const conv_job *job, const int8_t *x, int8_t *out)
{
    const uint8_t *packed = job->layer->packed;

    for (int32_t c = 0; c < job->layer->shape.out_c; c++) {
        const mur_mve_four *four = (const void *)packed;
        int32_t sum = mur_mve_sum(x, job->inputs, (const int8_t *)(four + 1), c & 3);

        out[c] = mur_mve_output(sum + four->bias[c & 3], four, c & 3, &job->layer->output);
        if ((c & 3) == 3)
            packed += sizeof(mur_mve_four) + 4 * (size_t)job->inputs;
    }
}

#endif

static void gather(const conv_job *job, int32_t top, int32_t left)
{
    const mur_conv_s8 *layer = job->layer;
    int32_t depth = layer->shape.in_c, before = mur_clamp(-left, 0, layer->shape.kernel_w);
    int32_t after = mur_clamp(left + layer->shape.kernel_w - layer->shape.in_w, 0,
                              layer->shape.kernel_w - before);
    int32_t inside = layer->shape.kernel_w - before - after;
    int8_t *x = job->x;

    for (int32_t i = 0; i < layer->shape.kernel_h; i++, top++, x += layer->shape.kernel_w * depth) {
        if (before + after > 0 || top < 0 || top >= layer->shape.in_h)
            mur_mve_fill(x, layer->in_zero, layer->shape.kernel_w * depth);
        if (top >= 0 && top < layer->shape.in_h)
            mur_mve_copy(x + before * depth,
                         job->in + top * layer->shape.in_pitch + (left + before) * depth,
                         inside * depth);
    }
}

void mur_mve_conv_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    int8_t *pixel = scratch; /* its outputs, while its inputs are still read where they lie */
    conv_job job;

    job.layer = layer;
    job.in = in;
    job.inputs = mur_mve_inputs(layer);
    job.x = scratch;
    job.in_place = mur_mve_in_place(layer);
    if (!job.in_place)
        mur_mve_fill(job.x + (job.inputs & ~(MUR_MVE_BYTES - 1)), 0, MUR_MVE_BYTES);
    for (int32_t y = 0; y < layer->shape.out_h; y++) {
        int32_t top = y * layer->shape.stride_h - layer->shape.pad_top,
                left = -layer->shape.pad_left;
        int8_t *to = out + y * layer->shape.out_pitch;

        for (int32_t x = layer->shape.out_w; x > 0;
             x--, left += layer->shape.stride_w, to += layer->shape.out_c)
            if (job.in_place) {
                run_channels(&job, in + top * layer->shape.in_pitch + left * layer->shape.in_c,
                             pixel);
                mur_mve_copy(to, pixel, layer->shape.out_c);
            } else {
                gather(&job, top, left);
                run_channels(&job, job.x, to);
            }
    }
}
