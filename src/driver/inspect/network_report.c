/* network_report.c - reports what a network is, what it computed, and which operators there are. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/locale.h"
#include "run/arrays.h"
#include "run/image_input.h"
#include "run/network_run.h"
#include "run/text_input.h"
#include "driver/inspect/network_report.h"
#include "muc/run.h"

/* ---- muc inspect ---- */

static void add_tensor(muc_report *report, const muc_graph *graph, uint32_t id)
{
    const muc_tensor *tensor = &graph->tensors[id];
    muc_text shape = { 0 };

    muc_tensor_print_shape(graph, tensor, &shape);
    muc_report_begin_row(report);
    muc_report_add_text(report, "name", "%s", tensor->name);
    muc_report_add_text(report, "shape", "%s", shape.data ? shape.data : "");
    muc_report_end(report);
    muc_text_free(&shape);
}

/* every open dimension at its least */
static void least_bindings(const muc_graph *graph, uint32_t *bindings)
{
    for (uint32_t i = 0; i < muc_expr_input_count(graph->pool); i++)
        bindings[i] = muc_expr_get_input(graph->pool, i)->lo;
}

/* Elements of a dimension of a node's input, 1 where it has none. */
static uint64_t extent(muc_context *ctx, const muc_graph *graph, uint32_t tensor, uint32_t dim,
                       const uint32_t *bindings)
{
    const muc_tensor *t = &graph->tensors[tensor];
    uint32_t value = 1;

    if (dim < t->rank && muc_expr_eval(ctx, graph->pool, t->dims[dim], bindings, &value) != MUC_OK)
        return 0;
    return value;
}

/* Products that one output element sums, in the rows of operators that sum products. */
static uint64_t products(muc_context *ctx, const muc_graph *graph, const muc_node *node,
                         const uint32_t *bindings)
{
    uint64_t elements, bytes, filters;
    const muc_product *product = muc_op_product(node->op);
    uint32_t id = node->inputs[product->weights], rank = graph->tensors[node->inputs[0]].rank;
    bool transposed = muc_node_integer_or(node, MUC_KEY_TRANSPOSE_A, 0);

    if (product->kind == MUC_PRODUCT_COLUMNS || product->kind == MUC_PRODUCT_ROWS)
        return extent(ctx, graph, node->inputs[0], rank - (transposed ? 2 : 1), bindings);
    if (product->kind != MUC_PRODUCT_FILTER)
        return 0;
    filters = extent(ctx, graph, id, 0, bindings);
    if (muc_tensor_measure_bound(ctx, graph, &graph->tensors[id], bindings, &elements, &bytes) !=
        MUC_OK)
        return 0;
    return filters ? elements / filters : 0;
}

/* multiplications of one node */
static muc_status node_macs(muc_context *ctx, const muc_graph *graph, const muc_node *node,
                            const uint32_t *bindings, uint64_t *macs)
{
    uint64_t elements, bytes, each;

    *macs = 0;
    each = node->input_count ? products(ctx, graph, node, bindings) : 0;
    if (each == 0)
        return MUC_OK;
    MUC_TRY(muc_tensor_measure_bound(ctx, graph, &graph->tensors[node->outputs[0]], bindings,
                                     &elements, &bytes));
    return muc_mul_u64(elements, each, macs)
               ? MUC_OK
               : muc_fail(ctx, MUC_UNSUPPORTED, graph->name, MUC_NO_OFFSET,
                          "more multiplications than 64 bits count");
}

static muc_status count_macs(muc_context *ctx, const muc_graph *graph, uint64_t *macs)
{
    uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };

    least_bindings(graph, bindings);
    *macs = 0;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        uint64_t own;

        MUC_TRY(node_macs(ctx, graph, &graph->nodes[i], bindings, &own));
        if (!muc_add_u64(*macs, own, macs))
            return muc_fail(ctx, MUC_UNSUPPORTED, graph->name, MUC_NO_OFFSET,
                            "more multiplications than 64 bits count");
    }
    return MUC_OK;
}

/* the nodes that multiply */
static muc_status add_layers(muc_context *ctx, muc_report *report, const muc_graph *graph)
{
    uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };

    least_bindings(graph, bindings);
    muc_report_begin_table(report, "layers");
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const muc_node *node = &graph->nodes[i];
        muc_text shape = { 0 };
        uint64_t macs;

        MUC_TRY(node_macs(ctx, graph, node, bindings, &macs));
        if (macs == 0)
            continue;
        muc_tensor_print_shape(graph, &graph->tensors[node->outputs[0]], &shape);
        muc_report_begin_row(report);
        muc_report_add_text(report, "name", "%s", node->name);
        muc_report_add_text(report, "operator", "%s", muc_op_get(node->op)->name);
        muc_report_add_text(report, "shape", "%s", shape.data ? shape.data : "");
        muc_report_add_count(report, "macs", macs);
        muc_report_end(report);
        muc_text_free(&shape);
    }
    muc_report_end(report);
    return MUC_OK;
}

static void add_dimensions(muc_report *report, const muc_graph *graph)
{
    muc_report_begin_table(report, "dimensions");
    for (uint32_t i = 0; i < muc_expr_input_count(graph->pool); i++) {
        const muc_expr_input *input = muc_expr_get_input(graph->pool, i);

        muc_report_begin_row(report);
        muc_report_add_text(report, "name", "%s", input->name);
        muc_report_add_count(report, "least", input->lo);
        muc_report_add_count(report, "most", input->hi);
        muc_report_end(report);
    }
    muc_report_end(report);
}

