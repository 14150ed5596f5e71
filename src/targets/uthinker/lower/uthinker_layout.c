/* uthinker_layout.c - sizes, chunk widths, placement, region offsets.
 *
 * All sizes are computed in 64 bits that saturate, and checked against what the container and the
 * machine can express before they become the layout's 32-bit numbers.
 */
#include "targets/uthinker/lower/uthinker_layout.h"

#include <string.h>

#include "base/bytes.h"
#include "base/half.h"
#include "plan/place.h"
#include "quant/bd_sequence.h"

enum {
    GATE_COLUMNS = 32,  /* a chunk of gate and up ends with a whole block of H */
    MAX_COLUMNS = 4064, /* of a chunk: what MM's field holds */
    SLOT_ALIGNMENT = 16,
    IO_ALIGNMENT = 64,
    SEQUENCE_ALIGNMENT = 16
};

static const char *const buffer_names[] = { "I0", "I1", "W0", "W1", "GB" };

static const struct {
    const char *name;
    enum mur_buffer buffer;
    uint32_t first, last;
} places[] = {
#define MUC_UTHINKER_PLACE(name, buffer, first, last, meaning) \
    { #name, MUR_##buffer, MUC_STEP_##first, MUC_STEP_##last },
    MUC_UTHINKER_PLACES(MUC_UTHINKER_PLACE)
#undef MUC_UTHINKER_PLACE
};

static uint64_t product(uint64_t a, uint64_t b)
{
    uint64_t out;

    return muc_mul_u64(a, b, &out) && out < UINT64_MAX / 16 ? out : UINT64_MAX / 16;
}

static uint64_t aligned(uint64_t a, uint64_t alignment)
{
    return (a + alignment - 1) & ~(alignment - 1);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

const char *muc_uthinker_buffer_name(enum mur_buffer buffer)
{
    return buffer_names[buffer];
}

enum mur_buffer muc_uthinker_place_buffer(muc_uthinker_place place)
{
    return places[place].buffer;
}

uint32_t muc_uthinker_slots_bytes(uint32_t k, uint32_t terms)
{
    uint32_t whole = terms == 1 ? 19 : 37, rest = k % 32;

    if (rest)
        rest = terms == 1 ? 3 + (rest + 1) / 2 : 5 + 2 * ((rest + 1) / 2);
    return k / 32 * whole + rest;
}

uint32_t muc_uthinker_slab(const muc_uthinker_layout *layout, uint32_t s)
{
    uint32_t k = layout->machine.tile_k;

    return smaller(k, layout->head_width - k * s);
}

/* ---- the on-chip buffers ---- */

/* bytes of a place for the layout's rows */
static uint64_t place_bytes(const muc_uthinker_layout *layout, muc_uthinker_place place)
{
    const muc_uthinker_terms *terms = &layout->options.terms;
    bool recompute = layout->options.recompute;
    uint64_t rows = layout->options.rows, d = layout->width, hd = layout->head_width;
    uint64_t queries = product(rows, layout->group);
    uint32_t all_heads = layout->heads * layout->head_width;

    switch (place) {
    case MUC_PLACE_X:
        return product(rows, muc_uthinker_slots_bytes(layout->width, terms->x));
    case MUC_PLACE_XC:
        return recompute ? product(layout->machine.tokens,
                                   muc_uthinker_slots_bytes(layout->width, terms->x))
                         : 0;
    case MUC_PLACE_A:
        return product(rows, muc_uthinker_slots_bytes(all_heads, terms->o));
    case MUC_PLACE_H:
        return product(rows, muc_uthinker_slots_bytes(layout->ffn_width, terms->h));
    case MUC_PLACE_Q:
        return product(queries, muc_uthinker_slots_bytes(layout->head_width, terms->q));
    case MUC_PLACE_P:
        return product(queries, muc_uthinker_slots_bytes(layout->machine.tokens, terms->p));
    case MUC_PLACE_N:
        return larger(product(rows, muc_uthinker_slots_bytes(layout->width, terms->f)),
                      muc_uthinker_slots_bytes(layout->width, terms->l));
    case MUC_PLACE_RES:
        return product(rows, 4 * d);
    case MUC_PLACE_TB:
    case MUC_PLACE_KF:
        return product(rows, 4 * hd);
    case MUC_PLACE_GN:
        return 4 * d;
    case MUC_PLACE_QF:
    case MUC_PLACE_OA:
        return product(queries, 4 * hd);
    case MUC_PLACE_VT:
        return product(layout->value_rows, 4 * hd);
    case MUC_PLACE_SC:
        return product(queries, 4 * layout->machine.tokens);
    case MUC_PLACE_ML:
        return product(queries, 8);
    case MUC_PLACE_TC:
    case MUC_PLACE_KC:
        return recompute ? product(layout->machine.tokens, 4 * hd) : 0;
    case MUC_PLACE_AT:
        return product(rows, product(4, all_heads));
    case MUC_PLACE_GA:
    case MUC_PLACE_UP:
        return product(rows, 4 * (uint64_t)layout->matrix[MUC_MATRIX_GATE].chunk);
    case MUC_PLACE_LG:
        return 4 * (uint64_t)layout->matrix[layout->tied ? MUC_MATRIX_EMBEDDING : MUC_MATRIX_HEAD]
                       .chunk;
    case MUC_PLACE_COUNT:
        break;
    }
    return 0;
}

static muc_status refuse_buffer(muc_context *ctx, const muc_uthinker_layout *layout,
                                enum mur_buffer buffer, const muc_plan *plan)
{
    return muc_fail(ctx, MUC_NOFIT, layout->source, MUC_NO_OFFSET,
                    "%s needs %llu bytes, %llu more than it has, for %u tokens in one call; the "
                    "machine (--machine FILE) must have %s of at least %llu",
                    buffer_names[buffer], (unsigned long long)plan->peak,
                    (unsigned long long)(plan->peak - plan->capacity), layout->options.rows,
                    muc_uthinker_machine_key(buffer),
                    (unsigned long long)aligned(plan->peak, MUC_UTHINKER_BUFFER_MULTIPLE));
}

/* places what lies in one of I0, I1, GB for the layout's rows; *fits says whether it did */
static muc_status place_buffer(muc_context *ctx, muc_uthinker_layout *layout,
                               enum mur_buffer buffer, bool must_fit, bool *fits)
{
    muc_plan_buffer buffers[MUC_PLACE_COUNT];
    uint32_t ids[MUC_PLACE_COUNT];
    muc_plan plan = { .arena = buffer_names[buffer],
                      .capacity = layout->machine.buffer_bytes[buffer],
                      .alignment = SLOT_ALIGNMENT,
                      .buffers = buffers };

    for (uint32_t i = 0; i < MUC_PLACE_COUNT; i++) {
        if (places[i].buffer != buffer)
            continue;
        ids[plan.count] = i;
        buffers[plan.count++] =
            (muc_plan_buffer){ .name = places[i].name,
                               .bytes = place_bytes(layout, (muc_uthinker_place)i),
                               .first = places[i].first,
                               .last = places[i].last };
    }
    MUC_TRY(muc_plan_place(ctx, &plan));
    *fits = plan.peak <= plan.capacity;
    if (!*fits)
        return must_fit ? refuse_buffer(ctx, layout, buffer, &plan) : MUC_OK;
    layout->used_bytes[buffer] = (uint32_t)plan.peak;
    layout->bound_bytes[buffer] = (uint32_t)plan.live_bound;
    for (size_t i = 0; i < plan.count; i++) {
        layout->address[ids[i]] = (uint32_t)buffers[i].address;
        layout->bytes[ids[i]] = (uint32_t)buffers[i].bytes;
    }
    return MUC_OK;
}

/* what lies in a half of a W buffer beside weights */
static muc_status check_half(muc_context *ctx, muc_uthinker_layout *layout, enum mur_buffer buffer,
                             const char *what, uint64_t bytes, bool must_fit, bool *fits)
{
    uint32_t half = layout->machine.buffer_bytes[buffer] / 2;

    if (bytes > half) {
        *fits = false;
        return must_fit
                   ? muc_fail(ctx, MUC_NOFIT, layout->source, MUC_NO_OFFSET,
                              "%s needs %llu bytes, %llu more than half of %s has; the "
                              "machine (--machine FILE) must have %s of at least %llu",
                              what, (unsigned long long)bytes, (unsigned long long)(bytes - half),
                              buffer_names[buffer], muc_uthinker_machine_key(buffer),
                              (unsigned long long)aligned(2 * bytes, MUC_UTHINKER_BUFFER_MULTIPLE))
                   : MUC_OK;
    }
    layout->used_bytes[buffer] = (uint32_t)larger(layout->used_bytes[buffer], bytes);
    layout->bound_bytes[buffer] = layout->used_bytes[buffer];
    return MUC_OK;
}

static muc_status place_all(muc_context *ctx, muc_uthinker_layout *layout, bool must_fit,
                            bool *fits)
{
    const muc_uthinker_terms *terms = &layout->options.terms;
    static const enum mur_buffer planned[] = { MUR_I0, MUR_I1, MUR_GB };
    uint64_t slab_row = muc_uthinker_slots_bytes(muc_uthinker_slab(layout, 0), terms->k);

    layout->value_rows =
        layout->options.rows > 1 ? 2 * layout->machine.tokens : layout->machine.tokens;
    for (size_t i = 0; i < MUC_COUNT(planned); i++) {
        MUC_TRY(place_buffer(ctx, layout, planned[i], must_fit, fits));
        if (!*fits)
            return MUC_OK;
    }
    MUC_TRY(check_half(ctx, layout, MUR_W0, "a chunk of keys", layout->machine.tokens * slab_row,
                       must_fit, fits));
    MUC_TRY(check_half(ctx, layout, MUR_W1, "new keys", layout->options.rows * slab_row, must_fit,
                       fits));
    return check_half(
        ctx, layout, MUR_W0, "a chunk of values",
        product(layout->head_width, muc_uthinker_slots_bytes(layout->machine.tokens, terms->v)),
        must_fit, fits);
}

/* as many rows as fit, but no more than asked for */
static muc_status choose_rows(muc_context *ctx, muc_uthinker_layout *layout)
{
    uint32_t used[MUR_BUFFERS];
    uint32_t asked = layout->options.rows,
             most = smaller(layout->machine.rows, layout->options.context);

    if (asked > most)
        return muc_fail(ctx, MUC_USAGE, layout->source, MUC_NO_OFFSET,
                        "%u tokens in one call, at most %u are possible", asked, most);
    memcpy(used, layout->used_bytes, sizeof(used));
    for (uint32_t rows = asked ? asked : most;; rows--) {
        bool fits = true;

        memcpy(layout->used_bytes, used, sizeof(used));
        layout->options.rows = rows;
        MUC_TRY(place_all(ctx, layout, asked || rows == 1, &fits));
        if (fits)
            return MUC_OK;
    }
}

/* ---- weights ---- */

muc_matrix_shape muc_uthinker_matrix_shape(const muc_uthinker_model *model, muc_matrix_kind kind)
{
    uint32_t d = model->width, layers = model->layers;
    uint32_t queries = model->heads * model->head_width, keys = model->kv_heads * model->head_width;

    switch (kind) {
    case MUC_MATRIX_EMBEDDING:
        return (muc_matrix_shape){ d, model->vocabulary, 1 };
    case MUC_MATRIX_HEAD:
        return (muc_matrix_shape){ d, model->vocabulary, model->tied ? 0 : 1 };
    case MUC_MATRIX_DOWN:
        return (muc_matrix_shape){ model->ffn_width, d, layers };
    case MUC_MATRIX_GATE:
    case MUC_MATRIX_UP:
        return (muc_matrix_shape){ d, model->ffn_width, layers };
    case MUC_MATRIX_O:
        return (muc_matrix_shape){ queries, d, layers };
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

static bool is_streamed(const muc_uthinker_model *model, muc_matrix_kind kind)
{
    return kind == MUC_MATRIX_EMBEDDING ? model->tied : kind != MUC_MATRIX_HEAD || !model->tied;
}

uint64_t muc_uthinker_tiles(const muc_uthinker_machine *machine, uint32_t k, uint32_t n)
{
    uint64_t across = (n + machine->tile_n - 1) / machine->tile_n;

    return product(across, (k + machine->tile_k - 1) / machine->tile_k);
}

/* bytes from a sequence's first block to that of the tiles at and after column `column` */
static uint32_t blocks_before(const muc_uthinker_machine *machine,
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
                uint32_t from = blocks_before(machine, weight, shape.k, s * n + c);
                uint32_t to = blocks_before(machine, weight, shape.k, end);

                if (to - from > most)
                    most = to - from;
            }
    return most;
}

static bool is_ffn(muc_matrix_kind kind)
{
    return kind == MUC_MATRIX_GATE || kind == MUC_MATRIX_UP;
}

/* the narrowest chunk of a kind */
static uint32_t step_of(const muc_uthinker_layout *layout, muc_matrix_kind kind)
{
    uint32_t tile = layout->machine.tile_n; /* both are powers of two */

    return is_ffn(kind) && tile < GATE_COLUMNS ? GATE_COLUMNS : tile;
}

/* bytes of the smallest W buffers that hold the narrowest chunk of every kind twice */
static uint64_t least_buffer(const muc_uthinker_model *model, const muc_uthinker_layout *layout)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < MUC_MATRIX_COUNT; i++) {
        muc_matrix_kind kind = (muc_matrix_kind)i;
        const muc_uthinker_matrix *matrix = &layout->matrix[kind];

        if (is_streamed(model, kind))
            most = larger(most, largest_chunk(&layout->machine, model, kind, matrix->n,
                                              matrix->streams, step_of(layout, kind)));
    }
    return aligned(2 * most, MUC_UTHINKER_BUFFER_MULTIPLE);
}

/* The widest chunk for the given kinds, which share it. */
static muc_status choose_chunk(muc_context *ctx, const muc_uthinker_model *model,
                               muc_uthinker_layout *layout, const muc_matrix_kind *kinds,
                               uint32_t kind_count)
{
    muc_uthinker_matrix *first = &layout->matrix[kinds[0]];
    uint32_t half =
        smaller(layout->machine.buffer_bytes[MUR_W0], layout->machine.buffer_bytes[MUR_W1]) / 2;
    uint32_t step = step_of(layout, kinds[0]), whole = (first->n + step - 1) / step * step;
    uint32_t chunk = smaller(whole, MAX_COLUMNS / step * step), most = 0;

    for (; chunk >= step; chunk -= step) {
        most = 0;
        for (uint32_t i = 0; i < kind_count; i++)
            most = (uint32_t)larger(most, largest_chunk(&layout->machine, model, kinds[i], first->n,
                                                        first->streams, chunk));
        if (most <= half)
            break;
    }
    if (chunk < step)
        return muc_fail(
            ctx, MUC_NOFIT, layout->source, MUC_NO_OFFSET,
            "%u columns of '%s' need %s%u bytes, %u more than half of a W buffer has; the "
            "machine (--machine FILE) must have wbuf0 and wbuf1 of at least %llu",
            step, model->weights[kinds[0]][0].name,
            model->weights[kinds[0]][0].sequence ? "" : "at least ", most, most - half,
            (unsigned long long)least_buffer(model, layout));
    for (uint32_t i = 0; i < kind_count; i++) {
        layout->matrix[kinds[i]].chunk = smaller(chunk, first->n);
        layout->matrix[kinds[i]].chunks = (first->n + chunk - 1) / chunk;
    }
    for (enum mur_buffer w = MUR_W0; w <= MUR_W1; w++) {
        layout->used_bytes[w] = (uint32_t)larger(layout->used_bytes[w], most);
        layout->bound_bytes[w] = layout->used_bytes[w];
    }
    return MUC_OK;
}

static void measure_matrices(const muc_uthinker_model *model, muc_uthinker_layout *layout)
{
    for (uint32_t i = 0; i < MUC_MATRIX_COUNT; i++) {
        muc_matrix_kind kind = (muc_matrix_kind)i;
        muc_matrix_shape shape = muc_uthinker_matrix_shape(model, kind);
        bool by_head = kind == MUC_MATRIX_Q || kind == MUC_MATRIX_K || kind == MUC_MATRIX_V;

        layout->matrix[kind].k = shape.k;
        layout->matrix[kind].streams = by_head ? model->kv_heads : 1;
        layout->matrix[kind].n = shape.n / layout->matrix[kind].streams;
        layout->matrix[kind].table = UINT32_MAX;
    }
}

/* a kv head's columns are loaded by themselves, so they begin with a tile */
static muc_status check_streams(muc_context *ctx, const muc_uthinker_layout *layout)
{
    uint32_t n = layout->matrix[MUC_MATRIX_K].n, tile = layout->machine.tile_n;

    if (layout->kv_heads == 1 || n % tile == 0)
        return MUC_OK;
    return muc_fail(ctx, MUC_UNSUPPORTED, layout->source, MUC_NO_OFFSET,
                    "heads of %u columns do not begin with tiles of %u; the machine (--machine "
                    "FILE) must have a tile_n that divides them",
                    n, tile);
}

static muc_status choose_chunks(muc_context *ctx, const muc_uthinker_model *model,
                                muc_uthinker_layout *layout)
{
    static const muc_matrix_kind ffn[] = { MUC_MATRIX_GATE, MUC_MATRIX_UP };

    measure_matrices(model, layout);
    MUC_TRY(check_streams(ctx, layout));
    for (uint32_t i = 0; i < MUC_MATRIX_COUNT; i++) {
        muc_matrix_kind kind = (muc_matrix_kind)i;

        if (is_streamed(model, kind) && !is_ffn(kind))
            MUC_TRY(choose_chunk(ctx, model, layout, &kind, 1));
    }
    MUC_TRY(choose_chunk(ctx, model, layout, ffn, MUC_COUNT(ffn)));
    if (layout->options.recompute && layout->matrix[MUC_MATRIX_K].chunks > 2)
        return muc_fail(ctx, MUC_NOFIT, layout->source, MUC_NO_OFFSET,
                        "recompute attention keeps a head's '%s' in W1: it takes %u halves; "
                        "--attention cache would do",
                        model->weights[MUC_MATRIX_K][0].name, layout->matrix[MUC_MATRIX_K].chunks);
    return MUC_OK;
}

/* places the kind's sequence at *offset and moves it past */
static muc_status place_sequence(muc_context *ctx, const muc_uthinker_model *model,
                                 muc_matrix_kind kind, muc_uthinker_layout *layout,
                                 uint64_t *offset)
{
    muc_uthinker_matrix *matrix = &layout->matrix[kind];
    muc_matrix_shape shape = muc_uthinker_matrix_shape(model, kind);
    uint64_t tiles = muc_uthinker_tiles(&layout->machine, shape.k, shape.n);
    uint64_t bytes = shape.count ? 4 * (product(tiles, shape.count) + 1) : 0;

    for (uint32_t i = 0; i < shape.count; i++)
        bytes += model->weights[kind][i].bytes - 4 * (tiles + 1);
    if (*offset + bytes > UINT32_MAX)
        return muc_fail(ctx, MUC_NOFIT, layout->source, MUC_NO_OFFSET,
                        "weights up to '%s' take 4 GiB or more", model->weights[kind][0].name);
    matrix->offset = (uint32_t)*offset;
    matrix->bytes = (uint32_t)bytes;
    matrix->tiles = (uint32_t)(tiles * shape.count);
    *offset = aligned(*offset + bytes, SEQUENCE_ALIGNMENT);
    return MUC_OK;
}

/* fills a streamed kind's table; *end grows to what interval analysis sees of it */
static muc_status make_table(muc_context *ctx, muc_arena *arena, const muc_uthinker_model *model,
                             muc_matrix_kind kind, muc_uthinker_layout *layout, uint64_t *end)
{
    muc_uthinker_matrix *matrix = &layout->matrix[kind];
    muc_matrix_shape shape = muc_uthinker_matrix_shape(model, kind);
    uint64_t count = product(product(shape.count, matrix->streams), matrix->chunks) + 1;
    uint32_t offset = matrix->offset + 4 * (matrix->tiles + 1), at = 0, longest = 0, *data;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, count, &data));
    for (uint32_t i = 0; i < shape.count; i++) {
        const muc_uthinker_weight *weight = &model->weights[kind][i];

        for (uint32_t s = 0; s < matrix->streams; s++)
            for (uint32_t c = 0; c < matrix->chunks; c++)
                data[at++] = offset + blocks_before(&layout->machine, weight, shape.k,
                                                    s * matrix->n + c * matrix->chunk);
        offset += blocks_before(&layout->machine, weight, shape.k, shape.n);
    }
    data[at] = offset;
    for (uint32_t i = 0; i < at; i++)
        longest = (uint32_t)larger(longest, data[i + 1] - data[i]);
    *end = larger(*end, (uint64_t)data[at - 1] + longest);
    matrix->table = layout->table_count++;
    matrix->table_count = at + 1;
    matrix->table_data = data;
    return MUC_OK;
}

