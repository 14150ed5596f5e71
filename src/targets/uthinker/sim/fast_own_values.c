/* fast_own_values.c - tokens of a call, each with the values that it sees of its own block, at
 * once.
 *
 * Each token packs these values anew, to one place, and multiplies them. Here each thread packs to
 * a place of its own, all of a token or some columns, and the machine's gets what is packed last.
 */
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "targets/uthinker/sim/fast_product_parts.h"
#include "targets/uthinker/sim/uthinker_sim_execute.h"

#if defined(__x86_64__) && defined(__GNUC__)

enum {
    MOST_TOKENS = 64,
    MOST_ROWS = 16, /* of a product */
    MOST_WIDTH = 512,
    TOKEN_BLOCKS = (MUR_SIM_MOST_TOKENS + MUR_BLOCK_ELEMS - 1) / MUR_BLOCK_ELEMS,
    PACKED_BYTES = MOST_WIDTH * TOKEN_BLOCKS * MUR_BLOCK_MAX_BYTES + LINE
};

struct fast_own_values {
    const mur_sim *sim;
    uint32_t packed, multiplied; /* tokens */
    size_t threads;
    bool by_columns; /* has each thread columns of its own? */
    mur_sim_packing packings[MOST_TOKENS];
    mur_sim_product products[MOST_TOKENS];
    uint8_t room[][PACKED_BYTES]; /* [threads] */
};

fast_own_values *muc_fast_own_new(size_t threads)
{
    return calloc(1, sizeof(fast_own_values) + threads * PACKED_BYTES);
}

bool muc_fast_packs(const muc_fast_product *product)
{
    return product->own && product->own->packed > 0;
}

/* ---- what is kept ---- */

/* Does the packing read nothing that the products from the first to `end` write? */
static bool reads_others(const fast_own_values *of, const mur_sim_packing *packing,
                         const float *end)
{
    const float *past =
        packing->values + (size_t)(packing->rows - 1) * packing->pitch + packing->cols;

    return end <= packing->values || past <= of->products[0].out;
}

static const float *end_of(const mur_sim_product *op)
{
    return op->out + (size_t)op->rows * op->cols;
}

/* Does it pack what the one before packed, and perhaps more rows? */
static bool goes_on(const fast_own_values *of, const mur_sim_packing *packing)
{
    const mur_sim_packing *before = &of->packings[of->packed - 1];

    return packing->out == before->out && packing->cols == before->cols &&
           packing->terms == before->terms && packing->rows >= before->rows &&
           packing->values == before->values && packing->pitch == before->pitch &&
           reads_others(of, packing, end_of(&of->products[of->multiplied - 1]));
}

int muc_fast_keep_packing(void *arg, const mur_sim *sim, const mur_sim_packing *packing)
{
    muc_fast_product *product = arg;
    fast_own_values *of = product->own;

    if (product->count > 0 || muc_fast_attends(product) || of->packed == MOST_TOKENS ||
        of->packed != of->multiplied || packing->rows == 0 || packing->cols == 0 ||
        packing->cols > MOST_WIDTH || (of->packed > 0 && !goes_on(of, packing)))
        return 0;
    of->sim = sim;
    of->packings[of->packed++] = *packing;
    return 1;
}

static bool reads_packing(const mur_sim_product *op, const mur_sim_packing *packing)
{
    return op->right == packing->out && op->k == packing->rows && op->cols == packing->cols &&
           op->k <= op->tile_rows && op->tile_columns == COLUMNS &&
           op->right_end >= op->right + mur_sim_packed_bytes(packing);
}

bool muc_fast_keep_own(muc_fast_product *product, const mur_sim_product *op)
{
    fast_own_values *of = product->own;
    const mur_sim_packing *packing = &of->packings[of->packed - 1];

    if (of->multiplied == of->packed || op->rows > MOST_ROWS || op->out_pitch != op->cols ||
        !reads_packing(op, packing))
        return false;
    if (of->multiplied > 0 &&
        (op->rows != of->products[0].rows || op->out != end_of(&of->products[of->multiplied - 1])))
        return false;
    of->products[of->multiplied] = *op;
    if (!reads_others(of, packing, end_of(op)))
        return false;
    of->multiplied++;
    return true;
}

/* ---- how it is done ---- */

static unit columns_of(const mur_sim_product *op, uint32_t first, uint32_t bytes)
{
    return (unit){ .op = op,
                   .p = op->right + (size_t)first * bytes,
                   .column = first,
                   .past = op->cols - first < COLUMNS ? op->cols : first + COLUMNS };
}

