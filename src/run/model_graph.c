/* model_graph.c - builds a checkpoint's graph with its weights as blocks, for a program or for a
 * .bdt file. */
#include "run/model_graph.h"

#include "base/choice.h"
#include "base/large.h"
#include "models/llama.h"
#include "run/calibration.h"

/* matrices of a compressed checkpoint become float32 */
static muc_status widen_matrices(muc_context *ctx, muc_graph *graph)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        muc_tensor *tensor = &graph->tensors[i];
        const muc_quantization *q = tensor->quantization;
        const int8_t *levels = (const int8_t *)tensor->data;
        float *values;

        if (tensor->kind != MUC_TENSOR_CONST || tensor->dtype != MUC_I8 || !q)
            continue;
        MUC_TRY(MUC_ARENA_NEW(ctx, &graph->arena, tensor->bytes, &values));
        for (uint64_t e = 0; e < tensor->bytes; e++)
            values[e] =
                (float)levels[e] * q->scales[q->count > 1 ? e / (tensor->bytes / q->count) : 0];
        tensor->dtype = MUC_F32;
        tensor->data = (const uint8_t *)values;
        tensor->bytes *= sizeof(*values);
        tensor->quantization = NULL;
    }
    return muc_graph_verify(ctx, graph);
}

/* what becomes blocks is for uthinker, whose schedule has one way for each of these */
static muc_status check_kind(muc_context *ctx, const muc_model *model)
{
    const muc_model_config *config = &model->checkpoint.config;
    const char *what = config->norm != MUC_NORM_RMS            ? "LayerNorm, not RMSNorm"
                       : config->position != MUC_POSITION_ROPE ? "learned positions, not RoPE"
                       : config->ffn != MUC_FFN_GATED          ? "an FFN without gates"
                                                               : NULL;

    if (!what)
        return MUC_OK;
    return muc_fail(ctx, MUC_UNSUPPORTED, model->path, MUC_NO_OFFSET,
                    "a %s has %s: no stage of uthinker's schedule computes it; target mcu does",
                    config->architecture, what);
}

muc_status muc_model_shapes(muc_context *ctx, const muc_model *model, muc_graph **out)
{
    const muc_llama_options options = { .context = model->context, .level = true, .shapes = true };

    MUC_TRY(check_kind(ctx, model));
    return muc_llama_build(ctx, &model->checkpoint, &options, out);
}

muc_status muc_model_graph(muc_context *ctx, const muc_model *model, muc_graph **out)
{
    const muc_llama_options options = { .context = model->context, .level = true };

    muc_status status;

    MUC_TRY(check_kind(ctx, model));
    MUC_TRY(muc_llama_build(ctx, &model->checkpoint, &options, out));
    status = widen_matrices(ctx, *out);
    if (status != MUC_OK) {
        muc_graph_free(*out);
        *out = NULL;
    }
    return status;
}

/* gains of any float type become float32 */
static muc_status widen(muc_context *ctx, muc_graph *graph, muc_tensor *tensor)
{
    uint64_t count = tensor->bytes / muc_dtype_get(tensor->dtype)->block_bytes *
                     muc_dtype_get(tensor->dtype)->block_elements;
    float *values;

    if (tensor->dtype == MUC_F32)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(ctx, &graph->arena, count, &values));
    if (!muc_dtype_to_f32(tensor->dtype, tensor->data, 0, count, values))
        return muc_fail(ctx, MUC_UNSUPPORTED, graph->name, MUC_NO_OFFSET,
                        "constant '%s' is %s, which is not a float", tensor->name,
                        muc_dtype_get(tensor->dtype)->name);
    tensor->dtype = MUC_F32;
    tensor->data = (const uint8_t *)values;
    tensor->bytes = count * sizeof(*values);
    return MUC_OK;
}

static muc_status check_codec(muc_context *ctx, const char *codec)
{
    static const char *const codecs[] = { "bd4" };
    unsigned found;

    return codec ? muc_choose(ctx, "--quant", codec, codecs, MUC_COUNT(codecs), &found) : MUC_OK;
}

static muc_status quantize_weights(muc_context *ctx, const muc_model *model,
                                   const muc_weight_options *options, muc_graph *graph,
                                   muc_quantize_result *out)
{
    muc_quantize_options pass = { .bits_per_weight = options->bits,
                                  .shard = options->shard,
                                  .shards = options->shards };
    muc_calibration texts;
    muc_arena arena = { 0 };
    muc_status status = MUC_OK;

    if (options->calibration && options->shards)
        return muc_fail(ctx, MUC_USAGE, "--calib", MUC_NO_OFFSET,
                        "error feedback needs the layers before: there are no parts with it");
    if (options->calibration) {
        pass.calibration = &texts;
        status = muc_calibration_open(ctx, model, graph, options->calibration, &arena, &texts);
    }
    if (status == MUC_OK)
        status = muc_quantize_weights(ctx, graph, &pass, out);
    muc_arena_free(&arena);
    return status;
}

muc_status muc_graph_quantize(muc_context *ctx, const muc_model *model,
                              const muc_weight_options *options, muc_graph *graph,
                              muc_quantize_result *out)
{
    MUC_TRY(check_codec(ctx, options->codec));
    MUC_TRY(quantize_weights(ctx, model, options, graph, out));
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        muc_tensor *tensor = &graph->tensors[i];

        if (tensor->kind == MUC_TENSOR_CONST && !tensor->sequence &&
            !(options->shards && muc_becomes_blocks(graph, i))) /* another part's */
            MUC_TRY(widen(ctx, graph, tensor));
    }
    return MUC_OK;
}

void muc_graph_rest(const muc_graph *graph)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].sequence_rests)
            muc_large_rest(graph->tensors[i].sequence, (size_t)graph->tensors[i].sequence_bytes);
}

double muc_graph_bits_per_weight(const muc_graph *graph)
{
    double bytes = 0, weights = 0;

    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        const muc_tensor *tensor = &graph->tensors[i];
        double elements = 1;

        if (!tensor->sequence)
            continue;
        for (uint32_t d = 0; d < tensor->rank; d++)
            elements *= muc_expr_get(graph->pool, tensor->dims[d])->lo;
        weights += elements;
        bytes += (double)tensor->sequence_bytes;
    }
    return weights > 0 ? 8 * bytes / weights : 0;
}
