/* mur_f32.h - four channels' sums on binary32. */
#ifndef MUR_F32_H
#define MUR_F32_H

#include <stdint.h>

/* Arm's floating-point unit of single precision, with loads of several registers */
#if defined(__thumb2__) && defined(__ARM_FP) && (__ARM_FP & 4)
#define MUR_HAVE_VFP 1
#else
#define MUR_HAVE_VFP 0
#endif

typedef struct mur_four_f32 {
    float c[4];
} mur_four_f32;

static inline mur_four_f32 mur_load_f32(const float *from)
{
    mur_four_f32 four = { { from[0], from[1], from[2], from[3] } };

    return four;
}

/* the first count of the four, each brought between min and max */
static inline void mur_store_f32(const mur_four_f32 *four, float min, float max, int32_t count,
                                 float *out)
{
    for (int32_t i = 0; i < count; i++) {
        float x = four->c[i];

        out[i] = x < min ? min : x > max ? max : x;
    }
}

/* sum += w[k] * x[k], four channels of w side by side, in order of k */
static inline void mur_sum_f32(mur_four_f32 *sum, const float *w, const float *x, int32_t count)
{
#if MUR_HAVE_VFP
#define MUR_SUM_F32(x) \
    "vldmia %[w]!, {s4-s7}\n" \
    "vmul.f32 s4, s4, " #x "\n" \
    "vmul.f32 s5, s5, " #x "\n" \
    "vmul.f32 s6, s6, " #x "\n" \
    "vmul.f32 s7, s7, " #x "\n" \
    "vadd.f32 s0, s0, s4\n" \
    "vadd.f32 s1, s1, s5\n" \
    "vadd.f32 s2, s2, s6\n" \
    "vadd.f32 s3, s3, s7\n"
    const float *fours = x + (count & ~3), *end = x + count;

    __asm__ volatile(
        "vldm %[sum], {s0-s3}\n"
        "b 2f\n"
        "1: vldmia %[x]!, {s8-s11}\n" MUR_SUM_F32(s8) MUR_SUM_F32(s9) MUR_SUM_F32(s10)
            MUR_SUM_F32(s11) "2: cmp %[x], %[fours]\n"
                             "bne 1b\n"
                             "b 4f\n"
                             "3: vldmia %[x]!, {s8}\n" MUR_SUM_F32(s8) "4: cmp %[x], %[end]\n"
                                                                       "bne 3b\n"
                                                                       "vstm %[sum], {s0-s3}\n"
        : [w] "+r"(w), [x] "+r"(x)
        : [sum] "r"(sum), [fours] "r"(fours), [end] "r"(end)
        : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "cc", "memory");
#undef MUR_SUM_F32
#else
    mur_four_f32 four = *sum;

    for (int32_t k = 0; k < count; k++, w += 4) {
        four.c[0] += w[0] * x[k];
        four.c[1] += w[1] * x[k];
        four.c[2] += w[2] * x[k];
        four.c[3] += w[3] * x[k];
    }
    *sum = four;
#endif
}

#endif
