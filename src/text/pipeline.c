/* pipeline.c - the normalizer, pre-tokenizer and decoder of a tokenizer.json.
 *
 * Each is a part or a sequence of parts. A part that is known by its type and its settings changes
 * what is told of the tokenizer; in the end the three must agree.
 */
#include "text/pipeline.h"

#include <string.h>

#include "text/pieces.h"

#define MUC_GGUF_PRE(name, whole, bos, patterns)
#include "text/split_patterns.def"
#undef MUC_GGUF_PRE

typedef struct pipeline {
    muc_context *ctx;
    muc_arena *arena;
    muc_vocabulary *v;
    bool marks_spaces; /* a space is U+2581 */
    bool byte_level, makes_words;
    /* the decoder's */
    bool spells_bytes, strips, unmarks;
} pipeline;

static const char *string_of(const json_t *part, const char *key)
{
    const char *string = json_string_value(json_object_get(part, key));

    return string ? string : "";
}

static bool is(const json_t *part, const char *key, const char *value)
{
    return strcmp(string_of(part, key), value) == 0;
}

/* absent is the default */
static bool is_set(const json_t *part, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(part, key);

    return value ? json_is_true(value) : otherwise;
}

static muc_status refuse(const pipeline *p, const char *role, const json_t *part)
{
    char *text = json_dumps(part, JSON_COMPACT | JSON_ENCODE_ANY);
    muc_status status = muc_fail(p->ctx, MUC_UNSUPPORTED, p->v->source, MUC_NO_OFFSET,
                                 "%s %.160s is not known", role, text ? text : "");

    free(text);
    return status;
}

/* Calls take on a part, or on each of a sequence, which has its parts under `key`. */
static muc_status take_parts(pipeline *p, const json_t *part, const char *key,
                             muc_status (*take)(pipeline *p, const json_t *part))
{
    const json_t *steps = json_object_get(part, key);

    if (!part || json_is_null(part))
        return MUC_OK;
    if (!is(part, "type", "Sequence"))
        return take(p, part);
    for (size_t i = 0; i < json_array_size(steps); i++)
        MUC_TRY(take(p, json_array_get(steps, i)));
    return MUC_OK;
}

/* ---- normalizer ---- */

static void take_bert_normalizer(muc_word_rules *words, const json_t *part)
{
    const json_t *strips = json_object_get(part, "strip_accents");

    words->cleans = is_set(part, "clean_text", true);
    words->sets_ideographs_apart = is_set(part, "handle_chinese_chars", true);
    words->lowercases = is_set(part, "lowercase", true);
    words->strips_accents =
        !strips || json_is_null(strips) ? words->lowercases : json_is_true(strips);
}

static muc_status take_normalizer(pipeline *p, const json_t *part)
{
    muc_vocabulary *v = p->v;

    if (v->wordpiece && is(part, "type", "BertNormalizer"))
        take_bert_normalizer(&v->words, part);
    else if (v->wordpiece)
        return refuse(p, "normalizer", part);
    else if (is(part, "type", "NFC") && !p->marks_spaces && !v->prefix)
        v->nfc = true;
    else if (is(part, "type", "Prepend") && is(part, "prepend", MUC_SPACE_MARK) && !v->prefix)
        v->prefix = v->prefix_again = true;
    else if (is(part, "type", "Replace") && is(json_object_get(part, "pattern"), "String", " ") &&
             is(part, "content", MUC_SPACE_MARK))
        p->marks_spaces = true;
    else
        return refuse(p, "normalizer", part);
    return MUC_OK;
}

/* ---- pre-tokenizer ---- */

static muc_status add_rule(const pipeline *p, const char *pattern, bool literal,
                           muc_split_behavior behavior)
{
    return muc_vocabulary_add_rule(p->ctx, p->v, (muc_split_rule){ pattern, literal, behavior });
}

static bool behavior_of(const json_t *part, muc_split_behavior *out)
{
    static const struct {
        const char *name;
        bool invert;
        muc_split_behavior behavior;
    } rows[] = {
        { "Isolated", false, MUC_SPLIT_ISOLATED },
        { "Isolated", true, MUC_SPLIT_ISOLATED },
        { "Contiguous", false, MUC_SPLIT_CONTIGUOUS },
        { "MergedWithPrevious", false, MUC_SPLIT_WITH_PREVIOUS },
        { "MergedWithNext", false, MUC_SPLIT_WITH_NEXT },
        { "Removed", true, MUC_SPLIT_MATCHES_ONLY },
    };

    for (size_t i = 0; i < MUC_COUNT(rows); i++)
        if (is(part, "behavior", rows[i].name) && is_set(part, "invert", false) == rows[i].invert) {
            *out = rows[i].behavior;
            return true;
        }
    return false;
}

static muc_status take_split(const pipeline *p, const json_t *part)
{
    const json_t *pattern = json_object_get(part, "pattern");
    const json_t *string = json_object_get(pattern, "String");
    const json_t *text = string ? string : json_object_get(pattern, "Regex");
    muc_split_behavior behavior;
    const char *copy;

    if (!json_is_string(text) || json_string_length(text) != strlen(json_string_value(text)) ||
        !behavior_of(part, &behavior))
        return refuse(p, "pre_tokenizer", part);
    /* nothing is left for it to find */
    if (string && p->marks_spaces && strcmp(json_string_value(string), " ") == 0)
        return MUC_OK;
    if (p->marks_spaces)
        return refuse(p, "pre_tokenizer", part);
    MUC_TRY(muc_arena_string(p->ctx, p->arena, json_string_value(text), json_string_length(text),
                             &copy));
    return add_rule(p, copy, string != NULL, behavior);
}