static muc_status lay_out_weights(muc_context *ctx, muc_arena *arena,
                                  const muc_uthinker_model *model, muc_uthinker_layout *layout)
{
    uint64_t offset = 0, end = 0;

    for (uint32_t i = 0; i < MUC_MATRIX_COUNT; i++)
        MUC_TRY(place_sequence(ctx, model, (muc_matrix_kind)i, layout, &offset));
    for (uint32_t i = 0; i < MUC_MATRIX_COUNT; i++)
        if (is_streamed(model, (muc_matrix_kind)i))
            MUC_TRY(make_table(ctx, arena, model, (muc_matrix_kind)i, layout, &end));
    offset = larger(offset, aligned(end, SEQUENCE_ALIGNMENT));
    if (offset > UINT32_MAX)
        return muc_fail(ctx, MUC_NOFIT, layout->source, MUC_NO_OFFSET,
                        "weights take 4 GiB or more");
    layout->wgts_bytes = (uint32_t)offset;
    return MUC_OK;
}

/* ---- the other regions ---- */

typedef struct region_part {
    uint32_t *offset;
    uint64_t bytes, alignment;
} region_part;

/* one part after the other; the region's size includes `reach`, what intervals see */
static muc_status lay_out_region(muc_context *ctx, const muc_uthinker_layout *layout,
                                 const char *name, const region_part *parts, size_t count,
                                 uint64_t *end)
{
    *end = 0;
    for (size_t i = 0; i < count; i++) {
        *end = aligned(*end, parts[i].alignment);
        if (*end > UINT32_MAX || parts[i].bytes > UINT32_MAX - *end)
            return muc_fail(ctx, MUC_NOFIT, layout->source, MUC_NO_OFFSET,
                            "region %s takes 4 GiB or more", name);
        *parts[i].offset = (uint32_t)*end;
        *end += parts[i].bytes;
    }
    return MUC_OK;
}

