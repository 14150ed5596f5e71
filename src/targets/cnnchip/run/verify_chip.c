/* verify_chip.c - compares the CNN chip's folder layer by layer with the reference. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "targets/cnnchip/run/chip_folder.h"
#include "run/fingerprint.h"
#include "run/random_inputs.h"
#include "run/opened_model.h"
#include "run/network_run.h"
#include "targets/target.h"
#include "passes/simplify/canonical.h"
#include "report/report_builder.h"

/* largest difference from float32, of a layer's greatest element, that passes */
#define FP32_TOLERANCE 1e-5
#define FP16_TOLERANCE 2e-2
/* int8: a network's output passes if its error is at RMS this part of what the output is at RMS, or
 * so many steps of its scale at most */
#define INT8_PART 0.25
#define INT8_STEPS 2

/* ---- a layer as it comes out ---- */

typedef struct comparison {
    muc_context *ctx;
    const muc_chip *chip;
    const muc_graph *graph; /* and what it gives in real numbers, or TFLite's integers; or NULL */
    const muc_ref *ref;
    const muc_graph *own; /* of int8: as it was compiled, in the chip's arithmetic; or NULL */
    const muc_ref *exact;
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

/* int8: elements that differ from the reference in the chip's arithmetic */
static muc_status compare_exactly(comparison *c, const muc_chip_place *place, uint64_t *wrong)
{
    uint32_t id = c->own ? muc_graph_find(c->own, place->tensor) : MUC_NO_ID;
    muc_ref_view view;
    uint8_t *found;

    *wrong = 0;
    if (id == MUC_NO_ID || place->dtype != MUC_I8 || !muc_ref_get(c->exact, id, &view) ||
        view.dtype != MUC_I8 || view.elements != place->elements)
        return MUC_OK;
    MUC_TRY(MUC_NEW_ARRAY(c->ctx, c->chip->path, (size_t)place->elements, &found));
    muc_chip_load(c->chip, place, found);
    for (size_t i = 0; i < view.elements; i++)
        *wrong += found[i] != ((const uint8_t *)view.data)[i];
    free(found);
    c->check.exact_layers++;
    if (*wrong && !c->check.first[0])
        snprintf(c->check.first, sizeof(c->check.first), "'%.200s'", place->tensor);
    return MUC_OK;
}

static void compare_values(comparison *c, const json_t *layer, const muc_chip_place *place,
                           const float *values, uint64_t wrong, const muc_ref_view *view,
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
    if (c->own)
        muc_report_add_count(c->report, "wrong", wrong);
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
    uint64_t wrong;
    uint32_t id;
    float *values;

    MUC_TRY(muc_chip_read_place(c->ctx, c->chip, layer, &place));
    if (!place.in_frame)
        return MUC_OK;
    MUC_TRY(compare_exactly(c, &place, &wrong));
    id = c->graph ? find_reference(c, place.tensor) : MUC_NO_ID;
    if (id == MUC_NO_ID || !place.in_frame || !muc_ref_get(c->ref, id, &view) ||
        view.elements != place.elements)
        return MUC_OK;
    place.dtype = MUC_F32; /* int8: what the integers stand for */
    MUC_TRY(MUC_NEW_ARRAY(c->ctx, c->chip->path, (size_t)place.elements, &values));
    muc_chip_load(c->chip, &place, (uint8_t *)values);
    compare_values(c, layer, &place, values, wrong, &view, c->graph->tensors[id].quantization);
    free(values);
    return MUC_OK;
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
        uint64_t end = muc_chip_layer_end(layer);

        if (end > c->instruction)
            break;
        if (end == c->instruction)
            c->status = compare_layer(c, layer);
        c->next++;
    }
}

static comparison comparison_of(muc_context *ctx, muc_chip *chip)
{
    return (comparison){ .ctx = ctx,
                         .chip = chip,
                         .layers = json_object_get(chip->map, "layers"),
                         .tolerance = chip->program.element == MUC_CNNCHIP_fp32   ? FP32_TOLERANCE
                                      : chip->program.element == MUC_CNNCHIP_fp16 ? FP16_TOLERANCE
                                                                                  : INFINITY };
}

static muc_status run_compared(comparison *c, muc_chip *chip, const muc_tensor_view *arrays,
                               size_t count, muc_tensor_view **outputs)
{
    chip->sim.trace = trace;
    chip->sim.trace_arg = c;
    MUC_TRY(muc_chip_run(c->ctx, chip, arrays, count, outputs));
    c->check.of = (uint32_t)json_array_size(c->layers);
    c->check.cycles = chip->stop ? 0 : chip->sim.counts.cycles;
    c->check.agrees = !c->check.first[0];
    return c->status;
}

