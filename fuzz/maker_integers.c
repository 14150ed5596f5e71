/* maker_integers.c - writers of quantized operators: tensors that carry quantization, ONNX's pairs,
 * QuantLib's integers. */
#include <math.h>

#include "maker.h"

void fuzz_write_quantize(fuzz_maker *m, muc_op op, uint32_t x)
{
    static const muc_dtype types[] = { MUC_I8, MUC_I8, MUC_U8, MUC_I16 };
    muc_dtype to = types[fuzz_pick(m, MUC_COUNT(types))];

    if (m->noisy[x] && !fuzz_one_in(m, 16))
        return;
    fuzz_set_integer(m, MUC_KEY_TO, to);
    fuzz_add_as(m, op, &x, 1, 1, m->ranges[x], fuzz_quantization(m, to, fuzz_most(m, x), 1, 0));
}

void fuzz_write_dequantize(fuzz_maker *m, muc_op op, uint32_t x)
{
    if (fuzz_tensor(m, x)->quantization && fuzz_one_in(m, 2))
        fuzz_add_as(m, op, &x, 1, 1, m->ranges[x], NULL);
}

/* ---- ONNX ---- */

static const muc_dtype pair_types[] = { MUC_I8, MUC_U8, MUC_I8, MUC_U8, MUC_I16, MUC_U16 };

/* a scale and a zero point as constants; a scale for each of count, or a scalar of count 0 */
static void scale_and_zero(fuzz_maker *m, muc_dtype dtype, double most, uint32_t count,
                           uint32_t out[2])
{
    fuzz_shape shape = { MUC_F32, count ? 1 : 0, { count } };
    double unit = most / (dtype == MUC_I8 || dtype == MUC_U8 ? 127 : 32767);
    int64_t low, high;

    unit = unit > 1e-6 && unit < 1e6 ? unit : 0.0625;
    muc_dtype_range(dtype, &low, &high);
    out[0] = fuzz_constant(m, &shape, 0, 0, NULL);
    for (uint32_t i = 0; i < (count ? count : 1); i++) {
        float scale = (float)(unit * (1 - fuzz_pick(m, 64) / 128.0));
        uint8_t *data = (uint8_t *)(uintptr_t)fuzz_tensor(m, out[0])->data + 4 * i;

        for (uint32_t b = 0; b < 4; b++)
            data[b] = ((const uint8_t *)&scale)[b];
    }
    shape.dtype = dtype;
    high = (low + high + 1) / 2;
    out[1] = count ? fuzz_constant(m, &shape, 0, 0, NULL)
                   : fuzz_constant(m, &shape, (double)high - 9, (double)high + 9, NULL);
}

static uint32_t add_quantize(fuzz_maker *m, uint32_t x, muc_dtype to)
{
    uint32_t inputs[3] = { x };

    scale_and_zero(m, to, fuzz_most(m, x), 0, inputs + 1);
    fuzz_set_integer(m, MUC_KEY_TO, to);
    return fuzz_add(m, MUC_OP_QUANTIZE_LINEAR, inputs, 3, 1, m->ranges[x]);
}

/* x to integers and back */
void fuzz_write_pair(fuzz_maker *m, muc_op op, uint32_t x)
{
    muc_dtype to = pair_types[fuzz_pick(m, MUC_COUNT(pair_types))];
    uint32_t inputs[3], q;

    (void)op;
    if (fuzz_tensor(m, x)->dtype != MUC_F32)
        return;
    scale_and_zero(m, to, fuzz_most(m, x), 0, inputs + 1);
    inputs[0] = x;
    fuzz_set_integer(m, MUC_KEY_TO, to);
    q = fuzz_add(m, MUC_OP_QUANTIZE_LINEAR, inputs, 3, 1, m->ranges[x]);
    inputs[0] = q;
    if (q != MUC_NO_ID)
        fuzz_add(m, MUC_OP_DEQUANTIZE_LINEAR, inputs, 3, 1, m->ranges[x]);
}

void fuzz_write_quantize_linear(fuzz_maker *m, muc_op op, uint32_t x)
{
    (void)op;
    if (fuzz_tensor(m, x)->dtype == MUC_F32)
        add_quantize(m, x, pair_types[fuzz_pick(m, MUC_COUNT(pair_types))]);
}

