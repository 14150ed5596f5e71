/* gguf_vocabulary.c - reads the tokenizer from the tokenizer.ggml.* values of a GGUF file. */
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
static muc_status read_strings(const muc_gguf *gguf, const char *key, size_t *count,
                               const muc_string_view **out)
{
    const muc_gguf_value *value;
    const uint8_t *at;
    muc_string_view *strings;

    MUC_TRY(muc_gguf_array_or_null(gguf, key, MUC_GGUF_STRING, &value));
    if (!value)
        return MUC_OK;
    if (value->count > MUC_MAX_VOCABULARY)
        return fail_value(gguf, value, "too many entries:", value->count);
    *count = (size_t)value->count;
    MUC_TRY(MUC_ARENA_NEW(gguf->ctx, gguf->arena, *count, &strings));
    at = value->data;
    for (size_t i = 0; i < *count; i++) {
        strings[i].size = (size_t)muc_load_u64(at);
        strings[i].data = (const char *)at + 8;
        at += 8 + strings[i].size;
    }
    *out = strings;
    return MUC_OK;
}

/* One 32-bit word a token. */
static muc_status find_column(const muc_gguf *gguf, const char *key, muc_gguf_type element,
                              size_t count, const muc_gguf_value **out)
{
    MUC_TRY(muc_gguf_array_or_null(gguf, key, element, out));
    if (*out && (*out)->count != count)
        return fail_value(gguf, *out, "the vocabulary has another number of tokens than",
                          (*out)->count);
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
    for (size_t i = 0; i < vocabulary->count; i++)
        scores[i] = muc_f32_of_bits(muc_load_u32(value->data + 4 * i));
    vocabulary->scores = scores;
    return MUC_OK;
}

static muc_status read_types(const muc_gguf *gguf, muc_stored_vocabulary *vocabulary)
{
    const muc_gguf_value *value;
    int32_t *types;

    MUC_TRY(
        find_column(gguf, "tokenizer.ggml.token_type", MUC_GGUF_I32, vocabulary->count, &value));
    if (!value)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(gguf->ctx, gguf->arena, vocabulary->count, &types));
    for (size_t i = 0; i < vocabulary->count; i++)
        types[i] = (int32_t)muc_load_u32(value->data + 4 * i);
    vocabulary->types = types;
    return MUC_OK;
}

static muc_status read_id(const muc_gguf *gguf, const char *key, size_t count, int64_t *out)
{
    const muc_gguf_value *value = muc_gguf_find(gguf, key);
    uint32_t id;

    *out = -1;
    if (!value)
        return MUC_OK;
    MUC_TRY(muc_gguf_u32_or(gguf, key, 0, &id));
    if (id >= count)
        return fail_value(gguf, value, "the vocabulary has no token", id);
    *out = id;
    return MUC_OK;
}

static muc_status read_flag(const muc_gguf *gguf, const char *key, int *out)
{
    bool flag;

    MUC_TRY(muc_gguf_bool_or(gguf, key, false, &flag));
    *out = muc_gguf_find(gguf, key) ? flag : -1;
    return MUC_OK;
}

/* The words of WordPiece. */
static muc_status read_words(const muc_gguf *gguf, muc_stored_vocabulary *vocabulary)
{
    const size_t count = vocabulary->count;

    MUC_TRY(read_id(gguf, "tokenizer.ggml.unknown_token_id", count, &vocabulary->unknown));
    MUC_TRY(read_id(gguf, "tokenizer.ggml.cls_token_id", count, &vocabulary->cls));
    /* as llama.cpp writes it */
    MUC_TRY(read_id(gguf, "tokenizer.ggml.seperator_token_id", count, &vocabulary->separator));
    MUC_TRY(read_flag(gguf, "tokenizer.ggml.normalizer.lowercase", &vocabulary->lowercase));
    return read_flag(gguf, "tokenizer.ggml.normalizer.strip_accents", &vocabulary->strip_accents);
}

static muc_status read_vocabulary(const muc_gguf *gguf, muc_stored_vocabulary *vocabulary)
{
    MUC_TRY(read_strings(gguf, "tokenizer.ggml.tokens", &vocabulary->count, &vocabulary->tokens));
    if (vocabulary->count == 0)
        return muc_fail(gguf->ctx, MUC_MALFORMED, gguf->bytes.name, MUC_NO_OFFSET,
                        "tokenizer '%s' has no tokens", vocabulary->model);
    MUC_TRY(read_scores(gguf, vocabulary));
    MUC_TRY(read_types(gguf, vocabulary));
    MUC_TRY(
        read_strings(gguf, "tokenizer.ggml.merges", &vocabulary->merge_count, &vocabulary->merges));
    MUC_TRY(muc_gguf_string_or_null(gguf, "tokenizer.ggml.pre", &vocabulary->pre));
    MUC_TRY(muc_gguf_string_or_null(gguf, "general.name", &vocabulary->name));
    MUC_TRY(read_id(gguf, "tokenizer.ggml.bos_token_id", vocabulary->count, &vocabulary->bos));
    MUC_TRY(read_id(gguf, "tokenizer.ggml.eos_token_id", vocabulary->count, &vocabulary->eos));
    MUC_TRY(read_flag(gguf, "tokenizer.ggml.add_bos_token", &vocabulary->add_bos));
    MUC_TRY(read_flag(gguf, "tokenizer.ggml.add_eos_token", &vocabulary->add_eos));
    MUC_TRY(read_flag(gguf, "tokenizer.ggml.add_space_prefix", &vocabulary->add_space_prefix));
    return read_words(gguf, vocabulary);
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
