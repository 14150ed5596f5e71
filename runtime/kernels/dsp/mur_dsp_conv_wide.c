/* mur_dsp_conv_wide.c - convolutions whose sums or requantization mur_dsp_conv_s8 does not hold.
 * Sums take both unpacking instructions and leave the inner loop as int32; any requantization
 * follows. */
#include "mur_dsp_window.h"
#include "mur_nn_arith.h"

/* Two channels' sums of four pixels. The order of members is the assembly's. */
typedef struct sums_of_four {
    const uint32_t *x, *x_end; /* pairs of inputs of four pixels by turns; a multiple of 4 inputs */
    const uint32_t *w;         /* a word for two inputs: their weights of a in bytes 0 and 2 */
    int32_t *sums;             /* [2][4] */
} sums_of_four;

#if MUR_HAVE_DSP

/* two inputs of four pixels and two channels */
#define MAC8 \
    "ldr r10, [lr], #4\n" \
    "ldrd r8, r9, [r12], #8\n" \
    "sxtb16 r11, r10\n" \
    "sxtb16 r10, r10, ror #8\n" \
    "smlad r0, r8, r11, r0\n" \
    "smlad r4, r8, r10, r4\n" \
    "smlad r1, r9, r11, r1\n" \
    "smlad r5, r9, r10, r5\n" \
    "ldrd r8, r9, [r12], #8\n" \
    "smlad r2, r8, r11, r2\n" \
    "smlad r6, r8, r10, r6\n" \
    "smlad r3, r9, r11, r3\n" \
    "smlad r7, r9, r10, r7\n"

/* clang-format off */
__attribute__((naked, noinline)) static void sum4(__attribute__((unused)) const sums_of_four *run)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "ldm r0, {r1-r4}\n"
                     "mov r12, r1\n"
                     "mov lr, r3\n"
                     "push {r2, r4}\n"
                     "mov r0, #0\n"
                     "mov r1, #0\n"
                     "mov r2, #0\n"
                     "mov r3, #0\n"
                     "mov r4, #0\n"
                     "mov r5, #0\n"
                     "mov r6, #0\n"
                     "mov r7, #0\n"
                     "1:\n"
                     MAC8
                     MAC8
                     "ldr r8, [sp]\n"
                     "cmp r12, r8\n"
                     "bne 1b\n"
                     "pop {r8, r9}\n"
                     "stm r9, {r0-r7}\n"
                     "pop {r4-r11, pc}\n");
}
/* clang-format on */

#else

static void sum4(const sums_of_four *run)
{
    for (int32_t i = 0; i < 4; i++) {
        const uint32_t *w = run->w;
        int32_t a = 0, b = 0;

        for (const uint32_t *x = run->x + i; x < run->x_end; x += 4, w++) {
            a = mur_smlad(*x, mur_sxtb16(*w), a);
            b = mur_smlad(*x, mur_sxtb16_odd(*w), b);
        }
        run->sums[i] = a;
        run->sums[4 + i] = b;
    }
}

#endif

static void sum1(const uint32_t *x, const uint32_t *x_end, const uint32_t *w, int32_t *sums)
{
    int32_t a = 0, b = 0;

    for (; x != x_end; x++, w++) {
        a = mur_smlad(*x, mur_sxtb16(*w), a);
        b = mur_smlad(*x, mur_sxtb16_odd(*w), b);
    }
    sums[0] = a;
    sums[4] = b;
}

/* the sum of a pixel's inputs, whose words are `step` apart */
static int32_t sum_of_inputs(const uint32_t *x, int32_t step, int32_t inputs)
{
    int32_t sum = 0;

    for (; inputs >= 4; inputs -= 4, x += 2 * step) {
        sum = mur_smlad(x[0], 0x10001, sum);
        sum = mur_smlad(x[step], 0x10001, sum);
    }
    if (inputs > 0) /* bytes 0 and 2, then 1 */
        sum = mur_smlad(x[0], inputs > 2 ? 0x10001 : 1, sum);
    if (inputs > 1)
        sum = mur_smlad(x[step], 1, sum);
    return sum;
}

/* what the weights' zero point takes from the sums of a group's pixels */
static void find_offsets(const mur_dsp_window *window, const uint32_t *x, int32_t pixels,
                         int32_t *offsets)
{
    const mur_conv_s8 *layer = window->layer;
    int32_t inputs = layer->shape.kernel_h * window->runs.a_row * window->runs.bytes;

    for (int32_t i = 0; i < pixels; i++)
        offsets[i] = layer->weight_zero * sum_of_inputs(x + i, pixels, inputs);
}

static __attribute__((noinline)) void subtract(const int32_t *offsets, int32_t pixels,
                                               int32_t *sums)
{
    for (int32_t i = 0; i < pixels; i++) {
        sums[i] -= offsets[i];
        sums[4 + i] -= offsets[i];
    }
}

static void multiply(const mur_dsp_window *window, int32_t pixels, int8_t *out)
{
    const mur_conv_s8 *layer = window->layer;
    const mur_dsp_wide_channel *channel = layer->packed;
    int32_t channels = layer->shape.out_c / layer->shape.groups, words = window->runs.words * 2;
    const uint32_t *w = (const uint32_t *)(const void *)(channel + layer->shape.out_c);
    const uint32_t *x = window->x;
    int32_t offsets[4];

    for (int32_t c = 0; c < layer->shape.out_c;) {
        int32_t count = c % channels + 1 < channels ? 2 : 1, sums[8];

        if (pixels == 4) {
            const sums_of_four run = { x, x + words * 4, w, sums };

            sum4(&run);
        } else {
            sum1(x, x + words, w, sums);
        }
        if (layer->weight_zero != 0) {
            if (c % channels == 0)
                find_offsets(window, x, pixels, offsets);
            subtract(offsets, pixels, sums);
        }
        for (int32_t j = 0; j < count; j++, channel++, c++)
            for (int32_t i = 0; i < pixels; i++)
                out[i * layer->shape.out_c + c] = mur_requant(
                    sums[4 * j + i] + channel->bias, channel->mul, channel->shift, &layer->output);
        w += words;
        if (c % channels == 0)
            x += words * pixels; /* the next group's inputs */
    }
}

void mur_dsp_conv_wide_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    mur_dsp_run_rows(layer, in, out, scratch, multiply);
}
