/* mur_tiles.c - the loop over tiles: moves in, compute on every core, moves out. */
#include "mur_tiles_work.h"

static uint32_t divide_up(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

/* turns over what is summed over */
static uint32_t turns_of(const mur_tiles *t)
{
    return t->depth ? divide_up(t->depth, t->depth_tile) : 1;
}

static mur_tiles_box box_of(const mur_tiles *t, uint32_t iteration)
{
    uint32_t turns = turns_of(t), n = iteration / turns;
    uint32_t all_parts = divide_up(t->channels, t->part);
    uint32_t down = divide_up(t->rows, t->row_tile), across = divide_up(all_parts, t->parts);
    mur_tiles_box b = {
        .row_index = t->channels_outer ? n % down : n / across,
        .channel_index = t->channels_outer ? n / down : n % across,
        .depth_index = iteration % turns,
    };

    b.row = b.row_index * t->row_tile;
    b.rows = mur_tiles_smaller(t->row_tile, t->rows - b.row);
    b.part = b.channel_index * t->parts;
    b.parts = mur_tiles_smaller(t->parts, all_parts - b.part);
    b.depth = b.depth_index * t->depth_tile;
    b.depths = mur_tiles_smaller(t->depth_tile, t->depth - b.depth);
    return b;
}

/* does a tile's operand differ from the tile's before? */
static int changes(const mur_tiles_operand *operand, const mur_tiles_box *now,
                   const mur_tiles_box *before)
{
    return (operand->window && now->row_index != before->row_index) ||
           (operand->part_bytes && now->channel_index != before->channel_index) ||
           ((operand->depth_bytes || operand->rows_are_depth) &&
            now->depth_index != before->depth_index);
}

/* starts the moves of an operand's tile to or from one of its buffers, which work now knows */
static mur_hal_ticket move_tile(mur_tiles_work *w, uint32_t i, const mur_tiles_box *b,
                                unsigned slot, uint8_t *large)
{
    const mur_tiles_operand *operand = &w->tiles->operands[i];
    uint32_t rows = mur_tiles_rows(operand, b, b->row, b->rows, &w->first[i]);

    w->at[i] = (ptrdiff_t)operand->at[slot];
    return mur_tiles_move(w->tiles, i, b, w->first[i], rows, large, w->small + w->at[i]);
}

static mur_hal_ticket fetch(mur_tiles_work *w, uint8_t *slots, const mur_tiles_box *now,
                            const mur_tiles_box *before, void *const *data)
{
    mur_hal_ticket ticket = 0, last;

    for (uint32_t i = 0; i + 1 < w->tiles->operand_count; i++) {
        if (before && !changes(&w->tiles->operands[i], now, before))
            continue;
        slots[i] ^= 1;
        last = move_tile(w, i, now, slots[i], data[i]);
        if (last)
            ticket = last;
    }
    return ticket;
}

void mur_tiles_run(const mur_tiles *tiles, const void *layer, mur_tiles_compute *compute,
                   const void *kernel, void *const data[MUR_TILES_OPERANDS], uint8_t *small)
{
    uint32_t out = tiles->operand_count - 1u;
    uint32_t turns = turns_of(tiles);
    uint32_t count = divide_up(tiles->rows, tiles->row_tile) *
                     divide_up(divide_up(tiles->channels, tiles->part), tiles->parts) * turns;
    /* the next tile's operands come while this one's are read: each knows its own places */
    mur_tiles_work next = { tiles, layer, compute, kernel, small, NULL, { 0 }, { 0 } }, now;
    uint8_t slots[MUR_TILES_OPERANDS] = { 0 };
    mur_hal_ticket stored[2] = { 0, 0 };
    mur_tiles_box box_now = box_of(tiles, 0), box_next;

    mur_hal_wait(fetch(&next, slots, &box_now, NULL, data));
    for (uint32_t n = 0; n < count; n++) {
        unsigned slot = tiles->double_buffered ? n / turns & 1 : 0;
        mur_hal_ticket coming = 0;

        now = next;
        now.box = &box_now;
        now.at[out] = (ptrdiff_t)tiles->operands[out].at[slot];
        (void)mur_tiles_rows(&tiles->operands[out], &box_now, box_now.row, box_now.rows,
                             &now.first[out]);
        box_next = n + 1 < count ? box_of(tiles, n + 1) : box_now;
        mur_hal_wait(stored[slot]);
        if (tiles->double_buffered && n + 1 < count)
            coming = fetch(&next, slots, &box_next, &box_now, data);
        mur_tiles_share(&now);
        mur_hal_wait(coming);
        if (box_now.depth_index + 1 == turns)
            stored[slot] = move_tile(&now, out, &box_now, slot, data[out]);
        if (!tiles->double_buffered && n + 1 < count)
            mur_hal_wait(fetch(&next, slots, &box_next, &box_now, data));
        box_now = box_next;
    }
    mur_hal_wait(stored[0]);
    mur_hal_wait(stored[1]);
}
