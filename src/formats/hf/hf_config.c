/* hf_config.c - reads config.json into muc_model_config.
 *
 * A key that would change the computation is either understood or refused by name; keys that only
 * concern training are passed over.
 */
#include "formats/hf/hf_config.h"

#include <string.h>

#include "base/choice.h"
#include "base/json.h"
#include "formats/format.h"
#include "formats/hf/hf_layers.h"
#include "formats/hf/hf_lowbit.h"
#include "formats/hf/hf_packed.h"
#include "quant/lowbit.h"

typedef enum bias_rule { NEVER, ALWAYS, CONFIG } bias_rule;

typedef struct architecture {
    const char *name, *model_type;
    muc_family family;
    uint32_t default_head_dim;
    bias_rule qkv_bias, output_bias;
    muc_hf_windows windows;
    const muc_hf_keys *keys;
} architecture;

#define MUC_HF_KEYS(id, ...) static const muc_hf_keys keys_##id = { __VA_ARGS__ };
#include "formats/hf/hf_keys.def"
#undef MUC_HF_KEYS

static const architecture architectures[] = {
#define MUC_HF_ARCHITECTURE(name, type, family, head_dim, qkv, output, windows, keys) \
    { name, type, MUC_FAMILY_##family, head_dim, qkv, output, MUC_HF_##windows, &keys_##keys },
#include "formats/hf/architectures.def"
#undef MUC_HF_ARCHITECTURE
};

typedef struct reader {
    muc_context *ctx;
    const char *name; /* of the file */
    const json_t *root;
    muc_checkpoint *checkpoint;
    muc_model_config *config;
    const muc_hf_keys *keys;
} reader;

const muc_hf_keys *muc_hf_keys_of(muc_family family)
{
    const architecture *row = architectures;

    while (row->family != family)
        row++;
    return row->keys;
}

#define UNSUPPORTED(r, ...) \
    muc_fail((r)->ctx, MUC_UNSUPPORTED, (r)->name, MUC_NO_OFFSET, __VA_ARGS__)

static muc_status read_u32(const reader *r, const char *key, uint32_t *out)
{
    uint64_t value;

    MUC_TRY(muc_json_u64(r->ctx, r->name, r->root, key, 1, UINT32_MAX, &value));
    *out = (uint32_t)value;
    return MUC_OK;
}

static muc_status read_u32_or(const reader *r, const json_t *object, const char *key,
                              uint32_t fallback, uint32_t *out)
{
    return muc_json_u32_or(r->ctx, r->name, object, key, fallback, out);
}

/* of architectures that are unknown, too */
static muc_status check_experts(const reader *r)
{
    static const char *const counts[] = { "num_local_experts", "num_experts", "n_routed_experts" };

    for (size_t i = 0; i < MUC_COUNT(counts); i++) {
        uint32_t experts;

        MUC_TRY(read_u32_or(r, r->root, counts[i], 0, &experts));
        if (experts != 0)
            return UNSUPPORTED(r, "a mixture of experts (\"%s\": %u)", counts[i], experts);
    }
    return MUC_OK;
}

static muc_status find_architecture(const reader *r, const architecture **out)
{
    static const char known[] =
#define MUC_HF_ARCHITECTURE(name, ...) " " name
#include "formats/hf/architectures.def"
#undef MUC_HF_ARCHITECTURE
        ;
    const json_t *list = json_object_get(r->root, "architectures");
    const char *name = json_string_value(json_array_get(list, 0)), *type;

    MUC_TRY(muc_json_string_or_null(r->ctx, r->name, r->root, "model_type", &type));
    if (!name && !type)
        return muc_fail(r->ctx, MUC_MALFORMED, r->name, MUC_NO_OFFSET,
                        "neither \"architectures\" nor \"model_type\" names the architecture");
    for (size_t i = 0; i < MUC_COUNT(architectures); i++) {
        const architecture *row = &architectures[i];

        if ((!name || strcmp(name, row->name) == 0) &&
            (!type || strcmp(type, row->model_type) == 0)) {
            *out = row;
            return MUC_OK;
        }
    }
    return UNSUPPORTED(r, "architecture '%s' of model type '%s' is unknown; muc knows%s",
                       name ? name : "not named", type ? type : "not named", known);
}

/* the names of matrices that have int4 where weights are int2 */
static muc_status read_finer(const reader *r, const json_t *object)
{
    const json_t *list = json_object_get(object, MUC_HF_FINER);
    size_t count = json_array_size(list);
    const char **names;

    if (!list)
        return MUC_OK;
    if (!json_is_array(list) || strcmp(r->checkpoint->weights, "int2") != 0)
        return UNSUPPORTED(r, "\"quantization_config\": \"" MUC_HF_FINER
                              "\" is expected to be an array, beside int2 weights");
    MUC_TRY(MUC_ARENA_NEW(r->ctx, &r->checkpoint->arena, count, &names));
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(list, i));

        if (!name)
            return UNSUPPORTED(r,
                               "\"quantization_config\": \"" MUC_HF_FINER
                               "\": element %zu is not a name of a tensor",
                               i);
        MUC_TRY(muc_arena_format(r->ctx, &r->checkpoint->arena, &names[i], "%s", name));
    }
    r->checkpoint->finer = names;
    r->checkpoint->finer_count = count;
    return MUC_OK;
}

