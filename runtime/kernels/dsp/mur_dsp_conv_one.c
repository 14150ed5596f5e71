/* mur_dsp_conv_one.c - pointwise layers of one input channel. An output depends on one byte, and is
 * nearly a line of it: the upper half of offset + factor x 2^8 / 2^16, clamped to 8 bits, is what
 * the layer's arithmetic gives, but for a byte here and there, where halves are rounded away from
 * zero. The host finds the lines and these bytes (pack_dsp_one.c).
 *
 * Weights: for each four channels their factors and offsets by turns; the last four end with the
 * last channel, and may have some of those before again; then what lines miss. Inputs come by twos,
 * in the upper bytes of a word's halves. */
#include "mur_dsp_one.h"

enum { CHUNK = 32 }; /* pixels whose inputs are read ahead of their outputs */

#if MUR_HAVE_DSP

/* four channels of a pixel, whose input is half `h` of r8, to bytes of r9 */
/* clang-format off */
#define LINES(h) \
    "smlaw" #h " r9, r0, r8, r1\n" \
    "smlaw" #h " r10, r4, r8, r5\n" \
    "smlaw" #h " r11, r2, r8, r3\n" \
    "pkhtb r9, r10, r9, asr #16\n" \
    "smlaw" #h " r10, r6, r8, r7\n" \
    "usat16 r9, #8, r9\n" \
    "pkhtb r11, r10, r11, asr #16\n" \
    "usat16 r11, #8, r11\n" \
    "orr r9, r9, r11, lsl #8\n" \
    "eor r9, r9, #0x80808080\n"

/* Four channels of pixels by twos, the second `step` behind the first. Offsets are those of
 * outputs 128 greater. */
__attribute__((naked, noinline)) static void
run_lines(__attribute__((unused)) const uint32_t *x, __attribute__((unused)) const uint32_t *x_end,
          __attribute__((unused)) const int32_t *w, __attribute__((unused)) int8_t *out,
          __attribute__((unused)) int32_t step)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "ldr r4, [sp, #36]\n"
                     "push {r1, r4}\n"
                     "mov r12, r0\n"
                     "mov lr, r3\n"
                     "ldm r2, {r0-r7}\n"
                     "1: ldr r8, [r12], #4\n"
                     LINES(b)
                     "str r9, [lr]\n"
                     LINES(t)
                     "ldrd r10, r11, [sp]\n"
                     "str r9, [lr, r11]\n"
                     "add lr, lr, r11, lsl #1\n"
                     "cmp r12, r10\n"
                     "bne 1b\n"
                     "add sp, sp, #8\n"
                     "pop {r4-r11, pc}\n");
}
/* clang-format on */

#else

static void run_lines(const uint32_t *x, const uint32_t *x_end, const int32_t *w, int8_t *out,
                      int32_t step)
{
    for (; x != x_end; x++, out += 2 * step)
        for (int32_t i = 0; i < 8; i++) { /* four channels of a pixel, then of the next */
            int32_t half = (int16_t)(*x >> (i & 4) * 4), c = i & 3;
            int32_t y = w[2 * c + 1] + (int32_t)(((int64_t)w[2 * c] * half) >> 16);

            out[(i >> 2) * step + c] = (int8_t)(mur_clamp(mur_asr(y, 16), 0, 255) - 128);
        }
}

#endif

static uint32_t input_of(const uint32_t *x, int32_t pixel)
{
    return x[pixel >> 1] >> (pixel & 1 ? 24 : 8) & 0xff;
}

/* what the lines miss of so many pixels, whose words are followed by one more */
static void mend(const mur_dsp_one_miss *miss, const uint32_t *x, int32_t pixels, int32_t channels,
                 int8_t *out)
{
    for (; miss->add != 0; miss++) {
        const uint32_t ones = 0x01010101, all = miss->x * ones;

        for (int32_t first = 0; first < pixels; first += 4) {
            uint32_t four = (x[first >> 1] >> 8 | x[(first >> 1) + 1]) ^ all;

            if (((four - ones) & ~four & ones << 7) == 0) /* no byte is 0 */
                continue;
            for (int32_t i = first; i < first + 4 && i < pixels; i++)
                if (input_of(x, i) == miss->x)
                    out[i * channels + miss->channel] =
                        (int8_t)(out[i * channels + miss->channel] + miss->add);
        }
    }
}

/* pixels of a row, no more than CHUNK */
static void run_chunk(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, int32_t pixels)
{
    int32_t channels = layer->shape.out_c, pairs = pixels >> 1;
    const int32_t *w = layer->packed;
    uint32_t x[CHUNK / 2 + 1];

    for (int32_t i = 0; i < pixels; i += 2) /* of a last one alone both halves are the same */
        x[i >> 1] = (uint32_t)(uint8_t)in[i] << 8 | (uint32_t)(uint8_t)in[i + (i + 1 < pixels)]
                                                        << 24;
    x[(pixels + 1) >> 1] = 0;
    for (int32_t c = 0; c < channels; c += 4, w += 8) {
        int8_t *to = out + (c + 4 > channels ? channels - 4 : c);

        if (pairs > 0)
            run_lines(x, x + pairs, w, to, channels);
        if (pixels & 1)
            run_lines(x + pairs, x + pairs + 1, w, to + 2 * pairs * channels, 0);
    }
    mend((const mur_dsp_one_miss *)(const void *)w, x, pixels, channels, out);
}

void mur_dsp_conv_one_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    const mur_conv_shape *s = &layer->shape;

    (void)scratch;
    for (int32_t y = 0; y < s->out_h; y++)
        for (int32_t i = 0; i < s->out_w; i += CHUNK) {
            int8_t *to = out + y * s->out_pitch + i * s->out_c;
            int32_t left = s->out_w - i, pixels = left < CHUNK ? left : CHUNK;

            run_chunk(layer, in + y * s->in_pitch + i, to, pixels);
            mur_dsp_clamp_bytes(&layer->output, pixels * s->out_c, to);
        }
}
