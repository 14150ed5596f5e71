/* match_nodes.c - recognises the nodes of a Llama, from the logits back to the tokens.
 *
 * Every step names what it expects; the first node that is something else is told and refused. At
 * the end every node of the graph must have been recognised as part of some stage.
 */
#include "targets/uthinker/lower/match_nodes.h"

#include "ref/golden/golden.h"

muc_status muc_match_refuse(const matching *m, const muc_node *node, const char *why)
{
    return muc_fail_on(muc_node_subject(m->ctx, m->graph, node), MUC_UNSUPPORTED, "%s", why);
}

static muc_status refuse_bias(const matching *m, const muc_node *node)
{
    if (node->input_count <= 2)
        return MUC_OK;
    return muc_fail(m->ctx, MUC_UNSUPPORTED, m->graph->name, MUC_NO_OFFSET,
                    "node '%s' adds the bias '%s'; no stage of uthinker's schedule adds one",
                    node->name, m->graph->tensors[node->inputs[2]].name);
}

static const muc_node *producer(const matching *m, uint32_t tensor)
{
    uint32_t node = m->graph->tensors[tensor].producer;

    return node == MUC_NO_ID ? NULL : &m->graph->nodes[node];
}

/* the node that computes an input of `user` must be an `op`; role is what it is there for */
static muc_status expect(matching *m, const muc_node *user, uint32_t input, muc_op op,
                         const char *role, const muc_node **out)
{
    const muc_node *node = producer(m, user->inputs[input]);

    if (!node)
        return muc_fail_on(muc_node_subject(m->ctx, m->graph, user), MUC_UNSUPPORTED,
                           "input %u is '%s', expected the result of the %s (%s)", input,
                           m->graph->tensors[user->inputs[input]].name, role, muc_op_get(op)->name);
    if (node->op != op)
        return muc_fail(m->ctx, MUC_UNSUPPORTED, m->graph->name, MUC_NO_OFFSET,
                        "node '%s' is %s, uthinker's schedule has the %s (%s) here", node->name,
                        muc_op_get(node->op)->name, role, muc_op_get(op)->name);
    m->seen[node - m->graph->nodes] = true;
    *out = node;
    return MUC_OK;
}

/* a product with one number */
static bool is_scaled(const matching *m, const muc_node *node)
{
    const muc_tensor *factor;

    if (!node || node->op != MUC_OP_MUL)
        return false;
    factor = &m->graph->tensors[node->inputs[1]];
    return factor->kind == MUC_TENSOR_CONST && factor->rank == 0 && factor->dtype == MUC_F32 &&
           factor->data;
}

/* If the input is such a product, *scaled is it; else NULL. Gives where its operand comes from. */
static const muc_node *skip_scaled(matching *m, const muc_node *user, uint32_t *input,
                                   const muc_node **scaled)
{
    const muc_node *node = producer(m, user->inputs[*input]);

    *scaled = NULL;
    if (!is_scaled(m, node))
        return user;
    m->seen[node - m->graph->nodes] = true;
    *scaled = node;
    *input = 0;
    return node;
}

/* whether a LINEAR gives it, normalised and scaled or not */
static bool is_contribution(const matching *m, uint32_t tensor)
{
    const muc_node *node = producer(m, tensor);

    if (is_scaled(m, node))
        node = producer(m, node->inputs[0]);
    if (node && node->op == MUC_OP_RMSNORM)
        node = producer(m, node->inputs[0]);
    return node && node->op == MUC_OP_LINEAR;
}

/* What a part of a layer adds to the residual. */
typedef struct part_nodes {
    const muc_node *sum, *linear, *norm, *scaled;
    uint32_t rest; /* the sum's input that is the residual */
} part_nodes;

static muc_status expect_sum(matching *m, const muc_node *user, uint32_t input, const char *role,
                             part_nodes *out)
{
    const muc_node *before;
    uint32_t at;

    MUC_TRY(expect(m, user, input, MUC_OP_ADD, "residual", &out->sum));
    out->rest = is_contribution(m, out->sum->inputs[1]) ? 0 : 1;
    at = 1 - out->rest;
    user = skip_scaled(m, out->sum, &at, &out->scaled);
    before = producer(m, user->inputs[at]);
    out->norm = NULL;
    if (before && before->op == MUC_OP_RMSNORM) {
        MUC_TRY(expect(m, user, at, MUC_OP_RMSNORM, "norm of a result", &out->norm));
        user = out->norm;
        at = 0;
    }
    return expect(m, user, at, MUC_OP_LINEAR, role, &out->linear);
}

