/* target.h - what the rest of the house knows of a target: a row of targets.def, and functions that
 * are named after it. A row whose functions are missing does not link. */
#ifndef MUC_TARGET_H
#define MUC_TARGET_H

#include "audio/audio_front_end.h"
#include "base/text.h"
#include "muc/compile.h"
#include "muc/folder.h"
#include "muc/run.h"
#include "run/generate.h"
#include "run/opened_model.h"

/* What lies at a path, if a target made it. */
typedef enum muc_made {
    MUC_MADE_NOTHING,  /* another target's, or no target's */
    MUC_MADE_LANGUAGE, /* a language model: muc_model_open takes it */
    MUC_MADE_NETWORK,  /* it runs on arrays */
} muc_made;

/* A machine that is built in, as --machine names it. */
typedef struct muc_target_machine {
    const char *name, *meaning;
    const char *text; /* of its description, for `muc sweep` to change; NULL: none is at hand */
} muc_target_machine;

/* The passes that a network's graph goes through before it is lowered. */
typedef muc_status muc_target_prepare(muc_context *ctx, muc_graph *graph);
/* muc_compile of a model of a kind that the target takes. out_path NULL: a network is planned, and
 * nothing is written or reported. */
typedef muc_status muc_target_compile(muc_context *ctx, const muc_model *model,
                                      const muc_compile_options *options, const char *out_path,
                                      muc_report **out);
/* NULL after the last. */
typedef const muc_target_machine *muc_target_machine_at(size_t i);
/* bytes: of the file at path, none of a folder. */
typedef muc_made muc_target_recognise(const char *path, muc_bytes bytes);
/* Opens a MUC_MADE_LANGUAGE at model->path, whose file, if it is one, is open: fills what a
 * COMPILED model has. */
typedef muc_status muc_target_open(muc_context *ctx, muc_model *model,
                                   const muc_model_options *options);
/* muc_inspect of it, but for the key "file". */
typedef void muc_target_inspect(const muc_model *model, muc_report *report);
/* muc_run of it on an emulated board. */
typedef muc_status muc_target_speak(muc_context *ctx, const muc_model *model, const char *board,
                                    const char *prompt, uint32_t most_tokens, muc_arena *arena,
                                    muc_speech *out);
/* What a checkpoint's program would take; machine: as muc_compile has it, NULL: the target's own.
 */
typedef struct muc_target_size {
    uint64_t flash_bytes, sram_bytes;
} muc_target_size;
typedef muc_status muc_target_measure(muc_context *ctx, const muc_model *model, const char *machine,
                                      muc_target_size *out);
/* What a model needs of a machine and what that has; 0: not known, or, of limits, none. */
typedef struct muc_target_need {
    uint64_t flash_bytes, flash_limit; /* of a network its constants, without code */
    uint64_t ram_bytes, ram_limit;
    double ms_least, ms_most; /* of a run of a network, or of a token; modelled */
    double millijoules_least, millijoules_most;
    char power_source[65]; /* where the power is from that they are made of, or "" */
} muc_target_need;
/* What muc_compile for a machine would need. A network's graph may be one of shapes
 * (passes/simplify/outline.h), and goes through the target's passes. MUC_NOFIT if the machine lacks
 * memory, MUC_UNSUPPORTED if the target cannot compile it: *out has what is known all the same. */
typedef muc_status muc_target_fit(muc_context *ctx, const muc_model *model,
                                  const muc_compile_options *options, muc_target_need *out);
/* Compares it with the checkpoint that it was made of, on a prompt or (NULL) on a text of its own.
 */
typedef muc_status muc_target_verify_language(muc_context *ctx, const muc_model *made,
                                              const muc_model *checkpoint, const char *prompt,
                                              muc_report **out);
/* muc_run_folder, muc_verify_folder and muc_report_folder of what the target recognises; the first
 * two of MUC_MADE_NETWORK alone. */
typedef muc_status muc_target_run(muc_context *ctx, const char *path, const muc_array_run *how,
                                  const char *board, muc_report **out);
typedef muc_status muc_target_verify(muc_context *ctx, const char *path, const muc_model *network,
                                     const char *trace, muc_report **out);
typedef muc_status muc_target_report(muc_context *ctx, const char *path,
                                     const muc_report_options *options, muc_report **out);

