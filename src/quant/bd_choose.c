/* bd_choose.c - which grid, and which kind at which price. */
#include "quant/blockdialect.h"

#include <math.h>
#include <string.h>

#include "quant/bd_survey.h"

enum { PRICE_SHIFT = 12 };

static bool has(uint32_t kinds, muc_bd_kind kind)
{
    return (kinds >> kind & 1) != 0;
}

/* A block's grid without its elements. */
typedef struct grid {
    muc_bd_kind kind;
    uint8_t dialect[2], exponent[2];
} grid;

/* One way to encode a column: a grid for each of its blocks. */
typedef struct choice {
    unsigned bytes;
    uint32_t price;
    double error, saved; /* saved: by each byte more than those of the choice before */
    grid grid[2];
} choice;

/* Some of them, in an order of their own: pointers are moved, not choices. */
typedef struct choices {
    unsigned count, made;
    choice *at[MUC_BD_MAX_OFFERS];  /* [count] */
    choice item[MUC_BD_MAX_OFFERS]; /* [made] */
} choices;

/* One block of those that have been surveyed together. */
typedef struct subject {
    const muc_bd_survey *survey;
    unsigned lane;
    const float *w, *importance;
    unsigned n;
} subject;

/* Puts the least of the errors and its grid into *out. */
static void take_least(const muc_bd_least *least, unsigned lane, unsigned term, choice *out)
{
    out->error = least->error[lane];
    out->grid[0].dialect[term] = (uint8_t)least->dialect[lane];
    out->grid[0].exponent[term] = (uint8_t)least->exponent[lane];
}

/* but for the elements */
static void set_grid(const grid *g, muc_bd_block *out)
{
    out->kind = g->kind;
    out->shared = false;
    for (unsigned t = 0; t < 2; t++) {
        out->term[t].dialect = g->dialect[t];
        out->term[t].exponent = g->exponent[t];
    }
}

/* The second term of R, on what the best single term leaves. */
static void choose_second(const subject *of, choice *out)
{
    muc_bd_block first;
    float rest[MUC_BD_ELEMS];
    const float *all = rest;
    muc_bd_survey left;

    set_grid(&out->grid[0], &first);
    first.kind = MUC_BD_B4;
    for (unsigned i = 0; i < of->n; i++)
        rest[i] = of->w[i] - muc_bd_round(&first, i, of->w[i]);
    muc_bd_survey_blocks(1 << MUC_BD_B4, &all, 1, of->importance, of->n, &left);
    take_least(&left.least_b4, 0, 1, out);
}

/* the best grid of one kind for one block */
static void take_best(muc_bd_kind kind, const subject *of, choice *out)
{
    const muc_bd_survey *survey = of->survey;

    out->bytes = muc_bd_kind_bytes(kind, of->n);
    out->grid[0] = (grid){ .kind = kind };
    if (kind == MUC_BD_Z)
        out->error = survey->zeros[of->lane];
    else
        take_least(kind == MUC_BD_B5 ? &survey->least_b5 : &survey->least_b4, of->lane, 0, out);
    if (kind == MUC_BD_R)
        choose_second(of, out);
}

/* Does no grid do better than zeros? Then none has an element beyond its first boundary. */
static bool is_empty(const subject *of)
{
    return of->survey->beyond[of->lane] <= 0;
}

/* Adds the item made last; keeps choices sorted by size, then error. */
static void insert(choices *all)
{
    choice *one = &all->item[all->made++];
    unsigned at = all->count++;

    for (;
         at > 0 && (all->at[at - 1]->bytes > one->bytes ||
                    (all->at[at - 1]->bytes == one->bytes && all->at[at - 1]->error > one->error));
         at--)
        all->at[at] = all->at[at - 1];
    all->at[at] = one;
}

static double saved_per_byte(const choice *less, const choice *more)
{
    return (less->error - more->error) / (double)(more->bytes - less->bytes);
}

/* Of sorted choices keeps those that are best at some price (the lower convex hull), and says at
 * which price each begins to be worth its bytes. */
static void keep_worthwhile(choices *all)
{
    unsigned kept = 1;

    all->at[0]->price = MUC_BD_PRICES;
    for (unsigned i = 1; i < all->count; i++) {
        choice *next = all->at[i];

        if (next->error >= all->at[kept - 1]->error)
            continue;
        next->saved = saved_per_byte(all->at[kept - 1], next);
        while (kept > 1 && next->saved >= all->at[kept - 1]->saved)
            next->saved = saved_per_byte(all->at[--kept - 1], next);
        next->price = muc_f32_bits((float)next->saved) >> PRICE_SHIFT;
        all->at[kept++] = next;
    }
    all->count = kept;
}

