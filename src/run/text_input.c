/* text_input.c - makes tokens from texts for a network's inputs, and text from its results. */
#include "run/text_input.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "run/network_run.h"
#include "formats/format.h"
#include "report/report_builder.h"
#include "text/tokenizer.h"

/* A text that is to be inputs: samples of `length` tokens each, or one of fewer. */
typedef struct token_run {
    const uint32_t *tokens;
    size_t count;
    uint32_t samples, length;
    const muc_tensor *ids; /* the input that takes them */
} token_run;

/* ---- which inputs ---- */

static const muc_expr_node *last_dim(const muc_graph *graph, const muc_tensor *t)
{
    return muc_expr_get(graph->pool, t->dims[t->rank - 1]);
}

/* one row, or a batch that may be of one */
static bool is_row(const muc_graph *graph, const muc_tensor *t)
{
    return t->kind == MUC_TENSOR_INPUT &&
           (t->rank == 1 || (t->rank == 2 && muc_expr_get(graph->pool, t->dims[0])->lo <= 1));
}

static const muc_tensor *find_ids(const muc_graph *graph)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        const muc_tensor *t = &graph->tensors[i];

        if (is_row(graph, t) && (t->dtype == MUC_I32 || t->dtype == MUC_I64))
            return t;
    }
    return NULL;
}

/* what an input beside the tokens has at position i of a sample; false: it is none that is known */
static bool number_beside(const char *name, bool is_token, uint32_t i, uint32_t *out)
{
    if (strstr(name, "mask"))
        *out = is_token;
    else if (strstr(name, "type") || strstr(name, "segment"))
        *out = 0;
    else if (strstr(name, "position"))
        *out = i;
    else
        return false;
    return true;
}

/* ---- arrays ---- */

static void store(muc_dtype dtype, uint8_t *data, size_t i, uint32_t number)
{
    int64_t wide = number;
    float real = (float)number;

    switch ((int)dtype) {
    case MUC_I64:
        memcpy(data + i * sizeof(wide), &wide, sizeof(wide));
        break;
    case MUC_I32:
        memcpy(data + i * sizeof(number), &number, sizeof(number));
        break;
    case MUC_F32:
        memcpy(data + i * sizeof(real), &real, sizeof(real));
        break;
    default:
        data[i] = (uint8_t)number;
    }
}

static muc_status no_text(muc_context *ctx, const muc_graph *graph, const char *input)
{
    return muc_fail(ctx, MUC_USAGE, graph->name, MUC_NO_OFFSET,
                    "input '%s' is not a mask, type or position of tokens: give arrays (--input)",
                    input);
}

static muc_status fill(muc_context *ctx, muc_arena *arena, const muc_graph *graph,
                       const token_run *run, const muc_tensor *t, muc_tensor_view *out)
{
    size_t elements = (size_t)run->samples * run->length;
    bool known = t->dtype == MUC_I64 || t->dtype == MUC_I32 || t->dtype == MUC_F32 ||
                 t->dtype == MUC_BOOL || t->dtype == MUC_U8;
    uint8_t *data;

    if (!known || !is_row(graph, t) || t->dims[t->rank - 1] != run->ids->dims[run->ids->rank - 1])
        return no_text(ctx, graph, t->name);
    MUC_TRY(
        muc_arena_new(ctx, arena, elements, muc_dtype_get(t->dtype)->block_bytes, (void **)&data));
    for (size_t i = 0; i < elements; i++) {
        uint32_t number = i < run->count ? run->tokens[i] : 0;

        if (t != run->ids &&
            !number_beside(t->name, i < run->count, (uint32_t)(i % run->length), &number))
            return no_text(ctx, graph, t->name);
        store(t->dtype, data, i, number);
    }
    *out = (muc_tensor_view){
        .name = t->name, .dtype = t->dtype, .rank = t->rank, .data = data, .file = graph->name
    };
    out->dims[0] = run->samples;
    out->dims[t->rank - 1] = t->rank == 1 ? elements : run->length;
    return muc_tensor_measure(ctx, out);
}

