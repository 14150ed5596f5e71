/* lower_llama.h - a laid-out Llama to a template: SPEC.md section 8, stage by stage. */
#ifndef MUC_UTHINKER_LOWER_H
#define MUC_UTHINKER_LOWER_H

#include "targets/uthinker/lower/template_ir.h"
#include "targets/uthinker/lower/uthinker_layout.h"

typedef enum muc_entry_kind {
#define MUR_ENTRY(name, kind, meaning) MUC_ENTRY_##name = kind,
#include "mur_sections.def"
} muc_entry_kind;

const char *muc_entry_name(muc_entry_kind kind); /* "DECODE" */

/* DECODE: m is 1, so that all that depends on m alone is an Immediate. PREFILL: m is an input. The
 * template lives in arena and borrows the layout's tables. */
muc_status muc_uthinker_lower(muc_context *ctx, muc_arena *arena, const muc_uthinker_layout *layout,
                              muc_entry_kind kind, muc_template *out);

#endif
