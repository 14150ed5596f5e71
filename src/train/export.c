/* export.c - a model as the folder that every reader takes. */
#include "train/export.h"

#include "base/file.h"
#include "base/text.h"

static const struct row {
    const char *name, *type;
    muc_family family;
} families[] = {
#define MUC_HF_ARCHITECTURE(name, type, family, head_dim, qkv, output, norm, needs_switch) \
    { name, type, MUC_FAMILY_##family },
#include "formats/hf/architectures.def"
#undef MUC_HF_ARCHITECTURE
};

muc_status muc_train_import(muc_context *ctx, const muc_train_shape *shape,
                            const muc_checkpoint *checkpoint, muc_scalar *weights)
{
    memset(weights, 0, shape->elements * sizeof(*weights));
    for (size_t t = 0; t < shape->tensor_count; t++) {
        const muc_train_tensor *tensor = &shape->tensors[t];
        const muc_tensor_view *view = muc_checkpoint_find(checkpoint, tensor->name);

        if (!view || view->elements != tensor->elements)
            return muc_fail(ctx, MUC_MALFORMED, checkpoint->path, MUC_NO_OFFSET,
                            "no tensor '%s' of %zu elements", tensor->name, tensor->elements);
        for (size_t i = 0; i < tensor->elements; i++) {
            float value;

            MUC_TRY(muc_tensor_to_f32(ctx, view, i, 1, &value));
            weights[tensor->first + i] = value;
        }
    }
    return MUC_OK;
}

static muc_status check_uniform(muc_context *ctx, const muc_train_shape *shape)
{
    const muc_model_config *c = &shape->config;

    for (uint32_t i = 0; i < c->layers; i++) {
        const muc_train_layer *l = &shape->layers[i];

        if (l->heads != c->heads || l->kv_heads != c->kv_heads || l->ffn_dim != c->ffn_dim)
            return muc_fail(ctx, MUC_UNSUPPORTED, "train", MUC_NO_OFFSET,
                            "layer %u has %u heads and %u neurons, the model %u and %u", i,
                            l->heads, l->ffn_dim, c->heads, c->ffn_dim);
    }
    return MUC_OK;
}

static void add_config(const muc_model_config *c, muc_text *text)
{
    const struct row *row = families;

    while (row->family != c->family)
        row++;
    muc_text_add(text, "{\n  \"architectures\": [\"%s\"],\n  \"model_type\": \"%s\",\n", row->name,
                 row->type);
    muc_text_add(text, "  \"hidden_size\": %u,\n  \"intermediate_size\": %u,\n", c->dim,
                 c->ffn_dim);
    muc_text_add(text, "  \"num_hidden_layers\": %u,\n  \"num_attention_heads\": %u,\n", c->layers,
                 c->heads);
    muc_text_add(text, "  \"num_key_value_heads\": %u,\n  \"head_dim\": %u,\n", c->kv_heads,
                 c->head_dim);
    muc_text_add(text, "  \"vocab_size\": %u,\n  \"max_position_embeddings\": %u,\n", c->vocabulary,
                 c->context);
    muc_text_add(text, "  \"rms_norm_eps\": %.17g,\n  \"rope_theta\": %.17g,\n", c->norm_epsilon,
                 c->rope_theta);
    if (c->rope_kind == MUC_ROPE_LLAMA3)
        muc_text_add(text,
                     "  \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": %.17g, "
                     "\"low_freq_factor\": %.17g, \"high_freq_factor\": %.17g, "
                     "\"original_max_position_embeddings\": %u},\n",
                     c->rope_factor, c->rope_low_factor, c->rope_high_factor,
                     c->rope_original_context);
    if (c->has_bos)
        muc_text_add(text, "  \"bos_token_id\": %u,\n", c->bos);
    for (uint32_t i = 0; i < c->eos_count; i++)
        muc_text_add(text, "%s%u%s", i ? ", " : "  \"eos_token_id\": [", c->eos[i],
                     i + 1 < c->eos_count ? "" : "],\n");
    muc_text_add(text, "  \"attention_bias\": %s,\n  \"tie_word_embeddings\": %s,\n",
                 c->qkv_bias ? "true" : "false", c->tied ? "true" : "false");
    muc_text_add(text, "  \"hidden_act\": \"silu\",\n  \"torch_dtype\": \"float32\"\n}\n");
}

/* length, JSON, tensors without gaps */
static void add_tensors(const muc_train_shape *shape, const muc_scalar *weights, muc_text *text)
{
    muc_text header = { 0 };
    uint64_t at = 0;
    uint8_t word[8];

    muc_text_add(&header, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t t = 0; t < shape->tensor_count; t++) {
        const muc_train_tensor *tensor = &shape->tensors[t];
        uint64_t end = at + 4 * (uint64_t)tensor->elements;

        muc_text_add(&header, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%u", tensor->name,
                     tensor->rows);
        if (tensor->columns)
            muc_text_add(&header, ",%u", tensor->columns);
        muc_text_add(&header, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at,
                     (unsigned long long)end);
        at = end;
    }
    muc_text_add(&header, "}");
    while (header.size % 8 != 0 && !header.failed)
        muc_text_add(&header, " ");
    muc_store_u64(word, header.size);
    muc_text_add_bytes(text, word, sizeof(word));
    muc_text_add_bytes(text, header.data, header.size);
    text->failed = text->failed || header.failed;
    muc_text_free(&header);
    for (size_t t = 0; t < shape->tensor_count; t++)
        for (size_t i = 0; i < shape->tensors[t].elements; i++) {
            float value = (float)weights[shape->tensors[t].first + i];
            uint32_t bits;

            memcpy(&bits, &value, sizeof(bits));
            muc_store_u32(word, bits);
            muc_text_add_bytes(text, word, 4);
        }
}

static muc_status write(muc_context *ctx, const char *folder, const char *name,
                        const muc_text *content)
{
    muc_text path = { 0 };
    muc_status status = muc_text_status(ctx, content);

    muc_text_add(&path, "%s/%s", folder, name);
    if (status == MUC_OK)
        status = muc_text_status(ctx, &path);
    if (status == MUC_OK)
        status = muc_file_write(ctx, path.data, content->data, content->size);
    muc_text_free(&path);
    return status;
}

muc_status muc_train_export(muc_context *ctx, const muc_train_shape *shape,
                            const muc_scalar *weights, const char *folder)
{
    muc_text config = { 0 }, tensors = { 0 };
    muc_status status;

    MUC_TRY(check_uniform(ctx, shape));
    MUC_TRY(muc_make_dir(ctx, folder));
    add_config(&shape->config, &config);
    add_tensors(shape, weights, &tensors);
    status = write(ctx, folder, "model.safetensors", &tensors);
    if (status == MUC_OK)
        status = write(ctx, folder, "config.json", &config);
    muc_text_free(&config);
    muc_text_free(&tensors);
    return status;
}
