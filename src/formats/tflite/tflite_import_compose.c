/* tflite_import_compose.c - TFLite's operators that are several of the graph's. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "formats/tflite/tflite_import.h"

enum { MAX_RANK = MUC_GRAPH_MAX_RANK };

static muc_status real_alone(const muc_tflite_import *im)
{
    if (muc_tflite_in(im, 0)->dtype != MUC_F32)
        return muc_tflite_refuse(im, MUC_UNSUPPORTED, "of integers");
    return MUC_OK;
}

/* SELECT's condition may be one for each of dimension 0 */
muc_status muc_tflite_import_select(muc_tflite_import *im)
{
    uint32_t rank = muc_tflite_in(im, 1)->rank;

    if (muc_tflite_in(im, 0)->rank != 1 || rank < 2)
        return muc_tflite_cook(im, ". * same12");
    return muc_tflite_cook(im, "rows = reshape 0 shape=in0%.*s; . rows 1 2 same12",
                           2 * (int)(rank - 1), ",1,1,1,1,1,1,1");
}

muc_status muc_tflite_import_rank(muc_tflite_import *im)
{
    return muc_tflite_cook(im, "rank = expressions values=%" PRIu32 " to=out; reshape rank shape=",
                           muc_tflite_in(im, 0)->rank);
}

/* the root of the mean of squares */
muc_status muc_tflite_import_l2_pool(muc_tflite_import *im)
{
    muc_attributes a = { .count = 0 };

    MUC_TRY(real_alone(im));
    MUC_TRY(muc_tflite_set_pool(im, &a));
    return muc_tflite_cook_given(
        im, &a, "squares = mul 0 0; mean = average_pool squares given; sqrt mean activated");
}

/* bias + alpha * the sum over radius channels on both sides; the graph divides by their number */
muc_status muc_tflite_import_lrn(muc_tflite_import *im)
{
    int64_t window = 2 * muc_tflite_option(im, "radius") + 1;
    float alpha = muc_flat_real(im->options, MUC_FLAT_LRN_OPTIONS_alpha);

    if (window < 1 || window > 1 << 20 || !isfinite(alpha))
        return muc_tflite_refuse(im, MUC_MALFORMED, "the window has %" PRId64 " channels", window);
    MUC_TRY(real_alone(im));
    return muc_tflite_cook(
        im, ". 0 alpha=%.17g beta=@beta bias=@bias window=%" PRId64 " channels_last=1",
        (double)alpha * (double)window, window);
}

/* ---- indices ---- */

/* inputs: indices, a table of rows */
muc_status muc_tflite_import_embedding(muc_tflite_import *im)
{
    bool stored =
        muc_tflite_is_quantized(muc_tflite_in(im, 1)) && muc_tflite_out(im, 0)->dtype == MUC_F32;

    return muc_tflite_cook(im, stored ? "table = dequantize 1; . table 0 axis=0"
                                      : ". 1 0 same1 axis=0");
}

/* values and indices, which are i64 in the graph */
muc_status muc_tflite_import_topk(muc_tflite_import *im)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0);
    muc_attributes a = { .count = 0 };
    muc_tflite_operator one = *im->op;
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
                                 "expected two outputs, and an input that is neither a scalar nor "
                                 "quantized");
    MUC_TRY(muc_tflite_integers(im, 1, 1, &k, &count));
    if (count != 1 || k < 1 || k > x->dims[x->rank - 1])
        return muc_tflite_refuse(im, MUC_MALFORMED, "k is not a number from 1 to %" PRIu32,
                                 x->dims[x->rank - 1]);
    MUC_TRY(muc_tflite_input(im, 0, &input));
    muc_attributes_set(&a, MUC_KEY_AXIS, (int64_t)x->rank - 1);
    muc_attributes_set_expr(&a, MUC_KEY_K, muc_expr_const(im->graph->pool, (uint32_t)k));
    node.attribute_count = a.count;
    MUC_TRY(muc_tflite_add(im, &node, "k", ids));
    each.op = &one;
    one.output_count = 1;
    MUC_TRY(muc_tflite_make(&each, &ids[0], 1, NULL, "identity 0"));
    one.outputs = &im->op->outputs[1];
    return muc_tflite_make(&each, &ids[1], 1, NULL, "cast 0 to=out");
}

/* inputs: indices, depth, on, off */
muc_status muc_tflite_import_one_hot(muc_tflite_import *im)
{
    const muc_tflite_tensor *out = muc_tflite_out(im, 0);
    int64_t axis;

    MUC_TRY(
        muc_import_axis(muc_tflite_subject(im), muc_tflite_option(im, "axis"), out->rank, &axis));
    return muc_tflite_cook(im,
                           "off = reshape 3 shape=1; on = reshape 2 shape=1; "
                           "values = concat off on axis=0; . 0 values axis=%" PRId64
                           " size=%" PRIu32,
                           axis, out->dims[axis]);
}

