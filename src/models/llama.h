/* llama.h - decoders as a graph: Llama and the families of formats/families.def. */
#ifndef MUC_LLAMA_H
#define MUC_LLAMA_H

#include "formats/checkpoint.h"
#include "graph/graph.h"

/* All-zero asks for what the model was made for. */
typedef struct muc_llama_options {
    uint32_t context;    /* positions of the KV cache; 0: the model's own; never above it */
    uint32_t max_tokens; /* most tokens in one call; 0: 64, or context if that is smaller */
    bool last_only;      /* logits after the call's last token alone */
    bool skips;          /* logits without those after the call's first `skip` tokens */
    bool level;          /* heads and neurons of weight 0 make the layers of a pruned model alike */
    bool shapes; /* constants have types (f32 for rows with scales) and shapes, but no data */
} muc_llama_options;

/* Builds the graph of a checkpoint, which must outlive it: weights are borrowed in their file's
 * type; those with scales are i8 with quantization, and their products' other side is quantized
 * when it comes (runtime/include/mur_decoder.h). Expression inputs, in this order: pos in
 * 0..context-1, m in 1..max_tokens, pos + m at most context, and if it skips, skip in
 * 0..max_tokens-1. Tensor input: tokens, i32 [m]. Output: head, f32 [m, vocabulary] ([1,
 * vocabulary] if last_only, [m - skip, vocabulary] if it skips), the logits.
 *
 * Nodes of a Llama: embed; for each layer N layers.N.attention_norm, .q, .k, .v, (.q_norm,
 * .k_norm,) .q_rope, .k_rope, .attention, .o, .attention_residual, .ffn_norm, .gate, .up, .silu,
 * .gated, .down, .residual; (last or asked,) final_norm, head. Other families leave out some and
 * add others, as .attention_output_norm or head.product, but the last is always head. States:
 * layers.N.k_cache, .v_cache, f32 [context, kv_heads * head_dim], by the layer's own numbers where
 * layers differ. Constants: the checkpoint's names, rope.cos and rope.sin, and rope.local.cos and
 * rope.local.sin where layers ask for them.
 *
 * Fails with MUC_UNSUPPORTED where the configuration asks for what no node does. */
muc_status muc_llama_build(muc_context *ctx, const muc_checkpoint *checkpoint,
                           const muc_llama_options *options, muc_graph **out);

/* Columns of a head that turn: rotary_dim, or all of them. */
uint32_t muc_llama_rotary(const muc_model_config *config);
/* cos and sin [context][muc_llama_rotary() / 2] of the rotation at each position, by global or
 * local angles: computed in double, each value rounded once. */
muc_status muc_llama_rope(muc_context *ctx, const muc_model_config *config, bool local,
                          uint32_t context, float *cosines, float *sines);

#endif
