/* expr.h - symbolic integers: what a dimension, an address or a loop bound depends on.
 *
 * An expression is an id in a pool: a constant, a named input with a range, or an operator of
 * runtime/include/mur_eval.def on other expressions. Equal expressions have equal ids (a pool
 * shares nodes), operands have lower ids than what they are part of. Building simplifies without
 * changing the value for any binding for which the value is defined.
 *
 * Builders return the id. On failure (memory, a bad operand, a size over the cap, a constant that
 * does not fit) they tell the context, remember it in the pool and return MUC_EXPR_NONE, which any
 * builder takes and returns: a formula is written as a formula and checked once, with
 * muc_expr_status.
 */
#ifndef MUC_EXPR_H
#define MUC_EXPR_H

#include "base/arena.h"
#include "base/text.h"

typedef uint32_t muc_expr;

#define MUC_EXPR_NONE 0u
#define MUC_EXPR_MAX_INPUTS 64
#define MUC_EXPR_MAX_NODES 4096 /* of one expression written out as a tree */

typedef enum muc_expr_op {
    MUC_EXPR_CONST = 64,
    MUC_EXPR_INPUT,
#define MUR_EVAL(name, number, operands, meaning) MUC_EXPR_##name = number,
#include "mur_eval.def"
#undef MUR_EVAL
} muc_expr_op;

typedef struct muc_expr_node {
    muc_expr_op op;
    muc_expr operands[3]; /* unused ones are MUC_EXPR_NONE */
    uint32_t immediate;   /* CONST: the value; INPUT: its index; TABLE, SPAN: the table's index */
    uint32_t lo, hi;      /* every value the expression takes is within, ends included */
    uint32_t multiple;    /* every value is a multiple of this; 0: the value is always 0 */
    uint32_t size;        /* nodes when written out as a tree */
    uint64_t inputs;      /* bit i: depends on input i */
    bool may_overflow;    /* interval analysis cannot exclude a value beyond 32 bits inside */
} muc_expr_node;

typedef struct muc_expr_input {
    const char *name;
    uint32_t lo, hi, multiple; /* lo <= value <= hi, value % multiple == 0 */
    muc_expr expr;
} muc_expr_input;

typedef struct muc_expr_table {
    const char *name;
    const uint32_t *values; /* copied into the pool's arena */
    uint32_t count;
    bool never_falls; /* SPAN may be asked of it */
} muc_expr_table;

/* a <= b, or a == b, for every binding that is used. */
typedef struct muc_expr_promise {
    muc_expr a, b;
    bool equal;
    const char *source, *what; /* "net.onnx", "node 'y': elements"; NULL: of muc_expr_assume */
} muc_expr_promise;

typedef struct muc_expr_pool muc_expr_pool;

/* The pool and all it holds live in arena; ctx is where builders report. */
muc_status muc_expr_pool_new(muc_context *ctx, muc_arena *arena, muc_expr_pool **out);
/* Another pool in which every expression of this one has the same id. It borrows names and tables
 * of this one, which must live longer. */
muc_status muc_expr_pool_copy(muc_context *ctx, muc_arena *arena, const muc_expr_pool *from,
                              muc_expr_pool **out);
muc_status muc_expr_status(const muc_expr_pool *pool);

muc_expr muc_expr_const(muc_expr_pool *pool, uint32_t value);
/* Declares an input, or returns the existing one if name, range and multiple are the same.
 * name is an identifier: letters, digits and '_', not starting with a digit. */
muc_expr muc_expr_new_input(muc_expr_pool *pool, const char *name, uint32_t lo, uint32_t hi,
                            uint32_t multiple);
/* Promises that e <= hi for every binding that will be used; muc_expr_check_bindings refuses the
 * others. Expressions built on e afterwards use it: promise before building. */
muc_status muc_expr_assume(muc_expr_pool *pool, muc_expr e, uint32_t hi);
/* Whether a <= b, or a == b, holds for all bindings, for none, or is up to them. */
typedef enum muc_expr_truth { MUC_EXPR_NEVER, MUC_EXPR_SOMETIMES, MUC_EXPR_ALWAYS } muc_expr_truth;
muc_expr_truth muc_expr_holds(const muc_expr_pool *pool, muc_expr a, bool equal, muc_expr b);
/* Lets muc_expr_check_bindings refuse bindings for which a <= b, or a == b, does not hold; source
 * and what, copied, are for its message. Expressions do not use it; asked again it does nothing. */
muc_status muc_expr_require(muc_expr_pool *pool, muc_expr a, bool equal, muc_expr b,
                            const char *source, const char *what);
/* Registers a table (1 <= count) under a fresh identifier; *out is its index. */
muc_status muc_expr_new_table(muc_expr_pool *pool, const char *name, const uint32_t *values,
                              uint32_t count, uint32_t *out);

/* Any operator of mur_eval.def but TABLE and SPAN; operands beyond its arity are MUC_EXPR_NONE. */
muc_expr muc_expr_apply(muc_expr_pool *pool, muc_expr_op op, muc_expr a, muc_expr b, muc_expr c);
/* TABLE or SPAN of a registered table; the interval of index must be inside it. */
muc_expr muc_expr_lookup(muc_expr_pool *pool, muc_expr_op op, uint32_t table, muc_expr index);