void fuzz_write_dequantize_linear(fuzz_maker *m, muc_op op, uint32_t x)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    uint32_t inputs[3] = { x }, axis = t->rank ? fuzz_pick(m, t->rank) : 0;
    uint32_t count = t->rank && fuzz_one_in(m, 4) ? fuzz_dim(m, x, axis) : 0;

    if (t->dtype != MUC_I8 && t->dtype != MUC_U8 && t->dtype != MUC_I16 && t->dtype != MUC_I32)
        return;
    scale_and_zero(m, t->dtype, t->dtype == MUC_I32 ? 4096 : 2, count, inputs + 1);
    if (count)
        fuzz_set_integer(m, MUC_KEY_AXIS, axis);
    if (fuzz_one_in(m, 4))
        inputs[2] = MUC_NO_ID;
    fuzz_add(m, op, inputs, 3, 1, (fuzz_range){ -4, 4 });
}

void fuzz_write_dynamic_quantize(fuzz_maker *m, muc_op op, uint32_t x)
{
    if (!m->noisy[x] && fuzz_tensor(m, x)->dtype == MUC_F32)
        fuzz_add(m, op, &x, 1, 3, (fuzz_range){ 0, 255 });
}

static bool is_byte(const fuzz_maker *m, uint32_t x)
{
    muc_dtype dtype = fuzz_tensor(m, x)->dtype;

    return (dtype == MUC_I8 || dtype == MUC_U8) && !fuzz_tensor(m, x)->quantization;
}

/* x as a plain byte, by a quantize_linear where it is real */
static uint32_t as_byte(fuzz_maker *m, uint32_t x)
{
    if (fuzz_tensor(m, x)->dtype == MUC_F32 && m->style == FUZZ_IN_PAIRS)
        return add_quantize(m, x, pair_types[fuzz_pick(m, 4)]);
    return is_byte(m, x) ? x : MUC_NO_ID;
}

/* strides, pads and groups of a convolution of integers; weights [out, in / groups, kernel..] */
static bool integer_window(fuzz_maker *m, uint32_t x, muc_dtype dtype, fuzz_shape *weights)
{
    uint32_t rank = fuzz_tensor(m, x)->rank, channels, groups, first;
    bool last = m->style == FUZZ_IN_QUANTLIB && fuzz_one_in(m, 2);
    int64_t strides[3], pads[6];

    if (rank < 3 || rank > 5 || !fuzz_is_fixed(m, x))
        return false;
    first = last ? 1 : 2;
    channels = fuzz_dim(m, x, last ? rank - 1 : 1);
    groups = fuzz_one_in(m, 3) ? channels : 1;
    *weights = (fuzz_shape){ dtype, rank, { groups * fuzz_between(m, 1, groups > 1 ? 2 : 8) } };
    weights->dims[last ? rank - 1 : 1] = channels / groups;
    for (uint32_t i = 0; i < rank - 2; i++) {
        uint32_t size = fuzz_dim(m, x, first + i);

        weights->dims[first + i] = fuzz_between(m, 1, size < 3 ? size : 3);
        strides[i] = fuzz_between(m, 1, 2);
        pads[i] = fuzz_pick(m, weights->dims[first + i]);
        pads[i + rank - 2] = fuzz_pick(m, weights->dims[first + i]);
    }
    fuzz_set_integers(m, MUC_KEY_STRIDES, strides, rank - 2);
    fuzz_set_integers(m, MUC_KEY_PADS, pads, 2 * (rank - 2));
    if (groups > 1)
        fuzz_set_integer(m, MUC_KEY_GROUPS, groups);
    if (last)
        fuzz_set_integer(m, MUC_KEY_CHANNELS_LAST, 1);
    return true;
}

