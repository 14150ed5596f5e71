/* element_loops.c - operators element by element, by their formulas (graph/elementwise.def).
 * Numbers of f32 are computed as generated code does, by the runtime's mur_real.h; f64 by
 * graph/formula.c. */
#include <math.h>

#include "graph/formula.h"
#include "mur_real_wide.h"
#include "ref/walk.h"

typedef struct work work;
/* out[i] = the formula of elements of a and b that are steps of 0 or more apart */
typedef void loop(const work *w, const void *a, size_t a_step, const void *b, size_t b_step,
                  void *out, size_t n);

/* A node's formula at work. */
struct work {
    loop *loop;             /* NULL: by real, whatever the type */
    muc_formula_real *real; /* in binary64 */
    muc_formula_values values;
    const muc_ref_value *a, *b, *out;
    size_t done; /* elements */
};

static void loop_f64(const work *w, const void *a, size_t a_step, const void *b, size_t b_step,
                     void *out, size_t n)
{
    const double *p = a, *q = b;
    bool is_truth = w->out->dtype == MUC_BOOL;

    for (size_t i = 0; i < n; i++, p += a_step, q += b_step) {
        double value = w->real(*p, *q, &w->values);

        if (is_truth)
            ((uint8_t *)out)[i] = (uint8_t)value;
        else
            ((double *)out)[i] = value;
    }
}

/* ---- a loop for each formula and type ---- */

#define OF(of_f32, of_f64) of_f32
#define R(number) number##f
#include "graph/primitives.h"

#define LOOP(name, type, out_type, element, formula) \
    static void name(const work *w, const void *a, size_t a_step, const void *b, size_t b_step, \
                     void *out, size_t n) \
    { \
        typedef type S; \
        typedef out_type T; \
        const S *p = a, *q = b; \
        T *to = out; \
        BEFORE_##element; \
        for (size_t i = 0; i < n; i++, p += a_step, q += b_step) { \
            const S x = element(*p), y = element(*q); \
            (void)x, (void)y; \
            to[i] = (T)(formula); \
        } \
    }

#define LOCAL(name, key, kind, fallback) const float name = (float)w->values.name;
#define UNUSED(name, key, kind, fallback) (void)name;
#define REAL(x) (x)
#define BEFORE_REAL \
    MUC_FORMULA_ATTRIBUTES(LOCAL) \
    MUC_FORMULA_ATTRIBUTES(UNUSED)
/* sums and products of integers are those of their bits */
#define INTEGER(x) (x)
#define BEFORE_INTEGER \
    typedef uint64_t U; \
    (void)w, (void)sizeof(U)
#define TRUTH(x) (x) != 0
#define BEFORE_TRUTH BEFORE_INTEGER

