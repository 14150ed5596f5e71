/* chip_folder.h - a folder that was compiled for the CNN chip, run on its simulator. */
#ifndef MUC_CNNCHIP_CHIP_H
#define MUC_CNNCHIP_CHIP_H

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "run/port.h"
#include "graph/graph.h"
#include "targets/cnnchip/isa/chip_program.h"
#include "targets/cnnchip/sim/chip_sim.h"

/* Where a tensor is (map.json), checked against FRAME. */
typedef struct muc_chip_place {
    const char *name, *tensor; /* the port's name, if it is one; the tensor's */
    muc_dtype dtype;
    uint32_t rank;
    uint64_t dims[MUC_MAX_RANK], elements, bytes; /* of the tensor */
    bool in_frame, in_file;                       /* neither: the master has it */
    uint64_t offset;                              /* in host.bin */
    uint32_t address, c, h, w, rows, pitch;       /* in FRAME */
    bool last;
    float scale;
    int32_t zero;
    uint32_t border[4], border_value; /* top, bottom, left, right: the master's to write */
} muc_chip_place;

/* A tensor that the master has. */
typedef struct muc_chip_tensor {
    const char *name;
    uint8_t *data; /* of the tensor's type */
    uint64_t bytes;
} muc_chip_tensor;

typedef struct muc_chip {
    const char *path;
    muc_arena arena, run; /* run: from one run to the next */
    muc_file map_file, program_file, frame_file, filter_file, host_file;
    json_t *map;
    muc_cnnchip_program program;
    muc_cnnchip_sim sim; /* its memories are in the arena */
    uint32_t stop; /* byte of the code that runs end before, without results; 0: they run all */
    muc_chip_place *inputs, *outputs;
    size_t input_count, output_count;
    muc_chip_tensor *tensors;
    size_t tensor_count, tensor_capacity;
} muc_chip;

/* Whether path is such a folder. */
bool muc_is_chip_folder(const char *path);
/* Opens it: program, images and map, each against the others. */
muc_status muc_chip_open(muc_context *ctx, const char *path, muc_chip *out);
void muc_chip_close(muc_chip *chip);

/* Whether the simulator has memories of the program's sizes. */
bool muc_chip_fits(const muc_cnnchip_program *program);

/* Reads a place of the map: a member of an array of it. */
muc_status muc_chip_read_place(muc_context *ctx, const muc_chip *chip, const json_t *item,
                               muc_chip_place *out);
/* A tensor's elements out of FRAME in the graph's order: float32 of f32, else stored integers. */
void muc_chip_load(const muc_chip *chip, const muc_chip_place *place, uint8_t *out);
/* What FRAME keeps of a real number at an int8 place. */
float muc_chip_round(const muc_chip_place *place, float real);

/* Puts the arrays at their ports (none: the frame image has them), runs the program, the host's
 * steps between, and leaves results in outputs, which live until the next run. */
muc_status muc_chip_run(muc_context *ctx, muc_chip *chip, const muc_tensor_view *arrays,
                        size_t array_count, muc_tensor_view **outputs);

/* Puts arrays at the inputs' places in a frame image, as muc_chip_run does; map: map.json's text.
 * Fails with MUC_UNSUPPORTED naming an input that does not lie in FRAME. */
muc_status muc_chip_fill_frame(muc_context *ctx, muc_bytes map, const muc_cnnchip_program *program,
                               const muc_tensor_view *arrays, size_t count, uint8_t *frame);
/* The same as muc_chip_run, and writes what instructions leave: FRAME, or the partial sums, as .hex
 * after each, every layer as .npy, and index.csv that tells which is which. */
muc_status muc_chip_dump(muc_context *ctx, muc_chip *chip, const char *path,
                         const muc_tensor_view *arrays, size_t count, muc_tensor_view **outputs);
/* Number of the instruction behind a layer's last one; 0: it has none of its own. */
uint64_t muc_chip_layer_end(const json_t *layer);

/* Of a trace's line: how many elements the instruction left, the least, the greatest, their mean
 * and a checksum. */
void muc_chip_trace_result(const muc_cnnchip_sim *sim, const muc_cnnchip_insn *insn,
                           muc_text *text);

/* How far a folder's layers are from the reference. */
typedef struct muc_chip_check {
    uint32_t layers, of;   /* compared; that there are */
    uint32_t exact_layers; /* of int8: compared bit for bit with the chip's arithmetic */
    double worst;          /* greatest difference, of its layer's greatest element */
    uint64_t cycles;       /* counted by the simulator; 0: it did not run all */
    bool agrees;           /* within the tolerance */
    char first[256];       /* the first layer that does not */
} muc_chip_check;

/* Runs a folder on inputs made up and compares layers with the reference on the graph that it was
 * made of: all, or of a large network the first, of at most MUC_CHIP_CHECKED operations. */
#define MUC_CHIP_CHECKED ((uint64_t)1 << 29)
muc_status muc_chip_self_check(muc_context *ctx, const char *path, muc_graph *graph,
                               muc_chip_check *out);

struct muc_report;

/* What the run counted. */
void muc_chip_add_counts(struct muc_report *report, const muc_chip *chip);
/* How many images the arrays hold: a multiple of what each input takes; 1 if they differ. */
uint64_t muc_chip_images(const muc_chip *chip, const muc_tensor_view *arrays, size_t count);
/* Image i of the arrays. */
muc_status muc_chip_take_image(muc_context *ctx, muc_arena *arena, const muc_tensor_view *arrays,
                               size_t count, uint64_t i, uint64_t images, muc_tensor_view **out);

/* Adds the graph of inputs, layers and host steps to the report, for pages. */
muc_status muc_chip_draw_graph(muc_context *ctx, muc_chip *chip, struct muc_report *report);

#endif
