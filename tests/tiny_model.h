/* tiny_model.h - a Llama of a few hundred weights, and writers of it that share no code with the
 * readers: every test of a file format can run without the data folder. */
#ifndef TINY_MODEL_H
#define TINY_MODEL_H

#include "base/bytes.h"
#include "base/half.h"
#include "base/text.h"
#include "check.h"
#include "formats/checkpoint.h"

enum {
    TINY_DIM = 8,
    TINY_FFN = 12,
    TINY_LAYERS = 2,
    TINY_HEADS = 2,
    TINY_KV_HEADS = 1,
    TINY_HEAD_DIM = 4,
    TINY_VOCABULARY = 6,
    TINY_CONTEXT = 10,
    TINY_KV_DIM = TINY_KV_HEADS * TINY_HEAD_DIM,
};

typedef struct tiny_tensor {
    const char *hf, *gguf; /* of one %d if per_layer */
    bool per_layer;
    unsigned rows, columns; /* columns 0: a vector */
} tiny_tensor;

enum {
    TINY_EMBED,
    TINY_NORM,
    TINY_Q,
    TINY_K,
    TINY_V,
    TINY_O,
    TINY_FFN_NORM,
    TINY_GATE,
    TINY_DOWN,
    TINY_UP,
    TINY_FINAL_NORM,
    TINY_HEAD,
    TINY_TENSORS
};

static const tiny_tensor tiny_tensors[TINY_TENSORS] = {
    { "model.embed_tokens.weight", "token_embd.weight", false, TINY_VOCABULARY, TINY_DIM },
    { "model.layers.%d.input_layernorm.weight", "blk.%d.attn_norm.weight", true, TINY_DIM, 0 },
    { "model.layers.%d.self_attn.q_proj.weight", "blk.%d.attn_q.weight", true, TINY_DIM, TINY_DIM },
    { "model.layers.%d.self_attn.k_proj.weight", "blk.%d.attn_k.weight", true, TINY_KV_DIM,
      TINY_DIM },
    { "model.layers.%d.self_attn.v_proj.weight", "blk.%d.attn_v.weight", true, TINY_KV_DIM,
      TINY_DIM },
    { "model.layers.%d.self_attn.o_proj.weight", "blk.%d.attn_output.weight", true, TINY_DIM,
      TINY_DIM },
    { "model.layers.%d.post_attention_layernorm.weight", "blk.%d.ffn_norm.weight", true, TINY_DIM,
      0 },
    { "model.layers.%d.mlp.gate_proj.weight", "blk.%d.ffn_gate.weight", true, TINY_FFN, TINY_DIM },
    { "model.layers.%d.mlp.down_proj.weight", "blk.%d.ffn_down.weight", true, TINY_DIM, TINY_FFN },
    { "model.layers.%d.mlp.up_proj.weight", "blk.%d.ffn_up.weight", true, TINY_FFN, TINY_DIM },
    { "model.norm.weight", "output_norm.weight", false, TINY_DIM, 0 },
    { "lm_head.weight", "output.weight", false, TINY_VOCABULARY, TINY_DIM },
};

static inline unsigned tiny_elements(unsigned t)
{
    return tiny_tensors[t].rows * (tiny_tensors[t].columns ? tiny_tensors[t].columns : 1);
}

/* Element i of a tensor, in the order of rotate-half rows: a multiple of 1/4 that is its own. */
static inline float tiny_value(unsigned t, unsigned layer, unsigned i)
{
    return (float)((int)((t * 1009 + layer * 131 + i * 7) % 251) - 125) / 4;
}

/* The same where rows of q and k are stored as adjacent pairs. */
static inline float tiny_pair_value(unsigned t, unsigned layer, unsigned i)
{
    unsigned row = i / TINY_DIM, half = TINY_HEAD_DIM / 2, in_head = row % TINY_HEAD_DIM;

    if (t == TINY_Q || t == TINY_K) {
        unsigned source = in_head % 2 ? half + in_head / 2 : in_head / 2;

        i += (source - in_head) * TINY_DIM; /* modulo 2^32 */
    }
    return tiny_value(t, layer, i);
}

static inline void put_u32(muc_text *out, uint32_t value)
{
    const uint8_t bytes[4] = { (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
                               (uint8_t)(value >> 24) };

    muc_text_add_bytes(out, bytes, 4);
}

static inline void put_u64(muc_text *out, uint64_t value)
{
    put_u32(out, (uint32_t)value);
    put_u32(out, (uint32_t)(value >> 32));
}

static inline void put_f32(muc_text *out, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, 4);
    put_u32(out, bits);
}

static inline muc_bytes bytes_of(const muc_text *text, const char *name)
{
    muc_bytes bytes = { (const uint8_t *)text->data, text->size, name };

    return bytes;
}

