/* pieces.c - looks pieces up by text, and rules by name. */
#include "text/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "base/visible_name.h"

muc_status muc_pieces_new(muc_context *ctx, muc_arena *arena, uint64_t count, muc_vocabulary *out)
{
    if (count == 0 || count > MUR_TOKENIZER_MAX_PIECES)
        return muc_fail(ctx, MUC_MALFORMED, out->source, MUC_NO_OFFSET,
                        "a vocabulary of %llu pieces, expected 1 to %d", (unsigned long long)count,
                        MUR_TOKENIZER_MAX_PIECES);
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, (size_t)count, &out->pieces));
    out->count = (size_t)count;
    for (size_t i = 0; i < out->count; i++)
        out->pieces[i].type = MUR_PIECE_UNUSED;
    return MUC_OK;
}

muc_status muc_piece_set_text(muc_context *ctx, muc_arena *arena, const muc_vocabulary *vocabulary,
                              size_t id, const char *text, size_t size)
{
    muc_piece *piece = &vocabulary->pieces[id];

    if (size == 0 || size > MUC_PIECE_MAX_BYTES)
        return muc_fail(ctx, MUC_MALFORMED, vocabulary->source, MUC_NO_OFFSET,
                        "piece %zu has %zu bytes, expected 1 to %d", id, size, MUC_PIECE_MAX_BYTES);
    if (!muc_is_utf8(text, size))
        return muc_fail(ctx, MUC_MALFORMED, vocabulary->source, MUC_NO_OFFSET,
                        "piece %zu is not UTF-8", id);
    piece->size = size;
    return muc_arena_string(ctx, arena, text, size, &piece->text);
}

muc_status muc_pieces_set_words(muc_context *ctx, muc_arena *arena,
                                const muc_vocabulary *vocabulary, const char *prefix, bool begins)
{
    const size_t size = strlen(prefix);
    char text[MUC_PIECE_MAX_BYTES + 1];

    for (size_t i = 0; i < vocabulary->count; i++) {
        muc_piece *piece = &vocabulary->pieces[i];
        size_t space;
        const bool has_prefix = piece->size >= size && memcmp(piece->text, prefix, size) == 0;
        const size_t skipped = has_prefix ? size : 0;

        if (piece->type != MUR_PIECE_NORMAL)
            continue;
        if (skipped == piece->size && !begins) { /* no text goes on with it */
            piece->type = MUR_PIECE_UNUSED;
            continue;
        }
        space = has_prefix == begins;
        if (space)
            text[0] = ' ';
        memcpy(text + space, piece->text + skipped, piece->size - skipped);
        MUC_TRY(muc_piece_set_text(ctx, arena, vocabulary, i, text, piece->size - skipped + space));
    }
    return MUC_OK;
}

bool muc_piece_ends_text(const char *text)
{
    static const char *const names[] = { "</s>",
                                         "<eos>",
                                         "<EOT>",
                                         "_<EOT>",
                                         "[EOT]",
                                         "[EOS]",
                                         "<|eot_id|>",
                                         "<|eom_id|>",
                                         "<|im_end|>",
                                         "<|end|>",
                                         "<|return|>",
                                         "<|call|>",
                                         "<|endoftext|>",
                                         "<turn|>",
                                         "<|end_of_text|>",
                                         "<end_of_turn>",
                                         "<end_of_utterance>",
                                         "<｜end▁of▁sentence｜>" };

    for (size_t i = 0; i < MUC_COUNT(names); i++)
        if (strcmp(text, names[i]) == 0)
            return true;
    return false;
}

int muc_byte_piece_value(const char *text, size_t size)
{
    int value = 0;

    if (size != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    for (int i = 3; i < 5; i++) {
        char c = text[i];

        if (c >= '0' && c <= '9')
            value = value * 16 + (c - '0');
        else if (c >= 'A' && c <= 'F')
            value = value * 16 + (c - 'A' + 10);
        else
            return -1;
    }
    return value;
}

/* A byte that is a visible character of Latin-1 stands for itself; the other 68, in order, are
 * written as the characters from U+0100 on. */
static bool is_visible(int byte)
{
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xff && byte != 0xad);
}

int muc_byte_of_character(const char *text, size_t left, size_t *size)
{
    const int32_t code = muc_utf8_read(text, left, size), place = code - 0x100;

    if (place < 0)
        return code >= 0 && is_visible(code) ? code : -1;
    /* 0x00..0x20, 0x7f..0xa0, 0xad */
    return place < 0x21 ? place : place < 0x43 ? place - 0x21 + 0x7f : place == 0x43 ? 0xad : -1;
}

/* ---- pieces by text ---- */

/* The text beside the hash spares a look at the pieces, of which hardly any is in a cache. */
struct muc_piece_slot {
    const char *text; /* NULL: free */
    uint32_t hash;
    uint32_t id_and_size; /* bits 0..19 and 20..31 */
};

_Static_assert(MUR_TOKENIZER_MAX_PIECES <= 1 << 20 && MUC_PIECE_MAX_BYTES < 1 << 12,
               "an id and a size are a word");

static uint32_t id_of(const struct muc_piece_slot *slot)
{
    return slot->id_and_size & 0xfffff;
}

static size_t size_of(const struct muc_piece_slot *slot)
{
    return slot->id_and_size >> 20;
}

/* No search looks at more slots, whatever texts a file makes up. */
enum { MOST_PROBES = 2048 };

enum { HASH_PRIME = 16777619 };

