/* tflite_import_compose.c - TFLite's operators that are several of the graph's. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "formats/tflite/tflite_import.h"

enum { MAX_RANK = MUC_GRAPH_MAX_RANK };

/* a node before the last, of x's scale; *id becomes its output */
static muc_status step(muc_tflite_import *im, muc_op op, const char *suffix,
                       const muc_attributes *a, uint32_t *id)
{
    return muc_tflite_step(im, op, suffix, id, 1, a, muc_tflite_in(im, 0), id);
}

static muc_status real_alone(const muc_tflite_import *im)
{
    if (muc_tflite_in(im, 0)->dtype != MUC_F32)
        return muc_tflite_refuse(im, MUC_UNSUPPORTED, "of integers");
    return MUC_OK;
}

/* SELECT's condition may be one for each of dimension 0 */
muc_status muc_tflite_import_select(muc_tflite_import *im)
{
    const muc_tflite_tensor *condition = muc_tflite_in(im, 0), *x = muc_tflite_in(im, 1);
    uint32_t inputs[3];

    for (uint32_t i = 1; i < 3; i++)
        MUC_TRY(muc_tflite_same_scale(im, muc_tflite_in(im, i), muc_tflite_out(im, 0)));
    for (uint32_t i = 0; i < 3; i++)
        MUC_TRY(muc_tflite_input(im, i, &inputs[i]));
    if (condition->rank == 1 && x->rank > 1) {
        muc_attributes a = { .count = 0 };
        int64_t dims[MAX_RANK];

        for (uint32_t i = 0; i < x->rank; i++)
            dims[i] = i ? 1 : condition->dims[0];
        muc_attributes_set_sizes(&a, im->graph, MUC_KEY_SHAPE, dims, x->rank);
        MUC_TRY(muc_tflite_step(im, MUC_OP_RESHAPE, "rows", &inputs[0], 1, &a, NULL, &inputs[0]));
    }
    return muc_tflite_last(im, MUC_OP_WHERE, inputs, 3, NULL);
}

muc_status muc_tflite_import_rank(muc_tflite_import *im)
{
    muc_attributes a = { .count = 0 }, shape = { .count = 0 };
    int64_t rank = muc_tflite_in(im, 0)->rank;
    uint32_t id;

    muc_attributes_set_sizes(&a, im->graph, MUC_KEY_VALUES, &rank, 1);
    muc_attributes_set(&a, MUC_KEY_TO, muc_tflite_out(im, 0)->dtype);
    MUC_TRY(muc_tflite_step(im, MUC_OP_EXPRESSIONS, "rank", NULL, 0, &a, NULL, &id));
    muc_attributes_set_sizes(&shape, im->graph, MUC_KEY_SHAPE, NULL, 0);
    return muc_tflite_last(im, MUC_OP_RESHAPE, &id, 1, &shape);
}

/* the root of the mean of squares */
muc_status muc_tflite_import_l2_pool(muc_tflite_import *im)
{
    muc_attributes a = { .count = 0 };
    uint32_t inputs[2], id;

    MUC_TRY(real_alone(im));
    MUC_TRY(muc_tflite_set_pool(im, &a));
    MUC_TRY(muc_tflite_input(im, 0, &inputs[0]));
    inputs[1] = inputs[0];
    MUC_TRY(muc_tflite_step(im, MUC_OP_MUL, "squares", inputs, 2, NULL, NULL, &id));
    MUC_TRY(muc_tflite_step(im, MUC_OP_AVERAGE_POOL, "mean", &id, 1, &a, NULL, &id));
    return muc_tflite_activated(im, MUC_OP_SQRT, &id, 1, &(muc_attributes){ .count = 0 },
                                muc_tflite_option(im, MUC_FLAT_POOL_2D_OPTIONS_activation));
}

