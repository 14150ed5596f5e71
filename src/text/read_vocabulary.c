/* read_vocabulary.c - a vocabulary that a model's own file stores, and the choice of a reader for a
 * file. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "text/merge_texts.h"

static muc_status fail(muc_context *ctx, const char *source, const char *what, const char *name)
{
    return muc_fail(ctx, MUC_UNSUPPORTED, source, MUC_NO_OFFSET,
                    "tokenizer.ggml.%s '%s' is not known", what, name ? name : "(none)");
}

static uint32_t id_or_none(int64_t id)
{
    return id >= 0 && id < MUR_TOKENIZER_MAX_PIECES ? (uint32_t)id : MUR_NO_TOKEN;
}

/* llama.cpp has no limit on a word's characters. */
static void set_bert(const muc_stored_vocabulary *stored, muc_vocabulary *v)
{
    const bool lowercases = stored->lowercase != 0;

    v->wordpiece = v->prefix = v->prefix_again = true;
    v->words =
        (muc_word_rules){ .cleans = true,
                          .sets_ideographs_apart = true,
                          .lowercases = lowercases,
                          .strips_accents =
                              stored->strip_accents < 0 ? lowercases : stored->strip_accents == 1,
                          .most_characters = UINT32_MAX };
    if (v->bos == MUR_NO_TOKEN)
        v->bos = id_or_none(stored->cls);
    v->eos = id_or_none(stored->separator);
    v->add_eos = stored->add_eos != 0;
}

/* The model decides what is implied where a key is absent. */
static muc_status set_model(muc_context *ctx, const muc_stored_vocabulary *stored,
                            muc_vocabulary *v)
{
    bool adds_bos = true;

    v->bos = id_or_none(stored->bos);
    v->eos = id_or_none(stored->eos);
    v->add_eos = stored->add_eos == 1;
    if (strcmp(stored->model, "llama") == 0) {
        v->alphabet = MUC_ALPHABET_CHARACTERS;
        v->prefix = v->prefix_again = stored->add_space_prefix != 0;
    } else if (strcmp(stored->model, "gpt2") == 0) {
        v->alphabet = MUC_ALPHABET_BYTES;
        if (!stored->pre || !muc_vocabulary_set_gguf_rules(v, stored->pre, &adds_bos))
            return fail(ctx, v->source, "pre", stored->pre);
        if (stored->add_space_prefix == 1)
            return muc_fail(ctx, MUC_UNSUPPORTED, v->source, MUC_NO_OFFSET,
                            "tokenizer.ggml.add_space_prefix is true for a byte-level tokenizer");
    } else if (strcmp(stored->model, "gemma4") == 0) {
        v->alphabet = MUC_ALPHABET_CHARACTERS;
        muc_vocabulary_set_gguf_rules(v, stored->model, &adds_bos);
        adds_bos = true;
    } else if (strcmp(stored->model, "bert") == 0) {
        set_bert(stored, v);
    } else {
        return fail(ctx, v->source, "model", stored->model);
    }
    v->add_bos = stored->add_bos < 0 ? adds_bos : stored->add_bos == 1;
    return MUC_OK;
}

static muc_status set_piece(muc_context *ctx, const muc_stored_vocabulary *stored, muc_arena *arena,
                            size_t id, const muc_vocabulary *v)
{
    const int32_t type = stored->types ? stored->types[id] : MUR_PIECE_NORMAL;
    muc_piece *piece = &v->pieces[id];

    if (type < MUR_PIECE_NORMAL || type > MUR_PIECE_BYTE)
        return muc_fail(ctx, MUC_MALFORMED, v->source, MUC_NO_OFFSET, "piece %zu has type %d", id,
                        type);
    piece->type = (uint32_t)type;
    piece->score = stored->scores ? (double)stored->scores[id] : 0;
    if (!isfinite(piece->score))
        return muc_fail(ctx, MUC_MALFORMED, v->source, MUC_NO_OFFSET, "piece %zu has score %g", id,
                        piece->score);
    MUC_TRY(
        muc_piece_set_text(ctx, arena, v, id, stored->tokens[id].data, stored->tokens[id].size));
    if (type == MUR_PIECE_USER && muc_piece_ends_text(piece->text))
        piece->type = MUR_PIECE_CONTROL;
    if (type == MUR_PIECE_BYTE && muc_byte_piece_value(piece->text, piece->size) < 0)
        return muc_fail(ctx, MUC_MALFORMED, v->source, MUC_NO_OFFSET, "byte piece %zu is '%s'", id,
                        piece->text);
    return MUC_OK;
}

/* capitals or not */
static bool has_word(const char *text, const char *word)
{
    size_t size = strlen(word);

    for (; strlen(text) >= size; text++)
        if (muc_are_alike(text, word, size))
            return true;
    return false;
}

/* A file does not say that the special tokens of Phi-3 take the white space after them; llama.cpp
 * knows it by the model's name. */
