/* mcu_program.c - building a program value by value, step by step. */
#include "targets/mcu/program/mcu_program.h"

#include <string.h>

enum { NAME_CHARACTERS = 40 };

uint64_t muc_mcu_macs(const muc_mcu_program *program)
{
    uint64_t macs = 0;

    for (uint32_t i = 0; i < program->step_count; i++)
        macs += program->steps[i].macs;
    return macs;
}

uint32_t muc_mcu_root(const muc_mcu_program *program, uint32_t value, uint64_t *offset)
{
    *offset = 0;
    for (; program->values[value].view_of != MUC_NO_ID; value = program->values[value].view_of)
        *offset += program->values[value].view_offset;
    return value;
}

muc_status muc_mcu_add_value(muc_context *ctx, muc_mcu_program *program, const muc_mcu_value *value,
                             uint32_t *out)
{
    MUC_TRY(muc_arena_grow(ctx, &program->arena, program->value_count + (size_t)1, sizeof(*value),
                           &program->value_capacity, (void **)&program->values));
    program->values[program->value_count] = *value;
    *out = program->value_count++;
    return MUC_OK;
}

muc_status muc_mcu_add_step(muc_context *ctx, muc_mcu_program *program, const muc_node *node,
                            muc_mcu_step **out)
{
    muc_mcu_step *step;

    MUC_TRY(muc_arena_grow(ctx, &program->arena, program->step_count + (size_t)1, sizeof(*step),
                           &program->step_capacity, (void **)&program->steps));
    step = &program->steps[program->step_count];
    *step = (muc_mcu_step){ .node = node, .text = "" };
    MUC_TRY(muc_arena_format(ctx, &program->arena, &step->name, "%s_%u",
                             node ? muc_op_get(node->op)->name : "copy", program->step_count));
    program->step_count++;
    *out = step;
    return MUC_OK;
}

muc_status muc_mcu_add_argument(muc_context *ctx, muc_mcu_program *program, muc_mcu_step *step,
                                const muc_mcu_argument *argument)
{
    uint64_t offset;

    MUC_TRY(muc_arena_grow(ctx, &program->arena, step->argument_count + (size_t)1,
                           sizeof(*argument), &step->argument_capacity, (void **)&step->arguments));
    step->arguments[step->argument_count++] = *argument;
    if (argument->kind != MUC_MCU_TEXT)
        program->values[muc_mcu_root(program, argument->value, &offset)].used = true;
    return MUC_OK;
}

muc_status muc_mcu_add_source(muc_context *ctx, muc_mcu_program *program, const char *path)
{
    uint32_t at = 0;

    while (at < program->source_count && strcmp(program->sources[at], path) < 0)
        at++;
    if (at < program->source_count && strcmp(program->sources[at], path) == 0)
        return MUC_OK;
    MUC_TRY(muc_arena_grow(ctx, &program->arena, program->source_count + (size_t)1, sizeof(path),
                           &program->source_capacity, (void **)&program->sources));
    memmove(&program->sources[at + 1], &program->sources[at],
            (program->source_count - at) * sizeof(path));
    program->source_count++;
    return muc_arena_string(ctx, &program->arena, path, strlen(path), &program->sources[at]);
}

muc_status muc_mcu_identifier(muc_context *ctx, muc_arena *arena, const char *text,
                              const char **out)
{
    char name[NAME_CHARACTERS + 1];
    size_t length = 0;

    if (*text >= '0' && *text <= '9')
        name[length++] = '_';
    for (; *text && length < NAME_CHARACTERS; text++) {
        char c = *text;
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

        name[length++] = is_letter || (c >= '0' && c <= '9') ? c : '_';
    }
    return muc_arena_string(ctx, arena, name, length, out);
}
