/* fast_product_avx2.c - reads the operands of the simulator's fast product, and multiplies them,
 * with AVX2. */
#include "targets/uthinker/sim/fast_product_parts.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2")))
#define ALWAYS_INLINE inline __attribute__((always_inline))
/* Which of two is taken is a coin toss, so the compiler is kept from making a branch of it. */
#define NO_BRANCH(value) __asm__("" : "+r"(value))

static float scale_of(uint32_t exponent)
{
    uint32_t bits = (exponent + 127 - MUR_BLOCK_EXPONENT_BIAS) << 23;
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint32_t load_u16(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

/* where element i of a block lies */
static uint32_t place(uint32_t i)
{
    return i / 2 + (i % 2 ? HALF : 0);
}

/* ---- values ---- */

/* 32 nibbles as values plus BIAS, those of even index first */
AVX2 static inline __m256i values(const uint8_t *nibbles, const uint8_t *table)
{
    const __m256i shifts = _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4);
    __m256i packed = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)nibbles));
    __m256i of = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    __m256i index = _mm256_and_si256(_mm256_srlv_epi32(packed, shifts), _mm256_set1_epi8(15));

    return _mm256_shuffle_epi8(of, index);
}

/* the same of the n nibbles of a term, the others 0 */
AVX2 static inline __m256i term_values(const muc_fast_product *product, const uint8_t *term,
                                       uint32_t n)
{
    const uint8_t *table = product->table[load_u16(term) >> 12];
    uint8_t room[HALF] = { 0 };

    if (n == MUR_BLOCK_ELEMS)
        return values(term + 2, table);
    memcpy(room, term + 2, (n + 1) / 2);
    return values(room, table);
}

/* The header of a term of that kind, n elements, whose last nibble's neighbour is clear? */
static bool is_term(const uint8_t *term, uint32_t n, uint32_t kind)
{
    return (load_u16(term) & 0x7fu) == kind << 4 && (n % 2 == 0 || term[2 + n / 2] >> 4 == 0);
}

/* ---- the left operand ---- */

AVX2 static inline void put_left(const muc_fast_product *product, const uint8_t *term, uint32_t n,
                                 left_block *out, uint32_t t)
{
    __m256i v = term_values(product, term, n);
    __m256i sums = _mm256_sad_epu8(v, _mm256_setzero_si256());
    int32_t sum = _mm256_extract_epi32(sums, 0) + _mm256_extract_epi32(sums, 2) +
                  _mm256_extract_epi32(sums, 4) + _mm256_extract_epi32(sums, 6);

    _mm256_storeu_si256((__m256i *)(void *)out->m[t], _mm256_sub_epi8(v, _mm256_set1_epi8(BIAS)));
    out->start[t] = -BIAS * (sum - BIAS * MUR_BLOCK_ELEMS);
    out->scale[t] = scale_of(load_u16(term) >> 7 & 31u);
}

/* A row; its blocks go `pitch` apart. */
AVX2 static bool read_row(const muc_fast_product *product, const uint8_t *slot, uint32_t k,
                          uint32_t terms, left_block *out, uint32_t pitch)
{
    for (uint32_t at = 0, n; at < k; at += n, out += pitch) {
        uint32_t size, term_bytes;

        n = k - at < MUR_BLOCK_ELEMS ? k - at : MUR_BLOCK_ELEMS;
        size = mur_block_slot_bytes(n, terms);
        term_bytes = (size - 1) / terms;
        if (slot[0] != size - 1 || !is_term(slot + 1, n, terms == 2 ? MUR_BLOCK_R : MUR_BLOCK_B4) ||
            (terms == 2 && !is_term(slot + 1 + term_bytes, n, MUR_BLOCK_B4)))
            return false;
        for (uint32_t t = 0; t < terms; t++)
            put_left(product, slot + 1 + t * term_bytes, n, out, t);
        slot += size;
    }
    return true;
}

bool muc_fast_read_left(const muc_fast_product *product, const mur_sim_product *op, uint32_t first,
                        uint32_t past, left_block *to)
{
    for (uint32_t row = first; row < past; row++)
        if (!read_row(product, op->left + row * op->left_pitch, op->k, op->terms, to + row,
                      product->left_rows))
            return false;
    return true;
}

/* ---- groups of the right operand ---- */

