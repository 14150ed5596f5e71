/* halves.c - arithmetic on 16-bit floats as casts to f32, the operator, and a cast back: what the
 * reference does, and all that a machine without such arithmetic can do. */
#include <stdlib.h>

#include "base/half.h"
#include "passes/canonical.h"
#include "passes/rewrite.h"

static bool is_half(const muc_tensor *tensor)
{
    return tensor->dtype == MUC_F16 || tensor->dtype == MUC_BF16;
}

static muc_status cast(muc_rewrite *r, const char *name, uint32_t from, muc_dtype to, uint32_t *out)
{
    muc_attribute type = { .key = MUC_KEY_TO };

    type.value.integer = to;
    return muc_rewrite_add(r, MUC_OP_CAST, name, &from, 1, &type, 1, NULL, out);
}

static muc_status widen_constant(muc_rewrite *r, const muc_tensor *old, uint32_t *out)
{
    uint64_t count = old->bytes / sizeof(uint16_t);
    muc_tensor like = *old;
    muc_status status;
    float *data;

    like.dtype = MUC_F32;
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, old->name, (size_t)count + 1, &data));
    for (uint64_t i = 0; i < count; i++) {
        uint16_t half = (uint16_t)(old->data[2 * i] | old->data[2 * i + 1] << 8);

        data[i] = old->dtype == MUC_F16 ? muc_f32_of_f16(half) : muc_f32_of_bf16(half);
    }
    status = muc_rewrite_constant(r, old->name, &like, data, count * sizeof(*data), out);
    free(data);
    return status;
}

static bool has_halves(const muc_rewrite *r, const muc_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != MUC_NO_ID && is_half(muc_rewrite_old(r, node->inputs[i])))
            return true;
    return is_half(muc_rewrite_old(r, node->outputs[0]));
}

static muc_status widen(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_tensor *y = muc_rewrite_old(r, node->outputs[0]);
    uint32_t inputs[MUC_GRAPH_MAX_INPUTS], wide;
    const char *name;

    if (node->output_count != 1 || node->op == MUC_OP_CAST || node->input_count == 0 ||
        (muc_op_get(node->op)->flags & MUC_OP_MOVES) || !has_halves(r, node))
        return MUC_OK;
    *done = true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const muc_tensor *x =
            node->inputs[i] == MUC_NO_ID ? NULL : muc_rewrite_old(r, node->inputs[i]);

        if (x && is_half(x) && muc_rewrite_is_constant(r, node->inputs[i])) {
            MUC_TRY(widen_constant(r, x, &inputs[i]));
            continue;
        }
        MUC_TRY(muc_rewrite_tensor(r, node->inputs[i], &inputs[i]));
        if (x && is_half(x))
            MUC_TRY(cast(r, x->name, inputs[i], MUC_F32, &inputs[i]));
    }
    if (!is_half(y))
        return muc_rewrite_change(r, node, node->op, inputs, node->input_count, node->attributes,
                                  node->attribute_count);
    MUC_TRY(muc_arena_format(r->ctx, &r->graph->arena, &name, "%s/f32", y->name));
    MUC_TRY(muc_rewrite_add(r, node->op, name, inputs, node->input_count, node->attributes,
                            node->attribute_count, NULL, &wide));
    return cast(r, y->name, wide, y->dtype, &r->map[node->outputs[0]]);
}

muc_status muc_widen_halves(muc_context *ctx, muc_graph *graph)
{
    static muc_rewrite_rule *const rules[] = { widen };

    return muc_rewrite_with(ctx, graph, rules, MUC_COUNT(rules), NULL);
}
