/* split_rows.c - the index of some rows of a sequence, and its blocks. */
#include "targets/uthinker/lower/split_rows.h"

#include <string.h>

#include "quant/bd_sequence.h"
#include "targets/uthinker/lower/layout_parts.h"

enum {
    MOST_HEADS_TOGETHER = 8, /* kv heads: each is written out */
    MOST_QUERY_HEADS = 255,  /* in a group of DIV */
    PUT_AT_ONCE = 1 << 15    /* bytes */
};

bool muc_uthinker_can_split(const muc_uthinker_model *model, const muc_uthinker_machine *machine,
                            muc_uthinker_split split)
{
    uint32_t queries = model->heads * model->head_width, k = machine->tile_k;

    if (split.o_by_head && (model->kv_heads == 1 || queries % (model->kv_heads * k) != 0))
        return false;
    if (split.together &&
        (split.o_by_head || model->whole_norms || model->kv_heads == 1 ||
         model->kv_heads > MOST_HEADS_TOGETHER || model->heads > MOST_QUERY_HEADS))
        return false;
    return split.ffn_parts == 1 || model->ffn_width % (split.ffn_parts * k) == 0;
}

/* the index of the rows that `out` says, `across` columns of tiles */
static muc_status take_index(muc_context *ctx, muc_arena *arena, uint32_t across,
                             muc_uthinker_weight *out)
{
    size_t own = 4 * ((size_t)across * out->down + 1), tile = 0;
    uint32_t at = (uint32_t)own;
    uint8_t *index;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, own, &index));
    for (uint32_t c = 0; c < across; c++)
        for (uint32_t r = 0; r < out->down; r++) {
            const uint8_t *of = out->whole + 4 * ((size_t)c * out->stride + out->first + r);

            muc_store_u32(index + 4 * tile++, at);
            at += muc_load_u32(of + 4) - muc_load_u32(of);
        }
    muc_store_u32(index + 4 * tile, at);
    out->sequence = index;
    out->bytes = at;
    return MUC_OK;
}

/* every weight of a kind in `parts`, whose shape is that of a part */
static muc_status split_kind(muc_context *ctx, muc_arena *arena,
                             const muc_uthinker_machine *machine, muc_matrix_shape shape,
                             uint32_t parts, muc_uthinker_weight **weights)
{
    uint32_t across = (shape.n + machine->tile_n - 1) / machine->tile_n;
    uint32_t down = shape.k / machine->tile_k;
    const muc_uthinker_weight *whole = *weights;

    if (parts == 1)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, shape.count, weights));
    for (uint32_t i = 0; i < shape.count; i++) {
        muc_uthinker_weight *part = &(*weights)[i];

        *part = whole[i / parts];
        part->whole = part->sequence;
        part->first = i % parts * down;
        part->down = down;
        part->stride = parts * down;
        if (part->sequence)
            MUC_TRY(take_index(ctx, arena, across, part));
        else
            part->bytes =
                muc_bd_index_bytes(shape.n, shape.k) + shape.n * muc_bd_least_column_bytes(shape.k);
    }
    return MUC_OK;
}

muc_status muc_uthinker_split_rows(muc_context *ctx, muc_arena *arena,
                                   const muc_uthinker_model *model,
                                   const muc_uthinker_machine *machine, muc_uthinker_split split,
                                   muc_uthinker_model *out)
{
    *out = *model;
    out->ffn_parts = split.ffn_parts;
    out->o_parts = split.o_by_head ? model->kv_heads : 1;
    MUC_TRY(split_kind(ctx, arena, machine, muc_uthinker_matrix_shape(out, MUC_MATRIX_DOWN),
                       out->ffn_parts, &out->weights[MUC_MATRIX_DOWN]));
    return split_kind(ctx, arena, machine, muc_uthinker_matrix_shape(out, MUC_MATRIX_O),
                      out->o_parts, &out->weights[MUC_MATRIX_O]);
}

/* Bytes that follow each other in a file, put there some at a time. */
typedef struct putting {
    const muc_large_file *file;
    size_t at, held;
    uint8_t some[PUT_AT_ONCE];
} putting;

static void put_held(putting *p)
{
    muc_large_put(p->file, p->at, p->some, p->held);
    p->at += p->held;
    p->held = 0;
}

static void put_next(putting *p, const uint8_t *data, size_t bytes)
{
    if (bytes > sizeof(p->some) - p->held)
        put_held(p);
    if (bytes > sizeof(p->some)) {
        muc_large_put(p->file, p->at, data, bytes);
        p->at += bytes;
    } else {
        memcpy(p->some + p->held, data, bytes);
        p->held += bytes;
    }
}

void muc_uthinker_put_blocks(const muc_uthinker_weight *weight, uint32_t tiles,
                             const muc_large_file *file, size_t at)
{
    size_t own = 4 * ((size_t)tiles + 1);
    putting p;

    p.file = file;
    p.at = at;
    p.held = 0;
    if (!weight->whole)
        put_next(&p, weight->sequence + own, (size_t)weight->bytes - own);
    for (uint32_t c = 0; weight->whole && c < tiles / weight->down; c++) {
        const uint8_t *index = weight->whole + 4 * ((size_t)c * weight->stride + weight->first);
        uint32_t from = muc_load_u32(index), to = muc_load_u32(index + 4 * (size_t)weight->down);

        put_next(&p, weight->whole + from, to - from);
    }
    put_held(&p);
}
