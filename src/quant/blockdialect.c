/* blockdialect.c - one block: its values, nearest codes, bytes. */
#include "quant/blockdialect.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/vector_loop.h"
#include "quant/bd_table.h"

const uint8_t muc_bd_dialects[MUC_BD_DIALECTS][8] = {
#define MUR_DIALECT(id, ...) [id] = { __VA_ARGS__ },
#include "mur_dialect.def"
#undef MUR_DIALECT
};

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

const uint8_t muc_bd_nearest_index[MUC_BD_DIALECTS][32] = {
#define MUR_DIALECT(id, ...) [id] = { FOR_EACH_Q(NEAREST, __VA_ARGS__) },
#include "mur_dialect.def"
#undef MUR_DIALECT
};
/* ---- elements on a grid ---- */

/* the code whose value is nearest to w, ties to the larger magnitude */
static uint8_t nearest(const muc_bd_term *term, float w)
{
    float twice = 2 * fabsf(w) * muc_bd_per_unit(term->exponent);
    unsigned index = muc_bd_nearest_index[term->dialect][twice < 31 ? (unsigned)twice : 31];

    return (uint8_t)(index != 0 && w < 0 ? 8 | index : index);
}

static uint8_t nearest_b5(const muc_bd_term *term, float w)
{
    float y = fabsf(w) * muc_bd_per_unit(term->exponent);
    unsigned m = y >= 14.5f ? 15 : (unsigned)(y + 0.5f);

    return (uint8_t)(m > 0 && w < 0 ? 16 | m : m);
}

static float value_of(unsigned code, const muc_bd_term *term)
{
    float magnitude = (float)muc_bd_dialects[term->dialect][code & 7] * muc_bd_unit(term->exponent);

    return code & 8 ? -magnitude : magnitude;
}

static float b5_value_of(unsigned code, const muc_bd_term *term)
{
    float magnitude = (float)(code & 15) * muc_bd_unit(term->exponent);

    return code & 16 ? -magnitude : magnitude;
}

/* eight elements at once, and the codes of a block */
typedef float lanes __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t int_lanes __attribute__((vector_size(32)));
typedef uint8_t byte_lanes __attribute__((vector_size(8), aligned(1), may_alias));
typedef uint8_t codes __attribute__((vector_size(MUC_BD_ELEMS), aligned(1), may_alias));

/* as value_of() and b5_value_of(), of all codes, those beyond the block's elements too */
MUC_WIDE_LOOP static void term_values(muc_bd_kind kind, const muc_bd_term *term,
                                      float values[MUC_BD_ELEMS])
{
    const uint8_t *m = muc_bd_dialects[term->dialect];
    codes code = *(const codes *)(const void *)term->code, size = code & 15;
    unsigned sign = kind == MUC_BD_B5 ? 27 : 28; /* from a code's to a float's */
    float unit = muc_bd_unit(term->exponent);

    if (kind != MUC_BD_B5) {
        codes index = code & 7;

        size = index & 0;
        for (unsigned i = 0; i < 7; i++)
            size += (codes)(index > (uint8_t)i) & (uint8_t)(m[i + 1] - m[i]);
    }
    for (unsigned i = 0; i < MUC_BD_ELEMS; i += 8) {
        byte_lanes s = *(const byte_lanes *)(const void *)((const uint8_t *)&size + i);
        byte_lanes c = *(const byte_lanes *)(const void *)((const uint8_t *)&code + i);
        int_lanes minus = (__builtin_convertvector(c, int_lanes) << sign) & INT32_MIN;
        lanes size_of = __builtin_convertvector(__builtin_convertvector(s, int_lanes), lanes);

        *(lanes *)(void *)(values + i) = (lanes)((int_lanes)(size_of * unit) | minus);
    }
}

