/* binary.c - operators of several inputs of one type, element by element, broadcasting. */
#include <math.h>
#include <string.h>

#include "mur_real_wide.h"
#include "ref/walk.h"

/* out[i] = f(a, b) over a run; a, b: steps 0 or more */
typedef void binary(const void *a, size_t a_step, const void *b, size_t b_step, void *out,
                    size_t n);

#define LOOP(name, id, type, out_type, value) \
    static void name##_##id(const void *a, size_t a_step, const void *b, size_t b_step, void *out, \
                            size_t n) \
    { \
        const type *p = a, *q = b; \
        out_type *to = out; \
        for (size_t i = 0; i < n; i++, p += a_step, q += b_step) { \
            type x = *p, y = *q; \
            to[i] = (out_type)(value); \
        } \
    }

/* integers wrap: sums and products of them are those of their bits */
#define WRAP(operation) ((uint64_t)x operation(uint64_t) y)
#define ADD_REAL(a, id, type) LOOP(add, id, type, type, x + y)
#define ADD_INTEGER(a, id, type) LOOP(add, id, type, type, WRAP(+))
#define SUB_REAL(a, id, type) LOOP(sub, id, type, type, x - y)
#define SUB_INTEGER(a, id, type) LOOP(sub, id, type, type, WRAP(-))
#define MUL_REAL(a, id, type) LOOP(mul, id, type, type, x *y)
#define MUL_INTEGER(a, id, type) LOOP(mul, id, type, type, WRAP(*))
#define DIV_REAL(a, id, type) LOOP(div, id, type, type, x / y)
#define DIV_SIGNED(a, id, type) \
    LOOP(div, id, type, type, y == 0 ? 0 : y == -1 ? (type)(0 - (uint64_t)x) : x / y)
#define DIV_UNSIGNED(a, id, type) LOOP(div, id, type, type, y == 0 ? 0 : x / y)
/* a NaN of either stays */
#define MIN_NUMBER(a, id, type) LOOP(min, id, type, type, x < y || x != x ? x : y)
#define MAX_NUMBER(a, id, type) LOOP(max, id, type, type, x > y || x != x ? x : y)
/* the rest with the sign of y (mod), of x (fmod) */
#define MOD_REAL(a, id, type) LOOP(mod, id, type, type, floored((double)x, (double)y))
#define FMOD_REAL(a, id, type) LOOP(fmod, id, type, type, fmod((double)x, (double)y))
#define MOD_SIGNED(a, id, type) \
    LOOP(mod, id, type, type, \
         y == 0 || y == -1                  ? 0 \
         : x % y != 0 && (x < 0) != (y < 0) ? x % y + y \
                                            : x % y)
#define FMOD_SIGNED(a, id, type) LOOP(fmod, id, type, type, y == 0 || y == -1 ? 0 : x % y)
#define MOD_UNSIGNED(a, id, type) LOOP(mod, id, type, type, y == 0 ? 0 : x % y)
#define FMOD_UNSIGNED(a, id, type) LOOP(fmod, id, type, type, y == 0 ? 0 : x % y)
#define PRELU_REAL(a, id, type) LOOP(prelu, id, type, type, x < 0 ? x * y : x)
#define PRELU_INTEGER(a, id, type) LOOP(prelu, id, type, type, x < 1 ? WRAP(*) : (uint64_t)x)
#define BIT_AND(a, id, type) LOOP(bit_and, id, type, type, x &y)
#define BIT_OR(a, id, type) LOOP(bit_or, id, type, type, x | y)
#define BIT_XOR(a, id, type) LOOP(bit_xor, id, type, type, x ^ y)
#define OUTSIDE(type) ((uint64_t)y >= 8 * sizeof(type))
#define LEFT(a, id, type) LOOP(left, id, type, type, OUTSIDE(type) ? 0 : (uint64_t)x << y)
#define RIGHT(a, id, type) LOOP(right, id, type, type, OUTSIDE(type) ? 0 : x >> y)
#define EQUAL(a, id, type) LOOP(equal, id, type, uint8_t, x == y)
#define LESS(a, id, type) LOOP(less, id, type, uint8_t, x < y)
#define LESS_OR_EQUAL(a, id, type) LOOP(less_or_equal, id, type, uint8_t, x <= y)
#define GREATER(a, id, type) LOOP(greater, id, type, uint8_t, x > y)
#define GREATER_OR_EQUAL(a, id, type) LOOP(greater_or_equal, id, type, uint8_t, x >= y)

