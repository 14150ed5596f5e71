/* bytes.c - every length is held against what is left before a pointer moves. */
#include "base/bytes.h"

#include <stdio.h>
#include <string.h>

muc_status muc_read_fail(const muc_reader *reader, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return muc_fail(reader->ctx, MUC_MALFORMED, reader->bytes.name, reader->at, "%s", text);
}

muc_status muc_read_span(muc_reader *reader, uint64_t size, const char *what, const uint8_t **out)
{
    if (size > muc_reader_left(reader))
        return muc_read_fail(reader, "%s needs %llu bytes, the file has %zu left", what,
                             (unsigned long long)size, muc_reader_left(reader));
    *out = reader->bytes.data + reader->at;
    reader->at += (size_t)size;
    return MUC_OK;
}

muc_status muc_read_u8(muc_reader *reader, const char *what, uint8_t *out)
{
    const uint8_t *p;

    MUC_TRY(muc_read_span(reader, 1, what, &p));
    *out = p[0];
    return MUC_OK;
}

muc_status muc_read_u16(muc_reader *reader, const char *what, uint16_t *out)
{
    const uint8_t *p;

    MUC_TRY(muc_read_span(reader, 2, what, &p));
    *out = muc_load_u16(p);
    return MUC_OK;
}

muc_status muc_read_u32(muc_reader *reader, const char *what, uint32_t *out)
{
    const uint8_t *p;

    MUC_TRY(muc_read_span(reader, 4, what, &p));
    *out = muc_load_u32(p);
    return MUC_OK;
}

muc_status muc_read_u64(muc_reader *reader, const char *what, uint64_t *out)
{
    const uint8_t *p;

    MUC_TRY(muc_read_span(reader, 8, what, &p));
    *out = muc_load_u64(p);
    return MUC_OK;
}

muc_status muc_read_f32(muc_reader *reader, const char *what, float *out)
{
    uint32_t bits;

    MUC_TRY(muc_read_u32(reader, what, &bits));
    memcpy(out, &bits, sizeof(bits));
    return MUC_OK;
}

uint32_t muc_crc32(uint32_t crc, const uint8_t *data, size_t size)
{
    /* one nibble a step: sixteen words of table, fast enough for images read once */
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };

    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc = table[(crc ^ data[i]) & 15] ^ crc >> 4;
        crc = table[(crc ^ data[i] >> 4) & 15] ^ crc >> 4;
    }
    return ~crc;
}
