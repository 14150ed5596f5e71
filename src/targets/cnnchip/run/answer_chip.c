/* answer_chip.c - whether a network fits the CNN chip, how fast it is, and what would help. */
#include "targets/cnnchip/run/answer_chip.h"

#include <inttypes.h>

#include "base/text.h"
#include "report/answers.h"
#include "report/figures.h"

static const double worth_saying = 0.02; /* a share of the cycles */

static uint64_t member(const json_t *item, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(item, key));

    return value > 0 ? (uint64_t)value : 0;
}

const char *muc_chip_bound_by(const muc_cnnchip_counts *counts)
{
    return counts->memory_cycles > counts->compute_cycles ? "bus" : "PEs";
}

/* ---- memories ---- */

static void add_memories(const muc_chip *chip, muc_report *report)
{
    const uint64_t addresses = (uint64_t)1 << 32; /* of a memory without a limit */
    const json_t *frame = json_object_get(chip->map, "frame");
    const json_t *filter = json_object_get(chip->map, "filter");
    uint64_t frame_limit = member(frame, "limit"), filter_limit = member(filter, "limit");
    const muc_memory_use uses[] = {
        { "tensors", "FRAME", chip->program.frame_bytes, frame_limit ? frame_limit : addresses },
        { "weights", "FILTER", chip->program.filter_image_bytes,
          filter_limit ? filter_limit : addresses },
        { "partial sums", "FILTER", member(filter, "scratch_bytes"),
          filter_limit ? filter_limit : addresses },
    };

    muc_report_begin_memories(report);
    for (size_t i = 0; i < MUC_COUNT(uses); i++)
        if (uses[i].bytes)
            muc_report_add_memory_use(report, &uses[i]);
    muc_report_end(report);
}

/* ---- speed ---- */

static muc_status answer_speed(muc_context *ctx, muc_chip *chip, muc_report *report)
{
    uint64_t cycles = chip->sim.counts.cycles, clock = member(chip->map, "clock_mhz");
    size_t hosts = json_array_size(json_object_get(chip->map, "host_steps"));
    const char *answer, *detail;

    if (clock)
        MUC_TRY(muc_arena_format(ctx, &chip->arena, &answer, "%.4g ms a run",
                                 (double)cycles / (double)clock / 1e3));
    else
        MUC_TRY(muc_arena_format(ctx, &chip->arena, &answer, "%" PRIu64 " cycles a run", cycles));
    MUC_TRY(muc_arena_format(ctx, &chip->arena, &detail, "%" PRIu64 " cycles of the chip%s", cycles,
                             hosts ? "; those of the master, which computes the host steps, "
                                     "are not counted."
                                   : "."));
    muc_report_answer_speed(report, answer, detail);
    return MUC_OK;
}

/* ---- advice ---- */

/* the share of all cycles of layers that wait for the bus */
static double bus_share(const muc_chip *chip, const muc_chip_tally *t)
{
    uint64_t cycles = 0;

    for (size_t i = 1; i <= json_array_size(t->layers); i++)
        if (t->counts[i].memory_cycles > t->counts[i].compute_cycles)
            cycles += t->counts[i].cycles;
    return chip->sim.counts.cycles ? (double)cycles / (double)chip->sim.counts.cycles : 0;
}

static void advise_bus(const muc_chip *chip, const muc_chip_tally *t, muc_report *report)
{
    double cycles = (double)chip->sim.counts.cycles;
    double saved = 1 - (double)t->wide_cycles / cycles;

    if (chip->sim.bus_bytes && saved >= worth_saying)
        muc_report_advise(report,
                          "Layers that wait for the bus take %.0f %% of the cycles. A bus of %u "
                          "bytes (bus_bytes) would take %" PRIu64 " cycles in place of %" PRIu64
                          ": %.0f %% less.",
                          100 * bus_share(chip, t), 2 * chip->sim.bus_bytes, t->wide_cycles,
                          chip->sim.counts.cycles, 100 * saved);
}

