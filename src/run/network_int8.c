/* network_int8.c - calibrates a network on samples, and compares int8 with float32 layer by layer.
 */
#include "run/network_int8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"
#include "muc/compile.h"
#include "passes/simplify/canonical.h"
#include "passes/simplify/fold.h"
#include "passes/simplify/patterns.h"
#include "passes/layout/pixel_windows.h"
#include "report/report_builder.h"

/* ---- samples ---- */

/* the elements of a fixed shape; 0: a dimension is open */
static uint64_t fixed_elements(const muc_graph *graph, const muc_tensor *tensor)
{
    uint64_t elements = 1;

    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (!muc_expr_is_const(graph->pool, tensor->dims[i]))
            return 0;
        elements *= muc_expr_get(graph->pool, tensor->dims[i])->immediate;
    }
    return elements;
}

static const muc_tensor *first_input(const muc_graph *graph, size_t *count)
{
    const muc_tensor *first = NULL;

    *count = 0;
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].kind == MUC_TENSOR_INPUT && (*count)++ == 0)
            first = &graph->tensors[i];
    return first;
}

/* samples of `elements` each in an array; 0: it holds no whole number of them */
static size_t samples_in(const muc_tensor_view *array, uint64_t elements)
{
    uint64_t count = elements ? array->elements / elements : 1;

    if (elements == 0 || array->elements == elements)
        return 1;
    if (array->elements % elements != 0 || array->rank == 0 || array->dims[0] % count != 0)
        return 0;
    return (size_t)count;
}

muc_status muc_samples_of(muc_context *ctx, const muc_graph *graph, const muc_tensor_view *arrays,
                          size_t array_count, muc_samples *out)
{
    size_t inputs;
    const muc_tensor *first = first_input(graph, &inputs);
    uint64_t elements = first ? fixed_elements(graph, first) : 0;
    bool named = false, all_fit = true;

    *out = (muc_samples){ graph, arrays, array_count, 0, false };
    if (!first || array_count == 0)
        return muc_fail(ctx, MUC_USAGE, graph->name, MUC_NO_OFFSET,
                        "no arrays are given for its inputs");
    for (size_t i = 0; i < array_count; i++) {
        named = named || strcmp(arrays[i].name, first->name) == 0;
        all_fit = all_fit && samples_in(&arrays[i], elements) > 0;
    }
    out->one_after_another = inputs == 1 && array_count > 1 && !named && all_fit;
    if (out->one_after_another) {
        for (size_t i = 0; i < array_count; i++)
            out->count += samples_in(&arrays[i], elements);
        return MUC_OK;
    }
    out->count = samples_in(muc_network_match(arrays, array_count, &first->name, 1, 0), elements);
    return out->count ? MUC_OK
                      : muc_fail(ctx, MUC_USAGE, arrays[0].file, MUC_NO_OFFSET,
                                 "the array for input '%s' holds no whole number of its %llu "
                                 "elements along its first dimension",
                                 first->name, (unsigned long long)elements);
}

/* part i of count parts along the first dimension, if there are as many */
static muc_tensor_view part_of(const muc_tensor_view *array, size_t i, size_t count)
{
    muc_tensor_view part = *array;

    if (count == 1 || part.rank == 0 || part.dims[0] % count != 0)
        return part;
    part.dims[0] /= count;
    part.elements /= count;
    part.bytes /= count;
    part.data += i * part.bytes;
    return part;
}

void muc_samples_get(const muc_samples *samples, size_t i, muc_tensor_view *out, size_t *out_count)
{
    size_t inputs;
    uint64_t elements = fixed_elements(samples->graph, first_input(samples->graph, &inputs));

    for (size_t a = 0; a < samples->array_count; a++) {
        const muc_tensor_view *array = &samples->arrays[a];
        size_t count = samples->one_after_another ? samples_in(array, elements) : samples->count;

        if (!samples->one_after_another) {
            out[a] = part_of(array, i, count);
            *out_count = a + 1;
        } else if (i < count) {
            out[0] = part_of(array, i, count);
            *out_count = 1;
            return;
        } else {
            i -= count;
        }
    }
}

/* ---- calibration ---- */

static muc_status run_sample(muc_context *ctx, muc_graph *graph, const muc_samples *samples,
                             size_t i, muc_tensor_view *arrays, muc_ref **ref)
{
    muc_arena arena = { 0 };
    muc_status status;
    size_t count;

    muc_samples_get(samples, i, arrays, &count);
    status = muc_network_evaluate(ctx, graph, arrays, count, &arena, ref);
    muc_arena_free(&arena);
    return status;
}

