/* fast_product.c - the simulator's fast product: whose turn it is, and its tables.
 *
 * The sum of a block's products is an exact integer, so its order is free: elements of even index
 * come first, then those of odd index, as the nibbles of 16 bytes lie. Weights carry an offset of
 * BIAS, which makes them unsigned as the processor's dot product wants them; the sum starts at what
 * takes it out again. Only the additions across blocks have an order to keep, in each column.
 */
#include "targets/uthinker/sim/fast_product_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/system.h"
#include "base/threads.h"
#include "quant/bd_table.h"
#include "targets/uthinker/sim/fast_vector.h"
#include "targets/uthinker/sim/uthinker_sim_execute.h"

#if defined(__x86_64__) && defined(__GNUC__)

enum {
    B5_PLANE = 4, /* bytes */
    MOST_THREADS = 64,
    LEAST_SHARED = 12000,  /* elements of weights, times rows and what reading them takes */
    LEAST_LINES = 1500,    /* elements of lines */
    LEAST_PACKED_ROWS = 8, /* for a thread that does not share columns, */
    LEAST_ROWS = 16,       /* and where right operands are not packed */
    AHEAD = 1024,          /* bytes */
    CHUNK_BYTES = 16 << 20
};

static size_t thread_count(muc_context *ctx)
{
    size_t threads = muc_context_threads(ctx);

    return threads < MOST_THREADS ? threads : MOST_THREADS;
}

size_t muc_fast_threads(const muc_fast_product *product)
{
    return thread_count(product->ctx);
}

static void make_tables(muc_fast_product *product)
{
    for (uint32_t d = 0; d < B5_TABLE; d++)
        for (uint32_t i = 0; i < 8; i++) {
            product->table[d][i] = (uint8_t)(BIAS + muc_bd_dialects[d][i]);
            product->table[d][8 + i] = (uint8_t)(BIAS - muc_bd_dialects[d][i]);
        }
    for (uint32_t i = 0; i < 16; i++)
        product->table[B5_TABLE][i] = (uint8_t)(BIAS + i);
    for (uint32_t plane = 0; plane <= B5_PLANE; plane += B5_PLANE) {
        product->usual[HALF + 2 + plane] = 1;
        product->usual[MUR_BLOCK_SHARED | (HALF + plane)] = 1;
    }
}

/* ---- right operands that were there before ---- */

/* Its place, or a free one. */
static known_operand *find_operand(known_operand *operands, size_t places, const uint8_t *right)
{
    size_t at = (size_t)((uintptr_t)right * 0x9e3779b97f4a7c15u >> 20) & (places - 1);

    while (operands[at].right && operands[at].right != right)
        at = (at + 1) & (places - 1);
    return &operands[at];
}

/* Room for `more` operands and starts; false: there is no memory, and nothing is remembered. */
static bool make_room(muc_fast_product *product, size_t more, size_t starts)
{
    size_t places = product->places ? product->places : 1024;
    size_t room = product->start_room ? product->start_room : 4096;
    known_operand *operands;
    uint32_t *grown;

    while (room < product->start_count + starts)
        room *= 2;
    if (room != product->start_room) {
        grown = realloc(product->starts, room * sizeof(*grown));
        if (!grown)
            return false;
        product->starts = grown;
        product->start_room = room;
    }
    while (places < 2 * (product->operand_count + more))
        places *= 2;
    if (places == product->places)
        return true;
    operands = calloc(places, sizeof(*operands));
    if (!operands)
        return false;
    for (size_t i = 0; i < product->places; i++)
        if (product->operands[i].right)
            *find_operand(operands, places, product->operands[i].right) = product->operands[i];
    free(product->operands);
    product->operands = operands;
    product->places = places;
    return true;
}

static uint32_t groups_of(const mur_sim_product *op)
{
    return (op->cols + COLUMNS - 1) / COLUMNS;
}

/* The same as muc_fast_find_starts, where all columns have blocks as long as the first one's, as
 * those of keys and values do: what lies where is known without a walk. */
