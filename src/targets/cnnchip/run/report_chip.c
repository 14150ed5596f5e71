/* report_chip.c - runs the CNN chip's folder and reports on it. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "run/arrays.h"
#include "targets/cnnchip/run/answer_chip.h"
#include "targets/cnnchip/run/chip_folder.h"
#include "run/image_input.h"
#include "run/opened_model.h"
#include "run/network_run.h"
#include "targets/target.h"
#include "report/figures.h"
#include "report/report_builder.h"

/* ---- run ---- */

static double share_of(uint64_t part, double whole)
{
    return whole > 0 ? (double)part / whole : 0;
}

void muc_chip_add_counts(muc_report *report, const muc_chip *chip)
{
    const muc_cnnchip_counts *c = &chip->sim.counts;

    muc_report_add_count(report, "instructions", c->instructions);
    muc_report_add_count(report, "cycles", c->cycles);
    muc_report_add_count(report, "compute_cycles", c->compute_cycles);
    muc_report_add_count(report, "memory_cycles", c->memory_cycles);
    muc_report_add_count(report, "operations", c->operations);
    if (chip->sim.pes)
        muc_report_add_real(report, "pe_utilisation",
                            share_of(c->operations, (double)chip->sim.pes * (double)c->cycles));
    muc_report_add_count(report, "frame_read_bytes", c->frame_read_bytes);
    muc_report_add_count(report, "frame_written_bytes", c->frame_written_bytes);
    muc_report_add_count(report, "filter_read_bytes", c->filter_read_bytes);
    muc_report_add_count(report, "filter_written_bytes", c->filter_written_bytes);
    muc_report_add_count(report, "program_bytes", c->program_bytes);
}

/* quantized unless real numbers are handed over for it */
static muc_port port_of(const muc_chip_place *place, muc_dtype dtype)
{
    muc_port port = { .name = place->name,
                      .field = place->name,
                      .dtype = place->dtype,
                      .rank = place->rank,
                      .bytes = place->bytes,
                      .quantized =
                          dtype == place->dtype && muc_dtype_get(dtype)->kind == MUC_DTYPE_INTEGER,
                      .scale = place->scale,
                      .zero = place->zero };

    memcpy(port.dims, place->dims, sizeof(port.dims));
    return port;
}

/* arrays of a file, or a picture */
static muc_status take_inputs(muc_context *ctx, muc_chip *chip, const muc_array_run *how,
                              muc_tensor_view **arrays, size_t *count, const char **image)
{
    muc_port port;

    *arrays = NULL;
    *count = 0;
    if (how->input && how->image)
        return muc_fail(ctx, MUC_USAGE, how->image, MUC_NO_OFFSET,
                        "the inputs are arrays (%s) or a picture, not both", how->input);
    if (how->input)
        return muc_arrays_read(ctx, &chip->arena, how->input, arrays, count);
    if (!how->image)
        return MUC_OK;
    if (chip->input_count == 0)
        return muc_fail(ctx, MUC_USAGE, chip->path, MUC_NO_OFFSET, "has no input for a picture");
    port = port_of(&chip->inputs[0], chip->inputs[0].dtype);
    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->arena, 1, arrays));
    *count = 1;
    return muc_image_array(ctx, &chip->arena, how->image, how->preprocess, &port, *arrays, image);
}

uint64_t muc_chip_images(const muc_chip *chip, const muc_tensor_view *arrays, size_t count)
{
    uint64_t images = 0;

    for (size_t i = 0; i < count && i < chip->input_count; i++) {
        uint64_t each = chip->inputs[i].elements;
        uint64_t own = each && arrays[i].elements % each == 0 ? arrays[i].elements / each : 1;

        if (count != chip->input_count || (images && own != images))
            return 1;
        images = own;
    }
    return images ? images : 1;
}

muc_status muc_chip_take_image(muc_context *ctx, muc_arena *arena, const muc_tensor_view *arrays,
                               size_t count, uint64_t i, uint64_t images, muc_tensor_view **out)
{
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, count + 1, out));
    for (size_t k = 0; k < count; k++) {
        (*out)[k] = arrays[k];
        if (images == 1)
            continue;
        (*out)[k].elements /= images;
        (*out)[k].bytes /= images;
        (*out)[k].data += i * (*out)[k].bytes;
    }
    return MUC_OK;
}

