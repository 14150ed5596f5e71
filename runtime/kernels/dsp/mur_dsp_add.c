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
    int32_t skip, rows; /* from the end of a row to the next */
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

/* products in lr, r11, r10 and r0 to bytes; of its first, sel takes bytes 0 and 2 */
#define SCALE_FOUR \
    "smmlar lr, lr, r7, lr\n" \
    "smmlar r11, r11, r7, r11\n" \
    "smmlar r10, r10, r7, r10\n" \
    "smmlar r0, r0, r7, r0\n" \
    "smmlar lr, lr, r8, r9\n" \
    "smmlar r11, r11, r8, r9\n" \
    "smmlar r10, r10, r8, r9\n" \
    "smmlar r0, r0, r8, r9\n" \
    "pkhbt lr, lr, r10, lsl #16\n" \
    "pkhbt r11, r11, r0, lsl #16\n" \
    "ssat16 lr, #8, lr\n" \
    "ssat16 r11, #8, r11\n" \
    "lsl r11, r11, #8\n" \
    "sel lr, lr, r11\n" \
    "str lr, [r3], #4\n"

#define SCALE_ONE \
    "sxtah r0, r0, r5\n" \
    "mul r0, r0, r12\n" \
    "smmlar r0, r0, r7, r0\n" \
    "smmlar r0, r0, r8, r9\n" \
    "ssat r0, #8, r0\n" \
    "strb r0, [r3], #1\n"

#define MULTIPLY_ONE \
    "ldrsb r0, [r1], #1\n" \
    "ldrsb r12, [r2], #1\n" \
    "sxtah r12, r12, r6\n" SCALE_ONE

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
    "smultt r0, r0, r12\n" SCALE_FOUR

#define MULTIPLY_ONE_WIDE \
    "ldrsb r0, [r1], #1\n" \
    "ldrsh r12, [r2], #2\n" SCALE_ONE

#define MULTIPLY_FOUR_WIDE \
    "ldr r0, [r1], #4\n" \
    "ldrd r11, r12, [r2], #8\n" \
    "sxtab16 r10, r5, r0\n" \
    "sxtab16 r0, r5, r0, ror #8\n" \
    "smulbb lr, r10, r11\n" \
    "smultb r10, r10, r12\n" \
    "smulbt r11, r0, r11\n" \
    "smultt r0, r0, r12\n" SCALE_FOUR

#define BEGIN_PRODUCTS \
    "push {r0, r4-r11, lr}\n" \
    "ldm r0, {r1-r9}\n" \
    "mov r10, #0x00ff00ff\n" \
    "uadd8 r10, r10, r10\n" /* bytes 0 and 2 carry, for sel */

__attribute__((naked, noinline)) static void multiply_row(__attribute__((unused)) const row *r)
{
    __asm__ volatile(BEGIN_PRODUCTS
                     EIGHT_AT_A_TIME(MULTIPLY_FOUR, MULTIPLY_ONE)
                     "pop {r0, r4-r11, pc}\n");
}