static void set_phi3(const muc_stored_vocabulary *stored, const muc_vocabulary *v)
{
    static const char *const others[] = { "<unk>", "<s>", "<|endoftext|>" };

    if (!stored->name || !(has_word(stored->name, "phi-3") || has_word(stored->name, "phi3")))
        return;
    for (size_t id = 0; id < v->count; id++)
        v->pieces[id].found = MUR_SPECIAL_RIGHT;
    for (size_t id = 0; id < v->count; id++)
        for (size_t i = 0; i < MUC_COUNT(others); i++)
            if (strcmp(v->pieces[id].text, others[i]) == 0)
                v->pieces[id].found = 0;
}

static muc_status set_merges(muc_context *ctx, const muc_stored_vocabulary *stored,
                             muc_arena *arena, muc_vocabulary *v)
{
    muc_merge_texts merges;

    MUC_TRY(muc_merge_texts_new(ctx, arena, v, &merges));
    for (size_t i = 0; i < stored->merge_count; i++)
        MUC_TRY(muc_merge_texts_take(&merges, stored->merges[i]));
    return muc_merge_texts_end(&merges);
}

muc_status muc_vocabulary_of_stored(muc_context *ctx, const char *source,
                                    const muc_stored_vocabulary *stored, muc_arena *arena,
                                    muc_vocabulary *out)
{
    const bool by_score = strcmp(stored->model, "llama") == 0;

    *out = (muc_vocabulary){ .source = source };
    MUC_TRY(set_model(ctx, stored, out));
    if (!out->wordpiece && (by_score ? !stored->scores : !stored->merges))
        return muc_fail(ctx, MUC_MALFORMED, source, MUC_NO_OFFSET,
                        "a '%s' tokenizer without tokenizer.ggml.%s", stored->model,
                        by_score ? "scores" : "merges");
    MUC_TRY(muc_pieces_new(ctx, arena, stored->count, out));
    for (size_t id = 0; id < out->count; id++)
        MUC_TRY(set_piece(ctx, stored, arena, id, out));
    set_phi3(stored, out);
    if (out->wordpiece) {
        if (stored->unknown >= 0)
            out->pieces[stored->unknown].type = MUR_PIECE_UNKNOWN;
        return muc_pieces_set_words(ctx, arena, out, MUC_SPACE_MARK, true);
    }
    return by_score ? MUC_OK : set_merges(ctx, stored, arena, out);
}

/* ---- files ---- */

static bool looks_like_json(muc_bytes file)
{
    size_t at = 0;

    while (at < file.size && memchr(" \t\r\n", file.data[at], 4))
        at++;
    return at < file.size && file.data[at] == '{';
}

/* A model's first field is a piece, whose first field is its text. */
static bool looks_like_sentencepiece(muc_bytes file)
{
    return file.size > 2 && file.data[0] == 0x0a && file.data[1] != 0 && file.data[2] == 0x0a;
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t n = strlen(name), s = strlen(suffix);

    return n >= s && strcmp(name + n - s, suffix) == 0;
}

muc_status muc_vocabulary_second_file(muc_context *ctx, const char *path, muc_arena *arena,
                                      const char **out)
{
    static const char first[] = "vocab.json", second[] = "merges.txt";
    size_t folder = strlen(path) - (sizeof(first) - 1);

    *out = NULL;
    if (!has_suffix(path, first) || (folder > 0 && path[folder - 1] != '/'))
        return MUC_OK;
    return muc_arena_format(ctx, arena, out, "%.*s%s", (int)folder, path, second);
}

static muc_status read_two(muc_context *ctx, muc_bytes vocab, const char *second, muc_arena *arena,
                           muc_vocabulary *out)
{
    muc_status status;
    muc_file merges;

    MUC_TRY(muc_file_open(ctx, second, &merges));
    status = muc_vocabulary_read_gpt2(ctx, vocab, merges.bytes, arena, out);
    muc_file_close(&merges);
    return status;
}

muc_status muc_vocabulary_read(muc_context *ctx, muc_bytes file, size_t model_pieces,
                               muc_arena *arena, muc_vocabulary *out)
{
    const char *second;

    if (has_suffix(file.name, ".bin"))
        return muc_vocabulary_read_llama2c(ctx, file, model_pieces, arena, out);
    MUC_TRY(muc_vocabulary_second_file(ctx, file.name, arena, &second));
    if (second)
        return read_two(ctx, file, second, arena, out);
    if (has_suffix(file.name, ".json") || looks_like_json(file))
        return muc_vocabulary_read_huggingface(ctx, file, arena, out);
    if (has_suffix(file.name, ".model") || looks_like_sentencepiece(file))
        return muc_vocabulary_read_sentencepiece(ctx, file, arena, out);
    return muc_fail(ctx, MUC_UNSUPPORTED, file.name, MUC_NO_OFFSET,
                    "not a tokenizer: expected SentencePiece's .model, Hugging Face's .json or "
                    "llama2.c's .bin");
}
