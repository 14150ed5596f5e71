/* maker.h - valid networks drawn by chance: the same bytes or the same seed, the same network.
 *
 * A network has a style, which says what its inputs are and which operators come more often, and
 * grows node by node: a row of maker.def is drawn, a value that it takes, and the row's writer adds
 * the node, or leaves it where the graph's rules refuse it.
 */
#ifndef FUZZ_MAKER_H
#define FUZZ_MAKER_H

#include "base/text.h"
#include "graph/graph.h"

/* What decides: bytes of a fuzzer, if there are any, then a generator of numbers. */
typedef struct fuzz_chance {
    const uint8_t *bytes;
    size_t left;
    uint64_t state;
} fuzz_chance;

/* 0..count - 1; count is at least 1 */
uint32_t fuzz_draw(fuzz_chance *chance, uint32_t count);

/* Puts a number into an array as element i, of plain elements. */
void fuzz_store(muc_dtype dtype, uint8_t *data, uint64_t i, double value);

typedef enum fuzz_style {
#define FUZZ_STYLE(id, name, families, meaning) FUZZ_IN_##id,
#include "maker.def"
#undef FUZZ_STYLE
    FUZZ_STYLE_COUNT
} fuzz_style;

/* Families of operators, which styles are made of. */
enum {
    FUZZ_POINTS = 1,
    FUZZ_PRODUCTS = 2,
    FUZZ_WINDOWS = 4,
    FUZZ_ROWS = 8, /* along dimensions: norms, sums, sorting */
    FUZZ_MOVES = 16,
    FUZZ_INDICES = 32,
    FUZZ_RECURRENT = 64,
    FUZZ_STATES = 128,
    FUZZ_PAIRS = 256, /* ONNX's quantized operators */
    FUZZ_QUANTLIB = 512,
    FUZZ_DECODER = 1024,
    FUZZ_SCALES = 2048, /* to and from tensors that carry quantization */
    FUZZ_CACHES = 4096,
    FUZZ_COMMON = FUZZ_POINTS | FUZZ_PRODUCTS | FUZZ_ROWS | FUZZ_MOVES | FUZZ_INDICES,
};

enum {
    FUZZ_FEWEST_NODES = 5,
    FUZZ_MOST_NODES = 60,
    FUZZ_MOST_WRITTEN = 3, /* nodes, by one writer */
    FUZZ_MOST_ATTRIBUTES = 16,
    FUZZ_MOST_ELEMENTS = 2048, /* of a tensor */
    FUZZ_MOST_TENSORS = 1024,
};

typedef struct fuzz_range {
    double lo, hi;
} fuzz_range;

/* A graph that grows. */
typedef struct fuzz_maker {
    muc_context *ctx;
    muc_graph *graph;
    fuzz_chance *chance;
    fuzz_style style;
    bool plain_rows; /* of a decoder: matrices and caches are i8, nothing is left to --quant */
    uint32_t nodes;  /* that were added */
    fuzz_range ranges[FUZZ_MOST_TENSORS]; /* where a tensor's numbers probably are */
    bool noisy[FUZZ_MOST_TENSORS];        /* its bits depend on the order of sums or on formulas */
    bool read[FUZZ_MOST_TENSORS];         /* by a node */
    uint32_t live[FUZZ_MOST_TENSORS];     /* inputs and results, which nodes may read */
    uint32_t live_count;
    muc_attribute attributes[FUZZ_MOST_ATTRIBUTES]; /* of the next node */
    uint32_t attribute_count;
} fuzz_maker;

/* Adds a node to m that reads tensor x, or leaves it. */
typedef void fuzz_writer(fuzz_maker *m, muc_op op, uint32_t x);

/* Draws a network of a style (FUZZ_STYLE_COUNT: any), for the caller to free. */
muc_graph *fuzz_make_network(muc_context *ctx, fuzz_chance *chance, fuzz_style *style);
const char *fuzz_style_name(fuzz_style style);

/* ---- for writers ---- */