__attribute__((naked, noinline)) static void multiply_wide(__attribute__((unused)) multiplication *m)
{
    __asm__ volatile(BEGIN_PRODUCTS
                     "5:\n"
                     EIGHT_AT_A_TIME(MULTIPLY_FOUR_WIDE, MULTIPLY_ONE_WIDE)
                     "ldr r0, [sp]\n"
                     "ldr r2, [r0, #4]\n"
                     "ldr r4, [r0, #12]\n"
                     "ldrd r10, r11, [r0, #36]\n"
                     "add r1, r1, r10\n"
                     "add r3, r3, r10\n"
                     "subs r11, r11, #1\n"
                     "str r11, [r0, #40]\n"
                     "bne 5b\n"
                     "pop {r0, r4-r11, pc}\n" ::
                         : "memory");
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

static int8_t product_of(const multiplication *m, int32_t a, int32_t b)
{
    int32_t x = mur_high_q31((a + (int16_t)m->a_zeros) * b, (int32_t)((uint32_t)m->mul >> 1));

    x = (int32_t)(((int64_t)x * m->power + (INT64_C(1) << 31)) >> 32) + m->zero;
    return (int8_t)mur_clamp(x, INT8_MIN, INT8_MAX);
}

static void multiply_row(const row *r)
{
    const multiplication *m = (const multiplication *)r;

    for (int32_t i = 0; i < r->count; i++)
        r->out[i] = product_of(m, r->a[i], r->b[i] + (int16_t)m->b_zeros);
}

static void multiply_wide(multiplication *m)
{
    const int16_t *b = (const int16_t *)(const void *)m->row.b;
    row r = m->row;

    for (int32_t left = m->rows; left > 0; left--, r.a += r.count + m->skip) {
        for (int32_t i = 0; i < r.count; i++)
            *r.out++ = product_of(m, r.a[i], b[i]);
        r.out += m->skip;
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

/* A short b is first repeated, for longer rows: how often, 0 if it is not short. */
enum { LEAST_ROW = 32, MOST_ROW = 128 };

static int32_t times_of(int32_t count, int32_t b_count)
{
    int32_t most = count / 4 < MOST_ROW ? count / 4 : MOST_ROW;

    return b_count < LEAST_ROW ? most / b_count & ~3 : 0;
}

void mur_dsp_line_s8(const mur_add_s8 *l, const int8_t *a, const int8_t *b, int8_t *out)
{
    const int32_t times = times_of(l->count, l->b_count), b_count = l->b_count;
    const int32_t width = times > 0 ? times * b_count : b_count;
    line s = {
        .a_mul = l->a_mul * 256, .b_mul = l->b_mul * 256, .offset = l->mul, .odd = 0xff00ff00u
    };
    int8_t repeated[MOST_ROW];

    if (times > 0) {
        __builtin_memcpy(repeated, b, (size_t)b_count);
        for (int32_t i = b_count; i < width; i++)
            repeated[i] = repeated[i - b_count];
        b = repeated;
    }
    for (int32_t i = 0; i < l->count; i += width) {
        s.row = (row){ a + i, b, out + i, l->count - i < width ? l->count - i : width };
        sum_row(&s.row);
    }
    clamp(l->min, l->max, l->count, out);
}

static uint32_t two_of(int32_t half)
{
    return ((uint32_t)half & 0xffffu) * 0x10001u;
}

/* Rows that all meet the same b: some columns of it at a time as halves, again and again if it is
 * short. */
static void multiply_rows(multiplication *m, int32_t b_count)
{
    const row all = m->row;
    const int32_t times = times_of(all.count, b_count),
                  pitch = times > 0 ? times * b_count : b_count;
    const int32_t rest = all.count % pitch;
    int16_t wide[MOST_ROW] __attribute__((aligned(4)));

    for (int32_t from = 0; from < pitch; from += MOST_ROW) {
        const int32_t width = pitch - from < MOST_ROW ? pitch - from : MOST_ROW;
        const int32_t once = width < b_count ? width : b_count;

        for (int32_t i = 0; i < once; i++)
            wide[i] = (int16_t)(all.b[from + i] + (int16_t)m->b_zeros);
        for (int32_t i = once; i < width; i++)
            wide[i] = wide[i - once];
        m->row = (row){ all.a + from, (const int8_t *)wide, all.out + from, width };
        m->skip = pitch - width;
        m->rows = all.count / pitch;
        multiply_wide(m);
    }
    if (rest > 0) { /* of a b that was repeated */
        m->row.a = all.a + all.count - rest;
        m->row.out = all.out + all.count - rest;
        m->row.count = rest;
        m->rows = 1;
        multiply_wide(m);
    }
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
    m.row = (row){ a, b, out, l->count };
    if (l->b_count < l->count)
        multiply_rows(&m, l->b_count);
    else
        multiply_row(&m.row);
    clamp(l->output.min, l->output.max, l->count, out);
}
