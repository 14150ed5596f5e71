/* weights_file.c - constants one after another, each at a multiple of 16 bytes, and a check of
 * them. */
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

/* formats: name twice, the constants' bytes, the code's number, name three times */
static const char checker[] =
    "/* %s_weights.c - made by muc, not to be edited: are the constants whole, and this code's? "
    "*/\n"
    "#include \"%s.h\"\n\n"
    "#define BYTES %" PRIu64 "u /* of constants; three words follow: their CRC-32, CODE, BYTES */\n"
    "#define CODE 0x%08" PRIx32 "u\n\n"
    "extern const uint8_t %s_weights[];\n\n"
    "static uint32_t word(const uint8_t *at)\n"
    "{\n"
    "    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;\n"
    "}\n\n"
    "int %s_weights_check(void)\n"
    "{\n"
    "    const uint8_t *at = %s_weights, *end = at + BYTES;\n"
    "    uint32_t crc = ~(uint32_t)0;\n\n"
    "    if (word(end + 4) != CODE || word(end + 8) != (uint32_t)BYTES)\n"
    "        return 1;\n"
    "    while (at != end) {\n"
    "        crc ^= *at++;\n"
    "        for (int bit = 0; bit < 8; bit++)\n"
    "            crc = crc >> 1 ^ ((0 - (crc & 1)) & 0xedb88320u);\n"
    "    }\n"
    "    return word(end) == ~crc ? 0 : 2;\n"
    "}\n";

bool muc_mcu_weights_are_binary(const muc_mcu_program *program)
{
    return program->weights_file || muc_mcu_constant_bytes(program) > MUC_MCU_MOST_TEXT_BYTES;
}

static bool is_stored(const muc_mcu_value *value)
{
    return value->kind == MUC_MCU_CONST && value->view_of == MUC_NO_ID && value->used;
}

static uint64_t after(const muc_mcu_value *value, uint64_t at)
{
    return at + (value->bytes + MUC_MCU_ALIGNMENT - 1) / MUC_MCU_ALIGNMENT * MUC_MCU_ALIGNMENT;
}

static uint64_t stored_bytes(const muc_mcu_program *program)
{
    uint64_t size = 0;

    for (uint32_t i = 0; i < program->value_count; i++)
        if (is_stored(&program->values[i]))
            size = after(&program->values[i], size);
    return size;
}

uint64_t muc_mcu_weights_bytes(const muc_mcu_program *program)
{
    return stored_bytes(program) + MUC_MCU_ALIGNMENT;
}

muc_status muc_mcu_weights_source(muc_context *ctx, muc_mcu_program *program)
{
    static const char *const ends[] = { "S", "c" };

    for (size_t i = 0; muc_mcu_weights_are_binary(program) && i < MUC_COUNT(ends); i++) {
        const char *name;

        MUC_TRY(
            muc_arena_format(ctx, &program->arena, &name, "%s_weights.%s", program->name, ends[i]));
        MUC_TRY(muc_mcu_add_source(ctx, program, name));
    }
    return MUC_OK;
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

/* A number for the code that reads the constants: for all of NAME.c but its first line, which tells
 * where the network came from. */
static muc_status number_code(muc_context *ctx, const muc_mcu_program *program, uint32_t *out)
{
    muc_text text = { 0 };
    muc_status status;

    muc_mcu_emit_source(program, &text);
    status = muc_text_status(ctx, &text);
    if (status == MUC_OK) {
        const char *from = strchr(text.data, '\n');

        *out = muc_crc32(0, (const uint8_t *)from, text.size - (size_t)(from - text.data));
    }
    muc_text_free(&text);
    return status;
}

/* the constants, then the words that NAME_weights.c checks */
static void fill(const muc_mcu_program *program, uint32_t code, uint8_t *bytes)
{
    uint64_t at = 0;

    for (uint32_t i = 0; i < program->value_count; i++) {
        const muc_mcu_value *value = &program->values[i];

        if (!is_stored(value))
            continue;
        memcpy(bytes + at, value->data, (size_t)value->bytes);
        at = after(value, at);
    }
    muc_store_u32(bytes + at, muc_crc32(0, bytes, (size_t)at));
    muc_store_u32(bytes + at + 4, code);
    muc_store_u32(bytes + at + 8, (uint32_t)at);
}

static muc_status write_file(muc_context *ctx, const muc_mcu_program *program, const char *end,
                             const void *data, uint64_t size, muc_folder *folder)
{
    muc_arena arena = { 0 };
    const char *path;
    muc_status status = muc_arena_format(ctx, &arena, &path, "%s%s_weights.%s",
                                         program->package->code, program->name, end);

    if (status == MUC_OK)
        status = muc_folder_write(folder, path, data, (size_t)size);
    muc_arena_free(&arena);
    return status;
}

static muc_status write_sources(muc_context *ctx, const muc_mcu_program *program, uint32_t code,
                                muc_folder *folder)
{
    const char *name = program->name;
    muc_text text = { 0 };
    muc_status status;
    size_t code_begins;

    muc_text_add(&text, assembly, name, name, name, name, name);
    code_begins = text.size;
    muc_text_add(&text, checker, name, name, stored_bytes(program), code, name, name, name);
    status = muc_text_status(ctx, &text);
    if (status == MUC_OK)
        status = write_file(ctx, program, "S", text.data, code_begins, folder);
    if (status == MUC_OK)
        status =
            write_file(ctx, program, "c", text.data + code_begins, text.size - code_begins, folder);
    muc_text_free(&text);
    return status;
}

muc_status muc_mcu_weights_write(muc_context *ctx, const muc_mcu_program *program,
                                 muc_folder *folder)
{
    const uint64_t size = muc_mcu_weights_bytes(program);
    muc_status status;
    uint8_t *bytes;
    uint32_t code;

    if (!muc_mcu_weights_are_binary(program))
        return MUC_OK;
    MUC_TRY(number_code(ctx, program, &code));
    MUC_TRY(write_sources(ctx, program, code, folder));
    MUC_TRY(MUC_NEW_ARRAY(ctx, program->name, size, &bytes));
    fill(program, code, bytes);
    status = write_file(ctx, program, "bin", bytes, size, folder);
    free(bytes);
    return status;
}
