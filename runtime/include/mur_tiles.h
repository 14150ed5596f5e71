/* mur_tiles.h - a layer whose data lie in a large memory, worked on in a small one by tiles.
 *
 * A layer's result is rows of pixels of channels (NHWC, dense). A tile is row_tile rows by `parts`
 * parts of `part` channels each. In the small memory, a part's pixels lie densely by themselves, so
 * that a kernel sees a layer of `part` channels; packed weights come a part at a time, too. While a
 * tile is computed, the next one's operands come and the last one's result goes (double_buffered);
 * an operand whose tile stays the same is not fetched again. The tile is divided over cores by
 * parts, or by rows if it has only one part. Where what is summed over is cut, too, that is the
 * innermost loop, and the result's tile stays and holds partial sums until its last turn.
 *
 * Order of calls to mur_hal.h: at the start of iteration i the moves of tile i + 1 start, then fork
 * and join of tile i, then a wait for the moves of i + 1, then the start of the result's move. All
 * moves have ended when a function returns. The operands in the large memory must not meet the
 * result there, except that an element-wise layer may write over an input.
 */
#ifndef MUR_TILES_H
#define MUR_TILES_H

#include <stdint.h>

#include "mur_nn.h"
#include "mur_nn_f32.h"

enum { MUR_TILES_OPERANDS = 6, MUR_TILES_MOST_PARTS = 16 };

/* Which of an operand's rows result rows y..y+n-1 need: those of y*stride - pad ..
 * (y+n-1)*stride - pad + window - 1 that lie within 0..rows-1; all of them if window is 0. */
typedef struct mur_tiles_operand {
    uint32_t at[2]; /* its buffers, in bytes of the small memory; the same twice if it has one */
    uint32_t part_bytes; /* from part to part in a buffer; 0: does not depend on channels */
    uint32_t pixel_bytes, pixels; /* of a pixel in the large memory, pixels of a row */
    uint32_t channel_bytes;       /* of a pixel's channel; 0: parts follow one another, each of
                                     part_bytes, in the large memory as in the small (weights) */
    uint32_t rows, stride, window, pad;
    uint32_t depth_bytes;   /* where a pixel, or else a channel, is a vector that is summed over:
                               bytes   of its elements; 0: does not depend on depth so */
    uint8_t rows_are_depth; /* its rows are what is summed over */
} mur_tiles_operand;

typedef struct mur_tiles {
    uint32_t rows, channels;
    uint32_t row_tile;       /* 1..rows */
    uint32_t part, parts;    /* channels of a part, parts of a tile: at most MUR_TILES_MOST_PARTS */
    uint8_t channels_outer;  /* the outer loop is that over channels */
    uint8_t double_buffered; /* needs two buffers for the result and what changes */
    uint8_t cores;
    uint8_t operand_count;           /* the result is the last */
    uint32_t scratch, scratch_bytes; /* of the first core, and from core to core */
    uint32_t depth, depth_tile;      /* what is summed over, and of a tile; 0: not cut */
    mur_tiles_operand operands[MUR_TILES_OPERANDS];
} mur_tiles;

/* A core's share of a tile. */
typedef struct mur_tiles_piece {
    const void *layer;
    uint32_t row, rows;         /* of the result */
    uint32_t channel, channels; /* likewise: of one part */
    uint32_t depth, depths;     /* of what is summed over */
    uint8_t is_first, is_last;  /* of the turns over depth */
    uint8_t *data[MUR_TILES_OPERANDS];
    uint32_t data_row[MUR_TILES_OPERANDS];  /* the operand's row that lies there first */
    uint32_t data_rows[MUR_TILES_OPERANDS]; /* how many do */
    void *scratch;
} mur_tiles_piece;

/* Computes a piece: `kernel` as below. */
typedef void mur_tiles_compute(const mur_tiles_piece *piece, const void *kernel);