static double floored(double x, double y)
{
    double rest = fmod(x, y);

    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

MUC_REF_REALS(ADD_REAL, )
MUC_REF_INTEGERS(ADD_INTEGER, )
MUC_REF_REALS(SUB_REAL, )
MUC_REF_INTEGERS(SUB_INTEGER, )
MUC_REF_REALS(MUL_REAL, )
MUC_REF_INTEGERS(MUL_INTEGER, )
MUC_REF_REALS(DIV_REAL, )
MUC_REF_SIGNED(DIV_SIGNED, )
MUC_REF_UNSIGNED(DIV_UNSIGNED, )
MUC_REF_NUMBERS(MIN_NUMBER, )
MUC_REF_NUMBERS(MAX_NUMBER, )
MUC_REF_REALS(MOD_REAL, )
MUC_REF_SIGNED(MOD_SIGNED, )
MUC_REF_UNSIGNED(MOD_UNSIGNED, )
MUC_REF_REALS(FMOD_REAL, )
MUC_REF_SIGNED(FMOD_SIGNED, )
MUC_REF_UNSIGNED(FMOD_UNSIGNED, )
MUC_REF_REALS(PRELU_REAL, )
MUC_REF_INTEGERS(PRELU_INTEGER, )
MUC_REF_INTEGERS(BIT_AND, )
MUC_REF_INTEGERS(BIT_OR, )
MUC_REF_INTEGERS(BIT_XOR, )
MUC_REF_INTEGERS(LEFT, )
MUC_REF_INTEGERS(RIGHT, )
MUC_REF_NUMBERS(EQUAL, )
MUC_REF_NUMBERS(LESS, )
MUC_REF_NUMBERS(LESS_OR_EQUAL, )
MUC_REF_NUMBERS(GREATER, )
MUC_REF_NUMBERS(GREATER_OR_EQUAL, )
LOOP(and, BOOL, uint8_t, uint8_t, x &&y)
LOOP(or, BOOL, uint8_t, uint8_t, x || y)
LOOP(xor, BOOL, uint8_t, uint8_t, !x != !y)
LOOP(equal, BOOL, uint8_t, uint8_t, !x == !y)

#define ENTRY(name, id, type) [MUC_##id] = name##_##id,

static binary *binary_of(const muc_node *node, muc_dtype dtype)
{
    static binary *const table[MUC_OP_COUNT][MUC_DTYPE_COUNT] = {
        [MUC_OP_ADD] = { MUC_REF_NUMBERS(ENTRY, add) },
        [MUC_OP_SUB] = { MUC_REF_NUMBERS(ENTRY, sub) },
        [MUC_OP_MUL] = { MUC_REF_NUMBERS(ENTRY, mul) },
        [MUC_OP_DIV] = { MUC_REF_NUMBERS(ENTRY, div) },
        [MUC_OP_MIN] = { MUC_REF_NUMBERS(ENTRY, min) },
        [MUC_OP_MAX] = { MUC_REF_NUMBERS(ENTRY, max) },
        [MUC_OP_SUM] = { MUC_REF_REALS(ENTRY, add) },
        [MUC_OP_MEAN] = { MUC_REF_REALS(ENTRY, add) },
        [MUC_OP_MOD] = { MUC_REF_NUMBERS(ENTRY, mod) },
        [MUC_OP_PRELU] = { MUC_REF_NUMBERS(ENTRY, prelu) },
        [MUC_OP_AND] = { ENTRY(and, BOOL, ) },
        [MUC_OP_OR] = { ENTRY(or, BOOL, ) },
        [MUC_OP_XOR] = { ENTRY(xor, BOOL, ) },
        [MUC_OP_BITWISE_AND] = { MUC_REF_INTEGERS(ENTRY, bit_and) },
        [MUC_OP_BITWISE_OR] = { MUC_REF_INTEGERS(ENTRY, bit_or) },
        [MUC_OP_BITWISE_XOR] = { MUC_REF_INTEGERS(ENTRY, bit_xor) },
        [MUC_OP_BIT_SHIFT] = { MUC_REF_INTEGERS(ENTRY, left) },
        [MUC_OP_EQUAL] = { MUC_REF_NUMBERS(ENTRY, equal) ENTRY(equal, BOOL, ) },
        [MUC_OP_LESS] = { MUC_REF_NUMBERS(ENTRY, less) },
        [MUC_OP_LESS_OR_EQUAL] = { MUC_REF_NUMBERS(ENTRY, less_or_equal) },
        [MUC_OP_GREATER] = { MUC_REF_NUMBERS(ENTRY, greater) },
        [MUC_OP_GREATER_OR_EQUAL] = { MUC_REF_NUMBERS(ENTRY, greater_or_equal) },
    };
    static binary *const fmods[MUC_DTYPE_COUNT] = { MUC_REF_NUMBERS(ENTRY, fmod) };
    static binary *const rights[MUC_DTYPE_COUNT] = { MUC_REF_INTEGERS(ENTRY, right) };

    if (muc_node_integer_or(node, MUC_KEY_FMOD, 0) == 1)
        return fmods[dtype];
    if (muc_node_word_or(node, MUC_KEY_DIRECTION, MUC_WORD_LEFT) == MUC_WORD_RIGHT)
        return rights[dtype];
    return table[node->op][dtype];
}

typedef struct operands {
    binary *loop;
    const uint8_t *a, *b;
    uint8_t *out;
    size_t a_width, b_width, out_width, done;
} operands;

static void run(void *arg, size_t n, const size_t *at, const size_t *step)
{
    operands *o = arg;

    o->loop(o->a + at[0] * o->a_width, step[0], o->b + at[1] * o->b_width, step[1],
            o->out + o->done * o->out_width, n);
    o->done += n;
}

/* out = f(a, b); out may be a if that has its shape */
static void apply(const muc_ref_call *call, binary *loop, const muc_ref_value *a,
                  const muc_ref_value *b)
{
    const muc_ref_value *const values[] = { a, b };
    operands o = { loop,
                   a->read,
                   b->read,
                   call->output->data,
                   muc_ref_width(a),
                   muc_ref_width(b),
                   muc_ref_width(call->output),
                   0 };
    muc_ref_walk walk;

    muc_ref_walk_of(call->output, values, 2, &walk);
    muc_ref_walk_each(&walk, run, &o);
}

static void divide(const muc_ref_value *out, size_t by)
{
    for (size_t i = 0; i < out->elements; i++) {
        if (out->dtype == MUC_F32)
            ((float *)out->data)[i] /= (float)by;
        else
            ((double *)out->data)[i] /= (double)by;
    }
}

muc_status muc_kernel_binary(const muc_ref_call *call)
{
    binary *loop = binary_of(call->node, call->inputs[0]->dtype);
    uint32_t count = call->node->input_count;

    if (count == 1)
        return muc_kernel_copy(call);
    apply(call, loop, call->inputs[0], call->inputs[1]);
    for (uint32_t i = 2; i < count; i++)
        apply(call, loop, call->output, call->inputs[i]);
    if (call->node->op == MUC_OP_MEAN)
        divide(call->output, count);
    return MUC_OK;
}

/* x^y of integers, wrapped; negative powers truncate */
static uint64_t integer_power(uint64_t x, int64_t y)
{
    uint64_t result = 1;

    if (y < 0)
        return x == 1 ? 1 : x != UINT64_MAX ? 0 : y & 1 ? x : 1;
    for (; y > 0; y >>= 1, x *= x)
        if (y & 1)
            result *= x;
    return result;
}

/* whole exponents of integers stay exact; others go through double, as b does */
static double integer_to_real(double x, double y)
{
    double value = muc_ref_pow(x, y);

    return value != value || fabs(value) >= 9e18 ? 0 : trunc(value);
}

#define POWER(argument, id, type, value) \
    static void power_##id(const void *a, size_t a_step, const void *b, size_t b_step, void *out, \
                           size_t n) \
    { \
        const type *p = a; \
        const double *q = b; \
        type *to = out; \
        for (size_t i = 0; i < n; i++, p += a_step, q += b_step) { \
            type x = *p; \
            double y = *q; \
            to[i] = (type)(value); \
        } \
    }
