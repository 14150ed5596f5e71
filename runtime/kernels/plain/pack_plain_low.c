/* pack_plain_low.c - what the host does for mur_plain_low.c. */
#include "mur_low.h"
#include "mur_low_arith.h"
#include "mur_plain_low.h"

#include <string.h>

size_t mur_plain_low_bytes(uint32_t bits, uint32_t n, uint32_t k)
{
    uint32_t group = mur_plain_low_group(bits);

    return mur_plain_low_words(n) * 4 + (size_t)((n + group - 1) / group) * k * 4;
}

void mur_plain_low_pack(uint32_t bits, uint32_t n, uint32_t k, const int8_t *levels,
                        const uint16_t *scales, void *packed)
{
    uint32_t group = mur_plain_low_group(bits),
             *words = (uint32_t *)packed + mur_plain_low_words(n);

    memset(packed, 0, mur_plain_low_bytes(bits, n, k));
    memcpy(packed, scales, n * sizeof(*scales));
    for (uint32_t r = 0; r < n; r++)
        for (uint32_t i = 0; i < k; i++) {
            uint32_t code = (uint32_t)(levels[(size_t)r * k + i] + mur_low_most(bits)) / 2;

            words[(size_t)(r / group) * k + i] |= code << r % group * bits;
        }
}