/* results of image i go behind those before it; of a first dimension that counts images */
static muc_status keep_results(muc_context *ctx, muc_arena *arena, const muc_chip *chip,
                               const muc_tensor_view *from, uint64_t i, uint64_t images,
                               muc_tensor_view *to)
{
    for (size_t k = 0; k < chip->output_count; k++) {
        uint8_t *data = (uint8_t *)(uintptr_t)to[k].data;

        if (i == 0) {
            to[k] = from[k];
            if (images > 1 && to[k].rank)
                to[k].dims[0] *= images;
            MUC_TRY(MUC_ARENA_NEW(ctx, arena, (size_t)(from[k].bytes * images) + 1, &data));
            to[k].data = data;
            to[k].elements = from[k].elements * images;
            to[k].bytes = from[k].bytes * images;
        }
        memcpy(data + i * from[k].bytes, from[k].data, (size_t)from[k].bytes);
    }
    return MUC_OK;
}

static void add_up(muc_cnnchip_counts *sum, const muc_cnnchip_counts *run)
{
    sum->instructions += run->instructions;
    sum->cycles += run->cycles;
    sum->compute_cycles += run->compute_cycles;
    sum->memory_cycles += run->memory_cycles;
    sum->operations += run->operations;
    sum->frame_read_bytes += run->frame_read_bytes;
    sum->frame_written_bytes += run->frame_written_bytes;
    sum->filter_read_bytes += run->filter_read_bytes;
    sum->filter_written_bytes += run->filter_written_bytes;
    sum->program_bytes += run->program_bytes;
}

/* one image after the other; counts of all are left in the chip */
static muc_status run_images(muc_context *ctx, muc_chip *chip, muc_arena *arena,
                             const muc_tensor_view *arrays, size_t count, uint64_t images,
                             muc_tensor_view *outputs)
{
    muc_cnnchip_counts sum = { 0 };

    for (uint64_t i = 0; i < images; i++) {
        muc_tensor_view *image, *results;

        muc_progress(ctx, "images", i, images);
        MUC_TRY(muc_chip_take_image(ctx, arena, arrays, count, i, images, &image));
        MUC_TRY(muc_chip_run(ctx, chip, image, count, &results));
        MUC_TRY(keep_results(ctx, arena, chip, results, i, images, outputs));
        add_up(&sum, &chip->sim.counts);
    }
    chip->sim.counts = sum;
    return MUC_OK;
}

static muc_status run_dumped(muc_context *ctx, muc_chip *chip, muc_arena *arena, const char *path,
                             const muc_tensor_view *arrays, size_t count, uint64_t images,
                             muc_tensor_view *outputs)
{
    muc_tensor_view *results;

    if (images > 1)
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "%llu images are given; a dump is of one", (unsigned long long)images);
    MUC_TRY(muc_chip_dump(ctx, chip, path, arrays, count, &results));
    return keep_results(ctx, arena, chip, results, 0, 1, outputs);
}

static muc_status run_folder(muc_context *ctx, muc_chip *chip, muc_arena *arena,
                             const muc_array_run *how, muc_report **out)
{
    muc_tensor_view *arrays, *outputs;
    const char *image = NULL;
    muc_port first;
    uint64_t images;
    size_t count;

    MUC_TRY(take_inputs(ctx, chip, how, &arrays, &count, &image));
    images = muc_chip_images(chip, arrays, count);
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, chip->output_count + 1, &outputs));
    if (how->dump)
        MUC_TRY(run_dumped(ctx, chip, arena, how->dump, arrays, count, images, outputs));
    else
        MUC_TRY(run_images(ctx, chip, arena, arrays, count, images, outputs));
    if (how->output)
        MUC_TRY(muc_arrays_write(ctx, how->output, outputs, chip->output_count));
    MUC_TRY(muc_report_new(ctx, out));
    if (images > 1)
        muc_report_add_count(*out, "images", images);
    if (image)
        muc_report_add_text(*out, "image", "%s", image);
    if (chip->output_count && images == 1 && (image || how->labels)) {
        first = port_of(&chip->outputs[0], outputs[0].dtype);
        MUC_TRY(muc_image_add_classes(ctx, how->labels, &outputs[0], &first, *out));
    }
    muc_chip_add_counts(*out, chip);
    muc_report_begin_table(*out, "outputs");
    for (size_t i = 0; i < chip->output_count; i++) {
        const muc_port port = port_of(&chip->outputs[i], outputs[i].dtype);

        muc_report_add_array(*out, &outputs[i], &port);
    }
    muc_report_end(*out);
    return muc_report_status(ctx, *out);
}

