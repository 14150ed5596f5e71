/* place.h - where buffers lie in an arena, when each lives only for a time.
 *
 * A buffer occupies its bytes during steps first..last, ends included; two whose steps meet must
 * not overlap. The bytes that live at the fullest step are a bound that no placement can beat: it
 * is printed beside what was reached.
 *
 * Three searches follow one another, each only if those before it did not reach the target: greedy
 * orders, hill climbing over orders (place_climb.c), and a search through every left-justified
 * placement (place_exact.c), which either finds a placement, or proves that there is none, or ends
 * after a count of work; to fit a capacity it takes easier lists by guesses, too (place_guess.c).
 * Nothing looks at a clock: the same input gives the same addresses on every machine.
 */
#ifndef MUC_PLAN_PLACE_H
#define MUC_PLAN_PLACE_H

#include "base/base.h"

typedef struct muc_plan_buffer {
    const char *name;     /* borrowed */
    const char *tensor;   /* what the source calls it, up to a ';', for messages; NULL: name */
    uint64_t bytes;       /* 0: takes no room */
    uint32_t first, last; /* steps, first <= last */
    uint64_t address;     /* result: a multiple of the plan's alignment unless anchored */
    /* 0, or 1 + the index of another buffer of the plan. This one then lies at exactly that one's
     * address + offset and may share bytes with it: a view, a result computed in place. Chains of
     * anchors are followed. Buffers so tied move as one, and occupy at each step the span from the
     * lowest to the highest byte of those that live; whether sharing is right is the caller's to
     * know. */
    uint32_t anchor;
    int64_t offset;  /* any multiple of 1, within +-2^40; the anchor's own address stays aligned */
    bool persistent; /* lives in every step; first and last are not looked at */
} muc_plan_buffer;

/* who found the placement */
typedef enum muc_plan_stage {
    MUC_PLAN_GREEDY,
    MUC_PLAN_CLIMB,
    MUC_PLAN_EXACT,
    MUC_PLAN_STAGES
} muc_plan_stage;

typedef struct muc_plan {
    const char *arena;        /* its name, for messages: a memory level, a hardware buffer */
    const char *source;       /* what messages are about: a model, a network; NULL: not told */
    uint64_t capacity;        /* bytes of the arena */
    uint64_t alignment;       /* a power of two */
    const char *const *steps; /* their names, for messages; NULL: numbers alone */
    muc_plan_buffer *buffers;
    size_t count;
    uint64_t peak;        /* result: bytes used, each buffer rounded up to the alignment */
    uint64_t live_bound;  /* result: most bytes that live in one step, each rounded up */
    uint32_t full_step;   /* result: the first step in which they do */
    uint64_t least;       /* result: no placement needs fewer; live_bound, or more if proven */
    muc_plan_stage stage; /* result: which search found the placement */
    uint64_t nodes;       /* result: nodes that the exact search visited */
    uint64_t reached[MUC_PLAN_STAGES]; /* result: the peak after each search */
} muc_plan;

/* Places every buffer (at most 65536 of them) with the least peak that is found. peak == least
 * means that it is the least there is. The result may exceed capacity: muc_plan_check says.
 * MUC_USAGE for anchors that form a circle or lead out of the plan, or steps in the wrong order. */
muc_status muc_plan_place(muc_context *ctx, muc_plan *plan);

/* The same, but content with any placement whose peak is at most capacity, which is found sooner.
 * least > capacity afterwards means that none fits. */
muc_status muc_plan_fit(muc_context *ctx, muc_plan *plan);

/* MUC_NOFIT if the placement exceeds the arena. Names the arena, the bytes that lack, the three
 * largest buffers of the fullest step, and what would help: fewer bytes live in that step if the
 * bound is above capacity, a better placement if it is not (and whether one exists, as far as
 * known). */
muc_status muc_plan_check(muc_context *ctx, const muc_plan *plan);

#endif