static void absent(group *out, uint32_t block, uint32_t term, uint32_t column)
{
    memset(out->m[block][term][column], BIAS, MUR_BLOCK_ELEMS);
    out->header[block][term][column] = ABSENT;
}

void muc_fast_two_terms(group *out, uint32_t block)
{
    for (uint32_t c = 0; c < COLUMNS && out->terms[block] < 2; c++)
        absent(out, block, 1, c);
    out->terms[block] = 2;
}

/* A block of n elements by the runtime's reader, below `above`. Returns its end, NULL if it is
 * malformed; MUR_BLOCK_MAX_BYTES may be read. */
static const uint8_t *read_any_block(group *out, const uint8_t *p, uint32_t n, uint32_t *above,
                                     uint32_t b, uint32_t c)
{
    mur_block block;
    size_t used = mur_block_parse(p, MUR_BLOCK_MAX_BYTES, n, *above, &block);

    if (used == 0)
        return NULL;
    *above = block.header;
    if (block.terms == 0)
        absent(out, b, 0, c);
    if (block.terms == 2)
        muc_fast_two_terms(out, b);
    for (uint32_t t = 0; t < block.terms; t++) {
        for (uint32_t i = 0; i < MUR_BLOCK_ELEMS; i++)
            out->m[b][t][c][place(i)] = (uint8_t)(BIAS + block.term[t].m[i]);
        out->header[b][t][c] = (uint32_t)block.term[t].exponent << 7;
    }
    return p + used;
}

/* A block that read_usual does not take, n elements. Kind R, which keys and values have, is read
 * here. Returns its end, NULL if it is malformed. */
AVX2 static inline const uint8_t *read_unusual(const muc_fast_product *product, group *out,
                                               const uint8_t *p, uint32_t n, uint32_t *header,
                                               uint32_t b, uint32_t c)
{
    const uint32_t term_bytes = 2 + (n + 1) / 2;

    if (p[0] != 2 * term_bytes || !is_term(p + 1, n, MUR_BLOCK_R) ||
        !is_term(p + 1 + term_bytes, n, MUR_BLOCK_B4))
        return read_any_block(out, p, n, header, b, c);
    muc_fast_two_terms(out, b);
    for (uint32_t t = 0; t < 2; t++) {
        const uint8_t *term = p + 1 + t * term_bytes;

        _mm256_store_si256((__m256i *)(void *)out->m[b][t][c], term_values(product, term, n));
        out->header[b][t][c] = load_u16(term);
    }
    *header = load_u16(p + 1);
    return p + 1 + 2 * term_bytes;
}

/* Bits of a plane that say which elements are negative, by where elements lie; none of kind B4. */
#define EVEN 0x01, 0x04, 0x10, 0x40
#define ODD 0x02, 0x08, 0x20, 0x80
static const uint8_t plane_bits[2][MUR_BLOCK_ELEMS] = {
    { 0 },
    { EVEN, EVEN, EVEN, EVEN, ODD, ODD, ODD, ODD },
};

/* A block of kind B4 or B5 without a branch, whose first byte is `size`; `header` is its own or the
 * one above. Returns other than 0 if it is malformed. */
AVX2 static inline uint32_t read_usual(const muc_fast_product *product, const uint8_t *p,
                                       uint32_t size, uint32_t header, uint8_t *m)
{
    const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 0, 0, 0,
                                            0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const __m256i all = _mm256_loadu_si256((const __m256i *)(const void *)plane_bits[1]);
    const uint32_t b5 = size >> 2 & 1u, row = header >> 12 | b5 << 4;
    const uint8_t *plane = p + 3 - (size >> 6 & 2u);
    int32_t bits;
    __m256i v = values(plane + 4 * b5, product->table[row]), negative;

    memcpy(&bits, plane, sizeof(bits));
    negative = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(bits), spread),
                                _mm256_loadu_si256((const __m256i *)(const void *)plane_bits[b5]));
    v = _mm256_blendv_epi8(v, _mm256_sub_epi8(_mm256_set1_epi8(2 * BIAS), v),
                           _mm256_cmpeq_epi8(negative, all));
    _mm256_store_si256((__m256i *)(void *)m, v);
    return ((header & 0x7fu) ^ (b5 << 4)) | (row > B5_TABLE);
}

