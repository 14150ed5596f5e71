/* pack_bd.c - what the host does for BlockDialect matrices, of every instruction set. */
#include "mur_bd_arith.h"

#include <string.h>

/* the code of a level under a header, or -1; of two zeros the positive one */
static int code_of(int level, uint32_t header)
{
    for (int code = 0; code < 16; code++)
        if (mur_bd_levels[header >> 4][code] * (int)(header & MUR_BD_FACTOR) == level)
            return code;
    return -1;
}

int mur_bd_header(const int8_t *levels, uint32_t count)
{
    for (uint32_t factor = 1; factor <= 8; factor *= 2)
        for (uint32_t dialect = 0; dialect < MUR_BD_DIALECTS; dialect++) {
            uint32_t header = dialect << 4 | factor, i = 0;

            while (i < count && code_of(levels[i], header) >= 0)
                i++;
            if (i == count)
                return (int)header;
        }
    return -1;
}

size_t mur_bd_bytes(uint32_t n, uint32_t k)
{
    return (size_t)(n + 1) / 2 * 4 + ((size_t)n * mur_bd_row_bytes(k) + MUR_BD_SLACK + 3) / 4 * 4;
}

void mur_bd_pack(uint32_t n, uint32_t k, const int8_t *levels, const uint16_t *scales, void *packed)
{
    uint8_t *w = (uint8_t *)packed + (size_t)(n + 1) / 2 * 4;

    memset(packed, 0, mur_bd_bytes(n, k));
    memcpy(packed, scales, n * sizeof(*scales));
    for (uint32_t r = 0; r < n; r++, levels += k, w += mur_bd_row_bytes(k))
        for (uint32_t i = 0; i < k; i++) {
            uint8_t *block = w + i / MUR_BD_ELEMS * MUR_BD_BYTES;
            uint8_t *pair = block + 1 + i % MUR_BD_ELEMS / 2;

            if (i % MUR_BD_ELEMS == 0)
                *block = (uint8_t)mur_bd_header(levels + i, mur_bd_count(k, i));
            *pair = (uint8_t)(*pair | code_of(levels[i], *block) << i % 2 * 4);
        }
}
