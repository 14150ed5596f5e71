/* mur_mve_add.c - additions and products of two tensors in TensorFlow Lite's arithmetic, four at a
 * time. */
#include "mur_mve.h"

#if MUR_HAVE_MVE

/* whether a side is scaled by a half, which its left shift holds, as TFLite's greater one is */
static int is_half(int32_t mul, int32_t shift)
{
    return mul == 1 << 30 && shift == 0;
}

enum {
    MANY = 256, /* as many as there are bytes */
    WORTH = 512 /* elements for which a table of what a number makes of all bytes is worth while */
};

/* What elements of a repeated b that has few of many elements lie in: b, or to [MANY], which holds
 * b several times. count: of b, then of what is there. */
static const int8_t *repeat(int8_t *to, const int8_t *b, int32_t *count, int32_t all)
{
    uint32_t at = 0;

    if (*count == all || *count > MANY / 2)
        return b;
    for (int32_t i = 0; i < MANY && i < all; i += MUR_MVE_BYTES)
        vstrbq_s8(to + i, vldrbq_gather_offset_s8(b, viwdupq_wb_u8(&at, (uint32_t)*count, 1)));
    *count = MANY - MANY % *count;
    return to;
}

/* all bytes, as a table is looked up */
static void put_bytes(int8_t table[MANY])
{
    uint32_t at = 0;

    for (int32_t i = 0; i < MANY; i += MUR_MVE_BYTES)
        vstrbq_u8((uint8_t *)table + i, vidupq_wb_u8(&at, 1));
}

static void look_up(const int8_t table[MANY], const int8_t *a, int8_t *out, int32_t count)
{
    __asm__ volatile("dlstp.8 lr, %2\n"
                     "1: vldrb.8 q0, [%0], #16\n"
                     "vldrb.u8 q1, [%3, q0]\n"
                     "vstrb.8 q1, [%1], #16\n"
                     "letp lr, 1b\n"
                     : "+l"(a), "+l"(out)
                     : "r"(count), "r"(table)
                     : "lr", "q0", "q1", "memory");
}

/* so many elements of a with as many of b */
typedef void some_elements(const void *layer, const int8_t *a, const int8_t *b, int8_t *out,
                           int32_t count);

/* all of a, with those of b again and again */
static __attribute__((noinline)) void run(some_elements *of, const void *layer, int32_t count,
                                          int32_t b_count, const int8_t *a, const int8_t *b,
                                          int8_t *out)
{
    int8_t many[MANY], table[MANY];
    int32_t some = b_count;

    b = repeat(many, b, &some, count);
    if (b_count == 1 && count >= WORTH) {
        put_bytes(table);
        of(layer, table, b, table, MANY);
        look_up(table, a, out, count);
        return;
    }
    for (int32_t left = count; left > 0; left -= some, a += some, out += some)
        of(layer, a, b, out, left < some ? left : some);
}

/* what loops of a sum read */
#define ADD_OPERANDS \
    [half] "w"(half), [unit] "w"(unit), [min] "w"(min), [max] "w"(max), [x_offset] "r"(x_offset), \
        [y_offset] "r"(y_offset), [y_mul] "r"(y_mul), [y_round] "r"(y_shift < 0), \
        [y_shift] "r"(y_shift), [mul] "r"(mul), [one] "r"(1), [shift] "r"(layer->shift), \
        [zero] "r"((int32_t)layer->zero)

/* The sums of so many elements, of which x is scaled by a half, in the steps of mur_add_plain: x -
 * 1 of negative x rounded halves up is x rounded halves away from zero. Of x - y both signs are
 * turned, and that of the multiplier of their sum. */
