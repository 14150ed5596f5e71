/* c_text.c - types, numbers and arguments of a program as text of C. */
#include "targets/mcu/program/c_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *muc_mcu_c_type(muc_dtype dtype)
{
    static const char *const names[MUC_DTYPE_COUNT] = {
        [MUC_F64] = "double",    [MUC_F32] = "float",    [MUC_I64] = "int64_t",
        [MUC_I32] = "int32_t",   [MUC_I16] = "int16_t",  [MUC_I8] = "int8_t",
        [MUC_U64] = "uint64_t",  [MUC_U32] = "uint32_t", [MUC_U16] = "uint16_t",
        [MUC_U8] = "uint8_t",    [MUC_BOOL] = "uint8_t", [MUC_F16] = "uint16_t",
        [MUC_BF16] = "uint16_t",
    };

    return names[dtype] ? names[dtype] : "uint8_t";
}

void muc_mcu_print_real(muc_text *text, double value, bool is_double)
{
    const char *suffix = is_double ? "" : "f";

    if (isnan(value))
        muc_text_add(text, "(0.0%s / 0.0%s)", suffix, suffix);
    else if (isinf(value))
        muc_text_add(text, "(%s1.0%s / 0.0%s)", value < 0 ? "-" : "", suffix, suffix);
    else if (value == floor(value) && fabs(value) < 1e6)
        muc_text_add(text, "%.1f%s", value, suffix);
    else
        muc_text_add(text, is_double ? "%.17g" : "%.9g", value);
    if (isfinite(value) && !(value == floor(value) && fabs(value) < 1e6)) {
        /* "1e+20" is a real number of C, "12345678" is not */
        const char *digits = text->data + text->size;

        while (digits > text->data && strchr("0123456789.e+-", digits[-1]))
            digits--;
        if (!strpbrk(digits, ".e"))
            muc_text_add(text, ".0");
        muc_text_add(text, "%s", suffix);
    }
}

muc_dtype muc_mcu_element_type(const muc_mcu_value *value)
{
    if (value->tensor && muc_dtype_get(value->tensor->dtype)->block_elements == 1)
        return value->tensor->dtype;
    return MUC_U8;
}

void muc_mcu_print_argument(const muc_mcu_program *program, const muc_mcu_argument *argument,
                            muc_text *text)
{
    const char *type = muc_mcu_c_type(argument->dtype);
    const muc_mcu_value *value;
    uint64_t offset;
    uint32_t root;

    if (argument->kind == MUC_MCU_TEXT) {
        muc_text_add(text, "%s", argument->text);
        return;
    }
    root = muc_mcu_root(program, argument->value, &offset);
    value = &program->values[root];
    if (value->kind == MUC_MCU_CONST) {
        if (muc_mcu_element_type(value) != argument->dtype)
            muc_text_add(text, "(const %s *)", type);
        if (offset)
            muc_text_add(text, "(%s + %" PRIu64 ")", value->name,
                         offset / muc_dtype_get(muc_mcu_element_type(value))->block_bytes);
        else
            muc_text_add(text, "%s", value->name);
        return;
    }
    if (argument->kind == MUC_MCU_WORKING)
        muc_text_add(text, "arena + %" PRIu64, value->address + offset);
    else
        muc_text_add(text, "(%s%s *)(arena + %" PRIu64 "%s%s)",
                     argument->kind == MUC_MCU_READ ? "const " : "", type, value->address + offset,
                     argument->text ? " + " : "", argument->text ? argument->text : "");
}
