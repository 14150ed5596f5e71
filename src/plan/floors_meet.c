/* floors_meet.c - what follows where two sections meet that have nothing to waste.
 *
 * In such a section each address above the floor belongs to a body. So a body that begins at the
 * border lies beside bodies that end there, or below the other section's floor; and what is left
 * below a body that lives on both sides ends at the same address on both: as many units of those
 * that end there as of those that begin there, but for the difference of the floors. Where few
 * bodies end and begin, hardly any address is left for the others.
 */
#include "plan/floors.h"

enum { MOST_ENDS = 12 }; /* of a border: with more, sums are not tried */

/* ---- borders ---- */

/* the other cells of the body that a cell is one of: the one in a section, if there is any */
static const muc_cell *cell_in(const muc_floors *f, uint32_t body, uint32_t section)
{
    const muc_cell *end, *first = muc_cells(f->of_body, f->body_at, body, &end), *cell = end - 1;

    /* a body's sections follow one another but for gaps between its pieces */
    if (section < first->other)
        return NULL;
    if (section - first->other < (uint64_t)(end - first))
        cell = first + (section - first->other);
    while (cell->other > section)
        cell--;
    return cell->other == section ? cell : NULL;
}

/* appends the cells of a section whose bodies do not live in the other one */
static size_t add_ends(muc_floors *f, uint32_t section, uint32_t other, size_t count, bool *plain)
{
    const muc_cell *end, *cell = muc_cells(f->of_section, f->section_at, section, &end);

    for (; cell < end; cell++) {
        const muc_cell *beyond = cell_in(f, cell->other, other);

        if (!beyond)
            f->ends[count++] = *cell;
        else if (beyond->low != cell->low || beyond->high != cell->high)
            *plain = false;
    }
    return count;
}

muc_status muc_floors_find_borders(muc_context *ctx, muc_floors *f)
{
    size_t count = 0;

    /* a section's cells stand at two borders at most */
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", 2 * f->body_at[f->bodies->count], &f->ends));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", 2 * (size_t)f->sections + 1, &f->ends_at));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", f->sections, &f->is_plain));
    for (uint32_t k = 0; k + 1 < f->sections; k++) {
        f->is_plain[k] = true;
        count = add_ends(f, k, k + 1, count, &f->is_plain[k]);
        f->ends_at[2 * k + 1] = count;
        count = add_ends(f, k + 1, k, count, &f->is_plain[k]);
        f->ends_at[2 * k + 2] = count;
    }
    return MUC_OK;
}

/* ---- what follows ---- */

/* one side of a border: bodies that are not placed and live on this side alone */
typedef struct side {
    uint32_t section;
    uint64_t floor, sum, least; /* sum: of their units; least: where the lowest could lie */
    uint32_t count;
    const muc_cell *cells[MOST_ENDS]; /* if there are not too many */
} side;

static side find_side(muc_floors *f, uint32_t border, uint32_t which)
{
    const muc_cell *end, *cell = muc_cells(f->ends, f->ends_at, 2 * border + which, &end);
    side s = { .section = border + which, .floor = f->floor[border + which], .least = UINT64_MAX };

    f->work += (uint64_t)(end - cell);
    for (; cell < end; cell++) {
        uint64_t bottom = f->low[cell->other] + cell->low;

        if (f->is_placed[cell->other])
            continue;
        if (s.count < MOST_ENDS)
            s.cells[s.count] = cell;
        s.count++;
        s.sum += cell->high - cell->low;
        s.least = bottom < s.least ? bottom : s.least;
    }
    return s;
}

/* What ends above the other section's floor lies beside a body there, not lower than the lowest. */
static bool lift_beside(muc_floors *f, const side *s, const side *other)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const muc_cell *cell = s->cells[i];

        if (f->low[cell->other] + cell->high <= other->floor || other->least <= other->floor)
            continue;
        if (other->count == 0) {
            f->fails[s->section]++;
            return false;
        }
        if (other->least > cell->low &&
            !muc_floors_lift(f, cell->other, other->least - cell->low, s->section))
            return false;
    }
    return true;
}

/* where the chosen bodies of a side end, one above the other from its floor; UINT64_MAX: one of
 * them cannot end so low */
static uint64_t end_of(const muc_floors *f, const side *s, uint32_t chosen)
{
    uint64_t end = s->floor, highest = 0;

    for (uint32_t i = 0; i < s->count; i++) {
        const muc_cell *cell = s->cells[i];
        uint64_t top = f->low[cell->other] + cell->high;

        if (!(chosen >> i & 1))
            continue;
        end += cell->high - cell->low;
        highest = top > highest ? top : highest;
    }
    return highest <= end ? end : UINT64_MAX;
}

/* the lowest address that bodies of both sides can end at; UINT64_MAX: there is none */
static uint64_t lowest_common(muc_floors *f, const side *a, const side *b)
{
    uint64_t lowest = UINT64_MAX, ends[1 << (MOST_ENDS / 2)];
    const side *few = a->count < b->count ? a : b, *many = few == a ? b : a;

    for (uint32_t i = 0; i < 1u << few->count; i++)
        ends[i] = end_of(f, few, i);
    for (uint32_t k = 0; k < 1u << many->count; k++) {
        uint64_t end = end_of(f, many, k);

        for (uint32_t i = 0; end < lowest && i < 1u << few->count; i++)
            if (ends[i] == end)
                lowest = end;
    }
    f->work += (uint64_t)1 << (a->count + b->count) >> 2;
    return lowest;
}

static bool is_full(const muc_floors *f, uint32_t section)
{
    return f->rest[section] > 0 && f->floor[section] + f->rest[section] == f->capacity;
}

bool muc_floors_meet(muc_floors *f, uint32_t border)
{
    const muc_cell *end, *cell = muc_cells(f->of_section, f->section_at, border, &end);
    uint64_t lowest;
    side a, b;

    if (!f->is_plain[border] || !is_full(f, border) || !is_full(f, border + 1))
        return true;
    a = find_side(f, border, 0);
    b = find_side(f, border, 1);
    /* nothing lives on both sides, or too much begins and ends */
    if (f->rest[border] == a.sum || a.count + b.count > MOST_ENDS)
        return true;
    if (!lift_beside(f, &a, &b) || !lift_beside(f, &b, &a))
        return false;
    if (a.floor == b.floor)
        return true;
    lowest = lowest_common(f, &a, &b);
    for (; cell < end && lowest < UINT64_MAX; cell++)
        if (!f->is_placed[cell->other] && f->low[cell->other] + cell->low < lowest &&
            cell_in(f, cell->other, border + 1) &&
            !muc_floors_lift(f, cell->other, lowest - cell->low, border))
            return false;
    f->fails[border] += lowest == UINT64_MAX;
    return lowest < UINT64_MAX;
}
