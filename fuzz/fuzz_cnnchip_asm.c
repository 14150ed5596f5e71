/* Assembly of the CNN chip: what assembles is a program file, and a sound one. */
#include "chip_program_runs.h"
#include "fuzz.h"
#include "targets/cnnchip/isa/chip_program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    muc_context *ctx = muc_context_new(1);
    muc_arena arena = { 0 };
    muc_bytes program;

    if (muc_cnnchip_assemble(ctx, &arena, (muc_bytes){ data, size, "fuzz" }, &program) == MUC_OK)
        fuzz_chip_program(ctx, program);
    muc_arena_free(&arena);
    muc_context_free(ctx);
    return 0;
}
