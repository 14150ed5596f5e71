/* mur_rvv.h - kernels for RISC-V's vectors of any length (Zve32x or V), in assembly that compilers
 * without intrinsics know too, and what it does, in C, elsewhere; how the kernels of this folder
 * want a layer's weights. */
#ifndef MUR_RVV_H
#define MUR_RVV_H

#include "mur_nn_arith.h"

#if defined(__riscv_vector)
#define MUR_HAVE_RVV 1
#else
#define MUR_HAVE_RVV 0
#endif

enum {
    MUR_RVV_PIXELS = 3, /* most at a time: sums of a register group each, and one for the rest */
    MUR_RVV_PLANES = 64 /* most channels of a depthwise layer at a time */
};

/* Packed weights of mur_rvv_conv_s8 are those of mur_rvv_depthwise_s8, where what stands for an
 * input is a tap: int32 bias [out_c], with -in_zero * the sum of the weights; int32 mul [out_c];
 * uint8 shift to the right [out_c]; int8 weights. Those are, for each group, [inputs][channels of
 * the group], of a depthwise layer [multiplier][taps][in_c], and its other numbers [multiplier]
 * [in_c]. Of fc kernels: int8 [inputs][out_c] (mur_fc.h). */
typedef struct mur_rvv_parts {
    const int32_t *bias, *mul;
    const uint8_t *right;
    const int8_t *weights;
} mur_rvv_parts;

enum { MUR_RVV_CHANNEL_BYTES = 9 }; /* of all but weights */

static inline mur_rvv_parts mur_rvv_parts_of(const mur_conv_s8 *layer)
{
    mur_rvv_parts parts;

    parts.bias = layer->packed;
    parts.mul = parts.bias + layer->shape.out_c;
    parts.right = (const uint8_t *)(parts.mul + layer->shape.out_c);
    parts.weights = (const int8_t *)(parts.right + layer->shape.out_c);
    return parts;
}

/* of an output channel */
static inline int32_t mur_rvv_inputs(const mur_conv_shape *s)
{
    return s->kernel_h * s->kernel_w * (s->in_c / s->groups);
}

/* rows, and pixels of a row, that the windows of a depthwise layer touch at a time */
static inline int32_t mur_rvv_rows(const mur_conv_shape *s)
{
    return (s->kernel_h - 1) * s->dilation_h + 1;
}

static inline int32_t mur_rvv_width(const mur_conv_shape *s)
{
    return (s->out_w - 1) * s->stride_w + (s->kernel_w - 1) * s->dilation_w + 1;
}

static inline int32_t mur_rvv_planes(const mur_conv_shape *s)
{
    return s->in_c < MUR_RVV_PLANES ? s->in_c : MUR_RVV_PLANES;
}

#if MUR_HAVE_RVV

/* what assembly changes, where the compiler itself may use vectors; gcc 12 neither does nor knows
 * their names */
#if defined(__clang__) || __GNUC__ > 12
#define MUR_RVV_CHANGES \
    "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", \
        "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", \
        "v26", "v27", "v28", "v29", "v30", "v31"
#else
#define MUR_RVV_CHANGES "memory"
#endif

static inline void mur_rvv_copy(int8_t *to, const int8_t *from, intptr_t count)
{
    intptr_t some;

    if (count > 0)
        __asm__ volatile(
            "1: vsetvli %[some], %[count], e8, m8, ta, ma\n"
            "vle8.v v0, (%[from])\n"
            "sub %[count], %[count], %[some]\n"
            "add %[from], %[from], %[some]\n"
            "vse8.v v0, (%[to])\n"
            "add %[to], %[to], %[some]\n"
            "bnez %[count], 1b\n"
            : [some] "=&r"(some), [count] "+&r"(count), [from] "+&r"(from), [to] "+&r"(to)
            :
            : MUR_RVV_CHANGES);
}

static inline void mur_rvv_fill(int8_t *to, int8_t value, intptr_t count)
{
    intptr_t some;

    if (count > 0)
        __asm__ volatile("vsetvli %[some], zero, e8, m8, ta, ma\n"
                         "vmv.v.x v0, %[value]\n"
                         "1: vsetvli %[some], %[count], e8, m8, ta, ma\n"
                         "sub %[count], %[count], %[some]\n"
                         "vse8.v v0, (%[to])\n"
                         "add %[to], %[to], %[some]\n"
                         "bnez %[count], 1b\n"
                         : [some] "=&r"(some), [count] "+&r"(count), [to] "+&r"(to)
                         : [value] "r"((intptr_t)value)
                         : MUR_RVV_CHANGES);
}

/* how many of so many sums fit a group of eight registers */
static inline int32_t mur_rvv_count(int32_t wanted)
{
    intptr_t count;

    __asm__ volatile("vsetvli %0, %1, e32, m8, ta, mu"
                     : "=r"(count)
                     : "r"((intptr_t)wanted)
                     : MUR_RVV_CHANGES);
    return (int32_t)count;
}

#else

#include <string.h>

static inline void mur_rvv_copy(int8_t *to, const int8_t *from, intptr_t count)
{
    if (count > 0)
        memcpy(to, from, (size_t)count);
}

static inline void mur_rvv_fill(int8_t *to, int8_t value, intptr_t count)
{
    if (count > 0)
        memset(to, value, (size_t)count);
}

static inline int32_t mur_rvv_count(int32_t wanted)
{
    return wanted;
}

#endif

#endif
