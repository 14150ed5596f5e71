/* scales.h - the factors between the integers of quantized nodes, as TFLite's kernels derive them.
 *
 * Some of TFLite's products of scales are rounded to single precision, some are not; which ones is
 * a fact that the reference and the generators share here. Tensors carry quantization.
 */
#ifndef MUC_GRAPH_SCALES_H
#define MUC_GRAPH_SCALES_H

#include "base/fixed.h"
#include "graph/graph.h"

/* Of a tensor of one quantization. */
static inline float muc_scale_of(const muc_tensor *tensor)
{
    return tensor->quantization->scales[0];
}
static inline int32_t muc_zero_of(const muc_tensor *tensor)
{
    return tensor->quantization->zero_points[0];
}

/* Conv, conv_transpose, linear, matmul: sums of products of x and weights to the output's integers,
 * for an output channel; the channel counts where the weights have a scale each. */
muc_multiplier muc_scale_product(const muc_node *node, const muc_tensor *x,
                                 const muc_tensor *weights, const muc_tensor *out,
                                 uint32_t channel);

/* What MUC_INTEGERS' formulas in elementwise.def have: inputs less their zero points are shifted
 * left and times operands, if has_operands; `above` is the factor of a leaky_relu's or prelu's
 * elements above 0.
 */
typedef struct muc_integer_scales {
    bool has_operands;
    int left_shift;
    muc_multiplier operands[2], factor, above;
} muc_integer_scales;
/* b: input 1, or NULL where that is not an operand */
muc_integer_scales muc_scale_integers(const muc_node *node, const muc_tensor *a,
                                      const muc_tensor *b, const muc_tensor *out);
/* By such a formula, of the inputs' integers less their zero points, not multiplied yet: the
 * output's less its own, before its bounds. */
int32_t muc_scale_elements(muc_op op, const muc_integer_scales *s, int32_t p, int32_t q);
bool muc_scale_has_formula(muc_op op);
/* Whether its integers are quotients, which are of bytes alone. */
bool muc_scale_is_quotient(muc_op op);
/* How many of a node's inputs are operands; others are bounds. */
static inline uint32_t muc_integer_operands(const muc_node *node)
{
    bool at_zero;

    return muc_op_bounds(node->op, &at_zero) ? 1 : node->input_count;
}
/* Reduce_mean and reduce_sum of count elements: their sum, without count zero points, to the
 * output's integers. */
muc_multiplier muc_scale_reduction(muc_op op, const muc_tensor *x, const muc_tensor *out,
                                   uint64_t count);

/* Softmax: differences from the greatest element to Q5.26, and the least that counts. */
typedef struct muc_softmax_scales {
    muc_multiplier difference;
    int32_t least;
} muc_softmax_scales;
muc_softmax_scales muc_scale_softmax(const muc_tensor *x, double beta);

/* Log_softmax of int8 rows, by integers alone. An element k steps below its row's greatest counts
 * as exps[k] = 2^20 e^(-k * x's scale); l is the logarithm to base 2 of their sum in 2^-16ths, less
 * 20, its fraction found bit by bit: of m in 2^31 .. 2^32 - 1, the sum without its power of two, a
 * bit is whether floor(m^2 / 2^31) is 2^32 or more, and m becomes that, or its half. Then y =
 * clamp((2^16 zero + 2^15 - k step - floor(l log_step / 2^16)) / 2^16), rounded down */
enum { MUC_LOG_SOFTMAX_COLUMNS = 4095, MUC_LOG_SOFTMAX_ONE = 20, MUC_LOG_SOFTMAX_STEPS = 64 };
typedef struct muc_log_softmax_scales {
    uint32_t exps[256];
    int32_t step, log_step; /* 2^16 x's scale / output scale, 2^16 ln(2) / output scale */
} muc_log_softmax_scales;
/* False if there are more columns, or a step of x's scale is MUC_LOG_SOFTMAX_STEPS of the output's
 * or more, or the output's is so small that 32 bits do not hold the logarithm. */
bool muc_scale_log_softmax(const muc_tensor *x, uint64_t columns, const muc_tensor *out,
                           muc_log_softmax_scales *scales);

/* Where a norm's rows lie: layer_norm's and rmsnorm's one after another, those of instance_norm and
 * group_norm a row for each group of an image. Row r begins at (r / groups) groups runs width +
 * (r % groups) next and is runs times width elements, the runs step apart. */