static MUR_MVE_OPTIMIZED void add_half(const mur_add_s8 *layer, const int8_t *x, const int8_t *y,
                                       int8_t *out, int32_t elements, int32_t a_is_half)
{
    const int32_t y_mul = a_is_half ? layer->b_mul : layer->a_mul;
    const int32_t y_shift = a_is_half ? layer->b_shift : layer->a_shift;
    const int32_t mul = layer->subtract && a_is_half ? -layer->mul : layer->mul;
    const int32_t x_unit = mur_shift_left(layer->subtract ? -1 : 1, layer->left_shift - 1);
    const int32_t y_unit = 1 << layer->left_shift;
    const int32_t x_offset = -x_unit * (a_is_half ? layer->a_zero : layer->b_zero);
    const int32_t y_offset = -y_unit * (a_is_half ? layer->b_zero : layer->a_zero);
    const int32x4_t half = vdupq_n_s32(x_unit), unit = vdupq_n_s32(y_unit);
    const int32x4_t min = vdupq_n_s32(layer->min), max = vdupq_n_s32(layer->max);
    register int32_t count __asm__("lr") = elements / 8;

    if (count > 0) /* two fours at once, so that neighbours are of different pipelines */
        __asm__ volatile("dls lr, lr\n"
                         "1:\n"
                         "vldrb.s32 q1, [%[y]], #4\n"
                         "vmlas.s32 q1, %q[unit], %[y_offset]\n"
                         "vldrb.s32 q3, [%[y]], #4\n"
                         "vqrdmulh.s32 q1, q1, %[y_mul]\n"
                         "vqdmlah.s32 q1, q1, %[y_round]\n"
                         "vldrb.s32 q0, [%[x]], #4\n"
                         "vmlas.s32 q0, %q[half], %[x_offset]\n"
                         "vrshl.s32 q1, %[y_shift]\n"
                         "vmlas.s32 q3, %q[unit], %[y_offset]\n"
                         "vadd.i32 q0, q0, q1\n"
                         "vqrdmulh.s32 q0, q0, %[mul]\n"
                         "vqdmlah.s32 q0, q0, %[one]\n"
                         "vldrb.s32 q2, [%[x]], #4\n"
                         "vrshl.s32 q0, %[shift]\n"
                         "vqrdmulh.s32 q3, q3, %[y_mul]\n"
                         "vadd.i32 q0, q0, %[zero]\n"
                         "vqdmlah.s32 q3, q3, %[y_round]\n"
                         "vmax.s32 q0, q0, %q[min]\n"
                         "vmlas.s32 q2, %q[half], %[x_offset]\n"
                         "vrshl.s32 q3, %[y_shift]\n"
                         "vadd.i32 q2, q2, q3\n"
                         "vqrdmulh.s32 q2, q2, %[mul]\n"
                         "vmin.s32 q0, q0, %q[max]\n"
                         "vqdmlah.s32 q2, q2, %[one]\n"
                         "vrshl.s32 q2, %[shift]\n"
                         "vstrb.32 q0, [%[out]], #4\n"
                         "vadd.i32 q2, q2, %[zero]\n"
                         "vmax.s32 q2, q2, %q[min]\n"
                         "vmin.s32 q2, q2, %q[max]\n"
                         "vstrb.32 q2, [%[out]], #4\n"
                         "le lr, 1b\n"
                         : [x] "+l"(x), [y] "+l"(y), [out] "+l"(out), "+r"(count)
                         : ADD_OPERANDS
                         : "q0", "q1", "q2", "q3", "memory");
    count = elements % 8;
    if (count > 0)
        __asm__ volatile("dlstp.32 lr, lr\n"
                         "1:\n"
                         "vldrb.s32 q1, [%[y]], #4\n"
                         "vmlas.s32 q1, %q[unit], %[y_offset]\n"
                         "vqrdmulh.s32 q1, q1, %[y_mul]\n"
                         "vqdmlah.s32 q1, q1, %[y_round]\n"
                         "vldrb.s32 q0, [%[x]], #4\n"
                         "vmlas.s32 q0, %q[half], %[x_offset]\n"
                         "vrshl.s32 q1, %[y_shift]\n"
                         "vadd.i32 q0, q0, q1\n"
                         "vqrdmulh.s32 q0, q0, %[mul]\n"
                         "vqdmlah.s32 q0, q0, %[one]\n"
                         "vrshl.s32 q0, %[shift]\n"
                         "vadd.i32 q0, q0, %[zero]\n"
                         "vmax.s32 q0, q0, %q[min]\n"
                         "vmin.s32 q0, q0, %q[max]\n"
                         "vstrb.32 q0, [%[out]], #4\n"
                         "letp lr, 1b\n"
                         : [x] "+l"(x), [y] "+l"(y), [out] "+l"(out), "+r"(count)
                         : ADD_OPERANDS
                         : "q0", "q1", "memory");
}

#undef ADD_OPERANDS

static void add(const void *descriptor, const int8_t *a, const int8_t *b, int8_t *out,
                int32_t count)
{
    const mur_add_s8 *layer = descriptor;
    const int32_t a_is_half = is_half(layer->a_mul, layer->a_shift);

    add_half(layer, a_is_half ? a : b, a_is_half ? b : a, out, count, a_is_half);
}

