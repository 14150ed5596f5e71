/* vocabulary.c - the tokenizer.ggml.* values of a GGUF file. */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "formats/format.h"
#include "formats/gguf/gguf.h"

static muc_status fail_value(const muc_gguf *gguf, const muc_gguf_value *value, const char *what,
                             uint64_t number)
{
    return muc_fail(gguf->ctx, MUC_MALFORMED, gguf->bytes.name, value->offset, "'%s': %s %llu",
                    value->key, what, (unsigned long long)number);
}

/* The container has checked every length against the file. */
static muc_status read_pieces(const muc_gguf *gguf, const char *key, uint32_t *count,
                              const muc_stored_piece **out)
{
    const muc_gguf_value *value;
    const uint8_t *at;
    muc_stored_piece *pieces;

    MUC_TRY(muc_gguf_array_or_null(gguf, key, MUC_GGUF_STRING, &value));
    if (!value)
        return MUC_OK;
    if (value->count > MUC_MAX_VOCABULARY)
        return fail_value(gguf, value, "too many entries:", value->count);
    MUC_TRY(MUC_ARENA_NEW(gguf->ctx, gguf->arena, (size_t)value->count, &pieces));
    at = value->data;
    for (uint64_t i = 0; i < value->count; i++) {
        pieces[i].size = (uint32_t)muc_load_u64(at);
        pieces[i].data = at + 8;
        at += 8 + pieces[i].size;
    }
    *count = (uint32_t)value->count;
    *out = pieces;
    return MUC_OK;
}

static muc_status find_column(const muc_gguf *gguf, const char *key, muc_gguf_type element,
                              uint32_t count, const muc_gguf_value **out)
{
    MUC_TRY(muc_gguf_array_or_null(gguf, key, element, out));
    if (*out && (*out)->count != count)
        return fail_value(gguf, *out, "the vocabulary has another number of tokens than", count);
    return MUC_OK;
}

static muc_status read_scores(const muc_gguf *gguf, muc_stored_vocabulary *vocabulary)
{
    const muc_gguf_value *value;
    float *scores;

    MUC_TRY(find_column(gguf, "tokenizer.ggml.scores", MUC_GGUF_F32, vocabulary->count, &value));
    if (!value)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(gguf->ctx, gguf->arena, vocabulary->count, &scores));
    for (uint32_t i = 0; i < vocabulary->count; i++) {
        scores[i] = muc_f32_of_bits(muc_load_u32(value->data + 4 * (size_t)i));
        if (!isfinite(scores[i]))
            return fail_value(gguf, value, "not finite: score", i);
    }
    vocabulary->scores = scores;
    return MUC_OK;
}

static muc_status read_types(const muc_gguf *gguf, muc_stored_vocabulary *vocabulary)
{
    const muc_gguf_value *value;
    uint8_t *types;

    MUC_TRY(
        find_column(gguf, "tokenizer.ggml.token_type", MUC_GGUF_I32, vocabulary->count, &value));
    if (!value)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(gguf->ctx, gguf->arena, vocabulary->count, &types));
    for (uint32_t i = 0; i < vocabulary->count; i++) {
        uint32_t type = muc_load_u32(value->data + 4 * (size_t)i);

        if (type < MUC_TOKEN_NORMAL || type > MUC_TOKEN_BYTE)
            return fail_value(gguf, value, "unknown type of token", i);
        types[i] = (uint8_t)type;
    }
    vocabulary->types = types;
    return MUC_OK;
}

static muc_status read_id(const muc_gguf *gguf, const char *key, uint32_t count, bool *has,
                          uint32_t *out)
{
    const muc_gguf_value *value = muc_gguf_find(gguf, key);

    if (!value)
        return MUC_OK;
    MUC_TRY(muc_gguf_u32_or(gguf, key, 0, out));
    if (*out >= count)
        return fail_value(gguf, value, "the vocabulary has no token", *out);
    *has = true;
    return MUC_OK;
}

static muc_status read_vocabulary(const muc_gguf *gguf, muc_stored_vocabulary *vocabulary)
{
    bool sentencepiece = strcmp(vocabulary->model, "llama") == 0;
    uint32_t count;

    MUC_TRY(read_pieces(gguf, "tokenizer.ggml.tokens", &vocabulary->count, &vocabulary->tokens));
    count = vocabulary->count;
    if (count == 0)
        return muc_fail(gguf->ctx, MUC_MALFORMED, gguf->bytes.name, MUC_NO_OFFSET,
                        "tokenizer '%s' has no tokens", vocabulary->model);
    MUC_TRY(read_scores(gguf, vocabulary));
    MUC_TRY(read_types(gguf, vocabulary));
    MUC_TRY(
        read_pieces(gguf, "tokenizer.ggml.merges", &vocabulary->merge_count, &vocabulary->merges));
    MUC_TRY(muc_gguf_string_or_null(gguf, "tokenizer.ggml.pre", &vocabulary->pre));
    MUC_TRY(read_id(gguf, "tokenizer.ggml.bos_token_id", count, &vocabulary->has_bos,
                    &vocabulary->bos));
    MUC_TRY(read_id(gguf, "tokenizer.ggml.eos_token_id", count, &vocabulary->has_eos,
                    &vocabulary->eos));
    MUC_TRY(read_id(gguf, "tokenizer.ggml.unknown_token_id", count, &vocabulary->has_unknown,
                    &vocabulary->unknown));
    MUC_TRY(muc_gguf_bool_or(gguf, "tokenizer.ggml.add_bos_token", sentencepiece,
                             &vocabulary->add_bos));
    MUC_TRY(muc_gguf_bool_or(gguf, "tokenizer.ggml.add_eos_token", false, &vocabulary->add_eos));
    return muc_gguf_bool_or(gguf, "tokenizer.ggml.add_space_prefix", sentencepiece,
                            &vocabulary->add_space_prefix);
}

muc_status muc_gguf_vocabulary(const muc_gguf *gguf, const muc_stored_vocabulary **out)
{
    muc_stored_vocabulary *vocabulary;
    const char *model;

    *out = NULL;
    MUC_TRY(muc_gguf_string_or_null(gguf, "tokenizer.ggml.model", &model));
    if (!model)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(gguf->ctx, gguf->arena, 1, &vocabulary));
    vocabulary->model = model;
    MUC_TRY(read_vocabulary(gguf, vocabulary));
    *out = vocabulary;
    return MUC_OK;
}
