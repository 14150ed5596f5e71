/* tiled_s8.h - int8 layers with weights in tiles. */
#ifndef MUC_MCU_TILED_S8_H
#define MUC_MCU_TILED_S8_H

#include "mur_nn.h"
#include "targets/mcu/tiles.h"

/* A kernel with weights: a row of mur_nn.def. */
typedef struct muc_mcu_conv_kernel {
    muc_mcu_isa isa;
    const char *function;
    int (*fits)(const mur_conv_s8 *layer, const mur_conv_plain *plain);
    size_t (*packed_bytes)(const mur_conv_s8 *layer);
    void (*pack)(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed);
    size_t (*scratch_bytes)(const mur_conv_s8 *layer);
} muc_mcu_conv_kernel;

/* Whether the machine has tiles and the layer can be cut: every row needs some of the input, and
 * channels are independent of each other or share all inputs. */
bool muc_mcu_conv_s8_fits_tiles(const muc_mcu_lowering *l, const mur_conv_s8 *layer);

/* Plans the tiles of the step at hand: *layer is `whole` as mur_tiles_conv_s8 wants it, *packed the
 * constant with the weights of its parts. MUC_NOFIT as muc_mcu_plan_tiles. */
muc_status muc_mcu_tile_conv_s8(muc_mcu_lowering *l, const mur_conv_s8 *whole,
                                const mur_conv_plain *plain, const muc_mcu_conv_kernel *kernel,
                                mur_conv_s8 *layer, uint32_t *packed);

/* The same for pooling, without weights; of the layer, what does not concern rows is not needed
 * but for in_w, out_w and c. */
bool muc_mcu_pool_s8_fits_tiles(const muc_mcu_lowering *l, const mur_pool_s8 *layer);
muc_status muc_mcu_tile_pool_s8(muc_mcu_lowering *l, const mur_pool_s8 *layer);

#endif
