/* emit_language.h - what stands around a program that is a language model: NAME_lm.h, NAME_lm.c and
 * a main.c that takes a prompt. */
#ifndef MUC_MCU_LM_H
#define MUC_MCU_LM_H

#include "targets/mcu/program/mcu_program.h"

/* Adds the sources that a language model needs besides its kernels. */
muc_status muc_mcu_lm_sources(muc_context *ctx, muc_mcu_program *program);

void muc_mcu_lm_header(const muc_mcu_program *program, muc_text *text);
void muc_mcu_lm_source(const muc_mcu_program *program, muc_text *text);
/* a member of NAME.json, with the comma after it */
void muc_mcu_lm_json(const muc_mcu_program *program, muc_text *text);
void muc_mcu_lm_main(const muc_mcu_program *program, muc_text *text);

#endif
