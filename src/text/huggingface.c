/* huggingface.c - reads tokenizer.json, and the two files that were there before it.
 *
 * pipeline.c reads what happens to text before and after merging; here are the pieces, the merges,
 * and what is put before a text. What cannot be said in the compiled form is refused.
 */
#include <string.h>

#include "text/pieces.h"
#include "text/pipeline.h"

typedef struct reader {
    muc_context *ctx;
    const char *source;
    json_t *root;
    const json_t *model;
    muc_arena *arena;
    muc_vocabulary *out;
} reader;

static muc_status fail(const reader *r, muc_status status, const char *format, ...)
    MUC_PRINTF(3, 4);

static muc_status fail(const reader *r, muc_status status, const char *format, ...)
{
    char message[256];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    return muc_fail(r->ctx, status, r->source, MUC_NO_OFFSET, "%s", message);
}

static const char *type_of(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));

    return type ? type : "";
}

/* ---- what is put before a text ---- */

/* A template may put one token before the text, and nothing else. */
static muc_status read_template(const reader *r, const json_t *part)
{
    const json_t *single = json_object_get(part, "single");
    const json_t *first = json_object_get(json_array_get(single, 0), "SpecialToken");
    const char *name = json_string_value(json_object_get(first, "id"));
    const size_t size = json_array_size(single), text_at = name ? 1 : 0;
    const json_t *ids = json_object_get(
        json_object_get(json_object_get(part, "special_tokens"), name ? name : ""), "ids");
    const json_int_t id = json_integer_value(json_array_get(ids, 0));

    if (size != text_at + 1 || !json_object_get(json_array_get(single, text_at), "Sequence"))
        return fail(r, MUC_UNSUPPORTED, "post_processor adds more than one token before the text");
    if (!name)
        return MUC_OK;
    if (json_array_size(ids) != 1 || id < 0 || id >= (json_int_t)r->out->count)
        return fail(r, MUC_MALFORMED, "post_processor's token '%s' is not one piece", name);
    r->out->add_bos = true;
    r->out->bos = (uint32_t)id;
    return MUC_OK;
}

static muc_status read_post_processor(const reader *r)
{
    const json_t *part = json_object_get(r->root, "post_processor");
    const json_t *steps = json_object_get(part, "processors");
    const bool sequence = strcmp(type_of(part), "Sequence") == 0;
    const size_t count = sequence ? json_array_size(steps) : 1;

    if (!part || json_is_null(part))
        return MUC_OK;
    for (size_t i = 0; i < count; i++) {
        const json_t *step = sequence ? json_array_get(steps, i) : part;

        if (strcmp(type_of(step), "TemplateProcessing") == 0)
            MUC_TRY(read_template(r, step));
        else if (strcmp(type_of(step), "ByteLevel") != 0)
            return fail(r, MUC_UNSUPPORTED, "post_processor %.100s is not known", type_of(step));
    }
    return MUC_OK;
}

/* ---- pieces ---- */

static muc_status check_id(const reader *r, const json_t *value, const char *text, uint32_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) >= MUR_TOKENIZER_MAX_PIECES)
        return fail(r, MUC_MALFORMED, "the id of '%.100s' is not in 0..%d", text,
                    MUR_TOKENIZER_MAX_PIECES - 1);
    *out = (uint32_t)json_integer_value(value);
    return MUC_OK;
}

static const char *content_of(const json_t *token)
{
    const char *content = json_string_value(json_object_get(token, "content"));

    return content ? content : "";
}

/* The highest id of the vocabulary and the added tokens, plus one. */
static muc_status count_pieces(const reader *r, json_t *vocab, const json_t *added, size_t *count)
{
    const char *text;
    json_t *value;
    uint32_t id, end = 0;

    json_object_foreach(vocab, text, value)
    {
        MUC_TRY(check_id(r, value, text, &id));
        end = id >= end ? id + 1 : end;
    }
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *token = json_array_get(added, i);

        MUC_TRY(check_id(r, json_object_get(token, "id"), content_of(token), &id));
        end = id >= end ? id + 1 : end;
    }
    *count = end;
    return MUC_OK;
}