/* ---- elements moved ---- */

/* count elements along axis, from start on, forwards or backwards */
static muc_status cut(muc_tflite_import *im, const char *suffix, int64_t axis, int64_t start,
                      int64_t count, int direction, uint32_t *id)
{
    return muc_tflite_make(im, id, 1, id,
                           "%s = slice 0 axes=%d starts=%" PRId64 " sizes=%" PRId64 " steps=%d",
                           suffix, (int)axis, start, count, direction);
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
        MUC_TRY(muc_import_axis(muc_tflite_subject(im), axes[i], x->rank, &axes[i]));
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
        uint32_t parts[3], n = 0;

        if (before < 0 || after < 0 || before > size || after > size)
            return muc_tflite_refuse(
                im, MUC_MALFORMED,
                "the pads of dimension %" PRIu32 " are negative, or greater than it", i);
        if (before > 0) {
            parts[n] = id;
            MUC_TRY(cut(im, "before", i, before - 1, before, -1, &parts[n++]));
        }
        parts[n++] = id;
        if (after > 0) {
            parts[n] = id;
            MUC_TRY(cut(im, "after", i, size - 1, after, -1, &parts[n++]));
        }
        if (n > 1)
            MUC_TRY(muc_tflite_make(im, parts, n, &id, "joined = concat * axis=%" PRIu32, i));
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
        return muc_tflite_refuse(im, MUC_MALFORMED, "the blocks or pads do not fit the input");
    for (uint32_t i = 0; i < items; i++)
        if (b->block[i / 2] < 1 || b->block[i / 2] > 1 << 16 || b->pads[i] < 0 ||
            b->pads[i] > 1 << 24)
            return muc_tflite_refuse(im, MUC_MALFORMED,
                                     "a block is below 1, or a pad negative, or one is too large");
    return MUC_OK;
}

muc_status muc_tflite_import_space_to_batch(muc_tflite_import *im)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0);
    int64_t pads[2 * MAX_RANK] = { 0 }, split[MAX_RANK], perm[MAX_RANK];
    muc_tflite_blocks b;
    uint32_t n = 0;

    MUC_TRY(read_blocks(im, &b));
    split[n++] = x->dims[0];
    for (uint32_t i = 0; i < b.count; i++) {
        int64_t extent = x->dims[1 + i] + b.pads[2 * i] + b.pads[2 * i + 1];

        pads[1 + i] = b.pads[2 * i];
        pads[x->rank + 1 + i] = b.pads[2 * i + 1];
        if (extent % b.block[i])
            return muc_tflite_refuse(im, MUC_MALFORMED,
                                     "%" PRId64 " elements do not divide into blocks of %" PRId64,
                                     extent, b.block[i]);
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
    return muc_tflite_cook(im,
                           "padded = pad 0 same0 pads=%s; blocks = reshape padded shape=%s; "
                           "phases = transpose blocks perm=%s; reshape phases shape=out",
                           MUC_LIST(pads, 2 * x->rank), MUC_LIST(split, n), MUC_LIST(perm, n));
}

/* the batch of blocks back into space, then what is cropped */
static muc_status gather_blocks(muc_tflite_import *im, const muc_tflite_blocks *b)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0);
    int64_t split[MAX_RANK], perm[MAX_RANK], whole[MAX_RANK], blocks = 1;
    uint32_t id, n = b->count + 1;

    for (uint32_t i = 0; i < b->count; i++) {
        split[i] = b->block[i];
        blocks *= b->block[i];
    }
    if (x->dims[0] % blocks)
        return muc_tflite_refuse(im, MUC_MALFORMED,
                                 "the batch, %" PRIu32 ", is not a multiple of %" PRId64 " blocks",
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
    MUC_TRY(muc_tflite_make(im, &id, 1, &id,
                            "phases = reshape 0 shape=%s; blocks = transpose phases perm=%s; "
                            "space = reshape blocks shape=%s",
                            MUC_LIST(split, n), MUC_LIST(perm, n), MUC_LIST(whole, x->rank)));
    for (uint32_t i = 0; i < b->count; i++) {
        int64_t left = whole[1 + i] - b->pads[2 * i] - b->pads[2 * i + 1];

        if (left < 1)
            return muc_tflite_refuse(im, MUC_MALFORMED, "the crops leave no element");
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