static inline uint32_t fuzz_pick(fuzz_maker *m, uint32_t count)
{
    return fuzz_draw(m->chance, count);
}
static inline uint32_t fuzz_between(fuzz_maker *m, uint32_t least, uint32_t most)
{
    return least + fuzz_draw(m->chance, most - least + 1);
}
static inline bool fuzz_one_in(fuzz_maker *m, uint32_t count)
{
    return fuzz_draw(m->chance, count) == count - 1;
}
static inline const muc_tensor *fuzz_tensor(const fuzz_maker *m, uint32_t id)
{
    return &m->graph->tensors[id];
}
/* a dimension that is fixed, or 0 */
uint32_t fuzz_dim(const fuzz_maker *m, uint32_t tensor, uint32_t i);
bool fuzz_is_fixed(const fuzz_maker *m, uint32_t tensor);
bool fuzz_is_real(const fuzz_maker *m, uint32_t tensor);
double fuzz_most(const fuzz_maker *m, uint32_t tensor); /* the greatest of |range| */
muc_expr fuzz_number(fuzz_maker *m, uint32_t value);

void fuzz_set_integer(fuzz_maker *m, muc_attribute_key key, int64_t value);
void fuzz_set_real(fuzz_maker *m, muc_attribute_key key, double value);
void fuzz_set_integers(fuzz_maker *m, muc_attribute_key key, const int64_t *items, uint32_t count);
void fuzz_set_exprs(fuzz_maker *m, muc_attribute_key key, const muc_expr *items, uint32_t count);
void fuzz_set_expr(fuzz_maker *m, muc_attribute_key key, muc_expr value);

/* A tensor of fixed shape: its type and dimensions. */
typedef struct fuzz_shape {
    muc_dtype dtype;
    uint32_t rank, dims[MUC_GRAPH_MAX_RANK];
} fuzz_shape;
/* "f32 [2, 3]" */
#define FUZZ_SHAPE(dtype, ...) \
    ((fuzz_shape){ \
        (dtype), sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t), { __VA_ARGS__ } })
#define FUZZ_SCALAR(dtype) ((fuzz_shape){ (dtype), 0, { 0 } })

/* A constant of numbers in lo..hi; quantization NULL: none. Of shapes that are too large,
 * MUC_NO_ID. */
uint32_t fuzz_constant(fuzz_maker *m, const fuzz_shape *shape, double lo, double hi,
                       const muc_quantization *quantization);
/* A constant of these integers. */
uint32_t fuzz_integers(fuzz_maker *m, muc_dtype dtype, const int64_t *values, uint32_t count);
/* An input of the network, whose name tells what it holds: lo..hi, both ends of integers included.
 */
uint32_t fuzz_input(fuzz_maker *m, const fuzz_shape *shape, double lo, double hi,
                    const muc_quantization *quantization);
/* A constant mostly, else an input. */
uint32_t fuzz_operand(fuzz_maker *m, const fuzz_shape *shape, double lo, double hi,
                      const muc_quantization *quantization);
/* A quantization for all elements, or of count > 1 along axis, in which numbers up to most fit the
 * type. */
const muc_quantization *fuzz_quantization(fuzz_maker *m, muc_dtype dtype, double most,
                                          uint32_t count, uint32_t axis);

/* A matrix [n, k] of rows of int8 or fewer bits with a scale each, which f32 is multiplied by; of
 * decoders also of other types, which --quant int8 makes such rows of. */
uint32_t fuzz_rows(fuzz_maker *m, uint32_t n, uint32_t k);
/* The quantization of this scale and zero point for all elements. */
const muc_quantization *fuzz_scale(fuzz_maker *m, float scale, int32_t zero);

/* Another live tensor of x's type and shape, and of its scale if asked; else MUC_NO_ID. */
uint32_t fuzz_alike(fuzz_maker *m, uint32_t x, bool same_scale);
/* x within lo..hi, by a clip where its range is not. */
uint32_t fuzz_tame(fuzz_maker *m, uint32_t x, double lo, double hi);

/* Adds a node of these inputs and the attributes that were set; its first output, whose range is
 * then given, or MUC_NO_ID. Outputs of integers get a quantization if input 0 has one and the
 * operator asks for it. */
uint32_t fuzz_add(fuzz_maker *m, muc_op op, const uint32_t *inputs, uint32_t count,
                  uint32_t outputs, fuzz_range range);
/* The same with this quantization of outputs. */
uint32_t fuzz_add_as(fuzz_maker *m, muc_op op, const uint32_t *inputs, uint32_t count,
                     uint32_t outputs, fuzz_range range, const muc_quantization *quantization);

/* An operator of graph/elementwise.def, by the number of its inputs. */
fuzz_writer fuzz_write_elementwise;

/* writers of maker.def */
#define FUZZ_ROW(op, writer, family) fuzz_writer fuzz_write_##writer;
#include "maker.def"
#undef FUZZ_ROW

#endif
