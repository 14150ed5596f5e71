/* along_axis.c - operators that work along one dimension of x [outer][extent][inner]: each line of
 * extent elements goes through double, or integers of 64 bits; a softmax of f32 is generated
 * code's. */
#include <math.h>
#include <string.h>

#include "base/real.h"
#include "mur_real.h"
#include "ref/walk.h"

/* One line at work. */
typedef struct line {
    const muc_ref_call *call;
    size_t n;
    double *x; /* [n] */
    double *y; /* [n], may be x */
} line;

typedef void line_function(line *l);

static double greatest(const line *l)
{
    double most = -INFINITY;

    for (size_t i = 0; i < l->n; i++)
        most = l->x[i] > most ? l->x[i] : most;
    return most;
}

static void softmax(line *l)
{
    double beta = muc_node_real_or(l->call->node, MUC_KEY_BETA, 1);
    double most = greatest(l), sum = 0;

    for (size_t i = 0; i < l->n; i++) {
        l->y[i] = muc_exp(beta * (l->x[i] - most));
        sum += l->y[i];
    }
    for (size_t i = 0; i < l->n; i++)
        l->y[i] /= sum;
}

static void log_softmax(line *l)
{
    double most = greatest(l), sum = 0;

    for (size_t i = 0; i < l->n; i++)
        sum += muc_exp(l->x[i] - most);
    sum = muc_log_of_any(sum);
    for (size_t i = 0; i < l->n; i++)
        l->y[i] = l->x[i] - most - sum;
}

static void hardmax(line *l)
{
    double most = greatest(l);
    bool found = false;

    for (size_t i = 0; i < l->n; i++) {
        bool is_first = !found && l->x[i] == most;

        found = found || is_first;
        l->y[i] = is_first;
    }
}

static void lp_norm(line *l)
{
    bool first_order = muc_node_integer(l->call->node, MUC_KEY_P) == 1;
    double sum = 0;

    for (size_t i = 0; i < l->n; i++)
        sum += first_order ? fabs(l->x[i]) : l->x[i] * l->x[i];
    sum = first_order ? sum : sqrt(sum);
    for (size_t i = 0; i < l->n; i++)
        l->y[i] = sum == 0 ? 0 : l->x[i] / sum;
}

static line_function *function_of(muc_op op)
{
    static line_function *const functions[MUC_OP_COUNT] = {
        [MUC_OP_SOFTMAX] = softmax,
        [MUC_OP_LOG_SOFTMAX] = log_softmax,
        [MUC_OP_HARDMAX] = hardmax,
        [MUC_OP_LP_NORM] = lp_norm,
    };

    return functions[op];
}

static void load_line(const muc_ref_value *from, muc_ref_along a, size_t at, double *x)
{
    if (a.inner == 1) {
        muc_ref_load_reals(from, at, a.extent, x);
        return;
    }
    for (size_t i = 0; i < a.extent; i++)
        muc_ref_load_reals(from, at + i * a.inner, 1, &x[i]);
}

static void store_line(const muc_ref_value *to, muc_ref_along a, size_t at, const double *y)
{
    if (a.inner == 1) {
        muc_ref_store_reals(to, at, a.extent, y);
        return;
    }
    for (size_t i = 0; i < a.extent; i++)
        muc_ref_store_reals(to, at + i * a.inner, 1, &y[i]);
}

static muc_ref_along along_of(const muc_ref_call *call, const muc_ref_value *value)
{
    return muc_ref_along_of(value, (size_t)muc_node_integer(call->node, MUC_KEY_AXIS));
}

/* element 0 of line number i */
static size_t line_at(muc_ref_along a, size_t i)
{
    return i / a.inner * a.extent * a.inner + i % a.inner;
}

/* y = softmax(beta x) or its logarithm, elements step apart, in the steps of generated code */
static void softmax_f32(const float *x, float *y, size_t n, size_t step, float beta, bool is_log)
{
    float most = -INFINITY, sum = 0;

    for (size_t i = 0; i < n; i++)
        most = x[i * step] > most ? x[i * step] : most;
    for (size_t i = 0; i < n; i++) {
        float e = mur_real_exp(beta * (x[i * step] - most));

        sum += e;
        if (!is_log)
            y[i * step] = e;
    }
    if (is_log)
        sum = mur_real_log(sum);
    for (size_t i = 0; i < n; i++)
        y[i * step] = is_log ? x[i * step] - most - sum : y[i * step] / sum;
}

