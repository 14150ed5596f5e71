/* mur_rv_conv.c - convolutions, pointwise and fully connected layers.
 *
 * A group of four neighbouring pixels at a time, of one where a row ends. Two pixels a, b share a
 * word x = a + 65536 b, so that one multiplication makes two products; the sum p of two such words
 * times weights has a's sum, of 16 bits, below b's. With s the sum of all p, and t that of all (p +
 * 32768) >> 16: b's sum is t, and a's s - 65536 t. 71 instructions for 32 products.
 *
 * The sums of two products are -32512..32768, and the greatest, of four -128, is one too many for
 * 16 bits: mur_rv_conv_wide_s8 adds 32767 - 65536 instead, so that its t is less by the number of
 * p; it knows weights of any zero point, too. */
#include "mur_rv_four.h"

typedef struct conv_job {
    const mur_conv_s8 *layer;
    const int8_t *in;
    void *x;                 /* of a group: int32 [inputs][2], or int8 [inputs] of one pixel */
    int8_t *border[2];       /* runs that are partly outside */
    int32_t runs, run_bytes; /* neighbouring bytes: of a kernel row, or of one tap */
    int32_t inputs;          /* of a group, rounded up to a multiple of 2 */
    mur_ref_output output;
} conv_job;

/* the run of row `row` that begins at `column`: where it lies, or a copy */
static const int8_t *find_run(const conv_job *job, int32_t row, int32_t column, int32_t first,
                              int8_t *border)
{
    const mur_conv_s8 *layer = job->layer;
    int32_t columns = job->runs == 1 ? layer->shape.kernel_w : 1, depth = job->run_bytes / columns;
    const int8_t *from = job->in + row * layer->shape.in_pitch + column * layer->shape.in_c + first;
    int is_row = row >= 0 && row < layer->shape.in_h;

    if (is_row && column >= 0 && column + columns <= layer->shape.in_w)
        return from;
    for (int32_t i = 0; i < job->run_bytes; i++) {
        int32_t at = column + i / depth;

        border[i] = is_row && at >= 0 && at < layer->shape.in_w ? from[i] : layer->in_zero;
    }
    return border;
}

/* inputs of pixels a and b to every second word */
static int32_t *put_pair(int32_t *x, const int8_t *a, const int8_t *b, int32_t count)
{
    for (const int8_t *end = a + count; a != end; a++, b++, x += 2)
        *x = *a + *b * 65536;
    return x;
}

static int8_t *put_one(int8_t *x, const int8_t *a, int32_t count)
{
    for (const int8_t *end = a + count; a != end; a++)
        *x++ = *a;
    return x;
}

/* Pixels whose windows begin at `left`, a stride apart: one, or two as a pair; of the group whose
 * first channel is `first`. */
static void gather(const conv_job *job, void *x, int32_t pixels, int32_t top, int32_t left,
                   int32_t first)
{
    const mur_conv_s8 *layer = job->layer;

    for (int32_t i = 0; i < layer->shape.kernel_h; i++)
        for (int32_t j = 0; j < job->runs; j++) {
            int32_t row = top + i * layer->shape.dilation_h,
                    column = left + j * layer->shape.dilation_w;
            const int8_t *a = find_run(job, row, column, first, job->border[0]);

            if (pixels == 1)
                x = put_one(x, a, job->run_bytes);
            else
                x = put_pair(
                    x, a, find_run(job, row, column + layer->shape.stride_w, first, job->border[1]),
                    job->run_bytes);
        }
    if (mur_ref_inputs(layer) == job->inputs)
        return;
    if (pixels == 1) /* its weight is 0 */
        (void)put_one(x, job->border[0], 1);
    else
        (void)put_pair(x, job->border[0], job->border[0], 1);
}

MUR_RV_MULTIPLY4(multiply4, 32768)
MUR_RV_MULTIPLY4(multiply4_wide, -32769)

/* takes the weights' zero point times a pixel's inputs, of a group, from its sums of four channels
 */
static __attribute__((noinline)) void correct(const conv_job *job, int32_t pixels, const void *x,
                                              int32_t *sums)
{
    int32_t inputs = mur_ref_inputs(job->layer);

    for (int32_t i = 0; i < pixels; i++) {
        const int32_t *pair = (const int32_t *)x + (i >> 1);
        const int8_t *one = x;
        int32_t sum = 0;

        for (int32_t k = 0; k < inputs; k++, pair += 2) {
            int32_t low = pixels == 1 ? one[k] : (int16_t)*pair;

            sum += i & 1 ? mur_asr(*pair - low, 16) : low;
        }
        for (int32_t c = 0; c < MUR_RV_CHANNELS; c++)
            sums[c * pixels + i] -= job->layer->weight_zero * sum;
    }
}

