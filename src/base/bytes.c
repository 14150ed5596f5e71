/* bytes.c - reads integers and floats from a file's bytes; every length is compared with what is
 * left first. */
#include "base/bytes.h"

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

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

muc_status muc_read_word(muc_reader *reader, uint32_t bytes, const char *what, uint64_t *out)
{
    const uint8_t *p;

    MUC_TRY(muc_read_span(reader, bytes, what, &p));
    *out = 0;
    for (uint32_t i = 0; i < bytes; i++)
        *out |= (uint64_t)p[i] << 8 * i;
    return MUC_OK;
}

muc_status muc_read_f32(muc_reader *reader, const char *what, float *out)
{
    uint32_t bits;

    MUC_TRY(muc_read_u32(reader, what, &bits));
    memcpy(out, &bits, sizeof(bits));
    return MUC_OK;
}

const char *muc_find_part(const char *text, size_t size, const char *part, size_t part_size)
{
    const char *end = text + size;

    if (part_size == 0)
        return text;
    for (const char *at = text; (size_t)(end - at) >= part_size; at++) {
        at = memchr(at, part[0], (size_t)(end - at) - part_size + 1);
        if (!at || memcmp(at, part, part_size) == 0)
            return at;
    }
    return NULL;
}

static char small_letter(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool muc_are_alike(const char *a, const char *b, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (small_letter(a[i]) != small_letter(b[i]))
            return false;
    return true;
}

enum { CRC_BYTES = 8, FOLDED = 64 };

/* [k][b]: what byte b changes that k bytes follow */
static uint32_t crc_tables[CRC_BYTES][256];
/* what takes the first and the second half of 16 bytes FOLDED bytes further */
static uint64_t crc_factors[2];

/* x^n modulo the polynomial, as a factor of a product without carries */
static uint64_t crc_power(unsigned n)
{
    uint32_t power = 0x80000000u;

    while (n-- > 0)
        power = power & 1 ? 0xedb88320 ^ power >> 1 : power >> 1;
    return (uint64_t)power << 1;
}

static void make_crc_tables(void)
{
    crc_factors[0] = crc_power(8 * FOLDED + 32);
    crc_factors[1] = crc_power(8 * FOLDED - 32);
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;

        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? 0xedb88320 ^ crc >> 1 : crc >> 1;
        crc_tables[0][b] = crc;
    }
    for (int k = 1; k < CRC_BYTES; k++)
        for (uint32_t b = 0; b < 256; b++) {
            uint32_t before = crc_tables[k - 1][b];

            crc_tables[k][b] = crc_tables[0][before & 255] ^ before >> 8;
        }
}

/* ---- 64 bytes at a time, as polynomials ---- */

#if defined(__x86_64__) && defined(__GNUC__)

/* FOLDED bytes with the same remainder as all whole ones of data, which *data and *size leave. */
__attribute__((target("pclmul,sse4.1"))) static void fold_bytes(uint32_t crc, const uint8_t **data,
                                                                size_t *size, uint8_t out[FOLDED])
{
    const __m128i factors = _mm_loadu_si128((const void *)crc_factors);
    __m128i x[FOLDED / 16];

    for (unsigned i = 0; i < FOLDED / 16; i++)
        x[i] = _mm_loadu_si128((const void *)(*data + 16 * i));
    x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)crc));
    for (*data += FOLDED, *size -= FOLDED; *size >= FOLDED; *data += FOLDED, *size -= FOLDED)
        for (unsigned i = 0; i < FOLDED / 16; i++) {
            __m128i low = _mm_clmulepi64_si128(x[i], factors, 0x00);
            __m128i high = _mm_clmulepi64_si128(x[i], factors, 0x11);

            x[i] = _mm_xor_si128(_mm_xor_si128(low, high),
                                 _mm_loadu_si128((const void *)(*data + 16 * i)));
        }
    memcpy(out, x, FOLDED);
}

static bool can_fold(size_t size)
{
    return size >= 4 * (size_t)FOLDED && __builtin_cpu_supports("pclmul") &&
           __builtin_cpu_supports("sse4.1");
}

#else

static void fold_bytes(uint32_t crc, const uint8_t **data, size_t *size, uint8_t out[FOLDED])
{
    (void)crc, (void)data, (void)size, (void)out;
}

static bool can_fold(size_t size)
{
    (void)size;
    return false;
}

#endif

static uint32_t add_bytes(uint32_t crc, const uint8_t *data, size_t size)
{
    for (; size >= CRC_BYTES; data += CRC_BYTES, size -= CRC_BYTES) {
        uint64_t x = muc_load_u64(data) ^ crc;

        crc = 0;
        for (int k = 0; k < CRC_BYTES; k++)
            crc ^= crc_tables[CRC_BYTES - 1 - k][x >> 8 * k & 255];
    }
    for (; size > 0; data++, size--)
        crc = crc_tables[0][(crc ^ *data) & 255] ^ crc >> 8;
    return crc;
}

uint32_t muc_crc32(uint32_t crc, const uint8_t *data, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint8_t folded[FOLDED];

    pthread_once(&once, make_crc_tables);
    crc = ~crc;
    if (can_fold(size)) {
        fold_bytes(crc, &data, &size, folded);
        crc = add_bytes(0, folded, sizeof(folded));
    }
    return ~add_bytes(crc, data, size);
}
