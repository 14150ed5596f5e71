/* target_mcu.c - what target mcu makes, recognised; its machines; prompts on boards. */
#include "base/file.h"
#include "targets/mcu/emit/code_folder.h"
#include "targets/target.h"

const muc_target_machine *muc_machine_at_mcu(size_t i)
{
    static const muc_target_machine machines[] = {
#define MUC_MCU_MACHINE(id, name, meaning) { name, meaning, NULL },
#include "targets/mcu/machines/mcu_machines.def"
#undef MUC_MCU_MACHINE
    };

    return i < MUC_COUNT(machines) ? &machines[i] : NULL;
}

muc_made muc_recognise_mcu(const char *path, muc_bytes bytes)
{
    muc_context *quiet = !bytes.data && muc_path_is_dir(path) ? muc_context_new(1) : NULL;
    muc_made made = MUC_MADE_NOTHING;
    muc_code_folder folder;

    if (quiet && muc_code_open(quiet, path, &folder) == MUC_OK) {
        made =
            json_object_get(folder.json, "language_model") ? MUC_MADE_LANGUAGE : MUC_MADE_NETWORK;
        muc_code_close(&folder);
    }
    muc_context_free(quiet);
    return made;
}

const muc_target_assembly muc_assembly_mcu; /* it writes C */

muc_status muc_speak_mcu(muc_context *ctx, const muc_model *model, const char *board,
                         const char *prompt, uint32_t most_tokens, muc_arena *arena,
                         muc_speech *out)
{
    muc_code_folder folder;
    muc_status status;

    MUC_TRY(muc_code_open(ctx, model->path, &folder));
    status = muc_code_speak(ctx, &folder, board, prompt, most_tokens, arena, out);
    muc_code_close(&folder);
    return status;
}
