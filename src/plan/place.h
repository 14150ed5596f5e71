/* place.h - where buffers lie in an arena, when each lives only for a time.
 *
 * A buffer occupies its bytes during steps first..last, ends included; two whose steps meet must
 * not overlap. The bytes that live at the fullest step are a bound that no placement can beat: it
 * is printed beside what was reached.
 */
#ifndef MUC_PLAN_PLACE_H
#define MUC_PLAN_PLACE_H

#include "base/base.h"
#include "base/text.h"

typedef struct muc_plan_buffer {
    const char *name;
    uint64_t bytes;
    uint32_t first, last; /* steps, first <= last */
    uint64_t address;     /* result: a multiple of the plan's alignment */
} muc_plan_buffer;

typedef struct muc_plan {
    const char *arena;  /* its name, for messages */
    uint64_t capacity;  /* bytes of the arena */
    uint64_t alignment; /* a power of two */
    muc_plan_buffer *buffers;
    size_t count;
    uint64_t peak;       /* result: bytes used */
    uint64_t live_bound; /* result: most bytes that live in one step, each rounded up */
    uint32_t full_step;  /* result: the first step in which they do */
} muc_plan;

/* Places every buffer (at most 65536 of them), trying several greedy orders and keeping the best;
 * the same input gives the same addresses. The result may exceed capacity: muc_plan_check says. */
muc_status muc_plan_place(muc_context *ctx, muc_plan *plan);

/* MUC_NOFIT if the placement exceeds the arena, naming the arena, the bytes that lack, and the
 * largest buffer of the fullest step. */
muc_status muc_plan_check(muc_context *ctx, const muc_plan *plan);

/* One line a buffer (name, bytes, address, steps), then the peak beside the bound. */
void muc_plan_print(const muc_plan *plan, muc_text *text);

#endif
