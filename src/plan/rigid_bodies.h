/* rigid_bodies.h - a plan as the searches see it: rigid bodies in units of the alignment.
 *
 * Buffers tied by anchors form one body. What it occupies is a list of pieces, each the span of
 * units that it takes during some steps; a buffer on its own is a body of one piece. Private to
 * this room.
 */
#ifndef MUC_PLAN_BODIES_H
#define MUC_PLAN_BODIES_H

#include "plan/place.h"

/* bodies, and half the pieces, of which exact searches are made */
enum { MUC_MOST_EXACT = 1536 };

typedef struct muc_piece {
    uint32_t first, last; /* steps; the pieces of a body do not meet and are in order */
    uint32_t body;
    uint64_t low, high; /* units above the body's lowest, low < high */
} muc_piece;

typedef struct muc_body {
    uint32_t pieces, piece_count; /* a range of muc_bodies.pieces, at least one */
    uint64_t height;              /* units: the largest high */
    uint64_t at;                  /* result: address of its lowest unit, in units */
} muc_body;

typedef struct muc_bodies {
    muc_body *body;
    uint32_t count;
    muc_piece *pieces;
    uint32_t piece_count;
    uint64_t bound;     /* most units that live in one step */
    uint32_t full_step; /* the first step in which they do */
    bool flat;          /* every piece has low 0, so that bodies are ordered by address */
    /* of each buffer: its body, UINT32_MAX if it takes no room, and bytes from the body's lowest */
    uint32_t *body_of;
    uint64_t *offset_of;
} muc_bodies;

/* a deterministic source of choices: xorshift64* */
typedef struct muc_chance {
    uint64_t state; /* not 0 */
} muc_chance;

static inline uint32_t muc_chance_draw(muc_chance *chance, uint32_t below)
{
    chance->state ^= chance->state >> 12;
    chance->state ^= chance->state << 25;
    chance->state ^= chance->state >> 27;
    return (uint32_t)((chance->state * 0x2545f4914f6cdd1du >> 32) * below >> 32);
}

/* takes work from what is left of a budget */
static inline void muc_spend(uint64_t *budget, uint64_t work)
{
    *budget -= work < *budget ? work : *budget;
}

/* Luby's sequence 1 1 2 1 1 2 4 ...: its k-th element, from 1 on, is 2^(p-1) if k is 2^p - 1, else
 * the one of k less the largest 2^p - 1 below it */
static inline uint64_t muc_luby(uint64_t k)
{
    for (;;) {
        uint64_t whole = 1;

        while (2 * whole + 1 <= k)
            whole = 2 * whole + 1;
        if (k == whole)
            return (whole + 1) / 2;
        k -= whole;
    }
}

/* Groups the plan's buffers; *out owns its arrays even after a failure. */
muc_status muc_bodies_build(muc_context *ctx, const muc_plan *plan, muc_bodies *out);
void muc_bodies_free(muc_bodies *bodies);

/* Two pieces live in one step. */
static inline bool muc_pieces_meet(const muc_piece *a, const muc_piece *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* First fit in the given order of bodies (a permutation of 0..count-1): each goes to the lowest
 * place beside those before it. Sets at, returns the peak in units, or gives up and returns
 * UINT64_MAX once the peak exceeds `limit`. scratch: piece_count elements. */
uint64_t muc_bodies_first_fit(muc_bodies *bodies, const uint32_t *order, uint64_t limit,
                              uint32_t *scratch);

/* Hill climbing from an order whose peak is given. Leaves the best order found in `order` and
 * returns its peak; stops at one of at most `target` units. */
muc_status muc_bodies_climb(muc_context *ctx, muc_bodies *bodies, uint64_t target, uint32_t *order,
                            uint64_t *peak);

typedef enum muc_exact_result {
    MUC_EXACT_FOUND,   /* at is set for every body */
    MUC_EXACT_NONE,    /* proven: no placement fits */
    MUC_EXACT_UNKNOWN, /* the budget is spent */
} muc_exact_result;

/* Searches a placement of at most `capacity` units. The work that it spends, which is bounded, is
 * taken from *budget; the nodes that it visits are added to *nodes, on which its choices depend,
 * too. Bodies that are not flat are searched too, but then nothing is proven. */
muc_status muc_bodies_exact(muc_context *ctx, muc_bodies *bodies, uint64_t capacity,
                            uint64_t *budget, uint64_t *nodes, muc_exact_result *result);

#endif
