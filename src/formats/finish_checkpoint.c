/* finish_checkpoint.c - finishes a checkpoint for every reader: checks order, names, shapes and
 * limits.
 *
 * A configuration is believed only as far as the tensors bear it out: each tensor it implies must
 * exist with exactly that shape, and none may be left over.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/format.h"

enum { NAME_BYTES = 128 };

/* longer than any model of today, short enough that no product of two overflows 64 bits */
static const struct limit {
    const char *name;
    size_t field;
    uint32_t max;
} limits[] = {
    { "dim", offsetof(muc_model_config, dim), 1 << 20 },
    { "ffn_dim", offsetof(muc_model_config, ffn_dim), 1 << 22 },
    { "layers", offsetof(muc_model_config, layers), 1 << 12 },
    { "heads", offsetof(muc_model_config, heads), 1 << 12 },
    { "kv_heads", offsetof(muc_model_config, kv_heads), 1 << 12 },
    { "head_dim", offsetof(muc_model_config, head_dim), 1 << 12 },
    { "vocabulary", offsetof(muc_model_config, vocabulary), MUC_MAX_VOCABULARY },
    { "context", offsetof(muc_model_config, context), 1 << 24 },
};
static const struct real {
    const char *name;
    size_t field;
} reals[] = {
    { "embedding's factor", offsetof(muc_model_config, embedding_factor) },
    { "residuals' factor", offsetof(muc_model_config, residual_factor) },
    { "attention's factor", offsetof(muc_model_config, attention_factor) },
    { "logits' factor", offsetof(muc_model_config, logit_factor) },
    { "attention's cap", offsetof(muc_model_config, attention_cap) },
    { "logits' cap", offsetof(muc_model_config, logit_cap) },
};
static const uint64_t max_kv_elements = UINT64_C(1) << 38;

#define FAIL(status, ...) muc_fail(ctx, status, checkpoint->path, MUC_NO_OFFSET, __VA_ARGS__)

/* the words of llama_tensors.def */
enum { NONE, DIM, FFN_DIM, Q_DIM, KV_DIM, Q_NORM_DIM, K_NORM_DIM, VOCABULARY, CONTEXT };
enum {
    ALWAYS,
    UNTIED,
    QKV_BIAS,
    OUTPUT_BIAS,
    FFN_BIAS,
    GATE_BIAS,
    QK_NORM,
    INPUT_NORMS,
    INPUT_BIASES,
    INNER_NORMS,
    OUTPUT_NORMS,
    LAYER_NORM,
    LEARNED_POSITIONS,
    GATED,
};
enum { GLOBAL, LAYER };

static uint32_t size_of_dimension(const muc_model_config *config, int dimension)
{
    switch (dimension) {
    case DIM:
        return config->dim;
    case FFN_DIM:
        return config->ffn_dim;
    case Q_DIM:
        return config->heads * config->head_dim;
    case KV_DIM:
        return config->kv_heads * config->head_dim;
    case Q_NORM_DIM:
        return config->whole_norm ? config->heads * config->head_dim : config->head_dim;
    case K_NORM_DIM:
        return config->whole_norm ? config->kv_heads * config->head_dim : config->head_dim;
    case VOCABULARY:
        return config->vocabulary;
    case CONTEXT:
        return config->context;
    default:
        return 0;
    }
}

static bool tensor_is_present(const muc_model_config *config, int when)
{
    switch (when) {
    case UNTIED:
        return !config->tied;
    case QKV_BIAS:
        return config->qkv_bias;
    case OUTPUT_BIAS:
        return config->output_bias;
    case FFN_BIAS:
        return config->ffn_bias;
    case GATE_BIAS:
        return config->ffn_bias && config->ffn == MUC_FFN_GATED;
    case QK_NORM:
        return config->head_norm || config->whole_norm;
    case INPUT_NORMS:
        return !config->no_input_norms;
    case INPUT_BIASES:
        return !config->no_input_norms && config->norm == MUC_NORM_LAYER;
    case INNER_NORMS:
        return config->inner_norms;
    case OUTPUT_NORMS:
        return config->output_norms;
    case LAYER_NORM:
        return config->norm == MUC_NORM_LAYER;
    case LEARNED_POSITIONS:
        return config->position == MUC_POSITION_LEARNED;
    case GATED:
        return config->ffn == MUC_FFN_GATED;
    default:
        return true;
    }
}

