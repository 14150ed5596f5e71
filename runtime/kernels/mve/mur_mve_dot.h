/* mur_mve_dot.h - mur_dot.h in vectors; the rows may lie anywhere. */
#ifndef MUR_MVE_DOT_H
#define MUR_MVE_DOT_H

#include "mur_dot.h"
#include "mur_mve.h"

#if MUR_HAVE_MVE

/* sum + a . b; size and load: of an element */
#define MUR_MVE_DOT(name, type, size, load) \
    static inline int32_t name(const type *a, const type *b, uint32_t count, int32_t sum) \
    { \
        __asm__ volatile("wlstp." size " lr, %3, 2f\n" \
                         "1: " load " q0, [%1], #16\n" load " q1, [%2], #16\n" \
                         "vmladava.s" size " %0, q0, q1\n" \
                         "letp lr, 1b\n" \
                         "2:" \
                         : "+Te"(sum), "+l"(a), "+l"(b) \
                         : "r"(count) \
                         : "lr", "q0", "q1", "memory"); \
        return sum; \
    }
MUR_MVE_DOT(mur_mve_dot_s8, int8_t, "8", "vldrb.8")
MUR_MVE_DOT(mur_mve_dot_s16, int16_t, "16", "vldrh.16")
#undef MUR_MVE_DOT

/* of a and b less zero */
static inline int32_t mur_mve_dot_less_s8(const int8_t *a, const int8_t *b, uint32_t count,
                                          int32_t zero, int32_t sum)
{
    int32_t total = 0;

    __asm__ volatile("wlstp.8 lr, %4, 2f\n"
                     "1: vldrb.8 q0, [%2], #16\n"
                     "vldrb.8 q1, [%3], #16\n"
                     "vmladava.s8 %0, q0, q1\n"
                     "vaddva.s8 %1, q0\n"
                     "letp lr, 1b\n"
                     "2:"
                     : "+Te"(sum), "+Te"(total), "+l"(a), "+l"(b)
                     : "r"(count)
                     : "lr", "q0", "q1", "memory");
    return (int32_t)((uint32_t)sum - (uint32_t)zero * (uint32_t)total);
}

#else

#define mur_mve_dot_s8 mur_dot_s8
#define mur_mve_dot_s16 mur_dot_s16
#define mur_mve_dot_less_s8 mur_dot_less_s8

#endif

/* to lies below from and may overlap it */
static inline void mur_mve_bytes_down(void *to, const void *from, uint32_t bytes)
{
    mur_mve_move_down((int8_t *)to, (const int8_t *)from, (int32_t)bytes);
}

#endif
