/* weights_file.c - constants one after another, each at a multiple of 16 bytes. */
#include "targets/mcu/emit/weights_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "targets/mcu/emit/emit_program.h"
#include "targets/mcu/plan/plan_arena.h"

static const char assembly[] =
    "/* %s_weights.S - made by muc, not to be edited: %s_weights.bin where constants are. */\n"
    "#ifndef MUR_WEIGHTS_SECTION\n"
    "#define MUR_WEIGHTS_SECTION .rodata\n"
    "#endif\n"
    "    .section MUR_WEIGHTS_SECTION, \"a\"\n"
    "    .balign 16\n"
    "    .globl %s_weights\n"
    "%s_weights:\n"
    "    .incbin \"%s_weights.bin\"\n"
    "#if defined(__linux__) && defined(__ELF__)\n"
    "    .section .note.GNU-stack, \"\", %%progbits\n"
    "#endif\n";

bool muc_mcu_weights_are_binary(const muc_mcu_program *program)
{
    return muc_mcu_constant_bytes(program) > MUC_MCU_MOST_TEXT_BYTES;
}

static bool is_stored(const muc_mcu_value *value)
{
    return value->kind == MUC_MCU_CONST && value->view_of == MUC_NO_ID && value->used;
}

static uint64_t after(const muc_mcu_value *value, uint64_t at)
{
    return at + (value->bytes + MUC_MCU_ALIGNMENT - 1) / MUC_MCU_ALIGNMENT * MUC_MCU_ALIGNMENT;
}

muc_status muc_mcu_weights_source(muc_context *ctx, muc_mcu_program *program)
{
    const char *name;

    if (!muc_mcu_weights_are_binary(program))
        return MUC_OK;
    MUC_TRY(muc_arena_format(ctx, &program->arena, &name, "%s_weights.S", program->name));
    return muc_mcu_add_source(ctx, program, name);
}

void muc_mcu_weights_names(const muc_mcu_program *program, muc_text *text)
{
    uint64_t at = 0;

    muc_text_add(text, "extern const uint8_t %s_weights[];\n", program->name);
    for (uint32_t i = 0; i < program->value_count; i++) {
        const muc_mcu_value *value = &program->values[i];

        if (!is_stored(value))
            continue;
        muc_text_add(text, "#define %s ((const %s *)(const void *)(%s_weights + %" PRIu64 "u))\n",
                     value->name, value->tensor ? muc_mcu_c_type(value->tensor->dtype) : "uint8_t",
                     program->name, at);
        at = after(value, at);
    }
    muc_text_add(text, "\n");
}

static muc_status write_assembly(muc_context *ctx, const muc_mcu_program *program, const char *path,
                                 muc_folder *folder)
{
    const char *name = program->name;
    muc_text text = { 0 };
    muc_status status;

    muc_text_add(&text, assembly, name, name, name, name, name);
    status = muc_text_status(ctx, &text);
    if (status == MUC_OK)
        status = muc_folder_write(folder, path, text.data, text.size);
    muc_text_free(&text);
    return status;
}

static muc_status write_bytes(muc_context *ctx, const muc_mcu_program *program, const char *path,
                              muc_folder *folder)
{
    uint64_t size = 0, at = 0;
    muc_status status;
    uint8_t *bytes;

    for (uint32_t i = 0; i < program->value_count; i++)
        if (is_stored(&program->values[i]))
            size = after(&program->values[i], size);
    MUC_TRY(MUC_NEW_ARRAY(ctx, path, size, &bytes));
    for (uint32_t i = 0; i < program->value_count; i++) {
        const muc_mcu_value *value = &program->values[i];

        if (!is_stored(value))
            continue;
        memcpy(bytes + at, value->data, (size_t)value->bytes);
        at = after(value, at);
    }
    status = muc_folder_write(folder, path, bytes, (size_t)size);
    free(bytes);
    return status;
}

muc_status muc_mcu_weights_write(muc_context *ctx, const muc_mcu_program *program,
                                 muc_folder *folder)
{
    const char *code = program->package->code;
    muc_arena arena = { 0 };
    const char *path;
    muc_status status;

    if (!muc_mcu_weights_are_binary(program))
        return MUC_OK;
    status = muc_arena_format(ctx, &arena, &path, "%s%s_weights.S", code, program->name);
    if (status == MUC_OK)
        status = write_assembly(ctx, program, path, folder);
    if (status == MUC_OK)
        status = muc_arena_format(ctx, &arena, &path, "%s%s_weights.bin", code, program->name);
    if (status == MUC_OK)
        status = write_bytes(ctx, program, path, folder);
    muc_arena_free(&arena);
    return status;
}
