/* build_cnnchip.h - makes memory images and a program for the CNN chip of a network. */
#ifndef MUC_BUILD_CNNCHIP_H
#define MUC_BUILD_CNNCHIP_H

#include "base/output_folder.h"
#include "targets/cnnchip/emit/chip_build.h"

/* Compiles a graph as muc_canonicalise, muc_fuse and muc_lay_channels_last leave it, float32 or
 * int8 with scales as the machine's elements are. The build borrows the graph; that of a graph of
 * shapes (passes/simplify/outline.h) has no images. Fails with MUC_UNSUPPORTED if nothing of it can
 * run on the chip, MUC_NOFIT if a memory is too small. On failure there is nothing to free. */
muc_status muc_cnnchip_compile(muc_context *ctx, const muc_graph *graph, const char *name,
                               const muc_cnnchip_machine *machine, muc_cnnchip_build **out);
void muc_cnnchip_build_free(muc_cnnchip_build *build); /* NULL is fine */

/* Writes program.bin, program.hex, program.asm, frame.bin, filter.bin (also as .hex), map.json and
 * a graph for each host step into a folder, which appears whole or not at all, after check, which
 * may be NULL. The same build gives the same bytes. */
muc_status muc_cnnchip_write_folder(muc_context *ctx, const muc_cnnchip_build *build,
                                    const char *path, muc_folder_check *check, void *arg);

/* A frame image of the same size with inputs in it, borrowed; the program file is made anew. */
muc_status muc_cnnchip_set_frame(muc_cnnchip_build *build, const uint8_t *frame);
#endif
