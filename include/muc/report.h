/* muc/report.h - what a verb found: named values and tables, for people and for programs.
 *
 * Each function that makes a report lists its keys. Numbers are as exact in JSON as they were
 * computed; the text form rounds them for reading.
 */
#ifndef MUC_REPORT_H
#define MUC_REPORT_H

#include <stdbool.h>

#include "muc/status.h"

MUC_API_BEGIN

typedef struct muc_report muc_report;

void muc_report_free(muc_report *report); /* NULL is fine */

/* Two columns, tables below them; the result is malloc'ed, for the caller to free. */
muc_status muc_report_as_text(muc_context *ctx, const muc_report *report, char **out);
/* One JSON object, indented by two spaces; malloc'ed, for the caller to free. */
muc_status muc_report_as_json(muc_context *ctx, const muc_report *report, char **out);
/* One table, the first if table is NULL, as comma-separated values with a line of keys (RFC 4180,
 * lines ended by \n); malloc'ed. MUC_USAGE, naming the tables, if there is none of this name. */
muc_status muc_report_as_csv(muc_context *ctx, const muc_report *report, const char *table,
                             char **out);
/* A page of HTML with everything, pictures too, that loads nothing from elsewhere. Its script sorts
 * tables, folds graphs and zooms; without it all is there. malloc'ed. */
muc_status muc_report_as_html(muc_context *ctx, const muc_report *report, const char *title,
                              char **out);

/* Tables of Markdown: one of all values, then each table; malloc'ed. */
muc_status muc_report_as_markdown(muc_context *ctx, const muc_report *report, char **out);

/* Writes one of these forms to a file, which appears whole or not at all. */
muc_status muc_report_save(muc_context *ctx, const char *path, const char *form);

/* The value at a path such as "perplexity" or "self_check.kl"; false if there is no number, or no
 * string. The string is borrowed from the report. */
bool muc_report_number(const muc_report *report, const char *path, double *out);
bool muc_report_string(const muc_report *report, const char *path, const char **out);

MUC_API_END

#endif