#define MUC_EXPR_BINARY(name, op) \
    static inline muc_expr muc_expr_##name(muc_expr_pool *pool, muc_expr a, muc_expr b) \
    { \
        return muc_expr_apply(pool, op, a, b, MUC_EXPR_NONE); \
    }
MUC_EXPR_BINARY(add, MUC_EXPR_ADD)
MUC_EXPR_BINARY(sub, MUC_EXPR_SUB)
MUC_EXPR_BINARY(mul, MUC_EXPR_MUL)
MUC_EXPR_BINARY(min, MUC_EXPR_MIN)
MUC_EXPR_BINARY(max, MUC_EXPR_MAX)
MUC_EXPR_BINARY(and, MUC_EXPR_AND)
MUC_EXPR_BINARY(eq, MUC_EXPR_EQ)
MUC_EXPR_BINARY(lt, MUC_EXPR_LT)
#undef MUC_EXPR_BINARY

/* The same with a constant on the right. */
#define MUC_EXPR_IMMEDIATE(name, op) \
    static inline muc_expr muc_expr_##name(muc_expr_pool *pool, muc_expr a, uint32_t b) \
    { \
        return muc_expr_apply(pool, op, a, muc_expr_const(pool, b), MUC_EXPR_NONE); \
    }
MUC_EXPR_IMMEDIATE(cdiv, MUC_EXPR_CDIV)
MUC_EXPR_IMMEDIATE(div, MUC_EXPR_DIV)
MUC_EXPR_IMMEDIATE(mod, MUC_EXPR_MOD)
MUC_EXPR_IMMEDIATE(shl, MUC_EXPR_SHL)
MUC_EXPR_IMMEDIATE(shr, MUC_EXPR_SHR)
MUC_EXPR_IMMEDIATE(add_const, MUC_EXPR_ADD)
MUC_EXPR_IMMEDIATE(mul_const, MUC_EXPR_MUL)
MUC_EXPR_IMMEDIATE(min_const, MUC_EXPR_MIN)
MUC_EXPR_IMMEDIATE(sub_const, MUC_EXPR_SUB)
#undef MUC_EXPR_IMMEDIATE

static inline muc_expr muc_expr_sel(muc_expr_pool *pool, muc_expr c, muc_expr a, muc_expr b)
{
    return muc_expr_apply(pool, MUC_EXPR_SEL, c, a, b);
}

/* Everything known about e, which must not be MUC_EXPR_NONE. The pointer is valid until the next
 * builder call; the three counts below bound what can be asked. */
const muc_expr_node *muc_expr_get(const muc_expr_pool *pool, muc_expr e);
uint32_t muc_expr_count(const muc_expr_pool *pool); /* ids are 1..count */
uint32_t muc_expr_input_count(const muc_expr_pool *pool);
uint32_t muc_expr_table_count(const muc_expr_pool *pool);
const muc_expr_input *muc_expr_get_input(const muc_expr_pool *pool, uint32_t index);
const muc_expr_table *muc_expr_get_table(const muc_expr_pool *pool, uint32_t index);
/* The input's or table's index, or UINT32_MAX. */
uint32_t muc_expr_find_input(const muc_expr_pool *pool, const char *name);
uint32_t muc_expr_find_table(const muc_expr_pool *pool, const char *name);
/* Promise number i of muc_expr_assume and muc_expr_require; NULL beyond the last. */
const muc_expr_promise *muc_expr_get_promise(const muc_expr_pool *pool, uint32_t i);

static inline bool muc_expr_is_const(const muc_expr_pool *pool, muc_expr e)
{
    return muc_expr_get(pool, e)->op == MUC_EXPR_CONST;
}
/* input: an index. */
static inline bool muc_expr_depends_on(const muc_expr_pool *pool, muc_expr e, uint32_t input)
{
    return input < MUC_EXPR_MAX_INPUTS && (muc_expr_get(pool, e)->inputs >> input & 1) != 0;
}

/* values[i] binds input i. Fails with MUC_USAGE naming the input or the promise that is broken. */
muc_status muc_expr_check_bindings(muc_context *ctx, const muc_expr_pool *pool,
                                   const uint32_t *values);
/* The exact value; bindings must have passed muc_expr_check_bindings. Fails with MUC_USAGE where
 * a value inside does not fit in 32 bits. Thread-safe. */
muc_status muc_expr_eval(muc_context *ctx, const muc_expr_pool *pool, muc_expr e,
                         const uint32_t *values, uint32_t *out);
/* One operator on values, exactly as the device computes it: false if the result does not fit or
 * the right operand is not allowed. Not for TABLE and SPAN. */
bool muc_expr_operate(muc_expr_op op, uint32_t a, uint32_t b, uint32_t c, uint32_t *out);

/* "layer*102 + min(pos + m, 64)"; muc_expr_parse gives back the same id. Precedence is C's. */
void muc_expr_print(const muc_expr_pool *pool, muc_expr e, muc_text *text);
/* Parses the longest expression at *cursor, with blanks between its words, and moves *cursor past
 * it. Inputs and tables must be known. Failures are MUC_MALFORMED with source as the text's name
 * and base_offset + position. */
muc_status muc_expr_parse(muc_context *ctx, muc_expr_pool *pool, const char *source,
                          uint64_t base_offset, const char **cursor, muc_expr *out);

#endif
