/* fast_packed.c - right operands that are multiplied again and again in a form of fixed size for
 * the simulator's fast product: sixteen columns beside each other, which AVX-512 reads as they lie.
 *
 * A block of sixteen columns takes 6 bits a weight. The values of all dialects are one table of 128
 * bytes, for which AVX-512 VBMI has an instruction; kind B5 has its values in place of an index.
 */
#include "targets/uthinker/sim/fast_product_avx512.h"

#include "quant/bd_table.h"

#if defined(__x86_64__) && defined(__GNUC__)

#define VBMI \
    __attribute__((target("avx2,avx512f,avx512vl,avx512bw,avx512dq,avx512vnni,avx512vbmi")))

enum {
    AHEAD = 8 /* blocks */,
    MINUS_ONE = 0xbf80,
    NEGATIVES = 8 /* bits of a nibble's byte and its neighbour's */
};

/* The place of a nibble in its column is 4 * i + j: its byte is j of the column's lane in
 * nibbles[i], the lower half of it for elements of even index. */
struct packed_block {
    _Alignas(
        LINE) uint8_t nibbles[4][LANES][4]; /* magnitudes: indices of a dialect; of B5 values */
    uint64_t negative[NEGATIVES];           /* of those of even index, then of odd */
    uint8_t base[LANES];                    /* where the dialect begins in the table; of B5 BIAS */
    uint16_t scale[LANES];                  /* the upper half of a binary32 */
    uint16_t b5;                            /* which columns are */
};

size_t muc_fast_packed_bytes(const mur_sim_product *op)
{
    return blocks_of(op->k) * sizeof(packed_block);
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

/* A block's column: 16 bytes of nibbles and which of its elements are negative, by their place. */
static void put_column(packed_block *out, uint32_t lane, const uint8_t *nibbles, uint32_t mask,
                       uint32_t even, uint32_t odd)
{
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t four;

        memcpy(&four, nibbles + 4 * i, sizeof(four));
        four &= mask;
        memcpy(out->nibbles[i][lane], &four, sizeof(four));
        out->negative[i] |= (uint64_t)(even >> 4 * i & 15u) << 4 * lane;
        out->negative[4 + i] |= (uint64_t)(odd >> 4 * i & 15u) << 4 * lane;
    }
}

static void put_header(packed_block *out, uint32_t lane, uint32_t header, bool b5)
{
    out->base[lane] = (uint8_t)(b5 ? BIAS : header >> 12 << 3);
    out->scale[lane] = (uint16_t)(((header >> 7 & 31u) + 127 - MUR_BLOCK_EXPONENT_BIAS) << 7);
    if (!b5)
        out->b5 &= (uint16_t) ~(1u << lane);
}

/* A block of kind B4 or B5 of 32 elements at p, below *header. Returns its end; NULL: it is
 * malformed. */
AVX512 static const uint8_t *put_usual(packed_block *out, uint32_t lane, const uint8_t *p,
                                       uint32_t *header)
{
    const uint8_t *end = p + 1 + (*p & 127u), *nibbles = end - HALF;
    bool own = !(*p & MUR_BLOCK_SHARED), b5 = (*p & 4u) != 0;
    uint32_t even = 0, odd = 0, plane;

    if (own)
        *header = p[1] | (uint32_t)p[2] << 8;
    if ((*header & 0x7fu) != (b5 ? MUR_BLOCK_B5 << 4 : 0u) || (b5 && *header >> 12 != 0))
        return NULL;
    if (b5) {
        memcpy(&plane, nibbles - sizeof(plane), sizeof(plane));
        even = even_bits(plane);
        odd = even_bits(plane >> 1);
    } else {
        __m128i x = _mm_loadu_si128((const void *)nibbles);

        even = (uint32_t)_mm_movemask_epi8(_mm_slli_epi16(x, 4));
        odd = (uint32_t)_mm_movemask_epi8(x);
    }
    put_column(out, lane, nibbles, b5 ? UINT32_MAX : 0x77777777u, even, odd);
    put_header(out, lane, *header, b5);
    return end;
}