static void add_operators(muc_report *report, const muc_graph *graph)
{
    uint32_t counts[MUC_OP_COUNT] = { 0 };

    for (uint32_t i = 0; i < graph->node_count; i++)
        counts[graph->nodes[i].op]++;
    muc_report_begin_table(report, "operators");
    for (unsigned op = 0; op < MUC_OP_COUNT; op++) {
        if (counts[op] == 0)
            continue;
        muc_report_begin_row(report);
        muc_report_add_text(report, "operator", "%s", muc_op_get((muc_op)op)->name);
        muc_report_add_count(report, "nodes", counts[op]);
        muc_report_end(report);
    }
    muc_report_end(report);
}

static void add_ports(muc_report *report, const muc_listing *listing, bool are_outputs)
{
    muc_report_begin_table(report, are_outputs ? "outputs" : "inputs");
    for (size_t i = 0; i < listing->port_count; i++) {
        if (listing->ports[i].is_output != are_outputs)
            continue;
        muc_report_begin_row(report);
        muc_report_add_text(report, "name", "%s", listing->ports[i].name);
        muc_report_add_text(report, "shape", "%s", listing->ports[i].shape);
        muc_report_end(report);
    }
    muc_report_end(report);
}

static void add_listing(muc_report *report, const muc_listing *listing)
{
    muc_report_add_count(report, "nodes", listing->nodes);
    add_ports(report, listing, false);
    add_ports(report, listing, true);
    muc_report_begin_table(report, "operators");
    for (size_t i = 0; i < listing->operator_count; i++) {
        const muc_listed_operator *row = &listing->operators[i];

        muc_report_begin_row(report);
        muc_report_add_text(report, "operator", "%s", row->type);
        muc_report_add_count(report, "nodes", row->nodes);
        muc_report_add_bool(report, "supported", row->supported);
        muc_report_add_text(report, "first", "%s", row->first);
        muc_report_end(report);
    }
    muc_report_end(report);
}

muc_status muc_network_inspect(muc_context *ctx, const muc_network *network, muc_report *report)
{
    const muc_graph *graph = network->graph;
    uint64_t parameters = 0, bytes = 0, macs;

    if (network->listing.lacks) {
        muc_report_add_text(report, "format", "%s", network->format);
        add_listing(report, &network->listing);
        return MUC_OK;
    }
    MUC_TRY(count_macs(ctx, graph, &macs));
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        const muc_tensor *tensor = &graph->tensors[i];

        bytes += tensor->bytes;
        if (tensor->kind == MUC_TENSOR_CONST)
            parameters += tensor->bytes / muc_dtype_get(tensor->dtype)->block_bytes *
                          muc_dtype_get(tensor->dtype)->block_elements;
    }
    muc_report_add_text(report, "format", "%s", network->format);
    if (network->reads_integers)
        muc_report_add_text(report, "values",
                            "integers, as inputs.npz and outputs.npz beside the file are; --type "
                            "NAME=f32 has them read as floats");
    muc_report_add_count(report, "nodes", graph->node_count);
    muc_report_add_count(report, "parameters", parameters);
    muc_report_add_count(report, "weight_bytes", bytes);
    muc_report_add_count(report, "macs", macs);
    if (muc_expr_input_count(graph->pool))
        add_dimensions(report, graph);
    muc_report_begin_table(report, "inputs");
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].kind == MUC_TENSOR_INPUT)
            add_tensor(report, graph, i);
    muc_report_end(report);
    muc_report_begin_table(report, "outputs");
    for (uint32_t i = 0; i < graph->output_count; i++)
        add_tensor(report, graph, graph->outputs[i]);
    muc_report_end(report);
    add_operators(report, graph);
    return add_layers(ctx, report, graph);
}

/* ---- muc run ---- */

static muc_status add_classes(muc_context *ctx, const muc_model *model, const muc_array_run *how,
                              const muc_tensor_view *results, muc_report *report)
{
    const muc_graph *graph = model->network.graph;
    muc_port output;

    if (model->image)
        muc_report_add_text(report, "image", "%s", model->image);
    if (graph->output_count == 0 || !(model->image || how->labels))
        return MUC_OK;
    output = muc_network_number_port(&graph->tensors[graph->outputs[0]]);
    return muc_image_add_classes(ctx, how->labels, &results[0], &output, report);
}

static muc_status run(muc_context *ctx, const muc_model *model, muc_arena *arena,
                      const muc_array_run *how, muc_report *report)
{
    const muc_unified *unified = model->unified.export_count ? &model->unified : NULL;
    muc_graph *graph = model->network.graph;
    muc_tensor_view *results;

    MUC_TRY(muc_network_run_row(ctx, graph, unified, model->arrays, model->array_count, arena,
                                &results));
    if (how->output)
        MUC_TRY(muc_arrays_write(ctx, how->output, results, graph->output_count));
    muc_report_begin_table(report, "outputs");
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const muc_port port = muc_network_number_port(&graph->tensors[graph->outputs[i]]);

        muc_report_add_array(report, &results[i], &port);
    }
    muc_report_end(report);
    MUC_TRY(add_classes(ctx, model, how, results, report));
    if (model->text_tokens && graph->output_count > 0)
        muc_text_add_next(&model->tokenizer, model->text_tokens, &results[0], report);
    return muc_report_status(ctx, report);
}

muc_status muc_run_network(muc_context *ctx, const muc_model *model, const muc_array_run *how,
                           muc_report **out)
{
    MUC_IN_C_LOCALE;
    muc_arena arena = { 0 };
    muc_status status;

    if (model->kind != MUC_MODEL_NETWORK)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "the file is not a network: it runs on text, not on arrays");
    MUC_TRY(muc_report_new(ctx, out));
    status = run(ctx, model, &arena, how, *out);
    muc_arena_free(&arena);
    return status;
}
