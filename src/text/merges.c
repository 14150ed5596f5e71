/* merges.c - ranks the merges of a vocabulary that has scores or listed merges.
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
    return vocabulary->alphabet == MUC_ALPHABET_BYTES || vocabulary->wordpiece ||
           memchr(piece->text, ' ', piece->size) == NULL;
}

static muc_status append(merge_list *list, muc_ranked_merge merge)
{
    if (!muc_piece_is_reachable(list->vocabulary, &list->vocabulary->pieces[merge.result]))
        return MUC_OK;
    if (list->count == MUR_TOKENIZER_MAX_MERGES)
        return muc_fail(list->ctx, MUC_MALFORMED, list->vocabulary->source, MUC_NO_OFFSET,
                        "more than %d merges", MUR_TOKENIZER_MAX_MERGES);
    MUC_TRY(MUC_ARENA_GROW(list->ctx, list->arena, list->count + 1, &list->capacity, &list->items));
    list->items[list->count++] = merge;
    return MUC_OK;
}

/* A way to make a piece of two. */
typedef struct cut {
    uint32_t at, head_hash, tail_hash, left;
} cut;

/* The cuts of a piece behind other pieces. All slots of a stage are fetched before the first is
 * needed, for hardly any is in a cache. */
static size_t find_heads(const merge_list *list, const muc_piece *piece, cut *cuts)
{
    uint32_t hash = 0;
    size_t count = 0;

    for (size_t at = 1; at < piece->size; at++) {
        hash = muc_piece_hash(hash, piece->text + at - 1, 1);
        cuts[at - 1] = (cut){ .at = (uint32_t)at, .head_hash = hash };
        muc_piece_prefetch(list->index, hash);
    }
    hash = muc_piece_hash(hash, piece->text + piece->size - 1, 1);
    for (size_t i = 0; i + 1 < piece->size; i++) {
        const muc_string_view head = { piece->text, cuts[i].at }, none = { "", 0 };
        cut found = cuts[i];

        found.left = muc_piece_find2(list->index, found.head_hash, head, none);
        if (found.left == MUR_NO_TOKEN)
            continue;
        found.tail_hash = muc_piece_hash_of_end(hash, found.head_hash, piece->size - found.at);
        muc_piece_prefetch(list->index, found.tail_hash);
        cuts[count++] = found;
    }
    return count;
}

/* Every way to make each piece of two others. */
static muc_status append_splits(merge_list *list)
{
    const muc_vocabulary *v = list->vocabulary;
    cut cuts[MUC_PIECE_MAX_BYTES];

    for (uint32_t id = 0; id < v->count; id++) {
        const muc_piece *piece = &v->pieces[id];
        const size_t count = piece->type == MUR_PIECE_NORMAL ? find_heads(list, piece, cuts) : 0;

        for (size_t i = 0; i < count; i++) {
            const muc_string_view tail = { piece->text + cuts[i].at, piece->size - cuts[i].at };
            const uint32_t right =
                muc_piece_find2(list->index, cuts[i].tail_hash, tail, (muc_string_view){ "", 0 });

            if (right != MUR_NO_TOKEN)
                MUC_TRY(append(list, (muc_ranked_merge){ cuts[i].left, right, id, 0 }));
        }
    }
    return MUC_OK;
}

static muc_status append_listed(merge_list *list)
{
    for (size_t i = 0; i < list->vocabulary->merge_count; i++) {
        const muc_merge *m = &list->vocabulary->merges[i];

        MUC_TRY(append(list,
                       (muc_ranked_merge){ m->left, m->right, m->result, (uint32_t)list->count }));
    }
    return MUC_OK;
}

/* ---- ranks ---- */

static int by_score(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x > y ? -1 : x < y;
}

static muc_status rank_by_score(merge_list *list)
{
    const muc_piece *pieces = list->vocabulary->pieces;
    double *scores;
    size_t distinct = 0;

    MUC_TRY(MUC_ARENA_NEW(list->ctx, list->arena, list->count, &scores));
    for (size_t i = 0; i < list->count; i++)
        scores[i] = pieces[list->items[i].result].score;
    qsort(scores, list->count, sizeof(*scores), by_score);
    for (size_t i = 0; i < list->count; i++)
        if (i == 0 || scores[i] < scores[i - 1])
            scores[distinct++] = scores[i];
    for (size_t i = 0; i < list->count; i++) {
        const double *place = bsearch(&pieces[list->items[i].result].score, scores, distinct,
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

static int by_right(const void *a, const void *b)
{
    const muc_ranked_merge *x = a, *y = b;

    return x->right < y->right ? -1 : x->right > y->right;
}

/* Ascending by (left, right): those of one left piece together, then each such run. */
static muc_status sort(merge_list *list)
{
    const size_t pieces = list->vocabulary->count;
    muc_ranked_merge *sorted;
    uint32_t *ends;

    MUC_TRY(MUC_ARENA_NEW(list->ctx, list->arena, pieces + 1, &ends));
    MUC_TRY(MUC_ARENA_NEW(list->ctx, list->arena, list->count, &sorted));
    for (size_t i = 0; i < list->count; i++)
        ends[list->items[i].left + 1]++;
    for (size_t i = 0; i < pieces; i++)
        ends[i + 1] += ends[i];
    for (size_t i = 0; i < list->count; i++)
        sorted[ends[list->items[i].left]++] = list->items[i];
    for (size_t first = 0, i = 0; i < pieces; first = ends[i++])
        if (ends[i] - first > 1)
            qsort(sorted + first, ends[i] - first, sizeof(*sorted), by_right);
    list->items = sorted;
    return MUC_OK;
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
    MUC_TRY(sort(&list));
    for (size_t i = 1; i < list.count; i++)
        if (list.items[i - 1].left == list.items[i].left &&
            list.items[i - 1].right == list.items[i].right)
            return muc_fail(ctx, MUC_MALFORMED, vocabulary->source, MUC_NO_OFFSET,
                            "the merge of '%s' and '%s' is listed twice",
                            vocabulary->pieces[list.items[i].left].text,
                            vocabulary->pieces[list.items[i].right].text);
    *merges = list.items;
    *count = list.count;
    return MUC_OK;
}
