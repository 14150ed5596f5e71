/* bd_choose.c - which grid, and which kind at which price.
 *
 * With y = |w| in units of the grid, moving the elements at or above the midpoint of two
 * neighbouring values a < b from a to b lowers the squared error by
 *
 *     (b - a) * G(a + b),   G(t) = sum of importance * (2y - t) over elements with 2y >= t
 *
 * and every a + b is an integer. So one census G of a block prices all dialects, all kinds and the
 * neighbouring exponents (whose boundaries are the same ones doubled) with a few products each.
 */
#include "quant/blockdialect.h"

#include <math.h>
#include <string.h>

#include "quant/bd_table.h"

enum { PRICE_SHIFT = 12 };

static bool has(uint32_t kinds, muc_bd_kind kind)
{
    return (kinds >> kind & 1) != 0;
}

/* The exponent that just holds the largest element is not always the best, so its neighbours are
 * tried too; the census counts in the units of the lowest. */
enum { TRIED_EXPONENTS = 3, BOUNDARIES = (30 << (TRIED_EXPONENTS - 1)) + 1, Q_LIMIT = 64 };

typedef struct census {
    unsigned first, last; /* exponents to try */
    double energy;        /* sum of importance * y^2 */
    double g[BOUNDARIES]; /* zero from Q_LIMIT on */
} census;

static void take_census(const float *w, const float *importance, unsigned n, census *out)
{
    double count[Q_LIMIT] = { 0 }, sum[Q_LIMIT] = { 0 }, counts = 0, sums = 0;
    float max = 0, scale;
    unsigned e16, middle;

    for (unsigned i = 0; i < n; i++)
        max = fabsf(w[i]) > max ? fabsf(w[i]) : max;
    e16 = (unsigned)(muc_f16_of_f32(max) >> 10);
    middle = e16 > 2 ? e16 - 2 : 0;
    out->first = middle > 0 ? middle - 1 : 0;
    out->last = middle + 1;
    out->energy = 0;
    scale = muc_bd_per_unit(out->first);
    for (unsigned i = 0; i < n; i++) {
        float y = fabsf(w[i]) * scale;
        double weight = importance ? (double)importance[i] : 1.0, part = weight * (double)y;
        unsigned t = (unsigned)(2 * y); /* below 64: y is below 16 at the middle exponent */

        count[t] += weight;
        sum[t] += part;
        out->energy += part * (double)y;
    }
    memset(out->g, 0, sizeof(out->g));
    for (unsigned t = Q_LIMIT; t-- > 0;) {
        counts += count[t];
        sums += sum[t];
        out->g[t] = 2 * sums - (double)t * counts;
    }
}

/* back from the census's units to squared weights, of the error that a gain leaves */
static double error_after(const census *of, double gain)
{
    double unit = (double)muc_bd_unit(of->first), error = (of->energy - gain) * unit * unit;

    return error > 0 ? error : 0;
}

/* A dialect's boundaries where it may differ from the others, from index 4 on: where each lies, and
 * how far apart the values on its sides are. */
typedef struct upper_boundaries {
    uint8_t at[3], step[3];
} upper_boundaries;
static const upper_boundaries differing[MUC_BD_DIALECTS] = {
#define MUR_DIALECT(id, m0, m1, m2, m3, m4, m5, m6, m7) \
    [id] = { { m4 + m5, m5 + m6, m6 + m7 }, { m5 - m4, m6 - m5, m7 - m6 } },
#include "mur_dialect.def"
#undef MUR_DIALECT
};
enum { AGREED_BOUNDARIES = 4 };

/* The error of every one-term grid of a kind, by exponent from the census's first, and dialect. */
typedef double grid_errors[TRIED_EXPONENTS][MUC_BD_DIALECTS];

static void b4_errors(const census *of, grid_errors errors)
{
    for (unsigned shift = 0; shift <= of->last - of->first; shift++) {
        double unit = (double)(1u << shift), agreed = 0;

        for (unsigned i = 0; i < AGREED_BOUNDARIES; i++) /* between i and i + 1 */
            agreed += of->g[(2 * i + 1) << shift];
        for (unsigned d = 0; d < MUC_BD_DIALECTS; d++) {
            double gain = agreed;

            for (unsigned i = 0; i < 3; i++)
                gain += (double)differing[d].step[i] * of->g[differing[d].at[i] << shift];
            errors[shift][d] = error_after(of, gain * unit);
        }
    }
}

/* B5 has dialect 0 alone */
static void b5_errors(const census *of, grid_errors errors)
{
    for (unsigned shift = 0; shift <= of->last - of->first; shift++) {
        double gain = 0;

        for (unsigned m = 0; m < 15; m++)
            gain += of->g[(2 * m + 1) << shift];
        errors[shift][0] = error_after(of, gain * (double)(1u << shift));
    }
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
    double error;
    grid grid[2];
} choice;

