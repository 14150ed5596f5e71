/* program.h - a program file on its way to the simulated machine. */
#ifndef MUC_DRIVER_PROGRAM_H
#define MUC_DRIVER_PROGRAM_H

#include "base/bytes.h"
#include "mur.h"
#include "report/report.h"

/* Opens a program as a device does, checksums and verifier included. bytes are aligned to 16 and
 * borrowed. Fails with MUC_MALFORMED for a damaged file, and for one that the verifier refuses,
 * naming entry, word and reason. */
muc_status muc_program_open(muc_context *ctx, muc_bytes bytes, mur_program *out);

/* Of region WGTS, tile indices and all. */
double muc_program_bits_per_weight(const mur_program *program);

/* Sections, entries, shapes and Placeholders, into a report that is open. */
void muc_program_inspect(const mur_program *program, muc_report *report);

#endif
