/* mur_tiles_work.c - moves of a tile's operands, and its division over cores. */
#include "mur_tiles_work.h"

static uint32_t channels_of(const mur_tiles *t, uint32_t part)
{
    return mur_tiles_smaller(t->part, t->channels - part * t->part);
}

/* the operand's rows for these of the result, in a tile: the first; how many */
uint32_t mur_tiles_rows(const mur_tiles_operand *operand, const mur_tiles_box *b, uint32_t row,
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
static uint32_t line_bytes(const mur_tiles *t, const mur_tiles_operand *operand,
                           const mur_tiles_box *b, uint32_t part)
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

mur_hal_ticket mur_tiles_move(const mur_tiles *t, uint32_t i, const mur_tiles_box *b,
                              uint32_t first, uint32_t rows, uint8_t *large, uint8_t *small)
{
    const mur_tiles_operand *operand = &t->operands[i];
    int is_output = i + 1 == t->operand_count;
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
    for (uint32_t p = 0; p < b->parts; p++) {
        uint8_t *part = small + (size_t)p * operand->part_bytes;
        uint32_t channels = channels_of(t, b->part + p);
        size_t from = (size_t)(b->part + p) * t->part * operand->channel_bytes;

        if (depths)
            ticket = start(large + from, part, channels, depths, operand->channel_bytes, is_output);
        else
            ticket = start(large + from, part, rows * operand->pixels,
                           channels * operand->channel_bytes, operand->pixel_bytes, is_output);
    }
    return ticket;
}

static void compute_piece(const mur_tiles_work *w, uint32_t core, uint32_t row, uint32_t rows,
                          uint32_t p)
{
    const mur_tiles *t = w->tiles;
    const mur_tiles_box *b = w->box;
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
        ptrdiff_t line = (ptrdiff_t)line_bytes(t, operand, b, b->part + p), at = w->at[i];

        piece.data_rows[i] = mur_tiles_rows(operand, b, row, rows, &piece.data_row[i]);
        at += ((ptrdiff_t)piece.data_row[i] - (ptrdiff_t)w->first[i]) * line;
        piece.data[i] = w->small + at + (size_t)p * operand->part_bytes;
    }
    w->compute(&piece, w->kernel);
}

static void compute_share(void *context, uint32_t core, uint32_t cores)
{
    const mur_tiles_work *w = context;
    const mur_tiles_box *b = w->box;

    if (w->tiles->parts > 1) {
        for (uint32_t p = core; p < b->parts; p += cores)
            compute_piece(w, core, b->row, b->rows, p);
    } else {
        uint32_t share = b->rows / cores, more = b->rows % cores; /* cores with one row more */
        uint32_t begin = core * share + mur_tiles_smaller(core, more), rows = share + (core < more);

        if (rows)
            compute_piece(w, core, b->row + begin, rows, 0);
    }
}

void mur_tiles_share(mur_tiles_work *work)
{
    mur_hal_fork(compute_share, work, work->tiles->cores);
    mur_hal_join();
}
