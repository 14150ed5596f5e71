/* exports.c - opens exports of several lengths and makes one graph of them. */
#include "driver/open/exports.h"

#include <stdlib.h>
#include <string.h>

typedef struct opened {
    muc_network networks[MUC_UNIFY_MAX_EXPORTS]; /* the first is the model's own */
    muc_graph *graphs[MUC_UNIFY_MAX_EXPORTS];
    const char *paths[MUC_UNIFY_MAX_EXPORTS];
    uint32_t count;
} opened;

static muc_status open_all(muc_context *ctx, const muc_network_options *how,
                           const muc_model_options *options, opened *o)
{
    for (size_t i = 0; i < options->export_count; i++) {
        muc_network *network = &o->networks[o->count];

        MUC_TRY(muc_network_open(ctx, options->exports[i], how, network));
        o->graphs[o->count] = network->graph;
        o->paths[o->count++] = options->exports[i];
    }
    return MUC_OK;
}

static muc_status keep_paths(muc_context *ctx, muc_model *model, const opened *o)
{
    MUC_TRY(MUC_ARENA_NEW(ctx, &model->arena, o->count, &model->exports));
    for (uint32_t i = 0; i < o->count; i++)
        MUC_TRY(muc_arena_string(ctx, &model->arena, o->paths[i], strlen(o->paths[i]),
                                 &model->exports[i]));
    return MUC_OK;
}

muc_status muc_model_unify(muc_context *ctx, muc_model *model, const muc_network_options *how,
                           const muc_model_options *options)
{
    const muc_unify_options room = { .context = options->context };
    muc_status status;
    opened *o;

    if (options->export_count >= MUC_UNIFY_MAX_EXPORTS)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET, "%zu exports, at most %d",
                        options->export_count + 1, MUC_UNIFY_MAX_EXPORTS);
    MUC_TRY(MUC_NEW_ARRAY(ctx, model->path, 1, &o));
    o->graphs[0] = model->network.graph;
    o->paths[0] = model->path;
    o->count = 1;
    status = open_all(ctx, how, options, o);
    if (status == MUC_OK)
        status = muc_unify(ctx, o->graphs, o->paths, o->count, &room, &model->unified);
    for (uint32_t i = 1; i < o->count; i++)
        muc_network_close(&o->networks[i]);
    if (status == MUC_OK)
        status = keep_paths(ctx, model, o);
    if (status == MUC_OK) { /* constants are the first export's, which stays */
        model->network.graph = model->unified.graph;
        model->unified.graph = o->graphs[0];
    }
    free(o);
    return status;
}
