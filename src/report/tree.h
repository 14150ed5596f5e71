/* tree.h - what the forms of a report are printed from; for this room alone. */
#ifndef MUC_REPORT_TREE_H
#define MUC_REPORT_TREE_H

#include <jansson.h>

#include "base/text.h"
#include "report/report_builder.h"

enum { MUC_REPORT_MAX_DEPTH = 8, MUC_REPORT_MAX_COLUMNS = 32 };

struct muc_report {
    json_t *open[MUC_REPORT_MAX_DEPTH]; /* open[0] is the root; the rest is borrowed from it */
    unsigned depth;                     /* index of the innermost open one */
    json_t *columns; /* of a table's key: a list of objects (key, unit, meaning) */
    json_t *figures; /* objects (title, note, svg), in the order of their coming */
    json_t *details; /* a table's key: true where the text form leaves the table out */
    bool failed;
};

/* The columns of a table that its rows have; strings are borrowed from the report. Gives their
 * number, at most MUC_REPORT_MAX_COLUMNS. */
size_t muc_report_columns(const muc_report *report, const char *table,
                          muc_report_column columns[MUC_REPORT_MAX_COLUMNS]);

/* Whether the numbers of a column stand to the right: its first value is one. */
bool muc_report_is_numeric(const json_t *table, const char *column);

/* A string of JSON of text; bytes that are not UTF-8 (of a file's name, half a character of a
 * model's text) are spelled as muc_text_add_utf8 does. NULL if memory is out. */
json_t *muc_report_string_of(muc_text *text);

/* A scalar as people read it; NULL is "-". */
void muc_report_print_scalar(muc_text *text, const json_t *value);
/* "arena_bytes" -> "arena bytes" */
void muc_report_print_key(muc_text *text, const char *key);

/* Takes the text over as what *out gives, unless memory was out. */
muc_status muc_report_take_text(muc_context *ctx, muc_text *text, char **out);

#endif