static bool find_even_starts(const mur_sim_product *op, uint32_t *starts, uint32_t *bytes)
{
    uint32_t offset[MUR_SIM_BLOCKS], blocks = blocks_of(op->k), column = 0, unlike = 0;
    size_t room = (size_t)(op->right_end - op->right);

    for (uint32_t b = 0; b < blocks; b++) {
        if (column >= room)
            return false;
        offset[b] = column;
        column += (op->right[column] & 127u) + 1;
    }
    if (op->cols > room / column)
        return false;
    *bytes = op->cols * column;
    for (uint32_t b = 0; b < blocks; b++)
        for (size_t at = offset[b]; at < *bytes; at += column)
            unlike |= (uint32_t)(op->right[at] ^ op->right[offset[b]]) & 127u;
    for (uint32_t i = 0; i < groups_of(op); i++)
        starts[i] = i * COLUMNS * column;
    return unlike == 0;
}

bool muc_fast_find_starts(const mur_sim_product *op, uint32_t *starts, uint32_t *bytes)
{
    const uint8_t *p = op->right;
    uint32_t blocks = 0; /* of a column */

    if (op->tile_columns != COLUMNS)
        return false;
    if (op->k <= op->tile_rows && find_even_starts(op, starts, bytes))
        return true;
    for (uint32_t at = 0; at < op->k; at += op->tile_rows)
        blocks += blocks_of(op->k - at < op->tile_rows ? op->k - at : op->tile_rows);
    for (uint32_t column = 0; column < op->cols; column += COLUMNS) {
        uint32_t columns = op->cols - column < COLUMNS ? op->cols - column : COLUMNS;

        starts[column / COLUMNS] = (uint32_t)(p - op->right);
        for (uint32_t i = 0; i < columns * blocks; i++) {
            if (p >= op->right_end)
                return false;
            __builtin_prefetch(p + AHEAD);
            p += (*p & 127u) + 1;
        }
    }
    *bytes = (uint32_t)(p - op->right);
    return p <= op->right_end;
}

/* What is remembered of op's right operand, or NULL. */
static known_operand *find_known(const muc_fast_product *product, const mur_sim_product *op)
{
    known_operand *found;

    if (!op->lasts || !product->places)
        return NULL;
    found = find_operand(product->operands, product->places, op->right);
    return found->right && found->k == op->k && found->cols == op->cols &&
                   found->tile_rows == op->tile_rows &&
                   (size_t)(op->right_end - op->right) >= found->bytes
               ? found
               : NULL;
}

/* The first pair of columns of op in a stream; of the stream after the last: their count. */
static uint32_t first_pair(const muc_fast_product *product, const mur_sim_product *op,
                           size_t stream)
{
    return (uint32_t)(pairs_of(op) * stream / product->streams);
}

typedef struct packing {
    const muc_fast_product *product;
    const mur_sim_product *op;
    known_operand *known;
} packing;

static muc_status pack_part(void *arg, size_t stream)
{
    const packing *p = arg;
    uint8_t *out = (uint8_t *)p->known->packed[stream];
    uint32_t past = first_pair(p->product, p->op, stream + 1);

    for (uint32_t i = first_pair(p->product, p->op, stream); i < past; i++) {
        if (!muc_fast_pack_pair(p->product, p->op, p->product->starts + p->known->first, i,
                                (packed_block *)(void *)out))
            return MUC_UNSUPPORTED;
        out += muc_fast_packed_bytes(p->op);
    }
    return MUC_OK;
}

/* Where `bytes` are free in a stream; NULL: there is no memory. */
static packed_block *find_room(packed_stream *stream, size_t bytes)
{
    packed_chunk *chunk = stream->chunk;
    size_t size = LINE + bytes > CHUNK_BYTES ? LINE + bytes : CHUNK_BYTES;

    if (!chunk || chunk->size - chunk->used < bytes) {
        chunk = muc_alloc_huge(size);
        if (!chunk)
            return NULL;
        *chunk = (packed_chunk){ stream->chunk, LINE, size };
        stream->chunk = chunk;
    }
    return (packed_block *)(void *)((uint8_t *)chunk + chunk->used);
}