/* The first `columns` columns of a group, k elements each; MOST_GROUP_BYTES and a few more may be
 * read. Returns their end, NULL if a block is malformed. */
AVX2 static ALWAYS_INLINE const uint8_t *read_columns(const muc_fast_product *product, group *out,
                                                      const uint8_t *p, uint32_t columns,
                                                      uint32_t k)
{
    const uint32_t blocks = blocks_of(k);
    uint32_t bad = 0;

    for (uint32_t b = 0; b < blocks; b++)
        out->terms[b] = 1;
    for (uint32_t c = 0; c < columns; c++) {
        uint32_t header = MUR_BLOCK_NO_HEADER;

        for (uint32_t b = 0; b < blocks; b++) {
            const uint32_t size = p[0], left = k - b * MUR_BLOCK_ELEMS;
            uint32_t own = (size >> 7) - 1; /* all ones if it has a header of its own */
            size_t taken = size & 127u;

            if (__builtin_expect(!product->usual[size] || left < MUR_BLOCK_ELEMS, 0)) {
                p = read_unusual(product, out, p, left < MUR_BLOCK_ELEMS ? left : MUR_BLOCK_ELEMS,
                                 &header, b, c);
                if (!p)
                    return NULL;
                continue;
            }
            NO_BRANCH(own);
            NO_BRANCH(taken);
            header = (load_u16(p + 1) & own) | (header & ~own);
            bad |= read_usual(product, p, size, header, out->m[b][0][c]);
            out->header[b][0][c] = header;
            p += 1 + taken;
        }
    }
    return bad ? NULL : p;
}

AVX2 const uint8_t *muc_fast_read_group(const muc_fast_product *product, const uint8_t *p,
                                        const mur_sim_product *op, uint32_t columns, uint32_t k,
                                        product_room *room, group *out)
{
    const size_t left = (size_t)(op->right_end - p);
    const uint8_t *next, *from = p;

    for (uint32_t b = 0; b < blocks_of(k) && columns < COLUMNS; b++)
        for (uint32_t c = columns; c < COLUMNS; c++)
            absent(out, b, 0, c);
    if ((size_t)(op->right_readable - p) < sizeof(room->tail)) {
        memcpy(room->tail, p, left);
        from = room->tail;
    }
    if (columns == COLUMNS && k == 2 * MUR_BLOCK_ELEMS) /* the paper's tile */
        next = read_columns(product, out, from, COLUMNS, 2 * MUR_BLOCK_ELEMS);
    else
        next = read_columns(product, out, from, columns, k);
    return next && (size_t)(next - from) <= left ? p + (next - from) : NULL;
}

/* ---- products ---- */

/* Eight columns of 32 bytes to eight registers that hold the same four bytes of each column. */
AVX2 static inline void transpose(const uint8_t m[COLUMNS][MUR_BLOCK_ELEMS], __m256i *w)
{
    __m256i a[COLUMNS], d[COLUMNS];

    for (uint32_t i = 0; i < COLUMNS; i++)
        a[i] = _mm256_load_si256((const __m256i *)(const void *)m[i]);
    for (uint32_t i = 0; i < COLUMNS; i += 4) {
        __m256i ab = _mm256_unpacklo_epi32(a[i], a[i + 1]);
        __m256i cd = _mm256_unpacklo_epi32(a[i + 2], a[i + 3]);

        d[i] = _mm256_unpacklo_epi64(ab, cd);
        d[i + 1] = _mm256_unpackhi_epi64(ab, cd);
        ab = _mm256_unpackhi_epi32(a[i], a[i + 1]);
        cd = _mm256_unpackhi_epi32(a[i + 2], a[i + 3]);
        d[i + 2] = _mm256_unpacklo_epi64(ab, cd);
        d[i + 3] = _mm256_unpackhi_epi64(ab, cd);
    }
    for (uint32_t i = 0; i < 4; i++) {
        w[i] = _mm256_permute2x128_si256(d[i], d[i + 4], 0x20);
        w[i + 4] = _mm256_permute2x128_si256(d[i], d[i + 4], 0x31);
    }
}

