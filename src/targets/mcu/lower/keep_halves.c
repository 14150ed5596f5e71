/* keep_halves.c - where Helium's kernels compute on f16 what the passes made of it, a cast to f32,
 * an operator and a cast back, as one operator on f16 again. The reference rounds its result as the
 * cast did. */
#include <math.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/half.h"
#include "passes/rewrite.h"
#include "targets/mcu/loops/halves.h"
#include "targets/mcu/lower/lower_nodes.h"

static float number_at(const muc_tensor *constant, size_t i)
{
    return muc_f32_of_bits(muc_load_u32(constant->data + i * sizeof(float)));
}

/* Finite numbers that are halves; with_signs: and none is -0, which a product of a tap outside the
 * image with 0 could turn. */
static bool is_of_halves(const muc_tensor *constant, bool with_signs)
{
    for (size_t i = 0; i < (size_t)constant->bytes / sizeof(float); i++) {
        float x = number_at(constant, i);

        if (!isfinite(x) || muc_f32_of_f16(muc_f16_of_f32(x)) != x ||
            (with_signs && x == 0 && signbit(x)))
            return false;
    }
    return true;
}

/* the f16 that a tensor of f32 was cast from; NULL: it was not */
static const muc_node *widening_of(const muc_rewrite *r, uint32_t id)
{
    const muc_node *cast = muc_rewrite_producer(r, id);

    return cast && muc_op_has(cast->op, MUC_OP_CONVERTS) &&
                   muc_rewrite_old(r, cast->inputs[0])->dtype == MUC_F16 &&
                   muc_rewrite_old(r, id)->dtype == MUC_F32
               ? cast
               : NULL;
}

static bool has_halves(const muc_rewrite *r, const muc_node *node)
{
    bool sums = node->op == MUC_OP_CONV || node->op == MUC_OP_LINEAR;

    if (!widening_of(r, node->inputs[0]))
        return false;
    for (uint32_t i = 1; i < node->input_count; i++) {
        uint32_t id = node->inputs[i];

        if (id == MUC_NO_ID || widening_of(r, id))
            continue;
        if (!muc_rewrite_is_constant(r, id) || muc_rewrite_old(r, id)->dtype != MUC_F32 ||
            !is_of_halves(muc_rewrite_old(r, id), sums && i == 2))
            return false;
    }
    return true;
}

static muc_status narrow_constant(muc_rewrite *r, const muc_tensor *old, uint32_t *out)
{
    size_t count = (size_t)old->bytes / sizeof(float);
    muc_tensor like = *old;
    muc_status status;
    uint8_t *data;

    like.dtype = MUC_F16;
    if (muc_rewrite_is_shape(r, old, count * sizeof(uint16_t)))
        return muc_rewrite_constant(r, old->name, &like, old->data, count * sizeof(uint16_t), out);
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, old->name, count * sizeof(uint16_t) + 1, &data));
    for (size_t i = 0; i < count; i++)
        muc_store_u16(data + 2 * i, muc_f16_of_f32(number_at(old, i)));
    status = muc_rewrite_constant(r, old->name, &like, data, count * sizeof(uint16_t), out);
    free(data);
    return status;
}

/* node: the cast back of what `sum` computes */
static muc_status narrow(muc_rewrite *r, const muc_node *node, const muc_node *sum)
{
    uint32_t inputs[MUC_GRAPH_MAX_INPUTS];

    for (uint32_t i = 0; i < sum->input_count; i++) {
        uint32_t id = sum->inputs[i];
        const muc_node *cast = id == MUC_NO_ID ? NULL : widening_of(r, id);

        if (id != MUC_NO_ID && !cast)
            MUC_TRY(narrow_constant(r, muc_rewrite_old(r, id), &inputs[i]));
        else
            MUC_TRY(muc_rewrite_tensor(r, cast ? cast->inputs[0] : id, &inputs[i]));
    }
    return muc_rewrite_change(r, node, sum->op, inputs, sum->input_count, sum->attributes,
                              sum->attribute_count);
}

static bool takes(const muc_mcu_lowering *l, const muc_node *node)
{
    return node->op == MUC_OP_CONV ? muc_mcu_takes_conv_f32(l, node)
           : node->op == MUC_OP_LINEAR
               ? muc_mcu_takes_linear_f32(l, node)
               : muc_mcu_fits_halves(l, node) || muc_mcu_fits_pool_f16(l, node);
}

static bool is_move(const muc_node *node)
{
    return node->input_count == 1 && node->output_count == 1 && muc_op_has(node->op, MUC_OP_MOVES);
}

/* first one of the two nodes, then the other, of x; the last has `node`'s name */
static muc_status put_in_order(muc_rewrite *r, const muc_node *node, const muc_node *first,
                               const muc_node *last, uint32_t x)
{
    MUC_TRY(muc_rewrite_tensor(r, x, &x));
    MUC_TRY(muc_rewrite_add(r, first->op, node->name, &x, 1, first->attributes,
                            first->attribute_count, NULL, &x));
    return muc_rewrite_change(r, node, last->op, &x, 1, last->attributes, last->attribute_count);
}

/* what the cast, which is kept until nobody reads it, is of, or what it is behind */
static muc_status rewrite(muc_rewrite *r, const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_node *before = node->input_count && node->inputs[0] != MUC_NO_ID
                                 ? muc_rewrite_producer(r, node->inputs[0])
                                 : NULL;
    bool narrows = muc_op_has(node->op, MUC_OP_CONVERTS) && before &&
                   !muc_op_has(before->op, MUC_OP_CONVERTS) && before->input_count &&
                   muc_rewrite_old(r, node->inputs[0])->dtype == MUC_F32 &&
                   muc_rewrite_old(r, node->outputs[0])->dtype == MUC_F16 &&
                   muc_rewrite_only_reader(r, node->inputs[0]);

    r->changed = true;
    if (is_move(node) && widening_of(r, node->inputs[0]))
        return put_in_order(r, node, node, before, before->inputs[0]);
    if (narrows && is_move(before))
        return put_in_order(r, node, node, before, before->inputs[0]);
    if (narrows && has_halves(r, before) && takes(l, before))
        return narrow(r, node, before);
    r->changed = false;
    return muc_rewrite_keep(r, node);
}

static muc_status go_over(muc_rewrite *r, muc_mcu_lowering *l, bool *changed)
{
    l->graph = &r->old;
    *changed = false;
    for (uint32_t n = 0; n < r->old.node_count; n++) {
        if (r->needed[n])
            MUC_TRY(rewrite(r, l, &r->old.nodes[n]));
        *changed = *changed || r->changed || !r->needed[n];
    }
    return muc_rewrite_end(r);
}

static bool has_type(const muc_graph *graph, muc_dtype dtype)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].dtype == dtype)
            return true;
    return false;
}

muc_status muc_mcu_keep_halves(muc_context *ctx, muc_graph *graph, muc_mcu_core core)
{
    enum { MOST_ROUNDS = 64 };
    const muc_mcu_machine machine = { .core = core };
    muc_mcu_program program = { .machine = &machine };
    muc_mcu_lowering l = {
        .ctx = ctx,
        .program = &program,
        .isa = muc_mcu_core_get(core)->isa,
    };
    bool changed = muc_mcu_has_halves(&l) && has_type(graph, MUC_F16);

    for (int round = 0; round < MOST_ROUNDS && changed; round++) {
        muc_rewrite r;
        muc_status status = muc_rewrite_begin(ctx, graph, &r);

        if (status == MUC_OK)
            status = go_over(&r, &l, &changed);
        muc_rewrite_free(&r);
        MUC_TRY(status);
    }
    return MUC_OK;
}
