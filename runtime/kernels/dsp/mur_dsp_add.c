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

/* what begins the assembly's operands, which are in its order, too */
typedef struct row {
    const int8_t *a, *b;
    int8_t *out;
    int32_t count;
} row;

typedef struct line {
    row row;
    int32_t a_mul, b_mul, offset; /* the factors times 2^8 */
    uint32_t odd;                 /* bytes 1 and 3 of a word */
} line;

typedef struct multiplication {
    row row;
    uint32_t a_zeros, b_zeros; /* two halves of -zero */
    int32_t mul;               /* as an addition's */
    int32_t power;             /* 2^(32 - shift), and 1, so that halves go away from zero */
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

#define SUM_ONE \
    "ldrsb r9, [r1], #1\n" \
    "ldrsb r10, [r2], #1\n" \
    "lsl r9, r9, #8\n" \
    "lsl r10, r10, #8\n" \
    "smlawb r9, r5, r9, r7\n" \
    "smlawb r9, r6, r10, r9\n" \
    "ssat r9, #8, r9, asr #21\n" \
    "strb r9, [r3], #1\n"

/* bytes in the upper halves of halves */
#define SUM_FOUR \
    "ldr r9, [r1], #4\n" \
    "ldr r10, [r2], #4\n" \
    "and r11, r8, r9, lsl #8\n" \
    "and r12, r8, r10, lsl #8\n" \
    "smlawb r0, r5, r11, r7\n" \
    "and r9, r9, r8\n" \
    "smlawt r11, r5, r11, r7\n" \
    "and r10, r10, r8\n" \
    "smlawb r0, r6, r12, r0\n" \
    "smlawt r11, r6, r12, r11\n" \
    "smlawb r12, r5, r9, r7\n" \
    "ssat r0, #8, r0, asr #21\n" \
    "smlawt r9, r5, r9, r7\n" \
    "ssat r11, #8, r11, asr #21\n" \
    "smlawb r12, r6, r10, r12\n" \
    "strb r11, [r3, #2]\n" \
    "smlawt r9, r6, r10, r9\n" \
    "strb r0, [r3], #4\n" \
    "ssat r12, #8, r12, asr #21\n" \
    "ssat r9, #8, r9, asr #21\n" \
    "strb r12, [r3, #-3]\n" \
    "strb r9, [r3, #-1]\n"

#define EIGHT_AT_A_TIME(four, one) \
    "b 2f\n" \
    "1:\n" four four "2: subs r4, r4, #8\n" \
    "bhs 1b\n" \
    "adds r4, r4, #8\n" \
    "beq 4f\n" \
    "3:\n" one "subs r4, r4, #1\n" \
    "bne 3b\n" \
    "4:\n"

__attribute__((naked, noinline)) static void sum_row(__attribute__((unused)) const row *r)
{
    __asm__ volatile("push {r4-r12, lr}\n"
                     "ldm r0, {r1-r8}\n"
                     EIGHT_AT_A_TIME(SUM_FOUR, SUM_ONE)
                     "pop {r4-r12, pc}\n");
}

#define MULTIPLY_ONE \
    "ldrsb r0, [r1], #1\n" \
    "ldrsb r12, [r2], #1\n" \
    "sxtah r0, r0, r5\n" \
    "sxtah r12, r12, r6\n" \
    "mul r0, r0, r12\n" \
    "smmlar r0, r0, r7, r0\n" \
    "smmlar r0, r0, r8, r9\n" \
    "ssat r0, #8, r0\n" \
    "strb r0, [r3], #1\n"

#define MULTIPLY_FOUR \
    "ldr r0, [r1], #4\n" \
    "ldr r12, [r2], #4\n" \
    "sxtab16 r10, r5, r0\n" \
    "sxtab16 r11, r6, r12\n" \
    "sxtab16 r0, r5, r0, ror #8\n" \
    "sxtab16 r12, r6, r12, ror #8\n" \
    "smulbb lr, r10, r11\n" \
    "smultt r10, r10, r11\n" \
    "smulbb r11, r0, r12\n" \
    "smultt r0, r0, r12\n" \
    "smmlar lr, lr, r7, lr\n" \
    "smmlar r11, r11, r7, r11\n" \
    "smmlar r10, r10, r7, r10\n" \
    "smmlar r0, r0, r7, r0\n" \
    "smmlar lr, lr, r8, r9\n" \
    "smmlar r11, r11, r8, r9\n" \
    "smmlar r10, r10, r8, r9\n" \
    "ssat lr, #8, lr\n" \
    "smmlar r0, r0, r8, r9\n" \
    "ssat r11, #8, r11\n" \
    "strb lr, [r3], #4\n" \
    "ssat r10, #8, r10\n" \
    "strb r11, [r3, #-3]\n" \
    "ssat r0, #8, r0\n" \
    "strb r10, [r3, #-2]\n" \
    "strb r0, [r3, #-1]\n"

__attribute__((naked, noinline)) static void multiply_row(__attribute__((unused)) const row *r)
{
    __asm__ volatile("push {r4-r12, lr}\n"
                     "ldm r0, {r1-r9}\n"
                     EIGHT_AT_A_TIME(MULTIPLY_FOUR, MULTIPLY_ONE)
                     "pop {r4-r12, pc}\n");
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

static void sum_row(const row *r)
{
    const line *l = (const line *)r;

    for (int32_t i = 0; i < r->count; i++) {
        int32_t x = mur_line(r->a[i], l->a_mul / 256, r->b[i], l->b_mul / 256, l->offset);

        r->out[i] = (int8_t)mur_clamp_asr(x, MUR_LINE_PLACES, INT8_MIN, INT8_MAX);
    }
}

static void multiply_row(const row *r)
{
    const multiplication *m = (const multiplication *)r;

    for (int32_t i = 0; i < r->count; i++) {
        int32_t x = (r->a[i] + (int16_t)m->a_zeros) * (r->b[i] + (int16_t)m->b_zeros);

        x = mur_high_q31(x, (int32_t)((uint32_t)m->mul >> 1));
        x = (int32_t)(((int64_t)x * m->power + (INT64_C(1) << 31)) >> 32) + m->zero;
        r->out[i] = (int8_t)mur_clamp(x, INT8_MIN, INT8_MAX);
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

/* A short b is first repeated, for longer rows. */
enum { LEAST_ROW = 32, MOST_ROW = 128 };

static void run_rows(row *r, void (*run)(const row *), int32_t count, int32_t b_count,
                     const int8_t *a, const int8_t *b, int8_t *out)
{
    int32_t most = count / 8 < MOST_ROW ? count / 8 : MOST_ROW;
    int32_t times = b_count < LEAST_ROW ? most / b_count & ~3 : 0;
    int8_t repeated[MOST_ROW];

    if (times > 0) {
        __builtin_memcpy(repeated, b, (size_t)b_count);
        for (int32_t i = 0; i < (times - 1) * b_count; i++)
            repeated[b_count + i] = repeated[i];
        b = repeated;
        b_count *= times;
    }
    r->b = b;
    for (int32_t i = 0; i < count; i += b_count) {
        r->a = a + i;
        r->out = out + i;
        r->count = count - i < b_count ? count - i : b_count;
        run(r);
    }
}

void mur_dsp_line_s8(const mur_add_s8 *l, const int8_t *a, const int8_t *b, int8_t *out)
{
    line s = {
        .a_mul = l->a_mul * 256, .b_mul = l->b_mul * 256, .offset = l->mul, .odd = 0xff00ff00u
    };

    run_rows(&s.row, sum_row, l->count, l->b_count, a, b, out);
    clamp(l->min, l->max, l->count, out);
}

static uint32_t two_of(int32_t half)
{
    return ((uint32_t)half & 0xffffu) * 0x10001u;
}

void mur_dsp_mul_s8(const mur_mul_s8 *l, const int8_t *a, const int8_t *b, int8_t *out)
{
    multiplication m = { .a_zeros = two_of(-l->a_zero),
                         .b_zeros = two_of(-l->b_zero),
                         .mul = doubled(l->mul),
                         .zero = l->output.zero };

    if (l->output.kind != MUR_REQUANT_Q31 || !is_product(l->mul, l->shift) || l->shift > -2) {
        mur_mul_plain(*l, a, b, out);
        return;
    }
    m.power = (int32_t)(1u << (32 + l->shift)) + 1;
    run_rows(&m.row, multiply_row, l->count, l->b_count, a, b, out);
    clamp(l->output.min, l->output.max, l->count, out);
}
