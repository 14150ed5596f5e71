/* int8_scales.c - on which scales. */
#include <stdlib.h>

#include "passes/int8_pass.h"

static void share(pass *p, uint32_t a, uint32_t b)
{
    a = root(p, a);
    b = root(p, b);
    p->parents[a > b ? a : b] = a > b ? b : a;
}

static bool is_moved(const pass *p, uint32_t tensor)
{
    uint32_t producer = old(p, tensor)->producer;

    return producer != MUC_NO_ID && p->forms[producer] == SHARED;
}

void muc_int8_set_scale(const pass *p, uint32_t tensor, float least, float most)
{
    float scale = (most - least) / (LEVELS - 1);

    if (!(scale > 1e-30f)) { /* always zero */
        p->scales[tensor] = 1;
        p->zeros[tensor] = 0;
        return;
    }
    p->scales[tensor] = scale;
    p->zeros[tensor] = (int32_t)fmaxf(LEAST, fminf(MOST, roundf((float)LEAST - least / scale)));
}

/* what TFLite's kernel gives, if it has no choice */
bool muc_int8_fixed_scale(muc_op op, float *scale, int32_t *zero)
{
    *scale = op == MUC_OP_TANH ? 1 / 128.0f : 1 / 256.0f;
    *zero = op == MUC_OP_TANH ? 0 : LEAST;
    return muc_int8_form_of(op) == FIXED;
}

/* constants that are moved beside activations */
static muc_status join_constants(const pass *p, const muc_node *node, muc_range *joined)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t id = node->inputs[i];
        muc_range *into = &joined[root(p, id)];

        if (!is_constant(p, id))
            continue;
        p->sources[root(p, id)]++;
        for (uint64_t k = 0; k < elements_of(p, id); k++) {
            float value = element(p, id, k);

            MUC_TRY(muc_range_add(p->r.ctx, into, old(p, id)->name, &value, 1));
        }
    }
    return MUC_OK;
}

/* products with a positive number keep their integers, if nothing else decides their scale */
static void scale_products(pass *p)
{
    const muc_graph *graph = &p->r.old;

    for (uint32_t n = 0; n < graph->node_count; n++) {
        const muc_node *node = &graph->nodes[n];
        uint32_t x, y;
        unsigned side;

        if (!p->r.needed[n] || p->forms[n] != SCALED)
            continue;
        side = is_constant(p, node->inputs[0]) ? 1 : 0;
        x = root(p, node->inputs[side]);
        y = root(p, node->outputs[0]);
        if (x == y || p->sources[y] > 1) {
            p->forms[n] = TABLE;
            continue;
        }
        p->scales[y] = p->scales[x] * element(p, node->inputs[1 - side], 0);
        p->zeros[y] = p->zeros[x];
    }
}

static muc_status choose_scales(pass *p)
{
    const muc_graph *graph = &p->r.old;
    muc_range *joined;
    muc_status status = MUC_NEW_ARRAY(p->r.ctx, graph->name, graph->tensor_count, &joined);

    for (uint32_t n = 0; n < graph->node_count && status == MUC_OK; n++)
        if (p->r.needed[n] && p->forms[n] == SHARED)
            status = join_constants(p, &graph->nodes[n], joined);
    for (uint32_t i = 0; i < graph->tensor_count && status == MUC_OK; i++) {
        muc_range *into = &joined[root(p, i)];
        muc_range *range = &p->ranges->tensors[i];

        if (!is_real(p, i) || is_moved(p, i) || !range->counts)
            continue;
        p->sources[root(p, i)]++;
        status = muc_range_join(p->r.ctx, into, range);
    }
    for (uint32_t i = 0; i < graph->tensor_count && status == MUC_OK; i++) {
        uint32_t producer = graph->tensors[i].producer;
        float least, most;

        if (root(p, i) == i) {
            muc_range_choose(&joined[i], LEVELS, &least, &most);
            muc_int8_set_scale(p, i, least, most);
        }
        (void)(producer != MUC_NO_ID && p->forms[producer] == FIXED &&
               p->sources[root(p, i)] == 1 &&
               muc_int8_fixed_scale(graph->nodes[producer].op, &p->scales[root(p, i)],
                                    &p->zeros[root(p, i)]));
    }
    for (uint32_t i = 0; i < graph->tensor_count && joined; i++)
        free(joined[i].counts);
    free(joined);
    if (status == MUC_OK)
        scale_products(p);
    return status;
}

muc_status muc_int8_scales(pass *p)
{
    const muc_graph *graph = &p->r.old;

    for (uint32_t i = 0; i < graph->tensor_count; i++)
        p->parents[i] = i;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const muc_node *node = &graph->nodes[n];

        if (p->forms[n] != SHARED)
            continue;
        for (uint32_t i = 0; i < node->input_count; i++)
            share(p, node->inputs[0], node->inputs[i]);
        for (uint32_t i = 0; i < node->output_count; i++)
            share(p, node->inputs[0], node->outputs[i]);
    }
    return choose_scales(p);
}
