/* character_map.c - from BERT's rules and Unicode's properties to runs of characters.
 *
 * The order is that of Hugging Face's BertNormalizer: control characters go, ideographs are set
 * apart, accents go, letters become small. Then text is cut at white space and around punctuation.
 */
#include "text/character_map.h"

#include <string.h>

#include "base/visible_name.h"
#include "mur_encoder.h"
#include "mur_wordpiece.h"
#include "text/character_set.h"
#include "text/gen/unicode_lowercase.h"

enum { CHARACTERS = MUC_LAST_CHARACTER + 1, DOTTED_I = 0x130, DOT_ABOVE = 0x307 };

/* A character's properties. */
enum { IN_PIECES = 1, SPACE = 2, CONTROL = 4, MARK = 8, PUNCTUATION = 16, IDEOGRAPH = 32 };

/* What the map is made with. */
typedef struct map_maker {
    muc_context *ctx;
    muc_arena *arena;
    const muc_vocabulary *vocabulary;
    uint8_t *properties; /* [CHARACTERS] */
    uint32_t (*map)[2];
    size_t count, capacity;
} map_maker;

/* ---- properties ---- */

static void mark_set(const map_maker *m, const muc_character_set *set, uint8_t property)
{
    for (size_t i = 0; i < set->count; i++)
        for (uint32_t code = set->ranges[i].first; code <= set->ranges[i].last; code++)
            m->properties[code] |= property;
}

static muc_status mark_categories(const map_maker *m)
{
    static const struct {
        const char *category;
        uint8_t property;
    } rows[] = { { "Cc", CONTROL }, { "Cf", CONTROL }, { "Co", CONTROL },
                 { "Cs", CONTROL }, { "Mn", MARK },    { "P", PUNCTUATION } };
    muc_character_set spaces = { 0 };

    for (size_t i = 0; i < MUC_COUNT(rows); i++) {
        muc_character_set set = { 0 };
        bool known;

        MUC_TRY(muc_set_add_category(m->ctx, m->arena, &set, rows[i].category,
                                     strlen(rows[i].category), &known));
        mark_set(m, &set, rows[i].property);
    }
    MUC_TRY(muc_set_add_class(m->ctx, m->arena, &spaces, 's'));
    mark_set(m, &spaces, SPACE);
    return MUC_OK;
}

/* Where Hugging Face's own rules are not Unicode's. */
static void mark_exceptions(const map_maker *m)
{
    static const muc_character_range ideographs[] = { { 0x3400, 0x4dbf },   { 0x4e00, 0x9fff },
                                                      { 0xf900, 0xfaff },   { 0x20000, 0x2a6df },
                                                      { 0x2a700, 0x2b73f }, { 0x2b740, 0x2b81f },
                                                      { 0x2b920, 0x2ceaf }, { 0x2f800, 0x2fa1f } };

    for (size_t i = 0; i < MUC_COUNT(ideographs); i++)
        for (uint32_t code = ideographs[i].first; code <= ideographs[i].last; code++)
            m->properties[code] |= IDEOGRAPH;
    for (uint32_t code = '!'; code <= '~'; code++)
        if (!((code >= '0' && code <= '9') || ((code | 0x20) >= 'a' && (code | 0x20) <= 'z')))
            m->properties[code] |= PUNCTUATION;
    m->properties['\t'] = m->properties['\n'] = m->properties['\r'] = SPACE;
    m->properties[0xfffd] |= CONTROL;
}

static void mark_pieces(const map_maker *m)
{
    const muc_vocabulary *v = m->vocabulary;

    for (size_t i = 0; i < v->count; i++) {
        const muc_piece *piece = &v->pieces[i];
        size_t step = 1;

        for (size_t at = 0; piece->type == MUR_PIECE_NORMAL && at < piece->size; at += step) {
            const int32_t code = muc_utf8_read(piece->text + at, piece->size - at, &step);

            if (code >= 0)
                m->properties[code] |= IN_PIECES;
        }
    }
}

static bool has(const map_maker *m, uint32_t code, uint8_t property)
{
    return (m->properties[code] & property) != 0;
}

/* ---- what becomes of a character ---- */

static uint32_t small_letter(uint32_t code)
{
    size_t low = 0, high = MUC_COUNT(unicode_lowercase);

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (unicode_lowercase[middle][0] == code)
            return unicode_lowercase[middle][1];
        if (unicode_lowercase[middle][0] < code)
            low = middle + 1;
        else
            high = middle;
    }
    return code;
}

