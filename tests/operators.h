/* operators.h - graphs as text, run on given numbers, against numbers worked out elsewhere. */
#ifndef TEST_OPERATORS_H
#define TEST_OPERATORS_H

#include "check.h"

#include <math.h>

#include "graph/graph.h"
#include "ref/ref.h"

static inline muc_graph *graph_of(muc_context *ctx, const char *text)
{
    const muc_bytes bytes = { (const uint8_t *)text, strlen(text), "test" };
    muc_graph *graph;

    CHECK_OK(ctx, muc_graph_parse(ctx, bytes, &graph));
    return graph;
}

static inline double element_of(const muc_ref_view *view, size_t i)
{
    if (view->dtype == MUC_F32)
        return (double)((const float *)view->data)[i];
    if (view->dtype == MUC_F64)
        return ((const double *)view->data)[i];
    return (double)muc_dtype_integer(view->dtype, (const uint8_t *)view->data +
                                                      i * muc_dtype_get(view->dtype)->block_bytes);
}

/* The values of tensor `name`, computed by a graph whose inputs are all constants, are the count
 * expected ones, within tolerance (relative above 1) where it is not 0. */
static inline void check_values_at(int line, const char *text, const char *name,
                                   const double *expected, size_t count, double tolerance)
{
    muc_context *ctx = muc_context_new(2);
    muc_graph *graph = graph_of(ctx, text);
    const uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    muc_ref_view view;
    muc_ref *ref;

    CHECK_OK(ctx, muc_ref_open(ctx, graph, &ref));
    CHECK_OK(ctx, muc_ref_run(ref, bindings, NULL, 0));
    CHECK(muc_ref_get(ref, muc_graph_find(graph, name), &view));
    if (view.elements != count)
        fail_msg("line %d: '%s' has %zu elements, expected %zu", line, name, view.elements, count);
    for (size_t i = 0; i < count; i++) {
        double found = element_of(&view, i), scale = fmax(1, fabs(expected[i]));

        if (!(fabs(found - expected[i]) <= tolerance * scale || found == expected[i] ||
              (isnan(found) && isnan(expected[i]))))
            fail_msg("line %d: '%s'[%zu] is %.9g, expected %.9g", line, name, i, found,
                     expected[i]);
    }
    muc_ref_close(ref);
    muc_graph_free(graph);
    muc_context_free(ctx);
}

/* what a graph's text gives as tensor y, exactly or within a tolerance */
#define CHECK_NEAR(text, tolerance, ...) \
    do { \
        const double expected_[] = { __VA_ARGS__ }; \
        check_values_at(__LINE__, "graph test\n" text, "y", expected_, \
                        sizeof(expected_) / sizeof(expected_[0]), tolerance); \
    } while (0)
#define CHECK_GIVES(text, ...) CHECK_NEAR(text, 0, __VA_ARGS__)

#endif