/* so many by a line's factors */
static void sum_line(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out,
                     int32_t count)
{
    const int32x4_t a_mul = vdupq_n_s32(layer->a_mul);
    const int32x4_t min = vdupq_n_s32(layer->min), max = vdupq_n_s32(layer->max);

    __asm__ volatile("dlstp.32 lr, %3\n"
                     "1: vldrb.s32 q0, [%0], #4\n"
                     "vldrb.s32 q1, [%1], #4\n"
                     "vmlas.s32 q0, %q6, %5\n"
                     "vmla.s32 q0, q1, %4\n"
                     "vshr.s32 q0, q0, %9\n"
                     "vmax.s32 q0, q0, %q7\n"
                     "vmin.s32 q0, q0, %q8\n"
                     "vstrb.32 q0, [%2], #4\n"
                     "letp lr, 1b\n"
                     : "+l"(a), "+l"(b), "+l"(out)
                     : "r"(count), "r"(layer->b_mul), "r"(layer->mul), "w"(a_mul), "w"(min),
                       "w"(max), "i"(MUR_LINE_PLACES)
                     : "lr", "q0", "q1", "memory");
}

/* products, each rounded so, too */
static void multiply(const void *descriptor, const int8_t *a, const int8_t *b, int8_t *out,
                     int32_t count)
{
    const mur_mul_s8 *layer = descriptor;
    const mur_output_s8 *to = &layer->output;
    const int32x4_t a_zero = vdupq_n_s32(layer->a_zero), b_zero = vdupq_n_s32(layer->b_zero);
    const int32x4_t zero = vdupq_n_s32(to->zero);
    const int32x4_t min = vdupq_n_s32(to->min), max = vdupq_n_s32(to->max);

    __asm__ volatile("dlstp.32 lr, %3\n"
                     "1: vldrb.s32 q0, [%0], #4\n"
                     "vldrb.s32 q1, [%1], #4\n"
                     "vsub.i32 q0, q0, %q7\n"
                     "vsub.i32 q1, q1, %q8\n"
                     "vmul.i32 q0, q0, q1\n"
                     "vqrdmulh.s32 q0, q0, %4\n"
                     "vqdmlah.s32 q0, q0, %5\n"
                     "vrshl.s32 q0, %6\n"
                     "vadd.i32 q0, q0, %q9\n"
                     "vmax.s32 q0, q0, %q10\n"
                     "vmin.s32 q0, q0, %q11\n"
                     "vstrb.32 q0, [%2], #4\n"
                     "letp lr, 1b\n"
                     : "+l"(a), "+l"(b), "+l"(out)
                     : "r"(count), "r"(layer->mul), "r"(layer->shift < 0), "r"(layer->shift),
                       "w"(a_zero), "w"(b_zero), "w"(zero), "w"(min), "w"(max)
                     : "lr", "q0", "q1", "memory");
}

/* of scales that no converter makes */
static __attribute__((noinline, cold)) void add_any(const mur_add_s8 *layer, const int8_t *a,
                                                    const int8_t *b, int8_t *out)
{
    mur_add_plain(layer, a, b, out);
}

void mur_mve_add_s8(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    if (layer->left_shift == 0 || layer->shift == 0 ||
        !(is_half(layer->a_mul, layer->a_shift) || is_half(layer->b_mul, layer->b_shift)))
        add_any(layer, a, b, out);
    else
        run(add, layer, layer->count, layer->b_count, a, b, out);
}

/* b is not repeated first: the compiler gives shorter ones to add_s8 */
void mur_mve_line_s8(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    const int32_t some = layer->b_count;

    for (int32_t left = layer->count; left > 0; left -= some, a += some, out += some)
        sum_line(layer, a, b, out, some);
}

void mur_mve_mul_s8(const mur_mul_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    if (!mur_mul_is_short(layer))
        mur_mul_plain(*layer, a, b, out);
    else
        run(multiply, layer, layer->count, layer->b_count, a, b, out);
}

#else

void mur_mve_add_s8(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    mur_add_plain(layer, a, b, out);
}

void mur_mve_line_s8(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    mur_line_plain(layer, a, b, out);
}

void mur_mve_mul_s8(const mur_mul_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    mur_mul_plain(*layer, a, b, out);
}

#endif