typedef struct muc_norm_rows {
    uint64_t groups, runs, width, step, next;
    bool of_runs; /* a gain for each run of a group, not for each place in a run */
} muc_norm_rows;
/* The first dimension of a row. */
uint32_t muc_norm_axis(const muc_node *node, uint32_t rank);
/* dims: x's; which images there are does not matter. Products stay at UINT32_MAX. */
muc_norm_rows muc_norm_rows_of(const muc_node *node, uint32_t rank, const uint64_t *dims);
static inline uint64_t muc_norm_columns(const muc_norm_rows *rows)
{
    return rows->runs * rows->width;
}
/* of all groups */
static inline uint64_t muc_norm_gains(const muc_norm_rows *rows)
{
    return rows->groups * (rows->of_runs ? rows->runs : rows->width);
}

/* Norms of int8, by integers alone. A row has n columns q; c is their sum, of
 * rmsnorm n times x's zero point; d = n q - c, and W = 2^8 sum(d^2) / n + epsilon, at least 1, so
 * that d / sqrt(W / 2^8) is x normalised. Then, with floors and in this order: W = w 2^s with s
 * even and w in 2^30 .. 2^32 - 1; m = floor(sqrt(w)) r = min(floor(2^31 / m) 2^15, 2^31 - 1) v = (d
 * 2^head r / 2^32) gain / 2^32 v = v / 2^(shift + s / 2) (at most 31), or where that is a product:
 * min(max(v, -2^20), 2^20) times it (at most 2^10) y = clamp((v + bias) / 2^8) A gain is scale /
 * output scale * 2^(as much as 31 bits hold), a bias 2^8 times (bias / output scale + zero point),
 * and 128. */
enum { MUC_NORM_COLUMNS = 1 << 16 }; /* the most */
typedef struct muc_norm_scales {
    int32_t columns, head, shift;
    int64_t epsilon; /* 2^8 n^2 epsilon / (x's scale)^2 */
} muc_norm_scales;
/* The scale and bias (which may be NULL) are real constants of muc_norm_gains elements or one.
 * False if there are too many columns, or the numbers are beyond what these integers hold. gains
 * and biases, of as many elements, are filled, unless they are NULL. */
bool muc_scale_norm(const muc_tensor *x, const muc_tensor *scale, const muc_tensor *bias,
                    double epsilon, const muc_norm_rows *rows, const muc_tensor *out,
                    int32_t *gains, int32_t *biases, muc_norm_scales *scales);

/* Sigmoid(i / 24) in Q0.16, less a sixteenth of its curvature, so that lines between them err to
 * both sides; the last is 1: TFLite's table of both functions of 16 bits (mur_sigmoid.h). */
void muc_scale_sigmoid_table(uint16_t table[256]);
/* What the integers of a scale are in the table's units, 1 / 12288: (x mul + round) >> shift. */
typedef struct muc_table_scale {
    int32_t mul, shift, round;
} muc_table_scale;
/* The scale of i16 to the table, false where TFLite has no such kernel: of sigmoid or tanh to i16
 * of scale 2^-15, both of zero point 0. */
bool muc_scale_of_table(muc_op op, float x, float y, muc_table_scale *out);
/* The same of a node, false for other operators and types. */
bool muc_scale_of_i16(const muc_graph *graph, const muc_node *node, muc_table_scale *out);

/* The outputs for all 256 values of input 0, int8 or uint8, of an operator that ops.def gives
 * a table, or that has integers' formula and constants of one element as its other inputs: entry i
 * is for the input -128 + i, or i. MUC_UNSUPPORTED for another operator or type. */
muc_status muc_scale_table(muc_context *ctx, const muc_graph *graph, const muc_node *node,
                           int8_t table[256]);

/* Real numbers to integers of a quantization of one scale: nearest, halves away from zero, within
 * the type's bounds. */
int32_t muc_scale_quantize(const muc_tensor *tensor, float value);
/* The type's bounds, or the node's attributes clamp_min and clamp_max where they are tighter; least
 * is never above most. */
void muc_scale_clamp(const muc_node *node, const muc_tensor *out, int32_t *least, int32_t *most);
/* Tightens them by what the bounds of such an operator (muc_op_bounds; NULL: absent), whose element
 * is there, stand for. */
void muc_scale_bounds(muc_op op, const muc_tensor *out, const muc_tensor *low,
                      const muc_tensor *high, int32_t *least, int32_t *most);
/* Muc_scale_clamp's, tightened by those of an operator with MUC_INTEGERS, inputs 1 and 2,
 * if it has any. Of bounds that cross the upper one wins, as in ONNX: it becomes both. */
void muc_scale_element_bounds(const muc_node *node, const muc_tensor *out, const muc_tensor *low,
                              const muc_tensor *high, int32_t *least, int32_t *most);
/* Both have one scale and one zero point, the same. */
bool muc_scale_is_same(const muc_quantization *a, const muc_quantization *b);

#endif