/* "quantization_config" as muc compress writes it, the formats of matrices and of the embedding, or
 * as others do */
static muc_status read_quantization(const reader *r)
{
    const json_t *object = json_object_get(r->root, "quantization_config");
    const struct {
        const char *key, **out;
    } formats[] = { { "weights", &r->checkpoint->weights },
                    { "embedding", &r->checkpoint->embedding } };
    const char *method;

    if (!json_is_object(object))
        return MUC_OK;
    MUC_TRY(muc_json_string_or_null(r->ctx, r->name, object, "quant_method", &method));
    if (!method || strcmp(method, MUC_HF_LOWBIT_METHOD) != 0)
        return muc_hf_read_packing(r->ctx, r->name, object, r->checkpoint);
    for (size_t i = 0; i < MUC_COUNT(formats); i++) {
        const char *name;
        muc_lowbit format;

        MUC_TRY(muc_json_string_or_null(r->ctx, r->name, object, formats[i].key, &name));
        if (!name || !muc_lowbit_find(name, &format))
            return UNSUPPORTED(
                r, "\"quantization_config\": \"%s\" is '%s', a format that muc does not know",
                formats[i].key, name ? name : "missing");
        *formats[i].out = muc_lowbit_get(format)->name;
    }
    return read_finer(r, object);
}

/* The family's own where the file names none. */
static muc_status read_activation(const reader *r, const architecture *kind)
{
    static const struct {
        const char *name;
        muc_activation meaning;
    } known[] = {
#define MUC_ACTIVATION(id, name, ...) { name, MUC_ACTIVATION_##id },
#include "formats/activations.def"
#undef MUC_ACTIVATION
        { "swish", MUC_ACTIVATION_SILU },
        { "gelu_fast", MUC_ACTIVATION_GELU_NEW },
        { "gelu_pytorch_tanh", MUC_ACTIVATION_GELU_NEW },
    };
    muc_choice choice;
    const char *name;

    MUC_TRY(muc_json_string_or_null(r->ctx, r->name, r->root, kind->keys->activation, &name));
    if (!name)
        return MUC_OK;
    for (size_t i = 0; i < MUC_COUNT(known); i++)
        if (strcmp(name, known[i].name) == 0) {
            r->config->activation = known[i].meaning;
            return MUC_OK;
        }
    muc_choice_begin(&choice, name, strlen(name));
    for (size_t i = 0; i < MUC_COUNT(known); i++)
        muc_choice_add(&choice, known[i].name);
    return muc_choice_refuse(r->ctx, &choice, MUC_UNSUPPORTED, r->name, kind->keys->activation);
}

/* Everything that would need another graph. */
static muc_status check_features(const reader *r, const architecture *kind)
{
    static const struct {
        const char *key;
        bool is;
    } flags[] = {
        { "add_cross_attention", false },
        { "scale_attn_by_inverse_layer_idx", false },
        { "scale_attn_weights", true },
        { "do_layer_norm_before", true },
        { "_remove_final_layer_norm", false },
        { "enable_bias", true },
        { "layer_norm_elementwise_affine", true },
        { "use_bidirectional_attention", false },
    };
    uint32_t embedding;

    for (size_t i = 0; i < MUC_COUNT(flags); i++) {
        bool on;

        MUC_TRY(muc_json_bool_or(r->ctx, r->name, r->root, flags[i].key, flags[i].is, &on));
        if (on != flags[i].is)
            return UNSUPPORTED(r, "\"%s\": %s", flags[i].key, on ? "true" : "false");
    }
    MUC_TRY(read_u32_or(r, r->root, "word_embed_proj_dim", r->config->dim, &embedding));
    if (embedding != r->config->dim)
        return UNSUPPORTED(r, "embeddings of %u columns, projected to %u", embedding,
                           r->config->dim);
    MUC_TRY(read_quantization(r));
    return read_activation(r, kind);
}

