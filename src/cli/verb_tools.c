/* verb_tools.c - what verbs have in common: models opened as options say, reports printed. */
#include "cli/verb_tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"

enum { MOST_PROMPT_BYTES = 1 << 24 };

muc_status cli_no_memory(const cli_args *args)
{
    cli_misuse(args, "%s", muc_status_meaning(MUC_NOMEM));
    return MUC_NOMEM;
}

static const char *const form_names[FORM_COUNT] = { "text", "json", "csv", "html", "md" };

/* where the report goes, or NULL: to standard output */
static const char *report_file(const cli_args *args)
{
    return args->verb == VERB_report ? args->values[OPTION_OUTPUT] : NULL;
}

/* what --format or --json says, else the end of the file's name */
muc_status cli_report_form(const cli_args *args, cli_form *out)
{
    const char *word = args->values[OPTION_FORMAT];
    const char *file = report_file(args), *end = file ? strrchr(file, '.') : NULL;
    muc_guess guess = { .word = word };

    *out = cli_given(args, OPTION_JSON) ? FORM_JSON : FORM_TEXT;
    if (!word && (*out != FORM_TEXT || !end))
        return MUC_OK;
    for (unsigned form = 0; form < FORM_COUNT; form++)
        if (strcmp(word ? word : end + 1, form_names[form]) == 0) {
            *out = (cli_form)form;
            return MUC_OK;
        }
    for (unsigned form = 0; word && form < FORM_COUNT; form++)
        muc_guess_try(&guess, form_names[form]);
    if (!word)
        return MUC_OK;
    return cli_misuse(args, "--format is text, json, csv, html or md, not '%s'%s%s%s", word,
                      guess.best ? "; did you mean '" : "", guess.best ? guess.best : "",
                      guess.best ? "'?" : "");
}

static muc_status make_page(muc_context *ctx, const cli_args *args, const muc_report *report,
                            char **out)
{
    char title[256];
    const char *name;

    if (!muc_report_string(report, "name", &name) && !muc_report_string(report, "file", &name))
        name = "";
    snprintf(title, sizeof(title), "muc %s %s", cli_verbs[args->verb].name, name);
    return muc_report_as_html(ctx, report, title, out);
}

static muc_status make_form(muc_context *ctx, const cli_args *args, const muc_report *report,
                            cli_form form, char **out)
{
    switch (form) {
    case FORM_JSON:
        return muc_report_as_json(ctx, report, out);
    case FORM_CSV:
        return muc_report_as_csv(ctx, report, args->values[OPTION_TABLE], out);
    case FORM_HTML:
        return make_page(ctx, args, report, out);
    case FORM_MD:
        return muc_report_as_markdown(ctx, report, out);
    case FORM_TEXT:
    case FORM_COUNT:
        break;
    }
    return muc_report_as_text(ctx, report, out);
}

/* Prints or writes a report in the form that the user asked for, and frees it. */
static muc_status print_report(muc_context *ctx, const cli_args *args, muc_report *report)
{
    const char *file = report_file(args);
    cli_form form;
    char *text = NULL;
    muc_status status = cli_report_form(args, &form);

    if (status == MUC_OK)
        status = make_form(ctx, args, report, form, &text);
    muc_report_free(report);
    if (status != MUC_OK)
        return status;
    cli_end_progress();
    if (file) {
        status = muc_report_save(ctx, file, text);
    } else if (form == FORM_TEXT) {
        cli_print_headed(text);
    } else {
        fputs(text, stdout);
        if (form == FORM_JSON)
            fputc('\n', stdout);
    }
    free(text);
    return status;
}

/* A function that found something wrong may have made a report that shows it: both are told. */
muc_status cli_finish(muc_context *ctx, const cli_args *args, muc_status status, muc_report *report)
{
    muc_status printed = report ? print_report(ctx, args, report) : MUC_OK;

    return status != MUC_OK ? status : printed;
}

/* exports: of a network, up to a NULL, or NULL. text: its inputs, or NULL. quantized: as --quant
 * and --calib say, if the file is a network. */
muc_status cli_model_options(const cli_args *args, const char *const *exports, const char *text,
                             bool quantized, muc_model_options *out)
{
    uint64_t context;

    CLI_TRY(cli_count(args, OPTION_CONTEXT, 1, UINT32_MAX, 0, &context));
    *out = (muc_model_options){ .tokenizer = args->values[OPTION_TOKENIZER],
                                .context = (uint32_t)context,
                                .dims = args->values[OPTION_DIM],
                                .types = args->values[OPTION_TYPE],
                                .arch = args->values[OPTION_ARCH],
                                .inputs = args->values[OPTION_INPUT],
                                .image = args->values[OPTION_IMAGE],
                                .preprocess = args->values[OPTION_PREPROCESS],
                                .text = text,
                                .no_special = cli_given(args, OPTION_NO_SPECIAL),
                                .exports = exports };
    if (quantized) {
        out->quant = args->values[OPTION_QUANT];
        out->calibration = args->values[OPTION_CALIBRATION];
        out->keep_float = args->values[OPTION_KEEP_FLOAT];
    }
    if (exports)
        while (exports[out->export_count])
            out->export_count++;
    return MUC_OK;
}

