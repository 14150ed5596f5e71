/* random_model.h - a Llama of any shape with random weights, as a checkpoint in memory. */
#ifndef RANDOM_MODEL_H
#define RANDOM_MODEL_H

#include "chance.h"
#include "check.h"
#include "formats/checkpoint.h"

typedef struct random_shape {
    uint32_t layers, dim, heads, kv_heads, head_dim, ffn_dim, vocabulary, context;
    bool tied;
} random_shape;

static inline int random_model_order(const void *a, const void *b)
{
    const muc_tensor_view *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* rows of columns around 0 so that products keep the size of what goes in; columns 0: gains */
static inline void random_tensor(muc_context *ctx, muc_checkpoint *out, const char *name,
                                 uint32_t layer, uint32_t rows, uint32_t columns)
{
    muc_tensor_view *view = &out->tensors[out->tensor_count++];
    size_t count = (size_t)rows * (columns ? columns : 1);
    float *values;

    CHECK_OK(ctx, muc_arena_format(ctx, &out->arena, &view->name, name, layer));
    CHECK_OK(ctx, MUC_ARENA_NEW(ctx, &out->arena, count, &values));
    for (size_t i = 0; i < count; i++)
        values[i] = columns ? (float)(random_gaussian() / sqrt(columns))
                            : (float)(1 + 0.2 * random_gaussian());
    view->dtype = MUC_F32;
    view->rank = columns ? 2 : 1;
    view->dims[0] = rows;
    view->dims[1] = columns;
    view->elements = count;
    view->bytes = 4 * count;
    view->data = (const uint8_t *)values;
    view->file = out->path;
}

/* qwen: with biases of queries, keys and values, and norms of heads. The caller closes it with
 * muc_checkpoint_close. */
static inline void random_relative(muc_context *ctx, const random_shape *s, bool qwen,
                                   muc_checkpoint *out)
{
    uint32_t queries = s->heads * s->head_dim, keys = s->kv_heads * s->head_dim;

    memset(out, 0, sizeof(*out));
    out->path = "random";
    out->format = "memory";
    out->config = (muc_model_config){ .architecture = "LlamaForCausalLM",
                                      .family = MUC_FAMILY_LLAMA,
                                      .dim = s->dim,
                                      .ffn_dim = s->ffn_dim,
                                      .layers = s->layers,
                                      .heads = s->heads,
                                      .kv_heads = s->kv_heads,
                                      .head_dim = s->head_dim,
                                      .vocabulary = s->vocabulary,
                                      .context = s->context,
                                      .norm_epsilon = 1e-5,
                                      .rope_theta = 10000,
                                      .tied = s->tied,
                                      .qkv_bias = qwen,
                                      .head_norm = qwen };
    CHECK_OK(ctx, MUC_ARENA_NEW(ctx, &out->arena, 3 + 14 * (size_t)s->layers, &out->tensors));
    random_tensor(ctx, out, "model.embed_tokens.weight", 0, s->vocabulary, s->dim);
    random_tensor(ctx, out, "model.norm.weight", 0, s->dim, 0);
    if (!s->tied)
        random_tensor(ctx, out, "lm_head.weight", 0, s->vocabulary, s->dim);
    for (uint32_t l = 0; l < s->layers; l++) {
#define LAYER_TENSOR(name, rows, columns) \
    random_tensor(ctx, out, "model.layers.%u." name ".weight", l, rows, columns)
        LAYER_TENSOR("input_layernorm", s->dim, 0);
        LAYER_TENSOR("self_attn.q_proj", queries, s->dim);
        LAYER_TENSOR("self_attn.k_proj", keys, s->dim);
        LAYER_TENSOR("self_attn.v_proj", keys, s->dim);
        LAYER_TENSOR("self_attn.o_proj", s->dim, queries);
        LAYER_TENSOR("post_attention_layernorm", s->dim, 0);
        LAYER_TENSOR("mlp.gate_proj", s->ffn_dim, s->dim);
        LAYER_TENSOR("mlp.up_proj", s->ffn_dim, s->dim);
        LAYER_TENSOR("mlp.down_proj", s->dim, s->ffn_dim);
#undef LAYER_TENSOR
#define LAYER_VECTOR(name, count) \
    random_tensor(ctx, out, "model.layers.%u.self_attn." name, l, count, 0)
        if (qwen) {
            LAYER_VECTOR("q_proj.bias", queries);
            LAYER_VECTOR("k_proj.bias", keys);
            LAYER_VECTOR("v_proj.bias", keys);
            LAYER_VECTOR("q_norm.weight", s->head_dim);
            LAYER_VECTOR("k_norm.weight", s->head_dim);
        }
#undef LAYER_VECTOR
    }
    qsort(out->tensors, out->tensor_count, sizeof(*out->tensors), random_model_order);
}

/* kv_heads is not asked for: a GPT-2 has one for each head */
static inline void random_gpt2(muc_context *ctx, const random_shape *s, muc_checkpoint *out)
{
    uint32_t wide = s->heads * s->head_dim;

    memset(out, 0, sizeof(*out));
    out->path = "random";
    out->format = "memory";
    out->config = (muc_model_config){ .architecture = "GPT2LMHeadModel",
                                      .family = MUC_FAMILY_GPT2,
                                      .dim = s->dim,
                                      .ffn_dim = s->ffn_dim,
                                      .layers = s->layers,
                                      .heads = s->heads,
                                      .kv_heads = s->heads,
                                      .head_dim = s->head_dim,
                                      .vocabulary = s->vocabulary,
                                      .context = s->context,
                                      .norm_epsilon = 1e-5,
                                      .norm = MUC_NORM_LAYER,
                                      .position = MUC_POSITION_LEARNED,
                                      .ffn = MUC_FFN_PLAIN,
                                      .tied = s->tied,
                                      .qkv_bias = true,
                                      .output_bias = true,
                                      .ffn_bias = true,
                                      .activation = MUC_ACTIVATION_GELU_NEW };
    CHECK_OK(ctx, MUC_ARENA_NEW(ctx, &out->arena, 5 + 16 * (size_t)s->layers, &out->tensors));
    random_tensor(ctx, out, "model.embed_tokens.weight", 0, s->vocabulary, s->dim);
    random_tensor(ctx, out, "model.embed_positions.weight", 0, s->context, s->dim);
    random_tensor(ctx, out, "model.norm.weight", 0, s->dim, 0);
    random_tensor(ctx, out, "model.norm.bias", 0, s->dim, 0);
    if (!s->tied)
        random_tensor(ctx, out, "lm_head.weight", 0, s->vocabulary, s->dim);
    for (uint32_t l = 0; l < s->layers; l++) {
#define LAYER_PAIR(name, rows, columns) \
    random_tensor(ctx, out, "model.layers.%u." name ".weight", l, rows, columns); \
    random_tensor(ctx, out, "model.layers.%u." name ".bias", l, rows, 0)
        LAYER_PAIR("input_layernorm", s->dim, 0);
        LAYER_PAIR("self_attn.q_proj", wide, s->dim);
        LAYER_PAIR("self_attn.k_proj", wide, s->dim);
        LAYER_PAIR("self_attn.v_proj", wide, s->dim);
        LAYER_PAIR("self_attn.o_proj", s->dim, wide);
        LAYER_PAIR("post_attention_layernorm", s->dim, 0);
        LAYER_PAIR("mlp.up_proj", s->ffn_dim, s->dim);
        LAYER_PAIR("mlp.down_proj", s->dim, s->ffn_dim);
#undef LAYER_PAIR
    }
    qsort(out->tensors, out->tensor_count, sizeof(*out->tensors), random_model_order);
}

static inline void random_checkpoint(muc_context *ctx, const random_shape *s, muc_checkpoint *out)
{
    random_relative(ctx, s, false, out);
}

#endif
