/* tiles.h - steps that work in tiles: on machines with a DMA and a memory that holds tiles.
 *
 * A row of kernels.def describes its layer as rows of pixels of channels and its operands as
 * runtime/include/mur_tiles.h does; the cheapest plan of plan/tile.h that fits the small memory
 * becomes a mur_tiles for mur_tiles_run. Its buffers are placed when all steps are known.
 */
#ifndef MUC_MCU_TILES_H
#define MUC_MCU_TILES_H

#include "mur_tiles.h"
#include "targets/mcu/lower.h"

typedef struct muc_mcu_tile_operand {
    const char *name; /* borrowed */
    uint32_t rows, stride, window,
        pad; /* as in mur_tiles_operand; window 0: the same for all rows */
    uint32_t pixels, pixel_bytes;
    uint32_t channel_bytes; /* 0: does not follow the channels, or is weights */
    bool is_weights;        /* packed, in parts */
} muc_mcu_tile_operand;

typedef struct muc_mcu_tile_layer {
    uint32_t rows, channels;
    uint32_t multiple; /* of channels in a part, but for the last one; channels: not to be cut */
    uint32_t operand_count; /* the result is the last; at most MUR_TILES_OPERANDS */
    muc_mcu_tile_operand operands[MUR_TILES_OPERANDS];
    uint64_t work;          /* multiply-accumulates, or elements, for a channel of a row */
    uint64_t scratch_bytes; /* for each core, at most */
    /* bytes of the packed weights of so many channels; not falling; NULL without weights */
    uint64_t (*packed_bytes)(const void *subject, uint32_t channels);
    const void *subject;
} muc_mcu_tile_layer;

/* Whether the machine at hand has what tiles need. */
bool muc_mcu_has_tiles(const muc_mcu_machine *machine);

/* muc_mcu_begin_step for a function of mur_tiles.h, with the files that it and the host need. */
muc_status muc_mcu_begin_tiles(muc_mcu_lowering *l, const muc_node *node, const char *function);

/* Plans the step at hand: fills *out but for the buffers' places, which the step's text refers to
 * by name, and adds "static const mur_tiles NAME_tiles". MUC_NOFIT names the memory, the least
 * bytes that the layer needs there, and what it has. */
muc_status muc_mcu_plan_tiles(muc_mcu_lowering *l, const muc_mcu_tile_layer *layer, mur_tiles *out);

/* Places the buffers of all steps in the small memory. MUC_NOFIT as muc_plan_check. */
muc_status muc_mcu_place_tiles(muc_context *ctx, muc_mcu_program *program);
/* The small memory and the names of places in it; nothing if no step works in tiles. */
void muc_mcu_emit_tiles(const muc_mcu_program *program, muc_text *text);

#endif
