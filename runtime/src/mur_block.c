/* mur_block.c - BlockDialect blocks on the device.
 *
 * The decision boundaries of all dialects are integers in units of half a magnitude step, so the
 * encoder truncates each element to a 5-bit q of that unit and compares integers; nothing is lost.
 */
#include "mur_block.h"
#include "mur_real.h"

#include <string.h>

/* The value of each nibble: index 0..7 positive, 8..15 negative. */
static const int8_t nibble_values[16][16] = {
#define MUR_DIALECT(id, a, b, c, d, e, f, g, h) \
    [id] = { a, b, c, d, e, f, g, h, -a, -b, -c, -d, -e, -f, -g, -h },
#include "mur_dialect.def"
#undef MUR_DIALECT
};

/* ---- reading ---- */

/* Where a term's payload lies. */
typedef struct field {
    uint32_t header;
    const uint8_t *plane; /* of signs, kind B5 alone; otherwise NULL */
    const uint8_t *nibbles;
} field;

typedef struct fields {
    uint32_t terms, header; /* as mur_block's */
    field term[MUR_BLOCK_TERMS];
} fields;

typedef struct payload {
    const uint8_t *at;
    uint32_t left; /* bytes */
} payload;

static uint32_t bytes_of_bits(uint32_t bits)
{
    return (bits + 7) >> 3;
}

