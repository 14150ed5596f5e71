/* lower_nodes.c - walks over the nodes and lets the first writer of an operator that takes one
 * write it. */
#include "targets/mcu/lower/lower_nodes.h"

#include "targets/mcu/lower/run_checks.h"
#include "targets/mcu/program/runtime_files.h"
#include "targets/mcu/steps/step_writer.h"

typedef struct writer {
    const char *name, *needs; /* NULL: behind the last */
    muc_mcu_takes *takes;     /* NULL: every node */
    muc_mcu_write *write;
} writer;

enum { MOST_WRITERS = 6 }; /* of an operator */

/* what ops.def says of each operator's C */
static const struct {
    muc_op op;
    writer writers[MOST_WRITERS + 1];
} rows[] = {
#define MUC_OP(id, text, least, most, least_out, most_out, rule, flags, facts, meaning) \
    { MUC_OP_##id, { MUC_FACTS facts{ .name = NULL } } },
#define CODE(name, needs) { #name, needs, muc_mcu_takes_##name, muc_mcu_write_##name },
#define CODE_OF_ANY(name, needs) { #name, needs, NULL, muc_mcu_write_##name },
#include "graph/ops.def"
};

bool muc_mcu_runs(muc_op op)
{
    return rows[op].writers[0].name != NULL;
}

static bool is_open(const muc_mcu_lowering *l, const muc_tensor *x)
{
    for (uint32_t i = 0; i < x->rank; i++)
        if (!muc_expr_is_const(l->graph->pool, x->dims[i]))
            return true;
    return false;
}

static muc_status refuse(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    muc_text shape = { 0 }, needs = { 0 };
    muc_status status;

    muc_text_add(&shape, "nothing");
    if (x) {
        shape.size = 0;
        muc_tensor_print_shape(l->graph, x, &shape);
    }
    if (x && is_open(l, x)) /* what most writers need first */
        muc_text_add(&needs, ", whose shape is open");
    else
        for (const writer *w = rows[node->op].writers; w->name; w++)
            muc_text_add(&needs, "; %s needs %s", w->name, w->needs);
    status = muc_fail_on(muc_node_subject(l->ctx, l->graph, node), MUC_UNSUPPORTED,
                         "no kernel for %s of %s%s", muc_op_get(node->op)->name,
                         shape.data ? shape.data : "?", needs.data ? needs.data : "");
    muc_text_free(&shape);
    muc_text_free(&needs);
    return status;
}

/* nothing is to be computed */
static bool is_empty(const muc_mcu_lowering *l, const muc_node *node)
{
    for (uint32_t i = 0; i < node->output_count; i++)
        if (muc_mcu_most_elements(l, muc_mcu_output(l, node, i)) != 0)
            return false;
    return true;
}

static muc_status lower_node(muc_mcu_lowering *l, const muc_node *node)
{
    uint32_t value, first = l->program->step_count;

    if (l->program->value_of[node->outputs[0]] != MUC_NO_ID)
        return MUC_OK; /* part of an earlier step */
    for (uint32_t i = 0; is_empty(l, node) && i < node->output_count; i++) {
        MUC_TRY(muc_mcu_output_value(l, node, i, &value));
        if (i + 1 == node->output_count)
            return MUC_OK;
    }
    for (const writer *w = rows[node->op].writers; w->name; w++) {
        if (w->takes && !w->takes(l, node))
            continue;
        MUC_TRY(w->write(l, node));
        return muc_mcu_add_checks(l, node, first);
    }
    return refuse(l, node);
}

/* the value that stands for an output of the graph */
static uint32_t output_value_of(const muc_mcu_lowering *l, uint32_t tensor)
{
    uint32_t value = l->program->value_of[tensor];
    uint32_t producer = l->graph->tensors[tensor].producer;

    if (value != MUC_NO_ID || !muc_mcu_is_boundary(l, &l->graph->nodes[producer]))
        return value;
    return l->program->value_of[l->graph->nodes[producer].inputs[0]];
}

static void add_port(muc_mcu_ports *ports, uint32_t value)
{
    for (uint32_t i = 0; i < ports->count; i++)
        if (ports->values[i] == value)
            return;
    ports->values[ports->count++] = value;
}

static muc_status list_outputs(muc_mcu_lowering *l)
{
    muc_mcu_program *program = l->program;

    MUC_TRY(
        MUC_ARENA_NEW(l->ctx, &program->arena, l->graph->output_count, &program->outputs.values));
    for (uint32_t i = 0; i < l->graph->output_count; i++) {
        uint32_t value = output_value_of(l, l->graph->outputs[i]);

        if (value == MUC_NO_ID)
            return muc_fail(l->ctx, MUC_BUG, l->graph->name, MUC_NO_OFFSET,
                            "no step computes output '%s'",
                            l->graph->tensors[l->graph->outputs[i]].name);
        add_port(&program->outputs, value);
    }
    return MUC_OK;
}

static muc_status lower_all(muc_mcu_lowering *l)
{
    muc_graph *graph = l->graph;
    uint32_t id;

    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, graph->tensor_count, &l->program->value_of));
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        l->program->value_of[i] = MUC_NO_ID;
    MUC_TRY(
        MUC_ARENA_NEW(l->ctx, &l->program->arena, graph->tensor_count, &l->program->inputs.values));
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].kind == MUC_TENSOR_INPUT) {
            MUC_TRY(muc_mcu_add_tensor(l, muc_mcu_inner_input(l, i), &id));
            l->program->values[id].kind = MUC_MCU_INPUT;
            add_port(&l->program->inputs, id);
        }
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (!muc_mcu_is_boundary(l, &graph->nodes[i]))
            MUC_TRY(lower_node(l, &graph->nodes[i]));
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (l->program->value_of[graph->outputs[i]] == MUC_NO_ID &&
            graph->tensors[graph->outputs[i]].kind != MUC_TENSOR_ACTIVATION)
            MUC_TRY(muc_mcu_add_tensor(l, graph->outputs[i], &id));
    return list_outputs(l);
}

/* the lengths that a tensor's dimensions depend on are arguments of the run */
static void need_dims(muc_mcu_program *program, const muc_tensor *tensor)
{
    for (uint32_t i = 0; i < tensor->rank; i++)
        program->arguments |= muc_expr_get(program->graph->pool, tensor->dims[i])->inputs;
}

/* What the compiler calls for binary32 where there is no floating point: ours takes the place of
 * its library's. */
static muc_status need_floats(muc_mcu_lowering *l)
{
    if (muc_mcu_isa_suits(l->isa, MUC_MCU_ISA_RV) < 1)
        return MUC_OK;
    for (uint32_t i = 0; i < l->graph->tensor_count; i++)
        if (l->graph->tensors[i].dtype == MUC_F32)
            return muc_mcu_need_function(l->ctx, l->program, "mur_rv_float_add");
    return MUC_OK;
}

muc_status muc_mcu_lower(muc_context *ctx, muc_graph *graph, muc_mcu_program *program)
{
    muc_mcu_lowering l = {
        .ctx = ctx,
        .graph = graph,
        .program = program,
        .isa = muc_mcu_core_get(program->machine->core)->isa,
    };
    muc_status status = lower_all(&l);

    if (status == MUC_OK)
        status = need_floats(&l);
    /* whoever fills inputs and reads outputs must know how long they are */
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].kind == MUC_TENSOR_INPUT)
            need_dims(program, &graph->tensors[i]);
    for (uint32_t i = 0; i < graph->output_count; i++)
        need_dims(program, &graph->tensors[graph->outputs[i]]);

    muc_text_free(&l.text);
    return status;
}
