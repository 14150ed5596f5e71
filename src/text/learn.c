/* learn.c - learns byte-pair merges from the distinct words of a text.
 *
 * A word is a run of spaces and what follows up to the next space. Counts of pairs are kept in a
 * table and corrected at each merge where a word changes.
 */
#include "text/learn.h"

#include <stdlib.h>
#include <string.h>

#include "base/visible_name.h"
#include "text/pieces.h"

enum { UNKNOWN, BEGIN, END, SPECIALS, FIRST_BYTE = SPECIALS, SPACE = FIRST_BYTE + 256 };

#define NO_SLOT SIZE_MAX

/* Symbols are ids of pieces; those of a word are at first..first + length - 1. */
typedef struct word {
    size_t first;
    uint32_t length;
    uint64_t times;
} word;

typedef struct pair {
    uint32_t left, right;
    int64_t times; /* slot is free where left and right are 0, which no symbol is */
} pair;

typedef struct character {
    char text[4];
    uint32_t size;
    uint64_t times;
} character;

typedef struct learner {
    muc_context *ctx;
    muc_arena arena;
    uint32_t wanted;
    muc_string_view *pieces; /* [wanted] */
    uint32_t count;
    muc_merge *merges; /* [wanted] */
    size_t merge_count;
    character *characters;
    size_t character_count, character_capacity;
    size_t *slots; /* of words, by their text */
    size_t slot_count;
    muc_string_view *texts; /* of words */
    word *words;
    size_t word_count, word_capacity, text_capacity;
    uint32_t *symbols;
    pair *pairs; /* open addressing */
    size_t pair_slots, pairs_used;
} learner;

/* ---- words and characters ---- */

/* Bytes of the character at the head of the text; 0 if it belongs to no piece. */
static size_t character_size(const char *text, size_t left)
{
    uint8_t head = (uint8_t)text[0];
    size_t size = head < 0x80 ? 1 : head < 0xe0 ? 2 : head < 0xf0 ? 3 : 4;

    if (head < 0x20 || head == 0x7f || size > left || !muc_is_utf8(text, size))
        return 0;
    return size;
}

static size_t slot_of(const learner *l, const char *text, size_t size)
{
    uint64_t hash = muc_hash(MUC_HASH_BEGIN, text, size);
    size_t slot = (hash ^ hash >> 29) & (l->slot_count - 1);

    while (l->slots[slot] != NO_SLOT) {
        const muc_string_view *t = &l->texts[l->slots[slot]];

        if (t->size == size && memcmp(t->data, text, size) == 0)
            break;
        slot = (slot + 1) & (l->slot_count - 1);
    }
    return slot;
}

static muc_status grow_slots(learner *l)
{
    size_t count = l->slot_count ? 2 * l->slot_count : 1024;

    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, count, &l->slots));
    l->slot_count = count;
    memset(l->slots, 0xff, count * sizeof(*l->slots));
    for (size_t i = 0; i < l->word_count; i++)
        l->slots[slot_of(l, l->texts[i].data, l->texts[i].size)] = i;
    return MUC_OK;
}

static muc_status count_word(learner *l, const char *text, size_t size)
{
    size_t slot;

    if (2 * (l->word_count + 1) > l->slot_count)
        MUC_TRY(grow_slots(l));
    slot = slot_of(l, text, size);
    if (l->slots[slot] == NO_SLOT) {
        size_t at = l->word_count++;

        MUC_TRY(MUC_ARENA_GROW(l->ctx, &l->arena, at + 1, &l->text_capacity, &l->texts));
        MUC_TRY(MUC_ARENA_GROW(l->ctx, &l->arena, at + 1, &l->word_capacity, &l->words));
        l->texts[at] = (muc_string_view){ text, size };
        l->words[at] = (word){ 0 };
        l->slots[slot] = at;
    }
    l->words[l->slots[slot]].times++;
    return MUC_OK;
}

