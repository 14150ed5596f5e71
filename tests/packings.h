/* packings.h - lists of buffers that are hard to place: a full rectangle of bytes and time, cut to
 * pieces.
 *
 * All pieces together fill a memory of 1,048,576 bytes during 1,048,576 steps, in multiples of
 * 1,024 of both, so that much is enough. How it is cut is a matter of the kind: by straight cuts,
 * one within the other; by wheels too (four pieces around a fifth, which no straight cut parts); or
 * heaped up, piece upon piece, at the lowest place. The figures are those of MiniMalloc's lists A
 * to F; the last kinds have two to seven times as many pieces.
 */
#ifndef PACKINGS_H
#define PACKINGS_H

#include "plan/place.h"
#include "xorshift.h"

enum {
    PACKING_SIDE = 1024,
    PACKING_UNIT = 1024,
    PACKING_MOST = 2048,
    PACKING_USUAL = 20, /* the first kinds have about as many pieces as A to F */
};

typedef struct packing_kind {
    const char *name;
    uint32_t largest;       /* of cuts: no piece has more of the area, in 1/10,000 */
    uint32_t upright;       /* of cuts: so many of 100 part steps, the others bytes */
    uint32_t wheels;        /* of cuts: so many of 100 are wheels */
    uint32_t width, height; /* of heaps: about that many units of steps and bytes a piece */
    uint32_t dropped;       /* of 100 pieces, so many are left out */
    uint32_t whole;         /* of cuts: so many of 100 up to eight times as large are not cut */
    uint32_t alignment;
} packing_kind;

/* after A; C; with holes; D; E; with wheels; with wheels and holes; heaps after B, D, E, F; holes;
 * few and many pieces, large and tiny ones, aligned ones; and small and tiny pieces only */
static const packing_kind packing_kinds[] = {
    { "cuts", 134, 50, 0, 0, 0, 0, 0, 1 },
    { "cuts-small", 93, 50, 0, 0, 0, 0, 0, 1 },
    { "cuts-holes", 100, 50, 0, 0, 0, 5, 0, 1 },
    { "cuts-long", 83, 35, 0, 0, 0, 10, 0, 1 },
    { "cuts-short", 80, 65, 0, 0, 0, 0, 0, 1 },
    { "wheels", 134, 50, 40, 0, 0, 0, 0, 1 },
    { "wheels-holes", 110, 50, 30, 0, 0, 5, 0, 1 },
    { "heap", 0, 0, 0, 120, 50, 0, 0, 1 },
    { "heap-long", 0, 0, 0, 250, 25, 0, 0, 1 },
    { "heap-short", 0, 0, 0, 70, 80, 0, 0, 1 },
    { "heap-tall", 0, 0, 0, 40, 100, 0, 0, 1 },
    { "heap-holes", 0, 0, 0, 120, 50, 5, 0, 1 },
    { "few", 700, 50, 20, 0, 0, 5, 0, 1 },
    { "many", 60, 50, 0, 0, 0, 0, 0, 1 },
    { "many-holes", 70, 50, 0, 0, 0, 3, 0, 1 },
    { "mixed", 60, 50, 20, 0, 0, 0, 60, 1 },
    { "mixed-holes", 60, 50, 20, 0, 0, 5, 60, 16 },
    { "by-4", 120, 50, 20, 0, 0, 0, 0, 4 },
    { "by-4-holes", 120, 50, 0, 0, 0, 5, 0, 4 },
    { "by-16", 0, 0, 0, 120, 50, 0, 0, 16 },
    { "small-cuts", 35, 50, 0, 0, 0, 0, 0, 1 },
    { "small-wheels", 35, 50, 30, 0, 0, 0, 0, 1 },
    { "small-heap", 0, 0, 0, 70, 27, 0, 0, 1 },
    { "small-holes", 45, 50, 0, 0, 0, 5, 0, 1 },
    { "small-heap-holes", 0, 0, 0, 70, 32, 5, 0, 1 },
    { "tiny-cuts", 18, 50, 0, 0, 0, 0, 0, 1 },
    { "tiny-heap", 0, 0, 0, 45, 24, 0, 0, 1 },
    { "tiny-holes", 20, 50, 10, 0, 0, 4, 0, 1 },
};

typedef struct packing_piece {
    uint32_t x, y, width, height; /* steps and bytes, in units */
} packing_piece;

typedef struct packing {
    uint64_t chance; /* xorshift64*, of its own: a list depends on its kind and seed alone */
    packing_piece pieces[PACKING_MOST];
    uint32_t count;
} packing;

static inline uint32_t packing_choose(packing *p, uint32_t below)
{
    return (uint32_t)((uint64_t)random_next(&p->chance) * below >> 32);
}

static inline void packing_add(packing *p, packing_piece piece)
{
    if (p->count < PACKING_MOST)
        p->pieces[p->count++] = piece;
}

