/* mur_block.c - BlockDialect blocks on the device.
 *
 * The decision boundaries of all dialects are integers in units of half a magnitude step, so the
 * encoder truncates each element to a 5-bit q of that unit and compares integers; nothing is lost.
 */
#include "mur_block.h"

#include <string.h>

/* The value of each nibble: index 0..7 positive, 8..15 negative. */
static const int8_t nibble_values[16][16] = {
#define MUR_DIALECT(id, a, b, c, d, e, f, g, h) \
    [id] = { a, b, c, d, e, f, g, h, -a, -b, -c, -d, -e, -f, -g, -h },
#include "mur_dialect.def"
#undef MUR_DIALECT
};

static const uint8_t b3_index[4] = { 0, 2, 5, 7 };

/* ---- parsing ---- */

static uint32_t bytes_of_bits(uint32_t bits)
{
    return (bits + 7) >> 3;
}

/* are the bits after the first `used` zero, up to the end of their byte? */
static int rest_is_clear(const uint8_t *p, uint32_t used)
{
    return (used & 7) == 0 || p[used >> 3] >> (used & 7) == 0;
}

static uint32_t bit_at(const uint8_t *p, uint32_t i)
{
    return p[i >> 3] >> (i & 7) & 1u;
}

static uint32_t nibble_at(const uint8_t *p, uint32_t i)
{
    return (uint32_t)(p[i >> 1] >> (4 * (i & 1))) & 15u;
}

static uint32_t load_u16(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t header_kind(uint32_t header)
{
    return header >> 4 & 7u;
}

static uint32_t header_exponent(uint32_t header)
{
    return header >> 7 & 31u;
}

/* Each reader of a payload returns its bytes, or 0 if it is malformed. left: bytes at hand. */

static uint32_t read_b4(const uint8_t *p, uint32_t left, uint32_t n, uint32_t header,
                        mur_block_term *term)
{
    const int8_t *values = nibble_values[header >> 12];
    uint32_t need = bytes_of_bits(4 * n);

    if (left < need || !rest_is_clear(p, 4 * n))
        return 0;
    for (uint32_t i = 0; i < n; i++)
        term->m[i] = values[nibble_at(p, i)];
    return need;
}

static uint32_t read_b3(const uint8_t *p, uint32_t left, uint32_t n, uint32_t header,
                        mur_block_term *term)
{
    const int8_t *values = nibble_values[header >> 12];
    uint32_t plane = bytes_of_bits(n), need = plane + bytes_of_bits(2 * n);

    if (left < need || !rest_is_clear(p, n) || !rest_is_clear(p + plane, 2 * n))
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t code = (uint32_t)(p[plane + (i >> 2)] >> (2 * (i & 3))) & 3u;

        term->m[i] = values[bit_at(p, i) << 3 | b3_index[code]];
    }
    return need;
}

static uint32_t read_b5(const uint8_t *p, uint32_t left, uint32_t n, uint32_t header,
                        mur_block_term *term)
{
    uint32_t plane = bytes_of_bits(n), need = plane + bytes_of_bits(4 * n);

    if (left < need || header >> 12 != 0 || !rest_is_clear(p, n) ||
        !rest_is_clear(p + plane, 4 * n))
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        int magnitude = (int)nibble_at(p + plane, i);

        term->m[i] = (int8_t)(bit_at(p, i) ? -magnitude : magnitude);
    }
    return need;
}

static uint32_t read_bm(const uint8_t *p, uint32_t left, uint32_t n, uint32_t header,
                        mur_block_term *term)
{
    const int8_t *values = nibble_values[header >> 12];
    uint32_t plane = bytes_of_bits(n), k = 0;

    if (left < plane || !rest_is_clear(p, n))
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!bit_at(p, i))
            continue;
        if (left < plane + bytes_of_bits(4 * (k + 1)))
            return 0;
        term->m[i] = values[nibble_at(p + plane, k++)];
        if (term->m[i] == 0)
            return 0;
    }
    return rest_is_clear(p + plane, 4 * k) ? plane + bytes_of_bits(4 * k) : 0;
}

static uint32_t read_payload(const uint8_t *p, uint32_t left, uint32_t n, uint32_t header,
                             mur_block_term *term)
{
    term->exponent = (uint8_t)header_exponent(header);
    memset(term->m, 0, sizeof(term->m));
    switch (header_kind(header)) {
    case MUR_BLOCK_B4:
    case MUR_BLOCK_R:
        return read_b4(p, left, n, header, term);
    case MUR_BLOCK_B3:
        return read_b3(p, left, n, header, term);
    case MUR_BLOCK_B5:
        return read_b5(p, left, n, header, term);
    case MUR_BLOCK_BM:
        return read_bm(p, left, n, header, term);
    default:
        return 0;
    }
}

