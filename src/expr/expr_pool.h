/* expr_pool.h - a pool's inside, for the files of this room. */
#ifndef MUC_EXPR_POOL_H
#define MUC_EXPR_POOL_H

#include "expr/expr.h"

struct muc_expr_pool {
    muc_context *ctx;
    muc_arena *arena;
    muc_status status;    /* the first failure of a builder */
    muc_expr_node *nodes; /* [count + 1]; the first stands for MUC_EXPR_NONE */
    size_t count, node_capacity;
    uint32_t *buckets; /* [bucket_count] open addressing over structure: an id or 0 */
    size_t bucket_count;
    muc_expr_input inputs[MUC_EXPR_MAX_INPUTS];
    uint32_t input_count;
    muc_expr_table *tables;
    size_t table_count, table_capacity;
    muc_expr_promise *promises;
    size_t promise_count, promise_capacity;
};

/* Operands an operator takes; 0 for CONST and INPUT. */
unsigned muc_expr_arity(muc_expr_op op);
bool muc_expr_is_identifier(const char *name, size_t length);

/* The id of a node given by op, operands and immediate, new or shared. */
muc_expr muc_expr_intern(muc_expr_pool *pool, muc_expr_node node);
bool muc_expr_known(const muc_expr_pool *pool, const muc_expr_node *node);
/* Fails the pool, unless it has failed already. */
muc_expr muc_expr_refuse(muc_expr_pool *pool, const char *message);

/* Fills lo, hi, multiple, size, inputs and may_overflow from op, operands and immediate. */
void muc_expr_analyse(const muc_expr_pool *pool, muc_expr_node *node);

#endif