/* data: where each operand begins in the large memory (the result's is written); small: the small
 * memory. kernel: a pointer to a function pointer, handed on. */
void mur_tiles_run(const mur_tiles *tiles, const void *layer, mur_tiles_compute *compute,
                   const void *kernel, void *const data[MUR_TILES_OPERANDS], uint8_t *small);

/* ---- layers one after another ----
 *
 * A chain's links are layers of which one makes what another reads; what lies between them never
 * leaves the small memory. All work in turns: in each, link after link makes the rows of its result
 * that the links after it need for theirs. What is in the small memory are columns, operands and
 * results, of each of which some rows are there at a time: those kept from the turn before move to
 * its beginning, new ones come behind them; so every row is fetched once and computed once.
 *
 * While a link computes, what the next one needs new comes, and what the one before it has made
 * goes. Order of calls to mur_hal.h: the start of the next link's moves, fork and join, a wait for
 * these moves, one for the result of the link before, then the start of this one's. */

/* rows first..end-1 */
typedef struct mur_tiles_span {
    uint32_t first, end;
} mur_tiles_span;

typedef struct mur_tiles_column {
    uint32_t at;        /* in bytes of the small memory */
    uint32_t row_bytes; /* 0: packed weights */
} mur_tiles_column;

typedef struct mur_tiles_link {
    const mur_tiles *tiles; /* buffers, tiles and loops are not looked at; all of its parts are one
                               tile */
    const void *layer;
    mur_tiles_compute *compute;
    const void *kernel;
    uint8_t column[MUR_TILES_OPERANDS]; /* where each operand lies */
    uint8_t moves[MUR_TILES_OPERANDS];  /* whether this link fetches it, or stores its result */
    uint32_t skip[MUR_TILES_OPERANDS];  /* bytes of the column before the operand's first */
} mur_tiles_link;

typedef struct mur_tiles_chain {
    const mur_tiles_link *links;
    const mur_tiles_column *columns;
    const mur_tiles_span *spans; /* of every column, turn after turn: the rows that are there */
    uint32_t link_count, column_count, turns; /* at least two links if there is more than a turn */
} mur_tiles_chain;

/* data: where the operands of each link that it moves begin in the large memory. */
void mur_tiles_run_chain(const mur_tiles_chain *chain, void *const data[][MUR_TILES_OPERANDS],
                         uint8_t *small);

typedef void mur_tiles_conv_s8_kernel(const mur_conv_s8 *layer, const int8_t *in, int8_t *out,
                                      void *scratch);
typedef void mur_tiles_pool_s8_kernel(const mur_pool_s8 *layer, const int8_t *in, int8_t *out);
typedef void mur_tiles_conv_f32_kernel(const mur_conv_f32 *layer, const float *in, float *out);

/* Layers in full as the kernel would run them at once. A pointwise layer or vectors: an image one
 * pixel wide. Operands: input, packed weights (in parts, as each part's own layer), result. */
void mur_tiles_conv_s8(const mur_tiles *tiles, const mur_conv_s8 *layer,
                       mur_tiles_conv_s8_kernel *kernel, const int8_t *in, int8_t *out,
                       uint8_t *small);
void mur_tiles_conv_f32(const mur_tiles *tiles, const mur_conv_f32 *layer,
                        mur_tiles_conv_f32_kernel *kernel, const float *in, float *out,
                        uint8_t *small);
/* Operands: input, result. */
void mur_tiles_pool_s8(const mur_tiles *tiles, const mur_pool_s8 *layer,
                       mur_tiles_pool_s8_kernel *kernel, const int8_t *in, int8_t *out,
                       uint8_t *small);

/* The same layers as links of a chain; kernel: a pointer to a pointer to the function. */
mur_tiles_compute mur_tiles_piece_of_conv_s8, mur_tiles_piece_of_conv_f32;
mur_tiles_compute mur_tiles_piece_of_pool_s8;

#endif