/* bytes of op's part in a stream */
static size_t part_bytes(const muc_fast_product *product, const mur_sim_product *op, size_t stream)
{
    return (first_pair(product, op, stream + 1) - first_pair(product, op, stream)) *
           muc_fast_packed_bytes(op);
}

/* of->packed has room for a part in each stream. */
static bool pack(muc_fast_product *product, const mur_sim_product *op, known_operand *of)
{
    packing p = { product, op, of };
    size_t bytes = pairs_of(op) * muc_fast_packed_bytes(op);

    if (bytes > product->most_packed)
        return false;
    for (size_t i = 0; i < product->streams; i++) {
        of->packed[i] = find_room(&product->stream[i], part_bytes(product, op, i));
        if (!of->packed[i])
            return false;
    }
    if (muc_parallel_for(product->ctx, product->streams, pack_part, &p) != MUC_OK)
        return false;
    for (size_t i = 0; i < product->streams; i++)
        product->stream[i].chunk->used += part_bytes(product, op, i);
    product->most_packed -= bytes;
    return true;
}

/* What is remembered of op's right operand from here on, or NULL. */
static known_operand *meet(muc_fast_product *product, const mur_sim_product *op)
{
    known_operand *of = find_operand(product->operands, product->places, op->right);
    uint32_t bytes;

    if (of->right || !muc_fast_find_starts(op, product->starts + product->start_count, &bytes))
        return NULL;
    *of = (known_operand){ .right = op->right,
                           .k = op->k,
                           .cols = op->cols,
                           .tile_rows = op->tile_rows,
                           .bytes = bytes,
                           .first = product->start_count };
    of->packed = calloc(product->streams, sizeof(packed_block *));
    if (of->packed && !pack(product, op, of)) {
        free(of->packed);
        of->packed = NULL;
    }
    product->operand_count++;
    product->start_count += groups_of(op);
    return of;
}

/* Remembers what is new among the kept products. */
static void meet_operands(muc_fast_product *product)
{
    size_t groups = 0;

    for (size_t i = 0; i < product->count; i++) {
        groups += groups_of(&product->kept[i]);
        product->known[i] = NULL;
    }
    product->packed = false;
    if (!make_room(product, product->count, groups))
        return;
    product->packed = true;
    for (size_t i = 0; i < product->count; i++) {
        const mur_sim_product *op = &product->kept[i];
        known_operand *of = find_known(product, op);

        if (!of && op->lasts)
            of = meet(product, op);
        product->known[i] = of;
        product->packed &= of && of->packed;
    }
}

/* ---- lines, also of other instructions ---- */

typedef struct shared_lines {
    mur_sim_part *part;
    void *arg;
    uint32_t count, parts;
} shared_lines;

static muc_status do_part(void *arg, size_t i)
{
    const shared_lines *of = arg;

    of->part(of->arg, (uint32_t)(of->count * i / of->parts),
             (uint32_t)(of->count * (i + 1) / of->parts));
    return MUC_OK;
}

/* A thread mostly has the same rows of one instruction after the other. */
void muc_fast_share_lines(void *arg, uint32_t count, uint32_t elements, mur_sim_part *part,
                          void *part_arg)
{
    const muc_fast_product *product = arg;
    shared_lines lines = { part, part_arg, count, (uint32_t)thread_count(product->ctx) };

    if (lines.parts == 1 || (uint64_t)count * elements < product->least_lines)
        part(part_arg, 0, count);
    else
        muc_parallel_brief(product->ctx, lines.parts, do_part, &lines);
}

/* ---- who multiplies what ---- */