/* one or four pixels of a group, gathered, to its output channels */
static inline __attribute__((always_inline)) void multiply(const conv_job *job, int32_t pixels,
                                                           int32_t wide, int32_t group, int8_t *out)
{
    const mur_conv_s8 *layer = job->layer;
    int32_t inputs = job->inputs, channels = layer->shape.out_c / layer->shape.groups;
    int32_t fours = (channels + MUR_RV_CHANNELS - 1) / MUR_RV_CHANNELS;
    int32_t w_bytes = MUR_RV_CHANNELS * ((int32_t)sizeof(mur_ref_channel) + inputs);
    const int8_t *w =
        (const int8_t *)layer->packed + sizeof(mur_ref_head) + group * fours * w_bytes;
    int32_t sums[MUR_RV_CHANNELS * MUR_RV_PIXELS];

    out += group * channels;
    for (int32_t c = 0; c < channels; c += MUR_RV_CHANNELS) {
        const mur_ref_channel *four = (const void *)w;
        const int32_t *sum = sums;

        w += w_bytes;
        if (pixels == 1)
            mur_rv_multiply1(job->x, four, w, sums);
        else if (wide)
            multiply4_wide(job->x, four, w, sums);
        else
            multiply4(job->x, four, w, sums);
        if (pixels != 1 && wide)
            mur_rv_widen(sums, inputs);
        if (wide && layer->weight_zero != 0)
            correct(job, pixels, job->x, sums);
        for (int32_t i = c; i < c + MUR_RV_CHANNELS && i < channels; i++, sum += pixels)
            mur_ref_finish(&job->output, four++, sum, pixels, out++, layer->shape.out_c);
    }
}

static __attribute__((noinline)) void multiply_one(const conv_job *job, int32_t group, int8_t *out)
{
    multiply(job, 1, 0, group, out);
}

static __attribute__((noinline)) void multiply_four(const conv_job *job, int32_t group, int8_t *out)
{
    multiply(job, MUR_RV_PIXELS, 0, group, out);
}

static __attribute__((noinline)) void multiply_one_wide(const conv_job *job, int32_t group,
                                                        int8_t *out)
{
    multiply(job, 1, 1, group, out);
}

static __attribute__((noinline)) void multiply_four_wide(const conv_job *job, int32_t group,
                                                         int8_t *out)
{
    multiply(job, MUR_RV_PIXELS, 1, group, out);
}

static inline __attribute__((always_inline)) void run_row(const conv_job *job, int32_t top,
                                                          int32_t wide, int8_t *out)
{
    const mur_conv_shape *s = &job->layer->shape;
    int32_t left = -s->pad_left, step = s->stride_w, x = s->out_w, depth = s->in_c / s->groups;

    for (; x >= MUR_RV_PIXELS; x -= MUR_RV_PIXELS, left += 4 * step) {
        for (int32_t group = 0; group < s->groups; group++) {
            gather(job, job->x, 2, top, left, group * depth);
            gather(job, (int32_t *)job->x + 1, 2, top, left + 2 * step, group * depth);
            if (wide)
                multiply_four_wide(job, group, out);
            else
                multiply_four(job, group, out);
        }
        out += MUR_RV_PIXELS * s->out_c;
    }
    for (; x > 0; x--, left += step, out += s->out_c)
        for (int32_t group = 0; group < s->groups; group++) {
            gather(job, job->x, 1, top, left, group * depth);
            if (wide)
                multiply_one_wide(job, group, out);
            else
                multiply_one(job, group, out);
        }
}

static inline __attribute__((always_inline)) void run(const mur_conv_s8 *layer, const int8_t *in,
                                                      int8_t *out, void *scratch, int32_t wide)
{
    int32_t whole = layer->shape.groups == 1 && layer->shape.dilation_w == 1, depth;
    conv_job job;

    depth = layer->shape.in_c / layer->shape.groups;
    job.layer = layer;
    job.in = in;
    job.inputs = (mur_ref_inputs(layer) + 1) & ~1;
    job.runs = whole ? 1 : layer->shape.kernel_w;
    job.run_bytes = whole ? layer->shape.kernel_w * depth : depth;
    job.x = scratch;
    job.border[0] = (int8_t *)scratch + job.inputs * mur_rv_gathered_bytes(layer);
    job.border[1] = job.border[0] + job.run_bytes;
    job.output = mur_ref_output_of(&layer->output, ((const mur_ref_head *)layer->packed)->simple);
    for (int32_t y = 0; y < layer->shape.out_h; y++)
        run_row(&job, y * layer->shape.stride_h - layer->shape.pad_top, wide,
                out + y * layer->shape.out_pitch);
}

void mur_rv_conv_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    run(layer, in, out, scratch, 0);
}

void mur_rv_conv_wide_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    run(layer, in, out, scratch, 1);
}