static muc_status read_vocab(const reader *r, json_t *vocab)
{
    const bool characters = r->out->alphabet == MUC_ALPHABET_CHARACTERS;
    const char *text;
    json_t *value;

    json_object_foreach(vocab, text, value)
    {
        const uint32_t id = (uint32_t)json_integer_value(value);
        const size_t size = strlen(text);
        muc_piece *piece = &r->out->pieces[id];

        if (piece->text)
            return fail(r, MUC_MALFORMED, "'%.100s' and '%.100s' both have id %u", piece->text,
                        text, id);
        MUC_TRY(muc_piece_set_text(r->ctx, r->arena, r->out, id, text, size));
        piece->type =
            characters && muc_byte_piece_value(text, size) >= 0 ? MUR_PIECE_BYTE : MUR_PIECE_NORMAL;
    }
    return MUC_OK;
}

static bool is_ascii(const char *text)
{
    while (*text > 0)
        text++;
    return *text == 0;
}

static muc_status read_added_token(const reader *r, const json_t *token)
{
    const char *content = content_of(token);
    const uint32_t id = (uint32_t)json_integer_value(json_object_get(token, "id"));
    const bool special =
        json_is_true(json_object_get(token, "special")) || muc_piece_ends_text(content);
    const bool characters = r->out->alphabet == MUC_ALPHABET_CHARACTERS;
    muc_piece *piece = &r->out->pieces[id];

    if (json_is_true(json_object_get(token, "single_word")))
        return fail(r, MUC_UNSUPPORTED, "added token '%.100s' with single_word", content);
    /* such a token would be sought in the text with its spaces marked and its prefix put */
    if (!special && characters && json_is_true(json_object_get(token, "normalized")))
        return fail(r, MUC_UNSUPPORTED, "added token '%.100s' that is normalized", content);
    if (!special && r->out->nfc && !is_ascii(content) &&
        json_is_true(json_object_get(token, "normalized")))
        return fail(r, MUC_UNSUPPORTED,
                    "added token '%.100s' that is normalized and has other letters than ASCII",
                    content);
    if (piece->text && strcmp(piece->text, content) != 0)
        return fail(r, MUC_MALFORMED, "added token '%.100s' has the id of '%.100s'", content,
                    piece->text);
    MUC_TRY(muc_piece_set_text(r->ctx, r->arena, r->out, id, content, strlen(content)));
    /* what merges make may be found in the text, too */
    if (special || piece->type != MUR_PIECE_NORMAL || (!characters && !is_ascii(content)))
        piece->type = special ? MUR_PIECE_CONTROL : MUR_PIECE_USER;
    piece->found_as_written = true;
    piece->found = (piece->type == MUR_PIECE_NORMAL ? MUR_SPECIAL_ALWAYS : 0) |
                   (json_is_true(json_object_get(token, "lstrip")) ? MUR_SPECIAL_LEFT : 0) |
                   (json_is_true(json_object_get(token, "rstrip")) ? MUR_SPECIAL_RIGHT : 0);
    return MUC_OK;
}

static muc_status read_merges(const reader *r, const json_t *merges)
{
    muc_piece_index index;

    if (json_array_size(merges) > MUR_TOKENIZER_MAX_MERGES)
        return fail(r, MUC_MALFORMED, "%zu merges", json_array_size(merges));
    MUC_TRY(muc_piece_index_new(r->ctx, r->arena, r->out, &index));
    MUC_TRY(MUC_ARENA_NEW(r->ctx, r->arena, json_array_size(merges), &r->out->merges));
    for (size_t i = 0; i < json_array_size(merges); i++) {
        const json_t *merge = json_array_get(merges, i);
        const json_t *left = json_array_get(merge, 0), *right = json_array_get(merge, 1);

        if (json_is_string(merge))
            MUC_TRY(muc_merge_parse(r->ctx, r->source, &index, i, json_string_value(merge),
                                    json_string_length(merge), &r->out->merges[i]));
        else if (json_array_size(merge) == 2 && json_is_string(left) && json_is_string(right))
            MUC_TRY(muc_merge_resolve(
                r->ctx, r->source, &index, i,
                (muc_string_view){ json_string_value(left), json_string_length(left) },
                (muc_string_view){ json_string_value(right), json_string_length(right) },
                &r->out->merges[i]));
        else
            return fail(r, MUC_MALFORMED, "merge %zu is neither a string nor two", i);
    }
    r->out->merge_count = json_array_size(merges);
    return MUC_OK;
}