static muc_status finish_region(muc_context *ctx, const muc_uthinker_layout *layout,
                                const char *name, uint64_t end, uint64_t reach, uint32_t *bytes)
{
    end = aligned(larger(end, reach), SLOT_ALIGNMENT);
    if (end > UINT32_MAX)
        return muc_fail(ctx, MUC_NOFIT, layout->source, MUC_NO_OFFSET,
                        "region %s takes 4 GiB or more", name);
    *bytes = (uint32_t)end;
    return MUC_OK;
}

static muc_status lay_out_kv(muc_context *ctx, muc_uthinker_layout *layout)
{
    const muc_uthinker_terms *terms = &layout->options.terms;
    uint32_t tokens = layout->machine.tokens;
    bool recompute = layout->options.recompute;
    uint64_t streams = product(layout->layers, layout->kv_heads), padded = layout->padded_context;
    uint64_t rows = layout->options.rows, hd = layout->head_width;
    uint64_t key_head = product(padded, muc_uthinker_slots_bytes(layout->head_width, terms->k));
    uint64_t x_row = muc_uthinker_slots_bytes(layout->width, terms->x), end, reach;
    /* the last possible row, then as many as a call has */
    uint64_t past = layout->options.context - 1 + rows;
    const region_part parts[] = {
        { &layout->k_cache, recompute ? 0 : product(streams, key_head), 1 },
        { &layout->v_cache,
          product(streams, product(padded / tokens,
                                   product(hd, muc_uthinker_slots_bytes(tokens, terms->v)))),
          1 },
        { &layout->v_tail, product(streams, (uint64_t)tokens * 4 * hd), 1 },
        { &layout->x_cache, recompute ? product(product(layout->layers, padded), x_row) : 0, 1 },
    };

    MUC_TRY(lay_out_region(ctx, layout, "KV", parts, MUC_COUNT(parts), &end));
    reach = layout->v_tail + parts[2].bytes + (rows - 1) * 4 * hd;
    if (recompute)
        reach = larger(reach, end - padded * x_row + past * x_row);
    for (uint32_t s = 0; !recompute && s < layout->slabs; s++) {
        uint64_t before = padded * muc_uthinker_slots_bytes(layout->machine.tile_k * s, terms->k);
        uint64_t row = muc_uthinker_slots_bytes(muc_uthinker_slab(layout, s), terms->k);

        reach = larger(reach, (streams - 1) * key_head + before + past * row);
    }
    return finish_region(ctx, layout, "KV", end, reach, &layout->kv_bytes);
}

