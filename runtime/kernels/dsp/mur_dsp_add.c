/* mur_dsp_add.c - additions and products of two tensors in TensorFlow Lite's arithmetic.
 *
 * A converter scales both sides of an addition by the greater of their scales, doubled, so one
 * side's multiplier is exactly 1/2 and only the other takes a product. What is not so goes the long
 * way. */
#include "mur_dsp.h"
#include "mur_nn_arith.h"

/* The order of members is the assembly's. Side a has the product. Multipliers are doubled modulo
 * 2^32, so 0 is 1, and shifts are to the right and at least 1. */
typedef struct addition {
    const int8_t *a, *b;
    int8_t *out, *out_end;
    int32_t a_offset; /* -zero * 2^20 */
    int32_t a_mul, a_shift;
    int32_t b_offset; /* -zero * 2^19 */
    int32_t mul, shift;
    int32_t zero;
} addition;

/* in the assembly's order, too */
typedef struct multiplication {
    const int8_t *a, *b;
    int8_t *out, *out_end;
    int32_t a_zero, b_zero;
    int32_t mul, shift; /* as an addition's */
    int32_t zero;
} multiplication;

#if MUR_HAVE_DSP

/* clang-format off */
#define ADD_ONE \
    "ldrsb r0, [r1], #1\n" \
    "ldrsb r12, [r2], #1\n" \
    "add r0, r5, r0, lsl #20\n" \
    "add r12, r8, r12, lsl #19\n" \
    "smmlar r0, r0, r6, r0\n" \
    "add r0, r0, r0, asr #31\n" \
    "asrs r0, r0, r7\n" \
    "adc r0, r0, r12\n" \
    "smmlar r0, r0, r9, r0\n" \
    "add r0, r0, r0, asr #31\n" \
    "asrs r0, r0, r10\n" \
    "adc r0, r0, r11\n" \
    "ssat r0, #8, r0\n" \
    "strb r0, [r3], #1\n"

/* two side by side, for cores that issue two instructions at a time */
#define ADD_TWO \
    "ldrsb lr, [r1, #1]\n" \
    "ldrsb r0, [r1], #2\n" \
    "ldrsb r12, [r2], #1\n" \
    "add lr, r5, lr, lsl #20\n" \
    "add r0, r5, r0, lsl #20\n" \
    "smmlar r0, r0, r6, r0\n" \
    "smmlar lr, lr, r6, lr\n" \
    "add r12, r8, r12, lsl #19\n" \
    "add r0, r0, r0, asr #31\n" \
    "asrs r0, r0, r7\n" \
    "adc r0, r0, r12\n" \
    "ldrsb r12, [r2], #1\n" \
    "add lr, lr, lr, asr #31\n" \
    "smmlar r0, r0, r9, r0\n" \
    "asrs lr, lr, r7\n" \
    "add r12, r8, r12, lsl #19\n" \
    "add r0, r0, r0, asr #31\n" \
    "adc lr, lr, r12\n" \
    "asrs r0, r0, r10\n" \
    "smmlar lr, lr, r9, lr\n" \
    "adc r0, r0, r11\n" \
    "ssat r0, #8, r0\n" \
    "add lr, lr, lr, asr #31\n" \
    "asrs lr, lr, r10\n" \
    "adc lr, lr, r11\n" \
    "ssat lr, #8, lr\n" \
    "strb lr, [r3, #1]\n" \
    "strb r0, [r3], #2\n"

__attribute__((naked, noinline)) static void add(__attribute__((unused)) const addition *sums)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "ldm r0, {r1-r11}\n"
                     "sub lr, r4, r3\n"
                     "lsrs lr, lr, #1\n" /* carry: an odd one */
                     "bcc 2f\n"
                     ADD_ONE
                     "b 2f\n"
                     "1:\n"
                     ADD_TWO
                     "2: cmp r3, r4\n"
                     "bne 1b\n"
                     "pop {r4-r11, pc}\n");
}

#define MULTIPLY_ONE \
    "ldrsb r0, [r1], #1\n" \
    "ldrsb r12, [r2], #1\n" \
    "sub r0, r0, r5\n" \
    "sub r12, r12, r6\n" \
    "mul r0, r0, r12\n" \
    "smmlar r0, r0, r7, r0\n" \
    "add r0, r0, r0, asr #31\n" \
    "asrs r0, r0, r8\n" \
    "adc r0, r0, r9\n" \
    "ssat r0, #8, r0\n" \
    "strb r0, [r3], #1\n"

#define MULTIPLY_TWO \
    "ldrsb r11, [r1, #1]\n" \
    "ldrsb r0, [r1], #2\n" \
    "ldrsb lr, [r2, #1]\n" \
    "ldrsb r12, [r2], #2\n" \
    "sub r11, r11, r5\n" \
    "sub r0, r0, r5\n" \
    "sub lr, lr, r6\n" \
    "sub r12, r12, r6\n" \
    "mul r11, r11, lr\n" \
    "mul r0, r0, r12\n" \
    "smmlar r11, r11, r7, r11\n" \
    "smmlar r0, r0, r7, r0\n" \
    "add r11, r11, r11, asr #31\n" \
    "add r0, r0, r0, asr #31\n" \
    "asrs r11, r11, r8\n" \
    "adc r11, r11, r9\n" \
    "asrs r0, r0, r8\n" \
    "adc r0, r0, r9\n" \
    "ssat r11, #8, r11\n" \
    "ssat r0, #8, r0\n" \
    "strb r11, [r3, #1]\n" \
    "strb r0, [r3], #2\n"

