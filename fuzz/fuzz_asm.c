/* Texts of program files: what assembles must come back from its own text, byte for byte. */
#include "targets/uthinker/asm/uthinker_asm.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static void check_round_trip(muc_context *ctx, muc_arena *arena, muc_bytes program)
{
    muc_text text = { 0 };
    muc_bytes again;

    if (muc_uthinker_disassemble(ctx, program, &text) != MUC_OK ||
        muc_uthinker_assemble(ctx, arena, (muc_bytes){ (const uint8_t *)text.data, text.size, "" },
                              &again) != MUC_OK ||
        again.size != program.size || memcmp(again.data, program.data, again.size) != 0)
        abort();
    muc_text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    muc_context *ctx = muc_context_new(1);
    muc_arena arena = { 0 };
    muc_bytes program;

    if (muc_uthinker_assemble(ctx, &arena, (muc_bytes){ data, size, "fuzz" }, &program) == MUC_OK)
        check_round_trip(ctx, &arena, program);
    muc_arena_free(&arena);
    muc_context_free(ctx);
    return 0;
}
