/* kernels.h - what a session gives to the operators' kernels, and the arithmetic they share.
 *
 * A kernel is a function of the call, which rows of graph/ops.def name. Shapes and types were
 * checked by the operator's shape rule, integers against graph/bounds.h; shapes that only the
 * bindings decide are the kernel's to check.
 */
#ifndef MUC_REF_KERNELS_H
#define MUC_REF_KERNELS_H

#include "graph/graph.h"
#include "ref/ref.h"

/* A tensor's value in this run. */
typedef struct muc_ref_value {
    muc_dtype dtype; /* as it is kept: never f16, bf16 or a block type, but weights that
                      * muc_ref_widen alone reads */
    uint32_t rank;
    size_t dims[MUC_GRAPH_MAX_RANK];
    size_t elements;
    size_t rows, columns; /* the same elements as rows of the last dimension */
    void *data;           /* activations, inputs and states: owned by the session */
    const void *read;     /* what to read: data, a constant's elements, or NULL */
    size_t capacity;      /* bytes in data */
} muc_ref_value;

typedef struct muc_golden muc_golden;
typedef struct muc_ref_scratch muc_ref_scratch;

/* One node at work. */
typedef struct muc_ref_call {
    muc_context *ctx;
    const muc_graph *graph;
    const muc_node *node;
    const uint32_t *bindings;
    const muc_ref_value *values;            /* of all tensors */
    const muc_ref_value *const *inputs;     /* of node->inputs; NULL: absent */
    const muc_tensor *const *input_tensors; /* the same */
    muc_ref_value *const *outputs;          /* sized; to be filled */
    muc_ref_value *output;                  /* outputs[0] */
    muc_ref_scratch *scratch;               /* of muc_ref_reserve */
    muc_golden *golden;                     /* in the machine's arithmetic, else NULL */
    bool on_chip;                           /* in the CNN chip's (chip_integers.h) */
    muc_ref_probe *probe;                   /* may be NULL */
    void *probe_arg;
} muc_ref_call;

typedef muc_status muc_ref_kernel(const muc_ref_call *call);
/* Refuses what the node's kernel would refuse in every run, by muc_ref_fail. Of the call there are
 * ctx, graph, node and input_tensors. */
typedef muc_status muc_ref_check(const muc_ref_call *call);

#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    MUC_FACTS facts
#define REF(kernel) muc_ref_kernel muc_kernel_##kernel;
#define QUANTIZED(kernel, check) \
    muc_ref_kernel muc_kernel_##kernel; \
    muc_ref_check muc_check_##check;
#define HYBRID(kernel, check) \
    muc_ref_kernel muc_kernel_##kernel; \
    muc_ref_check muc_check_##check;
#define CHIP_INTEGERS(kernel) muc_ref_kernel muc_kernel_chip_##kernel;
#define GOLDEN(kernel) muc_ref_kernel muc_kernel_golden_##kernel;
#include "graph/ops.def"

/* NULL where no kernel exists. */
muc_ref_kernel *muc_ref_kernel_of(const muc_graph *graph, const muc_node *node);

/* Room for bytes, of undefined content, until the next call of this or the kernel's end. */
muc_status muc_ref_reserve(const muc_ref_call *call, size_t bytes, void **out);
/* Other room, for what kernels share: muc_ref_convolve, muc_ref_product. */
muc_status muc_ref_reserve_inner(const muc_ref_call *call, size_t bytes, void **out);
/* Input i, or NULL where it is absent. */
static inline const muc_ref_value *muc_ref_input_of(const muc_ref_call *call, uint32_t i)
{
    return i < call->node->input_count ? call->inputs[i] : NULL;
}
/* The value of an EXPR, items of an EXPRS attribute for this run's bindings. */
muc_status muc_ref_expr(const muc_ref_call *call, muc_expr e, size_t *out);
/* "node 'x': ...", MUC_MALFORMED */
#define muc_ref_fail(call, ...) \
    muc_fail_on(muc_node_subject((call)->ctx, (call)->graph, (call)->node), MUC_MALFORMED, \
                __VA_ARGS__)

/* Rows row..row + rows - 1 of a matrix of real numbers in whatever type it is kept, as float32:
 * where they lie, or in scratch, which has room for them. */
const float *muc_ref_widen(const muc_ref_value *value, size_t row, size_t rows, float *scratch);

/* out[r * out_stride + c] = dot(x row r, w row c) for c in first..end-1, w a matrix of real numbers
 * in whatever type it is kept. panel: scratch of muc_ref_panel floats. */
void muc_ref_linear(const float *x, size_t rows, const muc_ref_value *w, size_t first, size_t end,
                    float *panel, float *out, size_t out_stride);
size_t muc_ref_panel(const muc_ref_value *w);

/* Elements of an f32 value. */
static inline const float *muc_ref_floats(const muc_ref_value *value)
{
    return value->read;
}
static inline float *muc_ref_floats_out(const muc_ref_value *value)
{
    return value->data;
}

/* A weight that is not finite is damage, other constants may well hold infinities: MUC_MALFORMED
 * naming the tensor and its first such element, of a float type but f64. */
muc_status muc_ref_check_finite(muc_context *ctx, const muc_graph *graph, uint32_t tensor,
                                const muc_ref_value *value);

/* The value of the node's position attribute. */
uint32_t muc_ref_position(const muc_ref_call *call);

/* The sum of a[i] * b[i] in the one order that all float32 products here have. */
float muc_ref_dot(const float *a, const float *b, size_t n);
/* out[r * out_stride + c] = dot(x row r, w row c), both of k elements; rows of x lie close, rows of
 * w w_stride apart */
void muc_ref_matmul(const float *x, size_t rows, const float *w, size_t w_stride, size_t columns,
                    size_t k, float *out, size_t out_stride);
/* out[i] = the sum of weights[r] * rows[r * stride + i] over count rows, one after the other */
void muc_ref_weighted_sum(const float *weights, const float *rows, size_t stride, size_t count,
                          size_t columns, float *out);
/* x[i] = e^x[i] within 2 units in the last place, x[i] first brought into -87..88. */
void muc_ref_exp(float *x, size_t n);

/* The operator linear in other types than f32. */
muc_status muc_ref_linear_others(const muc_ref_call *call);

/* As C's pow, integer powers up to 64 being products. */
double muc_ref_pow(double x, double y);

/* An element of any type as a real number, an integer (of u64 the bits). */
double muc_ref_real(const muc_ref_value *value, size_t i);
int64_t muc_ref_integer(const muc_ref_value *value, size_t i);

/* body(arg, part, first, end) for ranges of 0..count-1 that cover it, on threads if work
 * (operations in all) is worth it. part < muc_ref_parts(ctx) is another number in each range, for
 * scratch; no result may depend on where ranges end. */
typedef void muc_ref_range(void *arg, size_t part, size_t first, size_t end);
size_t muc_ref_parts(muc_context *ctx);
muc_status muc_ref_split(muc_context *ctx, size_t count, size_t work, muc_ref_range *body,
                         void *arg);

#endif
