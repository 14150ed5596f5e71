/* import_nodes.c - imports the nodes of a graph, of a function of the model, or of a branch. */
#include <inttypes.h>
#include <string.h>

#include "formats/onnx/evaluate.h"
#include "formats/onnx/integers.h"
#include "formats/onnx/onnx_quantlib.h"
#include "formats/onnx/onnx_operators.h"

/* The newest of the versions that a frame imports of a domain; 0: none. */
static int64_t version_of(const onnx_frame *frame, const char *domain)
{
    int64_t version = 0;

    for (size_t i = 0; i < frame->opset_count; i++)
        if (strcmp(frame->opsets[i]->domain, domain) == 0 && frame->opsets[i]->version > version)
            version = frame->opsets[i]->version;
    return version;
}

static const Onnx__FunctionProto *find_function(const onnx_import *im, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < im->model->n_functions; i++) {
        const Onnx__FunctionProto *function = im->model->functions[i];

        if (strcmp(function->name, node->op_type) == 0 &&
            strcmp(function->domain, node->domain) == 0)
            return function;
    }
    return NULL;
}

/* ---- the listing ---- */

/* functions whose nodes are to be listed, each once */
typedef struct listed_functions {
    size_t *items, count; /* [the model's functions] */
    bool *is_among;
} listed_functions;

static muc_status list_node(onnx_import *im, const onnx_frame *frame, const Onnx__NodeProto *node,
                            listed_functions *functions)
{
    const Onnx__FunctionProto *function = find_function(im, node);
    const char *domain = node->domain, *type = node->op_type, *name;
    bool supported = function || onnx_has_row(domain, type);
    size_t i;

    for (i = 0; function && im->model->functions[i] != function;)
        i++;
    if (function && !functions->is_among[i]) {
        functions->is_among[i] = true;
        functions->items[functions->count++] = i;
    }
    /* a domain that the model does not import is told of by the reader */
    supported = supported || (frame && version_of(frame, domain) == 0);
    name = node->name;
    if (name[0] == '\0' && node->n_output)
        name = node->output[0];
    if (domain[0])
        MUC_TRY(muc_arena_format(im->ctx, &im->network->arena, &type, "%s.%s", domain, type));
    return muc_listing_add(im->ctx, &im->network->arena, &im->network->listing, type, name,
                           supported);
}

static muc_status list_branches(onnx_import *im, const onnx_frame *frame,
                                const Onnx__NodeProto *node, listed_functions *functions);

static muc_status list_nodes(onnx_import *im, const onnx_frame *frame,
                             Onnx__NodeProto *const *nodes, size_t count,
                             listed_functions *functions)
{
    for (size_t i = 0; i < count; i++) {
        MUC_TRY(list_node(im, frame, nodes[i], functions));
        MUC_TRY(list_branches(im, frame, nodes[i], functions));
    }
    return MUC_OK;
}

/* Which branch of an If is taken is known later: what it lacks refuses no network yet. */
static muc_status list_branches(onnx_import *im, const onnx_frame *frame,
                                const Onnx__NodeProto *node, listed_functions *functions)
{
    bool lacks = im->network->listing.lacks;

    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__GraphProto *graph = node->attribute[i]->g;

        if (graph)
            MUC_TRY(list_nodes(im, frame, graph->node, graph->n_node, functions));
    }
    im->network->listing.lacks = lacks;
    return MUC_OK;
}

muc_status onnx_list_nodes(onnx_import *im, const onnx_frame *frame, const Onnx__GraphProto *graph)
{
    size_t function_count = im->model->n_functions;
    listed_functions functions = { 0 };

    MUC_TRY(MUC_ARENA_NEW(im->ctx, &im->arena, function_count + 1, &functions.items));
    MUC_TRY(MUC_ARENA_NEW(im->ctx, &im->arena, function_count + 1, &functions.is_among));
    MUC_TRY(list_nodes(im, frame, graph->node, graph->n_node, &functions));
    for (size_t f = 0; f < functions.count; f++) {
        const Onnx__FunctionProto *function = im->model->functions[functions.items[f]];

        MUC_TRY(list_nodes(im, NULL, function->node, function->n_node, &functions));
    }
    return MUC_OK;
}

/* ---- functions ---- */

