/* code_bytes.c - estimates what a language model's code takes of flash, without a compiler. */
#include <string.h>

#include "targets/mcu/emit/emit_language.h"
#include "targets/mcu/plan/plan_arena.h"

enum {
    CALL_BYTES = 24,   /* of a step in the run function */
    MATRIX_BYTES = 18, /* of a matrix's descriptor, and what of it the linker aligns */
    TEXT_BYTES = 400,  /* NAME_lm.c without the tokenizer, main and what it needs of a C library */
};

/* columns after those of instruction sets that boards have */
enum { RV_FLOAT = MUC_MCU_ISA_RV + 1, COLUMNS };

static const struct {
    const char *path;
    uint32_t bytes[COLUMNS];
} sources[] = {
#define MUC_MCU_CODE(path, plain, dsp, mve, rv, rv_float) \
    { path, { plain, dsp, mve, rv, rv_float } },
#include "targets/mcu/compile/code_bytes.def"
#undef MUC_MCU_CODE
};

uint64_t muc_mcu_language_bytes(const muc_mcu_program *program)
{
    muc_mcu_core core = program->machine->core;
    muc_mcu_isa isa = muc_mcu_core_get(core)->isa;
    unsigned column = core == MUC_MCU_CORE_RV32IMAFC ? RV_FLOAT
                      : isa == MUC_MCU_ISA_HOST      ? MUC_MCU_ISA_NONE
                      : isa == MUC_MCU_ISA_SINGLE    ? MUC_MCU_ISA_DSP
                      : isa == MUC_MCU_ISA_RVV       ? MUC_MCU_ISA_RV /* it has no vectors there */
                                                     : isa;
    uint64_t bytes = TEXT_BYTES + (uint64_t)CALL_BYTES * program->step_count;

    for (uint32_t i = 0; i < program->step_count; i++)
        bytes += program->steps[i].packed_bytes ? MATRIX_BYTES : 0;
    for (uint32_t i = 0; i < program->source_count; i++)
        for (size_t k = 0; k < MUC_COUNT(sources); k++)
            if (strcmp(program->sources[i], sources[k].path) == 0)
                bytes += sources[k].bytes[column];
    return bytes + muc_mcu_constant_bytes(program) + program->table_bytes +
           program->lm->tokenizer_bytes;
}