/* What a thread does of a token. */
typedef struct token_part {
    uint32_t token, first, past; /* columns, of which `first` begins a group */
    left_block *left;            /* place for the token's rows, and */
    uint8_t *packed;             /* for its values; the machine's has the last token's */
} token_part;

/* False: a left block is malformed. */
static bool do_part_of_token(muc_fast_product *product, token_part part, product_room *room)
{
    fast_own_values *of = product->own;
    const mur_sim_packing *packing = &of->packings[part.token];
    mur_sim_product op = of->products[part.token];
    unit units[MOST_WIDTH / COLUMNS];

    if (part.token + 1 == of->multiplied) {
        part.packed = packing->out;
    } else {
        op.right = part.packed;
        op.right_end = part.packed + mur_sim_packed_bytes(packing);
        op.right_readable = part.packed + PACKED_BYTES;
    }
    mur_sim_pack(of->sim, packing, part.first, part.past, part.packed);
    if (!muc_fast_read_left(product, &op, 0, op.rows, part.left))
        return false;
    for (uint32_t row = 0; op.fresh && row < op.rows; row++)
        memset(op.out + (size_t)row * op.out_pitch + part.first, 0,
               (part.past - part.first) * sizeof(*op.out));
    op.fresh = 0;
    room->row = 0;
    room->rows = op.rows;
    room->left = part.left;
    room->next = room->own_count = 0;
    room->own = units;
    for (uint32_t column = part.first; column < part.past; column += COLUMNS)
        units[room->own_count++] =
            columns_of(&op, column, mur_sim_slots_bytes(packing->rows, packing->terms));
    return muc_fast_multiply(product, &op, room);
}

/* Columns of all tokens where these are few, or else all columns of every so many tokens, as later
 * ones see more. */
static muc_status do_share(void *arg, size_t thread)
{
    muc_fast_product *product = arg;
    fast_own_values *of = product->own;
    uint32_t cols = of->packings->cols, groups = (cols + COLUMNS - 1) / COLUMNS;
    uint32_t apart = of->by_columns ? 1 : (uint32_t)of->threads;
    token_part part = { .past = cols,
                        .left = product->left + thread * MOST_ROWS * TOKEN_BLOCKS,
                        .packed = of->room[thread] };

    if (of->by_columns) {
        part.first = (uint32_t)(groups * thread / of->threads) * COLUMNS;
        part.past = (uint32_t)(groups * (thread + 1) / of->threads) * COLUMNS;
        part.past = part.past < cols ? part.past : cols;
    }
    for (part.token = of->by_columns ? 0 : (uint32_t)thread; part.token < of->multiplied;
         part.token += apart)
        if (!do_part_of_token(product, part, &product->rooms[thread]))
            atomic_store(&product->malformed, true);
    return MUC_OK;
}

/* How many threads are worth it, and what of it each does. */
static void share(muc_fast_product *product)
{
    fast_own_values *of = product->own;
    uint32_t blocks = blocks_of(of->packings->rows);

    of->threads = muc_fast_threads(product);
    of->by_columns = of->multiplied < 2 * of->threads;
    if (of->by_columns && (uint64_t)of->multiplied * of->packings->cols * blocks * MUR_BLOCK_ELEMS <
                              product->least_lines)
        of->threads = 1;
}

static const mur_sim_product *find_malformed(muc_fast_product *product, const fast_own_values *of)
{
    uint32_t i = 0;

    while (i + 1 < of->multiplied &&
           muc_fast_read_left(product, &of->products[i], 0, of->products[i].rows, product->left))
        i++;
    return &of->products[i];
}

bool muc_fast_do_own(muc_fast_product *product, mur_sim_product *malformed)
{
    fast_own_values *of = product->own;
    const mur_sim_packing *last = &of->packings[of->packed - 1];

    product->left_bytes = 0;
    product->left_rows = of->products[0].rows;
    atomic_store(&product->malformed, false);
    share(product);
    if (of->threads > 1)
        muc_parallel_brief(product->ctx, of->threads, do_share, product);
    else
        do_share(product, 0);
    if (atomic_load(&product->malformed))
        *malformed = *find_malformed(product, of);
    if (of->packed > of->multiplied)
        mur_sim_pack(of->sim, last, 0, last->cols, last->out);
    of->packed = of->multiplied = 0;
    return !atomic_load(&product->malformed);
}

#endif
