/* dtype.c - the table of element types, the one place that multiplies shapes out, and the
 * conversion of elements of any type to float32. */
#include "graph/dtype.h"

#include <string.h>

#include "base/bytes.h"
#include "base/half.h"
#include "base/vector_loop.h"
#include "graph/block_types.h"

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

bool muc_dtype_is_signed(muc_dtype dtype)
{
    return dtype == MUC_I64 || dtype == MUC_I32 || dtype == MUC_I16 || dtype == MUC_I8;
}

int64_t muc_dtype_integer(muc_dtype dtype, const uint8_t *p)
{
    uint32_t width = table[dtype].block_bytes;
    uint64_t value = 0;

    for (uint32_t b = width; b-- > 0;)
        value = value << 8 | p[b];
    if (muc_dtype_is_signed(dtype) && width < 8 && value >> (8 * width - 1))
        value |= UINT64_MAX << (8 * width);
    return (int64_t)value;
}

bool muc_dtype_range(muc_dtype dtype, int64_t *low, int64_t *high)
{
    static const struct {
        muc_dtype dtype;
        int64_t low, high;
    } ranges[] = {
        { MUC_I8, INT8_MIN, INT8_MAX },    { MUC_U8, 0, UINT8_MAX },
        { MUC_I16, INT16_MIN, INT16_MAX }, { MUC_U16, 0, UINT16_MAX },
        { MUC_I32, INT32_MIN, INT32_MAX }, { MUC_U32, 0, UINT32_MAX },
        { MUC_I64, INT64_MIN, INT64_MAX },
    };

    for (size_t i = 0; i < MUC_COUNT(ranges); i++)
        if (ranges[i].dtype == dtype) {
            *low = ranges[i].low;
            *high = ranges[i].high;
            return true;
        }
    return false;
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

static float load_f64(const uint8_t *data, uint64_t i)
{
    uint64_t bits = muc_load_u64(data + 8 * i);
    double value;

    memcpy(&value, &bits, sizeof(value));
    return (float)value;
}

/* Elements first.. of blocks; whole blocks go straight to out. */
static void blocks_to_f32(muc_dtype dtype, const uint8_t *data, uint64_t first, uint64_t count,
                          float *out)
{
    const muc_dtype_info *info = &table[dtype];
    float whole[MUC_BLOCK_MOST];

    while (count) {
        const uint8_t *block = data + first / info->block_elements * info->block_bytes;
        uint32_t skip = (uint32_t)(first % info->block_elements);
        uint32_t part = info->block_elements - skip;

        part = count < part ? (uint32_t)count : part;
        muc_block_to_f32(dtype, block, part == info->block_elements ? out : whole);
        if (part < info->block_elements)
            memcpy(out, whole + skip, part * sizeof(*out));
        first += part;
        out += part;
        count -= part;
    }
}

enum { LANES = 8 };

typedef uint16_t half_lanes
    __attribute__((vector_size(LANES * sizeof(uint16_t)), aligned(1), may_alias));
typedef uint32_t bit_lanes
    __attribute__((vector_size(LANES * sizeof(uint32_t)), aligned(4), may_alias));
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

/* BITS, bit_lanes from bits of 16-bit floats as bit_lanes, for as many whole groups as there are;
 * how many elements that was */
#define WIDEN(BITS) \
    uint64_t i = 0; \
    for (; i + LANES <= count; i += LANES) { \
        half_lanes halves = *(const half_lanes *)(const void *)(data + 2 * i); \
        bit_lanes bits = __builtin_convertvector(halves, bit_lanes); \
        *(bit_lanes *)(void *)(out + i) = (BITS); \
    } \
    return i;

MUC_VECTOR_LOOP static uint64_t widen_bf16(const uint8_t *data, uint64_t count,
                                           float *out){ WIDEN(bits << 16) }

/* exact: the exponent is moved by a product, infinities and NaNs get the highest one back, and
 * NaNs become quiet */
#define WIDE_F16(bits) \
    ((bit_lanes)((lanes)((bits & 0x7fff) << 13) * 0x1p112f) | (bits & 0x8000) << 16 | \
     ((bit_lanes)((bits & 0x7c00) == 0x7c00) & 0x7f800000) | \
     ((bit_lanes)((bits & 0x7fff) > 0x7c00) & 0x400000))

MUC_VECTOR_LOOP static uint64_t widen_f16(const uint8_t *data, uint64_t count, float *out)
{
    WIDEN(WIDE_F16(bits))
}

#define CONVERT(expression) \
    for (uint64_t n = 0, i = first; n < count; n++, i++) \
    out[n] = (expression)

bool muc_dtype_to_f32(muc_dtype dtype, const uint8_t *data, uint64_t first, uint64_t count,
                      float *out)
{
    uint64_t done = 0;

    if (dtype == MUC_BF16)
        done = widen_bf16(data + 2 * first, count, out);
    if (dtype == MUC_F16)
        done = widen_f16(data + 2 * first, count, out);
    first += done;
    count -= done;
    out += done;
    if (dtype == MUC_F32)
        CONVERT(muc_f32_of_bits(muc_load_u32(data + 4 * i)));
    else if (dtype == MUC_BF16)
        CONVERT(muc_f32_of_bf16(muc_load_u16(data + 2 * i)));
    else if (dtype == MUC_F16)
        CONVERT(muc_f32_of_f16(muc_load_u16(data + 2 * i)));
    else if (dtype == MUC_F64)
        CONVERT(load_f64(data, i));
    else if (table[dtype].block_elements > 1)
        blocks_to_f32(dtype, data, first, count, out);
    else
        return false;
    return true;
}