#define POWER_F32(argument, id, type) POWER(argument, id, type, mur_real_pow(x, (float)y))
#define POWER_REAL(argument, id, type) POWER(argument, id, type, muc_ref_pow((double)x, y))
#define POWER_INTEGER(argument, id, type) \
    POWER(argument, id, type, \
          y == floor(y) && fabs(y) < 1e18 ? (int64_t)integer_power((uint64_t)x, (int64_t)y) \
                                          : (int64_t)integer_to_real((double)x, y))
POWER_F32(, F32, float)
POWER_REAL(, F64, double)
MUC_REF_INTEGERS(POWER_INTEGER, )

muc_status muc_kernel_pow(const muc_ref_call *call)
{
    static binary *const powers[MUC_DTYPE_COUNT] = { MUC_REF_NUMBERS(ENTRY, power) };
    muc_ref_value exponents = *call->inputs[1];
    void *reals;

    MUC_TRY(muc_ref_reserve(call, exponents.elements * sizeof(double), &reals));
    for (size_t i = 0; i < exponents.elements; i++)
        ((double *)reals)[i] = muc_ref_real(call->inputs[1], i);
    exponents.dtype = MUC_F64;
    exponents.read = reals;
    apply(call, powers[call->output->dtype], call->inputs[0], &exponents);
    return MUC_OK;
}

typedef struct choice {
    const uint8_t *condition, *a, *b;
    uint8_t *out;
    size_t width, done;
} choice;

static void choose(void *arg, size_t n, const size_t *at, const size_t *step)
{
    choice *c = arg;

    for (size_t i = 0; i < n; i++, c->done++) {
        const uint8_t *from = c->condition[at[0] + i * step[0]]
                                  ? c->a + (at[1] + i * step[1]) * c->width
                                  : c->b + (at[2] + i * step[2]) * c->width;

        memcpy(c->out + c->done * c->width, from, c->width);
    }
}

muc_status muc_kernel_where(const muc_ref_call *call)
{
    choice c = { call->inputs[0]->read, call->inputs[1]->read,       call->inputs[2]->read,
                 call->output->data,    muc_ref_width(call->output), 0 };
    muc_ref_walk walk;

    muc_ref_walk_of(call->output, call->inputs, 3, &walk);
    muc_ref_walk_each(&walk, choose, &c);
    return MUC_OK;
}