/* What is known of one block. */
typedef struct survey {
    const float *w, *importance;
    unsigned n;
    census census;
    grid_errors b4, b5;
} survey;

static void take_survey(uint32_t kinds, const float *w, const float *importance, unsigned n,
                        survey *out)
{
    out->w = w;
    out->importance = importance;
    out->n = n;
    take_census(w, importance, n, &out->census);
    if (has(kinds, MUC_BD_B4) || has(kinds, MUC_BD_R))
        b4_errors(&out->census, out->b4);
    if (has(kinds, MUC_BD_B5))
        b5_errors(&out->census, out->b5);
}

/* Puts the least of the errors and its grid into *out; the lowest exponent, then dialect on ties.
 */
static void least_error(const census *of, muc_bd_kind kind, grid_errors errors, unsigned term,
                        choice *out)
{
    out->error = INFINITY;
    for (unsigned e = 0; e <= of->last - of->first; e++) {
        for (unsigned d = 0; d < (kind == MUC_BD_B5 ? 1 : MUC_BD_DIALECTS); d++) {
            if (errors[e][d] < out->error) {
                out->error = errors[e][d];
                out->grid[0].dialect[term] = (uint8_t)d;
                out->grid[0].exponent[term] = (uint8_t)(of->first + e);
            }
        }
    }
}

static muc_bd_block block_of(const grid *g)
{
    muc_bd_block block = { .kind = g->kind };

    for (unsigned t = 0; t < 2; t++) {
        block.term[t].dialect = g->dialect[t];
        block.term[t].exponent = g->exponent[t];
    }
    return block;
}

/* The second term of R, on what the best single term leaves. */
static void choose_second(const survey *of, choice *out)
{
    muc_bd_block first = block_of(&out->grid[0]);
    float rest[MUC_BD_ELEMS];
    grid_errors errors;
    census left;

    first.kind = MUC_BD_B4;
    for (unsigned i = 0; i < of->n; i++)
        rest[i] = of->w[i] - muc_bd_round(&first, i, of->w[i]);
    take_census(rest, of->importance, of->n, &left);
    b4_errors(&left, errors);
    least_error(&left, MUC_BD_R, errors, 1, out);
}

/* the best grid of one kind for one block */
static choice best_of(muc_bd_kind kind, survey *of)
{
    choice out = { .bytes = muc_bd_kind_bytes(kind, of->n), .grid[0].kind = kind };

    if (kind == MUC_BD_Z)
        out.error = error_after(&of->census, 0);
    else
        least_error(&of->census, kind, kind == MUC_BD_B5 ? of->b5 : of->b4, 0, &out);
    if (kind == MUC_BD_R)
        choose_second(of, &out);
    return out;
}

/* Does no grid do better than zeros? Then none has an element beyond its first boundary. */
static bool is_empty(const survey *of)
{
    return of->census.g[1] <= 0;
}

/* Keeps choices sorted by size, then error. */
static void insert(choice *choices, unsigned *count, const choice *one)
{
    unsigned at = (*count)++;

    for (; at > 0 && (choices[at - 1].bytes > one->bytes ||
                      (choices[at - 1].bytes == one->bytes && choices[at - 1].error > one->error));
         at--)
        choices[at] = choices[at - 1];
    choices[at] = *one;
}

static double saved_per_byte(const choice *less, const choice *more)
{
    return (less->error - more->error) / (double)(more->bytes - less->bytes);
}

/* Of sorted choices keeps those that are best at some price (the lower convex hull), and says at
 * which price each begins to be worth its bytes. */
static void keep_worthwhile(choice *choices, unsigned *count)
{
    unsigned kept = 1;

    choices[0].price = MUC_BD_PRICES;
    for (unsigned i = 1; i < *count; i++) {
        choice next = choices[i];

        if (next.error >= choices[kept - 1].error)
            continue;
        while (kept > 1 && saved_per_byte(&choices[kept - 1], &next) >=
                               saved_per_byte(&choices[kept - 2], &choices[kept - 1]))
            kept--;
        next.price = muc_f32_bits((float)saved_per_byte(&choices[kept - 1], &next)) >> PRICE_SHIFT;
        choices[kept++] = next;
    }
    *count = kept;
}

static unsigned block_choices(uint32_t kinds, survey *of, choice choices[MUC_BD_MAX_OFFERS])
{
    static const muc_bd_kind order[] = { MUC_BD_B4, MUC_BD_B5, MUC_BD_R };
    unsigned count = 0;

    if (is_empty(of))
        kinds = 0;
    for (unsigned i = 0; i < MUC_COUNT(order); i++) {
        if (has(kinds, order[i])) {
            choice one = best_of(order[i], of);

            insert(choices, &count, &one);
        }
    }
    if (count == 0)
        choices[count++] = best_of(MUC_BD_Z, of);
    keep_worthwhile(choices, &count);
    return count;
}

