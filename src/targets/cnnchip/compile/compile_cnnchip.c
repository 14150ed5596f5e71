/* compile_cnnchip.c - compiles a network to the CNN chip's memory images and program. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/choice.h"
#include "targets/cnnchip/run/chip_folder.h"
#include "run/network_int8.h"
#include "report/report_builder.h"
#include "run/fingerprint.h"
#include "targets/target.h"
#include "targets/cnnchip/compile/build_cnnchip.h"
#include "targets/cnnchip/emit/chip_hex.h"

/* ---- the machine ---- */

static bool is_int8(const muc_graph *graph)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].kind == MUC_TENSOR_ACTIVATION && graph->tensors[i].dtype == MUC_I8 &&
            graph->tensors[i].quantization)
            return true;
    return false;
}

static muc_status read_pes(muc_context *ctx, const char *text, uint32_t *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (strcmp(text, "unlimited") == 0) {
        *out = 0;
        return MUC_OK;
    }
    if (text[0] < '0' || text[0] > '9' || *end || value < 4 || value > MUC_CNNCHIP_MOST_PES)
        return muc_fail(ctx, MUC_USAGE, "processing elements", MUC_NO_OFFSET,
                        "'%s': expected 4..%d or unlimited", text, MUC_CNNCHIP_MOST_PES);
    *out = (uint32_t)value;
    return MUC_OK;
}

static muc_status read_element(muc_context *ctx, const char *text, uint32_t *out)
{
    enum { MOST = 8 };
    const char *names[MOST];
    uint32_t count = 0;

    for (; count < MOST && muc_cnnchip_element_name(count); count++)
        names[count] = muc_cnnchip_element_name(count);
    return muc_choose(ctx, "--element", text, names, count, out);
}

/* an int8 network for no chip in particular is for one of int8 */
static muc_status find_machine(muc_context *ctx, muc_arena *arena, const muc_graph *graph,
                               const muc_compile_options *options, muc_cnnchip_machine *out)
{
    MUC_TRY(muc_cnnchip_find_machine(ctx, arena, options->machine, out));
    if (!options->machine && is_int8(graph))
        out->element = MUC_CNNCHIP_int8;
    if (options->element)
        MUC_TRY(read_element(ctx, options->element, &out->element));
    return options->pes ? read_pes(ctx, options->pes, &out->pes) : MUC_OK;
}

/* bits of a line of .hex: of 8 to 8192 a multiple of 8; 0: none */
static muc_status read_hex(muc_context *ctx, const char *text, const muc_cnnchip_machine *machine,
                           uint32_t *out)
{
    unsigned long value;
    char *end;

    if (strcmp(text, "none") == 0) {
        *out = 0;
        return MUC_OK;
    }
    value = strcmp(text, "bus") == 0 ? 8ul * machine->bus_bytes : strtoul(text, &end, 10);
    if (strcmp(text, "bus") == 0 && value == 0)
        return muc_fail(ctx, MUC_USAGE, "hex", MUC_NO_OFFSET,
                        "the machine's bus has no width; give the bits of a line");
    if (strcmp(text, "bus") != 0 && (text[0] < '0' || text[0] > '9' || *end))
        value = 0;
    if (value < 8 || value > MUC_CNNCHIP_MOST_HEX_BITS || value % 8)
        return muc_fail(ctx, MUC_USAGE, "hex", MUC_NO_OFFSET,
                        "'%s': expected a multiple of 8 from 8 to %d, bus or none", text,
                        MUC_CNNCHIP_MOST_HEX_BITS);
    *out = (uint32_t)value;
    return MUC_OK;
}

/* ---- report ---- */

static void add_memory(muc_report *report, const char *memory, const char *use, uint64_t bytes)
{
    muc_report_begin_row(report);
    muc_report_add_text(report, "memory", "%s", memory);
    muc_report_add_text(report, "use", "%s", use);
    muc_report_add_count(report, "bytes", bytes);
    muc_report_end(report);
}

static void add_hosts(muc_report *report, const muc_cnnchip_lowering *l)
{
    muc_report_begin_table(report, "host_steps");
    for (uint32_t h = 0; h < l->host_count; h++)
        for (uint32_t i = 0; i < l->hosts[h].node_count; i++) {
            const muc_node *node = &l->graph->nodes[l->hosts[h].nodes[i]];

            muc_report_begin_row(report);
            muc_report_add_count(report, "code", h + 1);
            muc_report_add_text(report, "operator", "%s", muc_op_get(node->op)->name);
            muc_report_add_text(report, "node", "%.48s", node->name);
            muc_report_end(report);
        }
    muc_report_end(report);
}