muc_model_config muc_config_of_layer(const muc_model_config *config, uint32_t layer)
{
    muc_model_config out = *config;

    if (config->layer_sizes) {
        out.heads = config->layer_sizes[layer].heads;
        out.kv_heads = config->layer_sizes[layer].kv_heads;
        out.ffn_dim = config->layer_sizes[layer].ffn_dim;
        out.layer_sizes = NULL;
    }
    return out;
}

void muc_config_set_family(muc_model_config *config, muc_family family)
{
    static const muc_model_config families[] = {
#define MUC_FAMILY(id, ...) { .family = MUC_FAMILY_##id, __VA_ARGS__ },
#include "formats/families.def"
#undef MUC_FAMILY
    };

    *config = families[family];
}

const muc_activation_info *muc_activation_get(muc_activation activation)
{
    static const muc_activation_info activations[] = {
#define MUC_ACTIVATION(id, name, op, by_tanh, is_squared) \
    { name, MUC_OP_##op, by_tanh, is_squared },
#include "formats/activations.def"
#undef MUC_ACTIVATION
    };

    return &activations[activation];
}

const char *muc_config_particular(const muc_model_config *config)
{
    bool is_gated = config->ffn == MUC_FFN_GATED;
    const struct {
        const char *name;
        bool is;
    } traits[] = {
        { "windows, or layers that do not turn heads alike", config->layer_views != NULL },
        { "RoPE of a part of a head", config->rotary_dim && config->rotary_dim < config->head_dim },
        { "RoPE scaling other than Llama 3's",
          config->rope_kind != MUC_ROPE_PLAIN && config->rope_kind != MUC_ROPE_LLAMA3 },
        { "norms of all heads together", config->whole_norm },
        { "norms of heads that turn alone", config->head_norm_turns },
        { "norms inside attention and FFN", config->inner_norms },
        { "norms of what layers add", config->output_norms || config->no_input_norms },
        { "attention and FFN side by side", config->parallel },
        { "layers that are run twice", config->layers_twice },
        { "factors", config->embedding_factor > 0 || config->residual_factor > 0 ||
                         config->logit_factor > 0 || config->attention_factor > 0 },
        { "soft caps", config->attention_cap > 0 || config->logit_cap > 0 },
        { "biases of gates", is_gated && config->ffn_bias },
        { "another activation", is_gated ? config->activation != MUC_ACTIVATION_SILU
                                         : config->activation != MUC_ACTIVATION_GELU &&
                                               config->activation != MUC_ACTIVATION_GELU_NEW },
        { "LayerNorm and RoPE together",
          config->norm == MUC_NORM_LAYER && config->position == MUC_POSITION_ROPE },
        { "tensors in an order of its own",
          config->family == MUC_FAMILY_GEMMA || config->family == MUC_FAMILY_GPTNEO },
    };

    for (size_t i = 0; i < MUC_COUNT(traits); i++)
        if (traits[i].is)
            return traits[i].name;
    return NULL;
}

muc_llama_tensor muc_llama_tensor_of(const muc_model_config *config, unsigned id)
{
    static const struct row {
        const char *hf, *gguf;
        int each, rows, columns, when;
    } rows[] = {
#define MUC_LLAMA_TENSOR(id, each, hf, gguf, rows, columns, when) \
    { hf, gguf, each, rows, columns, when },
#include "formats/llama_tensors.def"
#undef MUC_LLAMA_TENSOR
    };
    const struct row *row = &rows[id];
    muc_llama_tensor tensor = {
        .hf = row->hf,
        .gguf = row->gguf,
        .per_layer = row->each == LAYER,
        .present = tensor_is_present(config, row->when),
        .dims = { size_of_dimension(config, row->rows), size_of_dimension(config, row->columns) },
    };

    return tensor;
}

muc_status muc_llama_tensor_name(muc_context *ctx, muc_arena *arena, unsigned id, uint32_t layer,
                                 const char **out)
{
    static const muc_model_config any;

    return muc_arena_format(ctx, arena, out, muc_llama_tensor_of(&any, id).hf, layer);
}

/* total, so that of two equal names the same is blamed everywhere */
static int by_name_and_place(const void *a, const void *b)
{
    const muc_tensor_view *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    if (order == 0)
        order = strcmp(x->file, y->file);
    return order ? order : (x->offset > y->offset) - (x->offset < y->offset);
}

muc_status muc_checkpoint_sort(muc_context *ctx, muc_checkpoint *checkpoint)
{
    muc_tensor_view *tensors = checkpoint->tensors;

    if (checkpoint->tensor_count == 0)
        return FAIL(MUC_MALFORMED, "the checkpoint holds no tensor");
    qsort(tensors, checkpoint->tensor_count, sizeof(*tensors), by_name_and_place);
    for (size_t i = 1; i < checkpoint->tensor_count; i++)
        if (strcmp(tensors[i - 1].name, tensors[i].name) == 0)
            return muc_fail(ctx, MUC_MALFORMED, tensors[i].file, tensors[i].offset,
                            "two tensors are named '%s'", tensors[i].name);
    return MUC_OK;
}

static muc_status check_layer(muc_context *ctx, const muc_checkpoint *checkpoint, uint32_t layer)
{
    const muc_layer_sizes *all = checkpoint->config.layer_sizes, *sizes = &all[layer];

    if (sizes->heads && sizes->kv_heads && sizes->ffn_dim && sizes->heads % sizes->kv_heads == 0)
        return MUC_OK;
    return FAIL(MUC_MALFORMED,
                "layer %u has %u heads, %u of keys, %u neurons; expected one of each at least, and "
                "heads a multiple of those of keys",
                layer, sizes->heads, sizes->kv_heads, sizes->ffn_dim);
}

static muc_status check_sizes(muc_context *ctx, const muc_checkpoint *checkpoint)
{
    const muc_model_config *config = &checkpoint->config;
    uint64_t kv_dim = (uint64_t)config->kv_heads * config->head_dim;

    for (size_t i = 0; i < MUC_COUNT(limits); i++) {
        uint32_t value;

        memcpy(&value, (const char *)config + limits[i].field, sizeof(value));
        if (value < 1 || value > limits[i].max)
            return FAIL(MUC_MALFORMED, "%s is %u, expected 1 to %u", limits[i].name, value,
                        limits[i].max);
    }
    for (uint32_t i = 0; config->layer_sizes && i < config->layers; i++)
        MUC_TRY(check_layer(ctx, checkpoint, i));
    if (!config->layer_sizes && config->heads % config->kv_heads != 0)
        return FAIL(MUC_MALFORMED, "heads, %u, is not a multiple of kv_heads, %u", config->heads,
                    config->kv_heads);
    if (config->position == MUC_POSITION_ROPE && config->head_dim % 2 != 0)
        return FAIL(MUC_MALFORMED, "head_dim, %u, is odd", config->head_dim);
    if (config->rotary_dim > config->head_dim || config->rotary_dim % 2 != 0)
        return FAIL(MUC_MALFORMED, "RoPE turns %u columns of a head's %u, expected an even number",
                    config->rotary_dim, config->head_dim);
    if (2 * kv_dim * config->layers > max_kv_elements / config->context)
        return FAIL(MUC_UNSUPPORTED,
                    "a cache of %u layers, %llu elements and %u positions is "
                    "beyond any machine",
                    config->layers, (unsigned long long)kv_dim, config->context);
    return MUC_OK;
}

static muc_status check_factors(muc_context *ctx, const muc_checkpoint *checkpoint)
{
    const muc_model_config *config = &checkpoint->config;
    const float *lists[] = { config->rope_factors, config->rope_long_factors };
    uint32_t half = (config->rotary_dim ? config->rotary_dim : config->head_dim) / 2;

    for (size_t i = 0; i < MUC_COUNT(lists); i++)
        for (uint32_t k = 0; lists[i] && k < half; k++)
            if (!(lists[i][k] >= 1e-6F && lists[i][k] <= 1e6F))
                return FAIL(MUC_MALFORMED, "factor %u of RoPE is %g, expected 1e-6 to 1000000", k,
                            (double)lists[i][k]);
    return MUC_OK;
}

static muc_status check_rope(muc_context *ctx, const muc_checkpoint *checkpoint)
{
    const muc_model_config *config = &checkpoint->config;
    bool ramp = config->rope_kind == MUC_ROPE_LLAMA3 || config->rope_kind == MUC_ROPE_YARN;

    if (config->rope_kind == MUC_ROPE_PLAIN)
        return MUC_OK;
    if (config->rope_kind == MUC_ROPE_FACTORS)
        MUC_TRY(check_factors(ctx, checkpoint));
    else if (!(config->rope_factor >= 1 && config->rope_factor <= 1e6))
        return FAIL(MUC_MALFORMED, "RoPE scaling by a factor of %g, expected 1 to 1000000",
                    config->rope_factor);
    if (ramp &&
        !(config->rope_low_factor > 0 && config->rope_high_factor > config->rope_low_factor &&
          config->rope_high_factor <= 1e6 && config->rope_original_context > 0))
        return FAIL(MUC_MALFORMED,
                    "RoPE scaling with a ramp from %g to %g turns in an original context of %u, "
                    "expected an ascending one",
                    config->rope_low_factor, config->rope_high_factor,
                    config->rope_original_context);
    if ((config->rope_kind == MUC_ROPE_YARN || config->rope_kind == MUC_ROPE_FACTORS) &&
        !(config->rope_magnitude > 0 && config->rope_magnitude <= 1e3))
        return FAIL(MUC_MALFORMED,
                    "RoPE scaling with an attention factor of %g, expected 0 to 1000",
                    config->rope_magnitude);
    return MUC_OK;
}

static muc_status check_numbers(muc_context *ctx, const muc_checkpoint *checkpoint)
{
    const muc_model_config *config = &checkpoint->config;

    /* written so that a NaN fails */
    if (!(config->norm_epsilon > 0 && config->norm_epsilon < 1))
        return FAIL(MUC_MALFORMED, "norm epsilon is %g, expected above 0 and below 1",
                    config->norm_epsilon);
    if (config->position == MUC_POSITION_ROPE &&
        !(config->rope_theta >= 1 && config->rope_theta <= 1e15))
        return FAIL(MUC_MALFORMED, "RoPE theta is %g, expected 1 to 1e15", config->rope_theta);
    MUC_TRY(check_rope(ctx, checkpoint));
    for (size_t i = 0; i < MUC_COUNT(reals); i++) {
        double value;

        memcpy(&value, (const char *)config + reals[i].field, sizeof(value));
        if (!(value >= 0 && value <= 1e6))
            return FAIL(MUC_MALFORMED, "the %s is %g, expected 0 to 1000000", reals[i].name, value);
    }
    if (config->has_bos && config->bos >= config->vocabulary)
        return FAIL(MUC_MALFORMED, "BOS is token %u of a vocabulary of %u", config->bos,
                    config->vocabulary);
    for (uint32_t i = 0; i < config->eos_count; i++)
        if (config->eos[i] >= config->vocabulary)
            return FAIL(MUC_MALFORMED, "EOS is token %u of a vocabulary of %u", config->eos[i],
                        config->vocabulary);
    return MUC_OK;
}

muc_status muc_checkpoint_check_config(muc_context *ctx, const muc_checkpoint *checkpoint)
{
    MUC_TRY(check_sizes(ctx, checkpoint));
    return check_numbers(ctx, checkpoint);
}

static bool repeats(const muc_tensor_view *head, const muc_tensor_view *embedding)
{
    return embedding && embedding->dtype == head->dtype && embedding->bytes == head->bytes &&
           memcmp(embedding->data, head->data, (size_t)head->bytes) == 0;
}

/* A missing head means a tied one, whatever the configuration says (MobileLLM's say no). A head
 * in the file of a tied model must repeat the embedding: then it is dropped. */
static muc_status settle_head(muc_context *ctx, muc_checkpoint *checkpoint)
{
    muc_model_config *config = &checkpoint->config;
    muc_tensor_view *end = checkpoint->tensors + checkpoint->tensor_count;
    const muc_tensor_view *head, *embedding;
    size_t at;

    head = muc_checkpoint_find(checkpoint, muc_llama_tensor_of(config, MUC_LLAMA_HEAD).hf);
    embedding = muc_checkpoint_find(checkpoint, muc_llama_tensor_of(config, MUC_LLAMA_EMBED).hf);
    if (!head || !config->tied || (config->head_decides && !repeats(head, embedding))) {
        config->tied = !head;
        return MUC_OK;
    }
    if (!repeats(head, embedding))
        return muc_fail(ctx, MUC_MALFORMED, head->file, head->offset,
                        "the model is tied, but '%s' is not its embedding", head->name);
    at = (size_t)(head - checkpoint->tensors);
    memmove(checkpoint->tensors + at, head + 1, (size_t)(end - (head + 1)) * sizeof(*head));
    checkpoint->tensor_count--;
    return MUC_OK;
}

static muc_status check_tensor(muc_context *ctx, const muc_checkpoint *checkpoint,
                               const muc_llama_tensor *tensor, const char *name, bool *seen)
{
    const muc_tensor_view *view = muc_checkpoint_find(checkpoint, name);
    uint32_t rank = tensor->dims[1] ? 2 : 1;

    if (!view)
        return FAIL(MUC_MALFORMED, "tensor '%s' is missing", name);
    if (view->rank != rank || view->dims[0] != tensor->dims[0] ||
        (rank == 2 && view->dims[1] != tensor->dims[1]))
        return muc_fail(ctx, MUC_MALFORMED, view->file, view->offset,
                        "tensor '%s' has rank %u and dimensions %llu, %llu; expected rank %u and "
                        "%u, %u",
                        name, view->rank, (unsigned long long)view->dims[0],
                        (unsigned long long)view->dims[1], rank, tensor->dims[0], tensor->dims[1]);
    if ((muc_dtype_get(view->dtype)->kind != MUC_DTYPE_FLOAT && !view->scales) ||
        (rank == 1 && muc_dtype_get(view->dtype)->block_elements != 1))
        return muc_fail(
            ctx, MUC_UNSUPPORTED, view->file, view->offset, "tensor '%s' has type %s, expected %s",
            name, muc_dtype_get(view->dtype)->name, rank == 1 ? "floats, not blocks" : "floats");
    seen[view - checkpoint->tensors] = true;
    return MUC_OK;
}

static muc_status check_tensors(muc_context *ctx, const muc_checkpoint *checkpoint, bool *seen)
{
    const muc_model_config *config = &checkpoint->config;

    for (unsigned id = 0; id < MUC_LLAMA_TENSOR_COUNT; id++) {
        muc_llama_tensor tensor = muc_llama_tensor_of(config, id);
        uint32_t times = tensor.per_layer ? config->layers : 1;

        for (uint32_t layer = 0; tensor.present && layer < times; layer++) {
            const muc_model_config one = muc_config_of_layer(config, layer);
            char name[NAME_BYTES];

            tensor = muc_llama_tensor_of(&one, id);
            snprintf(name, sizeof(name), tensor.hf, layer);
            MUC_TRY(check_tensor(ctx, checkpoint, &tensor, name, seen));
        }
    }
    for (size_t i = 0; i < checkpoint->tensor_count; i++)
        if (!seen[i])
            return muc_fail(ctx, MUC_UNSUPPORTED, checkpoint->tensors[i].file,
                            checkpoint->tensors[i].offset,
                            "tensor '%s' has no place in a %s of %u layers",
                            checkpoint->tensors[i].name, config->architecture, config->layers);
    return MUC_OK;
}

/* Row 2i of a head becomes row i, row 2i+1 becomes row head_dim/2 + i: what turned adjacent pairs
 * now turns the two halves. The reordered rows are a copy in the arena. */
static muc_status rotate_half(muc_context *ctx, muc_checkpoint *checkpoint, const char *name)
{
    const muc_tensor_view *found = muc_checkpoint_find(checkpoint, name);
    muc_tensor_view *view = checkpoint->tensors + (found - checkpoint->tensors);
    uint64_t rows = view->dims[0], head_dim = checkpoint->config.head_dim;
    size_t row_bytes = (size_t)(view->bytes / rows);
    uint8_t *copy;

    MUC_TRY(MUC_ARENA_NEW(ctx, &checkpoint->arena, (size_t)view->bytes, &copy));
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t head = row / head_dim, i = row % head_dim;
        uint64_t to = head * head_dim + i / 2 + (i % 2) * (head_dim / 2);

        memcpy(copy + to * row_bytes, view->data + row * row_bytes, row_bytes);
    }
    muc_mapped_rest(checkpoint->files, view->data, (size_t)view->bytes);
    view->data = copy;
    return MUC_OK;
}

