/* checkpoint.h - what every reader of trained language models gives.
 *
 * Whatever the file's form and family, an opened checkpoint has the names that Hugging Face gives a
 * Llama's tensors ("model.layers.0.self_attn.q_proj.weight"), matrices as [out, in], rows of q and
 * k in rotate-half order, and a configuration whose every number was checked against the tensors'
 * shapes.
 */
#ifndef MUC_CHECKPOINT_H
#define MUC_CHECKPOINT_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/stored_vocabulary.h"
#include "graph/graph.h"

enum { MUC_MAX_RANK = 8, MUC_MAX_EOS = 8 };

/* A dense tensor, row-major, dims[0] outermost. All is borrowed from the checkpoint. */
typedef struct muc_tensor_view {
    const char *name;
    muc_dtype dtype;
    uint32_t rank;
    uint64_t dims[MUC_MAX_RANK];
    uint64_t elements, bytes;
    const uint8_t *data;   /* of no alignment; in the mapped file, or in the checkpoint's arena */
    const float *scales;   /* of a matrix of i8 that stands for real numbers: [dims[0]], what each
                              row's elements are multiplied by; else NULL */
    uint64_t stored_bytes; /* of a matrix that the file has in few bits: there, with scales or
                              codebooks; else 0 */
    const char *file;      /* where it was stored, for messages */
    uint64_t offset;       /* of its first byte in that file */
} muc_tensor_view;

typedef enum muc_family {
#define MUC_FAMILY(id, ...) MUC_FAMILY_##id,
#include "formats/families.def"
#undef MUC_FAMILY
} muc_family;

typedef enum muc_activation {
#define MUC_ACTIVATION(id, ...) MUC_ACTIVATION_##id,
#include "formats/activations.def"
#undef MUC_ACTIVATION
    MUC_ACTIVATION_COUNT
} muc_activation;

typedef struct muc_activation_info {
    const char *name;
    muc_op op;
    bool by_tanh, is_squared;
} muc_activation_info;

const muc_activation_info *muc_activation_get(muc_activation activation);

typedef enum muc_rope_kind {
    MUC_ROPE_PLAIN,   /* frequency i of head_dim/2: theta^(-2i/head_dim) */
    MUC_ROPE_LLAMA3,  /* low frequencies divided by factor, a ramp between */
    MUC_ROPE_LINEAR,  /* every frequency divided by factor */
    MUC_ROPE_YARN,    /* those of few turns divided, a ramp, and cos and sin times magnitude */
    MUC_ROPE_FACTORS, /* each divided by a factor of its own, cos and sin times magnitude */
} muc_rope_kind;

/* How a layer is made; what is 0 is Llama's way. */
typedef enum muc_norm_kind {
    MUC_NORM_RMS,   /* RMSNorm: a gain */
    MUC_NORM_LAYER, /* LayerNorm: a gain and a bias */
} muc_norm_kind;

typedef enum muc_position_kind {
    MUC_POSITION_ROPE,    /* q and k are rotated */
    MUC_POSITION_LEARNED, /* a table's rows are added to the tokens' */
} muc_position_kind;

typedef enum muc_ffn_kind {
    MUC_FFN_GATED, /* down(activation(gate x) * up x) */
    MUC_FFN_PLAIN, /* down(activation(up x)) */
} muc_ffn_kind;

/* The numbers in which the layers of a pruned model differ. */
typedef struct muc_layer_sizes {
    uint32_t heads, kv_heads, ffn_dim;
} muc_layer_sizes;

/* What a layer sees, where layers differ or none sees everything. */
typedef struct muc_layer_view {
    uint32_t window; /* positions, its own included; 0: all */
    enum {
        MUC_ANGLES_GLOBAL, /* by rope_theta and rope_kind */
        MUC_ANGLES_LOCAL,  /* plain ones, by rope_local_theta */
        MUC_ANGLES_NONE,   /* q and k are not rotated */
    } angles;
} muc_layer_view;

