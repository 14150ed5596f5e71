/* mur_ref_conv_pairs.c - convolutions and pointwise layers in plain C, two pixels and two channels
 * at a time.
 *
 * Two neighbouring pixels a, b share a word x = a + 65536 b, so that one multiplication makes two
 * products; the sum p of two such words times weights has a's sum, of 16 bits, below b's. With s
 * the sum of all p, and t that of all (p + 32768) >> 16: b's sum is t, and a's s - 65536 t. */
#include "mur_ref.h"

#include <string.h>

typedef struct conv_job {
    const mur_conv_s8 *layer;
    const int8_t *in;
    void *x;           /* int32 [groups][inputs] of two pixels, or int8 [groups][inputs] of one */
    int32_t run_bytes; /* neighbouring bytes of a window: of a kernel row, or of one tap */
    int32_t runs;      /* in a kernel row */
    int32_t odd;       /* the number of inputs is */
    int32_t inputs;    /* of a group, rounded up to a multiple of 2 */
    int32_t channels;  /* of the output, of a group */
    mur_ref_output output;
} conv_job;

/* inputs of two pixels side by side to words; returns the next */
static inline int32_t *put_pair(int32_t *x, const int8_t *a, const int8_t *b, int32_t count)
{
    const int8_t *end = a + (count & ~1);

    for (; a != end; a += 2, b += 2, x += 2) {
        x[0] = a[0] + b[0] * 65536;
        x[1] = a[1] + b[1] * 65536;
    }
    if (count & 1)
        *x++ = *a + *b * 65536;
    return x;
}

/* one that is beside the image */
static int32_t *put_half(int32_t *x, const int8_t *a, int32_t a_zero, const int8_t *b,
                         int32_t b_zero, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        *x++ = (a ? a[i] : a_zero) + (b ? b[i] : b_zero) * 65536;
    return x;
}

/* where the inputs of a tap lie, or NULL beside the image */
static const int8_t *find_tap(const conv_job *job, int32_t row, int32_t column, int32_t first)
{
    const mur_conv_shape *s = &job->layer->shape;

    if (row < 0 || row >= s->in_h || column < 0 || column >= s->in_w)
        return NULL;
    return job->in + row * s->in_pitch + column * s->in_c + first;
}

/* two pixels whose windows begin at (top, left), and a stride behind */
static __attribute__((noinline)) void gather_two(const conv_job *job, int32_t top, int32_t left)
{
    const mur_conv_shape *s = &job->layer->shape;
    int32_t depth = s->in_c / s->groups, stride = s->stride_w, zero = job->layer->in_zero;
    int32_t inside = top >= 0 && top + (s->kernel_h - 1) * s->dilation_h < s->in_h && left >= 0 &&
                     left + stride + (s->kernel_w - 1) * s->dilation_w < s->in_w;
    int32_t *x = job->x;

    for (int32_t first = 0; first < s->in_c; first += depth) {
        if (inside) { /* run by run */
            const int8_t *row = job->in + top * s->in_pitch + left * s->in_c + first;

            for (int32_t i = s->kernel_h; i > 0; i--, row += s->dilation_h * s->in_pitch) {
                const int8_t *a = row;

                for (int32_t j = job->runs; j > 0; j--, a += s->dilation_w * s->in_c)
                    x = put_pair(x, a, a + stride * s->in_c, job->run_bytes);
            }
        } else {
            for (int32_t i = 0; i < s->kernel_h; i++)
                for (int32_t j = 0; j < s->kernel_w; j++) {
                    int32_t row = top + i * s->dilation_h, column = left + j * s->dilation_w;
                    const int8_t *a = find_tap(job, row, column, first);
                    const int8_t *b = find_tap(job, row, column + stride, first);

                    x = a && b ? put_pair(x, a, b, depth) : put_half(x, a, zero, b, zero, depth);
                }
        }
        if (job->odd) /* its weight is 0 */
            *x++ = 0;
    }
}

