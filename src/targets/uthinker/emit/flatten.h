/* flatten.h - a template to the words of CODE (SPEC.md section 5).
 *
 * The paper, section 3.3: "the IR becomes flattened in the sense that all Placeholders come before
 * the Instructions that depend on them". Placeholders become EVALs that write slots, fields that
 * are Placeholders become patches that name a slot.
 */
#ifndef MUC_UTHINKER_FLATTEN_H
#define MUC_UTHINKER_FLATTEN_H

#include "targets/uthinker/isa/debug_names.h"
#include "targets/uthinker/lower/template_ir.h"

/* All but the last switch a pass off; all-zero is the usual. The resolved program stays the same.
 */
typedef struct muc_flatten_options {
    bool no_sharing;  /* every use of an expression evaluates it anew */
    bool no_hoisting; /* an expression is evaluated in the loop that uses it, not further out */
    bool no_fusion;   /* a table's value and span take an EVAL each */
    bool streamed;    /* what has loops that a sequencer can repeat is marked for it */
} muc_flatten_options;

typedef struct muc_flat {
    uint32_t *words;
    size_t count, capacity;
    muc_debug_name *labels; /* of words[], ascending */
    size_t label_count, label_capacity;
    uint32_t instructions, patches, evals, loops; /* how many of each are in words */
    uint32_t slots;                               /* that are ever written, inputs included */
} muc_flat;

/* Everything lives in arena. Should the slots not suffice, less is hoisted. Fails with
 * MUC_UNSUPPORTED naming instruction and field if a value may not fit its field. */
muc_status muc_uthinker_flatten(muc_context *ctx, muc_arena *arena, const muc_template *template,
                                const muc_flatten_options *options, muc_flat *out);

#endif
