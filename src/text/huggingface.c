/* huggingface.c - reads tokenizer.json, and the two files that were there before it.
 *
 * pipeline.c reads what happens to text before and after merging; here are the pieces, the merges,
 * and what is put before a text. What cannot be said in the compiled form is refused.
 */
#include <string.h>

#include "base/json_scan.h"
#include "base/text.h"
#include "base/visible_name.h"
#include "text/merge_texts.h"
#include "text/pipeline.h"

typedef struct span {
    size_t start, end;
} span;

typedef struct reader {
    muc_context *ctx;
    const char *source;
    json_t *root; /* without the long values, which are read where they stand */
    const json_t *model;
    muc_arena *arena;
    muc_vocabulary *out;
    muc_bytes file;
    span vocab, merges; /* in the file; empty if there is none */
    muc_bytes lines;    /* merges.txt, in the place of merges */
} reader;

#define fail(reader, status, ...) \
    muc_fail((reader)->ctx, status, (reader)->source, MUC_NO_OFFSET, __VA_ARGS__)

static const char *type_of(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));

    return type ? type : "";
}

/* ---- what is put before a text ---- */

static muc_status check_processor_id(const reader *r, const json_t *id, const char *name,
                                     uint32_t *out)
{
    const json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;

    if (value < 0 || value >= (json_int_t)r->out->count)
        return fail(r, MUC_MALFORMED, "post_processor's token '%.100s' is not one piece", name);
    *out = (uint32_t)value;
    return MUC_OK;
}

/* The token at a place of a template, if there is one. */
static muc_status read_template_token(const reader *r, const json_t *part, size_t at,
                                      bool *is_there, uint32_t *out)
{
    const json_t *token =
        json_object_get(json_array_get(json_object_get(part, "single"), at), "SpecialToken");
    const char *name = json_string_value(json_object_get(token, "id"));
    const json_t *ids = json_object_get(
        json_object_get(json_object_get(part, "special_tokens"), name ? name : ""), "ids");

    *is_there = name != NULL;
    return name ? check_processor_id(r, json_array_size(ids) == 1 ? json_array_get(ids, 0) : NULL,
                                     name, out)
                : MUC_OK;
}

/* A template may put one token before the text and one after it, and nothing else. */
static muc_status read_template(const reader *r, const json_t *part)
{
    const json_t *single = json_object_get(part, "single");
    size_t text_at;

    MUC_TRY(read_template_token(r, part, 0, &r->out->add_bos, &r->out->bos));
    text_at = r->out->add_bos ? 1 : 0;
    MUC_TRY(read_template_token(r, part, text_at + 1, &r->out->add_eos, &r->out->eos));
    if (json_array_size(single) != text_at + (r->out->add_eos ? 2 : 1) ||
        !json_object_get(json_array_get(single, text_at), "Sequence"))
        return fail(r, MUC_UNSUPPORTED,
                    "post_processor adds more than one token before or after the text");
    return MUC_OK;
}

/* Pairs of a name and an id. */
static muc_status read_cls_and_sep(const reader *r, const json_t *part)
{
    const json_t *cls = json_object_get(part, "cls"), *sep = json_object_get(part, "sep");

    MUC_TRY(check_processor_id(r, json_array_get(cls, 1), "cls", &r->out->bos));
    r->out->add_bos = r->out->add_eos = true;
    return check_processor_id(r, json_array_get(sep, 1), "sep", &r->out->eos);
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
        else if (strcmp(type_of(step), "BertProcessing") == 0 ||
                 strcmp(type_of(step), "RobertaProcessing") == 0)
            MUC_TRY(read_cls_and_sep(r, step));
        else if (strcmp(type_of(step), "ByteLevel") != 0)
            return fail(r, MUC_UNSUPPORTED, "post_processor %.100s is not known", type_of(step));
    }
    return MUC_OK;
}

/* ---- pieces ---- */

