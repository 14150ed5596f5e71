/* mur_sigmoid.h - TensorFlow Lite's sigmoid and tanh of 16 bits: straight lines between the 256
 * entries of a table of sigmoid(i / 24) in Q0.16. x is in units of 1 / 12288, at most 2^28; results
 * are in Q0.15. */
#ifndef MUR_SIGMOID_H
#define MUR_SIGMOID_H

#include <stdint.h>

/* the size of x in steps of 2^by, of which the table knows 255: 2^by times what lies there */
static inline uint32_t mur_sigmoid_line(const uint16_t *table, uint32_t size, uint32_t by)
{
    const uint32_t i = size >> by, rest = size & ((1u << by) - 1u);

    return ((uint32_t)table[i] << by) + rest * (uint32_t)(table[i + 1] - table[i]);
}

static inline int32_t mur_sigmoid_q15(const uint16_t *table, int32_t x)
{
    const uint32_t size = (uint32_t)(x < 0 ? -x : x);
    uint32_t y = (uint32_t)0x7fff << 10;

    if (size >> 9 < 255)
        y = mur_sigmoid_line(table, size, 9);
    y = x < 0 ? ((uint32_t)1 << 25) - y + 511 : y + 512;
    return (int32_t)(y >> 10);
}

/* 2 sigmoid(2 x) - 1 */
static inline int32_t mur_tanh_q15(const uint16_t *table, int32_t x)
{
    const uint32_t size = (uint32_t)(x < 0 ? -x : x);
    int32_t y = 0xffff << 8;

    if (size >> 8 < 255)
        y = (int32_t)mur_sigmoid_line(table, size, 8);
    y -= 1 << 23;
    return (x < 0 ? 127 - y : 128 + y) >> 8;
}

#endif
