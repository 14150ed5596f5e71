/* graph.h - a network: tensors with symbolic shapes, and nodes in the order in which they run.
 *
 * Nodes and tensors refer to each other by index. Every tensor is made by declaring it (INPUT,
 * CONST, STATE) or by adding the node that computes it (ACTIVATION), whose shape is derived: a
 * graph built by these functions passes muc_graph_verify. A node has its first output's name.
 * The graph owns all but the bytes of constants, which it borrows.
 */
#ifndef MUC_GRAPH_H
#define MUC_GRAPH_H

#include "expr/expr.h"
#include "base/bytes.h"
#include "graph/dtype.h"

#define MUC_GRAPH_MAX_RANK 8
#define MUC_GRAPH_MAX_INPUTS 1024 /* of a node */
#define MUC_GRAPH_MAX_OUTPUTS 64
#define MUC_NO_ID UINT32_MAX

/* the facts of a row of ops.def, out of their parentheses */
#define MUC_FACTS(...) __VA_ARGS__

typedef enum muc_op {
#define MUC_OP(id, ...) MUC_OP_##id,
#include "graph/ops.def"
    MUC_OP_COUNT
} muc_op;

enum {
    MUC_OP_POINTWISE = 1, /* element i of the output depends on elements i of the inputs */
    MUC_OP_WEIGHTED = 2,  /* input 1 is a weight matrix [N, K] that a target may quantize */
    MUC_OP_STATEFUL = 4,  /* reads and writes STATE tensors; no other operator may */
    /* what input 0 may be, of no quantization; real types but for MIXED are f64, f32, f16, bf16 */
    MUC_OP_FLOAT = 8,
    MUC_OP_INTEGER = 16,
    MUC_OP_BOOL = 32,
    MUC_OP_NUMBER = MUC_OP_FLOAT | MUC_OP_INTEGER,
    MUC_OP_ANY = MUC_OP_NUMBER | MUC_OP_BOOL,
    /* also runs on integers that carry quantization, in the arithmetic of TFLite's reference
     * kernels; its outputs carry quantization then */
    MUC_OP_QUANTIZED = 64,
    MUC_OP_MOVES = 128, /* outputs' elements are inputs' elements: quantization goes with them */
    /* with an f32 input 0, inputs beyond it may be constants of any type of real numbers, or of
     * integers that carry quantization where the shape rule allows it */
    MUC_OP_MIXED = 256,
    /* QUANTIZED, of 8 bits by a table of all 256 results (muc_scale_table) */
    MUC_OP_BY_TABLE = 512,
    MUC_OP_TABLE = MUC_OP_BY_TABLE | MUC_OP_QUANTIZED,
    MUC_OP_REDUCES = 1024, /* a row of reductions.def */
    /* input 1 holds indices into input 0: along the attribute axis, or tuples after batch_dims */
    MUC_OP_INDEXES = 2048,
    /* quantized u8 stays u8 (shift_unsigned.c): other rules than for i8, no kernel or a state */
    MUC_OP_KEEPS_U8 = 4096,
    /* computes each image, an index of the first dimension, on its own, unless an axis names it;
     * so do POINTWISE and REDUCES */
    MUC_OP_APART = 8192,
    /* computes the same with input 0's dimensions in another order, if its attributes follow */
    MUC_OP_FOLLOWS = 16384,
    MUC_OP_PARAMETERS = 32768, /* POINTWISE, but inputs beyond the first are not broadcast */
    MUC_OP_COMMUTES = 65536,   /* inputs 0 and 1 may change places */
    /* outputs' elements are inputs' elements that place and order alone choose: the same of other
     * integers for the same numbers, as a pool of the greatest */
    MUC_OP_SELECTS = 131072,
    MUC_OP_BOUNDS = 262144,  /* muc_op_bounds */
    MUC_OP_CHOOSES = 524288, /* input 0 chooses among the elements of the inputs behind it */
    MUC_OP_AFFINE =
        1048576, /* with constants besides one input: a factor, a number added, or both */
    MUC_OP_SUBTRACTS = 2097152, /* input 1 counts with the other sign */
    MUC_OP_AVERAGES = 4194304,  /* a sum over how many there are */
    MUC_OP_CENTRES = 8388608,   /* takes off the mean of what it normalises */
    MUC_OP_CONVERTS = 16777216, /* the same numbers as another type */
    /* TABLE, of 16 bits muc_scale_sigmoid_table: to 0 to 1; SIGNED: to -1 to 1 */
    MUC_OP_SQUASHES = 33554432,
    MUC_OP_SIGNED = 67108864,
    MUC_OP_COARSE = 134217728, /* no finer scale than input 0's by MUC_LOG_SOFTMAX_STEPS */
};

