/* requantized_sums.c - QuantLib's sums that are requantized where they are made: by the kernels of
 * int8 where all is constant, else in loops; and tables of bytes. */
#include <inttypes.h>
#include <string.h>

#include "mur_quantlib.h"
#include "targets/mcu/program/c_text.h"
#include "targets/mcu/kernels/image_batch.h"
#include "targets/mcu/kernels/int8_layer.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/program/runtime_files.h"
#include "targets/mcu/tiles/tiles.h"

static bool is_constant(const muc_tensor *t, muc_dtype dtype)
{
    return t->kind == MUC_TENSOR_CONST && t->data && t->dtype == dtype;
}

/* element i of a constant of i32, or its only one */
static int32_t word(const muc_tensor *t, uint32_t i)
{
    int32_t out;

    memcpy(&out, t->data + (t->bytes > sizeof(out) ? i : 0) * sizeof(out), sizeof(out));
    return out;
}

/* the half that rounds */
static int64_t half_of(const muc_node *node)
{
    return (INT64_C(1) << muc_node_integer(node, MUC_KEY_SHIFT)) >> 1;
}

/* ---- kernels ---- */

static bool has_filters(const muc_node *node)
{
    return muc_op_product(node->op)->kind == MUC_PRODUCT_FILTER;
}

bool muc_mcu_takes_requant_s8(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *w = muc_mcu_input(l, node, 1);
    const muc_tensor *mul = muc_mcu_input(l, node, 2), *add = muc_mcu_input(l, node, 3);
    const muc_tensor *zero = muc_mcu_input(l, node, 4);

    if (has_filters(node) && (x->rank != 4 || !muc_mcu_takes_images(l, x) ||
                              !muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0)))
        return false;
    if (x->dtype != MUC_I8 || muc_mcu_output(l, node, 0)->dtype != MUC_I8 ||
        !muc_mcu_is_static(l, x) || !is_constant(w, MUC_I8) || !is_constant(mul, MUC_I32) ||
        !is_constant(add, MUC_I32) || (zero && !is_constant(zero, MUC_I8)))
        return false;
    for (uint32_t i = 0; i < add->bytes / sizeof(int32_t); i++)
        if (word(add, i) + half_of(node) > INT32_MAX)
            return false;
    return true;
}

static muc_status write_product(muc_mcu_lowering *l, const muc_node *node, mur_conv_shape shape)
{
    const muc_tensor *mul = muc_mcu_input(l, node, 2), *add = muc_mcu_input(l, node, 3);
    const muc_tensor *zero = muc_mcu_input(l, node, 4);
    mur_conv_plain plain = { .weights = (const int8_t *)muc_mcu_input(l, node, 1)->data };
    mur_conv_s8 layer = { .shape = shape };
    int32_t *factors, *addends;

    layer.in_zero = zero ? (int8_t)zero->data[0] : 0;
    layer.output = (mur_output_s8){
        .kind = MUR_REQUANT_SHIFT,
        .shift = (uint8_t)muc_node_integer(node, MUC_KEY_SHIFT),
        .min = (int8_t)muc_node_integer(node, MUC_KEY_CLAMP_MIN),
        .max = (int8_t)muc_node_integer(node, MUC_KEY_CLAMP_MAX),
    };
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, (size_t)shape.out_c, &factors));
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, (size_t)shape.out_c, &addends));
    for (int32_t c = 0; c < shape.out_c; c++) {
        factors[c] = word(mul, (uint32_t)c);
        addends[c] = (int32_t)(word(add, (uint32_t)c) + half_of(node));
    }
    plain.mul = factors;
    plain.shift = addends;
    return muc_mcu_write_layer(l, node, &layer, &plain);
}

muc_status muc_mcu_write_requant_s8(muc_mcu_lowering *l, const muc_node *node)
{
    return write_product(
        l, node, has_filters(node) ? muc_mcu_conv_shape(l, node) : muc_mcu_linear_shape(l, node));
}

/* ---- sums and products of two ---- */

enum { SUMS = 511 }; /* that two bytes can have */

