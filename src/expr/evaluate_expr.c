/* evaluate_expr.c - computes expressions exactly, for given inputs. The largest size that an
 * expression may have bounds the recursion. */
#include "expr/expr_pool.h"

bool muc_expr_operate(muc_expr_op op, uint32_t a, uint32_t b, uint32_t c, uint32_t *out)
{
    uint64_t value = 0;

    switch (op) {
    case MUC_EXPR_ADD:
        value = (uint64_t)a + b;
        break;
    case MUC_EXPR_SUB:
        value = a > b ? a - b : 0;
        break;
    case MUC_EXPR_MUL:
        value = (uint64_t)a * b;
        break;
    case MUC_EXPR_CDIV:
        if (b == 0)
            return false;
        value = a / b + (a % b != 0);
        break;
    case MUC_EXPR_DIV:
        if (b == 0)
            return false;
        value = a / b;
        break;
    case MUC_EXPR_MOD:
        if (b == 0)
            return false;
        value = a % b;
        break;
    case MUC_EXPR_MIN:
        value = a < b ? a : b;
        break;
    case MUC_EXPR_MAX:
        value = a > b ? a : b;
        break;
    case MUC_EXPR_AND:
        value = a & b;
        break;
    case MUC_EXPR_EQ:
        value = a == b;
        break;
    case MUC_EXPR_LT:
        value = a < b;
        break;
    case MUC_EXPR_SHL:
        if (b > 31)
            return false;
        value = (uint64_t)a << b;
        break;
    case MUC_EXPR_SHR:
        if (b > 31)
            return false;
        value = a >> b;
        break;
    case MUC_EXPR_SEL:
        value = a ? b : c;
        break;
    case MUC_EXPR_CONST:
    case MUC_EXPR_INPUT:
    case MUC_EXPR_TABLE:
    case MUC_EXPR_SPAN:
        return false;
    }
    *out = (uint32_t)value;
    return value <= UINT32_MAX;
}

muc_status muc_expr_eval(muc_context *ctx, const muc_expr_pool *pool, muc_expr e,
                         const uint32_t *values, uint32_t *out)
{
    const muc_expr_node *node = &pool->nodes[e];
    uint32_t operands[3] = { 0 };
    const muc_expr_table *table;
    muc_text text = { 0 };
    muc_status status;

    if (e == MUC_EXPR_NONE || e > pool->count)
        return muc_fail(ctx, MUC_BUG, "expr", MUC_NO_OFFSET, "no expression %u", e);
    if (node->op == MUC_EXPR_CONST || node->op == MUC_EXPR_INPUT) {
        *out = node->op == MUC_EXPR_CONST ? node->immediate : values[node->immediate];
        return MUC_OK;
    }
    for (unsigned i = 0; i < muc_expr_arity(node->op); i++)
        MUC_TRY(muc_expr_eval(ctx, pool, node->operands[i], values, &operands[i]));
    if (node->op == MUC_EXPR_TABLE || node->op == MUC_EXPR_SPAN) {
        /* the interval of the index was inside the table when this was built */
        table = &pool->tables[node->immediate];
        *out = node->op == MUC_EXPR_TABLE
                   ? table->values[operands[0]]
                   : table->values[operands[0] + 1] - table->values[operands[0]];
        return MUC_OK;
    }
    if (muc_expr_operate(node->op, operands[0], operands[1], operands[2], out))
        return MUC_OK;
    muc_expr_print(pool, e, &text);
    status = muc_fail(ctx, MUC_USAGE, "expr", MUC_NO_OFFSET, "%s does not fit in 32 bits",
                      text.data ? text.data : "a value");
    muc_text_free(&text);
    return status;
}

static muc_status check_promise(muc_context *ctx, const muc_expr_pool *pool,
                                const muc_expr_promise *promise, const uint32_t *values)
{
    const char *what = promise->what ? promise->what : "";
    muc_text text = { 0 };
    muc_status status;
    uint32_t a, b;

    MUC_TRY(muc_expr_eval(ctx, pool, promise->a, values, &a));
    MUC_TRY(muc_expr_eval(ctx, pool, promise->b, values, &b));
    if (promise->equal ? a == b : a <= b)
        return MUC_OK;
    muc_expr_print(pool, promise->a, &text);
    status = muc_fail(ctx, MUC_USAGE, promise->what ? promise->source : "expr", MUC_NO_OFFSET,
                      "%s%s%s is %u, expected %s%u", what, *what ? ": " : "",
                      text.data ? text.data : "a value", a, promise->equal ? "" : "at most ", b);
    muc_text_free(&text);
    return status;
}

muc_status muc_expr_check_bindings(muc_context *ctx, const muc_expr_pool *pool,
                                   const uint32_t *values)
{
    for (uint32_t i = 0; i < pool->input_count; i++) {
        const muc_expr_input *input = &pool->inputs[i];

        if (values[i] < input->lo || values[i] > input->hi || values[i] % input->multiple != 0)
            return muc_fail(ctx, MUC_USAGE, "expr", MUC_NO_OFFSET,
                            "'%s' is %u, expected a multiple of %u in %u..%u", input->name,
                            values[i], input->multiple, input->lo, input->hi);
    }
    for (size_t i = 0; i < pool->promise_count; i++)
        MUC_TRY(check_promise(ctx, pool, &pool->promises[i], values));
    return MUC_OK;
}
