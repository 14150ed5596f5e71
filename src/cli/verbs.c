/* verbs.c - each verb: options in, one call of the library, a report out. */
#include "cli/verb_tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        .name = args->values[OPTION_NAME],
        .package = args->values[OPTION_PACKAGE],
        .patch = args->values[OPTION_PATCH],
        .fuse = args->values[OPTION_FUSE],
        .pes = args->values[OPTION_PES],
        .element = args->values[OPTION_ELEMENT],
        .hex = args->values[OPTION_HEX],
        .strip = cli_given(args, OPTION_STRIP),
        .weights_file = cli_given(args, OPTION_WEIGHTS_FILE),
    };
    const char *path = args->operands[0];
    muc_report *report = NULL;
    muc_model *model;
    muc_status status;

    CLI_TRY(cli_need_output(args));
    CLI_TRY(weight_options(args, &options.weights));
    CLI_TRY(cli_open_as(ctx, args, path, path ? &args->operands[1] : NULL, NULL, true, &options,
                        &model));
    status = muc_compile(ctx, model, &options, args->values[OPTION_OUTPUT], &report);
    muc_model_close(model);
    return cli_finish(ctx, args, status, report);
}

muc_status cli_fit(muc_context *ctx, const cli_args *args)
{
    const muc_compile_options options = { .target = args->values[OPTION_TARGET],
                                          .machine = args->values[OPTION_MACHINE] };
    muc_report *report = NULL;
    muc_model *model;
    muc_status status;

    CLI_TRY(cli_open_model(ctx, args, args->operands[0], &model));
    status = muc_fit(ctx, model, &options, &report);
    muc_model_close(model);
    return cli_finish(ctx, args, status, report);
}

muc_status cli_new(muc_context *ctx, const cli_args *args)
{
    muc_compile_options options = { .machine = args->values[OPTION_BOARD],
                                    .may_shorten = !cli_given(args, OPTION_CONTEXT) };
    muc_report *report = NULL;
    muc_model *model;
    muc_status status;

    if (!options.machine)
        return cli_misuse(args, "say for which board: --board NAME; muc targets lists them");
    CLI_TRY(weight_options(args, &options.weights));
    CLI_TRY(cli_open_model(ctx, args, args->values[OPTION_MODEL], &model));
    status = muc_new_project(ctx, model, &options, args->operands[0], &report);
    muc_model_close(model);
    return cli_finish(ctx, args, status, report);
}

muc_status cli_frontend(muc_context *ctx, const cli_args *args)
{
    const muc_compile_options options = { .machine = args->values[OPTION_MACHINE],
                                          .name = args->values[OPTION_NAME],
                                          .package = args->values[OPTION_PACKAGE] };
    const char *features = args->values[OPTION_FEATURES], *path = args->values[OPTION_OUTPUT];
    muc_report *report = NULL;
    size_t count = 0;
    muc_status status;

    while (args->operands[count])
        count++;
    if (!count)
        CLI_TRY(cli_need_output(args));
    status = count ? muc_front_end_run(ctx, features, args->operands, count, path, &report)
                   : muc_front_end_compile(ctx, features, &options, path, &report);
    return cli_finish(ctx, args, status, report);
}

muc_status cli_flash(muc_context *ctx, const cli_args *args)
{
    const char *folder = args->operands[0] ? args->operands[0] : ".";
    muc_report *report = NULL;
    muc_status status =
        muc_flash(ctx, folder, args->values[OPTION_BOARD], cli_given(args, OPTION_RUN), &report);

    return cli_finish(ctx, args, status, report);
}

muc_status cli_quantize(muc_context *ctx, const cli_args *args)
{
    muc_weight_options options;
    muc_report *report = NULL;
    muc_model *model;
    muc_status status;

    CLI_TRY(cli_need_output(args));
    CLI_TRY(weight_options(args, &options));
    CLI_TRY(cli_shard(args, &options.shard, &options.shards));
    CLI_TRY(cli_open_operand(ctx, args, 0, NULL, &model));
    status = muc_quantize(ctx, model, &options, args->values[OPTION_OUTPUT], &report);
    muc_model_close(model);
    return cli_finish(ctx, args, status, report);
}

/* ---- compress ---- */

