/* quantize.c - quantizes a checkpoint to a .bdt file: muc quantize. */
#include "base/locale.h"
#include "base/real.h"
#include "base/text.h"
#include "run/bdt_model.h"
#include "run/model_graph.h"
#include "report/report_builder.h"

static muc_status report_blocks(muc_context *ctx, const char *path,
                                const muc_quantize_result *result, muc_report **out)
{
    static const char *const kinds[] = {
#define KIND_NAME(name, number) #name,
        MUC_BD_KINDS(KIND_NAME)
#undef KIND_NAME
    };
    double ln10 = muc_log(10);
    muc_report *report;

    MUC_TRY(muc_report_new(ctx, out));
    report = *out;
    muc_report_add_text(report, "file", "%s", path);
    muc_report_add_count(report, "weights", result->weights);
    muc_report_add_count(report, "bytes", result->bytes);
    muc_report_add_bits_per_weight(report, result->bytes, result->weights);
    if (result->error > 0)
        muc_report_add_real(report, "snr_db", 10 * muc_log(result->energy / result->error) / ln10);
    muc_report_add_count(report, "shared_headers", result->shared);
    muc_report_begin_table(report, "blocks");
    for (unsigned kind = 0; kind < MUC_BD_KIND_COUNT; kind++) {
        muc_report_begin_row(report);
        muc_report_add_text(report, "kind", "%s", kinds[kind]);
        muc_report_add_count(report, "count", result->blocks[kind]);
        muc_report_end(report);
    }
    muc_report_end(report);
    return muc_report_status(ctx, report);
}

/* what a part says of itself, with what must be the same in all of them */
static muc_status write_blocks(muc_context *ctx, const muc_model *model, const muc_graph *graph,
                               const muc_weight_options *options, const muc_bd_rule *rule,
                               const char *path)
{
    muc_text part = { 0 };
    muc_status status;

    if (options->shards)
        muc_text_add(&part, "%u/%u kinds %u price %u", options->shard, options->shards, rule->kinds,
                     rule->price);
    status = muc_text_status(ctx, &part);
    if (status == MUC_OK)
        status = muc_blocks_write(ctx, model, graph, part.data, path);
    muc_text_free(&part);
    return status;
}

muc_status muc_quantize(muc_context *ctx, const muc_model *model, const muc_weight_options *options,
                        const char *out_path, muc_report **out)
{
    MUC_IN_C_LOCALE;
    muc_quantize_result result;
    muc_graph *graph;
    muc_status status;

    if (model->kind == MUC_MODEL_NETWORK)
        return muc_fail(ctx, MUC_UNSUPPORTED, model->path, MUC_NO_OFFSET,
                        ".bdt files hold language models, not networks");
    if (model->kind != MUC_MODEL_CHECKPOINT)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "it is not a checkpoint: its weights are blocks already");
    MUC_TRY(muc_output_precheck(ctx, out_path));
    MUC_TRY(muc_model_graph(ctx, model, &graph));
    status = muc_graph_quantize(ctx, model, options, graph, &result);
    if (status == MUC_OK)
        status = write_blocks(ctx, model, graph, options, &result.rule, out_path);
    if (status == MUC_OK)
        status = report_blocks(ctx, out_path, &result, out);
    muc_graph_free(graph);
    return status;
}
