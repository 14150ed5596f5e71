/* blockdialect.c - one block: its values, nearest codes, bytes. */
#include "quant/blockdialect.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "quant/bd_table.h"

const uint8_t muc_bd_dialects[MUC_BD_DIALECTS][8] = {
#define MUR_DIALECT(id, ...) [id] = { __VA_ARGS__ },
#include "mur_dialect.def"
#undef MUR_DIALECT
};

/* For every dialect the index nearest to a magnitude of q/2 to (q+1)/2, q = 0..31 and 31 for what
 * is above: boundaries are integers in q, ties go up. */
#define FOR_EACH_Q(F, ...) \
    F(0, __VA_ARGS__), F(1, __VA_ARGS__), F(2, __VA_ARGS__), F(3, __VA_ARGS__), F(4, __VA_ARGS__), \
        F(5, __VA_ARGS__), F(6, __VA_ARGS__), F(7, __VA_ARGS__), F(8, __VA_ARGS__), \
        F(9, __VA_ARGS__), F(10, __VA_ARGS__), F(11, __VA_ARGS__), F(12, __VA_ARGS__), \
        F(13, __VA_ARGS__), F(14, __VA_ARGS__), F(15, __VA_ARGS__), F(16, __VA_ARGS__), \
        F(17, __VA_ARGS__), F(18, __VA_ARGS__), F(19, __VA_ARGS__), F(20, __VA_ARGS__), \
        F(21, __VA_ARGS__), F(22, __VA_ARGS__), F(23, __VA_ARGS__), F(24, __VA_ARGS__), \
        F(25, __VA_ARGS__), F(26, __VA_ARGS__), F(27, __VA_ARGS__), F(28, __VA_ARGS__), \
        F(29, __VA_ARGS__), F(30, __VA_ARGS__), F(31, __VA_ARGS__)
#define NEAREST(q, a, b, c, d, e, f, g, h) \
    (q >= a + b) + (q >= b + c) + (q >= c + d) + (q >= d + e) + (q >= e + f) + (q >= f + g) + \
        (q >= g + h)
#define NEAREST_B3(q, a, b, c, d, e, f, g, h) 2 * (q >= a + c) + 3 * (q >= c + f) + 2 * (q >= f + h)

static const uint8_t nearest_index[MUC_BD_DIALECTS][32] = {
#define MUR_DIALECT(id, ...) [id] = { FOR_EACH_Q(NEAREST, __VA_ARGS__) },
#include "mur_dialect.def"
#undef MUR_DIALECT
};
static const uint8_t nearest_index_b3[MUC_BD_DIALECTS][32] = {
#define MUR_DIALECT(id, ...) [id] = { FOR_EACH_Q(NEAREST_B3, __VA_ARGS__) },
#include "mur_dialect.def"
#undef MUR_DIALECT
};

const char *muc_bd_kind_name(muc_bd_kind kind)
{
    static const char *const names[] = {
#define MUC_BD_KIND(name, number) [number] = #name,
        MUC_BD_KINDS(MUC_BD_KIND)
#undef MUC_BD_KIND
    };

    return names[kind];
}

/* ---- elements on a grid ---- */

/* the code whose value is nearest to w, ties to the larger magnitude */
static uint8_t nearest(const uint8_t table[MUC_BD_DIALECTS][32], const muc_bd_term *term, float w)
{
    float twice = 2 * fabsf(w) * muc_bd_per_unit(term->exponent);
    unsigned index = table[term->dialect][twice < 31 ? (unsigned)twice : 31];

    return (uint8_t)(index != 0 && w < 0 ? 8 | index : index);
}

static uint8_t nearest_b5(const muc_bd_term *term, float w)
{
    float y = fabsf(w) * muc_bd_per_unit(term->exponent);
    unsigned m = y >= 14.5f ? 15 : (unsigned)(y + 0.5f);

    return (uint8_t)(m > 0 && w < 0 ? 16 | m : m);
}

static float term_value(const muc_bd_term *term, unsigned i)
{
    unsigned code = term->code[i];
    float magnitude = (float)muc_bd_dialects[term->dialect][code & 7] * muc_bd_unit(term->exponent);

    return code & 8 ? -magnitude : magnitude;
}

static float b5_value(const muc_bd_term *term, unsigned i)
{
    float magnitude = (float)(term->code[i] & 15) * muc_bd_unit(term->exponent);

    return term->code[i] & 16 ? -magnitude : magnitude;
}

