/* decoder_tiles.h - a decoder's products and attention as layers that can be cut (tiles.h), with
 * the operands of runtime/include/mur_tiles_decoder.h. There are at most so many rows; cores share
 * them by channels. */
#ifndef MUC_MCU_DECODER_TILES_H
#define MUC_MCU_DECODER_TILES_H

#include "mur_decoder.h"
#include "targets/mcu/tiles/tiles.h"

typedef struct muc_mcu_product {
    uint32_t rows, n, k;
    uint32_t multiple;     /* of the matrix's rows in a part */
    uint32_t vector_bytes; /* of k elements */
    bool has_scales, has_bias;
    /* as muc_mcu_tile_layer's */
    uint64_t (*packed_bytes)(const void *subject, uint32_t channels);
    const void *subject;
} muc_mcu_product;

muc_mcu_tile_layer muc_mcu_product_layer(const char *name, const muc_mcu_product *product);
/* The index of the operand that is the packed matrix. */
enum { MUC_MCU_PRODUCT_PACKED = 2 };

muc_mcu_tile_layer muc_mcu_attention_layer(const char *name, const mur_attention_q8 *op,
                                           uint32_t rows, uint64_t scratch_bytes);

#endif
