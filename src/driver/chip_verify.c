/* chip_verify.c - the CNN chip's folder compared layer by layer with the reference. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "driver/chip.h"
#include "driver/codefolder.h"
#include "driver/compile.h"
#include "driver/made_arrays.h"
#include "driver/model.h"
#include "driver/network.h"
#include "passes/batch.h"
#include "report/report.h"

/* largest difference from float32, of a layer's greatest element, that passes */
#define FP32_TOLERANCE 1e-5
#define FP16_TOLERANCE 2e-2

/* ---- a layer as it comes out ---- */

typedef struct comparison {
    muc_context *ctx;
    const muc_chip *chip;
    const muc_graph *graph;
    const muc_ref *ref;
    muc_report *report; /* NULL: nothing is told */
    const json_t *layers;
    size_t next; /* layer whose last instruction comes next */
    uint64_t instruction;
    double tolerance;
    muc_chip_check check;
    muc_text *trace; /* or NULL */
    muc_status status;
} comparison;

/* the layer's tensor in the reference's graph, where an int8 one may have another name */
static uint32_t find_reference(const comparison *c, const char *name)
{
    uint32_t id = muc_graph_find(c->graph, name);
    size_t length = strlen(name);
    char plain[256];

    if (id != MUC_NO_ID || length < 5 || length >= sizeof(plain) ||
        strcmp(name + length - 5, ".int8") != 0)
        return id;
    memcpy(plain, name, length - 5);
    plain[length - 5] = '\0';
    return muc_graph_find(c->graph, plain);
}

/* what element i stands for */
static double number_of(const muc_ref_view *view, const muc_quantization *q, size_t i)
{
    const muc_tensor_view array = { .dtype = view->dtype, .data = view->data };
    double value = muc_array_element(&array, i);

    return q && q->count == 1 ? (double)q->scales[0] * (value - q->zero_points[0]) : value;
}

/* of a sum of squares and a sum of squared differences */
static double decibels(double signal, double noise)
{
    return noise > 0 && signal > 0 ? 10 * log10(signal / noise) : INFINITY;
}

static void compare_values(comparison *c, const json_t *layer, const muc_chip_place *place,
                           const float *values, const muc_ref_view *view,
                           const muc_quantization *quantization)
{
    double error = 0, sum = 0, greatest = 0, signal = 0, noise = 0, relative;
    const char *op = json_string_value(json_object_get(layer, "op"));

    for (size_t i = 0; i < view->elements; i++) {
        double expected = number_of(view, quantization, i),
               difference = fabs(expected - (double)values[i]);

        if (isnan(expected) && isnan(values[i]))
            continue;
        if (expected == (double)values[i])
            difference = 0;
        error = difference > error || isnan(difference) ? difference : error;
        greatest = fmax(greatest, fabs(expected));
        sum += difference;
        signal += expected * expected;
        noise += difference * difference;
    }
    relative = error > 0 ? error / fmax(greatest, 1e-30) : error;
    c->check.layers++;
    c->check.worst = relative > c->check.worst || isnan(relative) ? relative : c->check.worst;
    if (!(relative <= c->tolerance) && !c->check.first[0])
        snprintf(c->check.first, sizeof(c->check.first), "'%.200s'", place->tensor);
    if (!c->report)
        return;
    muc_report_begin_row(c->report);
    muc_report_add_count(c->report, "layer", c->next + 1);
    muc_report_add_text(c->report, "node", "%.48s", place->tensor);
    muc_report_add_text(c->report, "operator", "%s", op ? op : "");
    muc_report_add_count(c->report, "values", view->elements);
    muc_report_add_real(c->report, "max_error", error);
    muc_report_add_real(c->report, "mean_error", view->elements ? sum / (double)view->elements : 0);
    muc_report_add_real(c->report, "relative", relative);
    if (c->chip->program.element == MUC_CNNCHIP_int8 && place->scale > 0)
        muc_report_add_real(c->report, "steps", error / place->scale);
    if (isfinite(decibels(signal, noise)))
        muc_report_add_real(c->report, "snr_db", decibels(signal, noise));
    muc_report_end(c->report);
}

