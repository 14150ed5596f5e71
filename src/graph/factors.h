/* factors.h - products of expressions taken apart, to compare and to divide two of them. */
#ifndef MUC_FACTORS_H
#define MUC_FACTORS_H

#include "expr/expr.h"

enum { MUC_FACTORS_MOST = 256 };

/* What is constant of a product, and its other factors, sorted. 1 is { .constant = 1 }. */
typedef struct muc_factors {
    uint64_t constant;
    muc_expr items[MUC_FACTORS_MOST];
    uint32_t count;
} muc_factors;

/* Multiplies the product by e, which is taken apart where it is one itself. False if the constant
 * is beyond 64 bits, or the factors are too many. */
bool muc_factors_times(const muc_expr_pool *pool, muc_factors *p, muc_expr e);
bool muc_factors_is_equal(const muc_factors *a, const muc_factors *b);
/* What two products have in common leaves both: of factors that can be 0 only if zeros. */
void muc_factors_cancel(const muc_expr_pool *pool, muc_factors *a, muc_factors *b, bool zeros);
/* The product as one expression; MUC_EXPR_NONE if the constant is beyond 32 bits. */
muc_expr muc_factors_expr(muc_expr_pool *pool, const muc_factors *p);

#endif
