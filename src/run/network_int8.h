/* network_int8.h - a float network becomes int8, and is held against what it was. */
#ifndef MUC_RUN_NETWORK_INT8_H
#define MUC_RUN_NETWORK_INT8_H

#include "run/opened_model.h"
#include "run/network_run.h"
#include "passes/int8/int8.h"

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
 * int8. keep: what stays float32, names of nodes or operators parted by commas, or NULL. */
muc_status muc_network_to_int8(muc_context *ctx, muc_graph *graph, const muc_tensor_view *arrays,
                               size_t array_count, const char *keep);

/* The same with scales that no sample decided, for plans before it is calibrated. */
typedef struct muc_int8_guess {
    const char *keep; /* of muc_network_to_int8 */
    bool unlike;      /* tensors have several scales, not one */
} muc_int8_guess;
muc_status muc_network_assume_int8(muc_context *ctx, muc_graph *graph, const muc_int8_guess *guess);

/* What a network lost when it became int8. */
typedef struct muc_int8_loss {
    const char *node, *op;
    bool is_float; /* it stayed float32, else its result is below MUC_INT8_LOW_DB */
    double snr_db;
} muc_int8_loss;

enum { MUC_INT8_LOW_DB = 25, MUC_INT8_LOSS_SAMPLES = 16 };

/* Opens the file of an int8 network again and compares both on at most so many of the samples that
 * it was calibrated on. Names are in arena. */
muc_status muc_int8_losses(muc_context *ctx, const muc_model *model, muc_arena *arena,
                           muc_int8_loss **out, size_t *count);
/* What computes with real numbers in a network that came quantized; none in others. */
muc_status muc_int8_floats(muc_context *ctx, const muc_graph *graph, muc_arena *arena,
                           muc_int8_loss **out, size_t *count);
/* Adds the tables below_25_db (node, operator, snr_db) and float32 (node, operator), unless they
 * are empty. */
struct muc_report;
void muc_int8_report_losses(struct muc_report *report, const muc_int8_loss *losses, size_t count);

#endif
