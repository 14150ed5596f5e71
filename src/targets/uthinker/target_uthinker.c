/* target_uthinker.c - what target uthinker makes, recognised; its programs as text. */
#include <string.h>

#include "base/file.h"
#include "targets/target.h"
#include "targets/uthinker/asm/uthinker_asm.h"
#include "targets/uthinker/run/open_program.h"

static bool is_program(muc_bytes bytes)
{
    return bytes.size >= 4 && memcmp(bytes.data, "UTP1", 4) == 0;
}

muc_made muc_recognise_uthinker(const char *path, muc_bytes bytes)
{
    (void)path;
    return is_program(bytes) ? MUC_MADE_LANGUAGE : MUC_MADE_NOTHING;
}

/* ---- assembly ---- */

/* every text that is not another target's: its assembler tells what is wrong with it */
static bool is_text(muc_bytes bytes)
{
    (void)bytes;
    return false;
}

static muc_status assemble(muc_context *ctx, muc_arena *arena, muc_bytes text, muc_bytes *out)
{
    mur_program program;

    MUC_TRY(muc_uthinker_assemble(ctx, arena, text, out));
    out->name = text.name;
    return muc_program_open(ctx, *out, &program);
}

static muc_status list_resolved(muc_context *ctx, muc_bytes program, uint32_t position,
                                uint32_t tokens, muc_text *out)
{
    muc_entry_kind kind = tokens == 1 ? MUC_ENTRY_DECODE : MUC_ENTRY_PREFILL;
    mur_program opened;

    MUC_TRY(muc_program_open(ctx, program, &opened));
    return muc_uthinker_list_resolved(ctx, program, kind, position, tokens, out);
}

const muc_target_assembly muc_assembly_uthinker = { is_program, is_text, muc_uthinker_disassemble,
                                                    assemble, list_resolved };
