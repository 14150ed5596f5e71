/* mur_tokenizer.c - byte-pair merging over a compiled vocabulary.
 *
 * The symbols of a segment are a linked list within arrays indexed by the position at which each
 * one started. Over them stands a tournament: every position's rank is that of the merge with its
 * right neighbour, and each node of a tree holds the winner of its two children. A merge replays
 * the paths of the two or three positions whose rank changed, so a segment of n symbols takes
 * O(n log n) time, and 20 bytes of scratch a symbol.
 */
#include "mur_encoder.h"

#include <string.h>

#define NONE UINT32_MAX

enum { BYTE_IDS = 256 };

/* ---- the compiled form ---- */

static uint32_t piece_start(const mur_tokenizer *t, uint32_t id)
{
    return t->pieces[2 * id] & 0x0fffffffu;
}

static uint32_t piece_size(const mur_tokenizer *t, uint32_t id)
{
    return piece_start(t, id + 1) - piece_start(t, id);
}

static uint32_t piece_type(const mur_tokenizer *t, uint32_t id)
{
    return t->pieces[2 * id] >> 28;
}

static int is_special(uint32_t type)
{
    return type == MUR_PIECE_CONTROL || type == MUR_PIECE_USER || type == MUR_PIECE_UNKNOWN;
}

static uint32_t merge_right(const mur_tokenizer *t, uint32_t merge)
{
    return t->merges[2 * merge] & 0xfffffu;
}

static uint32_t merge_result(const mur_tokenizer *t, uint32_t merge)
{
    return t->merges[2 * merge] >> 20 | (t->merges[2 * merge + 1] & 0xffu) << 12;
}

static uint32_t merge_rank(const mur_tokenizer *t, uint32_t merge)
{
    return t->merges[2 * merge + 1] >> 8;
}

static int header_ok(const mur_tokenizer_header *h, size_t bytes)
{
    /* each count is bounded first: the sum stays below 2^32 */
    if (h->pieces == 0 || h->pieces > MUR_TOKENIZER_MAX_PIECES ||
        h->merges > MUR_TOKENIZER_MAX_MERGES || h->indexed > h->pieces || h->specials > h->pieces ||
        h->split_words > MUR_TOKENIZER_MAX_PIECES || h->text_bytes > MUR_TOKENIZER_MAX_TEXT)
        return 0;
    return h->bytes <= bytes &&
           h->bytes == sizeof(*h) + 8 * (h->pieces + 1) + 8 * h->merges + 4 * BYTE_IDS +
                           4 * h->indexed + 8 * h->specials + 4 * h->split_words +
                           ((h->text_bytes + 3) & ~3u) &&
           h->flags <= MUR_TOKENIZER_FLAGS && (h->bos < h->pieces || h->bos == MUR_NO_TOKEN) &&
           (h->eos < h->pieces || h->eos == MUR_NO_TOKEN) &&
           (h->unknown < h->pieces || h->unknown == MUR_NO_TOKEN);
}

/* Texts and merge lists lie one after the other and end at the end. */
static int pieces_ok(const mur_tokenizer *t)
{
    const uint32_t n = t->header->pieces;

    for (uint32_t i = 0; i < n; i++)
        if (piece_start(t, i) > piece_start(t, i + 1) ||
            t->pieces[2 * i + 1] > t->pieces[2 * i + 3])
            return 0;
    return piece_start(t, 0) == 0 && t->pieces[1] == 0 &&
           piece_start(t, n) <= t->header->text_bytes && t->pieces[2 * n + 1] == t->header->merges;
}

static int merges_ok(const mur_tokenizer *t)
{
    const uint32_t n = t->header->pieces;

    for (uint32_t left = 0; left < n; left++) {
        const uint32_t first = t->pieces[2 * left + 1], end = t->pieces[2 * left + 3];

        for (uint32_t i = first; i < end; i++) {
            const uint32_t right = merge_right(t, i), result = merge_result(t, i);

            if (right >= n || result >= n || (i > first && merge_right(t, i - 1) >= right) ||
                piece_size(t, result) != piece_size(t, left) + piece_size(t, right))
                return 0;
        }
    }
    return 1;
}

/* Every id is a piece with a text. */
static int ids_ok(const mur_tokenizer *t, const uint32_t *ids, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (ids[i] >= t->header->pieces || piece_size(t, ids[i]) == 0)
            return 0;
    return 1;
}

static uint32_t special_size(const mur_tokenizer *t, uint32_t special)
{
    return t->specials[2 * special] >> 20;
}

