/* emit_template.c - expands the templates of lm/ and package/. */
#include "targets/mcu/emit/emit_template.h"

#include <inttypes.h>
#include <string.h>

#include "base/choice.h"
#include "targets/mcu/emit/emit_program.h"
#include "targets/mcu/plan/plan_arena.h"

#include <mcu_templates.h> /* made by the build: files[] */

/* ---- variables ---- */

static void print_name(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "%s", program->name);
}

static void print_upper(const muc_mcu_program *program, muc_text *text)
{
    muc_mcu_print_upper(text, program->name);
}

static const muc_mcu_core_info *core_of(const muc_mcu_program *program)
{
    return muc_mcu_core_get(program->machine->core);
}

static void print_core(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "%s", core_of(program)->name);
}

static void print_flags(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "%s", core_of(program)->flags);
}

static void print_code(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "%s", *program->package->code ? program->package->code : ".");
}

static void print_headers(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "%s", program->package->headers);
}

/* of project() of CMake, besides C */
static void print_languages(const muc_mcu_program *program, muc_text *text)
{
    for (uint32_t i = 0; i < program->source_count; i++)
        if (strstr(program->sources[i], ".S"))
            muc_text_add(text, " ASM");
}

static void print_macs(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "%" PRIu64, muc_mcu_macs(program));
}

static void print_arena_bytes(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "%" PRIu64, program->plan.peak);
}

static void print_constant_bytes(const muc_mcu_program *program, muc_text *text)
{
    muc_text_add(text, "%" PRIu64, muc_mcu_constant_bytes(program));
}

static const muc_mcu_variable common[] = {
    { "name", print_name },
    { "NAME", print_upper },
    { "core", print_core },
    { "flags", print_flags },
    { "code", print_code },
    { "headers", print_headers },
    { "languages", print_languages },
    { "macs", print_macs },
    { "arena_bytes", print_arena_bytes },
    { "constant_bytes", print_constant_bytes },
    { NULL, NULL },
};

/* "@word@" at the start of `at`? */
static bool stands(const char *at, const char *word)
{
    size_t length = strlen(word);

    return *at == '@' && strncmp(at + 1, word, length) == 0 && at[1 + length] == '@';
}

static const muc_mcu_variable *variable_at(const char *at, const muc_mcu_variable *list)
{
    for (; list && list->name; list++)
        if (stands(at, list->name))
            return list;
    return NULL;
}

/* ---- templates ---- */

/* source: what @source@ and @kernel@ stand for, or NULL */
static void print_line(const muc_mcu_program *program, const char *line, const char *source,
                       const muc_mcu_variable *more, muc_text *text)
{
    while (*line) {
        const muc_mcu_variable *variable = variable_at(line, common);

        if (!variable)
            variable = variable_at(line, more);
        if (variable) {
            variable->print(program, text);
            line += strlen(variable->name) + 2;
        } else if (source && (stands(line, "source") || stands(line, "kernel"))) {
            muc_text_add(text, "%s", source);
            line += strlen("@source@");
        } else {
            muc_text_add(text, "%c", *line++);
        }
    }
}

static void print_source(const muc_mcu_program *program, const char *line, const char *source,
                         const char *end, muc_text *text)
{
    muc_text path = { 0 };

    muc_text_add(&path, "%s%s%s", program->package->code, source, end);
    text->failed |= path.failed;
    if (!path.failed)
        print_line(program, line, path.data, NULL, text);
    muc_text_free(&path);
}

/* own: those that were made for the program, which lie in no folder of the runtime */
static void print_sources(const muc_mcu_program *program, const char *line, bool own,
                          muc_text *text)
{
    if (own)
        print_source(program, line, program->name, ".c", text);
    if (own && program->golden.samples)
        print_source(program, line, program->name, "_selftest.c", text);
    for (uint32_t i = 0; i < program->source_count; i++)
        if (own == !strchr(program->sources[i], '/'))
            print_source(program, line, program->sources[i], "", text);
}

static void print_file(const muc_mcu_program *program, size_t file, const muc_mcu_variable *more,
                       muc_text *text)
{
    for (const char *const *line = files[file].lines; *line; line++) {
        bool own = strstr(*line, "@source@") != NULL;

        if (own || strstr(*line, "@kernel@"))
            print_sources(program, *line, own, text);
        else
            print_line(program, *line, NULL, more, text);
    }
}

void muc_mcu_print_template(const muc_mcu_program *program, const char *path,
                            const muc_mcu_variable *more, muc_text *text)
{
    size_t file = 0;

    while (strcmp(files[file].path, path) != 0)
        file++;
    print_file(program, file, more, text);
}

/* ---- packages ---- */

static const muc_mcu_package packages[] = {
#define MUC_MCU_PACKAGE(id, name, code, headers, meaning) { name, code, headers },
#include "targets/mcu/emit/packages.def"
#undef MUC_MCU_PACKAGE
};

muc_status muc_mcu_find_package(muc_context *ctx, const char *name, const muc_mcu_package **out)
{
    const char *names[MUC_COUNT(packages)];
    unsigned found = 0;

    for (size_t i = 0; i < MUC_COUNT(packages); i++)
        names[i] = packages[i].name;
    if (name)
        MUC_TRY(muc_choose(ctx, "--package", name, names, MUC_COUNT(names), &found));
    *out = &packages[found];
    return MUC_OK;
}

/* "zephyr/module.yml" of "package/zephyr/zephyr/module.yml.in" for zephyr, else NULL */
static const char *path_in_folder(const char *path, const char *kind)
{
    static const char room[] = "package/";
    size_t length = strlen(kind);

    if (strncmp(path, room, sizeof(room) - 1) != 0)
        return NULL;
    path += sizeof(room) - 1;
    return strncmp(path, kind, length) == 0 && path[length] == '/' ? path + length + 1 : NULL;
}

/* path: with ".in", which goes; NAME in it becomes the program's */
static muc_status write_file(muc_context *ctx, const muc_mcu_program *program, size_t file,
                             const char *path, muc_folder *folder)
{
    static const char mark[] = "NAME";
    muc_text name = { 0 }, text = { 0 };
    muc_status status;

    if (strncmp(path, mark, sizeof(mark) - 1) == 0) {
        muc_text_add(&name, "%s", program->name);
        path += sizeof(mark) - 1;
    }
    muc_text_add(&name, "%.*s", (int)(strlen(path) - strlen(".in")), path);
    print_file(program, file, NULL, &text);
    status = muc_folder_write_text(folder, name.data, muc_text_status(ctx, &name), &text);
    muc_text_free(&name);
    return status;
}

muc_status muc_mcu_write_package(muc_context *ctx, const muc_mcu_program *program,
                                 muc_folder *folder)
{
    for (size_t i = 0; files[i].path; i++) {
        const char *path = path_in_folder(files[i].path, "all");

        if (!path)
            path = path_in_folder(files[i].path, program->package->name);
        if (path)
            MUC_TRY(write_file(ctx, program, i, path, folder));
    }
    return MUC_OK;
}
