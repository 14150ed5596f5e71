/* maker_points.c - writers of operators on elements, and of products of matrices. */
#include <math.h>
#include <string.h>

#include "maker.h"

/* ---- one input ---- */

/* where an operator's function is defined and its result is of moderate size */
static fuzz_range domain_of(muc_op op)
{
    switch ((int)op) {
    case MUC_OP_EXP:
    case MUC_OP_SINH:
    case MUC_OP_COSH:
    case MUC_OP_SELU:
    case MUC_OP_CELU:
        return (fuzz_range){ -5, 5 };
    case MUC_OP_LOG:
    case MUC_OP_RECIPROCAL:
        return (fuzz_range){ 0.125, 64 };
    case MUC_OP_SQRT:
        return (fuzz_range){ 0, 1000 };
    case MUC_OP_ACOSH:
        return (fuzz_range){ 1.0625, 64 };
    case MUC_OP_ASIN:
    case MUC_OP_ACOS:
    case MUC_OP_ATANH:
        return (fuzz_range){ -0.9375, 0.9375 };
    case MUC_OP_TAN:
        return (fuzz_range){ -1.25, 1.25 };
    default:
        return (fuzz_range){ -64, 64 };
    }
}

/* of these a small change of x may change the result a lot */
static bool jumps(muc_op op)
{
    return op == MUC_OP_SIGN || op == MUC_OP_FLOOR || op == MUC_OP_CEIL || op == MUC_OP_ROUND ||
           op == MUC_OP_SHRINK || op == MUC_OP_THRESHOLDED_RELU;
}

static fuzz_range unary_range(muc_op op, fuzz_range x)
{
    double most = fmax(fabs(x.lo), fabs(x.hi));

    switch ((int)op) {
    case MUC_OP_SIGMOID:
    case MUC_OP_HARD_SIGMOID:
        return (fuzz_range){ 0, 1 };
    case MUC_OP_TANH:
    case MUC_OP_ERF:
    case MUC_OP_SIN:
    case MUC_OP_COS:
    case MUC_OP_SOFTSIGN:
    case MUC_OP_SIGN:
        return (fuzz_range){ -1, 1 };
    case MUC_OP_RELU:
    case MUC_OP_ABS:
    case MUC_OP_SOFTPLUS:
        return (fuzz_range){ 0, most + 1 };
    case MUC_OP_EXP:
    case MUC_OP_COSH:
    case MUC_OP_SINH:
        return (fuzz_range){ op == MUC_OP_SINH ? -exp(x.hi) : 0, exp(fmin(most, 8)) };
    case MUC_OP_LOG:
    case MUC_OP_ACOSH:
        return (fuzz_range){ -3, 6 };
    case MUC_OP_RECIPROCAL:
        return (fuzz_range){ 0, 8 };
    case MUC_OP_SQRT:
        return (fuzz_range){ 0, sqrt(most) };
    default:
        return (fuzz_range){ -most - 1, most + 1 };
    }
}

static double draw_real(fuzz_maker *m)
{
    return fuzz_between(m, 1, 24) / 16.0;
}

void fuzz_write_unary(fuzz_maker *m, muc_op op, uint32_t x)
{
    static const muc_attribute_key reals[] = { MUC_KEY_ALPHA, MUC_KEY_BETA, MUC_KEY_GAMMA,
                                               MUC_KEY_BIAS, MUC_KEY_LAMBDA };
    fuzz_range domain = domain_of(op);
    bool required;

    if (jumps(op) && m->noisy[x] && !fuzz_one_in(m, 16))
        return;
    if (fuzz_is_real(m, x))
        x = fuzz_tame(m, x, domain.lo, domain.hi);
    if (x == MUC_NO_ID)
        return;
    for (size_t i = 0; i < MUC_COUNT(reals); i++)
        if (muc_op_takes(op, reals[i], &required) && (required || fuzz_one_in(m, 2)))
            fuzz_set_real(m, reals[i], draw_real(m));
    if (op == MUC_OP_GELU && fuzz_one_in(m, 2))
        fuzz_set_integer(m, MUC_KEY_MODE, MUC_WORD_TANH);
    if (op == MUC_OP_IS_INF && fuzz_one_in(m, 2))
        fuzz_set_integer(m, fuzz_one_in(m, 2) ? MUC_KEY_DETECT_NEGATIVE : MUC_KEY_DETECT_POSITIVE,
                         0);
    fuzz_add(m, op, &x, 1, 1, unary_range(op, m->ranges[x]));
}