static muc_status compare_layer(comparison *c, const json_t *layer)
{
    muc_chip_place place;
    muc_ref_view view;
    uint32_t id;
    float *values;

    MUC_TRY(muc_chip_read_place(c->ctx, c->chip, layer, &place));
    id = find_reference(c, place.tensor);
    if (id == MUC_NO_ID || !place.in_frame || !muc_ref_get(c->ref, id, &view) ||
        view.elements != place.elements)
        return MUC_OK;
    place.dtype = MUC_F32; /* int8: what the integers stand for */
    MUC_TRY(MUC_NEW_ARRAY(c->ctx, c->chip->path, (size_t)place.elements, &values));
    muc_chip_load(c->chip, &place, (uint8_t *)values);
    compare_values(c, layer, &place, values, &view, c->graph->tensors[id].quantization);
    free(values);
    return MUC_OK;
}

/* number of the instruction behind the layer's last one; 0: it has none of its own */
static uint64_t end_of(const json_t *layer)
{
    const json_t *steps = json_object_get(layer, "steps"), *range;

    if (json_array_size(steps) == 0)
        return 0;
    range = json_object_get(json_array_get(steps, json_array_size(steps) - 1), "instructions");
    return (uint64_t)json_integer_value(json_array_get(range, 1));
}

/* one line an instruction: what it was, what it cost, what it left */
static void add_trace(comparison *c, const muc_cnnchip_sim *sim, uint32_t pc,
                      const muc_cnnchip_counts *counts)
{
    muc_cnnchip_insn insn;
    unsigned fault;

    if (!muc_cnnchip_read_insn(sim->program + pc, sim->program_bytes - pc, &insn, &fault))
        return;
    muc_text_add(c->trace,
                 "%" PRIu64 ",%" PRIu32 ",%s,%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64
                 ",%" PRIu64 ",%" PRIu64,
                 c->instruction, pc, muc_cnnchip_op_get(insn.op).name, insn.layer, insn.part,
                 insn.parts, counts->cycles, counts->compute_cycles, counts->operations);
    muc_chip_trace_result(sim, &insn, c->trace);
    muc_text_add(c->trace, "\n");
}

static void trace(void *arg, const muc_cnnchip_sim *sim, uint32_t pc, const uint32_t *words,
                  const muc_cnnchip_counts *counts)
{
    comparison *c = arg;

    (void)words;
    if (c->trace)
        add_trace(c, sim, pc, counts);
    c->instruction++;
    muc_progress(c->ctx, "layers", c->next, json_array_size(c->layers));
    while (c->status == MUC_OK && c->next < json_array_size(c->layers)) {
        const json_t *layer = json_array_get(c->layers, c->next);
        uint64_t end = end_of(layer);

        if (end > c->instruction)
            break;
        if (end == c->instruction)
            c->status = compare_layer(c, layer);
        c->next++;
    }
}

static comparison comparison_of(muc_context *ctx, muc_chip *chip, const muc_graph *graph,
                                const muc_ref *ref)
{
    return (comparison){ .ctx = ctx,
                         .chip = chip,
                         .graph = graph,
                         .ref = ref,
                         .layers = json_object_get(chip->map, "layers"),
                         .tolerance = chip->program.element == MUC_CNNCHIP_fp32   ? FP32_TOLERANCE
                                      : chip->program.element == MUC_CNNCHIP_fp16 ? FP16_TOLERANCE
                                                                                  : INFINITY };
}

static muc_status run_compared(comparison *c, muc_chip *chip, const muc_tensor_view *arrays,
                               size_t count)
{
    muc_tensor_view *outputs;

    chip->sim.trace = trace;
    chip->sim.trace_arg = c;
    MUC_TRY(muc_chip_run(c->ctx, chip, arrays, count, &outputs));
    c->check.of = (uint32_t)json_array_size(c->layers);
    c->check.cycles = chip->stop ? 0 : chip->sim.counts.cycles;
    c->check.agrees = !c->check.first[0];
    return c->status;
}

