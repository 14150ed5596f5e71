/* help.c - prints the table of the command line as help and as a man page. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 90,
    SHOWN_EXAMPLES = 5, /* of the first verbs, which most people need first */
};

const char *cli_meaning(cli_option option, cli_verb verb)
{
    static const struct {
        cli_option option;
        cli_verb verb;
        const char *meaning;
    } texts[] = {
#define CLI_TEXT(id, verb, meaning) { OPTION_##id, VERB_##verb, meaning },
#include "cli/cli.def"
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i].option == option && texts[i].verb == verb)
            return texts[i].meaning;
    return cli_options[option].meaning;
}

/* Fills lines of WIDTH columns, each after the first indented. */
static void print_filled(const char *text, unsigned indent)
{
    unsigned column = indent;

    while (*text) {
        size_t length = strcspn(text, " ");

        if (column > indent && column + 1 + length > WIDTH) {
            printf("\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        fwrite(text, 1, length, stdout);
        column += (unsigned)length;
        text += length;
        text += strspn(text, " ");
    }
    putchar('\n');
}

void cli_print_help(void)
{
    printf("muc: a trained network becomes a program for a very small machine\n\n"
           "usage: muc VERB [ARGUMENTS]\n\n");
    for (unsigned v = 0; v < VERB_COUNT; v++)
        printf("  %-10s %s\n", cli_verbs[v].name, cli_verbs[v].summary);
    printf("\nmuc VERB --help explains a verb and shows an example. To begin with:\n\n");
    for (unsigned v = 0; v < SHOWN_EXAMPLES; v++)
        printf("  %s\n", cli_verbs[v].example);
}

static void print_usage(cli_verb verb)
{
    const cli_verb_row *row = &cli_verbs[verb];

    printf("muc %s [OPTIONS]%s%s", row->name, row->operands[0] ? " " : "", row->operands);
}

void cli_print_verb_help(cli_verb verb)
{
    enum { COLUMN = 28 };

    printf("muc %s: %s\n\nusage: ", cli_verbs[verb].name, cli_verbs[verb].summary);
    print_usage(verb);
    printf("\n\n");
    print_filled(cli_verbs[verb].explanation, 0);
    printf("\n");
    for (unsigned o = 0; o < OPTION_COUNT; o++) {
        const cli_option_row *row = &cli_options[o];
        char names[64], letter[8] = "    ";

        if (!cli_is_on((cli_option)o, verb))
            continue;
        if (row->letter)
            snprintf(letter, sizeof(letter), "-%c, ", row->letter);
        snprintf(names, sizeof(names), "%s--%s%s%s", letter, row->name, row->value ? " " : "",
                 row->value ? row->value : "");
        printf("  %-*s", COLUMN - 2, names);
        print_filled(cli_meaning((cli_option)o, verb), COLUMN);
    }
    printf("\nexample: %s\n", cli_verbs[verb].example);
}

/* roff: a dash that is meant as one, a line that does not start as a request */
static void print_roff(const char *text)
{
    if (text[0] == '.' || text[0] == '\'')
        printf("\\&");
    for (; *text; text++) {
        if (*text == '-')
            printf("\\-");
        else if (*text == '\\')
            printf("\\e");
        else
            putchar(*text);
    }
}

static void print_roff_line(const char *before, const char *text)
{
    printf("%s", before);
    print_roff(text);
    putchar('\n');
}

static void print_man_option(cli_option option, cli_verb verb)
{
    const cli_option_row *row = &cli_options[option];

    printf(".TP\n");
    if (row->letter)
        printf("\\fB\\-%c\\fR, ", row->letter);
    printf("\\fB\\-\\-");
    print_roff(row->name);
    printf("\\fR");
    if (row->value) {
        printf(" \\fI");
        print_roff(row->value);
        printf("\\fR");
    }
    putchar('\n');
    print_roff_line("", cli_meaning(option, verb));
}

void cli_print_man(void)
{
    printf(".\\\" printed by muc help --man; do not edit\n"
           ".TH MUC 1\n.SH NAME\n"
           "muc \\- a trained network becomes a program for a very small machine\n"
           ".SH SYNOPSIS\n");
    for (unsigned v = 0; v < VERB_COUNT; v++) {
        printf(".B muc %s\n.RI [ OPTIONS ]\n", cli_verbs[v].name);
        if (cli_verbs[v].operands[0])
            printf(".I %s\n", cli_verbs[v].operands);
        printf(".br\n");
    }
    printf(".SH VERBS\n");
    for (unsigned v = 0; v < VERB_COUNT; v++) {
        print_roff_line(".SS ", cli_verbs[v].name);
        print_roff_line("To ", cli_verbs[v].summary);
        print_roff_line(".PP\n", cli_verbs[v].explanation);
        for (unsigned o = 0; o < OPTION_COUNT; o++) {
            if (cli_is_on((cli_option)o, (cli_verb)v) && o != OPTION_HELP)
                print_man_option((cli_option)o, (cli_verb)v);
        }
        printf(".PP\nExample:\n.PP\n.EX\n");
        print_roff_line("    ", cli_verbs[v].example);
        printf(".EE\n");
    }
    printf(".SH EXIT STATUS\n");
#define EXIT_ROW(name, value, meaning) printf(".TP\n\\fB%d\\fR\n%s\n", value, meaning);
    MUC_STATUS_TABLE(EXIT_ROW)
#undef EXIT_ROW
}
