/* decoder.h - what the steps of a decoder have in common. Private to decoder.c and decoder_f32.c.
 */
#ifndef MUC_MCU_DECODER_H
#define MUC_MCU_DECODER_H

#include "targets/mcu/steps/step_writer.h"
#include "targets/mcu/tiles/tiles.h"

bool muc_mcu_is_f32(const muc_tensor *tensor);
/* a constant with data, unless a plan from shapes alone is wanted */
bool muc_mcu_is_known(const muc_mcu_lowering *l, const muc_tensor *tensor);
/* a constant of f32 [count] */
bool muc_mcu_is_vector_of(const muc_mcu_lowering *l, const muc_tensor *tensor, uint32_t count);

/* The function of mur_decoder.h for an instruction set, or for all: "", as "mur_dsp_linear"; its
 * file is taken. */
muc_status muc_mcu_decoder_function(muc_mcu_lowering *l, const char *isa, const char *name,
                                    const char **out);
/* A step that runs a kernel, or with tiles the function that runs it on them, whose first argument
 * they are. layer NULL: without. */
muc_status muc_mcu_begin_either(muc_mcu_lowering *l, const muc_node *node, const char *kernel,
                                const char *runner, const muc_mcu_tile_layer *layer,
                                const muc_mcu_tiling *tiling);

/* An expression as C; its inputs become arguments of the run. */
muc_status muc_mcu_pass_expr(muc_mcu_lowering *l, muc_expr e);
/* Elements of a tensor whose columns are fixed: "m * 64u". */
muc_status muc_mcu_pass_count(muc_mcu_lowering *l, const muc_tensor *tensor);

#endif
