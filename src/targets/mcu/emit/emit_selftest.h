/* emit_selftest.h - NAME_selftest.c: runs the network on numbers from a generator, whose results
 * must be the reference's. */
#ifndef MUC_MCU_SELFTEST_H
#define MUC_MCU_SELFTEST_H

#include "base/text.h"
#include "targets/mcu/program/mcu_program.h"

/* Runs the graph for program->golden. A program has a self test if its shapes are fixed, it has no
 * cache, its inputs and outputs are the graph's own and integers or f32, its results on these
 * inputs are finite, and none of them is an integer that was computed from floats. */
muc_status muc_mcu_find_golden(muc_context *ctx, muc_mcu_program *program, muc_graph *graph);

void muc_mcu_emit_selftest(const muc_mcu_program *program, muc_text *text);

#endif
