/* mur_dsp_fc.c - fully connected layers of few vectors: four channels at a time, as two pairs in
 * the form of mur_dsp_sums.h, share each input's widening.
 *
 * Weights: for each four channels, for four inputs, bytes 0 and 2 of the first pair, 1 and 3, then
 * of the second pair; of the last one or two channels of the first pair alone. If inputs are no
 * fours, the first word has those that are left, and weights of 0 for inputs of the next one. */
#include "mur_dsp_conv.h"
#include "mur_dsp_sums.h"
#include "mur_fc.h"

enum { WORDS = 127 }; /* of four inputs: b's sums over so many have 24 bits */

/* Products of words of inputs with a pair, whose words of weights are `step` behind each other, to
 * sums. */
static void add_words(const int8_t *x, int32_t words, const uint32_t *w, int32_t step,
                      int32_t *sums)
{
    int32_t a = 0, b = 0; /* b: of 256 b + a */

    for (; words > 0; words--, x += 4, w += step) {
        uint32_t four = mur_four(x), even = mur_sxtb16(four), odd = mur_sxtb16_odd(four);

        a = mur_smlad(odd, mur_sxtb16(w[1]), mur_smlad(even, mur_sxtb16(w[0]), a));
        b = mur_smlad(odd, w[1], mur_smlad(even, w[0], b));
    }
    sums[0] = (int32_t)((uint32_t)sums[0] + (uint32_t)a);
    sums[1] += mur_asr((int32_t)((uint32_t)b - (uint32_t)a), 8);
}

/* the same of any number of inputs */
static __attribute__((noinline)) void add_inputs(const int8_t *x, int32_t inputs, const uint32_t *w,
                                                 int32_t step, int32_t *sums)
{
    int32_t words = inputs >> 2, left = inputs & 3;
    int8_t first[4] = { 0, 0, 0, 0 };

    for (int32_t i = 0; i < left; i++)
        first[i] = x[i];
    if (left > 0) {
        add_words(first, 1, w, step, sums);
        x += left;
        w += step;
    }
    for (int32_t some; words > 0; words -= some, x += 4 * some, w += step * some) {
        some = words > WORDS ? WORDS : words;
        add_words(x, some, w, step, sums);
    }
}

/* Fours of channels of a vector of at least four inputs. The order of members is the assembly's. */
typedef struct fours {
    uint32_t head; /* the first four inputs */
    const int8_t *x, *some,
        *end; /* those behind the first word; the end of the first 126, of all */
    const int32_t *bias;
    int32_t zero;
    const int32_t *scales; /* [4][2]: twice a multiplier, a shift */
    int8_t *out;
    int32_t count; /* at least 1 */
    const uint32_t *w;
} fours;

#if MUR_HAVE_DSP

/* Four inputs, which are in r9, and four channels; b's and d's sums begin with others. */
/* clang-format off */
#define MAC16(b, d) \
    "ldm r12!, {r4-r7}\n" \
    "sxtb16 r8, r9\n" \
    "sxtb16 r9, r9, ror #8\n" \
    "smlad r1, r8, r4, " #b "\n" \
    "sxtb16 r4, r4\n" \
    "smlad r3, r8, r6, " #d "\n" \
    "sxtb16 r6, r6\n" \
    "smlad r0, r8, r4, r0\n" \
    "smlad r2, r8, r6, r2\n" \
    "smlad r1, r9, r5, r1\n" \
    "sxtb16 r5, r5\n" \
    "smlad r3, r9, r7, r3\n" \
    "sxtb16 r7, r7\n" \
    "smlad r0, r9, r5, r0\n" \
    "smlad r2, r9, r7, r2\n"

#define NEXT16 \
    "ldr r9, [r10], #4\n" \
    MAC16(r1, r3)

/* Returns the weights behind those of the fours. r0, r2: sums of a and c; r1, r3: of 256 b + a and
 * 256 d + c over so many words as 24 bits hold; on the stack a copy of *part, then those of b and d
 * before. r10: x, r11: its end for now; r12: w. */