/* two pixels that lie side by side, of one group */
static inline void gather_neighbours(const conv_job *job, const int8_t *a)
{
    int32_t depth = job->layer->shape.in_c;
    int32_t *x = put_pair(job->x, a, a + depth, depth);

    if (job->odd)
        *x = 0;
}

static __attribute__((noinline)) void gather_one(const conv_job *job, int32_t top, int32_t left)
{
    const mur_conv_shape *s = &job->layer->shape;
    int32_t depth = s->in_c / s->groups;
    int8_t *x = job->x;

    for (int32_t first = 0; first < s->in_c; first += depth) {
        for (int32_t i = 0; i < s->kernel_h; i++)
            for (int32_t j = 0; j < s->kernel_w; j++, x += depth) {
                const int8_t *a =
                    find_tap(job, top + i * s->dilation_h, left + j * s->dilation_w, first);

                if (a)
                    memcpy(x, a, (size_t)depth);
                else
                    memset(x, job->layer->in_zero, (size_t)depth);
            }
        if (job->odd)
            *x++ = 0;
    }
}

/* Adds to s and t of two channels, sums [channel][s, t], what inputs x and weights from w to `end`
 * give. Where the carry of a shift does not round, 32768 is in every p, and so in s. */
#if defined(__thumb__) && !defined(__thumb2__)

/* clang-format off */
__attribute__((naked, noinline)) static void sum_pair(
    __attribute__((unused)) const int32_t *x, __attribute__((unused)) const int8_t *w,
    __attribute__((unused)) const int8_t *end, __attribute__((unused)) int32_t *sums)
{
    __asm__ volatile(".syntax unified\n"
                     "push {r3-r7, lr}\n"
                     "mov r4, r8\n"
                     "mov r5, r9\n"
                     "mov r6, r10\n"
                     "push {r4-r6}\n"
                     "mov r12, r2\n"
                     "ldr r4, [r3]\n"
                     "ldr r2, [r3, #4]\n" /* t of the first channel */
                     "ldr r5, [r3, #8]\n"
                     "ldr r6, [r3, #12]\n"
                     "mov r8, r4\n"  /* s of the first */
                     "mov r9, r5\n"  /* s of the second */
                     "mov r10, r6\n" /* t of the second */
                     "movs r4, #128\n"
                     "lsls r4, r4, #8\n"
                     "mov lr, r4\n"
                     "1: ldm r0!, {r3, r4}\n"
                     "ldm r1!, {r5}\n"
                     "sxtb r6, r5\n"
                     "muls r6, r3, r6\n"
                     "asrs r7, r5, #16\n"
                     "sxtb r7, r7\n"
                     "muls r7, r4, r7\n"
                     "adds r6, r6, r7\n"
                     "add r8, r6\n"
                     "asrs r6, r6, #16\n"
                     "adcs r2, r6\n" /* the carry rounds */
                     "asrs r6, r5, #8\n"
                     "sxtb r6, r6\n"
                     "muls r6, r3, r6\n"
                     "asrs r5, r5, #24\n"
                     "muls r5, r4, r5\n"
                     "adds r5, r5, r6\n"
                     "add r9, r5\n"
                     "add r5, lr\n"
                     "asrs r5, r5, #16\n"
                     "add r10, r5\n"
                     "cmp r1, r12\n"
                     "bne 1b\n"
                     "ldr r3, [sp, #12]\n"
                     "mov r4, r8\n"
                     "mov r5, r9\n"
                     "mov r6, r10\n"
                     "str r4, [r3]\n"
                     "str r2, [r3, #4]\n"
                     "str r5, [r3, #8]\n"
                     "str r6, [r3, #12]\n"
                     "pop {r4-r6}\n"
                     "mov r8, r4\n"
                     "mov r9, r5\n"
                     "mov r10, r6\n"
                     "pop {r3-r7, pc}\n");
}
/* clang-format on */

enum { IN_EVERY_SUM = 0 };

#elif defined(__thumb2__)

