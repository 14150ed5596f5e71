/* dtype.c - the table of element types and the one place that multiplies shapes out. */
#include "graph/dtype.h"

#include <string.h>

static const muc_dtype_info table[] = {
#define MUC_DTYPE(id, name, block_elements, block_bytes, kind, meaning) \
    { name, block_elements, block_bytes, MUC_DTYPE_##kind, meaning },
#include "graph/dtype.def"
#undef MUC_DTYPE
};

const muc_dtype_info *muc_dtype_get(muc_dtype dtype)
{
    return &table[dtype];
}

bool muc_dtype_find(const char *name, muc_dtype *out)
{
    for (unsigned i = 0; i < MUC_COUNT(table); i++) {
        if (strcmp(table[i].name, name) == 0) {
            *out = (muc_dtype)i;
            return true;
        }
    }
    return false;
}

bool muc_dtype_measure(muc_dtype dtype, uint32_t rank, const uint64_t *dims, uint64_t *elements,
                       uint64_t *bytes)
{
    const muc_dtype_info *info = &table[dtype];
    uint64_t product = 1;

    for (uint32_t i = 0; i < rank; i++)
        if (!muc_mul_u64(product, dims[i], &product))
            return false;
    if ((rank ? dims[rank - 1] : 1) % info->block_elements != 0)
        return false;
    if (!muc_mul_u64(product / info->block_elements, info->block_bytes, bytes))
        return false;
    *elements = product;
    return true;
}
