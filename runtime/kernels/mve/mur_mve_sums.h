/* mur_mve_sums.h - sums of products with weights in fours of channels, as mur_mve.h says. */
#ifndef MUR_MVE_SUMS_H
#define MUR_MVE_SUMS_H

#include "mur_mve.h"

#if MUR_HAVE_MVE

/* Sums of four channels, with their biases, over whole vectors of inputs at x and the rest, in
 * `last` with zeros behind, whose weights are `rest` apart. */
static inline int32x4_t mur_mve_sums(const int8_t *x, uint32_t vectors, int8x16_t last,
                                     uint32_t rest, const int32_t *bias, const int8_t *w)
{
    register int32_t a __asm__("r4") = bias[0];
    register int32_t b __asm__("r6") = bias[1];
    register int32_t c __asm__("r8") = bias[2];
    register int32_t d __asm__("r10") = bias[3];
    int32x4_t sums;

    if (vectors > 0)
        __asm__ volatile("dls lr, %6\n"
                         "1: vldrb.8 q0, [%4], #16\n"
                         "vldrb.8 q1, [%5], #16\n"
                         "vmladava.s8 %0, q0, q1\n"
                         "vldrb.8 q2, [%5], #16\n"
                         "vmladava.s8 %1, q0, q2\n"
                         "vldrb.8 q1, [%5], #16\n"
                         "vmladava.s8 %2, q0, q1\n"
                         "vldrb.8 q2, [%5], #16\n"
                         "vmladava.s8 %3, q0, q2\n"
                         "le lr, 1b\n"
                         : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(x), "+r"(w)
                         : "r"(vectors)
                         : "lr", "q0", "q1", "q2", "memory");
    if (rest > 0) {
        a = vmladavaq_s8(a, last, vldrbq_s8(w));
        w += rest;
        b = vmladavaq_s8(b, last, vldrbq_s8(w));
        w += rest;
        c = vmladavaq_s8(c, last, vldrbq_s8(w));
        d = vmladavaq_s8(d, last, vldrbq_s8(w + rest));
    }
    __asm__("vmov %q0[2], %q0[0], %1, %3\n"
            "vmov %q0[3], %q0[1], %2, %4\n"
            : "=w"(sums)
            : "r"(a), "r"(b), "r"(c), "r"(d));
    return sums;
}

#else

/* of channel i of four, without bias, over `inputs` inputs */
static inline int32_t mur_mve_sum(const int8_t *x, int32_t inputs, const int8_t *w, int32_t i)
{
    int32_t sum = 0;

    for (int32_t k = 0; k < inputs; k++) {
        int32_t start = k & ~(MUR_MVE_BYTES - 1), length = inputs - start;

        if (length > MUR_MVE_BYTES)
            length = MUR_MVE_BYTES;
        sum += x[k] * w[4 * start + i * length + (k - start)];
    }
    return sum;
}

#endif

#endif
