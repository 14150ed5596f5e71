/* chip_lower.c - the nodes one after the other: each by its operator's rule, or by the master. */
#include "targets/cnnchip/lower/chip_lower.h"

#include "base/half.h"

/* ---- layers and steps ---- */

muc_status muc_cnnchip_begin_layer(muc_cnnchip_lowering *l, const muc_node *node)
{
    MUC_TRY(muc_arena_grow(l->ctx, &l->arena, l->layer_count + (size_t)1, sizeof(*l->layers),
                           &l->layer_capacity, (void **)&l->layers));
    l->layers[l->layer_count++] = (muc_cnnchip_layer){ .tensor = node->outputs[0], .op = node->op };
    return MUC_OK;
}

muc_status muc_cnnchip_add_step(muc_cnnchip_lowering *l, muc_cnnchip_step_kind kind,
                                muc_cnnchip_view in, muc_cnnchip_view out, muc_cnnchip_step **step)
{
    MUC_TRY(muc_arena_grow(l->ctx, &l->arena, l->step_count + (size_t)1, sizeof(*l->steps),
                           &l->step_capacity, (void **)&l->steps));
    *step = &l->steps[l->step_count++];
    **step = (muc_cnnchip_step){
        .kind = kind,
        .layer = l->layer_count - 1,
        .in = in,
        .out = out,
        .kernel = { 1, 1 },
        .dilation = { 1, 1 },
        .stride = { 1, 1 },
        .groups = 1,
        .step = { 1, 1 },
        .factor = 1,
    };
    if (kind != MUC_CNNCHIP_STEP_HOST)
        l->layers[l->layer_count - 1].steps++;
    return MUC_OK;
}

muc_status muc_cnnchip_add_dsp(muc_cnnchip_lowering *l, muc_cnnchip_step *step)
{
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, step->out.c, &step->v1));
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, step->out.c, &step->v2));
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, step->out.c, &step->v3));
    for (uint32_t i = 0; i < step->out.c; i++)
        step->v1[i] = 1;
    return MUC_OK;
}

/* ---- the master's nodes ---- */

/* whether the host step writes the tensor's elements to FRAME, as another tensor */
static bool writes_as_another(const muc_cnnchip_lowering *l, const muc_cnnchip_host *host,
                              uint32_t tensor)
{
    bool found = false;

    if (tensor == MUC_NO_ID || !l->values[tensor].on_chip)
        return false;
    for (uint32_t n = 0; n < host->node_count; n++) {
        const muc_node *node = &l->graph->nodes[host->nodes[n]];

        for (uint32_t i = 0; i < node->output_count; i++) {
            const muc_cnnchip_value *v = &l->values[node->outputs[i]];

            if (node->outputs[i] == tensor)
                return false;
            found =
                found || (v->on_chip && muc_cnnchip_root(l, v->view).storage ==
                                            muc_cnnchip_root(l, l->values[tensor].view).storage);
        }
    }
    return found;
}

/* the host step that this node joins: the last, if no step of the chip came after it, and the node
 * reads nothing by way of FRAME that is written when the step ends */
static muc_status host_for(muc_cnnchip_lowering *l, const muc_node *node, uint32_t *out)
{
    const muc_cnnchip_view none = { .storage = MUC_NO_ID };
    bool joins = l->host_count && l->hosts[l->host_count - 1].step + 1 == l->step_count;
    muc_cnnchip_step *step;

    for (uint32_t i = 0; joins && i < node->input_count; i++)
        joins = !writes_as_another(l, &l->hosts[l->host_count - 1], node->inputs[i]);
    if (joins) {
        *out = l->host_count - 1;
        return MUC_OK;
    }
    MUC_TRY(muc_arena_grow(l->ctx, &l->arena, l->host_count + (size_t)1, sizeof(*l->hosts),
                           &l->host_capacity, (void **)&l->hosts));
    *out = l->host_count++;
    l->hosts[*out] = (muc_cnnchip_host){ .step = l->step_count };
    MUC_TRY(muc_cnnchip_add_step(l, MUC_CNNCHIP_STEP_HOST, none, none, &step));
    step->host = l->host_count;
    return MUC_OK;
}

static muc_status give_to_host(muc_cnnchip_lowering *l, const muc_node *node)
{
    muc_cnnchip_host *host;
    uint32_t index;

    MUC_TRY(host_for(l, node, &index));
    host = &l->hosts[index];
    MUC_TRY(muc_arena_grow(l->ctx, &l->arena, host->node_count + (size_t)1, sizeof(*host->nodes),
                           &host->capacity, (void **)&host->nodes));
    host->nodes[host->node_count++] = (uint32_t)(node - l->graph->nodes);
    for (uint32_t i = 0; i < node->output_count; i++) {
        l->values[node->outputs[i]].on_host = true;
        l->values[node->outputs[i]].maker = index;
    }
    return MUC_OK;
}

/* ---- the road ---- */

