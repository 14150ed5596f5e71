/* attributes.c - lists of attributes. */
#include "formats/attributes.h"

#include <string.h>

void muc_attributes_set(muc_attributes *a, muc_attribute_key key, int64_t value)
{
    a->items[a->count++] = (muc_attribute){ .key = key, .value.integer = value };
}

void muc_attributes_set_real(muc_attributes *a, muc_attribute_key key, double value)
{
    a->items[a->count++] = (muc_attribute){ .key = key, .value.real = value };
}

void muc_attributes_set_integers(muc_attributes *a, muc_attribute_key key, const int64_t *items,
                                 uint32_t count)
{
    int64_t *at = a->integers + a->integer_count;

    memcpy(at, items, count * sizeof(*items));
    a->integer_count += count;
    a->items[a->count++] = (muc_attribute){ .key = key, .value.integers = { at, count } };
}

void muc_attributes_set_exprs(muc_attributes *a, muc_graph *graph, muc_attribute_key key,
                              const int64_t *items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        a->exprs[i] = muc_expr_const(graph->pool, (uint32_t)items[i]);
    a->items[a->count++] = (muc_attribute){ .key = key, .value.exprs = { a->exprs, count } };
}
