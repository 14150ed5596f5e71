/* mur_rv_conv.c - convolutions, pointwise and fully connected layers.
 *
 * The inputs of four neighbouring pixels (of one, where a row ends) are gathered in scratch, by
 * turns; then sums of four pixels by four channels stay in registers: 8 loads and 32 operations
 * for 16 products. */
#include "mur_rv.h"

#include <string.h>

typedef struct conv_job {
    const mur_conv_s8 *layer;
    const int8_t *in;
    int8_t *x; /* [group][inputs of a group][pixels] */
    mur_rv_output output;
    int32_t runs, run_bytes; /* neighbouring bytes: of a kernel row, or of one tap */
} conv_job;

/* count bytes to every `pixels`th place */
static int8_t *spread(int8_t *x, int32_t pixels, const int8_t *from, int32_t count)
{
    for (; count >= 4; count -= 4, from += 4, x += 4 * pixels) {
        int8_t a = from[0], b = from[1], c = from[2], d = from[3];

        x[0] = a;
        x[pixels] = b;
        x[2 * pixels] = c;
        x[3 * pixels] = d;
    }
    for (; count > 0; count--, x += pixels)
        *x = *from++;
    return x;
}

static int8_t *fill(int8_t *x, int32_t pixels, int8_t value, int32_t count)
{
    for (; count > 0; count--, x += pixels)
        *x = value;
    return x;
}

/* the run of row `row` that begins at `column`, which may be partly outside */
static int8_t *gather_run(const conv_job *job, int8_t *x, int32_t pixels, int32_t row,
                          int32_t column, int32_t first)
{
    const mur_conv_s8 *layer = job->layer;
    int32_t columns, before, after, depth;

    if (row < 0 || row >= layer->in_h)
        return fill(x, pixels, layer->in_zero, job->run_bytes);
    columns = job->runs == 1 ? layer->kernel_w : 1;
    before = mur_clamp(-column, 0, columns);
    after = mur_clamp(column + columns - layer->in_w, 0, columns - before);
    depth = layer->in_c / layer->groups;
    x = fill(x, pixels, layer->in_zero, before * depth);
    x = spread(x, pixels, job->in + row * layer->in_pitch + (column + before) * layer->in_c + first,
               job->run_bytes - (before + after) * depth);
    return fill(x, pixels, layer->in_zero, after * depth);
}

/* One of `pixels` pixels whose windows lie between the left and the right edge, each kernel row one
 * run. */
static void gather_inside(const conv_job *job, int8_t *x, int32_t pixels, int32_t top, int32_t left)
{
    const mur_conv_s8 *layer = job->layer;
    const int8_t *from = job->in + top * layer->in_pitch + left * layer->in_c;

    for (int32_t i = 0; i < layer->kernel_h; i++, top += layer->dilation_h) {
        x = top < 0 || top >= layer->in_h ? fill(x, pixels, layer->in_zero, job->run_bytes)
                                          : spread(x, pixels, from, job->run_bytes);
        from += layer->dilation_h * layer->in_pitch;
    }
}

/* one of `pixels` pixels */
static void gather(const conv_job *job, int8_t *x, int32_t pixels, int32_t top, int32_t left)
{
    const mur_conv_s8 *layer = job->layer;
    int32_t depth = layer->in_c / layer->groups;

    for (int32_t first = 0; first < layer->in_c; first += depth)
        for (int32_t i = 0; i < layer->kernel_h; i++)
            for (int32_t j = 0; j < job->runs; j++)
                x = gather_run(job, x, pixels, top + i * layer->dilation_h,
                               left + j * layer->dilation_w, first);
}

