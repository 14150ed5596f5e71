/* verbs.c - each verb: options in, one call of the library, a report out. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PROMPT_BYTES = 1 << 24 };

#define TRY(expr) \
    do { \
        muc_status try_ = (expr); \
        if (try_ != MUC_OK) \
            return try_; \
    } while (0)

/* ---- shared by the verbs ---- */

static muc_status no_memory(const cli_args *args)
{
    cli_misuse(args, "%s", muc_status_meaning(MUC_NOMEM));
    return MUC_NOMEM;
}

typedef enum report_form { FORM_TEXT, FORM_JSON, FORM_CSV, FORM_HTML, FORM_COUNT } report_form;

static const char *const form_names[FORM_COUNT] = { "text", "json", "csv", "html" };

/* where the report goes, or NULL: to standard output */
static const char *report_file(const cli_args *args)
{
    return args->verb == VERB_report ? args->values[OPTION_OUTPUT] : NULL;
}

/* what --format or --json says, else the end of the file's name */
static muc_status report_form_of(const cli_args *args, report_form *out)
{
    const char *word = args->values[OPTION_FORMAT];
    const char *file = report_file(args), *end = file ? strrchr(file, '.') : NULL;
    muc_guess guess = { .word = word };

    *out = cli_given(args, OPTION_JSON) ? FORM_JSON : FORM_TEXT;
    if (!word && (*out != FORM_TEXT || !end))
        return MUC_OK;
    for (unsigned form = 0; form < FORM_COUNT; form++)
        if (strcmp(word ? word : end + 1, form_names[form]) == 0) {
            *out = (report_form)form;
            return MUC_OK;
        }
    for (unsigned form = 0; word && form < FORM_COUNT; form++)
        muc_guess_try(&guess, form_names[form]);
    if (!word)
        return MUC_OK;
    return cli_misuse(args, "--format is text, json, csv or html, not '%s'%s%s%s", word,
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
                            report_form form, char **out)
{
    switch (form) {
    case FORM_JSON:
        return muc_report_as_json(ctx, report, out);
    case FORM_CSV:
        return muc_report_as_csv(ctx, report, args->values[OPTION_TABLE], out);
    case FORM_HTML:
        return make_page(ctx, args, report, out);
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
    report_form form;
    char *text = NULL;
    muc_status status = report_form_of(args, &form);

    if (status == MUC_OK)
        status = make_form(ctx, args, report, form, &text);
    muc_report_free(report);
    if (status != MUC_OK)
        return status;
    cli_end_progress();
    if (file) {
        status = muc_report_save(ctx, file, text);
    } else {
        fputs(text, stdout);
        if (form == FORM_JSON)
            fputc('\n', stdout);
    }
    free(text);
    return status;
}

/* A function that found something wrong may have made a report that shows it: both are told. */
static muc_status finish(muc_context *ctx, const cli_args *args, muc_status status,
                         muc_report *report)
{
    muc_status printed = report ? print_report(ctx, args, report) : MUC_OK;

    return status != MUC_OK ? status : printed;
}

/* exports: of a network, up to a NULL, or NULL. text: its inputs, or NULL. quantized: as --quant
 * and --calib say, if the file is a network. */
static muc_status model_options(const cli_args *args, const char *const *exports, const char *text,
                                bool quantized, muc_model_options *out)
{
    uint64_t context;

    TRY(cli_count(args, OPTION_CONTEXT, 1, UINT32_MAX, 0, &context));
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

/* compile: for muc_compile with these options, or NULL */
static muc_status open_as(muc_context *ctx, const cli_args *args, const char *path,
                          const char *const *exports, const char *text, bool quantized,
                          const muc_compile_options *compile, muc_model **out)
{
    muc_model_options options;

    TRY(model_options(args, exports, text, quantized, &options));
    options.compile = compile;
    options.compile_path = args->values[OPTION_OUTPUT];
    return muc_model_open(ctx, path, &options, out);
}

static muc_status open_model(muc_context *ctx, const cli_args *args, const char *path,
                             muc_model **out)
{
    return open_as(ctx, args, path, NULL, NULL, true, NULL, out);
}

static muc_status open_operand(muc_context *ctx, const cli_args *args, unsigned operand,
                               const char *text, muc_model **out)
{
    const char *path = args->operands[operand];

    return open_as(ctx, args, path, path ? &args->operands[operand + 1] : NULL, text, true, NULL,
                   out);
}

static muc_status need_output(const cli_args *args)
{
    return cli_given(args, OPTION_OUTPUT) ? MUC_OK
                                          : cli_misuse(args, "say where to write: -o FILE");
}

static muc_status weight_options(const cli_args *args, muc_weight_options *out)
{
    *out = (muc_weight_options){
        .codec = args->values[OPTION_QUANT],
        .calibration = args->values[OPTION_CALIBRATION],
    };
    return cli_real(args, OPTION_BITS, 1, 16, 0, &out->bits);
}

/* ---- compile, quantize ---- */

muc_status cli_compile(muc_context *ctx, const cli_args *args)
{
    muc_compile_options options = {
        .target = args->values[OPTION_TARGET],
        .machine = args->values[OPTION_MACHINE],
        .act_terms = args->values[OPTION_ACT_TERMS],
        .attention = args->values[OPTION_ATTENTION],
        .patch = args->values[OPTION_PATCH],
        .fuse = args->values[OPTION_FUSE],
        .pes = args->values[OPTION_PES],
        .element = args->values[OPTION_ELEMENT],
        .hex = args->values[OPTION_HEX],
        .strip = cli_given(args, OPTION_STRIP),
    };
    const char *path = args->operands[0];
    muc_report *report = NULL;
    muc_model *model;
    muc_status status;

    TRY(need_output(args));
    TRY(weight_options(args, &options.weights));
    TRY(open_as(ctx, args, path, path ? &args->operands[1] : NULL, NULL, true, &options, &model));
    status = muc_compile(ctx, model, &options, args->values[OPTION_OUTPUT], &report);
    muc_model_close(model);
    return finish(ctx, args, status, report);
}

muc_status cli_quantize(muc_context *ctx, const cli_args *args)
{
    muc_weight_options options;
    muc_report *report = NULL;
    muc_model *model;
    muc_status status;

    TRY(need_output(args));
    TRY(weight_options(args, &options));
    TRY(open_operand(ctx, args, 0, NULL, &model));
    status = muc_quantize(ctx, model, &options, args->values[OPTION_OUTPUT], &report);
    muc_model_close(model);
    return finish(ctx, args, status, report);
}

/* ---- compress ---- */

/* "int2" of 2; NULL where the option was not given */
static muc_status format_of(const cli_args *args, cli_option option, const char **out)
{
    static const char *const formats[] = { "int2", "int4", "int8" };
    uint64_t bits;

    TRY(cli_count(args, option, 2, 8, 0, &bits));
    if (bits != 0 && bits != 2 && bits != 4 && bits != 8)
        return cli_misuse(args, "--%s takes 2, 4 or 8", cli_options[option].name);
    if (bits)
        *out = formats[bits == 2 ? 0 : bits / 4];
    return MUC_OK;
}

/* a number of bytes: "900000", "512K", "1M" */
static muc_status bytes_of(const cli_args *args, cli_option option, uint64_t *out)
{
    const char *text = args->values[option];
    char *end;

    *out = 0;
    if (!text)
        return MUC_OK;
    if (*text >= '0' && *text <= '9') {
        unsigned long long count = strtoull(text, &end, 10);
        uint64_t unit = *end == 'K' ? 1024 : *end == 'M' ? 1024 * 1024 : 1;

        if (count >= 1 && count <= UINT32_MAX && (!*end || (unit > 1 && !end[1]))) {
            *out = count * unit;
            return MUC_OK;
        }
    }
    return cli_misuse(args, "--%s takes a number of bytes, as 900000, 512K or 1M; found '%s'",
                      cli_options[option].name, text);
}

muc_status cli_compress(muc_context *ctx, const cli_args *args)
{
    muc_compress_options options = {
        .weights = args->values[OPTION_QUANT],
        .pure = cli_given(args, OPTION_QUANT),
        .calibration = args->values[OPTION_CALIBRATION],
        .text = args->values[OPTION_TEXT],
        .task = args->values[OPTION_TASK],
        .data = args->values[OPTION_DATA],
        .teacher = args->values[OPTION_TEACHER],
        .cases = cli_given(args, OPTION_CASES),
        .machine = args->values[OPTION_MACHINE],
    };
    muc_report *report = NULL;
    uint64_t limit, window;
    muc_model *model;
    muc_status status;

    TRY(need_output(args));
    TRY(cli_count(args, OPTION_STEPS, 1, UINT32_MAX, 0, &options.steps));
    TRY(cli_count(args, OPTION_BATCH, 2, 1 << 24, 0, &options.batch));
    TRY(cli_count(args, OPTION_SEED, 0, UINT64_MAX, 0, &options.seed));
    TRY(cli_real(args, OPTION_RATE, 1e-12, 1e3, 0, &options.rate));
    TRY(cli_real(args, OPTION_PRUNE, 0, 0.99, 0, &options.prune));
    if (options.weights && cli_given(args, OPTION_BITS))
        return cli_misuse(args, "both --bits and --quant say what weights become: give one");
    TRY(format_of(args, OPTION_BITS, &options.weights));
    TRY(format_of(args, OPTION_EMBED_BITS, &options.embedding));
    TRY(bytes_of(args, OPTION_BUDGET_FLASH, &options.flash_bytes));
    TRY(cli_count(args, OPTION_LIMIT, 1, UINT32_MAX, 0, &limit));
    TRY(cli_count(args, OPTION_WINDOW, 2, UINT32_MAX, 0, &window));
    options.limit = (uint32_t)limit;
    options.window = (uint32_t)window;
    TRY(open_operand(ctx, args, 0, NULL, &model));
    status = muc_compress(ctx, model, &options, args->values[OPTION_OUTPUT], &report);
    muc_model_close(model);
    return finish(ctx, args, status, report);
}

/* ---- run ---- */

/* The whole of a file or of stdin ("-"); malloc'ed and NUL-terminated. */
static muc_status read_prompt(const cli_args *args, const char *path, char **out)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    char *text = malloc(MOST_PROMPT_BYTES + 1);
    muc_status status = MUC_OK;
    size_t size = 0;

    if (!text)
        status = no_memory(args);
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
static muc_status take_prompt(const cli_args *args, char **owned, const char **out)
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
    TRY(read_prompt(args, file, owned));
    *out = *owned;
    return MUC_OK;
}

/* a failed write ends the run; main tells of it */
static bool print_text(void *arg, const char *text, size_t size)
{
    (void)arg;
    cli_end_progress();
    return fwrite(text, 1, size, stdout) == size && fflush(stdout) == 0;
}

static muc_status run_options(const cli_args *args, muc_run_options *out)
{
    uint64_t count;

    out->raw = cli_given(args, OPTION_RAW);
    out->no_special = cli_given(args, OPTION_NO_SPECIAL);
    if (!cli_given(args, OPTION_JSON))
        out->text = print_text;
    if (cli_given(args, OPTION_TOKENS) && strcmp(args->values[OPTION_TOKENS], "-1") != 0) {
        TRY(cli_count(args, OPTION_TOKENS, 1, UINT32_MAX, 0, &count));
        out->most_tokens = (uint32_t)count;
    }
    TRY(cli_real(args, OPTION_TEMPERATURE, 0, 100, 0, &out->sampling.temperature));
    TRY(cli_count(args, OPTION_TOP_K, 0, UINT32_MAX, 0, &count));
    out->sampling.top_k = (uint32_t)count;
    TRY(cli_real(args, OPTION_TOP_P, 0, 1, 1, &out->sampling.top_p));
    TRY(cli_real(args, OPTION_MIN_P, 0, 1, 0, &out->sampling.min_p));
    TRY(cli_real(args, OPTION_REPEAT_PENALTY, 0, 100, 1, &out->sampling.repeat_penalty));
    return cli_count(args, OPTION_SEED, 0, UINT64_MAX, 0, &out->sampling.seed);
}

/* of an emulated board, which has no time: instructions */
static void print_counts(const muc_report *report, double prompt, double tokens, const char *end)
{
    double first = 0, others = 0;

    muc_report_number(report, "prompt_instructions", &first);
    muc_report_number(report, "instructions", &others);
    fprintf(stderr, "prompt %.0f tokens in %.0f instructions, then %.0f tokens in %.0f", prompt,
            first, tokens, others);
    fprintf(stderr, ", ended by %s\n", end);
}

/* of a program: the simulated machine's own time */
static void print_machine(const muc_report *report)
{
    double first = 0, others = 0, speed = 0, energy = 0, more = 0;
    const char *machine;

    if (!muc_report_string(report, "machine", &machine))
        return;
    muc_report_number(report, "machine_prompt.seconds", &first);
    muc_report_number(report, "machine_steps.seconds", &others);
    muc_report_number(report, "machine_steps.tokens_per_second", &speed);
    fprintf(stderr, "%s: prompt %.3g s, then %.3g s", machine, first, others);
    if (speed > 0)
        fprintf(stderr, " (%.3g tokens/s)", speed);
    if (muc_report_number(report, "machine_prompt.millijoules", &energy) &&
        muc_report_number(report, "machine_steps.millijoules", &more))
        fprintf(stderr, ", %.3g mJ", energy + more);
    fputc('\n', stderr);
}

static void print_timings(const muc_report *report)
{
    const char *board;
    const char *end = "";
    double prompt = 0, prompt_seconds = 0, tokens = 0, seconds = 0;

    muc_report_number(report, "prompt_tokens", &prompt);
    muc_report_number(report, "prompt_seconds", &prompt_seconds);
    muc_report_number(report, "tokens", &tokens);
    muc_report_number(report, "seconds", &seconds);
    muc_report_string(report, "end", &end);
    if (muc_report_string(report, "board", &board)) {
        print_counts(report, prompt, tokens, end);
        return;
    }
    fprintf(stderr, "prompt %.0f tokens in %.3f s, then %.0f tokens in %.3f s", prompt,
            prompt_seconds, tokens, seconds);
    if (seconds > 0)
        fprintf(stderr, " (%.1f tokens/s)", tokens / seconds);
    fprintf(stderr, ", ended by %s\n", end);
    print_machine(report);
}

muc_status cli_run(muc_context *ctx, const cli_args *args)
{
    muc_run_options options = { .prompt = "" };
    const muc_array_run arrays = {
        .input = args->values[OPTION_INPUT],
        .image = args->values[OPTION_IMAGE],
        .preprocess = args->values[OPTION_PREPROCESS],
        .dims = args->values[OPTION_DIM],
        .labels = args->values[OPTION_LABELS],
        .output = args->values[OPTION_OUTPUT],
        .dump = args->values[OPTION_DUMP],
    };
    const char *prompt;
    char *owned;
    muc_report *report = NULL;
    muc_model *model = NULL;
    bool is_network;
    muc_status status = run_options(args, &options);

    if (status == MUC_OK && muc_is_code_folder(args->operands[0]) &&
        !muc_is_language_folder(args->operands[0])) {
        if (args->operands[1])
            return cli_misuse(args, "unexpected argument '%s' after a folder", args->operands[1]);
        status =
            muc_run_folder(ctx, args->operands[0], &arrays, args->values[OPTION_QEMU], &report);
        return finish(ctx, args, status, report);
    }
    options.board = args->values[OPTION_QEMU];
    options.machine = args->values[OPTION_MACHINE];
    if (status == MUC_OK && options.board && !muc_is_code_folder(args->operands[0]))
        return cli_misuse(args, "--qemu runs a folder of C code that compile --target mcu wrote");

    if (status != MUC_OK)
        return status;
    status = take_prompt(args, &owned, &prompt);
    options.prompt = prompt ? prompt : "";
    if (status == MUC_OK)
        status = open_operand(ctx, args, 0, prompt, &model);
    is_network = status == MUC_OK && muc_model_is_network(model);
    if (status == MUC_OK && !is_network && cli_given(args, OPTION_OUTPUT))
        status = cli_misuse(args, "--output is for a network's results; text goes to stdout");
    else if (is_network)
        status = muc_run_network(ctx, model, &arrays, &report);
    else if (status == MUC_OK)
        status = muc_run(ctx, model, &options, &report);
    muc_model_close(model);
    free(owned);
    if (status != MUC_OK || is_network || cli_given(args, OPTION_JSON))
        return finish(ctx, args, status, report);
    putchar('\n');
    fflush(stdout);
    print_timings(report);
    muc_report_free(report);
    return MUC_OK;
}

/* ---- eval, verify ---- */

muc_status cli_eval(muc_context *ctx, const cli_args *args)
{
    const char *text = args->values[OPTION_TEXT], *task = args->values[OPTION_TASK];
    muc_eval_options options = { 0 };
    uint64_t window, limit;
    muc_model *model = NULL, *reference = NULL;
    muc_report *report = NULL;
    muc_status status;

    if (!text == !task)
        return cli_misuse(args, "give either --text FILE or --task FILE");
    TRY(cli_count(args, OPTION_WINDOW, 2, UINT32_MAX, 0, &window));
    TRY(cli_count(args, OPTION_LIMIT, 1, UINT32_MAX, 0, &limit));
    options.window = (uint32_t)window;
    options.limit = (uint32_t)limit;
    status = open_operand(ctx, args, 0, NULL, &model);
    if (status == MUC_OK && cli_given(args, OPTION_REFERENCE))
        status = open_model(ctx, args, args->values[OPTION_REFERENCE], &reference);
    options.reference = reference;
    if (status == MUC_OK && text)
        status = muc_eval_text(ctx, model, text, &options, &report);
    else if (status == MUC_OK)
        status = muc_eval_task(ctx, model, task, &options, &report);
    muc_model_close(reference);
    muc_model_close(model);
    return finish(ctx, args, status, report);
}

static muc_status train_numbers(const cli_args *args, muc_train_options *o)
{
    const uint64_t most = UINT64_C(1) << 40;
    uint64_t window, vocabulary;

    TRY(cli_count(args, OPTION_STEPS, 1, most, 0, &o->steps));
    TRY(cli_count(args, OPTION_BATCH, 2, 1 << 24, 0, &o->batch));
    TRY(cli_count(args, OPTION_WARM_UP, 1, most, 0, &o->warm_up));
    TRY(cli_count(args, OPTION_EVERY, 1, most, 0, &o->every));
    TRY(cli_count(args, OPTION_SEED, 0, UINT64_MAX, 0, &o->seed));
    TRY(cli_count(args, OPTION_WINDOW, 1, UINT32_MAX, 0, &window));
    TRY(cli_count(args, OPTION_VOCAB, 1, 1 << 20, 0, &vocabulary));
    o->window = (uint32_t)window;
    o->vocabulary = (uint32_t)vocabulary;
    TRY(cli_real(args, OPTION_RATE, 1e-12, 1e3, 0, &o->rate));
    TRY(cli_real(args, OPTION_LEAST_RATE, 0, 1, -1, &o->least_rate));
    TRY(cli_real(args, OPTION_DECAY, 0, 1e3, -1, &o->decay));
    TRY(cli_real(args, OPTION_CLIP, 0, 1e12, -1, &o->clip));
    TRY(cli_real(args, OPTION_PRUNE, 0, 0.99, 0, &o->prune));
    return cli_real(args, OPTION_PROMPT_LOSS, 0, 1, 0, &o->prompt_loss);
}

muc_status cli_train(muc_context *ctx, const cli_args *args)
{
    muc_train_options options = {
        .data = args->values[OPTION_DATA],
        .cases = cli_given(args, OPTION_CASES),
        .held_out = args->values[OPTION_HELD_OUT],
        .tokenizer = args->values[OPTION_TOKENIZER],
        .resume = cli_given(args, OPTION_RESUME),
    };
    muc_report *report = NULL;
    muc_status status;

    TRY(need_output(args));
    if (!options.data)
        return cli_misuse(args, "say what to train on: --data FILE");
    TRY(train_numbers(args, &options));
    status = muc_train(ctx, args->operands[0], &options, args->values[OPTION_OUTPUT], &report);
    return finish(ctx, args, status, report);
}

muc_status cli_report(muc_context *ctx, const cli_args *args)
{
    muc_report_options options = {
        .board = args->values[OPTION_QEMU],
        .input = args->values[OPTION_INPUT],
        .machine = args->values[OPTION_MACHINE],
        .trace = args->values[OPTION_TRACE],
    };
    muc_report *report = NULL;
    uint64_t position, call;
    report_form form;
    muc_status status;

    TRY(report_form_of(args, &form)); /* before the board is asked */
    TRY(cli_count(args, OPTION_POSITION, 0, UINT32_MAX, 0, &position));
    TRY(cli_count(args, OPTION_CALL, 1, UINT32_MAX, 0, &call));
    options.position = (uint32_t)position;
    options.tokens = (uint32_t)call;
    if (cli_given(args, OPTION_INPUT) && !cli_given(args, OPTION_QEMU))
        return cli_misuse(args, "--input is what --qemu runs on");
    if (cli_given(args, OPTION_COMPARE) != !!args->operands[1])
        return cli_misuse(args,
                          args->operands[1] ? "unexpected argument '%s'; did you mean --compare?"
                                            : "--compare takes two: muc report --compare A B%s",
                          args->operands[1] ? args->operands[1] : "");
    if (args->operands[1] && options.trace)
        return cli_misuse(args, "--trace is of one program");
    if (args->operands[1])
        status = muc_compare_folders(ctx, args->operands[0], args->operands[1], &options, &report);
    else
        status = muc_report_folder(ctx, args->operands[0], &options, &report);
    return finish(ctx, args, status, report);
}

/* "I/N" */
static muc_status shard_options(const cli_args *args, muc_sweep_options *out)
{
    const char *text = args->values[OPTION_SHARD];
    unsigned long shard, shards;
    char *end;

    *out = (muc_sweep_options){ 0 };
    if (!text)
        return MUC_OK;
    if (*text >= '0' && *text <= '9') {
        shard = strtoul(text, &end, 10);
        if (end[0] == '/' && end[1] >= '0' && end[1] <= '9') {
            shards = strtoul(end + 1, &end, 10);
            if (*end == '\0' && shard >= 1 && shard <= shards && shards <= 1000000) {
                *out = (muc_sweep_options){ (uint32_t)shard, (uint32_t)shards };
                return MUC_OK;
            }
        }
    }
    return cli_misuse(args, "--shard takes I/N, part I of N from 1 on, as 2/8; found '%s'", text);
}

muc_status cli_sweep(muc_context *ctx, const cli_args *args)
{
    muc_sweep_options options;
    muc_report *report = NULL;
    muc_status status;

    TRY(need_output(args));
    TRY(shard_options(args, &options));
    status = muc_sweep(ctx, args->operands[0], &options, args->values[OPTION_OUTPUT], &report);
    return finish(ctx, args, status, report);
}

muc_status cli_verify(muc_context *ctx, const cli_args *args)
{
    muc_model *program = NULL, *model = NULL;
    muc_report *report = NULL;
    const char *prompt;
    char *owned;
    bool is_network;
    muc_status status;

    status = take_prompt(args, &owned, &prompt);
    if (status == MUC_OK && muc_is_code_folder(args->operands[0])) {
        if (!args->operands[1] && !muc_is_language_folder(args->operands[0]))
            status = cli_misuse(args, "say what %s was made of: muc verify FOLDER NETWORK",
                                args->operands[0]);
        if (status == MUC_OK)
            status = open_operand(ctx, args, 1, NULL, &model);
        if (status == MUC_OK && muc_is_language_folder(args->operands[0]))
            status = muc_verify_language_folder(ctx, args->operands[0], model, prompt, &report);
        else if (status == MUC_OK)
            status = muc_verify_folder(ctx, args->operands[0], model, args->values[OPTION_TRACE],
                                       &report);
        muc_model_close(model);
        free(owned);
        return finish(ctx, args, status, report);
    }
    if (status == MUC_OK)
        status = open_model(ctx, args, args->operands[0], &program);
    is_network = status == MUC_OK && muc_model_is_network(program);
    if (is_network && (!cli_given(args, OPTION_QUANT) || args->operands[1]))
        status = cli_misuse(args, "a network is compared with itself in --quant int8, or a folder "
                                  "made of it with it: muc verify FOLDER NETWORK");
    else if (is_network)
        status = open_as(ctx, args, args->operands[0], NULL, NULL, false, NULL, &model);
    else if (status == MUC_OK)
        status = open_operand(ctx, args, 1, NULL, &model);
    if (status == MUC_OK && is_network)
        status = muc_verify_int8(ctx, program, model, &report);
    else if (status == MUC_OK)
        status = muc_verify(ctx, program, model, prompt, &report);
    muc_model_close(model);
    muc_model_close(program);
    free(owned);
    return finish(ctx, args, status, report);
}

/* ---- inspect, dis, as, and the lists ---- */

muc_status cli_inspect(muc_context *ctx, const cli_args *args)
{
    muc_model_options options;
    muc_report *report = NULL;
    muc_status status;

    TRY(model_options(args, NULL, NULL, true, &options));
    status = muc_inspect_file(ctx, args->operands[0], &options, &report);
    return finish(ctx, args, status, report);
}

muc_status cli_dis(muc_context *ctx, const cli_args *args)
{
    uint64_t position, call;
    muc_status status;
    char *text = NULL;

    TRY(cli_count(args, OPTION_POSITION, 0, UINT32_MAX, 0, &position));
    TRY(cli_count(args, OPTION_CALL, 1, UINT32_MAX, 1, &call));
    if (cli_given(args, OPTION_CALL) && !cli_given(args, OPTION_POSITION))
        return cli_misuse(args, "--call needs --position");
    status =
        cli_given(args, OPTION_POSITION)
            ? muc_list_resolved(ctx, args->operands[0], (uint32_t)position, (uint32_t)call, &text)
            : muc_disassemble(ctx, args->operands[0], &text);
    if (status == MUC_OK)
        fputs(text, stdout);
    free(text);
    return status;
}

muc_status cli_as(muc_context *ctx, const cli_args *args)
{
    TRY(need_output(args));
    return muc_assemble(ctx, args->operands[0], args->values[OPTION_OUTPUT]);
}

static muc_status print_list(muc_context *ctx, const cli_args *args,
                             muc_status (*list)(muc_context *, muc_report **))
{
    muc_report *report = NULL;
    muc_status status = list(ctx, &report);

    return finish(ctx, args, status, report);
}

muc_status cli_formats(muc_context *ctx, const cli_args *args)
{
    return print_list(ctx, args, muc_list_formats);
}

muc_status cli_targets(muc_context *ctx, const cli_args *args)
{
    return print_list(ctx, args, muc_list_targets);
}

muc_status cli_ops(muc_context *ctx, const cli_args *args)
{
    return print_list(ctx, args, muc_list_operators);
}

muc_status cli_help(muc_context *ctx, const cli_args *args)
{
    (void)ctx;
    if (cli_given(args, OPTION_MAN)) {
        cli_print_man();
    } else if (cli_given(args, OPTION_COMPLETION)) {
        cli_print_completion();
    } else if (args->operands[0]) {
        cli_verb verb = cli_find_verb(args->operands[0]);

        if (verb == VERB_COUNT)
            return MUC_USAGE;
        cli_print_verb_help(verb);
    } else {
        cli_print_help();
    }
    return MUC_OK;
}
