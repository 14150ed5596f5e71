/* mur_dsp_fc.c - fully connected layers of few vectors: four channels at a time, as two pairs in
 * the form of mur_dsp_sums.h, share each input's widening.
 *
 * Weights: for each four channels, for four inputs, bytes 0 and 2 of the first pair, 1 and 3, then
 * of the second pair; of the last one or two channels of the first pair alone. If inputs are left
 * behind the last word, one more word ends with them, and its first inputs, which have had their
 * products, have weights of 0. */
#include "mur_dsp_sums.h"
#include "mur_fc.h"

enum { WORDS = 127 }; /* of four inputs: b's sums over so many have 24 bits */

/* Products of words of inputs with one or two pairs, added to sums; returns the next weights. */
static const uint32_t *add_words(const int8_t *x, int32_t words, const uint32_t *w, int32_t pairs,
                                 int32_t *sums)
{
    int32_t a[2] = { 0, 0 }, b[2] = { 0, 0 };

    for (; words > 0; words--, x += 4) {
        uint32_t four = mur_four(x), even = mur_sxtb16(four), odd = mur_sxtb16_odd(four);

        for (int32_t i = 0; i < pairs; i++, w += 2) {
            a[i] = mur_smlad(odd, mur_sxtb16(w[1]), mur_smlad(even, mur_sxtb16(w[0]), a[i]));
            b[i] = mur_smlad(odd, w[1], mur_smlad(even, w[0], b[i])); /* of 256 b + a */
        }
    }
    for (int32_t i = 0; i < pairs; i++, sums += 2) {
        sums[0] = (int32_t)((uint32_t)sums[0] + (uint32_t)a[i]);
        sums[1] += mur_asr((int32_t)((uint32_t)b[i] - (uint32_t)a[i]), 8);
    }
    return w;
}

#if MUR_HAVE_DSP

/* four inputs and four channels */
#define MAC16 \
    "ldr r9, [r10], #4\n" \
    "ldm r12!, {r4-r7}\n" \
    "sxtb16 r8, r9\n" \
    "sxtb16 r9, r9, ror #8\n" \
    "smlad r1, r8, r4, r1\n" \
    "sxtb16 r4, r4\n" \
    "smlad r3, r8, r6, r3\n" \
    "sxtb16 r6, r6\n" \
    "smlad r0, r8, r4, r0\n" \
    "smlad r2, r8, r6, r2\n" \
    "smlad r1, r9, r5, r1\n" \
    "sxtb16 r5, r5\n" \
    "smlad r3, r9, r7, r3\n" \
    "sxtb16 r7, r7\n" \
    "smlad r0, r9, r5, r0\n" \
    "smlad r2, r9, r7, r2\n"

/* The same of two pairs, and of all inputs ahead of x_end: one word or more, and what is left. */
/* clang-format off */
__attribute__((naked, noinline)) static const uint32_t *
add_fours(__attribute__((unused)) const int8_t *x, __attribute__((unused)) const int8_t *x_end,
          __attribute__((unused)) const uint32_t *w, __attribute__((unused)) int32_t *sums)
{
    __asm__ volatile("push {r3-r11, lr}\n"
                     "sub r4, r1, r0\n"
                     "mov r10, r0\n"
                     "bic r11, r4, #3\n"
                     "add r11, r11, r0\n"
                     "mov lr, r1\n"
                     "mov r12, r2\n"
                     "mov r0, #0\n"
                     "mov r1, #0\n"
                     "mov r2, #0\n"
                     "mov r3, #0\n"
                     "tst r4, #4\n"
                     "bne 2f\n"
                     "1:\n"
                     MAC16
                     "2:\n"
                     MAC16
                     "cmp r10, r11\n"
                     "bne 1b\n"
                     "cmp r11, lr\n"
                     "itt ne\n"
                     "subne r10, lr, #4\n"
                     "movne r11, lr\n"
                     "bne 2b\n"
                     "pop {r8}\n"
                     "ldm r8, {r4-r7}\n"
                     "sub r1, r1, r0\n"
                     "sub r3, r3, r2\n"
                     "add r4, r4, r0\n"
                     "add r5, r5, r1, asr #8\n"
                     "add r6, r6, r2\n"
                     "add r7, r7, r3, asr #8\n"
                     "stm r8, {r4-r7}\n"
                     "mov r0, r12\n"
                     "pop {r4-r11, pc}\n");
}
/* clang-format on */

#else

static const uint32_t *add_fours(const int8_t *x, const int8_t *x_end, const uint32_t *w,
                                 int32_t *sums)
{
    int32_t inputs = (int32_t)(x_end - x);

    w = add_words(x, inputs >> 2, w, 2, sums);
    return inputs & 3 ? add_words(x_end - 4, 1, w, 2, sums) : w;
}

