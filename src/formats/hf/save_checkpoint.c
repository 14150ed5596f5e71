/* save_checkpoint.c - writes a model as a Hugging Face folder. */
#include "formats/hf/save_checkpoint.h"

#include "formats/hf/hf_config.h"

#include <inttypes.h>
#include <string.h>

enum { HEADER_ALIGNMENT = 8 };

/* ---- config.json ---- */

static const struct row {
    const char *name, *type;
    muc_family family;
} families[] = {
#define MUC_HF_ARCHITECTURE(name, type, family, head_dim, qkv, output, windows, keys) \
    { name, type, MUC_FAMILY_##family },
#include "formats/hf/architectures.def"
#undef MUC_HF_ARCHITECTURE
};

static void add_rope(const muc_model_config *c, muc_text *text)
{
    muc_text_add(text, "  \"rope_theta\": %.17g,\n", c->rope_theta);
    if (c->rope_kind != MUC_ROPE_LLAMA3)
        return;
    muc_text_add(text,
                 "  \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": %.17g, "
                 "\"low_freq_factor\": %.17g, \"high_freq_factor\": %.17g, "
                 "\"original_max_position_embeddings\": %u},\n",
                 c->rope_factor, c->rope_low_factor, c->rope_high_factor, c->rope_original_context);
}

static void add_tokens(const muc_model_config *c, muc_text *text)
{
    if (c->has_bos)
        muc_text_add(text, "  \"bos_token_id\": %u,\n", c->bos);
    for (uint32_t i = 0; i < c->eos_count; i++)
        muc_text_add(text, "%s%u%s", i ? ", " : "  \"eos_token_id\": [", c->eos[i],
                     i + 1 < c->eos_count ? "" : "],\n");
}

static uint32_t layer_number(const muc_model_config *c, uint32_t layer, size_t at)
{
    uint32_t number;

    memcpy(&number, (const char *)&c->layer_sizes[layer] + at, sizeof(number));
    return number;
}

/* one number, or where layers differ in it a list */
static void add_layers_u32(const muc_model_config *c, const char *key, size_t at, uint32_t all,
                           muc_text *text)
{
    bool differ = false;

    muc_text_add(text, "  \"%s\": ", key);
    for (uint32_t i = 0; c->layer_sizes && i < c->layers; i++)
        differ = differ || layer_number(c, i, at) != all;
    if (!differ)
        muc_text_add(text, "%u", all);
    for (uint32_t i = 0; differ && i < c->layers; i++)
        muc_text_add(text, "%s%u%s", i ? ", " : "[", layer_number(c, i, at),
                     i + 1 < c->layers ? "" : "]");
    muc_text_add(text, ",\n");
}

void muc_hf_add_config(const muc_model_config *c, const char *members, muc_text *text)
{
    const muc_hf_keys *keys = muc_hf_keys_of(c->family);
    const struct row *row = families;

    while (row->family != c->family)
        row++;
    muc_text_add(text, "{\n  \"architectures\": [\"%s\"],\n  \"model_type\": \"%s\",\n", row->name,
                 row->type);
    muc_text_add(text, "  \"%s\": %u,\n", keys->dim, c->dim);
    add_layers_u32(c, keys->ffn_dim, offsetof(muc_layer_sizes, ffn_dim), c->ffn_dim, text);
    muc_text_add(text, "  \"%s\": %u,\n", keys->layers, c->layers);
    add_layers_u32(c, keys->heads, offsetof(muc_layer_sizes, heads), c->heads, text);
    if (keys->kv_heads)
        add_layers_u32(c, keys->kv_heads, offsetof(muc_layer_sizes, kv_heads), c->kv_heads, text);
    muc_text_add(text, "  \"head_dim\": %u,\n", c->head_dim);
    muc_text_add(text, "  \"vocab_size\": %u,\n  \"%s\": %u,\n", c->vocabulary, keys->context,
                 c->context);
    muc_text_add(text, "  \"%s\": %.17g,\n", keys->epsilon, c->norm_epsilon);
    if (c->position == MUC_POSITION_ROPE)
        add_rope(c, text);
    add_tokens(c, text);
    muc_text_add(text, "%s", members);
    if (c->family != MUC_FAMILY_GPT2)
        muc_text_add(text, "  \"attention_bias\": %s,\n", c->qkv_bias ? "true" : "false");
    muc_text_add(text, "  \"tie_word_embeddings\": %s,\n", c->tied ? "true" : "false");
    muc_text_add(text, "  \"%s\": \"%s\",\n  \"torch_dtype\": \"float32\"\n}\n", keys->activation,
                 muc_activation_get(c->activation)->name);
}

/* ---- model.safetensors ---- */

static const char *type_name(muc_dtype dtype)
{
    static const struct {
        muc_dtype dtype;
        const char *name;
    } names[] = {
        { MUC_F32, "F32" }, { MUC_F16, "F16" }, { MUC_BF16, "BF16" },
        { MUC_I8, "I8" },   { MUC_U8, "U8" },
    };

    for (size_t i = 0; i < MUC_COUNT(names); i++)
        if (names[i].dtype == dtype)
            return names[i].name;
    return NULL;
}

static muc_status add_header(muc_context *ctx, const muc_tensor_view *views, size_t count,
                             muc_text *text)
{
    uint64_t at = 0;

    muc_text_add(text, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < count; i++) {
        const muc_tensor_view *view = &views[i];

        if (!type_name(view->dtype))
            return muc_fail(ctx, MUC_BUG, "safetensors", MUC_NO_OFFSET,
                            "tensor '%s' of type %s cannot be written", view->name,
                            muc_dtype_get(view->dtype)->name);
        muc_text_add(text, ",");
        muc_text_add_json(text, view->name);
        muc_text_add(text, ":{\"dtype\":\"%s\",\"shape\":[", type_name(view->dtype));
        for (uint32_t d = 0; d < view->rank; d++)
            muc_text_add(text, "%s%" PRIu64, d ? "," : "", view->dims[d]);
        muc_text_add(text, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at, at + view->bytes);
        at += view->bytes;
    }
    muc_text_add(text, "}");
    while (text->size % HEADER_ALIGNMENT != 0 && !text->failed)
        muc_text_add(text, " ");
    return muc_text_status(ctx, text);
}

muc_status muc_safetensors_print_head(muc_context *ctx, const muc_tensor_view *views, size_t count,
                                      muc_text *text)
{
    muc_text header = { 0 };
    muc_status status = add_header(ctx, views, count, &header);
    uint8_t length[8];

    muc_store_u64(length, header.size);
    if (status == MUC_OK) {
        muc_text_add_bytes(text, length, sizeof(length));
        muc_text_add_bytes(text, header.data, header.size);
    }
    muc_text_free(&header);
    return status == MUC_OK ? muc_text_status(ctx, text) : status;
}

muc_status muc_safetensors_print(muc_context *ctx, const muc_tensor_view *views, size_t count,
                                 muc_text *text)
{
    MUC_TRY(muc_safetensors_print_head(ctx, views, count, text));
    for (size_t i = 0; i < count; i++)
        muc_text_add_bytes(text, views[i].data, (size_t)views[i].bytes);
    return muc_text_status(ctx, text);
}
