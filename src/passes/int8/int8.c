/* int8.c - makes a float32 network an int8 one: plans, chooses scales, builds the new graph. */
#include "passes/int8/int8.h"

#include "passes/int8/int8_pass.h"

static muc_status allocate(pass *p)
{
    size_t tensors = p->r.old.tensor_count, nodes = p->r.old.node_count;
    muc_context *ctx = p->r.ctx;

    MUC_TRY(MUC_ARENA_NEW(ctx, &p->arena, nodes, &p->forms));
    MUC_TRY(MUC_ARENA_NEW(ctx, &p->arena, nodes, &p->merged));
    MUC_TRY(MUC_ARENA_NEW(ctx, &p->arena, nodes, &p->kept));
    MUC_TRY(MUC_ARENA_NEW(ctx, &p->arena, tensors, &p->available));
    MUC_TRY(MUC_ARENA_NEW(ctx, &p->arena, tensors, &p->last));
    MUC_TRY(MUC_ARENA_NEW(ctx, &p->arena, tensors, &p->functions));
    MUC_TRY(MUC_ARENA_NEW(ctx, &p->arena, tensors, &p->parents));
    MUC_TRY(MUC_ARENA_NEW(ctx, &p->arena, tensors, &p->sources));
    MUC_TRY(MUC_ARENA_NEW(ctx, &p->arena, tensors, &p->scales));
    MUC_TRY(MUC_ARENA_NEW(ctx, &p->arena, tensors, &p->zeros));
    MUC_TRY(MUC_ARENA_NEW(ctx, &p->arena, tensors, &p->made));
    for (size_t i = 0; i < tensors; i++)
        p->made[i] = MUC_NO_ID;
    return MUC_OK;
}

muc_status muc_int8_quantize(muc_context *ctx, muc_graph *graph, const muc_ranges *ranges,
                             const char *keep, muc_int8_result *out)
{
    pass p = { .ranges = ranges, .result = out };
    muc_status status;

    *out = (muc_int8_result){ 0 };
    if (ranges->runs == 0)
        return muc_fail(ctx, MUC_USAGE, graph->name, MUC_NO_OFFSET, "nothing calibrates it");
    status = muc_rewrite_begin(ctx, graph, &p.r);
    if (status == MUC_OK)
        status = allocate(&p);
    if (status == MUC_OK)
        status = muc_int8_keep(&p, keep);
    if (status == MUC_OK)
        status = muc_int8_plan(&p);
    if (status == MUC_OK)
        status = muc_int8_scales(&p);
    if (status == MUC_OK)
        status = muc_int8_emit(&p);
    muc_rewrite_free(&p.r);
    muc_arena_free(&p.arena);
    if (status == MUC_OK && out->integer_nodes == 0)
        return muc_fail(ctx, MUC_UNSUPPORTED, graph->name, MUC_NO_OFFSET,
                        "no node of this network has an int8 form");
    return status;
}
