/* targets.c - the table of targets. */
#include <string.h>

#include "base/file.h"
#include "base/output_folder.h"
#include "targets/target.h"

enum { MOST_NAME_BYTES = 40 };

static const muc_target targets[] = {
#define KIND(kind) (1u << MUC_MODEL_##kind)
#define FUNCTION(function, target) .function = muc_##function##_##target,
#define MUC_TARGET(id, kinds, writes, makes, keeps, what) \
    { .name = #id, \
      .meaning = what, \
      .takes = kinds, \
      .keeps_inputs = keeps, \
      .check_output = muc_##writes##_precheck, \
      .assembly = &muc_assembly_##id, \
      MUC_TARGET_FUNCTIONS(FUNCTION, id) MUC_TARGET_MAKES_##makes(FUNCTION, id) },
#include "targets/targets.def"
#undef MUC_TARGET
#undef FUNCTION
#undef KIND
};

const muc_target *muc_target_get(size_t i)
{
    return i < MUC_COUNT(targets) ? &targets[i] : NULL;
}

bool muc_machine_is_called(const char *machine, const char *name)
{
    const char *image = strstr(machine, "-an"), *asked = strstr(name, "-an");

    return strcmp(machine, name) == 0 ||
           (image && asked && strncmp(name, "mps", 3) == 0 && strcmp(image, asked) == 0);
}

muc_status muc_name_of_output(muc_context *ctx, muc_arena *arena, const muc_model *model,
                              const muc_compile_options *options, const char **out)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    const char *name = options->name;

    if (!name)
        return muc_name_of_path(ctx, arena, model->path, out);
    if (!*name || (*name >= '0' && *name <= '9') || name[strspn(name, letters)] ||
        strlen(name) > MOST_NAME_BYTES)
        return muc_fail(
            ctx, MUC_USAGE, "--name", MUC_NO_OFFSET,
            "'%s' is not a name: it takes 1 to %d letters, digits and _, no digit first", name,
            MOST_NAME_BYTES);
    return muc_arena_string(ctx, arena, name, strlen(name), out);
}

const muc_target *muc_target_of(const char *path, muc_made *made)
{
    muc_context *quiet = path ? muc_context_new(1) : NULL;
    const muc_target *found = NULL;
    muc_file file = { 0 };

    *made = MUC_MADE_NOTHING;
    if (!quiet)
        return NULL;
    if (muc_path_is_dir(path) || muc_file_open(quiet, path, &file) == MUC_OK)
        for (size_t i = 0; i < MUC_COUNT(targets) && *made == MUC_MADE_NOTHING; i++) {
            *made = targets[i].recognise(path, file.bytes);
            found = *made ? &targets[i] : NULL;
        }
    muc_file_close(&file);
    muc_context_free(quiet);
    return found;
}
