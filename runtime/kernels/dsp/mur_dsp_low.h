/* mur_dsp_low.h - how matrices of 2 and 4 bits lie for mur_dsp_low.c.
 *
 * Groups of 8 rows of 2 bits, or 4 of 4 bits: for every four columns two words of two columns each,
 * the first one's indices in the low half, and after them the rows' scales. In a half word indices
 * lie so that a mask (and a rotation) leaves two rows of 2 bits 14 places apart, or so that masks
 * take one row of 4 bits after the other off. The uppermost index of a half word is less by half
 * its range: the half word is a signed number.
 */
#ifndef MUR_DSP_LOW_H
#define MUR_DSP_LOW_H

#include <stdint.h>

/* rows of a group */
static inline uint32_t mur_low_group(uint32_t bits)
{
    return 16 / bits;
}

/* words of a group: its indices, its scales */
static inline uint32_t mur_low_words(uint32_t bits, uint32_t k)
{
    return (k + 3) / 4 * 2 + mur_low_group(bits) / 2;
}

/* in which word of a group an index lies, and where; *flip is what its bits are xored with */
static inline uint32_t mur_low_place(uint32_t bits, uint32_t row, uint32_t column, uint32_t *shift,
                                     uint32_t *flip)
{
    uint32_t half = column % 2 * 16;

    if (bits == 2) {
        *shift = (half + row / 2 * 4 + row % 2 * 14) % 32;
        *flip = row % 2 ? 2 : 0;
    } else {
        *shift = half + row * 4;
        *flip = row == 3 ? 8 : 0;
    }
    return column / 2;
}

#endif