/* Words end before spaces, and at what belongs to no piece. */
static muc_status count_words(learner *l, muc_string_view document)
{
    const char *text = document.data;
    size_t start = 0, at = 0;

    while (at < document.size) {
        size_t size = character_size(text + at, document.size - at);
        bool begins = size && text[at] == ' ' && at > start && text[at - 1] != ' ';

        if ((size == 0 || begins) && at > start)
            MUC_TRY(count_word(l, text + start, at - start));
        if (size == 0 || begins)
            start = at + (size == 0);
        at += size ? size : 1;
    }
    return at > start ? count_word(l, text + start, at - start) : MUC_OK;
}

static muc_status count_character(learner *l, const char *text, size_t size, uint64_t times)
{
    for (size_t i = 0; i < l->character_count; i++)
        if (l->characters[i].size == size && memcmp(l->characters[i].text, text, size) == 0) {
            l->characters[i].times += times;
            return MUC_OK;
        }
    MUC_TRY(MUC_ARENA_GROW(l->ctx, &l->arena, l->character_count + 1, &l->character_capacity,
                           &l->characters));
    l->characters[l->character_count] = (character){ .size = (uint32_t)size, .times = times };
    memcpy(l->characters[l->character_count++].text, text, size);
    return MUC_OK;
}

static int most_first(const void *a, const void *b)
{
    const character *x = a, *y = b;

    if (x->times != y->times)
        return x->times > y->times ? -1 : 1;
    return memcmp(x->text, y->text, sizeof(x->text));
}

/* ---- pieces ---- */

static muc_status add_piece(learner *l, const char *text, size_t size)
{
    muc_string_view *piece = &l->pieces[l->count++];

    piece->size = size;
    return muc_arena_string(l->ctx, &l->arena, text, size, &piece->data);
}

static muc_status add_first_pieces(learner *l)
{
    static const char *const specials[] = { "<unk>", "<s>", "</s>" };

    for (size_t i = 0; i < MUC_COUNT(specials); i++)
        MUC_TRY(add_piece(l, specials[i], strlen(specials[i])));
    for (unsigned b = 0; b < 256; b++) {
        const char *text;

        MUC_TRY(muc_arena_format(l->ctx, &l->arena, &text, "<0x%02X>", b));
        MUC_TRY(add_piece(l, text, strlen(text)));
    }
    return add_piece(l, MUC_SPACE_MARK, strlen(MUC_SPACE_MARK));
}

static muc_status add_characters(learner *l)
{
    size_t room = (l->wanted - l->count + 1) / 2;

    for (size_t i = 0; i < l->word_count; i++) {
        const muc_string_view *t = &l->texts[i];
        size_t size;

        for (size_t at = 0; at < t->size; at += size) {
            size = character_size(t->data + at, t->size - at);
            if (t->data[at] != ' ')
                MUC_TRY(count_character(l, t->data + at, size, l->words[i].times));
        }
    }
    if (l->character_count)
        qsort(l->characters, l->character_count, sizeof(*l->characters), most_first);
    l->character_count = l->character_count < room ? l->character_count : room;
    for (size_t i = 0; i < l->character_count; i++)
        MUC_TRY(add_piece(l, l->characters[i].text, l->characters[i].size));
    return MUC_OK;
}

/* UNKNOWN, which merges with nothing, if the character has no piece */
static uint32_t symbol_of(const learner *l, const char *text, size_t size)
{
    if (text[0] == ' ')
        return SPACE;
    for (size_t i = 0; i < l->character_count; i++)
        if (l->characters[i].size == size && memcmp(l->characters[i].text, text, size) == 0)
            return (uint32_t)(SPACE + 1 + i);
    return UNKNOWN;
}

static muc_status spell_words(learner *l)
{
    size_t total = 0, at = 0;

    for (size_t i = 0; i < l->word_count; i++)
        total += l->texts[i].size;
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, total, &l->symbols));
    for (size_t i = 0; i < l->word_count; i++) {
        const muc_string_view *t = &l->texts[i];
        size_t size;

        l->words[i].first = at;
        for (size_t c = 0; c < t->size; c += size) {
            size = character_size(t->data + c, t->size - c);
            l->symbols[at++] = symbol_of(l, t->data + c, size);
        }
        l->words[i].length = (uint32_t)(at - l->words[i].first);
    }
    return MUC_OK;
}

/* ---- pairs ---- */

