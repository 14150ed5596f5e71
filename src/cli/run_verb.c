/* run_verb.c - run: a model continues a text or converses, a network computes arrays. */
#include "cli/verb_tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"

/* ---- what is printed as it comes ---- */

/* a failed write ends the run; main tells of it */
static bool print_text(void *arg, const char *text, size_t size)
{
    (void)arg;
    cli_end_progress();
    return fwrite(text, 1, size, stdout) == size && fflush(stdout) == 0;
}

/* Bytes of a character that has more, and a NUL. */
typedef struct line_writer {
    char held[4];
    size_t size;
} line_writer;

/* Of size bytes, those before a character at the end that is not whole. */
static size_t whole_characters(const char *text, size_t size)
{
    size_t back = 0, length;
    unsigned char first;

    while (back < size && back < 3 && ((unsigned char)text[size - 1 - back] & 0xc0) == 0x80)
        back++;
    if (back == size)
        return size;
    first = (unsigned char)text[size - 1 - back];
    length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    return length > back + 1 ? size - back - 1 : size;
}

/* {"text": "..."} */
static bool print_line(const char *text)
{
    char *json = muc_json_string(text);
    bool is_written = json && printf("{\"text\": %s}\n", json) > 0 && fflush(stdout) == 0;

    free(json);
    return is_written;
}

static bool print_text_line(void *arg, const char *text, size_t size)
{
    line_writer *w = arg;
    char *all = malloc(w->size + size + 1);
    size_t count = w->size + size, whole;
    bool goes_on = all != NULL;

    cli_end_progress();
    if (!all)
        return false;
    memcpy(all, w->held, w->size);
    memcpy(all + w->size, text, size);
    whole = whole_characters(all, count);
    w->size = count - whole;
    memcpy(w->held, all + whole, w->size);
    w->held[w->size] = all[whole] = '\0';
    if (whole)
        goes_on = print_line(all);
    free(all);
    return goes_on;
}

/* The report on one line: between its values only, for line ends in texts are escaped. */
static muc_status print_report_line(muc_context *ctx, const muc_report *report, line_writer *w)
{
    char *json;
    size_t at = 0;

    if (w->size)
        print_line(w->held);
    w->size = 0;
    CLI_TRY(muc_report_as_json(ctx, report, &json));
    for (const char *c = json; *c; c++) {
        if (*c == '\n')
            c += strspn(c, "\n ") - 1;
        else
            json[at++] = *c;
    }
    json[at] = '\0';
    puts(json);
    fflush(stdout);
    free(json);
    return MUC_OK;
}

