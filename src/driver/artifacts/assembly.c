/* assembly.c - disassembles programs and assembles them again, by the target that they are for. */
#include "base/file.h"
#include "base/locale.h"
#include "muc/compile.h"
#include "targets/target.h"

/* the text itself, or the failure; either way nothing else is left to free */
static muc_status hand_over(muc_context *ctx, muc_status status, muc_text *text, char **out)
{
    if (status == MUC_OK)
        status = muc_text_status(ctx, text);
    if (status == MUC_OK)
        *out = text->data;
    else
        muc_text_free(text);
    return status;
}

/* of the target that the program, or text, is for; what is for none the first of them refuses */
static const muc_target_assembly *assembly_of(muc_bytes bytes, bool text)
{
    const muc_target_assembly *first = NULL;
    const muc_target *target;

    for (size_t i = 0; (target = muc_target_get(i)); i++) {
        const muc_target_assembly *assembly = target->assembly;

        if (!assembly->assemble)
            continue;
        if (text ? assembly->is_text(bytes) : assembly->is_program(bytes))
            return assembly;
        first = first ? first : assembly;
    }
    return first;
}

muc_status muc_disassemble(muc_context *ctx, const char *path, char **text)
{
    MUC_IN_C_LOCALE;
    muc_text lines = { 0 };
    muc_status status;
    muc_file file;

    MUC_TRY(muc_file_open(ctx, path, &file));
    status = assembly_of(file.bytes, false)->disassemble(ctx, file.bytes, &lines);
    muc_file_close(&file);
    return hand_over(ctx, status, &lines, text);
}

muc_status muc_list_resolved(muc_context *ctx, const char *path, uint32_t position, uint32_t tokens,
                             char **text)
{
    MUC_IN_C_LOCALE;
    const muc_target_assembly *assembly;
    muc_text lines = { 0 };
    muc_status status;
    muc_file file;

    MUC_TRY(muc_file_open(ctx, path, &file));
    assembly = assembly_of(file.bytes, false);
    status =
        assembly->list_resolved
            ? assembly->list_resolved(ctx, file.bytes, position, tokens, &lines)
            : muc_fail(
                  ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                  "is not a program of positions and tokens: muc dis without --position lists it");
    muc_file_close(&file);
    return hand_over(ctx, status, &lines, text);
}

muc_status muc_assemble(muc_context *ctx, const char *path, const char *out_path)
{
    MUC_IN_C_LOCALE;
    muc_arena arena = { 0 };
    muc_bytes bytes;
    muc_status status;
    muc_file file;

    MUC_TRY(muc_file_open(ctx, path, &file));
    status = assembly_of(file.bytes, true)->assemble(ctx, &arena, file.bytes, &bytes);
    if (status == MUC_OK)
        status = muc_file_write(ctx, out_path, bytes.data, bytes.size);
    muc_arena_free(&arena);
    muc_file_close(&file);
    return status;
}