static void add_check(muc_report *report, const muc_chip_check *check)
{
    muc_report_begin_group(report, "self_check");
    if (check->layers == 0)
        muc_report_add_text(report, "layers", "none: the network is too large");
    else
        muc_report_add_text(report, "layers", "%u of %u", check->layers, check->of);
    if (check->exact_layers)
        muc_report_add_bool(report, "exact", check->agrees);
    else if (check->layers)
        muc_report_add_real(report, "worst_relative_error", check->worst);
    if (check->first[0])
        muc_report_add_text(report, "first_divergence", "%s", check->first);
    muc_report_end(report);
}

static muc_status make_report(muc_context *ctx, const muc_cnnchip_build *build,
                              const muc_chip_check *check, const char *path, muc_report **out)
{
    const muc_cnnchip_lowering *l = &build->lowering;
    muc_report *report;

    MUC_TRY(muc_report_new(ctx, out));
    report = *out;
    muc_report_add_text(report, "folder", "%s", path);
    muc_report_add_text(report, "name", "%s", build->name);
    muc_report_add_text(report, "machine", "%s", build->machine.name);
    muc_report_add_text(report, "element", "%s", muc_cnnchip_element_name(build->machine.element));
    if (build->machine.pes)
        muc_report_add_count(report, "pes", build->machine.pes);
    else
        muc_report_add_text(report, "pes", "unlimited");
    muc_report_add_count(report, "layers", l->layer_count);
    muc_report_add_count(report, "instructions", build->program.insn_count);
    muc_report_add_count(report, "cycles", l->cycles);
    muc_report_add_count(report, "cycles_bound", l->least_cycles);
    muc_report_add_count(report, "frame_bytes", l->plan.peak);
    muc_report_add_count(report, "frame_bound", l->plan.least);
    add_check(report, check);
    muc_report_begin_table(report, "memory");
    add_memory(report, "FRAME", "tensors", l->plan.peak);
    add_memory(report, "FILTER", "weights", l->weights_bytes);
    add_memory(report, "FILTER", "parameters", l->params_bytes);
    add_memory(report, "FILTER", "partial sums", l->scratch_bytes);
    add_memory(report, "program", "instructions", build->program.code_bytes);
    muc_report_end(report);
    if (l->host_count)
        add_hosts(report, l);
    return muc_report_status(ctx, report);
}

/* ---- the road ---- */

typedef struct chip_job {
    muc_graph *graph;
    const muc_cnnchip_build *build;
    muc_chip_check check;
} chip_job;

/* no rounding of binary32 leaves a layer this far from the reference, of its greatest element */
#define MOST_ROUNDING 0.1

/* The simulator runs what was written, and layers are compared with the reference. What is wrong is
 * a defect of muc; small differences are told. */
static muc_status self_check(muc_context *ctx, const char *path, void *arg)
{
    chip_job *job = arg;

    if (!muc_chip_fits(&job->build->program))
        return MUC_OK; /* the simulator refuses to open it */
    MUC_TRY(muc_chip_self_check(ctx, path, job->graph, &job->check));
    if (job->build->machine.element == MUC_CNNCHIP_fp32 && job->check.worst > MOST_ROUNDING)
        return muc_fail(ctx, MUC_BUG, path, MUC_NO_OFFSET,
                        "the program computes something else than the network: %s is off by %g of "
                        "its greatest element",
                        job->check.first, job->check.worst);
    if (job->check.exact_layers && !job->check.agrees)
        return muc_fail(ctx, MUC_BUG, path, MUC_NO_OFFSET,
                        "the program and the reference in the chip's arithmetic differ at %s",
                        job->check.first);
    if (job->check.cycles && job->check.cycles != job->build->lowering.cycles)
        return muc_fail(ctx, MUC_BUG, path, MUC_NO_OFFSET,
                        "the simulator counts %" PRIu64 " cycles, the compiler %" PRIu64,
                        job->check.cycles, job->build->lowering.cycles);
    return MUC_OK;
}

/* inputs that were given with the network, quantized and bordered, become part of the image */
static muc_status put_inputs(muc_context *ctx, muc_cnnchip_build *build, const muc_model *model,
                             muc_arena *arena)
{
    muc_bytes image = build->frame_image;
    muc_text map = { 0 };
    muc_status status;
    uint8_t *frame;

    if (model->array_count == 0)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, image.size + 1, &frame));
    memcpy(frame, image.data, image.size);
    muc_cnnchip_print_map(build, &map);
    status = muc_text_status(ctx, &map);
    if (status == MUC_OK)
        status =
            muc_chip_fill_frame(ctx, (muc_bytes){ (const uint8_t *)map.data, map.size, "map.json" },
                                &build->program, model->arrays, model->array_count, frame);
    muc_text_free(&map);
    return status == MUC_OK ? muc_cnnchip_set_frame(build, frame) : status;
}

