/* value_names.c - looks up the values of a graph by name, and finds the order in which they can be
 * computed. */
#include <string.h>

#include "formats/onnx/onnx_import.h"

/* where a value of this name is, or belongs */
static onnx_value **find_slot(const onnx_scope *scope, const char *name)
{
    size_t mask = scope->capacity - 1, i = muc_hash_text(name) & mask;

    while (scope->slots[i] && strcmp(scope->slots[i]->name, name) != 0)
        i = (i + 1) & mask;
    return &scope->slots[i];
}

onnx_value *onnx_scope_find(const onnx_scope *scope, const char *name)
{
    for (; scope; scope = scope->parent) {
        onnx_value *value = scope->capacity ? *find_slot(scope, name) : NULL;

        if (value)
            return value;
    }
    return NULL;
}

static muc_status grow(onnx_import *im, onnx_scope *scope)
{
    onnx_scope old = *scope;

    if ((scope->count + 1) * 2 < scope->capacity)
        return MUC_OK;
    scope->capacity = scope->capacity ? scope->capacity * 2 : 64;
    MUC_TRY(MUC_ARENA_NEW(im->ctx, &im->arena, scope->capacity, &scope->slots));
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i])
            *find_slot(scope, old.slots[i]->name) = old.slots[i];
    return MUC_OK;
}

muc_status onnx_scope_add(onnx_import *im, onnx_scope *scope, const char *name, onnx_value **out)
{
    onnx_value **slot;

    MUC_TRY(grow(im, scope));
    slot = find_slot(scope, name);
    if (*slot)
        return muc_fail(im->ctx, MUC_MALFORMED, im->source->path, MUC_NO_OFFSET,
                        "two values are named '%s'", name);
    MUC_TRY(MUC_ARENA_NEW(im->ctx, &im->arena, 1, slot));
    (*slot)->name = name;
    (*slot)->tensor = MUC_NO_ID;
    scope->count++;
    *out = *slot;
    return MUC_OK;
}

/* ---- names that are not there ---- */

static char empty[] = "";

static void fill(char **name)
{
    if (!*name)
        *name = empty;
}

/* "ai.onnx" is the long name of the default domain */
static void fill_domain(char **domain)
{
    if (!*domain || strcmp(*domain, "ai.onnx") == 0)
        *domain = empty;
}

static void fill_graph(Onnx__GraphProto *graph);

static void fill_nodes(Onnx__NodeProto **nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        Onnx__NodeProto *node = nodes[i];

        fill(&node->name);
        fill(&node->op_type);
        fill_domain(&node->domain);
        for (size_t j = 0; j < node->n_attribute; j++) {
            fill(&node->attribute[j]->name);
            if (node->attribute[j]->g)
                fill_graph(node->attribute[j]->g);
            if (node->attribute[j]->t)
                fill(&node->attribute[j]->t->name);
        }
    }
}

/* graphs are nested no deeper than decode.c allows */
static void fill_graph(Onnx__GraphProto *graph)
{
    fill(&graph->name);
    fill_nodes(graph->node, graph->n_node);
    for (size_t i = 0; i < graph->n_initializer; i++)
        fill(&graph->initializer[i]->name);
    for (size_t i = 0; i < graph->n_input; i++)
        fill(&graph->input[i]->name);
    for (size_t i = 0; i < graph->n_output; i++)
        fill(&graph->output[i]->name);
    for (size_t i = 0; i < graph->n_value_info; i++)
        fill(&graph->value_info[i]->name);
}

static void fill_opsets(Onnx__OperatorSetIdProto **opsets, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fill_domain(&opsets[i]->domain);
}

void onnx_fill_names(Onnx__ModelProto *model)
{
    fill_opsets(model->opset_import, model->n_opset_import);
    fill_graph(model->graph);
    for (size_t i = 0; i < model->n_functions; i++) {
        fill(&model->functions[i]->name);
        fill_domain(&model->functions[i]->domain);
        fill_opsets(model->functions[i]->opset_import, model->functions[i]->n_opset_import);
        fill_nodes(model->functions[i]->node, model->functions[i]->n_node);
    }
}

