/* fast_product_parts.h - what the forms of the fast product share: operands as they are read, and
 * the room for that. */
#ifndef UTHINKER_FAST_PRODUCT_PARTS_H
#define UTHINKER_FAST_PRODUCT_PARTS_H

#include <stdatomic.h>

#include "targets/uthinker/sim/fast_product.h"

enum {
    COLUMNS = 8, /* of a tile, multiplied beside each other */
    LANES = 2 * COLUMNS,
    LINE = 64, /* bytes */
    BIAS = 16,
    HALF = MUR_BLOCK_ELEMS / 2,
    B5_TABLE = 16,
    LEFT_BLOCKS = 4096, /* read at a time, */
    LEFT_ROWS = 256,    /* of at most so many rows */
    MOST_KEPT = 128,
    SLOTS = 4, /* units that one thread multiplies beside each other */
    MOST_UNITS = 512,
    MOST_FOUND = 32, /* groups of an operand that is not remembered */
    MOST_STREAMS = 16,
    MOST_LEFT_BYTES = 4096, /* that are compared with those before */
    MOST_GROUP_BYTES = COLUMNS * MUR_SIM_BLOCKS * MUR_BLOCK_MAX_BYTES
};

/* A block of the left operand. */
typedef struct left_block {
    int8_t m[MUR_BLOCK_TERMS][MUR_BLOCK_ELEMS]; /* by their place */
    int32_t start[MUR_BLOCK_TERMS];             /* -BIAS * the sum of m */
    float scale[MUR_BLOCK_TERMS];
} left_block;

/* The blocks of eight columns of a tile. A term that a column lacks has no values and the header
 * ABSENT, whose scale is -1: it adds -0, which changes no sum. */
typedef struct group {
    _Alignas(LINE) uint8_t
        m[MUR_SIM_BLOCKS][MUR_BLOCK_TERMS][COLUMNS][MUR_BLOCK_ELEMS]; /* plus BIAS, by place */
    uint32_t header[MUR_SIM_BLOCKS][MUR_BLOCK_TERMS][COLUMNS];
    uint32_t terms[MUR_SIM_BLOCKS]; /* of the column with the most */
} group;

#define ABSENT (1u << 31 | MUR_BLOCK_EXPONENT_BIAS << 7)

/* Where the blocks of two groups lie, beside each other. */
typedef struct outline {
    const uint8_t *end[MUR_SIM_BLOCKS][2 * COLUMNS];
    uint64_t head[MUR_SIM_BLOCKS][2 * COLUMNS]; /* the eight bytes after the size */
    uint8_t size[MUR_SIM_BLOCKS][2 * COLUMNS];
} outline;

/* What one thread multiplies in. */
typedef struct product_room {
    uint32_t row, rows;     /* of those in `left` */
    const left_block *left; /* the first of these rows */
    const struct unit *own; /* units that nobody else has, of which `next` is the next; or NULL */
    size_t own_count;
    size_t next; /* unit, where each thread has rows of its own; stream, from `first` on */
    size_t first;
    group group[2];
    outline outline[2];
    _Alignas(LINE) float sums[2][LEFT_ROWS][2 * COLUMNS];
    uint8_t tail[MOST_GROUP_BYTES + 64]; /* an operand's last bytes, with room to read beyond */
} product_room;

/* Sixteen columns of a packed operand, two blocks of each. */
typedef struct packed_block packed_block;

/* Groups of a product's columns that one thread takes. */
typedef struct unit {
    const mur_sim_product *op;  /* NULL: none */
    const uint8_t *p;           /* where the first of them begins */
    uint32_t column, past;      /* columns */
    const packed_block *packed; /* the first column's, in place of p in a packed product */
} unit;

/* A right operand that was multiplied before: where its groups begin, and what it is packed. */
typedef struct known_operand {
    const uint8_t *right; /* NULL: a free place */
    uint32_t k, cols, tile_rows, bytes;
    size_t first;          /* of product->starts */
    packed_block **packed; /* a part in each stream; or NULL */
} known_operand;

