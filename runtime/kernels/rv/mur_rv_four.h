/* mur_rv_four.h - sums of products of four pixels and four channels: the inner loop of
 * mur_rv_conv_s8, mur_rv_conv_wide_s8 and mur_rv_matmul_s8, as mur_rv_conv.c says. */
#ifndef MUR_RV_FOUR_H
#define MUR_RV_FOUR_H

#include "mur_rv.h"

/* A function `name` of pixels x [inputs][2], an even number of inputs; of four channels with their
 * weights behind, up to `end`; and of what becomes of them, sums [channel][pixel]. `round` is added
 * before a shift by 16: 32768, or, where any two products may neighbour, -32769 and then
 * mur_rv_widen. */
#if defined(__riscv) && __riscv_xlen == 32 && !defined(__riscv_e) && !defined(__riscv_32e)

/* Two inputs of a channel, whose weights are in w0 and w1: sums s0 and t0 of the first pair, s1 and
 * t1 of the second. Nothing is used before it is there: the next channel's weights, `next0` and
 * `next1`, come meanwhile to q and w1, and products and sums alternate. */
#define MUR_RV_CHANNEL(w0, w1, p, q, next0, next1, s0, t0, s1, t1) \
    "mul " #p ", t0, " #w0 "\n" \
    "mul " #q ", t2, " #w1 "\n" \
    "mul " #w0 ", t1, " #w0 "\n" \
    "mul " #w1 ", t3, " #w1 "\n" \
    "add " #p ", " #p ", " #q "\n" next0 "add " #w0 ", " #w0 ", " #w1 "\n" next1 "add " #s0 \
    ", " #s0 ", " #p "\n" \
    "add " #p ", " #p ", a3\n" \
    "add " #s1 ", " #s1 ", " #w0 "\n" \
    "add " #w0 ", " #w0 ", a3\n" \
    "srai " #p ", " #p ", 16\n" \
    "srai " #w0 ", " #w0 ", 16\n" \
    "add " #t0 ", " #t0 ", " #p "\n" \
    "add " #t1 ", " #t1 ", " #w0 "\n"
#define MUR_RV_START(bias, s0, t0, s1, t1) \
    "lw " #t0 ", " #bias "(a1)\n" \
    "slli " #s0 ", " #t0 ", 16\n" \
    "add " #s0 ", " #s0 ", " #t0 "\n" \
    "mv " #s1 ", " #s0 "\n" \
    "mv " #t1 ", " #t0 "\n"
#define MUR_RV_STORE(at, s0, t0, s1, t1) \
    "slli a4, " #t0 ", 16\n" \
    "slli a5, " #t1 ", 16\n" \
    "sub " #s0 ", " #s0 ", a4\n" \
    "sub " #s1 ", " #s1 ", a5\n" \
    "sw " #s0 ", " #at "(a3)\n" \
    "sw " #t0 ", " #at "+4(a3)\n" \
    "sw " #s1 ", " #at "+8(a3)\n" \
    "sw " #t1 ", " #at "+12(a3)\n"
#define MUR_RV_SAVED(op) \
#op " s0, 0(sp)\n" #op " s1, 4(sp)\n" #op " s2, 8(sp)\n" #op " s3, 12(sp)\n" #op \
        " s4, 16(sp)\n" #op " s5, 20(sp)\n" #op " s6, 24(sp)\n" #op " s7, 28(sp)\n" #op \
        " s8, 32(sp)\n" #op " s9, 36(sp)\n" #op " s10, 40(sp)\n" #op " s11, 44(sp)\n" #op \
        " ra, 48(sp)\n" #op " a3, 52(sp)\n"

