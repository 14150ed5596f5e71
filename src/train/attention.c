/* attention.c - causal attention within documents, a block of queries at a time.
 *
 * Probabilities are not kept for the way back but computed again from the logarithm of their sum:
 * they would be the largest activation of all. A block sees the keys up to its own last row, so
 * half of the square is never touched.
 */
#include <stdlib.h>

#include "base/threads.h"
#include "train/ops.h"

enum { BLOCK = 64 };

typedef struct attention {
    muc_context *ctx;
    const muc_train_heads *h;
    const muc_train_spans *spans;
    const muc_scalar *q, *k, *v, *dout;
    muc_scalar *lse, *out, *dq, *dk, *dv;
    size_t q_stride, kv_stride, group;
    muc_scalar scale;
} attention;

/* rows [first, first + rows) of a document that begins at start */
typedef struct block {
    size_t start, first, rows, keys;
} block;

static attention attention_of(muc_context *ctx, const muc_train_heads *h,
                              const muc_train_spans *spans)
{
    attention a = { .ctx = ctx, .h = h, .spans = spans };

    a.q_stride = h->heads * h->width;
    a.kv_stride = h->kv_heads * h->width;
    a.group = h->heads / h->kv_heads;
    a.scale = 1 / muc_train_sqrt((muc_scalar)h->width);
    return a;
}

static block block_of(const attention *a, size_t span, size_t first)
{
    size_t end = a->spans->starts[span + 1];
    block b = { a->spans->starts[span], first, end - first < BLOCK ? end - first : BLOCK, 0 };

    b.keys = first + b.rows - b.start;
    return b;
}

/* scaled products of the block's queries with its keys; [rows][keys] */
static void score(const attention *a, const block *b, size_t head, muc_scalar *scores)
{
    muc_train_gemm(false, true, b->rows, b->keys, a->h->width, a->scale,
                   a->q + b->first * a->q_stride + head * a->h->width, a->q_stride,
                   a->k + b->start * a->kv_stride + head / a->group * a->h->width, a->kv_stride, 0,
                   scores, b->keys);
}

/* what row r of the block sees */
static size_t seen(const block *b, size_t r)
{
    return b->first - b->start + r + 1;
}

MUC_VECTOR_LOOP static void soften(muc_scalar *row, size_t count, size_t keys, muc_scalar *lse)
{
    muc_scalar most = row[0], sum = 0;

    for (size_t t = 1; t < count; t++)
        most = row[t] > most ? row[t] : most;
    for (size_t t = 0; t < count; t++)
        row[t] = muc_train_exp(row[t] - most);
    for (size_t t = 0; t < count; t++)
        sum += row[t];
    for (size_t t = 0; t < count; t++)
        row[t] /= sum;
    memset(row + count, 0, (keys - count) * sizeof(*row));
    *lse = most + (muc_scalar)muc_log(sum);
}

static void attend_block(const attention *a, const block *b, size_t head, muc_scalar *scores)
{
    score(a, b, head, scores);
    for (size_t r = 0; r < b->rows; r++)
        soften(scores + r * b->keys, seen(b, r), b->keys,
               &a->lse[(b->first + r) * a->h->heads + head]);
    muc_train_gemm(false, false, b->rows, a->h->width, b->keys, 1, scores, b->keys,
                   a->v + b->start * a->kv_stride + head / a->group * a->h->width, a->kv_stride, 0,
                   a->out + b->first * a->q_stride + head * a->h->width, a->q_stride);
}

/* i: a document and a head of it */
static muc_status attend_head(void *arg, size_t i)
{
    const attention *a = arg;
    size_t span = i / a->h->heads, end = a->spans->starts[span + 1];
    muc_scalar *scores;

    MUC_TRY(MUC_NEW_ARRAY(a->ctx, "attention", BLOCK * (end - a->spans->starts[span]), &scores));
    for (size_t first = a->spans->starts[span]; first < end; first += BLOCK) {
        block b = block_of(a, span, first);

        attend_block(a, &b, i % a->h->heads, scores);
    }
    free(scores);
    return MUC_OK;
}

