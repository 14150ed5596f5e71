/* emit_program.h - a planned program as C99 and what stands around it. */
#ifndef MUC_MCU_EMIT_H
#define MUC_MCU_EMIT_H

#include "base/text.h"
#include "targets/mcu/program/c_text.h"

/* What the program was made from: its file's name, without the folder. */
const char *muc_mcu_origin(const muc_mcu_program *program);
bool muc_mcu_has_state(const muc_mcu_program *program);
/* How many results MUR_TRACE is told of after a step. */
uint32_t muc_mcu_trace_count(const muc_mcu_program *program, const muc_mcu_step *step);
/* "void NAME_run(void *arena)", or with arguments and their return value. */
void muc_mcu_print_run(const muc_mcu_program *program, const char *arena, muc_text *text);

/* A name inside a comment of C, which it cannot end. */
void muc_mcu_print_comment(muc_text *text, const char *name);
/* A name in capitals. */
void muc_mcu_print_upper(muc_text *text, const char *name);
/* "KWS_INPUT_1_", which the names of a value's constants begin with; of value NULL "KWS_" */
void muc_mcu_print_prefix(const muc_mcu_program *program, const muc_mcu_value *value,
                          muc_text *text);

/* Whether main.c runs the network as long as there is input: it keeps a state, but no cache. */
bool muc_mcu_streams(const muc_mcu_program *program);
/* A state that an operator appends rows to: of dimension axis, the rows that a run finds there. */
typedef struct muc_mcu_cache {
    uint32_t axis;
    muc_expr rows;
} muc_mcu_cache;

/* false if the value is none */
bool muc_mcu_find_cache(const muc_mcu_program *program, uint32_t value, muc_mcu_cache *out);
bool muc_mcu_has_cache(const muc_mcu_program *program);

void muc_mcu_emit_header(const muc_mcu_program *program, muc_text *text);
void muc_mcu_emit_source(const muc_mcu_program *program, muc_text *text);
/* A program for a hosted C: inputs from stdin, outputs to stdout, both as they lie in memory. It
 * ends with MUC_MCU_REFUSED, and a sentence on stderr, where the run refuses its lengths or data.
 */
#define MUC_MCU_REFUSED 2
void muc_mcu_emit_main(const muc_mcu_program *program, muc_text *text);
/* NAME.json, which muc run, verify and report read. */
void muc_mcu_emit_json(const muc_mcu_program *program, muc_text *text);
void muc_mcu_emit_readme(const muc_mcu_program *program, muc_text *text);

#endif
