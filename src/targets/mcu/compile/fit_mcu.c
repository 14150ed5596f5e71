/* fit_mcu.c - what a model needs of a microcontroller, and about how long a run takes. */
#include "targets/mcu/compile/build_mcu.h"

#include <stdio.h>

#include "targets/mcu/compile/compile_decoder.h"
#include "targets/mcu/plan/plan_arena.h"

typedef struct cycle_range {
    uint32_t least, most; /* thousandths of a cycle for a multiply-accumulate; 0: no model */
} cycle_range;

static const cycle_range core_cycles[MUC_MCU_CORE_COUNT][MUC_DTYPE_COUNT] = {
#define MUC_MCU_CORE_CYCLES(core, type, least, most) \
    [MUC_MCU_CORE_##core][MUC_##type] = { least, most },
#include "targets/mcu/machines/core_cycles.def"
#undef MUC_MCU_CORE_CYCLES
};

static const cycle_range token_cycles[MUC_MCU_CORE_COUNT] = {
#define MUC_MCU_TOKEN_CYCLES(core, least, most) [MUC_MCU_CORE_##core] = { least, most },
#include "targets/mcu/machines/token_cycles.def"
#undef MUC_MCU_TOKEN_CYCLES
};

void muc_mcu_guess_ms(muc_mcu_core core, muc_dtype type, double macs, double clock_mhz,
                      double *least, double *most)
{
    const cycle_range *range = &core_cycles[muc_mcu_core_get(core)->as][type];

    *least = macs * range->least / 1e3 / (clock_mhz * 1e3);
    *most = macs * range->most / 1e3 / (clock_mhz * 1e3);
}

/* The type of a node's first input: also f16 that a core without kernels of halves computes as
 * f32, between conversions. */
static muc_dtype type_of(const muc_mcu_program *program, const muc_node *node)
{
    const muc_graph *graph = program->graph;
    const muc_tensor *x = &graph->tensors[node->inputs[0]];
    const muc_mcu_isa isa = muc_mcu_core_get(program->machine->core)->isa;
    const muc_node *before = x->producer == MUC_NO_ID ? NULL : &graph->nodes[x->producer];

    return before && muc_op_has(before->op, MUC_OP_CONVERTS) &&
                   muc_mcu_isa_suits(isa, MUC_MCU_ISA_MVE) < 0 &&
                   graph->tensors[before->inputs[0]].dtype == MUC_F16
               ? MUC_F16
               : x->dtype;
}

/* whether all products are those of one type, and of which */
static bool find_type(const muc_mcu_program *program, muc_dtype *type)
{
    bool found = false;

    for (uint32_t i = 0; i < program->step_count; i++) {
        muc_dtype own;

        if (program->steps[i].macs == 0)
            continue;
        own = type_of(program, program->steps[i].node);
        if (found && own != *type)
            return false;
        *type = own;
        found = true;
    }
    return found;
}

/* Multiply-accumulates of a language model's token at the first position and at the last: steps
 * have those of as many tokens as a call takes, attention with all of the context. */
static void count_token(const muc_mcu_program *program, double *first, double *last)
{
    const muc_graph *graph = program->graph;

    *first = *last = 0;
    for (uint32_t i = 0; i < program->step_count; i++) {
        const muc_node *node = program->steps[i].node;
        double macs = (double)program->steps[i].macs;

        if (macs == 0)
            continue;
        if (!muc_expr_is_const(graph->pool, graph->tensors[node->outputs[0]].dims[0]))
            macs /= program->lm->most_tokens; /* not the head, which has the last token alone */
        *last += macs;
        *first += node->op == MUC_OP_ATTENTION ? macs / program->lm->context : macs;
    }
}

static void add_time(const muc_mcu_program *program, muc_target_need *need)
{
    const muc_mcu_machine *machine = program->machine;
    muc_dtype type = MUC_I8;

    if (machine->has_dma)
        return;
    if (program->lm) {
        const cycle_range *range = &token_cycles[muc_mcu_core_get(machine->core)->as];

        count_token(program, &need->ms_least, &need->ms_most);
        need->ms_least *= range->least / 1e6 / machine->clock_mhz;
        need->ms_most *= range->most / 1e6 / machine->clock_mhz;
    } else if (find_type(program, &type)) {
        muc_mcu_guess_ms(machine->core, type, (double)muc_mcu_macs(program), machine->clock_mhz,
                         &need->ms_least, &need->ms_most);
    }
    need->millijoules_least = need->ms_least * machine->milliwatts / 1e3;
    need->millijoules_most = need->ms_most * machine->milliwatts / 1e3;
    if (need->millijoules_most > 0 && machine->power_source)
        snprintf(need->power_source, sizeof(need->power_source), "%s", machine->power_source);
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
    MUC_TRY(muc_mcu_prepare_for(ctx, graph, options->machine));
    status = muc_mcu_compile_as(ctx, graph, "fit", options->machine, &choices, &build);
    muc_mcu_build_free(build);
    return status;
}
