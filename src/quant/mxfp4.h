/* mxfp4.h - MXFP4 of the OCP Microscaling specification 1.0, the yardstick beside BlockDialect.
 *
 * A block of up to 32 elements shares a power of two, 2^(byte - 127); an element is E2M1: a sign
 * bit and one of 0, 0.5, 1, 1.5, 2, 3, 4, 6.
 */
#ifndef MUC_MXFP4_H
#define MUC_MXFP4_H

#include <stdint.h>

enum { MUC_MXFP4_ELEMS = 32, MUC_MXFP4_BYTES = 17 };

/* n elements, 1..32, finite. The scale is that of the specification's section 6.3, elements go to
 * the nearest value, ties to even, beyond 6 to 6. Element i is in byte 1 + i/2, even i low;
 * 1 + ceil(n/2) bytes are written. */
void muc_mxfp4_encode(const float *values, unsigned n, uint8_t out[MUC_MXFP4_BYTES]);
void muc_mxfp4_decode(const uint8_t *block, unsigned n, float *values);

/* Replaces count values, in blocks of 32 from the first on, by what their encoding decodes to. */
void muc_mxfp4_round(float *values, uint64_t count);

#endif