void fuzz_write_qlinear_conv(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t inputs[9];
    muc_dtype dtype;
    fuzz_shape shape;

    inputs[0] = as_byte(m, x);
    if (inputs[0] == MUC_NO_ID)
        return;
    dtype = fuzz_tensor(m, inputs[0])->dtype;
    if (!integer_window(m, inputs[0], fuzz_one_in(m, 2) ? MUC_I8 : MUC_U8, &shape))
        return;
    scale_and_zero(m, dtype, 2, 0, inputs + 1);
    inputs[3] = fuzz_constant(m, &shape, shape.dtype == MUC_U8 ? 0 : -127, 127, NULL);
    scale_and_zero(m, shape.dtype, 1,
                   shape.dtype == MUC_I8 && fuzz_one_in(m, 2) ? shape.dims[0] : 0, inputs + 4);
    scale_and_zero(m, dtype, 4, 0, inputs + 6);
    inputs[8] = fuzz_one_in(m, 3)
                    ? MUC_NO_ID
                    : fuzz_constant(m, &FUZZ_SHAPE(MUC_I32, shape.dims[0]), -900, 900, NULL);
    fuzz_add(m, op, inputs, 9, 1, (fuzz_range){ -128, 255 });
}

void fuzz_write_qlinear_matmul(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t inputs[8], rank = fuzz_tensor(m, x)->rank;
    muc_dtype dtype;
    fuzz_shape shape;

    inputs[0] = rank ? as_byte(m, x) : MUC_NO_ID;
    if (inputs[0] == MUC_NO_ID || !fuzz_dim(m, x, rank - 1))
        return;
    dtype = fuzz_tensor(m, inputs[0])->dtype;
    shape = FUZZ_SHAPE(fuzz_one_in(m, 2) ? MUC_I8 : MUC_U8, fuzz_dim(m, x, rank - 1),
                       fuzz_between(m, 1, 8));
    scale_and_zero(m, dtype, 2, 0, inputs + 1);
    inputs[3] = fuzz_operand(m, &shape, shape.dtype == MUC_U8 ? 0 : -127, 127, NULL);
    scale_and_zero(m, shape.dtype, 1, 0, inputs + 4);
    scale_and_zero(m, dtype, 4, 0, inputs + 6);
    fuzz_add(m, op, inputs, 8, 1, (fuzz_range){ -128, 255 });
}

static bool is_narrow(const fuzz_maker *m, uint32_t x)
{
    return is_byte(m, x) ||
           (fuzz_tensor(m, x)->dtype == MUC_I16 && !fuzz_tensor(m, x)->quantization);
}

void fuzz_write_conv_integer(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t inputs[4] = { x, MUC_NO_ID, MUC_NO_ID, MUC_NO_ID };
    fuzz_shape shape;

    if (!is_narrow(m, x) || !integer_window(m, x, MUC_I8, &shape))
        return;
    inputs[1] = fuzz_operand(m, &shape, -128, 127, NULL);
    if (fuzz_one_in(m, 3))
        inputs[2] = fuzz_constant(m, &FUZZ_SCALAR(fuzz_tensor(m, x)->dtype), 0, 20, NULL);
    if (fuzz_is_fixed(m, x) && fuzz_one_in(m, 4))
        inputs[3] = fuzz_constant(m, &FUZZ_SCALAR(MUC_I8), -9, 9, NULL);
    fuzz_add(m, op, inputs, 4, 1, (fuzz_range){ -50000, 50000 });
}

void fuzz_write_matmul_integer(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t rank = fuzz_tensor(m, x)->rank, inputs[4] = { x, MUC_NO_ID, MUC_NO_ID, MUC_NO_ID };
    uint32_t k = rank ? fuzz_dim(m, x, rank - 1) : 0;

    if (!is_narrow(m, x) || !k)
        return;
    inputs[1] = fuzz_operand(m, &FUZZ_SHAPE(MUC_I8, k, fuzz_between(m, 1, 9)), -128, 127, NULL);
    if (fuzz_is_fixed(m, x) && fuzz_one_in(m, 3))
        inputs[2] = fuzz_constant(m, &FUZZ_SCALAR(fuzz_tensor(m, x)->dtype), 0, 20, NULL);
    if (fuzz_is_fixed(m, x) && fuzz_one_in(m, 4))
        inputs[3] = fuzz_constant(m, &FUZZ_SCALAR(MUC_I8), -9, 9, NULL);
    fuzz_add(m, op, inputs, 4, 1, (fuzz_range){ -50000, 50000 });
}

/* ---- QuantLib ---- */

