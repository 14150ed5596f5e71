/* params.h - the parameters of a model: named tensors in one flat buffer.
 *
 * Gradients, optimiser state and fake-quantized weights are further buffers of the same layout, so
 * whoever works on all parameters (optimiser, clipping, checkpoints) sees one array.
 */
#ifndef MUC_TRAIN_PARAMS_H
#define MUC_TRAIN_PARAMS_H

#include "base/arena.h"
#include "formats/format.h"

/* kv_heads divides heads; pruned models have other counts in each layer */
typedef struct muc_train_layer {
    uint32_t heads, kv_heads, ffn_dim;
    size_t at[MUC_LLAMA_TENSOR_COUNT]; /* first element of a tensor; MUC_TRAIN_ABSENT */
} muc_train_layer;

#define MUC_TRAIN_ABSENT SIZE_MAX

typedef struct muc_train_tensor {
    const char *name;              /* of the checkpoint */
    unsigned id;                   /* MUC_LLAMA_... */
    uint32_t layer, rows, columns; /* columns 0: a vector */
    size_t first, elements;
    bool decays; /* weight decay acts on matrices, not on gains and biases */
} muc_train_tensor;

/* Owns all it points to but config's strings. */
typedef struct muc_train_shape {
    muc_arena arena;
    muc_model_config config; /* its layer_sizes are those of layers */
    muc_train_layer *layers;
    size_t embed, final_norm, head;    /* first elements; head is embed if tied */
    size_t positions, final_norm_bias; /* MUC_TRAIN_ABSENT */
    size_t tensor_count, elements;
    muc_train_tensor *tensors; /* in the order of the buffer: tables, layer by layer, the rest */
} muc_train_shape;

/* Lays the tensors out; a model with what muc_config_particular names is refused. heads, kv_heads,
 * ffn_dims: of each layer, or NULL for config's, which may differ from layer to layer too. */
muc_status muc_train_shape_make(muc_context *ctx, const muc_model_config *config,
                                const uint32_t *heads, const uint32_t *kv_heads,
                                const uint32_t *ffn_dims, muc_train_shape *out);
void muc_train_shape_free(muc_train_shape *shape);

#endif