static muc_status rotate_all(muc_context *ctx, muc_checkpoint *checkpoint)
{
    static const unsigned turned[] = { MUC_LLAMA_Q, MUC_LLAMA_K, MUC_LLAMA_Q_BIAS,
                                       MUC_LLAMA_K_BIAS };

    for (size_t i = 0; i < MUC_COUNT(turned); i++) {
        muc_llama_tensor tensor = muc_llama_tensor_of(&checkpoint->config, turned[i]);

        for (uint32_t layer = 0; tensor.present && layer < checkpoint->config.layers; layer++) {
            char name[NAME_BYTES];

            snprintf(name, sizeof(name), tensor.hf, layer);
            MUC_TRY(rotate_half(ctx, checkpoint, name));
        }
    }
    return MUC_OK;
}

muc_status muc_checkpoint_finish(muc_context *ctx, muc_checkpoint *checkpoint)
{
    muc_status status;
    bool *seen;

    MUC_TRY(muc_checkpoint_sort(ctx, checkpoint));
    MUC_TRY(muc_checkpoint_check_config(ctx, checkpoint));
    MUC_TRY(settle_head(ctx, checkpoint));
    MUC_TRY(MUC_NEW_ARRAY(ctx, checkpoint->path, checkpoint->tensor_count, &seen));
    status = check_tensors(ctx, checkpoint, seen);
    free(seen);
    MUC_TRY(status);
    return checkpoint->config.rope_interleaved ? rotate_all(ctx, checkpoint) : MUC_OK;
}
