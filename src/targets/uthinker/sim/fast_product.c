/* fast_product.c - the simulator's fast product: whose turn it is, and its tables.
 *
 * The sum of a block's products is an exact integer, so its order is free: elements of even index
 * come first, then those of odd index, as the nibbles of 16 bytes lie. Weights carry an offset of
 * BIAS, which makes them unsigned as the processor's dot product wants them; the sum starts at what
 * takes it out again. Only the additions across blocks have an order to keep, in each column.
 */
#include "targets/uthinker/sim/fast_product_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "quant/bd_table.h"
#include "targets/uthinker/sim/fast_vector.h"

#if defined(__x86_64__) && defined(__GNUC__)

enum { B5_PLANE = 4 }; /* bytes */

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

const mur_sim_product *muc_fast_take(muc_fast_product *product)
{
    size_t i = atomic_load_explicit(&product->next, memory_order_relaxed);

    if (i < product->count)
        i = atomic_fetch_add(&product->next, 1);
    return i < product->count ? &product->kept[i] : NULL;
}

/* Multiplies the rows in `left` by what is kept, from `first` to before product->count; false if a
 * block is malformed. */
static bool multiply_from(muc_fast_product *product, size_t first)
{
    bool wide = product->wide && product->kept->tile_columns == COLUMNS;

    atomic_store(&product->next, first);
    return wide ? muc_fast_multiply_avx512(product, &product->room)
                : muc_fast_multiply_avx2(product, &product->room);
}

/* the next rows of all that is kept */
static bool multiply_rows(muc_fast_product *product, uint32_t rows)
{
    for (size_t i = 0; i < product->count; i++)
        product->kept[i].rows = rows;
    if (!muc_fast_read_left(product, product->kept) || !multiply_from(product, 0))
        return false;
    for (size_t i = 0; i < product->count; i++) {
        mur_sim_product *op = &product->kept[i];

        op->left += (size_t)rows * op->left_pitch;
        op->out += (size_t)rows * op->out_pitch;
    }
    return true;
}

/* The first that is malformed. What it and others put out is of no use any more. */
static const mur_sim_product *find_malformed(muc_fast_product *product)
{
    size_t count = product->count, i = 0;

    if (muc_fast_read_left(product, product->kept))
        while (i + 1 < count && (product->count = i + 1, multiply_from(product, i)))
            i++;
    return &product->kept[i];
}

static int settle(void *arg, mur_sim_product *malformed)
{
    muc_fast_product *product = arg;
    const mur_sim_product *op = product->kept;
    uint32_t rows = op->rows, most = LEFT_BLOCKS / blocks_of(op->k);
    bool good = true;

    most = most < LEFT_ROWS ? most : LEFT_ROWS;
    for (uint32_t row = 0; row < rows && good; row += most)
        good = multiply_rows(product, rows - row < most ? rows - row : most);
    if (!good)
        *malformed = *find_malformed(product);
    product->count = 0;
    return good;
}

/* Do both have the same left operand? */
static bool alike(const mur_sim_product *a, const mur_sim_product *b)
{
    return a->left == b->left && a->rows == b->rows && a->k == b->k && a->terms == b->terms &&
           a->left_pitch == b->left_pitch && a->tile_rows == b->tile_rows &&
           a->tile_columns == b->tile_columns;
}

/* Can the two write to the same place? */
static bool meet(const mur_sim_product *a, const mur_sim_product *b)
{
    const float *a_end = a->out + (size_t)(a->rows - 1) * a->out_pitch + a->cols;
    const float *b_end = b->out + (size_t)(b->rows - 1) * b->out_pitch + b->cols;
    ptrdiff_t pitch = a->out_pitch, apart;

    if (a_end <= b->out || b_end <= a->out)
        return false;
    if (a->rows == 1 || a->out_pitch != b->out_pitch || a->cols > pitch || b->cols > pitch)
        return true;
    apart = (b->out - a->out) % pitch;
    apart += apart < 0 ? pitch : 0;
    return apart < a->cols || pitch - apart < b->cols;
}

static bool takes(const mur_sim_product *op)
{
    return op->rows > 0 && op->cols > 0 && op->k > 0 && blocks_of(op->k) <= LEFT_BLOCKS;
}

static enum mur_sim_product_result keep(void *arg, const mur_sim_product *op)
{
    muc_fast_product *product = arg;

    if (!takes(op))
        return MUR_SIM_PRODUCT_LEFT;
    if (product->count == MOST_KEPT || (product->count > 0 && !alike(product->kept, op)))
        return MUR_SIM_PRODUCT_FULL;
    for (size_t i = 0; i < product->count; i++)
        if (meet(&product->kept[i], op))
            return MUR_SIM_PRODUCT_FULL;
    product->kept[product->count++] = *op;
    return MUR_SIM_PRODUCT_KEPT;
}

static enum mur_sim_product_result multiply(void *arg, const mur_sim_product *op)
{
    muc_fast_product *product = arg;
    mur_sim_product unused;

    if (!takes(op))
        return MUR_SIM_PRODUCT_LEFT;
    product->kept[0] = *op;
    product->count = 1;
    return settle(product, &unused) ? MUR_SIM_PRODUCT_DONE : MUR_SIM_PRODUCT_MALFORMED;
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
    (*out)->wide = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    make_tables(*out);
    return MUC_OK;
}

void muc_fast_product_narrow(muc_fast_product *product)
{
    if (product)
        product->wide = false;
}

void muc_fast_product_use(muc_fast_product *product, mur_sim *sim)
{
    sim->product = product ? multiply : NULL;
    sim->settle = NULL;
    sim->product_arg = product;
    sim->encode = !product        ? mur_block_encode
                  : product->wide ? muc_fast_encode_avx512
                                  : muc_fast_encode;
    sim->exps = product ? muc_fast_exps : mur_sim_exps;
}

void muc_fast_product_keep(muc_fast_product *product, mur_sim *sim)
{
    muc_fast_product_use(product, sim);
    if (!product)
        return;
    sim->product = keep;
    sim->settle = settle;
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

void muc_fast_product_narrow(muc_fast_product *product)
{
    (void)product;
}

void muc_fast_product_use(muc_fast_product *product, mur_sim *sim)
{
    (void)product;
    sim->product = NULL;
    sim->settle = NULL;
    sim->encode = mur_block_encode;
    sim->exps = mur_sim_exps;
}

void muc_fast_product_keep(muc_fast_product *product, mur_sim *sim)
{
    muc_fast_product_use(product, sim);
}

void muc_fast_product_close(muc_fast_product *product)
{
    (void)product;
}

#endif
