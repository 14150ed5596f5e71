/* masks.c - finds scores under masks, and takes the masks' depth from what calibrates. */
#include "passes/int8/masks.h"

#include <math.h>

static bool is_softmax_of_rows(const muc_graph *graph, const muc_node *node)
{
    return node->op == MUC_OP_SOFTMAX &&
           muc_node_integer(node, MUC_KEY_AXIS) + 1 == graph->tensors[node->inputs[0]].rank;
}

/* whether what the node reads may be raised, as a kind of mask */
static bool is_reader(const muc_graph *graph, const muc_node *node, const muc_mask *masks,
                      muc_mask kind)
{
    return kind == MUC_MASKED ? is_softmax_of_rows(graph, node)
                              : node->op == MUC_OP_ADD && masks[node->outputs[0]] == MUC_MASKED;
}

/* marks what has such readers, and no other */
static void find(const muc_graph *graph, muc_mask *masks, muc_mask kind)
{
    for (int others = 0; others < 2; others++)
        for (uint32_t n = 0; n < graph->node_count; n++) {
            const muc_node *node = &graph->nodes[n];
            bool reads = is_reader(graph, node, masks, kind);

            for (uint32_t k = 0; k < node->input_count && reads != others; k++)
                if (node->inputs[k] != MUC_NO_ID &&
                    masks[node->inputs[k]] == (others ? kind : MUC_NO_MASK))
                    masks[node->inputs[k]] = others ? MUC_NO_MASK : kind;
        }
    for (uint32_t o = 0; o < graph->output_count; o++)
        if (masks[graph->outputs[o]] == kind)
            masks[graph->outputs[o]] = MUC_NO_MASK;
}

void muc_masks_find(const muc_graph *graph, muc_mask *masks)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        masks[i] = MUC_NO_MASK;
    find(graph, masks, MUC_MASKED);
    find(graph, masks, MUC_MASK);
}

/* greatest less least, of finite numbers */
static float spread_of(const muc_ref *ref, uint32_t tensor)
{
    float least = INFINITY, most = -INFINITY;
    muc_ref_view view;

    if (!muc_ref_get(ref, tensor, &view) || view.dtype != MUC_F32)
        return INFINITY;
    for (size_t i = 0; i < view.elements; i++) {
        float x = ((const float *)view.data)[i];

        least = fminf(least, x);
        most = fmaxf(most, x);
    }
    return most - least;
}

/* beside all that the tensor is added to */
static float greatest_spread(const muc_graph *graph, const muc_ref *ref, uint32_t tensor)
{
    float spread = 0;

    for (uint32_t n = 0; n < graph->node_count; n++)
        for (uint32_t k = 0; graph->nodes[n].op == MUC_OP_ADD && k < 2; k++)
            if (graph->nodes[n].inputs[k] == tensor)
                spread = fmaxf(spread, spread_of(ref, graph->nodes[n].inputs[1 - k]));
    return spread;
}

void muc_mask_raise(const muc_graph *graph, const muc_ref *ref, uint32_t tensor, muc_mask mask,
                    const muc_ref_view *view, float *out)
{
    const float *x = view->data;
    size_t columns = mask == MUC_MASKED && view->rank ? view->dims[view->rank - 1] : view->elements;
    float spread = mask == MUC_MASK ? greatest_spread(graph, ref, tensor) : 0;

    if (mask == MUC_MASK && !(spread_of(ref, tensor) > MUC_MASK_DEEP))
        spread = INFINITY; /* no mask, but scores */

    for (size_t first = 0; first < view->elements; first += columns) {
        float most = -INFINITY, least;

        for (size_t i = first; i < first + columns; i++)
            most = fmaxf(most, x[i]);
        least = muc_mask_floor(most, spread);
        for (size_t i = first; i < first + columns; i++)
            out[i] = x[i] < least ? least : x[i];
    }
}