/* what a network that was quantized lost, of the graph as it was quantized */
typedef struct losses {
    muc_int8_loss *items;
    size_t count;
} losses;

static muc_status finish(muc_context *ctx, muc_cnnchip_build *build, const muc_model *model,
                         const losses *lost, muc_arena *arena, const char *out_path,
                         muc_report **out)
{
    chip_job job = { .graph = model->network.graph, .build = build };

    MUC_TRY(muc_graph_fingerprint(ctx, job.graph, &build->fingerprint));
    MUC_TRY(put_inputs(ctx, build, model, arena));
    MUC_TRY(muc_cnnchip_write_folder(ctx, build, out_path, self_check, &job));
    MUC_TRY(make_report(ctx, build, &job.check, out_path, out));
    muc_int8_report_losses(*out, lost->items, lost->count);
    return muc_report_status(ctx, *out);
}

static muc_status compile(muc_context *ctx, const muc_model *model,
                          const muc_compile_options *options, muc_arena *arena,
                          const char *out_path, muc_report **out)
{
    muc_graph *graph = model->network.graph;
    losses lost = { NULL, 0 };
    uint32_t hex_bits = 32;
    muc_cnnchip_machine machine;
    muc_cnnchip_build *build;
    muc_status status;
    const char *name;

    MUC_TRY(muc_name_of_output(ctx, arena, model, options, &name));
    if (model->calibration_count)
        MUC_TRY(muc_int8_losses(ctx, model, arena, &lost.items, &lost.count));
    MUC_TRY(muc_prepare_cnnchip(ctx, graph)); /* passes */
    MUC_TRY(find_machine(ctx, arena, graph, options, &machine));
    if (options->hex)
        MUC_TRY(read_hex(ctx, options->hex, &machine, &hex_bits));
    status = muc_cnnchip_compile(ctx, graph, name, &machine, &build); /* lower, plan, emit */
    if (status == MUC_UNSUPPORTED && is_int8(graph) && machine.element != MUC_CNNCHIP_int8)
        muc_hint(ctx, "networks of int8 take --element int8");
    MUC_TRY(status);
    build->options = model->options;
    build->hex_bits = hex_bits;
    if (out_path)
        status = finish(ctx, build, model, &lost, arena, out_path, out);
    muc_cnnchip_build_free(build);
    return status;
}

static muc_status fit(muc_context *ctx, const muc_model *model, const muc_compile_options *options,
                      muc_arena *arena, muc_target_need *out)
{
    muc_graph *graph = model->network.graph;
    const muc_cnnchip_lowering *l;
    muc_cnnchip_machine machine;
    muc_cnnchip_build *build;

    MUC_TRY(muc_prepare_cnnchip(ctx, graph));
    MUC_TRY(find_machine(ctx, arena, graph, options, &machine));
    out->flash_limit = machine.filter_bytes;
    out->ram_limit = machine.frame_bytes;
    MUC_TRY(muc_cnnchip_compile(ctx, graph, "fit", &machine, &build));
    l = &build->lowering;
    out->flash_bytes = l->weights_bytes + l->params_bytes + l->scratch_bytes;
    out->ram_bytes = l->plan.peak;
    if (machine.clock_mhz && l->host_count == 0) /* nobody counts the master's cycles */
        out->ms_least = out->ms_most = (double)l->cycles / machine.clock_mhz / 1e3;
    muc_cnnchip_build_free(build);
    return MUC_OK;
}

muc_status muc_fit_cnnchip(muc_context *ctx, const muc_model *model,
                           const muc_compile_options *options, muc_target_need *out)
{
    muc_arena arena = { 0 };
    muc_status status;

    *out = (muc_target_need){ 0 };
    status = fit(ctx, model, options, &arena, out);
    muc_arena_free(&arena);
    return status;
}

muc_status muc_compile_cnnchip(muc_context *ctx, const muc_model *model,
                               const muc_compile_options *options, const char *out_path,
                               muc_report **out)
{
    muc_arena arena = { 0 };
    muc_status status = compile(ctx, model, options, &arena, out_path, out);

    muc_arena_free(&arena);
    return status;
}
