/* compile_tokenizer.c - lays out the compiled form of mur_tokenizer.h. */
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "text/character_map.h"
#include "text/merges.h"
#include "text/split_machine.h"

enum { BYTE_IDS = 256 };

/* What is found in the text before all else. */
typedef struct special_piece {
    uint32_t id, how;
    uint32_t start; /* in the form's text */
    muc_string_view text;
} special_piece;

/* The parts of the form, before they are laid out. */
typedef struct form_parts {
    muc_context *ctx;
    muc_arena *arena;
    const muc_vocabulary *vocabulary;
    muc_string_view *texts; /* [pieces] as plain text has them */
    size_t text_bytes;
    char *more; /* [more_bytes] what specials are found by that is not a piece's text */
    size_t more_bytes, more_capacity;
    muc_ranked_merge *merges;
    size_t merge_count;
    /* in the place of merges: */
    double *costs;      /* [pieces + 1] as mur_unigram.h has scores, or NULL */
    uint32_t (*map)[2]; /* [map_count] as mur_wordpiece.h has characters, or NULL */
    size_t map_count;
    uint32_t byte_ids[BYTE_IDS], unknown; /* the piece of bytes that have none */
    uint32_t *index;                      /* [index_count] */
    special_piece *specials;              /* [special_count] */
    size_t index_count, special_count;
    uint32_t *split; /* [split_count] the tables of mur_split.h */
    size_t split_count;
} form_parts;

/* ---- texts ---- */

static bool is_special(const muc_piece *piece)
{
    return piece->type == MUR_PIECE_UNKNOWN || piece->type == MUR_PIECE_CONTROL ||
           piece->type == MUR_PIECE_USER;
}

/* Writes the plain text of a piece, which is never longer than the piece. */
static muc_status plain_text(const form_parts *f, uint32_t id, char *out, size_t *size)
{
    const muc_piece *piece = &f->vocabulary->pieces[id];
    const bool characters = f->vocabulary->alphabet == MUC_ALPHABET_CHARACTERS;
    size_t step, n = 0;

    if (f->vocabulary->wordpiece) {
        memcpy(out, piece->text ? piece->text : "", n = piece->size);
    } else if (piece->type == MUR_PIECE_BYTE) {
        out[n++] = (char)muc_byte_piece_value(piece->text, piece->size);
    } else if (is_special(piece) && (piece->type != MUR_PIECE_USER || !characters)) {
        memcpy(out, piece->text, n = piece->size);
    } else if (characters && (piece->type == MUR_PIECE_NORMAL || piece->type == MUR_PIECE_USER)) {
        for (size_t at = 0; at < piece->size; at += step) {
            bool mark = piece->size - at >= 3 && memcmp(piece->text + at, MUC_SPACE_MARK, 3) == 0;

            step = mark ? 3 : 1;
            out[n++] = mark ? ' ' : piece->text[at];
        }
    } else if (piece->type == MUR_PIECE_NORMAL) {
        for (size_t at = 0; at < piece->size; at += step) {
            int byte = muc_byte_of_character(piece->text + at, piece->size - at, &step);

            /* a piece with a character that stands for no byte is there, but no text has it */
            if (byte < 0)
                memcpy(out + n, piece->text + at, step);
            else
                out[n] = (char)byte;
            n += byte < 0 ? step : 1;
        }
    }
    *size = n;
    return MUC_OK;
}

static muc_status check_text_bytes(const form_parts *f)
{
    if (f->text_bytes < MUR_TOKENIZER_MAX_TEXT)
        return MUC_OK;
    return muc_fail(f->ctx, MUC_MALFORMED, f->vocabulary->source, MUC_NO_OFFSET,
                    "pieces of %zu bytes together, expected less than %d", f->text_bytes,
                    MUR_TOKENIZER_MAX_TEXT);
}

static muc_status make_texts(form_parts *f)
{
    char text[MUC_PIECE_MAX_BYTES];

    MUC_TRY(MUC_ARENA_NEW(f->ctx, f->arena, f->vocabulary->count, &f->texts));
    for (uint32_t i = 0; i < f->vocabulary->count; i++) {
        MUC_TRY(plain_text(f, i, text, &f->texts[i].size));
        MUC_TRY(muc_arena_string(f->ctx, f->arena, text, f->texts[i].size, &f->texts[i].data));
        f->text_bytes += f->texts[i].size;
    }
    return check_text_bytes(f);
}

