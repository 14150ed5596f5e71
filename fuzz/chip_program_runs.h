/* chip_program_runs.h - what the harnesses of the CNN chip's program files share. */
#ifndef FUZZ_CNNCHIP_H
#define FUZZ_CNNCHIP_H

#include "base/bytes.h"

/* Aborts if a program file that is read as verified faults on the simulator, or does not come back
 * byte for byte from its assembly. Only small ones are run: memories are zeros. */
void fuzz_chip_program(muc_context *ctx, muc_bytes program);

#endif
