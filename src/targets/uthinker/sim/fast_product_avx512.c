/* fast_product_avx512.c - the simulator's fast product with AVX-512: sixteen columns beside each
 * other, of two products or of one.
 *
 * Blocks have different sizes, so that where one begins is known when the one before it has been
 * looked at. That takes longer than all else, and is done for as many products at once as there
 * are, up to SLOTS. Values and products then come of whole registers, without a branch.
 */
#include "targets/uthinker/sim/fast_product_avx512.h"

#if defined(__x86_64__) && defined(__GNUC__)

enum {
    MOST_LIE_BYTES = COLUMNS * MUR_SIM_BLOCKS * 128 + 64, /* that outline_tile looks at */
    B4_BYTES = HALF + 2,                                  /* with a header of its own */
    R_BYTES = 2 * B4_BYTES,
    B5_MORE = 4
};

/* ---- where blocks lie ---- */

/* Of the columns of a tile at p[0..count-1], `blocks` each. Moves p to their ends. */
static INLINE void outline_tile(const uint8_t **p, uint32_t count, uint32_t blocks, outline *out)
{
    for (uint32_t s = 0; s < count; s++)
        for (uint32_t i = 0; i < 6; i++)
            _mm_prefetch((const char *)p[s] + 1024 + LINE * i, _MM_HINT_T0);
    for (uint32_t c = 0; c < COLUMNS; c++)
        for (uint32_t b = 0; b < blocks; b++)
            EACH(s, count)
            {
                outline *of = &out[s / 2];
                uint32_t at = s % 2 * COLUMNS + c;
                size_t size = p[s][0];

                memcpy(&of->head[b][at], p[s] + 1, sizeof(of->head[b][at]));
                of->size[b][at] = (uint8_t)size;
                p[s] += (size & 127u) + 1;
                of->end[b][at] = p[s];
            }
}

/* ---- values ---- */

/* The sixteen bytes that lie `back` before the ends of columns q, 4 + q, 8 + q and 12 + q. */
AVX512 static INLINE __m512i four_columns(const uint8_t *const *end, uint32_t q, uint32_t back)
{
    __m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const void *)(end[q] - back)));

    x = _mm512_inserti32x4(x, _mm_loadu_si128((const void *)(end[4 + q] - back)), 1);
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const void *)(end[8 + q] - back)), 2);
    return _mm512_inserti32x4(x, _mm_loadu_si128((const void *)(end[12 + q] - back)), 3);
}

/* the same of table[at], a line of sixteen bytes each */
AVX512 static INLINE __m512i four_tables(const uint8_t (*table)[16], const uint32_t *at, uint32_t q)
{
    __m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const void *)table[at[q]]));

    x = _mm512_inserti32x4(x, _mm_loadu_si128((const void *)table[at[4 + q]]), 1);
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const void *)table[at[8 + q]]), 2);
    return _mm512_inserti32x4(x, _mm_loadu_si128((const void *)table[at[12 + q]]), 3);
}

/* x[q] has 16 bytes of column 4 * l + q in its 128 bits l: w[i] then has its bytes 4 * i on in lane
 * 4 * l + q. */
AVX512 static INLINE void transpose(const __m512i *x, __m512i *w)
{
    __m512i a = _mm512_unpacklo_epi32(x[0], x[1]), b = _mm512_unpacklo_epi32(x[2], x[3]);
    __m512i c = _mm512_unpackhi_epi32(x[0], x[1]), d = _mm512_unpackhi_epi32(x[2], x[3]);

    w[0] = _mm512_unpacklo_epi64(a, b);
    w[1] = _mm512_unpackhi_epi64(a, b);
    w[2] = _mm512_unpacklo_epi64(c, d);
    w[3] = _mm512_unpackhi_epi64(c, d);
}