/* T: uint8_t of truths, else the inputs' type S */
#define INTEGER_LOOPS(id, out_type, whole) \
    LOOP(id##_I64, int64_t, out_type, INTEGER, whole) \
    LOOP(id##_I32, int32_t, out_type, INTEGER, whole) \
    LOOP(id##_I16, int16_t, out_type, INTEGER, whole) \
    LOOP(id##_I8, int8_t, out_type, INTEGER, whole) \
    LOOP(id##_U64, uint64_t, out_type, INTEGER, whole) \
    LOOP(id##_U32, uint32_t, out_type, INTEGER, whole) \
    LOOP(id##_U16, uint16_t, out_type, INTEGER, whole) \
    LOOP(id##_U8, uint8_t, out_type, INTEGER, whole)
#define MUC_OP(id, ...)
#define MUC_FORMULA_REAL(id, formula) LOOP(id##_F32, float, float, REAL, formula)
#define MUC_FORMULA_NUMBER(id, formula, whole) \
    LOOP(id##_F32, float, float, REAL, formula) \
    INTEGER_LOOPS(id, S, whole)
#define MUC_FORMULA_WHOLE(id, whole) \
    INTEGER_LOOPS(id, S, whole) \
    LOOP(id##_BOOL, uint8_t, uint8_t, TRUTH, whole)
#define MUC_FORMULA_TRUTH(id, formula) \
    LOOP(id##_F32, float, uint8_t, REAL, formula) \
    INTEGER_LOOPS(id, uint8_t, formula) \
    LOOP(id##_BOOL, uint8_t, uint8_t, TRUTH, formula)
#define MUC_FORMULA_TEST(id, formula) LOOP(id##_F32, float, uint8_t, REAL, formula)
#include "graph/ops.def"

static loop *loop_of(muc_formula formula, muc_dtype dtype)
{
#define ENTRY(id, dtype) [MUC_##dtype] = id##_##dtype
#define INTEGER_ENTRIES(id) \
    ENTRY(id, I64), ENTRY(id, I32), ENTRY(id, I16), ENTRY(id, I8), ENTRY(id, U64), ENTRY(id, U32), \
        ENTRY(id, U16), ENTRY(id, U8)
    static loop *const loops[MUC_FORMULA_COUNT][MUC_DTYPE_COUNT] = {
#define MUC_OP(id, ...)
#define MUC_FORMULA_REAL(id, formula) [MUC_FORMULA_##id] = { ENTRY(id, F32) },
#define MUC_FORMULA_NUMBER(id, formula, whole) \
    [MUC_FORMULA_##id] = { ENTRY(id, F32), INTEGER_ENTRIES(id) },
#define MUC_FORMULA_WHOLE(id, whole) [MUC_FORMULA_##id] = { INTEGER_ENTRIES(id), ENTRY(id, BOOL) },
#define MUC_FORMULA_TRUTH(id, formula) \
    [MUC_FORMULA_##id] = { ENTRY(id, F32), INTEGER_ENTRIES(id), ENTRY(id, BOOL) },
#define MUC_FORMULA_TEST(id, formula) [MUC_FORMULA_##id] = { ENTRY(id, F32) },
#include "graph/ops.def"
    };

    return dtype == MUC_F64 ? loop_f64 : loops[formula][dtype];
}

/* ---- running one ---- */

/* n elements: a's and b's from the index at on, steps apart */
static void run(const work *w, const size_t *at, const size_t *step, size_t first, size_t n)
{
    const uint8_t *a = w->a->read, *b = w->b->read;
    size_t width = muc_ref_width(w->a);

    if (w->loop) {
        w->loop(w, a + at[0] * width, step[0], b + at[1] * width, step[1],
                (uint8_t *)w->out->data + first * muc_ref_width(w->out), n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        double value = w->real(muc_ref_real(w->a, at[0] + i * step[0]),
                               muc_ref_real(w->b, at[1] + i * step[1]), &w->values);

        muc_ref_store_reals(w->out, first + i, 1, &value);
    }
}

static void run_range(void *arg, size_t part, size_t first, size_t end)
{
    const size_t at[] = { first, first }, step[] = { 1, 1 };

    (void)part;
    run(arg, at, step, first, end - first);
}

static void run_walk(void *arg, size_t n, const size_t *at, const size_t *step)
{
    work *w = arg;

    run(w, at, step, w->done, n);
    w->done += n;
}

/* out = the formula of a and b; out may be a if that has its shape */
static void combine(work *w, const muc_ref_value *a, const muc_ref_value *b)
{
    const muc_ref_value *const values[] = { a, b };
    muc_ref_walk walk;

    w->a = a;
    w->b = b;
    w->done = 0;
    muc_ref_walk_of(w->out, values, 2, &walk);
    muc_ref_walk_each(&walk, run_walk, w);
}

static void divide(const muc_ref_value *out, size_t by)
{
    for (size_t i = 0; i < out->elements; i++) {
        if (out->dtype == MUC_F32)
            ((float *)out->data)[i] /= (float)by;
        else
            ((double *)out->data)[i] /= (double)by;
    }
}

/* as transformers have it: the series of muc_ref_exp, of which the formula's bits are */
static muc_status silu_f32(const muc_ref_call *call)
{
    const float *x = call->inputs[0]->read;
    float *y = call->output->data, alpha = (float)muc_node_real_or(call->node, MUC_KEY_ALPHA, 1);
    size_t count = call->output->elements;

    for (size_t i = 0; i < count; i++)
        y[i] = -(alpha * x[i]);
    muc_ref_exp(y, count);
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] / (1 + y[i]);
    return MUC_OK;
}

muc_status muc_kernel_elementwise(const muc_ref_call *call)
{
    const muc_node *node = call->node;
    const muc_ref_value *x = call->inputs[0];
    muc_formula formula = muc_formula_of(node);
    work w = { .loop = loop_of(formula, x->dtype),
               .real = muc_formula_real_of(formula),
               .values = muc_formula_values_of(node),
               .a = x,
               .b = x,
               .out = call->output };

    if (node->op == MUC_OP_SILU && x->dtype == MUC_F32)
        return silu_f32(call);
    if (muc_op_get(node->op)->most_inputs == 1)
        return muc_ref_split(call->ctx, x->elements, x->elements * 64, run_range, &w);
    if (node->input_count == 1)
        return muc_kernel_copy(call);
    combine(&w, x, call->inputs[1]);
    for (uint32_t i = 2; i < node->input_count; i++)
        combine(&w, call->output, call->inputs[i]);
    if (muc_op_has(node->op, MUC_OP_AVERAGES))
        divide(call->output, node->input_count);
    return MUC_OK;
}
