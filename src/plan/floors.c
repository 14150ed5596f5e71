/* floors.c - divides time into sections, and finds what a body's placement decides in each. */
#include "plan/floors.h"

#include <stdlib.h>
#include <string.h>

/* ---- sections ---- */

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

/* Between two changes of who lives nothing happens; of those stretches, only the ones after a birth
 * and before a death are not part of another. Doubled times tell births (even) from deaths (odd).
 * Returns how many sections there are and puts their doubled times of death, rising, into ends. */
static uint32_t find_sections(const muc_bodies *bodies, uint64_t *ends)
{
    uint32_t count = 0, events = 0;

    for (uint32_t i = 0; i < bodies->piece_count; i++) {
        ends[events++] = 2 * (uint64_t)bodies->pieces[i].first;
        ends[events++] = 2 * (uint64_t)bodies->pieces[i].last + 1;
    }
    qsort(ends, events, sizeof(*ends), by_value);
    for (uint32_t i = 1; i < events; i++)
        if (ends[i] % 2 == 1 && ends[i - 1] % 2 == 0)
            ends[count++] = ends[i];
    return count;
}

/* the first section whose end is at or after the doubled time */
static uint32_t section_at(const uint64_t *ends, uint32_t count, uint64_t time)
{
    uint32_t low = 0;

    while (count > 0) {
        uint32_t half = count / 2;

        if (ends[low + half] < time) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

/* The sections of a piece: [first, end). A section ends before the piece does, or with it. */
static void find_range(const muc_floors *f, const uint64_t *ends, const muc_piece *piece,
                       uint32_t *first, uint32_t *end)
{
    *first = section_at(ends, f->sections, 2 * (uint64_t)piece->first);
    *end = section_at(ends, f->sections, 2 * (uint64_t)piece->last + 2);
}

static void find_cells(muc_floors *f, const uint64_t *ends)
{
    size_t cells = 0;

    for (uint32_t i = 0; i < f->bodies->piece_count; i++) {
        const muc_piece *piece = &f->bodies->pieces[i];
        uint32_t first, end;

        find_range(f, ends, piece, &first, &end);
        for (uint32_t k = first; k < end; k++) {
            f->of_body[cells++] = (muc_cell){ k, piece->low, piece->high };
            f->total[k] += piece->high - piece->low;
            f->section_at[k + 1]++;
        }
        f->body_at[piece->body + 1] = cells;
    }
    cells = 0;
    for (uint32_t k = 0; k < f->sections; k++) {
        size_t count = f->section_at[k + 1];

        f->section_at[k + 1] = cells;
        cells += count;
    }
    for (uint32_t i = 0; i < f->bodies->count; i++)
        for (size_t n = f->body_at[i]; n < f->body_at[i + 1]; n++) {
            muc_cell cell = f->of_body[n];

            f->of_section[f->section_at[cell.other + 1]++] = (muc_cell){ i, cell.low, cell.high };
        }
}

static muc_status allocate(muc_context *ctx, muc_floors *f, size_t cells)
{
    size_t count = f->bodies->count;
    uint64_t **of_sections[] = { &f->floor, &f->top, &f->rest, &f->total, &f->fails };

    for (size_t i = 0; i < MUC_COUNT(of_sections); i++)
        MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", f->sections, of_sections[i]));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", cells, &f->of_body));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", cells, &f->of_section));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count + 1, &f->body_at));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", (size_t)f->sections + 1, &f->section_at));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, &f->low));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, &f->is_placed));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", count, &f->bottoms));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", f->sections, &f->queue));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", f->sections, &f->placed));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", f->sections, &f->step));
    return MUC_NEW_ARRAY(ctx, "plan", f->sections, &f->is_queued);
}

muc_status muc_floors_build(muc_context *ctx, const muc_bodies *bodies, uint64_t capacity,
                            muc_floors *out)
{
    uint64_t *ends;
    size_t cells = 0;
    muc_status status;

    *out = (muc_floors){ .bodies = bodies, .capacity = capacity };
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", 2 * (size_t)bodies->piece_count, &ends));
    out->sections = find_sections(bodies, ends);
    for (uint32_t i = 0; i < bodies->piece_count; i++) {
        uint32_t first, end;

        find_range(out, ends, &bodies->pieces[i], &first, &end);
        cells += end - first;
    }
    status = allocate(ctx, out, cells);
    if (status == MUC_OK) {
        find_cells(out, ends);
        for (uint32_t k = 0; k < out->sections; k++)
            out->step[k] = (uint32_t)(ends[k] / 2);
        status = muc_floors_find_borders(ctx, out);
    }
    free(ends);
    return status;
}

void muc_floors_free(muc_floors *f)
{
    void *arrays[] = { f->of_body, f->body_at, f->of_section, f->section_at, f->floor,
                       f->top,     f->rest,    f->total,      f->fails,      f->low,
                       f->bottoms, f->queue,   f->is_queued,  f->is_placed,  f->step,
                       f->placed,  f->ends,    f->ends_at,    f->is_plain };

    for (size_t i = 0; i < MUC_COUNT(arrays); i++)
        free(arrays[i]);
    *f = (muc_floors){ 0 };
}

/* ---- what follows ---- */

static void enqueue(muc_floors *f, uint32_t section)
{
    if (!f->is_queued[section]) {
        f->is_queued[section] = true;
        f->queue[(f->queue_first + f->queue_size++) % f->sections] = section;
    }
}