unit muc_fast_take(muc_fast_product *product, product_room *room)
{
    if (room->own)
        return room->next < room->own_count ? room->own[room->next++] : (unit){ .op = NULL };
    size_t i = product->by_rows ? room->next++
                                : atomic_load_explicit(&product->next, memory_order_relaxed);

    if (!product->by_rows && i < product->unit_count)
        i = atomic_fetch_add(&product->next, 1);
    return i < product->unit_count ? product->units[i] : (unit){ .op = NULL };
}

/* Units of what is kept, as many as `slots` products under way at once take well. */
static void make_units(muc_fast_product *product, uint32_t slots)
{
    uint32_t groups = 0, most;

    for (size_t i = 0; i < product->count; i++)
        groups += groups_of(&product->kept[i]);
    most = (groups + slots - 1) / slots; /* so there are at most count + slots of them */
    product->unit_count = 0;
    for (size_t i = 0; i < product->count; i++) {
        const mur_sim_product *op = &product->kept[i];
        const known_operand *known = product->known[i];
        const uint32_t *starts = known ? product->starts + known->first : NULL;
        uint32_t found[MOST_FOUND], size, bytes;

        if (!starts && groups_of(op) > most && groups_of(op) <= MOST_FOUND &&
            muc_fast_find_starts(op, found, &bytes))
            starts = found;
        size = starts ? most * COLUMNS : op->cols;
        for (uint32_t column = 0; column < op->cols; column += size)
            product->units[product->unit_count++] = (unit){
                .op = op,
                .p = op->right + (column ? starts[column / COLUMNS] : 0),
                .column = column,
                .past = op->cols - column < size ? op->cols : column + size,
            };
    }
}

/* The part of kept product i in a stream. */
static unit packed_unit(const muc_fast_product *product, size_t i, size_t stream)
{
    const mur_sim_product *op = &product->kept[i];
    uint32_t past = LANES * first_pair(product, op, stream + 1);

    return (unit){
        .op = op,
        .column = LANES * first_pair(product, op, stream),
        .past = past < op->cols ? past : op->cols,
        .packed = product->known[i]->packed[stream],
    };
}

unit muc_fast_take_packed(muc_fast_product *product, product_room *room)
{
    size_t streams = product->streams, i = room->next;

    if (product->by_rows) {
        room->next++;
        return i < streams * product->count ? packed_unit(product, i / streams, i % streams)
                                            : (unit){ .op = NULL };
    }
    /* a stream of its own, then what others have not begun */
    for (; room->next < streams; room->next++) {
        size_t at = (room->first + room->next) % streams;
        atomic_size_t *next = &product->stream[at].next;

        if (atomic_load_explicit(next, memory_order_relaxed) < product->count &&
            (i = atomic_fetch_add(next, 1)) < product->count)
            return packed_unit(product, i, at);
    }
    return (unit){ .op = NULL };
}

bool muc_fast_multiply(muc_fast_product *product, const mur_sim_product *op, product_room *room)
{
    bool wide = product->wide && op->tile_columns == COLUMNS;

    return wide ? muc_fast_multiply_avx512(product, room) : muc_fast_multiply_avx2(product, room);
}

static muc_status multiply_share(void *arg, size_t thread)
{
    muc_fast_product *product = arg;
    product_room *room = &product->rooms[thread];
    uint32_t rows = product->left_rows;
    size_t threads = product->by_rows ? product->shares : 1;

    room->first = thread;
    thread = product->by_rows ? thread : 0;
    room->next = 0;
    room->row = (uint32_t)(rows * thread / threads);
    room->rows = (uint32_t)(rows * (thread + 1) / threads) - room->row;
    room->left = product->left + room->row;
    room->own = NULL;

    if (product->packed)
        muc_fast_multiply_packed(product, room);
    else if (!muc_fast_multiply(product, product->kept, room))
        atomic_store(&product->malformed, true);
    return MUC_OK;
}

/* Is it worth another thread's while? */
static bool is_long(const muc_fast_product *product)
{
    uint64_t work = 0;

    for (size_t i = 0; i < product->count; i++)
        work += (uint64_t)product->kept[i].cols * blocks_of(product->kept[i].k) * MUR_BLOCK_ELEMS;
    return work * (product->kept->rows + 3) >= product->least_shared;
}

