/* gguf.c - reads a GGUF file as a checkpoint. */
#include "formats/gguf/gguf.h"

#include <string.h>

#include "formats/format.h"
#include "formats/gguf/gguf_config.h"

enum { LAYER_DIGITS = 5 };

typedef struct reader {
    muc_gguf gguf;
    muc_checkpoint *checkpoint;
    muc_model_config *config;
} reader;

bool muc_gguf_probe(const muc_source *source)
{
    return source->bytes.size >= 4 && memcmp(source->bytes.data, "GGUF", 4) == 0;
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

/* the gate's rows and then up's (Phi-3) */
static bool has_joint_gate(const reader *r, const muc_tensor_view *stored)
{
    return r->config->ffn == MUC_FFN_GATED && stored->rank == 2 &&
           stored->dims[0] == 2 * (uint64_t)r->config->ffn_dim;
}

static muc_status add_joint_gate(const reader *r, const muc_tensor_view *stored, uint32_t layer)
{
    static const unsigned parts[] = { MUC_LLAMA_GATE, MUC_LLAMA_UP };

    for (size_t i = 0; i < MUC_COUNT(parts); i++) {
        muc_tensor_view view = *stored;

        view.dims[0] /= 2;
        view.data += stored->bytes / 2 * i;
        MUC_TRY(muc_tensor_measure(r->gguf.ctx, &view));
        MUC_TRY(muc_llama_tensor_name(r->gguf.ctx, r->gguf.arena, parts[i], layer, &view.name));
        MUC_TRY(muc_checkpoint_add(r->gguf.ctx, r->checkpoint, &view));
    }
    return MUC_OK;
}

static muc_status add_tensor(const reader *r, const muc_tensor_view *stored)
{
    static const char prefix[] = "blk.", marker[] = "blk.%u";
    muc_tensor_view view = *stored;
    const char *name = stored->name, *suffix = NULL;
    uint32_t layer = 0;
    bool inner = strncmp(name, prefix, sizeof(prefix) - 1) == 0 &&
                 split_name(name + sizeof(prefix) - 1, &layer, &suffix);

    if (muc_gguf_is_rope(name))
        return MUC_OK;
    if (inner && strcmp(suffix, ".ffn_up.weight") == 0 && has_joint_gate(r, stored))
        return add_joint_gate(r, stored, layer);
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
                    "tensor '%s' has no place in a %s", name, r->config->architecture);
}

muc_status muc_gguf_read(muc_context *ctx, const muc_source *source, muc_checkpoint *checkpoint)
{
    reader r = { .checkpoint = checkpoint, .config = &checkpoint->config };

    MUC_TRY(muc_gguf_parse(ctx, source->bytes, &checkpoint->arena, &r.gguf));
    MUC_TRY(muc_gguf_read_config(&r.gguf, checkpoint));
    MUC_TRY(read_tokenizer(&r));
    MUC_TRY(muc_checkpoint_check_config(ctx, checkpoint)); /* fused tensors are parted by it */
    for (size_t i = 0; i < r.gguf.tensor_count; i++)
        MUC_TRY(add_tensor(&r, &r.gguf.tensors[i]));
    return MUC_OK;
}