/* "int2" of 2; NULL where the option was not given */
static muc_status format_of(const cli_args *args, cli_option option, const char **out)
{
    static const char *const formats[] = { "int2", "int4", "int8" };
    uint64_t bits;

    CLI_TRY(cli_count(args, option, 2, 8, 0, &bits));
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

    CLI_TRY(cli_need_output(args));
    CLI_TRY(cli_count(args, OPTION_STEPS, 1, UINT32_MAX, 0, &options.steps));
    CLI_TRY(cli_count(args, OPTION_BATCH, 2, 1 << 24, 0, &options.batch));
    CLI_TRY(cli_count(args, OPTION_SEED, 0, UINT64_MAX, 0, &options.seed));
    CLI_TRY(cli_real(args, OPTION_RATE, 1e-12, 1e3, 0, &options.rate));
    CLI_TRY(cli_real(args, OPTION_PRUNE, 0, 0.99, 0, &options.prune));
    if (options.weights && cli_given(args, OPTION_BITS))
        return cli_misuse(args, "both --bits and --quant say what weights become: give one");
    CLI_TRY(format_of(args, OPTION_BITS, &options.weights));
    CLI_TRY(format_of(args, OPTION_EMBED_BITS, &options.embedding));
    CLI_TRY(bytes_of(args, OPTION_BUDGET_FLASH, &options.flash_bytes));
    CLI_TRY(cli_count(args, OPTION_LIMIT, 1, UINT32_MAX, 0, &limit));
    CLI_TRY(cli_count(args, OPTION_WINDOW, 2, UINT32_MAX, 0, &window));
    options.limit = (uint32_t)limit;
    options.window = (uint32_t)window;
    CLI_TRY(cli_open_operand(ctx, args, 0, NULL, &model));
    status = muc_compress(ctx, model, &options, args->values[OPTION_OUTPUT], &report);
    muc_model_close(model);
    return cli_finish(ctx, args, status, report);
}

/* ---- train, report, sweep, verify ---- */

static muc_status train_numbers(const cli_args *args, muc_train_options *o)
{
    const uint64_t most = UINT64_C(1) << 40;
    uint64_t window, vocabulary;

    CLI_TRY(cli_count(args, OPTION_STEPS, 1, most, 0, &o->steps));
    CLI_TRY(cli_count(args, OPTION_BATCH, 2, 1 << 24, 0, &o->batch));
    CLI_TRY(cli_count(args, OPTION_WARM_UP, 1, most, 0, &o->warm_up));
    CLI_TRY(cli_count(args, OPTION_EVERY, 1, most, 0, &o->every));
    CLI_TRY(cli_count(args, OPTION_SEED, 0, UINT64_MAX, 0, &o->seed));
    CLI_TRY(cli_count(args, OPTION_WINDOW, 1, UINT32_MAX, 0, &window));
    CLI_TRY(cli_count(args, OPTION_VOCAB, 1, 1 << 20, 0, &vocabulary));
    o->window = (uint32_t)window;
    o->vocabulary = (uint32_t)vocabulary;
    CLI_TRY(cli_real(args, OPTION_RATE, 1e-12, 1e3, 0, &o->rate));
    CLI_TRY(cli_real(args, OPTION_LEAST_RATE, 0, 1, -1, &o->least_rate));
    CLI_TRY(cli_real(args, OPTION_DECAY, 0, 1e3, -1, &o->decay));
    CLI_TRY(cli_real(args, OPTION_CLIP, 0, 1e12, -1, &o->clip));
    CLI_TRY(cli_real(args, OPTION_PRUNE, 0, 0.99, 0, &o->prune));
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

    CLI_TRY(cli_need_output(args));
    if (!options.data)
        return cli_misuse(args, "say what to train on: --data FILE");
    CLI_TRY(train_numbers(args, &options));
    status = muc_train(ctx, args->operands[0], &options, args->values[OPTION_OUTPUT], &report);
    return cli_finish(ctx, args, status, report);
}

muc_status cli_report(muc_context *ctx, const cli_args *args)
{
    muc_report_options options = {
        .board = args->values[OPTION_QEMU],
        .cycles = cli_given(args, OPTION_CYCLES),
        .input = args->values[OPTION_INPUT],
        .machine = args->values[OPTION_MACHINE],
        .trace = args->values[OPTION_TRACE],
    };
    muc_report *report = NULL;
    uint64_t position, call;
    cli_form form;
    muc_status status;

    CLI_TRY(cli_report_form(args, &form)); /* before the board is asked */
    CLI_TRY(cli_count(args, OPTION_POSITION, 0, UINT32_MAX, 0, &position));
    CLI_TRY(cli_count(args, OPTION_CALL, 1, UINT32_MAX, 0, &call));
    options.position = (uint32_t)position;
    options.tokens = (uint32_t)call;
    if (cli_given(args, OPTION_INPUT) && !cli_given(args, OPTION_QEMU))
        return cli_misuse(args, "--input is what --qemu runs on");
    if (options.cycles && !options.board)
        return cli_misuse(args, "--cycles is of a board: give --qemu BOARD, too");
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
    return cli_finish(ctx, args, status, report);
}

