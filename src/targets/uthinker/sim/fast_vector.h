/* fast_vector.h - what the vector unit of the simulated machine does, for processors with AVX2.
 *
 * Absent on other kinds of processors.
 */
#ifndef UTHINKER_FAST_VECTOR_H
#define UTHINKER_FAST_VECTOR_H

#include "mur_block.h"

/* Takes and gives what mur_block_encode does, bit for bit. */
uint32_t muc_fast_encode(const float *x, uint32_t n, uint32_t terms, uint8_t *slot);
/* The same for processors with AVX-512, its VL, BW and DQ. */
uint32_t muc_fast_encode_avx512(const float *x, uint32_t n, uint32_t terms, uint8_t *slot);

/* mur_sim_exps, bit for bit. */
void muc_fast_exps(float *x, uint32_t n);

#endif
