/* bd_golden.c - the golden decoder, online encoder and dot product of BlockDialect. */
#include "ref/golden/bd_golden.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/half.h"

enum { DIALECTS = 16, KIND_B4 = 0, KIND_B5, KIND_R, KINDS };

static const int8_t dialects[DIALECTS][8] = {
#define MUR_DIALECT(id, m0, m1, m2, m3, m4, m5, m6, m7) [id] = { m0, m1, m2, m3, m4, m5, m6, m7 },
#include "mur_dialect.def"
#undef MUR_DIALECT
};

/* A block being read: its bytes, and the header of the block above. */
typedef struct cursor {
    const uint8_t *bytes;
    size_t size, at;
    int above; /* header, or -1 */
} cursor;

static unsigned nibble(const uint8_t *p, size_t i)
{
    return i % 2 ? p[i / 2] >> 4 : p[i / 2] & 15u;
}

static unsigned plane_bit(const uint8_t *p, size_t i)
{
    return (uint32_t)p[i / 8] >> (i % 8) & 1u;
}

/* true if the bits beyond the first `bits` of the bytes that hold them are zero */
static bool is_padded_with_zeros(const uint8_t *p, size_t bits)
{
    return bits % 8 == 0 || p[bits / 8] >> (bits % 8) == 0;
}

static int8_t signed_value(unsigned sign, int8_t m)
{
    return (int8_t)(sign ? -m : m);
}

static bool read_nibbles(const uint8_t *p, size_t n, unsigned dialect, int8_t *m)
{
    for (size_t i = 0; i < n; i++)
        m[i] = signed_value(nibble(p, i) >> 3, dialects[dialect][nibble(p, i) & 7]);
    return is_padded_with_zeros(p, 4 * n);
}

static bool read_b5(const uint8_t *p, size_t n, int8_t *m)
{
    const uint8_t *magnitudes = p + (n + 7) / 8;

    for (size_t i = 0; i < n; i++)
        m[i] = signed_value(plane_bit(p, i), (int8_t)nibble(magnitudes, i));
    return is_padded_with_zeros(p, n) && is_padded_with_zeros(magnitudes, 4 * n);
}

static size_t payload_bytes(unsigned kind, size_t n)
{
    size_t plane = (n + 7) / 8, nibbles = (n + 1) / 2;

    switch (kind) {
    case KIND_B4:
        return nibbles;
    case KIND_B5:
        return plane + nibbles;
    default:
        return 2 * nibbles + 2;
    }
}

static bool read_payload(unsigned header, const uint8_t *p, size_t size, size_t n,
                         muc_golden_block *out)
{
    unsigned kind = header >> 4 & 7, dialect = header >> 12, second;

    if (kind >= KINDS || (header & 15) != 0 || (kind == KIND_B5 && dialect != 0) ||
        size != payload_bytes(kind, n))
        return false;
    out->terms = 1;
    out->exponent[0] = (uint8_t)(header >> 7 & 31);
    switch (kind) {
    case KIND_B5:
        return read_b5(p, n, out->m[0]);
    case KIND_R:
        second = muc_load_u16(p + (n + 1) / 2);
        out->terms = 2;
        out->exponent[1] = (uint8_t)(second >> 7 & 31);
        return (second & 0x7f) == 0 && read_nibbles(p, n, dialect, out->m[0]) &&
               read_nibbles(p + (n + 1) / 2 + 2, n, second >> 12, out->m[1]);
    default:
        return read_nibbles(p, n, dialect, out->m[0]);
    }
}