void fuzz_write_cast(fuzz_maker *m, muc_op op, uint32_t x)
{
    static const muc_dtype plain[] = { MUC_F32, MUC_F16, MUC_BF16, MUC_F64, MUC_I64,
                                       MUC_I32, MUC_I16, MUC_I8,   MUC_U64, MUC_U32,
                                       MUC_U16, MUC_U8,  MUC_BOOL, MUC_F32, MUC_F32 };
    muc_dtype to = plain[fuzz_pick(m, MUC_COUNT(plain))];

    if (muc_dtype_get(to)->kind == MUC_DTYPE_INTEGER && m->noisy[x] && !fuzz_one_in(m, 16))
        return;
    fuzz_set_integer(m, MUC_KEY_TO, to);
    fuzz_add(m, op, &x, 1, 1, to == MUC_BOOL ? (fuzz_range){ 0, 1 } : m->ranges[x]);
}

void fuzz_write_clip(fuzz_maker *m, muc_op op, uint32_t x)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    double lo = -(double)fuzz_pick(m, 4), hi = fuzz_between(m, 1, 6);
    fuzz_shape shape = FUZZ_SCALAR(t->quantization ? MUC_F32 : t->dtype);
    uint32_t inputs[3] = { x, MUC_NO_ID, MUC_NO_ID };
    int64_t low, high;

    if (muc_dtype_range(t->dtype, &low, &high) && low == 0)
        lo = 0;
    if (fuzz_one_in(m, 8)) { /* least above greatest: the greatest counts */
        double swap = lo;

        lo = hi;
        hi = swap;
    }
    if (fuzz_pick(m, 4))
        inputs[1] = fuzz_operand(m, &shape, lo, lo, NULL);
    if (fuzz_pick(m, 4))
        inputs[2] = fuzz_operand(m, &shape, hi, hi, NULL);
    fuzz_add(m, op, inputs, 3, 1, (fuzz_range){ fmin(lo, hi), fmax(lo, hi) });
}

/* ---- several inputs ---- */

/* x's shape, with dimensions left out at the front and set to 1 */
static fuzz_shape broadcast_of(fuzz_maker *m, uint32_t x)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    uint32_t leave = fuzz_one_in(m, 2) ? fuzz_pick(m, t->rank + 1) : 0;
    fuzz_shape shape = { t->dtype, t->rank - leave, { 0 } };

    for (uint32_t i = 0; i < shape.rank; i++) {
        uint32_t dim = fuzz_dim(m, x, i + leave);

        shape.dims[i] = dim == 0 || fuzz_one_in(m, 3) ? 1 : dim;
    }
    return shape;
}

/* what operands of an operator are best: b of a / b, of a^b, of a << b */
static fuzz_range operand_range(const fuzz_maker *m, muc_op op, uint32_t x)
{
    int64_t low, high;

    if (fuzz_is_real(m, x))
        return op == MUC_OP_DIV || op == MUC_OP_MOD ? (fuzz_range){ 0.25, 4 }
               : op == MUC_OP_POW                   ? (fuzz_range){ 0, 3 }
                                                    : (fuzz_range){ -2, 2 };
    if (op == MUC_OP_BIT_SHIFT)
        return (fuzz_range){ 0, 9 };
    if (op == MUC_OP_POW)
        return (fuzz_range){ 0, 3 };
    muc_dtype_range(fuzz_tensor(m, x)->dtype, &low, &high);
    return (fuzz_range){ low < 0 ? -100 : 0, 100 };
}

/* a live value of the same shape, or an operand that is broadcast */
static uint32_t second_operand(fuzz_maker *m, muc_op op, uint32_t x)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    bool is_free = op != MUC_OP_DIV && op != MUC_OP_POW && op != MUC_OP_MOD;
    uint32_t other = is_free && fuzz_one_in(m, 2)
                         ? fuzz_alike(m, x, op == MUC_OP_MIN || op == MUC_OP_MAX)
                         : MUC_NO_ID;
    fuzz_range range = operand_range(m, op, x);
    const muc_quantization *q = NULL;
    fuzz_shape shape;

    if (other != MUC_NO_ID || (is_free && fuzz_one_in(m, 16)))
        return other != MUC_NO_ID ? other : x;
    shape = broadcast_of(m, x);
    if (t->quantization) {
        int64_t low, high;

        q = op == MUC_OP_MIN || op == MUC_OP_MAX ? t->quantization
                                                 : fuzz_quantization(m, t->dtype, 2, 1, 0);
        muc_dtype_range(t->dtype, &low, &high);
        range = (fuzz_range){ fmax((double)low, -2000), fmin((double)high, 2000) };
    }
    return fuzz_operand(m, &shape, range.lo, range.hi, q);
}

