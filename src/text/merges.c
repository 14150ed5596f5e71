/* merges.c - from scores or listed merges to ranks.
 *
 * SentencePiece merges any two pieces whose texts join to a piece, by the piece's score. A file
 * converted to listed merges names every such split, piece by piece; recognising that gives both
 * files the same ranks. Merges listed otherwise keep their places in the list as ranks.
 */
#include "text/merges.h"

#include <stdlib.h>
#include <string.h>

typedef struct merge_list {
    muc_context *ctx;
    muc_arena *arena;
    const muc_vocabulary *vocabulary;
    const muc_piece_index *index;
    muc_ranked_merge *items;
    size_t count, capacity;
} merge_list;

bool muc_piece_is_reachable(const muc_vocabulary *vocabulary, const muc_piece *piece)
{
    return vocabulary->alphabet == MUC_ALPHABET_BYTES ||
           memchr(piece->text, ' ', piece->size) == NULL;
}

static muc_status append(merge_list *list, muc_ranked_merge merge)
{
    if (!muc_piece_is_reachable(list->vocabulary, &list->vocabulary->pieces[merge.result]))
        return MUC_OK;
    if (list->count == MUR_TOKENIZER_MAX_MERGES)
        return muc_fail(list->ctx, MUC_MALFORMED, list->vocabulary->source, MUC_NO_OFFSET,
                        "more than %d merges", MUR_TOKENIZER_MAX_MERGES);
    MUC_TRY(muc_arena_grow(list->ctx, list->arena, list->count + 1, sizeof(*list->items),
                           &list->capacity, (void **)&list->items));
    list->items[list->count++] = merge;
    return MUC_OK;
}

/* Every way to make each piece of two others. */
static muc_status append_splits(merge_list *list)
{
    for (size_t i = 0; i < list->index->count; i++) {
        const uint32_t id = list->index->ids[i];
        const muc_piece *piece = &list->vocabulary->pieces[id];

        for (size_t cut = 1; cut < piece->size; cut++) {
            muc_ranked_merge merge = { .result = id };

            merge.left = muc_piece_find(list->index, piece->text, cut);
            if (merge.left == MUR_NO_TOKEN)
                continue;
            merge.right = muc_piece_find(list->index, piece->text + cut, piece->size - cut);
            if (merge.right != MUR_NO_TOKEN)
                MUC_TRY(append(list, merge));
        }
    }
    return MUC_OK;
}

static muc_status append_listed(merge_list *list)
{
    for (size_t i = 0; i < list->vocabulary->merge_count; i++) {
        const muc_merge *merge = &list->vocabulary->merges[i];
        const muc_piece *left = &list->vocabulary->pieces[merge->left];
        const muc_piece *right = &list->vocabulary->pieces[merge->right];
        muc_ranked_merge ranked = { merge->left, merge->right, 0, (uint32_t)list->count };

        ranked.result =
            muc_piece_find2(list->index, left->text, left->size, right->text, right->size);
        MUC_TRY(append(list, ranked));
    }
    return MUC_OK;
}

/* ---- ranks ---- */

static int by_score(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return x > y ? -1 : x < y;
}

static muc_status rank_by_score(merge_list *list)
{
    const muc_piece *pieces = list->vocabulary->pieces;
    float *scores;
    size_t distinct = 0;

    MUC_TRY(MUC_ARENA_NEW(list->ctx, list->arena, list->count, &scores));
    for (size_t i = 0; i < list->count; i++)
        scores[i] = pieces[list->items[i].result].score;
    qsort(scores, list->count, sizeof(*scores), by_score);
    for (size_t i = 0; i < list->count; i++)
        if (i == 0 || scores[i] < scores[i - 1])
            scores[distinct++] = scores[i];
    for (size_t i = 0; i < list->count; i++) {
        const float *place = bsearch(&pieces[list->items[i].result].score, scores, distinct,
                                     sizeof(*scores), by_score);

        list->items[i].rank = (uint32_t)(place - scores);
    }
    return MUC_OK;
}

/* If the list is all splits of the pieces, those of one piece together, ranks are the pieces'. */
static muc_status rank_by_piece(merge_list *list)
{
    merge_list splits = *list;
    uint32_t *ranks;
    uint32_t next = 0;

    splits.items = NULL;
    splits.count = splits.capacity = 0;
    MUC_TRY(append_splits(&splits));
    if (splits.count != list->count)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(list->ctx, list->arena, list->vocabulary->count, &ranks));
    for (size_t i = 0; i < list->count; i++) {
        const uint32_t result = list->items[i].result;

        if (i > 0 && result == list->items[i - 1].result)
            continue;
        if (ranks[result] != 0)
            return MUC_OK;
        ranks[result] = ++next;
    }
    for (size_t i = 0; i < list->count; i++)
        list->items[i].rank = ranks[list->items[i].result] - 1;
    return MUC_OK;
}

static int by_pair(const void *a, const void *b)
{
    const muc_ranked_merge *x = a, *y = b;

    if (x->left != y->left)
        return x->left < y->left ? -1 : 1;
    return x->right < y->right ? -1 : x->right > y->right;
}

muc_status muc_merges_rank(muc_context *ctx, const muc_vocabulary *vocabulary,
                           const muc_piece_index *index, muc_arena *arena,
                           muc_ranked_merge **merges, size_t *count)
{
    merge_list list = { .ctx = ctx, .arena = arena, .vocabulary = vocabulary, .index = index };

    if (!vocabulary->merges) {
        MUC_TRY(append_splits(&list));
        MUC_TRY(rank_by_score(&list));
    } else {
        MUC_TRY(append_listed(&list));
        if (vocabulary->alphabet == MUC_ALPHABET_CHARACTERS)
            MUC_TRY(rank_by_piece(&list));
    }
    if (list.count > 0)
        qsort(list.items, list.count, sizeof(*list.items), by_pair);
    for (size_t i = 1; i < list.count; i++)
        if (by_pair(&list.items[i - 1], &list.items[i]) == 0)
            return muc_fail(ctx, MUC_MALFORMED, vocabulary->source, MUC_NO_OFFSET,
                            "the merge of '%s' and '%s' is listed twice",
                            vocabulary->pieces[list.items[i].left].text,
                            vocabulary->pieces[list.items[i].right].text);
    *merges = list.items;
    *count = list.count;
    return MUC_OK;
}
