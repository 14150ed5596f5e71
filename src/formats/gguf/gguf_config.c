/* gguf_config.c - reads sizes, angles, windows and factors from a GGUF file's metadata. */
#include "formats/gguf/gguf_config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/choice.h"
#include "base/real.h"
#include "formats/format.h"

enum { KEY_BYTES = 128, MOST_LAYERS = 1 << 12, STILL_LAYER = 4 };

typedef struct architecture {
    const char *name;
    muc_family family;
    bool interleaved, qkv_bias;
    uint32_t pattern, window, wide_layers;
} architecture;

static const architecture architectures[] = {
#define MUC_GGUF_ARCHITECTURE(name, family, interleaved, qkv_bias, pattern, window, wide_layers) \
    { name, MUC_FAMILY_##family, interleaved, qkv_bias, pattern, window, wide_layers },
#include "formats/gguf/gguf_architectures.def"
#undef MUC_GGUF_ARCHITECTURE
};

typedef struct reader {
    const muc_gguf *gguf;
    const architecture *kind;
    muc_checkpoint *checkpoint;
    muc_model_config *config;
} reader;

#define UNSUPPORTED(r, ...) \
    muc_fail((r)->gguf->ctx, MUC_UNSUPPORTED, (r)->gguf->bytes.name, MUC_NO_OFFSET, __VA_ARGS__)

static muc_status check_experts(const reader *r, const char *kind)
{
    char key[KEY_BYTES];
    uint32_t experts;

    snprintf(key, KEY_BYTES, "%s.expert_count", kind);
    MUC_TRY(muc_gguf_u32_or(r->gguf, key, 0, &experts));
    return experts ? UNSUPPORTED(r, "a mixture of %u experts", experts) : MUC_OK;
}

static muc_status find_architecture(reader *r)
{
    muc_choice choice;
    const char *name;

    MUC_TRY(muc_gguf_string_or_null(r->gguf, "general.architecture", &name));
    for (size_t i = 0; name && i < MUC_COUNT(architectures); i++)
        if (strcmp(architectures[i].name, name) == 0)
            r->kind = &architectures[i];
    if (!name)
        return muc_fail(r->gguf->ctx, MUC_MALFORMED, r->gguf->bytes.name, MUC_NO_OFFSET,
                        "'general.architecture' is missing");
    MUC_TRY(check_experts(r, name)); /* of unknown ones, too, which have names like known ones */
    if (!r->kind) {
        muc_choice_begin(&choice, name, strlen(name));
        for (size_t i = 0; i < MUC_COUNT(architectures); i++)
            muc_choice_add(&choice, architectures[i].name);
        return muc_choice_refuse(r->gguf->ctx, &choice, MUC_UNSUPPORTED, r->gguf->bytes.name,
                                 "known architecture");
    }
    muc_config_set_family(r->config, r->kind->family);
    r->config->architecture = r->kind->name;
    r->config->head_decides = true;
    r->config->rope_interleaved = r->kind->interleaved;
    if (r->kind->family == MUC_FAMILY_BITNET)
        r->config->activation = MUC_ACTIVATION_SILU;
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

    return muc_gguf_u32_or(r->gguf, key_of(r, suffix, key), fallback, out);
}

static muc_status read_double_or(const reader *r, const char *suffix, double fallback, double *out)
{
    char key[KEY_BYTES];

    return muc_gguf_double_or(r->gguf, key_of(r, suffix, key), fallback, out);
}

static const muc_tensor_view *find_tensor(const reader *r, const char *name)
{
    for (size_t i = 0; i < r->gguf->tensor_count; i++)
        if (strcmp(r->gguf->tensors[i].name, name) == 0)
            return &r->gguf->tensors[i];
    return NULL;
}

/* A size that the file does not tell stays 0, which muc_checkpoint_check_config refuses by name. */
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
    if (value_dim != config->head_dim)
        return UNSUPPORTED(r, "keys of %u, values of %u elements a head", config->head_dim,
                           value_dim);
    if (config->position != MUC_POSITION_ROPE)
        return MUC_OK;
    MUC_TRY(read_u32_or(r, "rope.dimension_count", config->head_dim, &rotary));
    if (rotary == 0 || (rotary != config->head_dim && config->rope_interleaved))
        return UNSUPPORTED(r, "RoPE over %u of %u elements of a head", rotary, config->head_dim);
    config->rotary_dim = rotary == config->head_dim ? 0 : rotary;
    return MUC_OK;
}

/* ---- RoPE ---- */

static const struct rope_tensor {
    const char *name;
    size_t field; /* of muc_model_config */
} rope_tensors[] = {
    { "rope_freqs.weight", offsetof(muc_model_config, rope_factors) },
    { "rope_factors_short.weight", offsetof(muc_model_config, rope_factors) },
    { "rope_factors_long.weight", offsetof(muc_model_config, rope_long_factors) },
};

bool muc_gguf_is_rope(const char *name)
{
    for (size_t i = 0; i < MUC_COUNT(rope_tensors); i++)
        if (strcmp(name, rope_tensors[i].name) == 0)
            return true;
    return false;
}