static void read_left(void *arg, uint32_t first, uint32_t past)
{
    muc_fast_product *product = arg;

    if (!muc_fast_read_left(product, product->kept, first, past, product->left))
        atomic_store(&product->malformed, true);
}

/* Reads the left rows of what is kept; false if a block is malformed. Few rows are mostly those of
 * the last time. */
static bool read_all_left(muc_fast_product *product)
{
    const mur_sim_product *op = product->kept, *of = &product->left_of;
    size_t bytes = (size_t)(op->rows - 1) * op->left_pitch + mur_sim_slots_bytes(op->k, op->terms);

    if (bytes == product->left_bytes && of->rows == op->rows && of->k == op->k &&
        of->terms == op->terms && memcmp(op->left, product->left_copy, bytes) == 0)
        return true;
    product->left_bytes = 0;
    atomic_store(&product->malformed, false);
    if (product->ctx)
        muc_fast_share_lines(product, op->rows, op->k, read_left, product);
    else
        read_left(product, 0, op->rows);
    if (atomic_load(&product->malformed))
        return false;
    if (bytes <= MOST_LEFT_BYTES) {
        memcpy(product->left_copy, op->left, bytes);
        product->left_of = *op;
        product->left_bytes = bytes;
    }
    return true;
}

/* Multiplies the rows in `left` by what is kept; false if a block is malformed. */
static bool multiply_units(muc_fast_product *product)
{
    size_t threads = product->ctx && is_long(product) ? thread_count(product->ctx) : 1;

    product->shares = threads;
    product->by_rows =
        product->left_rows >= threads * (product->packed ? LEAST_PACKED_ROWS : LEAST_ROWS);
    if (!product->packed)
        make_units(product, product->by_rows ? SLOTS : (uint32_t)threads * SLOTS);
    for (size_t i = 0; i < product->streams; i++)
        atomic_store_explicit(&product->stream[i].next, 0, memory_order_relaxed);
    atomic_store(&product->next, 0);
    atomic_store(&product->malformed, false);
    if (threads > 1)
        muc_parallel_brief(product->ctx, threads, multiply_share, product);
    else
        multiply_share(product, 0);
    return !atomic_load(&product->malformed);
}

/* the next rows of all that is kept */
static bool multiply_rows(muc_fast_product *product, uint32_t rows)
{
    product->left_rows = rows;
    for (size_t i = 0; i < product->count; i++)
        product->kept[i].rows = rows;
    if (!read_all_left(product) || !multiply_units(product))
        return false;
    for (size_t i = 0; i < product->count; i++) {
        mur_sim_product *op = &product->kept[i];

        op->left += (size_t)rows * op->left_pitch;
        op->out += (size_t)rows * op->out_pitch;
    }
    return true;
}

/* Moves the first that is malformed to the front, and returns its index. What it and others put out
 * is of no use any more. */
static size_t find_malformed(muc_fast_product *product)
{
    size_t count = product->count, i = 0;

    if (!read_all_left(product))
        return 0;
    product->count = 1;
    while (multiply_units(product) && i + 1 < count) {
        i++;
        product->kept[0] = product->kept[i];
        product->known[0] = product->known[i];
    }
    return i;
}

bool muc_fast_do_products(muc_fast_product *product, mur_sim_product *malformed)
{
    const mur_sim_product *op = product->kept;
    uint32_t rows = op->rows, most = LEFT_BLOCKS / blocks_of(op->k);
    bool good = true;

    most = most < LEFT_ROWS ? most : LEFT_ROWS;
    meet_operands(product);
    for (uint32_t row = 0; row < rows && good; row += most)
        good = multiply_rows(product, rows - row < most ? rows - row : most);
    product->well_formed = good ? product->count : find_malformed(product);
    if (!good)
        *malformed = *product->kept;
    product->count = 0;
    return good;
}

