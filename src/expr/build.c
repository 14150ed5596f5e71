/* build.c - what is known about a node, and the simplifications made when it is built.
 *
 * A rule may only replace an expression by one that has the same value wherever the first has
 * one. Rules look one operand deep: nested constants gather because every level was built so.
 */
#include "expr/expr_pool.h"

static const uint8_t arities[] = {
#define MUR_EVAL(name, number, operands, meaning) [number] = operands,
#include "mur_eval.def"
#undef MUR_EVAL
};

unsigned muc_expr_arity(muc_expr_op op)
{
    return (unsigned)op < MUC_COUNT(arities) ? arities[op] : 0;
}

static bool takes_immediate(muc_expr_op op)
{
    return op == MUC_EXPR_CDIV || op == MUC_EXPR_DIV || op == MUC_EXPR_MOD || op == MUC_EXPR_SHL ||
           op == MUC_EXPR_SHR;
}

static bool commutes(muc_expr_op op)
{
    return op == MUC_EXPR_ADD || op == MUC_EXPR_MUL || op == MUC_EXPR_MIN || op == MUC_EXPR_MAX ||
           op == MUC_EXPR_AND || op == MUC_EXPR_EQ;
}

static uint32_t gcd(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

static uint32_t multiple_of(const muc_expr_node *node, const muc_expr_node *a,
                            const muc_expr_node *b, const muc_expr_node *c)
{
    uint64_t product;

    switch (node->op) {
    case MUC_EXPR_ADD:
    case MUC_EXPR_SUB:
    case MUC_EXPR_MIN:
    case MUC_EXPR_MAX:
        return gcd(a->multiple, b->multiple);
    case MUC_EXPR_SEL:
        return gcd(b->multiple, c->multiple);
    case MUC_EXPR_MUL:
        product = (uint64_t)a->multiple * b->multiple;
        return product <= UINT32_MAX ? (uint32_t)product : a->multiple;
    case MUC_EXPR_SHL:
        product = (uint64_t)a->multiple << b->lo;
        return product <= UINT32_MAX ? (uint32_t)product : a->multiple;
    case MUC_EXPR_DIV:
        return a->multiple % b->lo == 0 ? a->multiple / b->lo : 1;
    case MUC_EXPR_MOD:
        return gcd(a->multiple, b->lo);
    case MUC_EXPR_AND:
        return b->op == MUC_EXPR_CONST ? b->immediate & (0 - b->immediate) : 1;
    case MUC_EXPR_CONST:
    case MUC_EXPR_INPUT:
    case MUC_EXPR_CDIV:
    case MUC_EXPR_EQ:
    case MUC_EXPR_LT:
    case MUC_EXPR_SHR:
    case MUC_EXPR_TABLE:
    case MUC_EXPR_SPAN:
        return 1;
    }
    return 1;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* the ends of an operator's values from those of its operands, beyond 32 bits where it may */
static void interval(const muc_expr_node *node, const muc_expr_node *a, const muc_expr_node *b,
                     const muc_expr_node *c, uint64_t *lo, uint64_t *hi)
{
    bool apart = a->hi < b->lo || b->hi < a->lo;

    switch (node->op) {
    case MUC_EXPR_ADD:
        *lo = (uint64_t)a->lo + b->lo;
        *hi = (uint64_t)a->hi + b->hi;
        break;
    case MUC_EXPR_SUB:
        *lo = a->lo > b->hi ? a->lo - b->hi : 0;
        *hi = a->hi > b->lo ? a->hi - b->lo : 0;
        break;
    case MUC_EXPR_MUL:
        *lo = (uint64_t)a->lo * b->lo;
        *hi = (uint64_t)a->hi * b->hi;
        break;
    case MUC_EXPR_CDIV:
        *lo = ((uint64_t)a->lo + b->lo - 1) / b->lo;
        *hi = ((uint64_t)a->hi + b->lo - 1) / b->lo;
        break;
    case MUC_EXPR_DIV:
        *lo = a->lo / b->lo;
        *hi = a->hi / b->lo;
        break;
    case MUC_EXPR_MOD:
        *lo = a->hi < b->lo ? a->lo : 0;
        *hi = a->hi < b->lo ? a->hi : b->lo - 1;
        break;
    case MUC_EXPR_MIN:
        *lo = smaller(a->lo, b->lo);
        *hi = smaller(a->hi, b->hi);
        break;
    case MUC_EXPR_MAX:
        *lo = larger(a->lo, b->lo);
        *hi = larger(a->hi, b->hi);
        break;
    case MUC_EXPR_AND:
        *lo = 0;
        *hi = smaller(a->hi, b->hi);
        break;
    case MUC_EXPR_EQ:
        *lo = a->lo == a->hi && b->lo == b->hi && a->lo == b->lo;
        *hi = !apart;
        break;
    case MUC_EXPR_LT:
        *lo = a->hi < b->lo;
        *hi = a->lo < b->hi;
        break;
    case MUC_EXPR_SHL:
        *lo = (uint64_t)a->lo << b->lo;
        *hi = (uint64_t)a->hi << b->lo;
        break;
    case MUC_EXPR_SHR:
        *lo = a->lo >> b->lo;
        *hi = a->hi >> b->lo;
        break;
    case MUC_EXPR_SEL:
        *lo = smaller(b->lo, c->lo);
        *hi = larger(b->hi, c->hi);
        break;
    case MUC_EXPR_CONST:
    case MUC_EXPR_INPUT:
    case MUC_EXPR_TABLE:
    case MUC_EXPR_SPAN:
        break;
    }
}

static void table_interval(const muc_expr_node *node, const muc_expr_node *index,
                           const muc_expr_table *table, uint64_t *lo, uint64_t *hi)
{
    *lo = UINT32_MAX;
    *hi = 0;
    for (uint32_t i = index->lo; i <= index->hi; i++) {
        uint32_t value =
            node->op == MUC_EXPR_TABLE ? table->values[i] : table->values[i + 1] - table->values[i];

        *lo = smaller(*lo, value);
        *hi = larger(*hi, value);
    }
}

static void analyse_leaf(const muc_expr_pool *pool, muc_expr_node *node)
{
    if (node->op == MUC_EXPR_CONST) {
        node->lo = node->hi = node->multiple = node->immediate;
        return;
    }
    node->lo = pool->inputs[node->immediate].lo;
    node->hi = pool->inputs[node->immediate].hi;
    node->multiple = node->hi ? pool->inputs[node->immediate].multiple : 0;
    node->inputs = UINT64_C(1) << node->immediate;
}

void muc_expr_analyse(const muc_expr_pool *pool, muc_expr_node *node)
{
    const muc_expr_node *operands[3];
    unsigned arity = muc_expr_arity(node->op);
    uint64_t lo = 0, hi = 0;

    node->size = 1;
    if (arity == 0) {
        analyse_leaf(pool, node);
        return;
    }
    for (unsigned i = 0; i < 3; i++) {
        operands[i] = &pool->nodes[node->operands[i]];
        if (i >= arity)
            continue;
        node->size += operands[i]->size;
        node->inputs |= operands[i]->inputs;
        node->may_overflow = node->may_overflow || operands[i]->may_overflow;
    }
    if (node->op == MUC_EXPR_TABLE || node->op == MUC_EXPR_SPAN)
        table_interval(node, operands[0], &pool->tables[node->immediate], &lo, &hi);
    else
        interval(node, operands[0], operands[1], operands[2], &lo, &hi);
    if (node->op == MUC_EXPR_SPAN && operands[0]->op != MUC_EXPR_CONST)
        lo = 0; /* all that a device's verifier knows */
    node->may_overflow = node->may_overflow || hi > UINT32_MAX;
    node->lo = (uint32_t)smaller(lo, UINT32_MAX);
    node->hi = (uint32_t)smaller(hi, UINT32_MAX);
    node->multiple = node->hi ? multiple_of(node, operands[0], operands[1], operands[2]) : 0;
}

/* x op c as the node e: its parts, or false */
static bool split(const muc_expr_pool *pool, muc_expr e, muc_expr_op op, muc_expr *x, uint32_t *c)
{
    const muc_expr_node *node = &pool->nodes[e];

    if (node->op != op || pool->nodes[node->operands[1]].op != MUC_EXPR_CONST)
        return false;
    *x = node->operands[0];
    *c = pool->nodes[node->operands[1]].immediate;
    return true;
}

static muc_expr with_const(muc_expr_pool *pool, muc_expr_op op, muc_expr x, uint32_t c)
{
    return muc_expr_apply(pool, op, x, muc_expr_const(pool, c), MUC_EXPR_NONE);
}

/* Each fold_ gives the simpler form of a op b, or MUC_EXPR_NONE; c is the value of b if it is a
 * constant. */
static muc_expr fold_add(muc_expr_pool *pool, muc_expr a, muc_expr b, const uint32_t *c)
{
    muc_expr x;
    uint32_t inner;

    /* constants to the end, where they meet others, or become part of an instruction */
    if (!c && split(pool, a, MUC_EXPR_ADD, &x, &inner))
        return with_const(pool, MUC_EXPR_ADD, muc_expr_add(pool, x, b), inner);
    if (!c && split(pool, b, MUC_EXPR_ADD, &x, &inner))
        return with_const(pool, MUC_EXPR_ADD, muc_expr_add(pool, a, x), inner);
    if (c && *c == 0)
        return a;
    if (c && split(pool, a, MUC_EXPR_ADD, &x, &inner) && inner <= UINT32_MAX - *c)
        return with_const(pool, MUC_EXPR_ADD, x, inner + *c);
    /* a difference that stops at 0 is not one that can be taken back */
    if (c && split(pool, a, MUC_EXPR_SUB, &x, &inner) && pool->nodes[x].lo >= inner)
        return *c >= inner ? with_const(pool, MUC_EXPR_ADD, x, *c - inner)
                           : with_const(pool, MUC_EXPR_SUB, x, inner - *c);
    return MUC_EXPR_NONE;
}

static muc_expr fold_sub(muc_expr_pool *pool, muc_expr a, muc_expr b, const uint32_t *c)
{
    const muc_expr_node *node = &pool->nodes[a];
    muc_expr x;
    uint32_t inner;

    if (c && *c == 0)
        return a;
    if (a == b)
        return muc_expr_const(pool, 0);
    if (node->op == MUC_EXPR_ADD && node->operands[0] == b)
        return node->operands[1];
    if (node->op == MUC_EXPR_ADD && node->operands[1] == b)
        return node->operands[0];
    if (c && split(pool, a, MUC_EXPR_ADD, &x, &inner))
        return inner >= *c ? with_const(pool, MUC_EXPR_ADD, x, inner - *c)
                           : with_const(pool, MUC_EXPR_SUB, x, *c - inner);
    if (c && split(pool, a, MUC_EXPR_SUB, &x, &inner) && inner <= UINT32_MAX - *c)
        return with_const(pool, MUC_EXPR_SUB, x, inner + *c);
    return MUC_EXPR_NONE;
}

static muc_expr fold_mul(muc_expr_pool *pool, muc_expr a, const uint32_t *c)
{
    muc_expr x;
    uint32_t inner;

    if (c && *c == 1)
        return a;
    if (c && *c && split(pool, a, MUC_EXPR_MUL, &x, &inner) && inner <= UINT32_MAX / *c)
        return with_const(pool, MUC_EXPR_MUL, x, inner * *c);
    if (c && *c && split(pool, a, MUC_EXPR_ADD, &x, &inner) && inner <= UINT32_MAX / *c)
        return with_const(pool, MUC_EXPR_ADD, with_const(pool, MUC_EXPR_MUL, x, *c), inner * *c);
    if (c && *c && split(pool, a, MUC_EXPR_SUB, &x, &inner) && pool->nodes[x].lo >= inner &&
        pool->nodes[x].hi <= UINT32_MAX / *c)
        return with_const(pool, MUC_EXPR_SUB, with_const(pool, MUC_EXPR_MUL, x, *c), inner * *c);
    return MUC_EXPR_NONE;
}

/* CDIV and DIV: the quotient of x*k and of nested quotients */
static muc_expr fold_quotient(muc_expr_pool *pool, muc_expr_op op, muc_expr a, uint32_t c)
{
    muc_expr x;
    uint32_t inner;

    if (c == 1)
        return a;
    if (split(pool, a, MUC_EXPR_MUL, &x, &inner) && inner % c == 0)
        return with_const(pool, MUC_EXPR_MUL, x, inner / c);
    if (split(pool, a, MUC_EXPR_MUL, &x, &inner) && inner && c % inner == 0)
        return with_const(pool, op, x, c / inner);
    if (split(pool, a, op, &x, &inner) && inner <= UINT32_MAX / c)
        return with_const(pool, op, x, inner * c);
    if (split(pool, a, MUC_EXPR_SUB, &x, &inner) && inner % c == 0 && pool->nodes[x].lo >= inner)
        return with_const(pool, MUC_EXPR_SUB, with_const(pool, op, x, c), inner / c);
    if (op == MUC_EXPR_CDIV && pool->nodes[a].multiple % c == 0)
        return with_const(pool, MUC_EXPR_DIV, a, c);
    return MUC_EXPR_NONE;
}

static muc_expr fold_mod(muc_expr_pool *pool, muc_expr a, uint32_t c)
{
    muc_expr x;
    uint32_t inner;

    if (pool->nodes[a].hi < c)
        return a;
    if (pool->nodes[a].multiple % c == 0)
        return muc_expr_const(pool, 0);
    if ((split(pool, a, MUC_EXPR_ADD, &x, &inner) || split(pool, a, MUC_EXPR_MOD, &x, &inner)) &&
        inner % c == 0)
        return with_const(pool, MUC_EXPR_MOD, x, c);
    return MUC_EXPR_NONE;
}

static muc_expr fold_extreme(muc_expr_pool *pool, muc_expr_op op, muc_expr a, muc_expr b,
                             const uint32_t *c)
{
    const muc_expr_node *left = &pool->nodes[a], *right = &pool->nodes[b];
    muc_expr x;
    uint32_t inner;

    if (a == b || left->hi <= right->lo)
        return op == MUC_EXPR_MIN ? a : b;
    if (right->hi <= left->lo)
        return op == MUC_EXPR_MIN ? b : a;
    if (c && split(pool, a, op, &x, &inner))
        return with_const(pool, op, x, (inner < *c) == (op == MUC_EXPR_MIN) ? inner : *c);
    return MUC_EXPR_NONE;
}

static muc_expr fold_and(muc_expr_pool *pool, muc_expr a, muc_expr b, const uint32_t *c)
{
    muc_expr x;
    uint32_t inner;

    if (a == b || (c && (*c & (*c + 1)) == 0 && pool->nodes[a].hi <= *c))
        return a;
    if (c && split(pool, a, MUC_EXPR_AND, &x, &inner))
        return with_const(pool, MUC_EXPR_AND, x, inner & *c);
    return MUC_EXPR_NONE;
}

static muc_expr fold(muc_expr_pool *pool, const muc_expr_node *node)
{
    muc_expr a = node->operands[0], b = node->operands[1];
    const uint32_t value = pool->nodes[b].immediate;
    const uint32_t *c = pool->nodes[b].op == MUC_EXPR_CONST ? &value : NULL;

    switch (node->op) {
    case MUC_EXPR_ADD:
        return fold_add(pool, a, b, c);
    case MUC_EXPR_SUB:
        return fold_sub(pool, a, b, c);
    case MUC_EXPR_MUL:
        return fold_mul(pool, a, c);
    case MUC_EXPR_CDIV:
    case MUC_EXPR_DIV:
        return fold_quotient(pool, node->op, a, value);
    case MUC_EXPR_MOD:
        return fold_mod(pool, a, value);
    case MUC_EXPR_MIN:
    case MUC_EXPR_MAX:
        return fold_extreme(pool, node->op, a, b, c);
    case MUC_EXPR_AND:
        return fold_and(pool, a, b, c);
    case MUC_EXPR_EQ:
        return a == b ? muc_expr_const(pool, 1) : MUC_EXPR_NONE;
    case MUC_EXPR_LT:
        return a == b ? muc_expr_const(pool, 0) : MUC_EXPR_NONE;
    case MUC_EXPR_SHL:
    case MUC_EXPR_SHR:
        return value == 0 ? a : MUC_EXPR_NONE;
    case MUC_EXPR_SEL:
        if (pool->nodes[a].hi == 0)
            return node->operands[2];
        return pool->nodes[a].lo > 0 || b == node->operands[2] ? b : MUC_EXPR_NONE;
    case MUC_EXPR_CONST:
    case MUC_EXPR_INPUT:
    case MUC_EXPR_TABLE:
    case MUC_EXPR_SPAN:
        break;
    }
    return MUC_EXPR_NONE;
}

static muc_expr finish(muc_expr_pool *pool, muc_expr_node node)
{
    muc_expr_node analysed = node, swapped = node;

    muc_expr_analyse(pool, &analysed);
    if (analysed.lo == analysed.hi && !analysed.may_overflow)
        return muc_expr_const(pool, analysed.lo);
    /* a + b is b + a if that exists already: the first writing stays, on paper too */
    swapped.operands[0] = node.operands[1];
    swapped.operands[1] = node.operands[0];
    if (commutes(node.op) && !muc_expr_known(pool, &node) && muc_expr_known(pool, &swapped))
        return muc_expr_intern(pool, swapped);
    return muc_expr_intern(pool, node);
}

static muc_expr apply_constants(muc_expr_pool *pool, const muc_expr_node *node)
{
    uint32_t values[3] = { 0 }, out;

    for (unsigned i = 0; i < muc_expr_arity(node->op); i++)
        values[i] = pool->nodes[node->operands[i]].immediate;
    if (!muc_expr_operate(node->op, values[0], values[1], values[2], &out))
        return muc_expr_refuse(pool, "a constant expression does not fit in 32 bits");
    return muc_expr_const(pool, out);
}

muc_expr muc_expr_apply(muc_expr_pool *pool, muc_expr_op op, muc_expr a, muc_expr b, muc_expr c)
{
    muc_expr_node node = { .op = op, .operands = { a, b, c } };
    unsigned arity = muc_expr_arity(op), constants = 0;
    muc_expr simpler;

    if (arity < 2)
        return muc_expr_refuse(pool, "not an operator on expressions");
    for (unsigned i = 0; i < 3; i++) {
        if ((node.operands[i] == MUC_EXPR_NONE) != (i >= arity) || node.operands[i] > pool->count)
            return muc_expr_refuse(pool, "an operand is missing, or there is one too many");
        constants += pool->nodes[node.operands[i]].op == MUC_EXPR_CONST;
    }
    if (takes_immediate(op) &&
        (pool->nodes[b].op != MUC_EXPR_CONST ||
         (op == MUC_EXPR_SHL || op == MUC_EXPR_SHR ? pool->nodes[b].immediate > 31
                                                   : pool->nodes[b].immediate == 0)))
        return muc_expr_refuse(pool, "a divisor is a constant above 0, a shift one up to 31");
    if (constants == arity)
        return apply_constants(pool, &node);
    if (commutes(op) && pool->nodes[a].op == MUC_EXPR_CONST) {
        node.operands[0] = b;
        node.operands[1] = a;
    }
    simpler = fold(pool, &node);
    return simpler != MUC_EXPR_NONE || pool->status != MUC_OK ? simpler : finish(pool, node);
}

muc_expr muc_expr_lookup(muc_expr_pool *pool, muc_expr_op op, uint32_t table, muc_expr index)
{
    muc_expr_node node = { .op = op, .operands = { index }, .immediate = table };
    uint32_t beyond;

    if (index == MUC_EXPR_NONE || index > pool->count || table >= pool->table_count ||
        (op != MUC_EXPR_TABLE && op != MUC_EXPR_SPAN))
        return muc_expr_refuse(pool, "no such table or index");
    beyond = pool->tables[table].count - (op == MUC_EXPR_SPAN);
    if (pool->nodes[index].hi >= beyond)
        return muc_expr_refuse(pool, "an index may leave its table");
    if (op == MUC_EXPR_SPAN && !pool->tables[table].never_falls)
        return muc_expr_refuse(pool, "the span of a table that falls somewhere");
    return finish(pool, node);
}