static muc_status calibrate(muc_context *ctx, muc_graph *graph, const muc_samples *samples,
                            muc_tensor_view *arrays, muc_ranges *ranges)
{
    for (size_t i = 0; i < samples->count; i++) {
        muc_status status;
        muc_ref *ref;

        muc_progress(ctx, "calibrating", i, samples->count);
        MUC_TRY(run_sample(ctx, graph, samples, i, arrays, &ref));
        status = muc_ranges_add(ctx, ranges, ref);
        muc_ref_close(ref);
        MUC_TRY(status);
    }
    muc_progress(ctx, "calibrating", samples->count, samples->count);
    return MUC_OK;
}

/* The passes before a network is quantized: those of mcu that real numbers need, so that each
 * tensor that gets a scale is one that stays. */
static muc_status prepare(muc_context *ctx, muc_graph *graph, const char *keep)
{
    MUC_TRY(muc_dequantize_constants(ctx, graph)); /* weights get scales of int8's own */
    MUC_TRY(muc_canonicalise(ctx, graph));         /* patterns and fusion look for neighbours */
    MUC_TRY(muc_recognise(ctx, graph));
    MUC_TRY(muc_fuse(ctx, graph));
    MUC_TRY(muc_split_groups(ctx, graph));
    MUC_TRY(muc_lay_channels_last(ctx, graph)); /* int8 kernels read no other layout */
    MUC_TRY(muc_lay_windows(ctx, graph));
    MUC_TRY(muc_int8_decompose(ctx, graph, keep)); /* channels are last: axes are what they stay */
    MUC_TRY(muc_canonicalise(ctx, graph)); /* again: transposes and views that met cancel out */
    return muc_recognise(ctx, graph); /* again: norms over channels have their axis last only now */
}

static muc_status quantize_on(muc_context *ctx, muc_graph *graph, const muc_tensor_view *arrays,
                              size_t array_count, const char *keep)
{
    muc_tensor_view *sample;
    muc_int8_result result;
    muc_samples samples;
    muc_ranges ranges;
    muc_status status;

    MUC_TRY(muc_samples_of(ctx, graph, arrays, array_count, &samples));
    MUC_TRY(MUC_NEW_ARRAY(ctx, graph->name, array_count, &sample));
    status = muc_ranges_new(ctx, graph, &ranges);
    if (status == MUC_OK)
        status = calibrate(ctx, graph, &samples, sample, &ranges);
    if (status == MUC_OK)
        status = muc_int8_quantize(ctx, graph, &ranges, keep, &result);
    muc_ranges_free(&ranges);
    free(sample);
    return status;
}

muc_status muc_network_to_int8(muc_context *ctx, muc_graph *graph, const muc_tensor_view *arrays,
                               size_t array_count, const char *keep)
{
    muc_arena arena = { 0 };
    muc_status status = muc_int8_trace(ctx, graph, keep, &arena, &keep);

    if (status == MUC_OK)
        status = prepare(ctx, graph, keep);
    if (status == MUC_OK)
        status = quantize_on(ctx, graph, arrays, array_count, keep);
    muc_arena_free(&arena);
    return status;
}

muc_status muc_network_assume_int8(muc_context *ctx, muc_graph *graph, const muc_int8_guess *guess)
{
    muc_ranges ranges = { .runs = 0 };
    muc_arena arena = { 0 };
    muc_int8_result result;
    const char *keep;
    muc_status status = muc_int8_trace(ctx, graph, guess->keep, &arena, &keep);

    if (status == MUC_OK)
        status = prepare(ctx, graph, keep);
    if (status == MUC_OK)
        status = muc_ranges_new(ctx, graph, &ranges);
    if (status == MUC_OK)
        status = muc_ranges_assume(ctx, &ranges, guess->unlike);
    if (status == MUC_OK)
        status = muc_int8_quantize(ctx, graph, &ranges, keep, &result);
    muc_ranges_free(&ranges);
    muc_arena_free(&arena);
    return status;
}

/* ---- int8 beside float32 ---- */

/* One layer over all samples. */
typedef struct layer {
    uint32_t real, integer; /* the tensor in either graph */
    uint64_t values;
    double error, noise, signal; /* greatest difference; sums of squares */
} layer;