void muc_bd_values(const muc_bd_block *block, unsigned n, float *values)
{
    float all[2][MUC_BD_ELEMS] = { { 0 } };

    if (block->kind != MUC_BD_Z)
        term_values(block->kind, block->term, all[0]);
    if (block->kind == MUC_BD_R) {
        term_values(MUC_BD_B4, block->term + 1, all[1]);
        for (unsigned i = 0; i < n; i++)
            all[0][i] += all[1][i];
    }
    memcpy(values, all[0], n * sizeof(*values));
}

float muc_bd_round(muc_bd_block *block, unsigned i, float w)
{
    muc_bd_term *term = block->term;
    float first;

    if (block->kind == MUC_BD_Z)
        return 0;
    if (block->kind == MUC_BD_B5) {
        term->code[i] = nearest_b5(term, w);
        return b5_value_of(term->code[i], term);
    }
    term->code[i] = nearest(term, w);
    first = value_of(term->code[i], term);
    if (block->kind == MUC_BD_B4)
        return first;
    term[1].code[i] = nearest(&term[1], w - first);
    return first + value_of(term[1].code[i], &term[1]);
}

/* as nearest() and nearest_b5() */
MUC_WIDE_LOOP static void round_term(muc_bd_kind kind, const float *w, muc_bd_term *term)
{
    const uint8_t *m = muc_bd_dialects[term->dialect];
    float scale = muc_bd_per_unit(term->exponent);
    const int_lanes sixteen = (int_lanes)((lanes){ 0 } + 16.0f); /* beyond every grid */
    codes q, minus, index = { 0 };

    for (unsigned i = 0; i < MUC_BD_ELEMS; i += 8) {
        lanes x = *(const lanes *)(const void *)(w + i);
        lanes size = (lanes)((int_lanes)x & 0x7fffffff) * scale;
        lanes y = (lanes)(((size < 16) & (int_lanes)size) | ((size >= 16) & sixteen));
        lanes steps = kind == MUC_BD_B5 ? y + 0.5f : 2 * y;

        *(byte_lanes *)(void *)((uint8_t *)&q + i) =
            __builtin_convertvector(__builtin_convertvector(steps, int_lanes), byte_lanes);
        *(byte_lanes *)(void *)((uint8_t *)&minus + i) = __builtin_convertvector(x < 0, byte_lanes);
    }
    if (kind == MUC_BD_B5)
        index = q + (codes)(q > 15);
    else
        for (unsigned j = 0; j < 7; j++)
            index -= (codes)(q >= (uint8_t)(m[j] + m[j + 1]));
    *(codes *)(void *)term->code =
        index | ((codes)(index > 0) & minus & (uint8_t)(kind == MUC_BD_B5 ? 16 : 8));
}

void muc_bd_round_block(muc_bd_block *block, unsigned n, const float *w)
{
    if (block->kind == MUC_BD_R) {
        for (unsigned i = 0; i < n; i++)
            muc_bd_round(block, i, w[i]);
    } else if (block->kind != MUC_BD_Z && n == MUC_BD_ELEMS) {
        round_term(block->kind, w, block->term);
    } else if (block->kind != MUC_BD_Z) {
        float whole[MUC_BD_ELEMS] = { 0 };

        memcpy(whole, w, n * sizeof(*w));
        round_term(block->kind, whole, block->term);
    }
}

typedef double wide_lanes __attribute__((vector_size(64)));

/* values, and weights of elements beyond the block's, are 0 */
MUC_WIDE_LOOP static double add_errors(const float *values, const float *w, const float *importance,
                                       double *energy)
{
    wide_lanes error = { 0 }, all = { 0 };

    for (unsigned i = 0; i < MUC_BD_ELEMS; i += 8) {
        wide_lanes x = __builtin_convertvector(*(const lanes *)(const void *)(w + i), wide_lanes);
        wide_lanes miss =
            x - __builtin_convertvector(*(const lanes *)(const void *)(values + i), wide_lanes);
        wide_lanes weight =
            __builtin_convertvector(*(const lanes *)(const void *)(importance + i), wide_lanes);

        error += weight * miss * miss;
        all += weight * x * x;
    }
    *energy = ((all[0] + all[4]) + (all[2] + all[6])) + ((all[1] + all[5]) + (all[3] + all[7]));
    return ((error[0] + error[4]) + (error[2] + error[6])) +
           ((error[1] + error[5]) + (error[3] + error[7]));
}