/* ---- the network as it was compiled ---- */

static bool is_int8(const muc_chip *chip)
{
    return chip->program.element == MUC_CNNCHIP_int8;
}

/* how often FRAME has an input; *first: the first of its places */
static size_t find_places(const muc_chip *chip, const char *input, const muc_chip_place **first)
{
    size_t found = 0;

    for (size_t i = chip->input_count; i-- > 0;)
        if (chip->inputs[i].in_frame && strcmp(chip->inputs[i].name, input) == 0) {
            *first = &chip->inputs[i];
            found++;
        }
    return found;
}

/* int8: numbers from all over what the input's integers stand for, in place of those in -1..1 */
static void spread(const muc_chip *chip, const muc_tensor_view *array, float *data)
{
    const muc_chip_place *p;

    if (find_places(chip, array->name, &p))
        for (uint64_t k = 0; k < array->elements; k++)
            data[k] = (float)(p->scale * ((double)data[k] * 127.5 - 0.5 - p->zero));
}

/* Numbers made up for the graph's inputs, always the same. */
static muc_status make_arrays(muc_context *ctx, muc_chip *chip, const muc_graph *graph,
                              muc_tensor_view **out, size_t *count)
{
    MUC_TRY(muc_made_arrays(ctx, graph, NULL, 0, &chip->arena, out, count));
    for (size_t i = 0; is_int8(chip) && i < *count; i++) {
        muc_tensor_view *array = &(*out)[i];
        float *data;

        if (array->dtype != MUC_F32)
            continue;
        MUC_TRY(MUC_ARENA_NEW(ctx, &chip->arena, (size_t)array->elements + 1, &data));
        memcpy(data, array->data, (size_t)array->bytes);
        spread(chip, array, data);
        array->data = (const uint8_t *)data;
    }
    return MUC_OK;
}

/* which nodes the chip computes: not those of host steps */
static muc_status mark_nodes(muc_context *ctx, muc_chip *chip, const muc_graph *graph,
                             const bool **out)
{
    const json_t *steps = json_object_get(chip->map, "host_steps");
    bool *on_chip;

    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->arena, graph->node_count + (size_t)1, &on_chip));
    memset(on_chip, true, graph->node_count * sizeof(*on_chip));
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *writes = json_object_get(json_array_get(steps, i), "writes");

        for (size_t k = 0; k < json_array_size(writes); k++) {
            const json_t *item = json_array_get(writes, k);
            const char *name = json_string_value(json_object_get(item, "tensor"));
            uint32_t id = name ? muc_graph_find(graph, name) : MUC_NO_ID;

            if (id != MUC_NO_ID && graph->tensors[id].producer != MUC_NO_ID)
                on_chip[graph->tensors[id].producer] = false;
        }
    }
    *out = on_chip;
    return MUC_OK;
}

/* Real inputs as FRAME keeps them: what the master computes of them reads FRAME too. One that is
 * there at two scales stays as it is, since both are quantized from it. */
static muc_status round_inputs(muc_context *ctx, muc_chip *chip, const muc_tensor_view *arrays,
                               size_t count, muc_tensor_view **out)
{
    const char **names;

    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->arena, count + 1, out));
    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->arena, chip->input_count + 1, &names));
    if (count)
        memcpy(*out, arrays, count * sizeof(**out));
    for (size_t i = 0; i < chip->input_count; i++)
        names[i] = chip->inputs[i].name;
    for (size_t i = 0; i < chip->input_count; i++) {
        const muc_chip_place *p;
        const muc_tensor_view *array =
            muc_network_match(arrays, count, names, chip->input_count, i);
        float *data;

        if (!array || array->dtype != MUC_F32 || find_places(chip, names[i], &p) != 1)
            continue;
        MUC_TRY(MUC_ARENA_NEW(ctx, &chip->arena, (size_t)array->elements + 1, &data));
        memcpy(data, array->data, (size_t)array->bytes);
        for (uint64_t k = 0; k < array->elements; k++)
            data[k] = muc_chip_round(p, data[k]);
        (*out)[array - arrays].data = (const uint8_t *)data;
    }
    return MUC_OK;
}