static muc_status read_token(const reader *r, const json_t *value, const char *key, uint32_t *out)
{
    json_int_t id = json_integer_value(value);

    if (!json_is_integer(value) || id < 0 || id > INT32_MAX)
        return muc_fail(r->ctx, MUC_MALFORMED, r->name, MUC_NO_OFFSET, "\"%s\" is not a token id",
                        key);
    *out = (uint32_t)id;
    return MUC_OK;
}

/* one id, a list of them, or null */
static muc_status read_tokens(const reader *r)
{
    muc_model_config *config = r->config;
    const json_t *bos = json_object_get(r->root, "bos_token_id");
    const json_t *eos = json_object_get(r->root, "eos_token_id"), *item;
    size_t i;

    if (bos && !json_is_null(bos)) {
        MUC_TRY(read_token(r, bos, "bos_token_id", &config->bos));
        config->has_bos = true;
    }
    if (!eos || json_is_null(eos))
        return MUC_OK;
    if (!json_is_array(eos)) {
        config->eos_count = 1;
        return read_token(r, eos, "eos_token_id", &config->eos[0]);
    }
    if (json_array_size(eos) > MUC_MAX_EOS)
        return UNSUPPORTED(r, "\"eos_token_id\" lists %zu tokens, at most %d", json_array_size(eos),
                           MUC_MAX_EOS);
    config->eos_count = (uint32_t)json_array_size(eos);
    json_array_foreach(eos, i, item) MUC_TRY(read_token(r, item, "eos_token_id", &config->eos[i]));
    return MUC_OK;
}

/* A number, or one for each layer: then *sizes, made if need be, has it at offset at of each layer,
 * and *out is the greatest. */
static muc_status read_layers_u32(const reader *r, const char *key, size_t at,
                                  muc_layer_sizes **sizes, uint32_t *out)
{
    const json_t *list = json_object_get(r->root, key), *item;
    size_t i;

    if (!json_is_array(list))
        return read_u32(r, key, out);
    if (json_array_size(list) != r->config->layers)
        return muc_fail(r->ctx, MUC_MALFORMED, r->name, MUC_NO_OFFSET,
                        "\"%s\" has %zu numbers for %u layers", key, json_array_size(list),
                        r->config->layers);
    if (!*sizes)
        MUC_TRY(MUC_ARENA_NEW(r->ctx, &r->checkpoint->arena, json_array_size(list), sizes));
    *out = 0;
    json_array_foreach(list, i, item)
    {
        json_int_t value = json_integer_value(item);
        uint32_t size = (uint32_t)value;

        if (value < 1 || value > UINT32_MAX)
            return muc_fail(r->ctx, MUC_MALFORMED, r->name, MUC_NO_OFFSET,
                            "\"%s\" of layer %zu is not a number from 1 on", key, i);
        memcpy((char *)&(*sizes)[i] + at, &size, sizeof(size));
        *out = size > *out ? size : *out;
    }
    return MUC_OK;
}

/* heads and neurons; where one of them is a list, what is none holds for every layer */
static muc_status read_layer_sizes(const reader *r)
{
    muc_model_config *config = r->config;
    const json_t *neurons = json_object_get(r->root, r->keys->ffn_dim);
    const json_t *kv_heads = json_object_get(r->root, r->keys->kv_heads);
    bool has_kv_heads = kv_heads && !json_is_null(kv_heads);
    muc_layer_sizes *sizes = NULL;

    if (config->ffn == MUC_FFN_PLAIN && (!neurons || json_is_null(neurons)))
        config->ffn_dim = config->dim > UINT32_MAX / 4 ? UINT32_MAX : 4 * config->dim;
    else
        MUC_TRY(read_layers_u32(r, r->keys->ffn_dim, offsetof(muc_layer_sizes, ffn_dim), &sizes,
                                &config->ffn_dim));
    MUC_TRY(read_layers_u32(r, r->keys->heads, offsetof(muc_layer_sizes, heads), &sizes,
                            &config->heads));
    if (has_kv_heads)
        MUC_TRY(read_layers_u32(r, r->keys->kv_heads, offsetof(muc_layer_sizes, kv_heads), &sizes,
                                &config->kv_heads));
    else
        config->kv_heads = config->heads;
    for (uint32_t i = 0; sizes && i < config->layers; i++) {
        sizes[i].ffn_dim = sizes[i].ffn_dim ? sizes[i].ffn_dim : config->ffn_dim;
        sizes[i].heads = sizes[i].heads ? sizes[i].heads : config->heads;
        if (!sizes[i].kv_heads)
            sizes[i].kv_heads = has_kv_heads ? config->kv_heads : sizes[i].heads;
    }
    config->layer_sizes = sizes;
    return MUC_OK;
}