/* two cuts each way, and four pieces around the one in the middle */
static inline void packing_wheel(packing *p, packing_piece r)
{
    uint32_t x1 = 1 + packing_choose(p, r.width - 2), y1 = 1 + packing_choose(p, r.height - 2);
    uint32_t x2 = x1 + 1 + packing_choose(p, r.width - x1 - 1);
    uint32_t y2 = y1 + 1 + packing_choose(p, r.height - y1 - 1);

    packing_add(p, (packing_piece){ r.x, r.y, x2, y1 });
    packing_add(p, (packing_piece){ r.x + x2, r.y, r.width - x2, y2 });
    packing_add(p, (packing_piece){ r.x + x1, r.y + y2, r.width - x1, r.height - y2 });
    packing_add(p, (packing_piece){ r.x, r.y + y1, x1, r.height - y1 });
    packing_add(p, (packing_piece){ r.x + x1, r.y + y1, x2 - x1, y2 - y1 });
}

static inline void packing_cut(packing *p, packing_piece r, uint32_t upright)
{
    packing_piece rest = r;
    bool parts_steps = r.height < 2 || (r.width >= 2 && packing_choose(p, 100) < upright);

    if (parts_steps) {
        r.width = 1 + packing_choose(p, r.width - 1);
        rest.x += r.width;
        rest.width -= r.width;
    } else {
        r.height = 1 + packing_choose(p, r.height - 1);
        rest.y += r.height;
        rest.height -= r.height;
    }
    packing_add(p, r);
    packing_add(p, rest);
}

static inline void packing_cuts(packing *p, const packing_kind *kind)
{
    uint64_t largest = (uint64_t)PACKING_SIDE * PACKING_SIDE * kind->largest / 10000;

    packing_add(p, (packing_piece){ 0, 0, PACKING_SIDE, PACKING_SIDE });
    for (uint32_t i = 0; i < p->count;) {
        packing_piece r = p->pieces[i];

        if ((uint64_t)r.width * r.height <= largest ||
            (kind->whole && (uint64_t)r.width * r.height <= 8 * largest &&
             packing_choose(p, 100) < kind->whole)) {
            i++;
            continue;
        }
        p->pieces[i] = p->pieces[--p->count];
        if (r.width > 2 && r.height > 2 && packing_choose(p, 100) < kind->wheels)
            packing_wheel(p, r);
        else
            packing_cut(p, r, kind->upright);
    }
}

/* a length around `about`: short ones are more frequent, to three times as much */
static inline uint32_t packing_length(packing *p, uint32_t about)
{
    uint32_t part = 250 + packing_choose(p, 750);

    return 1 + (uint32_t)((uint64_t)about * 3 * part * part / 1000000);
}

static inline bool packing_near(uint32_t a, uint32_t b, uint32_t about)
{
    return (a > b ? a - b : b - a) * 5 < 2 * about;
}

/* Puts pieces into the lowest valley, left or right, level with what is beside it if they nearly
 * are. top: what is reached at each step. */
static inline void packing_heap(packing *p, const packing_kind *kind)
{
    uint32_t top[PACKING_SIDE] = { 0 };

    for (;;) {
        uint32_t x = 0, end, width, height;

        for (uint32_t i = 1; i < PACKING_SIDE; i++)
            x = top[i] < top[x] ? i : x;
        if (top[x] == PACKING_SIDE)
            return;
        for (end = x; end < PACKING_SIDE && top[end] == top[x];)
            end++;
        width = packing_length(p, kind->width);
        if (width > end - x || packing_near(width, end - x, kind->width))
            width = end - x;
        if (packing_choose(p, 2))
            x = end - width;
        height = packing_length(p, kind->height);
        if (x > 0 && top[x - 1] > top[x] && packing_near(top[x] + height, top[x - 1], kind->height))
            height = top[x - 1] - top[x];
        if (x + width < PACKING_SIDE && top[x + width] > top[x] &&
            packing_near(top[x] + height, top[x + width], kind->height))
            height = top[x + width] - top[x];
        if (height > PACKING_SIDE - top[x] ||
            packing_near(top[x] + height, PACKING_SIDE, kind->height))
            height = PACKING_SIDE - top[x];
        packing_add(p, (packing_piece){ x, top[x], width, height });
        for (uint32_t i = 0; i < width; i++)
            top[x + i] += height;
    }
}

/* Fills plan->buffers (room for PACKING_MOST) with the list of a kind and seed, in an order that
 * tells nothing, and sets its capacity and alignment. Sizes are less than a multiple of that by
 * chance.
 */
static inline void packing_list(const packing_kind *kind, uint32_t seed, muc_plan *plan)
{
    packing p = { .chance = 0x9e3779b97f4a7c15u * (seed + 1) };

    if (kind->width)
        packing_heap(&p, kind);
    else
        packing_cuts(&p, kind);
    plan->capacity = (uint64_t)PACKING_SIDE * PACKING_UNIT;
    plan->alignment = kind->alignment;
    plan->count = 0;
    while (p.count > 0) {
        uint32_t i = packing_choose(&p, p.count);
        packing_piece r = p.pieces[i];

        p.pieces[i] = p.pieces[--p.count];
        if (packing_choose(&p, 100) >= kind->dropped)
            plan->buffers[plan->count++] =
                (muc_plan_buffer){ .name = kind->name,
                                   .bytes = (uint64_t)r.height * PACKING_UNIT -
                                            packing_choose(&p, (uint32_t)plan->alignment),
                                   .first = r.x * PACKING_UNIT,
                                   .last = (r.x + r.width) * PACKING_UNIT - 1 };
    }
}

#endif
