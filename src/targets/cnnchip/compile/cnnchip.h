/* cnnchip.h - the back end for the CNN chip: a network in, memory images and a program out. */
#ifndef MUC_CNNCHIP_H
#define MUC_CNNCHIP_H

#include "base/output_folder.h"
#include "targets/cnnchip/lower/chip_lower.h"

/* A compilation with its stages, for reports and tests. */
typedef struct muc_cnnchip_build {
    const char *name;
    const char *options;  /* that made the graph what it is, for the map; or NULL */
    uint32_t fingerprint; /* of the graph */
    muc_cnnchip_machine machine;
    muc_cnnchip_lowering lowering;
    muc_cnnchip_program program;
    size_t port_capacity;
    muc_bytes frame_image, filter_image, program_file;
    bool inputs_in_frame; /* the frame image has them, not only borders */
    uint32_t hex_bits;    /* of a line of the .hex files; 0: there are none */
} muc_cnnchip_build;

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
/* Bytes as text for $readmemh, line_bytes a line, the lowest address in its last digits; the last
 * line is filled with 0. */
enum { MUC_CNNCHIP_MOST_HEX_BITS = 8192 };
muc_status muc_cnnchip_write_hex(muc_context *ctx, muc_folder *folder, const char *name,
                                 muc_bytes bytes, uint32_t line_bytes);
/* map.json: every address and layer. */
void muc_cnnchip_print_map(const muc_cnnchip_build *build, muc_text *text);

/* ---- private to this folder ---- */

/* host_graphs.c: host step `index` as the text of a graph whose inputs are what it reads; constants
 * of more elements than such a text holds are inputs too, and their bytes are added to `data`. */
muc_status muc_cnnchip_print_host(muc_context *ctx, const muc_cnnchip_build *build, uint32_t index,
                                  muc_text *text);
/* Whether host step `index` reads a tensor that it does not make itself, for the first time as
 * input k of node i. */
bool muc_cnnchip_host_reads(const muc_cnnchip_lowering *l, uint32_t index, uint32_t i, uint32_t k);
/* host.bin holds the constants that host steps read and those that are outputs. Returns where the
 * bytes of this one begin, and adds what lies before to data (or NULL); of MUC_NO_ID, the whole. */
uint64_t muc_cnnchip_host_data(const muc_cnnchip_lowering *l, uint32_t tensor, muc_text *data);

#endif
