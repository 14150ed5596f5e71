/* tflite_import.h - what the importers of TFLite's operators share. */
#ifndef MUC_TFLITE_IMPORT_H
#define MUC_TFLITE_IMPORT_H

#include "formats/tflite/tflite_model.h"
#include "graph/graph.h"
#include "import/recipe.h"

/* Blocks [count] of space and their pads or crops [count][before, after]. */
typedef struct muc_tflite_blocks {
    int64_t block[2], pads[4];
    uint32_t count;
} muc_tflite_blocks;

/* TFLite's numbers of operators: MUC_TFLITE_CONV_2D_CODE, ... */
enum {
#define TFLITE_NAME(number, name) MUC_TFLITE_##name##_CODE = number,
#include "formats/tflite/tflite_ops.def"
    MUC_TFLITE_CODE_COUNT
};

/* A convolution between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND as one with dilations. */
typedef struct muc_tflite_phases {
    const muc_tflite_operator *spread, *conv;
    int64_t dilations[2], pads[4]; /* pads: before both dimensions, then after */
} muc_tflite_phases;

/* A resource variable: of all handles of its name one. */
typedef struct muc_tflite_variable {
    const char *container, *name;
    const muc_tflite_tensor *like; /* what is read or assigned first; NULL: nothing yet */
    uint32_t id;                   /* the graph's state, or MUC_NO_ID */
} muc_tflite_variable;

enum { MUC_TFLITE_MOST_VARIABLES = 256 };

/* One operator at work. */
typedef struct muc_tflite_import {
    muc_context *ctx;
    const muc_tflite_model *model;
    muc_graph *graph;
    muc_arena *arena; /* of constants that are not as the file has them */
    uint32_t *ids;    /* the graph's tensor of each of the model's, or MUC_NO_ID */
    bool *is_inner;   /* of operators: what a later one takes over */
    const muc_tflite_operator *op;
    uint32_t index; /* of op */
    muc_flat options;
    muc_flat_table table;            /* that they are */
    bool activated;                  /* a recipe's last node has the options' activation */
    muc_op to;                       /* the row's operator of the graph */
    muc_tflite_variable *variables;  /* [MUC_TFLITE_MOST_VARIABLES] */
    uint32_t *variable_count;        /* of them */
    uint32_t *handles;               /* of the model's tensors: 1 + a variable, or 0 */
    const muc_tflite_phases *phases; /* what a convolution's window is otherwise, or NULL */
} muc_tflite_import;

typedef muc_status muc_tflite_importer(muc_tflite_import *im);

/* TFLite's ActivationFunctionType */
enum {
    MUC_TFLITE_NO_ACTIVATION,
    MUC_TFLITE_RELU,
    MUC_TFLITE_RELU_N1_TO_1,
    MUC_TFLITE_RELU6,
    MUC_TFLITE_TANH,
    MUC_TFLITE_SIGN_BIT,
    MUC_TFLITE_RELU_0_TO_1, /* no fused activation, but an operator */
};

/* Fails naming the operator. */
muc_subject muc_tflite_subject(const muc_tflite_import *im);
#define muc_tflite_refuse(im, status, ...) muc_fail_on(muc_tflite_subject(im), status, __VA_ARGS__)

/* The model's tensor, NULL where it is absent. */
const muc_tflite_tensor *muc_tflite_in(const muc_tflite_import *im, uint32_t i);
const muc_tflite_tensor *muc_tflite_out(const muc_tflite_import *im, uint32_t i);
bool muc_tflite_is_quantized(const muc_tflite_tensor *tensor);
/* The graph's tensor of input i, a constant being added at its first use; MUC_NO_ID: absent. */
muc_status muc_tflite_input(muc_tflite_import *im, uint32_t i, uint32_t *id);
/* The same, of integers by the output's scale. */
muc_status muc_tflite_scaled_input(muc_tflite_import *im, uint32_t i, uint32_t *id);
/* The state that input i, a variable, is in the graph. */
muc_status muc_tflite_state(muc_tflite_import *im, uint32_t i, uint32_t *id);
/* A state like a tensor of the model. */
muc_status muc_tflite_new_state(muc_tflite_import *im, const muc_tflite_tensor *like,
                                const char *name, uint32_t *id);
