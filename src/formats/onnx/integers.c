/* integers.c - finds the values that are integers, by the operators' rules applied until nothing
 * changes. */
#include "formats/onnx/integers.h"

#include <math.h>
#include <string.h>

#include "formats/onnx/onnx_quantlib.h"

enum kind { UNKNOWN, INTEGER, REAL, WHOLE /* a constant of whole numbers */ };
enum { MAX_PASSES = 256 };

typedef struct value {
    enum kind kind;
    bool typed;    /* dtype is known */
    bool given;    /* by the caller or by the file */
    bool declared; /* an integer by the file's own word */
    muc_dtype dtype;
} value;

struct onnx_integer_values {
    onnx_scope names; /* to numbers of values, in tensor */
    value *values;
    uint32_t count;
};

typedef struct row {
    const char *op_type;
    onnx_integer_rule rule;
    size_t inputs;
} row;

static const row *row_of(const char *op_type)
{
    static const row rows[] = {
#define ONNX_INTEGERS(op_type, rule, inputs) { #op_type, ONNX_##rule, inputs },
#include "formats/onnx/integers.def"
#undef ONNX_INTEGERS
    };
    static const row nothing = { "", ONNX_NOTHING, 0 };

    for (size_t i = 0; i < MUC_COUNT(rows); i++)
        if (strcmp(rows[i].op_type, op_type) == 0)
            return &rows[i];
    return &nothing;
}

/* NULL: the graph has no such name */
static value *find(const onnx_integer_values *integers, const char *name)
{
    const onnx_value *place = onnx_scope_find(&integers->names, name);

    return place ? &integers->values[place->tensor] : NULL;
}

bool onnx_is_integer(const onnx_integer_values *integers, const char *name)
{
    const value *v = integers ? find(integers, name) : NULL;

    return v && v->kind == INTEGER;
}

bool onnx_is_declared_integer(const onnx_integer_values *integers, const char *name)
{
    const value *v = find(integers, name);

    return v && v->declared;
}

muc_dtype onnx_integer_type(const onnx_integer_values *integers, const char *name)
{
    const value *v = find(integers, name);

    return v && v->typed ? v->dtype : MUC_I16;
}

/* ---- what is known from the start ---- */

static bool all_whole(const muc_tensor_view *view)
{
    for (uint64_t i = 0; i < view->elements; i++) {
        float x;

        muc_dtype_to_f32(MUC_F32, view->data, i, 1, &x);
        if (!(fabsf(x) <= 2147483648.0f) || x != truncf(x))
            return false;
    }
    return true;
}

static muc_status enter_constant(onnx_import *im, onnx_integer_values *integers, const char *name,
                                 const Onnx__TensorProto *tensor)
{
    value *v = find(integers, name);
    muc_tensor_view view;

    v->kind = WHOLE;
    if (tensor->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT)
        return MUC_OK;
    MUC_TRY(muc_onnx_tensor(im->ctx, &im->store, tensor, &view));
    if (!all_whole(&view))
        v->kind = REAL;
    return MUC_OK;
}

static const Onnx__AttributeProto *attribute_of(const Onnx__NodeProto *node, const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (strcmp(node->attribute[i]->name, name) == 0)
            return node->attribute[i];
    return NULL;
}

static muc_status enter_constants(onnx_import *im, const Onnx__GraphProto *graph,
                                  onnx_integer_values *integers)
{
    for (size_t i = 0; i < graph->n_initializer; i++)
        MUC_TRY(enter_constant(im, integers, graph->initializer[i]->name, graph->initializer[i]));
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        const Onnx__AttributeProto *attribute = attribute_of(node, "value");

        if (strcmp(node->op_type, "Constant") == 0 && attribute && attribute->t &&
            node->n_output == 1)
            MUC_TRY(enter_constant(im, integers, node->output[0], attribute->t));
    }
    return MUC_OK;
}

static value *enter_given(onnx_integer_values *integers, const char *name, muc_dtype dtype)
{
    value *v = find(integers, name);

    v->given = true;
    v->kind = muc_dtype_get(dtype)->kind == MUC_DTYPE_INTEGER ? INTEGER : REAL;
    v->typed = v->kind == INTEGER;
    v->dtype = dtype;
    return v;
}

/* the smallest that holds the sample of input number i */
static muc_dtype type_of_sample(const onnx_import *im, const Onnx__GraphProto *graph, size_t i)
{
    static const muc_dtype types[] = { MUC_I8, MUC_U8, MUC_I16 };
    const muc_network_options *o = im->options;
    const char *name = graph->input[i]->name;
    const muc_tensor_view *view = NULL;
    int64_t low, high;
    double least, most;

    for (size_t k = 0; k < o->whole_count && !view; k++)
        if (strcmp(o->whole[k].name, name) == 0)
            view = &o->whole[k];
    if (!view)
        view = i < o->whole_count ? &o->whole[i] : NULL;
    if (!view)
        return MUC_I32;
    muc_tensor_range(view, &least, &most);
    for (size_t k = 0; k < MUC_COUNT(types); k++)
        if (muc_dtype_range(types[k], &low, &high) && least >= (double)low && most <= (double)high)
            return types[k];
    return MUC_I32;
}

