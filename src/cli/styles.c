/* styles.c - colours the output where a terminal has colours. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/system.h"

static enum { AUTO, ALWAYS, NEVER } when;

bool cli_is_terminal(FILE *stream)
{
    const char *kind = getenv("TERM");

    return muc_is_terminal(stream) && kind && *kind && strcmp(kind, "dumb") != 0;
}

muc_status cli_choose_styles(const cli_args *args)
{
    static const char *const words[] = { "auto", "always", "never" };
    const char *word = args->values[OPTION_COLOR];

    for (unsigned i = 0; word && i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(word, words[i]) == 0) {
            when = i;
            return MUC_OK;
        }
    return word ? cli_misuse(args, "--color is auto, always or never, not '%s'", word) : MUC_OK;
}

const char *cli_style(FILE *stream, cli_style_name style)
{
    static const char *const codes[] = {
        [CLI_PLAIN] = "\033[0m",
        [CLI_BOLD] = "\033[1m",
        [CLI_RED] = "\033[1;31m",
        [CLI_GREEN] = "\033[32m",
    };
    const char *unwanted = getenv("NO_COLOR"); /* no-color.org */

    if (when == NEVER || (when == AUTO && ((unwanted && *unwanted) || !cli_is_terminal(stream))))
        return "";
    return codes[style];
}

void cli_print_failure(const char *line)
{
    int prefix = (int)strcspn(line, ":");

    fprintf(stderr, "%s%.*s%s%s\n", cli_style(stderr, CLI_RED), prefix, line,
            cli_style(stderr, CLI_PLAIN), line + prefix);
}

void cli_print_headed(const char *text)
{
    bool heads = false, after_empty = true;

    while (*text) {
        size_t length = strcspn(text, "\n");
        bool is_title = after_empty && length > 1 && text[length - 1] == ':';

        if (is_title || heads)
            printf("%s%.*s%s", cli_style(stdout, CLI_BOLD), (int)length, text,
                   cli_style(stdout, CLI_PLAIN));
        else
            printf("%.*s", (int)length, text);
        heads = is_title;
        after_empty = length == 0;
        text += length;
        if (*text)
            putchar(*text++);
    }
}
