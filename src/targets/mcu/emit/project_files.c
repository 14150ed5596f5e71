/* project_files.c - writes what a firmware for a board has besides its network: from the templates
 * of project/, from examples/qemu, and from the machine's memories. */
#include "targets/mcu/emit/project_files.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "targets/mcu/emit/emit_template.h"

#include <mcu_board_files.h> /* made by the build: files[] */

/* ---- cores ---- */

/* what images for cores whose names begin alike have in common */
typedef struct core_family {
    const char *begin, *compiler, *start, *script; /* the latter are files of this house */
} core_family;

static const core_family *family_of(const muc_mcu_machine *machine)
{
    static const core_family families[] = {
        { "cortex-m", "arm-none-eabi-gcc", "examples/qemu/start_arm.c",
          "examples/qemu/cortex_m.ld" },
        { "rv", "riscv64-unknown-elf-gcc", "examples/qemu/start_riscv.S",
          "examples/qemu/riscv.ld" },
    };
    const char *core = muc_mcu_core_get(machine->core)->name;

    for (size_t i = 0; i < MUC_COUNT(families); i++)
        if (strncmp(core, families[i].begin, strlen(families[i].begin)) == 0)
            return &families[i];
    return NULL;
}

static const char *name_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

/* ---- the machine, in templates ---- */

static void print_machine(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "%s", program->machine->name);
}

bool muc_mcu_is_emulated(const muc_mcu_machine *machine)
{
    for (const char *const *command = machine->flash; *command; command++)
        if (strncmp(*command, "qemu-", 5) == 0)
            return true;
    return false;
}

static void print_tested(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, muc_mcu_is_emulated(program->machine)
                           ? "Such projects are built and run under QEMU in muc's tests."
                           : "Such projects are built in muc's tests, but never ran on this "
                             "board: untested.");
}

/* the image byte by byte, where a command asks for it */
static void print_binary(const muc_mcu_program *program, muc_text *text)
{
    for (const char *const *command = program->machine->flash; *command; command++)
        if (strstr(*command, "firmware.bin")) {
            muc_text_add(text, "add_custom_command(TARGET firmware.elf POST_BUILD COMMAND "
                               "${CMAKE_OBJCOPY} -O binary firmware.elf firmware.bin)");
            return;
        }
}

/* what is beside vectors, among the sources */
static void print_boot(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "%s", program->machine->boot ? " board/boot.S" : "");
}

static void print_compiler(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "%s", family_of(program->machine)->compiler);
}

static void print_start(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "%s", name_of(family_of(program->machine)->start));
}

static const muc_mcu_variable variables[] = {
    { "machine", print_machine },
    { "boot", print_boot },
    { "compiler", print_compiler },
    { "start", print_start },
    { "tested", print_tested },
    { "binary", print_binary },
    { NULL, NULL },
};

/* ---- memories ---- */

static void print_memory(muc_text *text, const char *name, const char *access,
                         const muc_mcu_memory *memory)
{
    muc_text_add(text, "    %s (%s) : ORIGIN = 0x%08" PRIx32 ", LENGTH = %" PRIu32 "\n", name,
                 access, memory->origin, memory->bytes);
}

static void print_linker_script(const muc_mcu_machine *machine, muc_text *text)
{
    const muc_mcu_memory *code = muc_mcu_memory_for(machine, MUC_MCU_CODE);
    const muc_mcu_memory *weights = muc_mcu_memory_for(machine, MUC_MCU_WEIGHTS);

    muc_text_add(text,
                 "/* link.ld - the memories of %s: CODE for code, PROGRAM for a network's "
                 "constants. */\nMEMORY\n{\n",
                 machine->name);
    print_memory(text, "CODE", "rx", code);
    print_memory(text, "RAM", "rwx", muc_mcu_memory_for(machine, MUC_MCU_ARENA));
    if (weights != code)
        print_memory(text, "PROGRAM", "r", weights);
    muc_text_add(text, "}\n%sINCLUDE %s\n",
                 weights == code ? "REGION_ALIAS(\"PROGRAM\", CODE)\n" : "",
                 name_of(family_of(machine)->script));
}