static muc_status expect_same(matching *m, const muc_node *node, uint32_t input, uint32_t tensor)
{
    if (node->inputs[input] == tensor)
        return MUC_OK;
    return muc_fail_on(muc_node_subject(m->ctx, m->graph, node), MUC_UNSUPPORTED,
                       "input %u is '%s', uthinker's schedule has '%s' here", input,
                       m->graph->tensors[node->inputs[input]].name, m->graph->tensors[tensor].name);
}

static bool is_activation(const muc_node *node)
{
    return node && muc_golden_activates(node->op) && !muc_golden_refusal(node);
}

/* the residual, or its norm */
static muc_status expect_input(matching *m, const muc_node *linear, uint32_t residual,
                               const char *role, const muc_node **norm)
{
    if (linear->inputs[0] == residual)
        return MUC_OK;
    MUC_TRY(expect(m, linear, 0, MUC_OP_RMSNORM, role, norm));
    return expect_same(m, *norm, 0, residual);
}

static muc_status match_ffn(matching *m, layer_nodes *layer, uint32_t residual)
{
    const muc_node *gates[2];
    uint32_t gate;

    MUC_TRY(expect(m, layer->down, 0, MUC_OP_MUL, "product of gate and up", &layer->gated));
    for (uint32_t i = 0; i < 2; i++)
        gates[i] = producer(m, layer->gated->inputs[i]);
    gate = is_activation(gates[0]) ? 0 : 1;
    if (!is_activation(gates[gate]))
        return muc_match_refuse(m, layer->gated, "no operand is an activation of the machine");
    MUC_TRY(expect(m, layer->gated, gate, gates[gate]->op, "gate", &layer->silu));
    MUC_TRY(expect(m, layer->gated, 1 - gate, MUC_OP_LINEAR, "up", &layer->up));
    MUC_TRY(expect(m, layer->silu, 0, MUC_OP_LINEAR, "gate", &layer->gate));
    MUC_TRY(expect_same(m, layer->up, 0, layer->gate->inputs[0]));
    return expect_input(m, layer->gate, residual, "norm before gate and up", &layer->ffn_norm);
}

/* whether rows depend on where they are, and on nothing before them */
static bool is_rotation(const muc_node *node)
{
    bool required;

    return node && muc_op_takes(node->op, MUC_KEY_POSITION, &required) &&
           !muc_op_has(node->op, MUC_OP_STATEFUL);
}

/* An input of the attention: a LINEAR, whose heads may be normalised and then rotated; NULL: not.
 */
static muc_status match_heads(matching *m, const layer_nodes *layer, uint32_t input,
                              const char *role, const muc_node **rope, const muc_node **norm,
                              const muc_node **linear)
{
    const muc_node *user = layer->attention, *before = producer(m, user->inputs[input]);

    *rope = *norm = NULL;
    if (is_rotation(before)) {
        MUC_TRY(expect(m, user, input, before->op, "rotation", rope));
        user = *rope;
        input = 0;
        before = producer(m, user->inputs[0]);
    }
    if (before && before->op == MUC_OP_RMSNORM) {
        MUC_TRY(expect(m, user, input, MUC_OP_RMSNORM, "norm of heads", norm));
        user = *norm;
        input = 0;
    }
    return expect(m, user, input, MUC_OP_LINEAR, role, linear);
}