/* ---- ids ---- */

/* Vocabularies leave out bytes that no UTF-8 has (0xC0, 0xC1, from 0xF5 on), that no character in
 * use has (from 0xF1 on), and control characters; where they occur all the same, nothing comes of
 * them. */
static bool may_lack(unsigned byte)
{
    return byte == 0xc0 || byte == 0xc1 || byte >= 0xf1 || byte == 0x7f ||
           (byte < 0x20 && !(byte >= '\t' && byte <= '\r' && byte != '\v'));
}

static muc_status check_byte_ids(form_parts *f)
{
    const muc_vocabulary *v = f->vocabulary;
    uint32_t unknown = 0;

    while (unknown < v->count && v->pieces[unknown].type != MUR_PIECE_UNKNOWN)
        unknown++;
    f->unknown = MUR_NO_TOKEN;
    for (unsigned b = 0; b < BYTE_IDS; b++) {
        if (f->byte_ids[b] != MUR_NO_TOKEN)
            continue;
        if (unknown < v->count)
            f->unknown = unknown;
        else if (v->alphabet == MUC_ALPHABET_CHARACTERS || !may_lack(b))
            return muc_fail(f->ctx, MUC_UNSUPPORTED, v->source, MUC_NO_OFFSET,
                            "a tokenizer without a piece for byte 0x%02X and without an unknown "
                            "piece cannot encode every text",
                            b);
    }
    return MUC_OK;
}

static muc_status make_byte_ids(form_parts *f)
{
    const muc_vocabulary *v = f->vocabulary;
    const uint32_t type = v->alphabet == MUC_ALPHABET_BYTES ? MUR_PIECE_NORMAL : MUR_PIECE_BYTE;

    memset(f->byte_ids, 0xff, sizeof(f->byte_ids));
    for (uint32_t i = 0; i < v->count; i++) {
        uint32_t *id = &f->byte_ids[f->texts[i].size == 1 ? (uint8_t)f->texts[i].data[0] : 0];

        if (v->pieces[i].type != type || f->texts[i].size != 1)
            continue;
        if (*id != MUR_NO_TOKEN)
            return muc_fail(f->ctx, MUC_MALFORMED, v->source, MUC_NO_OFFSET,
                            "pieces %u and %u are the same byte", *id, i);
        *id = i;
    }
    return check_byte_ids(f);
}

static int compare_texts(muc_string_view a, muc_string_view b)
{
    int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);

    return order != 0 ? order : a.size < b.size ? -1 : a.size > b.size;
}

/* A text's first bytes, which decide most comparisons, and the rest. */
typedef struct text_key {
    uint64_t head;
    uint32_t id;
    muc_string_view text;
} text_key;

static int by_text(const void *a, const void *b)
{
    const text_key *x = a, *y = b;

    return x->head != y->head ? (x->head < y->head ? -1 : 1) : compare_texts(x->text, y->text);
}

/* Ids ascending by text. */
static muc_status sort_index(form_parts *f)
{
    text_key *keys;

    MUC_TRY(MUC_ARENA_NEW(f->ctx, f->arena, f->index_count, &keys));
    for (size_t i = 0; i < f->index_count; i++) {
        const muc_string_view text = f->texts[f->index[i]];

        keys[i] = (text_key){ .id = f->index[i], .text = text };
        for (size_t at = 0; at < sizeof(keys[i].head); at++)
            keys[i].head = keys[i].head << 8 | (at < text.size ? (uint8_t)text.data[at] : 0);
    }
    if (f->index_count > 0)
        qsort(keys, f->index_count, sizeof(*keys), by_text);
    for (size_t i = 0; i < f->index_count; i++)
        f->index[i] = keys[i].id;
    return MUC_OK;
}

static int by_found_text(const void *a, const void *b)
{
    const special_piece *x = a, *y = b;
    int order = compare_texts(x->text, y->text);

    return order != 0 ? order : x->id < y->id ? -1 : x->id > y->id;
}

