/* hf_tensors.c - renames a family's tensors by the table of hf_tensors.def. */
#include "formats/hf/hf_tensors.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 128, BLOCK = 32 };

typedef enum form {
    PLAIN,
    TRANSPOSED,
    FUSED,
    STACKED,
    BY_HEAD,
    GATE_UP,
    AFTER_TWO,
    PLUS_ONE,
    IGNORED
} tensor_form;

static const struct row {
    muc_family family;
    const char *name;
    unsigned id;
    tensor_form form;
} rows[] = {
#define MUC_HF_TENSOR(family, name, id, form) { MUC_FAMILY_##family, name, MUC_LLAMA_##id, form },
#include "formats/hf/hf_tensors.def"
#undef MUC_HF_TENSOR
};

const char *muc_hf_stored_name(const muc_model_config *config, unsigned id, bool *less_one)
{
    const char *name = muc_llama_tensor_of(config, id).hf;
    bool is_whole = true;

    *less_one = false;
    for (size_t i = 0; i < MUC_COUNT(rows); i++) {
        if (rows[i].family != config->family || rows[i].form == IGNORED)
            continue;
        is_whole = is_whole && (rows[i].form == PLAIN || rows[i].form == PLUS_ONE);
        if (rows[i].id == id) {
            name = rows[i].name;
            *less_one = rows[i].form == PLUS_ONE;
        }
    }
    return is_whole ? name : NULL;
}

bool muc_hf_is_left_out(const muc_model_config *config, unsigned id)
{
    return config->head_norm && config->head_norm_turns &&
           (id == MUC_LLAMA_Q_NORM || id == MUC_LLAMA_K_NORM);
}

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

