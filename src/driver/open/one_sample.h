/* one_sample.h - networks whose files leave the number of samples open, opened for one. */
#ifndef MUC_DRIVER_ONE_SAMPLE_H
#define MUC_DRIVER_ONE_SAMPLE_H

#include "run/opened_model.h"

/* *out, in the model's arena: "NAME=1" of each dimension that is the first of an input of the
 * opened network, that how leaves as open as can be, and that has a name as exporters give to the
 * number of samples, parted by commas; NULL if there is none. */
muc_status muc_find_samples(muc_context *ctx, muc_model *model, const muc_network_options *how,
                            const char **out);

#endif
