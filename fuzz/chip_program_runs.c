#include "chip_program_runs.h"

#include <stdlib.h>
#include <string.h>

#include "targets/cnnchip/isa/chip_program.h"
#include "targets/cnnchip/sim/chip_sim.h"

enum { MOST_MEMORY = 1 << 11, MOST_INSNS = 16 };

static void check_text(muc_context *ctx, muc_arena *arena, muc_bytes program)
{
    muc_text text = { 0 };
    muc_bytes again;

    if (muc_cnnchip_disassemble(ctx, program, &text) != MUC_OK ||
        muc_cnnchip_assemble(ctx, arena, (muc_bytes){ (const uint8_t *)text.data, text.size, "" },
                             &again) != MUC_OK ||
        again.size != program.size || memcmp(again.data, program.data, again.size) != 0)
        abort();
    muc_text_free(&text);
}

static void check_run(const muc_cnnchip_program *program)
{
    static uint8_t memories[2][MOST_MEMORY];
    muc_cnnchip_sim sim = { .frame = memories[0],
                            .frame_bytes = program->frame_bytes,
                            .filter = memories[1],
                            .filter_bytes = program->filter_bytes,
                            .filter_image_bytes = program->filter_image_bytes,
                            .program = program->code,
                            .program_bytes = program->code_bytes,
                            .pes = program->pes,
                            .element = (muc_cnnchip_element)program->element };

    if (program->frame_bytes > MOST_MEMORY || program->filter_bytes > MOST_MEMORY ||
        program->insn_count > MOST_INSNS)
        return;
    memset(memories, 0, sizeof(memories));
    muc_cnnchip_sim_start(&sim);
    while (sim.status == MUC_CNNCHIP_ENDED && sim.code != 0)
        muc_cnnchip_sim_resume(&sim);
    if (sim.status != MUC_CNNCHIP_ENDED || sim.counts.instructions != program->insn_count)
        abort();
}

void fuzz_chip_program(muc_context *ctx, muc_bytes program)
{
    muc_arena arena = { 0 };
    muc_cnnchip_program read;

    if (muc_cnnchip_read_program(ctx, &arena, program, &read) == MUC_OK) {
        check_text(ctx, &arena, program);
        check_run(&read);
    }
    muc_arena_free(&arena);
}