__attribute__((naked, noinline)) static const uint32_t *
run_fours(__attribute__((unused)) const fours *part)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "ldm r0, {r1-r10}\n"
                     "mov r12, r10\n"
                     "push {r1-r12}\n"
                     "3: ldrd r10, r11, [sp, #4]\n"
                     "ldr r4, [sp, #16]\n"
                     "ldr r9, [sp]\n"
                     "ldm r4!, {r0-r3}\n"
                     "str r4, [sp, #16]\n"
                     "strd r1, r3, [sp, #40]\n"
                     MAC16(r0, r2)
                     "4: subs r4, r11, r10\n"
                     "beq 6f\n"
                     "lsls r4, r4, #29\n"
                     "bmi 2f\n"
                     "1:\n"
                     NEXT16
                     "2:\n"
                     NEXT16
                     "cmp r10, r11\n"
                     "bne 1b\n"
                     "6: ldrd r6, r7, [sp, #40]\n"
                     "ldr r4, [sp, #12]\n"
                     "subs r1, r1, r0\n"
                     "subs r3, r3, r2\n"
                     "add r1, r6, r1, asr #8\n"
                     "add r3, r7, r3, asr #8\n"
                     "cmp r11, r4\n"
                     "bne 7f\n"
                     "ldrd r7, r8, [sp, #20]\n"
                     "ldm r8, {r4, r5, r6, r8, r9, r10, r11, lr}\n"
                     MUR_DSP_REQUANT(r0, r4, r5, r7)
                     MUR_DSP_REQUANT(r1, r6, r8, r7)
                     MUR_DSP_REQUANT(r2, r9, r10, r7)
                     MUR_DSP_REQUANT(r3, r11, lr, r7)
                     "ldrd r4, r5, [sp, #28]\n"
                     "bfi r0, r1, #8, #8\n"
                     "bfi r2, r3, #8, #8\n"
                     "pkhbt r0, r0, r2, lsl #16\n"
                     "str r0, [r4], #4\n"
                     "subs r5, r5, #1\n"
                     "strd r4, r5, [sp, #28]\n"
                     "bne 3b\n"
                     "mov r0, r12\n"
                     "add sp, sp, #48\n"
                     "pop {r4-r11, pc}\n"
                     "7: strd r1, r3, [sp, #40]\n"
                     "mov r1, r0\n"
                     "mov r3, r2\n"
                     "sub r4, r4, r11\n"
                     "cmp r4, #508\n"
                     "it cs\n"
                     "movcs r4, #508\n"
                     "add r11, r11, r4\n"
                     "b 4b\n");
}
/* clang-format on */

#else

static const uint32_t *run_fours(const fours *part)
{
    const uint32_t *w = part->w;
    int32_t words = (int32_t)(part->end - part->x) >> 2;
    int8_t head[4];

    __builtin_memcpy(head, &part->head, sizeof(head));
    for (int32_t i = 0; i < 4 * part->count; i += 4) {
        const int32_t *bias = part->bias + i;
        int32_t sums[4] = { bias[0], bias[1], bias[2], bias[3] };

        for (int32_t pair = 0; pair < 4; pair += 2) {
            add_words(head, 1, w + pair, 4, sums + pair);
            add_inputs(part->x, 4 * words, w + pair + 4, 4, sums + pair);
        }
        w += 4 + 4 * words;
        for (int32_t c = 0; c < 4; c++)
            part->out[i + c] = mur_dsp_output(sums[c], (uint32_t)part->scales[2 * c],
                                              (uint32_t)part->scales[2 * c + 1], part->zero);
    }
    return w;
}

#endif

/* a sum to an int8 by twice a multiplier below 1/2 */
static inline int8_t output(int32_t sum, int32_t twice, int32_t shift, int32_t zero)
{
#if MUR_HAVE_DSP
    /* clang-format off */
    __asm__(MUR_DSP_REQUANT(%0, %1, %2, %3)
            : "+r"(sum)
            : "r"(twice), "r"(shift), "r"(zero)
            : "cc");
    /* clang-format on */
    return (int8_t)sum;
#else
    return mur_dsp_output(sum, (uint32_t)twice, (uint32_t)shift, zero);
#endif
}