static bool is_character(const muc_piece *piece)
{
    size_t continued = 0;

    for (size_t i = 1; i < piece->size; i++)
        continued += ((uint8_t)piece->text[i] & 0xc0) == 0x80;
    return continued + 1 == piece->size;
}

static muc_status make_specials(form_parts *f)
{
    const muc_vocabulary *v = f->vocabulary;
    uint32_t start = 0;
    size_t count = 0;

    MUC_TRY(MUC_ARENA_NEW(f->ctx, f->arena, v->count, &f->specials));
    for (uint32_t i = 0; i < v->count; start += (uint32_t)f->texts[i++].size) {
        const muc_piece *piece = &v->pieces[i];
        const bool always = piece->type == MUR_PIECE_USER || piece->found & MUR_SPECIAL_ALWAYS;
        special_piece special = { .id = i, .start = start, .text = f->texts[i] };

        if (!is_special(piece) && !always)
            continue;
        special.how = piece->found | (always ? MUR_SPECIAL_ALWAYS : 0);
        if (piece->found_as_written && special.text.size != piece->size) {
            special.text = (muc_string_view){ piece->text, piece->size };
            special.start = (uint32_t)(f->text_bytes + f->more_bytes);
            MUC_TRY(MUC_ARENA_GROW(f->ctx, f->arena, f->more_bytes + piece->size, &f->more_capacity,
                                   &f->more));
            memcpy(f->more + f->more_bytes, piece->text, piece->size);
            f->more_bytes += piece->size;
        }
        if (special.text.size > 0)
            f->specials[f->special_count++] = special;
    }
    f->text_bytes += f->more_bytes;
    MUC_TRY(check_text_bytes(f));
    if (f->special_count > 0)
        qsort(f->specials, f->special_count, sizeof(*f->specials), by_found_text);
    /* of two with one text, the first counts */
    for (size_t i = 0; i < f->special_count; i++)
        if (count == 0 || compare_texts(f->specials[count - 1].text, f->specials[i].text) != 0)
            f->specials[count++] = f->specials[i];
    f->special_count = count;
    return MUC_OK;
}

/* The characters that have a piece; all pieces where none are merged. */
static bool is_reachable_character(const muc_vocabulary *v, const muc_piece *piece)
{
    return (v->unigram || v->wordpiece || is_character(piece)) && muc_piece_is_reachable(v, piece);
}

/* A segment that is taken whole. */
static bool stands_for_bytes(const muc_vocabulary *v, const muc_piece *piece)
{
    size_t step;

    (void)v;
    for (size_t at = 0; at < piece->size; at += step)
        if (muc_byte_of_character(piece->text + at, piece->size - at, &step) < 0)
            return false;
    return true;
}

static muc_status index_pieces(form_parts *f,
                               bool (*takes)(const muc_vocabulary *v, const muc_piece *piece))
{
    const muc_vocabulary *v = f->vocabulary;

    MUC_TRY(MUC_ARENA_NEW(f->ctx, f->arena, v->count, &f->index));
    for (uint32_t i = 0; i < v->count; i++)
        if (v->pieces[i].type == MUR_PIECE_NORMAL && takes(v, &v->pieces[i]))
            f->index[f->index_count++] = i;
    return sort_index(f);
}

/* Cutting before runs of spaces is exact if no merge joins a space to what precedes it, unless
 * that is a space too. */
static bool merges_keep_words_apart(const form_parts *f)
{
    for (size_t i = 0; i < f->merge_count; i++) {
        const muc_string_view text = f->texts[f->merges[i].result];

        for (size_t at = 1; at < text.size; at++)
            if (text.data[at] == ' ' && text.data[at - 1] != ' ')
                return false;
    }
    return true;
}

/* Scores without their signs, of pieces that take part; last, what a character without one costs.
 */