muc_status muc_kernel_softmax(const muc_ref_call *call)
{
    bool is_log = call->node->op == MUC_OP_LOG_SOFTMAX;
    muc_ref_along a = along_of(call, call->output);
    float beta = (float)muc_node_real_or(call->node, MUC_KEY_BETA, 1);
    const float *x = call->inputs[0]->read;

    if (call->output->dtype != MUC_F32)
        return muc_kernel_line(call);
    for (size_t i = 0; i < a.outer * a.inner; i++) {
        size_t at = line_at(a, i);

        softmax_f32(x + at, (float *)call->output->data + at, a.extent, a.inner, beta, is_log);
    }
    return MUC_OK;
}

muc_status muc_kernel_line(const muc_ref_call *call)
{
    muc_ref_along a = along_of(call, call->output);
    line l = { .call = call, .n = a.extent };
    void *room;

    MUC_TRY(muc_ref_reserve(call, a.extent * sizeof(double), &room));
    l.x = l.y = room;
    for (size_t i = 0; i < a.outer * a.inner; i++) {
        load_line(call->inputs[0], a, line_at(a, i), l.x);
        function_of(call->node->op)(&l);
        store_line(call->output, a, line_at(a, i), l.y);
    }
    return MUC_OK;
}

/* -1, 0, 1 as elements i and j of x compare; NaN is above all */
#define COMPARE(argument, id, type) \
    case MUC_##id: { \
        type p = ((const type *)x->read)[i], q = ((const type *)x->read)[j]; \
        return p < q || (q != q && p == p) ? -1 : p > q || (p != p && q == q) ? 1 : 0; \
    }

static int compare(const muc_ref_value *x, size_t i, size_t j)
{
    switch ((unsigned)x->dtype) {
        MUC_REF_NUMBERS(COMPARE, )
    }
    return 0;
}

/* whether place i of a line comes before place j in the order that top_k wants */
static bool precedes(const muc_ref_value *x, muc_ref_along a, size_t at, int sign, int64_t i,
                     int64_t j)
{
    int order = sign * compare(x, at + (size_t)i * a.inner, at + (size_t)j * a.inner);

    return order > 0 || (order == 0 && i < j);
}

/* sinks the root of a heap whose parents come after their children */
static void sink(const muc_ref_value *x, muc_ref_along a, size_t at, int sign, int64_t *heap,
                 size_t root, size_t count)
{
    for (size_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        int64_t held = heap[root];

        if (child + 1 < count && precedes(x, a, at, sign, heap[child], heap[child + 1]))
            child++;
        if (!precedes(x, a, at, sign, held, heap[child]))
            return;
        heap[root] = heap[child];
        heap[child] = held;
        root = child;
    }
}

/* the first k places of a line in order, by heap sort of at most k kept places */
static void choose(const muc_ref_value *x, muc_ref_along a, size_t at, int sign, int64_t *heap,
                   size_t k)
{
    for (size_t i = 0; i < k; i++)
        heap[i] = (int64_t)i;
    for (size_t i = k / 2; i-- > 0;)
        sink(x, a, at, sign, heap, i, k);
    for (size_t i = k; k > 0 && i < a.extent; i++) {
        if (!precedes(x, a, at, sign, (int64_t)i, heap[0]))
            continue;
        heap[0] = (int64_t)i;
        sink(x, a, at, sign, heap, 0, k);
    }
    for (size_t i = k; i-- > 1;) {
        int64_t last = heap[0];

        heap[0] = heap[i];
        heap[i] = last;
        sink(x, a, at, sign, heap, 0, i);
    }
}

muc_status muc_kernel_top_k(const muc_ref_call *call)
{
    int sign = muc_node_integer_or(call->node, MUC_KEY_LARGEST, 1) == 1 ? 1 : -1;
    const muc_ref_value *x = call->inputs[0];
    muc_ref_along a = along_of(call, x), b = along_of(call, call->output);
    size_t width = muc_ref_width(x);
    void *heap;

    if (b.extent > a.extent)
        return muc_ref_fail(call, "%zu of %zu elements", b.extent, a.extent);
    MUC_TRY(muc_ref_reserve(call, b.extent * sizeof(int64_t), &heap));
    for (size_t row = 0; row < a.outer * a.inner; row++) {
        size_t at = line_at(a, row), to = line_at(b, row);

        choose(x, a, at, sign, heap, b.extent);
        for (size_t i = 0; i < b.extent; i++) {
            size_t place = (size_t)((int64_t *)heap)[i];

            ((int64_t *)call->outputs[1]->data)[to + i * b.inner] = (int64_t)place;
            memcpy((uint8_t *)call->output->data + (to + i * b.inner) * width,
                   (const uint8_t *)x->read + (at + place * a.inner) * width, width);
        }
    }
    return MUC_OK;
}
