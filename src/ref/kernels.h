/* kernels.h - float32 operators: what a session gives them, and the arithmetic they share. */
#ifndef MUC_REF_KERNELS_H
#define MUC_REF_KERNELS_H

#include "graph/graph.h"
#include "ref/ref.h"

enum { MUC_REF_MAX_INPUTS = 8 };
#define MUC_OP(id, name, least, most, outputs, rule, flags, meaning) \
    _Static_assert(most <= MUC_REF_MAX_INPUTS, name " has more inputs than a call holds");
#include "graph/ops.def"
#undef MUC_OP

/* A tensor's value in this run. Matrices of the last dimension's rows; data holds floats, or for an
 * integer input what the caller gave. */
typedef struct muc_ref_value {
    float *data;          /* activations and states: owned by the session */
    const float *read;    /* what to read: data, a constant's floats, or NULL */
    const void *integers; /* an integer INPUT's elements */
    size_t capacity;      /* floats in data */
    size_t rows, columns;
} muc_ref_value;

typedef struct muc_golden muc_golden;

/* One node at work. */
typedef struct muc_ref_call {
    muc_context *ctx;
    const muc_graph *graph;
    const muc_node *node;
    const uint32_t *bindings;
    const muc_ref_value *values;                     /* of all tensors */
    const muc_ref_value *inputs[MUC_REF_MAX_INPUTS]; /* of node->inputs */
    const muc_tensor *input_tensors[MUC_REF_MAX_INPUTS];
    muc_ref_value *output; /* sized; to be filled */
    float *scratch;        /* scratch_floats(call) of them */
    muc_golden *golden;    /* in the machine's arithmetic, else NULL */
    muc_ref_probe *probe;  /* may be NULL */
    void *probe_arg;
} muc_ref_call;

typedef struct muc_ref_kernel {
    muc_status (*run)(const muc_ref_call *call);
    size_t (*scratch_floats)(const muc_ref_call *call); /* NULL: none */
} muc_ref_kernel;

/* Token i of input 0 as a row of the table, input 1, or MUC_MALFORMED. */
muc_status muc_ref_token(const muc_ref_call *call, size_t i, size_t *row);
/* The value of the node's position attribute. */
uint32_t muc_ref_position(const muc_ref_call *call);

/* NULL run where no kernel exists. */
muc_ref_kernel muc_ref_kernel_of(muc_op op);

/* The sum of a[i] * b[i] in the one order that all float32 products here have. */
float muc_ref_dot(const float *a, const float *b, size_t n);
/* out[r * out_stride] = dot(row r, v), rows stride apart */
void muc_ref_dots(const float *rows, size_t stride, size_t count, const float *v, size_t n,
                  float *out, size_t out_stride);
/* out[r * out_stride + c] = dot(x row r, w row c), both of k elements */
void muc_ref_matmul(const float *x, size_t rows, const float *w, size_t columns, size_t k,
                    float *out, size_t out_stride);
/* y += a * x */
void muc_ref_axpy(float *y, float a, const float *x, size_t n);
/* x[i] = e^x[i] within 2 units in the last place, x[i] first brought into -87..88. */
void muc_ref_exp(float *x, size_t n);

/* body(arg, part, first, end) for ranges of 0..count-1 that cover it, on threads if work
 * (operations in all) is worth it. part < muc_ref_parts(ctx) is another number in each range, for
 * scratch; no result may depend on where ranges end. */
typedef void muc_ref_range(void *arg, size_t part, size_t first, size_t end);
size_t muc_ref_parts(muc_context *ctx);
muc_status muc_ref_split(muc_context *ctx, size_t count, size_t work, muc_ref_range *body,
                         void *arg);

#endif
