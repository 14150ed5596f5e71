/* order_steps.c - steps as the nodes of a plan's network, and back. */
#include "targets/mcu/plan/order_steps.h"

#include <string.h>

#include "plan/order.h"

/* A network whose tensors are the roots of the program's values, then a token of 0 bytes for each
 * use of a state: reading the token of the use before keeps those in order. */
typedef struct network {
    muc_context *ctx;
    muc_arena *arena; /* of what is needed for the search alone */
    const muc_mcu_program *program;
    muc_net_tensor *tensors;
    muc_net_node *nodes;
    uint32_t tensor_count;
    uint32_t *token; /* [value_count]: the last token of a state, MUC_NO_ID before its first use */
    bool *is_made;   /* [value_count] */
    bool is_possible;
} network;

static uint32_t root_of(const network *n, uint32_t value)
{
    uint64_t offset;

    return muc_mcu_root(n->program, value, &offset);
}

static bool is_listed(const uint32_t *items, uint32_t count, uint32_t item)
{
    for (uint32_t i = 0; i < count; i++)
        if (items[i] == item)
            return true;
    return false;
}

static void list_tensors(network *n)
{
    n->tensor_count = n->program->value_count;
    for (uint32_t i = 0; i < n->program->value_count; i++) {
        const muc_mcu_value *value = &n->program->values[i];
        bool is_free = value->kind == MUC_MCU_CONST || value->kind == MUC_MCU_SCRATCH ||
                       value->view_of != MUC_NO_ID;

        n->token[i] = MUC_NO_ID;
        n->tensors[i] = (muc_net_tensor){
            .name = value->name,
            .bytes = is_free ? 0 : value->bytes,
            .input = value->kind == MUC_MCU_INPUT || value->kind == MUC_MCU_CONST,
            .persistent = value->kind == MUC_MCU_STATE_DATA,
        };
    }
    for (uint32_t i = 0; i < n->program->value_count; i++)
        if (n->program->values[i].is_output)
            n->tensors[root_of(n, i)].output = true;
}

/* a state is read and written by a chain of steps, whose order stays */
static void use_state(network *n, uint32_t state, uint32_t *inputs, uint32_t *outputs,
                      muc_net_node *node)
{
    uint32_t token = n->token[state];

    if (token != MUC_NO_ID && is_listed(outputs, node->output_count, token))
        return; /* twice by this step */
    if (token != MUC_NO_ID)
        inputs[node->input_count++] = token;
    n->token[state] = n->tensor_count;
    outputs[node->output_count++] = n->tensor_count;
    n->tensors[n->tensor_count++] = (muc_net_tensor){ .name = n->program->values[state].name };
}

/* the step's arguments; what it writes must be new */
static void list_uses(network *n, const muc_mcu_step *step, uint32_t *inputs, uint32_t *outputs,
                      muc_net_node *node)
{
    for (uint32_t i = 0; i < step->argument_count; i++) {
        const muc_mcu_argument *argument = &step->arguments[i];
        const muc_mcu_value *value;
        uint32_t root;

        if (argument->kind == MUC_MCU_TEXT)
            continue;
        root = root_of(n, argument->value);
        value = &n->program->values[root];
        if (value->kind == MUC_MCU_STATE_DATA) {
            use_state(n, root, inputs, outputs, node);
            if (!is_listed(inputs, node->input_count, root))
                inputs[node->input_count++] = root;
        } else if (argument->kind == MUC_MCU_WORKING) {
            node->scratch_bytes += value->bytes;
        } else if (argument->kind == MUC_MCU_WRITE) {
            if (is_listed(outputs, node->output_count, root))
                continue;
            n->is_possible = n->is_possible && !n->is_made[root] && !n->tensors[root].input;
            n->is_made[root] = true;
            outputs[node->output_count++] = root;
        } else if (!is_listed(inputs, node->input_count, root)) {
            n->is_possible = n->is_possible && (n->is_made[root] || n->tensors[root].input);
            inputs[node->input_count++] = root;
        }
    }
}

