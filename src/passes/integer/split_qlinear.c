/* split_qlinear.c - rewrites ONNX's operators on bytes with constant scales as real operators
 * between dequantizations and a quantization. */
#include <stdlib.h>
#include <string.h>

#include "passes/integer/fold_qdq.h"
#include "passes/rewrite.h"

enum { MOST_ATTRIBUTES = 16 };

static bool all_constant(const muc_rewrite *r, const muc_node *node, const uint32_t *which,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id = muc_node_input(node, which[i]);

        if (id != MUC_NO_ID && !muc_rewrite_is_constant(r, id))
            return false;
    }
    return true;
}

/* input i, dequantized by the two inputs after it, which vary along axis if they vary */
static muc_status dequantize(muc_rewrite *r, const muc_node *node, uint32_t i, int64_t axis,
                             uint32_t *out)
{
    const muc_attribute along = { .key = MUC_KEY_AXIS, .value.integer = axis };
    bool varies = muc_rewrite_old(r, node->inputs[i + 1])->bytes > sizeof(float);
    uint32_t inputs[3];

    for (uint32_t k = 0; k < 3; k++)
        MUC_TRY(muc_rewrite_tensor(r, node->inputs[i + k], &inputs[k]));
    return muc_rewrite_add(r, MUC_OP_DEQUANTIZE_LINEAR, node->name, inputs, 3, &along, varies, NULL,
                           out);
}

/* the bias, whose scales are the products of x's and the weights' */
static muc_status dequantize_bias(muc_rewrite *r, const muc_node *node, uint32_t *out)
{
    const muc_attribute along = { .key = MUC_KEY_AXIS, .value.integer = 0 };
    const muc_tensor *scales = muc_rewrite_old(r, node->inputs[4]);
    muc_tensor like = { .dtype = MUC_F32, .rank = scales->bytes > sizeof(float) };
    uint32_t inputs[2];
    muc_status status;
    float *products, x;

    *out = MUC_NO_ID;
    if (muc_node_input(node, 8) == MUC_NO_ID)
        return MUC_OK;
    MUC_TRY(muc_rewrite_tensor(r, node->inputs[8], &inputs[0]));
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, r->old.name, (size_t)scales->bytes / sizeof(float), &products));
    memcpy(products, scales->data, (size_t)scales->bytes);
    memcpy(&x, muc_rewrite_old(r, node->inputs[1])->data, sizeof(x));
    for (size_t i = 0; i < (size_t)scales->bytes / sizeof(float); i++)
        products[i] *= x;
    like.dims[0] = scales->dims[0];
    status = muc_rewrite_constant(r, "bias_scale", &like, products, scales->bytes, &inputs[1]);
    free(products);
    MUC_TRY(status);
    return muc_rewrite_add(r, MUC_OP_DEQUANTIZE_LINEAR, node->name, inputs, 2, &along, like.rank,
                           NULL, out);
}

static muc_status split_product(muc_rewrite *r, const muc_node *node, bool *done)
{
    static const uint32_t numbers[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    bool conv = node->op == MUC_OP_QLINEAR_CONV;
    uint32_t inputs[3], result[3];

    if ((!conv && node->op != MUC_OP_QLINEAR_MATMUL) ||
        !all_constant(r, node, numbers, MUC_COUNT(numbers)) ||
        muc_rewrite_old(r, node->inputs[1])->bytes != sizeof(float) ||
        (!conv && muc_rewrite_old(r, node->inputs[3])->rank != 2))
        return MUC_OK;
    *done = true;
    MUC_TRY(dequantize(r, node, 0, 0, &inputs[0]));
    MUC_TRY(dequantize(r, node, 3, conv ? 0 : 1, &inputs[1]));
    MUC_TRY(dequantize_bias(r, node, &inputs[2]));
    MUC_TRY(muc_rewrite_add(r, conv ? MUC_OP_CONV : MUC_OP_MATMUL, node->name, inputs,
                            inputs[2] == MUC_NO_ID ? 2 : 3, node->attributes, node->attribute_count,
                            NULL, &result[0]));
    for (uint32_t i = 1; i < 3; i++)
        MUC_TRY(muc_rewrite_tensor(r, node->inputs[5 + i], &result[i]));
    return muc_rewrite_change(r, node, MUC_OP_QUANTIZE_LINEAR, result, 3, NULL, 0);
}

static bool moves(const muc_node *node)
{
    return node->output_count == 1 && node->input_count == 1 &&
           muc_op_has(node->op, MUC_OP_SELECTS);
}

/* what moves quantized bytes moves what they stand for */
static muc_status split_move(muc_rewrite *r, const muc_node *node, bool *done)
{
    static const uint32_t numbers[] = { 1, 2 };
    const muc_node *before = moves(node) ? muc_rewrite_producer(r, node->inputs[0]) : NULL;
    uint32_t inputs[3], x;

    if (!before || before->op != MUC_OP_QUANTIZE_LINEAR || before->input_count != 3 ||
        before->inputs[2] == MUC_NO_ID || !all_constant(r, before, numbers, MUC_COUNT(numbers)) ||
        muc_rewrite_old(r, before->inputs[1])->bytes != sizeof(float))
        return MUC_OK;
    *done = true;
    MUC_TRY(muc_rewrite_tensor(r, node->inputs[0], &inputs[0]));
    for (uint32_t i = 1; i < 3; i++)
        MUC_TRY(muc_rewrite_tensor(r, before->inputs[i], &inputs[i]));
    MUC_TRY(muc_rewrite_add(r, MUC_OP_DEQUANTIZE_LINEAR, node->name, inputs, 3, NULL, 0, NULL, &x));
    MUC_TRY(muc_rewrite_add(r, node->op, node->name, &x, 1, node->attributes, node->attribute_count,
                            NULL, &inputs[0]));
    return muc_rewrite_change(r, node, MUC_OP_QUANTIZE_LINEAR, inputs, 3, NULL, 0);
}

muc_status muc_split_qlinear(muc_context *ctx, muc_graph *graph)
{
    static muc_rewrite_rule *const rules[] = { split_product, split_move };

    return muc_rewrite_with(ctx, graph, rules, MUC_COUNT(rules), NULL);
}