double muc_bd_error(const muc_bd_block *block, const float *w, const float *importance, unsigned n,
                    double *energy)
{
    static const float ones[MUC_BD_ELEMS] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                              1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    float values[MUC_BD_ELEMS], own[MUC_BD_ELEMS], counts[MUC_BD_ELEMS];
    double unused;

    muc_bd_values(block, n, values);
    if (!importance)
        importance = ones;
    if (n < MUC_BD_ELEMS) {
        memset(values + n, 0, (MUC_BD_ELEMS - n) * sizeof(*values));
        memset(own, 0, sizeof(own));
        memset(counts, 0, sizeof(counts));
        w = memcpy(own, w, n * sizeof(*w));
        importance = memcpy(counts, importance, n * sizeof(*importance));
    }
    return add_errors(values, w, importance, energy ? energy : &unused);
}

/* ---- sizes and forms ---- */

enum { HEADER_BYTES = 2 };

static unsigned payload_bytes(muc_bd_kind kind, unsigned n)
{
    unsigned plane = (n + 7) / 8, nibbles = (n + 1) / 2;

    switch (kind) {
    case MUC_BD_Z:
        return 0;
    case MUC_BD_B4:
        return nibbles;
    case MUC_BD_B5:
        return plane + nibbles;
    case MUC_BD_R:
        return nibbles + HEADER_BYTES + nibbles;
    }
    return 0;
}

unsigned muc_bd_kind_bytes(muc_bd_kind kind, unsigned n)
{
    return kind == MUC_BD_Z ? 1 : 1 + HEADER_BYTES + payload_bytes(kind, n);
}

static bool is_zero(const muc_bd_block *block, unsigned n)
{
    static const uint8_t zeros[MUC_BD_ELEMS];

    const uint8_t *code = block->term[0].code;

    return block->kind == MUC_BD_Z ||
           (block->kind != MUC_BD_R && code[0] == 0 && memcmp(code, zeros, n) == 0);
}

static bool same_header(const muc_bd_block *a, const muc_bd_block *b)
{
    return a->kind == b->kind && (a->kind == MUC_BD_B4 || a->kind == MUC_BD_B5) &&
           a->term[0].dialect == b->term[0].dialect && a->term[0].exponent == b->term[0].exponent;
}

void muc_bd_pack(muc_bd_column *column, uint32_t kinds)
{
    muc_bd_block *block = column->block;

    for (unsigned b = 0; b < muc_bd_block_count(column->rows); b++) {
        block[b].shared = false;
        if (is_zero(&block[b], muc_bd_block_elements(column->rows, b)))
            block[b].kind = MUC_BD_Z;
    }
    if (muc_bd_block_count(column->rows) == 2 && (kinds & MUC_BD_SHARING) != 0)
        block[1].shared = same_header(&block[0], &block[1]);
}

/* ---- writing ---- */

static unsigned get(const uint8_t *field, unsigned width, unsigned i)
{
    return (unsigned)field[i * width / 8] >> i * width % 8 & ((1u << width) - 1);
}

static void write_header(const muc_bd_term *term, muc_bd_kind kind, uint8_t *out)
{
    muc_store_u16(out, (uint16_t)(term->dialect << 12 | term->exponent << 7 | (int)kind << 4));
}

