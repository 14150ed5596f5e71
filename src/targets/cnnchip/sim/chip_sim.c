/* chip_sim.c - the CNN chip's run: fetch, execute, count (SPEC.md sections 2, 7 and 8). */
#include "targets/cnnchip/sim/chip_sim.h"

#include "targets/cnnchip/sim/chip_sim_op.h"

static uint64_t divided(uint64_t value, uint32_t by)
{
    return (value + by - 1) / by;
}

/* cycles of elements that the PEs pass on, one each; without a limit all in one */
static uint64_t passes(const muc_cnnchip_sim *sim, uint64_t elements)
{
    if (elements == 0)
        return 0;
    return sim->pes ? divided(elements, sim->pes) : 1;
}

static void count_traffic(const sim_op *op, uint64_t results, uint64_t border,
                          muc_cnnchip_counts *counts)
{
    uint32_t element = op->element_bytes;

    if (op->opcode != OP_ADD)
        counts->frame_read_bytes = (uint64_t)op->in_c * op->in_h * op->in_w * element;
    else if (op->flags & FLAG_src32)
        counts->filter_read_bytes = 2 * 4 * results;
    else
        counts->frame_read_bytes =
            (op->flags & (FLAG_one | FLAG_const1) ? 1 : 2) * results * element;
    if (op->flags & FLAG_const1)
        counts->filter_read_bytes += results * element;
    if (op->flags & FLAG_dsp)
        counts->filter_read_bytes += (uint64_t)12 * op->out_c;
    counts->filter_read_bytes += muc_cnnchip_weight_elements(op) * element;
    if (op->flags & FLAG_dst32)
        counts->filter_written_bytes = 4 * results;
    else
        counts->frame_written_bytes = (results + border) * element;
}

static void count(const muc_cnnchip_sim *sim, const sim_op *op, muc_cnnchip_counts *counts)
{
    static const muc_cnnchip_counts none;

    *counts = none;
    counts->instructions = 1;
    counts->program_bytes = 4 * (uint64_t)op->words;
    if (op->opcode != OP_END) {
        uint64_t results = muc_cnnchip_results(op), border = muc_cnnchip_border_elements(op);

        counts->operations = results * op->block;
        counts->compute_cycles =
            (op->opcode == OP_ADD ? passes(sim, results) : results) + passes(sim, border);
        count_traffic(op, results, border, counts);
    }
    if (sim->bus_bytes)
        counts->memory_cycles = divided(counts->frame_read_bytes + counts->frame_written_bytes +
                                            counts->filter_read_bytes +
                                            counts->filter_written_bytes + counts->program_bytes,
                                        sim->bus_bytes);
    counts->cycles = counts->compute_cycles > counts->memory_cycles ? counts->compute_cycles
                                                                    : counts->memory_cycles;
}

static void sum_counts(muc_cnnchip_counts *total, const muc_cnnchip_counts *own)
{
    total->instructions += own->instructions;
    total->cycles += own->cycles;
    total->compute_cycles += own->compute_cycles;
    total->memory_cycles += own->memory_cycles;
    total->operations += own->operations;
    total->frame_read_bytes += own->frame_read_bytes;
    total->frame_written_bytes += own->frame_written_bytes;
    total->filter_read_bytes += own->filter_read_bytes;
    total->filter_written_bytes += own->filter_written_bytes;
    total->program_bytes += own->program_bytes;
}

/* one instruction; false when the chip has stopped */
static int step(muc_cnnchip_sim *sim)
{
    uint32_t words[SIM_MAX_WORDS], pc = sim->pc;
    muc_cnnchip_counts own;
    muc_cnnchip_fault fault;
    sim_op op;

    if (!muc_cnnchip_decode(sim, &op, words, &fault)) {
        sim->status = MUC_CNNCHIP_FAULTED;
        sim->code = fault;
        return 0;
    }
    muc_cnnchip_execute(sim, &op);
    sim->pc += 4 * op.words;
    count(sim, &op, &own);
    sum_counts(&sim->counts, &own);
    if (sim->trace)
        sim->trace(sim->trace_arg, sim, pc, words, &own);
    if (op.opcode != OP_END)
        return 1;
    sim->status = MUC_CNNCHIP_ENDED;
    sim->code = op.code;
    return 0;
}

muc_cnnchip_state muc_cnnchip_sim_start(muc_cnnchip_sim *sim)
{
    static const muc_cnnchip_counts none;

    sim->counts = none;
    sim->pc = 0;
    sim->status = MUC_CNNCHIP_IDLE;
    return muc_cnnchip_sim_resume(sim);
}

muc_cnnchip_state muc_cnnchip_sim_resume(muc_cnnchip_sim *sim)
{
    if (sim->status == MUC_CNNCHIP_FAULTED)
        return sim->status;
    sim->status = MUC_CNNCHIP_BUSY;
    while (step(sim)) {
    }
    return sim->status;
}