#define SUM_PAIR \
    "ldrd %[x0], %[x1], [%[x]], #8\n" \
    "ldrsb %[p], [%[w]], #4\n" \
    "ldrsb %[q], [%[w], #-2]\n" \
    "mla %[p], %[x0], %[p], %[round]\n" \
    "mla %[p], %[x1], %[q], %[p]\n" \
    "ldrsb %[q], [%[w], #-3]\n" \
    "add %[s0], %[s0], %[p]\n" \
    "add %[t0], %[t0], %[p], asr #16\n" \
    "ldrsb %[p], [%[w], #-1]\n" \
    "mla %[q], %[x0], %[q], %[round]\n" \
    "mla %[q], %[x1], %[p], %[q]\n" \
    "add %[s1], %[s1], %[q]\n" \
    "add %[t1], %[t1], %[q], asr #16\n"

static inline void sum_pair(const int32_t *x, const int8_t *w, const int8_t *end, int32_t *sums)
{
    int32_t s0 = sums[0], t0 = sums[1], s1 = sums[2], t1 = sums[3], x0, x1, p, q;

    __asm__("tst %[inputs], #2\n"
            "bne 2f\n"
            "1: " SUM_PAIR "2: " SUM_PAIR "cmp %[w], %[end]\n"
            "bne 1b\n"
            : [x] "+r"(x), [w] "+r"(w), [s0] "+r"(s0), [t0] "+r"(t0), [s1] "+r"(s1), [t1] "+r"(t1),
              [x0] "=&r"(x0), [x1] "=&r"(x1), [p] "=&r"(p), [q] "=&r"(q)
            : [end] "r"(end), [inputs] "r"((end - w) / 2), [round] "r"(32768)
            : "cc", "memory");
    sums[0] = s0, sums[1] = t0, sums[2] = s1, sums[3] = t1;
}

enum { IN_EVERY_SUM = 1 };

#else

static inline void sum_pair(const int32_t *x, const int8_t *w, const int8_t *end, int32_t *sums)
{
    uint32_t s0 = (uint32_t)sums[0], s1 = (uint32_t)sums[2];

    for (; w != end; w += 4, x += 2) {
        uint32_t x0 = (uint32_t)x[0], x1 = (uint32_t)x[1];
        int32_t w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
        uint32_t p = 32768 + x0 * (uint32_t)w0 + x1 * (uint32_t)w2;
        uint32_t q = 32768 + x0 * (uint32_t)w1 + x1 * (uint32_t)w3;

        s0 += p;
        sums[1] += mur_asr((int32_t)p, 16);
        s1 += q;
        sums[3] += mur_asr((int32_t)q, 16);
    }
    sums[0] = (int32_t)s0, sums[2] = (int32_t)s1;
}

enum { IN_EVERY_SUM = 1 };

#endif

/* the outputs of two pixels, whose sums of a channel are side by side */
static inline __attribute__((always_inline)) void
finish_two(const conv_job *job, const mur_ref_channel *channel, const int32_t *sums, int8_t *out)
{
    int32_t step = job->layer->shape.out_c;

    if (job->output.simple) {
        const mur_ref_scale s = mur_ref_scale_of(&job->output, channel->mul, channel->shift);

        out[0] = (int8_t)mur_ref_byte(&job->output, s, sums[0]);
        out[step] = (int8_t)mur_ref_byte(&job->output, s, sums[1]);
    } else {
        out[0] = mur_requant(sums[0], channel->mul, channel->shift, job->output.to);
        out[step] = mur_requant(sums[1], channel->mul, channel->shift, job->output.to);
    }
}

