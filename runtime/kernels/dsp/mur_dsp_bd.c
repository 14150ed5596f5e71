/* mur_dsp_bd.c - BlockDialect matrices on cores with SMLAD: a table has the two levels of every
 * byte, for each dialect, as half words. Two rows at once share what is loaded of the vector.
 */
#include "mur_bd_arith.h"
#include "mur_decoder.h"
#include "mur_dsp.h"

#define PAIR(a, b) ((uint32_t)(a)&0xffffu) | ((uint32_t)(b) << 16)
#define PAIRS(y, a, b, c, d, e, f, g, h) \
    PAIR(a, y), PAIR(b, y), PAIR(c, y), PAIR(d, y), PAIR(e, y), PAIR(f, y), PAIR(g, y), \
        PAIR(h, y), PAIR(-(a), y), PAIR(-(b), y), PAIR(-(c), y), PAIR(-(d), y), PAIR(-(e), y), \
        PAIR(-(f), y), PAIR(-(g), y), PAIR(-(h), y)

static const uint32_t pairs[MUR_BD_DIALECTS][256] = {
#define MUR_DIALECT(id, a, b, c, d, e, f, g, h) \
    [id] = { PAIRS(a, a, b, c, d, e, f, g, h),    PAIRS(b, a, b, c, d, e, f, g, h), \
             PAIRS(c, a, b, c, d, e, f, g, h),    PAIRS(d, a, b, c, d, e, f, g, h), \
             PAIRS(e, a, b, c, d, e, f, g, h),    PAIRS(f, a, b, c, d, e, f, g, h), \
             PAIRS(g, a, b, c, d, e, f, g, h),    PAIRS(h, a, b, c, d, e, f, g, h), \
             PAIRS(-(a), a, b, c, d, e, f, g, h), PAIRS(-(b), a, b, c, d, e, f, g, h), \
             PAIRS(-(c), a, b, c, d, e, f, g, h), PAIRS(-(d), a, b, c, d, e, f, g, h), \
             PAIRS(-(e), a, b, c, d, e, f, g, h), PAIRS(-(f), a, b, c, d, e, f, g, h), \
             PAIRS(-(g), a, b, c, d, e, f, g, h), PAIRS(-(h), a, b, c, d, e, f, g, h) },
#include "mur_dialect.def"
#undef MUR_DIALECT
};

static inline uint32_t eight(const uint8_t *codes)
{
    return mur_four((const int8_t *)codes);
}

/* columns i and i + 1 of both rows */
#define STEP(i, shift) \
    do { \
        uint32_t two = mur_two(x + (i)); \
        s = mur_smlad(first[a >> (shift)&255], two, s); \
        t = mur_smlad(second[b >> (shift)&255], two, t); \
    } while (0)

/* a block of two rows, or of one twice; reads whole words of codes, whose columns beyond the
 * vector's are zeros there */
static inline void add_block(const uint8_t *const rows[2], uint32_t headers, uint32_t block,
                             const int16_t *x, uint32_t count, int32_t sums[2])
{
    const uint8_t *p = rows[0] + headers + block * (MUR_BD_ELEMS / 2);
    const uint8_t *q = rows[1] + headers + block * (MUR_BD_ELEMS / 2);
    const uint32_t *first = pairs[rows[0][block] >> 4], *second = pairs[rows[1][block] >> 4];
    int32_t s = 0, t = 0;

    for (; count >= 8; count -= 8, x += 8, p += 4, q += 4) {
        uint32_t a = eight(p), b = eight(q);

        STEP(0, 0);
        STEP(2, 8);
        STEP(4, 16);
        STEP(6, 24);
    }
    if (count != 0) {
        uint32_t a = eight(p), b = eight(q);

        STEP(0, 0);
        STEP(2, 8);
        if (count > 4) {
            STEP(4, 16);
            STEP(6, 24);
        }
    }
    sums[0] += s * (1 << (rows[0][block] & 15));
    sums[1] += t * (1 << (rows[1][block] & 15));
}

void mur_dsp_linear_bd(const mur_matrix_low *matrix, uint32_t rows, const void *vectors,
                       const float *scales, float *out)
{
    uint32_t k = matrix->k, headers = mur_bd_headers(k), row_bytes = mur_bd_row_bytes(k);
    const uint16_t *row_scales = matrix->packed;
    const int16_t *x = vectors;

    for (; rows != 0; rows--, x += MUR_DSP_VECTOR_BYTES(k) / 2, scales++, out += matrix->n) {
        const uint8_t *w = mur_bd_row(matrix, 0);

        for (uint32_t n = 0; n < matrix->n; n += 2, w += 2 * row_bytes) {
            uint32_t count = matrix->n - n < 2 ? 1 : 2;
            const uint8_t *const both[2] = { w, count == 2 ? w + row_bytes : w };
            int32_t sums[2] = { 0, 0 };

            for (uint32_t b = 0, i = 0; i < k; b++, i += MUR_BD_ELEMS)
                add_block(both, headers, b, x + i, mur_bd_count(k, i), sums);
            for (uint32_t r = 0; r < count; r++) {
                float y = (float)sums[r] * (*scales * mur_half(row_scales[n + r]));

                out[n + r] = matrix->bias ? y + matrix->bias[n + r] : y;
            }
        }
    }
}