/* The longest context that DRAM holds, in whole chunks, or 0. */
static uint32_t context_for(const muc_uthinker_layout *layout, uint64_t surplus)
{
    uint64_t caches = (uint64_t)layout->v_tail + layout->kv_bytes - layout->x_cache;
    uint32_t tokens = layout->machine.tokens;
    uint64_t chunks = layout->padded_context / tokens, chunk = caches / chunks;
    uint64_t fewer = chunk != 0 ? surplus / chunk + 1 : chunks;

    return fewer < chunks ? (uint32_t)(chunks - fewer) * tokens : 0;
}

static muc_status check_dram(muc_context *ctx, const muc_uthinker_layout *layout)
{
    uint64_t need = (uint64_t)layout->kv_bytes + layout->io_bytes, has = layout->machine.dram_bytes;
    uint32_t context;

    if (has == 0 || need <= has)
        return MUC_OK;
    context = context_for(layout, need - has);
    muc_fail(ctx, MUC_NOFIT, layout->source, MUC_NO_OFFSET,
             "DRAM needs %llu bytes, %llu more than the machine has; KV takes %u of them for a "
             "context of %u",
             (unsigned long long)need, (unsigned long long)(need - has), layout->kv_bytes,
             layout->options.context);
    if (context != 0)
        muc_hint(ctx, "--ctx-size %u would do", context);
    muc_hint(ctx,
             "fewer terms (--act-terms k=1,v=1) would help, as would a machine (--machine FILE) "
             "with dram = %llu",
             (unsigned long long)need);
    return MUC_NOFIT;
}