static muc_json_scan scan_at(const reader *r, size_t at)
{
    return (muc_json_scan){ .ctx = r->ctx, .arena = r->arena, .bytes = r->file, .at = at };
}

static muc_status check_id(const reader *r, int64_t value, muc_string_view text, uint32_t *out)
{
    if (value < 0 || value >= MUR_TOKENIZER_MAX_PIECES)
        return fail(r, MUC_MALFORMED, "the id of '%.*s' is not in 0..%d",
                    (int)(text.size < 100 ? text.size : 100), text.data,
                    MUR_TOKENIZER_MAX_PIECES - 1);
    *out = (uint32_t)value;
    return MUC_OK;
}

static muc_status check_token_id(const reader *r, const json_t *token, const char *content,
                                 uint32_t *out)
{
    const json_t *id = json_object_get(token, "id");

    return check_id(r, json_is_integer(id) ? json_integer_value(id) : -1,
                    (muc_string_view){ content, strlen(content) }, out);
}

/* Of Unigram: pairs of a text and a score, in the order of ids. */
static muc_status for_scored_pieces(const reader *r, uint32_t *state,
                                    muc_status (*take)(const reader *r, muc_string_view text,
                                                       uint32_t id, uint32_t *state))
{
    muc_json_scan scan = scan_at(r, r->vocab.start);
    uint32_t id = 0, checked;
    bool more;

    MUC_TRY(muc_scan_expect(&scan, '['));
    for (more = !muc_scan_take(&scan, ']'); more; id++) {
        muc_string_view text;
        double score;

        MUC_TRY(muc_scan_expect(&scan, '['));
        MUC_TRY(muc_scan_string(&scan, &text));
        MUC_TRY(check_id(r, id, text, &checked));
        MUC_TRY(take(r, text, id, state));
        MUC_TRY(muc_scan_expect(&scan, ','));
        MUC_TRY(muc_scan_number(&scan, &score));
        MUC_TRY(muc_scan_expect(&scan, ']'));
        if (r->out->pieces) /* not before they are counted */
            r->out->pieces[id].score = score;
        MUC_TRY(muc_scan_next(&scan, ']', &more));
    }
    return MUC_OK;
}

/* Calls take on each piece of the vocabulary. */
static muc_status for_pieces(const reader *r, uint32_t *state,
                             muc_status (*take)(const reader *r, muc_string_view text, uint32_t id,
                                                uint32_t *state))
{
    muc_json_scan scan = scan_at(r, r->vocab.start);
    bool more;

    if (r->out->unigram)
        return for_scored_pieces(r, state, take);
    MUC_TRY(muc_scan_expect(&scan, '{'));
    for (more = !muc_scan_take(&scan, '}'); more;) {
        muc_string_view text;
        int64_t value;
        uint32_t id = 0;

        MUC_TRY(muc_scan_string(&scan, &text));
        MUC_TRY(muc_scan_expect(&scan, ':'));
        MUC_TRY(muc_scan_count(&scan, &value));
        MUC_TRY(check_id(r, value, text, &id));
        MUC_TRY(take(r, text, id, state));
        MUC_TRY(muc_scan_next(&scan, '}', &more));
    }
    return MUC_OK;
}

static const char *content_of(const json_t *token)
{
    const char *content = json_string_value(json_object_get(token, "content"));

    return content ? content : "";
}

static muc_status take_end(const reader *r, muc_string_view text, uint32_t id, uint32_t *end)
{
    (void)r;
    (void)text;
    *end = id >= *end ? id + 1 : *end;
    return MUC_OK;
}

/* The highest id of the vocabulary and the added tokens, plus one. */
static muc_status count_pieces(const reader *r, const json_t *added, uint32_t *end)
{
    uint32_t id = 0;

    *end = 0;
    MUC_TRY(for_pieces(r, end, take_end));
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *token = json_array_get(added, i);

        MUC_TRY(check_token_id(r, token, content_of(token), &id));
        *end = id >= *end ? id + 1 : *end;
    }
    return MUC_OK;
}