/* Fails the test unless the checkpoint holds exactly the tiny model. */
static inline void check_tiny(muc_context *ctx, const muc_checkpoint *checkpoint, bool tied)
{
    const muc_model_config *config = &checkpoint->config;
    size_t count = 0;

    CHECK_EQ(config->dim, TINY_DIM);
    CHECK_EQ(config->ffn_dim, TINY_FFN);
    CHECK_EQ(config->layers, TINY_LAYERS);
    CHECK_EQ(config->heads, TINY_HEADS);
    CHECK_EQ(config->kv_heads, TINY_KV_HEADS);
    CHECK_EQ(config->head_dim, TINY_HEAD_DIM);
    CHECK_EQ(config->vocabulary, TINY_VOCABULARY);
    CHECK_EQ(config->context, TINY_CONTEXT);
    CHECK_EQ(config->tied, tied);
    for (unsigned t = 0; t < (tied ? TINY_HEAD : TINY_TENSORS); t++) {
        for (unsigned layer = 0; layer < (tiny_tensors[t].per_layer ? TINY_LAYERS : 1); layer++) {
            float values[TINY_FFN * TINY_DIM];
            const muc_tensor_view *view;
            char name[128];

            snprintf(name, sizeof(name), tiny_tensors[t].hf, layer);
            view = muc_checkpoint_find(checkpoint, name);
            assert_non_null(view);
            CHECK_EQ(view->elements, tiny_elements(t));
            CHECK_OK(ctx, muc_tensor_to_f32(ctx, view, 0, view->elements, values));
            for (unsigned i = 0; i < view->elements; i++)
                if (memcmp(&values[i], &(float){ tiny_value(t, layer, i) }, 4) != 0)
                    fail_msg("%s[%u] is %g", name, i, (double)values[i]);
            count++;
        }
    }
    CHECK_EQ(checkpoint->tensor_count, count);
}

/* Opens bytes that may be damaged, from a heap block of exactly their size; what opens must give
 * all its tensors or refuse them in words. */
static inline muc_status open_damaged(muc_context *ctx, const char *name, const void *data,
                                      size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    muc_checkpoint checkpoint;
    muc_status status;

    assert_non_null(copy);
    if (size)
        memcpy(copy, data, size);
    status = muc_checkpoint_open_bytes(ctx, (muc_bytes){ copy, size, name }, &checkpoint);
    if (status == MUC_OK) {
        for (size_t i = 0; i < checkpoint.tensor_count; i++) {
            const muc_tensor_view *view = &checkpoint.tensors[i];
            float *values = malloc(view->elements * sizeof(*values) + 1);

            assert_non_null(values);
            if (muc_tensor_to_f32(ctx, view, 0, view->elements, values) != MUC_OK)
                CHECK(muc_error_message(ctx)[0] != '\0');
            muc_error_clear(ctx);
            free(values);
        }
        muc_checkpoint_close(&checkpoint);
    } else {
        CHECK(muc_error_message(ctx)[0] != '\0');
        muc_error_clear(ctx);
    }
    free(copy);
    return status;
}

/* Every shorter file fails; every single flipped bit of the first header bytes fails or opens. */
static inline void check_damage(muc_context *ctx, const char *name, const muc_text *file,
                                size_t header)
{
    uint8_t *copy = malloc(file->size);

    assert_non_null(copy);
    for (size_t size = 0; size < file->size; size++)
        if (open_damaged(ctx, name, file->data, size) == MUC_OK)
            fail_msg("opens when cut to %zu of %zu bytes", size, file->size);
    memcpy(copy, file->data, file->size);
    for (size_t i = 0; i < header; i++) {
        static const uint8_t masks[] = { 1, 2, 4, 8, 16, 32, 64, 128, 255 };

        for (size_t m = 0; m < sizeof(masks); m++) {
            copy[i] ^= masks[m];
            open_damaged(ctx, name, copy, file->size);
            copy[i] ^= masks[m];
        }
    }
    free(copy);
}

/* Opens a file, or with file NULL a folder, with the first allocation failing, then the second,
 * until none does: each failure is told. */
static inline void check_failed_allocations(muc_context *ctx, const char *path,
                                            const muc_text *file)
{
    muc_status status = MUC_NOMEM;

    for (long k = 0; status != MUC_OK; k++) {
        muc_checkpoint checkpoint;

        muc_alloc_fail_after(k);
        status = file ? muc_checkpoint_open_bytes(ctx, bytes_of(file, path), &checkpoint)
                      : muc_checkpoint_open(ctx, path, &checkpoint);
        muc_alloc_fail_after(-1);
        CHECK(status == MUC_OK || status == MUC_NOMEM);
        CHECK(k < 1000);
        muc_error_clear(ctx);
        if (status == MUC_OK)
            muc_checkpoint_close(&checkpoint);
    }
}

#endif
