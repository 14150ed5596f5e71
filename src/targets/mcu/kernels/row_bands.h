/* row_bands.h - depthwise layers in bands of rows, where the kernel's scratch for a whole image is
 * more than the output would have given it. */
#ifndef MUC_MCU_ROW_BANDS_H
#define MUC_MCU_ROW_BANDS_H

#include "targets/mcu/kernels/int8_layer.h"

enum { MUC_MCU_MOST_BANDS = 8 };

/* The same kernel is called for each band of output rows, from the top. */
typedef struct muc_mcu_bands {
    uint32_t count;
    mur_conv_s8 layer[MUC_MCU_MOST_BANDS];
    int64_t in[MUC_MCU_MOST_BANDS], out[MUC_MCU_MOST_BANDS]; /* where a band begins, in bytes */
    uint64_t scratch_bytes;
    int64_t lead; /* the output may overlap the input, if that starts so many bytes behind it */
} muc_mcu_bands;

/* The fewest bands by which input, output and scratch take no more bytes than input and output
 * side by side: 1 if a whole image takes no more, or no more than MUR_CONV_SMALL, if no number of
 * bands does, or if the kernel is none of depthwise layers. */
void muc_mcu_find_bands(const muc_mcu_kernel *kernel, const mur_conv_s8 *layer,
                        const mur_conv_plain *plain, muc_mcu_bands *bands);

/* The whole step. */
muc_status muc_mcu_write_bands(muc_mcu_lowering *l, const muc_node *node,
                               const muc_mcu_kernel *kernel, const muc_mcu_bands *bands,
                               const mur_conv_plain *plain);

#endif
