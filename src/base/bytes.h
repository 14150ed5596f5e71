/* bytes.h - a borrowed range of bytes and a reader that cannot leave it. */
#ifndef MUC_BYTES_H
#define MUC_BYTES_H

#include "base/base.h"

/* Borrows data; name is the file's path, for messages. */
typedef struct muc_bytes {
    const uint8_t *data;
    size_t size;
    const char *name;
} muc_bytes;

/* Borrowed text: any bytes, no NUL at the end. */
typedef struct muc_string_view {
    const char *data;
    size_t size;
} muc_string_view;

typedef struct muc_reader {
    muc_context *ctx;
    muc_bytes bytes;
    size_t at;
} muc_reader;

static inline muc_reader muc_reader_of(muc_context *ctx, muc_bytes bytes)
{
    muc_reader reader = { ctx, bytes, 0 };

    return reader;
}

static inline size_t muc_reader_left(const muc_reader *reader)
{
    return reader->bytes.size - reader->at;
}

/* Each moves past what it reads, or fails with MUC_MALFORMED naming file, offset and `what`. */
muc_status muc_read_span(muc_reader *reader, uint64_t size, const char *what, const uint8_t **out);
muc_status muc_read_u8(muc_reader *reader, const char *what, uint8_t *out);
muc_status muc_read_u16(muc_reader *reader, const char *what, uint16_t *out);
muc_status muc_read_u32(muc_reader *reader, const char *what, uint32_t *out);
muc_status muc_read_u64(muc_reader *reader, const char *what, uint64_t *out);
/* A little-endian integer of 1 to 8 bytes. */
muc_status muc_read_word(muc_reader *reader, uint32_t bytes, const char *what, uint64_t *out);
muc_status muc_read_f32(muc_reader *reader, const char *what, float *out);

/* Fails with MUC_MALFORMED at the reader's position. */
#define muc_read_fail(reader, ...) \
    muc_fail((reader)->ctx, MUC_MALFORMED, (reader)->bytes.name, (reader)->at, __VA_ARGS__)

/* Little-endian words at an unaligned address. */
static inline uint16_t muc_load_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint32_t muc_load_u32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline uint64_t muc_load_u64(const uint8_t *p)
{
    return muc_load_u32(p) | (uint64_t)muc_load_u32(p + 4) << 32;
}
static inline void muc_store_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}
static inline void muc_store_u32(uint8_t *p, uint32_t v)
{
    muc_store_u16(p, (uint16_t)v);
    muc_store_u16(p + 2, (uint16_t)(v >> 16));
}
static inline void muc_store_u64(uint8_t *p, uint64_t v)
{
    muc_store_u32(p, (uint32_t)v);
    muc_store_u32(p + 4, (uint32_t)(v >> 32));
}

/* The first place of a part in bytes, or NULL; a part of no bytes is everywhere. */
const char *muc_find_part(const char *text, size_t size, const char *part, size_t part_size);
/* Whether bytes are the same but for ASCII letters being capitals; stops at the first that differ.
 */
bool muc_are_alike(const char *a, const char *b, size_t size);

/* CRC-32 (IEEE 802.3, as in zlib), continuing from crc; start with 0. */
uint32_t muc_crc32(uint32_t crc, const uint8_t *data, size_t size);

#endif
