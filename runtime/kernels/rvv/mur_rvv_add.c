/* mur_rvv_add.c - additions and products of two tensors in TensorFlow Lite's arithmetic, as many as
 * vectors hold at a time. */
#include "mur_rvv_tile.h"

#if MUR_HAVE_RVV

/* both sides without their zero points */
#define SIDES \
    "1: vsetvli %[count], %[left], e32, m8, ta, mu\n" \
    "vle8.v v0, (%[a])\n" \
    "vle8.v v2, (%[b])\n" \
    "add %[a], %[a], %[count]\n" \
    "add %[b], %[b], %[count]\n" \
    "vsext.vf4 v8, v0\n" \
    "vsext.vf4 v16, v2\n" \
    "vsub.vx v8, v8, %[a_zero]\n" \
    "vsub.vx v16, v16, %[b_zero]\n"

/* both shifted to the left and scaled; negative halves, if they are shifted at all, are rounded
 * away from zero */
#define SCALE \
    "vsll.vx v8, v8, %[left_shift]\n" \
    "vsll.vx v16, v16, %[left_shift]\n" \
    "vsmul.vx v8, v8, %[a_mul]\n" \
    "vsmul.vx v16, v16, %[b_mul]\n" \
    "vmslt.vx v0, v8, zero\n" \
    "vadd.vx v8, v8, %[a_away], v0.t\n" \
    "vssra.vx v8, v8, %[a_right]\n" \
    "vmslt.vx v0, v16, zero\n" \
    "vadd.vx v16, v16, %[b_away], v0.t\n" \
    "vssra.vx v16, v16, %[b_right]\n"

#define SUM "vmacc.vx v8, %[sign], v16\n"
#define PRODUCT "vmul.vv v8, v8, v16\n"

#define SCALE_RESULT \
    "vsmul.vx v8, v8, %[mul]\n" \
    "vmslt.vx v0, v8, zero\n" \
    "vadd.vx v8, v8, %[sum_away], v0.t\n" \
    "vssra.vx v8, v8, %[sum_right]\n"

#define STORE \
    "vse8.v v8, (%[out])\n" \
    "add %[out], %[out], %[count]\n" \
    "sub %[left], %[left], %[count]\n" \
    "bnez %[left], 1b\n"

/* a shift, as an operand, and what makes negative halves less */
#define SHIFT(name, value) \
    [name##_right] "r"(-(intptr_t)(value)), [name##_away] "r"((intptr_t)(value) >> 31)

/* as many as b has */
static void add(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    intptr_t left = layer->b_count, count;

    __asm__ volatile(
        MUR_RVV_HALVES_UP SIDES SCALE SUM SCALE_RESULT MUR_RVV_BYTES STORE
        : [a] "+&r"(a), [b] "+&r"(b), [out] "+&r"(out), [left] "+&r"(left), [count] "=&r"(count)
        : [pixels] "i"(1), [a_zero] "r"((intptr_t)layer->a_zero),
          [b_zero] "r"((intptr_t)layer->b_zero), [left_shift] "r"((intptr_t)layer->left_shift),
          [a_mul] "r"((intptr_t)layer->a_mul), [b_mul] "r"((intptr_t)layer->b_mul),
          [mul] "r"((intptr_t)layer->mul), [sign] "r"((intptr_t)(layer->subtract ? -1 : 1)),
          SHIFT(a, layer->a_shift), SHIFT(b, layer->b_shift),
          SHIFT(sum, layer->shift), [zero] "r"((intptr_t)layer->zero),
          [min] "r"((intptr_t)layer->min), [max] "r"((intptr_t)layer->max)
        : MUR_RVV_CHANGES);
}

/* as many as b has */
static void multiply(const mur_mul_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    const mur_output_s8 *to = &layer->output;
    intptr_t left = layer->b_count, count;

    __asm__ volatile(
        MUR_RVV_HALVES_UP SIDES PRODUCT SCALE_RESULT MUR_RVV_BYTES STORE
        : [a] "+&r"(a), [b] "+&r"(b), [out] "+&r"(out), [left] "+&r"(left), [count] "=&r"(count)
        : [pixels] "i"(1), [a_zero] "r"((intptr_t)layer->a_zero),
          [b_zero] "r"((intptr_t)layer->b_zero), [mul] "r"((intptr_t)layer->mul),
          SHIFT(sum, layer->shift), [zero] "r"((intptr_t)to->zero), [min] "r"((intptr_t)to->min),
          [max] "r"((intptr_t)to->max)
        : MUR_RVV_CHANGES);
}

void mur_rvv_add_s8(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    for (int32_t i = 0; i < layer->count; i += layer->b_count)
        add(layer, a + i, b, out + i);
}

void mur_rvv_mul_s8(const mur_mul_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    if (!mur_mul_is_short(layer)) {
        mur_mul_plain(*layer, a, b, out);
        return;
    }
    for (int32_t i = 0; i < layer->count; i += layer->b_count)
        multiply(layer, a + i, b, out + i);
}

#else

void mur_rvv_add_s8(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    mur_add_plain(layer, a, b, out);
}

void mur_rvv_mul_s8(const mur_mul_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    mur_mul_plain(*layer, a, b, out);
}

#endif