static muc_status make_costs(form_parts *f)
{
    static const double most = 1e6, unknown = 10;
    const muc_vocabulary *v = f->vocabulary;
    double highest = 0;

    MUC_TRY(MUC_ARENA_NEW(f->ctx, f->arena, v->count + 1, &f->costs));
    for (uint32_t i = 0; i < v->count; i++) {
        const double cost = 0 - v->pieces[i].score;

        if (v->pieces[i].type != MUR_PIECE_NORMAL)
            continue;
        if (!(cost >= 0 && cost <= most))
            return muc_fail(f->ctx, MUC_UNSUPPORTED, v->source, MUC_NO_OFFSET,
                            "piece %u, '%.100s', has score %g, expected -%g to 0", i,
                            v->pieces[i].text, v->pieces[i].score, most);
        f->costs[i] = cost;
        highest = cost > highest ? cost : highest;
    }
    f->costs[v->count] = highest + unknown;
    return MUC_OK;
}

static muc_status make_split(form_parts *f)
{
    static const muc_split_rule words = { .pattern = "[ " MUC_SPACE_MARK "]*[^ " MUC_SPACE_MARK
                                                     "]+|[ " MUC_SPACE_MARK "]+" };
    muc_vocabulary v = *f->vocabulary;

    if (v.alphabet == MUC_ALPHABET_CHARACTERS && !v.unigram && !v.wordpiece &&
        v.rule_count < MUR_SPLIT_STAGES && merges_keep_words_apart(f))
        v.rules[v.rule_count++] = words;
    return muc_split_compile(f->ctx, v.source, v.rules, v.rule_count, f->arena, &f->split,
                             &f->split_count);
}

/* ---- layout ---- */

static uint32_t form_flags(const muc_vocabulary *v)
{
    uint32_t flags = v->alphabet == MUC_ALPHABET_BYTES ? MUR_TOKENIZER_BYTES : 0;

    if (v->prefix)
        flags |= MUR_TOKENIZER_PREFIX;
    if (v->prefix && v->prefix_again)
        flags |= MUR_TOKENIZER_PREFIX_AGAIN;
    if (v->prefix && v->prefix_missing)
        flags |= MUR_TOKENIZER_PREFIX_MISSING;
    if (v->unigram)
        flags |= MUR_TOKENIZER_UNIGRAM;
    if (v->wordpiece)
        flags |= MUR_TOKENIZER_WORDPIECE;
    if (v->nfc)
        flags |= MUR_TOKENIZER_NFC;
    if (v->add_bos && v->bos != MUR_NO_TOKEN)
        flags |= MUR_TOKENIZER_ADD_BOS;
    if (v->add_eos && v->eos != MUR_NO_TOKEN)
        flags |= MUR_TOKENIZER_ADD_EOS;
    return flags;
}

static uint8_t *put_words(uint8_t *p, const uint32_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++, p += 4)
        muc_store_u32(p, words[i]);
    return p;
}

/* Words of two that stand where merges do. */
static uint32_t ranks_of(const form_parts *f)
{
    return (uint32_t)(f->costs ? f->vocabulary->count + 1 : f->map ? f->map_count : f->merge_count);
}

static uint8_t *put_pieces(const form_parts *f, uint8_t *p)
{
    uint32_t start = 0, merge = 0;

    for (uint32_t i = 0; i < f->vocabulary->count; i++) {
        const uint32_t words[2] = { start | f->vocabulary->pieces[i].type << 28,
                                    f->costs ? i : merge };

        p = put_words(p, words, 2);
        start += (uint32_t)f->texts[i].size;
        while (merge < f->merge_count && f->merges[merge].left == i)
            merge++;
    }
    return put_words(p, (const uint32_t[2]){ start, ranks_of(f) }, 2);
}

static uint8_t *put_merges(const form_parts *f, uint8_t *p)
{
    for (uint32_t i = 0; f->costs && i < ranks_of(f); i++) {
        uint64_t bits;

        memcpy(&bits, &f->costs[i], sizeof(bits));
        p = put_words(p, (const uint32_t[2]){ (uint32_t)bits, (uint32_t)(bits >> 32) }, 2);
    }
    for (size_t i = 0; i < f->map_count; i++)
        p = put_words(p, f->map[i], 2);
    for (size_t i = 0; i < f->merge_count; i++) {
        const muc_ranked_merge *m = &f->merges[i];
        const uint32_t words[2] = { m->right | m->result << 20, m->result >> 12 | m->rank << 8 };

        p = put_words(p, words, 2);
    }
    return p;
}

