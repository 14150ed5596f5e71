/* fast_packed.c - right operands that are multiplied again and again in a form of fixed size for
 * the simulator's fast product: sixteen columns beside each other, which AVX-512 reads as they lie.
 *
 * What a dialect or a sign makes of a nibble is known when it is packed: a value plus BIAS has five
 * bits, whatever its kind. With its scale that takes 5.5 bits a weight.
 */
#include "targets/uthinker/sim/fast_product_avx512.h"

#if defined(__x86_64__) && defined(__GNUC__)

enum {
    TOGETHER = 2, /* blocks after each other, which fill cache lines */
    AHEAD = 4,    /* of those */
    MINUS_ONE = 0xbf80,
    HIGHS = 8 /* bits of a nibble's byte and its neighbour's */
};

/* The place of a value in its column is 4 * i + j: its byte is j of the column's lane in
 * nibbles[i], the lower half of it for elements of even index. */
struct packed_block {
    _Alignas(LINE) uint8_t nibbles[TOGETHER][4][LANES][4]; /* lower four bits */
    uint64_t high[TOGETHER][HIGHS];  /* the fifth, of those of even index, then of odd */
    uint16_t scale[TOGETHER][LANES]; /* the upper half of a binary32 */
};

/* of a column */
static uint32_t packed_blocks(const mur_sim_product *op)
{
    return (blocks_of(op->k) + TOGETHER - 1) / TOGETHER;
}

size_t muc_fast_packed_bytes(const mur_sim_product *op)
{
    return packed_blocks(op) * sizeof(packed_block);
}

/* ---- packing ---- */

/* 16 bits: those of even index */
static uint32_t even_bits(uint32_t x)
{
    x &= 0x55555555u;
    x = (x | x >> 1) & 0x33333333u;
    x = (x | x >> 2) & 0x0f0f0f0fu;
    x = (x | x >> 4) & 0x00ff00ffu;
    return (x | x >> 8) & 0xffffu;
}

/* One of a column's blocks where it goes. */
typedef struct place {
    packed_block *out;
    uint32_t half, lane;
} place;

/* Sixteen values of even index and sixteen of odd, plus BIAS, all of them nothing before. */
AVX512 static INLINE void put_values(place at, __m128i even, __m128i odd, uint32_t exponent)
{
    const __m128i low = _mm_set1_epi8(15);
    uint32_t fours[4], highs[2] = { (uint32_t)_mm_movemask_epi8(_mm_slli_epi16(even, 3)),
                                    (uint32_t)_mm_movemask_epi8(_mm_slli_epi16(odd, 3)) };
    __m128i nibbles =
        _mm_or_si128(_mm_and_si128(even, low), _mm_slli_epi16(_mm_and_si128(odd, low), 4));

    _mm_storeu_si128((void *)fours, nibbles);
    EACH(i, 4) memcpy(at.out->nibbles[at.half][i][at.lane], &fours[i], sizeof(fours[i]));
    EACH(i, HIGHS) /* from ones */
    at.out->high[at.half][i] ^= (uint64_t)(~highs[i / 4] >> i % 4 * 4 & 15u) << 4 * at.lane;
    at.out->scale[at.half][at.lane] = (uint16_t)((exponent + 127 - MUR_BLOCK_EXPONENT_BIAS) << 7);
}

/* A block of kind B4 or B5 of 32 elements at p, below *header. Returns its end; NULL: it is
 * malformed. */
AVX512 static const uint8_t *put_usual(const muc_fast_product *product, place at, const uint8_t *p,
                                       uint32_t *header)
{
    const uint8_t *end = p + 1 + (*p & 127u), *nibbles = end - HALF;
    const __m128i low = _mm_set1_epi8(15), twice = _mm_set1_epi8(2 * BIAS);
    __m128i x = _mm_loadu_si128((const void *)nibbles), table, even, odd;
    bool own = !(*p & MUR_BLOCK_SHARED), b5 = (*p & 4u) != 0;
    uint32_t plane;

    if (own)
        *header = p[1] | (uint32_t)p[2] << 8;
    if ((*header & 0x7fu) != (b5 ? MUR_BLOCK_B5 << 4 : 0u) || (b5 && *header >> 12 != 0))
        return NULL;
    table = _mm_loadu_si128((const void *)product->table[b5 ? B5_TABLE : *header >> 12]);
    even = _mm_shuffle_epi8(table, _mm_and_si128(x, low));
    odd = _mm_shuffle_epi8(table, _mm_and_si128(_mm_srli_epi16(x, 4), low));
    if (b5) {
        memcpy(&plane, nibbles - sizeof(plane), sizeof(plane));
        even = _mm_mask_sub_epi8(even, (__mmask16)even_bits(plane), twice, even);
        odd = _mm_mask_sub_epi8(odd, (__mmask16)even_bits(plane >> 1), twice, odd);
    }
    put_values(at, even, odd, *header >> 7 & 31u);
    return end;
}

/* Any other block of one term or none, n elements. */
AVX512 static const uint8_t *put_unusual(place at, const uint8_t *p, const uint8_t *end, uint32_t n,
                                         uint32_t *header)
{
    int8_t values[2][HALF];
    size_t used;
    mur_block block;

    used = mur_block_parse(p, (size_t)(end - p), n, *header, &block);
    if (used == 0 || block.terms > 1)
        return NULL;
    *header = block.header;
    if (block.terms == 0)
        return p + used;
    for (uint32_t i = 0; i < MUR_BLOCK_ELEMS; i++)
        values[i % 2][i / 2] = (int8_t)(BIAS + block.term->m[i]);
    put_values(at, _mm_loadu_si128((const void *)values[0]),
               _mm_loadu_si128((const void *)values[1]), block.term->exponent);
    return p + used;
}