/* Names of the function's inputs are the caller's values. */
static muc_status pass_inputs(onnx_call *call, const Onnx__FunctionProto *function,
                              onnx_frame *frame)
{
    if (call->proto->n_input > function->n_input)
        return onnx_fail(call, MUC_MALFORMED, "%zu inputs, the function takes %zu",
                         call->proto->n_input, function->n_input);
    for (size_t i = 0; i < call->proto->n_input; i++) {
        const char *name = call->proto->input[i];
        const onnx_value *given = onnx_scope_find(&call->frame->scope, name);
        onnx_value *value;

        if (name[0] == '\0')
            continue;
        if (!given)
            return onnx_fail(call, MUC_MALFORMED, "input %zu, '%s', is computed nowhere", i, name);
        MUC_TRY(onnx_scope_add(call->im, &frame->scope, function->input[i], &value));
        value->tensor = given->tensor;
        value->numbers = given->numbers;
        value->initializer = given->initializer;
    }
    return MUC_OK;
}

/* The call's output i is what a name means in an inner frame. */
static muc_status pass_output(onnx_call *call, const onnx_frame *frame, const char *name,
                              uint32_t i)
{
    const onnx_value *inner = onnx_scope_find(&frame->scope, name);
    onnx_value *value;

    if (!onnx_has_output(call, i))
        return MUC_OK;
    if (!inner)
        return onnx_fail(call, MUC_MALFORMED, "its result '%s' is computed nowhere", name);
    MUC_TRY(onnx_scope_add(call->im, &call->frame->scope, call->proto->output[i], &value));
    value->tensor = inner->tensor;
    value->numbers = inner->numbers;
    value->initializer = inner->initializer;
    return MUC_OK;
}

static muc_status check_inner(const onnx_call *call, size_t results)
{
    if (call->frame->depth >= ONNX_MAX_DEPTH)
        return onnx_fail(call, MUC_UNSUPPORTED, "functions and branches are deeper than %d",
                         ONNX_MAX_DEPTH);
    if (call->proto->n_output > results)
        return onnx_fail(call, MUC_MALFORMED, "%zu outputs, its body has %zu",
                         call->proto->n_output, results);
    return MUC_OK;
}

static muc_status import_function(onnx_call *call, const Onnx__FunctionProto *function)
{
    onnx_frame frame = { .opsets = function->opset_import,
                         .opset_count = function->n_opset_import,
                         .caller = call,
                         .depth = call->frame->depth + 1 };

    MUC_TRY(check_inner(call, function->n_output));
    MUC_TRY(pass_inputs(call, function, &frame));
    MUC_TRY(onnx_import_nodes(call->im, &frame, function->node, function->n_node));
    for (uint32_t i = 0; i < call->proto->n_output; i++)
        MUC_TRY(pass_output(call, &frame, function->output[i], i));
    return MUC_OK;
}

/* ---- branches ---- */

static muc_status import_branch(onnx_call *call, const Onnx__GraphProto *graph)
{
    onnx_frame frame = *call->frame;

    MUC_TRY(check_inner(call, graph->n_output));
    frame.scope = (onnx_scope){ .parent = &call->frame->scope };
    frame.depth++;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        onnx_value *value;

        MUC_TRY(onnx_scope_add(call->im, &frame.scope, graph->initializer[i]->name, &value));
        value->initializer = graph->initializer[i];
    }
    MUC_TRY(onnx_import_nodes(call->im, &frame, graph->node, graph->n_node));
    for (uint32_t i = 0; i < call->proto->n_output; i++)
        MUC_TRY(pass_output(call, &frame, graph->output[i]->name, i));
    return MUC_OK;
}

/* a condition that is known chooses its branch now */
muc_status onnx_import_if(onnx_call *call)
{
    const Onnx__AttributeProto *branches[2];
    int64_t condition;

    MUC_TRY(onnx_attribute(call, "else_branch", &branches[0]));
    MUC_TRY(onnx_attribute(call, "then_branch", &branches[1]));
    MUC_TRY(onnx_known_integer(call, 0, &condition));
    if (!branches[condition != 0] || !branches[condition != 0]->g)
        return onnx_fail(call, MUC_MALFORMED, "a branch is missing");
    return import_branch(call, branches[condition != 0]->g);
}

/* ---- nodes ---- */

