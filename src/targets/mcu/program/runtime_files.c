/* runtime_files.c - which files of runtime/ a program needs: those that define what it calls, and
 * what they include.
 */
#include "targets/mcu/program/runtime_files.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#include <mcu_runtime.h> /* made by the build: files[] */

enum { MOST_FILES = 256 };

/* "void mur_ref_conv_s8(" at the start of a line: a definition, since no source declares another */
static bool defines(const char *line, const char *function)
{
    size_t length = strlen(function);
    const char *at = strstr(line, function);

    return at && at != line && (at[-1] == ' ' || at[-1] == '*') && at[length] == '(' &&
           line[0] != ' ' && line[0] != '/' && !strchr(line, ';');
}

static bool is_source(const char *path)
{
    return strcmp(path + strlen(path) - 2, ".c") == 0;
}

muc_status muc_mcu_need_function(muc_context *ctx, muc_mcu_program *program, const char *function)
{
    for (size_t i = 0; files[i].path; i++) {
        if (!is_source(files[i].path))
            continue;
        for (const char *const *line = files[i].lines; *line; line++)
            if (defines(*line, function))
                return muc_mcu_add_source(ctx, program, files[i].path);
    }
    return muc_fail(ctx, MUC_BUG, "mcu", MUC_NO_OFFSET, "no file of the runtime defines %s",
                    function);
}

/* the file of this name, in whichever folder */
static size_t find_file(const char *name, size_t length)
{
    size_t i = 0;

    for (; files[i].path; i++) {
        const char *slash = strrchr(files[i].path, '/');
        const char *base = slash ? slash + 1 : files[i].path;

        if (strlen(base) == length && memcmp(base, name, length) == 0)
            break;
    }
    return i;
}

const char *const muc_mcu_inline_headers[] = { "mur_half.h", "mur_linear.h",    "mur_quantlib.h",
                                               "mur_real.h", "mur_real_wide.h", "mur_sigmoid.h",
                                               "mur_turn.h", "mur_whole.h",     NULL };

/* whether a step's own code calls a function, of this length of name */
static bool is_called(const muc_mcu_program *program, const char *function, size_t length)
{
    char call[64];

    if (length + 2 > sizeof(call))
        return false;
    memcpy(call, function, length);
    memcpy(call + length, "(", 2);
    for (uint32_t i = 0; i < program->step_count; i++)
        if (strstr(program->steps[i].text, call))
            return true;
    return false;
}

bool muc_mcu_calls_header(const muc_mcu_program *program, const char *header)
{
    static const char function[] = "static inline ", macro[] = "#define ";
    size_t file = find_file(header, strlen(header));

    for (const char *const *line = files[file].lines; *line; line++) {
        const char *open = strchr(*line, '('), *begin = open;

        if (!open || (strncmp(*line, function, sizeof(function) - 1) != 0 &&
                      strncmp(*line, macro, sizeof(macro) - 1) != 0))
            continue;
        while (begin[-1] != ' ' && begin[-1] != '*')
            begin--;
        if (begin < open && is_called(program, begin, (size_t)(open - begin)))
            return true;
    }
    return false;
}

/* marks what a file includes, and what that includes */
static void mark_includes(size_t file, bool *wanted, size_t *open, size_t *count)
{
    static const char word[] = "#include \"";

    for (const char *const *line = files[file].lines; *line; line++) {
        const char *name = *line + sizeof(word) - 1, *end;
        size_t found;

        if (strncmp(*line, word, sizeof(word) - 1) != 0 || !(end = strchr(name, '"')))
            continue;
        for (const char *at = name; at < end; at++) /* of src/gen the file alone */
            name = *at == '/' ? at + 1 : name;
        found = find_file(name, (size_t)(end - name));
        if (files[found].path && !wanted[found]) {
            wanted[found] = true;
            open[(*count)++] = found;
        }
    }
}

static muc_status write_file(const muc_mcu_package *package, size_t file, muc_folder *folder)
{
    const char *path = files[file].path;
    const char *slash = strrchr(path, '/');
    bool stays = is_source(path) || strncmp(path, "src/", 4) == 0;
    char name[128];
    muc_text text = { 0 };

    /* sources name headers beside them by their path, others by their name */
    snprintf(name, sizeof(name), "%s%s", stays ? package->code : package->headers,
             stays ? path : slash + 1);
    for (const char *const *line = files[file].lines; *line; line++)
        muc_text_add(&text, "%s", *line);
    return muc_folder_write_text(folder, name, MUC_OK, &text);
}

muc_status muc_mcu_write_runtime(const muc_mcu_program *program, muc_folder *folder)
{
    static const char always[] = "mur_nn_arith.h";
    bool wanted[MOST_FILES] = { false };
    size_t open[MOST_FILES], count = 0;

    _Static_assert(MUC_COUNT(files) <= MOST_FILES, "room for every file of the runtime");
    open[count++] = find_file(always, strlen(always));
    for (const char *const *header = muc_mcu_inline_headers; *header; header++)
        if (muc_mcu_calls_header(program, *header))
            open[count++] = find_file(*header, strlen(*header));
    for (uint32_t i = 0; i < program->source_count; i++)
        for (size_t f = 0; files[f].path; f++)
            if (strcmp(files[f].path, program->sources[i]) == 0)
                open[count++] = f;
    for (size_t i = 0; i < count; i++)
        wanted[open[i]] = true;
    for (size_t i = 0; i < count; i++)
        mark_includes(open[i], wanted, open, &count);
    for (size_t i = 0; files[i].path; i++)
        if (wanted[i])
            MUC_TRY(write_file(program->package, i, folder));
    return MUC_OK;
}
