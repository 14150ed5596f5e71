/* image_batch.h - layers of several images, where no tiles are: the kernel of one is called for
 * each. */
#ifndef MUC_MCU_IMAGES_H
#define MUC_MCU_IMAGES_H

#include "targets/mcu/kernels/int8_layer.h"

/* Whether input x [images, ..] of a kernel of one image can be taken. */
bool muc_mcu_takes_images(const muc_mcu_lowering *l, const muc_tensor *x);

/* How many images the node's output is, if a layer of this shape makes one. */
uint32_t muc_mcu_images_of(const muc_mcu_lowering *l, const muc_node *node,
                           const mur_conv_shape *shape);

/* A pointwise layer that is a row of pixels becomes that of all images. Returns how many of its
 * images there are then: 1, or as many if it is none. */
uint32_t muc_mcu_join_images(mur_conv_shape *shape, uint32_t images);

/* How often a kernel is called, and for what. */
typedef struct muc_mcu_images {
    const char *function;
    uint32_t count;
    uint64_t in_elements, out_elements; /* of an image */
    uint32_t element_bytes;
    bool has_scratch; /* as its last parameter */
    uint64_t scratch_bytes;
    bool overlaps; /* an image's output its input, if that starts `lead` elements behind it */
    int64_t lead;
    uint64_t macs; /* of all */
} muc_mcu_images;

/* The end of a function whose text defines the descriptor `layer`: the calls. */
muc_status muc_mcu_end_images(muc_mcu_lowering *l, const muc_mcu_images *call);

/* The whole step of a convolution, or of a pool, of int8; layers are those of one image. */
muc_status muc_mcu_write_conv_images(muc_mcu_lowering *l, const muc_node *node, uint32_t images,
                                     const muc_mcu_kernel *kernel, const mur_conv_s8 *layer,
                                     const mur_conv_plain *plain);
muc_status muc_mcu_write_pool_images(muc_mcu_lowering *l, const muc_node *node,
                                     const char *function, const mur_pool_s8 *layer);

#endif