/* Memory for packed operands, of which this is the first line. */
typedef struct packed_chunk {
    struct packed_chunk *next;
    size_t used, size; /* bytes, this line among them */
} packed_chunk;

/* What one thread reads of packed operands, in the order in which they are first met and so mostly
 * multiplied: the columns that are its part of each. */
typedef struct packed_stream {
    _Alignas(LINE) atomic_size_t next; /* kept product that nobody has taken of it yet */
    packed_chunk *chunk;               /* the newest */
} packed_stream;

/* Steps of an attention, kept. */
typedef struct fast_attention fast_attention;

/* Products with values that are packed for them, kept. */
typedef struct fast_own_values fast_own_values;

/* Instructions between products, kept with them. */
typedef struct fast_put_off fast_put_off;

struct muc_fast_product {
    product_room *rooms;                /* a thread's each */
    muc_context *ctx;                   /* NULL: one thread */
    uint64_t least_shared, least_lines; /* work that is worth more than one */
    bool wide;             /* has this processor AVX-512 and its integer dot product? */
    size_t most_packed;    /* bytes that may yet be allocated for packed operands */
    void *allocated;       /* this lies in it, at the beginning of a cache line */
    uint8_t table[32][16]; /* value of a nibble in a dialect, plus BIAS; row B5_TABLE: kind B5 */
    uint8_t usual[256];    /* is it the size byte of a whole block of kind B4 or B5? */

    known_operand *operands; /* a hash table of `places`, a power of two */
    size_t places, operand_count;
    uint32_t streams;
    packed_stream stream[MOST_STREAMS];
    uint32_t *starts; /* bytes from an operand's first */
    size_t start_count, start_room;

    /* products of one left operand: of the rows in `left` of each of them */
    mur_sim_product kept[MOST_KEPT];
    known_operand *known[MOST_KEPT]; /* their right operands, or NULL */
    size_t count;
    size_t well_formed; /* of those last done, before the first malformed one */
    bool packed;        /* are all their right operands? */
    size_t shares;      /* threads, or fewer */
    bool by_rows;       /* has each thread rows of its own, of all units? */
    uint32_t left_rows; /* in `left` */
    unit units[MOST_UNITS];
    size_t unit_count;
    atomic_size_t next;
    atomic_bool malformed;
    left_block left[LEFT_BLOCKS]; /* [blocks][rows] */
    fast_attention *attention;    /* what is kept instead of products, or */
    fast_own_values *own;
    fast_put_off *put_off;   /* among products */
    mur_sim_product left_of; /* whose rows they are, if left_bytes is not 0: */
    uint8_t left_copy[MOST_LEFT_BYTES];
    size_t left_bytes;
};

static inline uint32_t blocks_of(uint32_t k)
{
    return (k + MUR_BLOCK_ELEMS - 1) / MUR_BLOCK_ELEMS;
}

static inline uint32_t pairs_of(const mur_sim_product *op)
{
    return (op->cols + 2 * COLUMNS - 1) / (2 * COLUMNS);
}

/* The next unit that is nobody's yet; its op is NULL if there is none. */
unit muc_fast_take(muc_fast_product *product, product_room *room);

/* The same of what is packed. */
unit muc_fast_take_packed(muc_fast_product *product, product_room *room);

/* Says where op's groups begin, and the bytes they take; false: beyond its end, or elsewhere than
 * this says. */
bool muc_fast_find_starts(const mur_sim_product *op, uint32_t *starts, uint32_t *bytes);

/* The `each` of a simulator, whose argument is the product. */
void muc_fast_share_lines(void *arg, uint32_t count, uint32_t elements, mur_sim_part *part,
                          void *part_arg);

/* As many threads as that shares lines among. */
size_t muc_fast_threads(const muc_fast_product *product);

/* Does the kept products; false, and which is: one is malformed. */
bool muc_fast_do_products(muc_fast_product *product, mur_sim_product *malformed);

