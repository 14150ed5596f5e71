/* layout_chunks.c - matrices in chunks of columns that fit the W buffers (SPEC.md section 8). */
#include "targets/uthinker/lower/layout_parts.h"

#include "quant/bd_sequence.h"

enum {
    GATE_COLUMNS = 32, /* a chunk of gate and up ends with a whole block of H */
    MAX_COLUMNS = 4064 /* of a chunk: what MM's field holds */
};

muc_matrix_shape muc_uthinker_matrix_shape(const muc_uthinker_model *model, muc_matrix_kind kind)
{
    uint32_t d = model->width, layers = model->own_layers;
    uint32_t queries = model->heads * model->head_width, keys = model->kv_heads * model->head_width;

    switch (kind) {
    case MUC_MATRIX_EMBEDDING:
        return (muc_matrix_shape){ d, model->vocabulary, 1 };
    case MUC_MATRIX_HEAD:
        return (muc_matrix_shape){ d, model->vocabulary, model->tied ? 0 : 1 };
    case MUC_MATRIX_DOWN:
        return (muc_matrix_shape){ model->ffn_width / model->ffn_parts, d,
                                   layers * model->ffn_parts };
    case MUC_MATRIX_GATE:
    case MUC_MATRIX_UP:
        return (muc_matrix_shape){ d, model->ffn_width, layers };
    case MUC_MATRIX_O:
        return (muc_matrix_shape){ queries / model->o_parts, d, layers * model->o_parts };
    case MUC_MATRIX_Q:
        return (muc_matrix_shape){ d, queries, layers };
    case MUC_MATRIX_K:
    case MUC_MATRIX_V:
        return (muc_matrix_shape){ d, keys, layers };
    case MUC_MATRIX_COUNT:
        break;
    }
    return (muc_matrix_shape){ 0, 0, 0 };
}

bool muc_layout_is_streamed(const muc_uthinker_model *model, muc_matrix_kind kind)
{
    return kind == MUC_MATRIX_EMBEDDING ? model->tied : kind != MUC_MATRIX_HEAD || !model->tied;
}

uint64_t muc_uthinker_tiles(const muc_uthinker_machine *machine, uint32_t k, uint32_t n)
{
    uint64_t across = (n + machine->tile_n - 1) / machine->tile_n;

    return product(across, (k + machine->tile_k - 1) / machine->tile_k);
}

uint32_t muc_layout_blocks_before(const muc_uthinker_machine *machine,
                                  const muc_uthinker_weight *weight, uint32_t k, uint32_t column)
{
    size_t tile = (size_t)muc_uthinker_tiles(machine, k, column);

    return muc_load_u32(weight->sequence + 4 * tile) - muc_load_u32(weight->sequence);
}

/* the largest chunk, in bytes, if a stream's n columns go in chunks of `chunk` */
static uint32_t largest_chunk(const muc_uthinker_machine *machine, const muc_uthinker_model *model,
                              muc_matrix_kind kind, uint32_t n, uint32_t streams, uint32_t chunk)
{
    muc_matrix_shape shape = muc_uthinker_matrix_shape(model, kind);
    uint32_t most = 0;

    if (!model->weights[kind][0].sequence)
        return (uint32_t)(smaller(chunk, n) * muc_bd_least_column_bytes(shape.k));
    for (uint32_t i = 0; i < shape.count; i++)
        for (uint32_t s = 0; s < streams; s++)
            for (uint32_t c = 0; c < n; c += smaller(chunk, n - c)) {
                const muc_uthinker_weight *weight = &model->weights[kind][i];
                uint32_t end = s * n + c + smaller(chunk, n - c);
                uint32_t from = muc_layout_blocks_before(machine, weight, shape.k, s * n + c);
                uint32_t to = muc_layout_blocks_before(machine, weight, shape.k, end);

                if (to - from > most)
                    most = to - from;
            }
    return most;
}

static bool is_ffn(muc_matrix_kind kind)
{
    return kind == MUC_MATRIX_GATE || kind == MUC_MATRIX_UP;
}

uint32_t muc_layout_step_of(const muc_uthinker_layout *layout, muc_matrix_kind kind)
{
    uint32_t tile = layout->machine.tile_n; /* both are powers of two */

    return is_ffn(kind) && tile < GATE_COLUMNS ? GATE_COLUMNS : tile;
}

/* K and V go in pairs, each in a half of a W buffer; other chunks fill one */
static bool is_paired(const muc_uthinker_layout *layout, muc_matrix_kind kind)
{
    return !layout->whole_norms && (kind == MUC_MATRIX_K || kind == MUC_MATRIX_V);
}

