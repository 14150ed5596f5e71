/* emit_front_end.h - an audio front end as C99: NAME.h, its tables, and a main.c that computes
 * features of samples. */
#ifndef MUC_MCU_FRONT_END_H
#define MUC_MCU_FRONT_END_H

#include "audio/audio_front_end.h"
#include "targets/mcu/program/mcu_program.h"

struct muc_mcu_front_end {
    const muc_front_end *front;
    const muc_front_end_tables *tables;
};

/* of the program's front_end */
void muc_mcu_front_header(const muc_mcu_program *program, muc_text *text);
void muc_mcu_front_shared(const muc_mcu_program *program, muc_text *text); /* NAME.c */
void muc_mcu_front_float(const muc_mcu_program *program, muc_text *text);  /* NAME_f32.c */
void muc_mcu_front_fixed(const muc_mcu_program *program, muc_text *text);  /* NAME_q16.c */
void muc_mcu_front_main(const muc_mcu_program *program, muc_text *text);
void muc_mcu_front_readme(const muc_mcu_program *program, muc_text *text);
/* of the tables of one arithmetic */
uint64_t muc_mcu_front_bytes(const muc_mcu_front_end *front_end, bool is_float);

#endif
