/* onnx.c - reads an ONNX model as a graph: inputs, initializers, nodes in order, outputs. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/choice.h"
#include "formats/onnx/decode.h"
#include "formats/onnx/onnx_import.h"
#include "formats/onnx/integers.h"

enum { GRAPH_FIELD = 7, MAX_DIM = 1 << 30 };
/* budgets: what any file has, and what a byte of it adds */
enum { FREE_NODES = 65536, FREE_NUMBERS = 1 << 20, FREE_FILLED = 64 << 20, FILLED_PER_BYTE = 64 };

#define FAIL(im, status, ...) \
    muc_fail((im)->ctx, status, (im)->source->path, MUC_NO_OFFSET, __VA_ARGS__)

bool muc_onnx_probe_network(const muc_source *source)
{
    size_t length = strlen(source->path);

    return (length > 5 && strcmp(source->path + length - 5, ".onnx") == 0) ||
           muc_onnx_looks_like(source->bytes, &onnx__model_proto__descriptor, GRAPH_FIELD);
}

/* ---- inputs ---- */

const muc_tensor_view *onnx_known_input(const onnx_import *im, const char *name)
{
    for (size_t i = 0; i < im->input_count; i++)
        if (strcmp(im->input_names[i], name) == 0)
            return im->known[i];
    return NULL;
}

/* Old files list their weights among the inputs. */
static bool is_weight(const onnx_frame *frame, const char *name)
{
    const onnx_value *value = onnx_scope_find(&frame->scope, name);

    return value && value->initializer;
}

static muc_status match_known(onnx_import *im, const onnx_frame *frame,
                              const Onnx__GraphProto *graph)
{
    MUC_TRY(MUC_ARENA_NEW(im->ctx, &im->arena, graph->n_input + 1, &im->input_names));
    MUC_TRY(MUC_ARENA_NEW(im->ctx, &im->arena, graph->n_input + 1, &im->known));
    for (size_t i = 0; i < graph->n_input; i++) {
        const char *name = graph->input[i]->name;

        if (!is_weight(frame, name))
            im->input_names[im->input_count++] = name;
    }
    for (size_t i = 0; i < im->input_count && im->options->known_count; i++)
        im->known[i] = muc_network_match(im->options->known, im->options->known_count,
                                         im->input_names, im->input_count, i);
    return MUC_OK;
}

/* A declared shape, or that of the value which the options give. */
static muc_status read_shape(onnx_import *im, const Onnx__ValueInfoProto *info,
                             const Onnx__TypeProto__Tensor *type, muc_tensor *tensor)
{
    const muc_tensor_view *known = onnx_known_input(im, info->name);

    if (type->shape) {
        if (type->shape->n_dim > MUC_GRAPH_MAX_RANK)
            return FAIL(im, MUC_UNSUPPORTED, "input '%s' has %zu dimensions, at most %d",
                        info->name, type->shape->n_dim, MUC_GRAPH_MAX_RANK);
        tensor->rank = (uint32_t)type->shape->n_dim;
        for (uint32_t i = 0; i < tensor->rank; i++)
            MUC_TRY(onnx_read_dim(im, info->name, type->shape->dim[i], i, &tensor->dims[i]));
        return MUC_OK;
    }
    if (!known)
        return FAIL(im, MUC_UNSUPPORTED, "input '%s' has no shape", info->name);
    tensor->rank = known->rank;
    for (uint32_t i = 0; i < known->rank; i++) {
        if (known->dims[i] > MAX_DIM)
            return FAIL(im, MUC_UNSUPPORTED, "input '%s': dimension %u is %" PRIu64, info->name, i,
                        known->dims[i]);
        tensor->dims[i] = muc_expr_const(im->graph->pool, (uint32_t)known->dims[i]);
    }
    return MUC_OK;
}

