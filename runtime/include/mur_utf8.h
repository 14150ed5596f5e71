/* mur_utf8.h - characters of UTF-8, one by one. */
#ifndef MUR_UTF8_H
#define MUR_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum { MUR_RAW_BYTE = 0x110000 }; /* + a byte that is not UTF-8 */

/* The character at the head of the text, which has a byte at least; its bytes go to *length. */
static inline uint32_t mur_utf8_read(const uint8_t *text, size_t size, size_t *length)
{
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    const uint32_t first = text[0];
    const size_t wanted = first < 0x80                    ? 1
                          : first >= 0xc2 && first < 0xe0 ? 2
                          : first >= 0xe0 && first < 0xf0 ? 3
                          : first >= 0xf0 && first < 0xf5 ? 4
                                                          : 0;
    uint32_t code = wanted == 1 ? first : first & (0x7fu >> wanted);
    size_t i = 1;

    while (i < wanted && i < size && (text[i] & 0xc0) == 0x80)
        code = code << 6 | (text[i++] & 0x3fu);
    *length = 1;
    if (wanted == 0 || i < wanted || code < least[wanted] || code > 0x10ffff ||
        (code >= 0xd800 && code < 0xe000))
        return MUR_RAW_BYTE + first;
    *length = wanted;
    return code;
}

/* Writes a character, or a byte that is none, and returns its bytes, at most 4. */
static inline size_t mur_utf8_write(uint32_t code, uint8_t *out)
{
    if (code < 0x80 || code >= MUR_RAW_BYTE) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xc0 | code >> 6);
        out[1] = (uint8_t)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (uint8_t)(0xe0 | code >> 12);
        out[1] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
        out[2] = (uint8_t)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | code >> 18);
    out[1] = (uint8_t)(0x80 | (code >> 12 & 0x3f));
    out[2] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
    out[3] = (uint8_t)(0x80 | (code & 0x3f));
    return 4;
}

#endif