static const struct row *find_row(muc_family family, const char *name, uint32_t *layer)
{
    static const char *const prefixes[] = { "transformer.", "gpt_neox.", "model.decoder.",
                                            "decoder." };
    const char *inner = name;

    for (size_t i = 0; i < MUC_COUNT(prefixes) && inner == name; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            inner += strlen(prefixes[i]);
    for (size_t i = 0; i < MUC_COUNT(rows); i++)
        if (rows[i].family == family && same_name(inner, rows[i].name, layer))
            return &rows[i];
    return NULL;
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

/* rows first.. of a tensor, as its own tensor */
static muc_status add_rows(muc_context *ctx, muc_checkpoint *checkpoint,
                           const muc_tensor_view *from, uint64_t first, uint64_t count, unsigned id,
                           uint32_t layer)
{
    muc_tensor_view view = *from;

    if (from->rank == 0 || first > from->dims[0] || count > from->dims[0] - first)
        return muc_fail(ctx, MUC_MALFORMED, from->file, from->offset,
                        "tensor '%s' has %llu rows, expected at least %llu", from->name,
                        (unsigned long long)(from->rank ? from->dims[0] : 0),
                        (unsigned long long)(first + count));
    view.dims[0] = count;
    view.data += from->bytes / from->dims[0] * first;
    view.scales = from->scales ? from->scales + first : NULL;
    MUC_TRY(muc_tensor_measure(ctx, &view));
    return add_one(ctx, checkpoint, &view, id, layer);
}

/* [heads][q, k, v][head_dim] rows: part by part, in copies */
static muc_status add_by_head(muc_context *ctx, muc_checkpoint *checkpoint,
                              const muc_tensor_view *from, uint32_t layer)
{
    const muc_model_config *config = &checkpoint->config;
    uint64_t rows_of_all = (uint64_t)MUC_FUSED_PARTS * config->heads * config->head_dim;
    size_t bytes;

    if (from->rank == 0 || from->dims[0] != rows_of_all)
        return muc_fail(ctx, MUC_MALFORMED, from->file, from->offset,
                        "tensor '%s' has %llu rows, expected %llu", from->name,
                        (unsigned long long)(from->rank ? from->dims[0] : 0),
                        (unsigned long long)rows_of_all);
    bytes = (size_t)(from->bytes / from->dims[0] * config->head_dim); /* of one head's part */
    for (unsigned part = 0; part < MUC_FUSED_PARTS; part++) {
        muc_tensor_view view = *from;
        size_t width = config->head_dim;
        float *scales;
        uint8_t *copy;

        MUC_TRY(MUC_ARENA_NEW(ctx, &checkpoint->arena, bytes * config->heads, &copy));
        MUC_TRY(MUC_ARENA_NEW(ctx, &checkpoint->arena, width * config->heads, &scales));
        for (uint32_t head = 0; head < config->heads; head++) {
            size_t at = (size_t)MUC_FUSED_PARTS * head + part;

            memcpy(copy + head * bytes, from->data + at * bytes, bytes);
            if (from->scales)
                memcpy(scales + head * width, from->scales + at * width, width * sizeof(*scales));
        }
        view.data = copy;
        view.scales = from->scales ? scales : NULL;
        view.dims[0] /= MUC_FUSED_PARTS;
        MUC_TRY(muc_tensor_measure(ctx, &view));
        MUC_TRY(add_one(ctx, checkpoint, &view, muc_fused_part(from->rank == 2, part), layer));
    }
    return MUC_OK;
}

static muc_status add_plus_one(muc_context *ctx, muc_checkpoint *checkpoint,
                               const muc_tensor_view *from, unsigned id, uint32_t layer)
{
    muc_tensor_view view = *from;
    float *values;

    MUC_TRY(MUC_ARENA_NEW(ctx, &checkpoint->arena, (size_t)from->elements, &values));
    MUC_TRY(muc_tensor_to_f32(ctx, from, 0, from->elements, values));
    for (uint64_t i = 0; i < from->elements; i++)
        values[i] += 1;
    view.dtype = MUC_F32;
    view.data = (const uint8_t *)values;
    MUC_TRY(muc_tensor_measure(ctx, &view));
    return add_one(ctx, checkpoint, &view, id, layer);
}

/* those that files leave out; Llama 4 norms what was turned already, which is the same */
static muc_status add_unit_gains(muc_context *ctx, muc_checkpoint *checkpoint)
{
    muc_tensor_view view = { .dtype = MUC_F32, .rank = 1, .file = checkpoint->path };
    float *gains;

    view.dims[0] = checkpoint->config.head_dim;
    MUC_TRY(muc_tensor_measure(ctx, &view));
    MUC_TRY(MUC_ARENA_NEW(ctx, &checkpoint->arena, (size_t)view.elements, &gains));
    for (uint64_t i = 0; i < view.elements; i++)
        gains[i] = 1;
    view.data = (const uint8_t *)gains;
    for (unsigned id = 0; id < MUC_LLAMA_TENSOR_COUNT; id++)
        for (uint32_t layer = 0;
             muc_hf_is_left_out(&checkpoint->config, id) && layer < checkpoint->config.layers;
             layer++)
            MUC_TRY(add_one(ctx, checkpoint, &view, id, layer));
    return MUC_OK;
}

/* does the family call each of its tensors otherwise? */
static bool has_own_names(muc_family family)
{
    for (size_t i = 0; i < MUC_COUNT(rows); i++)
        if (rows[i].family == family && rows[i].id == MUC_LLAMA_EMBED && rows[i].form == PLAIN)
            return true;
    return false;
}

bool muc_hf_stores_whole(const muc_model_config *config)
{
    bool less_one;

    return has_own_names(config->family) ||
           muc_hf_stored_name(config, MUC_LLAMA_EMBED, &less_one) != NULL;
}

muc_status muc_hf_written_name(muc_context *ctx, muc_arena *arena, const muc_model_config *config,
                               const char *name, const char **out, bool *less_one)
{
    *less_one = false;
    *out = name;
    if (has_own_names(config->family))
        return MUC_OK;
    for (unsigned id = 0; id < MUC_LLAMA_TENSOR_COUNT; id++) {
        const muc_llama_tensor tensor = muc_llama_tensor_of(config, id);
        const char *pattern;
        uint32_t layer;

        if (!tensor.present || !same_name(name, tensor.hf, &layer))
            continue;
        pattern = muc_hf_stored_name(config, id, less_one);
        if (!pattern) {
            *out = NULL;
            return MUC_OK;
        }
        return muc_arena_format(ctx, arena, out, pattern, layer);
    }
    return MUC_OK;
}

static muc_status add(muc_context *ctx, muc_checkpoint *checkpoint, const muc_tensor_view *from)
{
    const muc_model_config *config = &checkpoint->config;
    muc_tensor_view view = *from;
    uint32_t layer;
    const struct row *row = find_row(config->family, from->name, &layer);

    if (!row && has_own_names(config->family))
        return muc_fail(ctx, MUC_UNSUPPORTED, from->file, from->offset,
                        "tensor '%s' has no place in a %s", from->name, config->architecture);
    if (!row)
        return muc_checkpoint_add(ctx, checkpoint, from);
    switch (row->form) {
    case IGNORED:
        return MUC_OK;
    case STACKED:
    case FUSED:
        if (row->form == FUSED && row->id == MUC_LLAMA_Q)
            MUC_TRY(transpose(ctx, &checkpoint->arena, &view));
        return muc_checkpoint_add_fused(ctx, checkpoint, &view, layer);
    case BY_HEAD:
        return add_by_head(ctx, checkpoint, from, layer);
    case GATE_UP:
        MUC_TRY(add_rows(ctx, checkpoint, from, 0, config->ffn_dim, MUC_LLAMA_GATE, layer));
        return add_rows(ctx, checkpoint, from, config->ffn_dim, config->ffn_dim, MUC_LLAMA_UP,
                        layer);
    case AFTER_TWO:
        return add_rows(ctx, checkpoint, from, 2, config->context, row->id, layer);
    case PLUS_ONE:
        return add_plus_one(ctx, checkpoint, from, row->id, layer);
    case TRANSPOSED:
        MUC_TRY(transpose(ctx, &checkpoint->arena, &view));
        break;
    case PLAIN:
        break;
    }
    return add_one(ctx, checkpoint, &view, row->id, layer);
}

/* what muc wrote itself may have our names already */
static bool has_our_names(const muc_checkpoint *checkpoint)
{
    const char *embedding = muc_llama_tensor_of(&checkpoint->config, MUC_LLAMA_EMBED).hf;

    if (!has_own_names(checkpoint->config.family))
        return false;
    for (size_t i = 0; i < checkpoint->tensor_count; i++)
        if (strcmp(checkpoint->tensors[i].name, embedding) == 0)
            return true;
    return false;
}

muc_status muc_hf_rename(muc_context *ctx, muc_checkpoint *checkpoint)
{
    const muc_tensor_view *stored = checkpoint->tensors;
    size_t count = checkpoint->tensor_count;

    MUC_TRY(muc_checkpoint_check_config(ctx, checkpoint)); /* shapes follow from it */
    if (has_our_names(checkpoint))
        return MUC_OK;
    checkpoint->tensors = NULL;
    checkpoint->tensor_count = checkpoint->tensor_capacity = 0;
    for (size_t i = 0; i < count; i++)
        MUC_TRY(add(ctx, checkpoint, &stored[i]));
    return add_unit_gains(ctx, checkpoint);
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
                            row->id == MUC_LLAMA_HEAD ? "" : "transformer.", name);
}

muc_status muc_hf_gpt2_store(muc_context *ctx, const muc_model_config *config,
                             const muc_tensor_view *views, size_t count, muc_arena *arena,
                             muc_tensor_view **out, size_t *out_count)
{
    store s = { .ctx = ctx, .config = config, .views = views, .count = count, .arena = arena };

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, count, &s.out));
    for (size_t i = 0; i < MUC_COUNT(rows); i++) {
        muc_llama_tensor tensor = muc_llama_tensor_of(config, rows[i].id);
        bool stored =
            tensor.present && rows[i].family == MUC_FAMILY_GPT2 && rows[i].form != IGNORED;

        for (uint32_t l = 0; stored && l < (tensor.per_layer ? config->layers : 1); l++)
            MUC_TRY(store_row(&s, &rows[i], l));
    }
    *out = s.out;
    *out_count = s.out_count;
    return MUC_OK;
}