/* bytes of the smallest W buffers that hold the narrowest chunk of every kind */
static uint64_t least_buffer(const muc_uthinker_model *model, const muc_uthinker_layout *layout)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < MUC_MATRIX_COUNT; i++) {
        muc_matrix_kind kind = (muc_matrix_kind)i;
        const muc_uthinker_matrix *matrix = &layout->matrix[kind];

        if (muc_layout_is_streamed(model, kind))
            most = larger(most, largest_chunk(&layout->machine, model, kind, matrix->n,
                                              matrix->streams, muc_layout_step_of(layout, kind)) *
                                    (is_paired(layout, kind) ? 2 : 1));
    }
    return aligned(most, MUC_UTHINKER_BUFFER_MULTIPLE);
}

/* Kinds that share a chunk width. */
typedef struct kind_set {
    muc_matrix_kind kinds[2];
    uint32_t count;
} kind_set;

static uint32_t largest_of(const muc_uthinker_model *model, const muc_uthinker_layout *layout,
                           const kind_set *set, uint32_t chunk)
{
    const muc_uthinker_matrix *first = &layout->matrix[set->kinds[0]];
    uint32_t most = 0;

    for (uint32_t i = 0; i < set->count; i++)
        most = (uint32_t)larger(most, largest_chunk(&layout->machine, model, set->kinds[i],
                                                    first->n, first->streams, chunk));
    return most;
}

static void set_chunks(muc_uthinker_layout *layout, const kind_set *set, uint32_t chunks)
{
    uint32_t step = muc_layout_step_of(layout, set->kinds[0]), n = layout->matrix[set->kinds[0]].n;
    uint32_t chunk = smaller((uint32_t)aligned((n + chunks - 1) / chunks, step), n);

    for (uint32_t i = 0; i < set->count; i++) {
        layout->matrix[set->kinds[i]].chunk = chunk;
        layout->matrix[set->kinds[i]].chunks = (n + chunk - 1) / chunk;
    }
}

/* The fewest chunks, of about the same width. */
static muc_status choose_chunk(muc_context *ctx, const muc_uthinker_model *model,
                               muc_uthinker_layout *layout, const kind_set *set)
{
    bool paired = is_paired(layout, set->kinds[0]);
    uint32_t whole =
        smaller(layout->machine.buffer_bytes[MUR_W0], layout->machine.buffer_bytes[MUR_W1]);
    uint32_t room = paired ? whole / 2 : whole, n = layout->matrix[set->kinds[0]].n;
    uint32_t step = muc_layout_step_of(layout, set->kinds[0]), most = 0;
    uint32_t chunk = smaller((uint32_t)aligned(n, step), MAX_COLUMNS / step * step);

    for (; chunk >= step; chunk -= step) {
        most = largest_of(model, layout, set, chunk);
        if (most <= room)
            break;
    }
    if (chunk < step)
        return muc_fail(ctx, MUC_NOFIT, layout->source, MUC_NO_OFFSET,
                        "%u columns of '%s' need %s%u bytes, %u more than %sa W buffer has; the "
                        "machine (--machine FILE) must have wbuf0 and wbuf1 of at least %llu",
                        step, model->weights[set->kinds[0]][0].name,
                        model->weights[set->kinds[0]][0].sequence ? "" : "at least ", most,
                        most - room, paired ? "half of " : "",
                        (unsigned long long)least_buffer(model, layout));
    for (uint32_t chunks = (n + chunk - 1) / chunk;; chunks++) {
        set_chunks(layout, set, chunks);
        most = largest_of(model, layout, set, layout->matrix[set->kinds[0]].chunk);
        if (most <= room)
            break;
    }
    for (enum mur_buffer w = MUR_W0; w <= MUR_W1; w++)
        note_use(layout, w, paired ? layout->machine.buffer_bytes[w] / 2 + most : most,
                 paired ? layout->machine.buffer_bytes[w] / 2 + most : most);
    return MUC_OK;
}

/* One more chunk, if the columns suffice. */
static void add_chunk(muc_uthinker_layout *layout, muc_matrix_kind kind)
{
    const kind_set set = { { kind }, 1 };
    const muc_uthinker_matrix before = layout->matrix[kind];

    set_chunks(layout, &set, before.chunks + 1);
    if (layout->matrix[kind].chunks != before.chunks + 1)
        layout->matrix[kind] = before;
}

/* The loads of a kv head, with the one of a group, of a pass, and of what follows the heads in a
 * layer are to be an even number each, so that the next begin with the buffer that is free. What is
 * made for all kv heads at once, and their groups, count as what follows. */