/* clang-format off */
/* sums [channel][pixel] of four pixels and four channels; `round` is added before the shift */
#define MUR_RV_MULTIPLY4(name, round) \
    __attribute__((naked, noinline)) static void name( \
        __attribute__((unused)) const int32_t *x, \
        __attribute__((unused)) const mur_ref_channel *four, \
        __attribute__((unused)) const int8_t *end, __attribute__((unused)) int32_t *sums) \
    { \
        __asm__ volatile("addi sp, sp, -64\n" \
                         MUR_RV_SAVED(sw) \
                         MUR_RV_START(0, s0, s1, s2, s3) \
                         MUR_RV_START(12, s4, s5, s6, s7) \
                         MUR_RV_START(24, s8, s9, s10, s11) \
                         MUR_RV_START(36, t4, t5, t6, ra) \
                         "li a3, " #round "\n" \
                         "addi a1, a1, 48\n" \
                         "1: lb a4, 0(a1)\n" \
                         "lb a5, 4(a1)\n" \
                         "lw t0, 0(a0)\n" \
                         "lw t2, 8(a0)\n" \
                         "lw t1, 4(a0)\n" \
                         "lw t3, 12(a0)\n" \
                         MUR_RV_CHANNEL(a4, a5, a6, a7, "lb a7, 1(a1)\n", "lb a5, 5(a1)\n", \
                                        s0, s1, s2, s3) \
                         MUR_RV_CHANNEL(a7, a5, a4, a6, "lb a6, 2(a1)\n", "lb a5, 6(a1)\n", \
                                        s4, s5, s6, s7) \
                         MUR_RV_CHANNEL(a6, a5, a7, a4, "lb a4, 3(a1)\n", "lb a5, 7(a1)\n", \
                                        s8, s9, s10, s11) \
                         MUR_RV_CHANNEL(a4, a5, a6, a7, "addi a1, a1, 8\n", \
                                        "addi a0, a0, 16\n", t4, t5, t6, ra) \
                         "bne a1, a2, 1b\n" \
                         "lw a3, 52(sp)\n" \
                         MUR_RV_STORE(0, s0, s1, s2, s3) \
                         MUR_RV_STORE(16, s4, s5, s6, s7) \
                         MUR_RV_STORE(32, s8, s9, s10, s11) \
                         MUR_RV_STORE(48, t4, t5, t6, ra) \
                         MUR_RV_SAVED(lw) \
                         "addi sp, sp, 64\n" \
                         "ret\n"); \
    }
/* clang-format on */

#else

static inline void mur_rv_multiply4_by(const int32_t *x, const mur_ref_channel *four,
                                       const int8_t *end, int32_t *sums, uint32_t round)
{
    const int8_t *start = (const int8_t *)(four + MUR_RV_CHANNELS);

    for (int32_t i = 0; i < MUR_RV_CHANNELS; i++, four++)
        for (int32_t pair = 0; pair < 2; pair++) {
            uint32_t s = 0;
            int32_t t = 0, k = pair;

            for (const int8_t *w = start + i; w < end; w += 8, k += 4) {
                uint32_t p = (uint32_t)x[k] * (uint32_t)w[0] + (uint32_t)x[k + 2] * (uint32_t)w[4];

                s += p;
                t += mur_asr((int32_t)(p + round), 16);
            }
            *sums++ = (int32_t)((uint32_t)four->bias + s - ((uint32_t)t << 16));
            *sums++ = four->bias + t;
        }
}

#define MUR_RV_MULTIPLY4(name, round) \
    static void name(const int32_t *x, const mur_ref_channel *four, const int8_t *end, \
                     int32_t *sums) \
    { \
        mur_rv_multiply4_by(x, four, end, sums, (uint32_t)(round)); \
    }

#endif

/* the same of one pixel: sums [channel] */
static inline void mur_rv_multiply1(const int8_t *x, const mur_ref_channel *four, const int8_t *end,
                                    int32_t *sums)
{
    const int8_t *w = (const int8_t *)(four + MUR_RV_CHANNELS);
    int32_t a = four[0].bias, b = four[1].bias, c = four[2].bias, d = four[3].bias;

    for (; w != end; w += 8, x += 2) {
        int32_t x0 = x[0], x1 = x[1];

        a += x0 * w[0], b += x0 * w[1], c += x0 * w[2], d += x0 * w[3];
        a += x1 * w[4], b += x1 * w[5], c += x1 * w[6], d += x1 * w[7];
    }
    sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
}

/* what the t lack of sums with -32769: 1 for each two inputs */
static inline void mur_rv_widen(int32_t *sums, int32_t inputs)
{
    for (int32_t i = 0; i < MUR_RV_CHANNELS * MUR_RV_PIXELS; i += 2) {
        sums[i] = (int32_t)((uint32_t)sums[i] - ((uint32_t)inputs << 15));
        sums[i + 1] += inputs >> 1;
    }
}

#endif