static fuzz_range binary_range(muc_op op, fuzz_range a, fuzz_range b)
{
    double x = fmax(fabs(a.lo), fabs(a.hi)), y = fmax(fabs(b.lo), fabs(b.hi));
    double most = op == MUC_OP_MUL   ? x * y
                  : op == MUC_OP_POW ? pow(fmax(x, 1), fmin(y, 4))
                  : op == MUC_OP_DIV ? x / (b.lo > 0 ? b.lo : 0.25)
                                     : x + y;

    return (fuzz_range){ -most, most };
}

static bool compares(muc_op op)
{
    return op == MUC_OP_EQUAL || op == MUC_OP_LESS || op == MUC_OP_LESS_OR_EQUAL ||
           op == MUC_OP_GREATER || op == MUC_OP_GREATER_OR_EQUAL;
}

void fuzz_write_binary(fuzz_maker *m, muc_op op, uint32_t x)
{
    bool is_real = fuzz_is_real(m, x), jump = compares(op) || op == MUC_OP_MOD;
    uint32_t inputs[2], other;

    if (jump && is_real && m->noisy[x] && !fuzz_one_in(m, 16))
        return;
    if (is_real && (fuzz_most(m, x) > 64 || op == MUC_OP_POW))
        x = fuzz_tame(m, x, op == MUC_OP_POW ? 0.125 : -8, 8);
    other = x == MUC_NO_ID ? x : second_operand(m, op, x);
    if (other == MUC_NO_ID || (jump && is_real && m->noisy[other] && !fuzz_one_in(m, 16)))
        return;
    if (op == MUC_OP_BIT_SHIFT)
        fuzz_set_integer(m, MUC_KEY_DIRECTION, fuzz_one_in(m, 2) ? MUC_WORD_LEFT : MUC_WORD_RIGHT);
    if (op == MUC_OP_MOD && (is_real || fuzz_one_in(m, 2)))
        fuzz_set_integer(m, MUC_KEY_FMOD, 1);
    inputs[0] = x;
    inputs[1] = other;
    if (op != MUC_OP_DIV && op != MUC_OP_POW && op != MUC_OP_MOD && op != MUC_OP_PRELU &&
        op != MUC_OP_BIT_SHIFT && fuzz_one_in(m, 4)) {
        inputs[0] = other;
        inputs[1] = x;
    }
    fuzz_add(m, op, inputs, 2, 1,
             compares(op) ? (fuzz_range){ 0, 1 }
                          : binary_range(op, m->ranges[x], m->ranges[other]));
}

/* x and what came before it, in its shape */
void fuzz_write_residual(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t inputs[2] = { x, fuzz_alike(m, x, false) };

    if (inputs[1] != MUC_NO_ID)
        fuzz_add(m, op, inputs, 2, 1, binary_range(op, m->ranges[x], m->ranges[inputs[1]]));
}

static void write_several(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t inputs[4] = { x }, count = 1, wanted = fuzz_between(m, 1, 4);
    double most = fuzz_most(m, x);

    if (fuzz_tensor(m, x)->quantization)
        wanted = 2;
    while (count < wanted) {
        inputs[count] = second_operand(m, op, x);
        if (inputs[count] == MUC_NO_ID)
            break;
        most += fuzz_most(m, inputs[count++]);
    }
    fuzz_add(m, op, inputs, count, 1, (fuzz_range){ -most, most });
}

void fuzz_write_elementwise(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t most = muc_op_get(op)->most_inputs;

    (most == 1 ? fuzz_write_unary : most == 2 ? fuzz_write_binary : write_several)(m, op, x);
}