/* how long a sample is, and how many there are */
static muc_status divide(muc_context *ctx, const muc_graph *graph, bool windows, token_run *run)
{
    const muc_expr_node *length = last_dim(graph, run->ids);

    if (run->count == 0)
        return muc_fail(ctx, MUC_USAGE, graph->name, MUC_NO_OFFSET, "the text has no tokens");
    run->samples = 1;
    if (run->count <= length->hi) {
        run->length = run->count < length->lo ? length->lo : (uint32_t)run->count;
        return MUC_OK;
    }
    if (!windows)
        return muc_fail(ctx, MUC_USAGE, graph->name, MUC_NO_OFFSET,
                        "the text has %zu tokens, input '%s' takes %" PRIu32 " at most", run->count,
                        run->ids->name, length->hi);
    run->length = length->hi;
    run->samples = length->lo == length->hi ? (uint32_t)(run->count / length->hi) : 1;
    run->count = (size_t)run->samples * run->length;
    return MUC_OK;
}

static muc_status make_arrays(muc_context *ctx, muc_arena *arena, const muc_graph *graph,
                              bool windows, token_run *run, muc_tensor_view **out, size_t *count)
{
    size_t inputs = 0;

    run->ids = find_ids(graph);
    if (!run->ids)
        return muc_fail(ctx, MUC_USAGE, graph->name, MUC_NO_OFFSET,
                        "no input takes tokens: expected integers, [length] or [1, length]");
    MUC_TRY(divide(ctx, graph, windows, run));
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        inputs += graph->tensors[i].kind == MUC_TENSOR_INPUT;
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, inputs, out));
    *count = 0;
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].kind == MUC_TENSOR_INPUT)
            MUC_TRY(fill(ctx, arena, graph, run, &graph->tensors[i], &(*out)[(*count)++]));
    return MUC_OK;
}

muc_status muc_text_arrays(muc_context *ctx, muc_arena *arena, const muc_graph *graph,
                           const mur_tokenizer *tokenizer, muc_bytes text, bool windows,
                           uint32_t flags, muc_tensor_view **out, size_t *count,
                           uint32_t *token_count)
{
    token_run run = { 0 };
    uint32_t *tokens;
    muc_status status;

    MUC_TRY(muc_tokenizer_encode(ctx, tokenizer, (const char *)text.data, text.size,
                                 MUR_ENCODE_BOS | MUR_ENCODE_EOS | flags, &tokens, &run.count));
    run.tokens = tokens;
    status = make_arrays(ctx, arena, graph, windows, &run, out, count);
    *token_count = (uint32_t)run.count;
    free(tokens);
    return status;
}

/* ---- what comes next ---- */

void muc_text_add_next(const mur_tokenizer *tokenizer, uint32_t token_count,
                       const muc_tensor_view *result, muc_report *report)
{
    uint64_t columns = result->rank ? result->dims[result->rank - 1] : 1, first;
    uint64_t top[MUC_ARRAY_TOP];
    size_t count;

    if (columns < tokenizer->header->pieces || result->elements < columns)
        return;
    first = result->elements - columns;
    if (first > (token_count - 1) * columns)
        first = (token_count - 1) * columns;
    count = muc_array_top(result, first, columns, top);
    muc_report_begin_table(report, "next");
    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes;
        size_t size = mur_tokenizer_decode(tokenizer, (uint32_t)top[i], 0, &bytes);

        muc_report_begin_row(report);
        muc_report_add_count(report, "token", top[i]);
        muc_report_add_text(report, "text", "%.*s", (int)size, (const char *)bytes);
        muc_report_add_real(report, "score", muc_array_element(result, first + top[i]));
        muc_report_end(report);
    }
    muc_report_end(report);
}
