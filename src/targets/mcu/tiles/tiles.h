/* tiles.h - steps that work in tiles: on machines with a DMA and a memory that holds tiles.
 *
 * A kernel's writer describes its layer as rows of pixels of channels and its operands as
 * runtime/include/mur_tiles.h does; the cheapest plan of plan/tile.h that fits the small memory
 * becomes a mur_tiles for mur_tiles_run. Its buffers are placed when all steps are known.
 */
#ifndef MUC_MCU_TILES_H
#define MUC_MCU_TILES_H

#include "mur_tiles.h"
#include "plan/tile.h"
#include "targets/mcu/steps/step_writer.h"

typedef struct muc_mcu_tile_operand {
    const char *name; /* borrowed */
    uint32_t rows, stride, window,
        pad; /* as in mur_tiles_operand; window 0: the same for all rows */
    uint32_t pixels, pixel_bytes;
    uint32_t channel_bytes; /* 0: does not follow the channels, or is weights */
    bool is_weights;        /* packed, in parts */
    bool is_constant;       /* comes from the memory for weights */
    uint32_t depth_bytes;   /* as in mur_tiles_operand */
    bool rows_are_depth;
} muc_mcu_tile_operand;

typedef struct muc_mcu_tile_layer {
    const char *name; /* borrowed */
    uint32_t rows, channels;
    bool by_parts;     /* cores share a tile by channels, however many rows a run has */
    uint32_t depth;    /* what is summed over, if that is to be cut; else 0 */
    uint32_t multiple; /* of channels in a part, but for the last one; channels: not to be cut */
    uint32_t operand_count; /* the result is the last; at most MUR_TILES_OPERANDS */
    muc_mcu_tile_operand operands[MUR_TILES_OPERANDS];
    uint64_t work; /* multiply-accumulates, or elements, for a channel of a row (and one depth) */
    uint64_t scratch_bytes; /* for each core, at most */
    /* bytes of the packed weights of so many channels; not falling; NULL without weights */
    uint64_t (*packed_bytes)(const void *subject, uint32_t channels);
    const void *subject;
} muc_mcu_tile_layer;

/* Tiles that fit: all but where the buffers lie. */
typedef struct muc_mcu_tiling {
    mur_tiles tiles;
    muc_tile_plan plan;
    uint64_t bytes[MUR_TILES_OPERANDS]; /* of one buffer of each operand */
} muc_mcu_tiling;

/* How a step works in tiles. */
struct muc_mcu_tiled {
    muc_mcu_tile_layer layer;
    muc_mcu_tiling tiling;
    uint32_t values[MUR_TILES_OPERANDS]; /* of the program; MUC_NO_ID where none is told yet */
    const char *compute;                 /* the function of a piece */
    const char *descriptor;              /* the layer's, or NULL */
    const char *kernel_type, *kernel;    /* what compute is told of, or NULL */
    const char *runner;                  /* the function that runs all pieces, as text, or NULL */
    uint32_t overlap_count;              /* of the step, while it is not a part of a chain */
    /* packs the weights anew for parts of so many channels; NULL without weights */
    muc_status (*pack)(muc_context *ctx, struct muc_mcu_program *program, muc_mcu_step *step,
                       const mur_tiles *tiles);
};

/* Whether the machine at hand has what tiles need. */
bool muc_mcu_has_tiles(const muc_mcu_machine *machine);

/* The cheapest tiles of a layer, on as many cores as the small memory has scratch for. If not even
 * the smallest fit, *fits is false and the step that begins next carries a note that says so. */
muc_status muc_mcu_find_tiles(muc_mcu_lowering *l, const muc_mcu_tile_layer *layer,
                              muc_mcu_tiling *out, bool *fits);
/* The step at hand works in these tiles, "NAME_tiles" in its calls; the files of the runtime that
 * this needs are taken. compute: the function of a piece. */
muc_status muc_mcu_use_tiles(muc_mcu_lowering *l, const muc_mcu_tile_layer *layer,
                             const muc_mcu_tiling *tiling, const char *compute);
/* Divides some channels into at most so many parts and sizes the buffers of the operands, for tiles
 * of tiles->row_tile rows: sets part, parts and operands; of all buffers with these copies the
 * bytes. */
uint64_t muc_mcu_divide_tiles(const muc_mcu_tile_layer *layer, const uint32_t *copies,
                              uint32_t channels, uint32_t parts, mur_tiles *tiles, uint64_t *bytes);
/* What plan/tile.h and plan/chain.h count with, for a unit of work on so many cores. */
muc_tile_machine muc_mcu_tile_machine(const muc_mcu_machine *machine, uint64_t work,
                                      uint32_t cores);

/* A function of the program that mur_tiles_run calls: "NAME_piece". */
typedef struct muc_mcu_pieces {
    const char *names[MUR_TILES_OPERANDS]; /* of the operands, the result last */
    uint32_t count;
} muc_mcu_pieces;

/* The function at hand, of muc_mcu_begin_function, is that of a piece: its body may speak of
 * `piece`, rows and channels. */
muc_status muc_mcu_begin_pieces(muc_mcu_lowering *l, const muc_mcu_tile_layer *layer,
                                const muc_mcu_tiling *tiling);

/* If the machine has tiles and this layer's fit, *fits is true and the function of a piece begins;
 * nothing has begun otherwise. Operands are called as loop_nest.h does. */
muc_status muc_mcu_begin_tiled_function(muc_mcu_lowering *l, const muc_node *node,
                                        const muc_mcu_tile_layer *layer, bool *fits);

/* A layer of some rows of one or two inputs a, b and a result y, each of so many bytes; or b is the
 * same for all rows. */
muc_mcu_tile_layer muc_mcu_rows_layer(const muc_node *node, uint32_t inputs, uint64_t rows,
                                      uint64_t bytes, bool b_stays);

/* Places the buffers of all steps and chains in the small memory. MUC_NOFIT as muc_plan_check. */
muc_status muc_mcu_place_tiles(muc_context *ctx, muc_mcu_program *program);
/* The small memory and the names of places in it; nothing if no step works in tiles. */
void muc_mcu_emit_tile_memory(const muc_mcu_program *program, muc_text *text);
/* "static const mur_tiles NAME_tiles" and what runs the step, behind the step's own text. */
void muc_mcu_emit_tiles(const muc_mcu_step *step, muc_text *text);
/* The tiles alone; of a chain's link without buffers. */
void muc_mcu_print_tiles(const muc_mcu_step *step, const mur_tiles *tiles, const uint32_t *copies,
                         muc_text *text);

#endif
