/* constants.c - integers of constants that only stand for real numbers, as these. */
#include <stdlib.h>

#include "passes/canonical.h"
#include "passes/rewrite.h"

/* element i's scale and zero point */
static double real_at(const muc_tensor *tensor, const muc_quantization *q, uint64_t i,
                      uint64_t inner)
{
    uint32_t at = q->count > 1 ? (uint32_t)(i / inner % q->count) : 0;
    uint32_t width = muc_dtype_get(tensor->dtype)->block_bytes;

    return (double)q->scales[at] *
           (double)(muc_dtype_integer(tensor->dtype, tensor->data + i * width) -
                    q->zero_points[at]);
}

/* a dequantized constant is a constant of real numbers */
static muc_status dequantize(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_tensor *from =
        node->op == MUC_OP_DEQUANTIZE ? muc_rewrite_old(r, node->inputs[0]) : NULL;
    muc_tensor like;
    uint64_t count, inner = 1;
    muc_status status;
    float *data;

    if (!from || !muc_rewrite_is_constant(r, node->inputs[0]) || r->is_output[node->outputs[0]])
        return MUC_OK;
    *done = true;
    count = from->bytes / muc_dtype_get(from->dtype)->block_bytes;
    for (uint32_t d = from->quantization->axis + 1; d < from->rank; d++)
        inner *= muc_expr_get(r->graph->pool, from->dims[d])->immediate;
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, from->name, (size_t)count, &data));
    for (uint64_t i = 0; i < count; i++)
        data[i] = (float)real_at(from, from->quantization, i, inner);
    like = *from;
    like.dtype = MUC_F32;
    like.quantization = NULL;
    status = muc_rewrite_constant(r, muc_rewrite_old(r, node->outputs[0])->name, &like, data,
                                  count * sizeof(*data), &r->map[node->outputs[0]]);
    free(data);
    return status;
}

muc_status muc_dequantize_constants(muc_context *ctx, muc_graph *graph)
{
    static muc_rewrite_rule *const rules[] = { dequantize };

    return muc_rewrite_with(ctx, graph, rules, MUC_COUNT(rules), NULL);
}
