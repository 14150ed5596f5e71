/* chip_build.h - a network compiled for the CNN chip, and its parts as files. */
#ifndef MUC_CNNCHIP_BUILD_H
#define MUC_CNNCHIP_BUILD_H

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

/* chip_map.c: map.json, every address and layer. */
void muc_cnnchip_print_map(const muc_cnnchip_build *build, muc_text *text);

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
