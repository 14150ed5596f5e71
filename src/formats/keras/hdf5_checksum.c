/* hdf5_checksum.c - computes the checksum of HDF5's metadata: Bob Jenkins's lookup3 over bytes,
 * with the initial value 0. */
#include "formats/keras/hdf5_file.h"

#include <inttypes.h>

enum { BLOCK = 12, BYTES_PER_STEP = 64 };

static uint32_t rotated(uint32_t x, unsigned bits)
{
    return x << bits | x >> (32 - bits);
}

/* the three words take turns; each step rotates by its own number of bits */
static void mix(uint32_t s[3])
{
    static const uint8_t turns[6] = { 4, 6, 8, 16, 19, 4 };

    for (unsigned i = 0; i < 6; i++) {
        uint32_t *a = &s[i % 3], *b = &s[(i + 1) % 3], *c = &s[(i + 2) % 3];

        *a = (*a - *c) ^ rotated(*c, turns[i]);
        *c += *b;
    }
}

static void finish(uint32_t s[3])
{
    static const uint8_t turns[7] = { 14, 11, 25, 16, 4, 14, 24 };

    for (unsigned i = 0; i < 7; i++) {
        uint32_t *to = &s[(i + 2) % 3], from = s[(i + 1) % 3];

        *to = (*to ^ from) - rotated(from, turns[i]);
    }
}

uint32_t muc_hdf5_checksum(const uint8_t *data, size_t size)
{
    uint32_t start = 0xdeadbeefu + (uint32_t)size, s[3] = { start, start, start };

    if (size == 0)
        return start;
    while (size > 0) {
        size_t count = size < BLOCK ? size : BLOCK;

        for (size_t i = 0; i < count; i++)
            s[i / 4] += (uint32_t)data[i] << i % 4 * 8;
        if (size > BLOCK)
            mix(s);
        data += count;
        size -= count;
    }
    finish(s);
    return s[2];
}

muc_status muc_hdf5_check(muc_hdf5 *f, uint64_t begin, uint64_t size, const char *what)
{
    uint32_t stored, found;
    muc_reader r;

    MUC_TRY(muc_hdf5_take_steps(f, size / BYTES_PER_STEP));
    MUC_TRY(muc_hdf5_part(f, begin, size, what, &r));
    MUC_TRY(muc_hdf5_part(f, begin + size, 4, "checksum", &r));
    MUC_TRY(muc_read_u32(&r, "checksum", &stored));
    found = muc_hdf5_checksum(f->bytes.data + begin, (size_t)size);
    if (stored == found)
        return MUC_OK;
    return muc_hdf5_fail(f, MUC_MALFORMED,
                         "the %s at %" PRIu64 " has the checksum %08" PRIx32
                         ", its bytes %08" PRIx32,
                         what, begin, stored, found);
}
