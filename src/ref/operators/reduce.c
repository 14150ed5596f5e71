/* reduce.c - sums, means, extremes and norms over dimensions. Real numbers accumulate in double,
 * integers as integers of 64 bits, in the order in which x has its elements. */
#include <math.h>

#include "base/real.h"
#include "ref/walk.h"

enum { CHUNK = 256 };

/* A node at work: each element of x goes into one accumulator. */
typedef struct reduction {
    const muc_ref_call *call;
    muc_op op;
    size_t done;       /* elements of x */
    double *reals;     /* [output elements], or */
    int64_t *integers; /* the same */
    double *most;      /* log_sum_exp: the greatest of each, which the exponents are less */
    uint64_t flip;     /* u64: makes the order of int64 that of its bits */
} reduction;

static double join_reals(const reduction *r, double a, double x, size_t out)
{
    switch ((unsigned)r->op) {
    case MUC_OP_REDUCE_MAX:
        return x > a || x != x ? x : a;
    case MUC_OP_REDUCE_MIN:
        return x < a || x != x ? x : a;
    case MUC_OP_REDUCE_PROD:
        return a * x;
    case MUC_OP_REDUCE_L1:
        return a + fabs(x);
    case MUC_OP_REDUCE_L2:
    case MUC_OP_REDUCE_SUM_SQUARE:
        return a + x * x;
    case MUC_OP_REDUCE_LOG_SUM_EXP:
        return a + muc_exp(x - r->most[out]);
    default:
        return a + x;
    }
}

static int64_t join_integers(const reduction *r, int64_t a, int64_t x)
{
    uint64_t p = (uint64_t)a, q = (uint64_t)x;
    bool greater = (int64_t)(q ^ r->flip) > (int64_t)(p ^ r->flip);

    switch ((unsigned)r->op) {
    case MUC_OP_REDUCE_MAX:
        return greater ? x : a;
    case MUC_OP_REDUCE_MIN:
        return greater ? a : x;
    case MUC_OP_REDUCE_PROD:
        return (int64_t)(p * q);
    case MUC_OP_REDUCE_L1:
        return (int64_t)(p + (x < 0 && !r->flip ? 0 - q : q));
    case MUC_OP_REDUCE_SUM_SQUARE:
        return (int64_t)(p + q * q);
    default:
        return (int64_t)(p + q);
    }
}

static void add_run(void *arg, size_t n, const size_t *at, const size_t *step)
{
    reduction *r = arg;
    double reals[CHUNK];
    int64_t integers[CHUNK];

    for (size_t i = 0; i < n; i += CHUNK) {
        size_t count = n - i < CHUNK ? n - i : CHUNK, out = at[0] + i * step[0];

        if (r->reals)
            muc_ref_load_reals(r->call->inputs[0], r->done, count, reals);
        else
            muc_ref_load_integers(r->call->inputs[0], r->done, count, integers);
        for (size_t j = 0; j < count; j++, out += step[0]) {
            if (r->reals)
                r->reals[out] = join_reals(r, r->reals[out], reals[j], out);
            else
                r->integers[out] = join_integers(r, r->integers[out], integers[j]);
        }
        r->done += count;
    }
}

/* what an accumulator holds before anything is added */
static void begin(reduction *r, double real, int64_t integer)
{
    for (size_t i = 0; i < r->call->output->elements; i++) {
        if (r->reals)
            r->reals[i] = real;
        else
            r->integers[i] = integer;
    }
    r->done = 0;
}

static double finish(const reduction *r, double a, size_t count, size_t out)
{
    switch ((unsigned)r->op) {
    case MUC_OP_REDUCE_MEAN:
        return a / (double)count;
    case MUC_OP_REDUCE_L2:
        return sqrt(a);
    case MUC_OP_REDUCE_LOG_SUM:
        return muc_log_of_any(a);
    case MUC_OP_REDUCE_LOG_SUM_EXP:
        return muc_log_of_any(a) + r->most[out];
    default:
        return a;
    }
}

static void store(const reduction *r, size_t count)
{
    const muc_ref_value *out = r->call->output;

    for (size_t i = 0; i < out->elements; i++) {
        if (r->reals) {
            double value = finish(r, r->reals[i], count, i);

            muc_ref_store_reals(out, i, 1, &value);
        } else {
            int64_t value = r->integers[i];

            if (r->op == MUC_OP_REDUCE_MEAN && count > 0)
                value = r->flip ? (int64_t)((uint64_t)value / count) : value / (int64_t)count;
            muc_ref_store_integers(out, i, 1, &value);
        }
    }
}

/* the output as it is when reduced dimensions stay as 1, which x broadcasts from */
static muc_ref_value kept_shape(const muc_ref_call *call)
{
    const muc_attribute *axes = muc_node_attribute(call->node, MUC_KEY_AXES);
    muc_ref_value shape = *call->inputs[0];

    for (uint32_t i = 0; i < axes->value.integers.count; i++)
        shape.dims[axes->value.integers.items[i]] = 1;
    return shape;
}

/* whether the operator's results on integers are real before they are stored */
static bool leaves_integers(muc_op op)
{
    return op == MUC_OP_REDUCE_L2 || op == MUC_OP_REDUCE_LOG_SUM || op == MUC_OP_REDUCE_LOG_SUM_EXP;
}

static void walk(const muc_ref_call *call, reduction *r)
{
    muc_ref_value shape = kept_shape(call);
    const muc_ref_value *const operands[] = { &shape };
    muc_ref_walk w;

    muc_ref_walk_of(call->inputs[0], operands, 1, &w);
    muc_ref_walk_each(&w, add_run, r);
}

muc_status muc_kernel_reduce(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    size_t count = call->output->elements;
    reduction r = { .call = call, .op = call->node->op };
    void *scratch;

    MUC_TRY(muc_ref_reserve(call, 2 * count * sizeof(double), &scratch));
    if (muc_ref_is_real(x) || leaves_integers(r.op))
        r.reals = scratch;
    else
        r.integers = scratch;
    r.flip = x->dtype == MUC_U64 ? (uint64_t)1 << 63 : 0;
    if (r.op == MUC_OP_REDUCE_LOG_SUM_EXP) {
        r.op = MUC_OP_REDUCE_MAX;
        r.reals = r.most = (double *)scratch + count;
        begin(&r, -INFINITY, 0);
        walk(call, &r);
        for (size_t i = 0; i < count; i++)
            if (isinf(r.most[i])) /* inf - inf is no exponent */
                r.most[i] = 0;
        r.op = MUC_OP_REDUCE_LOG_SUM_EXP;
        r.reals = scratch;
    }
    if (r.op == MUC_OP_REDUCE_MAX)
        begin(&r, -INFINITY, (int64_t)((uint64_t)INT64_MIN ^ r.flip));
    else if (r.op == MUC_OP_REDUCE_MIN)
        begin(&r, INFINITY, (int64_t)((uint64_t)INT64_MAX ^ r.flip));
    else
        begin(&r, r.op == MUC_OP_REDUCE_PROD, r.op == MUC_OP_REDUCE_PROD);
    walk(call, &r);
    store(&r, count ? x->elements / count : 0);
    return MUC_OK;
}