/* of a whole block */
MUC_WIDE_LOOP static void write_all_nibbles(const uint8_t *code, uint8_t *out)
{
    typedef uint8_t half __attribute__((vector_size(MUC_BD_ELEMS / 2), aligned(1), may_alias));
    const codes all = *(const codes *)(const void *)code & 15;
    half even = __builtin_shufflevector(all, all, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26,
                                        28, 30);
    half odd = __builtin_shufflevector(all, all, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27,
                                       29, 31);

    *(half *)(void *)out = even | odd << 4;
}

static void write_nibbles(const uint8_t *code, unsigned n, uint8_t *out)
{
    if (n == MUC_BD_ELEMS) {
        write_all_nibbles(code, out);
        return;
    }
    for (unsigned i = 0; i + 1 < n; i += 2)
        out[i / 2] = (uint8_t)((code[i] & 15) | code[i + 1] << 4);
    if (n % 2 != 0)
        out[n / 2] = code[n - 1] & 15;
}

/* of B5, a bit each */
static void write_signs(const uint8_t *code, unsigned n, uint8_t *out)
{
    for (unsigned at = 0; at < n; at += 8) {
        unsigned signs = 0;

        for (unsigned i = 0; i < 8 && at + i < n; i++)
            signs |= (unsigned)(code[at + i] >> 4) << i;
        out[at / 8] = (uint8_t)signs;
    }
}

static void write_payload(const muc_bd_block *block, unsigned n, uint8_t *out)
{
    const muc_bd_term *term = block->term;
    unsigned plane = (n + 7) / 8, nibbles = (n + 1) / 2;

    switch (block->kind) {
    case MUC_BD_Z:
        break;
    case MUC_BD_B4:
        write_nibbles(term->code, n, out);
        break;
    case MUC_BD_B5:
        write_signs(term->code, n, out);
        write_nibbles(term->code, n, out + plane);
        break;
    case MUC_BD_R:
        write_nibbles(term->code, n, out);
        write_header(&term[1], MUC_BD_B4, out + nibbles);
        write_nibbles(term[1].code, n, out + nibbles + HEADER_BYTES);
        break;
    }
}

unsigned muc_bd_write(const muc_bd_block *block, unsigned n, uint8_t out[MUC_BD_MAX_BYTES])
{
    unsigned bytes = muc_bd_kind_bytes(block->kind, n) - (block->shared ? HEADER_BYTES : 0);

    if (block->kind == MUC_BD_Z) {
        out[0] = 0;
        return bytes;
    }
    out[0] = (uint8_t)((block->shared ? MUC_BD_SHARED : 0) | (bytes - 1));
    if (!block->shared)
        write_header(block->term, block->kind, out + 1);
    write_payload(block, n, out + 1 + (block->shared ? 0 : HEADER_BYTES));
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

static bool read_b5(const uint8_t *field, unsigned n, muc_bd_term *term)
{
    const uint8_t *magnitudes = field + (n + 7) / 8;

    for (unsigned i = 0; i < n; i++) {
        unsigned m = get(magnitudes, 4, i);

        term->code[i] = (uint8_t)(m > 0 ? get(field, 1, i) << 4 | m : 0);
    }
    return padding_is_zero(field, 1, n) && padding_is_zero(magnitudes, 4, n);
}

static const char *read_payload(const uint8_t *field, unsigned left, unsigned n,
                                muc_bd_block *block)
{
    unsigned nibbles = (n + 1) / 2;
    muc_bd_term *term = block->term;
    const char *reason = NULL;
    bool clean;

    if (left != payload_bytes(block->kind, n))
        return "the size does not fit kind and elements";
    if (block->kind == MUC_BD_B5) {
        clean = read_b5(field, n, term);
        reason = term->dialect != 0 ? "B5 has a dialect" : NULL;
    } else {
        clean = read_nibbles(field, n, term);
    }
    if (block->kind == MUC_BD_R) {
        reason = read_header(field + nibbles, block, term + 1);
        clean = read_nibbles(field + nibbles + HEADER_BYTES, n, term + 1) && clean;
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