static const struct {
    muc_op op;
    muc_cnnchip_rule *rule; /* or NULL: a host step */
} rows[] = {
#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    { .op = MUC_OP_##id, MUC_FACTS facts },
#define CHIP(name) .rule = muc_cnnchip_lower_##name,
#include "graph/ops.def"
};

/* everything is taken back that a rule did before it gave up */
static muc_status lower_node(muc_cnnchip_lowering *l, const muc_node *node)
{
    uint32_t steps = l->step_count, layers = l->layer_count;
    muc_cnnchip_rule *rule = rows[node->op].rule;
    bool done = false;

    if (rule)
        MUC_TRY(rule(l, node, &done));
    if (done)
        return MUC_OK;
    l->step_count = steps;
    l->layer_count = layers;
    return give_to_host(l, node);
}

static muc_status refuse_open(const muc_cnnchip_lowering *l, const muc_tensor *t, uint32_t d)
{
    const muc_expr_node *dim = muc_expr_get(l->graph->pool, t->dims[d]);
    muc_status status =
        muc_fail(l->ctx, MUC_UNSUPPORTED, l->graph->name, MUC_NO_OFFSET,
                 "dimension %u of '%s' is open; the chip wants all sizes", d, t->name);

    if (dim->op == MUC_EXPR_INPUT)
        muc_hint(l->ctx, "--dim %s=1 sets it",
                 muc_expr_get_input(l->graph->pool, dim->immediate)->name);
    return status;
}

static muc_status check_dims(muc_cnnchip_lowering *l)
{
    for (uint32_t i = 0; i < l->graph->tensor_count; i++) {
        const muc_tensor *t = &l->graph->tensors[i];

        for (uint32_t d = 0; d < t->rank; d++)
            if (!muc_expr_is_const(l->graph->pool, t->dims[d]))
                return refuse_open(l, t, d);
        if (t->kind == MUC_TENSOR_STATE)
            return muc_fail(l->ctx, MUC_UNSUPPORTED, l->graph->name, MUC_NO_OFFSET,
                            "'%s' is kept from run to run; the chip keeps nothing", t->name);
    }
    return MUC_OK;
}

static muc_status begin(muc_cnnchip_lowering *l)
{
    const muc_graph *graph = l->graph;

    MUC_TRY(check_dims(l));
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, graph->tensor_count + (size_t)1, &l->values));
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, graph->tensor_count + (size_t)1, &l->readers));
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        const muc_tensor *t = &graph->tensors[i];
        bool known = t->kind == MUC_TENSOR_INPUT || t->kind == MUC_TENSOR_CONST;

        l->values[i] = (muc_cnnchip_value){
            .on_host = known, .scale = 1, .layer = MUC_NO_ID, .maker = MUC_NO_ID
        };
        if (t->quantization && t->quantization->count == 1) {
            l->values[i].scale = t->quantization->scales[0];
            l->values[i].zero = t->quantization->zero_points[0];
        }
    }
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t k = 0; k < graph->nodes[i].input_count; k++)
            if (graph->nodes[i].inputs[k] != MUC_NO_ID)
                l->readers[graph->nodes[i].inputs[k]]++;
    for (uint32_t i = 0; i < graph->output_count; i++)
        l->readers[graph->outputs[i]]++;
    return MUC_OK;
}

/* none of its operators is the chip's */
static muc_status refuse_all(const muc_cnnchip_lowering *l)
{
    enum { MOST_BYTES = 200 };
    bool told[MUC_OP_COUNT] = { false };
    muc_text operators = { 0 };
    muc_status status;

    for (uint32_t i = 0; i < l->graph->node_count; i++) {
        muc_op op = l->graph->nodes[i].op;

        if (!told[op] && operators.size < MOST_BYTES)
            muc_text_add(&operators, "%s%s", operators.size ? ", " : "", muc_op_get(op)->name);
        told[op] = true;
    }
    status = muc_fail(l->ctx, MUC_UNSUPPORTED, l->graph->name, MUC_NO_OFFSET,
                      "nothing of it can run on the chip, whose elements are %s: its operators are "
                      "%s; --target mcu takes whole networks",
                      muc_cnnchip_element_name(l->machine->element),
                      operators.data ? operators.data : "none");
    muc_text_free(&operators);
    return status;
}

muc_status muc_cnnchip_lower(muc_cnnchip_lowering *l)
{
    uint32_t on_chip = 0;

    MUC_TRY(begin(l));
    for (uint32_t i = 0; i < l->graph->node_count; i++)
        MUC_TRY(lower_node(l, &l->graph->nodes[i]));
    for (uint32_t i = 0; i < l->step_count; i++)
        on_chip += l->steps[i].kind != MUC_CNNCHIP_STEP_HOST;
    if (on_chip == 0)
        return refuse_all(l);
    if (l->layer_count > UINT16_MAX || l->host_count > UINT16_MAX)
        return muc_fail(l->ctx, MUC_UNSUPPORTED, l->graph->name, MUC_NO_OFFSET,
                        "more than %d layers", UINT16_MAX);
    return MUC_OK;
}