/* Two blocks side by side: from the smallest pair on, whichever is worth more grows. */
static unsigned join(const choice *upper, unsigned uppers, const choice *lower, unsigned lowers,
                     choice pairs[MUC_BD_MAX_OFFERS])
{
    unsigned count = 0, u = 0, l = 0;

    for (;;) {
        pairs[count] = upper[u];
        pairs[count].bytes += lower[l].bytes;
        pairs[count].error += lower[l].error;
        pairs[count++].grid[1] = lower[l].grid[0];
        if (u + 1 == uppers && l + 1 == lowers)
            return count;
        if (l + 1 == lowers || (u + 1 < uppers && saved_per_byte(&upper[u], &upper[u + 1]) >=
                                                      saved_per_byte(&lower[l], &lower[l + 1])))
            u++;
        else
            l++;
    }
}

/* The best header that two blocks can share. */
static bool share(uint32_t kinds, muc_bd_kind kind, survey of[2], choice *out)
{
    double(*errors[2])[MUC_BD_DIALECTS] = { kind == MUC_BD_B5 ? of[0].b5 : of[0].b4,
                                            kind == MUC_BD_B5 ? of[1].b5 : of[1].b4 };
    unsigned first = of[0].census.first, last = of[0].census.last;

    if (!has(kinds, kind) || is_empty(&of[0]) || is_empty(&of[1]) || of[1].census.first > last ||
        of[1].census.last < first)
        return false;
    out->error = INFINITY;
    for (unsigned e = first; e <= last; e++) {
        if (e < of[1].census.first || e > of[1].census.last)
            continue;
        for (unsigned d = 0; d < (kind == MUC_BD_B5 ? 1 : MUC_BD_DIALECTS); d++) {
            double error = errors[0][e - first][d] + errors[1][e - of[1].census.first][d];

            if (error < out->error) {
                out->error = error;
                out->grid[0] = (grid){ kind, { (uint8_t)d }, { (uint8_t)e } };
            }
        }
    }
    out->grid[1] = out->grid[0];
    out->bytes = muc_bd_kind_bytes(kind, of[0].n) + muc_bd_kind_bytes(kind, of[1].n) - 2;
    return true;
}

static unsigned column_choices(uint32_t kinds, const float *w, const float *importance,
                               unsigned rows, choice choices[MUC_BD_MAX_OFFERS])
{
    static const muc_bd_kind sharing[] = { MUC_BD_B4, MUC_BD_B5 };
    choice apart[2][MUC_BD_MAX_OFFERS], shared;
    unsigned count[2], total;
    survey of[2];

    for (unsigned b = 0; b < muc_bd_block_count(rows); b++) {
        unsigned at = b * MUC_BD_ELEMS;

        take_survey(kinds, w + at, importance ? importance + at : NULL,
                    muc_bd_block_elements(rows, b), &of[b]);
        count[b] = block_choices(kinds, &of[b], apart[b]);
    }
    if (muc_bd_block_count(rows) == 1) {
        memcpy(choices, apart[0], count[0] * sizeof(*choices));
        return count[0];
    }
    total = join(apart[0], count[0], apart[1], count[1], choices);
    for (unsigned i = 0; i < MUC_COUNT(sharing) && (kinds & MUC_BD_SHARING) != 0; i++)
        if (share(kinds, sharing[i], of, &shared))
            insert(choices, &total, &shared);
    keep_worthwhile(choices, &total);
    return total;
}

void muc_bd_choose(const muc_bd_rule *rule, const float *w, const float *importance, unsigned rows,
                   muc_bd_column *out)
{
    choice choices[MUC_BD_MAX_OFFERS];
    unsigned count = column_choices(rule->kinds, w, importance, rows, choices), last = 0;

    while (last + 1 < count && choices[last + 1].price >= rule->price)
        last++;
    out->rows = rows;
    for (unsigned b = 0; b < muc_bd_block_count(rows); b++) {
        out->block[b] = block_of(&choices[last].grid[b]);
        for (unsigned i = 0; i < muc_bd_block_elements(rows, b); i++)
            muc_bd_round(&out->block[b], i, w[b * MUC_BD_ELEMS + i]);
    }
    muc_bd_pack(out, rule->kinds);
}

unsigned muc_bd_offers(uint32_t kinds, const float *w, const float *importance, unsigned rows,
                       muc_bd_offer offers[MUC_BD_MAX_OFFERS])
{
    choice choices[MUC_BD_MAX_OFFERS];
    unsigned count = column_choices(kinds, w, importance, rows, choices);

    for (unsigned i = 0; i < count; i++)
        offers[i] = (muc_bd_offer){ choices[i].bytes, choices[i].price };
    return count;
}