/* of four channels, the first by the first code and, if each has one, multiplier */
static inline __attribute__((always_inline)) void
set_scales(const int32_t *muls, const uint8_t *codes, int32_t form, int32_t *scales)
{
    uint32_t four = *codes;

    if (form != MUR_FC_ONE)
        __builtin_memcpy(&four, codes, sizeof(four));
#pragma GCC unroll 4
    for (int32_t i = 0; i < 4; i++) {
        uint32_t code = form == MUR_FC_ONE ? four : four >> (8 * i) & 0xff;
        uint32_t mul = form == MUR_FC_EACH ? (uint32_t)i : code % MUR_FC_MULS; /* one alone: 0 */

        scales[2 * i] = (int32_t)(2 * (uint32_t)muls[mul]);
        scales[2 * i + 1] = (int32_t)(code / MUR_FC_MULS);
    }
}

/* one or two channels, the last ones, or those of up to three inputs */
static __attribute__((noinline, cold)) void run_few(fours *part, const int8_t *x, int32_t channels)
{
    int32_t inputs = (int32_t)(part->end - x);
    int32_t sums[2] = { part->bias[0], part->bias[1] }; /* what is packed goes on behind the last */

    add_inputs(x, inputs, part->w, 2, sums);
    part->w += 2 * ((inputs + 3) >> 2);
    for (int32_t i = 0; i < channels; i++)
        part->out[i] = output(sums[i], part->scales[2 * i], part->scales[2 * i + 1], part->zero);
}

/* outputs of one vector */
static inline __attribute__((always_inline)) void
run_vector(const mur_conv_s8 *layer, const mur_fc *fc, const int8_t *in, int8_t *out, int32_t form)
{
    const int32_t *muls = fc->mul;
    const uint8_t *codes = fc->codes;
    int32_t inputs = layer->shape.in_c, few = inputs < 4, scales[8], done;
    int8_t last[4]; /* of three channels */
    fours part;

    part.head = few ? 0 : mur_four(in);
    part.x = in + (inputs & 3 ? inputs & 3 : 4);
    part.end = in + inputs;
    part.some = part.end - part.x > 4 * (WORDS - 1) ? part.x + 4 * (WORDS - 1) : part.end;
    part.bias = fc->bias;
    part.zero = layer->output.zero;
    part.scales = scales;
    part.w = (const uint32_t *)(const void *)fc->weights;
    if (form == MUR_FC_ONE)
        set_scales(muls, codes, form, scales);
    for (int32_t channels = layer->shape.out_c; channels > 0; channels -= done) {
        done = few ? 2 : form == MUR_FC_ONE ? channels & ~3 : 4;
        if (done == 0 || done > channels)
            done = channels;
        if (form != MUR_FC_ONE)
            set_scales(muls, codes, form, scales);
        part.out = done == 3 ? last : out;
        part.count = (done + 3) >> 2;
        if (done > 2)
            part.w = run_fours(&part);
        else
            run_few(&part, in, done);
        if (done == 3)
            __builtin_memcpy(out, last, 3);
        part.bias += done;
        out += done;
        codes += form == MUR_FC_ONE ? 0 : done;
        muls += form == MUR_FC_EACH ? done : 0;
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
        mur_dsp_clamp_bytes(&layer->output, channels, out);
    }
}

__attribute__((cold)) void mur_dsp_fc_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out,
                                         void *scratch)
{
    (void)scratch;
    run(layer, in, out, MUR_FC_ONE);
}

__attribute__((cold)) void mur_dsp_fc_coded_s8(const mur_conv_s8 *layer, const int8_t *in,
                                               int8_t *out, void *scratch)
{
    (void)scratch;
    run(layer, in, out, MUR_FC_CODED);
}

__attribute__((cold)) void mur_dsp_fc_each_s8(const mur_conv_s8 *layer, const int8_t *in,
                                              int8_t *out, void *scratch)
{
    (void)scratch;
    run(layer, in, out, MUR_FC_EACH);
}
