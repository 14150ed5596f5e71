/* build_mcu.c - lowers a graph, plans its memory, and writes the folder of C. */
#include "targets/mcu/compile/build_mcu.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "targets/mcu/emit/emit_program.h"
#include "targets/mcu/emit/emit_selftest.h"
#include "targets/mcu/emit/emit_template.h"
#include "targets/mcu/lower/lower_nodes.h"
#include "targets/mcu/plan/plan_arena.h"
#include "targets/mcu/plan/order_steps.h"
#include "targets/mcu/plan/patch_program.h"
#include "targets/mcu/program/runtime_files.h"
#include "targets/mcu/tiles/tiles.h"
#include "targets/mcu/emit/weights_file.h"

/* small letters, as a prefix of functions and of a file's name */
static muc_status set_name(muc_context *ctx, muc_mcu_program *program, const char *name)
{
    const char *identifier;
    char *small;

    MUC_TRY(muc_mcu_identifier(ctx, &program->arena, *name ? name : "network", &identifier));
    small = (char *)identifier;
    for (; *small; small++)
        *small = (char)tolower((unsigned char)*small);
    program->name = identifier;
    if (strcmp(identifier, "main") != 0)
        return MUC_OK;
    return muc_arena_format(ctx, &program->arena, &program->name, "main_network"); /* main.c */
}

/* which way to store weights would make `bytes` of constants fit */
static void hint_at_fewer_bits(muc_context *ctx, const muc_mcu_program *program, uint64_t bytes,
                               uint64_t limit)
{
    uint64_t rest = bytes > program->weight_bytes ? bytes - program->weight_bytes : 0;

    if (!program->lm && program->uses_f32)
        muc_hint(ctx, "--quant int8 takes about a quarter of that");
    if (!program->lm)
        return;
    if (!program->lm->blocks && rest + program->weights * 9 / 16 <= limit) /* 4.5 bits */
        muc_hint(ctx, "--quant bd4 would do");
    else if (rest + program->weights * 5 / 16 <= limit) /* 2.5 bits */
        muc_hint(ctx, "muc compress --bits 2 would do");
    else
        muc_hint(ctx, "no number of bits is few enough, even 2 a weight take %" PRIu64 " bytes",
                 rest + program->weights / 4);
}

/* constants, and no code yet, against the memory that holds both */
static muc_status check_constants(muc_context *ctx, const muc_mcu_program *program)
{
    const muc_mcu_memory *memory = muc_mcu_memory_for(program->machine, MUC_MCU_WEIGHTS);
    uint64_t bytes = muc_mcu_constant_bytes(program);

    if (memory->bytes == 0 || bytes <= memory->bytes)
        return MUC_OK;
    muc_fail(ctx, MUC_NOFIT, program->graph->name, MUC_NO_OFFSET,
             "constants take %" PRIu64 " bytes, %" PRIu64 " more than the %" PRIu32
             " of %s of machine %s",
             bytes, bytes - memory->bytes, memory->bytes, memory->name, program->machine->name);
    hint_at_fewer_bits(ctx, program, bytes, memory->bytes);
    return MUC_NOFIT;
}

/* The context whose caches leave room for what is too much now, if all else is the same, or 0. As
 * caches have a multiple of STEP positions, so has it. */
static uint32_t context_for(const muc_mcu_program *program)
{
    enum { STEP = 8 };
    uint64_t states = 0, surplus = program->plan.peak - program->plan.capacity, fewer;
    uint32_t context;

    for (uint32_t i = 0; i < program->value_count; i++)
        if (program->values[i].kind == MUC_MCU_STATE_DATA) {
            states += program->values[i].bytes;
            surplus += MUC_MCU_ALIGNMENT; /* in front of the next, for a shorter one */
        }
    if (states < program->lm->context)
        return 0;
    fewer = surplus / (states / program->lm->context) + 1;
    context = fewer < program->lm->context ? program->lm->context - (uint32_t)fewer : 0;
    return context < STEP ? context : context / STEP * STEP;
}

static muc_status check_arena(muc_context *ctx, const muc_mcu_program *program)
{
    muc_status status = muc_plan_check(ctx, &program->plan);

    if (status != MUC_NOFIT)
        return status;
    if (program->lm && program->lm->shorter)
        *program->lm->shorter = context_for(program);
    else if (program->lm)
        muc_hint(ctx, "a shorter context (--ctx-size) would help");
    else if (program->uses_f32)
        muc_hint(ctx, "--quant int8 takes about a quarter");
    return status;
}

/* buffers to addresses; chains leave some out, as many as must be */
static muc_status plan_memory(muc_context *ctx, muc_mcu_program *program, muc_mcu_fuse fuse)
{
    MUC_TRY(muc_mcu_find_chains(ctx, program, fuse));
    MUC_TRY(muc_mcu_plan_memory(ctx, program));
    if (fuse != MUC_MCU_FUSE_AUTO || program->plan.peak <= program->plan.capacity)
        return MUC_OK;
    MUC_TRY(muc_mcu_find_chains(ctx, program, MUC_MCU_FUSE_LEAST));
    return muc_mcu_plan_memory(ctx, program);
}

muc_status muc_mcu_begin(muc_context *ctx, const char *name, const char *machine,
                         const char *package, muc_mcu_build *build)
{
    muc_mcu_program *program = &build->program;

    MUC_TRY(muc_mcu_find_package(ctx, package, &program->package));
    MUC_TRY(muc_mcu_find_machine(ctx, &program->arena, machine, &build->machine));
    program->machine = &build->machine;
    return set_name(ctx, program, name);
}

