/* mur_dsp_fc.c - fully connected layers with one multiplier for all channels: vectors of inputs,
 * one at a time, by pairs of channels in the form of mur_dsp_sums.h. */
#include "mur_dsp_fc.h"

#include "mur_dsp_sums.h"

/* The order of members is the assembly's. */
typedef struct product {
    const uint32_t *x, *x_end; /* pairs of inputs, a multiple of 4 */
    const uint32_t *w,
        *w_end; /* for each pair of channels: bias a, 256 * bias b + bias a, weights */
    int8_t *out;
    int32_t mul, shift; /* twice the multiplier, modulo 2^32; to the right */
    int32_t zero;
} product;

#if MUR_HAVE_DSP

/* r0: sum of a; r1: of 256 b + a; r12: x, r11: its end; lr: w. On the stack a copy of *product. */
/* clang-format off */
__attribute__((naked, noinline)) static void
multiply(__attribute__((unused)) const product *p)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "ldm r0, {r1-r8}\n"
                     "push {r1-r8}\n"
                     "mov lr, r3\n"
                     "mov r11, r2\n"
                     "1: ldrd r0, r1, [lr], #8\n"
                     "ldr r12, [sp]\n"
                     "2: ldm r12!, {r2-r5}\n"
                     "ldm lr!, {r6-r9}\n"
                     MUR_DSP_MAC2(r2, r6)
                     MUR_DSP_MAC2(r3, r7)
                     MUR_DSP_MAC2(r4, r8)
                     MUR_DSP_MAC2(r5, r9)
                     "cmp r12, r11\n"
                     "bne 2b\n"
                     "ldr r12, [sp, #16]\n"
                     "ldrd r2, r3, [sp, #20]\n"
                     "ldr r8, [sp, #28]\n"
                     "sub r1, r1, r0\n"
                     "asr r1, r1, #8\n"
                     MUR_DSP_REQUANT(r0, r2, r3, r8)
                     MUR_DSP_REQUANT(r1, r2, r3, r8)
                     "ldr r6, [sp, #12]\n"
                     "bfi r0, r1, #8, #8\n"
                     "strh r0, [r12], #2\n"
                     "str r12, [sp, #16]\n"
                     "cmp lr, r6\n"
                     "bne 1b\n"
                     "add sp, sp, #32\n"
                     "pop {r4-r11, pc}\n");
}
/* clang-format on */

#else

static void multiply(const product *v)
{
    const uint32_t mul = (uint32_t)v->mul, shift = (uint32_t)v->shift;
    int8_t *out = v->out;

    for (const uint32_t *w = v->w; w != v->w_end;) {
        int32_t a = (int32_t)w[0], b = (int32_t)w[1];

        w += 2;
        for (const uint32_t *x = v->x; x != v->x_end; x++, w++) {
            a = mur_smlad(*x, mur_sxtb16(*w), a);
            b = mur_smlad(*x, *w, b);
        }
        b = (int32_t)((uint32_t)b - (uint32_t)a);
        *out++ = mur_dsp_output(a, mul, shift, v->zero);
        *out++ = mur_dsp_output(mur_asr(b, 8), mul, shift, v->zero);
    }
}

#endif

static void widen(uint32_t *x, uint32_t *x_end, const int8_t *from, int32_t count)
{
    for (; count >= 4; count -= 4, from += 4) {
        uint32_t four = mur_four(from);

        *x++ = mur_sxtb16(four);
        *x++ = mur_sxtb16_odd(four);
    }
    if (count > 0) {
        uint32_t four = 0;

        while (count-- > 0)
            four |= (uint32_t)(uint8_t)from[count] << (8 * count);
        *x++ = mur_sxtb16(four);
        *x++ = mur_sxtb16_odd(four);
    }
    while (x != x_end)
        *x++ = 0;
}

void mur_dsp_fc_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    const mur_dsp_fc *packed = layer->packed;
    int32_t x_words = mur_dsp_fc_words(layer), pairs = layer->shape.out_c >> 1;
    uint32_t *x = scratch;
    product v;

    v.x = x;
    v.x_end = x + x_words;
    v.mul = packed->mul;
    v.shift = packed->shift;
    v.zero = layer->output.zero;
    for (int32_t i = 0; i < layer->shape.in_w; i++, in += layer->shape.in_c) {
        widen(x, x + x_words, in, layer->shape.in_c);
        v.w = (const uint32_t *)(const void *)(packed + 1);
        v.w_end = v.w + pairs * (2 + x_words);
        v.out = out;
        if (pairs != 0)
            multiply(&v);
        if (layer->shape.out_c & 1) {
            int8_t last[2];

            v.w = v.w_end;
            v.w_end = v.w + 2 + x_words;
            v.out = last;
            multiply(&v);
            out[layer->shape.out_c - 1] = last[0];
        }
        for (int32_t c = 0; c < layer->shape.out_c; c++, out++)
            *out = (int8_t)(*out < layer->output.min   ? layer->output.min
                            : *out > layer->output.max ? layer->output.max
                                                       : *out);
    }
}