/* what the file divides each frequency by */
static muc_status read_factors(const reader *r)
{
    uint32_t half = (r->config->rotary_dim ? r->config->rotary_dim : r->config->head_dim) / 2;

    for (size_t i = 0; i < MUC_COUNT(rope_tensors); i++) {
        const muc_tensor_view *view = find_tensor(r, rope_tensors[i].name);
        const float **field = (const float **)((char *)r->config + rope_tensors[i].field);
        float *factors;

        if (!view)
            continue;
        if (view->elements != half)
            return muc_fail(r->gguf->ctx, MUC_MALFORMED, view->file, view->offset,
                            "tensor '%s' has %llu factors for %u frequencies", view->name,
                            (unsigned long long)view->elements, half);
        if (r->config->rope_kind != MUC_ROPE_PLAIN && r->config->rope_kind != MUC_ROPE_FACTORS)
            return UNSUPPORTED(r, "tensor '%s' beside another RoPE scaling", view->name);
        MUC_TRY(MUC_ARENA_NEW(r->gguf->ctx, r->gguf->arena, half, &factors));
        MUC_TRY(muc_tensor_to_f32(r->gguf->ctx, view, 0, half, factors));
        *field = factors;
        r->config->rope_kind = MUC_ROPE_FACTORS;
    }
    if (r->config->rope_long_factors && !r->config->rope_factors)
        return UNSUPPORTED(r, "long factors of RoPE without short ones");
    return MUC_OK;
}

/* 0.1 * weight * log(factor) + 1 */
static double magnitude_of(double factor, double weight)
{
    return factor <= 1 ? 1 : 0.1 * weight * muc_log(factor) + 1;
}

static muc_status read_yarn(const reader *r)
{
    muc_model_config *config = r->config;
    double weight, magnitude, share, factor = config->rope_factor;

    config->rope_kind = MUC_ROPE_YARN;
    config->rope_whole_turns = true;
    MUC_TRY(read_double_or(r, "rope.scaling.yarn_beta_slow", 1, &config->rope_low_factor));
    MUC_TRY(read_double_or(r, "rope.scaling.yarn_beta_fast", 32, &config->rope_high_factor));
    MUC_TRY(read_double_or(r, "rope.scaling.yarn_log_multiplier", 0, &weight));
    MUC_TRY(read_double_or(r, "rope.scaling.yarn_ext_factor", 1, &share));
    magnitude = magnitude_of(factor, 1) / magnitude_of(factor, weight);
    config->rope_magnitude *= magnitude;
    MUC_TRY(read_double_or(r, "rope.scaling.yarn_attn_factor", magnitude, &magnitude));
    if (share < 1 || share > 1 || fabs(magnitude - config->rope_magnitude) > 1e-5)
        return UNSUPPORTED(r,
                           "YaRN with an extrapolation factor of %g and an attention factor of %g",
                           share, magnitude);
    return MUC_OK;
}

static muc_status read_rope(const reader *r)
{
    muc_model_config *config = r->config;
    char key[KEY_BYTES];
    const char *scaling;

    MUC_TRY(read_double_or(r, "rope.freq_base", 10000, &config->rope_theta));
    MUC_TRY(read_double_or(r, "rope.freq_base_swa",
                           config->family == MUC_FAMILY_GEMMA3 ? 10000 : config->rope_theta,
                           &config->rope_local_theta));
    MUC_TRY(read_double_or(r, "rope.scaling.attn_factor", 1, &config->rope_magnitude));
    MUC_TRY(read_u32_or(r, "rope.scaling.original_context_length", config->context,
                        &config->rope_original_context));
    MUC_TRY(read_double_or(r, "rope.scale_linear", 1, &config->rope_factor));
    MUC_TRY(read_double_or(r, "rope.scaling.factor", config->rope_factor, &config->rope_factor));
    MUC_TRY(muc_gguf_string_or_null(r->gguf, key_of(r, "rope.scaling.type", key), &scaling));
    if (scaling && strcmp(scaling, "yarn") == 0)
        MUC_TRY(read_yarn(r));
    else if (!scaling || strcmp(scaling, "linear") == 0)
        config->rope_kind =
            config->rope_factor < 1 || config->rope_factor > 1 ? MUC_ROPE_LINEAR : MUC_ROPE_PLAIN;
    else if (strcmp(scaling, "none") != 0 && strcmp(scaling, "longrope") != 0)
        return UNSUPPORTED(r, "RoPE scaling of type '%s', expected none, linear, yarn or longrope",
                           scaling);
    MUC_TRY(read_factors(r));
    if (scaling && strcmp(scaling, "longrope") == 0 && !config->rope_factors)
        return UNSUPPORTED(r, "RoPE scaling of type longrope without its factors");
    return MUC_OK;
}

/* ---- windows ---- */