static muc_status lay_out(const form_parts *f, uint8_t **form, size_t *bytes)
{
    const muc_vocabulary *v = f->vocabulary;
    const size_t size = sizeof(mur_tokenizer_header) + 8 * (v->count + 1) +
                        8 * (size_t)ranks_of(f) + 4 * BYTE_IDS + 4 * f->index_count +
                        8 * f->special_count + 4 * f->split_count +
                        ((f->text_bytes + 3) & ~(size_t)3);
    const uint32_t header[] = { MUR_TOKENIZER_MAGIC,
                                MUR_TOKENIZER_VERSION,
                                (uint32_t)size,
                                (uint32_t)v->count,
                                ranks_of(f),
                                (uint32_t)f->index_count,
                                (uint32_t)f->special_count,
                                (uint32_t)f->split_count,
                                (uint32_t)f->text_bytes,
                                form_flags(v),
                                v->bos,
                                v->eos,
                                f->unknown };
    uint8_t *p;

    _Static_assert(sizeof(header) == sizeof(mur_tokenizer_header), "every field of the header");
    MUC_TRY(MUC_ARENA_NEW(f->ctx, f->arena, size, form));
    *bytes = size;
    p = put_words(*form, header, MUC_COUNT(header));
    p = put_pieces(f, p);
    p = put_merges(f, p);
    p = put_words(p, f->byte_ids, BYTE_IDS);
    p = put_words(p, f->index, f->index_count);
    for (size_t i = 0; i < f->special_count; i++) {
        const special_piece *s = &f->specials[i];

        p = put_words(
            p, (const uint32_t[2]){ s->id | (uint32_t)s->text.size << 20, s->start | s->how << 28 },
            2);
    }
    p = put_words(p, f->split, f->split_count);
    for (uint32_t i = 0; i < v->count; i++) {
        memcpy(p, f->texts[i].data, f->texts[i].size);
        p += f->texts[i].size;
    }
    if (f->more_bytes > 0)
        memcpy(p, f->more, f->more_bytes);
    return MUC_OK;
}

muc_status muc_tokenizer_compile(muc_context *ctx, const muc_vocabulary *vocabulary,
                                 muc_arena *arena, uint8_t **form, size_t *bytes)
{
    form_parts f = { .ctx = ctx, .arena = arena, .vocabulary = vocabulary };
    const muc_piece_index *index = vocabulary->index;
    muc_piece_index made;
    mur_tokenizer opened;

    if ((vocabulary->bos != MUR_NO_TOKEN && vocabulary->bos >= vocabulary->count) ||
        (vocabulary->eos != MUR_NO_TOKEN && vocabulary->eos >= vocabulary->count))
        return muc_fail(ctx, MUC_MALFORMED, vocabulary->source, MUC_NO_OFFSET,
                        "bos %u or eos %u is beyond the %zu pieces", vocabulary->bos,
                        vocabulary->eos, vocabulary->count);
    if (!index) { /* it also sees that no two pieces have one text */
        MUC_TRY(muc_piece_index_new(ctx, arena, vocabulary, &made));
        index = &made;
    }
    if (vocabulary->unigram)
        MUC_TRY(make_costs(&f));
    else if (vocabulary->wordpiece)
        MUC_TRY(muc_character_map_make(ctx, vocabulary, arena, &f.map, &f.map_count));
    else
        MUC_TRY(muc_merges_rank(ctx, vocabulary, index, arena, &f.merges, &f.merge_count));
    MUC_TRY(make_texts(&f));
    MUC_TRY(make_byte_ids(&f));
    MUC_TRY(make_specials(&f));
    if (vocabulary->alphabet == MUC_ALPHABET_CHARACTERS) {
        MUC_TRY(index_pieces(&f, is_reachable_character));
    } else if (vocabulary->takes_whole_pieces) {
        MUC_TRY(index_pieces(&f, stands_for_bytes));
    }
    MUC_TRY(make_split(&f));
    MUC_TRY(lay_out(&f, form, bytes));
    if (muc_tokenizer_open(ctx, vocabulary->source, *form, *bytes, &opened) != MUC_OK)
        return MUC_BUG;
    return MUC_OK;
}