static uint32_t place_of(const uint32_t *items, uint32_t count, uint32_t item)
{
    uint32_t i = 0;

    while (i < count && items[i] != item)
        i++;
    return i;
}

static void list_shares(const network *n, const muc_mcu_step *step, muc_net_share *shares,
                        muc_net_node *node)
{
    for (uint32_t i = 0; i < step->overlap_count; i++) {
        const muc_mcu_overlap *overlap = &step->overlaps[i];
        uint64_t offset;
        uint32_t root = muc_mcu_root(n->program, overlap->in, &offset);
        muc_net_share share = {
            .input = place_of(node->inputs, node->input_count, root),
            .output = place_of(node->outputs, node->output_count, overlap->out),
            .offset = (int64_t)offset - (overlap->lead > 0 ? overlap->lead : 0),
        };

        if (share.input < node->input_count && share.output < node->output_count &&
            n->tensors[root].bytes && !n->tensors[root].persistent)
            shares[node->share_count++] = share;
    }
}

static muc_status list_node(network *n, uint32_t s)
{
    const muc_mcu_step *step = &n->program->steps[s];
    muc_net_node *node = &n->nodes[s];
    size_t most = 2 * (size_t)step->argument_count + 1; /* a state takes two places */
    muc_net_share *shares;
    uint32_t *inputs, *outputs;

    MUC_TRY(MUC_ARENA_NEW(n->ctx, n->arena, most, &inputs));
    MUC_TRY(MUC_ARENA_NEW(n->ctx, n->arena, most, &outputs));
    MUC_TRY(MUC_ARENA_NEW(n->ctx, n->arena, MUC_MCU_MOST_OVERLAPS, &shares));
    *node = (muc_net_node){
        .name = step->name, .inputs = inputs, .outputs = outputs, .shares = shares
    };
    list_uses(n, step, inputs, outputs, node);
    list_shares(n, step, shares, node);
    return MUC_OK;
}

static muc_status list_network(network *n)
{
    size_t uses = 0;

    for (uint32_t i = 0; i < n->program->step_count; i++)
        uses += n->program->steps[i].argument_count;
    MUC_TRY(MUC_ARENA_NEW(n->ctx, n->arena, n->program->value_count + uses, &n->tensors));
    MUC_TRY(MUC_ARENA_NEW(n->ctx, n->arena, n->program->step_count, &n->nodes));
    MUC_TRY(MUC_ARENA_NEW(n->ctx, n->arena, n->program->value_count, &n->token));
    MUC_TRY(MUC_ARENA_NEW(n->ctx, n->arena, n->program->value_count, &n->is_made));
    list_tensors(n);
    for (uint32_t i = 0; i < n->program->step_count; i++)
        MUC_TRY(list_node(n, i));
    return MUC_OK;
}

static muc_status find(network *n, muc_mcu_program *program)
{
    muc_order result;
    muc_mcu_step *sorted;
    uint32_t *order;

    MUC_TRY(list_network(n));
    if (!n->is_possible)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(n->ctx, n->arena, program->step_count, &order));
    MUC_TRY(muc_order_find(n->ctx,
                           &(muc_net){ .tensors = n->tensors,
                                       .tensor_count = n->tensor_count,
                                       .nodes = n->nodes,
                                       .node_count = program->step_count },
                           order, &result));
    if (result.peak_bytes >= result.given_bytes)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(n->ctx, n->arena, program->step_count, &sorted));
    for (uint32_t i = 0; i < program->step_count; i++)
        sorted[i] = program->steps[order[i]];
    memcpy(program->steps, sorted, program->step_count * sizeof(*sorted));
    return MUC_OK;
}

muc_status muc_mcu_order_steps(muc_context *ctx, muc_mcu_program *program)
{
    muc_arena arena = { 0 };
    network n = { .ctx = ctx, .arena = &arena, .program = program, .is_possible = true };
    muc_status status = program->step_count > 1 ? find(&n, program) : MUC_OK;

    muc_arena_free(&arena);
    return status;
}
