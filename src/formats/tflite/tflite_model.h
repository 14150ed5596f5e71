/* tflite_model.h - a TFLite model as plain facts, every number in it checked. */
#ifndef MUC_TFLITE_MODEL_H
#define MUC_TFLITE_MODEL_H

#include "base/arena.h"
#include "formats/tflite/flatbuffer.h"
#include "graph/graph.h"

enum { MUC_TFLITE_NONE = -1 }; /* an optional input that is not given */

/* real = scale * (stored - zero_point); one pair for all elements, or one each along axis. */
typedef struct muc_tflite_quantization {
    uint32_t count; /* 0: the tensor is not quantized */
    uint32_t axis;  /* of count elements, if count > 1 */
    const float *scales;
    const int32_t *zero_points;
} muc_tflite_quantization;

typedef struct muc_tflite_tensor {
    const char *name; /* "" if the file has none */
    muc_dtype dtype;
    uint32_t rank;
    uint32_t dims[MUC_GRAPH_MAX_RANK];
    unsigned open; /* bit i: dims[i] is an example's, any size is meant (shape_signature -1) */
    const uint8_t *data; /* of a constant, borrowed from the file, of no alignment; else NULL */
    bool is_variable;    /* kept from run to run; at first 0, or the zero point of i8 */
    bool is_resource;    /* the handle of a variable; type and shape mean nothing */
    uint64_t bytes;
    muc_tflite_quantization quantization;
} muc_tflite_tensor;

typedef struct muc_tflite_operator {
    uint32_t code;    /* BuiltinOperator; CUSTOM of one that the schema does not have either */
    const char *name; /* the schema's, or a custom operator's */
    int32_t version;
    uint32_t input_count, output_count;
    const int32_t *inputs, *outputs; /* tensors; inputs may be MUC_TFLITE_NONE */
    muc_flat table;                  /* OPERATOR, for its options */
} muc_tflite_operator;

typedef struct muc_tflite_model {
    muc_bytes file;
    muc_flat root; /* MODEL */
    uint32_t tensor_count, operator_count, input_count, output_count;
    const muc_tflite_tensor *tensors;
    const muc_tflite_operator *operators; /* each after those whose outputs it reads */
    const int32_t *inputs, *outputs;      /* of the whole network, tensors */
} muc_tflite_model;

/* Reads subgraph 0. All that is not borrowed from file lives in arena. Fails with MUC_MALFORMED,
 * or MUC_UNSUPPORTED naming what no reader here understands: versions, types, sparse tensors,
 * a second entry point. A custom operator is one of the model, by its name. */
muc_status muc_tflite_read(muc_context *ctx, muc_bytes file, muc_arena *arena,
                           muc_tflite_model *out);

/* The same of another subgraph of the file that a model was read from: it may have neither inputs
 * nor outputs. MUC_MALFORMED if there is no such one. */
muc_status muc_tflite_read_subgraph(muc_context *ctx, const muc_tflite_model *of, int64_t index,
                                    muc_arena *arena, muc_tflite_model *out);
/* A text of a table, "" where it is absent; in arena. */
muc_status muc_tflite_text(muc_context *ctx, const muc_tflite_model *model, muc_flat table,
                           muc_flat_field field, muc_arena *arena, const char **out);

/* "CONV_2D", or NULL if the schema has no such operator. */
const char *muc_tflite_operator_name(uint32_t code);

#endif
