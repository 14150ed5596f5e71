/* uthinker_layout.c - sizes, placement, region offsets. */
#include "targets/uthinker/lower/layout_parts.h"

#include <string.h>

#include "base/half.h"
#include "mur_block.h"
#include "plan/place.h"

enum {
    LEAST_TILE = 8, /* of queries; a power of two, as the largest is: a block of values */
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

const char *muc_uthinker_buffer_name(enum mur_buffer buffer)
{
    return buffer_names[buffer];
}

enum mur_buffer muc_uthinker_place_buffer(const muc_uthinker_chip *chip, muc_uthinker_place place)
{
    if (chip->exchanged && place == MUC_PLACE_N)
        return places[MUC_PLACE_H].buffer;
    if (chip->exchanged && place == MUC_PLACE_H)
        return places[MUC_PLACE_N].buffer;
    return places[place].buffer;
}

/* the last step that reads a place */
static uint32_t last_step(const muc_uthinker_layout *layout, uint32_t place)
{
    bool later = place == MUC_PLACE_X || place == MUC_PLACE_OA || place == MUC_PLACE_VT;

    if (place == MUC_PLACE_QF && layout->heads_made > 1)
        return MUC_STEP_ATTENTION;
    return later && layout->o_parts > 1 ? MUC_STEP_O : places[place].last;
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

uint32_t muc_uthinker_key_bytes(const muc_uthinker_layout *layout, const muc_uthinker_terms *terms,
                                uint32_t s)
{
    uint32_t bytes = 0;

    for (uint32_t i = 0; i < s; i++)
        bytes += muc_uthinker_slots_bytes(muc_uthinker_slab(layout, i), terms->k);
    return bytes;
}

uint32_t muc_uthinker_query_columns(const muc_uthinker_layout *layout)
{
    return layout->heads_made * layout->group * layout->head_width;
}

uint32_t muc_uthinker_key_columns(const muc_uthinker_layout *layout)
{
    return layout->heads_made * layout->head_width;
}

bool muc_uthinker_keeps_queries(const muc_uthinker_layout *layout, const muc_uthinker_chip *chip)
{
    return layout->heads_made > 1 && chip->rows == 1;
}

bool muc_uthinker_adds_apart(const muc_uthinker_layout *layout)
{
    return layout->vector_elements[MUC_VECTOR_O_NORM] != 0 ||
           layout->vector_elements[MUC_VECTOR_DOWN_NORM] != 0 ||
           layout->residual_factor != MUC_UTHINKER_ONE;
}

/* ---- the on-chip buffers ---- */

/* bytes of a place in an entry */
static uint64_t place_bytes(const muc_uthinker_layout *layout, const muc_uthinker_chip *chip,
                            muc_uthinker_place place)
{
    const muc_uthinker_terms *terms = &layout->options.terms;
    bool recompute = layout->options.recompute;
    uint64_t rows = chip->rows, d = layout->width, hd = layout->head_width;
    uint32_t kept = muc_uthinker_keeps_queries(layout, chip) ? layout->heads_made : 1;
    uint64_t queries = product(rows, kept * layout->group),
             tile = product(chip->tile, layout->group);
    uint64_t turned = 4 * (uint64_t)layout->rotary;
    uint32_t all_heads = layout->heads * layout->head_width;

    switch (place) {
    case MUC_PLACE_X:
        return product(rows, muc_uthinker_slots_bytes(layout->width, terms->x));
    case MUC_PLACE_XC:
        return recompute ? product(layout->machine.tokens,
                                   muc_uthinker_slots_bytes(layout->width, terms->x))
                         : 0;
    case MUC_PLACE_A:
        return product(rows, muc_uthinker_slots_bytes(all_heads / layout->o_parts, terms->o));
    case MUC_PLACE_H:
        return product(rows,
                       muc_uthinker_slots_bytes(layout->ffn_width / layout->ffn_parts, terms->h));
    case MUC_PLACE_Q:
        return product(queries, muc_uthinker_slots_bytes(layout->head_width, terms->q));
    case MUC_PLACE_P:
        return product(tile, muc_uthinker_slots_bytes(layout->machine.tokens, terms->p)) +
               (chip->rows > 1
                    ? muc_uthinker_slots_bytes(layout->machine.tokens - MUR_BLOCK_ELEMS, terms->p)
                    : 0);
    case MUC_PLACE_N:
        return larger(product(rows, muc_uthinker_slots_bytes(layout->width, terms->f)),
                      muc_uthinker_slots_bytes(layout->width, terms->l));
    case MUC_PLACE_RES:
        return product(rows, 4 * d);
    case MUC_PLACE_TB:
        return product(layout->angles, product(rows, turned));
    case MUC_PLACE_QA:
        return layout->whole_norms ? product(rows, product(4, all_heads)) : 0;
    case MUC_PLACE_KA:
        return layout->whole_norms ? product(rows, product(layout->kv_heads, 4 * hd)) : 0;
    case MUC_PLACE_KF:
        return product(rows, product(4, muc_uthinker_key_columns(layout)));
    case MUC_PLACE_GN:
        return product(layout->gain_rows, 4 * d);
    case MUC_PLACE_OT:
        return muc_uthinker_adds_apart(layout) ? product(rows, 4 * d) : 0;
    case MUC_PLACE_EX:
        return 4 * (uint64_t)layout->row_elements;
    case MUC_PLACE_QF:
        return product(rows, product(4, muc_uthinker_query_columns(layout)));
    case MUC_PLACE_OA:
        return product(queries, 4 * hd);
    case MUC_PLACE_VT:
        return product(chip->value_rows, product(4, muc_uthinker_key_columns(layout)));
    case MUC_PLACE_SC:
        return product(tile, 4 * layout->machine.tokens);
    case MUC_PLACE_ML:
        return product(queries, 8);
    case MUC_PLACE_TC:
        return recompute ? product(layout->machine.tokens, turned) : 0;
    case MUC_PLACE_KC:
        return recompute ? product(layout->machine.tokens, 4 * hd) : 0;
    case MUC_PLACE_AT:
        return layout->o_parts > 1 ? 0 : product(rows, product(4, all_heads));
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
                                const muc_uthinker_chip *chip, enum mur_buffer buffer,
                                const muc_plan *plan)
{
    return muc_fail(ctx, MUC_NOFIT, layout->source, MUC_NO_OFFSET,
                    "%s needs %llu bytes, %llu more than it has, for %u tokens in one call; the "
                    "machine (--machine FILE) must have %s of at least %llu",
                    buffer_names[buffer], (unsigned long long)plan->peak,
                    (unsigned long long)(plan->peak - plan->capacity), chip->rows,
                    muc_uthinker_machine_key(buffer),
                    (unsigned long long)aligned(plan->peak, MUC_UTHINKER_BUFFER_MULTIPLE));
}

/* what a DMA writes or reads in GB while ACC works on something else there */
static bool is_shared(uint32_t place)
{
    return place == MUC_PLACE_GN || place == MUC_PLACE_EX || place == MUC_PLACE_VT ||
           place == MUC_PLACE_LG;
}

enum { ANY_PLACE, SHARED_PLACES, OTHER_PLACES };

static bool is_among(uint32_t place, uint32_t which)
{
    return which == ANY_PLACE || is_shared(place) == (which == SHARED_PLACES);
}

/* Bytes of a place that an interval sees behind its end: a tile's first row and its number of rows,
 * the probabilities of a block before a query and of its tile, a block of values, or the row of
 * values that is stored and a step before it, each at its most. */
static uint64_t bytes_behind(const muc_uthinker_layout *layout, const muc_uthinker_chip *chip,
                             uint32_t place)
{
    uint32_t tokens = layout->machine.tokens, seen = MUR_BLOCK_ELEMS - 1 + chip->tile;
    bool one = chip->rows == 1;

    switch (place) {
    case MUC_PLACE_Q:
    case MUC_PLACE_OA:
    case MUC_PLACE_ML:
        return place_bytes(layout, chip, (muc_uthinker_place)place) / chip->rows * (chip->tile - 1);
    case MUC_PLACE_P:
        return one || seen <= tokens
                   ? 0
                   : muc_uthinker_slots_bytes(seen, layout->options.terms.p) -
                         muc_uthinker_slots_bytes(tokens, layout->options.terms.p);
    case MUC_PLACE_VT:
        return product(one ? 1 : 2 * MUR_BLOCK_ELEMS - 1,
                       product(4, muc_uthinker_key_columns(layout)));
    default:
        return 0;
    }
}

/* bytes by which a plan's places, with what intervals see behind them, exceed its capacity */
static uint64_t bytes_beyond(const muc_uthinker_layout *layout, const muc_uthinker_chip *chip,
                             const muc_plan *plan, const uint32_t *ids)
{
    uint64_t most = plan->capacity;

    for (size_t i = 0; i < plan->count; i++)
        most = larger(most, plan->buffers[i].address + plan->buffers[i].bytes +
                                bytes_behind(layout, chip, ids[i]));
    return most - plan->capacity;
}

/* the other way around: what was at the end lies at the begin, and behind what lies at the end now
 * there is as much as intervals see */
static void turn_around(const muc_uthinker_layout *layout, const muc_uthinker_chip *chip,
                        muc_plan *plan, const uint32_t *ids)
{
    uint64_t beyond;

    for (size_t i = 0; i < plan->count; i++) {
        muc_plan_buffer *b = &plan->buffers[i];

        b->address = (plan->capacity - b->address - b->bytes) & ~(plan->alignment - 1);
    }
    beyond = aligned(bytes_beyond(layout, chip, plan, ids), plan->alignment);
    plan->peak += beyond;
    for (size_t i = 0; i < plan->count && plan->peak <= plan->capacity; i++)
        plan->buffers[i].address -= beyond;
}

/* The buffer's places, or some of them, in capacity bytes from `base` on. */
static muc_status plan_places(muc_context *ctx, const muc_uthinker_layout *layout,
                              muc_uthinker_chip *chip, enum mur_buffer buffer, uint32_t which,
                              uint64_t base, muc_plan *plan)
{
    uint32_t ids[MUC_PLACE_COUNT];

    plan->arena = buffer_names[buffer];
    plan->alignment = SLOT_ALIGNMENT;
    plan->count = 0;
    for (uint32_t i = 0; i < MUC_PLACE_COUNT; i++) {
        if (muc_uthinker_place_buffer(chip, (muc_uthinker_place)i) != buffer || !is_among(i, which))
            continue;
        ids[plan->count] = i;
        plan->buffers[plan->count++] =
            (muc_plan_buffer){ .name = places[i].name,
                               .bytes = place_bytes(layout, chip, (muc_uthinker_place)i),
                               .first = places[i].first,
                               .last = last_step(layout, i) };
    }
    MUC_TRY(muc_plan_place(ctx, plan));
    if (plan->peak > plan->capacity)
        return MUC_OK;
    if (bytes_beyond(layout, chip, plan, ids) > 0)
        turn_around(layout, chip, plan, ids);
    for (size_t i = 0; i < plan->count; i++)
        chip->address[ids[i]] = (uint32_t)(base + plan->buffers[i].address);
    if (layout->o_parts > 1)
        chip->address[MUC_PLACE_AT] = chip->address[MUC_PLACE_OA];
    return MUC_OK;
}

/* places what lies in one of I0, I1, GB for the chip's rows; *fits says whether it did */
static muc_status place_buffer(muc_context *ctx, muc_uthinker_layout *layout,
                               muc_uthinker_chip *chip, enum mur_buffer buffer, bool must_fit,
                               bool *fits)
{
    muc_plan_buffer buffers[MUC_PLACE_COUNT];
    muc_plan plan = { .capacity = layout->machine.buffer_bytes[buffer], .buffers = buffers };

    MUC_TRY(plan_places(ctx, layout, chip, buffer, ANY_PLACE, 0, &plan));
    *fits = plan.peak <= plan.capacity;
    if (!*fits)
        return must_fit ? refuse_buffer(ctx, layout, chip, buffer, &plan) : MUC_OK;
    note_use(layout, buffer, plan.peak, plan.live_bound);
    return MUC_OK;
}

/* GB once more in two parts, a bank each, if they fit: so few instructions of ACC wait for a DMA */
static muc_status place_apart(muc_context *ctx, muc_uthinker_layout *layout,
                              muc_uthinker_chip *chip)
{
    uint32_t half = layout->machine.buffer_bytes[MUR_GB] / 2;
    muc_plan_buffer buffers[MUC_PLACE_COUNT];
    muc_plan upper = { .capacity = half, .buffers = buffers }, lower = upper;
    muc_uthinker_chip two = *chip;

    if (layout->options.recompute)
        return MUC_OK;
    MUC_TRY(plan_places(ctx, layout, &two, MUR_GB, SHARED_PLACES, half, &upper));
    MUC_TRY(plan_places(ctx, layout, &two, MUR_GB, OTHER_PLACES, 0, &lower));
    if (upper.peak > half || lower.peak > half)
        return MUC_OK;
    *chip = two;
    chip->apart = true;
    note_use(layout, MUR_GB, upper.peak + lower.peak, 0);
    return MUC_OK;
}

/* Whether a place lies in GB's lower bank, or in the upper one. */
static bool is_in_bank(const muc_uthinker_layout *layout, const muc_uthinker_chip *chip,
                       muc_uthinker_place place, bool upper)
{
    uint32_t half = layout->machine.buffer_bytes[MUR_GB] / 2, address = chip->address[place];

    return upper ? address >= half : address + place_bytes(layout, chip, place) <= half;
}

/* what a DMA moves between a call's begin and its head lies in the other bank than RES */
static bool is_residual_apart(const muc_uthinker_layout *layout, const muc_uthinker_chip *chip)
{
    return !layout->options.recompute && is_in_bank(layout, chip, MUC_PLACE_RES, false) &&
           is_in_bank(layout, chip, MUC_PLACE_GN, true) &&
           is_in_bank(layout, chip, MUC_PLACE_VT, true) &&
           (layout->row_elements == 0 || is_in_bank(layout, chip, MUC_PLACE_EX, true));
}

/* what lies in a half of a W buffer beside weights */
static muc_status check_half(muc_context *ctx, muc_uthinker_layout *layout, const char *what,
                             uint64_t bytes, bool must_fit, bool *fits)
{
    const uint32_t *buffers = layout->machine.buffer_bytes;
    enum mur_buffer smaller_one = buffers[MUR_W0] < buffers[MUR_W1] ? MUR_W0 : MUR_W1;
    uint32_t half = buffers[smaller_one] / 2;

    if (bytes <= half) {
        for (enum mur_buffer w = MUR_W0; w <= MUR_W1; w++)
            note_use(layout, w, buffers[w] / 2 + bytes, buffers[w] / 2 + bytes);
        return MUC_OK;
    }
    *fits = false;
    if (!must_fit)
        return MUC_OK;
    return muc_fail(ctx, MUC_NOFIT, layout->source, MUC_NO_OFFSET,
                    "%s need %llu bytes, %llu more than half of %s has; the machine (--machine "
                    "FILE) must have wbuf0 and wbuf1 of at least %llu",
                    what, (unsigned long long)bytes, (unsigned long long)(bytes - half),
                    buffer_names[smaller_one],
                    (unsigned long long)aligned(2 * bytes, MUC_UTHINKER_BUFFER_MULTIPLE));
}

/* Groups of as many steps as a half holds, and beside them, of keys, what a call may add. */
static muc_status place_steps(muc_context *ctx, muc_uthinker_layout *layout,
                              muc_uthinker_chip *chip, bool must_fit, bool *fits)
{
    uint32_t half =
        smaller(layout->machine.buffer_bytes[MUR_W0], layout->machine.buffer_bytes[MUR_W1]) / 2;
    uint32_t tokens = layout->machine.tokens, chunks = layout->padded_context / tokens;
    uint32_t most = smaller(MUC_UTHINKER_MOST_STEPS, chunks);
    uint64_t key =
        product(tokens, muc_uthinker_key_bytes(layout, &layout->options.terms, layout->slabs));
    uint64_t value =
        product(layout->head_width, muc_uthinker_slots_bytes(tokens, layout->options.terms.v));
    uint64_t more = chip->rows > 1 ? key : 0;

    if (layout->options.recompute) { /* a slab, and a step, at a time */
        key = product(tokens, muc_uthinker_slots_bytes(muc_uthinker_slab(layout, 0),
                                                       layout->options.terms.k));
        most = 1;
        more = 0;
    }
    chip->steps = most;
    while (chip->steps > 1 && (chip->steps * key + more > half || chip->steps * value > half))
        chip->steps--;
    chip->key_rows = chip->steps * tokens + (more ? tokens : 0);
    MUC_TRY(
        check_half(ctx, layout, "the keys of a step", chip->steps * key + more, must_fit, fits));
    return check_half(ctx, layout, "the values of a step", chip->steps * value, must_fit, fits);
}

/* everything for the chip's rows, tile and exchange; *fits says whether it did */
static muc_status place_once(muc_context *ctx, muc_uthinker_layout *layout, muc_uthinker_chip *chip,
                             bool must_fit, bool *fits)
{
    static const enum mur_buffer planned[] = { MUR_I0, MUR_I1, MUR_GB };

    *fits = true;
    chip->value_rows = layout->machine.tokens + (chip->rows > 1 ? chip->rows : 0);
    chip->late = layout->options.split.late && chip->rows > 1;
    for (size_t i = 0; i < MUC_COUNT(planned); i++) {
        MUC_TRY(place_buffer(ctx, layout, chip, planned[i], must_fit, fits));
        if (!*fits)
            return MUC_OK;
    }
    MUC_TRY(place_steps(ctx, layout, chip, must_fit, fits));
    if (*fits)
        MUC_TRY(place_apart(ctx, layout, chip));
    chip->residual_apart = *fits && is_residual_apart(layout, chip);
    return MUC_OK;
}

/* the largest tiles of queries that fit, with N and H where they are, or exchanged */
static muc_status place_all(muc_context *ctx, muc_uthinker_layout *layout, muc_uthinker_chip *chip,
                            bool must_fit, bool *fits)
{
    const muc_uthinker_layout before = *layout;
    uint32_t rows = chip->rows, least = rows > 1 ? LEAST_TILE : 1;

    for (uint32_t tile = rows > 1 ? MUR_BLOCK_ELEMS : 1; tile >= least; tile /= 2)
        for (unsigned exchanged = 0; exchanged < 2; exchanged++) {
            *layout = before;
            chip->tile = tile;
            chip->exchanged = exchanged;
            MUC_TRY(place_once(ctx, layout, chip, must_fit && tile == least && exchanged, fits));
            if (*fits)
                return MUC_OK;
        }
    return MUC_OK;
}

/* as many rows as fit, but no more than asked for */
static muc_status choose_rows(muc_context *ctx, muc_uthinker_layout *layout)
{
    const muc_uthinker_layout before = *layout;
    uint32_t asked = layout->options.rows,
             most = smaller(layout->machine.rows, layout->options.context);
    bool fits;

    if (asked > most)
        return muc_fail(ctx, MUC_USAGE, layout->source, MUC_NO_OFFSET,
                        "%u tokens in one call, at most %u are possible", asked, most);
    for (uint32_t rows = asked ? asked : most;; rows--) {
        *layout = before;
        layout->options.rows = layout->prefill.rows = rows;
        MUC_TRY(place_all(ctx, layout, &layout->prefill, asked || rows == 1, &fits));
        if (fits)
            break;
    }
    layout->decode.rows = 1;
    return place_all(ctx, layout, &layout->decode, true, &fits);
}

/* ---- weights ---- */

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

/* Fills a streamed kind's table; *end grows to what interval analysis sees of it: the load of what
 * would follow the last chunk, too, of 0 bytes at the end. */
static muc_status make_table(muc_context *ctx, muc_arena *arena, const muc_uthinker_model *model,
                             muc_matrix_kind kind, muc_uthinker_layout *layout, uint64_t *end)
{
    muc_uthinker_matrix *matrix = &layout->matrix[kind];
    muc_matrix_shape shape = muc_uthinker_matrix_shape(model, kind);
    uint64_t count = product(product(shape.count, matrix->streams), matrix->chunks) + 2;
    uint32_t offset = matrix->offset + 4 * (matrix->tiles + 1), at = 0, *data;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, count, &data));
    for (uint32_t i = 0; i < shape.count; i++) {
        const muc_uthinker_weight *weight = &model->weights[kind][i];

        for (uint32_t s = 0; s < matrix->streams; s++)
            for (uint32_t c = 0; c < matrix->chunks; c++)
                data[at++] = offset + muc_layout_blocks_before(&layout->machine, weight, shape.k,
                                                               s * matrix->n + c * matrix->chunk);
        offset += muc_layout_blocks_before(&layout->machine, weight, shape.k, shape.n);
    }
    data[at] = data[at + 1] = offset;
    for (uint32_t i = 0; i < at; i++) {
        uint32_t *most =
            i % matrix->chunks + 1 < matrix->chunks ? &matrix->most : &matrix->most_last;

        *most = (uint32_t)larger(*most, data[i + 1] - data[i]);
    }
    if (kind == MUC_MATRIX_V && !layout->whole_norms) /* of which nothing is loaded ahead */
        at--;
    *end = larger(*end, data[at] + larger(matrix->most, matrix->most_last));
    matrix->table = layout->table_count++;
    matrix->table_count = (uint32_t)count;
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
        if (muc_layout_is_streamed(model, (muc_matrix_kind)i))
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
    uint64_t streams = product(layout->layers, layout->kv_heads), end, reach;
    uint64_t rows = layout->options.rows, hd = layout->head_width;
    uint64_t value_row = product(4, muc_uthinker_key_columns(layout));
    muc_uthinker_caches bytes;
    region_part parts[] = {
        { &layout->k_cache, 0, 1 },
        { &layout->v_cache, 0, 1 },
        { &layout->v_tail, product(streams, (uint64_t)layout->machine.tokens * 4 * hd), 1 },
        { &layout->x_cache, 0, 1 },
    };

    layout->k_cache = layout->v_cache = layout->x_cache = 0;
    bytes = muc_uthinker_caches_of(layout, layout->layers);
    parts[0].bytes = bytes.k;
    parts[1].bytes = bytes.v;
    parts[3].bytes = bytes.x;
    MUC_TRY(lay_out_region(ctx, layout, "KV", parts, MUC_COUNT(parts), &end));
    reach = layout->v_tail + parts[2].bytes + product(rows - 1, value_row);
    reach = larger(reach, muc_layout_reach_of_caches(layout));
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
    uint64_t rows = layout->options.rows, d = layout->width, row = 4 * (uint64_t)layout->rotary;
    uint64_t context = layout->options.context, end, reach;
    uint64_t gains = layout->input_norms ? product(layout->own_layers, 4 * d) : 0;
    const region_part io[] = {
        { &layout->tokens, 4 * rows, IO_ALIGNMENT },
        { &layout->embedded, product(rows, 4 * d), IO_ALIGNMENT },
        { &layout->logits, 4 * (uint64_t)layout->vocabulary, IO_ALIGNMENT },
        { &layout->choice, 8, IO_ALIGNMENT },
    };
    const region_part parm[] = {
        { &layout->rope, product(layout->angles, product(context, row)), 1 },
        { &layout->gain_attention, gains, 1 },
        { &layout->gain_final, 4 * d, 1 },
        { &layout->gain_ffn, gains, 1 },
        { &layout->vectors, product(layout->own_layers, 4 * (uint64_t)layout->row_elements), 1 },
    };

    MUC_TRY(lay_out_region(ctx, layout, "IO", io, MUC_COUNT(io), &end));
    MUC_TRY(finish_region(ctx, layout, "IO", end, 0, &layout->io_bytes));
    MUC_TRY(lay_out_region(ctx, layout, "PARM", parm, MUC_COUNT(parm), &end));
    reach = product((layout->angles - 1) * context + context - 1 + rows, row);
    if (layout->options.recompute)
        reach =
            larger(reach, product((layout->angles - 1) * context + layout->padded_context, row));
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
        .own_layers = model->own_layers,
        .row_elements = model->row_elements,
        .width = model->width,
        .heads = model->heads,
        .kv_heads = model->kv_heads,
        .head_width = model->head_width,
        .ffn_width = model->ffn_width,
        .vocabulary = model->vocabulary,
        .tied = model->tied,
        .ffn_parts = model->ffn_parts,
        .o_parts = model->o_parts,
        .heads_made = options->split.together && !options->recompute ? model->kv_heads : 1,
        .gain_rows =
            options->split.gains_once && model->input_norms ? 2 * model->own_layers + 1 : 1,
        .group = model->heads / model->kv_heads,
        .slabs = (model->head_width + machine->tile_k - 1) / machine->tile_k,
        .epsilon = muc_f32_bits(model->epsilon),
        .scale = muc_f32_bits(model->score_cap > 0 ? 1 : model->scale),
        .gelu = model->gelu,
        .input_norms = model->input_norms,
        .whole_norms = model->whole_norms,
        .rotary = model->rotary,
        .angles = model->angles,
        .windows = model->windows,
        .angle_sums = model->angle_sums,
        .embedding_factor = muc_f32_bits(model->embedding_factor),
        .residual_factor = muc_f32_bits(model->residual_factor),
        .logit_factor = muc_f32_bits(model->logit_factor),
        .score_factor = muc_f32_bits(model->score_factor),
        .score_cap = muc_f32_bits(model->score_cap),
        .logit_uncap = muc_f32_bits(model->logit_uncap),
        .logit_cap = muc_f32_bits(model->logit_cap),
        .padded_context = (context + machine->tokens - 1) / machine->tokens * machine->tokens,
    };
    layout->options.context = context;
    muc_layout_join_terms(layout);
    memcpy(layout->vector_elements, model->vector_elements, sizeof(layout->vector_elements));
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
    MUC_TRY(muc_layout_choose_chunks(ctx, model, out));
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
    MUC_TRY(muc_layout_choose_chunks(ctx, model, out));
    for (uint32_t i = 0; i < MUC_MATRIX_COUNT; i++) {
        muc_matrix_kind kind = (muc_matrix_kind)i;

        out->matrix[kind].chunk = smaller(out->matrix[kind].n, muc_layout_step_of(out, kind));
        MUC_TRY(place_sequence(ctx, model, kind, out, &end));
    }
    out->wgts_bytes = (uint32_t)end;
    if (out->options.rows == 0)
        out->options.rows = 1;
    MUC_TRY(choose_rows(ctx, out));
    return lay_out_regions(ctx, out);
}
