/* keras_weights.h - the arrays of a layer, in the order in which Keras creates them, from a .h5 of
 * any version or the HDF5 file of a .keras. */
#ifndef MUC_KERAS_WEIGHTS_H
#define MUC_KERAS_WEIGHTS_H

#include "formats/keras/hdf5.h"
#include "formats/keras/keras_model.h"

typedef struct muc_keras_weights {
    muc_context *ctx;
    muc_arena *arena;
    muc_hdf5 *file;
    const char *name;  /* the file's, for messages */
    const char *root;  /* of a .h5 "model_weights" or ""; of a .keras where its layers are */
    bool numbered;     /* vars/0, vars/1, .. below classes, as in a .keras; else by weight_names */
    const char *group; /* not numbered, of an inner model: the outermost one's, else NULL */
    bool theano;       /* kernels of convolutions are upside down and back to front */
    bool third;        /* written by Keras 3 */
} muc_keras_weights;

/* Finds root and what follows it; the rest is filled in. */
muc_status muc_keras_weights_open(muc_keras_weights *weights);
/* Those of a layer that is a model. */
muc_status muc_keras_weights_inner(muc_keras_weights *weights, const muc_keras_layer *layer,
                                   muc_keras_weights *inner);
/* The paths of a layer's arrays, arena-owned. */
muc_status muc_keras_weights_of(muc_keras_weights *weights, const muc_keras_layer *layer,
                                const char *const **paths, size_t *count);

#endif
