/* pack_decoder.c - what the host does for mur_ref_decoder.c. */
#include "mur_attend.h"

#include <string.h>

size_t mur_ref_matrix_bytes(uint32_t n, uint32_t k)
{
    return (size_t)n * k;
}

void mur_ref_matrix_pack(uint32_t n, uint32_t k, const int8_t *q, void *packed)
{
    memcpy(packed, q, mur_ref_matrix_bytes(n, k));
}

size_t mur_ref_attention_bytes(const mur_attention_q8 *op)
{
    return MUR_ATTEND_BYTES(op, 1);
}
