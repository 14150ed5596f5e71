/* code_folder.h - a folder of generated C: its description, and building it. */
#ifndef MUC_MCU_CODE_FOLDER_H
#define MUC_MCU_CODE_FOLDER_H

#include "base/arena.h"
#include "base/file.h"
#include "base/output_folder.h"
#include "base/json.h"
#include "run/generate.h"
#include "run/port.h"

typedef struct muc_code_folder {
    const char *path, *name;
    muc_arena arena;
    muc_file file;
    json_t *json; /* NAME.json */
    muc_port *inputs, *outputs;
    muc_port *caches; /* what earlier runs left; read after the inputs */
    size_t input_count, output_count, cache_count;
    const char **arrays; /* names of what a run is given, in order: inputs, of exports caches too */
    size_t array_count;
    const char **arguments; /* of a run, in main.c's order: of muc_code_bind */
    size_t argument_count;
    bool streams;       /* it runs as long as there is input, with a state that it keeps */
    const char *record; /* file of the calibration record that the run takes, or NULL */
} muc_code_folder;

muc_status muc_code_open(muc_context *ctx, const char *path, muc_code_folder *out);
void muc_code_close(muc_code_folder *folder);
/* Whether a folder that was just written can be opened, else MUC_BUG: a defect of muc. */
muc_folder_check muc_code_check;

/* Decides the lengths that the network leaves open for a run on these arrays: by their shapes,
 * where a dimension is a length itself, else by dims ("NAME=N", parted by commas, or NULL). Inputs
 * and outputs get the sizes that they then have; of several exports the calibration record is that
 * of the export with these lengths, unless an array "record" is given. MUC_USAGE naming a length
 * that nothing decides, or that two decide differently, or out of its range. */
muc_status muc_code_bind(muc_context *ctx, muc_code_folder *folder, const muc_tensor_view *arrays,
                         size_t array_count, const char *dims, muc_arena *arena);

/* The same without arrays: the greatest lengths, of several exports those of the longest. */
muc_status muc_code_bind_most(muc_context *ctx, muc_code_folder *folder);

/* How many runs in a row the arrays are for (run/repeated_runs.h), 0: one, whose arrays have no
 * dimension for runs. */
muc_status muc_code_runs(muc_context *ctx, const muc_code_folder *folder,
                         const muc_tensor_view *arrays, size_t array_count, uint64_t *runs);
/* The arrays as the network takes them: integers that are of a quantized input's own type are the
 * real numbers that they stand for. In arena; what is as before is borrowed. */
muc_status muc_code_reals(muc_context *ctx, const muc_code_folder *folder,
                          const muc_tensor_view *arrays, size_t array_count, muc_arena *arena,
                          muc_tensor_view **out);
/* The arrays, matched and converted, as the code reads them: one input after another, then the
 * caches; so for each of several runs. */
muc_status muc_code_gather(muc_context *ctx, const muc_code_folder *folder,
                           const muc_tensor_view *arrays, size_t array_count, muc_arena *arena,
                           muc_bytes *out);

/* Builds the folder's code for the host and runs it: input becomes its standard input, *output
 * what it writes, malloc'ed. trace: a source of C with a function muc_trace that is told of every
 * result, or NULL. */
muc_status muc_code_run(muc_context *ctx, const muc_code_folder *folder, const char *trace,
                        muc_bytes input, uint8_t **output, size_t *output_bytes);

/* Builds the folder's code for an emulated board, one of scripts/qemu_boards, and runs it there,
 * with the scripts installed with muc, the board's cross compiler and QEMU: as muc_code_run, and
 * *instructions counts those of the network's run. */
muc_status muc_code_emulate(muc_context *ctx, const muc_code_folder *folder, const char *board,
                            muc_bytes input, uint8_t **output, size_t *output_bytes,
                            uint64_t *instructions);

/* Builds a language model's folder for a board as muc_code_emulate does, and lets it continue a
 * prompt, in its frame, by most_tokens, or 0 for no bound. MUC_USAGE for a prompt that the board
 * has no room for. */
muc_status muc_code_speak(muc_context *ctx, const muc_code_folder *folder, const char *board,
                          const char *prompt, uint32_t most_tokens, muc_arena *arena,
                          muc_speech *out);

/* What a file of the folder, or of the compiler's libraries, gives to a board's image: bytes. */
typedef struct muc_code_file {
    const char *name;
    uint64_t code, constants, data, zeroed; /* data is in flash too, until it is copied */
} muc_code_file;

/* from one traced result to the next, then to the end */
typedef struct muc_code_count {
    uint64_t instructions;
    uint64_t cycles, taken, touched; /* modelled, those of taken branches included; branches taken;
                                        bytes of code that were not executed before */
} muc_code_count;

typedef struct muc_code_profile {
    muc_code_file *files;
    size_t file_count;
    muc_code_count *counts;
    size_t count_count, cycle_count; /* cycle_count: of those with cycles */
    muc_bytes output;                /* what the board wrote */
} muc_code_profile;

/* Builds and runs on a board as muc_code_emulate does, and models cycles if that is asked for; the
 * results are in arena. */
muc_status muc_code_profile_on(muc_context *ctx, const muc_code_folder *folder, const char *board,
                               bool cycles, muc_bytes input, muc_arena *arena,
                               muc_code_profile *out);

/* Builds the folder's code without its main.c as a shared library of the host, and loads it: for
 * the caller to dlclose. */
muc_status muc_code_load(muc_context *ctx, const muc_code_folder *folder, void **library);

#endif