/* A polynomial of the bytes, so that the hash of an end comes of those of the whole and of what is
 * before it. */
uint32_t muc_piece_hash(uint32_t hash, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = hash * HASH_PRIME + (uint8_t)text[i] + 1;
    return hash;
}

uint32_t muc_piece_hash_of_end(uint32_t whole, uint32_t begin, size_t end_size)
{
    uint32_t power = 1;

    for (uint32_t square = HASH_PRIME; end_size > 0; end_size >>= 1, square *= square)
        power *= end_size & 1 ? square : 1;
    return whole - begin * power;
}

static bool is_text(const char *text, size_t size, muc_string_view a, muc_string_view b)
{
    return size == a.size + b.size && memcmp(text, a.data, a.size) == 0 &&
           (b.size == 0 || memcmp(text + a.size, b.data, b.size) == 0);
}

static size_t home_of(const muc_piece_index *index, uint32_t hash)
{
    hash *= 0x9e3779b1u; /* 2^32 over the golden ratio */
    return (hash ^ hash >> 15) & index->mask;
}

void muc_piece_prefetch(const muc_piece_index *index, uint32_t hash)
{
    __builtin_prefetch(&index->slots[home_of(index, hash)]);
}

void muc_piece_prefetch_text(const muc_piece_index *index, uint32_t hash)
{
    __builtin_prefetch(index->slots[home_of(index, hash)].text);
}

/* The slot of the text, or the free one for it; NULL if there is none within reach. */
static struct muc_piece_slot *find_slot(const muc_piece_index *index, uint32_t hash,
                                        muc_string_view a, muc_string_view b)
{
    size_t at = home_of(index, hash);

    for (size_t probe = 1; probe <= MOST_PROBES; at += probe++) {
        struct muc_piece_slot *slot = &index->slots[at & index->mask];

        if (!slot->text || (slot->hash == hash && is_text(slot->text, size_of(slot), a, b)))
            return slot;
    }
    return NULL;
}

muc_status muc_piece_index_new(muc_context *ctx, muc_arena *arena, const muc_vocabulary *vocabulary,
                               muc_piece_index *out)
{
    size_t slots = 8;

    while (slots < 2 * vocabulary->count)
        slots *= 2;
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, slots, &out->slots));
    out->pieces = vocabulary->pieces;
    out->mask = slots - 1;
    out->count = vocabulary->count;
    out->result = 0;
    for (uint32_t i = 0; i < vocabulary->count; i++) {
        const muc_piece *piece = &vocabulary->pieces[i];
        const muc_string_view text = { piece->text, piece->size }, none = { "", 0 };
        struct muc_piece_slot *slot;
        uint32_t hash;

        if (piece->type != MUR_PIECE_NORMAL)
            continue;
        hash = muc_piece_hash(0, text.data, text.size);
        slot = find_slot(out, hash, text, none);
        if (!slot)
            return muc_fail(ctx, MUC_UNSUPPORTED, vocabulary->source, MUC_NO_OFFSET,
                            "too many pieces have the hash of '%s'", piece->text);
        if (slot->text)
            return muc_fail(ctx, MUC_MALFORMED, vocabulary->source, MUC_NO_OFFSET,
                            "pieces %u and %u are both '%s'", id_of(slot), i, piece->text);
        *slot = (struct muc_piece_slot){ piece->text, hash, i | (uint32_t)piece->size << 20 };
    }
    return MUC_OK;
}

uint32_t muc_piece_find2(const muc_piece_index *index, uint32_t hash, muc_string_view a,
                         muc_string_view b)
{
    const struct muc_piece_slot *slot = find_slot(index, hash, a, b);

    return slot && slot->text ? id_of(slot) : MUR_NO_TOKEN;
}

uint32_t muc_piece_find(const muc_piece_index *index, muc_string_view text)
{
    return muc_piece_find2(index, muc_piece_hash(0, text.data, text.size), text,
                           (muc_string_view){ "", 0 });
}

/* ---- rules ---- */

muc_status muc_vocabulary_add_rule(muc_context *ctx, muc_vocabulary *v, muc_split_rule rule)
{
    if (v->rule_count == MUR_SPLIT_STAGES)
        return muc_fail(ctx, MUC_UNSUPPORTED, v->source, MUC_NO_OFFSET,
                        "more than %d split patterns one after the other", MUR_SPLIT_STAGES);
    v->rules[v->rule_count++] = rule;
    return MUC_OK;
}

bool muc_vocabulary_set_gguf_rules(muc_vocabulary *v, const char *name, bool *adds_bos)
{
    static const struct {
        const char *name;
        bool takes_whole_pieces, adds_bos;
        const char *patterns[MUR_SPLIT_STAGES];
    } rows[] = {
#define MUC_CUTS(...) \
    { \
        __VA_ARGS__ \
    }
#define MUC_GGUF_PRE(name, whole, bos, patterns) { name, whole, bos, patterns },
#include "text/split_patterns.def"
#undef MUC_GGUF_PRE
#undef MUC_CUTS
    };

    for (size_t i = 0; i < MUC_COUNT(rows); i++) {
        if (strcmp(rows[i].name, name) != 0)
            continue;
        for (size_t j = 0; j < MUR_SPLIT_STAGES && rows[i].patterns[j]; j++)
            v->rules[v->rule_count++] = (muc_split_rule){ .pattern = rows[i].patterns[j] };
        v->takes_whole_pieces = rows[i].takes_whole_pieces;
        *adds_bos = rows[i].adds_bos;
        return true;
    }
    return false;
}