static muc_status run_options(const cli_args *args, muc_run_options *out)
{
    uint64_t count;

    out->raw = cli_given(args, OPTION_RAW);
    out->no_special = cli_given(args, OPTION_NO_SPECIAL);
    if (!cli_given(args, OPTION_JSON))
        out->text = print_text;
    out->chat = args->values[OPTION_CHAT_TEMPLATE];
    if (!out->chat && cli_given(args, OPTION_CHAT))
        out->chat = "auto";
    out->system = args->values[OPTION_SYSTEM];
    out->prompt_cache = args->values[OPTION_PROMPT_CACHE];
    out->stops = args->repeated;
    out->stop_count = args->repeated_count;
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

/* ---- conversations ---- */

/* false: no memory */
static bool add_character(char **line, size_t *capacity, size_t at, char c)
{
    size_t larger = 2 * *capacity + 64;
    char *grown;

    if (at == *capacity) {
        grown = realloc(*line, larger);
        if (!grown)
            return false;
        *line = grown;
        *capacity = larger;
    }
    (*line)[at] = c;
    return true;
}

/* The next line of standard input, without its end; false at the input's. *line is malloc'ed. */
static bool read_line(char **line, size_t *capacity)
{
    size_t size = 0;
    int c;

    cli_end_progress();
    if (muc_is_terminal(stdin)) {
        fputs("> ", stderr);
        fflush(stderr);
    }
    for (c = getchar(); c != EOF && c != '\n'; c = getchar())
        if (!add_character(line, capacity, size++, (char)c))
            return false;
    if ((c == EOF && size == 0) || !add_character(line, capacity, size, '\0'))
        return false;
    while (size > 0 && (*line)[size - 1] == '\r')
        (*line)[--size] = '\0';
    return true;
}

/* One prompt and what the model says to it. */
static muc_status say(muc_context *ctx, muc_session *session, const char *prompt,
                      line_writer *lines)
{
    muc_report *report = NULL;
    muc_status status = muc_session_say(session, prompt, &report);

    if (status == MUC_OK && lines)
        status = print_report_line(ctx, report, lines);
    else if (status == MUC_OK)
        putchar('\n');
    fflush(stdout);
    muc_report_free(report);
    return status;
}

static muc_status converse(muc_context *ctx, const muc_model *model, const muc_run_options *options,
                           const char *prompt, line_writer *lines)
{
    muc_session *session = NULL;
    char *line = NULL;
    size_t capacity = 0;
    muc_status status = muc_session_new(ctx, model, options, &session);

    if (status == MUC_OK && prompt)
        status = say(ctx, session, prompt, lines);
    while (status == MUC_OK && !ferror(stdout) && read_line(&line, &capacity)) {
        if (strcmp(line, "/exit") == 0)
            break;
        if (strcmp(line, "/clear") == 0) {
            muc_session_free(session);
            session = NULL;
            status = muc_session_new(ctx, model, options, &session);
        } else if (line[0]) {
            status = say(ctx, session, line, lines);
        }
    }
    free(line);
    muc_session_free(session);
    return status;
}

/* Whether the next prompts are lines of standard input. */
static muc_status wants_conversation(const cli_args *args, const muc_run_options *options,
                                     const char *prompt, bool *out)
{
    *out = cli_given(args, OPTION_INTERACTIVE) || (options->chat && !prompt);
    if (!*out)
        return MUC_OK;
    if (cli_given(args, OPTION_JSON))
        return cli_misuse(args, "a conversation has no one report: use --json-lines, not --json");
    if (options->board || options->machine)
        return cli_misuse(args, "--interactive is for models that run here: without --qemu and "
                                "--machine");
    return MUC_OK;
}

/* ---- the verb ---- */

static muc_status run_folder(muc_context *ctx, const cli_args *args, const muc_array_run *arrays)
{
    muc_report *report = NULL;
    muc_status status;

    if (args->operands[1])
        return cli_misuse(args, "unexpected argument '%s' after a folder", args->operands[1]);
    status = muc_run_folder(ctx, args->operands[0], arrays, args->values[OPTION_QEMU], &report);
    return cli_finish(ctx, args, status, report);
}

static muc_status run_arrays(muc_context *ctx, const cli_args *args, const muc_model *model,
                             const muc_array_run *arrays)
{
    muc_report *report = NULL;
    muc_status status = muc_run_network(ctx, model, arrays, &report);

    return cli_finish(ctx, args, status, report);
}

static muc_status run_once(muc_context *ctx, const cli_args *args, const muc_model *model,
                           const muc_run_options *options, line_writer *lines)
{
    muc_report *report = NULL;
    muc_status status = muc_run(ctx, model, options, &report);

    if (status == MUC_OK && lines) {
        status = print_report_line(ctx, report, lines);
    } else if (status != MUC_OK || cli_given(args, OPTION_JSON)) {
        return cli_finish(ctx, args, status, report);
    } else {
        putchar('\n');
        fflush(stdout);
        print_timings(report);
    }
    muc_report_free(report);
    return status;
}

static muc_status run_model(muc_context *ctx, const cli_args *args, const muc_array_run *arrays,
                            muc_run_options *options, const char *prompt)
{
    line_writer writer = { .size = 0 }, *lines = NULL;
    muc_model *model = NULL;
    bool converses, is_network;
    muc_status status = wants_conversation(args, options, prompt, &converses);

    if (status == MUC_OK && cli_given(args, OPTION_JSON_LINES)) {
        lines = &writer;
        options->text = print_text_line;
        options->arg = lines;
        if (cli_given(args, OPTION_JSON))
            status = cli_misuse(args, "give --json or --json-lines, not both");
    }
    options->prompt = prompt ? prompt : "";
    if (status == MUC_OK)
        status = cli_open_operand(ctx, args, 0, prompt, &model);
    is_network = status == MUC_OK && muc_model_is_network(model);
    if (status == MUC_OK && !is_network && cli_given(args, OPTION_OUTPUT))
        status = cli_misuse(args, "--output is for a network's results; text goes to stdout");
    else if (is_network)
        status = run_arrays(ctx, args, model, arrays);
    else if (status == MUC_OK && converses)
        status = converse(ctx, model, options, prompt, lines);
    else if (status == MUC_OK)
        status = run_once(ctx, args, model, options, lines);
    muc_model_close(model);
    return status;
}

muc_status cli_run(muc_context *ctx, const cli_args *args)
{
    muc_run_options options = {
        .prompt = "",
        .board = args->values[OPTION_QEMU],
        .machine = args->values[OPTION_MACHINE],
    };
    const muc_array_run arrays = {
        .input = args->values[OPTION_INPUT],
        .image = args->values[OPTION_IMAGE],
        .preprocess = args->values[OPTION_PREPROCESS],
        .dims = args->values[OPTION_DIM],
        .labels = args->values[OPTION_LABELS],
        .output = args->values[OPTION_OUTPUT],
        .dump = args->values[OPTION_DUMP],
    };
    const char *path = args->operands[0], *prompt;
    char *owned;
    muc_status status;

    CLI_TRY(run_options(args, &options));
    if (muc_is_code_folder(path) && !muc_is_language_folder(path))
        return run_folder(ctx, args, &arrays);
    if (options.board && !muc_is_code_folder(path))
        return cli_misuse(args, "--qemu runs a folder of C code that compile --target mcu wrote");
    status = cli_take_prompt(args, &owned, &prompt);
    if (status == MUC_OK)
        status = run_model(ctx, args, &arrays, &options, prompt);
    free(owned);
    return status;
}
