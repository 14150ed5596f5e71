/* bdt_model.c - writes a quantized graph to a .bdt file, and reads it back. */
#include "run/bdt_model.h"

#include <string.h>

#include "base/text.h"
#include "passes/weights/quantize_blocks.h"

#define TOKENS "tokens"
#define TOKENIZER "tokenizer"
#define TEMPLATE "prompt-template"

/* ---- writing ---- */

static muc_status add_bytes(muc_bdt_writer *writer, const char *name, const void *data, size_t size)
{
    const muc_bdt_entry entry = { .name = name, .data = data, .bytes = size };

    return muc_bdt_add(writer, &entry);
}

/* n and k of a constant: a vector is one column; its dimensions are constants */
static void shape_of(const muc_graph *graph, const muc_tensor *tensor, uint32_t *n, uint32_t *k)
{
    *n = tensor->rank == 2 ? muc_expr_get(graph->pool, tensor->dims[0])->lo : 1;
    *k = muc_expr_get(graph->pool, tensor->dims[tensor->rank - 1])->lo;
}

muc_status muc_blocks_add_constant(muc_bdt_writer *writer, const muc_graph *graph,
                                   const muc_tensor *tensor)
{
    muc_bdt_entry entry = {
        .name = tensor->name,
        .encoding = tensor->sequence ? MUC_BDT_BD : MUC_BDT_F32,
        .data = tensor->sequence ? tensor->sequence : tensor->data,
        .bytes = tensor->sequence ? tensor->sequence_bytes : tensor->bytes,
    };

    shape_of(graph, tensor, &entry.n, &entry.k);
    return muc_bdt_add(writer, &entry);
}

static muc_status add_all(const muc_model *model, const muc_graph *graph, const muc_text *text,
                          const char *part, muc_bdt_writer *writer)
{
    MUC_TRY(add_bytes(writer, MUC_BLOCKS_GRAPH, text->data, text->size));
    MUC_TRY(add_bytes(writer, TOKENS, &model->tokens, sizeof(model->tokens)));
    if (model->tokenizer_bytes)
        MUC_TRY(add_bytes(writer, TOKENIZER, model->tokenizer_form, model->tokenizer_bytes));
    if (model->prompt_template)
        MUC_TRY(
            add_bytes(writer, TEMPLATE, model->prompt_template, strlen(model->prompt_template)));
    if (part)
        MUC_TRY(add_bytes(writer, MUC_BLOCKS_PART, part, strlen(part)));
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        const muc_tensor *tensor = &graph->tensors[i];

        if (tensor->kind == MUC_TENSOR_CONST &&
            (tensor->sequence || !part || !muc_becomes_blocks(graph, i)))
            MUC_TRY(muc_blocks_add_constant(writer, graph, tensor));
    }
    return MUC_OK;
}

muc_status muc_blocks_write(muc_context *ctx, const muc_model *model, const muc_graph *graph,
                            const char *part, const char *path)
{
    muc_bdt_writer *writer;
    muc_text text = { 0 };
    muc_status status;

    MUC_TRY(muc_bdt_begin(ctx, path, &writer));
    muc_graph_print(graph, &text);
    status = muc_text_status(ctx, &text);
    if (status == MUC_OK)
        status = add_all(model, graph, &text, part, writer);
    muc_text_free(&text);
    if (status == MUC_OK)
        return muc_bdt_commit(writer);
    muc_bdt_discard(writer);
    return status;
}

/* ---- reading ---- */

static muc_status need_entry(muc_context *ctx, const muc_model *model, const char *name,
                             muc_bdt_encoding encoding, const muc_bdt_entry **out)
{
    const muc_bdt_entry *entry = muc_bdt_find(&model->blocks, name);

    if (!entry)
        return muc_fail(ctx, MUC_MALFORMED, model->path, MUC_NO_OFFSET, "there is no entry '%s'",
                        name);
    if (entry->encoding != encoding)
        return muc_fail(ctx, MUC_MALFORMED, model->path, MUC_NO_OFFSET,
                        "entry '%s' has encoding %u, expected %u", name, entry->encoding, encoding);
    *out = entry;
    return MUC_OK;
}

