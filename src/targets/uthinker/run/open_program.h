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

/* What a program is verified on: the prompt's tokens, or with NULL its golden ones; malloc'ed.
 * Fails with MUC_USAGE if there are none or more than the context. */
muc_status muc_program_tokens(muc_context *ctx, const muc_model *program, const char *prompt,
                              uint32_t **out, size_t *count);
/* How many of its count tokens the call has that begins with the one at `at`: the first half goes
 * in calls as large as they come, the rest token by token. */
uint32_t muc_program_call_tokens(const muc_model *program, size_t at, size_t count);

/* The model runs this program, which is borrowed. */
void muc_model_set_program(muc_model *model, mur_program *program);

/* That of a model that uthinker made. */
static inline const mur_program *muc_model_program(const muc_model *model)
{
    return model->compiled;
}

#endif
