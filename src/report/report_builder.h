/* report_builder.h - builds the reports that muc/report.h prints.
 *
 * Keys are lower-case words joined by '_'; the text form shows them with spaces. A failed
 * allocation is remembered and told by muc_report_status.
 */
#ifndef MUC_REPORT_BUILD_H
#define MUC_REPORT_BUILD_H

#include <jansson.h>

#include "base/base.h"
#include "muc/report.h"

muc_status muc_report_new(muc_context *ctx, muc_report **out);
muc_status muc_report_status(muc_context *ctx, const muc_report *report);

/* Each adds a value to what is open: the report itself, a group or a table's row. */
void muc_report_add_text(muc_report *report, const char *key, const char *format, ...)
    MUC_PRINTF(3, 4);
void muc_report_add_count(muc_report *report, const char *key, uint64_t value);
void muc_report_add_integer(muc_report *report, const char *key, int64_t value);
/* A number or a text as it stands in another report or a result file; others are left out. */
void muc_report_add_json(muc_report *report, const char *key, const json_t *value);
void muc_report_add_real(muc_report *report, const char *key, double value);
/* "bits_per_weight", wherever it is told: all bytes of the matrices that a model multiplies by or
 * looks rows up in, embedding and head included, one that is both counted once, with their scales,
 * codebooks and headers; gains, biases and tables of rotations are not among them. */
void muc_report_add_bits_per_weight(muc_report *report, uint64_t bytes, uint64_t weights);
void muc_report_add_bool(muc_report *report, const char *key, bool value);

/* A group is an object of its own; a table is a list of rows with the same keys. Each begin has
 * its end; rows lie directly in a table. Nesting is at most 8. */
void muc_report_begin_group(muc_report *report, const char *key);
void muc_report_begin_table(muc_report *report, const char *key);
void muc_report_begin_row(muc_report *report);
void muc_report_end(muc_report *report);

/* A table's column as people see it. */
typedef struct muc_report_column {
    const char *key;     /* as in the rows; NULL ends the list */
    const char *unit;    /* "bytes", "s", or NULL */
    const char *meaning; /* a sentence without its full stop, or NULL; pages show it on pointing */
} muc_report_column;

/* As muc_report_begin_table, with the order of the columns, their units and meanings said; a column
 * that no row has is not shown. Without, the columns are the keys of the first row. */
void muc_report_begin_columns(muc_report *report, const char *key,
                              const muc_report_column *columns);

/* The table is long and for closer looks: the text form tells its rows and how to print them. */
void muc_report_mark_detail(muc_report *report, const char *key);

/* A member of an object, of a row for instance: its text, "" without one; its count, 0 without one
 * or for what is negative. */
static inline const char *muc_member_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static inline uint64_t muc_member_count(const json_t *object, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(object, key));

    return value > 0 ? (uint64_t)value : 0;
}

#endif
