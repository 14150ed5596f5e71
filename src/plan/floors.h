/* floors.h - a placement in the making, section by section of time, for place_exact.c.
 *
 * A section is a maximal set of bodies that live together. Its floor is the lowest address at which
 * a body that is not placed yet can still lie there. Private to this room.
 */
#ifndef MUC_PLAN_FLOORS_H
#define MUC_PLAN_FLOORS_H

#include "plan/rigid_bodies.h"

/* a body in a section: between the other's index and these units above the body's lowest */
typedef struct muc_cell {
    uint32_t other; /* of a body's cells the section, of a section's cells the body */
    uint64_t low, high;
} muc_cell;

typedef struct muc_floors {
    const muc_bodies *bodies;
    uint64_t capacity; /* units */
    uint32_t sections;
    muc_cell *of_body;    /* of all bodies one after the other, sections rising */
    size_t *body_at;      /* of each body: its first in of_body; and the end */
    muc_cell *of_section; /* of a section's cells, those of placed bodies come first */
    size_t *section_at;
    uint32_t *placed; /* of each section: its bodies that are placed */
    uint32_t *step;   /* of each section: one in which all its bodies live */
    /* of each border, which is between a section and the next: the cells of bodies that only live
     * before it, then of those that only live after it */
    muc_cell *ends;
    size_t *ends_at; /* of border k: 2 * k and 2 * k + 1; and the end */
    bool *is_plain;  /* of each border: what lives on both sides occupies the same units there */
    uint64_t *floor; /* of each section; UINT64_MAX: all its bodies are placed */
    uint64_t *top;   /* of each section: the end of what is placed */
    uint64_t *rest;  /* of each section: units of the bodies that are not placed */
    uint64_t *total; /* of each section: units of all its bodies */
    uint64_t *fails; /* of each section: how often it was too full */
    uint64_t *low;   /* of each body: its address, or the lowest that it could have now */
    bool *is_placed; /* of each body */
    uint64_t work;   /* cells looked at so far */
    uint64_t *bottoms;
    uint32_t *queue, queue_first, queue_size; /* a ring, of sections */
    bool *is_queued;                          /* of each section */
} muc_floors;

/* what a step changes; owned by the caller: one element per section, of low one per body of the
 * list */
typedef struct muc_floors_copy {
    uint64_t *floor, *top, *rest, *low;
} muc_floors_copy;

/* The cells of a body or a section, from its first to before the end. */
static inline const muc_cell *muc_cells(const muc_cell *cells, const size_t *at, uint32_t index,
                                        const muc_cell **end)
{
    *end = cells + at[index + 1];
    return cells + at[index];
}

static inline uint32_t muc_first_section(const muc_floors *f, uint32_t body)
{
    return f->of_body[f->body_at[body]].other;
}

static inline uint32_t muc_last_section(const muc_floors *f, uint32_t body)
{
    return f->of_body[f->body_at[body + 1] - 1].other;
}

/* Finds the sections. *out owns its arrays even after a failure, and borrows the bodies. */
muc_status muc_floors_build(muc_context *ctx, const muc_bodies *bodies, uint64_t capacity,
                            muc_floors *out);
void muc_floors_free(muc_floors *floors);

/* Nothing is placed. False, here and below: then no placement has room for the bodies left, one
 * above the other in each section, none below the lowest address that it could have. */
bool muc_floors_reset(muc_floors *floors);

/* Puts a body at the lowest address that it could have. */
bool muc_floors_place(muc_floors *floors, uint32_t body);

/* Lets a body that is left not lie below an address, seen from a section. */
bool muc_floors_lift(muc_floors *floors, uint32_t body, uint64_t low, uint32_t section);

/* Lets nothing that is left lie below an address in a section. */
bool muc_floors_raise(muc_floors *floors, uint32_t section, uint64_t floor);

/* floors_meet.c: finds the borders; and lifts what has to be higher because two sections that have
 * nothing to waste meet there. */
muc_status muc_floors_find_borders(muc_context *ctx, muc_floors *floors);
bool muc_floors_meet(muc_floors *floors, uint32_t border);

/* Keeps, and brings back, what the bodies of a list and the sections are like. Those of the list
 * are not placed. */
void muc_floors_keep(const muc_floors *floors, const uint32_t *list, uint32_t count,
                     muc_floors_copy *to);
void muc_floors_return(muc_floors *floors, const uint32_t *list, uint32_t count,
                       const muc_floors_copy *from);

/* units that a placement leaves unused */
typedef struct muc_hole {
    uint32_t first, last; /* sections */
    uint64_t height;
} muc_hole;

/* place_fill.c: holes that make the units of each section as many as the capacity: a guess
 * (numbered from 0) of how what is unused hangs together. seeds: not 0, one per section, and two;
 * holes: room for three a section. */
muc_status muc_floors_fill(muc_context *ctx, const muc_floors *floors, uint32_t guess,
                           const uint64_t *seeds, muc_hole *holes, uint32_t *count);

/* place_merge.c: the bodies and, after them, the holes, some of them made one: a guess of what lies
 * side by side, the bolder the greater the risk. A placement of all is one of the bodies; that
 * there is none says nothing of them. body_of and offset_of tell of each body which of *out it is
 * part of, and units from its lowest. *out owns its arrays even after a failure. */
muc_status muc_floors_merge(muc_context *ctx, const muc_floors *floors, const muc_hole *holes,
                            uint32_t hole_count, uint32_t risk, muc_chance chance, uint64_t *budget,
                            muc_bodies *out);

/* place_guess.c: the bodies as muc_floors_merge gives them, after the best of many guesses. */
muc_status muc_floors_guess(muc_context *ctx, const muc_floors *floors, uint32_t guess,
                            muc_chance *chance, uint64_t *budget, muc_bodies *out);

#endif
