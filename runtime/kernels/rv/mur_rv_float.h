/* mur_rv_float.h - binary32 on RV32IM without floating point: what the compiler calls for +, -, *,
 * /, comparisons and conversions, in fewer instructions than its library takes.
 *
 * Numbers are their bits, which is how the soft-float ABI passes them. Every result is IEEE's,
 * rounded to nearest, halves to even, subnormal numbers included; a NaN is 0x7fc00000. Where the
 * ABI is that one, the functions have the names that compilers call and take the library's place;
 * they are weak, so that a library that is linked whole does not conflict.
 */
#ifndef MUR_RV_FLOAT_H
#define MUR_RV_FLOAT_H

#include <stdint.h>

#if defined(__riscv_float_abi_soft) && __riscv_xlen == 32 && !defined(__riscv_flen)
#define MUR_RV_CALLED(name) __asm__(name) __attribute__((weak))
#else
#define MUR_RV_CALLED(name)
#endif

uint32_t mur_rv_float_add(uint32_t a, uint32_t b) MUR_RV_CALLED("__addsf3");
uint32_t mur_rv_float_sub(uint32_t a, uint32_t b) MUR_RV_CALLED("__subsf3");
uint32_t mur_rv_float_mul(uint32_t a, uint32_t b) MUR_RV_CALLED("__mulsf3");
uint32_t mur_rv_float_div(uint32_t a, uint32_t b) MUR_RV_CALLED("__divsf3");

/* of a whole number */
uint32_t mur_rv_float_of(int32_t x) MUR_RV_CALLED("__floatsisf");

/* Negative, 0 or positive as a and b compare, and of a NaN what makes the comparison false. */
int32_t mur_rv_float_lt(uint32_t a, uint32_t b) MUR_RV_CALLED("__ltsf2");
int32_t mur_rv_float_le(uint32_t a, uint32_t b) MUR_RV_CALLED("__lesf2");
int32_t mur_rv_float_gt(uint32_t a, uint32_t b) MUR_RV_CALLED("__gtsf2");
int32_t mur_rv_float_ge(uint32_t a, uint32_t b) MUR_RV_CALLED("__gesf2");
int32_t mur_rv_float_eq(uint32_t a, uint32_t b) MUR_RV_CALLED("__eqsf2");
int32_t mur_rv_float_ne(uint32_t a, uint32_t b) MUR_RV_CALLED("__nesf2");

#endif