float muc_bd_value(const muc_bd_block *block, unsigned i)
{
    switch (block->kind) {
    case MUC_BD_Z:
        return 0;
    case MUC_BD_B5:
        return b5_value(&block->term[0], i);
    case MUC_BD_R:
        return term_value(&block->term[0], i) + term_value(&block->term[1], i);
    case MUC_BD_B4:
    case MUC_BD_B3:
    case MUC_BD_BM:
        break;
    }
    return term_value(&block->term[0], i);
}

float muc_bd_round(muc_bd_block *block, unsigned i, float w)
{
    muc_bd_term *term = block->term;

    if (block->kind == MUC_BD_B5)
        term->code[i] = nearest_b5(term, w);
    else if (block->kind != MUC_BD_Z)
        term->code[i] =
            nearest(block->kind == MUC_BD_B3 ? nearest_index_b3 : nearest_index, term, w);
    if (block->kind == MUC_BD_R)
        term[1].code[i] = nearest(nearest_index, &term[1], w - term_value(term, i));
    return muc_bd_value(block, i);
}

double muc_bd_error(const muc_bd_block *block, const float *w, const float *importance, unsigned n)
{
    double sum = 0;

    for (unsigned i = 0; i < n; i++) {
        double miss = (double)w[i] - (double)muc_bd_value(block, i);

        sum += (importance ? (double)importance[i] : 1.0) * miss * miss;
    }
    return sum;
}

/* ---- sizes and forms ---- */

enum { HEADER_BYTES = 2 };

static unsigned payload_bytes(muc_bd_kind kind, unsigned n, unsigned nonzero)
{
    unsigned plane = (n + 7) / 8, nibbles = (n + 1) / 2;

    switch (kind) {
    case MUC_BD_Z:
        return 0;
    case MUC_BD_B4:
        return nibbles;
    case MUC_BD_B3:
        return plane + (n + 3) / 4;
    case MUC_BD_B5:
        return plane + nibbles;
    case MUC_BD_BM:
        return plane + (nonzero + 1) / 2;
    case MUC_BD_R:
        return nibbles + 2 + nibbles;
    }
    return 0;
}

unsigned muc_bd_kind_bytes(muc_bd_kind kind, unsigned n, unsigned nonzero)
{
    return kind == MUC_BD_Z ? 1 : 1 + HEADER_BYTES + payload_bytes(kind, n, nonzero);
}

static unsigned nonzero_codes(const muc_bd_block *block, unsigned n)
{
    unsigned count = 0;

    for (unsigned i = 0; i < n; i++)
        count += block->term[0].code[i] != 0;
    return count;
}

/* bytes that BM saves over B4, 0 if none */
static unsigned saved_by_bitmap(unsigned n, unsigned nonzero)
{
    unsigned b4 = muc_bd_kind_bytes(MUC_BD_B4, n, 0), bm = muc_bd_kind_bytes(MUC_BD_BM, n, nonzero);

    return bm < b4 ? b4 - bm : 0;
}

static bool same_header(const muc_bd_block *a, const muc_bd_block *b)
{
    return a->kind == b->kind && (a->kind == MUC_BD_B4 || a->kind == MUC_BD_B5) &&
           a->term[0].dialect == b->term[0].dialect && a->term[0].exponent == b->term[0].exponent;
}

static bool has(uint32_t kinds, muc_bd_kind kind)
{
    return (kinds >> kind & 1) != 0;
}

void muc_bd_pack(muc_bd_column *column, uint32_t kinds)
{
    unsigned count = muc_bd_block_count(column->rows), saved = 0, nonzero[2];
    muc_bd_block *block = column->block;

    for (unsigned b = 0; b < count; b++) {
        nonzero[b] = nonzero_codes(&block[b], muc_bd_block_elements(column->rows, b));
        block[b].shared = false;
        if (nonzero[b] == 0 && has(kinds, MUC_BD_Z) && block[b].kind != MUC_BD_R)
            block[b].kind = MUC_BD_Z;
        if (block[b].kind == MUC_BD_B4 && has(kinds, MUC_BD_BM))
            saved += saved_by_bitmap(muc_bd_block_elements(column->rows, b), nonzero[b]);
    }
    if (count == 2 && (kinds & MUC_BD_SHARING) != 0 && saved < HEADER_BYTES &&
        same_header(&block[0], &block[1])) {
        block[1].shared = true;
        return;
    }
    for (unsigned b = 0; b < count; b++)
        if (block[b].kind == MUC_BD_B4 && has(kinds, MUC_BD_BM) &&
            saved_by_bitmap(muc_bd_block_elements(column->rows, b), nonzero[b]) > 0)
            block[b].kind = MUC_BD_BM;
}

