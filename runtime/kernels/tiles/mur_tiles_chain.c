/* mur_tiles_chain.c - layers one after another on rows that stay in the small memory. */
#include <string.h>

#include "mur_tiles_work.h"

/* one link's work in one turn */
typedef struct turn {
    const mur_tiles_chain *chain;
    const mur_tiles_link *link;
    const mur_tiles_span *now, *before; /* the turn's spans, and those of the turn before or NULL */
    uint8_t *small;
} turn;

static turn turn_of(const mur_tiles_chain *chain, uint32_t slot, uint8_t *small)
{
    const mur_tiles_span *now = chain->spans + slot / chain->link_count * chain->column_count;

    return (turn){
        .chain = chain,
        .link = &chain->links[slot % chain->link_count],
        .now = now,
        .before = slot < chain->link_count ? NULL : now - chain->column_count,
        .small = small,
    };
}

/* the first row of a column that is new in a turn; those before it that are kept move to the
 * column's beginning if asked for */
static uint32_t first_new(const turn *t, uint32_t c, int keep)
{
    const mur_tiles_column *column = &t->chain->columns[c];
    const mur_tiles_span *now = &t->now[c], *before = t->before ? &t->before[c] : NULL;

    if (!before || before->end <= now->first)
        return now->first;
    if (keep && now->first > before->first)
        memmove(t->small + column->at,
                t->small + column->at + (size_t)(now->first - before->first) * column->row_bytes,
                (size_t)(before->end - now->first) * column->row_bytes);
    return before->end;
}

static mur_tiles_box box_of(const turn *t, uint32_t row, uint32_t rows)
{
    return (mur_tiles_box){ .row = row, .rows = rows, .parts = t->link->tiles->parts };
}

/* starts the moves of what is new of an operand */
static mur_hal_ticket move_new(const turn *t, uint32_t i, int keep, uint8_t *large)
{
    uint32_t c = t->link->column[i], first = first_new(t, c, keep);
    const mur_tiles_column *column = &t->chain->columns[c];
    const mur_tiles_box box = box_of(t, 0, 0);

    if (first >= t->now[c].end)
        return 0;
    return mur_tiles_move(t->link->tiles, i, &box, first, t->now[c].end - first, large,
                          t->small + column->at +
                              (size_t)(first - t->now[c].first) * column->row_bytes);
}

static mur_hal_ticket fetch(const turn *t, void *const *data)
{
    mur_hal_ticket ticket = 0, last;

    for (uint32_t i = 0; i + 1 < t->link->tiles->operand_count; i++) {
        last = t->link->moves[i] ? move_new(t, i, 1, data[i]) : 0;
        if (last)
            ticket = last;
    }
    return ticket;
}

static void compute(const turn *t)
{
    const mur_tiles_link *link = t->link;
    uint32_t count = link->tiles->operand_count, out = link->column[count - 1];
    uint32_t first = first_new(t, out, 1);
    mur_tiles_work work = {
        .tiles = link->tiles,
        .layer = link->layer,
        .compute = link->compute,
        .kernel = link->kernel,
        .small = t->small,
    };
    mur_tiles_box box;

    if (first >= t->now[out].end)
        return;
    box = box_of(t, first, t->now[out].end - first);
    work.box = &box;
    for (uint32_t i = 0; i < count; i++) {
        const mur_tiles_column *column = &t->chain->columns[link->column[i]];

        work.at[i] = (ptrdiff_t)column->at + (ptrdiff_t)link->skip[i] -
                     (ptrdiff_t)t->now[link->column[i]].first * (ptrdiff_t)column->row_bytes;
    }
    mur_tiles_share(&work);
}

static mur_hal_ticket store(const turn *t, void *const *data)
{
    uint32_t out = t->link->tiles->operand_count - 1u;

    return t->link->moves[out] ? move_new(t, out, 0, data[out]) : 0;
}

void mur_tiles_run_chain(const mur_tiles_chain *chain, void *const data[][MUR_TILES_OPERANDS],
                         uint8_t *small)
{
    uint32_t slots = chain->turns * chain->link_count;
    turn now = turn_of(chain, 0, small), next;
    mur_hal_ticket stored = 0;

    mur_hal_wait(fetch(&now, data[0]));
    for (uint32_t n = 0; n < slots; n++) {
        mur_hal_ticket coming = 0;

        next = now;
        if (n + 1 < slots) {
            next = turn_of(chain, n + 1, small);
            coming = fetch(&next, data[next.link - chain->links]);
        }
        compute(&now);
        mur_hal_wait(coming);
        mur_hal_wait(stored);
        stored = store(&now, data[now.link - chain->links]);
        now = next;
    }
    mur_hal_wait(stored);
}