/* the chip is simulated, not emulated */
static muc_status refuse_board(muc_context *ctx, const char *path, const char *board)
{
    return board ? muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                            "is the CNN chip's, and runs on its simulator alone")
                 : MUC_OK;
}

muc_status muc_run_cnnchip(muc_context *ctx, const char *path, const muc_array_run *how,
                           const char *board, muc_report **out)
{
    muc_arena arena = { 0 };
    muc_status status;
    muc_chip chip;

    MUC_TRY(refuse_board(ctx, path, board));
    MUC_TRY(muc_chip_open(ctx, path, &chip));
    status = run_folder(ctx, &chip, &arena, how, out);
    muc_arena_free(&arena);
    muc_chip_close(&chip);
    return status;
}

/* ---- report ---- */

static uint64_t divided(uint64_t whole, uint64_t by)
{
    return by ? (whole + by - 1) / by : 0;
}

/* of an instruction, on another bus (SPEC.md section 7); 0: unlimited */
static uint64_t cycles_with(const muc_cnnchip_counts *c, uint64_t bus_bytes)
{
    uint64_t memory = divided(c->frame_read_bytes + c->frame_written_bytes + c->filter_read_bytes +
                                  c->filter_written_bytes + c->program_bytes,
                              bus_bytes);

    return memory > c->compute_cycles ? memory : c->compute_cycles;
}

static void count_insn(void *arg, const muc_cnnchip_sim *sim, uint32_t pc, const uint32_t *words,
                       const muc_cnnchip_counts *counts)
{
    muc_chip_tally *t = arg;
    muc_cnnchip_counts *own;
    muc_cnnchip_insn insn;
    unsigned fault;

    (void)words;
    t->wide_cycles += cycles_with(counts, 2 * (uint64_t)sim->bus_bytes);
    if (!muc_cnnchip_read_insn(sim->program + pc, sim->program_bytes - pc, &insn, &fault) ||
        insn.layer > json_array_size(t->layers))
        return;
    own = &t->counts[insn.layer];
    own->instructions++;
    own->cycles += counts->cycles;
    own->compute_cycles += counts->compute_cycles;
    own->memory_cycles += counts->memory_cycles;
    own->operations += counts->operations;
    own->frame_read_bytes += counts->frame_read_bytes + counts->frame_written_bytes;
    own->filter_read_bytes += counts->filter_read_bytes + counts->filter_written_bytes;
    t->parts[insn.layer] = insn.parts > t->parts[insn.layer] ? insn.parts : t->parts[insn.layer];
    if (insn.op == MUC_CNNCHIP_CONV || insn.op == MUC_CNNCHIP_DENSE)
        t->blocks += counts->operations;
}

static void add_layers(muc_report *report, const muc_chip *chip, const muc_chip_tally *t)
{
    static const muc_report_column columns[] = {
        { "layer", NULL, "number in instructions" },
        { "node", NULL, "the tensor that it computes" },
        { "operator", NULL, NULL },
        { "parts", NULL, "pieces that a block is split into" },
        { "instructions", NULL, NULL },
        { "bound_by", NULL, "what most cycles wait for" },
        { "cycles", NULL, "the larger of compute and memory cycles, summed" },
        { "bound", "cycles", "fewer than this no way to split takes" },
        { "compute_cycles", NULL, "one block a cycle" },
        { "memory_cycles", NULL, "bytes over the bus" },
        { "operations", NULL, "useful ones of PEs" },
        { "utilisation", NULL, "useful operations of PEs and cycles" },
        { "frame_bytes", "bytes", "read and written" },
        { "filter_bytes", "bytes", "read and written" },
        { NULL, NULL, NULL },
    };

    muc_report_begin_columns(report, "layers", columns);
    for (size_t i = 0; i < json_array_size(t->layers); i++) {
        const json_t *layer = json_array_get(t->layers, i);
        const muc_cnnchip_counts *c = &t->counts[i + 1];

        muc_report_begin_row(report);
        muc_report_add_count(report, "layer", i + 1);
        muc_report_add_text(report, "node", "%.48s", muc_member_text(layer, "tensor"));
        muc_report_add_text(report, "operator", "%s", muc_member_text(layer, "op"));
        muc_report_add_count(report, "parts", t->parts[i + 1] ? t->parts[i + 1] : 1);
        muc_report_add_count(report, "instructions", c->instructions);
        muc_report_add_text(report, "bound_by", "%s", muc_chip_bound_by(c));
        muc_report_add_count(report, "cycles", c->cycles);
        muc_report_add_count(report, "bound", muc_member_count(layer, "cycles_bound"));
        muc_report_add_count(report, "compute_cycles", c->compute_cycles);
        muc_report_add_count(report, "memory_cycles", c->memory_cycles);
        if (chip->sim.pes)
            muc_report_add_real(report, "utilisation",
                                share_of(c->operations, (double)chip->sim.pes * (double)c->cycles));
        muc_report_add_count(report, "operations", c->operations);
        muc_report_add_count(report, "frame_bytes", c->frame_read_bytes);
        muc_report_add_count(report, "filter_bytes", c->filter_read_bytes);
        muc_report_end(report);
    }
    muc_report_end(report);
}

