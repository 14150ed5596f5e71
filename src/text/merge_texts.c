/* merge_texts.c - looks up the pieces of listed merges. */
#include "text/merge_texts.h"

#include <string.h>

static const muc_string_view nothing = { "", 0 };

muc_status muc_merge_texts_new(muc_context *ctx, muc_arena *arena, muc_vocabulary *vocabulary,
                               muc_merge_texts *out)
{
    out->ctx = ctx;
    out->arena = arena;
    out->vocabulary = vocabulary;
    out->capacity = out->taken = 0;
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, 1, &out->index));
    MUC_TRY(muc_piece_index_new(ctx, arena, vocabulary, out->index));
    vocabulary->index = out->index;
    return MUC_ARENA_NEW(ctx, arena, 1, &vocabulary->merges); /* if there is none */
}

/* ---- one merge ---- */

/* The piece of both texts: the one that the last merge made, the one after it, or any. */
static uint32_t find_result(const muc_piece_index *index, uint32_t hash, muc_string_view left,
                            muc_string_view right)
{
    for (uint32_t id = index->result; id < index->count && id <= index->result + 1; id++)
        if (index->pieces[id].type == MUR_PIECE_NORMAL &&
            index->pieces[id].size == left.size + right.size &&
            memcmp(index->pieces[id].text, left.data, left.size) == 0 &&
            memcmp(index->pieces[id].text + left.size, right.data, right.size) == 0)
            return id;
    return muc_piece_find2(index, muc_piece_hash(hash, right.data, right.size), left, right);
}

static bool resolve(muc_piece_index *index, muc_string_view left, muc_string_view right,
                    muc_merge *out)
{
    const uint32_t hash = muc_piece_hash(0, left.data, left.size);

    *out = (muc_merge){ .left = muc_piece_find2(index, hash, left, nothing),
                        .right = muc_piece_find(index, right) };
    if (out->left == MUR_NO_TOKEN || out->right == MUR_NO_TOKEN)
        return false;
    out->result = find_result(index, hash, left, right);
    if (out->result == MUR_NO_TOKEN)
        return false;
    index->result = out->result;
    return true;
}

static muc_status resolve_pair(muc_merge_texts *m, const struct muc_merge_text *merge,
                               muc_merge *out)
{
    const muc_string_view left = { merge->text, merge->left_size };
    const muc_string_view right = { merge->text + left.size, merge->size - left.size };

    if (resolve(m->index, left, right, out))
        return MUC_OK;
    return muc_fail(m->ctx, MUC_MALFORMED, m->vocabulary->source, MUC_NO_OFFSET,
                    "merge %zu, '%.*s' and '%.*s', is not two pieces that make a third",
                    m->vocabulary->merge_count, (int)left.size, left.data, (int)right.size,
                    right.data);
}

static muc_status resolve_text(muc_merge_texts *m, const struct muc_merge_text *merge,
                               muc_merge *out)
{
    const size_t size = merge->size;
    size_t found = 0;
    muc_merge made;

    for (size_t i = 1; i + 1 < size; i++) {
        const muc_string_view left = { merge->text, i };
        const muc_string_view right = { merge->text + i + 1, size - i - 1 };

        if (merge->text[i] == ' ' && resolve(m->index, left, right, &made)) {
            *out = made;
            found++;
        }
    }
    if (found == 1)
        return MUC_OK;
    return muc_fail(m->ctx, MUC_MALFORMED, m->vocabulary->source, MUC_NO_OFFSET,
                    "merge %zu, '%.*s', has %zu splits into two pieces that make a third, "
                    "expected 1",
                    m->vocabulary->merge_count, (int)(size < 200 ? size : 200), merge->text, found);
}

/* ---- those that wait ---- */

static muc_status resolve_first(muc_merge_texts *m)
{
    muc_vocabulary *v = m->vocabulary;
    const struct muc_merge_text *merge = &m->waiting[v->merge_count % MUC_MERGES_WAITING];

    if (v->merge_count == MUR_TOKENIZER_MAX_MERGES)
        return muc_fail(m->ctx, MUC_MALFORMED, v->source, MUC_NO_OFFSET, "more than %d merges",
                        MUR_TOKENIZER_MAX_MERGES);
    MUC_TRY(MUC_ARENA_GROW(m->ctx, m->arena, v->merge_count + 1, &m->capacity, &v->merges));
    MUC_TRY((merge->left_size ? resolve_pair : resolve_text)(m, merge, &v->merges[v->merge_count]));
    v->merge_count++;
    return MUC_OK;
}

/* The slots that a merge will be looked up in are fetched, then, half way, the texts there. */
static void fetch(const muc_merge_texts *m, size_t at,
                  void (*what)(const muc_piece_index *index, uint32_t hash))
{
    const struct muc_merge_text *merge = &m->waiting[at % MUC_MERGES_WAITING];
    const char *space =
        merge->left_size || merge->size < 2 ? NULL : memchr(merge->text + 1, ' ', merge->size - 1);
    const size_t left = space ? (size_t)(space - merge->text) : merge->left_size;
    const size_t right = left + (space != NULL);

    what(m->index, muc_piece_hash(0, merge->text, left));
    what(m->index, muc_piece_hash(0, merge->text + right, merge->size - right));
}

static muc_status take(muc_merge_texts *m, muc_string_view left, muc_string_view right)
{
    struct muc_merge_text *merge = &m->waiting[m->taken % MUC_MERGES_WAITING];

    if (m->taken - m->vocabulary->merge_count == MUC_MERGES_WAITING)
        MUC_TRY(resolve_first(m));
    if (left.size + right.size > sizeof(merge->text))
        return muc_fail(m->ctx, MUC_MALFORMED, m->vocabulary->source, MUC_NO_OFFSET,
                        "merge %zu has %zu bytes", m->taken, left.size + right.size);
    memcpy(merge->text, left.data, left.size);
    memcpy(merge->text + left.size, right.data, right.size);
    merge->size = left.size + right.size;
    merge->left_size = right.size ? left.size : 0;
    fetch(m, m->taken, muc_piece_prefetch);
    m->taken++;
    if (m->taken - m->vocabulary->merge_count > MUC_MERGES_WAITING / 2)
        fetch(m, m->taken - 1 - MUC_MERGES_WAITING / 2, muc_piece_prefetch_text);
    return MUC_OK;
}

muc_status muc_merge_texts_take(muc_merge_texts *merges, muc_string_view text)
{
    return take(merges, text, nothing);
}

muc_status muc_merge_texts_take_pair(muc_merge_texts *merges, muc_string_view left,
                                     muc_string_view right)
{
    if (left.size == 0 || right.size == 0)
        return muc_fail(merges->ctx, MUC_MALFORMED, merges->vocabulary->source, MUC_NO_OFFSET,
                        "merge %zu has an empty part", merges->taken);
    return take(merges, left, right);
}

muc_status muc_merge_texts_end(muc_merge_texts *merges)
{
    while (merges->vocabulary->merge_count < merges->taken)
        MUC_TRY(resolve_first(merges));
    return MUC_OK;
}