/* what runs on a device takes one sample after the other, unless it is told otherwise */
static bool is_for_device(const cli_args *args)
{
    cli_verb verb = args->verb;

    return verb == VERB_compile || verb == VERB_fit || verb == VERB_new ||
           (verb == VERB_verify && muc_is_code_folder(args->operands[0]));
}

/* compile: for muc_compile with these options, or NULL */
muc_status cli_open_as(muc_context *ctx, const cli_args *args, const char *path,
                       const char *const *exports, const char *text, bool quantized,
                       const muc_compile_options *compile, muc_model **out)
{
    muc_model_options options;
    const char *one;

    CLI_TRY(cli_model_options(args, exports, text, quantized, &options));
    options.compile = compile;
    options.compile_path = args->values[OPTION_OUTPUT];
    options.one_sample = is_for_device(args);
    CLI_TRY(muc_model_open(ctx, path, &options, out));
    one = muc_model_one_sample(*out);
    if (one)
        fprintf(stderr,
                "muc: %s leaves open how many samples a run takes: %s; --dim says otherwise, as in "
                "--dim %.*s=1..16\n",
                path, one, (int)strcspn(one, "="), one);
    return MUC_OK;
}

muc_status cli_open_model(muc_context *ctx, const cli_args *args, const char *path, muc_model **out)
{
    return cli_open_as(ctx, args, path, NULL, NULL, true, NULL, out);
}

muc_status cli_open_operand(muc_context *ctx, const cli_args *args, unsigned operand,
                            const char *text, muc_model **out)
{
    const char *path = args->operands[operand];

    return cli_open_as(ctx, args, path, path ? &args->operands[operand + 1] : NULL, text, true,
                       NULL, out);
}

muc_status cli_need_output(const cli_args *args)
{
    return cli_given(args, OPTION_OUTPUT) ? MUC_OK
                                          : cli_misuse(args, "say where to write: -o FILE");
}

/* The whole of a file or of stdin ("-"); malloc'ed and NUL-terminated. */
static muc_status read_prompt(const cli_args *args, const char *path, char **out)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : muc_open_stream(path);
    char *text = malloc(MOST_PROMPT_BYTES + 1);
    muc_status status = MUC_OK;
    size_t size = 0;

    if (!text)
        status = cli_no_memory(args);
    else if (file)
        size = fread(text, 1, MOST_PROMPT_BYTES + 1, file);
    if (status == MUC_OK && (!file || ferror(file))) {
        cli_misuse(args, "%s: the prompt cannot be read", path);
        status = MUC_IO;
    } else if (status == MUC_OK && size > MOST_PROMPT_BYTES) {
        status = cli_misuse(args, "%s: a prompt has at most %d bytes", path, MOST_PROMPT_BYTES);
    } else if (status == MUC_OK && memchr(text, 0, size)) {
        status = cli_misuse(args, "%s: a prompt is text, without NUL bytes", path);
    }
    if (file && !is_stdin)
        fclose(file);
    if (status != MUC_OK) {
        free(text);
        return status;
    }
    text[size] = '\0';
    *out = text;
    return MUC_OK;
}

/* *owned is to be freed, whatever *out is. */
muc_status cli_take_prompt(const cli_args *args, char **owned, const char **out)
{
    const char *file = args->values[OPTION_FILE], *prompt = args->values[OPTION_PROMPT];

    *owned = NULL;
    if (file && prompt)
        return cli_misuse(args, "give --prompt or --file, not both");
    if (prompt && strcmp(prompt, "-") == 0)
        file = prompt;
    *out = prompt;
    if (!file)
        return MUC_OK;
    CLI_TRY(read_prompt(args, file, owned));
    *out = *owned;
    return MUC_OK;
}

muc_status cli_shard(const cli_args *args, uint32_t *shard, uint32_t *shards)
{
    const char *text = args->values[OPTION_SHARD];
    unsigned long i, n;
    char *end;

    *shard = *shards = 0;
    if (!text)
        return MUC_OK;
    if (*text >= '0' && *text <= '9') {
        i = strtoul(text, &end, 10);
        if (end[0] == '/' && end[1] >= '0' && end[1] <= '9') {
            n = strtoul(end + 1, &end, 10);
            if (*end == '\0' && i >= 1 && i <= n && n <= 1000000) {
                *shard = (uint32_t)i;
                *shards = (uint32_t)n;
                return MUC_OK;
            }
        }
    }
    return cli_misuse(args, "--shard takes I/N, part I of N from 1 on, as 2/8; found '%s'", text);
}
