/* in_f32.c - arithmetic on 16-bit floats, and on f64, as casts to f32, the operator, and a cast
 * back: of 16-bit floats what the reference does, and all that a machine without such arithmetic
 * can do; exporters write f64 by accident, and what follows a cast to it from f32 reads the f32. */
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "passes/simplify/canonical.h"
#include "passes/rewrite.h"

static bool is_other(const muc_tensor *tensor)
{
    return tensor->dtype == MUC_F16 || tensor->dtype == MUC_BF16 || tensor->dtype == MUC_F64;
}

/* the f32 that a new tensor of f64 was cast from, or MUC_NO_ID */
static uint32_t before_widening(const muc_rewrite *r, uint32_t id)
{
    const muc_tensor *x = &r->graph->tensors[id];
    const muc_node *cast = x->producer == MUC_NO_ID ? NULL : &r->graph->nodes[x->producer];

    if (x->dtype != MUC_F64 || !cast || cast->op != MUC_OP_CAST ||
        r->graph->tensors[cast->inputs[0]].dtype != MUC_F32)
        return MUC_NO_ID;
    return cast->inputs[0];
}

static muc_status cast_to_f32(muc_rewrite *r, const char *name, uint32_t from, uint32_t *out)
{
    const muc_attribute type = { .key = MUC_KEY_TO, .value.integer = MUC_F32 };

    *out = before_widening(r, from);
    if (*out != MUC_NO_ID)
        return MUC_OK;
    return muc_rewrite_add(r, MUC_OP_CAST, name, &from, 1, &type, 1, NULL, out);
}

static float single_of(muc_dtype dtype, const uint8_t *p)
{
    uint16_t half = (uint16_t)(p[0] | p[1] << 8);
    double wide;

    if (dtype != MUC_F64)
        return dtype == MUC_F16 ? muc_f32_of_f16(half) : muc_f32_of_bf16(half);
    memcpy(&wide, p, sizeof(wide));
    return (float)wide;
}

static muc_status convert_constant(muc_rewrite *r, const muc_tensor *old, uint32_t *out)
{
    uint32_t size = muc_dtype_get(old->dtype)->block_bytes;
    uint64_t count = old->bytes / size;
    muc_tensor like = *old;
    muc_status status;
    float *data;

    like.dtype = MUC_F32;
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, old->name, (size_t)count + 1, &data));
    for (uint64_t i = 0; i < count; i++)
        data[i] = single_of(old->dtype, old->data + i * size);
    status = muc_rewrite_constant(r, old->name, &like, data, count * sizeof(*data), out);
    free(data);
    return status;
}

static bool has_others(const muc_rewrite *r, const muc_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != MUC_NO_ID && is_other(muc_rewrite_old(r, node->inputs[i])))
            return true;
    return is_other(muc_rewrite_old(r, node->outputs[0]));
}

static bool moves(muc_op op)
{
    return muc_op_has(op, MUC_OP_MOVES) || op == MUC_OP_APPEND;
}

/* 16-bit floats are moved as they are stored; to and from a state of f32 they are converted */
static bool moves_halves(const muc_rewrite *r, const muc_node *node)
{
    muc_dtype dtype = muc_rewrite_old(r, node->outputs[0])->dtype;

    return moves(node->op) && dtype != MUC_F64 && node->inputs[0] != MUC_NO_ID &&
           muc_rewrite_old(r, node->inputs[0])->dtype == dtype;
}

static muc_status compute_in_f32(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_tensor *y = muc_rewrite_old(r, node->outputs[0]);
    const muc_attribute type = { .key = MUC_KEY_TO, .value.integer = y->dtype };
    uint32_t inputs[MUC_GRAPH_MAX_INPUTS], wide;
    const char *name;

    if (node->output_count != 1 || node->op == MUC_OP_CAST || node->input_count == 0 ||
        moves_halves(r, node) || !has_others(r, node))
        return MUC_OK;
    *done = true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const muc_tensor *x =
            node->inputs[i] == MUC_NO_ID ? NULL : muc_rewrite_old(r, node->inputs[i]);

        if (x && is_other(x) && muc_rewrite_is_constant(r, node->inputs[i])) {
            MUC_TRY(convert_constant(r, x, &inputs[i]));
            continue;
        }
        MUC_TRY(muc_rewrite_tensor(r, node->inputs[i], &inputs[i]));
        if (x && is_other(x))
            MUC_TRY(cast_to_f32(r, x->name, inputs[i], &inputs[i]));
    }
    if (!is_other(y))
        return muc_rewrite_change(r, node, node->op, inputs, node->input_count, node->attributes,
                                  node->attribute_count);
    MUC_TRY(muc_arena_format(r->ctx, &r->graph->arena, &name, "%s/f32", y->name));
    MUC_TRY(muc_rewrite_add(r, node->op, name, inputs, node->input_count, node->attributes,
                            node->attribute_count, NULL, &wide));
    return muc_rewrite_change(r, node, MUC_OP_CAST, &wide, 1, &type, 1);
}

/* there and back is where it was */
static muc_status cast_back(muc_rewrite *r, const muc_node *node, bool *done)
{
    uint32_t x;

    if (node->op != MUC_OP_CAST || muc_rewrite_old(r, node->outputs[0])->dtype != MUC_F32 ||
        muc_rewrite_old(r, node->inputs[0])->dtype != MUC_F64 ||
        muc_rewrite_is_constant(r, node->inputs[0]))
        return MUC_OK;
    MUC_TRY(muc_rewrite_tensor(r, node->inputs[0], &x));
    x = before_widening(r, x);
    if (x == MUC_NO_ID)
        return MUC_OK;
    *done = true;
    return muc_rewrite_change(r, node, MUC_OP_IDENTITY, &x, 1, NULL, 0);
}

/* States of f64, and of 16-bit floats that are computed with, become f32, as the reference keeps
 * the latter; the rules then put casts around what reads them. */
static void widen_states(muc_graph *graph)
{
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const muc_node *node = &graph->nodes[n];

        for (uint32_t i = 0; i < node->input_count; i++) {
            muc_tensor *state =
                node->inputs[i] == MUC_NO_ID ? NULL : &graph->tensors[node->inputs[i]];

            if (state && state->kind == MUC_TENSOR_STATE && is_other(state) &&
                (state->dtype == MUC_F64 || !moves(node->op)))
                state->dtype = MUC_F32;
        }
    }
}

muc_status muc_compute_in_f32(muc_context *ctx, muc_graph *graph)
{
    static muc_rewrite_rule *const rules[] = { compute_in_f32, cast_back };

    widen_states(graph);
    return muc_rewrite_with(ctx, graph, rules, MUC_COUNT(rules), NULL);
}