/* 2^(exponent - 16) of headers; negative where bit 31 is set */
AVX512 static INLINE __m512 scales(__m512i header)
{
    __m512i e = _mm512_and_si512(_mm512_srli_epi32(header, 7), _mm512_set1_epi32(31));

    e = _mm512_slli_epi32(_mm512_add_epi32(e, _mm512_set1_epi32(127 - MUR_BLOCK_EXPONENT_BIAS)),
                          23);
    return _mm512_castsi512_ps(
        _mm512_or_si512(e, _mm512_and_si512(header, _mm512_set1_epi32(INT32_MIN))));
}

/* The nibbles of 16 bytes `back` before each end, as values of the tables `at`; negative: planes of
 * signs, 0 for blocks that have none. */
AVX512 static INLINE void read_values(const muc_fast_product *product, const uint8_t *const *end,
                                      uint32_t back, __m512i at, __m512i negative, __m512i *w)
{
    const __m512i even = _mm512_set1_epi32(0x40100401), odd = _mm512_set1_epi32((int)0x80200802u);
    const __m512i spread = _mm512_set4_epi32(0x03030303, 0x02020202, 0x01010101, 0);
    __m512i low[4], high[4];
    uint32_t row[LANES];

    _mm512_storeu_si512(row, at);
    EACH(q, 4)
    {
        __m512i packed = four_columns(end, q, back), of = four_tables(product->table, row, q);
        __m512i plane = _mm512_shuffle_epi8(
            negative, _mm512_add_epi8(spread, _mm512_set1_epi8((int8_t)(4 * q))));
        __m512i index = _mm512_and_si512(packed, _mm512_set1_epi8(15));

        low[q] = _mm512_shuffle_epi8(of, index);
        index = _mm512_and_si512(_mm512_srli_epi16(packed, 4), _mm512_set1_epi8(15));
        high[q] = _mm512_shuffle_epi8(of, index);
        low[q] = _mm512_mask_sub_epi8(low[q], _mm512_test_epi8_mask(plane, even),
                                      _mm512_set1_epi8(2 * BIAS), low[q]);
        high[q] = _mm512_mask_sub_epi8(high[q], _mm512_test_epi8_mask(plane, odd),
                                       _mm512_set1_epi8(2 * BIAS), high[q]);
    }
    transpose(low, w);
    transpose(high, w + 4);
}

/* What blocks are, sixteen at once. */
typedef struct kinds {
    __mmask16 own, b5; /* have a header of their own, a plane */
    bool usual, two;   /* all are of B4 or B5, of R */
} kinds;

AVX512 static INLINE kinds kinds_of(const uint8_t *sizes, __mmask16 active)
{
    __m512i size = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)sizes));
    __m512i base = _mm512_and_si512(size, _mm512_set1_epi32(~B5_MORE));
    kinds k = { .own = _mm512_cmpeq_epi32_mask(base, _mm512_set1_epi32(B4_BYTES)),
                .b5 = _mm512_test_epi32_mask(size, _mm512_set1_epi32(B5_MORE)) };
    __mmask16 shared = _mm512_cmpeq_epi32_mask(base, _mm512_set1_epi32(MUR_BLOCK_SHARED | HALF));

    k.usual = (active & ~(k.own | shared)) == 0;
    k.two = (active & ~_mm512_cmpeq_epi32_mask(size, _mm512_set1_epi32(R_BYTES))) == 0;
    return k;
}

AVX512 static INLINE __m512i low_halves(__m512i a, __m512i b)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi64_epi32(a)),
                              _mm512_cvtepi64_epi32(b), 1);
}

/* Blocks of one term. *header: those above, and then their own; returns those that are
 * malformed. */
