/* reduce.c - reductions by their formulas (graph/reductions.def). Real numbers accumulate in
 * double, integers as integers of 64 bits, in the order in which x has its elements. */
#include <math.h>
#include <string.h>

#include "base/real.h"
#include "ref/walk.h"

#define OF(of_f32, of_f64) of_f64
#define R(number) number
#include "graph/primitives.h"

enum { CHUNK = 256 };

typedef struct fold_form fold_form;

/* A node at work: each element of x goes into one sum. */
typedef struct reduction {
    const muc_ref_call *call;
    const fold_form *fold;
    bool is_real;
    size_t done;  /* elements of x */
    void *sums;   /* [output elements] of double or of integers of 64 bits */
    double *most; /* NULL, or the greatest element of each sum, 0 where that is infinite */
} reduction;

/* The formulas of a reduction for one type of sums, over arrays of them. */
struct fold_form {
    void (*start)(void *sums, size_t count);
    /* takes n elements of x into the sums from number out, step apart */
    void (*add)(const reduction *r, const void *x, size_t n, size_t out, size_t step);
    /* makes results of count sums of n elements each */
    void (*end)(const reduction *r, size_t count, size_t n);
    const char *step; /* as the row has it */
};

#define lowest ((T)-1 < 1 ? (T)INT64_MIN : 0)
#define highest ((T)-1 < 1 ? (T)INT64_MAX : (T)-1)
#define FOLD(name, type, at_first, with_x, at_last) \
    static void start_##name(void *sums, size_t count) \
    { \
        typedef type T; \
        for (size_t i = 0; i < count; i++) \
            ((T *)sums)[i] = at_first; \
    } \
    static void add_##name(const reduction *r, const void *from, size_t count, size_t out, \
                           size_t step) \
    { \
        typedef type T; \
        typedef uint64_t U, A; \
        T *sums = r->sums; \
        (void)sizeof(U), (void)sizeof(A); \
        for (size_t i = 0; i < count; i++, out += step) { \
            const T sum = sums[out], x = ((const T *)from)[i]; \
            const double most = r->most ? r->most[out] : 0; \
            (void)most; \
            sums[out] = (T)(with_x); \
        } \
    } \
    static void end_##name(const reduction *r, size_t count, size_t each) \
    { \
        typedef type T; \
        const T n = (T)each; \
        (void)n; \
        for (size_t i = 0; i < count; i++) { \
            const T sum = ((const T *)r->sums)[i]; \
            const double most = r->most ? r->most[i] : 0; \
            (void)most; \
            ((T *)r->sums)[i] = at_last; \
        } \
    }
#define MUC_OP(id, ...)
#define MUC_FOLD_REAL(id, start, step, end) FOLD(id##_F64, double, start, step, end)
#define MUC_FOLD_WHOLE(id, start, step, end) \
    FOLD(id##_I64, int64_t, start, step, end) \
    FOLD(id##_U64, uint64_t, start, step, end)
#include "graph/ops.def"

static const fold_form *fold_of(muc_op op, bool is_real, bool is_signed)
{
    static const fold_form forms[MUC_OP_COUNT][3] = {
#define MUC_OP(id, ...)
#define FORM(name, step) \
    { \
        start_##name, add_##name, end_##name, #step \
    }
#define MUC_FOLD_REAL(id, start, step, end) [MUC_OP_##id][0] = FORM(id##_F64, step),
#define MUC_FOLD_WHOLE(id, start, step, end) \
    [MUC_OP_##id][1] = FORM(id##_I64, step), [MUC_OP_##id][2] = FORM(id##_U64, step),
#include "graph/ops.def"
    };
    const fold_form *whole = &forms[op][is_signed ? 1 : 2];

    return is_real || !whole->step ? forms[op] : whole;
}

static void add_run(void *arg, size_t n, const size_t *at, const size_t *step)
{
    reduction *r = arg;
    double real[CHUNK];
    int64_t whole[CHUNK];

    for (size_t i = 0; i < n; i += CHUNK) {
        size_t count = n - i < CHUNK ? n - i : CHUNK;

        if (r->is_real)
            muc_ref_load_reals(r->call->inputs[0], r->done, count, real);
        else
            muc_ref_load_integers(r->call->inputs[0], r->done, count, whole);
        r->fold->add(r, r->is_real ? (const void *)real : whole, count, at[0] + i * step[0],
                     step[0]);
        r->done += count;
    }
}

/* sums = those of all elements */
static void add_all(reduction *r, const fold_form *fold, void *sums)
{
    const muc_attribute *axes = muc_node_attribute(r->call->node, MUC_KEY_AXES);
    muc_ref_value shape = *r->call->inputs[0]; /* the output's, reduced dimensions being 1 */
    const muc_ref_value *const operands[] = { &shape };
    muc_ref_walk w;

    r->fold = fold;
    r->sums = sums;
    r->done = 0;
    fold->start(sums, r->call->output->elements);
    for (uint32_t i = 0; i < axes->value.integers.count; i++)
        shape.dims[axes->value.integers.items[i]] = 1;
    muc_ref_walk_of(r->call->inputs[0], operands, 1, &w);
    muc_ref_walk_each(&w, add_run, r);
}

/* most = the greatest of each sum's elements; inf - inf is not an exponent */
static void find_most(reduction *r, double *most)
{
    add_all(r, fold_of(MUC_OP_REDUCE_MAX, true, true), most);
    for (size_t i = 0; i < r->call->output->elements; i++)
        if (isinf(most[i]))
            most[i] = 0;
    r->most = most;
}

muc_status muc_kernel_reduce(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *out = call->output;
    muc_op op = call->node->op;
    const fold_form *fold = fold_of(op, muc_ref_is_real(x), x->dtype != MUC_U64);
    size_t count = out->elements, each = count ? x->elements / count : 0;
    reduction r = { .call = call, .is_real = fold == fold_of(op, true, true) };
    void *sums;

    MUC_TRY(muc_ref_reserve(call, 2 * count * sizeof(double), &sums));
    if (strstr(fold->step, "most"))
        find_most(&r, (double *)sums + count);
    add_all(&r, fold, sums);
    fold->end(&r, count, r.is_real || each ? each : 1); /* a mean of no integers is 0 */
    if (r.is_real)
        muc_ref_store_reals(out, 0, count, sums);
    else
        muc_ref_store_integers(out, 0, count, sums);
    return MUC_OK;
}
