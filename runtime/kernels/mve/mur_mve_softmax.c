/* mur_mve_softmax.c - softmax of int8 and its logarithm, four elements at a time: see mur_softmax.h
 * and mur_log_softmax.h. */
#include "mur_log_softmax.h"
#include "mur_mve.h"
#include "mur_softmax.h"

#if MUR_HAVE_MVE

/* mur_exp_of of four */
static inline int32x4_t exps_of(int32x4_t a)
{
    const int32_t quarter = 1 << 24, exp_eighth = 1895147668, third = 715827883;
    int32x4_t fraction = vsubq_n_s32(vandq_s32(a, vdupq_n_s32(quarter - 1)), quarter);
    int32x4_t rest = vsubq_s32(fraction, a), x = vaddq_n_s32(vshlq_n_s32(fraction, 5), 1 << 28);
    int32x4_t x2 = vqrdmulhq_s32(x, x), x3 = vqrdmulhq_s32(x2, x), x4 = vqrdmulhq_s32(x2, x2);
    int32x4_t y = vaddq_s32(mur_mve_round(x4, vdupq_n_s32(-2)), x3);

    y = mur_mve_round(vaddq_s32(vqrdmulhq_n_s32(y, third), x2), vdupq_n_s32(-1));
    y = vaddq_n_s32(vqrdmulhq_n_s32(vaddq_s32(x, y), exp_eighth), exp_eighth);
    for (int32_t i = 0; i < MUR_EXP_FACTORS; i++) {
        mve_pred16_t has = vcmpneq_n_s32(vandq_s32(rest, vdupq_n_s32(quarter << i)), 0);

        y = vqrdmulhq_m_n_s32(y, y, mur_exp_factors[i], has);
    }
    return vdupq_m_n_s32(y, INT32_MAX, vcmpeqq_n_s32(a, 0));
}

/* mur_exp_at of `some` of four, 0 where that is not counted: one copy, for it is long */
static __attribute__((noinline)) int32x4_t
exps_of_row(const mur_softmax_s8 *layer, const int8_t *in, int32_t greatest, mve_pred16_t some)
{
    int32x4_t below = vsubq_n_s32(vldrbq_z_s32(in, some), greatest);
    mve_pred16_t counted = vcmpgeq_m_n_s32(below, layer->diff_min, some);
    int32x4_t x = below;

    if (layer->exps)
        return vldrwq_gather_shifted_offset_z_s32(layer->exps,
                                                  vreinterpretq_u32_s32(vnegq_s32(below)), counted);
    x = vqrdmulhq_n_s32(vshlq_r_s32(x, layer->shift), layer->mul);
    return vdupq_m_n_s32(exps_of(x), 0, vcmpltq_n_s32(below, layer->diff_min));
}

static int32_t greatest_of(const int8_t *in, int32_t columns)
{
    int32_t greatest = INT8_MIN;

    __asm__ volatile("dlstp.8 lr, %2\n"
                     "1: vldrb.8 q0, [%0], #16\n"
                     "vmaxv.s8 %1, q0\n"
                     "letp lr, 1b\n"
                     : "+r"(in), "+r"(greatest)
                     : "r"(columns)
                     : "lr", "q0", "memory");
    return greatest;
}

/* held: the row's first exponentials */
static mur_softmax_row begin_row(const mur_softmax_s8 *layer, const int8_t *in, int32_t *held)
{
    mur_softmax_row r;
    int32_t sum = 0;

    r.greatest = greatest_of(in, layer->columns);
    for (int32_t i = 0; i < layer->columns; i += 4) {
        mve_pred16_t some = vctp32q((uint32_t)(layer->columns - i));
        int32x4_t e = exps_of_row(layer, in + i, r.greatest, some);

        if (i < MUR_SOFTMAX_HELD)
            vstrwq_s32(held + i, e);
        sum = vaddvaq_p_s32(sum, vrshrq_n_s32(e, MUR_SOFTMAX_SUM), some);
    }
    mur_softmax_scale(&r, sum, 8);
    return r;
}

void mur_mve_softmax_s8(const mur_softmax_s8 *layer, const int8_t *in, int8_t *out)
{
    int32_t held[MUR_SOFTMAX_HELD];

    for (int32_t row = 0; row < layer->rows; row++, in += layer->columns, out += layer->columns) {
        const mur_softmax_row r = begin_row(layer, in, held);
        int32x4_t shift = vdupq_n_s32(r.half ? -r.shift : -32);

        for (int32_t i = 0; i < layer->columns; i += 4) {
            mve_pred16_t some = vctp32q((uint32_t)(layer->columns - i));
            int32x4_t x = i < MUR_SOFTMAX_HELD ? vldrwq_s32(held + i)
                                               : exps_of_row(layer, in + i, r.greatest, some);

            x = vsubq_n_s32(vrshlq_s32(vqrdmulhq_n_s32(x, r.scale), shift), 128);
            x = vminq_s32(vmaxq_s32(x, vdupq_n_s32(INT8_MIN)), vdupq_n_s32(INT8_MAX));
            vstrbq_p_s32(out + i, x, some);
        }
    }
}

void mur_mve_log_softmax_s8(const mur_log_softmax_s8 *layer, const int8_t *in, int8_t *out)
{
    const int32x4_t turn = vdupq_n_s32(-1), step = vdupq_n_s32(layer->step);
    const int32x4_t min = vdupq_n_s32(layer->min), max = vdupq_n_s32(layer->max);

    for (int32_t row = layer->rows; row > 0; row--, in += layer->columns, out += layer->columns) {
        const int32_t greatest = greatest_of(in, layer->columns);
        const int8_t *x = in;
        int8_t *y = out;
        uint32_t sum = 0;

        __asm__ volatile("dlstp.32 lr, %2\n"
                         "1: vldrb.s32 q0, [%0], #4\n"
                         "vmlas.s32 q0, %q4, %3\n"
                         "vldrw.u32 q1, [%5, q0, uxtw #2]\n"
                         "vaddva.u32 %1, q1\n"
                         "letp lr, 1b\n"
                         : "+l"(x), "+Te"(sum)
                         : "r"(layer->columns), "r"(greatest), "w"(turn), "r"(layer->exps)
                         : "lr", "q0", "q1", "memory");
        x = in;
        __asm__ volatile("dlstp.32 lr, %2\n"
                         "1: vldrb.s32 q0, [%0], #4\n"
                         "vmlas.s32 q0, %q4, %3\n"
                         "vshr.s32 q0, q0, #16\n"
                         "vmax.s32 q0, q0, %q5\n"
                         "vmin.s32 q0, q0, %q6\n"
                         "vstrb.32 q0, [%1], #4\n"
                         "letp lr, 1b\n"
                         : "+l"(x), "+l"(y)
                         : "r"(layer->columns),
                           "r"(mur_log_softmax_top(layer, sum) - greatest * layer->step), "w"(step),
                           "w"(min), "w"(max)
                         : "lr", "q0", "memory");
    }
}

#else

void mur_mve_softmax_s8(const mur_softmax_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_softmax_plain(layer, in, out);
}

void mur_mve_log_softmax_s8(const mur_log_softmax_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_log_softmax_plain(layer, in, out);
}

#endif