/* only the kinds whose payload has one size lend their header */
static int lends(uint32_t header)
{
    return header != MUR_BLOCK_NO_HEADER &&
           (header_kind(header) == MUR_BLOCK_B4 || header_kind(header) == MUR_BLOCK_B5);
}

static size_t parse_shared(const uint8_t *p, uint32_t left, uint32_t n, uint32_t header,
                           mur_block *out)
{
    if (!lends(header) || left == 0 || read_payload(p, left, n, header, &out->term[0]) != left)
        return 0;
    out->terms = 1;
    out->header = header;
    return (size_t)left + 1;
}

size_t mur_block_parse(const uint8_t *bytes, size_t size, uint32_t n, uint32_t above,
                       mur_block *out)
{
    uint32_t left, header, used;

    if (size == 0 || n == 0 || n > MUR_BLOCK_ELEMS)
        return 0;
    out->terms = 0;
    out->header = MUR_BLOCK_NO_HEADER;
    left = bytes[0] & ~(uint32_t)MUR_BLOCK_SHARED;
    if (size - 1 < left)
        return 0;
    if (bytes[0] & MUR_BLOCK_SHARED)
        return parse_shared(bytes + 1, left, n, above, out);
    for (const uint8_t *p = bytes + 1; left != 0; p += used, left -= used) {
        if (left < 2)
            return 0;
        header = load_u16(p);
        /* only R goes on after its first term, and only with a term of kind B4 */
        if ((header & 15u) != 0 || (out->terms == 1 && header_kind(header) != MUR_BLOCK_B4))
            return 0;
        p += 2;
        left -= 2;
        used = read_payload(p, left, n, header, &out->term[out->terms++]);
        if (used == 0 || (header_kind(header) == MUR_BLOCK_R) != (used < left))
            return 0;
        if (out->terms == 1)
            out->header = header;
    }
    return (size_t)bytes[0] + 1;
}

static float scaled(int32_t m, uint32_t exponent)
{
    /* m * 2^(exponent - 16): the power of two is put together as a binary32 */
    uint32_t bits = (exponent + 127 - MUR_BLOCK_EXPONENT_BIAS) << 23;
    float scale;

    memcpy(&scale, &bits, sizeof(scale));
    return (float)m * scale;
}

void mur_block_values(const mur_block *block, uint32_t n, float *values)
{
    for (uint32_t i = 0; i < n; i++)
        values[i] = 0;
    for (uint32_t t = 0; t < block->terms; t++)
        for (uint32_t i = 0; i < n; i++)
            values[i] += scaled(block->term[t].m[i], block->term[t].exponent);
}

/* ---- encoding ---- */

/* Elements in binary16: magnitude mantissa * 2^(e16 - 25), 1024 <= mantissa < 2048, or both 0. */
typedef struct halves {
    uint32_t negative; /* bit i: element i's sign */
    uint16_t mantissa[MUR_BLOCK_ELEMS];
    uint8_t e16[MUR_BLOCK_ELEMS];
} halves;

static void to_half(float x, uint32_t i, halves *out)
{
    uint32_t bits, magnitude;

    memcpy(&bits, &x, sizeof(bits));
    magnitude = bits & 0x7fffffffu;
    if (magnitude < 0x38800000u) { /* below 2^-14 */
        out->mantissa[i] = 0;
        out->e16[i] = 0;
        return;
    }
    /* nearest even at the 13 bits that binary16 lacks; what overflows saturates */
    magnitude =
        magnitude >= 0x477fe000u ? 0x477fe000u : magnitude + 0xfffu + (magnitude >> 13 & 1u);
    if (magnitude > 0x477fe000u)
        magnitude = 0x477fe000u;
    out->mantissa[i] = (uint16_t)(1024u + (magnitude >> 13 & 0x3ffu));
    out->e16[i] = (uint8_t)((magnitude >> 23) - 112u);
    out->negative |= (bits >> 31) << i;
}

/* the truncated magnitude in units of 2^(exponent - 17), 0..31 */
static uint32_t truncated(const halves *x, uint32_t i, uint32_t exponent)
{
    uint32_t shift = 8 + exponent - x->e16[i];

    return shift > 10 ? 0 : (uint32_t)x->mantissa[i] >> shift;
}

static uint32_t shared_exponent(const halves *x, uint32_t n)
{
    uint32_t max = 2;

    for (uint32_t i = 0; i < n; i++)
        if (x->e16[i] > max)
            max = x->e16[i];
    return max - 2;
}