/* shift, clamps and type of what is requantized from numbers up to most; its range */
static fuzz_range set_requantized(fuzz_maker *m, double *mul, double most)
{
    static const muc_dtype types[] = { MUC_I8, MUC_U8, MUC_I8, MUC_I16, MUC_I32 };
    muc_dtype to = types[fuzz_pick(m, MUC_COUNT(types))];
    uint32_t shift = fuzz_between(m, 6, 18);
    int64_t low, high;

    muc_dtype_range(to, &low, &high);
    if (fuzz_one_in(m, 3) && low < 0)
        low = -(high / 2);
    *mul = fmin(fmax(1, 100.0 * (1u << shift) / fmax(most, 1)), 30000);
    fuzz_set_integer(m, MUC_KEY_SHIFT, shift);
    fuzz_set_integer(m, MUC_KEY_CLAMP_MIN, low);
    fuzz_set_integer(m, MUC_KEY_CLAMP_MAX, high);
    fuzz_set_integer(m, MUC_KEY_TO, to);
    return (fuzz_range){ (double)low, (double)high };
}

/* i32 mul and add, one or count of them */
static void set_factors(fuzz_maker *m, uint32_t *inputs, uint32_t count, double mul)
{
    for (uint32_t i = 0; i < 2; i++) {
        fuzz_shape shape = { MUC_I32, 1, { fuzz_one_in(m, 2) ? count : 1 } };

        inputs[i] = i == 0 ? fuzz_operand(m, &shape, fuzz_one_in(m, 4) ? -mul : mul / 2, mul, NULL)
                           : fuzz_operand(m, &shape, -9000, 9000, NULL);
    }
}

void fuzz_write_requant_shift(fuzz_maker *m, muc_op op, uint32_t x)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    uint32_t inputs[3] = { x }, axis = t->rank ? fuzz_pick(m, t->rank) : 0;
    fuzz_shape shape = { MUC_I32, t->rank ? t->rank - axis : 0, { 0 } };
    fuzz_range range;
    double mul;

    if (fuzz_is_real(m, x) || t->quantization)
        return;
    range = set_requantized(m, &mul, fuzz_most(m, x));
    for (uint32_t i = 0; i < shape.rank; i++)
        shape.dims[i] =
            i == 0 && fuzz_one_in(m, 2) && fuzz_dim(m, x, axis) ? fuzz_dim(m, x, axis) : 1;
    inputs[1] = fuzz_operand(m, &shape, fuzz_one_in(m, 4) ? -mul : 1, mul, NULL);
    inputs[2] = fuzz_operand(m, &shape, -9000, 9000, NULL);
    fuzz_add(m, op, inputs, 3, 1, range);
}

void fuzz_write_requant_conv(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t inputs[5] = { x };
    fuzz_shape shape;
    fuzz_range range;
    double mul;

    if (!is_narrow(m, x) || !integer_window(m, x, MUC_I8, &shape))
        return;
    range = set_requantized(m, &mul, 127 * fuzz_most(m, x) * 3);
    inputs[1] = fuzz_operand(m, &shape, -128, 127, NULL);
    set_factors(m, inputs + 2, shape.dims[0], mul);
    inputs[4] = fuzz_one_in(m, 2)
                    ? fuzz_constant(m, &FUZZ_SCALAR(fuzz_tensor(m, x)->dtype), 0, 100, NULL)
                    : MUC_NO_ID;
    fuzz_add(m, op, inputs, 5, 1, range);
}

/* weights of a linear [n, k], of a matmul [k, n] */
void fuzz_write_requant_product(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t rank = fuzz_tensor(m, x)->rank, inputs[5] = { x }, n = fuzz_between(m, 1, 9);
    uint32_t k = rank ? fuzz_dim(m, x, rank - 1) : 0;
    bool is_linear = op == MUC_OP_REQUANT_LINEAR;
    fuzz_range range;
    double mul;

    if (!is_narrow(m, x) || !k)
        return;
    range = set_requantized(m, &mul, 127 * fuzz_most(m, x) * 3);
    inputs[1] =
        fuzz_operand(m, &FUZZ_SHAPE(MUC_I8, is_linear ? n : k, is_linear ? k : n), -128, 127, NULL);
    set_factors(m, inputs + 2, n, mul);
    inputs[4] = is_linear && fuzz_one_in(m, 2)
                    ? fuzz_constant(m, &FUZZ_SCALAR(fuzz_tensor(m, x)->dtype), 0, 100, NULL)
                    : MUC_NO_ID;
    fuzz_add(m, op, inputs, is_linear ? 5 : 4, 1, range);
}

