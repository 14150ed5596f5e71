/* mur_whole.h - integers as ONNX's operators have them: products and sums wrap. */
#ifndef MUR_WHOLE_H
#define MUR_WHOLE_H

#include "mur_real_wide.h"

#define mur_above_whole(p, q) ((p) > (q))
#define mur_lesser(p, q) ((p) < (q) ? (p) : (q))
#define mur_larger(p, q) ((p) > (q) ? (p) : (q))

/* index, a negative one from the end, brought into 0..extent-1 */
static inline uint32_t mur_wrap_index(int64_t index, int64_t extent)
{
    index += index < 0 ? extent : 0;
    return (uint32_t)(index < 0 ? 0 : index >= extent ? extent - 1 : index);
}

/* x^y; of a negative power the whole part */
static inline int64_t mur_whole_pow(int64_t x, int64_t y)
{
    uint64_t result = 1, factor = (uint64_t)x;

    if (y < 0)
        return x == 1 ? 1 : x != -1 ? 0 : y & 1 ? -1 : 1;
    for (; y > 0; y >>= 1, factor *= factor)
        if (y & 1)
            result *= factor;
    return (int64_t)result;
}

/* the same to any power, rounded to zero; 0 beyond what 64 bits hold */
static inline int64_t mur_whole_pow_real(int64_t x, float y)
{
    float power;

    if (mur_abs(y) < 1e18f && mur_wholeness(y))
        return mur_whole_pow(x, (int64_t)y);
    power = mur_real_pow((float)x, y);
    return mur_abs(power) < 9e18f ? (int64_t)power : 0;
}

#endif