/* 2^(exponent - 16) of eight headers */
AVX2 static inline __m256 scales(const uint32_t *headers)
{
    __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)headers), e;

    e = _mm256_and_si256(_mm256_srli_epi32(h, 7), _mm256_set1_epi32(31));
    e = _mm256_add_epi32(e, _mm256_set1_epi32(127 - MUR_BLOCK_EXPONENT_BIAS));
    return _mm256_castsi256_ps(_mm256_or_si256(_mm256_slli_epi32(e, 23),
                                               _mm256_and_si256(h, _mm256_set1_epi32(INT32_MIN))));
}

/* acc plus the products of a block's term in eight columns and term t of the left operand */
AVX2 static inline __m256 add_product(__m256 acc, const __m256i *w, __m256 scale,
                                      const left_block *left, uint32_t t)
{
    __m256i sum = _mm256_setzero_si256(); /* at most 8 * 2 * 31 * 15 in each half */

    for (uint32_t i = 0; i < COLUMNS; i++) {
        int32_t four;

        memcpy(&four, left->m[t] + 4 * i, sizeof(four));
        sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(w[i], _mm256_set1_epi32(four)));
    }
    sum = _mm256_add_epi32(_mm256_madd_epi16(sum, _mm256_set1_epi16(1)),
                           _mm256_set1_epi32(left->start[t]));
    return _mm256_add_ps(acc, _mm256_mul_ps(_mm256_cvtepi32_ps(sum),
                                            _mm256_mul_ps(scale, _mm256_set1_ps(left->scale[t]))));
}

/* left: the rows' blocks that meet the group's first */
AVX2 static inline void multiply_group(const muc_fast_product *product, const product_room *room,
                                       const group *in, const mur_sim_product *op,
                                       const left_block *left, uint32_t blocks, float *out,
                                       uint32_t columns)
{
    for (uint32_t b = 0; b < blocks; b++)
        for (uint32_t t = 0; t < in->terms[b]; t++) {
            const left_block *of_row = left + (size_t)b * product->left_rows;
            __m256 scale = scales(in->header[b][t]);
            __m256i w[COLUMNS];
            float *at = out;

            transpose(in->m[b][t], w);
            for (uint32_t row = 0; row < room->rows; row++, of_row++, at += op->out_pitch) {
                float some[COLUMNS] = { 0 };
                __m256 acc;

                if (columns < COLUMNS)
                    memcpy(some, at, columns * sizeof(float));
                acc = _mm256_loadu_ps(columns < COLUMNS ? some : at);
                acc = add_product(acc, w, scale, of_row, 0);
                if (op->terms == 2)
                    acc = add_product(acc, w, scale, of_row, 1);
                _mm256_storeu_ps(columns < COLUMNS ? some : at, acc);
                if (columns < COLUMNS)
                    memcpy(at, some, columns * sizeof(float));
            }
        }
}

AVX2 static bool multiply_unit(muc_fast_product *product, product_room *room, const unit *u)
{
    const mur_sim_product *op = u->op;
    const uint8_t *right = u->p;

    for (uint32_t row = 0; row < room->rows && op->fresh; row++)
        memset(op->out + (size_t)(room->row + row) * op->out_pitch + u->column, 0,
               (u->past - u->column) * sizeof(*op->out));
    for (uint32_t column = u->column; column < u->past; column += op->tile_columns) {
        uint32_t past = u->past - column < op->tile_columns ? u->past : column + op->tile_columns;

        for (uint32_t at = 0; at < op->k; at += op->tile_rows) {
            uint32_t k = op->k - at < op->tile_rows ? op->k - at : op->tile_rows;
            const left_block *left =
                room->left + (size_t)(at / MUR_BLOCK_ELEMS) * product->left_rows;

            for (uint32_t c = column; c < past; c += COLUMNS) {
                uint32_t columns = past - c < COLUMNS ? past - c : COLUMNS;

                right = muc_fast_read_group(product, right, op, columns, k, room, room->group);
                if (!right)
                    return false;
                multiply_group(product, room, room->group, op, left, blocks_of(k),
                               op->out + (size_t)room->row * op->out_pitch + c, columns);
            }
        }
    }
    return true;
}

bool muc_fast_multiply_avx2(muc_fast_product *product, product_room *room)
{
    unit u;

    while ((u = muc_fast_take(product, room)).op != NULL)
        if (!multiply_unit(product, room, &u))
            return false;
    return true;
}

#endif