void fuzz_write_requant_pair(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t inputs[4] = { x, fuzz_alike(m, x, false) };
    fuzz_shape shape = { MUC_I8, 1, { 1 } };
    fuzz_range range;
    double mul;

    if (!is_narrow(m, x))
        return;
    range = set_requantized(m, &mul, fuzz_most(m, x) * (op == MUC_OP_REQUANT_MUL ? 127 : 1));
    if (inputs[1] == MUC_NO_ID)
        inputs[1] = fuzz_operand(m, &shape, -128, 127, NULL);
    set_factors(m, inputs + 2, 1, mul);
    fuzz_add(m, op, inputs, 4, 1, range);
}

void fuzz_write_integer_norm(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t rank = fuzz_tensor(m, x)->rank, inputs[3] = { x };
    fuzz_shape shape = { MUC_I32, 1, { 1 } };

    if (!is_narrow(m, x) || rank == 0 || !fuzz_dim(m, x, rank - 1))
        return;
    if (fuzz_one_in(m, 2))
        shape.dims[0] = fuzz_dim(m, x, rank - 1);
    inputs[1] = fuzz_operand(m, &shape, 100, 9000, NULL);
    inputs[2] = fuzz_operand(m, &shape, -9000, 9000, NULL);
    fuzz_set_integer(m, MUC_KEY_SHIFT, fuzz_between(m, 4, 12));
    fuzz_add(m, op, inputs, op == MUC_OP_INTEGER_RMSNORM ? 2 : 3, 1, (fuzz_range){ -128, 127 });
}

void fuzz_write_integer_softmax(fuzz_maker *m, muc_op op, uint32_t x)
{
    static const int64_t words[] = { 84, 3735, 62 };
    uint32_t inputs[2] = { x, MUC_NO_ID };

    if (!is_narrow(m, x))
        return;
    if (op == MUC_OP_INTEGER_SOFTMAX)
        inputs[1] = fuzz_integers(m, MUC_I32, words, 3);
    fuzz_set_integer(m, MUC_KEY_LEVELS, fuzz_one_in(m, 2) ? 256 : 128);
    if (op == MUC_OP_ITA_MAX && fuzz_is_fixed(m, x) && fuzz_one_in(m, 4))
        fuzz_set_integer(m, MUC_KEY_GROUP, fuzz_between(m, 1, 4));
    fuzz_add(m, op, inputs, op == MUC_OP_ITA_MAX ? 1 : 2, 1, (fuzz_range){ 0, 255 });
}

void fuzz_write_integer_function(fuzz_maker *m, muc_op op, uint32_t x)
{
    static const int64_t swish[] = { 42, 122, 245 }, gelu[] = { -40, 1743 };
    uint32_t inputs[2] = { x };

    if (!is_narrow(m, x))
        return;
    inputs[1] = op == MUC_OP_INTEGER_GELU ? fuzz_integers(m, MUC_I32, gelu, 2)
                                          : fuzz_integers(m, MUC_I32, swish, 3);
    fuzz_add(m, op, inputs, 2, 1, (fuzz_range){ -500000, 500000 });
}

void fuzz_write_integer_div(fuzz_maker *m, muc_op op, uint32_t x)
{
    fuzz_shape shape = { MUC_I8, 1, { 1 } };
    uint32_t inputs[2] = { x };

    inputs[1] = fuzz_operand(m, &shape, 1, 100, NULL);
    fuzz_set_integer(m, MUC_KEY_DELTA, fuzz_between(m, 1, 200));
    fuzz_set_integer(m, MUC_KEY_ETA, fuzz_between(m, 1, 8));
    fuzz_set_integer(m, MUC_KEY_EPS, fuzz_pick(m, 3));
    fuzz_add(m, op, inputs, 2, 1, (fuzz_range){ -20000, 20000 });
}
