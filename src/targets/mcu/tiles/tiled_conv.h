/* tiled_conv.h - layers with windows and weights in tiles: mur_tiles_conv_s8, _conv_f32, _pool_s8.
 */
#ifndef MUC_MCU_TILED_CONV_H
#define MUC_MCU_TILED_CONV_H

#include "mur_nn.h"
#include "targets/mcu/tiles/tiles.h"

/* How a kernel's weights are packed. */
typedef struct muc_mcu_conv_packer {
    const void *subject;
    uint32_t element_bytes; /* of input and output */
    size_t (*packed_bytes)(const void *subject, const mur_conv_shape *shape);
    /* the weights of shape->out_c channels from `first` on; false if the kernel does not take them
     */
    bool (*pack)(const void *subject, const mur_conv_shape *shape, uint32_t first, void *packed);
    size_t scratch_bytes; /* of any part of the layer, at most */
} muc_mcu_conv_packer;

/* A layer with weights in tiles. It and what its packer's subject points to lie in the program's
 * arena. */
typedef struct muc_mcu_tiled_conv {
    mur_conv_shape shape; /* as mur_tiles_conv_s8 and _f32 want it */
    muc_mcu_conv_packer packer;
    muc_mcu_tiling tiling;
} muc_mcu_tiled_conv;

/* The parts of a layer that a kernel must take to work in tiles of a machine: all of its channels,
 * the fewest at a time, and the last; how many, 0 if there are no tiles for it. */
enum { MUC_MCU_CONV_PARTS = 3 };
uint32_t muc_mcu_conv_parts(const muc_mcu_machine *machine, const mur_conv_shape *whole,
                            mur_conv_shape parts[MUC_MCU_CONV_PARTS]);

/* Looks for tiles of a layer; *out NULL if the machine has none, the layer cannot be cut, or the
 * smallest tiles do not fit. */
muc_status muc_mcu_find_conv_tiles(muc_mcu_lowering *l, const muc_node *node,
                                   const mur_conv_shape *whole, const muc_mcu_conv_packer *packer,
                                   const muc_mcu_tiled_conv **out);
/* The step at hand works in them, by a kernel of this type of function; *packed is the constant
 * with the weights of its parts. */
muc_status muc_mcu_use_conv_tiles(muc_mcu_lowering *l, const muc_mcu_tiled_conv *conv,
                                  const char *compute, const char *kernel_type, const char *kernel,
                                  uint32_t *packed);
/* What the step's operands are, when its arguments have been passed. */
void muc_mcu_name_conv_values(muc_mcu_lowering *l, uint32_t packed);

/* The same for pooling. */
muc_status muc_mcu_find_pool_tiles(muc_mcu_lowering *l, const muc_node *node,
                                   const mur_pool_s8 *layer, muc_mcu_tiling *out, bool *fits);
muc_status muc_mcu_use_pool_tiles(muc_mcu_lowering *l, const mur_pool_s8 *layer,
                                  const muc_mcu_tiling *tiling, const char *kernel);

#endif