muc_status muc_blocks_open(muc_context *ctx, muc_model *model)
{
    const muc_bdt_entry *tokens, *tokenizer, *template;

    MUC_TRY(muc_bdt_read(ctx, model->file.bytes, &model->blocks));
    if (muc_bdt_find(&model->blocks, MUC_BLOCKS_PART))
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "is a part of a model: muc merge PART... -o FILE puts parts together");
    MUC_TRY(need_entry(ctx, model, TOKENS, MUC_BDT_BYTES, &tokens));
    if (tokens->bytes != sizeof(model->tokens))
        return muc_fail(ctx, MUC_MALFORMED, model->path, MUC_NO_OFFSET,
                        "entry '" TOKENS "' has %llu bytes, expected %zu",
                        (unsigned long long)tokens->bytes, sizeof(model->tokens));
    memcpy(&model->tokens, tokens->data, sizeof(model->tokens));
    tokenizer = muc_bdt_find(&model->blocks, TOKENIZER);
    if (tokenizer) {
        model->tokenizer_form = tokenizer->data;
        model->tokenizer_bytes = tokenizer->bytes;
    }
    template = muc_bdt_find(&model->blocks, TEMPLATE);
    if (template)
        return muc_model_set_template(ctx, model, model->path, (const char *)template->data,
                                      template->bytes);
    return MUC_OK;
}

static muc_status attach(muc_context *ctx, const muc_model *model, const muc_graph *graph,
                         muc_tensor *tensor)
{
    const muc_bdt_entry *entry;
    uint64_t expected = tensor->sequence_bytes ? tensor->sequence_bytes : tensor->bytes;
    uint32_t n, k;

    MUC_TRY(need_entry(ctx, model, tensor->name, tensor->sequence_bytes ? MUC_BDT_BD : MUC_BDT_F32,
                       &entry));
    shape_of(graph, tensor, &n, &k);
    if (entry->n != n || entry->k != k || entry->bytes != expected)
        return muc_fail(ctx, MUC_MALFORMED, model->path, MUC_NO_OFFSET,
                        "entry '%s' is %u by %u in %llu bytes, the graph says %u by %u in %llu",
                        entry->name, entry->n, entry->k, (unsigned long long)entry->bytes, n, k,
                        (unsigned long long)expected);
    if (tensor->sequence_bytes)
        tensor->sequence = entry->data;
    else
        tensor->data = entry->data;
    tensor->sequence_rests = tensor->sequence != NULL;
    return MUC_OK;
}

muc_status muc_blocks_graph(muc_context *ctx, const muc_model *model, muc_graph **out)
{
    const muc_bdt_entry *text;
    muc_graph *graph;
    muc_status status = MUC_OK;

    MUC_TRY(need_entry(ctx, model, MUC_BLOCKS_GRAPH, MUC_BDT_BYTES, &text));
    MUC_TRY(muc_graph_parse(ctx, (muc_bytes){ text->data, text->bytes, model->path }, &graph));
    for (uint32_t i = 0; i < graph->tensor_count && status == MUC_OK; i++) {
        muc_tensor *tensor = &graph->tensors[i];

        if (tensor->kind == MUC_TENSOR_CONST)
            status = attach(ctx, model, graph, tensor);
    }
    if (status != MUC_OK)
        muc_graph_free(graph);
    else
        *out = graph;
    return status;
}

muc_status muc_blocks_vocabulary(muc_context *ctx, const muc_model *model, uint32_t *out)
{
    const muc_tensor *logits;
    muc_graph *graph;

    MUC_TRY(muc_blocks_graph(ctx, model, &graph));
    logits = graph->output_count ? &graph->tensors[graph->outputs[0]] : NULL;
    *out =
        logits && logits->rank ? muc_expr_get(graph->pool, logits->dims[logits->rank - 1])->lo : 0;
    muc_graph_free(graph);
    return MUC_OK;
}
