/* mur_mve_half.h - four halves at a time as binary32, by Helium and in C. */
#ifndef MUR_MVE_HALF_H
#define MUR_MVE_HALF_H

#include "mur_half.h"
#include "mur_mve.h"
#include "mur_nn_f16.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)

#define MUR_HAVE_MVE_HALF 1
#include <arm_mve.h>

typedef float32x4_t mur_half_four;

/* GNU as 2.40 encodes the registers of VCVTB on vectors wrongly; so its word is put together here,
 * by the numbers of the registers that the compiler chose. */
__asm(".set mur_q0, 0\n.set mur_q1, 1\n.set mur_q2, 2\n.set mur_q3, 3\n"
      ".set mur_q4, 4\n.set mur_q5, 5\n.set mur_q6, 6\n.set mur_q7, 7\n");
#define MUR_HALF_VCVTB(word, to, from) \
    ".inst.w " #word " + (mur_%q" #to " << 13) + (mur_%q" #from " << 1)"

/* of the lower half of each word */
static inline mur_half_four mur_half_widen(uint32x4_t halves)
{
    mur_half_four four;

    __asm(MUR_HALF_VCVTB(0xfe3f0e01, 0, 1) : "=w"(four) : "w"(halves)); /* vcvtb.f32.f16 */
    return four;
}

/* into the lower half of each word; the upper ones stay */
static inline uint32x4_t mur_half_narrow(mur_half_four four)
{
    __asm(MUR_HALF_VCVTB(0xee3f0e01, 0, 0) : "+w"(four)); /* vcvtb.f16.f32 */
    return vreinterpretq_u32_f32(four);
}

static inline mur_half_four mur_half_load(const uint16_t *from)
{
    return mur_half_widen(vldrhq_u32(from));
}

/* zeros where they are not wanted, which are not read */
static inline mur_half_four mur_half_load_some(const uint16_t *from, mve_pred16_t wanted)
{
    return mur_half_widen(vldrhq_z_u32(from, wanted));
}

static inline mur_half_four mur_half_load_first(const uint16_t *from, int32_t count)
{
    return mur_half_load_some(from, vctp32q((uint32_t)count));
}

static inline mur_half_four mur_half_add_scaled(mur_half_four sum, mur_half_four w, float x)
{
    return vfmaq_n_f32(sum, w, x);
}

static inline mur_half_four mur_half_add_product(mur_half_four sum, mur_half_four w,
                                                 mur_half_four x)
{
    return vfmaq_f32(sum, w, x);
}

/* As integers, floats below 0 are below 0 too: the least one that a result may be. */
static inline int32_t mur_half_floor(int32_t relu)
{
    return relu ? 0 : INT32_MIN;
}

static inline void mur_half_store(mur_half_four sum, int32_t floor, int32_t count, uint16_t *out)
{
    int32x4_t bits = vmaxq_s32(vreinterpretq_s32_f32(sum), vdupq_n_s32(floor));
    uint32x4_t halves = mur_half_narrow(vreinterpretq_f32_s32(bits));

    if (count >= 4)
        vstrhq_u32(out, halves);
    else
        vstrhq_p_u32(out, halves, vctp32q((uint32_t)count));
}

static inline void mur_half_clip(int32_t count, const float *limits, const uint16_t *x, uint16_t *y)
{
    float16x8_t least = vdupq_n_f16((float16_t)limits[0]);
    float16x8_t most = vdupq_n_f16((float16_t)limits[1]);

    for (; count > 0; count -= 8, x += 8, y += 8) {
        mve_pred16_t inside = vctp16q((uint32_t)count);
        float16x8_t v = vreinterpretq_f16_u16(vldrhq_z_u16(x, inside));

        /* NaN is not greater, but less: the order of operands counts */
        v = vpselq_f16(least, v, vcmpgtq_f16(least, v));
        v = vpselq_f16(most, v, vcmpgtq_f16(v, most));
        vstrhq_p_u16(y, vreinterpretq_u16_f16(v), inside);
    }
}

#else

#define MUR_HAVE_MVE_HALF 0

typedef struct mur_half_four {
    float at[4];
} mur_half_four;

static inline mur_half_four mur_half_load_first(const uint16_t *from, int32_t count)
{
    mur_half_four four = { { 0, 0, 0, 0 } };

    for (int32_t i = 0; i < 4 && i < count; i++)
        four.at[i] = mur_float_of_half(from[i]);
    return four;
}

static inline mur_half_four mur_half_load(const uint16_t *from)
{
    return mur_half_load_first(from, 4);
}

static inline mur_half_four mur_half_add_product(mur_half_four sum, mur_half_four w,
                                                 mur_half_four x)
{
    for (int32_t i = 0; i < 4; i++)
        sum.at[i] += w.at[i] * x.at[i];
    return sum;
}

static inline mur_half_four mur_half_add_scaled(mur_half_four sum, mur_half_four w, float x)
{
    mur_half_four same = { { x, x, x, x } };

    return mur_half_add_product(sum, w, same);
}

static inline int32_t mur_half_floor(int32_t relu)
{
    return relu ? 0 : -1;
}

static inline void mur_half_store(mur_half_four sum, int32_t floor, int32_t count, uint16_t *out)
{
    for (int32_t i = 0; i < 4 && i < count; i++)
        out[i] = mur_half_of_float(floor == 0 && sum.at[i] <= 0 ? 0 : sum.at[i]);
}

static inline void mur_half_clip(int32_t count, const float *limits, const uint16_t *x, uint16_t *y)
{
    for (int32_t i = 0; i < count; i++) {
        float v = mur_float_of_half(x[i]);

        v = v < limits[0] ? limits[0] : v;
        y[i] = mur_half_of_float(v > limits[1] ? limits[1] : v);
    }
}

#endif

/* from + elements, for pointers that leave on their way what they point into */
static inline const uint16_t *mur_half_moved(const uint16_t *from, int32_t elements)
{
    return (const uint16_t *)((uintptr_t)from + (uintptr_t)(intptr_t)elements * sizeof(*from));
}

#endif
