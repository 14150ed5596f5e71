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

typedef struct hole {
    uint32_t first, last; /* sections */
    uint64_t height;
} hole;

typedef struct filler {
    const muc_floors *floors;
    muc_chance *chance;
    hole *open, *done;
    uint32_t open_count, done_count;
} filler;

static void open_hole(filler *f, uint32_t section, uint64_t height)
{
    f->open[f->open_count++] = (hole){ .first = section, .height = height };
}

/* so much of an open hole ends before a section */
static void end_part(filler *f, uint32_t i, uint32_t section, uint64_t height)
{
    if (f->open[i].first < section)
        f->done[f->done_count++] = (hole){ f->open[i].first, section - 1, height };
    f->open[i].height -= height;
    if (f->open[i].height == 0)
        f->open[i] = f->open[--f->open_count];
}

/* the fewest open holes, as bits, that have together a height; 0: none have */
static uint32_t find_sum(const filler *f, uint64_t height)
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
            (bits < best_bits || (bits == best_bits && muc_chance_draw(f->chance, 2)))) {
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
    uint32_t chosen = muc_chance_draw(f->chance, 8) ? find_sum(f, height) : 0, i;
    uint64_t rest;

    for (i = MOST_SUMMED; i-- > 0;)
        if (chosen >> i & 1)
            end_part(f, i, section, f->open[i].height);
    while (!chosen && height > 0) {
        i = muc_chance_draw(f->chance, f->open_count);
        if (f->open[i].height <= height) {
            height -= f->open[i].height;
            end_part(f, i, section, f->open[i].height);
            continue;
        }
        rest = f->open[i].height - height;
        switch (muc_chance_draw(f->chance, 3)) {
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
    uint32_t i = muc_chance_draw(f->chance, f->open_count);
    uint64_t height = f->open[i].height;

    end_part(f, i, section, height);
    return height;
}

static void find_holes(filler *f, uint32_t guess)
{
    uint32_t cuts =
        guess < SURE || muc_chance_draw(f->chance, 2) ? 0 : muc_chance_draw(f->chance, MOST_CUTS);
    uint64_t before = 0;

    for (uint32_t k = 0; k <= f->floors->sections; k++) {
        bool is_end = k == f->floors->sections;
        uint64_t unused = is_end ? 0 : f->floors->capacity - f->floors->total[k];

        if (f->open_count > 0 && !is_end && muc_chance_draw(f->chance, CUT) < cuts)
            open_hole(f, k, end_any(f, k));
        if (unused < before)
            narrow(f, k, before - unused);
        if (unused > before && guess > 0 && f->open_count > 0 && muc_chance_draw(f->chance, 4) == 0)
            open_hole(f, k, unused - before + end_any(f, k));
        else if (unused > before)
            open_hole(f, k, unused - before);
        before = unused;
    }
}

/* the bodies, and after them the holes */
static muc_status add_holes(muc_context *ctx, const muc_bodies *bodies, const filler *f,
                            muc_bodies *out)
{
    const uint32_t *step = f->floors->step;

    *out = (muc_bodies){ .count = bodies->count,
                         .piece_count = bodies->piece_count,
                         .bound = f->floors->capacity,
                         .flat = bodies->flat };
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", (size_t)out->count + f->done_count, &out->body));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", (size_t)out->piece_count + f->done_count, &out->pieces));
    memcpy(out->body, bodies->body, out->count * sizeof(*out->body));
    memcpy(out->pieces, bodies->pieces, out->piece_count * sizeof(*out->pieces));
    for (uint32_t i = 0; i < f->done_count; i++) {
        const hole *h = &f->done[i];

        out->body[out->count] =
            (muc_body){ .pieces = out->piece_count, .piece_count = 1, .height = h->height };
        out->pieces[out->piece_count++] = (muc_piece){
            .first = step[h->first], .last = step[h->last], .body = out->count++, .high = h->height
        };
    }
    return MUC_OK;
}

muc_status muc_bodies_fill(muc_context *ctx, const muc_bodies *bodies, uint64_t capacity,
                           uint32_t guess, muc_chance *chance, muc_bodies *out)
{
    muc_floors floors;
    filler f = { .floors = &floors, .chance = chance };
    muc_status status = muc_floors_build(ctx, bodies, capacity, &floors);

    *out = (muc_bodies){ 0 };
    /* a section opens two at most, and cuts one */
    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(ctx, "plan", 2 * (size_t)floors.sections, &f.open);
    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(ctx, "plan", 3 * (size_t)floors.sections, &f.done);
    if (status == MUC_OK) {
        find_holes(&f, guess);
        status = add_holes(ctx, bodies, &f, out);
    }
    free(f.open);
    free(f.done);
    muc_floors_free(&floors);
    return status;
}
