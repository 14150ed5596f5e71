/* corpus.c - encodes documents in parallel and gathers them in their order. */
#include "driver/train/corpus.h"

#include <stdlib.h>

#include "base/threads.h"
#include "run/text_passages.h"
#include "text/tokenizer.h"

typedef struct document {
    uint32_t *ids; /* malloc'ed */
    size_t count;
    uint32_t silent; /* at its start */
} document;

typedef struct work {
    muc_context *ctx;
    const muc_model *model;
    const char *name;
    bool cases;
    const muc_passage *passages;
    document *documents;
} work;

static size_t common_start(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count)
{
    size_t count = 0;

    while (count < a_count && count < b_count && a[count] == b[count])
        count++;
    return count;
}

/* the tokens that the whole case and its prompt alone have in common: a token that holds the end of
 * the one and the start of the other is predicted */
static muc_status measure_prompt(const work *w, const muc_passage *passage, size_t number,
                                 document *d)
{
    muc_case parts;
    uint32_t *ids;
    size_t count;

    MUC_TRY(muc_read_case(w->ctx, w->name, *passage, number, &parts));
    MUC_TRY(muc_tokenizer_encode(w->ctx, &w->model->tokenizer, passage->text, parts.prompt_bytes,
                                 MUR_ENCODE_BOS, &ids, &count));
    d->silent = (uint32_t)common_start(d->ids, d->count, ids, count);
    free(ids);
    return MUC_OK;
}

static muc_status encode(void *arg, size_t i)
{
    const work *w = arg;
    const muc_passage *passage = &w->passages[i];
    document *d = &w->documents[i];

    MUC_TRY(muc_tokenizer_encode(w->ctx, &w->model->tokenizer, passage->text, passage->size,
                                 MUR_ENCODE_BOS, &d->ids, &d->count));
    return w->cases ? measure_prompt(w, passage, i, d) : MUC_OK;
}

static muc_status gather(const work *w, size_t count, const muc_corpus_options *options,
                         muc_arena *arena, muc_train_corpus *out)
{
    muc_train_random random = { options->seed };
    uint32_t end = w->model->tokens.ends[0], *tokens, *silent;
    size_t *starts, total = 0, share = (size_t)(options->prompt_share * 0x1p32);

    for (size_t i = 0; i < count; i++)
        total += w->documents[i].count + (end != UINT32_MAX);
    MUC_TRY(MUC_ARENA_NEW(w->ctx, arena, total, &tokens));
    MUC_TRY(MUC_ARENA_NEW(w->ctx, arena, count, &silent));
    MUC_TRY(MUC_ARENA_NEW(w->ctx, arena, count + 1, &starts));
    for (size_t i = 0; i < count; i++) {
        const document *d = &w->documents[i];
        size_t at = starts[i];

        memcpy(tokens + at, d->ids, d->count * sizeof(*tokens));
        at += d->count;
        if (end != UINT32_MAX)
            tokens[at++] = end;
        starts[i + 1] = at;
        silent[i] = muc_train_random_next(&random) >> 32 < share ? 0 : d->silent;
    }
    *out = (muc_train_corpus){ count, starts, tokens, silent };
    return MUC_OK;
}

static muc_status read(muc_context *ctx, const muc_model *model, muc_bytes bytes,
                       const muc_corpus_options *options, muc_arena *arena, muc_train_corpus *out)
{
    work w = { .ctx = ctx, .model = model, .name = bytes.name, .cases = options->cases };
    const char *mark = options->cases ? "\n\n" : MUC_DOCUMENT_MARK;
    muc_arena scratch = { 0 };
    muc_passage *passages;
    size_t count = 0;
    muc_status status;

    status = muc_split_passages(ctx, bytes, mark, 0, &scratch, &passages, &count);
    w.passages = passages;
    if (status == MUC_OK)
        status = MUC_ARENA_NEW(ctx, &scratch, count, &w.documents);
    if (status == MUC_OK)
        status = muc_parallel_for(ctx, count, encode, &w);
    if (status == MUC_OK)
        status = gather(&w, count, options, arena, out);
    for (size_t i = 0; w.documents && i < count; i++)
        free(w.documents[i].ids);
    muc_arena_free(&scratch);
    return status;
}

muc_status muc_corpus_read(muc_context *ctx, const muc_model *model, const char *path,
                           const muc_corpus_options *options, muc_arena *arena,
                           muc_train_corpus *out)
{
    muc_status status;
    muc_file file;

    MUC_TRY(muc_model_need_tokenizer(ctx, model));
    MUC_TRY(muc_file_open(ctx, path, &file));
    status = read(ctx, model, file.bytes, options, arena, out);
    muc_file_close(&file);
    return status;
}

muc_status muc_corpus_of_texts(muc_context *ctx, const muc_model *model,
                               const muc_calibration *texts, uint32_t longest, muc_arena *arena,
                               muc_train_corpus *out)
{
    uint32_t end = model->tokens.ends[0], *tokens;
    size_t *starts, total = texts->count, from = 0;

    for (uint32_t i = 0; i < texts->count; i++)
        total += texts->lengths[i];
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, total, &tokens));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, (size_t)texts->count + 1, &starts));
    for (uint32_t i = 0; i < texts->count; i++) {
        size_t at = starts[i];

        for (uint32_t k = 0; k < texts->lengths[i]; k++)
            tokens[at++] = (uint32_t)texts->tokens[from++];
        if (texts->lengths[i] < longest && end != UINT32_MAX)
            tokens[at++] = end;
        starts[i + 1] = at;
    }
    *out = (muc_train_corpus){ texts->count, starts, tokens, NULL };
    return MUC_OK;
}