AVX512 static INLINE __mmask16 read_usual(const muc_fast_product *product, const outline *of,
                                          uint32_t b, kinds k, __m512i *header, sixteen *out)
{
    const __m512i b5 = _mm512_maskz_set1_epi32(k.b5, B5_TABLE);
    __m512i a = _mm512_loadu_si512(of->head[b]), c = _mm512_loadu_si512(of->head[b] + COLUMNS);
    __m512i plane, row;

    *header = _mm512_mask_and_epi32(*header, k.own, low_halves(a, c), _mm512_set1_epi32(0xffff));
    a = _mm512_mask_srli_epi64(a, (__mmask8)k.own, a, 16);
    c = _mm512_mask_srli_epi64(c, (__mmask8)(k.own >> COLUMNS), c, 16);
    plane = _mm512_maskz_mov_epi32(k.b5, low_halves(a, c));
    row = _mm512_or_si512(_mm512_srli_epi32(*header, 12), b5);
    read_values(product, of->end[b], HALF, row, plane, out->w);
    out->scale = scales(*header);
    return _mm512_cmpneq_epi32_mask(_mm512_and_si512(*header, _mm512_set1_epi32(0x7f)), b5) |
           _mm512_cmpgt_epi32_mask(row, _mm512_set1_epi32(B5_TABLE));
}

/* Term t of blocks of two. */
AVX512 static INLINE __mmask16 read_two(const muc_fast_product *product, const outline *of,
                                        uint32_t b, uint32_t t, sixteen *out)
{
    const uint32_t back = t == 0 ? R_BYTES : B4_BYTES, kind = t == 0 ? MUR_BLOCK_R << 4 : 0;
    uint32_t headers[LANES];
    __m512i header;

    for (uint32_t c = 0; c < LANES; c++) {
        uint16_t own;

        memcpy(&own, of->end[b][c] - back, sizeof(own));
        headers[c] = own;
    }
    header = _mm512_loadu_si512(headers);
    read_values(product, of->end[b], back - 2, _mm512_srli_epi32(header, 12),
                _mm512_setzero_si512(), out->w);
    out->scale = scales(header);
    return _mm512_cmpneq_epi32_mask(_mm512_and_si512(header, _mm512_set1_epi32(0x7f)),
                                    _mm512_set1_epi32((int)kind));
}

/* Term t of block b of groups that are read. */
AVX512 static INLINE void read_groups(const group *of, uint32_t b, uint32_t t, sixteen *out)
{
    const uint8_t *end[LANES];
    __m512i x[4];

    for (uint32_t c = 0; c < LANES; c++)
        end[c] = of[c / COLUMNS].m[b][t][c % COLUMNS];
    for (uint32_t half = 0; half < 2; half++) {
        EACH(q, 4)
        x[q] = four_columns(end, q, 0);
        transpose(x, out->w + 4 * half);
        for (uint32_t c = 0; c < LANES; c++)
            end[c] += HALF;
    }
    out->scale = scales(_mm512_inserti64x4(
        _mm512_castsi256_si512(_mm256_loadu_si256((const void *)of[0].header[b][t])),
        _mm256_loadu_si256((const void *)of[1].header[b][t]), 1));
}

/* ---- products ---- */

/* A pair of slots' columns in one tile. */
typedef struct pair {
    unit *slot;     /* [count] */
    uint32_t count; /* 1 or 2 */
    uint32_t columns;
    outline *outline;
    float (*sums)[LANES];
} pair;

/* By muc_fast_read_group, from where the tile begins. */
AVX512 static bool add_read_tile(muc_fast_product *product, product_room *room, const pair *of,
                                 const left_block *left, uint32_t k)
{
    const mur_sim_product *op = of->slot->op;
    group *groups = room->group;

    for (uint32_t s = 0; s < of->count; s++) {
        unit *at = &of->slot[s];

        at->p = muc_fast_read_group(product, at->p, at->op, of->columns, k, room, &groups[s]);
        if (!at->p)
            return false;
    }
    if (of->count == 1) /* whatever else is there: it is not kept */
        memset(groups[1].terms, 0, sizeof(groups[1].terms));
    for (uint32_t b = 0; b < blocks_of(k); b++) {
        uint32_t terms = groups[0].terms[b];

        if (groups[1].terms[b] > terms)
            terms = groups[1].terms[b];
        for (uint32_t s = 0; s < of->count && terms == 2; s++)
            muc_fast_two_terms(&groups[s], b);
        for (uint32_t t = 0; t < terms; t++) {
            sixteen x;

            read_groups(groups, b, t, &x);
            add_rows(&x, left + (size_t)b * product->left_rows, room->rows, op->terms, of->sums);
        }
    }
    return true;
}

