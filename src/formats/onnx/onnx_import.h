/* onnx_import.h - an ONNX model on its way into a graph: what the files of this folder share. */
#ifndef MUC_ONNX_IMPORT_H
#define MUC_ONNX_IMPORT_H

#include "formats/network.h"
#include "formats/onnx/onnx_tensor.h"
#include "import/attributes.h"

enum {
    ONNX_MAX_NUMBERS = 4096, /* elements of a tensor whose values the reader follows */
    ONNX_MAX_OPERANDS = 16,  /* of a node whose values the reader follows */
    NEWEST = 24,             /* version of the operator set: see onnx_ops.def */
    ONNX_MAX_DEPTH = 16,     /* of functions in functions, and of branches in branches */
};

/* ---- numbers: elements that are known while reading ---- */

/* One element: of a real type in real; of others in integer, unless expr depends on dimensions. */
typedef struct onnx_number {
    muc_expr expr; /* MUC_EXPR_NONE: a constant */
    int64_t integer;
    double real;
} onnx_number;

typedef struct onnx_numbers {
    muc_dtype dtype;
    uint32_t rank, dims[MUC_MAX_RANK], count;
    onnx_number *items; /* [count] */
    bool given;         /* depends on the options' known inputs: only for shapes and attributes */
} onnx_numbers;

/* ---- names ---- */

typedef struct onnx_value {
    const char *name;
    uint32_t tensor;             /* of the graph, or MUC_NO_ID: not there yet */
    const onnx_numbers *numbers; /* or NULL: not known */
    const Onnx__TensorProto *initializer;
} onnx_value;

typedef struct onnx_scope onnx_scope;

struct onnx_scope {
    const onnx_scope *parent; /* names of the graph around a branch; NULL */
    onnx_value **slots;
    size_t capacity, count;
};

/* The nodes of a graph, a branch or a function, and what their names and attributes mean. */
typedef struct onnx_call onnx_call;
typedef struct onnx_frame {
    onnx_scope scope;
    Onnx__OperatorSetIdProto *const *opsets;
    size_t opset_count;
    const onnx_call *caller; /* of a function: where attributes that it refers to are; NULL */
    unsigned depth;
} onnx_frame;

typedef struct onnx_integer_values onnx_integer_values; /* integers.h */

typedef struct onnx_import {
    muc_context *ctx;
    const muc_source *source;
    const muc_network_options *options;
    /* inputs that no initializer replaces, and the values that the options give them, or NULL */
    const char **input_names;
    const muc_tensor_view **known;
    bool *dims_used; /* of the options' dimensions */
    size_t input_count;
    muc_network *network;
    muc_graph *graph;
    muc_arena arena; /* until the graph is read */
    muc_onnx_store store;
    const Onnx__ModelProto *model;
    /* what is left of budgets in proportion to the file's size */
    uint64_t nodes_left, numbers_left, filled_left;
    onnx_integer_values *integers; /* values of the graph that are not real numbers; NULL: none */
} onnx_import;

/* Names that a file leaves out, of nodes, attributes, values, tensors and domains, become "", and
 * so does "ai.onnx", the long name of the default domain. */
void onnx_fill_names(Onnx__ModelProto *model);

/* NULL if no value of the name is in scope. */
onnx_value *onnx_scope_find(const onnx_scope *scope, const char *name);
/* Fails if the scope itself, not one around it, has the name. */
muc_status onnx_scope_add(onnx_import *im, onnx_scope *scope, const char *name, onnx_value **out);

/* The indices of nodes, each after those whose results it reads; a circle is refused by name, and
 * so are two values of one name. */
muc_status onnx_order(onnx_import *im, Onnx__NodeProto *const *nodes, size_t count, size_t **out);

/* ---- rows of onnx_ops.def ---- */

typedef muc_status onnx_importer(onnx_call *call);
/* Computes the numbers of a node of one output; *out stays NULL where they cannot be known. */
typedef muc_status onnx_evaluator(onnx_call *call, const onnx_numbers *const *inputs,
                                  onnx_numbers **out);

typedef struct onnx_row {
    const char *domain, *name;
    int64_t first, last; /* versions of the operator set */
    onnx_importer *import;
    muc_op op; /* what plain importers make */
    onnx_evaluator *evaluate;
    const char *recipe; /* NULL: its importer is one of its own */
} onnx_row;