typedef struct comparison {
    muc_context *ctx;
    muc_graph *real, *integer;
    layer *layers;
    muc_mask *masks; /* of real's tensors */
    size_t layer_count;
    uint64_t rows, agreeing; /* rows of the outputs, and those whose greatest element agrees */
} comparison;

/* the tensor that stands for an activation of the float graph, or MUC_NO_ID */
static muc_status find_int8(comparison *c, muc_arena *arena, uint32_t real, uint32_t *out)
{
    const char *name;

    MUC_TRY(muc_arena_format(c->ctx, arena, &name, "%s.int8", c->real->tensors[real].name));
    *out = muc_graph_find(c->integer, name);
    if (*out == MUC_NO_ID)
        *out = muc_graph_find(c->integer, c->real->tensors[real].name);
    /* a constant of the name has nothing to be compared */
    if (*out != MUC_NO_ID && c->integer->tensors[*out].kind != MUC_TENSOR_ACTIVATION)
        *out = MUC_NO_ID;
    return MUC_OK;
}

static muc_status find_layers(comparison *c, muc_arena *arena)
{
    MUC_TRY(MUC_ARENA_NEW(c->ctx, arena, c->real->node_count + (size_t)1, &c->layers));
    MUC_TRY(MUC_ARENA_NEW(c->ctx, arena, c->real->tensor_count + (size_t)1, &c->masks));
    muc_masks_find(c->real, c->masks);
    for (uint32_t n = 0; n < c->real->node_count; n++) {
        uint32_t real = c->real->nodes[n].outputs[0], integer;

        MUC_TRY(find_int8(c, arena, real, &integer));
        if (c->real->tensors[real].dtype == MUC_F32 && integer != MUC_NO_ID)
            c->layers[c->layer_count++] = (layer){ .real = real, .integer = integer };
    }
    return MUC_OK;
}

static double real_of(const muc_tensor *tensor, const muc_ref_view *view, size_t i)
{
    const muc_tensor_view array = { .dtype = view->dtype,
                                    .elements = view->elements,
                                    .data = view->data };
    double value = muc_array_element(&array, i);
    const muc_quantization *q = tensor->quantization;

    return q ? (double)q->scales[0] * (value - q->zero_points[0]) : value;
}

/* what lies so deep below others that softmax makes nothing of it is not compared */
static muc_status compare_layer(const comparison *c, layer *l, const muc_ref *real,
                                const muc_ref *integer)
{
    muc_ref_view a, b;
    float *raised = NULL;

    if (!muc_ref_get(real, l->real, &a) || !muc_ref_get(integer, l->integer, &b) ||
        a.elements != b.elements)
        return MUC_OK;
    if (c->masks[l->real] != MUC_NO_MASK && a.dtype == MUC_F32) {
        MUC_TRY(MUC_NEW_ARRAY(c->ctx, c->real->name, a.elements, &raised));
        muc_mask_raise(c->real, real, l->real, c->masks[l->real], &a, raised);
    }
    for (size_t i = 0; i < a.elements; i++) {
        double x = real_of(&c->real->tensors[l->real], &a, i);
        double error = fabs(x - real_of(&c->integer->tensors[l->integer], &b, i));

        if (raised && (double)raised[i] > x)
            continue;
        l->error = fmax(l->error, error);
        l->noise += error * error;
        l->signal += x * x;
    }
    l->values += a.elements;
    free(raised);
    return MUC_OK;
}