static pair *find_pair(const learner *l, uint32_t left, uint32_t right)
{
    uint64_t key = ((uint64_t)left << 32 | right) * UINT64_C(0x9e3779b97f4a7c15);
    size_t slot = (size_t)(key >> 20) & (l->pair_slots - 1);

    while (l->pairs[slot].left && (l->pairs[slot].left != left || l->pairs[slot].right != right))
        slot = (slot + 1) & (l->pair_slots - 1);
    return &l->pairs[slot];
}

static muc_status grow_pairs(learner *l)
{
    const pair *old = l->pairs;
    size_t old_slots = l->pair_slots;

    l->pair_slots = old_slots ? 2 * old_slots : 4096;
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, l->pair_slots, &l->pairs));
    for (size_t i = 0; i < old_slots; i++)
        if (old[i].left)
            *find_pair(l, old[i].left, old[i].right) = old[i];
    return MUC_OK;
}

static muc_status count_pair(learner *l, uint32_t left, uint32_t right, int64_t times)
{
    pair *p;

    if (left == UNKNOWN || right == UNKNOWN)
        return MUC_OK;
    if (2 * (l->pairs_used + 1) > l->pair_slots)
        MUC_TRY(grow_pairs(l));
    p = find_pair(l, left, right);
    l->pairs_used += !p->left;
    p->left = left;
    p->right = right;
    p->times += times;
    return MUC_OK;
}

static muc_status count_pairs(learner *l, const word *w, int64_t sign)
{
    const uint32_t *s = l->symbols + w->first;

    for (uint32_t i = 0; i + 1 < w->length; i++)
        MUC_TRY(count_pair(l, s[i], s[i + 1], sign * (int64_t)w->times));
    return MUC_OK;
}

static const pair *best_pair(const learner *l)
{
    const pair *best = NULL;

    for (size_t i = 0; i < l->pair_slots; i++) {
        const pair *p = &l->pairs[i];

        if (p->times < 2 || (best && p->times < best->times))
            continue;
        if (!best || p->times > best->times || p->left < best->left ||
            (p->left == best->left && p->right < best->right))
            best = p;
    }
    return best;
}

static bool has_pair(const learner *l, const word *w, const muc_merge *m)
{
    const uint32_t *s = l->symbols + w->first;

    for (uint32_t i = 0; i + 1 < w->length; i++)
        if (s[i] == m->left && s[i + 1] == m->right)
            return true;
    return false;
}

static void merge_word(const learner *l, word *w, const muc_merge *m, uint32_t result)
{
    uint32_t *s = l->symbols + w->first, kept = 0;

    for (uint32_t i = 0; i < w->length; i++) {
        bool both = i + 1 < w->length && s[i] == m->left && s[i + 1] == m->right;

        s[kept++] = both ? result : s[i];
        i += both;
    }
    w->length = kept;
}

static muc_status add_merge(learner *l, muc_merge m)
{
    muc_string_view a = l->pieces[m.left], b = l->pieces[m.right];
    uint32_t result = l->count;
    const char *text;

    MUC_TRY(muc_arena_format(l->ctx, &l->arena, &text, "%s%s", a.data, b.data));
    MUC_TRY(add_piece(l, text, a.size + b.size));
    l->merges[l->merge_count++] = m;
    for (size_t i = 0; i < l->word_count; i++) {
        word *w = &l->words[i];

        if (!has_pair(l, w, &m))
            continue;
        MUC_TRY(count_pairs(l, w, -1));
        merge_word(l, w, &m, result);
        MUC_TRY(count_pairs(l, w, 1));
    }
    return MUC_OK;
}

/* Two ways to one text would be two pieces of one text: the later pair does not merge. */
static bool makes_new_text(const learner *l, const pair *p)
{
    muc_string_view a = l->pieces[p->left], b = l->pieces[p->right];

    if (a.size + b.size > MUC_PIECE_MAX_BYTES)
        return false;
    for (uint32_t i = SPACE; i < l->count; i++)
        if (l->pieces[i].size == a.size + b.size &&
            memcmp(l->pieces[i].data, a.data, a.size) == 0 &&
            memcmp(l->pieces[i].data + a.size, b.data, b.size) == 0)
            return false;
    return true;
}