/* One node at work. */
struct onnx_call {
    onnx_import *im;
    onnx_frame *frame;
    const Onnx__NodeProto *proto;
    const onnx_row *row;
    int64_t version; /* of the operator set */
    const char *name;
    uint64_t used;   /* attributes that were asked for */
    bool shape_only; /* set by evaluators that read shapes, not elements */
    unsigned steps;
    bool binds;    /* a recipe gave outputs beside the first */
    bool integers; /* computes integers although the file says FLOAT */
};

/* Whether any version of an operator has a row. */
bool onnx_has_row(const char *domain, const char *name);
/* Lists the nodes of the graph and of the functions that it calls; of the branches of conditions
 * only the one that is taken is read, later. */
muc_status onnx_list_nodes(onnx_import *im, const onnx_frame *frame, const Onnx__GraphProto *graph);
/* Finds the row of a node. MUC_UNSUPPORTED naming node, domain, operator and version. */
muc_status onnx_find_row(onnx_call *call);
/* Imports all nodes of a frame whose values are in its scope. */
muc_status onnx_import_nodes(onnx_import *im, onnx_frame *frame, Onnx__NodeProto *const *nodes,
                             size_t count);

/* ---- what importers use ---- */

/* "node 'x' (Conv): SENTENCE" */
muc_subject onnx_subject(const onnx_call *call);
#define onnx_fail(call, status, ...) muc_fail_on(onnx_subject(call), status, __VA_ARGS__)

static inline uint32_t onnx_input_count(const onnx_call *call)
{
    return (uint32_t)call->proto->n_input;
}
/* False where an optional input is left out. */
bool onnx_has_input(const onnx_call *call, uint32_t i);
bool onnx_has_output(const onnx_call *call, uint32_t i);
/* The value of input i, which must be there. */
muc_status onnx_find_input(onnx_call *call, uint32_t i, onnx_value **out);
/* The graph's tensor of input i, which must be there. Integers that the file calls FLOAT become
 * f32 where the node computes real numbers. */
muc_status onnx_input(onnx_call *call, uint32_t i, uint32_t *tensor);
/* The same, MUC_NO_ID where it is left out. */
muc_status onnx_input_or_none(onnx_call *call, uint32_t i, uint32_t *tensor);
/* Valid until a tensor is added. */
const muc_tensor *onnx_tensor(const onnx_call *call, uint32_t tensor);
/* The elements of input i, or MUC_UNSUPPORTED saying that they must be known. */
muc_status onnx_known(onnx_call *call, uint32_t i, const onnx_numbers **out);
/* The same for constant integers, copied to the import's arena. */
muc_status onnx_known_integers(onnx_call *call, uint32_t i, const int64_t **items, size_t *count);
/* An input of one element. */
muc_status onnx_known_integer(onnx_call *call, uint32_t i, int64_t *out);
muc_status onnx_known_real(onnx_call *call, uint32_t i, double *out);

/* NULL where the node has no such attribute. Each counts as asked for: attributes that no one
 * asked for are refused at the end. */
muc_status onnx_attribute(onnx_call *call, const char *name, const Onnx__AttributeProto **out);
muc_status onnx_integer(onnx_call *call, const char *name, int64_t fallback, int64_t *out);
muc_status onnx_real(onnx_call *call, const char *name, double fallback, double *out);
/* fallback may be NULL */
muc_status onnx_string(onnx_call *call, const char *name, const char *fallback, const char **out);
/* *items is NULL where it is absent. */
muc_status onnx_integers(onnx_call *call, const char *name, const int64_t **items, size_t *count);
/* An attribute in old versions, an input in newer ones; *items is NULL where it is left out. */
muc_status onnx_operand_integers(onnx_call *call, const char *name, uint32_t input,
                                 const int64_t **items, size_t *count);

/* A graph node that computes the node's first `outputs` outputs. attributes may be NULL. */
muc_status onnx_emit(onnx_call *call, muc_op op, const uint32_t *inputs, uint32_t input_count,
                     const muc_attributes *attributes, uint32_t outputs);
/* A graph node on the way, of one output that the file does not name. */
muc_status onnx_step(onnx_call *call, muc_op op, const uint32_t *inputs, uint32_t input_count,
                     const muc_attributes *attributes, uint32_t *out);