/* The special piece whose name is customary for the end of a text. */
static uint32_t customary_eos(const muc_vocabulary *v)
{
    static const char *const names[] = { "</s>", "<|endoftext|>", "<|end_of_text|>" };

    for (size_t n = 0; n < MUC_COUNT(names); n++)
        for (uint32_t i = 0; i < v->count; i++)
            if (v->pieces[i].type == MUR_PIECE_CONTROL && strcmp(v->pieces[i].text, names[n]) == 0)
                return i;
    return MUR_NO_TOKEN;
}

static muc_status check_model(const reader *r)
{
    static const char *const empty[] = { "dropout", "continuing_subword_prefix",
                                         "end_of_word_suffix" };
    const json_t *type = json_object_get(r->model, "type");

    if (!json_is_object(r->model))
        return fail(r, MUC_MALFORMED, "no \"model\" object: not a tokenizer.json");
    if (type && (!json_is_string(type) || strcmp(json_string_value(type), "BPE") != 0))
        return fail(r, MUC_UNSUPPORTED, "tokenizer model %.100s; only BPE is supported",
                    type_of(r->model));
    for (size_t i = 0; i < MUC_COUNT(empty); i++) {
        const json_t *value = json_object_get(r->model, empty[i]);

        if (value && !json_is_null(value) && json_number_value(value) == 0.0 &&
            (!json_is_string(value) || json_string_length(value) == 0))
            continue;
        if (value && !json_is_null(value))
            return fail(r, MUC_UNSUPPORTED, "tokenizer model with %s", empty[i]);
    }
    return MUC_OK;
}

static muc_status read_model(const reader *r)
{
    json_t *vocab = json_object_get(r->model, "vocab");
    const json_t *merges = json_object_get(r->model, "merges");
    const json_t *added = json_object_get(r->root, "added_tokens");
    const char *unknown;
    bool byte_fallback;
    size_t count;

    if (!json_is_object(vocab) || !json_is_array(merges))
        return fail(r, MUC_MALFORMED, "\"vocab\" is not an object or \"merges\" not an array");
    MUC_TRY(muc_json_bool_or(r->ctx, r->source, r->model, "byte_fallback", false, &byte_fallback));
    MUC_TRY(muc_json_bool_or(r->ctx, r->source, r->model, "ignore_merges", false,
                             &r->out->takes_whole_pieces));
    MUC_TRY(muc_json_string_or_null(r->ctx, r->source, r->model, "unk_token", &unknown));
    MUC_TRY(muc_pipeline_read(r->ctx, r->root, r->arena, r->out));
    if (!byte_fallback && r->out->alphabet == MUC_ALPHABET_CHARACTERS)
        return fail(r, MUC_UNSUPPORTED, "pieces of characters without byte_fallback");
    if (byte_fallback && r->out->alphabet == MUC_ALPHABET_BYTES)
        return fail(r, MUC_UNSUPPORTED, "byte_fallback together with byte-level pieces");
    if (r->out->takes_whole_pieces && r->out->alphabet == MUC_ALPHABET_CHARACTERS)
        return fail(r, MUC_UNSUPPORTED, "ignore_merges together with pieces of characters");
    MUC_TRY(count_pieces(r, vocab, added, &count));
    MUC_TRY(muc_pieces_new(r->ctx, r->arena, count, r->out));
    MUC_TRY(read_vocab(r, vocab));
    for (size_t i = 0; i < json_array_size(added); i++)
        MUC_TRY(read_added_token(r, json_array_get(added, i)));
    for (size_t i = 0; unknown && i < count; i++)
        if (r->out->pieces[i].text && strcmp(r->out->pieces[i].text, unknown) == 0)
            r->out->pieces[i].type = MUR_PIECE_UNKNOWN;
    MUC_TRY(read_merges(r, merges));
    MUC_TRY(read_post_processor(r));
    r->out->eos = customary_eos(r->out);
    return MUC_OK;
}