/* What an element of an operator's output sums products of. */
typedef enum muc_product_kind {
    MUC_PRODUCT_NONE,
    MUC_PRODUCT_COLUMNS, /* a row of x, or with transpose_a a column, and a column of weights */
    MUC_PRODUCT_ROWS,    /* a row of x and a row of weights [N, K] */
    MUC_PRODUCT_FILTER,  /* a window of x and a filter of weights [out, ..] */
    MUC_PRODUCT_SPREAD,  /* its gradient: weights [in, out, ..] */
} muc_product_kind;

/* The numbers of inputs, 0 where there is none: integers less their zero points, and what is added
 * to the sums. */
typedef struct muc_product {
    muc_product_kind kind;
    uint32_t weights, zero, weights_zero, bias;
} muc_product;

typedef struct muc_op_info {
    const char *name;
    uint32_t least_inputs, most_inputs, least_outputs, most_outputs;
    unsigned flags; /* of MUC_OP_POINTWISE.. */
    const char *meaning;
} muc_op_info;

typedef enum muc_attribute_type {
    MUC_ATTRIBUTE_INTEGER,
    MUC_ATTRIBUTE_REAL,
    MUC_ATTRIBUTE_INTEGERS,
    MUC_ATTRIBUTE_EXPR,
    MUC_ATTRIBUTE_REALS,
    MUC_ATTRIBUTE_EXPRS,
    MUC_ATTRIBUTE_WORD,  /* a muc_word in integer */
    MUC_ATTRIBUTE_DTYPE, /* a muc_dtype in integer */
} muc_attribute_type;

typedef enum muc_word {
#define MUC_WORD(id, name) MUC_WORD_##id,
#include "graph/attribute_words.def"
#undef MUC_WORD
    MUC_WORD_COUNT
} muc_word;

typedef enum muc_attribute_key {
#define MUC_ATTRIBUTE(id, name, type, meaning) MUC_KEY_##id,
#include "graph/attributes.def"
    MUC_KEY_COUNT
} muc_attribute_key;

typedef struct muc_attribute_info {
    const char *name;
    muc_attribute_type type;
    int64_t least, most; /* of an integer */
    const char *meaning;
} muc_attribute_info;

/* The key's type says which member of the union counts. */
typedef struct muc_attribute {
    muc_attribute_key key;
    union {
        int64_t integer;
        double real; /* finite */
        struct {
            const int64_t *items;
            uint32_t count;
        } integers;
        struct {
            const double *items; /* finite */
            uint32_t count;
        } reals;
        struct {
            const muc_expr *items;
            uint32_t count;
        } exprs;
        muc_expr expr;
    } value;
} muc_attribute;

typedef enum muc_tensor_kind {
    MUC_TENSOR_INPUT,      /* given by the caller of every run */
    MUC_TENSOR_CONST,      /* weights and tables */
    MUC_TENSOR_STATE,      /* kept from run to run; at first 0, or the zero point of i8 */
    MUC_TENSOR_ACTIVATION, /* computed by a node */
    MUC_TENSOR_KIND_COUNT
} muc_tensor_kind;

/* What the integers q of a tensor stand for: scale * (q - zero point). */
typedef struct muc_quantization {
    uint32_t count;             /* 1, or the extent of dimension axis */
    uint32_t axis;              /* 0 if count is 1 */
    const float *scales;        /* [count], finite, above 0 */
    const int32_t *zero_points; /* [count], values of the tensor's type */
} muc_quantization;

typedef struct muc_tensor {
    const char *name;
    muc_tensor_kind kind;
    muc_dtype dtype;
    uint32_t rank; /* at most MUC_GRAPH_MAX_RANK */
    muc_expr dims[MUC_GRAPH_MAX_RANK];
    uint32_t producer; /* the node that computes an ACTIVATION, else MUC_NO_ID */
    /* CONST: its bytes, borrowed, of no alignment; NULL in a graph read from text */
    const uint8_t *data;
    uint64_t bytes;
    /* of a matrix [N, K] that was quantized: its BlockDialect tile sequence
     * (docs/SPEC-blockdialect.md section 5), borrowed; else NULL and 0 */
    const uint8_t *sequence;
    uint64_t sequence_bytes;
    bool sequence_rests; /* it lies where muc_large_rest may let it leave the memory */
    const muc_quantization *quantization; /* of an integer type; NULL: plain numbers */
} muc_tensor;