/* int8 in the chip's arithmetic; the nodes before `end`, 0: all */
static muc_status evaluate_own(muc_context *ctx, muc_chip *chip, muc_graph *graph,
                               const muc_tensor_view *arrays, size_t count, uint32_t end,
                               muc_ref **ref)
{
    const bool *on_chip = NULL;
    muc_tensor_view *rounded;

    if (is_int8(chip)) {
        MUC_TRY(mark_nodes(ctx, chip, graph, &on_chip));
        MUC_TRY(round_inputs(ctx, chip, arrays, count, &rounded));
        arrays = rounded;
    }
    return muc_network_evaluate_first(ctx, graph, arrays, count, end, on_chip, &chip->arena, ref);
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
        for (; layer < json_array_size(layers) &&
               muc_chip_layer_end(json_array_get(layers, layer)) <= count + 1;
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
    comparison c = comparison_of(ctx, chip);
    size_t layers = limit_run(chip), count;
    muc_tensor_view *arrays, *outputs;
    muc_status status;
    muc_ref *ref;

    if (layers == 0)
        return MUC_OK;
    MUC_TRY(make_arrays(ctx, chip, graph, &arrays, &count));
    MUC_TRY(evaluate_own(ctx, chip, graph, arrays, count, end_node_of(graph, chip, layers), &ref));
    c.graph = graph;
    c.ref = ref;
    if (is_int8(chip)) {
        c.own = graph;
        c.exact = ref;
    }
    status = run_compared(&c, chip, arrays, count, &outputs);
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
    if (muc_chip_open(ctx, path, &chip) != MUC_OK)
        return MUC_BUG; /* it was written just now */
    status = self_check(ctx, &chip, graph, out);
    muc_chip_close(&chip);
    return status;
}

/* ---- verify ---- */

/* int8: output i beside the network that it was made from; MUC_MISMATCH beyond the bound */
static muc_status compare_output(comparison *c, size_t i, const muc_tensor_view *output)
{
    const muc_quantization *own = c->own->tensors[c->own->outputs[i]].quantization;
    uint32_t id = c->graph->outputs[i];
    double error = 0, signal = 0, noise = 0;
    muc_ref_view view, found;

    if (!muc_ref_get(c->ref, id, &view) || view.elements != output->elements)
        return MUC_OK;
    found = (muc_ref_view){ .dtype = output->dtype, .data = output->data };
    own = output->dtype == MUC_I8 ? own : NULL;
    for (size_t k = 0; k < view.elements; k++) {
        double expected = number_of(&view, c->graph->tensors[id].quantization, k);
        double difference = fabs(expected - number_of(&found, own, k));

        error = fmax(error, difference);
        signal += expected * expected;
        noise += difference * difference;
    }
    muc_report_begin_row(c->report);
    muc_report_add_text(c->report, "output", "%.48s", output->name);
    muc_report_add_real(c->report, "max_error", error);
    muc_report_add_real(c->report, "rms_error", signal > 0 ? sqrt(noise / signal) : error);
    muc_report_add_real(c->report, "bound", INT8_PART);
    muc_report_end(c->report);
    if (!(noise > INT8_PART * INT8_PART * signal) ||
        (own && error <= INT8_STEPS * (double)own->scales[0]))
        return MUC_OK;
    return muc_fail(c->ctx, MUC_MISMATCH, c->chip->path, MUC_NO_OFFSET,
                    "output '%s' is off at RMS by %g of itself, more than %g: int8 does not do for "
                    "it, or its samples were others",
                    output->name, sqrt(noise / signal), INT8_PART);
}

static muc_status compare_outputs(comparison *c, const muc_tensor_view *outputs)
{
    muc_status status = MUC_OK;

    muc_report_begin_table(c->report, "outputs");
    for (size_t i = 0; i < c->chip->output_count && i < c->graph->output_count; i++) {
        muc_status own = compare_output(c, i, &outputs[i]);

        status = status == MUC_OK ? own : status;
    }
    muc_report_end(c->report);
    return status;
}

static muc_status report_on(comparison *c, muc_chip *chip, const muc_tensor_view *arrays,
                            size_t count, muc_report **out)
{
    muc_tensor_view *outputs;
    muc_status far = MUC_OK;

    MUC_TRY(muc_report_new(c->ctx, out));
    c->report = *out;
    muc_report_begin_table(c->report, "layers");
    MUC_TRY(run_compared(c, chip, arrays, count, &outputs));
    muc_report_end(c->report);
    if (c->own)
        far = compare_outputs(c, outputs);
    muc_report_add_count(c->report, "compared", c->check.layers);
    if (c->own) {
        muc_report_add_count(c->report, "compared_exactly", c->check.exact_layers);
        muc_report_add_bool(c->report, "exact", c->check.agrees);
    }
    muc_report_add_real(c->report, "worst_relative_error", c->check.worst);
    if (isfinite(c->tolerance))
        muc_report_add_real(c->report, "tolerance", c->tolerance);
    if (!c->check.agrees)
        muc_report_add_text(c->report, "first_divergence", "%s", c->check.first);
    muc_chip_add_counts(c->report, chip);
    MUC_TRY(muc_report_status(c->ctx, c->report));
    if (c->check.agrees || far != MUC_OK)
        return far;
    if (c->own)
        return muc_fail(c->ctx, MUC_MISMATCH, chip->path, MUC_NO_OFFSET,
                        "chip and reference in the chip's arithmetic differ at %s", c->check.first);
    return muc_fail(c->ctx, MUC_MISMATCH, chip->path, MUC_NO_OFFSET,
                    "chip and reference differ by more than %g at %s", c->tolerance,
                    c->check.first);
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

/* the first of the images that were given with the network, or by which it was made int8, or
 * numbers made up */
static muc_status take_arrays(muc_context *ctx, muc_chip *chip, const muc_model *network,
                              muc_tensor_view **out, size_t *count)
{
    const muc_tensor_view *arrays = network->arrays;

    *count = network->array_count;
    if (*count == 0 && network->calibration_count) {
        arrays = network->calibration;
        *count = network->calibration_count;
    }
    if (*count == 0)
        return make_arrays(ctx, chip, network->network.graph, out, count);
    return muc_chip_take_image(ctx, &chip->arena, arrays, *count, 0,
                               muc_chip_images(chip, arrays, *count), out);
}

/* what int8 is far from: the network as its file has it, in float32 or TFLite's integers */
static muc_status open_real(muc_context *ctx, const muc_model *network, muc_network *out)
{
    muc_status status;

    MUC_TRY(muc_network_open(ctx, network->path, &network->how, out));
    status = muc_prepare_cnnchip(ctx, out->graph);
    if (status == MUC_OK)
        status = muc_fuse(ctx, out->graph); /* norms, too, which int8 has in its weights */
    if (status != MUC_OK)
        muc_network_close(out);
    return status;
}

/* int8 beside the network as its file has it, too */
static muc_status evaluate_real(comparison *c, const muc_model *network, muc_chip *chip,
                                const muc_tensor_view *arrays, size_t count, muc_network *real,
                                muc_ref **ref)
{
    c->own = c->graph;
    c->exact = c->ref;
    MUC_TRY(open_real(c->ctx, network, real));
    c->graph = real->graph;
    MUC_TRY(muc_network_evaluate(c->ctx, real->graph, arrays, count, &chip->arena, ref));
    c->ref = *ref;
    return MUC_OK;
}

static muc_status compare_folder(muc_context *ctx, muc_chip *chip, const muc_model *network,
                                 muc_text *lines, muc_report **out)
{
    muc_graph *graph = network->network.graph;
    comparison c = comparison_of(ctx, chip);
    muc_network real = { .graph = NULL };
    muc_ref *own, *ref = NULL;
    muc_tensor_view *arrays;
    muc_status status;
    size_t count;

    MUC_TRY(muc_prepare_cnnchip(ctx, graph));
    MUC_TRY(muc_check_fingerprint(ctx, chip->path, chip->map, graph, network->path));
    MUC_TRY(take_arrays(ctx, chip, network, &arrays, &count));
    MUC_TRY(evaluate_own(ctx, chip, graph, arrays, count, 0, &own));
    c.graph = graph;
    c.ref = own;
    c.trace = lines;
    status = is_int8(chip) ? evaluate_real(&c, network, chip, arrays, count, &real, &ref) : MUC_OK;
    if (status == MUC_OK)
        status = report_on(&c, chip, arrays, count, out);
    muc_ref_close(ref);
    muc_ref_close(own);
    if (real.graph)
        muc_network_close(&real);
    return status;
}

static muc_status verify_folder(muc_context *ctx, muc_chip *chip, const muc_model *network,
                                const char *path, muc_report **out)
{
    muc_text lines = { 0 };
    muc_status status;

    if (path)
        muc_text_add(&lines, "instruction,offset,operation,layer,part,parts,cycles,compute_cycles,"
                             "operations,results,least,greatest,mean,crc32\n");
    status = compare_folder(ctx, chip, network, path ? &lines : NULL, out);
    status = write_trace(ctx, path, &lines, status);
    muc_text_free(&lines);
    return status;
}

muc_status muc_verify_cnnchip(muc_context *ctx, const char *path, const muc_model *network,
                              const char *trace_path, muc_report **out)
{
    muc_status status;
    muc_chip chip;

    MUC_TRY(muc_chip_open(ctx, path, &chip));
    status = verify_folder(ctx, &chip, network, trace_path, out);
    muc_chip_close(&chip);
    return status;
}