static muc_status check_attributes(const onnx_call *call)
{
    for (size_t i = 0; i < call->proto->n_attribute; i++)
        if (!(call->used >> i & 1))
            return onnx_fail(call, MUC_UNSUPPORTED,
                             "muc reads no attribute '%s' in version %" PRId64
                             " of the operator set",
                             call->proto->attribute[i]->name, call->version);
    return MUC_OK;
}

/* Numbers of all inputs, NULL where unknown; *given if one depends on the options. */
static muc_status collect(onnx_call *call, const onnx_numbers **inputs, bool *given)
{
    for (uint32_t i = 0; i < call->proto->n_input; i++) {
        onnx_value *value;

        inputs[i] = NULL;
        if (!onnx_has_input(call, i))
            continue;
        value = onnx_scope_find(&call->frame->scope, call->proto->input[i]);
        if (!value)
            return onnx_fail(call, MUC_MALFORMED, "input %u, '%s', is computed nowhere", i,
                             call->proto->input[i]);
        MUC_TRY(onnx_numbers_of(call->im, value, &inputs[i]));
        *given = *given || (inputs[i] && inputs[i]->given);
    }
    return MUC_OK;
}

/* Numbers that depend on nothing given replace the node; others stand beside it. */
static muc_status evaluate(onnx_call *call, onnx_numbers **out)
{
    const onnx_numbers *inputs[ONNX_MAX_OPERANDS] = { 0 };
    bool given = false;

    *out = NULL;
    if (call->row->evaluate == onnx_evaluate_none || call->proto->n_input > MUC_COUNT(inputs) ||
        call->proto->n_output != 1)
        return MUC_OK;
    MUC_TRY(collect(call, inputs, &given));
    MUC_TRY(call->row->evaluate(call, inputs, out));
    if (*out)
        (*out)->given = given && !call->shape_only;
    return MUC_OK;
}

/* whether the node's result is an integer although the file calls it FLOAT */
static bool is_of_integers(const onnx_call *call)
{
    return call->frame->depth == 0 && call->proto->n_output > 0 &&
           onnx_integer_rule_of(call->row->name) != ONNX_NOTHING &&
           onnx_is_integer(call->im->integers, call->proto->output[0]);
}

static muc_status import_operator(onnx_call *call)
{
    return call->integers && onnx_integer_rule_of(call->row->name) == ONNX_COMPUTES
               ? onnx_import_integers(call)
               : call->row->import(call);
}

static muc_status import_row(onnx_call *call)
{
    onnx_numbers *numbers;
    onnx_value *value;

    MUC_TRY(onnx_find_row(call));
    if (call->proto->n_attribute > 64)
        return onnx_fail(call, MUC_UNSUPPORTED, "%zu attributes", call->proto->n_attribute);
    call->integers = is_of_integers(call);
    MUC_TRY(evaluate(call, &numbers));
    if (numbers && !numbers->given)
        MUC_TRY(onnx_bind_numbers(call, 0, numbers));
    else
        MUC_TRY(import_operator(call));
    MUC_TRY(check_attributes(call));
    value = numbers && onnx_has_output(call, 0)
                ? onnx_scope_find(&call->frame->scope, call->proto->output[0])
                : NULL;
    if (value && !value->numbers)
        value->numbers = numbers;
    return MUC_OK;
}

static muc_status import_node(onnx_import *im, onnx_frame *frame, const Onnx__NodeProto *node)
{
    onnx_call call = { .im = im, .frame = frame, .proto = node };
    const Onnx__FunctionProto *function = find_function(im, node);

    call.name = node->name;
    if (call.name[0] == '\0' && node->n_output)
        call.name = node->output[0];
    call.version = version_of(frame, node->domain);
    if (im->nodes_left-- == 0)
        return onnx_fail(&call, MUC_UNSUPPORTED,
                         "the model's functions become more nodes than its size allows");
    if (node->n_output == 0)
        return onnx_fail(&call, MUC_MALFORMED, "the node has no output");
    return function ? import_function(&call, function) : import_row(&call);
}

muc_status onnx_import_nodes(onnx_import *im, onnx_frame *frame, Onnx__NodeProto *const *nodes,
                             size_t count)
{
    size_t *order;

    MUC_TRY(onnx_order(im, nodes, count, &order));
    for (size_t i = 0; i < count; i++)
        MUC_TRY(import_node(im, frame, nodes[order[i]]));
    return MUC_OK;
}
