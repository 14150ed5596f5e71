/* pack_low.c - what the host does for mur_ref_low.c. */
#include "mur_low.h"
#include "mur_low_arith.h"

#include <string.h>

size_t mur_ref_low_bytes(uint32_t bits, uint32_t n, uint32_t k)
{
    return (size_t)(n + 1) / 2 * 4 + ((size_t)n * ((k * bits + 7) / 8) + 3) / 4 * 4;
}

void mur_ref_low_pack(uint32_t bits, uint32_t n, uint32_t k, const int8_t *levels,
                      const uint16_t *scales, void *packed)
{
    uint8_t *codes = (uint8_t *)packed + (n + 1) / 2 * 4;

    memset(packed, 0, mur_ref_low_bytes(bits, n, k));
    memcpy(packed, scales, n * sizeof(*scales));
    for (uint32_t r = 0; r < n; r++, levels += k, codes += (k * bits + 7) / 8)
        for (uint32_t i = 0; i < k; i++) {
            int code = (levels[i] + mur_low_most(bits)) / 2;

            codes[i * bits / 8] = (uint8_t)(codes[i * bits / 8] | code << i * bits % 8);
        }
}
