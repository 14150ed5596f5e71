/* dtype.h - the element types of tensors, one row of dtype.def each. */
#ifndef MUC_DTYPE_H
#define MUC_DTYPE_H

#include "base/base.h"

typedef enum muc_dtype {
#define MUC_DTYPE(id, name, block_elements, block_bytes, kind, meaning) MUC_##id,
#include "graph/dtype.def"
#undef MUC_DTYPE
    MUC_DTYPE_COUNT
} muc_dtype;

typedef enum muc_dtype_kind {
    MUC_DTYPE_FLOAT, /* stands for real numbers, block types included */
    MUC_DTYPE_INTEGER,
} muc_dtype_kind;

typedef struct muc_dtype_info {
    const char *name; /* "f32" */
    uint32_t block_elements, block_bytes;
    muc_dtype_kind kind;
    const char *meaning;
} muc_dtype_info;

/* The type's row; dtype < MUC_DTYPE_COUNT. */
const muc_dtype_info *muc_dtype_get(muc_dtype dtype);
/* Of an integer type: whether it has negative values. */
bool muc_dtype_is_signed(muc_dtype dtype);
/* The element at p, stored little-endian; of u64 the same bits. Integer types only. */
int64_t muc_dtype_integer(muc_dtype dtype, const uint8_t *p);
/* The values that an integer type up to 64 bits and a sign has; false for others and for bool. */
bool muc_dtype_range(muc_dtype dtype, int64_t *low, int64_t *high);
/* False if no type has this name ("f32", ...). */
bool muc_dtype_find(const char *name, muc_dtype *out);

/* Elements and bytes of a dense tensor of dims[0..rank-1], outermost first; rank 0 is a scalar.
 * False if either overflows, or if the innermost dimension is not a whole number of blocks. */
bool muc_dtype_measure(muc_dtype dtype, uint32_t rank, const uint64_t *dims, uint64_t *elements,
                       uint64_t *bytes);

/* Elements first..first+count-1 of data, of no alignment, rounded to binary32. False, and nothing
 * written, if the type is not of kind FLOAT. */
bool muc_dtype_to_f32(muc_dtype dtype, const uint8_t *data, uint64_t first, uint64_t count,
                      float *out);

#endif