/* layers whose blocks are larger than the PEs */
static void advise_parts(const muc_chip *chip, const muc_chip_tally *t, muc_report *report)
{
    uint64_t cycles = 0;
    size_t layers = 0;

    for (size_t i = 1; i <= json_array_size(t->layers); i++)
        if (t->parts[i] > 1) {
            layers++;
            cycles += t->counts[i].cycles;
        }
    if (layers && (double)cycles >= worth_saying * (double)chip->sim.counts.cycles)
        muc_report_advise(report,
                          "%zu layer%s of %.0f %% of the cycles %s computed in parts, because "
                          "a block has more operations than the %u PEs: more of them (--pes) need "
                          "fewer parts, and fewer bytes of partial sums.",
                          layers, layers == 1 ? "" : "s",
                          100 * (double)cycles / (double)chip->sim.counts.cycles,
                          layers == 1 ? "is" : "are", chip->sim.pes);
}

static void advise_pes(const muc_chip *chip, const muc_chip_tally *t, muc_report *report)
{
    const muc_cnnchip_counts *c = &chip->sim.counts;
    double whole = (double)chip->sim.pes * (double)c->compute_cycles;
    double used = whole > 0 ? (double)c->operations / whole : 1;

    if (used < 0.75 && bus_share(chip, t) < 0.5)
        muc_report_advise(report,
                          "While they compute, %.0f %% of the PEs have work: most blocks have "
                          "fewer operations than there are PEs, so more of them would help little.",
                          100 * used);
}

static void advise_bound(const muc_chip *chip, muc_report *report)
{
    uint64_t cycles = chip->sim.counts.cycles, bound = member(chip->map, "cycles_bound");

    if (bound && (double)(cycles - bound) >= worth_saying * (double)cycles && cycles > bound)
        muc_report_advise(report,
                          "No way to split layers takes fewer than %" PRIu64 " cycles; this one "
                          "takes %.0f %% more.",
                          bound, 100 * ((double)cycles / (double)bound - 1));
}

/* ---- roofline ---- */

static double bytes_of(const muc_cnnchip_counts *c)
{
    return (double)(c->frame_read_bytes + c->filter_read_bytes + c->frame_written_bytes +
                    c->filter_written_bytes);
}

static muc_status draw_roofline(muc_context *ctx, muc_chip *chip, const muc_chip_tally *t,
                                muc_report *report)
{
    const muc_cnnchip_counts *all = &chip->sim.counts;
    muc_roofline_figure figure = { .x_name = "operations for each byte over the bus",
                                   .y_name = "operations/cycle",
                                   .roof_name = "roofs: bus, then PEs",
                                   .layer_name = "layers",
                                   .whole = { "the whole network", (double)all->operations,
                                              bytes_of(all), (double)all->cycles },
                                   .count = json_array_size(t->layers),
                                   .peak_macs = chip->sim.pes,
                                   .peak_bytes = chip->sim.bus_bytes };
    muc_roof_point *points;

    MUC_TRY(MUC_ARENA_NEW(ctx, &chip->arena, figure.count + 1, &points));
    for (size_t i = 0; i < figure.count; i++) {
        const char *name =
            json_string_value(json_object_get(json_array_get(t->layers, i), "tensor"));
        const muc_cnnchip_counts *c = &t->counts[i + 1];

        points[i] = (muc_roof_point){ name ? name : "", (double)c->operations, bytes_of(c),
                                      (double)c->cycles };
    }
    figure.layers = points;
    muc_report_add_roofline(report, &figure);
    return MUC_OK;
}

muc_status muc_chip_answer(muc_context *ctx, muc_chip *chip, const muc_chip_tally *tally,
                           muc_report *report)
{
    add_memories(chip, report);
    muc_report_begin_answers(report);
    muc_report_answer_fit(report);
    MUC_TRY(answer_speed(ctx, chip, report));
    muc_report_answer_costs(report);
    muc_report_end(report);
    muc_report_begin_advice(report);
    advise_bus(chip, tally, report);
    advise_parts(chip, tally, report);
    advise_pes(chip, tally, report);
    advise_bound(chip, report);
    muc_report_end(report);
    return draw_roofline(ctx, chip, tally, report);
}