__attribute__((naked, noinline)) static void multiply(__attribute__((unused))
                                                      const multiplication *products)
{
    __asm__ volatile("push {r4-r9, r11, lr}\n"
                     "ldm r0, {r1-r9}\n"
                     "sub lr, r4, r3\n"
                     "lsrs lr, lr, #1\n" /* carry: an odd one */
                     "bcc 2f\n"
                     MULTIPLY_ONE
                     "b 2f\n"
                     "1:\n"
                     MULTIPLY_TWO
                     "2: cmp r3, r4\n"
                     "bne 1b\n"
                     "pop {r4-r9, r11, pc}\n");
}
/* clang-format on */

#else

static void add(const addition *sums)
{
    const int8_t *a = sums->a, *b = sums->b;

    for (int8_t *out = sums->out; out != sums->out_end; out++) {
        int32_t x = sums->a_offset + *a++ * (1 << 20);

        x = sums->a_mul ? mur_scale_q31(x, (int32_t)((uint32_t)sums->a_mul >> 1), -sums->a_shift)
                        : x / 2;
        x += sums->b_offset + *b++ * (1 << 19);
        x = mur_scale_q31(x, (int32_t)((uint32_t)sums->mul >> 1), -sums->shift);
        *out = (int8_t)mur_clamp(x + sums->zero, INT8_MIN, INT8_MAX);
    }
}

static void multiply(const multiplication *products)
{
    const int8_t *a = products->a, *b = products->b;

    for (int8_t *out = products->out; out != products->out_end; out++) {
        int32_t x = (*a++ - products->a_zero) * (*b++ - products->b_zero);

        x = mur_scale_q31(x, (int32_t)((uint32_t)products->mul >> 1), -products->shift);
        *out = (int8_t)mur_clamp(x + products->zero, INT8_MIN, INT8_MAX);
    }
}

#endif

static int is_product(int32_t mul, int32_t shift)
{
    return mul >= 1 << 30 && shift < 0;
}

static int is_half(int32_t mul, int32_t shift)
{
    return mul == 1 << 30 && shift == 0;
}

static int32_t doubled(int32_t mul)
{
    return (int32_t)((uint32_t)mul << 1);
}

/* results from INT8_MIN to INT8_MAX within narrower bounds */
static void clamp(int32_t min, int32_t max, int32_t count, int8_t *out)
{
    if (min != INT8_MIN || max != INT8_MAX)
        for (int32_t i = 0; i < count; i++)
            out[i] = (int8_t)mur_clamp(out[i], min, max);
}

void mur_dsp_add_s8(const mur_add_s8 *l, const int8_t *a, const int8_t *b, int8_t *out)
{
    int swap = is_half(l->a_mul, l->a_shift);
    int32_t mul = swap ? l->b_mul : l->a_mul, shift = swap ? l->b_shift : l->a_shift;
    int both = swap && is_half(mul, shift); /* (x + x) / 2 */
    addition s;

    if (l->left_shift != 20 || l->subtract || !is_product(l->mul, l->shift) ||
        !(both || (is_product(mul, shift) && (swap || is_half(l->b_mul, l->b_shift))))) {
        mur_add_plain(l, a, b, out);
        return;
    }
    s.a_offset = -(swap ? l->b_zero : l->a_zero) * (1 << 20);
    s.a_mul = both ? 0 : doubled(mul);
    s.a_shift = both ? 1 : -shift;
    s.b_offset = -(swap ? l->a_zero : l->b_zero) * (1 << 19);
    s.mul = doubled(l->mul);
    s.shift = -l->shift;
    s.zero = l->zero;
    for (int32_t i = 0; i < l->count; i += l->b_count) {
        s.a = swap ? b : a + i;
        s.b = swap ? a + i : b;
        s.out = out + i;
        s.out_end = s.out + l->b_count;
        add(&s);
    }
    clamp(l->min, l->max, l->count, out);
}

void mur_dsp_mul_s8(const mur_mul_s8 *l, const int8_t *a, const int8_t *b, int8_t *out)
{
    multiplication p = { .a_zero = l->a_zero,
                         .b_zero = l->b_zero,
                         .mul = doubled(l->mul),
                         .shift = -l->shift,
                         .zero = l->output.zero };

    if (l->output.kind != MUR_REQUANT_Q31 || !is_product(l->mul, l->shift)) {
        mur_mul_plain(*l, a, b, out);
        return;
    }
    for (int32_t i = 0; i < l->count; i += l->b_count) {
        p.a = a + i;
        p.b = b;
        p.out = out + i;
        p.out_end = p.out + l->b_count;
        multiply(&p);
    }
    clamp(l->output.min, l->output.max, l->count, out);
}
