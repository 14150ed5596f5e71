/* fit_mcu.c - what a model needs of a microcontroller, and about how long a run takes. */
#include "targets/mcu/compile/mcu.h"

#include "targets/mcu/compile/compile_decoder.h"
#include "targets/mcu/plan/plan_arena.h"

/* thousandths of a cycle for a multiply-accumulate; 0: no model */
static const struct {
    uint32_t least, most;
} core_cycles[MUC_MCU_CORE_COUNT] = {
#define MUC_MCU_CORE_CYCLES(core, least, most) [MUC_MCU_CORE_##core] = { least, most },
#include "targets/mcu/machines/core_cycles.def"
#undef MUC_MCU_CORE_CYCLES
};

/* whether all its products are those of int8 */
static bool is_int8(const muc_mcu_program *program)
{
    const muc_graph *graph = program->graph;

    for (uint32_t i = 0; i < program->step_count; i++)
        if (program->steps[i].macs &&
            graph->tensors[program->steps[i].node->inputs[0]].dtype != MUC_I8)
            return false;
    return true;
}

void muc_mcu_guess_ms(muc_mcu_core core, double macs, double clock_mhz, double *least, double *most)
{
    *least = macs * core_cycles[core].least / 1e3 / (clock_mhz * 1e3);
    *most = macs * core_cycles[core].most / 1e3 / (clock_mhz * 1e3);
}

static void add_time(const muc_mcu_program *program, muc_target_need *need)
{
    const muc_mcu_machine *machine = program->machine;

    muc_mcu_guess_ms(machine->core, (double)muc_mcu_macs(program), machine->clock_mhz,
                     &need->ms_least, &need->ms_most);
    need->millijoules_least = need->ms_least * machine->milliwatts / 1e3;
    need->millijoules_most = need->ms_most * machine->milliwatts / 1e3;
}

muc_target_need muc_mcu_need(const muc_mcu_program *program)
{
    muc_target_need need = {
        .flash_bytes =
            program->lm ? muc_mcu_language_bytes(program) : muc_mcu_constant_bytes(program),
        .flash_limit = muc_mcu_memory_for(program->machine, MUC_MCU_WEIGHTS)->bytes,
        .ram_bytes = program->plan.peak,
        .ram_limit = muc_mcu_memory_for(program->machine, MUC_MCU_ARENA)->bytes,
    };

    if (!program->lm && !program->machine->has_dma && is_int8(program))
        add_time(program, &need);
    return need;
}

muc_status muc_fit_mcu(muc_context *ctx, const muc_model *model, const muc_compile_options *options,
                       muc_target_need *out)
{
    const muc_mcu_choices choices = { .need = out };
    muc_graph *graph = model->network.graph;
    muc_mcu_build *build = NULL;
    muc_status status;

    *out = (muc_target_need){ 0 };
    if (model->kind != MUC_MODEL_NETWORK)
        return muc_fit_decoder(ctx, model, options, out);
    MUC_TRY(muc_prepare_mcu(ctx, graph));
    status = muc_mcu_compile_as(ctx, graph, "fit", options->machine, &choices, &build);
    muc_mcu_build_free(build);
    return status;
}