/* bias + alpha * the sum over radius channels on both sides; the graph divides by their number */
muc_status muc_tflite_import_lrn(muc_tflite_import *im)
{
    int64_t window = 2 * muc_tflite_option(im, MUC_FLAT_LRN_OPTIONS_radius) + 1;
    float bias = muc_flat_real(im->options, MUC_FLAT_LRN_OPTIONS_bias);
    float alpha = muc_flat_real(im->options, MUC_FLAT_LRN_OPTIONS_alpha);
    float beta = muc_flat_real(im->options, MUC_FLAT_LRN_OPTIONS_beta);
    muc_attributes a = { .count = 0 };
    uint32_t input;

    if (window < 1 || window > 1 << 20 || !isfinite(bias) || !isfinite(alpha) || !isfinite(beta))
        return muc_tflite_refuse(im, MUC_MALFORMED, "a window of %" PRId64 " channels", window);
    MUC_TRY(real_alone(im));
    MUC_TRY(muc_tflite_input(im, 0, &input));
    muc_attributes_set_real(&a, MUC_KEY_ALPHA, (double)alpha * (double)window);
    muc_attributes_set_real(&a, MUC_KEY_BETA, (double)beta);
    muc_attributes_set_real(&a, MUC_KEY_BIAS, (double)bias);
    muc_attributes_set(&a, MUC_KEY_WINDOW, window);
    muc_attributes_set(&a, MUC_KEY_CHANNELS_LAST, 1);
    return muc_tflite_last(im, im->to, &input, 1, &a);
}

/* ---- indices ---- */

/* inputs: indices, a table of rows */
muc_status muc_tflite_import_embedding(muc_tflite_import *im)
{
    muc_attributes a = { .count = 0 };
    uint32_t inputs[2];

    MUC_TRY(muc_tflite_input(im, 1, &inputs[0]));
    MUC_TRY(muc_tflite_input(im, 0, &inputs[1]));
    if (muc_tflite_is_quantized(muc_tflite_in(im, 1)) && muc_tflite_out(im, 0)->dtype == MUC_F32)
        MUC_TRY(
            muc_tflite_step(im, MUC_OP_DEQUANTIZE, "table", &inputs[0], 1, NULL, NULL, &inputs[0]));
    else
        MUC_TRY(muc_tflite_same_scale(im, muc_tflite_in(im, 1), muc_tflite_out(im, 0)));
    muc_attributes_set(&a, MUC_KEY_AXIS, 0);
    return muc_tflite_last(im, im->to, inputs, 2, &a);
}

/* inputs: indices, updates, the output's shape; what meets adds up */
muc_status muc_tflite_import_scatter_nd(muc_tflite_import *im)
{
    const muc_tflite_tensor *out = muc_tflite_out(im, 0);
    muc_attributes a = { .count = 0 }, to = { .count = 0 };
    muc_tensor zeros = { .dtype = out->dtype, .rank = out->rank };
    uint32_t inputs[3];
    uint64_t bytes = muc_dtype_get(out->dtype)->block_bytes;
    uint8_t *data;

    if (muc_tflite_is_quantized(out))
        return muc_tflite_refuse(im, MUC_UNSUPPORTED, "of quantized integers");
    for (uint32_t i = 0; i < out->rank; i++) {
        zeros.dims[i] = muc_expr_const(im->graph->pool, out->dims[i]);
        bytes *= out->dims[i];
        if (bytes > im->model->file.size * 64 + (1 << 20))
            return muc_tflite_refuse(im, MUC_UNSUPPORTED, "an output of that size");
    }
    MUC_TRY(muc_arena_new(im->ctx, im->arena, (size_t)bytes + 1, 1, (void **)&data));
    memset(data, 0, (size_t)bytes);
    zeros.data = data;
    zeros.bytes = bytes;
    MUC_TRY(muc_tflite_constant(im, "zeros", &zeros, &inputs[0]));
    MUC_TRY(muc_tflite_input(im, 0, &inputs[1]));
    MUC_TRY(muc_tflite_input(im, 1, &inputs[2]));
    muc_attributes_set(&to, MUC_KEY_TO, MUC_I64);
    if (muc_tflite_in(im, 0)->dtype != MUC_I64)
        MUC_TRY(muc_tflite_step(im, MUC_OP_CAST, "indices", &inputs[1], 1, &to, NULL, &inputs[1]));
    muc_attributes_set(&a, MUC_KEY_REDUCTION, MUC_WORD_ADD);
    return muc_tflite_last(im, im->to, inputs, 3, &a);
}

