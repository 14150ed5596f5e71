/* ini.h - descriptions in lines: "[section]", "key = value"; ';' and '#' begin comments. */
#ifndef MUC_INI_H
#define MUC_INI_H

#include "base/bytes.h"
#include "base/choice.h"

/* A cursor over the text. Views point into the text and have no blanks at their ends. */
typedef struct muc_ini {
    muc_context *ctx;
    muc_bytes text;
    size_t next; /* where the line after this one begins */
    size_t at;   /* where this line begins */
    uint32_t line;
    muc_string_view section; /* of the last "[section]"; size 0 before the first */
    muc_string_view key;     /* size 0: this line begins a section */
    muc_string_view value;
} muc_ini;

static inline muc_ini muc_ini_of(muc_context *ctx, muc_bytes text)
{
    muc_ini ini = { .ctx = ctx, .text = text };

    return ini;
}

/* Moves to the next line that says something; false at the end of the text. *status is MUC_OK, or
 * MUC_MALFORMED for a line that is neither a section nor a pair. */
bool muc_ini_next(muc_ini *ini, muc_status *status);
/* Fails with MUC_MALFORMED naming file, line and column of a place in the text. */
muc_subject muc_ini_subject(const muc_ini *ini, const char *at);
#define muc_ini_fail(ini, at, ...) muc_fail_on(muc_ini_subject(ini, at), MUC_MALFORMED, __VA_ARGS__)
/* The same of a word that is not of the set that choice was told; ends the choice. */
muc_status muc_ini_refuse(const muc_ini *ini, const char *at, muc_choice *choice, const char *what);
/* The value as a number of at most 32 bits, decimal or, after 0x, hexadecimal. */
muc_status muc_ini_number(const muc_ini *ini, uint32_t *out);
bool muc_view_is(muc_string_view view, const char *word);

#endif