static muc_status lay_out_regions(muc_context *ctx, muc_uthinker_layout *layout)
{
    uint64_t rows = layout->options.rows, d = layout->width, row = 4 * (uint64_t)layout->head_width;
    uint64_t context = layout->options.context, gains = product(layout->layers, 4 * d), end, reach;
    const region_part io[] = {
        { &layout->tokens, 4 * rows, IO_ALIGNMENT },
        { &layout->embedded, product(rows, 4 * d), IO_ALIGNMENT },
        { &layout->logits, 4 * (uint64_t)layout->vocabulary, IO_ALIGNMENT },
    };
    const region_part parm[] = {
        { &layout->rope, product(context, row), 1 },
        { &layout->gain_attention, gains, 1 },
        { &layout->gain_ffn, gains, 1 },
        { &layout->gain_final, 4 * d, 1 },
    };

    MUC_TRY(lay_out_region(ctx, layout, "IO", io, MUC_COUNT(io), &end));
    MUC_TRY(finish_region(ctx, layout, "IO", end, 0, &layout->io_bytes));
    MUC_TRY(lay_out_region(ctx, layout, "PARM", parm, MUC_COUNT(parm), &end));
    reach = product(context - 1 + rows, row);
    if (layout->options.recompute)
        reach = larger(reach, product(layout->padded_context, row));
    MUC_TRY(finish_region(ctx, layout, "PARM", end, reach, &layout->parm_bytes));
    MUC_TRY(lay_out_kv(ctx, layout));
    return check_dram(ctx, layout);
}