static void even_chunks(muc_uthinker_layout *layout)
{
    const muc_uthinker_matrix *matrix = layout->matrix;
    uint32_t q = matrix[MUC_MATRIX_Q].chunks, head = matrix[MUC_MATRIX_V].chunks + 1;
    uint32_t o = matrix[MUC_MATRIX_O].chunks, rest = 0;

    if (layout->o_parts > 1)
        head += o;
    else
        rest = o;
    if (layout->whole_norms && (q + matrix[MUC_MATRIX_K].chunks) % 2 != 0)
        add_chunk(layout, MUC_MATRIX_K);
    if (layout->heads_made > 1)
        rest += q + head - 1 + layout->heads_made;
    else if ((layout->whole_norms ? head : q + head) % 2 != 0)
        add_chunk(layout, layout->whole_norms ? MUC_MATRIX_V : MUC_MATRIX_Q);
    if (layout->ffn_parts > 1 && rest % 2 != 0)
        add_chunk(layout, MUC_MATRIX_O);
    if ((matrix[MUC_MATRIX_DOWN].chunks + (layout->ffn_parts > 1 ? 0 : rest)) % 2 != 0)
        add_chunk(layout, MUC_MATRIX_DOWN);
}

static void measure_matrices(const muc_uthinker_model *model, muc_uthinker_layout *layout)
{
    for (uint32_t i = 0; i < MUC_MATRIX_COUNT; i++) {
        muc_matrix_kind kind = (muc_matrix_kind)i;
        muc_matrix_shape shape = muc_uthinker_matrix_shape(model, kind);
        bool by_head = layout->heads_made == 1 &&
                       (kind == MUC_MATRIX_V ||
                        (!model->whole_norms && (kind == MUC_MATRIX_Q || kind == MUC_MATRIX_K)));

        layout->matrix[kind].k = shape.k;
        layout->matrix[kind].streams = by_head        ? model->kv_heads
                                       : is_ffn(kind) ? model->ffn_parts
                                                      : 1;
        layout->matrix[kind].n = shape.n / layout->matrix[kind].streams;
        layout->matrix[kind].table = UINT32_MAX;
    }
}

/* a kv head's columns are loaded by themselves, so they begin with a tile */
static muc_status check_streams(muc_context *ctx, const muc_uthinker_layout *layout)
{
    uint32_t hd = layout->head_width, tile = layout->machine.tile_n;

    if (layout->kv_heads == 1 || hd % tile == 0)
        return MUC_OK;
    return muc_fail(ctx, MUC_UNSUPPORTED, layout->source, MUC_NO_OFFSET,
                    "heads of %u columns do not begin with tiles of %u; the machine (--machine "
                    "FILE) must have a tile_n that divides them",
                    hd, tile);
}

muc_status muc_layout_choose_chunks(muc_context *ctx, const muc_uthinker_model *model,
                                    muc_uthinker_layout *layout)
{
    const kind_set sets[] = {
        { { MUC_MATRIX_EMBEDDING }, 1 },
        { { MUC_MATRIX_HEAD }, 1 },
        { { MUC_MATRIX_DOWN }, 1 },
        { { MUC_MATRIX_O }, 1 },
        { { MUC_MATRIX_Q }, 1 },
        { { MUC_MATRIX_K, MUC_MATRIX_V }, model->whole_norms ? 1 : 2 },
        { { MUC_MATRIX_V }, model->whole_norms ? 1 : 0 },
        { { MUC_MATRIX_GATE, MUC_MATRIX_UP }, 2 },
    };

    measure_matrices(model, layout);
    MUC_TRY(check_streams(ctx, layout));
    for (size_t i = 0; i < MUC_COUNT(sets); i++)
        if (sets[i].count && muc_layout_is_streamed(model, sets[i].kinds[0]))
            MUC_TRY(choose_chunk(ctx, model, layout, &sets[i]));
    even_chunks(layout);
    if (layout->options.recompute && model->whole_norms)
        return muc_fail(ctx, MUC_UNSUPPORTED, layout->source, MUC_NO_OFFSET,
                        "recompute attention makes the keys of one head, which this model "
                        "normalises over all heads together; --attention cache would do");
    if (layout->options.recompute && layout->matrix[MUC_MATRIX_K].chunks > 2)
        return muc_fail(ctx, MUC_NOFIT, layout->source, MUC_NO_OFFSET,
                        "recompute attention keeps a head's '%s' in W1: it takes %u halves; "
                        "--attention cache would do",
                        model->weights[MUC_MATRIX_K][0].name, layout->matrix[MUC_MATRIX_K].chunks);
    return MUC_OK;
}