static muc_status merge_all(learner *l)
{
    for (size_t i = 0; i < l->word_count; i++)
        MUC_TRY(count_pairs(l, &l->words[i], 1));
    while (l->count < l->wanted) {
        const pair *best = best_pair(l);

        if (!best)
            return MUC_OK;
        if (makes_new_text(l, best))
            MUC_TRY(add_merge(l, (muc_merge){ .left = best->left, .right = best->right }));
        else
            find_pair(l, best->left, best->right)->times = INT64_MIN / 2;
        muc_progress(l->ctx, "tokenizer", l->count, l->wanted);
    }
    return MUC_OK;
}

/* ---- tokenizer.json ---- */

static void write_json(const learner *l, muc_text *out)
{
    muc_text_add(out, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n"
                      "\"added_tokens\":[");
    for (uint32_t i = 0; i < SPECIALS; i++)
        muc_text_add(out,
                     "%s\n{\"id\":%u,\"content\":\"%s\",\"single_word\":false,\"lstrip\":false,"
                     "\"rstrip\":false,\"normalized\":false,\"special\":true}",
                     i ? "," : "", i, l->pieces[i].data);
    muc_text_add(
        out,
        "],\n\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},"
        "\"content\":\"" MUC_SPACE_MARK "\"},\n\"pre_tokenizer\":null,\n"
        "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":"
        "{\"id\":\"<s>\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],"
        "\"pair\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"Sequence\":{\"id\":\"B\","
        "\"type_id\":1}}],\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[%u],"
        "\"tokens\":[\"<s>\"]}}},\n",
        BEGIN);
    muc_text_add(out,
                 "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\","
                 "\"pattern\":{\"String\":\"" MUC_SPACE_MARK "\"},\"content\":\" \"},"
                 "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}]},\n"
                 "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":\"<unk>\","
                 "\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,"
                 "\"fuse_unk\":true,\"byte_fallback\":true,\"ignore_merges\":false,\n\"vocab\":{");
    for (uint32_t i = 0; i < l->count; i++) {
        muc_text_add(out, "%s\n", i ? "," : "");
        muc_text_add_json(out, l->pieces[i].data);
        muc_text_add(out, ":%u", i);
    }
    muc_text_add(out, "},\n\"merges\":[");
    for (size_t i = 0; i < l->merge_count; i++) {
        muc_text_add(out, "%s\n[", i ? "," : "");
        muc_text_add_json(out, l->pieces[l->merges[i].left].data);
        muc_text_add(out, ",");
        muc_text_add_json(out, l->pieces[l->merges[i].right].data);
        muc_text_add(out, "]");
    }
    muc_text_add(out, "]}}\n");
}

static muc_status learn(learner *l, const muc_string_view *documents, size_t count)
{
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, l->wanted, &l->pieces));
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->arena, l->wanted, &l->merges));
    MUC_TRY(add_first_pieces(l));
    if (l->count == l->wanted)
        return MUC_OK;
    for (size_t i = 0; i < count; i++)
        MUC_TRY(count_words(l, documents[i]));
    MUC_TRY(add_characters(l));
    MUC_TRY(spell_words(l));
    return merge_all(l);
}

muc_status muc_tokenizer_learn(muc_context *ctx, const muc_string_view *documents, size_t count,
                               uint32_t pieces, muc_text *json)
{
    learner l = { .ctx = ctx, .wanted = pieces };
    muc_status status;

    if (pieces < MUC_LEARN_LEAST_PIECES || pieces > MUR_TOKENIZER_MAX_PIECES)
        return muc_fail(ctx, MUC_USAGE, "tokenizer", MUC_NO_OFFSET,
                        "%u pieces are asked for, expected %d (the bytes) to %d", pieces,
                        MUC_LEARN_LEAST_PIECES, MUR_TOKENIZER_MAX_PIECES);
    status = learn(&l, documents, count);
    if (status == MUC_OK) {
        write_json(&l, json);
        status = muc_text_status(ctx, json);
    }
    muc_arena_free(&l.arena);
    return status;
}
