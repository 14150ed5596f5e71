/* The logits of a model after each token, for tests that compare them with another program's.
 *
 *     logits_of MODEL TOKEN...    writes [tokens][vocabulary] f32 */
#include <stdio.h>
#include <stdlib.h>

#include "run/engine.h"

static muc_status write_logits(muc_context *ctx, const char *path, char **tokens, uint32_t count)
{
    muc_engine *engine = NULL;
    muc_model *model;
    muc_status status;

    MUC_TRY(muc_model_open(ctx, path, NULL, &model));
    status = muc_engine_new(ctx, model, &engine);
    for (uint32_t i = 0; i < count && status == MUC_OK; i++) {
        uint32_t token = (uint32_t)atoi(tokens[i]);
        const float *logits;

        status = muc_engine_feed(engine, &token, 1, true, &logits);
        if (status == MUC_OK)
            fwrite(logits, sizeof(*logits), engine->facts.vocabulary, stdout);
    }
    muc_engine_free(engine);
    muc_model_close(model);
    return status;
}

int main(int argc, char **argv)
{
    muc_context *ctx = muc_context_new(1);
    muc_status status = write_logits(ctx, argv[1], argv + 2, (uint32_t)argc - 2);

    if (status != MUC_OK)
        fprintf(stderr, "%s\n", muc_error_message(ctx));
    muc_context_free(ctx);
    return (int)status;
}
