/* fast_own_values.c - tokens of a call, each with the values that it sees of its own block, at
 * once.
 *
 * Each token packs these values anew, to one place, and multiplies them. Here each thread packs to
 * a place of its own, and the machine's gets what is packed last.
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

/* Token i, packed to a place of the thread's. False: a left block is malformed. */
static bool do_token(muc_fast_product *product, uint32_t i, product_room *room, uint8_t *packed)
{
    fast_own_values *of = product->own;
    const mur_sim_packing *packing = &of->packings[i];
    mur_sim_product op = of->products[i];
    left_block *left = product->left + (size_t)i * op.rows * TOKEN_BLOCKS;
    unit units[MOST_WIDTH / COLUMNS];

    if (i + 1 == of->multiplied) {
        packed = packing->out; /* where the machine has it */
    } else {
        op.right = packed;
        op.right_end = packed + mur_sim_packed_bytes(packing);
        op.right_readable = packed + PACKED_BYTES;
    }
    mur_sim_pack(of->sim, packing, 0, packing->cols, packed);
    if (!muc_fast_read_left(product, &op, 0, op.rows, left))
        return false;
    if (op.fresh)
        memset(op.out, 0, (size_t)op.rows * op.cols * sizeof(*op.out));
    op.fresh = 0;
    room->row = 0;
    room->rows = op.rows;
    room->left = left;
    room->next = room->own_count = 0;
    room->own = units;
    for (uint32_t column = 0; column < op.cols; column += COLUMNS)
        units[room->own_count++] =
            columns_of(&op, column, mur_sim_slots_bytes(packing->rows, packing->terms));
    return muc_fast_multiply(product, &op, room);
}

/* Every so many tokens, as later ones see more. */
static muc_status do_share(void *arg, size_t thread)
{
    muc_fast_product *product = arg;
    fast_own_values *of = product->own;

    for (uint32_t i = (uint32_t)thread; i < of->multiplied; i += (uint32_t)of->threads)
        if (!do_token(product, i, &product->rooms[thread], of->room[thread]))
            atomic_store(&product->malformed, true);
    return MUC_OK;
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
    of->threads = muc_fast_threads(product);
    if (of->multiplied < 2 * of->threads)
        of->threads = 1;
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