/* ---- writing ---- */

/* Puts `width` bits at position i of a field of such values. */
static void put(uint8_t *field, unsigned width, unsigned i, unsigned value)
{
    field[i * width / 8] |= (uint8_t)(value << i * width % 8);
}

static unsigned get(const uint8_t *field, unsigned width, unsigned i)
{
    return (unsigned)field[i * width / 8] >> i * width % 8 & ((1u << width) - 1);
}

static void write_header(const muc_bd_term *term, muc_bd_kind kind, uint8_t *out)
{
    muc_store_u16(out, (uint16_t)(term->dialect << 12 | term->exponent << 7 | (int)kind << 4));
}

static void write_nibbles(const muc_bd_term *term, unsigned n, uint8_t *out)
{
    for (unsigned i = 0; i < n; i++)
        put(out, 4, i, term->code[i]);
}

static unsigned b3_code(unsigned index)
{
    unsigned code = 0;

    while (muc_bd_b3_index[code] != index)
        code++;
    return code;
}

static void write_payload(const muc_bd_block *block, unsigned n, uint8_t *out)
{
    const muc_bd_term *term = block->term;
    unsigned plane = (n + 7) / 8, packed = 0;

    switch (block->kind) {
    case MUC_BD_Z:
        break;
    case MUC_BD_B4:
        write_nibbles(term, n, out);
        break;
    case MUC_BD_B3:
        for (unsigned i = 0; i < n; i++) {
            put(out, 1, i, term->code[i] >> 3);
            put(out + plane, 2, i, b3_code(term->code[i] & 7));
        }
        break;
    case MUC_BD_B5:
        for (unsigned i = 0; i < n; i++) {
            put(out, 1, i, term->code[i] >> 4);
            put(out + plane, 4, i, term->code[i] & 15);
        }
        break;
    case MUC_BD_BM:
        for (unsigned i = 0; i < n; i++) {
            put(out, 1, i, term->code[i] != 0);
            if (term->code[i] != 0)
                put(out + plane, 4, packed++, term->code[i]);
        }
        break;
    case MUC_BD_R:
        write_nibbles(term, n, out);
        write_header(&term[1], MUC_BD_B4, out + (n + 1) / 2);
        write_nibbles(&term[1], n, out + (n + 1) / 2 + 2);
        break;
    }
}

unsigned muc_bd_write(const muc_bd_block *block, unsigned n, uint8_t out[MUC_BD_MAX_BYTES])
{
    unsigned nonzero = block->kind == MUC_BD_BM ? nonzero_codes(block, n) : 0;
    unsigned bytes = muc_bd_kind_bytes(block->kind, n, nonzero);

    memset(out, 0, bytes);
    if (block->kind == MUC_BD_Z)
        return bytes;
    if (block->shared) {
        bytes -= HEADER_BYTES;
        out[0] = (uint8_t)(MUC_BD_SHARED | (bytes - 1));
        write_payload(block, n, out + 1);
        return bytes;
    }
    out[0] = (uint8_t)(bytes - 1);
    write_header(block->term, block->kind, out + 1);
    write_payload(block, n, out + 1 + HEADER_BYTES);
    return bytes;
}

/* ---- reading: every failure says what is wrong ---- */

/* are the bits from count * width to the end of their byte zero? */
static bool padding_is_zero(const uint8_t *field, unsigned width, unsigned count)
{
    unsigned used = count * width;

    return used % 8 == 0 || field[used / 8] >> used % 8 == 0;
}

static const char *read_header(const uint8_t *bytes, muc_bd_block *block, muc_bd_term *term)
{
    unsigned header = muc_load_u16(bytes), kind = header >> 4 & 7;

    if (kind > MUC_BD_R)
        return "the header names no kind";
    if ((header & 15) != 0)
        return "the header's last four bits are not zero";
    if (term == block->term)
        block->kind = (muc_bd_kind)kind;
    else if (kind != 0)
        return "the second header's kind is not zero";
    term->dialect = (uint8_t)(header >> 12);
    term->exponent = (uint8_t)(header >> 7 & 31);
    return NULL;
}