/* Any other block of one term or none, n elements: as kind B5. */
static const uint8_t *put_unusual(packed_block *out, uint32_t lane, const uint8_t *p,
                                  const uint8_t *end, uint32_t n, uint32_t *header)
{
    uint8_t nibbles[HALF] = { 0 };
    uint32_t negative[2] = { 0 };
    mur_block block;
    size_t used = mur_block_parse(p, (size_t)(end - p), n, *header, &block);

    if (used == 0 || block.terms > 1)
        return NULL;
    *header = block.header;
    for (uint32_t i = 0; i < MUR_BLOCK_ELEMS && block.terms == 1; i++) {
        int32_t m = block.term->m[i];

        nibbles[i / 2] |= (uint8_t)((m < 0 ? -m : m) << (i % 2 * 4));
        negative[i % 2] |= (uint32_t)(m < 0) << i / 2;
    }
    if (block.terms == 1) {
        put_column(out, lane, nibbles, UINT32_MAX, negative[0], negative[1]);
        put_header(out, lane, (uint32_t)block.term->exponent << 7, true);
    }
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
                packed_block *to = &out[i / MUR_BLOCK_ELEMS];

                p = product->usual[*p] && end - i >= MUR_BLOCK_ELEMS
                        ? put_usual(to, c, p, &header)
                        : put_unusual(to, c, p, op->right_end,
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

    memset(out, 0, blocks_of(op->k) * sizeof(*out));
    for (uint32_t b = 0; b < blocks_of(op->k); b++) {
        out[b].b5 = 0xffff;
        for (uint32_t lane = 0; lane < LANES; lane++) {
            out[b].base[lane] = BIAS;
            out[b].scale[lane] = MINUS_ONE; /* adds -0, which changes no sum */
        }
    }
    for (uint32_t column = pair * LANES, lane = 0; column < op->cols && lane < LANES && good;
         column += COLUMNS, lane += COLUMNS)
        good = pack_group(product, op, op->right + starts[column / COLUMNS],
                          op->cols - column < COLUMNS ? op->cols - column : COLUMNS, lane, out);
    return good;
}

/* ---- products ---- */

VBMI static INLINE void unpack(const packed_block *of, __m512i low, __m512i high, sixteen *out)
{
    const __m512i spread =
        _mm512_set_epi32(0x0f0f0f0f, 0x0e0e0e0e, 0x0d0d0d0d, 0x0c0c0c0c, 0x0b0b0b0b, 0x0a0a0a0a,
                         0x09090909, 0x08080808, 0x07070707, 0x06060606, 0x05050505, 0x04040404,
                         0x03030303, 0x02020202, 0x01010101, 0);
    const __m512i nibble = _mm512_set1_epi8(15), twice = _mm512_set1_epi8(2 * BIAS);
    __m512i base =
        _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_load_si128((const void *)of->base)), spread);
    __m512i scale = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)of->scale));

    EACH(i, 4)
    {
        __m512i packed = _mm512_load_si512(of->nibbles[i]);
        __m512i even = _mm512_or_si512(_mm512_and_si512(packed, nibble), base);
        __m512i odd = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi16(packed, 4), nibble), base);
        __m512i x = _mm512_mask_mov_epi32(_mm512_permutex2var_epi8(low, even, high), of->b5, even);
        __m512i y = _mm512_mask_mov_epi32(_mm512_permutex2var_epi8(low, odd, high), of->b5, odd);

        out->w[i] = _mm512_mask_sub_epi8(x, of->negative[i], twice, x);
        out->w[4 + i] = _mm512_mask_sub_epi8(y, of->negative[4 + i], twice, y);
    }
    out->scale = _mm512_castsi512_ps(_mm512_slli_epi32(scale, 16));
}

/* Sixteen columns of some rows, which begin at `column`. */
VBMI static void multiply_pair(const muc_fast_product *product, const unit *u, uint32_t column,
                               product_room *room)
{
    const mur_sim_product *op = u->op;
    const packed_block *block =
        u->packed + (size_t)((column - u->column) / LANES) * blocks_of(op->k);
    const left_block *left = product->left + room->row;
    const __m512i low = _mm512_load_si512(product->magnitudes);
    const __m512i high = _mm512_load_si512(product->magnitudes + LINE);
    __mmask16 in =
        (__mmask16)(op->cols - column < LANES ? (1u << (op->cols - column)) - 1 : 0xffff);
    float(*sums)[LANES] = room->sums[0],
    *out = op->out + (size_t)room->row * op->out_pitch + column;

    for (uint32_t row = 0; row < room->rows; row++)
        _mm512_store_ps(sums[row],
                        op->fresh ? _mm512_setzero_ps()
                                  : _mm512_maskz_loadu_ps(in, out + (size_t)row * op->out_pitch));
    for (uint32_t b = 0; b < blocks_of(op->k); b++, block++, left += product->left_rows) {
        sixteen x;

        EACH(line, sizeof(*block) / LINE)
        _mm_prefetch((const char *)(block + AHEAD) + LINE * line, _MM_HINT_T0);
        unpack(block, low, high, &x);
        add_rows(&x, left, room->rows, op->terms, sums);
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

void muc_fast_fill_magnitudes(uint8_t *magnitudes)
{
    for (uint32_t d = 0; d < MUC_BD_DIALECTS; d++)
        for (uint32_t i = 0; i < 8; i++)
            magnitudes[8 * d + i] = (uint8_t)(BIAS + muc_bd_dialects[d][i]);
}

#endif