static const uint8_t *special_text(const mur_tokenizer *t, uint32_t special)
{
    return t->text + (t->specials[2 * special + 1] & 0x0fffffffu);
}

static int specials_ok(const mur_tokenizer *t)
{
    for (uint32_t i = 0; i < t->header->specials; i++) {
        const uint32_t id = t->specials[2 * i] & 0xfffffu;
        const uint32_t start = t->specials[2 * i + 1] & 0x0fffffffu;

        if (id >= t->header->pieces || special_size(t, i) == 0 || start > t->header->text_bytes ||
            special_size(t, i) > t->header->text_bytes - start)
            return 0;
    }
    return 1;
}

static int byte_ids_ok(const mur_tokenizer *t)
{
    for (uint32_t b = 0; b < BYTE_IDS; b++) {
        const uint32_t id = t->byte_ids[b];

        if (id != MUR_NO_TOKEN &&
            (!ids_ok(t, &id, 1) || piece_size(t, id) != 1 || t->text[piece_start(t, id)] != b))
            return 0;
    }
    return 1;
}

mur_status mur_tokenizer_open_with(mur_tokenizer *t, const void *form, size_t bytes,
                                   mur_normalize *normalize, mur_segment *segment, uint32_t kind)
{
    const mur_tokenizer_header *h = form;

    if ((uintptr_t)form % 4 != 0 || bytes < sizeof(*h) || h->magic != MUR_TOKENIZER_MAGIC)
        return MUR_E_MALFORMED;
    if (h->version != MUR_TOKENIZER_VERSION)
        return MUR_E_UNSUPPORTED;
    if (!header_ok(h, bytes))
        return MUR_E_MALFORMED;
    if ((h->flags & MUR_TOKENIZER_NFC && !normalize) || h->flags & MUR_TOKENIZER_KINDS & ~kind)
        return MUR_E_UNSUPPORTED;

    t->header = h;
    t->pieces = (const uint32_t *)(h + 1);
    t->merges = t->pieces + 2 * (size_t)(h->pieces + 1);
    t->byte_ids = t->merges + 2 * (size_t)h->merges;
    t->index = t->byte_ids + BYTE_IDS;
    t->specials = t->index + h->indexed;
    t->text = (const uint8_t *)(t->specials + 2 * (size_t)h->specials + h->split_words);
    t->normalize = normalize;
    t->segment = h->flags & kind ? segment : NULL;
    if (!pieces_ok(t) || !(t->segment || merges_ok(t)) || !byte_ids_ok(t) ||
        !ids_ok(t, t->index, h->indexed) || !specials_ok(t) ||
        !mur_split_open(&t->splitter, t->specials + 2 * (size_t)h->specials, h->split_words))
        return MUR_E_MALFORMED;

    memset(t->special_starts, 0, sizeof(t->special_starts));
    for (uint32_t i = 0; i < h->specials; i++) {
        const uint32_t byte = *special_text(t, i);

        t->special_starts[byte >> 3] |= (uint8_t)(1u << (byte & 7));
    }
    return MUR_OK;
}

mur_status mur_tokenizer_open(mur_tokenizer *t, const void *form, size_t bytes,
                              mur_normalize *normalize)
{
    return mur_tokenizer_open_with(t, form, bytes, normalize, NULL, 0);
}

/* ---- finding pieces and merges ---- */

/* Is `a` at or before `b`, as texts are ordered? */
static int is_at_or_before(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
    const int order = memcmp(a, b, a_size < b_size ? a_size : b_size);

    return order < 0 || (order == 0 && a_size <= b_size);
}

/* The indexed piece with this text, or NONE. */
static uint32_t find_piece(const mur_tokenizer *t, const uint8_t *text, size_t size)
{
    uint32_t low = 0, high = t->header->indexed, id;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        id = t->index[middle];
        if (is_at_or_before(t->text + piece_start(t, id), piece_size(t, id), text, size))
            low = middle + 1;
        else
            high = middle;
    }
    id = low > 0 ? t->index[low - 1] : 0;
    return low > 0 && piece_size(t, id) == size &&
                   memcmp(t->text + piece_start(t, id), text, size) == 0
               ? id
               : NONE;
}

/* The merge of two pieces, or NONE. */
static uint32_t find_merge(const mur_tokenizer *t, uint32_t left, uint32_t right)
{
    uint32_t low = t->pieces[2 * left + 1], high = t->pieces[2 * left + 3];

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2, at = merge_right(t, middle);

        if (at == right)
            return middle;
        if (at < right)
            low = middle + 1;
        else
            high = middle;
    }
    return NONE;
}

