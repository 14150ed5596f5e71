/* muc/folder.h - the folders of C code that muc_compile writes for microcontrollers, and those
 * of images that it writes for the CNN chip: built, run,
 * compared with the network, reported on. */
#ifndef MUC_FOLDER_API_H
#define MUC_FOLDER_API_H

#include "muc/compile.h"
#include "muc/model.h"
#include "muc/run.h"

MUC_API_BEGIN

/* Whether path is such a folder. */
bool muc_is_code_folder(const char *path);
/* Whether it is one of a language model, which muc_model_open takes to be run and evaluated. */
bool muc_is_language_folder(const char *path);

/* Builds the code in a temporary folder with the host's compiler (CC or cc) and runs it once on
 * arrays or on a picture; real arrays for inputs that carry quantization are quantized. The report
 * is the table "outputs" (name, type, elements, first, last), with the keys that muc_run_network
 * has for a picture. board: NULL, or one of scripts/qemu_boards to build and run the code for
 * instead, which takes its cross compiler and QEMU; the report then has the keys board and
 * instructions (executed by the network's run). */
muc_status muc_run_folder(muc_context *ctx, const char *path, const muc_array_run *how,
                          const char *board, muc_report **out);

/* Runs code and reference on the network's arrays and compares every tensor that the code
 * computes. Keys: exact, tensors, first_divergence, and the table "layers" (node, operator, values,
 * wrong, error). MUC_MISMATCH if an integer differs at all or a real number by more than 1e-4 of
 * its tensor's greatest; the report is made all the same.
 *
 * A folder of the CNN chip runs on its simulator, every layer beside float32. Keys: compared,
 * worst_relative_error, tolerance, first_divergence, cycles and what else muc_report_folder counts,
 * and the table "layers" (layer, node, operator, values, max_error, mean_error, relative, snr_db).
 * trace: a CSV file to write, a line an instruction, or NULL. */
muc_status muc_verify_folder(muc_context *ctx, const char *path, const muc_model *network,
                             const char *trace, muc_report **out);

/* Compares a language model's folder with the checkpoint that it was made of, token by token: on a
 * prompt's tokens, or with prompt NULL on the text that the code makes greedily of nothing. Keys:
 * exact (all logits are the bits of the reference in the code's arithmetic), positions, kl and
 * top1_agreement (with the checkpoint in float32), first_divergence, and the table "tokens"
 * (position, token, wrong, error: the largest difference from float32, kl, top1). MUC_MISMATCH if a
 * bit differs; the report is made all the same. */
muc_status muc_verify_language_folder(muc_context *ctx, const char *path,
                                      const muc_model *checkpoint, const char *prompt,
                                      muc_report **out);

/* Begins a firmware at path, which must not be there: `network`, what muc_compile makes of the
 * model for the board options->machine (weights of the options count, too), main.c, CMakeLists.txt,
 * start-up code and linker script, board.ini, which describes the board, and a README.md. Keys:
 * folder, machine, emulated (whether QEMU has the board), the table "next" (command), and context,
 * if options->may_shorten made that of a language model half of the model's, or half of that, ...
 * MUC_UNSUPPORTED if muc has no start-up code for the board. */
muc_status muc_new_project(muc_context *ctx, const muc_model *model,
                           const muc_compile_options *options, const char *path, muc_report **out);
/* How the firmware at path, built in the folder `build` in it, gets onto its board: path/board.ini,
 * or the one named. Keys: folder, where the commands are to be run, machine, and the table
 * "commands" (tool, found, command). run: the first command whose tool is found is run; MUC_IO if
 * it fails. Such a file may hold any command: it is for those who trust it. The report is made all
 * the same. */
muc_status muc_flash(muc_context *ctx, const char *path, const char *board, bool run,
                     muc_report **out);

/* What a report is about; everything may be zero. */
typedef struct muc_report_options {
    const char *board;   /* of a folder of code: one of scripts/qemu_boards, or NULL */
    bool cycles;         /* on that board: model its core's cycles, too (docs/CYCLES.md) */
    const char *input;   /* for that board: a file with arrays, or a prompt; or NULL */
    const char *machine; /* of a program: whose times it is told in, an .ini file or a name; NULL:
                            the built-in machine that it is made for */
    uint32_t position;   /* of a program: the position of the first token of the call */
    uint32_t tokens;     /* of that call; 0: one */
    const char *trace;   /* of a program: a file of trace events to write, or NULL */
    bool brief; /* of a program: the figures of the call alone, without tables of stages, what if,
                   advice and pictures */
} muc_report_options;

/* What the code needs: name, machine, core, arena_bytes, arena_bound, constant_bytes, macs, and the
 * tables "layers" (name, function, shape, macs, constants, read, written, arena, node), "memory"
 * (use, memory, bytes, limit), "traffic" (memory, read, written) and "buffers" (name, bytes,
 * address, first, last); the page has pictures of the memories over time and of the graph. A board,
 * on which the code is built and run on the arrays of the input or on zeros, adds board,
 * instructions, instructions_per_mac and flash_bytes, instructions of each layer, and the table
 * "sections" (file, code, constants, data, zeroed). Of a language model these are of the first
 * token after a prompt, input's text or some words, and of the choice of the next: adds position
 * instead of instructions_per_mac. With cycles also modelled_cycles, touch_cycles (waiting for what
 * is read from a slow memory for the first time, part of the former), taken_branches,
 * cycles_per_mac, modelled_ms and, where the machine's power is known, modelled_millijoules; and of
 * each layer modelled_cycles, touch_cycles, taken and cycles_per_mac.
 *
 * Of a folder of the CNN chip: counts of a run (instructions, cycles, compute_cycles,
 * memory_cycles, operations, pe_utilisation, bytes read and written), pe_bound, memory_bound,
 * frame_bytes, frame_bound, filter_bytes, and the table "layers"; the page has pictures of both
 * memories over time.
 *
 * Of a program, a file, how long a call takes (src/targets/uthinker/SPEC.md section 9): machine,
 * position, tokens, seconds, tokens_per_second, the shares of that time that are needed for the
 * array's passes (array_share), for the fewest bytes (dram_share) and by the CPU (cpu_share),
 * millijoules and millijoules_per_token where the machine has energies, binding_roof and
 * binding_share, first_token_seconds (of a prompt that ends with the call), cycles of the
 * accelerator, buffer_bytes, program_bytes, counts, and the tables "engines", "energy" (part,
 * millijoules, ..), "waits" (engine, waits_for, cycles, share), "stages", "layers" and
 * "stage_layers" (cycles, share, those of each engine, longest, dram_bytes, macs, instructions),
 * "dram" (class, read, written, share), "buffers" (buffer, bytes, most, most_share, mean_share),
 * "calls" (the same for the first, the middle and the last position and for the largest first
 * call), "what_if" (change, keys, seconds, tokens_per_second, saved) and "what_to_change" (advice:
 * sentences). The page has pictures: a roofline, timelines and the buffers. docs/REPORTS.md tells
 * how to read it. */
muc_status muc_report_folder(muc_context *ctx, const char *path, const muc_report_options *options,
                             muc_report **out);

/* Two reports beside each other: each path is what muc_report_folder takes, or a report of it that
 * was saved as JSON (a file whose name ends in .json), for other options than b's. Keys: a, b, and
 * the tables "figures" (figure, a, b, change: from a to b as a share of a), one for each table that
 * both have with the numbers that differ (row, figure, a, b, change), and "what_changed"
 * (sentences). */
muc_status muc_compare_folders(muc_context *ctx, const char *a, const char *b,
                               const muc_report_options *options, muc_report **out);

MUC_API_END

#endif
