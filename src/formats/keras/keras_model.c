/* keras_model.c - what Keras 1, 2 and 3 write as a model's configuration; docs in keras_model.h.
 *
 * A node of inbound_nodes says which tensors a layer is called with:
 *   Keras 1   [[name, node, tensor], ...]
 *   Keras 2   the same with arguments after each, or one such list alone; a value of the arguments
 *             may be a tensor [name, node, tensor] too
 *   Keras 3   {args, kwargs}, with tensors as objects anywhere in it
 */
#include "formats/keras/keras_model.h"

#include <string.h>

enum { MAX_LAYERS = 4096, MAX_CALLS = 16384, MAX_INPUTS = 1024 };

typedef struct reader {
    muc_context *ctx;
    muc_arena *arena;
    muc_keras_model *model;
    size_t input_capacity; /* of the call whose inputs are gathered */
} reader;

static muc_status fail(const reader *r, muc_status status, const char *layer, const char *message)
{
    return muc_fail(r->ctx, status, r->model->file, MUC_NO_OFFSET, "layer '%.200s': %s", layer,
                    message);
}

static muc_status fail_model(const reader *r, muc_status status, const char *message)
{
    return muc_fail(r->ctx, status, r->model->file, MUC_NO_OFFSET, "configuration: %s", message);
}

static const char *string_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* ---- layers ---- */

static muc_status read_layer(reader *r, const json_t *item, uint32_t index)
{
    muc_keras_layer *layer = &r->model->layers[index];

    layer->document = item;
    layer->class_name = string_of(item, "class_name");
    layer->config = json_object_get(item, "config");
    layer->inbound = json_object_get(item, "inbound_nodes");
    layer->name = string_of(item, "name");
    if (!layer->name)
        layer->name = string_of(layer->config, "name");
    if (!layer->class_name || !layer->name || !json_is_object(layer->config))
        return muc_fail(r->ctx, MUC_MALFORMED, r->model->file, MUC_NO_OFFSET,
                        "configuration: layer %u has no name, class_name or config", index);
    for (uint32_t i = 0; i < index; i++) {
        if (strcmp(r->model->layers[i].name, layer->name) == 0)
            return fail(r, MUC_MALFORMED, layer->name, "two layers of this name");
        layer->ordinal += strcmp(r->model->layers[i].class_name, layer->class_name) == 0;
    }
    return MUC_OK;
}

static muc_status read_layers(reader *r, const json_t *layers)
{
    size_t count = json_array_size(layers);

    if (count == 0 || count > MAX_LAYERS)
        return fail_model(r, MUC_UNSUPPORTED, "expected 1 to 4096 layers");
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, count, &r->model->layers));
    r->model->layer_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        MUC_TRY(read_layer(r, json_array_get(layers, i), (uint32_t)i));
    return MUC_OK;
}

/* ---- what a layer is called with ---- */

/* [name, node, tensor, ..] */
static bool is_reference(const json_t *value)
{
    return json_is_string(json_array_get(value, 0)) && json_is_integer(json_array_get(value, 1)) &&
           json_is_integer(json_array_get(value, 2));
}

static muc_status resolve(const reader *r, const char *user, const json_t *reference,
                          muc_keras_source *out)
{
    const char *name = json_string_value(json_array_get(reference, 0));
    json_int_t node = json_integer_value(json_array_get(reference, 1));
    json_int_t output = json_integer_value(json_array_get(reference, 2));

    if (!is_reference(reference))
        return fail(r, MUC_MALFORMED, user, "an input is not [layer, node, tensor]");
    if (strcmp(name, "_CONSTANT_VALUE") == 0)
        return fail(r, MUC_UNSUPPORTED, user, "an input is a constant of the configuration");
    if (output < 0 || output > MAX_INPUTS)
        return fail(r, MUC_MALFORMED, user, "an input is an output that its layer does not have");
    for (uint32_t i = 0; i < r->model->layer_count; i++) {
        const muc_keras_layer *layer = &r->model->layers[i];

        if (strcmp(layer->name, name) != 0)
            continue;
        if (node < 0 || node >= layer->call_count)
            return fail(r, MUC_MALFORMED, user, "an input is a call that its layer does not have");
        *out = (muc_keras_source){ layer->first_call + (uint32_t)node, (uint32_t)output };
        return MUC_OK;
    }
    return muc_fail(r->ctx, MUC_MALFORMED, r->model->file, MUC_NO_OFFSET,
                    "layer '%.200s': its input '%.200s' is not a layer", user, name);
}

