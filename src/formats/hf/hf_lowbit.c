/* hf_lowbit.c - unpacks the indices, scales and codebooks that muc compress writes. */
#include "formats/hf/hf_lowbit.h"

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "quant/lowbit.h"

typedef struct packed {
    muc_context *ctx;
    muc_checkpoint *checkpoint;
    muc_tensor_view *view;
    const muc_tensor_view *numbers;
    muc_lowbit format;
    uint64_t n, k;
} packed;

#define MALFORMED(p, ...) \
    muc_fail((p)->ctx, MUC_MALFORMED, (p)->view->file, (p)->view->offset, __VA_ARGS__)

bool muc_hf_is_embedding(const char *name)
{
    static const unsigned outer[] = { MUC_LLAMA_EMBED, MUC_LLAMA_POSITIONS, MUC_LLAMA_HEAD };

    for (size_t i = 0; i < MUC_COUNT(outer); i++)
        if (strcmp(name, muc_llama_tensor_of(&(muc_model_config){ 0 }, outer[i]).hf) == 0)
            return true;
    return false;
}

static muc_status check_numbers(const packed *p)
{
    uint64_t expected = p->n * muc_lowbit_numbers(p->format, p->k);

    if (p->numbers->dtype != MUC_F16 || p->numbers->elements != expected)
        return MALFORMED(p, "'%s' has %llu elements of type %s, expected %llu of f16",
                         p->numbers->name, (unsigned long long)p->numbers->elements,
                         muc_dtype_get(p->numbers->dtype)->name, (unsigned long long)expected);
    for (uint64_t i = 0; i < expected; i++) {
        float x = muc_f32_of_f16(muc_load_u16(p->numbers->data + 2 * i));

        if (!isfinite(x) || (!muc_lowbit_get(p->format)->group && !(x > 0)))
            return MALFORMED(p, "'%s': element %llu is %g", p->numbers->name, (unsigned long long)i,
                             (double)x);
    }
    return MUC_OK;
}

/* rows of entries of codebooks */
static muc_status unpack_entries(const packed *p)
{
    size_t bytes = (size_t)(p->view->bytes / p->n), count = muc_lowbit_numbers(p->format, p->k);
    uint16_t *values, *numbers;
    float *row;

    MUC_TRY(MUC_ARENA_NEW(p->ctx, &p->checkpoint->arena, p->n * p->k, &values));
    MUC_TRY(MUC_ARENA_NEW(p->ctx, &p->checkpoint->arena, p->k, &row));
    MUC_TRY(MUC_ARENA_NEW(p->ctx, &p->checkpoint->arena, count, &numbers));
    for (uint64_t r = 0; r < p->n; r++) {
        for (size_t i = 0; i < count; i++)
            numbers[i] = muc_load_u16(p->numbers->data + 2 * (r * count + i));
        muc_lowbit_decode(p->format, p->k, p->view->data + r * bytes, numbers, row);
        for (uint64_t i = 0; i < p->k; i++)
            muc_store_u16((uint8_t *)(values + r * p->k + i), muc_f16_of_f32(row[i]));
    }
    p->view->dtype = MUC_F16;
    p->view->data = (const uint8_t *)values;
    return MUC_OK;
}

static muc_status unpack_levels(const packed *p)
{
    size_t bytes = (size_t)(p->view->bytes / p->n);
    float *scales;
    int8_t *levels;

    MUC_TRY(MUC_ARENA_NEW(p->ctx, &p->checkpoint->arena, p->n * p->k, &levels));
    MUC_TRY(MUC_ARENA_NEW(p->ctx, &p->checkpoint->arena, p->n, &scales));
    for (uint64_t r = 0; r < p->n; r++) {
        muc_lowbit_unpack(p->format, p->k, p->view->data + r * bytes, levels + r * p->k);
        scales[r] = muc_f32_of_f16(muc_load_u16(p->numbers->data + 2 * r));
    }
    for (uint64_t i = 0; i < p->n * p->k; i++)
        if (levels[i] == INT8_MIN)
            return MALFORMED(p, "'%s': element %llu is -128, expected -127..127", p->view->name,
                             (unsigned long long)i);
    p->view->dtype = MUC_I8;
    p->view->data = (const uint8_t *)levels;
    p->view->scales = scales;
    return MUC_OK;
}

/* the format that config.json gives a matrix of this type; numbers NULL: it has none beside it */
static muc_status find_numbers(packed *p)
{
    bool is_embedding = muc_hf_is_embedding(p->view->name);
    const char *name;

    p->numbers = NULL;
    if ((p->view->dtype != MUC_I8 && p->view->dtype != MUC_U8) || p->view->rank != 2 ||
        !p->view->elements)
        return MUC_OK;
    muc_lowbit_find(is_embedding ? p->checkpoint->embedding : p->checkpoint->weights, &p->format);
    for (size_t i = 0; i < p->checkpoint->finer_count; i++)
        if (strcmp(p->view->name, p->checkpoint->finer[i]) == 0)
            p->format = MUC_LOWBIT_INT4;
    if (p->view->dtype == MUC_I8)
        p->format = MUC_LOWBIT_INT8;
    MUC_TRY(muc_arena_format(p->ctx, &p->checkpoint->arena, &name, "%s%s", p->view->name,
                             muc_lowbit_get(p->format)->group ? MUC_HF_CODEBOOK : MUC_HF_SCALE));
    p->numbers = muc_checkpoint_find(p->checkpoint, name);
    return MUC_OK;
}

static muc_status unpack(packed *p)
{
    p->n = p->view->dims[0];
    p->k = p->view->dims[1] * (8 / muc_lowbit_get(p->format)->bits);
    MUC_TRY(check_numbers(p));
    p->view->stored_bytes = p->view->bytes + p->numbers->bytes;
    MUC_TRY(muc_lowbit_get(p->format)->group ? unpack_entries(p) : unpack_levels(p));
    p->view->dims[1] = p->k;
    return muc_tensor_measure(p->ctx, p->view);
}

/* Each name of a matrix in more bits is one of a matrix. */
static muc_status check_finer(muc_context *ctx, const muc_checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->finer_count; i++) {
        const muc_tensor_view *view = muc_checkpoint_find(checkpoint, checkpoint->finer[i]);

        if (!view || view->dtype != MUC_U8 || view->rank != 2)
            return muc_fail(ctx, MUC_MALFORMED, checkpoint->path, MUC_NO_OFFSET,
                            "\"quantization_config\": \"" MUC_HF_FINER
                            "\" has '%s', which is not a matrix of indices",
                            checkpoint->finer[i]);
    }
    return MUC_OK;
}

muc_status muc_hf_unpack(muc_context *ctx, muc_checkpoint *checkpoint)
{
    size_t kept = 0;
    bool *used;

    MUC_TRY(muc_checkpoint_sort(ctx, checkpoint));
    MUC_TRY(check_finer(ctx, checkpoint));
    MUC_TRY(MUC_ARENA_NEW(ctx, &checkpoint->arena, checkpoint->tensor_count, &used));
    for (size_t i = 0; i < checkpoint->tensor_count; i++) {
        packed p = { .ctx = ctx, .checkpoint = checkpoint, .view = &checkpoint->tensors[i] };

        MUC_TRY(find_numbers(&p));
        if (!p.numbers)
            continue;
        used[p.numbers - checkpoint->tensors] = true;
        MUC_TRY(unpack(&p));
    }
    for (size_t i = 0; i < checkpoint->tensor_count; i++)
        if (!used[i])
            checkpoint->tensors[kept++] = checkpoint->tensors[i];
    checkpoint->tensor_count = kept;
    return MUC_OK;
}
