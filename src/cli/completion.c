/* completion.c - prints scripts by which shells complete the words of the command line. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

/* what prints the names that these options take, from the lists of muc targets */
static const struct {
    cli_option option;
    const char *command;
} lists[] = {
    { OPTION_TARGET, "muc targets | awk 'NR > 2 && !NF { exit } NR > 2 { print $1 }'" },
    { OPTION_MACHINE,
      "muc targets | awk 'known && $2 != \"name\" { print $2 } /^machines:/ { known = 1 }'" },
    { OPTION_BOARD,
      "muc targets | awk 'known && $1 == \"mcu\" { print $2 } /^machines:/ { known = 1 }'" },
};

enum { LISTS = sizeof(lists) / sizeof(lists[0]) };

/* ---- bash ---- */

static void print_bash(void)
{
    printf("# printed by muc help --completion; do not edit\n"
           "_muc() {\n"
           "    local word=\"${COMP_WORDS[COMP_CWORD]}\" options=\"\"\n"
           "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
           "        COMPREPLY=($(compgen -W \"");
    for (unsigned v = 0; v < VERB_COUNT; v++)
        printf("%s%s", v ? " " : "", cli_verbs[v].name);
    printf("\" -- \"$word\"))\n        return\n    fi\n    case \"${COMP_WORDS[COMP_CWORD - 1]}\" "
           "in\n");
    for (size_t i = 0; i < LISTS; i++)
        printf("    --%s) options=\"$(%s)\" ;;\n", cli_options[lists[i].option].name,
               lists[i].command);
    printf(
        "    esac\n"
        "    if [ -n \"$options\" ]; then\n"
        "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\") $(compgen -f -- \"$word\"))\n"
        "        return\n"
        "    fi\n"
        "    case \"${COMP_WORDS[1]}\" in\n");
    for (unsigned v = 0; v < VERB_COUNT; v++) {
        printf("    %s) options=\"", cli_verbs[v].name);
        for (unsigned o = 0, first = 1; o < OPTION_COUNT; o++) {
            if (!cli_is_on((cli_option)o, (cli_verb)v))
                continue;
            printf("%s--%s", first ? "" : " ", cli_options[o].name);
            first = 0;
        }
        printf("\" ;;\n");
    }
    printf("    esac\n"
           "    case \"$word\" in\n"
           "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
           "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
           "    esac\n"
           "}\n"
           "complete -o filenames -F _muc muc\n");
}

/* ---- zsh, fish ---- */

/* a text inside single quotes, in which `marked` stand behind a backslash */
static void print_quoted(const char *text, const char *marked)
{
    for (; *text; text++) {
        if (*text == '\'')
            printf("'\\'");
        if (strchr(marked, *text))
            putchar('\\');
        putchar(*text);
    }
}

static void print_zsh_item(const char *dashes, const char *name, const char *meaning)
{
    printf(" '%s%s:", dashes, name);
    print_quoted(meaning, "\\:");
    putchar('\'');
}

static void print_zsh(void)
{
    printf("#compdef muc\n"
           "# printed by muc help --completion zsh; do not edit\n"
           "_muc() {\n"
           "    local -a words_of\n"
           "    if (( CURRENT == 2 )); then\n"
           "        words_of=(");
    for (unsigned v = 0; v < VERB_COUNT; v++)
        print_zsh_item("", cli_verbs[v].name, cli_verbs[v].summary);
    printf(")\n        _describe verb words_of\n        return\n    fi\n    case $words[CURRENT-1] "
           "in\n");
    for (size_t i = 0; i < LISTS; i++)
        printf("    --%s) compadd -- $(%s); _files; return ;;\n", cli_options[lists[i].option].name,
               lists[i].command);
    printf("    esac\n    if [[ $words[CURRENT] != -* ]]; then\n        _files\n        return\n   "
           " fi\n"
           "    case $words[2] in\n");
    for (unsigned v = 0; v < VERB_COUNT; v++) {
        printf("    %s) words_of=(", cli_verbs[v].name);
        for (unsigned o = 0; o < OPTION_COUNT; o++)
            if (cli_is_on((cli_option)o, (cli_verb)v))
                print_zsh_item("--", cli_options[o].name, cli_meaning((cli_option)o, (cli_verb)v));
        printf(") ;;\n");
    }
    printf("    esac\n    _describe option words_of\n}\n_muc \"$@\"\n");
}

static void print_fish(void)
{
    printf("# printed by muc help --completion fish; do not edit\n");
    for (unsigned v = 0; v < VERB_COUNT; v++) {
        printf("complete -c muc -n __fish_use_subcommand -f -a %s -d '", cli_verbs[v].name);
        print_quoted(cli_verbs[v].summary, "\\");
        printf("'\n");
    }
    for (unsigned v = 0; v < VERB_COUNT; v++)
        for (unsigned o = 0; o < OPTION_COUNT; o++) {
            const cli_option_row *row = &cli_options[o];

            if (!cli_is_on((cli_option)o, (cli_verb)v))
                continue;
            printf("complete -c muc -n '__fish_seen_subcommand_from %s' -l %s", cli_verbs[v].name,
                   row->name);
            if (row->letter)
                printf(" -s %c", row->letter);
            for (size_t i = 0; i < LISTS; i++)
                if (lists[i].option == (cli_option)o) {
                    printf(" -a '(");
                    print_quoted(lists[i].command, "");
                    printf(")'");
                }
            printf("%s -d '", row->value ? " -r" : "");
            print_quoted(cli_meaning((cli_option)o, (cli_verb)v), "\\");
            printf("'\n");
        }
}

bool cli_print_completion(const char *shell)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };

    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
        if (strcmp(shells[i].name, shell) == 0) {
            shells[i].print();
            return true;
        }
    return false;
}