bool muc_floors_lift(muc_floors *f, uint32_t body, uint64_t low, uint32_t section)
{
    if (f->low[body] >= low)
        return true;
    f->low[body] = low;
    if (low + f->bodies->body[body].height > f->capacity) {
        f->fails[section]++;
        return false;
    }
    for (size_t n = f->body_at[body]; n < f->body_at[body + 1]; n++)
        enqueue(f, f->of_body[n].other);
    return true;
}

/* Lifts the section's bodies onto its floor; queues the sections in which they live. False: one of
 * them ends above the capacity. */
static bool lift(muc_floors *f, uint32_t section)
{
    const muc_cell *end, *lifted = muc_cells(f->of_section, f->section_at, section, &end);

    enqueue(f, section);
    for (lifted += f->placed[section]; lifted < end; lifted++)
        if (f->floor[section] > lifted->low &&
            !muc_floors_lift(f, lifted->other, f->floor[section] - lifted->low, section))
            return false;
    return true;
}

/* Raises the section's floor to the lowest body that is not placed. True: the bodies fit, one above
 * the other, none lower than it can lie. Cells stay sorted by address, nearly, from the last time.
 */
static bool suffices(muc_floors *f, uint32_t section)
{
    muc_cell *cells = f->of_section + f->section_at[section] + f->placed[section];
    size_t count = f->section_at[section + 1] - f->section_at[section] - f->placed[section];
    uint64_t end = 0;

    f->work += count + 1;
    for (size_t n = 0; n < count; n++) {
        muc_cell moved = cells[n];
        uint64_t bottom = f->low[moved.other] + moved.low;
        size_t to = n;

        for (; to > 0 && f->bottoms[to - 1] > bottom; to--) {
            f->bottoms[to] = f->bottoms[to - 1];
            cells[to] = cells[to - 1];
        }
        f->bottoms[to] = bottom;
        if (to != n)
            cells[to] = moved;
    }
    f->floor[section] = count ? f->bottoms[0] : UINT64_MAX;
    for (size_t n = 0; n < count; n++)
        end = (f->bottoms[n] > end ? f->bottoms[n] : end) + cells[n].high - cells[n].low;
    return end <= f->capacity;
}

/* looks at the queued sections, unless it is known already that there is no room */
static bool settle(muc_floors *f, bool good)
{
    while (f->queue_size > 0) {
        uint32_t section = f->queue[f->queue_first];

        f->queue_first = (f->queue_first + 1) % f->sections;
        f->queue_size--;
        f->is_queued[section] = false;
        if (good && !suffices(f, section)) {
            f->fails[section]++;
            good = false;
        }
        good = good && (section == 0 || muc_floors_meet(f, section - 1)) &&
               (section + 1 == f->sections || muc_floors_meet(f, section));
    }
    return good;
}

bool muc_floors_reset(muc_floors *f)
{
    size_t size = f->sections * sizeof(*f->floor);

    memset(f->floor, 0, size);
    memset(f->top, 0, size);
    memcpy(f->rest, f->total, size);
    memset(f->low, 0, f->bodies->count * sizeof(*f->low));
    memset(f->is_placed, 0, f->bodies->count * sizeof(*f->is_placed));
    memset(f->placed, 0, f->sections * sizeof(*f->placed));
    for (uint32_t k = 0; k < f->sections; k++)
        enqueue(f, k);
    return settle(f, true);
}

/* puts a body's cell of a section behind those of the bodies placed before it */
static void move_placed(muc_floors *f, uint32_t section, uint32_t body)
{
    muc_cell *cells = f->of_section + f->section_at[section], *to = cells + f->placed[section]++;
    muc_cell *from = to, cell;

    while (from->other != body)
        from++;
    for (cell = *from; from > to; from--)
        *from = from[-1];
    *to = cell;
}

bool muc_floors_place(muc_floors *f, uint32_t body)
{
    const muc_cell *end, *first = muc_cells(f->of_body, f->body_at, body, &end);
    bool good = true;

    f->is_placed[body] = true;
    for (const muc_cell *cell = first; cell < end; cell++) {
        f->floor[cell->other] = f->top[cell->other] = f->low[body] + cell->high;
        f->rest[cell->other] -= cell->high - cell->low;
        move_placed(f, cell->other, body);
    }
    for (const muc_cell *cell = first; cell < end && good; cell++)
        good = lift(f, cell->other);
    return settle(f, good);
}

bool muc_floors_raise(muc_floors *f, uint32_t section, uint64_t floor)
{
    f->floor[section] = floor;
    return settle(f, lift(f, section));
}

void muc_floors_keep(const muc_floors *f, const uint32_t *list, uint32_t count, muc_floors_copy *to)
{
    size_t size = f->sections * sizeof(*f->floor);

    memcpy(to->floor, f->floor, size);
    memcpy(to->top, f->top, size);
    memcpy(to->rest, f->rest, size);
    for (uint32_t n = 0; n < count; n++)
        to->low[n] = f->low[list[n]];
}

void muc_floors_return(muc_floors *f, const uint32_t *list, uint32_t count,
                       const muc_floors_copy *from)
{
    size_t size = f->sections * sizeof(*f->floor);

    memcpy(f->floor, from->floor, size);
    memcpy(f->top, from->top, size);
    memcpy(f->rest, from->rest, size);
    for (uint32_t n = 0; n < count; n++) {
        const muc_cell *end, *cell = muc_cells(f->of_body, f->body_at, list[n], &end);

        f->low[list[n]] = from->low[n];
        for (; f->is_placed[list[n]] && cell < end; cell++)
            f->placed[cell->other]--;
        f->is_placed[list[n]] = false;
    }
}
