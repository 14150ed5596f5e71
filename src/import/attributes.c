/* attributes.c - a list of a node's attributes, filled one by one. */
#include "import/attributes.h"

#include <inttypes.h>
#include <string.h>

void muc_attributes_set(muc_attributes *a, muc_attribute_key key, int64_t value)
{
    a->items[a->count++] = (muc_attribute){ .key = key, .value.integer = value };
}

void muc_attributes_set_real(muc_attributes *a, muc_attribute_key key, double value)
{
    a->items[a->count++] = (muc_attribute){ .key = key, .value.real = value };
}

void muc_attributes_set_expr(muc_attributes *a, muc_attribute_key key, muc_expr value)
{
    a->items[a->count++] = (muc_attribute){ .key = key, .value.expr = value };
}

void muc_attributes_set_integers(muc_attributes *a, muc_attribute_key key, const int64_t *items,
                                 uint32_t count)
{
    int64_t *at = a->integers + a->integer_count;

    if (count > 0)
        memcpy(at, items, count * sizeof(*items));
    a->integer_count += count;
    a->items[a->count++] = (muc_attribute){ .key = key, .value.integers = { at, count } };
}

void muc_attributes_set_exprs(muc_attributes *a, muc_attribute_key key, const muc_expr *items,
                              uint32_t count)
{
    muc_expr *at = a->exprs + a->expr_count;

    if (count > 0)
        memcpy(at, items, count * sizeof(*items));
    a->expr_count += count;
    a->items[a->count++] = (muc_attribute){ .key = key, .value.exprs = { at, count } };
}

void muc_attributes_set_sizes(muc_attributes *a, muc_graph *graph, muc_attribute_key key,
                              const int64_t *items, uint32_t count)
{
    muc_expr exprs[64];

    for (uint32_t i = 0; i < count; i++)
        exprs[i] = muc_expr_const(graph->pool, (uint32_t)items[i]);
    muc_attributes_set_exprs(a, key, exprs, count);
}

void muc_attributes_set_reals(muc_attributes *a, muc_attribute_key key, const double *items,
                              uint32_t count)
{
    a->items[a->count++] = (muc_attribute){ .key = key, .value.reals = { items, count } };
}

muc_status muc_import_axis(muc_subject subject, int64_t given, uint32_t rank, int64_t *axis)
{
    *axis = given < 0 ? given + rank : given;
    return *axis >= 0 && *axis < rank
               ? MUC_OK
               : muc_fail_on(subject, MUC_MALFORMED, "axis %" PRId64 " of %" PRIu32 " dimensions",
                             given, rank);
}
