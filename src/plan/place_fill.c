/* place_fill.c - takes what a placement must leave unused for bodies, too.
 *
 * A list with room to spare has many more placements than one without, and a search through them
 * sees too late that it wastes what it needs elsewhere. But how much is unused is known for each
 * section: where that grows a hole begins, where it shrinks by as much one ends. With the holes as
 * bodies nothing is left to waste, and a search finds a placement, or that there is none, in a
 * thousandth of the time. Which hole ends where is a guess if several are open, and others may
 * begin and end unseen: so many guesses are tried, each with its own chance.
 */
#include "plan/floors.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_SUMMED = 12, /* open holes of which all sums are looked at */
    SURE = 4,         /* the first guesses cut no hole in two */
    MOST_CUTS = 8,    /* of others: before up to so many of CUT sections a hole is cut */
    CUT = 64,
};

typedef struct filler {
    const muc_floors *floors;
    muc_chance chance;
    muc_hole *open, *done;
    uint32_t open_count, done_count;
} filler;

static void open_hole(filler *f, uint32_t section, uint64_t height)
{
    f->open[f->open_count++] = (muc_hole){ .first = section, .height = height };
}

/* so much of an open hole ends before a section */
static void end_part(filler *f, uint32_t i, uint32_t section, uint64_t height)
{
    if (f->open[i].first < section)
        f->done[f->done_count++] = (muc_hole){ f->open[i].first, section - 1, height };
    f->open[i].height -= height;
    if (f->open[i].height == 0)
        f->open[i] = f->open[--f->open_count];
}

/* the fewest open holes, as bits, that have together a height; 0: none have */
static uint32_t find_sum(filler *f, uint64_t height)
{
    uint32_t count = f->open_count < MOST_SUMMED ? f->open_count : MOST_SUMMED, best = 0;
    uint32_t best_bits = MOST_SUMMED + 1;

    for (uint32_t chosen = 1; chosen < 1u << count; chosen++) {
        uint32_t bits = 0;
        uint64_t sum = 0;

        for (uint32_t i = 0; i < count; i++) {
            bits += chosen >> i & 1;
            sum += chosen >> i & 1 ? f->open[i].height : 0;
        }
        if (sum == height &&
            (bits < best_bits || (bits == best_bits && muc_chance_draw(&f->chance, 2)))) {
            best = chosen;
            best_bits = bits;
        }
    }
    return best;
}

/* Open holes end before a section, or parts of one: beside what goes on, or where another, lower
 * one begins. */
static void narrow(filler *f, uint32_t section, uint64_t height)
{
    uint32_t chosen = muc_chance_draw(&f->chance, 8) ? find_sum(f, height) : 0, i;
    uint64_t rest;

    for (i = MOST_SUMMED; i-- > 0;)
        if (chosen >> i & 1)
            end_part(f, i, section, f->open[i].height);
    while (!chosen && height > 0) {
        i = muc_chance_draw(&f->chance, f->open_count);
        if (f->open[i].height <= height) {
            height -= f->open[i].height;
            end_part(f, i, section, f->open[i].height);
            continue;
        }
        rest = f->open[i].height - height;
        switch (muc_chance_draw(&f->chance, 3)) {
        case 0: /* it ends, and one as high as the rest begins */
            end_part(f, i, section, f->open[i].height);
            open_hole(f, section, rest);
            break;
        case 1: /* it was two, of which one ends */
            end_part(f, i, section, height);
            break;
        default: /* either */
            end_part(f, i, section, height);
            end_part(f, i, section, rest);
            open_hole(f, section, rest);
            break;
        }
        return;
    }
}

/* one ends, so that one as much higher begins */
static uint64_t end_any(filler *f, uint32_t section)
{
    uint32_t i = muc_chance_draw(&f->chance, f->open_count);
    uint64_t height = f->open[i].height;

    end_part(f, i, section, height);
    return height;
}

static void find_holes(filler *f, uint32_t guess, const uint64_t *seeds)
{
    uint32_t sections = f->floors->sections, cuts = 0;
    uint64_t before = 0;

    f->chance.state = seeds[sections + 1];
    if (guess >= SURE && muc_chance_draw(&f->chance, 2))
        cuts = muc_chance_draw(&f->chance, MOST_CUTS);

    for (uint32_t k = 0; k <= sections; k++) {
        bool is_end = k == sections;
        uint64_t unused = is_end ? 0 : f->floors->capacity - f->floors->total[k];

        f->chance.state = seeds[k];
        if (f->open_count > 0 && !is_end && muc_chance_draw(&f->chance, CUT) < cuts)
            open_hole(f, k, end_any(f, k));
        if (unused < before)
            narrow(f, k, before - unused);
        if (unused > before && guess > 0 && f->open_count > 0 &&
            muc_chance_draw(&f->chance, 4) == 0)
            open_hole(f, k, unused - before + end_any(f, k));
        else if (unused > before)
            open_hole(f, k, unused - before);
        before = unused;
    }
}

muc_status muc_floors_fill(muc_context *ctx, const muc_floors *floors, uint32_t guess,
                           const uint64_t *seeds, muc_hole *holes, uint32_t *count)
{
    filler f = { .floors = floors, .done = holes };

    /* a section opens two at most */
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", 2 * (size_t)floors->sections, &f.open));
    find_holes(&f, guess, seeds);
    *count = f.done_count;
    free(f.open);
    return MUC_OK;
}