/* The characters that come of one, and their number, 0 if it goes. */
static size_t parts_of(const map_maker *m, uint32_t code, uint32_t parts[MUR_NFC_PARTS])
{
    const muc_word_rules *rules = &m->vocabulary->words;
    uint32_t all[MUR_NFC_PARTS] = { code };
    const size_t count = rules->strips_accents ? mur_nfc_parts(code, all) : 1;
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (!rules->strips_accents || !has(m, all[i], MARK))
            parts[kept++] = rules->lowercases ? small_letter(all[i]) : all[i];
    if (rules->lowercases && code == DOTTED_I && !rules->strips_accents)
        parts[kept++] = DOT_ABOVE;
    return kept;
}

/* Makes a word unknown that would be so in any case: one part, which no piece holds, is enough. If
 * no piece holds the character itself, it may stay. */
static size_t forget_unknown(const map_maker *m, uint32_t code, uint32_t *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!has(m, parts[i], IN_PIECES)) {
            parts[0] = has(m, code, IN_PIECES) ? parts[i] : code;
            return 1;
        }
    return count;
}

/* An entry of the map for one character. */
static muc_status entry_of(const map_maker *m, uint32_t code, uint32_t entry[2])
{
    enum { CODE_BITS = 21, CODE_MASK = (1 << CODE_BITS) - 1, LOW_BITS = 11, HIGH_SHIFT = 25 };
    const muc_word_rules *rules = &m->vocabulary->words;
    uint32_t parts[MUR_NFC_PARTS + 1], kind = MUR_MAP_ADD, alone;
    size_t count;

    entry[0] = entry[1] = 0;
    if (rules->cleans && has(m, code, CONTROL))
        kind = MUR_MAP_DROP;
    else if (has(m, code, SPACE))
        kind = MUR_MAP_SPACE;
    else if (rules->strips_accents && code >= 0xac00 && code < 0xac00 + 11172)
        kind = MUR_MAP_HANGUL;
    entry[0] = kind << CODE_BITS;
    if (kind != MUR_MAP_ADD)
        return MUC_OK;
    count = parts_of(m, code, parts);
    alone = count > 0 && (has(m, parts[0], PUNCTUATION) ||
                          (rules->sets_ideographs_apart && has(m, code, IDEOGRAPH)))
                ? MUR_MAP_ALONE
                : 0;
    count = forget_unknown(m, code, parts, count);
    if (count > 2)
        return muc_fail(m->ctx, MUC_UNSUPPORTED, m->vocabulary->source, MUC_NO_OFFSET,
                        "pieces with parts of the character U+%04X, of which there are %zu", code,
                        count);
    if (count != 1)
        kind = count == 0 ? MUR_MAP_DROP : MUR_MAP_PARTS;
    entry[0] = kind << CODE_BITS | alone;
    if (count == 1)
        entry[1] = (parts[0] - code) & CODE_MASK;
    if (count == 2) {
        entry[0] |= parts[1] >> LOW_BITS << HIGH_SHIFT;
        entry[1] = parts[0] | parts[1] << CODE_BITS;
    }
    return MUC_OK;
}

static muc_status add_entry(map_maker *m, const uint32_t entry[2])
{
    MUC_TRY(MUC_ARENA_GROW(m->ctx, m->arena, m->count + 1, &m->capacity, &m->map));
    memcpy(m->map[m->count++], entry, sizeof(*m->map));
    return MUC_OK;
}

muc_status muc_character_map_make(muc_context *ctx, const muc_vocabulary *vocabulary,
                                  muc_arena *arena, uint32_t (**map)[2], size_t *count)
{
    map_maker m = { .ctx = ctx, .arena = arena, .vocabulary = vocabulary };
    uint32_t last[2] = { 0, 0 };

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, CHARACTERS, &m.properties));
    MUC_TRY(mark_categories(&m));
    mark_exceptions(&m);
    mark_pieces(&m);
    for (uint32_t code = 0; code < CHARACTERS; code++) {
        uint32_t entry[2];

        MUC_TRY(entry_of(&m, code, entry));
        if (code == 0 || memcmp(entry, last, sizeof(last)) != 0)
            MUC_TRY(add_entry(&m, (const uint32_t[2]){ entry[0] | code, entry[1] }));
        memcpy(last, entry, sizeof(last));
    }
    MUC_TRY(add_entry(&m, (const uint32_t[2]){ vocabulary->words.most_characters, 0 }));
    *map = m.map;
    *count = m.count;
    return MUC_OK;
}