/* ---- when it is compiled ---- */

static uint64_t operations_of(const muc_cnnchip_insn *insn)
{
    uint64_t pixels = insn->op == MUC_CNNCHIP_DENSE ? 1 : (uint64_t)insn->out_h * insn->out_w;

    return insn->op == MUC_CNNCHIP_END ? 0 : muc_cnnchip_block(insn) * insn->out_c * pixels;
}

/* Stops runs behind the last layer that few operations reach; how many layers these are. */
static size_t limit_run(muc_chip *chip)
{
    const json_t *layers = json_object_get(chip->map, "layers");
    size_t layer = 0, within = 0;
    uint64_t count = 0, operations = 0;

    for (uint32_t at = 0; at < chip->program.code_bytes; count++) {
        muc_cnnchip_insn insn;
        unsigned fault;

        at += muc_cnnchip_read_insn(chip->program.code + at, chip->program.code_bytes - at, &insn,
                                    &fault);
        operations += operations_of(&insn);
        if (operations > MUC_CHIP_CHECKED)
            return within;
        for (;
             layer < json_array_size(layers) && end_of(json_array_get(layers, layer)) <= count + 1;
             layer++) {
            within = layer + 1;
            chip->stop = at;
        }
    }
    chip->stop = 0;
    return within;
}

/* the node behind the last that makes one of the first layers */
static uint32_t end_node_of(const muc_graph *graph, const muc_chip *chip, size_t layers)
{
    uint32_t end = 1;

    for (size_t i = 0; chip->stop && i < layers; i++) {
        const json_t *layer = json_array_get(json_object_get(chip->map, "layers"), i);
        const char *name = json_string_value(json_object_get(layer, "tensor"));
        uint32_t id = name ? muc_graph_find(graph, name) : MUC_NO_ID;

        if (id != MUC_NO_ID && graph->tensors[id].producer != MUC_NO_ID &&
            graph->tensors[id].producer >= end)
            end = graph->tensors[id].producer + 1;
    }
    return chip->stop ? end : 0;
}

static muc_status self_check(muc_context *ctx, muc_chip *chip, muc_graph *graph,
                             muc_chip_check *out)
{
    size_t layers = limit_run(chip), count;
    muc_tensor_view *arrays;
    muc_status status;
    comparison c;
    muc_ref *ref;

    if (layers == 0 || chip->program.element == MUC_CNNCHIP_int8)
        return MUC_OK;
    MUC_TRY(muc_made_arrays(ctx, graph, NULL, 0, &chip->arena, &arrays, &count));
    MUC_TRY(muc_network_evaluate_first(ctx, graph, arrays, count, end_node_of(graph, chip, layers),
                                       &chip->arena, &ref));
    c = comparison_of(ctx, chip, graph, ref);
    status = run_compared(&c, chip, arrays, count);
    *out = c.check;
    muc_ref_close(ref);
    return status;
}

muc_status muc_chip_self_check(muc_context *ctx, const char *path, muc_graph *graph,
                               muc_chip_check *out)
{
    muc_status status;
    muc_chip chip;

    memset(out, 0, sizeof(*out));
    MUC_TRY(muc_chip_open(ctx, path, &chip));
    status = self_check(ctx, &chip, graph, out);
    muc_chip_close(&chip);
    return status;
}

/* ---- verify ---- */

static muc_status report_on(comparison *c, muc_chip *chip, const muc_tensor_view *arrays,
                            size_t count, muc_report **out)
{
    MUC_TRY(muc_report_new(c->ctx, out));
    c->report = *out;
    muc_report_begin_table(c->report, "layers");
    MUC_TRY(run_compared(c, chip, arrays, count));
    muc_report_end(c->report);
    muc_report_add_count(c->report, "compared", c->check.layers);
    muc_report_add_real(c->report, "worst_relative_error", c->check.worst);
    if (isfinite(c->tolerance))
        muc_report_add_real(c->report, "tolerance", c->tolerance);
    if (!c->check.agrees)
        muc_report_add_text(c->report, "first_divergence", "%s", c->check.first);
    muc_chip_add_counts(c->report, chip);
    MUC_TRY(muc_report_status(c->ctx, c->report));
    return c->check.agrees ? MUC_OK
                           : muc_fail(c->ctx, MUC_MISMATCH, chip->path, MUC_NO_OFFSET,
                                      "chip and reference differ by more than %g at %s",
                                      c->tolerance, c->check.first);
}

