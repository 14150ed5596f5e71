/* fast_product.c - operands and dispatch of the simulator's fast product.
 *
 * The sum of a block's products is an exact integer, so its order is free: elements of even index
 * come first, then those of odd index, as the nibbles of 16 bytes lie. Weights carry an offset of
 * BIAS, which makes them unsigned as the processor's dot product wants them; the sum starts at what
 * takes it out again. Only the additions across blocks have an order to keep, in each column.
 */
#include "targets/uthinker/sim/fast_product.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "quant/bd_table.h"
#include "targets/uthinker/sim/fast_vector.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

enum {
    COLUMNS = 8, /* multiplied beside each other */
    LINE = 64,   /* bytes */
    BIAS = 16,
    HALF = MUR_BLOCK_ELEMS / 2,
    B5_PLANE = 4, /* bytes; a bit of such a block's size byte, which no other usual size has */
    LEFT_BLOCKS = 4096,
    B5_TABLE = 16,
    MOST_GROUP_BYTES = COLUMNS * MUR_SIM_BLOCKS * MUR_BLOCK_MAX_BYTES
};

/* A block of the left operand. */
typedef struct left_block {
    int8_t m[MUR_BLOCK_TERMS][MUR_BLOCK_ELEMS];
    int32_t start[MUR_BLOCK_TERMS]; /* -BIAS * the sum of m */
    float scale[MUR_BLOCK_TERMS];
} left_block;

/* The blocks of eight columns of a tile. A term that a column lacks has no values and the header
 * ABSENT, whose scale is -1: it adds -0, which changes no sum. */
typedef struct group {
    uint8_t m[MUR_SIM_BLOCKS][MUR_BLOCK_TERMS][COLUMNS][MUR_BLOCK_ELEMS]; /* plus BIAS */
    uint32_t header[MUR_SIM_BLOCKS][MUR_BLOCK_TERMS][COLUMNS];
    uint32_t terms[MUR_SIM_BLOCKS]; /* of the column with the most */
} group;

#define ABSENT (1u << 31 | MUR_BLOCK_EXPONENT_BIAS << 7)

struct muc_fast_product {
    group group;
    enum mur_sim_product_result (*multiply)(muc_fast_product *product, const mur_sim_product *op);
    void *allocated;       /* this lies in it, at the beginning of a cache line */
    uint8_t table[32][16]; /* value of a nibble in a dialect, plus BIAS; row B5_TABLE: kind B5 */
    uint8_t usual[256];    /* is it the size byte of a whole block of kind B4 or B5? */
    uint8_t tail[MOST_GROUP_BYTES + 64]; /* the operand's last bytes, with room to read beyond */
    left_block left[LEFT_BLOCKS];
};

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

static void make_tables(muc_fast_product *product)
{
    for (uint32_t d = 0; d < B5_TABLE; d++)
        for (uint32_t i = 0; i < 8; i++) {
            product->table[d][i] = (uint8_t)(BIAS + muc_bd_dialects[d][i]);
            product->table[d][8 + i] = (uint8_t)(BIAS - muc_bd_dialects[d][i]);
        }
    for (uint32_t i = 0; i < 16; i++)
        product->table[B5_TABLE][i] = (uint8_t)(BIAS + i);
    for (uint32_t plane = 0; plane <= B5_PLANE; plane += B5_PLANE) {
        product->usual[HALF + 2 + plane] = 1;
        product->usual[MUR_BLOCK_SHARED | (HALF + plane)] = 1;
    }
}

static uint32_t blocks_of(uint32_t k)
{
    return (k + MUR_BLOCK_ELEMS - 1) / MUR_BLOCK_ELEMS;
}

static void absent(group *out, uint32_t block, uint32_t term, uint32_t column)
{
    memset(out->m[block][term][column], BIAS, MUR_BLOCK_ELEMS);
    out->header[block][term][column] = ABSENT;
}

/* Makes room for a second term in all columns. */
static void two_terms(group *out, uint32_t block)
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
        two_terms(out, b);
    for (uint32_t t = 0; t < block.terms; t++) {
        for (uint32_t i = 0; i < MUR_BLOCK_ELEMS; i++)
            out->m[b][t][c][place(i)] = (uint8_t)(BIAS + block.term[t].m[i]);
        out->header[b][t][c] = (uint32_t)block.term[t].exponent << 7;
    }
    return p + used;
}

/* The header of a term of that kind, n elements, whose last nibble's neighbour is clear? */
static bool is_term(const uint8_t *term, uint32_t n, uint32_t kind)
{
    return (load_u16(term) & 0x7fu) == kind << 4 && (n % 2 == 0 || term[2 + n / 2] >> 4 == 0);
}