/* Inputs: what the caller says; else what the file says, unless it says FLOAT, or integers of 64
 * bits, which are indices and shapes. */
static muc_status enter_inputs(onnx_import *im, const Onnx__GraphProto *graph,
                               onnx_integer_values *integers)
{
    for (size_t i = 0; i < graph->n_input; i++) {
        const Onnx__ValueInfoProto *input = graph->input[i];
        const Onnx__TypeProto__Tensor *type =
            input->type && input->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
                ? input->type->tensor_type
                : NULL;
        int64_t low, high;
        muc_dtype dtype;

        if (find(integers, input->name)->kind != UNKNOWN || !type)
            continue;
        MUC_TRY(muc_onnx_dtype(im->ctx, im->source->path, input->name, type->elem_type, &dtype));
        if (muc_dtype_range(dtype, &low, &high) && low >= INT32_MIN && high <= INT32_MAX)
            enter_given(integers, input->name, dtype)->declared = true;
        else if (dtype == MUC_F32 && im->network->reads_integers)
            enter_given(integers, input->name, type_of_sample(im, graph, i));
    }
    for (size_t i = 0; i < im->options->type_count; i++)
        enter_given(integers, im->options->types[i].name, im->options->types[i].dtype);
    return MUC_OK;
}

/* the type of an operator's result where its attributes tell */
static muc_status enter_result(onnx_import *im, const Onnx__NodeProto *node,
                               onnx_integer_values *integers)
{
    onnx_frame frame = { 0 };
    onnx_call call = { .im = im, .frame = &frame, .proto = node, .name = node->op_type };
    value *v;

    if (strcmp(node->op_type, "RequantShift") != 0 || node->n_output != 1)
        return MUC_OK;
    v = find(integers, node->output[0]);
    v->typed = true;
    return onnx_requant_type(&call, &v->dtype);
}

/* ---- the fixed point ---- */

static bool set_kind(value *v, enum kind kind)
{
    if (v->kind != UNKNOWN)
        return false;
    v->kind = kind;
    return true;
}

static size_t data_inputs(const Onnx__NodeProto *node, const row *r)
{
    return r->inputs && r->inputs < node->n_input ? r->inputs : node->n_input;
}

/* if one of the values is known to be integer or real, all are, and of its type */
static bool apply_moves(onnx_integer_values *integers, const Onnx__NodeProto *node, size_t inputs)
{
    size_t count = inputs + node->n_output;
    enum kind kind = UNKNOWN;
    const value *typed = NULL;
    bool changed = false;

    for (size_t i = 0; i < count; i++) {
        const value *v = find(integers, i < inputs ? node->input[i] : node->output[i - inputs]);

        if (v->kind == INTEGER || v->kind == REAL)
            kind = v->kind;
        if (v->typed)
            typed = v;
    }
    for (size_t i = 0; i < count; i++) {
        value *v = find(integers, i < inputs ? node->input[i] : node->output[i - inputs]);

        if (v->kind == WHOLE)
            continue;
        changed |= kind != UNKNOWN && set_kind(v, kind);
        if (typed && !v->typed && !v->given) {
            v->typed = changed = true;
            v->dtype = typed->dtype;
        }
    }
    return changed;
}

static bool apply_computes(onnx_integer_values *integers, const Onnx__NodeProto *node,
                           size_t inputs)
{
    bool changed = false, integer = false, unknown = false, real = false;
    value *out = node->n_output ? find(integers, node->output[0]) : NULL;

    if (!out)
        return false;
    for (size_t i = 0; i < inputs; i++) {
        enum kind kind = find(integers, node->input[i])->kind;

        if (node->input[i][0] == '\0')
            continue;
        integer |= kind == INTEGER;
        unknown |= kind == UNKNOWN;
        real |= kind == REAL;
    }
    if (real)
        return set_kind(out, REAL);
    if (integer && !unknown)
        return set_kind(out, INTEGER);
    for (size_t i = 0; out->kind == INTEGER && i < inputs; i++)
        changed |= set_kind(find(integers, node->input[i]), INTEGER);
    return changed;
}

static bool apply_needs(onnx_integer_values *integers, const Onnx__NodeProto *node)
{
    bool changed = false;

    for (size_t i = 0; i < node->n_input; i++)
        if (node->input[i][0])
            changed |= set_kind(find(integers, node->input[i]), INTEGER);
    for (size_t i = 0; i < node->n_output; i++)
        if (node->output[i][0])
            changed |= set_kind(find(integers, node->output[i]), INTEGER);
    return changed;
}

