/* keras_import.h - what the importers of Keras's layers share. */
#ifndef MUC_KERAS_IMPORT_H
#define MUC_KERAS_IMPORT_H

#include "import/recipe.h"
#include "formats/keras/keras_weights.h"
#include "formats/listing.h"
#include "graph/graph.h"

enum { MUC_KERAS_MAX_ARRAYS = 4, MUC_KERAS_MAX_SPATIAL = 2 };

/* The graph's tensors that a call gives; of a layer that is not a model one. */
typedef struct muc_keras_result {
    uint32_t count, *ids;
} muc_keras_result;

/* One call of a layer at work. */
typedef struct muc_keras_import {
    muc_context *ctx;
    muc_keras_model *model;
    muc_keras_weights *weights;
    muc_graph *graph;
    muc_arena *arena;          /* of constants */
    muc_keras_result *results; /* of each call */
    const char *prefix;    /* of names: those of the models around this one, each with a slash */
    const uint32_t *given; /* of an inner model: its inputs; NULL */
    uint32_t *calls_left;  /* of all models together */
    const muc_keras_call *call;
    const muc_keras_layer *layer;
    uint32_t spatial; /* of the row, as the two below */
    muc_op to;
    const char *recipe; /* or NULL */
    muc_hdf5_array arrays[MUC_KERAS_MAX_ARRAYS];
    uint32_t array_count;
} muc_keras_import;

typedef muc_status muc_keras_importer(muc_keras_import *im);

/* Fails naming file and layer. */
muc_subject muc_keras_subject(const muc_keras_import *im);
#define muc_keras_refuse(im, status, ...) muc_fail_on(muc_keras_subject(im), status, __VA_ARGS__)

/* ---- configuration; key is "new name" or "new name|older name" ---- */

/* The first of the names that is there and not null, or NULL. */
const json_t *muc_keras_option(const muc_keras_import *im, const char *keys);
muc_status muc_keras_bool(const muc_keras_import *im, const char *keys, bool fallback, bool *out);
muc_status muc_keras_real(const muc_keras_import *im, const char *keys, double fallback,
                          double *out);
/* One integer for all, or count of them, each of least..2^20; fallback NULL: it must be there. */
muc_status muc_keras_integers(const muc_keras_import *im, const char *keys, uint32_t count,
                              int64_t least, const int64_t *fallback, int64_t *out);
/* "valid" if absent */
muc_status muc_keras_word(const muc_keras_import *im, const char *keys, const char *fallback,
                          const char **out);
/* Where a layer has its channels: *first tells that they stand before the pixels. */
muc_status muc_keras_channels(const muc_keras_import *im, bool *first);

/* ---- tensors ---- */

/* Pixels of the call's input, and where its channels are. */
typedef struct muc_keras_pixels {
    uint32_t x;
    bool first;                          /* channels come first */
    uint32_t at;                         /* dimension of the first spatial one */
    int64_t size[MUC_KERAS_MAX_SPATIAL]; /* of x */
    int64_t channels;
} muc_keras_pixels;

muc_status muc_keras_pixels_of(const muc_keras_import *im, muc_keras_pixels *out);

uint32_t muc_keras_input(const muc_keras_import *im, uint32_t i);
uint32_t muc_keras_rank(const muc_keras_import *im, uint32_t id);
int64_t muc_keras_dim(const muc_keras_import *im, uint32_t id, uint32_t i);
/* Array i has the dimensions. */
muc_status muc_keras_expect(const muc_keras_import *im, uint32_t i, const char *what, uint32_t rank,
                            const int64_t *dims);
/* A constant "layer/suffix" of f32; the same one in each call of the layer. */
muc_status muc_keras_constant(muc_keras_import *im, const char *suffix, uint32_t rank,
                              const int64_t *dims, const float *data, uint32_t *id);
/* The same for one number. */
muc_status muc_keras_number(muc_keras_import *im, const char *suffix, double value, uint32_t *id);

/* ---- nodes ---- */

/* A node inside of what the layer stands for: "layer/suffix". */
muc_status muc_keras_step(muc_keras_import *im, muc_op op, const char *suffix,
                          const uint32_t *inputs, uint32_t count, const muc_attributes *a,
                          uint32_t *id);
/* The node that computes the call's output, of the layer's name; a may be NULL. */
muc_status muc_keras_last(muc_keras_import *im, muc_op op, const uint32_t *inputs, uint32_t count,
                          const muc_attributes *a);
/* The same, then the activation that the layer's configuration names, if any. */
muc_status muc_keras_activated(muc_keras_import *im, muc_op op, const uint32_t *inputs,
                               uint32_t count, const muc_attributes *a);
/* The call as recipes read it, and a recipe of it (import/recipe.h). */
muc_file_node muc_keras_node(muc_keras_import *im);
#define muc_keras_cook(im, ...) muc_import_format(muc_keras_node(im), __VA_ARGS__)
/* The call's output is the named activation of x. */
muc_status muc_keras_activate(muc_keras_import *im, const char *name, uint32_t x);
/* The call as a layer of another class imports it, which has the same configuration. */
muc_status muc_keras_import_as(muc_keras_import *im, const char *class_name);
/* The call's output is x itself. */
void muc_keras_same(muc_keras_import *im, uint32_t x);

/* Lists the model's layers, and reads its inner models. One that lacks layers is refused, or with
 * may_list its inputs and outputs are listed too. */
muc_status muc_keras_list_model(const muc_keras_import *im, bool may_list, muc_listing *listing);
/* The whole model as a graph, once it is listed. */
muc_status muc_keras_import_model(muc_keras_import *im);

#define KERAS_LAYER(name, least, most, least_in, most_in, spatial, to, import) \
    muc_keras_importer muc_keras_import_##import;
#include "formats/keras/keras_layers.def"
#undef KERAS_LAYER

#endif
