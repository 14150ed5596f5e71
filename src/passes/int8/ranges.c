/* ranges.c - collects histograms of values, and finds the bounds whose clipping costs least. */
#include "passes/int8/ranges.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = MUC_RANGE_BINS };

muc_status muc_ranges_new(muc_context *ctx, const muc_graph *graph, muc_ranges *out)
{
    *out = (muc_ranges){ .graph = graph, .count = graph->tensor_count };
    MUC_TRY(MUC_NEW_ARRAY(ctx, graph->name, graph->tensor_count, &out->tensors));
    MUC_TRY(MUC_NEW_ARRAY(ctx, graph->name, graph->tensor_count, &out->masks));
    muc_masks_find(graph, out->masks);
    for (uint32_t i = 0; i < out->count; i++)
        out->tensors[i] = (muc_range){ .least = INFINITY, .most = -INFINITY };
    return MUC_OK;
}

void muc_ranges_free(muc_ranges *ranges)
{
    for (uint32_t i = 0; ranges->tensors && i < ranges->count; i++)
        free(ranges->tensors[i].counts);
    free(ranges->tensors);
    free(ranges->masks);
}

/* twice the reach: two bins become one */
static void widen(muc_range *range)
{
    uint64_t wide[BINS] = { 0 };

    for (size_t i = 0; i < BINS; i++)
        wide[BINS / 4 + i / 2] += range->counts[i];
    memcpy(range->counts, wide, sizeof(wide));
    range->reach *= 2;
}

static muc_status reach_to(muc_context *ctx, muc_range *range, float most)
{
    int exponent;

    if (!range->counts) {
        MUC_TRY(MUC_NEW_ARRAY(ctx, "ranges", BINS, &range->counts));
        (void)frexpf(most, &exponent);
        range->reach = ldexpf(1, exponent < -100 ? -100 : exponent);
    }
    while (range->reach <= most)
        widen(range);
    return MUC_OK;
}

static void count_one(muc_range *range, float x)
{
    double bin = ((double)x / (double)range->reach + 1) * (BINS / 2);

    if (x != 0)
        range->counts[bin < 0 ? 0 : bin >= BINS ? BINS - 1 : (size_t)bin]++;
}

muc_status muc_range_add(muc_context *ctx, muc_range *range, const char *name, const float *x,
                         size_t count)
{
    float least = range->least, most = range->most;

    for (size_t i = 0; i < count; i++) {
        if (!isfinite(x[i]))
            return muc_fail(ctx, MUC_MALFORMED, name, MUC_NO_OFFSET,
                            "element %zu is not finite on what calibrates it", i);
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
    }
    if (least > most)
        return MUC_OK;
    range->least = least;
    range->most = most;
    MUC_TRY(reach_to(ctx, range, fmaxf(-least, most)));
    for (size_t i = 0; i < count; i++)
        count_one(range, x[i]);
    return MUC_OK;
}

/* has values that a run decides */
static bool is_seen(const muc_tensor *tensor)
{
    return (tensor->kind == MUC_TENSOR_INPUT || tensor->kind == MUC_TENSOR_ACTIVATION) &&
           tensor->dtype == MUC_F32;
}

/* a tensor that softmax reads, or a mask, without the depths that do not matter */
static muc_status add_masked(muc_context *ctx, const muc_ranges *ranges, const muc_ref *ref,
                             uint32_t tensor, const muc_ref_view *view)
{
    const muc_graph *graph = ranges->graph;
    muc_status status;
    float *raised;

    MUC_TRY(MUC_NEW_ARRAY(ctx, graph->name, view->elements, &raised));
    muc_mask_raise(graph, ref, tensor, ranges->masks[tensor], view, raised);
    status = muc_range_add(ctx, &ranges->tensors[tensor], graph->tensors[tensor].name, raised,
                           view->elements);
    free(raised);
    return status;
}

muc_status muc_ranges_add(muc_context *ctx, muc_ranges *ranges, const muc_ref *ref)
{
    const muc_graph *graph = ranges->graph;

    for (uint32_t i = 0; i < ranges->count; i++) {
        const muc_tensor *tensor = &graph->tensors[i];
        muc_ref_view view;

        if (!is_seen(tensor) || !muc_ref_get(ref, i, &view))
            continue;
        if (ranges->masks[i] != MUC_NO_MASK)
            MUC_TRY(add_masked(ctx, ranges, ref, i, &view));
        else
            MUC_TRY(
                muc_range_add(ctx, &ranges->tensors[i], tensor->name, view.data, view.elements));
    }
    ranges->runs++;
    return MUC_OK;
}

muc_status muc_ranges_assume(muc_context *ctx, muc_ranges *ranges, bool unlike)
{
    for (uint32_t i = 0; i < ranges->count; i++) {
        const muc_tensor *tensor = &ranges->graph->tensors[i];
        const float ends[] = { unlike ? -0.25f * (float)(i % 3) : 0,
                               unlike ? (float)(1 + i % 5) : 1 };

        if (is_seen(tensor))
            MUC_TRY(muc_range_add(ctx, &ranges->tensors[i], tensor->name, ends, MUC_COUNT(ends)));
    }
    ranges->runs++;
    ranges->assumed = true;
    return MUC_OK;
}

muc_status muc_range_join(muc_context *ctx, muc_range *into, const muc_range *other)
{
    muc_range wide = *other;
    uint64_t counts[BINS];

    if (!other->counts)
        return MUC_OK;
    into->least = fminf(into->least, other->least);
    into->most = fmaxf(into->most, other->most);
    MUC_TRY(reach_to(ctx, into, fmaxf(-into->least, into->most)));
    memcpy(counts, other->counts, sizeof(counts));
    wide.counts = counts;
    while (wide.reach < into->reach)
        widen(&wide);
    while (into->reach < wide.reach)
        widen(into);
    for (size_t i = 0; i < BINS; i++)
        into->counts[i] += counts[i];
    return MUC_OK;
}

/* squared error of rounding to equal steps inside the bounds, and of clipping outside */
static double error_of(const muc_range *range, double least, double most, unsigned levels)
{
    double step = (most - least) / (levels - 1), rounding = step * step / 12, sum = 0;

    for (size_t i = 0; i < BINS; i++) {
        double x = ((double)i + 0.5 - BINS / 2) * (double)range->reach / (BINS / 2), beyond;

        if (range->counts[i] == 0)
            continue;
        beyond = x < least ? least - x : x > most ? x - most : 0;
        sum += (double)range->counts[i] * (rounding + beyond * beyond);
    }
    return sum;
}

void muc_range_choose(const muc_range *range, unsigned levels, float *least, float *most)
{
    double low = fmin(0, (double)range->least), high = fmax(0, (double)range->most);
    double best = INFINITY, chosen[2] = { low, high };

    *least = *most = 0;
    if (!range->counts)
        return;
    for (int a = 100; a >= 20; a -= 2)
        for (int b = 100; b >= (low < 0 && high > 0 ? 20 : 100); b -= 2) {
            /* of bounds on both sides of zero each moves by itself */
            double l = low * (low < 0 && high > 0 ? a : high > 0 ? 100 : a) / 100;
            double h = high * (low < 0 && high > 0 ? b : high > 0 ? a : 100) / 100;
            double error = error_of(range, l, h, levels);

            if (error < best) {
                best = error;
                chosen[0] = l;
                chosen[1] = h;
            }
        }
    *least = (float)chosen[0];
    *most = (float)chosen[1];
}
