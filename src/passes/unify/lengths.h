/* lengths.h - numbers that exports of one network have at their lengths, as expressions of pos and
 * m. */
#ifndef MUC_LENGTHS_H
#define MUC_LENGTHS_H

#include "expr/expr.h"

/* Every export's position of the first new token and number of new tokens. */
typedef struct muc_lengths {
    uint32_t count;
    uint32_t *pos, *m; /* [count] */
    muc_expr_pool *pool;
    muc_expr pos_expr, m_expr, end_expr; /* end: pos + m. Constants where all exports agree */
} muc_lengths;

/* Declares the inputs "pos" and "m" of the pool, each only if exports differ in it, for at most
 * `tokens` new tokens and pos + m <= context. pos and m are set; count is at least 1. */
muc_status muc_lengths_declare(muc_lengths *lengths, uint32_t context, uint32_t tokens);
/* The expression k * base + c, k >= 1, c >= 0, of a base among m, pos + m and pos that has
 * values[i] for export i; the constant where all values are the same. The simplest one: k = 1 and c
 * = 0, then c = 0, m before pos + m before pos. MUC_EXPR_NONE if there is none. */
muc_expr muc_lengths_fit(const muc_lengths *lengths, const uint32_t *values);
/* What an expression of the pool is for export i. */
muc_status muc_lengths_eval(muc_context *ctx, const muc_lengths *lengths, muc_expr e, uint32_t i,
                            uint32_t *out);

#endif
