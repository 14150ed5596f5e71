/* model.h - a Keras configuration as layers and their calls, of any version of Keras. */
#ifndef MUC_KERAS_MODEL_H
#define MUC_KERAS_MODEL_H

#include "base/arena.h"
#include "base/json.h"

typedef struct muc_keras_layer {
    const char *name, *class_name;
    const json_t *config;  /* an object */
    const json_t *inbound; /* inbound_nodes; NULL in a Sequential */
    uint32_t ordinal;      /* among the layers of its class */
    uint32_t first_call, call_count;
} muc_keras_layer;

/* One use of a layer: a node of Keras. */
typedef struct muc_keras_call {
    uint32_t layer, node; /* node: which use of the layer */
    uint32_t *inputs;     /* [input_count] calls */
    uint32_t input_count;
    const json_t *kwargs; /* arguments beside the inputs, or NULL */
} muc_keras_call;

/* Borrows from the document. */
typedef struct muc_keras_model {
    const char *file; /* for messages */
    const char *name;
    muc_keras_layer *layers;
    muc_keras_call *calls;      /* a layer's one after the other */
    uint32_t *order;            /* [call_count]: each after its inputs */
    uint32_t *inputs, *outputs; /* calls; a Sequential's input may be no InputLayer */
    uint32_t layer_count, call_count, order_count, input_count, output_count;
} muc_keras_model;

/* document: model_config of an .h5, config.json of a .keras, or Model.to_json(). */
muc_status muc_keras_model_read(muc_context *ctx, muc_arena *arena, const char *file,
                                const json_t *document, muc_keras_model *out);

#endif
