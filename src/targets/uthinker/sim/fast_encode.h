/* fast_encode.h - mur_block_encode for processors with AVX2. */
#ifndef UTHINKER_FAST_ENCODE_H
#define UTHINKER_FAST_ENCODE_H

#include "mur_block.h"

/* Takes and gives what mur_block_encode does, bit for bit; it runs with AVX2 alone. Absent on other
 * kinds of processors. */
uint32_t muc_fast_encode(const float *x, uint32_t n, uint32_t terms, uint8_t *slot);

#endif
