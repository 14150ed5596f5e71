/* string.c - the four functions of string.h that the runtime and the compiler itself call.
 */
#include "string.h"

#include <stdint.h>

/* Whole words where both ends are aligned: weights and rows of logits are. */
static int aligned(const void *a, const void *b)
{
    return (((uintptr_t)a | (uintptr_t)b) & (sizeof(uint32_t) - 1)) == 0;
}

void *memcpy(void *restrict to, const void *restrict from, size_t count)
{
    uint8_t *t = to;
    const uint8_t *f = from;

    if (aligned(t, f)) {
        uint32_t *to_word = (uint32_t *)(void *)t;
        const uint32_t *from_word = (const uint32_t *)(const void *)f;

        for (; count >= 4 * sizeof(uint32_t); count -= 4 * sizeof(uint32_t)) {
            to_word[0] = from_word[0], to_word[1] = from_word[1];
            to_word[2] = from_word[2], to_word[3] = from_word[3];
            to_word += 4;
            from_word += 4;
        }
        for (; count >= sizeof(uint32_t); count -= sizeof(uint32_t))
            *to_word++ = *from_word++;
        t = (uint8_t *)to_word;
        f = (const uint8_t *)from_word;
    }
    while (count-- != 0)
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
    uint8_t *t = to;

    while (count-- != 0)
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
