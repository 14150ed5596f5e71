/* int8_scales.c - on which scales.
 *
 * What only moves elements keeps the scale of what it moves. A node that brings tensors together
 * (concat, max, min) has the scale of its output; a tensor that it reads takes that too where
 * nothing is lost, since nobody else reads it or its own scale is hardly finer, and is requantized
 * for it elsewhere. So no tensor has a coarse scale for the sake of its neighbour in a concat. */
#include <stdlib.h>

#include "passes/int8/int8_pass.h"

static void share(pass *p, uint32_t a, uint32_t b)
{
    a = root(p, a);
    b = root(p, b);
    p->parents[a > b ? a : b] = a > b ? b : a;
}

/* a node whose inputs come together */
static bool is_meeting(const pass *p, uint32_t node)
{
    const muc_node *n = &p->r.old.nodes[node];

    return p->r.needed[node] && p->forms[node] == SHARED && n->input_count > 1 &&
           is_real(p, n->inputs[1]); /* not indices */
}

/* whether its numbers are those of other tensors of its scale */
static bool is_moved(const pass *p, uint32_t tensor)
{
    uint32_t producer = old(p, tensor)->producer;
    const muc_node *node;

    if (producer == MUC_NO_ID || p->forms[producer] != SHARED)
        return false;
    node = &p->r.old.nodes[producer];
    for (uint32_t i = 0; i < node->input_count; i++)
        if (is_real(p, node->inputs[i]) && root(p, node->inputs[i]) != root(p, tensor))
            return false;
    return true;
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
    bool is_signed = muc_op_has(op, MUC_OP_SIGNED);

    *scale = is_signed ? 1 / 128.0f : 1 / 256.0f;
    *zero = is_signed ? 0 : LEAST;
    return muc_int8_form_of(op) == FIXED;
}

float muc_int8_step(const pass *p, uint32_t tensor)
{
    uint32_t producer = old(p, tensor)->producer;
    float least, most, scale;
    int32_t zero;

    while (producer != MUC_NO_ID && p->forms[producer] == SHARED &&
           p->r.old.nodes[producer].input_count == 1) {
        tensor = p->r.old.nodes[producer].inputs[0];
        producer = old(p, tensor)->producer;
    }
    if (producer != MUC_NO_ID && p->forms[producer] == FIXED &&
        muc_int8_fixed_scale(p->r.old.nodes[producer].op, &scale, &zero))
        return scale;
    if (!p->ranges->tensors[tensor].counts)
        return 0;
    muc_range_choose(&p->ranges->tensors[tensor], LEVELS, &least, &most);
    return (most - least) / (LEVELS - 1);
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
        for (uint64_t k = 0; !is_shape(p, id) && k < elements_of(p, id); k++) {
            float value = element(p, id, k);

            if (p->ranges->masks[node->outputs[0]] == MUC_MASKED) /* where a mask is */
                value = fmaxf(value, p->ranges->tensors[node->outputs[0]].least);
            MUC_TRY(muc_range_add(p->r.ctx, into, old(p, id)->name, &value, 1));
        }
    }
    return MUC_OK;
}

/* a product with a positive number keeps its integers, if nothing else decides its scale */
static void scale_product(pass *p, uint32_t n)
{
    const muc_node *node = &p->r.old.nodes[n];
    unsigned side = is_constant(p, node->inputs[0]) ? 1 : 0;
    uint32_t x = root(p, node->inputs[side]), y = root(p, node->outputs[0]);

    if (x == y || p->sources[y] > 1) {
        p->forms[n] = TABLE;
        return;
    }
    p->scales[y] = p->scales[x] * element(p, node->inputs[1 - side], 0);
    p->zeros[y] = p->zeros[x];
}

/* scales that depend on those of inputs */
static void follow_inputs(pass *p)
{
    const muc_graph *graph = &p->r.old;

    for (uint32_t n = 0; n < graph->node_count; n++) {
        const muc_node *node = &graph->nodes[n];

        if (p->r.needed[n] && p->forms[n] == SCALED)
            scale_product(p, n);
        if (p->r.needed[n] && p->forms[n] == FREE && muc_op_has(node->op, MUC_OP_COARSE))
            p->scales[root(p, node->outputs[0])] =
                fmaxf(p->scales[root(p, node->outputs[0])],
                      p->scales[root(p, node->inputs[0])] / (MUC_LOG_SOFTMAX_STEPS - 1));
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
        follow_inputs(p);
    return status;
}

/* ---- who shares ---- */

/* whether a tree's tensors are read by the node alone, and by moves within the tree */
static bool is_private(const pass *p, uint32_t tree, uint32_t node)
{
    const muc_graph *graph = &p->r.old;

    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (p->r.is_output[i] && root(p, i) == tree)
            return false;
    for (uint32_t n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; p->r.needed[n] && n != node && i < graph->nodes[n].input_count; i++) {
            uint32_t id = graph->nodes[n].inputs[i];

            if (id != MUC_NO_ID && root(p, id) == tree &&
                !(p->forms[n] == SHARED && root(p, graph->nodes[n].outputs[0]) == tree))
                return false;
        }
    return true;
}

/* the inputs that lose nothing by the scale of what they come together in */
static void share_meeting(pass *p, uint32_t n)
{
    const float hardly = 1.25f; /* 2 dB */
    const muc_node *node = &p->r.old.nodes[n];
    uint32_t out = node->outputs[0];
    float step = muc_int8_step(p, out);

    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t id = node->inputs[i];

        if (is_private(p, root(p, id), n) ||
            (!is_constant(p, id) && step <= hardly * muc_int8_step(p, id)))
            share(p, id, out);
    }
}

/* h of every step and of both ends */
static void share_states(pass *p, const muc_node *node)
{
    uint32_t h = muc_node_input(node, 5);

    if (node->output_count > 1)
        share(p, node->outputs[1], node->outputs[0]);
    if (node->op != MUC_OP_GRU && h != MUC_NO_ID && !is_constant(p, h))
        share(p, h, node->outputs[0]);
}

muc_status muc_int8_scales(pass *p)
{
    const muc_graph *graph = &p->r.old;

    for (uint32_t i = 0; i < graph->tensor_count; i++)
        p->parents[i] = i;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const muc_node *node = &graph->nodes[n];

        for (uint32_t i = 0; p->forms[n] == SHARED && !is_meeting(p, n) && i < node->output_count;
             i++)
            share(p, node->inputs[0], node->outputs[i]);
        if (p->forms[n] == RECURRENT)
            share_states(p, node);
    }
    for (uint32_t n = 0; n < graph->node_count; n++)
        if (is_meeting(p, n))
            share_meeting(p, n);
    return choose_scales(p);
}