/* The longest special piece at the head of the text, or NONE. If the last one at or before the text
 * is not a head of it, a shorter one begins as both do. */
static uint32_t find_special(const mur_tokenizer *t, const uint8_t *text, size_t size,
                             uint32_t flags)
{
    const uint32_t wanted = flags & MUR_ENCODE_SPECIAL ? 0 : (uint32_t)MUR_SPECIAL_ALWAYS << 28;

    if (!(t->special_starts[text[0] >> 3] >> (text[0] & 7) & 1))
        return NONE;
    while (size > 0) {
        uint32_t low = 0, high = t->header->specials, length, common = 0;

        while (low < high) {
            const uint32_t middle = low + (high - low) / 2;

            if (is_at_or_before(special_text(t, middle), special_size(t, middle), text, size))
                low = middle + 1;
            else
                high = middle;
        }
        if (low-- == 0)
            return NONE;
        length = special_size(t, low);
        while (common < length && common < size && special_text(t, low)[common] == text[common])
            common++;
        if (common == length && (t->specials[2 * low + 1] & wanted) == wanted)
            return low;
        size = common < length ? common : length - 1;
    }
    return NONE;
}

/* ---- one segment ---- */

mur_status mur_encoder_emit(mur_encoder *e, uint32_t id)
{
    if (id == NONE)
        return MUR_OK;
    if (e->count == e->capacity)
        return MUR_E_NOFIT;
    e->ids[e->count++] = id;
    return MUR_OK;
}

static uint32_t rank_of(const mur_encoder *e, uint32_t position)
{
    return e->merge[position] == NONE ? NONE : merge_rank(e->t, e->merge[position]);
}

/* Nodes at and above `symbols` stand for the positions themselves. */
static uint32_t winner(const mur_encoder *e, uint32_t node)
{
    return node >= e->symbols ? node - e->symbols : e->tree[node];
}

static uint32_t play(const mur_encoder *e, uint32_t node)
{
    const uint32_t a = winner(e, 2 * node), b = winner(e, 2 * node + 1);
    const uint32_t rank_a = rank_of(e, a), rank_b = rank_of(e, b);

    return rank_a < rank_b || (rank_a == rank_b && a < b) ? a : b;
}

/* Looks up the merge of the symbol at a position with the next, and replays the position's path
 * up to the first node that it neither lost nor wins. */
static void renew(mur_encoder *e, uint32_t position)
{
    const uint32_t next = e->next[position];

    e->merge[position] = next == NONE ? NONE : find_merge(e->t, e->id[position], e->id[next]);
    for (uint32_t node = (position + e->symbols) / 2; node > 0; node /= 2) {
        const uint32_t won = play(e, node);

        if (won == e->tree[node] && won != position)
            break;
        e->tree[node] = won;
    }
}

static void merge_with_next(mur_encoder *e, uint32_t position)
{
    const uint32_t gone = e->next[position], after = e->next[gone];

    e->id[position] = merge_result(e->t, e->merge[position]);
    e->next[position] = after;
    e->next[gone] = NONE;
    if (after != NONE)
        e->prev[after] = position;
    renew(e, gone);
    renew(e, position);
    if (e->prev[position] != NONE)
        renew(e, e->prev[position]);
}

/* Links the symbols, merges until no pair has a merge, and emits what is left. */
static mur_status merge_symbols(mur_encoder *e)
{
    const uint32_t n = e->symbols;

    if (n == 0) /* bytes that have no piece, and no piece stands for what is unknown */
        return MUR_OK;
    for (uint32_t i = 0; i < n; i++) {
        e->prev[i] = i == 0 ? NONE : i - 1;
        e->next[i] = i + 1 == n ? NONE : i + 1;
        e->merge[i] = i + 1 == n ? NONE : find_merge(e->t, e->id[i], e->id[i + 1]);
    }
    for (uint32_t node = n - 1; node > 0; node--)
        e->tree[node] = play(e, node);
    while (e->merge[winner(e, 1)] != NONE)
        merge_with_next(e, winner(e, 1));
    for (uint32_t i = 0; i != NONE; i = e->next[i])
        if (mur_encoder_emit(e, e->id[i]) != MUR_OK)
            return MUR_E_NOFIT;
    return MUR_OK;
}

size_t mur_character_size(const uint8_t *text, size_t size)
{
    size_t wanted = text[0] < 0xc0 ? 1 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4, have = 1;

    while (have < wanted && have < size && (text[have] & 0xc0) == 0x80)
        have++;
    return have;
}