/* Do both have the same left operand? */
bool muc_fast_alike(const mur_sim_product *a, const mur_sim_product *b);

/* Multiplies what nobody has taken yet, with such tiles as op has, by the processor's best form;
 * false if a block is malformed. */
bool muc_fast_multiply(muc_fast_product *product, const mur_sim_product *op, product_room *room);

/* ---- fast_attention.c ---- */

/* NULL: there is no memory. The caller frees it. */
fast_attention *muc_fast_attention_new(void);

/* mur_sim's keep_smax, whose argument is the product. */
int muc_fast_keep_smax(void *arg, const mur_sim *sim, const mur_sim_softmax *smax);

/* Is anything of an attention kept? */
bool muc_fast_attends(const muc_fast_product *product);

/* Keeps op too, if it goes on with the attention. */
bool muc_fast_attend(muc_fast_product *product, const mur_sim_product *op);

/* Does what is kept; false, and which is: a product is malformed. */
bool muc_fast_do_attention(muc_fast_product *product, mur_sim_product *malformed);

/* ---- fast_own_values.c: the same of packings, each with its product ---- */

fast_own_values *muc_fast_own_new(size_t threads);
int muc_fast_keep_packing(void *arg, const mur_sim *sim, const mur_sim_packing *packing);
bool muc_fast_packs(const muc_fast_product *product);
bool muc_fast_keep_own(muc_fast_product *product, const mur_sim_product *op);
bool muc_fast_do_own(muc_fast_product *product, mur_sim_product *malformed);

/* ---- fast_put_off.c ---- */

fast_put_off *muc_fast_put_off_new(void);

/* mur_sim's put_off, whose argument is the product. */
int muc_fast_put_off(void *arg, mur_sim *sim, enum mur_engine engine, const uint32_t *words);

/* Is any instruction put off? */
bool muc_fast_puts_off(const muc_fast_product *product);

/* Lets the results of op, which is to be kept next, wait for their turn; false: they cannot. */
bool muc_fast_keep_results(muc_fast_product *product, mur_sim_product *op);

/* After so many of the kept products, which are well-formed: does what waited for them; false: the
 * machine stopped. */
bool muc_fast_do_put_off(muc_fast_product *product, size_t products);

/* ---- fast_product_avx2.c ---- */

/* Reads op's rows first..past-1 into [blocks][product->left_rows] at `to`; false if a block is
 * malformed. */
bool muc_fast_read_left(const muc_fast_product *product, const mur_sim_product *op, uint32_t first,
                        uint32_t past, left_block *to);

/* Reads op's next group, at p, `columns` of k elements; NULL if a block is malformed. */
const uint8_t *muc_fast_read_group(const muc_fast_product *product, const uint8_t *p,
                                   const mur_sim_product *op, uint32_t columns, uint32_t k,
                                   product_room *room, group *out);

/* Makes room for a second term in all columns of a group. */
void muc_fast_two_terms(group *out, uint32_t block);

/* Multiplies what nobody has taken yet; false if a block is malformed. */
bool muc_fast_multiply_avx2(muc_fast_product *product, product_room *room);

/* ---- fast_product_avx512.c ---- */

/* The same; products with other tiles than of COLUMNS columns are none of its. */
bool muc_fast_multiply_avx512(muc_fast_product *product, product_room *room);

/* ---- fast_packed.c ---- */

/* of sixteen columns of op's right operand, packed */
size_t muc_fast_packed_bytes(const mur_sim_product *op);

/* Packs sixteen columns of op's right operand, whose groups begin at `starts`, to `out`, at a cache
 * line. False: a block is malformed, or has two terms. */
bool muc_fast_pack_pair(const muc_fast_product *product, const mur_sim_product *op,
                        const uint32_t *starts, uint32_t pair, packed_block *out);

/* Multiplies what nobody has taken yet, all of which is packed. */
void muc_fast_multiply_packed(muc_fast_product *product, product_room *room);

#endif
