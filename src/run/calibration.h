/* calibration.h - the texts that --calib asks for. */
#ifndef MUC_RUN_CALIBRATION_H
#define MUC_RUN_CALIBRATION_H

#include "run/opened_model.h"
#include "passes/weights/calibrate.h"

/* source "auto": texts that the model writes itself; otherwise a text file, its documents (split at
 * <|endoftext|>) in pieces of MUC_CALIBRATION_LENGTH tokens, each with its begin token, the first
 * MUC_CALIBRATION_FILE_TOKENS of them. In the arena. Fails with MUC_USAGE if the model lacks the
 * begin token or the tokenizer that this takes. */
enum { MUC_CALIBRATION_FILE_TOKENS = 4 * MUC_CALIBRATION_TOKENS };
muc_status muc_calibration_open(muc_context *ctx, const muc_model *model, muc_graph *graph,
                                const char *source, muc_arena *arena, muc_calibration *out);

/* Texts that the model writes itself, `tokens` in all, at most `longest` in one, as
 * muc_calibration_generate has them. In the arena. Fails with MUC_USAGE if no token begins its
 * texts. */
muc_status muc_calibration_write(muc_context *ctx, const muc_model *model, muc_graph *graph,
                                 uint32_t tokens, uint32_t longest, muc_arena *arena,
                                 muc_calibration *out);

#endif