typedef struct muc_node {
    muc_op op;
    const char *name; /* of outputs[0] */
    uint32_t input_count, output_count, attribute_count;
    /* tensors; an input beyond the operator's least may be MUC_NO_ID: absent, but not the last */
    const uint32_t *inputs, *outputs;
    const muc_attribute *attributes;
} muc_node;

/* A node to be added. */
typedef struct muc_new_node {
    muc_op op;
    const char *name;                                    /* outputs are "name", "name:1", ... */
    uint32_t input_count, attribute_count, output_count; /* no outputs: the operator's least */
    const uint32_t *inputs;
    const muc_attribute *attributes;
    const char *const *output_names;             /* [output_count], or NULL: as above */
    const muc_quantization *const *quantization; /* [output_count], or NULL: none or inherited */
} muc_new_node;

/* What GATES in ops.def says. */
typedef struct muc_gates {
    uint8_t count; /* rows of weights an element of the state */
    uint8_t wide;  /* the input that in integers is a state of 16 bits; 0: none is */
} muc_gates;

/* inputs of recurrent layers that may be absent */
enum { MUC_INPUT_STATE = 5, MUC_INPUT_CELL = 6, MUC_INPUT_PEEPHOLES = 7 };

typedef struct muc_names {
    uint32_t *slots; /* tensor + 1, by hash of its name; 0 is empty */
    size_t capacity;
} muc_names;

typedef struct muc_graph {
    const char *name;
    muc_arena arena;
    muc_expr_pool *pool; /* of every dimension and attribute; its assumptions are the graph's */
    muc_tensor *tensors;
    muc_node *nodes; /* every node after those whose outputs it reads */
    uint32_t *outputs;
    uint32_t tensor_count, node_count, output_count;
    size_t tensor_capacity, node_capacity, output_capacity;
    muc_names names;
    /* of a graph for plans alone (muc_outline): what its large constants are in place of their
     * values; else NULL */
    const uint8_t *zeros;
    uint64_t zero_bytes;
} muc_graph;

const muc_op_info *muc_op_get(muc_op op);
const muc_product *muc_op_product(muc_op op);
/* Of a layer that carries a state through a sequence; count 0: it is none. */
const muc_gates *muc_op_gates(muc_op op);
/* whether input 1 is a matrix, if it is a constant: of the flag MUC_OP_WEIGHTED, or EMBED */
bool muc_op_has_matrix(muc_op op);
/* whether it has the flag, or one of several */
bool muc_op_has(muc_op op, unsigned flag);
/* Whether it is x between two bounds. *at_zero: the lower one is 0, and there is no upper one; else
 * they are inputs 1 and 2, which may be absent. */
bool muc_op_bounds(muc_op op, bool *at_zero);
/* The kind of product that it computes of real numbers, or of integers that stand for such. */
muc_product_kind muc_op_real_product(muc_op op);
bool muc_op_find(const char *name, muc_op *out);
const muc_attribute_info *muc_attribute_get(muc_attribute_key key);
bool muc_attribute_find(const char *name, muc_attribute_key *out);
const char *muc_word_name(muc_word word);
bool muc_word_find(const char *name, muc_word *out);
/* Whether op's nodes may, or must, carry the attribute. */
bool muc_op_takes(muc_op op, muc_attribute_key key, bool *required);
const char *muc_tensor_kind_name(muc_tensor_kind kind); /* "input", ... */

muc_status muc_graph_new(muc_context *ctx, const char *name, muc_graph **out);
void muc_graph_free(muc_graph *graph); /* NULL is fine */

/* Declares an INPUT, CONST or STATE tensor from name, kind, dtype, rank, dims, and for a CONST data
 * and bytes (checked against the shape). Copies name, as muc_text_add_utf8
 * spells it, and quantization. Fails with MUC_MALFORMED if the name is taken or the shape
 * impossible. */
muc_status muc_graph_add_tensor(muc_context *ctx, muc_graph *graph, const muc_tensor *tensor,
                                uint32_t *out);
/* Appends a node and its outputs, whose shapes are derived: "name", then "name:1", ... Copies all
 * it is given. *output is the first output. Fails with MUC_MALFORMED naming node and input. */
muc_status muc_graph_add_node(muc_context *ctx, muc_graph *graph, muc_op op, const char *name,
                              const uint32_t *inputs, uint32_t input_count,
                              const muc_attribute *attributes, uint32_t attribute_count,
                              uint32_t *output);
/* The same for nodes of several outputs, names and quantizations; outputs[0..] may be NULL. An
 * operator that moves elements gives its outputs input 0's quantization, if that is one for all
 * elements and none is given. */