/* what is missing for an image at fixed addresses, or NULL */
static muc_status find_missing(muc_context *ctx, muc_arena *arena, const muc_mcu_machine *machine,
                               const char **missing)
{
    static const muc_mcu_use uses[] = { MUC_MCU_CODE, MUC_MCU_WEIGHTS, MUC_MCU_ARENA };

    *missing = family_of(machine) ? NULL : "start-up code of its core";
    for (size_t i = 0; i < MUC_COUNT(uses) && !*missing; i++) {
        const muc_mcu_memory *memory = muc_mcu_memory_for(machine, uses[i]);

        if (memory->origin == MUC_MCU_NO_ORIGIN || memory->bytes == 0)
            MUC_TRY(
                muc_arena_format(ctx, arena, missing, "the origin of memory '%s'", memory->name));
    }
    return MUC_OK;
}

muc_status muc_mcu_project_check(muc_context *ctx, const muc_mcu_machine *machine, const char *name)
{
    muc_arena arena = { 0 };
    const char *missing;
    muc_status status = find_missing(ctx, &arena, machine, &missing);

    if (status == MUC_OK && missing)
        status = muc_fail(ctx, MUC_UNSUPPORTED, name, MUC_NO_OFFSET,
                          "muc new makes no firmware for it without %s; muc compile MODEL --target "
                          "mcu --machine %s --package %s -o FOLDER makes what its development kit "
                          "takes",
                          missing, name, machine->kit ? machine->kit : "cmake");
    muc_arena_free(&arena);
    return status;
}

/* ---- files ---- */

static muc_status save(muc_context *ctx, const char *path, const char *name, muc_text *text)
{
    muc_arena arena = { 0 };
    const char *file;
    muc_status status = muc_text_status(ctx, text);

    if (status == MUC_OK)
        status = muc_arena_format(ctx, &arena, &file, "%s/%s", path, name);
    if (status == MUC_OK)
        status = muc_file_write(ctx, file, text->data, text->size);
    muc_text_free(text);
    muc_arena_free(&arena);
    return status;
}

/* a file of this house, as it is, into the folder board */
static muc_status copy(muc_context *ctx, const char *path, const char *from)
{
    muc_arena arena = { 0 };
    muc_text text = { 0 };
    const char *folder;
    muc_status status;

    for (size_t i = 0; files[i].path; i++)
        if (strcmp(files[i].path, from) == 0)
            for (const char *const *line = files[i].lines; *line; line++)
                muc_text_add(&text, "%s", *line);
    status = muc_arena_format(ctx, &arena, &folder, "%s/board", path);
    status = status == MUC_OK ? save(ctx, folder, name_of(from), &text) : status;
    muc_arena_free(&arena);
    return status;
}

static muc_status expand(muc_context *ctx, const char *path, const char *name,
                         const muc_mcu_program *program, const char *template)
{
    muc_text text = { 0 };

    muc_mcu_print_template(program, template, variables, &text);
    return save(ctx, path, name, &text);
}

static muc_status copy_boot(muc_context *ctx, const char *path, const muc_mcu_program *program)
{
    muc_arena arena = { 0 };
    const char *template;
    muc_status status =
        muc_arena_format(ctx, &arena, &template, "project/boot_%s.S", program->machine->boot);

    if (status == MUC_OK)
        status = expand(ctx, path, "board/boot.S", program, template);
    muc_arena_free(&arena);
    return status;
}

muc_status muc_mcu_write_project(muc_context *ctx, const char *path, const muc_mcu_machine *machine,
                                 muc_mcu_main kind)
{
    static const char *const mains[] = {
        [MUC_MCU_MAIN_BARE] = "project/bare_firmware.c.in",
        [MUC_MCU_MAIN_TESTED] = "project/tested_firmware.c.in",
        [MUC_MCU_MAIN_SPEAKS] = "project/speaking_firmware.c.in",
    };
    const core_family *family = family_of(machine);
    const char *const board[] = {
        family->start,
        family->script,
        "examples/qemu/semihosting.c",
        "examples/qemu/semihosting.h",
        "runtime/freestanding/string.c",
        "runtime/freestanding/string.h",
    };
    const muc_mcu_program program = { .name = "network", .machine = machine };
    muc_text script = { 0 };

    for (size_t i = 0; i < MUC_COUNT(board); i++)
        MUC_TRY(copy(ctx, path, board[i]));
    if (machine->boot)
        MUC_TRY(copy_boot(ctx, path, &program));
    print_linker_script(machine, &script);
    MUC_TRY(save(ctx, path, "board/link.ld", &script));
    MUC_TRY(expand(ctx, path, "CMakeLists.txt", &program, "project/CMakeLists.txt.in"));
    MUC_TRY(expand(ctx, path, "README.md", &program, "project/README.md.in"));
    return expand(ctx, path, "main.c", &program, mains[kind]);
}
