/* merges.h - the merges of a vocabulary, ranked. */
#ifndef MUC_TEXT_MERGES_H
#define MUC_TEXT_MERGES_H

#include "text/pieces.h"

typedef struct muc_ranked_merge {
    uint32_t left, right, result;
    uint32_t rank; /* dense; the lowest merges first, the leftmost of equals */
} muc_ranked_merge;

/* Arena-owned, ascending by (left, right). */
muc_status muc_merges_rank(muc_context *ctx, const muc_vocabulary *vocabulary,
                           const muc_piece_index *index, muc_arena *arena,
                           muc_ranked_merge **merges, size_t *count);

/* False for a piece that no text can reach: characters never include a plain space, since
 * every space of the text is read as U+2581. */
bool muc_piece_is_reachable(const muc_vocabulary *vocabulary, const muc_piece *piece);

#endif
