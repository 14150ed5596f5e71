/* keras_model.h - a Keras configuration as layers and their calls, of any version of Keras. */
#ifndef MUC_KERAS_MODEL_H
#define MUC_KERAS_MODEL_H

#include "base/arena.h"
#include "base/json.h"

typedef struct muc_keras_model muc_keras_model;

enum { MUC_KERAS_MAX_CONSTANTS = 8 };

typedef struct muc_keras_layer {
    const char *name, *class_name;
    const json_t *document; /* class_name, config, .. */
    const json_t *config;   /* an object */
    const json_t *inbound;  /* inbound_nodes; NULL in a Sequential */
    uint32_t ordinal;       /* among the layers of its class */
    uint32_t first_call, call_count;
    muc_keras_model *inner; /* of a layer that is a model, once it was used; else NULL */
    /* the graph's tensors, which all calls of the layer share */
    struct {
        const char *suffix;
        uint32_t id;
    } constants[MUC_KERAS_MAX_CONSTANTS];
    uint32_t constant_count;
} muc_keras_layer;

/* One of the tensors that a call gives. */
typedef struct muc_keras_source {
    uint32_t call, output;
} muc_keras_source;

/* One use of a layer: a node of Keras. */
typedef struct muc_keras_call {
    uint32_t layer, node;     /* node: which use of the layer */
    muc_keras_source *inputs; /* [input_count] */
    uint32_t input_count;
    const json_t *arguments; /* a node of inbound_nodes, or NULL */
} muc_keras_call;

/* Borrows from the document. */
struct muc_keras_model {
    const char *file; /* for messages */
    const char *name;
    const json_t *built_shape; /* of a Sequential: what it was built for; NULL */
    muc_keras_layer *layers;
    muc_keras_call *calls;              /* a layer's one after the other */
    uint32_t *order;                    /* [call_count]: each after its inputs */
    muc_keras_source *inputs, *outputs; /* a Sequential's input may be no InputLayer */
    uint32_t layer_count, call_count, order_count, input_count, output_count;
};

/* document: model_config of an .h5, config.json of a .keras, or Model.to_json(). */
muc_status muc_keras_model_read(muc_context *ctx, muc_arena *arena, const char *file,
                                const json_t *document, muc_keras_model *out);

/* Whether a layer's class is one of models. */
bool muc_keras_is_model(const char *class_name);

#endif