muc_status muc_graph_add(muc_context *ctx, muc_graph *graph, const muc_new_node *node,
                         uint32_t *outputs);
/* Makes a tensor one of the graph's results. */
muc_status muc_graph_add_output(muc_context *ctx, muc_graph *graph, uint32_t tensor);

/* Whether a constant of the graph has a shape, but zeros in place of its values. */
static inline bool muc_graph_is_shape(const muc_graph *graph, const muc_tensor *constant)
{
    return graph->zeros && constant->data == graph->zeros;
}

/* A tensor's index, or MUC_NO_ID. */
uint32_t muc_graph_find(const muc_graph *graph, const char *name);
/* NULL if the node does not carry it. */
const muc_attribute *muc_node_attribute(const muc_node *node, muc_attribute_key key);
/* Of attributes that the verifier found to be there. */
int64_t muc_node_integer(const muc_node *node, muc_attribute_key key);
double muc_node_real(const muc_node *node, muc_attribute_key key);
muc_expr muc_node_expr(const muc_node *node, muc_attribute_key key);
/* Of attributes that may be absent. */
int64_t muc_node_integer_or(const muc_node *node, muc_attribute_key key, int64_t fallback);
double muc_node_real_or(const muc_node *node, muc_attribute_key key, double fallback);
muc_word muc_node_word_or(const muc_node *node, muc_attribute_key key, muc_word fallback);
/* Items of an INTEGERS attribute, or NULL where it is absent. */
const int64_t *muc_node_integers(const muc_node *node, muc_attribute_key key);
/* Item i of them, which there must be if the attribute is. */
int64_t muc_node_item_or(const muc_node *node, muc_attribute_key key, uint32_t i, int64_t fallback);
/* Whether a pool's mean counts elements of its padding. */
bool muc_node_counts_padding(const muc_node *node);
/* The only node that reads a tensor, and as which of its inputs; NULL if several do, or none, or if
 * the tensor is a result of the graph. */
const muc_node *muc_graph_only_reader(const muc_graph *graph, uint32_t tensor, uint32_t *input);
/* The integers whose real numbers a node dequantize makes the tensor, which may be
 * MUC_NO_ID; MUC_NO_ID: none does. */
uint32_t muc_graph_integers_of(const muc_graph *graph, uint32_t tensor);
/* Input i's tensor, or MUC_NO_ID where it is absent or beyond the node's inputs. */
uint32_t muc_node_input(const muc_node *node, uint32_t i);
/* The node, for muc_fail_on. */
muc_subject muc_node_subject(muc_context *ctx, const muc_graph *graph, const muc_node *node);

/* What every byte of a STATE is at first: TFLite fills its variables with the zero point where that
 * is a byte, else with zeros. */
int muc_tensor_first_byte(const muc_tensor *state);
/* Elements and bytes of a tensor for the given bindings (checked before), or MUC_UNSUPPORTED if
 * they overflow. */
muc_status muc_tensor_measure_bound(muc_context *ctx, const muc_graph *graph,
                                    const muc_tensor *tensor, const uint32_t *bindings,
                                    uint64_t *elements, uint64_t *bytes);

/* Derives the outputs of a node: dtype, rank and dims of outputs[0..], nothing else. Fails with
 * MUC_MALFORMED naming node, found and expected. The node's inputs must be valid indices. */
muc_status muc_graph_derive(muc_context *ctx, muc_graph *graph, const muc_node *node,
                            muc_tensor *outputs);

/* Takes out nodes and tensors on which neither an output nor a state depends; inputs stay. Indices
 * of tensors and nodes change. */
muc_status muc_graph_prune(muc_context *ctx, muc_graph *graph);

/* Checks everything that a graph promises: counts, indices, kinds, attributes, shapes derived anew,
 * order, names, bytes of constants. MUC_BUG, naming node or tensor, found and expected. */
muc_status muc_graph_verify(muc_context *ctx, muc_graph *graph);

/* The text form (docs in graph/graph_text.c). Parsing what was printed gives the same text;
 * constants of more than MUC_GRAPH_PRINTED_ELEMENTS have sizes but no data then. */
enum { MUC_GRAPH_PRINTED_ELEMENTS = 64 };
void muc_graph_print(const muc_graph *graph, muc_text *text);
/* The same with the values of every constant that has data: parsing it gives the whole graph. */
void muc_graph_print_whole(const muc_graph *graph, muc_text *text);
muc_status muc_graph_parse(muc_context *ctx, muc_bytes text, muc_graph **out);
/* "f32 [m, 64]" */
void muc_tensor_print_shape(const muc_graph *graph, const muc_tensor *tensor, muc_text *text);

#endif