/* An int8 constant of real activations, dequantized; else *id stays. */
muc_status muc_tflite_dequantize(muc_tflite_import *im, uint32_t i, uint32_t *id);
/* Marks the operators that are imported with one behind them. */
void muc_tflite_mark_inner(const muc_tflite_import *im);
/* Whether a BATCH_TO_SPACE_ND ends what is a dilated convolution. */
bool muc_tflite_find_phases(const muc_tflite_import *im, const muc_tflite_operator *back,
                            muc_tflite_phases *phases);
/* The operator at hand, a BATCH_TO_SPACE_ND, and those before it as that convolution. */
muc_status muc_tflite_import_dilated(muc_tflite_import *im, const muc_tflite_phases *phases);
/* Kernel, strides and pads of a pool. */
muc_status muc_tflite_set_pool(muc_tflite_import *im, muc_attributes *a);
/* Integers of a constant of 32 or 64 bits, at most `most` of them. False if it is none, or, with
 * *count above `most`, has more. */
bool muc_tflite_read_integers(const muc_tflite_tensor *source, uint32_t most, int64_t *items,
                              uint32_t *count);
/* The same of input i, which must have them. */
muc_status muc_tflite_integers(const muc_tflite_import *im, uint32_t i, uint32_t most,
                               int64_t *items, uint32_t *count);

/* The operator as recipes read it, and recipes of it (import/recipe.h). */
muc_file_node muc_tflite_node(muc_tflite_import *im);
#define muc_tflite_cook(im, ...) muc_import_format(muc_tflite_node(im), __VA_ARGS__)
#define muc_tflite_cook_given(im, given, ...) \
    muc_import_format(muc_node_given(muc_tflite_node(im), given), __VA_ARGS__)
#define muc_tflite_make(im, ids, count, out, ...) \
    muc_import_format(muc_node_of(muc_tflite_node(im), ids, count, out), __VA_ARGS__)

/* An integer among the operator's options. */
int64_t muc_tflite_option(const muc_tflite_import *im, const char *name);

/* Adds a constant whose bytes live as long as the arena. */
muc_status muc_tflite_constant(muc_tflite_import *im, const char *name, const muc_tensor *tensor,
                               uint32_t *id);
/* Adds a node inside of what the operator stands for: its name is output 0's and the suffix.
 * A QUANTIZE has the output's scale. */
muc_status muc_tflite_step(muc_tflite_import *im, muc_op op, const char *suffix,
                           const uint32_t *inputs, uint32_t count, const muc_attributes *a,
                           uint32_t *id);
/* Adds any node of the operator's, named after output 0 or, where there is none, input 1. */
muc_status muc_tflite_add(muc_tflite_import *im, muc_new_node *node, const char *suffix,
                          uint32_t *outputs);
/* Adds the node that computes the operator's outputs; a may be NULL. Inputs that are left out at
 * the end are not there at all, here and in the steps. */
muc_status muc_tflite_last(muc_tflite_import *im, muc_op op, const uint32_t *inputs, uint32_t count,
                           const muc_attributes *a);
/* The same with the options' activation: bounds of the integers, or another node. */
muc_status muc_tflite_activated(muc_tflite_import *im, muc_op op, const uint32_t *inputs,
                                uint32_t count, muc_attributes *a);
/* The graph's operator of a row of tflite_ops.def, by its number. */
muc_op muc_tflite_graph_op(uint32_t code);
/* Output 0 is the activation of x (of which there is one). */
muc_status muc_tflite_activate(muc_tflite_import *im, uint32_t x, int64_t activation);

/* Inputs and outputs a and b of a node that only moves or compares elements stand for the same real
 * numbers, or the operator is refused. */
muc_status muc_tflite_same_scale(const muc_tflite_import *im, const muc_tflite_tensor *a,
                                 const muc_tflite_tensor *b);

muc_tflite_importer muc_tflite_import_recipe;
/* MIRROR_PAD of mode SYMMETRIC */
muc_tflite_importer muc_tflite_import_symmetric_pad;
#define TFLITE_ROW(number, name, version, options, least, most, shape, to, import, reals) \
    muc_tflite_importer muc_tflite_import_##import;
#include "formats/tflite/tflite_ops.def"

#endif