static bool apply(onnx_integer_values *integers, const Onnx__NodeProto *node)
{
    const row *r = row_of(node->op_type);

    switch (r->rule) {
    case ONNX_MOVES:
        return apply_moves(integers, node, data_inputs(node, r));
    case ONNX_COMPUTES:
        return apply_computes(integers, node, data_inputs(node, r));
    case ONNX_NEEDS:
        return apply_needs(integers, node);
    case ONNX_NOTHING:
        break;
    }
    for (size_t i = 0; i < node->n_output; i++)
        set_kind(find(integers, node->output[i]), REAL);
    return false;
}

static bool is_known_from_operators(const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_node; i++)
        if (row_of(graph->node[i]->op_type)->rule == ONNX_NEEDS)
            return true;
    return false;
}

/* products of matrices may have factors, which are 1 by default */
static bool has_fraction(const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT &&
            node->attribute[i]->f != truncf(node->attribute[i]->f))
            return true;
    return false;
}

/* Integers give integers, whatever they are: every operator has a row, every constant is whole. */
static bool is_closed(const Onnx__GraphProto *graph, const onnx_integer_values *integers)
{
    for (size_t i = 0; i < graph->n_node; i++)
        if (strcmp(graph->node[i]->op_type, "Constant") != 0 &&
            (row_of(graph->node[i]->op_type)->rule == ONNX_NOTHING || has_fraction(graph->node[i])))
            return false;
    for (uint32_t i = 0; i < integers->count; i++)
        if (integers->values[i].kind == REAL)
            return false;
    return true;
}

static bool says_integer(const muc_network_options *options)
{
    for (size_t i = 0; i < options->type_count; i++)
        if (muc_dtype_get(options->types[i].dtype)->kind == MUC_DTYPE_INTEGER)
            return true;
    return false;
}

static muc_status enter(onnx_import *im, onnx_integer_values *integers, const char *name)
{
    onnx_value *place;

    if (onnx_scope_find(&integers->names, name))
        return MUC_OK;
    MUC_TRY(onnx_scope_add(im, &integers->names, name, &place));
    place->tensor = integers->count++;
    return MUC_OK;
}

/* every name of the graph */
static muc_status enter_names(onnx_import *im, const Onnx__GraphProto *graph,
                              onnx_integer_values *integers)
{
    for (size_t i = 0; i < graph->n_initializer; i++)
        MUC_TRY(enter(im, integers, graph->initializer[i]->name));
    for (size_t i = 0; i < graph->n_input; i++)
        MUC_TRY(enter(im, integers, graph->input[i]->name));
    for (size_t i = 0; i < im->options->type_count; i++)
        MUC_TRY(enter(im, integers, im->options->types[i].name));
    for (size_t i = 0; i < graph->n_node; i++) {
        for (size_t k = 0; k < graph->node[i]->n_input; k++)
            MUC_TRY(enter(im, integers, graph->node[i]->input[k]));
        for (size_t k = 0; k < graph->node[i]->n_output; k++)
            MUC_TRY(enter(im, integers, graph->node[i]->output[k]));
    }
    return MUC_ARENA_NEW(im->ctx, &im->arena, integers->count, &integers->values);
}

/* forwards and backwards over the nodes, until nothing changes */
static muc_status iterate(onnx_import *im, const Onnx__GraphProto *graph,
                          onnx_integer_values *integers)
{
    bool changed = true;

    for (unsigned pass = 0; changed && pass < MAX_PASSES; pass++) {
        changed = false;
        for (size_t i = 0; i < graph->n_node; i++)
            changed |= apply(integers, graph->node[pass % 2 ? graph->n_node - 1 - i : i]);
    }
    return changed ? muc_fail(im->ctx, MUC_UNSUPPORTED, im->source->path, MUC_NO_OFFSET,
                              "which values are integers is not known after %d rounds over the "
                              "nodes",
                              MAX_PASSES)
                   : MUC_OK;
}

muc_status onnx_find_integers(onnx_import *im, const Onnx__GraphProto *graph,
                              onnx_integer_values **out)
{
    onnx_integer_values *integers;

    *out = NULL;
    if (!is_known_from_operators(graph) && !says_integer(im->options) && !im->options->whole_count)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(im->ctx, &im->arena, 1, &integers));
    MUC_TRY(enter_names(im, graph, integers));
    MUC_TRY(enter_constants(im, graph, integers));
    if (!is_known_from_operators(graph) && !says_integer(im->options)) {
        if (!is_closed(graph, integers))
            return MUC_OK;
        im->network->reads_integers = true;
    }
    MUC_TRY(enter_inputs(im, graph, integers));
    for (size_t i = 0; i < graph->n_node; i++)
        MUC_TRY(enter_result(im, graph->node[i], integers));
    MUC_TRY(iterate(im, graph, integers));
    *out = integers;
    return MUC_OK;
}

onnx_integer_rule onnx_integer_rule_of(const char *op_type)
{
    return row_of(op_type)->rule;
}