static int settle(void *arg, mur_sim_product *malformed)
{
    muc_fast_product *product = arg;
    bool good;

    if (muc_fast_attends(product))
        return muc_fast_do_attention(product, malformed);
    if (muc_fast_packs(product))
        return muc_fast_do_own(product, malformed);
    good = muc_fast_do_products(product, malformed);
    if (muc_fast_puts_off(product) && !muc_fast_do_put_off(product, product->well_formed))
        return 1; /* it stopped before it came to what is malformed */
    return good;
}

bool muc_fast_alike(const mur_sim_product *a, const mur_sim_product *b)
{
    return a->left == b->left && a->rows == b->rows && a->k == b->k && a->terms == b->terms &&
           a->left_pitch == b->left_pitch && a->tile_rows == b->tile_rows &&
           a->tile_columns == b->tile_columns;
}

/* Can the two write to the same place? */
static bool collide(const mur_sim_product *a, const mur_sim_product *b)
{
    const float *a_end = a->out + (size_t)(a->rows - 1) * a->out_pitch + a->cols;
    const float *b_end = b->out + (size_t)(b->rows - 1) * b->out_pitch + b->cols;
    ptrdiff_t pitch = a->out_pitch, apart;

    if (a_end <= b->out || b_end <= a->out)
        return false;
    if (a->rows == 1 || a->out_pitch != b->out_pitch || a->cols > pitch || b->cols > pitch)
        return true;
    apart = (b->out - a->out) % pitch;
    apart += apart < 0 ? pitch : 0;
    return apart < a->cols || pitch - apart < b->cols;
}

static bool takes(const mur_sim_product *op)
{
    return op->rows > 0 && op->cols > 0 && op->k > 0 && blocks_of(op->k) <= LEFT_BLOCKS;
}

static enum mur_sim_product_result keep(void *arg, const mur_sim_product *op)
{
    muc_fast_product *product = arg;

    if (!takes(op))
        return MUR_SIM_PRODUCT_LEFT;
    if (muc_fast_attends(product))
        return muc_fast_attend(product, op) ? MUR_SIM_PRODUCT_KEPT : MUR_SIM_PRODUCT_FULL;
    if (muc_fast_packs(product))
        return muc_fast_keep_own(product, op) ? MUR_SIM_PRODUCT_KEPT : MUR_SIM_PRODUCT_FULL;
    if (product->count == MOST_KEPT || (product->count > 0 && !muc_fast_alike(product->kept, op)))
        return MUR_SIM_PRODUCT_FULL;
    product->kept[product->count] = *op;
    if (muc_fast_puts_off(product)) {
        if (!muc_fast_keep_results(product, &product->kept[product->count]))
            return MUR_SIM_PRODUCT_FULL;
    } else {
        for (size_t i = 0; i < product->count; i++)
            if (collide(&product->kept[i], op))
                return MUR_SIM_PRODUCT_FULL;
    }
    product->count++;
    return MUR_SIM_PRODUCT_KEPT;
}

/* ---- products at once ---- */

static enum mur_sim_product_result multiply(void *arg, const mur_sim_product *op)
{
    muc_fast_product *product = arg;
    mur_sim_product unused;

    if (!takes(op))
        return MUR_SIM_PRODUCT_LEFT;
    product->kept[0] = *op;
    product->count = 1;
    return settle(product, &unused) ? MUR_SIM_PRODUCT_DONE : MUR_SIM_PRODUCT_MALFORMED;
}

static uint8_t *aligned(uint8_t *p)
{
    return p + (LINE - (uintptr_t)p % LINE) % LINE;
}