static muc_status write_trace(muc_context *ctx, const char *path, const muc_text *lines,
                              muc_status status)
{
    muc_status written;

    if (!path || (status != MUC_OK && status != MUC_MISMATCH))
        return status;
    written = muc_text_status(ctx, lines);
    if (written == MUC_OK)
        written = muc_file_write(ctx, path, lines->data, lines->size);
    return status == MUC_OK ? written : status;
}

/* the first of the images that were given with the network, or numbers made up */
static muc_status take_arrays(muc_context *ctx, muc_chip *chip, const muc_model *network,
                              muc_tensor_view **out, size_t *count)
{
    *count = network->array_count;
    if (*count == 0)
        return muc_made_arrays(ctx, network->network.graph, NULL, 0, &chip->arena, out, count);
    return muc_chip_take_image(ctx, &chip->arena, network->arrays, *count, 0,
                               muc_chip_images(chip, network->arrays, *count), out);
}

/* what int8 is far from: the network as its file has it, in float32 or TFLite's integers */
static muc_status open_real(muc_context *ctx, const muc_model *network, muc_network *out)
{
    muc_status status;
    uint32_t images;

    MUC_TRY(muc_network_open(ctx, network->path, &network->how, out));
    status = muc_take_one_image(ctx, out->graph, &images);
    if (status == MUC_OK)
        status = muc_prepare_mcu(ctx, out->graph);
    if (status != MUC_OK)
        muc_network_close(out);
    return status;
}

static muc_status compare_with(muc_context *ctx, muc_chip *chip, muc_graph *graph,
                               const muc_tensor_view *arrays, size_t count, muc_text *lines,
                               muc_report **out)
{
    muc_status status;
    comparison c;
    muc_ref *ref;

    MUC_TRY(muc_network_evaluate(ctx, graph, arrays, count, &chip->arena, &ref));
    c = comparison_of(ctx, chip, graph, ref);
    c.trace = lines;
    status = report_on(&c, chip, arrays, count, out);
    muc_ref_close(ref);
    return status;
}

static muc_status verify_folder(muc_context *ctx, muc_chip *chip, const muc_model *network,
                                const char *path, muc_report **out)
{
    muc_graph *graph = network->network.graph;
    muc_tensor_view *arrays;
    muc_text lines = { 0 };
    muc_network real = { .graph = graph };
    muc_status status;
    size_t count;

    MUC_TRY(muc_prepare_cnnchip(ctx, graph));
    MUC_TRY(muc_check_fingerprint(ctx, chip->path, chip->map, graph, network->path));
    MUC_TRY(take_arrays(ctx, chip, network, &arrays, &count));
    if (chip->program.element == MUC_CNNCHIP_int8)
        MUC_TRY(open_real(ctx, network, &real));
    if (path)
        muc_text_add(&lines, "instruction,offset,operation,layer,part,parts,cycles,compute_cycles,"
                             "operations,results,least,greatest,mean,crc32\n");
    status = compare_with(ctx, chip, real.graph, arrays, count, path ? &lines : NULL, out);
    status = write_trace(ctx, path, &lines, status);
    muc_text_free(&lines);
    if (real.graph != graph)
        muc_network_close(&real);
    return status;
}

muc_status muc_chip_verify(muc_context *ctx, const char *path, const muc_model *network,
                           const char *trace_path, muc_report **out)
{
    muc_status status;
    muc_chip chip;

    MUC_TRY(muc_chip_open(ctx, path, &chip));
    status = verify_folder(ctx, &chip, network, trace_path, out);
    muc_chip_close(&chip);
    return status;
}