/* Spaces are marked, one is put before the text unless it begins with one, and text may be cut
 * before each. */
static muc_status take_metaspace(pipeline *p, const json_t *part)
{
    const bool old = !json_object_get(part, "prepend_scheme");
    const bool always =
        old ? is_set(part, "add_prefix_space", true) : is(part, "prepend_scheme", "always");
    const bool first = !old && is(part, "prepend_scheme", "first");

    if (!is(part, "replacement", MUC_SPACE_MARK) || p->marks_spaces || p->v->prefix ||
        (!old && !always && !first && !is(part, "prepend_scheme", "never")))
        return refuse(p, "pre_tokenizer", part);
    p->marks_spaces = true;
    p->v->prefix = p->v->prefix_missing = always || first;
    p->v->prefix_again = always;
    return is_set(part, "split", true)
               ? add_rule(p, "[ " MUC_SPACE_MARK "]", false, MUC_SPLIT_WITH_NEXT)
               : MUC_OK;
}

static muc_status take_pre_tokenizer(pipeline *p, const json_t *part)
{
    muc_split_behavior behavior;

    if (p->byte_level) /* what follows would see bytes */
        return refuse(p, "pre_tokenizer after ByteLevel", part);
    if (p->v->wordpiece != is(part, "type", "BertPreTokenizer"))
        return refuse(p, "pre_tokenizer", part);
    if (p->v->wordpiece) {
        p->makes_words = true;
        return MUC_OK;
    }
    if (is(part, "type", "ByteLevel") && !is_set(part, "add_prefix_space", true)) {
        p->byte_level = true;
        return is_set(part, "use_regex", true)
                   ? add_rule(p, MUC_GPT2_PATTERN, false, MUC_SPLIT_ISOLATED)
                   : MUC_OK;
    }
    if (is(part, "type", "Split"))
        return take_split(p, part);
    if (is(part, "type", "Metaspace"))
        return take_metaspace(p, part);
    if (is(part, "type", "Digits") && !p->marks_spaces)
        return add_rule(p, "\\p{N}", false,
                        is_set(part, "individual_digits", false) ? MUC_SPLIT_ISOLATED
                                                                 : MUC_SPLIT_CONTIGUOUS);
    if (is(part, "type", "Punctuation") && !p->marks_spaces && behavior_of(part, &behavior))
        return add_rule(p, "[\\p{P}!-/:-@\\[-`{-~]", false, behavior);
    return refuse(p, "pre_tokenizer", part);
}

/* ---- decoder ---- */

static muc_status take_decoder(pipeline *p, const json_t *part)
{
    if (p->v->wordpiece && is(part, "type", "WordPiece"))
        return MUC_OK;
    if (is(part, "type", "ByteLevel"))
        p->spells_bytes = true;
    else if (is(part, "type", "Metaspace"))
        p->unmarks = p->strips = true;
    else if (is(part, "type", "Replace") &&
             is(json_object_get(part, "pattern"), "String", MUC_SPACE_MARK) &&
             is(part, "content", " "))
        p->unmarks = true;
    else if (is(part, "type", "Strip") && is(part, "content", " ") &&
             json_integer_value(json_object_get(part, "start")) == 1 &&
             json_integer_value(json_object_get(part, "stop")) == 0)
        p->strips = true;
    else if (!is(part, "type", "ByteFallback") && !is(part, "type", "Fuse"))
        return refuse(p, "decoder", part);
    return MUC_OK;
}

muc_status muc_pipeline_read(muc_context *ctx, const json_t *root, muc_arena *arena,
                             muc_vocabulary *out)
{
    pipeline p = { .ctx = ctx, .arena = arena, .v = out };

    MUC_TRY(take_parts(&p, json_object_get(root, "normalizer"), "normalizers", take_normalizer));
    MUC_TRY(take_parts(&p, json_object_get(root, "pre_tokenizer"), "pretokenizers",
                       take_pre_tokenizer));
    MUC_TRY(take_parts(&p, json_object_get(root, "decoder"), "decoders", take_decoder));
    out->alphabet = p.byte_level ? MUC_ALPHABET_BYTES : MUC_ALPHABET_CHARACTERS;
    if (out->wordpiece) {
        out->prefix = out->prefix_again = true; /* of the spaces before words the first one goes */
        return p.makes_words ? MUC_OK
                             : muc_fail(ctx, MUC_UNSUPPORTED, out->source, MUC_NO_OFFSET,
                                        "WordPiece without the pre_tokenizer BertPreTokenizer");
    }
    if (p.byte_level ? p.spells_bytes && !p.unmarks && !p.strips && !p.marks_spaces && !out->prefix
                     : p.marks_spaces && p.unmarks && !p.spells_bytes &&
                           (p.strips == out->prefix || out->prefix_missing))
        return MUC_OK;
    return muc_fail(ctx, MUC_UNSUPPORTED, out->source, MUC_NO_OFFSET,
                    "this normalizer, pre_tokenizer and decoder are neither BPE over U+2581 nor "
                    "byte-level BPE");
}
