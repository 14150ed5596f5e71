/* mur_mve_conv.c - convolutions, pointwise and fully connected layers.
 *
 * A pixel's inputs are one run of bytes: where they lie, if they fill whole vectors there, else
 * gathered in scratch and filled up with zeros. Four output channels at a time. */
#include "mur_mve.h"

typedef struct conv_job {
    const mur_conv_s8 *layer;
    const int8_t *in;
    int8_t *x;        /* a pixel's inputs, gathered */
    int32_t inputs;   /* of an output */
    int32_t in_place; /* a pixel's inputs are whole vectors, and all inside */
} conv_job;

#if MUR_HAVE_MVE

/* sums of four channels over whole vectors of inputs and the rest, whose weights are `rest` apart
 */
static inline int32x4_t sums_of_four(const int8_t *x, const mur_mve_four *four, uint32_t vectors,
                                     uint32_t rest)
{
    register int32_t a __asm__("r4") = four->bias[0];
    register int32_t b __asm__("r6") = four->bias[1];
    register int32_t c __asm__("r8") = four->bias[2];
    register int32_t d __asm__("r10") = four->bias[3];
    const int8_t *w = (const int8_t *)(four + 1);
    int32x4_t sums;

    if (vectors > 0)
        __asm__ volatile("dls lr, %6\n"
                         "1: vldrb.8 q0, [%4], #16\n"
                         "vldrb.8 q1, [%5], #16\n"
                         "vmladava.s8 %0, q0, q1\n"
                         "vldrb.8 q2, [%5], #16\n"
                         "vmladava.s8 %1, q0, q2\n"
                         "vldrb.8 q1, [%5], #16\n"
                         "vmladava.s8 %2, q0, q1\n"
                         "vldrb.8 q2, [%5], #16\n"
                         "vmladava.s8 %3, q0, q2\n"
                         "le lr, 1b\n"
                         : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(x), "+r"(w)
                         : "r"(vectors)
                         : "lr", "q0", "q1", "q2", "memory");
    if (rest > 0) {
        int8x16_t last = vldrbq_s8(x); /* zeros behind the inputs: weights there do not count */

        a = vmladavaq_s8(a, last, vldrbq_s8(w));
        w += rest;
        b = vmladavaq_s8(b, last, vldrbq_s8(w));
        w += rest;
        c = vmladavaq_s8(c, last, vldrbq_s8(w));
        d = vmladavaq_s8(d, last, vldrbq_s8(w + rest));
    }
    __asm__("vmov %q0[2], %q0[0], %1, %3\n"
            "vmov %q0[3], %q0[1], %2, %4\n"
            : "=w"(sums)
            : "r"(a), "r"(b), "r"(c), "r"(d));
    return sums;
}

/* a pixel whose inputs lie at x */
static void run_channels(const conv_job *job, const int8_t *x, int8_t *out)
{
    mur_mve_clamp clamp = mur_mve_clamp_of(&job->layer->output);
    uint32_t vectors = (uint32_t)job->inputs / MUR_MVE_BYTES;
    uint32_t rest = (uint32_t)job->inputs % MUR_MVE_BYTES;
    size_t step = sizeof(mur_mve_four) + 4 * (size_t)job->inputs;
    const uint8_t *packed = job->layer->packed;
    int32_t left = job->layer->shape.out_c;

    for (;; left -= 4, out += 4, packed += step) {
        const mur_mve_four *four = (const void *)packed;
        int32x4_t y = mur_mve_output(sums_of_four(x, four, vectors, rest), four, &clamp);

        if (left <= 4) {
            vstrbq_p_s32(out, y, vctp32q((uint32_t)left));
            return;
        }
        vstrbq_s32(out, y);
    }
}

#else

static void run_four(const conv_job *job, const int8_t *x, const mur_mve_four *four,
                     int32_t channels, int8_t *out)
{
    for (int32_t i = 0; i < channels && i < 4; i++) {
        const int8_t *w = (const int8_t *)(four + 1);
        int32_t sum = four->bias[i];

        for (int32_t k = 0; k < job->inputs; k++) {
            int32_t start = k & ~(MUR_MVE_BYTES - 1), length = job->inputs - start;

            if (length > MUR_MVE_BYTES)
                length = MUR_MVE_BYTES;
            sum += x[k] * w[4 * start + i * length + (k - start)];
        }
        out[i] = mur_mve_output(sum, four, i, &job->layer->output);
    }
}

static void run_channels(const conv_job *job, const int8_t *x, int8_t *out)
{
    const uint8_t *packed = job->layer->packed;

    for (int32_t c = 0; c < job->layer->shape.out_c; c += 4) {
        run_four(job, x, (const void *)packed, job->layer->shape.out_c - c, out + c);
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
    int8_t *pixel = scratch; /* its outputs, while its inputs are still read */
    conv_job job;

    job.layer = layer;
    job.in = in;
    job.inputs = mur_mve_inputs(layer);
    job.x = pixel + ((layer->shape.out_c + 15) & ~15);
    job.in_place = layer->shape.kernel_h == 1 && layer->shape.kernel_w == 1 &&
                   layer->shape.pad_top == 0 && layer->shape.pad_left == 0 &&
                   job.inputs % MUR_MVE_BYTES == 0 &&
                   (layer->shape.out_h - 1) * layer->shape.stride_h < layer->shape.in_h &&
                   (layer->shape.out_w - 1) * layer->shape.stride_w < layer->shape.in_w;
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
