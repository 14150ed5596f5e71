/* strided_copy.c - depth_to_space, space_to_depth and tile: shape rules, and the loops that copy.
 */
#include "operators/strided_copy.h"

#include "graph/shape.h"

typedef void fill(const muc_node *node, const muc_copy_side *x, const muc_copy_side *y,
                  muc_strided_copy *out);

static void add(muc_strided_copy *copy, size_t extent, size_t from, size_t to)
{
    copy->loops[copy->count].extent = extent;
    copy->loops[copy->count].from = (ptrdiff_t)from;
    copy->loops[copy->count++].to = (ptrdiff_t)to;
}

/* ---- repetitions ---- */

muc_status muc_shape_tile(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0);
    const muc_expr *repeats = muc_node_attribute(r->node, MUC_KEY_REPEATS)->value.exprs.items;

    MUC_TRY(muc_rule_exprs(r, MUC_KEY_REPEATS, x->rank));
    muc_rule_like(r, 0, x);
    for (uint32_t i = 0; i < x->rank; i++)
        r->outputs[0].dims[i] = muc_expr_mul(r->graph->pool, x->dims[i], repeats[i]);
    return MUC_OK;
}

/* each dimension is two loops: repetitions, then the elements repeated */
static void copy_tile(const muc_node *node, const muc_copy_side *x, const muc_copy_side *y,
                      muc_strided_copy *out)
{
    (void)node;
    for (uint32_t i = 0; i < x->rank; i++) {
        add(out, x->dims[i] ? y->dims[i] / x->dims[i] : 0, 0, y->steps[i] * x->dims[i]);
        add(out, x->dims[i], x->steps[i], y->steps[i]);
    }
}

/* ---- blocks of pixels and of channels ---- */

/* input 0 is [N, C, H, W] or [N, H, W, C]; the block's side */
static muc_status image(const muc_rule *r, uint32_t *block)
{
    if (muc_rule_input(r, 0)->rank != 4)
        return muc_rule_unexpected(r, 0, "images");
    *block = (uint32_t)muc_node_integer(r->node, MUC_KEY_BLOCK);
    muc_rule_like(r, 0, muc_rule_input(r, 0));
    return MUC_OK;
}

muc_status muc_shape_depth_to_space(const muc_rule *r)
{
    muc_expr *dims = r->outputs[0].dims;
    uint32_t block, at = muc_rule_channels(r, 4), channels;

    MUC_TRY(image(r, &block));
    if (!muc_rule_const(r, dims[at], &channels) || channels % (block * block) != 0)
        return muc_rule_unexpected(r, 0, "a multiple of %u channels", block * block);
    dims[at] = muc_rule_dim(r, channels / (block * block));
    for (uint32_t i = 0; i < 2; i++) {
        muc_expr *dim = &dims[(at == 1 ? 2 : 1) + i];

        *dim = muc_expr_mul_const(r->graph->pool, *dim, block);
    }
    return MUC_OK;
}

muc_status muc_shape_space_to_depth(const muc_rule *r)
{
    muc_expr *dims = r->outputs[0].dims;
    uint32_t block, at = muc_rule_channels(r, 4);

    MUC_TRY(image(r, &block));
    dims[at] = muc_expr_mul_const(r->graph->pool, dims[at], block * block);
    for (uint32_t i = 0; i < 2; i++) {
        muc_expr *dim = &dims[(at == 1 ? 2 : 1) + i];

        if (muc_expr_get(r->graph->pool, *dim)->multiple % block != 0)
            return muc_rule_unexpected(r, 0, "spatial dimensions that %u divides", block);
        *dim = muc_expr_div(r->graph->pool, *dim, block);
    }
    return MUC_OK;
}

/* The image with small pixels has [N, Y, X, C] pixels in blocks; the other has a block's pixels as
 * channels: loops n, y, block row, x, block column, c. */
static void copy_blocks(const muc_node *node, const muc_copy_side *x, const muc_copy_side *y,
                        muc_strided_copy *out)
{
    bool to_space = node->op == MUC_OP_DEPTH_TO_SPACE;
    bool last = muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) == 1;
    bool columns_first = muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_DCR) == MUC_WORD_CRD;
    const muc_copy_side *fine = to_space ? y : x, *coarse = to_space ? x : y;
    uint32_t channel = last ? 3 : 1, row = last ? 1 : 2, column = row + 1;
    size_t block = (size_t)muc_node_integer(node, MUC_KEY_BLOCK), channels = fine->dims[channel];
    size_t pixel = coarse->steps[channel] * (columns_first ? 1 : channels);
    const size_t loops[][3] = {
        /* turns, and steps through the fine image and the coarse one */
        { x->dims[0], fine->steps[0], coarse->steps[0] },
        { coarse->dims[row], fine->steps[row] * block, coarse->steps[row] },
        { block, fine->steps[row], pixel * block },
        { coarse->dims[column], fine->steps[column] * block, coarse->steps[column] },
        { block, fine->steps[column], pixel },
        { channels, fine->steps[channel],
          coarse->steps[channel] * (columns_first ? block * block : 1) },
    };

    for (size_t i = 0; i < MUC_COUNT(loops); i++)
        add(out, loops[i][0], loops[i][1 + to_space], loops[i][2 - to_space]);
}

muc_strided_copy muc_copy_of(const muc_node *node, const muc_copy_side *x, const muc_copy_side *y)
{
    static const struct {
        muc_op op;
        fill *fill;
    } copies[] = {
#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    { .op = MUC_OP_##id, MUC_FACTS facts },
#define COPY(name) .fill = copy_##name
#include "graph/ops.def"
    };
    muc_strided_copy copy = { .count = 0 };

    copies[node->op].fill(node, x, y, &copy);
    return copy;
}
