/* text_verbs.c - the verbs by which a language model is measured and its tokens shown. */
#include "cli/verb_tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- eval ---- */

/* What is measured: --text, --task, --choices, or the text of --kl. */
static muc_status eval_kind(const cli_args *args)
{
    unsigned given = 0;

    given += cli_given(args, OPTION_TEXT);
    given += cli_given(args, OPTION_TASK);
    given += cli_given(args, OPTION_CHOICES);
    given += cli_given(args, OPTION_KL);
    if (given != 1)
        return cli_misuse(args, "give either --text FILE or --task FILE, or --choices or --kl");
    return MUC_OK;
}

static muc_status eval_options(const cli_args *args, muc_eval_options *out)
{
    uint64_t window, limit, stride;

    CLI_TRY(cli_count(args, OPTION_WINDOW, 2, UINT32_MAX, 0, &window));
    CLI_TRY(cli_count(args, OPTION_LIMIT, 1, UINT32_MAX, 0, &limit));
    CLI_TRY(cli_count(args, OPTION_STRIDE, 1, UINT32_MAX, 0, &stride));
    *out = (muc_eval_options){
        .window = (uint32_t)window,
        .limit = (uint32_t)limit,
        .stride = (uint32_t)stride,
        .save_logits = args->values[OPTION_SAVE_LOGITS],
        .kl = args->values[OPTION_KL],
    };
    return cli_shard(args, &out->shard, &out->shards);
}

static muc_status eval(muc_context *ctx, const cli_args *args, const muc_model *model,
                       const muc_eval_options *options, muc_report **report)
{
    if (cli_given(args, OPTION_TASK))
        return muc_eval_task(ctx, model, args->values[OPTION_TASK], options, report);
    if (cli_given(args, OPTION_CHOICES))
        return muc_eval_choices(ctx, model, args->values[OPTION_CHOICES], options, report);
    return muc_eval_text(ctx, model, args->values[OPTION_TEXT], options, report);
}

muc_status cli_eval(muc_context *ctx, const cli_args *args)
{
    muc_model *model = NULL, *reference = NULL;
    muc_eval_options options;
    muc_report *report = NULL;
    muc_status status;

    CLI_TRY(eval_kind(args));
    CLI_TRY(eval_options(args, &options));
    status = cli_open_operand(ctx, args, 0, NULL, &model);
    if (status == MUC_OK && cli_given(args, OPTION_REFERENCE))
        status = cli_open_model(ctx, args, args->values[OPTION_REFERENCE], &reference);
    options.reference = reference;
    if (status == MUC_OK)
        status = eval(ctx, args, model, &options, &report);
    muc_model_close(reference);
    muc_model_close(model);
    return cli_finish(ctx, args, status, report);
}

muc_status cli_merge(muc_context *ctx, const cli_args *args)
{
    muc_report *report = NULL;
    muc_status status;
    size_t count = 0;

    while (args->operands[count])
        count++;
    status = cli_given(args, OPTION_OUTPUT) ? muc_merge_blocks(ctx, args->operands, count,
                                                               args->values[OPTION_OUTPUT], &report)
                                            : muc_merge_parts(ctx, args->operands, count, &report);
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
        status = muc_tokenizer_of(
            ctx, args->operands[0],
            &(muc_model_options){ .tokenizer = args->values[OPTION_TOKENIZER] }, &model);
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

/* ---- synth ---- */

muc_status cli_synth(muc_context *ctx, const cli_args *args)
{
    muc_synth_options options = { .shape = args->values[OPTION_SHAPE] };
    muc_report *report = NULL;
    uint64_t layers;
    muc_status status;

    CLI_TRY(cli_need_output(args));
    if (!options.shape)
        return cli_misuse(args, "say which model's shape: --shape NAME");
    CLI_TRY(cli_count(args, OPTION_SEED, 0, UINT64_MAX, 0, &options.seed));
    CLI_TRY(cli_count(args, OPTION_LAYERS, 1, 4096, 0, &layers));
    options.layers = (uint32_t)layers;
    status = muc_synth(ctx, &options, args->values[OPTION_OUTPUT], &report);
    return cli_finish(ctx, args, status, report);
}
