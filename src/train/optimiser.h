/* optimiser.h - AdamW, clipping by the norm of all gradients, the schedule of the rate. */
#ifndef MUC_TRAIN_OPTIMISER_H
#define MUC_TRAIN_OPTIMISER_H

#include "train/params.h"
#include "train/random.h"
#include "train/train_real.h"

typedef struct muc_train_recipe {
    double rate;           /* greatest learning rate */
    double least_rate;     /* where the cosine ends */
    uint64_t steps;        /* of the schedule; later ones stay at least_rate */
    uint64_t warm_up;      /* steps of the way up from 0; at most steps */
    double beta1, beta2;   /* of the averages; below 1 */
    double epsilon, decay; /* decay: decoupled, of matrices alone */
    double clip;           /* greatest norm of all gradients; 0: any */
} muc_train_recipe;

/* Of step 0, 1, ...: rate * (step + 1) / warm_up on the way up, then half a cosine down. */
double muc_train_rate(const muc_train_recipe *recipe, uint64_t step);

/* Adam's averages, in the layout of the parameters; owned. */
typedef struct muc_train_adam {
    uint64_t step; /* updates done */
    size_t elements;
    muc_scalar *means, *squares;
} muc_train_adam;

muc_status muc_train_adam_make(muc_context *ctx, size_t elements, muc_train_adam *out);
void muc_train_adam_free(muc_train_adam *adam);

/* One update of weights by gradients, which are left as they are.
 * norm: that of all gradients before clipping. Fails with MUC_MALFORMED where it is not finite;
 * nothing has changed then. */
muc_status muc_train_update(muc_context *ctx, const muc_train_shape *shape,
                            const muc_train_recipe *recipe, muc_train_adam *adam,
                            const muc_scalar *gradients, muc_scalar *weights, double *norm);

/* Normal numbers of deviation 0.02 (o and down: / sqrt(2 layers), which keeps the residual's
 * variance), gains 1, biases 0. */

void muc_train_initialise(const muc_train_shape *shape, muc_train_random *random,
                          muc_scalar *weights);

#endif
