/* layout_parts.h - what the files of the layout share. Private to them.
 *
 * Sizes are computed in 64 bits that saturate, and checked against what the container and the
 * machine can express before they become the layout's 32-bit numbers.
 */
#ifndef MUC_UTHINKER_LAYOUT_PARTS_H
#define MUC_UTHINKER_LAYOUT_PARTS_H

#include "base/bytes.h"
#include "targets/uthinker/lower/uthinker_layout.h"

static inline uint64_t product(uint64_t a, uint64_t b)
{
    uint64_t out;

    return muc_mul_u64(a, b, &out) && out < UINT64_MAX / 16 ? out : UINT64_MAX / 16;
}

static inline uint64_t aligned(uint64_t a, uint64_t alignment)
{
    return (a + alignment - 1) & ~(alignment - 1);
}

static inline uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Counts bytes in use towards the buffer's fullest. */
static inline void note_use(muc_uthinker_layout *layout, enum mur_buffer buffer, uint64_t used,
                            uint64_t bound)
{
    layout->used_bytes[buffer] = (uint32_t)larger(layout->used_bytes[buffer], used);
    layout->bound_bytes[buffer] = (uint32_t)larger(layout->bound_bytes[buffer], bound);
}

/* whether a program loads the kind's matrices */
bool muc_layout_is_streamed(const muc_uthinker_model *model, muc_matrix_kind kind);
/* bytes from a sequence's first block to that of the tiles at and after column `column` */
uint32_t muc_layout_blocks_before(const muc_uthinker_machine *machine,
                                  const muc_uthinker_weight *weight, uint32_t k, uint32_t column);
/* the narrowest chunk of a kind, in columns */
uint32_t muc_layout_step_of(const muc_uthinker_layout *layout, muc_matrix_kind kind);
/* Fixes shapes, and the chunks of every kind. */
muc_status muc_layout_choose_chunks(muc_context *ctx, const muc_uthinker_model *model,
                                    muc_uthinker_layout *layout);

/* Makes options.terms the most of any layer; layers that are all alike have none of their own. */
void muc_layout_join_terms(muc_uthinker_layout *layout);
/* The end of what intervals see of the K, V and X caches, which were laid out. */
uint64_t muc_layout_reach_of_caches(const muc_uthinker_layout *layout);

#endif