static void add_bounds(muc_report *report, const muc_chip *chip, const muc_chip_tally *t)
{
    uint64_t bytes = chip->program.filter_image_bytes;

    for (uint32_t i = 0; i < chip->program.port_count; i++) {
        const muc_cnnchip_port *port = &chip->program.ports[i];

        bytes += (uint64_t)port->c * port->h * port->w *
                 muc_cnnchip_element_bytes(chip->program.element);
    }
    muc_report_add_count(report, "cycles_bound", muc_member_count(chip->map, "cycles_bound"));
    muc_report_add_count(report, "pe_bound", divided(t->blocks, chip->sim.pes));
    muc_report_add_count(report, "memory_bound", divided(bytes, chip->sim.bus_bytes));
}

/* the steps that buffers count by: instructions' layers and the host's */
static uint32_t step_count(const muc_chip *chip)
{
    size_t count = json_array_size(json_object_get(chip->map, "host_steps"));
    const json_t *layers = json_object_get(chip->map, "layers");

    for (size_t i = 0; i < json_array_size(layers); i++)
        count += json_array_size(json_object_get(json_array_get(layers, i), "steps"));
    return (uint32_t)count;
}

static muc_status add_frame(muc_context *ctx, muc_report *report, muc_chip *chip)
{
    const json_t *items = json_object_get(chip->map, "buffers");
    muc_memory_figure figure = { .title = "FRAME",
                                 .step_count = step_count(chip) + 1,
                                 .peak = chip->program.frame_bytes };
    muc_memory_buffer *buffers;

    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->arena, json_array_size(items) + 1, &buffers));
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);
        uint64_t last = muc_member_count(item, "last"), first = muc_member_count(item, "first");

        if (last >= figure.step_count || first > last)
            return muc_fail(ctx, MUC_MALFORMED, chip->map_file.bytes.name, MUC_NO_OFFSET,
                            "a buffer that lives after the last step");
        buffers[figure.buffer_count++] =
            (muc_memory_buffer){ .name = muc_member_text(item, "name"),
                                 .address = muc_member_count(item, "address"),
                                 .bytes = muc_member_count(item, "bytes"),
                                 .first = (uint32_t)first,
                                 .last = (uint32_t)last };
    }
    figure.buffers = buffers;
    figure.bound = muc_member_count(json_object_get(chip->map, "frame"), "bound");
    muc_report_add_memory(report, &figure);
    return MUC_OK;
}

/* weights and parameters lie in FILTER always, and are read by one step each; partial sums live
 * while a layer is split */
