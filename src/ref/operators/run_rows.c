/* run_rows.c - operators that make a row of a row, by the steps of operators/rows.def. */
#include <math.h>

#include "base/real.h"
#include "mur_quantlib.h"
#include "mur_real.h"
#include "ref/integer/quantized.h"

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

/* ---- a function for each operator and type ---- */

/* makes n elements, step apart */
typedef void row_function(const void *in, void *out, size_t n, size_t step, const muc_node *node);

#define ROW(name, type, ...) \
    static void name(const void *in, void *out, size_t n, size_t step, const muc_node *node) \
    { \
        typedef type T; \
        const T *from = in; \
        T *to = out; \
        const T beta = (T)muc_node_real_or(node, MUC_KEY_BETA, 1); \
        const int64_t p = muc_node_integer_or(node, MUC_KEY_P, 2); \
        (void)beta, (void)p; \
        __VA_ARGS__ \
    }
#define DO_ONCE(...) __VA_ARGS__;
#define DO_EACH(...) \
    for (size_t i = 0; i < n; i++) { \
        __VA_ARGS__; \
    }
#define x from[i * step]
#define y to[i * step]
#include "graph/primitives.h"

#define OF(of_f32, of_f64) of_f32
#define ONCE DO_ONCE
#define EACH DO_EACH
#define MUC_ROWS(id, in_f32, ...) ROW(id##_F32, float, __VA_ARGS__)
#include "operators/rows.def"
#undef OF
#define OF(of_f32, of_f64) of_f64
#define ONCE DO_ONCE
#define EACH DO_EACH
#define MUC_ROWS(id, in_f32, ...) ROW(id##_F64, double, __VA_ARGS__)
#include "operators/rows.def"
#undef x
#undef y

/* makes n elements, in place; words b and c of inputs 1 and 2: one for each, or for all (step 0) */
typedef void integer_row(int32_t *row, size_t n, const int32_t *b, size_t b_step, const int32_t *c,
                         size_t c_step, const muc_node *node);

#define INTEGER_ROW(name, ...) \
    static void name(int32_t *row, size_t n, const int32_t *b, size_t b_step, const int32_t *c, \
                     size_t c_step, const muc_node *node) \
    { \
        typedef int64_t A; \
        const unsigned shift = (unsigned)muc_node_integer_or(node, MUC_KEY_SHIFT, 0); \
        const int32_t levels = (int32_t)muc_node_integer_or(node, MUC_KEY_LEVELS, 0); \
        (void)sizeof(A), (void)shift, (void)levels, (void)b, (void)b_step, (void)c, (void)c_step; \
        __VA_ARGS__ \
    }
#define x row[i]
#define y row[i]
#define weight b[i * b_step]
#define bias c[i * c_step]
#define ONCE DO_ONCE
#define EACH DO_EACH
#define MUC_INTEGER_ROWS(id, ...) INTEGER_ROW(id##_WHOLE, __VA_ARGS__)
#include "operators/rows.def"
#undef x
#undef y
#undef weight
#undef bias

static const struct {
    row_function *f32, *f64;
    integer_row *whole;
} functions[MUC_OP_COUNT] = {
#define MUC_ROWS(id, in_f32, ...) [MUC_OP_##id] = { (in_f32) ? id##_F32 : NULL, id##_F64, NULL },
#define MUC_INTEGER_ROWS(id, ...) [MUC_OP_##id] = { NULL, NULL, id##_WHOLE },
#include "operators/rows.def"
};

/* words of an input, or NULL, and what they are apart */
static const int32_t *words_of(const muc_ref_call *call, uint32_t i, size_t *step)
{
    const muc_ref_value *value = muc_ref_input_of(call, i);

    *step = value && value->elements > 1;
    return value ? value->read : NULL;
}

static muc_status make_integers(const muc_ref_call *call)
{
    const muc_ref_value *in = call->inputs[0];
    size_t n = in->columns, b_step, c_step;
    const int32_t *b = words_of(call, 1, &b_step), *c = words_of(call, 2, &c_step);
    int32_t *row;
    void *room;

    MUC_TRY(muc_ref_reserve(call, n * sizeof(*row), &room));
    row = room;
    for (size_t first = 0; n && first < in->elements; first += n) {
        for (size_t i = 0; i < n; i++)
            row[i] = muc_q_get(in, first + i);
        functions[call->node->op].whole(row, n, b, b_step, c, c_step, call->node);
        for (size_t i = 0; i < n; i++)
            muc_q_put(call->output, first + i, row[i]);
    }
    return MUC_OK;
}

muc_status muc_kernel_rows(const muc_ref_call *call)
{
    const muc_ref_value *in = call->inputs[0], *out = call->output;
    row_function *f32 = in->dtype == MUC_F32 ? functions[call->node->op].f32 : NULL;
    muc_ref_along a;
    void *row;

    if (functions[call->node->op].whole)
        return make_integers(call);
    a = muc_ref_along_of(in, (size_t)muc_node_integer(call->node, MUC_KEY_AXIS));
    MUC_TRY(muc_ref_reserve(call, a.extent * sizeof(double), &row));
    for (size_t i = 0; i < a.outer * a.inner; i++) {
        size_t at = i / a.inner * a.extent * a.inner + i % a.inner;

        if (f32) {
            f32((const float *)in->read + at, (float *)out->data + at, a.extent, a.inner,
                call->node);
            continue;
        }
        load_line(in, a, at, row);
        functions[call->node->op].f64(row, row, a.extent, 1, call->node);
        store_line(out, a, at, row);
    }
    return MUC_OK;
}