/* From its outline. Returns the blocks that were usual, all if the tile was; what was added if it
 * was not is as it would have been. */
AVX512 static INLINE bool add_outlined_tile(const muc_fast_product *product, const pair *of,
                                            const left_block *left, uint32_t rows, uint32_t blocks,
                                            bool *good)
{
    const mur_sim_product *op = of->slot->op;
    const __mmask16 active = of->count == 2 ? 0xffff : 0x00ff;
    __m512i header = _mm512_set1_epi32(MUR_BLOCK_NO_HEADER);
    kinds k[MUR_SIM_BLOCKS];
    __mmask16 bad = 0;
    sixteen x;

    for (uint32_t b = 0; b < blocks; b++) {
        k[b] = kinds_of(of->outline->size[b], active);
        if (!k[b].usual && !k[b].two)
            return false;
    }
    for (uint32_t b = 0; b < blocks; b++, left += product->left_rows) {
        if (k[b].usual) {
            bad |= read_usual(product, of->outline, b, k[b], &header, &x);
            add_rows(&x, left, rows, op->terms, of->sums);
            continue;
        }
        for (uint32_t t = 0; t < 2; t++) {
            bad |= read_two(product, of->outline, b, t, &x);
            add_rows(&x, left, rows, op->terms, of->sums);
        }
        header = _mm512_set1_epi32(MUR_BLOCK_NO_HEADER); /* of R none can be shared */
    }
    *good = (bad & active) == 0;
    return true;
}

/* Are there bytes enough to read beyond the tile? */
static bool has_slack(const unit *of)
{
    return of->op->right_readable - of->p >= MOST_LIE_BYTES;
}

/* Outlines beside an only slot: blocks of zeros. */
static void fill_beside(outline *out)
{
    static const uint8_t zeros[MUR_BLOCK_MAX_BYTES];

    for (uint32_t b = 0; b < MUR_SIM_BLOCKS; b++)
        for (uint32_t c = COLUMNS; c < LANES; c++) {
            out->end[b][c] = zeros + sizeof(zeros);
            out->head[b][c] = 0;
            out->size[b][c] = B4_BYTES;
        }
}

/* The next tile of `count` slots, k elements deep, at the left blocks `left`. */
AVX512 static INLINE bool add_tile(muc_fast_product *product, product_room *room, pair *pairs,
                                   uint32_t count, const left_block *left, uint32_t k)
{
    const uint8_t *p[SLOTS];
    bool outlined = k % MUR_BLOCK_ELEMS == 0 && pairs->columns == COLUMNS;

    for (uint32_t s = 0; s < count; s++) {
        p[s] = pairs->slot[s].p;
        outlined &= has_slack(&pairs->slot[s]);
    }
    if (outlined && k == 2 * MUR_BLOCK_ELEMS)
        outline_tile(p, count, 2, room->outline);
    else if (outlined)
        outline_tile(p, count, blocks_of(k), room->outline);
    for (uint32_t i = 0; i < (count + 1) / 2; i++) {
        bool good = true;

        if (!outlined ||
            !add_outlined_tile(product, &pairs[i], left, room->rows, blocks_of(k), &good)) {
            if (!add_read_tile(product, room, &pairs[i], left, k))
                return false;
            continue;
        }
        for (uint32_t s = 0; s < pairs[i].count; s++) {
            unit *at = &pairs[i].slot[s];

            at->p = p[2 * i + s];
            good &= at->p <= at->op->right_end;
        }
        if (!good)
            return false;
    }
    return true;
}

