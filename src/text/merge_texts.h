/* merge_texts.h - merges as files list them, by the texts of two pieces. */
#ifndef MUC_TEXT_MERGE_TEXTS_H
#define MUC_TEXT_MERGE_TEXTS_H

#include "text/pieces.h"

enum { MUC_MERGES_WAITING = 16 };

/* Turns texts into merges of a vocabulary, in their order, a few at a time: the slots of the last
 * ones are being fetched meanwhile. */
typedef struct muc_merge_texts {
    muc_context *ctx;
    muc_arena *arena;
    muc_vocabulary *vocabulary;
    muc_piece_index *index;
    size_t capacity; /* of the vocabulary's merges */
    size_t taken;
    struct muc_merge_text {
        char text[2 * MUC_PIECE_MAX_BYTES];
        size_t size, left_size; /* left_size 0: where the text parts is not told */
    } waiting[MUC_MERGES_WAITING];
} muc_merge_texts;

/* Looks pieces up in the vocabulary as it is now, and gives it a list of merges, empty. */
muc_status muc_merge_texts_new(muc_context *ctx, muc_arena *arena, muc_vocabulary *vocabulary,
                               muc_merge_texts *out);
/* Takes a merge written as "left right". Pieces may hold spaces: the split that names two pieces
 * and makes a third counts, and must be the only one. What is wrong with a merge is told
 * when it is resolved, with its place in the list. */
muc_status muc_merge_texts_take(muc_merge_texts *merges, muc_string_view text);
/* Takes one that is told in two parts, of which neither is empty. */
muc_status muc_merge_texts_take_pair(muc_merge_texts *merges, muc_string_view left,
                                     muc_string_view right);
/* Resolves those that wait. */
muc_status muc_merge_texts_end(muc_merge_texts *merges);

#endif
