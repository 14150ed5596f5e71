/* scan.c - cum_sum, arg_max and arg_min: from element to element along a dimension. */
#include "operators/nest.h"

#define SUM_NUMBERS(X) X(outer) X(extent) X(inner) X(exclusive) X(reverse)

typedef struct sum_numbers {
    SUM_NUMBERS(MUC_NEST_FIELD)
} sum_numbers;

static void measure_sum(const muc_nest_node *n, void *out)
{
    muc_nest_along x =
        muc_nest_along_of(&n->inputs[0], (uint32_t)muc_node_integer(n->node, MUC_KEY_AXIS));

    *(sum_numbers *)out = (sum_numbers){
        x.outer,
        x.extent,
        x.inner,
        muc_node_integer_or(n->node, MUC_KEY_EXCLUSIVE, 0) == 1,
        muc_node_integer_or(n->node, MUC_KEY_REVERSE, 0) == 1,
    };
}

MUC_NEST_NUMBERS(cum_sum, SUM_NUMBERS, measure_sum, 0, T, {
    for (INDEX o = 0; o < outer; o++) {
        for (INDEX i = 0; i < inner; i++) {
            A sum = 0;

            for (INDEX k = 0; k < extent; k++) {
                const INDEX at = (o * extent + (reverse ? extent - 1 - k : k)) * inner + i;
                const A with = sum + (A)a[at];

                y[at] = (T)(exclusive ? sum : with);
                sum = with;
            }
        }
    }
})

#define ARG_NUMBERS(X) X(outer) X(extent) X(inner) X(greatest) X(select_last)

typedef struct arg_numbers {
    ARG_NUMBERS(MUC_NEST_FIELD)
} arg_numbers;

static void measure_arg(const muc_nest_node *n, void *out)
{
    muc_nest_along x =
        muc_nest_along_of(&n->inputs[0], (uint32_t)muc_node_integer(n->node, MUC_KEY_AXIS));

    *(arg_numbers *)out = (arg_numbers){
        x.outer,
        x.extent,
        x.inner,
        n->node->op == MUC_OP_ARG_MAX,
        muc_node_integer_or(n->node, MUC_KEY_SELECT_LAST, 0) == 1,
    };
}

MUC_NEST_NUMBERS(arg, ARG_NUMBERS, measure_arg, MUC_NEST_QUANTIZED, int64_t, {
    for (INDEX o = 0; o < outer; o++) {
        for (INDEX i = 0; i < inner; i++) {
            const T *x = a + o * extent * inner + i;
            INDEX best = 0;
            T q = x[0];

            for (INDEX k = 1; k < extent; k++) {
                const T p = x[k * inner];

                if (greatest ? (select_last ? !ABOVE(q, p) : ABOVE(p, q))
                             : (select_last ? !ABOVE(p, q) : ABOVE(q, p))) {
                    best = k;
                    q = p;
                }
            }
            y[o * inner + i] = (Y)best;
        }
    }
})
