/* calibration.c - gets token sequences for error feedback, written by the model or read from a
 * file. */
#include "run/calibration.h"

#include <stdlib.h>
#include <string.h>

#include "run/text_passages.h"
#include "text/tokenizer.h"

typedef struct gathering {
    muc_context *ctx;
    muc_arena *arena;
    uint32_t begin, most; /* the first token of a piece, or UINT32_MAX; tokens of a piece */
    uint32_t *lengths;
    int32_t *tokens;
    size_t pieces, total, piece_capacity, token_capacity;
} gathering;

/* one piece: the begin token, then up to most - 1 of ids */
static muc_status add_piece(gathering *g, const uint32_t *ids, size_t count)
{
    size_t before = g->begin != UINT32_MAX;

    MUC_TRY(MUC_ARENA_GROW(g->ctx, g->arena, g->pieces + 1, &g->piece_capacity, &g->lengths));
    MUC_TRY(MUC_ARENA_GROW(g->ctx, g->arena, g->total + count + before, &g->token_capacity,
                           &g->tokens));
    if (before)
        g->tokens[g->total++] = (int32_t)g->begin;
    for (size_t i = 0; i < count; i++)
        g->tokens[g->total++] = (int32_t)ids[i];
    g->lengths[g->pieces++] = (uint32_t)(count + before);
    return MUC_OK;
}

static muc_status add_document(gathering *g, const muc_model *model, const muc_passage *document)
{
    size_t count, room = g->most - (g->begin != UINT32_MAX);
    muc_status status = MUC_OK;
    uint32_t *ids;

    MUC_TRY(muc_tokenizer_encode(g->ctx, &model->tokenizer, document->text, document->size, 0, &ids,
                                 &count));
    for (size_t at = 0; status == MUC_OK && at < count && g->total < MUC_CALIBRATION_FILE_TOKENS;
         at += room)
        status = add_piece(g, ids + at, count - at < room ? count - at : room);
    free(ids);
    return status;
}

static muc_status read_texts(muc_context *ctx, const muc_model *model, muc_bytes bytes,
                             muc_arena *arena, muc_calibration *out)
{
    gathering g = { .ctx = ctx, .arena = arena, .begin = model->tokens.begin };
    muc_passage *documents;
    size_t count;

    g.most = model->context < MUC_CALIBRATION_LENGTH ? model->context : MUC_CALIBRATION_LENGTH;
    if (g.most < 2)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "a context of %u is too short to calibrate on texts", model->context);
    MUC_TRY(muc_split_passages(ctx, bytes, MUC_DOCUMENT_MARK, 0, arena, &documents, &count));
    for (size_t i = 0; i < count && g.total < MUC_CALIBRATION_FILE_TOKENS; i++)
        MUC_TRY(add_document(&g, model, &documents[i]));
    *out = (muc_calibration){ (uint32_t)g.pieces, g.lengths, g.tokens };
    return MUC_OK;
}

muc_status muc_calibration_write(muc_context *ctx, const muc_model *model, muc_graph *graph,
                                 uint32_t tokens, uint32_t longest, muc_arena *arena,
                                 muc_calibration *out)
{
    int32_t ends[MUC_MODEL_MAX_ENDS];
    muc_calibration_marks marks = {
        .first = (int32_t)model->tokens.begin, .ends = ends, .tokens = tokens, .longest = longest
    };

    if (model->tokens.begin == UINT32_MAX)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "no token begins its texts, so it cannot write its own: --calib and --data "
                        "take text files");
    for (unsigned i = 0; i < MUC_MODEL_MAX_ENDS; i++)
        if (model->tokens.ends[i] != UINT32_MAX)
            ends[marks.end_count++] = (int32_t)model->tokens.ends[i];
    return muc_calibration_generate(ctx, graph, &marks, arena, out);
}

muc_status muc_calibration_open(muc_context *ctx, const muc_model *model, muc_graph *graph,
                                const char *source, muc_arena *arena, muc_calibration *out)
{
    muc_status status;
    muc_file file;

    if (strcmp(source, "auto") == 0)
        return muc_calibration_write(ctx, model, graph, 0, 0, arena, out);
    MUC_TRY(muc_model_need_tokenizer(ctx, model));
    MUC_TRY(muc_file_open(ctx, source, &file));
    status = read_texts(ctx, model, file.bytes, arena, out);
    muc_file_close(&file);
    return status;
}