static void choose_block(uint32_t kinds, const subject *of, choices *out)
{
    static const muc_bd_kind order[] = { MUC_BD_B4, MUC_BD_B5, MUC_BD_R };

    out->count = out->made = 0;
    for (unsigned i = 0; i < MUC_COUNT(order) && !is_empty(of); i++) {
        if (has(kinds, order[i])) {
            take_best(order[i], of, &out->item[out->made]);
            insert(out);
        }
    }
    if (out->count == 0) {
        take_best(MUC_BD_Z, of, &out->item[0]);
        insert(out);
    }
    keep_worthwhile(out);
}

/* Two blocks side by side: from the smallest pair on, whichever is worth more grows. */
static void join(const choices *upper, const choices *lower, choices *pairs)
{
    unsigned u = 0, l = 0;

    pairs->count = pairs->made = 0;
    for (;;) {
        choice *pair = &pairs->item[pairs->made++];

        pairs->at[pairs->count++] = pair;
        pair->bytes = upper->at[u]->bytes + lower->at[l]->bytes;
        pair->error = upper->at[u]->error + lower->at[l]->error;
        pair->grid[0] = upper->at[u]->grid[0];
        pair->grid[1] = lower->at[l]->grid[0];
        if (u + 1 == upper->count && l + 1 == lower->count)
            return;
        if (l + 1 == lower->count ||
            (u + 1 < upper->count && upper->at[u + 1]->saved >= lower->at[l + 1]->saved))
            u++;
        else
            l++;
    }
}

enum { SHARING_KINDS = 2 };
static const muc_bd_kind sharing[SHARING_KINDS] = { MUC_BD_B4, MUC_BD_B5 };

/* The columns of a tile, each of one block or two. */
typedef struct tile {
    uint32_t kinds;
    unsigned rows;
    const float *const *w;
    const float *importance;
    muc_bd_survey survey[2];
    muc_bd_least shared[SHARING_KINDS];
} tile;

static void survey_tile(uint32_t kinds, const float *const *w, unsigned count,
                        const float *importance, unsigned rows, tile *out)
{
    out->kinds = kinds;
    out->rows = rows;
    out->w = w;
    out->importance = importance;
    for (unsigned b = 0; b < muc_bd_block_count(rows); b++) {
        const float *block[MUC_BD_LANES];

        for (unsigned c = 0; c < count; c++)
            block[c] = w[c] + b * MUC_BD_ELEMS;
        muc_bd_survey_blocks(kinds, block, count, importance ? importance + b * MUC_BD_ELEMS : NULL,
                             muc_bd_block_elements(rows, b), &out->survey[b]);
    }
    for (unsigned i = 0; i < SHARING_KINDS && muc_bd_block_count(rows) == 2; i++)
        if (has(kinds, sharing[i]) && (kinds & MUC_BD_SHARING) != 0)
            muc_bd_survey_shared(sharing[i], &out->survey[0], &out->survey[1], &out->shared[i]);
}

/* The best header that two blocks can share, if there is one. */
static bool share(const tile *of, unsigned column, unsigned i, choice *out)
{
    unsigned sizes = muc_bd_kind_bytes(sharing[i], MUC_BD_ELEMS) +
                     muc_bd_kind_bytes(sharing[i], of->rows - MUC_BD_ELEMS);

    if (!has(of->kinds, sharing[i]) || (of->kinds & MUC_BD_SHARING) == 0)
        return false;
    out->bytes = sizes - 2;
    out->grid[0] = (grid){ .kind = sharing[i] };
    take_least(&of->shared[i], column, 0, out);
    out->grid[1] = out->grid[0];
    return out->error < INFINITY;
}

static void choose_column(const tile *of, unsigned column, choices *out)
{
    unsigned blocks = muc_bd_block_count(of->rows);
    choices apart[2];
    bool empty = false;

    for (unsigned b = 0; b < blocks; b++) {
        unsigned at = b * MUC_BD_ELEMS;
        const subject block = { &of->survey[b], column, of->w[column] + at,
                                of->importance ? of->importance + at : NULL,
                                muc_bd_block_elements(of->rows, b) };

        choose_block(of->kinds, &block, blocks == 1 ? out : &apart[b]);
        empty |= is_empty(&block);
    }
    if (blocks == 1)
        return;
    join(&apart[0], &apart[1], out);
    for (unsigned i = 0; i < SHARING_KINDS && !empty; i++)
        if (share(of, column, i, &out->item[out->made]))
            insert(out);
    keep_worthwhile(out);
}