static bool read_nibbles(const uint8_t *field, unsigned n, muc_bd_term *term)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned code = get(field, 4, i);

        term->code[i] = (uint8_t)(code == 8 ? 0 : code);
    }
    return padding_is_zero(field, 4, n);
}

/* sign plane, then a field of `width` bits an element */
static bool read_planes(const uint8_t *field, unsigned n, unsigned width, muc_bd_term *term)
{
    const uint8_t *codes = field + (n + 7) / 8;

    for (unsigned i = 0; i < n; i++) {
        unsigned code = get(codes, width, i), sign = get(field, 1, i);

        if (code == 0)
            term->code[i] = 0;
        else
            term->code[i] =
                (uint8_t)(width == 2 ? sign << 3 | muc_bd_b3_index[code] : sign << 4 | code);
    }
    return padding_is_zero(field, 1, n) && padding_is_zero(codes, width, n);
}

static const char *read_bitmap(const uint8_t *field, size_t left, unsigned n, muc_bd_term *term)
{
    unsigned plane = (n + 7) / 8, k = 0;

    for (unsigned i = 0; i < n; i++)
        k += get(field, 1, i);
    if (left != payload_bytes(MUC_BD_BM, n, k))
        return "the size does not fit the bitmap";
    k = 0;
    for (unsigned i = 0; i < n; i++) {
        term->code[i] = 0;
        if (get(field, 1, i) != 0)
            term->code[i] = (uint8_t)get(field + plane, 4, k++);
        if (get(field, 1, i) != 0 && (term->code[i] & 7) == 0)
            return "a zero is marked as nonzero";
    }
    return padding_is_zero(field, 1, n) && padding_is_zero(field + plane, 4, k)
               ? NULL
               : "unused bits are not zero";
}

static const char *read_payload(const uint8_t *field, size_t left, unsigned n, muc_bd_block *block)
{
    muc_bd_term *term = block->term;
    const char *reason = NULL;
    bool clean = true;

    if (block->kind == MUC_BD_BM)
        return left < (n + 7) / 8 ? "the size does not fit the bitmap"
                                  : read_bitmap(field, left, n, term);
    if (left != payload_bytes(block->kind, n, 0))
        return "the size does not fit kind and elements";
    switch (block->kind) {
    case MUC_BD_B3:
        clean = read_planes(field, n, 2, term);
        break;
    case MUC_BD_B5:
        clean = read_planes(field, n, 4, term);
        if (term->dialect != 0)
            reason = "B5 has a dialect";
        break;
    case MUC_BD_R:
        clean = read_nibbles(field + (n + 1) / 2 + 2, n, term + 1);
        reason = read_header(field + (n + 1) / 2, block, term + 1);
        clean = read_nibbles(field, n, term) && clean;
        break;
    case MUC_BD_B4:
    case MUC_BD_BM:
    case MUC_BD_Z:
        clean = read_nibbles(field, n, term);
        break;
    }
    return reason ? reason : clean ? NULL : "unused bits are not zero";
}

/* takes over the header of the block above */
static const char *borrow_header(const muc_bd_block *above, muc_bd_block *block)
{
    if (!above || (above->kind != MUC_BD_B4 && above->kind != MUC_BD_B5))
        return "the block above has no header to share";
    block->kind = above->kind;
    block->shared = true;
    block->term[0].dialect = above->term[0].dialect;
    block->term[0].exponent = above->term[0].exponent;
    return NULL;
}

unsigned muc_bd_read(const uint8_t *bytes, size_t size, unsigned n, const muc_bd_block *above,
                     muc_bd_block *out, const char **reason)
{
    unsigned left;

    *reason = size == 0 ? "no byte is left for the block's size" : NULL;
    if (*reason)
        return 0;
    out->kind = MUC_BD_Z;
    out->shared = false;
    if (bytes[0] == 0)
        return 1;
    left = bytes[0] & ~(unsigned)MUC_BD_SHARED;
    if (size - 1 < left)
        *reason = "the block's size is more than what is left";
    else if ((bytes[0] & MUC_BD_SHARED) != 0)
        *reason = borrow_header(above, out);
    else if (left < HEADER_BYTES)
        *reason = "the block's size leaves no room for its header";
    else
        *reason = read_header(bytes + 1, out, out->term);
    if (!*reason && out->shared)
        *reason = read_payload(bytes + 1, left, n, out);
    else if (!*reason)
        *reason = read_payload(bytes + 1 + HEADER_BYTES, left - HEADER_BYTES, n, out);
    return *reason ? 0 : left + 1;
}