/* ---- order ---- */

typedef enum mark { NEW, OPEN, DONE } mark;

typedef struct sorter {
    onnx_import *im;
    Onnx__NodeProto *const *nodes;
    onnx_scope producers; /* name -> node + 1, in tensor */
    mark *marks;
    size_t *stack, *order, depth, done;
} sorter;

static muc_status add_producers(sorter *s, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < s->nodes[i]->n_output; j++) {
            onnx_value *value;

            if (s->nodes[i]->output[j][0] == '\0')
                continue;
            MUC_TRY(onnx_scope_add(s->im, &s->producers, s->nodes[i]->output[j], &value));
            value->tensor = (uint32_t)i;
        }
    return MUC_OK;
}

/* Pushes the node that computes name, unless it is done. */
static muc_status require(sorter *s, const char *name)
{
    const onnx_value *value = onnx_scope_find(&s->producers, name);

    if (!value || s->marks[value->tensor] == DONE)
        return MUC_OK;
    if (s->marks[value->tensor] == OPEN)
        return muc_fail(s->im->ctx, MUC_MALFORMED, s->im->source->path, MUC_NO_OFFSET,
                        "'%s' is computed from itself", name);
    s->stack[s->depth++] = value->tensor;
    return MUC_OK;
}

static muc_status require_inputs(sorter *s, const Onnx__NodeProto *node);

/* a branch reads names of the graph around it; its own names are not producers here */
static muc_status require_captures(sorter *s, const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_node; i++)
        MUC_TRY(require_inputs(s, graph->node[i]));
    for (size_t i = 0; i < graph->n_output; i++)
        MUC_TRY(require(s, graph->output[i]->name));
    return MUC_OK;
}

/* graphs in attributes are no deeper than decode.c allows */
static muc_status require_inputs(sorter *s, const Onnx__NodeProto *node)
{
    /* pushed last, done first: so that the file's order stays where it can */
    for (size_t i = node->n_input; i-- > 0;)
        MUC_TRY(require(s, node->input[i]));
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->g)
            MUC_TRY(require_captures(s, node->attribute[i]->g));
    return MUC_OK;
}

/* The stack holds each node at most once for each of its uses. */
static muc_status visit(sorter *s, size_t node)
{
    s->stack[s->depth++] = node;
    while (s->depth > 0) {
        size_t top = s->stack[s->depth - 1], before = s->depth;

        if (s->marks[top] == NEW) {
            s->marks[top] = OPEN;
            MUC_TRY(require_inputs(s, s->nodes[top]));
        }
        if (s->depth > before)
            continue;
        s->depth--;
        if (s->marks[top] == OPEN) {
            s->marks[top] = DONE;
            s->order[s->done++] = top;
        }
    }
    return MUC_OK;
}

static size_t count_uses(const Onnx__NodeProto *node)
{
    size_t uses = node->n_input;

    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__GraphProto *graph = node->attribute[i]->g;

        if (!graph)
            continue;
        uses += graph->n_output;
        for (size_t j = 0; j < graph->n_node; j++)
            uses += count_uses(graph->node[j]);
    }
    return uses;
}

muc_status onnx_order(onnx_import *im, Onnx__NodeProto *const *nodes, size_t count, size_t **out)
{
    sorter s = { .im = im, .nodes = nodes };
    size_t uses = 1;

    for (size_t i = 0; i < count; i++)
        uses += count_uses(nodes[i]);
    MUC_TRY(MUC_ARENA_NEW(im->ctx, &im->arena, count, &s.marks));
    MUC_TRY(MUC_ARENA_NEW(im->ctx, &im->arena, count, &s.order));
    MUC_TRY(MUC_ARENA_NEW(im->ctx, &im->arena, uses, &s.stack));
    MUC_TRY(add_producers(&s, count));
    for (size_t i = 0; i < count; i++)
        if (s.marks[i] == NEW)
            MUC_TRY(visit(&s, i));
    *out = s.order;
    return MUC_OK;
}
