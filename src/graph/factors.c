/* factors.c - gathers the factors of a product, and cancels those of two. */
#include "graph/factors.h"

#include <string.h>

bool muc_factors_times(const muc_expr_pool *pool, muc_factors *p, muc_expr e)
{
    const muc_expr_node *node = muc_expr_get(pool, e);
    uint32_t at;

    if (node->op == MUC_EXPR_CONST)
        return muc_mul_u64(p->constant, node->immediate, &p->constant);
    if (node->op == MUC_EXPR_MUL) { /* as deep as an expression may be, which is bounded */
        muc_expr second = node->operands[1];

        return muc_factors_times(pool, p, node->operands[0]) && muc_factors_times(pool, p, second);
    }
    if (p->count == MUC_FACTORS_MOST)
        return false;
    for (at = p->count++; at > 0 && p->items[at - 1] > e; at--)
        p->items[at] = p->items[at - 1];
    p->items[at] = e;
    return true;
}

bool muc_factors_is_equal(const muc_factors *a, const muc_factors *b)
{
    return a->constant == b->constant && a->count == b->count &&
           memcmp(a->items, b->items, a->count * sizeof(*a->items)) == 0;
}

static void cancel_constants(muc_factors *a, muc_factors *b)
{
    uint64_t greatest = a->constant, other = b->constant;

    if (a->constant == 0 || b->constant == 0)
        return;
    while (other) {
        uint64_t rest = greatest % other;

        greatest = other;
        other = rest;
    }
    a->constant /= greatest;
    b->constant /= greatest;
}

void muc_factors_cancel(const muc_expr_pool *pool, muc_factors *a, muc_factors *b, bool zeros)
{
    uint32_t kept = 0;

    cancel_constants(a, b);
    for (uint32_t i = 0; i < a->count; i++) {
        uint32_t j = 0;

        while (j < b->count && b->items[j] != a->items[i])
            j++;
        if (j == b->count || (!zeros && muc_expr_get(pool, a->items[i])->lo == 0)) {
            a->items[kept++] = a->items[i];
            continue;
        }
        b->count--;
        memmove(&b->items[j], &b->items[j + 1], (b->count - j) * sizeof(*b->items));
    }
    a->count = kept;
}

muc_expr muc_factors_expr(muc_expr_pool *pool, const muc_factors *p)
{
    muc_expr e;

    if (p->constant > UINT32_MAX)
        return MUC_EXPR_NONE;
    e = muc_expr_const(pool, (uint32_t)p->constant);
    for (uint32_t i = 0; i < p->count; i++)
        e = muc_expr_mul(pool, p->items[i], e);
    return e;
}