muc_status muc_vocabulary_read_huggingface(muc_context *ctx, muc_bytes file, muc_arena *arena,
                                           muc_vocabulary *out)
{
    reader r = { .ctx = ctx, .source = file.name, .arena = arena, .out = out };
    muc_status status;

    *out = (muc_vocabulary){ .source = file.name, .bos = MUR_NO_TOKEN, .eos = MUR_NO_TOKEN };
    MUC_TRY(muc_json_parse(ctx, file, 0, &r.root));
    r.model = json_object_get(r.root, "model");
    status = check_model(&r);
    if (status == MUC_OK)
        status = read_model(&r);
    json_decref(r.root);
    return status;
}

/* ---- vocab.json and merges.txt ---- */

/* a line a merge, best first; the first may tell a version */
static muc_status put_merges(const reader *r, muc_bytes file, json_t *merges)
{
    static const char version[] = "#version";
    const char *at = (const char *)file.data, *end = at + file.size;

    if (file.size >= sizeof(version) - 1 && memcmp(at, version, sizeof(version) - 1) == 0)
        at = memchr(at, '\n', file.size);
    for (; at && at < end; at = at < end ? at + 1 : end) {
        const char *line = at, *stop = memchr(at, '\n', (size_t)(end - at));
        size_t size;

        at = stop ? stop : end;
        size = (size_t)(at - line);
        size -= size > 0 && line[size - 1] == '\r';
        if (size == 0)
            continue;
        if (json_array_size(merges) >= MUR_TOKENIZER_MAX_MERGES)
            return fail(r, MUC_MALFORMED, "more than %d merges", MUR_TOKENIZER_MAX_MERGES);
        if (json_array_append_new(merges, json_stringn(line, size)) != 0)
            return muc_fail(r->ctx, MUC_MALFORMED, file.name,
                            (uint64_t)(line - (const char *)file.data), "merge %zu is no UTF-8",
                            json_array_size(merges));
    }
    return MUC_OK;
}

/* What Hugging Face's own conversion makes of the two: the tokenizer.json of GPT-2. */
static muc_status assemble(reader *r, json_t *vocab, muc_bytes merges_file)
{
    static const char end_of_text[] = "<|endoftext|>";
    json_t *merges = json_array(), *id = json_object_get(vocab, end_of_text);

    r->root = json_pack("{s:{s:s,s:O,s:o},s:{s:s,s:b},s:{s:s},s:[]}", "model", "type", "BPE",
                        "vocab", vocab, "merges", merges, "pre_tokenizer", "type", "ByteLevel",
                        "add_prefix_space", 0, "decoder", "type", "ByteLevel", "added_tokens");
    if (!r->root)
        return muc_fail_nomem(r->ctx, r->source, sizeof(json_t));
    r->model = json_object_get(r->root, "model");
    if (id && json_array_append_new(
                  json_object_get(r->root, "added_tokens"),
                  json_pack("{s:s,s:O,s:b}", "content", end_of_text, "id", id, "special", 1)) != 0)
        return muc_fail_nomem(r->ctx, r->source, sizeof(json_t));
    MUC_TRY(put_merges(r, merges_file, merges));
    return read_model(r);
}

muc_status muc_vocabulary_read_gpt2(muc_context *ctx, muc_bytes vocab_file, muc_bytes merges,
                                    muc_arena *arena, muc_vocabulary *out)
{
    reader r = { .ctx = ctx, .source = vocab_file.name, .arena = arena, .out = out };
    muc_status status;
    json_t *vocab;

    *out = (muc_vocabulary){ .source = vocab_file.name, .bos = MUR_NO_TOKEN, .eos = MUR_NO_TOKEN };
    MUC_TRY(muc_json_parse(ctx, vocab_file, 0, &vocab));
    status = json_is_object(vocab)
                 ? assemble(&r, vocab, merges)
                 : fail(&r, MUC_MALFORMED, "no JSON object of pieces and their ids");
    json_decref(r.root);
    json_decref(vocab);
    return status;
}