/* Adds to the folder at path, in which `network` is what muc_compile made for the board, an .ini
 * file or a name, what else a firmware has; path NULL: tells whether it can. Adds keys to the
 * report. */
typedef muc_status muc_target_start(muc_context *ctx, const char *path, const char *board,
                                    muc_report *report);
/* muc_front_end_compile of what the options' name, machine and package say. */
typedef muc_status muc_target_front_end(muc_context *ctx, const muc_front_end *front,
                                        const muc_compile_options *options, const char *path,
                                        muc_report *report);
/* muc_flash of such a folder. */
typedef muc_status muc_target_flash(muc_context *ctx, const char *path, const char *board, bool run,
                                    muc_report *report);

/* Programs as text, and back; a target that makes none has no functions. */
typedef struct muc_target_assembly {
    bool (*is_program)(muc_bytes bytes);
    bool (*is_text)(muc_bytes bytes);
    muc_status (*disassemble)(muc_context *ctx, muc_bytes program, muc_text *out);
    /* in arena; only a program that the target's verifier accepts */
    muc_status (*assemble)(muc_context *ctx, muc_arena *arena, muc_bytes text, muc_bytes *out);
    /* muc_list_resolved; NULL: its programs have no Placeholders */
    muc_status (*list_resolved)(muc_context *ctx, muc_bytes program, uint32_t position,
                                uint32_t tokens, muc_text *out);
} muc_target_assembly;

/* The functions of target T are muc_NAME_T: those of every target, of one that makes language
 * models, networks, or both. */
#define MUC_TARGET_FUNCTIONS(F, target) \
    F(compile, target) \
    F(fit, target) \
    F(machine_at, target) \
    F(recognise, target) \
    F(report, target)
#define MUC_TARGET_MAKES_LANGUAGE(F, target) \
    F(open, target) \
    F(inspect, target) \
    F(verify_language, target)
#define MUC_TARGET_MAKES_NETWORK(F, target) \
    F(prepare, target) \
    F(run, target) \
    F(verify, target)
#define MUC_TARGET_MAKES_BOTH(F, target) \
    MUC_TARGET_MAKES_LANGUAGE(F, target) \
    MUC_TARGET_MAKES_NETWORK(F, target) \
    F(measure, target) \
    F(speak, target) \
    F(start, target) \
    F(front_end, target) \
    F(flash, target)

typedef struct muc_target {
    const char *name, *meaning;
    unsigned takes;    /* bit k: models of muc_model_kind k */
    bool keeps_inputs; /* those given with a network become part of what it makes */
    muc_status (*check_output)(muc_context *ctx, const char *path); /* where it is to write */
#define MUC_TARGET_FIELD(function, target) muc_target_##function *function;
    MUC_TARGET_FUNCTIONS(MUC_TARGET_FIELD, )
    MUC_TARGET_MAKES_BOTH(MUC_TARGET_FIELD, )
    const muc_target_assembly *assembly;
#undef MUC_TARGET_FIELD
} muc_target;

#define MUC_TARGET_DECLARE(function, target) muc_target_##function muc_##function##_##target;
#define MUC_TARGET(name, takes, writes, makes, keeps_inputs, meaning) \
    extern const muc_target_assembly muc_assembly_##name; \
    MUC_TARGET_FUNCTIONS(MUC_TARGET_DECLARE, name) \
    MUC_TARGET_MAKES_##makes(MUC_TARGET_DECLARE, name)
#include "targets/targets.def"
#undef MUC_TARGET
#undef MUC_TARGET_DECLARE

/* NULL after the last. */
const muc_target *muc_target_get(size_t i);
/* Whether a built-in machine goes by a name: its own, or, of Arm's boards, one with the number of
 * its image: mps2-an547 is mps3-an547. */
bool muc_machine_is_called(const char *machine, const char *name);
/* What a target calls what it makes of a model: options->name, or the name of the model's file. In
 * arena. MUC_USAGE if options->name is not an identifier of C. */
muc_status muc_name_of_output(muc_context *ctx, muc_arena *arena, const muc_model *model,
                              const muc_compile_options *options, const char **out);
/* The target that made what lies at path, and what that is; NULL if none did. */
const muc_target *muc_target_of(const char *path, muc_made *made);

#endif
