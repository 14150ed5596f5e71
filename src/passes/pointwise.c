/* pointwise.c - finds chains of element-wise nodes with one input, and computes their tables. */
#include "passes/pointwise.h"

#include <stdlib.h>
#include <string.h>

#include "graph/graph_check.h"
#include "ref/ref.h"

static bool is_one_constant(const muc_rewrite *r, uint32_t id)
{
    const muc_tensor *t = muc_rewrite_old(r, id);

    return muc_rewrite_is_constant(r, id) && !t->quantization && !t->sequence &&
           muc_dtype_get(t->dtype)->block_elements == 1 &&
           t->bytes == muc_dtype_get(t->dtype)->block_bytes;
}

uint32_t muc_pointwise_function(const muc_rewrite *r, const muc_node *node,
                                const uint32_t *functions)
{
    const muc_tensor *y = muc_rewrite_old(r, node->outputs[0]), *x;
    uint32_t of = MUC_NO_ID;

    if (!muc_op_has(node->op, MUC_OP_POINTWISE) || node->output_count != 1 ||
        (y->dtype != MUC_F32 && y->dtype != MUC_BOOL))
        return node->outputs[0];
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t id = node->inputs[i];

        if (id == MUC_NO_ID || is_one_constant(r, id))
            continue;
        if (muc_rewrite_old(r, id)->kind == MUC_TENSOR_CONST ||
            (of != MUC_NO_ID && functions[id] != of))
            return node->outputs[0];
        of = functions[id];
    }
    if (of == MUC_NO_ID)
        return node->outputs[0];
    x = muc_rewrite_old(r, of);
    return x->dtype == MUC_F32 && muc_tensor_same_dims(x, y) ? of : node->outputs[0];
}

/* ---- a graph of their own ---- */

typedef struct evaluation {
    const muc_rewrite *r;
    uint32_t of, tensor; /* what is a function of what; old ones */
    muc_graph *graph;
    uint32_t *map; /* old tensor to that of the graph */
    bool *wanted;  /* old nodes */
} evaluation;

/* a constant of the same rank, with the numbers along its last dimension */
static muc_status add_numbers(evaluation *e, const void *numbers, uint32_t count)
{
    const muc_tensor *of = muc_rewrite_old(e->r, e->of);
    muc_tensor x = { .name = of->name, .kind = MUC_TENSOR_CONST, .dtype = of->dtype };

    x.rank = of->rank ? of->rank : 1;
    for (uint32_t i = 0; i < x.rank; i++)
        x.dims[i] = muc_expr_const(e->graph->pool, i + 1 == x.rank ? count : 1);
    x.data = numbers;
    x.bytes = count * muc_dtype_get(of->dtype)->block_bytes;
    return muc_graph_add_tensor(e->r->ctx, e->graph, &x, &e->map[e->of]);
}

static muc_status add_step(evaluation *e, const muc_node *node)
{
    uint32_t inputs[MUC_GRAPH_MAX_INPUTS];
    const muc_new_node step = { .op = node->op,
                                .name = muc_rewrite_old(e->r, node->outputs[0])->name,
                                .input_count = node->input_count,
                                .inputs = inputs,
                                .attribute_count = node->attribute_count,
                                .attributes = node->attributes,
                                .output_count = 1 };

    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t id = node->inputs[i];

        inputs[i] = MUC_NO_ID;
        if (id == MUC_NO_ID)
            continue;
        if (e->map[id] == MUC_NO_ID) {
            muc_tensor constant = *muc_rewrite_old(e->r, id);

            for (uint32_t d = 0; d < constant.rank; d++) {
                uint32_t dim = 1;

                (void)muc_rewrite_dim(&e->r->old, &constant, d, &dim);
                constant.dims[d] = muc_expr_const(e->graph->pool, dim);
            }
            MUC_TRY(muc_graph_add_tensor(e->r->ctx, e->graph, &constant, &e->map[id]));
        }
        inputs[i] = e->map[id];
    }
    return muc_graph_add(e->r->ctx, e->graph, &step, &e->map[node->outputs[0]]);
}

/* marks the steps to a tensor; producers stand before readers */
static void mark(evaluation *e)
{
    const muc_graph *old = &e->r->old;

    e->wanted[old->tensors[e->tensor].producer] = true;
    for (uint32_t n = old->tensors[e->tensor].producer + 1; n-- > 0;) {
        const muc_node *node = &old->nodes[n];

        for (uint32_t i = 0; e->wanted[n] && i < node->input_count; i++)
            if (node->inputs[i] != MUC_NO_ID && node->inputs[i] != e->of &&
                old->tensors[node->inputs[i]].kind == MUC_TENSOR_ACTIVATION)
                e->wanted[old->tensors[node->inputs[i]].producer] = true;
    }
}

static muc_status build(evaluation *e, const void *numbers, uint32_t count)
{
    const muc_graph *old = &e->r->old;

    for (uint32_t i = 0; i < old->tensor_count; i++)
        e->map[i] = MUC_NO_ID;
    mark(e);
    MUC_TRY(add_numbers(e, numbers, count));
    for (uint32_t n = 0; n <= old->tensors[e->tensor].producer; n++)
        if (e->wanted[n])
            MUC_TRY(add_step(e, &old->nodes[n]));
    return muc_graph_add_output(e->r->ctx, e->graph, e->map[e->tensor]);
}

static muc_status run(const evaluation *e, uint32_t count, void *out)
{
    const muc_tensor *y = muc_rewrite_old(e->r, e->tensor);
    const uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    muc_ref_view view;
    muc_ref *ref;
    muc_status status;

    MUC_TRY(muc_ref_open(e->r->ctx, e->graph, &ref));
    status = muc_ref_run(ref, bindings, NULL, 0);
    if (status == MUC_OK && (!muc_ref_get(ref, e->map[e->tensor], &view) || view.elements != count))
        status = muc_fail(e->r->ctx, MUC_BUG, e->r->old.name, MUC_NO_OFFSET,
                          "'%s' is not a function of one number", y->name);
    if (status == MUC_OK)
        memcpy(out, view.data, (size_t)count * muc_dtype_get(y->dtype)->block_bytes);
    muc_ref_close(ref);
    return status;
}

muc_status muc_pointwise_evaluate(const muc_rewrite *r, uint32_t of, uint32_t tensor,
                                  const void *numbers, uint32_t count, void *out)
{
    evaluation e = { .r = r, .of = of, .tensor = tensor };
    muc_status status = muc_graph_new(r->ctx, r->old.name, &e.graph);

    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(r->ctx, r->old.name, r->old.tensor_count, &e.map);
    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(r->ctx, r->old.name, r->old.node_count, &e.wanted);
    if (status == MUC_OK)
        status = build(&e, numbers, count);
    if (status == MUC_OK)
        status = run(&e, count, out);
    free(e.map);
    free(e.wanted);
    muc_graph_free(e.graph);
    return status;
}
