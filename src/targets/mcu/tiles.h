/* tiles.h - steps that work in tiles: on machines with a DMA and a memory that holds tiles.
 *
 * A row of kernels.def describes its layer as rows of pixels of channels and its operands as
 * runtime/include/mur_tiles.h does; the cheapest plan of plan/tile.h that fits the small memory
 * becomes a mur_tiles for mur_tiles_run. Its buffers are placed when all steps are known.
 */
#ifndef MUC_MCU_TILES_H
#define MUC_MCU_TILES_H

#include "mur_tiles.h"
#include "plan/tile.h"
#include "targets/mcu/lower.h"

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

/* Whether the machine at hand has what tiles need. */
bool muc_mcu_has_tiles(const muc_mcu_machine *machine);

/* The cheapest tiles of a layer, on as many cores as the small memory has scratch for. If not even
 * the smallest fit, *fits is false and the step that begins next carries a note that says so. */
muc_status muc_mcu_find_tiles(muc_mcu_lowering *l, const muc_mcu_tile_layer *layer,
                              muc_mcu_tiling *out, bool *fits);
/* The step at hand works in these tiles: prints "static const mur_tiles NAME_tiles" to *text, with
 * the buffers' places as names, and takes the files of the runtime that it needs. */
muc_status muc_mcu_use_tiles(muc_mcu_lowering *l, const muc_mcu_tile_layer *layer,
                             const muc_mcu_tiling *tiling, muc_text *text);

/* A function of the program that mur_tiles_run calls: "NAME_piece". */
typedef struct muc_mcu_pieces {
    const char *names[MUR_TILES_OPERANDS]; /* of the operands, the result last */
    uint32_t count;
    const char *text; /* the tiles */
} muc_mcu_pieces;

/* The function at hand, of muc_mcu_begin_function, is that of a piece: its body may speak of
 * `piece`, rows and channels. */
muc_status muc_mcu_begin_pieces(muc_mcu_lowering *l, const muc_mcu_tile_layer *layer,
                                const muc_mcu_tiling *tiling);

/* If the machine has tiles and this layer's fit, *fits is true and the function of a piece begins;
 * nothing has begun otherwise. Operands are called as nest.h does. */
muc_status muc_mcu_begin_tiled_function(muc_mcu_lowering *l, const muc_node *node,
                                        const muc_mcu_tile_layer *layer, bool *fits);

/* A layer of some rows of one or two inputs a, b and a result y, each of so many bytes; or b is the
 * same for all rows. */
muc_mcu_tile_layer muc_mcu_rows_layer(const muc_node *node, uint64_t rows, uint64_t bytes,
                                      bool b_stays);

/* Places the buffers of all steps in the small memory. MUC_NOFIT as muc_plan_check. */
muc_status muc_mcu_place_tiles(muc_context *ctx, muc_mcu_program *program);
/* The small memory and the names of places in it; nothing if no step works in tiles. */
void muc_mcu_emit_tiles(const muc_mcu_program *program, muc_text *text);

#endif
