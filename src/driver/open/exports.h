/* exports.h - several exports of one network at different lengths, opened as one. */
#ifndef MUC_DRIVER_EXPORTS_H
#define MUC_DRIVER_EXPORTS_H

#include "run/opened_model.h"

/* Opens the further exports that options name and makes one graph of model->network, which was
 * opened, and them; the calibration records are in model->unified. */
muc_status muc_model_unify(muc_context *ctx, muc_model *model, const muc_network_options *how,
                           const muc_model_options *options);

#endif