/* The same of two tensors, without attributes; out may be a or b. */
muc_status onnx_step2(onnx_call *call, muc_op op, uint32_t a, uint32_t b, uint32_t *out);
/* The tensor as a type; itself where it is of that type. */
muc_status onnx_cast(onnx_call *call, uint32_t tensor, muc_dtype dtype, uint32_t *out);
/* The node's output i is this tensor. */
muc_status onnx_bind(onnx_call *call, uint32_t i, uint32_t tensor);
/* The node's output i is these numbers. */
muc_status onnx_bind_numbers(onnx_call *call, uint32_t i, const onnx_numbers *numbers);
/* A scalar constant of a tensor's type, for steps. */
muc_status onnx_scalar(onnx_call *call, muc_dtype dtype, double value, uint32_t *out);
/* A list of numbers as a constant of the node's name and this one. */
muc_status onnx_list(onnx_call *call, const char *name, muc_dtype dtype, const double *values,
                     uint32_t count, uint32_t *out);
/* A constant on the way; bytes of data in the network's arena. dims are known. */
muc_status onnx_constant(onnx_call *call, const char *name, muc_dtype dtype, uint32_t rank,
                         const uint32_t *dims, const uint8_t *data, uint64_t bytes, uint32_t *out);

/* Dimensions as expressions. */
static inline muc_expr onnx_dim(const onnx_call *call, uint32_t tensor, uint32_t i)
{
    return onnx_tensor(call, tensor)->dims[i];
}
/* A copy of a tensor's dimensions, for they move when tensors are added. */
typedef struct onnx_shape {
    uint32_t rank;
    muc_expr dims[MUC_GRAPH_MAX_RANK];
} onnx_shape;
onnx_shape onnx_shape_of(const onnx_call *call, uint32_t tensor);
/* The node's dimension must be known: naming it and the input. */
muc_status onnx_constant_dim(const onnx_call *call, uint32_t tensor, uint32_t i, uint32_t *out);

/* ---- dimensions of inputs ---- */

/* Dimension i of an input: a number, or what its name and the options make of it. */
muc_status onnx_read_dim(onnx_import *im, const char *input,
                         const Onnx__TensorShapeProto__Dimension *dim, uint32_t i, muc_expr *out);
/* Makes inputs of expressions of the open dimensions that are not sums of others; shape may be
 * NULL.
 */
muc_status onnx_declare_dims(onnx_import *im, const char *input,
                             const Onnx__TensorShapeProto *shape);

/* ---- numbers ---- */

muc_status onnx_numbers_new(onnx_import *im, muc_dtype dtype, uint32_t rank, const uint32_t *dims,
                            onnx_numbers **out);
/* *out is NULL where there are too many elements; up to MUC_MAX_RANK always find room. */
muc_status onnx_numbers_of_view(onnx_import *im, const muc_tensor_view *view, onnx_numbers **out);
/* One of a tensor's elements. */
onnx_number onnx_element(const muc_tensor_view *view, uint64_t i);
/* Whether no element depends on dimensions. */
bool onnx_all_const(const onnx_numbers *numbers);
/* What the options say of an input, or NULL. */
const muc_tensor_view *onnx_known_input(const onnx_import *im, const char *name);
/* The numbers of a value, or NULL where they are not known. */
muc_status onnx_numbers_of(onnx_import *im, onnx_value *value, const onnx_numbers **out);
/* A value that is an initializer or known numbers, none of which may depend on dimensions; its
 * bytes are the file's or in the network's arena. */
muc_status onnx_constant_view(onnx_import *im, const onnx_value *value, muc_tensor_view *out);
/* The graph's tensor of a value: made of its initializer or its numbers if need be. */
muc_status onnx_materialise(onnx_import *im, onnx_value *value, uint32_t *out);
/* Stores a number as an element of a type. */
void onnx_store_number(muc_dtype dtype, const onnx_number *number, uint8_t *out);
/* The element as one expression, or false: a negative or real one. */
bool onnx_number_expr(const onnx_import *im, const onnx_numbers *numbers, uint32_t i,
                      muc_expr *out);
static inline bool onnx_is_real(muc_dtype dtype)
{
    return muc_dtype_get(dtype)->kind == MUC_DTYPE_FLOAT;
}

/* Elements from start, step apart (never 0), of a dimension, as ONNX's Slice counts them. start and
 * end may be expressions. MUC_UNSUPPORTED where the signs of expressions are not clear. */
typedef struct onnx_range {
    muc_expr start, size;
} onnx_range;
muc_status onnx_slice_range(const onnx_call *call, muc_expr dim, const onnx_number *start,
                            const onnx_number *end, int64_t step, onnx_range *out);
/* The dimensions that Reshape's second operand asks for. */
muc_status onnx_reshape_dims(onnx_call *call, const onnx_shape *from, const onnx_numbers *wanted,
                             bool allow_zero, onnx_shape *out);

#endif
