/* project_mcu.c - firmware for a board begun, and brought onto the board. */
#include <string.h>

#include "base/child_process.h"
#include "base/file.h"
#include "report/report_builder.h"
#include "targets/mcu/emit/project_files.h"
#include "targets/target.h"

/* ---- begun ---- */

static muc_status main_for(muc_context *ctx, muc_arena *arena, const char *path, muc_mcu_main *out)
{
    const char *tested, *speaks;

    MUC_TRY(muc_arena_format(ctx, arena, &tested, "%s/network/network_selftest.c", path));
    MUC_TRY(muc_arena_format(ctx, arena, &speaks, "%s/network/network_lm.c", path));
    *out = muc_path_exists(speaks)   ? MUC_MCU_MAIN_SPEAKS
           : muc_path_exists(tested) ? MUC_MCU_MAIN_TESTED
                                     : MUC_MCU_MAIN_BARE;
    return MUC_OK;
}

static void describe(muc_report *report, const char *path, const muc_mcu_machine *machine)
{
    static const char *const commands[] = { "cmake -S . -B build", "cmake --build build",
                                            "muc flash --run" };

    muc_report_add_text(report, "folder", "%s", path);
    muc_report_add_text(report, "machine", "%s", machine->name);
    muc_report_add_bool(report, "emulated", muc_mcu_is_emulated(machine));
    muc_report_begin_table(report, "next");
    for (size_t i = 0; i < MUC_COUNT(commands); i++) {
        muc_report_begin_row(report);
        muc_report_add_text(report, "command", "%s", commands[i]);
        muc_report_end(report);
    }
    muc_report_end(report);
}

static muc_status write(muc_context *ctx, muc_arena *arena, const char *path,
                        const muc_mcu_machine *machine, muc_bytes description)
{
    const char *board, *folder;
    muc_mcu_main kind;

    MUC_TRY(main_for(ctx, arena, path, &kind));
    MUC_TRY(muc_arena_format(ctx, arena, &folder, "%s/board", path));
    MUC_TRY(muc_arena_format(ctx, arena, &board, "%s/board.ini", path));
    MUC_TRY(muc_make_dir(ctx, folder));
    MUC_TRY(muc_file_write(ctx, board, description.data, description.size));
    return muc_mcu_write_project(ctx, path, machine, kind);
}

muc_status muc_start_mcu(muc_context *ctx, const char *path, const char *board, muc_report *report)
{
    muc_arena arena = { 0 };
    muc_mcu_machine machine;
    muc_bytes description;
    muc_status status = muc_mcu_machine_text(ctx, &arena, board, &description);

    if (status == MUC_OK)
        status = muc_mcu_read_machine(ctx, &arena, description, &machine);
    if (status == MUC_OK)
        status = muc_mcu_project_check(ctx, &machine, board);
    if (status == MUC_OK && path)
        status = write(ctx, &arena, path, &machine, description);
    if (status == MUC_OK && path)
        describe(report, path, &machine);
    muc_arena_free(&arena);
    return status;
}

/* ---- flashed ---- */

/* the first word of a command, and where on the path that program is, or NULL */
static muc_status find_tool(muc_context *ctx, muc_arena *arena, const char *command,
                            const char **tool, const char **where)
{
    MUC_TRY(muc_arena_string(ctx, arena, command, strcspn(command, " "), tool));
    return muc_find_program(ctx, arena, *tool, where);
}

/* *found: the first command whose program is there, or NULL */
static muc_status list_commands(muc_context *ctx, muc_arena *arena, const muc_mcu_machine *machine,
                                muc_report *report, const char **found)
{
    *found = NULL;
    muc_report_begin_table(report, "commands");
    for (const char *const *command = machine->flash; *command; command++) {
        const char *tool, *where;

        MUC_TRY(find_tool(ctx, arena, *command, &tool, &where));
        muc_report_begin_row(report);
        muc_report_add_text(report, "tool", "%s", tool);
        muc_report_add_bool(report, "found", where != NULL);
        muc_report_add_text(report, "command", "%s", *command);
        muc_report_end(report);
        if (where && !*found)
            *found = *command;
    }
    muc_report_end(report);
    return MUC_OK;
}

static muc_status run_command(muc_context *ctx, muc_arena *arena, const char *folder,
                              const char *command)
{
    const char *image, *line;
    const char *words[] = { "/bin/sh", "-c", NULL, folder, NULL };
    int ended;

    MUC_TRY(muc_arena_format(ctx, arena, &image, "%s/firmware.elf", folder));
    if (!muc_path_exists(image))
        return muc_fail(ctx, MUC_IO, image, MUC_NO_OFFSET,
                        "is not there: build the project first, with cmake");
    MUC_TRY(muc_arena_format(ctx, arena, &line, "cd \"$0\" && %s", command));
    words[2] = line;
    MUC_TRY(muc_child_await(ctx, words, NULL, NULL, NULL, NULL, &ended));
    return muc_child_judge(ctx, command, ended);
}

static muc_status flash(muc_context *ctx, muc_arena *arena, const char *path, const char *board,
                        bool run, muc_report *report)
{
    const char *folder, *found;
    muc_mcu_machine machine;

    if (!board) {
        MUC_TRY(muc_arena_format(ctx, arena, &board, "%s/board.ini", path));
        if (!muc_path_exists(board))
            return muc_fail(ctx, MUC_IO, board, MUC_NO_OFFSET,
                            "is not there: give the folder that muc new wrote, or --board");
    }
    MUC_TRY(muc_arena_format(ctx, arena, &folder, "%s/build", path));
    MUC_TRY(muc_mcu_find_machine(ctx, arena, board, &machine));
    if (!machine.flash[0])
        return muc_fail(ctx, MUC_UNSUPPORTED, board, MUC_NO_OFFSET,
                        "does not say how the board is flashed: flash = COMMAND in its [machine]");
    muc_report_add_text(report, "folder", "%s", folder);
    muc_report_add_text(report, "machine", "%s", machine.name);
    MUC_TRY(list_commands(ctx, arena, &machine, report, &found));
    if (!run)
        return MUC_OK;
    if (found)
        return run_command(ctx, arena, folder, found);
    return muc_fail(ctx, MUC_IO, machine.name, MUC_NO_OFFSET,
                    "none of the programs that flash it is installed");
}

muc_status muc_flash_mcu(muc_context *ctx, const char *path, const char *board, bool run,
                         muc_report *report)
{
    muc_arena arena = { 0 };
    muc_status status = flash(ctx, &arena, path, board, run, report);

    muc_arena_free(&arena);
    return status;
}
