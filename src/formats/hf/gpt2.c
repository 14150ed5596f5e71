/* gpt2.c - a GPT-2's tensors by the table of gpt2.def. */
#include "formats/hf/gpt2.h"

#include <stdio.h>
#include <string.h>

enum { PLAIN, TRANSPOSED, FUSED, NAME_BYTES = 128, BLOCK = 32 };

static const char prefix[] = "transformer.";

static const struct row {
    const char *name;
    unsigned id;
    int form;
} rows[] = {
#define MUC_GPT2_TENSOR(name, id, form) { name, MUC_LLAMA_##id, form },
#include "formats/hf/gpt2.def"
#undef MUC_GPT2_TENSOR
};

/* ---- reading ---- */

/* "h.LAYER.rest", LAYER decimal without leading zeros, as "h.%u.rest" */
static bool same_name(const char *name, const char *pattern, uint32_t *layer)
{
    const char *number = strstr(pattern, "%u");
    char expected[NAME_BYTES];

    *layer = 0;
    if (number) {
        size_t at = (size_t)(number - pattern);

        if (strncmp(name, pattern, at) != 0)
            return false;
        for (const char *digit = name + at; *digit >= '0' && *digit <= '9'; digit++)
            *layer = *layer < MUC_MAX_TENSORS ? *layer * 10 + (uint32_t)(*digit - '0') : *layer;
    }
    snprintf(expected, sizeof(expected), pattern, *layer);
    return strcmp(name, expected) == 0;
}

static const struct row *find_row(const char *name, uint32_t *layer)
{
    if (strncmp(name, prefix, sizeof(prefix) - 1) == 0)
        name += sizeof(prefix) - 1;
    for (size_t i = 0; i < MUC_COUNT(rows); i++)
        if (same_name(name, rows[i].name, layer))
            return &rows[i];
    return NULL;
}

/* what old checkpoints keep of causal attention */
static bool is_mask(const char *name)
{
    uint32_t layer;

    if (strncmp(name, prefix, sizeof(prefix) - 1) == 0)
        name += sizeof(prefix) - 1;
    return same_name(name, "h.%u.attn.bias", &layer) ||
           same_name(name, "h.%u.attn.masked_bias", &layer);
}

/* [a, b] to [b, a], in a copy */
static muc_status transpose(muc_context *ctx, muc_arena *arena, muc_tensor_view *view)
{
    const muc_dtype_info *type = muc_dtype_get(view->dtype);
    uint64_t a = view->dims[0], b = view->dims[1], size = type->block_bytes;
    uint8_t *copy;

    if (view->rank != 2 || type->block_elements != 1)
        return muc_fail(ctx, MUC_MALFORMED, view->file, view->offset,
                        "tensor '%s' of type %s has rank %u, expected a matrix [in, out]",
                        view->name, type->name, view->rank);
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, (size_t)view->bytes, &copy));
    for (uint64_t top = 0; top < a; top += BLOCK)
        for (uint64_t left = 0; left < b; left += BLOCK)
            for (uint64_t i = top; i < top + BLOCK && i < a; i++)
                for (uint64_t j = left; j < left + BLOCK && j < b; j++)
                    memcpy(copy + (j * a + i) * size, view->data + (i * b + j) * size,
                           (size_t)size);
    view->dims[0] = b;
    view->dims[1] = a;
    view->data = copy;
    return MUC_OK;
}

static muc_status add_one(muc_context *ctx, muc_checkpoint *checkpoint, const muc_tensor_view *from,
                          unsigned id, uint32_t layer)
{
    muc_tensor_view view = *from;

    MUC_TRY(muc_llama_tensor_name(ctx, &checkpoint->arena, id, layer, &view.name));
    return muc_checkpoint_add(ctx, checkpoint, &view);
}

static muc_status add(muc_context *ctx, muc_checkpoint *checkpoint, const muc_tensor_view *from)
{
    muc_tensor_view view = *from;
    const struct row *row;
    uint32_t layer;

    if (is_mask(from->name))
        return MUC_OK;
    row = find_row(from->name, &layer);
    if (!row)
        return muc_fail(ctx, MUC_UNSUPPORTED, from->file, from->offset,
                        "tensor '%s' has no place in a GPT-2", from->name);
    if (row->form == TRANSPOSED || (row->form == FUSED && row->id == MUC_LLAMA_Q))
        MUC_TRY(transpose(ctx, &checkpoint->arena, &view));
    if (row->form == FUSED)
        return muc_checkpoint_add_fused(ctx, checkpoint, &view, layer);
    return add_one(ctx, checkpoint, &view, row->id, layer);
}