/* Bits of a plane that say which elements are negative, by where elements lie; none of kind B4. */
#define EVEN 0x01, 0x04, 0x10, 0x40
#define ODD 0x02, 0x08, 0x20, 0x80
static const uint8_t plane_bits[2][MUR_BLOCK_ELEMS] = {
    { 0 },
    { EVEN, EVEN, EVEN, EVEN, ODD, ODD, ODD, ODD },
};

#define ALWAYS_INLINE inline __attribute__((always_inline))
/* Which of two is taken is a coin toss, so the compiler is kept from making a branch of it. */
#define NO_BRANCH(value) __asm__("" : "+r"(value))

#define TARGET __attribute__((target("avx2")))
#define NAMED(name) name##_avx2
#define NEGATE(v, plane, bits) \
    _mm256_blendv_epi8( \
        v, _mm256_sub_epi8(_mm256_set1_epi8(2 * BIAS), v), \
        _mm256_cmpeq_epi8(_mm256_and_si256(plane, bits), \
                          _mm256_loadu_si256((const __m256i *)(const void *)plane_bits[1])))
#define DOT_BEGIN(start) _mm256_setzero_si256()
#define DOT(sum, w, a) _mm256_add_epi16(sum, _mm256_maddubs_epi16(w, a))
/* at most 8 * 2 * 31 * 15 in each half of a sum */
#define DOT_END(sum, start) \
    _mm256_add_epi32(_mm256_madd_epi16(sum, _mm256_set1_epi16(1)), _mm256_set1_epi32(start))
#include "targets/uthinker/sim/fast_product_tile.h"
#undef TARGET
#undef NAMED
#undef NEGATE
#undef DOT_BEGIN
#undef DOT
#undef DOT_END

#define TARGET __attribute__((target("avx2,avx512f,avx512vl,avx512bw,avx512vnni")))
#define NAMED(name) name##_vnni
#define NEGATE(v, plane, bits) \
    _mm256_mask_sub_epi8(v, _mm256_test_epi8_mask(plane, bits), _mm256_set1_epi8(2 * BIAS), v)
#define DOT_BEGIN(start) _mm256_set1_epi32(start)
#define DOT(sum, w, a) _mm256_dpbusd_epi32(sum, w, a)
#define DOT_END(sum, start) sum
#include "targets/uthinker/sim/fast_product_tile.h"

static enum mur_sim_product_result multiply(void *arg, const mur_sim_product *op)
{
    muc_fast_product *product = arg;
    uint32_t blocks = blocks_of(op->k), most;
    mur_sim_product some = *op;

    if (op->rows == 0 || op->cols == 0 || op->k == 0 || blocks > LEFT_BLOCKS)
        return MUR_SIM_PRODUCT_LEFT;
    most = LEFT_BLOCKS / blocks;
    for (uint32_t row = 0; row < op->rows; row += most) {
        enum mur_sim_product_result result;

        some.rows = op->rows - row < most ? op->rows - row : most;
        some.left = op->left + row * op->left_pitch;
        some.out = op->out + row * op->out_pitch;
        result = product->multiply(product, &some);
        if (result != MUR_SIM_PRODUCT_DONE)
            return result;
    }
    return MUR_SIM_PRODUCT_DONE;
}

muc_status muc_fast_product_open(muc_context *ctx, muc_fast_product **out)
{
    void *allocated;

    *out = NULL;
    if (!__builtin_cpu_supports("avx2"))
        return MUC_OK;
    MUC_TRY(muc_new_array(ctx, "simulator", sizeof(**out) + LINE, 1, &allocated));
    *out = (void *)((uint8_t *)allocated + (LINE - (uintptr_t)allocated % LINE));
    (*out)->allocated = allocated;
    (*out)->multiply = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl") &&
                               __builtin_cpu_supports("avx512bw")
                           ? multiply_vnni
                           : multiply_avx2;
    make_tables(*out);
    return MUC_OK;
}

void muc_fast_product_use(muc_fast_product *product, mur_sim *sim)
{
    sim->product = product ? multiply : NULL;
    sim->product_arg = product;
    sim->encode = product ? muc_fast_encode : mur_block_encode;
    sim->exps = product ? muc_fast_exps : mur_sim_exps;
}

void muc_fast_product_close(muc_fast_product *product)
{
    if (product)
        free(product->allocated);
}

#else

muc_status muc_fast_product_open(muc_context *ctx, muc_fast_product **out)
{
    (void)ctx;
    *out = NULL;
    return MUC_OK;
}

void muc_fast_product_use(muc_fast_product *product, mur_sim *sim)
{
    (void)product;
    sim->product = NULL;
}

void muc_fast_product_close(muc_fast_product *product)
{
    (void)product;
}

#endif
