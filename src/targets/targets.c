/* targets.c - the table of targets. */
#include "base/file.h"
#include "base/output_folder.h"
#include "targets/target.h"

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
