/* formula.h - the formulas of elementwise.def: which one a node has, and its value in binary64. */
#ifndef MUC_GRAPH_FORMULA_H
#define MUC_GRAPH_FORMULA_H

#include "graph/graph.h"

typedef enum muc_formula {
#define MUC_OP(id, ...)
#define MUC_FORMULA_REAL(id, formula) MUC_FORMULA_##id,
#define MUC_FORMULA_NUMBER(id, formula, whole) MUC_FORMULA_##id,
#define MUC_FORMULA_WHOLE(id, whole) MUC_FORMULA_##id,
#define MUC_FORMULA_TRUTH(id, formula) MUC_FORMULA_##id,
#define MUC_FORMULA_TEST(id, formula) MUC_FORMULA_##id,
#include "graph/ops.def"
    MUC_FORMULA_COUNT
} muc_formula;

/* Of a node: MUC_FORMULA_COUNT if it has none. */
muc_formula muc_formula_of(const muc_node *node);

/* X(name in formulas, attribute, real or integer, value where it is absent) */
#define MUC_FORMULA_ATTRIBUTES(X) \
    X(alpha, ALPHA, real, 1) \
    X(beta, BETA, real, 0) \
    X(gamma, GAMMA, real, 1) \
    X(bias, BIAS, real, 0) \
    X(lambda, LAMBDA, real, 0) \
    X(detect_negative, DETECT_NEGATIVE, integer, 1) \
    X(detect_positive, DETECT_POSITIVE, integer, 1)

typedef struct muc_formula_values {
#define MUC_FORMULA_ATTRIBUTE(name, key, kind, fallback) double name;
    MUC_FORMULA_ATTRIBUTES(MUC_FORMULA_ATTRIBUTE)
#undef MUC_FORMULA_ATTRIBUTE
} muc_formula_values;
muc_formula_values muc_formula_values_of(const muc_node *node);

/* The value for one element of each input; y counts where there are two. Truths are 0 or 1. NULL
 * where a formula has integers alone. */
typedef double muc_formula_real(double x, double y, const muc_formula_values *v);
muc_formula_real *muc_formula_real_of(muc_formula formula);

#endif
