/* mur_tiles.c - the loop over tiles: moves in, compute on every core, moves out. */
#include "mur_tiles.h"

#include <stddef.h>

#include "mur_hal.h"

/* one tile's place in the result */
typedef struct box {
    uint32_t row_index, channel_index;
    uint32_t row, rows;
    uint32_t part, parts; /* the first part, counted through the layer */
    uint32_t depth_index, depth, depths;
} box;

typedef struct work {
    const mur_tiles *tiles;
    const void *layer;
    mur_tiles_compute *compute;
    const void *kernel;
    uint8_t *small;
    const box *box;
    uint8_t slot[MUR_TILES_OPERANDS];
} work;

static uint32_t divide_up(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* turns over what is summed over */
static uint32_t turns_of(const mur_tiles *t)
{
    return t->depth ? divide_up(t->depth, t->depth_tile) : 1;
}

static box box_of(const mur_tiles *t, uint32_t iteration)
{
    uint32_t turns = turns_of(t), n = iteration / turns;
    uint32_t all_parts = divide_up(t->channels, t->part);
    uint32_t down = divide_up(t->rows, t->row_tile), across = divide_up(all_parts, t->parts);
    box b = {
        .row_index = t->channels_outer ? n % down : n / across,
        .channel_index = t->channels_outer ? n / down : n % across,
        .depth_index = iteration % turns,
    };

    b.row = b.row_index * t->row_tile;
    b.rows = smaller(t->row_tile, t->rows - b.row);
    b.part = b.channel_index * t->parts;
    b.parts = smaller(t->parts, all_parts - b.part);
    b.depth = b.depth_index * t->depth_tile;
    b.depths = smaller(t->depth_tile, t->depth - b.depth);
    return b;
}

static uint32_t channels_of(const mur_tiles *t, uint32_t part)
{
    return smaller(t->part, t->channels - part * t->part);
}

/* the operand's rows for these of the result, in a tile: the first; how many */
static uint32_t rows_for(const mur_tiles_operand *operand, const box *b, uint32_t row,
                         uint32_t rows, uint32_t *first)
{
    int64_t begin, end;

    *first = operand->rows_are_depth ? b->depth : 0;
    if (operand->rows_are_depth)
        return b->depths;
    if (!operand->window)
        return operand->rows;
    begin = (int64_t)row * operand->stride - operand->pad;
    end = begin + (int64_t)(rows - 1) * operand->stride + operand->window;
    if (begin < 0)
        begin = 0;
    if (end > operand->rows)
        end = operand->rows;
    *first = (uint32_t)begin;
    return end > begin ? (uint32_t)(end - begin) : 0;
}

/* bytes of a row of a part in the small memory */
static uint32_t line_bytes(const mur_tiles *t, const mur_tiles_operand *operand, const box *b,
                           uint32_t part)
{
    uint32_t pixel = operand->depth_bytes ? b->depths * operand->depth_bytes : operand->pixel_bytes;

    if (operand->part_bytes)
        pixel = channels_of(t, part) * operand->channel_bytes;
    return operand->pixels * pixel;
}

static mur_hal_ticket start(void *large, uint8_t *small, uint32_t rows, uint32_t row_bytes,
                            uint32_t pitch, int is_output)
{
    mur_hal_move move = {
        .to = is_output ? large : small,
        .from = is_output ? (const void *)small : large,
        .rows = rows,
        .row_bytes = row_bytes,
        .to_pitch = is_output ? pitch : row_bytes,
        .from_pitch = is_output ? row_bytes : pitch,
    };

    if (pitch == row_bytes) { /* one piece */
        move.row_bytes *= rows;
        move.rows = 1;
    }
    return mur_hal_start(&move);
}

/* starts the moves of an operand's tile; the last one's ticket, or 0 */
static mur_hal_ticket move_operand(const work *w, uint32_t i, const box *b, uint8_t *large)
{
    const mur_tiles *t = w->tiles;
    const mur_tiles_operand *operand = &t->operands[i];
    uint8_t *small = w->small + operand->at[w->slot[i]];
    int is_output = i + 1 == t->operand_count;
    uint32_t first, rows = rows_for(operand, b, b->row, b->rows, &first);
    uint32_t depths = b->depths * operand->depth_bytes;
    mur_hal_ticket ticket = 0;

    if (operand->part_bytes && !operand->channel_bytes)
        return start(large + (size_t)b->part * operand->part_bytes, small, b->parts,
                     operand->part_bytes, operand->part_bytes, is_output);
    if (!rows)
        return 0;
    large += (size_t)b->depth * operand->depth_bytes;
    large += (size_t)first * operand->pixels * operand->pixel_bytes;
    if (!operand->part_bytes)
        return start(large, small, rows * operand->pixels, depths ? depths : operand->pixel_bytes,
                     operand->pixel_bytes, is_output);
    for (uint32_t p = 0; p < b->parts && depths; p++)
        ticket = start(large + (size_t)(b->part + p) * t->part * operand->channel_bytes,
                       small + (size_t)p * operand->part_bytes, channels_of(t, b->part + p), depths,
                       operand->channel_bytes, is_output);
    for (uint32_t p = 0; p < b->parts && !depths; p++)
        ticket = start(large + (size_t)(b->part + p) * t->part * operand->channel_bytes,
                       small + (size_t)p * operand->part_bytes, rows * operand->pixels,
                       channels_of(t, b->part + p) * operand->channel_bytes, operand->pixel_bytes,
                       is_output);
    return ticket;
}

/* does a tile's operand differ from the tile's before? */
static int changes(const mur_tiles_operand *operand, const box *now, const box *before)
{
    return (operand->window && now->row_index != before->row_index) ||
           (operand->part_bytes && now->channel_index != before->channel_index) ||
           ((operand->depth_bytes || operand->rows_are_depth) &&
            now->depth_index != before->depth_index);
}

static mur_hal_ticket fetch(work *w, const box *now, const box *before, void *const *data)
{
    mur_hal_ticket ticket = 0, last;

    for (uint32_t i = 0; i + 1 < w->tiles->operand_count; i++) {
        if (before && !changes(&w->tiles->operands[i], now, before))
            continue;
        w->slot[i] ^= 1;
        last = move_operand(w, i, now, data[i]);
        if (last)
            ticket = last;
    }
    return ticket;
}

static void compute_piece(const work *w, uint32_t core, uint32_t row, uint32_t rows, uint32_t p)
{
    const mur_tiles *t = w->tiles;
    const box *b = w->box;
    mur_tiles_piece piece = {
        .layer = w->layer,
        .row = row,
        .rows = rows,
        .channel = (b->part + p) * t->part,
        .channels = channels_of(t, b->part + p),
        .depth = b->depth,
        .depths = b->depths,
        .is_first = b->depth_index == 0,
        .is_last = b->depth + b->depths == t->depth,
        .scratch = w->small + t->scratch + (size_t)core * t->scratch_bytes,
    };

    for (uint32_t i = 0; i < t->operand_count; i++) {
        const mur_tiles_operand *operand = &t->operands[i];
        uint32_t tile_first;

        (void)rows_for(operand, b, b->row, b->rows, &tile_first);
        piece.data_rows[i] = rows_for(operand, b, row, rows, &piece.data_row[i]);
        piece.data[i] =
            w->small + operand->at[w->slot[i]] + (size_t)p * operand->part_bytes +
            (size_t)(piece.data_row[i] - tile_first) * line_bytes(t, operand, b, b->part + p);
    }
    w->compute(&piece, w->kernel);
}

static void compute_share(void *context, uint32_t core, uint32_t cores)
{
    const work *w = context;
    const box *b = w->box;

    if (w->tiles->parts > 1) {
        for (uint32_t p = core; p < b->parts; p += cores)
            compute_piece(w, core, b->row, b->rows, p);
    } else {
        uint32_t share = b->rows / cores, more = b->rows % cores; /* cores with one row more */
        uint32_t begin = core * share + smaller(core, more), rows = share + (core < more);

        if (rows)
            compute_piece(w, core, b->row + begin, rows, 0);
    }
}

void mur_tiles_run(const mur_tiles *tiles, const void *layer, mur_tiles_compute *compute,
                   const void *kernel, void *const data[MUR_TILES_OPERANDS], uint8_t *small)
{
    uint32_t out = tiles->operand_count - 1u;
    uint32_t turns = turns_of(tiles);
    uint32_t count = divide_up(tiles->rows, tiles->row_tile) *
                     divide_up(divide_up(tiles->channels, tiles->part), tiles->parts) * turns;
    /* fetch and compute look at slots of their own: the next tile's come while this one's are read
     */
    work next = { tiles, layer, compute, kernel, small, NULL, { 0 } }, now;
    mur_hal_ticket stored[2] = { 0, 0 };
    box box_now = box_of(tiles, 0), box_next;

    mur_hal_wait(fetch(&next, &box_now, NULL, data));
    for (uint32_t n = 0; n < count; n++) {
        uint8_t slot = (uint8_t)(tiles->double_buffered ? n / turns & 1 : 0);
        mur_hal_ticket coming = 0;

        now = next;
        now.box = &box_now;
        now.slot[out] = slot;
        box_next = n + 1 < count ? box_of(tiles, n + 1) : box_now;
        mur_hal_wait(stored[slot]);
        if (tiles->double_buffered && n + 1 < count)
            coming = fetch(&next, &box_next, &box_now, data);
        mur_hal_fork(compute_share, &now, tiles->cores);
        mur_hal_join();
        mur_hal_wait(coming);
        if (box_now.depth_index + 1 == turns)
            stored[slot] = move_operand(&now, out, &box_now, data[out]);
        if (!tiles->double_buffered && n + 1 < count)
            mur_hal_wait(fetch(&next, &box_next, &box_now, data));
        box_now = box_next;
    }
    mur_hal_wait(stored[0]);
    mur_hal_wait(stored[1]);
}