static bool read_block(cursor *c, size_t n, muc_golden_block *out)
{
    size_t size, header_bytes;
    bool shared;
    int header, above = c->above;
    const uint8_t *p;

    memset(out, 0, sizeof(*out));
    c->above = -1;
    if (c->at >= c->size)
        return false;
    size = c->bytes[c->at] & 127u;
    shared = c->bytes[c->at++] >> 7 != 0;
    if (size == 0)
        return !shared;
    header_bytes = shared ? 0 : 2;
    if (size > c->size - c->at || size < header_bytes)
        return false;
    p = c->bytes + c->at;
    header = shared ? above : muc_load_u16(p);
    if (shared && (above < 0 || ((above >> 4 & 7) != KIND_B4 && (above >> 4 & 7) != KIND_B5)))
        return false;
    c->above = header;
    c->at += size;
    return read_payload((unsigned)header, p + header_bytes, size - header_bytes, n, out);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* the blocks of the tile's columns from `column` on, down to end_row */
static muc_status read_tile(muc_context *ctx, const char *name, cursor *c, size_t row,
                            size_t end_row, size_t column, size_t columns, size_t pieces,
                            muc_golden_block *out)
{
    for (size_t j = 0; j < columns; j++) {
        c->above = -1;
        for (size_t i = row; i < end_row; i += MUC_GOLDEN_BLOCK)
            if (!read_block(c, smaller(MUC_GOLDEN_BLOCK, end_row - i),
                            &out[j * pieces + i / MUC_GOLDEN_BLOCK]))
                return muc_fail(ctx, MUC_MALFORMED, name, c->at,
                                "no valid block at row %zu of column %zu", i, column + j);
    }
    return MUC_OK;
}

static size_t tiles_down(const muc_golden_matrix *matrix)
{
    return (matrix->k + MUC_GOLDEN_TILE_ROWS - 1) / MUC_GOLDEN_TILE_ROWS;
}

size_t muc_golden_start(const muc_golden_matrix *matrix, size_t band)
{
    return muc_load_u32(matrix->sequence + 4 * band * tiles_down(matrix));
}

muc_status muc_golden_decode(muc_context *ctx, const char *name, const muc_golden_matrix *matrix,
                             size_t band, muc_golden_block *out)
{
    const uint8_t *sequence = matrix->sequence;
    size_t k = matrix->k, n = matrix->n, bytes = matrix->bytes;
    size_t down = tiles_down(matrix);
    size_t tiles = down * muc_golden_bands(n), column = band * MUC_GOLDEN_TILE_COLUMNS;
    cursor c = { sequence, bytes, 4 * (tiles + 1), -1 };

    if (bytes / 4 <= tiles)
        return muc_fail(ctx, MUC_MALFORMED, name, 0, "%zu bytes, too few for an index of %zu tiles",
                        bytes, tiles);
    if (band > 0)
        c.at = muc_golden_start(matrix, band);
    for (size_t tile = band * down; tile < (band + 1) * down; tile++) {
        size_t row = tile % down * MUC_GOLDEN_TILE_ROWS;

        if (muc_load_u32(sequence + 4 * tile) != c.at)
            return muc_fail(ctx, MUC_MALFORMED, name, 4 * tile, "tile %zu is at %u, expected %zu",
                            tile, muc_load_u32(sequence + 4 * tile), c.at);
        MUC_TRY(read_tile(ctx, name, &c, row, smaller(row + MUC_GOLDEN_TILE_ROWS, k), column,
                          smaller(MUC_GOLDEN_TILE_COLUMNS, n - column), muc_golden_blocks(k), out));
    }
    if (muc_golden_start(matrix, band + 1) != c.at ||
        (band + 1 == muc_golden_bands(n) && c.at != bytes))
        return muc_fail(ctx, MUC_MALFORMED, name, c.at,
                        "the tiles of band %zu end here, the index says %zu of %zu bytes", band,
                        muc_golden_start(matrix, band + 1), bytes);
    return MUC_OK;
}

/* x as binary16, flushed to zero below its normal numbers, saturated above */
typedef struct half {
    int exponent, mantissa; /* e16, M of section 3 */
    bool negative;
} half;

static half half_of(float x)
{
    uint16_t bits = fabsf(x) < 0x1p-14f ? 0 : muc_f16_of_f32(x);
    half h = { bits >> 10 & 31, 1024 + (bits & 1023), bits >> 15 != 0 };

    if (h.exponent == 31) {
        h.exponent = 30;
        h.mantissa = 2047;
    }
    if (h.exponent == 0)
        h.mantissa = 0;
    return h;
}

static float half_value(half h)
{
    float magnitude = ldexpf((float)h.mantissa, h.exponent - 25);

    return h.negative ? -magnitude : magnitude;
}

/* steps 1 and 2: the shared exponent, and magnitudes in units of 2^(E - 17) */
static int magnitudes_of(const half *x, size_t n, int q[MUC_GOLDEN_BLOCK])
{
    int exponent = 0;

    for (size_t i = 0; i < n; i++)
        if (x[i].exponent - 2 > exponent)
            exponent = x[i].exponent - 2;
    for (size_t i = 0; i < n; i++) {
        int shift = 8 + exponent - x[i].exponent;

        q[i] = shift >= 11 ? 0 : x[i].mantissa >> shift;
    }
    return exponent;
}

/* the index of the one magnitude that mine has and other has not */
static unsigned alone(const int8_t *mine, const int8_t *other)
{
    for (unsigned i = 7; i > 0; i--)
        if (!memchr(other, mine[i], 8))
            return i;
    return 0;
}

static unsigned count_within(const int *q, size_t n, int low, int high)
{
    unsigned count = 0;

    for (size_t i = 0; i < n; i++)
        count += q[i] >= low && q[i] < high;
    return count;
}

/* steps 3 and 4 */
static unsigned choose_dialect(const int *q, size_t n)
{
    const int8_t *a, *b;
    unsigned pair, i, j, in_a, in_b;
    int most = 0;

    for (size_t e = 0; e < n; e++)
        most = q[e] > most ? q[e] : most;
    pair = most / 2 > 8 ? (unsigned)(15 - most / 2) : 7;
    a = dialects[2 * pair];
    b = dialects[2 * pair + 1];
    i = alone(a, b);
    j = alone(b, a);
    if (pair < 7) {
        in_a = count_within(q, n, a[i] + b[j], a[i] + a[i + 1]);
        in_b = count_within(q, n, b[j - 1] + b[j], a[i] + b[j]);
    } else {
        in_a = count_within(q, n, a[i - 1] + a[i], a[i] + a[i + 1]);
        in_b = count_within(q, n, b[j - 1] + b[j], b[j] + b[j + 1]);
    }
    return 2 * pair + (in_b > in_a);
}

static void encode_term(const half *x, size_t n, unsigned term, muc_golden_block *out)
{
    int q[MUC_GOLDEN_BLOCK];
    const int8_t *m;

    out->exponent[term] = (uint8_t)magnitudes_of(x, n, q);
    out->dialect[term] = (uint8_t)choose_dialect(q, n);
    m = dialects[out->dialect[term]];
    for (size_t i = 0; i < n; i++) {
        unsigned index = 0;

        while (index < 7 && q[i] >= m[index] + m[index + 1])
            index++;
        out->m[term][i] = signed_value(x[i].negative, m[index]);
    }
}

static float term_value(const muc_golden_block *block, unsigned term, size_t i)
{
    return ldexpf((float)block->m[term][i], block->exponent[term] - 16);
}

void muc_golden_encode(const float *x, size_t k, unsigned terms, muc_golden_block *out)
{
    half halves[MUC_GOLDEN_BLOCK];

    for (size_t at = 0; at < k; at += MUC_GOLDEN_BLOCK, out++) {
        size_t n = smaller(MUC_GOLDEN_BLOCK, k - at);

        memset(out, 0, sizeof(*out));
        out->terms = (uint8_t)terms;
        for (size_t i = 0; i < n; i++)
            halves[i] = half_of(x[at + i]);
        encode_term(halves, n, 0, out);
        if (terms == 1)
            continue;
        for (size_t i = 0; i < n; i++)
            halves[i] = half_of(half_value(halves[i]) - term_value(out, 0, i));
        encode_term(halves, n, 1, out);
    }
}

void muc_golden_values(const muc_golden_block *block, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = block->terms > 0 ? term_value(block, 0, i) : 0;
        if (block->terms > 1)
            out[i] += term_value(block, 1, i);
    }
}

