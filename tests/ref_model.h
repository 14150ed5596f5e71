/* ref_model.h - a checkpoint's graph as ref runs it, and its logits. */
#ifndef REF_MODEL_H
#define REF_MODEL_H

#include "check.h"
#include "formats/checkpoint.h"
#include "ref/ref.h"

typedef struct model {
    muc_context *ctx;
    muc_checkpoint checkpoint;
    muc_graph *graph;
    muc_ref *ref;
} model;

static inline void close_model(model *m)
{
    muc_ref_close(m->ref);
    muc_graph_free(m->graph);
    muc_checkpoint_close(&m->checkpoint);
    muc_context_free(m->ctx);
}

/* [count][vocabulary], after each of the tokens; until the next call. */
static inline const float *logits_of(model *m, uint32_t pos, const int32_t *tokens, uint32_t count)
{
    size_t rows, columns;
    const float *logits;

    CHECK_OK(m->ctx, muc_ref_run_tokens(m->ref, pos, tokens, count));
    logits = muc_ref_read(m->ref, "head", &rows, &columns);
    CHECK_EQ(rows, count);
    CHECK_EQ(columns, m->checkpoint.config.vocabulary);
    return logits;
}

#endif
