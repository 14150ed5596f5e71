/* pack_mve_low.c - what the host does for mur_mve_low.c. */
#include "mur_low.h"
#include "mur_low_arith.h"
#include "mur_mve_low.h"

#include <string.h>

size_t mur_mve_low_bytes(uint32_t bits, uint32_t n, uint32_t k)
{
    return mur_mve_low_streams(n) + ((size_t)((n + 3) / 4 * 4) * bits / 8 * k + 3) / 4 * 4;
}

void mur_mve_low_pack(uint32_t bits, uint32_t n, uint32_t k, const int8_t *levels,
                      const uint16_t *scales, void *packed)
{
    uint8_t *streams = (uint8_t *)packed + mur_mve_low_streams(n);

    memset(packed, 0, mur_mve_low_bytes(bits, n, k));
    memcpy(packed, scales, n * sizeof(*scales));
    for (uint32_t r = 0; r < n; r++)
        for (uint32_t i = 0; i < k; i++) {
            uint32_t code = (uint32_t)(levels[(size_t)r * k + i] + mur_low_most(bits)) / 2;
            uint32_t shift, flip;
            size_t at = mur_mve_low_place(bits, k, r, i, &shift, &flip);

            streams[at] = (uint8_t)(streams[at] | (code ^ flip) << shift);
        }
}