static muc_status add_filter(muc_context *ctx, muc_report *report, muc_chip *chip,
                             const muc_chip_tally *t)
{
    const json_t *filter = json_object_get(chip->map, "filter");
    muc_memory_figure figure = { .title = "FILTER: what each step reads",
                                 .step_count = step_count(chip) + 1,
                                 .peak = chip->program.filter_bytes };
    uint32_t step = 0;
    muc_memory_buffer *buffers;

    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->arena, 2 * (size_t)figure.step_count + 1, &buffers));
    for (size_t i = 0; i < json_array_size(t->layers); i++) {
        const json_t *layer = json_array_get(t->layers, i);
        const json_t *steps = json_object_get(layer, "steps");
        const char *name = muc_member_text(layer, "tensor");

        for (size_t k = 0; k < json_array_size(steps); k++, step++) {
            const json_t *item = json_array_get(steps, k);

            if (muc_member_count(item, "weights_bytes"))
                buffers[figure.buffer_count++] =
                    (muc_memory_buffer){ .name = name,
                                         .address = muc_member_count(item, "weights"),
                                         .bytes = muc_member_count(item, "weights_bytes"),
                                         .first = step,
                                         .last = step };
            if (t->parts[i + 1] > 1)
                buffers[figure.buffer_count++] =
                    (muc_memory_buffer){ .name = "partial sums",
                                         .address = muc_member_count(filter, "scratch"),
                                         .bytes = muc_member_count(filter, "scratch_bytes"),
                                         .first = step,
                                         .last = step };
        }
    }
    figure.buffers = buffers;
    muc_report_add_memory(report, &figure);
    return MUC_OK;
}

static muc_status zero_inputs(muc_context *ctx, muc_chip *chip, muc_tensor_view **out)
{
    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->arena, chip->input_count + 1, out));
    for (size_t i = 0; i < chip->input_count; i++) {
        const muc_chip_place *p = &chip->inputs[i];
        uint8_t *data;

        MUC_TRY(MUC_ARENA_NEW(ctx, &chip->arena, (size_t)p->bytes + 1, &data));
        (*out)[i] = (muc_tensor_view){ .name = p->name,
                                       .dtype = p->dtype,
                                       .rank = p->rank,
                                       .elements = p->elements,
                                       .bytes = p->bytes,
                                       .data = data,
                                       .file = chip->path };
    }
    return MUC_OK;
}

/* cycles do not depend on what is computed: the program runs once on zeros */
static muc_status report_folder(muc_context *ctx, muc_chip *chip, muc_report *report)
{
    muc_chip_tally t = { .layers = json_object_get(chip->map, "layers") };
    muc_tensor_view *zeros, *outputs;

    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->arena, json_array_size(t.layers) + 1, &t.counts));
    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->arena, json_array_size(t.layers) + 1, &t.parts));
    chip->sim.trace = count_insn;
    chip->sim.trace_arg = &t;
    MUC_TRY(zero_inputs(ctx, chip, &zeros));
    MUC_TRY(muc_chip_run(ctx, chip, zeros, chip->input_count, &outputs));
    muc_report_add_text(report, "name", "%s", muc_member_text(chip->map, "name"));
    muc_report_add_text(report, "machine", "%s", muc_member_text(chip->map, "machine"));
    muc_report_add_text(report, "element", "%s", muc_cnnchip_element_name(chip->program.element));
    muc_report_add_count(report, "pes", chip->sim.pes);
    muc_chip_add_counts(report, chip);
    add_bounds(report, chip, &t);
    muc_report_add_count(report, "frame_bytes", chip->program.frame_bytes);
    muc_report_add_count(report, "frame_bound",
                         muc_member_count(json_object_get(chip->map, "frame"), "bound"));
    muc_report_add_count(report, "filter_bytes", chip->program.filter_bytes);
    add_layers(report, chip, &t);
    MUC_TRY(muc_chip_answer(ctx, chip, &t, report));
    MUC_TRY(add_frame(ctx, report, chip));
    MUC_TRY(add_filter(ctx, report, chip, &t));
    MUC_TRY(muc_chip_draw_graph(ctx, chip, report));
    return muc_report_status(ctx, report);
}

muc_status muc_report_cnnchip(muc_context *ctx, const char *path, const muc_report_options *options,
                              muc_report **out)
{
    muc_report *report = NULL;
    muc_status status;
    muc_chip chip;

    MUC_TRY(refuse_board(ctx, path, options->board)); /* cycles do not depend on the input */
    MUC_TRY(muc_chip_open(ctx, path, &chip));
    status = muc_report_new(ctx, &report);
    if (status == MUC_OK)
        status = report_folder(ctx, &chip, report);
    if (status == MUC_OK)
        *out = report;
    else
        muc_report_free(report);
    muc_chip_close(&chip);
    return status;
}
