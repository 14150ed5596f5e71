/* lowbit.h - rows of weights in few bits: indices and 16-bit floats, docs/COMPRESSION.md.
 *
 * Formats are the rows of lowbit.def. Index c of b bits stands for
 *   int8           scale * c, c two's complement
 *   int4, int2     scale * (2 c - (2^b - 1))
 *   cb2            the codebook's entry c
 * Indices of a row follow one another from the low bits of its first byte on. Its numbers are one
 * scale (above 0), or four entries (rising) for each group of elements, the last perhaps short.
 */
#ifndef MUC_LOWBIT_H
#define MUC_LOWBIT_H

#include "base/base.h"

typedef enum muc_lowbit {
#define MUC_LOWBIT(id, name, bits, group, meaning) MUC_LOWBIT_##id,
#include "quant/lowbit.def"
#undef MUC_LOWBIT
    MUC_LOWBIT_COUNT
} muc_lowbit;

enum { MUC_LOWBIT_ENTRIES = 4 }; /* of a codebook */

typedef struct muc_lowbit_info {
    const char *name;
    uint32_t bits, group;
    const char *meaning;
} muc_lowbit_info;

const muc_lowbit_info *muc_lowbit_get(muc_lowbit format);
bool muc_lowbit_find(const char *name, muc_lowbit *out);

/* The format, or int8 where a row of k would not be a whole number of bytes. */
muc_lowbit muc_lowbit_for_row(muc_lowbit format, size_t k);
/* Bytes of a row's indices, and how many 16-bit floats go with them. */
size_t muc_lowbit_code_bytes(muc_lowbit format, size_t k);
size_t muc_lowbit_numbers(muc_lowbit format, size_t k);
/* Bits a weight of a row, all counted. */
double muc_lowbit_bits_per_weight(muc_lowbit format, size_t k);

/* A row of k finite weights in the form that is nearest by least squares, as far as descent from
 * many starts finds it; a codebook's start is the 5th, 35th, 65th and 95th percentile. Weights
 * beyond 65504 are clipped. */
void muc_lowbit_encode(muc_lowbit format, size_t k, const float *w, uint8_t *codes,
                       uint16_t *numbers);
/* The indices of the entries nearest to w, of codebooks that are there. */
void muc_lowbit_encode_entries(muc_lowbit format, size_t k, const float *w, const uint16_t *numbers,
                               uint8_t *codes);
/* The indices of the levels nearest to w under a scale that is there. */
void muc_lowbit_encode_levels(muc_lowbit format, size_t k, const float *w, uint16_t scale,
                              uint8_t *codes);
/* Exact: each product of a scale and an integer has few bits. */
void muc_lowbit_decode(muc_lowbit format, size_t k, const uint8_t *codes, const uint16_t *numbers,
                       float *out);

/* ---- formats with a scale a row: int8 levels, value = scale * level ---- */

/* The largest level. */
int muc_lowbit_most(muc_lowbit format);
/* The level nearest to x; x is a weight divided by its scale. */
int muc_lowbit_nearest(muc_lowbit format, double x);
/* The scale, a 16-bit float as float32, that muc_lowbit_encode would choose. */
float muc_lowbit_scale(muc_lowbit format, size_t k, const float *w);
/* The nearest 16-bit float above 0, as float32. */
float muc_lowbit_round_scale(double scale);
/* Levels to indices and back. */
void muc_lowbit_pack(muc_lowbit format, size_t k, const int8_t *levels, uint8_t *codes);
void muc_lowbit_unpack(muc_lowbit format, size_t k, const uint8_t *codes, int8_t *levels);

#endif
