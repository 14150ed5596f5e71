/* half_cases.h - binary16 to and from binary32 by mur_half.h, against what the bits of both stand
 * for. Freestanding: the same cases run on the host and on emulated boards, some of whose FPUs
 * convert. */
#ifndef HALF_CASES_H
#define HALF_CASES_H

#include <stdint.h>

/* Every half: how many become another binary32. */
uint32_t half_check_widening(void);

/* What lies at and around every half and every middle of two, `rounds` drawn bits, and NaNs: how
 * many become another half. */
uint32_t half_check_narrowing(uint32_t rounds);

#endif