muc_status muc_hf_gpt2_read(muc_context *ctx, muc_checkpoint *checkpoint)
{
    const muc_tensor_view *stored = checkpoint->tensors;
    size_t count = checkpoint->tensor_count;

    MUC_TRY(muc_checkpoint_check_config(ctx, checkpoint)); /* shapes follow from it */
    for (size_t i = 0; i < count; i++)
        if (strcmp(stored[i].name, muc_llama_tensor_of(&checkpoint->config, MUC_LLAMA_EMBED).hf) ==
            0)
            return MUC_OK;
    checkpoint->tensors = NULL;
    checkpoint->tensor_count = checkpoint->tensor_capacity = 0;
    for (size_t i = 0; i < count; i++)
        MUC_TRY(add(ctx, checkpoint, &stored[i]));
    return MUC_OK;
}

/* ---- writing ---- */

typedef struct store {
    muc_context *ctx;
    const muc_model_config *config;
    const muc_tensor_view *views;
    size_t count;
    muc_arena *arena;
    muc_tensor_view *out;
    size_t out_count;
} store;

static muc_status find_view(const store *s, unsigned id, uint32_t layer,
                            const muc_tensor_view **out)
{
    const char *name;

    MUC_TRY(muc_llama_tensor_name(s->ctx, s->arena, id, layer, &name));
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->views[i].name, name) == 0) {
            *out = &s->views[i];
            return MUC_OK;
        }
    return muc_fail(s->ctx, MUC_BUG, "GPT-2", MUC_NO_OFFSET, "no tensor '%s'", name);
}

static muc_status fuse(const store *s, const struct row *row, uint32_t layer, muc_tensor_view *out)
{
    const muc_tensor_view *parts[MUC_FUSED_PARTS];
    uint64_t bytes = 0;
    uint8_t *data;

    for (unsigned i = 0; i < MUC_FUSED_PARTS; i++) {
        MUC_TRY(find_view(s, muc_fused_part(row->id == MUC_LLAMA_Q, i), layer, &parts[i]));
        bytes += parts[i]->bytes;
    }
    MUC_TRY(MUC_ARENA_NEW(s->ctx, s->arena, (size_t)bytes, &data));
    *out = *parts[0];
    out->data = data;
    out->dims[0] = 0;
    for (unsigned i = 0; i < MUC_FUSED_PARTS; i++) {
        memcpy(data, parts[i]->data, (size_t)parts[i]->bytes);
        data += parts[i]->bytes;
        out->dims[0] += parts[i]->dims[0];
    }
    return muc_tensor_measure(s->ctx, out);
}

static muc_status store_row(store *s, const struct row *row, uint32_t layer)
{
    muc_tensor_view *out = &s->out[s->out_count++];
    const muc_tensor_view *from;
    char name[NAME_BYTES];

    if (row->form == FUSED) {
        MUC_TRY(fuse(s, row, layer, out));
    } else {
        MUC_TRY(find_view(s, row->id, layer, &from));
        *out = *from;
    }
    if (row->form != PLAIN && row->id != MUC_LLAMA_Q_BIAS)
        MUC_TRY(transpose(s->ctx, s->arena, out));
    snprintf(name, sizeof(name), row->name, layer);
    return muc_arena_format(s->ctx, s->arena, &out->name, "%s%s",
                            row->id == MUC_LLAMA_HEAD ? "" : prefix, name);
}

muc_status muc_hf_gpt2_store(muc_context *ctx, const muc_model_config *config,
                             const muc_tensor_view *views, size_t count, muc_arena *arena,
                             muc_tensor_view **out, size_t *out_count)
{
    store s = { .ctx = ctx, .config = config, .views = views, .count = count, .arena = arena };

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, count, &s.out));
    for (size_t i = 0; i < MUC_COUNT(rows); i++) {
        muc_llama_tensor tensor = muc_llama_tensor_of(config, rows[i].id);

        for (uint32_t l = 0; tensor.present && l < (tensor.per_layer ? config->layers : 1); l++)
            MUC_TRY(store_row(&s, &rows[i], l));
    }
    *out = s.out;
    *out_count = s.out_count;
    return MUC_OK;
}