muc_status muc_train_attend(muc_context *ctx, const muc_train_heads *h,
                            const muc_train_spans *spans, const muc_scalar *q, const muc_scalar *k,
                            const muc_scalar *v, muc_scalar *lse, muc_scalar *out)
{
    attention a = attention_of(ctx, h, spans);

    a.q = q;
    a.k = k;
    a.v = v;
    a.lse = lse;
    a.out = out;
    return muc_parallel_for(ctx, spans->count * h->heads, attend_head, &a);
}

/* scores become probabilities p, and slopes (the gradients of p) those of the scores, scaled */
MUC_VECTOR_LOOP static void soften_back(const attention *a, const block *b, size_t head,
                                        muc_scalar *scores, muc_scalar *slopes)
{
    for (size_t r = 0; r < b->rows; r++) {
        muc_scalar lse = a->lse[(b->first + r) * a->h->heads + head], mean = 0;
        muc_scalar *p = scores + r * b->keys, *slope = slopes + r * b->keys;
        size_t count = seen(b, r);

        for (size_t t = 0; t < count; t++)
            p[t] = muc_train_exp(p[t] - lse);
        for (size_t t = 0; t < count; t++)
            mean += p[t] * slope[t];
        for (size_t t = 0; t < count; t++)
            slope[t] = p[t] * (slope[t] - mean) * a->scale;
        memset(p + count, 0, (b->keys - count) * sizeof(*p));
        memset(slope + count, 0, (b->keys - count) * sizeof(*slope));
    }
}

static void back_block(const attention *a, const block *b, size_t head, muc_scalar *scores,
                       muc_scalar *slopes)
{
    size_t width = a->h->width;
    size_t at_q = b->first * a->q_stride + head * width;
    size_t at_kv = b->start * a->kv_stride + head / a->group * width;

    score(a, b, head, scores);
    muc_train_gemm(false, true, b->rows, b->keys, width, 1, a->dout + at_q, a->q_stride,
                   a->v + at_kv, a->kv_stride, 0, slopes, b->keys);
    soften_back(a, b, head, scores, slopes);
    muc_train_gemm(false, false, b->rows, width, b->keys, 1, slopes, b->keys, a->k + at_kv,
                   a->kv_stride, 0, a->dq + at_q, a->q_stride);
    muc_train_gemm(true, false, b->keys, width, b->rows, 1, slopes, b->keys, a->q + at_q,
                   a->q_stride, 1, a->dk + at_kv, a->kv_stride);
    muc_train_gemm(true, false, b->keys, width, b->rows, 1, scores, b->keys, a->dout + at_q,
                   a->q_stride, 1, a->dv + at_kv, a->kv_stride);
}

/* i: a document and a head of keys, whose gradients gather here from its heads of queries */
static muc_status back_head(void *arg, size_t i)
{
    const attention *a = arg;
    size_t span = i / a->h->kv_heads, kv_head = i % a->h->kv_heads;
    size_t start = a->spans->starts[span], end = a->spans->starts[span + 1];
    size_t room = BLOCK * (end - start);
    muc_scalar *scratch;

    MUC_TRY(MUC_NEW_ARRAY(a->ctx, "attention", 2 * room, &scratch));
    for (size_t r = start; r < end; r++) {
        memset(a->dk + r * a->kv_stride + kv_head * a->h->width, 0, a->h->width * sizeof(*a->dk));
        memset(a->dv + r * a->kv_stride + kv_head * a->h->width, 0, a->h->width * sizeof(*a->dv));
    }
    for (size_t head = kv_head * a->group; head < (kv_head + 1) * a->group; head++)
        for (size_t first = start; first < end; first += BLOCK) {
            block b = block_of(a, span, first);

            back_block(a, &b, head, scratch, scratch + room);
        }
    free(scratch);
    return MUC_OK;
}

muc_status muc_train_attend_back(muc_context *ctx, const muc_train_heads *h,
                                 const muc_train_spans *spans, const muc_scalar *q,
                                 const muc_scalar *k, const muc_scalar *v, const muc_scalar *lse,
                                 const muc_scalar *dout, muc_scalar *dq, muc_scalar *dk,
                                 muc_scalar *dv)
{
    attention a = attention_of(ctx, h, spans);

    a.q = q;
    a.k = k;
    a.v = v;
    a.lse = (muc_scalar *)(uintptr_t)lse;
    a.dout = dout;
    a.dq = dq;
    a.dk = dk;
    a.dv = dv;
    return muc_parallel_for(ctx, spans->count * h->kv_heads, back_head, &a);
}
