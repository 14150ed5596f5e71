/* character_set.c - sets of characters as ranges, from Unicode's general categories. */
#include "text/character_set.h"

#include <stdlib.h>
#include <string.h>

#include "text/gen/unicode_categories.h"

enum { CATEGORY_BITS = 5, CATEGORY_MASK = (1 << CATEGORY_BITS) - 1, NAME_BYTES = 3 };

static const char category_names[] = UNICODE_CATEGORY_NAMES; /* each of NAME_BYTES, with a space */

muc_status muc_set_add(muc_context *ctx, muc_arena *arena, muc_character_set *set, uint32_t first,
                       uint32_t last)
{
    MUC_TRY(MUC_ARENA_GROW(ctx, arena, set->count + 1, &set->capacity, &set->ranges));
    set->ranges[set->count++] = (muc_character_range){ first, last };
    return MUC_OK;
}

muc_status muc_set_add_category(muc_context *ctx, muc_arena *arena, muc_character_set *set,
                                const char *name, size_t size, bool *known)
{
    const size_t runs = MUC_COUNT(unicode_categories);
    uint32_t wanted = 0;

    for (uint32_t i = 0; i < sizeof(category_names) / NAME_BYTES; i++)
        if (size > 0 && size < NAME_BYTES &&
            memcmp(category_names + (size_t)i * NAME_BYTES, name, size) == 0)
            wanted |= 1u << i;
    *known = wanted != 0;
    for (size_t i = 0; wanted && i < runs; i++) {
        const uint32_t next =
            i + 1 < runs ? unicode_categories[i + 1] >> CATEGORY_BITS : MUC_LAST_CHARACTER + 1;

        if (wanted >> (unicode_categories[i] & CATEGORY_MASK) & 1)
            MUC_TRY(muc_set_add(ctx, arena, set, unicode_categories[i] >> CATEGORY_BITS, next - 1));
    }
    return MUC_OK;
}

/* Unicode 14; the tables of general categories have no scripts */
static const muc_character_range han[] = {
    { 0x2e80, 0x2e99 },   { 0x2e9b, 0x2ef3 },   { 0x2f00, 0x2fd5 },   { 0x3005, 0x3005 },
    { 0x3007, 0x3007 },   { 0x3021, 0x3029 },   { 0x3038, 0x303b },   { 0x3400, 0x4dbf },
    { 0x4e00, 0x9fff },   { 0xf900, 0xfa6d },   { 0xfa70, 0xfad9 },   { 0x16fe2, 0x16fe3 },
    { 0x16ff0, 0x16ff1 }, { 0x20000, 0x2a6df }, { 0x2a700, 0x2b738 }, { 0x2b740, 0x2b81d },
    { 0x2b820, 0x2cea1 }, { 0x2ceb0, 0x2ebe0 }, { 0x2f800, 0x2fa1d }, { 0x30000, 0x3134a }
};

muc_status muc_set_add_script(muc_context *ctx, muc_arena *arena, muc_character_set *set,
                              const char *name, size_t size, bool *known)
{
    *known = size == 3 && memcmp(name, "Han", 3) == 0;
    for (size_t i = 0; *known && i < MUC_COUNT(han); i++)
        MUC_TRY(muc_set_add(ctx, arena, set, han[i].first, han[i].last));
    return MUC_OK;
}

muc_status muc_set_add_class(muc_context *ctx, muc_arena *arena, muc_character_set *set,
                             char letter)
{
    static const muc_character_range white_space[] = { { 0x9, 0xd },       { 0x20, 0x20 },
                                                       { 0x85, 0x85 },     { 0xa0, 0xa0 },
                                                       { 0x1680, 0x1680 }, { 0x2000, 0x200a },
                                                       { 0x2028, 0x2029 }, { 0x202f, 0x202f },
                                                       { 0x205f, 0x205f }, { 0x3000, 0x3000 } };
    static const char *const word[] = { "L", "M", "Nd", "Pc" };
    bool known;

    if (letter == 'd')
        return muc_set_add_category(ctx, arena, set, "Nd", 2, &known);
    for (size_t i = 0; letter == 'w' && i < MUC_COUNT(word); i++)
        MUC_TRY(muc_set_add_category(ctx, arena, set, word[i], strlen(word[i]), &known));
    for (size_t i = 0; letter == 's' && i < MUC_COUNT(white_space); i++)
        MUC_TRY(muc_set_add(ctx, arena, set, white_space[i].first, white_space[i].last));
    return MUC_OK;
}

muc_status muc_set_add_set(muc_context *ctx, muc_arena *arena, muc_character_set *set,
                           const muc_character_set *other)
{
    for (size_t i = 0; i < other->count; i++)
        MUC_TRY(muc_set_add(ctx, arena, set, other->ranges[i].first, other->ranges[i].last));
    return MUC_OK;
}

static int by_first(const void *a, const void *b)
{
    const muc_character_range *x = a, *y = b;

    return x->first < y->first ? -1 : x->first > y->first;
}

void muc_set_order(muc_character_set *set)
{
    size_t count = 0;

    if (set->count > 0)
        qsort(set->ranges, set->count, sizeof(*set->ranges), by_first);
    for (size_t i = 0; i < set->count; i++) {
        const muc_character_range here = set->ranges[i];
        muc_character_range *last = count > 0 ? &set->ranges[count - 1] : NULL;

        if (!last || here.first > last->last + 1)
            set->ranges[count++] = here;
        else if (here.last > last->last)
            last->last = here.last;
    }
    set->count = count;
}

muc_status muc_set_complement(muc_context *ctx, muc_arena *arena, const muc_character_set *set,
                              muc_character_set *out)
{
    uint32_t next = 0;

    *out = (muc_character_set){ 0 };
    for (size_t i = 0; i < set->count; i++) {
        if (set->ranges[i].first > next)
            MUC_TRY(muc_set_add(ctx, arena, out, next, set->ranges[i].first - 1));
        next = set->ranges[i].last + 1;
    }
    return next <= MUC_LAST_CHARACTER ? muc_set_add(ctx, arena, out, next, MUC_LAST_CHARACTER)
                                      : MUC_OK;
}

bool muc_sets_equal(const muc_character_set *a, const muc_character_set *b)
{
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->ranges, b->ranges, a->count * sizeof(*a->ranges)) == 0);
}

bool muc_sets_overlap(const muc_character_set *a, const muc_character_set *b)
{
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        if (a->ranges[i].last < b->ranges[j].first)
            i++;
        else if (b->ranges[j].last < a->ranges[i].first)
            j++;
        else
            return true;
    }
    return false;
}
