/* pack_dsp_low.c - what the host does for mur_dsp_low.c. */
#include "mur_dsp_low.h"
#include "mur_low.h"
#include "mur_low_arith.h"

#include <string.h>

size_t mur_dsp_low_bytes(uint32_t bits, uint32_t n, uint32_t k)
{
    uint32_t group = mur_low_group(bits);

    return (size_t)((n + group - 1) / group) * mur_low_words(bits, k) * 4;
}

void mur_dsp_low_pack(uint32_t bits, uint32_t n, uint32_t k, const int8_t *levels,
                      const uint16_t *scales, void *packed)
{
    uint32_t group = mur_low_group(bits), words = mur_low_words(bits, k), *to = packed;

    memset(packed, 0, mur_dsp_low_bytes(bits, n, k));
    for (uint32_t r = 0; r < n; r++) {
        uint32_t *start = to + (size_t)(r / group) * words, row = r % group;
        uint32_t *scale = start + words - group / 2 + row / 2;

        for (uint32_t i = 0; i < k; i++) {
            uint32_t code = (uint32_t)(levels[(size_t)r * k + i] + mur_low_most(bits)) / 2;
            uint32_t shift, flip, word = mur_low_place(bits, row, i, &shift, &flip);

            start[word] |= (code ^ flip) << shift;
        }
        *scale |= (uint32_t)scales[r] << row % 2 * 16;
    }
}
