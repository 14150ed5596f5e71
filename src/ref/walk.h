/* walk.h - element types in C, and walks over tensors that broadcast. */
#ifndef MUC_REF_WALK_H
#define MUC_REF_WALK_H

#include "ref/kernels.h"

/* X(argument, dtype, C type) for each type that values are kept in, but bool. */
#define MUC_REF_REALS(X, argument) X(argument, F32, float) X(argument, F64, double)
#define MUC_REF_SIGNED(X, argument) \
    X(argument, I64, int64_t) \
    X(argument, I32, int32_t) \
    X(argument, I16, int16_t) \
    X(argument, I8, int8_t)
#define MUC_REF_UNSIGNED(X, argument) \
    X(argument, U64, uint64_t) \
    X(argument, U32, uint32_t) \
    X(argument, U16, uint16_t) \
    X(argument, U8, uint8_t)
#define MUC_REF_INTEGERS(X, argument) MUC_REF_SIGNED(X, argument) MUC_REF_UNSIGNED(X, argument)
#define MUC_REF_NUMBERS(X, argument) MUC_REF_REALS(X, argument) MUC_REF_INTEGERS(X, argument)

enum { MUC_REF_MAX_OPERANDS = 5 };

/* All elements of a shape in row-major order, and where each operand has them: runs of the
 * innermost dimension, steps of whole elements, 0 along dimensions that broadcast. */
typedef struct muc_ref_walk {
    uint32_t rank, operands;
    size_t dims[MUC_GRAPH_MAX_RANK];
    size_t steps[MUC_REF_MAX_OPERANDS][MUC_GRAPH_MAX_RANK];
} muc_ref_walk;

/* The shape of `shape`, which each operand broadcasts to; dimensions are merged where they can. */
void muc_ref_walk_of(const muc_ref_value *shape, const muc_ref_value *const *operands,
                     uint32_t count, muc_ref_walk *walk);

/* body(arg, n, at, step): n elements, the first of operand o at at[o], then step[o] apart; elements
 * of the shape itself are counted one after another. */
typedef void muc_ref_run_body(void *arg, size_t n, const size_t *at, const size_t *step);
void muc_ref_walk_each(const muc_ref_walk *walk, muc_ref_run_body *body, void *arg);

/* elements before, along and after a dimension: x[outer][extent][inner] */
typedef struct muc_ref_along {
    size_t outer, extent, inner;
} muc_ref_along;
muc_ref_along muc_ref_along_of(const muc_ref_value *value, size_t axis);

/* Elements first..first+n-1 by way of the widest type of their kind: any type to and from double
 * (to integers truncated, saturated, NaN as 0), integers and bool to and from int64 (wrapped; of
 * u64 the bits). A bool is whether the number is not 0. */
void muc_ref_load_reals(const muc_ref_value *from, size_t first, size_t n, double *out);
void muc_ref_load_integers(const muc_ref_value *from, size_t first, size_t n, int64_t *out);
void muc_ref_store_reals(const muc_ref_value *to, size_t first, size_t n, const double *from);
void muc_ref_store_integers(const muc_ref_value *to, size_t first, size_t n, const int64_t *from);

/* numpy's matmul of values of one type. */
muc_status muc_ref_product(const muc_ref_call *call, const muc_ref_value *a, const muc_ref_value *b,
                           const muc_ref_value *out);

static inline bool muc_ref_is_real(const muc_ref_value *value)
{
    return value->dtype == MUC_F32 || value->dtype == MUC_F64;
}

static inline size_t muc_ref_width(const muc_ref_value *value)
{
    return muc_dtype_get(value->dtype)->block_bytes;
}

#endif
