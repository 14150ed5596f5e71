/* cli.h - the command line as its table (cli.def) declares it. */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "muc/muc.h"

typedef enum cli_verb {
#define CLI_VERB(name, operands, least, most, summary, explanation, example) VERB_##name,
#include "cli/cli.def"
    VERB_COUNT
} cli_verb;

typedef enum cli_option {
#define CLI_OPTION(id, name, letter, value, verbs, meaning) OPTION_##id,
#include "cli/cli.def"
    OPTION_COUNT
} cli_option;

typedef struct cli_args cli_args;

/* Runs with a context of its own; returns the exit status. */
typedef muc_status cli_verb_fn(muc_context *ctx, const cli_args *args);

typedef struct cli_verb_row {
    const char *name, *operands;
    unsigned least, most; /* operands */
    const char *summary, *explanation, *example;
    cli_verb_fn *run;
} cli_verb_row;

typedef struct cli_option_row {
    const char *name;  /* without the dashes */
    char letter;       /* 0: none */
    const char *value; /* what the help calls its value; NULL: it takes none */
    uint32_t verbs;    /* set of 1 << cli_verb */
    const char *meaning;
} cli_option_row;

extern const cli_verb_row cli_verbs[VERB_COUNT];
extern const cli_option_row cli_options[OPTION_COUNT];

enum { CLI_MAX_OPERANDS = 257, CLI_MAX_REPEATED = 64 };

/* Borrows argv. */
struct cli_args {
    cli_verb verb;
    const char *values[OPTION_COUNT];           /* NULL: not given; "" for one without a value */
    const char *operands[CLI_MAX_OPERANDS + 1]; /* NULL after the last */
    /* every value of the option that may be given several times, in order */
    const char *repeated[CLI_MAX_REPEATED];
    size_t repeated_count;
};

/* Reads argv after the verb. On failure it has said on stderr what is wrong, and what was
 * perhaps meant. */
muc_status cli_parse(cli_verb verb, int argc, char **argv, cli_args *out);
/* VERB_COUNT if there is none; says so on stderr. */
cli_verb cli_find_verb(const char *name);

/* Whether the verb has the option, and what it means to it. */
static inline bool cli_is_on(cli_option option, cli_verb verb)
{
    return (cli_options[option].verbs >> verb & 1) != 0;
}
const char *cli_meaning(cli_option option, cli_verb verb);

static inline bool cli_given(const cli_args *args, cli_option option)
{
    return args->values[option] != NULL;
}

/* An option's value as a number from min to max, or fallback where it was not given. */
muc_status cli_count(const cli_args *args, cli_option option, uint64_t min, uint64_t max,
                     uint64_t fallback, uint64_t *out);
muc_status cli_real(const cli_args *args, cli_option option, double min, double max,
                    double fallback, double *out);
/* Says "muc VERB: SENTENCE" on stderr and returns MUC_USAGE. */
muc_status cli_misuse(const cli_args *args, const char *format, ...);

void cli_print_help(void); /* of all verbs, to stdout */
void cli_print_verb_help(cli_verb verb);
void cli_print_man(void);
/* The script that completes muc's words in a shell, "bash", "zsh" or "fish"; false if it is
 * another. */
bool cli_print_completion(const char *shell);

/* Whether what a stream writes is seen on a terminal that can move its cursor. */
bool cli_is_terminal(FILE *stream);
/* What --color says of colours; without, or "auto", terminals have them unless NO_COLOR is set. */
muc_status cli_choose_styles(const cli_args *args);
typedef enum cli_style_name { CLI_PLAIN, CLI_BOLD, CLI_RED, CLI_GREEN } cli_style_name;
/* What a stream is to be sent for a style from here on; "" where it has none. */
const char *cli_style(FILE *stream, cli_style_name style);
/* A line on stderr; what stands before the first colon is "muc" or "muc VERB". */
void cli_print_failure(const char *line);
/* A report on stdout, titles and heads of its tables emphasised. */
void cli_print_headed(const char *text);

/* Shows progress on stderr: how far a step is, since when, and what is left. On a terminal that is
 * a bar, for steps of more than a second; elsewhere, if asked, lines. */
void cli_show_progress(muc_context *ctx, bool asked);
void cli_end_progress(void); /* wipes the bar, so that other output can follow */

#define CLI_VERB(name, operands, least, most, summary, explanation, example) cli_verb_fn cli_##name;
#include "cli/cli.def"

#endif
