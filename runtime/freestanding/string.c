/* string.c - the four functions of string.h that the runtime and the compiler itself call.
 */
#include "string.h"

#include <stdint.h>

/* Whole words where both ends are aligned, as weights and rows of logits are, or where the core
 * reads and writes them anywhere. */
#ifdef __ARM_FEATURE_UNALIGNED
typedef uint32_t word __attribute__((aligned(1), may_alias));
#else
typedef uint32_t word __attribute__((may_alias));
#endif

static int takes_words(const void *a, const void *b)
{
    return (((uintptr_t)a | (uintptr_t)b) & (__alignof__(word) - 1)) == 0;
}

void *memcpy(void *restrict to, const void *restrict from, size_t count)
{
    uint8_t *t = to;
    const uint8_t *f = from, *const end = f + count;

    if (takes_words(t, f)) {
        for (; end - f >= 16; t += 16, f += 16) {
            word *out = (word *)(void *)t;
            const word *in = (const word *)(const void *)f;

            out[0] = in[0], out[1] = in[1], out[2] = in[2], out[3] = in[3];
        }
        for (; end - f >= 4; t += 4, f += 4)
            *(word *)(void *)t = *(const word *)(const void *)f;
    }
    while (f != end)
        *t++ = *f++;
    return to;
}

void *memmove(void *to, const void *from, size_t count)
{
    uint8_t *t = to;
    const uint8_t *f = from;

    if ((uintptr_t)t - (uintptr_t)f >= count) /* forwards overwrites nothing still to be read */
        return memcpy(to, from, count);
    while (count-- != 0)
        t[count] = f[count];
    return to;
}

void *memset(void *to, int byte, size_t count)
{
    uint8_t *t = to, *const end = t + count;

    if (takes_words(t, t))
        for (; end - t >= 4; t += 4)
            *(word *)(void *)t = (uint8_t)byte * 0x01010101u;
    while (t != end)
        *t++ = (uint8_t)byte;
    return to;
}

int memcmp(const void *a, const void *b, size_t count)
{
    const uint8_t *x = a, *y = b;

    for (; count-- != 0; x++, y++)
        if (*x != *y)
            return *x < *y ? -1 : 1;
    return 0;
}
