/* assembly.c - programs as text, and back. */
#include "base/file.h"
#include "base/locale.h"
#include "driver/program.h"
#include "muc/compile.h"
#include "targets/cnnchip/program.h"
#include "targets/uthinker/asm.h"

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

muc_status muc_disassemble(muc_context *ctx, const char *path, char **text)
{
    MUC_IN_C_LOCALE;
    muc_text lines = { 0 };
    muc_status status;
    muc_file file;

    MUC_TRY(muc_file_open(ctx, path, &file));
    if (muc_cnnchip_is_program(file.bytes))
        status = muc_cnnchip_disassemble(ctx, file.bytes, &lines);
    else
        status = muc_uthinker_disassemble(ctx, file.bytes, &lines);
    muc_file_close(&file);
    return hand_over(ctx, status, &lines, text);
}

muc_status muc_list_resolved(muc_context *ctx, const char *path, uint32_t position, uint32_t tokens,
                             char **text)
{
    MUC_IN_C_LOCALE;
    muc_entry_kind kind = tokens == 1 ? MUC_ENTRY_DECODE : MUC_ENTRY_PREFILL;
    muc_text lines = { 0 };
    mur_program program;
    muc_status status;
    muc_file file;

    MUC_TRY(muc_file_open(ctx, path, &file));
    status = muc_program_open(ctx, file.bytes, &program);
    if (status == MUC_OK)
        status = muc_uthinker_list_resolved(ctx, file.bytes, kind, position, tokens, &lines);
    muc_file_close(&file);
    return hand_over(ctx, status, &lines, text);
}

muc_status muc_assemble(muc_context *ctx, const char *path, const char *out_path)
{
    MUC_IN_C_LOCALE;
    muc_arena arena = { 0 };
    mur_program program;
    muc_bytes bytes;
    muc_status status;
    muc_file file;

    MUC_TRY(muc_file_open(ctx, path, &file));
    if (muc_cnnchip_is_assembly(file.bytes)) {
        status = muc_cnnchip_assemble(ctx, &arena, file.bytes, &bytes);
    } else {
        status = muc_uthinker_assemble(ctx, &arena, file.bytes, &bytes);
        if (status == MUC_OK) {
            bytes.name = path;
            status = muc_program_open(ctx, bytes, &program);
        }
    }
    if (status == MUC_OK)
        status = muc_file_write(ctx, out_path, bytes.data, bytes.size);
    muc_arena_free(&arena);
    muc_file_close(&file);
    return status;
}
