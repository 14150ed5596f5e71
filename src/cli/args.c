/* args.c - reads the command line by its table, and guesses what a misspelt word was meant to be.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"

#define ON(verb) (1u << VERB_##verb)
#define ON_ALL ((1u << VERB_COUNT) - 1)

const cli_verb_row cli_verbs[VERB_COUNT] = {
#define CLI_VERB(name, operands, least, most, summary, explanation, example) \
    { #name, operands, least, most, summary, explanation, example, cli_##name },
#include "cli/cli.def"
};

const cli_option_row cli_options[OPTION_COUNT] = {
#define CLI_OPTION(id, name, letter, value, verbs, meaning) { name, letter, value, verbs, meaning },
#include "cli/cli.def"
};

enum { MOST_LETTERS = 1024 };

/* a line on standard error; names in it do no harm on a terminal */
static void say(const char *format, ...)
{
    char plain[MOST_LETTERS], visible[2 * MOST_LETTERS];
    va_list list;

    va_start(list, format);
    vsnprintf(plain, sizeof(plain), format, list);
    va_end(list);
    muc_visible(plain, visible, sizeof(visible));
    cli_print_failure(visible);
}

cli_verb cli_find_verb(const char *name)
{
    muc_guess guess = { .word = name };

    for (unsigned v = 0; v < VERB_COUNT; v++) {
        if (strcmp(name, cli_verbs[v].name) == 0)
            return (cli_verb)v;
        muc_guess_try(&guess, cli_verbs[v].name);
    }
    if (guess.best)
        say("muc: there is no verb '%s'; did you mean '%s'?", name, guess.best);
    else
        say("muc: there is no verb '%s'", name);
    fprintf(stderr, "muc help lists them.\n");
    return VERB_COUNT;
}

muc_status cli_misuse(const cli_args *args, const char *format, ...)
{
    char sentence[MOST_LETTERS];
    va_list list;

    va_start(list, format);
    vsnprintf(sentence, sizeof(sentence), format, list);
    va_end(list);
    say("muc %s: %s", cli_verbs[args->verb].name, sentence);
    return MUC_USAGE;
}

static muc_status unknown_option(const cli_args *args, const char *word)
{
    muc_guess guess = { .word = word };

    for (unsigned o = 0; o < OPTION_COUNT; o++) {
        if (strcmp(word, cli_options[o].name) == 0)
            return cli_misuse(args, "option '--%s' belongs to other verbs", word);
        if (cli_options[o].verbs & 1u << args->verb)
            muc_guess_try(&guess, cli_options[o].name);
    }
    if (guess.best)
        return cli_misuse(args, "unknown option '--%s'; did you mean '--%s'?", word, guess.best);
    return cli_misuse(args, "unknown option '--%s'; muc %s --help lists them", word,
                      cli_verbs[args->verb].name);
}

/* The option that a word of argv names, or OPTION_COUNT; *value is what follows its '='. */
static cli_option find_option(const cli_args *args, const char *word, const char **value)
{
    const char *name = word + 2;
    size_t length = strcspn(name, "=");

    *value = NULL;
    for (unsigned o = 0; o < OPTION_COUNT; o++) {
        const cli_option_row *row = &cli_options[o];

        if (!(row->verbs & 1u << args->verb))
            continue;
        if (word[1] != '-' && row->letter == word[1]) {
            *value = word[2] ? word + 2 : NULL;
            return (cli_option)o;
        }
        if (word[1] == '-' && strlen(row->name) == length && !strncmp(row->name, name, length)) {
            *value = name[length] ? name + length + 1 : NULL;
            return (cli_option)o;
        }
    }
    return OPTION_COUNT;
}