static size_t greatest(const muc_ref_view *view, size_t row, size_t width)
{
    const float *x = (const float *)view->data + row * width;
    size_t best = 0;

    for (size_t i = 1; i < width; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

static void compare_outputs(comparison *c, const muc_ref *real, const muc_ref *integer)
{
    for (uint32_t o = 0; o < c->real->output_count; o++) {
        muc_ref_view a, b;
        size_t width;

        if (!muc_ref_get(real, c->real->outputs[o], &a) ||
            !muc_ref_get(integer, c->integer->outputs[o], &b) || a.dtype != MUC_F32 ||
            b.dtype != MUC_F32 || a.elements != b.elements || a.elements == 0 || a.rank == 0)
            continue;
        width = a.dims[a.rank - 1];
        for (size_t row = 0; row < a.elements / width; row++, c->rows++)
            c->agreeing += greatest(&a, row, width) == greatest(&b, row, width);
    }
}

/* of all samples `most`, evenly */
static muc_status compare_samples(comparison *c, const muc_samples *samples, size_t most,
                                  muc_tensor_view *arrays)
{
    size_t count = most < samples->count ? most : samples->count;

    for (size_t i = 0; i < count; i++) {
        size_t at = i * samples->count / count;
        muc_ref *real, *integer;
        muc_status status;

        muc_progress(c->ctx, "comparing", i, count);
        MUC_TRY(run_sample(c->ctx, c->real, samples, at, arrays, &real));
        status = run_sample(c->ctx, c->integer, samples, at, arrays, &integer);
        if (status == MUC_OK) {
            for (size_t l = 0; l < c->layer_count && status == MUC_OK; l++)
                status = compare_layer(c, &c->layers[l], real, integer);
            compare_outputs(c, real, integer);
            muc_ref_close(integer);
        }
        muc_ref_close(real);
        MUC_TRY(status);
    }
    muc_progress(c->ctx, "comparing", count, count);
    return MUC_OK;
}

static double decibels(double signal, double noise)
{
    return noise > 0 && signal > 0 ? 10 * log10(signal / noise) : 0;
}

static muc_status report_layers(const comparison *c, size_t samples, muc_report **out)
{
    MUC_TRY(muc_report_new(c->ctx, out));
    muc_report_add_count(*out, "samples", samples);
    if (c->rows)
        muc_report_add_real(*out, "top1_agreement", (double)c->agreeing / (double)c->rows);
    muc_report_begin_table(*out, "layers");
    for (size_t i = 0; i < c->layer_count; i++) {
        const layer *l = &c->layers[i];
        const muc_tensor *tensor = &c->real->tensors[l->real];

        muc_report_begin_row(*out);
        muc_report_add_text(*out, "node", "%.48s", tensor->name);
        muc_report_add_text(*out, "operator", "%s",
                            muc_op_get(c->real->nodes[tensor->producer].op)->name);
        muc_report_add_text(*out, "type", "%s",
                            muc_dtype_get(c->integer->tensors[l->integer].dtype)->name);
        muc_report_add_count(*out, "values", l->values);
        muc_report_add_real(*out, "error", l->error);
        muc_report_add_real(*out, "snr_db", decibels(l->signal, l->noise));
        muc_report_end(*out);
    }
    muc_report_end(*out);
    return muc_report_status(c->ctx, *out);
}

/* fills the layers; samples: how many there are */
static muc_status compare(comparison *c, const muc_tensor_view *arrays, size_t count, size_t most,
                          muc_arena *arena, size_t *sample_count)
{
    muc_tensor_view *sample;
    muc_samples samples;
    muc_status status;

    MUC_TRY(prepare(c->ctx, c->real, NULL));
    MUC_TRY(muc_samples_of(c->ctx, c->real, arrays, count, &samples));
    MUC_TRY(MUC_NEW_ARRAY(c->ctx, c->real->name, count, &sample));
    status = find_layers(c, arena);
    if (status == MUC_OK)
        status = compare_samples(c, &samples, most, sample);
    *sample_count = samples.count;
    free(sample);
    return status;
}

muc_status muc_verify_int8(muc_context *ctx, const muc_model *integer, const muc_model *real,
                           muc_report **out)
{
    MUC_IN_C_LOCALE;

    comparison c = { .ctx = ctx, .real = real->network.graph, .integer = integer->network.graph };
    const muc_tensor_view *arrays = integer->array_count ? integer->arrays : integer->calibration;
    size_t count = integer->array_count ? integer->array_count : integer->calibration_count;
    muc_arena arena = { 0 };
    muc_status status = compare(&c, arrays, count, SIZE_MAX, &arena, &count);

    if (status == MUC_OK)
        status = report_layers(&c, count, out);
    muc_arena_free(&arena);
    return status;
}

/* ---- what is worth a word ---- */

static bool is_float(const muc_graph *graph, uint32_t tensor)
{
    return muc_dtype_get(graph->tensors[tensor].dtype)->kind == MUC_DTYPE_FLOAT;
}

static bool reads_floats(const muc_graph *graph, const muc_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != MUC_NO_ID && is_float(graph, node->inputs[i]) &&
            graph->tensors[node->inputs[i]].kind == MUC_TENSOR_ACTIVATION)
            return true;
    return false;
}

/* computes with real numbers where its neighbours have integers, if only whether one is greater */
static bool stays_float(const muc_graph *graph, const muc_node *node)
{
    if (muc_op_has(node->op, MUC_OP_MOVES) && node->input_count == 1)
        return false;
    if (!is_float(graph, node->outputs[0]))
        return !graph->tensors[node->outputs[0]].quantization && reads_floats(graph, node);
    return muc_graph_integers_of(graph, node->outputs[0]) == MUC_NO_ID && node->input_count > 0 &&
           (!muc_op_has(node->op, MUC_OP_CONVERTS) || is_float(graph, node->inputs[0]));
}

static muc_status add_loss(muc_context *ctx, muc_arena *arena, const char *name, muc_op op,
                           muc_int8_loss loss, muc_int8_loss *list, size_t *count)
{
    MUC_TRY(muc_arena_string(ctx, arena, name, strlen(name), &loss.node));
    loss.op = muc_op_get(op)->name;
    list[(*count)++] = loss;
    return MUC_OK;
}

/* list has room for all nodes */
static muc_status list_floats(muc_context *ctx, const muc_graph *graph, muc_arena *arena,
                              muc_int8_loss *list, size_t *count)
{
    *count = 0;
    for (uint32_t n = 0; n < graph->node_count; n++)
        if (stays_float(graph, &graph->nodes[n]))
            MUC_TRY(add_loss(ctx, arena, graph->nodes[n].name, graph->nodes[n].op,
                             (muc_int8_loss){ .is_float = true }, list, count));
    return MUC_OK;
}

muc_status muc_int8_floats(muc_context *ctx, const muc_graph *graph, muc_arena *arena,
                           muc_int8_loss **out, size_t *count)
{
    bool is_quantized = false;

    *count = 0;
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        is_quantized = is_quantized || (graph->tensors[i].kind == MUC_TENSOR_ACTIVATION &&
                                        graph->tensors[i].quantization);
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, graph->node_count + 1, out));
    return is_quantized ? list_floats(ctx, graph, arena, *out, count) : MUC_OK;
}

