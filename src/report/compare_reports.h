/* compare_reports.h - two reports of one kind beside each other. */
#ifndef MUC_COMPARE_REPORTS_H
#define MUC_COMPARE_REPORTS_H

#include "base/bytes.h"
#include "report/report_builder.h"

/* A report that was written as JSON. Its tables have no units and meanings. MUC_MALFORMED, naming
 * file and offset, for what is not a JSON object. */
muc_status muc_report_read(muc_context *ctx, muc_bytes json, muc_report **out);

/* Keys: a and b as they are named here, and the tables "figures" (figure, a, b, change: b / a - 1)
 * with each number and text that both tell, one for each table of both with the numbers that differ
 * (row, figure, a, b, change), and "what_changed" (sentences). Rows are matched by their texts, or
 * by their first number, in order. */
muc_status muc_report_compare(muc_context *ctx, const muc_report *a, const char *a_name,
                              const muc_report *b, const char *b_name, muc_report **out);

#endif
