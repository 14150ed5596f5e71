/* mur_plain_low.h - how matrices of 2 and 4 bits lie for mur_plain_low.c: the scales [n], to a
 * multiple of 4 bytes; then groups of 16 rows of 2 bits or 8 rows of 4, each a word a column with
 * the first row's index in the lowest bits. Rows are filled up to whole groups.
 */
#ifndef MUR_PLAIN_LOW_H
#define MUR_PLAIN_LOW_H

#include <stdint.h>

/* rows of a group */
static inline uint32_t mur_plain_low_group(uint32_t bits)
{
    return 32 / bits;
}

/* words of the scales */
static inline uint32_t mur_plain_low_words(uint32_t n)
{
    return (n + 1) / 2;
}

#endif
