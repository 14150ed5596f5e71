/* main.c - muc VERB: finds the verb, gives it a context, and turns its status into the exit code.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/system.h"

enum { MOST_THREADS = 1024 };

/* A file that the command line names is not an output, whenever it is read. */
static muc_status protect(muc_context *ctx, const cli_args *args, const char *path)
{
    if (muc_is_standard_output(path))
        return cli_misuse(args, "%s is an input, and standard output goes to it", path);
    return muc_input_protect(ctx, path);
}

static muc_status protect_inputs(muc_context *ctx, const cli_args *args)
{
    muc_status status = MUC_OK;

    for (unsigned i = 0; args->operands[i] && status == MUC_OK; i++)
        status = protect(ctx, args, args->operands[i]);
    for (unsigned o = 0; o < OPTION_COUNT && status == MUC_OK; o++)
        if (args->values[o] && o != OPTION_OUTPUT && o != OPTION_TRACE && o != OPTION_SAVE_LOGITS &&
            o != OPTION_PROMPT_CACHE)
            status = protect(ctx, args, args->values[o]);
    return status;
}

static muc_status run_verb(const cli_args *args)
{
    muc_context *ctx;
    muc_status status;
    uint64_t threads;

    status = cli_choose_styles(args);
    if (status == MUC_OK)
        status = cli_count(args, OPTION_THREADS, 1, MOST_THREADS, 0, &threads);
    if (status != MUC_OK)
        return status;
    ctx = muc_context_new((unsigned)threads);
    if (!ctx)
        return MUC_NOMEM;
    muc_context_set_force(ctx, cli_given(args, OPTION_FORCE));
    cli_show_progress(ctx, cli_given(args, OPTION_PROGRESS));
    status = protect_inputs(ctx, args);
    if (status == MUC_OK)
        status = cli_verbs[args->verb].run(ctx, args);
    cli_end_progress();
    if (status != MUC_OK && muc_error_message(ctx)[0])
        fprintf(stderr, "%smuc%s: %s\n", cli_style(stderr, CLI_RED), cli_style(stderr, CLI_PLAIN),
                muc_error_message(ctx));
    muc_context_free(ctx);
    return status;
}

static muc_status dispatch(int argc, char **argv)
{
    cli_args args;
    cli_verb verb;
    muc_status status;

    if (argc < 2) {
        cli_print_help();
        return MUC_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        cli_print_help();
        return MUC_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("muc %s\n", MUC_VERSION);
        return MUC_OK;
    }
    verb = cli_find_verb(argv[1]);
    if (verb == VERB_COUNT)
        return MUC_USAGE;
    status = cli_parse(verb, argc - 2, argv + 2, &args);
    if (status != MUC_OK)
        return status;
    if (cli_given(&args, OPTION_HELP)) {
        cli_print_verb_help(verb);
        return MUC_OK;
    }
    return run_verb(&args);
}

int main(int argc, char **argv)
{
    muc_status status;

    muc_begin_program(&argc, &argv);
    muc_catch_signals(cli_end_progress);
    status = dispatch(argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == MUC_OK) {
        muc_end_by_broken_pipe();
        fprintf(stderr, "muc: standard output cannot be written\n");
        status = MUC_IO;
    }
    return (int)status;
}
