/* mur_f32.h - four channels of convolutions on binary32 at a time: in C, by Helium, and what the
 * assembly for Arm's floating-point unit of single precision is made of. */
#ifndef MUR_F32_H
#define MUR_F32_H

#include <stdint.h>

/* for functions that several places call; and for what runs once a few pixels, which compilers keep
 * small if they believe it to be rare: flash is scarcer than that is dear */
#ifdef __GNUC__
#define MUR_APART static __attribute__((noinline, hot))
#define MUR_SMALL static __attribute__((noinline, cold))
#else
#define MUR_APART static
#define MUR_SMALL static
#endif

/* from + bytes, for pointers that leave on their way what they point into */
static inline const float *mur_moved(const float *from, int32_t bytes)
{
    return (const float *)((uintptr_t)from + (uintptr_t)(intptr_t)bytes);
}

/* Helium on floats; else the unit of single precision, with loads of several registers */
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#define MUR_HAVE_MVE_F32 1
#define MUR_HAVE_VFP 0
#elif defined(__thumb2__) && defined(__ARM_FP) && (__ARM_FP & 4)
#define MUR_HAVE_MVE_F32 0
#define MUR_HAVE_VFP 1
#else
#define MUR_HAVE_MVE_F32 0
#define MUR_HAVE_VFP 0
#endif

#if MUR_HAVE_MVE_F32

#include <arm_mve.h>

typedef float32x4_t mur_four_f32;

static inline mur_four_f32 mur_load_f32(const float *from)
{
    return vldrwq_f32(from);
}

static inline mur_four_f32 mur_add_scaled_f32(mur_four_f32 sum, mur_four_f32 w, float x)
{
    return vaddq_f32(sum, vmulq_n_f32(w, x));
}

static inline mur_four_f32 mur_add_product_f32(mur_four_f32 sum, mur_four_f32 w, mur_four_f32 x)
{
    return vaddq_f32(sum, vmulq_f32(w, x));
}

static inline void mur_store_f32(mur_four_f32 sum, int32_t relu, float *out)
{
    int32x4_t bits = vreinterpretq_s32_f32(sum);

    if (relu)
        bits = vbicq_s32(bits, vshrq_n_s32(bits, 31));
    vstrwq_s32((int32_t *)(void *)out, bits);
}

#elif MUR_HAVE_VFP

/* vmla rounds the product before it is added, as vmul and vadd do, so bits are the same. A
 * Cortex-M4 takes three cycles for it and one for each of the two; a Cortex-M7 is faster with it.
 */
#if defined(__ARM_ARCH_7EM__) && (__ARM_FP & 8) /* double precision, too: a Cortex-M7 */
#define MUR_VFP_ADD_FOUR(a, b, c, d, w0, w1, w2, w3, x0, x1, x2, x3) \
    "vmla.f32 " #a ", " #w0 ", " #x0 "\n" \
    "vmla.f32 " #b ", " #w1 ", " #x1 "\n" \
    "vmla.f32 " #c ", " #w2 ", " #x2 "\n" \
    "vmla.f32 " #d ", " #w3 ", " #x3 "\n"
#else
/* products in s28-s31 */
#define MUR_VFP_ADD_FOUR(a, b, c, d, w0, w1, w2, w3, x0, x1, x2, x3) \
    "vmul.f32 s28, " #w0 ", " #x0 "\n" \
    "vmul.f32 s29, " #w1 ", " #x1 "\n" \
    "vmul.f32 s30, " #w2 ", " #x2 "\n" \
    "vmul.f32 s31, " #w3 ", " #x3 "\n" \
    "vadd.f32 " #a ", " #a ", s28\n" \
    "vadd.f32 " #b ", " #b ", s29\n" \
    "vadd.f32 " #c ", " #c ", s30\n" \
    "vadd.f32 " #d ", " #d ", s31\n"
#endif

#define MUR_VFP_SCALED(a, b, c, d, w0, w1, w2, w3, x) \
    MUR_VFP_ADD_FOUR(a, b, c, d, w0, w1, w2, w3, x, x, x, x)

/* four sums to the address in ip, those that are negative as +0; takes r4, r5, r6, r8 */
#define MUR_VFP_STORE_RELU(a, b, c, d) \
    "vmov r4, r5, " #a ", " #b "\n" \
    "vmov r6, r8, " #c ", " #d "\n" \
    "bic r4, r4, r4, asr #31\n" \
    "bic r5, r5, r5, asr #31\n" \
    "bic r6, r6, r6, asr #31\n" \
    "bic r8, r8, r8, asr #31\n" \
    "stm ip, {r4-r6, r8}\n"

#else

/* members, for compilers keep those in registers */
typedef struct mur_four_f32 {
    float a, b, c, d;
} mur_four_f32;

static inline mur_four_f32 mur_load_f32(const float *from)
{
    mur_four_f32 four = { from[0], from[1], from[2], from[3] };

    return four;
}

static inline mur_four_f32 mur_add_product_f32(mur_four_f32 sum, mur_four_f32 w, mur_four_f32 x)
{
    sum.a += w.a * x.a;
    sum.b += w.b * x.b;
    sum.c += w.c * x.c;
    sum.d += w.d * x.d;
    return sum;
}

static inline mur_four_f32 mur_add_scaled_f32(mur_four_f32 sum, mur_four_f32 w, float x)
{
    mur_four_f32 same = { x, x, x, x };

    return mur_add_product_f32(sum, w, same);
}

static inline void mur_store_f32(mur_four_f32 sum, int32_t relu, float *out)
{
    out[0] = relu && sum.a <= 0 ? 0 : sum.a;
    out[1] = relu && sum.b <= 0 ? 0 : sum.b;
    out[2] = relu && sum.c <= 0 ? 0 : sum.c;
    out[3] = relu && sum.d <= 0 ? 0 : sum.d;
}

#endif

#endif
