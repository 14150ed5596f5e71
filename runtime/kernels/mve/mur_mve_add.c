/* mur_mve_add.c - additions and products of two tensors in TensorFlow Lite's arithmetic, four at a
 * time. */
#include "mur_mve.h"

#if MUR_HAVE_MVE

/* whether a side is scaled by a half, which its left shift holds, as TFLite's greater one is */
static int is_half(int32_t mul, int32_t shift)
{
    return mul == 1 << 30 && shift == 0;
}

/* sum: of the sides */
#define ADD_LOOP(sum) \
    __asm__ volatile("dlstp.32 lr, %3\n" \
                     "1: vldrb.s32 q0, [%0], #4\n" \
                     "vldrb.s32 q1, [%1], #4\n" \
                     "vmlas.s32 q1, %q13, %5\n" \
                     "vmlas.s32 q0, %q12, %4\n" \
                     "vqrdmulh.s32 q1, q1, %6\n" \
                     "vqdmlah.s32 q1, q1, %7\n" \
                     "vrshl.s32 q1, %8\n" sum "vqrdmulh.s32 q0, q0, %9\n" \
                     "vqdmlah.s32 q0, q0, %11\n" \
                     "vrshl.s32 q0, %10\n" \
                     "vadd.i32 q0, q0, %q14\n" \
                     "vmax.s32 q0, q0, %q15\n" \
                     "vmin.s32 q0, q0, %q16\n" \
                     "vstrb.32 q0, [%2], #4\n" \
                     "letp lr, 1b\n" \
                     : "+l"(x), "+l"(y), "+l"(out) \
                     : "r"(layer->b_count), "r"(x_offset), "r"(y_offset), "r"(y_mul), \
                       "r"(y_shift < 0), "r"(y_shift), "r"(layer->mul), "r"(layer->shift), "r"(1), \
                       "w"(half), "w"(unit), "w"(zero), "w"(min), "w"(max) \
                     : "lr", "q0", "q1", "memory")

/* The sum of as many as b has, of which x is scaled by a half, in the steps of mur_add_plain: x - 1
 * of negative x rounded halves up is x rounded halves away from zero. */
static void add_half(const mur_add_s8 *layer, const int8_t *x, const int8_t *y, int8_t *out,
                     int32_t a_is_half)
{
    const int32_t y_mul = a_is_half ? layer->b_mul : layer->a_mul;
    const int32_t y_shift = a_is_half ? layer->b_shift : layer->a_shift;
    const int32_t x_unit =
        mur_shift_left(layer->subtract && !a_is_half ? -1 : 1, layer->left_shift - 1);
    const int32_t y_unit = 1 << layer->left_shift;
    const int32_t x_offset = -x_unit * (a_is_half ? layer->a_zero : layer->b_zero);
    const int32_t y_offset = -y_unit * (a_is_half ? layer->b_zero : layer->a_zero);
    const int32x4_t half = vdupq_n_s32(x_unit), unit = vdupq_n_s32(y_unit);
    const int32x4_t zero = vdupq_n_s32(layer->zero);
    const int32x4_t min = vdupq_n_s32(layer->min), max = vdupq_n_s32(layer->max);

    if (layer->subtract && a_is_half)
        ADD_LOOP("vsub.i32 q0, q0, q1\n");
    else
        ADD_LOOP("vadd.i32 q0, q0, q1\n");
}

#undef ADD_LOOP

/* as many as b has, each rounded so, too */
static void multiply(const mur_mul_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
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
                     : "r"(layer->b_count), "r"(layer->mul), "r"(layer->shift < 0),
                       "r"(layer->shift), "w"(a_zero), "w"(b_zero), "w"(zero), "w"(min), "w"(max)
                     : "lr", "q0", "q1", "memory");
}

void mur_mve_add_s8(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    const int32_t a_is_half = is_half(layer->a_mul, layer->a_shift);

    if (layer->left_shift == 0 || layer->shift == 0 ||
        !(a_is_half || is_half(layer->b_mul, layer->b_shift))) {
        mur_add_plain(layer, a, b, out);
        return;
    }
    for (int32_t i = 0; i < layer->count; i += layer->b_count)
        add_half(layer, a_is_half ? a + i : b, a_is_half ? b : a + i, out + i, a_is_half);
}

void mur_mve_mul_s8(const mur_mul_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    if (!mur_mul_is_short(layer)) {
        mur_mul_plain(*layer, a, b, out);
        return;
    }
    for (int32_t i = 0; i < layer->count; i += layer->b_count)
        multiply(layer, a + i, b, out + i);
}

#else

void mur_mve_add_s8(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    mur_add_plain(layer, a, b, out);
}

void mur_mve_mul_s8(const mur_mul_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    mur_mul_plain(*layer, a, b, out);
}

#endif