/* x is the condition, or one of the two */
void fuzz_write_where(fuzz_maker *m, muc_op op, uint32_t x)
{
    fuzz_shape shape = broadcast_of(m, x);
    uint32_t inputs[3] = { x };

    shape.dtype = fuzz_one_in(m, 3) ? MUC_I32 : MUC_F32;
    inputs[1] = fuzz_operand(m, &shape, -2, 2, NULL);
    inputs[2] = inputs[1] == MUC_NO_ID ? MUC_NO_ID : fuzz_alike(m, inputs[1], false);
    if (inputs[2] == MUC_NO_ID)
        inputs[2] = fuzz_operand(m, &shape, -2, 2, NULL);
    fuzz_add(m, op, inputs, 3, 1, (fuzz_range){ -2, 2 });
}

void fuzz_write_lookup(fuzz_maker *m, muc_op op, uint32_t x)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    muc_dtype to = t->quantization || fuzz_one_in(m, 2) ? t->dtype : MUC_I8;
    const fuzz_shape shape = FUZZ_SHAPE(to, 256);
    uint32_t inputs[2] = { x };
    const muc_quantization *q = t->quantization;

    if (t->dtype != MUC_I8 && t->dtype != MUC_U8)
        return;
    inputs[1] = fuzz_constant(m, &shape, to == MUC_U8 ? 0 : -128, to == MUC_U8 ? 255 : 127, NULL);
    fuzz_add_as(m, op, inputs, 2, 1, m->ranges[x], q);
}

/* ---- products ---- */

uint32_t fuzz_rows(fuzz_maker *m, uint32_t n, uint32_t k)
{
    static const int32_t most_levels[] = { 127, 3, 15 };
    static const muc_dtype others[] = { MUC_Q8_0, MUC_Q4_0, MUC_Q8_0, MUC_Q4_0,
                                        MUC_F16,  MUC_BF16, MUC_F32 };
    int32_t most = most_levels[fuzz_pick(m, MUC_COUNT(most_levels))];
    fuzz_shape shape = FUZZ_SHAPE(MUC_I8, n, k);
    muc_quantization *q;
    uint32_t id;

    if (m->style == FUZZ_IN_DECODER && !m->plain_rows && k % 32 == 0 && !fuzz_one_in(m, 3)) {
        shape.dtype = others[fuzz_pick(m, MUC_COUNT(others))];
        return fuzz_constant(m, &shape, -1.5, 1.5, NULL);
    }
    q = (muc_quantization *)(uintptr_t)fuzz_quantization(m, MUC_I8, 1, n, 0);
    for (uint32_t i = 0; q && n > 1 && i < n && most < 127; i++) /* of 16 bits, as few bits have */
        ((float *)(uintptr_t)q->scales)[i] = (float)(1 + fuzz_pick(m, 64)) / (float)(8 * most);
    id = q ? fuzz_constant(m, &shape, -most, most, q) : MUC_NO_ID;
    for (uint32_t i = 0; id != MUC_NO_ID && most < 127 && i < n * k; i++)
        fuzz_store(MUC_I8, (uint8_t *)(uintptr_t)fuzz_tensor(m, id)->data, i,
                   2.0 * fuzz_pick(m, (uint32_t)most + 1) - most);
    return id;
}

/* rows of int8 or fewer bits, or as x is; a scale for each of n rows */
static uint32_t weights(fuzz_maker *m, uint32_t x, uint32_t n, uint32_t k)
{
    muc_dtype dtype = fuzz_tensor(m, x)->dtype;
    fuzz_shape shape = FUZZ_SHAPE(dtype, n, k);
    const muc_quantization *q = NULL;

    if (dtype == MUC_F32 && (fuzz_tensor(m, x)->rank == 2 || fuzz_one_in(m, 32)) &&
        fuzz_one_in(m, m->style != FUZZ_IN_DECODER ? 6
                       : m->plain_rows             ? 2
                                                   : 1))
        return fuzz_rows(m, n, k);
    if (fuzz_tensor(m, x)->quantization) {
        if (dtype == MUC_I16)
            shape.dtype = MUC_I8;
        q = fuzz_quantization(m, shape.dtype, 1, fuzz_one_in(m, 2) ? n : 1, 0);
    }
    if (shape.dtype == MUC_I8)
        return fuzz_constant(m, &shape, -127, 127, q);
    return q ? fuzz_constant(m, &shape, 0, 255, q) : fuzz_operand(m, &shape, -1.5, 1.5, NULL);
}