static muc_status list_losses(const comparison *c, muc_arena *arena, muc_int8_loss **out,
                              size_t *count)
{
    MUC_TRY(MUC_ARENA_NEW(c->ctx, arena, c->integer->node_count + c->layer_count + 1, out));
    MUC_TRY(list_floats(c->ctx, c->integer, arena, *out, count));
    for (size_t i = 0; i < c->layer_count; i++) {
        const layer *l = &c->layers[i];
        const muc_tensor *tensor = &c->real->tensors[l->real];
        muc_int8_loss loss = { .snr_db = decibels(l->signal, l->noise) };

        if (l->noise > 0 && l->signal > 0 && loss.snr_db < MUC_INT8_LOW_DB)
            MUC_TRY(add_loss(c->ctx, arena, tensor->name, c->real->nodes[tensor->producer].op, loss,
                             *out, count));
    }
    return MUC_OK;
}

/* the network as its file has it, once more */
static muc_status open_again(muc_context *ctx, const muc_model *model, muc_network *out)
{
    muc_status status;

    MUC_TRY(muc_network_open(ctx, model->path, &model->how, out));
    status = muc_fold(ctx, out->graph);
    if (status != MUC_OK)
        muc_network_close(out);
    return status;
}

muc_status muc_int8_losses(muc_context *ctx, const muc_model *model, muc_arena *arena,
                           muc_int8_loss **out, size_t *count)
{
    comparison c = { .ctx = ctx, .integer = model->network.graph };
    size_t samples;
    muc_network real;
    muc_status status;

    MUC_TRY(open_again(ctx, model, &real));
    c.real = real.graph;
    status = compare(&c, model->calibration, model->calibration_count, MUC_INT8_LOSS_SAMPLES, arena,
                     &samples);
    if (status == MUC_OK)
        status = list_losses(&c, arena, out, count);
    muc_network_close(&real);
    return status;
}

void muc_int8_report_losses(muc_report *report, const muc_int8_loss *losses, size_t count)
{
    static const char *const tables[] = { "below_25_db", "float32" };

    _Static_assert(MUC_INT8_LOW_DB == 25, "the table's name");
    for (unsigned table = 0; table < 2; table++) {
        bool any = false;

        for (size_t i = 0; i < count; i++) {
            if (losses[i].is_float != table)
                continue;
            if (!any)
                muc_report_begin_table(report, tables[table]);
            any = true;
            muc_report_begin_row(report);
            muc_report_add_text(report, "node", "%s", losses[i].node);
            muc_report_add_text(report, "operator", "%s", losses[i].op);
            if (table == 0)
                muc_report_add_real(report, "snr_db", losses[i].snr_db);
            muc_report_end(report);
        }
        if (any)
            muc_report_end(report);
    }
}