muc_status cli_sweep(muc_context *ctx, const cli_args *args)
{
    muc_sweep_options options = { 0 };
    muc_report *report = NULL;
    muc_status status;

    CLI_TRY(cli_need_output(args));
    CLI_TRY(cli_shard(args, &options.shard, &options.shards));
    status = muc_sweep(ctx, args->operands[0], &options, args->values[OPTION_OUTPUT], &report);
    return cli_finish(ctx, args, status, report);
}

muc_status cli_verify(muc_context *ctx, const cli_args *args)
{
    muc_model *program = NULL, *model = NULL;
    muc_report *report = NULL;
    const char *prompt;
    char *owned;
    bool is_network;
    muc_status status;

    status = cli_take_prompt(args, &owned, &prompt);
    if (status == MUC_OK && muc_is_code_folder(args->operands[0])) {
        if (!args->operands[1] && !muc_is_language_folder(args->operands[0]))
            status = cli_misuse(args, "say what %s was made of: muc verify FOLDER NETWORK",
                                args->operands[0]);
        if (status == MUC_OK)
            status = cli_open_operand(ctx, args, 1, NULL, &model);
        if (status == MUC_OK && muc_is_language_folder(args->operands[0]))
            status = muc_verify_language_folder(ctx, args->operands[0], model, prompt, &report);
        else if (status == MUC_OK)
            status = muc_verify_folder(ctx, args->operands[0], model, args->values[OPTION_TRACE],
                                       &report);
        muc_model_close(model);
        free(owned);
        return cli_finish(ctx, args, status, report);
    }
    if (status == MUC_OK)
        status = cli_open_model(ctx, args, args->operands[0], &program);
    is_network = status == MUC_OK && muc_model_is_network(program);
    if (is_network && (!cli_given(args, OPTION_QUANT) || args->operands[1]))
        status = cli_misuse(args, "a network is compared with itself in --quant int8, or a folder "
                                  "made of it with it: muc verify FOLDER NETWORK");
    else if (is_network)
        status = cli_open_as(ctx, args, args->operands[0], NULL, NULL, false, NULL, &model);
    else if (status == MUC_OK)
        status = cli_open_operand(ctx, args, 1, NULL, &model);
    if (status == MUC_OK && is_network)
        status = muc_verify_int8(ctx, program, model, &report);
    else if (status == MUC_OK)
        status = muc_verify(ctx, program, model, prompt, &report);
    muc_model_close(model);
    muc_model_close(program);
    free(owned);
    return cli_finish(ctx, args, status, report);
}

/* ---- inspect, dis, as, and the lists ---- */

muc_status cli_inspect(muc_context *ctx, const cli_args *args)
{
    muc_model_options options;
    muc_report *report = NULL;
    muc_status status;

    CLI_TRY(cli_model_options(args, NULL, NULL, true, &options));
    status = muc_inspect_file(ctx, args->operands[0], &options, &report);
    return cli_finish(ctx, args, status, report);
}

muc_status cli_dis(muc_context *ctx, const cli_args *args)
{
    uint64_t position, call;
    muc_status status;
    char *text = NULL;

    CLI_TRY(cli_count(args, OPTION_POSITION, 0, UINT32_MAX, 0, &position));
    CLI_TRY(cli_count(args, OPTION_CALL, 1, UINT32_MAX, 1, &call));
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
    CLI_TRY(cli_need_output(args));
    return muc_assemble(ctx, args->operands[0], args->values[OPTION_OUTPUT]);
}

static muc_status print_list(muc_context *ctx, const cli_args *args,
                             muc_status (*list)(muc_context *, muc_report **))
{
    muc_report *report = NULL;
    muc_status status = list(ctx, &report);

    return cli_finish(ctx, args, status, report);
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

muc_status cli_doctor(muc_context *ctx, const cli_args *args)
{
    return print_list(ctx, args, muc_doctor);
}

/* whoever waits for the address, a script perhaps, gets it at once */
static void print_address(void *arg, const char *address)
{
    (void)arg;
    printf("%s\n", address);
    fflush(stdout);
    if (cli_is_terminal(stderr))
        fputs("Ctrl-C ends it\n", stderr);
}

muc_status cli_playground(muc_context *ctx, const cli_args *args)
{
    uint64_t port;

    CLI_TRY(cli_count(args, OPTION_PORT, 0, UINT16_MAX, 8080, &port));
    return muc_playground(ctx, args->values[OPTION_PAGE], (uint16_t)port, print_address, NULL);
}

muc_status cli_help(muc_context *ctx, const cli_args *args)
{
    (void)ctx;
    if (cli_given(args, OPTION_MAN)) {
        cli_print_man();
    } else if (cli_given(args, OPTION_COMPLETION)) {
        const char *shell = args->operands[0] ? args->operands[0] : "bash";

        if (!cli_print_completion(shell))
            return cli_misuse(args, "there is no completion for '%s'; expected bash, zsh or fish",
                              shell);
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