static void add_bytes(mur_encoder *e, const uint8_t *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        uint32_t id = e->t->byte_ids[text[i]];

        if (id == NONE)
            id = e->t->header->unknown;
        if (id != NONE)
            e->id[e->symbols++] = id;
    }
}

int mur_begins_with_mark(const uint8_t *text, size_t size)
{
    return size >= 3 && text[0] == 0xe2 && text[1] == 0x96 && text[2] == 0x81;
}

static int begins_with_space(const uint8_t *text, size_t size)
{
    return size > 0 && (text[0] == ' ' || mur_begins_with_mark(text, size));
}

static void add_characters(mur_encoder *e, const uint8_t *text, size_t size)
{
    while (size > 0) {
        const size_t length = mur_character_size(text, size);
        const int is_mark = mur_begins_with_mark(text, length);
        const uint8_t *shown = is_mark ? (const uint8_t *)" " : text;
        const size_t shown_size = is_mark ? 1 : length;
        const uint32_t id = find_piece(e->t, shown, shown_size);

        if (id != NONE)
            e->id[e->symbols++] = id;
        else
            add_bytes(e, shown, shown_size);
        text += length;
        size -= length;
    }
}

static mur_status encode_segment(mur_encoder *e, const uint8_t *text, size_t size, uint32_t prefix)
{
    /* a prefix takes a symbol of its own */
    if (size >= e->room)
        return MUR_E_NOFIT;
    if (e->t->segment)
        return e->t->segment(e, text, size, prefix);
    e->symbols = 0;
    if (e->t->header->flags & MUR_TOKENIZER_BYTES) {
        const uint32_t whole = find_piece(e->t, text, size);

        if (whole != NONE)
            return mur_encoder_emit(e, whole);
        add_bytes(e, text, size);
    } else {
        if (prefix)
            add_characters(e, (const uint8_t *)" ", 1);
        add_characters(e, text, size);
    }
    return merge_symbols(e);
}

/* ---- a text ---- */

/* The scratch from byte `used` on, a multiple of 4, becomes symbols. */
static void lay_out_scratch(mur_encoder *e, size_t used)
{
    e->room = (e->scratch_bytes - used) / MUR_SYMBOL_BYTES;
    e->id = (uint32_t *)(void *)(e->scratch + used);
    e->prev = e->id + e->room;
    e->next = e->prev + e->room;
    e->merge = e->next + e->room;
    e->tree = e->merge + e->room;
}

/* Characters below U+0300, whose bytes are below 0xcc, are in NFC however they follow. */
static int needs_nfc(const mur_tokenizer *t, const uint8_t *text, size_t size)
{
    size_t i = t->header->flags & MUR_TOKENIZER_NFC ? 0 : size;

    while (i < size && text[i] < 0xcc)
        i++;
    return i < size;
}

/* A stretch of text without special pieces. Its normal form lies at the scratch's start. */
static mur_status encode_stretch(mur_encoder *e, const uint8_t *text, size_t size, uint32_t prefix)
{
    mur_cuts cuts = { { 0 } };
    size_t used = 0;

    if (needs_nfc(e->t, text, size)) {
        if (!e->t->normalize(text, size, (uint32_t *)(void *)e->scratch, e->scratch_bytes / 4,
                             &size))
            return MUR_E_NOFIT;
        text = e->scratch;
        used = (size + 3) & ~(size_t)3;
    }
    lay_out_scratch(e, used);
    if (e->t->header->flags & MUR_TOKENIZER_PREFIX_MISSING && begins_with_space(text, size))
        prefix = 0;
    for (size_t at = 0, end; at < size; at = end, prefix = 0) {
        mur_status status;

        end = mur_split_next(&e->t->splitter, &cuts, text, size, at);
        status = encode_segment(e, text + at, end - at, prefix);
        if (status != MUR_OK)
            return status;
    }
    return MUR_OK;
}

/* Bytes of the character of white space at the head of the text, or 0. */
static size_t white_space_size(const uint8_t *text, size_t size)
{
    const uint32_t a = text[0], b = size > 1 ? text[1] : 0, c = size > 2 ? text[2] : 0;

    if (a == ' ' || (a >= '\t' && a <= '\r'))
        return 1;
    if (a == 0xc2 && (b == 0x85 || b == 0xa0))
        return 2;
    if ((a == 0xe1 && b == 0x9a && c == 0x80) || (a == 0xe3 && b == 0x80 && c == 0x80) ||
        (a == 0xe2 && b == 0x81 && c == 0x9f) ||
        (a == 0xe2 && b == 0x80 &&
         ((c >= 0x80 && c <= 0x8a) || c == 0xa8 || c == 0xa9 || c == 0xaf)))
        return 3;
    return 0;
}

