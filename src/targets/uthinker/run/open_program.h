/* open_program.h - a program file on its way to the simulated machine. */
#ifndef MUC_UTHINKER_OPEN_PROGRAM_H
#define MUC_UTHINKER_OPEN_PROGRAM_H

#include "base/bytes.h"
#include "mur.h"
#include "run/opened_model.h"

/* Opens a program as a device does, checksums and verifier included. bytes are aligned to 16 and
 * borrowed. Fails with MUC_MALFORMED for a damaged file, and for one that the verifier refuses,
 * naming entry, word and reason. */
muc_status muc_program_open(muc_context *ctx, muc_bytes bytes, mur_program *out);

/* The model runs this program, which is borrowed. */
void muc_model_set_program(muc_model *model, mur_program *program);

/* That of a model that uthinker made. */
static inline const mur_program *muc_model_program(const muc_model *model)
{
    return model->compiled;
}

#endif
