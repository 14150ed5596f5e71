/* mur_mve_add.c - additions and products of two tensors in TensorFlow Lite's arithmetic, four at a
 * time. */
#include "mur_mve.h"

#if MUR_HAVE_MVE

/* Up to `left` of four of a and of b, and goes on: asm, for compilers carry a predicate about in
 * the core's registers. */
static inline void load_two(const int8_t **a, const int8_t **b, int32_t left, int32x4_t *x,
                            int32x4_t *y)
{
    __asm__ volatile("vctp.32 %4\n"
                     "vpstt\n"
                     "vldrbt.s32 %q2, [%0], #4\n"
                     "vldrbt.s32 %q3, [%1], #4\n"
                     : "+l"(*a), "+l"(*b), "=&w"(*x), "=w"(*y)
                     : "r"(left)
                     : "p0", "memory");
}

static inline void store_some(int8_t **out, int32_t left, int32x4_t x)
{
    __asm__ volatile("vctp.32 %1\n"
                     "vpst\n"
                     "vstrbt.32 %q2, [%0], #4\n"
                     : "+l"(*out)
                     : "r"(left), "w"(x)
                     : "p0", "memory");
}

/* what scales a side */
typedef struct side_scale {
    int32_t offset, mul, shift, one; /* offset: -zero << left_shift; one: 1 if shift is below 0 */
} side_scale;

static inline side_scale side_of(int32_t zero, int32_t left_shift, int32_t mul, int32_t shift)
{
    side_scale side = { mur_shift_left(-zero, left_shift), mul, shift, shift < 0 };

    return side;
}

/* MUR_REQUANT_Q31 of four by one multiplier: x - 1 of negative x rounded halves up is x rounded
 * halves away from zero */
static inline int32x4_t scale(int32x4_t x, const side_scale *by)
{
    x = vqrdmulhq_n_s32(x, by->mul);
    return vrshlq_n_s32(vqdmlahq_n_s32(x, x, by->one), by->shift);
}

/* as many as b has */
static void add(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    int32x4_t min = vdupq_n_s32(layer->min), max = vdupq_n_s32(layer->max);
    int32x4_t unit = vdupq_n_s32(1 << layer->left_shift);
    side_scale a_side = side_of(layer->a_zero, layer->left_shift, layer->a_mul, layer->a_shift);
    side_scale b_side = side_of(layer->b_zero, layer->left_shift, layer->b_mul, layer->b_shift);
    side_scale sum = side_of(0, 0, layer->mul, layer->shift);
    int32_t zero = layer->zero, sign = layer->subtract ? -1 : 1;

    for (int32_t left = layer->b_count; left > 0; left -= 4) {
        int32x4_t x, y;

        load_two(&a, &b, left, &x, &y);
        x = scale(vmlasq_n_s32(x, unit, a_side.offset), &a_side);
        y = scale(vmlasq_n_s32(y, unit, b_side.offset), &b_side);
        x = scale(vmlaq_n_s32(x, y, sign), &sum);
        store_some(&out, left, vminq_s32(vmaxq_s32(vaddq_n_s32(x, zero), min), max));
    }
}

/* as many as b has, each rounded as in scale */
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
    for (int32_t i = 0; i < layer->count; i += layer->b_count)
        add(layer, a + i, b, out + i);
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