static INLINE void copy(const float *from, uint32_t columns, float *to)
{
    memcpy(to, from, columns == COLUMNS ? COLUMNS * sizeof(*to) : columns * sizeof(*to));
}

static INLINE void begin_sums(const product_room *room, const unit *of, uint32_t columns,
                              uint32_t first, float (*sums)[LANES])
{
    const mur_sim_product *op = of->op;

    for (uint32_t row = 0; row < room->rows; row++)
        if (op->fresh)
            memset(sums[row] + first, 0, COLUMNS * sizeof(**sums));
        else
            copy(op->out + (size_t)(room->row + row) * op->out_pitch + of->column, columns,
                 sums[row] + first);
}

static INLINE void end_sums(const product_room *room, const unit *of, uint32_t columns,
                            uint32_t first, float (*sums)[LANES])
{
    const mur_sim_product *op = of->op;

    for (uint32_t row = 0; row < room->rows; row++)
        memcpy(op->out + (size_t)(room->row + row) * op->out_pitch + of->column, sums[row] + first,
               columns * sizeof(float));
}

/* A group of `columns` columns of each of `count` slots. */
AVX512 static INLINE bool add_group(muc_fast_product *product, product_room *room, unit *slots,
                                    uint32_t count, uint32_t columns)
{
    const mur_sim_product *op = slots->op;
    pair pairs[SLOTS / 2];

    for (uint32_t s = 0; s < count; s++) {
        pairs[s / 2] = (pair){ slots + s / 2 * 2, s % 2 + 1, columns, &room->outline[s / 2],
                               room->sums[s / 2] };
        begin_sums(room, &slots[s], columns, s % 2 * COLUMNS, room->sums[s / 2]);
    }
    if (count % 2 != 0)
        fill_beside(&room->outline[count / 2]);
    for (uint32_t at = 0; at < op->k; at += op->tile_rows) {
        uint32_t k = op->k - at < op->tile_rows ? op->k - at : op->tile_rows;
        const left_block *left = room->left + (size_t)(at / MUR_BLOCK_ELEMS) * product->left_rows;

        if (!add_tile(product, room, pairs, count, left, k))
            return false;
    }
    for (uint32_t s = 0; s < count; s++) {
        end_sums(room, &slots[s], columns, s % 2 * COLUMNS, room->sums[s / 2]);
        slots[s].column += columns;
    }
    return true;
}

/* Fills slots that have none or are done with theirs, the first ones; returns how many are full. */
static uint32_t fill_slots(muc_fast_product *product, product_room *room, unit *slots)
{
    uint32_t count = 0;

    for (uint32_t s = 0; s < SLOTS; s++) {
        unit at = slots[s];

        slots[s].op = NULL;
        if (!at.op || at.column == at.past)
            at = muc_fast_take(product, room);
        if (at.op)
            slots[count++] = at;
    }
    return count;
}

static uint32_t columns_left(const unit *of)
{
    uint32_t left = of->past - of->column;

    return left < COLUMNS ? left : COLUMNS;
}

AVX512 bool muc_fast_multiply_avx512(muc_fast_product *product, product_room *room)
{
    unit slots[SLOTS] = { { .op = NULL } };
    uint32_t count, whole;

    while ((count = fill_slots(product, room, slots)) > 0) {
        for (whole = 0; whole < count && columns_left(&slots[whole]) == COLUMNS;)
            whole++;
        if (whole >= SLOTS) {
            if (!add_group(product, room, slots, SLOTS, COLUMNS))
                return false;
        } else if (whole >= 2) {
            if (!add_group(product, room, slots, 2, COLUMNS))
                return false;
        } else if (!add_group(product, room, slots, 1, columns_left(slots))) {
            return false;
        }
    }
    return true;
}

#endif