/* a table is worth it: of many sums of bytes by constants */
static bool has_table(const muc_mcu_lowering *l, const muc_node *node)
{
    return node->op == MUC_OP_REQUANT_ADD && muc_mcu_is_byte(muc_mcu_input(l, node, 0)) &&
           muc_mcu_is_byte(muc_mcu_input(l, node, 1)) &&
           muc_mcu_is_byte(muc_mcu_output(l, node, 0)) &&
           is_constant(muc_mcu_input(l, node, 2), MUC_I32) &&
           is_constant(muc_mcu_input(l, node, 3), MUC_I32) &&
           muc_mcu_most_elements(l, muc_mcu_output(l, node, 0)) > 2 * SUMS;
}

static int64_t least_of(const muc_tensor *t)
{
    return t->dtype == MUC_I8 ? INT8_MIN : 0;
}

/* what each sum becomes, from the least on; the least */
static int64_t print_table(muc_mcu_lowering *l, const muc_node *node)
{
    int64_t least = least_of(muc_mcu_input(l, node, 0)) + least_of(muc_mcu_input(l, node, 1));
    const int32_t mul = word(muc_mcu_input(l, node, 2), 0);
    const int32_t add = word(muc_mcu_input(l, node, 3), 0);
    const unsigned shift = (unsigned)muc_node_integer(node, MUC_KEY_SHIFT);
    const int32_t low = (int32_t)muc_node_integer(node, MUC_KEY_CLAMP_MIN);
    const int32_t high = (int32_t)muc_node_integer(node, MUC_KEY_CLAMP_MAX);

    int32_t table[SUMS];

    for (int64_t i = 0; i < SUMS; i++)
        table[i] = mur_quantlib_requant((int32_t)(least + i), mul, add, shift, low, high);
    muc_mcu_print_table(l, muc_mcu_output(l, node, 0)->dtype, "of_sum", table, SUMS);
    return least;
}

muc_status muc_mcu_write_requant_pair(muc_mcu_lowering *l, const muc_node *node)
{
    char sign = node->op == MUC_OP_REQUANT_ADD ? '+' : '*';
    muc_text line = { 0 };
    muc_mcu_nest nest;

    MUC_TRY(muc_mcu_begin_elements(l, node, 2, node->input_count, true, &nest));
    if (has_table(l, node)) {
        muc_text_add(&line, "@y = of_sum[@a + @b + %" PRId64 "];", -print_table(l, node));
    } else {
        muc_text_add(&line, "@y = (%s)mur_quantlib_requant(@a %c @b, c[0], d[0]",
                     muc_mcu_c_type(muc_mcu_output(l, node, 0)->dtype), sign);
        muc_mcu_print_requant(&line, node);
        muc_text_add(&line, ");");
    }
    MUC_TRY(muc_mcu_end_elements(&nest, &line));
    muc_mcu_share_pointwise(l, node);
    return MUC_OK;
}

/* ---- tables ---- */

bool muc_mcu_takes_lookup(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_is_static(l, muc_mcu_input(l, node, 0)) &&
           muc_mcu_input(l, node, 1)->kind == MUC_TENSOR_CONST;
}

/* The kernel reads x as int8; of u8 those are first whose top bit is set. */
muc_status muc_mcu_write_lookup(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    const uint64_t count = muc_mcu_most_elements(l, x);
    const muc_mcu_tile_layer cut = muc_mcu_rows_layer(node, 1, count, 1, false);
    unsigned turn = x->dtype == MUC_U8 ? 128 : 0;
    uint8_t *table;

    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, 256, &table));
    for (unsigned i = 0; i < 256; i++)
        table[i] = muc_mcu_input(l, node, 1)->data[i ^ turn];
    return muc_mcu_write_table(l, node, &cut, table);
}

muc_status muc_mcu_write_lookup_loops(muc_mcu_lowering *l, const muc_node *node)
{
    muc_text line = { 0 };
    muc_mcu_nest nest;

    MUC_TRY(muc_mcu_begin_elements(l, node, 1, 1, false, &nest));
    muc_text_add(&line, "@y = b[@a + %" PRId64 "];", -least_of(muc_mcu_input(l, node, 0)));
    MUC_TRY(muc_mcu_end_elements(&nest, &line));
    muc_mcu_share_pointwise(l, node);
    return MUC_OK;
}
