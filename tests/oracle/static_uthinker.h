/* static_uthinker.h - a second compiler of SPEC.md section 8, for one length at a time.
 *
 * It takes a layout (sizes, addresses, offsets: data) and numbers for pos and m, and writes the
 * resolved program with plain loops over integers. No template, no expression, no encoder: what it
 * shares with the compiler are the tables mur_isa.def and uthinker_layout.h alone.
 */
#ifndef STATIC_UTHINKER_H
#define STATIC_UTHINKER_H

#include "targets/uthinker/lower/uthinker_layout.h"

/* Receives each instruction's words in the order of issue. */
typedef void static_uthinker_sink(void *arg, const uint32_t *words, uint32_t count);

/* The program for m tokens from position pos, of entry DECODE or PREFILL, with logits or without.
 * Stops the process if a value does not fit its field.
 */
void static_uthinker_compile(const muc_uthinker_layout *layout, uint32_t decode, uint32_t pos,
                             uint32_t m, uint32_t logits, static_uthinker_sink *sink, void *arg);

#endif