/* values and indices, which are i64 in the graph */
muc_status muc_tflite_import_topk(muc_tflite_import *im)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0);
    muc_attributes a = { .count = 0 }, to = { .count = 0 };
    muc_tflite_operator values = *im->op, places = *im->op;
    muc_tflite_import each = *im;
    uint32_t input, ids[2], count;
    int64_t k;
    muc_new_node node = { .op = MUC_OP_TOP_K,
                          .input_count = 1,
                          .inputs = &input,
                          .attributes = a.items,
                          .output_count = 2 };

    if (im->op->output_count != 2 || x->rank == 0 || muc_tflite_is_quantized(x))
        return muc_tflite_refuse(im, MUC_UNSUPPORTED,
                                 "of a scalar, of quantized integers or of "
                                 "other than two outputs");
    MUC_TRY(muc_tflite_integers(im, 1, 1, &k, &count));
    if (count != 1 || k < 1 || k > x->dims[x->rank - 1])
        return muc_tflite_refuse(im, MUC_MALFORMED, "that many of %" PRIu32 " elements",
                                 x->dims[x->rank - 1]);
    MUC_TRY(muc_tflite_input(im, 0, &input));
    muc_attributes_set(&a, MUC_KEY_AXIS, (int64_t)x->rank - 1);
    muc_attributes_set_expr(&a, MUC_KEY_K, muc_expr_const(im->graph->pool, (uint32_t)k));
    node.attribute_count = a.count;
    MUC_TRY(muc_tflite_add(im, &node, "k", ids));
    each.op = &values;
    values.output_count = 1;
    MUC_TRY(muc_tflite_last(&each, MUC_OP_IDENTITY, &ids[0], 1, NULL));
    each.op = &places;
    places.outputs = &im->op->outputs[1];
    places.output_count = 1;
    muc_attributes_set(&to, MUC_KEY_TO, muc_tflite_out(im, 1)->dtype);
    return muc_tflite_last(&each, MUC_OP_CAST, &ids[1], 1, &to);
}

/* inputs: indices, depth, on, off */
muc_status muc_tflite_import_one_hot(muc_tflite_import *im)
{
    const muc_tflite_tensor *out = muc_tflite_out(im, 0);
    muc_attributes a = { .count = 0 }, join = { .count = 0 };
    uint32_t inputs[2], pair[2];
    int64_t axis = muc_tflite_option(im, MUC_FLAT_ONE_HOT_OPTIONS_axis), one = 1;

    MUC_TRY(muc_tflite_axis(im, axis, out->rank, &axis));
    MUC_TRY(muc_tflite_input(im, 0, &inputs[0]));
    for (uint32_t i = 0; i < 2; i++) {
        muc_attributes shape = { .count = 0 };

        MUC_TRY(muc_tflite_input(im, 3 - i, &pair[i]));
        muc_attributes_set_sizes(&shape, im->graph, MUC_KEY_SHAPE, &one, 1);
        MUC_TRY(muc_tflite_step(im, MUC_OP_RESHAPE, i ? "on" : "off", &pair[i], 1, &shape, NULL,
                                &pair[i]));
    }
    muc_attributes_set(&join, MUC_KEY_AXIS, 0);
    MUC_TRY(muc_tflite_step(im, MUC_OP_CONCAT, "values", pair, 2, &join, NULL, &inputs[1]));
    muc_attributes_set(&a, MUC_KEY_AXIS, axis);
    muc_attributes_set_expr(&a, MUC_KEY_SIZE, muc_expr_const(im->graph->pool, out->dims[axis]));
    return muc_tflite_last(im, im->to, inputs, 2, &a);
}

/* ---- elements moved ---- */

/* count elements along axis, from start on, forwards or backwards */
static muc_status cut(muc_tflite_import *im, const char *suffix, int64_t axis, int64_t start,
                      int64_t count, int64_t direction, uint32_t *id)
{
    muc_attributes a = { .count = 0 };

    muc_attributes_set_integers(&a, MUC_KEY_AXES, &axis, 1);
    muc_attributes_set_sizes(&a, im->graph, MUC_KEY_STARTS, &start, 1);
    muc_attributes_set_sizes(&a, im->graph, MUC_KEY_SIZES, &count, 1);
    muc_attributes_set_integers(&a, MUC_KEY_STEPS, &direction, 1);
    return step(im, MUC_OP_SLICE, suffix, &a, id);
}

