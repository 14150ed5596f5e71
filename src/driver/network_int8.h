/* network_int8.h - a float network becomes int8, and is held against what it was. */
#ifndef MUC_DRIVER_NETWORK_INT8_H
#define MUC_DRIVER_NETWORK_INT8_H

#include "driver/network.h"
#include "passes/int8.h"

/* Arrays as several inputs of one network: where an input of fixed shape has an array of k times
 * its elements, the array's first dimension counts k samples, in all arrays alike. Of a network of
 * one input, arrays of any names are samples after each other if each has its shape or samples of
 * it; one of the input's own name counts alone. */
typedef struct muc_samples {
    const muc_graph *graph;
    const muc_tensor_view *arrays;
    size_t array_count, count;
    bool one_after_another;
} muc_samples;

/* Fails with MUC_USAGE if no array is given. */
muc_status muc_samples_of(muc_context *ctx, const muc_graph *graph, const muc_tensor_view *arrays,
                          size_t array_count, muc_samples *out);
/* Sample i, below count: arrays for muc_network_evaluate, out[array_count], *out_count of them. */
void muc_samples_get(const muc_samples *samples, size_t i, muc_tensor_view *out, size_t *out_count);

/* Makes the graph canonical, lays its channels last, calibrates it on every sample and makes it
 * int8. */
muc_status muc_network_to_int8(muc_context *ctx, muc_graph *graph, const muc_tensor_view *arrays,
                               size_t array_count);

#endif
