/* text_verbs.c - the verbs by which a language model is used: run, eval and tokenize. */
#include "cli/verb_tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PROMPT_BYTES = 1 << 24 };

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
        CLI_TRY(cli_count(args, OPTION_TOKENS, 1, UINT32_MAX, 0, &count));
        out->most_tokens = (uint32_t)count;
    }
    CLI_TRY(cli_real(args, OPTION_TEMPERATURE, 0, 100, 0, &out->sampling.temperature));
    CLI_TRY(cli_count(args, OPTION_TOP_K, 0, UINT32_MAX, 0, &count));
    out->sampling.top_k = (uint32_t)count;
    CLI_TRY(cli_real(args, OPTION_TOP_P, 0, 1, 1, &out->sampling.top_p));
    CLI_TRY(cli_real(args, OPTION_MIN_P, 0, 1, 0, &out->sampling.min_p));
    CLI_TRY(cli_real(args, OPTION_REPEAT_PENALTY, 0, 100, 1, &out->sampling.repeat_penalty));
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
        return cli_finish(ctx, args, status, report);
    }
    options.board = args->values[OPTION_QEMU];
    options.machine = args->values[OPTION_MACHINE];
    if (status == MUC_OK && options.board && !muc_is_code_folder(args->operands[0]))
        return cli_misuse(args, "--qemu runs a folder of C code that compile --target mcu wrote");

    if (status != MUC_OK)
        return status;
    status = cli_take_prompt(args, &owned, &prompt);
    options.prompt = prompt ? prompt : "";
    if (status == MUC_OK)
        status = cli_open_operand(ctx, args, 0, prompt, &model);
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
        return cli_finish(ctx, args, status, report);
    putchar('\n');
    fflush(stdout);
    print_timings(report);
    muc_report_free(report);
    return MUC_OK;
}

/* ---- eval ---- */

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
    CLI_TRY(cli_count(args, OPTION_WINDOW, 2, UINT32_MAX, 0, &window));
    CLI_TRY(cli_count(args, OPTION_LIMIT, 1, UINT32_MAX, 0, &limit));
    options.window = (uint32_t)window;
    options.limit = (uint32_t)limit;
    status = cli_open_operand(ctx, args, 0, NULL, &model);
    if (status == MUC_OK && cli_given(args, OPTION_REFERENCE))
        status = cli_open_model(ctx, args, args->values[OPTION_REFERENCE], &reference);
    options.reference = reference;
    if (status == MUC_OK && text)
        status = muc_eval_text(ctx, model, text, &options, &report);
    else if (status == MUC_OK)
        status = muc_eval_task(ctx, model, task, &options, &report);
    muc_model_close(reference);
    muc_model_close(model);
    return cli_finish(ctx, args, status, report);
}

/* ---- tokenize ---- */

/* the argument, --prompt or --file: one of them */
static muc_status text_to_tokenize(const cli_args *args, char **owned, const char **out)
{
    const char *text = args->operands[1];

    CLI_TRY(cli_take_prompt(args, owned, out));
    if (!*out == !text)
        return cli_misuse(args, text ? "the text is given twice: as an argument and as an option"
                                     : "say which text: muc tokenize MODEL TEXT, or --file FILE");
    if (text)
        *out = text;
    return MUC_OK;
}

/* --ids: bytes as they are */
static muc_status print_text_of(muc_context *ctx, const cli_args *args, const muc_model *model)
{
    char *text = NULL;
    size_t size;
    muc_status status = muc_detokenize(ctx, model, args->values[OPTION_IDS], &text, &size);

    cli_end_progress();
    if (status == MUC_OK && size)
        fwrite(text, 1, size, stdout);
    if (status == MUC_OK)
        putchar('\n');
    free(text);
    return status;
}

muc_status cli_tokenize(muc_context *ctx, const cli_args *args)
{
    const muc_tokenize_options options = {
        .no_bos = cli_given(args, OPTION_NO_BOS),
        .no_special = cli_given(args, OPTION_NO_SPECIAL),
    };
    bool decodes = cli_given(args, OPTION_IDS);
    muc_report *report = NULL;
    muc_model *model = NULL;
    const char *text = NULL;
    char *owned = NULL;
    muc_status status = MUC_OK;

    if (decodes && (args->operands[1] || cli_given(args, OPTION_PROMPT) ||
                    cli_given(args, OPTION_FILE) || cli_given(args, OPTION_JSON)))
        return cli_misuse(args, "--ids prints the text of tokens: it takes no text and no --json");
    if (!decodes)
        status = text_to_tokenize(args, &owned, &text);
    if (status == MUC_OK)
        status = cli_open_model(ctx, args, args->operands[0], &model);
    if (status == MUC_OK && decodes)
        status = print_text_of(ctx, args, model);
    else if (status == MUC_OK)
        status = muc_tokenize(ctx, model, text, &options, &report);
    muc_model_close(model);
    free(owned);
    return cli_finish(ctx, args, status, report);
}