/* Sizes count elements. bos and eos are below vocabulary. */
typedef struct muc_model_config {
    const char *architecture; /* as the file names it */
    muc_family family;
    uint32_t dim, ffn_dim, layers, heads, kv_heads, head_dim, vocabulary;
    /* [layers], owned by the checkpoint; then the three above are the greatest of all layers. NULL:
     * every layer has those */
    const muc_layer_sizes *layer_sizes;
    uint32_t context; /* positions the model was made for */
    double norm_epsilon, rope_theta;
    muc_rope_kind rope_kind;
    double rope_factor;                       /* of all kinds but MUC_ROPE_PLAIN */
    double rope_low_factor, rope_high_factor; /* of MUC_ROPE_LLAMA3 and _YARN: in turns */
    double rope_magnitude;                    /* of MUC_ROPE_YARN and _FACTORS */
    /* of MUC_ROPE_FACTORS, owned by the checkpoint: one for each pair; where the context is longer
     * than the original, the second, if it is not NULL */
    const float *rope_factors, *rope_long_factors;
    bool rope_whole_turns; /* of MUC_ROPE_YARN: the ramp's ends are rounded */
    uint32_t rope_original_context;
    double rope_local_theta;           /* of MUC_ANGLES_LOCAL */
    uint32_t rotary_dim;               /* columns of a head that turn, its first; 0: all */
    const muc_layer_view *layer_views; /* [layers], owned by the checkpoint; NULL: all of them see
                                          everything, by global angles */
    bool rope_interleaved; /* the file had adjacent pairs; the reader reordered q and k */
    bool tied;             /* the head is model.embed_tokens.weight; no lm_head.weight exists */
    bool head_decides;     /* the file does not say whether it is tied: another head is one */
    muc_norm_kind norm;
    muc_position_kind position;
    muc_ffn_kind ffn;
    bool qkv_bias, output_bias, ffn_bias;
    bool head_norm;       /* RMSNorm of each head of q and k (Qwen3) */
    bool head_norm_turns; /* that only where they turn, with gains of 1 (Llama 4) */
    bool whole_norm;      /* RMSNorm of q and of k, all heads together (OLMo 2) */
    bool no_input_norms;  /* attention and FFN take x itself (OLMo 2) */
    bool inner_norms;     /* of what o and down get (BitNet) */
    bool output_norms;    /* what they give is normalised before it is added (Gemma 2) */
    bool parallel;        /* both take x, and both are added to it (GPT-NeoX) */
    bool layers_twice;    /* each layer is run twice in a row, with a cache each (MobileLLM-LS) */
    muc_activation activation;
    /* factors of the tokens' rows, of what is added to x and of the logits; 0: 1 */
    double embedding_factor, residual_factor, logit_factor;
    double attention_factor;         /* of q k^T; 0: 1 / sqrt(head_dim) */
    double attention_cap, logit_cap; /* c: a value v becomes c tanh(v / c); 0: it stays */
    bool has_bos;
    uint32_t bos;
    uint32_t eos_count; /* 0: none is known */
    uint32_t eos[MUC_MAX_EOS];
} muc_model_config;

typedef struct muc_mapped_file muc_mapped_file;

/* What a configuration asks for that Llama and GPT-2 do not do, such as "soft caps"; NULL: nothing.
 */
const char *muc_config_particular(const muc_model_config *config);
/* The configuration of a model whose layers are all as this one. */
muc_model_config muc_config_of_layer(const muc_model_config *config, uint32_t layer);

/* Owns everything it points to. */
typedef struct muc_checkpoint {
    muc_arena arena;
    muc_mapped_file *files; /* mapped until muc_checkpoint_close */
    const char *path;       /* as given to muc_checkpoint_open */
    const char *format;     /* name of the registry's row that read it */
    muc_bytes config_file;  /* Hugging Face's config.json as it was read; empty: none */
    muc_model_config config;
    size_t tensor_count;
    muc_tensor_view *tensors;                /* sorted by name, names unique */
    const char *tokenizer_path;              /* tokenizer.json or tokenizer.model, or NULL */
    const muc_stored_vocabulary *vocabulary; /* NULL unless the file holds one */
    const char *chat_template;               /* that the file itself holds, in Jinja, or NULL */
    const char *weights, *embedding; /* formats of quant/lowbit.def, or NULL: not compressed */
    const char *const *finer;        /* names of matrices in int4 where weights are int2 */
    size_t finer_count;
    const struct muc_hf_packed *packed; /* how a Hugging Face folder packs its matrices, or NULL */
    size_t tensor_capacity;
} muc_checkpoint;

/* Opens the file or folder at path with the first format that recognises it. On failure nothing
 * is left to close. */
muc_status muc_checkpoint_open(muc_context *ctx, const char *path, muc_checkpoint *out);
/* The same for a file that is in memory; bytes and their name must outlive the checkpoint. */
muc_status muc_checkpoint_open_bytes(muc_context *ctx, muc_bytes bytes, muc_checkpoint *out);
/* A Hugging Face config.json alone: the configuration and the path of the tokenizer beside it, if
 * there is one, but no tensors. */
muc_status muc_checkpoint_open_config(muc_context *ctx, const char *path, muc_checkpoint *out);
void muc_checkpoint_close(muc_checkpoint *checkpoint);

/* The template by which the model was trained to see conversations, in Jinja, in the arena or
 * borrowed from the checkpoint; NULL: none is known. A folder's is in tokenizer_config.json or
 * chat_template.jinja, beside its tokenizer. */
muc_status muc_checkpoint_chat_template(muc_context *ctx, const muc_checkpoint *checkpoint,
                                        muc_arena *arena, const char **out);

/* NULL if there is no tensor of that name. */
const muc_tensor_view *muc_checkpoint_find(const muc_checkpoint *checkpoint, const char *name);

/* The least and the most element of a tensor of numbers; false if one of them is not a whole number
 * of 32 bits. Of no elements: 0 and 0. */
bool muc_tensor_range(const muc_tensor_view *tensor, double *least, double *most);
/* Bytes in its file, with scales or codebooks. */
uint64_t muc_checkpoint_stored(const muc_tensor_view *tensor);
/* All its matrices: elements, and bytes as muc_checkpoint_stored has them. */
void muc_checkpoint_weights(const muc_checkpoint *checkpoint, uint64_t *weights, uint64_t *bytes);

/* Converts elements first..first+count-1 of a tensor of any float type, or with scales. A value
 * that is not finite is MUC_MALFORMED, naming the tensor and the element; so is a tensor of
 * integers MUC_UNSUPPORTED. The range must lie in the tensor. */
muc_status muc_tensor_to_f32(muc_context *ctx, const muc_tensor_view *view, uint64_t first,
                             uint64_t count, float *out);

#endif
