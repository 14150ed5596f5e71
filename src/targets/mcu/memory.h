/* memory.h - where a program's values lie in the arena. */
#ifndef MUC_MCU_MEMORY_H
#define MUC_MCU_MEMORY_H

#include "targets/mcu/program.h"

enum { MUC_MCU_ALIGNMENT = 16 };

/* Finds lifetimes, lets outputs share the bytes of inputs that die where a step allows it, and
 * places everything: fills the values' first, last and address, and program->plan. The arena
 * may exceed the machine's memory: muc_plan_check says. */
muc_status muc_mcu_plan_memory(muc_context *ctx, muc_mcu_program *program);

/* Bytes of constants that calls use. */
uint64_t muc_mcu_constant_bytes(const muc_mcu_program *program);

#endif