static muc_status add_input(reader *r, muc_keras_call *call, const json_t *reference)
{
    if (call->input_count == MAX_INPUTS)
        return fail(r, MUC_UNSUPPORTED, r->model->layers[call->layer].name,
                    "it has more than 1024 inputs");
    MUC_TRY(MUC_ARENA_GROW(r->ctx, r->arena, call->input_count + 1u, &r->input_capacity,
                           &call->inputs));
    return resolve(r, r->model->layers[call->layer].name, reference,
                   &call->inputs[call->input_count++]);
}

/* tensors of Keras 3 anywhere in the arguments; JSON is at most 64 deep */
static muc_status add_tensors(reader *r, muc_keras_call *call, const json_t *value)
{
    const char *class_name = string_of(value, "class_name"), *key;
    const json_t *item;
    size_t i;

    if (class_name && strcmp(class_name, "__keras_tensor__") == 0)
        return add_input(r, call,
                         json_object_get(json_object_get(value, "config"), "keras_history"));
    json_array_foreach(value, i, item) MUC_TRY(add_tensors(r, call, item));
    json_object_foreach((json_t *)(uintptr_t)value, key, item) MUC_TRY(add_tensors(r, call, item));
    return MUC_OK;
}

/* one [name, node, tensor, arguments] */
static muc_status add_reference(reader *r, muc_keras_call *call, const json_t *reference)
{
    const json_t *arguments = json_array_get(reference, 3), *value;
    const char *key;

    MUC_TRY(add_input(r, call, reference));
    if (!arguments || json_is_null(arguments))
        return MUC_OK;
    if (!json_is_object(arguments))
        return fail(r, MUC_MALFORMED, r->model->layers[call->layer].name,
                    "its arguments are not an object");
    json_object_foreach((json_t *)(uintptr_t)arguments, key, value) if (is_reference(value))
        MUC_TRY(add_input(r, call, value));
    return MUC_OK;
}

static muc_status read_node(reader *r, muc_keras_call *call, const json_t *node)
{
    const json_t *item;
    size_t i;

    r->input_capacity = 0;
    call->arguments = node;
    if (json_is_object(node)) {
        MUC_TRY(add_tensors(r, call, json_object_get(node, "args")));
        return add_tensors(r, call, json_object_get(node, "kwargs"));
    }
    if (is_reference(node))
        return add_reference(r, call, node);
    json_array_foreach(node, i, item) MUC_TRY(add_reference(r, call, item));
    return MUC_OK;
}

/* ---- calls ---- */

static muc_status new_calls(reader *r, bool sequential)
{
    muc_keras_model *m = r->model;
    uint64_t count = 0;

    for (uint32_t i = 0; i < m->layer_count; i++) {
        muc_keras_layer *layer = &m->layers[i];
        size_t nodes = sequential ? 1 : json_array_size(layer->inbound);

        /* an InputLayer has no node in its list, and is one */
        if (nodes == 0 && strcmp(layer->class_name, "InputLayer") == 0)
            nodes = 1;
        if (nodes > MAX_CALLS || count + nodes > MAX_CALLS)
            return fail_model(r, MUC_UNSUPPORTED, "more than 16384 calls of layers");
        layer->first_call = (uint32_t)count;
        layer->call_count = (uint32_t)nodes;
        count += nodes;
    }
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, (size_t)count, &m->calls));
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, (size_t)count, &m->order));
    m->call_count = (uint32_t)count;
    for (uint32_t i = 0; i < m->layer_count; i++)
        for (uint32_t k = 0; k < m->layers[i].call_count; k++)
            m->calls[m->layers[i].first_call + k] = (muc_keras_call){ .layer = i, .node = k };
    return MUC_OK;
}

static muc_status read_sequence(reader *r)
{
    muc_keras_model *m = r->model;

    for (uint32_t i = 1; i < m->call_count; i++) {
        MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, 1, &m->calls[i].inputs));
        m->calls[i].inputs[0] = (muc_keras_source){ i - 1, 0 };
        m->calls[i].input_count = 1;
    }
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, 1, &m->inputs));
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, 1, &m->outputs));
    m->inputs[0] = (muc_keras_source){ 0, 0 };
    m->outputs[0] = (muc_keras_source){ m->call_count - 1, 0 };
    m->input_count = m->output_count = 1;
    return MUC_OK;
}