/* 2^e as a float, e in -126..127 */
static float power_of_two(int e)
{
    return muc_f32_of_bits((uint32_t)(e + 127) << 23);
}

float muc_golden_dot(const muc_golden_block *weights, const muc_golden_block *activations,
                     size_t count, float start)
{
    float sum = start;

    for (size_t b = 0; b < count; b++) {
        const muc_golden_block *w = &weights[b], *a = &activations[b];

        for (unsigned i = 0; i < w->terms; i++) {
            for (unsigned j = 0; j < a->terms; j++) {
                int product = 0;

                for (unsigned e = 0; e < MUC_GOLDEN_BLOCK; e++)
                    product += w->m[i][e] * a->m[j][e];
                sum = sum + (float)product * power_of_two(w->exponent[i] + a->exponent[j] - 32);
            }
        }
    }
    return sum;
}

static size_t put_term(const muc_golden_block *block, unsigned term, unsigned kind, size_t n,
                       uint8_t *out)
{
    const int8_t *m = dialects[block->dialect[term]];

    muc_store_u16(out, (uint16_t)((unsigned)block->dialect[term] << 12 |
                                  (unsigned)block->exponent[term] << 7 | kind << 4));
    memset(out + 2, 0, (n + 1) / 2);
    for (size_t i = 0; i < n; i++) {
        int value = block->m[term][i];
        unsigned index = 0;

        while (m[index] != (value < 0 ? -value : value))
            index++;
        out[2 + i / 2] =
            (uint8_t)(out[2 + i / 2] | ((unsigned)(value < 0) << 3 | index) << (4 * (i % 2)));
    }
    return 2 + (n + 1) / 2;
}

size_t muc_golden_slots(const muc_golden_block *blocks, size_t k, uint8_t *out)
{
    uint8_t *at = out;

    for (size_t done = 0; done < k; done += MUC_GOLDEN_BLOCK, blocks++) {
        size_t n = smaller(MUC_GOLDEN_BLOCK, k - done), size;

        size = put_term(blocks, 0, blocks->terms == 2 ? KIND_R : KIND_B4, n, at + 1);
        if (blocks->terms == 2)
            size += put_term(blocks, 1, 0, n, at + 1 + size);
        at[0] = (uint8_t)size;
        at += 1 + size;
    }
    return (size_t)(at - out);
}