static bool repeats(cli_option option)
{
#define CLI_REPEATS(id) \
    if (option == OPTION_##id) \
        return true;
#include "cli/cli.def"
    return false;
}

/* one more value of an option that may be given several times */
static muc_status repeat(cli_args *args, cli_option option, const char *value)
{
    if (args->repeated_count == CLI_MAX_REPEATED)
        return cli_misuse(args, "option '--%s' is given more than %d times",
                          cli_options[option].name, CLI_MAX_REPEATED);
    args->repeated[args->repeated_count++] = value;
    args->values[option] = value;
    return MUC_OK;
}

static bool takes_path(const cli_option_row *row)
{
    static const char *const words[] = { "FILE", "FOLDER", "MODEL" };

    for (size_t i = 0; row->value && i < sizeof(words) / sizeof(*words); i++)
        if (strstr(row->value, words[i]))
            return true;
    return false;
}

static muc_status take_option(cli_args *args, int argc, char **argv, int *at)
{
    const char *word = argv[*at], *value;
    cli_option option = find_option(args, word, &value);
    const cli_option_row *row = &cli_options[option];

    if (option == OPTION_COUNT && word[1] == '-')
        return unknown_option(args, word + 2);
    if (option == OPTION_COUNT)
        return cli_misuse(args, "unknown option '%s'; muc %s --help lists them", word,
                          cli_verbs[args->verb].name);
    if (!row->value && value)
        return cli_misuse(args, "option '--%s' takes no value", row->name);
    if (row->value && !value) {
        if (*at + 1 == argc)
            return cli_misuse(args, "option '--%s' needs a value: --%s %s", row->name, row->name,
                              row->value);
        value = argv[++*at];
    }
    if (value && takes_path(row))
        muc_take_path((char *)(uintptr_t)value);
    if (repeats(option))
        return repeat(args, option, value);
    if (args->values[option])
        return cli_misuse(args, "option '--%s' is given twice", row->name);
    args->values[option] = value ? value : "";
    return MUC_OK;
}

muc_status cli_parse(cli_verb verb, int argc, char **argv, cli_args *out)
{
    const cli_verb_row *row = &cli_verbs[verb];
    unsigned operands = 0;
    bool options_end = false;

    *out = (cli_args){ .verb = verb };
    for (int at = 0; at < argc; at++) {
        const char *word = argv[at];

        if (!options_end && strcmp(word, "--") == 0) {
            options_end = true;
        } else if (!options_end && word[0] == '-' && word[1]) {
            muc_status status = take_option(out, argc, argv, &at);

            if (status != MUC_OK)
                return status;
        } else if (operands == row->most) {
            return cli_misuse(out, "unexpected argument '%s'", word);
        } else {
            muc_take_path(argv[at]);
            out->operands[operands++] = word;
        }
    }
    if (operands < row->least && !cli_given(out, OPTION_HELP))
        return cli_misuse(out, "usage: muc %s %s", row->name, row->operands);
    return MUC_OK;
}

muc_status cli_count(const cli_args *args, cli_option option, uint64_t min, uint64_t max,
                     uint64_t fallback, uint64_t *out)
{
    const char *text = args->values[option];
    unsigned long long value;
    char *end;

    *out = fallback;
    if (!text)
        return MUC_OK;
    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno || text[0] < '0' || text[0] > '9' || *end || value < min || value > max)
        return cli_misuse(args, "--%s %s: expected a whole number from %llu to %llu",
                          cli_options[option].name, text, (unsigned long long)min,
                          (unsigned long long)max);
    *out = value;
    return MUC_OK;
}

muc_status cli_real(const cli_args *args, cli_option option, double min, double max,
                    double fallback, double *out)
{
    const char *text = args->values[option];
    double value;
    char *end;

    *out = fallback;
    if (!text)
        return MUC_OK;
    value = strtod(text, &end);
    if (end == text || *end || !(value >= min && value <= max))
        return cli_misuse(args, "--%s %s: expected a number from %g to %g",
                          cli_options[option].name, text, min, max);
    *out = value;
    return MUC_OK;
}