/* The two-stage choice: the pair by the largest q, then the one with more elements in the range
 * where it is nearer than its partner; the even one on ties. */
static uint32_t choose_dialect(const uint8_t *q, uint32_t n)
{
    uint32_t max = 0, pair, a_low, a_high, b_low, b_high, a_count = 0, b_count = 0;
    const int8_t *a, *b;

    for (uint32_t i = 0; i < n; i++)
        if (q[i] > max)
            max = q[i];
    pair = max < 16 ? 7 : 15 - (max >> 1);
    a = nibble_values[2 * pair];
    b = nibble_values[2 * pair + 1];
    a_high = (uint32_t)(a[6] + a[7]);
    if (pair < 7) { /* they differ in index 6, and share what lies around it */
        a_low = b_high = (uint32_t)(a[6] + b[6]);
        b_low = (uint32_t)(b[5] + b[6]);
    } else { /* 7 against 5, with 6 between them in both */
        a_low = (uint32_t)(a[5] + a[6]);
        b_low = (uint32_t)(b[4] + b[5]);
        b_high = (uint32_t)(b[5] + b[6]);
    }
    for (uint32_t i = 0; i < n; i++) {
        a_count += q[i] >= a_low && q[i] < a_high;
        b_count += q[i] >= b_low && q[i] < b_high;
    }
    return 2 * pair + (b_count > a_count);
}

/* nearest value, ties up: the boundary between m[i] and m[i + 1] is their sum in q's unit */
static uint32_t nearest_index(const int8_t *m, uint32_t q)
{
    uint32_t index = 0;

    while (index < 7 && q >= (uint32_t)(m[index] + m[index + 1]))
        index++;
    return index;
}

/* Takes m * 2^(exponent - 16) from element i. Both are multiples of the element's own last place,
 * and the difference is no larger than the element, so the result is a binary16 again. */
static void subtract(halves *x, uint32_t i, uint32_t m, uint32_t exponent)
{
    uint32_t value = x->mantissa[i], e16 = x->e16[i], term, rest;

    if (m == 0)
        return;
    term = m << (9 + exponent - e16);
    if (term > value)
        x->negative ^= 1u << i;
    rest = term > value ? term - value : value - term;
    while (rest != 0 && rest < 1024 && e16 != 0) {
        rest <<= 1;
        e16--;
    }
    if (e16 == 0)
        rest = 0; /* below 2^-14 */
    x->mantissa[i] = (uint16_t)rest;
    x->e16[i] = (uint8_t)(rest != 0 ? e16 : 0);
}

/* Writes header and nibbles, leaves in x what the term does not cover. */
static void encode_term(halves *x, uint32_t n, uint32_t kind, uint8_t *out)
{
    uint8_t q[MUR_BLOCK_ELEMS];
    uint32_t exponent = shared_exponent(x, n), dialect, header;
    const int8_t *m;

    for (uint32_t i = 0; i < n; i++)
        q[i] = (uint8_t)truncated(x, i, exponent);
    dialect = choose_dialect(q, n);
    m = nibble_values[dialect];
    header = dialect << 12 | exponent << 7 | kind << 4;
    out[0] = (uint8_t)header;
    out[1] = (uint8_t)(header >> 8);
    memset(out + 2, 0, bytes_of_bits(4 * n));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t index = nearest_index(m, q[i]);
        uint32_t nibble = index != 0 ? (x->negative >> i & 1u) << 3 | index : 0;

        out[2 + (i >> 1)] |= (uint8_t)(nibble << (4 * (i & 1)));
        subtract(x, i, (uint32_t)m[index], exponent);
    }
}

uint32_t mur_block_slot_bytes(uint32_t n, uint32_t terms)
{
    return 1 + terms * (2 + bytes_of_bits(4 * n));
}

uint32_t mur_block_encode(const float *x, uint32_t n, uint32_t terms, uint8_t *slot)
{
    uint32_t size = mur_block_slot_bytes(n, terms), term_bytes = 2 + bytes_of_bits(4 * n);
    halves h;

    h.negative = 0;
    for (uint32_t i = 0; i < n; i++)
        to_half(x[i], i, &h);
    slot[0] = (uint8_t)(size - 1);
    encode_term(&h, n, terms == 2 ? MUR_BLOCK_R : MUR_BLOCK_B4, slot + 1);
    if (terms == 2)
        encode_term(&h, n, MUR_BLOCK_B4, slot + 1 + term_bytes);
    return size;
}