/* input_layers or output_layers: a list of references, or one alone */
static muc_status read_ends(reader *r, const json_t *config, const char *key,
                            muc_keras_source **out, uint32_t *count)
{
    const json_t *list = json_object_get(config, key);
    size_t size = is_reference(list) ? 1 : json_array_size(list);

    if (size == 0 || size > MAX_INPUTS)
        return muc_fail(r->ctx, MUC_UNSUPPORTED, r->model->file, MUC_NO_OFFSET,
                        "configuration: \"%s\" is not a list of 1 to 1024 tensors", key);
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, size, out));
    for (size_t i = 0; i < size; i++)
        MUC_TRY(resolve(r, key, is_reference(list) ? list : json_array_get(list, i), &(*out)[i]));
    *count = (uint32_t)size;
    return MUC_OK;
}

static muc_status read_functional(reader *r, const json_t *config)
{
    muc_keras_model *m = r->model;

    for (uint32_t i = 0; i < m->call_count; i++)
        MUC_TRY(read_node(r, &m->calls[i],
                          json_array_get(m->layers[m->calls[i].layer].inbound, m->calls[i].node)));
    MUC_TRY(read_ends(r, config, "input_layers", &m->inputs, &m->input_count));
    return read_ends(r, config, "output_layers", &m->outputs, &m->output_count);
}

/* ---- order ---- */

typedef struct visit {
    uint32_t call, next; /* next: the input to look at */
} visit;

enum { NEW, OPEN, DONE };

static muc_status visit_from(reader *r, uint32_t output, uint8_t *states, visit *stack)
{
    muc_keras_model *m = r->model;
    uint32_t depth = 0;

    if (states[output] == DONE)
        return MUC_OK;
    stack[depth++] = (visit){ output, 0 };
    states[output] = OPEN;
    while (depth > 0) {
        visit *top = &stack[depth - 1];
        const muc_keras_call *call = &m->calls[top->call];
        uint32_t input;

        if (top->next == call->input_count) {
            states[top->call] = DONE;
            m->order[m->order_count++] = top->call;
            depth--;
            continue;
        }
        input = call->inputs[top->next++].call;
        if (states[input] == OPEN)
            return fail(r, MUC_MALFORMED, m->layers[call->layer].name, "depends on itself");
        if (states[input] == NEW) {
            states[input] = OPEN;
            stack[depth++] = (visit){ input, 0 };
        }
    }
    return MUC_OK;
}

static muc_status sort_calls(reader *r)
{
    uint8_t *states;
    visit *stack;

    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, r->model->call_count, &states));
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, r->model->call_count, &stack));
    for (uint32_t i = 0; i < r->model->input_count; i++)
        MUC_TRY(visit_from(r, r->model->inputs[i].call, states, stack));
    for (uint32_t i = 0; i < r->model->output_count; i++)
        MUC_TRY(visit_from(r, r->model->outputs[i].call, states, stack));
    return MUC_OK;
}

bool muc_keras_is_model(const char *class_name)
{
    return strcmp(class_name, "Sequential") == 0 || strcmp(class_name, "Functional") == 0 ||
           strcmp(class_name, "Model") == 0;
}

muc_status muc_keras_model_read(muc_context *ctx, muc_arena *arena, const char *file,
                                const json_t *document, muc_keras_model *out)
{
    reader r = { ctx, arena, out, 0 };
    const char *class_name = string_of(document, "class_name");
    const json_t *config = json_object_get(document, "config");
    bool sequential = class_name && strcmp(class_name, "Sequential") == 0;

    *out = (muc_keras_model){ .file = file };
    if (!class_name || !config)
        return fail_model(&r, MUC_MALFORMED, "no class_name or config");
    if (!muc_keras_is_model(class_name))
        return muc_fail(ctx, MUC_UNSUPPORTED, file, MUC_NO_OFFSET,
                        "configuration: a model of class '%.100s', expected Sequential, Functional "
                        "or Model",
                        class_name);
    out->name = string_of(config, "name");
    out->built_shape = json_object_get(config, "build_input_shape");
    if (!out->built_shape)
        out->built_shape =
            json_object_get(json_object_get(document, "build_config"), "input_shape");
    /* Keras 1 and early 2 have the list of a Sequential alone */
    MUC_TRY(read_layers(&r, json_is_array(config) ? config : json_object_get(config, "layers")));
    MUC_TRY(new_calls(&r, sequential));
    MUC_TRY(sequential ? read_sequence(&r) : read_functional(&r, config));
    return sort_calls(&r);
}