/* Puts the elements on the grids. */
static void complete(const grid grids[2], uint32_t kinds, const float *w, unsigned rows,
                     muc_bd_column *out)
{
    out->rows = rows;
    for (unsigned b = 0; b < muc_bd_block_count(rows); b++) {
        set_grid(&grids[b], &out->block[b]);
        muc_bd_round_block(&out->block[b], muc_bd_block_elements(rows, b), w + b * MUC_BD_ELEMS);
    }
    muc_bd_pack(out, kinds);
}

void muc_bd_choose_columns(const muc_bd_rule *rule, const float *const *w, unsigned count,
                           const float *importance, unsigned rows, muc_bd_column *const *out)
{
    tile all;

    survey_tile(rule->kinds, w, count, importance, rows, &all);
    for (unsigned c = 0; c < count; c++) {
        unsigned last = 0;
        choices found;

        choose_column(&all, c, &found);
        while (last + 1 < found.count && found.at[last + 1]->price >= rule->price)
            last++;
        complete(found.at[last]->grid, rule->kinds, w[c], rows, out[c]);
    }
}

void muc_bd_choose(const muc_bd_rule *rule, const float *w, const float *importance, unsigned rows,
                   muc_bd_column *out)
{
    muc_bd_choose_columns(rule, &w, 1, importance, rows, &out);
}

/* ---- grids in a word ---- */

enum { EXPONENT_BITS = 5, DIALECT_BITS = 4, GRID_BITS = 11, PAIR_BITS = 2 * GRID_BITS };
#define ANY_GRIDS (1u << PAIR_BITS) /* the word is not 0 */

static uint32_t pack_grids(const grid grids[2], unsigned rows)
{
    uint32_t all = ANY_GRIDS;

    for (unsigned b = 0; b < muc_bd_block_count(rows); b++) {
        const grid *g = &grids[b];
        uint32_t bits = ((uint32_t)g->kind << DIALECT_BITS | g->dialect[0]) << EXPONENT_BITS;

        if (g->kind == MUC_BD_R)
            return 0;
        all |= (bits | g->exponent[0]) << b * GRID_BITS;
    }
    return all;
}

static grid unpack_grid(uint32_t bits)
{
    return (grid){ .kind = (muc_bd_kind)(bits >> (DIALECT_BITS + EXPONENT_BITS) & 3),
                   .dialect = { bits >> EXPONENT_BITS & 15 },
                   .exponent = { bits & 31 } };
}

/* ---- offers ---- */

/* Which of them is taken at a price. */
static unsigned take_offer(const muc_bd_offers *offers, uint32_t price)
{
    unsigned last = 0;

    while (last + 1 < offers->count && offers->offer[last + 1].price >= price)
        last++;
    return last;
}

/* Two pairs of grids, the smaller one below, and the price up to which the larger one is taken. */
enum { KEPT_PRICE = 2 * PAIR_BITS };
#define ANY_KEPT (1ull << 63)
_Static_assert(MUC_BD_PRICES < 1 << (63 - KEPT_PRICE), "a price fits above the grids");

uint64_t muc_bd_keep_offers(const muc_bd_offers *offers, uint32_t lowest, uint32_t highest)
{
    unsigned first = take_offer(offers, highest), last = take_offer(offers, lowest);
    const muc_bd_offer *less = &offers->offer[first], *more = &offers->offer[last];

    if (last > first + 1 || less->grids == 0 || more->grids == 0)
        return 0;
    return ANY_KEPT | (uint64_t)more->price << KEPT_PRICE |
           (uint64_t)(more->grids & (ANY_GRIDS - 1)) << PAIR_BITS | (less->grids & (ANY_GRIDS - 1));
}

void muc_bd_take_kept(uint64_t kept, const muc_bd_rule *rule, const float *w, unsigned rows,
                      muc_bd_column *out)
{
    bool more = (kept & ~ANY_KEPT) >> KEPT_PRICE >= rule->price;
    uint32_t grids = (uint32_t)(more ? kept >> PAIR_BITS : kept);
    const grid both[2] = { unpack_grid(grids), unpack_grid(grids >> GRID_BITS) };

    complete(both, rule->kinds, w, rows, out);
}

void muc_bd_offer_columns(uint32_t kinds, const float *const *w, unsigned count,
                          const float *importance, unsigned rows, muc_bd_offers *out)
{
    tile all;

    survey_tile(kinds, w, count, importance, rows, &all);
    for (unsigned c = 0; c < count; c++) {
        choices found;

        choose_column(&all, c, &found);
        out[c].count = found.count;
        for (unsigned i = 0; i < found.count; i++)
            out[c].offer[i] = (muc_bd_offer){ found.at[i]->bytes, found.at[i]->price,
                                              pack_grids(found.at[i]->grid, rows) };
    }
}