static muc_status read_sizes(const reader *r, const architecture *kind)
{
    muc_model_config *config = r->config;
    uint32_t head_dim = kind->default_head_dim;
    double epsilon;

    MUC_TRY(read_u32(r, r->keys->dim, &config->dim));
    MUC_TRY(read_u32(r, r->keys->layers, &config->layers));
    MUC_TRY(read_layer_sizes(r));
    MUC_TRY(read_u32(r, "vocab_size", &config->vocabulary));
    MUC_TRY(read_u32(r,
                     r->keys->older_context && !json_object_get(r->root, r->keys->context)
                         ? r->keys->older_context
                         : r->keys->context,
                     &config->context));
    if (head_dim == 0 && !config->layer_sizes)
        head_dim = config->dim / config->heads;
    MUC_TRY(read_u32_or(r, r->root, "head_dim", head_dim, &config->head_dim));
    epsilon = config->norm_epsilon > 0 ? config->norm_epsilon
                                       : (config->norm == MUC_NORM_LAYER ? 1e-5 : 1e-6);
    return muc_json_double_or(r->ctx, r->name, r->root, r->keys->epsilon, epsilon,
                              &config->norm_epsilon);
}

static muc_status read_biases(const reader *r, const architecture *kind)
{
    bool bias, always = kind->qkv_bias == ALWAYS;

    MUC_TRY(muc_json_bool_or(r->ctx, r->name, r->root, "attention_bias", always, &bias));
    if (!bias && always)
        return UNSUPPORTED(r, "\"attention_bias\": false in a %s", kind->name);
    if (bias && kind->qkv_bias == NEVER)
        return UNSUPPORTED(r, "\"attention_bias\": true in a %s", kind->name);
    r->config->qkv_bias = kind->qkv_bias == ALWAYS || (kind->qkv_bias == CONFIG && bias);
    r->config->output_bias = kind->output_bias == ALWAYS || (kind->output_bias == CONFIG && bias);
    if (r->config->ffn == MUC_FFN_PLAIN)
        return MUC_OK;
    return muc_json_bool_or(r->ctx, r->name, r->root, "mlp_bias", false, &r->config->ffn_bias);
}

static muc_status read_root(reader *r)
{
    const architecture *kind = NULL;

    if (!json_is_object(r->root))
        return muc_fail(r->ctx, MUC_MALFORMED, r->name, 0, "expected a JSON object");
    MUC_TRY(check_experts(r));
    MUC_TRY(find_architecture(r, &kind));
    muc_config_set_family(r->config, kind->family);
    r->config->architecture = kind->name;
    r->keys = kind->keys;
    MUC_TRY(read_sizes(r, kind));
    MUC_TRY(check_features(r, kind));
    MUC_TRY(read_biases(r, kind));
    MUC_TRY(muc_json_bool_or(r->ctx, r->name, r->root, "use_parallel_residual", r->config->parallel,
                             &r->config->parallel));
    if (r->config->head_norm_turns)
        MUC_TRY(
            muc_json_bool_or(r->ctx, r->name, r->root, "use_qk_norm", true, &r->config->head_norm));
    MUC_TRY(muc_json_bool_or(r->ctx, r->name, r->root, "layer_sharing", false,
                             &r->config->layers_twice));
    MUC_TRY(muc_hf_read_layers(r->ctx, r->name, r->root, kind->windows, r->checkpoint));
    MUC_TRY(read_tokens(r));
    return muc_json_bool_or(r->ctx, r->name, r->root, "tie_word_embeddings", r->config->tied,
                            &r->config->tied);
}

muc_status muc_hf_read_config(muc_context *ctx, muc_bytes bytes, muc_checkpoint *checkpoint)
{
    json_t *root;
    reader r = { ctx, bytes.name, NULL, checkpoint, &checkpoint->config, NULL };
    muc_status status;

    MUC_TRY(muc_json_parse(ctx, bytes, 0, &root));
    r.root = root;
    status = read_root(&r);
    json_decref(root);
    return status;
}
