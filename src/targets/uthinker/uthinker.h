/* uthinker.h - the µThinker back end: a quantized Llama graph in, a program file out. */
#ifndef MUC_UTHINKER_H
#define MUC_UTHINKER_H

#include "targets/uthinker/emit/emit_sections.h"
#include "targets/uthinker/lower/lower_llama.h"
#include "targets/uthinker/machines/uthinker_machine.h"

/* Two terms everywhere, cached attention, the model's context, as many rows as fit. */
extern const muc_uthinker_options muc_uthinker_defaults;

/* A compilation with all its stages, for reports and tests. */
typedef struct muc_uthinker_build {
    muc_arena arena; /* of everything below */
    muc_uthinker_model model;
    muc_uthinker_layout layout;
    muc_template templates[MUC_UTHINKER_ENTRIES]; /* DECODE, PREFILL */
    muc_flat flat[MUC_UTHINKER_ENTRIES];
    muc_container sections;
    bool stripped;     /* of names and checksums of stages, as asked or for want of flash */
    muc_bytes program; /* the file */
} muc_uthinker_build;

/* Refuses from shapes alone, before anything is quantized, a graph that muc_uthinker_compile would
 * refuse whatever its weights: MUC_UNSUPPORTED where no stage computes a node, MUC_NOFIT where the
 * fewest bytes are too many. Blocks of zeros, which could take fewer, are not counted on. */
muc_status muc_uthinker_check_shapes(muc_context *ctx, const muc_graph *graph,
                                     const muc_uthinker_machine *machine,
                                     const muc_uthinker_options *options);

/* The machine, with the default machine's times and energies if it has no times. */
muc_status muc_uthinker_timed_machine(muc_context *ctx, const muc_uthinker_machine *machine,
                                      muc_uthinker_machine *out);

/* Compiles a graph whose weight matrices carry BlockDialect sequences, borrowed until
 * muc_uthinker_build_free. Runs no program: GOLD and STAG are zeros (muc_uthinker_set_section). The
 * same inputs give the same bytes. On failure there is nothing to free. */
muc_status muc_uthinker_compile(muc_context *ctx, const muc_graph *graph,
                                const muc_uthinker_machine *machine,
                                const muc_uthinker_options *options,
                                const muc_uthinker_tokens *tokens, muc_uthinker_build **out);
void muc_uthinker_build_free(muc_uthinker_build *build); /* NULL is fine */

/* Replaces, adds or (data NULL) removes a section of what muc_uthinker_write writes. data is
 * borrowed. */
void muc_uthinker_set_section(muc_uthinker_build *build, enum mur_section section,
                              const uint8_t *data, size_t size);
/* The program again, of the sections as they are now; the one before is gone. MUC_NOFIT if flash
 * has no room for it. */
muc_status muc_uthinker_write(muc_context *ctx, muc_uthinker_build *build);

#endif