static muc_status match_attention(matching *m, layer_nodes *layer, uint32_t residual)
{
    MUC_TRY(expect(m, layer->o, 0, MUC_OP_ATTENTION, "attention", &layer->attention));
    MUC_TRY(expect(m, layer->attention, 2, MUC_OP_LINEAR, "V", &layer->v));
    MUC_TRY(match_heads(m, layer, 0, "Q", &layer->q_rope, &layer->q_norm, &layer->q));
    MUC_TRY(match_heads(m, layer, 1, "K", &layer->k_rope, &layer->k_norm, &layer->k));
    if (!layer->q_rope != !layer->k_rope)
        return muc_match_refuse(m, layer->attention, "only one of its queries and keys is rotated");
    MUC_TRY(expect_same(m, layer->k, 0, layer->q->inputs[0]));
    MUC_TRY(expect_same(m, layer->v, 0, layer->q->inputs[0]));
    return expect_input(m, layer->q, residual, "norm before Q, K and V", &layer->attention_norm);
}

/* the layer whose result is input `input` of user; *before is the residual it starts from */
static muc_status match_layer(matching *m, const muc_node *user, uint32_t input, layer_nodes *layer,
                              const muc_node **last, uint32_t *before)
{
    part_nodes part;
    uint32_t rest;

    MUC_TRY(expect_sum(m, user, input, "down", &part));
    layer->residual = part.sum;
    layer->down = part.linear;
    layer->down_norm = part.norm;
    layer->down_scaled = part.scaled;
    rest = part.rest;
    MUC_TRY(match_ffn(m, layer, part.sum->inputs[rest]));
    MUC_TRY(expect_sum(m, part.sum, rest, "O", &part));
    layer->o_residual = part.sum;
    layer->o = part.linear;
    layer->o_norm = part.norm;
    layer->o_scaled = part.scaled;
    *before = part.rest;
    MUC_TRY(match_attention(m, layer, part.sum->inputs[*before]));
    *last = part.sum;
    return MUC_OK;
}

/* the node that computes the logits before they are scaled and capped */
static const muc_node *match_logits(matching *m, uint32_t output)
{
    const muc_node *node = producer(m, output), *tanh, *uncapped;

    tanh = is_scaled(m, node) ? producer(m, node->inputs[0]) : NULL;
    uncapped = tanh && tanh->op == MUC_OP_TANH ? producer(m, tanh->inputs[0]) : NULL;
    if (is_scaled(m, uncapped)) {
        m->head_capped = node;
        m->head_uncapped = uncapped;
        m->seen[node - m->graph->nodes] = true;
        m->seen[tanh - m->graph->nodes] = true;
        m->seen[uncapped - m->graph->nodes] = true;
        node = producer(m, uncapped->inputs[0]);
    }
    if (is_scaled(m, node)) {
        m->head_scaled = node;
        m->seen[node - m->graph->nodes] = true;
        node = producer(m, node->inputs[0]);
    }
    return node;
}

muc_status muc_match_nodes(matching *m)
{
    const muc_graph *graph = m->graph;
    const muc_node *user, *node;
    uint32_t input = 0;

    m->head = graph->output_count == 1 ? match_logits(m, graph->outputs[0]) : NULL;
    if (!m->head || m->head->op != MUC_OP_LINEAR)
        return muc_fail(m->ctx, MUC_UNSUPPORTED, m->graph->name, MUC_NO_OFFSET,
                        "the graph does not end in one linear, the LM head");
    MUC_TRY(refuse_bias(m, m->head));
    m->seen[m->head - graph->nodes] = true;
    MUC_TRY(expect(m, m->head, 0, MUC_OP_RMSNORM, "final norm", &m->final_norm));
    for (user = m->final_norm;;) {
        node = producer(m, user->inputs[input]);
        if (is_scaled(m, node)) { /* no layer ends so */
            user = skip_scaled(m, user, &input, &m->embed_scaled);
            break;
        }
        if (node && node->op == MUC_OP_EMBED)
            break;
        MUC_TRY(muc_arena_grow(m->ctx, m->arena, m->layer_count + 1, sizeof(*m->layers),
                               &m->capacity, (void **)&m->layers));
        MUC_TRY(match_layer(m, user, input, &m->layers[m->layer_count], &user, &input));
        m->layer_count++;
    }
    MUC_TRY(expect(m, user, input, MUC_OP_EMBED, "embedding", &m->embed));
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (!m->seen[i])
            return muc_match_refuse(m, &graph->nodes[i], "no stage of the schedule computes it");
    if (m->layer_count == 0)
        return muc_match_refuse(m, m->embed, "the model has no layers");
    return MUC_OK;
}