/* are the bits after the first `used` zero, up to the end of their byte? */
static int rest_is_clear(const uint8_t *p, uint32_t used)
{
    return (used & 7) == 0 || p[used >> 3] >> (used & 7) == 0;
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

/* Takes the next `bits` bits, if they are there and clear after their end; NULL if not. */
static const uint8_t *take(payload *in, uint32_t bits)
{
    uint32_t bytes = bytes_of_bits(bits);
    const uint8_t *taken = in->at;

    if (in->left < bytes || !rest_is_clear(taken, bits))
        return NULL;
    in->at += bytes;
    in->left -= bytes;
    return taken;
}

/* Takes a term's payload off `in`; 0 if it is malformed. */
static int read_payload(payload *in, uint32_t n, uint32_t header, field *out)
{
    uint32_t kind = header_kind(header);

    out->header = header;
    out->plane = NULL;
    if (kind > MUR_BLOCK_R)
        return 0;
    if (kind == MUR_BLOCK_B5) {
        out->plane = header >> 12 == 0 ? take(in, n) : NULL;
        if (!out->plane)
            return 0;
    }
    out->nibbles = take(in, 4 * n);
    return out->nibbles != NULL;
}

/* a header of one term can be lent */
static int lends(uint32_t header)
{
    return header != MUR_BLOCK_NO_HEADER &&
           (header_kind(header) == MUR_BLOCK_B4 || header_kind(header) == MUR_BLOCK_B5);
}

/* Each reader of a block takes all that is left; 0 if it is malformed. */

static int read_shared(payload *in, uint32_t n, uint32_t header, fields *out)
{
    out->terms = 1;
    out->header = header;
    return lends(header) && read_payload(in, n, header, &out->term[0]) && in->left == 0;
}

static int read_terms(payload *in, uint32_t n, fields *out)
{
    while (in->left != 0) {
        uint32_t header;

        if (in->left < 2)
            return 0;
        header = load_u16(in->at);
        /* only R goes on after its first term, and only with a term of kind B4 */
        if ((header & 15u) != 0 || (out->terms == 1 && header_kind(header) != MUR_BLOCK_B4))
            return 0;
        in->at += 2;
        in->left -= 2;
        if (!read_payload(in, n, header, &out->term[out->terms++]) ||
            (header_kind(header) == MUR_BLOCK_R) != (in->left != 0))
            return 0;
        if (out->terms == 1)
            out->header = header;
    }
    return 1;
}

/* mur_block_parse, but where the payloads lie instead of what is in them. */
static size_t read_block(const uint8_t *bytes, size_t size, uint32_t n, uint32_t above, fields *out)
{
    payload in;
    size_t taken;

    if (size == 0 || n == 0 || n > MUR_BLOCK_ELEMS)
        return 0;
    in.at = bytes + 1;
    in.left = bytes[0] & ~(uint32_t)MUR_BLOCK_SHARED;
    taken = (size_t)in.left + 1;
    if (size < taken)
        return 0;
    out->terms = 0;
    out->header = MUR_BLOCK_NO_HEADER;
    if (bytes[0] & MUR_BLOCK_SHARED)
        return read_shared(&in, n, above, out) ? taken : 0;
    return read_terms(&in, n, out) ? taken : 0;
}

/* ---- parsing ----
 *
 * The fields of a payload are unpacked all 32 elements at once, in loops of a constant count
 * without branches, which compilers vectorise; a shorter block's are first copied to zeroed ones.
 */

enum { PLANE_BYTES = 4, NIBBLES_BYTES = 16 };

/* A field of the whole 32 elements: itself, or in room if it is shorter. */
static const uint8_t *whole(const uint8_t *from, uint32_t bytes, uint8_t *room, uint32_t room_bytes)
{
    if (bytes == room_bytes)
        return from;
    memset(room, 0, room_bytes);
    memcpy(room, from, bytes);
    return room;
}

static void store_bytes(uint32_t bytes, uint8_t *out)
{
    out[0] = (uint8_t)bytes;
    out[1] = (uint8_t)(bytes >> 8);
    out[2] = (uint8_t)(bytes >> 16);
    out[3] = (uint8_t)(bytes >> 24);
}

static void unpack_plane(const uint8_t *plane, uint8_t *bit)
{
    for (uint32_t i = 0; i < MUR_BLOCK_ELEMS; i += 4) {
        uint32_t bits = (uint32_t)(plane[i >> 3] >> (i & 7)) & 15u;

        /* bit j to byte j */
        store_bytes((bits | bits << 7 | bits << 14 | bits << 21) & 0x01010101u, bit + i);
    }
}

static void unpack_nibbles(const uint8_t *restrict packed, uint8_t *restrict nibble)
{
    for (uint32_t i = 0; i < NIBBLES_BYTES; i++) {
        nibble[2 * i] = packed[i] & 15u;
        nibble[2 * i + 1] = packed[i] >> 4;
    }
}

/* Dialects differ in indices 5 to 7; the others stand for themselves. */
static void values_of_nibbles(const uint8_t *restrict nibble, uint32_t dialect, int8_t *restrict m)
{
    const int8_t *values = nibble_values[dialect];
    uint8_t more5 = (uint8_t)(values[5] - 5), more6 = (uint8_t)(values[6] - 6),
            more7 = (uint8_t)(values[7] - 7);

    for (uint32_t i = 0; i < MUR_BLOCK_ELEMS; i++) {
        uint8_t index = nibble[i] & 7u, sum = index;

        sum = (uint8_t)(sum + (index == 5 ? more5 : 0));
        sum = (uint8_t)(sum + (index == 6 ? more6 : 0));
        sum = (uint8_t)(sum + (index == 7 ? more7 : 0));
        m[i] = (int8_t)(nibble[i] & 8u ? -sum : sum);
    }
}

static void unpack(const field *in, uint32_t n, mur_block_term *out)
{
    uint8_t plane_room[PLANE_BYTES], nibbles_room[NIBBLES_BYTES];
    uint8_t bit[MUR_BLOCK_ELEMS], nibble[MUR_BLOCK_ELEMS];

    out->exponent = (uint8_t)header_exponent(in->header);
    unpack_nibbles(whole(in->nibbles, bytes_of_bits(4 * n), nibbles_room, NIBBLES_BYTES), nibble);
    if (!in->plane) {
        values_of_nibbles(nibble, in->header >> 12, out->m);
        return;
    }
    unpack_plane(whole(in->plane, bytes_of_bits(n), plane_room, PLANE_BYTES), bit);
    for (uint32_t i = 0; i < MUR_BLOCK_ELEMS; i++)
        out->m[i] = (int8_t)(bit[i] ? -nibble[i] : nibble[i]);
}

size_t mur_block_parse(const uint8_t *bytes, size_t size, uint32_t n, uint32_t above,
                       mur_block *out)
{
    fields in;
    size_t taken = read_block(bytes, size, n, above, &in);

    if (taken == 0)
        return 0;
    out->terms = in.terms;
    out->header = in.header;
    for (uint32_t t = 0; t < in.terms; t++)
        unpack(&in.term[t], n, &out->term[t]);
    return taken;
}

static float scaled(int32_t m, uint32_t exponent)
{
    /* m * 2^(exponent - 16): the power of two is put together as a binary32 */
    return (float)m * mur_float_of((exponent + 127 - MUR_BLOCK_EXPONENT_BIAS) << 23);
}

void mur_block_values(const mur_block *block, uint32_t n, float *values)
{
    for (uint32_t i = 0; i < n; i++)
        values[i] = 0;
    for (uint32_t t = 0; t < block->terms; t++)
        for (uint32_t i = 0; i < n; i++)
            values[i] += scaled(block->term[t].m[i], block->term[t].exponent);
}

/* ---- decoding ----
 *
 * For a core that takes one element at a time, of integers alone.
 */

/* m * 2^-16 in binary32 */
static const uint32_t units[16] = { 0,          0x37800000, 0x38000000, 0x38400000,
                                    0x38800000, 0x38a00000, 0x38c00000, 0x38e00000,
                                    0x39000000, 0x39100000, 0x39200000, 0x39300000,
                                    0x39400000, 0x39500000, 0x39600000, 0x39700000 };

/* (+-) m * 2^(exponent - 16), which has no -0; sign: in bit 0; exponent: in binary32's place */
static inline uint32_t value_bits(uint32_t m, uint32_t sign, uint32_t exponent)
{
    uint32_t unit = units[m];

    return unit == 0 ? 0 : (unit + exponent) | sign << 31;
}

static uint32_t load_plane(const uint8_t *plane, uint32_t n)
{
    uint32_t bits = 0;

    for (uint32_t i = 0; i < bytes_of_bits(n); i++)
        bits |= (uint32_t)plane[i] << 8 * i;
    return bits;
}

/* with signs in a plane of their own */
static void decode_signed(const field *in, uint32_t n, uint32_t exponent, float *values)
{
    uint32_t signs = load_plane(in->plane, n);
    const uint8_t *nibbles = in->nibbles;
    float *end = values + n;

    for (; values != end; signs >>= 1) {
        uint32_t two = *nibbles++;

        *values++ = mur_float_of(value_bits(two & 15, signs, exponent));
        signs >>= 1;
        if (values == end)
            break;
        *values++ = mur_float_of(value_bits(two >> 4, signs, exponent));
    }
}

/* each nibble's value is made once, in `of` */
static void decode_dialect(const field *in, uint32_t n, uint32_t exponent, mur_float *of,
                           float *values)
{
    const int8_t *m = nibble_values[in->header >> 12];
    const uint8_t *nibbles = in->nibbles;
    float *end = values + n;

    for (uint32_t i = 0; i < 8; i++) {
        of[i].bits = value_bits((uint32_t)m[i], 0, exponent);
        of[i + 8].bits = value_bits((uint32_t)m[i], 1, exponent);
    }
    while (values != end) {
        uint32_t two = *nibbles++;

        *values++ = of[two & 15].value;
        if (values != end)
            *values++ = of[two >> 4].value;
    }
}

static void decode_term(const field *in, uint32_t n, mur_float *of, float *values)
{
    uint32_t exponent = header_exponent(in->header) << 23;

    if (in->plane)
        decode_signed(in, n, exponent, values);
    else
        decode_dialect(in, n, exponent, of, values);
}

size_t mur_block_decode(const uint8_t *bytes, size_t size, uint32_t n, uint32_t *header,
                        float *values)
{
    fields in;
    size_t taken = read_block(bytes, size, n, *header, &in);
    float second[MUR_BLOCK_ELEMS];
    mur_float of[16];

    if (taken == 0)
        return 0;
    *header = in.header;
    if (in.terms == 0)
        memset(values, 0, n * sizeof(*values));
    else
        decode_term(&in.term[0], n, of, values);
    if (in.terms == 2) {
        decode_term(&in.term[1], n, of, second);
        for (uint32_t i = 0; i < n; i++)
            values[i] += second[i];
    }
    return taken;
}

/* ---- encoding ----
 *
 * As in parsing, loops over all 32 elements without branches; those beyond n are zeros, which
 * encode as zeros and change no choice.
 */

/* Elements in binary16: the bits of the magnitude, the sign beside them. */
typedef struct halves {
    uint16_t bits[MUR_BLOCK_ELEMS];
    uint16_t negative[MUR_BLOCK_ELEMS]; /* 0 or 1 */
} halves;

/* What a term makes of each element. */
typedef struct choices {
    uint16_t mantissa[MUR_BLOCK_ELEMS]; /* 1024..2047, or 0 */
    uint16_t drop[MUR_BLOCK_ELEMS];     /* shared exponent + 2 - the element's own */
    uint16_t q[MUR_BLOCK_ELEMS];        /* truncated magnitude, units of 2^(exponent - 17) */
    uint16_t index[MUR_BLOCK_ELEMS], m[MUR_BLOCK_ELEMS];
} choices;

static void to_halves(const float *x, uint32_t n, halves *out)
{
    uint32_t bits[MUR_BLOCK_ELEMS] = { 0 };

    memcpy(bits, x, n * sizeof(*bits));
    for (uint32_t i = 0; i < MUR_BLOCK_ELEMS; i++) {
        uint32_t magnitude = bits[i] & 0x7fffffffu, rounded;

        magnitude = magnitude > 0x477fe000u ? 0x477fe000u : magnitude; /* 65504 */
        /* nearest even at the 13 bits that binary16 lacks; its exponent is 112 smaller */
        rounded = ((magnitude + 0xfffu + (magnitude >> 13 & 1u)) >> 13) - (112u << 10);
        out->bits[i] = (uint16_t)(magnitude < 0x38800000u ? 0 : rounded); /* 2^-14 */
        out->negative[i] = (uint16_t)(bits[i] >> 31);
    }
}

static uint32_t largest(const uint16_t *x)
{
    uint16_t max = 0;

    for (uint32_t i = 0; i < MUR_BLOCK_ELEMS; i++)
        max = x[i] > max ? x[i] : max;
    return max;
}

static void truncate_all(const halves *restrict x, uint32_t exponent, choices *restrict out)
{
    for (uint32_t i = 0; i < MUR_BLOCK_ELEMS; i++) {
        uint16_t bits = x->bits[i], mantissa = bits & 1023u, q, drop;

        mantissa = bits ? mantissa | 1024u : 0;
        drop = (uint16_t)(exponent + 2 - (bits >> 10));
        /* mantissa >> (6 + drop), in steps because vectors shift by constants */
        q = mantissa >> 6;
        q = drop & 1u ? q >> 1 : q;
        q = drop & 2u ? q >> 2 : q;
        q = drop & 4u ? q >> 4 : q;
        out->q[i] = drop & 24u ? 0 : q;
        out->mantissa[i] = mantissa;
        out->drop[i] = drop;
    }
}

/* how many q are in low..high-1 */
static uint32_t count_between(const uint16_t *q, int low, int high)
{
    uint16_t count = 0, from = (uint16_t)low, width = (uint16_t)(high - low);

    for (uint32_t i = 0; i < MUR_BLOCK_ELEMS; i++)
        count = (uint16_t)(count + ((uint16_t)(q[i] - from) < width));
    return count;
}

/* The two-stage choice: the pair by the largest q, then the one with more elements in the range
 * where it is nearer than its partner; the even one on ties. */
static uint32_t choose_dialect(const uint16_t *q)
{
    uint32_t max = largest(q), pair = max < 16 ? 7 : 15 - (max >> 1), a_count, b_count;
    const int8_t *a = nibble_values[2 * pair], *b = nibble_values[2 * pair + 1];

    if (pair < 7) { /* they differ in index 6, and share what lies around it */
        a_count = count_between(q, a[6] + b[6], a[6] + a[7]);
        b_count = count_between(q, b[5] + b[6], a[6] + b[6]);
    } else { /* 7 against 5, with 6 between them in both */
        a_count = count_between(q, a[5] + a[6], a[6] + a[7]);
        b_count = count_between(q, b[4] + b[5], b[5] + b[6]);
    }
    return 2 * pair + (b_count > a_count);
}

/* nearest values, ties up: the boundary between m[j] and m[j + 1] is their sum in q's unit */
static void choose_values(choices *x, const int8_t *m)
{
    memset(x->index, 0, sizeof(x->index));
    memset(x->m, 0, sizeof(x->m));
    for (uint32_t j = 0; j < 7; j++) {
        uint16_t boundary = (uint16_t)(m[j] + m[j + 1]), step = (uint16_t)(m[j + 1] - m[j]);

        for (uint32_t i = 0; i < MUR_BLOCK_ELEMS; i++) {
            uint16_t above = x->q[i] >= boundary;

            x->index[i] = (uint16_t)(x->index[i] + above);
            x->m[i] = (uint16_t)(x->m[i] + above * step);
        }
    }
}

/* Takes the chosen m * 2^(exponent - 16) from each element. Both are multiples of the element's own
 * last place, and the difference is no larger than the element, so the result is a binary16 again;
 * below 2^-14 it is zero. */
static void subtract_all(halves *restrict x, const choices *restrict term)
{
    for (uint32_t i = 0; i < MUR_BLOCK_ELEMS; i++) {
        uint16_t drop = term->drop[i], value = (uint16_t)(term->m[i] << 7), rest, bits;
        uint16_t mantissa = term->mantissa[i];
        int16_t e16 = (int16_t)(x->bits[i] >> 10);

        /* m << (7 + drop); drop is at most 4 where m is not 0 */
        value = (uint16_t)(drop & 1u ? value << 1 : value);
        value = (uint16_t)(drop & 2u ? value << 2 : value);
        value = (uint16_t)(drop & 4u ? value << 4 : value);
        x->negative[i] ^= (uint16_t)(value > mantissa ? 1 : 0);
        rest = (uint16_t)(value > mantissa ? value - mantissa : mantissa - value);
        /* up to 1024..2047, the exponent down as far */
        e16 = (int16_t)(rest < 8 ? e16 - 8 : e16);
        rest = (uint16_t)(rest < 8 ? rest << 8 : rest);
        e16 = (int16_t)(rest < 128 ? e16 - 4 : e16);
        rest = (uint16_t)(rest < 128 ? rest << 4 : rest);
        e16 = (int16_t)(rest < 512 ? e16 - 2 : e16);
        rest = (uint16_t)(rest < 512 ? rest << 2 : rest);
        e16 = (int16_t)(rest < 1024 ? e16 - 1 : e16);
        rest = (uint16_t)(rest < 1024 ? rest << 1 : rest);
        bits = (uint16_t)((uint32_t)e16 << 10 | (rest & 1023u));
        x->bits[i] = (uint16_t)(rest == 0 || e16 <= 0 ? 0 : bits);
    }
}

/* Writes header and nibbles; of kind R leaves in x what the term does not cover. */
static void encode_term(halves *x, uint32_t n, uint32_t kind, uint8_t *out)
{
    uint32_t max = largest(x->bits) >> 10, exponent = max > 2 ? max - 2 : 0, dialect, header;
    uint16_t nibble[MUR_BLOCK_ELEMS];
    choices term;

    truncate_all(x, exponent, &term);
    dialect = choose_dialect(term.q);
    choose_values(&term, nibble_values[dialect]);
    header = dialect << 12 | exponent << 7 | kind << 4;
    out[0] = (uint8_t)header;
    out[1] = (uint8_t)(header >> 8);
    for (uint32_t i = 0; i < MUR_BLOCK_ELEMS; i++)
        nibble[i] = (uint16_t)(term.index[i] | (x->negative[i] & (term.index[i] != 0)) << 3);
    for (uint32_t i = 0; i < n; i += 2)
        out[2 + i / 2] = (uint8_t)(nibble[i] | nibble[i + 1] << 4);
    if (kind == MUR_BLOCK_R)
        subtract_all(x, &term);
}

uint32_t mur_block_slot_bytes(uint32_t n, uint32_t terms)
{
    return 1 + terms * (2 + bytes_of_bits(4 * n));
}

uint32_t mur_block_encode(const float *x, uint32_t n, uint32_t terms, uint8_t *slot)
{
    uint32_t size = mur_block_slot_bytes(n, terms), term_bytes = 2 + bytes_of_bits(4 * n);
    halves h;

    to_halves(x, n, &h);
    slot[0] = (uint8_t)(size - 1);
    encode_term(&h, n, terms == 2 ? MUR_BLOCK_R : MUR_BLOCK_B4, slot + 1);
    if (terms == 2)
        encode_term(&h, n, MUR_BLOCK_B4, slot + 1 + term_bytes);
    return size;
}
