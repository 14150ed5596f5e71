/* regex.h - the regular expressions that cut text, as a program of few kinds of steps. */
#ifndef MUC_TEXT_REGEX_H
#define MUC_TEXT_REGEX_H

#include "text/character_set.h"

/* What a piece of the text is, given what the expression matches. */
typedef enum muc_split_behavior {
    MUC_SPLIT_ISOLATED,      /* each match, and what lies between two */
    MUC_SPLIT_CONTIGUOUS,    /* matches that touch are one piece */
    MUC_SPLIT_WITH_PREVIOUS, /* a match ends the piece before it */
    MUC_SPLIT_WITH_NEXT,     /* a match begins the piece after it */
    MUC_SPLIT_MATCHES_ONLY   /* each match; there must be nothing between two */
} muc_split_behavior;

typedef struct muc_split_rule {
    const char *pattern; /* an expression, or, if literal, a string */
    bool literal;
    muc_split_behavior behavior;
} muc_split_rule;

typedef enum muc_regex_kind {
    MUC_REGEX_TAKE, /* a character of the set, then `next` */
    MUC_REGEX_FORK, /* `next`, and if that fails `other` */
    MUC_REGEX_LOOK, /* `next` if the character ahead is of the set; at the end of text, if at_end */
    MUC_REGEX_MATCH
} muc_regex_kind;

typedef struct muc_regex_step {
    muc_regex_kind kind;
    bool at_end;
    uint32_t set, next, other;
} muc_regex_step;

enum { MUC_REGEX_MOST_STEPS = 4096, MUC_REGEX_MOST_SETS = 64 };

/* The programs of several expressions, which share their sets. All-zero is empty; arena-owned. */
typedef struct muc_regex {
    muc_regex_step *steps;
    size_t count, capacity;
    muc_character_set sets[MUC_REGEX_MOST_SETS]; /* ordered, each once */
    uint32_t set_count;
} muc_regex;

/* Adds what finds the pieces of a rule; *start is where its program begins. Perl's syntax as far as
 * published tokenizers use it: sets, groups, alternatives, quantifiers, (?i: ), and what lies ahead
 * by one character. Anything else is refused with MUC_UNSUPPORTED, by what it is and where. */
muc_status muc_regex_add(muc_context *ctx, const char *source, const muc_split_rule *rule,
                         muc_arena *arena, muc_regex *regex, uint32_t *start);

#endif
