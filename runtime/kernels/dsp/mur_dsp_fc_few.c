/* mur_dsp_fc_few.c - fully connected layers of few inputs and few vectors: four channels at a time,
 * with weights that are halfwords, packed as those of mur_dsp_conv_few_s8. */
#include "mur_dsp_conv.h"
#include "mur_dsp_scale.h"
#include "mur_fc.h"

#if MUR_HAVE_DSP

/* four inputs and four channels */
/* clang-format off */
#define MAC16 \
    "ldrd r4, r5, [r12], #8\n" \
    "ldm lr!, {r6-r9}\n" \
    "smlad r0, r4, r6, r0\n" \
    "smlad r1, r4, r7, r1\n" \
    "smlad r2, r4, r8, r2\n" \
    "smlad r3, r4, r9, r3\n" \
    "ldm lr!, {r6-r9}\n" \
    "smlad r0, r5, r6, r0\n" \
    "smlad r1, r5, r7, r1\n" \
    "smlad r2, r5, r8, r2\n" \
    "smlad r3, r5, r9, r3\n"

/* two sums to outputs plus 128, of any size */
#define SCALE(s, t) \
    "ldm lr!, {r4, r5, r6, r7, r8, r9}\n" \
    "add r5, r5, " #s ", asr #31\n" \
    "add r8, r8, " #t ", asr #31\n" \
    "smmlar " #s ", " #s ", r4, r5\n" \
    "smmlar " #t ", " #t ", r7, r8\n" \
    "asr " #s ", " #s ", r6\n" \
    "asr " #t ", " #t ", r9\n"

/* All channels of a vector. On the stack: out, and where a run over the inputs begins in the loop of
 * four words. */
__attribute__((naked, noinline)) static void
run_channels(__attribute__((unused)) const uint32_t *x, __attribute__((unused)) const uint32_t *x_end,
             __attribute__((unused)) const uint32_t *w, __attribute__((unused)) int8_t *out)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "mov r10, r0\n"
                     "mov r11, r1\n"
                     "mov lr, r2\n"
                     "sub r4, r0, r1\n"
                     "ubfx r4, r4, #3, #2\n"
                     "adr r5, 2f + 1\n"
                     "mov r6, #44\n" /* bytes of the instructions of four inputs */
                     "mla r4, r4, r6, r5\n"
                     "push {r3, r4}\n"
                     "1: ldm lr!, {r0-r3}\n"
                     "mov r12, r10\n"
                     "ldr pc, [sp, #4]\n"
                     "2:\n"
                     MAC16
                     ".if . - 2b - 44\n"
                     ".error \"four inputs take other than 44 bytes\"\n"
                     ".endif\n"
                     MAC16
                     MAC16
                     MAC16
                     "cmp r12, r11\n"
                     "bne 2b\n"
                     SCALE(r0, r1)
                     SCALE(r2, r3)
                     "pkhbt r0, r0, r2, lsl #16\n"
                     "pkhbt r1, r1, r3, lsl #16\n"
                     "usat16 r0, #8, r0\n"
                     "usat16 r1, #8, r1\n"
                     "ldr r5, [lr], #4\n"
                     "orr r0, r0, r1, lsl #8\n"
                     "eor r0, r0, #0x80808080\n"
                     "ldr r4, [sp]\n"
                     "str r0, [r4]\n"
                     "add r4, r4, r5\n"
                     "str r4, [sp]\n"
                     "cmp r5, #0\n"
                     "bne 1b\n"
                     "add sp, sp, #8\n"
                     "pop {r4-r11, pc}\n");
}
/* clang-format on */

#else

static void run_channels(const uint32_t *x, const uint32_t *x_end, const uint32_t *w, int8_t *out)
{
    int32_t words = (int32_t)(x_end - x), next;

    do {
        const mur_dsp_tap_scale *scale = (const void *)(w + 4 + 4 * words);

        for (int32_t c = 0; c < 4; c++, scale++) {
            int32_t sum = (int32_t)w[c];

            for (int32_t k = 0; k < words; k++)
                sum = mur_smlad(x[k], w[4 + 4 * k + c], sum);
            out[c] = mur_dsp_scale_few(sum, scale);
        }
        w = (const void *)scale;
        next = (int32_t)*w++;
        out += next;
    } while (next != 0);
}

#endif

/* a vector's inputs; returns their end, which a word of any may be ahead of */
static uint32_t *widen(const int8_t *in, int32_t inputs, uint32_t *x)
{
    int8_t last[4] = { 0, 0, 0, 0 };

    for (; inputs > 3; inputs -= 4, in += 4, x += 2) {
        x[0] = mur_sxtb16(mur_four(in));
        x[1] = mur_sxtb16_odd(mur_four(in));
    }
    if (inputs == 0)
        return x;
    for (int32_t i = 0; i < inputs; i++)
        last[i] = in[i];
    x[0] = mur_sxtb16(mur_four(last));
    x[1] = mur_sxtb16_odd(mur_four(last));
    return x + 2;
}

void mur_dsp_fc_few_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    int32_t inputs = layer->shape.in_c, channels = layer->shape.out_c;

    for (int32_t i = 0; i < mur_fc_rows(&layer->shape); i++, in += inputs, out += channels) {
        run_channels(scratch, widen(in, inputs, scratch), layer->packed, out);
        mur_dsp_clamp_bytes(&layer->output, channels, out);
    }
}