/* sums [channel][pixel] of four pixels and four channels */
static __attribute__((noinline)) void multiply4(const int8_t *x, const mur_rv_channel *four,
                                                const int8_t *end, int32_t *sums)
{
    const int8_t *w = (const int8_t *)(four + MUR_RV_CHANNELS);

#if defined(__riscv) && __riscv_xlen == 32
/* left to itself, GCC spills sums */
#define PIXEL(at, sum0, sum1, sum2, sum3) \
    "lb a4, " #at "(%0)\n" \
    "mul s1, a4, t0\n" \
    "add " #sum0 ", " #sum0 ", s1\n" \
    "mul s1, a4, t1\n" \
    "add " #sum1 ", " #sum1 ", s1\n" \
    "mul s1, a4, t2\n" \
    "add " #sum2 ", " #sum2 ", s1\n" \
    "mul s1, a4, a5\n" \
    "add " #sum3 ", " #sum3 ", s1\n"
#define BIAS(at, sum0, sum1, sum2, sum3) \
    "lw " #sum0 ", " #at "(%4)\n" \
    "mv " #sum1 ", " #sum0 "\n" \
    "mv " #sum2 ", " #sum0 "\n" \
    "mv " #sum3 ", " #sum0 "\n"
#define STORE(at, sum0, sum1, sum2, sum3) \
    "sw " #sum0 ", " #at "(%3)\n" \
    "sw " #sum1 ", " #at "+4(%3)\n" \
    "sw " #sum2 ", " #at "+8(%3)\n" \
    "sw " #sum3 ", " #at "+12(%3)\n"
    __asm__ volatile(
        BIAS(0, s2, s3, s4, s5) BIAS(12, s6, s7, s8, s9) BIAS(24, s10, s11, t3, t4)
            BIAS(36, t5, t6, a6, a7) "1: lb t0, 0(%1)\n"
                                     "lb t1, 1(%1)\n"
                                     "lb t2, 2(%1)\n"
                                     "lb a5, 3(%1)\n"
                                     "addi %1, %1, 4\n" PIXEL(0, s2, s6, s10, t5)
                                         PIXEL(1, s3, s7, s11, t6) PIXEL(2, s4, s8, t3, a6)
                                             PIXEL(3, s5, s9, t4,
                                                   a7) "addi %0, %0, 4\n"
                                                       "bne %1, %2, 1b\n" STORE(0, s2, s3, s4, s5)
                                                           STORE(16, s6, s7, s8, s9)
                                                               STORE(32, s10, s11, t3, t4)
                                                                   STORE(48, t5, t6, a6, a7)
        : "+r"(x), "+r"(w)
        : "r"(end), "r"(sums), "r"(four)
        : "t0", "t1", "t2", "t3", "t4", "t5", "t6", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8",
          "s9", "s10", "s11", "a4", "a5", "a6", "a7", "memory");
#else
    for (int32_t i = 0; i < MUR_RV_CHANNELS * MUR_RV_PIXELS; i++)
        sums[i] = four[i / MUR_RV_PIXELS].bias;
    for (; w != end; w += 4, x += 4)
        for (int32_t i = 0; i < MUR_RV_CHANNELS * MUR_RV_PIXELS; i++)
            sums[i] += x[i % MUR_RV_PIXELS] * w[i / MUR_RV_PIXELS];
#endif
}

static void multiply1(const int8_t *x, const mur_rv_channel *four, const int8_t *end, int32_t *sums)
{
    const int8_t *w = (const int8_t *)(four + MUR_RV_CHANNELS);
    int32_t a = four[0].bias, b = four[1].bias, c = four[2].bias, d = four[3].bias;

    for (; w != end; w += 4, x++) {
        int32_t x0 = *x;

        a += x0 * w[0], b += x0 * w[1], c += x0 * w[2], d += x0 * w[3];
    }
    sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
}

/* one or four pixels, gathered, to all output channels */
static inline __attribute__((always_inline)) void multiply(const conv_job *job, int32_t pixels,
                                                           int8_t *out)
{
    const mur_conv_s8 *layer = job->layer;
    int32_t inputs = mur_rv_inputs(layer), channels = layer->out_c / layer->groups;
    const int8_t *x = job->x, *w = (const int8_t *)layer->packed + sizeof(mur_rv_head);
    int32_t sums[MUR_RV_CHANNELS * MUR_RV_PIXELS];

    for (int32_t group = 0; group < layer->groups; group++, x += inputs * pixels)
        for (int32_t c = 0; c < channels; c += MUR_RV_CHANNELS) {
            const mur_rv_channel *four = (const void *)w;
            const int32_t *sum = sums;

            w += MUR_RV_CHANNELS * ((int32_t)sizeof(*four) + inputs);
            (pixels == 1 ? multiply1 : multiply4)(x, four, w, sums);
            for (int32_t i = c; i < c + MUR_RV_CHANNELS && i < channels; i++, sum += pixels)
                mur_rv_finish(&job->output, four++, sum, pixels, out++, layer->out_c);
        }
}

static __attribute__((noinline)) void multiply_one(const conv_job *job, int8_t *out)
{
    multiply(job, 1, out);
}

static __attribute__((noinline)) void multiply_four(const conv_job *job, int8_t *out)
{
    multiply(job, MUR_RV_PIXELS, out);
}

void mur_rv_conv_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    int32_t whole = layer->groups == 1 && layer->dilation_w == 1, depth;
    conv_job job;

    depth = layer->in_c / layer->groups;
    job.layer = layer;
    job.in = in;
    job.x = scratch;
    job.output.to = &layer->output;
    job.output.simple = (int32_t)((const mur_rv_head *)layer->packed)->simple;
    job.runs = whole ? 1 : layer->kernel_w;
    job.run_bytes = whole ? layer->kernel_w * depth : depth;
    for (int32_t y = 0; y < layer->out_h; y++) {
        int32_t top = y * layer->stride_h - layer->pad_top, left = -layer->pad_left, x = 0;
        int8_t *to = out + y * layer->out_pitch;

        while (x < layer->out_w) {
            int32_t pixels = layer->out_w - x < MUR_RV_PIXELS ? 1 : MUR_RV_PIXELS;

            for (int32_t p = 0; p < pixels; p++, left += layer->stride_w)
                if (job.runs == 1 && layer->groups == 1 && left >= 0 &&
                    left + layer->kernel_w <= layer->in_w)
                    gather_inside(&job, job.x + p, pixels, top, left);
                else
                    gather(&job, job.x + p, pixels, top, left);
            (pixels == 1 ? multiply_one : multiply_four)(&job, to);
            to += pixels * layer->out_c;
            x += pixels;
        }
    }
}
