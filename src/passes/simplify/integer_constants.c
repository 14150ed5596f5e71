/* integer_constants.c - replaces dequantized integer constants by constants of real numbers. */
#include <stdlib.h>

#include "passes/simplify/canonical.h"
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

/* the same numbers in float32 */
static muc_status add_reals(muc_rewrite *r, const char *name, const muc_tensor *from, uint32_t *out)
{
    uint64_t count = from->bytes / muc_dtype_get(from->dtype)->block_bytes, inner = 1;
    muc_tensor like = *from;
    muc_status status;
    float *data;

    like.dtype = MUC_F32;
    like.quantization = NULL;
    if (muc_rewrite_is_shape(r, from, count * sizeof(*data)))
        return muc_rewrite_constant(r, name, &like, from->data, count * sizeof(*data), out);
    for (uint32_t d = from->quantization->axis + 1; d < from->rank; d++)
        inner *= muc_expr_get(r->graph->pool, from->dims[d])->immediate;
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, from->name, (size_t)count, &data));
    for (uint64_t i = 0; i < count; i++)
        data[i] = (float)real_at(from, from->quantization, i, inner);
    status = muc_rewrite_constant(r, name, &like, data, count * sizeof(*data), out);
    free(data);
    return status;
}

/* a dequantized constant is a constant of real numbers */
static muc_status dequantize(muc_rewrite *r, const muc_node *node, bool *done)
{
    if (muc_graph_integers_of(&r->old, node->outputs[0]) == MUC_NO_ID ||
        !muc_rewrite_is_constant(r, node->inputs[0]) || r->is_output[node->outputs[0]])
        return MUC_OK;
    *done = true;
    return add_reals(r, muc_rewrite_old(r, node->outputs[0])->name,
                     muc_rewrite_old(r, node->inputs[0]), &r->map[node->outputs[0]]);
}

muc_status muc_dequantize_constants(muc_context *ctx, muc_graph *graph)
{
    static muc_rewrite_rule *const rules[] = { dequantize };

    return muc_rewrite_with(ctx, graph, rules, MUC_COUNT(rules), NULL);
}
