/* verb_tools.h - what verbs have in common: models opened as options say, reports printed. */
#ifndef CLI_VERB_TOOLS_H
#define CLI_VERB_TOOLS_H

#include "cli/cli.h"

#define CLI_TRY(expr) \
    do { \
        muc_status try_ = (expr); \
        if (try_ != MUC_OK) \
            return try_; \
    } while (0)

muc_status cli_no_memory(const cli_args *args); /* says so; MUC_NOMEM */

typedef enum cli_form { FORM_TEXT, FORM_JSON, FORM_CSV, FORM_HTML, FORM_MD, FORM_COUNT } cli_form;

/* What --format or --json says, else the end of the file's name. */
muc_status cli_report_form(const cli_args *args, cli_form *out);

/* Prints or writes the report, if there is one, in the form that the user asked for, and frees it.
 * A function that found something wrong may have made a report that shows it: both are told, and
 * its status is the result. */
muc_status cli_finish(muc_context *ctx, const cli_args *args, muc_status status,
                      muc_report *report);

/* exports: of a network, up to a NULL, or NULL. text: its inputs, or NULL. quantized: as --quant
 * and --calib say, if the file is a network. */
muc_status cli_model_options(const cli_args *args, const char *const *exports, const char *text,
                             bool quantized, muc_model_options *out);
/* compile: for muc_compile with these options, or NULL */
muc_status cli_open_as(muc_context *ctx, const cli_args *args, const char *path,
                       const char *const *exports, const char *text, bool quantized,
                       const muc_compile_options *compile, muc_model **out);
muc_status cli_open_model(muc_context *ctx, const cli_args *args, const char *path,
                          muc_model **out);
/* The operand at this place, or the built-in model; those after it are its exports. */
muc_status cli_open_operand(muc_context *ctx, const cli_args *args, unsigned operand,
                            const char *text, muc_model **out);

muc_status cli_need_output(const cli_args *args); /* MUC_USAGE without --output */

/* --shard I/N, or 0 and 0. */
muc_status cli_shard(const cli_args *args, uint32_t *shard, uint32_t *shards);

/* --prompt or --file, or NULL. *owned is to be freed, whatever *out is. */
muc_status cli_take_prompt(const cli_args *args, char **owned, const char **out);

#endif
