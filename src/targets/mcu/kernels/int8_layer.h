/* int8_layer.h - what int8 steps compute, kept so that parts of a layer can be computed on their
 * own; and descriptors of the runtime's kernels as text of C.
 */
#ifndef MUC_MCU_LAYER_H
#define MUC_MCU_LAYER_H

#include "base/text.h"
#include "mur_nn.h"
#include "targets/mcu/steps/step_writer.h"
#include "targets/mcu/tiles/tiles.h"

/* A kernel for one instruction set: a row of mur_nn.def. */
typedef struct muc_mcu_kernel {
    muc_mcu_isa isa;
    const char *name, *function;
    /* with weights, else NULL */
    int (*fits)(const mur_conv_s8 *layer, const mur_conv_plain *plain);
    size_t (*packed_bytes)(const mur_conv_s8 *layer);
    void (*pack)(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed);
    size_t (*scratch_bytes)(const mur_conv_s8 *layer);
    /* of a product of matrices, else NULL */
    size_t (*product_scratch_bytes)(const mur_matmul_s8 *layer);
} muc_mcu_kernel;

typedef enum muc_mcu_layer_kind {
    MUC_MCU_LAYER_CONV,
    MUC_MCU_LAYER_POOL,
    MUC_MCU_LAYER_ADD, /* of two tensors of one shape */
} muc_mcu_layer_kind;

/* The layer of a step whose arguments are: the descriptor, the inputs, the output, for
 * convolutions scratch. */
struct muc_mcu_layer {
    muc_mcu_layer_kind kind;
    int32_t in_h, in_w, in_c, out_h, out_w, out_c; /* of images, also where the kernel sees a row */
    union {
        mur_conv_s8
            conv; /* with the image's dimensions, which a pointwise descriptor may not have */
        mur_pool_s8 pool;
        mur_add_s8 add;
    } as;
    mur_conv_plain plain; /* of a convolution; in the program's arena */
    uint32_t packed;      /* of a convolution: the value of its packed weights */
};

/* The dimensions of a convolution of images whose channels come last, or of a linear layer, whose
 * vectors are a row of pixels; rows are dense. */
mur_conv_shape muc_mcu_conv_shape(const muc_mcu_lowering *l, const muc_node *node);
mur_conv_shape muc_mcu_linear_shape(const muc_mcu_lowering *l, const muc_node *node);
uint64_t muc_mcu_conv_macs(const mur_conv_shape *shape);
/* of one output channel */
size_t muc_mcu_conv_weights(const mur_conv_shape *shape);

/* The node's step: input 0, images of this layer, by a kernel of bytes, with the weights, to output
 * 0. plain's arrays live in the program's arena. */
muc_status muc_mcu_write_layer(muc_mcu_lowering *l, const muc_node *node, const mur_conv_s8 *image,
                               const mur_conv_plain *plain);

/* The node's step: of each byte of input 0, read as int8, what a table in the program's arena has;
 * its first element is for -128. cut: the layer as tiles may cut it. */
muc_status muc_mcu_write_table(muc_mcu_lowering *l, const muc_node *node,
                               const muc_mcu_tile_layer *cut, const uint8_t *table);

/* A pointwise layer over dense rows, and a layer over one column, as one row of pixels; others
 * compute what they did. */
void muc_mcu_flatten_conv(mur_conv_shape *shape);

/* A pool of images whose channels come last; rows are dense. */
mur_pool_s8 muc_mcu_pool_of(const muc_mcu_lowering *l, const muc_node *node);
/* Whether a pool is one that it describes: without gaps, padding that counts or open shapes. */
bool muc_mcu_is_dense_pool(const muc_mcu_lowering *l, const muc_node *node);
/* Whether a reduction is over all pixels of one image whose channels come last. */
bool muc_mcu_is_over_pixels(const muc_mcu_lowering *l, const muc_node *node);

/* What TFLite makes of a node's integers that are scaled to its output's. */
mur_output_s8 muc_mcu_output_of(const muc_mcu_lowering *l, const muc_node *node);
/* Whether kernels work with vectors, which look tables up, too. */
bool muc_mcu_has_vectors(muc_mcu_isa isa);
/* The kernel of a name of mur_nn.def that suits an instruction set best. */
const muc_mcu_kernel *muc_mcu_find_kernel(muc_mcu_isa isa, const char *name);
/* The kernel that suits an instruction set best and fits all of some layers: the first, and what is
 * computed of it at a time, some of its rows, columns or channels. There always is one. */
const muc_mcu_kernel *muc_mcu_find_conv(muc_mcu_isa isa, const mur_conv_s8 *layers, uint32_t count,
                                        const mur_conv_plain *plain);
/* The same kernel, or of a layer of few products or pixels one of convolutions or of depthwise
 * layers that a step of the program has anyway, of few inputs one of many: what the layer's own
 * saves is not worth its code, or the bytes of its weights, unless these are few. */
const muc_mcu_kernel *muc_mcu_find_linked(const muc_mcu_program *program,
                                          const muc_mcu_kernel *kernel, const mur_conv_s8 *layers,
                                          uint32_t count, const mur_conv_plain *plain);
/* Is it made for layers whose output channels see one input channel each? */
bool muc_mcu_is_depthwise(const muc_mcu_kernel *kernel);
/* Whether it can overwrite its input, and by how many bytes that must then start after the output.
 */
bool muc_mcu_conv_lead(const muc_mcu_kernel *kernel, const mur_conv_shape *shape, int32_t *lead);

/* The weights, packed for the kernel, as a constant of the step. */
muc_status muc_mcu_pack_conv(muc_mcu_lowering *l, const muc_mcu_kernel *kernel,
                             const mur_conv_s8 *layer, const mur_conv_plain *plain,
                             uint32_t *packed);

/* The fields of a descriptor, ".in_h = 3," on a line each; fields that are 0 are left out. */
void muc_mcu_print_shape(muc_text *text, const mur_conv_shape *shape);
void muc_mcu_print_conv(muc_text *text, const mur_conv_s8 *layer, const char *packed);
void muc_mcu_print_pool(muc_text *text, const mur_pool_s8 *layer);
void muc_mcu_print_add(muc_text *text, const mur_add_s8 *layer);
void muc_mcu_print_mul(muc_mcu_lowering *l, const muc_node *node);
void muc_mcu_print_field(muc_text *text, const char *name, int64_t value);
void muc_mcu_print_output(muc_text *text, const mur_output_s8 *output);

#endif
