/* plan_arena.h - where a program's values lie in the arena. */
#ifndef MUC_MCU_MEMORY_H
#define MUC_MCU_MEMORY_H

#include "targets/mcu/program/mcu_program.h"

/* Finds lifetimes, lets outputs share the bytes of inputs that die where a step allows it, and
 * places everything: fills the values' first, last and address, and program->plan. The arena
 * may exceed the machine's memory: muc_plan_check says. */
muc_status muc_mcu_plan_memory(muc_context *ctx, muc_mcu_program *program);

/* Bytes of constants that calls use. */
uint64_t muc_mcu_constant_bytes(const muc_mcu_program *program);
/* Flash of a language model's program: constants, tokenizer and tables, which are known, and code
 * as code_bytes.def has it; of images by gcc 12 it is at most 1 KB below them and not above. What
 * starts a core, and a C library's printf, are not counted. */
uint64_t muc_mcu_language_bytes(const muc_mcu_program *program);

#endif
