/* run_rows.c - operators that make a row of a row, by the steps of operators/rows.def. */
#include <math.h>

#include "base/real.h"
#include "mur_real.h"
#include "ref/walk.h"

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

muc_status muc_kernel_rows(const muc_ref_call *call)
{
    static const struct {
        row_function *f32, *f64;
    } functions[MUC_OP_COUNT] = {
#define MUC_ROWS(id, in_f32, ...) [MUC_OP_##id] = { (in_f32) ? id##_F32 : NULL, id##_F64 },
#include "operators/rows.def"
    };
    const muc_ref_value *in = call->inputs[0], *out = call->output;
    row_function *f32 = in->dtype == MUC_F32 ? functions[call->node->op].f32 : NULL;
    muc_ref_along a = muc_ref_along_of(in, (size_t)muc_node_integer(call->node, MUC_KEY_AXIS));
    void *row;

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
