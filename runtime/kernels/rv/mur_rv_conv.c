/* mur_rv_conv.c - convolutions, pointwise and fully connected layers.
 *
 * Four neighbouring pixels at a time, of one where a row ends. Two pixels a, b share a word
 * x = a + 65536 b, so that one multiplication makes two products; the sum p of two such words times
 * weights has a's sum, of 16 bits, below b's. With s the sum of all p, and t that of all
 * (p + 32768) >> 16: b's sum is t, and a's s - 65536 t. 71 instructions for 32 products.
 *
 * The sums of two products are -32512..32768, and the greatest, of four -128, is one too many for
 * 16 bits: mur_rv_conv_wide_s8 adds 32767 - 65536 instead, so that its t is less by the number of
 * p; it knows weights of any zero point, too. */
#include "mur_rv.h"

typedef struct conv_job {
    const mur_conv_s8 *layer;
    const int8_t *in;
    void *x;                 /* int32 [groups][inputs][2], or int8 [groups][inputs] of one pixel */
    int8_t *border[2];       /* runs that are partly outside */
    int32_t runs, run_bytes; /* neighbouring bytes: of a kernel row, or of one tap */
    int32_t inputs;          /* of a group, rounded up to a multiple of 2 */
    mur_rv_output output;
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

/* Pixels whose windows begin at `left`, a stride apart: one, or two as a pair. */
static void gather(const conv_job *job, void *x, int32_t pixels, int32_t top, int32_t left)
{
    const mur_conv_s8 *layer = job->layer;
    int32_t depth = layer->shape.in_c / layer->shape.groups, used = mur_rv_inputs(layer);

    for (int32_t first = 0; first < layer->shape.in_c; first += depth) {
        for (int32_t i = 0; i < layer->shape.kernel_h; i++)
            for (int32_t j = 0; j < job->runs; j++) {
                int32_t row = top + i * layer->shape.dilation_h,
                        column = left + j * layer->shape.dilation_w;
                const int8_t *a = find_run(job, row, column, first, job->border[0]);

                if (pixels == 1)
                    x = put_one(x, a, job->run_bytes);
                else
                    x = put_pair(
                        x, a,
                        find_run(job, row, column + layer->shape.stride_w, first, job->border[1]),
                        job->run_bytes);
            }
        if (used != job->inputs) { /* its weight is 0 */
            if (pixels == 1)
                x = put_one(x, job->border[0], 1);
            else
                x = put_pair(x, job->border[0], job->border[0], 1);
        }
    }
}

#if defined(__riscv) && __riscv_xlen == 32

/* Two inputs of a channel whose weights are w bytes behind a1: sums s0 and t0 of the first pair, s1
 * and t1 of the second. */
#define CHANNEL(w, s0, t0, s1, t1) \
    "lb a4, " #w "(a1)\n" \
    "lb a5, " #w "+4(a1)\n" \
    "mul a6, t0, a4\n" \
    "mul a7, t2, a5\n" \
    "add a6, a6, a7\n" \
    "add " #s0 ", " #s0 ", a6\n" \
    "add a6, a6, a3\n" \
    "srai a6, a6, 16\n" \
    "add " #t0 ", " #t0 ", a6\n" \
    "mul a6, t1, a4\n" \
    "mul a7, t3, a5\n" \
    "add a6, a6, a7\n" \
    "add " #s1 ", " #s1 ", a6\n" \
    "add a6, a6, a3\n" \
    "srai a6, a6, 16\n" \
    "add " #t1 ", " #t1 ", a6\n"
#define START(bias, s0, t0, s1, t1) \
    "lw " #t0 ", " #bias "(a1)\n" \
    "slli " #s0 ", " #t0 ", 16\n" \
    "add " #s0 ", " #s0 ", " #t0 "\n" \
    "mv " #s1 ", " #s0 "\n" \
    "mv " #t1 ", " #t0 "\n"
#define STORE(at, s0, t0, s1, t1) \
    "slli a4, " #t0 ", 16\n" \
    "slli a5, " #t1 ", 16\n" \
    "sub " #s0 ", " #s0 ", a4\n" \
    "sub " #s1 ", " #s1 ", a5\n" \
    "sw " #s0 ", " #at "(a3)\n" \
    "sw " #t0 ", " #at "+4(a3)\n" \
    "sw " #s1 ", " #at "+8(a3)\n" \
    "sw " #t1 ", " #at "+12(a3)\n"
#define SAVED(op) \
#op " s0, 0(sp)\n" #op " s1, 4(sp)\n" #op " s2, 8(sp)\n" #op " s3, 12(sp)\n" #op \
        " s4, 16(sp)\n" #op " s5, 20(sp)\n" #op " s6, 24(sp)\n" #op " s7, 28(sp)\n" #op \
        " s8, 32(sp)\n" #op " s9, 36(sp)\n" #op " s10, 40(sp)\n" #op " s11, 44(sp)\n" #op \
        " ra, 48(sp)\n" #op " a3, 52(sp)\n"

/* clang-format off */
/* sums [channel][pixel] of four pixels and four channels; `round` is added before the shift */
#define MULTIPLY4(name, round) \
    __attribute__((naked, noinline)) static void name( \
        __attribute__((unused)) const int32_t *x, \
        __attribute__((unused)) const mur_rv_channel *four, \
        __attribute__((unused)) const int8_t *end, __attribute__((unused)) int32_t *sums) \
    { \
        __asm__ volatile("addi sp, sp, -64\n" \
                         SAVED(sw) \
                         START(0, s0, s1, s2, s3) \
                         START(12, s4, s5, s6, s7) \
                         START(24, s8, s9, s10, s11) \
                         START(36, t4, t5, t6, ra) \
                         "li a3, " #round "\n" \
                         "addi a1, a1, 48\n" \
                         "1: lw t0, 0(a0)\n" \
                         "lw t1, 4(a0)\n" \
                         "lw t2, 8(a0)\n" \
                         "lw t3, 12(a0)\n" \
                         CHANNEL(0, s0, s1, s2, s3) \
                         CHANNEL(1, s4, s5, s6, s7) \
                         CHANNEL(2, s8, s9, s10, s11) \
                         CHANNEL(3, t4, t5, t6, ra) \
                         "addi a1, a1, 8\n" \
                         "addi a0, a0, 16\n" \
                         "bne a1, a2, 1b\n" \
                         "lw a3, 52(sp)\n" \
                         STORE(0, s0, s1, s2, s3) \
                         STORE(16, s4, s5, s6, s7) \
                         STORE(32, s8, s9, s10, s11) \
                         STORE(48, t4, t5, t6, ra) \
                         SAVED(lw) \
                         "addi sp, sp, 64\n" \
                         "ret\n"); \
    }

MULTIPLY4(multiply4, 32768)
MULTIPLY4(multiply4_wide, -32769)
/* clang-format on */

#else

static void multiply4_by(const int32_t *x, const mur_rv_channel *four, const int8_t *end,
                         int32_t *sums, uint32_t round)
{
    const int8_t *start = (const int8_t *)(four + MUR_RV_CHANNELS);

    for (int32_t i = 0; i < MUR_RV_CHANNELS; i++, four++)
        for (int32_t pair = 0; pair < 2; pair++) {
            uint32_t s = 0;
            int32_t t = 0, k = pair;

            for (const int8_t *w = start + i; w < end; w += 8, k += 4) {
                uint32_t p = (uint32_t)x[k] * (uint32_t)w[0] + (uint32_t)x[k + 2] * (uint32_t)w[4];

                s += p;
                t += mur_asr((int32_t)(p + round), 16);
            }
            *sums++ = (int32_t)((uint32_t)four->bias + s - ((uint32_t)t << 16));
            *sums++ = four->bias + t;
        }
}

static void multiply4(const int32_t *x, const mur_rv_channel *four, const int8_t *end,
                      int32_t *sums)
{
    multiply4_by(x, four, end, sums, 32768);
}

static void multiply4_wide(const int32_t *x, const mur_rv_channel *four, const int8_t *end,
                           int32_t *sums)
{
    multiply4_by(x, four, end, sums, (uint32_t)-32769);
}

#endif

static void multiply1(const int8_t *x, const mur_rv_channel *four, const int8_t *end, int32_t *sums)
{
    const int8_t *w = (const int8_t *)(four + MUR_RV_CHANNELS);
    int32_t a = four[0].bias, b = four[1].bias, c = four[2].bias, d = four[3].bias;

    for (; w != end; w += 8, x += 2) {
        int32_t x0 = x[0], x1 = x[1];

        a += x0 * w[0], b += x0 * w[1], c += x0 * w[2], d += x0 * w[3];
        a += x1 * w[4], b += x1 * w[5], c += x1 * w[6], d += x1 * w[7];
    }
    sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
}

/* takes the weights' zero point times a pixel's inputs, of a group, from its sums of four channels
 */
static __attribute__((noinline)) void correct(const conv_job *job, int32_t pixels, const void *x,
                                              int32_t *sums)
{
    int32_t inputs = mur_rv_inputs(job->layer);

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

/* what mur_rv_conv_wide_s8's t lack: 1 for each two inputs */
static void widen(int32_t *sums, int32_t inputs)
{
    for (int32_t i = 0; i < MUR_RV_CHANNELS * MUR_RV_PIXELS; i += 2) {
        sums[i] = (int32_t)((uint32_t)sums[i] - ((uint32_t)inputs << 15));
        sums[i + 1] += inputs >> 1;
    }
}

/* one or four pixels, gathered, to all output channels */
static inline __attribute__((always_inline)) void multiply(const conv_job *job, int32_t pixels,
                                                           int32_t wide, int8_t *out)
{
    const mur_conv_s8 *layer = job->layer;
    int32_t inputs = job->inputs, channels = layer->shape.out_c / layer->shape.groups;
    const int8_t *w = (const int8_t *)layer->packed + sizeof(mur_rv_head);
    int32_t sums[MUR_RV_CHANNELS * MUR_RV_PIXELS];

    for (int32_t group = 0; group < layer->shape.groups; group++)
        for (int32_t c = 0; c < channels; c += MUR_RV_CHANNELS) {
            const mur_rv_channel *four = (const void *)w;
            const int32_t *sum = sums;
            const void *x = pixels == 1 ? (const void *)((const int8_t *)job->x + group * inputs)
                                        : (const int32_t *)job->x + group * inputs * 2;

            w += MUR_RV_CHANNELS * ((int32_t)sizeof(*four) + inputs);
            if (pixels == 1)
                multiply1(x, four, w, sums);
            else if (wide)
                multiply4_wide(x, four, w, sums);
            else
                multiply4(x, four, w, sums);
            if (pixels != 1 && wide)
                widen(sums, inputs);
            if (wide && layer->weight_zero != 0)
                correct(job, pixels, x, sums);
            for (int32_t i = c; i < c + MUR_RV_CHANNELS && i < channels; i++, sum += pixels)
                mur_rv_finish(&job->output, four++, sum, pixels, out++, layer->shape.out_c);
        }
}

static __attribute__((noinline)) void multiply_one(const conv_job *job, int8_t *out)
{
    multiply(job, 1, 0, out);
}

static __attribute__((noinline)) void multiply_four(const conv_job *job, int8_t *out)
{
    multiply(job, MUR_RV_PIXELS, 0, out);
}

static __attribute__((noinline)) void multiply_one_wide(const conv_job *job, int8_t *out)
{
    multiply(job, 1, 1, out);
}

static __attribute__((noinline)) void multiply_four_wide(const conv_job *job, int8_t *out)
{
    multiply(job, MUR_RV_PIXELS, 1, out);
}

static inline __attribute__((always_inline)) void run_row(const conv_job *job, int32_t top,
                                                          int32_t wide, int8_t *out)
{
    const mur_conv_s8 *layer = job->layer;
    int32_t left = -layer->shape.pad_left, step = layer->shape.stride_w, x = layer->shape.out_w;

    for (; x >= MUR_RV_PIXELS; x -= MUR_RV_PIXELS, left += 4 * step) {
        gather(job, job->x, 2, top, left);
        gather(job, (int32_t *)job->x + 1, 2, top, left + 2 * step);
        if (wide)
            multiply_four_wide(job, out);
        else
            multiply_four(job, out);
        out += MUR_RV_PIXELS * layer->shape.out_c;
    }
    for (; x > 0; x--, left += step, out += layer->shape.out_c) {
        gather(job, job->x, 1, top, left);
        if (wide)
            multiply_one_wide(job, out);
        else
            multiply_one(job, out);
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
    job.inputs = (mur_rv_inputs(layer) + 1) & ~1;
    job.runs = whole ? 1 : layer->shape.kernel_w;
    job.run_bytes = whole ? layer->shape.kernel_w * depth : depth;
    job.x = scratch;
    job.border[0] =
        (int8_t *)scratch + layer->shape.groups * job.inputs * mur_rv_gathered_bytes(layer);
    job.border[1] = job.border[0] + job.run_bytes;
    job.output.to = &layer->output;
    job.output.simple = (int32_t)((const mur_rv_head *)layer->packed)->simple;
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