/* biases in the scales of the sums */
static uint32_t bias(fuzz_maker *m, uint32_t x, uint32_t n)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    fuzz_shape shape = FUZZ_SHAPE(t->quantization ? MUC_I32 : t->dtype, n);

    if (!fuzz_pick(m, 4))
        return MUC_NO_ID;
    return t->quantization ? fuzz_constant(m, &shape, -2000, 2000, NULL)
                           : fuzz_operand(m, &shape, -2, 2, NULL);
}

static fuzz_range product_range(const fuzz_maker *m, uint32_t x, uint32_t depth)
{
    double most = fuzz_most(m, x) * sqrt(depth) + 2;

    return (fuzz_range){ -most, most };
}

void fuzz_write_linear(fuzz_maker *m, muc_op op, uint32_t x)
{
    uint32_t rank = fuzz_tensor(m, x)->rank, inputs[3], n = fuzz_between(m, 1, 12), k;

    if (rank == 0 || !(k = fuzz_dim(m, x, rank - 1)))
        return;
    if (fuzz_is_real(m, x) && fuzz_most(m, x) > 64)
        x = fuzz_tame(m, x, -8, 8);
    if (x == MUC_NO_ID)
        return;
    inputs[0] = x;
    inputs[1] = weights(m, x, fuzz_one_in(m, 3) != (m->style == FUZZ_IN_DECODER) ? k : n, k);
    if (inputs[1] == MUC_NO_ID)
        return;
    inputs[2] = bias(m, x, fuzz_dim(m, inputs[1], 0));
    fuzz_add(m, op, inputs, 3, 1, product_range(m, x, k));
}

void fuzz_write_matmul(fuzz_maker *m, muc_op op, uint32_t x)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    uint32_t inputs[2] = { x }, k = t->rank ? fuzz_dim(m, x, t->rank - 1) : 0;
    fuzz_shape shape = { t->dtype, 2, { k, fuzz_between(m, 1, 9) } };

    if (!k)
        return;
    if (t->rank == 3 && fuzz_dim(m, x, 0) && fuzz_one_in(m, 2))
        shape = FUZZ_SHAPE(t->dtype, fuzz_dim(m, x, 0), k, fuzz_between(m, 1, 9));
    if (fuzz_one_in(m, 8))
        shape.rank = 1;
    if (t->quantization)
        inputs[1] = fuzz_constant(m, &shape, t->dtype == MUC_U8 ? 0 : -120, 120,
                                  fuzz_quantization(m, t->dtype, 1, 1, 0));
    else
        inputs[1] = fuzz_operand(m, &shape, fuzz_is_real(m, x) ? -1.5 : 0,
                                 fuzz_is_real(m, x) ? 1.5 : 20, NULL);
    fuzz_add(m, op, inputs, 2, 1, product_range(m, x, k));
}

void fuzz_write_gemm(fuzz_maker *m, muc_op op, uint32_t x)
{
    const muc_tensor *t = fuzz_tensor(m, x);
    bool a = fuzz_one_in(m, 2), b = fuzz_one_in(m, 2);
    uint32_t inputs[3] = { x, MUC_NO_ID, MUC_NO_ID }, n = fuzz_between(m, 1, 9), k;
    fuzz_shape shape;

    if (t->rank != 2 || !(k = fuzz_dim(m, x, a ? 0 : 1)))
        return;
    shape = FUZZ_SHAPE(t->dtype, b ? n : k, b ? k : n);
    inputs[1] = fuzz_operand(m, &shape, fuzz_is_real(m, x) ? -1.5 : 0, 1.5, NULL);
    shape = fuzz_one_in(m, 2) ? FUZZ_SHAPE(t->dtype, n) : FUZZ_SHAPE(t->dtype, 1, n);
    if (fuzz_pick(m, 3))
        inputs[2] = fuzz_operand(m, &shape, fuzz_is_real(m, x) ? -2 : 0, 2, NULL);
    if (fuzz_one_in(m, 2) && fuzz_is_real(m, x)) {
        fuzz_set_real(m, MUC_KEY_ALPHA, draw_real(m));
        fuzz_set_real(m, MUC_KEY_BETA, draw_real(m));
    }
    fuzz_set_integer(m, MUC_KEY_TRANSPOSE_A, a);
    fuzz_set_integer(m, MUC_KEY_TRANSPOSE_B, b);
    fuzz_add(m, op, inputs, 3, 1, product_range(m, x, k));
}