static muc_status read_input(onnx_import *im, onnx_frame *frame, const Onnx__ValueInfoProto *info)
{
    muc_tensor tensor = { .kind = MUC_TENSOR_INPUT };
    onnx_value *value;

    if (info->name[0] == '\0')
        return FAIL(im, MUC_MALFORMED, "an input of the graph has no name");
    if (is_weight(frame, info->name))
        return MUC_OK;
    MUC_TRY(onnx_scope_add(im, &frame->scope, info->name, &value));
    if (!info->type || info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return FAIL(im, MUC_UNSUPPORTED, "input '%s' is not a tensor", info->name);
    MUC_TRY(muc_onnx_dtype(im->ctx, im->source->path, info->name,
                           info->type->tensor_type->elem_type, &tensor.dtype));
    if (tensor.dtype == MUC_F32 && onnx_is_integer(im->integers, info->name))
        tensor.dtype = onnx_integer_type(im->integers, info->name);
    MUC_TRY(read_shape(im, info, info->type->tensor_type, &tensor));
    tensor.name = info->name;
    return muc_graph_add_tensor(im->ctx, im->graph, &tensor, &value->tensor);
}

static muc_status read_initializers(onnx_import *im, onnx_frame *frame,
                                    const Onnx__GraphProto *graph)
{
    if (graph->n_sparse_initializer)
        return FAIL(im, MUC_UNSUPPORTED, "the graph '%s' has sparse initializers", graph->name);
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const Onnx__TensorProto *tensor = graph->initializer[i];
        onnx_value *value;

        if (tensor->name[0] == '\0')
            return FAIL(im, MUC_MALFORMED, "initializer %zu has no name", i);
        MUC_TRY(onnx_scope_add(im, &frame->scope, tensor->name, &value));
        value->initializer = tensor;
    }
    return MUC_OK;
}

/* ---- outputs ---- */

/* A result has its own name, whatever the tensor behind it is called, and is there once. */
static muc_status add_output(onnx_import *im, onnx_frame *frame, const Onnx__ValueInfoProto *info)
{
    const char *name = info->name;
    onnx_value *value = onnx_scope_find(&frame->scope, name);
    muc_new_node node = { .op = MUC_OP_IDENTITY, .name = name, .input_count = 1 };
    uint32_t tensor;

    if (!value)
        return FAIL(im, MUC_MALFORMED, "output '%s' is computed nowhere", name);
    MUC_TRY(onnx_materialise(im, value, &tensor));
    if (muc_graph_find(im->graph, name) != tensor) {
        node.inputs = &tensor;
        MUC_TRY(muc_graph_add(im->ctx, im->graph, &node, &tensor));
    }
    return muc_graph_add_output(im->ctx, im->graph, tensor);
}

/* ---- the model ---- */

/* a range for a dimension that is not there is a mistake */
static muc_status check_dims_used(const onnx_import *im)
{
    const muc_expr_pool *pool = im->graph->pool;
    muc_choice choice;
    size_t i = 0;

    while (i < im->options->dim_count && im->dims_used[i])
        i++;
    if (i == im->options->dim_count)
        return MUC_OK;
    muc_choice_begin(&choice, im->options->dims[i].name, strlen(im->options->dims[i].name));
    for (uint32_t d = 0; d < muc_expr_input_count(pool); d++)
        muc_choice_add(&choice, muc_expr_get_input(pool, d)->name);
    return muc_choice_refuse(im->ctx, &choice, MUC_USAGE, im->source->path, "open dimension");
}

/* so is a type for an input that is not there */
static muc_status check_types_used(const onnx_import *im)
{
    for (size_t i = 0; i < im->options->type_count; i++) {
        const char *name = im->options->types[i].name;
        muc_choice choice;
        size_t k = 0;

        while (k < im->input_count && strcmp(im->input_names[k], name) != 0)
            k++;
        if (k < im->input_count)
            continue;
        muc_choice_begin(&choice, name, strlen(name));
        for (k = 0; k < im->input_count; k++)
            muc_choice_add(&choice, im->input_names[k]);
        return muc_choice_refuse(im->ctx, &choice, MUC_USAGE, im->source->path, "input");
    }
    return MUC_OK;
}

/* open dimensions by their own names, before sums of them are read */
static muc_status declare_dims(onnx_import *im, const onnx_frame *frame,
                               const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_input; i++) {
        const Onnx__ValueInfoProto *info = graph->input[i];

        if (info->type && !is_weight(frame, info->name) &&
            info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
            MUC_TRY(onnx_declare_dims(im, info->name, info->type->tensor_type->shape));
    }
    return MUC_OK;
}

/* ---- a network that lacks operators ---- */