/* what follows from the model and the options alone */
static muc_status begin(muc_context *ctx, const muc_uthinker_model *model,
                        const muc_uthinker_machine *machine, const muc_uthinker_options *options,
                        muc_uthinker_layout *layout)
{
    uint32_t context = options->context ? options->context : model->context;

    *layout = (muc_uthinker_layout){
        .source = model->source,
        .machine = *machine,
        .options = *options,
        .layers = model->layers,
        .width = model->width,
        .heads = model->heads,
        .kv_heads = model->kv_heads,
        .head_width = model->head_width,
        .ffn_width = model->ffn_width,
        .vocabulary = model->vocabulary,
        .tied = model->tied,
        .group = model->heads / model->kv_heads,
        .slabs = (model->head_width + machine->tile_k - 1) / machine->tile_k,
        .epsilon = muc_f32_bits(model->epsilon),
        .scale = muc_f32_bits(model->scale),
        .padded_context = (context + machine->tokens - 1) / machine->tokens * machine->tokens,
    };
    layout->options.context = context;
    if (context <= model->context)
        return MUC_OK;
    return muc_fail(ctx, MUC_USAGE, layout->source, MUC_NO_OFFSET,
                    "a context of %u, the model has positions for %u", context, model->context);
}

muc_status muc_uthinker_lay_out(muc_context *ctx, muc_arena *arena, const muc_uthinker_model *model,
                                const muc_uthinker_machine *machine,
                                const muc_uthinker_options *options, muc_uthinker_layout *out)
{
    MUC_TRY(begin(ctx, model, machine, options, out));
    MUC_TRY(choose_chunks(ctx, model, out));
    MUC_TRY(choose_rows(ctx, out));
    MUC_TRY(lay_out_regions(ctx, out));
    return lay_out_weights(ctx, arena, model, out);
}

muc_status muc_uthinker_lay_out_least(muc_context *ctx, const muc_uthinker_model *model,
                                      const muc_uthinker_machine *machine,
                                      const muc_uthinker_options *options, muc_uthinker_layout *out)
{
    uint64_t end = 0;

    MUC_TRY(begin(ctx, model, machine, options, out));
    MUC_TRY(choose_chunks(ctx, model, out));
    for (uint32_t i = 0; i < MUC_MATRIX_COUNT; i++) {
        muc_matrix_kind kind = (muc_matrix_kind)i;

        out->matrix[kind].chunk = smaller(out->matrix[kind].n, step_of(out, kind));
        MUC_TRY(place_sequence(ctx, model, kind, out, &end));
    }
    out->wgts_bytes = (uint32_t)end;
    if (out->options.rows == 0)
        out->options.rows = 1;
    MUC_TRY(choose_rows(ctx, out));
    return lay_out_regions(ctx, out);
}
