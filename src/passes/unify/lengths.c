/* lengths.c - finds the expression that gives a number at every length: a line through all points.
 */
#include "passes/unify/lengths.h"

static bool all_equal(const uint32_t *values, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (values[i] != values[0])
            return false;
    return true;
}

muc_status muc_lengths_declare(muc_lengths *l, uint32_t context, uint32_t tokens)
{
    bool pos_varies = !all_equal(l->pos, l->count);

    l->m_expr = all_equal(l->m, l->count) ? muc_expr_const(l->pool, l->m[0])
                                          : muc_expr_new_input(l->pool, "m", 1, tokens, 1);
    l->pos_expr = pos_varies ? muc_expr_new_input(l->pool, "pos", 0, context - 1, 1)
                             : muc_expr_const(l->pool, l->pos[0]);
    l->end_expr = muc_expr_add(l->pool, l->pos_expr, l->m_expr);
    MUC_TRY(muc_expr_status(l->pool));
    if (pos_varies)
        return muc_expr_assume(l->pool, l->end_expr, context);
    return MUC_OK;
}

typedef enum fit { SAME, MULTIPLE, LINE } fit;

static int64_t base_of(const muc_lengths *l, unsigned base, uint32_t i)
{
    return base == 0 ? l->m[i] : base == 1 ? (int64_t)l->pos[i] + l->m[i] : l->pos[i];
}

/* values = k * base + c, or false */
static bool fit_line(const muc_lengths *l, unsigned base, const uint32_t *values, int64_t *k,
                     int64_t *c)
{
    uint32_t other = 1;

    while (other < l->count && base_of(l, base, other) == base_of(l, base, 0))
        other++;
    if (other == l->count)
        return false;
    *k = ((int64_t)values[other] - values[0]) / (base_of(l, base, other) - base_of(l, base, 0));
    *c = values[0] - *k * base_of(l, base, 0);
    if (*k < 1 || *c < 0)
        return false;
    for (uint32_t i = 0; i < l->count; i++)
        if (*k * base_of(l, base, i) + *c != values[i])
            return false;
    return true;
}

muc_expr muc_lengths_fit(const muc_lengths *l, const uint32_t *values)
{
    const muc_expr bases[] = { l->m_expr, l->end_expr, l->pos_expr };

    if (all_equal(values, l->count))
        return muc_expr_const(l->pool, values[0]);
    for (unsigned form = SAME; form <= LINE; form++)
        for (unsigned base = 0; base < MUC_COUNT(bases); base++) {
            int64_t k, c;

            if (fit_line(l, base, values, &k, &c) && (form == LINE || c == 0) &&
                (form != SAME || k == 1))
                return muc_expr_add_const(
                    l->pool, muc_expr_mul_const(l->pool, bases[base], (uint32_t)k), (uint32_t)c);
        }
    return MUC_EXPR_NONE;
}

muc_status muc_lengths_eval(muc_context *ctx, const muc_lengths *l, muc_expr e, uint32_t i,
                            uint32_t *out)
{
    uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    uint32_t pos = muc_expr_find_input(l->pool, "pos"), m = muc_expr_find_input(l->pool, "m");

    if (pos != UINT32_MAX)
        bindings[pos] = l->pos[i];
    if (m != UINT32_MAX)
        bindings[m] = l->m[i];
    return muc_expr_eval(ctx, l->pool, e, bindings, out);
}
