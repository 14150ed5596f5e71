/* binary.c - operators of several inputs of one type, element by element, broadcasting. */
#include <math.h>

#include "ref/walk.h"

/* out[i] = f(a, b) over a run; a, b: steps 0 or more */
typedef void binary(const void *a, size_t a_step, const void *b, size_t b_step, void *out,
                    size_t n);

#define LOOP(name, id, type, value) \
    static void name##_##id(const void *a, size_t a_step, const void *b, size_t b_step, void *out, \
                            size_t n) \
    { \
        const type *p = a, *q = b; \
        type *to = out; \
        for (size_t i = 0; i < n; i++, p += a_step, q += b_step) { \
            type x = *p, y = *q; \
            to[i] = (value); \
        } \
    }

/* integers wrap: sums and products of them are those of their bits */
#define WRAP(type, operation) ((type)((uint64_t)x operation(uint64_t) y))
#define ADD_REAL(a, id, type) LOOP(add, id, type, x + y)
#define ADD_INTEGER(a, id, type) LOOP(add, id, type, WRAP(type, +))
#define SUB_REAL(a, id, type) LOOP(sub, id, type, x - y)
#define SUB_INTEGER(a, id, type) LOOP(sub, id, type, WRAP(type, -))
#define MUL_REAL(a, id, type) LOOP(mul, id, type, x *y)
#define MUL_INTEGER(a, id, type) LOOP(mul, id, type, WRAP(type, *))
#define DIV_REAL(a, id, type) LOOP(div, id, type, x / y)
#define DIV_SIGNED(a, id, type) \
    LOOP(div, id, type, (type)(y == 0 ? 0 : y == -1 ? (type)(0 - (uint64_t)x) : x / y))
#define DIV_UNSIGNED(a, id, type) LOOP(div, id, type, (type)(y == 0 ? 0 : x / y))
/* a NaN of either stays */
#define MIN_NUMBER(a, id, type) LOOP(min, id, type, x < y || x != x ? x : y)
#define MAX_NUMBER(a, id, type) LOOP(max, id, type, x > y || x != x ? x : y)

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

#define ENTRY(name, id, type) [MUC_##id] = name##_##id,

static binary *binary_of(muc_op op, muc_dtype dtype)
{
    static binary *const table[MUC_OP_COUNT][MUC_DTYPE_COUNT] = {
        [MUC_OP_ADD] = { MUC_REF_NUMBERS(ENTRY, add) },
        [MUC_OP_SUB] = { MUC_REF_NUMBERS(ENTRY, sub) },
        [MUC_OP_MUL] = { MUC_REF_NUMBERS(ENTRY, mul) },
        [MUC_OP_DIV] = { MUC_REF_NUMBERS(ENTRY, div) },
        [MUC_OP_MIN] = { MUC_REF_NUMBERS(ENTRY, min) },
        [MUC_OP_MAX] = { MUC_REF_NUMBERS(ENTRY, max) },
    };

    return table[op][dtype];
}

typedef struct operands {
    binary *loop;
    const uint8_t *a, *b;
    uint8_t *out;
    size_t in_width, out_width, done;
} operands;

static void run(void *arg, size_t n, const size_t *at, const size_t *step)
{
    operands *o = arg;

    o->loop(o->a + at[0] * o->in_width, step[0], o->b + at[1] * o->in_width, step[1],
            o->out + o->done * o->out_width, n);
    o->done += n;
}

/* out = f(a, b); out may be a if that has its shape */
static void apply(const muc_ref_call *call, binary *loop, const muc_ref_value *a,
                  const muc_ref_value *b)
{
    const muc_ref_value *const values[] = { a, b };
    operands o = {
        loop, a->read, b->read, call->output->data, muc_ref_width(a), muc_ref_width(call->output), 0
    };
    muc_ref_walk walk;

    muc_ref_walk_of(call->output, values, 2, &walk);
    muc_ref_walk_each(&walk, run, &o);
}

muc_status muc_kernel_binary(const muc_ref_call *call)
{
    binary *loop = binary_of(call->node->op, call->inputs[0]->dtype);
    uint32_t count = call->node->input_count;

    if (count == 1)
        return muc_kernel_copy(call);
    apply(call, loop, call->inputs[0], call->inputs[1]);
    for (uint32_t i = 2; i < count; i++)
        apply(call, loop, call->output, call->inputs[i]);
    return MUC_OK;
}