#endif

/* the same of any number of inputs and one or two pairs: few channels or inputs */
static __attribute__((noinline, cold)) const uint32_t *
add_few(const int8_t *x, int32_t inputs, const uint32_t *w, int32_t pairs, int32_t *sums)
{
    const int8_t *end = x + inputs;
    int32_t words = inputs >> 2, rest = inputs & 3;
    int8_t last[4] = { 0, 0, 0, 0 };

    w = add_words(x, words, w, pairs, sums);
    if (rest == 0)
        return w;
    for (int32_t i = 0; words == 0 && i < rest; i++)
        last[i] = x[i];
    return add_words(words == 0 ? last : end - 4, 1, w, pairs, sums);
}

/* a sum to an int8 by a multiplier below 1/2 */
static inline int32_t output(int32_t sum, int32_t mul, int32_t shift, int32_t zero)
{
#if MUR_HAVE_DSP
    uint32_t twice = 2 * (uint32_t)mul;

    /* clang-format off */
    __asm__(MUR_DSP_REQUANT(%0, %1, %2, %3)
            : "+r"(sum)
            : "r"(twice), "r"(shift), "r"(zero)
            : "cc");
    /* clang-format on */
    return sum;
#else
    return mur_dsp_output(sum, 2 * (uint32_t)mul, (uint32_t)shift, zero);
#endif
}

static void clamp(int8_t *out, int32_t count, const mur_output_s8 *to)
{
    for (; count > 0; count--, out++)
        *out = *out < to->min ? to->min : *out > to->max ? to->max : *out;
}

/* outputs of four sums, the first by the first code and, if each has one, multiplier */
static inline void put_four(const int32_t *sums, const int32_t *muls, const uint8_t *codes,
                            int32_t form, int32_t zero, int8_t *out)
{
    int32_t mul = *muls, shift = *codes / MUR_FC_MULS; /* all have them, if there is one */

#pragma GCC unroll 4
    for (int32_t i = 0; i < 4; i++) {
        if (form != MUR_FC_ONE) {
            mul = muls[form == MUR_FC_EACH ? i : codes[i] % MUR_FC_MULS];
            shift = codes[i] / MUR_FC_MULS;
        }
        out[i] = (int8_t)output(sums[i], mul, shift, zero);
    }
}

/* outputs of one vector */
static inline __attribute__((always_inline)) void
run_vector(const mur_conv_s8 *layer, const mur_fc *fc, const int8_t *in, int8_t *out, int32_t form)
{
    const uint32_t *w = (const uint32_t *)(const void *)fc->weights;
    const int32_t *bias = fc->bias, *muls = fc->mul;
    const uint8_t *codes = fc->codes;
    int32_t zero = layer->output.zero;
    int8_t last[4]; /* of fewer than four channels */

    for (int32_t channels = layer->shape.out_c; channels > 0; channels -= 4, bias += 4) {
        /* what is packed goes on behind the last bias */
        int32_t sums[4] = { bias[0], bias[1], bias[2], bias[3] };
        int32_t pairs = channels > 2 ? 2 : 1, inputs;
        const int8_t *x = in;

        for (int32_t left = layer->shape.in_c; left > 0; left -= inputs, x += inputs) {
            inputs = left < 4 * (WORDS + 1) ? left : 4 * WORDS;
            w = pairs == 2 && inputs > 3 ? add_fours(x, x + inputs, w, sums)
                                         : add_few(x, inputs, w, pairs, sums);
        }
        put_four(sums, muls, codes, form, zero, channels >= 4 ? out : last);
        for (int32_t i = 0; channels < 4 && i < channels; i++)
            out[i] = last[i];
        codes += form == MUR_FC_ONE ? 0 : 4;
        muls += form == MUR_FC_EACH ? 4 : 0;
        out += 4;
    }
}

static inline __attribute__((always_inline)) void run(const mur_conv_s8 *layer, const int8_t *in,
                                                      int8_t *out, int32_t form)
{
    const mur_fc fc = mur_fc_of(layer, layer->packed, form);
    int32_t channels = layer->shape.out_c;

    for (int32_t i = 0; i < mur_fc_rows(&layer->shape);
         i++, in += layer->shape.in_c, out += channels) {
        run_vector(layer, &fc, in, out, form);
        if (layer->output.min != INT8_MIN || layer->output.max != INT8_MAX)
            clamp(out, channels, &layer->output);
    }
}

void mur_dsp_fc_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    (void)scratch;
    run(layer, in, out, MUR_FC_ONE);
}

void mur_dsp_fc_coded_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    (void)scratch;
    run(layer, in, out, MUR_FC_CODED);
}

void mur_dsp_fc_each_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    (void)scratch;
    run(layer, in, out, MUR_FC_EACH);
}
