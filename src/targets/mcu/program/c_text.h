/* c_text.h - types, numbers and arguments of a program as text of C. */
#ifndef MUC_MCU_C_TEXT_H
#define MUC_MCU_C_TEXT_H

#include "base/text.h"
#include "targets/mcu/program/mcu_program.h"

/* "int8_t", ...: how C writes a type's elements. Types of larger blocks are bytes. */
const char *muc_mcu_c_type(muc_dtype dtype);
/* The type of the array that holds a value's elements. */
muc_dtype muc_mcu_element_type(const muc_mcu_value *value);
/* A number of C: exact, with the suffix and form of its type. */
void muc_mcu_print_real(muc_text *text, double value, bool is_double);
/* An argument of a call: an address in the array `arena`, or the name of a constant. */
void muc_mcu_print_argument(const muc_mcu_program *program, const muc_mcu_argument *argument,
                            muc_text *text);

#endif