muc_status muc_mcu_prepare_for(muc_context *ctx, muc_graph *graph, const char *machine)
{
    muc_arena arena = { 0 };
    muc_mcu_machine found;
    muc_status status = muc_mcu_find_machine(ctx, &arena, machine, &found);

    muc_arena_free(&arena);
    MUC_TRY(status);
    return muc_mcu_prepare(ctx, graph, found.core, muc_mcu_has_tiles(&found));
}

static muc_status compile(muc_context *ctx, muc_graph *graph, const char *name, const char *machine,
                          const muc_mcu_choices *choices, muc_mcu_build *build)
{
    muc_mcu_program *program = &build->program;

    MUC_TRY(muc_mcu_begin(ctx, name, machine, choices->package, build));
    program->graph = graph;
    program->lm = choices->lm;
    program->weights_file = choices->weights_file;
    MUC_TRY(muc_mcu_lower(ctx, graph, program)); /* nodes to calls */
    MUC_TRY(muc_mcu_order_steps(ctx, program));
    if (choices->lm)
        MUC_TRY(muc_mcu_lm_sources(ctx, program));
    MUC_TRY(plan_memory(ctx, program, choices->fuse));
    MUC_TRY(muc_mcu_patch(ctx, program, choices->patches));
    if (choices->need)
        *choices->need = muc_mcu_need(program);
    MUC_TRY(check_constants(ctx, program)); /* patches may pack weights in another way */
    MUC_TRY(muc_mcu_weights_source(ctx, program));
    MUC_TRY(muc_mcu_place_tiles(ctx, program));
    return check_arena(ctx, program);
}

muc_status muc_mcu_compile_as(muc_context *ctx, muc_graph *graph, const char *name,
                              const char *machine, const muc_mcu_choices *choices,
                              muc_mcu_build **out)
{
    muc_mcu_build *build = muc_calloc(1, sizeof(*build));
    muc_status status;

    if (!build)
        return muc_fail_nomem(ctx, "mcu", sizeof(*build));
    status = compile(ctx, graph, name, machine, choices, build);
    if (status == MUC_OK)
        *out = build;
    else
        muc_mcu_build_free(build);
    return status;
}

muc_status muc_mcu_compile(muc_context *ctx, muc_graph *graph, const char *name,
                           const char *machine, muc_mcu_patches patches, muc_mcu_build **out)
{
    return muc_mcu_compile_as(ctx, graph, name, machine, &(muc_mcu_choices){ .patches = patches },
                              out);
}

void muc_mcu_build_free(muc_mcu_build *build)
{
    if (!build)
        return;
    muc_arena_free(&build->program.arena);
    free(build);
}

muc_status muc_mcu_write_text(const muc_mcu_program *program, muc_mcu_emitter *emit,
                              const char *name, muc_folder *folder)
{
    muc_text text = { 0 };

    emit(program, &text);
    return muc_folder_write_text(folder, name, MUC_OK, &text);
}

muc_status muc_mcu_write_code(muc_context *ctx, const muc_mcu_program *program,
                              muc_mcu_emitter *emit, const char *end, muc_folder *folder)
{
    muc_arena arena = { 0 };
    const char *path;
    muc_status status =
        muc_arena_format(ctx, &arena, &path, "%s%s%s", program->package->code, program->name, end);

    if (status == MUC_OK)
        status = muc_mcu_write_text(program, emit, path, folder);
    muc_arena_free(&arena);
    return status;
}

static muc_status write_description(muc_context *ctx, const muc_mcu_program *program,
                                    muc_folder *folder)
{
    muc_arena arena = { 0 };
    const char *path;
    muc_status status = muc_arena_format(ctx, &arena, &path, "%s.json", program->name);

    if (status == MUC_OK)
        status = muc_mcu_write_text(program, muc_mcu_emit_json, path, folder);
    muc_arena_free(&arena);
    return status;
}

static muc_status write_all(muc_context *ctx, const muc_mcu_build *build, muc_folder *folder)
{
    const muc_mcu_program *program = &build->program;

    MUC_TRY(muc_mcu_write_code(ctx, program, muc_mcu_emit_source, ".c", folder));
    MUC_TRY(muc_mcu_write_code(ctx, program, muc_mcu_emit_header, ".h", folder));
    MUC_TRY(write_description(ctx, program, folder));
    if (program->golden.samples)
        MUC_TRY(muc_mcu_write_code(ctx, program, muc_mcu_emit_selftest, "_selftest.c", folder));
    if (program->lm) {
        MUC_TRY(muc_mcu_write_code(ctx, program, muc_mcu_lm_source, "_lm.c", folder));
        MUC_TRY(muc_mcu_write_code(ctx, program, muc_mcu_lm_header, "_lm.h", folder));
    }
    MUC_TRY(muc_mcu_write_text(program, program->lm ? muc_mcu_lm_main : muc_mcu_emit_main, "main.c",
                               folder));
    MUC_TRY(muc_mcu_write_package(ctx, program, folder));
    MUC_TRY(muc_mcu_write_text(program, muc_mcu_emit_readme, "README.md", folder));
    for (uint32_t i = 0; program->exports && i < program->exports->record_count; i++)
        MUC_TRY(muc_folder_write(folder, program->exports->records[i].file,
                                 program->exports->records[i].data,
                                 program->exports->record_bytes));
    MUC_TRY(muc_mcu_weights_write(ctx, program, folder));
    return muc_mcu_write_runtime(program, folder);
}

muc_status muc_mcu_write_folder(muc_context *ctx, const muc_mcu_build *build, const char *path,
                                muc_folder_check *check)
{
    muc_folder *folder;

    MUC_TRY(muc_folder_begin(ctx, path, &folder));
    return muc_folder_end(folder, write_all(ctx, build, folder), check, NULL);
}