static muc_status list_port(onnx_import *im, const Onnx__ValueInfoProto *info, bool is_output)
{
    const Onnx__TypeProto__Tensor *type =
        info->type && info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
            ? info->type->tensor_type
            : NULL;
    muc_text text = { 0 };

    if (type)
        muc_text_add(&text, "%s%s", muc_onnx_type_name(type->elem_type), type->shape ? " [" : "");
    for (size_t i = 0; type && type->shape && i < type->shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *dim = type->shape->dim[i];

        muc_text_add(&text, "%s", i ? ", " : "");
        if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            muc_text_add(&text, "%" PRId64, dim->dim_value);
        else if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM)
            muc_text_add(&text, "%s", dim->dim_param);
        else
            muc_text_add(&text, "?");
    }
    muc_text_add(&text, "%s", type && type->shape ? "]" : "");
    return muc_listing_add_port(im->ctx, &im->network->arena, &im->network->listing, info->name,
                                &text, is_output);
}

static muc_status list_ports(onnx_import *im, const onnx_frame *frame,
                             const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_input; i++)
        if (!is_weight(frame, graph->input[i]->name))
            MUC_TRY(list_port(im, graph->input[i], false));
    for (size_t i = 0; i < graph->n_output; i++)
        MUC_TRY(list_port(im, graph->output[i], true));
    return MUC_OK;
}

static muc_status import_graph(onnx_import *im, const Onnx__GraphProto *graph)
{
    /* the first versions of the format knew one operator set only */
    Onnx__OperatorSetIdProto first = ONNX__OPERATOR_SET_ID_PROTO__INIT, *only = &first;
    onnx_frame frame = { .opsets = im->model->opset_import,
                         .opset_count = im->model->n_opset_import };
    muc_status status;

    first.domain = (char[]){ "" };
    first.version = 1;
    if (frame.opset_count == 0) {
        frame.opsets = &only;
        frame.opset_count = 1;
    }
    MUC_TRY(MUC_ARENA_NEW(im->ctx, &im->arena, im->options->dim_count + 1, &im->dims_used));
    MUC_TRY(read_initializers(im, &frame, graph));
    MUC_TRY(onnx_list_nodes(im, &frame, graph));
    if (im->network->listing.lacks)
        return im->options->may_list
                   ? list_ports(im, &frame, graph)
                   : muc_listing_refuse(im->ctx, im->source->path, &im->network->listing);
    MUC_TRY(match_known(im, &frame, graph));
    MUC_TRY(onnx_find_integers(im, graph, &im->integers));
    MUC_TRY(declare_dims(im, &frame, graph));
    for (size_t i = 0; i < graph->n_input; i++)
        MUC_TRY(read_input(im, &frame, graph->input[i]));
    MUC_TRY(check_dims_used(im));
    MUC_TRY(check_types_used(im));
    status = onnx_import_nodes(im, &frame, graph->node, graph->n_node);
    if (status == MUC_UNSUPPORTED && im->options->may_list &&
        muc_listing_is_short(&im->network->listing)) { /* a branch that is taken */
        muc_error_clear(im->ctx);
        im->network->listing.lacks = true;
        return list_ports(im, &frame, graph);
    }
    MUC_TRY(status);
    if (graph->n_output == 0)
        return FAIL(im, MUC_MALFORMED, "the graph has no output");
    for (size_t i = 0; i < graph->n_output; i++)
        MUC_TRY(add_output(im, &frame, graph->output[i]));
    return muc_expr_status(im->graph->pool);
}

static muc_status read_model(onnx_import *im)
{
    ProtobufCMessage *message;

    MUC_TRY(muc_onnx_decode(im->ctx, &im->network->arena, im->source->bytes,
                            &onnx__model_proto__descriptor, &message));
    im->model = (const Onnx__ModelProto *)message;
    if (!im->model->graph)
        return FAIL(im, MUC_MALFORMED, "the file holds no graph");
    onnx_fill_names((Onnx__ModelProto *)message);
    MUC_TRY(muc_graph_new(im->ctx, im->source->path, &im->network->graph));
    im->graph = im->network->graph;
    return import_graph(im, im->model->graph);
}

muc_status muc_onnx_read_network(muc_context *ctx, const muc_source *source,
                                 const muc_network_options *options, muc_network *network)
{
    onnx_import im = { .ctx = ctx, .source = source, .options = options, .network = network };
    muc_status status;

    im.nodes_left = FREE_NODES + source->bytes.size / 8;
    im.numbers_left = FREE_NUMBERS + source->bytes.size;
    im.filled_left = FREE_FILLED + (uint64_t)FILLED_PER_BYTE * source->bytes.size;
    im.store = (muc_onnx_store){ source->path, source->folder, &network->arena, &network->files };
    status = read_model(&im);
    if (status != MUC_OK && im.graph)
        muc_network_hint(ctx, im.graph);
    muc_arena_free(&im.arena);
    return status;
}