muc_status muc_tflite_import_reverse(muc_tflite_import *im)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0);
    int64_t axes[MAX_RANK];
    uint32_t id, count;

    MUC_TRY(muc_tflite_same_scale(im, x, muc_tflite_out(im, 0)));
    MUC_TRY(muc_tflite_integers(im, 1, MAX_RANK, axes, &count));
    MUC_TRY(muc_tflite_input(im, 0, &id));
    for (uint32_t i = 0; i < count; i++) {
        MUC_TRY(muc_tflite_axis(im, axes[i], x->rank, &axes[i]));
        if (x->dims[axes[i]] > 1)
            MUC_TRY(cut(im, "reversed", axes[i], (int64_t)x->dims[axes[i]] - 1, x->dims[axes[i]],
                        -1, &id));
    }
    return muc_tflite_last(im, MUC_OP_IDENTITY, &id, 1, NULL);
}

/* MIRROR_PAD with the edge repeated: pieces of x backwards around it, dimension by dimension */
muc_status muc_tflite_import_symmetric_pad(muc_tflite_import *im)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0);
    int64_t pads[2 * MAX_RANK];
    uint32_t id, count;

    MUC_TRY(muc_tflite_same_scale(im, x, muc_tflite_out(im, 0)));
    MUC_TRY(muc_tflite_integers(im, 1, 2 * MAX_RANK, pads, &count));
    if (count != 2 * x->rank)
        return muc_tflite_refuse(im, MUC_MALFORMED, "%" PRIu32 " pads of %" PRIu32 " dimensions",
                                 count, x->rank);
    MUC_TRY(muc_tflite_input(im, 0, &id));
    for (uint32_t i = 0; i < x->rank; i++) {
        int64_t before = pads[2 * i], after = pads[2 * i + 1], size = x->dims[i];
        muc_attributes a = { .count = 0 };
        uint32_t parts[3], n = 0;

        if (before < 0 || after < 0 || before > size || after > size)
            return muc_tflite_refuse(im, MUC_MALFORMED, "pads beyond dimension %" PRIu32, i);
        if (before > 0) {
            parts[n] = id;
            MUC_TRY(cut(im, "before", i, before - 1, before, -1, &parts[n++]));
        }
        parts[n++] = id;
        if (after > 0) {
            parts[n] = id;
            MUC_TRY(cut(im, "after", i, size - 1, after, -1, &parts[n++]));
        }
        muc_attributes_set(&a, MUC_KEY_AXIS, i);
        if (n > 1)
            MUC_TRY(muc_tflite_step(im, MUC_OP_CONCAT, "joined", parts, n, &a, x, &id));
    }
    return muc_tflite_last(im, MUC_OP_IDENTITY, &id, 1, NULL);
}

/* ---- space and batch ---- */

/* Blocks [n] and pads or crops [n][2] of an operator between space and batch. */
static muc_status read_blocks(const muc_tflite_import *im, muc_tflite_blocks *b)
{
    uint32_t items;

    MUC_TRY(muc_tflite_integers(im, 1, 2, b->block, &b->count));
    MUC_TRY(muc_tflite_integers(im, 2, 4, b->pads, &items));
    if (b->count == 0 || items != 2 * b->count || muc_tflite_in(im, 0)->rank < 1 + b->count ||
        muc_tflite_in(im, 0)->rank + b->count > MAX_RANK)
        return muc_tflite_refuse(im, MUC_MALFORMED, "blocks and pads that do not fit the input");
    for (uint32_t i = 0; i < items; i++)
        if (b->block[i / 2] < 1 || b->block[i / 2] > 1 << 16 || b->pads[i] < 0 ||
            b->pads[i] > 1 << 24)
            return muc_tflite_refuse(im, MUC_MALFORMED, "a block or pad of no sense");
    return MUC_OK;
}

