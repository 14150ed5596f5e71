/* mur_turn.h - matrices of bytes turned, so that columns become rows. */
#ifndef MUR_TURN_H
#define MUR_TURN_H

#include <stdint.h>

#if defined(__ARM_FEATURE_UNALIGNED) || defined(__x86_64__) /* words at any address */
#define MUR_TURNS_WORDS

static inline uint32_t mur_word_at(const int8_t *p)
{
    uint32_t word;

    __builtin_memcpy(&word, p, sizeof(word));
    return word;
}

/* four rows of four */
static inline void mur_turn_four(const int8_t *a, uint32_t a_pitch, int8_t *y, uint32_t y_pitch)
{
    const uint32_t low = 0xffff, even = 0x00ff00ff;
    const uint32_t r0 = mur_word_at(a), r1 = mur_word_at(a + a_pitch);
    const uint32_t r2 = mur_word_at(a + 2 * a_pitch), r3 = mur_word_at(a + 3 * a_pitch);
    const uint32_t p = (r0 & low) | r2 << 16, q = (r1 & low) | r3 << 16;
    const uint32_t s = r0 >> 16 | (r2 & ~low), t = r1 >> 16 | (r3 & ~low);
    const uint32_t columns[] = { (p & even) | (q & even) << 8, (p >> 8 & even) | (q & ~even),
                                 (s & even) | (t & even) << 8, (s >> 8 & even) | (t & ~even) };

#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++)
        __builtin_memcpy(y + i * y_pitch, &columns[i], sizeof(columns[i]));
}

#endif

/* y[column][row] = a[row][column]; pitch: from row to row of each */
static inline void mur_turn_bytes(const int8_t *a, uint32_t a_pitch, int8_t *y, uint32_t y_pitch,
                                  uint32_t rows, uint32_t columns)
{
    uint32_t done = 0;

#ifdef MUR_TURNS_WORDS
    for (; done + 4 <= columns; done += 4, a += 4, y += 4 * y_pitch) {
        const int8_t *p = a;
        uint32_t row = 0;

        for (; row + 4 <= rows; row += 4, p += 4 * a_pitch)
            mur_turn_four(p, a_pitch, y + row, y_pitch);
        for (; row < rows; row++, p += a_pitch)
            for (uint32_t i = 0; i < 4; i++)
                y[i * y_pitch + row] = p[i];
    }
#endif
    for (; done < columns; done++, a++, y += y_pitch) {
        const int8_t *p = a;

#pragma GCC unroll 8
        for (uint32_t row = 0; row < rows; row++, p += a_pitch)
            y[row] = *p;
    }
}

#endif