/* Columns of a group at p, which begin in that lane. */
static bool pack_group(const muc_fast_product *product, const mur_sim_product *op, const uint8_t *p,
                       uint32_t columns, uint32_t lane, packed_block *out)
{
    for (uint32_t at = 0; at < op->k; at += op->tile_rows) {
        uint32_t end = op->k - at < op->tile_rows ? op->k : at + op->tile_rows;

        for (uint32_t c = lane; c < lane + columns; c++) {
            uint32_t header = MUR_BLOCK_NO_HEADER;

            for (uint32_t i = at; i < end; i += MUR_BLOCK_ELEMS) {
                uint32_t b = i / MUR_BLOCK_ELEMS;
                const place to = { &out[b / TOGETHER], b % TOGETHER, c };

                p = product->usual[*p] && end - i >= MUR_BLOCK_ELEMS
                        ? put_usual(product, to, p, &header)
                        : put_unusual(to, p, op->right_end,
                                      end - i < MUR_BLOCK_ELEMS ? end - i : MUR_BLOCK_ELEMS,
                                      &header);
                if (!p)
                    return false;
            }
        }
    }
    return true;
}

bool muc_fast_pack_pair(const muc_fast_product *product, const mur_sim_product *op,
                        const uint32_t *starts, uint32_t pair, packed_block *out)
{
    bool good = true;

    for (uint32_t b = 0; b < packed_blocks(op); b++) {
        memset(out[b].nibbles, 0, sizeof(out[b].nibbles)); /* values of 0 */
        memset(out[b].high, 0xff, sizeof(out[b].high));
        for (uint32_t i = 0; i < TOGETHER * LANES; i++)
            out[b].scale[i / LANES][i % LANES] = MINUS_ONE; /* adds -0, which changes no sum */
    }
    for (uint32_t column = pair * LANES, lane = 0; column < op->cols && lane < LANES && good;
         column += COLUMNS, lane += COLUMNS)
        good = pack_group(product, op, op->right + starts[column / COLUMNS],
                          op->cols - column < COLUMNS ? op->cols - column : COLUMNS, lane, out);
    return good;
}

/* ---- products ---- */

AVX512 static INLINE void unpack(const packed_block *of, uint32_t half, sixteen *out)
{
    const __m512i low = _mm512_set1_epi8(15), high = _mm512_set1_epi8(16);
    __m512i scale = _mm512_cvtepu16_epi32(_mm256_load_si256((const void *)of->scale[half]));

    EACH(i, 4)
    {
        __m512i packed = _mm512_load_si512(of->nibbles[half][i]);
        __m512i even = _mm512_and_si512(packed, low);
        __m512i odd = _mm512_and_si512(_mm512_srli_epi16(packed, 4), low);

        out->w[i] = _mm512_mask_add_epi8(even, of->high[half][i], even, high);
        out->w[4 + i] = _mm512_mask_add_epi8(odd, of->high[half][4 + i], odd, high);
    }
    out->scale = _mm512_castsi512_ps(_mm512_slli_epi32(scale, 16));
}

static INLINE void look_ahead(const packed_block *block)
{
    EACH(line, sizeof(*block) / LINE)
    _mm_prefetch((const char *)(block + AHEAD) + LINE * line, _MM_HINT_T0);
}

/* Adds sixteen columns to the sums of some rows, of which `left` has the first one's block. */
AVX512 static INLINE void add_columns(const muc_fast_product *product, const mur_sim_product *op,
                                      const packed_block *block, const left_block *left,
                                      uint32_t rows, float (*sums)[LANES])
{
    uint32_t blocks = blocks_of(op->k);

    for (uint32_t b = 0; b < blocks; b += TOGETHER, block++) {
        look_ahead(block);
        EACH(half, TOGETHER)
        {
            sixteen x;

            if (b + half == blocks)
                break;
            unpack(block, half, &x);
            add_rows(&x, left, rows, op->terms, sums);
            left += product->left_rows;
        }
    }
}

/* Sixteen columns of some rows, which begin at `column`. */
AVX512 static void multiply_pair(const muc_fast_product *product, const unit *u, uint32_t column,
                                 product_room *room)
{
    const mur_sim_product *op = u->op;
    const packed_block *block =
        u->packed + (size_t)((column - u->column) / LANES) * packed_blocks(op);
    const left_block *left = room->left;
    __mmask16 in =
        (__mmask16)(op->cols - column < LANES ? (1u << (op->cols - column)) - 1 : 0xffff);
    float(*sums)[LANES] = room->sums[0],
    *out = op->out + (size_t)room->row * op->out_pitch + column;

    for (uint32_t row = 0; row < room->rows; row++)
        _mm512_store_ps(sums[row],
                        op->fresh ? _mm512_setzero_ps()
                                  : _mm512_maskz_loadu_ps(in, out + (size_t)row * op->out_pitch));
    if (room->rows == 1) {
        _Alignas(LINE) float sum[1][LANES]; /* in a register */

        memcpy(sum, sums, sizeof(sum));
        add_columns(product, op, block, left, 1, sum);
        memcpy(sums, sum, sizeof(sum));
    } else {
        add_columns(product, op, block, left, room->rows, sums);
    }
    for (uint32_t row = 0; row < room->rows; row++)
        _mm512_mask_storeu_ps(out + (size_t)row * op->out_pitch, in, _mm512_load_ps(sums[row]));
}

void muc_fast_multiply_packed(muc_fast_product *product, product_room *room)
{
    unit u;

    while ((u = muc_fast_take_packed(product, room)).op != NULL)
        for (uint32_t column = u.column; column < u.past; column += LANES)
            multiply_pair(product, &u, column, room);
}

#endif