static muc_status read_pattern(const reader *r, uint32_t *pattern, const uint8_t **list)
{
    char key[KEY_BYTES];
    const muc_gguf_value *value =
        muc_gguf_find(r->gguf, key_of(r, "attention.sliding_window_pattern", key));

    *pattern = r->kind->pattern;
    *list = NULL;
    if (!value || value->type != MUC_GGUF_ARRAY)
        return muc_gguf_u32_or(r->gguf, key, *pattern, pattern);
    MUC_TRY(muc_gguf_array_or_null(r->gguf, key, MUC_GGUF_BOOL, &value));
    if (value->count != r->config->layers)
        return muc_fail(r->gguf->ctx, MUC_MALFORMED, r->gguf->bytes.name, value->offset,
                        "'%s' has %llu elements for %u layers", key,
                        (unsigned long long)value->count, r->config->layers);
    *list = value->data;
    return MUC_OK;
}

static muc_status read_views(const reader *r)
{
    muc_model_config *config = r->config;
    bool has_local = config->family == MUC_FAMILY_GEMMA3 || config->family == MUC_FAMILY_OLMO2;
    muc_layer_view *views;
    uint32_t window, pattern;
    const uint8_t *list;
    bool differ = false;

    MUC_TRY(read_u32_or(r, "attention.sliding_window", r->kind->window, &window));
    MUC_TRY(read_pattern(r, &pattern, &list));
    if (window > 0 && pattern == 0 && !list && window < config->context)
        return UNSUPPORTED(r, "a window of %u in a context of %u: a %s has none", window,
                           config->context, config->architecture);
    if (config->layers > MOST_LAYERS) /* what muc_checkpoint_check_config refuses */
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(r->gguf->ctx, r->gguf->arena, config->layers, &views));
    for (uint32_t i = 0; i < config->layers; i++) {
        bool slides = window > 0 && (list ? list[i] != 0 : pattern == 1 || (i + 1) % pattern != 0);

        if (slides && window < config->context) /* a longer one hides nothing */
            views[i].window = window;
        if (slides && has_local)
            views[i].angles = MUC_ANGLES_LOCAL;
        if (config->family == MUC_FAMILY_SMOLLM3 && (i + 1) % STILL_LAYER == 0)
            views[i].angles = MUC_ANGLES_NONE;
        differ = differ || views[i].window || views[i].angles != MUC_ANGLES_GLOBAL;
    }
    config->layer_views = differ ? views : NULL;
    return MUC_OK;
}

/* ---- the rest ---- */

enum { PLAIN, INVERSE };

static muc_status read_numbers(const reader *r)
{
    static const struct {
        const char *key;
        size_t field;
        int form;
    } rows[] = {
#define MUC_GGUF_NUMBER(key, field, form) { key, offsetof(muc_model_config, field), form },
#include "formats/gguf/gguf_numbers.def"
#undef MUC_GGUF_NUMBER
    };
    muc_model_config *config = r->config;
    bool is_gemma = config->family == MUC_FAMILY_GEMMA || config->family == MUC_FAMILY_GEMMA2 ||
                    config->family == MUC_FAMILY_GEMMA3;

    if (is_gemma)
        config->embedding_factor = sqrt(config->dim);
    if (r->kind->wide_layers && r->kind->wide_layers == config->layers && config->heads)
        config->attention_factor = 1 / sqrt((double)config->dim / config->heads);
    for (size_t i = 0; i < MUC_COUNT(rows); i++) {
        double value;

        MUC_TRY(read_double_or(r, rows[i].key, 0, &value));
        if (!(value >= 0 && value <= 1e6))
            return UNSUPPORTED(r, "'%s' is %g, expected 0 to 1000000", rows[i].key, value);
        if (value > 0) {
            value = rows[i].form == INVERSE ? 1 / value : value;
            memcpy((char *)config + rows[i].field, &value, sizeof(value));
        }
    }
    return read_double_or(r,
                          config->norm == MUC_NORM_LAYER ? "attention.layer_norm_epsilon"
                                                         : "attention.layer_norm_rms_epsilon",
                          0, &config->norm_epsilon);
}

static muc_status read_features(const reader *r)
{
    muc_model_config *config = r->config;
    char key[KEY_BYTES];

    MUC_TRY(muc_gguf_bool_or(r->gguf, key_of(r, "use_parallel_residual", key), config->parallel,
                             &config->parallel));
    config->qkv_bias = r->kind->qkv_bias || find_tensor(r, "blk.0.attn_q.bias");
    config->output_bias = config->ffn == MUC_FFN_PLAIN || find_tensor(r, "blk.0.attn_output.bias");
    config->ffn_bias = config->ffn == MUC_FFN_PLAIN || find_tensor(r, "blk.0.ffn_up.bias");
    return MUC_OK;
}

muc_status muc_gguf_read_config(const muc_gguf *gguf, muc_checkpoint *checkpoint)
{
    reader r = { .gguf = gguf, .checkpoint = checkpoint, .config = &checkpoint->config };

    MUC_TRY(find_architecture(&r));
    MUC_TRY(read_sizes(&r));
    if (r.config->position == MUC_POSITION_ROPE)
        MUC_TRY(read_rope(&r));
    MUC_TRY(read_views(&r));
    MUC_TRY(read_numbers(&r));
    return read_features(&r);
}