/* Where the white space begins that text[at..end-1] ends with. */
static size_t trimmed_end(const uint8_t *text, size_t at, size_t end)
{
    size_t kept = at;

    while (at < end) {
        const size_t space = white_space_size(text + at, end - at);

        at += space ? space : 1;
        if (!space)
            kept = at;
    }
    return kept;
}

size_t mur_tokenizer_scratch_bytes(const mur_tokenizer *t, size_t text_bytes)
{
    return (text_bytes + 1) * (t->header->flags & MUR_TOKENIZER_NFC
                                   ? MUR_NFC_GROWTH * (MUR_SYMBOL_BYTES + 1) + 1
                                   : MUR_SYMBOL_BYTES);
}

size_t mur_tokenizer_most_ids(const mur_tokenizer *t, size_t text_bytes)
{
    return (t->header->flags & MUR_TOKENIZER_NFC ? MUR_NFC_GROWTH : 2) * text_bytes + 3;
}

mur_status mur_tokenizer_encode(const mur_tokenizer *t, const uint8_t *text, size_t size,
                                uint32_t flags, void *scratch, size_t scratch_bytes, uint32_t *ids,
                                size_t capacity, size_t *count)
{
    const uint32_t policy = t->header->flags;
    uint32_t prefix = policy & MUR_TOKENIZER_PREFIX;
    mur_encoder e = { 0 };
    mur_status status;

    e.t = t;
    e.ids = ids;
    e.capacity = capacity;
    e.scratch = scratch;
    e.scratch_bytes = scratch_bytes;
    if (size > MUR_TOKENIZER_MAX_TEXT)
        return MUR_E_NOFIT;
    status = mur_encoder_emit(&e, flags & policy & MUR_ENCODE_BOS ? t->header->bos : NONE);
    for (size_t at = 0; status == MUR_OK && at < size;) {
        uint32_t special = NONE, how = 0;
        size_t end = at, kept, space;

        while (end < size && (special = find_special(t, text + end, size - end, flags)) == NONE)
            end++;
        if (special != NONE)
            how = t->specials[2 * special + 1] >> 28;
        kept = how & MUR_SPECIAL_LEFT ? trimmed_end(text, at, end) : end;
        status = encode_stretch(&e, text + at, kept - at, prefix);
        at = end;
        if (status == MUR_OK && special != NONE) {
            status = mur_encoder_emit(&e, t->specials[2 * special] & 0xfffffu);
            at += special_size(t, special);
            while (how & MUR_SPECIAL_RIGHT && at < size &&
                   (space = white_space_size(text + at, size - at)) > 0)
                at += space;
            prefix = policy & MUR_TOKENIZER_PREFIX_AGAIN;
        }
    }
    if (status == MUR_OK)
        status = mur_encoder_emit(&e, flags & policy & MUR_ENCODE_EOS ? t->header->eos : NONE);
    *count = e.count;
    return status;
}

/* ---- and back ---- */

/* Did encoding put a space before what follows this token? */
static int prefix_follows(const mur_tokenizer *t, uint32_t previous)
{
    const uint32_t flags = t->header->flags;

    if (!(flags & MUR_TOKENIZER_PREFIX))
        return 0;
    if (previous >= t->header->pieces || previous == t->header->bos)
        return 1;
    return flags & MUR_TOKENIZER_PREFIX_AGAIN && is_special(piece_type(t, previous));
}

size_t mur_tokenizer_piece(const mur_tokenizer *t, uint32_t id, const uint8_t **out)
{
    *out = t->text;
    if (id >= t->header->pieces)
        return 0;
    *out += piece_start(t, id);
    return piece_size(t, id);
}

size_t mur_tokenizer_decode(const mur_tokenizer *t, uint32_t id, uint32_t previous,
                            const uint8_t **out)
{
    uint32_t size, type;

    *out = t->text;
    if (id >= t->header->pieces)
        return 0;
    type = piece_type(t, id);
    if (is_special(type) && type != MUR_PIECE_USER)
        return 0;
    *out += piece_start(t, id);
    size = piece_size(t, id);
    if (type != MUR_PIECE_USER && size > 0 && **out == ' ' && prefix_follows(t, previous)) {
        ++*out;
        size--;
    }
    return size;
}