muc_status muc_fast_product_open(muc_context *ctx, muc_fast_product **out)
{
    void *allocated;

    *out = NULL;
    if (!__builtin_cpu_supports("avx2"))
        return MUC_OK;
    MUC_TRY(muc_new_array(ctx, "simulator",
                          sizeof(**out) + thread_count(ctx) * sizeof(*(*out)->rooms) + 2 * LINE, 1,
                          &allocated));
    *out = (void *)aligned(allocated);
    (*out)->allocated = allocated;
    (*out)->rooms = (void *)aligned((uint8_t *)(*out + 1));
    (*out)->wide = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    (*out)->least_shared = LEAST_SHARED;
    (*out)->least_lines = LEAST_LINES;
    (*out)->streams =
        (uint32_t)(thread_count(ctx) < MOST_STREAMS ? thread_count(ctx) : MOST_STREAMS);
    (*out)->attention = muc_fast_attention_new();
    (*out)->own = muc_fast_own_new(thread_count(ctx));
    (*out)->put_off = muc_fast_put_off_new();
    make_tables(*out);
    return MUC_OK;
}

void muc_fast_product_narrow(muc_fast_product *product)
{
    if (product) {
        product->wide = false;
        product->most_packed = 0;
    }
}

void muc_fast_product_pack(muc_fast_product *product, size_t most_bytes)
{
    if (product && product->wide)
        product->most_packed = most_bytes;
}

void muc_fast_product_share_all(muc_fast_product *product)
{
    if (product)
        product->least_shared = product->least_lines = 0;
}

void muc_fast_product_use(muc_fast_product *product, mur_sim *sim)
{
    sim->product = product ? multiply : NULL;
    sim->settle = NULL;
    sim->keep_smax = NULL;
    sim->keep_packing = NULL;
    sim->put_off = NULL;
    sim->product_arg = product;
    sim->encode = !product        ? mur_block_encode
                  : product->wide ? muc_fast_encode_avx512
                                  : muc_fast_encode;
    sim->exps = product ? muc_fast_exps : mur_sim_exps;
    sim->each = mur_sim_each;
}

void muc_fast_product_keep(muc_context *ctx, muc_fast_product *product, mur_sim *sim)
{
    muc_fast_product_use(product, sim);
    if (!product)
        return;
    product->ctx = ctx;
    sim->product = keep;
    sim->settle = settle;
    sim->keep_smax = product->attention ? muc_fast_keep_smax : NULL;
    sim->keep_packing = product->own ? muc_fast_keep_packing : NULL;
    sim->put_off = product->put_off ? muc_fast_put_off : NULL;
    sim->each = muc_fast_share_lines;
    sim->each_arg = product;
}

void muc_fast_product_close(muc_fast_product *product)
{
    if (!product)
        return;
    for (size_t i = 0; i < product->places; i++)
        free(product->operands[i].packed);
    for (size_t i = 0; i < product->streams; i++)
        for (packed_chunk *chunk = product->stream[i].chunk, *next; chunk; chunk = next) {
            next = chunk->next;
            muc_aligned_free(chunk);
        }
    free(product->attention);
    free(product->own);
    free(product->put_off);
    free(product->operands);
    free(product->starts);
    free(product->allocated);
}

#else

muc_status muc_fast_product_open(muc_context *ctx, muc_fast_product **out)
{
    (void)ctx;
    *out = NULL;
    return MUC_OK;
}

void muc_fast_product_narrow(muc_fast_product *product)
{
    (void)product;
}

void muc_fast_product_pack(muc_fast_product *product, size_t most_bytes)
{
    (void)product;
    (void)most_bytes;
}

void muc_fast_product_share_all(muc_fast_product *product)
{
    (void)product;
}

void muc_fast_product_use(muc_fast_product *product, mur_sim *sim)
{
    (void)product;
    sim->product = NULL;
    sim->settle = NULL;
    sim->keep_smax = NULL;
    sim->keep_packing = NULL;
    sim->put_off = NULL;
    sim->encode = mur_block_encode;
    sim->exps = mur_sim_exps;
    sim->each = mur_sim_each;
}

void muc_fast_product_keep(muc_context *ctx, muc_fast_product *product, mur_sim *sim)
{
    (void)ctx;
    muc_fast_product_use(product, sim);
}

void muc_fast_product_close(muc_fast_product *product)
{
    (void)product;
}

#endif
