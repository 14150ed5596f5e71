/* gguf.c - a GGUF file of the Llama family to a checkpoint. */
#include "formats/gguf/gguf.h"

#include <stdio.h>
#include <string.h>

#include "base/choice.h"
#include "formats/format.h"

enum { KEY_BYTES = 128, LAYER_DIGITS = 5 };

typedef struct architecture {
    const char *name;
    muc_family family;
    bool interleaved, qkv_bias;
} architecture;

static const architecture architectures[] = {
#define MUC_GGUF_ARCHITECTURE(name, family, interleaved, qkv_bias) \
    { name, MUC_FAMILY_##family, interleaved, qkv_bias },
#include "formats/gguf/gguf_types.def"
#undef MUC_GGUF_ARCHITECTURE
};

typedef struct reader {
    muc_gguf gguf;
    const architecture *kind;
    muc_checkpoint *checkpoint;
    muc_model_config *config;
} reader;

#define UNSUPPORTED(r, ...) \
    muc_fail((r)->gguf.ctx, MUC_UNSUPPORTED, (r)->gguf.bytes.name, MUC_NO_OFFSET, __VA_ARGS__)

bool muc_gguf_probe(const muc_source *source)
{
    return source->bytes.size >= 4 && memcmp(source->bytes.data, "GGUF", 4) == 0;
}

static muc_status find_architecture(reader *r)
{
    muc_choice choice;
    const char *name;

    MUC_TRY(muc_gguf_string_or_null(&r->gguf, "general.architecture", &name));
    for (size_t i = 0; name && i < MUC_COUNT(architectures); i++)
        if (strcmp(architectures[i].name, name) == 0)
            r->kind = &architectures[i];
    if (!name)
        return muc_fail(r->gguf.ctx, MUC_MALFORMED, r->gguf.bytes.name, MUC_NO_OFFSET,
                        "'general.architecture' is missing");
    if (!r->kind) {
        muc_choice_begin(&choice, name, strlen(name));
        for (size_t i = 0; i < MUC_COUNT(architectures); i++)
            muc_choice_add(&choice, architectures[i].name);
        return muc_choice_refuse(r->gguf.ctx, &choice, MUC_UNSUPPORTED, r->gguf.bytes.name,
                                 "known architecture");
    }
    muc_config_set_family(r->config, r->kind->family);
    r->config->architecture = r->kind->name;
    r->config->rope_interleaved = r->kind->interleaved;
    return MUC_OK;
}

/* "llama.block_count" of "block_count" */
static const char *key_of(const reader *r, const char *suffix, char key[KEY_BYTES])
{
    snprintf(key, KEY_BYTES, "%s.%s", r->kind->name, suffix);
    return key;
}

static muc_status read_u32_or(const reader *r, const char *suffix, uint32_t fallback, uint32_t *out)
{
    char key[KEY_BYTES];

    return muc_gguf_u32_or(&r->gguf, key_of(r, suffix, key), fallback, out);
}

static const muc_tensor_view *find_tensor(const reader *r, const char *name)
{
    for (size_t i = 0; i < r->gguf.tensor_count; i++)
        if (strcmp(r->gguf.tensors[i].name, name) == 0)
            return &r->gguf.tensors[i];
    return NULL;
}

/* A size that the file does not tell stays 0, which muc_checkpoint_finish refuses by name. */
static muc_status read_sizes(const reader *r)
{
    muc_model_config *config = r->config;
    const muc_tensor_view *embedding = find_tensor(r, "token_embd.weight");
    uint32_t head_dim, value_dim, rotary;

    if (embedding)
        config->vocabulary = (uint32_t)embedding->dims[0];
    MUC_TRY(read_u32_or(r, "vocab_size", config->vocabulary, &config->vocabulary));
    MUC_TRY(read_u32_or(r, "embedding_length", 0, &config->dim));
    MUC_TRY(read_u32_or(r, "feed_forward_length", 0, &config->ffn_dim));
    MUC_TRY(read_u32_or(r, "block_count", 0, &config->layers));
    MUC_TRY(read_u32_or(r, "context_length", 0, &config->context));
    MUC_TRY(read_u32_or(r, "attention.head_count", 0, &config->heads));
    MUC_TRY(read_u32_or(r, "attention.head_count_kv", config->heads, &config->kv_heads));
    head_dim = config->heads ? config->dim / config->heads : 0;
    MUC_TRY(read_u32_or(r, "attention.key_length", head_dim, &config->head_dim));
    MUC_TRY(read_u32_or(r, "attention.value_length", config->head_dim, &value_dim));
    rotary = config->head_dim;
    if (config->position == MUC_POSITION_ROPE)
        MUC_TRY(read_u32_or(r, "rope.dimension_count", config->head_dim, &rotary));
    if (value_dim != config->head_dim || rotary != config->head_dim)
        return UNSUPPORTED(r, "keys of %u, values of %u, RoPE over %u elements of a head",
                           config->head_dim, value_dim, rotary);
    return MUC_OK;
}

static muc_status read_numbers(const reader *r)
{
    char key[KEY_BYTES];
    const char *scaling;
    double factor;

    MUC_TRY(muc_gguf_double_or(&r->gguf,
                               key_of(r,
                                      r->config->norm == MUC_NORM_LAYER
                                          ? "attention.layer_norm_epsilon"
                                          : "attention.layer_norm_rms_epsilon",
                                      key),
                               0, &r->config->norm_epsilon));
    if (r->config->position != MUC_POSITION_ROPE)
        return MUC_OK;
    MUC_TRY(muc_gguf_double_or(&r->gguf, key_of(r, "rope.freq_base", key), 10000,
                               &r->config->rope_theta));
    MUC_TRY(muc_gguf_string_or_null(&r->gguf, key_of(r, "rope.scaling.type", key), &scaling));
    if (scaling && strcmp(scaling, "none") != 0)
        return UNSUPPORTED(r, "RoPE scaling of type '%s'", scaling);
    MUC_TRY(muc_gguf_double_or(&r->gguf, key_of(r, "rope.scale_linear", key), 1, &factor));
    if (factor < 1 || factor > 1)
        return UNSUPPORTED(r, "linear RoPE scaling by %g", factor);
    return MUC_OK;
}

static muc_status check_features(const reader *r)
{
    uint32_t experts, window;

    MUC_TRY(read_u32_or(r, "expert_count", 0, &experts));
    if (experts != 0)
        return UNSUPPORTED(r, "a mixture of %u experts", experts);
    MUC_TRY(read_u32_or(r, "attention.sliding_window", UINT32_MAX, &window));
    if (window < r->config->context)
        return UNSUPPORTED(r, "a sliding window of %u in a context of %u", window,
                           r->config->context);
    r->config->qkv_bias = r->kind->qkv_bias || find_tensor(r, "blk.0.attn_q.bias");
    r->config->output_bias =
        r->config->ffn_bias || find_tensor(r, "blk.0.attn_output.bias") != NULL;
    return MUC_OK;
}

static muc_status read_tokenizer(const reader *r)
{
    const muc_stored_vocabulary *vocabulary;
    muc_model_config *config = r->config;

    MUC_TRY(muc_gguf_vocabulary(&r->gguf, &vocabulary));
    MUC_TRY(muc_gguf_string_or_null(&r->gguf, "tokenizer.chat_template",
                                    &r->checkpoint->chat_template));
    r->checkpoint->vocabulary = vocabulary;
    if (!vocabulary)
        return MUC_OK;
    if (vocabulary->count != config->vocabulary)
        return muc_fail(r->gguf.ctx, MUC_MALFORMED, r->gguf.bytes.name, MUC_NO_OFFSET,
                        "the tokenizer has %zu tokens, the model %u", vocabulary->count,
                        config->vocabulary);
    config->has_bos = vocabulary->bos >= 0;
    if (config->has_bos)
        config->bos = (uint32_t)vocabulary->bos;
    config->eos_count = vocabulary->eos >= 0;
    if (config->eos_count)
        config->eos[0] = (uint32_t)vocabulary->eos;
    return MUC_OK;
}

/* The layer of "blk.LAYER.suffix": decimal, without leading zeros. */
static bool split_name(const char *name, uint32_t *layer, const char **suffix)
{
    size_t digits = strspn(name, "0123456789");

    *layer = 0;
    if (digits == 0 || digits > LAYER_DIGITS || (name[0] == '0' && digits > 1))
        return false;
    for (size_t i = 0; i < digits; i++)
        *layer = *layer * 10 + (uint32_t)(name[i] - '0');
    *suffix = name + digits;
    return true;
}

static muc_status add_tensor(const reader *r, const muc_tensor_view *stored)
{
    static const char prefix[] = "blk.", marker[] = "blk.%u";
    muc_tensor_view view = *stored;
    const char *name = stored->name, *suffix = NULL;
    uint32_t layer = 0;
    bool inner = strncmp(name, prefix, sizeof(prefix) - 1) == 0 &&
                 split_name(name + sizeof(prefix) - 1, &layer, &suffix);

    if (inner && (strcmp(suffix, ".attn_qkv.weight") == 0 || strcmp(suffix, ".attn_qkv.bias") == 0))
        return muc_checkpoint_add_fused(r->gguf.ctx, r->checkpoint, &view, layer);
    for (unsigned id = 0; id < MUC_LLAMA_TENSOR_COUNT; id++) {
        muc_llama_tensor tensor = muc_llama_tensor_of(r->config, id);
        bool same = tensor.per_layer
                        ? inner && strcmp(tensor.gguf + sizeof(marker) - 1, suffix) == 0
                        : strcmp(tensor.gguf, name) == 0;

        if (!same)
            continue;
        MUC_TRY(muc_llama_tensor_name(r->gguf.ctx, r->gguf.arena, id, layer, &view.name));
        return muc_checkpoint_add(r->gguf.ctx, r->checkpoint, &view);
    }
    return muc_fail(r->gguf.ctx, MUC_UNSUPPORTED, view.file, view.offset,
                    "tensor '%s' has no place in a %s", name, r->kind->name);
}

muc_status muc_gguf_read(muc_context *ctx, const muc_source *source, muc_checkpoint *checkpoint)
{
    reader r = { .checkpoint = checkpoint, .config = &checkpoint->config };

    MUC_TRY(muc_gguf_parse(ctx, source->bytes, &checkpoint->arena, &r.gguf));
    MUC_TRY(find_architecture(&r));
    MUC_TRY(read_sizes(&r));
    MUC_TRY(read_numbers(&r));
    MUC_TRY(check_features(&r));
    MUC_TRY(read_tokenizer(&r));
    MUC_TRY(muc_checkpoint_check_config(ctx, checkpoint)); /* fused tensors are parted by it */
    for (size_t i = 0; i < r.gguf.tensor_count; i++)
        MUC_TRY(add_tensor(&r, &r.gguf.tensors[i]));
    return MUC_OK;
}