muc_status muc_tflite_import_space_to_batch(muc_tflite_import *im)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0);
    int64_t pads[2 * MAX_RANK] = { 0 }, split[MAX_RANK], perm[MAX_RANK];
    muc_attributes padding = { .count = 0 }, parts = { .count = 0 }, a = { .count = 0 },
                   shape = { .count = 0 };
    muc_tflite_blocks b;
    uint32_t id, n = 0;

    MUC_TRY(muc_tflite_same_scale(im, x, muc_tflite_out(im, 0)));
    MUC_TRY(read_blocks(im, &b));
    split[n++] = x->dims[0];
    for (uint32_t i = 0; i < b.count; i++) {
        int64_t extent = x->dims[1 + i] + b.pads[2 * i] + b.pads[2 * i + 1];

        pads[1 + i] = b.pads[2 * i];
        pads[x->rank + 1 + i] = b.pads[2 * i + 1];
        if (extent % b.block[i])
            return muc_tflite_refuse(im, MUC_MALFORMED,
                                     "%" PRId64 " elements in blocks of %" PRId64, extent,
                                     b.block[i]);
        split[n++] = extent / b.block[i];
        split[n++] = b.block[i];
        perm[i] = 2 + 2 * i; /* blocks, batch, space */
        perm[b.count + 1 + i] = 1 + 2 * i;
    }
    perm[b.count] = 0;
    for (uint32_t i = 1 + b.count; i < x->rank; i++) {
        perm[n] = n;
        split[n++] = x->dims[i];
    }
    MUC_TRY(muc_tflite_input(im, 0, &id));
    muc_attributes_set_integers(&padding, MUC_KEY_PADS, pads, 2 * x->rank);
    MUC_TRY(step(im, MUC_OP_PAD, "padded", &padding, &id));
    muc_attributes_set_sizes(&parts, im->graph, MUC_KEY_SHAPE, split, n);
    MUC_TRY(step(im, MUC_OP_RESHAPE, "blocks", &parts, &id));
    muc_attributes_set_integers(&a, MUC_KEY_PERM, perm, n);
    MUC_TRY(step(im, MUC_OP_TRANSPOSE, "phases", &a, &id));
    muc_tflite_set_dims(im, &shape, MUC_KEY_SHAPE, muc_tflite_out(im, 0));
    return muc_tflite_last(im, MUC_OP_RESHAPE, &id, 1, &shape);
}

/* the batch of blocks back into space, then what is cropped */
static muc_status gather_blocks(muc_tflite_import *im, const muc_tflite_blocks *b)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0);
    int64_t split[MAX_RANK], perm[MAX_RANK], whole[MAX_RANK], blocks = 1;
    muc_attributes parts = { .count = 0 }, a = { .count = 0 }, shape = { .count = 0 };
    uint32_t id, n = b->count + 1;

    for (uint32_t i = 0; i < b->count; i++) {
        split[i] = b->block[i];
        blocks *= b->block[i];
    }
    if (x->dims[0] % blocks)
        return muc_tflite_refuse(im, MUC_MALFORMED, "a batch of %" PRIu32 " of %" PRId64 " blocks",
                                 x->dims[0], blocks);
    split[b->count] = whole[0] = x->dims[0] / blocks;
    perm[0] = b->count;
    for (uint32_t i = 1; i < x->rank; i++, n++) {
        split[n] = whole[i] = x->dims[i];
        if (i <= b->count) {
            perm[2 * i - 1] = n;
            perm[2 * i] = i - 1;
            whole[i] *= b->block[i - 1];
        } else {
            perm[n] = n;
        }
    }
    MUC_TRY(muc_tflite_input(im, 0, &id));
    muc_attributes_set_sizes(&parts, im->graph, MUC_KEY_SHAPE, split, n);
    MUC_TRY(step(im, MUC_OP_RESHAPE, "phases", &parts, &id));
    muc_attributes_set_integers(&a, MUC_KEY_PERM, perm, n);
    MUC_TRY(step(im, MUC_OP_TRANSPOSE, "blocks", &a, &id));
    muc_attributes_set_sizes(&shape, im->graph, MUC_KEY_SHAPE, whole, x->rank);
    MUC_TRY(step(im, MUC_OP_RESHAPE, "space", &shape, &id));
    for (uint32_t i = 0; i < b->count; i++) {
        int64_t left = whole[1 + i] - b->pads[2 * i] - b->pads[2 * i + 1];

        if (left < 1)
            return muc_tflite_refuse(im, MUC_MALFORMED, "crops that leave nothing");
        if (left != whole[1 + i])
            MUC_TRY(cut(im, "cropped", 1 + i, b->pads[2 * i], left, 1, &id));
    }
    return muc_tflite_last(im, MUC_OP_IDENTITY, &id, 1, NULL);
}

/* Space to batch, a convolution without padding and steps, and back: one with dilation. */
muc_status muc_tflite_import_batch_to_space(muc_tflite_import *im)
{
    muc_tflite_phases phases;
    muc_tflite_blocks b;

    MUC_TRY(muc_tflite_same_scale(im, muc_tflite_in(im, 0), muc_tflite_out(im, 0)));
    MUC_TRY(read_blocks(im, &b));
    if (!muc_tflite_find_phases(im, im->op, &phases))
        return gather_blocks(im, &b);
    return muc_tflite_import_dilated(im, &phases);
}