static muc_status take_piece(const reader *r, muc_string_view text, uint32_t id, uint32_t *unused)
{
    muc_piece *piece = &r->out->pieces[id];

    (void)unused;
    if (piece->text)
        return fail(r, MUC_MALFORMED, "'%.100s' and '%.*s' both have id %u", piece->text,
                    (int)(text.size < 100 ? text.size : 100), text.data, id);
    MUC_TRY(muc_piece_set_text(r->ctx, r->arena, r->out, id, text.data, text.size));
    piece->type = r->out->alphabet == MUC_ALPHABET_CHARACTERS &&
                          muc_byte_piece_value(text.data, text.size) >= 0
                      ? MUR_PIECE_BYTE
                      : MUR_PIECE_NORMAL;
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

static muc_status fail_merge(const reader *r, size_t at)
{
    return fail(r, MUC_MALFORMED, "merge %zu is neither a string nor two", at);
}

/* "a b", or ["a", "b"] */
static muc_status read_merge(const reader *r, muc_json_scan *scan, muc_merge_texts *merges)
{
    const bool pair = muc_scan_take(scan, '[');
    char left_text[MUC_PIECE_MAX_BYTES];
    muc_string_view left, right;

    if (muc_scan_peek(scan) != '"')
        return fail_merge(r, merges->taken);
    MUC_TRY(muc_scan_string(scan, &left));
    if (!pair)
        return muc_merge_texts_take(merges, left);
    if (left.size > sizeof(left_text))
        return fail(r, MUC_MALFORMED, "merge %zu has %zu bytes", merges->taken, left.size);
    memcpy(left_text, left.data, left.size);
    left.data = left_text;
    if (!muc_scan_take(scan, ',') || muc_scan_peek(scan) != '"')
        return fail_merge(r, merges->taken);
    MUC_TRY(muc_scan_string(scan, &right));
    if (!muc_scan_take(scan, ']'))
        return fail_merge(r, merges->taken);
    return muc_merge_texts_take_pair(merges, left, right);
}

static muc_status read_array_of_merges(const reader *r, muc_merge_texts *merges)
{
    muc_json_scan scan = scan_at(r, r->merges.start);
    bool more;

    MUC_TRY(muc_scan_expect(&scan, '['));
    for (more = !muc_scan_take(&scan, ']'); more;) {
        MUC_TRY(read_merge(r, &scan, merges));
        MUC_TRY(muc_scan_next(&scan, ']', &more));
    }
    return MUC_OK;
}

/* a line a merge, best first; the first may tell a version */
static muc_status read_lines_of_merges(const reader *r, muc_merge_texts *merges)
{
    static const char version[] = "#version";
    const char *at = (const char *)r->lines.data, *end = at + r->lines.size;

    if (r->lines.size >= sizeof(version) - 1 && memcmp(at, version, sizeof(version) - 1) == 0)
        at = memchr(at, '\n', r->lines.size);
    for (; at && at < end; at = at < end ? at + 1 : end) {
        const char *line = at, *stop = memchr(at, '\n', (size_t)(end - at));
        size_t size;

        at = stop ? stop : end;
        size = (size_t)(at - line);
        size -= size > 0 && line[size - 1] == '\r';
        if (size == 0)
            continue;
        if (!muc_is_utf8(line, size))
            return muc_fail(r->ctx, MUC_MALFORMED, r->lines.name,
                            (uint64_t)(line - (const char *)r->lines.data),
                            "merge %zu is not UTF-8", merges->taken);
        MUC_TRY(muc_merge_texts_take(merges, (muc_string_view){ line, size }));
    }
    return MUC_OK;
}

static muc_status read_merges(const reader *r)
{
    muc_merge_texts merges;

    MUC_TRY(muc_merge_texts_new(r->ctx, r->arena, r->out, &merges));
    MUC_TRY(r->lines.data ? read_lines_of_merges(r, &merges) : read_array_of_merges(r, &merges));
    return muc_merge_texts_end(&merges);
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
    r->out->unigram = strcmp(type_of(r->model), "Unigram") == 0;
    r->out->wordpiece = strcmp(type_of(r->model), "WordPiece") == 0;
    if (type && !r->out->unigram && !r->out->wordpiece && strcmp(type_of(r->model), "BPE") != 0)
        return fail(r, MUC_UNSUPPORTED,
                    "tokenizer model %.100s; only BPE, Unigram and WordPiece are supported",
                    type_of(r->model));
    for (size_t i = 0; i < MUC_COUNT(empty) && !r->out->wordpiece; i++) {
        const json_t *value = json_object_get(r->model, empty[i]);

        if (value && !json_is_null(value) && json_number_value(value) == 0.0 &&
            (!json_is_string(value) || json_string_length(value) == 0))
            continue;
        if (value && !json_is_null(value))
            return fail(r, MUC_UNSUPPORTED, "tokenizer model with %s", empty[i]);
    }
    return MUC_OK;
}

/* Unigram tells it by its number. Without byte_fallback pieces like <0x0A> are text. */
static muc_status set_unknown_of_unigram(const reader *r)
{
    const json_t *id = json_object_get(r->model, "unk_id");
    const bool bytes = json_is_true(json_object_get(r->model, "byte_fallback"));
    const bool has_id = json_is_integer(id);

    for (size_t i = 0; r->out->unigram && !bytes && i < r->out->count; i++)
        if (r->out->pieces[i].type == MUR_PIECE_BYTE)
            r->out->pieces[i].type = MUR_PIECE_NORMAL;
    if (!r->out->unigram || (!has_id && (!id || json_is_null(id))))
        return MUC_OK;
    if (!has_id || json_integer_value(id) < 0 || (uint64_t)json_integer_value(id) >= r->out->count)
        return fail(r, MUC_MALFORMED, "\"unk_id\" is not one of %zu pieces", r->out->count);
    r->out->pieces[json_integer_value(id)].type = MUR_PIECE_UNKNOWN;
    return MUC_OK;
}

static bool has_merges(const reader *r)
{
    return !r->out->unigram && !r->out->wordpiece;
}

/* WordPiece marks the pieces that go on in a word, and limits the word. */
static muc_status set_words(const reader *r)
{
    const json_t *most = json_object_get(r->model, "max_input_chars_per_word");
    const json_int_t characters = json_is_integer(most) ? json_integer_value(most) : 100;
    const char *prefix;

    MUC_TRY(
        muc_json_string_or_null(r->ctx, r->source, r->model, "continuing_subword_prefix", &prefix));
    if (!prefix || !*prefix || characters < 1 || characters > MUR_TOKENIZER_MAX_TEXT)
        return fail(r, MUC_UNSUPPORTED,
                    "WordPiece without continuing_subword_prefix, or of %lld characters a word",
                    (long long)characters);
    r->out->words.most_characters = (uint32_t)characters;
    return muc_pieces_set_words(r->ctx, r->arena, r->out, prefix, false);
}

static muc_status read_model(const reader *r)
{
    const json_t *added = json_object_get(r->root, "added_tokens");
    const char *unknown;
    bool byte_fallback;
    uint32_t count;

    if (r->vocab.end == 0 || (has_merges(r) && r->merges.end == 0 && !r->lines.data))
        return fail(r, MUC_MALFORMED, "\"vocab\" is not an object or \"merges\" not an array");
    MUC_TRY(muc_json_bool_or(r->ctx, r->source, r->model, "byte_fallback", false, &byte_fallback));
    MUC_TRY(muc_json_bool_or(r->ctx, r->source, r->model, "ignore_merges", false,
                             &r->out->takes_whole_pieces));
    MUC_TRY(muc_json_string_or_null(r->ctx, r->source, r->model, "unk_token", &unknown));
    MUC_TRY(muc_pipeline_read(r->ctx, r->root, r->arena, r->out));
    if (r->out->unigram && r->out->alphabet != MUC_ALPHABET_CHARACTERS)
        return fail(r, MUC_UNSUPPORTED, "Unigram with byte-level pieces");
    if (!byte_fallback && r->out->alphabet == MUC_ALPHABET_CHARACTERS && has_merges(r))
        return fail(r, MUC_UNSUPPORTED, "pieces of characters without byte_fallback");
    if (byte_fallback && r->out->alphabet == MUC_ALPHABET_BYTES)
        return fail(r, MUC_UNSUPPORTED, "byte_fallback together with byte-level pieces");
    if (r->out->takes_whole_pieces && r->out->alphabet == MUC_ALPHABET_CHARACTERS)
        return fail(r, MUC_UNSUPPORTED, "ignore_merges together with pieces of characters");
    MUC_TRY(count_pieces(r, added, &count));
    MUC_TRY(muc_pieces_new(r->ctx, r->arena, count, r->out));
    MUC_TRY(for_pieces(r, NULL, take_piece));
    for (size_t i = 0; i < json_array_size(added); i++)
        MUC_TRY(read_added_token(r, json_array_get(added, i)));
    MUC_TRY(set_unknown_of_unigram(r));
    for (size_t i = 0; unknown && i < count; i++)
        if (r->out->pieces[i].text && strcmp(r->out->pieces[i].text, unknown) == 0)
            r->out->pieces[i].type = MUR_PIECE_UNKNOWN;
    if (r->out->wordpiece)
        MUC_TRY(set_words(r));
    if (has_merges(r))
        MUC_TRY(read_merges(r));
    MUC_TRY(read_post_processor(r));
    if (!r->out->add_eos)
        r->out->eos = customary_eos(r->out);
    return MUC_OK;
}

/* ---- where the long values are ---- */

/* Of an object's members: the first value of each of the two keys that begins as it should. */
typedef struct wanted_member {
    const char *key;
    char first;
    span *out;
} wanted_member;

static muc_status find_members(muc_json_scan *scan, const wanted_member *wanted, size_t count)
{
    bool more;

    MUC_TRY(muc_scan_expect(scan, '{'));
    for (more = !muc_scan_take(scan, '}'); more;) {
        muc_string_view key;
        span here, *out = NULL;

        MUC_TRY(muc_scan_string(scan, &key));
        MUC_TRY(muc_scan_expect(scan, ':'));
        for (size_t i = 0; i < count; i++)
            if (strlen(wanted[i].key) == key.size &&
                memcmp(wanted[i].key, key.data, key.size) == 0 &&
                muc_scan_peek(scan) == wanted[i].first && wanted[i].out->end == 0)
                out = wanted[i].out;
        muc_scan_peek(scan);
        here.start = scan->at;
        MUC_TRY(muc_scan_skip(scan));
        here.end = scan->at;
        if (out)
            *out = here;
        MUC_TRY(muc_scan_next(scan, '}', &more));
    }
    return MUC_OK;
}

/* The file without what the vocabulary and the merges hold between their brackets. */
static muc_status parse_rest(reader *r)
{
    const bool vocab_first = r->vocab.start < r->merges.start;
    const span cuts[2] = { vocab_first ? r->vocab : r->merges, vocab_first ? r->merges : r->vocab };
    muc_status status;
    muc_text rest = { 0 };
    size_t at = 0;

    for (size_t i = 0; i < 2; i++) {
        if (cuts[i].end == 0)
            continue;
        muc_text_add_bytes(&rest, r->file.data + at, cuts[i].start + 1 - at);
        at = cuts[i].end - 1;
    }
    muc_text_add_bytes(&rest, r->file.data + at, r->file.size - at);
    status = muc_text_status(r->ctx, &rest);
    if (status == MUC_OK)
        status = muc_json_parse(
            r->ctx, (muc_bytes){ (const uint8_t *)rest.data, rest.size, r->source }, 0, &r->root);
    muc_text_free(&rest);
    return status;
}

static muc_status read_file(reader *r)
{
    muc_json_scan scan = scan_at(r, 0);
    span model = { 0, 0 };

    MUC_TRY(find_members(&scan, &(wanted_member){ "model", '{', &model }, 1));
    scan.at = model.start;
    if (model.end > 0)
        MUC_TRY(find_members(&scan,
                             (const wanted_member[]){ { "vocab", '{', &r->vocab },
                                                      { "vocab", '[', &r->vocab },
                                                      { "merges", '[', &r->merges } },
                             3));
    MUC_TRY(parse_rest(r));
    r->model = json_object_get(r->root, "model");
    MUC_TRY(check_model(r));
    return read_model(r);
}

muc_status muc_vocabulary_read_huggingface(muc_context *ctx, muc_bytes file, muc_arena *arena,
                                           muc_vocabulary *out)
{
    reader r = { .ctx = ctx, .source = file.name, .arena = arena, .out = out, .file = file };
    muc_status status;

    *out = (muc_vocabulary){ .source = file.name, .bos = MUR_NO_TOKEN, .eos = MUR_NO_TOKEN };
    status = read_file(&r);
    json_decref(r.root);
    return status;
}

/* ---- vocab.json and merges.txt ---- */

static const char end_of_text[] = "<|endoftext|>";

static muc_status take_end_of_text(const reader *r, muc_string_view text, uint32_t id,
                                   uint32_t *found)
{
    (void)r;
    if (text.size == sizeof(end_of_text) - 1 && memcmp(text.data, end_of_text, text.size) == 0)
        *found = id;
    return MUC_OK;
}

/* What Hugging Face's own conversion makes of the two: the tokenizer.json of GPT-2. */
static muc_status assemble(reader *r)
{
    muc_json_scan scan = scan_at(r, 0);
    uint32_t id = MUR_NO_TOKEN;

    if (muc_scan_peek(&scan) != '{')
        return fail(r, MUC_MALFORMED, "expected a JSON object of pieces and their ids");
    r->vocab.start = scan.at;
    MUC_TRY(muc_scan_skip(&scan));
    r->vocab.end = scan.at;
    if (muc_scan_peek(&scan) != '\0' || scan.at < r->file.size)
        return muc_fail(r->ctx, MUC_MALFORMED, r->source, scan.at, "JSON: end of file expected");
    MUC_TRY(for_pieces(r, &id, take_end_of_text));
    r->root = json_pack("{s:{s:s},s:{s:s,s:b},s:{s:s},s:[]}", "model", "type", "BPE",
                        "pre_tokenizer", "type", "ByteLevel", "add_prefix_space", 0, "decoder",
                        "type", "ByteLevel", "added_tokens");
    if (!r->root)
        return muc_fail_nomem(r->ctx, r->source, sizeof(json_t));
    r->model = json_object_get(r->root, "model");
    if (id != MUR_NO_TOKEN &&
        json_array_append_new(
            json_object_get(r->root, "added_tokens"),
            json_pack("{s:s,s:i,s:b}", "content", end_of_text, "id", (int)id, "special", 1)) != 0)
        return muc_fail_nomem(r->ctx, r->source, sizeof(json_t));
    return read_model(r);
}

muc_status muc_vocabulary_read_gpt2(muc_context *ctx, muc_bytes vocab, muc_bytes merges,
                                    muc_arena *arena, muc_vocabulary *out)
{
    reader r = { .ctx = ctx, .source = vocab.name, .arena = arena, .out = out, .file = vocab };
    muc_status status;

    r.lines = merges;
    if (!r.lines.data) /* an empty file */
        r.lines.data = (const uint8_t *)"";
    *out = (muc_vocabulary){ .source = vocab.name, .bos = MUR_NO_TOKEN, .eos = MUR_NO_TOKEN };
    status = assemble(&r);
    json_decref(r.root);
    return status;
}