/* two pixels, gathered, to the channels of a group; returns what is packed for the next */
static __attribute__((noinline)) const uint8_t *
multiply_two(const conv_job *job, const uint8_t *packed, const int32_t *x, int8_t *out)
{
    int32_t inputs = job->inputs;
    uint32_t rounds = IN_EVERY_SUM ? (uint32_t)inputs << 14 : 0;

    for (int32_t left = job->channels; left > 0; left -= 2, out += 2) {
        const mur_ref_channel *two = (const void *)packed;
        const int8_t *w = (const int8_t *)(two + 2);
        int32_t sums[4];

        sums[1] = two[0].bias;
        sums[3] = two[1].bias;
        sums[0] = (int32_t)((uint32_t)sums[1] * 65537u - rounds);
        sums[2] = (int32_t)((uint32_t)sums[3] * 65537u - rounds);
        packed = (const uint8_t *)w + 2 * inputs;
        sum_pair(x, w, (const int8_t *)packed, sums);
        sums[0] = (int32_t)((uint32_t)sums[0] - ((uint32_t)sums[1] << 16));
        finish_two(job, &two[0], sums, out);
        if (left > 1) {
            sums[2] = (int32_t)((uint32_t)sums[2] - ((uint32_t)sums[3] << 16));
            finish_two(job, &two[1], sums + 2, out + 1);
        }
    }
    return packed;
}

static __attribute__((noinline)) const uint8_t *
multiply_one(const conv_job *job, const uint8_t *packed, const int8_t *x, int8_t *out)
{
    for (int32_t left = job->channels; left > 0; left -= 2, out += 2) {
        const mur_ref_channel *two = (const void *)packed;
        const int8_t *w = (const int8_t *)(two + 2), *p = x;
        int32_t a = two[0].bias, b = two[1].bias;

        packed = (const uint8_t *)w + 2 * job->inputs;
        for (const int8_t *end = (const int8_t *)packed; w != end; w += 4, p += 2) {
            int32_t x0 = p[0], x1 = p[1];

            a += x0 * w[0], b += x0 * w[1];
            a += x1 * w[2], b += x1 * w[3];
        }
        mur_ref_finish(&job->output, &two[0], &a, 1, out, 1);
        if (left > 1)
            mur_ref_finish(&job->output, &two[1], &b, 1, out + 1, 1);
    }
    return packed;
}

/* one or two pixels, gathered, to all output channels */
static void multiply(const conv_job *job, int32_t pixels, int8_t *out)
{
    const uint8_t *packed = (const uint8_t *)job->layer->packed + sizeof(mur_ref_head);
    const int8_t *one = job->x;
    const int32_t *two = job->x;

    for (int32_t group = job->layer->shape.groups; group > 0; group--, out += job->channels)
        if (pixels == 2) {
            packed = multiply_two(job, packed, two, out);
            two += job->inputs;
        } else {
            packed = multiply_one(job, packed, one, out);
            one += job->inputs;
        }
}

void mur_ref_conv_pairs_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t whole = s->groups == 1 && s->dilation_w == 1, depth = s->in_c / s->groups;
    int32_t pointwise = s->kernel_h == 1 && s->kernel_w == 1 && s->groups == 1 && s->pad_top == 0 &&
                        s->pad_left == 0 && s->stride_w == 1 && s->out_w <= s->in_w &&
                        (s->out_h - 1) * s->stride_h < s->in_h;
    conv_job job;

    job.layer = layer;
    job.in = in;
    job.x = scratch;
    job.runs = whole ? 1 : s->kernel_w;
    job.run_bytes = whole ? s->kernel_w * depth : depth;
    job.odd = mur_ref_inputs(layer) & 1;
    job.inputs = mur_ref_inputs(layer) + job.odd;
    job.channels = s->out_c / s->groups;
    job.output = mur_ref_output_of(&layer->output, ((const mur_ref_head *)layer->packed)->simple);
    for (int32_t y = 0; y < s->out_h; y++) {
        int32_t top = y * s->stride_h - s->pad_top, left = -s->pad_left, x = s->out_w;
        int8_t *to = out + y * s->out_pitch;

        while (x > 0) {
            int32_t pixels = x > 1 ? 2 : 1;

            if (pixels == 2 && pointwise)
                gather_neighbours(&job, in + top * s->in_pitch + left * s->in_c);
            else if (pixels == 2)
                gather_two(&job, top, left);
            else
                gather_one(&job, top, left);
            multiply(&job, pixels, to);
            x -= pixels;
            left += pixels * s->stride_w;
            to += pixels * s->out_c;
        }
    }
}
