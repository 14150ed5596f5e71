/* text_verbs.c - the verbs by which a language model is used: eval, bench and tokenize. */
#include "cli/verb_tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- bench ---- */

enum { MOST_MODELS = 16 };

muc_status cli_bench(muc_context *ctx, const cli_args *args)
{
    muc_bench_options options = {
        .prompts = args->values[OPTION_N_PROMPT],
        .tokens = args->values[OPTION_TOKENS],
    };
    muc_model *models[MOST_MODELS] = { NULL };
    uint64_t depth, repetitions;
    muc_report *report = NULL;
    muc_status status = MUC_OK;
    size_t count = 0;

    CLI_TRY(cli_count(args, OPTION_DEPTH, 0, UINT32_MAX, 0, &depth));
    CLI_TRY(cli_count(args, OPTION_REPETITIONS, 1, 1000, 0, &repetitions));
    options.depth = (uint32_t)depth;
    options.repetitions = (uint32_t)repetitions;
    for (; args->operands[count] && status == MUC_OK; count++)
        status = cli_open_model(ctx, args, args->operands[count], &models[count]);
    if (status == MUC_OK)
        status = muc_bench(ctx, (const muc_model *const *)models, count, &options, &report);
    for (size_t i = 0; i < count; i++)
        muc_model_close(models[i]);
    return cli_finish(ctx, args, status, report);
}
