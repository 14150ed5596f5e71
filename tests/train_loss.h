/* train_loss.h - random models, and the loss of a document by the reference and by the trainer. */
#ifndef TRAIN_LOSS_H
#define TRAIN_LOSS_H

#include <math.h>

#include "check.h"
#include "models/llama.h"
#include "random_model.h"
#include "ref/ref.h"
#include "train/export.h"
#include "train/trainer.h"

static const random_shape small = { .layers = 2,
                                    .dim = 24,
                                    .heads = 4,
                                    .kv_heads = 2,
                                    .head_dim = 8,
                                    .ffn_dim = 40,
                                    .vocabulary = 50,
                                    .context = 96,
                                    .tied = false };

enum { LENGTH = 70 };

/* mean of -ln p over one document, by the graph and the reference */
static inline double reference_loss(muc_context *ctx, const muc_checkpoint *checkpoint, bool level,
                                    const int32_t *tokens)
{
    const muc_llama_options options = { .max_tokens = LENGTH, .level = level };
    size_t rows, columns;
    const float *logits;
    muc_graph *graph;
    double sum = 0;
    muc_ref *ref;

    CHECK_OK(ctx, muc_llama_build(ctx, checkpoint, &options, &graph));
    CHECK_OK(ctx, muc_ref_open(ctx, graph, &ref));
    CHECK_OK(ctx, muc_ref_run_tokens(ref, 0, tokens, LENGTH));
    logits = muc_ref_read(ref, "head", &rows, &columns);
    for (size_t r = 0; r + 1 < LENGTH; r++) {
        double parts = 0;

        for (size_t i = 0; i < columns; i++)
            parts += exp(logits[r * columns + i]);
        sum += log(parts) - logits[r * columns + (size_t)tokens[r + 1]];
    }
    muc_ref_close(ref);
    muc_graph_free(graph);
    return sum / (LENGTH - 1);
}

static inline double trained_loss(muc_context *ctx, const muc_checkpoint *checkpoint,
                                  const int32_t *tokens)
{
    static const size_t starts[] = { 0, LENGTH };
    const muc_train_corpus corpus = { 1, starts, (const uint32_t *)tokens, NULL };
    muc_train_shape shape;
    muc_scalar *weights;
    muc_train_pass pass;
    uint64_t counted;
    double loss;

    CHECK_OK(ctx, muc_train_shape_make(ctx, &checkpoint->config, NULL, NULL, NULL, &shape));
    CHECK_OK(ctx, muc_train_pass_make(ctx, &shape, LENGTH, &pass));
    weights = malloc(shape.elements * sizeof(*weights));
    CHECK(weights);
    CHECK_OK(ctx, muc_train_import(ctx, &shape, checkpoint, weights));
    CHECK_OK(ctx, muc_train_measure(&pass, &corpus, LENGTH, weights, &loss, &counted));
    CHECK_EQ(counted, LENGTH - 1);
    free(weights);
    muc_train_pass_free(&pass);
    muc_train_shape_free(&shape);
    return loss / (double)counted;
}

typedef enum kind { LLAMA, QWEN, GPT2 } kind;

static inline void make_model(muc_context *ctx, const random_shape *shape, kind k,
                              muc_checkpoint *out)
{
    if (k == GPT2)
        random_gpt2(ctx, shape, out);
    else
        random_relative(ctx, shape, k == QWEN, out);
}

static inline void check_loss(muc_context *ctx, kind k)
{
    int32_t tokens[LENGTH];
    muc_checkpoint checkpoint;
    double expected, found;

    for (size_t i = 0; i < LENGTH; i++)
        tokens[i] = (int32_t)(random_u32() % small.vocabulary);
    make_model(ctx, &small, k, &checkpoint);
    expected = reference_loss(ctx, &checkpoint, false, tokens);
    found = trained_loss(ctx, &checkpoint, tokens);
    print_message("reference %.7f, trainer %.7f\n", expected, found);
    CHECK(fabs(found - expected) < 2e-6 * expected);
    muc_checkpoint_close(&checkpoint);
}

#endif
